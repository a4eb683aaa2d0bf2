//! What the queues of one connection share: whether the peer has broken the rules, and where this
//! is reported.

use std::sync::atomic::{AtomicU8, Ordering};

use quiver_core::worker::event::Event;
use quiver_core::{Context, InterfaceId, NodeId};

/// What a peer did for which the connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fault {
    /// An index moved further than the ring is long.
    Index = 1,
    /// A buffer to send into lies outside all regions.
    TxDescriptor = 2,
}

impl Fault {
    /// In words, for `show memif` and for the peer.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Fault::Index => "the peer wrote a ring index that cannot be",
            Fault::TxDescriptor => "the peer gave a buffer outside its regions",
        }
    }

    fn from_number(number: u8) -> Option<Fault> {
        match number {
            1 => Some(Fault::Index),
            2 => Some(Fault::TxDescriptor),
            _ => None,
        }
    }
}

/// Shared by all queues of one connection and the control thread.
pub(crate) struct Link {
    /// Which connection.
    pub(crate) session: u64,
    pub(crate) interface: InterfaceId,
    /// `memif-input`.
    pub(crate) node: NodeId,
    fault: AtomicU8,
}

impl Link {
    pub(crate) fn new(session: u64, interface: InterfaceId, node: NodeId) -> Link {
        Link { session, interface, node, fault: AtomicU8::new(0) }
    }

    /// Must the queues stop?
    #[inline(always)]
    pub(crate) fn is_broken(&self) -> bool {
        self.fault.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        Fault::from_number(self.fault.load(Ordering::Relaxed))
    }

    /// Stop, and tell the control thread. It also looks by itself, should the message be lost.
    #[cold]
    pub(crate) fn raise(&self, cx: &mut Context<'_>, fault: Fault) {
        if self.fault.swap(fault as u8, Ordering::Relaxed) == 0 {
            let session = self.session.to_ne_bytes();
            cx.notify(Event::new(self.node, self.interface, cx.now_ns, fault as u8, &session));
        }
    }
}
