//! What routes hand over to nodes that encapsulate.

use quiver_core::memory::packet::handover::{Handover, Kind};
use quiver_forwarding::handover::NextHopIndex;

/// The number of an encapsulation entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncapEntryIndex(pub u32);

impl Handover for EncapEntryIndex {
    #[inline(always)]
    fn to_index(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn from_index(index: u32) -> EncapEntryIndex {
        EncapEntryIndex(index)
    }

    fn reads(kind: Kind) -> bool {
        NextHopIndex::reads::<EncapEntryIndex>(kind)
    }
}
