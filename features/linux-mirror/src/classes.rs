//! What is punted, by what it is for, each class with a limit of its own: whatever somebody floods,
//! the other classes reach Linux.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::graph::node::{ReasonText, Severity};
use quiver_core::throttle::TokenBucket;
use quiver_wire::icmp6::kind;
use quiver_wire::vlan::VlanTag;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip4Header, Ip6Header, IpProtocol};
use quiver_wire::{TcpHeader, UdpHeader};

/// The table of classes: name, word in commands, packets a second and worker unless the operator
/// says otherwise, and what they are in a sentence. Everything that is said of each class comes
/// from it: commands, limits, what is counted of those that pass and of those that do not.
macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident = $word:literal, $rate:literal, $packets:literal;)*) => {
        /// A class of punted packets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Class { $($(#[$doc])* $class,)* }

        /// How many classes there are.
        pub(crate) const CLASSES: usize = [$($word),*].len();

        impl Class {
            /// All, in the order in which they are listed.
            pub const ALL: [Class; CLASSES] = [$(Class::$class),*];

            /// What is counted of each class that does not pass.
            pub const POLICED: [ReasonText; CLASSES] = [$(ReasonText::error(
                concat!($word, "-policed"),
                concat!("more ", $packets, " than `lcp punt class ", $word, "` lets pass"),
            )),*];

            /// What is counted of each class that passes.
            pub const PASSED: [ReasonText; CLASSES] = [$(ReasonText {
                name: $word,
                text: concat!($packets, " for Linux"),
                severity: Severity::Info,
            }),*];

            /// Its word in commands.
            pub const fn word(self) -> &'static str {
                [$($word),*][self as usize]
            }

            /// Packets a second and worker unless the operator says otherwise: several times what
            /// a large router needs, and little for what is flooded.
            pub const fn rate(self) -> u32 {
                [$($rate),*][self as usize]
            }
        }
    };
}

classes! {
    /// BFD (RFC 5880) in UDP.
    Bfd = "bfd", 50_000, "BFD packets";
    /// LACP, LLDP and other protocols of a link.
    Link = "link", 5_000, "LACP, LLDP and other link protocol packets";
    /// OSPF, IS-IS, PIM, IGMP and MLD.
    Igp = "igp", 50_000, "OSPF, IS-IS, PIM, IGMP and MLD packets";
    /// VRRP (RFC 9568).
    Vrrp = "vrrp", 5_000, "VRRP packets";
    /// BGP and LDP.
    Bgp = "bgp", 200_000, "BGP and LDP packets";
    /// ARP and neighbour discovery.
    Neighbor = "neighbor", 10_000, "ARP and neighbour discovery packets";
    /// DHCP.
    Dhcp = "dhcp", 5_000, "DHCP packets";
    /// ICMP.
    Icmp = "icmp", 10_000, "ICMP packets";
    /// Everything else.
    Other = "other", 10_000, "other packets";
}

impl Class {
    /// Of a frame without tags, or with one.
    pub fn of(frame: &[u8]) -> Class {
        let Some((ethernet, packet)) = EthernetHeader::split(frame) else { return Class::Other };
        match ethernet.ether_type() {
            EtherType::VLAN | EtherType::SERVICE_VLAN => match VlanTag::split(packet) {
                Some((tag, packet)) => Class::of_type(tag.ether_type(), packet),
                None => Class::Other,
            },
            ether_type => Class::of_type(ether_type, packet),
        }
    }

    /// Of what follows an EtherType.
    fn of_type(ether_type: EtherType, packet: &[u8]) -> Class {
        match ether_type {
            EtherType::ARP => Class::Neighbor,
            EtherType::IPV4 | EtherType::IPV6 => Class::of_packet(packet),
            // IS-IS is carried in LLC.
            ether_type if ether_type.is_length() => Class::Igp,
            EtherType::SLOW | EtherType::LLDP => Class::Link,
            _ => Class::Other,
        }
    }

    /// Of an IP packet without a link-layer header.
    pub fn of_packet(packet: &[u8]) -> Class {
        match packet.first().map_or(0, |first| first >> 4) {
            4 => of_ip4(packet),
            6 => of_ip6(packet),
            _ => Class::Other,
        }
    }
}

fn of_ip4(packet: &[u8]) -> Class {
    let Some(header) = Ip4Header::overlay(packet) else { return Class::Other };
    let upper = packet.get(header.header_len()..).unwrap_or_default();
    of_upper(header.protocol(), upper)
}

fn of_ip6(packet: &[u8]) -> Class {
    /// The last type of neighbour discovery (RFC 4861 §4.5).
    const REDIRECT: u8 = 137;
    let Some((header, upper)) = Ip6Header::split(packet) else { return Class::Other };
    match header.next_header() {
        // MLD has a router alert option.
        IpProtocol::HOP_BY_HOP => Class::Igp,
        IpProtocol::ICMP6 => match upper.first() {
            Some(kind::ROUTER_SOLICITATION..=REDIRECT) => Class::Neighbor,
            _ => Class::Icmp,
        },
        protocol => of_upper(protocol, upper),
    }
}

fn of_upper(protocol: IpProtocol, upper: &[u8]) -> Class {
    /// IGMP, OSPF and PIM.
    const IGP: [u8; 3] = [2, 89, 103];
    /// VRRP.
    const VRRP: u8 = 112;
    match protocol {
        IpProtocol::ICMP => Class::Icmp,
        IpProtocol::TCP => {
            let ports = TcpHeader::overlay(upper).map(|h| [h.source_port(), h.destination_port()]);
            match ports {
                Some(ports) if ports.iter().any(|port| matches!(port, 179 | 646)) => Class::Bgp,
                _ => Class::Other,
            }
        }
        IpProtocol::UDP => match UdpHeader::overlay(upper).map(UdpHeader::destination_port) {
            Some(3784 | 3785 | 4784 | 6784) => Class::Bfd,
            Some(67 | 68 | 546 | 547) => Class::Dhcp,
            Some(646) => Class::Bgp,
            _ => Class::Other,
        },
        IpProtocol(number) if IGP.contains(&number) => Class::Igp,
        IpProtocol(VRRP) => Class::Vrrp,
        _ => Class::Other,
    }
}

/// How many packets of a class a worker lets pass: in a second, 0 for all, and at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub packets: u32,
    pub burst: u32,
}

impl Limit {
    /// Unless the operator says otherwise.
    pub fn of(class: Class) -> Limit {
        Limit { packets: class.rate(), burst: class.rate() / 10 }
    }
}

/// The limits, which workers read.
pub(crate) struct Limits([AtomicU64; CLASSES]);

impl Limits {
    /// Those that hold unless the operator says otherwise.
    pub fn new() -> Arc<Limits> {
        let limits = Limits([const { AtomicU64::new(0) }; CLASSES]);
        Class::ALL.into_iter().for_each(|class| limits.set(class, Limit::of(class)));
        Arc::new(limits)
    }

    /// Of a class.
    pub fn get(&self, class: Class) -> Limit {
        let word = self.0[class as usize].load(Ordering::Relaxed);
        Limit { packets: word as u32, burst: (word >> 32) as u32 }
    }

    /// Let so many packets of a class pass from now on.
    pub fn set(&self, class: Class, limit: Limit) {
        let word = u64::from(limit.burst) << 32 | u64::from(limit.packets);
        self.0[class as usize].store(word, Ordering::Relaxed);
    }
}

/// A worker's policers.
pub(crate) struct Policers([(Limit, TokenBucket); CLASSES]);

impl Policers {
    pub fn new(limits: &Limits) -> Policers {
        Policers(Class::ALL.map(|class| {
            let limit = limits.get(class);
            (limit, TokenBucket::new(limit.packets.into(), limit.burst.max(1).into()))
        }))
    }

    /// May one more packet of a class pass now?
    pub fn passes(&mut self, class: Class, limits: &Limits, now_ns: u64) -> bool {
        let (limit, bucket) = &mut self.0[class as usize];
        let now = limits.get(class);
        if *limit != now {
            *limit = now;
            *bucket = TokenBucket::new(now.packets.into(), now.burst.max(1).into());
        }
        now.packets == 0 || bucket.take(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ether_type: u16, packet: &[u8]) -> Vec<u8> {
        [&[0; 12][..], &ether_type.to_be_bytes(), packet].concat()
    }

    fn ip4(protocol: u8, upper: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 1, protocol];
        packet.resize(20, 0);
        packet.extend(upper);
        frame(0x0800, &packet)
    }

    #[test]
    fn packets_are_told_apart_by_what_they_are_for() {
        let mut tcp = [0; 20];
        tcp[3] = 179;
        let mut udp = [0; 8];
        udp[2..4].copy_from_slice(&3784u16.to_be_bytes());
        for (frame, class) in [
            (frame(0x0806, &[0; 28]), Class::Neighbor),
            (frame(0x8809, &[1]), Class::Link),
            (frame(0x88cc, &[0]), Class::Link),
            (frame(60, &[0xfe, 0xfe, 3]), Class::Igp),
            (ip4(6, &tcp), Class::Bgp),
            (ip4(6, &[0; 20]), Class::Other),
            (ip4(17, &udp), Class::Bfd),
            (ip4(89, &[]), Class::Igp),
            (ip4(112, &[]), Class::Vrrp),
            (ip4(1, &[8]), Class::Icmp),
            (Vec::new(), Class::Other),
            (frame(0x0800, &[]), Class::Other),
        ] {
            assert_eq!(Class::of(&frame), class, "{frame:02x?}");
        }
    }

    #[test]
    fn a_flood_of_one_class_leaves_the_others_alone() {
        let limits = Limits::new();
        let mut policers = Policers::new(&limits);
        let passed =
            (0..1_000_000u64).filter(|n| policers.passes(Class::Other, &limits, n * 1000)).count();
        assert!((10_000..=12_000).contains(&passed), "{passed} of a second's million");
        assert!(policers.passes(Class::Bgp, &limits, 0));
        limits.set(Class::Other, Limit { packets: 0, burst: 0 });
        assert!((0..1000).all(|_| policers.passes(Class::Other, &limits, 0)));
    }
}
