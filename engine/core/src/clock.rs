//! Time: the time stamp counter in nanoseconds, or a clock that a test moves by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cpu::{clocks, clocks_per_second};

/// A source of nanoseconds since some moment before the start.
#[derive(Clone)]
pub enum Clock {
    /// The time stamp counter.
    Tsc {
        /// Its value at the start.
        start: u64,
        /// Nanoseconds per clock, in units of 2^-32.
        ratio: u64,
    },
    /// A test's own.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The real one, counting from now.
    pub fn tsc() -> Clock {
        Clock::Tsc {
            start: clocks(),
            ratio: (1e9 / clocks_per_second() * (1u64 << 32) as f64) as u64,
        }
    }

    /// One that stands still until it is moved.
    pub fn manual() -> (Clock, Arc<AtomicU64>) {
        let time = Arc::new(AtomicU64::new(1_000_000_000));
        (Clock::Manual(time.clone()), time)
    }

    /// Nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.at_ns(clocks())
    }

    /// Nanoseconds when the time stamp counter stood at `clocks`; a clock that is moved by hand
    /// knows only now.
    #[inline]
    pub fn at_ns(&self, clocks: u64) -> u64 {
        match self {
            Clock::Tsc { start, ratio } => {
                ((clocks.wrapping_sub(*start) as u128 * *ratio as u128) >> 32) as u64
            }
            Clock::Manual(time) => time.load(Ordering::Relaxed),
        }
    }
}

/// Nanoseconds since 1970, for files.
pub fn unix_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |t| t.as_nanos() as u64)
}
