//! Routes that the operator configures become Linux's where their interfaces have twins, so that
//! daemons there can redistribute them and programs there can use them.
//!
//! Once a turn of the control loop a bounded number of routes is compared with what Linux was
//! told. The thread that reads netlink writes the differences; when many wait for it, the next
//! turn goes on.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{
    Family, Fib, Path, RECURSION_MAX, RoutePlace, RouteView, RouteWatcher, Source, TakenChanges,
    Target,
};
use quiver_netlink::route::{NewHop, RouteKind};
use quiver_tables::prefix::IpPrefix;

use crate::mirror::{Mirror, Namespace};
use crate::own_neighbours::{self, OwnNeighbours};
use crate::reader::{OwnChange, OwnRoute, RouteKey};
use crate::{routes, tables};

/// Routes that are looked at in a turn.
const LOOKS_MAX: usize = 4096;
/// Winning routes that a walk over tables passes in a turn.
const PASSED_MAX: usize = 16_384;
/// Changes that may wait for a thread before no more are made.
pub(crate) const WAITING_MAX: u64 = 8_192;
/// When there is more to do, the next turn comes after this time.
const NEXT_TURN_NS: u64 = 2_000_000;
/// Routes by next hops without an interface are resolved again so often at most.
const RESOLVE_PAUSE_NS: u64 = 1_000_000_000;
/// Shares of hops that Linux can have (`rtnh_hops`).
const WEIGHT_MAX: u32 = 256;

/// A walk over all tables.
struct Walk {
    tables: Vec<(Family, u32)>,
    after: Option<IpPrefix>,
}

/// What one namespace was told.
type Written = HashMap<RoutePlace, (RouteKey, Arc<OwnRoute>)>;

/// What Linux was told, and what is to be compared.
#[derive(Default)]
pub(crate) struct OwnRoutes {
    is_watching: bool,
    is_dirty: bool,
    walk: Option<Walk>,
    queue: VecDeque<RoutePlace>,
    written: BTreeMap<Namespace, Written>,
    /// Routes with next hops that other routes lead to.
    recursive: HashSet<RoutePlace>,
    /// The stores of the FIB when they were resolved, and the time.
    resolved: (u64, u64),
    /// Routes that Linux cannot have: no hop of theirs has a twin.
    left_out: HashSet<RoutePlace>,
    /// Neighbours that Linux was given.
    pub neighbours: OwnNeighbours,
    /// When the timer of the next turn is due.
    wakes_ns: u64,
}

impl OwnRoutes {
    /// Something changed that any route may depend on: a pair, a link, a table.
    pub fn compare_all(&mut self) {
        self.is_dirty = true;
        self.neighbours.compare_all();
    }

    /// How many routes a namespace was told.
    pub fn written(&self, namespace: &Namespace) -> usize {
        self.written.get(namespace).map_or(0, HashMap::len)
    }

    /// How many routes Linux cannot have.
    pub fn left_out(&self) -> usize {
        self.left_out.len()
    }

    /// Nothing is followed in a namespace any more: what takes its routes away.
    pub fn withdraw(&mut self, namespace: &Namespace) -> Vec<OwnChange> {
        let written = self.written.remove(namespace).unwrap_or_default();
        written.into_values().map(|(key, _)| OwnChange::Route(key, None)).collect()
    }

    /// Have the control loop turn in a while, whatever else happens; one timer is enough.
    fn wake(&mut self, engine: &mut Engine, pause_ns: u64) {
        let now_ns = engine.now_ns();
        let at_ns = now_ns + pause_ns;
        if self.wakes_ns <= now_ns || at_ns < self.wakes_ns {
            self.wakes_ns = at_ns;
            engine.after(pause_ns, |_| ()); // the turn itself does what is to be done
        }
    }

    fn begin_walk(&mut self, fib: &Fib) {
        let of = |family: Family| fib.tables(family).into_iter().map(move |(_, at)| (family, at));
        let tables = of(Family::Ip4).chain(of(Family::Ip6)).collect();
        self.walk = Some(Walk { tables, after: None });
        let known: HashSet<RoutePlace> =
            self.written.values().flat_map(|written| written.keys().copied()).collect();
        self.queue = known.into_iter().collect();
        self.recursive.clear();
        self.left_out.clear();
    }

    /// Queue the configured routes that come next in the walk.
    fn walk_on(&mut self, fib: &Fib) {
        let Some(walk) = &mut self.walk else { return };
        let mut passed = 0;
        while let Some((family, table)) = walk.tables.last().copied() {
            let mut is_whole = true;
            for best in fib.routes(family, table, walk.after) {
                passed += 1;
                walk.after = Some(best.prefix);
                if best.source == Source::Static {
                    self.queue.push_back(RoutePlace { table, prefix: best.prefix });
                }
                if passed >= PASSED_MAX {
                    is_whole = false;
                    break;
                }
            }
            if !is_whole {
                return;
            }
            walk.tables.pop();
            walk.after = None;
        }
        self.walk = None;
    }

    fn take_changes(&mut self, fib: &mut Fib) {
        match fib.take_route_changes(RouteWatcher::Configured, usize::MAX) {
            TakenChanges::Any => self.is_dirty = true,
            TakenChanges::These(places) => self.queue.extend(places),
        }
    }

    /// Queue routes by next hops that are resolved, when routes changed; the pause until then.
    fn resolve_again(&mut self, fib: &Fib, now_ns: u64) -> Option<u64> {
        let stores = fib.stores().prefixes;
        if self.recursive.is_empty() || self.resolved.0 == stores {
            return None;
        }
        let since_ns = now_ns.saturating_sub(self.resolved.1);
        if since_ns < RESOLVE_PAUSE_NS {
            return Some(RESOLVE_PAUSE_NS - since_ns);
        }
        self.resolved = (stores, now_ns);
        self.queue.extend(self.recursive.iter().copied());
        None
    }
}

/// A namespace as routes see it.
struct View<'m> {
    namespace: &'m Namespace,
    /// The tables that Linux's main table is there.
    main_tables: [u32; 2],
    /// Those of the other namespaces, by family.
    others: [HashSet<u32>; 2],
    mirror: &'m Mirror,
}

/// All namespaces with twins. What each needs is collected once for all routes of a turn.
fn views<'m>(mirror: &'m Mirror, main_tables: &'m [(Namespace, [u32; 2])]) -> Vec<View<'m>> {
    let view = |(namespace, main): &'m (Namespace, [u32; 2])| {
        let others = main_tables.iter().filter(|(of, _)| of != namespace);
        let others = [0, 1].map(|side| others.clone().map(|(_, main)| main[side]).collect());
        View { namespace, main_tables: *main, others, mirror }
    };
    main_tables.iter().map(view).collect()
}

impl View<'_> {
    /// The number of a table in Linux; none when Linux has no such table.
    fn table(&self, family: Family, id: u32) -> Option<u32> {
        let side = family as usize;
        match id {
            id if id == self.main_tables[side] => Some(routes::MAIN_TABLE),
            id if self.others[side].contains(&id) => None,
            0 | routes::DEFAULT_TABLE..=routes::LOCAL_TABLE => None,
            id => Some(id),
        }
    }

    /// The hop by an interface, when it has a twin there that is up.
    fn hop(&self, gateway: Option<IpAddr>, on: InterfaceId, weight: u32) -> Option<NewHop> {
        let pair = self.mirror.pairs.get(&on).filter(|pair| pair.namespace == *self.namespace)?;
        let link = pair.link.filter(|_| pair.linux.is_some_and(|(is_up, _)| is_up))?;
        Some(NewHop { gateway, link, weight: weight.clamp(1, WEIGHT_MAX) as u16 })
    }

    fn route(&self, of: &[Leading]) -> Option<OwnRoute> {
        let hop = |leading: &Leading| match leading {
            Leading::To(gateway, on, weight) => self.hop(*gateway, *on, *weight),
            Leading::Drop(_) => None,
        };
        let mut hops: Vec<NewHop> = Vec::new();
        for new in of.iter().filter_map(hop) {
            // Linux refuses a hop that is there twice.
            match hops.iter_mut().find(|old| (old.gateway, old.link) == (new.gateway, new.link)) {
                Some(old) => old.weight = (old.weight + new.weight).min(WEIGHT_MAX as u16),
                None => hops.push(new),
            }
        }
        if !hops.is_empty() {
            return Some(OwnRoute::Hops(hops));
        }
        of.iter().find_map(|leading| match leading {
            Leading::Drop(kind) => Some(OwnRoute::Drop(*kind)),
            Leading::To(..) => None,
        })
    }
}

/// Where a path leads in the end.
#[derive(Clone, Copy, Debug)]
enum Leading {
    To(Option<IpAddr>, InterfaceId, u32),
    Drop(RouteKind),
}

/// Where the paths of a route lead: those of the lowest preference.
fn leading_of(fib: &Fib, view: &RouteView<'_>, table: u32) -> (Vec<Leading>, bool) {
    let lowest = view.paths.iter().map(|path| path.preference).min().unwrap_or(0);
    let (mut all, mut is_recursive) = (Vec::new(), false);
    for path in view.paths.iter().filter(|path| path.preference == lowest) {
        is_recursive |= matches!(path.target, Target::Via { interface: None, .. });
        lead(fib, path, table, None, RECURSION_MAX, &mut all);
    }
    (all, is_recursive)
}

/// Where a path leads; with `to`, it is the path of a route to that next hop.
fn lead(
    fib: &Fib,
    path: &Path,
    table: u32,
    to: Option<(IpAddr, u32)>,
    depth: usize,
    all: &mut Vec<Leading>,
) {
    let weight = to.map_or(path.weight, |(_, weight)| weight);
    match path.target {
        Target::Via { next_hop, interface: Some(on) } => {
            all.push(Leading::To(Some(next_hop), on, weight));
        }
        Target::Via { next_hop, interface: None } if depth > 0 => {
            let Some(found) = fib.best_route(table, next_hop) else { return };
            for path in found.paths {
                lead(fib, path, table, Some((next_hop, weight)), depth - 1, all);
            }
        }
        Target::Neighbour { address, interface } => {
            all.push(Leading::To(Some(address), interface, weight));
        }
        Target::Attached(on) => all.push(Leading::To(to.map(|(next_hop, _)| next_hop), on, weight)),
        Target::NextHopObject(id) if depth > 0 => {
            for path in fib.next_hop_object(id) {
                lead(fib, path, table, to, depth - 1, all);
            }
        }
        Target::Drop if to.is_none() => all.push(Leading::Drop(RouteKind::Blackhole)),
        Target::Unreachable if to.is_none() => all.push(Leading::Drop(RouteKind::Unreachable)),
        Target::Prohibit if to.is_none() => all.push(Leading::Drop(RouteKind::Prohibit)),
        _ => {}
    }
}

/// Once a turn of the control loop: have Linux follow what has changed here.
pub(crate) fn update_linux(engine: &mut Engine) {
    let is_idle = engine.get::<Mirror>().is_none_or(|mirror| {
        mirror.pairs.is_empty() && !mirror.own.is_watching && mirror.own.written.is_empty()
    });
    if is_idle {
        return;
    }
    engine.with(|engine, mirror: &mut Mirror| {
        let mut own = std::mem::take(&mut mirror.own);
        let more_in_ns = compare(engine, mirror, &mut own);
        let looks_in_ns = own_neighbours::update(engine, mirror, &mut own.neighbours);
        for pause_ns in [more_in_ns, looks_in_ns].into_iter().flatten() {
            own.wake(engine, pause_ns);
        }
        mirror.own = own;
    });
}

/// Compare some routes with what Linux was told. Returns when there is more to do.
fn compare(engine: &mut Engine, mirror: &mut Mirror, own: &mut OwnRoutes) -> Option<u64> {
    let now_ns = engine.now_ns();
    let is_wanted = mirror.updates_linux && !mirror.pairs.is_empty();
    let main_tables: Vec<(Namespace, [u32; 2])> = mirror
        .followed
        .keys()
        .filter_map(|of| Some((of.clone(), tables::main_tables(engine, mirror, of)?)))
        .collect();
    let fib = engine.get_mut::<Fib>()?;
    if own.is_watching != is_wanted {
        fib.watch_route_changes(RouteWatcher::Configured, is_wanted);
        own.is_watching = is_wanted;
        own.neighbours.compare_all();
    }
    if !is_wanted {
        withdraw_all(mirror, own);
        return None;
    }
    own.take_changes(fib);
    if std::mem::take(&mut own.is_dirty) {
        own.begin_walk(fib);
    }
    let waits = mirror.followed.values().any(|f| f.kernel.reader.own_waiting() > WAITING_MAX);
    if waits {
        return Some(NEXT_TURN_NS);
    }
    let pause_ns = own.resolve_again(fib, now_ns);
    if own.queue.is_empty() {
        own.walk_on(fib);
    }
    let places: Vec<RoutePlace> = own.queue.drain(..own.queue.len().min(LOOKS_MAX)).collect();
    let mut changes: BTreeMap<Namespace, Vec<OwnChange>> = BTreeMap::new();
    let views = views(mirror, &main_tables);
    for place in places {
        look_at(fib, &views, own, place, &mut changes);
    }
    for (namespace, changes) in changes {
        mirror.write(&namespace, changes);
    }
    let is_more = !own.queue.is_empty() || own.walk.is_some();
    if is_more { Some(NEXT_TURN_NS) } else { pause_ns }
}

/// Have each namespace with a twin follow one route.
fn look_at(
    fib: &Fib,
    views: &[View<'_>],
    own: &mut OwnRoutes,
    place: RoutePlace,
    changes: &mut BTreeMap<Namespace, Vec<OwnChange>>,
) {
    let family = place.family();
    let known = fib.route(place.table, place.prefix);
    let best = known.first().filter(|view| view.source == Source::Static);
    let id = fib.table_id(family, place.table);
    let (leading, is_recursive) =
        best.map(|view| leading_of(fib, view, place.table)).unwrap_or_default();
    match is_recursive {
        true => own.recursive.insert(place),
        false => own.recursive.remove(&place),
    };
    let mut is_anywhere = false;
    for view in views {
        let namespace = view.namespace;
        let table = id.and_then(|id| view.table(family, id));
        let wanted = table
            .zip(view.route(&leading))
            .map(|(table, route)| (RouteKey { table, prefix: place.prefix }, Arc::new(route)));
        is_anywhere |= wanted.is_some();
        let before = own.written.get(namespace).and_then(|written| written.get(&place));
        if before == wanted.as_ref() {
            continue;
        }
        let written = own.written.entry(namespace.clone()).or_default();
        let changes = changes.entry(namespace.clone()).or_default();
        let before = written.remove(&place);
        if let Some((key, _)) =
            before.filter(|(key, _)| wanted.as_ref().is_none_or(|w| w.0 != *key))
        {
            changes.push(OwnChange::Route(key, None));
        }
        if let Some((key, route)) = wanted {
            written.insert(place, (key, route.clone()));
            changes.push(OwnChange::Route(key, Some(route)));
        }
    }
    match best.is_some() && !is_anywhere {
        true => own.left_out.insert(place),
        false => own.left_out.remove(&place),
    };
}

/// Linux follows the router no more: its routes go.
fn withdraw_all(mirror: &Mirror, own: &mut OwnRoutes) {
    let namespaces: Vec<Namespace> = own.written.keys().cloned().collect();
    for namespace in namespaces {
        let changes = own.withdraw(&namespace);
        mirror.write(&namespace, changes);
    }
    (own.queue, own.walk) = (VecDeque::new(), None);
    own.recursive.clear();
    own.left_out.clear();
}
