//! Header lines: one private cache line for each buffer of a pool, and the way from a buffer to its
//! line. Buffers may lie in memory that a peer can write; what we must be able to believe lies
//! here.
//!
//! ```text
//!   in use   0  next segment, length of all, span of this segment, trace, offload, note, age,
//!               class; in debug builds the type of the packet's index
//!   free     0  15 numbers of buffers, when the line belongs to one of the first of a batch
//!           60  the next batch on the stack
//! ```
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::memory::buffer::CACHE_LINE_BYTES;
use crate::memory::mapping::{PAGE_BYTES, PrivateMemory};
#[cfg(debug_assertions)]
use crate::memory::packet::handover::Kind;

/// Pools that can exist at a time in one process: a router has one, a test program many.
pub const POOLS_MAX: usize = 512;
/// Bytes that a node can note about a packet.
pub const NOTE_BYTES: usize = 16;
/// Numbers of buffers that a free buffer's line holds.
pub(crate) const NUMBERS_PER_LINE: usize = 15;

/// A buffer's private line: what is needed rarely. The plain path never touches it.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct BufferHeader {
    /// The next segment of a chained packet: where its buffer begins.
    pub(crate) next: Option<NonNull<u8>>,
    /// Bytes in all segments; valid in the first segment of a chained packet.
    pub(crate) total_length: u32,
    /// For a segment after the first: where its bytes begin and how many there are.
    pub(crate) offset: u16,
    pub(crate) length: u16,
    /// Which trace this packet belongs to; valid when the packet is traced.
    pub(crate) trace: u32,
    /// What the device was asked to do, or promised; valid when the packet says so.
    pub offload: Offload,
    /// What a node has noted; valid when the packet says so.
    pub(crate) note: [u8; NOTE_BYTES],
    /// How old the packet is at least, in parts of a visit; valid when the packet says so.
    pub(crate) age_parts: u16,
    /// The type of what is handed over in the packet's index.
    #[cfg(debug_assertions)]
    pub(crate) kind: Option<Kind>,
    #[cfg(not(debug_assertions))]
    unused_kind: [u8; size_of::<Option<fn()>>()],
    /// The packet's class of service; valid when the packet says so.
    pub(crate) class: u16,
    unused: [u8; 18 - NOTE_BYTES],
    /// The batch below on the stack of free ones, as number plus one. A late look at it is allowed
    /// at any time, so it shares its place with nothing.
    pub(crate) below: AtomicU32,
}

/// Work left to the transmitting device (VIRTIO 1.2 §5.1.6). Lengths are counted from the end of
/// the packet: headers come and go in front of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Offload {
    /// Bytes at the end of the packet that the checksum covers: the transport header and what is
    /// behind it. The field holds the sum of the pseudo header.
    pub checksum_bytes: u16,
    /// Where the field lies, counted from the first of them.
    pub checksum_offset: u16,
    /// Payload bytes of each segment to be made; 0 = the packet stays whole.
    pub segment_bytes: u16,
    /// Bytes of payload at the end of a packet of which segments are to be made.
    pub payload_bytes: u16,
    /// The kind of these segments, as virtio-net names it.
    pub segment_kind: u8,
    /// IP headers of tunnels in front of the one whose payload becomes segments.
    pub encapsulations: u8,
}

const _: () = assert!(size_of::<BufferHeader>() == CACHE_LINE_BYTES);
const _: () = assert!(std::mem::offset_of!(BufferHeader, below) == NUMBERS_PER_LINE * 4);

/// Where the buffers of a pool lie, and their lines.
pub(crate) struct Lines {
    memory: PrivateMemory,
    base: NonNull<u8>,
    stride_bytes: usize,
    /// The multiplicative inverse of the stride in cache lines, modulo 2^64. The stride is odd, so
    /// there is one, and multiplying by it is an exact division.
    inverse: usize,
    place: &'static Place,
}

// SAFETY: places in memory; who may touch which line is decided by who owns its buffer.
unsafe impl Send for Lines {}
// SAFETY: as above.
unsafe impl Sync for Lines {}

/// A pool's entry in the table that leads from a buffer to its line.
#[derive(Default)]
struct Place {
    /// First page of the buffers in the high 36 bits, pages in the low 28, in one word so that a
    /// reader never mixes two pools; 0 = free.
    span: AtomicU64,
    lines: AtomicUsize,
    inverse: AtomicUsize,
}

const SPAN_PAGES_BITS: u32 = 28;

static PLACES: [Place; POOLS_MAX] = [const {
    Place { span: AtomicU64::new(0), lines: AtomicUsize::new(0), inverse: AtomicUsize::new(0) }
}; POOLS_MAX];

impl Place {
    #[inline(always)]
    fn holds(&self, address: usize) -> Option<usize> {
        let span = self.span.load(Ordering::Relaxed) as usize;
        let base = span >> SPAN_PAGES_BITS;
        let page = (address / PAGE_BYTES).wrapping_sub(base);
        (page < span & ((1 << SPAN_PAGES_BITS) - 1)).then_some(base * PAGE_BYTES)
    }
}

/// Modulo 2^64, by Newton's method: each step doubles the bits that are right.
const fn inverse_of(odd: usize) -> usize {
    let mut inverse = odd; // right in the low 3 bits
    let mut step = 0;
    while step < 5 {
        inverse = inverse.wrapping_mul(2usize.wrapping_sub(odd.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
}

/// The line of a buffer of a living pool, named by where the buffer begins. Never inlined: the
/// plain path, which does not come here, would pay for it in registers.
#[cold]
#[inline(never)]
pub(crate) fn line_of(buffer: NonNull<u8>) -> NonNull<BufferHeader> {
    let address = buffer.as_ptr() as usize;
    for place in &PLACES {
        if let Some(base) = place.holds(address) {
            // The entry is of a living pool: it does not change under us.
            let number = ((address - base) / CACHE_LINE_BYTES)
                .wrapping_mul(place.inverse.load(Ordering::Relaxed));
            let lines = place.lines.load(Ordering::Relaxed) as *mut BufferHeader;
            // SAFETY: the pool has a line for each of its buffers.
            return unsafe { NonNull::new_unchecked(lines.add(number)) };
        }
    }
    unreachable!("a buffer outlived its pool");
}

impl Lines {
    /// Lines for `count` buffers that begin at `base`, an odd number of cache lines apart. `None`
    /// when there are too many pools or the pool is too large.
    pub(crate) fn new(
        memory: PrivateMemory,
        base: NonNull<u8>,
        stride_bytes: usize,
        count: usize,
    ) -> Option<Lines> {
        let odd = stride_bytes / CACHE_LINE_BYTES;
        debug_assert!(odd % 2 == 1 && memory.size_bytes() >= count * CACHE_LINE_BYTES);
        let pages = (count * stride_bytes).div_ceil(PAGE_BYTES);
        if pages >> SPAN_PAGES_BITS != 0 {
            return None;
        }
        let span = ((base.as_ptr() as usize / PAGE_BYTES) << SPAN_PAGES_BITS | pages) as u64;
        // Only the one who wins the exchange writes the rest, and nobody reads it before the pool's
        // first buffer is given out.
        let free = |place: &&Place| {
            place.span.compare_exchange(0, span, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let place = PLACES.iter().find(free)?;
        let inverse = inverse_of(odd);
        place.lines.store(memory.base().as_ptr() as usize, Ordering::Relaxed);
        place.inverse.store(inverse, Ordering::Relaxed);
        Some(Lines { memory, base, stride_bytes, inverse, place })
    }

    /// The line of buffer `number`.
    #[inline(always)]
    pub(crate) fn line(&self, number: u32) -> NonNull<BufferHeader> {
        // SAFETY: there is a line for each buffer, and only numbers of buffers are ever asked for.
        unsafe { self.memory.base().cast::<BufferHeader>().add(number as usize) }
    }

    /// The numbers that a free buffer's line holds.
    #[inline(always)]
    pub(crate) fn numbers(&self, number: u32) -> NonNull<[u32; NUMBERS_PER_LINE]> {
        self.line(number).cast()
    }

    /// Where buffer `number` begins.
    #[inline(always)]
    pub(crate) fn buffer(&self, number: u32) -> NonNull<u8> {
        // SAFETY: the memory holds a stride for each buffer.
        unsafe { self.base.add(number as usize * self.stride_bytes) }
    }

    /// The number of the buffer that begins there.
    #[inline(always)]
    pub(crate) fn number(&self, buffer: NonNull<u8>) -> u32 {
        let lines = (buffer.as_ptr() as usize - self.base.as_ptr() as usize) / CACHE_LINE_BYTES;
        lines.wrapping_mul(self.inverse) as u32
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.place.span.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::buffer::BufferPool;
    use crate::memory::mapping::PageSize;

    #[test]
    fn multiplying_by_the_inverse_is_an_exact_division() {
        for odd in (1usize..2000).step_by(2) {
            for number in [0, 1, 2, 127, 16_383, (1 << 24) - 1] {
                assert_eq!((number * odd).wrapping_mul(inverse_of(odd)), number);
            }
        }
    }

    #[test]
    fn each_buffer_of_each_pool_has_a_line_of_its_own_outside_the_shared_memory() {
        let pools = [2048, 4096, 9216]
            .map(|data| BufferPool::new(300, data, PageSize::Small).expect("pool"));
        let mut seen = std::collections::HashSet::new();
        for pool in &pools {
            let shared = pool.memory().base().as_ptr() as usize;
            let mut cache = pool.cache();
            let held: Vec<_> = std::iter::from_fn(|| cache.take()).collect();
            assert_eq!(held.len(), 300);
            for buffer in &held {
                let line = line_of(buffer.0).as_ptr() as usize;
                assert!(seen.insert(line), "two buffers share a line");
                assert!(!(shared..shared + pool.memory().size_bytes()).contains(&line));
            }
            held.into_iter().for_each(|buffer| cache.give(buffer));
        }
    }

    #[test]
    fn a_place_is_free_again_when_its_pool_is_gone() {
        for _ in 0..2 * POOLS_MAX {
            BufferPool::new(128, 2048, PageSize::Small).expect("pool");
        }
    }
}
