#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod slow_path;

pub use slow_path::{KEY_WORDS, OWNER, SessionMaker, SlowQueue, run_slow_path, tick_slow_path};

/// Nanoseconds between two turns of the clock hand.
pub const TURN_NS: u64 = 10_000_000;
/// Turns of a whole round: it takes 10 seconds.
const TURNS_OF_ROUND: usize = 1_000;
/// Sessions that a turn looks at, at least.
const TURN_PLACES_MIN: usize = 64;

/// Sessions that the clock hand looks at in a turn, of a table with so many places.
pub fn places_of_turn(places: usize) -> usize {
    (places / TURNS_OF_ROUND).max(TURN_PLACES_MIN)
}
