//! What a node that has made a long packet asks of the node that cuts it.

use quiver_core::memory::packet::handover::Handover;

/// Into which fragments, and where they go; handed over to `ip6-frag-in-table`: MTU 16 bits, table
/// 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRequest {
    /// The longest fragment, in bytes.
    pub mtu_bytes: u16,
    /// The small number of the table in which the destination of each is looked up.
    pub table: u32,
}

const _: () = assert!(quiver_tables::lpm::TABLES_MAX <= 1 << 16);

impl Handover for FragmentRequest {
    #[inline]
    fn to_index(self) -> u32 {
        u32::from(self.mtu_bytes) << 16 | self.table & 0xffff
    }

    #[inline]
    fn from_index(index: u32) -> FragmentRequest {
        FragmentRequest { mtu_bytes: (index >> 16) as u16, table: index & 0xffff }
    }
}
