//! Multicast routes as workers look them up: a source and a group, then the group, then ever
//! shorter prefixes of it.

use std::sync::Arc;

use quiver_core::memory::epoch::{Epochs, Pass, Published};
use quiver_tables::exact::{LongTable, Objects};

use super::entry::Entry;

/// Words of an object, of which the first are the key: one cache line.
pub(super) const OBJECT_WORDS: usize = 8;
/// Words of a key: place, source, group.
pub(super) const KEY_WORDS: usize = 5;
/// Entries that are published together.
pub(super) const CHUNK_ENTRIES: usize = 256;
/// Chunks: room for all objects there can be, those that wait for their grace period included.
pub(super) const CHUNKS: usize = 512;

/// What a table of one family holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Bit n − 1: there is a group prefix of n bits.
    pub lengths: u128,
    /// There are routes with a source.
    pub sources: bool,
}

/// Where a route stands: its table, its family, its length, and whether it has a source.
pub(super) fn place_word(six: bool, table: u32, length: u8, has_source: bool) -> u64 {
    u64::from(table) | u64::from(length) << 32 | u64::from(six) << 40 | u64::from(has_source) << 41
}

/// The words of a key.
#[inline]
pub(super) fn key(place: u64, source: u128, group: u128) -> [u64; KEY_WORDS] {
    [place, (source >> 64) as u64, source as u64, (group >> 64) as u64, group as u64]
}

/// `group` without the bits behind `length` of a family's `width`.
#[inline]
pub(super) fn masked(group: u128, length: u8, width: u8) -> u128 {
    let spare = u32::from(width.saturating_sub(length));
    group.checked_shr(spare).unwrap_or(0).checked_shl(spare).unwrap_or(0)
}

pub(super) type Chunk = Vec<Option<Arc<Entry>>>;

/// The multicast routes of all tables, as workers read them.
pub struct MfibTables {
    pub(super) table: LongTable<Objects<OBJECT_WORDS>, KEY_WORDS>,
    pub(super) chunks: Box<[Published<Chunk>]>,
    pub(super) shapes: Published<Vec<Shape>>,
}

/// Where the shape of a table stands.
pub(super) fn shape_place(six: bool, table: u32) -> usize {
    (table as usize) << 1 | usize::from(six)
}

impl MfibTables {
    pub(super) fn new(
        epochs: &Arc<Epochs>,
        table: LongTable<Objects<OBJECT_WORDS>, KEY_WORDS>,
    ) -> MfibTables {
        let chunks = (0..CHUNKS).map(|_| Published::new(epochs, Chunk::new())).collect();
        MfibTables { table, chunks, shapes: Published::new(epochs, Vec::new()) }
    }

    /// The number of the route for packets from `source` to `group`: the one with the source, or
    /// else the one with the longest prefix of the group.
    #[inline]
    pub fn find(
        &self,
        six: bool,
        table: u32,
        source: u128,
        group: u128,
        pass: Pass<'_>,
    ) -> Option<u32> {
        let shape = *self.shapes.read(pass).get(shape_place(six, table))?;
        let width = if six { 128 } else { 32 };
        if shape.sources {
            let found = self.table.lookup(&key(place_word(six, table, width, true), source, group));
            if found.is_some() {
                return found;
            }
        }
        let mut left = shape.lengths;
        while left != 0 {
            let length = (u128::BITS - left.leading_zeros()) as u8;
            left &= !(1 << (length - 1));
            let prefix = masked(group, length, width);
            let found = self.table.lookup(&key(place_word(six, table, length, false), 0, prefix));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The route of a number that was found in this pass; `None` when it has gone meanwhile.
    #[inline]
    pub fn entry<'p>(&self, number: u32, pass: Pass<'p>) -> Option<&'p Entry> {
        let number = number as usize;
        self.chunks.get(number / CHUNK_ENTRIES)?.read(pass).get(number % CHUNK_ENTRIES)?.as_deref()
    }
}
