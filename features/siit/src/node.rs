//! `siit-ip4-to-ip6` and `siit-ip6-to-ip4`: routes lead packets there whose destination is a name
//! for a host of the other version.

use std::cell::Cell;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::epoch::Published;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, IpTables};
use quiver_forwarding::requests::FragmentRequest;
use quiver_forwarding::{IcmpErrorRequest, nodes};
use quiver_translation::versions::ends::{Delta, Ends4, Ends6, delta_to4, delta_to6};
use quiver_translation::versions::error::{self, read_error4, read_error6};
use quiver_translation::versions::fast::{Fast4, Fast6};
use quiver_translation::versions::read::{Kind, Read4, Read6, read4, read6};
use quiver_translation::versions::to6::Done;
use quiver_translation::versions::{Refused, to4, to6};

use crate::map::Map;
use crate::reasons::SiitDrop;

/// The names of the nodes.
pub(crate) const TO6: &str = "siit-ip4-to-ip6";
pub(crate) const TO4: &str = "siit-ip6-to-ip4";
pub(crate) const FRAGMENT: &str = "siit-fragment";

/// Small number of the table that translated packets are routed in.
const TABLE: u32 = 0;
const TIME_EXCEEDED4: IcmpErrorRequest = IcmpErrorRequest { kind: 11, code: 0, detail: 0 };
const TIME_EXCEEDED6: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 0, detail: 0 };
/// The source may not send here: administratively prohibited, failed policy.
const SOURCE_FAILED4: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 13, detail: 0 };
const SOURCE_FAILED6: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 5, detail: 0 };
const UNREACHABLE4: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 1, detail: 0 };
const UNREACHABLE6: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 3, detail: 0 };

/// A worker's instance of either node.
struct Translate {
    map: Arc<Published<Map>>,
    tables: Arc<IpTables>,
    lookup4: NodeId,
    lookup6: NodeId,
    error4: NodeId,
    error6: NodeId,
    fragment: NodeId,
    /// Of the next packet of IPv4 that routers may cut.
    identification: Cell<u16>,
}

impl Translate {
    fn new(map: &Arc<Published<Map>>, wiring: &Wiring<'_>) -> Translate {
        Translate {
            map: map.clone(),
            tables: wiring.shared(),
            lookup4: wiring.node(nodes::ip4::LOOKUP_IN_TABLE),
            lookup6: wiring.node(nodes::ip6::LOOKUP_IN_TABLE),
            error4: wiring.node(nodes::ip4::ICMP_ERROR),
            error6: wiring.node(nodes::ip6::ICMP_ERROR),
            fragment: wiring.node(FRAGMENT),
            identification: Cell::new(wiring.worker.0.wrapping_mul(0x4e35)),
        }
    }

    fn answer4(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error4
    }

    fn answer6(&self, packet: &mut Packet, request: IcmpErrorRequest) -> NodeId {
        packet.hand_over(request);
        self.error6
    }

    /// A packet with nothing unusual, whose ends both have addresses of IPv6. `None`, and it is as
    /// it was, for the general path.
    #[inline(always)]
    fn fast_to6(&self, map: &Map, packet: &mut Packet) -> Option<NodeId> {
        let read = Fast4::of(packet).filter(|read| read.fits6(map.ip6_mtu_bytes))?;
        let ends = (map.to6(read.source())?, map.host6(read.destination())?);
        let delta = Delta::NEUTRAL.add128(ends.0).add128(ends.1);
        let delta = delta.sub32(read.source()).sub32(read.destination());
        if !read.to6(packet, ends, delta) {
            return None;
        }
        packet.hand_over(TableIndex(TABLE));
        Some(self.lookup6)
    }

    /// As [`fast_to6`](Self::fast_to6), the other way round.
    #[inline(always)]
    fn fast_to4(&self, map: &Map, packet: &mut Packet) -> Option<NodeId> {
        let read = Fast6::of(packet)?;
        let ends = (map.to4(read.source())?, map.host4(read.destination())?);
        let delta = Delta::NEUTRAL.sub128(read.source()).sub128(read.destination());
        let delta = delta.add32(ends.0).add32(ends.1);
        let identification = self.identification.get().wrapping_add(1);
        if !read.to4(packet, ends, delta, identification) {
            return None;
        }
        self.identification.set(identification);
        packet.hand_over(TableIndex(TABLE));
        Some(self.lookup4)
    }

    #[inline(never)]
    fn ip4_to_ip6(
        &self,
        cx: StageContext<'_>,
        packet: &mut Packet,
        map: &Map,
    ) -> Result<NodeId, SiitDrop> {
        let read = match read4(packet) {
            Err(Refused::SourceRoute(request)) => {
                cx.count(SiitDrop::SourceRoute, 1);
                return Ok(self.answer4(packet, request));
            }
            read => read?,
        };
        // The error must quote the packet as its sender knows it.
        if read.ttl <= 1 {
            return Ok(self.answer4(packet, TIME_EXCEEDED4));
        }
        if read.kind == Kind::Error {
            return self.error_to6(cx, packet, map);
        }
        let (source, destination) = (map.to6(read.source), map.host6(read.destination));
        let Some(source) = source else {
            cx.count(SiitDrop::UnmappedSource, 1);
            return Ok(self.answer4(packet, SOURCE_FAILED4));
        };
        let Some(destination) = destination else {
            cx.count(SiitDrop::UnmappedDestination, 1);
            return Ok(self.answer4(packet, UNREACHABLE4));
        };
        let ends = Ends6 { source, destination, ports: read.ports };
        let delta = delta_to6(read.protocol, &ends4(&read), &ends);
        let mtu_bytes = map.ip6_mtu_bytes;
        if to6::packet(packet, &read, &ends, delta, mtu_bytes)? == Done::ToCut {
            packet.hand_over(FragmentRequest { mtu_bytes, table: TABLE });
            return Ok(self.fragment);
        }
        packet.hand_over(TableIndex(TABLE));
        Ok(self.lookup6)
    }

    #[inline(never)]
    fn ip6_to_ip4(
        &self,
        cx: StageContext<'_>,
        packet: &mut Packet,
        map: &Map,
    ) -> Result<NodeId, SiitDrop> {
        let read = match read6(packet) {
            Err(Refused::SourceRoute(request)) => {
                cx.count(SiitDrop::SourceRoute, 1);
                return Ok(self.answer6(packet, request));
            }
            read => read?,
        };
        if read.hop_limit <= 1 {
            return Ok(self.answer6(packet, TIME_EXCEEDED6));
        }
        if read.kind == Kind::Error {
            return self.error_to4(cx, packet, map);
        }
        let (source, destination) = (map.to4(read.source), map.host4(read.destination));
        let Some(source) = source else {
            cx.count(SiitDrop::UnmappedSource, 1);
            return Ok(self.answer6(packet, SOURCE_FAILED6));
        };
        let Some(destination) = destination else {
            cx.count(SiitDrop::UnmappedDestination, 1);
            return Ok(self.answer6(packet, UNREACHABLE6));
        };
        let ends = Ends4 { source, destination, ports: read.ports };
        let delta = delta_to4(read.protocol, &ends6(&read), &ends);
        let identification = self.identification.get().wrapping_add(1);
        self.identification.set(identification);
        to4::packet(packet, &read, &ends, delta, identification)?;
        packet.hand_over(TableIndex(TABLE));
        Ok(self.lookup4)
    }

    fn error_to6(
        &self,
        cx: StageContext<'_>,
        packet: &mut Packet,
        map: &Map,
    ) -> Result<NodeId, SiitDrop> {
        let read = read_error4(packet)?;
        let inner = Ends6 {
            source: map.to6(read.inner.source).ok_or(SiitDrop::UnmappedInner)?,
            destination: map.to6(read.inner.destination).ok_or(SiitDrop::UnmappedInner)?,
            ports: read.inner.ports,
        };
        let destination = map.host6(read.outer.destination).ok_or(SiitDrop::UnmappedInner)?;
        let source = map.to6(read.outer.source).or_else(|| self.own6(cx, destination));
        let source = source.ok_or(SiitDrop::NoOwnAddress)?;
        error::to6(packet, &read, (source, destination), &inner)?;
        cx.count(SiitDrop::ErrorTranslated, 1);
        packet.hand_over(TableIndex(TABLE));
        Ok(self.lookup6)
    }

    fn error_to4(
        &self,
        cx: StageContext<'_>,
        packet: &mut Packet,
        map: &Map,
    ) -> Result<NodeId, SiitDrop> {
        let read = read_error6(packet)?;
        let inner = Ends4 {
            source: map.to4(read.inner.source).ok_or(SiitDrop::UnmappedInner)?,
            destination: map.to4(read.inner.destination).ok_or(SiitDrop::UnmappedInner)?,
            ports: read.inner.ports,
        };
        let destination = map.host4(read.outer.destination).ok_or(SiitDrop::UnmappedInner)?;
        let source = map.to4(read.outer.source).or_else(|| self.own4(cx, destination));
        let source = source.ok_or(SiitDrop::NoOwnAddress)?;
        error::to4(packet, &read, (source, destination), &inner)?;
        cx.count(SiitDrop::ErrorTranslated, 1);
        packet.hand_over(TableIndex(TABLE));
        Ok(self.lookup4)
    }

    /// This router's address for errors of routers that have none of IPv4 (RFC 6791).
    fn own4(&self, cx: StageContext<'_>, to: u32) -> Option<u32> {
        let interfaces = &self.tables.interfaces;
        let own = interfaces.addresses(interfaces.icmp_source(Family::Ip4, TABLE), cx.pass())?;
        own.source4(Ipv4Addr::from(to)).map(u32::from)
    }

    /// This router's address for errors of routers that have none of IPv6.
    fn own6(&self, cx: StageContext<'_>, to: u128) -> Option<u128> {
        let interfaces = &self.tables.interfaces;
        let own = interfaces.addresses(interfaces.icmp_source(Family::Ip6, TABLE), cx.pass())?;
        own.source6(Ipv6Addr::from_bits(to)).map(Ipv6Addr::to_bits)
    }
}

fn ends4(read: &Read4) -> Ends4 {
    Ends4 { source: read.source, destination: read.destination, ports: read.ports }
}

fn ends6(read: &Read6) -> Ends6 {
    Ends6 { source: read.source, destination: read.destination, ports: read.ports }
}

struct To6(Translate);

impl Stage for To6 {
    const NAME: &'static str = TO6;
    type Reason = SiitDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, SiitDrop> {
        let map = self.0.map.read(context.pass());
        match self.0.fast_to6(map, packet) {
            Some(next) => Ok(next),
            None => self.0.ip4_to_ip6(context, packet, map),
        }
    }
}

struct To4(Translate);

impl Stage for To4 {
    const NAME: &'static str = TO4;
    const LOOKS_BEHIND: bool = true;
    type Reason = SiitDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, SiitDrop> {
        let map = self.0.map.read(context.pass());
        match self.0.fast_to4(map, packet) {
            Some(next) => Ok(next),
            None => self.0.ip6_to_ip4(context, packet, map),
        }
    }
}

/// A packet of either version in words.
fn describe(bytes: &[u8]) -> String {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => Ip4::describe(bytes),
        _ => Ip6::describe(bytes),
    }
}

/// The declaration of `siit-ip4-to-ip6`.
pub(crate) fn spec_to6(map: &Arc<Published<Map>>) -> NodeSpec {
    let map = map.clone();
    NodeSpec::stage("Makes IPv4 packets packets of IPv6, without state", move |wiring| {
        To6(Translate::new(&map, wiring))
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}

/// The declaration of `siit-ip6-to-ip4`.
pub(crate) fn spec_to4(map: &Arc<Published<Map>>) -> NodeSpec {
    let map = map.clone();
    NodeSpec::stage("Makes IPv6 packets packets of IPv4, without state", move |wiring| {
        To4(Translate::new(&map, wiring))
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
