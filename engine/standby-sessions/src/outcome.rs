//! What becomes of changes that the peer tells.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of changes, as everybody reads it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Sessions made.
    pub made: AtomicU64,
    /// Sessions that were there, and were refreshed.
    pub refreshed: AtomicU64,
    /// Sessions ended.
    pub ended: AtomicU64,
    /// Sessions that the peer did not name when it named all.
    pub swept: AtomicU64,
    /// Not done: a session of our own has an end, or the packets come here now.
    pub kept: AtomicU64,
    /// Not done: no room, or an address that is not configured here.
    pub refused: AtomicU64,
}

/// Why a change is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undone {
    /// What is here has precedence.
    Kept,
    /// No room, or an address that is not configured here.
    Refused,
}

impl Outcome {
    /// One more of a kind.
    pub fn count(&self, of: impl Fn(&Outcome) -> &AtomicU64) {
        of(self).fetch_add(1, Ordering::Relaxed);
    }

    /// Count a change that was not done.
    pub fn note(&self, done: Result<(), Undone>) {
        match done {
            Ok(()) => {}
            Err(Undone::Kept) => self.count(|outcome| &outcome.kept),
            Err(Undone::Refused) => self.count(|outcome| &outcome.refused),
        }
    }
}

/// When a change is done, and which mark its session gets.
#[derive(Clone, Copy, Debug)]
pub struct FromPeer {
    /// The router's clock, nanoseconds.
    pub now_ns: u64,
    /// Not 0.
    pub mark: u32,
}

impl FromPeer {
    /// The router's clock, seconds.
    pub fn now_s(self) -> u32 {
        (self.now_ns / 1_000_000_000) as u32
    }
}
