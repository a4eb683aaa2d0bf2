//! A sample on its way from a worker to the control thread.

use quiver_core::{InterfaceId, Packet};
use quiver_export::records::Record;

use crate::sources::Direction;

/// Bytes of a packet that a sample may have.
pub(crate) const HEADER_BYTES_MAX: usize = 256;

/// A sampled packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Where it was sampled.
    pub interface: InterfaceId,
    /// In which direction.
    pub direction: Direction,
    /// The interface that it came in by, where another one sends it.
    pub came_in: InterfaceId,
    /// One of so many packets was sampled.
    pub rate: u32,
    /// Bytes on the wire, without a checksum of the frame.
    pub frame_bytes: u32,
    /// Does it begin with an IP header?
    pub is_bare: bool,
    /// Bytes of `header` that it has.
    length: u16,
    header: [u8; HEADER_BYTES_MAX],
}

impl Sample {
    /// Of a packet that `interface` receives or sends.
    pub fn of(
        packet: &Packet,
        (interface, direction): (InterfaceId, Direction),
        is_bare: bool,
        (rate, header_bytes): (u32, usize),
    ) -> Sample {
        let (packets, bytes) = packet.on_wire();
        let mut header = [0; HEADER_BYTES_MAX];
        let length = packet.bytes().len().min(header_bytes).min(HEADER_BYTES_MAX);
        for (place, byte) in header.iter_mut().zip(packet.bytes().iter().take(length)) {
            *place = *byte;
        }
        Sample {
            interface,
            direction,
            came_in: packet.rx,
            rate,
            frame_bytes: (bytes / packets.max(1)).min(u64::from(u32::MAX)) as u32,
            is_bare,
            length: length as u16,
            header,
        }
    }

    /// The first bytes of the packet.
    pub fn header(&self) -> &[u8] {
        self.header.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl Record for Sample {
    const KINDS: &'static [&'static str] = &["rx", "tx"];

    fn kind(&self) -> usize {
        self.direction as usize
    }
}
