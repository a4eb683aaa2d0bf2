//! What workers read: sessions, bindings, timeouts, and the configuration of the moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_bindings::{Bindings, Filtering, Limit, PoolAddress, Readers, Timeouts};
use quiver_core::InterfaceId;
use quiver_core::memory::epoch::{Epochs, Pass, Published};
use quiver_translation::ip6::flow::Flow;

use crate::session::{Objects, Table, Writer};

/// A host with an external address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WholeHost {
    /// Small number of its table.
    pub table: u32,
    pub address: u128,
}

/// Everything that is configured and that a new session depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub pool: Vec<PoolAddress>,
    /// Addresses that translated packets may come to, and whether the router has them itself.
    pub external: HashMap<u128, bool>,
    /// External addresses of hosts that have one of their own.
    pub whole: HashMap<WholeHost, u128>,
    /// The hosts of these addresses.
    pub whole_hosts: HashMap<u128, WholeHost>,
    pub inside: Vec<InterfaceId>,
    pub outside: Vec<InterfaceId>,
    /// Small number of the table that packets from outside are received in.
    pub outside_table: u32,
    pub filtering: Filtering,
    pub limit: Option<Limit>,
}

impl Rules {
    /// Is there a host behind the destination of a packet from outside, or of one from inside to
    /// another host inside?
    pub fn is_bound(&self, bindings: &Readers, flow: &Flow) -> bool {
        let Flow { destination, protocol, .. } = *flow;
        self.whole_hosts.contains_key(&destination.address)
            || bindings.of_external(destination, protocol, self.outside_table).is_some()
    }
}

/// All that nodes share.
pub(crate) struct Shared {
    /// The look-up table and the sessions, from the first `nat66 plugin enable` on.
    table: OnceLock<(Table, Arc<Objects>, Readers)>,
    pub rules: Published<Rules>,
    pub timeouts: Timeouts,
    sessions: AtomicUsize,
    /// Sessions have smaller numbers than this.
    pub places: AtomicUsize,
    /// Bindings have smaller numbers than this.
    pub binding_places: AtomicUsize,
    /// Live bindings.
    pub bindings: AtomicUsize,
    pub made: AtomicU64,
    pub expired: AtomicU64,
}

impl Shared {
    /// Nothing configured.
    pub fn new(epochs: &Arc<Epochs>) -> Shared {
        Shared {
            table: OnceLock::new(),
            rules: Published::new(epochs, Rules::default()),
            timeouts: Timeouts::default(),
            sessions: AtomicUsize::new(0),
            places: AtomicUsize::new(0),
            binding_places: AtomicUsize::new(0),
            bindings: AtomicUsize::new(0),
            made: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// The look-up table, the sessions and the bindings.
    #[inline(always)]
    pub fn table(&self) -> Option<&(Table, Arc<Objects>, Readers)> {
        self.table.get()
    }

    /// Let workers look up there, from now on (control thread).
    pub fn set_table(&self, table: Table, objects: Arc<Objects>, bindings: Readers) {
        let _ = self.table.set((table, objects, bindings));
    }

    /// The owner says how many sessions and bindings there are.
    pub fn note(&self, writer: &Writer, bindings: &Bindings) {
        self.sessions.store(writer.len(), Ordering::Relaxed);
        self.places.store(writer.places(), Ordering::Relaxed);
        self.binding_places.store(bindings.writer.places(), Ordering::Relaxed);
        self.bindings.store(bindings.count(), Ordering::Relaxed);
    }

    /// Live sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Relaxed)
    }

    /// What is configured now.
    #[inline]
    pub fn rules<'p>(&self, pass: Pass<'p>) -> &'p Rules {
        self.rules.read(pass)
    }
}
