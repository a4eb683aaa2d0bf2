//! 48-bit MAC addresses (IEEE 802) in the forms that operators write them.

use core::{fmt, net::Ipv4Addr, net::Ipv6Addr, str::FromStr};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A 48-bit MAC address, first octet on the wire first.
#[derive(
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
)]
#[repr(transparent)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);
    /// 00:00:00:00:00:00, which no station has.
    pub const ZERO: MacAddress = MacAddress([0; 6]);

    /// The group bit is set (broadcast is a group, too).
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// All ones.
    #[inline]
    pub const fn is_broadcast(self) -> bool {
        self.to_u64() == 0xffff_ffff_ffff
    }

    /// An address that a station may have: no group, not zero.
    #[inline]
    pub const fn is_unicast(self) -> bool {
        !self.is_multicast() && self.to_u64() != 0
    }

    /// The locally administered bit is set.
    #[inline]
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }

    /// The address in the low 48 bits, first octet highest.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// From the low 48 bits; higher ones are ignored.
    #[inline]
    pub const fn from_u64(value: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
        MacAddress([a, b, c, d, e, f])
    }

    /// The `count`-th address after this one (wraps at 48 bits).
    #[inline]
    pub const fn offset(self, count: u64) -> Self {
        Self::from_u64(self.to_u64().wrapping_add(count))
    }

    /// The group address for an IPv4 multicast group: 01:00:5e and its low 23 bits (RFC 1112 §6.4).
    pub const fn for_ip4_multicast(group: Ipv4Addr) -> Self {
        let [_, b, c, d] = group.octets();
        MacAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d])
    }

    /// The group address for an IPv6 multicast group: 33:33 and its low 32 bits (RFC 2464 §7).
    pub const fn for_ip6_multicast(group: Ipv6Addr) -> Self {
        let [.., a, b, c, d] = group.octets();
        MacAddress([0x33, 0x33, a, b, c, d])
    }

    /// The interface identifier that RFC 4291 appendix A makes of it (modified EUI-64).
    pub const fn interface_identifier(self) -> [u8; 8] {
        let [a, b, c, d, e, f] = self.0;
        [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
    }

    /// The link-local address fe80::/64 with [`MacAddress::interface_identifier`] (RFC 4291
    /// §2.5.6).
    pub const fn link_local(self) -> Ipv6Addr {
        let i = u64::from_be_bytes(self.interface_identifier());
        Ipv6Addr::from_bits((0xfe80 << 112) | i as u128)
    }

    /// Displays in the dotted form, `aabb.ccdd.eeff`.
    pub const fn dotted(self) -> Dotted {
        Dotted(self)
    }
}

/// Shows an address as `aabb.ccdd.eeff`.
#[derive(Clone, Copy)]
pub struct Dotted(MacAddress);

impl fmt::Display for Dotted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0.0;
        write!(f, "{a:02x}{b:02x}.{c:02x}{d:02x}.{e:02x}{g:02x}")
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacParseError;

impl fmt::Display for MacParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not a MAC address: six groups of hex digits such as 02:fe:00:00:00:01, or \
             02fe.0000.0001",
        )
    }
}

impl core::error::Error for MacParseError {}

impl FromStr for MacAddress {
    type Err = MacParseError;

    fn from_str(text: &str) -> Result<Self, MacParseError> {
        if text.contains('.') {
            let mut words = [0; 3];
            groups(text, '.', 4, 4, &mut words)?;
            let [[a, b], [c, d], [e, f]] = words.map(u16::to_be_bytes);
            return Ok(MacAddress([a, b, c, d, e, f]));
        }
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0; 6];
        groups(text, separator, 1, 2, &mut octets)?;
        Ok(MacAddress(octets.map(|octet| octet as u8)))
    }
}

/// Reads exactly `out.len()` groups of `min` to `max` (at most 4) hex digits.
fn groups(
    text: &str,
    separator: char,
    min: usize,
    max: usize,
    out: &mut [u16],
) -> Result<(), MacParseError> {
    let mut parts = text.split(separator);
    for value in out.iter_mut() {
        let part = parts.next().ok_or(MacParseError)?;
        let digits = part.bytes().all(|b| b.is_ascii_hexdigit());
        if !digits || part.len() < min || part.len() > max {
            return Err(MacParseError);
        }
        *value = u16::from_str_radix(part, 16).map_err(|_| MacParseError)?;
    }
    if parts.next().is_some() { Err(MacParseError) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn the_usual_forms_are_read() {
        let mac = MacAddress([0x02, 0xfe, 0, 0xab, 0, 1]);
        for text in [
            "02:fe:00:ab:00:01",
            "2:fe:0:AB:0:1",
            "02-fe-00-ab-00-01",
            "02fe.00ab.0001",
            "02FE.00AB.0001",
        ] {
            assert_eq!(text.parse(), Ok(mac), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "02",
            "02:fe:00:00:00",
            "02:fe:00:00:00:01:02",
            "02:fe:00:00:00:1ff",
            "+2:fe:0:0:0:1",
            "02fe.0.1",
        ] {
            assert_eq!(text.parse::<MacAddress>(), Err(MacParseError), "{text}");
        }
    }

    #[test]
    fn groups_and_stations_are_told_apart() {
        assert!(MacAddress::BROADCAST.is_multicast() && MacAddress::BROADCAST.is_broadcast());
        assert!(!MacAddress::ZERO.is_unicast());
        assert!(MacAddress([2, 0, 0, 0, 0, 1]).is_unicast());
    }

    #[test]
    fn a_link_local_address_follows_from_the_mac() {
        // RFC 4291 appendix A.
        let mac = MacAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde]);
        assert_eq!(mac.link_local(), "fe80::3656:78ff:fe9a:bcde".parse::<Ipv6Addr>().unwrap());
    }

    proptest! {
        #[test]
        fn display_and_parse_are_inverse(octets: [u8; 6]) {
            let mac = MacAddress(octets);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
            prop_assert_eq!(mac.dotted().to_string().parse(), Ok(mac));
            prop_assert_eq!(MacAddress::from_u64(mac.to_u64()), mac);
        }

        #[test]
        fn no_text_panics(text in "[0-9a-f:.é-]{0,24}") {
            let _ = text.parse::<MacAddress>();
        }
    }
}
