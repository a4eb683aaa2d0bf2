//! Connections on the control thread: accepted or made, spoken with, started, ended.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use quiver_core::control::interfaces::InterfaceError;
use quiver_core::control::reactor::Interest;
use quiver_core::{Engine, InterfaceId, WorkerId};

use crate::config::Role;
use crate::driver::INPUT_NODE;
use crate::handshake::{AgreedRing, Agreement, Complaint, Offer, Proposal, check_init, hello};
use crate::interrupt::{Interrupt, Interrupts};
use crate::link::Link;
use crate::protocol::{BadMessage, Message};
use crate::receive::MemifRx;
use crate::ring::Ring;
use crate::slots::AnySlots;
use crate::socket::{Channel, Received};
use crate::state::{Connected, Entry, Listening, Memif, RingView, Session, Socket, Stage};
use crate::transmit::{TxRing, TxRings};
use quiver_linux::disposal::{self, Unchecked};

/// Messages taken from one connection before others have their turn.
const MESSAGES_PER_TURN: usize = 32;
/// Slaves accepted before others have their turn.
const ACCEPTS_PER_TURN: usize = 16;
/// Connections of one socket that have not said what they want; further ones are closed.
const STRANGERS_MAX: usize = 64;
/// Threads of earlier connections of an interface that its peers may have blocked, at a time.
pub(crate) const ENDING_MAX: usize = 8;
/// That nobody can be accepted is logged so often at most.
const REPORT_EVERY_NS: u64 = 60_000_000_000;
/// A handshake takes this long at most.
const HANDSHAKE_NS_MAX: u64 = 5_000_000_000;

/// Why a connection ended.
enum End {
    /// We end it, and say so.
    Ours(Complaint),
    /// The peer said so.
    Theirs(String),
    /// The peer is gone.
    Gone(Option<io::Error>),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Ours(complaint) => write!(f, "{complaint}"),
            End::Theirs(reason) if reason.is_empty() => f.write_str("the peer disconnected"),
            End::Theirs(reason) => write!(f, "the peer disconnected: {reason}"),
            End::Gone(Some(error)) if !is_gone(error) => write!(f, "the connection broke: {error}"),
            End::Gone(_) => f.write_str("the peer is gone"),
        }
    }
}

/// Slaves knock at a listening socket.
pub(crate) fn accept(engine: &mut Engine, socket: u32) {
    engine.with::<Memif, _>(|engine, memif| {
        for _ in 0..ACCEPTS_PER_TURN {
            let is_stranger =
                |s: &&Session| s.socket == socket && matches!(s.stage, Stage::AwaitsInit);
            let strangers = memif.sessions.values().filter(is_stranger).count();
            let Some(Socket { listening: Some(listening), account, .. }) =
                memif.sockets.get_mut(&socket)
            else {
                return;
            };
            if account.is_full() {
                return pause(
                    engine,
                    socket,
                    listening,
                    "the system is still closing what peers left",
                );
            }
            let channel = match listening.listener.accept() {
                Ok(Some(channel)) => channel,
                Ok(None) => return,
                Err(error) => return pause(engine, socket, listening, &error.to_string()),
            };
            if strangers < STRANGERS_MAX && channel.send(&hello(), None).is_ok() {
                add_session(engine, memif, channel, socket, Stage::AwaitsInit);
            } else {
                channel.close(account);
            }
        }
    });
}

/// Accept nobody until the next look: the listening socket stays readable, and would be looked at
/// in every turn.
fn pause(engine: &mut Engine, socket: u32, listening: &mut Listening, why: &str) {
    listening.paused = true;
    engine.set_interest(listening.token, Interest { read: false, write: false });
    let now_ns = engine.now_ns();
    if listening.reported_ns.is_none_or(|at| now_ns.saturating_sub(at) >= REPORT_EVERY_NS) {
        listening.reported_ns = Some(now_ns);
        tracing::warn!("memif socket {socket}: no connection can be accepted for now: {why}");
    }
}

fn add_session(
    engine: &mut Engine,
    memif: &mut Memif,
    channel: Channel,
    socket: u32,
    stage: Stage,
) -> u64 {
    memif.sessions_made += 1;
    let number = memif.sessions_made;
    let token = engine.watch(channel.fd(), Interest::READ, move |engine| listen_to(engine, number));
    let account =
        memif.sockets.get(&socket).map(|socket| socket.account.clone()).unwrap_or_default();
    let since_ns = engine.now_ns();
    let session =
        Session { channel, token, socket, account, since_ns, stage, program: String::new() };
    memif.sessions.insert(number, session);
    number
}

/// A slave without a connection tries to get one.
pub(crate) fn connect_if_slave(engine: &mut Engine, id: InterfaceId) {
    engine.with::<Memif, _>(|engine, memif| {
        let Some(entry) = memif.interfaces.get_mut(&id) else { return };
        if entry.config.role != Role::Slave || entry.session.is_some() {
            return;
        }
        let socket = entry.config.socket;
        let Some(path) = memif.sockets.get(&socket).map(|s| s.path.clone()) else { return };
        match Channel::connect(&path) {
            Ok(channel) => {
                let session = add_session(engine, memif, channel, socket, Stage::AwaitsHello(id));
                if let Some(entry) = memif.interfaces.get_mut(&id) {
                    entry.session = Some(session);
                }
            }
            Err(error) => entry.status().reason = format!("no master at {path}: {error}"),
        }
    });
}

/// Something is to be read from a connection.
fn listen_to(engine: &mut Engine, number: u64) {
    engine.with::<Memif, _>(|engine, memif| {
        for _ in 0..MESSAGES_PER_TURN {
            let Some(session) = memif.sessions.get(&number) else { return };
            let account = session.account.clone();
            let end = match session.channel.receive() {
                Received::Nothing => return,
                Received::Closed(error) => Some(End::Gone(error)),
                Received::NoDescriptors => Some(End::Ours(Complaint::NoDescriptors)),
                Received::Size(bytes, descriptors) => {
                    account.dispose(descriptors);
                    Some(End::Ours(BadMessage::Size(bytes).into()))
                }
                Received::Message(_, descriptors) if descriptors.len() > 1 => {
                    let count = descriptors.len();
                    account.dispose(descriptors);
                    Some(End::Ours(Complaint::Descriptors(count)))
                }
                Received::Message(bytes, mut descriptors) => {
                    let descriptor = descriptors.pop().map(|fd| Unchecked::new(fd, &account));
                    match Message::decode(&bytes) {
                        Ok(Message::Disconnect { reason, .. }) => Some(End::Theirs(reason)),
                        Ok(message) => {
                            answer(engine, memif, number, message, descriptor).err().map(End::Ours)
                        }
                        Err(error) => Some(End::Ours(error.into())),
                    }
                }
            };
            if let Some(end) = end {
                return finish(engine, memif, number, end);
            }
        }
    });
}

/// Take a message and say what follows.
fn answer(
    engine: &mut Engine,
    memif: &mut Memif,
    number: u64,
    message: Message,
    descriptor: Option<Unchecked>,
) -> Result<(), Complaint> {
    let Some(session) = memif.sessions.get_mut(&number) else { return Ok(()) };
    if descriptor.is_some() && !matches!(message, Message::AddRegion { .. } | Message::AddRing(_)) {
        return Err(Complaint::Descriptors(1));
    }
    match (&mut session.stage, message) {
        (Stage::AwaitsInit, Message::Init(init)) => {
            if init.version != crate::protocol::VERSION {
                return Err(Complaint::Version(init.version));
            }
            session.program = init.name.clone();
            let socket = session.socket;
            let id = memif.find_master(socket, init.id).ok_or(Complaint::NoInterface(init.id))?;
            let entry = memif.interfaces.get_mut(&id).ok_or(Complaint::NoInterface(init.id))?;
            if entry.session.is_some() {
                return Err(Complaint::Taken(init.id));
            }
            if let Err(complaint) = check_init(&entry.config, &init) {
                entry.status().reason = format!("refused {}: {complaint}", init.name);
                return Err(complaint);
            }
            entry.session = Some(number);
            set_stage(memif, number, Stage::Collects(id, Offer::default()));
            acknowledge(memif, number, Message::Ack)
        }
        (Stage::Collects(_, offer), Message::AddRegion { index, size }) => {
            offer.add_region(index, size, descriptor)?;
            acknowledge(memif, number, Message::Ack)
        }
        (Stage::Collects(id, offer), Message::AddRing(ring)) => {
            let entry = memif.interfaces.get(id).ok_or(Complaint::Deleted)?;
            offer.add_ring(&entry.config, ring, descriptor)?;
            acknowledge(memif, number, Message::Ack)
        }
        (Stage::Collects(id, offer), Message::Connect(name)) => {
            let (id, agreement) = (*id, std::mem::take(offer).finish()?);
            let ours = memif.interfaces.get(&id).ok_or(Complaint::Deleted)?.config.name();
            acknowledge(memif, number, Message::Connected(ours))?;
            begin(engine, memif, number, id, agreement, name)
        }
        (Stage::AwaitsHello(id), Message::Hello(hello)) => {
            session.program = hello.name.clone();
            let id = *id;
            let entry = memif.interfaces.get(&id).ok_or(Complaint::Deleted)?;
            if entry.config.zero_copy && memif.pool_lost {
                return Err(Complaint::PoolLost);
            }
            let proposal = Proposal::new(&entry.config, &hello, engine.pool())?;
            set_stage(memif, number, Stage::Proposes(id, Box::new(proposal)));
            propose(memif, number)
        }
        (Stage::Proposes(..), Message::Ack) => propose(memif, number),
        (Stage::Proposes(id, _), Message::Connected(name)) => {
            let id = *id;
            let Stage::Proposes(_, proposal) =
                std::mem::replace(&mut session.stage, Stage::Connected(id))
            else {
                return Ok(()); // cannot be: it was matched just now
            };
            let agreement = proposal.finish().ok_or(Complaint::Unexpected(7))?;
            begin(engine, memif, number, id, agreement, name)
        }
        (Stage::AwaitsInit | Stage::Collects(..), Message::Ack) => Ok(()), // harmless
        (_, message) => Err(Complaint::Unexpected(message.kind())),
    }
}

fn set_stage(memif: &mut Memif, number: u64, stage: Stage) {
    if let Some(session) = memif.sessions.get_mut(&number) {
        session.stage = stage;
    }
}

fn acknowledge(memif: &Memif, number: u64, message: Message) -> Result<(), Complaint> {
    match memif.sessions.get(&number) {
        Some(session) => say(&session.channel, &message, None),
        None => Ok(()),
    }
}

/// Send. That the peer is gone is no complaint: what is read next says so, or why it went.
fn say(channel: &Channel, message: &Message, descriptor: Option<RawFd>) -> Result<(), Complaint> {
    match channel.send(message, descriptor) {
        Err(error) if !is_gone(&error) => Err(Complaint::Send(error)),
        _ => Ok(()),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// The slave's next message; the master acknowledges each but the last.
fn propose(memif: &mut Memif, number: u64) -> Result<(), Complaint> {
    let Some(Session { stage: Stage::Proposes(_, proposal), channel, .. }) =
        memif.sessions.get_mut(&number)
    else {
        return Ok(());
    };
    match proposal.next_message() {
        Some((message, descriptor)) => say(channel, &message, descriptor),
        None => Err(Complaint::Unexpected(1)),
    }
}

/// Rings, and apart from them their eventfds.
fn split(rings: Vec<AgreedRing>) -> (Vec<(Ring, AnySlots)>, Vec<Interrupt>) {
    rings.into_iter().map(|agreed| ((agreed.ring, agreed.slots), agreed.interrupt)).unzip()
}

/// Threads of earlier connections of an interface that have not ended.
fn ending(memif: &mut Memif, id: InterfaceId) -> usize {
    memif.ending.retain(|(_, interrupts)| !interrupts.has_ended());
    memif.ending.iter().filter(|(of, _)| *of == id).count()
}

/// Both ends have agreed: give the rings to the workers.
fn begin(
    engine: &mut Engine,
    memif: &mut Memif,
    number: u64,
    id: InterfaceId,
    agreement: Agreement,
    peer_interface: String,
) -> Result<(), Complaint> {
    set_stage(memif, number, Stage::Connected(id));
    let program = memif.sessions.get(&number).map(|s| s.program.clone()).unwrap_or_default();
    let blocked = ending(memif, id);
    if blocked >= ENDING_MAX {
        return Err(Complaint::Blocked(blocked));
    }
    let Some(entry) = memif.interfaces.get_mut(&id) else { return Err(Complaint::Deleted) };
    let link = Arc::new(Link::new(number, id, memif.node));
    let shown = |receives: bool, rings: &[AgreedRing]| -> Vec<RingView> {
        let shown = |(queue, agreed): (usize, &AgreedRing)| RingView {
            receives,
            queue,
            ring: Ring::clone(&agreed.ring),
        };
        rings.iter().enumerate().map(shown).collect()
    };
    let mut rings = shown(true, &agreement.receive);
    rings.extend(shown(false, &agreement.transmit));
    let peer = format!("{program} ({peer_interface})");
    let Agreement { regions, receive, transmit } = agreement;
    let (receive, from_peer) = split(receive);
    let (transmit, to_peer) = split(transmit);
    let interrupts = Interrupts::start(from_peer, to_peer).map_err(Complaint::NoThread)?;
    let bells: Vec<_> = (0..receive.len()).map(|ring| interrupts.bell(ring)).collect();
    let ringers: Vec<_> = (0..transmit.len()).map(|ring| interrupts.ringer(ring)).collect();
    entry.connected = Some(Connected {
        session: number,
        program,
        peer_interface,
        regions,
        rings,
        link: link.clone(),
        interrupts,
    });
    let is_shared = transmit.len() < engine.worker_count();
    let transmit = transmit.into_iter().zip(ringers).map(|((ring, slots), ringer)| {
        TxRing::new(ring, slots, ringer, link.clone(), is_shared, engine.pool())
    });
    entry.rings.publish(TxRings(transmit.collect()));
    for (queue, ((ring, slots), bell)) in receive.into_iter().zip(bells).enumerate() {
        let rx = MemifRx::new(ring, slots, bell, link.clone(), engine.pool());
        let worker = entry.workers.get(queue).copied();
        let added = engine.add_rx_queue(id, INPUT_NODE, Box::new(rx), entry.config.rx_mode, worker);
        added.map_err(|error| match error {
            InterfaceError::Stalled(_) => Complaint::Stalled,
            _ => Complaint::Fault("the router has no place for one more receive queue"),
        })?;
    }
    {
        let mut status = entry.status();
        status.connects += 1;
        status.peer = peer;
        status.reason.clear();
    }
    tracing::info!("{}: connected with {}", entry.config.name(), entry.status().peer);
    let _ = engine.set_link_up(id, true); // it exists: it is in our list
    Ok(())
}

/// End a connection and take its rings from the workers. The memory is unmapped when the last of
/// them has let go.
fn finish(engine: &mut Engine, memif: &mut Memif, number: u64, end: End) {
    let Some(session) = memif.sessions.remove(&number) else { return };
    engine.unwatch(session.token);
    let entry = session.stage.interface().and_then(|id| Some((id, memif.interfaces.get_mut(&id)?)));
    if let Some((id, entry)) = entry.filter(|(_, entry)| entry.session == Some(number)) {
        entry.session = None;
        if entry.connected.is_some() {
            let _ = engine.set_link_up(id, false); // it exists: it is in our list
            if let Some(interrupts) = stop(engine, id, entry) {
                interrupts.end();
                memif.ending.push((id, interrupts));
            }
            tracing::info!("{}: disconnected: {end}", entry.config.name());
        }
        let mut status = entry.status();
        status.reason = end.to_string();
        status.peer.clear();
    }
    if let End::Ours(complaint) = end {
        let farewell = Message::Disconnect { code: 0, reason: complaint.to_string() };
        let _ = session.channel.send(&farewell, None); // it may be gone already
    }
    session.channel.close(&session.account);
}

fn stop(engine: &mut Engine, id: InterfaceId, entry: &mut Entry) -> Option<Interrupts> {
    if let Some(interface) = engine.interface(id) {
        entry.workers =
            interface.rx.iter().map(|placement| placement.worker).collect::<Vec<WorkerId>>();
    }
    entry.rings.publish(TxRings(Box::default()));
    if let Err(error) = engine.remove_rx_queues(id) {
        tracing::warn!("{}: {error}", entry.config.name());
    }
    entry.status().disconnects += 1;
    entry.connected.take().map(|connected| connected.interrupts)
}

/// End whatever connection an interface has.
pub(crate) fn end_of_interface(engine: &mut Engine, id: InterfaceId, complaint: Complaint) {
    engine.with::<Memif, _>(|engine, memif| {
        if let Some(number) = memif.interfaces.get(&id).and_then(|entry| entry.session) {
            finish(engine, memif, number, End::Ours(complaint));
        }
    });
}

/// A worker says that the peer of an interface broke the rules in this session.
pub(crate) fn fault(engine: &mut Engine, id: InterfaceId, session: &[u8]) {
    engine.with::<Memif, _>(|engine, memif| {
        let connected = memif.interfaces.get(&id).and_then(|entry| entry.connected.as_ref());
        if connected.is_some_and(|connected| connected.session.to_ne_bytes() == session) {
            end_if_broken(engine, memif, id);
        }
    });
}

fn end_if_broken(engine: &mut Engine, memif: &mut Memif, id: InterfaceId) {
    let Some(connected) = memif.interfaces.get(&id).and_then(|entry| entry.connected.as_ref())
    else {
        return;
    };
    let number = connected.session;
    if let Some(region) = connected.regions.lost() {
        memif.pool_lost |= connected.regions.list()[region].is_pool();
        finish(engine, memif, number, End::Ours(Complaint::MemoryLost(region)));
    } else if let Some(fault) = connected.link.fault() {
        finish(engine, memif, number, End::Ours(Complaint::Fault(fault.text())));
    }
}

/// Do again what could not be done: accept, close, end threads that a peer has blocked.
fn try_again(engine: &mut Engine, memif: &mut Memif) {
    disposal::retry();
    memif.ending.iter().for_each(|(_, interrupts)| interrupts.end());
    memif.ending.retain(|(_, interrupts)| !interrupts.has_ended());
    for listening in memif.sockets.values_mut().filter_map(|socket| socket.listening.as_mut()) {
        if std::mem::replace(&mut listening.paused, false) {
            engine.set_interest(listening.token, Interest::READ);
        }
    }
}

/// Once a second: slaves without a connection try again, handshakes that hang end, and so do
/// connections whose peer broke the rules.
pub(crate) fn look(engine: &mut Engine) {
    let ids = engine.with::<Memif, _>(|engine, memif| {
        try_again(engine, memif);
        let now = engine.now_ns();
        let hanging = |s: &Session| {
            !matches!(s.stage, Stage::Connected(_))
                && now.saturating_sub(s.since_ns) > HANDSHAKE_NS_MAX
        };
        let hanging: Vec<u64> =
            memif.sessions.iter().filter(|(_, s)| hanging(s)).map(|(number, _)| *number).collect();
        for number in hanging {
            finish(engine, memif, number, End::Ours(Complaint::Timeout));
        }
        let ids: Vec<InterfaceId> = memif.interfaces.keys().copied().collect();
        ids.iter().for_each(|id| end_if_broken(engine, memif, *id));
        ids
    });
    ids.into_iter().for_each(|id| connect_if_slave(engine, id));
}
