//! What a worker tells the control thread: small, bounded, and lost rather than waited for.

use crate::ids::{InterfaceId, NodeId};
use crate::ring::Producer;

/// Events that wait for the control thread, per worker.
pub const EVENTS_MAX: usize = 4096;
/// Bytes that an event carries.
pub const EVENT_BYTES: usize = 112;

/// Something the control thread should know. What `data` means is between the node that sends it
/// and the handler registered for that node.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The node that sends it.
    pub node: NodeId,
    /// The interface that it is about.
    pub interface: InterfaceId,
    /// Nanoseconds, as in [`Context::now_ns`](crate::context::Context::now_ns).
    pub at_ns: u64,
    /// Bytes used in `data`.
    pub length: u8,
    /// A node's own number for the kind of event.
    pub kind: u8,
    /// The rest.
    pub data: [u8; EVENT_BYTES],
}

impl Event {
    /// An event; what does not fit in [`EVENT_BYTES`] is cut off.
    pub fn new(node: NodeId, interface: InterfaceId, at_ns: u64, kind: u8, bytes: &[u8]) -> Event {
        let length = bytes.len().min(EVENT_BYTES);
        let mut data = [0; EVENT_BYTES];
        data[..length].copy_from_slice(&bytes[..length]);
        Event { node, interface, at_ns, length: length as u8, kind, data }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..(self.length as usize).min(EVENT_BYTES)]
    }
}

pub(crate) type Events = Producer<Event>;
