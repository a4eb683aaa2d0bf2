//! What workers read: the mappings, the interfaces, timeouts and slots.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, Published};

use crate::mapping::Mapping;
use crate::slots::{Slots, Timeouts};

/// Mappings at most: they are compared with each packet's address.
pub(crate) const MAPPINGS_MAX: usize = 16;

/// The mappings, and the small numbers of tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    mappings: [Option<Mapping>; MAPPINGS_MAX],
    count: usize,
    /// Of the hosts inside.
    pub inside_table: u32,
    /// Where translated packets are routed.
    pub outside_table: u32,
}

impl Rules {
    /// Of mappings, [`MAPPINGS_MAX`] at most.
    pub fn new(all: impl Iterator<Item = Mapping>, tables: (u32, u32)) -> Rules {
        let (inside_table, outside_table) = tables;
        let mut rules = Rules { inside_table, outside_table, ..Rules::default() };
        for (place, mapping) in rules.mappings.iter_mut().zip(all) {
            *place = Some(mapping);
            rules.count += 1;
        }
        rules
    }

    #[inline(always)]
    fn all(&self) -> impl Iterator<Item = &Mapping> {
        self.mappings.iter().take(self.count).flatten()
    }

    /// The mapping of an inside address.
    #[inline(always)]
    pub fn of_inside(&self, address: u32) -> Option<&Mapping> {
        self.all().find(|mapping| mapping.is_inside(address))
    }

    /// The mapping of an outside address.
    #[inline(always)]
    pub fn of_outside(&self, address: u32) -> Option<&Mapping> {
        self.all().find(|mapping| mapping.is_outside(address))
    }
}

/// All that nodes share.
pub(crate) struct Shared {
    pub rules: Published<Rules>,
    pub timeouts: Timeouts,
    /// From the first `det44 plugin enable` on.
    slots: OnceLock<Slots>,
    /// Is an interface outside? By its number.
    outside: Box<[AtomicU32]>,
}

impl Shared {
    /// Nothing configured.
    pub fn new(epochs: &Arc<Epochs>) -> Shared {
        Shared {
            rules: Published::new(epochs, Rules::default()),
            timeouts: Timeouts::new(),
            slots: OnceLock::new(),
            outside: (0..INTERFACES_MAX).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    #[inline(always)]
    pub fn slots(&self) -> Option<&Slots> {
        self.slots.get()
    }

    /// Let workers use these, from now on (control thread).
    pub fn set_slots(&self, slots: Slots) {
        let _ = self.slots.set(slots);
    }

    #[inline(always)]
    pub fn rules<'p>(&self, pass: Pass<'p>) -> &'p Rules {
        self.rules.read(pass)
    }

    pub fn is_outside(&self, interface: InterfaceId) -> bool {
        self.outside.get(interface.index()).is_some_and(|on| on.load(Ordering::Acquire) != 0)
    }

    pub fn set_outside(&self, interface: InterfaceId, on: bool) {
        if let Some(place) = self.outside.get(interface.index()) {
            place.store(on.into(), Ordering::Release);
        }
    }
}
