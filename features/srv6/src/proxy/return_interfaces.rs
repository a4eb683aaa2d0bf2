//! What workers know of a return interface.

use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::graph::counters::{INTERFACES_MAX, PerWorker};
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};

use super::cached_header::CachedHeader;
use super::flows::Flows;
use super::outer_header::OuterHeader;

/// Packets that came back, their bytes, packets of them that died or were answered, and their
/// bytes; bytes from the inner IP or Ethernet header on.
pub(super) type Counts = PerWorker<4>;

/// What is done with packets that come back.
#[derive(Debug)]
pub(super) enum Around {
    /// End.AS: these headers go in front.
    Fixed(Box<OuterHeader>),
    /// End.AD.Flow: those of the last packet of their flow to the SID go in front.
    Flows(Box<Flows>),
    /// End.AD: those of the last packet to the SID go in front.
    CachedHeader(Box<CachedHeader>),
    /// End.AM: their active segment becomes their destination again. With `nat`, the destination
    /// that the function gave them becomes the last segment. Packets without segments get those
    /// that are `kept` of the last packet to the SID, if they are to be kept.
    Masked { nat: bool, kept: Option<Box<CachedHeader>> },
}

/// The return interface of a SID.
pub(super) struct Back {
    pub around: Around,
    /// The table in which the next segment is looked up.
    pub table: u32,
    pub counts: Arc<Counts>,
}

/// What comes back by an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coming {
    /// IPv4 packets.
    Ip4 = 0,
    /// IPv6 packets.
    Ip6 = 1,
    /// All frames.
    Frames = 2,
}

/// How many kinds there are.
const KINDS: usize = 3;

/// By interface and what comes back by it. Replaced one by one.
pub(super) struct BackTable(PublishedSlots<Back>);

/// Shared with workers.
pub(super) type Backs = Arc<BackTable>;

impl BackTable {
    /// None.
    pub fn new(epochs: &Arc<Epochs>) -> BackTable {
        BackTable(PublishedSlots::new(epochs, KINDS * INTERFACES_MAX))
    }

    fn slot(interface: InterfaceId, coming: Coming) -> usize {
        interface.index().saturating_mul(KINDS).saturating_add(coming as usize)
    }

    /// What is known of an interface, if it is a return interface.
    #[inline(always)]
    pub fn read<'p>(
        &self,
        interface: InterfaceId,
        coming: Coming,
        pass: Pass<'p>,
    ) -> Option<&'p Back> {
        self.0.read(BackTable::slot(interface, coming), pass)
    }

    /// Let it be one, or none any more.
    pub fn publish(&self, interface: InterfaceId, coming: Coming, back: Option<Back>) {
        self.0.publish(BackTable::slot(interface, coming), back);
    }
}
