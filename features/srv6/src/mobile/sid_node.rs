//! The nodes of gateways' local SIDs. Each packet is forwarded, dropped or answered with an ICMP
//! error, and counted for its SID. On the fast path, packets are looked up together. On the slow
//! path, they are handled one by one.

use quiver_core::cpu::Variant;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_tables::GroupId;

use super::lookup_keys::{self, LookupKeys};
use crate::endpoint::next_nodes::NextNodes;
use crate::endpoint::reasons::{Bad, LocalSidDrop};
use crate::endpoint::sid_entry::SidEntryRef;

/// What is done at a SID.
pub(crate) trait SidNode: Send + 'static {
    /// The node.
    const NODE: &'static str;
    /// Does it look IPv4 destinations up?
    const FOUR: bool = false;

    /// Where packets go.
    fn next_nodes(&self) -> &NextNodes;

    /// The look-up keys of a packet. `None`, and nothing changes, for a packet that takes the slow
    /// path.
    fn ask(&self, line: SidEntryRef<'_>, packet: &mut Packet) -> Option<LookupKeys>;

    /// Send such a packet to the group that was found. `None` for a packet that takes the slow
    /// path: neither this nor [`ask`](Self::ask) has changed it.
    fn go(
        &self,
        line: SidEntryRef<'_>,
        asking: LookupKeys,
        found: GroupId,
        packet: &mut Packet,
    ) -> Option<NodeId>;

    /// Send any packet on, step by step.
    fn send(
        &self,
        context: StageContext<'_>,
        line: SidEntryRef<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Bad>;
}

/// The node that does it.
pub struct Gateway<B>(pub(super) B);

/// Packets that are not plain.
#[cold]
#[inline(never)]
fn slow_path<B: SidNode>(
    at: &B,
    context: StageContext<'_>,
    packet: &mut Packet,
) -> Result<NodeId, LocalSidDrop> {
    let (line, bytes) = (at.next_nodes().entry(packet), packet.length());
    let outcome = at.send(context, line, packet);
    at.next_nodes().resolve(context, line.0, outcome, bytes, packet)
}

impl<B: SidNode> LookUp for Gateway<B> {
    const NAME: &'static str = B::NODE;
    const LOOKS_BEHIND: bool = true;
    type Reason = LocalSidDrop;
    type Key = LookupKeys;
    type Found = GroupId;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn ahead(&self, packet: &Packet) {
        self.0.next_nodes().prefetch_entry(packet);
    }

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> LookupKeys {
        self.0.ask(self.0.next_nodes().entry(packet), packet).unwrap_or_default()
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[LookupKeys], found: &mut [GroupId]) {
        match B::FOUR {
            true => lookup_keys::find::<true>(&self.0.next_nodes().tables, variant, keys, found),
            false => lookup_keys::find::<false>(&self.0.next_nodes().tables, variant, keys, found),
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        (): (),
        asking: LookupKeys,
        found: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, LocalSidDrop> {
        let line = self.0.next_nodes().entry(packet);
        let next = if asking.is_nothing() { None } else { self.0.go(line, asking, found, packet) };
        match next {
            Some(next) => Ok(next),
            None => slow_path(&self.0, context, packet),
        }
    }
}
