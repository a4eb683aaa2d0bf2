//! `ip4-map-t` and `ip6-map-t`: packets of IPv4 and IPv6 as each other (RFC 7599, RFC 7915). Routes
//! of domains that translate lead to the former, those of their default mapping rules to the
//! latter.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::NextHopIndex;
use quiver_forwarding::requests::FragmentRequest;
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::ends::{Ends4, Ends6, delta_to4, delta_to6};
use quiver_translation::versions::error::{self, read_error4, read_error6};
use quiver_translation::versions::read::{Kind, Read4, Read6, read4, read6};
use quiver_translation::versions::to6::Done;
use quiver_translation::versions::{Refused, to4, to6};
use quiver_wire::IpProtocol;

use crate::border::{Border, CUT_TRANSLATED, TABLE, TO_IP4, TO_IP6, clamp, describe, is_own};
use crate::domain::{Domain, Mode};
use crate::reasons::MapDrop;
use crate::tables::{Direction, Shared, TRANSLATES};
use crate::upper::Port;

/// The port of one end of a packet that was read.
#[inline(always)]
fn port_of(kind: Kind, protocol: IpProtocol, port: u16) -> Port {
    match kind {
        Kind::Query | Kind::Answer => Port::Known(port),
        Kind::LostFragment => Port::InFirstFragment,
        Kind::Data { .. } if matches!(protocol, IpProtocol::TCP | IpProtocol::UDP) => {
            Port::Known(port)
        }
        Kind::Data { .. } | Kind::Error | Kind::OtherIcmp => Port::Absent,
    }
}

#[inline(always)]
fn source_port6(read: &Read6) -> Port {
    port_of(read.kind, read.protocol, read.ports.source)
}

#[inline(always)]
fn destination_port4(read: &Read4) -> Port {
    port_of(read.kind, read.protocol, read.ports.destination)
}

#[inline(always)]
fn ends4(read: &Read4) -> Ends4 {
    Ends4 { source: read.source, destination: read.destination, ports: read.ports }
}

#[inline(always)]
fn ends6(read: &Read6) -> Ends6 {
    Ends6 { source: read.source, destination: read.destination, ports: read.ports }
}

/// The default mapping rule of a domain (RFC 7599 §5).
#[inline(always)]
fn default_rule(domain: &Domain) -> Option<Prefix> {
    match domain.mode {
        Mode::Translate(prefix) => Some(prefix),
        Mode::Encapsulate(_) => None,
    }
}

/// `ip4-map-t`.
struct ToIp6 {
    border: Border,
    cut: NodeId,
}

impl ToIp6 {
    fn error(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        (domain, rule): (&Domain, Prefix),
    ) -> Result<NodeId, MapDrop> {
        let read = read_error4(packet)?;
        let inner = &read.inner;
        if read.outer.destination != inner.source || !domain.has4(inner.source) {
            return Err(MapDrop::UnmappedInner);
        }
        let port = port_of(inner.kind, inner.protocol, inner.ports.source);
        let customer = domain.customer(inner.source, port)?;
        let ends = Ends6 {
            source: customer,
            destination: rule.embed(inner.destination),
            ports: inner.ports,
        };
        error::to6(packet, &read, (rule.embed(read.outer.source), customer), &ends)?;
        context.count(MapDrop::ErrorTranslated, 1);
        Ok(self.border.route6(packet))
    }
}

impl Stage for ToIp6 {
    const NAME: &'static str = TO_IP6;
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
        let (border, pass) = (&self.border, context.pass());
        let NextHopIndex(index) = packet.handed_over();
        let domain = border.shared.domain(index, pass).ok_or(MapDrop::NoDomain)?;
        let rule = default_rule(domain).ok_or(MapDrop::NoDomain)?;
        let own = is_own(packet);
        if !own & (modes & TRANSLATES == 0) {
            return Err(MapDrop::InterfaceOff);
        }
        let read = match read4(packet) {
            Err(Refused::SourceRoute(request)) => {
                context.count(MapDrop::SourceRoute, 1);
                return Ok(border.answer4(packet, request));
            }
            read => read?,
        };
        // The error must quote the packet as its sender knows it.
        if !own & (read.ttl <= 1) {
            return Ok(border.time_exceeded4(context, packet));
        }
        if read.kind == Kind::Error {
            return self.error(context, packet, (domain, rule));
        }
        let port = destination_port4(&read);
        let destination = match domain.customer(read.destination, port) {
            Ok(customer) => customer,
            Err(nobody) => return border.nobody4(context, packet, nobody),
        };
        clamp(packet, border.shared.params(pass).mss_bytes);
        let ends = Ends6 { source: rule.embed(read.source), destination, ports: read.ports };
        let delta = delta_to6(read.protocol, &ends4(&read), &ends);
        let mtu_bytes = domain.mtu_bytes;
        let done = to6::packet(packet, &read, &ends, delta, mtu_bytes)?;
        border.count(Direction::ToIp6, read.length());
        if done == Done::ToCut {
            context.count(MapDrop::Cut, 1);
            packet.hand_over(FragmentRequest { mtu_bytes, table: TABLE });
            return Ok(self.cut);
        }
        Ok(border.route6(packet))
    }
}

/// `ip6-map-t`.
struct ToIp4 {
    border: Border,
    /// Of the next packet of IPv4 that routers may cut.
    identification: Cell<u16>,
}

impl ToIp4 {
    /// The domain of a customer, and its default mapping rule, which stands in front of `remote`.
    #[inline(always)]
    fn domain<'p>(
        &self,
        context: StageContext<'p>,
        customer: u128,
        remote: u128,
    ) -> Option<(&'p Domain, Prefix)> {
        let domain = self.border.shared.domain_of6(customer, context.pass())?;
        let rule = default_rule(domain).filter(|rule| rule.contains(remote))?;
        Some((domain, rule))
    }

    fn error(&self, context: StageContext<'_>, packet: &mut Packet) -> Result<NodeId, MapDrop> {
        let read = read_error6(packet)?;
        let (inner, pass) = (&read.inner, context.pass());
        let (domain, rule) =
            self.domain(context, inner.destination, inner.source).ok_or(MapDrop::UnmappedInner)?;
        let address = domain.address4(inner.destination);
        let port = port_of(inner.kind, inner.protocol, inner.ports.destination);
        self.border.check_source(domain, inner.destination, (address, port), pass)?;
        let source = rule.extract(inner.source).ok_or(MapDrop::UnmappedInner)?;
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

impl Stage for ToIp4 {
    const NAME: &'static str = TO_IP4;
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
        let (border, pass) = (&self.border, context.pass());
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
        let Some((domain, rule)) = self.domain(context, read.source, read.destination) else {
            return border.refuse6(context, packet, MapDrop::NoDomain);
        };
        let (source, port) = (domain.address4(read.source), source_port6(&read));
        if let Err(why) = border.check_source(domain, read.source, (source, port), pass) {
            return border.refuse6(context, packet, why);
        }
        let destination = rule.extract(read.destination).ok_or(MapDrop::NoDomain)?;
        let ends = Ends4 { source, destination, ports: read.ports };
        let delta = delta_to4(read.protocol, &ends6(&read), &ends);
        let identification = self.identification.get().wrapping_add(1);
        self.identification.set(identification);
        to4::packet(packet, &read, &ends, delta, identification)?;
        if !packet.turn() {
            return Err(MapDrop::Loop);
        }
        packet.clear(PacketFlags::L2_GROUP);
        clamp(packet, border.shared.params(pass).mss_bytes);
        border.count(Direction::ToIp4, packet.length());
        Ok(border.route4(packet))
    }
}

/// The declarations of both.
pub(crate) fn specs(shared: &Arc<Shared>) -> [NodeSpec; 2] {
    let (of6, of4) = (shared.clone(), shared.clone());
    let to6 =
        NodeSpec::stage("Makes packets to customers of MAP-T packets of IPv6", move |wiring| {
            ToIp6 { border: Border::new(&of6, wiring), cut: wiring.node(CUT_TRANSLATED) }
        });
    let to4 =
        NodeSpec::stage("Makes packets of customers of MAP-T packets of IPv4", move |wiring| {
            // Workers begin at different places of the same sequence.
            let first = wiring.worker.0.wrapping_mul(0x4e35);
            ToIp4 { border: Border::new(&of4, wiring), identification: Cell::new(first) }
        });
    [to6, to4].map(|spec| {
        spec.describe(|record, names| {
            format!("{}, to {}", describe(record.bytes()), names.node(record.next))
        })
    })
}
