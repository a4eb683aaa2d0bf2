//! A [`Watch`] as a kernel.

use crate::graph::context::Context;
use crate::graph::stage::StageContext;
use crate::graph::watch::Watch;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::packet::Packet;

use super::kernel::{Block, Facts, Kernel, PerInterface, WholeVector};

/// A stage that looks at few packets, and what it has read of an interface.
pub(crate) struct WatchKernel<W: Watch> {
    watch: W,
    state: PerInterface<W::InterfaceState>,
}

impl<W: Watch> WatchKernel<W> {
    pub fn new(watch: W) -> Self {
        WatchKernel { watch, state: PerInterface::new() }
    }

    /// Let `count` packets on the wire pass, or have a look at `packets`, which they came as.
    /// Returns where they go.
    #[inline(always)]
    fn pass<'p>(
        &mut self,
        cx: &Context<'_>,
        (pass, rx): (u64, InterfaceId),
        count: u64,
        packets: impl Iterator<Item = &'p mut Packet>,
    ) -> NodeId {
        let WatchKernel { watch, state } = self;
        let state = state.get(pass, rx, || watch.interface_state(cx, rx));
        let context = StageContext::new(cx);
        let behind = W::behind(state);
        let is_looked_at = !watch.passes(context, state, count);
        // At the end of the arc nobody reads the place of a packet in it.
        if is_looked_at || !behind.is_end() {
            for packet in packets {
                if is_looked_at {
                    watch.look(context, state, packet);
                }
                behind.take(packet);
            }
        }
        behind.next
    }
}

impl<W: Watch> Kernel for WatchKernel<W> {
    fn run(&mut self, cx: &mut Context<'_>, block: &mut Block<'_>) -> Option<NodeId> {
        let count = block.live_count() + block.more_packets_on_wire();
        let (key, live) = ((block.pass, block.rx), block.live);
        let packets = block.packets.iter_mut().take(block.count).enumerate();
        let packets = packets.filter(|(place, _)| live >> place & 1 != 0);
        Some(self.pass(cx, key, count, packets.map(|(_, packet)| packet)))
    }

    fn run_vector(&mut self, cx: &mut Context<'_>, vector: &mut WholeVector<'_>) -> Option<NodeId> {
        let (key, count) = ((vector.pass, vector.rx), vector.packets.len() as u64);
        Some(self.pass(cx, key, count, vector.packets.iter_mut()))
    }

    fn facts(&self) -> Facts {
        Facts { looks_at_none: true, ..Facts::default() }
    }
}
