//! Prefixes and interface addresses as operators write them: `192.0.2.0/24`, `2001:db8::1/64`.

use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// Why a text or a pair of address and length is no prefix. The message says what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixError {
    /// There is no `/` with a number behind it.
    NoLength {
        /// The largest length of the family.
        max: u8,
    },
    /// What stands before the `/` is no address of the family.
    BadAddress {
        /// How an address of the family looks.
        example: &'static str,
    },
    /// What stands behind the `/` is no number from 0 to the largest length.
    BadLength {
        /// The largest length of the family.
        max: u8,
    },
    /// Bits are set behind the length.
    HostBits {
        /// The same with those bits cleared.
        would_be: IpPrefix,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrefixError::NoLength { max } => {
                write!(f, "no prefix length: add / and a number from 0 to {max}")
            }
            PrefixError::BadAddress { example } => {
                write!(f, "not an address: expected one like {example}")
            }
            PrefixError::BadLength { max } => {
                write!(f, "not a prefix length: expected a number from 0 to {max}")
            }
            PrefixError::HostBits { would_be } => {
                write!(
                    f,
                    "address has bits set behind the prefix length: {would_be} would be right"
                )
            }
        }
    }
}

impl core::error::Error for PrefixError {}

/// Splits at the `/` and reads the length, at most `max`.
fn split_length(text: &str, max: u8) -> Result<(&str, u8), PrefixError> {
    let (address, length) = text.split_once('/').ok_or(PrefixError::NoLength { max })?;
    if length.is_empty() {
        return Err(PrefixError::NoLength { max });
    }
    let bad = PrefixError::BadLength { max };
    if !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad);
    }
    let length = length.parse().ok().filter(|length| *length <= max).ok_or(bad)?;
    Ok((address, length))
}

/// What both families have, written once: the two differ in nothing but their width.
macro_rules! family {
    (
        $prefix:ident, $interface:ident, $address:ty, $bits:ty, $width:literal, $variant:ident,
        $example:literal
    ) => {
        #[doc = concat!(
            "The prefix of a route, such as `", $example, "` and a length. No bit is set behind it."
        )]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $prefix {
            address: $address,
            length: u8,
        }

        impl $prefix {
            /// The largest prefix length.
            pub const LENGTH_MAX: u8 = $width;
            /// The prefix of all addresses: length 0.
            pub const DEFAULT: Self = Self { address: <$address>::UNSPECIFIED, length: 0 };

            /// A prefix, if the length is in range and no bit is set behind it.
            ///
            /// # Errors
            /// The length is out of range, or a bit behind it is set.
            pub fn new(address: $address, length: u8) -> Result<Self, PrefixError> {
                let prefix = Self::covering(address, length)?;
                if prefix.address != address {
                    return Err(PrefixError::HostBits { would_be: IpPrefix::$variant(prefix) });
                }
                Ok(prefix)
            }

            /// The prefix of this length that the address lies in.
            ///
            /// # Errors
            /// The length is out of range.
            pub fn covering(address: $address, length: u8) -> Result<Self, PrefixError> {
                if length > $width {
                    return Err(PrefixError::BadLength { max: $width });
                }
                let address = <$address>::from_bits(address.to_bits() & Self::mask_of(length));
                Ok(Self { address, length })
            }

            /// The prefix of one address.
            pub const fn host(address: $address) -> Self {
                Self { address, length: $width }
            }

            /// The bits that a prefix of this length fixes; lengths beyond the width fix all.
            #[inline]
            pub const fn mask_of(length: u8) -> $bits {
                if length == 0 { 0 } else { <$bits>::MAX << ($width as u8).saturating_sub(length) }
            }

            /// Its first address.
            #[inline]
            pub const fn address(self) -> $address {
                self.address
            }

            /// Its first address as a number.
            #[inline]
            pub const fn bits(self) -> $bits {
                self.address.to_bits()
            }

            /// Its length in bits.
            #[inline]
            pub const fn length(self) -> u8 {
                self.length
            }

            /// Its last address.
            #[inline]
            pub const fn last(self) -> $address {
                <$address>::from_bits(self.bits() | !Self::mask_of(self.length))
            }

            /// Whether the address lies in it.
            #[inline]
            pub const fn contains(self, address: $address) -> bool {
                (address.to_bits() ^ self.bits()) & Self::mask_of(self.length) == 0
            }

            /// Whether it covers the other, or is the same.
            #[inline]
            pub const fn covers(self, other: Self) -> bool {
                self.length <= other.length && self.contains(other.address)
            }

            /// The `count`-th prefix of the same length after this one; `None` beyond the last.
            pub fn offset(self, count: $bits) -> Option<Self> {
                let shift = u32::from($width - self.length);
                let step = count.checked_shl(shift).filter(|step| step >> shift == count);
                let step = if count == 0 { 0 } else { step? };
                let address = <$address>::from_bits(self.bits().checked_add(step)?);
                Some(Self { address, length: self.length })
            }
        }

        impl fmt::Display for $prefix {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.address, self.length)
            }
        }

        impl fmt::Debug for $prefix {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $prefix {
            type Err = PrefixError;

            fn from_str(text: &str) -> Result<Self, PrefixError> {
                let $interface { address, length } = text.parse()?;
                Self::new(address, length)
            }
        }

        /// An address of an interface with the length of the prefix that is behind the interface.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $interface {
            address: $address,
            length: u8,
        }

        impl $interface {
            /// An address and its prefix length, if that is in range.
            ///
            /// # Errors
            /// The length is out of range.
            pub fn new(address: $address, length: u8) -> Result<Self, PrefixError> {
                $prefix::covering(address, length)?;
                Ok(Self { address, length })
            }

            /// The address.
            #[inline]
            pub const fn address(self) -> $address {
                self.address
            }

            /// The length of its prefix in bits.
            #[inline]
            pub const fn length(self) -> u8 {
                self.length
            }

            /// The connected prefix.
            pub const fn prefix(self) -> $prefix {
                let bits = self.address.to_bits() & $prefix::mask_of(self.length);
                $prefix { address: <$address>::from_bits(bits), length: self.length }
            }
        }

        impl fmt::Display for $interface {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.address, self.length)
            }
        }

        impl fmt::Debug for $interface {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl FromStr for $interface {
            type Err = PrefixError;

            fn from_str(text: &str) -> Result<Self, PrefixError> {
                let (address, length) = split_length(text, $width)?;
                let address = address.parse().map_err(
                    |_| PrefixError::BadAddress { example: $example }
                )?;
                Self::new(address, length)
            }
        }
    };
}

family!(Ip4Prefix, Ip4InterfaceAddress, Ipv4Addr, u32, 32, V4, "192.0.2.0");
family!(Ip6Prefix, Ip6InterfaceAddress, Ipv6Addr, u128, 128, V6, "2001:db8::");

impl Ip4InterfaceAddress {
    /// The broadcast address of the connected prefix; `None` for /31 (RFC 3021) and /32.
    pub const fn broadcast(self) -> Option<Ipv4Addr> {
        if self.length >= 31 { None } else { Some(self.prefix().last()) }
    }
}

/// A prefix of either family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IpPrefix {
    /// IPv4.
    V4(Ip4Prefix),
    /// IPv6.
    V6(Ip6Prefix),
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IpPrefix::V4(prefix) => prefix.fmt(f),
            IpPrefix::V6(prefix) => prefix.fmt(f),
        }
    }
}

impl fmt::Debug for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for IpPrefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        if text.contains(':') {
            text.parse().map(IpPrefix::V6)
        } else {
            text.parse().map(IpPrefix::V4)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn error(text: &str) -> std::string::String {
        text.parse::<IpPrefix>().unwrap_err().to_string()
    }

    #[test]
    fn an_error_says_what_would_be_right() {
        assert_eq!(
            error("10.1.2.3/8"),
            "address has bits set behind the prefix length: 10.0.0.0/8 would be right"
        );
        assert_eq!(error("10.0.0.0"), "no prefix length: add / and a number from 0 to 32");
        assert_eq!(error("10.0.0.0/33"), "not a prefix length: expected a number from 0 to 32");
        assert_eq!(error("::/+8"), "not a prefix length: expected a number from 0 to 128");
        assert_eq!(error("10.0.0/8"), "not an address: expected one like 192.0.2.0");
    }

    #[test]
    fn the_edges_of_the_lengths_hold() {
        assert!(Ip4Prefix::DEFAULT.contains(Ipv4Addr::BROADCAST));
        let host = Ip6Prefix::host(Ipv6Addr::LOCALHOST);
        assert!(host.contains(Ipv6Addr::LOCALHOST) && !host.contains(Ipv6Addr::UNSPECIFIED));
        assert_eq!((Ip4Prefix::mask_of(32), Ip4Prefix::mask_of(255)), (u32::MAX, u32::MAX));
        let interface: Ip4InterfaceAddress = "10.0.0.1/24".parse().unwrap();
        assert_eq!(interface.prefix().to_string(), "10.0.0.0/24");
        assert_eq!(interface.broadcast(), Some(Ipv4Addr::new(10, 0, 0, 255)));
        assert_eq!("10.0.0.1/31".parse::<Ip4InterfaceAddress>().unwrap().broadcast(), None);
    }

    #[test]
    fn consecutive_prefixes_stop_at_the_last_address() {
        let first: Ip4Prefix = "255.255.254.0/24".parse().unwrap();
        assert_eq!(first.offset(1).unwrap().to_string(), "255.255.255.0/24");
        assert_eq!(first.offset(2), None);
        assert_eq!(first.offset(1 << 24), None);
        assert_eq!(Ip4Prefix::DEFAULT.offset(0), Some(Ip4Prefix::DEFAULT));
        assert_eq!(Ip6Prefix::DEFAULT.offset(1), None);
    }

    proptest! {
        #[test]
        fn display_and_parse_are_inverse(v4: u32, v6: u128, length in 0u8..=128) {
            let v6 = Ip6Prefix::covering(Ipv6Addr::from_bits(v6), length).unwrap();
            let v4 = Ip4Prefix::covering(Ipv4Addr::from_bits(v4), length % 33).unwrap();
            prop_assert_eq!(v6.to_string().parse(), Ok(IpPrefix::V6(v6)));
            prop_assert_eq!(v4.to_string().parse(), Ok(IpPrefix::V4(v4)));
            prop_assert!(v4.contains(v4.last()) && v6.contains(v6.last()) && v6.covers(v6));
        }

        #[test]
        fn no_text_panics(text in "[0-9a-f:./é]{0,24}") {
            let _ = text.parse::<IpPrefix>();
            let _ = text.parse::<Ip6InterfaceAddress>();
        }
    }
}
