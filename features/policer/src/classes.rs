//! What workers read of classes: which lists are asked about packets of an interface, and which
//! policer meters what a list takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quiver_access_lists::ListSlot;
use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};

use crate::tables::Direction;

/// Packets that a list takes, and the number of the policer that meters them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    pub list: ListSlot,
    pub policer: u16,
}

/// The classes of each interface and direction, replaced one by one.
pub(crate) struct Classes {
    slots: [PublishedSlots<Box<[Class]>>; 2],
    /// Interfaces whose packets have no link-layer header.
    bare: Box<[AtomicBool]>,
}

impl Classes {
    /// No class anywhere.
    pub fn new(epochs: &Arc<Epochs>) -> Classes {
        let slots = || PublishedSlots::new(epochs, INTERFACES_MAX);
        let bare = (0..INTERFACES_MAX).map(|_| AtomicBool::new(false)).collect();
        Classes { slots: [slots(), slots()], bare }
    }

    /// Let an interface have these classes, the first one first.
    pub fn publish(&self, on: InterfaceId, direction: Direction, classes: Vec<Class>) {
        let classes = (!classes.is_empty()).then(|| classes.into());
        self.slots[direction as usize].publish(on.index(), classes);
    }

    /// The classes of an interface.
    #[inline(always)]
    pub fn of<'p>(&self, on: u32, direction: Direction, pass: Pass<'p>) -> &'p [Class] {
        self.slots[direction as usize].read(on as usize, pass).map_or(&[], |classes| classes)
    }

    /// Say whether an interface's packets begin with the IP header.
    pub fn set_bare(&self, on: InterfaceId, is_bare: bool) {
        if let Some(bare) = self.bare.get(on.index()) {
            bare.store(is_bare, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub fn is_bare(&self, on: InterfaceId) -> bool {
        self.bare.get(on.index()).is_some_and(|bare| bare.load(Ordering::Relaxed))
    }
}
