//! Where the classes of a frame stand, read and written.

use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{set_traffic_class, traffic_class};
use quiver_wire::mpls::ENTRY_BYTES;
use quiver_wire::{EtherType, EthernetHeader, Header};

use crate::class::Source;

/// Bits of the traffic class of an IP header that are explicit congestion notification (RFC 3168
/// §5). Routers of the path and the two ends own them: they are neither recorded nor written.
pub const ECN: u8 = 0b11;
/// VLAN tags of a frame at most.
const TAGS_MAX: usize = 4;
const TAG_BYTES: usize = 4;
/// The EtherType of MPLS with an upstream-assigned label (RFC 5332 §3).
const MPLS_UPSTREAM: EtherType = EtherType(0x8848);
/// Where the priority code point stands in the first byte of a tag.
const PRIORITY_SHIFT: u32 = 5;
/// Where the traffic class stands in the third byte of a label stack entry (RFC 3032 §2.1).
const CLASS_SHIFT: u32 = 1;

/// What stands behind the link-layer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    Ip(Family),
    Mpls,
    Other,
}

/// The headers of a frame that have a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    is_tagged: bool,
    inside: Inside,
    /// Where that begins.
    at: usize,
}

impl Headers {
    /// Of the frame that begins with these bytes; `is_bare`: it has no link-layer header.
    #[inline(always)]
    pub fn of(bytes: &[u8], is_bare: bool) -> Headers {
        if is_bare {
            return Headers::of_bare(bytes);
        }
        let none = Headers { is_tagged: false, inside: Inside::Other, at: 0 };
        let Some(header) = EthernetHeader::overlay(bytes) else { return none };
        let kind = header.ether_type();
        if kind.is_vlan() {
            return Headers::behind_tags(bytes).unwrap_or(none);
        }
        Headers { is_tagged: false, inside: Inside::of(kind), at: EthernetHeader::LEN }
    }

    fn of_bare(bytes: &[u8]) -> Headers {
        let inside = match bytes.first().map(|first| first >> 4) {
            Some(4) => Inside::Ip(Family::Ip4),
            Some(6) => Inside::Ip(Family::Ip6),
            _ => Inside::Other,
        };
        Headers { is_tagged: false, inside, at: 0 }
    }

    /// `None` when the first tag is cut off.
    #[inline(never)]
    fn behind_tags(bytes: &[u8]) -> Option<Headers> {
        let mut at = EthernetHeader::LEN;
        let kind_at = |at: usize| {
            let kind = bytes.get(at..)?.first_chunk()?;
            Some(EtherType(u16::from_be_bytes(*kind)))
        };
        let mut kind = kind_at(at + 2)?;
        at += TAG_BYTES;
        for _ in 1..TAGS_MAX {
            if !kind.is_vlan() {
                break;
            }
            let Some(next) = kind_at(at + 2) else { break };
            kind = next;
            at += TAG_BYTES;
        }
        Some(Headers { is_tagged: true, inside: Inside::of(kind), at })
    }

    /// The value of the class that a header says; `None` when the frame has no such header.
    #[inline(always)]
    pub fn read(self, source: Source, bytes: &[u8]) -> Option<u8> {
        match (source, self.inside) {
            (Source::Vlan, _) if self.is_tagged => {
                Some(bytes.get(EthernetHeader::LEN)? >> PRIORITY_SHIFT)
            }
            (Source::Mpls, Inside::Mpls) => {
                let entry: &[u8; ENTRY_BYTES] = bytes.get(self.at..)?.first_chunk()?;
                Some(entry[2] >> CLASS_SHIFT & 7)
            }
            (Source::Ip, Inside::Ip(family)) => {
                traffic_class(family, bytes.get(self.at..)?).map(|class| class & !ECN)
            }
            _ => None,
        }
    }

    /// Write the value of a class into a header; false when the frame has no such header.
    #[inline(always)]
    pub fn write(self, source: Source, bytes: &mut [u8], value: u8) -> bool {
        match (source, self.inside) {
            (Source::Vlan, _) if self.is_tagged => {
                let Some(byte) = bytes.get_mut(EthernetHeader::LEN) else { return false };
                *byte = *byte & 0x1f | value << PRIORITY_SHIFT;
                true
            }
            (Source::Mpls, Inside::Mpls) => {
                let entry = bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut());
                let Some(entry): Option<&mut [u8; ENTRY_BYTES]> = entry else { return false };
                entry[2] = entry[2] & !(7 << CLASS_SHIFT) | (value & 7) << CLASS_SHIFT;
                true
            }
            (Source::Ip, Inside::Ip(family)) => {
                let Some(bytes) = bytes.get_mut(self.at..) else { return false };
                let Some(old) = traffic_class(family, bytes) else { return false };
                set_traffic_class(family, bytes, value & !ECN | old & ECN);
                true
            }
            _ => false,
        }
    }
}

impl Inside {
    #[inline(always)]
    fn of(kind: EtherType) -> Inside {
        match kind {
            EtherType::IPV4 => Inside::Ip(Family::Ip4),
            EtherType::IPV6 => Inside::Ip(Family::Ip6),
            EtherType::MPLS | MPLS_UPSTREAM => Inside::Mpls,
            _ => Inside::Other,
        }
    }
}
