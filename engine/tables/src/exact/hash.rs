//! The keyed hashes. A peer that chooses keys (a peer's MAC addresses, its ports) must not be able
//! to choose their buckets: all constants are secret, drawn when the table is made.
//!
//! Eight-byte keys go through a permutation of the 64-bit numbers, so that a bucket's place stands
//! for some bits of the key, whose room holds the slot's state. Longer keys are folded: pairs of
//! words are multiplied to 128 bits whose halves are combined.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Words that the longest key has.
pub const KEY_WORDS_MAX: usize = 11;

/// The secret of a table's hash.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    offset: u64,
    factors: [u64; 2],
    inverses: [u64; 2],
    words: [u64; KEY_WORDS_MAX + 2],
}

impl Seed {
    /// A secret that nobody outside of the process knows.
    pub fn random() -> Seed {
        let source = RandomState::new();
        Seed::from_numbers(|n| {
            let mut hasher = source.build_hasher();
            hasher.write_u64(n);
            hasher.finish()
        })
    }

    /// Always the same, for tests and benches.
    pub fn fixed(number: u64) -> Seed {
        let mut random = crate::synthetic::Random::new(number);
        Seed::from_numbers(|_| random.bits())
    }

    fn from_numbers(mut number: impl FnMut(u64) -> u64) -> Seed {
        let factors = [number(0) | 1, number(1) | 1];
        let mut words = [0; KEY_WORDS_MAX + 2];
        words.iter_mut().zip(3..).for_each(|(word, n)| *word = number(n));
        Seed { offset: number(2), factors, inverses: factors.map(inverse), words }
    }

    /// The permuted key. A product carries only upwards, so halves are folded before, between and
    /// after the two: without the first fold, keys that count in their high bits meet one product
    /// only, and one secret in a hundred puts them into few buckets.
    #[inline(always)]
    pub(super) fn permute(&self, key: u64) -> u64 {
        let x = key ^ self.offset;
        let x = (x ^ x >> 32).wrapping_mul(self.factors[0]);
        let x = (x ^ x >> 32).wrapping_mul(self.factors[1]);
        x ^ x >> 32
    }

    /// The key that [`permute`](Self::permute) made `mixed` of.
    pub(super) fn restore(&self, mixed: u64) -> u64 {
        let x = (mixed ^ mixed >> 32).wrapping_mul(self.inverses[1]);
        let x = (x ^ x >> 32).wrapping_mul(self.inverses[0]);
        x ^ x >> 32 ^ self.offset
    }

    /// The hash of a longer key.
    #[inline(always)]
    pub(super) fn hash<const N: usize>(&self, key: &[u64; N]) -> u64 {
        const { assert!(N >= 1 && N <= KEY_WORDS_MAX, "keys have 1 to 11 words") };
        let mut sum = self.offset;
        for word in 0..N / 2 {
            sum ^= fold(
                key[2 * word] ^ self.words[2 * word],
                key[2 * word + 1] ^ self.words[2 * word + 1],
            );
        }
        if N % 2 == 1 {
            sum ^= fold(key[N - 1] ^ self.words[N - 1], self.words[N]);
        }
        fold(sum, self.factors[0])
    }
}

/// Both halves of the product.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The number that times `odd` is 1, by Newton's method: each step doubles the bits that are right.
fn inverse(odd: u64) -> u64 {
    let mut inverse = odd; // right in three bits
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permuted_key_can_be_restored() {
        for seed in [Seed::fixed(1), Seed::random()] {
            for key in (0..1000).chain([u64::MAX, 1 << 63, 0xffff_ffff]) {
                assert_eq!(seed.restore(seed.permute(key)), key);
            }
        }
    }

    /// Each bit of the key changes each bit of the hash about half of the time.
    fn avalanche(bits: usize, hash: impl Fn(u64, usize) -> u64) {
        for bit in 0..bits {
            let mut changed = [0u32; 64];
            for n in 0..2000u64 {
                let difference = hash(n, usize::MAX) ^ hash(n, bit);
                (0..64).for_each(|at| changed[at] += (difference >> at & 1) as u32);
            }
            for (at, count) in changed.iter().enumerate() {
                assert!(
                    (200..=1800).contains(count),
                    "bit {bit} changes bit {at} {count} times of 2000"
                );
            }
        }
    }

    #[test]
    fn each_bit_of_a_longer_key_counts() {
        let seed = Seed::fixed(7);
        avalanche(320, |n, bit| {
            let mut key = [n, n << 32, 0, n, 5];
            if bit < 320 {
                key[bit / 64] ^= 1 << (bit % 64);
            }
            seed.hash(&key)
        });
    }

    /// Keys that count in some of their bits, whatever the secret, fall on 1,024 buckets as evenly
    /// as by chance, by any ten bits of their hash: 4 to a bucket, and nowhere 27 (one in 10^13).
    fn scatter(hash: impl Fn(&Seed, u64) -> u64) {
        for seed in (0..100).map(Seed::fixed) {
            for shift in [0, 4, 8, 16, 24, 32, 40, 48, 50, 52] {
                let hashes: Vec<_> = (0..4096).map(|n| hash(&seed, n << shift)).collect();
                for part in [0, 10, 24, 32, 44, 54] {
                    let mut counts = [0u32; 1024];
                    hashes.iter().for_each(|hash| counts[(hash >> part) as usize % 1024] += 1);
                    let most = counts.iter().max();
                    assert!(most < Some(&27), "keys << {shift}, bits from {part}: {most:?} in one");
                }
            }
        }
    }

    #[test]
    fn short_keys_that_count_in_any_bits_are_scattered() {
        scatter(Seed::permute);
    }

    #[test]
    fn longer_keys_that_count_in_any_bits_are_scattered() {
        scatter(|seed, n| seed.hash(&[n, 7]));
        scatter(|seed, n| seed.hash(&[0, n, n]));
    }
}
