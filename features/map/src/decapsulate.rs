//! `ip6-map` and `ip6-map-local`: the packet of IPv4 that a customer sends in a packet of IPv6
//! (RFC 7597 §8, RFC 7596 §5.2), whose source is checked. Routes of border relay addresses lead to
//! the former, which leaves all that it does not know to `ip6-local`; that puts fragments together,
//! and what comes of them goes to the latter.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated;
use quiver_forwarding::ip::Ip6;
use quiver_forwarding::nodes;
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::border::{Border, FROM_CUSTOMERS, FROM_CUSTOMERS_LOCAL, clamp, describe};
use crate::domain::Mode;
use crate::errors;
use crate::reasons::MapDrop;
use crate::tables::{Direction, ENCAPSULATES, Shared};
use crate::upper::{self, End, Port};

/// `ip6-map`, or with `LOCAL` `ip6-map-local`.
struct Decapsulate<const LOCAL: bool> {
    border: Border,
    local: NodeId,
}

impl<const LOCAL: bool> Decapsulate<LOCAL> {
    /// Leave the packet of IPv4 that begins at `at`.
    #[inline(always)]
    fn open(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        (source6, border6): (u128, u128),
        at: usize,
    ) -> Result<NodeId, MapDrop> {
        let (border, pass) = (&self.border, context.pass());
        let inner = packet.bytes().get(at..).ok_or(MapDrop::Truncated)?;
        let header = Ip4Header::overlay(inner).ok_or(MapDrop::Truncated)?;
        if header.version() != 4 {
            return Err(MapDrop::InnerWrong);
        }
        let (source4, length) = (header.source_bits(), usize::from(header.total_length()));
        let domain = border
            .domain_of4(source4, border.to_customers, pass)
            .filter(|domain| domain.mode == Mode::Encapsulate(border6));
        let Some(domain) = domain else {
            return border.refuse6(context, packet, MapDrop::NoDomain);
        };
        let port = match domain.is_shared() {
            true => upper::port(inner, End::Source)?,
            false => Port::Absent,
        };
        if let Err(why) = border.check_source(domain, source6, (source4, port), pass) {
            return border.refuse6(context, packet, why);
        }
        if decapsulated::ip4_fast::<Ip6>(packet, at).is_none() {
            decapsulated::ip4::<Ip6>(packet, at)?;
        }
        if !packet.turn() {
            return Err(MapDrop::Loop);
        }
        packet.clear(PacketFlags::L2_GROUP.union(PacketFlags::NOTED));
        packet.set_carried();
        clamp(packet, border.shared.params(pass).mss_bytes);
        border.count(Direction::Decapsulated, length);
        Ok(border.route4(packet))
    }
}

impl<const LOCAL: bool> Stage for Decapsulate<LOCAL> {
    const NAME: &'static str = if LOCAL { FROM_CUSTOMERS_LOCAL } else { FROM_CUSTOMERS };
    const LOOKS_BEHIND: bool = true;
    type Reason = MapDrop;
    /// The modes that the interface takes packets of.
    type InterfaceState = u8;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u8 {
        self.border.shared.modes(rx)
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        modes: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let (header, behind) = Ip6Header::split(packet.bytes()).ok_or(MapDrop::Truncated)?;
        let ends = (header.source_bits(), header.destination_bits());
        let mut at = Ip6Header::LEN;
        if LOCAL {
            if let Some(other) = self.border.other_end(ends.1) {
                packet.hand_over_nothing();
                return Ok(other);
            }
            let upper = upper_layer(header.next_header(), behind);
            at += upper.map_err(|_| MapDrop::Truncated)?.offset;
        } else if header.next_header() != IpProtocol::IPV4 {
            let relayed = match header.next_header() {
                IpProtocol::ICMP6 => errors::relay(&self.border, context, packet),
                _ => None,
            };
            return relayed.unwrap_or_else(|| {
                packet.hand_over_nothing();
                Ok(self.local)
            });
        }
        if modes & ENCAPSULATES == 0 {
            return Err(MapDrop::InterfaceOff);
        }
        self.open(context, packet, ends, at)
    }
}

fn spec<const LOCAL: bool>(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = match LOCAL {
        false => "Takes packets of IPv4 out of those that customers of MAP-E and lw4o6 send",
        true => "The same for those that came in fragments, or with extension headers",
    };
    NodeSpec::stage(help, move |wiring| Decapsulate::<LOCAL> {
        border: Border::new(&shared, wiring),
        local: wiring.node(nodes::ip6::LOCAL),
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}

/// The declarations of both.
pub(crate) fn specs(shared: &Arc<Shared>) -> [NodeSpec; 2] {
    [spec::<false>(shared), spec::<true>(shared)]
}
