//! IPv6 longest prefix match: the run-compressed trie of [`crate::lpm`], which passes over levels
//! with a single way down by comparing the whole prefix at once. What a look-up costs depends on
//! how prefixes nest around its address, not on how many lengths are in use or what other tables
//! hold.

use crate::lpm::{Lpm, LpmSpace, LpmWriter};

/// One IPv6 table, as workers read it. Addresses are numbers in host order.
pub type Ip6Lpm = Lpm<u128>;
/// All IPv6 tables, as workers read them.
pub type Ip6Tables = LpmSpace<u128>;
/// The writer of all IPv6 tables.
pub type Ip6LpmWriter = LpmWriter<u128>;
