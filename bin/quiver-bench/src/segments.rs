//! Packets with segments, for the paths of SRv6: an SRH of two segments in each.

use std::net::Ipv6Addr;

use quiver_wire::ip6::Ip6Header;
use quiver_wire::srh::SEGMENT_BYTES;
use quiver_wire::{Header, IpProtocol};

use crate::population::{OUR_MAC, PEER_MAC, ip4_frame, ip6_frame};

/// The first local SID, and the next segment behind it.
pub const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 1, 0, 0, 0, 0, 0);
const NEXT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0);
/// The first C-SID's locator with the next one behind it (RFC 9800 §4.1), and the destination that
/// they become.
pub const COMPRESSED: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 1, 2, 0, 0, 0, 0);
pub const COMPRESSED_NEXT: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 2, 0, 0, 0, 0, 0);
/// The segment before, where the SID is the last.
const BEFORE: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 5, 0, 0, 0, 0, 5);
/// Where the frames of stations inside come from and go to.
pub const STATIONS: [[u8; 6]; 2] = [[2, 0, 0, 0, 9, 2], [2, 0, 0, 0, 9, 1]];
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What a packet with segments carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// UDP; the SID is the last segment but one.
    Udp,
    /// UDP, and no SRH: the next C-SID stands behind the first in the destination.
    Compressed,
    /// An IPv4 packet of 46 bytes to 20.0.0.0; the SID is the last.
    Ip4,
    /// An IPv6 packet of 60 bytes to 2001:db8::; the SID is the last.
    Ip6,
    /// An Ethernet frame of 60 bytes; the SID is the last.
    Frame,
}

/// A frame to the first SID.
pub fn frame(carried: Carried) -> Vec<u8> {
    let (protocol, left, payload) = match carried {
        Carried::Compressed => return ip6_frame(COMPRESSED).to_vec(),
        Carried::Udp => (IpProtocol::UDP, 1, ip6_frame(NEXT)[54..].to_vec()),
        Carried::Ip4 => (IpProtocol::IPV4, 0, ip4_frame(0x1400_0000)[ETHERNET..].to_vec()),
        Carried::Ip6 => (IpProtocol::IPV6, 0, ip6_frame(NEXT)[ETHERNET..].to_vec()),
        Carried::Frame => {
            let mut inner = ip4_frame(0x1400_0000).to_vec();
            inner[..12].copy_from_slice(STATIONS.as_flattened());
            (IpProtocol(143), 0, inner)
        }
    };
    let list = if left == 1 { [NEXT, SID] } else { [SID, BEFORE] };
    let mut srh = vec![protocol.0, 4, 4, left, 1, 0, 0, 0];
    srh.extend(list.iter().flat_map(|segment| segment.octets()));
    debug_assert_eq!(srh.len(), 8 + 2 * SEGMENT_BYTES);
    let source = Ipv6Addr::new(0x2001, 0xdb8, 0xfffe, 0, 0, 0, 0, 2);
    let length = (srh.len() + payload.len()) as u16;
    let mut header = [0; Ip6Header::LEN];
    // The header fits in its own length.
    let _ = Ip6Header::new(source, SID, IpProtocol::ROUTING, 64, length).write(&mut header);
    [&OUR_MAC[..], &PEER_MAC, &[0x86, 0xdd], &header, &srh, &payload].concat()
}
