//! The table for longer keys: sessions, local SIDs, tunnels. An entry is a 16-bit tag and the
//! 32-bit index of an object, in which the key stands once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::Epochs;

use super::cells::{LONG_SLOTS, LongBucket, tag_of};
use super::hash::Seed;
use super::kernel::{Batch, Compare, Scalar, run};
use super::segments::{Bucket, Grower, PROBES, Segments, View, place, step};
use super::{ExactError, ExactUse, Limits};
use crate::memory::{Limbo, MemoryError, prefetch};

impl Bucket for LongBucket {
    const SEGMENT_BITS: u32 = 10;
    const SLOTS: usize = LONG_SLOTS;
    const SPLIT_AT_16THS: u32 = 15;
    fn clear(&self) {
        LongBucket::clear(self);
    }
}

/// Where the keys of a table's entries stand: `N` words (of 8 bytes) each, in the caller's objects.
///
/// An object with two keys (both directions of a session) may use two indexes.
pub trait ObjectKeys<const N: usize>: Send + Sync {
    /// The key that `index` stands for. Any index is answered; that of an entry keeps its key from
    /// before it is inserted until a grace period after it was removed.
    fn key(&self, index: u32) -> &[AtomicU64; N];
}

/// A thing that is looked up, by a key of `N` words.
pub trait HasKey<const N: usize> {
    /// Its key.
    fn key(&self) -> &[u64; N];
}

impl<const N: usize> HasKey<N> for [u64; N] {
    #[inline(always)]
    fn key(&self) -> &[u64; N] {
        self
    }
}

/// What [`LongTable::lookup_slice`] says of a key that is not there.
pub const NOT_FOUND: u32 = u32::MAX;

/// Keys that are looked up in one go; a vector of packets.
const VECTOR: usize = 256;
/// Look-ups under way at once, and how far each step lags behind the one before.
const RING: usize = 128;
const CHUNK: usize = 16;
const LAG: usize = 32;
/// Of a lane's state: some entry passed by its first bucket. Below are the bits of its mask.
const PASSED: u32 = 1 << 16;

/// An exact match from keys of `N` words as workers read it. Look up inside a pass.
pub struct LongTable<K: ObjectKeys<N>, const N: usize> {
    segments: Arc<Segments<LongBucket>>,
    seed: Seed,
    keys: Arc<K>,
}

impl<K: ObjectKeys<N>, const N: usize> Clone for LongTable<K, N> {
    fn clone(&self) -> Self {
        LongTable { segments: self.segments.clone(), seed: self.seed, keys: self.keys.clone() }
    }
}

/// Look-ups under way.
struct Ring {
    hashes: [u64; RING],
    bases: [u32; RING],
    states: [u32; RING],
    candidates: [u32; RING],
}

/// Keys that their first bucket did not decide.
struct Pending {
    count: usize,
    lanes: [u8; PENDING],
    hashes: [u64; PENDING],
    bases: [u32; PENDING],
}

const PENDING: usize = 64;

impl<K: ObjectKeys<N>, const N: usize> LongTable<K, N> {
    /// The index of the object with `key`.
    #[inline]
    pub fn lookup(&self, key: &[u64; N]) -> Option<u32> {
        let (hash, view) = (self.seed.hash(key), self.segments.view());
        find(&view, &*self.keys, view.base(hash), hash, key).map(|found| found.index)
    }

    /// The objects' keys, and by that the objects.
    pub fn keys(&self) -> &Arc<K> {
        &self.keys
    }

    /// The indexes of the objects with `keys`, into as many of `indexes`; [`NOT_FOUND`] where there
    /// is none.
    #[inline]
    pub fn lookup_slice<T: HasKey<N>>(&self, variant: Variant, keys: &[T], indexes: &mut [u32]) {
        run(variant, LongBatch { table: self, keys, indexes });
    }

    /// At most 256 keys: ask for buckets; some way behind compare tags and ask for objects; some
    /// way behind that compare keys; go on with what is not there.
    #[inline(always)]
    fn lookup_vector<T: HasKey<N>>(&self, compare: impl Compare, keys: &[T], indexes: &mut [u32]) {
        let (view, seed, objects) = (self.segments.view(), &self.seed, &*self.keys);
        let count = keys.len().min(indexes.len());
        let (keys, indexes) = (&keys[..count], &mut indexes[..count]);
        let mut ring =
            Ring { hashes: [0; RING], bases: [0; RING], states: [0; RING], candidates: [0; RING] };
        let mut pending =
            Pending { count: 0, lanes: [0; PENDING], hashes: [0; PENDING], bases: [0; PENDING] };
        let chunk = |start: usize| start..(start + CHUNK).min(count);
        for start in (0..count + 2 * LAG).step_by(CHUNK) {
            let asked = &keys[start.min(count)..(start + CHUNK).min(count)];
            let at = start % RING;
            let hashes = &mut ring.hashes[at..at + CHUNK];
            hashes.iter_mut().zip(asked).for_each(|(hash, key)| *hash = seed.hash(key.key()));
            // A loop of its own, which becomes vectors.
            let mut entries = [0; CHUNK];
            entries.iter_mut().zip(&*hashes).for_each(|(entry, hash)| *entry = view.entry(*hash));
            for lane in 0..asked.len() {
                let base = view.base_at(entries[lane]);
                prefetch(view.bucket(place::<LongBucket>(base, hashes[lane], 0)));
                ring.bases[at + lane] = base;
            }
            let Some(start) = start.checked_sub(LAG) else { continue };
            for lane in chunk(start) {
                let at = lane % RING;
                let hash = ring.hashes[at];
                let bucket = view.bucket(place::<LongBucket>(ring.bases[at], hash, 0));
                (ring.states[at], ring.candidates[at]) = candidate(compare, bucket, hash);
                prefetch(objects.key(ring.candidates[at]));
            }
            let Some(start) = start.checked_sub(LAG) else { continue };
            for lane in chunk(start) {
                let at = lane % RING;
                let (state, index) = (ring.states[at], ring.candidates[at]);
                let is_key = compare.is_key(objects.key(index), keys[lane].key());
                let hit = is_key & (state & (PASSED - 1) != 0);
                indexes[lane] = if hit { index } else { NOT_FOUND };
                pending.lanes[pending.count % PENDING] = lane as u8;
                pending.hashes[pending.count % PENDING] = ring.hashes[at];
                pending.bases[pending.count % PENDING] = ring.bases[at];
                pending.count += usize::from(!hit & (state != 0));
            }
            if pending.count > PENDING - CHUNK {
                self.go_on(compare, &view, &mut pending, keys, indexes);
            }
        }
        if pending.count > 0 {
            self.go_on(compare, &view, &mut pending, keys, indexes);
        }
    }

    /// Look into the second, third, … bucket of what is pending, in its old segment; or, where a
    /// tag was right and its key was not, into all of them.
    #[inline(always)]
    fn go_on<T: HasKey<N>>(
        &self,
        compare: impl Compare,
        view: &View<'_, LongBucket>,
        pending: &mut Pending,
        keys: &[T],
        indexes: &mut [u32],
    ) {
        let objects = &*self.keys;
        let mut states = [0; PENDING];
        let mut candidates = [0; PENDING];
        for probe in 1..PROBES {
            let count = pending.count.min(PENDING);
            for at in 0..count {
                let (base, hash) = (pending.bases[at], pending.hashes[at]);
                prefetch(view.bucket(place::<LongBucket>(base, hash, probe - 1)));
                prefetch(view.bucket(place::<LongBucket>(base, hash, probe)));
            }
            for at in 0..count {
                let (base, hash) = (pending.bases[at], pending.hashes[at]);
                let before = view.bucket(place::<LongBucket>(base, hash, probe - 1));
                let bucket = view.bucket(place::<LongBucket>(base, hash, probe));
                (states[at], candidates[at]) = candidate(compare, bucket, hash);
                // A tag that was right in the bucket before: its key was not.
                let false_tag = compare.long(before, tag_of(hash)) != 0;
                states[at] |= u32::from(false_tag) << 31;
                prefetch(objects.key(candidates[at]));
            }
            let mut left = 0;
            for at in 0..count {
                let (lane, hash, base) = (pending.lanes[at], pending.hashes[at], pending.bases[at]);
                let key = keys[usize::from(lane)].key();
                let (state, index) = (states[at], candidates[at]);
                if state >> 31 != 0 {
                    let found = find(view, objects, base, hash, key);
                    indexes[usize::from(lane)] = found.map_or(NOT_FOUND, |found| found.index);
                    continue;
                }
                let is_key = compare.is_key(objects.key(index), key);
                let hit = is_key & (state & (PASSED - 1) != 0);
                indexes[usize::from(lane)] = if hit { index } else { NOT_FOUND };
                (pending.lanes[left], pending.hashes[left], pending.bases[left]) =
                    (lane, hash, base);
                left += usize::from(!hit & (state != 0));
            }
            pending.count = left;
            if left == 0 {
                return;
            }
        }
        for at in 0..std::mem::take(&mut pending.count).min(PENDING) {
            let (lane, hash, base) = (pending.lanes[at], pending.hashes[at], pending.bases[at]);
            let found = find(view, objects, base, hash, keys[usize::from(lane)].key());
            indexes[usize::from(lane)] = found.map_or(NOT_FOUND, |found| found.index);
        }
    }
}

/// Keys to look up, and where to put the answers.
struct LongBatch<'b, K: ObjectKeys<N>, T, const N: usize> {
    table: &'b LongTable<K, N>,
    keys: &'b [T],
    indexes: &'b mut [u32],
}

impl<K: ObjectKeys<N>, T: HasKey<N>, const N: usize> Batch for LongBatch<'_, K, T, N> {
    #[inline(always)]
    fn run(self, compare: impl Compare) {
        for (keys, indexes) in self.keys.chunks(VECTOR).zip(self.indexes.chunks_mut(VECTOR)) {
            self.table.lookup_vector(compare, keys, indexes);
        }
    }
}

/// The first object whose tag is right (object 0 where there is none, whose line is at hand), with
/// the mask of right tags and whether entries passed by.
#[inline(always)]
fn candidate(compare: impl Compare, bucket: &LongBucket, hash: u64) -> (u32, u32) {
    let mask = compare.long(bucket, tag_of(hash));
    let passed = if bucket.is_passed_by() { PASSED } else { 0 };
    let index = bucket.index(mask.trailing_zeros() as usize);
    (mask | passed, if mask != 0 { index } else { 0 })
}

/// An entry, found.
struct Found {
    place: u32,
    slot: usize,
    probe: u32,
    index: u32,
}

/// Where a key is.
#[inline(always)]
fn find<K: ObjectKeys<N>, const N: usize>(
    view: &View<'_, LongBucket>,
    keys: &K,
    base: u32,
    hash: u64,
    key: &[u64; N],
) -> Option<Found> {
    for probe in 0..PROBES {
        let place = place::<LongBucket>(base, hash, probe);
        let bucket = view.bucket(place);
        let mut mask = Scalar.long(bucket, tag_of(hash));
        while mask != 0 {
            let slot = mask.trailing_zeros() as usize;
            let index = bucket.index(slot);
            if Scalar.is_key(keys.key(index), key) {
                return Some(Found { place, slot, probe, index });
            }
            mask &= mask - 1;
        }
        if !bucket.is_passed_by() {
            return None;
        }
    }
    None
}

/// The one writer of a [`LongTable`].
pub struct LongWriter<K: ObjectKeys<N>, const N: usize> {
    grower: Grower<LongBucket>,
    seed: Seed,
    keys: Arc<K>,
}

impl<K: ObjectKeys<N>, const N: usize> LongWriter<K, N> {
    /// An empty table of objects whose keys stand in `keys`, hashed with `seed`.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(
        epochs: &Arc<Epochs>,
        limits: Limits,
        seed: Seed,
        keys: Arc<K>,
    ) -> Result<Self, MemoryError> {
        Ok(LongWriter { grower: Grower::new(epochs, limits)?, seed, keys })
    }

    /// What workers look up in.
    pub fn table(&self) -> LongTable<K, N> {
        LongTable { segments: self.grower.shared.clone(), seed: self.seed, keys: self.keys.clone() }
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
        let (segments, waiting) = self.grower.segments();
        ExactUse {
            entries: self.len(),
            segments,
            waiting,
            resident_bytes: self.grower.resident_bytes(),
        }
    }

    /// The index of the object with `key`.
    pub fn get(&self, key: &[u64; N]) -> Option<u32> {
        self.find(self.seed.hash(key), key).map(|found| found.index)
    }

    fn find(&self, hash: u64, key: &[u64; N]) -> Option<Found> {
        let view = self.grower.shared.view();
        find(&view, &*self.keys, view.base(hash), hash, key)
    }

    fn key_of(&self, index: u32) -> [u64; N] {
        self.keys.key(index).each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// Let the object at `index`, whose key is in place, be found by it. An index that was found by
    /// that key before comes back; it is the caller's to retire.
    ///
    /// # Errors
    /// The table is full, or too many keys fall into one bucket.
    pub fn insert(&mut self, index: u32) -> Result<Option<u32>, ExactError> {
        let key = self.key_of(index);
        let hash = self.seed.hash(&key);
        if let Some(found) = self.find(hash, &key) {
            return Ok(Some(self.grower.shared.bucket(found.place).replace(found.slot, index)));
        }
        self.grower.check_limit()?;
        loop {
            let base = self.grower.base(hash);
            if self.grower.has_room(base) && self.put(base, hash, index) {
                self.grower.count_in(base);
                return Ok(None);
            }
            self.collect();
            self.split(base)?;
        }
    }

    /// Let `key` be found no more. The index of its object comes back; it is the caller's to
    /// retire.
    pub fn remove(&mut self, key: &[u64; N]) -> Option<u32> {
        let (index, base, left) = self.take_out(key)?;
        if left.is_multiple_of(MERGE_EVERY) {
            self.merge(base);
        }
        Some(index)
    }

    /// The index of the object with `key`, which is found no more, its segment, and the entries
    /// that are left there.
    fn take_out(&mut self, key: &[u64; N]) -> Option<(u32, u32, u32)> {
        let hash = self.seed.hash(key);
        let found = self.find(hash, key)?;
        let base = self.grower.base(hash);
        self.grower.shared.bucket(found.place).remove(found.slot);
        for probe in 0..found.probe {
            self.grower.shared.bucket(place::<LongBucket>(base, hash, probe)).unpass();
        }
        Some((found.index, base, self.grower.count_out(base)))
    }

    /// Make room for `entries` in all, so that [`insert_in_place`](Self::insert_in_place) finds
    /// some. This allocates, and takes 100 µs for each 5,000 entries.
    ///
    /// # Errors
    /// There is no room for so many, or what was given up is not free yet. The table works as
    /// before.
    pub fn reserve(&mut self, entries: usize) -> Result<(), ExactError> {
        let mut at = Some(0);
        while let Some(first) = at {
            let (base, next) = self.grower.segment_at(first);
            if self.grower.is_small_for(base, entries) {
                self.collect();
                self.split_of(base, u32::MAX)?;
            } else {
                at = next;
            }
        }
        Ok(())
    }

    /// As [`insert`](Self::insert), for a worker: nothing is split, so nothing is allocated.
    ///
    /// # Errors
    /// The table is full, or the key's buckets are: [`reserve`](Self::reserve) makes room.
    pub fn insert_in_place(&mut self, index: u32) -> Result<Option<u32>, ExactError> {
        let key = self.key_of(index);
        let hash = self.seed.hash(&key);
        if let Some(found) = self.find(hash, &key) {
            return Ok(Some(self.grower.shared.bucket(found.place).replace(found.slot, index)));
        }
        self.grower.check_limit()?;
        let base = self.grower.base(hash);
        if !self.put(base, hash, index) {
            let what = self.grower.limits.what;
            return Err(ExactError::Crowded { what, entries: self.len() });
        }
        self.grower.count_in(base);
        Ok(None)
    }

    /// As [`remove`](Self::remove), for a worker: nothing is merged, so nothing is allocated.
    pub fn remove_in_place(&mut self, key: &[u64; N]) -> Option<u32> {
        Some(self.take_out(key)?.0)
    }

    /// Ask for the first bucket of `key` ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, key: &[u64; N]) {
        let (hash, view) = (self.seed.hash(key), self.grower.shared.view());
        prefetch(view.bucket(place::<LongBucket>(view.base(hash), hash, 0)));
    }

    /// Give back the room that [`reserve`](Self::reserve) made and that is not used.
    pub fn shrink(&mut self) {
        loop {
            let before = self.usage_of_segments();
            let bases: Vec<u32> = self.grower.bases().collect();
            for base in bases {
                // A merge takes two segments out, the one behind this one perhaps.
                if self.grower.bases().any(|now| now == base) {
                    self.merge(base);
                }
            }
            self.collect();
            if self.usage_of_segments() == before {
                return;
            }
        }
    }

    fn usage_of_segments(&self) -> usize {
        self.grower.segments().0
    }

    /// The indexes of all entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'_, K, N> {
        self.grower.places().flat_map(move |at| {
            let bucket = self.grower.shared.bucket(at);
            (0..LONG_SLOTS).filter_map(|slot| Some(bucket.entry(slot)?.1))
        })
    }

    /// Use again what no worker sees any more, and give memory back. To be called now and then.
    pub fn collect(&mut self) {
        self.grower.collect(&mut Limbo::default(), |_, _| ());
    }

    /// Into the first free slot of the key's buckets. Readers find it when its tag is stored, and
    /// look there when the buckets before it count it.
    fn put(&self, base: u32, hash: u64, index: u32) -> bool {
        let bucket = |probe| self.grower.shared.bucket(place::<LongBucket>(base, hash, probe));
        let free = (0..PROBES).find_map(|probe| Some((probe, bucket(probe).free_slot()?)));
        let Some((probe, slot)) = free else { return false };
        bucket(probe).publish(slot, tag_of(hash), index);
        (0..probe).for_each(|probe| bucket(probe).pass_by());
        true
    }

    /// Which probe of `hash` lies at `at`.
    fn probe_at(at: u32, hash: u64) -> u32 {
        let mask = (1 << LongBucket::SEGMENT_BITS) - 1;
        let probes = 0..PROBES;
        let is_it = |probe: &u32| {
            (hash as u32).wrapping_add(probe.wrapping_mul(step::<LongBucket>(hash))) & mask
                == at & mask
        };
        probes.into_iter().find(is_it).expect("an entry lies in one of its key's buckets")
    }

    /// All entries of the segment at `base`, with the hashes of their keys, whose lines are asked
    /// for some buckets ahead.
    fn each_entry(&self, base: u32, mut each: impl FnMut(u32, usize, u64, u32) -> bool) -> bool {
        let end = base + (1 << LongBucket::SEGMENT_BITS);
        let entries = |at: u32| {
            let bucket = self.grower.shared.bucket(at);
            (0..LONG_SLOTS).filter_map(move |slot| Some((slot, bucket.entry(slot)?.1)))
        };
        let ask = |at: u32| entries(at).for_each(|(_, index)| prefetch(self.keys.key(index)));
        (base..base + SPLIT_AHEAD).for_each(ask);
        (base..end).all(|at| {
            if at + SPLIT_AHEAD < end {
                ask(at + SPLIT_AHEAD);
            }
            entries(at)
                .all(|(slot, index)| each(at, slot, self.seed.hash(&self.key_of(index)), index))
        })
    }

    /// Replace the segment at `base`, which is full, by two.
    fn split(&mut self, base: u32) -> Result<(), ExactError> {
        let bucket = |at: u32| self.grower.shared.bucket(at);
        let used = (base..base + (1 << LongBucket::SEGMENT_BITS)).map(|at| {
            (0..LONG_SLOTS).filter(|slot| bucket(at).entry(*slot).is_some()).count() as u32
        });
        let used = used.sum();
        self.split_of(base, used)
    }

    /// Replace the segment at `base`, of which `used` slots are taken, by two.
    fn split_of(&mut self, base: u32, used: u32) -> Result<(), ExactError> {
        let halves = self.grower.begin_split(base, used)?;
        let mut entries = [0; 2];
        // Those that had to go farther on, for a second look.
        let mut far = Vec::new();
        self.each_entry(base, |at, slot, hash, index| {
            let half = self.grower.half_of(base, hash);
            let (probe, tag) = (Self::probe_at(at, hash), tag_of(hash));
            let bucket =
                |probe| self.grower.shared.bucket(place::<LongBucket>(halves[half], hash, probe));
            // The same slot of the same bucket is free, whatever the others do.
            bucket(probe).publish(slot, tag, index);
            (0..probe).for_each(|probe| bucket(probe).pass_by());
            entries[half] += 1;
            if probe > 0 {
                far.push((halves[half], hash, probe, slot, index));
            }
            true
        });
        for (half, hash, probe, slot, index) in far {
            // Nearer, where there is room now. Nobody reads the halves yet.
            let bucket = |probe| self.grower.shared.bucket(place::<LongBucket>(half, hash, probe));
            let free = (0..probe).find_map(|probe| Some((probe, bucket(probe).free_slot()?)));
            let Some((near, free)) = free else { continue };
            bucket(near).publish(free, tag_of(hash), index);
            bucket(probe).remove(slot);
            (near..probe).for_each(|probe| bucket(probe).unpass());
        }
        self.grower.end_split(base, halves, entries);
        Ok(())
    }

    /// Make one segment of the one at `base` and its other half, if they are nearly empty.
    fn merge(&mut self, base: u32) {
        let Some((halves, whole)) = self.grower.begin_merge(base) else { return };
        let fits = halves
            .iter()
            .all(|half| self.each_entry(*half, |_, _, hash, index| self.put(whole, hash, index)));
        if fits {
            self.grower.end_merge(halves, whole);
        } else {
            self.grower.abandon(whole);
        }
    }
}

/// Buckets whose objects are asked for ahead.
const SPLIT_AHEAD: u32 = 4;
/// After so many removals from a segment it is asked whether it should be merged.
const MERGE_EVERY: u32 = 64;
