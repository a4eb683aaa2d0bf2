//! Memory that never moves: ranges of address space reserved once and committed when touched, and
//! slots in them that are used again only after a grace period.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

use quiver_core::memory::epoch::{Epochs, StageContext, Stamp};

/// Bytes of a large page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes of an ordinary page.
pub const PAGE_BYTES: usize = 4096;

/// Why memory could not be had.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The kernel refused the address space.
    #[error(
        "cannot reserve {bytes} bytes of address space for {what}: {reason}; raise the limit \
         (ulimit -v) or lower the table's limit"
    )]
    Reserve {
        /// What the range was for.
        what: &'static str,
        /// How much was asked.
        bytes: usize,
        /// The kernel's reason.
        reason: std::io::Error,
    },
}

/// Reservations that fail on purpose, for tests of what follows then. Builds without debug
/// assertions do not ask.
pub mod refusal {
    use std::cell::Cell;

    thread_local! {
        static SUCCESSES_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Of this thread's reservations of address space, so many succeed, then all fail; with `None`
    /// all succeed again.
    pub fn after(successes: Option<u32>) {
        SUCCESSES_LEFT.set(successes);
    }

    pub(super) fn is_due() -> bool {
        let left = SUCCESSES_LEFT.get();
        SUCCESSES_LEFT.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    }
}

/// Types for which memory full of zero bytes is a valid value, that need no destructor, and that
/// threads may read while the single writer works on *other* slots.
///
/// # Safety
/// All-zero bytes must be a valid value; the type must be `Sync` in the sense of this module.
pub unsafe trait ZeroValid: 'static {}
// SAFETY: integers and atomics are valid as zeroes.
unsafe impl ZeroValid for u8 {}
// SAFETY: as above.
unsafe impl ZeroValid for u32 {}
// SAFETY: as above.
unsafe impl ZeroValid for u128 {}
// SAFETY: as above.
unsafe impl ZeroValid for AtomicU32 {}
// SAFETY: as above.
unsafe impl ZeroValid for AtomicU64 {}
// SAFETY: an array of valid values.
unsafe impl<T: ZeroValid, const N: usize> ZeroValid for [T; N] {}

/// Which pages a range asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Ordinary pages: for many small things.
    Small,
    /// Transparent 2 MB pages where the kernel has them: for what is read at random.
    Huge,
}

/// An array of zeroes of fixed capacity whose base never moves. Memory is committed on first touch
/// and can be given back; readers never notice growth.
pub struct Reserved<T: ZeroValid> {
    base: NonNull<T>,
    capacity: usize,
    bytes: usize,
    pages: Pages,
    marker: PhantomData<T>,
}

// SAFETY: a Reserved is an array; sharing it is sharing its elements.
unsafe impl<T: ZeroValid + Send> Send for Reserved<T> {}
// SAFETY: as above.
unsafe impl<T: ZeroValid + Sync> Sync for Reserved<T> {}

impl<T: ZeroValid> Reserved<T> {
    /// Reserve `capacity` elements, aligned to a large page.
    ///
    /// # Errors
    /// The size overflows, or the system refuses the address space.
    pub fn new(what: &'static str, capacity: usize, pages: Pages) -> Result<Self, MemoryError> {
        let bytes = (capacity.max(1) * size_of::<T>()).next_multiple_of(HUGE_PAGE_BYTES);
        if cfg!(debug_assertions) && refusal::is_due() {
            let reason = std::io::Error::from_raw_os_error(libc::ENOMEM);
            return Err(MemoryError::Reserve { what, bytes, reason });
        }
        let mapped = bytes + HUGE_PAGE_BYTES;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(MemoryError::Reserve {
                what,
                bytes,
                reason: std::io::Error::last_os_error(),
            });
        }
        let slack = start.align_offset(HUGE_PAGE_BYTES);
        // SAFETY: base stays inside the mapping, and what is unmapped lies outside
        // base..base+bytes.
        let base = unsafe {
            let base = start.byte_add(slack);
            if slack > 0 {
                libc::munmap(start, slack);
            }
            if mapped - slack > bytes {
                libc::munmap(base.byte_add(bytes), mapped - slack - bytes);
            }
            if pages == Pages::Huge {
                // Advice only: without large pages the table works, slower.
                libc::madvise(base, bytes, libc::MADV_HUGEPAGE);
            }
            NonNull::new_unchecked(base.cast::<T>())
        };
        Ok(Reserved { base, capacity, bytes, pages, marker: PhantomData })
    }

    /// Reserve `capacity` elements that are read at random: on large pages where they fill half of
    /// one, so that short arrays do not take one each.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn by_size(what: &'static str, capacity: usize) -> Result<Self, MemoryError> {
        let is_long = capacity.saturating_mul(size_of::<T>()) >= HUGE_PAGE_BYTES / 2;
        Self::new(what, capacity, if is_long { Pages::Huge } else { Pages::Small })
    }

    /// How many elements were reserved.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The element at `index`; past the end it is element 0, so that a wrong index is a wrong
    /// answer and never a wild read.
    #[inline(always)]
    pub fn get(&self, index: usize) -> &T {
        let index = if index < self.capacity { index } else { 0 };
        // SAFETY: index < capacity, and the range is mapped and zero-valid.
        unsafe { &*self.base.as_ptr().add(index) }
    }

    /// The element at `index`, for who shares it with nobody; past the end it is element 0.
    pub fn get_mut(&mut self, index: usize) -> &mut T {
        let index = if index < self.capacity { index } else { 0 };
        // SAFETY: as for `get`, and nobody else has a reference.
        unsafe { &mut *self.base.as_ptr().add(index) }
    }

    /// The base, for look-ups that prove their bounds themselves.
    #[inline(always)]
    pub fn base(&self) -> *const T {
        self.base.as_ptr()
    }

    /// `count` elements from `first`. Bounds are checked.
    #[inline]
    pub fn slice(&self, first: usize, count: usize) -> &[T] {
        assert!(
            first <= self.capacity && count <= self.capacity - first,
            "{first}+{count} of {}",
            self.capacity
        );
        // SAFETY: inside the mapping, as asserted.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(first), count) }
    }

    /// Where element `index` lies, for the writer that owns the slot.
    pub fn slot(&self, index: usize) -> *mut T {
        assert!(index < self.capacity, "slot {index} of {}", self.capacity);
        // SAFETY: inside the mapping, as asserted.
        unsafe { self.base.as_ptr().add(index) }
    }

    /// Give the memory of whole pages inside `range` back; they read as zeroes afterwards.
    pub fn release(&self, range: Range<usize>) {
        let unit = if self.pages == Pages::Huge { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        let end = range.end.min(self.capacity) * size_of::<T>();
        let (first, last) =
            ((range.start * size_of::<T>()).next_multiple_of(unit), end / unit * unit);
        if first < last {
            // SAFETY: whole pages inside this mapping; their content becomes valid zeroes.
            unsafe {
                libc::madvise(
                    self.base.as_ptr().byte_add(first).cast(),
                    last - first,
                    libc::MADV_DONTNEED,
                )
            };
        }
    }

    /// Bytes that are really in memory now.
    pub fn resident_bytes(&self) -> usize {
        let mut present = vec![0u8; self.bytes / PAGE_BYTES];
        // SAFETY: asks about this mapping only; one byte of answer per page.
        let status =
            unsafe { libc::mincore(self.base.as_ptr().cast(), self.bytes, present.as_mut_ptr()) };
        if status != 0 {
            return 0;
        }
        present.iter().filter(|page| **page & 1 != 0).count() * PAGE_BYTES
    }
}

impl<T: ZeroValid + Copy> Reserved<T> {
    /// A copy of `values`, on pages [by its size](Self::by_size).
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn copy_of(what: &'static str, values: &[T]) -> Result<Self, MemoryError> {
        let copy = Self::by_size(what, values.len())?;
        // SAFETY: there is room for as many, in a mapping of its own.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), copy.base.as_ptr(), values.len()) };
        Ok(copy)
    }

    /// All elements.
    #[inline(always)]
    pub fn as_slice(&self) -> &[T] {
        self.slice(0, self.capacity)
    }
}

impl<T: ZeroValid> Drop for Reserved<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone and nobody can borrow it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Ask the processor for the line at `place` ahead of its use.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Things taken out of use, that wait until no worker can still see them. Stamps are taken per
/// batch, not per thing, so that workers need not report for each.
pub struct Limbo<T> {
    open: Vec<T>,
    sealed: VecDeque<(Stamp, Vec<T>)>,
    /// How many are sealed, and where that is told for the bound on what waits.
    sealed_len: usize,
    context: Option<StageContext>,
}

impl<T> Default for Limbo<T> {
    fn default() -> Self {
        Limbo { open: Vec::new(), sealed: VecDeque::new(), sealed_len: 0, context: None }
    }
}

impl<T> Limbo<T> {
    /// Put in `thing`. It must be unpublished before the next [`collect`](Self::collect).
    pub fn push(&mut self, thing: T) {
        self.open.push(thing);
    }

    /// How many things wait.
    pub fn len(&self) -> usize {
        self.open.len() + self.sealed_len
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.sealed.is_empty()
    }

    /// Things put in since the last stamp.
    pub fn unsealed(&self) -> usize {
        self.open.len()
    }

    /// Stamp what was put in, and hand out what no worker sees any more.
    pub fn collect(&mut self, epochs: &Epochs, mut free: impl FnMut(T)) {
        if self.is_empty() {
            return;
        }
        if !self.open.is_empty() {
            self.sealed_len += self.open.len();
            self.sealed.push_back((epochs.stamp(), std::mem::take(&mut self.open)));
        }
        while let Some((_, batch)) =
            self.sealed.pop_front_if(|(stamp, _)| epochs.has_passed(*stamp))
        {
            self.sealed_len -= batch.len();
            batch.into_iter().for_each(&mut free);
        }
        self.context.get_or_insert_with(|| epochs.context()).set(self.sealed_len);
    }
}

/// One stretch of a table, cut into runs of one length.
#[derive(Default)]
struct Slab {
    class: u8,
    listed: bool,
    used: u32,
    fresh: u32,
    free: Vec<u32>,
}

/// The control side of a [`Reserved`] array: hands out runs of consecutive slots, takes them back,
/// and uses them again only after the grace period. Slabs that become empty change their run
/// length, and their memory goes back.
pub struct Slots {
    lengths: &'static [u16],
    slab_len: u32,
    slabs_max: u32,
    slabs_per_granule: u32,
    slabs: Vec<Slab>,
    empty: Vec<u32>,
    partial: Vec<Vec<u32>>,
    limbo: Limbo<(u32, u8)>,
    used: usize,
}

/// A stretch of slots, by its first one and its length.
pub type Freed = Range<usize>;

impl Slots {
    /// Runs of the given `lengths` (ascending) in an array of `capacity`, carved from slabs of
    /// `slab_len`. Memory is given back in pieces of `granule` slots.
    pub fn new(lengths: &'static [u16], capacity: usize, slab_len: u32, granule: u32) -> Slots {
        assert!(lengths.iter().all(|length| u32::from(*length) <= slab_len) && granule >= slab_len);
        Slots {
            lengths,
            slab_len,
            slabs_max: u32::try_from(capacity / slab_len as usize).expect("slots fit in 32 bits"),
            slabs_per_granule: granule / slab_len,
            slabs: Vec::new(),
            empty: Vec::new(),
            partial: vec![Vec::new(); lengths.len()],
            limbo: Limbo::default(),
            used: 0,
        }
    }

    fn class_of(&self, count: usize) -> u8 {
        let class = self.lengths.iter().position(|length| usize::from(*length) >= count);
        class.expect("a run longer than any class") as u8
    }

    /// Take `count` consecutive slots. `None` when the table is full.
    pub fn take(&mut self, count: usize) -> Option<u32> {
        let class = self.class_of(count);
        let length = u32::from(self.lengths[usize::from(class)]);
        let slab_index = match self.partial[usize::from(class)].last() {
            Some(index) => *index,
            None => self.open_slab(class)?,
        };
        let slab = &mut self.slabs[slab_index as usize];
        let offset = slab.free.pop().unwrap_or_else(|| {
            slab.fresh += length;
            slab.fresh - length
        });
        slab.used += 1;
        if slab.free.is_empty() && slab.fresh + length > self.slab_len {
            slab.listed = false;
            self.partial[usize::from(class)].pop();
        }
        self.used += length as usize;
        Some(slab_index * self.slab_len + offset)
    }

    fn open_slab(&mut self, class: u8) -> Option<u32> {
        let index = match self.empty.pop() {
            Some(index) => index,
            None if (self.slabs.len() as u32) < self.slabs_max => {
                self.slabs.push(Slab::default());
                self.slabs.len() as u32 - 1
            }
            None => return None,
        };
        self.slabs[index as usize] = Slab { class, listed: true, ..Slab::default() };
        self.partial[usize::from(class)].push(index);
        Some(index)
    }

    /// Slots that are surely still to be had, whatever the run lengths.
    pub fn headroom(&self) -> usize {
        (self.slabs_max as usize - self.slabs.len() + self.empty.len()) * self.slab_len as usize
    }

    /// Slots in use, rounded up to run lengths, without those that wait.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Slots that wait for workers to finish their pass.
    pub fn waiting(&self) -> usize {
        self.limbo.len()
    }

    /// Runs retired since the last [`reclaim`](Self::reclaim) took a stamp.
    pub fn unsealed(&self) -> usize {
        self.limbo.unsealed()
    }

    /// Take the run at `base` out of use. It must be unpublished before the next
    /// [`reclaim`](Self::reclaim).
    pub fn retire(&mut self, base: u32, count: usize) {
        let class = self.class_of(count);
        self.used -= usize::from(self.lengths[usize::from(class)]);
        self.limbo.push((base, class));
    }

    /// Make free what no worker can see any more; `release` learns which stretches hold nothing.
    pub fn reclaim(&mut self, epochs: &Epochs, mut release: impl FnMut(Freed)) {
        let mut limbo = std::mem::take(&mut self.limbo);
        limbo.collect(epochs, |(base, class)| self.free(base, class, &mut release));
        self.limbo = limbo;
    }

    fn free(&mut self, base: u32, class: u8, release: &mut impl FnMut(Freed)) {
        let (index, offset) = (base / self.slab_len, base % self.slab_len);
        let slab = &mut self.slabs[index as usize];
        debug_assert_eq!(slab.class, class, "a run came back with another length");
        slab.free.push(offset);
        slab.used -= 1;
        if slab.used == 0 {
            if slab.listed {
                self.partial[usize::from(class)].retain(|listed| *listed != index);
            }
            self.slabs[index as usize] = Slab::default();
            self.empty.push(index);
            self.release_granule(index, release);
        } else if !slab.listed {
            slab.listed = true;
            self.partial[usize::from(class)].push(index);
        }
    }

    fn release_granule(&mut self, index: u32, release: &mut impl FnMut(Freed)) {
        let first = index / self.slabs_per_granule * self.slabs_per_granule;
        let last = (first + self.slabs_per_granule).min(self.slabs.len() as u32);
        if (first..last).all(|slab| self.slabs[slab as usize].used == 0) {
            let start = first as usize * self.slab_len as usize;
            release(start..start + (self.slabs_per_granule * self.slab_len) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn released_memory_reads_as_zero_and_is_not_resident() {
        let memory =
            Reserved::<AtomicU64>::new("test", 1 << 20, Pages::Small).expect("address space");
        for index in 0..1 << 20 {
            memory.get(index).store(1, Ordering::Relaxed);
        }
        assert!(memory.resident_bytes() >= 8 << 20);
        memory.release(0..1 << 20);
        assert_eq!(memory.resident_bytes(), 0);
        assert_eq!(memory.get(77).load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_index_past_the_end_reads_element_zero() {
        let memory = Reserved::<AtomicU64>::new("test", 4, Pages::Small).expect("address space");
        memory.get(0).store(9, Ordering::Relaxed);
        assert_eq!(memory.get(4).load(Ordering::Relaxed), 9);
    }

    #[test]
    fn a_retired_slot_is_used_again_only_after_every_reader_reported() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let mut slots = Slots::new(&[1], 4, 4, 4);
        let all: Vec<_> = (0..4).map(|_| slots.take(1).expect("room")).collect();
        assert_eq!(all, [0, 1, 2, 3]);
        assert_eq!(slots.take(1), None);
        slots.retire(2, 1);
        slots.reclaim(&epochs, |_| ());
        assert_eq!((slots.take(1), epochs.stretches()), (None, 1));
        reader.quiescent();
        slots.reclaim(&epochs, |_| ());
        assert_eq!((slots.take(1), epochs.stretches()), (Some(2), 0));
        slots.retire(2, 1);
        slots.reclaim(&epochs, |_| ());
        drop(slots);
        assert_eq!(epochs.stretches(), 0);
    }

    #[test]
    fn an_empty_slab_serves_another_length_and_its_memory_is_offered_back() {
        let epochs = Epochs::new(0);
        let mut slots = Slots::new(&[2, 8], 16, 8, 16);
        let runs: Vec<_> = (0..8).map(|_| slots.take(2).expect("room")).collect();
        assert_eq!(slots.headroom(), 0);
        assert_eq!(slots.take(5), None);
        runs.iter().for_each(|run| slots.retire(*run, 2));
        let mut freed = Vec::new();
        slots.reclaim(&epochs, |range| freed.push(range));
        assert!(matches!(freed[..], [Range { start: 0, end: 16 }]));
        assert!(slots.take(5).is_some());
        assert_eq!(slots.used(), 8);
    }
}
