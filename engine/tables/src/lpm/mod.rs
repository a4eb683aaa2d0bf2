//! Longest prefix match by a run-compressed trie; one structure for both families.
//!
//! A **word** of 64 bits says what 32 neighbouring slots lead to: a bitmap in which bit *i* is set
//! where slot *i* differs from slot *i* − 1, and the base of as many **entries**. If all 32 are the
//! same, the bitmap is 0 and the entry stands in the word itself; so does a skip that speaks of all
//! of them. A **root** is an array of words for the first 16 or 24 bits of the address; a **node**
//! is eight words, one cache line, for the next 8 bits. An entry is a leaf (a next-hop group), a
//! node, a **dense** block (256 entries without bitmaps, where there are too many runs) or a
//! **skip** (one prefix compared whole, in place of levels with a single way down). A skip may lead
//! to a **wide** block (2^13 to 2^24 entries, in place of levels that are dense all over).
//!
//! Workers look up in lanes (`batch`, `descent`), by one of three kernels (`kernel`).
//!
//! One writer patches in place. It writes what is new, publishes it by one store of a word or an
//! entry, and retires what was there, so that each address goes from its old answer to its new one
//! with nothing between. Whatever a reader finds, however late it comes, is well formed: a wrong
//! index cannot arise, because memory is never unmapped and slots always hold well-formed things.

mod batch;
mod depths;
mod descent;
mod kernel;
mod memory;
#[cfg(all(test, loom))]
mod model;
mod paint;
mod reader;
mod reshape;
mod wide;
mod writer;

pub use memory::{ENTRIES_MAX, NODES_MAX, SKIPS_MAX, TrieUse};
pub use reader::Lpm;
pub use writer::{Bulk, LpmError, LpmSpace, LpmWriter, Route, TABLES_MAX};
