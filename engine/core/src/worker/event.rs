//! What a worker tells the control thread: small, bounded, and lost rather than waited for.

use crate::ids::{InterfaceId, NodeId};
use crate::memory::ring::Producer;

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
    /// Nanoseconds, as a [context](crate::graph::context::Context) tells them.
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

/// What a node puts into an event, piece by piece and without allocation. What does not fit is left
/// out.
pub struct EventWriter {
    bytes: [u8; EVENT_BYTES],
    length: usize,
}

impl EventWriter {
    /// Nothing yet.
    #[allow(clippy::new_without_default)] // one way to begin is enough
    pub fn new() -> EventWriter {
        EventWriter { bytes: [0; EVENT_BYTES], length: 0 }
    }

    /// These bytes, too.
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// All that was put.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Reads it again, in the same order.
pub struct EventReader<'a>(pub &'a [u8]);

impl EventReader<'_> {
    /// The next `N` bytes; `None` when there are fewer.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    /// The next 16 bits, as they come over the wire.
    pub fn half(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    /// The next 32 bits.
    pub fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
}

pub(crate) type Events = Producer<Event>;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read_again_and_what_does_not_fit_is_left_out() {
        let mut out = EventWriter::new();
        out.put(&[7]);
        out.put(&0x1234_u16.to_be_bytes());
        out.put(&[0; EVENT_BYTES]);
        out.put(&0x5678_9abc_u32.to_be_bytes());
        let mut reader = EventReader(out.bytes());
        assert_eq!((reader.take(), reader.half()), (Some([7]), Some(0x1234)));
        assert_eq!(
            (reader.word(), reader.word(), reader.take::<1>()),
            (Some(0x5678_9abc), None, None)
        );
    }
}
