//! Nodes of SIDs that look an address up in a table. A SID entry is read once for all packets of a
//! vector that go to it, and their addresses are looked up together. Other packets take the slow
//! path, one by one.

use std::marker::PhantomData;

use quiver_core::cpu::Variant;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::IpTables;
use quiver_tables::GroupId;

use super::next_nodes::{Good, NextNodes};
use super::reasons::{Bad, LocalSidDrop};
use super::sid_entry::SidEntryRef;

/// The key of a packet at a SID. The default is nothing: the packet takes the slow path.
pub trait SidKey: Copy + Default + Send + 'static {
    /// Does the packet take the slow path?
    fn is_nothing(self) -> bool;

    /// Look all up.
    fn find(tables: &IpTables, variant: Variant, keys: &[Self], found: &mut [GroupId]);
}

/// What is done at a SID that asks.
pub(crate) trait HasLookup<K: SidKey>: Send + 'static {
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
    ) -> K;

    /// Where a packet goes by what was found. Nothing when it takes the slow path: then
    /// neither this nor [`lookup_key`](Self::lookup_key) has changed it.
    fn on(&self, lookup_key: K, found: GroupId, packet: &mut Packet) -> Option<NodeId>;

    /// The same for packets that all go one way, if they do.
    #[inline(always)]
    fn on_together(&self, found: &[GroupId], packets: &mut [Packet]) -> Option<NodeId> {
        let _ = (found, packets);
        None
    }

    /// What becomes of a packet that is not plain.
    fn slow_path(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad>;
}

/// The node that does it.
pub struct LookupNode<N, K>(N, PhantomData<K>);

impl<N, K> LookupNode<N, K> {
    pub(crate) fn new(at: N) -> Self {
        LookupNode(at, PhantomData)
    }
}

/// Packets that are not plain.
#[cold]
#[inline(never)]
fn slow_path<K: SidKey, N: HasLookup<K>>(
    at: &N,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Result<NodeId, LocalSidDrop> {
    let (line, came) = (at.next_nodes().entry(packet), packet.on_wire());
    let outcome = at.slow_path(context, line, packet);
    at.next_nodes().resolve(context, line.0, outcome, came, packet)
}

impl<K: SidKey, N: HasLookup<K>> LookUp for LookupNode<N, K> {
    const NAME: &'static str = N::NODE;
    const SORTS: bool = N::SORTS;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type Key = K;
    type Found = GroupId;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.0.next_nodes().prefetch_entry(packet);
    }

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> K {
        let (line, mut good) = (self.0.next_nodes().entry(packet), Good::default());
        let lookup_key = self.0.lookup_key(line, self.0.sid(line), &mut good, packet);
        good.count(line.0);
        lookup_key
    }

    #[inline(always)]
    fn keys(&self, (): (), packets: &mut [Packet], keys: &mut [K]) {
        let Some(first) = packets.first() else { return };
        let (line, mut good) = (self.0.next_nodes().entry(first), Good::default());
        let sid = self.0.sid(line);
        for (packet, key) in packets.iter_mut().zip(keys) {
            *key = self.0.lookup_key(line, sid, &mut good, packet);
        }
        good.count(line.0);
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[K], found: &mut [GroupId]) {
        K::find(&self.0.next_nodes().tables, variant, keys, found);
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
        lookup_key: K,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let next =
            if lookup_key.is_nothing() { None } else { self.0.on(lookup_key, found, packet) };
        match next {
            Some(next) => Ok(next),
            None => slow_path::<K, N>(&self.0, context, packet),
        }
    }
}
