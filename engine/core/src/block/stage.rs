//! A [`Stage`] as a kernel.

use crate::cpu::Body;
use crate::graph::context::Context;
use crate::graph::frame::PREFETCH_AHEAD;
use crate::graph::stage::{Sorted, Stage, StageContext, decide};
use crate::ids::{InterfaceId, NodeId};
use crate::memory::packet::Packet;

use super::kernel::{Ahead, Block, Facts, Kernel, PerInterface, places};
use super::{BLOCK_PACKETS, ENTRIES_AHEAD, SOON_AHEAD};

/// A stage, and what it has read of an interface.
pub(crate) struct StageKernel<S: Stage> {
    stage: S,
    /// Its state, and where packets are expected to be said to have come in.
    state: PerInterface<(S::InterfaceState, InterfaceId)>,
}

impl<S: Stage> StageKernel<S> {
    pub fn new(stage: S) -> Self {
        StageKernel { stage, state: PerInterface::new() }
    }

    /// The stage, its state for the block, and the interface by which the packets that are like the
    /// first one will be said to have come in.
    #[inline(always)]
    pub fn prepare(
        &mut self,
        cx: &Context<'_>,
        (pass, rx): (u64, InterfaceId),
        first: Option<&Packet>,
    ) -> (&S, S::InterfaceState, InterfaceId) {
        let stage = &self.stage;
        let (state, onward) = self.state.get(pass, rx, || {
            let state = stage.interface_state(cx, rx);
            match first {
                Some(first) if S::SORTS => stage.expect(cx, rx, state, first),
                _ => (state, rx),
            }
        });
        (stage, state, onward)
    }

    /// So many packets of a block were as expected: when most were not, something else is expected
    /// of the next one.
    #[inline(always)]
    pub fn learn(&mut self, sorted: Sorted, packets: u64) {
        if S::SORTS && sorted.packets() * 2 < packets {
            self.state.forget();
        }
    }
}

/// All packets of a block.
struct EachPacket<'a, S: Stage> {
    stage: &'a S,
    context: StageContext<'a>,
    state: S::InterfaceState,
    onward: InterfaceId,
    /// The block's packets, and those behind them.
    packets: &'a mut [Packet],
    next: &'a mut [NodeId],
    ahead: Ahead,
    is_same_index: bool,
}

impl<S: Stage> EachPacket<'_, S> {
    /// Packets between two looks ahead.
    const CHUNK: usize = if S::LOOKS_FIRST { PREFETCH_AHEAD } else { SOON_AHEAD };
}

impl<S: Stage> Body for EachPacket<'_, S> {
    /// The packets that were as expected, and the bytes of all, if they were added up.
    type Answer = (Sorted, Option<u64>);

    #[inline(always)]
    fn run(self) -> Self::Answer {
        let EachPacket { stage, context, state, onward, packets, next, .. } = self;
        let mut sorted = Sorted::default();
        let (mut bytes, mut is_chained) = (0, !S::SENDS);
        let behind = if S::LOOKS_FIRST { packets.len() } else { next.len().min(packets.len()) };
        let mut rest = &mut packets[..behind];
        let told = if self.is_same_index { 1 } else { ENTRIES_AHEAD.min(next.len()) };
        let soon = if self.is_same_index { 0 } else { SOON_AHEAD };
        rest.iter().take(told).for_each(|packet| stage.ahead(packet));
        rest.iter().take(soon).for_each(|packet| stage.soon(context, packet));
        if self.is_same_index && !S::LOOKS_FIRST && !S::SORTS {
            let (mut nexts, mut bytes, mut is_chained) = (next.iter_mut(), 0, !S::SENDS);
            let is_done = stage.decide_all(context, state, rest, |packet, to| {
                if let Some(next) = nexts.next() {
                    *next = to;
                }
                bytes += packet.segment_length() as u64;
                is_chained |= packet.is_chained();
            });
            if is_done {
                return (sorted, (!is_chained).then_some(bytes));
            }
        }
        for next in next.chunks_mut(Self::CHUNK) {
            let (now, later) = rest.split_at_mut(next.len().min(rest.len()));
            if S::LOOKS_FIRST {
                self.ahead.ask(later);
            } else {
                if !self.is_same_index {
                    let ahead = later.iter().skip(ENTRIES_AHEAD - SOON_AHEAD).take(SOON_AHEAD);
                    ahead.for_each(|packet| stage.ahead(packet));
                }
                later.iter().take(soon).for_each(|packet| stage.soon(context, packet));
            }
            for (packet, next) in now.iter_mut().zip(next) {
                let length = if S::SORTS { packet.length() } else { 0 };
                *next = decide(stage, context, state, packet);
                if S::SORTS && packet.rx == onward {
                    sorted.add(length);
                }
                if S::SENDS {
                    bytes += packet.segment_length() as u64;
                    is_chained |= packet.is_chained();
                }
            }
            rest = later;
        }
        (sorted, (!is_chained).then_some(bytes))
    }
}

/// Some packets of a block.
#[inline(never)]
fn run_some<S: Stage>(
    (stage, context): (&S, StageContext<'_>),
    (state, onward): (S::InterfaceState, InterfaceId),
    block: &mut Block<'_>,
) -> Sorted {
    if S::LOOKS_FIRST {
        places(block.live).for_each(|place| block.ahead.ask(&block.packets[place..=place]));
    }
    places(block.live).for_each(|place| stage.ahead(&block.packets[place]));
    let mut sorted = Sorted::default();
    for place in places(block.live) {
        let packet = &mut block.packets[place];
        let came = if S::SORTS { packet.on_wire() } else { (1, 0) };
        block.next[place % BLOCK_PACKETS] = decide(stage, context, state, packet);
        if S::SORTS && packet.rx == onward {
            sorted.add_on_wire(came);
        }
    }
    sorted
}

impl<S: Stage> Kernel for StageKernel<S> {
    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId> {
        let (rx, arrived) = (block.rx, block.live_count());
        let (stage, state, onward) = self.prepare(cx, (block.pass, rx), block.first());
        stage.arrived(cx, rx, arrived + block.more_packets_on_wire());
        let (context, variant) = (StageContext::new(cx), cx.variant);
        let (sorted, bytes) = if block.is_full() && !(S::SORTS && block.is_alone) {
            let (ahead, is_same_index) = (block.ahead, block.is_same_index);
            let (packets, next) = (&mut *block.packets, &mut block.next[..block.count]);
            variant.run(EachPacket {
                stage,
                context,
                state,
                onward,
                packets,
                next,
                ahead,
                is_same_index,
            })
        } else {
            (run_some((stage, context), (state, onward), block), None)
        };
        sorted.count(context, rx, onward);
        block.came_in_by(onward, !S::SORTS || sorted.packets() == arrived);
        block.bytes = bytes;
        self.learn(sorted, arrived);
        None
    }

    fn facts(&self) -> Facts {
        Facts { looks_first: S::LOOKS_FIRST, looks_behind: S::LOOKS_BEHIND, ..Facts::default() }
    }
}

/// Where a packet goes behind one stage of a pair.
#[inline(always)]
pub(super) fn leads_on<S: Stage>(packet: &Packet, next: NodeId, to: (NodeId, InterfaceId)) -> bool {
    next == to.0 && (!S::SORTS || packet.rx == to.1)
}
