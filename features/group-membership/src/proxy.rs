//! Proxies (RFC 4605): one link is the upstream of others. What hosts of those listen to is
//! listened to upstream on their behalf, and packets are forwarded to the links that want them, and
//! from them to the upstream.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::mfib::{Mfib, Route, RouteKey};
use quiver_wire::ip4::address::ALL_HOSTS;
use quiver_wire::ip6::address::ALL_NODES;

use crate::group::Wanted;
use crate::port::Filter;
use crate::sender::{fit, publish};
use crate::state::{GROUPS_MAX, Membership, SOURCES_MAX};

/// Routes that one proxy makes at most: those of operators have room beside them.
pub const ROUTES_MAX: usize = 16_384;

/// A proxy: of one family, in one table.
#[derive(Clone, Debug, Default)]
pub struct Proxy {
    /// Where is listened on behalf of the others.
    pub upstream: Option<InterfaceId>,
    /// Links of hosts.
    pub downstream: BTreeSet<InterfaceId>,
    /// Routes that were learned.
    routes: BTreeSet<RouteKey>,
    /// Routes that could not be made.
    pub failed: u64,
}

/// All proxies, by family and the number of the table.
#[derive(Default)]
pub struct Proxies {
    /// By family and the number of the table.
    pub map: BTreeMap<(Family, u32), Proxy>,
    /// What is listened to upstream is to be found anew, once for all that has changed in a turn.
    pub is_changed: bool,
}

impl Proxies {
    /// Upstream, every message about groups is heard, not only those of groups that the router
    /// itself has joined.
    pub fn listens_to(&self, id: InterfaceId) -> Vec<IpAddr> {
        let upstream = self.map.iter().filter(|(_, proxy)| proxy.upstream == Some(id));
        upstream
            .map(|((family, _), _)| match family {
                Family::Ip4 => IpAddr::V4(ALL_HOSTS),
                Family::Ip6 => IpAddr::V6(ALL_NODES),
            })
            .collect()
    }

    /// The table of a proxy whose upstream is this interface.
    pub fn table_of_upstream(&self, id: InterfaceId, family: Family) -> Option<u32> {
        let mut with = self.map.iter().filter(|(_, proxy)| proxy.upstream == Some(id));
        with.find(|((of, _), _)| *of == family).map(|((_, table), _)| *table)
    }

    /// The proxies of which a link of hosts is a part.
    fn with_downstream(&self, id: InterfaceId, family: Family) -> Vec<(Family, u32)> {
        let with = |(key, proxy): (&(Family, u32), &Proxy)| {
            (key.0 == family && proxy.downstream.contains(&id)).then_some(*key)
        };
        self.map.iter().filter_map(with).collect()
    }
}

/// All groups of a family.
fn all_groups(family: Family) -> (IpAddr, u8) {
    match family {
        Family::Ip4 => (Ipv4Addr::new(224, 0, 0, 0).into(), 4),
        Family::Ip6 => (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0).into(), 8),
    }
}

/// A link is no router's link any more, so no proxy can listen for it.
pub(crate) fn leave(
    engine: &mut Engine,
    state: &mut Membership,
    (id, family): (InterfaceId, Family),
) {
    for key in state.proxies.with_downstream(id, family) {
        if let Some(proxy) = state.proxies.map.get_mut(&key) {
            proxy.downstream.remove(&id);
        }
        rebuild(engine, state, key);
    }
}

/// The interface is gone.
pub(crate) fn forget(engine: &mut Engine, state: &mut Membership, id: InterfaceId) {
    let keys: Vec<(Family, u32)> = state.proxies.map.keys().copied().collect();
    for key in keys {
        let Some(proxy) = state.proxies.map.get_mut(&key) else { continue };
        let was_downstream = proxy.downstream.remove(&id);
        let was_upstream = proxy.upstream == Some(id);
        if was_upstream {
            proxy.upstream = None;
        }
        if was_downstream || was_upstream {
            rebuild(engine, state, key);
        }
    }
}

/// Another upstream or other links: everything of a proxy is made anew.
pub(crate) fn rebuild(engine: &mut Engine, state: &mut Membership, key: (Family, u32)) {
    let Some(proxy) = state.proxies.map.get_mut(&key) else { return };
    let old: BTreeSet<RouteKey> = std::mem::take(&mut proxy.routes);
    let mut groups: BTreeSet<IpAddr> = BTreeSet::new();
    let downstream: Vec<InterfaceId> = proxy.downstream.iter().copied().collect();
    for id in downstream {
        if let Some(router) = state.routers.map.get(&(id, key.0)) {
            groups.extend(router.querier.groups().map(|(group, ..)| group));
        }
    }
    set_routes(engine, &old, &BTreeMap::new());
    write_all_groups(engine, state, key);
    for group in groups {
        write_group(engine, state, key, group);
    }
    if state
        .proxies
        .map
        .get(&key)
        .is_some_and(|proxy| proxy.upstream.is_none() && proxy.downstream.is_empty())
    {
        state.proxies.map.remove(&key);
    }
    state.proxies.is_changed = true;
}

/// What hosts of a link want of some groups has changed.
pub(crate) fn follow(
    engine: &mut Engine,
    state: &mut Membership,
    (id, family): (InterfaceId, Family),
    groups: &BTreeSet<IpAddr>,
) {
    let keys = state.proxies.with_downstream(id, family);
    for key in &keys {
        groups.iter().for_each(|group| write_group(engine, state, *key, *group));
    }
    state.proxies.is_changed |= !keys.is_empty();
}

/// Let learned routes say this; those of `old` that are not named say nothing any more. Returns how
/// many failed.
fn set_routes(
    engine: &mut Engine,
    old: &BTreeSet<RouteKey>,
    new: &BTreeMap<RouteKey, Route>,
) -> u64 {
    if engine.get::<Mfib>().is_none() {
        return new.len() as u64; // multicast forwarding is not built in
    }
    engine.with(|engine, mfib: &mut Mfib| {
        let Some(fib) = engine.get_mut::<Fib>() else { return 0 };
        for key in old.iter().filter(|key| !new.contains_key(key)) {
            let _ = mfib.set_learned(*key, Route::default(), fib); // taking away does not fail
        }
        let mut failed = 0;
        for (key, route) in new {
            if let Err(error) = mfib.set_learned(*key, route.clone(), fib) {
                tracing::debug!("packets to {} are not forwarded: {error}", key.group);
                failed += 1;
            }
        }
        mfib.hold_tables(fib, "multicast routes (ip mroute del, igmp proxy-dev del)");
        failed
    })
}

/// The route of all groups: what hosts send goes upstream (RFC 4605 §4.3), and what comes from
/// there and nobody wants ends.
fn write_all_groups(engine: &mut Engine, state: &mut Membership, key: (Family, u32)) {
    let Some(proxy) = state.proxies.map.get_mut(&key) else { return };
    let table = engine.get::<Fib>().and_then(|fib| fib.table_index(key.0, key.1));
    let (group, length) = all_groups(key.0);
    let Some(place) = table.and_then(|table| RouteKey::new(table, None, group, length)) else {
        return;
    };
    let Some(upstream) = proxy.upstream.filter(|_| !proxy.downstream.is_empty()) else { return };
    let mut route = Route::default();
    route.accept.extend(proxy.downstream.iter().chain([&upstream]));
    route.forward.insert(upstream, 0);
    proxy.failed += set_routes(engine, &BTreeSet::new(), &[(place, route)].into());
    proxy.routes.insert(place);
}

/// The routes of one group: that of all sources goes to the links that want all, that of a source
/// to those that want it.
fn write_group(engine: &mut Engine, state: &mut Membership, key: (Family, u32), group: IpAddr) {
    let Some(proxy) = state.proxies.map.get(&key) else { return };
    let table = engine.get::<Fib>().and_then(|fib| fib.table_index(key.0, key.1));
    let wanted_by = |id: &InterfaceId| {
        let router = state.routers.map.get(&(*id, key.0))?;
        Some((*id, router.querier.wanted(group)?))
    };
    let wanted: Vec<(InterfaceId, Wanted)> =
        proxy.downstream.iter().filter_map(wanted_by).collect();
    let mut new = BTreeMap::new();
    if let (Some(table), Some(upstream)) = (table, proxy.upstream) {
        let route = |wants: &dyn Fn(&Wanted) -> bool| {
            let mut route = Route::default();
            route.accept.extend(proxy.downstream.iter().chain([&upstream]));
            route.forward.insert(upstream, 0);
            route
                .forward
                .extend(wanted.iter().filter(|(_, wanted)| wants(wanted)).map(|(id, _)| (*id, 0)));
            route
        };
        let width = if group.is_ipv4() { 32 } else { 128 };
        if wanted.iter().any(|(_, wanted)| matches!(wanted, Wanted::AllBut(_)))
            && let Some(place) = RouteKey::new(table, None, group, width)
        {
            new.insert(place, route(&|wanted| matches!(wanted, Wanted::AllBut(_))));
        }
        let sources: BTreeSet<IpAddr> = wanted
            .iter()
            .flat_map(|(_, wanted)| match wanted {
                Wanted::Only(sources) | Wanted::AllBut(sources) => sources.iter().copied(),
            })
            .collect();
        for source in sources {
            if let Some(place) = RouteKey::new(table, Some(source), group, width) {
                new.insert(place, route(&|wanted| wanted.wants(source)));
            }
        }
    }
    let old: BTreeSet<RouteKey> = table.map_or_else(BTreeSet::new, |table| {
        let first = RouteKey { family: key.0, table, group, length: 0, source: None };
        let of_group =
            |place: &&RouteKey| place.table == table && place.group == group && place.length >= 32;
        proxy
            .routes
            .range(first..)
            .take_while(|place| place.group == group)
            .filter(of_group)
            .copied()
            .collect()
    });
    let mut failed = 0;
    while proxy.routes.len() - old.len() + new.len() > ROUTES_MAX && new.pop_last().is_some() {
        failed += 1;
    }
    failed += set_routes(engine, &old, &new);
    if let Some(proxy) = state.proxies.map.get_mut(&key) {
        proxy.failed += failed;
        old.iter().for_each(|place| {
            proxy.routes.remove(place);
        });
        proxy.routes.extend(new.keys());
    }
}

/// What all proxies together listen to upstream (RFC 4605 §4.1): exclude lists become "all", which
/// is more than is wanted.
pub(crate) fn listen_upstream(engine: &mut Engine, state: &mut Membership) {
    state.proxies.is_changed = false;
    let mut proxied: BTreeMap<InterfaceId, BTreeMap<IpAddr, Filter>> = BTreeMap::new();
    for ((family, _), proxy) in &state.proxies.map {
        let Some(upstream) = proxy.upstream else { continue };
        let groups = proxied.entry(upstream).or_default();
        for id in &proxy.downstream {
            let Some(router) = state.routers.map.get(&(*id, *family)) else { continue };
            for (group, wanted, _) in router.querier.groups() {
                if groups.len() >= GROUPS_MAX && !groups.contains_key(&group) {
                    break;
                }
                let filter = match wanted {
                    Wanted::Only(sources) if sources.is_empty() => continue,
                    Wanted::Only(sources) if sources.len() <= SOURCES_MAX => Filter::Only(sources),
                    Wanted::Only(_) | Wanted::AllBut(_) => Filter::Any,
                };
                let both =
                    groups.get(&group).map_or_else(|| filter.clone(), |other| filter.with(other));
                groups.insert(group, both);
            }
        }
    }
    let before = std::mem::replace(&mut state.proxied, proxied);
    let touched: BTreeSet<InterfaceId> =
        before.keys().chain(state.proxied.keys()).copied().collect();
    for id in touched {
        publish(engine, state, id);
        if before.get(&id) != state.proxied.get(&id) {
            fit(engine, state, id);
        }
    }
}
