//! `ip4-rewrite`: one hop less to live, and the neighbour's header in front.

use quiver_core::node::{Node, NodeSpec};
use quiver_core::packet::PacketFlags;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_tables::adjacency::{Adjacencies, Adjacency};
use quiver_wire::ip4::Ip4Header;
use quiver_wire::{Header, checksum};

use crate::error_request::IcmpErrorRequest;
use crate::tables::IpTables;

/// ICMP time exceeded in transit (RFC 792).
const TIME_EXCEEDED: IcmpErrorRequest = IcmpErrorRequest { kind: 11, code: 0, detail: 0 };

quiver_core::reasons! {
    /// Why `ip4-rewrite` drops.
    pub enum Ip4RewriteDrop {
        /// Cannot be after `ip4-input`.
        Truncated = "truncated", "fewer bytes than an IPv4 header";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the layer 2 header";
    }
}

struct Ip4Rewrite {
    tables: IpTables,
    error: NodeId,
    too_big: NodeId,
}

/// One packet's part of the node, callable from a fused pass. The adjacency is in
/// [`Packet::index`].
#[inline(always)]
pub(crate) fn rewrite(
    adjacencies: &Adjacencies,
    packet: &mut Packet,
    error: NodeId,
    too_big: NodeId,
) -> Result<NodeId, Ip4RewriteDrop> {
    let adjacency = adjacencies.get(packet.index);
    let length = packet.length();
    let own = packet.has(PacketFlags::OWN);
    let header = Ip4Header::overlay_mut(packet.bytes_mut()).ok_or(Ip4RewriteDrop::Truncated)?;
    if !own {
        if header.ttl() <= 1 {
            packet.index = TIME_EXCEEDED.to_index();
            return Ok(error);
        }
        if length <= usize::from(adjacency.mtu_bytes) {
            checksum::decrement_ttl(header);
        }
    }
    if length > usize::from(adjacency.mtu_bytes) {
        return Ok(too_big); // with the hop still to count: the error must show the packet as it came
    }
    prepend(adjacency, packet)
}

/// Put the adjacency's header in front, and say where the frame leaves.
#[inline(always)]
pub(crate) fn prepend(adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, Ip4RewriteDrop> {
    let (field, count) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    let done = match field.last_chunk::<16>() {
        Some(block) if count <= 16 => packet.push_block16(block, count),
        _ => packet.push_block32(field, count),
    };
    if !done {
        return Err(Ip4RewriteDrop::NoHeadroom);
    }
    packet.tx = adjacency.tx;
    Ok(adjacency.output)
}

impl Node for Ip4Rewrite {
    fn run(&mut self, _: &mut Context<'_>, frame: &mut Frame) {
        let adjacencies = &*self.tables.adjacencies;
        let (error, too_big) = (self.error, self.too_big);
        frame.route(|packet| rewrite(adjacencies, packet, error, too_big));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new("ip4-rewrite", "Counts a hop and puts the neighbour's header in front", move |wiring| {
        Box::new(Ip4Rewrite {
            tables: tables.clone(),
            error: wiring.node("ip4-icmp-error"),
            too_big: wiring.node("ip4-too-big"),
        })
    })
    .reasons::<Ip4RewriteDrop>()
    .describe(|record, names| {
        format!("{} bytes with their layer 2 header, to {}", record.packet_bytes, names.node(record.next))
    })
}
