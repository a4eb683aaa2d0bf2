//! BFD as the control thread holds it: sessions, keys, and what workers are told of them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::jitter::Jitter;
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, InterfaceId, NodeId, WorkerId};
use quiver_forwarding::fib::{Family, Fib, Path, Target};
use quiver_tables::GroupId;
use quiver_wire::bfd::{Diagnostic, State};

use crate::auth::{Authentication, Key as SigningKey, Using};
use crate::bonds::{Key, OnBond};
use crate::echo::Echo;
use crate::follow;
use crate::input::{BfdInput, NODE};
use crate::member::MemberLink;
use crate::peers::{Counts, Peer, Store};
use crate::session::{Effect, INTERVAL_US_MIN, NEVER, Session, Settings};
use crate::shared::{Ends, Live, Place, SESSIONS_MAX, Writer, direct_discriminator};
use crate::template::Template;

/// Keys that can be configured.
pub const KEYS_MAX: usize = 1024;
/// The shortest interval at which a peer may send echo packets, microseconds (`Required Min Echo RX
/// Interval`). They are forwarded, so the least that a session can have will do.
const ECHO_RX_US: u32 = INTERVAL_US_MIN;
/// Random numbers that are drawn for a discriminator: each is taken with a chance of one in half a
/// million when the table is full.
const DRAWS_MAX: usize = 64;

/// A key that a session signs with: its number in the configuration, and in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signing {
    /// In the configuration.
    pub conf_key_id: u32,
    /// In packets.
    pub bfd_key_id: u8,
}

/// Who has a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration.
    Operator,
    /// A routing daemon that is connected, or was a moment ago.
    Daemon,
    /// The configuration of a bond, of which the interface is a member.
    Bond,
}

impl Origin {
    /// As shows name it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Operator => "operator",
            Origin::Daemon => "daemon",
            Origin::Bond => "bond",
        }
    }
}

/// A session as configured, and what is known of it.
#[derive(Debug)]
pub struct Entry {
    /// Who has it.
    pub origin: Origin,
    /// Where it is.
    pub place: Place,
    /// Its number in packets.
    pub discriminator: u32,
    /// What the operator set.
    pub settings: Settings,
    /// Not taken down by the operator.
    pub is_admin_up: bool,
    /// How it signs.
    pub signing: Option<Signing>,
    /// The bond whose member it watches.
    pub bond: Option<InterfaceId>,
    /// The path to the peer that the FIB keeps.
    pub(crate) group: Option<GroupId>,
    /// Its worker was told that the path can be used.
    pub(crate) is_path_up: bool,
    /// What its echo packets come from, as its worker was told.
    pub(crate) echo_source: Option<IpAddr>,
    /// The state that was seen last.
    pub live: Live,
}

impl Entry {
    /// Does what is known of the session let routes go through the peer? A session that either end
    /// has taken down says nothing of the path (RFC 5882 §3.2).
    pub(crate) fn is_alive(&self) -> bool {
        !self.is_admin_up
            || self.live.state == State::Up
            || self.live.remote_state == State::AdminDown
    }
}

/// BFD.
pub struct Bfd {
    pub(crate) sessions: BTreeMap<Ends, Entry>,
    slots: Vec<Option<Ends>>,
    pub(crate) keys: BTreeMap<u32, Arc<SigningKey>>,
    pub(crate) echo_source: Option<InterfaceId>,
    /// Sessions on the members of bonds.
    pub(crate) bonds: BTreeMap<Key, OnBond>,
    pub(crate) writer: Writer,
    /// Workers that have a store.
    stores: Vec<bool>,
    random: (RandomState, u64),
}

impl Bfd {
    pub(crate) fn new(writer: Writer, workers: usize) -> Bfd {
        Bfd {
            sessions: BTreeMap::new(),
            slots: Vec::new(),
            keys: BTreeMap::new(),
            echo_source: None,
            bonds: BTreeMap::new(),
            writer,
            stores: vec![false; workers],
            random: (RandomState::new(), 0),
        }
    }

    /// A random number.
    fn draw(&mut self) -> u32 {
        self.random.1 += 1;
        self.random.0.hash_one(self.random.1) as u32
    }

    /// A discriminator that no session has, not 0, under which workers find the slot at once.
    fn draw_discriminator(&mut self, slot: u16) -> Result<u32, Refusal> {
        for _ in 0..DRAWS_MAX {
            let drawn = direct_discriminator(self.draw(), slot);
            if drawn != 0 && !self.writer.has_discriminator(drawn) {
                return Ok(drawn);
            }
        }
        Err(Refusal::new("no discriminator was found that no session has").remedy("try again"))
    }

    fn free_slot(&mut self) -> Result<u16, Refusal> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free >= SESSIONS_MAX {
            let what = format!("there are {SESSIONS_MAX} BFD sessions already");
            return Err(Refusal::new(what).remedy("delete one: bfd udp session del …"));
        }
        Ok(free as u16)
    }

    pub(crate) fn using(&self, signing: Option<Signing>) -> Result<Option<Using>, Refusal> {
        let Some(signing) = signing else { return Ok(None) };
        let key = self.keys.get(&signing.conf_key_id).ok_or_else(|| {
            let id = signing.conf_key_id;
            Refusal::new(format!("there is no BFD key {id}"))
                .remedy(format!("bfd key set conf-key-id {id} type keyed-sha1 secret HEX"))
        })?;
        Ok(Some(Using { key: key.clone(), key_id: signing.bfd_key_id }))
    }

    /// A session that a command names.
    pub(crate) fn entry(&mut self, ends: &Ends) -> Result<&mut Entry, Refusal> {
        self.sessions.get_mut(ends).ok_or_else(|| {
            let (local, peer) = (ends.local, ends.peer);
            Refusal::new(format!("there is no such BFD session between {local} and {peer}"))
                .remedy("`show bfd sessions` lists those that are there")
        })
    }
}

pub(crate) fn busy() -> Refusal {
    Refusal::new("BFD is being changed")
}

fn node(engine: &Engine) -> Result<NodeId, Refusal> {
    engine.node_id(NODE).ok_or_else(|| Refusal::new(format!("{NODE} is not built in")))
}

/// What a session begins with.
#[derive(Clone, Copy, Debug)]
pub struct NewSession {
    /// Between whom.
    pub ends: Ends,
    /// How.
    pub settings: Settings,
    /// Signed how.
    pub signing: Option<Signing>,
    /// Whose.
    pub origin: Origin,
    /// Its number in packets; a random one unless it is given.
    pub discriminator: Option<u32>,
    /// The least TTL that is taken over several hops.
    pub min_ttl: u8,
    /// Watching a member of a bond.
    pub bond: Option<BondSession>,
}

/// What is to be known of a session that watches a member of a bond.
#[derive(Clone, Copy, Debug)]
pub struct BondSession {
    /// The bond.
    pub bond: InterfaceId,
    /// Send to the group for good ([`MemberLink::is_group_only`]).
    pub is_group_only: bool,
}

/// Add a session, which is up as far as the operator is concerned.
pub(crate) fn add(engine: &mut Engine, new: NewSession) -> Result<(), Refusal> {
    let node = node(engine)?;
    engine.with(|engine, bfd: &mut Bfd| add_to(engine, bfd, node, new))
}

fn add_to(
    engine: &mut Engine,
    bfd: &mut Bfd,
    node: NodeId,
    new: NewSession,
) -> Result<(), Refusal> {
    let NewSession { ends, settings, signing, .. } = new;
    if bfd.sessions.contains_key(&ends) || bfd.writer.has_ends(&ends) {
        let (local, peer) = (ends.local, ends.peer);
        return Err(Refusal::new(format!("there is a BFD session between {local} and {peer}"))
            .remedy("change it: bfd udp session mod …"));
    }
    let using = bfd.using(signing)?;
    let slot = bfd.free_slot()?;
    let discriminator = match new.discriminator {
        Some(taken) if bfd.writer.has_discriminator(taken) => {
            return Err(Refusal::new(format!("a session has the discriminator {taken:#x}")));
        }
        Some(given) => given,
        None => bfd.draw_discriminator(slot)?,
    };
    let place = Place { worker: worker_of(engine, &ends, slot), slot };
    let mut session = Session::new(discriminator, settings, true);
    if ends.interface.is_some() && !ends.is_member {
        session.required_min_echo_rx_us = ECHO_RX_US;
    }
    let mut peer = Some(Box::new(Peer {
        session,
        auth: Authentication::new(using, bfd.draw()),
        ends,
        group: None,
        link: new.bond.map(|on| MemberLink::new(on.is_group_only)),
        counts: Counts { changed_ns: engine.now_ns(), ..Counts::default() },
        echo: Echo::new(None),
        min_ttl: new.min_ttl,
        template: Template::default(),
        steady: None,
        planned_ns: NEVER,
    }));
    bfd.writer.reset(slot, State::Down, Diagnostic::NONE);
    bfd.writer.insert(discriminator, &ends, place).map_err(|e| Refusal::new(e.to_string()))?;
    let has_store = bfd.stores.get(place.worker.index()).copied().unwrap_or_default();
    let mut store = (!has_store).then(Store::new);
    let put = engine.call(place.worker, move |worker: &mut Worker| {
        worker.visit(node, |input: &mut BfdInput, _| {
            input.store = input.store.take().or(store.take());
            input.store.as_mut().map(|store| store.put(slot, peer.take()))
        })
    });
    if let Err(stalled) = put {
        bfd.writer.remove(discriminator, &ends);
        return Err(Refusal::new(stalled.to_string()));
    }
    if let Some(has) = bfd.stores.get_mut(place.worker.index()) {
        *has = true;
    }
    if bfd.slots.len() <= usize::from(slot) {
        bfd.slots.resize(usize::from(slot) + 1, None);
    }
    bfd.slots[usize::from(slot)] = Some(ends);
    let entry = Entry {
        origin: new.origin,
        place,
        discriminator,
        settings,
        is_admin_up: true,
        signing,
        bond: new.bond.map(|on| on.bond),
        group: None,
        is_path_up: false,
        echo_source: None,
        live: bfd.writer.shared().live(slot),
    };
    bfd.sessions.insert(ends, entry);
    follow::mark(engine, bfd, &ends);
    follow::refresh_session(engine, bfd, &ends);
    Ok(())
}

/// The worker that packets of a session come to, as a rule.
fn worker_of(engine: &Engine, ends: &Ends, slot: u16) -> WorkerId {
    let interface = ends.interface.and_then(|id| engine.interface(id));
    let queue = interface.and_then(|interface| interface.rx.first());
    let in_turn = WorkerId((usize::from(slot) % engine.worker_count().max(1)) as u16);
    queue.map_or(in_turn, |queue| queue.worker)
}

/// Delete a session. The peer is told once that it is down on purpose.
pub(crate) fn delete(engine: &mut Engine, ends: &Ends) -> Result<(), Refusal> {
    let node = node(engine)?;
    engine.with(|engine, bfd: &mut Bfd| {
        let Entry { place, discriminator, .. } = *bfd.entry(ends)?;
        let removed = engine.call(place.worker, move |worker: &mut Worker| {
            worker.visit(node, |input: &mut BfdInput, cx| input.remove(cx, place.slot))
        });
        removed.map_err(|stalled| Refusal::new(stalled.to_string()))?;
        bfd.writer.remove(discriminator, ends);
        let entry = bfd.sessions.remove(ends);
        if let Some(slot) = bfd.slots.get_mut(usize::from(place.slot)) {
            *slot = None;
        }
        follow::mark(engine, bfd, ends);
        // What was sent last needs the path until it has left.
        let _ = engine.wait_for_worker(place.worker);
        if let (Some(group), Some(fib)) =
            (entry.and_then(|entry| entry.group), engine.get_mut::<Fib>())
        {
            fib.release_paths(group);
        }
        Ok(())
    })
}

/// Have the worker of a session do something with it; false when too much waits for that worker.
pub(crate) fn update(
    engine: &mut Engine,
    place: Place,
    work: impl Fn(&mut Peer, &mut Jitter, u64) -> Effect + Send + 'static,
) -> bool {
    let Ok(node) = node(engine) else { return false };
    engine.post(place.worker, move |worker: &mut Worker| {
        worker.visit(node, |input: &mut BfdInput, cx: &mut Context<'_>| {
            input.with_peer(cx, place.slot, |peer, jitter, now_ns| work(peer, jitter, now_ns));
        });
    })
}

pub(crate) fn overloaded() -> Refusal {
    Refusal::new("as many changes as may wait for the worker of this session")
        .remedy("`show workers` says which worker does not answer")
}

/// Set other intervals, or another multiplier.
pub(crate) fn modify(engine: &mut Engine, ends: &Ends, settings: Settings) -> Result<(), Refusal> {
    engine.with(|engine, bfd: &mut Bfd| {
        let entry = bfd.entry(ends)?;
        let is_updated = update(engine, entry.place, move |peer, jitter, now_ns| {
            peer.session.set(settings, now_ns, jitter)
        });
        if !is_updated {
            return Err(overloaded());
        }
        entry.settings = settings;
        Ok(())
    })
}

/// Take a session down, or let it come up.
pub(crate) fn set_admin(engine: &mut Engine, ends: &Ends, is_up: bool) -> Result<(), Refusal> {
    engine.with(|engine, bfd: &mut Bfd| {
        let entry = bfd.entry(ends)?;
        let is_updated = update(engine, entry.place, move |peer, jitter, now_ns| {
            peer.session.set_admin(is_up, now_ns, jitter)
        });
        if !is_updated {
            return Err(overloaded());
        }
        entry.is_admin_up = is_up;
        follow::mark(engine, bfd, ends);
        Ok(())
    })
}

/// Sign with another key, or none.
pub(crate) fn set_signing(
    engine: &mut Engine,
    ends: &Ends,
    signing: Option<Signing>,
    is_delayed: bool,
) -> Result<(), Refusal> {
    engine.with(|engine, bfd: &mut Bfd| {
        let using = bfd.using(signing)?;
        let entry = bfd.entry(ends)?;
        let is_updated = update(engine, entry.place, move |peer, _, _| {
            peer.auth.change(using.clone(), is_delayed);
            Effect::default()
        });
        if !is_updated {
            return Err(overloaded());
        }
        entry.signing = signing;
        Ok(())
    })
}

/// Set a key. One that sessions sign with stays as it is.
pub(crate) fn set_key(engine: &mut Engine, id: u32, key: SigningKey) -> Result<(), Refusal> {
    let bfd = engine.get_mut::<Bfd>().ok_or_else(busy)?;
    match bfd.keys.get(&id) {
        Some(old) if old.kind == key.kind && old.secret() == key.secret() => return Ok(()),
        Some(_) => check_unused(bfd, id)?,
        None if bfd.keys.len() >= KEYS_MAX => {
            return Err(Refusal::new(format!("there are {KEYS_MAX} BFD keys already"))
                .remedy("delete one: bfd key del conf-key-id ID"));
        }
        None => {}
    }
    bfd.keys.insert(id, Arc::new(key));
    Ok(())
}

/// Delete a key that no session signs with.
pub(crate) fn delete_key(engine: &mut Engine, id: u32) -> Result<(), Refusal> {
    let bfd = engine.get_mut::<Bfd>().ok_or_else(busy)?;
    if !bfd.keys.contains_key(&id) {
        let what = format!("there is no BFD key {id}");
        return Err(Refusal::new(what).remedy("`show bfd keys` lists those that are there"));
    }
    check_unused(bfd, id)?;
    bfd.keys.remove(&id);
    Ok(())
}

/// How many sessions sign with a key.
pub(crate) fn key_users(bfd: &Bfd, id: u32) -> usize {
    let of_bonds = bfd.bonds.values().filter_map(|on| on.signing);
    let own = bfd.sessions.values().filter(|entry| entry.origin != Origin::Bond);
    let signing = own.filter_map(|entry| entry.signing).chain(of_bonds);
    signing.filter(|signing| signing.conf_key_id == id).count()
}

fn check_unused(bfd: &Bfd, id: u32) -> Result<(), Refusal> {
    match key_users(bfd, id) {
        0 => Ok(()),
        users => Err(Refusal::new(format!("{users} BFD sessions sign with key {id}"))
            .remedy("let them sign with another one: bfd udp session auth activate …")),
    }
}

/// The path to a peer, as the FIB takes it.
pub(crate) fn path(ends: &Ends) -> (Family, Path) {
    let path = match ends.interface {
        // Both are used also while routes do not lead there.
        Some(interface) => Path::new(Target::Neighbour { address: ends.peer, interface }),
        None => Path::new(Target::Through { next_hop: ends.peer, table: Some(0), only: None }),
    };
    (Family::of(ends.peer), path)
}
