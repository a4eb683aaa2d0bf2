//! `ip4-icmp-error`: tells a sender why its packet goes no further (RFC 792, RFC 1812 §4.3.2). The
//! packet stays where it lies and gets two headers in front.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::Sum;
use quiver_wire::icmp4::{Icmp4Header, Message, kind, unreachable};
use quiver_wire::ip4::address::is_unicast;
use quiver_wire::{Header, Ip4Header, IpProtocol};

use crate::local::icmp_limits::{Allowance, IcmpLimits};

/// Bytes of an error with everything (RFC 1812 §4.3.2.3).
const ERROR_BYTES_MAX: usize = 576;
/// The space in which a node claims all errors before they are looked up.
const OWN_ERRORS: &str = "own-icmp4-error";
/// Bytes that come in front of the quoted packet.
const HEADERS_BYTES: usize = Ip4Header::LEN + Icmp4Header::LEN;
/// Internetwork control (RFC 1812 §4.3.2.5).
const TRAFFIC_CLASS: u8 = 0xc0;

quiver_core::reasons! {
    /// What becomes of packets that deserve an ICMP error.
    pub enum Icmp4ErrorDrop {
        /// Not a whole header.
        Truncated = "truncated", "the packet is shorter than its header says";
        /// RFC 1812 §4.3.2.7.
        AboutError = "about-error", "no ICMP error is sent about an ICMP error";
        /// RFC 1812 §4.3.2.7.
        AboutGroup = "about-group", "no ICMP error is sent about a broadcast or multicast";
        /// RFC 1812 §4.3.2.7.
        AboutFragment = "about-fragment", "no ICMP error is sent about a fragment other than the \
            first";
        /// RFC 1812 §4.3.2.7.
        BadSource = "bad-source", "no ICMP error is sent to an address that is no host's";
        /// We know already.
        OwnPacket = "own-packet", "a packet of the router itself cannot be delivered";
        /// RFC 1812 §4.3.2.8.
        RateLimited = "rate-limited", "more ICMP errors than a worker may send in a second";
        /// No address to send from.
        NoAddress = "no-source-address", "the receiving interface has no address to send an ICMP \
            error from";
        /// Too many headers in front.
        NoHeadroom = "no-headroom", "no room in the buffer for the ICMP error's headers";
        /// RFC 1812 §5.3.1, RFC 8200 §3.
        TtlZero = info "ttl-zero", "arrived with TTL 0, which no sender may send on (counted \
            beside what became of it)";
        /// Sent.
        TimeExceeded = info "time-exceeded", "ICMP time exceeded sent";
        /// Sent.
        NetUnreachable = info "net-unreachable", "ICMP net unreachable sent";
        /// Sent.
        HostUnreachable = info "host-unreachable", "ICMP host unreachable sent";
        /// Sent.
        ProtocolUnreachable = info "protocol-unreachable", "ICMP protocol unreachable sent";
        /// Sent.
        PortUnreachable = info "port-unreachable", "ICMP port unreachable sent";
        /// Sent.
        FragmentationNeeded = info "fragmentation-needed", "ICMP fragmentation needed sent";
        /// Sent.
        OtherError = info "other-error", "other ICMP errors sent";
    }
}

struct IcmpError {
    tables: IpTables,
    lookup: NodeId,
    limits: Arc<IcmpLimits>,
    allowance: Allowance,
}

/// May an error be sent about this packet (RFC 1812 §4.3.2.7)?
fn deserves(packet: &Packet, header: &Ip4Header) -> Result<(), Icmp4ErrorDrop> {
    if packet.has(PacketFlags::LOCALLY_ORIGINATED) {
        return Err(Icmp4ErrorDrop::OwnPacket);
    }
    if packet.has(PacketFlags::L2_GROUP) || !is_unicast(header.destination()) {
        return Err(Icmp4ErrorDrop::AboutGroup);
    }
    if !is_unicast(header.source()) {
        return Err(Icmp4ErrorDrop::BadSource);
    }
    if header.fragment_offset() != 0 {
        return Err(Icmp4ErrorDrop::AboutFragment);
    }
    if header.protocol() == IpProtocol::ICMP {
        let icmp = packet.bytes().get(header.header_len()..).and_then(Icmp4Header::overlay);
        if icmp.is_none_or(|icmp| icmp.is_error()) {
            return Err(Icmp4ErrorDrop::AboutError);
        }
    }
    Ok(())
}

/// What an error says.
fn message(request: IcmpErrorRequest) -> Message {
    let [a, b] = request.detail.to_be_bytes();
    let rest = match request.kind {
        kind::PARAMETER_PROBLEM => [b, 0, 0, 0],
        _ => [0, 0, a, b],
    };
    Message::Other { kind: request.kind, code: request.code, rest }
}

/// Under which name an error that was sent is counted.
fn counted(request: IcmpErrorRequest) -> Icmp4ErrorDrop {
    match (request.kind, request.code) {
        (kind::TIME_EXCEEDED, _) => Icmp4ErrorDrop::TimeExceeded,
        (kind::DESTINATION_UNREACHABLE, unreachable::NETWORK) => Icmp4ErrorDrop::NetUnreachable,
        (kind::DESTINATION_UNREACHABLE, unreachable::HOST) => Icmp4ErrorDrop::HostUnreachable,
        (kind::DESTINATION_UNREACHABLE, unreachable::PROTOCOL) => {
            Icmp4ErrorDrop::ProtocolUnreachable
        }
        (kind::DESTINATION_UNREACHABLE, unreachable::PORT) => Icmp4ErrorDrop::PortUnreachable,
        (kind::DESTINATION_UNREACHABLE, unreachable::FRAGMENTATION_NEEDED) => {
            Icmp4ErrorDrop::FragmentationNeeded
        }
        _ => Icmp4ErrorDrop::OtherError,
    }
}

impl IcmpError {
    fn answer(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Icmp4ErrorDrop> {
        let request = packet.handed_over::<IcmpErrorRequest>();
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(Icmp4ErrorDrop::Truncated)?;
        if request.kind == kind::TIME_EXCEEDED && header.ttl() == 0 {
            cx.count(Icmp4ErrorDrop::TtlZero, 1);
        }
        deserves(packet, &header)?;
        if packet.take_carried() && packet.tx != InterfaceId::NONE {
            // Its sender is not behind the interface that it came in by, in a tunnel.
            packet.rx = packet.tx;
        }
        let own = self.tables.interfaces.addresses(packet.rx, cx.pass);
        let source =
            own.and_then(|own| own.source4(header.source())).ok_or(Icmp4ErrorDrop::NoAddress)?;
        if !self.allowance.take(self.limits.get(false), cx.now_ns) {
            return Err(Icmp4ErrorDrop::RateLimited);
        }
        packet.truncate(ERROR_BYTES_MAX - HEADERS_BYTES, cx.buffers);
        let quoted = packet.length();
        if !packet.push(HEADERS_BYTES) {
            return Err(Icmp4ErrorDrop::NoHeadroom);
        }
        packet.l2_bytes = 0;
        let length = Icmp4Header::LEN + quoted;
        let mut outer =
            Ip4Header::new(source, header.source(), IpProtocol::ICMP, super::TTL, length)
                .ok_or(Icmp4ErrorDrop::Truncated)?;
        outer.traffic_class = TRAFFIC_CLASS;
        let mut icmp = message(request).header();
        write(packet, &outer, &icmp)?;
        let sum = add_to_sum(Sum::new(), packet, Ip4Header::LEN, length)
            .ok_or(Icmp4ErrorDrop::Truncated)?;
        icmp.set_checksum(sum.checksum());
        write(packet, &outer, &icmp)?;
        super::fill_checksum(packet.bytes_mut());
        packet.become_own();
        cx.count(counted(request), 1);
        Ok(self.lookup)
    }
}

fn write(packet: &mut Packet, outer: &Ip4Header, icmp: &Icmp4Header) -> Result<(), Icmp4ErrorDrop> {
    let bytes = packet.bytes_mut();
    let behind = bytes.get_mut(Ip4Header::LEN..).ok_or(Icmp4ErrorDrop::Truncated)?;
    icmp.write(behind).map_err(|_| Icmp4ErrorDrop::Truncated)?;
    outer.write(bytes).map_err(|_| Icmp4ErrorDrop::Truncated)?;
    Ok(())
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
        nodes::ip4::ICMP_ERROR,
        "Tells senders why their packets go no further",
        move |wiring| {
            // A translator looks at errors about packets that it has translated.
            let claimed = wiring.claims(OWN_ERRORS).first().map(|(_, node)| *node);
            Box::new(IcmpError {
                tables: tables.clone(),
                lookup: claimed.unwrap_or_else(|| wiring.node(nodes::ip4::LOOKUP)),
                limits: limits.clone(),
                allowance: Allowance::new(limits.get(false)),
            })
        },
    )
    .reasons::<Icmp4ErrorDrop>()
    .describe(|record, names| {
        let what =
            Ip4Header::split(record.bytes()).and_then(|(_, rest)| Icmp4Header::overlay(rest));
        let what =
            what.map_or(String::new(), |icmp| format!(" type {} code {}", icmp.kind, icmp.code));
        format!(
            "{}{what}, to {}",
            quiver_forwarding::ip4::describe(record.bytes()),
            names.node(record.next)
        )
    })
}
