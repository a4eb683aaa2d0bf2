//! Wide blocks: where many neighbouring dense blocks stand below one another's level (the functions
//! of a locator, the hosts of a data centre), one array for the bits of two or three levels takes
//! their place, so that one load leads to what two or three did.
//!
//! It stands behind a skip that names the bits above. Its **parts** of 256 entries are painted one
//! at a time, as dense blocks are. A part is **rich** if it would stay a dense block: a wide block
//! is made where a quarter of its parts will be, and taken apart where hardly any is left.

use std::sync::atomic::Ordering;

use super::memory::{
    Entry, NODE_BITS, NODE_SLOTS, Skip, WIDE_BITS_MAX, WIDE_UNIT_BITS, entry_of, is_dense, is_leaf,
};
use super::paint::{Painter, Piece, lead_to_dense, stays_dense};
use crate::prefix::Address;

/// So many rich parts are worth a wide block, ...
const RICH_MIN: u32 = 1 << (WIDE_UNIT_BITS - NODE_BITS);
/// ... if not more than so many stand to each of them.
const PARTS_PER_RICH: u32 = 4;
/// What has so much less than that is taken apart.
const SLACK: u32 = 4;

/// One batch of pieces may take a wide block apart, make it again and take it apart, each time in
/// new places.
pub(super) const TAKEN_APART: usize = 4;

impl<A: Address> Painter<'_, A> {
    fn wide_value(&self, place: usize) -> u32 {
        self.memory.wide.get(place).load(Ordering::Relaxed)
    }

    fn set_wide(&self, place: usize, value: u32) {
        self.memory.wide.get(place).store(value, Ordering::Release);
    }

    /// The 256 entries from `place` on.
    fn wide_part(&self, place: usize) -> [u32; NODE_SLOTS] {
        std::array::from_fn(|at| self.wide_value(place + at))
    }

    /// The rich parts that a slot's entry stands for, and how many bits of its block it takes at
    /// once.
    fn riches(&mut self, entry: u32, slot_bits: u32) -> (u32, u32) {
        match entry_of(entry) {
            Entry::Dense(_) => (1, NODE_BITS),
            Entry::Wide(index) => match self.skip(index) {
                skip if skip.shift == slot_bits => {
                    (*self.slots.wide.rich(skip.wide_base()), skip.width)
                }
                _ => (0, 0),
            },
            _ => (0, 0),
        }
    }

    /// A wide block in place of 256 slots and what they lead to, if that is rich enough: its skip's
    /// entry.
    pub fn build_wide(
        &mut self,
        slots: &[u32; NODE_SLOTS],
        first: A,
        slot_bits: u32,
    ) -> Option<u32> {
        let (mut rich, mut below) = (0, 0);
        if !lead_to_dense(slots) {
            return None;
        }
        for slot in slots.iter().filter(|slot| is_dense(**slot)) {
            let (more, bits) = self.riches(*slot, slot_bits);
            (rich, below) = (rich + more, below.max(bits));
        }
        if rich < RICH_MIN {
            return None;
        }
        let (start, len, miss) = part_of_its_own(slots);
        let width = below + len.trailing_zeros();
        if len == 1 || width > WIDE_BITS_MAX || rich * PARTS_PER_RICH < 1 << (width - NODE_BITS) {
            return None;
        }
        // What is taken apart again needs ordinary entries, more than it leaves as a reserve.
        if (self.slots.wide.used() + (1 << width)) * 2 * TAKEN_APART > self.slots.entries.headroom()
        {
            return None;
        }
        let base = self.slots.wide.take(width)?;
        for (at, slot) in slots[start..start + len].iter().enumerate() {
            let slot_first = first + (A::from_halves(0, (start + at) as u64) << slot_bits);
            self.spread(*slot, slot_first, slot_bits, slot_bits - below, base + (at << below));
        }
        let parts = (base..base + (1 << width)).step_by(NODE_SLOTS);
        *self.slots.wide.rich(base) =
            parts.map(|part| u32::from(stays_dense(&self.wide_part(part)))).sum();
        let key = first + (A::from_halves(0, start as u64) << slot_bits);
        Some(self.place_skip(Skip {
            key,
            shift: slot_bits + len.trailing_zeros(),
            width,
            hit: Skip::<A>::wide_hit(base),
            miss,
        }))
    }

    /// Write what `entry` leads to, a block of `bits` address bits from `first` on, as entries of
    /// `bottom` bits each from `place` on. It is given up.
    fn spread(&mut self, entry: u32, first: A, bits: u32, bottom: u32, place: usize) {
        let count = 1usize << (bits - bottom);
        if is_leaf(entry) || bits == bottom {
            return (place..place + count).for_each(|place| self.set_wide(place, entry));
        }
        if let Entry::Wide(index) = entry_of(entry)
            && let skip = self.skip(index)
            && (skip.shift, skip.bottom()) == (bits, bottom)
        {
            for at in 0..count {
                self.set_wide(place + at, self.wide_value(skip.wide_base() + at));
            }
            return self.retire_wide(index, &skip);
        }
        let slots = self.unfold(entry, first, bits - NODE_BITS);
        let each = count / NODE_SLOTS;
        for (at, slot) in slots.into_iter().enumerate() {
            let slot_first = first + (A::from_halves(0, at as u64) << (bits - NODE_BITS));
            self.spread(slot, slot_first, bits - NODE_BITS, bottom, place + at * each);
        }
    }

    /// The other way: the entry for a block of `bits` address bits from `first` on, of entries of
    /// `bottom` bits each from `place` on.
    fn fold(&mut self, place: usize, first: A, bits: u32, bottom: u32) -> u32 {
        if bits == bottom {
            return self.wide_value(place);
        }
        let (slot_bits, each) = (bits - NODE_BITS, 1usize << (bits - bottom - NODE_BITS));
        let slots = std::array::from_fn(|at| {
            let slot_first = first + (A::from_halves(0, at as u64) << slot_bits);
            self.fold(place + at * each, slot_first, slot_bits, bottom)
        });
        self.build(&slots, first, slot_bits)
    }

    /// The 256 slots of a block from `first` on in which nothing but a wide block stands. If it is
    /// more than one slot, it is taken apart.
    pub fn expand_wide(&mut self, index: u32, first: A, slot_bits: u32) -> [u32; NODE_SLOTS] {
        let skip = self.skip(index);
        let mut slots = [skip.miss; NODE_SLOTS];
        let start = ((skip.key - first) >> slot_bits).low();
        if skip.shift <= slot_bits {
            slots[start] = Entry::Wide(index).code();
            return slots;
        }
        let each = 1usize << (slot_bits - skip.bottom());
        for at in 0..1 << (skip.shift - slot_bits) {
            let slot_first = skip.key + (A::from_halves(0, at as u64) << slot_bits);
            slots[start + at] =
                self.fold(skip.wide_base() + at * each, slot_first, slot_bits, skip.bottom());
        }
        self.retire_wide(index, &skip);
        slots
    }

    /// Retire a wide block and its skip, but not what its entries lead to.
    fn retire_wide(&mut self, index: u32, skip: &Skip<A>) {
        self.slots.wide.retire(skip.wide_base(), skip.width);
        self.slots.skips.retire(index, 1);
    }

    /// Retire a wide block and all that it leads to.
    pub fn retire_wide_tree(&mut self, index: u32) {
        let skip = self.skip(index);
        for at in 0..1 << skip.width {
            self.retire_tree(self.wide_value(skip.wide_base() + at));
        }
        self.retire_wide(index, &skip);
    }

    /// Paint on a wide block, if no piece goes beyond it: the entry to publish in place of its
    /// skip's, as all that stands in a block of `bits` address bits.
    pub fn paint_wide(&mut self, index: u32, bits: u32, pieces: &[Piece<A>]) -> Option<u32> {
        let skip = self.skip(index);
        let last = skip.key + (A::MAX >> (A::BITS - skip.shift));
        if pieces.first()?.first < skip.key || pieces.last()?.last > last {
            return None;
        }
        let rich = self.paint_parts(&skip, last, pieces);
        if rich * SLACK >= RICH_MIN
            && rich * PARTS_PER_RICH * SLACK >= 1 << (skip.width - NODE_BITS)
        {
            return Some(Entry::Wide(index).code());
        }
        // All that is left becomes a block of whole bytes.
        let block_bits = skip.shift.next_multiple_of(NODE_BITS);
        let first = skip.key & !(A::MAX >> (A::BITS - block_bits));
        let slots = self.expand_wide(index, first, block_bits - NODE_BITS);
        let entry = self.build(&slots, first, block_bits - NODE_BITS);
        Some(self.alone(entry, first, block_bits, bits, skip.miss))
    }

    /// `entry`, for a block of `block_bits` address bits from `first` on, as all that stands in one
    /// of `bits`; the rest is `miss`.
    fn alone(&mut self, entry: u32, first: A, block_bits: u32, bits: u32, miss: u32) -> u32 {
        let speaks_of_all = match entry_of(entry) {
            Entry::Leaf(_) => entry == miss,
            Entry::Skip(index) | Entry::Wide(index) => self.skip(index).miss == miss,
            Entry::Node(_) | Entry::Dense(_) => false,
        };
        if block_bits == bits || speaks_of_all {
            return entry;
        }
        self.place_skip(Skip { key: first, shift: block_bits, width: 0, hit: entry, miss })
    }

    /// Paint on the parts that `pieces` touch; how many parts are rich then.
    fn paint_parts(&mut self, skip: &Skip<A>, last: A, pieces: &[Piece<A>]) -> u32 {
        let (base, bottom) = (skip.wide_base(), skip.bottom());
        let part_bits = bottom + NODE_BITS;
        let ones = (A::ONE << part_bits) - A::ONE;
        let mut rich = *self.slots.wide.rich(base);
        let (mut next, mut from) = (0, skip.key);
        while next < pieces.len() {
            let part_first = pieces[next].first.max(from) & !ones;
            let part_last = part_first | ones;
            let end = next + pieces[next..].partition_point(|piece| piece.first <= part_last);
            let place = base + (((part_first - skip.key) >> part_bits).low() << NODE_BITS);
            let old = self.wide_part(place);
            let mut slots = old;
            self.paint_slots(&mut slots, part_first, bottom, &pieces[next..end]);
            for (at, (new, old)) in slots.iter().zip(&old).enumerate() {
                if new != old {
                    self.set_wide(place + at, *new);
                }
            }
            rich = rich + u32::from(stays_dense(&slots)) - u32::from(stays_dense(&old));
            if part_last == last {
                break;
            }
            from = part_last + A::ONE;
            next = end - usize::from(pieces[end - 1].last > part_last);
        }
        *self.slots.wide.rich(base) = rich;
        rich
    }
}

/// The smallest aligned power of two of slots outside of which all is one leaf: its first one, how
/// many they are, and the leaf.
fn part_of_its_own(slots: &[u32; NODE_SLOTS]) -> (usize, usize, u32) {
    let ends = [slots[0], slots[NODE_SLOTS - 1]];
    let part = |leaf: u32| {
        let from = slots.iter().position(|slot| *slot != leaf)?;
        let to = slots.iter().rposition(|slot| *slot != leaf)?;
        let len = if from == to { 1 } else { 2 << (from ^ to).ilog2() };
        Some((from & !(len - 1), len, leaf))
    };
    let parts = ends.into_iter().filter(|leaf| is_leaf(*leaf)).filter_map(part);
    // Where all slots count, no address is left that would meet the miss.
    parts.min_by_key(|(_, len, _)| *len).unwrap_or((0, NODE_SLOTS, 0))
}
