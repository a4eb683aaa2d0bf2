//! Linux's routes: of several with one prefix the one with the lowest metric is used.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_netlink::route::{Route, RouteKind};
use quiver_netlink::{mpls, seg6};
use quiver_tables::prefix::IpPrefix;

use super::by_object::ByObject;
use super::kept::{Before, Kept};

/// Different sets of hops that are kept before those that nobody uses are looked for.
const SETS_MIN: usize = 4096;

/// Which route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteKey {
    /// Linux's number of the table.
    pub table: u32,
    /// For which destinations.
    pub prefix: IpPrefix,
}

impl Hash for RouteKey {
    /// In two pieces: a table of a million routes is hashed in each dump.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (family, address, length) = match self.prefix {
            IpPrefix::V4(prefix) => (4, u128::from(prefix.first()), prefix.len()),
            IpPrefix::V6(prefix) => (6, prefix.first(), prefix.len()),
        };
        state.write_u128(address);
        state.write_u64(u64::from(self.table) << 32 | family << 8 | u64::from(length));
    }
}

/// A hop of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hop {
    /// The next hop; none when hosts are on the link.
    pub gateway: Option<IpAddr>,
    /// The number of the link; 0 for none.
    pub link: u32,
    /// Its share of the traffic.
    pub weight: u32,
    /// What it puts around packets.
    pub encap: Option<Arc<Encap>>,
}

/// A lightweight tunnel of a hop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Encap {
    /// Labels are put on packets.
    Labels(mpls::LabelStack),
    /// Segments are put on packets.
    Headend(seg6::Headend),
    /// The route is a local SID.
    Local(seg6::LocalSid),
    /// It is not understood here.
    Unknown,
}

impl Encap {
    /// Of the kind of a tunnel and its attributes.
    pub fn of((kind, value): (u16, &[u8])) -> Arc<Encap> {
        let read = match kind {
            mpls::ENCAP => mpls::LabelStack::read(value).map(Encap::Labels),
            seg6::HEADEND => seg6::Headend::read(value).map(Encap::Headend),
            seg6::LOCAL => seg6::LocalSid::read(value).map(Encap::Local),
            _ => None,
        };
        Arc::new(read.unwrap_or(Encap::Unknown))
    }
}

/// What a route says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RouteValue {
    /// Packets are dropped.
    Drop(RouteKind),
    /// They go to these hops.
    Hops(Vec<Hop>),
    /// They go where a next-hop object says.
    Object(u32),
}

impl RouteValue {
    /// What a message says.
    fn of(route: &Route<'_>) -> RouteValue {
        if let Some(object) = route.next_hop_object {
            return RouteValue::Object(object);
        }
        match route.kind {
            RouteKind::Unicast => {
                let hop = |hop: quiver_netlink::route::RouteHop<'_>| Hop {
                    gateway: hop.gateway,
                    link: hop.link,
                    weight: hop.weight,
                    encap: hop.encap.map(Encap::of),
                };
                RouteValue::Hops(route.hops().map(hop).collect())
            }
            kind => RouteValue::Drop(kind),
        }
    }

    /// The next-hop object that it names.
    pub fn object(&self) -> Option<u32> {
        match self {
            RouteValue::Object(id) => Some(*id),
            RouteValue::Drop(_) | RouteValue::Hops(_) => None,
        }
    }

    /// Do all its packets leave by links of which `of` is true?
    pub fn is_by(&self, of: &impl Fn(u32) -> bool) -> bool {
        match self {
            RouteValue::Hops(hops) => hops.iter().all(|hop| of(hop.link)),
            _ => false,
        }
    }

    /// Is something put around packets, as far as the route itself says?
    pub fn has_encap(&self) -> bool {
        matches!(self, RouteValue::Hops(hops) if hops.iter().any(|hop| hop.encap.is_some()))
    }

    /// Does a packet of it leave by this link?
    pub fn names(&self, link: u32) -> bool {
        matches!(self, RouteValue::Hops(hops) if hops.iter().any(|hop| hop.link == link))
    }
}

/// A route's metric, and what it says.
pub(crate) type Ranked = (u32, Arc<RouteValue>);

/// All routes of a namespace.
pub(crate) struct Routes {
    /// Of each prefix, the one that is used.
    pub used: Kept<RouteKey, Ranked>,
    /// All of prefixes that have several.
    several: HashMap<RouteKey, Vec<Ranked>>,
    /// Routes by the object that they name, those that are not used among them.
    by_object: ByObject,
    sets: HashSet<Arc<RouteValue>>,
    sets_before_look: usize,
    last: Option<Arc<RouteValue>>,
}

impl Routes {
    pub fn new() -> Routes {
        Routes {
            used: Kept::new(),
            several: HashMap::new(),
            by_object: ByObject::default(),
            sets: HashSet::new(),
            sets_before_look: SETS_MIN,
            last: None,
        }
    }

    /// One copy of what many routes say.
    fn shared(&mut self, value: RouteValue) -> Arc<RouteValue> {
        if let Some(last) = self.last.as_ref().filter(|last| ***last == value) {
            return last.clone();
        }
        let shared = match self.sets.get(&value) {
            Some(known) => known.clone(),
            None => {
                if self.sets.len() >= self.sets_before_look {
                    self.sets.retain(|set| Arc::strong_count(set) > 1);
                    self.sets_before_look = (2 * self.sets.len()).max(SETS_MIN);
                }
                let new = Arc::new(value);
                self.sets.insert(new.clone());
                new
            }
        };
        self.last = Some(shared.clone());
        shared
    }

    /// Of its prefix this route is used now.
    fn use_route(&mut self, key: RouteKey, ranked: Ranked) {
        let now = ranked.1.object();
        if let Before::Other((_, before)) = self.used.replace(key, ranked)
            && before.object() != now
        {
            self.is_used_no_more(key, &before);
        }
    }

    /// A prefix has no route any more.
    fn remove_used(&mut self, key: RouteKey) {
        if let Some((_, before)) = self.used.remove(key) {
            self.is_used_no_more(key, &before);
        }
    }

    fn is_used_no_more(&mut self, key: RouteKey, before: &RouteValue) {
        // Where a prefix has several, another one may name the object.
        if let Some(object) = before.object().filter(|_| !self.several.contains_key(&key)) {
            self.by_object.remove(object, key);
        }
    }

    /// A route is there.
    pub fn put(&mut self, route: &Route<'_>, is_appended: bool) {
        let key = RouteKey { table: route.table, prefix: route.prefix };
        let ranked = (route.metric, self.shared(RouteValue::of(route)));
        if let Some(object) = ranked.1.object() {
            self.by_object.insert(object, key);
        }
        if let Some(several) = self.several.get_mut(&key) {
            match several.iter_mut().find(|(metric, _)| *metric == ranked.0) {
                Some(_) if is_appended && !key.prefix.is_ip6() => {} // the first is used
                Some(known) => *known = ranked,
                None => several.push(ranked),
            }
            let best = several.iter().min_by_key(|(metric, _)| *metric).cloned();
            best.into_iter().for_each(|best| self.use_route(key, best));
            return;
        }
        match self.used.get_fresh(key) {
            Some((metric, _)) if *metric == ranked.0 && is_appended && !key.prefix.is_ip6() => {}
            Some(known) if known.0 != ranked.0 => {
                let several = vec![known.clone(), ranked.clone()];
                let is_better = ranked.0 < known.0;
                self.several.insert(key, several);
                if is_better {
                    self.use_route(key, ranked);
                }
            }
            _ => self.use_route(key, ranked),
        }
    }

    /// A route is gone, or some hops of an IPv6 route are.
    pub fn remove(&mut self, route: &Route<'_>) {
        let key = RouteKey { table: route.table, prefix: route.prefix };
        if route.prefix.is_ip6() && self.remove_hops(key, route) {
            return;
        }
        self.remove_whole(key, route.metric);
    }

    fn remove_whole(&mut self, key: RouteKey, metric: u32) {
        let Some(several) = self.several.get_mut(&key) else {
            if self.used.get(key).is_some_and(|known| known.0 == metric) {
                self.remove_used(key);
            }
            return;
        };
        several.retain(|(other, _)| *other != metric);
        let best = several.iter().min_by_key(|(metric, _)| *metric).cloned();
        if several.len() < 2 {
            self.several.remove(&key);
        }
        match best {
            Some(best) => self.use_route(key, best),
            None => self.remove_used(key),
        }
    }

    /// Linux takes hops of IPv6 routes away one at a time. True when some are left.
    fn remove_hops(&mut self, key: RouteKey, route: &Route<'_>) -> bool {
        let of_metric = |ranked: &&Ranked| ranked.0 == route.metric;
        let known = match self.several.get(&key) {
            Some(several) => several.iter().find(of_metric),
            None => self.used.get(key).filter(of_metric),
        };
        let Some(RouteValue::Hops(known)) = known.map(|(_, value)| value.as_ref()) else {
            return false;
        };
        let RouteValue::Hops(gone) = RouteValue::of(route) else { return false };
        let is_gone =
            |hop: &Hop| gone.iter().any(|g| (g.gateway, g.link) == (hop.gateway, hop.link));
        let left: Vec<Hop> = known.iter().filter(|hop| !is_gone(hop)).cloned().collect();
        if left.is_empty() || left.len() == known.len() {
            return false;
        }
        let ranked = (route.metric, self.shared(RouteValue::Hops(left)));
        if let Some(several) = self.several.get_mut(&key) {
            several.retain(|(metric, _)| *metric != ranked.0);
            several.push(ranked);
            let best = several.iter().min_by_key(|(metric, _)| *metric).cloned();
            best.into_iter().for_each(|best| self.use_route(key, best));
        } else {
            self.use_route(key, ranked);
        }
        true
    }

    /// Links went down: their IPv4 routes are gone, which Linux does not say.
    pub fn links_went_down(&mut self, is_down: impl Fn(u32) -> bool) {
        let is_gone =
            |key: &RouteKey, ranked: &Ranked| !key.prefix.is_ip6() && ranked.1.is_by(&is_down);
        let mut gone: Vec<(RouteKey, u32)> = Vec::new();
        for (key, several) in &self.several {
            gone.extend(several.iter().filter(|ranked| is_gone(key, ranked)).map(|t| (*key, t.0)));
        }
        gone.into_iter().for_each(|(key, metric)| self.remove_whole(key, metric));
        self.used.remove_those(is_gone);
    }

    /// A next-hop object is gone, and with it the routes that use it, which Linux does not say.
    pub fn object_went(&mut self, id: u32) {
        for key in self.by_object.take(id) {
            while let Some(metric) = self.metric_by(key, id) {
                self.remove_whole(key, metric);
            }
        }
    }

    /// The metric of a route with this prefix that names an object.
    fn metric_by(&self, key: RouteKey, id: u32) -> Option<u32> {
        let known = match self.several.get(&key) {
            Some(several) => several.as_slice(),
            None => self.used.get(key).map(std::slice::from_ref).unwrap_or_default(),
        };
        let by_it = known.iter().find(|(_, value)| value.object() == Some(id));
        by_it.map(|(metric, _)| *metric)
    }

    /// Report routes by a next-hop object again.
    pub fn report_again_by(&mut self, id: u32) {
        let used = &mut self.used;
        for key in self.by_object.of(id) {
            if used.get(key).is_some_and(|(_, value)| value.object() == Some(id)) {
                used.report_one_again(key);
            }
        }
    }

    /// A dump of all routes begins.
    pub fn begin_dump(&mut self) {
        self.used.begin_dump();
        self.several.clear();
    }

    /// The dump is whole.
    pub fn sweep(&mut self) {
        self.used.sweep();
        let mut by_object = std::mem::take(&mut self.by_object);
        by_object.retain(|id, key| self.metric_by(key, id).is_some());
        self.by_object = by_object;
    }
}

#[cfg(test)]
mod tests {
    use quiver_netlink::family;
    use quiver_netlink::request::attribute_bytes;
    use quiver_tables::prefix::Prefix;

    use super::*;

    fn key(number: u32) -> RouteKey {
        RouteKey { table: 254, prefix: IpPrefix::V4(Prefix::new(number << 8, 24)) }
    }

    /// What Linux says of a route by an object (rtnetlink(7), linux/rtnetlink.h).
    fn said(number: u32, metric: u32, object: u32) -> Vec<u8> {
        const DESTINATION: u16 = 1;
        const METRIC: u16 = 6;
        const OBJECT: u16 = 30;
        const UNICAST: u8 = 1;
        let main = 254;
        let header = [family::IP4, 24, 0, 0, main, 186, 0, UNICAST, 0, 0, 0, 0];
        let destination = (number << 8).to_be_bytes();
        [
            header.to_vec(),
            attribute_bytes(DESTINATION, &destination),
            attribute_bytes(METRIC, &metric.to_ne_bytes()),
            attribute_bytes(OBJECT, &object.to_ne_bytes()),
        ]
        .concat()
    }

    fn put(routes: &mut Routes, number: u32, metric: u32, object: u32) {
        let said = said(number, metric, object);
        routes.put(&Route::read(&said).expect("a route"), false);
    }

    fn remove(routes: &mut Routes, number: u32, metric: u32, object: u32) {
        let said = said(number, metric, object);
        routes.remove(&Route::read(&said).expect("a route"));
    }

    /// The routes that are used, with their objects.
    fn used(routes: &Routes) -> Vec<(u32, u32)> {
        let object = |n| Some((n, routes.used.get(key(n))?.1.object()?));
        (0..16).filter_map(object).collect()
    }

    #[test]
    fn an_object_that_goes_takes_the_routes_that_name_it_now() {
        let mut routes = Routes::new();
        (0..4).for_each(|n| put(&mut routes, n, 20, 7));
        put(&mut routes, 1, 20, 8);
        put(&mut routes, 2, 10, 8);
        put(&mut routes, 3, 30, 8);
        remove(&mut routes, 0, 20, 7);
        put(&mut routes, 4, 20, 7);
        routes.object_went(7);
        // Of the prefixes with two routes the other one is used.
        assert_eq!(used(&routes), [(1, 8), (2, 8), (3, 8)]);
        routes.object_went(8);
        assert_eq!(used(&routes), []);
        assert_eq!(routes.by_object.of(7).count() + routes.by_object.of(8).count(), 0);
    }

    #[test]
    fn routes_by_an_object_are_reported_again_after_a_dump_too() {
        let mut routes = Routes::new();
        (0..4).for_each(|n| put(&mut routes, n, 20, 7));
        routes.used.take_unreported(99);
        routes.begin_dump();
        put(&mut routes, 0, 20, 7);
        put(&mut routes, 1, 20, 9);
        routes.sweep();
        routes.used.take_unreported(99);
        routes.report_again_by(7);
        let again = routes.used.take_unreported(99);
        assert_eq!(again.iter().map(|(of, _)| *of).collect::<Vec<_>>(), [key(0)]);
        assert_eq!(routes.by_object.of(7).collect::<Vec<_>>(), [key(0)]);
    }

    mod model {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            /// With the index the routes that go with an object are those that a walk over all
            /// would find.
            #[test]
            fn the_index_finds_what_a_walk_finds(
                changes in prop::collection::vec((0u8..5, 0u32..4, 0u32..3, 1u32..4), 0..60),
            ) {
                let mut routes = Routes::new();
                for (what, n, metric, object) in changes {
                    match what {
                        0..=2 => put(&mut routes, n, metric, object),
                        3 => remove(&mut routes, n, metric, object),
                        _ => routes.object_went(object),
                    }
                    let all = routes.several.values().flatten().chain(
                        (0..4).filter_map(|n| routes.used.get(key(n))));
                    if what == 4 {
                        let left = all.filter(|(_, value)| value.object() == Some(object));
                        prop_assert_eq!(left.count(), 0);
                        continue;
                    }
                    for n in 0..4 {
                        for id in 1..4 {
                            let names = routes.metric_by(key(n), id).is_some();
                            let is_found = routes.by_object.of(id).any(|found| found == key(n));
                            prop_assert!(is_found || !names, "{} by {}", n, id);
                        }
                    }
                }
            }
        }
    }
}
