//! Several nodes in one pass over the vector. The graph stays the truth: a superblock runs the stages of
//! nodes that stand behind one another ([`Stage`], [`LookUp`]), compiled into one loop, counts for each
//! what the node would have counted, and lets every packet that goes another way leave for the node that
//! its stage named. `docs/guide/performance.md` has the drawing, `docs/decisions/superblocks.md` the figures.

mod block;
mod exits;
mod look_ups;
mod steered;
mod tail;
mod two_look_ups;

use std::sync::Arc;

use crate::arc::INTERFACE_OUTPUT;
use crate::context::Context;
use crate::counters::WorkerCounters;
use crate::cpu::{Body, Variant};
use crate::directory::Directory;
use crate::frame::{Frame, PREFETCH_AHEAD};
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::node::{NodeSpec, Wiring};
use crate::packet::Packet;
use crate::shares::{Outputs, Shares};
use crate::stage::{LookUp, Sorted, Stage, StageMaker, Tally, decide};

pub use look_ups::LookUps;
pub use tail::Tail;
#[doc(hidden)]
pub use tail::TailWay;

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
    /// Its packets go another way, or a feature stands between the stages on the interface that they came in by;
    /// another superblock may take them.
    OtherWay,
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
                    if !self.$place.leads_to(common, ids[$place + 1]) {
                        return Err(Declined::OtherWay);
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
}

stages!(A 0);
stages!(A 0, B 1);
stages!(A 0, B 1, C 2);
stages!(A 0, B 1, C 2, D 3);

/// The rest of the way, when it is the same for all packets: the node they go to, or behind the output
/// of `tx` when that has no output features, whose counting is done here; of a sub-interface, behind its parent's
/// output as well. `bytes` counts first segments. Returns the outputs whose work is done.
fn carry_out(cx: &Context<'_>, mut tx: InterfaceId, mut bytes: u64, frame: &mut Frame) -> Outputs {
    let mut done = [None; OUTPUTS_MAX];
    let Some(mut output) = frame.common_next() else { return done };
    if frame.packets().iter().fold(false, |any, packet| any | packet.is_chained()) {
        bytes = frame.packets().iter().map(|packet| packet.length() as u64).sum();
    }
    for done in &mut done {
        let Some(row) = cx.interface(tx).filter(|row| row.up && row.output == output) else { break };
        let is_sub_interface = row.is_sub_interface();
        // Sub-interfaces share a node.
        let several = is_sub_interface && frame.packets().iter().any(|packet| packet.tx != tx);
        if several || row.first(INTERFACE_OUTPUT, row.tx) != row.tx {
            break;
        }
        let counters = cx.interface_counters(tx);
        counters.tx_packets.add(frame.len() as u64);
        counters.tx_bytes.add(bytes);
        *done = Some(output);
        output = row.tx;
        if !is_sub_interface {
            break;
        }
        tx = row.parent;
    }
    frame.set_all_next(output);
    done
}

/// Stages, a look-up for a block of packets, and what comes last.
struct WithLookUp<H, L: LookUp, T> {
    head: H,
    look_up: L,
    tail: T,
    ids: Ids,
    /// A block's keys, and what was found for them.
    keys: Box<[L::Key; BLOCK]>,
    found: Box<[L::Found; BLOCK]>,
    exits: Exits,
}

impl<H: Stages, L: LookUp, T: Tail> WithLookUp<H, L, T> {
    const LOOK_UP: usize = H::NAMES.len();
    const TAIL: usize = Self::LOOK_UP + 1;
    const COUNT: usize = Self::TAIL + T::NAMES.len();
}

/// The lines of a packet that are looked at.
#[inline(always)]
fn ask_for<T: Tail>(packet: &Packet) {
    packet.prefetch();
    if T::LOOKS_BEHIND {
        packet.prefetch_second();
    }
}

/// One pass over a vector.
struct Pass<'a, H: Stages, L: LookUp, T: Tail> {
    block: &'a mut WithLookUp<H, L, T>,
    tally: Tally<'a>,
    variant: Variant,
    head: H::Common,
    ways: &'a Ways,
    look_up: L::Common,
    tail: T::Common,
    frame: &'a mut Frame,
}

impl<H: Stages, L: LookUp, T: Tail> Body for Pass<'_, H, L, T> {
    type Answer = Sums;

    #[inline(always)]
    fn run(mut self) -> Sums {
        let mut sums = Sums::default();
        let packets = self.frame.packets();
        packets.iter().take(PREFETCH_AHEAD).for_each(ask_for::<T>);
        let blocks = packets.len().div_ceil(BLOCK);
        for block in 0..blocks {
            self.check(block, &mut sums.sorted);
            sums.bytes += self.finish(block);
        }
        sums
    }
}

impl<H: Stages, L: LookUp, T: Tail> Pass<'_, H, L, T> {
    /// Check a block's packets, and collect their keys.
    #[inline(always)]
    fn check(&mut self, block: usize, sorted: &mut Sorted) {
        let WithLookUp { head, look_up, ids, keys, exits, .. } = &mut *self.block;
        let ids = *ids;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let (mut rest, mut index, mut left) = (&mut packets[begin..], 0, 0);
        for keys in keys.chunks_exact_mut(PREFETCH_AHEAD) {
            let (now, later) = rest.split_at_mut(rest.len().min(PREFETCH_AHEAD));
            later.iter().take(PREFETCH_AHEAD).for_each(ask_for::<T>);
            for (packet, key) in now.iter_mut().zip(keys) {
                let common = (self.tally, self.head);
                *key = match decide_and_sort(head, common, &ids, self.ways, packet, sorted) {
                    Ok(()) => look_up.key(self.look_up, packet),
                    Err(exit) => {
                        next[begin + index] = exit.next;
                        exits.places[begin + index] = exit.place as u8;
                        left |= 1 << index;
                        L::Key::default()
                    }
                };
                index += 1;
            }
            rest = later;
        }
        exits.marks.set_word(block, left);
    }

    /// Look a block up, and finish with its packets. Returns the bytes in the first segments of those
    /// that went all the way.
    #[inline(always)]
    fn finish(&mut self, block: usize) -> u64 {
        let WithLookUp { look_up, tail, ids, keys, found, exits, .. } = &mut *self.block;
        let (packets, next) = self.frame.split_mut();
        let begin = block * BLOCK;
        let count = (packets.len() - begin).min(BLOCK);
        let keys = &keys[..count];
        match T::ALIKE {
            true => look_up.find_alike(self.variant, self.look_up, keys, &mut found[..count]),
            false => look_up.find(self.variant, self.look_up, keys, &mut found[..count]),
        }
        let places = &mut exits.places[begin..begin + count];
        let mut packets =
            Block { packets: &mut packets[begin..begin + count], next: &mut next[begin..], places };
        let place = WithLookUp::<H, L, T>::LOOK_UP;
        let (look_up, answers) = ((&*look_up, self.look_up), (keys, &found[..count]));
        let left = exits.marks.word(block);
        let left = match T::ALIKE {
            true => packets
                .judge_all(look_up, self.tally, (ids, place), answers, left, |packet| tail.ahead(packet)),
            false => (
                packets.judge(look_up, self.tally, (ids, place), answers, left, |packet| tail.ahead(packet)),
                false,
            ),
        };
        let (left, bytes) = packets.finish((tail, self.tail), self.tally, (ids, place + 1), left);
        exits.marks.set_word(block, left);
        bytes
    }
}

impl<H: Stages, L: LookUp, T: Tail> Superblock for WithLookUp<H, L, T> {
    fn run(
        &mut self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        shares: &mut Shares,
    ) -> Result<Passed, Declined> {
        let (head, ways) = self.head.common(cx, frame.packets(), &self.ids)?;
        shares.take_turn(frame)?;
        let rx = ways[Self::LOOK_UP];
        let (look_up, tail) = (self.look_up.common(cx, rx), self.tail.common(cx, rx));
        let count = frame.len();
        let (tally, variant) = (Tally::new(cx), cx.variant);
        let pass = Pass { block: self, tally, variant, head, ways: &ways, look_up, tail, frame: &mut *frame };
        let sums = variant.run(pass);
        self.look_up.end();
        sums.sorted.count(tally, ways[0], rx);
        let (left, mostly_left) = self.exits.send(cx, &self.ids, frame);
        if T::SORTS {
            frame.look_at_rx();
        }
        let arrived = count_arrived(count, &left, Self::COUNT);
        self.head.arrived(cx, &ways, &arrived);
        self.tail.arrived(cx, rx, &arrived[Self::TAIL..]);
        let tx = frame.packets().first().map(|packet| packet.tx);
        let outputs = tx.map_or([None; OUTPUTS_MAX], |tx| carry_out(cx, tx, sums.bytes, frame));
        let from = last_of(&outputs).unwrap_or(self.ids[Self::COUNT - 1]);
        Ok(Passed { arrived, from, outputs, mostly_left })
    }
}

/// The output that came last.
fn last_of(outputs: &Outputs) -> Option<NodeId> {
    outputs.iter().flatten().next_back().copied()
}

/// Packets that came to each of the first `stages` stages, from those that left behind each.
fn count_arrived(count: usize, left: &[u32; STAGES_MAX], stages: usize) -> [u32; STAGES_MAX] {
    let mut arrived = [0; STAGES_MAX];
    let mut here = count as u32;
    for (arrived, left) in arrived.iter_mut().zip(left).take(stages) {
        *arrived = here;
        here -= left;
    }
    arrived
}

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
    /// Stages, then a look-up, then a last stage or two; and the output of the interface that the packets
    /// leave by. The types are those with which the nodes were declared.
    pub fn with_look_up<H: Stages, L: LookUp, T: Tail>() -> SuperblockSpec {
        let names: Vec<_> = H::NAMES.iter().chain([&L::NAME]).chain(T::NAMES).copied().collect();
        assert!(names.len() <= STAGES_MAX);
        let make = |makers: &Makers<'_>, ids| -> Box<dyn Superblock> {
            Box::new(WithLookUp::<H, L, T> {
                head: H::make(makers),
                look_up: makers.make(L::NAME),
                tail: T::make(makers),
                ids,
                keys: Box::new([L::Key::default(); BLOCK]),
                found: Box::new([L::Found::default(); BLOCK]),
                exits: Exits::new(),
            })
        };
        SuperblockSpec { names, make: Arc::new(make) }
    }

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
        Fused { block, ids, stages: self.names.len(), shares: Shares::new() }
    }
}

/// A superblock as it stands in the graph of one worker.
pub(crate) struct Fused {
    block: Box<dyn Superblock>,
    ids: Ids,
    stages: usize,
    shares: Shares,
}

impl Fused {
    /// Is it a way for packets that left `other` so?
    pub(crate) fn takes_up(&self, other: &Fused, exit: Exit) -> bool {
        let own = &self.ids[..self.stages];
        own.get(..=exit.place) == other.ids.get(..=exit.place) && own.get(exit.place + 1) == Some(&exit.next)
    }

    /// Run the vector through all stages, unless that would not do.
    pub(crate) fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Result<Passed, Declined> {
        self.block.run(cx, frame, &mut self.shares)
    }

    /// Count for each node what it would have counted alone.
    pub(crate) fn account(&mut self, counters: &WorkerCounters, passed: &Passed, clocks: u64) {
        let outputs = &passed.outputs;
        self.shares.refresh(counters, &self.ids[..self.stages], outputs);
        let last = passed.arrived[self.stages - 1];
        let stages = self.ids[..self.stages].iter().copied().zip(passed.arrived);
        for ((node, arrived), share) in
            stages.chain(outputs.iter().flatten().map(|node| (*node, last))).zip(self.shares.of(outputs))
        {
            if arrived == 0 {
                continue; // it would not have been called
            }
            let row = counters.node(node);
            let taken = ((u128::from(clocks) * u128::from(*share)) >> 32) as u64;
            row.calls.add(1);
            row.fused.add(1);
            row.vectors.add(u64::from(arrived));
            row.clocks.add(taken);
            row.note_longest(taken, u64::from(arrived));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packets_that_leave_do_not_arrive_behind() {
        let left = [1, 0, 3, 0, 0, 0, 0, 0];
        assert_eq!(count_arrived(10, &left, 4), [10, 9, 9, 6, 0, 0, 0, 0]);
    }
}
