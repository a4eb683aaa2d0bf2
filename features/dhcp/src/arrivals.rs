//! Packets on their way from workers to the control thread.

use std::sync::{Arc, Mutex, PoisonError};

use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_core::{InterfaceId, Packet};

/// Bytes of a packet that is taken, from its IP header on.
pub const PACKET_BYTES_MAX: usize = 2048;
/// Packets of one node of one worker that wait for the control thread at most.
pub const ARRIVALS_WAITING_MAX: usize = 256;

/// A packet that was received.
pub struct Arrival {
    /// Where.
    pub interface: InterfaceId,
    /// Somebody has seen to the checksum of its datagram.
    pub is_checked: bool,
    length: u16,
    data: [u8; PACKET_BYTES_MAX],
}

impl Arrival {
    /// Copies a packet; `None` when it is too long.
    pub fn of(packet: &Packet, is_checked: bool) -> Option<Arrival> {
        let length = u16::try_from(packet.length()).ok()?;
        let mut data = [0; PACKET_BYTES_MAX];
        let mut place = &mut data[..];
        for segment in packet.segments() {
            let (here, behind) = place.split_at_mut_checked(segment.len())?;
            here.copy_from_slice(segment);
            place = behind;
        }
        Some(Arrival { interface: packet.rx, is_checked, length, data })
    }

    /// The packet.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..usize::from(self.length).min(PACKET_BYTES_MAX)]
    }
}

/// The workers' ends of the rings of one node, until each worker's instance takes its own.
#[derive(Clone)]
pub struct Ends(Arc<Mutex<Vec<Option<Producer<Arrival>>>>>);

impl Ends {
    /// A worker's end; nothing when it was taken.
    pub fn take(&self, worker: usize) -> Option<Producer<Arrival>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(worker)?.take()
    }
}

/// A ring from each worker to the control thread.
pub fn rings(workers: usize) -> (Ends, Vec<Consumer<Arrival>>) {
    let (puts, takes): (Vec<_>, Vec<_>) = (0..workers)
        .map(|_| {
            let (put, take) = ring(ARRIVALS_WAITING_MAX);
            (Some(put), take)
        })
        .unzip();
    (Ends(Arc::new(Mutex::new(puts))), takes)
}
