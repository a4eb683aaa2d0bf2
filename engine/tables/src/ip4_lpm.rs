//! IPv4 longest prefix match: the run-compressed trie of [`crate::lpm`] with a root of 2^24 slots
//! (4 MB) for large tables, 2^16 (16 KB) for small ones, and one level of 8 bits, or one prefix
//! compared whole, below /24.

use crate::lpm::{Lpm, LpmSpace, LpmWriter};

/// One IPv4 table, as workers read it. Addresses are numbers in host order.
pub type Ip4Lpm = Lpm<u32>;
/// All IPv4 tables, as workers read them.
pub type Ip4Tables = LpmSpace<u32>;
/// The writer of all IPv4 tables.
pub type Ip4LpmWriter = LpmWriter<u32>;
