//! What is configured, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use quiver_bindings::control::{address_changes, addresses_of, hold_table, refusal, table_index};
use quiver_bindings::{Bindings, Filtering, Limit, PoolAddress};
use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, NodeId};
use quiver_forwarding::fib::{Family, Fib, Path, Source, Target};
use quiver_sessions::OWNER;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::ip6::address::is_link_local;

use crate::owner::Owner;
use crate::session::{Session, Writer};
use crate::slow_path::SlowPath;
use crate::statics::{StaticMapping, WholeMapping};
use crate::tables::{Rules, Shared, WholeHost};
use crate::translator::{ARC, IN2OUT, OUT2IN, SLOW_PATH};

/// Sessions when none are given, as in NAT44.
pub(crate) const SESSIONS_DEFAULT: usize = 64_512;
/// Configured mappings.
pub(crate) const STATIC_MAPPINGS_MAX: usize = 4_096;
/// Sessions that one worker call looks at.
const PLACES_PER_CALL: usize = 4_096;
/// Who needs virtual reassembly, and who holds tables.
const WHO: &str = "nat66";
/// Virtual reassembly in the arc of both nodes.
const REASSEMBLY: &str = "ip6-sv-reassembly-feature";
/// What `nat66 plugin enable` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub sessions: usize,
    pub outside_vrf: u32,
}

/// The side of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inside,
    Outside,
}

impl Place {
    /// Its word in commands.
    pub fn word(self) -> &'static str {
        match self {
            Place::Inside => "in",
            Place::Outside => "out",
        }
    }

    fn node(self) -> &'static str {
        match self {
            Place::Inside => IN2OUT,
            Place::Outside => OUT2IN,
        }
    }
}

/// The state of NAT66.
pub(crate) struct Nat66 {
    pub shared: Arc<Shared>,
    /// While disabled, from the first time on.
    pub writers: Option<(Writer, Bindings)>,
    pub enabled: Option<Enabled>,
    /// The pool's addresses, with the table whose hosts alone may use them.
    pub pool: BTreeMap<Ipv6Addr, Option<u32>>,
    pub pool_interfaces: BTreeSet<InterfaceId>,
    pub statics: BTreeMap<StaticMapping, u32>,
    pub whole: BTreeMap<WholeMapping, u32>,
    pub places: BTreeMap<InterfaceId, Place>,
    pub filtering: Filtering,
    pub limit: Option<Limit>,
    /// Addresses that are the router's own for NAT66, and their table.
    routes: BTreeSet<(u32, Ipv6Addr)>,
    /// The count of address changes that was acted upon.
    changes: u64,
}

impl Nat66 {
    pub fn new(shared: Arc<Shared>) -> Nat66 {
        Nat66 {
            shared,
            writers: None,
            enabled: None,
            pool: BTreeMap::new(),
            pool_interfaces: BTreeSet::new(),
            statics: BTreeMap::new(),
            whole: BTreeMap::new(),
            places: BTreeMap::new(),
            filtering: Filtering::default(),
            limit: None,
            routes: BTreeSet::new(),
            changes: 0,
        }
    }

    /// What it was enabled with.
    pub fn enabled(&self) -> Result<Enabled, Refusal> {
        self.enabled.ok_or_else(|| {
            Refusal::new("NAT66 is not enabled").remedy("nat66 plugin enable sessions 64512")
        })
    }

    /// The pool as ranges of addresses that follow one another.
    pub fn ranges(&self) -> Vec<(Ipv6Addr, Ipv6Addr, Option<u32>)> {
        let mut ranges: Vec<(Ipv6Addr, Ipv6Addr, Option<u32>)> = Vec::new();
        for (address, tenant) in &self.pool {
            match ranges.last_mut() {
                Some((_, last, of)) if of == tenant && last.to_bits() + 1 == address.to_bits() => {
                    *last = *address;
                }
                _ => ranges.push((*address, *address, *tenant)),
            }
        }
        ranges
    }

    /// Interfaces of a side.
    fn of_place(&self, wanted: Place) -> Vec<InterfaceId> {
        let all = self.places.iter().filter(|(_, place)| **place == wanted);
        all.map(|(id, _)| *id).collect()
    }

    /// The tables of hosts that the configuration names, once for each time.
    pub fn tenants(&self) -> Vec<u32> {
        let statics = self.statics.values().chain(self.whole.values()).copied();
        let statics = statics.filter(|vrf| *vrf != 0);
        self.pool.values().copied().flatten().chain(statics).collect()
    }
}

/// Do something with NAT66, which must be enabled.
pub(crate) fn with_enabled<R>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Engine, &mut Nat66) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    engine.with(|engine, nat: &mut Nat66| {
        nat.enabled()?;
        work(engine, nat)
    })
}

/// Small number of a table of hosts.
pub(crate) fn table6(engine: &Engine, id: u32) -> Result<u32, Refusal> {
    table_index(engine, Family::Ip6, id)
}

/// Let a table of hosts stay while NAT66 names it once more, or once less.
pub(crate) fn hold(engine: &mut Engine, id: u32, held: bool) {
    hold_table(engine, Family::Ip6, id, WHO, held);
}

pub(crate) fn slow_path(engine: &Engine) -> Result<NodeId, Refusal> {
    engine.node_id(SLOW_PATH).ok_or_else(|| Refusal::new("the NAT66 nodes are not built in"))
}

/// Addresses of an interface of IPv6 that packets of others may come to.
fn addresses6_of(engine: &Engine, id: InterfaceId) -> impl Iterator<Item = Ipv6Addr> {
    addresses_of(engine, id).into_iter().filter_map(|address| match address {
        IpAddr::V6(address) if !is_link_local(address) => Some(address),
        _ => None,
    })
}

/// The first address of an interface that others reach.
pub(crate) fn address_of(engine: &Engine, id: InterfaceId) -> Option<Ipv6Addr> {
    addresses6_of(engine, id).next()
}

/// Give workers what is configured now, and make the external addresses the router's own.
pub(crate) fn publish(engine: &mut Engine, nat: &mut Nat66) {
    let Some(Enabled { outside_vrf, .. }) = nat.enabled else { return };
    let own: BTreeSet<Ipv6Addr> =
        engine.all_interfaces().flat_map(|of| addresses6_of(engine, of.id)).collect();
    let table = |id: u32| table6(engine, id).unwrap_or(0);
    let mut rules = Rules {
        inside: nat.of_place(Place::Inside),
        outside: nat.of_place(Place::Outside),
        outside_table: table(outside_vrf),
        filtering: nat.filtering,
        limit: nat.limit,
        ..Rules::default()
    };
    let given = nat.pool.iter().map(|(address, tenant)| (*address, tenant.map(table)));
    let of_interfaces = nat.pool_interfaces.iter().filter_map(|id| address_of(engine, *id));
    for (address, tenant) in given.chain(of_interfaces.map(|address| (address, None))) {
        rules.pool.push(PoolAddress { address: address.to_bits(), tenant });
        rules.external.insert(address.to_bits(), own.contains(&address));
    }
    for StaticMapping { external, .. } in nat.statics.keys() {
        rules.external.entry(external.to_bits()).or_insert(own.contains(external));
    }
    for (WholeMapping { local, external }, vrf) in &nat.whole {
        let host = WholeHost { table: table(*vrf), address: local.to_bits() };
        rules.whole.insert(host, external.to_bits());
        rules.whole_hosts.insert(external.to_bits(), host);
        rules.external.insert(external.to_bits(), own.contains(external));
    }
    let foreign = rules.external.iter().filter(|(_, is_own)| !**is_own);
    let foreign = foreign.map(|(address, _)| (rules.outside_table, Ipv6Addr::from_bits(*address)));
    let wanted = foreign.collect();
    nat.shared.rules.publish(rules);
    set_routes(engine, nat, wanted);
}

/// Routes that make external addresses the router's own, so that it answers neighbour solicitations
/// for them.
fn set_routes(engine: &mut Engine, nat: &mut Nat66, wanted: BTreeSet<(u32, Ipv6Addr)>) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let prefix = |address: Ipv6Addr| IpPrefix::new(address.into(), 128);
    for (table, address) in nat.routes.difference(&wanted) {
        let _ = fib.remove_route(*table, prefix(*address), Source::Feature);
    }
    let mut now: BTreeSet<_> = nat.routes.intersection(&wanted).copied().collect();
    for place @ (table, address) in wanted.difference(&nat.routes) {
        let paths = [Path::new(Target::Local)];
        if fib.add_route(*table, prefix(*address), Source::Feature, &paths).is_ok() {
            now.insert(*place);
        }
    }
    nat.routes = now;
}

/// Addresses of interfaces may have changed.
pub(crate) fn look(engine: &mut Engine) {
    let Some(changes) = address_changes(engine) else { return };
    let is_due = |nat: &Nat66| nat.enabled.is_some() && nat.changes != changes;
    if engine.get::<Nat66>().is_some_and(is_due) {
        engine.with(|engine, nat: &mut Nat66| {
            nat.changes = changes;
            publish(engine, nat);
        });
    }
}

/// Let an interface be on a side, or no more, with the features that follow.
pub(crate) fn set_place(
    engine: &mut Engine,
    nat: &mut Nat66,
    id: InterfaceId,
    place: Place,
    on: bool,
) -> Result<(), Refusal> {
    engine.need_feature(id, ARC, REASSEMBLY, WHO, on)?;
    if let Err(error) = engine.set_feature(id, ARC, place.node(), on) {
        engine.need_feature(id, ARC, REASSEMBLY, WHO, !on)?;
        return Err(error.into());
    }
    match on {
        true => nat.places.insert(id, place),
        false => nat.places.remove(&id),
    };
    publish(engine, nat);
    Ok(())
}

/// Let an interface be on a side, or no more.
///
/// # Errors
/// It is on that side already, or on the other one; or it is not on that side.
pub(crate) fn change_place(
    engine: &mut Engine,
    id: InterfaceId,
    place: Place,
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let name = engine.interface_name(id);
        match (nat.places.get(&id), on) {
            (Some(is), true) if *is == place => Ok(()),
            (Some(is), true) => {
                let word = is.word();
                Err(Refusal::new(format!("{name} is on the side `{word}` of NAT66"))
                    .remedy(format!("set interface nat66 {word} {name} del")))
            }
            (Some(is), false) if *is == place => set_place(engine, nat, id, place, false),
            (_, false) => {
                let word = place.word();
                Err(Refusal::new(format!("{name} is not on the side `{word}` of NAT66"))
                    .remedy("`show nat66 interfaces` lists them"))
            }
            (None, true) => set_place(engine, nat, id, place, true),
        }
    })
}

/// End all sessions for which `ends` holds, some in each worker call.
pub(crate) fn end_sessions(
    engine: &mut Engine,
    ends: impl Fn(Session<'_>) -> bool + Send + Clone + 'static,
) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let mut first = 0;
    loop {
        let ends = ends.clone();
        let places = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| {
                node.end_from((first, PLACES_PER_CALL as u32), &ends)
            })
        });
        let places = places.map_err(refusal)?;
        first += PLACES_PER_CALL as u32;
        if first as usize >= places.unwrap_or(0) {
            return Ok(());
        }
    }
}

/// Do something with what the owner has.
pub(crate) fn with_owner<R: Send + 'static>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Owner) -> R + Send + 'static,
) -> Result<R, Refusal> {
    let node = slow_path(engine)?;
    let mut work = Some(work);
    let done = engine.call(OWNER, move |worker| {
        let visited = worker.visit::<SlowPath, _>(node, |node, _| {
            work.take().and_then(|work| node.with_owner(work))
        });
        visited.flatten()
    });
    let done = done.map_err(refusal)?;
    done.ok_or_else(|| Refusal::new("the worker that has the sessions did not answer"))
}

/// An interface that goes takes its configuration along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, nat: &mut Nat66| {
        let was_placed = nat.places.remove(&id).is_some();
        if nat.pool_interfaces.remove(&id) || was_placed {
            publish(engine, nat);
        }
    });
}
