//! Back-pressure: how much a client has been sent and has not read.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Shared by the control thread, which adds, and the server thread, which takes away.
#[derive(Debug)]
pub(crate) struct Flow {
    unread_bytes: AtomicUsize,
    unread_bytes_max: usize,
}

impl Flow {
    pub(crate) fn new(unread_bytes_max: usize) -> Flow {
        Flow { unread_bytes: AtomicUsize::new(0), unread_bytes_max }
    }

    /// The client gets so much more.
    pub(crate) fn sent(&self, bytes: usize) {
        self.unread_bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// The client read so much. Returns whether that makes room where there was none.
    pub(crate) fn drained(&self, bytes: usize) -> bool {
        let before = self.unread_bytes.fetch_sub(bytes, Ordering::AcqRel);
        before >= self.unread_bytes_max && before - bytes < self.unread_bytes_max
    }

    /// Must the client read first?
    pub(crate) fn is_full(&self) -> bool {
        self.unread_bytes.load(Ordering::Acquire) >= self.unread_bytes_max
    }
}
