//! How often a worker may do something: a token bucket, and a memory of what was done lately.

use crate::ids::InterfaceId;

/// So many tokens a second, saved up to a burst. Each worker has its own.
#[derive(Debug)]
pub struct TokenBucket {
    interval_ns: u64,
    burst: u64,
    /// When the bucket would be full again, were nothing taken.
    full_at_ns: u64,
}

impl TokenBucket {
    /// A full bucket.
    pub fn new(per_second: u64, burst: u64) -> TokenBucket {
        TokenBucket { interval_ns: 1_000_000_000 / per_second.max(1), burst, full_at_ns: 0 }
    }

    /// Take a token, if there is one.
    pub fn take(&mut self, now_ns: u64) -> bool {
        let full_at_ns = self.full_at_ns.max(now_ns) + self.interval_ns;
        if full_at_ns - now_ns > self.burst * self.interval_ns {
            return false;
        }
        self.full_at_ns = full_at_ns;
        true
    }
}

/// Buckets of a [`Shares`]: two interfaces that share one get half of it each.
const SHARES: usize = 64;

/// A bucket for all, and one for each interface: who empties its own leaves something to the
/// others.
#[derive(Debug)]
pub struct Shares {
    all: TokenBucket,
    each: Box<[TokenBucket]>,
}

impl Shares {
    /// Full buckets.
    pub fn new(per_second: u64, each_per_second: u64, burst: u64) -> Shares {
        let each = (0..SHARES).map(|_| TokenBucket::new(each_per_second, burst)).collect();
        Shares { all: TokenBucket::new(per_second, burst * 2), each }
    }

    /// Take a token of `interface` and one of all, if there are both. What the router made itself
    /// has a share of its own, as any interface.
    pub fn take(&mut self, interface: InterfaceId, now_ns: u64) -> bool {
        self.each[interface.index() % SHARES].take(now_ns) && self.all.take(now_ns)
    }
}

/// Places in a [`Recent`]: two keys that share one place are each done more often than they should,
/// never less.
const RECENT_PLACES: usize = 1024;

/// Remembers what was done lately, by a key of 64 bits.
#[derive(Debug)]
pub struct Recent {
    interval_ns: u64,
    places: Box<[(u64, u64)]>,
}

impl Recent {
    /// Nothing done yet; each key once per `interval_ns`.
    pub fn new(interval_ns: u64) -> Recent {
        Recent { interval_ns, places: vec![(0, 0); RECENT_PLACES].into() }
    }

    fn place(&mut self, key: u64) -> &mut (u64, u64) {
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &mut self.places[(mixed >> 54) as usize % RECENT_PLACES]
    }

    /// `key` may be done again at once: what it was done for is over.
    pub fn forget(&mut self, key: u64) {
        let place = self.place(key);
        if place.0 == key {
            *place = (0, 0);
        }
    }

    /// May `key` be done again? Then it counts as done now.
    pub fn may(&mut self, key: u64, now_ns: u64) -> bool {
        let interval_ns = self.interval_ns;
        let place = self.place(key);
        if place.0 == key && place.1 != 0 && now_ns.saturating_sub(place.1) < interval_ns {
            return false;
        }
        *place = (key, now_ns.max(1));
        true
    }
}

/// A key made of several words.
pub fn key(words: &[u64]) -> u64 {
    words.iter().fold(0x51_7c_c1_b7_27_22_0a_95, |all, word| {
        (all ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_at_once_and_then_its_rate() {
        let mut bucket = TokenBucket::new(1000, 5);
        let taken = |bucket: &mut TokenBucket, now| (0..20).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(&mut bucket, 1_000_000_000), 5);
        assert_eq!(taken(&mut bucket, 1_002_000_000), 2);
        assert_eq!(taken(&mut bucket, 9_000_000_000), 5);
    }

    #[test]
    fn who_takes_all_of_its_share_leaves_others_theirs() {
        let mut shares = Shares::new(1000, 500, 10);
        let taken =
            |shares: &mut Shares, on| (0..50).filter(|_| shares.take(InterfaceId(on), 1)).count();
        assert_eq!(taken(&mut shares, 1), 10);
        assert_eq!(taken(&mut shares, 2), 10);
        assert_eq!(taken(&mut shares, 3), 0, "there is an end to all together");
    }

    #[test]
    fn a_key_is_let_through_once_per_interval() {
        let mut recent = Recent::new(1_000);
        assert!(recent.may(7, 0));
        assert!(!recent.may(7, 999));
        assert!(recent.may(8, 999));
        assert!(recent.may(7, 1_001));
        recent.forget(8);
        assert!(!recent.may(7, 1_002));
        recent.forget(7);
        assert!(recent.may(7, 1_003));
    }
}
