//! The genome of a mix of sizes (RFC 6985): a letter for each frame, in the order in which they are
//! sent.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Frames in one cycle of a mix.
pub const MIX_FRAMES_MAX: u32 = 4096;
/// Sizes that have a letter (RFC 6985 §3), bytes.
const LETTERS: [(char, usize); 10] = [
    ('a', 64),
    ('b', 128),
    ('c', 256),
    ('d', 512),
    ('e', 1024),
    ('f', 1280),
    ('g', 1518),
    ('h', 2112),
    ('i', 9000),
    ('j', 16_000),
];
/// The letter of the MTU.
const MTU_LETTER: char = 'z';
/// Letters of one's own (RFC 6985 §4).
const OWN_LETTERS: std::ops::RangeInclusive<char> = 'A'..='Z';
/// How a genome begins.
const PREFIX: &str = "IMIX";
/// A sequence longer than this is written with counts (RFC 6985 §5.1), frames.
const PLAIN_FRAMES_MAX: usize = 32;

/// A sequence of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genome {
    /// In the order of sending, bytes.
    pub sizes: Vec<usize>,
}

impl Genome {
    /// Read a genome: letters, each with a count before it if it comes several times. `own` are the
    /// sizes of capital letters, `mtu` that of `z`.
    ///
    /// # Errors
    /// When a letter has no size, a count is 0, or there are more frames than [`MIX_FRAMES_MAX`].
    pub fn read(
        text: &str,
        own: &BTreeMap<char, usize>,
        mtu: Option<usize>,
    ) -> Result<Genome, String> {
        if let Some(letter) = own.keys().find(|letter| !OWN_LETTERS.contains(letter)) {
            return Err(format!("`sizes` names `{letter}`; letters of one's own are A to Z"));
        }
        let letters =
            text.strip_prefix(PREFIX).unwrap_or(text).trim_start().trim_start_matches('-').trim();
        let (mut sizes, mut count) = (Vec::new(), None::<u32>);
        for letter in letters.chars() {
            if let Some(digit) = letter.to_digit(10) {
                let sum =
                    count.unwrap_or(0).checked_mul(10).and_then(|tens| tens.checked_add(digit));
                count = Some(sum.filter(|c| *c <= MIX_FRAMES_MAX).ok_or_else(too_long)?);
                continue;
            }
            let size = size_of(letter, own, mtu)?;
            let times = count.take().unwrap_or(1) as usize;
            if times == 0 {
                return Err(format!("genome `{text}`: a count is above 0"));
            }
            if sizes.len() + times > MIX_FRAMES_MAX as usize {
                return Err(too_long());
            }
            sizes.extend(std::iter::repeat_n(size, times));
        }
        if sizes.is_empty() || count.is_some() {
            return Err(format!(
                "genome `{text}` is not letters, each with or without a count before it"
            ));
        }
        Ok(Genome { sizes })
    }
}

fn too_long() -> String {
    format!("the genome has more than {MIX_FRAMES_MAX} frames")
}

fn size_of(letter: char, own: &BTreeMap<char, usize>, mtu: Option<usize>) -> Result<usize, String> {
    match letter {
        MTU_LETTER => mtu.ok_or_else(|| "`z` is the MTU: say `mtu` beside the genome".to_owned()),
        letter if OWN_LETTERS.contains(&letter) => {
            let known = own.get(&letter).copied();
            known.ok_or_else(|| {
                format!("`{letter}` has no size: say `sizes: {{{letter}: …}}` beside the genome")
            })
        }
        letter => {
            let known = LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, size)| *size);
            known.ok_or_else(|| {
                format!(
                    "`{letter}` is no letter of a genome; a to j, z, and A to Z of one's own are"
                )
            })
        }
    }
}

/// Write a sequence of sizes as a genome, with the sizes of letters of one's own behind it. `None`
/// when it has more sizes than there are letters.
pub fn write(sizes: &[u16]) -> Option<String> {
    let mut own: Vec<u16> = Vec::new();
    let mut letters = Vec::with_capacity(sizes.len());
    for size in sizes {
        let known = LETTERS
            .iter()
            .find(|(_, known)| *known == usize::from(*size))
            .map(|(letter, _)| *letter);
        let letter = known.or_else(|| {
            let place = own.iter().position(|o| o == size).unwrap_or_else(|| {
                own.push(*size);
                own.len() - 1
            });
            OWN_LETTERS.clone().nth(place)
        })?;
        letters.push(letter);
    }
    let mut text = format!("{PREFIX} - ");
    for run in letters.chunk_by(|a, b| a == b) {
        match run.len() {
            count if letters.len() > PLAIN_FRAMES_MAX && count > 1 => {
                let _ = write!(text, "{count}{}", run[0]);
            }
            _ => text.extend(run),
        }
    }
    for (letter, size) in OWN_LETTERS.zip(own) {
        let _ = write!(text, "{}{letter}={size}", if letter == 'A' { "; " } else { ", " });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<usize>, String> {
        let own = BTreeMap::from([('A', 570), ('B', 1300)]);
        Genome::read(text, &own, Some(1514)).map(|genome| genome.sizes)
    }

    #[test]
    fn letters_are_sizes_in_the_order_of_sending() {
        assert_eq!(read("IMIX - aaafg"), Ok(vec![64, 64, 64, 1280, 1518]));
        assert_eq!(read("3a2Bz"), Ok(vec![64, 64, 64, 1300, 1300, 1514]));
        for wrong in ["", "IMIX - ", "3", "a0b", "k", "C", "9999999a", "4097a", "a-b"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_long_sequence_is_written_with_counts_and_own_letters_say_their_size() {
        assert_eq!(write(&[64, 570, 64, 1518]), Some("IMIX - aAag; A=570".to_owned()));
        assert_eq!(write(&[128; 40]), Some("IMIX - 40b".to_owned()));
        assert_eq!(write(&(64..1000).collect::<Vec<_>>()), None);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(sizes in prop::collection::vec(60u16..70, 1..100)) {
            let text = write(&sizes).expect("ten sizes have letters");
            let (letters, own) = text.split_once("; ").unwrap_or((&text, ""));
            let own = own.split(", ").filter_map(|pair| {
                let (letter, size) = pair.split_once('=')?;
                Some((letter.chars().next()?, size.parse().ok()?))
            });
            let read = Genome::read(letters, &own.collect(), None).expect("genome");
            prop_assert_eq!(read.sizes, sizes.into_iter().map(usize::from).collect::<Vec<_>>());
        }

        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = read(&text);
        }
    }
}
