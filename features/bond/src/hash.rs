//! The hash that chooses a frame's member: by its MAC addresses, its IP addresses, or its flow.
//!
//! Frames of one flow get one number, all fragments of a packet included. What cannot be read (an
//! unknown protocol, a header cut off) is hashed by what stands in front of it.

use quiver_wire::{EtherType, Header, Ip4Header, Ip6Header, flow};

#[cfg(test)]
use crate::mode::Balance;

/// VLAN tags that are looked through; a frame with more is hashed by its MAC addresses.
pub const VLAN_TAGS_MAX: usize = 4;
/// The tag that some switches use for the outer of two.
const OLD_DOUBLE_TAG: EtherType = EtherType(0x9100);

// Digits of π: other constants than those of the flow hash, so that a flow's path among equal
// routes says nothing of its member.
const PI_1: u64 = 0x243f_6a88_85a3_08d3;
const PI_2: u64 = 0x1319_8a2e_0370_7345;

/// Both halves of the product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ PI_1) * u128::from(b ^ PI_2);
    product as u64 ^ (product >> 64) as u64
}

/// The upper half of a word, which [`place`] reads, with the lower mixed in.
#[inline(always)]
fn finish(word: u64) -> u32 {
    (fold(word, word.rotate_left(32)) >> 32) as u32
}

/// Which of `count` places a hash chooses, without a division.
#[inline(always)]
pub fn place(hash: u32, count: usize) -> usize {
    ((u64::from(hash) * count as u64) >> 32) as usize
}

/// The hash of a frame by `balance`.
#[cfg(test)]
fn frame(balance: Balance, bytes: &[u8]) -> u32 {
    match balance {
        Balance::L2 => by_mac(bytes),
        Balance::L23 => by_addresses(bytes),
        Balance::L34 => by_flow(bytes),
    }
}

/// Both MAC addresses in one word.
#[inline(always)]
fn macs(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<12>() {
        Some([a, b, c, d, e, f, g, h, i, j, k, l]) => fold(
            u64::from_le_bytes([*a, *b, *c, *d, *e, *f, 0, 0]),
            u64::from_le_bytes([*g, *h, *i, *j, *k, *l, 0, 0]).rotate_left(16),
        ),
        None => 0,
    }
}

/// By both MAC addresses.
#[inline(always)]
pub fn by_mac(bytes: &[u8]) -> u32 {
    finish(macs(bytes))
}

/// By MAC and IP addresses.
#[inline(always)]
pub fn by_addresses(bytes: &[u8]) -> u32 {
    let addresses = match ip(bytes) {
        Some((EtherType::IPV4, rest)) => Ip4Header::overlay(rest).map(flow::hash_ip4_addresses),
        Some((_, rest)) => Ip6Header::overlay(rest).map(flow::hash_ip6_addresses),
        None => None,
    };
    finish(macs(bytes) ^ u64::from(addresses.unwrap_or(0)))
}

/// By IP addresses, protocol and ports; what is not IP by MAC addresses.
#[inline(always)]
pub fn by_flow(bytes: &[u8]) -> u32 {
    let hash = match ip(bytes) {
        Some((EtherType::IPV4, rest)) => {
            Ip4Header::split(rest).map(|(h, behind)| flow::hash_ip4(h, behind))
        }
        Some((_, rest)) => Ip6Header::split(rest).map(|(h, behind)| flow::hash_ip6(h, behind)),
        None => None,
    };
    hash.map_or_else(|| by_mac(bytes), |hash| finish(u64::from(hash)))
}

/// The IP packet in a frame, behind up to [`VLAN_TAGS_MAX`] tags, and which IP it is.
#[inline(always)]
fn ip(bytes: &[u8]) -> Option<(EtherType, &[u8])> {
    let ether_type = ether_type(bytes, 12)?;
    if matches!(ether_type, EtherType::IPV4 | EtherType::IPV6) {
        return Some((ether_type, bytes.get(14..)?));
    }
    behind_tags(bytes, ether_type)
}

#[cold]
fn behind_tags(bytes: &[u8], mut ether_type: EtherType) -> Option<(EtherType, &[u8])> {
    let mut at = 14;
    for _ in 0..VLAN_TAGS_MAX {
        if !ether_type.is_vlan() && ether_type != OLD_DOUBLE_TAG {
            return None;
        }
        ether_type = self::ether_type(bytes, at + 2)?;
        at += 4;
        if matches!(ether_type, EtherType::IPV4 | EtherType::IPV6) {
            return Some((ether_type, bytes.get(at..)?));
        }
    }
    None
}

#[inline(always)]
fn ether_type(bytes: &[u8], at: usize) -> Option<EtherType> {
    bytes.get(at..)?.first_chunk().map(|field| EtherType(u16::from_be_bytes(*field)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ethernet, tags, IPv4, UDP.
    fn udp(tags: &[u16], source: u32, port: u16, fragment: u16) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        tags.iter().for_each(|tag| {
            bytes.extend(tag.to_be_bytes());
            bytes.extend([0, 5]);
        });
        bytes.extend([8, 0, 0x45, 0, 0, 28, 0, 1]);
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, 17, 0, 0]);
        bytes.extend(source.to_be_bytes());
        bytes.extend([192, 0, 2, 1]);
        bytes.extend(port.to_be_bytes());
        bytes.extend([0, 9, 0, 8, 0, 0]);
        bytes
    }

    #[test]
    fn each_balance_sees_its_layers_and_no_more() {
        let (one, port, address) = (udp(&[], 1, 7, 0), udp(&[], 1, 8, 0), udp(&[], 2, 7, 0));
        assert_eq!(by_mac(&one), by_mac(&address));
        assert_eq!(by_addresses(&one), by_addresses(&port));
        assert_ne!(by_addresses(&one), by_addresses(&address));
        assert_ne!(by_flow(&one), by_flow(&port));
    }

    #[test]
    fn tags_do_not_hide_the_flow() {
        let plain = by_flow(&udp(&[], 1, 7, 0));
        for tags in [&[0x8100][..], &[0x88a8, 0x8100], &[0x9100, 0x8100, 0x8100, 0x8100]] {
            assert_eq!(by_flow(&udp(tags, 1, 7, 0)), plain, "{tags:x?}");
        }
        let deeper = udp(&[0x8100; 5], 1, 7, 0);
        assert_eq!(by_flow(&deeper), by_mac(&deeper));
    }

    #[test]
    fn all_fragments_of_a_packet_take_one_member() {
        let first = by_flow(&udp(&[0x8100], 1, 7, 0x2000));
        assert_eq!(by_flow(&udp(&[0x8100], 1, 0xbeef, 3)), first);
    }

    #[test]
    fn flows_spread_evenly_over_any_number_of_members() {
        for members in [2, 3, 5, 8] {
            for balance in [Balance::L23, Balance::L34] {
                let mut counts = vec![0u32; members];
                for flow in 0..8000u32 {
                    let bytes = udp(&[], 0x0a00_0000 + flow, (flow * 7) as u16, 0);
                    counts[place(frame(balance, &bytes), members)] += 1;
                }
                let fair = 8000 / members as u32;
                assert!(
                    counts.iter().all(|c| c.abs_diff(fair) < fair / 5),
                    "{balance}: {counts:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_every_place_exists(
            bytes in prop::collection::vec(any::<u8>(), 0..80), members in 1usize..32
        ) {
            for balance in [Balance::L2, Balance::L23, Balance::L34] {
                prop_assert!(place(frame(balance, &bytes), members) < members);
            }
        }

        #[test]
        fn cut_anywhere_a_frame_still_has_a_member(cut in 0usize..50, tag in 0usize..3) {
            let whole = udp(&[0x8100; 3][..tag], 5, 6, 0);
            let _ = by_flow(&whole[..cut.min(whole.len())]);
        }
    }
}
