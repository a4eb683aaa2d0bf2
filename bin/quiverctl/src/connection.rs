//! The connection to the router: JSON-RPC over its API socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::print::Printer;

/// How often a waiting client looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// Why something did not work.
pub enum Failure {
    /// The router refused a command: its error, as in the answer.
    Refused(Json),
    /// A command was refused, and the user knows.
    Told,
    /// The router does not answer, in words for the user.
    Unreachable(String),
    /// Whoever reads our output has left.
    Closed,
    /// The user interrupted the command.
    Interrupted,
}

/// A connection.
pub struct Connection {
    stream: UnixStream,
    pending: Vec<u8>,
    /// Of the pending bytes, so many hold no line end.
    scanned: usize,
    last_id: u64,
    interrupted: Option<Arc<AtomicBool>>,
}

impl Connection {
    /// Connect to the router's API socket.
    pub fn open(socket: &Path) -> Result<Connection, Failure> {
        let stream = UnixStream::connect(socket).map_err(|error| {
            let socket = socket.display();
            let why = match error.kind() {
                io::ErrorKind::NotFound => "there is no such socket".to_string(),
                io::ErrorKind::ConnectionRefused => "nobody listens there".to_string(),
                io::ErrorKind::PermissionDenied => "this user may not use it (unix { gid … })".to_string(),
                _ => error.to_string(),
            };
            Failure::Unreachable(format!(
                "cannot reach the router at {socket}: {why}; start it with `quiverd -c startup.conf`, \
                 or name its socket with --socket"
            ))
        })?;
        let configured = stream.set_read_timeout(Some(LOOK_EVERY));
        configured.map_err(|error| Failure::Unreachable(error.to_string()))?;
        Ok(Connection { stream, pending: Vec::new(), scanned: 0, last_id: 0, interrupted: None })
    }

    /// From now on this flag interrupts a call.
    pub fn interrupted_by(&mut self, flag: Arc<AtomicBool>) {
        self.interrupted = Some(flag);
    }

    /// Execute one command and print what it says.
    pub fn command(&mut self, line: &str, printer: &mut Printer) -> Result<(), Failure> {
        let result = self.call("cli", json!({ "line": line }), printer)?;
        printer.answer(&result)
    }

    /// Execute commands and take the JSON that each answers.
    pub fn answers(&mut self, script: &str) -> Result<Vec<Json>, Failure> {
        let id = self.send("script", json!({ "text": script, "name": "top" }));
        let mut answers = Vec::new();
        loop {
            let mut message = self.receive()?;
            if message["method"] == json!("output") {
                answers.push(message["params"]["json"].take());
            } else if message.get("error").is_some() {
                return Err(Failure::Refused(message["error"].take()));
            } else if message["id"] == json!(id) {
                return Ok(answers);
            }
        }
    }

    /// Send a request; returns its number.
    fn send(&mut self, method: &str, params: Json) -> u64 {
        self.last_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        // When it cannot be sent, the router may have said why before it closed: reading tells.
        let _ = self.stream.write_all(format!("{request}\n").as_bytes());
        self.last_id
    }

    /// Call a method. What comes before its result is printed.
    pub fn call(&mut self, method: &str, params: Json, printer: &mut Printer) -> Result<Json, Failure> {
        let id = self.send(method, params);
        loop {
            let mut message = self.receive()?;
            match message["method"].as_str() {
                Some("output") => printer.answer(&message["params"])?,
                Some("progress") => printer.progress(&message["params"]),
                Some("refused") => printer.refused(&message["params"]),
                Some(_) => {}
                None => {
                    printer.progress_end();
                    if message.get("error").is_some() {
                        return Err(Failure::Refused(message["error"].take()));
                    }
                    if message["id"] == json!(id) {
                        return Ok(message["result"].take());
                    }
                }
            }
        }
    }

    fn receive(&mut self) -> Result<Json, Failure> {
        let mut buffer = [0; READ_BYTES];
        loop {
            if let Some(end) = self.pending[self.scanned..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=self.scanned + end).collect();
                self.scanned = 0;
                return serde_json::from_slice(&line).map_err(|_| {
                    Failure::Unreachable(
                        "what answers is not the API of a router; is it the socket for plain lines? \
                         The API is at api.sock"
                            .into(),
                    )
                });
            }
            self.scanned = self.pending.len();
            if self.interrupted.as_ref().is_some_and(|flag| flag.swap(false, Ordering::SeqCst)) {
                return Err(Failure::Interrupted);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(Failure::Unreachable("the router closed the connection".into())),
                Ok(length) => self.pending.extend_from_slice(&buffer[..length]),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) => {}
                Err(error) => {
                    return Err(Failure::Unreachable(format!(
                        "the connection to the router is lost: {error}"
                    )));
                }
            }
        }
    }
}
