//! Frame sizes: one, the Internet mix, or a mix of one's own.

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// The smallest frame: the smallest on a wire without its FCS (IEEE 802.3 §3.2.8), bytes.
pub const FRAME_BYTES_MIN: usize = 60;
/// The largest frame, bytes.
pub const FRAME_BYTES_MAX: usize = 9216;
/// Frames in one turn of a mix.
pub const MIX_FRAMES_MAX: u32 = 4096;

/// One size of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameShare {
    /// Bytes without FCS.
    pub size: usize,
    /// How many of them in one turn of the mix.
    pub weight: u32,
}

/// The sizes that a stream sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameSizes {
    /// All alike.
    One(usize),
    /// 7 × 64, 4 × 570, 1 × 1518; in IPv6 78 in place of 64.
    Imix,
    /// A mix of one's own.
    Mix(Vec<FrameShare>),
}

impl FrameSizes {
    /// The sizes and how often each comes in one turn.
    pub fn shares(&self, is_ip6: bool) -> Vec<FrameShare> {
        let share = |size, weight| FrameShare { size, weight };
        match self {
            FrameSizes::One(size) => vec![share(*size, 1)],
            FrameSizes::Imix => {
                vec![share(if is_ip6 { 78 } else { 64 }, 7), share(570, 4), share(1518, 1)]
            }
            FrameSizes::Mix(shares) => shares.clone(),
        }
    }

    /// One turn of the mix as places in [`shares`](Self::shares), the sizes spread evenly.
    pub fn turn(shares: &[FrameShare]) -> Vec<u8> {
        let divisor = shares.iter().fold(0, |all, s| greatest_common_divisor(all, s.weight)).max(1);
        let total: i64 = shares.iter().map(|s| i64::from(s.weight / divisor)).sum();
        // Each step every size gains its weight, and the one that has gained most is sent.
        let mut gained = vec![0i64; shares.len()];
        (0..total)
            .map(|_| {
                gained.iter_mut().zip(shares).for_each(|(g, s)| *g += i64::from(s.weight / divisor));
                let place = (0..gained.len()).rev().max_by_key(|&i| gained[i]).unwrap_or(0);
                gained[place] -= total;
                place as u8
            })
            .collect()
    }

    /// Mean size, bytes.
    pub fn mean_bytes(&self, is_ip6: bool) -> f64 {
        let shares = self.shares(is_ip6);
        let frames: f64 = shares.iter().map(|s| f64::from(s.weight)).sum();
        shares.iter().map(|s| s.size as f64 * f64::from(s.weight)).sum::<f64>() / frames
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl<'de> Deserialize<'de> for FrameSizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Sizes)
    }
}

struct Sizes;

impl<'de> Visitor<'de> for Sizes {
    type Value = FrameSizes;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a frame size in bytes, \"imix\", or a list of {size, weight}")
    }

    fn visit_u64<E: Error>(self, size: u64) -> Result<FrameSizes, E> {
        Ok(FrameSizes::One(usize::try_from(size).unwrap_or(usize::MAX)))
    }

    fn visit_i64<E: Error>(self, size: i64) -> Result<FrameSizes, E> {
        let size = u64::try_from(size).map_err(|_| E::custom("a frame size is above 0"))?;
        self.visit_u64(size)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FrameSizes, E> {
        match text {
            "imix" => Ok(FrameSizes::Imix),
            _ => Err(E::custom(format!("frame `{text}` is neither a number of bytes nor imix"))),
        }
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
            return Err(A::Error::custom(format!("the weights add up to more than {MIX_FRAMES_MAX}")));
        }
        Ok(FrameSizes::Mix(shares))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_internet_mix_is_spread_evenly_and_has_a_mean_of_353_8_bytes() {
        let shares = FrameSizes::Imix.shares(false);
        let turn = FrameSizes::turn(&shares);
        assert_eq!(turn.len(), 12);
        assert_eq!([0, 1, 2].map(|p| turn.iter().filter(|t| **t == p).count()), [7, 4, 1]);
        assert!(turn.windows(3).all(|w| w != [0, 0, 0]), "{turn:?}");
        assert!((FrameSizes::Imix.mean_bytes(false) - 353.83).abs() < 0.01);
    }

    #[test]
    fn weights_are_reduced_to_the_shortest_turn() {
        let shares = [FrameShare { size: 64, weight: 100 }, FrameShare { size: 128, weight: 50 }];
        assert_eq!(FrameSizes::turn(&shares), [0, 1, 0]);
    }
}
