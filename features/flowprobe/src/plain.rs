//! The key of the most frequent packets, read in one step: an Ethernet frame without tags, IPv4
//! without options, no later fragment, UDP or TCP; addresses and ports make the flow.

use crate::key::{FlowKey, PORTS_SHIFT, PROTOCOL_SHIFT, octets};

/// Bytes of the three headers, where the last one is TCP's. A frame of Ethernet has more.
const HEADERS_BYTES: usize = 54;
/// Bytes of an Ethernet header.
const ETHERNET_BYTES: u64 = 14;
/// EtherType of IPv4, version 4 and a header of 20 bytes: the bytes 12 to 14.
const IP4_WITHOUT_OPTIONS: u32 = 0x08_0045;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The key of a packet of that form; `None` for others, which may have one all the same. `tail` is
/// what word 4 has beside ports and protocol.
#[inline(always)]
pub(crate) fn key(bytes: &[u8], (packets, wire): (u64, u64), tail: u64) -> Option<FlowKey> {
    let head: &[u8; HEADERS_BYTES] = bytes.first_chunk()?;
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    let (protocol, is_tcp) = (head[23], head[23] == TCP);
    let is_plain = (word(12) >> 8 == IP4_WITHOUT_OPTIONS)
        & (half(20) & FRAGMENT_OFFSET == 0)
        & (is_tcp | (protocol == UDP));
    if !is_plain {
        return None;
    }
    let there = wire.saturating_sub(ETHERNET_BYTES * packets) as u32;
    let upper = u64::from(word(34)) << PORTS_SHIFT | u64::from(protocol) << PROTOCOL_SHIFT;
    Some(FlowKey {
        words: [0, word(26).into(), 0, word(30).into(), upper | tail],
        packets: packets as u32,
        octets: octets(half(16).into(), there, packets),
        frame_octets: 0,
        tcp_flags: head[47] & u8::from(is_tcp).wrapping_neg(),
        class: head[15],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers;
    use crate::key::{Kinds, Place, Secret, Shape};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_key_that_is_read_header_by_header(
            bytes in proptest::collection::vec(any::<u8>(), 54..200),
            ether_type in prop_oneof![8 => Just(0x0800_u16), 1 => any::<u16>()],
            version in prop_oneof![8 => Just(0x45_u8), 1 => any::<u8>()],
            fragment in prop_oneof![8 => Just(0_u16), 1 => Just(0x2000), 1 => any::<u16>()],
            protocol in prop_oneof![4 => Just(6_u8), 4 => Just(17), 1 => any::<u8>()],
            length in prop_oneof![4 => 20..300_u16, 1 => any::<u16>()],
            packets in prop_oneof![4 => Just(1_u64), 1 => 2..40_u64],
            interface in 0..300_u32,
            is_output: bool,
        ) {
            let mut bytes = bytes;
            bytes[12..14].copy_from_slice(&ether_type.to_be_bytes());
            bytes[14] = version;
            bytes[16..18].copy_from_slice(&length.to_be_bytes());
            bytes[20..22].copy_from_slice(&fragment.to_be_bytes());
            bytes[23] = protocol;
            let on_wire = (packets, bytes.len() as u64 * packets);
            let place = Place {
                interface,
                is_output,
                is_bare: false,
                kinds: Kinds::IP4,
                shape: Shape::L3_L4,
            };
            let whole = headers::key(&bytes, on_wire, &place, &Secret::random());
            let is_plain = (ether_type, version, fragment & 0x1fff) == (0x0800, 0x45, 0)
                && matches!(protocol, 6 | 17);
            prop_assert_eq!(key(&bytes, on_wire, place.plain_tail()), is_plain.then_some(whole));
        }

        #[test]
        fn what_is_shorter_is_left_to_others(
            bytes in proptest::collection::vec(any::<u8>(), 0..54),
        ) {
            let place = Place {
                interface: 1,
                is_output: false,
                is_bare: false,
                kinds: Kinds::IP4,
                shape: Shape::L3_L4,
            };
            prop_assert_eq!(key(&bytes, (1, bytes.len() as u64), place.plain_tail()), None);
        }
    }
}
