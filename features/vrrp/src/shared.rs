//! What workers and the control thread share: which virtual router a packet is of, and what state
//! each is in.

use std::sync::Arc;

use quiver_core::control::session_states::SessionStates;
use quiver_core::memory::epoch::{Epochs, Pass, Published};
use quiver_core::{InterfaceId, WorkerId};

use crate::machine::State;

/// Virtual routers of the router at most.
pub const VIRTUAL_ROUTERS_MAX: usize = 1024;

/// What a virtual router is known by: each family has its own (RFC 9568 §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VrKey {
    /// Its link.
    pub interface: InterfaceId,
    /// Its number there.
    pub vr_id: u8,
    /// Is it IPv6's?
    pub is_ip6: bool,
}

/// Where a virtual router is: the worker, and its number there and everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub worker: WorkerId,
    /// Its number.
    pub slot: u16,
}

/// What workers read, and the states that they publish.
pub struct Shared {
    table: Published<Vec<(VrKey, Place)>>,
    states: SessionStates,
}

impl Shared {
    /// No virtual router.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(epochs: &Arc<Epochs>) -> Result<Arc<Shared>, std::io::Error> {
        Ok(Arc::new(Shared {
            table: Published::new(epochs, Vec::new()),
            states: SessionStates::new(VIRTUAL_ROUTERS_MAX)?,
        }))
    }

    /// The virtual router of a packet.
    pub fn find(&self, key: VrKey, pass: Pass<'_>) -> Option<Place> {
        let table = self.table.read(pass);
        let place = table.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(table[place].1)
    }

    /// Let packets find these virtual routers, in order of their keys (control thread).
    pub fn publish(&self, table: Vec<(VrKey, Place)>) {
        self.table.publish(table);
    }

    /// A worker publishes the state of a virtual router.
    pub fn set_state(&self, slot: u16, state: State) {
        self.states.publish(slot, u32::from(state as u8));
    }

    /// The state that was published last.
    pub fn state(&self, slot: u16) -> State {
        State::of_number(self.states.get(slot).bits as u8)
    }

    /// The states of all virtual routers.
    pub fn states(&self) -> &SessionStates {
        &self.states
    }
}
