//! The differentiated services code point of packets: read as a colour, and written (RFC 2474).

use quiver_core::Packet;
use quiver_forwarding::ip::{ip_header, set_traffic_class, traffic_class};

use crate::meter::Colour;

/// Bits of a traffic class that are not the code point: explicit congestion notification.
const ECN: u8 = 0b11;

/// The code point of an IP packet; `is_bare`: it has no link-layer header in front.
fn code_point(packet: &Packet, is_bare: bool) -> Option<u8> {
    let (at, family) = ip_header(packet.bytes(), is_bare)?;
    Some(traffic_class(family, packet.bytes().get(at..)?)? >> 2)
}

/// The colour that a code point of assured forwarding says: its drop precedence (RFC 2597 §6).
/// Every other packet is green.
pub fn colour(packet: &Packet, is_bare: bool) -> Colour {
    colour_of(code_point(packet, is_bare).unwrap_or(0))
}

/// The same, of a code point that is known.
pub fn colour_of(code_point: u8) -> Colour {
    let is_assured = matches!(code_point >> 3, 1..=4) && code_point & 1 == 0;
    match code_point >> 1 & 3 {
        2 if is_assured => Colour::Yellow,
        3 if is_assured => Colour::Red,
        _ => Colour::Green,
    }
}

/// Give an IP packet a code point; any other one stays as it is.
pub fn mark(packet: &mut Packet, is_bare: bool, code_point: u8) {
    let Some((at, family)) = ip_header(packet.bytes(), is_bare) else { return };
    let Some(bytes) = packet.bytes_mut().get_mut(at..) else { return };
    if let Some(class) = traffic_class(family, bytes) {
        set_traffic_class(family, bytes, code_point << 2 | class & ECN);
    }
}
