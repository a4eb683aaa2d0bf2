//! The transactions of one side: entries of fixed size in slots, found by key, each with a timer.
//! All memory is taken when the table is made.

use super::index::Index;
use super::key::{Key, Secret};
use super::wheel::Wheel;
use quiver_tg_traffic::profile::stateful::ENTRIES_MAX;

/// An entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry<F> {
    /// Key.
    pub key: Key,
    /// State machine.
    pub flow: F,
}

/// The table.
pub struct Table<F> {
    entries: Box<[Entry<F>]>,
    /// Slots that are free; the last one freed is taken first, for it is warm.
    free: Vec<u32>,
    index: Index,
    /// When entries want to be looked at.
    pub wheel: Wheel,
    secret: Secret,
}

impl<F: Copy + Default> Table<F> {
    /// For so many entries, from the tick `now` on.
    pub fn new(capacity: usize, secret: Secret, now: u32) -> Table<F> {
        let capacity = capacity.clamp(1, ENTRIES_MAX);
        Table {
            entries: vec![Entry::default(); capacity].into_boxed_slice(),
            free: (0..capacity as u32).rev().collect(),
            index: Index::new(capacity),
            wheel: Wheel::new(capacity, now),
            secret,
        }
    }

    /// Entries in it.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// None in it?
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.entries.len()
    }

    /// Entries that it takes.
    pub fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.entries)
            + self.free.capacity() * 4
            + self.index.bytes()
            + self.wheel.bytes()
    }

    /// The secret hash of a key.
    #[inline(always)]
    pub fn hash(&self, key: &Key) -> u64 {
        self.secret.hash(key)
    }

    /// Ask for the bucket of a hash, to be looked at soon.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// The slot of a key.
    #[inline(always)]
    pub fn find(&self, key: &Key, hash: u64) -> Option<u32> {
        self.index.find(hash, |slot| self.entries[slot as usize].key == *key)
    }

    /// An entry.
    #[inline(always)]
    pub fn entry(&mut self, slot: u32) -> &mut Entry<F> {
        &mut self.entries[slot as usize]
    }

    /// Put an entry in whose key is not there. `None` when the table is full.
    pub fn insert(&mut self, key: Key, hash: u64, flow: F) -> Option<u32> {
        let slot = *self.free.last()?;
        if !self.index.insert(hash, slot) {
            return None;
        }
        self.free.pop();
        self.entries[slot as usize] = Entry { key, flow };
        Some(slot)
    }

    /// Take an entry out. What is left in its slot is as new.
    pub fn remove(&mut self, slot: u32) {
        let gone = std::mem::take(&mut self.entries[slot as usize]);
        let hash = self.secret.hash(&gone.key);
        self.index.remove(hash, slot);
        self.wheel.disarm(slot);
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_equals_a_map_and_forgets_nothing(
            steps in prop::collection::vec((0u16..40, any::<bool>()), 0..300)
        ) {
            let mut table: Table<u64> = Table::new(32, Secret::new(7), 0);
            let mut model: HashMap<u16, u64> = HashMap::new();
            for (number, (port, puts)) in steps.into_iter().enumerate() {
                let key = Key::new(1, port, 2, 3);
                let hash = table.hash(&key);
                let found = table.find(&key, hash);
                prop_assert_eq!(
                    found.map(|slot| table.entry(slot).flow),
                    model.get(&port).copied()
                );
                match found {
                    None if puts => {
                        let slot = table.insert(key, hash, number as u64);
                        prop_assert_eq!(slot.is_some(), model.len() < 32);
                        if let Some(slot) = slot {
                            table.wheel.arm(slot, number as u32);
                            model.insert(port, number as u64);
                        }
                    }
                    Some(slot) if !puts => {
                        table.remove(slot);
                        model.remove(&port);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), model.len());
            }
            // No timer of a removed entry is left.
            let mut timers = 0;
            while table.wheel.expired(1000, &mut 2000).is_some() {
                timers += 1;
            }
            prop_assert_eq!(timers, model.len());
        }
    }
}
