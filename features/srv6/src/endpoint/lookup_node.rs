//! The nodes of SIDs whose packets ask a table. What a SID says is read once for packets that go to it together, all
//! addresses are looked up at once, and what is not plain is looked at closer, one by one.

use quiver_core::cpu::Variant;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;

use super::lookup_keys::{self, Asked};
use super::next_nodes::{Good, NextNodes};
use super::reasons::{Bad, LocalSidDrop};
use super::sid_entry::SidEntryRef;

/// What is done at a SID that asks.
pub(crate) trait HasLookup: Send + 'static {
    /// The node.
    const NODE: &'static str;
    /// Does it bring packets to light that may be of another family?
    const SORTS: bool = false;
    /// What it reads of a SID's line.
    type Sid: Copy;

    /// What all nodes of SIDs have.
    fn ways(&self) -> &NextNodes;

    /// Read a line.
    fn sid(&self, line: SidEntryRef<'_>) -> Self::Sid;

    /// What is asked for a packet to `sid`, which is `good` then; nothing for one that must be looked at closer.
    fn asked(&self, line: SidEntryRef<'_>, sid: Self::Sid, good: &mut Good, packet: &mut Packet) -> Asked;

    /// Where a packet goes by what was found.
    fn on(&self, asked: Asked, found: GroupId, packet: &mut Packet) -> NodeId;

    /// The same for packets that all go one way, if they do.
    fn on_together(&self, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId>;

    /// What becomes of a packet that is not plain.
    fn closer(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad>;
}

/// The node that does it.
pub struct LookupNode<N>(pub(crate) N);

/// Packets that are not plain.
#[cold]
#[inline(never)]
fn closer<N: HasLookup>(
    at: &N,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Result<NodeId, LocalSidDrop> {
    let (line, bytes) = (SidEntryRef(at.ways().lines.line(packet.index)), packet.length());
    let outcome = at.closer(context, line, packet);
    at.ways().settle(context, line.0, outcome, bytes, packet)
}

impl<N: HasLookup> LookUp for LookupNode<N> {
    const NAME: &'static str = N::NODE;
    const SORTS: bool = N::SORTS;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type Key = Asked;
    type Found = GroupId;
    type Common = ();

    fn common(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.0.ways().lines.prefetch(packet.index);
    }

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Asked {
        let (line, mut good) = (SidEntryRef(self.0.ways().lines.line(packet.index)), Good::default());
        let asked = self.0.asked(line, self.0.sid(line), &mut good, packet);
        good.count(line.0);
        asked
    }

    #[inline(always)]
    fn keys(&self, (): (), packets: &mut [Packet], keys: &mut [Asked]) {
        let Some(first) = packets.first() else { return };
        let (line, mut good) = (SidEntryRef(self.0.ways().lines.line(first.index)), Good::default());
        let sid = self.0.sid(line);
        for (packet, key) in packets.iter_mut().zip(keys) {
            *key = self.0.asked(line, sid, &mut good, packet);
        }
        good.count(line.0);
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[Asked], found: &mut [GroupId]) {
        lookup_keys::find(&self.0.ways().tables, variant, keys, found);
    }

    #[inline(always)]
    fn resolve_all(&self, (): (), found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId> {
        self.0.on_together(found, packets)
    }

    #[inline(always)]
    fn settle(
        &self,
        context: StageContext<'_>,
        (): (),
        asked: Asked,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        match asked.is_nothing() {
            true => closer(&self.0, context, packet),
            false => Ok(self.0.on(asked, found, packet)),
        }
    }
}
