//! What is configured, on the control thread.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_bindings::control::{
    address_changes, addresses_of, hold_table, refusal, table_index, wait_for_workers,
};
use quiver_bindings::{Bindings, Filtering, Limit, PoolAddress};
use quiver_control::Refusal;
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, Path, Source, Target};
use quiver_forwarding::next_hop_group::Hop;
use quiver_sessions::OWNER;
use quiver_tables::exact::{Limits, Seed};
use quiver_tables::prefix::IpPrefix;
use quiver_translation::versions::address::Prefix;

use crate::errors::PREFIX;
use crate::owner::{Owner, SlowPath};
use crate::session::{Session, Writer};
use crate::statics::StaticBinding;
use crate::tables::{PrefixRule, Rules, Shared, Sides};
use crate::translator::{IN2OUT, OUT2IN, SLOW_PATH};

/// Sessions that may be enabled; address space is reserved for so many.
pub(crate) const SESSIONS_MAX: usize = 1 << 24;
/// Sessions when none are given, as in NAT44.
pub(crate) const SESSIONS_DEFAULT: usize = 64_512;
/// Bindings, subscribers and permissions of so many sessions at most, and configured bindings.
const fn bindings_of(sessions: usize) -> usize {
    3 * sessions + STATIC_BINDINGS_MAX
}
/// Configured bindings.
pub(crate) const STATIC_BINDINGS_MAX: usize = 4_096;
/// Sessions that one worker call looks at.
pub(crate) const PLACES_PER_CALL: u32 = 4_096;
/// Who needs virtual reassembly, and who holds tables.
pub(crate) const WHO: &str = "nat64";
const SESSION_LIMITS: Limits = Limits {
    what: "NAT64 session table",
    entries_max: SESSIONS_MAX,
    remedy: "enable fewer sessions",
};
const BINDING_LIMITS: Limits = Limits {
    what: "NAT64 binding information base",
    entries_max: bindings_of(SESSIONS_MAX),
    remedy: "enable fewer sessions",
};
/// The arcs of both sides, their virtual reassembly and the node that translates.
const INSIDE: [&str; 3] = ["ip6-unicast", "ip6-sv-reassembly-feature", IN2OUT];
const OUTSIDE: [&str; 3] = ["ip4-unicast", "ip4-sv-reassembly-feature", OUT2IN];

/// What `nat64 plugin enable` said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub sessions: usize,
    pub outside_vrf: u32,
}

/// A prefix as an operator named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedPrefix {
    pub number: u8,
    pub prefix: Prefix,
    pub tenant: Option<u32>,
}

impl NamedPrefix {
    /// As a route has it.
    pub fn route(&self) -> IpPrefix {
        IpPrefix::new(Ipv6Addr::from_bits(self.prefix.bits()).into(), self.prefix.length())
    }
}

pub(crate) fn disabled() -> Refusal {
    Refusal::new("NAT64 is not enabled").remedy("nat64 plugin enable sessions 64512")
}

/// The state of NAT64.
pub(crate) struct Nat64 {
    pub shared: Arc<Shared>,
    /// While disabled, from the first time on.
    writers: Option<(Writer, Bindings)>,
    pub enabled: Option<Enabled>,
    pub prefixes: Vec<NamedPrefix>,
    /// The pool's addresses, with the table whose hosts alone may use them.
    pub pool: BTreeMap<Ipv4Addr, Option<u32>>,
    pub pool_interfaces: BTreeSet<InterfaceId>,
    pub statics: BTreeMap<StaticBinding, u32>,
    pub sides: BTreeMap<InterfaceId, Sides>,
    pub filtering: Filtering,
    pub limit: Option<Limit>,
    /// Addresses and prefixes that routes lead to NAT64, and their tables.
    routes: BTreeSet<(u32, IpAddr, u8)>,
    /// The count of address changes that was acted upon.
    changes: u64,
    /// How often the configuration was published.
    pub version: u64,
}

impl Nat64 {
    pub fn new(shared: Arc<Shared>) -> Nat64 {
        Nat64 {
            shared,
            writers: None,
            enabled: None,
            prefixes: Vec::new(),
            pool: BTreeMap::new(),
            pool_interfaces: BTreeSet::new(),
            statics: BTreeMap::new(),
            sides: BTreeMap::new(),
            filtering: Filtering::default(),
            limit: None,
            routes: BTreeSet::new(),
            changes: 0,
            version: 0,
        }
    }

    /// What it was enabled with.
    pub fn enabled(&self) -> Result<Enabled, Refusal> {
        self.enabled.ok_or_else(disabled)
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

    /// The tables of IPv6 that the configuration names, once for each time.
    fn tenants(&self) -> Vec<u32> {
        let prefixes = self.prefixes.iter().filter_map(|prefix| prefix.tenant);
        let pool = self.pool.values().copied().flatten();
        let statics = self.statics.values().copied().filter(|vrf| *vrf != 0);
        prefixes.chain(pool).chain(statics).collect()
    }
}

/// Do something with NAT64, which must be enabled.
pub(crate) fn with_enabled<R>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Engine, &mut Nat64) -> Result<R, Refusal>,
) -> Result<R, Refusal> {
    engine.with(|engine, nat: &mut Nat64| {
        nat.enabled()?;
        work(engine, nat)
    })
}

/// Let a table stay while NAT64 names it once more, or once less.
pub(crate) fn hold(engine: &mut Engine, family: Family, id: u32, held: bool) {
    hold_table(engine, family, id, WHO, held);
}

pub(crate) fn slow_path(engine: &Engine) -> Result<quiver_core::NodeId, Refusal> {
    engine.node_id(SLOW_PATH).ok_or_else(|| Refusal::new("the NAT64 nodes are not built in"))
}

fn new_writers(engine: &Engine) -> Result<(Writer, Bindings), Refusal> {
    let sessions = Writer::new(engine.epochs(), SESSION_LIMITS, Seed::random());
    let held = quiver_bindings::Writer::new(engine.epochs(), BINDING_LIMITS, Seed::random());
    Ok((sessions.map_err(refusal)?, Bindings::new(held.map_err(refusal)?)))
}

/// Take memory for so many sessions, and let the owner have them.
pub(crate) fn enable(engine: &mut Engine, wanted: Enabled) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    table_index(engine, Family::Ip4, wanted.outside_vrf)?;
    engine.with(|engine, nat: &mut Nat64| {
        if let Some(enabled) = nat.enabled {
            if enabled == wanted {
                return Ok(());
            }
            let what = format!("NAT64 is enabled for {} sessions already", enabled.sessions);
            return Err(Refusal::new(what).remedy("nat64 plugin disable"));
        }
        let (mut writer, mut held) = match nat.writers.take() {
            Some(writers) => writers,
            None if nat.shared.table().is_some() => {
                return Err(Refusal::new("the worker that has the sessions did not answer")
                    .remedy("restart the router"));
            }
            None => {
                let (writer, held) = new_writers(engine)?;
                let read = held.read.clone();
                nat.shared.set_table(writer.table(), writer.objects().clone(), read);
                (writer, held)
            }
        };
        let taken = writer.enable(wanted.sessions);
        if let Err(error) = taken.and_then(|()| held.writer.enable(bindings_of(wanted.sessions))) {
            writer.disable();
            held.disable();
            nat.writers = Some((writer, held));
            return Err(refusal(error).remedy("enable fewer sessions"));
        }
        let seed = RandomState::new().hash_one(1);
        let log = quiver_nat_log::open(engine);
        let mut owner = Some(Box::new(Owner::new(writer, held, seed, log)));
        let given = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner = owner.take());
        });
        given.map_err(refusal)?;
        nat.enabled = Some(wanted);
        hold(engine, Family::Ip4, wanted.outside_vrf, true);
        publish(engine, nat);
        Ok(())
    })
}

/// End all sessions, forget the configuration and give the memory back.
pub(crate) fn disable(engine: &mut Engine) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    with_enabled(engine, |_, _| Ok(()))?;
    quiver_standby_sessions::forget::<Nat64>(engine)?;
    with_enabled(engine, |engine, nat| {
        let all: Vec<_> = nat.sides.keys().copied().collect();
        for id in all {
            set_sides(engine, nat, id, Sides::default())?;
        }
        if quiver_nat_log::is_on(engine) {
            // Packets that came before make sessions until every worker has ended its pass.
            wait_for_workers(engine)?;
            end_sessions(engine, |_| true)?;
        }
        let tenants = nat.tenants();
        nat.prefixes.clear();
        nat.pool.clear();
        nat.pool_interfaces.clear();
        nat.statics.clear();
        nat.filtering = Filtering::default();
        nat.limit = None;
        publish(engine, nat);
        let taken = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner.take()).flatten()
        });
        let owner = taken.map_err(refusal)?;
        // Every worker has ended the pass in which it may have seen the features.
        wait_for_workers(engine)?;
        if let Some(owner) = owner {
            let Owner { mut writer, mut bindings, .. } = *owner;
            writer.disable();
            bindings.disable();
            nat.shared.note(&writer, &bindings);
            nat.writers = Some((writer, bindings));
        }
        tenants.into_iter().for_each(|vrf| hold(engine, Family::Ip6, vrf, false));
        hold(engine, Family::Ip4, nat.enabled()?.outside_vrf, false);
        nat.enabled = None;
        Ok(())
    })
}

/// Addresses of an interface of IPv4.
fn addresses4_of(engine: &Engine, id: InterfaceId) -> impl Iterator<Item = Ipv4Addr> {
    addresses_of(engine, id).into_iter().filter_map(|address| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
}

/// The first address of an interface.
pub(crate) fn address_of(engine: &Engine, id: InterfaceId) -> Option<Ipv4Addr> {
    addresses4_of(engine, id).next()
}

/// Give workers what is configured now, and make the pool the router's own.
pub(crate) fn publish(engine: &mut Engine, nat: &mut Nat64) {
    let Some(Enabled { outside_vrf, .. }) = nat.enabled else { return };
    let own: BTreeSet<Ipv4Addr> =
        engine.all_interfaces().flat_map(|of| addresses4_of(engine, of.id)).collect();
    let table6 = |id: u32| table_index(engine, Family::Ip6, id).unwrap_or(0);
    let outside_table = table_index(engine, Family::Ip4, outside_vrf).unwrap_or(0);
    let (filtering, limit) = (nat.filtering, nat.limit);
    let mut rules = Rules { outside_table, filtering, limit, ..Rules::default() };
    let mut wanted = BTreeSet::new();
    for named in &nat.prefixes {
        let NamedPrefix { number, prefix, tenant } = *named;
        rules.prefixes.push(PrefixRule { number, prefix, tenant: tenant.map(table6) });
        let address = Ipv6Addr::from_bits(prefix.bits()).into();
        wanted.insert((tenant.map_or(0, table6), address, prefix.length()));
    }
    rules.prefixes.sort_by_key(|rule| rule.tenant.is_none());
    let given = nat.pool.iter().map(|(address, tenant)| (*address, tenant.map(table6)));
    let of_interfaces = nat.pool_interfaces.iter().filter_map(|id| address_of(engine, *id));
    for (address, tenant) in given.chain(of_interfaces.map(|address| (address, None))) {
        rules.pool.push(PoolAddress { address: u32::from(address).into(), tenant });
        rules.external.insert(address.into(), own.contains(&address));
    }
    for StaticBinding { external, .. } in nat.statics.keys() {
        rules.external.entry((*external).into()).or_insert(own.contains(external));
    }
    let foreign = rules.external.iter().filter(|(_, is_own)| !**is_own);
    wanted.extend(foreign.map(|(address, _)| (outside_table, Ipv4Addr::from(*address).into(), 32)));
    nat.shared.rules.publish(rules);
    nat.version += 1;
    set_routes(engine, nat, wanted);
}

/// Routes that make the pool the router's own, so that it answers ARP for it, and those that lead
/// ICMPv6 errors of the router to NAT64.
fn set_routes(engine: &mut Engine, nat: &mut Nat64, wanted: BTreeSet<(u32, IpAddr, u8)>) {
    let node = engine.node_id(PREFIX);
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    for (table, address, length) in nat.routes.difference(&wanted) {
        let _ = fib.remove_route(*table, IpPrefix::new(*address, *length), Source::Feature);
    }
    let mut now: BTreeSet<_> = nat.routes.intersection(&wanted).copied().collect();
    for place @ (table, address, length) in wanted.difference(&nat.routes) {
        let target = match (address, node) {
            (IpAddr::V4(_), _) => Target::Local,
            (IpAddr::V6(_), Some(next)) => Target::Feature(Hop { next, index: 0 }),
            (IpAddr::V6(_), None) => continue,
        };
        let prefix = IpPrefix::new(*address, *length);
        if fib.add_route(*table, prefix, Source::Feature, &[Path::new(target)]).is_ok() {
            now.insert(*place);
        }
    }
    nat.routes = now;
}

/// Addresses of interfaces may have changed.
pub(crate) fn look(engine: &mut Engine) {
    let Some(changes) = address_changes(engine) else { return };
    let is_due = |nat: &Nat64| nat.enabled.is_some() && nat.changes != changes;
    if engine.get::<Nat64>().is_some_and(is_due) {
        engine.with(|engine, nat: &mut Nat64| {
            nat.changes = changes;
            publish(engine, nat);
        });
    }
}

/// Set the sides of an interface, and the features that follow.
fn set_sides(
    engine: &mut Engine,
    nat: &mut Nat64,
    id: InterfaceId,
    sides: Sides,
) -> Result<(), Refusal> {
    let before = nat.sides.get(&id).copied().unwrap_or_default();
    let apply = |engine: &mut Engine, sides: Sides| -> Result<(), Refusal> {
        for ([arc, reassembly, node], on) in [(INSIDE, sides.inside), (OUTSIDE, sides.outside)] {
            engine.need_feature(id, arc, reassembly, WHO, on)?;
            engine.set_feature(id, arc, node, on)?;
        }
        Ok(())
    };
    if let Err(error) = apply(engine, sides) {
        apply(engine, before)?;
        return Err(error);
    }
    match sides == Sides::default() {
        true => nat.sides.remove(&id),
        false => nat.sides.insert(id, sides),
    };
    Ok(())
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
                .remedy("`show nat64 interfaces` lists them"));
        }
        set_sides(engine, nat, id, sides)
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
                node.end_from(cx, (first, PLACES_PER_CALL), &ends)
            })
        });
        let places = places.map_err(refusal)?;
        quiver_nat_log::drain(engine);
        first += PLACES_PER_CALL;
        if first as usize >= places.unwrap_or(0) {
            return Ok(());
        }
    }
}

/// Do something with what the owner has.
pub(crate) fn with_owner<R: Send + 'static>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Owner) -> R + Send + 'static,
) -> Result<Option<R>, Refusal> {
    let node = slow_path(engine)?;
    let mut work = Some(work);
    let done = engine.call(OWNER, move |worker| {
        let visited = worker.visit::<SlowPath, _>(node, |node, _| {
            work.take().and_then(|work| node.with_owner(work))
        });
        visited.flatten()
    });
    done.map_err(refusal)
}

/// An interface that goes takes its configuration along.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    if change != InterfaceChange::Deleted {
        return;
    }
    engine.with(|engine, nat: &mut Nat64| {
        nat.sides.remove(&id);
        if nat.pool_interfaces.remove(&id) {
            publish(engine, nat);
        }
    });
}
