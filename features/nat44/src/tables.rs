//! What workers read: the session table, timeouts, and the configuration of the moment.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, Published};
use quiver_translation::flow::End;
use quiver_wire::IpProtocol;

use crate::alg::SharedExpected;
use crate::bindings::Readers;
use crate::session::{Class, Objects, Table, Writer};
use crate::softwires::Aftr;
use crate::softwires::table::Softwires;

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
    pub twice: TwiceNat,
    /// Address of the twice-NAT pool that remote hosts get; 0 for any.
    pub exact: u32,
    /// Only packets from outside make sessions of it.
    pub out2in_only: bool,
    /// Places of its back-ends in [`Rules::backends`]; none when `local` is the only host.
    pub backends: (u32, u32),
    /// Does a remote host stay with its back-end?
    pub is_sticky: bool,
}

/// Does a static mapping translate the remote end, too?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TwiceNat {
    #[default]
    Never,
    Always,
    /// When the remote host is the local one.
    OwnAddress,
}

/// A host of a load-balancing mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backend {
    pub local: End,
    /// Small number of its table.
    pub table: u32,
    /// Sum of the probabilities up to its own.
    pub up_to: u32,
}

/// Which remote hosts may send to an endpoint-independent mapping (RFC 4787 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Filtering {
    EndpointIndependent,
    AddressDependent,
    AddressAndPortDependent,
}

/// Limits of a subscriber; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub sessions: u32,
    pub ports: u32,
    /// New sessions a second.
    pub rate: u32,
}

/// Ports that subscribers get by blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Ports of a block; it divides [`PORTS`].
    pub size: u16,
    /// Blocks of a subscriber.
    pub max: u16,
    /// Seconds after the last use when a block is free again.
    pub timeout_s: u32,
}

/// Dynamic ports (RFC 6056 §3.2): all but the well-known ones.
pub(crate) const FIRST_PORT: u16 = 1024;
pub(crate) const PORTS: u32 = 65_536 - FIRST_PORT as u32;

impl Blocks {
    /// Blocks of an address.
    pub fn per_address(self) -> u16 {
        (PORTS / u32::from(self.size.max(1))) as u16
    }

    /// The block of a port.
    pub fn index_of(self, port: u16) -> u16 {
        port.saturating_sub(FIRST_PORT) / self.size.max(1)
    }

    /// The first port of a block.
    pub fn first_port(self, index: u16) -> u16 {
        FIRST_PORT + (u32::from(index) * u32::from(self.size)).min(PORTS - 1) as u16
    }

    /// The first and the last port of a block.
    pub fn ports(self, index: u16) -> (u16, u16) {
        let first = self.first_port(index);
        (first, first.saturating_add(self.size.saturating_sub(1)))
    }
}

/// What a provider configures beside the pool; any of it needs bindings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Provider {
    pub limits: Limits,
    pub blocks: Option<Blocks>,
    /// Endpoint-independent mapping, with this filtering.
    pub independent: Option<Filtering>,
    /// A subscriber has one external address (RFC 4787 REQ-2 "paired").
    pub is_paired: bool,
    /// Seconds for which an external port is not used again (RFC 6888 REQ-8).
    pub reuse_s: u32,
    /// Sessions of a table at most, by its small number.
    pub table_limits: Vec<(u32, u32)>,
}

impl Provider {
    /// Is nothing of it configured?
    pub fn is_default(&self) -> bool {
        *self == Provider::default()
    }
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
    /// Destinations that are not translated (RFC 6888 REQ-6): address and mask.
    pub excluded: Vec<(u32, u32)>,
    /// Ends that are not translated, as packets from outside name them.
    pub identity: HashSet<MappingKey>,
    /// The same by table, as packets from inside name them.
    pub identity_local: HashSet<(u32, MappingKey)>,
    pub backends: Vec<Backend>,
    /// Addresses that remote hosts get (twice-NAT).
    pub twice_pool: Vec<u32>,
    /// By the table of a host: the tables in which its destinations are looked for, in order.
    pub vrf_routes: HashMap<u32, Vec<u32>>,
    pub provider: Provider,
    pub aftr: Aftr,
    /// Small numbers of the tables of `inside-vrf` and `outside-vrf`.
    pub inside_table: u32,
    pub outside_table: u32,
}

fn mapping_key(end: End, protocol: IpProtocol) -> MappingKey {
    (end.address, protocol.0, end.port)
}

impl Rules {
    /// Has a remote host this address inside (twice-NAT)?
    pub fn is_of_twice(&self, address: u32) -> bool {
        self.twice_pool.contains(&address)
    }

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

    /// Is this end of a host left untranslated?
    pub fn is_identity_of(&self, local: End, protocol: IpProtocol, table: u32) -> bool {
        !self.identity_local.is_empty()
            && (self.identity_local.contains(&(table, mapping_key(local, protocol)))
                || self.identity_local.contains(&(table, (local.address, 0, 0))))
    }

    /// Is this destination of a packet from outside left untranslated?
    pub fn is_identity_to(&self, external: End, protocol: IpProtocol) -> bool {
        !self.identity.is_empty()
            && (self.identity.contains(&mapping_key(external, protocol))
                || self.identity.contains(&(external.address, 0, 0)))
    }

    /// Is a destination left untranslated?
    pub fn is_excluded(&self, destination: u32) -> bool {
        self.excluded.iter().any(|(address, mask)| destination & mask == *address)
    }

    /// The host that a mapping leads to; `draw` is a random number.
    pub fn backend(&self, mapping: &Mapping, remote: u32, draw: u64) -> (End, u32) {
        let (first, end) = (mapping.backends.0 as usize, mapping.backends.1 as usize);
        let backends = self.backends.get(first..end).unwrap_or_default();
        let total = backends.last().map_or(0, |last| last.up_to);
        if total == 0 {
            return (mapping.local, mapping.table);
        }
        let number = match mapping.is_sticky {
            true => u64::from(remote).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32,
            false => draw >> 32,
        };
        let drawn = ((number * u64::from(total)) >> 32) as u32;
        let at = backends.partition_point(|backend| backend.up_to <= drawn);
        backends.get(at).map_or((mapping.local, mapping.table), |b| (b.local, b.table))
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
    /// Outside, and what leaves by it is translated wherever it came from.
    pub output: bool,
}

/// All that nodes share.
pub(crate) struct Shared {
    /// The look-up table and the sessions, from the first `nat44 plugin enable` on.
    table: OnceLock<(Table, Arc<Objects>)>,
    /// Bindings, from the first option on that needs them.
    bindings: OnceLock<Readers>,
    /// B4s, from the first time on that DS-Lite was set up.
    softwires: OnceLock<Readers>,
    /// Live B4s; they have smaller numbers than the second one.
    pub b4s: AtomicUsize,
    pub b4_places: AtomicUsize,
    /// Bindings have smaller numbers than this.
    pub binding_places: AtomicUsize,
    /// Live bindings by kind.
    pub binding_counts: [AtomicUsize; 5],
    /// The most sessions since NAT44 was enabled.
    pub most_sessions: AtomicUsize,
    pub rules: Published<Rules>,
    /// Bit 0: inside, bit 1: outside, bit 2: output.
    sides: Box<[AtomicU32]>,
    timeouts_s: [AtomicU32; 5],
    /// 0: none.
    mss: AtomicU32,
    /// What the owner says of itself.
    sessions: AtomicUsize,
    /// Sessions have smaller numbers than this.
    pub places: AtomicUsize,
    /// Connections that helpers expect.
    expected: SharedExpected,
    pub algs: crate::alg::Shared,
    pub made: AtomicU64,
    pub expired: AtomicU64,
}

impl Shared {
    /// Nothing configured.
    pub fn new(epochs: &Arc<Epochs>) -> Shared {
        Shared {
            table: OnceLock::new(),
            bindings: OnceLock::new(),
            softwires: OnceLock::new(),
            b4s: AtomicUsize::new(0),
            b4_places: AtomicUsize::new(0),
            binding_places: AtomicUsize::new(0),
            binding_counts: Default::default(),
            most_sessions: AtomicUsize::new(0),
            rules: Published::new(epochs, Rules::default()),
            sides: (0..INTERFACES_MAX).map(|_| AtomicU32::new(0)).collect(),
            timeouts_s: TIMEOUTS_S.map(AtomicU32::new),
            mss: AtomicU32::new(0),
            sessions: AtomicUsize::new(0),
            places: AtomicUsize::new(0),
            expected: SharedExpected::new(),
            algs: crate::alg::Shared::default(),
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

    /// The bindings, if an option needs them.
    pub fn bindings(&self) -> Option<&Readers> {
        self.bindings.get()
    }

    /// Let everybody read bindings there (control thread).
    pub fn set_bindings(&self, readers: Readers) {
        let _ = self.bindings.set(readers);
    }

    /// The B4s, if DS-Lite was ever set up.
    #[inline(always)]
    pub fn softwires(&self) -> Option<&Readers> {
        self.softwires.get()
    }

    /// Let everybody read B4s there (control thread).
    pub fn set_softwires(&self, readers: Readers) {
        let _ = self.softwires.set(readers);
    }

    /// The owner says how many B4s there are.
    pub fn note_softwires(&self, softwires: &Softwires) {
        self.b4s.store(softwires.writer.len(), Ordering::Relaxed);
        self.b4_places.store(softwires.writer.places(), Ordering::Relaxed);
    }

    /// The connections that helpers expect, once NAT44 was enabled.
    pub fn expected(&self) -> Option<&Readers> {
        self.expected.get()
    }

    /// Let everybody look expected connections up there (control thread).
    pub fn set_expected(&self, readers: Readers) {
        let _ = self.expected.set(readers);
    }

    /// The owner says what bindings there are.
    pub fn note_bindings(&self, bindings: &crate::bindings::Bindings) {
        self.binding_places.store(bindings.writer.places(), Ordering::Relaxed);
        for kind in crate::bindings::Kind::ALL {
            let count = bindings.count(kind);
            self.binding_counts[kind as usize].store(count, Ordering::Relaxed);
        }
    }

    /// The owner says how many sessions there are.
    pub fn note_sessions(&self, writer: &Writer) {
        if writer.len() > self.most_sessions.load(Ordering::Relaxed) {
            self.most_sessions.store(writer.len(), Ordering::Relaxed);
        }
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
            let word = u32::from(sides.inside)
                | u32::from(sides.outside) << 1
                | u32::from(sides.output) << 2;
            place.store(word, Ordering::Release);
        }
    }

    #[inline(always)]
    pub fn sides(&self, interface: InterfaceId) -> Sides {
        let word = self.sides.get(interface.index()).map_or(0, |s| s.load(Ordering::Acquire));
        Sides { inside: word & 1 != 0, outside: word & 2 != 0, output: word & 4 != 0 }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_in_the_block_that_its_index_says() {
        for size in [16, 63, 64, 256, 1024, 16_128, 64_512] {
            let blocks = Blocks { size, max: 1, timeout_s: 0 };
            for port in FIRST_PORT..=u16::MAX {
                let index = blocks.index_of(port);
                let first = blocks.first_port(index);
                assert!(index < blocks.per_address() && first <= port && port - first < size);
            }
        }
    }

    #[test]
    fn back_ends_are_drawn_by_their_shares() {
        let end = |port| End { address: 1, port };
        let backend = |port, up_to| Backend { local: end(port), table: 0, up_to };
        let rules = Rules { backends: vec![backend(1, 3), backend(2, 4)], ..Rules::default() };
        let mapping = Mapping {
            local: end(1),
            external: end(9),
            table: 0,
            twice: TwiceNat::Never,
            exact: 0,
            out2in_only: false,
            backends: (0, 2),
            is_sticky: false,
        };
        let draws = (0..1000u64).map(|n| n * (u64::MAX / 1000));
        let first = draws.filter(|draw| rules.backend(&mapping, 7, *draw).0.port == 1).count();
        assert!((740..=760).contains(&first), "{first}");
    }
}
