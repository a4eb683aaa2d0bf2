//! ICMP errors about the outer packets of tunnels: senders of inner packets are told, and path MTUs
//! are reported to the control thread.

use std::sync::Arc;

use quiver_core::graph::node::{Node, NodeSpec, Wiring};
use quiver_core::worker::event::{Event, EventReader, EventWriter};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_wire::{Header, UdpHeader};

use super::ends::{Ends, OuterEnds};
use super::protocol::{Parsed, Payload, TunnelProtocol, place, space, udp_len};
use super::table::{End, SENT, TunnelTable, far_key, key};
use crate::entries::WorkerEncapEntries;
use crate::entry::EntryView;
use crate::relay::{QuotedInner, Relay, UnderlayError};

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

/// What an ICMP error says about a tunnel's packet.
struct About {
    error: UnderlayError,
    end: End,
    payload: Payload,
    /// Where the inner packet begins, and bytes of the headers around it.
    at: usize,
    around: usize,
    /// Bytes of the outer packet.
    length: usize,
}

struct TunnelErrors<P, O> {
    table: TunnelTable,
    entries: Arc<WorkerEncapEntries>,
    relay: Relay,
    /// The nodes for errors about packets that no tunnel sends, by protocol.
    rest: Box<[(u32, NodeId)]>,
    /// The node for what a host behind the router may wait for.
    punt: Option<NodeId>,
    kind: std::marker::PhantomData<(P, O)>,
}

impl<P: TunnelProtocol, O: OuterEnds> TunnelErrors<P, O> {
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, TunnelErrorDrop> {
        let about = match self.about(packet) {
            Ok(about) => about,
            Err(why) => return self.elsewhere(cx, packet).ok_or(why),
        };
        if !self.relay.may_look(cx.now_ns) {
            return Err(TunnelErrorDrop::RateLimited);
        }
        if let UnderlayError::TooBig(mtu_bytes) = about.error {
            if mtu_bytes < O::PATH_MTU_MIN || usize::from(mtu_bytes) >= about.length {
                return Err(TunnelErrorDrop::NotBelieved);
            }
            let report = PathReport { entry: about.end.entry, mtu_bytes };
            if self.relay.may_report(report.entry, mtu_bytes, cx.now_ns) {
                cx.count(TunnelErrorDrop::PathMtu, 1);
                cx.notify(Event::new(cx.node, packet.rx, cx.now_ns, 0, report.write().bytes()));
            }
        }
        let quoted = QuotedInner {
            at: about.at,
            around: about.around,
            copies_hop_limit: EntryView(self.entries.get(about.end.entry)).copies_hop_limit(),
            tunnel: about.end.interface,
        };
        let sent = match about.payload {
            Payload::Ip4 => self.relay.to_sender::<Ip4>(packet, about.error, quoted),
            Payload::Ip6 => self.relay.to_sender::<Ip6>(packet, about.error, quoted),
            // A frame has no sender who could be notified.
            Payload::Frame | Payload::MirroredFrame => None,
        };
        cx.count(if sent.is_some() { TunnelErrorDrop::Relayed } else { TunnelErrorDrop::Kept }, 1);
        Ok(sent.unwrap_or(self.relay.done()))
    }

    /// The tunnel's packet that an error is about.
    fn about(&self, packet: &Packet) -> Result<About, TunnelErrorDrop> {
        let (error, begin) = O::quoted(packet.bytes()).ok_or(TunnelErrorDrop::Truncated)?;
        let quoted = packet.bytes().get(begin..).ok_or(TunnelErrorDrop::Truncated)?;
        let ends = O::ends(quoted).ok_or(TunnelErrorDrop::Truncated)?;
        if O::is_later_fragment(quoted) {
            return Err(TunnelErrorDrop::Truncated);
        }
        let behind = quoted.get(ends.header_len..).ok_or(TunnelErrorDrop::Truncated)?;
        let (ports, behind) = split_ports::<P>(behind).ok_or(TunnelErrorDrop::Truncated)?;
        let parsed = P::parse(ends.protocol, behind).map_err(|_| TunnelErrorDrop::Truncated)?;
        let around = ends.header_len + udp_len::<P>() + parsed.header_len;
        let table = O::table_of(&self.relay.tables().interfaces, packet.rx);
        let end = self.end(&ends, table, ports, parsed).ok_or(TunnelErrorDrop::NotOurs)?;
        let (at, length) = (begin + around, ends.length);
        Ok(About { error, end, payload: parsed.payload, at, around, length })
    }

    /// The end of the tunnel that sends from `ends.source` to `ends.destination`.
    fn end(&self, ends: &Ends, table: u32, ports: [u16; 2], parsed: Parsed) -> Option<End> {
        let [local, remote] = [ends.source, ends.destination];
        let keys = P::quoted_keys(ports, parsed.key);
        // The peer may take packets at another port than this end.
        let usual = P::UDP_PORT.unwrap_or(0);
        let own = if P::TAKES_DATAGRAM_ERRORS { usual } else { ports[1] };
        let space = space(parsed.payload);
        let sent = space | if P::HAS_SENT_KEY { SENT } else { 0 };
        let spaces = match P::TAKES_DATAGRAM_ERRORS {
            true => [own | sent; 2],
            false => [own | sent, usual | space],
        };
        let places = spaces.into_iter().zip(keys);
        let mut found =
            places.filter_map(|(port, of)| self.table.find(&key(remote, local, table, port, of)));
        found.find(|end| end.entry != 0).or_else(|| {
            let far = P::FAR_ENDS
                .and_then(|_| self.table.find(&far_key(remote, local, table, ports[1])))?;
            // The network must be one of this router's: its port takes packets from any sender.
            let mut port = [own, usual].into_iter();
            let port =
                port.find_map(|port| self.table.find(&key(0, local, table, port, parsed.key)))?;
            Some(End { entry: far.entry, ..port })
        })
    }

    /// The node for an error about a packet that is none of this protocol's tunnels.
    fn elsewhere(&self, cx: &Context<'_>, packet: &Packet) -> Option<NodeId> {
        let quoted = || packet.bytes().get(O::quoted(packet.bytes())?.1..);
        if !P::TAKES_DATAGRAM_ERRORS {
            let protocol = u32::from(O::ends(quoted()?)?.protocol.0);
            return self.rest.iter().find(|(of, _)| *of == protocol).map(|(_, node)| *node);
        }
        let to = || {
            let quoted = quoted()?;
            let udp = UdpHeader::overlay(quoted.get(O::ends(quoted)?.header_len..)?)?;
            self.relay.tables().udp_ports.get(O::FAMILY, udp.destination_port())?.errors
        };
        let has_host = cx.interface(packet.rx).is_some_and(|row| row.host.is_some());
        to().or(self.punt.filter(|_| has_host)).or(Some(self.relay.done()))
    }
}

/// The UDP ports of what is quoted, and what follows its header; no ports and all of it for
/// protocols without UDP.
fn split_ports<P: TunnelProtocol>(bytes: &[u8]) -> Option<([u16; 2], &[u8])> {
    if P::UDP_PORT.is_none() {
        return Some(([0; 2], bytes));
    }
    let (header, behind) = UdpHeader::split(bytes)?;
    Some(([header.source_port(), header.destination_port()], behind))
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
            relay: Relay::new(wiring),
            rest: wiring.claims(O::REST_ERROR_CLAIMS).into_boxed_slice(),
            punt: P::TAKES_DATAGRAM_ERRORS.then(|| wiring.node(O::PUNT)),
            kind: std::marker::PhantomData,
        })
    })
    .reasons::<TunnelErrorDrop>()
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
