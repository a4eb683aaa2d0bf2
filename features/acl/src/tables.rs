//! What workers read: the compiled lists of each interface, in and out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use quiver_classifier::{Key, NONE};
use quiver_core::cpu::Variant;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_core::{InterfaceId, WorkerId};

use crate::compiled::{Compiled, Part};
use crate::log::Logger;
use crate::stateful::Sessions;

/// Found: no list looks at the packet.
pub(crate) const PASS: u32 = NONE - 3;
/// Found: the upper layer's header is cut off, and the lists look at it.
pub(crate) const BAD: u32 = NONE - 2;
/// Found: it belongs to a session.
pub(crate) const ESTABLISHED: u32 = NONE - 7;
/// What is found has this bit when the packet is dropped: numbers of rules are eight times their
/// place, and this or [`REFLECT`], and [`LOG`], more.
pub(crate) const DENY: u32 = quiver_access_lists::DENY;
/// What is found has this bit alone of the two when the packet makes a session.
pub(crate) const REFLECT: u32 = 2;
/// What is found has this bit when the rule logs.
pub(crate) const LOG: u32 = 4;
/// The place of a rule stands above these bits of its number.
pub(crate) const PLACE_SHIFT: u32 = 3;
/// Numbers of rules are smaller.
pub(crate) const NUMBERS_END: u32 = ESTABLISHED;
/// [`Key::owner`] of packets that no list looks at.
pub(crate) const NOBODY: u32 = u32::MAX;

/// In or out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl Direction {
    pub const ALL: [Direction; 2] = [Direction::Input, Direction::Output];

    pub const fn word(self) -> &'static str {
        match self {
            Direction::Input => "input",
            Direction::Output => "output",
        }
    }
}

/// How a vector's keys are searched for.
#[derive(Clone, Copy)]
pub(crate) struct Search {
    pub variant: Variant,
    pub worker: WorkerId,
    /// Are neighbours likely to be the same?
    pub is_uniform: bool,
    /// Seconds of the router's clock.
    pub now_s: u32,
}

/// By interface, replaced one by one.
pub(crate) struct Attached {
    input: PublishedSlots<Arc<Compiled>>,
    output: PublishedSlots<Arc<Compiled>>,
    /// Interfaces whose packets leave without a link layer.
    bare: Box<[AtomicBool]>,
    /// Do rules that look at ports match fragments after the first?
    matches_later_fragments: AtomicBool,
    counts: AtomicBool,
    /// Records of a rule with `log` in a second at most; 0 where nothing is logged.
    log_rate: AtomicU32,
    pub sessions: Sessions,
}

impl Attached {
    /// No list anywhere.
    pub fn new(epochs: &Arc<Epochs>) -> Attached {
        Attached {
            input: PublishedSlots::new(epochs, INTERFACES_MAX),
            output: PublishedSlots::new(epochs, INTERFACES_MAX),
            bare: (0..INTERFACES_MAX).map(|_| AtomicBool::new(false)).collect(),
            matches_later_fragments: AtomicBool::new(true),
            counts: AtomicBool::new(false),
            log_rate: AtomicU32::new(0),
            sessions: Sessions::new(),
        }
    }

    #[inline(always)]
    fn slots(&self, direction: Direction) -> &PublishedSlots<Arc<Compiled>> {
        match direction {
            Direction::Input => &self.input,
            Direction::Output => &self.output,
        }
    }

    /// Let lists filter what an interface receives or sends, or none.
    pub fn publish(&self, on: InterfaceId, direction: Direction, lists: Option<Arc<Compiled>>) {
        self.slots(direction).publish(on.index(), lists);
    }

    /// Say whether what leaves by an interface begins with the IP header.
    pub fn set_bare(&self, on: InterfaceId, is_bare: bool) {
        if let Some(bare) = self.bare.get(on.index()) {
            bare.store(is_bare, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub fn is_bare(&self, on: InterfaceId) -> bool {
        self.bare.get(on.index()).is_some_and(|bare| bare.load(Ordering::Relaxed))
    }

    pub fn matches_later_fragments(&self) -> bool {
        self.matches_later_fragments.load(Ordering::Relaxed)
    }

    pub fn match_later_fragments(&self, matches: bool) {
        self.matches_later_fragments.store(matches, Ordering::Relaxed);
    }

    pub fn is_counting(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    pub fn set_counting(&self, counts: bool) {
        self.counts.store(counts, Ordering::Relaxed);
    }

    #[inline(always)]
    pub fn log_rate(&self) -> u32 {
        self.log_rate.load(Ordering::Relaxed)
    }

    pub fn set_log_rate(&self, rate: u32) {
        self.log_rate.store(rate, Ordering::Relaxed);
    }

    /// What the lists of `direction` say of packets, each of the interface in its key; what rules
    /// with `log` say is logged, at a time in nanoseconds.
    #[inline(always)]
    pub fn find<F: Part>(
        &self,
        direction: Direction,
        search: Search,
        pass: Pass<'_>,
        keys: &[Key<F::Address>],
        found: &mut [u32],
        mut log: Option<(&mut Logger, u64)>,
    ) {
        let (mut keys, mut found) = (keys, found);
        while let Some(owner) = keys.first().map(|key| key.owner) {
            let count = keys.iter().take_while(|key| key.owner == owner).count();
            let (now, later) = keys.split_at(count);
            let (answers, rest) = found.split_at_mut(count.min(found.len()));
            // The epoch first: with a new one, the lists are new, too.
            let epoch = self.sessions.epoch(owner);
            let lists = self.lists(direction, owner, pass);
            if epoch != 0 {
                self.find_stateful::<F>(lists, epoch, search, pass, now, answers);
            } else {
                self.find_in_lists::<F>(lists, search, now, answers);
            }
            if let Some(((logger, now_ns), lists)) = log.as_mut().zip(lists) {
                self.log::<F>(lists, (direction, *now_ns), logger, now, answers);
            }
            (keys, found) = (later, rest);
        }
    }

    /// What filters an interface and direction.
    #[inline(always)]
    pub fn lists<'p>(
        &self,
        direction: Direction,
        interface: u32,
        pass: Pass<'p>,
    ) -> Option<&'p Compiled> {
        self.slots(direction).read(interface as usize, pass).map(|lists| &**lists)
    }

    /// What lists say of packets; all pass where there are none.
    #[inline(always)]
    pub fn find_in_lists<F: Part>(
        &self,
        lists: Option<&Compiled>,
        search: Search,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        match lists {
            Some(lists) => self.find_in::<F>(lists, search, keys, found),
            None => found.fill(PASS),
        }
    }

    #[inline(always)]
    fn find_in<F: Part>(
        &self,
        compiled: &Compiled,
        search: Search,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        compiled.ask::<F>(search.variant, search.is_uniform, keys, found);
        if self.is_counting() {
            compiled.count(search.worker, keys, found);
        }
    }
}
