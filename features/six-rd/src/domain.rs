//! The mathematics of a 6rd domain (RFC 5969 §4): which IPv4 address stands in an IPv6 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::IpPrefix;

/// The longest delegated prefix: what is left numbers the hosts of a customer (RFC 5969 §4).
pub const DELEGATED_LENGTH_MAX: u8 = 64;

/// Why two prefixes make no domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// Behind the IPv6 prefix there is no room.
    #[error(
        "behind an IPv6 prefix of {0} bits {1} bits of IPv4 addresses make delegated prefixes of \
         {sum} bits; at most {DELEGATED_LENGTH_MAX} leave room for hosts",
        sum = u16::from(*.0) + u16::from(*.1)
    )]
    TooLong(u8, u8),
    /// Bits behind the length.
    #[error("{0} has bits behind its length; {1} is the prefix")]
    HostBits(IpPrefix, IpPrefix),
}

/// A 6rd domain, as workers read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    prefix6: u128,
    mask6: u128,
    /// What all IPv4 addresses of the domain have in common.
    prefix4: u32,
    mask4: u32,
    /// Bits from the begin of an IPv6 address to the IPv4 suffix.
    length6: u8,
    /// The border relay to which everything outside the domain goes.
    relay: Option<u32>,
}

/// The mask of a prefix's length.
fn mask6(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0)
}

fn mask4(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

/// Are there no bits behind the length?
fn check_bits(prefix: IpPrefix) -> Result<(), DomainError> {
    match prefix.has_host_bits() {
        false => Ok(()),
        true => Err(DomainError::HostBits(prefix, prefix.network())),
    }
}

impl Domain {
    /// Of the 6rd prefix and the prefix that all IPv4 addresses have in common (RFC 5969 §7.1.1).
    ///
    /// # Errors
    /// The prefixes have bits behind their lengths, or together they are too long.
    pub fn new(
        ip6: IpPrefix,
        ip4: IpPrefix,
        relay: Option<Ipv4Addr>,
    ) -> Result<Domain, DomainError> {
        check_bits(ip6)?;
        check_bits(ip4)?;
        let suffix = 32 - ip4.length.min(32);
        if ip6.length.saturating_add(suffix) > DELEGATED_LENGTH_MAX {
            return Err(DomainError::TooLong(ip6.length, suffix));
        }
        let prefix6 = match ip6.address {
            IpAddr::V6(address) => address.to_bits(),
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        };
        let prefix4 = match ip4.address {
            IpAddr::V4(address) => address.to_bits(),
            IpAddr::V6(_) => 0,
        };
        Ok(Domain {
            prefix6,
            mask6: mask6(ip6.length),
            prefix4,
            mask4: mask4(ip4.length),
            length6: ip6.length,
            relay: relay.map(Ipv4Addr::to_bits),
        })
    }

    /// Has the address an IPv4 address of the domain in it?
    #[inline(always)]
    pub fn has(&self, address: u128) -> bool {
        address & self.mask6 == self.prefix6
    }

    /// The IPv4 address of the domain that stands in an address of it.
    #[inline(always)]
    pub fn embedded(&self, address: u128) -> u32 {
        let behind = (address << (self.length6 & 127) >> 96) as u32;
        // The suffix is as long as what the mask leaves.
        let suffix = behind.checked_shr(self.mask4.leading_ones()).unwrap_or(0);
        self.prefix4 | suffix
    }

    /// Where a packet to this address goes: to the customer's edge that it names, or to the border
    /// relay.
    #[inline(always)]
    pub fn outer_destination(&self, address: u128) -> Option<u32> {
        if self.has(address) { Some(self.embedded(address)) } else { self.relay }
    }

    /// May a packet from this address come from that outer source (RFC 5969 §12)? What is outside
    /// of the domain comes from the border relay only.
    #[inline(always)]
    pub fn is_source(&self, address: u128, outer: u32) -> bool {
        self.outer_destination(address) == Some(outer)
    }

    /// The prefix that the customer's edge with this IPv4 address delegates.
    pub fn delegated(&self, address: Ipv4Addr) -> IpPrefix {
        let suffix_len = self.mask4.count_zeros() as u8;
        let suffix = u128::from(address.to_bits() & !self.mask4);
        let length = self.length6 + suffix_len;
        let place = 128 - u32::from(length);
        let bits = self.prefix6 | suffix.checked_shl(place).unwrap_or(0);
        IpPrefix { address: IpAddr::V6(Ipv6Addr::from_bits(bits)), length }
    }

    /// Is the IPv4 address one of the domain?
    pub fn is_member(&self, address: Ipv4Addr) -> bool {
        address.to_bits() & self.mask4 == self.prefix4
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str) -> IpPrefix {
        let (address, length) = text.split_once('/').expect("a length");
        IpPrefix {
            address: address.parse().expect("an address"),
            length: length.parse().expect("a number"),
        }
    }

    fn bits(text: &str) -> u128 {
        text.parse::<Ipv6Addr>().expect("an address").to_bits()
    }

    #[test]
    fn the_suffix_of_an_ip4_address_stands_behind_the_prefix() {
        let relay = Some(Ipv4Addr::new(10, 0, 0, 1));
        // RFC 5969 §4: 8 bits in common, 24 in the address.
        let domain =
            Domain::new(prefix("2001:db8::/32"), prefix("10.0.0.0/8"), relay).expect("fits");
        let address = bits("2001:db8:6464:100::1");
        assert!(domain.has(address));
        assert_eq!(Ipv4Addr::from_bits(domain.embedded(address)), Ipv4Addr::new(10, 100, 100, 1));
        assert_eq!(
            domain.delegated(Ipv4Addr::new(10, 100, 100, 1)),
            prefix("2001:db8:6464:100::/56")
        );
        assert!(domain.is_source(address, Ipv4Addr::new(10, 100, 100, 1).to_bits()));
        assert!(!domain.is_source(address, Ipv4Addr::new(10, 100, 100, 2).to_bits()));
        assert_eq!(domain.outer_destination(bits("2001:db9::1")), relay.map(Ipv4Addr::to_bits));
        assert!(domain.is_source(bits("2001:db9::1"), Ipv4Addr::new(10, 0, 0, 1).to_bits()));
        assert!(!domain.is_source(bits("2001:db9::1"), Ipv4Addr::new(10, 0, 0, 2).to_bits()));
    }

    #[test]
    fn whole_and_no_addresses_stand_there_too() {
        let whole = Domain::new(prefix("2001:db8::/32"), prefix("0.0.0.0/0"), None).expect("fits");
        assert_eq!(whole.embedded(bits("2001:db8:c000:202::1")), 0xc000_0202);
        assert_eq!(whole.outer_destination(bits("2001:db9::")), None);
        let none =
            Domain::new(prefix("2001:db8:1::/48"), prefix("192.0.2.9/32"), None).expect("fits");
        assert_eq!(none.embedded(bits("2001:db8:1:ffff::1")), 0xc000_0209);
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        let new = |six, four| Domain::new(prefix(six), prefix(four), None);
        assert_eq!(new("2001:db8::/48", "0.0.0.0/0"), Err(DomainError::TooLong(48, 32)));
        assert!(matches!(new("2001:db8::1/32", "10.0.0.0/8"), Err(DomainError::HostBits(..))));
        assert!(matches!(new("2001:db8::/32", "10.1.0.0/8"), Err(DomainError::HostBits(..))));
    }

    proptest! {
        #[test]
        fn an_address_of_a_delegated_prefix_names_its_edge(
            length6 in 0u8..=64,
            length4 in 0u8..=32,
            ip6 in any::<u128>(),
            ip4 in any::<u32>(),
            edge in any::<u32>(),
            host in any::<u128>(),
        ) {
            let six = IpAddr::V6((ip6 & mask6(length6)).into());
            let six = IpPrefix { address: six, length: length6 };
            let four = IpAddr::V4((ip4 & mask4(length4)).into());
            let four = IpPrefix { address: four, length: length4 };
            let Ok(domain) = Domain::new(six, four, None) else {
                prop_assert!(length6 + 32 - length4 > 64);
                return Ok(());
            };
            let edge = Ipv4Addr::from_bits(ip4 & mask4(length4) | edge & !mask4(length4));
            prop_assert!(domain.is_member(edge));
            let delegated = domain.delegated(edge);
            let IpAddr::V6(prefix) = delegated.address else { panic!("IPv6") };
            let address = prefix.to_bits() | host & !mask6(delegated.length);
            prop_assert!(domain.has(address));
            prop_assert_eq!(domain.embedded(address), edge.to_bits());
        }
    }
}
