//! How many notifications a second all workers send together.

use std::sync::atomic::{AtomicU64, Ordering};

const SECOND_NS: u64 = 1_000_000_000;
/// Attempts to take a token while other workers take theirs.
const ATTEMPTS_MAX: usize = 4;

/// A token bucket that workers share: those of a second may be taken at once.
#[derive(Debug, Default)]
pub(crate) struct Limit {
    interval_ns: AtomicU64,
    /// When the bucket would be full again, were nothing taken.
    full_at_ns: AtomicU64,
}

impl Limit {
    /// So many tokens a second from now on.
    pub fn set(&self, per_second: u32) {
        self.interval_ns.store(SECOND_NS / u64::from(per_second.max(1)), Ordering::Relaxed);
    }

    /// Take a token, if there is one. Under a flood of requests, memory is only read.
    pub fn take(&self, now_ns: u64) -> bool {
        let interval_ns = self.interval_ns.load(Ordering::Relaxed).max(1);
        let mut full_at_ns = self.full_at_ns.load(Ordering::Relaxed);
        for _ in 0..ATTEMPTS_MAX {
            let next_ns = full_at_ns.max(now_ns).saturating_add(interval_ns);
            if next_ns.saturating_sub(now_ns) > SECOND_NS {
                return false;
            }
            let (this, order) = (&self.full_at_ns, Ordering::Relaxed);
            match this.compare_exchange_weak(full_at_ns, next_ns, order, order) {
                Ok(_) => return true,
                Err(other) => full_at_ns = other,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_second_may_be_taken_at_once_and_then_so_many_a_second() {
        let limit = Limit::default();
        for per_second in [1, 7, 100_000] {
            limit.set(per_second);
            let start_ns = u64::from(per_second) * 100 * SECOND_NS;
            let taken = |now_ns| (0..300_000).filter(|_| limit.take(now_ns)).count();
            assert_eq!(taken(start_ns), per_second as usize);
            assert_eq!(taken(start_ns), 0);
            assert!(taken(start_ns + SECOND_NS).abs_diff(per_second as usize) <= 1);
        }
    }

    #[test]
    fn workers_together_take_no_more_than_there_are() {
        let limit = Limit::default();
        limit.set(500);
        let taken = || (0..10_000).filter(|_| limit.take(5 * SECOND_NS)).count();
        let all: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(taken)).collect();
            workers.into_iter().map(|worker| worker.join().expect("it ends")).sum()
        });
        assert!((1..=500).contains(&all), "{all}");
    }
}
