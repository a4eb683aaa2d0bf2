//! A policer that a worker uses for packets of a vector, one after another.

use std::sync::MutexGuard;

use quiver_core::memory::epoch::Pass;

use crate::meter::{Colour, Meter};
use crate::policers::{Action, Policer, Policers, Verdict};

/// The meter is had, and filled, until this is dropped; counts are added then.
pub struct Held<'p> {
    policer: &'p Policer,
    meter: Option<MutexGuard<'p, Meter>>,
    /// By colour: packets and bytes.
    sums: [(u64, u64); 3],
    unmetered: (u64, u64),
}

impl<'p> Held<'p> {
    /// Take the meter, unless another worker has it for too long: then packets pass unmetered.
    pub fn new(policer: &'p Policer, now_ns: u64) -> Held<'p> {
        let mut meter = policer.meter();
        if let Some(meter) = &mut meter {
            meter.fill(now_ns);
        }
        Held { policer, meter, sums: [(0, 0); 3], unmetered: (0, 0) }
    }

    /// Do packets have colours before?
    pub fn is_colour_aware(&self) -> bool {
        self.policer.is_colour_aware
    }

    /// What becomes of a packet of so many bytes that had a colour before.
    #[inline(always)]
    pub fn police(&mut self, bytes: u64, before: Colour) -> Action {
        let Some(meter) = &mut self.meter else {
            self.unmetered = (self.unmetered.0 + 1, self.unmetered.1 + bytes);
            return Action::Transmit;
        };
        let colour = meter.colour(self.policer.units(bytes), before);
        let sums = &mut self.sums[colour as usize];
        *sums = (sums.0 + 1, sums.1 + bytes);
        self.policer.actions[colour as usize]
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let counts = &self.policer.counts;
        counts.colours.iter().zip(self.sums).for_each(|(count, sums)| count.add(sums));
        counts.unmetered.add(self.unmetered);
    }
}

/// Packets of a vector, each with the number of its policer: a meter is taken once for neighbours
/// with the same one.
pub struct Neighbours<'p> {
    policers: &'p Policers,
    pass: Pass<'p>,
    now_ns: u64,
    current: Option<(u16, Option<Held<'p>>)>,
}

impl<'p> Neighbours<'p> {
    /// Before the first packet, at a time of the worker's clock.
    pub fn new(policers: &'p Policers, pass: Pass<'p>, now_ns: u64) -> Neighbours<'p> {
        Neighbours { policers, pass, now_ns, current: None }
    }

    /// What becomes of the next packet, of so many bytes. Without such a policer it passes.
    /// `before`: the colour that it had, which only policers that are aware of it want to know.
    #[inline(always)]
    pub fn police(&mut self, number: u16, bytes: u64, before: impl FnOnce() -> Colour) -> Verdict {
        if self.current.as_ref().is_none_or(|(current, _)| *current != number) {
            // The meter of the one before is given back first.
            drop(self.current.take());
            let policer = self.policers.get(number, self.pass);
            let held = policer.map(|policer| Held::new(policer, self.now_ns));
            self.current = Some((number, held));
        }
        let Some((_, Some(held))) = &mut self.current else { return Verdict::Pass };
        let before = if held.is_colour_aware() { before() } else { Colour::Green };
        held.police(bytes, before).into()
    }
}
