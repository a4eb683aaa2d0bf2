//! IPv4 addresses inside of IPv6 addresses (RFC 6052 §2.2).
//!
//! ```text
//! length  0         32        40   48   56   64   72   80   88   96  104       127
//! 32      | prefix  | v4 (32)           |    | u  | suffix                        |
//! 40      | prefix            | v4 (24)      | u  |(8) | suffix                   |
//! 48      | prefix                 | v4 (16) | u  | (16)    | suffix              |
//! 56      | prefix                      |(8) | u  | v4 (24)      | suffix         |
//! 64      | prefix                           | u  | v4 (32)           | suffix    |
//! 96      | prefix                                                   | v4 (32)   |
//! ```

/// Bits in front of the octet `u`, which is zero (RFC 6052 §2.2).
const HIGH: u128 = !(u64::MAX as u128);
const LOW: u128 = u64::MAX as u128;
/// The octet `u`.
const U: u128 = 0xff << 56;

/// Why a prefix has no room for IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPrefix {
    /// RFC 6052 §2.2.
    #[error("a prefix for IPv4 addresses has 32, 40, 48, 56, 64 or 96 bits (RFC 6052 section 2.2)")]
    Length,
    /// RFC 6052 §2.2.
    #[error("bits 64 to 71 of a prefix for IPv4 addresses are zero (RFC 6052 section 2.2)")]
    Octet,
    /// Bits behind the prefix.
    #[error("the prefix has bits set behind its length")]
    HostBits,
}

/// A prefix in front of IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    bits: u128,
    length: u8,
}

impl Prefix {
    /// `64:ff9b::/96` (RFC 6052 §2.1).
    pub const WELL_KNOWN: Prefix = Prefix { bits: 0x0064_ff9b << 96, length: 96 };

    /// A prefix of `length` bits.
    ///
    /// # Errors
    /// It is none of the lengths of RFC 6052 §2.2, or bits are set that must be zero.
    pub fn new(bits: u128, length: u8) -> Result<Prefix, BadPrefix> {
        if !matches!(length, 32 | 40 | 48 | 56 | 64 | 96) {
            return Err(BadPrefix::Length);
        }
        if bits & !mask(length) != 0 {
            return Err(BadPrefix::HostBits);
        }
        if bits & U != 0 {
            return Err(BadPrefix::Octet);
        }
        Ok(Prefix { bits, length })
    }

    /// Its bits.
    pub const fn bits(self) -> u128 {
        self.bits
    }

    /// Its length.
    pub const fn length(self) -> u8 {
        self.length
    }

    /// Is it `64:ff9b::/96`, in which only global IPv4 addresses stand (RFC 6052 §3.1)?
    pub fn is_well_known(self) -> bool {
        self == Prefix::WELL_KNOWN
    }

    /// Does an address begin with it?
    #[inline(always)]
    pub fn contains(self, address: u128) -> bool {
        address & mask(self.length) == self.bits
    }

    /// An IPv4 address behind it; the suffix is zero.
    #[inline(always)]
    pub fn embed(self, address: u32) -> u128 {
        let address = u128::from(address);
        if self.length == 96 {
            return self.bits | address;
        }
        let placed = address << (96 - self.length);
        self.bits | placed & HIGH | (placed & LOW) >> 8
    }

    /// The IPv4 address behind it, whatever the suffix is (RFC 6052 §2.3); nothing when the
    /// address begins otherwise.
    #[inline(always)]
    pub fn extract(self, address: u128) -> Option<u32> {
        if !self.contains(address) {
            return None;
        }
        if self.length == 96 {
            return Some(address as u32);
        }
        let joined = address & HIGH | (address << 8) & LOW;
        Some((joined >> (96 - self.length)) as u32)
    }
}

const fn mask(length: u8) -> u128 {
    match u128::MAX.checked_shl(128 - length as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

/// IPv4 prefixes whose addresses are not global (RFC 6890): address and length.
const NOT_GLOBAL: [(u32, u8); 14] = [
    (0x0000_0000, 8),
    (0x0a00_0000, 8),
    (0x6440_0000, 10),
    (0x7f00_0000, 8),
    (0xa9fe_0000, 16),
    (0xac10_0000, 12),
    (0xc000_0000, 24),
    (0xc000_0200, 24),
    (0xc0a8_0000, 16),
    (0xc612_0000, 15),
    (0xc633_6400, 24),
    (0xcb00_7100, 24),
    (0xe000_0000, 4),
    (0xf000_0000, 4),
];

/// May an IPv4 address stand behind the well-known prefix (RFC 6052 §3.1)?
#[inline]
pub fn is_global(address: u32) -> bool {
    NOT_GLOBAL.iter().all(|(prefix, length)| (address ^ prefix) >> (32 - length) != 0)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str, length: u8) -> Result<Prefix, BadPrefix> {
        Prefix::new(text.parse::<Ipv6Addr>().expect("an address").to_bits(), length)
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 6052 §2.4, table 2 and table 3.
        let address = Ipv4Addr::new(192, 0, 2, 33).to_bits();
        for (text, length, expected) in [
            ("2001:db8::", 32, "2001:db8:c000:221::"),
            ("2001:db8:100::", 40, "2001:db8:1c0:2:21::"),
            ("2001:db8:122::", 48, "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::", 56, "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::", 64, "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::", 96, "2001:db8:122:344::192.0.2.33"),
            ("64:ff9b::", 96, "64:ff9b::192.0.2.33"),
        ] {
            let embedded = prefix(text, length).expect("a good prefix").embed(address);
            assert_eq!(Ipv6Addr::from_bits(embedded).to_string(), {
                let expected: Ipv6Addr = expected.parse().expect("an address");
                expected.to_string()
            });
        }
        assert!(prefix("64:ff9b::", 96).expect("good").is_well_known());
    }

    #[test]
    fn prefixes_that_the_rfc_does_not_have_are_refused() {
        assert_eq!(prefix("2001:db8::", 95), Err(BadPrefix::Length));
        assert_eq!(prefix("2001:db8::1", 96), Err(BadPrefix::HostBits));
        assert_eq!(prefix("2001:db8:0:0:100::", 96), Err(BadPrefix::Octet));
    }

    #[test]
    fn private_and_documentation_addresses_are_not_global() {
        for address in ["10.1.2.3", "100.64.0.1", "192.168.0.1", "203.0.113.9", "127.0.0.1"] {
            assert!(!is_global(address.parse::<Ipv4Addr>().expect("an address").to_bits()));
        }
        for address in ["8.8.8.8", "192.0.1.1", "172.32.0.1", "100.128.0.0", "1.0.0.0"] {
            assert!(is_global(address.parse::<Ipv4Addr>().expect("an address").to_bits()));
        }
    }

    proptest! {
        #[test]
        fn what_is_embedded_is_extracted_whatever_the_suffix(
            bits: u128, length in prop::sample::select(vec![32u8, 40, 48, 56, 64, 96]),
            address: u32, suffix in 0u128..1 << 24,
        ) {
            let prefix = Prefix::new(bits & mask(length) & !U, length).expect("a good prefix");
            let embedded = prefix.embed(address);
            prop_assert_eq!(embedded & U, 0);
            let suffix = if length == 96 { 0 } else { suffix };
            prop_assert_eq!(prefix.extract(embedded | suffix), Some(address));
            prop_assert_eq!(prefix.extract(embedded ^ 1 << 127), None);
        }
    }
}
