//! Key of a transaction on its side: the far address and both ports.

/// Three words: two hold the far address, the third the place of the near host, and both ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key([u64; 3]);

impl Key {
    /// For the host at `near` of the side and its port, and the far address (as a number) and port.
    #[inline(always)]
    pub fn new(near: u32, near_port: u16, far: u128, far_port: u16) -> Key {
        let rest = u64::from(near) << 32 | u64::from(far_port) << 16 | u64::from(near_port);
        Key([(far >> 64) as u64, far as u64, rest])
    }

    /// The place of the near host.
    #[inline(always)]
    pub fn near(&self) -> u32 {
        (self.0[2] >> 32) as u32
    }

    /// The near port.
    #[inline(always)]
    pub fn near_port(&self) -> u16 {
        self.0[2] as u16
    }

    /// The far address as a number.
    #[inline(always)]
    pub fn far(&self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }

    /// The far port.
    #[inline(always)]
    pub fn far_port(&self) -> u16 {
        (self.0[2] >> 16) as u16
    }
}

/// A secret, so that who chooses addresses and ports does not choose where they fall.
#[derive(Clone, Copy, Debug)]
pub struct Secret([u64; 4]);

impl Secret {
    /// Drawn from a seed.
    pub fn new(seed: u64) -> Secret {
        let mut random = quiver_tg_traffic::frames::random::Random::new(seed);
        Secret([(); 4].map(|()| random.bits()))
    }

    /// The hash of a key: words are multiplied to 128 bits, whose halves are combined.
    #[inline(always)]
    pub fn hash(&self, key: &Key) -> u64 {
        let [a, b, c] = key.0;
        let sum = fold(a ^ self.0[0], b ^ self.0[1]) ^ fold(c ^ self.0[2], self.0[3]);
        fold(sum, 0x9e37_79b9_7f4a_7c15)
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_gives_back_what_it_was_made_of(
            near: u32, near_port: u16, far: u128, far_port: u16
        ) {
            let key = Key::new(near, near_port, far, far_port);
            prop_assert_eq!(
                (key.near(), key.near_port(), key.far(), key.far_port()),
                (near, near_port, far, far_port)
            );
        }
    }

    #[test]
    fn sessions_that_follow_each_other_fall_apart() {
        let secret = Secret::new(1);
        let mut buckets = vec![0u32; 1 << 16];
        for session in 0..1u32 << 16 {
            let key =
                Key::new(session / 63, 1024 + (session % 63) as u16, u128::from(session / 63), 80);
            buckets[secret.hash(&key) as usize & 0xffff] += 1;
        }
        assert!(buckets.iter().all(|n| *n < 12), "{:?}", buckets.iter().max());
    }
}
