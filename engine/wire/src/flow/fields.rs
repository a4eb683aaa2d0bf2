//! The flow hash over fields of one's own choice (VPP: `set ip flow-hash`).

use core::fmt;

use super::{fold_both, mix, rest, rest_of, rest4, rest6};
use crate::ip6::extension;
use crate::upper::Upper;
use crate::{Header, Ip4Header, Ip6Header, IpProtocol, gtpu};

/// Which fields make a flow. None at all stands for the default: both addresses, protocol and
/// ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct FlowFields(u16);

impl FlowFields {
    /// Addresses, protocol and ports.
    pub const DEFAULT: FlowFields = FlowFields(0);
    /// The source address.
    pub const SOURCE: FlowFields = FlowFields(1);
    /// The destination address.
    pub const DESTINATION: FlowFields = FlowFields(2);
    /// The source port.
    pub const SOURCE_PORT: FlowFields = FlowFields(4);
    /// The destination port.
    pub const DESTINATION_PORT: FlowFields = FlowFields(8);
    /// The protocol.
    pub const PROTOCOL: FlowFields = FlowFields(16);
    /// Source and destination are exchanged: what comes back here is hashed as it went out there.
    pub const REVERSE: FlowFields = FlowFields(32);
    /// Both directions of a flow have one hash.
    pub const SYMMETRIC: FlowFields = FlowFields(64);
    /// The IPv6 flow label (RFC 6437, RFC 6438).
    pub const FLOW_LABEL: FlowFields = FlowFields(128);

    /// The tunnel endpoint identifier of GTP-U (3GPP TS 29.281 §5.1), where UDP carries it to its
    /// port.
    pub const GTPV1_TEID: FlowFields = FlowFields(256);
    /// The router's seed is mixed in, so that routers behind each other spread flows independently.
    pub const SEEDED: FlowFields = FlowFields(512);

    /// What the default is made of.
    const FIVE: u16 = 31;
    /// Each field with its word in commands.
    pub const WORDS: [(FlowFields, &'static str); 9] = [
        (FlowFields::SOURCE, "src"),
        (FlowFields::DESTINATION, "dst"),
        (FlowFields::SOURCE_PORT, "sport"),
        (FlowFields::DESTINATION_PORT, "dport"),
        (FlowFields::PROTOCOL, "proto"),
        (FlowFields::REVERSE, "reverse"),
        (FlowFields::SYMMETRIC, "symmetric"),
        (FlowFields::FLOW_LABEL, "flowlabel"),
        (FlowFields::GTPV1_TEID, "gtpv1teid"),
    ];

    /// From its number; every number is one.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> FlowFields {
        FlowFields(bits)
    }

    /// Its number.
    #[inline(always)]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// These fields and `other`.
    #[must_use]
    pub const fn and(self, other: FlowFields) -> FlowFields {
        FlowFields(self.0 | other.0)
    }

    /// The same choice in one form: the five of the default are the default, and an order alone
    /// ([`REVERSE`](Self::REVERSE), [`SYMMETRIC`](Self::SYMMETRIC)) is that of the five, as is what
    /// [`GTPV1_TEID`](Self::GTPV1_TEID) adds.
    #[must_use]
    pub const fn normal(self) -> FlowFields {
        let order = FlowFields::REVERSE.0 | FlowFields::SYMMETRIC.0 | FlowFields::GTPV1_TEID.0;
        match self.0 {
            FlowFields::FIVE => FlowFields::DEFAULT,
            bits if bits != 0 && bits & !order == 0 => FlowFields(bits | FlowFields::FIVE),
            bits => FlowFields(bits),
        }
    }

    /// These fields without the seed.
    #[must_use]
    pub const fn unseeded(self) -> FlowFields {
        FlowFields(self.0 & !FlowFields::SEEDED.0)
    }

    /// Is it the default?
    #[inline(always)]
    pub const fn is_default(self) -> bool {
        self.0 == 0
    }

    /// Are all of `other` among them?
    #[inline(always)]
    pub const fn has(self, other: FlowFields) -> bool {
        self.0 & other.0 == other.0
    }

    /// Is exactly one of the two among them?
    const fn has_half(self, one: FlowFields, other: FlowFields) -> bool {
        self.has(one) != self.has(other)
    }

    /// Why both directions of a flow cannot have one hash with this choice, if they cannot.
    pub const fn asymmetry(self) -> Option<&'static str> {
        if !self.has(FlowFields::SYMMETRIC) {
            return None;
        }
        if self.has_half(FlowFields::SOURCE, FlowFields::DESTINATION) {
            return Some("symmetric needs both src and dst, or neither");
        }
        if self.has_half(FlowFields::SOURCE_PORT, FlowFields::DESTINATION_PORT) {
            return Some("symmetric needs both sport and dport, or neither");
        }
        if self.has(FlowFields::FLOW_LABEL) {
            return Some(
                "the two directions of a flow have labels of their own: symmetric and flowlabel \
                 exclude each other",
            );
        }
        if self.has(FlowFields::GTPV1_TEID) {
            return Some(
                "the two directions of a tunnel have identifiers of their own: symmetric and \
                 gtpv1teid exclude each other",
            );
        }
        if self.has(FlowFields::REVERSE) {
            return Some("reverse changes nothing where both directions are alike: leave it out");
        }
        None
    }

    /// The addresses in the order in which they are hashed, and protocol and ports. `rest` has the
    /// protocol above the ports.
    #[inline(always)]
    fn ordered<A: Copy + Default + Ord>(
        self,
        source: A,
        destination: A,
        whole: u64,
    ) -> (A, A, u64) {
        if self.is_default() {
            return (source, destination, whole);
        }
        let keep = |field, value: A| if self.has(field) { value } else { A::default() };
        let port = |field, value: u64| if self.has(field) { value as u16 } else { 0 };
        let from = (keep(FlowFields::SOURCE, source), port(FlowFields::SOURCE_PORT, whole >> 16));
        let to =
            (keep(FlowFields::DESTINATION, destination), port(FlowFields::DESTINATION_PORT, whole));
        let exchanged =
            if self.has(FlowFields::SYMMETRIC) { to < from } else { self.has(FlowFields::REVERSE) };
        let (one, other) = if exchanged { (to, from) } else { (from, to) };
        let protocol = if self.has(FlowFields::PROTOCOL) { (whole >> 32) as u8 } else { 0 };
        (one.0, other.0, rest(protocol, u32::from(one.1) << 16 | u32::from(other.1)))
    }
}

impl fmt::Display for FlowFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = if self.unseeded().is_default() { FlowFields(FlowFields::FIVE) } else { *self };
        let chosen = FlowFields::WORDS.iter().filter(|(field, _)| all.has(*field));
        for (place, (_, word)) in chosen.enumerate() {
            write!(f, "{}{word}", if place == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// The hash of an IPv4 packet by these fields. `behind` are the bytes that follow the fixed header,
/// options first. Ports of fragments, even of the first, count as 0, so that a packet's fragments
/// stay together.
pub fn hash_ip4_by(fields: FlowFields, header: &Ip4Header, behind: &[u8]) -> u32 {
    if fields.is_default() {
        super::hash_ip4(header, behind)
    } else {
        let hash = mix4(fields, header, rest4(header, behind));
        if fields.has(FlowFields::GTPV1_TEID) {
            with_teid(hash, upper4(header, behind))
        } else {
            hash
        }
    }
}

/// The UDP header and what follows it, in an IPv4 packet that is no fragment.
fn upper4<'a>(header: &Ip4Header, behind: &'a [u8]) -> Option<&'a [u8]> {
    let is_whole = header.protocol() == IpProtocol::UDP && !header.is_fragment();
    behind.get(header.header_len().checked_sub(Ip4Header::LEN)?..).filter(|_| is_whole)
}

/// The same in an IPv6 packet.
fn upper6<'a>(header: &Ip6Header, behind: &'a [u8]) -> Option<&'a [u8]> {
    let upper = extension::upper_layer(header.next_header(), behind).ok()?;
    let is_whole = upper.fragment.is_none_or(|fragment| fragment.is_atomic());
    behind.get(upper.offset..).filter(|_| is_whole && upper.protocol == IpProtocol::UDP)
}

/// A hash with the tunnel endpoint identifier of a G-PDU in `udp`, if it is one.
fn with_teid(hash: u32, udp: Option<&[u8]>) -> u32 {
    let teid = |udp: &[u8]| {
        let header: [u8; 16] = *udp.first_chunk()?;
        let port = u16::from_be_bytes([header[2], header[3]]);
        // Version 1, protocol type GTP.
        let is_user_data =
            port == gtpu::PORT && header[8] & 0xf0 == 0x30 && header[9] == gtpu::message::G_PDU;
        is_user_data.then(|| u32::from_be_bytes([header[12], header[13], header[14], header[15]]))
    };
    udp.and_then(teid).map_or(hash, |teid| mix(hash.into(), teid.into()))
}

/// A hash as a router with this seed chooses paths by.
pub fn with_seed(hash: u32, seed: u32) -> u32 {
    mix(hash.into(), seed.into())
}

/// The hash of an IPv4 fragment that has what `upper` says in its bytes or in those of the first:
/// that of whole packets of its flow.
pub fn hash_ip4_of(fields: FlowFields, header: &Ip4Header, upper: &Upper) -> u32 {
    mix4(fields, header, rest_of(upper))
}

fn mix4(fields: FlowFields, header: &Ip4Header, rest: u64) -> u32 {
    let (one, other, rest) = fields.ordered(header.source_bits(), header.destination_bits(), rest);
    mix(u64::from(one) << 32 | u64::from(other), rest)
}

/// The hash of an IPv6 packet by these fields. `behind` are the bytes that follow the fixed header.
pub fn hash_ip6_by(fields: FlowFields, header: &Ip6Header, behind: &[u8]) -> u32 {
    if fields.is_default() {
        super::hash_ip6(header, behind)
    } else {
        let hash = mix6(fields, header, rest6(header, behind));
        if fields.has(FlowFields::GTPV1_TEID) {
            with_teid(hash, upper6(header, behind))
        } else {
            hash
        }
    }
}

/// The hash of an IPv6 fragment that has what `upper` says in its bytes or in those of the first:
/// that of whole packets of its flow.
pub fn hash_ip6_of(fields: FlowFields, header: &Ip6Header, upper: &Upper) -> u32 {
    mix6(fields, header, rest_of(upper))
}

fn mix6(fields: FlowFields, header: &Ip6Header, rest: u64) -> u32 {
    let (one, other, rest) = fields.ordered(header.source_bits(), header.destination_bits(), rest);
    let label =
        if fields.has(FlowFields::FLOW_LABEL) { u64::from(header.flow_label()) << 40 } else { 0 };
    mix(fold_both(one, other), rest | label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec;

    fn ip4(source: u32, destination: u32) -> Ip4Header {
        let (source, destination) = (Ipv4Addr::from_bits(source), Ipv4Addr::from_bits(destination));
        Ip4Header::new(source, destination, IpProtocol::UDP, 64, 8).unwrap()
    }

    fn ip6(source: u128, destination: u128) -> Ip6Header {
        let (source, destination) = (Ipv6Addr::from_bits(source), Ipv6Addr::from_bits(destination));
        Ip6Header::new(source, destination, IpProtocol::TCP, 64, 20)
    }

    fn ports(source: u16, destination: u16) -> [u8; 4] {
        (u32::from(source) << 16 | u32::from(destination)).to_be_bytes()
    }

    fn fields(words: &str) -> FlowFields {
        let each = words
            .split(' ')
            .map(|word| FlowFields::WORDS.iter().find(|(_, known)| *known == word).unwrap().0);
        each.fold(FlowFields::DEFAULT, FlowFields::and).normal()
    }

    #[test]
    fn the_five_fields_are_the_default_and_words_say_what_is_chosen() {
        assert!(fields("src dst sport dport proto").is_default());
        assert_eq!(fields("symmetric").to_string(), "src dst sport dport proto symmetric");
        assert_eq!(fields("src dst").to_string(), "src dst");
        assert_eq!(FlowFields::DEFAULT.to_string(), "src dst sport dport proto");
    }

    #[test]
    fn a_choice_that_cannot_be_symmetric_is_told() {
        for (words, said) in [
            ("src symmetric", "dst"),
            ("src dst dport symmetric", "sport"),
            ("src dst symmetric flowlabel", "label"),
        ] {
            assert!(fields(words).asymmetry().unwrap().contains(said), "{words}");
        }
        assert_eq!(fields("src dst symmetric").asymmetry(), None);
    }

    #[test]
    fn a_fragment_has_the_hash_of_its_packet_without_ports() {
        let mut bytes = [0; 20];
        ip4(1, 2).write(&mut bytes).unwrap();
        bytes[6] = 0x20;
        let header = Ip4Header::overlay(&bytes).unwrap();
        let by = fields("symmetric");
        assert_eq!(hash_ip4_by(by, header, &ports(1, 2)), hash_ip4_by(by, header, &ports(7, 8)));
    }

    #[test]
    fn the_flow_label_counts_when_it_is_asked_for() {
        let hash = |words, label| {
            let mut bytes = [0; 40];
            ip6(1, 2).write(&mut bytes).unwrap();
            bytes[3] = label;
            hash_ip6_by(fields(words), Ip6Header::overlay(&bytes).unwrap(), &[0; 20])
        };
        assert_ne!(hash("src dst flowlabel", 5), hash("src dst flowlabel", 6));
        assert_eq!(hash("src dst", 5), hash("src dst", 6));
    }

    #[test]
    fn the_tunnel_of_user_data_counts_when_it_is_asked_for() {
        let packet = |kind: u8, port: u16, teid: u32| {
            let mut bytes = vec![0; 16];
            bytes[..4].copy_from_slice(&ports(2152, port));
            bytes[8..10].copy_from_slice(&[0x30, kind]);
            bytes[12..].copy_from_slice(&teid.to_be_bytes());
            bytes
        };
        let udp6 =
            Ip6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, IpProtocol::UDP, 64, 16);
        let by = fields("gtpv1teid");
        assert_eq!(by.to_string(), "src dst sport dport proto gtpv1teid");
        let hash4 = |by, bytes: &[u8]| hash_ip4_by(by, &ip4(1, 2), bytes);
        let hash6 = |by, bytes: &[u8]| hash_ip6_by(by, &udp6, bytes);
        let (one, other) = (packet(255, 2152, 5), packet(255, 2152, 6));
        assert_ne!(hash4(by, &one), hash4(by, &other));
        assert_ne!(hash6(by, &one), hash6(by, &other));
        assert_eq!(hash4(FlowFields::DEFAULT, &one), hash4(FlowFields::DEFAULT, &other));
        // An echo request has no tunnel; to another port it is no GTP-U.
        assert_eq!(hash4(by, &packet(1, 2152, 5)), hash4(by, &packet(1, 2152, 6)));
        assert_eq!(hash4(by, &packet(255, 2153, 5)), hash4(by, &packet(255, 2153, 6)));
        assert_eq!(hash4(by, &one[..15]), hash4(by, &other[..15]), "cut");
        assert!(fields("symmetric gtpv1teid").asymmetry().unwrap().contains("gtpv1teid"));
    }

    #[test]
    fn routers_with_other_seeds_choose_independently() {
        let mut both = [[0u32; 2]; 2];
        for flow in 0..16_000u64 {
            let hash = mix(flow, 7);
            both[with_seed(hash, 1) as usize % 2][with_seed(hash, 2) as usize % 2] += 1;
        }
        assert!(both.iter().flatten().all(|count| (3_700..4_300).contains(count)), "{both:?}");
    }

    proptest! {
        #[test]
        fn a_fragment_whose_ports_are_known_has_the_hash_of_its_flow(
            a: u32, b: u32, c: u128, d: u128, sport: u16, dport: u16,
            words in prop::sample::select(
                vec!["src dst sport dport proto", "symmetric", "reverse", "sport"]
            ),
        ) {
            let (by, bytes) = (fields(words), ports(sport, dport));
            let upper =
                |protocol| Upper::of(protocol, &[bytes.as_slice(), &[0; 16]].concat()).unwrap();
            let udp = upper(IpProtocol::UDP);
            prop_assert_eq!(hash_ip4_of(by, &ip4(a, b), &udp), hash_ip4_by(by, &ip4(a, b), &bytes));
            let tcp = upper(IpProtocol::TCP);
            prop_assert_eq!(hash_ip6_of(by, &ip6(c, d), &tcp), hash_ip6_by(by, &ip6(c, d), &bytes));
        }

        #[test]
        fn both_directions_of_a_flow_have_one_hash_when_it_is_symmetric(
            a: u32, b: u32, c: u128, d: u128, sport: u16, dport: u16,
            words in prop::sample::select(
                vec!["symmetric", "src dst symmetric", "src dst proto symmetric"]
            ),
        ) {
            let by = fields(words);
            let (there, back) = (ports(sport, dport), ports(dport, sport));
            prop_assert_eq!(
                hash_ip4_by(by, &ip4(a, b), &there),
                hash_ip4_by(by, &ip4(b, a), &back)
            );
            prop_assert_eq!(
                hash_ip6_by(by, &ip6(c, d), &there),
                hash_ip6_by(by, &ip6(d, c), &back)
            );
        }

        #[test]
        fn reverse_is_the_default_of_the_other_direction(
            a: u32, b: u32, c: u128, d: u128, sport: u16, dport: u16
        ) {
            let by = fields("reverse");
            let (there, back) = (ports(sport, dport), ports(dport, sport));
            prop_assert_eq!(
                hash_ip4_by(by, &ip4(a, b), &there),
                crate::flow::hash_ip4(&ip4(b, a), &back)
            );
            prop_assert_eq!(
                hash_ip6_by(by, &ip6(c, d), &there),
                crate::flow::hash_ip6(&ip6(d, c), &back)
            );
        }

        #[test]
        fn fields_left_out_do_not_matter(a: u32, b: u32, other: u32, sport: u16, dport: u16) {
            let hash =
                |words, header: &Ip4Header, ports: &[u8]| hash_ip4_by(fields(words), header, ports);
            let base = ip4(a, b);
            prop_assert_eq!(
                hash("src", &base, &[]),
                hash("src", &ip4(a, other), &ports(sport, dport))
            );
            prop_assert_eq!(
                hash("dst", &base, &[]),
                hash("dst", &ip4(other, b), &ports(sport, dport))
            );
            prop_assert_eq!(
                hash("src dst dport", &base, &ports(sport, dport)),
                hash("src dst dport", &base, &ports(!sport, dport))
            );
        }
    }
}
