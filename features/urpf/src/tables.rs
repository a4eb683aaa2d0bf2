//! What workers read: how each interface's packets are checked, and which sources are exempt.

use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_tables::fib::Family;
use quiver_tables::prefix::IpPrefix;

/// The checks as workers see them, replaced whole.
pub(crate) type Published = quiver_core::epoch::Published<Checks>;

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
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    /// By family and direction, then by interface.
    checks: [[Vec<Option<Check>>; 2]; 2],
    /// Small numbers of tables, and prefixes.
    exempt: Vec<(u32, IpPrefix)>,
}

impl Checks {
    /// Let an interface's packets be checked.
    pub fn set(&mut self, family: Family, direction: Direction, interface: InterfaceId, check: Check) {
        let places = &mut self.checks[family as usize][direction as usize];
        if places.len() <= interface.index() {
            places.resize(interface.index() + 1, None);
        }
        places[interface.index()] = Some(check);
    }

    /// The check of an interface's packets.
    #[inline(always)]
    pub fn get(&self, family: Family, direction: Direction, interface: InterfaceId) -> Option<Check> {
        self.checks[family as usize][direction as usize].get(interface.index()).copied().flatten()
    }

    /// Let sources of these prefixes pass.
    pub fn set_exempt(&mut self, exempt: Vec<(u32, IpPrefix)>) {
        self.exempt = exempt;
    }

    /// Does a source pass whatever the routes say? Asked of those that have failed.
    #[cold]
    pub fn is_exempt(&self, table: u32, source: IpAddr) -> bool {
        self.exempt.iter().any(|(of, prefix)| *of == table && prefix.contains(source))
    }
}
