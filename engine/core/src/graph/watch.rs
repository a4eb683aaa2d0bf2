//! A stage that lets all packets of an interface go on as they came, and looks at few of them.

use std::sync::Arc;

use crate::block::WatchKernel;
use crate::graph::context::{Behind, Context};
use crate::graph::node::{NodeSpec, Reason, Wiring};
use crate::graph::stage::StageContext;
use crate::ids::InterfaceId;
use crate::memory::packet::Packet;

/// A feature of an arc that decides for all packets of a vector at once: while it looks at none of
/// them, it costs nothing a packet.
pub trait Watch: Send + 'static {
    /// The node's name.
    const NAME: &'static str;
    /// What is counted.
    type Reason: Reason;
    /// What holds for all packets that came in by one interface, read once for a vector.
    type InterfaceState: Copy + Send;

    /// What holds for packets that came in by `rx`.
    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Self::InterfaceState;

    /// Where all of them go on.
    fn behind(interface_state: Self::InterfaceState) -> Behind;

    /// So many packets on the wire have come: super-frames count as the packets that they stand
    /// for. False, and nothing changes, where [`look`](Self::look) must see each of them.
    fn passes(
        &self,
        context: StageContext<'_>,
        interface_state: Self::InterfaceState,
        packets: u64,
    ) -> bool;

    /// One of the packets that did not all pass, in their order.
    fn look(
        &self,
        context: StageContext<'_>,
        interface_state: Self::InterfaceState,
        packet: &Packet,
    );
}

impl NodeSpec {
    /// A node that lets all packets go on, and looks at few of them.
    pub fn watch<W: Watch>(
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> W + Send + Sync + 'static,
    ) -> NodeSpec {
        let make = Arc::new(make);
        let spec =
            NodeSpec::kernel(W::NAME, help, move |wiring| Box::new(WatchKernel::new(make(wiring))));
        spec.reasons::<W::Reason>()
    }
}
