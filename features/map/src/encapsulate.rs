//! `ip4-map`: a packet of IPv4 goes to the customer who has its destination and port, in a packet
//! of IPv6 (RFC 7597 §8, RFC 7596 §5.2). Routes of domains lead here.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::{InnerPacket, OuterHeader};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::handover::NextHopIndex;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::requests::FragmentRequest;
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::border::{
    Border, CUT_INNER, TABLE, TO_CUSTOMERS, clamp, describe, destination_port, is_own,
};
use crate::domain::Mode;
use crate::reasons::MapDrop;
use crate::tables::{Direction, ENCAPSULATES, Params, Shared};

/// The hop limit of packets that this router makes (RFC 2473 §6.3).
const HOP_LIMIT: u8 = 64;
/// The field of a traffic class that says congestion (RFC 6040 §4.1).
const ECN: u8 = 3;

struct Encapsulate {
    border: Border,
    cut_inner: NodeId,
    cut_outer: NodeId,
}

/// What is read of the packet.
#[derive(Clone, Copy)]
struct Inner {
    length: usize,
    destination: u32,
    traffic_class: u8,
    may_be_cut: bool,
}

impl Inner {
    fn of(packet: &Packet, params: &Params) -> Result<(Inner, u8), MapDrop> {
        let header = Ip4Header::overlay(packet.bytes()).ok_or(MapDrop::Truncated)?;
        let inner = Inner {
            length: usize::from(header.total_length()),
            destination: header.destination_bits(),
            traffic_class: header.traffic_class,
            may_be_cut: !header.dont_fragment() || params.ignores_df,
        };
        if inner.length < Ip4Header::LEN || inner.length > packet.length() {
            return Err(MapDrop::Truncated);
        }
        Ok((inner, header.ttl()))
    }
}

/// The header in front of a packet of `length` bytes.
#[inline(always)]
fn header(
    (source, destination): (u128, u128),
    inner: Inner,
    params: &Params,
) -> [u8; Ip6Header::LEN] {
    let class = match params.traffic_class {
        None => inner.traffic_class,
        Some(class) => class & !ECN | inner.traffic_class & ECN,
    };
    let first = u64::from(6u8) << 60
        | u64::from(class) << 52
        | (inner.length as u64 & 0xffff) << 16
        | u64::from(IpProtocol::IPV4.0) << 8
        | u64::from(HOP_LIMIT);
    let mut bytes = [0; Ip6Header::LEN];
    bytes[..8].copy_from_slice(&first.to_be_bytes());
    bytes[8..24].copy_from_slice(&source.to_be_bytes());
    bytes[24..].copy_from_slice(&destination.to_be_bytes());
    bytes
}

impl Encapsulate {
    /// Put the header in front, and say where the packet goes.
    #[inline(always)]
    fn send(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        ends: (u128, u128),
        (inner, params, mtu_bytes): (Inner, &Params, u16),
    ) -> Result<NodeId, MapDrop> {
        packet.trim(inner.length);
        if !packet.push(Ip6Header::LEN) {
            return Err(MapDrop::NoHeadroom);
        }
        let place = packet.bytes_mut().first_chunk_mut().ok_or(MapDrop::NoHeadroom)?;
        *place = header(ends, inner, params);
        packet.l2_bytes = 0;
        packet.clear(PacketFlags::NOTED);
        // An error about it comes from the interface by which it leaves.
        packet.set_carried();
        self.border.count(Direction::Encapsulated, inner.length);
        let total = inner.length + Ip6Header::LEN;
        if total > IP6_MTU_MIN && inner.may_be_cut {
            return Ok(self.long(context, packet, total, (params, mtu_bytes)));
        }
        Ok(self.border.route6(packet))
    }

    /// A packet that a link may be too narrow for, and that may be cut: as the router's own, it is
    /// cut for the link by which it leaves.
    #[cold]
    fn long(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        total: usize,
        (params, mtu_bytes): (&Params, u16),
    ) -> NodeId {
        if !is_own(packet) {
            packet.set(PacketFlags::LOCALLY_ORIGINATED);
            // No hop is counted where the router's own packets leave.
            if let Some(header) = Ip6Header::overlay_mut(packet.bytes_mut()) {
                header.decrement_hop_limit();
            }
        }
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
        let (inner, ttl) = Inner::of(packet, params)?;
        if !own & (ttl <= 1) {
            return Ok(border.time_exceeded4(context, packet));
        }
        let port = destination_port(packet, domain)?;
        let customer = match domain.customer(inner.destination, port) {
            Ok(customer) => customer,
            Err(nobody) => return border.nobody4(context, packet, nobody),
        };
        let total = inner.length + Ip6Header::LEN;
        if (total > usize::from(domain.mtu_bytes)) & !inner.may_be_cut {
            context.count(MapDrop::TooBig, 1);
            let detail = domain.mtu_bytes.saturating_sub(Ip6Header::LEN as u16);
            return Ok(border.answer4(packet, IcmpErrorRequest { kind: 3, code: 4, detail }));
        }
        if !own {
            Ip4::decrement_hop_limit(packet.bytes_mut());
        }
        clamp(packet, params.mss_bytes);
        self.send(context, packet, (source, customer), (inner, params, domain.mtu_bytes))
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
