//! What is configured, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::{Family, Fib, Path, Source, Target};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_tables::exact::{Limits, Seed};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::ip4::address::is_unicast;

use crate::alg::Algs;
use crate::alg::expected::{self, Expected};
use crate::mappings::{self, Balanced, External, Identity, Local, MappingName, MappingOptions};
use crate::node::SLOW_PATH;
use crate::owned::Owner;
use crate::owner::{OWNER, SlowPath};
use crate::provider::{self, Settings};
use crate::session::{Session, Writer};
use crate::sides;
use crate::softwires::config::Dslite;
use crate::softwires::{self, SOFTWIRE};
use crate::tables::{PoolAddress, Rules, Shared, Sides};

/// Sessions that may be enabled; address space is reserved for so many.
pub(crate) const SESSIONS_MAX: usize = 1 << 24;
/// Sessions when none are given, as in VPP.
pub(crate) const SESSIONS_DEFAULT: usize = 64_512;
/// Addresses of the pool: they are looked through when one is chosen.
pub(crate) const POOL_ADDRESSES_MAX: usize = 4_096;
/// Sessions that one worker call looks at.
pub(crate) const PLACES_PER_CALL: u32 = 4_096;
/// Who needs virtual reassembly, and who holds tables.
pub(crate) const WHO: &str = "nat44";
const LIMITS: Limits = Limits {
    what: "NAT44 session table",
    entries_max: SESSIONS_MAX,
    remedy: "enable fewer sessions",
};

/// What `nat44 plugin enable` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub sessions: usize,
    /// Subscribers, port blocks, mappings, permissions and ends in quarantine at most.
    pub bindings: usize,
    pub inside_vrf: u32,
    pub outside_vrf: u32,
}

/// The state of NAT44.
pub(crate) struct Nat44 {
    pub shared: Arc<Shared>,
    /// While disabled, from the first time on.
    writer: Option<Writer>,
    pub binding_writer: Option<Writer>,
    pub expected_writer: Option<Writer>,
    /// Has the owner bindings?
    pub has_bindings: bool,
    pub enabled: Option<Enabled>,
    /// The pool's addresses, with the table whose hosts alone may use them.
    pub pool: BTreeMap<Ipv4Addr, Option<u32>>,
    pub pool_interfaces: BTreeSet<InterfaceId>,
    /// Addresses that remote hosts get (twice-NAT).
    pub twice_pool: BTreeSet<Ipv4Addr>,
    pub mappings: BTreeMap<MappingName, (Local, MappingOptions)>,
    pub balanced: BTreeMap<MappingName, Balanced>,
    pub identities: BTreeSet<Identity>,
    pub excluded: BTreeSet<(Ipv4Addr, u8)>,
    /// By VRF: those in which its destinations are looked for.
    pub vrf_tables: BTreeMap<u32, Vec<u32>>,
    pub settings: Settings,
    pub dslite: Dslite,
    pub sides: BTreeMap<InterfaceId, Sides>,
    pub forwarding: bool,
    /// Addresses that routes make the router's own, and their table.
    routes: BTreeSet<(u32, Ipv4Addr)>,
    /// The count of address changes that was acted upon.
    changes: u64,
    /// How often the configuration was published.
    pub version: u64,
}

/// Addresses in order as ranges of those that follow one another and are of the same kind.
pub(crate) fn ranges_of<K: PartialEq>(
    addresses: impl Iterator<Item = (Ipv4Addr, K)>,
) -> Vec<(Ipv4Addr, Ipv4Addr, K)> {
    let mut ranges: Vec<(Ipv4Addr, Ipv4Addr, K)> = Vec::new();
    for (address, kind) in addresses {
        match ranges.last_mut() {
            Some((_, last, of))
                if *of == kind && u32::from(*last).checked_add(1) == Some(address.into()) =>
            {
                *last = address;
            }
            _ => ranges.push((address, address, kind)),
        }
    }
    ranges
}

fn disabled() -> Refusal {
    Refusal::new("NAT44 is not enabled").remedy("nat44 plugin enable sessions 64512")
}

impl Nat44 {
    pub fn new(shared: Arc<Shared>) -> Nat44 {
        Nat44 {
            shared,
            writer: None,
            binding_writer: None,
            expected_writer: None,
            has_bindings: false,
            enabled: None,
            pool: BTreeMap::new(),
            pool_interfaces: BTreeSet::new(),
            twice_pool: BTreeSet::new(),
            mappings: BTreeMap::new(),
            balanced: BTreeMap::new(),
            identities: BTreeSet::new(),
            excluded: BTreeSet::new(),
            vrf_tables: BTreeMap::new(),
            settings: Settings::default(),
            dslite: Dslite::default(),
            sides: BTreeMap::new(),
            forwarding: false,
            routes: BTreeSet::new(),
            changes: 0,
            version: 0,
        }
    }

    /// The pool as ranges of addresses that follow one another.
    pub fn ranges(&self) -> Vec<(Ipv4Addr, Ipv4Addr, Option<u32>)> {
        ranges_of(self.pool.iter().map(|(address, tenant)| (*address, *tenant)))
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
pub(crate) fn table_index(engine: &Engine, id: u32) -> Result<u32, Refusal> {
    let index = engine.get::<Fib>().and_then(|fib| fib.table_index(Family::Ip4, id));
    index.ok_or_else(|| {
        Refusal::new(format!("there is no IPv4 table {id}")).remedy(format!("ip table add {id}"))
    })
}

pub(crate) fn hold(engine: &mut Engine, id: u32, held: bool) {
    let Ok(index) = table_index(engine, id) else { return };
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    match held {
        true => fib.hold_table(Family::Ip4, index, WHO),
        false => fib.release_table(Family::Ip4, index, WHO),
    }
}

pub(crate) fn slow_path(engine: &Engine) -> Result<quiver_core::NodeId, Refusal> {
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
        let expected = expected::take_writer(engine, nat)?;
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
            nat.expected_writer = Some(expected);
            return Err(Refusal::new(error.to_string()).remedy("enable fewer sessions"));
        }
        let algs = Algs::new(Expected::new(expected));
        if nat.shared.expected().is_none() {
            nat.shared.set_expected(algs.expected.read());
        }
        let (seed, log) = (RandomState::new().hash_one(1), quiver_nat_log::open(engine));
        let mut owner = Some(Box::new(Owner::new(writer, algs, seed, log)));
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
    with_enabled(engine, |_, _| Ok(()))?;
    crate::standby::forget(engine)?;
    with_enabled(engine, |engine, nat| {
        let all: Vec<_> = nat.sides.keys().copied().collect();
        for id in all {
            sides::set(engine, nat, id, Sides::default())?;
        }
        softwires::config::forget(engine, nat)?;
        if quiver_nat_log::is_on(engine) {
            // Packets that came before make sessions until every worker has ended its pass.
            wait_for_workers(engine)?;
            end_sessions(engine, |_| true)?;
            provider::end_bindings(engine, |_| true)?;
        }
        let taken = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner.take()).flatten()
        });
        let owner = taken.map_err(|error| Refusal::new(error.to_string()))?;
        // Every worker has ended the pass in which it may have seen the features.
        wait_for_workers(engine)?;
        let enabled = nat.enabled()?;
        if let Some(owner) = owner {
            let Owner { mut writer, bindings, mut algs, .. } = *owner;
            writer.disable();
            nat.shared.note_sessions(&writer);
            nat.shared.most_sessions.store(0, Ordering::Relaxed);
            nat.writer = Some(writer);
            algs.expected.writer.disable();
            nat.expected_writer = Some(algs.expected.writer);
            if let Some(mut bindings) = bindings {
                bindings.clear();
                nat.shared.note_bindings(&bindings);
                nat.binding_writer = Some(bindings.writer);
            }
        }
        nat.has_bindings = false;
        let vrfs = nat.pool.values().flatten().copied();
        let vrfs: Vec<_> = vrfs
            .chain(mappings::vrfs(nat))
            .chain(provider::vrfs(nat))
            .chain([enabled.inside_vrf, enabled.outside_vrf])
            .collect();
        vrfs.into_iter().for_each(|vrf| hold(engine, vrf, false));
        nat.pool.clear();
        nat.pool_interfaces.clear();
        nat.mappings.clear();
        nat.twice_pool.clear();
        nat.balanced.clear();
        nat.identities.clear();
        nat.excluded.clear();
        nat.vrf_tables.clear();
        nat.settings = Settings::default();
        nat.forwarding = false;
        publish(engine, nat);
        nat.enabled = None;
        Ok(())
    })
}

/// Wait until every worker has ended the pass that it is in.
pub(crate) fn wait_for_workers(engine: &mut Engine) -> Result<(), Refusal> {
    for worker in 0..engine.worker_count() {
        let waited = engine.wait_for_worker(WorkerId(worker as u16));
        waited.map_err(|error| Refusal::new(error.to_string()))?;
    }
    Ok(())
}

/// The first address of an interface.
pub(crate) fn address_of(engine: &Engine, id: InterfaceId) -> Option<Ipv4Addr> {
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
pub(crate) fn publish(engine: &mut Engine, nat: &mut Nat44) {
    let Some(Enabled { inside_vrf, outside_vrf, .. }) = nat.enabled else { return };
    let own = own_addresses(engine);
    let table = |id: u32| table_index(engine, id).unwrap_or(0);
    let (inside_table, outside_table) = (table(inside_vrf), table(outside_vrf));
    let mut rules =
        Rules { forwarding: nat.forwarding, inside_table, outside_table, ..Rules::default() };
    let given = nat.pool.iter().map(|(address, tenant)| (*address, tenant.map(table)));
    let of_interfaces = nat.pool_interfaces.iter().filter_map(|id| address_of(engine, *id));
    let of_b4s = nat.dslite.pool.iter().map(|address| (*address, Some(SOFTWIRE)));
    let given = given.chain(of_b4s);
    for (address, tenant) in given.chain(of_interfaces.map(|address| (address, None))) {
        rules.pool.push(PoolAddress { address: address.into(), tenant });
        rules.external.insert(address.into(), own.contains(&address));
    }
    mappings::fill(engine, nat, &mut rules, &|address| own.contains(&address));
    rules.twice_pool = nat.twice_pool.iter().map(|address| u32::from(*address)).collect();
    let mask = |length: u8| u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
    rules.excluded =
        nat.excluded.iter().map(|(address, n)| (u32::from(*address), mask(*n))).collect();
    let routes = nat.vrf_tables.iter();
    rules.vrf_routes =
        routes.map(|(vrf, to)| (table(*vrf), to.iter().map(|to| table(*to)).collect())).collect();
    rules.aftr = nat.dslite.aftr();
    rules.provider = nat.settings.provider(table);
    let foreign = rules.external.iter().filter(|(_, is_own)| !**is_own);
    let wanted = foreign.map(|(address, _)| (outside_table, Ipv4Addr::from(*address))).collect();
    nat.shared.rules.publish(rules);
    nat.version += 1;
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
        let has = |nat: &Nat44, address: &Ipv4Addr| {
            nat.pool.contains_key(address) || nat.dslite.pool.contains(address)
        };
        if let Some(known) = range().find(|address| has(nat, address)) {
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

pub(crate) fn check_range(first: Ipv4Addr, last: Ipv4Addr) -> Result<usize, Refusal> {
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
        end_of_addresses(engine, first, last)
    })
}

/// End the sessions and bindings of external addresses.
pub(crate) fn end_of_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
) -> Result<(), Refusal> {
    let (first, last) = (u32::from(first), u32::from(last));
    end_sessions(engine, move |session| {
        let address = session.flow(crate::session::Direction::OutToIn).destination.address;
        (first..=last).contains(&address)
    })?;
    provider::end_bindings(engine, move |binding| {
        let flow = binding.flow(crate::session::Direction::OutToIn);
        binding.kind() != crate::bindings::Kind::Subscriber
            && (first..=last).contains(&flow.destination.address)
    })
}

/// Add addresses to the twice-NAT pool, or remove them. Their sessions end.
pub(crate) fn set_twice_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let count = check_range(first, last)?;
        if on && nat.twice_pool.len() + count > POOL_ADDRESSES_MAX {
            return Err(Refusal::new(format!(
                "the twice-NAT pool may have {POOL_ADDRESSES_MAX} addresses"
            )));
        }
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        if let Some(wrong) = range().find(|address| on && !is_unicast(*address)) {
            return Err(Refusal::new(format!("{wrong} is no address of a host")));
        }
        if let Some(wrong) = range().find(|address| nat.twice_pool.contains(address) == on) {
            let is = if on { "in the twice-NAT pool already" } else { "not in the twice-NAT pool" };
            return Err(Refusal::new(format!("{wrong} is {is}"))
                .remedy("`show nat44 addresses` lists the pool"));
        }
        for address in range() {
            match on {
                true => nat.twice_pool.insert(address),
                false => nat.twice_pool.remove(&address),
            };
        }
        publish(engine, nat);
        if on {
            return Ok(());
        }
        let (first, last) = (u32::from(first), u32::from(last));
        end_sessions(engine, move |session| {
            let flow = session.flow(crate::session::Direction::InToOut);
            session.flags().has(crate::session::Flags::TWICE)
                && (first..=last).contains(&flow.destination.address)
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
    let mut first = 0;
    loop {
        let ends = ends.clone();
        let places = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, cx| {
                node.end_from(node.rules(cx), cx.now_ns, (first, PLACES_PER_CALL), &ends)
            })
        });
        let places = places.map_err(|error| Refusal::new(error.to_string()))?;
        quiver_nat_log::drain(engine);
        first += PLACES_PER_CALL;
        if first as usize >= places.unwrap_or(0) {
            return Ok(());
        }
    }
}

/// An interface that goes takes its configuration along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change == InterfaceChange::Created {
        engine.with(|engine, nat: &mut Nat44| sides::follow_new(engine, nat, id));
    }
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, nat: &mut Nat44| {
        let gone = nat.sides.remove(&id);
        if gone.is_some_and(|sides| sides.output) {
            sides::spread(engine, nat, id);
        }
        nat.shared.set_sides(id, Sides::default());
        let mut changed = nat.pool_interfaces.remove(&id);
        let gone = |name: &MappingName| name.external == External::Interface(id);
        let count = |nat: &Nat44| nat.mappings.len() + nat.balanced.len() + nat.identities.len();
        let before = count(nat);
        nat.mappings.retain(|name, _| !gone(name));
        nat.balanced.retain(|name, _| !gone(name));
        nat.identities.retain(|identity| !gone(&identity.name));
        changed |= count(nat) != before;
        if changed {
            publish(engine, nat);
        }
    });
}
