//! What neighbours say, in words: identifiers, texts, addresses, object identifiers.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_wire::MacAddress;
use quiver_wire::lldp::{capability, chassis, port};

/// A text as others may see it: what is no printable character is escaped.
pub fn text(bytes: &[u8]) -> String {
    let mut out = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// An address of a family of RFC 3232's list: 1 IPv4, 2 IPv6, 6 MAC.
pub fn address(family: u8, bytes: &[u8]) -> String {
    if let (1, Some(four)) = (family, exactly::<4>(bytes)) {
        return IpAddr::from(Ipv4Addr::from(four)).to_string();
    }
    if let (2, Some(six)) = (family, exactly::<16>(bytes)) {
        return IpAddr::from(Ipv6Addr::from(six)).to_string();
    }
    match exactly::<6>(bytes) {
        Some(mac) if family == 6 => MacAddress(mac).to_string(),
        _ => format!("{family}:{}", hex(bytes)),
    }
}

fn exactly<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn id(is_mac: bool, is_address: bool, bytes: &[u8]) -> String {
    match (exactly::<6>(bytes), bytes) {
        (Some(mac), _) if is_mac => MacAddress(mac).to_string(),
        (_, [family, rest @ ..]) if is_address => address(*family, rest),
        _ if is_mac => hex(bytes),
        _ => text(bytes),
    }
}

/// A chassis identifier.
pub fn chassis_id(subtype: u8, bytes: &[u8]) -> String {
    id(subtype == chassis::MAC, subtype == chassis::NETWORK_ADDRESS, bytes)
}

/// A port identifier.
pub fn port_id(subtype: u8, bytes: &[u8]) -> String {
    id(subtype == port::MAC, subtype == port::NETWORK_ADDRESS, bytes)
}

/// The names of what a system can do.
pub fn capabilities(bits: u16) -> Vec<&'static str> {
    capability::NAMES
        .iter()
        .enumerate()
        .filter(|(bit, _)| bits >> bit & 1 == 1)
        .map(|(_, name)| *name)
        .collect()
}

/// The contents octets of an object identifier `1.3.6.1…` (ITU-T X.690 §8.19); `None` when it is
/// none, or longer than 128 bytes.
pub fn encode_oid(dotted: &str) -> Option<Vec<u8>> {
    let arcs: Vec<u32> = dotted.split('.').map(|arc| arc.parse().ok()).collect::<Option<_>>()?;
    let [first, second, rest @ ..] = arcs.as_slice() else { return None };
    if *first > 2 || *first < 2 && *second > 39 {
        return None;
    }
    let mut out = Vec::new();
    for arc in
        std::iter::once(first.checked_mul(40)?.checked_add(*second)?).chain(rest.iter().copied())
    {
        let groups = (arc.max(1).ilog2() / 7) as i32;
        for group in (0..=groups).rev() {
            let more = if group > 0 { 0x80 } else { 0 };
            out.push((arc >> (7 * group)) as u8 & 0x7f | more);
        }
    }
    (out.len() <= 128).then_some(out)
}

/// The other way round; in hexadecimal what cannot be read.
pub fn decode_oid(bytes: &[u8]) -> String {
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc = 0u64;
    for byte in bytes {
        if arc >> 56 != 0 {
            return hex(bytes);
        }
        arc = arc << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if arcs.is_empty() {
                let first = (arc / 40).min(2);
                arcs.push(first);
                arc -= first * 40;
            }
            arcs.push(std::mem::take(&mut arc));
        }
    }
    if arc != 0 || bytes.last().is_some_and(|last| last & 0x80 != 0) {
        return hex(bytes);
    }
    arcs.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identifiers_are_written_as_what_they_are() {
        assert_eq!(chassis_id(4, &[2, 0, 0, 0, 0, 1]), "02:00:00:00:00:01");
        assert_eq!(chassis_id(4, &[2, 0]), "0200");
        assert_eq!(chassis_id(5, &[1, 192, 0, 2, 1]), "192.0.2.1");
        assert_eq!(chassis_id(7, b"roof"), "roof");
        assert_eq!(port_id(5, b"eth0"), "eth0");
        assert_eq!(port_id(3, &[2, 0, 0, 0, 0, 1]), "02:00:00:00:00:01");
        assert_eq!(port_id(4, &[9]), "9:");
    }

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        assert_eq!(text(b"a\x1b[2J\nb"), "a\\u{1b}[2J\\nb");
        assert_eq!(text(&[b'a', 0xff]), "a\u{fffd}");
    }

    #[test]
    fn object_identifiers_are_those_of_the_standard() {
        assert_eq!(encode_oid("1.3.6.1.4.1.311"), Some(vec![0x2b, 6, 1, 4, 1, 0x82, 0x37]));
        assert_eq!(encode_oid("2.999.3"), Some(vec![0x88, 0x37, 3]));
        for wrong in ["", "1", "3.1", "1.40", "1.a", "1..3", "1.3.4294967296"] {
            assert_eq!(encode_oid(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn object_identifiers_come_back(
            first in 0u32..3, second in 0u32..40, rest in prop::collection::vec(any::<u32>(), 0..12)
        ) {
            let mut arcs = vec![first, second];
            arcs.extend(rest);
            let dotted = arcs.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
            let bytes = encode_oid(&dotted).unwrap();
            prop_assert_eq!(decode_oid(&bytes), dotted);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), subtype: u8) {
            let _ = (
                decode_oid(&bytes),
                chassis_id(subtype, &bytes),
                port_id(subtype, &bytes),
                address(subtype, &bytes),
            );
        }
    }
}
