//! What label routes hand over to the nodes that take labels off.

use quiver_core::memory::packet::handover::{Handover, Kind};
use quiver_forwarding::fib::POPPED_UNIFORM;
use quiver_forwarding::handover::NextHopIndex;

/// The table by which a packet goes on whose label was taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoppedInto {
    /// Its small number; none for the table of the receiving interface (explicit null).
    pub table: Option<u32>,
    /// Do TTL and class of the label go on into what is behind it?
    pub is_uniform: bool,
}

/// The index that stands for the table of the receiving interface.
const OF_RX: u32 = POPPED_UNIFORM - 1;

impl PoppedInto {
    /// The table of the receiving interface.
    pub const OF_RX: PoppedInto = PoppedInto { table: None, is_uniform: false };

    /// A label table.
    pub fn labels(table: u32) -> PoppedInto {
        PoppedInto { table: Some(table), is_uniform: false }
    }
}

impl Handover for PoppedInto {
    #[inline(always)]
    fn to_index(self) -> u32 {
        self.table.unwrap_or(OF_RX) | if self.is_uniform { POPPED_UNIFORM } else { 0 }
    }

    #[inline(always)]
    fn from_index(index: u32) -> PoppedInto {
        let table = index & !POPPED_UNIFORM;
        PoppedInto {
            table: (table != OF_RX).then_some(table),
            is_uniform: index & POPPED_UNIFORM != 0,
        }
    }

    fn reads(kind: Kind) -> bool {
        kind.is::<PoppedInto>() || kind.is::<NextHopIndex>()
    }
}
