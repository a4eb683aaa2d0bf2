//! Which pings wait for answers: all that workers need to know of them.

use std::sync::atomic::{AtomicU32, Ordering};

/// Pings at a time.
pub const PINGS_MAX: usize = 32;

/// The identifiers of the pings that wait.
#[derive(Debug, Default)]
pub struct WaitingPings {
    count: AtomicU32,
    identifiers: [AtomicU32; PINGS_MAX],
}

impl WaitingPings {
    /// Does somebody wait for answers with this identifier?
    #[inline]
    pub fn wait_for(&self, identifier: u16) -> bool {
        self.count.load(Ordering::Relaxed) > 0
            && self
                .identifiers
                .iter()
                .any(|i| i.load(Ordering::Relaxed) == u32::from(identifier) + 1)
    }

    /// Begin to wait; false when too many do (control thread).
    pub fn begin(&self, identifier: u16) -> bool {
        let Some(free) = self.identifiers.iter().find(|i| i.load(Ordering::Relaxed) == 0) else {
            return false;
        };
        free.store(u32::from(identifier) + 1, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Wait no more.
    pub fn end(&self, identifier: u16) {
        let place = self
            .identifiers
            .iter()
            .find(|i| i.load(Ordering::Relaxed) == u32::from(identifier) + 1);
        if let Some(place) = place {
            place.store(0, Ordering::Relaxed);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
