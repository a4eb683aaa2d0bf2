//! Random delays for what must not happen at the same moment everywhere. Not for secrets.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A source of random numbers for delays (xorshift64*).
#[derive(Clone, Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// One that differs from every other.
    pub fn random() -> Jitter {
        Jitter::seeded(RandomState::new().build_hasher().finish())
    }

    /// One whose numbers are always the same, for tests.
    pub fn seeded(seed: u64) -> Jitter {
        Jitter(seed | 1)
    }

    /// A number from `low` to `high`, both included; `low` when `high` is less.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let width = u128::from(high.saturating_sub(low)) + 1;
        low + ((u128::from(bits) * width) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_between_their_bounds_and_differ() {
        let mut jitter = Jitter::seeded(7);
        let drawn: Vec<u64> = (0..1000).map(|_| jitter.between(10, 20)).collect();
        assert!(drawn.iter().all(|n| (10..=20).contains(n)));
        assert!((10..=20).all(|n| drawn.contains(&n)), "each of the eleven comes up");
        assert_eq!((jitter.between(5, 5), jitter.between(9, 3)), (5, 9));
        assert_eq!(Jitter::random().between(0, 0), 0);
        let _ = jitter.between(0, u64::MAX);
    }
}
