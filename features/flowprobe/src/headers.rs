//! The key of any packet, read header by header.

use quiver_wire::upper::Upper;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip4Header, Ip6Header, IpProtocol};

use crate::key::{
    FlowKey, IS_IP4, IS_IP6, Kinds, PORTS_SHIFT, PROTOCOL_SHIFT, Place, Secret, Shape, octets,
};

/// Tags in front of the protocol that are read.
const TAGS_MAX: usize = 2;
/// Bits of a tag that are the number of the VLAN.
const VLAN: u16 = 0xfff;

/// What stands in front of the protocol.
struct Frame {
    ether_type: EtherType,
    vlan: u16,
    /// Bytes of it.
    length: usize,
}

impl Frame {
    fn of(bytes: &[u8], is_bare: bool) -> Frame {
        if is_bare { bare(bytes) } else { frame(bytes) }
    }
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

/// What a flow keeps of its first frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// Source and destination, where they are recorded.
    pub macs: [u64; 2],
    pub ether_type: u16,
    pub vlan: u16,
    /// It stands for the others in the key; 0 where they are not recorded.
    pub word: u64,
}

impl Link {
    /// Of a packet that has a key.
    pub fn of(bytes: &[u8], place: &Place, key: &FlowKey, secret: &Secret) -> Link {
        let is_recorded = key.words[4] & place.tail(Shape::L2) == place.tail(Shape::L2);
        Link::recorded(bytes, &Frame::of(bytes, place.is_bare), place, is_recorded, secret)
    }

    #[inline(always)]
    fn recorded(
        bytes: &[u8],
        frame: &Frame,
        place: &Place,
        is_recorded: bool,
        secret: &Secret,
    ) -> Link {
        let (ether_type, vlan) = (frame.ether_type.0, frame.vlan);
        if !is_recorded || place.is_bare {
            return Link { ether_type, vlan, ..Link::default() };
        }
        let macs = [mac(bytes, 6), mac(bytes, 0)];
        let word = secret.word(macs, u64::from(ether_type) << 16 | u64::from(vlan));
        Link { macs, ether_type, vlan, word }
    }
}

/// The key of a packet of which a wire would have carried so many packets and bytes; none when it
/// is not recorded.
#[inline(never)]
pub(crate) fn key(
    bytes: &[u8],
    (packets, wire): (u64, u64),
    place: &Place,
    secret: &Secret,
) -> FlowKey {
    let frame = Frame::of(bytes, place.is_bare);
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
    let there = wire.saturating_sub(frame.length as u64 * packets) as u32;
    key.packets = packets as u32;
    key.octets = octets(key.octets, there, packets);
    if shape.has(Shape::L2) {
        key.frame_octets = wire as u32;
        key.words[3] ^= Link::recorded(bytes, &frame, place, true, secret).word;
    }
    key.words[4] |= place.tail(shape);
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
        key.words[4] |= u64::from(header.protocol().0) << PROTOCOL_SHIFT;
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
        key.words[4] |= u64::from(protocol.0) << PROTOCOL_SHIFT;
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
        Some((kind, code)) => u16::from_be_bytes([kind, code]),
        None => upper.destination_port,
    };
    if protocol == IpProtocol::TCP {
        key.tcp_flags = upper.tcp_flags;
    }
    let ports = u64::from(upper.source_port) << 16 | u64::from(destination);
    key.words[4] |= ports << PORTS_SHIFT;
}
