//! Objects that entries of a long table name by index: whole cache lines of atomic words in large
//! pages, their key in the first words.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::memory::epoch::Epochs;

use super::long::ObjectKeys;
use super::{ExactError, Limits};
use crate::memory::{HUGE_PAGE_BYTES, MemoryError, Pages, Reserved, Slots};

/// Objects of `W` words each, as everybody sees them. A worker may store into words that are not a
/// key, such as a time stamp or a counter.
pub struct Objects<const W: usize>(Reserved<[AtomicU64; W]>);

impl<const W: usize> Objects<W> {
    /// The object at `index`; one past the end reads as object 0.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &[AtomicU64; W] {
        self.0.get(index as usize)
    }

    /// Bytes really in memory.
    pub fn resident_bytes(&self) -> usize {
        self.0.resident_bytes()
    }
}

impl<const W: usize, const N: usize> ObjectKeys<N> for Objects<W> {
    #[inline(always)]
    fn key(&self, index: u32) -> &[AtomicU64; N] {
        const { assert!(N <= W, "the key lies in the object") };
        self.get(index).first_chunk().expect("N <= W")
    }
}

/// Who hands objects out and takes them back: the writer of the table that names them.
pub struct ObjectsWriter<const W: usize> {
    shared: Arc<Objects<W>>,
    slots: Slots,
    epochs: Arc<Epochs>,
    limits: Limits,
    taken: usize,
}

impl<const W: usize> ObjectsWriter<W> {
    /// Objects in a number of lines that divides a large page.
    const PER_PAGE: u32 = {
        assert!(W.is_power_of_two() && W >= 8, "objects are 8, 16, 32 … words");
        (HUGE_PAGE_BYTES / 8 / W) as u32
    };

    /// Room for `limits.entries_max` objects, and as many as may wait for their grace period.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>, limits: Limits) -> Result<Self, MemoryError> {
        let page = Self::PER_PAGE as usize;
        let capacity = (limits.entries_max + limits.entries_max / 4 + page).next_multiple_of(page);
        Ok(ObjectsWriter {
            shared: Arc::new(Objects(Reserved::new(limits.what, capacity, Pages::Huge)?)),
            slots: Slots::new(&[1], capacity, Self::PER_PAGE, Self::PER_PAGE),
            epochs: epochs.clone(),
            limits,
            taken: 0,
        })
    }

    /// What everybody sees.
    pub fn objects(&self) -> &Arc<Objects<W>> {
        &self.shared
    }

    /// Objects handed out.
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Is none handed out?
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// An object with this content, not yet named by any table.
    ///
    /// # Errors
    /// The table is full, or all free places wait for workers.
    pub fn take(&mut self, content: [u64; W]) -> Result<u32, ExactError> {
        let Limits { what, entries_max, remedy } = self.limits;
        if self.taken >= entries_max {
            return Err(ExactError::Full { what, entries_max, remedy });
        }
        let index = match self.slots.take(1) {
            Some(index) => index,
            None => {
                self.collect();
                let waiting = self.slots.waiting();
                self.slots.take(1).ok_or(ExactError::Waiting { what, waiting })?
            }
        };
        self.taken += 1;
        for (word, content) in self.shared.get(index).iter().zip(content) {
            word.store(content, Ordering::Relaxed);
        }
        Ok(index)
    }

    /// Give back an object that no table names any more. It is used again when no worker sees it.
    pub fn retire(&mut self, index: u32) {
        self.taken -= 1;
        self.slots.retire(index, 1);
    }

    /// Use again what no worker sees any more, and give memory back. To be called now and then.
    pub fn collect(&mut self) {
        let objects = &self.shared.0;
        self.slots.reclaim(&self.epochs, |range| objects.release(range));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { what: "session table", entries_max: 2, remedy: "allow more" };

    #[test]
    fn an_object_is_used_again_after_the_pass_and_the_limit_holds() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let mut writer = ObjectsWriter::<8>::new(&epochs, LIMITS).expect("memory");
        let (a, b) = (writer.take([1; 8]).expect("room"), writer.take([2; 8]).expect("room"));
        assert!(matches!(writer.take([3; 8]), Err(ExactError::Full { entries_max: 2, .. })));
        writer.retire(a);
        writer.collect();
        let c = writer.take([3; 8]).expect("room");
        assert!(c != a && c != b);
        reader.quiescent();
        writer.retire(c);
        writer.collect();
        assert_eq!(writer.take([4; 8]).expect("room"), a);
        let key: &[AtomicU64; 2] = writer.objects().key(b);
        assert_eq!(key.each_ref().map(|word| word.load(Ordering::Relaxed)), [2, 2]);
        assert_eq!(writer.len(), 2);
    }
}
