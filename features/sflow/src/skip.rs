//! How many packets pass until the next sample: random, so that traffic in step with a counter is
//! not missed (sFlow version 5 §3.1).

use quiver_core::jitter::Jitter;

/// Values that a random number has.
const STEPS: u64 = 1 << 53;
/// The longest skip, packets.
const SKIP_MAX: u32 = u32::MAX / 2;

/// The number of the next packet to sample, counted from 1. It is geometrically distributed with
/// the mean `rate`: each packet is sampled with the chance 1 in `rate`, independent of the others.
pub fn next(random: &mut Jitter, rate: u32) -> u32 {
    if rate <= 1 {
        return 1;
    }
    let uniform = random.between(1, STEPS) as f64 / STEPS as f64;
    let missed = (-1.0 / f64::from(rate)).ln_1p();
    // A cast saturates, and a skip is at least one packet.
    ((uniform.ln() / missed) as u32).clamp(0, SKIP_MAX) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_the_deviation_are_those_of_independent_packets() {
        let mut random = Jitter::seeded(9);
        for rate in [2_u32, 10, 1_000] {
            let drawn: Vec<f64> =
                (0..100_000).map(|_| f64::from(next(&mut random, rate))).collect();
            let count = drawn.len() as f64;
            let mean = drawn.iter().sum::<f64>() / count;
            let variance = drawn.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / count;
            let (wanted, deviation) = (f64::from(rate), (1.0 - 1.0 / f64::from(rate)).sqrt());
            assert!((mean / wanted - 1.0).abs() < 0.02, "mean of {rate}: {mean}");
            let relative = variance.sqrt() / wanted;
            assert!((relative / deviation - 1.0).abs() < 0.03, "deviation of {rate}: {relative}");
        }
    }

    #[test]
    fn with_a_rate_of_one_each_packet_is_sampled() {
        let mut random = Jitter::seeded(1);
        assert!((0..100).all(|_| next(&mut random, 1) == 1));
        assert!((0..10_000).all(|_| (1..=SKIP_MAX + 1).contains(&next(&mut random, u32::MAX))));
    }
}
