//! What a node that has a fragment asks of the nodes that put fragments together.

use quiver_core::memory::packet::handover::Handover;

/// Whose fragment it is, handed over to `ip4-full-reassembly` and its kin: for the router itself 1
/// bit, scope 31 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyRequest {
    /// It is for the router itself: the whole goes back to `ip4-local` or `ip6-local`. Otherwise it
    /// goes on in the arc of the interface.
    pub is_local: bool,
    /// Fragments of different scopes are never put together: the forwarding table or the interface
    /// that addresses are meant in.
    pub scope: u32,
}

impl Handover for ReassemblyRequest {
    #[inline]
    fn to_index(self) -> u32 {
        u32::from(self.is_local) << 31 | self.scope & 0x7fff_ffff
    }

    #[inline]
    fn from_index(index: u32) -> ReassemblyRequest {
        ReassemblyRequest { is_local: index >> 31 != 0, scope: index & 0x7fff_ffff }
    }
}
