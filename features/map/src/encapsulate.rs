//! `ip4-map`: a packet of IPv4 goes to the customer who has its destination and port, in a packet
//! of IPv6 (RFC 7597 §8, RFC 7596 §5.2). Routes of domains lead here.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::softwire::{Ip4Inside, cut_for_link};
use quiver_encap::{InnerPacket, OuterHeader};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::handover::NextHopIndex;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::requests::FragmentRequest;
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_wire::Header;
use quiver_wire::Ip6Header;

use crate::border::{
    Border, CUT_INNER, TABLE, TO_CUSTOMERS, clamp, describe, destination_port, is_own,
};
use crate::domain::Mode;
use crate::reasons::MapDrop;
use crate::tables::{Direction, ENCAPSULATES, Params, Shared};

struct Encapsulate {
    border: Border,
    cut_inner: NodeId,
    cut_outer: NodeId,
}

impl Encapsulate {
    /// Put the header in front, and say where the packet goes.
    #[inline(always)]
    fn send(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        ends: (u128, u128),
        (inside, params, mtu_bytes): (Ip4Inside, &Params, u16),
    ) -> Result<NodeId, MapDrop> {
        if !inside.encapsulate(packet, ends, params.traffic_class) {
            return Err(MapDrop::NoHeadroom);
        }
        self.border.count(Direction::Encapsulated, inside.length);
        let total = inside.outer_length();
        if total > IP6_MTU_MIN && inside.may_be_cut {
            return Ok(self.long(context, packet, total, (params, mtu_bytes)));
        }
        Ok(self.border.route6(packet))
    }

    /// A packet that a link may be too narrow for, and that may be cut.
    #[cold]
    fn long(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        total: usize,
        (params, mtu_bytes): (&Params, u16),
    ) -> NodeId {
        cut_for_link(packet);
        if total <= usize::from(mtu_bytes) {
            return self.border.route6(packet);
        }
        context.count(MapDrop::Cut, 1);
        packet.hand_over(FragmentRequest { mtu_bytes, table: TABLE });
        if params.cuts_inner { self.cut_inner } else { self.cut_outer }
    }
}

impl Stage for Encapsulate {
    const NAME: &'static str = TO_CUSTOMERS;
    const LOOKS_BEHIND: bool = true;
    type Reason = MapDrop;
    /// The modes that the interface takes packets of.
    type InterfaceState = u8;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u8 {
        self.border.shared.modes(rx)
    }

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.border.ask_for_domain(packet);
    }

    #[inline(always)]
    fn soon(&self, context: StageContext<'_>, packet: &Packet) {
        self.border.ask_for_customer(context, packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        modes: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let (border, pass) = (&self.border, context.pass());
        let NextHopIndex(index) = packet.handed_over();
        let domain = border.shared.domain(index, pass).ok_or(MapDrop::NoDomain)?;
        let Mode::Encapsulate(source) = domain.mode else { return Err(MapDrop::NoDomain) };
        let own = is_own(packet);
        if !own & (modes & ENCAPSULATES == 0) {
            return Err(MapDrop::InterfaceOff);
        }
        let params = border.shared.params(pass);
        let mut inside = Ip4Inside::of(packet).ok_or(MapDrop::Truncated)?;
        inside.may_be_cut |= params.ignores_df;
        if !own & (inside.ttl <= 1) {
            return Ok(border.time_exceeded4(context, packet));
        }
        let port = destination_port(packet, domain)?;
        let customer = match domain.customer(inside.destination, port) {
            Ok(customer) => customer,
            Err(nobody) => return border.nobody4(context, packet, nobody),
        };
        if (inside.outer_length() > usize::from(domain.mtu_bytes)) & !inside.may_be_cut {
            context.count(MapDrop::TooBig, 1);
            let detail = domain.mtu_bytes.saturating_sub(Ip6Header::LEN as u16);
            return Ok(border.answer4(packet, IcmpErrorRequest { kind: 3, code: 4, detail }));
        }
        if !own {
            Ip4::decrement_hop_limit(packet.bytes_mut());
        }
        clamp(packet, params.mss_bytes);
        self.send(context, packet, (source, customer), (inside, params, domain.mtu_bytes))
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Puts a header of IPv6 in front of packets to customers of MAP-E and lw4o6";
    NodeSpec::stage(help, move |wiring| Encapsulate {
        border: Border::new(&shared, wiring),
        cut_inner: wiring.node(CUT_INNER),
        cut_outer: wiring.node(<Ip6 as OuterHeader>::FRAGMENT.unwrap_or(CUT_INNER)),
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
