//! H.M.GTP4.D (RFC 9433 §6.7), in older words T.M.GTP4.D: GTP-U over IPv4 that is steered into a gateway goes on as SRv6.

use std::sync::Arc;

use quiver_core::node::{NodeSpec, Wiring};
use quiver_core::stage::{Stage, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::{CountedLines, ReassemblyRequest, WorkerHeaderRows};
use quiver_wire::checksum::Sum;
use quiver_wire::{Header, Ip4Header, IpProtocol};

use super::arrival;
use super::decapsulate::{Came, Decapsulation};
use crate::endpoint::reasons::{Bad, LocalSidDrop};

/// The node.
pub(crate) const NODE: &str = "sr-pl-gtp4-d";

/// `sr-pl-gtp4-d`, a packet's part of it. The gateway's row is in [`Packet::index`].
pub struct MobileToSegments4 {
    decapsulation: Decapsulation,
    error: NodeId,
    reassembly: Option<NodeId>,
}

impl MobileToSegments4 {
    fn new(wiring: &Wiring<'_>, lines: &CountedLines, rows: &[Arc<WorkerHeaderRows>]) -> MobileToSegments4 {
        MobileToSegments4 {
            decapsulation: Decapsulation::new(wiring, lines, rows),
            error: wiring.node("ip4-icmp-error"),
            reassembly: wiring.node_if_built("ip4-full-reassembly"),
        }
    }

    fn send(&self, tally: Tally<'_>, packet: &mut Packet) -> Result<NodeId, Bad> {
        let header = *Ip4Header::overlay(packet.bytes()).ok_or(LocalSidDrop::Truncated)?;
        if header.is_fragment() {
            let reassembly = self.reassembly.ok_or(LocalSidDrop::Fragment)?;
            let scope = self.decapsulation.ways.tables.interfaces.table4(packet.rx);
            packet.index = ReassemblyRequest { is_local: false, scope }.to_index();
            return Ok(reassembly);
        }
        let udp_at = header.header_len();
        if header.protocol() != IpProtocol::UDP || !arrival::is_to_gtpu(packet, udp_at) {
            return Err(LocalSidDrop::NotGtpu.into());
        }
        let row = packet.index;
        let pseudo =
            |length: u16| Sum::pseudo4(header.source(), header.destination(), IpProtocol::UDP, length);
        let arrived = arrival::read(packet, udp_at, pseudo)?;
        self.decapsulation.send(tally, row, &Came::by_ip4(&header), &arrived, packet)
    }
}

impl Stage for MobileToSegments4 {
    const NAME: &'static str = NODE;
    type Reason = LocalSidDrop;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.decapsulation.rows.prefetch(packet.index);
    }

    fn decide(&self, tally: Tally<'_>, (): (), packet: &mut Packet) -> Result<NodeId, LocalSidDrop> {
        match self.send(tally, packet) {
            Ok(next) => Ok(next),
            Err(Bad::Drop(why)) => Err(why),
            Err(Bad::Complain(request, why)) => {
                tally.count(why, 1);
                packet.index = request.to_index();
                Ok(self.error)
            }
        }
    }
}

/// The declaration of the node.
pub(super) fn spec(lines: &Arc<CountedLines>, rows: &Arc<[Arc<WorkerHeaderRows>]>) -> NodeSpec {
    let (lines, rows) = (lines.clone(), rows.clone());
    NodeSpec::stage("H.M.GTP4.D: GTP-U over IPv4 to SRv6", move |wiring| {
        MobileToSegments4::new(wiring, &lines, &rows)
    })
    .describe(crate::endpoint::words::record)
}
