//! Frame sizes: one, swept, random, or a mix by name, by list or by genome (RFC 6985).

use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::genome::{self, Genome, MIX_FRAMES_MAX};

/// The smallest frame: the smallest on a wire without its FCS (IEEE 802.3 §3.2.8), bytes.
pub const FRAME_BYTES_MIN: usize = 60;
/// The largest frame, bytes.
pub const FRAME_BYTES_MAX: usize = 9216;
/// The size when nothing is said.
pub const FRAME_BYTES_DEFAULT: usize = 64;

/// One size of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FrameShare {
    /// Bytes without FCS.
    pub size: usize,
    /// How many of them in one cycle of the mix.
    pub weight: u32,
}

/// Mixes that have a name: sizes without FCS and weights.
pub(super) const NAMED: [(&str, &[(usize, u32)]); 3] = [
    ("imix", &[(64, 7), (570, 4), (1518, 1)]),
    ("cisco", &[(64, 7), (594, 4), (1518, 1)]),
    ("tolly", &[(64, 55), (78, 5), (576, 17), (1518, 23)]),
];

/// The sizes that a stream sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameSizes {
    /// The usual one, or what the headers need.
    Default,
    /// One size for all frames.
    One(usize),
    /// A mix with a name. Sizes below what the headers need are raised to that (in IPv6 with UDP 78
    /// in place of 64).
    Named(&'static str),
    /// A mix of one's own, the sizes spread evenly.
    Mix(Vec<FrameShare>),
    /// These, in this order.
    Genome(Genome),
    /// From the first to the last, then again.
    Sweep {
        /// Bytes.
        first: usize,
        /// Bytes.
        last: usize,
        /// Bytes from one to the next.
        step: usize,
    },
    /// Each as likely as the next.
    Random {
        /// Bytes.
        first: usize,
        /// Bytes.
        last: usize,
        /// Seed.
        seed: u64,
    },
}

/// Sizes as they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// One cycle of them, bytes without FCS.
    Cycle(Vec<u16>),
    /// From first to last with equal chances, bytes without FCS.
    Random {
        /// Bytes.
        first: u16,
        /// Bytes.
        last: u16,
        /// Seed.
        seed: u64,
    },
}

impl FrameSizes {
    /// The sizes as they are sent, when headers and stamp need `need` bytes.
    ///
    /// # Errors
    /// When a size is below `need` or above [`FRAME_BYTES_MAX`]; the message says what would fit.
    pub fn resolve(&self, need: usize) -> Result<Sizes, String> {
        let fits = |size: usize| {
            if size >= need && size <= FRAME_BYTES_MAX {
                return Ok(size as u16);
            }
            Err(format!(
                "frame of {size} bytes; with these headers and the stamp it is {need} to \
                 {FRAME_BYTES_MAX}"
            ))
        };
        let cycle =
            |sizes: &mut dyn Iterator<Item = usize>| sizes.map(fits).collect::<Result<_, _>>();
        Ok(match self {
            FrameSizes::Default => {
                Sizes::Cycle(cycle(&mut [need.max(FRAME_BYTES_DEFAULT)].into_iter())?)
            }
            FrameSizes::One(size) => Sizes::Cycle(cycle(&mut [*size].into_iter())?),
            FrameSizes::Named(name) => {
                let shares = named(name).iter();
                let raised =
                    shares.map(|&(size, weight)| FrameShare { size: size.max(need), weight });
                Sizes::Cycle(cycle(&mut spread(&raised.collect::<Vec<_>>()).into_iter())?)
            }
            FrameSizes::Mix(shares) => Sizes::Cycle(cycle(&mut spread(shares).into_iter())?),
            FrameSizes::Genome(genome) => Sizes::Cycle(cycle(&mut genome.sizes.iter().copied())?),
            FrameSizes::Sweep { first, last, step } => {
                fits(*last)?;
                Sizes::Cycle(cycle(&mut (*first..=*last).step_by(*step))?)
            }
            FrameSizes::Random { first, last, seed } => {
                Sizes::Random { first: fits(*first)?, last: fits(*last)?, seed: *seed }
            }
        })
    }
}

fn named(name: &str) -> &'static [(usize, u32)] {
    NAMED.iter().find(|(known, _)| *known == name).map_or(&[], |(_, shares)| shares)
}

impl Sizes {
    /// The only size, if there is only one.
    pub fn only(&self) -> Option<usize> {
        match self {
            Sizes::Cycle(cycle) => {
                let first = *cycle.first()?;
                cycle.iter().all(|size| *size == first).then_some(usize::from(first))
            }
            Sizes::Random { first, last, .. } => (first == last).then_some(usize::from(*first)),
        }
    }

    /// The longest, bytes.
    pub fn max(&self) -> usize {
        match self {
            Sizes::Cycle(cycle) => usize::from(cycle.iter().copied().max().unwrap_or(0)),
            Sizes::Random { last, .. } => usize::from(*last),
        }
    }

    /// On average, bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Cycle(cycle) => {
                cycle.iter().map(|size| f64::from(*size)).sum::<f64>() / cycle.len().max(1) as f64
            }
            Sizes::Random { first, last, .. } => (f64::from(*first) + f64::from(*last)) / 2.0,
        }
    }

    /// The sequence of sizes as RFC 6985 writes it; `None` when it is drawn at random.
    pub fn genome(&self) -> Option<String> {
        match self {
            Sizes::Cycle(cycle) if cycle.is_empty() => None, // packets as they are
            Sizes::Cycle(cycle) => genome::write(cycle),
            Sizes::Random { .. } => None,
        }
    }
}

/// One cycle of a mix, the sizes spread evenly.
fn spread(shares: &[FrameShare]) -> Vec<usize> {
    let divisor = shares.iter().fold(0, |all, s| greatest_common_divisor(all, s.weight)).max(1);
    let total: i64 = shares.iter().map(|s| i64::from(s.weight / divisor)).sum();
    // Each step every size gains its weight, and the one that has gained most is sent.
    let mut gained = vec![0i64; shares.len()];
    (0..total)
        .map(|_| {
            gained.iter_mut().zip(shares).for_each(|(g, s)| *g += i64::from(s.weight / divisor));
            let place = (0..gained.len()).rev().max_by_key(|&i| gained[i]).unwrap_or(0);
            gained[place] -= total;
            shares[place].size
        })
        .collect()
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl<'de> Deserialize<'de> for FrameSizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizesVisitor)
    }
}

struct SizesVisitor;

/// The keys that a map may have.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    first: Option<usize>,
    last: Option<usize>,
    step: Option<usize>,
    order: Option<SizeOrder>,
    seed: Option<u64>,
    genome: Option<String>,
    #[serde(default)]
    sizes: std::collections::BTreeMap<char, usize>,
    mtu: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum SizeOrder {
    Sweep,
    Random,
}

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = FrameSizes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a frame size in bytes, \"imix\", {first, last, …}, {genome}, or a list of {size, \
             weight}",
        )
    }

    fn visit_u64<E: Error>(self, size: u64) -> Result<FrameSizes, E> {
        Ok(FrameSizes::One(usize::try_from(size).unwrap_or(usize::MAX)))
    }

    fn visit_i64<E: Error>(self, size: i64) -> Result<FrameSizes, E> {
        let size = u64::try_from(size).map_err(|_| E::custom("a frame size is above 0"))?;
        self.visit_u64(size)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FrameSizes, E> {
        if let Some((name, _)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(FrameSizes::Named(name));
        }
        if text.starts_with("IMIX") {
            return Genome::read(text, &Default::default(), None)
                .map(FrameSizes::Genome)
                .map_err(E::custom);
        }
        let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        Err(E::custom(format!(
            "frame `{text}` is neither a number of bytes nor imix; named mixes are {names}, a \
             genome begins with IMIX"
        )))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FrameSizes, A::Error> {
        let mut shares = Vec::new();
        while let Some(share) = list.next_element::<FrameShare>()? {
            shares.push(share);
        }
        let frames: u64 = shares.iter().map(|s| u64::from(s.weight)).sum();
        if shares.is_empty() || shares.len() > 255 || shares.iter().any(|s| s.weight == 0) {
            return Err(A::Error::custom("a mix has 1 to 255 sizes, each with a weight above 0"));
        }
        if frames > u64::from(MIX_FRAMES_MAX) {
            return Err(A::Error::custom(format!(
                "the weights add up to more than {MIX_FRAMES_MAX}"
            )));
        }
        Ok(FrameSizes::Mix(shares))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FrameSizes, A::Error> {
        let form = Form::deserialize(MapAccessDeserializer::new(map))?;
        if let Some(text) = form.genome {
            if form.first.is_some()
                || form.last.is_some()
                || form.step.is_some()
                || form.order.is_some()
            {
                return Err(A::Error::custom(
                    "a genome has `sizes` and `mtu` beside it, and nothing else",
                ));
            }
            return Genome::read(&text, &form.sizes, form.mtu)
                .map(FrameSizes::Genome)
                .map_err(A::Error::custom);
        }
        let (Some(first), Some(last)) = (form.first, form.last) else {
            return Err(A::Error::custom("sizes that vary have `first` and `last`, or `genome`"));
        };
        let step = form.step.unwrap_or(1);
        if first > last || step == 0 {
            return Err(A::Error::custom(format!(
                "no steps of {step} lead from first {first} to last {last}"
            )));
        }
        match form.order.unwrap_or(SizeOrder::Sweep) {
            SizeOrder::Sweep => Ok(FrameSizes::Sweep { first, last, step }),
            SizeOrder::Random => {
                Ok(FrameSizes::Random { first, last, seed: form.seed.unwrap_or(1) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(sizes: &FrameSizes, need: usize) -> Vec<u16> {
        match sizes.resolve(need) {
            Ok(Sizes::Cycle(cycle)) => cycle,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_internet_mix_is_spread_evenly_and_has_a_mean_of_353_8_bytes() {
        let sizes = cycle(&FrameSizes::Named("imix"), 60);
        assert_eq!(sizes.len(), 12);
        assert_eq!(
            [64, 570, 1518].map(|size| sizes.iter().filter(|s| **s == size).count()),
            [7, 4, 1]
        );
        assert!(sizes.windows(3).all(|w| w != [64, 64, 64]), "{sizes:?}");
        assert!((Sizes::Cycle(sizes).mean() - 353.83).abs() < 0.01);
        assert_eq!(cycle(&FrameSizes::Named("imix"), 78).iter().min(), Some(&78));
    }

    #[test]
    fn weights_are_reduced_to_the_shortest_turn() {
        let shares =
            vec![FrameShare { size: 64, weight: 100 }, FrameShare { size: 128, weight: 50 }];
        assert_eq!(cycle(&FrameSizes::Mix(shares), 60), [64, 128, 64]);
    }

    #[test]
    fn a_sweep_ends_at_its_last_size_and_begins_again() {
        assert_eq!(cycle(&FrameSizes::Sweep { first: 64, last: 100, step: 16 }, 60), [64, 80, 96]);
        assert!(FrameSizes::Sweep { first: 64, last: 10_000, step: 9_000 }.resolve(60).is_err());
    }
}
