//! `ip4-map`: a packet of IPv4 goes to the customer who has its destination and port, in a packet
//! of IPv6 (RFC 7597 §8, RFC 7596 §5.2). Routes of domains lead here.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_encap::softwire::{Ip4Inside, cut_for_link};
use quiver_encap::{InnerPacket, OuterHeader};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::requests::FragmentRequest;
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_translation::versions::fast::Fast4;
use quiver_wire::{Header, Ip6Header};

use crate::border::{
    Border, CUT_INNER, TABLE, TO_CUSTOMERS, clamp, describe, destination_port, is_own,
};
use crate::reasons::MapDrop;
use crate::tables::{Direction, ENCAPSULATES, Shared};
use crate::to_customers::{Kernel, To, ToCustomers};
use crate::upper::Port;

struct Encapsulate {
    border: Border,
    cut_inner: NodeId,
    cut_outer: NodeId,
}

impl Encapsulate {
    /// Put the header in front, and say where the packet goes.
    fn send(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        to: To<'_>,
        (inside, ends): (Ip4Inside, (u128, u128)),
    ) -> Result<NodeId, MapDrop> {
        if !inside.encapsulate(packet, ends, to.params.traffic_class) {
            return Err(MapDrop::NoHeadroom);
        }
        self.border.count(Direction::Encapsulated, 1, inside.length);
        let total = inside.outer_length();
        if total > IP6_MTU_MIN && inside.may_be_cut {
            return Ok(self.long(context, packet, total, to));
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
        to: To<'_>,
    ) -> NodeId {
        cut_for_link(packet);
        let mtu_bytes = to.domain.mtu_bytes;
        if total <= usize::from(mtu_bytes) {
            return self.border.route6(packet);
        }
        context.count(MapDrop::Cut, 1);
        packet.hand_over(FragmentRequest { mtu_bytes, table: TABLE });
        if to.params.cuts_inner { self.cut_inner } else { self.cut_outer }
    }
}

impl ToCustomers for Encapsulate {
    const NAME: &'static str = TO_CUSTOMERS;
    const MODE: u8 = ENCAPSULATES;
    const DIRECTION: Direction = Direction::Encapsulated;

    #[inline(always)]
    fn border(&self) -> &Border {
        &self.border
    }

    #[inline(always)]
    fn fast(&self, to: To<'_>, packet: &mut Packet) -> Option<usize> {
        let read = Fast4::of(packet)?;
        let border6 = to.domain.border6()?;
        let inside = Ip4Inside {
            length: read.length(),
            destination: read.destination(),
            ttl: read.ttl(),
            traffic_class: read.traffic_class(),
            may_be_cut: !read.dont_fragment() | to.params.ignores_df,
        };
        // Longer packets that may be cut are those of `long`.
        let mtu_bytes = usize::from(to.domain.mtu_bytes);
        let longest = if inside.may_be_cut { mtu_bytes.min(IP6_MTU_MIN) } else { mtu_bytes };
        let fits = inside.outer_length() <= longest && packet.headroom() >= Ip6Header::LEN;
        if !fits || (to.params.mss_bytes != 0 && read.opens(packet)) {
            return None;
        }
        let port = Port::Known(read.destination_port());
        let customer = to.domain.customer(inside.destination, port).ok()?;
        Ip4::decrement_hop_limit(packet.bytes_mut());
        let is_done = inside.encapsulate(packet, (border6, customer), to.params.traffic_class);
        is_done.then_some(inside.length)
    }

    #[inline(never)]
    fn general(
        &self,
        context: StageContext<'_>,
        modes: u8,
        to: To<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let (border, own) = (&self.border, is_own(packet));
        let border6 = to.domain.border6().ok_or(MapDrop::NoDomain)?;
        if !own & (modes & ENCAPSULATES == 0) {
            return Err(MapDrop::InterfaceOff);
        }
        let mut inside = Ip4Inside::of(packet).ok_or(MapDrop::Truncated)?;
        inside.may_be_cut |= to.params.ignores_df;
        if !own & (inside.ttl <= 1) {
            return Ok(border.time_exceeded4(context, packet));
        }
        let port = destination_port(packet, to.domain)?;
        let customer = match to.domain.customer(inside.destination, port) {
            Ok(customer) => customer,
            Err(nobody) => return border.nobody4(context, packet, nobody),
        };
        let mtu_bytes = to.domain.mtu_bytes;
        if (inside.outer_length() > usize::from(mtu_bytes)) & !inside.may_be_cut {
            context.count(MapDrop::TooBig, 1);
            let detail = mtu_bytes.saturating_sub(Ip6Header::LEN as u16);
            return Ok(border.answer4(packet, IcmpErrorRequest { kind: 3, code: 4, detail }));
        }
        if !own {
            Ip4::decrement_hop_limit(packet.bytes_mut());
        }
        clamp(packet, to.params.mss_bytes);
        self.send(context, packet, to, (inside, (border6, customer)))
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Puts a header of IPv6 in front of packets to customers of MAP-E and lw4o6";
    NodeSpec::stage(help, move |wiring| {
        Kernel(Encapsulate {
            border: Border::new(&shared, wiring),
            cut_inner: wiring.node(CUT_INNER),
            cut_outer: wiring.node(<Ip6 as OuterHeader>::FRAGMENT.unwrap_or(CUT_INNER)),
        })
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
