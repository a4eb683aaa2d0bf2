//! What routes hand over to nodes that encapsulate.

use quiver_core::number_handover;
use quiver_forwarding::handover::NextHopIndex;

/// The number of an encapsulation entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncapEntryIndex(pub u32);

number_handover!(EncapEntryIndex from NextHopIndex);
