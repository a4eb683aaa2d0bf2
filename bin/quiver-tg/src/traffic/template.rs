//! A frame made ahead: every header in place, all that never changes summed up.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use quiver_wire::{EtherType, Header, IpProtocol, MacAddress, ethernet, ip4, ip6, udp};

use crate::stamp::STAMP_BYTES;

/// Templates are as long as a multiple of this, so that they are copied in wide pieces.
pub const PIECE_BYTES: usize = 64;
/// The type of frames without IP (IEEE 802: local experimental 1).
pub const ETHER_TYPE_PLAIN: EtherType = EtherType(0x88b5);
/// What stands behind an IP header without UDP (RFC 3692: use for experimentation).
pub const PROTOCOL_PLAIN: IpProtocol = IpProtocol(253);

/// Where a header begins, bytes from the start of the frame.
pub const IP_OFFSET: usize = 14;

/// Headers with the values that they have in the template.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    /// Layer 2.
    pub ethernet: (MacAddress, MacAddress),
    /// IP.
    pub ip: Ip,
    /// UDP source and destination ports.
    pub udp: Option<(u16, u16)>,
}

/// The IP header, if any.
#[derive(Clone, Copy, Debug)]
pub enum Ip {
    /// None.
    None,
    /// Source, destination, time to live.
    V4(Ipv4Addr, Ipv4Addr, u8),
    /// Source, destination, hop limit.
    V6(Ipv6Addr, Ipv6Addr, u8),
}

/// A frame made ahead.
pub struct Template {
    /// The frame, and zeros up to a multiple of [`PIECE_BYTES`].
    pub bytes: Box<[u8]>,
    /// Bytes of the frame.
    pub length: usize,
}

impl Template {
    /// Make one of `length` bytes: headers, zeros, and room for the stamp at the end. `None` when the
    /// headers do not fit or are too long for their length fields.
    pub fn new(headers: &Headers, length: usize) -> Option<Template> {
        let mut bytes = vec![0; length.next_multiple_of(PIECE_BYTES)].into_boxed_slice();
        let frame = &mut bytes[..length];
        let (source, destination) = headers.ethernet;
        let ether_type = match headers.ip {
            Ip::None => ETHER_TYPE_PLAIN,
            Ip::V4(..) => EtherType::IPV4,
            Ip::V6(..) => EtherType::IPV6,
        };
        ethernet::Repr { destination, source, ether_type }.emit(frame).ok()?;
        let packet = frame.get_mut(IP_OFFSET..)?;
        let protocol = if headers.udp.is_some() { IpProtocol::UDP } else { PROTOCOL_PLAIN };
        let header_bytes = match headers.ip {
            Ip::None => 0,
            Ip::V4(source, destination, ttl) => {
                let payload_len = packet.len().checked_sub(20)?;
                let repr = ip4::Repr::new(source, destination, protocol, payload_len);
                ip4::Repr { ttl, ..repr }.emit(packet).ok()?
            }
            Ip::V6(source, destination, hop_limit) => ip6::Repr {
                traffic_class: 0,
                flow_label: 0,
                next_header: protocol,
                hop_limit,
                source,
                destination,
                payload_len: packet.len().checked_sub(40)?,
            }
            .emit(packet)
            .ok()?,
        };
        let mut used = IP_OFFSET + header_bytes;
        if let Some((source_port, destination_port)) = headers.udp {
            let datagram = packet.get_mut(header_bytes..)?;
            let payload_len = datagram.len().checked_sub(8)?;
            udp::Repr { source_port, destination_port, payload_len, checksum: 0 }.emit(datagram).ok()?;
            if let Ip::V6(source, destination, _) = headers.ip {
                // The stamp, all zeros here, adds nothing later either.
                udp::fill_checksum_over_ip6(source, destination, datagram);
            }
            used += udp::UdpHeader::LEN;
        }
        (used + STAMP_BYTES <= length).then_some(Template { bytes, length })
    }

    /// The one's complement sum of everything under the checksum that stands at `checksum_at`, less
    /// the `varying` fields, in the machine's order.
    pub fn sum_without(&self, checksum_at: usize, varying: &[Range<usize>]) -> u16 {
        let word = |at: usize| u16::from_ne_bytes([self.bytes[at], self.bytes[at + 1]]);
        // A checksum is the complement of the sum; the complement of a word is its negative.
        let fields = varying.iter().flat_map(|f| f.clone().step_by(2));
        !checksum_of(u64::from(!word(checksum_at)) + fields.map(|at| u64::from(!word(at))).sum::<u64>())
    }
}

/// The one's complement sum of words in the machine's order, as a checksum to store.
#[inline(always)]
pub fn checksum_of(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}
