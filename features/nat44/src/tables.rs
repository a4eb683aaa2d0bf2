//! What workers read: the session table, timeouts, and the configuration of the moment.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, Published};
use quiver_wire::IpProtocol;

use crate::session::{Class, Objects, Table, Writer};
use quiver_translation::flow::End;

/// Timeouts, in seconds, by [`Class`]: UDP (RFC 4787 REQ-5), TCP established and transitory (RFC
/// 5382 REQ-5), ICMP queries (RFC 5508 REQ-2), other protocols.
pub(crate) const TIMEOUTS_S: [u32; 5] = [300, 7_440, 240, 60, 300];

/// An address that sessions are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolAddress {
    pub address: u32,
    /// Small number of the table whose hosts alone may use it.
    pub tenant: Option<u32>,
}

/// A static mapping as workers read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub local: End,
    pub external: End,
    /// Small number of the local host's table.
    pub table: u32,
}

/// What a static mapping is found by: protocol and port, or 0 and 0 where it maps an address.
pub(crate) type MappingKey = (u32, u8, u16);

/// Everything that is configured and that a new session depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub pool: Vec<PoolAddress>,
    /// By external end.
    pub by_external: HashMap<MappingKey, Mapping>,
    /// By table and local end.
    pub by_local: HashMap<(u32, MappingKey), Mapping>,
    /// Addresses that translated packets may come to, and whether the router has them itself.
    pub external: HashMap<u32, bool>,
    pub forwarding: bool,
    /// Small numbers of the tables of `inside-vrf` and `outside-vrf`.
    pub inside_table: u32,
    pub outside_table: u32,
}

fn mapping_key(end: End, protocol: IpProtocol) -> MappingKey {
    (end.address, protocol.0, end.port)
}

impl Rules {
    /// The static mapping of an external end.
    pub fn mapping_to(&self, external: End, protocol: IpProtocol) -> Option<&Mapping> {
        let exact = self.by_external.get(&mapping_key(external, protocol));
        exact.or_else(|| self.by_external.get(&(external.address, 0, 0)))
    }

    /// The static mapping of a local end.
    pub fn mapping_of(&self, local: End, protocol: IpProtocol, table: u32) -> Option<&Mapping> {
        let exact = self.by_local.get(&(table, mapping_key(local, protocol)));
        exact.or_else(|| self.by_local.get(&(table, (local.address, 0, 0))))
    }

    /// May an outside port be given to a session, or has a static mapping got it?
    pub fn is_reserved(&self, end: End, protocol: IpProtocol) -> bool {
        self.by_external.contains_key(&mapping_key(end, protocol))
    }
}

impl Mapping {
    /// Does it map an address as a whole?
    pub fn is_whole(&self) -> bool {
        self.local.port == 0
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
    /// The look-up table and the sessions, from the first `nat44 plugin enable` on.
    table: OnceLock<(Table, Arc<Objects>)>,
    pub rules: Published<Rules>,
    /// Bit 0: inside, bit 1: outside.
    sides: Box<[AtomicU32]>,
    timeouts_s: [AtomicU32; 5],
    /// 0: none.
    mss: AtomicU32,
    /// What the owner says of itself.
    sessions: AtomicUsize,
    /// Sessions have smaller numbers than this.
    pub places: AtomicUsize,
    pub made: AtomicU64,
    pub expired: AtomicU64,
}

impl Shared {
    /// Nothing configured.
    pub fn new(epochs: &Arc<Epochs>) -> Shared {
        Shared {
            table: OnceLock::new(),
            rules: Published::new(epochs, Rules::default()),
            sides: (0..INTERFACES_MAX).map(|_| AtomicU32::new(0)).collect(),
            timeouts_s: TIMEOUTS_S.map(AtomicU32::new),
            mss: AtomicU32::new(0),
            sessions: AtomicUsize::new(0),
            places: AtomicUsize::new(0),
            made: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// The look-up table and the sessions.
    #[inline(always)]
    pub fn table(&self) -> Option<&(Table, Arc<Objects>)> {
        self.table.get()
    }

    /// Let workers look up there, from now on (control thread).
    pub fn set_table(&self, table: Table, objects: Arc<Objects>) {
        let _ = self.table.set((table, objects));
    }

    /// The owner says how many sessions there are.
    pub fn note_sessions(&self, writer: &Writer) {
        self.sessions.store(writer.len(), Ordering::Relaxed);
        self.places.store(writer.places(), Ordering::Relaxed);
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

    pub fn set_sides(&self, interface: InterfaceId, sides: Sides) {
        if let Some(place) = self.sides.get(interface.index()) {
            let word = u32::from(sides.inside) | u32::from(sides.outside) << 1;
            place.store(word, Ordering::Release);
        }
    }

    #[inline(always)]
    pub fn sides(&self, interface: InterfaceId) -> Sides {
        let word = self.sides.get(interface.index()).map_or(0, |s| s.load(Ordering::Acquire));
        Sides { inside: word & 1 != 0, outside: word & 2 != 0 }
    }

    pub fn timeout_s(&self, class: Class) -> u32 {
        self.timeouts_s[class as usize].load(Ordering::Relaxed)
    }

    pub fn set_timeout_s(&self, class: Class, seconds: u32) {
        self.timeouts_s[class as usize].store(seconds, Ordering::Relaxed);
    }

    /// The greatest segment size that a SYN may name, if it is limited.
    #[inline(always)]
    pub fn mss(&self) -> u16 {
        self.mss.load(Ordering::Relaxed) as u16
    }

    pub fn set_mss(&self, mss: Option<u16>) {
        self.mss.store(mss.unwrap_or(0).into(), Ordering::Relaxed);
    }
}
