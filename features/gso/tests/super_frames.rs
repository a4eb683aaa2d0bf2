//! Frames of TCP super-frames, plain and in tunnels, and the frames that they stand for.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_core::memory::buffer::Offload;
use quiver_offload::segment::{HEADERS_BYTES_MAX, SEGMENT_TCP4, SEGMENT_TCP6, Segmenter};
use quiver_wire::checksum::{self, Sum};
use quiver_wire::{IpProtocol, ip4};

/// Bytes of the super-frame's payload, and of that of each segment but the last.
pub const PAYLOAD_BYTES: usize = 20_500;
pub const SEGMENT_BYTES: u16 = 1000;
/// Segments of a super-frame.
pub const SEGMENTS: u64 = 21;

/// Protocol numbers.
pub const IPV4: u8 = 4;
pub const IPV6: u8 = 41;
pub const ROUTING: u8 = 43;
pub const GRE: u8 = 47;
pub const ETHERNET: u8 = 143;

/// A super-frame.
#[derive(Clone)]
pub struct SuperFrame {
    pub bytes: Vec<u8>,
    pub offload: Offload,
}

impl SuperFrame {
    /// A frame whose transport header, the last one, is TCP with `encapsulations` IP headers around
    /// its own.
    pub fn new(bytes: Vec<u8>, is_ip6: bool, encapsulations: u8) -> SuperFrame {
        SuperFrame::of(PAYLOAD_BYTES, bytes, is_ip6, encapsulations)
    }

    /// As [`new`](Self::new), with so many bytes of payload.
    pub fn of(payload: usize, bytes: Vec<u8>, is_ip6: bool, encapsulations: u8) -> SuperFrame {
        let offload = Offload {
            checksum_bytes: (TCP_BYTES + payload) as u16,
            checksum_offset: 16,
            segment_bytes: SEGMENT_BYTES,
            payload_bytes: payload as u16,
            segment_kind: if is_ip6 { SEGMENT_TCP6 } else { SEGMENT_TCP4 },
            encapsulations,
        };
        SuperFrame { bytes, offload }
    }

    /// The frames that it stands for.
    pub fn cut(&self) -> Vec<Vec<u8>> {
        let Offload { segment_kind, segment_bytes, .. } = self.offload;
        let length = self.bytes.len();
        let segmenter =
            Segmenter::new(&self.bytes, length, segment_kind, segment_bytes).expect("cuts");
        let mut headers = [0; HEADERS_BYTES_MAX];
        let frames = (0..segmenter.count()).map(|number| {
            let payload = segmenter.segment(&self.bytes, number, &mut headers).expect("segment");
            [&headers[..segmenter.headers_bytes()], &self.bytes[payload]].concat()
        });
        frames.collect()
    }
}

const TCP_BYTES: usize = 20;

/// A TCP header with CWR, PSH, FIN and ACK, and payload; its checksum is `pseudo`.
fn tcp(payload_bytes: usize, pseudo: impl FnOnce(usize) -> Sum) -> Vec<u8> {
    let mut bytes =
        vec![0, 80, 4, 0, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 0x50, 0x99, 1, 0, 0, 0, 0, 0];
    bytes.extend((0..payload_bytes).map(|at| (at * 7 / 3) as u8));
    let sum = !pseudo(bytes.len()).checksum();
    bytes[16..18].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// An IPv4 header around `data`.
pub fn ip4(protocol: u8, ends: (Ipv4Addr, Ipv4Addr), may_fragment: bool, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    let repr = ip4::Repr::new(ends.0, ends.1, IpProtocol(protocol), data.len());
    repr.emit(&mut bytes).expect("room");
    bytes[1] = 0x02; // ECN-capable
    bytes[4..6].copy_from_slice(&7_u16.to_be_bytes());
    bytes[6] = if may_fragment { 0 } else { 0x40 };
    bytes[10..12].fill(0);
    let sum = checksum::of(&bytes);
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(data);
    bytes
}

/// An IPv6 header around `data`.
pub fn ip6(next: u8, ends: (Ipv6Addr, Ipv6Addr), data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0x20, 0, 0];
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend(ends.0.octets());
    bytes.extend(ends.1.octets());
    bytes.extend(data);
    bytes
}

/// A packet of TCP over IPv4.
pub fn tcp4(ends: (Ipv4Addr, Ipv4Addr), may_fragment: bool) -> Vec<u8> {
    tcp4_of(PAYLOAD_BYTES, ends, may_fragment)
}

/// As [`tcp4`], with so many bytes of payload.
pub fn tcp4_of(bytes: usize, ends: (Ipv4Addr, Ipv4Addr), may_fragment: bool) -> Vec<u8> {
    let sum = |length| Sum::pseudo4(ends.0, ends.1, IpProtocol::TCP, length as u16);
    ip4(6, ends, may_fragment, &tcp(bytes, sum))
}

/// A packet of TCP over IPv6.
pub fn tcp6(ends: (Ipv6Addr, Ipv6Addr)) -> Vec<u8> {
    ip6(6, ends, &tcp6_behind(ends))
}

/// TCP for a packet that ends its way at `ends.1`.
pub fn tcp6_behind(ends: (Ipv6Addr, Ipv6Addr)) -> Vec<u8> {
    tcp(PAYLOAD_BYTES, |length| Sum::pseudo6(ends.0, ends.1, IpProtocol::TCP, length as u32))
}

/// An SRH with `left` segments left, the last segment first, in front of `data`.
pub fn srh(next: u8, left: u8, segments: &[Ipv6Addr], data: &[u8]) -> Vec<u8> {
    let mut bytes =
        vec![next, 2 * segments.len() as u8, 4, left, segments.len() as u8 - 1, 0, 0, 0];
    segments.iter().for_each(|segment| bytes.extend(segment.octets()));
    bytes.extend(data);
    bytes
}

/// A GRE header with these flags and optional fields in front of `data`.
pub fn gre(ether_type: u16, key: Option<u32>, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![if key.is_some() { 0x20 } else { 0 }, 0];
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(key.map(u32::to_be_bytes).into_iter().flatten());
    bytes.extend(data);
    bytes
}

/// A frame to the test interface of this number, which has its default MAC address.
pub fn to_port(port: u8, packet: &[u8]) -> Vec<u8> {
    frame([2, 0xfe, 0, 0, 0, port], packet)
}

/// A frame to a MAC address.
pub fn frame(to: [u8; 6], packet: &[u8]) -> Vec<u8> {
    let ether_type: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&to[..], &[2, 0, 0, 0, 0, 9], &ether_type, packet].concat()
}
