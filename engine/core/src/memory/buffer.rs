//! Buffers: fixed-size pieces of shared memory, kept on a lock-free stack of batches with a small
//! last-in-first-out cache per thread, so that the buffers in use stay in the CPU's cache.
//!
//! ```text
//!  shared with peers   | headroom 256 B | data (2,048 B unless set otherwise) |   per buffer
//!  private             | header line 64 B |                                       per buffer
//! ```
//! The stride is an odd number of cache lines: with an even one, the headers of all packets would
//! fall on the same few sets of the first-level cache. A peer that was given the memory can change
//! the bytes of packets, but nothing that we keep about them.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use crate::graph::frame::{FRAME_PACKETS_MAX, Frame};
pub use crate::memory::header_line::{BufferHeader, Offload};
use crate::memory::header_line::{Lines, NUMBERS_PER_LINE, POOLS_MAX, line_of};
use crate::memory::mapping::{PageSize, PrivateMemory, SharedMemory};
use crate::memory::packet::Packet;
use crate::memory::sync::{AtomicU64, AtomicUsize, Ordering};

/// Bytes of a cache line.
pub const CACHE_LINE_BYTES: usize = 64;
/// Bytes in front of the data, for headers to come.
pub const HEADROOM_BYTES: usize = 256;
/// Where data begins in a fresh buffer, counted from the buffer's first byte.
pub const DATA_OFFSET: u16 = HEADROOM_BYTES as u16;
/// Bytes of data in a buffer unless `buffers { default data-size N }` says otherwise.
pub const DATA_BYTES_DEFAULT: usize = 2048;
/// The fewest that `data-size` may be.
pub const DATA_BYTES_MIN: usize = 1024;
/// The most that `data-size` may be: offsets in a packet are 16 bits wide.
pub const DATA_BYTES_MAX: usize = 65_536 - 2 * HEADROOM_BYTES - 2 * CACHE_LINE_BYTES;
/// Buffers in a pool unless `buffers { buffers-per-numa N }` says otherwise.
pub const BUFFERS_DEFAULT: usize = 16_384;
/// Buffers that move between a thread's cache and the shared stack at once.
pub const BATCH: usize = 128;
/// Buffers that a thread's cache holds at most, between two calls.
const CACHE_MAX: usize = 4 * BATCH;
/// Places in a cache: a whole vector fits when it is nearly full.
const CACHE_ROOM: usize = CACHE_MAX + FRAME_PACKETS_MAX;

/// An owned, unused buffer.
#[derive(Debug)]
#[repr(transparent)]
pub struct Buffer(pub(crate) NonNull<u8>);

// SAFETY: a buffer is owned by one holder at a time.
unsafe impl Send for Buffer {}
// SAFETY: a shared reference tells where it lies and no more.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Where its data begins, behind the headroom.
    #[inline(always)]
    pub fn data(&self) -> *const u8 {
        self.0.as_ptr().wrapping_add(DATA_OFFSET as usize)
    }
}

/// All buffers of a process.
pub struct BufferPool {
    lines: Lines,
    memory: SharedMemory,
    stride_bytes: usize,
    data_bytes: usize,
    total: usize,
    /// The shared stack: number of the first batch's first buffer plus one in the low half, a tag
    /// against ABA in the high half.
    head: AtomicU64,
    /// Buffers on the shared stack.
    shared: AtomicUsize,
    /// Buffers in each cache, and how often each found the pool empty.
    caches: Box<[CacheCount]>,
    caches_taken: AtomicUsize,
}

#[repr(align(64))]
#[derive(Default)]
struct CacheCount {
    cached: AtomicUsize,
    failures: AtomicU64,
}

/// Caches that one pool can serve: workers, the control thread and spare ones.
const CACHES_MAX: usize = 64;

/// Why a pool could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The system refused the memory.
    #[error(
        "cannot map {mib} MiB for {buffers} buffers: {source}; ask for fewer with `buffers {{ \
         buffers-per-numa N }}`"
    )]
    Memory {
        /// Megabytes asked for.
        mib: usize,
        /// Buffers asked for.
        buffers: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// A size that cannot work.
    #[error(
        "buffers: data-size {0} is outside {min}..={max}", min = DATA_BYTES_MIN,
        max = DATA_BYTES_MAX
    )]
    DataSize(usize),
    /// A count that cannot work.
    #[error("buffers: buffers-per-numa {0} is outside {BATCH}..=16777216")]
    Count(usize),
    /// Limits of the table of pools.
    #[error("buffers: more than {POOLS_MAX} pools in one process, or one of more than a terabyte")]
    Pools,
}

impl BufferPool {
    /// A pool of `buffers` buffers of `data_bytes` each.
    ///
    /// # Errors
    /// A size is out of range, or the system refuses the memory.
    pub fn new(
        buffers: usize,
        data_bytes: usize,
        pages: PageSize,
    ) -> Result<Arc<BufferPool>, PoolError> {
        if !(DATA_BYTES_MIN..=DATA_BYTES_MAX).contains(&data_bytes) {
            return Err(PoolError::DataSize(data_bytes));
        }
        if !(BATCH..=1 << 24).contains(&buffers) {
            return Err(PoolError::Count(buffers));
        }
        let lines = (HEADROOM_BYTES + data_bytes).div_ceil(CACHE_LINE_BYTES) | 1;
        let stride_bytes = lines * CACHE_LINE_BYTES;
        let size = buffers * stride_bytes;
        let refused = |source| PoolError::Memory { mib: size >> 20, buffers, source };
        let memory = SharedMemory::new("quiver-buffers", size, pages).map_err(refused)?;
        let private = PrivateMemory::new(buffers * CACHE_LINE_BYTES).map_err(refused)?;
        let lines =
            Lines::new(private, memory.base(), stride_bytes, buffers).ok_or(PoolError::Pools)?;
        if memory.page_bytes() == crate::memory::mapping::PAGE_BYTES && pages == PageSize::Best {
            tracing::warn!(
                "buffers: no free huge pages for {} MiB, using 4 KiB pages; \
                 `sysctl vm.nr_hugepages={}` before the start makes the router faster",
                size >> 20,
                size.div_ceil(crate::memory::mapping::HUGE_PAGE_BYTES)
            );
        }
        let pool = Arc::new(BufferPool {
            lines,
            memory,
            stride_bytes,
            data_bytes,
            total: buffers,
            head: AtomicU64::new(0),
            shared: AtomicUsize::new(0),
            caches: (0..CACHES_MAX).map(|_| CacheCount::default()).collect(),
            caches_taken: AtomicUsize::new(0),
        });
        // From the last to the first, so that the first batch taken lies at the front.
        for batch in (0..buffers as u32).collect::<Vec<_>>().chunks(BATCH).rev() {
            let buffers: Vec<_> = batch.iter().map(|&number| pool.lines.buffer(number)).collect();
            pool.push_batch(&buffers);
        }
        Ok(pool)
    }

    /// Put up to [`BATCH`] free buffers on the stack. Their numbers go into the lines of the first
    /// few: the first line holds their count and the next 14, each further line the next 15.
    fn push_batch(&self, buffers: &[NonNull<u8>]) {
        let Some((first, others)) = buffers.split_first() else { return };
        debug_assert!(buffers.len() <= BATCH);
        let lines = &self.lines;
        let first = lines.number(*first);
        let (head, tail) = others.split_at(others.len().min(NUMBERS_PER_LINE - 1));
        // SAFETY: the buffers are free and ours, and so are their lines; only `below` can be looked
        // at by a late `pop_batch`, and it is atomic and has its place for itself.
        unsafe {
            let numbers = lines.numbers(first).as_mut();
            numbers[0] = others.len() as u32;
            numbers[1..].iter_mut().zip(head).for_each(|(n, buffer)| *n = lines.number(*buffer));
            for (part, holder) in tail.chunks(NUMBERS_PER_LINE).zip(head) {
                let numbers = lines.numbers(lines.number(*holder)).as_mut();
                numbers.iter_mut().zip(part).for_each(|(n, buffer)| *n = lines.number(*buffer));
            }
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: as above.
            unsafe { lines.line(first).as_ref().below.store(head as u32, Ordering::Relaxed) };
            let tagged = (((head >> 32).wrapping_add(1)) << 32) | (first as u64 + 1);
            match self.head.compare_exchange_weak(head, tagged, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(seen) => head = seen,
            }
        }
        self.shared.fetch_add(buffers.len(), Ordering::Relaxed);
    }

    /// Take a batch off the stack into `into`; how many there were.
    fn pop_batch(&self, into: &mut Vec<NonNull<u8>>) -> usize {
        let lines = &self.lines;
        let mut head = self.head.load(Ordering::Acquire);
        let first = loop {
            let Some(first) = (head as u32).checked_sub(1) else { return 0 };
            // SAFETY: lines live as long as the pool; what we read may be stale when another thread
            // took the batch meanwhile, and then the tag makes the exchange fail.
            let below = unsafe { lines.line(first).as_ref().below.load(Ordering::Relaxed) };
            let tagged = (((head >> 32).wrapping_add(1)) << 32) | below as u64;
            match self.head.compare_exchange_weak(head, tagged, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => break first,
                Err(seen) => head = seen,
            }
        };
        // SAFETY: the batch is ours alone now; its lines are as `push_batch` wrote them.
        let count = unsafe {
            let numbers = lines.numbers(first).as_ref();
            let others = numbers[0] as usize;
            let (here, mut left) = (others.min(NUMBERS_PER_LINE - 1), others);
            into.push(lines.buffer(first));
            into.extend(numbers[1..=here].iter().map(|n| lines.buffer(*n)));
            left -= here;
            for holder in &numbers[1..] {
                if left == 0 {
                    break;
                }
                let part = &lines.numbers(*holder).as_ref()[..left.min(NUMBERS_PER_LINE)];
                into.extend(part.iter().map(|n| lines.buffer(*n)));
                left -= part.len();
            }
            others + 1
        };
        self.shared.fetch_sub(count, Ordering::Relaxed);
        count
    }

    /// Take buffers back from a holder without a cache, a device that goes away.
    pub fn take_back(&self, buffers: impl Iterator<Item = Buffer>) {
        let all: Vec<_> = buffers.map(|buffer| buffer.0).collect();
        all.chunks(BATCH).for_each(|batch| self.push_batch(batch));
    }

    /// Take a packet back from a node that goes away.
    pub fn take_back_packet(&self, packet: Packet) {
        let mut buffers = Vec::new();
        packet.into_segments(|buffer, _, _| buffers.push(buffer));
        self.take_back(buffers.into_iter());
    }

    /// A cache for one thread. At most 64 can exist at a time over the life of a pool.
    pub fn cache(self: &Arc<Self>) -> BufferCache {
        let index = self.caches_taken.fetch_add(1, Ordering::Relaxed);
        assert!(index < CACHES_MAX, "a buffer pool serves at most {CACHES_MAX} threads");
        BufferCache { pool: self.clone(), free: Vec::with_capacity(CACHE_ROOM), index }
    }

    /// Buffers in the pool.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Buffers that nobody uses: on the stack and in the caches. Exact when no thread runs.
    pub fn free(&self) -> usize {
        self.shared.load(Ordering::Relaxed) + self.cached()
    }

    /// Buffers in the caches of threads.
    pub fn cached(&self) -> usize {
        self.caches.iter().map(|c| c.cached.load(Ordering::Relaxed)).sum()
    }

    /// How often a thread wanted a buffer and there was none.
    pub fn failures(&self) -> u64 {
        self.caches.iter().map(|c| c.failures.load(Ordering::Relaxed)).sum()
    }

    /// Bytes of data in a buffer.
    pub fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// Bytes from one buffer to the next.
    pub fn stride_bytes(&self) -> usize {
        self.stride_bytes
    }

    /// The memory all buffers lie in, headroom and data only: what a peer can be given.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }
}

/// A thread's own few buffers.
pub struct BufferCache {
    pool: Arc<BufferPool>,
    free: Vec<NonNull<u8>>,
    index: usize,
}

// SAFETY: the cache owns its buffers.
unsafe impl Send for BufferCache {}

impl BufferCache {
    /// The pool behind it.
    pub fn pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    #[inline]
    fn note(&self) {
        self.pool.caches[self.index].cached.store(self.free.len(), Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> bool {
        let got = self.pool.pop_batch(&mut self.free);
        self.note();
        if got == 0 {
            let failures = &self.pool.caches[self.index].failures;
            failures.store(failures.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        got > 0
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) {
        // The oldest go: what was freed last is still warm.
        let surplus = (self.free.len() - CACHE_MAX / 2) / BATCH * BATCH;
        for batch in self.free[..surplus].chunks(BATCH) {
            self.pool.push_batch(batch);
        }
        self.free.drain(..surplus);
        self.note();
    }

    /// Take a buffer; `None` when the pool is empty.
    #[inline]
    pub fn take(&mut self) -> Option<Buffer> {
        if self.free.is_empty() && !self.refill() {
            return None;
        }
        self.free.pop().map(Buffer)
    }

    /// Make sure that up to `count` buffers (at most [`BATCH`]·3) can be taken without another look
    /// at the pool; how many can.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> usize {
        while self.free.len() < count.min(CACHE_MAX - BATCH) {
            if !self.refill() {
                break;
            }
        }
        self.free.len().min(count)
    }

    /// Give a buffer back.
    #[inline]
    pub fn give(&mut self, buffer: Buffer) {
        self.free.push(buffer.0);
        if self.free.len() >= CACHE_MAX {
            self.spill();
        }
    }

    /// Give back many buffers at once.
    #[inline(always)]
    pub fn give_all(&mut self, buffers: impl Iterator<Item = Buffer>) {
        for buffer in buffers {
            self.give(buffer);
        }
    }

    /// Give back the buffers of all packets of a vector.
    #[inline]
    pub fn free_all(&mut self, frame: &mut Frame) {
        if frame.packets().iter().fold(false, |any, packet| any | packet.is_chained()) {
            return frame.drain().for_each(|packet| self.free(packet));
        }
        let (before, count) = (self.free.len(), frame.len());
        debug_assert!(before + count <= CACHE_ROOM);
        self.free.reserve(count); // there is room; the compiler cannot know
        for (place, packet) in frame.drain().enumerate() {
            // SAFETY: room was reserved; the length grows below.
            unsafe { self.free.as_mut_ptr().add(before + place).write(packet.into_buffer().0) };
        }
        // SAFETY: the places up to here were written just now.
        unsafe { self.free.set_len(before + count) };
        if self.free.len() >= CACHE_MAX {
            self.spill();
        }
    }

    /// A packet of no bytes yet, data starting behind the headroom; `None` when the pool is empty.
    #[inline]
    pub fn packet(&mut self) -> Option<Packet> {
        self.take().map(Packet::new)
    }

    /// Give back all buffers of a packet.
    #[inline]
    pub fn free(&mut self, packet: Packet) {
        if packet.is_chained() {
            self.free_tail(&packet);
        }
        self.give(packet.into_buffer());
    }

    #[cold]
    #[inline(never)]
    fn free_tail(&mut self, packet: &Packet) {
        let mut next = packet.header_line().next;
        while let Some(segment) = next {
            // SAFETY: segments of a packet belong to it, and it is being taken apart.
            next = unsafe { line_of(segment).as_ref().next };
            self.give(Buffer(segment));
        }
    }

    /// Give all buffers back to the shared stack, so that they rotate through the whole pool.
    pub fn flush(&mut self) {
        while !self.free.is_empty() {
            let from = self.free.len().saturating_sub(BATCH);
            let batch = self.free.split_off(from);
            self.pool.push_batch(&batch);
        }
        self.note();
    }

    /// Tell the pool how many buffers lie here; called once per pass.
    #[inline]
    pub fn report(&self) {
        self.note();
    }
}

impl Drop for BufferCache {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn pool(buffers: usize) -> Arc<BufferPool> {
        BufferPool::new(buffers, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool")
    }

    #[test]
    fn every_buffer_can_be_taken_once_and_given_back() {
        let pool = pool(1000);
        let mut cache = pool.cache();
        let mut held = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some(buffer) = cache.take() {
            assert!(seen.insert(buffer.0));
            held.push(buffer);
        }
        assert_eq!(held.len(), 1000);
        assert_eq!(pool.failures(), 1);
        held.into_iter().for_each(|b| cache.give(b));
        drop(cache);
        assert_eq!(pool.free(), 1000);
    }

    #[test]
    fn a_batch_of_any_size_comes_off_the_stack_as_it_went_on() {
        let pool = pool(BATCH);
        for size in 1..=BATCH {
            let mut all = Vec::new();
            assert_eq!(pool.pop_batch(&mut all), BATCH);
            let (one, other) = all.split_at(size);
            pool.push_batch(one);
            pool.push_batch(other);
            let mut seen = Vec::new();
            if size < BATCH {
                assert_eq!(pool.pop_batch(&mut seen), BATCH - size);
                assert_eq!(seen, other);
            }
            assert_eq!(pool.pop_batch(&mut seen), size);
            assert_eq!(seen[BATCH - size..], *one);
            assert_eq!((pool.pop_batch(&mut seen), pool.free()), (0, 0));
            pool.take_back(seen.into_iter().rev().map(Buffer));
        }
    }

    #[test]
    fn first_lines_of_neighbouring_buffers_fall_on_different_cache_sets() {
        assert_eq!(pool(256).stride_bytes() / CACHE_LINE_BYTES % 2, 1);
    }

    #[test]
    fn threads_that_take_and_give_lose_nothing() {
        let pool = pool(4096);
        std::thread::scope(|scope| {
            for seed in 1..4u64 {
                let mut cache = pool.cache();
                scope.spawn(move || {
                    let mut state = seed;
                    let mut held = Vec::new();
                    for _ in 0..20_000 {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        if state & 1 == 0 {
                            held.extend((0..state % 300).map_while(|_| cache.take()));
                        } else {
                            (0..state % 300).for_each(|_| {
                                if let Some(b) = held.pop() {
                                    cache.give(b)
                                }
                            });
                        }
                    }
                    held.into_iter().for_each(|b| cache.give(b));
                });
            }
        });
        assert_eq!(pool.free(), 4096);
    }
}
