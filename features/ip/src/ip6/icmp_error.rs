//! `ip6-icmp-error`: tells a sender why its packet goes no further (RFC 4443 §2.4). The packet
//! stays where it lies and gets two headers in front.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::Sum;
use quiver_wire::icmp6::{Icmp6Header, kind, unreachable};
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::ip6::{MTU_MIN, address};
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::echo::write;
use crate::local::icmp_limits::{Allowance, IcmpLimits};

/// The space in which translators claim the errors that the router makes.
const OWN_ERRORS: &str = "own-icmp6-error";
/// Bytes that come in front of the quoted packet.
const HEADERS_BYTES: usize = Ip6Header::LEN + Icmp6Header::LEN;

quiver_core::reasons! {
    /// What becomes of packets that deserve an ICMPv6 error.
    pub enum Icmp6ErrorDrop {
        /// Not a whole header.
        Truncated = "truncated", "the packet is shorter than its header says";
        /// RFC 4443 §2.4 e.1, e.2.
        AboutError = "about-error", "no ICMPv6 error is sent about an ICMPv6 error";
        /// RFC 4443 §2.4 e.3, e.4, e.5.
        AboutGroup = "about-group", "no ICMPv6 error is sent about a multicast";
        /// A later fragment tells its sender nothing new.
        AboutFragment = "about-fragment", "no ICMPv6 error is sent about a fragment other than \
            the first";
        /// RFC 4443 §2.4 e.6.
        BadSource = "bad-source", "no ICMPv6 error is sent to an address that is no host's";
        /// We know already.
        OwnPacket = "own-packet", "a packet of the router itself cannot be delivered";
        /// RFC 4443 §2.4 f.
        RateLimited = "rate-limited", "more ICMPv6 errors than a worker may send in a second";
        /// No address to send from.
        NoAddress = "no-source-address", "the receiving interface has no address to send an \
            ICMPv6 error from";
        /// Too many headers in front.
        NoHeadroom = "no-headroom", "no room in the buffer for the ICMPv6 error's headers";
        /// RFC 1812 §5.3.1, RFC 8200 §3.
        HopLimitZero = info "hop-limit-zero", "arrived with hop limit 0, which no sender may send \
            on (counted beside what became of it)";
        /// Sent.
        TimeExceeded = info "time-exceeded", "ICMPv6 time exceeded sent";
        /// Sent.
        NoRoute = info "no-route", "ICMPv6 no route to destination sent";
        /// Sent.
        AddressUnreachable = info "address-unreachable", "ICMPv6 address unreachable sent";
        /// Sent.
        PortUnreachable = info "port-unreachable", "ICMPv6 port unreachable sent";
        /// Sent.
        PacketTooBig = info "packet-too-big", "ICMPv6 packet too big sent";
        /// Sent.
        ParameterProblem = info "parameter-problem", "ICMPv6 parameter problem sent";
        /// Sent.
        OtherError = info "other-error", "other ICMPv6 errors sent";
    }
}

struct IcmpError {
    tables: IpTables,
    lookup: NodeId,
    limits: Arc<IcmpLimits>,
    allowance: Allowance,
}

/// May this error be sent about this packet (RFC 4443 §2.4 e)?
fn deserves(
    packet: &Packet,
    header: &Ip6Header,
    request: IcmpErrorRequest,
) -> Result<(), Icmp6ErrorDrop> {
    if packet.has(PacketFlags::LOCALLY_ORIGINATED) {
        return Err(Icmp6ErrorDrop::OwnPacket);
    }
    let group = packet.has(PacketFlags::L2_GROUP) || address::is_multicast(header.destination());
    let unknown_option = (request.kind, request.code) == (kind::PARAMETER_PROBLEM, 2);
    if group && request.kind != kind::PACKET_TOO_BIG && !unknown_option {
        return Err(Icmp6ErrorDrop::AboutGroup);
    }
    if !address::is_unicast(header.source()) {
        return Err(Icmp6ErrorDrop::BadSource);
    }
    let behind = packet.bytes().get(Ip6Header::LEN..).unwrap_or_default();
    let Ok(upper) = upper_layer(header.next_header(), behind) else { return Ok(()) };
    // What is wrong with a later fragment itself must be told (RFC 8200 §4.5).
    let is_later = upper.fragment.is_some_and(|fragment| fragment.offset != 0);
    if is_later && request.kind != kind::PARAMETER_PROBLEM {
        return Err(Icmp6ErrorDrop::AboutFragment);
    }
    if upper.protocol == IpProtocol::ICMP6 {
        let icmp = behind.get(upper.offset..).and_then(Icmp6Header::overlay);
        if icmp.is_none_or(|icmp| icmp.is_error()) {
            return Err(Icmp6ErrorDrop::AboutError);
        }
    }
    Ok(())
}

/// Under which name an error that was sent is counted.
fn counted(request: IcmpErrorRequest) -> Icmp6ErrorDrop {
    match (request.kind, request.code) {
        (kind::TIME_EXCEEDED, _) => Icmp6ErrorDrop::TimeExceeded,
        (kind::PACKET_TOO_BIG, _) => Icmp6ErrorDrop::PacketTooBig,
        (kind::PARAMETER_PROBLEM, _) => Icmp6ErrorDrop::ParameterProblem,
        (kind::DESTINATION_UNREACHABLE, unreachable::NO_ROUTE) => Icmp6ErrorDrop::NoRoute,
        (kind::DESTINATION_UNREACHABLE, unreachable::ADDRESS) => Icmp6ErrorDrop::AddressUnreachable,
        (kind::DESTINATION_UNREACHABLE, unreachable::PORT) => Icmp6ErrorDrop::PortUnreachable,
        _ => Icmp6ErrorDrop::OtherError,
    }
}

impl IcmpError {
    fn answer(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Icmp6ErrorDrop> {
        let request = packet.handed_over::<IcmpErrorRequest>();
        let header = *Ip6Header::overlay(packet.bytes()).ok_or(Icmp6ErrorDrop::Truncated)?;
        if request.kind == kind::TIME_EXCEEDED && header.hop_limit() == 0 {
            cx.count(Icmp6ErrorDrop::HopLimitZero, 1);
        }
        deserves(packet, &header, request)?;
        let to = header.source();
        if packet.take_carried() && packet.tx != InterfaceId::NONE {
            // Its sender is not behind the interface that it came in by, in a tunnel.
            packet.rx = packet.tx;
        }
        let own = self.tables.interfaces.addresses(packet.rx, cx.pass);
        let from = own.and_then(|own| own.source6(to)).ok_or(Icmp6ErrorDrop::NoAddress)?;
        let hop_limit = own.and_then(|own| own.hop_limit).unwrap_or(super::HOP_LIMIT);
        if !self.allowance.take(self.limits.get(true), cx.now_ns) {
            return Err(Icmp6ErrorDrop::RateLimited);
        }
        packet.truncate(MTU_MIN - HEADERS_BYTES, cx.buffers);
        let length = Icmp6Header::LEN + packet.length();
        if !packet.push(HEADERS_BYTES) {
            return Err(Icmp6ErrorDrop::NoHeadroom);
        }
        packet.l2_bytes = 0;
        let outer = Ip6Header::new(from, to, IpProtocol::ICMP6, hop_limit, length as u16);
        // Only its bytes matter here: the checksum field of a fresh header is zero.
        let mut icmp =
            *Icmp6Header::overlay(&[0; Icmp6Header::LEN]).ok_or(Icmp6ErrorDrop::Truncated)?;
        (icmp.kind, icmp.code) = (request.kind, request.code);
        icmp.rest = u32::from(request.detail).to_be_bytes();
        write(packet, &outer, &icmp).ok_or(Icmp6ErrorDrop::Truncated)?;
        let pseudo = Sum::pseudo6(from, to, IpProtocol::ICMP6, length as u32);
        let sum =
            add_to_sum(pseudo, packet, Ip6Header::LEN, length).ok_or(Icmp6ErrorDrop::Truncated)?;
        icmp.set_checksum(sum.checksum());
        write(packet, &outer, &icmp).ok_or(Icmp6ErrorDrop::Truncated)?;
        packet.become_own();
        cx.count(counted(request), 1);
        Ok(self.lookup)
    }
}

impl Node for IcmpError {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.answer(cx, packet));
        frame.look_at_rx();
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables, limits: &Arc<IcmpLimits>) -> NodeSpec {
    let (tables, limits) = (tables.clone(), limits.clone());
    NodeSpec::new(
        nodes::ip6::ICMP_ERROR,
        "Tells senders why their packets go no further",
        move |wiring| {
            // A translator looks at errors about packets that it has translated.
            let claimed = wiring.claims(OWN_ERRORS).first().map(|(_, node)| *node);
            Box::new(IcmpError {
                tables: tables.clone(),
                lookup: claimed.unwrap_or_else(|| wiring.node(nodes::ip6::LOOKUP)),
                limits: limits.clone(),
                allowance: Allowance::new(limits.get(true)),
            })
        },
    )
    .reasons::<Icmp6ErrorDrop>()
    .describe(|record, names| {
        let what =
            Ip6Header::split(record.bytes()).and_then(|(_, rest)| Icmp6Header::overlay(rest));
        let what =
            what.map_or(String::new(), |icmp| format!(" type {} code {}", icmp.kind, icmp.code));
        format!(
            "{}{what}, to {}",
            quiver_forwarding::ip6::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
