//! A timing wheel of two levels of 4,096 slots, whose next used slot is found with find-first-set
//! words (Eiffel, NSDI 2019). A slot is a list of nodes.

use crate::NONE;
use crate::node::{List, Nodes, Place};
use crate::settings::CLOCK_SHIFT;

/// Slots of a level.
const SLOTS: u64 = 4096;
const SLOT_BITS: u32 = 12;
/// A slot of the fine level is 2¹³ ns: 8.2 µs; one of the coarse level 33.6 ms.
const TICK_BITS: u32 = 13;

/// One level: lists, and which are used.
#[derive(Debug)]
struct Level {
    lists: Box<[List; SLOTS as usize]>,
    words: [u64; 64],
    summary: u64,
}

impl Level {
    fn new() -> Level {
        Level { lists: Box::new([List::EMPTY; SLOTS as usize]), words: [0; 64], summary: 0 }
    }

    /// A slot has a node.
    #[inline]
    fn use_slot(&mut self, slot: usize) {
        self.words[slot / 64] |= 1 << (slot % 64);
        self.summary |= 1 << (slot / 64);
    }

    /// A slot has no node any more.
    #[inline]
    fn empty_slot(&mut self, slot: usize) {
        let word = &mut self.words[slot / 64];
        *word &= !(1 << (slot % 64));
        self.summary &= !(u64::from(*word == 0) << (slot / 64));
    }

    /// The first used slot from `from` on, without going round.
    fn next_from(&self, from: usize) -> Option<usize> {
        if from >= SLOTS as usize {
            return None;
        }
        let (word, bit) = (from / 64, from % 64);
        let here = self.words[word] >> bit << bit;
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        let behind = if word == 63 { 0 } else { self.summary >> (word + 1) << (word + 1) };
        let word = (behind != 0).then(|| behind.trailing_zeros() as usize)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }

    /// How many slots behind `at` the next used one is, going round: 1 to 4,096.
    fn distance(&self, at: u64) -> Option<u64> {
        let slot = ((at + 1) % SLOTS) as usize;
        let next = self.next_from(slot).or_else(|| self.next_from(0))?;
        Some((next as u64 + SLOTS - slot as u64) % SLOTS + 1)
    }
}

/// The wheel.
#[derive(Debug)]
pub(crate) struct Wheel {
    fine: Level,
    coarse: Level,
    /// All before this slot's end have been taken out.
    tick: u64,
    count: usize,
}

impl Wheel {
    pub fn new() -> Wheel {
        Wheel { fine: Level::new(), coarse: Level::new(), tick: 0, count: 0 }
    }

    /// Let a node wait for its clock: it comes out at that time or up to a slot later.
    #[inline]
    pub fn insert(&mut self, nodes: &mut Nodes, node: u32, now_ns: u64) {
        if self.count == 0 {
            self.tick = self.tick.max(now_ns >> TICK_BITS);
        }
        self.place(nodes, node);
    }

    #[inline]
    fn place(&mut self, nodes: &mut Nodes, node: u32) {
        let tick = nodes.get(node).clock.div_ceil(1 << (TICK_BITS + CLOCK_SHIFT));
        let tick = tick.max(self.tick + 1);
        let coarse = (tick >> SLOT_BITS).min((self.tick >> SLOT_BITS) + SLOTS - 1);
        let (level, slot) = if tick - self.tick < SLOTS {
            (&mut self.fine, (tick % SLOTS) as usize)
        } else {
            (&mut self.coarse, (coarse % SLOTS) as usize)
        };
        let is_coarse = tick - self.tick >= SLOTS;
        nodes.append_to_list(&mut level.lists[slot], node);
        level.use_slot(slot);
        let at = nodes.at(node);
        at.slot = slot as u16 | u16::from(is_coarse) << SLOT_BITS;
        at.place = Place::Wheel;
        self.count += 1;
    }

    /// Take a node out before its time.
    #[inline]
    pub fn remove(&mut self, nodes: &mut Nodes, node: u32) {
        let slot = nodes.get(node).slot;
        let level = if slot >> SLOT_BITS == 0 { &mut self.fine } else { &mut self.coarse };
        let slot = usize::from(slot) % SLOTS as usize;
        nodes.unlink_from_list(&mut level.lists[slot], node);
        if level.lists[slot].first == NONE {
            level.empty_slot(slot);
        }
        nodes.at(node).place = Place::Idle;
        self.count -= 1;
    }

    /// Take a node out whose time is come.
    #[inline]
    pub fn pop(&mut self, nodes: &mut Nodes, now_ns: u64) -> Option<u32> {
        let now = now_ns >> TICK_BITS;
        loop {
            if self.count == 0 {
                self.tick = self.tick.max(now);
                return None;
            }
            // The slot of `tick` itself may still have nodes.
            let slot = (self.tick % SLOTS) as usize;
            if self.fine.lists[slot].first != NONE {
                return Some(self.take(nodes, slot));
            }
            if self.tick >= now {
                return None;
            }
            self.advance(nodes, now);
        }
    }

    fn take(&mut self, nodes: &mut Nodes, slot: usize) -> u32 {
        let node = self.fine.lists[slot].first;
        self.remove(nodes, node);
        node
    }

    /// Go to the next used slot, or to `now`; over the end of a round, bring the nodes of the next
    /// coarse slot in.
    fn advance(&mut self, nodes: &mut Nodes, now: u64) {
        let end = self.tick | (SLOTS - 1);
        let next = self.fine.distance(self.tick).map_or(now, |distance| self.tick + distance);
        self.tick = next.min(now).min(end);
        if self.tick == end && next > end && now > end {
            self.tick = end + 1;
            self.cascade(nodes);
        }
    }

    fn cascade(&mut self, nodes: &mut Nodes) {
        let slot = ((self.tick >> SLOT_BITS) % SLOTS) as usize;
        loop {
            let node = self.coarse.lists[slot].first;
            if node == NONE {
                return;
            }
            // Into another slot: a round of the coarse level is longer than it may wait there.
            self.remove(nodes, node);
            self.place(nodes, node);
        }
    }

    /// When the next node comes out, or nodes of the coarse level are looked at.
    pub fn next_due_ns(&self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let slot = (self.tick % SLOTS) as usize;
        if self.fine.lists[slot].first != NONE {
            return Some(self.tick << TICK_BITS);
        }
        let fine = self.fine.distance(self.tick).map(|distance| self.tick + distance);
        let round = self.tick >> SLOT_BITS;
        let coarse = self.coarse.distance(round).map(|distance| (round + distance) << SLOT_BITS);
        let tick = match (fine, coarse) {
            (Some(fine), Some(coarse)) => fine.min(coarse),
            (fine, coarse) => fine.or(coarse)?,
        };
        Some(tick << TICK_BITS)
    }
}
