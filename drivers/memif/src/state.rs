//! What the control thread knows of memif: sockets, interfaces, connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use quiver_core::control::reactor::Token;
use quiver_core::memory::epoch::Published;
use quiver_core::worker::device::Device;
use quiver_core::{InterfaceId, NodeId, WorkerId};
use serde_json::{Value, json};

use crate::config::{MemifConfig, Role};
use crate::handshake::{Offer, Proposal};
use crate::interrupt::Interrupts;
use crate::link::Link;
use crate::region::Regions;
use crate::ring::Ring;
use crate::socket::{Channel, Listener};
use crate::transmit::TxRings;
use quiver_linux::disposal::Account;

/// A socket's path, and who listens there.
pub(crate) struct Socket {
    pub(crate) path: String,
    pub(crate) listening: Option<Listening>,
    /// What its peers left behind and is still being closed.
    pub(crate) account: Account,
}

impl Socket {
    pub(crate) fn new(path: String) -> Socket {
        Socket { path, listening: None, account: Account::default() }
    }
}

/// A listening socket that is watched.
pub(crate) struct Listening {
    pub(crate) listener: Listener,
    pub(crate) token: Token,
    /// Nobody is accepted until the next look.
    pub(crate) paused: bool,
    /// When it was logged last that nobody is accepted, engine's nanoseconds.
    pub(crate) reported_ns: Option<u64>,
}

/// Where a connection stands.
pub(crate) enum Stage {
    /// Master: said hello.
    AwaitsInit,
    /// Master: the slave offers, for this interface.
    Collects(InterfaceId, Offer),
    /// Slave: connected for this interface, waits for the hello.
    AwaitsHello(InterfaceId),
    /// Slave: proposes.
    Proposes(InterfaceId, Box<Proposal>),
    /// Packets flow.
    Connected(InterfaceId),
}

impl Stage {
    pub(crate) fn interface(&self) -> Option<InterfaceId> {
        match self {
            Stage::AwaitsInit => None,
            Stage::Collects(id, _)
            | Stage::AwaitsHello(id)
            | Stage::Proposes(id, _)
            | Stage::Connected(id) => Some(*id),
        }
    }
}

/// A connection.
pub(crate) struct Session {
    pub(crate) channel: Channel,
    pub(crate) token: Token,
    /// The socket's number.
    pub(crate) socket: u32,
    /// The socket's account.
    pub(crate) account: Account,
    /// When it began, engine's nanoseconds.
    pub(crate) since_ns: u64,
    pub(crate) stage: Stage,
    /// How the other program calls itself.
    pub(crate) program: String,
}

/// A ring of a connected interface, for shows.
pub(crate) struct RingView {
    /// Do we receive from it?
    pub(crate) receives: bool,
    pub(crate) queue: usize,
    pub(crate) ring: Ring,
}

/// What there is while an interface is connected.
pub(crate) struct Connected {
    pub(crate) session: u64,
    pub(crate) program: String,
    pub(crate) peer_interface: String,
    pub(crate) regions: Arc<Regions>,
    pub(crate) rings: Vec<RingView>,
    pub(crate) link: Arc<Link>,
    pub(crate) interrupts: Interrupts,
}

/// An interface.
pub(crate) struct Entry {
    pub(crate) config: MemifConfig,
    /// What its workers send on.
    pub(crate) rings: Arc<Published<TxRings>>,
    /// The connection under way or established.
    pub(crate) session: Option<u64>,
    pub(crate) connected: Option<Connected>,
    /// Who served its receive queues last time.
    pub(crate) workers: Vec<WorkerId>,
    pub(crate) status: Arc<Mutex<Status>>,
}

/// What `show hardware-interfaces` sees too.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) socket: String,
    pub(crate) role: Option<Role>,
    pub(crate) mode: &'static str,
    pub(crate) peer: String,
    pub(crate) connects: u64,
    pub(crate) disconnects: u64,
    /// Why there is no connection, or why the last one ended.
    pub(crate) reason: String,
}

impl Entry {
    pub(crate) fn status(&self) -> std::sync::MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// All of memif, kept in the engine by type.
pub struct Memif {
    pub(crate) sockets: BTreeMap<u32, Socket>,
    pub(crate) interfaces: BTreeMap<InterfaceId, Entry>,
    pub(crate) sessions: BTreeMap<u64, Session>,
    pub(crate) sessions_made: u64,
    /// Threads of connections that are over, until they have ended.
    pub(crate) ending: Vec<(InterfaceId, Interrupts)>,
    /// A peer has taken away the memory of the router's buffers: private pages stand in for it.
    pub(crate) pool_lost: bool,
    /// `memif-input`.
    pub(crate) node: NodeId,
}

impl Drop for Memif {
    fn drop(&mut self) {
        for session in std::mem::take(&mut self.sessions).into_values() {
            session.channel.close(&session.account);
        }
        for socket in self.sockets.values_mut() {
            if let Some(listening) = socket.listening.take() {
                listening.listener.close(&socket.account);
            }
        }
    }
}

impl Memif {
    /// The interface of this number on a socket.
    pub(crate) fn find(&self, socket: u32, id: u32) -> Option<InterfaceId> {
        let mut all = self.interfaces.iter();
        all.find(|(_, e)| e.config.socket == socket && e.config.id == id).map(|(id, _)| *id)
    }

    /// The master of this number on a socket.
    pub(crate) fn find_master(&self, socket: u32, id: u32) -> Option<InterfaceId> {
        self.find(socket, id).filter(|id| {
            self.interfaces.get(id).is_some_and(|entry| entry.config.role == Role::Master)
        })
    }

    /// The interfaces on a socket.
    pub(crate) fn on_socket(&self, socket: u32) -> impl Iterator<Item = &Entry> {
        self.interfaces.values().filter(move |e| e.config.socket == socket)
    }
}

/// The engine's handle on an interface.
pub(crate) struct MemifDevice(pub(crate) Arc<Mutex<Status>>);

impl Device for MemifDevice {
    fn kind(&self) -> &'static str {
        "memif"
    }

    fn facts(&self) -> Vec<(String, Value)> {
        let status = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut facts = vec![
            ("socket".to_owned(), json!(status.socket)),
            ("role".to_owned(), json!(status.role.map(Role::name))),
            ("mode".to_owned(), json!(status.mode)),
            ("connects".to_owned(), json!(status.connects)),
            ("disconnects".to_owned(), json!(status.disconnects)),
        ];
        if !status.peer.is_empty() {
            facts.push(("peer".to_owned(), json!(status.peer)));
        }
        if !status.reason.is_empty() {
            facts.push(("last-disconnect".to_owned(), json!(status.reason)));
        }
        facts
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}
