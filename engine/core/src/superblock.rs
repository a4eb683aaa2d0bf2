//! Several nodes in one pass over the vector. The graph stays the truth: a superblock runs the stages of
//! nodes that stand behind one another ([`Stage`], [`LookUp`](crate::stage::LookUp)), compiled into one loop, counts for each
//! what the node would have counted, and lets every packet that goes another way leave for the node that
//! its stage named. `docs/guide/performance.md` has the drawing, `docs/decisions/superblocks.md` the figures.

mod behind;
mod block;
mod chains;
mod exits;
mod look_up;
mod look_ups;
mod steered;
mod tail;
mod two_look_ups;

use std::sync::Arc;

use crate::context::Context;
use crate::directory::Directory;
use crate::frame::Frame;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::node::{NodeSpec, Wiring};
use crate::packet::Packet;
use crate::shares::{Outputs, Shares};
use crate::stage::{Sorted, Stage, StageMaker, Tally, decide};

pub use look_ups::LookUps;
pub use tail::Tail;
#[doc(hidden)]
pub use tail::TailWay;

pub(crate) use chains::{Chains, Fused};

use block::Block;
use exits::Exits;

/// Nodes in one superblock at most, the interface's output not counted.
pub const STAGES_MAX: usize = 8;
/// Outputs whose work a superblock does at most: a sub-interface's and its parent's.
pub(crate) const OUTPUTS_MAX: usize = 2;
/// Packets whose headers are checked before the first of them is looked up.
const BLOCK: usize = 64;
/// How many packets ahead a last stage asks for what it will read ([`Stage::ahead`]).
const TAIL_AHEAD: usize = 16;

/// The nodes of a superblock by their places in it.
type Ids = [NodeId; STAGES_MAX];

/// The interface that packets which go all the way are said to have come in by, by the place of a stage.
#[doc(hidden)]
pub type Ways = [InterfaceId; STAGES_MAX];

/// What a worker runs. One instance for each worker, as of a node.
pub(crate) trait Superblock: Send {
    /// Run the vector through all stages, unless it says why not; then nothing has happened.
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined>;
}

/// Why a superblock does not take a vector.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// Its packets go another way than from the stage at this place to the next, or a feature stands between the two on
    /// the interface that they came in by; a superblock without this step may take them.
    OtherWay(usize),
    /// The packets plainly differ, or it is time to see what the nodes cost alone.
    NodeByNode,
}

/// What happened to a vector in a superblock.
pub(crate) struct Passed {
    /// Packets that came to each stage.
    pub arrived: [u32; STAGES_MAX],
    /// The node that decided about the packets that are still in the vector.
    pub from: NodeId,
    /// The outputs whose work the superblock has done too.
    pub outputs: Outputs,
    /// Most of the packets have gone another way: where most of those left.
    pub mostly_left: Option<Exit>,
}

/// Stages in a row, each leading to the next: a tuple of [`Stage`]s.
pub trait Stages: Sized + Send + 'static {
    /// The stages' own, in a tuple.
    type Common: Copy;
    /// The nodes' names.
    const NAMES: &'static [&'static str];
    /// Does one of them sort packets by the interface that they came in by?
    const SORT: bool;
    #[doc(hidden)]
    fn make(makers: &Makers<'_>) -> Self;
    #[doc(hidden)]
    fn common(
        &self,
        cx: &Context<'_>,
        packets: &[Packet],
        ids: &Ids,
    ) -> Result<(Self::Common, Ways), Declined>;
    #[doc(hidden)]
    fn decide(
        &self,
        tally: Tally<'_>,
        common: Self::Common,
        ids: &Ids,
        ways: &Ways,
        packet: &mut Packet,
    ) -> Result<(), Exit>;
    #[doc(hidden)]
    fn arrived(&self, cx: &Context<'_>, ways: &Ways, arrived: &[u32; STAGES_MAX]);
}

/// A packet leaves: behind which stage, and to which node.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    place: usize,
    next: NodeId,
}

macro_rules! stages {
    ($($stage:ident $place:tt),+) => {
        impl<$($stage: Stage),+> Stages for ($($stage,)+) {
            type Common = ($($stage::Common,)+);
            const NAMES: &'static [&'static str] = &[$($stage::NAME),+];
            const SORT: bool = $($stage::SORTS)||+;

            fn make(makers: &Makers<'_>) -> Self {
                ($(makers.make::<$stage>($stage::NAME),)+)
            }

            #[inline(always)]
            fn common(
                &self,
                cx: &Context<'_>,
                packets: &[Packet],
                ids: &Ids,
            ) -> Result<(Self::Common, Ways), Declined> {
                let first = packets.first().ok_or(Declined::NodeByNode)?;
                let mut ways = [first.rx; STAGES_MAX];
                let common = ($({
                    let common = self.$place.common(cx, ways[$place]);
                    let expected = self.$place.expect(cx, ways[$place], common, packets);
                    let (common, onward) = expected.ok_or(Declined::NodeByNode)?;
                    let barred = $place == 0 && lead_elsewhere(&self.$place, packets, ids[$place + 1]);
                    if barred || !self.$place.leads_to(common, ids[$place + 1]) {
                        return Err(Declined::OtherWay($place));
                    }
                    ways[$place + 1] = onward;
                    common
                },)+);
                Ok((common, ways))
            }

            #[inline(always)]
            fn decide(
                &self,
                tally: Tally<'_>,
                common: Self::Common,
                ids: &Ids,
                ways: &Ways,
                packet: &mut Packet,
            ) -> Result<(), Exit> {
                $(
                    let next = decide(&self.$place, tally.of(ids[$place]), common.$place, packet);
                    let elsewhere = $stage::SORTS && packet.rx != ways[$place + 1];
                    if next != ids[$place + 1] || elsewhere {
                        return Err(Exit { place: $place, next });
                    }
                )+
                Ok(())
            }

            fn arrived(&self, cx: &Context<'_>, ways: &Ways, arrived: &[u32; STAGES_MAX]) {
                $(self.$place.arrived(cx, ways[$place], u64::from(arrived[$place]));)+
            }
        }
    };
}

/// Do the first and the last packet lead to another node than this one?
#[inline(always)]
fn lead_elsewhere<S: Stage>(stage: &S, packets: &[Packet], next: NodeId) -> bool {
    let leads = |packet: Option<&Packet>| packet.and_then(|packet| stage.towards(packet));
    leads(packets.first()).is_some_and(|to| to != next) && leads(packets.last()).is_some_and(|to| to != next)
}

/// Decide about one packet, and note whether it is of the interface that is expected.
#[inline(always)]
fn decide_and_sort<H: Stages>(
    head: &H,
    (tally, common): (Tally<'_>, H::Common),
    ids: &Ids,
    ways: &Ways,
    packet: &mut Packet,
    sorted: &mut Sorted,
) -> Result<(), Exit> {
    let length = if H::SORT { packet.length() } else { 0 };
    let decision = head.decide(tally, common, ids, ways, packet);
    if H::SORT && packet.rx == ways[H::NAMES.len()] {
        sorted.add(length);
    }
    decision
}

/// What a pass over a vector adds up.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// Bytes in the first segments of the packets that went all the way.
    bytes: u64,
    sorted: Sorted,
    /// The last stage has left packets to its node, others of their flows perhaps not.
    refused: bool,
}

stages!(A 0);
stages!(A 0, B 1);
stages!(A 0, B 1, C 2);
stages!(A 0, B 1, C 2, D 3);

/// Makes the stages of a superblock from the declarations of their nodes.
#[doc(hidden)]
pub struct Makers<'a> {
    directory: &'a Directory,
    specs: &'a dyn Fn(NodeId) -> Option<&'a NodeSpec>,
    worker: WorkerId,
}

impl<'a> Makers<'a> {
    /// The stage called `name`. That it exists was asked before.
    fn make<S: 'static>(&self, name: &str) -> S {
        let id = self.directory.ids[name];
        let maker = maker::<S>((self.specs)(id)).expect("the node was found to be this stage");
        (maker.0)(&Wiring::new(self.directory, id, self.worker))
    }
}

fn maker<S: 'static>(spec: Option<&NodeSpec>) -> Option<&StageMaker<S>> {
    spec?.maker.as_ref()?.downcast_ref()
}

type MakeSuperblock = Arc<dyn Fn(&Makers<'_>, Ids) -> Box<dyn Superblock> + Send + Sync>;

/// The declaration of a superblock.
#[derive(Clone)]
pub struct SuperblockSpec {
    /// Its nodes, in order.
    pub names: Vec<&'static str>,
    make: MakeSuperblock,
}

impl SuperblockSpec {
    /// The node at which it begins.
    pub(crate) fn head(&self) -> &'static str {
        self.names[0]
    }

    /// An instance for a worker.
    pub(crate) fn instance<'a>(
        &self,
        directory: &'a Directory,
        specs: &'a dyn Fn(NodeId) -> Option<&'a NodeSpec>,
        worker: WorkerId,
    ) -> Fused {
        let mut ids = [crate::node::DROP; STAGES_MAX];
        for (id, name) in ids.iter_mut().zip(&self.names) {
            *id = directory.ids[*name];
        }
        let block = (self.make)(&Makers { directory, specs, worker }, ids);
        Fused::new(block, ids, self.names.len())
    }
}
