//! How far the owner has told the peer all that is there. Between two passes a worker stays away
//! from its packets for some microseconds.

use std::sync::atomic::{AtomicU32, Ordering};

/// Changes that one worker call does, and where each may need bindings: about ten microseconds.
pub const CHANGES_PER_CALL: usize = 16;
/// The same where each may need bindings.
pub const CHANGES_PER_CALL_WITH_BINDINGS: usize = 8;
/// Objects that one worker call looks at.
pub const PLACES_PER_CALL: u32 = 256;
/// Records that one worker call writes into the ring.
pub const RECORDS_PER_CALL: usize = 64;

/// What is being told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Bindings.
    Bindings,
    /// Sessions.
    Sessions,
    /// All is told.
    Over,
}

/// How far the owner is.
#[derive(Debug, Default)]
pub struct BulkCursor {
    /// 0 bindings, 1 sessions, 2 all told.
    phase: AtomicU32,
    next: AtomicU32,
    is_begun: AtomicU32,
    number: u32,
}

impl BulkCursor {
    /// At the beginning of the bulk with this number.
    pub(crate) fn new(number: u32) -> BulkCursor {
        BulkCursor { number, ..BulkCursor::default() }
    }

    /// The number of the bulk.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Does the owner begin only now? It is asked once.
    pub fn begins(&self) -> bool {
        self.is_begun.swap(1, Ordering::Relaxed) == 0
    }

    /// What is to be told, and from which number on.
    pub fn place(&self) -> (Phase, u32) {
        let phase = match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Bindings,
            1 => Phase::Sessions,
            _ => Phase::Over,
        };
        (phase, self.next.load(Ordering::Relaxed))
    }

    /// Go on there next time; with the next phase, where the last one has no more.
    pub fn advance(&self, phase: Phase, next: Option<u32>) {
        let (phase, next) = (phase as u32 + u32::from(next.is_none()), next.unwrap_or(0));
        self.phase.store(phase, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
    }

    /// Is all told?
    pub(crate) fn is_over(&self) -> bool {
        self.place().0 == Phase::Over
    }

    /// The number of the next session, once it is their turn.
    pub(crate) fn next_session(&self) -> u32 {
        match self.place() {
            (Phase::Sessions, next) => next,
            _ => 0,
        }
    }
}
