//! The outer IP header, IPv4 or IPv6: the nodes by which it leaves, and the fields that differ from
//! packet to packet.

use std::net::IpAddr;

use quiver_core::Packet;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::{Header, IntoBytes, Ip4Header, Ip6Header, IpProtocol, checksum};

use crate::entry::EntryView;
use crate::flow::flow_label;
use crate::inner::Truncated;

/// Version 4 and a header of 20 bytes, in the first word of an IPv4 header.
const VERSION_AND_LENGTH: u16 = 0x4500;
/// The flag that forbids fragments, in the fourth word of an IPv4 header.
const DONT_FRAGMENT: u16 = 0x4000;

/// The inner packet or frame, as far as an outer header tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    /// Differentiated services and congestion notification, which the outer header takes over (RFC
    /// 2983, RFC 6040).
    pub traffic_class: u8,
    /// Hops that are left.
    pub hop_limit: u8,
    /// The hash of the flow.
    pub hash: u32,
    /// The protocol.
    pub protocol: IpProtocol,
    /// Must no router fragment the outer packet? IPv4 alone can say so.
    pub dont_fragment: bool,
    /// The key of a tunnel whose entry has none; 0 for others.
    pub key: u32,
}

/// IPv4 or IPv6 outside.
pub trait OuterHeader: IpFamily {
    /// Has the header a field for the flow?
    const HAS_FLOW: bool;
    /// Bytes of the header.
    const LEN: usize;
    /// The longest packet, in bytes.
    const PACKET_BYTES_MAX: usize;
    /// The node that sends to a neighbour by the adjacency that is handed over.
    const REWRITE: &'static str;
    /// Nodes whose index is an adjacency, too: a neighbour that is to be confirmed or resolved,
    /// packets that are counted.
    const ADJACENCY_NODES: [&'static str; 3];
    /// The node to which the FIB sends packets without a route.
    const DROP: &'static str;
    /// The node that looks the destination up in the table that is handed over.
    const LOOK_UP: &'static str;
    /// The node that fragments by a
    /// [`FragmentRequest`](quiver_forwarding::requests::FragmentRequest). There is none for IPv4:
    /// where only a link behind is too narrow, routers there fragment.
    const FRAGMENT: Option<&'static str>;

    /// Differentiated services and congestion notification of the header that `bytes` begin with.
    fn traffic_class(bytes: &[u8]) -> Option<u8>;

    /// A header from `source` to `destination`, as [`fill`](Self::fill) completes it; `None` for
    /// addresses of the other family. It has a traffic class and a hop limit for entries that do
    /// not copy those of the inner packet.
    fn template(
        source: IpAddr,
        destination: IpAddr,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Option<Vec<u8>>;

    /// Write the fields of a template that differ from packet to packet. `total` is the length of
    /// the packet with it, in bytes.
    ///
    /// # Errors
    /// `bytes` is shorter than the template.
    fn fill(
        words: EntryView<'_>,
        bytes: &mut [u8],
        total: usize,
        protocol: IpProtocol,
        inside: Inside,
    ) -> Result<(), Truncated>;
}

impl OuterHeader for Ip4 {
    const HAS_FLOW: bool = false;
    const LEN: usize = Ip4Header::LEN;
    const PACKET_BYTES_MAX: usize = u16::MAX as usize;
    const REWRITE: &'static str = "ip4-rewrite";
    const ADJACENCY_NODES: [&'static str; 3] =
        ["ip4-confirm-neighbor", "ip4-arp", "ip4-adjacency-counter"];
    const DROP: &'static str = "ip4-drop";
    const LOOK_UP: &'static str = "ip4-lookup-in-table";
    const FRAGMENT: Option<&'static str> = None;

    #[inline(always)]
    fn traffic_class(bytes: &[u8]) -> Option<u8> {
        Ip4Header::overlay(bytes).map(|header| header.traffic_class)
    }

    /// In place of the checksum stands the sum of the addresses.
    fn template(
        source: IpAddr,
        destination: IpAddr,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Option<Vec<u8>> {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (source, destination) else {
            return None;
        };
        let mut header = vec![0x45, traffic_class, 0, 0, 0, 0, 0, 0, hop_limit, 0];
        let addresses = [source.octets(), destination.octets()].concat();
        header.extend((!checksum::of(&addresses)).to_be_bytes());
        header.extend(addresses);
        Some(header)
    }

    #[inline(always)]
    fn fill(
        words: EntryView<'_>,
        bytes: &mut [u8],
        total: usize,
        protocol: IpProtocol,
        inside: Inside,
    ) -> Result<(), Truncated> {
        let header: &mut [u8; Ip4Header::LEN] = bytes.first_chunk_mut().ok_or(Truncated)?;
        // Of the entry: a load from what was just stored in the packet would wait for the stores.
        let template: &[u8; Ip4Header::LEN] = words.0.header().first_chunk().ok_or(Truncated)?;
        let class = words.outer_class(template[1], inside.traffic_class);
        let hops = if words.copies_hop_limit() { inside.hop_limit } else { template[8] };
        // Only what may be fragmented needs a number of its own (RFC 6864 §4.1).
        let (identification, flags) =
            if inside.dont_fragment { (0, DONT_FRAGMENT) } else { (words.0.packets() as u16, 0) };
        let first = u64::from(VERSION_AND_LENGTH | u16::from(class)) << 48
            | (total as u64 & 0xffff) << 32
            | u64::from(identification) << 16
            | u64::from(flags);
        let second = u16::from_be_bytes([hops, protocol.0]);
        let sum = (first >> 48)
            + (first >> 32 & 0xffff)
            + (first >> 16 & 0xffff)
            + (first & 0xffff)
            + u64::from(second)
            + u64::from(u16::from_be_bytes([template[10], template[11]]));
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        let (front, rest) = header.split_at_mut(8);
        front.copy_from_slice(&first.to_be_bytes());
        if let Some(place) = rest.first_chunk_mut::<4>() {
            *place = (u32::from(second) << 16 | u32::from(sum)).to_be_bytes();
        }
        Ok(())
    }
}

impl OuterHeader for Ip6 {
    const HAS_FLOW: bool = true;
    const LEN: usize = Ip6Header::LEN;
    const PACKET_BYTES_MAX: usize = Ip6Header::LEN + u16::MAX as usize;
    const REWRITE: &'static str = "ip6-rewrite";
    const ADJACENCY_NODES: [&'static str; 3] =
        ["ip6-confirm-neighbor", "ip6-discover-neighbor", "ip6-adjacency-counter"];
    const DROP: &'static str = "ip6-drop";
    const LOOK_UP: &'static str = "ip6-lookup-in-table";
    const FRAGMENT: Option<&'static str> = Some("ip6-frag-in-table");

    #[inline(always)]
    fn traffic_class(bytes: &[u8]) -> Option<u8> {
        Ip6Header::overlay(bytes).map(Ip6Header::traffic_class)
    }

    fn template(
        source: IpAddr,
        destination: IpAddr,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Option<Vec<u8>> {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) else {
            return None;
        };
        let mut header =
            Ip6Header::new(source, destination, IpProtocol::NO_NEXT_HEADER, hop_limit, 0);
        header.set_traffic_class(traffic_class);
        Some(header.as_bytes().to_vec())
    }

    #[inline(always)]
    fn fill(
        words: EntryView<'_>,
        bytes: &mut [u8],
        total: usize,
        protocol: IpProtocol,
        inside: Inside,
    ) -> Result<(), Truncated> {
        let header = Ip6Header::overlay_mut(bytes).ok_or(Truncated)?;
        let class = words.outer_class(header.traffic_class(), inside.traffic_class);
        header.set_next_header(protocol);
        fill_ip6(words, bytes, total, Inside { traffic_class: class, ..inside })
    }
}

/// Write the fields of an outer IPv6 header: class, label, length, and the hop limit where it is
/// copied. `total` is the length of the packet with it, in bytes.
///
/// # Errors
/// `bytes` is shorter than the header.
#[inline(always)]
pub fn fill_ip6(
    words: EntryView<'_>,
    bytes: &mut [u8],
    total: usize,
    inside: Inside,
) -> Result<(), Truncated> {
    let header = Ip6Header::overlay_mut(bytes).ok_or(Truncated)?;
    header.set_class_and_flow(inside.traffic_class, flow_label(inside.hash));
    header.set_payload_length((total - Ip6Header::LEN) as u16);
    if words.copies_hop_limit() {
        header.set_hop_limit(inside.hop_limit);
    }
    Ok(())
}

/// The header stack of a kind of tunnel.
pub trait HeaderStack: Send + Sync + 'static {
    /// Its outermost header.
    type Outer: OuterHeader;

    /// Write the fields of the stack, whose first byte is that of `bytes`, that differ from packet
    /// to packet. `total` is the length of the packet with the stack, in bytes.
    ///
    /// # Errors
    /// `bytes` is shorter than the stack.
    fn fill(
        words: EntryView<'_>,
        bytes: &mut [u8],
        total: usize,
        inside: Inside,
    ) -> Result<(), Truncated>;

    /// Write what depends on the whole packet, whose stack begins at `at`: a checksum over it.
    ///
    /// # Errors
    /// The packet is shorter than the stack.
    #[inline(always)]
    fn finish(words: EntryView<'_>, packet: &mut Packet, at: usize) -> Result<(), Truncated> {
        let _ = (words, packet, at);
        Ok(())
    }
}
