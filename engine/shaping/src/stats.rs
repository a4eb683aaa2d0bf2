//! What nodes have counted. The thread that owns a scheduler writes, any thread reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets of the histogram of delays: below 256 µs, below 512 µs, and so on.
pub const DELAY_BUCKETS: usize = 12;
/// The delay of the first bucket is below so many nanoseconds, as a power of two.
const FIRST_BUCKET_BITS: u32 = 18;
const BUCKETS_PER_WORD: usize = 4;
const BUCKET_BITS: usize = 16;

/// One node's line of counters.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Stats {
    sent_packets: AtomicU64,
    sent_bytes: AtomicU64,
    dropped: AtomicU64,
    marked: AtomicU64,
    /// Bytes in the low half, then packets, then flows, 16 bits each.
    waiting: AtomicU64,
    delays: [AtomicU64; DELAY_BUCKETS / BUCKETS_PER_WORD],
}

const _: () = assert!(size_of::<Stats>() == 64);

/// What a node has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets and bytes that it has let pass, at once or later.
    pub sent: (u64, u64),
    /// Packets that it has dropped.
    pub dropped: u64,
    /// Packets that it has marked.
    pub marked: u64,
    /// Bytes, packets and flows that wait; packets and flows up to 65,535.
    pub waiting: (u32, u16, u16),
    /// Packets by the time that they have waited; all are halved when one is full.
    pub delays: [u16; DELAY_BUCKETS],
}

fn add(to: &AtomicU64, more: u64) {
    to.store(to.load(Relaxed).wrapping_add(more), Relaxed); // one writer
}

impl Stats {
    #[inline]
    pub(crate) fn sent(&self, bytes: u64) {
        add(&self.sent_packets, 1);
        add(&self.sent_bytes, bytes);
    }

    #[inline]
    pub(crate) fn lost(&self, dropped: u64, marked: u64) {
        if dropped > 0 {
            add(&self.dropped, dropped);
        }
        if marked > 0 {
            add(&self.marked, marked);
        }
    }

    #[inline]
    pub(crate) fn waits(&self, bytes: u32, packets: u32, flows: u32) {
        let short = |n: u32| u64::from(n.min(u16::MAX.into()));
        self.waiting.store(u64::from(bytes) | short(packets) << 32 | short(flows) << 48, Relaxed);
    }

    /// A packet has waited.
    #[inline]
    pub(crate) fn delayed(&self, waited_ns: u64) {
        let bits = u64::BITS - waited_ns.leading_zeros();
        let bucket = (bits.saturating_sub(FIRST_BUCKET_BITS) as usize).min(DELAY_BUCKETS - 1);
        let (word, shift) = (bucket / BUCKETS_PER_WORD, bucket % BUCKETS_PER_WORD * BUCKET_BITS);
        let value = self.delays[word].load(Relaxed);
        if value >> shift & 0xffff == 0xffff {
            for word in &self.delays {
                word.store(word.load(Relaxed) >> 1 & 0x7fff_7fff_7fff_7fff, Relaxed);
            }
        }
        add(&self.delays[word], 1 << shift);
    }

    pub(crate) fn reset(&self) {
        for word in [&self.sent_packets, &self.sent_bytes, &self.dropped, &self.marked] {
            word.store(0, Relaxed);
        }
        self.delays.iter().for_each(|word| word.store(0, Relaxed));
        self.waiting.store(0, Relaxed);
    }

    /// What is counted now.
    pub fn get(&self) -> Counted {
        let waiting = self.waiting.load(Relaxed);
        let mut delays = [0; DELAY_BUCKETS];
        for (place, delay) in delays.iter_mut().enumerate() {
            let word = self.delays[place / BUCKETS_PER_WORD].load(Relaxed);
            *delay = (word >> (place % BUCKETS_PER_WORD * BUCKET_BITS)) as u16;
        }
        Counted {
            sent: (self.sent_packets.load(Relaxed), self.sent_bytes.load(Relaxed)),
            dropped: self.dropped.load(Relaxed),
            marked: self.marked.load(Relaxed),
            waiting: (waiting as u32, (waiting >> 32) as u16, (waiting >> 48) as u16),
            delays,
        }
    }
}

impl Counted {
    /// The delay in microseconds that so many of a thousand packets that waited do not exceed: the
    /// upper end of its bucket. `None` when none has waited.
    pub fn delay_us(&self, permille: u64) -> Option<u64> {
        let all: u64 = self.delays.iter().map(|n| u64::from(*n)).sum();
        let wanted = (all * permille).div_ceil(1000).max(1);
        let mut seen = 0;
        let place = self.delays.iter().position(|n| {
            seen += u64::from(*n);
            seen >= wanted
        })?;
        Some((1 << (place as u32 + FIRST_BUCKET_BITS)) / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_known_by_the_end_of_their_bucket_and_old_ones_fade() {
        let stats = Stats::default();
        assert_eq!(stats.get().delay_us(500), None);
        for _ in 0..98 {
            stats.delayed(1_000_000);
        }
        (0..2).for_each(|_| stats.delayed(40_000_000));
        assert_eq!(stats.get().delay_us(500), Some(1048));
        assert_eq!(stats.get().delay_us(990), Some(67_108));
        (0..70_000).for_each(|_| stats.delayed(0));
        assert_eq!(stats.get().delay_us(998), Some(262));
        stats.delayed(u64::MAX);
        assert_eq!(stats.get().delays[DELAY_BUCKETS - 1], 1);
    }
}
