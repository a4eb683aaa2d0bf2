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
    /// Those that others are being asked for (RFC 4862 §5.4). They may stand among the others, and be used,
    /// or not yet.
    pub tentative: Vec<IpAddr>,
    /// Ranges of IPv4 addresses, in order and apart from each other, that the router answers ARP for as if
    /// they were its own (RFC 1027).
    pub arp_proxies: Arc<[(Ipv4Addr, Ipv4Addr)]>,
    /// IPv6 addresses, in order, that it advertises as if they were its own (RFC 4861 §7.2.8).
    pub nd_proxies: Arc<[Ipv6Addr]>,
}

impl Addresses {
    /// Is this one of the interface's own?
    pub fn has4(&self, address: Ipv4Addr) -> bool {
        self.ip4.iter().any(|own| own.address() == address)
    }

    /// The own address whose subnet `address` is in.
    pub fn on_link4(&self, address: Ipv4Addr) -> Option<Ip4InterfaceAddress> {
        self.ip4.iter().copied().filter(|own| own.prefix().contains(address)).max_by_key(|own| own.length())
    }

    /// With which address to speak to `to`: one of the same subnet, or else the first.
    pub fn source4(&self, to: Ipv4Addr) -> Option<Ipv4Addr> {
        self.on_link4(to).or(self.ip4.first().copied()).map(|own| own.address())
    }

    /// Is this one of the interface's own?
    pub fn has6(&self, address: Ipv6Addr) -> bool {
        self.link_local == Some(address) || self.ip6.iter().any(|own| own.address() == address)
    }

    /// Is `address` in a subnet of this interface? Link-local ones always are.
    pub fn is_on_link6(&self, address: Ipv6Addr) -> bool {
        (address::is_link_local(address) && self.link_local.is_some())
            || self.ip6.iter().any(|own| own.prefix().contains(address))
    }

    /// With which address to speak to `to` (a simple form of RFC 6724 §5): link-local to link-local,
    /// then one of the same subnet, then the first, then link-local.
    pub fn source6(&self, to: Ipv6Addr) -> Option<Ipv6Addr> {
        if address::is_link_local(to) || address::is_multicast(to) && address::multicast_scope(to) <= 2 {
            return self.link_local;
        }
        let near = self.ip6.iter().filter(|own| own.prefix().contains(to)).max_by_key(|own| own.length());
        near.or(self.ip6.first()).map(|own| own.address()).or(self.link_local)
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
        self.nd_proxies.binary_search(&address).is_ok()
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
    fn an_interface_listens_to_the_groups_of_its_addresses() {
        let own = addresses();
        for (group, listens) in [("ff02::1", true), ("ff02::1:ff00:1", true), ("ff02::1:ff00:2", false)] {
            assert_eq!(own.listens_to(group.parse().unwrap()), listens, "{group}");
        }
    }
    #[test]
    fn ranges_that_are_answered_for_hold_both_of_their_ends() {
        let mut own = addresses();
        let range = |first: [u8; 4], last: [u8; 4]| (first.into(), last.into());
        own.arp_proxies = [range([10, 0, 0, 5], [10, 0, 0, 9]), range([10, 0, 1, 0], [10, 0, 1, 0])].into();
        let answered: Vec<u8> = (0..20).filter(|host| own.answers_for4([10, 0, 0, *host].into())).collect();
        assert_eq!(answered, [5, 6, 7, 8, 9]);
        assert!(own.answers_for4([10, 0, 1, 0].into()) && !own.answers_for4([10, 0, 1, 1].into()));
    }
}
