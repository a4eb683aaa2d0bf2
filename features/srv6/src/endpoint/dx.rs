//! End.DX4 and End.DX6 (RFC 8986 §4.4, §4.5): the inner packet goes to a neighbour that the SID
//! names.

use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::{Args, Refusal};
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, Engine, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated::InnerDestination;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6, choose};
use quiver_forwarding::nodes;
use quiver_tables::CountedLines;
use quiver_wire::IpProtocol;

use super::adjacent::Adjacent;
use super::inner_packet::Inside;
use super::inner_packet::parse_inner;
use super::next_nodes::NextNodes;
use super::reasons::{Bad, LocalSidDrop};
use super::sid_entry::{SidEntry, SidEntryRef};
use crate::local_sids::{Behavior, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-dx";

/// The control side.
#[derive(Debug)]
struct EndDx {
    family: Family,
    to: Adjacent,
}

impl Behavior for EndDx {
    fn words(&self, names: &Names<'_>) -> String {
        let name = if self.family == Family::Ip4 { "end.dx4" } else { "end.dx6" };
        format!("{name}{}", self.to.words(names))
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.DX4 is not built in"))?;
        let group = self.to.hold(engine, place, self.family)?;
        let entry = match self.family {
            Family::Ip4 => SidEntry { four: group, ..SidEntry::default() },
            Family::Ip6 => SidEntry { six: group, ..SidEntry::default() },
        };
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.to.release(engine);
    }

    fn names(&self, interface: InterfaceId) -> bool {
        self.to.names(interface)
    }
}

/// `sr-localsid-dx`, a packet's part of it.
pub struct DecapsulateCross {
    next_nodes: NextNodes,
}

impl DecapsulateCross {
    /// The inner packet, if it is of the SID's family, goes to the neighbour.
    fn send(
        &self,
        line: SidEntryRef<'_>,
        inside: Inside,
        packet: &mut Packet,
    ) -> Option<Result<NodeId, Bad>> {
        let (groups, came) = (&self.next_nodes.tables.groups, packet.on_wire());
        let (outcome, next) = match inside.protocol {
            IpProtocol::IPV4 if line.four() != 0 => (
                self.next_nodes.expose4(inside.at, packet),
                choose::<Ip4>(groups, line.group4(), packet),
            ),
            IpProtocol::IPV6 if line.six() != 0 => (
                self.next_nodes.expose6(inside.at, packet),
                choose::<Ip6>(groups, line.group6(), packet),
            ),
            _ => return None,
        };
        Some(outcome.map(|()| {
            self.next_nodes.good_on_wire(line.0, came);
            next
        }))
    }

    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let (line, came) = (self.next_nodes.entry(packet), packet.on_wire());
        let outcome = self.next_nodes.last(context, packet).and_then(|upper| {
            let inside = Inside { protocol: upper.protocol, at: upper.at };
            let sent = if upper.is_fragment { None } else { self.send(line, inside, packet) };
            sent.unwrap_or_else(|| self.next_nodes.upper(context, line, upper, packet))
        });
        self.next_nodes.resolve(context, line.0, outcome, came, packet)
    }
}

impl Stage for DecapsulateCross {
    const NAME: &'static str = NODE;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.next_nodes.prefetch_entry(packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let (line, groups) = (self.next_nodes.entry(packet), &self.next_nodes.tables.groups);
        let (taken, bytes) = ((line.four() != 0, line.six() != 0), packet.length());
        let next = match parse_inner(packet, taken) {
            Some(InnerDestination::Ip4(_)) => choose::<Ip4>(groups, line.group4(), packet),
            Some(InnerDestination::Ip6(_)) => choose::<Ip6>(groups, line.group6(), packet),
            None => return self.slow_path(context, packet),
        };
        self.next_nodes.good(line.0, bytes);
        Ok(next)
    }
}

/// The declaration of the node.
pub(crate) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::stage("End.DX4, End.DX6: inner packets to a neighbour", move |wiring| {
        for name in [nodes::ip4::REWRITE, nodes::ip4::ARP, nodes::ip4::DROP] {
            wiring.node(name);
        }
        DecapsulateCross { next_nodes: NextNodes::new(wiring, &lines) }
    })
    .takes_offloads()
    .describe(super::description::record)
}

/// End.DX4 or End.DX6, to one neighbour.
pub(crate) fn dx(family: Family, next_hop: IpAddr, on: InterfaceId) -> Box<dyn Behavior> {
    Box::new(EndDx { family, to: Adjacent::to(Some((next_hop, on))) })
}

fn make4(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(Box::new(EndDx { family: Family::Ip4, to: Adjacent::of(engine, args)? }))
}

fn make6(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(Box::new(EndDx { family: Family::Ip6, to: Adjacent::of(engine, args)? }))
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 2] = [
    Kind {
        name: "end.dx4",
        syntax: "(<interface> <next-hop:ip>)...",
        help: "inner IPv4 packets to this neighbour or one of several",
        words: &[],
        example: "end.dx4 e0 10.0.0.2",
        make: make4,
    },
    Kind {
        name: "end.dx6",
        syntax: "(<interface> <next-hop:ip>)...",
        help: "inner IPv6 packets to this neighbour or one of several",
        words: &[],
        example: "end.dx6 e0 2001:db8::2",
        make: make6,
    },
];
