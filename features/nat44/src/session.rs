//! A session: one line of eight words that both directions share.
//!
//! | word | content |
//! | --- | --- |
//! | 0, 1 | key of packets from inside ([`crate::key`]) |
//! | 2, 3 | key of packets from outside |
//! | 4 | second in which it was last refreshed |
//! | 5 | state of TCP ([`Tcp`]) |
//! | 6 | for each direction 16 bits that the IPv4 checksum gets, 16 that the upper layer's gets |
//! | 7 | for each direction the table that translated packets are routed in (24 bits), flags (16) |
//!
//! A packet that one key finds gets the addresses and ports of the other key, reversed. So a
//! session may translate either end, or both (hairpinning).
//!
//! Words 4 and 5 are stored by any worker, the others by the owner before the session is found.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_tables::sessions::{SessionObjects, SessionTable, SessionsWriter};
use quiver_wire::IpProtocol;

use crate::key::{Flow, Key};

/// Words of a session: one cache line.
pub(crate) const WORDS: usize = 8;
/// Words of a key.
const KEY_WORDS: usize = 2;
const SEEN: usize = 4;
const TCP: usize = 5;
const DELTAS: usize = 6;
const INFO: usize = 7;

/// The objects.
pub(crate) type Objects = SessionObjects<WORDS, KEY_WORDS>;
/// What workers look up in.
pub(crate) type Table = SessionTable<WORDS, KEY_WORDS>;
/// Who makes sessions.
pub(crate) type Writer = SessionsWriter<WORDS, KEY_WORDS>;

/// From inside, or from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    InToOut = 0,
    OutToIn = 1,
}

impl Direction {
    /// Of an index that the session table has found.
    #[inline(always)]
    pub fn of_index(index: u32) -> Direction {
        if index & 1 == 0 { Direction::InToOut } else { Direction::OutToIn }
    }

    /// The other one.
    #[inline(always)]
    pub fn other(self) -> Direction {
        match self {
            Direction::InToOut => Direction::OutToIn,
            Direction::OutToIn => Direction::InToOut,
        }
    }
}

/// Flags of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Flags(pub u16);

impl Flags {
    /// A static mapping made it.
    pub const STATIC: Flags = Flags(1);
    /// Both ends are inside: both are translated.
    pub const HAIRPIN: Flags = Flags(2);
    /// It counts as one of its subscriber.
    pub const COUNTED: Flags = Flags(4);
    /// It counts as one of its table.
    pub const LIMITED: Flags = Flags(8);
    /// It uses an endpoint-independent mapping.
    pub const MAPPED: Flags = Flags(16);
    /// It uses a port of a block.
    pub const IN_BLOCK: Flags = Flags(32);
    /// Its remote address has a permission.
    pub const PERMITTED: Flags = Flags(64);
    /// Its external end is of the pool.
    pub const POOLED: Flags = Flags(128);
    /// The remote end is translated, too.
    pub const TWICE: Flags = Flags(256);
    /// A load-balancing mapping made it.
    pub const BALANCED: Flags = Flags(512);

    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

/// How a connection stands (RFC 7857 §2): bits of word 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Tcp(pub u8);

/// Flags of a TCP header.
pub(crate) mod flag {
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const RST: u8 = 4;
    pub const ACK: u8 = 16;
}

impl Tcp {
    const SYN: u8 = 1; // from inside; shifted by one: from outside
    const FIN: u8 = 4;
    const RESET: u8 = 16;
    const ESTABLISHED: u8 = 32;

    /// Both ends have sent SYN, and an ACK came behind.
    #[inline(always)]
    pub fn is_established(self) -> bool {
        self.0 & (Self::ESTABLISHED | Self::RESET) == Self::ESTABLISHED && !self.is_closed()
    }

    /// Both ends have sent FIN.
    #[inline(always)]
    pub fn is_closed(self) -> bool {
        self.0 & (3 * Self::FIN) == 3 * Self::FIN
    }

    /// One of them has sent RST, and nothing came since.
    pub fn is_reset(self) -> bool {
        self.0 & Self::RESET != 0
    }

    /// May a packet with these flags leave the state as it is?
    #[inline(always)]
    pub fn stays(self, flags: u8) -> bool {
        flags & (flag::SYN | flag::FIN | flag::RST) == 0 && self.is_established()
    }

    /// After a packet with `flags`. A SYN on a connection that is over begins a new one. A packet
    /// behind a RST says that the RST was not the end (RFC 6146 §3.5.2.2).
    pub fn after(self, direction: Direction, flags: u8) -> Tcp {
        let shift = direction as u8;
        if flags & flag::RST != 0 {
            return Tcp(self.0 | Self::RESET);
        }
        if flags & flag::SYN != 0 {
            let over = self.is_closed() || (self.is_reset() && flags & flag::ACK == 0);
            let before = if over { 0 } else { self.0 & !Self::RESET };
            return Tcp(before | Self::SYN << shift);
        }
        let mut state = self.0 & !Self::RESET;
        if flags & flag::FIN != 0 {
            state |= Self::FIN << shift;
        }
        if state & (3 * Self::SYN) == 3 * Self::SYN && flags & flag::ACK != 0 {
            state |= Self::ESTABLISHED;
        }
        Tcp(state)
    }

    /// For operators.
    pub fn word(self) -> &'static str {
        if self.is_reset() {
            "reset"
        } else if self.is_closed() {
            "closed"
        } else if self.0 & (3 * Self::FIN) != 0 {
            "closing"
        } else if self.is_established() {
            "established"
        } else {
            "opening"
        }
    }
}

/// Which timeout holds for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Udp = 0,
    TcpEstablished = 1,
    TcpTransitory = 2,
    Icmp = 3,
    Other = 4,
}

/// What makes a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSession {
    /// The flow of its packets from inside.
    pub inside: Flow,
    /// The flow of its packets from outside.
    pub outside: Flow,
    pub flags: Flags,
    pub now_s: u32,
    /// Of the packet that makes it: where it comes from, and its TCP flags.
    pub first: (Direction, u8),
}

/// The one's complement sum of 16-bit words, not folded.
fn sum(words: impl IntoIterator<Item = u16>) -> u32 {
    words.into_iter().map(u32::from).sum()
}

fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

fn address_words(flow: &Flow) -> [u16; 4] {
    let (source, destination) = (flow.source.address, flow.destination.address);
    [(source >> 16) as u16, source as u16, (destination >> 16) as u16, destination as u16]
}

/// What a checksum gets when the words `old` become `new` (RFC 1624 §3): `~m + m'`.
fn delta(old: &[u16], new: &[u16]) -> u16 {
    fold(sum(old.iter().map(|word| !word)) + sum(new.iter().copied()))
}

/// A checksum after `delta` was added.
#[inline(always)]
pub(crate) fn adjusted(checksum: u16, delta: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(delta);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// What is added to the checksums of a packet of flow `from` that becomes one of flow `to`: to that
/// of IPv4, and to that of the upper layer.
fn deltas(from: &Flow, to: &Flow) -> (u16, u16) {
    let addresses = delta(&address_words(from), &address_words(to));
    if from.is_icmp() {
        return (addresses, delta(&[from.source.port], &[to.source.port]));
    }
    let ports = |flow: &Flow| [flow.source.port, flow.destination.port];
    let upper = fold(u32::from(addresses) + u32::from(delta(&ports(from), &ports(to))));
    (addresses, upper)
}

impl NewSession {
    /// The words.
    pub fn words(&self) -> [u64; WORDS] {
        let (inside, outside) = (self.inside.key(), self.outside.key());
        let there = deltas(&self.inside, &self.outside.reversed());
        let back = deltas(&self.outside, &self.inside.reversed());
        let pair = |(ip, upper): (u16, u16)| u64::from(ip) | u64::from(upper) << 16;
        let tcp = match self.inside.protocol {
            IpProtocol::TCP => Tcp::default().after(self.first.0, self.first.1),
            _ => Tcp::default(),
        };
        [
            inside[0],
            inside[1],
            outside[0],
            outside[1],
            self.now_s.into(),
            tcp.0.into(),
            pair(there) | pair(back) << 32,
            u64::from(self.outside.table)
                | u64::from(self.inside.table) << 24
                | u64::from(self.flags.0) << 48,
        ]
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

    /// The key of a direction's packets.
    #[inline(always)]
    pub fn key(self, direction: Direction) -> Key {
        let first = KEY_WORDS * direction as usize;
        [self.word(first), self.word(first + 1)]
    }

    /// The flow of a direction's packets as they come.
    pub fn flow(self, direction: Direction) -> Flow {
        Flow::of(self.key(direction))
    }

    /// What is added to the checksums of a direction's packets: IPv4, upper layer.
    #[inline(always)]
    pub fn deltas(self, direction: Direction) -> (u16, u16) {
        let word = self.word(DELTAS) >> (32 * direction as u32);
        (word as u16, (word >> 16) as u16)
    }

    /// Small number of the table that a direction's translated packets are routed in.
    #[inline(always)]
    pub fn next_table(self, direction: Direction) -> u32 {
        (self.word(INFO) >> (24 * direction as u32)) as u32 & 0xff_ffff
    }

    pub fn flags(self) -> Flags {
        Flags((self.word(INFO) >> 48) as u16)
    }

    /// Seconds, when it was last refreshed.
    pub fn seen_s(self) -> u32 {
        self.word(SEEN) as u32
    }

    /// A packet came. Packets from outside refresh TCP alone (RFC 4787 REQ-6, RFC 5382 §5).
    #[inline(always)]
    pub fn refresh(self, direction: Direction, is_tcp: bool, now_s: u32) {
        let refreshes = direction == Direction::InToOut || is_tcp || self.flags_hairpin();
        if refreshes && self.word(SEEN) != u64::from(now_s) {
            self.0[SEEN].store(now_s.into(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn flags_hairpin(self) -> bool {
        self.flags().has(Flags::HAIRPIN)
    }

    /// The state of TCP.
    #[inline(always)]
    pub fn tcp(self) -> Tcp {
        Tcp(self.word(TCP) as u8)
    }

    /// A packet of TCP with these flags came.
    #[cold]
    pub fn track(self, direction: Direction, flags: u8) {
        let before = self.tcp();
        let after = before.after(direction, flags);
        if after != before {
            self.0[TCP].store(after.0.into(), Ordering::Relaxed);
        }
    }

    /// Which timeout holds.
    pub fn class(self) -> Class {
        match self.flow(Direction::InToOut).protocol {
            IpProtocol::TCP if self.tcp().is_established() => Class::TcpEstablished,
            IpProtocol::TCP => Class::TcpTransitory,
            IpProtocol::UDP => Class::Udp,
            IpProtocol::ICMP => Class::Icmp,
            _ => Class::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::End;
    use proptest::prelude::*;
    use quiver_wire::checksum::Sum;

    const IN: Direction = Direction::InToOut;
    const OUT: Direction = Direction::OutToIn;

    fn run(packets: &[(Direction, u8)]) -> Tcp {
        packets.iter().fold(Tcp::default(), |state, (from, flags)| state.after(*from, *flags))
    }

    #[test]
    fn a_handshake_establishes_and_two_fins_close() {
        let open = [(IN, flag::SYN), (OUT, flag::SYN | flag::ACK), (IN, flag::ACK)];
        assert_eq!(run(&open[..2]).word(), "opening");
        assert!(run(&open).is_established());
        let closed = run(&[
            &open[..],
            &[(IN, flag::FIN | flag::ACK), (OUT, flag::FIN | flag::ACK)],
        ]
        .concat());
        assert!(closed.is_closed() && !closed.is_established());
        assert_eq!(closed.after(IN, flag::ACK).word(), "closed");
        assert_eq!(closed.after(IN, flag::SYN).word(), "opening");
    }

    #[test]
    fn a_simultaneous_open_establishes() {
        let open = run(&[(IN, flag::SYN), (OUT, flag::SYN), (IN, flag::SYN | flag::ACK)]);
        assert!(open.after(OUT, flag::ACK).is_established());
    }

    #[test]
    fn a_reset_ends_a_connection_unless_it_goes_on() {
        let open = run(&[(IN, flag::SYN), (OUT, flag::SYN | flag::ACK), (IN, flag::ACK)]);
        let reset = open.after(OUT, flag::RST);
        assert!(reset.is_reset() && !reset.is_established());
        assert!(reset.after(OUT, flag::ACK).is_established());
        assert_eq!(reset.after(IN, flag::SYN).word(), "opening");
    }

    proptest! {
        /// What a delta makes of a checksum is the checksum of the new words.
        #[test]
        fn a_delta_makes_the_checksum_of_the_new_words(
            old: [u16; 6], new: [u16; 6], rest: [u16; 3],
        ) {
            prop_assume!(rest != [0; 3]);
            let of = |words: &[u16; 6]| {
                let sum = words.iter().chain(&rest).fold(Sum::new(), |sum, word| sum.word(*word));
                sum.checksum()
            };
            prop_assert_eq!(adjusted(of(&old), delta(&old, &new)), of(&new));
        }

        /// No sequence of packets makes an established connection of one that an end has not
        /// opened.
        #[test]
        fn both_ends_open_a_connection(packets: Vec<(bool, u8)>) {
            let mut state = Tcp::default();
            let mut opened = [false; 2];
            for (outward, flags) in packets {
                let from = if outward { IN } else { OUT };
                if flags & (flag::SYN | flag::RST) == flag::SYN {
                    opened[from as usize] = true;
                }
                state = state.after(from, flags);
                prop_assert!(!state.is_established() || opened == [true; 2]);
            }
        }
    }

    #[test]
    fn a_session_says_what_made_it() {
        let end = |address, port| End { address, port };
        let flow = |source, destination, table| Flow {
            source,
            destination,
            protocol: IpProtocol::UDP,
            table,
        };
        let (host, pool, remote) = (end(1, 10), end(2, 20), end(3, 30));
        let new = NewSession {
            inside: flow(host, remote, 5),
            outside: flow(remote, pool, 6),
            flags: Flags::STATIC,
            now_s: 77,
            first: (IN, 0),
        };
        let words = new.words().map(AtomicU64::new);
        let session = Session(&words);
        assert_eq!((session.flow(IN), session.flow(OUT)), (new.inside, new.outside));
        assert_eq!((session.next_table(IN), session.next_table(OUT)), (6, 5));
        assert!(session.flags().has(Flags::STATIC) && !session.flags().has(Flags::HAIRPIN));
        session.refresh(OUT, false, 78);
        assert_eq!((session.seen_s(), session.class()), (77, Class::Udp));
        session.refresh(IN, false, 78);
        assert_eq!(session.seen_s(), 78);
    }
}
