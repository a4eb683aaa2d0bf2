//! `ip4-mpls-label-imposition`, `ip6-mpls-label-imposition`: one hop less to live, and labels and
//! the neighbour's header in front (RFC 3031 §3.11). `l2-mpls-label-imposition`: the same for
//! frames.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::inner::InnerPacket;
use quiver_forwarding::adjacency::{Adjacency, AdjacencyKind};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::nodes;
use quiver_wire::mpls::BOTTOM;
use quiver_wire::{EthernetHeader, Header};

use crate::push::{Behind, is_one_label, is_usual, label_of, push, push_one};
use crate::reasons::MplsDrop;
use crate::stack::NOT_LABEL;

/// How far left of the traffic class of a label the class selector bits of a DS field stand (RFC
/// 2474 §4.2.2, RFC 3270 §4.2).
const PRECEDENCE_SHIFT: u32 = 5;

/// The node for packets of a family.
pub struct Impose<F> {
    tables: Arc<IpTables>,
    error: NodeId,
    too_big: NodeId,
    family: PhantomData<fn() -> F>,
}

impl<F: InnerPacket> Impose<F> {
    #[inline(always)]
    fn impose(&self, adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let is_ready = is_one_label(adjacency) & (adjacency.kind == AdjacencyKind::Complete);
        let fits = packet.segment_length() <= usize::from(adjacency.mtu_bytes);
        let fields = F::fields(packet.bytes()).ok_or(MplsDrop::Truncated)?;
        if !(is_ready & fits & is_usual(packet) & (fields.hop_limit > 1)) {
            return self.take_slow_path(adjacency, packet);
        }
        F::decrement_hop_limit(packet.bytes_mut());
        let label = label_of(adjacency);
        let entry = if adjacency.is_uniform() {
            let class = u32::from(fields.traffic_class >> PRECEDENCE_SHIFT) << 9;
            label & !NOT_LABEL | class | u32::from(fields.hop_limit - 1)
        } else {
            label
        };
        push_one(adjacency, entry | BOTTOM, packet)
    }

    /// The router's own, in several buffers, dead, too long, or with more labels.
    #[cold]
    #[inline(never)]
    fn take_slow_path(
        &self,
        adjacency: &Adjacency,
        packet: &mut Packet,
    ) -> Result<NodeId, MplsDrop> {
        let fields = F::fields(packet.bytes()).ok_or(MplsDrop::Truncated)?;
        let is_own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if !is_own && fields.hop_limit <= 1 {
            packet.hand_over(F::TIME_EXCEEDED);
            packet.tx = adjacency.tx;
            return Ok(self.error);
        }
        if packet.length() > usize::from(adjacency.mtu_bytes) {
            return self.too_long(adjacency, packet);
        }
        if adjacency.kind == AdjacencyKind::Drop {
            return Err(MplsDrop::RouteDrops);
        }
        if !is_own {
            F::decrement_hop_limit(packet.bytes_mut());
        }
        let ttl = fields.hop_limit - u8::from(!is_own);
        let class = fields.traffic_class >> PRECEDENCE_SHIFT;
        let behind = Behind { is_last: true, class, ttl, is_swap: false };
        push(&self.tables.adjacencies, adjacency, behind, packet)
    }

    /// IPv4 packets may be fragmented; the senders of others are told how long packets may be
    /// without the labels (RFC 3032 §3.4).
    fn too_long(&self, adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        if F::FAMILY == Family::Ip4 || packet.has(PacketFlags::LOCALLY_ORIGINATED) {
            return Ok(self.too_big);
        }
        packet.tx = adjacency.tx;
        match F::too_big(packet, adjacency.mtu_bytes.into()) {
            Some(request) => {
                packet.hand_over(request);
                Ok(self.error)
            }
            None => Err(MplsDrop::TooBig),
        }
    }
}

impl<F: InnerPacket> Stage for Impose<F> {
    const NAME: &'static str = match F::FAMILY {
        Family::Ip4 => nodes::mpls::IMPOSE_IP4,
        Family::Ip6 => nodes::mpls::IMPOSE_IP6,
    };
    const SENDS: bool = true;
    type Reason = MplsDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(&self, _: StageContext<'_>, (): (), packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        self.impose(self.tables.adjacencies.of(packet), packet)
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
            let next = next_or_drop(self.impose(adjacency, packet), packet);
            decided(packet, next);
        }
        true
    }
}

/// The declaration for packets of a family.
pub(crate) fn spec<F: InnerPacket>() -> NodeSpec {
    NodeSpec::stage("Puts labels and the neighbour's header in front of packets", |wiring| {
        wiring.node(nodes::mpls::RESOLVE_NEIGHBOR);
        Impose::<F> {
            tables: wiring.shared(),
            error: wiring.node(F::ERROR_NODE),
            too_big: wiring.node(match F::FAMILY {
                Family::Ip4 => nodes::ip4::TOO_BIG,
                Family::Ip6 => nodes::ip6::FRAG,
            }),
            family: PhantomData,
        }
    })
    .describe(|record, names| {
        let (tx, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes with labels out of {tx}, to {}", names.node(record.next))
    })
}

/// TTL of a label in front of a frame, which has none.
const FRAME_TTL: u8 = 255;

/// The node for frames.
struct ImposeOnFrames {
    tables: Arc<IpTables>,
}

impl Stage for ImposeOnFrames {
    const NAME: &'static str = nodes::mpls::IMPOSE_ETHERNET;
    const SENDS: bool = true;
    type Reason = MplsDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(&self, _: StageContext<'_>, (): (), packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let adjacency = self.tables.adjacencies.of(packet);
        if packet.segment_length() < EthernetHeader::LEN {
            return Err(MplsDrop::Truncated);
        }
        // Nobody fragments a frame (RFC 3985 §5.3).
        if packet.length() > usize::from(adjacency.mtu_bytes) {
            return Err(MplsDrop::TooBig);
        }
        if adjacency.kind == AdjacencyKind::Drop {
            return Err(MplsDrop::RouteDrops);
        }
        packet.l2_bytes = 0;
        packet.clear(PacketFlags::LOCALLY_ORIGINATED);
        let behind = Behind { is_last: true, class: 0, ttl: FRAME_TTL, is_swap: false };
        push(&self.tables.adjacencies, adjacency, behind, packet)
    }
}

/// The declaration for frames.
pub(crate) fn spec_of_frames() -> NodeSpec {
    NodeSpec::stage("Puts labels and the neighbour's header in front of frames", |wiring| {
        wiring.node(nodes::mpls::RESOLVE_NEIGHBOR);
        ImposeOnFrames { tables: wiring.shared() }
    })
    .describe(|record, names| {
        let (tx, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes with labels out of {tx}, to {}", names.node(record.next))
    })
}
