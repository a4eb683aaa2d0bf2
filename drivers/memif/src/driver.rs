//! Sockets and interfaces, made and deleted: what the router's commands and the traffic generator
//! call.

use std::sync::{Arc, Mutex};

use quiver_core::control::interfaces::{InterfaceError, InterfaceSpec};
use quiver_core::control::reactor::Interest;
use quiver_core::graph::builder::GraphBuilder;
use quiver_core::memory::epoch::Published;
use quiver_core::worker::device::TxQueue;
use quiver_core::{Engine, InterfaceId, NodeSpec, WorkerId};
use quiver_linux::machine::address_of;

use crate::config::{MTU_BYTES_DEFAULT, MemifConfig, MemifError, Role};
use crate::connection;
use crate::handshake::Complaint;
use crate::reasons::MemifReason;
use crate::socket::{Listener, check_name};
use crate::state::{Entry, Listening, Memif, MemifDevice, Session, Socket, Stage, Status};
use crate::transmit::{MemifTx, TxRings};

/// The node under which packets come in.
pub const INPUT_NODE: &str = "memif-input";
/// The file of socket 0 in the router's runtime directory.
pub const SOCKET_FILE_DEFAULT: &str = "memif.sock";
/// How often slaves try to connect, and connections are looked at.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

/// Declare the driver's node. [`register`](crate::register) does it for a router; a program with an
/// engine of its own does it before the engine is built.
pub fn declare(graph: &mut GraphBuilder) {
    graph.node(
        NodeSpec::input(INPUT_NODE, "Packets from memif interfaces")
            .reasons::<MemifReason>()
            .describe(|record, names| {
                format!("{} bytes on {}", record.packet_bytes, names.interface(record.rx))
            }),
    );
}

/// Put the driver's state into the engine, once.
fn start(engine: &mut Engine) -> Result<(), MemifError> {
    if engine.get::<Memif>().is_some() {
        return Ok(());
    }
    let node = engine.node_id(INPUT_NODE).ok_or(MemifError::NotDeclared)?;
    let path = engine.config().runtime_dir.join(SOCKET_FILE_DEFAULT).to_string_lossy().into_owned();
    let mut memif = Memif {
        sockets: Default::default(),
        interfaces: Default::default(),
        sessions: Default::default(),
        sessions_made: 0,
        ending: Vec::new(),
        pool_lost: false,
        node,
    };
    memif.sockets.insert(0, Socket::new(path));
    engine.insert(memif);
    engine.on_event(INPUT_NODE, |engine, event| {
        connection::fault(engine, event.interface, event.bytes())
    });
    engine.every(LOOK_EVERY_NS, connection::look);
    Ok(())
}

/// Name a socket. Several may have the same path: interfaces of one can then be connected with
/// those of another. A path that begins with `@` is in Linux's abstract name space.
///
/// # Errors
/// The number is 0 or has another path, or the path cannot be that of a socket.
pub fn add_socket(engine: &mut Engine, number: u32, path: &str) -> Result<(), MemifError> {
    start(engine)?;
    if number == 0 {
        return Err(MemifError::SocketZero);
    }
    check_name(path).map_err(|source| MemifError::BadPath { path: path.to_owned(), source })?;
    engine.with::<Memif, _>(|_, memif| {
        if let Some(socket) = memif.sockets.get(&number) {
            return Err(MemifError::SocketExists(number, socket.path.clone()));
        }
        memif.sockets.insert(number, Socket::new(path.to_owned()));
        Ok(())
    })
}

/// The number of the socket that has this path.
///
/// # Errors
/// The driver cannot start: the system refuses a thread or descriptor.
pub fn socket_of_path(engine: &mut Engine, path: &str) -> Result<Option<u32>, MemifError> {
    start(engine)?;
    Ok(engine.with::<Memif, _>(|_, memif| {
        memif.sockets.iter().find(|(_, socket)| socket.path == path).map(|(number, _)| *number)
    }))
}

/// Forget a socket that no interface uses.
///
/// # Errors
/// The number is 0 or unknown, or an interface uses the socket.
pub fn delete_socket(engine: &mut Engine, number: u32) -> Result<(), MemifError> {
    start(engine)?;
    if number == 0 {
        return Err(MemifError::SocketZero);
    }
    engine.with::<Memif, _>(|_, memif| {
        if let Some(user) = memif.on_socket(number).next() {
            return Err(MemifError::SocketUsed(number, user.config.name()));
        }
        memif.sockets.remove(&number).map(drop).ok_or(MemifError::NoSocket(number))
    })
}

/// Make an interface. A master listens from now on, a slave tries to connect.
///
/// # Errors
/// The configuration contradicts itself or other interfaces, the socket is unknown, or the system
/// refuses.
pub fn create(engine: &mut Engine, config: MemifConfig) -> Result<InterfaceId, MemifError> {
    start(engine)?;
    config.check()?;
    let id = engine.with::<Memif, _>(|engine, memif| make(engine, memif, config))?;
    connection::connect_if_slave(engine, id);
    Ok(id)
}

fn make(
    engine: &mut Engine,
    memif: &mut Memif,
    config: MemifConfig,
) -> Result<InterfaceId, MemifError> {
    let number = config.socket;
    let socket = memif.sockets.get(&number).ok_or(MemifError::NoSocket(number))?;
    if memif.find(number, config.id).is_some() || engine.interface_id(&config.name()).is_some() {
        return Err(MemifError::Exists(config.name()));
    }
    let borrowed = memif.interfaces.values().map(|e| e.config.borrowed_buffers()).sum::<usize>()
        + config.borrowed_buffers();
    let total = engine.pool().total();
    if config.zero_copy && borrowed > total / 2 {
        return Err(MemifError::ZeroCopyBuffers { borrowed, total });
    }
    let path = socket.path.clone();
    if config.zero_copy {
        let name = config.name();
        tracing::warn!(
            "{name}: with zero-copy its peer can read and change the packets of all interfaces"
        );
    }
    check_name(&path).map_err(|source| MemifError::BadPath { path: path.clone(), source })?;
    let listens = config.role == Role::Master && socket.listening.is_none();
    let same_path =
        |(other, s): &(&u32, &Socket)| **other != number && s.path == path && s.listening.is_some();
    if let (true, Some((other, _))) = (listens, memif.sockets.iter().find(same_path)) {
        return Err(MemifError::Listens { socket: *other, path });
    }
    let listener = if listens { Some(listen(&path)?) } else { None };
    let mac = config.mac.unwrap_or_else(|| own_mac(&config, &path));
    let status = Arc::new(Mutex::new(Status {
        socket: path,
        role: Some(config.role),
        mode: config.mode.name(),
        reason: "no peer yet".into(),
        ..Status::default()
    }));
    let rings = Arc::new(Published::new(engine.epochs(), TxRings(Box::default())));
    let tx = (0..engine.worker_count())
        .map(|worker| Box::new(MemifTx::new(WorkerId(worker as u16), &rings)) as Box<dyn TxQueue>)
        .collect();
    let id = engine.create_interface(InterfaceSpec {
        name: config.name(),
        device: Box::new(MemifDevice(status.clone())),
        mac: if config.mode == crate::Mode::Ethernet { mac } else { [0; 6] },
        mtu_bytes: MTU_BYTES_DEFAULT,
        input: config.input_node().to_owned(),
        link_up: false,
        tx,
    })?;
    if let (Some(listener), Some(socket)) = (listener, memif.sockets.get_mut(&number)) {
        let token = engine
            .watch(listener.fd(), Interest::READ, move |engine| connection::accept(engine, number));
        socket.listening = Some(Listening { listener, token, paused: false, reported_ns: None });
    }
    let entry =
        Entry { config, rings, session: None, connected: None, workers: Vec::new(), status };
    memif.interfaces.insert(id, entry);
    Ok(id)
}

fn listen(path: &str) -> Result<Listener, MemifError> {
    let refused = |source| MemifError::Listen { path: path.to_owned(), source };
    let folder =
        std::path::Path::new(path).parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|_| !path.starts_with('@')) {
        std::fs::create_dir_all(folder).map_err(refused)?;
    }
    Listener::bind(path).map_err(refused)
}

/// The same for this end of this link on this machine each time.
fn own_mac(config: &MemifConfig, socket: &str) -> [u8; 6] {
    address_of((socket, config.id, config.role.name()))
}

/// Delete an interface; its peer is told.
///
/// # Errors
/// The interface is no memif interface, or a worker does not answer.
pub fn delete(engine: &mut Engine, id: InterfaceId) -> Result<(), MemifError> {
    let known = engine.get::<Memif>().is_some_and(|memif| memif.interfaces.contains_key(&id));
    if !known {
        return match engine.interface(id) {
            Some(interface) => Err(MemifError::NotMemif(interface.name.clone())),
            None => Err(MemifError::Interface(InterfaceError::Unknown)),
        };
    }
    connection::end_of_interface(engine, id, Complaint::Deleted);
    engine.delete_interface(id)?;
    engine.with::<Memif, _>(|engine, memif| {
        let Some(entry) = memif.interfaces.remove(&id) else { return };
        let number = entry.config.socket;
        if memif.on_socket(number).any(|other| other.config.role == Role::Master) {
            return;
        }
        // The last master: slaves that are not welcome yet go too, and the socket's file.
        let is_stranger = |s: &Session| s.socket == number && matches!(s.stage, Stage::AwaitsInit);
        let strangers: Vec<u64> =
            memif.sessions.iter().filter(|(_, s)| is_stranger(s)).map(|(n, _)| *n).collect();
        for session in strangers {
            if let Some(session) = memif.sessions.remove(&session) {
                engine.unwatch(session.token);
                session.channel.close(&session.account);
            }
        }
        let Some(socket) = memif.sockets.get_mut(&number) else { return };
        if let Some(listening) = socket.listening.take() {
            engine.unwatch(listening.token);
            listening.listener.close(&socket.account);
        }
    });
    Ok(())
}

/// Is somebody on the other side?
pub fn is_connected(engine: &Engine, id: InterfaceId) -> bool {
    let memif = engine.get::<Memif>();
    memif.and_then(|m| m.interfaces.get(&id)).is_some_and(|entry| entry.connected.is_some())
}

/// Why an interface has no peer, or why it lost the last one; empty for what is not memif.
pub fn disconnect_reason(engine: &Engine, id: InterfaceId) -> String {
    let memif = engine.get::<Memif>();
    let entry = memif.and_then(|m| m.interfaces.get(&id));
    entry.map_or_else(String::new, |entry| entry.status().reason.clone())
}
