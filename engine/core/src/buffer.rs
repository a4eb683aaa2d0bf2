//! Buffers: fixed-size pieces of shared memory, kept on a lock-free stack of batches with a small
//! last-in-first-out cache per thread, so that the buffers in use stay in the CPU's cache.
//!
//! ```text
//!  | header 64 B | headroom 256 B | data (2,048 B unless set otherwise) |
//! ```
//! The stride is an odd number of cache lines: with an even one, the headers of all packets would
//! fall on the same few sets of the first-level cache.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use crate::memory::{PageSize, SharedMemory};
use crate::packet::Packet;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};

/// Bytes of a cache line.
pub const CACHE_LINE_BYTES: usize = 64;
/// Bytes of the buffer's own header.
pub const BUFFER_HEADER_BYTES: usize = CACHE_LINE_BYTES;
/// Bytes in front of the data, for headers to come.
pub const HEADROOM_BYTES: usize = 256;
/// Where data begins in a fresh buffer, counted from the buffer's header.
pub const DATA_OFFSET: u16 = (BUFFER_HEADER_BYTES + HEADROOM_BYTES) as u16;
/// Bytes of data in a buffer unless `buffers { default data-size N }` says otherwise.
pub const DATA_BYTES_DEFAULT: usize = 2048;
/// The most that `data-size` may be: offsets in a packet are 16 bits wide.
pub const DATA_BYTES_MAX: usize = 65_536 - 2 * (BUFFER_HEADER_BYTES + HEADROOM_BYTES);
/// Buffers in a pool unless `buffers { buffers-per-numa N }` says otherwise.
pub const BUFFERS_DEFAULT: usize = 16_384;
/// Buffers that move between a thread's cache and the shared stack at once.
pub const BATCH: usize = 128;
/// Buffers that a thread's cache holds at most.
const CACHE_MAX: usize = 4 * BATCH;

/// The first cache line of a buffer: what is needed rarely. The plain path never touches it.
#[repr(C, align(64))]
pub struct BufferHeader {
    /// The next segment of a chained packet.
    pub(crate) next: Option<NonNull<BufferHeader>>,
    /// Bytes in all segments; valid in the first segment of a chained packet.
    pub(crate) total_length: u32,
    /// For a segment after the first: where its bytes begin and how many there are.
    pub(crate) offset: u16,
    pub(crate) length: u16,
    /// Which trace this packet belongs to; valid when the packet is traced.
    pub(crate) trace: u32,
    /// What the device was asked to do, or promised; valid when the packet says so.
    pub offload: Offload,
}

/// Work left to whoever transmits, in the words of virtio-net (VIRTIO 1.2 §5.1.6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Offload {
    /// Where the sum begins, counted from the first byte of the frame.
    pub checksum_start: u16,
    /// Where the sum goes, counted from `checksum_start`.
    pub checksum_offset: u16,
    /// Payload bytes of each segment to be made; 0 = the packet stays whole.
    pub segment_bytes: u16,
    /// Bytes of all headers in front of the payload.
    pub headers_bytes: u16,
    /// TCP over IPv4 1, UDP 3, TCP over IPv6 4, UDP (USO) 5; 0x80 = ECN.
    pub segment_kind: u8,
}

const _: () = assert!(size_of::<BufferHeader>() == BUFFER_HEADER_BYTES);

/// An owned, unused buffer.
#[derive(Debug)]
#[repr(transparent)]
pub struct Buffer(pub(crate) NonNull<BufferHeader>);

// SAFETY: a buffer is owned by one holder at a time.
unsafe impl Send for Buffer {}

/// All buffers of a process.
pub struct BufferPool {
    memory: SharedMemory,
    stride_bytes: usize,
    data_bytes: usize,
    total: usize,
    /// The shared stack: place of the first batch plus one in the low half, a tag against ABA in
    /// the high half.
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

/// A batch as it lies in the data area of its first buffer while it is on the stack.
#[repr(C)]
struct Batch {
    next: AtomicU64,
    count: usize,
    buffers: [Option<NonNull<BufferHeader>>; BATCH],
}

/// Why a pool could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The system refused the memory.
    #[error(
        "cannot map {mib} MiB for {buffers} buffers: {source}; ask for fewer with `buffers {{ buffers-per-numa N }}`"
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
    #[error("buffers: data-size {0} is outside {min}..={max}", min = BATCH * 8 + 64, max = DATA_BYTES_MAX)]
    DataSize(usize),
    /// A count that cannot work.
    #[error("buffers: buffers-per-numa {0} is outside {BATCH}..=16777216")]
    Count(usize),
}

impl BufferPool {
    /// A pool of `buffers` buffers of `data_bytes` each.
    pub fn new(buffers: usize, data_bytes: usize, pages: PageSize) -> Result<Arc<BufferPool>, PoolError> {
        if !(size_of::<Batch>()..=DATA_BYTES_MAX).contains(&data_bytes) {
            return Err(PoolError::DataSize(data_bytes));
        }
        if !(BATCH..=1 << 24).contains(&buffers) {
            return Err(PoolError::Count(buffers));
        }
        let lines = (BUFFER_HEADER_BYTES + HEADROOM_BYTES + data_bytes).div_ceil(CACHE_LINE_BYTES) | 1;
        let stride_bytes = lines * CACHE_LINE_BYTES;
        let size = buffers * stride_bytes;
        let memory = SharedMemory::new("quiver-buffers", size, pages)
            .map_err(|source| PoolError::Memory { mib: size >> 20, buffers, source })?;
        if memory.page_bytes() == crate::memory::PAGE_BYTES && pages == PageSize::Best {
            tracing::warn!(
                "buffers: no free huge pages for {} MiB, using 4 KiB pages; \
                 `sysctl vm.nr_hugepages={}` before the start makes the router faster",
                size >> 20,
                size.div_ceil(crate::memory::HUGE_PAGE_BYTES)
            );
        }
        let pool = Arc::new(BufferPool {
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
        for batch in (0..buffers).collect::<Vec<_>>().chunks(BATCH).rev() {
            let pointers: Vec<_> = batch.iter().map(|&i| pool.buffer_at(i)).collect();
            pool.push_batch(&pointers);
        }
        Ok(pool)
    }

    fn buffer_at(&self, index: usize) -> NonNull<BufferHeader> {
        debug_assert!(index < self.total);
        // SAFETY: the memory holds `total` strides.
        unsafe { self.memory.base().add(index * self.stride_bytes).cast() }
    }

    fn batch_of(buffer: NonNull<BufferHeader>) -> NonNull<Batch> {
        // SAFETY: every buffer has at least `size_of::<Batch>()` bytes of data behind its
        // headroom, 64-byte aligned.
        unsafe { buffer.cast::<u8>().add(DATA_OFFSET as usize).cast() }
    }

    /// The place of a buffer plus one, so that 0 is nothing.
    fn place(&self, buffer: NonNull<BufferHeader>) -> u64 {
        let distance = buffer.as_ptr() as usize - self.memory.base().as_ptr() as usize;
        (distance / CACHE_LINE_BYTES) as u64 + 1
    }

    fn at_place(&self, place: u64) -> NonNull<BufferHeader> {
        // SAFETY: only places of our own buffers are ever stored.
        unsafe { self.memory.base().add((place as usize - 1) * CACHE_LINE_BYTES).cast() }
    }

    /// Put up to [`BATCH`] free buffers on the stack.
    fn push_batch(&self, buffers: &[NonNull<BufferHeader>]) {
        debug_assert!(!buffers.is_empty() && buffers.len() <= BATCH);
        let first = buffers[0];
        let batch = Self::batch_of(first);
        // SAFETY: the buffers are free and ours; only `next` can be looked at by a late `pop`,
        // and it is atomic.
        unsafe {
            (*batch.as_ptr()).count = buffers.len();
            for (slot, buffer) in (*batch.as_ptr()).buffers.iter_mut().zip(buffers) {
                *slot = Some(*buffer);
            }
        }
        let place = self.place(first);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: as above.
            unsafe { (*batch.as_ptr()).next.store(head & 0xffff_ffff, Ordering::Relaxed) };
            let tagged = (((head >> 32).wrapping_add(1)) << 32) | place;
            match self.head.compare_exchange_weak(head, tagged, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(seen) => head = seen,
            }
        }
        self.shared.fetch_add(buffers.len(), Ordering::Relaxed);
    }

    /// Take a batch off the stack into `into`; how many there were.
    fn pop_batch(&self, into: &mut Vec<NonNull<BufferHeader>>) -> usize {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            let place = head & 0xffff_ffff;
            if place == 0 {
                return 0;
            }
            let batch = Self::batch_of(self.at_place(place));
            // SAFETY: the memory is always mapped; `next` may be stale when another thread took
            // the batch meanwhile, and then the tag makes the exchange fail.
            let next = unsafe { (*batch.as_ptr()).next.load(Ordering::Relaxed) };
            let tagged = (((head >> 32).wrapping_add(1)) << 32) | (next & 0xffff_ffff);
            match self.head.compare_exchange_weak(head, tagged, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: the batch is ours alone now.
                    let count = unsafe {
                        let batch = batch.as_ref();
                        into.extend(batch.buffers[..batch.count].iter().flatten());
                        batch.count
                    };
                    self.shared.fetch_sub(count, Ordering::Relaxed);
                    return count;
                }
                Err(seen) => head = seen,
            }
        }
    }

    /// A cache for one thread. At most 64 can exist at a time over the life of a pool.
    pub fn cache(self: &Arc<Self>) -> BufferCache {
        let index = self.caches_taken.fetch_add(1, Ordering::Relaxed);
        assert!(index < CACHES_MAX, "a buffer pool serves at most {CACHES_MAX} threads");
        BufferCache { pool: self.clone(), free: Vec::with_capacity(CACHE_MAX + BATCH), index }
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

    /// The memory all buffers lie in, to share with a peer.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }
}

/// A thread's own few buffers.
pub struct BufferCache {
    pool: Arc<BufferPool>,
    free: Vec<NonNull<BufferHeader>>,
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
        let surplus = self.free.len() - CACHE_MAX / 2;
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
            next = unsafe { segment.as_ref().next };
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
    fn headers_of_neighbouring_buffers_fall_on_different_cache_sets() {
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
