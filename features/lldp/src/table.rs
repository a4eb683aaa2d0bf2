//! What workers share with the control thread: on which interfaces LLDP is spoken, and a ring of
//! what was heard.

use std::sync::{Arc, Mutex, PoisonError};

use quiver_core::InterfaceId;
use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_wire::lldp::LLDPDU_BYTES_MAX;

/// LLDPDUs of one worker that wait for the control thread at most.
pub const HEARD_WAITING_MAX: usize = 64;

/// By interface: is LLDP spoken on it? Replaced whole.
pub type Published = quiver_core::memory::epoch::Published<Vec<bool>>;

/// An LLDPDU that was received.
pub struct Heard {
    /// Where.
    pub interface: InterfaceId,
    /// Bytes of it.
    pub length: u16,
    /// From the first TLV on.
    pub data: [u8; LLDPDU_BYTES_MAX],
}

impl Heard {
    /// The LLDPDU.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..usize::from(self.length).min(LLDPDU_BYTES_MAX)]
    }
}

/// The workers' ends of the rings, until each worker's node takes its own.
#[derive(Clone)]
pub(crate) struct Ends(Arc<Mutex<Vec<Option<Producer<Heard>>>>>);

impl Ends {
    /// A worker's end; nothing when it was taken.
    pub fn take(&self, worker: usize) -> Option<Producer<Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(worker)?.take()
    }
}

/// A ring from each worker to the control thread.
pub(crate) fn rings(workers: usize) -> (Ends, Vec<Consumer<Heard>>) {
    let (puts, takes): (Vec<_>, Vec<_>) = (0..workers)
        .map(|_| {
            let (put, take) = ring(HEARD_WAITING_MAX);
            (Some(put), take)
        })
        .unzip();
    (Ends(Arc::new(Mutex::new(puts))), takes)
}
