//! The differentiated services code point of packets: read as a colour, and written (RFC 2474).

use quiver_core::Packet;
use quiver_forwarding::ip::{Ip4, Ip6, packet_in_frame};
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::meter::Colour;

/// Bits of a traffic class that are not the code point: explicit congestion notification.
const ECN: u8 = 0b11;

/// Where an IP header stands in a packet, and its version.
fn ip_header(packet: &Packet, is_bare: bool) -> Option<(usize, u8)> {
    let bytes = packet.bytes();
    if is_bare {
        let version = bytes.first()? >> 4;
        return matches!(version, 4 | 6).then_some((0, version));
    }
    let four = packet_in_frame::<Ip4>(bytes).map(|at| (at, 4));
    four.or_else(|| packet_in_frame::<Ip6>(bytes).map(|at| (at, 6)))
}

/// The code point of an IP packet; `is_bare`: it has no link-layer header in front.
fn code_point(packet: &Packet, is_bare: bool) -> Option<u8> {
    let (at, version) = ip_header(packet, is_bare)?;
    let bytes = packet.bytes().get(at..)?;
    let class = match version {
        4 => *bytes.get(1)?,
        _ => Ip6Header::overlay(bytes)?.traffic_class(),
    };
    Some(class >> 2)
}

/// The colour that a code point of assured forwarding says: its drop precedence (RFC 2597 §6).
/// Every other packet is green.
pub fn colour(packet: &Packet, is_bare: bool) -> Colour {
    let code_point = code_point(packet, is_bare).unwrap_or(0);
    let is_assured = matches!(code_point >> 3, 1..=4) && code_point & 1 == 0;
    match code_point >> 1 & 3 {
        2 if is_assured => Colour::Yellow,
        3 if is_assured => Colour::Red,
        _ => Colour::Green,
    }
}

/// Give an IP packet a code point; any other one stays as it is.
pub fn mark(packet: &mut Packet, is_bare: bool, code_point: u8) {
    let Some((at, version)) = ip_header(packet, is_bare) else { return };
    let Some(bytes) = packet.bytes_mut().get_mut(at..) else { return };
    match version {
        4 if bytes.len() >= Ip4Header::LEN => {
            let before = u16::from_be_bytes([bytes[0], bytes[1]]);
            bytes[1] = code_point << 2 | bytes[1] & ECN;
            let now = u16::from_be_bytes([bytes[0], bytes[1]]);
            let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
            bytes[10..12].copy_from_slice(&changed(checksum, before, now).to_be_bytes());
        }
        6 => {
            if let Some(header) = Ip6Header::overlay_mut(bytes) {
                header.set_traffic_class(code_point << 2 | header.traffic_class() & ECN);
            }
        }
        _ => {}
    }
}

/// A checksum behind a changed word (RFC 1624 §3).
fn changed(checksum: u16, before: u16, now: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(now);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
