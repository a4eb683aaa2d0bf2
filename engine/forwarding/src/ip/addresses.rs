//! The addresses of an interface as workers see them, and which of them to speak with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_wire::ip6::address;
use quiver_wire::{Ip4InterfaceAddress, Ip6InterfaceAddress};

/// The addresses of one interface, in the order in which they were given to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub ip4: Vec<Ip4InterfaceAddress>,
    /// IPv6, without the link-local address.
    pub ip6: Vec<Ip6InterfaceAddress>,
    /// The link-local address, when the interface speaks IPv6.
    pub link_local: Option<Ipv6Addr>,
    /// IPv6 addresses whose preferred lifetime is over (RFC 4862 §5.5.4); they stand in `ip6` too.
    pub deprecated: Vec<Ipv6Addr>,
    /// Hop limit of packets that the router makes, where the link has one (RFC 4861 §6.3.4).
    pub hop_limit: Option<u8>,
    /// Those that others are being asked for (RFC 4862 §5.4). They may stand among the others, and
    /// be used, or not yet.
    pub tentative: Vec<IpAddr>,
    /// Ranges of IPv4 addresses, in order and apart from each other, that the router answers ARP
    /// for as if they were its own (RFC 1027).
    pub arp_proxies: Arc<[(Ipv4Addr, Ipv4Addr)]>,
    /// IPv6 addresses, in order, that it advertises as if they were its own (RFC 4861 §7.2.8).
    pub nd_proxies: Arc<[Ipv6Addr]>,
    /// Does it advertise every address that routes lead to elsewhere?
    pub nd_mirror: bool,
    /// Are these another interface's addresses, but for the link-local one (`set interface
    /// unnumbered`)?
    pub borrowed: bool,
    /// An IPv6 address of another interface of the same table, where this one has but a link-local
    /// one.
    pub elsewhere6: Option<Ipv6Addr>,
}

/// The scope of a link (RFC 4291 §2.7).
const SCOPE_LINK: u8 = 2;
/// The scope of the world.
const SCOPE_GLOBAL: u8 = 14;

/// How far an address is valid (RFC 6724 §3.1).
fn scope(of: Ipv6Addr) -> u8 {
    if address::is_multicast(of) {
        address::multicast_scope(of)
    } else if address::is_link_local(of) || of.is_loopback() {
        SCOPE_LINK
    } else {
        SCOPE_GLOBAL
    }
}

/// The label of the policy table's longest matching prefix (RFC 6724 §2.1).
fn label(of: Ipv6Addr) -> u8 {
    let bits = of.to_bits();
    let has = |prefix: u128, length: u32| (bits ^ prefix) >> (128 - length) == 0;
    match () {
        () if of.is_loopback() => 0,
        () if has(0xffff << 32, 96) => 4,
        () if has(0, 96) => 3,
        () if has(0x2001 << 112, 32) => 5,
        () if has(0x2002 << 112, 16) => 2,
        () if has(0x3ffe << 112, 16) => 12,
        () if has(0xfec0 << 112, 10) => 11,
        () if has(0xfc00 << 112, 7) => 13,
        () => 1,
    }
}

/// Is one source better than another to speak to `to` (RFC 6724 §5, rules 1, 2, 3, 6 and 8)? Each
/// with the length of its prefix.
fn is_better(
    to: Ipv6Addr,
    deprecated: &[Ipv6Addr],
    one: (Ipv6Addr, u8),
    other: (Ipv6Addr, u8),
) -> bool {
    if (one.0 == to) != (other.0 == to) {
        return one.0 == to;
    }
    let (a, b) = (scope(one.0), scope(other.0));
    if a != b {
        // The smaller one, as long as it reaches.
        return if a < b { a >= scope(to) } else { b < scope(to) };
    }
    let (mine, theirs) = (deprecated.contains(&one.0), deprecated.contains(&other.0));
    if mine != theirs {
        return theirs;
    }
    let labelled = |own: Ipv6Addr| label(own) == label(to);
    if labelled(one.0) != labelled(other.0) {
        return labelled(one.0);
    }
    let common = |(own, length): (Ipv6Addr, u8)| {
        (own.to_bits() ^ to.to_bits()).leading_zeros().min(length.into())
    };
    common(one) > common(other)
}

impl Addresses {
    /// Is this one of the interface's own?
    pub fn has4(&self, address: Ipv4Addr) -> bool {
        self.ip4.iter().any(|own| own.address() == address)
    }

    /// The own address whose subnet `address` is in, of several in one subnet the oldest. On an
    /// interface that borrows its addresses anybody may be (RFC 1812 §2.2.7): there it is the
    /// first.
    pub fn on_link4(&self, address: Ipv4Addr) -> Option<Ip4InterfaceAddress> {
        let near = self.ip4.iter().copied().filter(|own| own.prefix().contains(address));
        // `max_by_key` takes the last of those that are equal.
        near.rev()
            .max_by_key(|own| own.length())
            .or_else(|| self.ip4.first().copied().filter(|_| self.borrowed))
    }

    /// With which address to speak to `to`: itself, one of the same subnet, or else the first; one
    /// that is valid on the link alone (RFC 3927 §2.7) not where another will do.
    pub fn source4(&self, to: Ipv4Addr) -> Option<Ipv4Addr> {
        if self.has4(to) {
            return Some(to);
        }
        let far = |own: &&Ip4InterfaceAddress| !own.address().is_link_local();
        let first = self.ip4.iter().find(far).or(self.ip4.first()).copied();
        self.on_link4(to).or(first).map(|own| own.address())
    }

    /// Is this one of the interface's own?
    pub fn has6(&self, address: Ipv6Addr) -> bool {
        self.link_local == Some(address) || self.ip6.iter().any(|own| own.address() == address)
    }

    /// Is `address` in a subnet of this interface? Link-local ones always are, and all on an
    /// interface that borrows its addresses.
    pub fn is_on_link6(&self, address: Ipv6Addr) -> bool {
        (address::is_link_local(address) && self.link_local.is_some())
            || self.borrowed
            || self.ip6.iter().any(|own| own.prefix().contains(address))
    }

    /// With which address to speak to `to`, by the rules of RFC 6724 §5 that tell a router's
    /// addresses apart: the same address, the scope, the preferred lifetime, the label, the longest
    /// prefix, and then the order in which they were given. What is spoken beyond the link with
    /// nothing but a link-local address is spoken with an address of another interface of the
    /// table, if there is one.
    pub fn source6(&self, to: Ipv6Addr) -> Option<Ipv6Addr> {
        let link_local = self.link_local.map(|own| (own, 64));
        let elsewhere = self.elsewhere6.filter(|_| scope(to) > SCOPE_LINK).map(|own| (own, 128));
        let own = self.ip6.iter().map(|own| (own.address(), own.length()));
        let best = |best: (Ipv6Addr, u8), other: (Ipv6Addr, u8)| {
            if is_better(to, &self.deprecated, other, best) { other } else { best }
        };
        own.chain(elsewhere).chain(link_local).reduce(best).map(|(address, _)| address)
    }

    /// Does the interface listen to this group of the link: all nodes, all routers, the
    /// solicited-node groups of its addresses (RFC 4291 §2.8)?
    pub fn listens_to(&self, group: Ipv6Addr) -> bool {
        let solicits = |own: Ipv6Addr| address::solicited_node(own) == group;
        let speaks = self.link_local.is_some() || self.tentative.iter().any(IpAddr::is_ipv6);
        speaks && (group == address::ALL_NODES || group == address::ALL_ROUTERS)
            || self.link_local.is_some_and(solicits)
            || self.ip6.iter().any(|own| solicits(own.address()))
            || self.tentative.iter().any(|own| matches!(own, IpAddr::V6(own) if solicits(*own)))
            || self.nd_proxies.iter().any(|proxy| solicits(*proxy))
    }

    /// Does the router answer ARP for this address of another?
    pub fn answers_for4(&self, address: Ipv4Addr) -> bool {
        let place = self.arp_proxies.partition_point(|(_, last)| *last < address);
        self.arp_proxies.get(place).is_some_and(|(first, _)| *first <= address)
    }

    /// Does the router advertise this address of another?
    pub fn answers_for6(&self, address: Ipv6Addr) -> bool {
        (self.nd_mirror && !address::is_link_local(address))
            || self.nd_proxies.binary_search(&address).is_ok()
    }

    /// Are others being asked for this one?
    pub fn is_tentative(&self, address: impl Into<IpAddr>) -> bool {
        !self.tentative.is_empty() && self.tentative.contains(&address.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        Addresses {
            ip4: vec!["10.0.0.1/24".parse().unwrap(), "10.0.0.129/25".parse().unwrap()],
            ip6: vec!["2001:db8:1::1/64".parse().unwrap(), "2001:db8:2::1/64".parse().unwrap()],
            link_local: Some("fe80::1".parse().unwrap()),
            ..Addresses::default()
        }
    }

    #[test]
    fn the_source_is_of_the_longest_subnet_that_the_destination_is_in() {
        let own = addresses();
        assert_eq!(own.source4([10, 0, 0, 200].into()), Some([10, 0, 0, 129].into()));
        assert_eq!(own.source4([10, 0, 0, 20].into()), Some([10, 0, 0, 1].into()));
        assert_eq!(own.source4([192, 0, 2, 1].into()), Some([10, 0, 0, 1].into()));
        assert_eq!(own.source6("2001:db8:2::9".parse().unwrap()), "2001:db8:2::1".parse().ok());
        assert_eq!(own.source6("fe80::9".parse().unwrap()), "fe80::1".parse().ok());
    }

    #[test]
    fn of_several_addresses_in_a_subnet_the_oldest_is_the_source() {
        let own = Addresses {
            ip4: ["10.0.0.9/24", "10.0.0.1/24", "10.0.0.200/24"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            ip6: ["2001:db8::9/64", "2001:db8::1/64", "2001:db8::200/64"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            ..addresses()
        };
        assert_eq!(own.source4([10, 0, 0, 77].into()), Some([10, 0, 0, 9].into()));
        assert_eq!(own.source4([192, 0, 2, 1].into()), Some([10, 0, 0, 9].into()));
        assert_eq!(own.source6("2001:db8::77".parse().unwrap()), "2001:db8::9".parse().ok());
    }

    #[test]
    fn the_source_is_chosen_by_the_rules_of_rfc_6724() {
        let at = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let own = Addresses {
            ip6: [
                "2001:db8:1::1/64",
                "fd00:1::1/64",
                "2002:c000:201::1/64",
                "2001:db8:1:0:8000::1/80",
            ]
            .map(|text| text.parse().unwrap())
            .to_vec(),
            link_local: Some(at("fe80::1")),
            ..Addresses::default()
        };
        for (to, from) in [
            // the longest common prefix, the first of those alike
            ("2001:db8:f::1", "2001:db8:1::1"),
            ("2001:db8:1:0:8000::9", "2001:db8:1:0:8000::1"),
            ("fd00:1::9", "fd00:1::1"), // the label of unique local addresses
            ("fd00:2::9", "fd00:1::1"),
            ("2002:c000:202::1", "2002:c000:201::1"), // the label of 6to4
            ("fe80::9", "fe80::1"),                   // the scope
            ("ff02::1", "fe80::1"),
            ("ff05::2", "2001:db8:1::1"),
            ("2001:db8:1::1", "2001:db8:1::1"), // itself
            ("fe80::1", "fe80::1"),
        ] {
            assert_eq!(own.source6(at(to)), Some(at(from)), "to {to}");
        }
    }

    #[test]
    fn a_deprecated_address_is_the_source_where_no_other_reaches() {
        let at = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let own = Addresses {
            ip6: ["2001:db8:1::1/64", "2001:db8:2::1/64"]
                .map(|text| text.parse().unwrap())
                .to_vec(),
            link_local: Some(at("fe80::1")),
            deprecated: vec![at("2001:db8:1::1")],
            ..Addresses::default()
        };
        assert_eq!(own.source6(at("2001:db8:1::9")), Some(at("2001:db8:2::1")));
        assert_eq!(own.source6(at("2001:db8:1::1")), Some(at("2001:db8:1::1")), "itself");
        let alone = Addresses { ip6: own.ip6[..1].to_vec(), ..own };
        assert_eq!(
            alone.source6(at("2001:db8:9::9")),
            Some(at("2001:db8:1::1")),
            "before a smaller scope"
        );
    }

    #[test]
    fn nothing_is_said_to_the_world_with_a_link_local_address_if_another_can_be_had() {
        let at = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let bare = Addresses { link_local: Some(at("fe80::1")), ..Addresses::default() };
        assert_eq!(bare.source6(at("2001:db8::9")), Some(at("fe80::1")));
        let lent = Addresses { elsewhere6: Some(at("2001:db8:7::1")), ..bare.clone() };
        assert_eq!(lent.source6(at("2001:db8::9")), Some(at("2001:db8:7::1")));
        assert_eq!(lent.source6(at("fe80::9")), Some(at("fe80::1")));
        let link = Addresses {
            ip4: vec!["169.254.1.1/16".parse().unwrap(), "10.0.0.1/24".parse().unwrap()],
            ..bare
        };
        assert_eq!(link.source4([192, 0, 2, 1].into()), Some([10, 0, 0, 1].into()));
        assert_eq!(link.source4([169, 254, 9, 9].into()), Some([169, 254, 1, 1].into()));
    }

    #[test]
    fn on_an_interface_that_borrows_its_addresses_anybody_is_near() {
        let own = Addresses { borrowed: true, ..addresses() };
        assert_eq!(own.on_link4([192, 0, 2, 1].into()), Some("10.0.0.1/24".parse().unwrap()));
        assert!(own.is_on_link6("2001:db8:f::1".parse().unwrap()));
        assert!(!addresses().is_on_link6("2001:db8:f::1".parse().unwrap()));
    }

    #[test]
    fn an_interface_listens_to_the_groups_of_its_addresses() {
        let own = addresses();
        for (group, listens) in
            [("ff02::1", true), ("ff02::1:ff00:1", true), ("ff02::1:ff00:2", false)]
        {
            assert_eq!(own.listens_to(group.parse().unwrap()), listens, "{group}");
        }
    }
    #[test]
    fn ranges_that_are_answered_for_hold_both_of_their_ends() {
        let mut own = addresses();
        let range = |first: [u8; 4], last: [u8; 4]| (first.into(), last.into());
        own.arp_proxies =
            [range([10, 0, 0, 5], [10, 0, 0, 9]), range([10, 0, 1, 0], [10, 0, 1, 0])].into();
        let answered: Vec<u8> =
            (0..20).filter(|host| own.answers_for4([10, 0, 0, *host].into())).collect();
        assert_eq!(answered, [5, 6, 7, 8, 9]);
        assert!(own.answers_for4([10, 0, 1, 0].into()) && !own.answers_for4([10, 0, 1, 1].into()));
    }
}
