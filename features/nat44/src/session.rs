//! A session: one line of eight words that both directions share.
//!
//! | word | content |
//! | --- | --- |
//! | 0, 1 | key of packets from inside ([`quiver_translation::flow`]) |
//! | 2, 3 | key of packets from outside |
//! | 4 | second in which it was last refreshed (32 bits), mark (32): 0 when a packet did it here |
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

use quiver_translation::checksum::deltas;
use quiver_translation::flow::{Flow, Key};
pub(crate) use quiver_translation::tcp::{Direction, Tcp, flag};

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

    /// Its packets go to the slow path, which translates their text.
    pub const HELPED: Flags = Flags(1024);
    /// It was expected by a helper.
    pub const EXPECTED: Flags = Flags(2048);
    /// It is a call of PPTP, in one direction.
    pub const CALL: Flags = Flags(4096);

    /// Without what stands on bindings.
    pub fn without_bindings(self) -> Flags {
        let all =
            [Flags::COUNTED, Flags::LIMITED, Flags::MAPPED, Flags::IN_BLOCK, Flags::PERMITTED];
        Flags(all.into_iter().fold(self.0, |left, flag| left & !flag.0))
    }

    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
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

impl NewSession {
    /// The words of a session that another router has told of.
    pub fn peer_words(&self, mark: u32, tcp: u8) -> [u64; WORDS] {
        let mut words = self.words();
        words[SEEN] = seen_word(self.now_s, mark);
        words[TCP] = tcp.into();
        words
    }
}

fn seen_word(seen_s: u32, mark: u32) -> u64 {
    u64::from(seen_s) | u64::from(mark) << 32
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

    /// Which time it was that another router told all, when this was told; 0 when a packet came
    /// here since, or made it.
    pub fn mark(self) -> u32 {
        (self.word(SEEN) >> 32) as u32
    }

    /// Another router tells how the session stands there.
    pub fn set_by_peer(self, seen_s: u32, mark: u32, tcp: u8) {
        self.0[TCP].store(tcp.into(), Ordering::Relaxed);
        self.0[SEEN].store(seen_word(seen_s, mark), Ordering::Relaxed);
    }

    /// A packet came. Packets from outside refresh TCP alone (RFC 4787 REQ-6, RFC 5382 §5).
    #[inline(always)]
    pub fn refresh(self, direction: Direction, is_tcp: bool, now_s: u32) {
        let refreshes = direction == Direction::InToOut || is_tcp || self.refreshes_from_outside();
        if refreshes && self.word(SEEN) != u64::from(now_s) {
            self.0[SEEN].store(now_s.into(), Ordering::Relaxed);
        }
    }

    /// Do packets from outside refresh it, too? Those of a call have one direction.
    #[inline(always)]
    fn refreshes_from_outside(self) -> bool {
        self.flags().has(Flags::HAIRPIN.with(Flags::CALL))
    }

    /// Does the slow path translate its packets' text?
    #[inline(always)]
    pub fn is_helped(self) -> bool {
        self.flags().has(Flags::HELPED)
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
    use quiver_translation::flow::End;

    const IN: Direction = Direction::InToOut;
    const OUT: Direction = Direction::OutToIn;

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
