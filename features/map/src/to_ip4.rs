//! `ip6-map-t`: packets of IPv6 of customers become packets of IPv4 (RFC 7599, RFC 7915 §5). Routes
//! of default mapping rules lead here. The domains of a block's packets are looked up together.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_tables::GroupId;
use quiver_translation::versions::ends::{Ends4, Ends6, delta_to4};
use quiver_translation::versions::error::{self, read_error6};
use quiver_translation::versions::fast::{Embedding, Fast6};
use quiver_translation::versions::read::{Kind, Read6, read6};
use quiver_translation::versions::{Refused, to4};
use quiver_wire::{Header, Ip6Header};

use crate::border::{Border, TABLE, TO_IP4, clamp, describe, is_own};
use crate::domain::Domain;
use crate::reasons::MapDrop;
use crate::tables::{Direction, Shared, TRANSLATES};
use crate::upper::{Port, port_of};

struct ToIp4 {
    border: Border,
    /// Of the next packet of IPv4 that routers may cut.
    identification: Cell<u16>,
}

impl ToIp4 {
    /// The identification of one more packet.
    #[inline(always)]
    fn identification(&self) -> u16 {
        let identification = self.identification.get().wrapping_add(1);
        self.identification.set(identification);
        identification
    }

    /// The domain that was found for a customer, and its default mapping rule.
    #[inline(always)]
    fn domain<'p>(
        &self,
        context: StageContext<'p>,
        found: GroupId,
    ) -> Option<(&'p Domain, &'p Embedding)> {
        let domain = self.border.shared.domain_found(found, context.pass())?;
        Some((domain, domain.rule()?))
    }

    /// A packet with nothing unusual: its bytes of IPv4, once it is one. `None`, and it is as it
    /// was, for the general path.
    #[inline(always)]
    fn fast(
        &self,
        context: StageContext<'_>,
        found: GroupId,
        packet: &mut Packet,
    ) -> Option<usize> {
        let read = Fast6::of(packet)?;
        let (domain, rule) = self.domain(context, found)?;
        let (destination, delta) = rule.extract(read.destination())?;
        let params = self.border.shared.params(context.pass());
        let (source, port) = (domain.address4(read.source()), read.source_port());
        let is_good = !params.checks_source
            || domain.customer(source, Port::Known(port)) == Ok(read.source());
        let is_clamped = params.mss_bytes != 0 && read.opens(packet);
        if !is_good || is_clamped || !packet.may_turn() {
            return None;
        }
        let delta = delta.sub128(read.source()).add32(source);
        let identification = self.identification.get().wrapping_add(1);
        if !read.to4(packet, (source, destination), delta, identification) {
            return None;
        }
        self.identification.set(identification);
        packet.clear(PacketFlags::L2_GROUP);
        packet.turn().then_some(read.length4())
    }

    #[inline(never)]
    fn general(
        &self,
        context: StageContext<'_>,
        modes: u8,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        let border = &self.border;
        let own = is_own(packet);
        if !own & (modes & TRANSLATES == 0) {
            return Err(MapDrop::InterfaceOff);
        }
        let read = match read6(packet) {
            Err(Refused::SourceRoute(request)) => {
                context.count(MapDrop::SourceRoute, 1);
                return Ok(border.answer6(packet, request));
            }
            read => read?,
        };
        if !own & (read.hop_limit <= 1) {
            return Ok(border.time_exceeded6(context, packet));
        }
        if read.kind == Kind::Error {
            return self.error(context, packet);
        }
        self.translate(context, found, packet, &read)
    }

    fn translate(
        &self,
        context: StageContext<'_>,
        found: GroupId,
        packet: &mut Packet,
        read: &Read6,
    ) -> Result<NodeId, MapDrop> {
        let (border, pass) = (&self.border, context.pass());
        let domain = self.domain(context, found);
        let domain = domain.filter(|(_, rule)| rule.prefix().contains(read.destination));
        let Some((domain, rule)) = domain else {
            return border.refuse6(context, packet, MapDrop::NoDomain);
        };
        let source = domain.address4(read.source);
        let port = port_of(read.kind, read.protocol, read.ports.source);
        if let Err(why) = border.check_source(domain, read.source, (source, port), pass) {
            return border.refuse6(context, packet, why);
        }
        let destination = rule.prefix().extract(read.destination).ok_or(MapDrop::NoDomain)?;
        let from = Ends6 { source: read.source, destination: read.destination, ports: read.ports };
        let ends = Ends4 { source, destination, ports: read.ports };
        let delta = delta_to4(read.protocol, &from, &ends);
        to4::packet(packet, read, &ends, delta, self.identification())?;
        if !packet.turn() {
            return Err(MapDrop::Loop);
        }
        packet.clear(PacketFlags::L2_GROUP);
        clamp(packet, border.shared.params(pass).mss_bytes);
        border.count(Direction::ToIp4, 1, packet.length());
        Ok(border.route4(packet))
    }

    fn error(&self, context: StageContext<'_>, packet: &mut Packet) -> Result<NodeId, MapDrop> {
        let read = read_error6(packet)?;
        let (inner, pass) = (&read.inner, context.pass());
        let found = self.border.shared.find6(inner.destination);
        let domain = self.domain(context, found);
        let (domain, rule) = domain.ok_or(MapDrop::UnmappedInner)?;
        let rule = rule.prefix();
        let source = rule.extract(inner.source).ok_or(MapDrop::UnmappedInner)?;
        let address = domain.address4(inner.destination);
        let port = port_of(inner.kind, inner.protocol, inner.ports.destination);
        self.border.check_source(domain, inner.destination, (address, port), pass)?;
        let ends = Ends4 { source, destination: address, ports: inner.ports };
        let destination = rule.extract(read.outer.destination).ok_or(MapDrop::UnmappedInner)?;
        let from = match read.outer.source == inner.destination {
            true => Some(address),
            false => self.router4(context, destination),
        };
        let from = from.ok_or(MapDrop::NoOwnAddress)?;
        error::to4(packet, &read, (from, destination), &ends)?;
        context.count(MapDrop::ErrorTranslated, 1);
        Ok(self.border.route4(packet))
    }

    /// The address for errors of routers that have none of IPv4 (RFC 6791).
    fn router4(&self, context: StageContext<'_>, to: u32) -> Option<u32> {
        let pass = context.pass();
        match self.border.shared.params(pass).icmp_source {
            0 => {
                let interfaces = &self.border.tables.interfaces;
                let own = interfaces.addresses(interfaces.icmp_source(Family::Ip4, TABLE), pass)?;
                own.source4(Ipv4Addr::from(to)).map(u32::from)
            }
            given => Some(given),
        }
    }
}

impl LookUp for ToIp4 {
    const NAME: &'static str = TO_IP4;
    const LOOKS_BEHIND: bool = true;
    type Reason = MapDrop;
    /// The customer.
    type Key = u128;
    /// Its domain, as [`Shared::domain_found`] reads it.
    type Found = GroupId;
    /// The modes that the interface takes packets of.
    type InterfaceState = u8;

    fn interface_state(&self, _: &Context<'_>, rx: InterfaceId) -> u8 {
        self.border.shared.modes(rx)
    }

    #[inline(always)]
    fn key(&self, _: u8, packet: &mut Packet) -> u128 {
        Ip6Header::overlay(packet.bytes()).map_or(0, Ip6Header::source_bits)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: u8, keys: &[u128], found: &mut [GroupId]) {
        self.border.shared.find_all6(variant, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        modes: u8,
        _: u128,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, MapDrop> {
        if modes & TRANSLATES != 0
            && let Some(bytes) = self.fast(context, found, packet)
        {
            self.border.count(Direction::ToIp4, 1, bytes);
            return Ok(self.border.route4(packet));
        }
        self.general(context, modes, found, packet)
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::look_up("Makes packets of customers of MAP-T packets of IPv4", move |wiring| {
        // Workers begin at different places of the same sequence.
        let first = wiring.worker.0.wrapping_mul(0x4e35);
        ToIp4 { border: Border::new(&shared, wiring), identification: Cell::new(first) }
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
