//! What the control thread keeps: the groups that were joined by command, and how far telling them is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use quiver_core::InterfaceId;
use quiver_core::jitter::Jitter;
use quiver_core::reactor::Token;
use quiver_tables::fib::Family;
use quiver_wire::ip6::address::{ALL_ROUTERS, solicited_node};

use crate::port::{Filter, Port};

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

/// All of it.
pub struct Membership {
    /// What operators joined.
    pub joined: BTreeMap<InterfaceId, BTreeMap<IpAddr, Filter>>,
    /// Who tells it, by interface and family.
    pub listeners: BTreeMap<(InterfaceId, Family), Listener>,
    /// For delays.
    pub jitter: Jitter,
    /// The timer that runs, and when it fires.
    pub timer: Option<(u64, Token)>,
}

impl Membership {
    /// Nothing is listened to.
    pub fn new() -> Membership {
        let (joined, listeners) = (BTreeMap::new(), BTreeMap::new());
        Membership { joined, listeners, jitter: Jitter::random(), timer: None }
    }
}

/// The groups that an interface with these IPv6 addresses listens to by itself (RFC 4291 §2.8). All nodes are never
/// reported (RFC 3810 §6).
pub fn automatic(addresses: &[Ipv6Addr]) -> BTreeMap<IpAddr, Filter> {
    let groups: BTreeSet<Ipv6Addr> = addresses.iter().map(|own| solicited_node(*own)).collect();
    let routers = (!addresses.is_empty()).then_some(ALL_ROUTERS);
    groups.into_iter().chain(routers).map(|group| (group.into(), Filter::Any)).collect()
}
