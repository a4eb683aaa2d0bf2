//! Two stages as one kernel: both read the same line of a packet, so one loop is faster than two.

use std::sync::Arc;

use crate::cpu::Body;
use crate::graph::context::Context;
use crate::graph::directory::Directory;
use crate::graph::frame::PREFETCH_AHEAD;
use crate::graph::node::{NodeSpec, Wiring};
use crate::graph::stage::{Sorted, Stage, StageContext, StageMaker, decide};
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::memory::packet::Packet;

use super::Mask;
use super::kernel::{Ahead, Block, Facts, Kernel, PerInterface};
use super::stage::{StageKernel, leads_on};

/// A stage, and the one that most packets go to from there.
struct PairKernel<A: Stage, B: Stage> {
    first: StageKernel<A>,
    second: B,
    second_id: NodeId,
    state: PerInterface<B::InterfaceState>,
}

/// The packets of a block.
struct EachPacket<'a, A: Stage, B: Stage> {
    first: (&'a A, StageContext<'a>, A::InterfaceState),
    second: (&'a B, StageContext<'a>, B::InterfaceState),
    /// The second node, and the interface by which packets that go there came in.
    onward: (NodeId, InterfaceId),
    /// The block's packets, and those behind them.
    packets: &'a mut [Packet],
    next: &'a mut [NodeId],
    ahead: Ahead,
}

impl<A: Stage, B: Stage> Body for EachPacket<'_, A, B> {
    /// Packets that leave behind the first stage, and those that were as expected.
    type Answer = (Mask, Sorted);

    #[inline(always)]
    fn run(self) -> (Mask, Sorted) {
        let EachPacket { second, onward, packets, next, ahead, .. } = self;
        let (first, at_first, of_first) = self.first;
        let (second, at_second, of_second) = second;
        let (mut left, mut place, mut sorted) = (0, 0, Sorted::default());
        let mut rest = packets;
        for next in next.chunks_mut(PREFETCH_AHEAD) {
            let (now, later) = rest.split_at_mut(next.len().min(rest.len()));
            if A::LOOKS_FIRST {
                ahead.ask(later);
            }
            for (packet, next) in now.iter_mut().zip(next) {
                let length = if A::SORTS { packet.length() } else { 0 };
                let to = decide(first, at_first, of_first, packet);
                if A::SORTS && packet.rx == onward.1 {
                    sorted.add(length);
                }
                if leads_on::<A>(packet, to, onward) {
                    *next = decide(second, at_second, of_second, packet);
                } else {
                    *next = to;
                    left |= 1 << place;
                }
                place += 1;
            }
            rest = later;
        }
        (left, sorted)
    }
}

impl<A: Stage, B: Stage> Kernel for PairKernel<A, B> {
    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId> {
        const { assert!(!B::SORTS, "only the first stage of a pair may sort") };
        if !block.is_full() {
            block.left = block.live;
            return self.first.run(cx, block);
        }
        let (id, rx, second_id, arrived) = (cx.node, block.rx, self.second_id, block.live_count());
        let (first, of_first, onward) = self.first.prepare(cx, (block.pass, rx), block.first());
        first.arrived(cx, rx, arrived);
        cx.node = second_id;
        let second = &self.second;
        let of_second = self.state.get(block.pass, onward, || second.interface_state(cx, onward));
        let (context, variant) = (StageContext::new(cx), cx.variant);
        let pair = EachPacket::<A, B> {
            first: (first, context.of(id), of_first),
            second: (second, context, of_second),
            onward: (second_id, onward),
            packets: &mut *block.packets,
            next: &mut block.next[..block.count],
            ahead: block.ahead,
        };
        let (left, sorted) = variant.run(pair);
        sorted.count(context, rx, onward);
        let went_on = arrived - u64::from(left.count_ones());
        second.arrived(cx, onward, went_on);
        cx.node = id;
        block.left = left;
        block.came_in_by(onward, !A::SORTS || sorted.packets() == arrived);
        self.first.learn(sorted, arrived);
        None
    }

    fn facts(&self) -> Facts {
        self.first.facts()
    }
}

/// Makes the stages of pairs from the declarations of their nodes.
pub(crate) struct Makers<'a> {
    pub directory: &'a Directory,
    pub specs: &'a dyn Fn(NodeId) -> Option<&'a NodeSpec>,
    pub worker: WorkerId,
}

impl Makers<'_> {
    /// The stage called `name`, and its number, if it is built in and such a stage.
    fn make<S: Stage>(&self) -> Option<(S, NodeId)> {
        let id = *self.directory.ids.get(S::NAME)?;
        let maker: &StageMaker<S> = (self.specs)(id)?.maker.as_ref()?.downcast_ref()?;
        Some(((maker.0)(&Wiring::new(self.directory, id, self.worker)), id))
    }
}

type MakePair = Arc<dyn Fn(&Makers<'_>) -> Option<Pair> + Send + Sync>;

/// A worker's instance of a pair.
pub(crate) struct Pair {
    pub second: NodeId,
    pub kernel: Box<dyn Kernel>,
    /// The place of the second node in the list of a pass, and that pass.
    pub place: usize,
    pub pass: u64,
}

/// The declaration of a pair of nodes that run as one loop.
#[derive(Clone)]
pub struct PairSpec {
    /// The nodes' names.
    pub names: [&'static str; 2],
    make: MakePair,
}

impl PairSpec {
    /// Of two stages. The types are those with which the nodes were declared.
    pub fn of<A: Stage, B: Stage>() -> PairSpec {
        let make = |makers: &Makers<'_>| {
            let ((first, _), (second, id)) = (makers.make::<A>()?, makers.make::<B>()?);
            let (first, state) = (StageKernel::new(first), PerInterface::new());
            let kernel = PairKernel { first, second, second_id: id, state };
            Some(Pair { second: id, kernel: Box::new(kernel), place: 0, pass: 0 })
        };
        PairSpec { names: [A::NAME, B::NAME], make: Arc::new(make) }
    }

    /// An instance for a worker; `None` where one of the nodes is not built in.
    pub(crate) fn instance(&self, makers: &Makers<'_>) -> Option<Pair> {
        (self.make)(makers)
    }
}
