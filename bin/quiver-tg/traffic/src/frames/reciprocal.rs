//! Division by multiplication with a reciprocal.

/// 1 / d for numbers below 2^24, exactly: floor(2^64 / d) + 1.
#[derive(Clone, Copy, Debug)]
pub struct Reciprocal {
    times: u64,
    divisor: u64,
}

impl Reciprocal {
    /// Of 1 to 2^24.
    pub fn new(divisor: u64) -> Reciprocal {
        let times = if divisor < 2 { 0 } else { u64::MAX / divisor + 1 };
        Reciprocal { times, divisor: divisor.max(1) }
    }

    /// `number` / d.
    #[inline(always)]
    pub fn of(self, number: u64) -> u64 {
        if self.times == 0 { number } else { upper_half(number, self.times) }
    }

    /// `number` % d.
    #[inline(always)]
    pub fn rest_of(self, number: u64) -> u64 {
        number - self.of(number) * self.divisor
    }
}

/// The upper half of the product with a number below 2^32, in multiplications that vectors have.
#[inline(always)]
pub fn upper_half(number: u64, times: u64) -> u64 {
    let number = number & 0xffff_ffff;
    (number * (times >> 32) + ((number * (times & 0xffff_ffff)) >> 32)) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_reciprocal_divides_exactly(number in 0u64..1 << 24, divisor in 1u64..=1 << 24) {
            prop_assert_eq!(Reciprocal::new(divisor).of(number), number / divisor);
        }
    }
}
