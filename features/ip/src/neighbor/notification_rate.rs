//! How often nodes tell the control thread of neighbours: it must not drown in what it knows.

use quiver_core::throttle::{Recent, TokenBucket};

/// The same thing is told at most so often by a worker.
pub const NOTIFY_INTERVAL_NS: u64 = 500_000_000;
/// Neighbours that a worker tells of in a second: a storm of invented ones must not keep the
/// control thread from its work.
pub const TELLS_PER_SECOND: u64 = 10_000;
/// Neighbours that a worker may tell of at once.
pub const TELLS_BURST: u64 = 2048;

/// May it be told?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notify {
    /// Yes.
    Now,
    /// It was told a moment ago.
    KnownAlready,
    /// Too much is told.
    TooMany,
}

/// One node's memory of what it told.
pub(crate) struct Notifier {
    told: Recent,
    bucket: TokenBucket,
}

impl Notifier {
    /// Nothing told yet.
    pub fn new() -> Notifier {
        Notifier {
            told: Recent::new(NOTIFY_INTERVAL_NS),
            bucket: TokenBucket::new(TELLS_PER_SECOND, TELLS_BURST),
        }
    }

    /// May what has this key be told? Then it counts as told.
    pub fn may(&mut self, key: u64, now_ns: u64) -> Notify {
        if !self.told.may(key, now_ns) {
            return Notify::KnownAlready;
        }
        if self.bucket.take(now_ns) { Notify::Now } else { Notify::TooMany }
    }
}
