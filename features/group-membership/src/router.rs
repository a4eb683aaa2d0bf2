//! Links on which this router asks who listens to what: the querier of each is driven here, and
//! what it learns goes to proxies and to clients.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_control::{EventValue, Field, Topic, publish, wants};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_wire::ip4::address::{ALL_HOSTS, is_local_multicast};
use quiver_wire::ip6::address::{ALL_NODES, is_link_local, multicast_scope};
use quiver_wire::{igmp, mld};

use crate::group::Wanted;
use crate::message;
use crate::notifications::{OLD_LEAVE, OLD_REPORT_V1, OLD_REPORT_V2, RECORD_SOURCES_MAX};
use crate::port::{Query, Version};
use crate::proxy;
use crate::querier::{Querier, Timers};
use crate::sender::{own, publish as publish_groups, send};
use crate::state::Membership;

/// Records of which not all parts have come yet, of one link and family at most.
const PARTIAL_MAX: usize = 64;

/// Who listens to which groups behind the links of this router.
pub(crate) static GROUP_MEMBERSHIP: Topic = Topic {
    name: "group-membership",
    help: "hosts of a link begin to listen to a group, listen to other sources of it, or listen \
        no more",
    fields: &[
        Field { key: "interface", help: "the interface of the link" },
        Field { key: "group", help: "the group" },
        Field {
            key: "filter",
            help: "include: packets of the sources are wanted; exclude: all others are",
        },
        Field {
            key: "sources",
            help: "the sources, separated by spaces; include without any: nobody listens",
        },
    ],
};

/// What is counted of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouterCounts {
    /// Queries sent.
    pub queries: u64,
    /// Queries that no worker had room for.
    pub not_sent: u64,
    /// Records heard.
    pub records: u64,
    /// Records of hosts that are not on the link (RFC 3376 §9.2).
    pub foreign: u64,
}

/// One link, one family.
pub struct Router {
    /// What is known, and what is asked.
    pub querier: Querier,
    /// As the operator wants them.
    pub timers: Timers,
    /// The source of queries; `None` while the interface is down or has no address: nothing is
    /// asked then.
    pub from: Option<IpAddr>,
    /// Counts.
    pub counts: RouterCounts,
    /// Records of which not all parts have come.
    partial: BTreeMap<(IpAddr, IpAddr, u8), BTreeSet<IpAddr>>,
}

/// All links on which this router asks.
#[derive(Default)]
pub struct Routers {
    /// By interface and family.
    pub map: BTreeMap<(InterfaceId, Family), Router>,
}

impl Routers {
    /// When something is to be done first.
    pub fn due_ns(&self) -> Option<u64> {
        let asks = self.map.values().filter(|router| router.from.is_some());
        asks.map(|router| router.querier.due_ns()).min()
    }

    /// Groups that a router has to hear on an interface; that of all hosts says that it hears every
    /// IGMP or MLD message.
    pub fn listens_to(&self, id: InterfaceId) -> Vec<IpAddr> {
        let mut groups: Vec<IpAddr> = Vec::new();
        if self.map.contains_key(&(id, Family::Ip4)) {
            groups.extend([ALL_HOSTS, igmp::ALL_ROUTERS, igmp::ALL_REPORTS].map(IpAddr::V4));
        }
        if self.map.contains_key(&(id, Family::Ip6)) {
            groups.extend([ALL_NODES, mld::ALL_REPORTS].map(IpAddr::V6));
        }
        groups
    }
}

/// A part of a record, as a node tells it.
pub(crate) struct Part {
    pub from: IpAddr,
    pub kind: u8,
    pub group: IpAddr,
    pub sources: Vec<IpAddr>,
    pub first: bool,
    pub last: bool,
}

/// Begin to ask on a link, or ask with other timers.
pub(crate) fn enable(
    engine: &mut Engine,
    state: &mut Membership,
    key: (InterfaceId, Family),
    timers: Option<Timers>,
) {
    let now_ns = engine.now_ns();
    match state.routers.map.get_mut(&key) {
        Some(router) => {
            if let Some(timers) = timers.filter(|timers| *timers != router.timers) {
                router.timers = timers;
                router.querier.configure(timers, now_ns);
            }
        }
        None => {
            let timers = timers.unwrap_or_default();
            let router = Router {
                querier: Querier::new(timers, now_ns),
                timers,
                from: None,
                counts: RouterCounts::default(),
                partial: BTreeMap::new(),
            };
            state.routers.map.insert(key, router);
        }
    }
    publish_groups(engine, state, key.0);
    fit(engine, state, key.0);
}

/// Forget who listens on a link, and ask anew.
pub(crate) fn clear(engine: &mut Engine, state: &mut Membership, key: (InterfaceId, Family)) {
    let now_ns = engine.now_ns();
    if let Some(router) = state.routers.map.get_mut(&key) {
        router.querier.clear();
        router.querier.configure(router.timers, now_ns);
        apply(engine, state, key);
    }
}

/// Ask no more on a link; no proxy listens for it.
pub(crate) fn disable(engine: &mut Engine, state: &mut Membership, key: (InterfaceId, Family)) {
    clear(engine, state, key);
    state.routers.map.remove(&key);
    proxy::leave(engine, state, key);
    publish_groups(engine, state, key.0);
}

/// The interface is gone.
pub(crate) fn forget(engine: &mut Engine, state: &mut Membership, id: InterfaceId) {
    for family in [Family::Ip4, Family::Ip6] {
        if state.routers.map.contains_key(&(id, family)) {
            disable(engine, state, (id, family));
        }
    }
    proxy::forget(engine, state, id);
}

/// The address that queries come from: in IPv6 the link-local one (RFC 3810 §5.1.14).
fn source(engine: &Engine, id: InterfaceId, family: Family) -> Option<IpAddr> {
    let (from, _) = own(engine, id, family)?;
    match from {
        IpAddr::V6(address) if !is_link_local(address) => None,
        from => Some(from),
    }
}

/// Ask where the interface can, and begin anew when its address is another one.
pub(crate) fn fit(engine: &mut Engine, state: &mut Membership, id: InterfaceId) {
    let now_ns = engine.now_ns();
    for family in [Family::Ip4, Family::Ip6] {
        let Some(router) = state.routers.map.get_mut(&(id, family)) else { continue };
        let from = source(engine, id, family);
        if router.from == from {
            continue;
        }
        router.from = from;
        if from.is_none() {
            router.querier.clear();
        }
        router.querier.configure(router.timers, now_ns);
        apply(engine, state, (id, family));
    }
}

/// Do what is due on all links.
pub(crate) fn due(engine: &mut Engine, state: &mut Membership, now_ns: u64) {
    let is_due = |router: &Router| router.from.is_some() && router.querier.due_ns() <= now_ns;
    let due: Vec<_> = state
        .routers
        .map
        .iter()
        .filter(|(_, router)| is_due(router))
        .map(|(key, _)| *key)
        .collect();
    for key in due {
        let Some(router) = state.routers.map.get_mut(&key) else { continue };
        let Some(from) = router.from else { continue };
        for question in router.querier.due(now_ns) {
            let packet = message::question(&question, from);
            let sent = packet.is_some_and(|packet| send(engine, key.0, packet.to, &packet.bytes));
            *(if sent { &mut router.counts.queries } else { &mut router.counts.not_sent }) += 1;
        }
        apply(engine, state, key);
    }
}

/// Is a group one that routers forward? Groups of the link are every host's own matter.
fn may_be_forwarded(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.is_multicast() && !is_local_multicast(group),
        IpAddr::V6(group) => group.is_multicast() && multicast_scope(group) > 2,
    }
}

/// Is a host that reports on the link? One without an address may be (RFC 3376 §4.2.13).
fn is_on_link(engine: &Engine, id: InterfaceId, from: IpAddr) -> bool {
    let IpAddr::V4(from) = from else { return true }; // MLD comes from link-local addresses only
    let covers = |(own, length): (IpAddr, u8)| match own {
        IpAddr::V4(own) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            own.to_bits() & mask == from.to_bits() & mask
        }
        IpAddr::V6(_) => false,
    };
    from.is_unspecified() || engine.get::<Fib>().is_some_and(|fib| fib.addresses(id).any(covers))
}

/// A host reports.
pub(crate) fn heard_record(
    engine: &mut Engine,
    state: &mut Membership,
    id: InterfaceId,
    part: Part,
    now_ns: u64,
) {
    let Part { from, kind, group, sources, first, last } = part;
    let key = (id, Family::of(group));
    let on_link = is_on_link(engine, id, from);
    let Some(router) = state.routers.map.get_mut(&key).filter(|router| router.from.is_some())
    else {
        return;
    };
    if !on_link {
        router.counts.foreign += 1;
        return;
    }
    if !may_be_forwarded(group) {
        return;
    }
    let place = (from, group, kind);
    let mut all =
        if first { BTreeSet::new() } else { router.partial.remove(&place).unwrap_or_default() };
    all.extend(sources.into_iter().take(RECORD_SOURCES_MAX));
    if !last {
        if router.partial.len() >= PARTIAL_MAX {
            router.partial.pop_first();
        }
        router.partial.insert(place, all);
        return;
    }
    router.counts.records += 1;
    match kind {
        OLD_REPORT_V1 => router.querier.old_report(Version::One, group, now_ns),
        OLD_REPORT_V2 => router.querier.old_report(Version::Two, group, now_ns),
        OLD_LEAVE => router.querier.leave(group, now_ns),
        kind => router.querier.record(kind, group, &all, now_ns),
    }
    apply(engine, state, key);
}

/// Another router asks.
pub(crate) fn heard_query(
    engine: &mut Engine,
    state: &mut Membership,
    id: InterfaceId,
    from: IpAddr,
    query: &Query,
    suppress: bool,
    now_ns: u64,
) {
    let key = (id, Family::of(from));
    let nobody = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    let Some(router) = state.routers.map.get_mut(&key).filter(|_| !nobody.contains(&from)) else {
        return;
    };
    let Some(own) = router.from.filter(|own| *own != from) else { return };
    router.querier.heard_query(from, own, query, suppress, now_ns);
    apply(engine, state, key);
}

/// What has changed goes to proxies and to clients.
fn apply(engine: &mut Engine, state: &mut Membership, key: (InterfaceId, Family)) {
    let Some(router) = state.routers.map.get_mut(&key) else { return };
    let changed = router.querier.take_changed();
    if changed.is_empty() {
        return;
    }
    if wants(engine, &GROUP_MEMBERSHIP) {
        for group in &changed {
            notify_clients(engine, key.0, *group, router.querier.wanted(*group));
        }
    }
    proxy::follow(engine, state, key, &changed);
}

fn notify_clients(engine: &Engine, id: InterfaceId, group: IpAddr, wanted: Option<Wanted>) {
    let (filter, sources) = match wanted.unwrap_or(Wanted::Only(BTreeSet::new())) {
        Wanted::Only(sources) => ("include", sources),
        Wanted::AllBut(sources) => ("exclude", sources),
    };
    let sources: Vec<String> = sources.iter().map(ToString::to_string).collect();
    let name = EventValue::Text(engine.interface_name(id));
    let values = [
        name,
        EventValue::Ip(group),
        EventValue::Word(filter),
        EventValue::Text(sources.join(" ")),
    ];
    publish(engine, &GROUP_MEMBERSHIP, values);
}
