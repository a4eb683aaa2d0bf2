//! IP packets in Ethernet frames, as features at `interface-output` and of ports see them.

use quiver_wire::{EtherType, EthernetHeader, Header};

use super::{Ip4, Ip6, IpFamily};
use crate::fib::Family;

/// VLAN tags in front of an IP header at most.
const TAGS_MAX: usize = 4;
const TAG_BYTES: usize = 4;

/// Where an IP header stands in a packet, and its family; `is_bare`: the packet has no link-layer
/// header in front.
#[inline]
pub fn ip_header(bytes: &[u8], is_bare: bool) -> Option<(usize, Family)> {
    if is_bare {
        return match bytes.first()? >> 4 {
            4 => Some((0, Family::Ip4)),
            6 => Some((0, Family::Ip6)),
            _ => None,
        };
    }
    let four = packet_in_frame::<Ip4>(bytes).map(|at| (at, Family::Ip4));
    four.or_else(|| packet_in_frame::<Ip6>(bytes).map(|at| (at, Family::Ip6)))
}

/// Where the IP packet of family `F` begins in a frame, behind the tags; nothing when there is
/// none.
#[inline(always)]
pub fn packet_in_frame<F: IpFamily>(frame: &[u8]) -> Option<usize> {
    let wanted = match F::FAMILY {
        Family::Ip4 => EtherType::IPV4,
        Family::Ip6 => EtherType::IPV6,
    };
    let kind = EthernetHeader::overlay(frame)?.ether_type();
    if kind == wanted { Some(EthernetHeader::LEN) } else { behind_tags(wanted, kind, frame) }
}

#[inline(never)]
fn behind_tags(wanted: EtherType, kind: EtherType, frame: &[u8]) -> Option<usize> {
    let (mut kind, mut at) = (kind, EthernetHeader::LEN);
    for _ in 0..TAGS_MAX {
        if !kind.is_vlan() {
            return None;
        }
        kind = EtherType(u16::from_be_bytes(*frame.get(at + 2..)?.first_chunk()?));
        at += TAG_BYTES;
        if kind == wanted {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kinds: &[u16]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for kind in kinds {
            frame.extend(kind.to_be_bytes());
            frame.extend([0, 7]);
        }
        frame
    }

    #[test]
    fn the_packet_is_behind_all_tags() {
        assert_eq!(packet_in_frame::<Ip4>(&frame(&[0x800])), Some(14));
        assert_eq!(packet_in_frame::<Ip6>(&frame(&[0x800])), None);
        assert_eq!(packet_in_frame::<Ip6>(&frame(&[0x88a8, 0x8100, 0x86dd])), Some(22));
        assert_eq!(packet_in_frame::<Ip6>(&frame(&[0x8100; 5])), None);
        assert_eq!(packet_in_frame::<Ip6>(&frame(&[0x8100, 0x86dd])[..17]), None);
        assert_eq!(packet_in_frame::<Ip4>(&[]), None);
    }
}
