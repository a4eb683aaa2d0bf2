//! The connection to the router: JSON-RPC over its API socket.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quiver_control::client::{self, CallError, Peer, Remote};
use serde_json::{Value as Json, json};

use crate::print::Printer;

const ROUTER: Peer = Peer {
    name: "router",
    remedy: "start it with `quiverd -c startup.conf`",
    forbidden: "this user may not use it (unix { gid … })",
    other: "is it the socket for plain lines? The API is at api.sock",
};

/// Where the router is.
#[derive(Clone, Debug)]
pub enum Place {
    /// Here: the path of its API socket, or ADDRESS:PORT.
    Here(PathBuf),
    /// Elsewhere, over TLS.
    Elsewhere(Remote),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Here(socket) => socket.display().fmt(f),
            Place::Elsewhere(remote) => f.write_str(&remote.place),
        }
    }
}

/// Why something did not work.
pub enum Failure {
    /// The router refused a command: its error, as in the answer.
    Refused(Json),
    /// A command was refused, and the user knows.
    Told,
    /// The router does not answer, in words for the user.
    Unreachable(String),
    /// The program that reads our output has ended.
    Closed,
    /// The user interrupted the command.
    Interrupted,
    /// The user left the pager before the end.
    PagerLeft,
}

impl From<CallError<Failure>> for Failure {
    fn from(error: CallError<Failure>) -> Failure {
        match error {
            CallError::Refused(error) => Failure::Refused(error),
            CallError::Unreachable(why) => Failure::Unreachable(why),
            CallError::Interrupted => Failure::Interrupted,
            CallError::Caller(failure) => failure,
        }
    }
}

/// A connection.
pub struct Connection(client::Connection);

impl Connection {
    /// Connect to the router.
    pub fn open(place: &Place) -> Result<Connection, Failure> {
        let opened = match place {
            Place::Here(socket) => client::Connection::open(socket, ROUTER),
            Place::Elsewhere(remote) => client::Connection::open_remote(remote, ROUTER),
        };
        opened.map(Connection).map_err(Failure::Unreachable)
    }

    /// From now on this flag interrupts a call.
    pub fn interrupted_by(&mut self, flag: Arc<AtomicBool>) {
        self.0.interrupted_by(flag);
    }

    /// Execute one command and print what it says.
    pub fn command(&mut self, line: &str, printer: &mut Printer) -> Result<(), Failure> {
        let result =
            self.call("cli", json!({ "line": line, "pages": printer.pages() }), printer)?;
        printer.answer(&result)
    }

    /// Execute commands and take the JSON that each answers.
    pub fn answers(&mut self, script: &str) -> Result<Vec<Json>, Failure> {
        let mut answers = Vec::new();
        self.0.call(
            "script",
            json!({ "text": script, "name": "top" }),
            &mut |method, params| {
                if method == "output" {
                    answers.push(params["json"].clone());
                }
                Ok(())
            },
        )?;
        Ok(answers)
    }

    /// Call a method. What comes before its result is printed.
    pub fn call(
        &mut self,
        method: &str,
        params: Json,
        printer: &mut Printer,
    ) -> Result<Json, Failure> {
        let result = self.0.call(method, params, &mut |method, params| {
            match method {
                "output" => printer.answer(params)?,
                "progress" => printer.progress(params),
                "refused" => printer.refused(params),
                _ => {}
            }
            Ok(())
        });
        printer.progress_end();
        Ok(result?)
    }
}
