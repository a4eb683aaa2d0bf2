//! The other end of the API: a connection to a running program, over its Unix socket, loopback TCP
//! or TLS.

mod tls;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::paths;

pub use tls::Remote;

/// How often a waiting client looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// Who should answer, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// What it is: `router`.
    pub name: &'static str,
    /// How to have one: "start it with `quiverd -c startup.conf`".
    pub remedy: &'static str,
    /// Why this user may not speak to it.
    pub forbidden: &'static str,
    /// What answers when it is not the API.
    pub other: &'static str,
}

/// Why a call did not work.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError<E> {
    /// The other side refused: its error, as in the answer.
    Refused(Json),
    /// The other side does not answer, in words for the user.
    Unreachable(String),
    /// The flag said so.
    Interrupted,
    /// Who took the notifications wants no more.
    Caller(E),
}

/// A connection.
pub struct Connection {
    stream: Box<dyn Duplex>,
    peer: Peer,
    pending: Vec<u8>,
    /// Of the pending bytes, so many hold no line end.
    scanned: usize,
    last_id: u64,
    interrupted: Option<Arc<AtomicBool>>,
}

trait Duplex: Read + Write + Send {
    fn set_patience(&self, patience: Duration) -> io::Result<()>;
}

impl Duplex for UnixStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))
    }
}

impl Duplex for TcpStream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(patience))
    }
}

impl Connection {
    /// Connect to `place`: the path of a socket, or ADDRESS:PORT.
    ///
    /// # Errors
    /// Nothing listens at the place, or the system refuses; the text says why.
    pub fn open(place: &Path, peer: Peer) -> Result<Connection, String> {
        let address = place.to_str().and_then(|text| text.parse::<SocketAddr>().ok());
        let stream: io::Result<Box<dyn Duplex>> = match address {
            Some(address) => TcpStream::connect(address).map(|s| Box::new(s) as Box<dyn Duplex>),
            None => UnixStream::connect(place).map(|s| Box::new(s) as Box<dyn Duplex>),
        };
        let stream = stream.map_err(|error| {
            let Peer { name, remedy, forbidden, .. } = peer;
            let why = match error.kind() {
                io::ErrorKind::NotFound => "there is no such socket".to_owned(),
                io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
                io::ErrorKind::PermissionDenied => forbidden.to_owned(),
                _ => error.to_string(),
            };
            format!(
                "cannot reach the {name} at {}: {why}; {remedy}, or name its socket with --socket",
                place.display()
            )
        })?;
        let mut connection = Connection::over(stream, peer)?;
        if address.is_some() {
            connection.say_token()?;
        }
        Ok(connection)
    }

    /// Connect to a router elsewhere.
    ///
    /// # Errors
    /// Nobody answers there, one side does not trust the other, or a file is not as it must be; the
    /// text says why.
    pub fn open_remote(remote: &Remote, peer: Peer) -> Result<Connection, String> {
        let stream = remote
            .connect()
            .map_err(|why| format!("cannot reach the {} at {}: {why}", peer.name, remote.place))?;
        Connection::over(Box::new(stream), peer)
    }

    fn over(stream: Box<dyn Duplex>, peer: Peer) -> Result<Connection, String> {
        stream.set_patience(LOOK_EVERY).map_err(|error| error.to_string())?;
        Ok(Connection {
            stream,
            peer,
            pending: Vec::new(),
            scanned: 0,
            last_id: 0,
            interrupted: None,
        })
    }

    /// Say the token of the token file, if there is one; who listens at a port of TCP may want it.
    fn say_token(&mut self) -> Result<(), String> {
        let file = paths::token_file();
        let Ok(token) = std::fs::read_to_string(&file) else { return Ok(()) };
        let params = json!({ "token": token.trim() });
        let done = self.call::<()>("authenticate", params, &mut |_, _| Ok(()));
        done.map(|_| ()).map_err(|error| match error {
            CallError::Unreachable(why) => why,
            _ => format!("the {} does not take the token of {}", self.peer.name, file.display()),
        })
    }

    /// From now on this flag interrupts a call.
    pub fn interrupted_by(&mut self, flag: Arc<AtomicBool>) {
        self.interrupted = Some(flag);
    }

    /// Call a method. Notifications that come before its result go to `hear`: method and
    /// parameters.
    ///
    /// # Errors
    /// The connection ends, the method is refused, or `hear` fails.
    pub fn call<E>(
        &mut self,
        method: &str,
        params: Json,
        hear: &mut dyn FnMut(&str, &Json) -> Result<(), E>,
    ) -> Result<Json, CallError<E>> {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // When it cannot be sent, the other side may have said why before it closed: reading tells.
        let _ = self.stream.write_all(format!("{request}\n").as_bytes());
        loop {
            let mut message = self.receive()?;
            if let Some(method) = message["method"].as_str() {
                hear(method, &message["params"]).map_err(CallError::Caller)?;
            } else if message.get("error").is_some() {
                return Err(CallError::Refused(message["error"].take()));
            } else if message["id"] == json!(id) {
                return Ok(message["result"].take());
            }
        }
    }

    fn receive<E>(&mut self) -> Result<Json, CallError<E>> {
        let Peer { name, other, .. } = self.peer;
        let mut buffer = [0; READ_BYTES];
        loop {
            if let Some(end) = self.pending[self.scanned..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=self.scanned + end).collect();
                self.scanned = 0;
                return serde_json::from_slice(&line).map_err(|_| {
                    CallError::Unreachable(format!(
                        "what answers is not the API of a {name}; {other}"
                    ))
                });
            }
            self.scanned = self.pending.len();
            if self.interrupted.as_ref().is_some_and(|flag| flag.swap(false, Ordering::SeqCst)) {
                return Err(CallError::Interrupted);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    return Err(CallError::Unreachable(format!(
                        "the {name} closed the connection"
                    )));
                }
                Ok(length) => self.pending.extend_from_slice(&buffer[..length]),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::TimedOut
                            | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    let what = format!("the connection to the {name} is lost: {error}");
                    return Err(CallError::Unreachable(what));
                }
            }
        }
    }
}
