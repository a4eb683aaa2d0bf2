//! Timers of a table's entries: one for each slot, in a wheel of lists that are linked by slot.
//!
//! Time is counted in ticks of 2^20 ns. A timer that is moved to later stays in its list and is put
//! where it belongs when its list is looked at; most never are.

/// Bits of nanoseconds in a tick.
pub const TICK_SHIFT: u32 = 20;
/// Lists of the wheel: timers further away come round again.
const LISTS: u32 = 1 << 13;
/// No slot.
const NONE: u32 = u32::MAX;

/// Ticks in so many seconds, rounded up; at least one.
pub fn ticks(seconds: f64) -> u32 {
    let ticks = (seconds * 1e9 / f64::from(1 << TICK_SHIFT)).ceil();
    ticks.clamp(1.0, f64::from(i32::MAX)) as u32
}

/// The tick of a time.
#[inline(always)]
pub fn tick_of(now_ns: u64) -> u32 {
    (now_ns >> TICK_SHIFT) as u32
}

/// Has `tick` come?
#[inline(always)]
pub fn has_come(tick: u32, now: u32) -> bool {
    now.wrapping_sub(tick) < 1 << 31
}

#[derive(Clone, Copy)]
struct Link {
    next: u32,
    /// The slot before, or the list when it is the first.
    before: u32,
    /// When its list is looked at.
    at: u32,
    is_first: bool,
    is_armed: bool,
}

const LOOSE: Link = Link { next: NONE, before: NONE, at: 0, is_first: false, is_armed: false };

/// The wheel.
pub struct Wheel {
    links: Box<[Link]>,
    lists: Box<[u32]>,
    /// The next list to look at, as a tick.
    hand: u32,
}

impl Wheel {
    /// For so many slots, from `now` on.
    pub fn new(slots: usize, now: u32) -> Wheel {
        Wheel {
            links: vec![LOOSE; slots].into_boxed_slice(),
            lists: vec![NONE; LISTS as usize].into_boxed_slice(),
            hand: now,
        }
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.links) + size_of_val(&*self.lists)
    }

    /// Look at a slot's timer at `tick` at the latest.
    #[inline]
    pub fn arm(&mut self, slot: u32, tick: u32) {
        let link = self.links[slot as usize];
        if link.is_armed {
            if has_come(link.at, tick) {
                return; // it is looked at before
            }
            self.disarm(slot);
        }
        self.put(slot, tick);
    }

    fn put(&mut self, slot: u32, tick: u32) {
        let ahead = tick.wrapping_sub(self.hand);
        let ahead = if ahead < 1 << 31 { ahead.min(LISTS - 1) } else { 0 };
        let at = self.hand.wrapping_add(ahead);
        let list = at % LISTS;
        let next = self.lists[list as usize];
        if let Some(link) = self.links.get_mut(next as usize) {
            link.before = slot;
            link.is_first = false;
        }
        self.links[slot as usize] = Link { next, before: list, at, is_first: true, is_armed: true };
        self.lists[list as usize] = slot;
    }

    /// Forget a slot's timer.
    #[inline]
    pub fn disarm(&mut self, slot: u32) {
        let link = self.links[slot as usize];
        if !link.is_armed {
            return;
        }
        if link.is_first {
            self.lists[link.before as usize] = link.next;
        } else {
            self.links[link.before as usize].next = link.next;
        }
        if let Some(next) = self.links.get_mut(link.next as usize) {
            next.before = link.before;
            next.is_first = link.is_first;
        }
        self.links[slot as usize] = LOOSE;
    }

    /// A slot that is to be looked at by now; its timer is forgotten. At most `lists` lists are
    /// passed.
    pub fn expired(&mut self, now: u32, lists: &mut u32) -> Option<u32> {
        while has_come(self.hand, now) && *lists > 0 {
            let slot = self.lists[(self.hand % LISTS) as usize];
            if slot != NONE {
                self.disarm(slot);
                return Some(slot);
            }
            self.hand = self.hand.wrapping_add(1);
            *lists -= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_timer_behind_the_horizon_is_looked_at_early_and_put_back() {
        let mut wheel = Wheel::new(1, 5);
        wheel.arm(0, 5 + 3 * LISTS);
        let mut looks = Vec::new();
        for now in 5..=5 + 3 * LISTS {
            while let Some(slot) = wheel.expired(now, &mut 10) {
                looks.push(now);
                if now < 5 + 3 * LISTS {
                    wheel.arm(slot, 5 + 3 * LISTS);
                }
            }
        }
        assert_eq!(looks.last(), Some(&(5 + 3 * LISTS)));
        assert!(looks.len() <= 5, "{looks:?}");
    }

    proptest! {
        #[test]
        fn every_timer_is_looked_at_in_time_and_no_other(
            start: u32,
            steps in prop::collection::vec((0u32..16, 0u32..40, 0u32..5), 1..200),
        ) {
            let mut wheel = Wheel::new(16, start);
            let mut due: [Option<u32>; 16] = [None; 16];
            let mut now = start;
            for (slot, ahead, pass) in steps {
                // A list that has been passed is looked at in the next tick.
                let tick = now.wrapping_add(ahead + 1);
                if ahead == 39 {
                    wheel.disarm(slot);
                    due[slot as usize] = None;
                } else {
                    wheel.arm(slot, tick);
                    due[slot as usize] = Some(tick);
                }
                now = now.wrapping_add(pass);
                while let Some(slot) = wheel.expired(now, &mut 100) {
                    let at = due[slot as usize].expect("armed");
                    if has_come(at, now) {
                        due[slot as usize] = None;
                    } else {
                        wheel.arm(slot, at);
                    }
                }
                // Only those are left that are still to come.
                for at in due.iter().flatten() {
                    prop_assert!(!has_come(*at, now));
                }
            }
        }
    }
}
