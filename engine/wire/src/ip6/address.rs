//! What kinds of IPv6 address there are, and which a router may forward (RFC 4291 §2; RFC 6890).

use core::net::Ipv6Addr;

/// `::1`.
pub const LOOPBACK: Ipv6Addr = Ipv6Addr::LOCALHOST;
/// `ff02::1`, every node on the link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// `ff02::2`, every router on the link.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// The first 104 bits of every solicited-node group: ff02::1:ff00:0/104.
const SOLICITED_NODE: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;

/// `::`.
#[inline]
pub const fn is_unspecified(address: Ipv6Addr) -> bool {
    address.to_bits() == 0
}

/// `::1`.
#[inline]
pub const fn is_loopback(address: Ipv6Addr) -> bool {
    address.to_bits() == 1
}

/// ff00::/8.
#[inline]
pub const fn is_multicast(address: Ipv6Addr) -> bool {
    address.to_bits() >> 120 == 0xff
}

/// How far a group reaches (RFC 4291 §2.7): 1 the interface, 2 the link, 5 the site, 14 the world.
#[inline]
pub const fn multicast_scope(group: Ipv6Addr) -> u8 {
    (group.to_bits() >> 112) as u8 & 0x0f
}

/// fe80::/10.
#[inline]
pub const fn is_link_local(address: Ipv6Addr) -> bool {
    address.to_bits() >> 118 == 0xfe80 >> 6
}

/// fc00::/7 (RFC 4193); forwarded like any other.
#[inline]
pub const fn is_unique_local(address: Ipv6Addr) -> bool {
    address.to_bits() >> 121 == 0xfc >> 1
}

/// ::ffff:0:0/96: an IPv4 address in an API, never in a packet (RFC 6890).
#[inline]
pub const fn is_v4_mapped(address: Ipv6Addr) -> bool {
    address.to_bits() >> 32 == 0xffff
}

/// An address that an interface of this router or a neighbour may have.
#[inline]
pub const fn is_unicast(address: Ipv6Addr) -> bool {
    !is_multicast(address) && address.to_bits() > 1 && !is_v4_mapped(address)
}

/// The group where the owner of this address listens for solicitations (RFC 4291 §2.7.1). Its MAC
/// is [`crate::MacAddress::for_ip6_multicast`] of it.
#[inline]
pub const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(SOLICITED_NODE | address.to_bits() & 0xff_ffff)
}

/// ff02::1:ff00:0/104.
#[inline]
pub const fn is_solicited_node(address: Ipv6Addr) -> bool {
    address.to_bits() >> 24 == SOLICITED_NODE >> 24
}

/// A packet from here to there may cross a router: no unspecified, loopback, link-local or mapped
/// address (RFC 4291 §2.5.2, §2.5.3, §2.5.6; RFC 6890), no group of the link or less.
#[inline]
pub const fn may_be_forwarded(source: Ipv6Addr, destination: Ipv6Addr) -> bool {
    let to_group = is_multicast(destination) && multicast_scope(destination) > 2;
    is_unicast(source)
        && !is_link_local(source)
        && (to_group || is_unicast(destination) && !is_link_local(destination))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MacAddress;

    fn at(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    #[test]
    fn each_kind_of_rfc_4291_is_known_by_its_edges() {
        assert!(
            is_link_local(at("fe80::1"))
                && is_link_local(at("febf::"))
                && !is_link_local(at("fec0::"))
        );
        assert!(is_multicast(at("ff00::")) && !is_multicast(at("fe00::")));
        assert!(
            is_unique_local(at("fc00::"))
                && is_unique_local(at("fdff::"))
                && !is_unique_local(at("fe00::"))
        );
        assert!(is_v4_mapped(at("::ffff:10.0.0.1")) && !is_v4_mapped(at("::fffe:10.0.0.1")));
        assert!(is_unicast(at("::2")) && !is_unicast(at("::1")) && !is_unicast(at("::")));
        assert_eq!(multicast_scope(at("ff1e::1")), 14);
    }

    #[test]
    fn the_solicited_node_example_of_rfc_4291_section_2_7_1() {
        let group = solicited_node(at("4037::01:800:200e:8c6c"));
        assert_eq!(group, at("ff02::1:ff0e:8c6c"));
        assert!(is_solicited_node(group) && !is_solicited_node(ALL_NODES));
        assert_eq!(
            MacAddress::for_ip6_multicast(group),
            MacAddress([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c])
        );
    }

    #[test]
    fn only_what_rfc_4291_allows_crosses_the_router() {
        assert!(may_be_forwarded(at("2001:db8::1"), at("2001:db8:1::1")));
        assert!(may_be_forwarded(at("fd00::1"), at("ff05::1")));
        for source in ["::", "::1", "fe80::1", "ff02::1", "::ffff:10.0.0.1"] {
            assert!(!may_be_forwarded(at(source), at("2001:db8::1")), "{source}");
        }
        for destination in ["::", "::1", "fe80::1", "ff02::1", "ff01::1", "::ffff:10.0.0.1"] {
            assert!(!may_be_forwarded(at("2001:db8::1"), at(destination)), "{destination}");
        }
    }
}
