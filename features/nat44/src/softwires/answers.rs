//! What the AFTR itself sends to hosts behind B4s, from 192.0.0.1 (RFC 6333 §6.5): ICMP errors
//! about packets that have no session, and answers to pings.

use quiver_core::{Context, NodeId, Packet};
use quiver_encap::softwire::Ip4Inside;
use quiver_forwarding::IcmpErrorRequest;
use quiver_offload::checksum::add_to_sum;
use quiver_translation::flow::icmp;
use quiver_wire::checksum::{Sum, update16};
use quiver_wire::icmp4::{Icmp4Header, Message};
use quiver_wire::ip4::Repr;
use quiver_wire::{Header, Ip4Header, IpProtocol};

use crate::node::Nat44Drop;
use crate::softwires::AFTR;
use crate::softwires::encapsulate::{ToB4s, TunnelEnd};

/// Bytes of an error with everything (RFC 1812 §4.3.2.3).
const ERROR_BYTES_MAX: usize = 576;
const HEADERS_BYTES: usize = Ip4Header::LEN + Icmp4Header::LEN;
/// ICMP errors to B4s in a second (RFC 1812 §4.3.2.8).
const ERRORS_PER_SECOND: u32 = 1_000;
const TTL: u8 = 64;
/// Internetwork control (RFC 1812 §4.3.2.5).
const TRAFFIC_CLASS: u8 = 0xc0;

/// The end here and the B4 of a softwire.
#[derive(Clone, Copy)]
pub(crate) struct Softwire {
    pub end: TunnelEnd,
    pub b4: u128,
}

/// What the owner answers with.
pub(crate) struct Answers {
    pub to_b4s: ToB4s,
    /// The second that errors were counted in, and how many were sent.
    sent: (u64, u32),
}

/// May an error be sent about this packet (RFC 1812 §4.3.2.7)?
fn deserves(packet: &Packet, header: &Ip4Header) -> bool {
    let icmp = || packet.bytes().get(header.header_len()..).and_then(Icmp4Header::overlay);
    let is_error =
        header.protocol() == IpProtocol::ICMP && icmp().is_none_or(|icmp| icmp.is_error());
    header.fragment_offset() == 0 && !is_error
}

impl Answers {
    pub fn new(to_b4s: ToB4s) -> Answers {
        Answers { to_b4s, sent: (0, 0) }
    }

    fn may_send(&mut self, now_ns: u64) -> bool {
        let second = now_ns / 1_000_000_000;
        if self.sent.0 != second {
            self.sent = (second, 0);
        }
        self.sent.1 += 1;
        self.sent.1 <= ERRORS_PER_SECOND
    }

    fn send(&self, packet: &mut Packet, to: Softwire) -> Result<NodeId, Nat44Drop> {
        let inside = Ip4Inside::of(packet).ok_or(Nat44Drop::Truncated)?;
        packet.become_own();
        Ok(self.to_b4s.send(packet, &inside, to.end, to.b4)?.0)
    }

    /// Tell the sender of a packet that came by a softwire why it goes no further. The packet dies
    /// of `why` where no error may be sent.
    pub fn error(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        to: Softwire,
        (request, why): (IcmpErrorRequest, Nat44Drop),
    ) -> Result<NodeId, Nat44Drop> {
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(Nat44Drop::Truncated)?;
        if !deserves(packet, &header) || !self.may_send(cx.now_ns) {
            return Err(why);
        }
        packet.truncate(ERROR_BYTES_MAX - HEADERS_BYTES, cx.buffers);
        let quoted = packet.length();
        if !packet.push(HEADERS_BYTES) {
            return Err(Nat44Drop::NoHeadroom);
        }
        let length = Icmp4Header::LEN + quoted;
        let outer = Repr {
            traffic_class: TRAFFIC_CLASS,
            identification: 0,
            dont_fragment: false,
            more_fragments: false,
            fragment_offset: 0,
            ttl: TTL,
            protocol: IpProtocol::ICMP,
            source: AFTR.into(),
            destination: header.source(),
            options: &[],
            payload_len: length,
        };
        let [a, b] = request.detail.to_be_bytes();
        let rest = [0, 0, a, b];
        let mut icmp = Message::Other { kind: request.kind, code: request.code, rest }.header();
        let front = packet.bytes_mut();
        outer.emit(front).map_err(|_| Nat44Drop::Truncated)?;
        write_icmp(front, &icmp)?;
        let sum = add_to_sum(Sum::new(), packet, Ip4Header::LEN, length);
        icmp.set_checksum(sum.ok_or(Nat44Drop::Truncated)?.checksum());
        write_icmp(packet.bytes_mut(), &icmp)?;
        cx.count(Nat44Drop::SoftwireErrors, 1);
        self.send(packet, to)
    }

    /// Answer a ping to 192.0.0.1; other packets to it die.
    pub fn echo(&mut self, packet: &mut Packet, to: Softwire) -> Result<NodeId, Nat44Drop> {
        let header = Ip4Header::overlay(packet.bytes()).ok_or(Nat44Drop::Truncated)?;
        let (at, is_fragment) = (header.header_len(), header.is_fragment());
        let is_icmp = header.protocol() == IpProtocol::ICMP;
        let ends = (header.source_bits(), header.destination_bits());
        let bytes = packet.bytes_mut();
        let message = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>);
        let Some(message) = message.filter(|message| {
            is_icmp && !is_fragment && (message[0], message[1]) == (icmp::ECHO, 0)
        }) else {
            return Err(Nat44Drop::AftrAddress);
        };
        let sum = u16::from_be_bytes([message[2], message[3]]);
        let sum = update16(sum, u16::from(icmp::ECHO) << 8, u16::from(icmp::ECHO_REPLY) << 8);
        message[0] = icmp::ECHO_REPLY;
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let head = bytes.first_chunk_mut::<20>().ok_or(Nat44Drop::Truncated)?;
        head[12..16].copy_from_slice(&ends.1.to_be_bytes());
        head[16..20].copy_from_slice(&ends.0.to_be_bytes());
        let word = |head: &[u8; 20], at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let before = word(head, 8);
        head[8] = TTL;
        let sum = update16(word(head, 10), before, word(head, 8));
        head[10..12].copy_from_slice(&sum.to_be_bytes());
        self.send(packet, to)
    }
}

fn write_icmp(bytes: &mut [u8], icmp: &Icmp4Header) -> Result<(), Nat44Drop> {
    let behind = bytes.get_mut(Ip4Header::LEN..).ok_or(Nat44Drop::Truncated)?;
    icmp.write(behind).map_err(|_| Nat44Drop::Truncated)?;
    Ok(())
}
