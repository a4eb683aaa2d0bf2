//! What was learned, moved and forgotten lately: a log of bounded length, and totals.

use std::collections::VecDeque;

use quiver_core::InterfaceId;
use quiver_tables::mac::MacKey;

/// Events that are kept unless configured otherwise.
pub const EVENTS_KEPT: usize = 1024;

/// What happened to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// Learned.
    Learned,
    /// Behind another port than before.
    Moved {
        /// That one.
        from: InterfaceId,
    },
    /// Forgotten, because it was not seen for too long.
    Aged,
}

impl Happened {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Happened::Learned => "learned",
            Happened::Moved { .. } => "moved",
            Happened::Aged => "aged",
        }
    }
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct MacEvent {
    /// Its number, from 1.
    pub number: u64,
    /// When, on the router's clock.
    pub at_ns: u64,
    /// What.
    pub happened: Happened,
    /// To whom.
    pub key: MacKey,
    /// The number of its domain.
    pub domain: u32,
    /// Where the address is, or was.
    pub port: InterfaceId,
}

/// The log.
#[derive(Debug, Default)]
pub struct EventLog {
    kept: VecDeque<MacEvent>,
    kept_max: usize,
    last: u64,
    /// Addresses learned since the start.
    pub learned: u64,
    /// Moves since the start.
    pub moved: u64,
    /// Addresses forgotten for their age since the start.
    pub aged: u64,
    /// Requests to learn that were refused: a limit is reached.
    pub refused: u64,
}

impl EventLog {
    pub(crate) fn new(kept_max: usize) -> EventLog {
        EventLog { kept_max, ..EventLog::default() }
    }

    pub(crate) fn add(
        &mut self,
        at_ns: u64,
        happened: Happened,
        key: MacKey,
        domain: u32,
        port: InterfaceId,
    ) {
        match happened {
            Happened::Learned => self.learned += 1,
            Happened::Moved { .. } => self.moved += 1,
            Happened::Aged => self.aged += 1,
        }
        self.last += 1;
        if self.kept_max == 0 {
            return;
        }
        if self.kept.len() >= self.kept_max {
            self.kept.pop_front();
        }
        self.kept.push_back(MacEvent { number: self.last, at_ns, happened, key, domain, port });
    }

    /// As many are kept at most.
    pub fn kept_max(&self) -> usize {
        self.kept_max
    }

    pub(crate) fn keep(&mut self, kept_max: usize) {
        self.kept_max = kept_max;
        self.kept.drain(..self.kept.len().saturating_sub(kept_max));
        self.kept.shrink_to(kept_max);
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Those behind event `after` that are still kept, the oldest first.
    pub fn since(&self, after: u64) -> impl Iterator<Item = &MacEvent> {
        let first = self.kept.front().map_or(0, |event| event.number);
        self.kept.iter().skip((after + 1).saturating_sub(first) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_last_events_and_counts_all() {
        let mut log = EventLog::new(3);
        for n in 0..10 {
            log.add(n, Happened::Learned, MacKey::default(), 7, InterfaceId(1));
        }
        let numbers = |after| log.since(after).map(|event| event.number).collect::<Vec<_>>();
        assert_eq!((log.learned, log.last()), (10, 10));
        assert_eq!(numbers(0), [8, 9, 10]);
        assert_eq!(numbers(9), [10]);
        assert!(numbers(10).is_empty());
    }
}
