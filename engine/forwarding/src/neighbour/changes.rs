//! Changes of neighbours, kept for the code that publishes them.

use std::collections::VecDeque;
use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_wire::MacAddress;

/// Changes of neighbours that wait for [`take_changes`](super::Neighbours::take_changes) at most.
pub const CHANGES_MAX: usize = 4096;

/// A neighbour is known by another MAC address than before, or known no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourChange {
    /// On this interface.
    pub interface: InterfaceId,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address before; `None` when it was not known.
    pub before: Option<MacAddress>,
    /// Its MAC address now; `None` when it is known no more.
    pub now: Option<MacAddress>,
    /// Was it configured?
    pub is_static: bool,
}

/// Changes since somebody last took them, while somebody wants them.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub watched: bool,
    pub waiting: VecDeque<NeighbourChange>,
    pub lost: u64,
}

impl Changes {
    /// Keep one; the oldest makes room.
    pub fn add(&mut self, change: NeighbourChange) {
        if !self.watched || change.before == change.now {
            return;
        }
        if self.waiting.len() >= CHANGES_MAX {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.waiting.push_back(change);
    }
}
