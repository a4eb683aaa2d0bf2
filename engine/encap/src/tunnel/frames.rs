//! Encapsulation of Ethernet frames that are sent by the interface of a tunnel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::worker::device::TxQueue;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_wire::{EthernetHeader, Header};

use super::config::Tunnels;
use super::protocol::{ETHERNET, Sent, Stack, TunnelProtocol, place, take_super_frames};
use super::reasons::TunnelDrop;
use crate::entries::{EncapEntry, WorkerEncapEntries};
use crate::flow::{frame_ecn, kept_frame_hash};
use crate::outer::{Inside, OuterHeader};
use crate::output::{EncapOutput, IcmpRecipient, push_link};

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

/// The node for outer headers of family `O`. The interface that sends is in [`Packet::tx`].
///
/// Where `NUMBERED` is set, [`TunnelProtocol::number`] completes each header.
pub struct FrameEncap<P: TunnelProtocol, O: OuterHeader, const NUMBERED: bool = false> {
    output: EncapOutput<Stack<P, O>>,
    by_interface: Arc<EntryByInterface>,
    shared: Arc<P::Shared>,
}

impl<P: TunnelProtocol, O: OuterHeader, const NUMBERED: bool> FrameEncap<P, O, NUMBERED> {
    fn inside(frame: &[u8], hash: u32) -> Inside {
        Inside {
            traffic_class: frame_ecn(frame),
            hop_limit: HOP_LIMIT,
            hash,
            protocol: ETHERNET,
            dont_fragment: false,
        }
    }

    /// Complete the header in front of a frame that has `behind` bytes in the first buffer.
    #[inline(always)]
    fn number(&self, sent: Sent, entry: &EncapEntry, behind: usize, packet: &mut Packet) {
        if !NUMBERED {
            return;
        }
        let tunnel_len = entry.header_len().saturating_sub(O::LEN);
        let at = packet.segment_length().saturating_sub(behind + tunnel_len);
        if let Some(bytes) = packet.bytes_mut().get_mut(at..) {
            P::number(&self.shared, sent, bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn slow(&self, sent: Sent, packet: &mut Packet) -> Result<NodeId, TunnelDrop> {
        let entry = self.output.entries.get(self.by_interface.get(packet.tx));
        if entry.header_len() == 0 {
            return Err(TunnelDrop::NoTunnel);
        }
        if packet.segment_length() < EthernetHeader::LEN {
            return Err(TunnelDrop::Truncated);
        }
        let hash = kept_frame_hash(packet);
        let hop = self.output.hop(entry, hash);
        let total = EncapOutput::<Stack<P, O>>::check_length(packet, entry)?;
        let mtu = self.output.mtu(entry, hop, || None);
        let fits = total <= mtu.mtu_bytes;
        // The ends of a tunnel in UDP do not fragment (RFC 7348 §4.3).
        if !fits && P::UDP_PORT.is_some() {
            return Err(TunnelDrop::FrameTooBig);
        }
        // IPv4 routers may fragment the outer packet; in IPv6 this router does.
        packet.l2_bytes = 0;
        let (length, inside) = (packet.length(), Self::inside(packet.bytes(), hash));
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

impl<P: TunnelProtocol, O: OuterHeader, const NUMBERED: bool> Stage for FrameEncap<P, O, NUMBERED> {
    const NAME: &'static str = match NUMBERED {
        true => P::NUMBERED_NODES[place::<O>()],
        false => P::NODES.encap_frames[place::<O>()],
    };
    type Reason = TunnelDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let now_ns = if NUMBERED { context.now_ns() } else { 0 };
        let sent = Sent { interface: packet.tx, now_ns };
        let entry = self.output.entries.get(self.by_interface.get(packet.tx));
        let hash = kept_frame_hash(packet);
        let link = self.output.link(entry, self.output.hop(entry, hash));
        let length = packet.segment_length();
        let unusual =
            PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED).union(PacketFlags::OFFLOAD);
        let is_usual = packet.has_none(unusual) & (length >= EthernetHeader::LEN);
        match link.filter(|link| is_usual & (length <= link.length_max)) {
            Some(link) => {
                let inside = Self::inside(packet.bytes(), hash);
                let next = self.output.put_and_leave(link, packet, inside)?;
                self.number(sent, entry, length, packet);
                Ok(next)
            }
            None => self.slow(sent, packet),
        }
    }
}

/// The declaration.
pub(super) fn spec<P: TunnelProtocol, O: OuterHeader, const NUMBERED: bool>(
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
    tunnels: &Tunnels<P>,
) -> NodeSpec {
    let (entries, by_interface) = (entries.clone(), tunnels.frames().clone());
    let shared = tunnels.shared().clone();
    let help = match NUMBERED {
        true => "Puts a tunnel's headers, each with a number of its own, in front of frames",
        false => "Puts a tunnel's headers in front of Ethernet frames",
    };
    let spec = NodeSpec::stage(help, move |wiring: &Wiring<'_>| FrameEncap::<P, O, NUMBERED> {
        output: EncapOutput::new(wiring, &entries),
        by_interface: by_interface.clone(),
        shared: shared.clone(),
    })
    .detour(O::REWRITE);
    // Segments of one super-frame would get one header, and so one number.
    let spec = if NUMBERED { spec } else { take_super_frames::<P, O>(spec) };
    spec.describe(|record, names| {
        format!(
            "{} bytes with the tunnel's headers, to {}",
            record.packet_bytes,
            names.node(record.next)
        )
    })
}

/// The device of a tunnel: packets go to the node that encapsulates.
pub(super) struct TunnelTx {
    pub node: NodeId,
    /// Does that node number each frame, so that it takes no super-frames?
    pub is_numbered: bool,
}

impl TxQueue for TunnelTx {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        // Who sends to an interface need not say so in each packet.
        let tx = cx.tx;
        frame.packets_mut().iter_mut().for_each(|packet| packet.tx = tx);
        frame.set_all_next(self.node);
    }

    fn takes_offloads(&self) -> bool {
        !self.is_numbered
    }

    fn passes_on(&self) -> bool {
        true
    }
}
