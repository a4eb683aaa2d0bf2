//! End.X (RFC 8986 §4.2): to the next segment, by a neighbour that the SID names.

use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::{Args, Refusal};
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, Engine, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated::InnerDestination;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6, choose};
use quiver_tables::CountedLines;
use quiver_wire::IpProtocol;

use super::adjacent::Adjacent;
use super::inner_packet::parse_inner;
use super::next_nodes::NextNodes;
use super::reasons::{Bad, LocalSidDrop};
use super::segments;
use super::sid_entry::{SidEntry, SidEntryRef};
use super::slow_path::Matter;
use crate::local_sids::{Behavior, Flavors, Held, Kind, Names, Place};

/// The node.
pub(crate) const NODE: &str = "sr-localsid-x";

/// The control side.
#[derive(Debug)]
struct EndX {
    to: Adjacent,
    flavors: Flavors,
}

impl Behavior for EndX {
    fn words(&self, names: &Names<'_>) -> String {
        format!("end.x{}{}", self.to.words(names), self.flavors.words())
    }

    fn hold(&mut self, engine: &mut Engine, place: Place) -> Result<Held, Refusal> {
        let node = engine
            .node_id(NODE)
            .ok_or_else(|| Refusal::new("the node of End.X is not built in"))?;
        let six = self.to.hold(engine, place, Family::Ip6)?;
        let four = match self.flavors.has(Flavors::USD) {
            true => self.to.hold(engine, place, Family::Ip4)?,
            false => 0,
        };
        let entry =
            SidEntry { flavors: self.flavors.bits().into(), six, four, ..SidEntry::default() };
        Ok(Held { node, words: entry.words() })
    }

    fn release(&mut self, engine: &mut Engine) {
        self.to.release(engine);
    }

    fn names(&self, interface: InterfaceId) -> bool {
        self.to.names(interface)
    }
}

/// `sr-localsid-x`, a packet's part of it.
pub struct CrossConnect {
    pub(crate) next_nodes: NextNodes,
}

impl CrossConnect {
    pub(crate) fn new(wiring: &Wiring<'_>, lines: &CountedLines) -> CrossConnect {
        CrossConnect { next_nodes: NextNodes::new(wiring, lines) }
    }

    /// Where the inner packet goes, which alone is left, if nothing is unusual about either; else
    /// nothing happens (USD: RFC 8986 §4.16.3).
    #[inline(never)]
    pub(crate) fn inner(&self, line: SidEntryRef<'_>, packet: &mut Packet) -> Option<NodeId> {
        if !line.flavors().has(Flavors::USD) {
            return None;
        }
        let (bytes, groups) = (packet.length(), &self.next_nodes.tables.groups);
        let next = match parse_inner(packet, (true, true))? {
            InnerDestination::Ip4(_) => choose::<Ip4>(groups, line.group4(), packet),
            InnerDestination::Ip6(_) => choose::<Ip6>(groups, line.group6(), packet),
        };
        self.next_nodes.good(line.0, bytes);
        Some(next)
    }

    /// Packets that are not plain.
    #[cold]
    #[inline(never)]
    fn slow_path(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let (line, came) = (self.next_nodes.entry(packet), packet.on_wire());
        let outcome = self.slow_path_outcome(context, line, packet);
        self.next_nodes.resolve(context, line.0, outcome, came, packet)
    }

    /// The outcome of a packet on the slow path.
    pub(crate) fn slow_path_outcome(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let (groups, flavors, came) =
            (&self.next_nodes.tables.groups, line.flavors(), packet.on_wire());
        match self.next_nodes.matter(context, packet)? {
            Matter::Segments { srh, next } => {
                self.next_nodes.advance(line, srh, next, packet);
                Ok(choose::<Ip6>(groups, line.group6(), packet))
            }
            Matter::Upper(upper)
                if upper.is_inner(IpProtocol::IPV6) && flavors.has(Flavors::USD) =>
            {
                self.next_nodes.expose6(upper.at, packet)?;
                self.next_nodes.good_on_wire(line.0, came);
                Ok(choose::<Ip6>(groups, line.group6(), packet))
            }
            Matter::Upper(upper)
                if upper.is_inner(IpProtocol::IPV4) && flavors.has(Flavors::USD) =>
            {
                self.next_nodes.expose4(upper.at, packet)?;
                self.next_nodes.good_on_wire(line.0, came);
                Ok(choose::<Ip4>(groups, line.group4(), packet))
            }
            Matter::Upper(upper) => self.next_nodes.upper(context, line, upper, packet),
        }
    }
}

impl Stage for CrossConnect {
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
        let (line, bytes) = (self.next_nodes.entry(packet), packet.length());
        if segments::step_if_plain(packet, line.flavors().has(Flavors::PSP)) == 0 {
            return self.inner(line, packet).map_or_else(|| self.slow_path(context, packet), Ok);
        }
        self.next_nodes.good(line.0, bytes);
        Ok(choose::<Ip6>(&self.next_nodes.tables.groups, line.group6(), packet))
    }
}

/// The declaration of the node.
pub(crate) fn spec(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::stage("End.X: to the next segment by a neighbour", move |wiring| {
        CrossConnect::new(wiring, &lines)
    })
    .takes_offloads()
    .describe(super::description::record)
}

/// End.X, to one neighbour.
pub(crate) fn end_x(next_hop: IpAddr, on: InterfaceId, flavors: Flavors) -> Box<dyn Behavior> {
    Box::new(EndX { to: Adjacent::to(Some((next_hop, on))), flavors })
}

/// Of a command's words.
pub(crate) fn make(engine: &mut Engine, args: &Args<'_>) -> Result<Box<dyn Behavior>, Refusal> {
    Ok(Box::new(EndX { to: Adjacent::of(engine, args)?, flavors: Flavors::of(args) }))
}

/// What the command knows.
pub(crate) const KINDS: [Kind; 1] = [Kind {
    name: "end.x",
    syntax: "(<interface> <next-hop:ip>)... {[psp] [usp] [usd]}",
    help: "to the next segment, by this neighbour or one of several",
    words: &[("next-hop", "a neighbour on that interface")],
    example: "end.x e0 2001:db8::2 psp",
    make,
}];
