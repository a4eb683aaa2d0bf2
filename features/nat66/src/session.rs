//! A session: sixteen words that both directions share, two cache lines.
//!
//! | word | content |
//! | --- | --- |
//! | 0 to 4 | key of packets from inside: host, remote host, ports, protocol, table of the host |
//! | 5 to 9 | key of packets from outside: remote host, external end, table outside |
//! | 10 | second in which it was last refreshed |
//! | 11 | state of TCP ([`Tcp`]) |
//! | 12 | what upper checksums get: outward 16 bits, inward 16 bits; number of the binding |
//! | 13 | flags |
//! | 14, 15 | nothing |
//!
//! Words 10 and 11 are stored by any worker, the others by the owner before the session is found.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_bindings::{Class, Flags};
use quiver_tables::sessions::{SessionObjects, SessionTable, SessionsWriter};
use quiver_translation::ip6::flow::{End, Flow, Key, Side};
use quiver_translation::ip6::rewrite::delta;
use quiver_translation::tcp::{Direction, Tcp};
use quiver_wire::IpProtocol;

/// Words of a session.
pub(crate) const WORDS: usize = 16;
/// Words of a key.
pub(crate) const KEY_WORDS: usize = 5;
const SEEN: usize = 10;
const TCP: usize = 11;
const DELTAS: usize = 12;
const FLAGS: usize = 13;

/// The objects.
pub(crate) type Objects = SessionObjects<WORDS, KEY_WORDS>;
/// What workers look up in.
pub(crate) type Table = SessionTable<WORDS, KEY_WORDS>;
/// Who makes sessions.
pub(crate) type Writer = SessionsWriter<WORDS, KEY_WORDS>;

/// What makes a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSession {
    /// The flow of packets from inside.
    pub inside: Flow,
    /// The external end of the host.
    pub external: End,
    /// Small number of the table outside.
    pub outside_table: u32,
    /// Number of the binding.
    pub binding: u32,
    pub flags: Flags,
    pub now_s: u32,
    /// Of the packet that makes it: where it comes from, and its TCP flags.
    pub first: (Direction, u8),
}

impl NewSession {
    /// The flow of packets from outside.
    pub fn outside(&self) -> Flow {
        let Flow { destination: remote, protocol, .. } = self.inside;
        let port = match protocol {
            IpProtocol::ICMP6 => self.external.port,
            _ => remote.port,
        };
        Flow {
            source: End { port, ..remote },
            destination: self.external,
            protocol,
            table: self.outside_table,
        }
    }

    /// The words.
    pub fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..KEY_WORDS].copy_from_slice(&self.inside.key(Side::Inside));
        words[KEY_WORDS..2 * KEY_WORDS].copy_from_slice(&self.outside().key(Side::Outside));
        let (host, external) = (self.inside.source, self.external);
        let (there, back) = (delta(host, external), delta(external, host));
        if self.inside.protocol == IpProtocol::TCP {
            words[TCP] = Tcp::default().after(self.first.0, self.first.1).0.into();
        }
        words[SEEN] = self.now_s.into();
        words[DELTAS] = u64::from(there) | u64::from(back) << 16 | u64::from(self.binding) << 32;
        words[FLAGS] = self.flags.0.into();
        words
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

    fn key(self, first: usize) -> Key {
        std::array::from_fn(|at| self.word(first + at))
    }

    /// The flow of packets from inside.
    pub fn inside(self) -> Flow {
        Flow::of(self.key(0))
    }

    /// The flow of packets from outside.
    pub fn outside(self) -> Flow {
        Flow::of(self.key(KEY_WORDS))
    }

    /// The key of packets from inside.
    pub fn inside_key(self) -> Key {
        self.key(0)
    }

    /// The host's end.
    #[inline(always)]
    pub fn host(self) -> End {
        let address = u128::from(self.word(0)) << 64 | u128::from(self.word(1));
        End { address, port: (self.word(4) >> 48) as u16 }
    }

    /// Small number of the host's table.
    #[inline(always)]
    pub fn inside_table(self) -> u32 {
        self.inside().table
    }

    /// The host's end as others see it.
    #[inline(always)]
    pub fn external(self) -> End {
        let address = u128::from(self.word(7)) << 64 | u128::from(self.word(8));
        End { address, port: (self.word(9) >> 32) as u16 }
    }

    /// The protocol.
    pub fn protocol(self) -> IpProtocol {
        self.inside().protocol
    }

    /// What is added to the upper layer's checksum of a direction's packets.
    #[inline(always)]
    pub fn delta(self, direction: Direction) -> u16 {
        (self.word(DELTAS) >> (16 * direction as u32)) as u16
    }

    /// Number of its binding.
    pub fn binding(self) -> u32 {
        (self.word(DELTAS) >> 32) as u32
    }

    #[inline(always)]
    pub fn flags(self) -> Flags {
        Flags(self.word(FLAGS) as u16)
    }

    /// Seconds, when it was last refreshed.
    pub fn seen_s(self) -> u32 {
        self.word(SEEN) as u32
    }

    /// A packet came: from either side it refreshes the session (RFC 4787 REQ-6).
    #[inline(always)]
    pub fn refresh(self, now_s: u32) {
        if self.word(SEEN) != u64::from(now_s) {
            self.0[SEEN].store(now_s.into(), Ordering::Relaxed);
        }
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
        Class::of(self.protocol(), self.tcp())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_session_says_what_made_it(
            host: u128, remote: u128, ports: (u16, u16), external: (u128, u16), is_icmp: bool,
            tables in (0u32..1 << 23, 0u32..1 << 23), flags: u16, binding: u32,
        ) {
            let (protocol, to) = match is_icmp {
                true => (IpProtocol::ICMP6, ports.0),
                false => (IpProtocol::TCP, ports.1),
            };
            let inside = Flow {
                source: End { address: host, port: ports.0 },
                destination: End { address: remote, port: to },
                protocol,
                table: tables.0,
            };
            let new = NewSession {
                inside,
                external: End { address: external.0, port: external.1 },
                outside_table: tables.1,
                binding,
                flags: Flags(flags),
                now_s: 7,
                first: (Direction::InToOut, 2),
            };
            let words = new.words().map(AtomicU64::new);
            let session = Session(&words);
            prop_assert_eq!(session.inside(), inside);
            prop_assert_eq!(session.outside(), new.outside());
            prop_assert_eq!((session.flags(), session.binding()), (new.flags, binding));
            prop_assert_eq!((session.host(), session.external()), (inside.source, new.external));
            prop_assert_eq!((session.inside_table(), session.seen_s()), (tables.0, 7));
        }
    }
}
