//! Addresses of one version as those of the other: explicit address mappings first, the longest of
//! them (RFC 7757 §3.3), then the prefix (RFC 6052).

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_translation::versions::address::{Prefix, is_global};

/// The version that the hosts of an entry have themselves; their addresses of the other version
/// are names for them, which lead to the translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hosts {
    Ip4,
    Ip6,
}

impl Hosts {
    /// As commands have it.
    pub fn word(self) -> &'static str {
        match self {
            Hosts::Ip4 => "ip4",
            Hosts::Ip6 => "ip6",
        }
    }
}

/// An explicit address mapping (RFC 7757 §3.1). Bits behind the lengths are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mapping {
    pub ip4: u32,
    pub length4: u8,
    pub ip6: u128,
    pub length6: u8,
    pub hosts: Hosts,
}

fn mask4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

fn mask6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl Mapping {
    /// How far to the left the suffix stands in an address of IPv6. The IPv6 suffix is as long as
    /// the IPv4 suffix or longer. For one address of IPv4 and all of IPv6 it is 128: there is none.
    fn shift(&self) -> u32 {
        u32::from(128 - self.length6).saturating_sub(u32::from(32 - self.length4))
    }

    /// Is an address of IPv4 within?
    pub fn has4(&self, address: u32) -> bool {
        address & mask4(self.length4) == self.ip4
    }

    /// Is an address of IPv6 within?
    pub fn has6(&self, address: u128) -> bool {
        address & mask6(self.length6) == self.ip6
    }

    fn to6(self, address: u32) -> u128 {
        let suffix = u128::from(address & !mask4(self.length4));
        self.ip6 | suffix.checked_shl(self.shift()).unwrap_or(0)
    }

    fn to4(self, address: u128) -> u32 {
        let suffix = address.checked_shr(self.shift()).unwrap_or(0);
        self.ip4 | suffix as u32 & !mask4(self.length4)
    }

    /// Does it say something else than `other` of the same address?
    pub fn overlaps(&self, other: &Mapping) -> bool {
        (self.ip4, self.length4) == (other.ip4, other.length4)
            || (self.ip6, self.length6) == (other.ip6, other.length6)
    }
}

impl std::fmt::Display for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (ip4, ip6) = (Ipv4Addr::from(self.ip4), Ipv6Addr::from_bits(self.ip6));
        write!(f, "{ip4}/{} {ip6}/{}", self.length4, self.length6)
    }
}

/// All that is configured, as workers read it.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    pub prefix: Option<(Prefix, Hosts)>,
    /// To how many bytes packets are cut that may be.
    pub ip6_mtu_bytes: u16,
    by_ip4: Box<[Mapping]>,
    by_ip6: Box<[Mapping]>,
}

impl Map {
    /// Of a prefix and mappings.
    pub fn new(prefix: Option<(Prefix, Hosts)>, mappings: &[Mapping], ip6_mtu_bytes: u16) -> Map {
        let (mut by_ip4, mut by_ip6) = (mappings.to_vec(), mappings.to_vec());
        by_ip4.sort_by_key(|mapping| std::cmp::Reverse(mapping.length4));
        by_ip6.sort_by_key(|mapping| std::cmp::Reverse(mapping.length6));
        Map { prefix, ip6_mtu_bytes, by_ip4: by_ip4.into(), by_ip6: by_ip6.into() }
    }

    /// The address of IPv6 that stands for one of IPv4. Behind the well-known prefix only global
    /// addresses do (RFC 6052 §3.1).
    #[inline]
    pub fn to6(&self, address: u32) -> Option<u128> {
        if let Some(mapping) = self.by_ip4.iter().find(|mapping| mapping.has4(address)) {
            return Some(mapping.to6(address));
        }
        let (prefix, _) = self.prefix?;
        let may = !prefix.is_well_known() || is_global(address);
        may.then(|| prefix.embed(address))
    }

    /// The same of a destination: nothing when its host has IPv4, for whom the way back would lead
    /// here again.
    #[inline]
    pub fn host6(&self, address: u32) -> Option<u128> {
        let mapping = self.by_ip4.iter().find(|mapping| mapping.has4(address));
        let hosts = mapping.map(|mapping| mapping.hosts).or(self.prefix.map(|(_, hosts)| hosts));
        self.to6(address).filter(|_| hosts == Some(Hosts::Ip6))
    }

    /// The address of IPv4 of a destination: nothing when its host has IPv6.
    #[inline]
    pub fn host4(&self, address: u128) -> Option<u32> {
        let mapping = self.by_ip6.iter().find(|mapping| mapping.has6(address));
        let hosts = mapping.map(|mapping| mapping.hosts).or(self.prefix.map(|(_, hosts)| hosts));
        self.to4(address).filter(|_| hosts == Some(Hosts::Ip4))
    }

    /// The address of IPv4 that stands for one of IPv6.
    #[inline]
    pub fn to4(&self, address: u128) -> Option<u32> {
        if let Some(mapping) = self.by_ip6.iter().find(|mapping| mapping.has6(address)) {
            return Some(mapping.to4(address));
        }
        let (prefix, _) = self.prefix?;
        let extracted = prefix.extract(address)?;
        (!prefix.is_well_known() || is_global(extracted)).then_some(extracted)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mapping(ip4: &str, length4: u8, ip6: &str, length6: u8) -> Mapping {
        Mapping {
            ip4: ip4.parse::<Ipv4Addr>().expect("an address").to_bits(),
            length4,
            ip6: ip6.parse::<Ipv6Addr>().expect("an address").to_bits(),
            length6,
            hosts: Hosts::Ip6,
        }
    }

    /// RFC 7757 §3.2, figure 1, and §3.3.
    #[test]
    fn the_examples_of_the_rfc() {
        let map = Map::new(
            None,
            &[
                mapping("192.0.2.1", 32, "2001:db8:aaaa::", 128),
                mapping("192.0.2.2", 32, "2001:db8:bbbb::b", 128),
                mapping("192.0.2.16", 28, "2001:db8:cccc::", 124),
                mapping("192.0.2.128", 26, "2001:db8:dddd::", 64),
                mapping("192.0.2.192", 29, "2001:db8:eeee:8::", 62),
                mapping("192.0.2.224", 31, "64:ff9b::", 127),
            ],
            1280,
        );
        for (four, six) in [
            ("192.0.2.1", "2001:db8:aaaa::"),
            ("192.0.2.2", "2001:db8:bbbb::b"),
            ("192.0.2.16", "2001:db8:cccc::"),
            ("192.0.2.24", "2001:db8:cccc::8"),
            ("192.0.2.31", "2001:db8:cccc::f"),
            ("192.0.2.128", "2001:db8:dddd::"),
            ("192.0.2.152", "2001:db8:dddd:0:6000::"),
            ("192.0.2.183", "2001:db8:dddd:0:dc00::"),
            ("192.0.2.192", "2001:db8:eeee:8::"),
            ("192.0.2.195", "2001:db8:eeee:9:8000::"),
            ("192.0.2.199", "2001:db8:eeee:b:8000::"),
            ("192.0.2.224", "64:ff9b::"),
            ("192.0.2.225", "64:ff9b::1"),
        ] {
            let (four, six): (Ipv4Addr, Ipv6Addr) =
                (four.parse().expect("an address"), six.parse().expect("an address"));
            assert_eq!(map.to6(four.to_bits()).map(Ipv6Addr::from_bits), Some(six), "{four}");
            assert_eq!(map.to4(six.to_bits()).map(Ipv4Addr::from), Some(four), "{six}");
        }
        assert_eq!(map.to6(0xc000_0203), None);
        assert_eq!(map.to4(1), None);
    }

    #[test]
    fn one_address_may_stand_for_all() {
        let map = Map::new(None, &[mapping("192.0.2.1", 32, "::", 0)], 1280);
        assert_eq!((map.to6(0xc000_0201), map.to4(u128::MAX)), (Some(0), Some(0xc000_0201)));
    }

    #[test]
    fn the_well_known_prefix_has_global_addresses_alone() {
        let map = Map::new(Some((Prefix::WELL_KNOWN, Hosts::Ip4)), &[], 1280);
        assert_eq!((map.to6(0x0a00_0001), map.to4(0x0064_ff9b << 96 | 0x0a00_0001)), (None, None));
        assert_eq!(map.to6(0x0808_0808), Some(0x0064_ff9b << 96 | 0x0808_0808));
    }

    proptest! {
        /// RFC 7757 §3.3: an address comes back; the longest mapping counts.
        #[test]
        fn addresses_come_back(
            ip4: u32, length4 in 0u8..=32, ip6: u128, length6 in 0u8..=128, address: u32,
        ) {
            prop_assume!(32 - length4 <= 128 - length6);
            let wide = Mapping {
                ip4: ip4 & mask4(length4),
                length4,
                ip6: ip6 & mask6(length6),
                length6,
                hosts: Hosts::Ip4,
            };
            let map = Map::new(None, &[wide], 1280);
            let address = wide.ip4 | address & !mask4(length4);
            let six = map.to6(address).expect("within");
            prop_assert!(wide.has6(six));
            prop_assert_eq!(map.to4(six), Some(address));
        }
    }
}
