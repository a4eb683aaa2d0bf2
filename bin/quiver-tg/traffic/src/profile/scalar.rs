//! One value of a field as it is written: a number, an address, the letters of TCP's flags.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_wire::MacAddress;
use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};

/// How the values of a field are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number.
    Number,
    /// A MAC address.
    Mac,
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address.
    Ip6,
    /// Letters of FSRPAUEC, or a number.
    TcpFlags,
    /// `request`, `reply`, or a number.
    ArpOperation,
}

/// The flags of TCP from the lowest bit up.
const TCP_FLAGS: &str = "FSRPAUEC";

impl Kind {
    /// The values of a field of so many bits, in words.
    pub fn what(self, bits: usize) -> String {
        match self {
            Kind::Number => format!("a number from 0 to {}", greatest(bits)),
            Kind::Mac => "a MAC address; one looks like \"02:fe:00:00:00:01\"".to_owned(),
            Kind::Ip4 => "an IPv4 address".to_owned(),
            Kind::Ip6 => "an IPv6 address".to_owned(),
            Kind::TcpFlags => format!("letters of {TCP_FLAGS} or a number from 0 to 255"),
            Kind::ArpOperation => "request, reply or a number from 0 to 65535".to_owned(),
        }
    }

    /// Read a text; `None` when it is not [`what`](Self::what) it should be.
    pub fn read(self, text: &str, bits: usize) -> Option<u128> {
        let number = || match text.strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let value = match self {
            Kind::Number => number(),
            Kind::Mac => text.parse::<MacAddress>().ok().map(|mac| u128::from(mac.to_u64())),
            Kind::Ip4 => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(address.to_bits())),
            Kind::Ip6 => text.parse::<Ipv6Addr>().ok().map(Ipv6Addr::to_bits),
            Kind::TcpFlags => number().or_else(|| flags(text)),
            Kind::ArpOperation => match text {
                "request" => Some(1),
                "reply" => Some(2),
                _ => number(),
            },
        };
        value.filter(|value| *value <= greatest(bits))
    }

    /// From a number, where numbers are written.
    fn of_number(self, number: u64, bits: usize) -> Option<u128> {
        let takes = matches!(self, Kind::Number | Kind::TcpFlags | Kind::ArpOperation);
        Some(u128::from(number)).filter(|value| takes && *value <= greatest(bits))
    }

    /// As it is written.
    pub fn show(self, value: u128) -> String {
        match self {
            Kind::Mac => MacAddress::from_u64(value as u64).to_string(),
            Kind::Ip4 => Ipv4Addr::from_bits(value as u32).to_string(),
            Kind::Ip6 => Ipv6Addr::from_bits(value).to_string(),
            Kind::Number | Kind::TcpFlags | Kind::ArpOperation => value.to_string(),
        }
    }
}

fn flags(text: &str) -> Option<u128> {
    text.chars().try_fold(0, |all, letter| TCP_FLAGS.find(letter).map(|bit| all | 1 << bit))
}

/// The greatest value of a field of so many bits.
pub fn greatest(bits: usize) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// Reads one value of a field.
#[derive(Clone, Copy)]
pub struct Scalar {
    /// How it is written.
    pub kind: Kind,
    /// How many bits it has.
    pub bits: usize,
}

impl Scalar {
    /// From a text.
    ///
    /// # Errors
    /// When the text is no value of this kind, or does not fit.
    pub fn of_text<E: Error>(self, text: &str) -> Result<u128, E> {
        let value = self.kind.read(text, self.bits);
        value.ok_or_else(|| E::custom(format!("`{text}` is not {}", self.kind.what(self.bits))))
    }

    /// From a number.
    ///
    /// # Errors
    /// When the number does not fit, or this kind is not written as a number.
    pub fn of_number<E: Error>(self, number: u64) -> Result<u128, E> {
        let value = self.kind.of_number(number, self.bits);
        value.ok_or_else(|| E::custom(format!("`{number}` is not {}", self.kind.what(self.bits))))
    }

    /// From a number that may be below 0, which none is.
    ///
    /// # Errors
    /// When the number is below 0, or as for [`of_number`](Self::of_number).
    pub fn of_signed<E: Error>(self, number: i64) -> Result<u128, E> {
        match u64::try_from(number) {
            Ok(number) => self.of_number(number),
            Err(_) => Err(E::custom(format!("`{number}` is not {}", self.kind.what(self.bits)))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Scalar {
    type Value = u128;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u128, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Scalar {
    type Value = u128;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.what(self.bits))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u128, E> {
        self.of_text(text)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u128, E> {
        self.of_number(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u128, E> {
        self.of_signed(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        for (kind, bits, text, value) in [
            (Kind::Number, 16, "0x88b5", 0x88b5),
            (Kind::Number, 12, "4095", 4095),
            (Kind::Mac, 48, "02:00:00:00:00:01", 0x0200_0000_0001),
            (Kind::Ip4, 32, "10.0.0.1", 0x0a00_0001),
            (Kind::Ip6, 128, "::1", 1),
            (Kind::TcpFlags, 8, "SA", 0x12),
            (Kind::ArpOperation, 16, "reply", 2),
        ] {
            assert_eq!(kind.read(text, bits), Some(value), "{text}");
        }
        assert_eq!(Kind::Number.read("4096", 12), None);
        assert_eq!(Kind::TcpFlags.read("SX", 8), None);
    }
}
