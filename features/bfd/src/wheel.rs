//! A timer wheel: which sessions time does something to next. One timer for each session, moved
//! and found in constant time.

/// The time of a slot of the wheel, nanoseconds: timers fire so much too late at most.
pub const SLOT_NS: u64 = 500_000;
/// Slots: what is later than two seconds waits in the last one, and is put in again.
const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;
const NOBODY: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct Link {
    next: u16,
    before: u16,
    /// The slot that it is in; `NOBODY` as `before` says that it is the first there.
    slot: u16,
}

const UNLINKED: Link = Link { next: NOBODY, before: NOBODY, slot: NOBODY };

/// The wheel. Numbers of timers are below the count that it was made for.
pub struct Wheel {
    heads: Box<[u16]>,
    /// Which slots are not empty.
    filled: Box<[u64]>,
    links: Box<[Link]>,
    /// All slots before this one, counted from time 0, are done.
    now_slot: u64,
    /// Timers that are set.
    count: usize,
}

impl Wheel {
    /// An empty wheel for so many timers, at most 65,534.
    pub fn new(timers: usize) -> Wheel {
        Wheel {
            heads: vec![NOBODY; SLOTS].into(),
            filled: vec![0; WORDS].into(),
            links: vec![UNLINKED; timers.min(NOBODY.into())].into(),
            now_slot: 0,
            count: 0,
        }
    }

    /// Have a timer fire at `due_ns`, and no more at another time. Returns when it does.
    pub fn set(&mut self, timer: u16, due_ns: u64, now_ns: u64) -> Option<u64> {
        self.cancel(timer);
        if self.count == 0 {
            self.now_slot = now_ns / SLOT_NS; // nothing was taken out for a while
        }
        if due_ns == u64::MAX || usize::from(timer) >= self.links.len() {
            return None;
        }
        self.count += 1;
        let last = self.now_slot + SLOTS as u64 - 1;
        let at = due_ns.div_ceil(SLOT_NS).clamp(self.now_slot, last);
        let slot = at as usize % SLOTS;
        let next = std::mem::replace(&mut self.heads[slot], timer);
        if let Some(link) = self.links.get_mut(usize::from(next)) {
            link.before = timer;
        }
        self.links[usize::from(timer)] = Link { next, before: NOBODY, slot: slot as u16 };
        self.filled[slot / 64] |= 1 << (slot % 64);
        Some(at * SLOT_NS)
    }

    /// Have a timer not fire.
    pub fn cancel(&mut self, timer: u16) {
        let Some(link) = self.links.get_mut(usize::from(timer)) else { return };
        let Link { next, before, slot } = std::mem::replace(link, UNLINKED);
        if slot == NOBODY {
            return;
        }
        self.count -= 1;
        if let Some(link) = self.links.get_mut(usize::from(next)) {
            link.before = before;
        }
        match self.links.get_mut(usize::from(before)) {
            Some(link) => link.next = next,
            None => self.heads[usize::from(slot)] = next,
        }
        if self.heads[usize::from(slot)] == NOBODY {
            self.filled[usize::from(slot) / 64] &= !(1 << (slot % 64));
        }
    }

    /// Take a timer out that fires at `now_ns` or before. One that is further ahead than the wheel
    /// reaches may come out too early.
    pub fn take_due(&mut self, now_ns: u64) -> Option<u16> {
        let last = now_ns / SLOT_NS;
        let slot = self.first_filled()?;
        if slot > last {
            self.now_slot = self.now_slot.max(last);
            return None;
        }
        self.now_slot = slot;
        let timer = self.heads[slot as usize % SLOTS];
        self.cancel(timer);
        Some(timer)
    }

    /// When the next timer fires.
    pub fn next_ns(&self) -> Option<u64> {
        self.first_filled().map(|slot| slot * SLOT_NS)
    }

    /// The first slot that is not empty, counted from time 0.
    fn first_filled(&self) -> Option<u64> {
        let start = self.now_slot as usize % SLOTS;
        for step in 0..=WORDS {
            let place = (start / 64 + step) % WORDS;
            let mut word = self.filled[place];
            match step {
                0 => word &= u64::MAX << (start % 64),
                WORDS => word &= !(u64::MAX << (start % 64)),
                _ => {}
            }
            if word != 0 {
                let slot = place * 64 + word.trailing_zeros() as usize;
                let ahead = (slot + SLOTS - start) % SLOTS;
                return Some(self.now_slot + ahead as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_timer_that_is_moved_fires_once_and_at_its_last_time() {
        let mut wheel = Wheel::new(4);
        wheel.set(1, 10 * SLOT_NS, 0);
        wheel.set(2, 10 * SLOT_NS, 0);
        wheel.set(1, 3 * SLOT_NS + 1, 0);
        assert_eq!(wheel.next_ns(), Some(4 * SLOT_NS));
        assert_eq!(wheel.take_due(4 * SLOT_NS - 1), None);
        assert_eq!(wheel.take_due(4 * SLOT_NS), Some(1));
        assert_eq!(wheel.take_due(9 * SLOT_NS), None);
        wheel.cancel(2);
        assert_eq!((wheel.take_due(99 * SLOT_NS), wheel.next_ns()), (None, None));
    }

    proptest! {
        /// Against a list of times: nothing fires before its time, everything at most a slot late.
        #[test]
        fn timers_fire_at_their_times(
            steps in prop::collection::vec((0u16..8, 0u64..5_000_000_000, 0u64..40_000_000), 1..200)
        ) {
            let mut wheel = Wheel::new(8);
            let mut due = [u64::MAX; 8];
            let mut set_at = [0; 8];
            let mut now = 1_000_000_000u64;
            for (timer, ahead, passes) in steps {
                due[usize::from(timer)] = now + ahead;
                set_at[usize::from(timer)] = now;
                wheel.set(timer, now + ahead, now);
                now += passes;
                while let Some(fired) = wheel.take_due(now) {
                    let at = due[usize::from(fired)];
                    if at > now {
                        // beyond the reach of the wheel: put in again, as its user does
                        let ahead = at - set_at[usize::from(fired)];
                        prop_assert!(ahead > 1_900_000_000, "{} fired too early", fired);
                        set_at[usize::from(fired)] = now;
                        wheel.set(fired, at, now);
                        continue;
                    }
                    due[usize::from(fired)] = u64::MAX;
                }
                for at in due {
                    prop_assert!(at.saturating_add(SLOT_NS) > now, "a timer did not fire");
                }
            }
        }
    }
}
