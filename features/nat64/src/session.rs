//! A session: twelve words that both directions share (RFC 6146 §3.2).
//!
//! | word | content |
//! | --- | --- |
//! | 0 to 3 | key of packets of IPv6 ([`Inside`]) |
//! | 4 to 7 | key of packets of IPv4 ([`Outside`]) |
//! | 8 | second in which it was last refreshed (32 bits), mark (32): 0 when a packet did it here |
//! | 9 | state of TCP ([`Tcp`]) |
//! | 10 | what upper checksums get: to IPv4 16 bits, to IPv6 16 bits; number of the binding |
//! | 11 | table of IPv6 packets 24 bits, flags |
//!
//! Words 8 and 9 are stored by any worker, the others by the owner before the session is found.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_bindings::{Class, Flags};
use quiver_tables::sessions::{SessionObjects, SessionTable, SessionsWriter};
use quiver_translation::flow::{self, End, Flow};
use quiver_translation::tcp::{Direction, Tcp};
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::ends::{Ends4, Ends6, Ports, delta_to4, delta_to6};
use quiver_wire::IpProtocol;

/// Words of a session.
pub(crate) const WORDS: usize = 12;
/// Words of a key.
pub(crate) const KEY_WORDS: usize = 4;
const SEEN: usize = 8;
const TCP: usize = 9;
const DELTAS: usize = 10;
const INFO: usize = 11;
/// Marks of keys, so that no two of different kinds are the same.
const INSIDE: u64 = 1 << 63;
const OUTSIDE: u64 = 1 << 62;
/// Bits of a table's small number.
const TABLE_MASK: u32 = 0xff_ffff;

/// A key.
pub(crate) type Key = [u64; KEY_WORDS];
/// The objects.
pub(crate) type Objects = SessionObjects<WORDS, KEY_WORDS>;
/// What workers look up in.
pub(crate) type Table = SessionTable<WORDS, KEY_WORDS>;
/// Who makes sessions.
pub(crate) type Writer = SessionsWriter<WORDS, KEY_WORDS>;

/// The key of no packet.
pub(crate) const NO_KEY: Key = [0; KEY_WORDS];

/// The protocol as keys have it: ICMP for both versions.
pub(crate) fn protocol_of(protocol: IpProtocol) -> IpProtocol {
    quiver_translation::versions::ends::protocol4(protocol)
}

/// A flow of IPv6 to an IPv4 address behind a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    /// The host.
    pub host: u128,
    /// The address behind the prefix.
    pub remote: u32,
    pub ports: Ports,
    /// As IPv4 numbers it.
    pub protocol: IpProtocol,
    /// Small number of the table that packets are routed in.
    pub table: u32,
    /// Number of the prefix.
    pub prefix: u8,
}

impl Inside {
    #[inline(always)]
    pub fn key(&self) -> Key {
        [
            (self.host >> 64) as u64,
            self.host as u64,
            u64::from(self.remote) << 32
                | u64::from(self.ports.source) << 16
                | u64::from(self.ports.destination),
            INSIDE
                | u64::from(self.prefix) << 32
                | u64::from(self.protocol.0) << 24
                | u64::from(self.table & TABLE_MASK),
        ]
    }

    fn of(key: Key) -> Inside {
        Inside {
            host: u128::from(key[0]) << 64 | u128::from(key[1]),
            remote: (key[2] >> 32) as u32,
            ports: Ports { source: (key[2] >> 16) as u16, destination: key[2] as u16 },
            protocol: IpProtocol((key[3] >> 24) as u8),
            table: key[3] as u32 & TABLE_MASK,
            prefix: (key[3] >> 32) as u8,
        }
    }
}

/// The key of a flow of IPv4.
#[inline(always)]
pub(crate) fn outside_key([addresses, rest]: flow::Key) -> Key {
    [addresses, rest, 0, OUTSIDE]
}

/// What makes a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewSession {
    pub inside: Inside,
    /// The prefix of that number.
    pub prefix: Prefix,
    /// The external end.
    pub external: End,
    /// Small number of the table of IPv4.
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
        let Inside { remote, ports, protocol, .. } = self.inside;
        let remote_port = match protocol {
            IpProtocol::ICMP => self.external.port,
            _ => ports.destination,
        };
        Flow {
            source: End { address: remote, port: remote_port },
            destination: self.external,
            protocol,
            table: self.outside_table,
        }
    }

    /// The words.
    pub fn words(&self) -> [u64; WORDS] {
        let [a, b, c, d] = self.inside.key();
        let outside = self.outside();
        let [e, f, g, h] = outside_key(outside.key());
        let Inside { host, remote, ports, protocol, table, .. } = self.inside;
        let six = Ends6 { source: host, destination: self.prefix.embed(remote), ports };
        let four = ends4(&outside.reversed());
        let back4 = ends4(&outside);
        let back6 = Ends6 {
            source: six.destination,
            destination: host,
            ports: Ports { source: ports.destination, destination: ports.source },
        };
        let there = delta_to4(protocol, &six, &four);
        let back = delta_to6(protocol, &back4, &back6);
        let tcp = match protocol {
            IpProtocol::TCP => Tcp::default().after(self.first.0, self.first.1),
            _ => Tcp::default(),
        };
        [
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
            self.now_s.into(),
            tcp.0.into(),
            u64::from(there) | u64::from(back) << 16 | u64::from(self.binding) << 32,
            u64::from(table) | u64::from(self.flags.0) << 24,
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

/// The ends of a flow of IPv4.
fn ends4(flow: &Flow) -> Ends4 {
    let ports = Ports { source: flow.source.port, destination: flow.destination.port };
    Ends4 { source: flow.source.address, destination: flow.destination.address, ports }
}

/// A session as everybody reads it.
#[derive(Clone, Copy)]
pub(crate) struct Session<'o>(pub &'o [AtomicU64; WORDS]);

impl Session<'_> {
    #[inline(always)]
    fn word(self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }

    /// The flow of IPv6.
    #[inline(always)]
    pub fn inside(self) -> Inside {
        Inside::of([self.word(0), self.word(1), self.word(2), self.word(3)])
    }

    /// The flow of packets from outside.
    #[inline(always)]
    pub fn outside(self) -> Flow {
        Flow::of([self.word(4), self.word(5)])
    }

    /// The ends that packets get on their way out.
    #[inline(always)]
    pub fn ends4(self) -> Ends4 {
        ends4(&self.outside().reversed())
    }

    /// The ends that packets get on their way in; `prefix` is the one of its number.
    #[inline(always)]
    pub fn ends6(self, prefix: Prefix) -> Ends6 {
        let Inside { host, remote, ports, .. } = self.inside();
        let ports = Ports { source: ports.destination, destination: ports.source };
        Ends6 { source: prefix.embed(remote), destination: host, ports }
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

    pub fn flags(self) -> Flags {
        Flags((self.word(INFO) >> 24) as u16)
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

    /// A packet came: from either side it refreshes the session (RFC 6146 §3.5.1).
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
        Class::of(self.outside().protocol, self.tcp())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_session_says_what_made_it(
            host: u128, remote: u32, ports: (u16, u16), external: (u32, u16), is_icmp: bool,
            table in 0u32..1 << 24, outside_table in 0u32..1 << 24, prefix in 0u8..64,
            flags: u16, binding: u32,
        ) {
            let (protocol, destination) = match is_icmp {
                true => (IpProtocol::ICMP, ports.0),
                false => (IpProtocol::TCP, ports.1),
            };
            let ports = Ports { source: ports.0, destination };
            let inside = Inside { host, remote, ports, protocol, table, prefix };
            let new = NewSession {
                inside,
                prefix: Prefix::WELL_KNOWN,
                external: End { address: external.0, port: external.1 },
                outside_table,
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
            let (there, back) = (session.ends4(), session.ends6(Prefix::WELL_KNOWN));
            prop_assert_eq!(there.source, external.0);
            prop_assert_eq!(there.ports.source, external.1);
            prop_assert_eq!(back.destination, host);
            prop_assert_eq!(back.ports.destination, ports.source);
        }
    }
}
