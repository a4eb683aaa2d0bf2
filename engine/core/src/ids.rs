//! Small numbers that name things, each its own type so that they cannot be mixed up.

use serde::Serialize;

/// A node of the graph, by its place in the worker's node table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[repr(transparent)]
#[serde(transparent)]
pub struct NodeId(pub u16);

/// An interface, by its place in the interface table. Numbers are used again after deletion, once
/// no worker can still hold the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[repr(transparent)]
#[serde(transparent)]
pub struct InterfaceId(pub u32);

/// A worker thread, counted from 0. The control thread is not a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[repr(transparent)]
#[serde(transparent)]
pub struct WorkerId(pub u16);

impl InterfaceId {
    /// No interface: a packet that the router made itself.
    pub const NONE: InterfaceId = InterfaceId(u32::MAX);

    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl NodeId {
    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl WorkerId {
    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
