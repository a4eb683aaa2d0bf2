//! The outer IP header, IPv4 or IPv6: the nodes by which it leaves, and the fields that differ from packet to packet.

use quiver_tables::ip::{Ip4, Ip6, IpFamily};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::entry::Words;
use crate::flow::flow_label;
use crate::inner::Truncated;

/// The inner packet or frame, as far as an outer header tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    /// Differentiated services and congestion notification, which the outer header takes over (RFC 2983, RFC 6040).
    pub traffic_class: u8,
    /// Hops that are left.
    pub hop_limit: u8,
    /// The hash of the flow.
    pub hash: u32,
    /// The protocol.
    pub protocol: IpProtocol,
}

/// IPv4 or IPv6 outside.
pub trait OuterHeader: IpFamily {
    /// Bytes of the header.
    const LEN: usize;
    /// The longest packet, in bytes.
    const PACKET_BYTES_MAX: usize;
    /// The node that sends to a neighbour by the adjacency in [`Packet::index`](quiver_core::Packet::index).
    const REWRITE: &'static str;
    /// Nodes whose index is an adjacency, too: a neighbour that is to be confirmed or resolved, packets that are
    /// counted.
    const ADJACENCY_NODES: [&'static str; 3];
    /// The node to which the FIB sends packets without a route.
    const DROP: &'static str;
    /// The node that looks the destination up in the table in [`Packet::index`](quiver_core::Packet::index).
    const LOOK_UP: &'static str;
    /// The node that fragments by a [`FragmentRequest`](quiver_tables::FragmentRequest). There is none for IPv4: where
    /// only a link behind is too narrow, routers there fragment.
    const FRAGMENT: Option<&'static str>;

    /// Differentiated services and congestion notification of the header that `bytes` begin with.
    fn traffic_class(bytes: &[u8]) -> Option<u8>;
}

impl OuterHeader for Ip4 {
    const LEN: usize = Ip4Header::LEN;
    const PACKET_BYTES_MAX: usize = u16::MAX as usize;
    const REWRITE: &'static str = "ip4-rewrite";
    const ADJACENCY_NODES: [&'static str; 3] = ["ip4-confirm-neighbor", "ip4-arp", "ip4-adjacency-counter"];
    const DROP: &'static str = "ip4-drop";
    const LOOK_UP: &'static str = "ip4-lookup-in-table";
    const FRAGMENT: Option<&'static str> = None;

    #[inline(always)]
    fn traffic_class(bytes: &[u8]) -> Option<u8> {
        Ip4Header::overlay(bytes).map(|header| header.traffic_class)
    }
}

impl OuterHeader for Ip6 {
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
}

/// Write the fields of an outer IPv6 header: class, label, length, and the hop limit where it is copied. `total` is the
/// length of the packet with it, in bytes.
#[inline(always)]
pub fn fill_ip6(words: Words<'_>, bytes: &mut [u8], total: usize, inside: Inside) -> Result<(), Truncated> {
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

    /// Write the fields of the stack, whose first byte is that of `bytes`, that differ from packet to packet. `total`
    /// is the length of the packet with the stack, in bytes.
    fn fill(words: Words<'_>, bytes: &mut [u8], total: usize, inside: Inside) -> Result<(), Truncated>;
}
