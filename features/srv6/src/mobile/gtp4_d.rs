//! H.M.GTP4.D (RFC 9433 §6.7), in older words T.M.GTP4.D: GTP-U over IPv4 that is steered into a
//! gateway goes on as SRv6.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::WorkerEncapEntries;
use quiver_encap::handover::EncapEntryIndex;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::ReassemblyRequest;
use quiver_tables::{CountedLines, GroupId};
use quiver_wire::checksum::Sum;
use quiver_wire::{Header, Ip4Header, IpProtocol};

use super::decapsulate::{Came, Decapsulation};
use super::lookup_keys::LookupKeys;
use super::{g_pdu, gtpu_message};
use crate::endpoint::lookup_node::SidKey;
use crate::endpoint::reasons::{Bad, LocalSidDrop};

/// The node.
pub(crate) const NODE: &str = "sr-pl-gtp4-d";
/// Where the addresses of an IPv4 header begin.
const ADDRESSES_AT: usize = 12;

/// `sr-pl-gtp4-d`, a packet's part of it. The gateway's row is in the packet's index.
pub struct MobileToSegments4 {
    decapsulation: Decapsulation,
    error: NodeId,
    reassembly: Option<NodeId>,
}

impl MobileToSegments4 {
    fn new(
        wiring: &Wiring<'_>,
        lines: &CountedLines,
        rows: &[Arc<WorkerEncapEntries>],
    ) -> MobileToSegments4 {
        MobileToSegments4 {
            decapsulation: Decapsulation::new(wiring, lines, rows),
            error: wiring.node(nodes::ip4::ICMP_ERROR),
            reassembly: wiring.node_if_built("ip4-full-reassembly"),
        }
    }

    fn send(&self, context: StageContext<'_>, packet: &mut Packet) -> Result<NodeId, Bad> {
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        if header.is_fragment() {
            let reassembly = self.reassembly.ok_or(LocalSidDrop::Fragment)?;
            let scope = self.decapsulation.next_nodes.tables.interfaces.table4(packet.rx);
            packet.hand_over(ReassemblyRequest { is_local: false, scope });
            return Ok(reassembly);
        }
        let udp_at = header.header_len();
        if header.protocol() != IpProtocol::UDP || !gtpu_message::is_to_gtpu(packet, udp_at) {
            return Err(LocalSidDrop::NotGtpu.into());
        }
        let EncapEntryIndex(row) = packet.handed_over();
        let pseudo = |length: u16| {
            Sum::pseudo4(header.source(), header.destination(), IpProtocol::UDP, length)
        };
        let arrived = gtpu_message::read(packet, udp_at, pseudo)?;
        self.decapsulation.send(context, row, &Came::by_ip4(&header), &arrived, packet)
    }
}

impl MobileToSegments4 {
    /// What a plain packet asks for.
    #[inline(always)]
    fn ask(&self, packet: &Packet) -> Option<LookupKeys> {
        let bytes = packet.bytes();
        let header = Ip4Header::overlay(bytes)?;
        let plain = header.is_version_4_without_options()
            & !header.is_fragment()
            & (header.protocol() == IpProtocol::UDP)
            & packet.has_none(PacketFlags::CHAINED);
        if !plain {
            return None;
        }
        let is_checked = packet.has(PacketFlags::L4_CHECKSUM_GOOD);
        let read = g_pdu::read(bytes, ADDRESSES_AT, Ip4Header::LEN, is_checked)?;
        let EncapEntryIndex(row) = packet.handed_over();
        self.decapsulation.ask(row, header.ttl(), Some(header.destination_bits()), read)
    }

    /// Send it on.
    #[inline(always)]
    fn go(&self, asking: LookupKeys, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        let bytes = packet.bytes();
        let came = Came::by_ip4(Ip4Header::overlay(bytes)?);
        let port = g_pdu::source_port(bytes, Ip4Header::LEN);
        let EncapEntryIndex(row) = packet.handed_over();
        self.decapsulation.go(row, (came, port), asking, found, packet)
    }

    /// Packets that are not plain.
    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        match self.send(context, packet) {
            Ok(next) => Ok(next),
            Err(Bad::Drop(why)) => Err(why),
            Err(Bad::Complain(request, why)) => {
                context.count(why, 1);
                packet.hand_over(request);
                Ok(self.error)
            }
        }
    }
}

impl LookUp for MobileToSegments4 {
    const NAME: &'static str = NODE;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type Key = LookupKeys;
    type Found = GroupId;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.decapsulation.rows.prefetch_of(packet);
    }

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> LookupKeys {
        self.ask(packet).unwrap_or_default()
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[LookupKeys], found: &mut [GroupId]) {
        LookupKeys::find(&self.decapsulation.next_nodes.tables, variant, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        (): (),
        asking: LookupKeys,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let next = if asking.is_nothing() { None } else { self.go(asking, found, packet) };
        match next {
            Some(next) => Ok(next),
            None => self.slow_path(context, packet),
        }
    }
}

/// The declaration of the node.
pub(super) fn spec(lines: &Arc<CountedLines>, rows: &Arc<[Arc<WorkerEncapEntries>]>) -> NodeSpec {
    let (lines, rows) = (lines.clone(), rows.clone());
    NodeSpec::look_up("H.M.GTP4.D: GTP-U over IPv4 to SRv6", move |wiring| {
        MobileToSegments4::new(wiring, &lines, &rows)
    })
    .describe(crate::endpoint::description::record)
}
