//! The two buckets, a cache line each, and the order of stores in which their one writer changes
//! what readers may be reading. Everything here is one atomic load or store; loom tries all orders.
//!
//! A slot becomes visible by one store, after all that it stands for was stored, and vanishes by
//! one store. What a reader found is then still there until it ends its pass: a short slot is used
//! again only after a grace period; a long slot names an object, which its owner keeps for as long,
//! and whose key the reader compares. A bucket that some entry had to pass by counts that
//! (`overflow`), after the entry was put farther on, so that a reader who sees no count has missed
//! nothing.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Slots of a [`ShortBucket`].
pub const SHORT_SLOTS: usize = 4;
/// Slots of a [`LongBucket`].
pub const LONG_SLOTS: usize = 10;

/// Four permuted keys and their values.
///
/// A word is the permuted key whose low bits, for which the bucket's place stands, are replaced by
/// the slot's state:
///
/// ```text
///  63                             10 9      5 4     2 1       0
/// ┌─────────────────────────────────┬────────┬───────┬─────────┐
/// │ permuted key                    │overflow│ probe │ state   │   overflow: in word 0, for the
/// bucket └─────────────────────────────────┴────────┴───────┴─────────┘
/// ```
#[repr(C, align(64))]
pub struct ShortBucket {
    pub(super) words: [AtomicU64; SHORT_SLOTS],
    values: [AtomicU64; SHORT_SLOTS],
}

/// State of a slot: free (0), taken, or waiting until no reader looks at its value any more.
const STATE: u64 = 3;
const TAKEN: u64 = 1;
const WAITING: u64 = 2;
const PROBE_SHIFT: u32 = 2;
const OVERFLOW_SHIFT: u32 = 5;
/// The highest count; from there it stays until the segment is split or merged.
const OVERFLOW_MAX: u64 = 31;
const OVERFLOW: u64 = OVERFLOW_MAX << OVERFLOW_SHIFT;
/// Bits of a word that are not the key's.
pub const SHORT_STATE_BITS: u32 = 10;
/// What to compare of a word.
pub(super) const SHORT_COMPARED: u64 = !OVERFLOW;

/// The word of a permuted key that lies in the `probe`-th bucket of its sequence.
#[inline(always)]
pub(super) fn short_word(mixed: u64, probe: u32) -> u64 {
    mixed >> SHORT_STATE_BITS << SHORT_STATE_BITS | u64::from(probe) << PROBE_SHIFT | TAKEN
}

/// Which probe a word was put at.
#[inline(always)]
pub(super) fn short_probe(word: u64) -> u32 {
    (word >> PROBE_SHIFT & 7) as u32
}

impl ShortBucket {
    /// Slots whose word is `expected`, as a mask. At most one bit.
    #[inline(always)]
    pub(super) fn find(&self, expected: u64) -> u32 {
        let mut mask = 0;
        for (slot, word) in self.words.iter().enumerate() {
            let word = word.load(Ordering::Acquire) & SHORT_COMPARED;
            mask |= u32::from(word == expected) << slot;
        }
        mask
    }

    /// The value in `slot`.
    #[inline(always)]
    pub(super) fn value(&self, slot: usize) -> u64 {
        self.values[slot & (SHORT_SLOTS - 1)].load(Ordering::Acquire)
    }

    /// Did an entry have to pass by?
    #[inline(always)]
    pub(super) fn is_passed_by(&self) -> bool {
        self.words[0].load(Ordering::Acquire) & OVERFLOW != 0
    }

    /// What `slot` holds, if it is taken.
    pub(super) fn entry(&self, slot: usize) -> Option<(u64, u64)> {
        let word = self.words[slot].load(Ordering::Relaxed);
        (word & STATE == TAKEN)
            .then(|| (word & SHORT_COMPARED, self.values[slot].load(Ordering::Relaxed)))
    }

    /// A free slot.
    pub(super) fn free_slot(&self) -> Option<usize> {
        self.words.iter().position(|word| word.load(Ordering::Relaxed) & STATE == 0)
    }

    /// Slots that are not free.
    pub(super) fn used(&self) -> u32 {
        self.words.iter().map(|word| u32::from(word.load(Ordering::Relaxed) & STATE != 0)).sum()
    }

    /// Does a slot wait?
    pub(super) fn has_waiting(&self) -> bool {
        self.words.iter().any(|word| word.load(Ordering::Relaxed) & STATE == WAITING)
    }

    fn set_word(&self, slot: usize, word: u64) {
        let count = self.words[slot].load(Ordering::Relaxed) & OVERFLOW;
        self.words[slot].store(word | count, Ordering::Release);
    }

    /// Fill a free slot: the value first, then the word by which it is found.
    pub(super) fn publish(&self, slot: usize, word: u64, value: u64) {
        self.values[slot].store(value, Ordering::Relaxed);
        self.set_word(slot, word);
    }

    /// Change the value of a taken slot; the old one comes back.
    pub(super) fn replace(&self, slot: usize, value: u64) -> u64 {
        self.values[slot].swap(value, Ordering::AcqRel)
    }

    /// A reader's change of a value that it found: only if it is still `old`, so that what the
    /// writer stored meanwhile stays. The slot is the key's own until the pass ends.
    #[inline]
    pub(super) fn exchange(&self, slot: usize, old: u64, new: u64) -> bool {
        let value = &self.values[slot & (SHORT_SLOTS - 1)];
        value.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Nobody finds the slot any more, but somebody may still read its value.
    pub(super) fn retire(&self, slot: usize) {
        self.set_word(slot, WAITING);
    }

    /// Nobody reads its value any more. In a segment whose memory was given back there is nothing
    /// to do.
    pub(super) fn release(&self, slot: usize) {
        if self.words[slot].load(Ordering::Relaxed) & STATE == WAITING {
            self.set_word(slot, 0);
        }
    }

    /// Empty a taken slot of a bucket that nobody reads yet.
    pub(super) fn vacate(&self, slot: usize) {
        self.set_word(slot, 0);
    }

    /// Count an entry that lies farther on. It must be there already.
    pub(super) fn pass_by(&self) {
        let word = self.words[0].load(Ordering::Relaxed);
        if word & OVERFLOW != OVERFLOW {
            self.words[0].store(word + (1 << OVERFLOW_SHIFT), Ordering::Release);
        }
    }

    /// An entry that lay farther on is gone. A count that went over the top stays there.
    pub(super) fn unpass(&self) {
        let word = self.words[0].load(Ordering::Relaxed);
        let count = word & OVERFLOW;
        if count != OVERFLOW && count != 0 {
            self.words[0].store(word - (1 << OVERFLOW_SHIFT), Ordering::Release);
        }
    }

    pub(super) fn clear(&self) {
        self.words.iter().chain(&self.values).for_each(|word| word.store(0, Ordering::Relaxed));
    }
}

/// Ten 16-bit tags, a count of entries that passed by, and ten 32-bit indexes of objects.
///
/// Tags lie four to a word, from the low end: words 0 and 1, and two in word 2 with the count above
/// them. Tag 0 is a free slot.
#[repr(C, align(64))]
pub struct LongBucket {
    heads: [AtomicU64; 3],
    indexes: [AtomicU32; LONG_SLOTS],
}

const EACH_TAG: u64 = 0x0001_0001_0001_0001;
const COUNT_SHIFT: u32 = 32;
const COUNT_MAX: u64 = 0xffff;
const COUNT: u64 = COUNT_MAX << COUNT_SHIFT;
/// The slots' bits of a mask.
pub(super) const LONG_MASK: u32 = (1 << LONG_SLOTS) - 1;

/// The tag of a hash; never 0.
#[inline(always)]
pub(super) fn tag_of(hash: u64) -> u16 {
    let tag = (hash >> 24) as u16;
    tag + u16::from(tag == 0)
}

/// Which of four 16-bit lanes are zero, as four bits.
#[inline(always)]
fn zero_lanes(x: u64) -> u32 {
    const LOW: u64 = 0x7fff * EACH_TAG;
    let zero = !(((x & LOW) + LOW) | x | LOW) >> 15; // bits 0, 16, 32, 48
    // One multiplication brings them together in the top bits.
    (zero.wrapping_mul(1 << 48 | 1 << 33 | 1 << 18 | 1 << 3) >> 48) as u32 & 15
}

impl LongBucket {
    /// Slots with this tag, as a mask.
    #[inline(always)]
    pub(super) fn find(&self, tag: u16) -> u32 {
        let tags = u64::from(tag) * EACH_TAG;
        let mut mask = 0;
        for (at, head) in self.heads.iter().enumerate() {
            mask |= zero_lanes(head.load(Ordering::Acquire) ^ tags) << (4 * at);
        }
        mask & LONG_MASK
    }

    /// The object in `slot`.
    #[inline(always)]
    pub(super) fn index(&self, slot: usize) -> u32 {
        self.indexes[slot.min(LONG_SLOTS - 1)].load(Ordering::Acquire)
    }

    /// Did an entry have to pass by?
    #[inline(always)]
    pub(super) fn is_passed_by(&self) -> bool {
        self.heads[2].load(Ordering::Acquire) & COUNT != 0
    }

    /// What `slot` holds, if it is taken.
    pub(super) fn entry(&self, slot: usize) -> Option<(u16, u32)> {
        let tag = (self.heads[slot / 4].load(Ordering::Relaxed) >> (slot % 4 * 16)) as u16;
        (tag != 0).then(|| (tag, self.indexes[slot].load(Ordering::Relaxed)))
    }

    /// A free slot.
    pub(super) fn free_slot(&self) -> Option<usize> {
        let free = self.find(0);
        (free != 0).then(|| free.trailing_zeros() as usize)
    }

    fn set_tag(&self, slot: usize, tag: u16) {
        let (head, shift) = (&self.heads[slot / 4], slot % 4 * 16);
        let word = head.load(Ordering::Relaxed) & !(0xffff << shift);
        head.store(word | u64::from(tag) << shift, Ordering::Release);
    }

    /// Fill a free slot: the index first, then the tag by which it is found. The object behind the
    /// index must have its key already.
    pub(super) fn publish(&self, slot: usize, tag: u16, index: u32) {
        self.indexes[slot].store(index, Ordering::Release);
        self.set_tag(slot, tag);
    }

    /// Name another object with the same key; the old one's index comes back.
    pub(super) fn replace(&self, slot: usize, index: u32) -> u32 {
        let old = self.indexes[slot].load(Ordering::Relaxed);
        self.indexes[slot].store(index, Ordering::Release);
        old
    }

    /// Nobody finds the slot any more. Who already did compares the key of whatever stands there.
    pub(super) fn remove(&self, slot: usize) {
        self.set_tag(slot, 0);
    }

    /// Count an entry that lies farther on. It must be there already.
    pub(super) fn pass_by(&self) {
        let word = self.heads[2].load(Ordering::Relaxed);
        if word & COUNT != COUNT {
            self.heads[2].store(word + (1 << COUNT_SHIFT), Ordering::Release);
        }
    }

    /// An entry that lay farther on is gone. A count that went over the top stays there.
    pub(super) fn unpass(&self) {
        let word = self.heads[2].load(Ordering::Relaxed);
        if word & COUNT != COUNT && word & COUNT != 0 {
            self.heads[2].store(word - (1 << COUNT_SHIFT), Ordering::Release);
        }
    }

    pub(super) fn clear(&self) {
        self.heads.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.indexes.iter().for_each(|index| index.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
impl Default for ShortBucket {
    fn default() -> Self {
        let zeroes = || std::array::from_fn(|_| AtomicU64::new(0));
        ShortBucket { words: zeroes(), values: zeroes() }
    }
}

#[cfg(test)]
impl Default for LongBucket {
    fn default() -> Self {
        LongBucket {
            heads: std::array::from_fn(|_| AtomicU64::new(0)),
            indexes: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_one_cache_line() {
        assert_eq!((size_of::<ShortBucket>(), align_of::<ShortBucket>()), (64, 64));
        assert_eq!((size_of::<LongBucket>(), align_of::<LongBucket>()), (64, 64));
    }

    #[test]
    fn a_long_bucket_finds_tags_in_all_its_slots() {
        let bucket = LongBucket::default();
        (0..LONG_SLOTS).for_each(|slot| bucket.publish(slot, 0x7fff + slot as u16, slot as u32));
        bucket.pass_by();
        for slot in 0..LONG_SLOTS {
            assert_eq!(bucket.find(0x7fff + slot as u16), 1 << slot);
        }
        assert_eq!((bucket.find(1), bucket.find(0)), (0, 0));
        bucket.publish(2, 0x8000, 9);
        assert_eq!(bucket.find(0x8000), 0b110);
        bucket.remove(9);
        assert_eq!((bucket.find(0), bucket.free_slot()), (1 << 9, Some(9)));
        bucket.unpass();
        assert!(!bucket.is_passed_by());
    }

    #[test]
    fn a_count_over_the_top_stays() {
        let (short, long) = (ShortBucket::default(), LongBucket::default());
        short.publish(0, short_word(u64::MAX, 7), 5);
        (0..40).for_each(|_| short.pass_by());
        (0..40).for_each(|_| short.unpass());
        (0..70_000).for_each(|_| long.pass_by());
        (0..70_000).for_each(|_| long.unpass());
        assert!(short.is_passed_by() && long.is_passed_by());
        assert_eq!(short.find(short_word(u64::MAX, 7)), 1);
        short.retire(0);
        assert!(short.is_passed_by() && short.used() == 1);
    }
}

/// `RUSTFLAGS="--cfg loom" cargo test -p quiver-tables --release --lib model`
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;
    use quiver_core::memory::epoch::Epochs;

    const A: u64 = 0xaaaa << SHORT_STATE_BITS;
    const B: u64 = 0xbbbb << SHORT_STATE_BITS;

    /// Values say whose they are: a reader that gets B's value for A has seen a torn entry.
    #[test]
    fn a_short_slot_used_again_after_the_grace_period_never_lends_its_value() {
        loom::model(|| {
            let bucket = Arc::new(ShortBucket::default());
            let epochs = Epochs::new(1);
            bucket.publish(0, short_word(A, 0), 0xa1);
            let mut reader = epochs.reader(0);
            let seen = bucket.clone();
            let worker = loom::thread::spawn(move || {
                reader.wake();
                for _ in 0..2 {
                    if seen.find(short_word(A, 0)) != 0 {
                        assert!(matches!(seen.value(0), 0xa1 | 0xa2), "A has a value of its own");
                    }
                    if seen.find(short_word(B, 0)) != 0 {
                        assert_eq!(seen.value(0), 0xb1);
                    }
                    reader.quiescent();
                }
                reader.sleep();
            });
            bucket.replace(0, 0xa2);
            bucket.retire(0);
            let stamp = epochs.stamp();
            if epochs.has_passed(stamp) {
                bucket.release(0);
                bucket.publish(0, short_word(B, 0), 0xb1);
            }
            worker.join().expect("worker");
        });
    }

    /// An entry that goes to the second bucket is found from when its insertion ends.
    #[test]
    fn a_reader_that_sees_the_count_sees_the_entry_farther_on() {
        loom::model(|| {
            let buckets = Arc::new([ShortBucket::default(), ShortBucket::default()]);
            let done = Arc::new(AtomicU32::new(0));
            let (seen, told) = (buckets.clone(), done.clone());
            let worker = loom::thread::spawn(move || {
                let inserted = told.load(Ordering::Acquire) == 1;
                let passed = seen[0].is_passed_by();
                assert!(passed || !inserted);
                if passed {
                    assert_eq!(seen[1].find(short_word(A, 1)), 1);
                    assert_eq!(seen[1].value(0), 0xa1);
                }
            });
            buckets[1].publish(0, short_word(A, 1), 0xa1);
            buckets[0].pass_by();
            done.store(1, Ordering::Release);
            worker.join().expect("worker");
        });
    }

    /// A long slot is used again at once: the key behind the index decides. An object's key is
    /// written before its index is published, and not again before the grace period.
    #[test]
    fn a_long_slot_used_again_at_once_is_never_another_keys_answer() {
        loom::model(|| {
            let bucket = Arc::new(LongBucket::default());
            let keys = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
            keys[0].store(0xa, Ordering::Relaxed);
            bucket.publish(3, 7, 0);
            let (seen, objects) = (bucket.clone(), keys.clone());
            let worker = loom::thread::spawn(move || {
                for tag in [7, 8] {
                    if seen.find(tag) != 0 {
                        let key = objects[seen.index(3) as usize].load(Ordering::Relaxed);
                        assert!(
                            matches!(key, 0xa | 0xb),
                            "an index is published after its object's key"
                        );
                    }
                }
            });
            bucket.remove(3);
            keys[1].store(0xb, Ordering::Relaxed);
            bucket.publish(3, 8, 1);
            worker.join().expect("worker");
        });
    }
}
