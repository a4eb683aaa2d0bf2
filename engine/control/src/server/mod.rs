//! The doors of a running program: a socket for plain command lines, and one for JSON-RPC, which
//! also comes over loopback TCP or a connection that is there already.
//!
//! One thread of its own moves bytes and never waits for a client; commands go through a channel to
//! the [`Dispatcher`] on the control thread, one at a time per client. A client that sends what is
//! not text, or too much of it, is dropped, and what it began is cancelled. Answers are made as
//! they are read: the command of a client that does not read rests. When all places are taken, idle
//! clients give way; root and the router's own user always get in.

mod client;
mod dispatcher;
mod flow;
mod peer;
mod plain;
pub(crate) mod rpc;
mod socket;
mod stream;
pub mod subscriptions;
mod tls;
mod token;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use quiver_linux::disposal::{self, Account};
use quiver_linux::rights::refuse_descriptors;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde_json::Value as Json;

use crate::error::Refusal;
use crate::job::Progress;
use crate::output::Output;
use crate::rights::Rights;
use crate::script::OnRefusal;
use client::{Client, Protocol};
pub use dispatcher::{ControlLoad, Dispatcher, UNITS_PER_TURN_MAX};
use flow::Flow;
use peer::{Entry, Seat, entry};
use peer::{Groups, Peer};
use socket::Listener;
pub use socket::{group_id, listen_unix};
use stream::Stream;
use tls::Door;
pub use tls::TlsDoor;
pub use token::Token;

/// More ways to JSON-RPC than its socket.
#[derive(Debug, Default)]
pub struct MoreDoors {
    /// Listen here, an address of the loopback. Everybody on this machine may connect.
    pub tcp: Option<SocketAddr>,
    /// What clients over TCP must say before they are served.
    pub token: Option<Token>,
    /// Listen here for clients with certificates.
    pub tls: Option<TlsDoor>,
    /// Clients that are connected already.
    pub clients: Vec<UnixStream>,
}

/// Read a request of the API socket without doing what it asks for; the error is the response to
/// send.
///
/// # Errors
/// The line is no request of JSON-RPC; the text is the response.
pub fn check_request(line: &[u8]) -> Result<(), String> {
    rpc::parse(line).map(drop)
}

/// Where the router listens, and how much it bears.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Socket for plain command lines.
    pub cli_socket: Option<PathBuf>,
    /// Socket for JSON-RPC 2.0, one message a line.
    pub api_socket: Option<PathBuf>,
    /// Group that may use the sockets besides the owner.
    pub group: Option<String>,
    /// Group whose members may look at the router and not change it.
    pub read_only_group: Option<String>,
    /// Limits.
    pub limits: Limits,
}

/// What one router bears of its clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Clients at once, over all sockets. For the next one an idle client gives way.
    pub clients_max: usize,
    /// Clients at once of one user other than root and the router's own.
    pub clients_per_user_max: usize,
    /// Longest plain command, in bytes, with the lines it goes on in.
    pub command_bytes_max: usize,
    /// Longest JSON message, in bytes.
    pub message_bytes_max: usize,
    /// The command of a client with so many bytes of answers unread rests.
    pub unread_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            clients_max: 64,
            clients_per_user_max: 16,
            command_bytes_max: 256 * 1024,
            message_bytes_max: 4 * 1024 * 1024,
            unread_bytes_max: 1024 * 1024,
        }
    }
}

/// How long the server waits after a client could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Clients that are accepted at one socket before the others have their turn.
const ACCEPTED_MAX: usize = 16;

/// From the server to the control thread.
pub(crate) struct Request {
    pub(crate) client: u64,
    pub(crate) rights: Rights,
    pub(crate) flow: Arc<Flow>,
    /// Who the client is, for the journal.
    pub(crate) who: Arc<str>,
    pub(crate) ask: Ask,
}

/// What a client asks for.
pub(crate) enum Ask {
    /// Plain lines, each answered, also after one was refused.
    Lines(String),
    /// One line.
    Line(String),
    /// Many lines, which are a part of a longer script perhaps.
    Script { text: String, from: Origin },
    /// What was said, as a list without secrets.
    History(Vec<String>),
    /// The JSON form of a command.
    Command(Json),
    /// What could stand at the cursor.
    Complete { line: String, cursor: usize },
    /// The page of a command, or the list of all.
    Help(String),
    /// The schema of all commands.
    Schema,
    /// A command about a file whose text comes with it.
    Document { line: String, text: String },
    /// A command under the name of its method.
    Method { method: String, args: Json },
    /// This, if the configuration is in a state still.
    IfGeneration(String, Box<Ask>),
    /// Which state the configuration is in.
    Generation,
    /// The API as a document.
    Discover,
    /// To be served; the server deals with it.
    Authenticate(String),
    /// Nothing any more: the client is gone.
    Gone,
}

/// Where the text of a script comes from.
pub(crate) struct Origin {
    /// What messages call it.
    pub(crate) name: String,
    /// Which line of it the text begins with, counted from 1.
    pub(crate) line: u32,
    /// How many commands of it were applied before.
    pub(crate) applied: u64,
    /// What happens when a command is refused.
    pub(crate) on_refusal: OnRefusal,
}

/// From the control thread to a client.
pub(crate) enum Answer {
    /// A part of the answer, while the command goes on. `is_direct`: of the one command that was
    /// asked for, not of one of many.
    Part { output: Output, is_direct: bool },
    /// How far it is.
    Progress(Progress),
    /// One of many commands was refused.
    Refused(Refusal),
    /// The end.
    Done(Result<Output, Refusal>),
}

/// An answer on its way.
pub(crate) struct Answered {
    pub(crate) client: u64,
    pub(crate) answer: Answer,
    /// Bytes that it counts as.
    pub(crate) weight: usize,
}

/// A flag that wakes a thread which polls: written by one, read by the other.
#[derive(Clone)]
pub(crate) struct Bell(Arc<OwnedFd>);

impl Bell {
    fn new() -> io::Result<Bell> {
        Ok(Bell(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Wake the other side. It is awake already when its counter is full.
    pub(crate) fn ring(&self) {
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Forget that it rang.
    pub(crate) fn silence(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The server thread. Dropping it closes the sockets and removes their files.
pub struct Server {
    stop: Arc<AtomicBool>,
    bell: Bell,
    thread: Option<JoinHandle<()>>,
    paths: Vec<PathBuf>,
    tcp: Option<SocketAddr>,
    tls: Option<SocketAddr>,
}

impl Server {
    /// Listen, and start to serve. The dispatcher belongs to the control thread.
    ///
    /// # Errors
    /// A socket cannot be made, or the system refuses a thread.
    pub fn start<S>(config: &ServerConfig) -> Result<(Server, Dispatcher<S>), Refusal> {
        Server::start_with(config, MoreDoors::default())
    }

    /// The same, with more doors.
    ///
    /// # Errors
    /// A socket cannot be made, or the system refuses a thread.
    pub fn start_with<S>(
        config: &ServerConfig,
        more: MoreDoors,
    ) -> Result<(Server, Dispatcher<S>), Refusal> {
        let group = |name: &Option<String>| name.as_deref().map(group_id).transpose();
        let own_group = || rustix::process::getegid().as_raw();
        let groups = Groups {
            operators: group(&config.group)?.unwrap_or_else(own_group),
            read_only: group(&config.read_only_group)?,
        };
        let mut listeners = Vec::new();
        let mut paths = Vec::new();
        let doors = [(&config.cli_socket, Protocol::Plain), (&config.api_socket, Protocol::Rpc)];
        for (path, protocol) in doors {
            if let Some(path) = path {
                socket::make_folder(path)?;
                let listener = listen_unix(path, config.group.as_deref())?;
                if groups.read_only.is_some() {
                    socket::open_to_all(path)?;
                }
                listeners.push((Listener::Unix(listener), protocol));
                paths.push(path.clone());
            }
        }
        let mut tcp = None;
        if let Some(address) = more.tcp {
            let listener = socket::listen_tcp(address)?;
            tcp = Some(listener.local_addr()?);
            listeners.push((Listener::Tcp(listener), Protocol::Rpc));
        }
        let mut tls = None;
        if let Some(wanted) = more.tls {
            let door = Door::open(wanted)?;
            tls = Some(door.listener().local_addr()?);
            listeners.push((Listener::Tls(Box::new(door)), Protocol::Rpc));
        }
        let mut clients = BTreeMap::new();
        for client in more.clients {
            let _ = refuse_descriptors(&client); // an older kernel hands them over to be closed
            let stream = Stream::Unix(client);
            stream.prepare()?;
            let peer = stream.peer(Groups::default()).unwrap_or_else(Peer::stranger);
            let client = Client::new(stream, peer, Protocol::Rpc, &config.limits).that_was_there();
            clients.insert(clients.len() as u64, client);
        }
        let (bell, desk_bell) = (Bell::new()?, Bell::new()?);
        let (requests, requested) = channel();
        let (answers, answered) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let serving = Serving {
            listeners,
            limits: config.limits,
            groups,
            token: more.token.map(Arc::new),
            heard: 0,
            closing: Account::default(),
            cannot_accept: false,
            next_client: clients.len() as u64,
            wrote_out: 0,
            clients,
            requests,
            answered,
            bell: bell.clone(),
            desk_bell: desk_bell.clone(),
            stop: stop.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("quiver-server".into())
            .spawn(move || serving.serve())?;
        let server = Server { stop, bell: bell.clone(), thread: Some(thread), paths, tcp, tls };
        Ok((server, Dispatcher::new(requested, answers, desk_bell, bell)))
    }

    /// Where it listens for TCP; says which port it was given.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// Where it listens for clients with certificates.
    pub fn tls(&self) -> Option<SocketAddr> {
        self.tls
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for path in &self.paths {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What the server thread owns.
struct Serving {
    listeners: Vec<(Listener, Protocol)>,
    limits: Limits,
    groups: Groups,
    token: Option<Arc<Token>>,
    /// Counts what was heard of clients.
    heard: u64,
    /// Descriptors of clients that are being closed.
    closing: Account,
    /// The last client could not be accepted, and the log says so.
    cannot_accept: bool,
    clients: BTreeMap<u64, Client>,
    next_client: u64,
    /// Whose long answer was written out last.
    wrote_out: u64,
    requests: Sender<Request>,
    answered: Receiver<Answered>,
    bell: Bell,
    desk_bell: Bell,
    stop: Arc<AtomicBool>,
}

impl Serving {
    fn serve(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    tracing::error!("the command server stops: poll: {error}");
                    return;
                }
            };
            self.bell.silence();
            while let Ok(Answered { client, answer, weight }) = self.answered.try_recv() {
                if let Some(client) = self.clients.get_mut(&client) {
                    client.answer(answer, weight);
                }
            }
            self.write_answers();
            for (id, flags) in ready {
                if let Some(client) = self.clients.get_mut(&id) {
                    self.heard += 1;
                    client.hear(self.heard);
                    client.ready(flags, &self.limits, &self.closing);
                }
            }
            self.accept();
            self.go_on();
        }
    }

    /// Wait until somebody has something. Returns the clients that do.
    fn wait(&self) -> Result<Vec<(u64, PollFlags)>, rustix::io::Errno> {
        let mut fds = vec![PollFd::new(&self.bell, PollFlags::IN)];
        fds.extend(self.listeners.iter().map(|(listener, _)| PollFd::new(listener, PollFlags::IN)));
        let others = fds.len();
        fds.extend(
            self.clients.values().map(|c| PollFd::new(c.stream(), c.interest(&self.limits))),
        );
        let no_wait = self
            .clients
            .values()
            .any(|client| client.has_more() || client.has_answers())
            .then(Timespec::default);
        poll(&mut fds, no_wait.as_ref())?;
        let ready = self.clients.keys().copied().zip(fds[others..].iter().map(PollFd::revents));
        Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    fn accept(&mut self) {
        disposal::retry();
        let mut came = Vec::new();
        for (listener, protocol) in &mut self.listeners {
            for _ in 0..ACCEPTED_MAX {
                match listener.accept() {
                    Ok(None) => {}
                    Ok(Some(stream)) => {
                        self.cannot_accept = false;
                        if stream.prepare().is_ok() {
                            came.push((stream, *protocol));
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => {
                        // Out of descriptors: the listener stays readable, so breathe.
                        if !std::mem::replace(&mut self.cannot_accept, true) {
                            tracing::warn!("clients cannot be accepted: {error}");
                        }
                        std::thread::sleep(ACCEPT_PAUSE);
                        break;
                    }
                }
            }
        }
        came.into_iter().for_each(|(stream, protocol)| self.admit(stream, protocol));
    }

    /// Let a client in, if there is room or somebody gives way.
    fn admit(&mut self, stream: Stream, protocol: Protocol) {
        let token = self.token.clone().filter(|_| stream.is_tcp());
        let known = stream.peer(self.groups);
        let peer = known.unwrap_or_else(Peer::stranger);
        let mut newcomer = Client::new(stream, peer, protocol, &self.limits).must_say(token);
        if known.is_none() {
            newcomer.refuse_and_close(
                &Refusal::new("this user is in no group that may use the router")
                    .remedy("the section unix of the start-up file names them: gid, read-only-gid"),
            );
            newcomer.flush();
            return;
        }
        let seats: Vec<Seat> =
            self.clients.iter().filter_map(|(id, client)| client.seat(*id)).collect();
        let Limits { clients_max, clients_per_user_max, .. } = self.limits;
        if self.closing.is_full() && !newcomer.peer().always_gets_in() {
            newcomer
                .refuse_and_close(&Refusal::new("clients sent descriptors that cannot be closed"));
            newcomer.flush();
            return;
        }
        match entry(newcomer.peer(), &seats, clients_max, clients_per_user_max) {
            Entry::Free => {}
            Entry::InsteadOf(client) => {
                if let Some(mut client_that_goes) = self.clients.remove(&client) {
                    client_that_goes.give_way();
                    self.forget(client, &client_that_goes);
                }
            }
            Entry::Refused => {
                newcomer
                    .refuse_and_close(&Refusal::new("too many clients").remedy("try again later"));
                newcomer.flush();
                return;
            }
        }
        self.heard += 1;
        newcomer.hear(self.heard);
        self.clients.insert(self.next_client, newcomer);
        self.next_client += 1;
    }

    /// Cancel what a client that is gone began.
    fn forget(&self, id: u64, client: &Client) {
        if client.is_busy() {
            let _ = self.requests.send(client.request(id, Ask::Gone));
            self.desk_bell.ring();
        }
    }

    /// Write out all answers that are quick to write, and one that is not: of the next client that
    /// has one. So nobody waits for more than one answer of others.
    fn write_answers(&mut self) {
        let mut heavy = Vec::new();
        for (id, client) in &mut self.clients {
            if client.write_light_answers() {
                heavy.push(*id);
            }
        }
        let next = heavy.iter().find(|id| **id > self.wrote_out).or(heavy.first());
        if let Some(client) = next.and_then(|id| self.clients.get_mut(id)) {
            client.write_answer();
        }
        self.wrote_out = next.copied().unwrap_or(self.wrote_out);
    }

    /// Write what can be written, begin what can begin, and bury who is gone.
    fn go_on(&mut self) {
        let mut gone = Vec::new();
        for (id, client) in &mut self.clients {
            client.flush();
            if let Some(ask) = client.next(&self.limits) {
                if self.requests.send(client.request(*id, ask)).is_err() {
                    client.refuse_and_close(&Refusal::new("the router is stopping"));
                }
                self.desk_bell.ring();
            }
            client.flush();
            if client.has_made_room() {
                self.desk_bell.ring();
            }
            if client.is_gone() {
                gone.push(*id);
            }
        }
        for id in gone {
            if let Some(client) = self.clients.remove(&id) {
                self.forget(id, &client);
            }
        }
    }
}
