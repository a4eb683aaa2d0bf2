//! What a policy can match: a packet's addresses, protocol, ports and DSCP.

use std::ops::RangeInclusive;

use quiver_core::Packet;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{IpFamily, noted};
use quiver_tables::prefix::{Address, IpPrefix, Prefix};
use quiver_wire::ip6::extension;
use quiver_wire::upper::Upper;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

/// What is looked at in a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<A> {
    pub source: A,
    pub destination: A,
    pub protocol: u8,
    pub dscp: u8,
    /// Source and destination port; none in protocols without ports, and in fragments unless
    /// virtual reassembly has noted them.
    pub ports: Option<(u16, u16)>,
}

/// How far into packets the matches of an interface look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// The IP header.
    Header,
    /// The protocol behind extension headers, and its ports.
    Ports,
}

impl Depth {
    /// As far as one of `matches` looks.
    pub fn of<'m, A: Address>(mut matches: impl Iterator<Item = &'m Compiled<A>>) -> Depth {
        if matches.any(|m| m.has_ports || m.protocol.is_some()) {
            Depth::Ports
        } else {
            Depth::Header
        }
    }
}

/// A family whose packets are matched.
pub(crate) trait Matched: IpFamily {
    /// What is looked at; none if there is no whole header.
    fn fields(packet: &Packet, depth: Depth) -> Option<Fields<Self::Address>>;
    /// Does a packet to this address stay on the link that it came by: to a group, or link-local?
    fn stays_on_link(to: Self::Address) -> bool;
    /// A prefix of this family.
    fn prefix(prefix: IpPrefix) -> Option<Prefix<Self::Address>>;
}

fn ports(bytes: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *bytes.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Protocol and ports of a fragment that virtual reassembly has let go on.
fn noted_fields(upper: &Upper) -> (IpProtocol, Option<(u16, u16)>) {
    let ports = (upper.source_port, upper.destination_port);
    (upper.protocol, upper.protocol.has_ports().then_some(ports))
}

impl Matched for quiver_forwarding::ip::Ip4 {
    #[inline(always)]
    fn fields(packet: &Packet, depth: Depth) -> Option<Fields<u32>> {
        let bytes = packet.bytes();
        let header = Ip4Header::overlay(bytes)?;
        let (protocol, ports) = match noted(packet).filter(|_| depth == Depth::Ports) {
            Some(upper) => noted_fields(&upper),
            None if depth == Depth::Header => (header.protocol(), None),
            None => {
                let has_ports = header.protocol().has_ports() && !header.is_fragment();
                let behind = bytes.get(header.header_len()..).filter(|_| has_ports);
                (header.protocol(), behind.and_then(ports))
            }
        };
        Some(Fields {
            source: header.source_bits(),
            destination: header.destination_bits(),
            protocol: protocol.0,
            dscp: header.traffic_class >> 2,
            ports,
        })
    }

    #[inline(always)]
    fn stays_on_link(to: u32) -> bool {
        to >> 28 >= 0xe
    }

    fn prefix(prefix: IpPrefix) -> Option<Prefix<u32>> {
        match prefix {
            IpPrefix::V4(prefix) => Some(prefix),
            IpPrefix::V6(_) => None,
        }
    }
}

impl Matched for quiver_forwarding::ip::Ip6 {
    #[inline(always)]
    fn fields(packet: &Packet, depth: Depth) -> Option<Fields<u128>> {
        let (header, behind) = Ip6Header::split(packet.bytes())?;
        let (protocol, ports) = match noted(packet).filter(|_| depth == Depth::Ports) {
            Some(upper) => noted_fields(&upper),
            None if depth == Depth::Header => (header.next_header(), None),
            None => upper(header.next_header(), behind),
        };
        Some(Fields {
            source: header.source_bits(),
            destination: header.destination_bits(),
            protocol: protocol.0,
            dscp: header.traffic_class() >> 2,
            ports,
        })
    }

    #[inline(always)]
    fn stays_on_link(to: u128) -> bool {
        to >> 120 == 0xff || to >> 118 == 0x3fa
    }

    fn prefix(prefix: IpPrefix) -> Option<Prefix<u128>> {
        match prefix {
            IpPrefix::V6(prefix) => Some(prefix),
            IpPrefix::V4(_) => None,
        }
    }
}

/// The upper layer's protocol and ports, behind extension headers.
#[inline]
fn upper(next: IpProtocol, behind: &[u8]) -> (IpProtocol, Option<(u16, u16)>) {
    if !extension::is_walked(next) {
        return (next, ports(behind).filter(|_| next.has_ports()));
    }
    match extension::upper_layer(next, behind) {
        Ok(upper) => {
            let is_part = upper.fragment.is_some_and(|fragment| !fragment.is_atomic());
            let protocol =
                upper.fragment.filter(|_| is_part).map_or(upper.protocol, |f| f.next_header);
            let has_ports = upper.protocol.has_ports() && !is_part;
            (protocol, behind.get(upper.offset..).filter(|_| has_ports).and_then(ports))
        }
        Err(_) => (next, None),
    }
}

/// What a packet must have, as the operator gave it. What is left out does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Match {
    pub source: Option<IpPrefix>,
    pub destination: Option<IpPrefix>,
    pub protocol: Option<u8>,
    pub source_ports: Option<RangeInclusive<u16>>,
    pub destination_ports: Option<RangeInclusive<u16>>,
    pub dscp: Option<u8>,
}

impl Match {
    /// The family of its prefixes, if it has any.
    pub fn family(&self) -> Option<Family> {
        let of = |prefix: &IpPrefix| if prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 };
        self.source.as_ref().or(self.destination.as_ref()).map(of)
    }

    /// As workers compare it; none if it can match no packet of the family.
    pub fn compiled<F: Matched>(&self) -> Option<Compiled<F::Address>> {
        let all = Prefix::new(F::Address::ZERO, 0);
        let prefix = |given: &Option<IpPrefix>| match given {
            None => Some(all),
            Some(prefix) => F::prefix(*prefix),
        };
        let whole = || 0..=u16::MAX;
        Some(Compiled {
            source: Masked::of(prefix(&self.source)?),
            destination: Masked::of(prefix(&self.destination)?),
            protocol: self.protocol,
            dscp: self.dscp,
            has_ports: self.source_ports.is_some() || self.destination_ports.is_some(),
            source_ports: self.source_ports.clone().unwrap_or_else(whole),
            destination_ports: self.destination_ports.clone().unwrap_or_else(whole),
        })
    }
}

/// A prefix as workers compare it.
#[derive(Clone, Copy, Debug)]
struct Masked<A> {
    value: A,
    mask: A,
}

impl<A: Address> Masked<A> {
    fn of(prefix: Prefix<A>) -> Masked<A> {
        Masked { value: prefix.first(), mask: !(prefix.first() ^ prefix.last()) }
    }

    #[inline(always)]
    fn contains(self, address: A) -> bool {
        (address ^ self.value) & self.mask == A::ZERO
    }
}

/// A match as workers compare it.
#[derive(Clone, Debug)]
pub(crate) struct Compiled<A: Address> {
    source: Masked<A>,
    destination: Masked<A>,
    protocol: Option<u8>,
    dscp: Option<u8>,
    has_ports: bool,
    source_ports: RangeInclusive<u16>,
    destination_ports: RangeInclusive<u16>,
}

impl<A: Address> Compiled<A> {
    /// What no packet has: a port that is at least 1 and at most 0.
    pub fn none() -> Compiled<A> {
        let all = Masked::of(Prefix::new(A::ZERO, 0));
        Compiled {
            source: all,
            destination: all,
            protocol: None,
            dscp: None,
            has_ports: true,
            source_ports: RangeInclusive::new(1, 0),
            destination_ports: 0..=u16::MAX,
        }
    }

    /// Has the packet all of it?
    #[inline(always)]
    pub fn takes(&self, fields: &Fields<A>) -> bool {
        self.source.contains(fields.source)
            && self.destination.contains(fields.destination)
            && self.protocol.is_none_or(|protocol| protocol == fields.protocol)
            && self.dscp.is_none_or(|dscp| dscp == fields.dscp)
            && (!self.has_ports
                || fields.ports.is_some_and(|(source, destination)| {
                    self.source_ports.contains(&source)
                        && self.destination_ports.contains(&destination)
                }))
    }
}
