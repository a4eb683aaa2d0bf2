//! `sflow-input`: samples what an interface receives. A vector of which no packet is drawn costs
//! one comparison.

use std::sync::Arc;

use quiver_core::graph::arc::DEVICE_INPUT;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::StageContext;
use quiver_core::{Context, InterfaceId, Packet, Watch};

use crate::sampler::{self, How, Sampler, SflowEvent};
use crate::sources::Shared;

/// What holds for the packets that an interface receives.
#[derive(Clone, Copy)]
pub(crate) struct Received {
    how: How,
    interface: InterfaceId,
    is_bare: bool,
    /// Where packets go on.
    behind: Behind,
}

impl Watch for Sampler<false> {
    const NAME: &'static str = sampler::name(false);
    type Reason = SflowEvent;
    type InterfaceState = Received;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Received {
        let row = cx.interface(rx);
        let end = row.map_or(DROP, |row| row.input);
        Received {
            how: self.how(),
            interface: rx,
            is_bare: row.is_some_and(|row| row.mac == [0; 6]),
            behind: cx.behind(DEVICE_INPUT, rx, self.id, end),
        }
    }

    #[inline(always)]
    fn behind(state: Received) -> Behind {
        state.behind
    }

    #[inline(always)]
    fn passes(&self, _: StageContext<'_>, state: Received, packets: u64) -> bool {
        let Some(worker) = self.open(state.how.rate) else { return true };
        let skips = self.skips(packets);
        if skips {
            worker.count(state.interface.0, Self::DIRECTION, packets);
        }
        skips
    }

    #[inline]
    fn look(&self, context: StageContext<'_>, state: Received, packet: &Packet) {
        let Some(worker) = self.open(state.how.rate) else { return };
        let packets = packet.on_wire().0;
        worker.count(state.interface.0, Self::DIRECTION, packets);
        let times = self.times(state.how.rate, packets);
        if times > 0 {
            self.sample(context, (state.interface, state.is_bare), state.how, packet, times);
        }
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    sampler::described(NodeSpec::watch(
        "Samples packets that an interface receives, for sFlow",
        move |wiring| Sampler::<false>::new(&shared, wiring),
    ))
}
