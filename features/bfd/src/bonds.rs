//! BFD on the members of bonds (RFC 7130): a session for each member that is ready to carry frames.
//! A member whose session is not up leaves the bond's load sharing.

use std::collections::BTreeMap;

use quiver_control::Refusal;
use quiver_control::aggregates::{self, AggregateChange, Watch, WatchedAddresses};
use quiver_core::{Engine, InterfaceId};

use crate::config::{self, Bfd, BondSession, NewSession, Origin, Signing, busy};
use crate::session::Settings;
use crate::shared::{Ends, SESSIONS_MAX};

/// What a bond's sessions are known by: the bond, and whether they are of IPv4. Each bond has one
/// session of each family on each member.
pub(crate) type Key = (InterfaceId, bool);

/// The sessions on the members of a bond, as configured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnBond {
    /// This router's address.
    pub local: std::net::IpAddr,
    /// The peer's address.
    pub peer: std::net::IpAddr,
    /// What the operator set.
    pub settings: Settings,
    /// How they sign.
    pub signing: Option<Signing>,
    /// Not taken down by the operator.
    pub is_admin_up: bool,
    /// Send to 01:00:5e:90:00:01 for good.
    pub is_group_only: bool,
}

impl OnBond {
    /// The session on a member.
    fn ends(&self, member: InterfaceId) -> Ends {
        let OnBond { local, peer, .. } = *self;
        Ends { interface: Some(member), is_member: true, local, peer }
    }
}

/// Watch the members of a bond.
pub(crate) fn add(engine: &mut Engine, bond: InterfaceId, new: OnBond) -> Result<(), Refusal> {
    let name = engine.interface_name(bond);
    if !aggregates::is_aggregate(engine, bond) {
        return Err(Refusal::new(format!("{name} is not a bond")).remedy("`show bond` lists bonds"));
    }
    let ready = aggregates::ready(engine, bond).len();
    let bfd = engine.get_mut::<Bfd>().ok_or_else(busy)?;
    bfd.using(new.signing)?;
    let key = (bond, new.local.is_ipv4());
    if let Some(other) = bfd.bonds.get(&key) {
        let what = format!(
            "{name} has BFD sessions of this family between {} and {} on its members already",
            other.local, other.peer
        );
        return Err(Refusal::new(what).remedy("change them: bfd udp bond mod …"));
    }
    if bfd.sessions.len() + ready > SESSIONS_MAX {
        let what = format!("a router has {SESSIONS_MAX} BFD sessions at most");
        return Err(Refusal::new(what).remedy("delete some: bfd udp session del …"));
    }
    bfd.bonds.insert(key, new);
    follow(engine);
    Ok(())
}

/// The sessions that a command names.
pub(crate) fn of(engine: &Engine, key: Key, ends: &Ends) -> Result<OnBond, Refusal> {
    let found = engine.get::<Bfd>().ok_or_else(busy)?.bonds.get(&key).copied();
    let found = found.filter(|on| (on.local, on.peer) == (ends.local, ends.peer));
    found.ok_or_else(|| {
        let (name, local, peer) = (engine.interface_name(key.0), ends.local, ends.peer);
        Refusal::new(format!("{name} has no BFD sessions between {local} and {peer}"))
            .remedy("bfd udp bond add …")
    })
}

/// Set other intervals, or another multiplier.
pub(crate) fn modify(engine: &mut Engine, key: Key, settings: Settings) -> Result<(), Refusal> {
    for ends in sessions(engine, key) {
        config::modify(engine, &ends, settings)?;
    }
    with(engine, key, |on| on.settings = settings)
}

/// Take the sessions down, or let them come up.
pub(crate) fn set_admin(engine: &mut Engine, key: Key, is_up: bool) -> Result<(), Refusal> {
    for ends in sessions(engine, key) {
        config::set_admin(engine, &ends, is_up)?;
    }
    with(engine, key, |on| on.is_admin_up = is_up)?;
    follow(engine);
    Ok(())
}

fn with(engine: &mut Engine, key: Key, work: impl FnOnce(&mut OnBond)) -> Result<(), Refusal> {
    let bfd = engine.get_mut::<Bfd>().ok_or_else(busy)?;
    bfd.bonds.get_mut(&key).map(work).ok_or_else(busy)
}

/// Watch the members no more. Their peers hear that the sessions were taken down.
pub(crate) fn delete(engine: &mut Engine, key: Key) {
    if let Some(bfd) = engine.get_mut::<Bfd>() {
        bfd.bonds.remove(&key);
    }
    follow(engine);
    let bfd = engine.get::<Bfd>();
    if !bfd.is_some_and(|bfd| bfd.bonds.keys().any(|(bond, _)| *bond == key.0)) {
        aggregates::set_watch(engine, key.0, None);
    }
}

/// A bond is gone.
pub(crate) fn forget(engine: &mut Engine, bond: InterfaceId) {
    for key in [(bond, true), (bond, false)] {
        if engine.get::<Bfd>().is_some_and(|bfd| bfd.bonds.contains_key(&key)) {
            delete(engine, key);
        }
    }
}

/// The sessions on a bond's members that there are.
fn sessions(engine: &Engine, key: Key) -> Vec<Ends> {
    let all = engine.get::<Bfd>().into_iter().flat_map(|bfd| &bfd.sessions);
    let of_bond =
        all.filter(|(ends, entry)| entry.bond == Some(key.0) && ends.local.is_ipv4() == key.1);
    of_bond.map(|(ends, _)| *ends).collect()
}

/// An aggregate has changed.
pub(crate) fn follow_aggregate(engine: &mut Engine, id: InterfaceId, change: AggregateChange) {
    let is_watched = |bfd: &Bfd| bfd.bonds.keys().any(|(bond, _)| *bond == id);
    if change == AggregateChange::Ready && engine.get::<Bfd>().is_some_and(is_watched) {
        follow(engine);
    }
}

/// Let there be a session on each member that is ready, and on no other; then let bonds hear which
/// members are alive.
pub(crate) fn follow(engine: &mut Engine) {
    let Some(bfd) = engine.get::<Bfd>() else { return };
    let wanted = wanted(engine, bfd);
    let have = bfd.sessions.iter().filter(|(_, entry)| entry.bond.is_some());
    let gone: Vec<Ends> =
        have.filter(|(ends, _)| !wanted.contains_key(ends)).map(|(ends, _)| *ends).collect();
    for ends in gone {
        if let Err(refused) = config::delete(engine, &ends) {
            tracing::warn!("BFD session on a member of a bond to {}: {refused}", ends.peer);
        }
    }
    for (ends, (bond, on)) in wanted {
        let is_there = engine.get::<Bfd>().is_none_or(|bfd| bfd.sessions.contains_key(&ends));
        if !is_there && let Err(refused) = add_session(engine, bond, &ends, &on) {
            let name = engine.interface_name(bond);
            tracing::warn!("BFD session on a member of {name} to {}: {refused}", ends.peer);
        }
    }
    let watches = engine.get::<Bfd>().map(|bfd| watches(engine, bfd)).unwrap_or_default();
    for (bond, watch) in watches {
        aggregates::set_watch(engine, bond, Some(watch));
    }
}

fn wanted(engine: &Engine, bfd: &Bfd) -> BTreeMap<Ends, (InterfaceId, OnBond)> {
    let mut wanted = BTreeMap::new();
    for ((bond, _), on) in &bfd.bonds {
        for member in aggregates::ready(engine, *bond) {
            wanted.insert(on.ends(*member), (*bond, *on));
        }
    }
    wanted
}

fn add_session(
    engine: &mut Engine,
    bond: InterfaceId,
    ends: &Ends,
    on: &OnBond,
) -> Result<(), Refusal> {
    let new = NewSession {
        ends: *ends,
        settings: on.settings,
        signing: on.signing,
        origin: Origin::Bond,
        discriminator: None,
        min_ttl: 0,
        bond: Some(BondSession { bond, is_group_only: on.is_group_only }),
    };
    config::add(engine, new)?;
    if on.is_admin_up { Ok(()) } else { config::set_admin(engine, ends, false) }
}

/// What is known of the members of each watched bond: those are alive whose sessions all say so.
fn watches(engine: &Engine, bfd: &Bfd) -> BTreeMap<InterfaceId, Watch> {
    let mut watches: BTreeMap<InterfaceId, Watch> = BTreeMap::new();
    for ((bond, _), on) in &bfd.bonds {
        let alive = aggregates::ready(engine, *bond).iter().copied().filter(|member| {
            bfd.sessions.get(&on.ends(*member)).is_some_and(config::Entry::is_alive)
        });
        match watches.get_mut(bond) {
            None => {
                let mut addresses = WatchedAddresses::default();
                addresses.add(on.local);
                watches.insert(*bond, Watch { addresses, alive: alive.collect() });
            }
            Some(watch) => {
                watch.addresses.add(on.local);
                watch.alive = &watch.alive & &alive.collect();
            }
        }
    }
    watches
}
