#![doc = include_str!("README.md")]

// What loom models are the buckets; the rest stands on memory that loom cannot know.
#[cfg_attr(loom, allow(dead_code))]
mod cells;
#[cfg(not(loom))]
mod hash;
#[cfg(all(test, not(loom)))]
mod hostile;
#[cfg(not(loom))]
mod kernel;
#[cfg(not(loom))]
mod long;
#[cfg(not(loom))]
mod objects;
#[cfg(not(loom))]
mod segments;
#[cfg(not(loom))]
mod short;

#[cfg(not(loom))]
pub use self::{
    hash::{KEY_WORDS_MAX, Seed},
    long::{HasKey, LongTable, LongWriter, NOT_FOUND, ObjectKeys},
    objects::{Objects, ObjectsWriter},
    segments::PROBES,
    short::{ShortTable, ShortWriter, Value},
};

use crate::memory::MemoryError;

/// How large a table may become, and the remedy that a refusal names when it is full.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The table's name in messages, as `MAC table`.
    pub what: &'static str,
    /// Entries at most.
    pub entries_max: usize,
    /// How the limit is raised, as `raise it with "set bridge mac-entries-max"`.
    pub remedy: &'static str,
}

/// Why an entry was refused. The table is as it was.
#[derive(Debug, thiserror::Error)]
pub enum ExactError {
    /// The limit is reached.
    #[error("the {what} is full at its limit of {entries_max} entries; {remedy}, or remove some")]
    Full {
        /// The table.
        what: &'static str,
        /// Its limit.
        entries_max: usize,
        /// How to raise it.
        remedy: &'static str,
    },
    /// Too many keys fall on the same few buckets while the table is far from full.
    #[error(
        "the {what} refuses a key with {entries} entries in: too many keys fall together, which \
         does not happen by chance; make the table anew, so that it draws another secret"
    )]
    Crowded {
        /// The table.
        what: &'static str,
        /// Entries that it holds.
        entries: usize,
    },
    /// Room that was given up is not free yet.
    #[error(
        "the {what} has no room now: {waiting} of its slots and segments wait for a worker that \
         does not end its pass; see show workers"
    )]
    Waiting {
        /// The table.
        what: &'static str,
        /// Slots and segments that wait.
        waiting: usize,
    },
    /// No memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// What a table holds and takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactUse {
    /// Entries.
    pub entries: usize,
    /// Segments in use.
    pub segments: usize,
    /// Slots and segments that wait for workers to finish a pass.
    pub waiting: usize,
    /// Bytes really in memory, without the objects of a table of longer keys.
    pub resident_bytes: usize,
}
