//! A stage that sends all packets of an interface the same way ([`Steer`]), as a kernel.

use std::marker::PhantomData;

use crate::cpu::Body;
use crate::graph::context::Context;
use crate::graph::interface::InterfaceRow;
use crate::graph::stage::{Stage, Steer};
use crate::ids::NodeId;
use crate::memory::packet::Packet;

use super::kernel::{Block, Facts, Kernel};
use super::stage::StageKernel;

/// It answers for the whole block; where a packet is refused, the stage decides about each.
pub(crate) struct SteerKernel<S: Stage> {
    each: StageKernel<S>,
}

impl<S: Steer> SteerKernel<S> {
    pub fn new(stage: S) -> Self {
        SteerKernel { each: StageKernel::new(stage) }
    }
}

/// The packets of a block: how many bytes they have, and whether the stage takes each.
struct Takes<'a, S> {
    packets: &'a [Packet],
    stage: PhantomData<S>,
}

impl<S: Steer> Body for Takes<'_, S> {
    type Answer = Option<u64>;

    #[inline(always)]
    fn run(self) -> Option<u64> {
        let (mut bytes, mut takes, mut is_chained) = (0, true, false);
        for packet in self.packets {
            takes &= S::takes(packet);
            is_chained |= packet.is_chained();
            bytes += packet.segment_length() as u64;
        }
        if is_chained {
            bytes = self.packets.iter().map(|packet| packet.length() as u64).sum();
        }
        takes.then_some(bytes)
    }
}

impl<S: Steer> Kernel for SteerKernel<S> {
    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId> {
        let rx = block.rx;
        let (stage, state, _) = self.each.prepare(cx, block);
        let to = S::way(state).filter(|_| block.is_full() && !block.is_alone);
        let count = block.count;
        let packets = &mut block.packets[..count];
        let bytes =
            to.and_then(|_| cx.variant.run(Takes { packets: &*packets, stage: PhantomData::<S> }));
        let (Some((output, tx)), Some(bytes)) = (to, bytes) else {
            return self.each.run(cx, block);
        };
        stage.arrived(cx, rx, count as u64);
        if cx.interface(tx).is_some_and(InterfaceRow::is_sub_interface) {
            packets.iter_mut().for_each(|packet| packet.tx = tx);
        }
        (block.bytes, block.is_same_index) = (Some(bytes), false);
        Some(output)
    }

    fn facts(&self) -> Facts {
        self.each.facts()
    }
}
