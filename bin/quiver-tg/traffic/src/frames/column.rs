//! Field programs: the steps that make the fields that vary, for many frames at once.
//!
//! A column holds one value for each of the next [`CHUNK`] frames. Each step fills a column from
//! those before it in one loop without a decision per frame: which value comes next, what it is,
//! how long the frame is, what the checksums over it are. At the end the columns are put together
//! to windows, eight bytes of the frame each, and writing a frame is copying its template and as
//! many words as it has windows.

use super::chunk::{CHUNK, Column};
use super::reciprocal::Reciprocal;
use super::values::Index;

/// One step. Columns are named by their places.
pub enum Step {
    /// Which value comes next.
    Draw {
        /// Column to fill.
        into: usize,
        /// How.
        index: Index,
    },
    /// A digit of a flow's number: `from` / divisor % count.
    Digit {
        /// Column to fill.
        into: usize,
        /// Column of numbers below 2^24.
        from: usize,
        /// Of the divisor; 0 for 1.
        divisor: Reciprocal,
        /// Of the count.
        count: Reciprocal,
    },
    /// (`first` + `from` × `step`) & `mask`.
    Count {
        /// Column to fill.
        into: usize,
        /// Column of places.
        from: usize,
        /// Value 0.
        first: u64,
        /// From one to the next.
        step: u64,
        /// Bits that are written.
        mask: u64,
    },
    /// The upper half of a value of 128 bits that is counted, as [`Count`](Step::Count).
    CountHigh {
        /// Column to fill.
        into: usize,
        /// Column of places.
        from: usize,
        /// Value 0.
        first: u128,
        /// From one to the next.
        step: u128,
        /// Bits that are written.
        mask: u64,
    },
    /// From a list.
    Look {
        /// Column to fill.
        into: usize,
        /// Column of places.
        from: usize,
        /// The list.
        words: Box<[u64]>,
    },
    /// A checksum.
    Check {
        /// Column to fill.
        into: usize,
        /// The sum of everything under it that does not vary, below 2^32.
        base: u64,
        /// The columns that vary.
        terms: Box<[Term]>,
        /// Zero is written as 0xffff.
        zero_is_ffff: bool,
    },
}

/// A column under a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Which.
    pub column: usize,
    /// Bits between its last one and the end of the 16-bit word that it lies in, below 16.
    pub shift: u32,
}

/// Two columns, the first to be filled from the second.
#[inline(always)]
fn pair(columns: &mut [Column], into: usize, from: usize) -> Option<(&mut Column, &Column)> {
    columns.get_disjoint_mut([into, from]).ok().map(|[into, from]| (into, &*from))
}

/// The summand of a value in a one's complement sum of 16-bit words: below 2^49.
#[inline(always)]
fn under_checksum(value: u64, shift: u32) -> u64 {
    ((value & 0xffff_ffff) + (value >> 32)) << shift
}

/// A one's complement sum as the checksum to store.
#[inline(always)]
pub fn checksum_of(sum: u64) -> u64 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) & 0xffff
}

impl Step {
    /// Fill a column. Compiled into the form that [`Program::run`](super::program::Program::run)
    /// runs in.
    #[inline(always)]
    pub fn run(&mut self, columns: &mut [Column]) {
        match self {
            Step::Draw { into, index } => {
                if let Some(column) = columns.get_mut(*into) {
                    index.fill(column);
                }
            }
            Step::Digit { into, from, divisor, count } => {
                let Some((into, from)) = pair(columns, *into, *from) else { return };
                for (into, number) in into.iter_mut().zip(from) {
                    *into = count.rest_of(divisor.of(*number));
                }
            }
            Step::Count { into, from, first, step, mask } => {
                let Some((into, from)) = pair(columns, *into, *from) else { return };
                for (into, place) in into.iter_mut().zip(from) {
                    *into = first.wrapping_add(place.wrapping_mul(*step)) & *mask;
                }
            }
            Step::CountHigh { into, from, first, step, mask } => {
                let Some((into, from)) = pair(columns, *into, *from) else { return };
                for (into, place) in into.iter_mut().zip(from) {
                    let value = first.wrapping_add(u128::from(*place).wrapping_mul(*step));
                    *into = (value >> 64) as u64 & *mask;
                }
            }
            Step::Look { into, from, words } => {
                let Some((into, from)) = pair(columns, *into, *from) else { return };
                for (into, place) in into.iter_mut().zip(from) {
                    *into = words.get(*place as usize).copied().unwrap_or(0);
                }
            }
            Step::Check { into, base, terms, zero_is_ffff } => {
                let zero = if *zero_is_ffff { 0xffff } else { 0 };
                let sums = match terms.len() {
                    1 => check::<1>(*base, terms, zero, columns),
                    2 => check::<2>(*base, terms, zero, columns),
                    3 => check::<3>(*base, terms, zero, columns),
                    4 => check::<4>(*base, terms, zero, columns),
                    _ => check_many(*base, terms, zero, columns),
                };
                if let Some(into) = columns.get_mut(*into) {
                    *into = sums;
                }
            }
        }
    }
}

#[inline(always)]
fn finished(sum: u64, zero: u64) -> u64 {
    match checksum_of(sum) {
        0 => zero,
        checksum => checksum,
    }
}

/// Checksums over `N` columns, in one go.
#[inline(always)]
fn check<const N: usize>(base: u64, terms: &[Term], zero: u64, columns: &[Column]) -> Column {
    let mut from = [&[0; CHUNK]; N];
    let mut shifts = [0; N];
    for (place, term) in terms.iter().take(N).enumerate() {
        shifts[place] = term.shift;
        if let Some(column) = columns.get(term.column) {
            from[place] = column;
        }
    }
    let mut sums = [0; CHUNK];
    for (frame, into) in sums.iter_mut().enumerate() {
        let mut sum = base;
        for place in 0..N {
            sum += under_checksum(from[place][frame], shifts[place]);
        }
        *into = finished(sum, zero);
    }
    sums
}

/// Checksums over any number of columns, one after the other.
#[inline(always)]
fn check_many(base: u64, terms: &[Term], zero: u64, columns: &[Column]) -> Column {
    let mut sums = [base; CHUNK];
    for term in terms {
        let Some(column) = columns.get(term.column) else { continue };
        for (sum, value) in sums.iter_mut().zip(column) {
            *sum += under_checksum(*value, term.shift);
        }
    }
    for sum in &mut sums {
        *sum = finished(*sum, zero);
    }
    sums
}

/// Where a column's bits go in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which column.
    pub column: usize,
    /// To the left, below 64. What is pushed out belongs to another window.
    pub left: u32,
    /// Or to the right, below 64.
    pub right: u32,
}

/// Bytes of a window.
pub const WINDOW_BYTES: usize = 8;

/// Eight bytes of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Where they begin.
    pub at: usize,
    /// Constant bits.
    pub base: u64,
    /// Bits from columns.
    pub places: Box<[Place]>,
}

impl Window {
    /// Put its words together, in the byte order of the frame.
    #[inline(always)]
    pub fn fill(&self, words: &mut Column, columns: &[Column]) {
        match self.places.len() {
            1 => self.fill_from::<1>(words, columns),
            2 => self.fill_from::<2>(words, columns),
            3 => self.fill_from::<3>(words, columns),
            4 => self.fill_from::<4>(words, columns),
            // Eight bytes hold eight fields of a byte or more, and bits beside them.
            _ => self.fill_from::<{ 8 * WINDOW_BYTES }>(words, columns),
        }
    }

    /// Of up to `N` places, in one go.
    #[inline(always)]
    fn fill_from<const N: usize>(&self, words: &mut Column, columns: &[Column]) {
        let mut from = [(&[0; CHUNK], 0, 0); N];
        for (slot, place) in from.iter_mut().zip(&self.places) {
            if let Some(column) = columns.get(place.column) {
                *slot = (column, place.left & 63, place.right & 63);
            }
        }
        for (frame, into) in words.iter_mut().enumerate() {
            let mut word = self.base;
            for (column, left, right) in &from {
                word |= (column[frame] << left) >> right;
            }
            *into = word.to_be();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_value_under_a_checksum_is_its_bytes_in_their_words(value: u64, before in 0usize..16) {
            // `before` bits, the value, and zeros up to a whole word.
            let mut bytes = vec![0; 16];
            crate::profile::layout::set_bits(&mut bytes, before, 64, u128::from(value));
            let end = (before + 64) % 16;
            let shift = if end == 0 { 0 } else { 16 - end as u32 };
            let sum =
                bytes.chunks(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            prop_assert_eq!(checksum_of(under_checksum(value, shift)), checksum_of(sum));
        }
    }
}
