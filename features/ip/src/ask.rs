//! `ip4-arp`, `ip4-glean`, `ip6-discover-neighbor`, `ip6-glean`: a packet meets a neighbour whose MAC
//! address is not known. The neighbour is asked for it, now and then. The packet for whose sake it is
//! asked waits on the control thread if it is small; larger ones, and those that come before the
//! answer, die.

use std::net::IpAddr;

use quiver_core::node::{Node, NodeSpec};
use quiver_core::packet::PacketFlags;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_tables::Adjacency;
use quiver_wire::{Header, Ip4Header, Ip6Header, MacAddress};

use crate::error_request::IcmpErrorRequest;
use crate::held::{self, Waits};
use crate::notice::Notice;
use crate::question;
use crate::tables::IpTables;
use quiver_core::throttle::{Recent, Shares, key};

/// The control thread is told of packets to one neighbour at most so often by a worker, and keeps those.
pub const TELL_INTERVAL_NS: u64 = 1_000_000_000;
/// A worker asks for one neighbour at most so often. In between, the control thread asks again, so that
/// nobody is asked for more often than once a second (RFC 1122 §2.3.2.1).
pub const ASK_INTERVAL_NS: u64 = 3_000_000_000;
/// Neighbours that a worker asks for in a second, for all packets together: a scan of a connected subnet
/// must not become a storm.
pub const ASKS_PER_SECOND: u64 = 4000;
/// For the packets that came in by one interface: who scans from there leaves the others their share.
pub const ASKS_PER_INTERFACE_SECOND: u64 = 2000;
/// So many may be asked for at once.
pub const ASKS_BURST: u64 = 256;

quiver_core::reasons! {
    /// What becomes of packets to neighbours that must be asked for.
    pub enum AskDrop {
        /// Asked.
        Asked = "request-sent", "the neighbour's MAC address is not known: it was asked for, the packet dropped";
        /// Asked, and the packet waits.
        Held = info "held", "the neighbour was asked for, the packet kept by the control thread until it answers";
        /// Asked a moment ago.
        Throttled = "request-throttled", "the neighbour's MAC address is not known, and it was asked for a moment ago";
        /// Too many others.
        TooMany = "too-many-requests", "too many unknown neighbours are being asked for at a time";
        /// Nothing to ask with.
        NoAddress = "no-source-address", "the outgoing interface has no address to ask for neighbours with";
        /// Gone or down.
        InterfaceDown = "interface-down", "the outgoing interface is down or gone";
        /// None left.
        NoBuffer = "no-buffer", "no buffer for the request; `show buffers`";
        /// No header.
        Truncated = "truncated", "fewer bytes than an IP header";
        /// Not a neighbour's address.
        NotUnicast = "not-unicast", "the destination is no address that a neighbour can have";
    }
}

/// Which of the four nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The packets are IPv6.
    pub six: bool,
    /// The packet's destination is asked for, not the adjacency's next hop.
    pub glean: bool,
}

struct Ask {
    kind: Kind,
    tables: IpTables,
    error: NodeId,
    done: NodeId,
    told: Recent,
    asked: Recent,
    shares: Shares,
}

impl Ask {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, AskDrop> {
        let (hops, destination) = ends(packet.bytes(), self.kind.six).ok_or(AskDrop::Truncated)?;
        if hops <= 1 && !packet.has(PacketFlags::OWN) {
            let kind = if self.kind.six { 3 } else { 11 };
            packet.index = IcmpErrorRequest { kind, code: 0, detail: 0 }.to_index();
            return Ok(self.error);
        }
        let adjacency = *self.tables.adjacencies.get(packet.index);
        let target = if self.kind.glean { destination } else { adjacency.next_hop() };
        let waits = held::may_wait(packet, adjacency.tx);
        packet.tx = adjacency.tx;
        let about = key(&[u64::from(adjacency.tx.0), low(target), high(target)]);
        if !self.told.may(about, cx.now_ns) {
            return Err(AskDrop::Throttled);
        }
        if !self.shares.take(packet.rx, cx.now_ns) {
            return Err(AskDrop::TooMany);
        }
        let asks = self.asked.may(about, cx.now_ns);
        if asks {
            self.ask(cx, &adjacency, target)?;
        }
        match waits {
            Waits::Whole => {
                held::tell(cx, packet, self.kind, adjacency.tx, asks);
                cx.count(AskDrop::Held, 1);
                return Ok(self.done);
            }
            // It will not go on, but its sender is told when the neighbour does not answer.
            Waits::Start => held::tell(cx, packet, self.kind, adjacency.tx, asks),
            Waits::Not => Notice::Wanted { address: target, asked: asks }.send(cx, adjacency.tx),
        }
        Err(AskDrop::Asked)
    }

    fn ask(&self, cx: &mut Context<'_>, adjacency: &Adjacency, target: IpAddr) -> Result<(), AskDrop> {
        let row = cx.interface(adjacency.tx).filter(|row| row.up).ok_or(AskDrop::InterfaceDown)?;
        let (mac, output) = (MacAddress(row.mac), row.output);
        let own = self.tables.interfaces.addresses(adjacency.tx, cx.pass).ok_or(AskDrop::NoAddress)?;
        if !is_unicast(target) {
            return Err(AskDrop::NotUnicast);
        }
        let frame = question::ask(own, mac, None, target).ok_or(AskDrop::NoAddress)?;
        send(cx, frame.bytes(), adjacency.tx, output).ok_or(AskDrop::NoBuffer)
    }
}

/// Can a neighbour have this address?
fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => quiver_wire::ip4::address::is_unicast(address),
        IpAddr::V6(address) => quiver_wire::ip6::address::is_unicast(address),
    }
}

/// TTL or hop limit, and destination.
fn ends(bytes: &[u8], six: bool) -> Option<(u8, IpAddr)> {
    if six {
        let header = Ip6Header::overlay(bytes)?;
        return Some((header.hop_limit(), header.destination().into()));
    }
    let header = Ip4Header::overlay(bytes)?;
    Some((header.ttl(), header.destination().into()))
}

fn low(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits() as u64,
    }
}

fn high(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(_) => 4,
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

/// Send a frame of the router's own, with the tags of its interface; `None` without a buffer.
pub(crate) fn send(cx: &mut Context<'_>, bytes: &[u8], tx: InterfaceId, output: NodeId) -> Option<()> {
    let mut packet = cx.buffers.packet()?;
    if !packet.append(bytes, cx.buffers) || !cx.encapsulate(tx, &mut packet) {
        cx.buffers.free(packet);
        return None;
    }
    packet.set(PacketFlags::OWN);
    packet.tx = tx;
    cx.emit(packet, output);
    Some(())
}

impl Node for Ask {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration of one of the four.
pub(crate) fn spec(name: &str, kind: Kind, tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(name, "Asks for a neighbour's MAC address", move |wiring| {
        Box::new(Ask {
            kind,
            tables: tables.clone(),
            error: wiring.node(if kind.six { "ip6-icmp-error" } else { "ip4-icmp-error" }),
            done: wiring.node("ip-done"),
            told: Recent::new(TELL_INTERVAL_NS),
            asked: Recent::new(ASK_INTERVAL_NS),
            shares: Shares::new(ASKS_PER_SECOND, ASKS_PER_INTERFACE_SECOND, ASKS_BURST),
        })
    })
    .reasons::<AskDrop>()
    .describe(move |record, names| {
        let words = if kind.six { crate::ip6::words } else { crate::ip4::words };
        let (words, tx) = (words(record.bytes()), names.interface(record.tx));
        format!("{words}, whose next hop on {tx} is unknown, to {}", names.node(record.next))
    })
}
