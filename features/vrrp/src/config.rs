//! VRRP as the control thread holds it: virtual routers as configured, and what workers are told of
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, InterfaceId, NodeId, WorkerId};
use quiver_forwarding::fib::{Family, Fib, Watched};
use quiver_tables::GroupId;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::vrrp::ChecksumOver;

use crate::follow;
use crate::input::{NODE, VrrpInput};
use crate::machine::{Effect, Machine, Settings, State};
use crate::routers::{Counts, Store, VirtualRouter};
use crate::shared::{Place, Shared, VIRTUAL_ROUTERS_MAX, VrKey};

/// What a command says of a new virtual router.
#[derive(Clone, Debug)]
pub struct NewRouter {
    /// Which one.
    pub key: VrKey,
    /// How it runs.
    pub settings: Settings,
    /// Does it take packets to its addresses?
    pub accepts: bool,
    /// Does it advertise to peers instead of to the group?
    pub is_unicast: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// What takes priority from a virtual router while it is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tracked {
    /// An interface.
    Interface(InterfaceId),
    /// A neighbour, or a next hop of several hops, that a BFD session watches.
    Peer(Watched),
}

impl Tracked {
    /// The interface that it names.
    pub fn interface(self) -> Option<InterfaceId> {
        match self {
            Tracked::Interface(id) => Some(id),
            Tracked::Peer((id, _)) => id,
        }
    }
}

/// A virtual router as configured, and what follows from it.
#[derive(Debug)]
pub struct Entry {
    /// As it was given.
    pub new: NewRouter,
    /// Where it is.
    pub place: Place,
    /// Whom it advertises to.
    pub peers: Vec<IpAddr>,
    /// Interfaces that take priority while they are down.
    pub tracks: BTreeMap<Tracked, u8>,
    /// Did the operator start it?
    pub is_started: bool,
    /// The state that was seen last.
    pub state: State,
    /// What its worker was told last.
    pub(crate) update: Update,
    /// Paths to peers that the FIB keeps.
    pub(crate) groups: Vec<GroupId>,
    /// Routes to its addresses.
    pub(crate) routes: BTreeSet<(u32, IpPrefix)>,
}

/// What a worker knows of a virtual router's surroundings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Update {
    /// What advertisements come from.
    pub source: Option<IpAddr>,
    /// It runs.
    pub runs: bool,
    /// Priority that is lost.
    pub lost: u8,
}

/// VRRP.
pub struct Vrrp {
    pub(crate) routers: BTreeMap<VrKey, Entry>,
    pub(crate) shared: Arc<Shared>,
    slots: Vec<bool>,
    stores: Vec<bool>,
}

impl Vrrp {
    pub(crate) fn new(shared: Arc<Shared>, workers: usize) -> Vrrp {
        let (slots, stores) = (vec![false; VIRTUAL_ROUTERS_MAX], vec![false; workers]);
        Vrrp { routers: BTreeMap::new(), shared, slots, stores }
    }

    /// A virtual router that a command names.
    pub(crate) fn entry(&mut self, key: VrKey) -> Result<&mut Entry, Refusal> {
        self.routers.get_mut(&key).ok_or_else(|| {
            let (family, id) = (if key.is_ip6 { "IPv6" } else { "IPv4" }, key.vr_id);
            Refusal::new(format!("the interface has no virtual router {id} of {family}"))
                .remedy("`show vrrp vr` lists those that are there")
        })
    }

    fn publish(&self) {
        let table = self.routers.iter().map(|(key, entry)| (*key, entry.place)).collect();
        self.shared.publish(table);
    }
}

fn node(engine: &Engine) -> Result<NodeId, Refusal> {
    engine.node_id(NODE).ok_or_else(|| Refusal::new(format!("{NODE} is not built in")))
}

/// Add a virtual router, which is not started.
pub(crate) fn add(engine: &mut Engine, new: NewRouter) -> Result<(), Refusal> {
    let node = node(engine)?;
    engine.with(|engine, vrrp: &mut Vrrp| {
        let key = new.key;
        if vrrp.routers.contains_key(&key) {
            let what = format!("the interface has a virtual router {} already", key.vr_id);
            return Err(Refusal::new(what).remedy("delete it first: vrrp vr del IF vr_id N"));
        }
        let shares = |(other, entry): &(&VrKey, &Entry)| {
            new.addresses.iter().any(|address| {
                let is_local = matches!(address, IpAddr::V6(six) if six.is_unicast_link_local());
                entry.new.addresses.contains(address)
                    && (!is_local || other.interface == key.interface)
            })
        };
        if let Some((other, _)) = vrrp.routers.iter().find(shares) {
            let what = format!("virtual router {} has one of these addresses", other.vr_id);
            return Err(Refusal::new(what).remedy("`show vrrp vr` lists all addresses"));
        }
        let slot = vrrp.slots.iter().position(|taken| !taken).ok_or_else(|| {
            Refusal::new(format!("there are {VIRTUAL_ROUTERS_MAX} virtual routers already"))
                .remedy("delete one: vrrp vr del IF vr_id N")
        })?;
        let place = Place { worker: worker_of(engine, key), slot: slot as u16 };
        let mut router = Some(Box::new(VirtualRouter {
            machine: Machine::new(new.settings),
            key,
            addresses: new.addresses.clone(),
            source: None,
            peers: Vec::new(),
            is_unicast: new.is_unicast,
            checksum_over: ChecksumOver::PseudoHeader,
            heard: None,
            counts: Counts { changed_ns: engine.now_ns(), ..Counts::default() },
        }));
        let has_store = vrrp.stores.get(place.worker.index()).copied().unwrap_or_default();
        let mut store = (!has_store).then(Store::new);
        let put = engine.call(place.worker, move |worker: &mut Worker| {
            worker.visit(node, |input: &mut VrrpInput, _| {
                input.store = input.store.take().or(store.take());
                input.store.as_mut().map(|store| store.put(place.slot, router.take()))
            })
        });
        put.map_err(|stalled| Refusal::new(stalled.to_string()))?;
        vrrp.stores[place.worker.index()] = true;
        vrrp.slots[slot] = true;
        vrrp.shared.states().reset(place.slot, 0);
        let entry = Entry {
            new,
            place,
            peers: Vec::new(),
            tracks: BTreeMap::new(),
            is_started: false,
            state: State::Initialize,
            update: Update::default(),
            groups: Vec::new(),
            routes: BTreeSet::new(),
        };
        vrrp.routers.insert(key, entry);
        vrrp.publish();
        follow::listen(engine, vrrp, key.interface);
        Ok(())
    })
}

/// The worker that packets of the interface come to, as a rule.
fn worker_of(engine: &Engine, key: VrKey) -> WorkerId {
    let queue = engine.interface(key.interface).and_then(|interface| interface.rx.first());
    let in_turn = WorkerId((usize::from(key.vr_id) % engine.worker_count().max(1)) as u16);
    queue.map_or(in_turn, |queue| queue.worker)
}

/// Delete a virtual router; if this router is the active one, it says that it ceases.
pub(crate) fn delete(engine: &mut Engine, key: VrKey) -> Result<(), Refusal> {
    let node = node(engine)?;
    engine.with(|engine, vrrp: &mut Vrrp| {
        let place = vrrp.entry(key)?.place;
        let removed = engine.call(place.worker, move |worker: &mut Worker| {
            worker.visit(node, |input: &mut VrrpInput, cx| input.remove(cx, place.slot))
        });
        removed.map_err(|stalled| Refusal::new(stalled.to_string()))?;
        let Some(mut entry) = vrrp.routers.remove(&key) else { return Ok(()) };
        vrrp.slots[usize::from(place.slot)] = false;
        vrrp.publish();
        entry.state = State::Initialize;
        follow::fit_routes(engine, key, &mut entry);
        follow::fit_interface(engine, vrrp, key.interface);
        follow::listen(engine, vrrp, key.interface);
        let _ = engine.wait_for_worker(place.worker);
        if let Some(fib) = engine.get_mut::<Fib>() {
            entry.groups.drain(..).for_each(|group| fib.release_paths(group));
        }
        Ok(())
    })
}

/// Have the worker of a virtual router do something with it; false when too much waits for that
/// worker.
pub(crate) fn on_worker(
    engine: &mut Engine,
    place: Place,
    mut work: impl FnMut(&mut VirtualRouter, u64) -> Effect + Send + 'static,
) -> bool {
    let Ok(node) = node(engine) else { return false };
    engine.post(place.worker, move |worker: &mut Worker| {
        worker.visit(node, |input: &mut VrrpInput, cx: &mut Context<'_>| {
            input.with_router(cx, place.slot, &mut work);
        });
    })
}

/// Start a virtual router, or stop it.
pub(crate) fn start(engine: &mut Engine, key: VrKey, is_started: bool) -> Result<(), Refusal> {
    engine.with(|engine, vrrp: &mut Vrrp| {
        let entry = vrrp.entry(key)?;
        if is_started && entry.new.is_unicast && entry.peers.is_empty() {
            return Err(Refusal::new("a virtual router that advertises to peers has none")
                .remedy("vrrp peers IF vr_id N ADDRESS …"));
        }
        entry.is_started = is_started;
        follow::refresh_router(engine, key, entry);
        Ok(())
    })
}

/// Set the peers of a virtual router that advertises to peers.
pub(crate) fn set_peers(
    engine: &mut Engine,
    key: VrKey,
    peers: Vec<IpAddr>,
) -> Result<(), Refusal> {
    engine.with(|engine, vrrp: &mut Vrrp| {
        let entry = vrrp.entry(key)?;
        if !entry.new.is_unicast {
            return Err(Refusal::new("the virtual router advertises to the group")
                .remedy("add it with `unicast`"));
        }
        let fib = engine.get_mut::<Fib>().ok_or_else(|| Refusal::new("IP is being changed"))?;
        let mut groups = Vec::new();
        for peer in &peers {
            let path =
                quiver_forwarding::fib::Path::new(quiver_forwarding::fib::Target::Neighbour {
                    address: *peer,
                    interface: key.interface,
                });
            match fib.hold_paths(Family::of(*peer), 0, &[path]) {
                Ok(group) => groups.push(group),
                Err(error) => {
                    groups.into_iter().for_each(|group| fib.release_paths(group));
                    return Err(Refusal::new(error.to_string()));
                }
            }
        }
        let mut update: Vec<(IpAddr, GroupId)> =
            peers.iter().copied().zip(groups.iter().copied()).collect();
        let is_updated = on_worker(engine, entry.place, move |router, _| {
            std::mem::swap(&mut router.peers, &mut update);
            Effect::default()
        });
        let unused = if is_updated { std::mem::replace(&mut entry.groups, groups) } else { groups };
        if is_updated {
            entry.peers = peers;
            let _ = engine.wait_for_worker(entry.place.worker);
        }
        if let Some(fib) = engine.get_mut::<Fib>() {
            unused.into_iter().for_each(|group| fib.release_paths(group));
        }
        if !is_updated {
            return Err(Refusal::new("as many changes as may wait for the worker"));
        }
        follow::refresh_router(engine, key, entry);
        Ok(())
    })
}

/// Let an interface that is down take priority from a virtual router, or no more.
pub(crate) fn track(
    engine: &mut Engine,
    key: VrKey,
    tracked: Tracked,
    priority: Option<u8>,
) -> Result<(), Refusal> {
    engine.with(|engine, vrrp: &mut Vrrp| {
        let entry = vrrp.entry(key)?;
        match priority {
            Some(priority) => {
                entry.tracks.insert(tracked, priority);
            }
            None if entry.tracks.remove(&tracked).is_none() => {
                return Err(Refusal::new("the virtual router does not track this"));
            }
            None => {}
        }
        follow::refresh_router(engine, key, entry);
        Ok(())
    })
}
