//! Packets get other addresses and ports (RFC 3022 §4.1), and SYNs another segment size.

use quiver_core::Packet;

use crate::checksum::{adjust, adjusted, checksum_at};
use crate::flow::{CALL, call};
use crate::tcp::flag;

/// Give a packet other ends: `addresses` are the source in the high half and the destination in the
/// low one, `ports` likewise. Then come what its checksums get
/// ([`deltas`](crate::checksum::deltas)). What the packet does not have is left alone.
#[inline(always)]
pub fn set_ends(
    packet: &mut Packet,
    addresses: u64,
    ports: u32,
    (ip_delta, upper_delta): (u16, u16),
) {
    let bytes = packet.bytes_mut();
    let Some(head) = bytes.first_chunk_mut::<20>() else { return };
    head[12..20].copy_from_slice(&addresses.to_be_bytes());
    let checksum = adjusted(u16::from_be_bytes([head[10], head[11]]), ip_delta);
    head[10..12].copy_from_slice(&checksum.to_be_bytes());
    let (protocol, later) = (head[9], u16::from_be_bytes([head[6], head[7]]) & 0x1fff != 0);
    let behind = usize::from(head[0] & 15) * 4;
    if later {
        return;
    }
    match protocol {
        6 | 17 => {
            if let Some(place) = bytes.get_mut(behind..).and_then(|b| b.first_chunk_mut::<4>()) {
                *place = ports.to_be_bytes();
            }
            let at = if protocol == 6 { 16 } else { 6 };
            adjust(bytes, behind + at, upper_delta, protocol == 17);
        }
        1 => {
            if let Some(place) = bytes.get_mut(behind + 4..).and_then(|b| b.first_chunk_mut()) {
                *place = (ports as u16).to_be_bytes();
            }
            adjust(bytes, behind + 2, upper_delta, false);
        }
        // Only flows of calls have a port here.
        47 if ports as u16 != 0 => set_call(bytes.get_mut(behind..), ports as u16),
        _ => {
            if let Some(at) = checksum_at(protocol) {
                adjust(bytes, behind + at, upper_delta, false);
            }
        }
    }
}

/// Give a packet of GRE version 1 another call (RFC 2637 §4.1). No checksum covers it.
#[cold]
fn set_call(gre: Option<&mut [u8]>, number: u16) {
    let Some(gre) = gre.filter(|gre| call(gre).is_some()) else { return };
    if let Some(place) = gre.get_mut(CALL) {
        place.copy_from_slice(&number.to_be_bytes());
    }
}

/// The flags of a TCP header, of a packet that has one in its first bytes.
#[inline(always)]
pub fn tcp_flags(packet: &Packet) -> Option<u8> {
    let bytes = packet.bytes();
    let head = bytes.first_chunk::<20>()?;
    let later = u16::from_be_bytes([head[6], head[7]]) & 0x1fff != 0;
    if head[9] != 6 || later {
        return None;
    }
    bytes.get(usize::from(head[0] & 15) * 4 + 13).copied()
}

/// Bytes of options that are looked at for the segment size.
const OPTIONS_BYTES_MAX: usize = 40;

/// Lower the segment size that a SYN names to `most` (RFC 9293 §3.2, RFC 4459 §3.2).
#[cold]
pub fn clamp_mss(packet: &mut Packet, most: u16) {
    let bytes = packet.bytes_mut();
    let Some(head) = bytes.first_chunk::<20>() else { return };
    let behind = usize::from(head[0] & 15) * 4;
    let Some(tcp) = bytes.get_mut(behind..) else { return };
    let (Some(offset), Some(flags)) = (tcp.get(12).copied(), tcp.get(13).copied()) else { return };
    let end = (usize::from(offset >> 4) * 4).min(20 + OPTIONS_BYTES_MAX);
    if flags & flag::SYN == 0 || end < 20 {
        return;
    }
    let mut at = 20;
    while at < end {
        let (kind, length) = (tcp.get(at).copied(), tcp.get(at + 1).copied());
        match (kind, length) {
            (Some(0) | None, _) => return,
            (Some(1), _) => at += 1,
            (Some(2), Some(4)) if at + 4 <= end => {
                let Some([high, low]) = tcp.get(at + 2..).and_then(|b| b.first_chunk()) else {
                    return;
                };
                let named = u16::from_be_bytes([*high, *low]);
                if named > most {
                    tcp[at + 2..at + 4].copy_from_slice(&most.to_be_bytes());
                    lower(tcp, at % 2 == 1, named, most);
                }
                return;
            }
            (Some(_), Some(length)) if length >= 2 => at += usize::from(length),
            _ => return,
        }
    }
}

/// The checksum of a TCP header in which the value `old` became `new`; `odd` says that it does not
/// begin at a word.
fn lower(tcp: &mut [u8], odd: bool, old: u16, new: u16) {
    let words = |value: u16| if odd { value.swap_bytes() } else { value };
    let (old, new) = (words(old), words(new));
    let delta = u32::from(!old) + u32::from(new);
    let delta = ((delta & 0xffff) + (delta >> 16)) as u16;
    adjust(tcp, 16, delta, false);
}
