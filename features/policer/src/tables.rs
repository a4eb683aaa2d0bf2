//! What workers read: policers by number, and which one meters an interface.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};

use crate::meter::{Colour, Meter};

/// Policers at most.
pub(crate) const POLICERS_MAX: usize = 65_535;
/// In the place of a policer's number: none.
const NONE: u16 = u16::MAX;
/// How often a worker tries for a meter that another one has. It is had for a vector, which takes
/// less than a microsecond; a worker that lost its core meanwhile is not waited for.
const TRIES: u32 = 4096;

/// What becomes of packets of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// They are dropped.
    Drop,
    /// They go on.
    Transmit,
    /// They go on with this code point.
    Mark(u8),
}

/// Packets and bytes of a colour.
#[derive(Debug, Default)]
pub(crate) struct Count {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    pub fn get(&self) -> (u64, u64) {
        (self.packets.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn add(&self, (packets, bytes): (u64, u64)) {
        if packets > 0 {
            self.packets.fetch_add(packets, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// What a policer has counted; it outlives a change of its rates.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// By colour.
    pub colours: [Count; 3],
    /// Packets that passed because another worker had the meter for too long.
    pub unmetered: Count,
}

/// A policer, as workers have it.
pub(crate) struct Policer {
    meter: Mutex<Meter>,
    /// By colour.
    pub actions: [Action; 3],
    /// Do packets have colours before?
    pub is_colour_aware: bool,
    /// Does every packet cost one unit, not its bytes?
    pub counts_packets: bool,
    pub counts: Arc<Counts>,
}

impl Policer {
    pub fn new(
        meter: Meter,
        actions: [Action; 3],
        is_colour_aware: bool,
        counts_packets: bool,
        counts: Arc<Counts>,
    ) -> Policer {
        Policer { meter: Mutex::new(meter), actions, is_colour_aware, counts_packets, counts }
    }

    /// The meter, unless another worker has it for too long.
    fn meter(&self) -> Option<MutexGuard<'_, Meter>> {
        for _ in 0..TRIES {
            match self.meter.try_lock() {
                Ok(meter) => return Some(meter),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }
}

/// A policer that a worker uses for packets of a vector, one after another.
pub(crate) struct Held<'p> {
    policer: &'p Policer,
    meter: Option<MutexGuard<'p, Meter>>,
    /// By colour: packets and bytes.
    tally: [(u64, u64); 3],
    unmetered: (u64, u64),
}

impl<'p> Held<'p> {
    pub fn new(policer: &'p Policer, now_ns: u64) -> Held<'p> {
        let mut meter = policer.meter();
        if let Some(meter) = &mut meter {
            meter.fill(now_ns);
        }
        Held { policer, meter, tally: [(0, 0); 3], unmetered: (0, 0) }
    }

    pub fn is_colour_aware(&self) -> bool {
        self.policer.is_colour_aware
    }

    /// What becomes of a packet of so many bytes that had a colour before.
    #[inline]
    pub fn police(&mut self, bytes: u64, before: Colour) -> Action {
        let Some(meter) = &mut self.meter else {
            self.unmetered = (self.unmetered.0 + 1, self.unmetered.1 + bytes);
            return Action::Transmit;
        };
        let units = if self.policer.counts_packets { 1 } else { bytes };
        let colour = meter.colour(units, before);
        let tally = &mut self.tally[colour as usize];
        *tally = (tally.0 + 1, tally.1 + bytes);
        self.policer.actions[colour as usize]
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let counts = &self.policer.counts;
        counts.colours.iter().zip(self.tally).for_each(|(count, tally)| count.add(tally));
        counts.unmetered.add(self.unmetered);
    }
}

/// Where packets of an interface are metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// What it receives.
    Input,
    /// What it sends.
    Output,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Input, Direction::Output];

    /// The word of commands.
    pub const fn word(self) -> &'static str {
        match self {
            Direction::Input => "input",
            Direction::Output => "output",
        }
    }
}

/// All policers, and who has which.
pub(crate) struct Policers {
    slots: PublishedSlots<Policer>,
    attached: [Box<[AtomicU16]>; 2],
}

impl Policers {
    pub fn new(epochs: &Arc<Epochs>) -> Policers {
        let none = || (0..INTERFACES_MAX).map(|_| AtomicU16::new(NONE)).collect();
        Policers { slots: PublishedSlots::new(epochs, POLICERS_MAX), attached: [none(), none()] }
    }

    /// Let a number be a policer, or none.
    pub fn publish(&self, number: u16, policer: Option<Policer>) {
        self.slots.publish(number.into(), policer);
    }

    /// A policer, for as long as a pass.
    pub fn get<'p>(&self, number: u16, pass: Pass<'p>) -> Option<&'p Policer> {
        self.slots.read(number.into(), pass)
    }

    /// Let an interface's packets be metered by a policer, or by none.
    pub fn attach(&self, on: InterfaceId, direction: Direction, number: Option<u16>) {
        if let Some(place) = self.attached[direction as usize].get(on.index()) {
            place.store(number.unwrap_or(NONE), Ordering::Release);
        }
    }

    /// The policer of an interface.
    #[inline]
    pub fn of<'p>(
        &self,
        on: InterfaceId,
        direction: Direction,
        pass: Pass<'p>,
    ) -> Option<&'p Policer> {
        let number = self.attached[direction as usize].get(on.index())?.load(Ordering::Acquire);
        if number == NONE { None } else { self.get(number, pass) }
    }
}
