//! What workers read: what is recorded and written on an interface, and the maps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};

use crate::class::Source;
use crate::map::EgressMap;

/// Maps at most; a map's number is below.
pub(crate) const MAPS_MAX: usize = 4096;

/// A number of 16 bits for each source, 0: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerSource(u64);

impl PerSource {
    /// The number of a source.
    #[inline(always)]
    pub fn get(self, source: Source) -> u16 {
        (self.0 >> (16 * source as u32)) as u16
    }

    /// With another number for a source.
    #[must_use]
    pub fn with(self, source: Source, number: u16) -> PerSource {
        let shift = 16 * source as u32;
        PerSource(self.0 & !(0xffff << shift) | u64::from(number) << shift)
    }

    /// Is there none for any source?
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The class of what an interface receives is recorded from the header.
pub(crate) const RECORD: u16 = 0x100;
/// It is the value in the low byte, whatever the header says.
pub(crate) const STORE: u16 = 0x200;

/// All of it.
pub(crate) struct Tables {
    /// By interface: [`RECORD`] or [`STORE`].
    inputs: Box<[AtomicU64]>,
    /// By interface: the numbers of maps, plus one.
    outputs: Box<[AtomicU64]>,
    maps: PublishedSlots<EgressMap>,
}

impl Tables {
    pub fn new(epochs: &Arc<Epochs>) -> Tables {
        let none = || (0..INTERFACES_MAX).map(|_| AtomicU64::new(0)).collect();
        Tables { inputs: none(), outputs: none(), maps: PublishedSlots::new(epochs, MAPS_MAX) }
    }

    /// What is recorded of what an interface receives.
    #[inline(always)]
    pub fn input(&self, on: InterfaceId) -> PerSource {
        load(&self.inputs, on)
    }

    /// Which map, plus one, says what is written in a header of what an interface sends.
    #[inline(always)]
    pub fn output(&self, on: InterfaceId) -> PerSource {
        load(&self.outputs, on)
    }

    pub fn set_input(&self, on: InterfaceId, recorded: PerSource) {
        store(&self.inputs, on, recorded);
    }

    pub fn set_output(&self, on: InterfaceId, maps: PerSource) {
        store(&self.outputs, on, maps);
    }

    /// The map of a number plus one, for as long as a pass.
    #[inline(always)]
    pub fn map<'p>(&self, number: u16, pass: Pass<'p>) -> Option<&'p EgressMap> {
        self.maps.read(usize::from(number.checked_sub(1)?), pass)
    }

    /// Let a number be a map, or none.
    pub fn set_map(&self, number: u16, map: Option<EgressMap>) {
        self.maps.publish(number.into(), map);
    }
}

#[inline(always)]
fn load(words: &[AtomicU64], on: InterfaceId) -> PerSource {
    PerSource(words.get(on.index()).map_or(0, |word| word.load(Ordering::Acquire)))
}

fn store(words: &[AtomicU64], on: InterfaceId, numbers: PerSource) {
    if let Some(word) = words.get(on.index()) {
        word.store(numbers.0, Ordering::Release);
    }
}
