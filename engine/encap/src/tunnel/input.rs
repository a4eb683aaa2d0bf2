//! Decapsulation: an outer packet for the router itself becomes the packet or frame that its
//! tunnel's interface receives.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{ArcId, DEVICE_INPUT};
use quiver_core::graph::interface::InterfaceRow;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::memory::packet::handover::{Handover, MarkedHandover};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::{Ip4, Ip6, IpTables};
use quiver_tables::exact::NOT_FOUND;
use quiver_wire::{EthernetHeader, Header, UdpHeader};

use super::ends::OuterEnds;
use super::protocol::{HEADER_START_BYTES, Payload, TunnelProtocol, place, space, udp_len};
use super::reasons::TunnelDrop;
use super::table::{End, Key, TunnelTable, key};
use super::udp::split_udp;
use crate::OuterHeader;
use crate::decapsulated::{self, take_off, take_off_plain};
use crate::ecn;

/// The node for outer headers of family `O`.
pub struct TunnelInput<P, O> {
    table: TunnelTable,
    tables: Arc<IpTables>,
    arcs: [ArcId; 2],
    look_up: [NodeId; 2],
    look_up_in_table: [NodeId; 2],
    /// The nodes for packets that no tunnel is for, by protocol.
    rest: Box<[(u32, NodeId)]>,
    kind: std::marker::PhantomData<(P, O)>,
}

/// The headers of an outer packet could not be read.
#[derive(Clone, Copy)]
struct Unread;

const UNREAD: u32 = u32::MAX;

impl Handover for Unread {
    #[inline(always)]
    fn to_index(self) -> u32 {
        UNREAD
    }

    fn from_index(_: u32) -> Unread {
        Unread
    }
}

/// What was read of an outer packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Read {
    /// Bytes in front of the payload.
    header_len: u16,
    /// Bytes of these that are the tunnel's own header: 10 bits.
    tunnel_len: u16,
    payload: Payload,
    has_checksum: bool,
}

impl Handover for Read {
    #[inline(always)]
    fn to_index(self) -> u32 {
        let payload = match self.payload {
            Payload::Ip4 => 0,
            Payload::Ip6 => 1,
            Payload::Frame | Payload::MirroredFrame => 2,
        };
        u32::from(self.header_len)
            | u32::from(self.tunnel_len) << 16
            | payload << 26
            | u32::from(self.has_checksum) << 28
    }

    #[inline(always)]
    fn from_index(index: u32) -> Read {
        let payload = match index >> 26 & 3 {
            0 => Payload::Ip4,
            1 => Payload::Ip6,
            _ => Payload::Frame,
        };
        Read {
            header_len: index as u16,
            tunnel_len: (index >> 16) as u16 & 0x3ff,
            payload,
            has_checksum: index >> 28 & 1 != 0,
        }
    }
}

impl MarkedHandover for Read {
    #[inline(always)]
    fn is_marked(index: u32) -> bool {
        index != UNREAD
    }
}

/// An outer packet's headers.
struct Outer {
    key: Key,
    header: Read,
}

/// What an outer packet's headers are read from. Packets with the same have the same headers, if
/// they came in by the same interface.
#[derive(PartialEq)]
struct Alike<E> {
    ends: E,
    port: u16,
    tunnel: u64,
}

impl<E> Alike<E> {
    /// `None` where the outer header is not a plain one, a UDP header does not announce the whole
    /// packet, or the packet ends with its headers.
    #[inline(always)]
    fn of<P: TunnelProtocol, O: OuterEnds<Fixed = E>>(
        packet: &Packet,
        header: Read,
    ) -> Option<Self> {
        let bytes = packet.bytes();
        let start = bytes.get(O::LEN + udp_len::<P>()..)?.first_chunk::<HEADER_START_BYTES>()?;
        let unread = HEADER_START_BYTES.saturating_sub(header.tunnel_len.into()) * 8;
        let tunnel = u64::from_be_bytes(*start).checked_shr(unread as u32).unwrap_or(0);
        let mut port = 0;
        if P::UDP_PORT.is_some() {
            let datagram = bytes.get(O::LEN..)?;
            let udp = UdpHeader::overlay(datagram)?;
            port = udp.destination_port();
            if usize::from(udp.length()) != datagram.len() {
                return None;
            }
        }
        Some(Alike { ends: O::fixed(bytes)?, port, tunnel })
    }
}

/// A datagram ends where its UDP header says. What lies behind is not of the tunnel.
#[inline(always)]
fn trim_to_udp(packet: &mut Packet, header: Read) -> Result<(), TunnelDrop> {
    let at = usize::from(header.header_len) - usize::from(header.tunnel_len) - UdpHeader::LEN;
    let udp = packet.bytes().get(at..).and_then(UdpHeader::overlay);
    let end = at + usize::from(udp.ok_or(TunnelDrop::Truncated)?.length());
    if end < usize::from(header.header_len) {
        return Err(TunnelDrop::Truncated);
    }
    if end < packet.length() {
        packet.trim(end);
    }
    Ok(())
}

impl<P: TunnelProtocol, O: OuterEnds> TunnelInput<P, O> {
    #[inline(always)]
    fn outer(&self, packet: &Packet) -> Result<Outer, TunnelDrop> {
        let bytes = packet.bytes();
        let ends = O::ends(bytes).ok_or(TunnelDrop::Truncated)?;
        let behind = bytes.get(ends.header_len..).ok_or(TunnelDrop::Truncated)?;
        let (port, behind) = split_udp::<P>(behind).ok_or(TunnelDrop::Truncated)?;
        let parsed = P::parse(ends.protocol, behind)?;
        let table = O::table_of(&self.tables.interfaces, packet.rx);
        let port = port | space(parsed.payload);
        let key = key(ends.source, ends.destination, table, port, parsed.key);
        let before = ends.header_len + udp_len::<P>();
        let header = Read {
            header_len: (before + parsed.header_len) as u16,
            tunnel_len: parsed.header_len as u16,
            payload: match parsed.payload {
                Payload::MirroredFrame => Payload::Frame,
                other => other,
            },
            has_checksum: parsed.has_checksum,
        };
        Ok(Outer { key, header })
    }

    /// The interface receives what is left.
    #[inline(always)]
    fn receive(
        row: &InterfaceRow,
        context: StageContext<'_>,
        interface: InterfaceId,
        packet: &mut Packet,
    ) -> Result<(), TunnelDrop> {
        if !row.up {
            return Err(TunnelDrop::InterfaceDown);
        }
        if !packet.turn() {
            return Err(TunnelDrop::Loop);
        }
        let counters = context.interface_counters(interface);
        let (packets, bytes) = packet.on_wire();
        counters.rx_packets.add(packets);
        counters.rx_bytes.add(bytes);
        Self::enter(interface, packet);
        Ok(())
    }

    /// From here on the packet is one that came in by `interface`.
    #[inline(always)]
    fn enter(interface: InterfaceId, packet: &mut Packet) {
        packet.rx = interface;
        packet.hand_over_nothing();
        packet.clear(PacketFlags::L2_GROUP.union(PacketFlags::NOTED));
        packet.arc_restart();
    }

    #[inline(always)]
    fn open(
        &self,
        context: StageContext<'_>,
        outer: &Outer,
        end: End,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let Read { payload, has_checksum, .. } = outer.header;
        let (mut at, is_frame) = (usize::from(outer.header.header_len), payload == Payload::Frame);
        let may_be_left = P::UDP_PORT.is_some() && packet.has(PacketFlags::OFFLOAD);
        if (end.carries_frames != is_frame) | has_checksum | may_be_left {
            self.check(outer, end, packet)?;
        }
        if P::UDP_PORT.is_some() {
            trim_to_udp(packet, outer.header)?;
        }
        if P::ASKS_END {
            let behind = packet.bytes().get(at..).ok_or(TunnelDrop::Truncated)?;
            at += P::behind(end.words, behind)?;
        }
        let row = context.interface(end.interface).ok_or(TunnelDrop::NoTunnel)?;
        let family = match payload {
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
            Payload::Frame | Payload::MirroredFrame => {
                let class = O::traffic_class(packet.bytes()).unwrap_or(0);
                take_off(packet, at)?;
                if class & ecn::ECT_1 != 0 {
                    decapsulated::merge_frame(packet, class)?;
                }
                if packet.segment_length() < EthernetHeader::LEN {
                    return Err(TunnelDrop::InnerWrong);
                }
                Self::receive(row, context, end.interface, packet)?;
                return Ok(row.first(DEVICE_INPUT, row.input));
            }
        };
        Self::receive(row, context, end.interface, packet)?;
        if P::HAS_TABLES {
            let of = if family == 0 { Family::Ip4 } else { Family::Ip6 };
            packet.hand_over(TableIndex(P::table(end.words, of)));
        }
        let counters = context.interface_counters(end.interface);
        let (packets, _) = packet.on_wire();
        if family == 0 {
            counters.ip4.add(packets)
        } else {
            counters.ip6.add(packets)
        }
        if P::HAS_TABLES {
            return Ok(self.look_up_in_table[family]);
        }
        Ok(row.first(self.arcs[family], self.look_up[family]))
    }

    /// As [`open`](Self::open) for packets of one tunnel that are like the first one, whose headers
    /// are these. `None`, and nothing changes, unless all of them are ordinary.
    #[inline(always)]
    fn open_all(
        &self,
        context: StageContext<'_>,
        header: Read,
        end: End,
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let is_frame = header.payload == Payload::Frame;
        if P::ASKS_END | P::HAS_TABLES | (end.carries_frames != is_frame) | header.has_checksum {
            return None;
        }
        let row = context.interface(end.interface).filter(|row| row.up)?;
        let at = usize::from(header.header_len);
        let first = Alike::of::<P, O>(packets.first()?, header)?;
        let mut good = true;
        for packet in &*packets {
            let is_inner_good = match header.payload {
                Payload::Ip4 => decapsulated::is_plain_ip4::<O>(packet, at),
                Payload::Ip6 => decapsulated::is_plain_ip6::<O>(packet, at),
                Payload::Frame | Payload::MirroredFrame => {
                    decapsulated::is_plain_frame::<O>(packet, at)
                }
            };
            good &= is_inner_good & packet.may_turn();
            good &= Alike::of::<P, O>(packet, header).is_some_and(|other| other == first);
        }
        if !good {
            return None;
        }
        let mut bytes = 0;
        for packet in &mut *packets {
            let _ = take_off_plain(packet, at);
            bytes += packet.segment_length() as u64;
            let _ = packet.turn();
            Self::enter(end.interface, packet);
        }
        let (counters, count) = (context.interface_counters(end.interface), packets.len() as u64);
        counters.rx_packets.add(count);
        counters.rx_bytes.add(bytes);
        let (family, of_family) = match header.payload {
            Payload::Ip4 => (0, &counters.ip4),
            Payload::Ip6 => (1, &counters.ip6),
            Payload::Frame | Payload::MirroredFrame => {
                return Some(row.first(DEVICE_INPUT, row.input));
            }
        };
        of_family.add(count);
        Some(row.first(self.arcs[family], self.look_up[family]))
    }

    /// A packet with a checksum, or of another kind than the tunnel is for.
    #[cold]
    fn check(&self, outer: &Outer, end: End, packet: &mut Packet) -> Result<(), TunnelDrop> {
        if end.carries_frames != (outer.header.payload == Payload::Frame) {
            return Err(TunnelDrop::Kind);
        }
        let behind = usize::from(outer.header.tunnel_len) + udp_len::<P>();
        let at = usize::from(outer.header.header_len) - behind;
        if outer.header.has_checksum && !P::checksum_is_good(packet, at) {
            return Err(TunnelDrop::Checksum);
        }
        // Linux leaves the checksum of a tunnel or UDP header to the device, too. It goes with the
        // header.
        if packet.has(PacketFlags::OFFLOAD) {
            let length = packet.length().checked_sub(at).ok_or(TunnelDrop::Truncated)?;
            if usize::from(packet.offload().checksum_bytes) == length {
                packet.clear(PacketFlags::OFFLOAD);
            }
        }
        Ok(())
    }

    /// The node that takes packets of the outer header's protocol which no tunnel is for.
    #[cold]
    fn rest(&self, packet: &mut Packet) -> Option<NodeId> {
        let protocol = u32::from(O::ends(packet.bytes())?.protocol.0);
        let (_, node) = self.rest.iter().find(|(claimed, _)| *claimed == protocol)?;
        packet.hand_over_nothing();
        Some(*node)
    }
}

impl<P: TunnelProtocol, O: OuterEnds> LookUp for TunnelInput<P, O> {
    const NAME: &'static str = P::NODES.input[place::<O>()];
    const SORTS: bool = true;
    type Reason = TunnelDrop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    /// What was read is kept in the packet's index, for [`resolve`](Self::resolve).
    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Key {
        let Ok(outer) = self.outer(packet) else {
            packet.hand_over(Unread);
            return [0; _];
        };
        packet.hand_over(outer.header);
        outer.key
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[Key], found: &mut [u32]) {
        self.table.find_all(variant, keys, found);
    }

    #[inline(always)]
    fn decide_all(
        &self,
        context: StageContext<'_>,
        (): (),
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        let outer = self.outer(packets.first()?).ok()?;
        self.open_all(context, outer.header, self.table.find_or_any(&outer.key)?, packets)
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        (): (),
        key: Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelDrop> {
        let Some(header) = packet.handed_over_if() else {
            return self.outer(packet).and(Err(TunnelDrop::Truncated));
        };
        let outer = Outer { key, header };
        if found == NOT_FOUND {
            return self.rest(packet).ok_or(TunnelDrop::NoTunnel);
        }
        self.open(context, &outer, self.table.end(found), packet)
    }
}

/// The declaration. `arcs` are `ip4-unicast` and `ip6-unicast`.
pub(super) fn spec<P: TunnelProtocol, O: OuterEnds>(
    table: &TunnelTable,
    arcs: [ArcId; 2],
) -> NodeSpec {
    let table = table.clone();
    NodeSpec::look_up("Takes a tunnel's headers off", move |wiring: &Wiring<'_>| {
        wiring.node_if_built("ethernet-input"); // an edge, for `show graph`
        TunnelInput::<P, O> {
            table: table.clone(),
            tables: wiring.shared(),
            arcs,
            look_up: [wiring.node("ip4-lookup"), wiring.node("ip6-lookup")],
            look_up_in_table: [Ip4::LOOK_UP, Ip6::LOOK_UP].map(|name| wiring.node(name)),
            rest: wiring.claims(O::REST_CLAIMS).into_boxed_slice(),
            kind: std::marker::PhantomData,
        }
    })
    .takes_offloads()
    .describe(|record, names| {
        let (from, bytes) = (names.interface(record.rx), record.packet_bytes);
        format!("{bytes} bytes from {from}, to {}", names.node(record.next))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_fits_an_index() {
        for payload in [Payload::Ip4, Payload::Ip6, Payload::Frame] {
            for has_checksum in [false, true] {
                let read = Read { header_len: 1_000, tunnel_len: 260, payload, has_checksum };
                assert_eq!(Read::from_index(read.to_index()), read);
                assert!(Read::is_marked(read.to_index()));
            }
        }
    }
}
