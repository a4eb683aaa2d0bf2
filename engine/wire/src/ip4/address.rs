//! What kinds of IPv4 address there are, and which a router may forward (RFC 1812 §4.2.2.11,
//! §5.3.7; RFC 6890).

use core::net::Ipv4Addr;

/// `224.0.0.1`, every host on the link (RFC 1112 §4).
pub const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

/// Network 0, "this network" (RFC 6890: 0.0.0.0/8).
#[inline]
pub const fn is_this_network(address: Ipv4Addr) -> bool {
    address.octets()[0] == 0
}

/// Network 127.
#[inline]
pub const fn is_loopback(address: Ipv4Addr) -> bool {
    address.octets()[0] == 127
}

/// 224.0.0.0/4.
#[inline]
pub const fn is_multicast(address: Ipv4Addr) -> bool {
    address.octets()[0] >> 4 == 0xe
}

/// 224.0.0.0/24: groups that no router forwards (RFC 5771 §4).
#[inline]
pub const fn is_local_multicast(address: Ipv4Addr) -> bool {
    address.to_bits() >> 8 == 0x00e0_0000
}

/// 240.0.0.0/4 but for 255.255.255.255 (class E).
#[inline]
pub const fn is_reserved(address: Ipv4Addr) -> bool {
    address.octets()[0] >> 4 == 0xf && !is_limited_broadcast(address)
}

/// 255.255.255.255.
#[inline]
pub const fn is_limited_broadcast(address: Ipv4Addr) -> bool {
    address.to_bits() == u32::MAX
}

/// 169.254.0.0/16 (RFC 3927 §2.7: never forwarded).
#[inline]
pub const fn is_link_local(address: Ipv4Addr) -> bool {
    address.to_bits() >> 16 == 0xa9fe
}

/// An address that an interface of this router or a neighbour may have.
#[inline]
pub const fn is_unicast(address: Ipv4Addr) -> bool {
    !is_this_network(address) && !is_loopback(address) && address.octets()[0] < 224
}

/// A packet from here to there may cross a router: RFC 1812 §5.3.7 with link-local addresses as in
/// RFC 3927 §2.7. Multicast destinations are not checked here.
#[inline]
pub const fn may_be_forwarded(source: Ipv4Addr, destination: Ipv4Addr) -> bool {
    is_unicast(source)
        && !is_link_local(source)
        && (is_unicast(destination) || is_multicast(destination))
        && !is_link_local(destination)
        && !is_local_multicast(destination)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_special_block_of_rfc_6890_is_known_by_its_edges() {
        let at = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        assert!(is_this_network(at("0.255.255.255")) && !is_this_network(at("1.0.0.0")));
        assert!(is_loopback(at("127.0.0.0")) && is_loopback(at("127.255.255.255")));
        assert!(!is_loopback(at("126.255.255.255")) && !is_loopback(at("128.0.0.0")));
        assert!(!is_multicast(at("223.255.255.255")) && is_multicast(at("224.0.0.0")));
        assert!(is_multicast(at("239.255.255.255")) && !is_multicast(at("240.0.0.0")));
        assert!(is_reserved(at("240.0.0.0")) && is_reserved(at("255.255.255.254")));
        assert!(!is_reserved(Ipv4Addr::BROADCAST) && is_limited_broadcast(Ipv4Addr::BROADCAST));
        assert!(is_link_local(at("169.254.0.0")) && !is_link_local(at("169.255.0.0")));
        assert!(is_local_multicast(at("224.0.0.255")) && !is_local_multicast(at("224.0.1.0")));
    }

    #[test]
    fn only_what_rfc_1812_allows_crosses_the_router() {
        let at = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        assert!(may_be_forwarded(at("10.0.0.1"), at("192.0.2.1")));
        assert!(may_be_forwarded(at("10.0.0.1"), at("239.1.1.1")));
        for source in
            ["0.0.0.0", "127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "169.254.0.1"]
        {
            assert!(!may_be_forwarded(at(source), at("192.0.2.1")), "{source}");
        }
        for to in
            ["0.0.0.0", "127.0.0.1", "224.0.0.5", "250.0.0.1", "255.255.255.255", "169.254.0.1"]
        {
            assert!(!may_be_forwarded(at("10.0.0.1"), at(to)), "{to}");
        }
    }
}
