//! Interfaces as workers see them: one row each, replaced whole when something about it changes.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::arc::{ARCS_MAX, ArcId, Chain};
use crate::counters::INTERFACES_MAX;
use crate::epoch::{Epochs, Pass};
use crate::ids::{InterfaceId, NodeId};
use crate::sync::{AtomicPtr, Ordering};

/// What workers need to know about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct InterfaceRow {
    /// May packets come in and go out? Administratively up, and the device has a link.
    pub up: bool,
    /// Layer 2 address; zero where there is none.
    pub mac: [u8; 6],
    /// Receives every frame, whatever its destination address.
    pub promiscuous: bool,
    /// Largest layer 3 packet, bytes.
    pub mtu_bytes: u32,
    /// Where received packets go when no feature stands before it (`ethernet-input`, …).
    pub input: NodeId,
    /// The node that sends: `NAME-output`.
    pub output: NodeId,
    /// The device's node: `NAME-tx`.
    pub tx: NodeId,
    /// The enabled features by arc.
    pub chains: [Chain; ARCS_MAX],
}

impl InterfaceRow {
    /// Where a packet goes that enters `arc` here and whose way without features is `default`.
    #[inline(always)]
    pub fn first(&self, arc: ArcId, default: NodeId) -> NodeId {
        self.chains[arc.0 as usize % ARCS_MAX].at(0).unwrap_or(default)
    }
}

/// All rows, by [`InterfaceId`].
pub struct InterfaceRows {
    rows: Box<[AtomicPtr<InterfaceRow>]>,
    epochs: Arc<Epochs>,
}

impl InterfaceRows {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> InterfaceRows {
        let rows = (0..INTERFACES_MAX).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        InterfaceRows { rows, epochs: epochs.clone() }
    }

    /// An interface's row, for one pass; `None` when it does not exist (any more).
    #[inline(always)]
    pub fn get<'p>(&self, id: InterfaceId, _pass: Pass<'p>) -> Option<&'p InterfaceRow> {
        let row = self.rows.get(id.index())?.load(Ordering::Acquire);
        // SAFETY: null or from a Box that `set` retires through the epochs, which wait for the pass.
        unsafe { row.as_ref() }
    }

    /// Replace a row (control thread).
    pub(crate) fn set(&self, id: InterfaceId, row: Option<InterfaceRow>) {
        let new = row.map_or(std::ptr::null_mut(), |r| Box::into_raw(Box::new(r)));
        let old = self.rows[id.index()].swap(new, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: from a Box, and unpublished just now.
            self.epochs.retire(unsafe { Box::from_raw(old) });
        }
    }
}

impl Drop for InterfaceRows {
    fn drop(&mut self) {
        for id in 0..self.rows.len() {
            self.set(InterfaceId(id as u32), None);
        }
    }
}
