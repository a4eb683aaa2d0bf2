//! Decapsulation: an outer packet for the router itself becomes the packet or frame that its tunnel's interface
//! receives.

use std::sync::Arc;

use quiver_core::arc::{ArcId, DEVICE_INPUT};
use quiver_core::cpu::Variant;
use quiver_core::interface::InterfaceRow;
use quiver_core::node::{NodeSpec, Wiring};
use quiver_core::packet::PacketFlags;
use quiver_core::stage::{LookUp, Tally};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::exact::NOT_FOUND;
use quiver_tables::ip::IpTables;
use quiver_wire::{EthernetHeader, Header};

use super::ends::OuterEnds;
use super::protocol::{Parsed, Payload, TunnelProtocol, place};
use super::reasons::TunnelDrop;
use super::table::{End, Key, TunnelTable, key};
use crate::decapsulated::{self, take_off};

/// The node for outer headers of family `O`.
pub struct TunnelInput<P, O> {
    table: TunnelTable,
    tables: Arc<IpTables>,
    arcs: [ArcId; 2],
    look_up: [NodeId; 2],
    kind: std::marker::PhantomData<(P, O)>,
}

/// An outer packet's headers.
struct Outer {
    key: Key,
    /// Bytes in front of the payload.
    header_len: usize,
    parsed: Parsed,
}

impl<P: TunnelProtocol, O: OuterEnds> TunnelInput<P, O> {
    #[inline(always)]
    fn outer(&self, packet: &Packet) -> Result<Outer, TunnelDrop> {
        let bytes = packet.bytes();
        let ends = O::ends(bytes).ok_or(TunnelDrop::Truncated)?;
        let behind = bytes.get(ends.header_len..).ok_or(TunnelDrop::Truncated)?;
        let parsed = P::parse(ends.protocol, behind)?;
        let table = O::table_of(&self.tables.interfaces, packet.rx);
        let key = key(ends.source, ends.destination, table, parsed.key);
        Ok(Outer { key, header_len: ends.header_len + parsed.header_len, parsed })
    }

    /// The interface receives what is left.
    #[inline(always)]
    fn receive(
        row: &InterfaceRow,
        tally: Tally<'_>,
        interface: InterfaceId,
        packet: &mut Packet,
    ) -> Result<(), TunnelDrop> {
        if !row.up {
            return Err(TunnelDrop::InterfaceDown);
        }
        if !packet.turn() {
            return Err(TunnelDrop::Loop);
        }
        let counters = tally.interface_counters(interface);
        counters.rx_packets.add(1);
        counters.rx_bytes.add(packet.length() as u64);
        packet.rx = interface;
        packet.index = 0;
        packet.clear(PacketFlags::L2_GROUP.and(PacketFlags::NOTED));
        packet.arc_restart();
        Ok(())
    }

    #[inline(always)]
    fn open(
        &self,
        tally: Tally<'_>,
        outer: &Outer,
        end: End,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let (at, is_frame) = (outer.header_len, outer.parsed.payload == Payload::Frame);
        if (end.carries_frames != is_frame) | outer.parsed.has_checksum {
            self.check(outer, end, packet)?;
        }
        let row = tally.interface(end.interface).ok_or(TunnelDrop::NoTunnel)?;
        let family = match outer.parsed.payload {
            Payload::Ip4 => {
                if decapsulated::ip4_fast::<O>(packet, at).is_none() {
                    decapsulated::ip4::<O>(packet, at)?;
                }
                0
            }
            Payload::Ip6 => {
                if decapsulated::ip6_fast::<O>(packet, at).is_none() {
                    decapsulated::ip6::<O>(packet, at)?;
                }
                1
            }
            Payload::Frame => {
                take_off(packet, at)?;
                if packet.segment_length() < EthernetHeader::LEN {
                    return Err(TunnelDrop::InnerWrong);
                }
                Self::receive(row, tally, end.interface, packet)?;
                return Ok(row.first(DEVICE_INPUT, row.input));
            }
        };
        Self::receive(row, tally, end.interface, packet)?;
        let counters = tally.interface_counters(end.interface);
        if family == 0 {
            counters.ip4.add(1)
        } else {
            counters.ip6.add(1)
        }
        Ok(row.first(self.arcs[family], self.look_up[family]))
    }

    /// A packet with a checksum, or of another kind than the tunnel is for.
    #[cold]
    fn check(&self, outer: &Outer, end: End, packet: &Packet) -> Result<(), TunnelDrop> {
        if end.carries_frames != (outer.parsed.payload == Payload::Frame) {
            return Err(TunnelDrop::Kind);
        }
        let at = outer.header_len - outer.parsed.header_len;
        let length = packet.length().checked_sub(at).ok_or(TunnelDrop::Truncated)?;
        if P::checksum_is_good(packet, at, length) { Ok(()) } else { Err(TunnelDrop::Checksum) }
    }

    /// A packet that no point-to-point tunnel is for: a multipoint one takes it from any sender.
    #[cold]
    #[inline(never)]
    fn from_any(&self, tally: Tally<'_>, outer: &Outer, packet: &mut Packet) -> Result<NodeId, TunnelDrop> {
        let [_, _, high, low, rest] = outer.key;
        let end = self.table.find(&[0, 0, high, low, rest]).ok_or(TunnelDrop::NoTunnel)?;
        self.open(tally, outer, end, packet)
    }
}

impl<P: TunnelProtocol, O: OuterEnds> LookUp for TunnelInput<P, O> {
    const NAME: &'static str = P::NODES.input[place::<O>()];
    const SORTS: bool = true;
    type Reason = TunnelDrop;
    type Key = Key;
    type Found = u32;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Key {
        self.outer(packet).map_or([0; _], |outer| outer.key)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[Key], found: &mut [u32]) {
        self.table.find_all(variant, keys, found);
    }

    #[inline(always)]
    fn settle(
        &self,
        tally: Tally<'_>,
        (): (),
        _: Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let outer = self.outer(packet)?;
        if found == NOT_FOUND {
            return self.from_any(tally, &outer, packet);
        }
        self.open(tally, &outer, self.table.end(found), packet)
    }
}

/// The declaration. `arcs` are `ip4-unicast` and `ip6-unicast`.
pub(super) fn spec<P: TunnelProtocol, O: OuterEnds>(table: &TunnelTable, arcs: [ArcId; 2]) -> NodeSpec {
    let table = table.clone();
    NodeSpec::look_up("Takes a tunnel's headers off", move |wiring: &Wiring<'_>| {
        wiring.node_if_built("ethernet-input"); // an edge, for `show graph`
        TunnelInput::<P, O> {
            table: table.clone(),
            tables: wiring.shared(),
            arcs,
            look_up: [wiring.node("ip4-lookup"), wiring.node("ip6-lookup")],
            kind: std::marker::PhantomData,
        }
    })
    .describe(|record, names| {
        let (from, bytes) = (names.interface(record.rx), record.packet_bytes);
        format!("{bytes} bytes from {from}, to {}", names.node(record.next))
    })
}
