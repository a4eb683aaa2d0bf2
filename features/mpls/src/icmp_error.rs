//! `mpls-icmp-error`: tells the sender of the packet behind the labels why it goes no further (RFC
//! 3032 §2.3), with the label stack as it came (RFC 4884, RFC 4950).

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::throttle::TokenBucket;
use quiver_core::{Context, Frame, NodeId, Packet, number_handover};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, IpTables};
use quiver_forwarding::nodes;
use quiver_offload::checksum::add_to_sum;
use quiver_wire::checksum::{self, Sum, header_checksum};
use quiver_wire::icmp4::{self, Icmp4Header};
use quiver_wire::icmp6::{self, Icmp6Header};
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::mpls::ENTRY_BYTES;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, ip4, ip6};

use crate::stack::{STACK_ENTRIES_MAX, stack_bytes, version};

/// The node.
pub(crate) const NODE: &str = "mpls-icmp-error";

/// What the sender is told: 0 for time exceeded, else the longest packet that the path takes, in
/// bytes, without labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LabelError(pub u32);

number_handover!(LabelError);

/// Time exceeded in transit.
pub(crate) const TIME_EXCEEDED: LabelError = LabelError(0);

/// Errors that a worker sends in a second, and at once (RFC 1812 §4.3.2.8, RFC 4443 §2.4 f).
const ERRORS_PER_SECOND: u64 = 1_000;
const ERRORS_BURST: u64 = 100;
/// Bytes of the packet that an error quotes (RFC 4884 §5.1, §5.5).
const QUOTED_BYTES: usize = 128;
/// Headers of the extension and of its object, and the longest stack (RFC 4884 §7, RFC 4950 §3).
const EXTENSION_BYTES_MAX: usize = 8 + STACK_ENTRIES_MAX * ENTRY_BYTES;
/// TTL of the error and of the labels in front of it.
const TTL: u8 = 255;
/// Internetwork control (RFC 1812 §4.3.2.5).
const TRAFFIC_CLASS: u8 = 0xc0;

quiver_core::reasons! {
    /// What becomes of labelled packets that deserve an ICMP error.
    pub enum LabelErrorDrop {
        /// Not a whole packet.
        Truncated = "truncated", "the packet behind the labels is shorter than its header says";
        /// Labels without end.
        StackTooDeep = "stack-too-deep", "more labels in front of the packet than are looked at";
        /// Neither IPv4 nor IPv6.
        NotIp = "not-ip", "no ICMP error is sent about what is neither an IPv4 nor an IPv6 packet";
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
        /// None left.
        NoBuffer = "no-buffer", "no buffer for the ICMP error; `show buffers`";
        /// Sent.
        TimeExceeded = info "time-exceeded", "ICMP time exceeded sent with the label stack";
        /// Sent.
        TooBig = info "packet-too-big", "ICMP fragmentation needed or packet too big sent";
        /// Sent by the path of labels.
        AlongLabels = info "along-labels", "ICMP errors sent on by the packet's own labels, for \
            their end to return them (RFC 3032 §2.3.2)";
    }
}

struct LabelIcmpError {
    tables: Arc<IpTables>,
    lookup: [NodeId; 2],
    drop: [NodeId; 2],
    label_lookup: NodeId,
    bucket: TokenBucket,
}

/// The label stack that a packet came with.
struct Stack {
    bytes: [u8; STACK_ENTRIES_MAX * ENTRY_BYTES],
    length: usize,
}

impl Stack {
    /// Take it off a packet.
    fn take(packet: &mut Packet) -> Result<Stack, LabelErrorDrop> {
        let length = stack_bytes(packet.bytes()).ok_or(LabelErrorDrop::StackTooDeep)?;
        let mut bytes = [0; STACK_ENTRIES_MAX * ENTRY_BYTES];
        let from = packet.bytes().get(..length).ok_or(LabelErrorDrop::Truncated)?;
        bytes.get_mut(..length).ok_or(LabelErrorDrop::StackTooDeep)?.copy_from_slice(from);
        if !packet.pull(length) {
            return Err(LabelErrorDrop::Truncated);
        }
        Ok(Stack { bytes, length })
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// The ICMP extension that says it.
    fn extension(&self, out: &mut [u8; EXTENSION_BYTES_MAX]) -> usize {
        const VERSION: u8 = 2 << 4;
        const CLASS_AND_TYPE: [u8; 2] = [1, 1];
        let length = self.length + 8;
        let [a, b] = ((self.length + 4) as u16).to_be_bytes();
        out[..8].copy_from_slice(&[VERSION, 0, 0, 0, a, b, CLASS_AND_TYPE[0], CLASS_AND_TYPE[1]]);
        if let Some(place) = out.get_mut(8..length) {
            place.copy_from_slice(self.get());
        }
        let sum = checksum::of(out.get(..length).unwrap_or_default());
        out[2..4].copy_from_slice(&sum.to_be_bytes());
        length
    }

    /// Put it in front of a packet again, each label with a whole life.
    fn put(&mut self, packet: &mut Packet) -> bool {
        for entry in self.bytes.as_chunks_mut::<ENTRY_BYTES>().0 {
            entry[3] = TTL;
        }
        if !packet.push(self.length) {
            return false;
        }
        let place = packet.bytes_mut().get_mut(..self.length);
        place.map(|place| place.copy_from_slice(self.get())).is_some()
    }
}

/// May an error be sent about this IPv4 packet (RFC 1812 §4.3.2.7)?
fn deserves4(bytes: &[u8], header: &Ip4Header) -> Result<(), LabelErrorDrop> {
    if !ip4::address::is_unicast(header.destination()) {
        return Err(LabelErrorDrop::AboutGroup);
    }
    if !ip4::address::is_unicast(header.source()) {
        return Err(LabelErrorDrop::BadSource);
    }
    if header.fragment_offset() != 0 {
        return Err(LabelErrorDrop::AboutFragment);
    }
    let icmp = bytes.get(header.header_len()..).and_then(Icmp4Header::overlay);
    match header.protocol() == IpProtocol::ICMP && icmp.is_none_or(Icmp4Header::is_error) {
        true => Err(LabelErrorDrop::AboutError),
        false => Ok(()),
    }
}

/// May an error be sent about this IPv6 packet (RFC 4443 §2.4 e)?
fn deserves6(bytes: &[u8], header: &Ip6Header) -> Result<(), LabelErrorDrop> {
    if !ip6::address::is_unicast(header.source()) {
        return Err(LabelErrorDrop::BadSource);
    }
    if ip6::address::is_multicast(header.destination()) {
        return Err(LabelErrorDrop::AboutGroup);
    }
    let behind = bytes.get(Ip6Header::LEN..).unwrap_or_default();
    let Ok(upper) = upper_layer(header.next_header(), behind) else { return Ok(()) };
    if upper.fragment.is_some_and(|fragment| fragment.offset != 0) {
        return Err(LabelErrorDrop::AboutFragment);
    }
    let icmp = behind.get(upper.offset..).and_then(Icmp6Header::overlay);
    match upper.protocol == IpProtocol::ICMP6 && icmp.is_none_or(Icmp6Header::is_error) {
        true => Err(LabelErrorDrop::AboutError),
        false => Ok(()),
    }
}

/// Leave the first bytes of a packet, filled up to their full number, and the extension behind
/// them.
fn quote(cx: &mut Context<'_>, packet: &mut Packet, extension: &[u8]) -> bool {
    packet.truncate(QUOTED_BYTES, cx.buffers);
    let missing = QUOTED_BYTES.saturating_sub(packet.length());
    let zeroes = [0; QUOTED_BYTES];
    packet.append(zeroes.get(..missing).unwrap_or_default(), cx.buffers)
        && packet.append(extension, cx.buffers)
}

impl LabelIcmpError {
    fn answer(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, LabelErrorDrop> {
        let request = packet.handed_over::<LabelError>();
        if packet.has(PacketFlags::LOCALLY_ORIGINATED) {
            return Err(LabelErrorDrop::OwnPacket);
        }
        let mut stack = Stack::take(packet)?;
        let family = match version(packet.bytes()) {
            4 => Family::Ip4,
            6 => Family::Ip6,
            _ => return Err(LabelErrorDrop::NotIp),
        };
        let is_reachable = match family {
            Family::Ip4 => self.error4(cx, packet, request, &stack)?,
            Family::Ip6 => self.error6(cx, packet, request, &stack)?,
        };
        packet.become_own();
        packet.l2_bytes = 0;
        cx.count(
            if request == TIME_EXCEEDED {
                LabelErrorDrop::TimeExceeded
            } else {
                LabelErrorDrop::TooBig
            },
            1,
        );
        // Behind several labels is a packet of a VPN: who sent it is known at their end.
        if is_reachable && stack.length == ENTRY_BYTES {
            return Ok(self.lookup[family as usize]);
        }
        if !stack.put(packet) {
            return Err(LabelErrorDrop::NoHeadroom);
        }
        cx.count(LabelErrorDrop::AlongLabels, 1);
        Ok(self.label_lookup)
    }

    /// Does a route lead to the sender?
    fn reaches<F: IpFamily>(&self, packet: &Packet, to: F::Address) -> bool {
        let table = F::table_of(&self.tables.interfaces, packet.rx);
        let found = F::table(&self.tables, table).lookup(to);
        self.tables.groups.resolve(found, 0).next != self.drop[F::FAMILY as usize]
    }

    fn error4(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        LabelError(mtu_bytes): LabelError,
        stack: &Stack,
    ) -> Result<bool, LabelErrorDrop> {
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(LabelErrorDrop::Truncated)?;
        deserves4(packet.bytes(), &header)?;
        let own = self.tables.interfaces.addresses(packet.rx, cx.pass);
        let source = own.and_then(|own| own.source4(header.source()));
        let source = source.ok_or(LabelErrorDrop::NoAddress)?;
        if !self.bucket.take(cx.now_ns) {
            return Err(LabelErrorDrop::RateLimited);
        }
        let mut extension = [0; EXTENSION_BYTES_MAX];
        let length = stack.extension(&mut extension);
        if !quote(cx, packet, extension.get(..length).unwrap_or_default()) {
            return Err(LabelErrorDrop::NoBuffer);
        }
        let length = Icmp4Header::LEN + packet.length();
        let (kind, code) = match mtu_bytes {
            0 => (icmp4::kind::TIME_EXCEEDED, 0),
            _ => (icmp4::kind::DESTINATION_UNREACHABLE, icmp4::unreachable::FRAGMENTATION_NEEDED),
        };
        let [a, b] = u16::try_from(mtu_bytes).unwrap_or(u16::MAX).to_be_bytes();
        let rest = [0, (QUOTED_BYTES / 4) as u8, a, b];
        let mut icmp = icmp4::Message::Other { kind, code, rest }.header();
        let mut outer = Ip4Header::new(source, header.source(), IpProtocol::ICMP, TTL, length)
            .ok_or(LabelErrorDrop::Truncated)?;
        outer.traffic_class = TRAFFIC_CLASS;
        let outer = outer.with_checksum(header_checksum(&outer));
        if !packet.push(Ip4Header::LEN + Icmp4Header::LEN) {
            return Err(LabelErrorDrop::NoHeadroom);
        }
        write(packet, 0, &outer)?;
        write(packet, Ip4Header::LEN, &icmp)?;
        let sum = add_to_sum(Sum::new(), packet, Ip4Header::LEN, length)
            .ok_or(LabelErrorDrop::Truncated)?;
        icmp.set_checksum(sum.checksum());
        write(packet, Ip4Header::LEN, &icmp)?;
        Ok(self.reaches::<Ip4>(packet, header.source_bits()))
    }

    fn error6(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        LabelError(mtu_bytes): LabelError,
        stack: &Stack,
    ) -> Result<bool, LabelErrorDrop> {
        let header = *Ip6Header::overlay(packet.bytes()).ok_or(LabelErrorDrop::Truncated)?;
        deserves6(packet.bytes(), &header)?;
        let (own, to) = (self.tables.interfaces.addresses(packet.rx, cx.pass), header.source());
        let from = own.and_then(|own| own.source6(to)).ok_or(LabelErrorDrop::NoAddress)?;
        if !self.bucket.take(cx.now_ns) {
            return Err(LabelErrorDrop::RateLimited);
        }
        let mut extension = [0; EXTENSION_BYTES_MAX];
        // Packet too big has no room for the length of what is quoted (RFC 4884 §4.6).
        let length = if mtu_bytes == 0 { stack.extension(&mut extension) } else { 0 };
        if !quote(cx, packet, extension.get(..length).unwrap_or_default()) {
            return Err(LabelErrorDrop::NoBuffer);
        }
        let length = Icmp6Header::LEN + packet.length();
        let mut icmp =
            *Icmp6Header::overlay(&[0; Icmp6Header::LEN]).ok_or(LabelErrorDrop::Truncated)?;
        (icmp.kind, icmp.rest) = match mtu_bytes {
            0 => (icmp6::kind::TIME_EXCEEDED, [(QUOTED_BYTES / 8) as u8, 0, 0, 0]),
            mtu => (icmp6::kind::PACKET_TOO_BIG, mtu.max(ip6::MTU_MIN as u32).to_be_bytes()),
        };
        let outer = Ip6Header::new(from, to, IpProtocol::ICMP6, TTL, length as u16);
        if !packet.push(Ip6Header::LEN + Icmp6Header::LEN) {
            return Err(LabelErrorDrop::NoHeadroom);
        }
        write(packet, 0, &outer)?;
        write(packet, Ip6Header::LEN, &icmp)?;
        let pseudo = Sum::pseudo6(from, to, IpProtocol::ICMP6, length as u32);
        let sum =
            add_to_sum(pseudo, packet, Ip6Header::LEN, length).ok_or(LabelErrorDrop::Truncated)?;
        icmp.set_checksum(sum.checksum());
        write(packet, Ip6Header::LEN, &icmp)?;
        Ok(self.reaches::<Ip6>(packet, header.source_bits()))
    }
}

fn write(packet: &mut Packet, at: usize, header: &impl Header) -> Result<(), LabelErrorDrop> {
    let place = packet.bytes_mut().get_mut(at..).ok_or(LabelErrorDrop::Truncated)?;
    header.write(place).map(|_| ()).map_err(|_| LabelErrorDrop::Truncated)
}

impl Node for LabelIcmpError {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.answer(cx, packet));
        frame.look_at_rx();
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(NODE, "Tells senders of labelled packets why these go no further", |wiring| {
        Box::new(LabelIcmpError {
            tables: wiring.shared(),
            lookup: [wiring.node(nodes::ip4::LOOKUP), wiring.node(nodes::ip6::LOOKUP)],
            drop: [wiring.node(nodes::ip4::DROP), wiring.node(nodes::ip6::DROP)],
            label_lookup: wiring.node(nodes::mpls::LOOKUP),
            bucket: TokenBucket::new(ERRORS_PER_SECOND, ERRORS_BURST),
        })
    })
    .reasons::<LabelErrorDrop>()
    .describe(|record, names| {
        format!("{} bytes of an ICMP error, to {}", record.packet_bytes, names.node(record.next))
    })
}
