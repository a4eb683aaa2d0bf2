//! The routes of each next-hop object: what goes with an object is found without a walk over all
//! routes.

use std::collections::{HashMap, HashSet};

use quiver_tables::prefix::{Ip4Prefix, Ip6Prefix, IpPrefix};

use super::routes::RouteKey;

/// Routes by table and prefix. The families are apart: an IPv4 route takes 12 bytes here.
#[derive(Default)]
struct Users {
    ip4: HashSet<(u32, Ip4Prefix)>,
    ip6: HashSet<(u32, Ip6Prefix)>,
}

impl Users {
    fn is_empty(&self) -> bool {
        self.ip4.is_empty() && self.ip6.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = RouteKey> {
        let ip4 = self.ip4.iter().map(|(table, prefix)| (*table, IpPrefix::V4(*prefix)));
        let ip6 = self.ip6.iter().map(|(table, prefix)| (*table, IpPrefix::V6(*prefix)));
        ip4.chain(ip6).map(|(table, prefix)| RouteKey { table, prefix })
    }
}

/// By the number of an object: the routes that name it. Some of them may name another one by now.
#[derive(Default)]
pub(super) struct ByObject(HashMap<u32, Users>);

impl ByObject {
    /// A route names an object.
    pub fn insert(&mut self, object: u32, key: RouteKey) {
        let users = self.0.entry(object).or_default();
        match key.prefix {
            IpPrefix::V4(prefix) => users.ip4.insert((key.table, prefix)),
            IpPrefix::V6(prefix) => users.ip6.insert((key.table, prefix)),
        };
    }

    /// A route names an object no more.
    pub fn remove(&mut self, object: u32, key: RouteKey) {
        let Some(users) = self.0.get_mut(&object) else { return };
        match key.prefix {
            IpPrefix::V4(prefix) => users.ip4.remove(&(key.table, prefix)),
            IpPrefix::V6(prefix) => users.ip6.remove(&(key.table, prefix)),
        };
        if users.is_empty() {
            self.0.remove(&object);
        }
    }

    /// An object is gone: the routes that name it, or did.
    pub fn take(&mut self, object: u32) -> Vec<RouteKey> {
        self.0.remove(&object).map(|users| users.iter().collect()).unwrap_or_default()
    }

    /// The routes that name an object, or did.
    pub fn of(&self, object: u32) -> impl Iterator<Item = RouteKey> {
        self.0.get(&object).into_iter().flat_map(Users::iter)
    }

    /// Forget routes that do not name their object any more.
    pub fn retain(&mut self, names: impl Fn(u32, RouteKey) -> bool) {
        self.0.retain(|object, users| {
            let key = |table, prefix| RouteKey { table, prefix };
            users.ip4.retain(|(table, prefix)| names(*object, key(*table, IpPrefix::V4(*prefix))));
            users.ip6.retain(|(table, prefix)| names(*object, key(*table, IpPrefix::V6(*prefix))));
            !users.is_empty()
        });
    }
}
