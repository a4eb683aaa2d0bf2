//! Encapsulation: an IPv6 packet that the FIB sends to the interface of a 6rd tunnel gets an IPv4
//! header whose destination stands in its own (RFC 5969 §4).

use std::sync::Arc;

use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::interface::InterfaceRow;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::entries::{EncapEntry, WorkerEncapEntries};
use quiver_encap::entry::EntryView;
use quiver_encap::inner::{InnerFields, Refused, Truncated};
use quiver_encap::output::{EncapError, push_link};
use quiver_encap::{EncapOutput, HeaderStack, IcmpRecipient, InnerPacket, Inside, OuterHeader};
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily, flow_hash};
use quiver_forwarding::next_hop_group::Hop;
use quiver_wire::{Header, Ip4Header, IpProtocol, checksum};

use crate::tables::Tables;

/// The node's name.
pub(crate) const NODE: &str = "6rd-encap";
/// The node for IPv4 packets, of which there is nothing to be done.
pub(crate) const NODE_IP4: &str = "6rd-encap-ip4";

quiver_core::reasons! {
    /// What becomes of packets to a 6rd tunnel.
    pub enum SixRdEncapDrop {
        /// Cannot be behind the look-up.
        Truncated = "truncated", "fewer bytes than an IPv6 header";
        /// IPv6 alone.
        NotIp6 = "not-ip6", "an IPv4 packet by a route to a 6rd tunnel, which carries IPv6";
        /// Deleted meanwhile.
        NoTunnel = "no-tunnel", "the tunnel is gone";
        /// Down.
        InterfaceDown = "interface-down", "the interface of the tunnel is down";
        /// RFC 5969 §7.1.
        Outside = "outside-domain",
            "a destination outside of the 6rd prefix, and the tunnel has no border relay";
        /// RFC 5969 §12, RFC 4213 §4.
        BadOuter = "bad-outer-destination",
            "the IPv4 address in the destination is no host's, or this router's own";
        /// Too many headers in front already.
        NoHeadroom = "no-headroom", "no room in the buffer for the outer header";
        /// 16 bits.
        TooLong = "too-long", "with the outer header the packet is longer than IPv4 can say";
        /// The sender is notified.
        TooBig = info "too-big",
            "packets longer than the MTU of the tunnel; their senders get packet-too-big";
        /// RFC 2473 §3.1.
        HopLimit = info "hop-limit", "packets whose hop limit ends here; senders get an error";
        /// RFC 4291 §2.5.6.
        LinkLocalSource = info "link-local-source",
            "packets with a link-local source to another link; their senders get an error";
    }
}

impl From<EncapError> for SixRdEncapDrop {
    fn from(error: EncapError) -> SixRdEncapDrop {
        match error {
            EncapError::Truncated => SixRdEncapDrop::Truncated,
            EncapError::NoHeadroom => SixRdEncapDrop::NoHeadroom,
            EncapError::TooLong => SixRdEncapDrop::TooLong,
        }
    }
}

impl From<Truncated> for SixRdEncapDrop {
    fn from(Truncated: Truncated) -> SixRdEncapDrop {
        SixRdEncapDrop::Truncated
    }
}

/// The header of which all but the destination is filled in by [`HeaderStack::fill`].
pub(crate) struct SixRdStack;

impl HeaderStack for SixRdStack {
    type Outer = Ip4;

    #[inline(always)]
    fn fill(
        words: EntryView<'_>,
        bytes: &mut [u8],
        total: usize,
        inside: Inside,
    ) -> Result<(), Truncated> {
        Ip4::fill(words, bytes, total, IpProtocol::IPV6, inside)
    }
}

/// Write the destination into an outer header that has none.
#[inline(always)]
fn set_destination(packet: &mut Packet, behind: usize, destination: u32) -> Option<()> {
    let at = packet.segment_length().checked_sub(behind + Ip4Header::LEN)?;
    let header: &mut [u8; Ip4Header::LEN] = packet.bytes_mut().get_mut(at..)?.first_chunk_mut()?;
    let [high, low] = [(destination >> 16) as u16, destination as u16];
    let sum = u16::from_be_bytes([header[10], header[11]]);
    let sum = checksum::update16(checksum::update16(sum, 0, high), 0, low);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header[16..].copy_from_slice(&destination.to_be_bytes());
    Some(())
}

/// Is it the address of one host, as far as the address itself says?
#[inline(always)]
fn is_host(address: u32) -> bool {
    let first = address >> 24;
    (first != 0) & (first != 127) & (first < 224)
}

/// Is nothing between the tunnel's output and its device?
#[inline(always)]
fn is_open(row: &InterfaceRow) -> bool {
    row.up & (row.first(INTERFACE_OUTPUT, row.tx) == row.tx)
}

/// The node for IPv6 packets, and that for IPv4 packets, which drops. A stacked adjacency is in the
/// packet's index.
pub struct SixRdEncap<F> {
    output: EncapOutput<SixRdStack>,
    tables: Arc<Tables>,
    error: NodeId,
    fragment: NodeId,
    family: std::marker::PhantomData<fn() -> F>,
}

/// Where a packet goes.
struct Found<'a> {
    entry: &'a EncapEntry,
    destination: u32,
    hop: Hop,
}

impl<F: InnerPacket> SixRdEncap<F> {
    /// For one worker.
    pub(crate) fn new(
        wiring: &Wiring<'_>,
        entries: &[Arc<WorkerEncapEntries>],
        tables: &Arc<Tables>,
    ) -> SixRdEncap<F> {
        Ip4::wire_route_targets(wiring);
        SixRdEncap {
            output: EncapOutput::new(wiring, entries),
            tables: tables.clone(),
            error: wiring.node(Ip6::ERROR_NODE),
            fragment: wiring.node(Ip6::FRAGMENT_NODE),
            family: std::marker::PhantomData,
        }
    }

    /// The outer destination of a packet by an interface, and the route that leads there.
    #[inline(always)]
    fn find(
        &self,
        context: StageContext<'_>,
        interface: InterfaceId,
        packet: &mut Packet,
    ) -> Result<Found<'_>, SixRdEncapDrop> {
        let tunnel =
            self.tables.tunnel(interface, context.pass()).ok_or(SixRdEncapDrop::NoTunnel)?;
        let inner = Ip6::destination(packet.bytes()).ok_or(SixRdEncapDrop::Truncated)?;
        let destination = tunnel.domain.outer_destination(inner).ok_or(SixRdEncapDrop::Outside)?;
        if !is_host(destination) | (destination == tunnel.source) {
            return Err(SixRdEncapDrop::BadOuter);
        }
        let group = Ip4::table(&self.output.tables, tunnel.table).lookup(destination);
        let groups = &self.output.tables.groups;
        let word = groups.word(group);
        let hop = match word.is_single() {
            true => word.hop(),
            false => groups.choose(word, flow_hash::<Ip6>(packet)),
        };
        Ok(Found { entry: self.output.entries.get(tunnel.entry), destination, hop })
    }

    /// Send a packet in one step; `None`, and nothing changes, where something is unusual about it.
    #[inline(always)]
    fn send(
        &self,
        context: StageContext<'_>,
        interface: InterfaceId,
        mtu_bytes: u16,
        packet: &mut Packet,
    ) -> Option<Result<NodeId, SixRdEncapDrop>> {
        let length = packet.segment_length();
        let unusual =
            PacketFlags::LOCALLY_ORIGINATED.union(PacketFlags::CHAINED).union(PacketFlags::OFFLOAD);
        if !(packet.has_none(unusual) & (length <= usize::from(mtu_bytes))) {
            return None;
        }
        if !context.interface(interface).is_some_and(is_open) {
            return None;
        }
        let found = self.find(context, interface, packet).ok()?;
        let link = self.output.link(found.entry, found.hop)?;
        if length > link.length_max {
            return None;
        }
        let (traffic_class, hop_limit) = Ip6::forward(packet.bytes_mut())?;
        // The MTU of the tunnel is set, not found out: routers may fragment (RFC 4213 §3.2.1).
        let inside = Inside {
            traffic_class,
            hop_limit,
            hash: 0,
            protocol: IpProtocol::IPV6,
            dont_fragment: false,
            key: 0,
        };
        let sent = self.output.put_and_leave(link, packet, inside);
        let _ = set_destination(packet, length, found.destination);
        let counters = context.interface_counters(interface);
        counters.tx_packets.add(1);
        counters.tx_bytes.add(length as u64);
        Some(sent.map_err(SixRdEncapDrop::from))
    }

    /// A packet about which something is unusual.
    #[cold]
    #[inline(never)]
    fn slow(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, SixRdEncapDrop> {
        let adjacency = *self.output.tables.adjacencies.of(packet);
        let own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        if !own && let Some((request, why)) = Ip6::refusal(packet.bytes())? {
            let why = match why {
                Refused::HopLimit => SixRdEncapDrop::HopLimit,
                Refused::LinkLocalSource => SixRdEncapDrop::LinkLocalSource,
            };
            context.count(why, 1);
            packet.hand_over(request);
            return Ok(self.error);
        }
        let row = context
            .interface(adjacency.tx)
            .filter(|row| row.up)
            .ok_or(SixRdEncapDrop::InterfaceDown)?;
        if packet.longest_on_wire() > usize::from(adjacency.mtu_bytes) {
            if own {
                return Ok(self.fragment);
            }
            if let Some(request) = Ip6::too_big(packet, adjacency.mtu_bytes.into()) {
                context.count(SixRdEncapDrop::TooBig, 1);
                packet.hand_over(request);
                return Ok(self.error);
            }
        }
        if !is_open(row) {
            if !own {
                Ip6::decrement_hop_limit(packet.bytes_mut());
            }
            packet.l2_bytes = 0;
            packet.tx = adjacency.tx;
            return Ok(adjacency.output);
        }
        let (packets, bytes) = packet.on_wire();
        let next = self.put(context, adjacency.tx, packet, !own)?;
        let counters = context.interface_counters(adjacency.tx);
        counters.tx_packets.add(packets);
        counters.tx_bytes.add(bytes);
        Ok(next)
    }

    /// Put the outer header in front of a packet that has passed the tunnel's output.
    pub(crate) fn put(
        &self,
        context: StageContext<'_>,
        interface: InterfaceId,
        packet: &mut Packet,
        counts_hop: bool,
    ) -> Result<NodeId, SixRdEncapDrop> {
        let Found { entry, destination, hop } = self.find(context, interface, packet)?;
        if entry.header_len() == 0 {
            return Err(SixRdEncapDrop::NoTunnel);
        }
        let total = EncapOutput::<SixRdStack>::check_length(packet, entry)?;
        let mtu = self.output.mtu(entry, hop, || None);
        let fits = total <= mtu.mtu_bytes;
        if counts_hop {
            Ip6::decrement_hop_limit(packet.bytes_mut());
        }
        let (length, behind) = (packet.length(), packet.segment_length());
        let InnerFields { traffic_class, hop_limit, .. } =
            Ip6::fields(packet.bytes()).ok_or(SixRdEncapDrop::Truncated)?;
        let inside = Inside {
            traffic_class,
            hop_limit,
            hash: 0,
            protocol: IpProtocol::IPV6,
            dont_fragment: false,
            key: 0,
        };
        packet.clear(PacketFlags::LOCALLY_ORIGINATED);
        self.output.put(entry, packet, length, inside)?;
        let _ = set_destination(packet, behind, destination);
        if fits && self.output.is_resolved(hop) {
            return Ok(push_link(self.output.adjacency(hop), packet)?);
        }
        let too_long_for = (!fits).then_some(mtu);
        Ok(self.output.by_node(entry, hop, packet, too_long_for, IcmpRecipient::Encapsulator))
    }
}

impl<F: InnerPacket> Stage for SixRdEncap<F> {
    const NAME: &'static str = match F::VERSION {
        6 => NODE,
        _ => NODE_IP4,
    };
    const SENDS: bool = true;
    type Reason = SixRdEncapDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, SixRdEncapDrop> {
        if F::VERSION != Ip6::VERSION {
            return Err(SixRdEncapDrop::NotIp6);
        }
        let adjacency = self.output.tables.adjacencies.of(packet);
        match self.send(context, adjacency.tx, adjacency.mtu_bytes, packet) {
            Some(sent) => sent,
            None => self.slow(context, packet),
        }
    }
}

/// The declaration.
pub(crate) fn spec<F: InnerPacket>(
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
    tables: &Arc<Tables>,
) -> NodeSpec {
    let (entries, tables) = (entries.clone(), tables.clone());
    let help = match F::VERSION {
        6 => "Puts an IPv4 header in front of IPv6 packets, to the address in their destination",
        _ => "Drops IPv4 packets that a route sends to a 6rd tunnel",
    };
    NodeSpec::stage(help, move |wiring| SixRdEncap::<F>::new(wiring, &entries, &tables))
        .detour(Ip4::REWRITE)
        .describe(|record, names| {
            let (bytes, next) = (record.packet_bytes, names.node(record.next));
            format!("{bytes} bytes with the outer header, to {next}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_neither_groups_nor_this_host_nor_nobody() {
        for (address, host) in [
            (0x0a00_0001, true),
            (0xdfff_ffff, true),
            (0, false),
            (0x7f00_0001, false),
            (0xe000_0001, false),
            (0xffff_ffff, false),
        ] {
            assert_eq!(is_host(address), host, "{address:x}");
        }
    }
}
