//! The flow hash: packets of one flow get one number, so that ECMP keeps them on one path.
//!
//! Addresses, protocol and ports are folded by multiplication: the 128-bit product of two words is
//! folded to 64 by exclusive or, which spreads every input bit over all output bits.

mod fields;

use crate::ip6::extension;
use crate::upper::Upper;
use crate::{Header, Ip4Header, Ip6Header};

pub use fields::{FlowFields, hash_ip4_by, hash_ip4_of, hash_ip6_by, hash_ip6_of, with_seed};

// Odd constants with as many ones as zeros: digits of the golden ratio and of the square roots of
// 2, 3 and 5.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const ROOT_2: u64 = 0x6a09_e667_f3bc_c909;
const ROOT_3: u64 = 0xbb67_ae85_84ca_a73b;
const ROOT_5: u64 = 0x3c6e_f372_fe94_f82b;

/// The product of both, its halves folded.
#[inline(always)]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Addresses that fit in one word, and protocol with ports in another.
#[inline(always)]
const fn mix(addresses: u64, rest: u64) -> u32 {
    let once = fold(addresses ^ GOLDEN, rest ^ ROOT_2);
    // Adding the input again keeps a product of zero from hiding it.
    let twice = fold(once ^ ROOT_3, addresses.wrapping_add(rest) ^ ROOT_5);
    (twice ^ (twice >> 32)) as u32
}

/// The first four bytes of the upper layer, or 0 if there are fewer.
#[inline(always)]
fn ports(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |ports| u32::from_be_bytes(*ports))
}

/// Protocol and ports of what is known of a packet that its bytes do not say.
fn rest_of(upper: &Upper) -> u64 {
    let ports = u32::from(upper.source_port) << 16 | u32::from(upper.destination_port);
    rest(upper.protocol.0, if upper.protocol.has_ports() { ports } else { 0 })
}

/// Protocol and ports in one word.
#[inline(always)]
fn rest(protocol: u8, ports: u32) -> u64 {
    u64::from(protocol) << 32 | u64::from(ports)
}

/// The hash of an IPv4 packet. `behind` are the bytes that follow the fixed header, options first.
/// Fragments, even the first, and protocols without ports are hashed by addresses and protocol.
#[inline(always)]
pub fn hash_ip4(header: &Ip4Header, behind: &[u8]) -> u32 {
    let addresses = u64::from(header.source_bits()) << 32 | u64::from(header.destination_bits());
    mix(addresses, rest4(header, behind))
}

/// Protocol and ports of an IPv4 packet.
#[inline(always)]
fn rest4(header: &Ip4Header, behind: &[u8]) -> u64 {
    let has_ports = header.protocol().has_ports() & !header.is_fragment();
    let upper = if header.is_version_4_without_options() {
        behind
    } else {
        let options = header.header_len().saturating_sub(Ip4Header::LEN);
        behind.get(options..).unwrap_or_default()
    };
    let ports = if has_ports { ports(upper) } else { 0 };
    rest(header.protocol().0, ports)
}

/// The hash of an IPv4 packet by addresses alone.
#[inline(always)]
pub fn hash_ip4_addresses(header: &Ip4Header) -> u32 {
    mix(u64::from(header.source_bits()) << 32 | u64::from(header.destination_bits()), 0)
}

/// Both IPv6 addresses in one word.
#[inline(always)]
fn fold_addresses(header: &Ip6Header) -> u64 {
    fold_both(header.source_bits(), header.destination_bits())
}

#[inline(always)]
fn fold_both(source: u128, destination: u128) -> u64 {
    let source = fold((source >> 64) as u64 ^ GOLDEN, source as u64 ^ ROOT_2);
    let destination = fold((destination >> 64) as u64 ^ ROOT_3, destination as u64 ^ ROOT_5);
    // Rotated, so that an exchange of both is another flow.
    source.rotate_left(32) ^ destination
}

/// The hash of an IPv6 packet. `behind` are the bytes that follow the fixed header. Extension
/// headers are walked; fragments, even the first, and protocols without ports are hashed by
/// addresses and protocol. A packet in one fragment (RFC 6946) is whole.
#[inline(always)]
pub fn hash_ip6(header: &Ip6Header, behind: &[u8]) -> u32 {
    mix(fold_addresses(header), rest6(header, behind))
}

/// Protocol and ports of an IPv6 packet.
#[inline(always)]
fn rest6(header: &Ip6Header, behind: &[u8]) -> u64 {
    let protocol = header.next_header();
    if protocol.has_ports() {
        rest(protocol.0, ports(behind))
    } else if extension::is_walked(protocol) {
        behind_extensions(header, behind)
    } else {
        rest(protocol.0, 0)
    }
}

/// The hash of an IPv6 packet by addresses alone.
#[inline(always)]
pub fn hash_ip6_addresses(header: &Ip6Header) -> u32 {
    mix(fold_addresses(header), 0)
}

/// Protocol and ports behind extension headers; the first next header if they cannot be walked.
#[cold]
#[inline(never)]
fn behind_extensions(header: &Ip6Header, behind: &[u8]) -> u64 {
    match extension::upper_layer(header.next_header(), behind) {
        Ok(upper) => match upper.fragment {
            // The only protocol that all fragments of a packet agree on.
            Some(fragment) if !fragment.is_atomic() => rest(fragment.next_header.0, 0),
            _ if upper.protocol.has_ports() => {
                rest(upper.protocol.0, ports(behind.get(upper.offset..).unwrap_or_default()))
            }
            _ => rest(upper.protocol.0, 0),
        },
        Err(_) => match first_fragment(header, behind) {
            Some(protocol) => rest(protocol, 0),
            None => rest(header.next_header().0, 0),
        },
    }
}

/// What the fragment header says, even if what follows it is cut off.
fn first_fragment(header: &Ip6Header, behind: &[u8]) -> Option<u8> {
    let mut walk = extension::Walk::new(header.next_header(), behind).flatten();
    walk.find_map(|extension| extension.fragment()).map(|fragment| fragment.next_header.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IpProtocol;
    use core::net::{Ipv4Addr, Ipv6Addr};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn ip4(source: u32, destination: u32, protocol: IpProtocol) -> Ip4Header {
        let (source, destination) = (Ipv4Addr::from_bits(source), Ipv4Addr::from_bits(destination));
        Ip4Header::new(source, destination, protocol, 64, 8).unwrap()
    }

    #[test]
    fn all_fragments_of_a_packet_have_one_hash() {
        let mut bytes = [0; 20];
        ip4(1, 2, IpProtocol::UDP).write(&mut bytes).unwrap();
        let whole = hash_ip4(Ip4Header::overlay(&bytes).unwrap(), &[0, 1, 0, 2]);
        bytes[6] = 0x20;
        let first = hash_ip4(Ip4Header::overlay(&bytes).unwrap(), &[0, 1, 0, 2]);
        bytes[6..8].copy_from_slice(&[0, 9]);
        let last = hash_ip4(Ip4Header::overlay(&bytes).unwrap(), &[7, 7, 7, 7]);
        assert_eq!(first, last);
        assert_ne!(first, whole);
    }

    #[test]
    fn ports_are_found_behind_options_and_extension_headers() {
        let mut bytes = [0; 20];
        ip4(1, 2, IpProtocol::TCP).write(&mut bytes).unwrap();
        let plain = hash_ip4(Ip4Header::overlay(&bytes).unwrap(), &[0, 1, 0, 2]);
        bytes[0] = 0x46;
        assert_eq!(hash_ip4(Ip4Header::overlay(&bytes).unwrap(), &[1, 1, 1, 1, 0, 1, 0, 2]), plain);
        let at = Ipv6Addr::LOCALHOST;
        let plain = hash_ip6(&Ip6Header::new(at, at, IpProtocol::TCP, 9, 4), &[0, 1, 0, 2]);
        let behind = [6, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 2];
        let header = Ip6Header::new(at, at, IpProtocol::DESTINATION_OPTIONS, 9, 12);
        assert_eq!(hash_ip6(&header, &behind), plain);
    }

    #[test]
    fn all_ip6_fragments_of_a_packet_have_one_hash() {
        let at = Ipv6Addr::LOCALHOST;
        let header = Ip6Header::new(at, at, IpProtocol::FRAGMENT, 9, 24);
        let first = [60, 0, 0, 1, 0, 0, 0, 9, 17, 0, 1, 4, 0, 0, 0, 0, 0, 1, 0, 2];
        let last = [60, 0, 0, 8, 0, 0, 0, 9, 1, 2, 3];
        let cut = &first[..9];
        assert_eq!(hash_ip6(&header, &first), hash_ip6(&header, &last));
        let mut alone = first;
        alone[3] = 0;
        let plain = Ip6Header::new(at, at, IpProtocol::UDP, 9, 4);
        assert_eq!(hash_ip6(&header, &alone), hash_ip6(&plain, &[0, 1, 0, 2]));
        assert_eq!(hash_ip6(&header, cut), hash_ip6(&header, &last));
    }

    #[test]
    fn consecutive_flows_spread_over_sixteen_paths() {
        let mut by_port = [0u32; 16];
        let mut by_address = [0u32; 16];
        let mut by_high_bits = [0u32; 16];
        let mut seen = HashSet::new();
        for i in 0..16_000u32 {
            let hash = hash_ip4(&ip4(1, 2, IpProtocol::UDP), &(i << 16).to_be_bytes());
            by_port[hash as usize % 16] += 1;
            let hash = hash_ip4(&ip4(0x0a00_0001, 0x1400_0000 + i, IpProtocol::UDP), &[]);
            by_address[hash as usize % 16] += 1;
            by_high_bits[hash as usize >> 28] += 1;
            seen.insert(hash);
        }
        for count in by_port.iter().chain(&by_address).chain(&by_high_bits) {
            assert!((850..1150).contains(count), "{count} of 16000 on one of 16 paths");
        }
        assert!(seen.len() > 15_990);
    }

    #[test]
    fn one_input_bit_flips_half_of_the_output_bits() {
        let mut flipped = [0u32; 104];
        let rounds = 256u64;
        for round in 0..rounds {
            let (a, b) = (round.wrapping_mul(GOLDEN), round.wrapping_mul(ROOT_3) >> 24);
            for (bit, flipped) in flipped.iter_mut().enumerate() {
                let (c, d) = if bit < 64 { (a ^ 1 << bit, b) } else { (a, b ^ 1 << (bit - 64)) };
                *flipped += (mix(a, b) ^ mix(c, d)).count_ones();
            }
        }
        for (bit, flipped) in flipped.iter().enumerate() {
            let mean = f64::from(*flipped) / rounds as f64;
            assert!((14.0..18.0).contains(&mean), "input bit {bit} flips {mean} of 32");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 20..80), next in 0usize..6) {
            if let Some((header, behind)) = Ip4Header::split(&bytes) {
                let _ = (hash_ip4(header, behind), hash_ip4_addresses(header));
            }
            if let Some((header, behind)) = Ip6Header::split(&bytes) {
                let mut header = *header;
                header.set_next_header(IpProtocol([0, 43, 44, 51, 60, 17][next]));
                let _ = (hash_ip6(&header, behind), hash_ip6_addresses(&header));
            }
        }

        #[test]
        fn each_field_of_the_five_matters(a: u32, b: u32, ports: u32, bit in 0u32..32) {
            let base = hash_ip4(&ip4(a, b, IpProtocol::UDP), &ports.to_be_bytes());
            let flip = 1 << bit;
            prop_assert_ne!(
                hash_ip4(&ip4(a ^ flip, b, IpProtocol::UDP), &ports.to_be_bytes()),
                base
            );
            prop_assert_ne!(
                hash_ip4(&ip4(a, b ^ flip, IpProtocol::UDP), &ports.to_be_bytes()),
                base
            );
            prop_assert_ne!(
                hash_ip4(&ip4(a, b, IpProtocol::UDP), &(ports ^ flip).to_be_bytes()),
                base
            );
            prop_assert_ne!(hash_ip4(&ip4(a, b, IpProtocol::TCP), &ports.to_be_bytes()), base);
        }
    }
}
