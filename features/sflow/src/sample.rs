//! A sample on its way from a worker to the control thread.

use quiver_core::{InterfaceId, Packet};
use quiver_export::records::Record;

use crate::header::FirstBytes;
use crate::sources::Direction;

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
    /// Its first bytes.
    pub first: FirstBytes,
}

impl Sample {
    /// Of a packet that `interface` receives or sends.
    pub fn of(
        packet: &Packet,
        (interface, direction): (InterfaceId, Direction),
        is_bare: bool,
        (rate, header_bytes): (u32, usize),
    ) -> Sample {
        Sample {
            interface,
            direction,
            came_in: packet.rx,
            rate,
            first: FirstBytes::of(packet, is_bare, header_bytes),
        }
    }
}

impl Record for Sample {
    const KINDS: &'static [&'static str] = &["rx", "tx"];

    fn kind(&self) -> usize {
        self.direction as usize
    }
}
