//! `ip6-rewrite`: one hop less to live, and the neighbour's header in front.

use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_wire::Header;
use quiver_wire::icmp6::{kind, unreachable};
use quiver_wire::ip6::Ip6Header;

use crate::adjacency::Adjacency;
use crate::ip::IpTables;
use crate::nodes;
use crate::requests::IcmpErrorRequest;

/// Hop limit exceeded in transit (RFC 4443 §3.3).
const TIME_EXCEEDED: IcmpErrorRequest =
    IcmpErrorRequest { kind: kind::TIME_EXCEEDED, code: 0, detail: 0 };
/// Beyond the scope of the source address (RFC 4443 §3.1).
const BEYOND_SCOPE: IcmpErrorRequest = IcmpErrorRequest {
    kind: kind::DESTINATION_UNREACHABLE,
    code: unreachable::BEYOND_SCOPE,
    detail: 0,
};
/// fe80::/10, the first 10 bits of an address.
const LINK_LOCAL: u128 = 0xfe80 >> 6;

quiver_core::reasons! {
    /// What becomes of packets in `ip6-rewrite`.
    pub enum Ip6RewriteDrop {
        /// Cannot be after `ip6-input`.
        Truncated = "truncated", "fewer bytes than an IPv6 header";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the layer 2 header";
        /// The sender hears of it.
        TooBig = "too-big", "packets longer than the outgoing MTU";
        /// RFC 4291 §2.5.6.
        LinkLocalSource = "link-local-source", "packets with a link-local source to another link";
    }
}

/// `ip6-rewrite`, a packet's part of it. The adjacency is in the packet's index.
pub struct Ip6Rewrite {
    tables: IpTables,
    error: NodeId,
    fragment: NodeId,
}

/// The router's own packets and those in several buffers go on, and so does a super-frame whose
/// segments fit; an own one that is too long is cut by `ip6-frag`. The others go no further, and
/// their senders are told why.
#[cold]
#[inline(never)]
fn take_slow_path(
    context: StageContext<'_>,
    packet: &mut Packet,
    adjacency: &Adjacency,
    (error, fragment): (NodeId, NodeId),
) -> Result<NodeId, Ip6RewriteDrop> {
    let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
    let header = *Ip6Header::overlay(packet.bytes()).ok_or(Ip6RewriteDrop::Truncated)?;
    let (local, alive) = (header.source_bits() >> 118 == LINK_LOCAL, header.hop_limit() > 1);
    let fits = packet.longest_on_wire() <= usize::from(adjacency.mtu_bytes);
    if (own || alive && !local) && fits {
        let header = Ip6Header::overlay_mut(packet.bytes_mut()).ok_or(Ip6RewriteDrop::Truncated)?;
        if !own {
            header.decrement_hop_limit();
        }
        return prepend(adjacency, packet);
    }
    if own {
        return Ok(fragment);
    }
    let request = if local {
        context.count(Ip6RewriteDrop::LinkLocalSource, 1);
        BEYOND_SCOPE
    } else if !alive {
        TIME_EXCEEDED
    } else {
        context.count(Ip6RewriteDrop::TooBig, 1);
        IcmpErrorRequest { kind: kind::PACKET_TOO_BIG, code: 0, detail: adjacency.mtu_bytes }
    };
    packet.hand_over(request);
    packet.tx = adjacency.tx;
    Ok(error)
}

/// Put the adjacency's header in front, and say where the frame leaves.
///
/// # Errors
/// The buffer has no headroom for the header.
#[inline(always)]
pub fn prepend(adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, Ip6RewriteDrop> {
    let (field, count) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    let done = match field.last_chunk::<16>() {
        Some(block) if count <= 16 => packet.push_block16(block, count),
        _ => packet.push_block32(field, count),
    };
    if !done {
        return Err(Ip6RewriteDrop::NoHeadroom);
    }
    packet.tx = adjacency.tx;
    packet.l2_bytes = 0; // what was in front when it came in is overwritten
    Ok(adjacency.output)
}

impl Stage for Ip6Rewrite {
    const NAME: &'static str = nodes::ip6::REWRITE;
    const SENDS: bool = true;
    type Reason = Ip6RewriteDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, Ip6RewriteDrop> {
        self.rewrite(context, self.tables.adjacencies.of(packet), packet)
    }

    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        (): (),
        packets: &mut [Packet],
        mut decided: impl FnMut(&Packet, NodeId),
    ) -> bool {
        let Some(first) = packets.first() else { return false };
        let adjacency = self.tables.adjacencies.of(first);
        for packet in packets {
            let next = next_or_drop(self.rewrite(context, adjacency, packet), packet);
            decided(packet, next);
        }
        true
    }
}

impl Ip6Rewrite {
    /// Send a packet to the neighbour of an adjacency.
    #[inline(always)]
    fn rewrite(
        &self,
        context: StageContext<'_>,
        adjacency: &Adjacency,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip6RewriteDrop> {
        let fits = packet.segment_length() <= usize::from(adjacency.mtu_bytes);
        let plain = packet.has_none(PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED));
        let header = Ip6Header::overlay_mut(packet.bytes_mut()).ok_or(Ip6RewriteDrop::Truncated)?;
        let local = header.source_bits() >> 118 == LINK_LOCAL;
        if !(plain & fits & !local & (header.hop_limit() > 1)) {
            return take_slow_path(context, packet, adjacency, (self.error, self.fragment));
        }
        header.decrement_hop_limit();
        prepend(adjacency, packet)
    }
}

/// The declaration.
pub fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::stage("Counts a hop and puts the neighbour's header in front", move |wiring| {
        Ip6Rewrite {
            tables: tables.clone(),
            error: wiring.node(nodes::ip6::ICMP_ERROR),
            fragment: wiring.node(nodes::ip6::FRAG),
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
