//! What a command's words become: typed values, and how handlers take them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address and a prefix length, as written: the bits behind the length may be set, as in the
/// address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IpPrefix {
    /// The address, with the bits behind the length as they were written.
    pub address: IpAddr,
    /// Leading bits that count: 0 to 32, or 0 to 128.
    pub length: u8,
}

impl IpPrefix {
    /// The same prefix with the bits behind its length cleared.
    pub fn network(&self) -> IpPrefix {
        let address = match self.address {
            IpAddr::V4(address) => {
                let mask =
                    u32::MAX.checked_shl(32_u32.saturating_sub(self.length.into())).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask =
                    u128::MAX.checked_shl(128_u32.saturating_sub(self.length.into())).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        };
        IpPrefix { address, length: self.length }
    }

    /// Is a bit set behind the length?
    pub fn has_host_bits(&self) -> bool {
        self.network() != *self
    }

    /// The IPv4 address and length, when it is one.
    pub fn as_ip4(&self) -> Option<(Ipv4Addr, u8)> {
        match self.address {
            IpAddr::V4(address) => Some((address, self.length)),
            IpAddr::V6(_) => None,
        }
    }

    /// The IPv6 address and length, when it is one.
    pub fn as_ip6(&self) -> Option<(Ipv6Addr, u8)> {
        match self.address {
            IpAddr::V6(address) => Some((address, self.length)),
            IpAddr::V4(_) => None,
        }
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// A typed value, borrowing from the command's text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A word of the grammar itself: a flag such as `static`, or a choice such as `up`.
    Word(&'static str),
    /// A whole number.
    Number(u64),
    /// A rate (per second) or a time (seconds).
    Real(f64),
    /// An IPv4 address.
    Ip4(Ipv4Addr),
    /// An IPv6 address.
    Ip6(Ipv6Addr),
    /// An address with a length.
    Prefix(IpPrefix),
    /// A MAC address.
    Mac([u8; 6]),
    /// `A-B`, A ≤ B.
    Range(u64, u64),
    /// A name, path or other text.
    Text(&'a str),
    /// A group of values follows, in so many slots.
    Group(u32),
}

/// A type that a handler can take a [`Value`] as. The error says what the value would have to be.
pub trait FromValue<'a>: Sized {
    /// Convert; the error completes "it must be …".
    ///
    /// # Errors
    /// The value has another form; the text completes "it must be …".
    fn from_value(value: Value<'a>) -> Result<Self, String>;
}

macro_rules! take_number {
    ($($type:ty),*) => {$(
        impl<'a> FromValue<'a> for $type {
            fn from_value(value: Value<'a>) -> Result<Self, String> {
                match value {
                    Value::Number(n) => {
                        <$type>::try_from(n).map_err(|_| format!("at most {}", <$type>::MAX))
                    }
                    _ => Err("a whole number".into()),
                }
            }
        }
    )*};
}
take_number!(u8, u16, u32, u64, usize);

macro_rules! take {
    ($($type:ty, $what:literal: $($pattern:pat => $out:expr),+;)*) => {$(
        impl<'a> FromValue<'a> for $type {
            fn from_value(value: Value<'a>) -> Result<Self, String> {
                match value {
                    $($pattern => Ok($out),)+
                    #[allow(unreachable_patterns)]
                    _ => Err($what.into()),
                }
            }
        }
    )*};
}
take! {
    Value<'a>, "a value": value => value;
    &'a str, "text": Value::Text(text) => text, Value::Word(word) => word;
    String, "text": Value::Text(text) => text.to_string(), Value::Word(word) => word.to_string();
    f64, "a number": Value::Real(x) => x, Value::Number(n) => n as f64;
    Ipv4Addr, "an IPv4 address": Value::Ip4(address) => address;
    Ipv6Addr, "an IPv6 address": Value::Ip6(address) => address;
    IpAddr, "an IP address": Value::Ip4(address) => IpAddr::V4(address),
    Value::Ip6(address) => IpAddr::V6(address);
    IpPrefix, "a prefix": Value::Prefix(prefix) => prefix;
    [u8; 6], "a MAC address": Value::Mac(mac) => mac;
    (u64, u64), "a range": Value::Range(low, high) => (low, high), Value::Number(n) => (n, n);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_knows_its_network_and_its_host_bits() {
        let prefix = IpPrefix { address: "10.1.2.3".parse().unwrap(), length: 8 };
        assert!(prefix.has_host_bits());
        assert_eq!(prefix.network().to_string(), "10.0.0.0/8");
        let all = IpPrefix { address: "2001:db8::1".parse().unwrap(), length: 0 };
        assert_eq!(all.network().to_string(), "::/0");
        let host = IpPrefix { address: "1.2.3.4".parse().unwrap(), length: 32 };
        assert!(!host.has_host_bits());
    }

    #[test]
    fn a_number_that_does_not_fit_the_handlers_type_is_refused() {
        assert_eq!(u8::from_value(Value::Number(256)), Err("at most 255".into()));
        assert_eq!(u8::from_value(Value::Number(255)), Ok(255));
    }
}
