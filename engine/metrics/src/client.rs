//! A connection of a scraper: one request at a time, each step within its time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::PollFlags;

use crate::http::{self, REQUEST_BYTES_MAX, Request, Status};
use crate::text::Format;

/// A request comes whole within this time after its first byte.
pub const REQUEST_MAX: Duration = Duration::from_secs(10);
/// An answer is read within this time.
const READ_MAX: Duration = Duration::from_secs(30);
/// A connection without a request ends after this time.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// After a refusal, what the client still sends is read and forgotten for so long, so that the
/// refusal reaches it (RFC 9112 §9.6).
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// A client that makes progress keeps its place for so long when all places are taken.
pub const PLACE_MIN: Duration = Duration::from_secs(1);
/// Bytes that are forgotten in one turn.
const DRAINED_BYTES_MAX: usize = 64 * 1024;

/// What a client does.
enum State {
    /// It sends a request, or may.
    Asks,
    /// Its answer is written.
    Waits { request: Request },
    /// It reads an answer.
    Reads { head: Vec<u8>, body: Arc<str>, written: usize, keeps_alive: bool },
    /// It was refused, and the rest of what it sends is forgotten.
    Drained,
}

/// A connection.
pub struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    state: State,
    /// Since when it is in this state; for a request under way, since its first byte.
    since: Instant,
}

/// What became of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It stays.
    Stays,
    /// It asks for the document in this form.
    Wants(Format),
    /// The connection is over.
    Ends,
}

impl Client {
    /// A new connection.
    ///
    /// # Errors
    /// The system refuses to make it non-blocking.
    pub fn new(stream: TcpStream, now: Instant) -> io::Result<Client> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, input: Vec::new(), state: State::Asks, since: now })
    }

    /// What it waits for.
    pub fn interest(&self) -> PollFlags {
        match self.state {
            State::Asks | State::Drained => PollFlags::IN,
            State::Waits { .. } => PollFlags::empty(),
            State::Reads { .. } => PollFlags::OUT,
        }
    }

    /// How long it may stay as it is.
    fn limit(&self) -> Duration {
        match self.state {
            State::Asks if self.input.is_empty() => IDLE_MAX,
            State::Asks => REQUEST_MAX,
            State::Waits { .. } | State::Reads { .. } => READ_MAX,
            State::Drained => DRAIN_MAX,
        }
    }

    /// Since when it makes no progress, unless it waits for its answer: that is no fault of its.
    pub fn idle_since(&self) -> Option<Instant> {
        (!matches!(self.state, State::Waits { .. })).then_some(self.since)
    }

    /// Has its time come? A request that did not end is answered so.
    pub fn is_late(&mut self, now: Instant) -> bool {
        if now.duration_since(self.since) < self.limit() {
            return false;
        }
        if matches!(self.state, State::Asks) && !self.input.is_empty() {
            self.refuse_at_once(Status::RequestTimeout);
        }
        true
    }

    /// Write a refusal as far as the connection takes it now.
    pub fn refuse_at_once(&mut self, status: Status) {
        let _ = self.stream.write(http::refusal(status, SystemTime::now()).as_bytes());
    }

    /// Read or write, as the system says that it can.
    pub fn go_on(&mut self, flags: PollFlags, now: Instant) -> Then {
        match self.state {
            State::Asks if flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) => {
                self.read(now)
            }
            State::Reads { .. } => self.write(now),
            State::Drained => self.drain(),
            // The other side is gone.
            State::Waits { .. } if flags.intersects(PollFlags::HUP | PollFlags::ERR) => Then::Ends,
            _ => Then::Stays,
        }
    }

    fn read(&mut self, now: Instant) -> Then {
        let mut buffer = [0; REQUEST_BYTES_MAX];
        let room = REQUEST_BYTES_MAX.saturating_sub(self.input.len()).max(1);
        match self.stream.read(&mut buffer[..room.min(REQUEST_BYTES_MAX)]) {
            Ok(0) => Then::Ends,
            Ok(count) => {
                if self.input.is_empty() {
                    self.since = now;
                }
                self.input.extend_from_slice(&buffer[..count]);
                self.next(now)
            }
            Err(error) if again(&error) => Then::Stays,
            Err(_) => Then::Ends,
        }
    }

    /// Take the next request of what came.
    fn next(&mut self, now: Instant) -> Then {
        match http::parse(&self.input) {
            Ok(None) => Then::Stays,
            Ok(Some(request)) => {
                self.input.drain(..request.bytes);
                (self.state, self.since) = (State::Waits { request }, now);
                Then::Wants(request.format)
            }
            Err(status) => {
                self.input.clear();
                let head = http::refusal(status, SystemTime::now()).into_bytes();
                let (body, written) = (Arc::from(""), 0);
                self.state = State::Reads { head, body, written, keeps_alive: false };
                self.since = now;
                self.write(now)
            }
        }
    }

    /// The document is there.
    pub fn answer(&mut self, document: &Arc<str>, now: Instant) -> Then {
        let State::Waits { request } = self.state else { return Then::Stays };
        let Request { format, keeps_alive, is_head, .. } = request;
        let head = http::head(format, document.len(), keeps_alive, SystemTime::now());
        let body = if is_head { Arc::from("") } else { document.clone() };
        self.state = State::Reads { head: head.into_bytes(), body, written: 0, keeps_alive };
        self.since = now;
        self.write(now)
    }

    fn write(&mut self, now: Instant) -> Then {
        let State::Reads { head, body, written, keeps_alive } = &mut self.state else {
            return Then::Stays;
        };
        while *written < head.len() + body.len() {
            let rest = match head.get(*written..).filter(|rest| !rest.is_empty()) {
                Some(rest) => rest,
                None => &body.as_bytes()[*written - head.len()..],
            };
            match self.stream.write(rest) {
                Ok(0) => return Then::Ends,
                Ok(count) => *written += count,
                Err(error) if again(&error) => return Then::Stays,
                Err(_) => return Then::Ends,
            }
        }
        self.since = now;
        if *keeps_alive {
            self.state = State::Asks;
            // What was sent behind the request.
            return if self.input.is_empty() { Then::Stays } else { self.next(now) };
        }
        self.state = State::Drained;
        match self.stream.shutdown(Shutdown::Write) {
            Ok(()) => Then::Stays,
            Err(_) => Then::Ends,
        }
    }

    fn drain(&mut self) -> Then {
        let (mut buffer, mut drained) = ([0; 4096], 0);
        while drained < DRAINED_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Then::Ends,
                Ok(count) => drained += count,
                Err(error) if again(&error) => return Then::Stays,
                Err(_) => return Then::Ends,
            }
        }
        Then::Stays
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
