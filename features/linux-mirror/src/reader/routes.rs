//! Linux's routes: of several with one prefix the one with the lowest metric is used.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_netlink::route::{Route, RouteKind};
use quiver_netlink::seg6;
use quiver_tables::prefix::IpPrefix;

use super::kept::Kept;

/// Different sets of hops that are kept before those that nobody uses are looked for.
const SETS_MIN: usize = 4096;

/// Which route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    /// Linux's number of the table.
    pub table: u32,
    /// For which destinations.
    pub prefix: IpPrefix,
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
    sets: HashSet<Arc<RouteValue>>,
    sets_before_look: usize,
    last: Option<Arc<RouteValue>>,
}

impl Routes {
    pub fn new() -> Routes {
        Routes {
            used: Kept::new(),
            several: HashMap::new(),
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

    /// A route is there.
    pub fn put(&mut self, route: &Route<'_>, is_appended: bool) {
        let key = RouteKey { table: route.table, prefix: route.prefix };
        let ranked = (route.metric, self.shared(RouteValue::of(route)));
        if let Some(several) = self.several.get_mut(&key) {
            match several.iter_mut().find(|(metric, _)| *metric == ranked.0) {
                Some(_) if is_appended && !key.prefix.is_ip6() => {} // the first is used
                Some(known) => *known = ranked,
                None => several.push(ranked),
            }
            let best = several.iter().min_by_key(|(metric, _)| *metric).cloned();
            best.into_iter().for_each(|best| self.used.put(key, best));
            return;
        }
        match self.used.get_fresh(key) {
            Some((metric, _)) if *metric == ranked.0 && is_appended && !key.prefix.is_ip6() => {}
            Some(known) if known.0 != ranked.0 => {
                let several = vec![known.clone(), ranked.clone()];
                if ranked.0 < known.0 {
                    self.used.put(key, ranked);
                }
                self.several.insert(key, several);
            }
            _ => self.used.put(key, ranked),
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
                self.used.remove(key);
            }
            return;
        };
        several.retain(|(other, _)| *other != metric);
        let best = several.iter().min_by_key(|(metric, _)| *metric).cloned();
        if several.len() < 2 {
            self.several.remove(&key);
        }
        match best {
            Some(best) => self.used.put(key, best),
            None => self.used.remove(key),
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
            best.into_iter().for_each(|best| self.used.put(key, best));
        } else {
            self.used.put(key, ranked);
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
        let is_gone = |ranked: &Ranked| *ranked.1 == RouteValue::Object(id);
        let mut gone: Vec<(RouteKey, u32)> = Vec::new();
        for (key, several) in &self.several {
            gone.extend(several.iter().filter(|ranked| is_gone(ranked)).map(|t| (*key, t.0)));
        }
        gone.into_iter().for_each(|(key, metric)| self.remove_whole(key, metric));
        self.used.remove_those(|_, ranked| is_gone(ranked));
    }

    /// A dump of all routes begins.
    pub fn begin_dump(&mut self) {
        self.used.begin_dump();
        self.several.clear();
    }

    /// The dump is whole.
    pub fn sweep(&mut self) {
        self.used.sweep();
    }
}
