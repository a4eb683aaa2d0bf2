//! The connection of a routing daemon. The control thread reads and writes it, and never waits.

use std::io::ErrorKind;

use quiver_core::Engine;
use quiver_core::control::reactor::{Interest, Token};

use super::messages::{self, Fault, MESSAGE_BYTES_MAX, Message};
use super::socket::Stream;

/// Bytes that are read at once; what is more waits for the next turn of the control loop.
const READ_BYTES: usize = 1 << 16;
/// Bytes that wait at most until the daemon takes them: a state change of each of the sessions that
/// there can be, and as many answers.
const UNSENT_BYTES_MAX: usize = 1 << 20;

pub(super) struct Connection {
    stream: Stream,
    from: String,
    token: Token,
    /// What was read; messages up to `taken` are done.
    received: Vec<u8>,
    taken: usize,
    /// What was not written yet.
    unsent: Vec<u8>,
    waits_for_room: bool,
}

impl Connection {
    /// A daemon has connected; `serve` is called when the connection can be read or written.
    pub fn new(
        engine: &mut Engine,
        stream: Stream,
        from: String,
        serve: fn(&mut Engine),
    ) -> Connection {
        let token = engine.watch(stream.fd(), Interest::READ, serve);
        let (received, unsent) = (Vec::new(), Vec::new());
        Connection { stream, from, token, received, taken: 0, unsent, waits_for_room: false }
    }

    /// Where the daemon is.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Read what is there, at most [`READ_BYTES`].
    ///
    /// # Errors
    /// The daemon has closed the connection, or it is broken.
    pub fn read(&mut self) -> Result<(), String> {
        self.received.drain(..std::mem::take(&mut self.taken));
        let had = self.received.len();
        self.received.resize(had + READ_BYTES, 0);
        let got = self.stream.read(&mut self.received[had..]);
        self.received.truncate(had + *got.as_ref().unwrap_or(&0));
        match got {
            Ok(0) => Err("the daemon has closed it".to_owned()),
            Ok(_) => Ok(()),
            Err(error) if is_temporary(&error) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The next message that is whole.
    ///
    /// # Errors
    /// What was received is no message.
    pub fn take(&mut self) -> Result<Option<(Message, u16)>, Fault> {
        let rest = &self.received[self.taken..];
        let Some((message, id, length)) = messages::read(rest)? else {
            debug_assert!(rest.len() < MESSAGE_BYTES_MAX);
            return Ok(None);
        };
        self.taken += length;
        Ok(Some((message, id)))
    }

    /// Have a message sent.
    pub fn put(&mut self, message: &[u8]) {
        self.unsent.extend_from_slice(message);
    }

    /// Write what the connection takes.
    ///
    /// # Errors
    /// The connection is broken, or the daemon does not read.
    pub fn flush(&mut self, engine: &mut Engine) -> Result<(), String> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if is_temporary(&error) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        if self.unsent.len() > UNSENT_BYTES_MAX {
            return Err("the daemon does not read what it is sent".to_owned());
        }
        let waits_for_room = !self.unsent.is_empty();
        if waits_for_room != self.waits_for_room {
            self.waits_for_room = waits_for_room;
            engine.set_interest(self.token, Interest { read: true, write: waits_for_room });
        }
        Ok(())
    }

    /// End it.
    pub fn close(self, engine: &mut Engine) {
        engine.unwatch(self.token);
    }
}

fn is_temporary(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
