//! Source, group and hops of a packet, whichever family it is of.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_wire::{Header, Ip4Header, Ip6Header, MacAddress, checksum, ip4, ip6};

/// What multicast forwarding looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The source as a number.
    pub source: u128,
    /// The group as a number.
    pub group: u128,
    /// TTL or hop limit.
    pub hops: u8,
}

impl Ends {
    /// Of the packet that `bytes` begin with.
    #[inline]
    pub fn of(six: bool, bytes: &[u8]) -> Option<Ends> {
        if six {
            let header = Ip6Header::overlay(bytes)?;
            let (source, group) = (header.source_bits(), header.destination_bits());
            return Some(Ends { source, group, hops: header.hop_limit() });
        }
        let header = Ip4Header::overlay(bytes)?;
        let (source, group) = (header.source_bits().into(), header.destination_bits().into());
        Some(Ends { source, group, hops: header.ttl() })
    }

    /// An address as it is written.
    pub fn ip(six: bool, bits: u128) -> IpAddr {
        if six { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
    }

    /// The group's address.
    pub fn group_ip(&self, six: bool) -> IpAddr {
        Ends::ip(six, self.group)
    }

    /// May a router forward from this source to this group: no source that means something on one
    /// link only (RFC 1812 §5.3.7, RFC 3927 §2.7, RFC 4291 §2.5.6), no group of the link or less
    /// (RFC 5771 §4, RFC 4291 §2.7)?
    #[inline]
    pub fn may_be_forwarded(&self, six: bool) -> bool {
        if six {
            let (source, group) =
                (Ipv6Addr::from_bits(self.source), Ipv6Addr::from_bits(self.group));
            return ip6::address::may_be_forwarded(source, group);
        }
        let (source, group) =
            (Ipv4Addr::from_bits(self.source as u32), Ipv4Addr::from_bits(self.group as u32));
        ip4::address::may_be_forwarded(source, group)
    }

    /// The MAC address of the group (RFC 1112 §6.4, RFC 2464 §7).
    #[inline]
    pub fn group_mac(&self, six: bool) -> MacAddress {
        if six {
            return MacAddress::for_ip6_multicast(Ipv6Addr::from_bits(self.group));
        }
        MacAddress::for_ip4_multicast(Ipv4Addr::from_bits(self.group as u32))
    }
}

/// One hop less to live.
#[inline]
pub(crate) fn count_hop(six: bool, bytes: &mut [u8]) {
    if six {
        if let Some(header) = Ip6Header::overlay_mut(bytes) {
            header.decrement_hop_limit();
        }
    } else if let Some(header) = Ip4Header::overlay_mut(bytes) {
        checksum::decrement_ttl(header);
    }
}

/// Source and group in words, for traces: `10.0.0.1 → 232.1.1.1, TTL 8`.
pub(crate) fn words(six: bool, bytes: &[u8]) -> String {
    let Some(ends) = Ends::of(six, bytes) else {
        return format!("{} bytes that are no packet", bytes.len());
    };
    let hops = if six { "hop limit" } else { "TTL" };
    format!("{} → {}, {hops} {}", Ends::ip(six, ends.source), ends.group_ip(six), ends.hops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_link_and_sources_of_the_link_are_not_forwarded() {
        let ends = |source: &str, group: &str| {
            let bits = |text: &str| match text.parse().unwrap() {
                IpAddr::V4(address) => u128::from(Ipv4Addr::to_bits(address)),
                IpAddr::V6(address) => Ipv6Addr::to_bits(address),
            };
            Ends { source: bits(source), group: bits(group), hops: 9 }
                .may_be_forwarded(group.contains(':'))
        };
        assert!(ends("10.0.0.1", "232.1.1.1") && ends("10.0.0.1", "224.0.1.1"));
        for (source, group) in
            [("10.0.0.1", "224.0.0.9"), ("0.0.0.0", "232.1.1.1"), ("169.254.0.1", "232.1.1.1")]
        {
            assert!(!ends(source, group), "{source} {group}");
        }
        assert!(ends("2001:db8::1", "ff05::1") && ends("2001:db8::1", "ff3e::1"));
        for (source, group) in [
            ("2001:db8::1", "ff02::9"),
            ("2001:db8::1", "ff12::9"),
            ("fe80::1", "ff05::1"),
            ("::", "ff05::1"),
        ] {
            assert!(!ends(source, group), "{source} {group}");
        }
    }
}
