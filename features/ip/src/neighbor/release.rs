//! What becomes of packets that wait for a neighbour's MAC address, once it is known or given up:
//! the control thread says so to every worker, and they let go of what waits in their nodes
//! ([`crate::neighbor::pending_packets`]).
//!
//! A packet goes to the neighbour that it waited for, by the way that the control thread names, and
//! is not looked up again: what a policy sent to that neighbour would come by the routes otherwise.

use std::net::IpAddr;

use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, NodeId, Packet, WorkerId};
use quiver_forwarding::fib::{Fib, Link};
use quiver_forwarding::next_hop_group::Hop;
use quiver_forwarding::nodes;
use quiver_forwarding::requests::IcmpErrorRequest;
use quiver_wire::ip6::extension;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, icmp4, icmp6};

use crate::neighbor::resolution::Ask;
use crate::notifications::{Answer, Notification, PingError};

/// The nodes that packets wait in.
pub(crate) const NODES: [&str; 5] = [
    nodes::ip4::ARP,
    nodes::ip4::GLEAN,
    nodes::ip6::DISCOVER_NEIGHBOR,
    nodes::ip6::GLEAN,
    nodes::mpls::RESOLVE_NEIGHBOR,
];
/// Neighbours that a worker hears of by one worker call, at most.
const RELEASES_PER_WORKER_CALL: usize = 64;

/// Host unreachable (RFC 1812 §5.2.7.1), address unreachable (RFC 4861 §7.2.2).
pub(crate) fn unreachable(six: bool) -> IcmpErrorRequest {
    let (kind, code) = if six {
        (icmp6::kind::DESTINATION_UNREACHABLE, icmp6::unreachable::ADDRESS)
    } else {
        (icmp4::kind::DESTINATION_UNREACHABLE, icmp4::unreachable::HOST)
    };
    IcmpErrorRequest { kind, code, detail: 0 }
}

/// The wait for a neighbour is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    /// Behind which interface.
    pub on: InterfaceId,
    /// Whose.
    pub target: IpAddr,
    /// By which node and adjacency IPv4, IPv6 and labelled packets reach it; none when it cannot be
    /// reached.
    pub ways: [Option<Hop>; 3],
}

impl Release {
    /// It does not answer.
    pub fn given_up(on: InterfaceId, target: IpAddr) -> Release {
        Release { on, target, ways: [None; 3] }
    }

    /// It is known.
    pub fn known(fib: &Fib, on: InterfaceId, target: IpAddr) -> Release {
        let way = |payload: Link| fib.neighbour_hop(payload, on, target);
        Release { on, target, ways: [Link::Ip4, Link::Ip6, Link::Mpls].map(way) }
    }
}

fn nodes(engine: &Engine) -> [Option<NodeId>; NODES.len()] {
    NODES.map(|name| engine.node_id(name))
}

/// Have a worker call work with each node of each worker that packets wait in.
fn visit_all(
    engine: &mut Engine,
    work: impl Fn(&mut Ask, &mut quiver_core::Context<'_>) + Clone + Send + 'static,
) {
    let nodes = nodes(engine);
    for worker in 0..engine.worker_count() {
        let work = work.clone();
        // A worker that stalls is told nothing: what waits there is forgotten by its age.
        engine.post(WorkerId(worker as u16), move |worker: &mut Worker| {
            for node in nodes.into_iter().flatten() {
                worker.visit(node, |ask: &mut Ask, cx| work(ask, cx));
            }
        });
    }
}

/// Let packets go on whose neighbour is known, and tell the senders of the others.
pub(crate) fn release(engine: &mut Engine, releases: &[Release]) {
    for some in releases.chunks(RELEASES_PER_WORKER_CALL) {
        let some: std::sync::Arc<[Release]> = some.into();
        visit_all(engine, move |ask, cx| some.iter().for_each(|release| ask.release(cx, release)));
    }
}

/// An interface is gone, and with it what came in or would leave by it.
pub(crate) fn forget_interface(engine: &mut Engine, id: InterfaceId) {
    visit_all(engine, move |ask, cx| ask.forget_interface(cx, id));
}

/// What a ping of ours is told when its request is this packet, which reaches nobody.
pub(crate) fn unreachable_ping(packet: &Packet, six: bool) -> Option<Notification> {
    let request = unreachable(six);
    let (from, about, offset): (IpAddr, IpAddr, usize) = if six {
        let (header, behind) = Ip6Header::split(packet.bytes())?;
        let upper = extension::upper_layer(header.next_header(), behind).ok()?;
        let is_later = upper.fragment.is_some_and(|fragment| fragment.offset != 0);
        let is_icmp = upper.protocol == IpProtocol::ICMP6 && !is_later;
        is_icmp.then_some((
            header.source().into(),
            header.destination().into(),
            Ip6Header::LEN + upper.offset,
        ))
    } else {
        let header = Ip4Header::overlay(packet.bytes())?;
        let is_icmp = header.protocol() == IpProtocol::ICMP && header.fragment_offset() == 0;
        is_icmp.then_some((
            header.source().into(),
            header.destination().into(),
            header.header_len(),
        ))
    }?;
    let echo = if six { icmp6::kind::ECHO_REQUEST } else { icmp4::kind::ECHO_REQUEST };
    let [kind, _, _, _, a, b, c, d, ..] = *packet.bytes().get(offset..)? else { return None };
    let error = PingError { kind: request.kind, code: request.code, mtu_bytes: 0, about };
    (kind == echo).then_some(Notification::Ping {
        identifier: u16::from_be_bytes([a, b]),
        sequence: u16::from_be_bytes([c, d]),
        from,
        answer: Answer::Error(error),
        hops: 0,
        bytes: 0,
    })
}
