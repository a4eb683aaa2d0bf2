//! `ip6-map` and `ip6-map-local`: the packet of IPv4 that a customer sends in a packet of IPv6
//! (RFC 7597 §8, RFC 7596 §5.2), whose source is checked. Routes of border relay addresses lead to
//! the former, which leaves all that it does not know to `ip6-local`; that puts fragments together,
//! and what comes of them goes to the latter.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::border::{Border, FROM_CUSTOMERS, FROM_CUSTOMERS_LOCAL, TABLE, clamp, describe};
use crate::domain::Domain;
use crate::errors;
use crate::reasons::MapDrop;
use crate::tables::{Direction, ENCAPSULATES, Shared};
use crate::upper::{self, End, Port};

/// What both nodes hold.
struct Decapsulate {
    border: Border,
    local: NodeId,
}

impl Decapsulate {
    fn new(shared: &Arc<Shared>, wiring: &Wiring<'_>) -> Decapsulate {
        Decapsulate { border: Border::new(shared, wiring), local: wiring.node(nodes::ip6::LOCAL) }
    }

    /// Leave the packet of IPv4 that begins at `at`, whose source is one of `domain`.
    #[inline(always)]
    fn open(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        domain: Option<&Domain>,
        at: usize,
    ) -> Result<NodeId, MapDrop> {
        let (border, pass) = (&self.border, context.pass());
        let (outer, _) = Ip6Header::split(packet.bytes()).ok_or(MapDrop::Truncated)?;
        let (source6, border6) = (outer.source_bits(), outer.destination_bits());
        let inner = packet.bytes().get(at..).ok_or(MapDrop::Truncated)?;
        let header = Ip4Header::overlay(inner).ok_or(MapDrop::Truncated)?;
        if header.version() != 4 {
            return Err(MapDrop::InnerWrong);
        }
        let (source4, length) = (header.source_bits(), usize::from(header.total_length()));
        let Some(domain) = domain.filter(|domain| domain.border6() == Some(border6)) else {
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
        border.count(Direction::Decapsulated, 1, length);
        Ok(border.route4(packet))
    }

    /// What is no packet of IPv4 in one of IPv6.
    #[cold]
    #[inline(never)]
    fn other(
        &self,
        context: StageContext<'_>,
        next: IpProtocol,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let relayed = match next {
            IpProtocol::ICMP6 => errors::relay(&self.border, context, packet),
            _ => None,
        };
        relayed.unwrap_or_else(|| {
            packet.hand_over_nothing();
            Ok(self.local)
        })
    }
}

/// `ip6-map`.
struct FromCustomers(Decapsulate);

impl LookUp for FromCustomers {
    const NAME: &'static str = FROM_CUSTOMERS;
    const LOOKS_BEHIND: bool = true;
    type Reason = MapDrop;
    /// The IPv4 source of the packet inside.
    type Key = u32;
    /// Its route, which leads to its domain.
    type Found = GroupId;
    /// The modes that the interface takes packets of.
    type InterfaceState = u8;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u8 {
        self.0.border.shared.modes(rx)
    }

    #[inline(always)]
    fn key(&self, _: u8, packet: &mut Packet) -> u32 {
        let inner = packet.bytes().get(Ip6Header::LEN..);
        inner.and_then(Ip4Header::overlay).map_or(0, Ip4Header::source_bits)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: u8, keys: &[u32], found: &mut [GroupId]) {
        let tables = &self.0.border.tables;
        Ip4::table(tables, TABLE).lookup_slice(variant, keys, found);
        tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn find_uniform(&self, variant: Variant, _: u8, keys: &[u32], found: &mut [GroupId]) {
        let tables = &self.0.border.tables;
        Ip4::table(tables, TABLE).lookup_uniform(variant, keys, found);
        tables.groups.prefetch_found(found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        modes: u8,
        _: u32,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let (node, border) = (&self.0, &self.0.border);
        let header = Ip6Header::overlay(packet.bytes()).ok_or(MapDrop::Truncated)?;
        let next = header.next_header();
        if next != IpProtocol::IPV4 {
            return node.other(context, next, packet);
        }
        if modes & ENCAPSULATES == 0 {
            return Err(MapDrop::InterfaceOff);
        }
        let domain = border.domain_of_route(found, border.to_customers, context.pass());
        node.open(context, packet, domain, Ip6Header::LEN)
    }
}

/// `ip6-map-local`.
struct Reassembled(Decapsulate);

impl Stage for Reassembled {
    const NAME: &'static str = FROM_CUSTOMERS_LOCAL;
    const LOOKS_BEHIND: bool = true;
    type Reason = MapDrop;
    /// The modes that the interface takes packets of.
    type InterfaceState = u8;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u8 {
        self.0.border.shared.modes(rx)
    }

    fn decide(
        &self,
        context: StageContext<'_>,
        modes: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let (node, border) = (&self.0, &self.0.border);
        let (header, behind) = Ip6Header::split(packet.bytes()).ok_or(MapDrop::Truncated)?;
        if let Some(other) = border.other_end(header.destination_bits()) {
            packet.hand_over_nothing();
            return Ok(other);
        }
        let upper = upper_layer(header.next_header(), behind).map_err(|_| MapDrop::Truncated)?;
        let at = Ip6Header::LEN + upper.offset;
        if modes & ENCAPSULATES == 0 {
            return Err(MapDrop::InterfaceOff);
        }
        let inner = packet.bytes().get(at..).and_then(Ip4Header::overlay);
        let source = inner.ok_or(MapDrop::Truncated)?.source_bits();
        let domain = border.domain_of4(source, border.to_customers, context.pass());
        node.open(context, packet, domain, at)
    }
}

/// The declarations of both.
pub(crate) fn specs(shared: &Arc<Shared>) -> [NodeSpec; 2] {
    let (of_customers, of_local) = (shared.clone(), shared.clone());
    let help = "Takes packets of IPv4 out of those that customers of MAP-E and lw4o6 send";
    let from_customers = NodeSpec::look_up(help, move |wiring| {
        FromCustomers(Decapsulate::new(&of_customers, wiring))
    });
    let help = "The same for those that came in fragments, or with extension headers";
    let reassembled =
        NodeSpec::stage(help, move |wiring| Reassembled(Decapsulate::new(&of_local, wiring)));
    [from_customers, reassembled].map(|spec| {
        spec.describe(|record, names| {
            format!("{}, to {}", describe(record.bytes()), names.node(record.next))
        })
    })
}
