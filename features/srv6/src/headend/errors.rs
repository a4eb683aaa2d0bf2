//! `sr-pl-icmp6-error`: ICMPv6 errors that come back to the headend about packets that it has encapsulated. What
//! concerns the sender of the packet inside is told to it (RFC 2473 §8), and what a path takes is told to the
//! control thread.

use std::sync::Arc;

use quiver_core::epoch::Published;
use quiver_core::event::Event;
use quiver_core::node::{Node, NodeSpec, Wiring};
use quiver_core::packet::PacketFlags;
use quiver_core::throttle::{Recent, TokenBucket};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_tables::ip::{Ip4, Ip6, IpTables};
use quiver_tables::{HeaderRow, IcmpErrorRequest, WorkerHeaderRows};
use quiver_wire::icmp6::{Icmp6Header, kind, within};
use quiver_wire::ip6::MTU_MIN;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::inner::Inner;
use super::quote::{Quote, Told};
use super::rows::Words;
use super::spray::Sprayed;
use super::{Kind, Rows};
use crate::carried::Carried;
use crate::endpoint::inside::ETHERNET;

/// The node.
pub(super) const NODE: &str = "sr-pl-icmp6-error";
/// What packets of the headend have behind the IPv6 header.
pub(super) const PROTOCOLS: [IpProtocol; 4] =
    [IpProtocol::ROUTING, IpProtocol::IPV4, IpProtocol::IPV6, ETHERNET];
/// Errors that a worker looks into in a second: in each of the tables that are steered from, a destination is looked
/// up.
pub const RELAYED_PER_SECOND: u64 = 200;
/// Errors that a worker may look into at once.
pub const RELAYED_BURST: u64 = 64;
/// The same path's MTU is told to the control thread at most so often by a worker.
pub const TELL_INTERVAL_NS: u64 = 500_000_000;

quiver_core::reasons! {
    /// What becomes of ICMPv6 errors about packets of the headend.
    pub enum ErrorDrop {
        /// Cannot be told whose it was.
        Truncated = "truncated", "an ICMPv6 error that quotes too little of a packet, or a later fragment";
        /// Forged, or late.
        NotOurs = "not-ours", "an ICMPv6 error about a packet that no policy sends like that now";
        /// RFC 8201 §4.
        NotBelieved = "mtu-not-believed", "ICMPv6 packet too big with an MTU below 1,280, or not below what was sent";
        /// A limit.
        RateLimited = "rate-limited", "more ICMPv6 errors about outer packets than a worker looks into in a second";
        /// RFC 2473 §8.
        Kept = info "kept", "errors that senders of inner packets need not hear";
        /// RFC 2473 §8.
        Relayed = info "relayed", "errors about outer packets, told to the senders of the packets inside";
        /// RFC 8201.
        PathMtu = info "path-mtu", "the control thread was told of the MTU of a path";
    }
}

/// Where packets come from that are steered: the small numbers of tables, by family.
pub(super) type SteeredFrom = Published<[Vec<u32>; 2]>;

struct Errors {
    rows: Arc<WorkerHeaderRows>,
    sprayed: Sprayed,
    steered_from: Arc<SteeredFrom>,
    tables: Arc<IpTables>,
    /// By family: the nodes that encapsulate, those that make copies for them, and those that send errors.
    encapsulate: [Option<NodeId>; 2],
    spray: [Option<NodeId>; 2],
    errors: [NodeId; 2],
    done: NodeId,
    bucket: TokenBucket,
    told: Recent,
}

/// What a sender hears, if anything, of an error about the packet around its own (RFC 2473 §8.2, §8.3). `bytes` are
/// those of its packet that are quoted.
fn told_sender<F: Inner>(
    icmp: &Icmp6Header,
    quote: &Quote,
    row: &HeaderRow,
    bytes: &[u8],
) -> Option<IcmpErrorRequest> {
    match icmp.kind {
        kind::PACKET_TOO_BIG => {
            let mtu_bytes = mtu_bytes(icmp).saturating_sub(quote.around);
            F::too_big_of(bytes, F::length(bytes)?, mtu_bytes.into())
        }
        kind::DESTINATION_UNREACHABLE => Some(F::UNREACHABLE),
        // Where the outer header has the hops of the inner one, its sender has chosen so few.
        kind::TIME_EXCEEDED if icmp.code == 0 => {
            Some(if Words(row).propagates_hop_limit() { F::TIME_EXCEEDED } else { F::UNREACHABLE })
        }
        _ => None,
    }
}

/// What packet too big tells.
fn mtu_bytes(icmp: &Icmp6Header) -> u16 {
    u16::try_from(u32::from_be_bytes(icmp.rest)).unwrap_or(u16::MAX)
}

impl Errors {
    fn new(wiring: &Wiring<'_>, rows: &Rows, sprayed: &Sprayed, steered_from: &Arc<SteeredFrom>) -> Errors {
        let kinds = [Kind::Ip4, Kind::Ip6];
        Errors {
            rows: rows[wiring.worker.index() % rows.len()].clone(),
            sprayed: sprayed.clone(),
            steered_from: steered_from.clone(),
            tables: wiring.shared(),
            encapsulate: kinds.map(|kind| wiring.number(kind.node(true))),
            spray: kinds.map(|kind| wiring.number(kind.spray_node(true))),
            errors: [Ip4::ERROR_NODE, Ip6::ERROR_NODE].map(|name| wiring.node(name)),
            done: wiring.node("ip-done"),
            bucket: TokenBucket::new(RELAYED_PER_SECOND, RELAYED_BURST),
            told: Recent::new(TELL_INTERVAL_NS),
        }
    }

    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, ErrorDrop> {
        let (header, message) = within(packet.bytes()).ok_or(ErrorDrop::Truncated)?;
        let (icmp, quoted) = Icmp6Header::split(message).ok_or(ErrorDrop::Truncated)?;
        let begin = Ip6Header::LEN + usize::from(header.payload_length()) - quoted.len();
        let (icmp, quote) = (*icmp, Quote::of(quoted).ok_or(ErrorDrop::Truncated)?);
        if !self.bucket.take(cx.now_ns) {
            return Err(ErrorDrop::RateLimited);
        }
        if icmp.kind == kind::PACKET_TOO_BIG {
            let mtu_bytes = mtu_bytes(&icmp);
            if usize::from(mtu_bytes) < MTU_MIN || mtu_bytes >= quote.length {
                return Err(ErrorDrop::NotBelieved);
            }
            self.tell(cx, packet, &quote, mtu_bytes);
        }
        match quote.protocol {
            IpProtocol::IPV4 => self.relay::<Ip4>(cx, packet, &icmp, &quote, begin),
            IpProtocol::IPV6 => self.relay::<Ip6>(cx, packet, &icmp, &quote, begin),
            // A frame has no sender who could be told.
            ETHERNET => {
                cx.count(ErrorDrop::Kept, 1);
                Ok(self.done)
            }
            _ => Err(ErrorDrop::NotOurs),
        }
    }

    /// Tell the control thread what a path takes.
    fn tell(&mut self, cx: &mut Context<'_>, packet: &Packet, quote: &Quote, mtu_bytes: u16) {
        let segments = quote.segments;
        let digest = segments.list.map_or(segments.destination.to_bits() as u64, |(_, digest)| digest);
        if self.told.may(digest ^ u64::from(mtu_bytes), cx.now_ns) {
            let told = Told { source: quote.source, segments, around: quote.around, mtu_bytes };
            cx.count(ErrorDrop::PathMtu, 1);
            cx.notify(Event::new(cx.node, packet.rx, cx.now_ns, 0, told.write().bytes()));
        }
    }

    /// The packet inside is left, and its sender hears what became of it.
    fn relay<F: Inner>(
        &self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        icmp: &Icmp6Header,
        quote: &Quote,
        begin: usize,
    ) -> Result<NodeId, ErrorDrop> {
        let at = begin + quote.at;
        let inner = packet.bytes().get(at..).unwrap_or_default();
        let destination = F::destination(inner).ok_or(ErrorDrop::Truncated)?;
        let (table, row) = self.find::<F>(cx, destination, quote).ok_or(ErrorDrop::NotOurs)?;
        let Some(request) = told_sender::<F>(icmp, quote, row, inner) else {
            cx.count(ErrorDrop::Kept, 1);
            return Ok(self.done);
        };
        if !packet.pull(at) {
            return Err(ErrorDrop::Truncated);
        }
        packet.become_own();
        packet.clear(PacketFlags::OWN);
        packet.l2_bytes = 0;
        // The sender is behind the table that its packet was steered from.
        packet.rx = self.tables.interfaces.speaker(F::FAMILY, table);
        packet.tx = InterfaceId::NONE;
        packet.index = request.to_index();
        cx.count(ErrorDrop::Relayed, 1);
        Ok(self.errors[F::FAMILY as usize])
    }

    /// The table from which packets to a destination are steered into a list that has the quoted segments.
    fn find<F: Inner>(
        &self,
        cx: &Context<'_>,
        destination: F::Address,
        quote: &Quote,
    ) -> Option<(u32, &HeaderRow)> {
        let family = F::FAMILY as usize;
        for table in &self.steered_from.read(cx.pass)[family] {
            let group = F::table(&self.tables, *table).lookup(destination);
            let mut last = u32::MAX;
            for hop in self.tables.groups.each_hop(group) {
                if Some(hop.next) == self.encapsulate[family] && hop.index != last {
                    last = hop.index;
                    if let Some(row) = self.row(last, quote) {
                        return Some((*table, row));
                    }
                } else if Some(hop.next) == self.spray[family] {
                    let rows = self.sprayed.read(hop.index as usize, cx.pass)?;
                    if let Some(row) = rows.iter().find_map(|row| self.row(*row, quote)) {
                        return Some((*table, row));
                    }
                }
            }
        }
        None
    }

    /// A row, if it sends what is quoted.
    fn row(&self, index: u32, quote: &Quote) -> Option<&HeaderRow> {
        let row = self.rows.get(index);
        let source = Ip6Header::overlay(row.header()).map(Ip6Header::source);
        (source == Some(quote.source) && quote.segments.are_of(row)).then_some(row)
    }
}

impl Node for Errors {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
        frame.look_at_rx();
    }
}

/// The declaration.
pub(super) fn spec(rows: &Rows, sprayed: &Sprayed, steered_from: &Arc<SteeredFrom>) -> NodeSpec {
    let (rows, sprayed, steered_from) = (rows.clone(), sprayed.clone(), steered_from.clone());
    let help = "Tells senders of packets inside what became of them in the network of segments";
    NodeSpec::new(NODE, help, move |wiring| Box::new(Errors::new(wiring, &rows, &sprayed, &steered_from)))
        .reasons::<ErrorDrop>()
        .describe(|record, names| {
            let packet = crate::endpoint::words::packet(record.bytes());
            format!("about {packet}, to {}", names.node(record.next))
        })
}
