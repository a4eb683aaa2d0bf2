//! Filters that choose which packets are traced and captured.

use std::fmt;
use std::sync::Arc;

/// Chooses packets by their bytes. Workers call it: it neither waits nor allocates.
pub trait PacketFilter: Send + Sync {
    /// Does it choose a packet that begins with these bytes, link-layer header first?
    fn chooses(&self, bytes: &[u8]) -> bool;
}

/// A filter that several workers share.
pub type SharedFilter = Arc<dyn PacketFilter>;

/// The filters that the next traces and captures go by when they are asked to. A state of the
/// engine, so that who sets filters and who begins traces need not know each other.
#[derive(Clone, Default)]
pub struct PacketFilters {
    /// Of traces.
    pub trace: Option<SharedFilter>,
    /// Of captures.
    pub capture: Option<SharedFilter>,
}

impl fmt::Debug for PacketFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, capture) = (self.trace.is_some(), self.capture.is_some());
        f.debug_struct("PacketFilters").field("trace", &trace).field("capture", &capture).finish()
    }
}
