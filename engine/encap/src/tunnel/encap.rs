//! Encapsulation of IP packets that the FIB sends to the interface of a tunnel: from the look-up in
//! one step to the underlay's output, where no feature stands on the tunnel's output.

use std::sync::Arc;

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::interface::InterfaceRow;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::adjacency::Adjacency;
use quiver_forwarding::ip::flow_hash;
use quiver_forwarding::next_hop_group::Hop;

use super::protocol::{Stack, TunnelProtocol, place, super_frame_bytes_max, take_super_frames};
use super::reasons::TunnelDrop;
use crate::entries::{EncapEntry, WorkerEncapEntries};
use crate::inner::{InnerFields, InnerPacket};
use crate::outer::{Inside, OuterHeader};
use crate::output::{EncapLink, EncapOutput, IcmpRecipient, push_link};

/// The node for inner packets of family `F` and outer headers of family `O`. A stacked adjacency is
/// in the packet's index.
pub struct TunnelEncap<P: TunnelProtocol, O: OuterHeader, F: InnerPacket> {
    output: EncapOutput<Stack<P, O>>,
    error: NodeId,
    fragment: NodeId,
    family: std::marker::PhantomData<F>,
}

/// Is nothing between the tunnel's output and its device?
#[inline(always)]
fn is_open(row: &InterfaceRow) -> bool {
    row.up & (row.first(INTERFACE_OUTPUT, row.tx) == row.tx)
}

impl<P: TunnelProtocol, O: OuterHeader, F: InnerPacket> TunnelEncap<P, O, F> {
    /// For one worker.
    pub fn new(wiring: &Wiring<'_>, entries: &[Arc<WorkerEncapEntries>]) -> Self {
        TunnelEncap {
            output: EncapOutput::new(wiring, entries),
            error: wiring.node(F::ERROR_NODE),
            fragment: wiring.node(F::FRAGMENT_NODE),
            family: std::marker::PhantomData,
        }
    }

    /// The headers of packets that come by a stacked adjacency and leave by a hop of the underlay
    /// in one step; `None` where they cannot.
    #[inline(always)]
    fn link<'a>(
        &'a self,
        context: StageContext<'_>,
        tunnel: &Adjacency,
        entry: &'a EncapEntry,
        hop: Hop,
    ) -> Option<EncapLink<'a>> {
        let link = self.output.link(entry, hop)?;
        let length_max = link.length_max.min(tunnel.mtu_bytes.into());
        let is_open = context.interface(tunnel.tx).is_some_and(is_open);
        is_open.then_some(EncapLink { length_max, ..link })
    }

    /// Send a packet in one step; `None`, and nothing changes, where something is unusual about it.
    #[inline(always)]
    fn send(&self, link: EncapLink<'_>, packet: &mut Packet) -> Option<Result<NodeId, TunnelDrop>> {
        let length = packet.segment_length();
        let unusual =
            PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED).union(PacketFlags::OFFLOAD);
        if !(packet.has_none(unusual) & (length <= link.length_max)) {
            return None;
        }
        let (traffic_class, hop_limit) = F::forward(packet.bytes_mut())?;
        let has_flow = O::HAS_FLOW || P::UDP_PORT.is_some();
        let hash = if has_flow { flow_hash::<F>(packet) } else { 0 };
        let dont_fragment = F::forbids_fragments(packet.bytes(), length);
        let inside =
            Inside { traffic_class, hop_limit, hash, protocol: F::PROTOCOL, dont_fragment, key: 0 };
        Some(self.output.put_and_leave(link, packet, inside).map_err(TunnelDrop::from))
    }

    /// A packet about which something is unusual: it may be dead, too long, or pass features of the
    /// tunnel's output.
    #[cold]
    #[inline(never)]
    fn slow(&self, context: StageContext<'_>, packet: &mut Packet) -> Result<NodeId, TunnelDrop> {
        let adjacency = *self.output.tables.adjacencies.of(packet);
        let counts_hop = !packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if counts_hop && let Some((request, why)) = F::refusal(packet.bytes())? {
            context.count(TunnelDrop::from(why), 1);
            packet.hand_over(request);
            return Ok(self.error);
        }
        let row = context
            .interface(adjacency.tx)
            .filter(|row| row.up)
            .ok_or(TunnelDrop::InterfaceDown)?;
        if packet.longest_on_wire() > usize::from(adjacency.mtu_bytes)
            && let Some(elsewhere) = self.too_long(context, &adjacency, packet)
        {
            return Ok(elsewhere);
        }
        if !is_open(row) {
            if counts_hop {
                F::decrement_hop_limit(packet.bytes_mut());
            }
            packet.l2_bytes = 0;
            packet.tx = adjacency.tx;
            return Ok(adjacency.output);
        }
        let counters = context.interface_counters(adjacency.tx);
        let (packets, bytes) = packet.on_wire();
        let next = self.put(context, packet, counts_hop)?;
        if next != self.error {
            counters.tx_packets.add(packets);
            counters.tx_bytes.add(bytes);
        }
        Ok(next)
    }

    /// Longer than the tunnel's own MTU: the sender is told, or the packet is fragmented for the
    /// tunnel.
    fn too_long(
        &self,
        context: StageContext<'_>,
        adjacency: &Adjacency,
        packet: &mut Packet,
    ) -> Option<NodeId> {
        if packet.has(PacketFlags::LOCALLY_ORIGINATED) {
            return Some(self.fragment);
        }
        let Some(request) = F::too_big(packet, adjacency.mtu_bytes.into()) else {
            return Some(self.fragment);
        };
        context.count(TunnelDrop::TooBig, 1);
        packet.hand_over(request);
        Some(self.error)
    }

    /// Put the header stack in front of a packet that has passed the tunnel's output, step by step.
    pub(super) fn put(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
        counts_hop: bool,
    ) -> Result<NodeId, TunnelDrop> {
        let entry = self.output.entries.get(self.output.tables.adjacencies.of(packet).entry);
        if entry.header_len() == 0 {
            return Err(TunnelDrop::NoTunnel);
        }
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        let hash = flow_hash::<F>(packet);
        let hop = self.output.hop(entry, hash);
        let total = EncapOutput::<Stack<P, O>>::check_length(packet, entry)?;
        let mtu = self.output.mtu(entry, hop, || None);
        let fits = total <= mtu.mtu_bytes;
        if !fits && !own {
            if let Some(request) =
                F::too_big(packet, mtu.mtu_bytes.saturating_sub(entry.header_len()))
            {
                context.count(TunnelDrop::TooBig, 1);
                packet.hand_over(request);
                return Ok(self.error);
            }
            context.count(TunnelDrop::Fragmented, 1);
        }
        if counts_hop {
            F::decrement_hop_limit(packet.bytes_mut());
        }
        let length = packet.length();
        let InnerFields { traffic_class, hop_limit, .. } =
            F::fields(packet.bytes()).ok_or(TunnelDrop::Truncated)?;
        let dont_fragment = fits && F::forbids_fragments(packet.bytes(), packet.longest_on_wire());
        let inside =
            Inside { traffic_class, hop_limit, hash, protocol: F::PROTOCOL, dont_fragment, key: 0 };
        packet.clear(PacketFlags::LOCALLY_ORIGINATED);
        self.output.put(entry, packet, length, inside)?;
        if fits && self.output.is_resolved(hop) {
            return Ok(push_link(self.output.adjacency(hop), packet)?);
        }
        let too_long_for = (!fits).then_some(mtu);
        Ok(self.output.by_node(entry, hop, packet, too_long_for, IcmpRecipient::Encapsulator))
    }
}

impl<P: TunnelProtocol, O: OuterHeader, F: InnerPacket> Stage for TunnelEncap<P, O, F> {
    const NAME: &'static str = P::NODES.encap[place::<O>()][place::<F>()];
    const SENDS: bool = true;
    type Reason = TunnelDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.output.entries.prefetch(self.output.tables.adjacencies.of(packet).entry);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let tunnel = self.output.tables.adjacencies.of(packet);
        let entry = self.output.entries.get(tunnel.entry);
        let hop = match O::HAS_FLOW {
            true => self.output.hop(entry, flow_hash::<F>(packet)),
            false => self.output.hop_for::<F>(entry, packet),
        };
        let length = packet.segment_length();
        let link = self.link(context, tunnel, entry, hop);
        let Some(sent) = link.and_then(|link| self.send(link, packet)) else {
            return self.slow(context, packet);
        };
        let next = sent?;
        let counters = context.interface_counters(tunnel.tx);
        counters.tx_packets.add(1);
        counters.tx_bytes.add(length as u64);
        Ok(next)
    }

    /// Packets of one tunnel whose underlay has one path.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        (): (),
        packets: &mut [Packet],
        mut decided: impl FnMut(&Packet, NodeId),
    ) -> bool {
        let Some(first) = packets.first() else { return false };
        let tunnel = self.output.tables.adjacencies.of(first);
        let entry = self.output.entries.get(tunnel.entry);
        let link =
            self.output.only_hop(entry).and_then(|hop| self.link(context, tunnel, entry, hop));
        let Some(link) = link else { return false };
        let (mut sent_packets, mut sent_bytes) = (0, 0);
        for packet in packets {
            let length = packet.segment_length();
            let decision = match self.send(link, packet) {
                Some(Ok(next)) => {
                    (sent_packets, sent_bytes) = (sent_packets + 1, sent_bytes + length as u64);
                    Ok(next)
                }
                Some(Err(why)) => Err(why),
                None => self.slow(context, packet),
            };
            let next = next_or_drop(decision, packet);
            decided(packet, next);
        }
        let counters = context.interface_counters(tunnel.tx);
        counters.tx_packets.add(sent_packets);
        counters.tx_bytes.add(sent_bytes);
        true
    }
}

/// The declaration.
pub(super) fn spec<P: TunnelProtocol, O: OuterHeader, F: InnerPacket>(
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
) -> NodeSpec {
    let entries = entries.clone();
    let node = NodeSpec::stage("Puts a tunnel's headers in front of packets", move |wiring| {
        TunnelEncap::<P, O, F>::new(wiring, &entries)
    });
    let node = node.detour(O::REWRITE);
    take_super_frames::<P>(node, super_frame_bytes_max::<P, O>()).describe(|record, names| {
        format!(
            "{} bytes with the tunnel's headers, to {}",
            record.packet_bytes,
            names.node(record.next)
        )
    })
}
