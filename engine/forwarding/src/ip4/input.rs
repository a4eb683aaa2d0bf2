//! `ip4-input`: is this an IPv4 packet that may go on (RFC 1812 §5.2.2)?

use std::net::Ipv4Addr;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_wire::Header;
use quiver_wire::ip4::{self, Ip4Bad, Ip4Header};

use crate::ip::IpTables;
use crate::nodes;

quiver_core::reasons! {
    /// Why `ip4-input` drops.
    pub enum Ip4InputDrop {
        /// The header is wrong.
        Header(Ip4Bad);
        /// RFC 1122 §3.3.6, RFC 1812 §5.3.4.
        UnicastInGroupFrame = "unicast-in-l2-group",
            "unicast IPv4 destination in a broadcast or multicast frame";
    }
}

/// Checks the IPv4 header of a packet. Leaves the packet exactly as long as its header says.
pub struct Ip4Input {
    arc: ArcId,
    lookup: NodeId,
    broadcast: NodeId,
    tables: IpTables,
}

impl Ip4Input {
    /// The slow path: chained packets, padded ones, bad ones, and those of group frames.
    #[cold]
    #[inline(never)]
    fn take_slow_path(&self, packet: &mut Packet) -> Result<(), Ip4InputDrop> {
        let available = packet.length();
        let header = ip4::validate(packet.bytes(), available)?;
        let (total, destination) = (usize::from(header.total_length()), header.destination());
        if packet.has(PacketFlags::L2_GROUP) && !self.may_be_in_group_frame(packet.rx, destination)
        {
            return Err(Ip4InputDrop::UnicastInGroupFrame);
        }
        packet.trim(total);
        Ok(())
    }

    /// May a packet to `destination` come in a broadcast or multicast frame on `rx`? Multicast
    /// groups, the limited broadcast and the broadcast addresses of the interface's own subnets may
    /// (RFC 1122 §3.3.6, RFC 1812 §5.3.4).
    fn may_be_in_group_frame(&self, rx: InterfaceId, destination: Ipv4Addr) -> bool {
        if destination.is_multicast() || ip4::address::is_limited_broadcast(destination) {
            return true;
        }
        let tables = &self.tables;
        let table = tables.ip4.table(tables.interfaces.table4(rx));
        let hop = tables.groups.resolve(table.lookup(destination.to_bits()), 0);
        hop.next == self.broadcast && tables.adjacencies.get(hop.index).tx == rx
    }
}

impl Stage for Ip4Input {
    const NAME: &'static str = nodes::ip4::INPUT;
    const LOOKS_FIRST: bool = true;
    type Reason = Ip4InputDrop;
    /// The first feature of the arc, or the look-up.
    type InterfaceState = NodeId;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> NodeId {
        cx.interface(rx).map_or(self.lookup, |row| row.first(self.arc, self.lookup))
    }

    #[inline(always)]
    fn decide(
        &self,
        _: StageContext<'_>,
        first: NodeId,
        packet: &mut Packet,
    ) -> Result<NodeId, Ip4InputDrop> {
        packet.arc_restart();
        let available = packet.segment_length();
        let header = Ip4Header::overlay(packet.bytes()).ok_or(Ip4Bad::Truncated)?;
        let plain = ip4::is_plain(header, available);
        let exact = usize::from(header.total_length()) == available;
        if !(plain & exact & packet.has_none(PacketFlags::CHAINED.union(PacketFlags::L2_GROUP))) {
            self.take_slow_path(packet)?;
        }
        Ok(first)
    }

    fn arrived(&self, cx: &Context<'_>, rx: InterfaceId, packets: u64) {
        cx.interface_counters(rx).ip4.add(packets);
    }
}

/// The declaration. `arc` is `ip4-unicast`.
pub fn spec(arc: ArcId, tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::stage("Checks IPv4 headers", move |wiring| Ip4Input {
        arc,
        lookup: wiring.node(nodes::ip4::LOOKUP),
        broadcast: wiring.number(nodes::ip4::DIRECTED_BROADCAST).unwrap_or(DROP),
        tables: tables.clone(),
    })
    .takes_offloads()
    .describe(|record, names| {
        format!("{}, to {}", crate::ip4::describe(record.bytes()), names.node(record.next))
    })
}
