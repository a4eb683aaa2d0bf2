//! `ip4-arp`, `ip4-glean`, `ip6-discover-neighbor`, `ip6-glean`: a packet meets a neighbour whose
//! MAC address is not known. The neighbour is asked for it, now and then, and the packet waits here
//! until the control thread says that the neighbour is known, or given up
//! ([`crate::neighbor::release`]).

use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::graph::drop_reason::DropReason;
use quiver_core::graph::node::{DROP, Node, NodeSpec, Wiring};
use quiver_core::memory::buffer::BufferPool;
use quiver_core::memory::packet::PacketFlags;
use quiver_core::throttle::{Recent, Shares, key};
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_forwarding::adjacency::Adjacency;
use quiver_forwarding::adjacency::AdjacencyKind;
use quiver_forwarding::adjacency_counter::Payload;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::IpTables;
use quiver_forwarding::next_hop_group::Hop;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::{Header, Ip4Header, Ip6Header, MacAddress};

use crate::neighbor::own_frames;
use crate::neighbor::pending_packets::{Awaited, HeldCounts, PendingQueue};
use crate::neighbor::release::{self, Release};
use crate::notifications::Notification;

/// The control thread is told of packets to one neighbour at most so often by a worker.
pub const NOTIFY_INTERVAL_NS: u64 = 1_000_000_000;
/// A worker asks for one neighbour at most so often. In between, the control thread asks again, so
/// that nobody is asked for more often than once a second (RFC 1122 §2.3.2.1).
pub const ASK_INTERVAL_NS: u64 = 3_000_000_000;
/// Neighbours that a worker asks for in a second, for all packets together: a scan of a connected
/// subnet must not become a storm.
pub const ASKS_PER_SECOND: u64 = 4000;
/// For the packets that came in by one interface: who scans from there leaves the others their
/// share.
pub const ASKS_PER_INTERFACE_SECOND: u64 = 2000;
/// So many may be asked for at once.
pub const ASKS_BURST: u64 = 256;

quiver_core::reasons! {
    /// What becomes of packets to neighbours that must be asked for.
    pub enum AskDrop {
        /// Asked.
        Asked = info "request-sent", "neighbours asked for their MAC address";
        /// The packet waits.
        Held = info "held", "packets kept until the neighbour's MAC address is known";
        /// Asked a moment ago.
        Throttled = "request-throttled", "the neighbour's MAC address is not known, and it was \
            asked for a moment ago";
        /// Too many others.
        TooMany = "too-many-requests", "too many unknown neighbours are being asked for at a time";
        /// Nothing to ask with.
        NoAddress = "no-source-address", "the outgoing interface has no address to ask for \
            neighbours with";
        /// Gone or down.
        InterfaceDown = "interface-down", "the outgoing interface is down or gone";
        /// None left.
        NoBuffer = "no-buffer", "no buffer for the request; `show buffers`";
        /// No header.
        Truncated = "truncated", "fewer bytes than an IP header";
        /// Not a neighbour's address.
        NotUnicast = "not-unicast", "the destination is no address that a neighbour can have";
        /// A later one waits in its place.
        MadeRoom = "made-room", "the packet waited for a neighbour, and had to make room for a \
            later one";
        /// Too many wait.
        NoRoom = "no-room", "as many packets wait for neighbours as may; `show ip neighbors`";
        /// No answer.
        Unanswered = "unanswered", "the packet waited for a neighbour that did not answer";
        /// Nowhere to go.
        InterfaceGone = "interface-gone", "the packet waited for a neighbour, and an interface of \
            its way was deleted";
    }
}

/// Which of the four nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The adjacency's next hop is asked for.
    NextHop(Payload),
    /// The packet's destination is asked for.
    Glean(Family),
}

impl Kind {
    fn payload(self) -> Payload {
        match self {
            Kind::NextHop(payload) => payload,
            Kind::Glean(Family::Ip4) => Payload::Ip4,
            Kind::Glean(Family::Ip6) => Payload::Ip6,
        }
    }
}

/// A worker's instance of one of the four nodes.
pub(crate) struct Ask {
    kind: Kind,
    tables: IpTables,
    error: NodeId,
    told: Recent,
    asked: Recent,
    shares: Shares,
    room: PendingQueue<Packet>,
    pool: Arc<BufferPool>,
    counts: Arc<HeldCounts>,
}

impl Ask {
    /// Where a packet goes that cannot wait, if it may live; `None` when it may wait for the
    /// neighbour.
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<Fate, AskDrop> {
        let family = self.kind.payload().family();
        let ends = family.map(|family| ends(packet.bytes(), family).ok_or(AskDrop::Truncated));
        let ends = ends.transpose()?;
        if let Some((hops, _)) = ends
            && hops <= 1
            && !packet.has(PacketFlags::LOCALLY_ORIGINATED)
        {
            let kind = if family == Some(Family::Ip6) { 3 } else { 11 };
            packet.hand_over(IcmpErrorRequest { kind, code: 0, detail: 0 });
            return Ok(Fate::Error);
        }
        let adjacency = *self.tables.adjacencies.of(packet);
        let target = match (self.kind, ends) {
            (Kind::Glean(_), Some((_, destination))) => destination,
            _ => adjacency.next_hop(),
        };
        packet.tx = adjacency.tx;
        let awaited = (adjacency.tx, target);
        let about = about(awaited);
        if !self.room.waits_for(awaited, about, cx.now_ns) {
            self.request(cx, &adjacency, target, packet.rx)?;
        }
        Ok(Fate::Waits(awaited))
    }

    /// Have the neighbour asked for on account of a packet that came in by `rx`, and tell the
    /// control thread that a packet waits.
    fn request(
        &mut self,
        cx: &mut Context<'_>,
        adjacency: &Adjacency,
        target: IpAddr,
        rx: InterfaceId,
    ) -> Result<(), AskDrop> {
        let about = about((adjacency.tx, target));
        if !self.told.may(about, cx.now_ns) {
            return Err(AskDrop::Throttled);
        }
        if !self.shares.take(rx, cx.now_ns) {
            return Err(AskDrop::TooMany);
        }
        let asks = self.asked.may(about, cx.now_ns);
        if asks {
            self.ask(cx, adjacency, target)?;
            cx.count(AskDrop::Asked, 1);
        }
        // Without a control thread that knows nobody would let the packet go on.
        let told = Notification::Wanted { address: target, asked: asks }.send(cx, adjacency.tx);
        if told { Ok(()) } else { Err(AskDrop::TooMany) }
    }

    fn keep(&mut self, cx: &mut Context<'_>, mut packet: Packet, awaited: Awaited) {
        cx.keep_age(&mut packet);
        cx.trace(&packet, cx.node);
        let (now_ns, buffers) = (cx.now_ns, packet.buffer_count());
        let unlucky = |packet| kill(cx, packet, AskDrop::MadeRoom);
        match self.room.keep(awaited, about(awaited), now_ns, (packet, buffers), unlucky) {
            Ok(()) => cx.count(AskDrop::Held, 1),
            Err(packet) => kill(cx, packet, AskDrop::NoRoom),
        }
    }

    /// The wait for a neighbour is over.
    pub fn release(&mut self, cx: &mut Context<'_>, release: &Release) {
        let awaited = (release.on, release.target);
        let about = about(awaited);
        self.told.forget(about);
        let taken = self.room.take(awaited, about, cx.now_ns);
        let way = release.ways[self.kind.payload() as usize];
        let way = way.filter(|way| !taken.is_late && self.leads_to(*way, awaited));
        for mut packet in taken.packets.into_iter().flatten() {
            match way {
                Some(way) => {
                    let next = way.route(&mut packet);
                    send_on(cx, packet, next);
                }
                None => self.give_up(cx, packet, release.on, taken.is_late),
            }
        }
    }

    /// Is the adjacency of `way` still that of the neighbour? It was when the control thread said
    /// so.
    fn leads_to(&self, way: Hop, awaited: Awaited) -> bool {
        let adjacency = self.tables.adjacencies.get(way.index);
        adjacency.kind == AdjacencyKind::Complete && (adjacency.tx, adjacency.next_hop()) == awaited
    }

    /// Nobody answers: tell the sender (RFC 1812 §5.2.7.1, RFC 4861 §7.2.2), or our own ping.
    fn give_up(
        &mut self,
        cx: &mut Context<'_>,
        mut packet: Packet,
        on: InterfaceId,
        is_late: bool,
    ) {
        self.counts.forget();
        // Who sent a labelled packet, and by which routes, is not known here.
        let Some(family) = self.kind.payload().family() else {
            return kill(cx, packet, AskDrop::Unanswered);
        };
        let is_own = packet.has(PacketFlags::LOCALLY_ORIGINATED);
        let is_six = family == Family::Ip6;
        if is_own && let Some(notice) = release::unreachable_ping(&packet, is_six) {
            notice.send(cx, on);
        }
        if is_own || is_late {
            return kill(cx, packet, AskDrop::Unanswered);
        }
        packet.hand_over(release::unreachable(is_six));
        send_on(cx, packet, self.error);
    }

    /// An interface is gone.
    pub fn forget_interface(&mut self, cx: &mut Context<'_>, id: InterfaceId) {
        let came_by_it = |packet: &Packet| packet.rx == id;
        self.room.forget(id, came_by_it, |packet| kill(cx, packet, AskDrop::InterfaceGone));
    }

    fn ask(
        &self,
        cx: &mut Context<'_>,
        adjacency: &Adjacency,
        target: IpAddr,
    ) -> Result<(), AskDrop> {
        let row = cx.interface(adjacency.tx).filter(|row| row.up).ok_or(AskDrop::InterfaceDown)?;
        let (mac, output) = (MacAddress(row.mac), row.output);
        let own =
            self.tables.interfaces.addresses(adjacency.tx, cx.pass).ok_or(AskDrop::NoAddress)?;
        if !is_unicast(target) {
            return Err(AskDrop::NotUnicast);
        }
        let frame = own_frames::ask(own, mac, None, target).ok_or(AskDrop::NoAddress)?;
        send(cx, frame.bytes(), adjacency.tx, output).ok_or(AskDrop::NoBuffer)?;
        self.tables.messages.add_sent(adjacency.tx, frame.bytes());
        Ok(())
    }
}

/// What becomes of a packet.
enum Fate {
    /// Its sender is told that it lived too long.
    Error,
    /// It waits.
    Waits(Awaited),
}

fn about((on, target): Awaited) -> u64 {
    key(&[u64::from(on.0), low(target), high(target)])
}

fn kill(cx: &mut Context<'_>, mut packet: Packet, why: AskDrop) {
    packet.hand_over(DropReason::new(why));
    cx.trace(&packet, DROP);
    cx.kill(packet, why);
}

fn send_on(cx: &mut Context<'_>, packet: Packet, next: NodeId) {
    cx.trace(&packet, next);
    cx.emit(packet, next);
}

/// Can a neighbour have this address?
fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => quiver_wire::ip4::address::is_unicast(address),
        IpAddr::V6(address) => quiver_wire::ip6::address::is_unicast(address),
    }
}

/// TTL or hop limit, and destination.
fn ends(bytes: &[u8], family: Family) -> Option<(u8, IpAddr)> {
    if family == Family::Ip6 {
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
pub(crate) fn send(
    cx: &mut Context<'_>,
    bytes: &[u8],
    tx: InterfaceId,
    output: NodeId,
) -> Option<()> {
    let mut packet = cx.buffers.packet()?;
    if !packet.append(bytes, cx.buffers) || !cx.encapsulate(tx, &mut packet) {
        cx.buffers.free(packet);
        return None;
    }
    packet.set(PacketFlags::LOCALLY_ORIGINATED);
    packet.tx = tx;
    cx.emit(packet, output);
    Some(())
}

impl Node for Ask {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for mut packet in frame.drain() {
            match self.decide(cx, &mut packet) {
                Ok(Fate::Waits(awaited)) => self.keep(cx, packet, awaited),
                Ok(Fate::Error) => send_on(cx, packet, self.error),
                Err(why) => kill(cx, packet, why),
            }
        }
    }

    fn as_any(&mut self) -> Option<&mut dyn std::any::Any> {
        Some(self)
    }
}

impl Drop for Ask {
    /// On the control thread: what still waits goes back to the pool.
    fn drop(&mut self) {
        self.room.drain().for_each(|packet| self.pool.take_back_packet(packet));
    }
}

/// The declaration of one of the four.
pub(crate) fn spec(
    name: &str,
    kind: Kind,
    tables: &IpTables,
    counts: &Arc<HeldCounts>,
    pool: &Arc<BufferPool>,
) -> NodeSpec {
    let (tables, counts, pool) = (tables.clone(), counts.clone(), pool.clone());
    let make = move |wiring: &Wiring<'_>| -> Box<dyn Node> {
        let onward = match kind.payload() {
            Payload::Ip4 => {
                [nodes::ip4::REWRITE, nodes::ip4::CONFIRM_NEIGHBOR, nodes::ip4::ADJACENCY_COUNTER]
            }
            Payload::Ip6 => {
                [nodes::ip6::REWRITE, nodes::ip6::CONFIRM_NEIGHBOR, nodes::ip6::ADJACENCY_COUNTER]
            }
            Payload::Labelled => {
                [nodes::mpls::OUTPUT, nodes::mpls::CONFIRM_NEIGHBOR, nodes::mpls::ADJACENCY_COUNTER]
            }
        };
        for next in onward {
            wiring.node_if_built(next); // where the FIB says that neighbours are
        }
        Box::new(Ask {
            kind,
            tables: tables.clone(),
            error: wiring.node(match kind.payload() {
                Payload::Ip6 => nodes::ip6::ICMP_ERROR,
                Payload::Ip4 | Payload::Labelled => nodes::ip4::ICMP_ERROR,
            }),
            told: Recent::new(NOTIFY_INTERVAL_NS),
            asked: Recent::new(ASK_INTERVAL_NS),
            shares: Shares::new(ASKS_PER_SECOND, ASKS_PER_INTERFACE_SECOND, ASKS_BURST),
            room: PendingQueue::new(&counts),
            pool: pool.clone(),
            counts: counts.clone(),
        })
    };
    NodeSpec::new(
        name,
        "Asks for a neighbour's MAC address, and keeps packets until it is known",
        make,
    )
    .takes_offloads()
    .reasons::<AskDrop>()
    .describe(move |record, names| {
        let words = kind.payload().describe();
        let (words, tx) = (words(record.bytes()), names.interface(record.tx));
        let next = names.node(record.next);
        let what = match record.next {
            next if next == record.node => "it waits".to_owned(),
            DROP => names.reason(record.drop_reason()),
            _ => format!("to {next}"),
        };
        format!("{words}, whose next hop on {tx} is unknown: {what}")
    })
}
