//! `sr-pl-icmp6-error`: ICMPv6 errors about packets that the headend has encapsulated. They are
//! relayed to the senders of inner packets (RFC 2473 §8), and path MTUs are reported to the control
//! thread.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::memory::epoch::Published;
use quiver_core::throttle::{Recent, TokenBucket};
use quiver_core::worker::event::Event;
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_encap::relay::{
    RELAYED_BURST, RELAYED_PER_SECOND, REPORT_INTERVAL_NS, UnderlayError, to_sender,
};
use quiver_encap::{EncapEntry, EntryView, InnerPacket, WorkerEncapEntries};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables};
use quiver_forwarding::nodes;
use quiver_wire::icmp6::{Icmp6Header, within};
use quiver_wire::ip6::MTU_MIN;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use super::quote::{PathMtuReport, Quote};
use super::spray::Sprayed;
use super::{Entries, Kind};
use crate::endpoint::inner_packet::ETHERNET;

/// The node.
pub(super) const NODE: &str = "sr-pl-icmp6-error";
/// What packets of the headend have behind the IPv6 header.
pub(super) const PROTOCOLS: [IpProtocol; 4] =
    [IpProtocol::ROUTING, IpProtocol::IPV4, IpProtocol::IPV6, ETHERNET];
quiver_core::reasons! {
    /// What becomes of ICMPv6 errors about packets of the headend.
    pub enum ErrorDrop {
        /// Cannot be told whose it was.
        Truncated = "truncated",
            "an ICMPv6 error that quotes too little of a packet, or a later fragment";
        /// Forged, or late.
        NotOurs = "not-ours", "an ICMPv6 error about a packet that no policy sends like that now";
        /// RFC 8201 §4.
        NotBelieved = "mtu-not-believed",
            "ICMPv6 packet too big with an MTU below 1,280, or not below what was sent";
        /// A limit.
        RateLimited = "rate-limited",
            "more ICMPv6 errors about outer packets than a worker looks into in a second";
        /// RFC 2473 §8.
        NotRelayed = info "kept", "errors that senders of inner packets need not hear";
        /// RFC 2473 §8.
        Relayed = info "relayed",
            "errors about outer packets, told to the senders of the packets inside";
        /// RFC 8201.
        PathMtu = info "path-mtu", "the control thread was told of the MTU of a path";
    }
}

/// Where packets come from that are steered: the small numbers of tables, by family.
pub(super) type SteeredFrom = Published<[Vec<u32>; 2]>;

struct Errors {
    entries: Arc<WorkerEncapEntries>,
    sprayed: Sprayed,
    steered_from: Arc<SteeredFrom>,
    tables: Arc<IpTables>,
    /// By family: the nodes that encapsulate, those that make copies for them, and those that send
    /// errors.
    encapsulate: [Option<NodeId>; 2],
    spray: [Option<NodeId>; 2],
    errors: [NodeId; 2],
    done: NodeId,
    /// Tunnels, whose packets may have the same protocols, by protocol.
    tunnels: Box<[(u32, NodeId)]>,
    bucket: TokenBucket,
    /// Reports that were sent a short time ago.
    reported: Recent,
}

impl Errors {
    fn new(
        wiring: &Wiring<'_>,
        entries: &Entries,
        sprayed: &Sprayed,
        steered_from: &Arc<SteeredFrom>,
    ) -> Errors {
        let kinds = [Kind::Ip4, Kind::Ip6];
        Errors {
            entries: entries[wiring.worker.index() % entries.len()].clone(),
            sprayed: sprayed.clone(),
            steered_from: steered_from.clone(),
            tables: wiring.shared(),
            encapsulate: kinds.map(|kind| wiring.number(kind.node(true))),
            spray: kinds.map(|kind| wiring.number(kind.spray_node(true))),
            errors: [Ip4::ERROR_NODE, Ip6::ERROR_NODE].map(|name| wiring.node(name)),
            done: wiring.node(nodes::IP_DONE),
            tunnels: wiring.claims("icmp6-error-about-tunnel").into_boxed_slice(),
            bucket: TokenBucket::new(RELAYED_PER_SECOND, RELAYED_BURST),
            reported: Recent::new(REPORT_INTERVAL_NS),
        }
    }

    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, ErrorDrop> {
        let (header, message) = within(packet.bytes()).ok_or(ErrorDrop::Truncated)?;
        let (icmp, quoted) = Icmp6Header::split(message).ok_or(ErrorDrop::Truncated)?;
        let begin = Ip6Header::LEN + usize::from(header.payload_length()) - quoted.len();
        let (error, quote) =
            (UnderlayError::of_icmp6(icmp), Quote::of(quoted).ok_or(ErrorDrop::Truncated)?);
        if !self.bucket.take(cx.now_ns) {
            return Err(ErrorDrop::RateLimited);
        }
        if let UnderlayError::TooBig(mtu_bytes) = error {
            if usize::from(mtu_bytes) < MTU_MIN || mtu_bytes >= quote.length {
                return Err(ErrorDrop::NotBelieved);
            }
            self.report_path_mtu(cx, packet, &quote, mtu_bytes);
        }
        match quote.protocol {
            IpProtocol::IPV4 => self.relay::<Ip4>(cx, packet, error, &quote, begin),
            IpProtocol::IPV6 => self.relay::<Ip6>(cx, packet, error, &quote, begin),
            // A frame has no sender that an ICMP error could go to.
            ETHERNET => {
                cx.count(ErrorDrop::NotRelayed, 1);
                Ok(self.done)
            }
            _ => Err(ErrorDrop::NotOurs),
        }
    }

    /// Notify the control thread of the MTU of a path.
    fn report_path_mtu(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
        quote: &Quote,
        mtu_bytes: u16,
    ) {
        let segments = quote.segments;
        let digest =
            segments.list.map_or(segments.destination.to_bits() as u64, |(_, digest)| digest);
        if self.reported.may(digest ^ u64::from(mtu_bytes), cx.now_ns) {
            let report =
                PathMtuReport { source: quote.source, segments, around: quote.around, mtu_bytes };
            cx.count(ErrorDrop::PathMtu, 1);
            cx.notify(Event::new(cx.node, packet.rx, cx.now_ns, 0, report.write().bytes()));
        }
    }

    /// The packet inside is left, and its sender hears what became of it.
    fn relay<F: InnerPacket>(
        &self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        error: UnderlayError,
        quote: &Quote,
        begin: usize,
    ) -> Result<NodeId, ErrorDrop> {
        let at = begin + quote.at;
        let inner = packet.bytes().get(at..).unwrap_or_default();
        let destination = F::destination(inner).ok_or(ErrorDrop::Truncated)?;
        let Some((table, entry)) = self.find::<F>(cx, destination, quote) else {
            let tunnel =
                self.tunnels.iter().find(|(protocol, _)| *protocol == u32::from(quote.protocol.0));
            return tunnel.map(|(_, node)| *node).ok_or(ErrorDrop::NotOurs);
        };
        let copies_hop_limit = EntryView(entry).copies_hop_limit();
        let Some(request) = error.for_sender::<F>(inner, quote.around, copies_hop_limit) else {
            cx.count(ErrorDrop::NotRelayed, 1);
            return Ok(self.done);
        };
        // The sender is behind the table that its packet was steered from.
        if !to_sender::<F>(&self.tables, packet, at, table, request) {
            return Err(ErrorDrop::Truncated);
        }
        cx.count(ErrorDrop::Relayed, 1);
        Ok(self.errors[F::FAMILY as usize])
    }

    /// The table from which packets to a destination are steered into a list that has the quoted
    /// segments.
    fn find<F: InnerPacket>(
        &self,
        cx: &Context<'_>,
        destination: F::Address,
        quote: &Quote,
    ) -> Option<(u32, &EncapEntry)> {
        let family = F::FAMILY as usize;
        for table in &self.steered_from.read(cx.pass)[family] {
            let group = F::table(&self.tables, *table).lookup(destination);
            let mut last = u32::MAX;
            for hop in self.tables.groups.each_hop(group) {
                if Some(hop.next) == self.encapsulate[family] && hop.index != last {
                    last = hop.index;
                    if let Some(entry) = self.entry(last, quote) {
                        return Some((*table, entry));
                    }
                } else if Some(hop.next) == self.spray[family] {
                    let entries = self.sprayed.read(hop.index as usize, cx.pass)?;
                    if let Some(entry) = entries.iter().find_map(|entry| self.entry(*entry, quote))
                    {
                        return Some((*table, entry));
                    }
                }
            }
        }
        None
    }

    /// An entry, if it sends what is quoted.
    fn entry(&self, index: u32, quote: &Quote) -> Option<&EncapEntry> {
        let entry = self.entries.get(index);
        let source = Ip6Header::overlay(entry.header()).map(Ip6Header::source);
        (source == Some(quote.source) && quote.segments.are_of(entry)).then_some(entry)
    }
}

impl Node for Errors {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
        frame.look_at_rx();
    }
}

/// The declaration.
pub(super) fn spec(
    entries: &Entries,
    sprayed: &Sprayed,
    steered_from: &Arc<SteeredFrom>,
) -> NodeSpec {
    let (entries, sprayed, steered_from) = (entries.clone(), sprayed.clone(), steered_from.clone());
    let help = "Tells senders of packets inside what became of them in the network of segments";
    NodeSpec::new(NODE, help, move |wiring| {
        Box::new(Errors::new(wiring, &entries, &sprayed, &steered_from))
    })
    .reasons::<ErrorDrop>()
    .describe(|record, names| {
        let packet = crate::endpoint::description::packet(record.bytes());
        format!("about {packet}, to {}", names.node(record.next))
    })
}
