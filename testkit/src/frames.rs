//! Frames of the usual kinds, built apart from the router's own code, which they test.

use std::net::{Ipv4Addr, Ipv6Addr};

/// EtherType of IPv4.
const IP4: u16 = 0x0800;
/// EtherType of IPv6.
const IP6: u16 = 0x86dd;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of the IPv6 fragment header.
const FRAGMENT_HEADER: u8 = 44;
/// TTL and hop limit.
const HOPS: u8 = 64;
/// The length of an IPv4 header without options, in bytes.
const IP4_HEADER_BYTES: usize = 20;

/// The sender of all frames.
const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// A frame to the test interface of this number, which has its default MAC address.
fn to_port(port: u8, ether_type: u16, packet: &[u8]) -> Vec<u8> {
    [&[2, 0xfe, 0, 0, 0, port][..], &HOST, &ether_type.to_be_bytes(), packet].concat()
}

/// Where a fragment's data belong in the data of its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    /// The identification of its packet; IPv4 has the low 16 bits.
    pub identification: u32,
    /// Offset of its first byte, a multiple of 8.
    pub offset_bytes: u16,
    /// Do more follow?
    pub more: bool,
}

/// A frame with an IPv4 packet to a test interface; `fragment` of 0 without more is a whole packet.
pub fn ip4(
    port: u8,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    protocol: u8,
    fragment: Fragment,
    data: &[u8],
) -> Vec<u8> {
    let length = (IP4_HEADER_BYTES + data.len()) as u16;
    let place = fragment.offset_bytes / 8 + (u16::from(fragment.more) << 13);
    let mut header = vec![0x45, 0];
    header.extend(length.to_be_bytes());
    header.extend((fragment.identification as u16).to_be_bytes());
    header.extend(place.to_be_bytes());
    header.extend([HOPS, protocol, 0, 0]);
    header.extend(source.octets());
    header.extend(destination.octets());
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    to_port(port, IP4, &[&header, data].concat())
}

/// A frame with a fragment of an IPv6 packet to a test interface.
pub fn ip6_fragment(
    port: u8,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    protocol: u8,
    fragment: Fragment,
    data: &[u8],
) -> Vec<u8> {
    let place = fragment.offset_bytes | u16::from(fragment.more);
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((8 + data.len() as u16).to_be_bytes());
    packet.extend([FRAGMENT_HEADER, HOPS]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend([protocol, 0]);
    packet.extend(place.to_be_bytes());
    packet.extend(fragment.identification.to_be_bytes());
    packet.extend(data);
    to_port(port, IP6, &packet)
}
