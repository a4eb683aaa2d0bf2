//! The values of a header field that varies, ready to be read one per frame.

use std::path::{Path, PathBuf};

use super::random::{Random, Zipf};
use crate::profile::field::{FILE_VALUES_MAX, Field, FieldValue, Order, Run};

/// Zipf draws made ahead: at least.
const DRAWS_MIN: u64 = 1 << 16;
/// Zipf draws made ahead: at most.
const DRAWS_MAX: u64 = 1 << 20;

/// Why a field's values cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ValuesError {
    /// The file.
    #[error("{path}: {source}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of it.
    #[error("{path}:{line}: `{text}` is not {what}")]
    Line {
        /// Which.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What stands there, cut.
        text: String,
        /// What should.
        what: &'static str,
    },
    /// Its length.
    #[error("{path} has {lines} lines; a list has 1 to {FILE_VALUES_MAX}")]
    Length {
        /// Which.
        path: PathBuf,
        /// How many there are at least.
        lines: usize,
    },
}

/// Values that come round again and again. The place is kept between measurements.
pub enum Values<T: FieldValue> {
    /// Counted up.
    Sequence {
        /// Number of value 0.
        first: u128,
        /// How many.
        count: u64,
        /// Place of the next.
        next: u64,
    },
    /// Drawn as they are needed, each as likely as the next: sixteen million of them take no cache away
    /// from whoever is measured.
    Uniform {
        /// Number of value 0.
        first: u128,
        /// How many.
        count: u64,
        /// Where they come from.
        random: Random,
    },
    /// Drawn or read ahead.
    Table {
        /// The words.
        words: Box<[T::Word]>,
        /// Place of the next.
        next: usize,
    },
}

impl<T: FieldValue> Values<T> {
    /// The next one's word.
    #[inline(always)]
    pub fn next_word(&mut self) -> T::Word {
        match self {
            Values::Sequence { first, count, next } => {
                let word = T::word_of(*first + u128::from(*next));
                *next = if *next + 1 == *count { 0 } else { *next + 1 };
                word
            }
            Values::Uniform { first, count, random } => T::word_of(*first + u128::from(random.below(*count))),
            Values::Table { words, next } => {
                let word = words[*next];
                *next = if *next + 1 == words.len() { 0 } else { *next + 1 };
                word
            }
        }
    }

    /// How many there are, or how many before they come round.
    pub fn len(&self) -> usize {
        match self {
            Values::Sequence { count, .. } | Values::Uniform { count, .. } => *count as usize,
            Values::Table { words, .. } => words.len(),
        }
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A field taken apart: the value that goes into the template, and what varies.
pub struct Prepared<T: FieldValue> {
    /// For the template.
    pub first: T,
    /// What comes instead, frame by frame.
    pub varying: Option<Values<T>>,
}

/// Draw or read a field's values.
pub fn prepare<T: FieldValue>(field: &Field<T>) -> Result<Prepared<T>, ValuesError> {
    match field {
        Field::One(value) => Ok(Prepared { first: *value, varying: None }),
        Field::Run(run) if run.count == 1 => Ok(Prepared { first: run.first, varying: None }),
        Field::Run(run) => Ok(Prepared { first: run.first, varying: Some(draw(run)) }),
        Field::File(path) => read(path),
    }
}

fn draw<T: FieldValue>(run: &Run<T>) -> Values<T> {
    let first = run.first.number();
    let draws = (run.count * 4).clamp(DRAWS_MIN, DRAWS_MAX);
    let mut random = Random::new(run.seed);
    match run.order {
        Order::Sequential => Values::Sequence { first, count: run.count, next: 0 },
        Order::Random => Values::Uniform { first, count: run.count, random },
        Order::Zipf => {
            let zipf = Zipf::new(run.count, run.exponent);
            let mut word = || T::word_of(first + u128::from(zipf.draw(&mut random)));
            Values::Table { words: (0..draws).map(|_| word()).collect(), next: 0 }
        }
    }
}

/// A list. A last line that is empty does not count.
fn read<T: FieldValue>(path: &Path) -> Result<Prepared<T>, ValuesError> {
    let bytes = std::fs::read(path).map_err(|source| ValuesError::Read { path: path.to_owned(), source })?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut words = Vec::with_capacity((bytes.len() / 12).min(FILE_VALUES_MAX));
    let mut first = None;
    for (index, line) in text.split(|b| *b == b'\n').enumerate() {
        let value = std::str::from_utf8(line).ok().and_then(|text| text.trim_end().parse::<T>().ok());
        let Some(value) = value else {
            let text = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
            return Err(ValuesError::Line { path: path.to_owned(), line: index + 1, text, what: T::WHAT });
        };
        if index == FILE_VALUES_MAX {
            return Err(ValuesError::Length { path: path.to_owned(), lines: index + 1 });
        }
        first.get_or_insert(value);
        words.push(value.word());
    }
    let first = first.ok_or(ValuesError::Length { path: path.to_owned(), lines: 0 })?;
    Ok(Prepared { first, varying: Some(Values::Table { words: words.into_boxed_slice(), next: 0 }) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn run(count: u64, order: Order) -> Field<Ipv4Addr> {
        Field::Run(Run { first: Ipv4Addr::new(10, 0, 0, 250), count, order, seed: 3, exponent: 1.0 })
    }

    fn take(field: &Field<Ipv4Addr>, count: usize) -> Vec<Ipv4Addr> {
        let mut values = prepare(field).expect("values").varying.expect("varying");
        (0..count).map(|_| Ipv4Addr::from(values.next_word().to_ne_bytes())).collect()
    }

    #[test]
    fn a_sequence_counts_over_the_octet_and_begins_again() {
        let all = take(&run(8, Order::Sequential), 9);
        assert_eq!(
            all[5..],
            [[10, 0, 0, 255], [10, 0, 1, 0], [10, 0, 1, 1], [10, 0, 0, 250]].map(Ipv4Addr::from)
        );
    }

    #[test]
    fn random_orders_stay_inside_reach_everything_and_repeat_with_their_seed() {
        for order in [Order::Random, Order::Zipf] {
            let all = take(&run(100, order), 65_536);
            let distinct: std::collections::HashSet<_> = all.iter().collect();
            assert_eq!(distinct.len(), 100);
            assert!(all.iter().all(|a| (0..100).contains(&(a.to_bits() - 0x0a00_00fa))));
            assert_eq!(take(&run(100, order), 65_536), all);
        }
    }

    #[test]
    fn a_file_is_used_in_its_order_and_a_bad_line_is_named() {
        let path = std::env::temp_dir().join(format!("quiver-tg-values-{}", std::process::id()));
        std::fs::write(&path, "2001:db8::2\n2001:db8::1\n").expect("write");
        let prepared = prepare(&Field::<Ipv6Addr>::File(path.clone())).expect("values");
        let mut values = prepared.varying.expect("varying");
        let texts: Vec<String> =
            (0..3).map(|_| Ipv6Addr::from(values.next_word().to_ne_bytes()).to_string()).collect();
        assert_eq!(texts, ["2001:db8::2", "2001:db8::1", "2001:db8::2"]);
        std::fs::write(&path, "10.0.0.1\n10.0.0\n").expect("write");
        let error = prepare(&Field::<Ipv4Addr>::File(path.clone())).err().expect("refused").to_string();
        assert!(error.ends_with(":2: `10.0.0` is not an IPv4 address"), "{error}");
        std::fs::write(&path, "").expect("write");
        assert!(prepare(&Field::<Ipv4Addr>::File(path.clone())).is_err());
        std::fs::remove_file(&path).expect("remove");
    }
}
