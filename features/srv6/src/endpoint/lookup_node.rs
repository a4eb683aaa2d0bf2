//! Nodes of SIDs that look an address up in a table. A SID entry is read once for all packets of a
//! vector that go to it, and their addresses are looked up together. Other packets take the slow
//! path, one by one.

use quiver_core::cpu::Variant;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;

use super::lookup_keys::{self, LookupKey};
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
    fn next_nodes(&self) -> &NextNodes;

    /// Read a line.
    fn sid(&self, line: SidEntryRef<'_>) -> Self::Sid;

    /// The look-up key of a packet to `sid`, which is counted in `good`; the default for a packet
    /// that takes the slow path.
    fn lookup_key(
        &self,
        line: SidEntryRef<'_>,
        sid: Self::Sid,
        good: &mut Good,
        packet: &mut Packet,
    ) -> LookupKey;

    /// Where a packet goes by what was found.
    fn on(&self, lookup_key: LookupKey, found: GroupId, packet: &mut Packet) -> NodeId;

    /// The same for packets that all go one way, if they do.
    fn on_together(&self, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId>;

    /// What becomes of a packet that is not plain.
    fn slow_path(
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
fn slow_path<N: HasLookup>(
    at: &N,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Result<NodeId, LocalSidDrop> {
    let (line, bytes) = (at.next_nodes().entry(packet), packet.length());
    let outcome = at.slow_path(context, line, packet);
    at.next_nodes().resolve(context, line.0, outcome, bytes, packet)
}

impl<N: HasLookup> LookUp for LookupNode<N> {
    const NAME: &'static str = N::NODE;
    const SORTS: bool = N::SORTS;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type Key = LookupKey;
    type Found = GroupId;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.0.next_nodes().prefetch_entry(packet);
    }

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> LookupKey {
        let (line, mut good) = (self.0.next_nodes().entry(packet), Good::default());
        let lookup_key = self.0.lookup_key(line, self.0.sid(line), &mut good, packet);
        good.count(line.0);
        lookup_key
    }

    #[inline(always)]
    fn keys(&self, (): (), packets: &mut [Packet], keys: &mut [LookupKey]) {
        let Some(first) = packets.first() else { return };
        let (line, mut good) = (self.0.next_nodes().entry(first), Good::default());
        let sid = self.0.sid(line);
        for (packet, key) in packets.iter_mut().zip(keys) {
            *key = self.0.lookup_key(line, sid, &mut good, packet);
        }
        good.count(line.0);
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[LookupKey], found: &mut [GroupId]) {
        lookup_keys::find(&self.0.next_nodes().tables, variant, keys, found);
    }

    #[inline(always)]
    fn resolve_all(
        &self,
        _: StageContext<'_>,
        (): (),
        found: &[GroupId],
        packets: &mut [Packet],
    ) -> Option<NodeId> {
        self.0.on_together(found, packets)
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        (): (),
        lookup_key: LookupKey,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        match lookup_key.is_nothing() {
            true => slow_path(&self.0, context, packet),
            false => Ok(self.0.on(lookup_key, found, packet)),
        }
    }
}
