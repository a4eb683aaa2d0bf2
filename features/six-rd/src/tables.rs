//! What workers read: the domain of each interface, and the interface of each local end.

use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, Published, PublishedSlots};

use crate::domain::Domain;

/// A tunnel, at its interface.
#[derive(Clone, Copy, Debug)]
pub struct Tunnel {
    /// Its domain.
    pub domain: Domain,
    /// The small number of the table of the outer addresses.
    pub table: u32,
    /// The outer source.
    pub source: u32,
    /// The encapsulation entry.
    pub entry: u32,
    /// Must the outer source be the one that the inner source names?
    pub checks_source: bool,
}

/// The local ends of tunnels: table, address and interface, in order.
pub type LocalEnds = Vec<(u32, u32, InterfaceId)>;

/// Both.
pub struct Tables {
    by_interface: PublishedSlots<Tunnel>,
    ends: Published<LocalEnds>,
}

impl Tables {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> Tables {
        Tables {
            by_interface: PublishedSlots::new(epochs, INTERFACES_MAX),
            ends: Published::new(epochs, LocalEnds::new()),
        }
    }

    /// The tunnel that an interface is.
    #[inline(always)]
    pub fn tunnel<'p>(&self, interface: InterfaceId, pass: Pass<'p>) -> Option<&'p Tunnel> {
        self.by_interface.read(interface.index(), pass)
    }

    /// The interface of the tunnel that ends at this address.
    #[inline(always)]
    pub fn at(&self, table: u32, address: u32, pass: Pass<'_>) -> Option<InterfaceId> {
        let ends = self.ends.read(pass);
        let found =
            ends.binary_search_by_key(&(table, address), |(table, address, _)| (*table, *address));
        ends.get(found.ok()?).map(|(.., interface)| *interface)
    }

    pub(crate) fn set(&self, interface: InterfaceId, tunnel: Option<Tunnel>) {
        self.by_interface.publish(interface.index(), tunnel);
    }

    pub(crate) fn set_ends(&self, mut ends: LocalEnds) {
        ends.sort();
        self.ends.publish(ends);
    }
}
