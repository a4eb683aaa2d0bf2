//! `ip4-rewrite`: one hop less to live, and the neighbour's header in front.

use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_wire::ip4::Ip4Header;
use quiver_wire::{Header, checksum};

use crate::adjacency::Adjacency;
use crate::ip::IpTables;
use crate::nodes;
use crate::requests::IcmpErrorRequest;

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

/// `ip4-rewrite`, a packet's part of it. The adjacency is in the packet's index.
pub struct Ip4Rewrite {
    tables: IpTables,
    error: NodeId,
    too_big: NodeId,
}

/// Put the adjacency's header in front, and say where the frame leaves.
///
/// # Errors
/// The buffer has no headroom for the header.
#[inline(always)]
pub fn prepend(adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, Ip4RewriteDrop> {
    let (field, count) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    let done = match field.last_chunk::<16>() {
        Some(block) if count <= 16 => packet.push_block16(block, count),
        _ => packet.push_block32(field, count),
    };
    if !done {
        return Err(Ip4RewriteDrop::NoHeadroom);
    }
    packet.tx = adjacency.tx;
    packet.l2_bytes = 0; // what was in front when it came in is overwritten
    Ok(adjacency.output)
}

impl Stage for Ip4Rewrite {
    const NAME: &'static str = nodes::ip4::REWRITE;
    const SENDS: bool = true;
    type Reason = Ip4RewriteDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, Ip4RewriteDrop> {
        self.rewrite(self.tables.adjacencies.of(packet), packet)
    }

    #[inline(always)]
    fn decide_all(
        &self,
        _: StageContext<'_>,
        (): (),
        packets: &mut [Packet],
        mut decided: impl FnMut(&Packet, NodeId),
    ) -> bool {
        let Some(first) = packets.first() else { return false };
        let adjacency = self.tables.adjacencies.of(first);
        for packet in packets {
            let next = next_or_drop(self.rewrite(adjacency, packet), packet);
            decided(packet, next);
        }
        true
    }
}

impl Ip4Rewrite {
    /// Send a packet to the neighbour of an adjacency.
    #[inline(always)]
    fn rewrite(
        &self,
        adjacency: &Adjacency,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip4RewriteDrop> {
        let fits = packet.segment_length() <= usize::from(adjacency.mtu_bytes);
        let plain = packet.has_none(PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED));
        let header = Ip4Header::overlay_mut(packet.bytes_mut()).ok_or(Ip4RewriteDrop::Truncated)?;
        if plain & fits & (header.ttl() > 1) {
            checksum::decrement_ttl(header);
        } else if let Some(back) = self.take_slow_path(packet, adjacency)? {
            return Ok(back);
        }
        prepend(adjacency, packet)
    }

    /// The router's own, in several buffers, dead or too long: where it goes back to, if it does.
    /// With the hop still to count then, for the error must show the packet as it came.
    #[cold]
    fn take_slow_path(
        &self,
        packet: &mut Packet,
        adjacency: &Adjacency,
    ) -> Result<Option<NodeId>, Ip4RewriteDrop> {
        let fits = packet.longest_on_wire() <= usize::from(adjacency.mtu_bytes);
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        let header = Ip4Header::overlay_mut(packet.bytes_mut()).ok_or(Ip4RewriteDrop::Truncated)?;
        if !own && header.ttl() <= 1 {
            packet.hand_over(TIME_EXCEEDED);
            packet.tx = adjacency.tx;
            return Ok(Some(self.error));
        }
        if !fits {
            return Ok(Some(self.too_big));
        }
        if !own {
            checksum::decrement_ttl(header);
        }
        Ok(None)
    }
}

/// The declaration.
pub fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::stage("Counts a hop and puts the neighbour's header in front", move |wiring| {
        Ip4Rewrite {
            tables: tables.clone(),
            error: wiring.node(nodes::ip4::ICMP_ERROR),
            too_big: wiring.node(nodes::ip4::TOO_BIG),
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        format!(
            "{} bytes with their layer 2 header, to {}",
            record.packet_bytes,
            names.node(record.next)
        )
    })
}
