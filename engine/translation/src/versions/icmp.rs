//! ICMP and ICMPv6 as each other: types, codes, pointers and MTUs (RFC 7915 §4.2, §5.2).

use super::{HEADER_DIFFERENCE, IP6_MTU_MIN};

/// Kinds of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Echo request.
    Echo,
    /// Echo reply.
    EchoReply,
    /// An error that quotes a packet.
    Error,
    /// All others: they have no counterpart.
    Other,
}

/// Of an ICMP type.
pub const fn class4(kind: u8) -> Class {
    match kind {
        8 => Class::Echo,
        0 => Class::EchoReply,
        3 | 11 | 12 => Class::Error,
        _ => Class::Other,
    }
}

/// Of an ICMPv6 type.
pub const fn class6(kind: u8) -> Class {
    match kind {
        128 => Class::Echo,
        129 => Class::EchoReply,
        1..=4 => Class::Error,
        _ => Class::Other,
    }
}

/// The ICMPv6 type of an echo, and the other way round; others stay.
pub const fn echo_to6(kind: u8) -> u8 {
    match kind {
        8 => 128,
        0 => 129,
        other => other,
    }
}

/// The ICMP type of an ICMPv6 echo; others stay.
pub const fn echo_to4(kind: u8) -> u8 {
    match kind {
        128 => 8,
        129 => 0,
        other => other,
    }
}

/// The first eight bytes of an error without its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorHead {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Unused, pointer or MTU. The length of RFC 4884 is not in it.
    pub rest: u32,
}

/// Packet lengths of links of old (RFC 1191 §7.1), bytes, greatest first.
const PLATEAUS: [u16; 11] =
    [65_535, 32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296, 68];

/// The MTU that a router meant which named none, of a packet of so many bytes (RFC 1191 §7).
pub fn plateau(packet_bytes: u16) -> u16 {
    PLATEAUS.into_iter().find(|plateau| *plateau < packet_bytes).unwrap_or(68)
}

/// Where the field of IPv4 stands in an IPv6 header that an ICMP pointer names (RFC 7915 §4.2,
/// figure 3).
const fn pointer_to6(pointer: u8) -> Option<u8> {
    match pointer {
        0 => Some(0),
        1 => Some(1),
        2 | 3 => Some(4),
        8 => Some(7),
        9 => Some(6),
        12..=15 => Some(8),
        16..=19 => Some(24),
        _ => None,
    }
}

/// Where the field of IPv6 stands in an IPv4 header that an ICMPv6 pointer names (RFC 7915 §5.2,
/// figure 6).
const fn pointer_to4(pointer: u32) -> Option<u8> {
    match pointer {
        0 => Some(0),
        1 => Some(1),
        4 | 5 => Some(2),
        6 => Some(9),
        7 => Some(8),
        8..=23 => Some(12),
        24..=39 => Some(16),
        _ => None,
    }
}

/// An ICMP error as an ICMPv6 error; nothing where RFC 7915 §4.2 drops it. The packet that it
/// quotes has `packet_bytes`.
pub fn error_to6(error: ErrorHead, packet_bytes: u16) -> Option<ErrorHead> {
    let head = |kind, code, rest| Some(ErrorHead { kind, code, rest });
    match (error.kind, error.code) {
        (3, 0 | 1 | 5 | 6 | 7 | 8 | 11 | 12) => head(1, 0, 0),
        (3, 2) => head(4, 1, 6),
        (3, 3) => head(1, 4, 0),
        (3, 4) => {
            let named = match error.rest as u16 {
                0 => plateau(packet_bytes),
                named => named,
            };
            let mtu = usize::from(named) + HEADER_DIFFERENCE;
            head(2, 0, mtu.max(IP6_MTU_MIN) as u32)
        }
        (3, 9 | 10 | 13 | 15) => head(1, 1, 0),
        (11, code) => head(3, code, 0),
        (12, 0 | 2) => head(4, 0, pointer_to6((error.rest >> 24) as u8)?.into()),
        _ => None,
    }
}

/// An ICMPv6 error as an ICMP error; nothing where RFC 7915 §5.2 drops it.
pub fn error_to4(error: ErrorHead) -> Option<ErrorHead> {
    let head = |kind, code, rest| Some(ErrorHead { kind, code, rest });
    match (error.kind, error.code) {
        (1, 0 | 2 | 3) => head(3, 1, 0),
        (1, 1) => head(3, 10, 0),
        (1, 4) => head(3, 3, 0),
        (2, _) => {
            let mtu = error.rest.saturating_sub(HEADER_DIFFERENCE as u32);
            head(3, 4, mtu.clamp(68, u16::MAX.into()))
        }
        (3, code) => head(11, code, 0),
        (4, 0) => head(12, 0, u32::from(pointer_to4(error.rest)?) << 24),
        (4, 1) => head(3, 2, 0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to6(kind: u8, code: u8, rest: u32) -> Option<(u8, u8, u32)> {
        error_to6(ErrorHead { kind, code, rest }, 1500).map(|e| (e.kind, e.code, e.rest))
    }

    fn to4(kind: u8, code: u8, rest: u32) -> Option<(u8, u8, u32)> {
        error_to4(ErrorHead { kind, code, rest }).map(|e| (e.kind, e.code, e.rest))
    }

    /// RFC 7915 §4.2: "Code 0, 1 (Net Unreachable, Host Unreachable): Set the Code to 0" and on.
    #[test]
    fn unreachables_of_ip4_become_those_of_ip6() {
        for code in [0, 1, 5, 6, 7, 8, 11, 12] {
            assert_eq!(to6(3, code, 0), Some((1, 0, 0)), "{code}");
        }
        for code in [9, 10, 13, 15] {
            assert_eq!(to6(3, code, 0), Some((1, 1, 0)), "{code}");
        }
        // "Translate to an ICMPv6 Parameter Problem (Type 4, Code 1) and make the Pointer point to
        // the IPv6 Next Header field."
        assert_eq!(to6(3, 2, 0), Some((4, 1, 6)));
        assert_eq!(to6(3, 3, 0), Some((1, 4, 0)));
        assert_eq!((to6(3, 14, 0), to6(3, 16, 0)), (None, None));
        // "Silently drop."
        for kind in [4, 5, 6, 9, 10, 13, 14, 15, 16, 17, 18, 40] {
            assert_eq!(to6(kind, 0, 0), None, "{kind}");
        }
    }

    /// RFC 7915 §4.2: the MTU field "MUST NOT be set to a value smaller than the minimum IPv6 MTU".
    #[test]
    fn mtus_differ_by_twenty_bytes_and_are_never_below_1280() {
        assert_eq!(to6(3, 4, 1480), Some((2, 0, 1500)));
        assert_eq!(to6(3, 4, 576), Some((2, 0, 1280)));
        assert_eq!(to6(3, 4, 0), Some((2, 0, 1512)), "the plateau below 1500 is 1492");
        assert_eq!(to4(2, 0, 1500), Some((3, 4, 1480)));
        assert_eq!(to4(2, 0, 10), Some((3, 4, 68)));
        assert_eq!(to4(2, 0, u32::MAX), Some((3, 4, 65_535)));
        assert_eq!((plateau(1492), plateau(68), plateau(65_535)), (1006, 68, 32_000));
    }

    /// RFC 7915 figures 3 and 6.
    #[test]
    fn pointers_name_the_field_that_means_the_same() {
        let pairs = [(0, 0), (1, 1), (2, 4), (3, 4), (8, 7), (9, 6), (12, 8), (15, 8), (16, 24)];
        for (four, six) in pairs {
            assert_eq!(to6(12, 0, four << 24), Some((4, 0, six)), "{four}");
            assert_eq!(to6(12, 2, four << 24), Some((4, 0, six)), "{four}");
        }
        for four in [4u32, 5, 6, 7, 10, 11, 20, 255] {
            assert_eq!(to6(12, 0, four << 24), None, "{four}");
        }
        assert_eq!(to6(12, 1, 0), None);
        let pairs = [(0, 0), (1, 1), (4, 2), (5, 2), (6, 9), (7, 8), (8, 12), (23, 12), (39, 16)];
        for (six, four) in pairs {
            assert_eq!(to4(4, 0, six), Some((12, 0, four << 24)), "{six}");
        }
        assert_eq!((to4(4, 0, 2), to4(4, 0, 40), to4(4, 2, 0)), (None, None, None));
    }

    /// RFC 7915 §5.2.
    #[test]
    fn errors_of_ip6_become_those_of_ip4() {
        assert_eq!(to4(1, 0, 0), Some((3, 1, 0)));
        assert_eq!(to4(1, 1, 0), Some((3, 10, 0)));
        assert_eq!(to4(1, 2, 0), Some((3, 1, 0)));
        assert_eq!(to4(1, 3, 0), Some((3, 1, 0)));
        assert_eq!(to4(1, 4, 0), Some((3, 3, 0)));
        assert_eq!(to4(1, 5, 0), None);
        assert_eq!((to4(3, 0, 0), to4(3, 1, 0)), (Some((11, 0, 0)), Some((11, 1, 0))));
        assert_eq!(to4(4, 1, 6), Some((3, 2, 0)));
        for kind in [100, 127, 130, 135, 137, 200] {
            assert_eq!(to4(kind, 0, 0), None, "{kind}");
        }
    }
}
