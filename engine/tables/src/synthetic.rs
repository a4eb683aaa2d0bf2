//! Tables and destinations that look like the Internet's, made from a seed: for benchmarks, the lab
//! and tests. Equal seeds give equal tables.

use std::collections::HashSet;

use crate::prefix::{Address, Ip4Prefix, Ip6Prefix, Prefix};

/// How many prefixes of each length a real IPv4 table of 2026 has (901,899 in all).
pub const IP4_LENGTHS: &[(u8, u32)] = &[
    (8, 16),
    (9, 13),
    (10, 38),
    (11, 103),
    (12, 299),
    (13, 581),
    (14, 1203),
    (15, 2100),
    (16, 13490),
    (17, 8235),
    (18, 13798),
    (19, 24870),
    (20, 42611),
    (21, 50750),
    (22, 108_623),
    (23, 96510),
    (24, 537_698),
    (25, 20),
    (26, 3),
    (27, 11),
    (28, 18),
    (29, 17),
    (30, 3),
    (31, 3),
    (32, 886),
];

/// How many prefixes of each length a real IPv6 table of 2026 has (160,147 in all).
pub const IP6_LENGTHS: &[(u8, u32)] = &[
    (16, 1),
    (19, 1),
    (20, 16),
    (21, 3),
    (22, 7),
    (23, 8),
    (24, 30),
    (25, 8),
    (26, 15),
    (27, 20),
    (28, 193),
    (29, 4371),
    (30, 650),
    (31, 284),
    (32, 22548),
    (33, 2926),
    (34, 2603),
    (35, 1043),
    (36, 5996),
    (37, 880),
    (38, 1617),
    (39, 1377),
    (40, 13418),
    (41, 903),
    (42, 2301),
    (43, 1001),
    (44, 14365),
    (45, 1553),
    (46, 3039),
    (47, 3153),
    (48, 75488),
    (49, 11),
    (50, 3),
    (52, 1),
    (55, 1),
    (56, 24),
    (58, 20),
    (60, 2),
    (64, 184),
    (112, 2),
    (122, 1),
    (124, 4),
    (125, 9),
    (126, 19),
    (127, 42),
    (128, 6),
];

/// A small generator of random numbers (splitmix64); good enough for traffic, not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `bound` (not 0).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A random address inside `prefix`.
    pub fn address_in<A: Address>(&mut self, prefix: Prefix<A>) -> A {
        let random = A::from_halves(self.bits(), self.bits());
        prefix.first() | random & (prefix.last() - prefix.first())
    }

    /// Put `items` in random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Numbers 0.. below a count, 0 the most popular, with popularity ~ 1 / rank^exponent.
pub struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    /// A distribution over `count` ranks.
    pub fn new(count: usize, exponent: f64) -> Zipf {
        let weights = (1..=count).map(|rank| 1.0 / (rank as f64).powf(exponent));
        let cumulative = weights.scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        Zipf { cumulative: cumulative.collect() }
    }

    /// A rank.
    pub fn sample(&self, random: &mut Random) -> usize {
        let Some(total) = self.cumulative.last() else { return 0 };
        let at = random.unit() * total;
        self.cumulative.partition_point(|sum| *sum <= at).min(self.cumulative.len() - 1)
    }
}

/// How many prefixes of each length make `count` in all with the shares of `lengths`.
fn scale(lengths: &[(u8, u32)], count: usize) -> Vec<(u8, usize)> {
    let total: u64 = lengths.iter().map(|(_, share)| u64::from(*share)).sum();
    let mut before = 0;
    lengths
        .iter()
        .map(|(len, share)| {
            let from = before * count as u64 / total;
            before += u64::from(*share);
            (*len, (before * count as u64 / total - from) as usize)
        })
        .collect()
}

/// Draw prefixes, short ones first. Some lie inside one that was drawn before, as customers' do in
/// their providers'; some follow the last, as neighbours do; others start somewhere new.
fn draw<A: Address>(
    lengths: Vec<(u8, usize)>,
    random: &mut Random,
    mut fresh: impl FnMut(&mut Random) -> A,
    inside_percent: u64,
) -> Vec<Prefix<A>> {
    let mut drawn: Vec<Prefix<A>> = Vec::new();
    let mut taken = HashSet::new();
    for (len, wanted) in lengths {
        let (shorter, mut last) = (drawn.len(), None::<Prefix<A>>);
        // Where a length's space is nearly full, give up before it is.
        for _ in 0..wanted * 8 {
            if drawn.len() - shorter == wanted {
                break;
            }
            let dice = random.below(100);
            let address = match last.and_then(|last| last.next()) {
                Some(next) if dice < 35 => next.first(),
                _ if dice < 35 + inside_percent && shorter > 0 => {
                    let parent = drawn[random.below(shorter as u64) as usize];
                    random.address_in(parent)
                }
                _ => fresh(random),
            };
            let prefix = Prefix::new(address, len);
            last = Some(prefix);
            if taken.insert(prefix) {
                drawn.push(prefix);
            }
        }
    }
    drawn.sort_unstable();
    drawn
}

/// About `count` IPv4 prefixes (exactly, up to some ten million), sorted, with the Internet's
/// distribution of lengths, in 1.0.0.0 to 223.255.255.255 without 10/8 and 127/8.
pub fn internet_ip4(count: usize, seed: u64) -> Vec<Ip4Prefix> {
    let mut random = Random::new(seed);
    let fresh = |random: &mut Random| loop {
        let address = random.bits() as u32;
        let high = address >> 24;
        if (1..224).contains(&high) && high != 10 && high != 127 {
            return address;
        }
    };
    let mut prefixes = draw(scale(IP4_LENGTHS, count), &mut random, fresh, 40);
    top_up(&mut prefixes, count, &mut random, 24, fresh);
    prefixes
}

/// About `count` IPv6 prefixes, sorted, with the Internet's distribution of lengths, in the blocks
/// that registries hand out.
pub fn internet_ip6(count: usize, seed: u64) -> Vec<Ip6Prefix> {
    const REGISTRIES: &[u16] = &[
        0x2001, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404, 0x2405, 0x2406, 0x2407, 0x240e, 0x2600,
        0x2602, 0x2604, 0x2605, 0x2606, 0x2607, 0x2620, 0x2800, 0x2801, 0x2803, 0x2804, 0x2a00,
        0x2a01, 0x2a02, 0x2a03, 0x2a04, 0x2a05, 0x2a06, 0x2a07, 0x2a09, 0x2a0a, 0x2a0b, 0x2a0c,
        0x2a0d, 0x2a0e, 0x2a0f, 0x2a10, 0x2c0f,
    ];
    let mut random = Random::new(seed);
    let fresh = |random: &mut Random| {
        let block = u128::from(REGISTRIES[random.below(REGISTRIES.len() as u64) as usize]) << 112;
        // Registries hand out from the low end, at a spacing of /29.
        let holder = u128::from(random.below(1 << 13)) << 99;
        block | holder | u128::from(random.bits()) << 35 & ((1 << 99) - 1)
    };
    let mut prefixes = draw(scale(IP6_LENGTHS, count), &mut random, fresh, 55);
    top_up(&mut prefixes, count, &mut random, 48, fresh);
    prefixes
}

/// Where a length's space was too full to draw its share, more of length `len` make up for it.
fn top_up<A: Address>(
    prefixes: &mut Vec<Prefix<A>>,
    count: usize,
    random: &mut Random,
    len: u8,
    mut fresh: impl FnMut(&mut Random) -> A,
) {
    let mut taken: HashSet<_> = prefixes.iter().copied().collect();
    for _ in 0..count * 8 {
        if prefixes.len() >= count {
            break;
        }
        let prefix = Prefix::new(fresh(random), len);
        if taken.insert(prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_wanted_size_and_shape_and_depends_only_on_its_seed() {
        let table = internet_ip4(100_000, 1);
        assert_eq!(table.len(), 100_000);
        assert_eq!(table, internet_ip4(100_000, 1));
        assert_ne!(table, internet_ip4(100_000, 2));
        let long = table.iter().filter(|prefix| prefix.len() == 24).count();
        assert!((58_000..62_000).contains(&long), "{long} of /24");
        assert!(table.is_sorted());
        assert_eq!(internet_ip6(20_000, 1).len(), 20_000);
    }

    #[test]
    fn low_ranks_are_popular() {
        let (zipf, mut random) = (Zipf::new(1000, 1.0), Random::new(3));
        let firsts = (0..10_000).filter(|_| zipf.sample(&mut random) == 0).count();
        assert!((1100..1600).contains(&firsts), "{firsts} of 10000, expected about 1336");
    }
}
