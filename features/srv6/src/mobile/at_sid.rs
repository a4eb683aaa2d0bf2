//! The nodes of gateways' local SIDs: each packet is sent on, dies or is complained about, and counts for its SID.

use quiver_core::stage::{Stage, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use crate::endpoint::line::Line;
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::ways::Ways;

/// What is done at a SID.
pub(super) trait AtSid: Send + 'static {
    /// The node.
    const NODE: &'static str;

    /// Where packets go.
    fn ways(&self) -> &Ways;

    /// Send a packet on.
    fn send(&self, tally: Tally<'_>, line: Line<'_>, packet: &mut Packet) -> Result<NodeId, Bad>;
}

/// The node that does it.
pub(super) struct Gateway<B>(pub B);

impl<B: AtSid> Stage for Gateway<B> {
    const NAME: &'static str = B::NODE;
    type Reason = LocalSidDrop;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.0.ways().lines.prefetch(packet.index);
    }

    fn decide(&self, tally: Tally<'_>, (): (), packet: &mut Packet) -> Result<NodeId, LocalSidDrop> {
        let ways = self.0.ways();
        let (line, bytes) = (Line(ways.lines.line(packet.index)), packet.length());
        let outcome = self.0.send(tally, line, packet);
        ways.settle(tally, line.0, outcome, bytes, packet)
    }
}
