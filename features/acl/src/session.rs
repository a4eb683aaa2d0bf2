//! A session: one cache line of eight words that both directions of a flow share.
//!
//! | word | content |
//! | --- | --- |
//! | 0, 1 | address of the low end, of two halves; an IPv4 address stands in the second one |
//! | 2, 3 | address of the high end |
//! | 4 | ports of the low and the high end (16 bits each), protocol (8), flags (3), interface |
//! | 5 | second of the last packet (32 bits), epoch of its lists (32): 0 when it is over |
//! | 6 | fields of the packet that made it (32 bits, `quiver_classifier::field`), [`Flags`] (32) |
//! | 7 | state of TCP |
//!
//! Words 0 to 4 are the key. The end with the smaller address, then port, is the low one, so that
//! both directions have the same key. A query of ICMP has its identifier as the port of the end
//! that requests, and its type as that of the other one.
//!
//! Words 5 and 7 are stored by any worker, the others by the owner before the session is found.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_access_lists::CUT;
use quiver_classifier::{Classified, Key, field};
use quiver_tables::prefix::Address;
use quiver_tables::sessions::{SessionObjects, SessionTable, SessionsWriter};
use quiver_translation::tcp::{Direction as Sender, Tcp, flag};
use quiver_wire::IpProtocol;

use crate::tables::Direction;

/// Words of a session: one cache line.
pub(crate) const WORDS: usize = 8;
/// Words of a key.
pub(crate) const KEY_WORDS: usize = 5;
const SEEN: usize = 5;
const MADE: usize = 6;
const TCP: usize = 7;

/// The objects.
pub(crate) type Objects = SessionObjects<WORDS, KEY_WORDS, 1>;
/// What workers look up in.
pub(crate) type Table = SessionTable<WORDS, KEY_WORDS, 1>;
/// Who makes sessions.
pub(crate) type Writer = SessionsWriter<WORDS, KEY_WORDS, 1>;
/// The key of both directions.
pub(crate) type SessionKey = [u64; KEY_WORDS];

/// The key of no packet.
pub(crate) const NO_KEY: SessionKey = [0; KEY_WORDS];

/// Every key has this bit.
const PRESENT: u64 = 1 << 23;
/// The addresses are of IPv6.
const IS_IP6: u64 = 1 << 22;
/// The end that requests by ICMP is the high one.
const HIGH_REQUESTS: u64 = 1 << 21;
const INTERFACE: u64 = (1 << 21) - 1;

/// What made a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// The high end began.
    const HIGH_BEGAN: u32 = 1;
    /// The list filters what the interface sends.
    const OUTPUT: u32 = 2;
    /// Above this bit stands the number of the interface that received the first packet.
    const RECEIVER_SHIFT: u32 = 2;
}

/// Which timeout holds for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// All but TCP.
    Udp = 0,
    /// TCP, established.
    TcpIdle = 1,
    /// TCP that is opening or over.
    TcpTransient = 2,
}

/// The two ends of a packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow<A> {
    pub source: A,
    pub destination: A,
    pub ports: (u16, u16),
    pub protocol: u8,
    /// Of a query of ICMP: is it the answer?
    pub is_reply: Option<bool>,
}

impl<A: Classified> Flow<A> {
    /// The key on an interface, and whether the packet comes from the high end.
    #[inline(always)]
    pub fn key(self, interface: u32) -> (SessionKey, bool) {
        let (from, to) = (self.source.halves(), self.destination.halves());
        let (from_port, to_port) = (u64::from(self.ports.0), u64::from(self.ports.1));
        // Either end may be the high one: a branch would be foreseen half of the time.
        let is_high = match A::BITS {
            32 => from.1 << 16 | from_port > to.1 << 16 | to_port,
            _ => {
                let whole = |(high, low): (u64, u64)| u128::from(high) << 64 | u128::from(low);
                let (from, to) = (whole(from), whole(to));
                (from > to) | ((from == to) & (from_port > to_port))
            }
        };
        let swaps = u64::from(is_high).wrapping_neg();
        let in_order = |from: u64, to: u64| {
            let differs = (from ^ to) & swaps;
            (from ^ differs, to ^ differs)
        };
        let (low, high) = (in_order(from.0, to.0), in_order(from.1, to.1));
        let (low, high) = ((low.0, high.0), (low.1, high.1));
        let (low_port, high_port) = in_order(from_port, to_port);
        let family = if A::BITS == 128 { IS_IP6 } else { 0 };
        let requests = match self.is_reply {
            Some(is_reply) if is_reply != is_high => HIGH_REQUESTS,
            _ => 0,
        };
        let rest = low_port << 48
            | high_port << 32
            | u64::from(self.protocol) << 24
            | PRESENT
            | family
            | requests
            | u64::from(interface) & INTERFACE;
        ([low.0, low.1, high.0, high.1, rest], is_high)
    }
}

/// Are a packet's ports known without another look at it, or needs it none?
#[inline(always)]
pub(crate) fn is_direct(fields: u32) -> bool {
    let protocol = IpProtocol((fields & field::PROTOCOL) as u8);
    let is_known = fields & (field::UPPER | field::ANY_UPPER | CUT) == field::UPPER;
    let is_icmp = (protocol == IpProtocol::ICMP) | (protocol == IpProtocol::ICMP6);
    (is_known | !protocol.has_ports()) & !is_icmp
}

/// The flow of a packet that is [direct](is_direct).
#[inline(always)]
pub(crate) fn flow_of<A: Classified>(key: &Key<A>) -> Flow<A> {
    Flow {
        source: key.source,
        destination: key.destination,
        ports: (key.source_port, key.destination_port),
        protocol: (key.fields & field::PROTOCOL) as u8,
        is_reply: None,
    }
}

/// Word 5 of a session that the lists of an epoch permit and whose last packet came in a second.
#[inline(always)]
pub(crate) fn seen_word(epoch: u32, second: u32) -> u64 {
    u64::from(second) | u64::from(epoch) << 32
}

/// The TCP flags of a packet, of its fields.
#[inline(always)]
pub(crate) fn tcp_flags(fields: u32) -> u8 {
    (fields >> field::TCP_FLAGS_SHIFT) as u8
}

/// Does a packet with these fields begin a session? A connection begins with SYN alone.
pub(crate) fn opens(fields: u32) -> bool {
    let all = flag::SYN | flag::ACK | flag::RST | flag::FIN;
    fields & field::PROTOCOL != u32::from(IpProtocol::TCP.0) || tcp_flags(fields) & all == flag::SYN
}

/// What makes a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSession {
    pub key: SessionKey,
    /// Does its first packet come from the high end?
    pub is_high: bool,
    /// The first packet's fields.
    pub fields: u32,
    /// The direction that the list filters.
    pub direction: Direction,
    /// The interface that received the first packet.
    pub rx: u32,
    pub epoch: u32,
    pub now_s: u32,
}

impl NewSession {
    /// The words.
    pub fn words(&self) -> [u64; WORDS] {
        let mut flags = if self.is_high { Flags::HIGH_BEGAN } else { 0 };
        if self.direction == Direction::Output {
            flags |= Flags::OUTPUT;
        }
        flags |= self.rx << Flags::RECEIVER_SHIFT;
        let is_tcp = self.fields & field::PROTOCOL == u32::from(IpProtocol::TCP.0);
        let tcp = match is_tcp {
            true => Tcp::default().after(Sender::InToOut, tcp_flags(self.fields)),
            false => Tcp::default(),
        };
        let [a, b, c, d, e] = self.key;
        let seen = seen_word(self.epoch, self.now_s);
        [a, b, c, d, e, seen, u64::from(self.fields) | u64::from(flags) << 32, tcp.0.into()]
    }
}

/// A session as everybody reads it.
#[derive(Clone, Copy)]
pub(crate) struct Session<'o>(pub &'o [AtomicU64; WORDS]);

impl Session<'_> {
    #[inline(always)]
    fn word(self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }

    /// Its key.
    pub fn key(self) -> SessionKey {
        std::array::from_fn(|at| self.word(at))
    }

    /// The number of its interface.
    pub fn interface(self) -> u32 {
        (self.word(4) & INTERFACE) as u32
    }

    pub fn is_ip6(self) -> bool {
        self.word(4) & IS_IP6 != 0
    }

    pub fn protocol(self) -> u8 {
        (self.word(4) >> 24) as u8
    }

    fn flags(self) -> Flags {
        Flags((self.word(MADE) >> 32) as u32)
    }

    fn high_began(self) -> bool {
        self.flags().0 & Flags::HIGH_BEGAN != 0
    }

    /// The direction that the list filters which permitted it.
    pub fn direction(self) -> Direction {
        match self.flags().0 & Flags::OUTPUT {
            0 => Direction::Input,
            _ => Direction::Output,
        }
    }

    /// Addresses and ports of both ends, that of the one who began first.
    pub fn ends(self) -> [(IpAddr, u16); 2] {
        let address = |high: u64, low: u64| match self.is_ip6() {
            true => IpAddr::V6(Ipv6Addr::from_bits(u128::from_halves(high, low))),
            false => IpAddr::V4(Ipv4Addr::from_bits(low as u32)),
        };
        let low = (address(self.word(0), self.word(1)), (self.word(4) >> 48) as u16);
        let high = (address(self.word(2), self.word(3)), (self.word(4) >> 32) as u16);
        if self.high_began() { [high, low] } else { [low, high] }
    }

    /// The packet that made it, as rules see it. Its length is not known any more.
    pub fn first_packet<A: Classified>(self) -> Key<A> {
        let [from, to] = [(0, 48), (2, 32)].map(|(at, shift)| {
            let address = A::from_halves(self.word(at), self.word(at + 1));
            (address, (self.word(4) >> shift) as u16)
        });
        let (source, destination) = if self.high_began() { (to, from) } else { (from, to) };
        let is_icmp = [IpProtocol::ICMP.0, IpProtocol::ICMP6.0].contains(&self.protocol());
        // Of a query, rules see type and code.
        let ports = if is_icmp { (destination.1, 0) } else { (source.1, destination.1) };
        Key {
            source: source.0,
            destination: destination.0,
            source_port: ports.0,
            destination_port: ports.1,
            fields: self.word(MADE) as u32,
            length: 0,
            rx: self.flags().0 >> Flags::RECEIVER_SHIFT,
            owner: self.interface(),
        }
    }

    /// The epoch of the lists that permitted it; 0 when it is over.
    #[inline(always)]
    pub fn epoch(self) -> u32 {
        (self.word(SEEN) >> 32) as u32
    }

    /// Does a packet with these fields, in the second that [`seen_word`] has, leave the session as
    /// it is, and belongs to it?
    #[inline(always)]
    pub fn stays(self, seen: u64, fields: u32) -> bool {
        let is_tcp = fields & field::PROTOCOL == u32::from(IpProtocol::TCP.0);
        (self.word(SEEN) == seen) & (!is_tcp | self.tcp().stays(tcp_flags(fields)))
    }

    /// The lists of an epoch permit it.
    pub fn set_epoch(self, epoch: u32) {
        let seen_s = u64::from(self.seen_s());
        self.0[SEEN].store(seen_s | u64::from(epoch) << 32, Ordering::Relaxed);
    }

    /// Seconds, when its last packet came.
    pub fn seen_s(self) -> u32 {
        self.word(SEEN) as u32
    }

    /// A packet came. The line is stored to at most once a second.
    #[inline(always)]
    pub fn refresh(self, now_s: u32) {
        let word = self.word(SEEN);
        if word as u32 != now_s {
            self.0[SEEN].store(word >> 32 << 32 | u64::from(now_s), Ordering::Relaxed);
        }
    }

    /// The state of TCP.
    #[inline(always)]
    pub fn tcp(self) -> Tcp {
        Tcp(self.word(TCP) as u8)
    }

    /// A packet of TCP with these flags came from the end that is high, or from the other one. Does
    /// it belong to the session? A connection that is over is opened again only by the end that
    /// began it.
    #[cold]
    pub fn track(self, is_high: bool, flags: u8) -> bool {
        let before = self.tcp();
        let sender = match is_high == self.high_began() {
            true => Sender::InToOut,
            false => Sender::OutToIn,
        };
        let opens = flags & (flag::SYN | flag::ACK) == flag::SYN;
        let is_over = before.is_closed() || before.is_reset();
        if opens && is_over && sender == Sender::OutToIn {
            return false;
        }
        let after = before.after(sender, flags);
        if after != before {
            self.0[TCP].store(after.0.into(), Ordering::Relaxed);
        }
        true
    }

    /// Which timeout holds.
    pub fn class(self) -> Class {
        match IpProtocol(self.protocol()) {
            IpProtocol::TCP if self.tcp().is_established() => Class::TcpIdle,
            IpProtocol::TCP => Class::TcpTransient,
            _ => Class::Udp,
        }
    }

    /// Is it a connection that both ends have not opened yet?
    pub fn is_opening(self) -> bool {
        self.class() == Class::TcpTransient && self.tcp().word() == "opening"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(ports: (u16, u16), protocol: u8) -> Flow<u32> {
        Flow { source: 9, destination: 5, ports, protocol, is_reply: None }
    }

    fn reversed<A: Copy>(flow: Flow<A>) -> Flow<A> {
        Flow {
            source: flow.destination,
            destination: flow.source,
            ports: (flow.ports.1, flow.ports.0),
            is_reply: flow.is_reply.map(|is_reply| !is_reply),
            ..flow
        }
    }

    proptest! {
        #[test]
        fn both_directions_have_one_key_and_different_ends(
            source: u128, destination: u128, ports: (u16, u16), protocol: u8,
            is_reply: Option<bool>, interface in 0u32..8192,
        ) {
            prop_assume!((source, ports.0) != (destination, ports.1));
            let flow = Flow { source, destination, ports, protocol, is_reply };
            let ((key, one), (back, other)) =
                (flow.key(interface), reversed(flow).key(interface));
            prop_assert_eq!(key, back);
            prop_assert_ne!(one, other);
            prop_assert_ne!(key, flow.key(interface + 1).0);
            let words = NewSession {
                key, is_high: one, fields: protocol.into(), direction: Direction::Output,
                rx: 8191, epoch: 3, now_s: 7,
            }.words().map(AtomicU64::new);
            let session = Session(&words);
            prop_assert_eq!(session.key(), key);
            prop_assert_eq!((session.epoch(), session.seen_s()), (3, 7));
            prop_assert_eq!(session.direction(), Direction::Output);
            prop_assert_eq!(session.interface(), interface);
            prop_assert_eq!(session.first_packet::<u128>().rx, 8191);
            let ends = session.ends();
            prop_assert_eq!(ends[0], (IpAddr::V6(Ipv6Addr::from_bits(source)), ports.0));
            prop_assert_eq!(ends[1], (IpAddr::V6(Ipv6Addr::from_bits(destination)), ports.1));
        }
    }

    /// Addresses and ports that are often the same, or nearly.
    fn near() -> impl Strategy<Value = (u128, u16)> {
        let halves = prop::sample::select(vec![0_u64, 1, 2, u64::MAX]);
        let address = (halves.clone(), halves).prop_map(|(high, low)| u128::from_halves(high, low));
        (address, prop::sample::select(vec![0_u16, 1, u16::MAX]))
    }

    /// The words of a flow's ends as a comparison of pairs puts them in order, and whether the
    /// source is the high one.
    fn by_comparison<A: Classified>(flow: Flow<A>) -> ([u64; 4], u64, bool) {
        let from = (flow.source.halves(), flow.ports.0);
        let to = (flow.destination.halves(), flow.ports.1);
        let ((low, low_port), (high, high_port)) = (from.min(to), from.max(to));
        let ports = u64::from(low_port) << 16 | u64::from(high_port);
        ([low.0, low.1, high.0, high.1], ports, from > to)
    }

    proptest! {
        #[test]
        fn the_end_with_the_smaller_address_then_port_is_the_low_one(
            one in prop_oneof![near(), any::<(u128, u16)>()],
            other in prop_oneof![near(), any::<(u128, u16)>()],
        ) {
            let ports = (one.1, other.1);
            let flow =
                Flow { source: one.0, destination: other.0, ports, protocol: 6, is_reply: None };
            let (key, is_high) = flow.key(7);
            let found = ([key[0], key[1], key[2], key[3]], key[4] >> 32, is_high);
            prop_assert_eq!(found, by_comparison(flow));
            let flow = Flow {
                source: one.0 as u32,
                destination: other.0 as u32,
                ports,
                protocol: 6,
                is_reply: None,
            };
            let (key, is_high) = flow.key(7);
            let found = ([key[0], key[1], key[2], key[3]], key[4] >> 32, is_high);
            prop_assert_eq!(found, by_comparison(flow));
        }

        #[test]
        fn what_stays_needs_neither_another_epoch_nor_second_nor_state(
            epochs in (0_u32..3, 0_u32..3), seconds in (5_u32..7, 5_u32..7), is_high: bool,
            protocol in prop::sample::select(vec![1_u8, 6, 17]),
            flags: u8, before in prop::collection::vec((any::<bool>(), any::<u8>()), 0..4),
        ) {
            let fields = u32::from(protocol) | u32::from(flags) << field::TCP_FLAGS_SHIFT;
            let (key, first_is_high) = flow((1000, 80), protocol).key(1);
            let (epoch, now_s) = (epochs.0, seconds.0);
            let new = NewSession {
                key, is_high: first_is_high, fields: protocol.into(), direction: Direction::Input,
                rx: 1, epoch, now_s,
            };
            let words = new.words().map(AtomicU64::new);
            let session = Session(&words);
            for (is_high, flags) in before {
                if protocol == 6 {
                    session.track(is_high, flags);
                }
            }
            let as_they_are = || words.each_ref().map(|word| word.load(Ordering::Relaxed));
            let unchanged = as_they_are();
            let stays = session.stays(seen_word(epochs.1, seconds.1), fields);
            let is_settled = protocol != 6 || session.tcp().stays(flags);
            prop_assert_eq!(stays, epochs.0 == epochs.1 && seconds.0 == seconds.1 && is_settled);
            if stays {
                prop_assert!(protocol != 6 || session.track(is_high, flags));
                session.refresh(seconds.1);
            }
            prop_assert_eq!(as_they_are(), unchanged);
        }
    }

    #[test]
    fn the_other_end_cannot_request_with_the_identifier_of_a_query() {
        let request = Flow { is_reply: Some(false), ..flow((8, 8), 1) };
        let other = Flow { is_reply: Some(false), ..reversed(request) };
        assert_ne!(request.key(1).0, other.key(1).0);
        assert_eq!(request.key(1).0, reversed(request).key(1).0);
    }

    #[test]
    fn a_connection_that_is_over_is_opened_again_only_by_the_end_that_began_it() {
        let (key, is_high) = flow((1000, 80), 6).key(1);
        let fields = 6 | u32::from(flag::SYN) << field::TCP_FLAGS_SHIFT;
        let direction = Direction::Input;
        let new = NewSession { key, is_high, fields, direction, rx: 1, epoch: 1, now_s: 1 };
        let words = new.words().map(AtomicU64::new);
        let session = Session(&words);
        assert!(session.is_opening());
        assert!(
            session.track(!is_high, flag::SYN | flag::ACK) && session.track(is_high, flag::ACK)
        );
        assert_eq!(session.class(), Class::TcpIdle);
        assert!(session.track(!is_high, flag::RST));
        assert_eq!(session.class(), Class::TcpTransient);
        assert!(!session.track(!is_high, flag::SYN));
        assert!(session.track(is_high, flag::ACK), "the RST was not the end");
        assert_eq!(session.class(), Class::TcpIdle);
    }
}
