//! `mpls-pop`: the last label goes, and what is behind it goes to a neighbour (RFC 3031 §3.16, the
//! penultimate hop).

use std::sync::Arc;

use quiver_core::graph::frame::next_or_drop;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::inner::InnerPacket;
use quiver_forwarding::adjacency::{Adjacency, AdjacencyKind};
use quiver_forwarding::ip::{Ip6, IpTables};
use quiver_forwarding::nodes;
use quiver_wire::checksum::update16;
use quiver_wire::mpls::ENTRY_BYTES;
use quiver_wire::{EtherType, Header, Ip4Header, Ip6Header};

use crate::icmp_error::{self, TIME_EXCEEDED};
use crate::push::is_usual;
use crate::reasons::MplsDrop;
use crate::stack::{Entry, top, version};

/// `mpls-pop`, a packet's part of it. The adjacency is in the packet's index.
struct Pop {
    tables: Arc<IpTables>,
    error: NodeId,
    resolve: [NodeId; 2],
    too_big4: NodeId,
    error6: NodeId,
}

impl Pop {
    /// Take the last label off a packet that goes by this adjacency.
    #[inline(always)]
    fn pop(&self, adjacency: &Adjacency, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        let entry = Entry(top(packet).ok_or(MplsDrop::Truncated)?);
        let version = version(packet.bytes().get(ENTRY_BYTES..).unwrap_or_default());
        let behind = packet.segment_length() - ENTRY_BYTES;
        let is_ready = (adjacency.kind == AdjacencyKind::Complete) & !adjacency.is_uniform();
        let fits = behind <= usize::from(adjacency.mtu_bytes);
        let is_ip = (version == 4) | (version == 6);
        if !(is_ready & fits & is_ip & (entry.ttl() > 1) & is_usual(packet)) {
            return self.take_slow_path(adjacency, entry, packet);
        }
        if !packet.pull(ENTRY_BYTES) {
            return Err(MplsDrop::Truncated);
        }
        (packet.hash, packet.l2_bytes) = (0, 0);
        leave(adjacency, version == 6, packet)
    }

    #[cold]
    #[inline(never)]
    fn take_slow_path(
        &self,
        adjacency: &Adjacency,
        entry: Entry,
        packet: &mut Packet,
    ) -> Result<NodeId, MplsDrop> {
        let is_own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if entry.ttl() <= 1 && !is_own {
            packet.hand_over(TIME_EXCEEDED);
            return Ok(self.error);
        }
        if adjacency.kind == AdjacencyKind::Drop {
            return Err(MplsDrop::RouteDrops);
        }
        let is_six = match version(packet.bytes().get(ENTRY_BYTES..).unwrap_or_default()) {
            4 => false,
            6 => true,
            _ => return Err(MplsDrop::UnknownPayload),
        };
        if !packet.pull(ENTRY_BYTES) {
            return Err(MplsDrop::Truncated);
        }
        (packet.hash, packet.l2_bytes) = (0, 0);
        if adjacency.is_uniform() {
            write_behind(packet.bytes_mut(), entry.class(), entry.ttl() - 1);
        }
        if packet.length() > usize::from(adjacency.mtu_bytes) {
            packet.tx = adjacency.tx;
            if !is_six {
                return Ok(self.too_big4);
            }
            let request = Ip6::too_big(packet, adjacency.mtu_bytes.into());
            packet.hand_over(request.ok_or(MplsDrop::TooBig)?);
            return Ok(self.error6);
        }
        if adjacency.kind != AdjacencyKind::Complete {
            return Ok(self.resolve[usize::from(is_six)]);
        }
        leave(adjacency, is_six, packet)
    }
}

/// Put the neighbour's link header in front of an IP packet.
#[inline(always)]
fn leave(adjacency: &Adjacency, is_six: bool, packet: &mut Packet) -> Result<NodeId, MplsDrop> {
    let (field, count) = (adjacency.rewrite_field(), adjacency.rewrite_len());
    let done = match field.last_chunk::<16>() {
        Some(block) if count <= 16 => packet.push_block16(block, count),
        _ => packet.push_block32(field, count),
    };
    if !done {
        return Err(MplsDrop::NoHeadroom);
    }
    if is_six {
        let at = count.saturating_sub(2);
        let place = packet.bytes_mut().get_mut(at..).and_then(|rest| rest.first_chunk_mut());
        *place.ok_or(MplsDrop::NoHeadroom)? = EtherType::IPV6.0.to_be_bytes();
    }
    packet.tx = adjacency.tx;
    Ok(adjacency.output)
}

/// In uniform mode an IP packet has the class and the TTL of the label in front of it, but never a
/// longer life (RFC 3443 §3.1, RFC 3270 §2.6.2).
pub(crate) fn write_behind(bytes: &mut [u8], class: u8, ttl: u8) {
    const PRECEDENCE: u8 = 0xe0;
    match version(bytes) {
        4 => {
            let Some(header) = Ip4Header::overlay_mut(bytes) else { return };
            let old = (header.traffic_class, header.ttl());
            let new = (old.0 & !PRECEDENCE | class << 5, old.1.min(ttl));
            if new != old {
                let sum = update16(header.checksum(), old.0.into(), new.0.into());
                let sum = update16(sum, u16::from(old.1) << 8, u16::from(new.1) << 8);
                header.traffic_class = new.0;
                header.set_ttl(new.1);
                header.set_checksum(sum);
            }
        }
        6 => {
            let Some(header) = Ip6Header::overlay_mut(bytes) else { return };
            header.set_traffic_class(header.traffic_class() & !PRECEDENCE | class << 5);
            header.set_hop_limit(header.hop_limit().min(ttl));
        }
        _ => {}
    }
}

impl Stage for Pop {
    const NAME: &'static str = nodes::mpls::POP;
    const SENDS: bool = true;
    type Reason = MplsDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(&self, _: StageContext<'_>, (): (), packet: &mut Packet) -> Result<NodeId, MplsDrop> {
        self.pop(self.tables.adjacencies.of(packet), packet)
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
            let next = next_or_drop(self.pop(adjacency, packet), packet);
            decided(packet, next);
        }
        true
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    let help = "Takes the last label off, and puts the neighbour's header in front";
    NodeSpec::stage(help, |wiring| Pop {
        tables: wiring.shared(),
        error: wiring.node(icmp_error::NODE),
        resolve: [wiring.node(nodes::ip4::ARP), wiring.node(nodes::ip6::DISCOVER_NEIGHBOR)],
        too_big4: wiring.node(nodes::ip4::TOO_BIG),
        error6: wiring.node(Ip6::ERROR_NODE),
    })
    .describe(|record, names| {
        let (tx, bytes) = (names.interface(record.tx), record.packet_bytes);
        format!("{bytes} bytes without labels out of {tx}, to {}", names.node(record.next))
    })
}
