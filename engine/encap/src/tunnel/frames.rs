//! Encapsulation of Ethernet frames that are sent by the interface of a tunnel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::{DROP, NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_wire::{EthernetHeader, Header};

use super::config::Tunnels;
use super::far_ends::ManyEnds;
use super::protocol::{
    ETHERNET, FarEndNodes, Sent, Stack, TunnelProtocol, place, super_frame_bytes_max,
};
use super::reasons::TunnelDrop;
use crate::entries::{EncapEntry, WorkerEncapEntries};
use crate::flow::{FrameFlow, kept_frame_flow};
use crate::outer::{Inside, OuterHeader};
use crate::output::{EncapLink, EncapOutput, IcmpRecipient, push_link};

/// The hop limit of an outer header around a frame, which has none to copy.
const HOP_LIMIT: u8 = 64;

/// The encapsulation entry of each interface that carries frames; 0 for others.
pub struct EntryByInterface(Box<[AtomicU32]>);

impl EntryByInterface {
    /// None.
    pub(super) fn new() -> EntryByInterface {
        EntryByInterface((0..INTERFACES_MAX).map(|_| AtomicU32::new(0)).collect())
    }

    #[inline(always)]
    fn get(&self, interface: InterfaceId) -> u32 {
        self.0.get(interface.index()).map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    /// Let frames that `interface` sends get this entry's headers (control thread).
    pub(super) fn set(&self, interface: InterfaceId, entry: u32) {
        if let Some(place) = self.0.get(interface.index()) {
            place.store(entry, Ordering::Release);
        }
    }
}

/// Where frames go.
pub trait FrameTarget<P, O>: Send + 'static {
    /// The name of the node.
    const NAME: &'static str;
    /// Does [`TunnelProtocol::number`] complete each header?
    const IS_NUMBERED: bool = false;

    /// The encapsulation entry for a packet, and the key that is to be written, 0 for the entry's
    /// own. None for a frame that goes to several ends.
    fn target(&self, packet: &Packet) -> Option<(u32, u32)>;
}

/// Each interface has one far end.
pub struct OneEnd(Arc<EntryByInterface>);

impl<P: TunnelProtocol, O: OuterHeader> FrameTarget<P, O> for OneEnd {
    const NAME: &'static str = P::NODES.encap_frames[place::<O>()];

    #[inline(always)]
    fn target(&self, packet: &Packet) -> Option<(u32, u32)> {
        Some((self.0.get(packet.tx), 0))
    }
}

/// Each interface has one far end, and headers have numbers.
pub struct NumberedEnd(OneEnd);

impl<P: TunnelProtocol, O: OuterHeader> FrameTarget<P, O> for NumberedEnd {
    const NAME: &'static str = P::NUMBERED_NODES[place::<O>()];
    const IS_NUMBERED: bool = true;

    #[inline(always)]
    fn target(&self, packet: &Packet) -> Option<(u32, u32)> {
        <OneEnd as FrameTarget<P, O>>::target(&self.0, packet)
    }
}

/// The node for outer headers of family `O`. The interface that sends is in [`Packet::tx`].
pub struct FrameEncap<P: TunnelProtocol, O: OuterHeader, T = OneEnd> {
    output: EncapOutput<Stack<P, O>>,
    target: T,
    shared: Arc<P::Shared>,
    /// Makes copies for several ends.
    flood: NodeId,
}

impl<P: TunnelProtocol, O: OuterHeader, T: FrameTarget<P, O>> FrameEncap<P, O, T> {
    #[inline(always)]
    fn inside(FrameFlow { hash, ecn }: FrameFlow, key: u32) -> Inside {
        Inside {
            traffic_class: ecn,
            hop_limit: HOP_LIMIT,
            hash,
            protocol: ETHERNET,
            dont_fragment: false,
            key,
        }
    }

    /// Complete the header in front of a frame that has `behind` bytes in the first buffer.
    #[inline(always)]
    fn number(&self, sent: Sent, entry: &EncapEntry, behind: usize, packet: &mut Packet) {
        if !T::IS_NUMBERED {
            return;
        }
        let tunnel_len = entry.header_len().saturating_sub(O::LEN);
        let at = packet.segment_length().saturating_sub(behind + tunnel_len);
        if let Some(bytes) = packet.bytes_mut().get_mut(at..) {
            P::number(&self.shared, sent, bytes);
        }
    }

    #[inline(always)]
    fn sent(context: StageContext<'_>, interface: InterfaceId) -> Sent {
        Sent { interface, now_ns: if T::IS_NUMBERED { context.now_ns() } else { 0 } }
    }

    /// May a frame leave in one step?
    #[inline(always)]
    fn is_usual(packet: &Packet, link: &EncapLink<'_>) -> bool {
        let unusual =
            PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED).union(PacketFlags::OFFLOAD);
        let length = packet.segment_length();
        packet.has_none(unusual) & (length >= EthernetHeader::LEN) & (length <= link.length_max)
    }

    /// Send a frame in one step.
    #[inline(always)]
    fn send(
        &self,
        link: EncapLink<'_>,
        (flow, key): (FrameFlow, u32),
        sent: Sent,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let behind = packet.segment_length();
        let next = self.output.put_and_leave(link, packet, Self::inside(flow, key))?;
        self.number(sent, link.entry, behind, packet);
        Ok(next)
    }

    #[cold]
    #[inline(never)]
    fn slow(&self, sent: Sent, packet: &mut Packet) -> Result<NodeId, TunnelDrop> {
        let Some((entry, key)) = self.target.target(packet) else { return Ok(self.flood) };
        let entry = self.output.entries.get(entry);
        if entry.header_len() == 0 {
            return Err(TunnelDrop::NoTunnel);
        }
        if packet.segment_length() < EthernetHeader::LEN {
            return Err(TunnelDrop::Truncated);
        }
        let flow = kept_frame_flow(packet);
        let hop = self.output.hop(entry, flow.hash);
        let total = EncapOutput::<Stack<P, O>>::check_length(packet, entry)?;
        let mtu = self.output.mtu(entry, hop, || None);
        let fits = total <= mtu.mtu_bytes;
        // The ends of a tunnel in UDP do not fragment (RFC 7348 §4.3).
        if !fits && P::UDP_PORT.is_some() {
            return Err(TunnelDrop::FrameTooBig);
        }
        // IPv4 routers may fragment the outer packet; in IPv6 this router does.
        packet.l2_bytes = 0;
        let (length, inside) = (packet.length(), Self::inside(flow, key));
        let behind = packet.segment_length();
        packet.clear(PacketFlags::LOCALLY_ORIGINATED);
        self.output.put(entry, packet, length, inside)?;
        self.number(sent, entry, behind, packet);
        if fits && self.output.is_resolved(hop) {
            return Ok(push_link(self.output.adjacency(hop), packet)?);
        }
        let too_long_for = (!fits).then_some(mtu);
        Ok(self.output.by_node(entry, hop, packet, too_long_for, IcmpRecipient::Encapsulator))
    }
}

impl<P: TunnelProtocol, O: OuterHeader, T: FrameTarget<P, O>> Stage for FrameEncap<P, O, T> {
    const NAME: &'static str = T::NAME;
    const SENDS: bool = true;
    type Reason = TunnelDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        if let Some((entry, _)) = self.target.target(packet) {
            self.output.entries.prefetch(entry);
        }
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let Some((entry, key)) = self.target.target(packet) else { return Ok(self.flood) };
        let entry = self.output.entries.get(entry);
        let flow = kept_frame_flow(packet);
        let link = self.output.link(entry, self.output.hop(entry, flow.hash));
        let sent = Self::sent(context, packet.tx);
        match link.filter(|link| Self::is_usual(packet, link)) {
            Some(link) => self.send(link, (flow, key), sent, packet),
            None => self.slow(sent, packet),
        }
    }

    /// Frames to one far end, to which one path leads.
    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        (): (),
        packets: &mut [Packet],
        mut decided: impl FnMut(&Packet, NodeId),
    ) -> bool {
        let Some(first) = packets.first() else { return false };
        let tx = first.tx;
        let Some((entry, key)) = self.target.target(first) else { return false };
        let entry = self.output.entries.get(entry);
        let link = self.output.only_hop(entry).and_then(|hop| self.output.link(entry, hop));
        let Some(link) = link else { return false };
        if packets.iter().fold(0, |differ, packet| differ | (packet.tx.0 ^ tx.0)) != 0 {
            return false;
        }
        let sent = Self::sent(context, tx);
        for packet in packets {
            let decision = if Self::is_usual(packet, &link) {
                let flow = kept_frame_flow(packet);
                self.send(link, (flow, key), sent, packet)
            } else {
                self.slow(sent, packet)
            };
            let next = next_or_drop(decision, packet);
            decided(packet, next);
        }
        true
    }
}

/// The declaration.
pub(super) fn spec<P: TunnelProtocol, O: OuterHeader>(
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
    tunnels: &Tunnels<P>,
) -> NodeSpec {
    let by_interface = tunnels.frames().clone();
    spec_of::<P, O, OneEnd>(entries, tunnels, None, move || OneEnd(by_interface.clone()))
        .takes_offloads_up_to(super_frame_bytes_max::<P, O>())
}

/// The declaration of the node that numbers headers. Segments of one super-frame would get one
/// header, and so one number.
pub(super) fn numbered_spec<P: TunnelProtocol, O: OuterHeader>(
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
    tunnels: &Tunnels<P>,
) -> NodeSpec {
    let by_interface = tunnels.frames().clone();
    let end = move || NumberedEnd(OneEnd(by_interface.clone()));
    spec_of::<P, O, NumberedEnd>(entries, tunnels, None, end)
}

/// The declaration of the node for ports with many far ends.
pub(super) fn far_spec<P: TunnelProtocol, O: OuterHeader>(
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
    tunnels: &Tunnels<P>,
    nodes: FarEndNodes,
) -> NodeSpec {
    let tables = tunnels.far_tables.clone();
    let flood = nodes.flood[place::<O>()];
    spec_of::<P, O, ManyEnds>(entries, tunnels, Some(flood), move || ManyEnds(tables.clone()))
        .takes_offloads_up_to(super_frame_bytes_max::<P, O>())
}

fn spec_of<P: TunnelProtocol, O: OuterHeader, T: FrameTarget<P, O>>(
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
    tunnels: &Tunnels<P>,
    flood: Option<&'static str>,
    target: impl Fn() -> T + Send + Sync + 'static,
) -> NodeSpec {
    let (entries, shared) = (entries.clone(), tunnels.shared().clone());
    let help = match T::IS_NUMBERED {
        true => "Puts a tunnel's headers, each with a number of its own, in front of frames",
        false => "Puts a tunnel's headers in front of Ethernet frames",
    };
    NodeSpec::stage(help, move |wiring: &Wiring<'_>| FrameEncap::<P, O, T> {
        output: EncapOutput::new(wiring, &entries),
        target: target(),
        shared: shared.clone(),
        flood: flood.map_or(DROP, |name| wiring.node(name)),
    })
    .detour(O::REWRITE)
    .describe(|record, names| {
        format!(
            "{} bytes with the tunnel's headers, to {}",
            record.packet_bytes,
            names.node(record.next)
        )
    })
}
