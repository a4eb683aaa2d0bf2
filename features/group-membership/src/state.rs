//! What the control thread keeps: the groups that were joined by command, and how far telling them
//! is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use quiver_core::InterfaceId;
use quiver_core::control::reactor::Alarm;
use quiver_core::jitter::Jitter;
use quiver_forwarding::fib::Family;
use quiver_wire::ip6::address::{ALL_ROUTERS, solicited_node};

use crate::port::{Filter, Port};
use crate::proxy::Proxies;
use crate::router::Routers;

/// Groups joined by command on one interface at most.
pub const GROUPS_MAX: usize = 1024;
/// Sources of one group at most.
pub const SOURCES_MAX: usize = 64;

/// The last query.
#[derive(Clone, Copy, Debug)]
pub struct Querier {
    /// Who asked.
    pub address: IpAddr,
    /// When.
    pub at_ns: u64,
}

/// Counts of one family on one interface.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets sent.
    pub sent: u64,
    /// Packets that no worker had room for.
    pub not_sent: u64,
    /// Queries heard.
    pub queries: u64,
}

/// One family on one interface.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// What is told.
    pub port: Port,
    /// The last query.
    pub querier: Option<Querier>,
    /// Counts.
    pub counts: Counts,
    /// The source of reports; `None` while the interface is down or does not speak the family.
    pub from: Option<IpAddr>,
}

impl Listener {
    /// When something is to be said.
    pub fn due_ns(&self) -> Option<u64> {
        self.from.and_then(|_| self.port.due_ns())
    }
}

/// All of it.
pub struct Membership {
    /// What operators joined.
    pub joined: BTreeMap<InterfaceId, BTreeMap<IpAddr, Filter>>,
    /// What features join, and how often.
    pub held: BTreeMap<InterfaceId, BTreeMap<IpAddr, u32>>,
    /// What proxies join on behalf of the hosts behind them.
    pub proxied: BTreeMap<InterfaceId, BTreeMap<IpAddr, Filter>>,
    /// Links on which this router asks.
    pub routers: Routers,
    /// Who is a proxy for which links.
    pub proxies: Proxies,
    /// Who tells it, by interface and family.
    pub listeners: BTreeMap<(InterfaceId, Family), Listener>,
    /// Who has something to say, by when.
    due: BTreeSet<(u64, InterfaceId, Family)>,
    /// When each of those stands there.
    planned: BTreeMap<(InterfaceId, Family), u64>,
    /// For delays.
    pub jitter: Jitter,
    /// Fires when the next thing is to be said.
    pub alarm: Alarm,
}

impl Membership {
    /// Nothing is listened to.
    pub fn new() -> Membership {
        Membership {
            joined: BTreeMap::new(),
            held: BTreeMap::new(),
            proxied: BTreeMap::new(),
            routers: Routers::default(),
            proxies: Proxies::default(),
            listeners: BTreeMap::new(),
            due: BTreeSet::new(),
            planned: BTreeMap::new(),
            jitter: Jitter::random(),
            alarm: Alarm::default(),
        }
    }

    /// When something is to be said first.
    pub fn due_ns(&self) -> Option<u64> {
        let changed = self.proxies.is_changed.then_some(0);
        self.due
            .first()
            .map(|(at, ..)| *at)
            .into_iter()
            .chain(self.routers.due_ns())
            .chain(changed)
            .min()
    }

    /// Who has something to say now.
    pub fn due(&self, now_ns: u64) -> Vec<(InterfaceId, Family)> {
        let due = self.due.iter().take_while(|(at, ..)| *at <= now_ns);
        due.map(|(_, id, family)| (*id, *family)).collect()
    }

    /// What is told on an interface may have changed.
    pub fn plan(&mut self, id: InterfaceId) {
        for key in [(id, Family::Ip4), (id, Family::Ip6)] {
            if let Some(at) = self.planned.remove(&key) {
                self.due.remove(&(at, key.0, key.1));
            }
            if let Some(at) = self.listeners.get(&key).and_then(Listener::due_ns) {
                self.planned.insert(key, at);
                self.due.insert((at, key.0, key.1));
            }
        }
    }

    /// The interface is gone. Returns whether groups were joined there.
    pub fn forget(&mut self, id: InterfaceId) -> bool {
        for family in [Family::Ip4, Family::Ip6] {
            self.listeners.remove(&(id, family));
        }
        self.plan(id);
        self.proxied.remove(&id);
        let was_held = self.held.remove(&id).is_some();
        self.joined.remove(&id).is_some() | was_held
    }
}

/// The groups that an interface with these IPv6 addresses listens to by itself (RFC 4291 §2.8). All
/// nodes are never reported (RFC 3810 §6).
pub fn automatic(addresses: &[Ipv6Addr]) -> BTreeMap<IpAddr, Filter> {
    let groups: BTreeSet<Ipv6Addr> = addresses.iter().map(|own| solicited_node(*own)).collect();
    let routers = (!addresses.is_empty()).then_some(ALL_ROUTERS);
    groups.into_iter().chain(routers).map(|group| (group.into(), Filter::Any)).collect()
}
