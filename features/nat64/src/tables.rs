//! What workers read: sessions, bindings, timeouts, and the configuration of the moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_bindings::{Bindings, Filtering, Limit, PoolAddress, Readers, Timeouts};
use quiver_core::memory::epoch::{Epochs, Pass, Published};
use quiver_translation::versions::IP6_MTU_MIN;
use quiver_translation::versions::address::Prefix;

use crate::session::{Objects, Table, Writer};

/// Prefixes: their numbers are in keys.
pub(crate) const PREFIXES_MAX: usize = 64;

/// A prefix that IPv4 addresses stand behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PrefixRule {
    pub number: u8,
    pub prefix: Prefix,
    /// Small number of the table of IPv6 whose hosts alone use it.
    pub tenant: Option<u32>,
}

/// Everything that is configured and that a new session depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Those of one table alone first.
    pub prefixes: Vec<PrefixRule>,
    pub pool: Vec<PoolAddress>,
    /// Addresses that translated packets may come to, and whether the router has them itself.
    pub external: HashMap<u32, bool>,
    /// Small number of the table that packets of IPv4 are routed in.
    pub outside_table: u32,
    pub filtering: Filtering,
    pub limit: Option<Limit>,
}

impl Rules {
    /// The prefix that an address begins with, for packets of a table.
    pub fn prefix_of(&self, table: u32, address: u128) -> Option<PrefixRule> {
        self.of_table(table).find(|rule| rule.prefix.contains(address))
    }

    /// The prefix that hosts of a table see remote hosts behind.
    pub fn prefix_for(&self, table: u32) -> Option<PrefixRule> {
        self.of_table(table).next()
    }

    fn of_table(&self, table: u32) -> impl Iterator<Item = PrefixRule> {
        let rules = self.prefixes.iter().copied();
        rules.filter(move |rule| rule.tenant.is_none_or(|tenant| tenant == table))
    }

    /// The prefix with this number.
    #[inline(always)]
    pub fn prefix(&self, number: u8) -> Option<Prefix> {
        self.prefixes.iter().find(|rule| rule.number == number).map(|rule| rule.prefix)
    }
}

/// What is configured for an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sides {
    pub inside: bool,
    pub outside: bool,
}

/// All that nodes share.
pub(crate) struct Shared {
    /// The look-up table and the sessions, from the first `nat64 plugin enable` on.
    table: OnceLock<(Table, Arc<Objects>, Readers)>,
    pub rules: Published<Rules>,
    pub timeouts: Timeouts,
    /// 0: none.
    mss: AtomicU32,
    /// Packets that routers may cut are when they are longer, in bytes.
    ip6_mtu: AtomicU32,
    sessions: AtomicUsize,
    /// Sessions have smaller numbers than this.
    pub places: AtomicUsize,
    /// Bindings have smaller numbers than this.
    pub binding_places: AtomicUsize,
    /// Live bindings of the information base.
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
            mss: AtomicU32::new(0),
            ip6_mtu: AtomicU32::new(IP6_MTU_MIN as u32),
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

    /// The greatest segment size that a SYN may name, if it is limited.
    #[inline(always)]
    pub fn mss(&self) -> u16 {
        self.mss.load(Ordering::Relaxed) as u16
    }

    /// To how many bytes translated packets are cut that may be.
    #[inline(always)]
    pub fn ip6_mtu(&self) -> u16 {
        self.ip6_mtu.load(Ordering::Relaxed) as u16
    }

    pub fn set_ip6_mtu(&self, bytes: u16) {
        self.ip6_mtu.store(bytes.into(), Ordering::Relaxed);
    }

    pub fn set_mss(&self, mss: Option<u16>) {
        self.mss.store(mss.unwrap_or(0).into(), Ordering::Relaxed);
    }
}
