//! Linux's routes become routes of the FIB, many in one pass.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{
    Change, Family, Fib, FibError, NextHopObjectId, Path, RouteChange, SeriesRefused, Source,
    Target,
};
use quiver_netlink::route::RouteKind;
use quiver_tables::prefix::{Address, IpPrefix};

use crate::reader::{Hop, Object, ObjectHops, RouteKey, RouteValue};
use crate::segments::{self, Holds};

/// Linux's main table (`RT_TABLE_MAIN`).
pub(crate) const MAIN_TABLE: u32 = 254;
/// Linux's default table, which nothing uses (`RT_TABLE_DEFAULT`).
pub(crate) const DEFAULT_TABLE: u32 = 253;
/// Linux's table of local addresses (`RT_TABLE_LOCAL`).
pub(crate) const LOCAL_TABLE: u32 = 255;
/// The largest share of a path.
const WEIGHT_MAX: u32 = 65_536;

/// What became of routes, for `show lcp sync`.
#[derive(Debug, Default)]
pub(crate) struct RouteCounts {
    /// Given to the FIB.
    pub given: u64,
    /// Taken from it.
    pub removed: u64,
    /// Left out: none of their links has a twin.
    pub elsewhere: u64,
    /// Left out: they put something around packets that is not followed.
    pub encapsulated: u64,
    /// Refused by the FIB.
    pub refused: u64,
    /// Why the last one was refused.
    pub last_refusal: Option<String>,
}

/// What routes of a namespace mean here.
pub(crate) struct Meaning<'a> {
    /// The interface of a link.
    pub interface: &'a dyn Fn(u32) -> Option<InterfaceId>,
    /// The hops of a next-hop object.
    pub object: &'a dyn Fn(u32) -> ObjectHops,
    /// Whose objects they are in the FIB.
    pub owner: u32,
    /// The IDs of the tables that Linux's main table is here.
    pub main_tables: [u32; 2],
    /// Who they come from, for the FIB.
    pub source: Source,
    /// Has anything there a twin?
    pub is_followed: bool,
}

/// Where the paths of a route lead, or why it is left out.
enum Paths {
    Are(Vec<Path>),
    Elsewhere,
}

impl Meaning<'_> {
    /// The path of a hop whose link has a twin.
    pub fn path(&self, gateway: Option<IpAddr>, link: u32, weight: u32) -> Option<Path> {
        path(self.interface, gateway, link, weight)
    }

    /// Does a route put something around packets, or is it a local SID?
    fn has_encap(&self, value: &RouteValue) -> bool {
        match value {
            RouteValue::Object(number) => has_encap(&(self.object)(*number)),
            other => other.has_encap(),
        }
    }

    /// The hops of a route, those of its next-hop object included.
    pub fn hops_of(&self, value: &RouteValue) -> Vec<Hop> {
        match value {
            RouteValue::Hops(hops) => hops.clone(),
            RouteValue::Drop(_) => Vec::new(),
            RouteValue::Object(number) => {
                let hop = |(object, weight): &(Object, u32)| match object {
                    Object::Hop { gateway, link, encap } => Some(Hop {
                        gateway: *gateway,
                        link: *link,
                        weight: *weight,
                        encap: encap.clone(),
                    }),
                    Object::Blackhole | Object::Group(_) => None,
                };
                (self.object)(*number).iter().filter_map(hop).collect()
            }
        }
    }

    fn paths(&self, value: &RouteValue) -> Paths {
        match value {
            _ if !self.is_followed => Paths::Elsewhere,
            RouteValue::Drop(kind) => Paths::Are(vec![Path::new(match kind {
                RouteKind::Unreachable => Target::Unreachable,
                RouteKind::Prohibit => Target::Prohibit,
                RouteKind::Blackhole | RouteKind::Unicast => Target::Drop,
            })]),
            RouteValue::Object(number) => {
                match object_paths(&(self.object)(*number), self.interface).is_empty() {
                    true => Paths::Elsewhere,
                    false => {
                        let id = NextHopObjectId { owner: self.owner, number: *number };
                        Paths::Are(vec![Path::new(Target::NextHopObject(id))])
                    }
                }
            }
            RouteValue::Hops(hops) => {
                let path = |hop: &Hop| self.path(hop.gateway, hop.link, hop.weight);
                let paths: Vec<Path> = hops.iter().filter_map(path).collect();
                match paths.is_empty() {
                    false => Paths::Are(paths),
                    true => Paths::Elsewhere,
                }
            }
        }
    }

    /// The ID of a table here.
    pub fn table(&self, key: &RouteKey) -> u32 {
        self.table_of(key.table, key.prefix.is_ip6())
    }

    /// The ID here of a table of Linux.
    pub fn table_of(&self, id: u32, is_ip6: bool) -> u32 {
        match id {
            MAIN_TABLE => self.main_tables[usize::from(is_ip6)],
            other => other,
        }
    }
}

/// The interface of a link.
type InterfaceOf<'a> = dyn Fn(u32) -> Option<InterfaceId> + 'a;

/// The share of a path.
pub(crate) fn share(weight: u32) -> u32 {
    weight.clamp(1, WEIGHT_MAX)
}

fn path(
    interface: &InterfaceOf<'_>,
    gateway: Option<IpAddr>,
    link: u32,
    weight: u32,
) -> Option<Path> {
    let on = interface(link)?;
    let path = match gateway {
        // An IPv4 next hop of IPv6 routes, as FRR calls it.
        Some(gateway) => Path::via(gateway.to_canonical(), Some(on)),
        None => Path::new(Target::Attached(on)),
    };
    Some(path.weight(share(weight)))
}

/// The paths of a next-hop object, as far as its links have twins and nothing is put around
/// packets.
pub(crate) fn object_paths(hops: &[(Object, u32)], interface: &InterfaceOf<'_>) -> Vec<Path> {
    let path = |(hop, weight): &(Object, u32)| match hop {
        Object::Blackhole => Some(Path::new(Target::Drop)),
        Object::Hop { encap: Some(_), .. } | Object::Group(_) => None,
        Object::Hop { gateway, link, .. } => path(interface, *gateway, *link, *weight),
    };
    hops.iter().filter_map(path).collect()
}

/// Does a hop of a next-hop object put something around packets?
pub(crate) fn has_encap(hops: &[(Object, u32)]) -> bool {
    hops.iter().any(|(hop, _)| matches!(hop, Object::Hop { encap: Some(_), .. }))
}

/// Changes of one table of one family.
struct Series<A: Address> {
    changes: Vec<RouteChange<A>>,
    path_sets: Vec<Vec<Path>>,
    /// The place of what a value says in the path sets; none when it is left out.
    known: HashMap<*const RouteValue, Option<u32>>,
}

impl<A: Address> Default for Series<A> {
    fn default() -> Self {
        Series { changes: Vec::new(), path_sets: Vec::new(), known: HashMap::new() }
    }
}

impl<A: Address> Series<A> {
    fn add(
        &mut self,
        prefix: quiver_tables::prefix::Prefix<A>,
        value: Option<&Arc<RouteValue>>,
        meaning: &Meaning<'_>,
        counts: &mut RouteCounts,
    ) {
        let (known, path_sets) = (&mut self.known, &mut self.path_sets);
        let set = value.and_then(|value| {
            *known.entry(Arc::as_ptr(value)).or_insert_with(|| match meaning.paths(value) {
                Paths::Are(paths) => {
                    path_sets.push(paths);
                    Some(path_sets.len() as u32 - 1)
                }
                Paths::Elsewhere => {
                    counts.elsewhere += 1;
                    None
                }
            })
        });
        let change = set.map_or(Change::RemoveIfThere, Change::Replace);
        match change {
            Change::RemoveIfThere => counts.removed += 1,
            _ => counts.given += 1,
        }
        self.changes.push(RouteChange { prefix, change });
    }

    /// Make the changes. A route that is refused goes: the old one is no more what Linux says.
    fn make(
        &self,
        counts: &mut RouteCounts,
        mut call: impl FnMut(&[Vec<Path>], &[RouteChange<A>]) -> Result<(), SeriesRefused>,
    ) {
        let Err(first) = call(&self.path_sets, &self.changes) else { return };
        let refuse = |counts: &mut RouteCounts, error: FibError| {
            counts.refused += 1;
            counts.last_refusal = Some(error.to_string());
        };
        let left = self.changes.get(first.at..).unwrap_or_default();
        for change in left {
            if let Err(refused) = call(&self.path_sets, &[*change]) {
                refuse(counts, refused.error);
                let gone = RouteChange { change: Change::RemoveIfThere, ..*change };
                let _ = call(&[], &[gone]); // what is not there cannot be refused
            }
        }
    }
}

/// The small number of a table, which is made when Linux has routes in it.
pub(crate) fn table_index(fib: &mut Fib, family: Family, id: u32) -> Result<u32, FibError> {
    match fib.table_index(family, id) {
        Some(index) => Ok(index),
        None => fib.add_table(family, id),
    }
}

/// Take over routes.
pub(crate) fn apply(
    engine: &mut Engine,
    routes: &[(RouteKey, Option<Arc<RouteValue>>)],
    meaning: &Meaning<'_>,
    holds: &mut Holds<'_>,
    counts: &mut RouteCounts,
) {
    let mut ip4: BTreeMap<u32, Series<u32>> = BTreeMap::new();
    let mut ip6: BTreeMap<u32, Series<u128>> = BTreeMap::new();
    for (key, value) in routes {
        let table = meaning.table(key);
        let has_encap = value.as_ref().is_some_and(|value| meaning.has_encap(value));
        if has_encap || holds.has(key, table, meaning.owner) {
            segments::take(engine, (key, value.as_deref()), meaning, holds, counts);
            continue;
        }
        match key.prefix {
            IpPrefix::V4(prefix) => {
                ip4.entry(table).or_default().add(prefix, value.as_ref(), meaning, counts);
            }
            IpPrefix::V6(prefix) => {
                ip6.entry(table).or_default().add(prefix, value.as_ref(), meaning, counts);
            }
        }
    }
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let mut refused = |error: FibError| {
        counts.refused += 1;
        counts.last_refusal = Some(error.to_string());
    };
    let mut made4 = Vec::new();
    for (id, series) in ip4 {
        match table_index(fib, Family::Ip4, id) {
            Ok(table) => made4.push((table, series)),
            Err(error) => refused(error),
        }
    }
    let mut made6 = Vec::new();
    for (id, series) in ip6 {
        match table_index(fib, Family::Ip6, id) {
            Ok(table) => made6.push((table, series)),
            Err(error) => refused(error),
        }
    }
    for (table, series) in made4 {
        series.make(counts, |sets, changes| {
            fib.change_ip4_routes(table, meaning.source, sets, changes)
        });
    }
    for (table, series) in made6 {
        series.make(counts, |sets, changes| {
            fib.change_ip6_routes(table, meaning.source, sets, changes)
        });
    }
}
