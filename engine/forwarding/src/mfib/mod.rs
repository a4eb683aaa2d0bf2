//! Multicast routes: (S,G), (\*,G) and (\*,G/length), each with interfaces that packets may come
//! from and interfaces that get a copy.
//!
//! ```text
//! source, group ──► number ──► entry: accept, outputs, counts     what workers follow
//!        │                       │
//!      route               interfaces of the FIB                  what this module keeps
//! ```
//!
//! One exact-match table holds all families, tables and lengths. Entries are published in chunks: a
//! change copies one chunk, whatever the number of routes. A refused change changes nothing.

mod entry;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Bound;
use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_core::memory::epoch::Epochs;

pub use entry::{Entry, Output, RouteCounts, RouteTotals};
pub use view::MfibTables;

use crate::adjacency::REWRITE_BYTES_MAX;
use crate::fib::{Family, Fib, by_table};
use quiver_tables::exact::{ExactError, Limits, LongWriter, Objects, ObjectsWriter, Seed};
use quiver_tables::memory::MemoryError;
use view::{
    CHUNK_ENTRIES, CHUNKS, Chunk, KEY_WORDS, OBJECT_WORDS, Shape, key, masked, place_word,
    shape_place,
};

/// Multicast routes of all tables and families at most.
pub const ROUTES_MAX: usize = 65_536;
/// Interfaces that get a copy of one packet at most.
pub const OUTPUTS_MAX: usize = 256;

const LIMITS: Limits = Limits {
    what: "table of multicast routes",
    entries_max: ROUTES_MAX,
    remedy: "use prefixes of groups (ip mroute add 232.1.0.0/16 …)",
};

/// Which packets a route is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RouteKey {
    /// The family.
    pub family: Family,
    /// The small number of the table.
    pub table: u32,
    /// The group, without bits behind the length.
    pub group: IpAddr,
    /// Bits of the group that count.
    pub length: u8,
    /// The source, when the route is for one; then the length is the family's width.
    pub source: Option<IpAddr>,
}

impl RouteKey {
    /// The least key of a table of a family, and the one behind its last.
    fn ends((family, table): (Family, u32)) -> (RouteKey, RouteKey) {
        let group = match family {
            Family::Ip4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::Ip6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let least = |table| RouteKey { family, table, group, length: 0, source: None };
        (least(table), least(table.saturating_add(1)))
    }

    /// The family's bits.
    fn width(family: Family) -> u8 {
        match family {
            Family::Ip4 => 32,
            Family::Ip6 => 128,
        }
    }

    /// The route for a group or a prefix of groups, and a source perhaps. `None` when it is no
    /// group, group and source are of different families, a length does not suit, or bits are set
    /// behind it.
    pub fn new(table: u32, source: Option<IpAddr>, group: IpAddr, length: u8) -> Option<RouteKey> {
        let family = Family::of(group);
        let width = RouteKey::width(family);
        let is_group = match group {
            IpAddr::V4(group) => group.is_multicast() && length >= 4,
            IpAddr::V6(group) => group.is_multicast() && length >= 8,
        };
        let fits = is_group && length <= width && masked(bits(group), length, width) == bits(group);
        let source_fits =
            source.is_none_or(|source| Family::of(source) == family && length == width);
        (fits && source_fits).then_some(RouteKey { family, table, group, length, source })
    }

    fn words(&self) -> [u64; KEY_WORDS] {
        let six = self.family == Family::Ip6;
        let place = place_word(six, self.table, self.length, self.source.is_some());
        key(place, self.source.map_or(0, bits), bits(self.group))
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// What the operator says of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Packets may come in here.
    pub accept: BTreeSet<InterfaceId>,
    /// Copies go out here, of packets with a TTL or hop limit above the threshold.
    pub forward: BTreeMap<InterfaceId, u8>,
    /// The router itself gets a copy.
    pub local: bool,
    /// Packets may come in anywhere.
    pub accept_all: bool,
    /// The control thread hears of packets.
    pub signal: bool,
    /// Packets are dropped here.
    pub drop: bool,
}

impl Route {
    /// Does it say nothing?
    pub fn is_empty(&self) -> bool {
        *self == Route::default()
    }

    fn interfaces(&self) -> impl Iterator<Item = InterfaceId> {
        self.accept.iter().chain(self.forward.keys()).copied()
    }

    /// What this route and another say together. Where both forward to an interface, this one's
    /// threshold holds.
    fn with(&self, other: &Route) -> Route {
        let mut both = self.clone();
        both.accept.extend(&other.accept);
        for (id, threshold) in &other.forward {
            both.forward.entry(*id).or_insert(*threshold);
        }
        both.local |= other.local;
        both.accept_all |= other.accept_all;
        both.signal |= other.signal;
        both.drop |= other.drop;
        both
    }
}

/// Why a route is refused. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MfibError {
    /// Too many copies.
    #[error("{0} interfaces would get a copy; at most {OUTPUTS_MAX} can")]
    OutputsMax(usize),
    /// It is not there.
    #[error("there is no such multicast route")]
    NoRoute,
    /// The table is full.
    #[error(transparent)]
    Table(#[from] ExactError),
}

/// How many routes of a table have a source, and which length.
#[derive(Default)]
struct Census {
    sources: usize,
    lengths: BTreeMap<u8, usize>,
}

struct Record {
    number: u32,
    /// What the operator says.
    route: Route,
    /// What a protocol learned; packets follow both.
    learned: Route,
    counts: Arc<RouteCounts>,
}

/// The multicast routes of the router. One, on the control thread.
pub struct Mfib {
    tables: Arc<MfibTables>,
    book: BTreeMap<RouteKey, Record>,
    by_interface: BTreeMap<InterfaceId, BTreeSet<RouteKey>>,
    objects: ObjectsWriter<OBJECT_WORDS>,
    writer: LongWriter<Objects<OBJECT_WORDS>, KEY_WORDS>,
    chunks: Vec<Chunk>,
    /// By place of a table's shape.
    census: BTreeMap<usize, Census>,
    shapes: Vec<Shape>,
    /// Tables that the FIB keeps for us.
    held: BTreeSet<(Family, u32)>,
    workers: usize,
}

impl Mfib {
    /// No routes, for so many workers.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>, workers: usize) -> Result<Mfib, MemoryError> {
        let objects = ObjectsWriter::new(epochs, LIMITS)?;
        let writer = LongWriter::new(epochs, LIMITS, Seed::random(), objects.objects().clone())?;
        let tables = Arc::new(MfibTables::new(epochs, writer.table()));
        Ok(Mfib {
            tables,
            book: BTreeMap::new(),
            by_interface: BTreeMap::new(),
            objects,
            writer,
            chunks: vec![Chunk::new(); CHUNKS],
            census: BTreeMap::new(),
            shapes: Vec::new(),
            held: BTreeSet::new(),
            workers,
        })
    }

    /// The workers' side.
    pub fn tables(&self) -> &Arc<MfibTables> {
        &self.tables
    }

    /// Routes in all tables.
    pub fn len(&self) -> usize {
        self.book.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.book.is_empty()
    }

    /// Bytes really in memory.
    pub fn resident_bytes(&self) -> usize {
        self.objects.objects().resident_bytes() + self.writer.usage().resident_bytes
    }

    /// What a route says.
    pub fn get(&self, key: &RouteKey) -> Option<&Route> {
        self.book.get(key).map(|record| &record.route).filter(|route| !route.is_empty())
    }

    /// Routes of operators behind one, or from the first, the tables in this order: a long list can
    /// pause.
    pub fn after_by_table(
        &self,
        tables: Vec<(Family, u32)>,
        last: Option<RouteKey>,
    ) -> impl Iterator<Item = (&RouteKey, &Route)> {
        by_table(&self.book, tables, RouteKey::ends, |key| (key.family, key.table), last)
            .map(|(key, record)| (key, &record.route))
            .filter(|(_, route)| !route.is_empty())
    }

    fn behind(&self, last: Option<RouteKey>) -> impl Iterator<Item = (&RouteKey, &Record)> {
        self.book.range((last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }

    /// All routes of operators in order.
    pub fn iter(&self) -> impl Iterator<Item = (&RouteKey, &Route)> {
        self.book
            .iter()
            .map(|(key, record)| (key, &record.route))
            .filter(|(_, route)| !route.is_empty())
    }

    /// All routes in order: what packets follow, whether a protocol learned a part of it, and what
    /// was counted.
    pub fn iter_all(&self) -> impl Iterator<Item = (&RouteKey, Route, bool, RouteTotals)> {
        self.all_after(None)
    }

    /// The same behind one of them.
    pub fn all_after(
        &self,
        last: Option<RouteKey>,
    ) -> impl Iterator<Item = (&RouteKey, Route, bool, RouteTotals)> {
        self.behind(last).map(|(key, record)| {
            let learned = !record.learned.is_empty();
            (key, record.route.with(&record.learned), learned, record.counts.totals())
        })
    }

    /// Keep the tables that have routes from being deleted, in `holder`'s name, and let go of the
    /// others.
    pub fn hold_tables(&mut self, fib: &mut Fib, holder: &'static str) {
        let used = self
            .census
            .iter()
            .filter(|(_, census)| census.sources > 0 || !census.lengths.is_empty());
        let used: BTreeSet<_> = used
            .map(|(place, _)| {
                (if place & 1 == 1 { Family::Ip6 } else { Family::Ip4 }, (place >> 1) as u32)
            })
            .collect();
        used.difference(&self.held)
            .for_each(|(family, table)| fib.hold_table(*family, *table, holder));
        self.held
            .difference(&used)
            .for_each(|(family, table)| fib.release_table(*family, *table, holder));
        self.held = used;
    }

    /// Let a route say this, whether or not it was there.
    ///
    /// # Errors
    /// Too many interfaces would get a copy, or the table is full.
    pub fn set(&mut self, key: RouteKey, route: Route, fib: &Fib) -> Result<(), MfibError> {
        let learned = self.book.get(&key).map(|record| record.learned.clone()).unwrap_or_default();
        self.put(key, route, learned, fib)
    }

    /// Let a route say this too, because a protocol learned it; nothing ends it. What the operator
    /// says of the route stays.
    ///
    /// # Errors
    /// As for [`set`](Self::set).
    pub fn set_learned(
        &mut self,
        key: RouteKey,
        learned: Route,
        fib: &Fib,
    ) -> Result<(), MfibError> {
        let route = self.book.get(&key).map(|record| record.route.clone()).unwrap_or_default();
        self.put(key, route, learned, fib)
    }

    fn put(
        &mut self,
        key: RouteKey,
        route: Route,
        learned: Route,
        fib: &Fib,
    ) -> Result<(), MfibError> {
        let outputs = route.with(&learned).forward.len();
        if outputs > OUTPUTS_MAX {
            return Err(MfibError::OutputsMax(outputs));
        }
        if route.is_empty() && learned.is_empty() {
            return if self.book.contains_key(&key) { self.take_away(&key) } else { Ok(()) };
        }
        if let Some(record) = self.book.get_mut(&key) {
            let before = record.route.with(&record.learned);
            (record.route, record.learned) = (route, learned);
            before.interfaces().for_each(|id| self.unlink(id, &key));
            self.link(&key);
            self.write(&key, fib);
            return Ok(());
        }
        let mut content = [0; OBJECT_WORDS];
        content[..KEY_WORDS].copy_from_slice(&key.words());
        let number = self.objects.take(content)?;
        let counts = Arc::new(RouteCounts::new(self.workers));
        self.book.insert(key, Record { number, route, learned, counts });
        self.write(&key, fib);
        if let Err(error) = self.writer.insert(number) {
            self.book.remove(&key);
            self.publish(number, None);
            self.objects.retire(number);
            return Err(error.into());
        }
        self.link(&key);
        self.count(&key, true);
        Ok(())
    }

    /// Take away what the operator says of a route.
    ///
    /// # Errors
    /// There is no such route.
    pub fn remove(&mut self, key: &RouteKey, fib: &Fib) -> Result<(), MfibError> {
        self.get(key).ok_or(MfibError::NoRoute)?;
        self.set(*key, Route::default(), fib)
    }

    fn take_away(&mut self, key: &RouteKey) -> Result<(), MfibError> {
        let record = self.book.remove(key).ok_or(MfibError::NoRoute)?;
        record.route.with(&record.learned).interfaces().for_each(|id| self.unlink(id, key));
        self.writer.remove(&key.words());
        self.publish(record.number, None);
        self.objects.retire(record.number);
        self.count(key, false);
        Ok(())
    }

    /// An interface is not as it was: what its routes say of it is written anew.
    pub fn refresh(&mut self, id: InterfaceId, fib: &Fib) {
        let keys: Vec<_> = self.by_interface.get(&id).into_iter().flatten().copied().collect();
        keys.iter().for_each(|key| self.write(key, fib));
    }

    /// An interface is gone; routes that say nothing else go with it.
    pub fn forget(&mut self, id: InterfaceId, fib: &Fib) {
        for key in self.by_interface.remove(&id).unwrap_or_default() {
            let Some(record) = self.book.get_mut(&key) else { continue };
            for route in [&mut record.route, &mut record.learned] {
                route.accept.remove(&id);
                route.forward.remove(&id);
            }
            if record.route.is_empty() && record.learned.is_empty() {
                let _ = self.take_away(&key); // it was there just now
            } else {
                self.write(&key, fib);
            }
        }
    }

    /// Use again what no worker sees any more. The control thread calls this now and then.
    pub fn collect(&mut self) {
        self.objects.collect();
        self.writer.collect();
    }

    fn link(&mut self, key: &RouteKey) {
        let Some(record) = self.book.get(key) else { return };
        for id in record.route.with(&record.learned).interfaces() {
            self.by_interface.entry(id).or_default().insert(*key);
        }
    }

    fn unlink(&mut self, id: InterfaceId, key: &RouteKey) {
        if let Some(keys) = self.by_interface.get_mut(&id) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_interface.remove(&id);
            }
        }
    }

    /// Publish what a route says now.
    fn write(&mut self, key: &RouteKey, fib: &Fib) {
        let Some(record) = self.book.get(key) else { return };
        let route = &record.route.with(&record.learned);
        let output = |(id, threshold): (&InterfaceId, &u8)| output(fib, *id, *threshold, key.group);
        let entry = Entry {
            accept: route.accept.iter().copied().collect(),
            accept_all: route.accept_all,
            local: route.local,
            drop: route.drop,
            signal: route.signal,
            outputs: route.forward.iter().filter_map(output).collect(),
            counts: record.counts.clone(),
        };
        self.publish(record.number, Some(Arc::new(entry)));
    }

    fn publish(&mut self, number: u32, entry: Option<Arc<Entry>>) {
        let (chunk, place) = (number as usize / CHUNK_ENTRIES, number as usize % CHUNK_ENTRIES);
        let entries = &mut self.chunks[chunk];
        if entries.len() <= place {
            entries.resize(place + 1, None);
        }
        entries[place] = entry;
        self.tables.chunks[chunk].publish(entries.clone());
    }

    /// One route more, or fewer: see that workers know which lengths there are in its table.
    fn count(&mut self, key: &RouteKey, more: bool) {
        let place = shape_place(key.family == Family::Ip6, key.table);
        let census = self.census.entry(place).or_default();
        let counted = match key.source {
            Some(_) => &mut census.sources,
            None => census.lengths.entry(key.length).or_default(),
        };
        *counted = if more { *counted + 1 } else { counted.saturating_sub(1) };
        census.lengths.retain(|_, count| *count > 0);
        let lengths = census.lengths.keys().fold(0, |all, length| all | 1 << (length - 1));
        let shape = Shape { lengths, sources: census.sources > 0 };
        if self.shapes.len() <= place {
            self.shapes.resize(place + 1, Shape::default());
        }
        if self.shapes[place] != shape {
            self.shapes[place] = shape;
            self.tables.shapes.publish(self.shapes.clone());
        }
    }
}

/// How copies leave by an interface; `None` while it cannot send.
fn output(fib: &Fib, id: InterfaceId, ttl_threshold: u8, group: IpAddr) -> Option<Output> {
    let info = fib.interface(id).filter(|info| info.up)?;
    let bytes = info.header_to_group(group);
    let mut header = [0; REWRITE_BYTES_MAX];
    let start = REWRITE_BYTES_MAX.checked_sub(bytes.len())?;
    header[start..].copy_from_slice(&bytes);
    Some(Output {
        tx: id,
        output: info.output,
        mtu_bytes: info.mtu_of(Family::of(group)),
        ttl_threshold,
        header_len: bytes.len() as u8,
        header,
    })
}
