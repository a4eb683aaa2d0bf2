//! The nodes of compressed SIDs, alike for both flavours: beside what the plain SID's node does,
//! they go from one C-SID to the next.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{Stage, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip6, choose};
use quiver_tables::{CountedLines, GroupId};

use super::step::{Compression, Flavor, Step, take};
use crate::endpoint::lookup_keys::LookupKey;
use crate::endpoint::lookup_node::{HasLookup, LookupNode};
use crate::endpoint::next_nodes::{Good, NextNodes};
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::sid_entry::SidEntryRef;
use crate::endpoint::{CrossConnect, NextSegment, description};
use crate::local_sids::Flavors;

/// End and End.T.
pub type Compressed<F> = LookupNode<NextDestination<F>, LookupKey>;

/// HasLookup for the next destination.
pub struct NextDestination<F> {
    plain: NextSegment,
    flavor: PhantomData<F>,
}

/// End.X.
pub struct CompressedCross<F> {
    plain: CrossConnect,
    flavor: PhantomData<F>,
}

/// Count a packet that is not plain, and let it make its step.
fn go(
    context: StageContext<'_>,
    next_nodes: &NextNodes,
    line: SidEntryRef<'_>,
    step: Step,
    packet: &mut Packet,
) {
    if step.list.is_some() {
        next_nodes.watch(context, packet);
    }
    next_nodes.good_on_wire(line.0, packet.on_wire());
    take(Compression::of(line), step, packet);
}

/// Does a packet that is not plain go past the compressed SID, to what the flavour USD does?
#[inline(never)]
fn ends<F: Flavor>(line: SidEntryRef<'_>, packet: &Packet) -> bool {
    line.flavors().has(Flavors::USD) && F::slow_path(line, packet) == Ok(None)
}

impl<F: Flavor> HasLookup<LookupKey> for NextDestination<F> {
    const NODE: &'static str = F::NODE;
    /// What the step needs, and which table is asked.
    type Sid = (Compression, u32);

    #[inline(always)]
    fn next_nodes(&self) -> &NextNodes {
        &self.plain.next_nodes
    }

    #[inline(always)]
    fn sid(&self, line: SidEntryRef<'_>) -> (Compression, u32) {
        (Compression::of(line), line.six())
    }

    #[inline(always)]
    fn lookup_key(
        &self,
        line: SidEntryRef<'_>,
        (sid, six): (Compression, u32),
        good: &mut Good,
        packet: &mut Packet,
    ) -> LookupKey {
        let Some(step) = F::plain(sid, packet) else {
            return match ends::<F>(line, packet) {
                true => self.plain.inner(line, packet),
                false => LookupKey::default(),
            };
        };
        good.add(packet.length());
        take(sid, step, packet);
        LookupKey::six(six, step.to)
    }

    #[inline(always)]
    fn on(&self, lookup_key: LookupKey, found: GroupId, packet: &mut Packet) -> Option<NodeId> {
        Some(self.plain.next_nodes.on(lookup_key, found, packet))
    }

    #[inline(always)]
    fn on_together(&self, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId> {
        self.plain.next_nodes.six_all(found, packets)
    }

    fn slow_path(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad> {
        let plain = &self.plain;
        let Some(step) = F::slow_path(line, packet)? else {
            return plain.slow_path(context, line, packet);
        };
        go(context, &plain.next_nodes, line, step, packet);
        let group = plain.next_nodes.tables.ip6.table(line.six()).lookup(step.to);
        Ok(plain.next_nodes.six(group, packet))
    }
}

/// Packets that are not plain.
#[cold]
#[inline(never)]
fn slow_path<F: Flavor>(
    plain: &CrossConnect,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Result<NodeId, LocalSidDrop> {
    let (line, came) = (plain.next_nodes.entry(packet), packet.on_wire());
    let outcome = slow_path_outcome::<F>(plain, context, line, packet);
    plain.next_nodes.resolve(context, line.0, outcome, came, packet)
}

fn slow_path_outcome<F: Flavor>(
    plain: &CrossConnect,
    context: StageContext<'_>,
    line: SidEntryRef<'_>,
    packet: &mut Packet,
) -> Result<NodeId, Bad> {
    let Some(step) = F::slow_path(line, packet)? else {
        return plain.slow_path_outcome(context, line, packet);
    };
    go(context, &plain.next_nodes, line, step, packet);
    Ok(choose::<Ip6>(&plain.next_nodes.tables.groups, line.group6(), packet))
}

impl<F: Flavor> Stage for CompressedCross<F> {
    const NAME: &'static str = F::NODE_X;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    fn ahead(&self, packet: &Packet) {
        self.plain.next_nodes.prefetch_entry(packet);
    }

    #[inline(always)]
    fn decide(
        &self,
        context: StageContext<'_>,
        (): (),
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let line = self.plain.next_nodes.entry(packet);
        let sid = Compression::of(line);
        let Some(step) = F::plain(sid, packet) else {
            let inner = if ends::<F>(line, packet) { self.plain.inner(line, packet) } else { None };
            return inner.map_or_else(|| slow_path::<F>(&self.plain, context, packet), Ok);
        };
        self.plain.next_nodes.good(line.0, packet.length());
        take(sid, step, packet);
        Ok(choose::<Ip6>(&self.plain.next_nodes.tables.groups, line.group6(), packet))
    }
}

/// The declaration of End's and End.T's node.
pub(crate) fn spec<F: Flavor>(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::look_up(F::HELP, move |wiring| {
        let plain = NextSegment::new(wiring, &lines);
        LookupNode::new(NextDestination::<F> { plain, flavor: PhantomData })
    })
    .takes_offloads()
    .describe(description::record)
}

/// The declaration of End.X's node.
pub(crate) fn spec_x<F: Flavor>(lines: &Arc<CountedLines>) -> NodeSpec {
    let lines = lines.clone();
    NodeSpec::stage(F::HELP, move |wiring| {
        let plain = CrossConnect::new(wiring, &lines);
        CompressedCross::<F> { plain, flavor: PhantomData }
    })
    .takes_offloads()
    .describe(description::record)
}
