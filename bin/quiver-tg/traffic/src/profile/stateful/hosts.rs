//! A run of addresses that a side plays: hosts that follow each other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hosts of one side.
pub const HOSTS_MAX: u32 = 1 << 24;

/// Addresses that follow each other, all of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    first: u128,
    count: u32,
    is_ip6: bool,
}

/// An address as a number: IPv4 addresses are below 2^32.
pub fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Hosts {
    /// `first` and those behind it. `None` when there are none, too many, or the family ends
    /// before.
    pub fn new(first: IpAddr, count: u32) -> Option<Hosts> {
        let is_ip6 = first.is_ipv6();
        let last = if is_ip6 { u128::MAX } else { u128::from(u32::MAX) };
        let bits = bits_of(first);
        let fits = (1..=HOSTS_MAX).contains(&count) && u128::from(count - 1) <= last - bits;
        fits.then_some(Hosts { first: bits, count, is_ip6 })
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Are they IPv6 addresses?
    pub fn is_ip6(&self) -> bool {
        self.is_ip6
    }

    /// The address at a place, as a number.
    #[inline(always)]
    pub fn bits_at(&self, place: u32) -> u128 {
        self.first + u128::from(place)
    }

    /// The address at a place.
    pub fn at(&self, place: u32) -> IpAddr {
        let bits = self.bits_at(place);
        if self.is_ip6 {
            Ipv6Addr::from_bits(bits).into()
        } else {
            Ipv4Addr::from_bits(bits as u32).into()
        }
    }

    /// The place of an address of the same family, given as a number.
    #[inline(always)]
    pub fn place_of(&self, bits: u128) -> Option<u32> {
        let place = bits.wrapping_sub(self.first);
        (place < u128::from(self.count)).then_some(place as u32)
    }

    /// Is it one of them?
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv6() == self.is_ip6 && self.place_of(bits_of(address)).is_some()
    }

    /// Do both have an address in common?
    pub fn overlaps(&self, other: &Hosts) -> bool {
        let (ours, theirs) =
            (self.first + u128::from(self.count - 1), other.first + u128::from(other.count - 1));
        self.is_ip6 == other.is_ip6 && self.first <= theirs && other.first <= ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_run_that_leaves_its_family_is_refused() {
        let last = IpAddr::from([255, 255, 255, 255]);
        assert!(Hosts::new(last, 1).is_some());
        assert!(Hosts::new(last, 2).is_none() && Hosts::new(last, 0).is_none());
        assert!(
            Hosts::new("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().expect("address"), 2)
                .is_none()
        );
    }

    #[test]
    fn runs_that_share_an_address_overlap() {
        let hosts = |first: [u8; 4], count| Hosts::new(first.into(), count).expect("hosts");
        assert!(hosts([10, 0, 0, 0], 256).overlaps(&hosts([10, 0, 0, 255], 1)));
        assert!(!hosts([10, 0, 0, 0], 255).overlaps(&hosts([10, 0, 0, 255], 1)));
    }

    proptest! {
        #[test]
        fn a_place_and_its_address_are_each_others_inverse(
            first: u32, count in 1u32..1000, place in 0u32..2000
        ) {
            let hosts = Hosts::new(Ipv4Addr::from_bits(first).into(), count);
            if let Some(hosts) = hosts {
                let inside = place < count;
                let bits = u128::from(first) + u128::from(place);
                prop_assert_eq!(hosts.place_of(bits), inside.then_some(place));
                if inside {
                    prop_assert!(hosts.contains(hosts.at(place)));
                }
            }
        }
    }
}
