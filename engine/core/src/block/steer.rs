//! A stage that sends all packets of an interface the same way ([`Steer`]), as a kernel.

use std::marker::PhantomData;

use crate::cpu::Body;
use crate::graph::context::Context;
use crate::graph::stage::{Stage, Steer};
use crate::ids::{InterfaceId, NodeId};
use crate::memory::packet::Packet;

use super::kernel::{Block, Facts, Kernel, WholeVector};
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

impl<S: Steer> SteerKernel<S> {
    /// Send all of these packets the same way, if none is refused; the answer is the node, and the
    /// bytes of all.
    #[inline(always)]
    fn steer(
        &mut self,
        cx: &Context<'_>,
        (pass, rx): (u64, InterfaceId),
        packets: &mut [Packet],
    ) -> Option<(NodeId, u64)> {
        let (stage, state, _) = self.each.prepare(cx, (pass, rx), packets.first());
        let (output, tx) = S::way(state)?;
        let bytes = cx.variant.run(Takes { packets: &*packets, stage: PhantomData::<S> })?;
        stage.arrived(cx, rx, packets.len() as u64);
        if cx.interface(tx).is_some_and(|row| row.shares_output) {
            packets.iter_mut().for_each(|packet| packet.tx = tx);
        }
        Some((output, bytes))
    }
}

impl<S: Steer> Kernel for SteerKernel<S> {
    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId> {
        let (key, count) = ((block.pass, block.rx), block.count);
        let steered = match block.is_full() && !block.is_alone {
            true => self.steer(cx, key, &mut block.packets[..count]),
            false => None,
        };
        let Some((output, bytes)) = steered else { return self.each.run(cx, block) };
        (block.bytes, block.is_same_index) = (Some(bytes), false);
        Some(output)
    }

    fn run_vector(&mut self, cx: &mut Context<'_>, vector: &mut WholeVector<'_>) -> Option<NodeId> {
        let (output, bytes) = self.steer(cx, (vector.pass, vector.rx), vector.packets)?;
        vector.bytes = Some(bytes);
        Some(output)
    }

    fn facts(&self) -> Facts {
        self.each.facts()
    }
}
