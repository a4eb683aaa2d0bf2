//! Mappings in force: the tunnel of each instance, the locators that it reaches, and routes to EIDs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use quiver_control::IpPrefix;
use quiver_core::control::interfaces::{InterfaceChange, InterfaceError};
use quiver_core::{Engine, InterfaceId};
use quiver_encap::tunnel::{self, NextHop, TunnelConfig, TunnelError, Tunnels, UdpConfig};
use quiver_forwarding::fib::{Family, Fib, FibError, Path, PathState, Source, Target};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::prefix::{IpPrefix as RoutePrefix, Prefix};
use quiver_wire::ip6::address::is_link_local;
use quiver_wire::lisp::DATA_PORT;

use crate::database::{Action, Database, Eid, LOCATORS_MAX, Locator, Mapping, usable};
use crate::header::{Lisp, LispExtra};
use crate::request;

/// Who holds the tables of instances, in the refusal to delete them.
const HOLDER: &str = "LISP";

/// Why something cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum LispError {
    /// The tunnel.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// The FIB.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The interface.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// Nothing is known of it.
    #[error("LISP is not built in")]
    NotBuiltIn,
}

/// A route that was made for an EID.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Installed {
    table: u32,
    locators: Vec<IpAddr>,
    paths: Vec<Path>,
}

/// The instance of a tunnel.
#[derive(Clone, Copy, Debug)]
struct Instance {
    interface: InterfaceId,
    extra: LispExtra,
}

/// LISP on the control thread.
#[derive(Default)]
pub struct State {
    /// What is configured and learned.
    pub database: Database,
    instances: BTreeMap<u32, Instance>,
    installed: BTreeMap<Eid, Installed>,
    /// How many EIDs of an instance lead to a locator.
    peers: BTreeMap<(u32, IpAddr), usize>,
    /// Locators to which no route leads now.
    unreachable: BTreeSet<(u32, IpAddr)>,
    sources: [Option<IpAddr>; 2],
}

/// The prefix of a route.
fn route_prefix(prefix: IpPrefix) -> RoutePrefix {
    match prefix.address {
        IpAddr::V4(address) => RoutePrefix::V4(Prefix::new(address.to_bits(), prefix.length)),
        IpAddr::V6(address) => RoutePrefix::V6(Prefix::new(address.to_bits(), prefix.length)),
    }
}

impl State {
    /// The interface of an instance.
    pub fn interface(&self, vni: u32) -> Option<InterfaceId> {
        self.instances.get(&vni).map(|instance| instance.interface)
    }

    /// The instances that have a tunnel.
    pub fn instances(&self) -> impl Iterator<Item = (u32, InterfaceId)> {
        self.instances.iter().map(|(vni, instance)| (*vni, instance.interface))
    }

    /// The local locators that send.
    pub fn sources(&self) -> [Option<IpAddr>; 2] {
        self.sources
    }

    /// Is there a route to an EID?
    pub fn is_installed(&self, eid: &Eid) -> bool {
        self.installed.contains_key(eid)
    }
}

/// The addresses by which this router sends: of the locators with the lowest priority.
fn local_sources(database: &Database, fib: &Fib) -> [Option<IpAddr>; 2] {
    if !database.is_enabled {
        return [None; 2];
    }
    let all = database.locator_sets.values().flatten();
    let mut locators: Vec<_> = all.map(|(on, locator)| (locator.priority, *on)).collect();
    locators.sort();
    let find = |family: Family| {
        let addresses = locators.iter().flat_map(|(_, on)| fib.addresses(*on));
        let mut addresses = addresses.map(|(address, _)| address);
        addresses.find(|address| Family::of(*address) == family && !is_local(*address))
    };
    [find(Family::Ip4), find(Family::Ip6)]
}

fn is_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if is_link_local(address))
}

/// The locators of a set, as others see them: the addresses of its interfaces.
pub fn locators_of(engine: &Engine, database: &Database, set: &str) -> Vec<Locator> {
    let Some(fib) = engine.get::<Fib>() else { return Vec::new() };
    let set = database.locator_sets.get(set).into_iter().flatten();
    let locators = set.flat_map(|(on, local)| {
        let own = fib.addresses(*on).map(|(address, _)| address);
        own.filter(|address| !is_local(*address)).map(|address| Locator {
            address,
            priority: local.priority,
            weight: local.weight,
        })
    });
    let mut locators: Vec<_> = locators.collect();
    locators.sort();
    locators.truncate(LOCATORS_MAX);
    locators
}

/// The small numbers of the tables of an instance, which are made where they are missing.
fn tables(fib: &mut Fib, vrf: u32) -> Result<[u32; 2], FibError> {
    let mut table = |family| match fib.table_index(family, vrf) {
        Some(index) => Ok(index),
        None => fib.add_table(family, vrf),
    };
    Ok([table(Family::Ip4)?, table(Family::Ip6)?])
}

/// Make the tunnel of an instance.
fn add_instance(
    engine: &mut Engine,
    state: &mut State,
    vni: u32,
    vrf: u32,
) -> Result<(), LispError> {
    let fib = engine.get_mut::<Fib>().ok_or(LispError::NotBuiltIn)?;
    let tables = tables(fib, vrf)?;
    let extra = LispExtra { sources: state.sources, tables, is_gpe: !state.database.is_plain };
    let config = TunnelConfig {
        instance: Some(vni),
        source: Ipv4Addr::UNSPECIFIED.into(),
        destination: None,
        table: 0,
        key: Some(vni),
        carries_frames: false,
        hop_limit: None,
        dscp: None,
        udp: Some(UdpConfig {
            is_group: false,
            local_port: DATA_PORT,
            remote_port: DATA_PORT,
            // RFC 9300 §5.3.
            zero_checksum: true,
            group_interface: None,
            input: None,
            is_layer3: false,
        }),
        extra,
    };
    let interface = tunnel::create::<Lisp>(engine, config)?;
    engine.set_admin_up(interface, true)?;
    if let Some(fib) = engine.get_mut::<Fib>() {
        fib.hold_table(Family::Ip4, tables[0], HOLDER);
        fib.hold_table(Family::Ip6, tables[1], HOLDER);
    }
    state.instances.insert(vni, Instance { interface, extra });
    Ok(())
}

/// The tunnel of an instance goes, and with it the routes by it.
fn remove_instance(engine: &mut Engine, state: &mut State, vni: u32) -> Result<(), LispError> {
    for eid in of_instance(state, vni) {
        uninstall(engine, state, eid);
    }
    let Some(instance) = state.instances.remove(&vni) else { return Ok(()) };
    engine.delete_interface(instance.interface)?;
    for set in state.database.locator_sets.values_mut() {
        set.remove(&instance.interface);
    }
    if let Some(fib) = engine.get_mut::<Fib>() {
        fib.release_table(Family::Ip4, instance.extra.tables[0], HOLDER);
        fib.release_table(Family::Ip6, instance.extra.tables[1], HOLDER);
    }
    Ok(())
}

/// The EIDs of an instance that have a route or could have one.
fn of_instance(state: &State, vni: u32) -> Vec<Eid> {
    let mapped = state.database.mapped();
    let installed = state.installed.keys().copied();
    let mut all: Vec<Eid> = mapped.into_iter().chain(installed).collect();
    all.retain(|eid| eid.vni == vni);
    all.sort();
    all.dedup();
    all
}

/// Let the route to an EID be what its mapping says.
fn install(engine: &mut Engine, state: &mut State, eid: Eid) -> Result<(), LispError> {
    let (paths, locators) = wanted(engine, state, eid);
    let instance = state.instances.get(&eid.vni).copied();
    let (Some(instance), false) = (instance, paths.is_empty()) else {
        uninstall(engine, state, eid);
        return Ok(());
    };
    let family = Family::of(eid.prefix.address);
    let table = instance.extra.tables[family as usize];
    let new = Installed { table, locators, paths };
    if state.installed.get(&eid) == Some(&new) {
        return Ok(());
    }
    hold_peers(engine, state, instance.interface, eid.vni, &new.locators)?;
    let fib = engine.get_mut::<Fib>().ok_or(LispError::NotBuiltIn)?;
    let prefix = route_prefix(eid.prefix);
    if let Err(error) = fib.replace_route(table, prefix, Source::Feature, &new.paths) {
        release_peers(engine, state, eid.vni, &new.locators);
        return Err(error.into());
    }
    if let Some(old) = state.installed.insert(eid, new) {
        release_peers(engine, state, eid.vni, &old.locators);
    }
    Ok(())
}

/// The paths of the mapping of an EID, and the locators that they lead to.
fn wanted(engine: &Engine, state: &State, eid: Eid) -> (Vec<Path>, Vec<IpAddr>) {
    let none = (Vec::new(), Vec::new());
    let Some(mapping) = state.database.mapping(&eid).filter(|_| state.database.is_enabled) else {
        return none;
    };
    if mapping.locators.is_empty() {
        let target = match mapping.action {
            Action::None | Action::Drop => Some(Target::Drop),
            Action::NativelyForward => None,
            Action::SendMapRequest => {
                let name = request::node(Family::of(eid.prefix.address));
                let index = eid.vni;
                engine.node_id(name).map(|next| Target::Feature(Hop { next, index }))
            }
        };
        return (target.map(Path::new).into_iter().collect(), Vec::new());
    }
    let Some(interface) = state.interface(eid.vni) else { return none };
    let has_source =
        |locator: &&Locator| state.sources[Family::of(locator.address) as usize].is_some();
    let known: Vec<&Locator> = usable(&mapping.locators).filter(has_source).collect();
    let is_reachable =
        |locator: &&&Locator| !state.unreachable.contains(&(eid.vni, locator.address));
    let mut used: Vec<&Locator> = known.iter().filter(is_reachable).copied().collect();
    if used.is_empty() {
        used.clone_from(&known);
    }
    let path = |locator: &&Locator| {
        let path = Path::via(locator.address, Some(interface));
        path.weight(locator.weight.max(1).into()).preference(locator.priority)
    };
    // Those that cannot be reached are peers, too: when they can, it is seen.
    (used.iter().map(path).collect(), known.iter().map(|locator| locator.address).collect())
}

fn uninstall(engine: &mut Engine, state: &mut State, eid: Eid) {
    let Some(old) = state.installed.remove(&eid) else { return };
    if let Some(fib) = engine.get_mut::<Fib>() {
        let _ = fib.remove_route(old.table, route_prefix(eid.prefix), Source::Feature);
    }
    release_peers(engine, state, eid.vni, &old.locators);
}

/// Let the tunnel of an instance reach locators. None is held when one cannot be.
fn hold_peers(
    engine: &mut Engine,
    state: &mut State,
    interface: InterfaceId,
    vni: u32,
    locators: &[IpAddr],
) -> Result<(), LispError> {
    for (place, locator) in locators.iter().enumerate() {
        let users = state.peers.entry((vni, *locator)).or_default();
        *users += 1;
        if *users > 1 {
            continue;
        }
        let to = NextHop { address: *locator, table: 0 };
        if let Err(error) = tunnel::set_peer::<Lisp>(engine, interface, *locator, Some(to)) {
            let held = locators.get(..=place).unwrap_or_default();
            release_peers(engine, state, vni, held);
            return Err(error.into());
        }
    }
    Ok(())
}

fn release_peers(engine: &mut Engine, state: &mut State, vni: u32, locators: &[IpAddr]) {
    for locator in locators {
        let Some(users) = state.peers.get_mut(&(vni, *locator)) else { continue };
        *users -= 1;
        if *users > 0 {
            continue;
        }
        state.peers.remove(&(vni, *locator));
        if let Some(interface) = state.interface(vni) {
            let _ = tunnel::set_peer::<Lisp>(engine, interface, *locator, None);
        }
    }
}

/// Pass over the locators to which no route leads, and take those again to which one does.
fn follow_reachability(engine: &mut Engine, state: &mut State) -> Result<(), LispError> {
    let fib = engine.get::<Fib>().ok_or(LispError::NotBuiltIn)?;
    let tunnels = engine.get::<Tunnels<Lisp>>().ok_or(LispError::NotBuiltIn)?;
    let mut unreachable = BTreeSet::new();
    for (vni, instance) in &state.instances {
        let Some(tunnel) = tunnels.get(instance.interface) else { continue };
        for peer in tunnels.peers(tunnel, fib) {
            let is_unusable = matches!(peer.underlay, None | Some(PathState::Unusable(_)));
            unreachable.extend(peer.next_hop.filter(|_| is_unusable).map(|to| (*vni, to)));
        }
    }
    if unreachable == state.unreachable {
        return Ok(());
    }
    let changed: BTreeSet<_> =
        unreachable.symmetric_difference(&state.unreachable).copied().collect();
    state.unreachable = unreachable;
    let uses = |(eid, installed): &(&Eid, &Installed)| {
        installed.locators.iter().any(|locator| changed.contains(&(eid.vni, *locator)))
    };
    let affected: Vec<Eid> = state.installed.iter().filter(uses).map(|(eid, _)| *eid).collect();
    affected.into_iter().try_for_each(|eid| install(engine, state, eid))
}

/// Follow the local locators: their addresses are the sources of what is sent.
pub(crate) fn follow_sources(engine: &mut Engine, state: &mut State) -> Result<(), LispError> {
    let fib = engine.get::<Fib>().ok_or(LispError::NotBuiltIn)?;
    let sources = local_sources(&state.database, fib);
    let is_gpe = !state.database.is_plain;
    let is_same =
        |instance: &Instance| (instance.extra.sources, instance.extra.is_gpe) == (sources, is_gpe);
    if state.sources == sources && state.instances.values().all(is_same) {
        return Ok(());
    }
    // Routes by a source that is gone go first.
    let lost = |family: Family| sources[family as usize].is_none();
    state.sources = sources;
    let vnis: Vec<u32> = state.instances.keys().copied().collect();
    for vni in &vnis {
        let affected = of_instance(state, *vni).into_iter().filter(|eid| {
            state.installed.get(eid).is_some_and(|installed| {
                installed.locators.iter().any(|locator| lost(Family::of(*locator)))
            })
        });
        for eid in affected.collect::<Vec<_>>() {
            install(engine, state, eid)?;
        }
    }
    for vni in vnis {
        let Some(instance) = state.instances.get_mut(&vni) else { continue };
        instance.extra = LispExtra { sources, is_gpe, ..instance.extra };
        let (interface, extra) = (instance.interface, instance.extra);
        tunnel::reconfigure::<Lisp>(engine, interface, extra)?;
        for eid in of_instance(state, vni) {
            install(engine, state, eid)?;
        }
    }
    Ok(())
}

/// Let what is in force be what the database says of these EIDs, of instances, and of sources.
fn apply(engine: &mut Engine, state: &mut State, changed: &[Eid]) -> Result<(), LispError> {
    let mut wanted: BTreeMap<u32, u32> = state.database.vrfs.clone();
    if state.database.is_enabled {
        wanted.entry(0).or_insert(0);
    }
    let stale: Vec<u32> =
        state.instances.keys().filter(|vni| !wanted.contains_key(vni)).copied().collect();
    for vni in stale {
        remove_instance(engine, state, vni)?;
    }
    let mut made = Vec::new();
    for (vni, vrf) in wanted {
        let known = state.instances.get(&vni).map(|instance| instance.extra.tables);
        let fib = engine.get_mut::<Fib>().ok_or(LispError::NotBuiltIn)?;
        if known.is_some() && known == Some(tables(fib, vrf)?) {
            continue;
        }
        remove_instance(engine, state, vni)?;
        add_instance(engine, state, vni, vrf)?;
        made.push(vni);
    }
    follow_sources(engine, state)?;
    for eid in made.into_iter().flat_map(|vni| of_instance(state, vni)).collect::<Vec<_>>() {
        install(engine, state, eid)?;
    }
    changed.iter().try_for_each(|eid| install(engine, state, *eid))?;
    follow_reachability(engine, state)
}

/// Change the database, and put the change into force. What is refused changes nothing.
///
/// # Errors
/// A table is full, or an interface of that name exists.
pub fn change(
    engine: &mut Engine,
    change: impl FnOnce(&mut Database) -> Vec<Eid>,
) -> Result<(), LispError> {
    engine.with(|engine, state: &mut State| {
        let before = state.database.clone();
        let changed = change(&mut state.database);
        let done = apply(engine, state, &changed);
        if done.is_err() {
            state.database = before;
            let _ = apply(engine, state, &changed);
        } else {
            forget_uncovered(engine, state);
        }
        done
    })
}

/// Forget what was learned of EIDs for which mappings are not requested any more.
fn forget_uncovered(engine: &mut Engine, state: &mut State) {
    for eid in state.database.uncovered() {
        learn(engine, state, eid, None);
    }
}

/// Configure the mapping of an EID, or none. What is refused changes nothing.
///
/// # Errors
/// A table is full.
pub fn set_remote(
    engine: &mut Engine,
    eid: Eid,
    mapping: Option<Mapping>,
) -> Result<(), LispError> {
    engine.with(|engine, state: &mut State| {
        let put = |state: &mut State, mapping: Option<Mapping>| match mapping {
            Some(mapping) => state.database.remote.insert(eid, mapping),
            None => state.database.remote.remove(&eid),
        };
        let before = put(state, mapping);
        let done = install(engine, state, eid).and_then(|()| follow_reachability(engine, state));
        if done.is_err() {
            put(state, before);
            let _ = install(engine, state, eid);
        } else {
            forget_uncovered(engine, state);
        }
        done
    })
}

/// Learn a mapping, or forget one (`None`): without a copy of the database.
pub(crate) fn learn(engine: &mut Engine, state: &mut State, eid: Eid, mapping: Option<Mapping>) {
    match mapping {
        Some(mapping) => {
            let is_known = state.database.learned.contains_key(&eid);
            if !is_known && !state.database.has_room() {
                return;
            }
            state.database.learned.insert(eid, mapping);
        }
        None => {
            state.database.learned.remove(&eid);
        }
    }
    let done = install(engine, state, eid).and_then(|()| follow_reachability(engine, state));
    if let Err(error) = done {
        tracing::warn!("LISP: {}: {error}", eid.prefix);
        state.database.learned.remove(&eid);
        let _ = install(engine, state, eid);
    }
}

/// An interface that goes is no locator any more.
fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    // The interfaces of instances go while the state is away: `remove_instance` sees to them.
    if change != InterfaceChange::Deleted || engine.get::<State>().is_none() {
        return;
    }
    engine.with(|engine, state: &mut State| {
        let mut found = false;
        for set in state.database.locator_sets.values_mut() {
            found |= set.remove(&id).is_some();
        }
        if found && let Err(error) = follow_sources(engine, state) {
            tracing::warn!("LISP: {error}");
        }
    });
}

/// Keep the state, and follow interfaces and their addresses.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(State::default());
    engine.on_interface_change(follow_interface);
    engine.every(SOURCES_INTERVAL_NS, |engine| {
        engine.with(|engine, state: &mut State| {
            let done = follow_sources(engine, state);
            if let Err(error) = done.and_then(|()| follow_reachability(engine, state)) {
                tracing::warn!("LISP: {error}");
            }
        });
    });
}

/// How often the addresses of locators are compared with those that send, and the routes to remote
/// locators are looked at.
const SOURCES_INTERVAL_NS: u64 = 200_000_000;
