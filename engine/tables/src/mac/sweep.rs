//! Sweeping: a slice of the table at a time, what does not hold any more and what is too old is
//! removed.

use quiver_core::InterfaceId;

use super::ports::PORTS_MAX;
use super::word::{DomainIndex, MacEntry, MacKey, StampMinutes};
use super::writer::MacWriter;

/// So many times a port may be flushed or leave before everything is swept once: its counts have 8
/// bits.
const EPOCHS_MAX: u8 = 250;

/// Why an entry is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// Its source was not seen for too long.
    Aged,
    /// It was flushed, or its port left the domain, or the domain was deleted.
    Flushed,
}

/// How far sweeping is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swept {
    /// There is nothing to sweep.
    Nothing,
    /// More is to be swept.
    More,
    /// Everything was swept once.
    All,
}

/// The state of sweeping.
pub(super) struct Sweep {
    /// Something does not hold any more.
    pub(super) wanted: bool,
    /// Where to go on, while sweeping.
    at: Option<u32>,
    /// Domains that were closed since the sweep under way began, and before.
    pub(super) closed: Vec<DomainIndex>,
    closing: Vec<DomainIndex>,
    /// Each port's flushes and leaves since the sweep under way began, and before.
    epochs: Vec<[u8; 2]>,
    doomed: Vec<(MacKey, MacEntry, Gone)>,
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep {
            wanted: false,
            at: None,
            closed: Vec::new(),
            closing: Vec::new(),
            epochs: vec![[0; 2]; PORTS_MAX],
            doomed: Vec::new(),
        }
    }
}

impl Sweep {
    fn begin(&mut self) {
        self.wanted = false;
        self.at = Some(0);
        self.closing.append(&mut self.closed);
        self.epochs
            .iter_mut()
            .for_each(|[now, before]| *before = before.saturating_add(std::mem::take(now)));
    }
}

impl MacWriter {
    /// Ask for a sweep: it is time to look for what is too old.
    pub fn want_sweep(&mut self) {
        self.sweep.wanted = true;
    }

    /// Is there something to sweep?
    pub fn is_sweeping(&self) -> bool {
        self.sweep.wanted || self.sweep.at.is_some()
    }

    /// Sweep some `segments` of the table, a few thousand entries each. `age` says after how many
    /// minutes a domain forgets what it learned; `gone` hears of each entry that is removed.
    pub fn sweep(
        &mut self,
        now: StampMinutes,
        segments: usize,
        age: impl Fn(DomainIndex) -> Option<u16>,
        mut gone: impl FnMut(MacKey, MacEntry, Gone),
    ) -> Swept {
        if self.sweep.at.is_none() {
            if !self.sweep.wanted {
                return Swept::Nothing;
            }
            self.sweep.begin();
        }
        for _ in 0..segments {
            let Some(at) = self.sweep.at else { break };
            let next = self.sweep_segment(at, now, &age, &mut gone);
            self.sweep.at = next;
            if next.is_none() {
                self.end_sweep();
                return Swept::All;
            }
        }
        Swept::More
    }

    fn sweep_segment(
        &mut self,
        at: u32,
        now: StampMinutes,
        age: &impl Fn(DomainIndex) -> Option<u16>,
        gone: &mut impl FnMut(MacKey, MacEntry, Gone),
    ) -> Option<u32> {
        let mut doomed = std::mem::take(&mut self.sweep.doomed);
        let next = self.entries.scan(at, |key, entry| {
            let key = MacKey::of_word(key);
            let is_old = |age: u16| !entry.is_configured() && now.since(entry.stamp()) > age;
            if !self.holds(key, entry) {
                doomed.push((key, entry, Gone::Flushed));
            } else if age(key.domain()).is_some_and(is_old) {
                doomed.push((key, entry, Gone::Aged));
            }
        });
        for (key, entry, why) in doomed.drain(..) {
            self.remove(key);
            gone(key, entry, why);
        }
        self.sweep.doomed = doomed;
        self.entries.collect();
        next
    }

    fn end_sweep(&mut self) {
        self.sweep.epochs.iter_mut().for_each(|[_, before]| *before = 0);
        self.free.append(&mut self.sweep.closing);
    }

    /// Count one more flush of a port. A count that would come round to entries that are still in
    /// the table waits until they are swept.
    pub(super) fn make_room_for_epoch(&mut self, port: InterfaceId) {
        let Some([now, before]) = self.sweep.epochs.get(port.index()).copied() else { return };
        if now.saturating_add(before) >= EPOCHS_MAX {
            self.sweep.begin();
            while self.sweep(StampMinutes::default(), usize::MAX, |_| None, |_, _, _| ())
                == Swept::More
            {}
        }
        self.sweep.epochs[port.index()][0] += 1;
    }
}
