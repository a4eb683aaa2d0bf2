//! Aggregates of links, and which of their links are alive. The owner of an aggregate (a bond)
//! says which members are ready to carry frames; a protocol that watches each member (BFD of
//! RFC 7130) says which of these are alive. Neither knows the other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quiver_core::{Engine, InterfaceId};

/// The claims of nodes that take frames of members themselves: the UDP port of a protocol that
/// watches members. Frames begin with their Ethernet header.
pub const MEMBER_UDP_PORT: &str = "member-udp-port";

/// A protocol that watches the members of an aggregate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The addresses that it receives at, one of each family at most.
    pub addresses: WatchedAddresses,
    /// The members that it finds alive.
    pub alive: BTreeSet<InterfaceId>,
}

/// The addresses at which a protocol that watches members receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchedAddresses {
    /// Of IPv4.
    pub ip4: Option<Ipv4Addr>,
    /// Of IPv6.
    pub ip6: Option<Ipv6Addr>,
}

impl WatchedAddresses {
    /// Receive at this address, too.
    pub fn add(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.ip4 = Some(address),
            IpAddr::V6(address) => self.ip6 = Some(address),
        }
    }
}

/// An aggregate as its two sides see it.
#[derive(Debug, Default)]
struct Aggregate {
    ready: Vec<InterfaceId>,
    watch: Option<Watch>,
}

/// What has changed of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateChange {
    /// Which members are ready.
    Ready,
    /// Whether members are watched, or which of them are alive.
    Watch,
}

/// Called after a change of an aggregate.
pub type AggregateObserver = fn(&mut Engine, InterfaceId, AggregateChange);

/// All aggregates, by interface.
#[derive(Debug, Default)]
pub struct Aggregates {
    list: BTreeMap<InterfaceId, Aggregate>,
    observers: Vec<AggregateObserver>,
}

/// Call `observer` after every change of any aggregate.
pub fn on_change(engine: &mut Engine, observer: AggregateObserver) {
    if let Some(aggregates) = engine.get_mut::<Aggregates>() {
        aggregates.observers.push(observer);
    }
}

fn notify(engine: &mut Engine, id: InterfaceId, change: AggregateChange) {
    let observers = engine.get::<Aggregates>().map(|aggregates| aggregates.observers.clone());
    observers.into_iter().flatten().for_each(|observer| observer(engine, id, change));
}

/// Is the interface an aggregate?
pub fn is_aggregate(engine: &Engine, id: InterfaceId) -> bool {
    engine.get::<Aggregates>().is_some_and(|aggregates| aggregates.list.contains_key(&id))
}

/// The owner says which members are ready to carry frames; an interface becomes an aggregate by it.
pub fn set_ready(engine: &mut Engine, id: InterfaceId, members: &[InterfaceId]) {
    let Some(aggregates) = engine.get_mut::<Aggregates>() else { return };
    let aggregate = aggregates.list.entry(id).or_default();
    if aggregate.ready != members {
        aggregate.ready = members.to_vec();
        notify(engine, id, AggregateChange::Ready);
    }
}

/// The aggregate is gone, and what was said of it.
pub fn remove(engine: &mut Engine, id: InterfaceId) {
    if let Some(aggregates) = engine.get_mut::<Aggregates>() {
        aggregates.list.remove(&id);
    }
}

/// The members that are ready to carry frames.
pub fn ready(engine: &Engine, id: InterfaceId) -> &[InterfaceId] {
    let aggregate = engine.get::<Aggregates>().and_then(|aggregates| aggregates.list.get(&id));
    aggregate.map_or(&[], |aggregate| &aggregate.ready)
}

/// A protocol watches the members, or does so no more. An aggregate that is gone is not watched.
pub fn set_watch(engine: &mut Engine, id: InterfaceId, watch: Option<Watch>) {
    let aggregates = engine.get_mut::<Aggregates>();
    let Some(aggregate) = aggregates.and_then(|all| all.list.get_mut(&id)) else { return };
    if aggregate.watch != watch {
        aggregate.watch = watch;
        notify(engine, id, AggregateChange::Watch);
    }
}

/// What the protocol that watches the members says of them, if one does.
pub fn watch(engine: &Engine, id: InterfaceId) -> Option<&Watch> {
    engine.get::<Aggregates>()?.list.get(&id)?.watch.as_ref()
}

/// May frames leave by a member, as far as the protocol that watches it knows?
pub fn is_alive(engine: &Engine, id: InterfaceId, member: InterfaceId) -> bool {
    watch(engine, id).is_none_or(|watch| watch.alive.contains(&member))
}
