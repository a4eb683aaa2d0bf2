//! What the fragments of one packet have in common.

/// Addresses, identification, protocol and scope (RFC 791 §3.2; RFC 8200 §4.5, which leaves the
/// protocol out). IPv4 addresses are widened with zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub source: u128,
    pub destination: u128,
    pub identification: u32,
    /// As in [`ReassemblyRequest`](quiver_forwarding::requests::ReassemblyRequest), with the bit
    /// for the router itself.
    pub scope: u32,
    /// 0 in IPv6.
    pub protocol: u8,
}

/// An odd number without pattern: the golden ratio as a fraction of 2^64.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The product of both, its halves folded.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Key {
    /// Spread by a seed that senders do not know, so that they cannot choose where their packets
    /// go.
    pub fn hash(&self, seed: u64) -> u64 {
        let rest = u64::from(self.identification) << 32 | u64::from(self.scope);
        let words = [
            self.source as u64,
            (self.source >> 64) as u64,
            self.destination as u64,
            (self.destination >> 64) as u64,
            rest ^ u64::from(self.protocol) << 24,
        ];
        let hash = words.iter().fold(seed | 1, |hash, word| {
            fold(hash ^ ODD, word ^ seed.rotate_left(32)).wrapping_add(hash.rotate_left(23))
        });
        // A product moves the bits of consecutive identifications up by the same step. The second
        // product spreads them over all bits, whatever that step is.
        fold(hash ^ hash >> 32, ODD)
    }
}

/// Which of so many workers puts the packet together.
pub(crate) fn owner(hash: u64, workers: usize) -> usize {
    (((hash >> 32) * workers as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_spread_over_workers_and_buckets() {
        let mut workers = [0; 3];
        let mut buckets = [0; 64];
        for identification in 0..6400 {
            let hash = Key { source: 7, destination: 9, identification, ..Key::default() }
                .hash(0x1234_5678);
            workers[owner(hash, 3)] += 1;
            buckets[hash as usize % 64] += 1;
        }
        assert!(workers.iter().all(|count| (1900..2400).contains(count)), "{workers:?}");
        assert!(buckets.iter().all(|count| (50..160).contains(count)), "{buckets:?}");
    }

    #[test]
    fn consecutive_packets_meet_both_workers_whatever_the_seed_is() {
        for seed in 0..2000_u64 {
            let seed = seed.wrapping_mul(0x1234_5678_9abc_def1);
            let owners = |identification| {
                owner(Key { identification, source: 7, ..Key::default() }.hash(seed), 2)
            };
            let first = (0..32).filter(|id| owners(*id) == 0).count();
            assert!((3..=29).contains(&first), "{first} of 32 with seed {seed}");
        }
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let key = Key { source: 1, destination: 2, identification: 3, scope: 4, protocol: 5 };
        let others = [
            Key { source: 2, ..key },
            Key { source: 1 << 64, ..key },
            Key { destination: 1, ..key },
            Key { destination: 2 << 64, ..key },
            Key { identification: 4, ..key },
            Key { scope: 3, ..key },
            Key { protocol: 6, ..key },
        ];
        assert!(others.iter().all(|other| other.hash(9) != key.hash(9)));
        assert_ne!(key.hash(9), key.hash(8));
    }
}
