//! What label routes hand over to the nodes that take labels off.

use quiver_core::memory::packet::handover::{Handover, Kind};
use quiver_forwarding::handover::NextHopIndex;

/// The table by which a packet goes on whose label was taken off: its small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoppedInto(pub u32);

/// The index that stands for the table of the receiving interface (explicit null).
pub(crate) const OF_RX: u32 = u32::MAX;

impl Handover for PoppedInto {
    #[inline(always)]
    fn to_index(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn from_index(index: u32) -> PoppedInto {
        PoppedInto(index)
    }

    fn reads(kind: Kind) -> bool {
        kind.is::<PoppedInto>() || kind.is::<NextHopIndex>()
    }
}
