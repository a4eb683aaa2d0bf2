//! A routing daemon (FRR's `bfdd --dplaneaddr`) gives its BFD sessions to this router: it connects,
//! adds sessions and hears of their states.
//!
//! One daemon is connected at a time; one that connects anew takes the place of the one before.
//! When the connection is gone, its sessions go on for [`GRACE_NS`], in which a daemon that comes
//! back takes them over as they are.

mod connection;
pub mod messages;
mod socket;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_control::Refusal;
use quiver_core::control::reactor::{Interest, Token};
use quiver_core::worker::Worker;
use quiver_core::{Context, Engine, InterfaceId};
use quiver_forwarding::fib::Fib;
use quiver_wire::bfd::CONTROL_LEN;

use self::connection::Connection;
use self::messages::{Message, SessionMessage, StateChange};
pub(crate) use self::socket::Endpoint;
use self::socket::{Listener, Stream};
use crate::config::{self, Bfd, NewSession, Origin};
use crate::echo::ECHO_BYTES;
use crate::input::{BfdInput, NODE};
use crate::peers::Counts as SessionCounts;
use crate::session::{INTERVAL_US_MAX, INTERVAL_US_MIN, Session, Settings};
use crate::shared::{Ends, Place};

/// The port that `bfdd` connects to unless it is given another.
pub(crate) const PORT: u16 = 50_700;
/// Sessions of a daemon that is gone stay so long.
const GRACE_NS: u64 = 10_000_000_000;

/// A daemon that listens is looked for so often.
const CONNECT_NS: u64 = 1_000_000_000;

/// What is counted, for `show bfd dplane`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Connections.
    pub connected: u64,
    /// Messages received.
    pub received: u64,
    /// Messages sent.
    pub sent: u64,
    /// Connections that were closed for what the daemon sent.
    pub malformed: u64,
    /// Sessions that the router could not add.
    pub refused: u64,
}

struct Listening {
    endpoint: Endpoint,
    socket: Option<Listener>,
    token: Token,
}

/// What the router knows of its routing daemon.
#[derive(Default)]
pub(crate) struct Dplane {
    listening: Option<Listening>,
    connection: Option<Connection>,
    /// The daemon's sessions by its numbers.
    sessions: BTreeMap<u32, Ends>,
    /// Sessions of a daemon that is gone, which none has taken over.
    orphans: BTreeSet<Ends>,
    grace: Option<Token>,
    counts: Counts,
}

/// What `show bfd dplane` shows.
pub(crate) struct Status {
    pub endpoint: Endpoint,
    pub daemon: Option<String>,
    pub sessions: usize,
    pub orphans: usize,
    pub counts: Counts,
}

impl Dplane {
    pub fn status(&self) -> Option<Status> {
        let listening = self.listening.as_ref()?;
        Some(Status {
            endpoint: listening.endpoint.clone(),
            daemon: self.connection.as_ref().map(|connection| connection.from().to_owned()),
            sessions: self.sessions.len(),
            orphans: self.orphans.len(),
            counts: self.counts,
        })
    }
}

/// Let a daemon connect.
///
/// # Errors
/// The router listens already, or the system refuses the socket.
pub(crate) fn listen(engine: &mut Engine, endpoint: Endpoint) -> Result<(), Refusal> {
    engine.with(|engine, dplane: &mut Dplane| {
        if let Some(listening) = &dplane.listening {
            let what = format!("a BFD daemon is waited for at {} already", listening.endpoint);
            return Err(Refusal::new(what).remedy("bfd dplane close"));
        }
        let socket = Listener::bind(&endpoint)?;
        let token = match &socket {
            Some(socket) => engine.watch(socket.fd(), Interest::READ, accept),
            None => engine.every(CONNECT_NS, connect),
        };
        dplane.listening = Some(Listening { endpoint, socket, token });
        Ok(())
    })
}

/// Listen no more, and delete the sessions of daemons.
///
/// # Errors
/// The router does not listen.
pub(crate) fn close(engine: &mut Engine) -> Result<(), Refusal> {
    engine.with(|engine, dplane: &mut Dplane| {
        let listening = dplane.listening.take();
        let listening = listening.ok_or_else(|| Refusal::new("no BFD daemon is waited for"))?;
        engine.unwatch(listening.token);
        disconnect(engine, dplane, "the router listens no more");
        end_grace(engine, dplane);
        Ok(())
    })
}

/// Connect to the daemon that listens, if there is no connection.
fn connect(engine: &mut Engine) {
    engine.with(|engine, dplane: &mut Dplane| {
        let Some(listening) = dplane.listening.as_ref() else { return };
        if dplane.connection.is_some() {
            return;
        }
        if let Some(Ok(stream)) = Stream::connect(&listening.endpoint) {
            let from = listening.endpoint.to_string();
            tracing::info!("BFD daemon {from} is connected");
            dplane.connection = Some(Connection::new(engine, stream, from, serve));
            dplane.counts.connected += 1;
        }
    });
}

fn accept(engine: &mut Engine) {
    engine.with(|engine, dplane: &mut Dplane| {
        while let Some(listening) = &dplane.listening
            && let Some(Ok((stream, from))) = listening.socket.as_ref().map(Listener::accept)
        {
            disconnect(engine, dplane, "a daemon connects anew");
            tracing::info!("BFD daemon {from} is connected");
            dplane.connection = Some(Connection::new(engine, stream, from, serve));
            dplane.counts.connected += 1;
        }
    });
}

/// The connection can be read or written.
fn serve(engine: &mut Engine) {
    engine.with(|engine, dplane: &mut Dplane| {
        let Some(connection) = &mut dplane.connection else { return };
        let is_open = connection.read();
        loop {
            let Some(connection) = &mut dplane.connection else { return };
            match connection.take() {
                Ok(Some((message, id))) => {
                    dplane.counts.received += 1;
                    handle(engine, dplane, message, id);
                }
                Ok(None) => break,
                Err(fault) => {
                    dplane.counts.malformed += 1;
                    return disconnect(engine, dplane, &fault.to_string());
                }
            }
        }
        if let Err(why) = is_open {
            return disconnect(engine, dplane, &why);
        }
        flush(engine, dplane);
    });
}

fn send(dplane: &mut Dplane, message: &[u8]) {
    if let Some(connection) = &mut dplane.connection {
        connection.put(message);
        dplane.counts.sent += 1;
    }
}

fn flush(engine: &mut Engine, dplane: &mut Dplane) {
    if let Some(Err(why)) = dplane.connection.as_mut().map(|connection| connection.flush(engine)) {
        disconnect(engine, dplane, &why);
    }
}

/// The connection ends: its sessions wait for another one.
fn disconnect(engine: &mut Engine, dplane: &mut Dplane, why: &str) {
    let Some(connection) = dplane.connection.take() else { return };
    tracing::info!("BFD daemon {}: {why}; the connection is closed", connection.from());
    connection.close(engine);
    dplane.orphans.extend(std::mem::take(&mut dplane.sessions).into_values());
    if let Some(token) = dplane.grace.take() {
        engine.unwatch(token);
    }
    dplane.grace = Some(engine.after(GRACE_NS, |engine| engine.with(end_grace)));
}

/// Sessions that no daemon has taken over are deleted.
fn end_grace(engine: &mut Engine, dplane: &mut Dplane) {
    if let Some(token) = dplane.grace.take() {
        engine.unwatch(token);
    }
    for ends in std::mem::take(&mut dplane.orphans) {
        remove(engine, &ends);
    }
}

fn remove(engine: &mut Engine, ends: &Ends) {
    // Its interface may have taken it away.
    if origin(engine, ends) == Some(Origin::Daemon)
        && let Err(refused) = config::delete(engine, ends)
    {
        tracing::warn!("BFD session of the daemon to {}: {refused}", ends.peer);
    }
}

fn origin(engine: &Engine, ends: &Ends) -> Option<Origin> {
    engine.get::<Bfd>()?.sessions.get(ends).map(|entry| entry.origin)
}

fn handle(engine: &mut Engine, dplane: &mut Dplane, message: Message, id: u16) {
    match message {
        Message::EchoRequest(times) => send(dplane, &messages::echo_reply(id, times)),
        Message::EchoReply => {}
        Message::Add(session) => {
            let (number, peer) = (session.id, session.peer);
            match add(engine, dplane, &session) {
                Ok(ends) => {
                    dplane.sessions.insert(number, ends);
                    report(engine, dplane, number, &ends);
                }
                Err(refused) => {
                    dplane.counts.refused += 1;
                    tracing::warn!("BFD session {number:#x} of the daemon to {peer}: {refused}");
                }
            }
        }
        Message::Delete(number) => {
            if let Some(ends) = dplane.sessions.remove(&number) {
                remove(engine, &ends);
            }
        }
        Message::RequestCounters(number) => {
            let place = dplane.sessions.get(&number).and_then(|ends| place(engine, ends));
            let counts = place.and_then(|place| snapshot(engine, place));
            let counts = counts.map(|(_, counts)| counts).unwrap_or_default();
            let (control, echo) = (CONTROL_LEN as u64, ECHO_BYTES as u64);
            let counts = [
                counts.received * control,
                counts.received,
                counts.sent * control,
                counts.sent,
                counts.echoes_received * echo,
                counts.echoes_received,
                counts.echoes_sent * echo,
                counts.echoes_sent,
            ];
            send(dplane, &messages::counters(id, number, counts));
        }
    }
}

/// Add a session of the daemon, change it, or take over one of the daemon before.
fn add(engine: &mut Engine, dplane: &mut Dplane, new: &SessionMessage) -> Result<Ends, Refusal> {
    let ends = ends_of(engine, new)?;
    if new.detect_mult == 0 || new.id == 0 {
        return Err(Refusal::new("its multiplier or its number is 0"));
    }
    let bounded = |us: u32| us.clamp(INTERVAL_US_MIN, INTERVAL_US_MAX);
    let settings = Settings {
        desired_min_tx_us: bounded(new.min_tx_us),
        required_min_rx_us: bounded(new.min_rx_us),
        detect_mult: new.detect_mult,
    };
    if let Some(before) = dplane.sessions.get(&new.id).copied().filter(|before| *before != ends) {
        dplane.sessions.remove(&new.id);
        remove(engine, &before);
    }
    let is_other_number =
        dplane.sessions.iter().any(|(number, known)| *known == ends && *number != new.id);
    match origin(engine, &ends) {
        Some(Origin::Operator) => {
            return Err(Refusal::new("the operator of this router has configured it"));
        }
        Some(Origin::Daemon) if is_other_number => {
            return Err(Refusal::new("the daemon has a session between these addresses"));
        }
        Some(Origin::Bond) => return Err(Refusal::new("it is the session of a bond's member")),
        Some(Origin::Daemon) => config::modify(engine, &ends, settings)?,
        None => {
            let min_ttl = if new.is_multihop { new.min_ttl } else { 0 };
            config::add(
                engine,
                NewSession {
                    ends,
                    settings,
                    signing: None,
                    origin: Origin::Daemon,
                    discriminator: Some(new.id),
                    min_ttl,
                    bond: None,
                },
            )?;
        }
    }
    dplane.orphans.remove(&ends);
    config::set_admin(engine, &ends, !new.is_shut_down)?;
    Ok(ends)
}

/// The interface and addresses of a daemon's session. The daemon names the interface as Linux
/// does, so addresses decide: those of twins are the router's, too.
fn ends_of(engine: &Engine, new: &SessionMessage) -> Result<Ends, Refusal> {
    let is_host = |ip: IpAddr| !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback();
    let peer = new.peer;
    if !is_host(peer) || new.local.is_some_and(|local| !is_host(local) || local == peer) {
        return Err(Refusal::new("its addresses are not those of two hosts"));
    }
    if new.is_multihop {
        let local = new.local.ok_or_else(|| Refusal::new("no local address over several hops"))?;
        return Ok(Ends { interface: None, is_member: false, local, peer });
    }
    let Some(fib) = engine.get::<Fib>() else { return Err(config::busy()) };
    let fits = |(address, length): (IpAddr, u8)| match new.local {
        Some(local) => address == local,
        None => is_in_subnet(peer, address, length),
    };
    let found: Vec<(InterfaceId, IpAddr)> = engine
        .all_interfaces()
        .filter_map(|on| Some((on.id, fib.addresses(on.id).find(|own| fits(*own))?.0)))
        .collect();
    let named = found.iter().find(|(id, _)| engine.interface_name(*id) == new.interface);
    let (interface, local) = match (named, found.as_slice()) {
        (Some(named), _) => *named,
        (None, [only]) => *only,
        (None, []) => return Err(Refusal::new("no interface of this router has its address")),
        (None, _) => {
            let what = format!("several interfaces have its address, none is `{}`", new.interface);
            return Err(Refusal::new(what));
        }
    };
    Ok(Ends { interface: Some(interface), is_member: false, local, peer })
}

fn is_in_subnet(peer: IpAddr, address: IpAddr, length: u8) -> bool {
    match (peer, address) {
        (IpAddr::V4(peer), IpAddr::V4(own)) => {
            let shift = 32u32.saturating_sub(length.into());
            peer != own && (peer.to_bits() ^ own.to_bits()).checked_shr(shift).unwrap_or(0) == 0
        }
        (IpAddr::V6(peer), IpAddr::V6(own)) => {
            let shift = 128u32.saturating_sub(length.into());
            peer != own && (peer.to_bits() ^ own.to_bits()).checked_shr(shift).unwrap_or(0) == 0
        }
        _ => false,
    }
}

fn place(engine: &Engine, ends: &Ends) -> Option<Place> {
    engine.get::<Bfd>()?.sessions.get(ends).map(|entry| entry.place)
}

/// A session as its worker has it.
fn snapshot(engine: &mut Engine, place: Place) -> Option<(Session, SessionCounts)> {
    let node = engine.node_id(NODE)?;
    let asked = engine.call(place.worker, move |worker: &mut Worker| {
        worker.visit(node, |input: &mut BfdInput, _: &mut Context<'_>| {
            let peer = input.store.as_mut()?.peer(place.slot)?;
            Some((peer.session.clone(), peer.counts))
        })
    });
    asked.ok()??
}

/// The daemon hears the state of a session.
fn report(engine: &mut Engine, dplane: &mut Dplane, id: u32, ends: &Ends) {
    let Some((session, _)) = place(engine, ends).and_then(|place| snapshot(engine, place)) else {
        return;
    };
    let change = StateChange {
        id,
        remote_discriminator: session.remote_discriminator,
        is_remote_independent: session.remote_independent,
        is_remote_demand: session.remote_demand,
        remote_min_tx_us: session.remote_min_tx_us,
        remote_min_rx_us: session.remote_min_rx_us,
        remote_min_echo_rx_us: session.remote_min_echo_rx_us,
        state: session.state,
        remote_diagnostic: session.remote_diagnostic,
        remote_detect_mult: session.remote_detect_mult,
    };
    send(dplane, &messages::state_change(&change));
}

/// These sessions have changed: the daemon hears of those that are its own.
pub(crate) fn report_changes(engine: &mut Engine, changed: &[Ends]) {
    engine.with(|engine, dplane: &mut Dplane| {
        let numbers: BTreeMap<Ends, u32> =
            dplane.sessions.iter().map(|(number, ends)| (*ends, *number)).collect();
        for ends in changed {
            if let Some(number) = numbers.get(ends) {
                report(engine, dplane, *number, ends);
            }
        }
        flush(engine, dplane);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_in_the_subnet_of_an_address_that_is_not_its_own() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (peer, own, length, is_in) in [
            ("192.0.2.2", "192.0.2.1", 24, true),
            ("192.0.2.2", "192.0.2.2", 24, false),
            ("192.0.3.2", "192.0.2.1", 24, false),
            ("10.9.9.9", "192.0.2.1", 0, true),
            ("192.0.2.1", "192.0.2.2", 32, false),
            ("2001:db8::2", "2001:db8::1", 64, true),
            ("2001:db8:1::2", "2001:db8::1", 64, false),
            ("2001:db8::2", "192.0.2.1", 0, false),
        ] {
            assert_eq!(is_in_subnet(ip(peer), ip(own), length), is_in, "{peer} {own}/{length}");
        }
    }
}
