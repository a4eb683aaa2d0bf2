//! Packets, header by header, and what can be wrong with one of any kind.

use std::net::Ipv6Addr;

use quiver_wire::{Header, Ip4Header, checksum};

/// Who sends frames.
const ETHERNET_SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 0xa0];
/// An SRH's routing type.
pub const SRH: u8 = 4;

/// An IPv6 address.
pub fn octets(address: &str) -> [u8; 16] {
    address.parse::<Ipv6Addr>().expect("an address").octets()
}

/// An Ethernet header in front of a packet.
pub fn ethernet(to: [u8; 6], ether_type: u16, packet: &[u8]) -> Vec<u8> {
    [&to[..], &ETHERNET_SOURCE, &ether_type.to_be_bytes(), packet].concat()
}

/// An IPv6 header in front of what is behind it.
pub fn ip6(from: &str, to: &str, next: u8, hops: u8, behind: &[u8]) -> Vec<u8> {
    let length = (behind.len() as u16).to_be_bytes();
    let first = [0x60, 0, 0, 0, length[0], length[1], next, hops];
    [&first[..], &octets(from), &octets(to), behind].concat()
}

/// An IPv4 header in front of a datagram.
pub fn ip4(from: [u8; 4], to: [u8; 4], hops: u8, may_fragment: bool, behind: &[u8]) -> Vec<u8> {
    let total = ((20 + behind.len()) as u16).to_be_bytes();
    let flags = if may_fragment { 0 } else { 0x40 };
    let first = [0x45, 0, total[0], total[1], 0, 1, flags, 0, hops, 17, 0, 0];
    let mut packet = [&first[..], &from, &to, behind].concat();
    if let Some(header) = Ip4Header::overlay_mut(&mut packet) {
        let sum = checksum::header_checksum(header);
        header.set_checksum(sum);
    }
    packet
}

/// A datagram of so many bytes; its checksum, which is wrong unless it is 0.
pub fn udp(length: usize, checksum: u16) -> Vec<u8> {
    let [high, low] = (length as u16).to_be_bytes();
    let [sum_high, sum_low] = checksum.to_be_bytes();
    let header = [0x30, 0x39, 0, 9, high, low, sum_high, sum_low];
    header.into_iter().chain((8..length).map(|i| i as u8)).collect()
}

/// An SRH, right or wrong.
#[derive(Clone, Debug)]
pub struct Srh {
    /// As they stand: the last segment of the path first.
    pub segments: Vec<String>,
    pub left: u8,
    /// What the header says, if not the truth.
    pub length: Option<u8>,
    pub last: Option<u8>,
    pub kind: u8,
    pub flags: u8,
}

impl Srh {
    pub fn new(segments: &[&str], left: u8) -> Srh {
        let segments = segments.iter().map(|segment| (*segment).to_owned()).collect();
        Srh { segments, left, length: None, last: None, kind: SRH, flags: 0 }
    }

    pub fn bytes(&self, next: u8) -> Vec<u8> {
        let count = self.segments.len() as u8;
        let (length, last) =
            (self.length.unwrap_or(count * 2), self.last.unwrap_or(count.wrapping_sub(1)));
        let mut bytes = vec![next, length, self.kind, self.left, last, self.flags, 0, 0];
        self.segments.iter().for_each(|segment| bytes.extend(octets(segment)));
        bytes
    }
}

/// What is wrong with a packet, if anything; `O` is what else can be wrong with packets of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault<O = ()> {
    None,
    HopsLeft(u8),
    /// The frame ends there.
    Cut(usize),
    /// So many bytes stand behind the packet.
    Padding(usize),
    Flip {
        byte: usize,
        bit: u8,
    },
    Other(O),
}

impl<O: Copy + PartialEq> Fault<O> {
    /// The packet's hop limit.
    pub fn hops(self) -> u8 {
        if let Fault::HopsLeft(left) = self { left } else { 64 }
    }

    /// Is it this one?
    pub fn is(self, other: O) -> bool {
        self == Fault::Other(other)
    }

    /// Do to a frame what can be done to any.
    pub fn spoil(self, frame: &mut Vec<u8>) {
        match self {
            Fault::Cut(length) => frame.truncate(length),
            Fault::Padding(count) => frame.extend(vec![0; count]),
            Fault::Flip { byte, bit } => {
                if let Some(byte) = frame.get_mut(byte) {
                    *byte ^= 1 << bit;
                }
            }
            Fault::None | Fault::HopsLeft(_) | Fault::Other(_) => {}
        }
    }
}
