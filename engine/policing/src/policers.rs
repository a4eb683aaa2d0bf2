//! What workers read: policers by number.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};

use crate::meter::{Meter, Plan, Rates, Unit};

/// Policers at most.
pub const POLICERS_MAX: usize = 65_535;
/// In the place of a policer's number: none.
pub const NO_POLICER: u16 = u16::MAX;
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

/// What becomes of a packet, which perhaps no policer meters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    #[default]
    Pass,
    /// It is dropped.
    Drop,
    /// It goes on with this code point.
    Mark(u8),
}

impl From<Action> for Verdict {
    fn from(action: Action) -> Verdict {
        match action {
            Action::Transmit => Verdict::Pass,
            Action::Drop => Verdict::Drop,
            Action::Mark(code_point) => Verdict::Mark(code_point),
        }
    }
}

/// Packets and bytes of a colour.
#[derive(Debug, Default)]
pub struct Count {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// Packets and bytes.
    pub fn get(&self) -> (u64, u64) {
        (self.packets.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    pub(crate) fn add(&self, (packets, bytes): (u64, u64)) {
        if packets > 0 {
            self.packets.fetch_add(packets, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

/// What a policer has counted; it outlives a change of its rates.
#[derive(Debug, Default)]
pub struct Counts {
    /// By colour.
    pub colours: [Count; 3],
    /// Packets that passed because another worker had the meter for too long.
    pub unmetered: Count,
}

/// What a policer is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Its rates and bursts.
    pub rates: Rates,
    /// What becomes of packets, by colour.
    pub actions: [Action; 3],
    /// Do packets have colours before?
    pub is_colour_aware: bool,
}

/// A policer, as workers have it.
pub struct Policer {
    meter: Mutex<Meter>,
    /// How its buckets fill, and those of other meters with its rates.
    pub plan: Plan,
    /// By colour.
    pub actions: [Action; 3],
    /// Do packets have colours before?
    pub is_colour_aware: bool,
    /// Does every packet cost one unit, not its bytes?
    counts_packets: bool,
    /// When an operator has filled all buckets of meters with its rates, nanoseconds; 0 where
    /// nobody has.
    pub reset_ns: u64,
    /// What it has counted.
    pub counts: Arc<Counts>,
}

impl Policer {
    /// With full buckets.
    pub fn new(terms: Terms, now_ns: u64, counts: Arc<Counts>) -> Policer {
        let Terms { rates, actions, is_colour_aware } = terms;
        let meter = Meter::new(rates, now_ns);
        let (plan, counts_packets) = (*meter.plan(), rates.unit == Unit::Packets);
        let meter = Mutex::new(meter);
        Policer { meter, plan, actions, is_colour_aware, counts_packets, reset_ns: 0, counts }
    }

    /// The same, whose buckets were filled at a moment.
    pub fn reset_at(self, reset_ns: u64) -> Policer {
        Policer { reset_ns, ..self }
    }

    /// Units of a burst that a packet of so many bytes costs.
    #[inline]
    pub fn units(&self, bytes: u64) -> u64 {
        if self.counts_packets { 1 } else { bytes }
    }

    /// The meter, unless another worker has it for too long.
    pub(crate) fn meter(&self) -> Option<MutexGuard<'_, Meter>> {
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

/// All policers, by number.
pub struct Policers(PublishedSlots<Policer>);

impl Policers {
    /// None.
    pub fn new(epochs: &Arc<Epochs>) -> Policers {
        Policers(PublishedSlots::new(epochs, POLICERS_MAX))
    }

    /// Let a number be a policer, or none.
    pub fn publish(&self, number: u16, policer: Option<Policer>) {
        self.0.publish(number.into(), policer);
    }

    /// A policer, for as long as a pass.
    #[inline(always)]
    pub fn get<'p>(&self, number: u16, pass: Pass<'p>) -> Option<&'p Policer> {
        if number == NO_POLICER { None } else { self.0.read(number.into(), pass) }
    }
}
