//! How many ICMP errors each worker may send (RFC 1812 §4.3.2.8, RFC 4443 §2.4 f): said by the
//! control thread, read by workers before each.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::throttle::TokenBucket;

/// Errors that a worker sends in a second, unless said otherwise.
pub const ICMP_ERRORS_PER_SECOND: u32 = 1000;
/// Errors that a worker may send at once, unless said otherwise.
pub const ICMP_ERRORS_BURST: u32 = 100;

/// The limit of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IcmpLimit {
    /// In a second; 0 for none at all.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

impl Default for IcmpLimit {
    fn default() -> Self {
        IcmpLimit { per_second: ICMP_ERRORS_PER_SECOND, burst: ICMP_ERRORS_BURST }
    }
}

impl IcmpLimit {
    fn word(self) -> u64 {
        u64::from(self.per_second) << 32 | u64::from(self.burst)
    }

    fn of(word: u64) -> IcmpLimit {
        IcmpLimit { per_second: (word >> 32) as u32, burst: word as u32 }
    }
}

/// The limits of both families, IPv4's first.
#[derive(Debug)]
pub(crate) struct IcmpLimits([AtomicU64; 2]);

impl Default for IcmpLimits {
    fn default() -> Self {
        IcmpLimits([0, 1].map(|_| AtomicU64::new(IcmpLimit::default().word())))
    }
}

impl IcmpLimits {
    /// The limit of a family.
    pub fn get(&self, six: bool) -> IcmpLimit {
        IcmpLimit::of(self.0[usize::from(six)].load(Ordering::Relaxed))
    }

    /// Another limit (control thread).
    pub fn set(&self, six: bool, limit: IcmpLimit) {
        self.0[usize::from(six)].store(limit.word(), Ordering::Relaxed);
    }
}

/// A worker's bucket, which follows the limit.
#[derive(Debug)]
pub(crate) struct Allowance {
    limit: IcmpLimit,
    bucket: TokenBucket,
}

impl Allowance {
    /// A full bucket.
    pub fn new(limit: IcmpLimit) -> Allowance {
        Allowance { limit, bucket: TokenBucket::new(limit.per_second.into(), limit.burst.into()) }
    }

    /// May another error be sent?
    pub fn take(&mut self, limit: IcmpLimit, now_ns: u64) -> bool {
        if limit != self.limit {
            *self = Allowance::new(limit);
        }
        limit.per_second > 0 && self.bucket.take(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_follows_its_limit() {
        let limits = IcmpLimits::default();
        let mut allowance = Allowance::new(limits.get(false));
        let mut taken =
            |now_ns| (0..500).filter(|_| allowance.take(limits.get(false), now_ns)).count();
        assert_eq!(taken(1), 100);
        limits.set(false, IcmpLimit { per_second: 10, burst: 3 });
        assert_eq!(taken(1), 3);
        assert_eq!(taken(1_000_000_001), 3);
        limits.set(false, IcmpLimit { per_second: 0, burst: 3 });
        assert_eq!(taken(9_000_000_000), 0);
        assert_eq!(limits.get(true), IcmpLimit::default());
    }
}
