//! An extendible directory of segments: what lets a table grow and shrink one segment at a time
//! while readers run.
//!
//! ```text
//! hash ─► spread ─► top bits ─► directory ─► segment: 2^n buckets ─► low bits ─► bucket
//! ```
//!
//! A directory of depth *d* has 2^*d* entries and lies at 2^*d* in one array that holds them all,
//! so that one store of the depth publishes another one. A segment that is full is replaced by two:
//! each entry is copied to the same bucket of one of them, the directory entries are stored, and
//! the old segment waits for its grace period unchanged, so that who came by the old entry misses
//! nothing that was there when it came.
//!
//! If all segments were equally likely, all would fill up and split at about the same time, and
//! memory would go up and down between one and two times of what is needed. So the hash is spread
//! unevenly: a segment at the high end gets about twice the share of one at the low end, and they
//! split one after the other, at any size of the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::memory::epoch::Epochs;

use super::{ExactError, Limits};
use crate::memory::{HUGE_PAGE_BYTES, Limbo, MemoryError, Pages, Reserved, Slots, ZeroValid};

/// A bucket as segments see it: one cache line.
pub(super) trait Bucket: ZeroValid + Send + Sync {
    /// Buckets of a segment, as a power of two.
    const SEGMENT_BITS: u32;
    /// Entries of a bucket.
    const SLOTS: usize;
    /// A segment that is so full, in sixteenths, is split.
    const SPLIT_AT_16THS: u32;
    /// Make it empty, while nobody reads it.
    fn clear(&self);
}

/// Directories up to this size lie in ordinary pages.
const SMALL_DIRECTORY_BYTES: usize = 1 << 15;
/// Buckets that a key may lie in.
pub const PROBES: u32 = 8;

/// What readers see.
pub(super) struct Segments<B: Bucket> {
    buckets: Reserved<B>,
    directory: Reserved<AtomicU32>,
    depth: AtomicU32,
}

/// The directory of one moment and the buckets, for one batch of look-ups.
#[derive(Clone, Copy)]
pub(super) struct View<'s, B> {
    buckets: &'s [B],
    directory: &'s [AtomicU32],
    shift: u32,
}

/// More of the low numbers than of the high ones come in; all come out about twice as dense at one
/// end as at the other. Monotone.
#[inline(always)]
fn spread(hash: u64) -> u64 {
    let high = hash >> 32;
    let bend = (high * ((1 << 32) - high)) >> 32;
    high - (bend >> 2) - (bend >> 4)
}

/// The first number of the upper half of a hash whose spread is at least `spread`.
fn unspread(wanted: u64) -> u64 {
    let (mut low, mut high) = (0u64, 1 << 32);
    while low < high {
        let middle = (low + high) / 2;
        if spread(middle << 32) < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl<B: Bucket> Segments<B> {
    /// The directory of now.
    #[inline(always)]
    pub(super) fn view(&self) -> View<'_, B> {
        let depth = self.depth.load(Ordering::Acquire);
        View {
            buckets: self.buckets.slice(0, self.buckets.capacity()),
            directory: self.directory.slice(1 << depth, 1 << depth),
            shift: 32 - depth,
        }
    }

    /// A bucket by its number.
    #[inline(always)]
    pub(super) fn bucket(&self, place: u32) -> &B {
        self.buckets.get(place as usize)
    }
}

impl<'s, B: Bucket> View<'s, B> {
    /// The number of the first bucket of the segment that `hash` belongs to.
    #[inline(always)]
    pub(super) fn base(&self, hash: u64) -> u32 {
        self.base_at(self.entry(hash))
    }

    /// The directory's entry for `hash`.
    #[inline(always)]
    pub(super) fn entry(&self, hash: u64) -> u32 {
        (spread(hash) >> self.shift) as u32
    }

    /// The number of the first bucket of the segment at a directory's entry.
    #[inline(always)]
    pub(super) fn base_at(&self, entry: u32) -> u32 {
        let segment = self.directory.get(entry as usize);
        segment.map_or(0, |segment| segment.load(Ordering::Acquire)) << B::SEGMENT_BITS
    }

    /// A bucket by its number; the first one for a number that there is not.
    #[inline(always)]
    pub(super) fn bucket(&self, place: u32) -> &'s B {
        self.buckets.get(place as usize).unwrap_or(&self.buckets[0])
    }
}

/// The `probe`-th bucket of the sequence of `hash` in the segment at `base`.
#[inline(always)]
pub(super) fn place<B: Bucket>(base: u32, hash: u64, probe: u32) -> u32 {
    let mask = (1 << B::SEGMENT_BITS) - 1;
    base | (hash as u32).wrapping_add(probe.wrapping_mul(step::<B>(hash))) & mask
}

/// How far apart the buckets of a sequence are: odd, so that they differ.
#[inline(always)]
pub(super) fn step<B: Bucket>(hash: u64) -> u32 {
    (hash >> B::SEGMENT_BITS) as u32 | 1
}

/// What the writer knows of a segment.
#[derive(Clone, Copy, Default)]
struct Info {
    /// Bits of the spread hash that all its entries share.
    depth: u32,
    /// Those bits.
    prefix: u32,
    entries: u32,
}

/// The writer's side.
pub(super) struct Grower<B: Bucket> {
    pub(super) shared: Arc<Segments<B>>,
    pub(super) epochs: Arc<Epochs>,
    pub(super) limits: Limits,
    slots: Slots,
    info: Vec<Info>,
    depth: u32,
    depth_max: u32,
    /// Segments whose depth is the directory's.
    deepest: usize,
    segments: usize,
    entries: usize,
}

impl<B: Bucket> Grower<B> {
    const SEGMENT_SLOTS: u32 = (B::SLOTS as u32) << B::SEGMENT_BITS;
    const SPLIT_AT: u32 = Self::SEGMENT_SLOTS / 16 * B::SPLIT_AT_16THS;
    /// A segment that is crowded with fewer entries than this meets keys that were made to collide.
    const CROWDED_BELOW: u32 = Self::SEGMENT_SLOTS / 4;
    /// Two halves with at most so many entries together become one again.
    const MERGE_BELOW: u32 = Self::SEGMENT_SLOTS / 16 * 5;
    const PER_PAGE: u32 = (HUGE_PAGE_BYTES >> B::SEGMENT_BITS) as u32 / 64;

    pub(super) fn new(epochs: &Arc<Epochs>, limits: Limits) -> Result<Self, MemoryError> {
        const { assert!(size_of::<B>() == 64) };
        // Segments are a bit more than half full on average; those that wait come on top.
        let per_segment = (Self::SEGMENT_SLOTS / 8 * 3) as usize;
        let segments =
            limits.entries_max.div_ceil(per_segment) + limits.entries_max.div_ceil(per_segment) / 4;
        let segments =
            (segments + 4 * Self::PER_PAGE as usize).next_multiple_of(Self::PER_PAGE as usize);
        // The dense end goes deeper than the average.
        let depth_max = segments.ilog2() + 2;
        let pages =
            if 8usize << depth_max <= SMALL_DIRECTORY_BYTES { Pages::Small } else { Pages::Huge };
        let shared = Segments {
            buckets: Reserved::new(limits.what, segments << B::SEGMENT_BITS, Pages::Huge)?,
            directory: Reserved::new(limits.what, 2 << depth_max, pages)?,
            depth: AtomicU32::new(0),
        };
        let mut grower = Grower {
            shared: Arc::new(shared),
            epochs: epochs.clone(),
            limits,
            slots: Slots::new(&[1], segments, Self::PER_PAGE, Self::PER_PAGE),
            info: vec![Info::default(); segments],
            depth: 0,
            depth_max,
            deepest: 1,
            segments: 1,
            entries: 0,
        };
        let first = grower.slots.take(1).expect("room for one segment");
        grower.publish(first);
        Ok(grower)
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Segments in use, and those that wait for workers to finish a pass.
    pub(super) fn segments(&self) -> (usize, usize) {
        (self.segments, self.slots.waiting())
    }

    pub(super) fn resident_bytes(&self) -> usize {
        self.shared.buckets.resident_bytes() + self.shared.directory.resident_bytes()
    }

    /// The first bucket of the segment for `hash`.
    pub(super) fn base(&self, hash: u64) -> u32 {
        self.shared.view().base(hash)
    }

    /// May the segment at `base` take another entry without being split?
    pub(super) fn has_room(&self, base: u32) -> bool {
        self.info[(base >> B::SEGMENT_BITS) as usize].entries < Self::SPLIT_AT
    }

    /// How many of `entries` keys fall into the segment at `base`, on average.
    pub(super) fn expected(&self, base: u32, entries: usize) -> u64 {
        let info = self.info[(base >> B::SEGMENT_BITS) as usize];
        let bounds = [info.prefix, info.prefix + 1];
        let [first, end] =
            bounds.map(|prefix| u64::from(prefix) << (32 - info.depth)).map(unspread);
        ((u128::from(end - first) * entries as u128) >> 32) as u64
    }

    /// Should the segment at `base` be split before `entries` keys come in, none of which may
    /// split it then? Up to five eighths, fewer than one key in 10^8 finds its eight buckets full;
    /// at three quarters it is one in 10^6.
    pub(super) fn is_small_for(&self, base: u32, entries: usize) -> bool {
        self.expected(base, entries) > u64::from(Self::SEGMENT_SLOTS / 8 * 5)
    }

    /// Is the table at its limit?
    pub(super) fn check_limit(&self) -> Result<(), ExactError> {
        let Limits { what, entries_max, remedy } = self.limits;
        if self.entries < entries_max {
            Ok(())
        } else {
            Err(ExactError::Full { what, entries_max, remedy })
        }
    }

    /// An entry was put into the segment at `base`.
    pub(super) fn count_in(&mut self, base: u32) {
        self.info[(base >> B::SEGMENT_BITS) as usize].entries += 1;
        self.entries += 1;
    }

    /// An entry was taken out of the segment at `base`; so many are left in it.
    pub(super) fn count_out(&mut self, base: u32) -> u32 {
        self.entries -= 1;
        let info = self.info_at(base);
        info.entries -= 1;
        info.entries
    }

    /// The numbers of all segments' first buckets, in order of the directory.
    pub(super) fn bases(&self) -> impl Iterator<Item = u32> + use<'_, B> {
        let mut entry = 0;
        std::iter::from_fn(move || {
            if entry >= 1 << self.depth {
                return None;
            }
            let segment =
                self.shared.directory.get((1 << self.depth) + entry).load(Ordering::Relaxed);
            entry += 1 << (self.depth - self.info[segment as usize].depth);
            Some(segment << B::SEGMENT_BITS)
        })
    }

    /// The first bucket of the segment that holds the spread hash `spread` (of 32 bits), and the
    /// first spread hash behind it, if there is one.
    pub(super) fn segment_at(&self, spread: u32) -> (u32, Option<u32>) {
        let entry = (u64::from(spread) >> (32 - self.depth)) as usize;
        let segment = self.shared.directory.get((1 << self.depth) + entry).load(Ordering::Relaxed);
        let info = self.info[segment as usize];
        let next = (u64::from(info.prefix) + 1) << (32 - info.depth);
        (segment << B::SEGMENT_BITS, u32::try_from(next).ok())
    }

    /// All buckets, in order of the directory.
    pub(super) fn places(&self) -> impl Iterator<Item = u32> + use<'_, B> {
        self.bases().flat_map(|base| base..base + (1 << B::SEGMENT_BITS))
    }

    fn info_at(&mut self, base: u32) -> &mut Info {
        &mut self.info[(base >> B::SEGMENT_BITS) as usize]
    }

    /// Let the directory name `segment` where its prefix says.
    fn publish(&self, segment: u32) {
        let info = self.info[segment as usize];
        let span = 1usize << (self.depth - info.depth);
        let first = (1usize << self.depth) + info.prefix as usize * span;
        for entry in first..first + span {
            self.shared.directory.get(entry).store(segment, Ordering::Release);
        }
    }

    /// Before a split of the segment at `base`, whose buckets hold `used` slots that are not free:
    /// two empty segments, or why not.
    pub(super) fn begin_split(&mut self, base: u32, used: u32) -> Result<[u32; 2], ExactError> {
        let Limits { what, entries_max, remedy } = self.limits;
        let depth = self.info_at(base).depth;
        if used < Self::CROWDED_BELOW || depth == self.depth_max {
            return Err(ExactError::Crowded { what, entries: self.entries });
        }
        let mut take = || self.slots.take(1);
        match (take(), take()) {
            (Some(low), Some(high)) => {
                let halves = [low << B::SEGMENT_BITS, high << B::SEGMENT_BITS];
                halves.iter().for_each(|half| self.clear(*half));
                Ok(halves)
            }
            (one, _) => {
                let waiting = self.slots.waiting();
                one.into_iter().for_each(|segment| self.slots.retire(segment, 1));
                match waiting {
                    0 => Err(ExactError::Full { what, entries_max, remedy }),
                    waiting => Err(ExactError::Waiting { what, waiting }),
                }
            }
        }
    }

    fn clear(&self, base: u32) {
        (base..base + (1 << B::SEGMENT_BITS)).for_each(|place| self.shared.bucket(place).clear());
    }

    /// Which half the entry with `hash` goes to when the segment at `base` is split.
    pub(super) fn half_of(&self, base: u32, hash: u64) -> usize {
        let depth = self.info[(base >> B::SEGMENT_BITS) as usize].depth;
        (spread(hash) >> (31 - depth) & 1) as usize
    }

    /// Publish both halves, filled, in place of the segment at `base`.
    pub(super) fn end_split(&mut self, base: u32, halves: [u32; 2], entries: [u32; 2]) {
        let old = *self.info_at(base);
        if old.depth == self.depth {
            self.double();
        }
        for (half, entries) in [0, 1].into_iter().zip(entries) {
            let new = Info { depth: old.depth + 1, prefix: old.prefix << 1 | half, entries };
            *self.info_at(halves[half as usize]) = new;
            self.publish(halves[half as usize] >> B::SEGMENT_BITS);
        }
        if old.depth + 1 == self.depth {
            self.deepest += 2;
        }
        self.slots.retire(base >> B::SEGMENT_BITS, 1);
        self.segments += 1;
    }

    /// A directory of twice as many entries, each twice.
    fn double(&mut self) {
        let (old, new) = (1usize << self.depth, 2usize << self.depth);
        for entry in 0..new {
            let segment = self.shared.directory.get(old + entry / 2).load(Ordering::Relaxed);
            self.shared.directory.get(new + entry).store(segment, Ordering::Release);
        }
        self.set_depth(self.depth + 1);
        self.deepest = 0;
    }

    fn set_depth(&mut self, depth: u32) {
        self.depth = depth;
        self.shared.depth.store(depth, Ordering::Release);
    }

    /// The segment at `base` and its other half, and an empty one, if they should become one.
    pub(super) fn begin_merge(&mut self, base: u32) -> Option<([u32; 2], u32)> {
        let info = *self.info_at(base);
        if info.depth == 0 || info.entries > Self::MERGE_BELOW {
            return None;
        }
        let other = (info.prefix ^ 1) as usize;
        let entry = (1usize << self.depth) + (other << (self.depth - info.depth));
        let segment = self.shared.directory.get(entry).load(Ordering::Relaxed);
        let other = self.info[segment as usize];
        if other.depth != info.depth || info.entries + other.entries > Self::MERGE_BELOW {
            return None;
        }
        let whole = self.slots.take(1)? << B::SEGMENT_BITS;
        self.clear(whole);
        Some(([base, segment << B::SEGMENT_BITS], whole))
    }

    /// Publish the merged segment.
    pub(super) fn end_merge(&mut self, halves: [u32; 2], whole: u32) {
        let infos = halves.map(|half| *self.info_at(half));
        *self.info_at(whole) = Info {
            depth: infos[0].depth - 1,
            prefix: infos[0].prefix >> 1,
            entries: infos[0].entries + infos[1].entries,
        };
        self.publish(whole >> B::SEGMENT_BITS);
        if infos[0].depth == self.depth {
            self.deepest -= 2;
        }
        halves.iter().for_each(|half| self.slots.retire(half >> B::SEGMENT_BITS, 1));
        self.segments -= 1;
        while self.deepest == 0 && self.depth > 0 {
            self.halve();
        }
    }

    /// A directory of half as many entries: each pair is the same.
    fn halve(&mut self) {
        let (old, new) = (1usize << self.depth, 1usize << (self.depth - 1));
        for entry in 0..new {
            let segment = self.shared.directory.get(old + 2 * entry).load(Ordering::Relaxed);
            self.shared.directory.get(new + entry).store(segment, Ordering::Release);
        }
        self.set_depth(self.depth - 1);
        let depth = self.depth;
        self.deepest = self
            .bases()
            .filter(|base| self.info[(base >> B::SEGMENT_BITS) as usize].depth == depth)
            .count();
    }

    /// Give up a segment that was never published.
    pub(super) fn abandon(&mut self, base: u32) {
        self.slots.retire(base >> B::SEGMENT_BITS, 1);
    }

    /// Make free what no worker sees any more: `waiting` slots, by `release`, and segments.
    ///
    /// A segment must not be used again while a slot of its last life waits. Slots are stamped
    /// before segments, and looked at again when segments were freed: what was stamped earlier has
    /// passed too.
    pub(super) fn collect(
        &mut self,
        waiting: &mut Limbo<u64>,
        mut release: impl FnMut(&Segments<B>, u64),
    ) {
        let shared = &self.shared;
        waiting.collect(&self.epochs, |slot| release(shared, slot));
        self.slots.reclaim(&self.epochs, |range| {
            shared.buckets.release(range.start << B::SEGMENT_BITS..range.end << B::SEGMENT_BITS);
        });
        waiting.collect(&self.epochs, |slot| release(shared, slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unspread_number_is_the_first_of_its_spread() {
        for wanted in (0..1u64 << 32).step_by((1 << 22) + 77) {
            let first = unspread(wanted);
            assert!(spread(first << 32) >= wanted);
            assert!(first == 0 || spread((first - 1) << 32) < wanted);
        }
        assert_eq!((unspread(0), unspread(1 << 32)), (0, 1 << 32));
    }

    #[test]
    fn the_spread_is_monotone_and_one_end_is_twice_as_dense() {
        let mut last = 0;
        for n in 0..1u64 << 16 {
            let at = spread(n << 48);
            assert!(at >= last && at < 1 << 32);
            last = at;
        }
        let width = |from: u64| spread((from + (1 << 24)) << 32) - spread(from << 32);
        let (low, high) = (width(0), width((1 << 32) - (1 << 25)));
        assert!(high as f64 / low as f64 > 1.8, "{low} {high}");
    }
}
