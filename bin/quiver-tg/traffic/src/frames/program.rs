//! From a stream's layout to the steps that make its frames.

use quiver_core::cpu::{Body, Variant};

use super::chunk::{CHUNK, Column};
use super::column::{Place, Step, Term, WINDOW_BYTES, Window, checksum_of};
use super::reciprocal::Reciprocal;
use super::values::{Index, ValuesError, read};
use crate::profile::layout::{Checksum, Part, set_bits};
use crate::profile::scalar::greatest;
use crate::profile::{Flows, RUN_VALUES_MAX, Sizes, Stream, Together, Values};

/// Templates are as long as a multiple of this, so that they are copied in wide pieces.
pub const PIECE_BYTES: usize = 64;

/// How long the frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameLength {
    /// One length for all, bytes.
    Fixed(usize),
    /// As this column says.
    Column(usize),
}

/// How a stream's frames are made.
pub struct Program {
    /// A frame of the longest size, and zeros up to a multiple of [`PIECE_BYTES`].
    pub template: Box<[u8]>,
    /// How long they are.
    pub length: FrameLength,
    /// The windows: the words of the frame that vary.
    pub windows: Box<[Window]>,
    /// Their words for the next frames, in the byte order of the frame.
    pub words: Box<[Column]>,
    /// The columns behind them.
    pub columns: Box<[Column]>,
    steps: Box<[Step]>,
    variant: Variant,
}

/// The loops of a program, compiled in the form that they run in.
struct Filling<'a>(&'a mut Program);

impl Body for Filling<'_> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        let Program { steps, columns, windows, words, .. } = self.0;
        for step in steps {
            step.run(columns);
        }
        for (window, words) in windows.iter().zip(words) {
            window.fill(words, columns);
        }
    }
}

/// Bits of the frame that a column fills, at most 64.
#[derive(Clone, Copy, Debug)]
struct Filled {
    bit: usize,
    bits: usize,
    column: usize,
}

/// A program that is being made.
struct Draft {
    template: Vec<u8>,
    steps: Vec<Step>,
    columns: usize,
    filled: Vec<Filled>,
}

impl Program {
    /// For a stream whose profile has been checked; reads and draws all values.
    ///
    /// # Errors
    /// When a file of values cannot be read, or the fields make more flows than there may be.
    pub fn new(stream: &Stream) -> Result<Program, ValuesError> {
        let longest = stream.sizes.max();
        let mut template = stream.layout.bytes.clone();
        template.resize(longest.max(template.len()).next_multiple_of(PIECE_BYTES), 0);
        let mut draft = Draft { template, steps: Vec::new(), columns: 0, filled: Vec::new() };
        let length = draft.lengths(stream);
        draft.parts(&stream.layout.parts, stream.flows.as_ref().map(|flows| flows.value))?;
        for checksum in &stream.layout.checksums {
            draft.checksum(checksum, length, longest);
        }
        let windows = draft.windows();
        let words = vec![[0; CHUNK]; windows.len()].into_boxed_slice();
        let columns = vec![[0; CHUNK]; draft.columns].into_boxed_slice();
        let (template, steps) = (draft.template.into_boxed_slice(), draft.steps.into_boxed_slice());
        let variant = Variant::best();
        Ok(Program { template, length, windows, words, columns, steps, variant })
    }

    /// Make the words of the next [`CHUNK`] frames.
    #[inline(never)]
    pub fn run(&mut self) {
        self.variant.run(Filling(self));
    }

    /// Bytes from the start that every copy must have: the windows lie in them.
    pub fn head_bytes(&self) -> usize {
        self.windows
            .last()
            .map_or(0, |window| window.at + WINDOW_BYTES)
            .next_multiple_of(PIECE_BYTES)
    }

    /// Write bytes that do not vary, also into the windows that lie over them.
    pub fn set_constant(&mut self, at: usize, bytes: &[u8]) {
        for (place, byte) in bytes.iter().enumerate() {
            let at = at + place;
            if let Some(slot) = self.template.get_mut(at) {
                *slot = *byte;
            }
            let over = |window: &&mut Window| (window.at..window.at + WINDOW_BYTES).contains(&at);
            if let Some(window) = self.windows.iter_mut().find(over) {
                let shift = 8 * (window.at + WINDOW_BYTES - 1 - at);
                window.base = window.base & !(0xff << shift) | u64::from(*byte) << shift;
            }
        }
    }
}

impl Draft {
    fn column(&mut self) -> usize {
        self.columns += 1;
        self.columns - 1
    }

    fn draw(&mut self, index: Index) -> usize {
        let into = self.column();
        self.steps.push(Step::Draw { into, index });
        into
    }

    /// The size of each frame, and the fields that say it.
    fn lengths(&mut self, stream: &Stream) -> FrameLength {
        let value_order = crate::profile::field::ValueOrder::default();
        let size = match (stream.sizes.only(), &stream.sizes) {
            (Some(only), _) => {
                for length in &stream.layout.lengths {
                    set_bits(&mut self.template, length.bit, 16, (only - length.start) as u128);
                }
                return FrameLength::Fixed(only);
            }
            (None, Sizes::Cycle(sizes)) => {
                let from = self.draw(Index::new(sizes.len() as u64, &value_order, 0));
                let words = sizes.iter().map(|size| u64::from(*size)).collect();
                let into = self.column();
                self.steps.push(Step::Look { into, from, words });
                into
            }
            (None, Sizes::Random { first, last, seed }) => {
                let order = Some(crate::profile::Order::Random);
                let value_order =
                    crate::profile::field::ValueOrder { order, seed: Some(*seed), exponent: None };
                let from = self.draw(Index::new(u64::from(last - first) + 1, &value_order, 0));
                let into = self.column();
                let first = u64::from(*first);
                self.steps.push(Step::Count { into, from, first, step: 1, mask: u64::MAX });
                into
            }
        };
        for length in &stream.layout.lengths {
            let into = self.column();
            let first = 0u64.wrapping_sub(length.start as u64);
            self.steps.push(Step::Count { into, from: size, first, step: 1, mask: 0xffff });
            self.filled.push(Filled { bit: length.bit, bits: 16, column: into });
        }
        FrameLength::Column(size)
    }

    /// The fields that the profile lets vary, each by itself or as the digits of a flow.
    fn parts(&mut self, parts: &[Part], flows: Option<Flows>) -> Result<(), ValuesError> {
        let mut lists = Vec::new();
        for part in parts {
            lists.push(match &part.field.values {
                Values::File(path) => Some(read(path, part.kind, part.bits)?),
                Values::List(list) => Some(list.clone()),
                Values::One(_) | Values::Run { .. } => None,
            });
        }
        let counts: Vec<u64> = parts
            .iter()
            .zip(&lists)
            .map(|(part, list)| match (&part.field.values, list) {
                (Values::Run { count, .. }, _) => *count,
                (_, Some(list)) => list.len() as u64,
                _ => 1,
            })
            .collect();
        let flow = flows.map(|flows| self.flow(&flows, &counts)).transpose()?;
        let mut divisor = 1;
        for (place, (part, list)) in parts.iter().zip(lists).enumerate() {
            let count = counts[place];
            let from = match (flow, flows.map(|flows| flows.fields)) {
                (Some(number), Some(together)) => {
                    let into = self.column();
                    let is_product = together == Together::Product;
                    let by = Reciprocal::new(if is_product { divisor } else { 1 });
                    self.steps.push(Step::Digit {
                        into,
                        from: number,
                        divisor: by,
                        count: Reciprocal::new(count),
                    });
                    divisor = (divisor * count).min(RUN_VALUES_MAX);
                    into
                }
                _ => self.draw(Index::new(count, &part.field.value_order, place as u64 + 1)),
            };
            self.part(part, list, from);
        }
        Ok(())
    }

    /// The number of the flow that each frame belongs to.
    fn flow(&mut self, flows: &Flows, counts: &[u64]) -> Result<usize, ValuesError> {
        let made = match flows.fields {
            Together::Product => counts.iter().fold(1u64, |all, count| all.saturating_mul(*count)),
            Together::Lockstep => counts.iter().copied().max().unwrap_or(1),
        };
        let count = flows.count.unwrap_or(made);
        if count > RUN_VALUES_MAX {
            return Err(ValuesError::Flows { made, most: RUN_VALUES_MAX });
        }
        Ok(self.draw(Index::new(count, &flows.value_order(), 1)))
    }

    /// One field: its values by their places in the column `from`.
    fn part(&mut self, part: &Part, list: Option<Vec<u128>>, from: usize) {
        let whole = greatest(part.bits);
        let mask = part.field.mask.unwrap_or(whole) & whole;
        let first = list
            .as_ref()
            .and_then(|list| list.first().copied())
            .or(part.field.first())
            .unwrap_or(0);
        // What the mask leaves is that of the first value.
        set_bits(&mut self.template, part.bit, part.bits, first & !mask);
        let low_bits = part.bits.min(64);
        let (low_at, low_mask) = (part.bit + part.bits - low_bits, mask as u64);
        let high_mask = (mask >> 64) as u64;
        match (list, &part.field.values) {
            (Some(list), _) => {
                let low = list.iter().map(|value| (*value & mask) as u64).collect();
                self.look(from, low, low_at, low_bits);
                if high_mask != 0 {
                    let high = list.iter().map(|value| ((*value & mask) >> 64) as u64).collect();
                    self.look(from, high, part.bit, part.bits - 64);
                }
            }
            (None, Values::Run { first, count, step }) => {
                let into = self.column();
                let (low_first, low_step) = (*first as u64, *step as u64);
                self.steps.push(Step::Count {
                    into,
                    from,
                    first: low_first,
                    step: low_step,
                    mask: low_mask,
                });
                self.filled.push(Filled { bit: low_at, bits: low_bits, column: into });
                let last = first.wrapping_add(step.wrapping_mul(u128::from(count - 1)));
                if high_mask != 0 && first >> 64 == last >> 64 {
                    set_bits(&mut self.template, part.bit, part.bits - 64, *first >> 64);
                } else if high_mask != 0 {
                    let into = self.column();
                    let (first, step) = (*first, *step);
                    self.steps.push(Step::CountHigh { into, from, first, step, mask: high_mask });
                    self.filled.push(Filled { bit: part.bit, bits: part.bits - 64, column: into });
                }
            }
            _ => {}
        }
    }

    fn look(&mut self, from: usize, words: Box<[u64]>, bit: usize, bits: usize) {
        let into = self.column();
        self.steps.push(Step::Look { into, from, words });
        self.filled.push(Filled { bit, bits, column: into });
    }

    /// A checksum over what is there so far, which must contain those that lie under it.
    fn checksum(&mut self, checksum: &Checksum, length: FrameLength, longest: usize) {
        let end = checksum.end.unwrap_or(longest);
        set_bits(&mut self.template, checksum.at * 8, 16, 0);
        let mut base = sum_of(&self.template[checksum.start..end]);
        let mut terms = self.terms(checksum.start * 8, end * 8, checksum.start * 8);
        if let Some(pseudo) = &checksum.pseudo {
            let source = pseudo.source..pseudo.source + pseudo.address_bytes;
            let destination = pseudo.destination..pseudo.destination + pseudo.address_bytes;
            base += sum_of(&self.template[source.clone()]) + u64::from(pseudo.protocol);
            terms.extend(self.terms(source.start * 8, source.end * 8, pseudo.ip * 8));
            match pseudo.last_segment {
                Some(segment) => base += sum_of(&segment.octets()),
                None => {
                    base += sum_of(&self.template[destination.clone()]);
                    terms.extend(self.terms(
                        destination.start * 8,
                        destination.end * 8,
                        pseudo.ip * 8,
                    ));
                }
            }
            match length {
                FrameLength::Fixed(bytes) => base += (bytes - checksum.start) as u64,
                FrameLength::Column(column) => {
                    terms.push(Term { column, shift: 0 });
                    base += 0xffff - checksum.start as u64;
                }
            }
        }
        let zero_is_ffff = checksum.zero_is_ffff;
        if terms.is_empty() {
            let value = match checksum_of(base) {
                0 if zero_is_ffff => 0xffff,
                value => value,
            };
            set_bits(&mut self.template, checksum.at * 8, 16, u128::from(value));
            return;
        }
        let into = self.column();
        self.steps.push(Step::Check { into, base, terms: terms.into_boxed_slice(), zero_is_ffff });
        self.filled.push(Filled { bit: checksum.at * 8, bits: 16, column: into });
    }

    /// The columns that fill bits from `start` to `end`, whose 16-bit words are counted from
    /// `origin`.
    fn terms(&self, start: usize, end: usize, origin: usize) -> Vec<Term> {
        let inside = |f: &&Filled| f.bit >= start && f.bit + f.bits <= end;
        let term = |f: &Filled| {
            let behind = (f.bit + f.bits - origin) % 16;
            Term { column: f.column, shift: if behind == 0 { 0 } else { 16 - behind as u32 } }
        };
        self.filled.iter().filter(inside).map(term).collect()
    }

    /// Windows over everything that varies.
    fn windows(&mut self) -> Box<[Window]> {
        let mut filled = self.filled.clone();
        filled.sort_by_key(|f| f.bit);
        let mut starts: Vec<usize> = Vec::new();
        for f in &filled {
            let (mut byte, end) = (f.bit / 8, (f.bit + f.bits).div_ceil(8));
            while byte < end {
                let covered = starts.last().map_or(0, |start| start + WINDOW_BYTES);
                if byte >= covered {
                    starts.push(byte);
                }
                byte = starts.last().map_or(end, |start| start + WINDOW_BYTES);
            }
        }
        // The last window may reach over the end of what is copied.
        let reach = starts.last().map_or(0, |start| start + WINDOW_BYTES);
        if reach > self.template.len() {
            self.template.resize(reach.next_multiple_of(PIECE_BYTES), 0);
        }
        starts.iter().map(|at| self.window(*at, &filled)).collect()
    }

    fn window(&self, at: usize, filled: &[Filled]) -> Window {
        let (start, end) = (at * 8, (at + WINDOW_BYTES) * 8);
        let place = |f: &Filled| {
            let is_inside = f.bit < end && f.bit + f.bits > start;
            let shift = end as i64 - (f.bit + f.bits) as i64;
            let (left, right) = (shift.max(0) as u32, (-shift).max(0) as u32);
            is_inside.then_some(Place { column: f.column, left, right })
        };
        let bytes = self.template.get(at..).and_then(|rest| rest.first_chunk::<WINDOW_BYTES>());
        let base = u64::from_be_bytes(bytes.copied().unwrap_or_default());
        Window { at, base, places: filled.iter().filter_map(place).collect() }
    }
}

/// The sum of 16-bit words; an odd byte at the end is the upper half of one.
pub fn sum_of(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let rest = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>() + rest
}

/// Write bytes at a place that is inside: sizes are checked before a source is made.
#[inline(always)]
pub fn put<const N: usize>(frame: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = frame.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
}
