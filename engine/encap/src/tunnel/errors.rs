//! ICMP errors about the outer packets of tunnels: senders of inner packets are told, and path MTUs
//! are reported to the control thread.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::throttle::{Recent, TokenBucket};
use quiver_core::worker::event::{Event, EventReader, EventWriter};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, Ip6, IpTables};

use super::ends::OuterEnds;
use super::protocol::{Payload, TunnelProtocol, place, space, udp_len};
use super::table::{End, SENT, TunnelTable, key};
use super::udp::split_udp;
use crate::entries::WorkerEncapEntries;
use crate::entry::EntryView;
use crate::inner::InnerPacket;
use crate::relay::{
    RELAYED_BURST, RELAYED_PER_SECOND, REPORT_INTERVAL_NS, UnderlayError, to_sender,
};

quiver_core::reasons! {
    /// What becomes of ICMP errors about the outer packets of tunnels.
    pub enum TunnelErrorDrop {
        /// Cannot be told whose it was.
        Truncated = "truncated", "an ICMP error that quotes too little of an outer packet";
        /// Forged, or late.
        NotOurs = "not-ours", "an ICMP error about a packet that no tunnel sends";
        /// RFC 1191 §3, RFC 8201 §4.
        NotBelieved = "mtu-not-believed",
            "an MTU that is too small for any path, or not below what was sent";
        /// A limit.
        RateLimited = "rate-limited",
            "more ICMP errors about outer packets than a worker looks into in a second";
        /// RFC 2003 §4.
        Kept = info "kept",
            "errors that senders of inner packets need not be told of, or that quote too little \
             for it";
        /// RFC 2003 §4, RFC 2473 §8.
        Relayed = info "relayed",
            "errors about outer packets, told to the senders of the packets inside";
        /// RFC 1191, RFC 8201.
        PathMtu = info "path-mtu", "the control thread was told of the MTU of a path";
    }
}

/// What the control thread is told: an entry's path takes no longer packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathReport {
    pub entry: u32,
    pub mtu_bytes: u16,
}

impl PathReport {
    fn write(self) -> EventWriter {
        let mut out = EventWriter::new();
        out.put(&self.entry.to_be_bytes());
        out.put(&self.mtu_bytes.to_be_bytes());
        out
    }

    /// Of an event.
    pub fn read(bytes: &[u8]) -> Option<PathReport> {
        let mut bytes = EventReader(bytes);
        Some(PathReport { entry: bytes.word()?, mtu_bytes: bytes.half()? })
    }
}

struct TunnelErrors<P, O> {
    table: TunnelTable,
    entries: Arc<WorkerEncapEntries>,
    tables: Arc<IpTables>,
    errors: [NodeId; 2],
    done: NodeId,
    bucket: TokenBucket,
    reported: Recent,
    kind: std::marker::PhantomData<(P, O)>,
}

impl<P: TunnelProtocol, O: OuterEnds> TunnelErrors<P, O> {
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelErrorDrop> {
        let (error, begin) = O::quoted(packet.bytes()).ok_or(TunnelErrorDrop::Truncated)?;
        let quoted = packet.bytes().get(begin..).ok_or(TunnelErrorDrop::Truncated)?;
        let ends = O::ends(quoted).ok_or(TunnelErrorDrop::Truncated)?;
        let behind = quoted.get(ends.header_len..).ok_or(TunnelErrorDrop::Truncated)?;
        let (port, behind) = split_udp::<P>(behind).ok_or(TunnelErrorDrop::Truncated)?;
        let parsed = P::parse(ends.protocol, behind).map_err(|_| TunnelErrorDrop::Truncated)?;
        let around = ends.header_len + udp_len::<P>() + parsed.header_len;
        if !self.bucket.take(cx.now_ns) {
            return Err(TunnelErrorDrop::RateLimited);
        }
        let table = O::table_of(&self.tables.interfaces, packet.rx);
        // The peer may take packets at another port than this end.
        let port = if P::HAS_SENT_KEY { port | SENT } else { port } | space(parsed.payload);
        let ports = [port, P::UDP_PORT.unwrap_or(0)].into_iter();
        let mut found = ports.filter_map(|port| {
            self.table.find(&key(ends.destination, ends.source, table, port, parsed.key))
        });
        let end = found.find(|end| end.entry != 0).ok_or(TunnelErrorDrop::NotOurs)?;
        if let UnderlayError::TooBig(mtu_bytes) = error {
            if mtu_bytes < O::PATH_MTU_MIN || usize::from(mtu_bytes) >= ends.length {
                return Err(TunnelErrorDrop::NotBelieved);
            }
            let report = PathReport { entry: end.entry, mtu_bytes };
            if self.reported.may(u64::from(end.entry) << 16 | u64::from(mtu_bytes), cx.now_ns) {
                cx.count(TunnelErrorDrop::PathMtu, 1);
                cx.notify(Event::new(cx.node, packet.rx, cx.now_ns, 0, report.write().bytes()));
            }
        }
        match parsed.payload {
            Payload::Ip4 => Ok(self.relay::<Ip4>(cx, packet, error, end, (begin, around))),
            Payload::Ip6 => Ok(self.relay::<Ip6>(cx, packet, error, end, (begin, around))),
            // A frame has no sender who could be told.
            Payload::Frame | Payload::MirroredFrame => Ok(self.keep(cx)),
        }
    }

    fn keep(&self, cx: &Context<'_>) -> NodeId {
        cx.count(TunnelErrorDrop::Kept, 1);
        self.done
    }

    /// The inner packet is left, and its sender is told what became of it.
    fn relay<F: InnerPacket>(
        &self,
        cx: &Context<'_>,
        packet: &mut Packet,
        error: UnderlayError,
        end: End,
        (begin, around): (usize, usize),
    ) -> NodeId {
        let at = begin + around;
        let inner = packet.bytes().get(at..).unwrap_or_default();
        let copies_hop_limit = EntryView(self.entries.get(end.entry)).copies_hop_limit();
        let Some(request) = error.for_sender::<F>(inner, around as u16, copies_hop_limit) else {
            return self.keep(cx);
        };
        let whole = F::source(inner).is_some() && F::fields(inner).is_some();
        // The sender is behind the table that packets to the tunnel's interface are looked up in.
        let table = F::table_of(&self.tables.interfaces, end.interface);
        if !whole || !to_sender::<F>(&self.tables, packet, at, table, request) {
            return self.keep(cx);
        }
        cx.count(TunnelErrorDrop::Relayed, 1);
        self.errors[F::FAMILY as usize]
    }
}

impl<P: TunnelProtocol, O: OuterEnds> Node for TunnelErrors<P, O> {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
        frame.look_at_rx();
    }
}

/// The declaration.
pub(super) fn spec<P: TunnelProtocol, O: OuterEnds>(
    table: &TunnelTable,
    entries: &Arc<[Arc<WorkerEncapEntries>]>,
) -> NodeSpec {
    let (table, entries) = (table.clone(), entries.clone());
    let help = "Tells senders of packets inside tunnels what became of them in the underlay";
    NodeSpec::new(P::NODES.errors[place::<O>()], help, move |wiring: &Wiring<'_>| {
        Box::new(TunnelErrors::<P, O> {
            table: table.clone(),
            entries: entries[wiring.worker.index() % entries.len()].clone(),
            tables: wiring.shared(),
            errors: [Ip4::ERROR_NODE, Ip6::ERROR_NODE].map(|name| wiring.node(name)),
            done: wiring.node("ip-done"),
            bucket: TokenBucket::new(RELAYED_PER_SECOND, RELAYED_BURST),
            reported: Recent::new(REPORT_INTERVAL_NS),
            kind: std::marker::PhantomData,
        })
    })
    .reasons::<TunnelErrorDrop>()
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
