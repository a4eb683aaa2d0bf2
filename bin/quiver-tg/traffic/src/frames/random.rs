//! Seeded numbers: uniform, and zipf over N without a table of N weights.

use super::reciprocal::upper_half;

/// SplitMix64 (Steele, Lea, Flood 2014): small, seeded, good enough to choose flows.
#[derive(Clone, Debug)]
pub struct Random(u64);

/// From one state to the next.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bits of a state.
#[inline(always)]
fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The same seed gives the same numbers for ever.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mixed(self.0)
    }

    /// The next ones, each in 0..`count`: as many calls of [`below`](Self::below).
    #[inline(always)]
    pub fn fill_below(&mut self, count: u64, out: &mut [u64]) {
        let start = self.0;
        self.0 = start.wrapping_add(STEP.wrapping_mul(out.len() as u64));
        if count > u64::from(u32::MAX) {
            let mut random = Random(start);
            return out.iter_mut().for_each(|value| *value = random.below(count));
        }
        for (place, value) in out.iter_mut().enumerate() {
            let state = start.wrapping_add(STEP.wrapping_mul(place as u64 + 1));
            *value = upper_half(count, mixed(state));
        }
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// In 0..`count`.
    #[inline]
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }
}

/// Draws k from 0..count with weight 1 / (k + 1)^exponent by rejection-inversion (Hörmann and
/// Derflinger 1996): the area under a curve above the weights is inverted, and the rare draws
/// between curve and weights are rejected.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: f64,
    exponent: f64,
    area_first: f64,
    area_last: f64,
    /// Draws that lie this close below their integer need no second look.
    sure: f64,
}

impl Zipf {
    /// Over `count` values (at least 1).
    pub fn new(count: u64, exponent: f64) -> Zipf {
        let mut zipf =
            Zipf { count: count as f64, exponent, area_first: 0.0, area_last: 0.0, sure: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(count as f64 + 0.5);
        zipf.sure = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the weight up to x, up to a constant.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        log * expm1_over((1.0 - self.exponent) * log)
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        (area * log1p_over(t)).exp()
    }

    /// The next one.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.area_last + random.unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(u);
            let k = x.round().clamp(1.0, self.count);
            if k - x <= self.sure || u >= self.area(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
    }
}

/// (e^x - 1) / x, also near 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, also near 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_draws_come_as_often_as_their_weights_say() {
        for exponent in [0.0, 0.5, 1.0, 1.3, 3.0] {
            let (count, draws) = (20u64, 400_000);
            let zipf = Zipf::new(count, exponent);
            let mut random = Random::new(5);
            let mut seen = vec![0u32; count as usize];
            (0..draws).for_each(|_| seen[zipf.draw(&mut random) as usize] += 1);
            let weights: Vec<f64> = (1..=count).map(|k| (k as f64).powf(-exponent)).collect();
            let all: f64 = weights.iter().sum();
            for (k, weight) in weights.iter().enumerate() {
                let expected = weight / all * f64::from(draws);
                let slack = 5.0 * expected.sqrt() + 1.0;
                assert!(
                    (f64::from(seen[k]) - expected).abs() < slack,
                    "exponent {exponent}, k {k}"
                );
            }
        }
    }

    #[test]
    fn numbers_drawn_together_are_those_drawn_one_by_one() {
        for count in [1, 2, 1_000_000, 16_777_216, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            let (mut together, mut alone) = (Random::new(count), Random::new(count));
            for _ in 0..3 {
                let mut drawn = [0; 64];
                together.fill_below(count, &mut drawn);
                assert_eq!(drawn, std::array::from_fn(|_| alone.below(count)), "{count}");
            }
        }
    }

    #[test]
    fn one_value_is_always_drawn() {
        let mut random = Random::new(1);
        assert!((0..100).all(|_| Zipf::new(1, 1.0).draw(&mut random) == 0 && random.below(1) == 0));
    }
}
