//! `mpls-swap`: other labels in place of the top label, or none, and the neighbour's header in
//! front (RFC 3031 §3.11, RFC 3032 §2.4).

use std::sync::Arc;

use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::adjacency::{Adjacency, AdjacencyKind};
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::mpls::describe;
use quiver_forwarding::nodes;
use quiver_wire::mpls::{BOTTOM, ENTRY_BYTES};

use crate::icmp_error::{self, TIME_EXCEEDED};
use crate::push::{Behind, is_one_label, is_usual, label_of, push, push_one};
use crate::reasons::MplsDrop;
use crate::stack::{CLASS, Entry, NOT_LABEL, top, write_into_next};
use crate::too_big;

/// `mpls-swap`, a packet's part of it. The adjacency is in the packet's index.
pub struct Swap {
    tables: Arc<IpTables>,
    error: NodeId,
    too_big: NodeId,
}

impl Swap {
    #[inline(always)]
    fn swap(&self, adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let entry = top(packet).unwrap_or(0);
        let is_ready = is_one_label(adjacency) & (adjacency.kind == AdjacencyKind::Complete);
        let behind = packet.segment_length().wrapping_sub(ENTRY_BYTES);
        let fits = behind <= usize::from(adjacency.mtu_bytes);
        let is_alive = entry as u8 > 1;
        if !(is_ready & fits & is_alive & is_usual(packet)) {
            return self.take_slow_path(adjacency, packet);
        }
        let kept = entry & (CLASS | BOTTOM) | ((entry as u8).wrapping_sub(1)) as u32;
        if !packet.pull(ENTRY_BYTES) {
            return Err(MplsDrop::Truncated);
        }
        push_one(adjacency, label_of(adjacency) & !NOT_LABEL | kept, packet)
    }

    #[cold]
    #[inline(never)]
    fn take_slow_path(
        &self,
        adjacency: &Adjacency,
        packet: &mut Packet,
    ) -> Result<NodeId, MplsDrop> {
        let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        let is_own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if entry.ttl() <= 1 && !is_own {
            packet.hand_over(TIME_EXCEEDED);
            return Ok(self.error);
        }
        let behind = packet.length().saturating_sub(ENTRY_BYTES);
        if behind > usize::from(adjacency.mtu_bytes) {
            return Ok(self.too_big);
        }
        if adjacency.kind == AdjacencyKind::Drop {
            return Err(MplsDrop::RouteDrops);
        }
        let ttl = entry.ttl() - u8::from(!is_own);
        let (is_last, class) = (entry.is_bottom(), entry.class());
        if !packet.pull(ENTRY_BYTES) {
            return Err(MplsDrop::Truncated);
        }
        packet.l2_bytes = 0;
        if adjacency.label_count() == 0 && !is_last {
            let next = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
            if adjacency.is_uniform() {
                write_into_next(Entry(entry.0 & !0xff | u32::from(ttl)), next, packet);
            }
        }
        push(
            &self.tables.adjacencies,
            adjacency,
            Behind { is_last, class, ttl, is_swap: true },
            packet,
        )
    }
}

impl Stage for Swap {
    const NAME: &'static str = nodes::mpls::SWAP;
    const SENDS: bool = true;
    type Reason = MplsDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(&self, _: StageContext<'_>, (): (), packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        self.swap(self.tables.adjacencies.of(packet), packet)
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
            let next = next_or_drop(self.swap(adjacency, packet), packet);
            decided(packet, next);
        }
        true
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    let help = "Puts labels in place of the top label, and the neighbour's header in front";
    NodeSpec::stage(help, |wiring| {
        wiring.node(nodes::mpls::RESOLVE_NEIGHBOR);
        Swap {
            tables: wiring.shared(),
            error: wiring.node(icmp_error::NODE),
            too_big: wiring.node(too_big::NODE),
        }
    })
    .describe(|record, names| {
        let behind = record.bytes().get(14..).unwrap_or_default();
        let tx = names.interface(record.tx);
        format!("{} out of {tx}, to {}", describe(behind), names.node(record.next))
    })
}
