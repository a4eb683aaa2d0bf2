//! One client of the server: bytes in, requests out; answers in, bytes out.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use quiver_linux::disposal::Account;
use rustix::event::PollFlags;
use serde_json::Value as Json;

use super::flow::Flow;
use super::peer::{Peer, Seat};
use super::plain::PlainInput;
use super::rpc::{Messages, Responder};
use super::stream::Stream;
use super::token::Token;
use super::{Answer, Ask, Limits, Request, plain, rpc};
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

/// Things that one client is served with before the others have their turn.
const SERVED_MAX: usize = 64;

/// Writing out an answer of less is quick.
const LIGHT_BYTES: usize = 32 * 1024;

/// Longest message of a client that has not said its token.
const STRANGER_BYTES_MAX: usize = 4096;

/// What waits to be understood.
enum Input {
    Plain(PlainInput),
    Rpc(Messages),
}

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
    who: Arc<str>,
    stream: Stream,
    peer: Peer,
    input: Input,
    /// The input holds something that was not looked at.
    has_news: bool,
    input_ended: bool,
    /// Answers of the control thread that are not written out yet, and what each counts as.
    answers: VecDeque<(Answer, usize)>,
    output: Vec<u8>,
    /// Bytes of the output that are written.
    written: usize,
    /// What the answers in the output count as, for the control thread.
    output_weight: usize,
    flow: Arc<Flow>,
    made_room: bool,
    /// A request is at the control thread; for JSON-RPC how to answer it.
    busy: Option<Option<Responder>>,
    /// It must say this first.
    token: Option<Arc<Token>>,
    /// The plain session prints a prompt.
    interactive: bool,
    was_there: bool,
    /// When it was last heard, as the server counts.
    heard: u64,
    /// Nothing more is read; the socket closes when the output is out.
    closing: bool,
    /// The other side is not there any more.
    gone: bool,
}

impl Client {
    pub(crate) fn new(stream: Stream, peer: Peer, protocol: Protocol, limits: &Limits) -> Client {
        Client {
            peer,
            who: stream.who().into(),
            stream,
            input: match protocol {
                Protocol::Plain => Input::Plain(PlainInput::default()),
                Protocol::Rpc => Input::Rpc(Messages::default()),
            },
            has_news: false,
            input_ended: false,
            answers: VecDeque::new(),
            output: Vec::new(),
            written: 0,
            output_weight: 0,
            flow: Arc::new(Flow::new(limits.unread_bytes_max)),
            made_room: false,
            busy: None,
            token: None,
            interactive: false,
            was_there: false,
            heard: 0,
            closing: false,
            gone: false,
        }
    }

    /// Serve it only after it has said this.
    pub(crate) fn must_say(mut self, token: Option<Arc<Token>>) -> Client {
        self.token = token;
        self
    }

    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    /// A request of this client, for the control thread.
    pub(crate) fn request(&self, client: u64, ask: Ask) -> Request {
        Request {
            client,
            rights: self.peer.rights,
            who: self.who.clone(),
            flow: self.flow.clone(),
            ask,
        }
    }

    /// The place that it takes. A client that was there before the server takes none.
    pub(crate) fn seat(&self, client: u64) -> Option<Seat> {
        let is_idle = self.busy.is_none() || self.has_unread();
        (!self.was_there).then_some(Seat { client, peer: self.peer, is_idle, heard: self.heard })
    }

    /// It was there before the server, and gives way to nobody.
    pub(crate) fn that_was_there(mut self) -> Client {
        self.was_there = true;
        self
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    fn has_unread(&self) -> bool {
        self.written < self.output.len()
    }

    /// It is heard now.
    pub(crate) fn hear(&mut self, now: u64) {
        self.heard = now;
    }

    /// What to wait for. Without any interest, the kernel still tells when the other side is gone.
    pub(crate) fn interest(&self, limits: &Limits) -> PollFlags {
        let mut interest = PollFlags::empty();
        if !self.input_ended
            && !self.closing
            && self.busy.is_none()
            && self.waiting() < self.room(limits)
        {
            interest |= PollFlags::IN;
        }
        if self.has_unread() || self.stream.is_sending() {
            interest |= PollFlags::OUT;
        }
        interest
    }

    fn room(&self, limits: &Limits) -> usize {
        match self.input {
            _ if self.token.is_some() => STRANGER_BYTES_MAX,
            Input::Plain(_) => limits.command_bytes_max,
            Input::Rpc(_) => limits.message_bytes_max,
        }
    }

    /// Bytes of input that wait.
    fn waiting(&self) -> usize {
        match &self.input {
            Input::Plain(input) => input.len(),
            Input::Rpc(input) => input.len(),
        }
    }

    /// Something happened at the socket.
    pub(crate) fn ready(&mut self, flags: PollFlags, limits: &Limits, closing: &Account) {
        if flags.contains(PollFlags::IN) {
            self.read(limits, closing);
        } else if flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            // What it wrote before it left was read before: IN is told first.
            self.gone = self.busy.is_some() || self.input_ended || self.closing;
            self.read(limits, closing);
        }
    }

    fn read(&mut self, limits: &Limits, closing: &Account) {
        let mut buffer = [0; READ_BYTES];
        while !self.gone
            && !self.input_ended
            && !self.closing
            && (self.waiting() < self.room(limits) || self.stream.has_text())
        {
            self.has_news = true;
            let read = self.stream.read(&mut buffer, closing);
            if let Some((peer, who)) = self.stream.introduced() {
                (self.peer, self.who) = (peer, who.into());
            }
            match read {
                Ok(0) => self.input_ended = true,
                Ok(length) => match &mut self.input {
                    Input::Plain(input) => input.push(&buffer[..length]),
                    Input::Rpc(input) => input.push(&buffer[..length]),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
        }
    }

    /// The next thing that the client wants done, when it can be done now: one request at a time,
    /// and not before the answer of the last is on its way.
    pub(crate) fn next(&mut self, limits: &Limits) -> Option<Ask> {
        for _ in 0..SERVED_MAX {
            self.flush();
            if self.busy.is_some()
                || self.closing
                || self.gone
                || self.has_unread()
                || !self.has_news
            {
                return None;
            }
            let is_full = self.waiting() >= self.room(limits);
            let taken = match self.input {
                Input::Plain(_) => self.next_plain(is_full),
                Input::Rpc(_) => self.next_rpc(limits),
            };
            match taken {
                Taken::Ask(ask) => return Some(ask),
                Taken::Something => {}
                Taken::Nothing => {
                    self.has_news = false;
                    self.closing |= self.input_ended;
                    return None;
                }
            }
        }
        None
    }

    /// Is there more to do for it at once, although nothing happens at its socket?
    pub(crate) fn has_more(&self) -> bool {
        self.has_news && self.busy.is_none() && !self.closing && !self.gone && !self.has_unread()
    }

    fn next_plain(&mut self, is_full: bool) -> Taken {
        let Input::Plain(input) = &mut self.input else { return Taken::Nothing };
        match input.next(self.input_ended, is_full) {
            Err(refusal) => self.refuse_and_close(&refusal),
            Ok(plain::Next::Wait) => return Taken::Nothing,
            Ok(plain::Next::Lines(text)) => {
                self.busy = Some(None);
                return Taken::Ask(Ask::Lines(text));
            }
            Ok(plain::Next::History(lines)) => {
                self.busy = Some(None);
                return Taken::Ask(Ask::History(lines));
            }
            Ok(plain::Next::Quit) => self.closing = true,
            Ok(plain::Next::Interactive) => {
                self.interactive = true;
                self.prompt();
            }
        }
        Taken::Something
    }

    fn next_rpc(&mut self, limits: &Limits) -> Taken {
        let most = self.room(limits);
        let Input::Rpc(input) = &mut self.input else { return Taken::Nothing };
        let parsed = match input.next(self.input_ended, most) {
            Ok(None) => return Taken::Nothing,
            Ok(Some(message)) => rpc::parse(&message),
            Err(refusal) => {
                self.refuse_and_close(&refusal);
                return Taken::Something;
            }
        };
        match parsed {
            Ok(None) => {}
            Ok(Some(call)) if self.token.is_some() => self.introduce(&call),
            Ok(Some(call)) => {
                if let Ask::Authenticate(_) = call.ask {
                    let done = Answer::Done(Ok(crate::output::Output::none()));
                    let text = call.responder.map(|mut responder| responder.message(&done, true));
                    self.push(&text.unwrap_or_default());
                    return Taken::Something;
                }
                self.busy = Some(call.responder);
                return Taken::Ask(call.ask);
            }
            Err(response) => {
                self.push(&response);
                // A web page can send requests to a port of this machine; what it sends begins with
                // HTTP.
                self.closing |= self.stream.is_tcp();
            }
        }
        Taken::Something
    }

    /// The first message of a client that must say a token.
    fn introduce(&mut self, call: &rpc::Call) {
        let is_right = match (&call.ask, &self.token) {
            (Ask::Authenticate(said), Some(token)) => token.is(said),
            _ => false,
        };
        if is_right {
            self.token = None;
            let done = Answer::Done(Ok(crate::output::Output::none()));
            let text = call.responder.clone().map(|mut responder| responder.message(&done, true));
            self.push(&text.unwrap_or_default());
        } else {
            self.refuse_and_close(
                &Refusal::new("this client has not said the token")
                    .remedy("call the method authenticate first, with the token of the token file"),
            );
        }
    }

    /// Take what the control thread answers.
    pub(crate) fn answer(&mut self, answer: Answer, weight: usize) {
        self.answers.push_back((answer, weight));
    }

    /// Write out answers up to the first that takes long. Returns whether there is one.
    pub(crate) fn write_light_answers(&mut self) -> bool {
        while let Some((answer, weight)) =
            self.answers.pop_front_if(|(_, weight)| *weight < LIGHT_BYTES)
        {
            self.write_out(&answer, weight);
        }
        !self.answers.is_empty()
    }

    /// Write out the first answer, however long that takes.
    pub(crate) fn write_answer(&mut self) {
        if let Some((answer, weight)) = self.answers.pop_front() {
            self.write_out(&answer, weight);
        }
    }

    /// Are there answers that are not written out?
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    fn write_out(&mut self, answer: &Answer, weight: usize) {
        self.output_weight += weight;
        let done = matches!(answer, Answer::Done(_));
        let text = match &mut self.busy {
            Some(Some(responder)) => {
                let is_direct =
                    matches!(answer, Answer::Part { is_direct: true, .. } | Answer::Done(_));
                responder.message(answer, is_direct)
            }
            Some(None) if matches!(self.input, Input::Plain(_)) => plain::text_of(answer),
            _ => String::new(),
        };
        self.push(&text);
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
        if !self.has_unread() {
            self.output.clear();
            self.written = 0;
        }
        self.output.extend_from_slice(text.as_bytes());
    }

    /// Tell the client why it is dropped, and drop it.
    pub(crate) fn refuse_and_close(&mut self, refusal: &Refusal) {
        let text = match self.input {
            Input::Plain(_) => plain::error_text(refusal),
            Input::Rpc(_) => {
                rpc::error(&Json::Null, rpc::INVALID_REQUEST, &refusal.to_string(), None)
            }
        };
        self.push(&text);
        self.closing = true;
    }

    /// Drop it in favour of another.
    pub(crate) fn give_way(&mut self) {
        if !self.has_unread() {
            self.refuse_and_close(&Refusal::new(
                "this session was idle for the longest, and another one came",
            ));
            self.flush();
        }
        self.gone = true;
    }

    /// Has it read what the control thread waited for, since this was asked last?
    pub(crate) fn has_made_room(&mut self) -> bool {
        std::mem::take(&mut self.made_room)
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
        match self.stream.send() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.gone = true,
        }
        self.made_room |= self.flow.drained(std::mem::take(&mut self.output_weight));
    }

    /// Nothing more will come of it: it left, or it has been told everything.
    pub(crate) fn is_gone(&self) -> bool {
        let is_told = || self.written == self.output.len() && !self.stream.is_sending();
        self.gone || (self.closing && self.busy.is_none() && is_told())
    }
}
