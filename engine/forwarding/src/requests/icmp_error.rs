//! What a node asks of the nodes that send ICMP errors.

use quiver_core::memory::packet::handover::Handover;

/// What `ip4-icmp-error` and `ip6-icmp-error` are asked to send: type 8 bits, code 8 bits, 16 bits
/// of detail (next-hop MTU in bytes, or the offset that a parameter problem points at).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpErrorRequest {
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// MTU in bytes, or pointer.
    pub detail: u16,
}

impl Handover for IcmpErrorRequest {
    #[inline]
    fn to_index(self) -> u32 {
        u32::from(self.kind) << 24 | u32::from(self.code) << 16 | u32::from(self.detail)
    }

    #[inline]
    fn from_index(index: u32) -> IcmpErrorRequest {
        IcmpErrorRequest {
            kind: (index >> 24) as u8,
            code: (index >> 16) as u8,
            detail: index as u16,
        }
    }
}
