//! `ip4-map-t`: packets of IPv4 to customers become packets of IPv6 (RFC 7599, RFC 7915 §4). Routes
//! of domains that translate lead here.

use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_forwarding::requests::FragmentRequest;
use quiver_translation::versions::Refused;
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::ends::{Ends4, Ends6, delta_to6};
use quiver_translation::versions::error::{self, read_error4};
use quiver_translation::versions::fast::Fast4;
use quiver_translation::versions::read::{Kind, read4};
use quiver_translation::versions::to6::{self, Done};

use crate::border::{Border, CUT_TRANSLATED, TABLE, TO_IP6, clamp, describe, is_own};
use crate::domain::Domain;
use crate::reasons::MapDrop;
use crate::tables::{Direction, Shared, TRANSLATES};
use crate::to_customers::{Kernel, To, ToCustomers};
use crate::upper::{Port, port_of};

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

impl ToCustomers for ToIp6 {
    const NAME: &'static str = TO_IP6;
    const MODE: u8 = TRANSLATES;
    const DIRECTION: Direction = Direction::ToIp6;

    #[inline(always)]
    fn border(&self) -> &Border {
        &self.border
    }

    #[inline(always)]
    fn fast(&self, to: To<'_>, packet: &mut Packet) -> Option<usize> {
        let rule = to.domain.rule()?;
        let read = Fast4::of(packet).filter(|read| read.fits6(to.domain.mtu_bytes))?;
        if to.params.mss_bytes != 0 && read.opens(packet) {
            return None;
        }
        let port = Port::Known(read.destination_port());
        let customer = to.domain.customer(read.destination(), port).ok()?;
        let (source, delta) = rule.embed(read.source());
        let delta = delta.add128(customer).sub32(read.destination());
        read.to6(packet, (source, customer), delta).then_some(read.length())
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
        let rule = to.domain.rule().ok_or(MapDrop::NoDomain)?.prefix();
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
            return self.error(context, packet, (to.domain, rule));
        }
        let port = port_of(read.kind, read.protocol, read.ports.destination);
        let destination = match to.domain.customer(read.destination, port) {
            Ok(customer) => customer,
            Err(nobody) => return border.nobody4(context, packet, nobody),
        };
        clamp(packet, to.params.mss_bytes);
        let ends = Ends6 { source: rule.embed(read.source), destination, ports: read.ports };
        let from = Ends4 { source: read.source, destination: read.destination, ports: read.ports };
        let delta = delta_to6(read.protocol, &from, &ends);
        let mtu_bytes = to.domain.mtu_bytes;
        let done = to6::packet(packet, &read, &ends, delta, mtu_bytes)?;
        border.count(Direction::ToIp6, 1, read.length());
        if done == Done::ToCut {
            context.count(MapDrop::Cut, 1);
            packet.hand_over(FragmentRequest { mtu_bytes, table: TABLE });
            return Ok(self.cut);
        }
        Ok(border.route6(packet))
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::stage("Makes packets to customers of MAP-T packets of IPv6", move |wiring| {
        Kernel(ToIp6 { border: Border::new(&shared, wiring), cut: wiring.node(CUT_TRANSLATED) })
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
