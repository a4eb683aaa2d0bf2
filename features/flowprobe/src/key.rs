//! What makes a flow: the key of a packet, and what is counted of it.
//!
//! Words 0 to 3 are source and destination address, of two halves each; an IPv4 address stands in
//! the second one. Word 4 is source port (16 bits), destination port (16), protocol (8),
//! [`PRESENT`] and what stands beside it, interface (16). Word 5 stands for addresses, type and tag
//! of the frame where these are recorded.

use quiver_core::Packet;
use quiver_wire::upper::Upper;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip4Header, Ip6Header, IpProtocol};

use crate::flow::KEY_WORDS;

/// Every key has this bit.
const PRESENT: u64 = 1 << 23;
/// The addresses are of IPv6, of IPv4.
pub(crate) const IS_IP6: u64 = 1 << 22;
pub(crate) const IS_IP4: u64 = 1 << 21;
/// The interface sends the packets.
pub(crate) const OUTPUT: u64 = 1 << 20;
/// Where the [`Shape`] stands.
pub(crate) const SHAPE_SHIFT: u32 = 16;
/// Tags in front of the protocol that are read.
const TAGS_MAX: usize = 2;
/// Bits of a tag that are the number of the VLAN.
const VLAN: u16 = 0xfff;

/// Which fields are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape(pub u8);

impl Shape {
    /// Addresses, type and tag of frames.
    pub const L2: Shape = Shape(1);
    /// Addresses and protocol of IP packets.
    pub const L3: Shape = Shape(2);
    /// Ports, flags of TCP, type and code of ICMP.
    pub const L4: Shape = Shape(4);
    /// All bits.
    pub const ALL: u8 = 7;

    pub fn has(self, other: Shape) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn with(self, other: Shape, is_on: bool) -> Shape {
        Shape(self.0 | if is_on { other.0 } else { 0 })
    }
}

/// Which packets of an interface are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(pub u8);

impl Kinds {
    /// All frames.
    pub const L2: Kinds = Kinds(1);
    /// Packets of IPv4.
    pub const IP4: Kinds = Kinds(2);
    /// Packets of IPv6.
    pub const IP6: Kinds = Kinds(4);

    /// The interface has no link layer.
    pub const BARE: Kinds = Kinds(8);

    /// Does it hold any of these?
    pub fn any(self, others: u8) -> bool {
        self.0 & others != 0
    }
}

/// A packet's key, and what is added to its flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowKey {
    /// All 0 when the packet is not recorded.
    pub words: [u64; KEY_WORDS],
    pub packets: u32,
    /// Of IP packets.
    pub octets: u32,
    pub frame_octets: u32,
    /// The interface by which it came in, where another one sends it.
    pub other: u32,
    pub tcp_flags: u8,
    pub class: u8,
    pub icmp: u16,
    pub vlan: u16,
    pub ether_type: u16,
    /// Source and destination.
    pub macs: [u64; 2],
}

/// What holds for a packet beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub interface: u32,
    pub is_output: bool,
    /// Has it no Ethernet header?
    pub is_bare: bool,
    pub kinds: Kinds,
    pub shape: Shape,
}

/// What stands in front of the protocol.
struct Frame {
    ether_type: EtherType,
    vlan: u16,
    /// Bytes of it.
    length: usize,
}

/// The header of a frame, behind its tags. What is cut off has no type.
#[inline(always)]
fn frame(bytes: &[u8]) -> Frame {
    let Some(header) = EthernetHeader::overlay(bytes) else {
        return Frame { ether_type: EtherType(0), vlan: 0, length: 0 };
    };
    let mut frame = Frame { ether_type: header.ether_type(), vlan: 0, length: EthernetHeader::LEN };
    for _ in 0..TAGS_MAX {
        let behind = bytes.get(frame.length..).and_then(|behind| behind.first_chunk());
        let Some([a, b, c, d]) = behind.filter(|_| frame.ether_type.is_vlan()) else { break };
        if frame.vlan == 0 {
            frame.vlan = u16::from_be_bytes([*a, *b]) & VLAN;
        }
        frame.ether_type = EtherType(u16::from_be_bytes([*c, *d]));
        frame.length += 4;
    }
    frame
}

/// What stands in front of a packet without Ethernet header: its version says what it is.
#[inline(never)]
fn bare(bytes: &[u8]) -> Frame {
    let ether_type = match bytes.first().map(|byte| byte >> 4) {
        Some(4) => EtherType::IPV4,
        Some(6) => EtherType::IPV6,
        _ => EtherType(0),
    };
    Frame { ether_type, vlan: 0, length: 0 }
}

/// A MAC address as a number.
fn mac(bytes: &[u8], at: usize) -> u64 {
    let own: Option<&[u8; 6]> = bytes.get(at..).and_then(|own| own.first_chunk());
    own.map_or(0, |own| own.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The key of a packet; none when it is not recorded.
#[inline(always)]
pub(crate) fn key(packet: &Packet, place: Place, secret: &Secret) -> FlowKey {
    let bytes = packet.bytes();
    let frame = if place.is_bare { bare(bytes) } else { frame(bytes) };
    let ip = bytes.get(frame.length..).unwrap_or_default();
    let mut key = FlowKey::default();
    let is_ip = match frame.ether_type {
        EtherType::IPV4 if place.kinds.any(Kinds::L2.0 | Kinds::IP4.0) => {
            ip4(ip, place.shape, &mut key)
        }
        EtherType::IPV6 if place.kinds.any(Kinds::L2.0 | Kinds::IP6.0) => {
            ip6(ip, place.shape, &mut key)
        }
        _ => false,
    };
    let is_other = !is_ip && place.kinds.any(Kinds::L2.0);
    if !is_ip && !is_other {
        return FlowKey::default();
    }
    // Other protocols have nothing but their frame.
    let shape = if is_other { Shape::L2 } else { place.shape };
    let (packets, octets) = packet.on_wire();
    key.packets = packets as u32;
    key.frame_octets = octets as u32;
    let there = octets.saturating_sub(frame.length as u64 * packets) as u32;
    key.octets = match key.octets {
        // A header says less than the frame has, where the frame is padded.
        length if length > 0 && packets == 1 => length.min(there),
        _ => there,
    };
    (key.vlan, key.ether_type) = (frame.vlan, frame.ether_type.0);
    if shape.has(Shape::L2) && !place.is_bare {
        key.macs = [mac(bytes, 6), mac(bytes, 0)];
        key.words[5] = secret.word(&key);
    }
    key.words[4] |= PRESENT
        | u64::from(place.interface & 0xffff)
        | u64::from(shape.0) << SHAPE_SHIFT
        | if place.is_output { OUTPUT } else { 0 };
    key
}

/// Fields of an IPv4 packet; false when its header is not whole.
#[inline(always)]
fn ip4(bytes: &[u8], shape: Shape, key: &mut FlowKey) -> bool {
    let Some(header) = Ip4Header::overlay(bytes) else { return false };
    if header.version() != 4 {
        return false;
    }
    key.words[4] = IS_IP4;
    key.octets = header.total_length().into();
    key.class = header.traffic_class;
    if shape.has(Shape::L3) {
        key.words[1] = header.source_bits().into();
        key.words[3] = header.destination_bits().into();
        key.words[4] |= u64::from(header.protocol().0) << 24;
    }
    if shape.has(Shape::L4) {
        // A fragment after the first has no ports.
        upper(Upper::of_ip4(bytes).ok(), header.protocol(), key);
    }
    true
}

/// Fields of an IPv6 packet; false when its header is not whole.
#[inline(always)]
fn ip6(bytes: &[u8], shape: Shape, key: &mut FlowKey) -> bool {
    let Some(header) = Ip6Header::overlay(bytes) else { return false };
    if header.version() != 6 {
        return false;
    }
    key.words[4] = IS_IP6;
    key.octets = match header.payload_length() {
        0 => 0,
        length => Ip6Header::LEN as u32 + u32::from(length),
    };
    key.class = header.traffic_class();
    let found = Upper::of_ip6(bytes).ok();
    let protocol = found.map_or(header.next_header(), |upper| upper.protocol);
    if shape.has(Shape::L3) {
        let (source, destination) = (header.source_bits(), header.destination_bits());
        key.words[0] = (source >> 64) as u64;
        key.words[1] = source as u64;
        key.words[2] = (destination >> 64) as u64;
        key.words[3] = destination as u64;
        key.words[4] |= u64::from(protocol.0) << 24;
    }
    if shape.has(Shape::L4) {
        upper(found, protocol, key);
    }
    true
}

/// Ports, flags, type and code.
#[inline(always)]
fn upper(found: Option<Upper>, protocol: IpProtocol, key: &mut FlowKey) {
    let Some(upper) = found else { return };
    let destination = match upper.icmp {
        // Type and code make a flow, as the destination port does.
        Some((kind, code)) => {
            key.icmp = u16::from_be_bytes([kind, code]);
            key.icmp
        }
        None => upper.destination_port,
    };
    if protocol == IpProtocol::TCP {
        key.tcp_flags = upper.tcp_flags;
    }
    key.words[4] |= u64::from(upper.source_port) << 48 | u64::from(destination) << 32;
}

/// A secret of the process: who sends frames cannot find two whose words are the same.
#[derive(Debug)]
pub(crate) struct Secret([u64; 4]);

impl Secret {
    /// Drawn at random.
    pub fn random() -> Secret {
        use std::hash::{BuildHasher, RandomState};
        let source = RandomState::new();
        Secret(std::array::from_fn(|place| source.hash_one(place) | 1))
    }

    /// The word that stands for a frame's addresses, type and tag, never 0.
    fn word(&self, key: &FlowKey) -> u64 {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let rest = u64::from(key.ether_type) << 16 | u64::from(key.vlan);
        let macs = fold(key.macs[0] ^ self.0[0], key.macs[1] ^ self.0[1]);
        fold(macs ^ self.0[2], rest ^ self.0[3]) | 1
    }
}
