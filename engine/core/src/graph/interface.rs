//! Interfaces as workers see them: one row each, replaced whole when something about it changes.

use std::sync::Arc;

use crate::graph::arc::{ARCS_MAX, ArcId, Chain};
use crate::graph::counters::INTERFACES_MAX;
use crate::ids::{InterfaceId, NodeId};
use crate::memory::epoch::{Epochs, Pass, PublishedSlots};

/// Bytes of a link layer between the addresses and the number of the protocol at most: two tags.
pub const ENCAPSULATION_BYTES_MAX: usize = 8;

/// What stands between the layer 2 addresses and the number of the protocol in every frame of an
/// interface; nothing as a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Encapsulation {
    bytes: [u8; ENCAPSULATION_BYTES_MAX],
    length: u8,
}

impl Encapsulation {
    /// Of these bytes; `None` when they are more than [`ENCAPSULATION_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Option<Encapsulation> {
        let mut encapsulation =
            Encapsulation { length: bytes.len() as u8, ..Encapsulation::default() };
        encapsulation.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(encapsulation)
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length) % (ENCAPSULATION_BYTES_MAX + 1)]
    }
}

/// What workers need to know about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct InterfaceRow {
    /// May packets come in and go out? Administratively up, and the device has a link.
    pub up: bool,
    /// Layer 2 address; zero where there is none.
    pub mac: [u8; 6],
    /// Further layer 2 addresses whose frames are for this interface, as those of virtual routers.
    pub virtual_macs: Arc<[[u8; 6]]>,
    /// Receives every frame, whatever its destination address.
    pub promiscuous: bool,
    /// Largest layer 3 packet, bytes.
    pub mtu_bytes: u32,
    /// Where received packets go when no feature stands before it (`ethernet-input`, …).
    pub input: NodeId,
    /// The node that sends: `NAME-output`; for a sub-interface `sub-interface-output`, for a tunnel
    /// `tunnel-output`.
    pub output: NodeId,
    /// Do others send by that node, too? Who sends there sets [`Packet::tx`](crate::Packet::tx)
    /// first.
    pub shares_output: bool,
    /// The device's node: `NAME-tx`; for a sub-interface the parent's output, for a tunnel the node
    /// that encapsulates.
    pub tx: NodeId,
    /// The interface that this one is a part of; [`InterfaceId::NONE`] when it is a port of its
    /// own.
    pub parent: InterfaceId,
    /// The node that takes what a host behind the router deals with in this interface's place (its
    /// twin in Linux): frames that no node of the graph understands, and packets for the router
    /// that nothing in it speaks.
    pub host: Option<NodeId>,
    /// What its frames carry behind their addresses.
    pub encapsulation: Encapsulation,
    /// The enabled features by arc.
    pub chains: [Chain; ARCS_MAX],
}

impl InterfaceRow {
    /// Is it a part of another interface?
    #[inline(always)]
    pub fn is_sub_interface(&self) -> bool {
        self.parent != InterfaceId::NONE
    }

    /// Where a packet goes that enters `arc` here and whose way without features is `default`.
    #[inline(always)]
    pub fn first(&self, arc: ArcId, default: NodeId) -> NodeId {
        self.chains[arc.0 as usize % ARCS_MAX].at(0).unwrap_or(default)
    }

    /// The features that are enabled in `arc`, in order.
    pub fn features(&self, arc: ArcId) -> impl Iterator<Item = NodeId> {
        self.chains[arc.0 as usize % ARCS_MAX].iter()
    }
}

/// All rows, by [`InterfaceId`].
pub struct InterfaceRows(PublishedSlots<InterfaceRow>);

impl InterfaceRows {
    pub(crate) fn new(epochs: &Arc<Epochs>) -> InterfaceRows {
        InterfaceRows(PublishedSlots::new(epochs, INTERFACES_MAX))
    }

    /// An interface's row, for one pass; `None` when it does not exist (any more).
    #[inline(always)]
    pub fn get<'p>(&self, id: InterfaceId, pass: Pass<'p>) -> Option<&'p InterfaceRow> {
        self.0.read(id.index(), pass)
    }

    /// Replace a row (control thread).
    pub(crate) fn set(&self, id: InterfaceId, row: Option<InterfaceRow>) {
        self.0.publish(id.index(), row);
    }
}
