//! One client of the server: bytes in, requests out; answers in, bytes out.

use std::io;

use rustix::event::PollFlags;
use serde_json::Value as Json;

use super::stream::Stream;
use super::{Answer, Ask, Limits, plain, rpc};
use crate::error::Refusal;

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Command lines.
    Plain,
    /// JSON-RPC.
    Rpc,
}

/// Bytes taken from a socket at once.
const READ_BYTES: usize = 64 * 1024;

/// What the input held.
enum Taken {
    /// A request for the control thread.
    Ask(Ask),
    /// Something that is dealt with.
    Something,
    /// Nothing that is whole.
    Nothing,
}

pub(crate) struct Client {
    stream: Stream,
    protocol: Protocol,
    input: Vec<u8>,
    /// The input up to here holds no line end that was not looked at.
    scanned: usize,
    input_ended: bool,
    output: Vec<u8>,
    /// What of the output is written.
    written: usize,
    /// A request is at the control thread. For JSON-RPC, its id.
    busy: Option<Option<Json>>,
    /// The plain session prints a prompt.
    interactive: bool,
    /// Nothing more is read; the socket closes when the output is out.
    closing: bool,
    /// The other side is not there any more.
    gone: bool,
}

impl Client {
    pub(crate) fn new(stream: Stream, protocol: Protocol) -> Client {
        Client {
            stream,
            protocol,
            input: Vec::new(),
            scanned: 0,
            input_ended: false,
            output: Vec::new(),
            written: 0,
            busy: None,
            interactive: false,
            closing: false,
            gone: false,
        }
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// What to wait for. Without any interest, the kernel still tells when the other side is gone.
    pub(crate) fn interest(&self, limits: &Limits) -> PollFlags {
        let mut interest = PollFlags::empty();
        if !self.input_ended && !self.closing && self.busy.is_none() && self.input.len() < self.room(limits) {
            interest |= PollFlags::IN;
        }
        if self.written < self.output.len() {
            interest |= PollFlags::OUT;
        }
        interest
    }

    fn room(&self, limits: &Limits) -> usize {
        match self.protocol {
            Protocol::Plain => limits.command_bytes_max,
            Protocol::Rpc => limits.message_bytes_max,
        }
    }

    /// Something happened at the socket.
    pub(crate) fn ready(&mut self, flags: PollFlags, limits: &Limits) {
        if flags.contains(PollFlags::IN) {
            self.read(limits);
        } else if flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            // What it wrote before it left was read before: IN is told first.
            self.gone = self.busy.is_some() || self.input_ended || self.closing;
            self.read(limits);
        }
    }

    fn read(&mut self, limits: &Limits) {
        let mut buffer = [0; READ_BYTES];
        while !self.gone && !self.input_ended && !self.closing && self.input.len() < self.room(limits) {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.input_ended = true,
                Ok(length) => self.input.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
        }
    }

    /// The next thing that the client wants done, when it can be done now: one request at a time,
    /// and not before the answer of the last is on its way.
    pub(crate) fn next(&mut self, limits: &Limits) -> Option<Ask> {
        loop {
            self.flush();
            if self.busy.is_some() || self.closing || self.gone || self.written < self.output.len() {
                return None;
            }
            let is_full = self.input.len() >= self.room(limits);
            let may_be_whole = self.input_ended || is_full || self.input[self.scanned..].contains(&b'\n');
            let taken = match self.protocol {
                _ if !may_be_whole => Taken::Nothing,
                Protocol::Plain => self.next_plain(is_full),
                Protocol::Rpc => self.next_rpc(limits),
            };
            match taken {
                Taken::Ask(ask) => return Some(ask),
                Taken::Something => {}
                Taken::Nothing => {
                    self.scanned = self.input.len();
                    self.closing |= self.input_ended;
                    return None;
                }
            }
        }
    }

    fn consume(&mut self, length: usize) {
        self.input.drain(..length);
        self.scanned = 0;
    }

    fn next_plain(&mut self, is_full: bool) -> Taken {
        match plain::next(&self.input, self.input_ended, is_full) {
            Err(refusal) => self.refuse_and_close(&refusal),
            Ok(plain::Next::Wait) => return Taken::Nothing,
            Ok(plain::Next::Lines { length, text }) => {
                self.consume(length);
                self.busy = Some(None);
                return Taken::Ask(Ask::Lines(text));
            }
            Ok(plain::Next::Quit { length }) => {
                self.consume(length);
                self.closing = true;
            }
            Ok(plain::Next::Interactive { length }) => {
                self.consume(length);
                self.interactive = true;
                self.prompt();
            }
        }
        Taken::Something
    }

    fn next_rpc(&mut self, limits: &Limits) -> Taken {
        let end = self.input.iter().position(|byte| *byte == b'\n').unwrap_or(self.input.len());
        if end >= limits.message_bytes_max {
            let most = limits.message_bytes_max;
            self.refuse_and_close(&Refusal::new(format!("the message is longer than {most} bytes")));
            return Taken::Something;
        }
        if self.input.is_empty() {
            return Taken::Nothing;
        }
        let parsed = rpc::parse(&self.input[..end]);
        self.consume((end + 1).min(self.input.len()));
        match parsed {
            Ok(None) => {}
            Ok(Some(call)) => {
                self.busy = Some(call.id);
                return Taken::Ask(call.ask);
            }
            Err(response) => {
                self.push(&response);
                // A web page can send requests to a port of this machine; what it sends begins with HTTP.
                self.closing |= self.stream.is_tcp();
            }
        }
        Taken::Something
    }

    /// Send what the control thread answers.
    pub(crate) fn answer(&mut self, answer: Answer, limits: &Limits) {
        if self.output.len() - self.written > limits.unread_bytes_max {
            tracing::warn!("a client that does not read its answers is dropped");
            self.gone = true;
            return;
        }
        let done = matches!(answer, Answer::Done(_));
        match self.protocol {
            Protocol::Plain => {
                let text = plain::text_of(&answer);
                self.push(&text);
            }
            Protocol::Rpc => {
                let id = self.busy.as_ref().and_then(Option::as_ref);
                let message = id.map(|id| rpc::message(id, &answer));
                self.push(&message.unwrap_or_default());
            }
        }
        if done {
            self.busy = None;
            self.prompt();
        }
    }

    fn prompt(&mut self) {
        if self.interactive {
            self.push(plain::PROMPT);
        }
    }

    fn push(&mut self, text: &str) {
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
        }
        self.output.extend_from_slice(text.as_bytes());
    }

    /// Tell the client why it is dropped, and drop it.
    pub(crate) fn refuse_and_close(&mut self, refusal: &Refusal) {
        let text = match self.protocol {
            Protocol::Plain => plain::error_text(refusal),
            Protocol::Rpc => rpc::error(&Json::Null, rpc::INVALID_REQUEST, &refusal.to_string(), None),
        };
        self.push(&text);
        self.closing = true;
    }

    /// Write as much as the socket takes.
    pub(crate) fn flush(&mut self) {
        while !self.gone && self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => self.gone = true,
                Ok(length) => self.written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
        }
    }

    /// Nothing more will come of it: it left, or it has been told everything.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone || (self.closing && self.busy.is_none() && self.written == self.output.len())
    }
}
