//! What workers share with the control thread: the interfaces on which LLDP is enabled.

/// By interface: is LLDP enabled on it? Replaced whole.
pub type Published = quiver_core::memory::epoch::Published<Vec<bool>>;

/// LLDPDUs of one worker that wait for the control thread at most.
pub const LLDPDUS_WAITING_MAX: usize = 64;
