//! What workers ask the control thread to learn: bounded rings of their own, so that a flood of new
//! addresses crowds out nothing else, and each address is asked for once in a while only.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_tables::mac::{MacEntry, MacKey, Seen};

/// Requests of one node that wait for the control thread at most.
pub(crate) const REQUESTS_MAX: usize = 16_384;
/// A node asks for so many sources a second at most, when it goes on for long: asking costs clocks,
/// and known stations' frames need them. Who was not asked for is asked for by a later frame.
pub(crate) const REQUESTS_PER_SECOND: u64 = 3_000_000;
const NS_PER_REQUEST: u64 = 1_000_000_000 / REQUESTS_PER_SECOND;
/// So many it may ask for at once after a pause.
pub(crate) const REQUESTS_AT_ONCE: u64 = 4096;
/// Addresses that a node remembers to have asked for.
const REMEMBERED: usize = 1 << REMEMBERED_BITS;
const REMEMBERED_BITS: u32 = 12;
/// An address that is not learned for so long is asked for again, in units of 2^23 ns (8 ms).
const ASK_AGAIN_TICKS: u64 = 6;
const TICK_SHIFT: u32 = 23;
/// Ticks are remembered in so many low bits.
const TICK: u64 = (1 << REMEMBERED_BITS) - 1;

/// Please learn this source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub key: MacKey,
    pub seen: Seen,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LearnOutcome {
    Queued,
    KnownAlready,
    QueueFull,
    NotNow,
}

/// The asking side, one for each instance of `l2-learn`. Requests of a vector are put together and
/// go into the ring at once, because the other core has its lines.
pub(crate) struct Asker {
    ring: Producer<Request>,
    /// How often the control thread has removed entries; see [`LearnRings::forget`].
    removals: Arc<AtomicU32>,
    /// The same, when this vector began.
    removals_seen: u32,
    /// Requests of this vector.
    asked: Vec<Request>,
    /// How many there may be.
    asked_max: usize,
    /// What was asked, and when. The place and the high bits are the key, the entry to be made and
    /// the one that was found, both without their time stamps (the port, and how often that was
    /// flushed and left its domain), and the removals, mixed; the low bits count ticks.
    remembered: Box<[u64; REMEMBERED]>,
    /// Requests that may be made until more time has passed, and since when.
    allowance: u64,
    since_ns: u64,
}

impl Asker {
    fn new(ring: Producer<Request>, removals: Arc<AtomicU32>) -> Asker {
        Asker {
            ring,
            removals,
            removals_seen: 0,
            asked: Vec::with_capacity(FRAME_PACKETS_MAX),
            asked_max: 0,
            remembered: Box::new([0; REMEMBERED]),
            allowance: REQUESTS_AT_ONCE,
            since_ns: 0,
        }
    }

    /// A vector begins, or goes on.
    #[inline]
    pub fn begin(&mut self, now_ns: u64) {
        if !self.asked.is_empty() {
            return;
        }
        self.removals_seen = self.removals.load(Ordering::Relaxed);
        let more = now_ns.saturating_sub(self.since_ns) / NS_PER_REQUEST;
        self.allowance = self.allowance.saturating_add(more).min(REQUESTS_AT_ONCE);
        self.since_ns += more * NS_PER_REQUEST;
        let room = self.ring.room_for(FRAME_PACKETS_MAX).min(FRAME_PACKETS_MAX);
        self.asked_max = room.min(self.allowance as usize);
    }

    /// Ask, unless it was done a moment ago, or too much has been asked for. A source whose entry
    /// has changed since (it was flushed, removed, or moved) is asked for again at once.
    #[inline]
    pub fn ask(&mut self, request: Request, found: MacEntry, now_ns: u64) -> LearnOutcome {
        let mixed = request.key.word().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let entries = request.seen.entry().place_word() | found.place_word() << 32;
        let removals = u64::from(self.removals_seen).wrapping_mul(0xa076_1d64_78bd_642f);
        let change = entries.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ removals;
        let identity = (mixed ^ change ^ change >> 32) << REMEMBERED_BITS;
        let ticks = now_ns >> TICK_SHIFT & TICK;
        let place = &mut self.remembered[(mixed >> (64 - REMEMBERED_BITS)) as usize];
        if *place & !TICK == identity && ticks.wrapping_sub(*place) & TICK < ASK_AGAIN_TICKS {
            return LearnOutcome::KnownAlready;
        }
        if self.asked.len() >= self.asked_max {
            return if self.allowance > self.asked.len() as u64 {
                LearnOutcome::QueueFull
            } else {
                LearnOutcome::NotNow
            };
        }
        self.asked.push(request);
        *place = identity | ticks;
        LearnOutcome::Queued
    }

    /// The vector is through: the control thread gets what was asked.
    #[inline]
    pub fn end(&mut self) {
        if !self.asked.is_empty() {
            self.allowance -= self.asked.len() as u64;
            self.ring.put_all(&mut self.asked.drain(..));
        }
    }
}

/// Where requests come out, on the control thread.
#[derive(Clone, Default)]
pub(crate) struct LearnRings {
    consumers: Arc<Mutex<Vec<Consumer<Request>>>>,
    removals: Arc<AtomicU32>,
}

impl LearnRings {
    /// A ring for one more instance. Called where nodes are made, on the control thread.
    pub fn open(&self) -> Asker {
        let (requests, consumer) = ring(REQUESTS_MAX);
        self.consumers.lock().unwrap_or_else(PoisonError::into_inner).push(consumer);
        Asker::new(requests, self.removals.clone())
    }

    /// Entries were removed: workers ask for their sources again, however short a time ago they
    /// asked.
    pub fn forget(&self) {
        self.removals.fetch_add(1, Ordering::Relaxed);
    }

    /// Take at most `max` requests of each instance. True when more wait.
    pub fn take(&self, max: usize, mut each: impl FnMut(Request)) -> bool {
        let mut all = self.consumers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut more = false;
        for consumer in all.iter_mut() {
            consumer.take_up_to(max, &mut each);
            more |= !consumer.is_empty();
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use quiver_tables::mac::DomainIndex;
    use quiver_wire::MacAddress;

    use super::*;

    fn source(number: u64) -> Request {
        let key = MacKey::new(DomainIndex(1), MacAddress::from_u64(0x0200_0000_0000 + number));
        Request { key, seen: Seen::of_entry(MacEntry::NONE) }
    }

    /// What becomes of the sources, each with its outcome, in one vector.
    fn vector(asker: &mut Asker, numbers: std::ops::Range<u64>, now_ns: u64) -> Vec<LearnOutcome> {
        asker.begin(now_ns);
        let asked =
            numbers.map(|number| asker.ask(source(number), MacEntry::NONE, now_ns)).collect();
        asker.end();
        asked
    }

    #[test]
    fn a_source_is_asked_for_once_in_a_while() {
        let offices = LearnRings::default();
        let mut asker = offices.open();
        assert_eq!(vector(&mut asker, 7..8, 0), [LearnOutcome::Queued]);
        assert_eq!(vector(&mut asker, 7..8, 1_000_000), [LearnOutcome::KnownAlready]);
        assert_eq!(vector(&mut asker, 7..8, 100_000_000), [LearnOutcome::Queued]);
        let mut taken = 0;
        offices.take(16, |request| taken += usize::from(request.key == source(7).key));
        assert_eq!(taken, 2);
    }

    #[test]
    fn a_source_is_asked_for_again_at_once_when_entries_were_removed() {
        let offices = LearnRings::default();
        let mut asker = offices.open();
        assert_eq!(vector(&mut asker, 7..9, 0), [LearnOutcome::Queued; 2]);
        offices.forget();
        assert_eq!(vector(&mut asker, 7..9, 0), [LearnOutcome::Queued; 2]);
        assert_eq!(vector(&mut asker, 7..9, 0), [LearnOutcome::KnownAlready; 2]);
    }

    #[test]
    fn a_flood_of_sources_is_asked_for_at_a_bounded_rate() {
        let offices = LearnRings::default();
        let mut asker = offices.open();
        let told = |asker: &mut Asker, from: u64, vectors: u64, now_ns: u64| {
            let mut told = 0;
            for first in (from..from + vectors * 256).step_by(256) {
                let all = vector(asker, first..first + 256, now_ns);
                told += all.iter().filter(|asked| **asked == LearnOutcome::Queued).count() as u64;
                offices.take(256, |_| {});
            }
            told
        };
        assert_eq!(told(&mut asker, 0, 100, 0), REQUESTS_AT_ONCE);
        assert_eq!(vector(&mut asker, 50_000..50_001, 0), [LearnOutcome::NotNow]);
        // A tenth of a millisecond later some more are.
        assert_eq!(told(&mut asker, 100_000, 100, 100_000), 100_000 / NS_PER_REQUEST);
    }

    #[test]
    fn a_full_ring_is_told_from_too_many_a_second() {
        let offices = LearnRings::default();
        let mut asker = offices.open();
        let mut now_ns = 0;
        for first in (0..REQUESTS_MAX as u64).step_by(256) {
            now_ns += 1_000_000;
            assert!(
                vector(&mut asker, first..first + 256, now_ns)
                    .iter()
                    .all(|asked| *asked == LearnOutcome::Queued)
            );
        }
        assert_eq!(vector(&mut asker, 1 << 20..(1 << 20) + 1, now_ns), [LearnOutcome::QueueFull]);
        assert!(!offices.take(usize::MAX, |_| {}));
        assert_eq!(vector(&mut asker, 1 << 20..(1 << 20) + 1, now_ns), [LearnOutcome::Queued]);
    }
}
