//! The table for eight-byte keys: a MAC address with its bridge domain, an address with a port.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::Epochs;

use super::cells::{SHORT_SLOTS, SHORT_STATE_BITS, ShortBucket, short_probe, short_word};
use super::hash::Seed;
use super::kernel::{Batch, Compare, Scalar, run};
use super::segments::{Bucket, Grower, PROBES, Segments, View, place, step};
use super::{ExactError, ExactUse, Limits};
use crate::memory::{Limbo, MemoryError, prefetch};

impl Bucket for ShortBucket {
    const SEGMENT_BITS: u32 = SHORT_STATE_BITS;
    const SLOTS: usize = SHORT_SLOTS;
    const SPLIT_AT_16THS: u32 = 13;
    fn clear(&self) {
        ShortBucket::clear(self);
    }
}

/// What a [`ShortTable`] may hold: anything that fits into 64 bits.
pub trait Value: Copy {
    /// As 64 bits.
    fn into_bits(self) -> u64;
    /// Back again.
    fn from_bits(bits: u64) -> Self;
}

impl Value for u64 {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        self
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> u64 {
        bits
    }
}

impl Value for u32 {
    #[inline(always)]
    fn into_bits(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> u32 {
        bits as u32
    }
}

/// Keys that are looked up in one go; a vector of packets.
const VECTOR: usize = 256;
/// Look-ups under way at once, and how far comparing lags behind asking.
const RING: usize = 64;
const CHUNK: usize = 16;
const LAG: usize = 32;

/// An exact match from eight-byte keys as workers read it. Look up inside a pass.
pub struct ShortTable<V: Value> {
    segments: Arc<Segments<ShortBucket>>,
    seed: Seed,
    value: PhantomData<fn() -> V>,
}

impl<V: Value> Clone for ShortTable<V> {
    fn clone(&self) -> Self {
        ShortTable { segments: self.segments.clone(), seed: self.seed, value: PhantomData }
    }
}

/// Keys whose first bucket did not have them, but says that some entry lies farther on.
struct Pending {
    count: usize,
    lanes: [u8; RING],
    bases: [u32; RING],
}

impl<V: Value> ShortTable<V> {
    /// The value of `key`.
    #[inline]
    pub fn lookup(&self, key: u64) -> Option<V> {
        let (mixed, view) = (self.seed.permute(key), self.segments.view());
        let (place, slot) = find(&view, view.base(mixed), mixed)?;
        Some(V::from_bits(view.bucket(place).value(slot)))
    }

    /// A worker's change of the value that it found, inside the same pass: `key` gets `new` if it
    /// still has `old`, and what the writer stores is never overwritten. What is changed while the
    /// writer copies the entry to another segment may be lost, so it must be something that can be
    /// done again.
    #[inline]
    pub fn exchange(&self, key: u64, old: V, new: V) -> bool {
        let (mixed, view) = (self.seed.permute(key), self.segments.view());
        let Some((place, slot)) = find(&view, view.base(mixed), mixed) else { return false };
        view.bucket(place).exchange(slot, old.into_bits(), new.into_bits())
    }

    /// The values of `keys` into as many of `values`; `miss` where there is none.
    #[inline]
    pub fn lookup_slice(&self, variant: Variant, keys: &[u64], miss: V, values: &mut [V]) {
        run(variant, ShortBatch { table: self, keys, miss, values });
    }

    /// At most 256 keys: ask for the buckets, some way behind compare them, and go on with what is
    /// not there.
    #[inline(always)]
    fn lookup_vector(&self, compare: impl Compare, keys: &[u64], miss: V, values: &mut [V]) {
        let view = self.segments.view();
        let seed = self.seed;
        let count = keys.len().min(values.len());
        let (keys, values) = (&keys[..count], &mut values[..count]);
        let mut mixed = [0u64; RING];
        let mut bases = [0u32; RING];
        let mut pending = Pending { count: 0, lanes: [0; RING], bases: [0; RING] };
        for start in (0..count + LAG).step_by(CHUNK) {
            let asked = &keys[start.min(count)..(start + CHUNK).min(count)];
            let at = start % RING;
            // Loops of their own, which become vectors where the variant has the multiplication.
            let hashes = &mut mixed[at..at + CHUNK];
            hashes.iter_mut().zip(asked).for_each(|(hash, key)| *hash = seed.permute(*key));
            let mut entries = [0; CHUNK];
            entries.iter_mut().zip(&*hashes).for_each(|(entry, hash)| *entry = view.entry(*hash));
            for lane in 0..asked.len() {
                let base = view.base_at(entries[lane]);
                prefetch(view.bucket(place::<ShortBucket>(base, hashes[lane], 0)));
                bases[at + lane] = base;
            }
            let Some(start) = start.checked_sub(LAG) else { continue };
            for lane in start..(start + CHUNK).min(count) {
                let (hash, base) = (mixed[lane % RING], bases[lane % RING]);
                let bucket = view.bucket(place::<ShortBucket>(base, hash, 0));
                let mask = compare.short(bucket, short_word(hash, 0));
                // Slot 4 of an empty mask is slot 0 again: read, and not used.
                let value = bucket.value(mask.trailing_zeros() as usize);
                values[lane] = if mask != 0 { V::from_bits(value) } else { miss };
                pending.lanes[pending.count % RING] = lane as u8;
                pending.bases[pending.count % RING] = base;
                pending.count += usize::from((mask == 0) & bucket.is_passed_by());
            }
            if pending.count > RING - CHUNK {
                self.go_on(compare, &view, &mut pending, keys, values);
            }
        }
        if pending.count > 0 {
            self.go_on(compare, &view, &mut pending, keys, values);
        }
    }

    /// Look into the second, third, … bucket of what is pending, in its old segment.
    #[inline(always)]
    fn go_on(
        &self,
        compare: impl Compare,
        view: &View<'_, ShortBucket>,
        pending: &mut Pending,
        keys: &[u64],
        values: &mut [V],
    ) {
        for probe in 1..PROBES {
            let mut places = [0u32; RING];
            for (at, place_at) in places.iter_mut().enumerate().take(pending.count) {
                let hash = self.seed.permute(keys[usize::from(pending.lanes[at])]);
                *place_at = place::<ShortBucket>(pending.bases[at], hash, probe);
                prefetch(view.bucket(*place_at));
            }
            let mut left = 0;
            for (at, place) in places.into_iter().enumerate().take(pending.count) {
                let (lane, base) = (pending.lanes[at], pending.bases[at]);
                let hash = self.seed.permute(keys[usize::from(lane)]);
                let bucket = view.bucket(place);
                let mask = compare.short(bucket, short_word(hash, probe));
                let value = bucket.value(mask.trailing_zeros() as usize);
                let old = values[usize::from(lane)];
                values[usize::from(lane)] = if mask != 0 { V::from_bits(value) } else { old };
                (pending.lanes[left], pending.bases[left]) = (lane, base);
                left += usize::from((mask == 0) & bucket.is_passed_by());
            }
            pending.count = left;
            if left == 0 {
                return;
            }
        }
        pending.count = 0;
    }
}

/// Keys to look up, and where to put the answers.
struct ShortBatch<'b, V: Value> {
    table: &'b ShortTable<V>,
    keys: &'b [u64],
    miss: V,
    values: &'b mut [V],
}

impl<V: Value> Batch for ShortBatch<'_, V> {
    #[inline(always)]
    fn run(self, compare: impl Compare) {
        for (keys, values) in self.keys.chunks(VECTOR).zip(self.values.chunks_mut(VECTOR)) {
            self.table.lookup_vector(compare, keys, self.miss, values);
        }
    }
}

/// Where a key is.
#[inline(always)]
fn find(view: &View<'_, ShortBucket>, base: u32, mixed: u64) -> Option<(u32, usize)> {
    for probe in 0..PROBES {
        let place = place::<ShortBucket>(base, mixed, probe);
        let bucket = view.bucket(place);
        let mask = Scalar.short(bucket, short_word(mixed, probe));
        if mask != 0 {
            return Some((place, mask.trailing_zeros() as usize));
        }
        if !bucket.is_passed_by() {
            return None;
        }
    }
    None
}

/// The permuted key of a word in the bucket at `at`.
fn mixed_of(word: u64, at: u32) -> u64 {
    const LOW: u64 = (1 << SHORT_STATE_BITS) - 1;
    let home = at.wrapping_sub(short_probe(word).wrapping_mul(step::<ShortBucket>(word)));
    word & !LOW | u64::from(home) & LOW
}

/// The one writer of a [`ShortTable`].
pub struct ShortWriter<V: Value> {
    grower: Grower<ShortBucket>,
    seed: Seed,
    /// Slots whose value may still be read: bucket × 4 + slot.
    waiting_slots: Limbo<u64>,
    value: PhantomData<V>,
}

impl<V: Value> ShortWriter<V> {
    /// An empty table, hashed with `seed`.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>, limits: Limits, seed: Seed) -> Result<Self, MemoryError> {
        let grower = Grower::new(epochs, limits)?;
        Ok(ShortWriter { grower, seed, waiting_slots: Limbo::default(), value: PhantomData })
    }

    /// What workers look up in.
    pub fn table(&self) -> ShortTable<V> {
        ShortTable { segments: self.grower.shared.clone(), seed: self.seed, value: PhantomData }
    }

    /// Entries in it.
    pub fn len(&self) -> usize {
        self.grower.len()
    }

    /// Is there no entry?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What it holds and takes.
    pub fn usage(&self) -> ExactUse {
        ExactUse {
            entries: self.len(),
            segments: self.grower.segments().0,
            waiting: self.waiting(),
            resident_bytes: self.grower.resident_bytes(),
        }
    }

    /// The value of `key`.
    pub fn get(&self, key: u64) -> Option<V> {
        let (bucket, slot) = self.find(self.seed.permute(key))?;
        Some(V::from_bits(self.grower.shared.bucket(bucket).value(slot)))
    }

    fn find(&self, mixed: u64) -> Option<(u32, usize)> {
        let view = self.grower.shared.view();
        find(&view, view.base(mixed), mixed)
    }

    /// Give `key` a value. The one that it had comes back.
    ///
    /// # Errors
    /// The table is full, or too many keys fall into one bucket.
    pub fn insert(&mut self, key: u64, value: V) -> Result<Option<V>, ExactError> {
        let (mixed, value) = (self.seed.permute(key), value.into_bits());
        if let Some((place, slot)) = self.find(mixed) {
            return Ok(Some(V::from_bits(self.grower.shared.bucket(place).replace(slot, value))));
        }
        self.grower.check_limit()?;
        loop {
            let base = self.grower.base(mixed);
            let room = self.grower.has_room(base);
            if room && self.put(base, mixed, value) {
                self.grower.count_in(base);
                return Ok(None);
            }
            self.collect();
            if room && self.put(base, mixed, value) {
                self.grower.count_in(base);
                return Ok(None);
            }
            match self.split(base) {
                // A key that comes and goes within one pass fills its buckets alone.
                Err(ExactError::Crowded { what, .. }) if self.is_waiting_for_room(base, mixed) => {
                    return Err(ExactError::Waiting { what, waiting: self.waiting() });
                }
                split => split?,
            }
        }
    }

    /// Will a slot in the buckets of `mixed` be free when workers have ended their passes?
    fn is_waiting_for_room(&self, base: u32, mixed: u64) -> bool {
        let bucket = |probe| self.grower.shared.bucket(place::<ShortBucket>(base, mixed, probe));
        (0..PROBES).any(|probe| bucket(probe).has_waiting())
    }

    /// Slots and segments that wait.
    fn waiting(&self) -> usize {
        self.grower.segments().1 + self.waiting_slots.len()
    }

    /// Take `key` out. Its value comes back.
    pub fn remove(&mut self, key: u64) -> Option<V> {
        let mixed = self.seed.permute(key);
        let (at, slot) = self.find(mixed)?;
        let base = self.grower.base(mixed);
        let bucket = self.grower.shared.bucket(at);
        let (word, value) = bucket.entry(slot)?;
        bucket.retire(slot);
        self.waiting_slots.push(u64::from(at) * SHORT_SLOTS as u64 + slot as u64);
        for probe in 0..short_probe(word) {
            self.grower.shared.bucket(place::<ShortBucket>(base, mixed, probe)).unpass();
        }
        let left = self.grower.count_out(base);
        if self.waiting_slots.unsealed() >= WAITING_UNSEALED_MAX {
            self.collect();
        }
        if left.is_multiple_of(MERGE_EVERY) {
            self.merge(base);
        }
        Some(V::from_bits(value))
    }

    /// All keys with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, V)> + use<'_, V> {
        self.grower.places().flat_map(move |at| {
            let bucket = self.grower.shared.bucket(at);
            let entries = (0..SHORT_SLOTS).filter_map(|slot| bucket.entry(slot));
            entries.map(move |(word, value)| {
                (self.seed.restore(mixed_of(word, at)), V::from_bits(value))
            })
        })
    }

    /// A part of [`iter`](Self::iter): the entries of the next segment, from `from` on (0 at
    /// first), and where the one behind it begins; `None` behind the last. What is there all the
    /// while is seen, whatever is inserted and removed between two calls; it may be seen twice.
    pub fn scan(&self, from: u32, mut each: impl FnMut(u64, V)) -> Option<u32> {
        let (base, next) = self.grower.segment_at(from);
        for at in base..base + (1 << ShortBucket::SEGMENT_BITS) {
            let bucket = self.grower.shared.bucket(at);
            for (word, value) in (0..SHORT_SLOTS).filter_map(|slot| bucket.entry(slot)) {
                each(self.seed.restore(mixed_of(word, at)), V::from_bits(value));
            }
        }
        next
    }

    /// Use again what no worker sees any more, and give memory back. To be called now and then.
    pub fn collect(&mut self) {
        self.grower.collect(&mut self.waiting_slots, |segments, waiting| {
            let slots = SHORT_SLOTS as u64;
            segments.bucket((waiting / slots) as u32).release((waiting % slots) as usize);
        });
    }

    /// Into the first free slot of the key's buckets. Readers find it when its word is stored, and
    /// look there when the buckets before it count it.
    fn put(&self, base: u32, mixed: u64, value: u64) -> bool {
        let bucket = |probe| self.grower.shared.bucket(place::<ShortBucket>(base, mixed, probe));
        let free = (0..PROBES).find_map(|probe| Some((probe, bucket(probe).free_slot()?)));
        let Some((probe, slot)) = free else { return false };
        bucket(probe).publish(slot, short_word(mixed, probe), value);
        (0..probe).for_each(|probe| bucket(probe).pass_by());
        true
    }

    /// Replace the segment at `base` by two.
    fn split(&mut self, base: u32) -> Result<(), ExactError> {
        let places = base..base + (1 << ShortBucket::SEGMENT_BITS);
        let used = places.clone().map(|at| self.grower.shared.bucket(at).used()).sum();
        let halves = self.grower.begin_split(base, used)?;
        let mut entries = [0; 2];
        for at in places {
            for slot in 0..SHORT_SLOTS {
                let Some((word, value)) = self.grower.shared.bucket(at).entry(slot) else {
                    continue;
                };
                let mixed = mixed_of(word, at);
                let half = self.grower.half_of(base, mixed);
                let bucket = |probe| {
                    self.grower.shared.bucket(place::<ShortBucket>(halves[half], mixed, probe))
                };
                // The same slot of the same bucket is free, whatever the others do.
                bucket(short_probe(word)).publish(slot, word, value);
                (0..short_probe(word)).for_each(|probe| bucket(probe).pass_by());
                entries[half] += 1;
            }
        }
        halves.iter().for_each(|half| self.pull_home(*half));
        self.grower.end_split(base, halves, entries);
        Ok(())
    }

    /// Put entries that had to go farther on where there is room now. Nobody reads the segment yet.
    fn pull_home(&self, base: u32) {
        for at in base..base + (1 << ShortBucket::SEGMENT_BITS) {
            for slot in 0..SHORT_SLOTS {
                let Some((word, value)) = self.grower.shared.bucket(at).entry(slot) else {
                    continue;
                };
                let (mixed, far) = (mixed_of(word, at), short_probe(word));
                let bucket =
                    |probe| self.grower.shared.bucket(place::<ShortBucket>(base, mixed, probe));
                let free = (0..far).find_map(|probe| Some((probe, bucket(probe).free_slot()?)));
                let Some((near, free)) = free else { continue };
                bucket(near).publish(free, short_word(mixed, near), value);
                bucket(far).vacate(slot);
                (near..far).for_each(|probe| bucket(probe).unpass());
            }
        }
    }

    /// Make one segment of the one at `base` and its other half, if they are nearly empty.
    fn merge(&mut self, base: u32) {
        let Some((halves, whole)) = self.grower.begin_merge(base) else { return };
        let fits = halves.iter().all(|half| {
            (*half..half + (1 << ShortBucket::SEGMENT_BITS)).all(|at| {
                let bucket = self.grower.shared.bucket(at);
                let mut entries = (0..SHORT_SLOTS).filter_map(|slot| bucket.entry(slot));
                entries.all(|(word, value)| self.put(whole, mixed_of(word, at), value))
            })
        });
        if fits {
            self.grower.end_merge(halves, whole);
        } else {
            self.grower.abandon(whole);
        }
    }
}

/// A stamp is taken for so many removals at the latest.
const WAITING_UNSEALED_MAX: usize = 1024;
/// After so many removals from a segment it is asked whether it should be merged.
const MERGE_EVERY: u32 = 64;
