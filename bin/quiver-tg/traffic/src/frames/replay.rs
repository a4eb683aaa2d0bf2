//! Packets that are sent as they are, one after the other: from a recording, or from the profile
//! itself.

use quiver_core::Packet;
use quiver_core::memory::buffer::BufferCache;
use quiver_wire::vlan::Tags;
use quiver_wire::{EtherType, Header, IpProtocol, UdpHeader, ethernet, ip4, ip6};

use super::column::checksum_of;
use super::program::{PIECE_BYTES, put, sum_of};
use crate::profile::Stream;
use crate::stamp::STAMP_BYTES;

/// The port of VXLAN: what is behind it has checksums of its own.
const VXLAN_PORT: u16 = 4789;

/// Packets one after the other, each at the beginning of a piece.
pub struct Replay {
    bytes: Box<[u8]>,
    /// Where each begins, and how long it is.
    places: Box<[(usize, usize)]>,
    next: usize,
    is_stamped: bool,
}

impl Replay {
    /// Of a stream's packets.
    pub fn new(stream: &Stream, packets: Vec<Vec<u8>>) -> Replay {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        for mut packet in packets {
            if let Some(pcap) = &stream.pcap {
                let macs = [(0, pcap.dst_mac), (6, pcap.src_mac)];
                for (at, mac) in macs.into_iter().filter_map(|(at, mac)| Some((at, mac?))) {
                    put(&mut packet, at, mac.0);
                }
            }
            if stream.stamp {
                reserve_stamp(&mut packet);
            }
            places.push((bytes.len(), packet.len()));
            bytes.extend(packet);
            bytes.resize(bytes.len().next_multiple_of(PIECE_BYTES), 0);
        }
        let (bytes, places) = (bytes.into_boxed_slice(), places.into_boxed_slice());
        Replay { bytes, places, next: 0, is_stamped: stream.stamp }
    }

    /// How many there are before they come round.
    pub fn packets(&self) -> u64 {
        self.places.len() as u64
    }

    /// A frame on average, bytes.
    pub fn frame_bytes_mean(&self) -> f64 {
        let all: usize = self.places.iter().map(|(_, length)| length).sum();
        all as f64 / self.places.len().max(1) as f64
    }

    /// The longest frame, bytes.
    pub fn frame_bytes_max(&self) -> usize {
        self.places.iter().map(|(_, length)| *length).max().unwrap_or(0)
    }

    /// Write the next one with `stamp` into an empty packet; false when there is no buffer for its
    /// further segments (then it holds a part).
    #[inline]
    #[must_use]
    pub fn write(
        &mut self,
        packet: &mut Packet,
        stamp: &[u8; STAMP_BYTES],
        data_bytes: usize,
        cache: &mut BufferCache,
    ) -> bool {
        let Some(&(start, length)) = self.places.get(self.next) else { return false };
        self.next = if self.next + 1 == self.places.len() { 0 } else { self.next + 1 };
        let copied = length.next_multiple_of(PIECE_BYTES);
        let Some(bytes) = self.bytes.get(start..start + copied) else { return false };
        if !packet.set_length(copied, data_bytes) {
            return write_long(packet, &bytes[..length], self.is_stamped.then_some(stamp), cache);
        }
        let frame = packet.bytes_mut();
        let (to, _) = frame.as_chunks_mut::<PIECE_BYTES>();
        let (from, _) = bytes.as_chunks::<PIECE_BYTES>();
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from;
        }
        if self.is_stamped {
            put(frame, length - STAMP_BYTES, *stamp);
        }
        packet.set_length(length, data_bytes)
    }
}

/// A frame longer than a buffer.
#[cold]
fn write_long(
    packet: &mut Packet,
    frame: &[u8],
    stamp: Option<&[u8; STAMP_BYTES]>,
    cache: &mut BufferCache,
) -> bool {
    match (stamp, frame.split_last_chunk::<STAMP_BYTES>()) {
        (Some(stamp), Some((before, _))) => {
            packet.append(before, cache) && packet.append(stamp, cache)
        }
        _ => packet.append(frame, cache),
    }
}

/// Make room for a stamp at the end of a packet: in its padding, in its payload (its checksum then
/// is that of the packet with zeros there, and a stamp changes no checksum), or behind it.
fn reserve_stamp(packet: &mut Vec<u8>) {
    match stamp_place(packet) {
        Some(StampPlace::Padding) => {}
        Some(StampPlace::Payload { checksum_at }) => {
            let start = packet.len() - STAMP_BYTES;
            let parity = (start - checksum_at) % 2;
            let mut old = vec![0; parity];
            old.extend_from_slice(&packet[start..]);
            packet[start..].fill(0);
            let stored = packet.get(checksum_at..).and_then(|field| field.first_chunk::<2>());
            let stored = stored.map_or(0, |field| u16::from_be_bytes(*field));
            if stored != 0 {
                // What is taken from under the checksum goes into it (RFC 1624 §3).
                let made = match !checksum_of(u64::from(stored) + sum_of(&old)) as u16 {
                    0 => 0xffff,
                    made => made,
                };
                put(packet, checksum_at, made.to_be_bytes());
            }
        }
        None => packet.resize(packet.len() + STAMP_BYTES, 0),
    }
}

/// The place of a stamp in a recorded packet.
enum StampPlace {
    /// Behind the end of the IP packet.
    Padding,
    /// In the payload of a transport protocol, whose checksum is at `checksum_at`.
    Payload { checksum_at: usize },
}

fn stamp_place(packet: &[u8]) -> Option<StampPlace> {
    let (l2, rest) = ethernet::Repr::parse(packet).ok()?;
    let tags = Tags::walk(l2.ether_type, rest)?;
    let ip_at = packet.len() - rest.len() + tags.len;
    let ip = packet.get(ip_at..)?;
    let (protocol, header_bytes, payload_bytes) = match tags.ether_type {
        EtherType::IPV4 => {
            let (header, payload) = ip4::Repr::parse(ip).ok()?;
            let fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3fff;
            if fragment != 0 {
                return None;
            }
            (header.protocol, header.header_len(), payload.len())
        }
        EtherType::IPV6 => {
            let (header, payload) = ip6::Repr::parse(ip).ok()?;
            (header.next_header, 40, payload.len())
        }
        _ => return None,
    };
    let end = ip_at + header_bytes + payload_bytes;
    if packet.len() >= end + STAMP_BYTES {
        return Some(StampPlace::Padding);
    }
    let transport = ip.get(header_bytes..header_bytes + payload_bytes)?;
    let (transport_bytes, checksum_place) = match protocol {
        IpProtocol::UDP => {
            let header = UdpHeader::overlay(transport)?;
            if [header.source_port(), header.destination_port()].contains(&VXLAN_PORT) {
                return None;
            }
            (8, 6)
        }
        IpProtocol::TCP => (usize::from(transport.get(12)? >> 4) * 4, 16),
        IpProtocol::ICMP if tags.ether_type == EtherType::IPV4 => (8, 2),
        IpProtocol::ICMP6 if tags.ether_type == EtherType::IPV6 => (8, 2),
        _ => return None,
    };
    let has_room = packet.len() == end && payload_bytes >= transport_bytes + STAMP_BYTES;
    has_room.then_some(StampPlace::Payload { checksum_at: ip_at + header_bytes + checksum_place })
}
