//! Addresses of one prefix as addresses of another, with the same checksum (RFC 6296 §3).

/// Bits of a prefix at most: the words behind them take the difference of the checksums (RFC 6296
/// §3.1).
pub(crate) const LENGTH_MAX: u8 = 64;
/// With prefixes of so many bits or fewer, the word behind bit 48 takes it (RFC 6296 §3.4).
const SHORT: u8 = 48;
/// A word that takes no difference: -0 and +0 would become the same.
const FULL: u16 = u16::MAX;
const WORDS: usize = 8;

/// A pair of prefixes of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    internal: u128,
    external: u128,
    mask: u128,
    /// What a word of an internal address gets.
    outward: u16,
    /// What a word of an external address gets.
    inward: u16,
    is_short: bool,
}

/// Ones' complement addition.
fn add(one: u16, other: u16) -> u16 {
    let (sum, carry) = one.overflowing_add(other);
    sum + u16::from(carry)
}

fn words(address: u128) -> [u16; WORDS] {
    std::array::from_fn(|at| (address >> (112 - 16 * at)) as u16)
}

impl Mapping {
    /// Prefixes of `length` bits; bits behind them do not count.
    pub fn new(internal: u128, external: u128, length: u8) -> Mapping {
        let mask = u128::MAX.checked_shl(128 - u32::from(length.min(LENGTH_MAX))).unwrap_or(0);
        let (internal, external) = (internal & mask, external & mask);
        let sum = |prefix| words(prefix).into_iter().fold(0, add);
        let (inside, outside) = (sum(internal), sum(external));
        Mapping {
            internal,
            external,
            mask,
            outward: add(inside, !outside),
            inward: add(outside, !inside),
            is_short: length <= SHORT,
        }
    }

    /// Is it an address behind the router?
    #[inline(always)]
    pub fn is_internal(&self, address: u128) -> bool {
        address & self.mask == self.internal
    }

    /// Is it one of those that others see?
    #[inline(always)]
    pub fn is_external(&self, address: u128) -> bool {
        address & self.mask == self.external
    }

    /// What others see of an internal address; nothing when none of its words can take the
    /// difference.
    #[inline(always)]
    pub fn to_external(self, address: u128) -> Option<u128> {
        self.map(address, self.external, self.outward)
    }

    /// What stands behind an external address; nothing when none of its words can take the
    /// difference.
    #[inline(always)]
    pub fn to_internal(self, address: u128) -> Option<u128> {
        self.map(address, self.internal, self.inward)
    }

    #[inline(always)]
    fn map(self, address: u128, prefix: u128, difference: u16) -> Option<u128> {
        let shift = if self.is_short { 64 } else { first_that_takes(address)? };
        let word = (address >> shift) as u16;
        if word == FULL {
            return None;
        }
        let sum = add(word, difference);
        let sum = if sum == FULL { 0 } else { sum };
        let rest = address & !self.mask & !(u128::from(FULL) << shift);
        Some(prefix | rest | u128::from(sum) << shift)
    }
}

/// How far to the left the first word of an interface identifier stands that can take a difference
/// (RFC 6296 §3.5).
#[inline(always)]
fn first_that_takes(address: u128) -> Option<u32> {
    [48, 32, 16, 0].into_iter().find(|shift| (address >> shift) as u16 != FULL)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;

    fn bits(text: &str) -> u128 {
        text.parse::<Ipv6Addr>().unwrap().to_bits()
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 6296 §3.6.
        let mapping = Mapping::new(bits("fd01:203:405::"), bits("2001:db8:1::"), 48);
        let (inside, outside) = (bits("fd01:203:405:1::1234"), bits("2001:db8:1:d550::1234"));
        assert_eq!(mapping.to_external(inside), Some(outside));
        assert_eq!(mapping.to_internal(outside), Some(inside));
    }

    #[test]
    fn words_that_are_full_are_passed_over() {
        let mapping = Mapping::new(bits("fd01:203:405:6::"), bits("2001:db8:1:2::"), 64);
        let inside = bits("fd01:203:405:6:ffff:1::9");
        let outside = mapping.to_external(inside).unwrap();
        assert_eq!(outside >> 48 & 0xffff, 0xffff);
        assert_eq!(mapping.to_internal(outside), Some(inside));
        assert_eq!(mapping.to_external(bits("fd01:203:405:6:ffff:ffff:ffff:ffff")), None);
        let short = Mapping::new(bits("fd01:203:405::"), bits("2001:db8:1::"), 48);
        assert_eq!(short.to_external(bits("fd01:203:405:ffff::1")), None);
    }

    proptest! {
        #[test]
        fn addresses_come_back_and_checksums_stay(
            internal: u128, external: u128, length in 1u8..=64, host: u128,
        ) {
            let mapping = Mapping::new(internal, external, length);
            let inside = mapping.internal | host & !mapping.mask;
            if let Some(outside) = mapping.to_external(inside) {
                prop_assert!(mapping.is_internal(inside) && mapping.is_external(outside));
                prop_assert_eq!(mapping.to_internal(outside), Some(inside));
                let sum = |address| match words(address).into_iter().fold(0, add) {
                    FULL => 0,
                    sum => sum,
                };
                prop_assert_eq!(sum(inside), sum(outside));
            } else {
                prop_assert!(words(inside)[3..].contains(&FULL));
            }
        }
    }
}
