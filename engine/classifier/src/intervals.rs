//! Longest prefix match of a compiled list's IPv4 addresses: intervals with a number each.
//!
//! Overlapping prefixes are cut into intervals, each with the number of its longest prefix. The
//! root has an entry for the first 16 bits of an address. It is the number itself, or leads to a
//! line: one cache line with up to 16 intervals of the low 16 bits, each with its number. Where
//! there are more of them, lines above hold where each of up to 29 lines below begins. So 16 bits
//! with `n` intervals cost as many lines as the logarithm of `n` to the base 29, four at most. The
//! table is built once and only read.

use quiver_core::cpu::prefetch;
use quiver_tables::memory::{MemoryError, Reserved};

use crate::compare::{Compare, Halfwords};
use crate::sets::BATCH;

/// Bits of an address that the root covers.
const ROOT_BITS: u32 = 16;
/// Intervals of a line, with a number each.
const LEAF: usize = 16;
/// Lines below another one.
const FAN_OUT: usize = 29;
/// In a line above others: the last place that is in use, and the place of the first line below.
const LAST: usize = FAN_OUT;
const BELOW: usize = FAN_OUT + 1;
/// The bits of a comparison with a line's halfwords that count.
const LEAF_MASK: u32 = (1 << LEAF) - 1;
const NODE_MASK: u32 = (1 << FAN_OUT) - 1;
/// An entry's lines on the path to a number stand above these bits; below them stands the first
/// line's place, or the number where there are none.
const DEPTH_SHIFT: u32 = 29;
const PLACE: u32 = (1 << DEPTH_SHIFT) - 1;

/// Either [`LEAF`] beginnings of intervals and as many numbers, or [`FAN_OUT`] beginnings, the
/// place of the last of them, and the first line below, in two halves, the low one first.
type Line = Halfwords;

/// The table.
pub(crate) struct Intervals {
    root: Reserved<u32>,
    lines: Reserved<Line>,
}

/// The lines of a table that is built.
struct Lines(Vec<Line>);

impl Intervals {
    /// Of intervals in order: the first address and the number of each; the first one begins at 0.
    /// None where a number is too large.
    pub fn new(intervals: &[(u32, u32)]) -> Result<Option<Intervals>, MemoryError> {
        if intervals.iter().any(|(_, number)| *number > u16::MAX.into()) {
            return Ok(None);
        }
        let mut lines = Lines(Vec::new());
        let mut root = Vec::with_capacity(1 << ROOT_BITS);
        let mut within = Vec::new();
        let (mut rest, mut number) = (intervals, 0);
        for high in 0..1u32 << ROOT_BITS {
            let count = rest.iter().take_while(|(start, _)| start >> 16 == high).count();
            let (now, later) = rest.split_at(count);
            within.clear();
            if now.first().is_none_or(|(start, _)| *start as u16 != 0) {
                within.push((0, number as u16));
            }
            within.extend(now.iter().map(|(start, number)| (*start as u16, *number as u16)));
            number = now.last().map_or(number, |(_, number)| *number);
            rest = later;
            within.dedup_by_key(|(_, number)| *number);
            root.push(lines.entry(&within));
        }
        Ok(Some(Intervals {
            root: Reserved::copy_of("the root of intervals", &root)?,
            lines: Reserved::copy_of("lines of intervals", &lines.0)?,
        }))
    }

    /// Memory that workers read.
    pub fn bytes(&self) -> usize {
        size_of_val(self.root.as_slice()) + size_of_val(self.lines.as_slice())
    }

    /// The numbers of up to 64 addresses.
    #[inline(always)]
    pub fn find(
        &self,
        compare: impl Compare,
        addresses: &[u32; BATCH],
        numbers: &mut [u32; BATCH],
        count: usize,
    ) {
        let (mut deep, mut going) = ([0u8; BATCH], 0);
        for (at, (address, entry)) in
            addresses.iter().zip(numbers.iter_mut()).take(count).enumerate()
        {
            *entry = *self.root.get((address >> ROOT_BITS) as usize);
            // The line of a number alone is the first one.
            let is_line = u32::from(*entry >> DEPTH_SHIFT != 0);
            prefetch(self.line(*entry & PLACE & is_line.wrapping_neg()));
            deep[going % BATCH] = at as u8;
            going += usize::from(*entry >> DEPTH_SHIFT > 1);
        }
        while going > 0 {
            let mut still = 0;
            for step in 0..going {
                let at = usize::from(deep[step % BATCH]) % BATCH;
                let entry = self.below(compare, numbers[at], addresses[at] as u16);
                prefetch(self.line(entry & PLACE));
                numbers[at] = entry;
                deep[still % BATCH] = at as u8;
                still += usize::from(entry >> DEPTH_SHIFT > 1);
            }
            going = still;
        }
        for (address, entry) in addresses.iter().zip(numbers.iter_mut()).take(count) {
            let line = self.line(*entry & PLACE);
            let at = (compare.not_above(line, *address as u16) & LEAF_MASK).count_ones();
            let of_line = u32::from(line.0[(LEAF - 1 + at as usize) % 32]);
            *entry = if *entry >> DEPTH_SHIFT == 0 { *entry } else { of_line };
        }
    }

    /// From a line above to the line below, as an entry.
    #[inline(always)]
    fn below(&self, compare: impl Compare, entry: u32, low: u16) -> u32 {
        let line = self.line(entry & PLACE);
        let at = (compare.not_above(line, low) & NODE_MASK).count_ones().saturating_sub(1);
        // Behind the last place in use nothing begins.
        let at = at.min(line.0[LAST].into());
        let first = u32::from(line.0[BELOW]) | u32::from(line.0[BELOW + 1]) << 16;
        ((entry >> DEPTH_SHIFT) - 1) << DEPTH_SHIFT | (first + at) & PLACE
    }

    /// The line at a place; another one where there is none.
    #[inline(always)]
    fn line(&self, place: u32) -> &Line {
        self.lines.get(place as usize)
    }
}

impl Lines {
    /// Lines for the intervals of 16 bits, and the entry that leads to them.
    fn entry(&mut self, within: &[(u16, u16)]) -> u32 {
        if let [(_, number)] = within {
            return u32::from(*number);
        }
        let mut below: Vec<(u16, Line)> = within.chunks(LEAF).map(leaf).collect();
        let mut depth = 1;
        while below.len() > 1 {
            let first = self.0.len() as u32;
            self.0.extend(below.iter().map(|(_, line)| *line));
            let nodes = below.chunks(FAN_OUT).zip((first..).step_by(FAN_OUT));
            below = nodes.map(|(lines, first)| node(lines, first)).collect();
            depth += 1;
        }
        let place = self.0.len() as u32;
        self.0.extend(below.iter().map(|(_, line)| *line));
        depth << DEPTH_SHIFT | place
    }
}

fn leaf(intervals: &[(u16, u16)]) -> (u16, Line) {
    let (first, last) = (intervals[0], intervals[intervals.len() - 1]);
    let mut line = Halfwords([u16::MAX; 32]);
    // Behind the last interval its number stands again: nothing is above 65,535.
    line.0[LEAF..].fill(last.1);
    for (at, (start, number)) in intervals.iter().enumerate() {
        (line.0[at], line.0[LEAF + at]) = (*start, *number);
    }
    (first.0, line)
}

fn node(lines: &[(u16, Line)], first: u32) -> (u16, Line) {
    let mut line = Halfwords([u16::MAX; 32]);
    for (start, (begins, _)) in line.0.iter_mut().zip(lines) {
        *start = *begins;
    }
    line.0[LAST] = (lines.len() - 1) as u16;
    (line.0[BELOW], line.0[BELOW + 1]) = (first as u16, (first >> 16) as u16);
    (lines[0].0, line)
}

#[cfg(test)]
mod tests {
    use quiver_core::cpu::Variant;

    use super::*;
    use crate::compare::{self, Comparing};

    struct Find<'f> {
        table: &'f Intervals,
        addresses: [u32; BATCH],
        numbers: &'f mut [u32; BATCH],
        count: usize,
    }

    impl Comparing for Find<'_> {
        fn run(self, compare: impl Compare) {
            self.table.find(compare, &self.addresses, self.numbers, self.count);
        }
    }

    /// Intervals from one address to millions: all depths, from a number in the root to four lines.
    #[test]
    fn each_address_has_the_number_of_its_interval() {
        for step in [1u32, 2, 7, 60, 300, 4_000, 70_000, 1 << 20] {
            let starts = (0..40_000u32).map(|at| at.wrapping_mul(step));
            let mut intervals: Vec<(u32, u32)> =
                starts.map(|start| (start, start % 60_013)).collect();
            intervals.sort_unstable();
            intervals.dedup_by_key(|(start, _)| *start);
            let table = Intervals::new(&intervals).expect("memory").expect("small numbers");
            let near = intervals.iter().step_by(13);
            let wanted: Vec<u32> = near
                .flat_map(|(start, _)| [start.wrapping_sub(1), *start, start + 1, start ^ 0xffff])
                .chain([0, u32::MAX, 0xffff, 0x1_0000])
                .collect();
            let naive = |address: &u32| {
                let behind = intervals.partition_point(|(start, _)| start <= address);
                intervals[behind - 1].1
            };
            let expected: Vec<u32> = wanted.iter().map(naive).collect();
            for variant in Variant::available() {
                for (wanted, expected) in wanted.chunks(BATCH).zip(expected.chunks(BATCH)) {
                    let (mut addresses, mut numbers) = ([0; BATCH], [0; BATCH]);
                    addresses[..wanted.len()].copy_from_slice(wanted);
                    let (count, numbers_of) = (wanted.len(), &mut numbers);
                    let find = Find { table: &table, addresses, numbers: numbers_of, count };
                    compare::run(variant, find);
                    assert_eq!(numbers[..count], *expected, "{variant:?} {step}");
                }
            }
        }
    }

    #[test]
    fn numbers_of_more_than_16_bits_are_refused() {
        assert!(Intervals::new(&[(0, 0), (5, 0x1_0000)]).expect("memory").is_none());
    }
}
