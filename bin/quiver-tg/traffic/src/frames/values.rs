//! The values of a field that varies: which of them comes next, and what it is.

use std::path::{Path, PathBuf};

use super::chunk::CHUNK;
use super::random::{Random, Zipf};
use super::reciprocal::Reciprocal;
use crate::bounded_file;
use crate::profile::field::{LIST_VALUES_MAX, Order, ValueOrder, of_line};
use crate::profile::scalar::Kind;

/// Bytes of a file of values: lines of 63 characters.
const LIST_BYTES_MAX: usize = 64 * LIST_VALUES_MAX;
/// Zipf draws made ahead: at least.
const DRAWS_MIN: u64 = 1 << 16;
/// Zipf draws made ahead: at most.
const DRAWS_MAX: u64 = 1 << 20;

/// A count that is divided by with a reciprocal, which takes numbers below 2^24: at most.
const ROUNDS_MAX: u64 = (1 << 24) - CHUNK as u64;

/// Why a field's values cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// The file.
    #[error("{path} cannot be read")]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A line of it.
    #[error("{path}:{line}: `{text}` is not {what}")]
    Line {
        /// Which.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The text of the line, shortened.
        text: String,
        /// The expected form.
        what: String,
    },
    /// Its length.
    #[error("{path} has {lines} lines; a list has 1 to {LIST_VALUES_MAX}")]
    Length {
        /// Which.
        path: PathBuf,
        /// How many there are at least.
        lines: usize,
    },
    /// Too many flows from the fields.
    #[error("the fields make {made} flows, and `flows` has at most {most}: say `count`")]
    Flows {
        /// How many.
        made: u64,
        /// How many there may be.
        most: u64,
    },
    /// A file of packets.
    #[error("{path}: {message}")]
    Packets {
        /// Which.
        path: PathBuf,
        /// The mistake.
        message: String,
    },
}

/// Which value comes next: places that come round again and again. Kept between measurements.
pub enum Index {
    /// Counted up.
    Up {
        /// How many.
        count: u64,
        /// The next.
        next: u64,
        /// Of the count, if it is small.
        rounds: Option<Reciprocal>,
    },
    /// Counted down.
    Down {
        /// How many.
        count: u64,
        /// The next, and one.
        next: u64,
    },
    /// Drawn at random as they are needed, all equally likely: sixteen million values take no cache
    /// from the device under test.
    Uniform {
        /// How many.
        count: u64,
        /// Where they come from.
        random: Random,
    },
    /// Drawn ahead.
    Table {
        /// The places.
        places: Box<[u32]>,
        /// Place of the next.
        next: usize,
    },
}

impl Index {
    /// Of `count` values (at least 1) in an order; `seed` when none is said.
    pub fn new(count: u64, value_order: &ValueOrder, seed: u64) -> Index {
        let mut random = Random::new(value_order.seed.unwrap_or(seed));
        match value_order.order.unwrap_or_default() {
            Order::Sequential => Index::Up {
                count,
                next: 0,
                rounds: (count <= ROUNDS_MAX).then(|| Reciprocal::new(count)),
            },
            Order::Decrement => Index::Down { count, next: count },
            Order::Random => Index::Uniform { count, random },
            Order::Zipf => {
                let zipf = Zipf::new(count, value_order.exponent());
                let draws = (count * 4).clamp(DRAWS_MIN, DRAWS_MAX);
                let places = (0..draws).map(|_| zipf.draw(&mut random) as u32).collect();
                Index::Table { places, next: 0 }
            }
        }
    }

    /// The next ones.
    #[inline(always)]
    pub fn fill(&mut self, out: &mut [u64; CHUNK]) {
        match self {
            Index::Up { count, next, rounds } => {
                if *next + CHUNK as u64 <= *count {
                    for (place, value) in out.iter_mut().enumerate() {
                        *value = *next + place as u64;
                    }
                    *next += CHUNK as u64;
                } else if let Some(rounds) = rounds {
                    for (place, value) in out.iter_mut().enumerate() {
                        *value = rounds.rest_of(*next + place as u64);
                    }
                    *next = rounds.rest_of(*next + CHUNK as u64);
                } else {
                    for value in out.iter_mut() {
                        *next = if *next >= *count { 0 } else { *next };
                        *value = *next;
                        *next += 1;
                    }
                }
            }
            Index::Down { count, next } => {
                for value in out.iter_mut() {
                    *next = if *next == 0 { *count } else { *next } - 1;
                    *value = *next;
                }
            }
            Index::Uniform { count, random } => {
                random.fill_below(*count, out);
            }
            Index::Table { places, next } => {
                for value in out.iter_mut() {
                    *value = places.get(*next).copied().map_or(0, u64::from);
                    *next = if *next + 1 >= places.len() { 0 } else { *next + 1 };
                }
            }
        }
    }
}

/// Read the values of a file, one a line. A last line that is empty does not count.
///
/// # Errors
/// When it is no regular file, too long, or a line is no value of this kind.
pub fn read(path: &Path, kind: Kind, bits: usize) -> Result<Vec<u128>, ValuesError> {
    let bytes = bounded_file::read(path, LIST_BYTES_MAX)
        .map_err(|source| ValuesError::Read { path: path.to_owned(), source })?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut values = Vec::with_capacity((bytes.len() / 12).min(LIST_VALUES_MAX));
    for (index, line) in text.split(|b| *b == b'\n').enumerate() {
        let value = std::str::from_utf8(line).ok().and_then(|text| of_line(kind, bits, text));
        let Some(value) = value else {
            let text = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
            let (path, line) = (path.to_owned(), index + 1);
            return Err(ValuesError::Line { path, line, text, what: kind.what(bits) });
        };
        if index == LIST_VALUES_MAX {
            return Err(ValuesError::Length { path: path.to_owned(), lines: index + 1 });
        }
        values.push(value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(count: u64, value_order: ValueOrder, frames: usize) -> Vec<u64> {
        let mut index = Index::new(count, &value_order, 3);
        let mut all = Vec::new();
        while all.len() < frames {
            let mut column = [0; CHUNK];
            index.fill(&mut column);
            all.extend(column);
        }
        all.truncate(frames);
        all
    }

    fn value_order(order: Order) -> ValueOrder {
        ValueOrder { order: Some(order), ..ValueOrder::default() }
    }

    #[test]
    fn a_sequence_comes_round_whatever_its_length() {
        for count in [1, 2, 63, 64, 65, 100, 128] {
            let up: Vec<u64> = (0..500).map(|k| k % count).collect();
            assert_eq!(take(count, value_order(Order::Sequential), 500), up);
            let down: Vec<u64> = up.iter().map(|k| count - 1 - k).collect();
            assert_eq!(take(count, value_order(Order::Decrement), 500), down);
        }
    }

    #[test]
    fn random_orders_stay_inside_reach_everything_and_repeat_with_their_seed() {
        for order in [Order::Random, Order::Zipf] {
            let all = take(100, value_order(order), 65_536);
            let distinct: std::collections::HashSet<_> = all.iter().collect();
            assert_eq!(distinct.len(), 100);
            assert!(all.iter().all(|k| *k < 100));
            assert_eq!(take(100, value_order(order), 65_536), all);
            assert_ne!(take(100, ValueOrder { seed: Some(4), ..value_order(order) }, 65_536), all);
        }
    }

    #[test]
    fn a_file_is_used_in_its_order_and_a_bad_line_is_named() {
        let path = std::env::temp_dir().join(format!("quiver-tg-values-{}", std::process::id()));
        std::fs::write(&path, "::2\n::1\n").expect("write");
        assert_eq!(read(&path, Kind::Ip6, 128).expect("values"), [2, 1]);
        std::fs::write(&path, "10.0.0.1\n10.0.0\n").expect("write");
        let error = read(&path, Kind::Ip4, 32).expect_err("refused").to_string();
        assert!(error.ends_with(":2: `10.0.0` is not an IPv4 address"), "{error}");
        std::fs::write(&path, "").expect("write");
        assert!(read(&path, Kind::Ip4, 32).is_err());
        std::fs::remove_file(&path).expect("remove");
    }
}
