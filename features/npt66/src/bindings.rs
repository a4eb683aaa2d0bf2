//! What workers read: the pairs of prefixes of each interface.

use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};

use crate::mapping::Mapping;

/// By interface, replaced one by one.
pub(crate) struct Bindings(PublishedSlots<Box<[Mapping]>>);

impl Bindings {
    /// None.
    pub fn new(epochs: &Arc<Epochs>) -> Bindings {
        Bindings(PublishedSlots::new(epochs, INTERFACES_MAX))
    }

    /// The pairs of an interface from now on.
    pub fn set(&self, interface: InterfaceId, mappings: Box<[Mapping]>) {
        let mappings = Some(mappings).filter(|mappings| !mappings.is_empty());
        self.0.publish(interface.index(), mappings);
    }

    /// The pairs of an interface.
    #[inline(always)]
    pub fn of<'p>(&self, interface: InterfaceId, pass: Pass<'p>) -> &'p [Mapping] {
        self.0.read(interface.index(), pass).map_or(&[], |mappings| mappings)
    }
}
