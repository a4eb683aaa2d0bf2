//! Packets that wait for a neighbour's MAC address. A worker keeps none: it tells the control thread
//! the bytes of the packet for whose sake it asks, and the control thread puts the packet back in
//! front of the look-up once the neighbour is known.
//!
//! No packet waits twice at one interface: what is put back names in [`Packet::tx`] where it waited,
//! and a node that would ask there drops it. So a packet can wait again only when its route has moved
//! to another interface meanwhile, and then through the throttle.

use std::collections::VecDeque;
use std::net::IpAddr;

use quiver_core::event::{EVENT_BYTES, Event};
use quiver_core::packet::PacketFlags;
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, InterfaceId, NodeId, Packet, WorkerId};
use quiver_tables::fib::Fib;
use quiver_wire::{Header, Ip4Header, Ip6Header, icmp4, icmp6};

use crate::ask::Kind;
use crate::error_request::IcmpErrorRequest;
use crate::neighbours;
use crate::notice::{Answer, Notice, PingError};
use crate::state::IpState;

/// Packets that wait, for all neighbours together. The oldest is forgotten for a new one.
pub const HELD_PACKETS_MAX: usize = 1024;
/// Packets that wait for one neighbour. The oldest is forgotten for a new one.
pub const HELD_PER_NEIGHBOUR_MAX: usize = 3;
/// A packet is forgotten after so long: its sender has sent another.
pub const HELD_FOR_NS: u64 = 4_000_000_000;
/// WaitingPacket in front of the packet in an event: where it came in, and its adjacency.
const PREFIX_BYTES: usize = 8;
/// WaitingPacket of the longest packet that can wait, from its IP header on: an IPv6 echo request of 56
/// bytes of data just fits.
pub const HELD_BYTES_MAX: usize = EVENT_BYTES - PREFIX_BYTES;

/// Host unreachable (RFC 1812 §5.2.7.1).
const UNREACHABLE4: IcmpErrorRequest = IcmpErrorRequest {
    kind: icmp4::kind::DESTINATION_UNREACHABLE,
    code: icmp4::unreachable::HOST,
    detail: 0,
};
/// Address unreachable (RFC 4861 §7.2.2).
const UNREACHABLE6: IcmpErrorRequest = IcmpErrorRequest {
    kind: icmp6::kind::DESTINATION_UNREACHABLE,
    code: icmp6::unreachable::ADDRESS,
    detail: 0,
};

/// Kinds of events from here on, plus the marks below, bring a packet.
const HELD: u8 = 16;
/// The router made the packet.
const OWN: u8 = 1;
/// It is IPv6.
const SIX: u8 = 2;
/// Its destination was asked for, not the next hop of the adjacency.
const GLEAN: u8 = 4;
/// Only its start is there: enough to tell its sender that nobody answers.
const CUT: u8 = 8;
/// No worker has asked for the neighbour on its account.
const NOT_ASKED: u8 = 32;

/// Can a packet wait?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Yes.
    Whole,
    /// It cannot, but an ICMP error can be sent about it.
    Start,
    /// No.
    Not,
}

/// Can this packet wait for a neighbour behind `tx`? It must fit into an event, must not have waited
/// there before, and nothing may be known of it but its bytes.
pub(crate) fn may_wait(packet: &Packet, tx: InterfaceId) -> Waits {
    if packet.has(PacketFlags::L2_GROUP) || packet.tx == tx {
        return Waits::Not;
    }
    let plain = !packet.is_chained() && !packet.has(PacketFlags::OFFLOAD);
    match plain && packet.length() <= HELD_BYTES_MAX {
        true => Waits::Whole,
        false if packet.has(PacketFlags::OWN) => Waits::Not,
        false => Waits::Start,
    }
}

/// Tell the control thread of a packet that waits for a neighbour behind `tx`, and whether the neighbour
/// was asked just now. Its adjacency is in [`Packet::index`].
pub(crate) fn tell(cx: &mut Context<'_>, packet: &Packet, kind: Kind, tx: InterfaceId, asked: bool) {
    let mut data = [0; EVENT_BYTES];
    let bytes = packet.bytes();
    let bytes = bytes.get(..HELD_BYTES_MAX).unwrap_or(bytes);
    let length = PREFIX_BYTES + bytes.len();
    data[..4].copy_from_slice(&packet.rx.0.to_be_bytes());
    data[4..PREFIX_BYTES].copy_from_slice(&packet.index.to_be_bytes());
    let Some(room) = data.get_mut(PREFIX_BYTES..length) else { return };
    room.copy_from_slice(bytes);
    let mark = |mark: u8, is: bool| if is { mark } else { 0 };
    let marks = mark(OWN, packet.has(PacketFlags::OWN))
        | mark(SIX, kind.six)
        | mark(GLEAN, kind.glean)
        | mark(CUT, packet.length() > bytes.len())
        | mark(NOT_ASKED, !asked);
    cx.notify(Event::new(cx.node, tx, cx.now_ns, HELD | marks, &data[..length]));
}

/// A packet off the data plane.
#[derive(Debug)]
pub(crate) struct WaitingPacket {
    /// From the IP header on.
    bytes: Box<[u8]>,
    /// Where it came in: decides the table.
    rx: InterfaceId,
    six: bool,
    own: bool,
    /// It cannot go on: only its start is there.
    cut: bool,
}

impl WaitingPacket {
    /// What a ping of ours is told when its request is this packet.
    fn unreachable_ping(&self) -> Option<Notice> {
        let request = if self.six { UNREACHABLE6 } else { UNREACHABLE4 };
        let (from, behind): (IpAddr, &[u8]) = if self.six {
            let (header, behind) = Ip6Header::split(&self.bytes)?;
            (header.source().into(), behind)
        } else {
            let header = Ip4Header::overlay(&self.bytes)?;
            (header.source().into(), self.bytes.get(header.header_len()..)?)
        };
        let echo = if self.six { icmp6::kind::ECHO_REQUEST } else { icmp4::kind::ECHO_REQUEST };
        let [kind, _, _, _, a, b, c, d, ..] = *behind else { return None };
        (kind == echo).then_some(Notice::Ping {
            identifier: u16::from_be_bytes([a, b]),
            sequence: u16::from_be_bytes([c, d]),
            from,
            answer: Answer::Error(PingError {
                kind: request.kind,
                code: request.code,
                mtu_bytes: 0,
                about: self.destination()?,
            }),
            hops: 0,
            bytes: 0,
        })
    }

    fn destination(&self) -> Option<IpAddr> {
        if self.six {
            return Ip6Header::overlay(&self.bytes).map(|header| header.destination().into());
        }
        Ip4Header::overlay(&self.bytes).map(|header| header.destination().into())
    }

    /// Put it in front of `next` as if it had just been received and checked.
    fn put_back(&self, worker: &mut Worker, next: NodeId, waited_on: InterfaceId, index: u32) {
        let Some(mut packet) = worker.buffers().packet() else { return }; // `show buffers` counts it
        packet.rx = self.rx;
        packet.tx = waited_on;
        packet.index = index;
        if self.own {
            packet.set(PacketFlags::OWN);
        }
        if packet.append(&self.bytes, worker.buffers()) {
            worker.put(packet, next);
        } else {
            worker.buffers().free(packet);
        }
    }
}

/// A packet that waits for `target` to answer on `on`.
#[derive(Debug)]
struct Held {
    on: InterfaceId,
    target: IpAddr,
    since_ns: u64,
    packet: WaitingPacket,
}

/// All packets that wait, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct HeldPackets {
    packets: VecDeque<Held>,
    /// Packets whose neighbour did not answer in time, or that had to make room.
    forgotten: u64,
}

impl HeldPackets {
    /// Packets that wait.
    pub fn len(&self) -> usize {
        self.packets.iter().filter(|held| !held.packet.cut).count()
    }

    /// Packets whose neighbour did not answer in time, or that had to make room.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn keep(&mut self, held: Held) {
        let mut same = (0..self.packets.len())
            .filter(|place| (self.packets[*place].on, self.packets[*place].target) == (held.on, held.target));
        let oldest = same.next();
        let is_full_for_one = oldest.is_some() && same.count() + 1 >= HELD_PER_NEIGHBOUR_MAX;
        let unlucky = match oldest {
            Some(oldest) if is_full_for_one => Some(oldest),
            _ if self.packets.len() >= HELD_PACKETS_MAX => Some(0),
            _ => None,
        };
        if unlucky.and_then(|place| self.packets.remove(place)).is_some_and(|held| !held.packet.cut) {
            self.forgotten += 1;
        }
        self.packets.push_back(held);
    }

    /// What waits for this neighbour, in the order in which it came.
    pub fn take(&mut self, on: InterfaceId, target: IpAddr, now_ns: u64) -> Vec<WaitingPacket> {
        self.forget_old(now_ns);
        let mut taken = self.take_all(on, target);
        taken.retain(|packet| !packet.cut);
        taken
    }

    /// What waits for a neighbour that does not answer: it is forgotten, and its senders are told.
    pub fn give_up(&mut self, on: InterfaceId, target: IpAddr) -> Vec<WaitingPacket> {
        let taken = self.take_all(on, target);
        self.forgotten += taken.iter().filter(|packet| !packet.cut).count() as u64;
        taken
    }

    fn take_all(&mut self, on: InterfaceId, target: IpAddr) -> Vec<WaitingPacket> {
        let mut taken = Vec::new();
        while let Some(place) = self.packets.iter().position(|h| (h.on, h.target) == (on, target)) {
            taken.extend(self.packets.remove(place).map(|held| held.packet));
        }
        taken
    }

    /// Forget what has waited too long; says how much that was.
    pub fn forget_old(&mut self, now_ns: u64) -> usize {
        self.forget(|held| now_ns.saturating_sub(held.since_ns) >= HELD_FOR_NS)
    }

    /// An interface is gone, and with it what came in or would leave by it.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        self.forget(|held| held.on == id || held.packet.rx == id);
    }

    fn forget(&mut self, unlucky: impl Fn(&Held) -> bool) -> usize {
        let before = self.len();
        self.packets.retain(|held| !unlucky(held));
        let forgotten = before - self.len();
        self.forgotten += forgotten as u64;
        forgotten
    }
}

/// The packet that an event brings, if it brings one, and its adjacency.
fn read(event: &Event) -> Option<(WaitingPacket, u32)> {
    if event.kind & HELD == 0 {
        return None;
    }
    let (rx, rest) = event.bytes().split_first_chunk()?;
    let (index, bytes) = rest.split_first_chunk()?;
    let has = |mark: u8| event.kind & mark != 0;
    let rx = InterfaceId(u32::from_be_bytes(*rx));
    let packet = WaitingPacket { bytes: bytes.into(), rx, six: has(SIX), own: has(OWN), cut: has(CUT) };
    Some((packet, u32::from_be_bytes(*index)))
}

/// Keep the packet that an event brings until its neighbour is known; false when it brings none.
pub(crate) fn hear(engine: &mut Engine, event: &Event) -> bool {
    let Some((packet, index)) = read(event) else { return false };
    let (on, since_ns) = (event.interface, event.at_ns);
    let is_gone = |id: InterfaceId| id != InterfaceId::NONE && engine.interface(id).is_none();
    if is_gone(on) || is_gone(packet.rx) {
        if let Some(ip) = engine.get_mut::<IpState>() {
            ip.held.forgotten += 1;
        }
        return true;
    }
    let Some(fib) = engine.get::<Fib>() else { return true };
    let target = if event.kind & GLEAN != 0 {
        packet.destination()
    } else {
        // A slot that has become another interface's: the way has changed while the event was
        // under way.
        let adjacency = fib.adjacencies().get(index);
        (adjacency.tx == on).then(|| adjacency.next_hop())
    };
    match target {
        Some(target) if fib.neighbours().get(on, target).is_none() => {
            neighbours::want(engine, on, target, since_ns, event.kind & NOT_ASKED == 0);
            if let Some(ip) = engine.get_mut::<IpState>() {
                ip.held.keep(Held { on, target, since_ns, packet });
            }
        }
        // It has spoken meanwhile, or the way has changed: the look-up knows.
        _ if !packet.cut => put_back(engine, on, vec![packet]),
        _ => {}
    }
    true
}

/// Let packets go on whose neighbour is known now.
pub(crate) fn put_back(engine: &mut Engine, waited_on: InterfaceId, packets: Vec<WaitingPacket>) {
    let nodes = (engine.node_id("ip4-lookup"), engine.node_id("ip6-lookup"));
    let (false, (Some(lookup4), Some(lookup6))) = (packets.is_empty(), nodes) else { return };
    engine.post(WorkerId(0), move |worker: &mut Worker| {
        for packet in &packets {
            packet.put_back(worker, if packet.six { lookup6 } else { lookup4 }, waited_on, 0);
        }
    });
}

/// Nobody answers: tell the senders of what has waited (RFC 1812 §5.2.7.1, RFC 4861 §7.2.2), and our own
/// pings.
pub(crate) fn tell_unreachable(engine: &mut Engine, waited_on: InterfaceId, packets: Vec<WaitingPacket>) {
    let now_ns = engine.now_ns();
    let nodes = (engine.node_id("ip4-icmp-error"), engine.node_id("ip6-icmp-error"));
    let (own, others): (Vec<_>, Vec<_>) = packets.into_iter().partition(|packet| packet.own);
    if let Some(ip) = engine.get_mut::<IpState>() {
        let notices = own.iter().filter_map(WaitingPacket::unreachable_ping);
        notices.for_each(|notice| ip.mailboxes.deliver(notice, now_ns));
    }
    let (false, (Some(error4), Some(error6))) = (others.is_empty(), nodes) else { return };
    engine.post(WorkerId(0), move |worker: &mut Worker| {
        for packet in &others {
            let (error, request) = if packet.six { (error6, UNREACHABLE6) } else { (error4, UNREACHABLE4) };
            packet.put_back(worker, error, waited_on, request.to_index());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const E0: InterfaceId = InterfaceId(0);
    const E1: InterfaceId = InterfaceId(1);

    fn held(target: u32, since_ns: u64, name: u8) -> Held {
        let packet = WaitingPacket { bytes: [name].into(), rx: E0, six: false, own: false, cut: false };
        Held { on: E1, target: IpAddr::V4(target.into()), since_ns, packet }
    }

    fn names(taken: &[WaitingPacket]) -> Vec<u8> {
        taken.iter().map(|packet| packet.bytes[0]).collect()
    }

    #[test]
    fn three_packets_wait_for_one_neighbour_and_the_oldest_makes_room() {
        let mut packets = HeldPackets::default();
        packets.keep(held(9, 0, 99));
        (0..5).for_each(|name| packets.keep(held(7, 0, name)));
        assert_eq!((packets.len(), packets.forgotten()), (1 + HELD_PER_NEIGHBOUR_MAX, 2));
        assert_eq!(names(&packets.take(E1, IpAddr::V4(7.into()), 0)), [2, 3, 4]);
        assert_eq!(names(&packets.take(E1, IpAddr::V4(9.into()), 0)), [99]);
        assert!(packets.take(E1, IpAddr::V4(9.into()), 0).is_empty());
    }

    #[test]
    fn there_is_an_end_to_all_packets_that_wait() {
        let mut packets = HeldPackets::default();
        (0..5000).for_each(|target| packets.keep(held(target, 0, 0)));
        assert_eq!((packets.len(), packets.forgotten()), (HELD_PACKETS_MAX, 5000 - HELD_PACKETS_MAX as u64));
        assert!(packets.take(E1, IpAddr::V4(0.into()), 0).is_empty());
        assert_eq!(packets.take(E1, IpAddr::V4(4999.into()), 0).len(), 1);
    }

    #[test]
    fn what_waits_too_long_is_forgotten_even_when_the_answer_comes() {
        let mut packets = HeldPackets::default();
        packets.keep(held(7, 0, 0));
        packets.keep(held(7, 1, 1));
        assert_eq!(names(&packets.take(E1, IpAddr::V4(7.into()), HELD_FOR_NS)), [1]);
        assert_eq!(packets.forgotten(), 1);
    }

    #[test]
    fn an_interface_that_goes_takes_what_waits_with_it() {
        for gone in [E0, E1] {
            let mut packets = HeldPackets::default();
            packets.keep(held(7, 0, 0));
            packets.forget_interface(InterfaceId(2));
            assert_eq!(packets.len(), 1);
            packets.forget_interface(gone);
            assert_eq!((packets.len(), packets.forgotten()), (0, 1));
        }
    }
}
