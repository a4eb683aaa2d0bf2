//! What is configured, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib, Path, Source, Target};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_tables::exact::{Limits, Seed};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::ip4::address::is_unicast;

use crate::node::{IN2OUT, OUT2IN, SLOW_PATH};
use crate::owner::{OWNER, Owner, SlowPath};
use crate::session::{Session, Writer};
use crate::tables::{Mapping, PoolAddress, Rules, Shared, Sides};
use quiver_translation::flow::End;

/// Sessions that may be enabled; address space is reserved for so many.
pub(crate) const SESSIONS_MAX: usize = 1 << 24;
/// Sessions when none are given, as in VPP.
pub(crate) const SESSIONS_DEFAULT: usize = 64_512;
/// Addresses of the pool: they are looked through when one is chosen.
pub(crate) const POOL_ADDRESSES_MAX: usize = 4_096;
/// Static mappings.
pub(crate) const MAPPINGS_MAX: usize = 65_536;
/// Sessions that one worker call looks at.
const PLACES_PER_CALL: usize = 4_096;
const ARC: &str = "ip4-unicast";
const REASSEMBLY: &str = "ip4-sv-reassembly-feature";
/// Who needs virtual reassembly, and who holds tables.
const WHO: &str = "nat44";
const LIMITS: Limits = Limits {
    what: "NAT44 session table",
    entries_max: SESSIONS_MAX,
    remedy: "enable fewer sessions",
};

/// What `nat44 plugin enable` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub sessions: usize,
    pub inside_vrf: u32,
    pub outside_vrf: u32,
}

/// The external side of a static mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum External {
    Address(Ipv4Addr),
    /// The first address of an interface.
    Interface(InterfaceId),
}

/// What a static mapping is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MappingName {
    pub external: External,
    /// The number of the protocol, 0 for all.
    pub protocol: u8,
    pub port: u16,
}

/// The local side of a static mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub address: Ipv4Addr,
    pub port: u16,
    /// The table, where it is not that of `inside-vrf`.
    pub vrf: Option<u32>,
}

/// The state of NAT44.
pub(crate) struct Nat44 {
    pub shared: Arc<Shared>,
    /// While disabled, from the first time on.
    writer: Option<Writer>,
    pub enabled: Option<Enabled>,
    /// The pool's addresses, with the table whose hosts alone may use them.
    pub pool: BTreeMap<Ipv4Addr, Option<u32>>,
    pub pool_interfaces: BTreeSet<InterfaceId>,
    pub mappings: BTreeMap<MappingName, Local>,
    pub sides: BTreeMap<InterfaceId, Sides>,
    pub forwarding: bool,
    /// Addresses that routes make the router's own, and their table.
    routes: BTreeSet<(u32, Ipv4Addr)>,
    /// The count of address changes that was acted upon.
    changes: u64,
}

fn disabled() -> Refusal {
    Refusal::new("NAT44 is not enabled").remedy("nat44 plugin enable sessions 64512")
}

impl Nat44 {
    pub fn new(shared: Arc<Shared>) -> Nat44 {
        Nat44 {
            shared,
            writer: None,
            enabled: None,
            pool: BTreeMap::new(),
            pool_interfaces: BTreeSet::new(),
            mappings: BTreeMap::new(),
            sides: BTreeMap::new(),
            forwarding: false,
            routes: BTreeSet::new(),
            changes: 0,
        }
    }

    /// The pool as ranges of addresses that follow one another.
    pub fn ranges(&self) -> Vec<(Ipv4Addr, Ipv4Addr, Option<u32>)> {
        let mut ranges: Vec<(Ipv4Addr, Ipv4Addr, Option<u32>)> = Vec::new();
        for (address, tenant) in &self.pool {
            match ranges.last_mut() {
                Some((_, last, of))
                    if of == tenant && u32::from(*last) + 1 == u32::from(*address) =>
                {
                    *last = *address;
                }
                _ => ranges.push((*address, *address, *tenant)),
            }
        }
        ranges
    }

    /// What it was enabled with.
    pub fn enabled(&self) -> Result<Enabled, Refusal> {
        self.enabled.ok_or_else(disabled)
    }
}

/// Do something with NAT44, which must be enabled.
pub(crate) fn with_enabled<R>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Engine, &mut Nat44) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    engine.with(|engine, nat: &mut Nat44| {
        nat.enabled()?;
        work(engine, nat)
    })
}

/// The small number of a table.
fn table_index(engine: &Engine, id: u32) -> Result<u32, Refusal> {
    let index = engine.get::<Fib>().and_then(|fib| fib.table_index(Family::Ip4, id));
    index.ok_or_else(|| {
        Refusal::new(format!("there is no IPv4 table {id}")).remedy(format!("ip table add {id}"))
    })
}

fn hold(engine: &mut Engine, id: u32, held: bool) {
    let Ok(index) = table_index(engine, id) else { return };
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    match held {
        true => fib.hold_table(Family::Ip4, index, WHO),
        false => fib.release_table(Family::Ip4, index, WHO),
    }
}

fn slow_path(engine: &Engine) -> Result<quiver_core::NodeId, Refusal> {
    engine.node_id(SLOW_PATH).ok_or_else(|| Refusal::new("the NAT44 nodes are not built in"))
}

/// Take memory for so many sessions, and let the owner have them.
pub(crate) fn enable(engine: &mut Engine, wanted: Enabled) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    table_index(engine, wanted.inside_vrf)?;
    table_index(engine, wanted.outside_vrf)?;
    engine.with(|engine, nat: &mut Nat44| {
        if let Some(enabled) = nat.enabled {
            if enabled == wanted {
                return Ok(());
            }
            return Err(Refusal::new(format!(
                "NAT44 is enabled for {} sessions already",
                enabled.sessions
            ))
            .remedy("nat44 plugin disable"));
        }
        let mut writer = match nat.writer.take() {
            Some(writer) => writer,
            None if nat.shared.table().is_some() => {
                return Err(Refusal::new("the worker that has the sessions did not answer")
                    .remedy("restart the router"));
            }
            None => {
                let writer = Writer::new(engine.epochs(), LIMITS, Seed::random());
                let writer = writer.map_err(|error| Refusal::new(error.to_string()))?;
                nat.shared.set_table(writer.table(), writer.objects().clone());
                writer
            }
        };
        if let Err(error) = writer.enable(wanted.sessions) {
            writer.disable();
            nat.writer = Some(writer);
            return Err(Refusal::new(error.to_string()).remedy("enable fewer sessions"));
        }
        let mut owner = Some(Box::new(Owner::new(writer, RandomState::new().hash_one(1))));
        let given = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner = owner.take());
        });
        given.map_err(|error| Refusal::new(error.to_string()))?;
        nat.enabled = Some(wanted);
        hold(engine, wanted.inside_vrf, true);
        hold(engine, wanted.outside_vrf, true);
        publish(engine, nat);
        Ok(())
    })
}

/// End all sessions, forget the configuration and give the memory back.
pub(crate) fn disable(engine: &mut Engine) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    with_enabled(engine, |engine, nat| {
        let all: Vec<_> = nat.sides.keys().copied().collect();
        for id in all {
            set_sides(engine, nat, id, Sides::default())?;
        }
        let taken = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner.take()).flatten()
        });
        let owner = taken.map_err(|error| Refusal::new(error.to_string()))?;
        // Every worker has ended the pass in which it may have seen the features.
        for worker in 0..engine.worker_count() {
            let waited = engine.wait_for_worker(WorkerId(worker as u16));
            waited.map_err(|error| Refusal::new(error.to_string()))?;
        }
        let enabled = nat.enabled()?;
        if let Some(mut owner) = owner {
            owner.writer.disable();
            nat.shared.note_sessions(&owner.writer);
            nat.writer = Some(owner.writer);
        }
        let vrfs = nat.pool.values().flatten().copied();
        let vrfs: Vec<_> = vrfs
            .chain(nat.mappings.values().filter_map(|local| local.vrf))
            .chain([enabled.inside_vrf, enabled.outside_vrf])
            .collect();
        vrfs.into_iter().for_each(|vrf| hold(engine, vrf, false));
        nat.pool.clear();
        nat.pool_interfaces.clear();
        nat.mappings.clear();
        nat.forwarding = false;
        publish(engine, nat);
        nat.enabled = None;
        Ok(())
    })
}

/// The first address of an interface.
fn address_of(engine: &Engine, id: InterfaceId) -> Option<Ipv4Addr> {
    let calls = engine.get::<InterfaceAddresses>()?;
    (calls.of)(engine, id).into_iter().find_map(|(address, _)| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
}

/// All addresses that interfaces have.
fn own_addresses(engine: &Engine) -> BTreeSet<Ipv4Addr> {
    let Some(calls) = engine.get::<InterfaceAddresses>() else { return BTreeSet::new() };
    let all = engine.all_interfaces().flat_map(|interface| (calls.of)(engine, interface.id));
    all.filter_map(|(address, _)| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
    .collect()
}

/// Give workers what is configured now, and make external addresses the router's own.
fn publish(engine: &mut Engine, nat: &mut Nat44) {
    let Some(Enabled { inside_vrf, outside_vrf, .. }) = nat.enabled else { return };
    let own = own_addresses(engine);
    let table = |id: u32| table_index(engine, id).unwrap_or(0);
    let (inside_table, outside_table) = (table(inside_vrf), table(outside_vrf));
    let mut rules =
        Rules { forwarding: nat.forwarding, inside_table, outside_table, ..Rules::default() };
    let given = nat.pool.iter().map(|(address, tenant)| (*address, tenant.map(table)));
    let of_interfaces = nat.pool_interfaces.iter().filter_map(|id| address_of(engine, *id));
    for (address, tenant) in given.chain(of_interfaces.map(|address| (address, None))) {
        rules.pool.push(PoolAddress { address: address.into(), tenant });
        rules.external.insert(address.into(), own.contains(&address));
    }
    for (name, local) in &nat.mappings {
        let address = match name.external {
            External::Address(address) => Some(address),
            External::Interface(id) => address_of(engine, id),
        };
        let Some(address) = address else { continue };
        let mapping = Mapping {
            local: End { address: local.address.into(), port: local.port },
            external: End { address: address.into(), port: name.port },
            table: local.vrf.map_or(inside_table, table),
        };
        let key = |end: End| (end.address, name.protocol, end.port);
        rules.external.insert(address.into(), own.contains(&address));
        rules.by_external.insert(key(mapping.external), mapping);
        rules.by_local.insert((mapping.table, key(mapping.local)), mapping);
    }
    let foreign = rules.external.iter().filter(|(_, is_own)| !**is_own);
    let wanted = foreign.map(|(address, _)| (outside_table, Ipv4Addr::from(*address))).collect();
    nat.shared.rules.publish(rules);
    set_routes(engine, nat, wanted);
}

/// Routes that make addresses the router's own, so that it answers ARP for them.
fn set_routes(engine: &mut Engine, nat: &mut Nat44, wanted: BTreeSet<(u32, Ipv4Addr)>) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let prefix = |address: &Ipv4Addr| IpPrefix::new((*address).into(), 32);
    for (table, address) in nat.routes.difference(&wanted) {
        let _ = fib.remove_route(*table, prefix(address), Source::Feature);
    }
    let mut now: BTreeSet<_> = nat.routes.intersection(&wanted).copied().collect();
    for place @ (table, address) in wanted.difference(&nat.routes) {
        let path = Path::new(Target::Local);
        if fib.add_route(*table, prefix(address), Source::Feature, &[path]).is_ok() {
            now.insert(*place);
        }
    }
    nat.routes = now;
}

/// Addresses of interfaces may have changed.
pub(crate) fn look(engine: &mut Engine) {
    let Some(calls) = engine.get::<InterfaceAddresses>().copied() else { return };
    let changes = (calls.changes)(engine);
    let is_due = |nat: &Nat44| nat.enabled.is_some() && nat.changes != changes;
    if engine.get::<Nat44>().is_some_and(is_due) {
        engine.with(|engine, nat: &mut Nat44| {
            nat.changes = changes;
            publish(engine, nat);
        });
    }
}

/// Add addresses to the pool.
pub(crate) fn add_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
    tenant: Option<u32>,
) -> Result<(), Refusal> {
    if let Some(tenant) = tenant {
        table_index(engine, tenant)?;
    }
    with_enabled(engine, |engine, nat| {
        let count = check_range(first, last)?;
        if nat.pool.len() + count > POOL_ADDRESSES_MAX {
            return Err(Refusal::new(format!(
                "the pool has {} addresses and may have {POOL_ADDRESSES_MAX}",
                nat.pool.len()
            )));
        }
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        if let Some(wrong) = range().find(|address| !is_unicast(*address)) {
            return Err(Refusal::new(format!("{wrong} is no address of a host")));
        }
        if let Some(known) = range().find(|address| nat.pool.contains_key(address)) {
            return Err(Refusal::new(format!("{known} is in the pool already"))
                .remedy("`show nat44 addresses` lists the pool"));
        }
        for address in range() {
            nat.pool.insert(address, tenant);
            tenant.into_iter().for_each(|tenant| hold(engine, tenant, true));
        }
        publish(engine, nat);
        Ok(())
    })
}

fn check_range(first: Ipv4Addr, last: Ipv4Addr) -> Result<usize, Refusal> {
    let (first_bits, last_bits) = (u32::from(first), u32::from(last));
    if first_bits > last_bits {
        return Err(Refusal::new(format!("{last} is before {first}")));
    }
    let count = (last_bits - first_bits) as usize + 1;
    if count > POOL_ADDRESSES_MAX {
        return Err(Refusal::new(format!(
            "{count} addresses are more than the {POOL_ADDRESSES_MAX} of a pool"
        )));
    }
    Ok(count)
}

/// Take addresses out of the pool. Their sessions end.
pub(crate) fn remove_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        check_range(first, last)?;
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        if let Some(missing) = range().find(|address| !nat.pool.contains_key(address)) {
            return Err(Refusal::new(format!("{missing} is not in the pool"))
                .remedy("`show nat44 addresses` lists the pool"));
        }
        for address in range() {
            let tenant = nat.pool.remove(&address).flatten();
            tenant.into_iter().for_each(|tenant| hold(engine, tenant, false));
        }
        publish(engine, nat);
        let (first, last) = (u32::from(first), u32::from(last));
        end_sessions(engine, move |session| {
            let address = session.flow(crate::session::Direction::OutToIn).destination.address;
            (first..=last).contains(&address)
        })
    })
}

/// Let the first address of an interface be in the pool, or no more.
pub(crate) fn set_pool_interface(
    engine: &mut Engine,
    id: InterfaceId,
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let changed =
            if on { nat.pool_interfaces.insert(id) } else { nat.pool_interfaces.remove(&id) };
        if !changed {
            let is = if on { "gives the pool its address already" } else { "gives the pool none" };
            return Err(Refusal::new(format!("{} {is}", engine.interface_name(id))));
        }
        publish(engine, nat);
        match address_of(engine, id).filter(|_| !on) {
            Some(address) => end_sessions(engine, move |session| {
                let flow = session.flow(crate::session::Direction::OutToIn);
                flow.destination.address == u32::from(address)
            }),
            None => Ok(()),
        }
    })
}

/// Let an interface be inside, outside, both or neither.
pub(crate) fn change_sides(
    engine: &mut Engine,
    id: InterfaceId,
    change: impl FnOnce(&mut Sides),
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let before = nat.sides.get(&id).copied().unwrap_or_default();
        let mut sides = before;
        change(&mut sides);
        if sides == before {
            let name = engine.interface_name(id);
            return Err(Refusal::new(format!("{name} is that already"))
                .remedy("`show nat44 interfaces` lists them"));
        }
        set_sides(engine, nat, id, sides)
    })
}

fn set_sides(
    engine: &mut Engine,
    nat: &mut Nat44,
    id: InterfaceId,
    sides: Sides,
) -> Result<(), Refusal> {
    let before = nat.sides.get(&id).copied().unwrap_or_default();
    let apply = |engine: &mut Engine, sides: Sides| -> Result<(), Refusal> {
        let any = sides.inside || sides.outside;
        engine.need_feature(id, ARC, REASSEMBLY, WHO, any)?;
        engine.set_feature(id, ARC, OUT2IN, sides.outside)?;
        engine.set_feature(id, ARC, IN2OUT, sides.inside)?;
        Ok(())
    };
    nat.shared.set_sides(id, sides);
    if let Err(error) = apply(engine, sides) {
        nat.shared.set_sides(id, before);
        apply(engine, before)?;
        return Err(error);
    }
    if sides == Sides::default() {
        nat.sides.remove(&id);
    } else {
        nat.sides.insert(id, sides);
    }
    Ok(())
}

/// Add a static mapping.
pub(crate) fn add_mapping(
    engine: &mut Engine,
    name: MappingName,
    local: Local,
) -> Result<(), Refusal> {
    if let Some(vrf) = local.vrf {
        table_index(engine, vrf)?;
    }
    with_enabled(engine, |engine, nat| {
        if !is_unicast(local.address) {
            return Err(Refusal::new(format!("{} is no address of a host", local.address)));
        }
        if nat.mappings.contains_key(&name) {
            return Err(Refusal::new("there is a static mapping of this external end already")
                .remedy("`show nat44 static mappings` lists them"));
        }
        let same_local =
            |(other, of): (&MappingName, &Local)| other.protocol == name.protocol && *of == local;
        if nat.mappings.iter().any(same_local) {
            return Err(Refusal::new("there is a static mapping of this local end already")
                .remedy("`show nat44 static mappings` lists them"));
        }
        if nat.mappings.len() >= MAPPINGS_MAX {
            return Err(Refusal::new(format!("there are {MAPPINGS_MAX} static mappings")));
        }
        nat.mappings.insert(name, local);
        local.vrf.into_iter().for_each(|vrf| hold(engine, vrf, true));
        publish(engine, nat);
        Ok(())
    })
}

/// Remove a static mapping. Its sessions end.
pub(crate) fn remove_mapping(engine: &mut Engine, name: MappingName) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let Some(local) = nat.mappings.remove(&name) else {
            return Err(Refusal::new("there is no such static mapping")
                .remedy("`show nat44 static mappings` lists them"));
        };
        local.vrf.into_iter().for_each(|vrf| hold(engine, vrf, false));
        publish(engine, nat);
        let address = u32::from(local.address);
        end_sessions(engine, move |session| {
            let flow = session.flow(crate::session::Direction::InToOut);
            session.flags().has(crate::session::Flags::STATIC)
                && flow.source.address == address
                && (local.port == 0 || flow.source.port == local.port)
                && (name.protocol == 0 || flow.protocol.0 == name.protocol)
        })
    })
}

/// Let packets from outside pass that nothing translates, or drop them.
pub(crate) fn set_forwarding(engine: &mut Engine, on: bool) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        nat.forwarding = on;
        publish(engine, nat);
        Ok(())
    })
}

/// End all sessions for which `ends` holds, some in each worker call.
pub(crate) fn end_sessions(
    engine: &mut Engine,
    ends: impl Fn(Session<'_>) -> bool + Send + Clone + 'static,
) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let mut looked = 0;
    loop {
        let ends = ends.clone();
        let places = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.end_where(PLACES_PER_CALL, &ends))
        });
        let places = places.map_err(|error| Refusal::new(error.to_string()))?;
        looked += PLACES_PER_CALL;
        if looked >= places.unwrap_or(0) {
            return Ok(());
        }
    }
}

/// An interface that goes takes its configuration along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, nat: &mut Nat44| {
        nat.sides.remove(&id);
        nat.shared.set_sides(id, Sides::default());
        let mut changed = nat.pool_interfaces.remove(&id);
        let gone = |name: &MappingName| name.external == External::Interface(id);
        let before = nat.mappings.len();
        nat.mappings.retain(|name, _| !gone(name));
        changed |= nat.mappings.len() != before;
        if changed {
            publish(engine, nat);
        }
    });
}
