//! The buckets and counts of each subscriber: one line, which a worker has for neighbouring
//! packets.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_policing::meter::{Buckets, Colour};
use quiver_policing::{Policer, Verdict};
use quiver_tables::memory::{HUGE_PAGE_BYTES, MemoryError, PAGE_BYTES, Pages, Reserved, prefetch};

use crate::subscribers::SUBSCRIBERS_MAX;

/// Words of a line.
const WORDS: usize = 8;
/// When the buckets were filled last, in nanoseconds, times two; one more while a worker has the
/// line. 0: nobody has had it, the buckets are full.
const FILLED: usize = 0;
/// The tokens of both buckets.
const HELD: usize = 1;
/// Packets and bytes that conform, and those that violate. Few exceed: they are counted elsewhere.
const CONFORM: usize = 3;
const VIOLATE: usize = 5;
/// Packets that passed because another worker had the line for too long.
const UNMETERED: usize = 7;
/// How often a worker tries for a line. It is had for a few packets; a worker that lost its core
/// meanwhile is not waited for.
const TRIES: u32 = 512;

/// The meters of all subscribers in one direction.
pub(crate) struct Meters {
    lines: Reserved<[AtomicU64; WORDS]>,
    /// Packets and bytes that exceed.
    exceeding: Reserved<[AtomicU64; 2]>,
    /// May another worker want a line that one has?
    is_shared: bool,
}

/// What a subscriber's packets came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Packets and bytes by colour.
    pub colours: [(u64, u64); 3],
    /// Packets that were not metered.
    pub unmetered: u64,
}

impl Counted {
    pub fn is_nothing(&self) -> bool {
        *self == Counted::default()
    }
}

impl Meters {
    /// None in use: memory is committed where they are. So many workers meter.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(workers: usize) -> Result<Meters, MemoryError> {
        let what = "meters of subscribers";
        Ok(Meters {
            lines: Reserved::new(what, SUBSCRIBERS_MAX, Pages::Huge)?,
            exceeding: Reserved::new(what, SUBSCRIBERS_MAX, Pages::Huge)?,
            is_shared: workers != 1,
        })
    }

    /// Ask for a subscriber's line ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, subscriber: u32) {
        prefetch(self.lines.get(subscriber as usize));
    }

    /// Have a subscriber's line for some packets, at a time of the worker's clock; its rates are
    /// those of a policer.
    #[inline(always)]
    pub fn hold<'a>(&'a self, subscriber: u32, policer: &'a Policer, now_ns: u64) -> Held<'a> {
        let words = self.lines.get(subscriber as usize);
        let exceeding = self.exceeding.get(subscriber as usize);
        let taken = match self.is_shared {
            true => take(&words[FILLED]),
            false => Some(words[FILLED].load(Ordering::Relaxed)),
        };
        let buckets = match taken.map(|filled| filled >> 1) {
            None => None,
            // Full once: from then on they are younger than what has filled them.
            Some(filled_ns) if filled_ns <= policer.reset_ns => {
                Some(policer.plan.full(now_ns.max(policer.reset_ns + 1)))
            }
            Some(filled_ns) => {
                let [first, second] = [&words[HELD], &words[HELD + 1]];
                let held = [first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)];
                let mut buckets = Buckets { held, filled_ns };
                policer.plan.fill(&mut buckets, now_ns);
                Some(buckets)
            }
        };
        Held { words, exceeding, policer, buckets, sums: [(0, 0); 3], unmetered: 0 }
    }

    /// What a subscriber's packets came to.
    pub fn counted(&self, subscriber: u32) -> Counted {
        let words = self.lines.get(subscriber as usize);
        let exceeding = self.exceeding.get(subscriber as usize);
        let pair = |words: &[AtomicU64], at: usize| {
            (words[at].load(Ordering::Relaxed), words[at + 1].load(Ordering::Relaxed))
        };
        Counted {
            colours: [pair(words, CONFORM), pair(exceeding, 0), pair(words, VIOLATE)],
            unmetered: words[UNMETERED].load(Ordering::Relaxed),
        }
    }

    /// Bytes that are really in memory.
    pub fn resident_bytes(&self) -> usize {
        self.lines.resident_bytes() + self.exceeding.resident_bytes()
    }

    /// Have the memory of lines, so that no worker waits for it. It costs the time of clearing as
    /// much.
    pub fn commit(&self, subscribers: Range<usize>) {
        commit(&self.lines, subscribers.clone());
        commit(&self.exceeding, subscribers);
    }

    /// Make lines that no worker has any more as if nobody had ever had them.
    pub fn clear(&self, subscribers: Range<usize>) {
        clear(&self.lines, subscribers.clone());
        clear(&self.exceeding, subscribers);
    }
}

/// Write to each page of some elements, without a change: workers may have them meanwhile.
fn commit<const W: usize>(array: &Reserved<[AtomicU64; W]>, elements: Range<usize>) {
    let per_page = PAGE_BYTES / size_of::<[AtomicU64; W]>();
    let first = elements.start / per_page * per_page;
    for element in (first..elements.end).step_by(per_page) {
        // An addition of 0 would be compiled to a load, which finds the page of zeros.
        let _ =
            array.get(element)[W - 1].compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Make some elements zero. Whole pages go back to the system, and are zeros when they are
/// committed again.
fn clear<const W: usize>(array: &Reserved<[AtomicU64; W]>, elements: Range<usize>) {
    let per_page = HUGE_PAGE_BYTES / size_of::<[AtomicU64; W]>();
    if elements.start.is_multiple_of(per_page) && elements.len().is_multiple_of(per_page) {
        return array.release(elements);
    }
    for word in elements.flat_map(|element| array.get(element)) {
        if word.load(Ordering::Relaxed) != 0 {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// Have a line: the word as it was. Nothing where another worker has it for too long.
#[inline(always)]
fn take(filled: &AtomicU64) -> Option<u64> {
    for _ in 0..TRIES {
        let word = filled.load(Ordering::Relaxed);
        if word & 1 == 0
            && filled
                .compare_exchange_weak(word, word | 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            return Some(word);
        }
        std::hint::spin_loop();
    }
    None
}

/// A subscriber's line, which this worker alone has until it is dropped: the only worker there is
/// has all of them.
pub(crate) struct Held<'a> {
    words: &'a [AtomicU64; WORDS],
    exceeding: &'a [AtomicU64; 2],
    policer: &'a Policer,
    buckets: Option<Buckets>,
    /// By colour: packets and bytes.
    sums: [(u64, u64); 3],
    unmetered: u64,
}

impl Held<'_> {
    /// What becomes of a packet of so many bytes; `before` is the colour that it had, which only
    /// policers that are aware of it want to know.
    #[inline(always)]
    pub fn police(&mut self, bytes: u64, before: impl FnOnce() -> Colour) -> Verdict {
        let Some(buckets) = &mut self.buckets else {
            self.unmetered += 1;
            return Verdict::Pass;
        };
        let before = if self.policer.is_colour_aware { before() } else { Colour::Green };
        let colour = self.policer.plan.colour(buckets, self.policer.units(bytes), before);
        let sums = &mut self.sums[colour as usize];
        *sums = (sums.0 + 1, sums.1 + bytes);
        self.policer.actions[colour as usize].into()
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let Some(buckets) = self.buckets else {
            self.words[UNMETERED].fetch_add(self.unmetered, Ordering::Relaxed);
            return;
        };
        let [conform, exceed, violate] = self.sums;
        add(self.words, CONFORM, conform);
        add(self.exceeding, 0, exceed);
        add(self.words, VIOLATE, violate);
        self.words[HELD].store(buckets.held[0], Ordering::Relaxed);
        self.words[HELD + 1].store(buckets.held[1], Ordering::Relaxed);
        // Never 0, which says that nobody has had it: full buckets are younger.
        self.words[FILLED].store(buckets.filled_ns << 1, Ordering::Release);
    }
}

/// Add to counts that nobody else writes.
#[inline(always)]
fn add(words: &[AtomicU64], at: usize, (packets, bytes): (u64, u64)) {
    if packets > 0
        && let [of_packets, of_bytes, ..] = &words[at..]
    {
        of_packets.store(of_packets.load(Ordering::Relaxed) + packets, Ordering::Relaxed);
        of_bytes.store(of_bytes.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quiver_policing::meter::{Kind, Rates, Unit};
    use quiver_policing::{Action, Terms};

    use super::*;

    fn policer(committed: u64, committed_burst: u64, excess_burst: u64) -> Policer {
        let kind = Kind::OneRateThreeColours;
        let unit = Unit::Packets;
        let rates = Rates { kind, unit, committed, committed_burst, excess: 0, excess_burst };
        let actions = [Action::Transmit, Action::Mark(8), Action::Drop];
        Policer::new(Terms { rates, actions, is_colour_aware: false }, 0, Arc::default())
    }

    fn verdicts(meters: &Meters, subscriber: u32, of: &Policer, at: (u64, usize)) -> Vec<Verdict> {
        let (now_ns, count) = at;
        let mut held = meters.hold(subscriber, of, now_ns);
        (0..count).map(|_| held.police(100, || Colour::Green)).collect()
    }

    #[test]
    fn each_subscriber_has_full_buckets_of_its_own_and_counts() {
        let (meters, policer) = (Meters::new(2).expect("address space"), policer(100, 2, 1));
        use Verdict::{Drop, Mark, Pass};
        for subscriber in [0, 7, SUBSCRIBERS_MAX as u32 - 1] {
            let seen = verdicts(&meters, subscriber, &policer, (1, 5));
            assert_eq!(seen, [Pass, Pass, Mark(8), Drop, Drop]);
            // Ten milliseconds make one packet.
            assert_eq!(verdicts(&meters, subscriber, &policer, (10_000_001, 2)), [Pass, Drop]);
            let colours = [(3, 300), (1, 100), (3, 300)];
            assert_eq!(meters.counted(subscriber), Counted { colours, unmetered: 0 });
        }
        assert!(meters.counted(1).is_nothing());
        meters.clear(6..9);
        assert!(meters.counted(7).is_nothing());
        assert_eq!(verdicts(&meters, 7, &policer, (0, 1)), [Pass], "as if it were new");
        assert_eq!(meters.counted(0).colours[0].0, 3, "others stay");
        // All of them, whose pages go back.
        meters.clear(0..SUBSCRIBERS_MAX);
        assert!(meters.counted(0).is_nothing());
        assert!(meters.counted(SUBSCRIBERS_MAX as u32 - 1).is_nothing());
        assert_eq!(verdicts(&meters, 0, &policer, (0, 1)), [Pass]);
    }

    #[test]
    fn a_plan_that_changes_cuts_what_the_buckets_hold_and_keeps_the_counts() {
        let meters = Meters::new(2).expect("address space");
        assert_eq!(verdicts(&meters, 3, &policer(1, 50, 0), (0, 1)), [Verdict::Pass]);
        let seen = verdicts(&meters, 3, &policer(1, 2, 0), (1000, 4));
        assert_eq!(seen.iter().filter(|verdict| **verdict == Verdict::Pass).count(), 2);
        assert_eq!(meters.counted(3).colours[0].0, 3);
    }

    #[test]
    fn buckets_that_an_operator_fills_are_full_once() {
        for workers in [1, 2] {
            let (meters, policer) = (Meters::new(workers).expect("space"), policer(1, 2, 0));
            use Verdict::{Drop, Pass};
            assert_eq!(verdicts(&meters, 4, &policer, (50, 3)), [Pass, Pass, Drop]);
            let policer = policer.reset_at(50);
            assert_eq!(verdicts(&meters, 4, &policer, (50, 1)), [Pass]);
            assert_eq!(verdicts(&meters, 4, &policer, (50, 2)), [Pass, Drop]);
            assert_eq!(verdicts(&meters, 4, &policer, (49, 1)), [Drop], "a clock that goes back");
            assert_eq!(verdicts(&meters, 5, &policer, (0, 3)), [Pass, Pass, Drop]);
        }
    }

    #[test]
    fn lines_that_are_committed_are_in_memory_and_as_they_were() {
        let (meters, policer) = (Meters::new(1).expect("space"), policer(1, 5, 0));
        verdicts(&meters, 9, &policer, (0, 1));
        meters.commit(0..SUBSCRIBERS_MAX / 4);
        assert!(meters.resident_bytes() >= SUBSCRIBERS_MAX / 4 * size_of::<[u64; WORDS]>());
        assert_eq!(meters.counted(9).colours[0].0, 1);
        assert!(meters.counted(10).is_nothing());
    }

    #[test]
    fn a_line_that_another_worker_does_not_give_back_is_not_waited_for() {
        let (meters, policer) = (Meters::new(2).expect("address space"), policer(1, 1, 0));
        let other = meters.hold(5, &policer, 0);
        assert_eq!(verdicts(&meters, 5, &policer, (0, 3)), [Verdict::Pass; 3]);
        drop(other);
        assert_eq!(meters.counted(5).unmetered, 3);
    }

    #[test]
    fn packets_are_counted_once_by_several_workers() {
        let (meters, policer) = (Meters::new(2).expect("address space"), policer(1, 1000, 0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| drop(verdicts(&meters, 9, &policer, (1, 1)))));
            }
        });
        let counted = meters.counted(9);
        let metered: u64 = counted.colours.iter().map(|(packets, _)| packets).sum();
        assert_eq!(metered + counted.unmetered, 2000);
        assert!(counted.colours[0].0 <= 1000, "never more than the burst");
    }
}
