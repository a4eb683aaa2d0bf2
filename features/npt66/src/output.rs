//! `npt66-output`: sources of packets that leave become external addresses. A packet to an external
//! address of the same interface comes back (hairpinning).

use std::sync::Arc;

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::ip::{Ip6, IpFamily, packet_in_frame};
use quiver_forwarding::nodes;

use crate::bindings::Bindings;
use crate::reasons::Npt66Drop;
use crate::translate::{self, Outward, Unmappable};

/// The node's name.
pub(crate) const OUTPUT: &str = "npt66-output";
/// The source address failed a policy (RFC 4443 §3.1).
const SOURCE_FAILED: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 5, detail: 0 };

struct Output {
    bindings: Arc<Bindings>,
    lookup: NodeId,
    error: NodeId,
}

/// Take off what stands in front of the IP header.
fn strip(packet: &mut Packet, bytes: usize) -> Result<(), Npt66Drop> {
    packet.pull(bytes).then_some(()).ok_or(Npt66Drop::Truncated)
}

impl Stage for Output {
    const NAME: &'static str = OUTPUT;
    type Reason = Npt66Drop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, Npt66Drop> {
        let tx = packet.tx;
        let row = context.interface(tx).ok_or(Npt66Drop::Gone)?;
        let has_frames = row.mac != [0; 6];
        let at = if has_frames { packet_in_frame::<Ip6>(packet.bytes()) } else { Some(0) };
        let inside = at.and_then(|at| packet.bytes_mut().get_mut(at..));
        let inside = inside.filter(|bytes| bytes.first().is_some_and(|first| first >> 4 == 6));
        if let (Some(at), Some(inside)) = (at, inside) {
            match translate::outward(self.bindings.of(tx, context.pass()), inside) {
                Ok(Outward::On) => {}
                Ok(Outward::Back) => {
                    strip(packet, at)?;
                    return Ok(self.lookup);
                }
                Err(Unmappable) => {
                    context.count(Npt66Drop::Unmappable, 1);
                    strip(packet, at)?;
                    packet.hand_over(SOURCE_FAILED);
                    return Ok(self.error);
                }
            }
        }
        Ok(context.next_in_arc(INTERFACE_OUTPUT, tx, packet, row.tx))
    }
}

/// The declaration.
pub(crate) fn spec(bindings: &Arc<Bindings>) -> NodeSpec {
    let bindings = bindings.clone();
    let help = "Sources behind this router become the addresses that others see";
    NodeSpec::stage(help, move |wiring| Output {
        bindings: bindings.clone(),
        lookup: wiring.node(nodes::ip6::LOOKUP),
        error: wiring.node(nodes::ip6::ICMP_ERROR),
    })
    .takes_offloads()
    .describe(|record, names| {
        let at = packet_in_frame::<Ip6>(record.bytes()).unwrap_or(0);
        let packet = Ip6::describe(record.bytes().get(at..).unwrap_or_default());
        format!(
            "{packet}, leaves by {}, to {}",
            names.interface(record.tx),
            names.node(record.next)
        )
    })
}
