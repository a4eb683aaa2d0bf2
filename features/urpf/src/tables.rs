//! What workers read: how each interface's packets are checked, and which sources are exempt.

use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, Published, PublishedSlots};
use quiver_forwarding::fib::Family;
use quiver_tables::prefix::IpPrefix;

/// How closely a source is looked at (RFC 3704 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It must have a route (RFC 3704 §2.4).
    Loose,
    /// One of its route's paths must lead out of the interface that the packet came by (RFC 3704
    /// §2.2, with equal paths as §2.3 wants it).
    Strict,
}

/// Where packets are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// As they come in.
    Rx,
    /// As they go out.
    Tx,
}

/// Packets of an interface and a family, as they come or as they go.
pub(crate) type Place = (InterfaceId, Family, Direction);

/// The check of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub mode: Mode,
    /// Small number of the table in which sources are looked up; without, the interface's own.
    pub table: Option<u32>,
    /// Does a source pass that only the default route covers?
    pub default_route: bool,
}

/// Everything.
pub(crate) struct Checks {
    /// By family and direction, then by interface, replaced one by one.
    checks: [[PublishedSlots<Check>; 2]; 2],
    /// Small numbers of tables, and prefixes.
    exempt: Published<Vec<(u32, IpPrefix)>>,
}

impl Checks {
    /// No check, and nobody exempt.
    pub fn new(epochs: &Arc<Epochs>) -> Checks {
        let slots = || PublishedSlots::new(epochs, INTERFACES_MAX);
        Checks {
            checks: [[slots(), slots()], [slots(), slots()]],
            exempt: Published::new(epochs, Vec::new()),
        }
    }

    /// Let an interface's packets be checked, or no more.
    pub fn set(&self, (interface, family, direction): Place, check: Option<Check>) {
        self.checks[family as usize][direction as usize].publish(interface.index(), check);
    }

    /// The check of an interface's packets.
    #[inline(always)]
    pub fn get(&self, (interface, family, direction): Place, pass: Pass<'_>) -> Option<Check> {
        self.checks[family as usize][direction as usize].read(interface.index(), pass).copied()
    }

    /// Let sources of these prefixes pass.
    pub fn set_exempt(&self, exempt: Vec<(u32, IpPrefix)>) {
        self.exempt.publish(exempt);
    }

    /// Does a source pass whatever the routes say? Asked of those that have failed.
    #[cold]
    pub fn is_exempt(&self, table: u32, source: IpAddr, pass: Pass<'_>) -> bool {
        self.exempt.read(pass).iter().any(|(of, prefix)| *of == table && prefix.contains(source))
    }
}
