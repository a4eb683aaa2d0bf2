//! A link between two routers: who the peer is, whether it lives, and what goes to and fro. It
//! does no input or output and knows no clock but the one that it is told.
//!
//! Each start of a link is an *incarnation*, a number greater than those before. A datagram names
//! its own and the one that it is for. A router takes a datagram that is for its incarnation and
//! comes from the peer's. One that is for its incarnation and comes from a greater one proves that
//! the peer has started anew, because nobody could know the number before. All others are refused:
//! they were sent before a start.

use crate::receiver::{Item, Outcome, Receiver};
use crate::replay::Replay;
use crate::sender::{GivenUp, Sender};
use crate::wire::{
    self, Ack, Body, DATA_HEAD_BYTES, Fault, Greeting, HEADER_BYTES, Header, Key, MAC_BYTES,
};

/// Hellos are so far apart, nanoseconds.
const HELLO_NS: u64 = 500_000_000;
/// Hellos that answer one are so far apart at least.
const HELLO_MIN_NS: u64 = 50_000_000;
/// A peer that was not heard of for so long is down.
const DEAD_NS: u64 = 5_000_000_000;
/// Headers of IPv6 and UDP, bytes.
const IP_UDP_BYTES: usize = 48;

/// What a link counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that were given to the socket.
    pub datagrams_sent: u64,
    /// Datagrams that came and were taken.
    pub datagrams_received: u64,
    /// Data that was sent again.
    pub datagrams_resent: u64,
    /// Records that were sent.
    pub records_sent: u64,
    /// Records that the peer has acknowledged.
    pub records_acknowledged: u64,
    /// Records that were given up: the peer did not acknowledge them.
    pub records_lost: u64,
    /// Records that came.
    pub records_received: u64,
    /// Datagrams that are not of this protocol, or that are cut.
    pub malformed: u64,
    /// Datagrams of a peer whose software has another version of this protocol.
    pub other_version: u64,
    /// Datagrams with a code of another key.
    pub unauthentic: u64,
    /// Datagrams that were sent before a start, that have come already, or that are our own.
    pub replayed: u64,
    /// Data that has come already.
    pub duplicates: u64,
    /// Data for which there was no room.
    pub no_room: u64,
    /// Data of a peer with another greeting.
    pub disagreeing: u64,
}

/// How a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The peer is not heard of.
    Down,
    /// The peer has another greeting: no records go.
    Disagrees,
    /// Records go.
    Up,
}

impl State {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            State::Down => "down",
            State::Disagrees => "disagrees",
            State::Up => "up",
        }
    }
}

#[derive(Debug)]
struct Peer {
    incarnation: u64,
    replay: Replay,
    heard_ns: u64,
    is_heard: bool,
    greeting: Option<Greeting>,
}

/// The link.
#[derive(Debug)]
pub struct Link {
    key: Key,
    own: u64,
    number: u64,
    greeting: Greeting,
    peer: Option<Peer>,
    /// Who is to be told our incarnation.
    candidate: u64,
    state: State,
    since_ns: u64,
    /// How often records began to go.
    begins: u64,
    /// Incarnations of the peer that were met.
    peers: u64,
    sender: Sender,
    receiver: Receiver,
    hello_due_ns: u64,
    hello_sent_ns: Option<u64>,
    is_ack_due: bool,
    echo_ns: u64,
    /// When a datagram of another version came.
    other_version_ns: Option<u64>,
    counts: Counts,
    /// Datagrams of the last poll, for reuse.
    spare: Vec<u8>,
}

impl Link {
    /// A link. `incarnation` is greater than those of all links before, as the time in nanoseconds
    /// is; `path_mtu_bytes` is the longest IP packet.
    pub fn new(key: Key, incarnation: u64, greeting: Greeting, path_mtu_bytes: u16) -> Link {
        let overhead = IP_UDP_BYTES + HEADER_BYTES + MAC_BYTES + DATA_HEAD_BYTES;
        Link {
            key,
            own: incarnation.max(1),
            number: 0,
            greeting,
            peer: None,
            candidate: 0,
            state: State::Down,
            since_ns: 0,
            begins: 0,
            peers: 0,
            sender: Sender::new(usize::from(path_mtu_bytes).saturating_sub(overhead)),
            receiver: Receiver::default(),
            hello_due_ns: 0,
            hello_sent_ns: None,
            is_ack_due: false,
            echo_ns: 0,
            other_version_ns: None,
            counts: Counts::default(),
            spare: Vec::new(),
        }
    }

    /// How it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Is the peer there with another version of this protocol?
    pub fn hears_other_version(&self) -> bool {
        self.other_version_ns.is_some()
    }

    /// When that began, nanoseconds; 0 when it never changed.
    pub fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// How often records began to go: after each time the peer must be given all state.
    pub fn begins(&self) -> u64 {
        self.begins
    }

    /// Incarnations of the peer that were met: so many [`Item::NewPeer`] are to be taken.
    pub fn peers(&self) -> u64 {
        self.peers
    }

    /// Round trip, nanoseconds; 0 while unknown.
    pub fn round_trip_ns(&self) -> u64 {
        self.sender.round_trip_ns
    }

    /// What it has counted.
    pub fn counts(&self) -> Counts {
        let sender = self.sender.counts;
        Counts {
            datagrams_resent: sender.resent,
            records_sent: sender.sent,
            records_acknowledged: sender.acknowledged,
            records_lost: sender.lost,
            records_received: self.receiver.records,
            malformed: self.counts.malformed + self.receiver.malformed,
            ..self.counts
        }
    }

    /// What both must agree on is another one now.
    pub fn set_greeting(&mut self, greeting: Greeting, now_ns: u64) {
        if greeting != self.greeting {
            self.greeting = greeting;
            self.hello_due_ns = now_ns;
            self.resolve_state(now_ns);
        }
    }

    /// May records be offered, and is there room for one?
    pub fn has_room(&self) -> bool {
        self.state == State::Up && self.sender.has_room()
    }

    /// Has the peer acknowledged all that was offered?
    pub fn is_idle(&self) -> bool {
        self.sender.is_empty()
    }

    /// Take a record for the peer, of at most 255 bytes; false when it does not.
    pub fn offer(&mut self, channel: u8, content: &[u8]) -> bool {
        self.state == State::Up && self.sender.offer(channel, content)
    }

    /// Does something wait to be taken?
    pub fn has_ready(&self) -> bool {
        self.receiver.has_ready()
    }

    /// Take what came, in order.
    pub fn take<R>(&mut self, each: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let was_full = self.receiver.window() == 0;
        let taken = self.receiver.take(each);
        self.is_ack_due |= was_full && self.receiver.window() > 0;
        taken
    }

    /// A datagram came.
    pub fn receive(&mut self, now_ns: u64, datagram: &[u8]) {
        let (header, body) = match wire::read(&self.key, datagram) {
            Ok(read) => read,
            Err(Fault::Malformed) => return self.counts.malformed += 1,
            Err(Fault::Unauthentic) => return self.counts.unauthentic += 1,
            Err(Fault::OtherVersion) => {
                self.other_version_ns = Some(now_ns);
                return self.counts.other_version += 1;
            }
        };
        let is_taken = match body {
            Body::Hello { .. } if header.to != self.own => self.meet(now_ns, header),
            _ => self.admit(now_ns, header),
        };
        if !is_taken {
            return self.counts.replayed += 1;
        }
        if header.to != self.own {
            return;
        }
        self.counts.datagrams_received += 1;
        match body {
            Body::Hello { stamp_ns, greeting } => {
                self.echo_ns = stamp_ns;
                self.is_ack_due = true;
                if let Some(peer) = &mut self.peer {
                    peer.greeting = Some(*greeting);
                }
                self.resolve_state(now_ns);
            }
            Body::Ack(ack) => {
                self.sender.acknowledge(&ack);
                if ack.echo_ns != 0 && self.hello_sent_ns == Some(ack.echo_ns) {
                    self.sender.note_round_trip(now_ns.saturating_sub(ack.echo_ns));
                    self.hello_sent_ns = None;
                }
            }
            Body::Data { .. } if self.state != State::Up => self.counts.disagreeing += 1,
            Body::Data { stream, sequence, records } => {
                self.is_ack_due = true;
                match self.receiver.data(stream, sequence, records) {
                    Outcome::Taken => {}
                    Outcome::Known => self.counts.duplicates += 1,
                    Outcome::NoRoom => self.counts.no_room += 1,
                }
            }
        }
    }

    /// A hello that is not for this incarnation: from a peer that does not know it yet. True when
    /// it is answered.
    fn meet(&mut self, now_ns: u64, header: Header) -> bool {
        let known = self.peer.as_ref().map_or(0, |peer| peer.incarnation);
        if header.from == self.own || (header.from == known && self.state != State::Down) {
            return false;
        }
        if header.from >= known {
            self.candidate = header.from;
        }
        // The peer knows a greater one of ours: the clock was set back since.
        if self.peer.is_none() && header.to > self.own && header.to < u64::MAX {
            self.own = header.to + 1;
        }
        let last_ns = self.hello_due_ns.saturating_sub(HELLO_NS);
        self.hello_due_ns = self.hello_due_ns.min((last_ns + HELLO_MIN_NS).max(now_ns));
        true
    }

    /// May a datagram for this incarnation be taken? Its sender is the peer from now on.
    fn admit(&mut self, now_ns: u64, header: Header) -> bool {
        if header.to != self.own || header.from == self.own {
            return false;
        }
        let known = self.peer.as_ref().map_or(0, |peer| peer.incarnation);
        if header.from < known {
            return false;
        }
        if header.from > known {
            self.adopt(header.from);
        }
        let Some(peer) = &mut self.peer else { return false };
        if !peer.replay.take(header.number) {
            return false;
        }
        (peer.heard_ns, peer.is_heard) = (now_ns, true);
        self.resolve_state(now_ns);
        true
    }

    fn adopt(&mut self, incarnation: u64) {
        let (replay, greeting) = (Replay::default(), None);
        self.peer = Some(Peer { incarnation, replay, heard_ns: 0, is_heard: false, greeting });
        self.candidate = incarnation;
        self.peers += 1;
        self.receiver.new_peer();
        self.sender.restart();
        self.state = State::Down;
    }

    /// See how the link stands after something has changed.
    fn resolve_state(&mut self, now_ns: u64) {
        let heard = self.peer.as_ref().filter(|peer| peer.is_heard);
        let state = match heard.and_then(|peer| peer.greeting) {
            None => State::Down,
            Some(greeting) if greeting == self.greeting => State::Up,
            Some(_) => State::Disagrees,
        };
        if state == self.state {
            return;
        }
        if state == State::Up {
            self.begins += 1;
        } else if self.state == State::Up {
            self.sender.restart();
        }
        (self.state, self.since_ns) = (state, now_ns);
    }

    /// The peer is not heard of, or does not acknowledge.
    fn lose_peer(&mut self, now_ns: u64) {
        if let Some(peer) = &mut self.peer {
            peer.is_heard = false;
        }
        self.resolve_state(now_ns);
    }

    /// Send what is due.
    pub fn poll(&mut self, now_ns: u64, mut send: impl FnMut(&[u8])) {
        let is_silent = self
            .peer
            .as_ref()
            .is_some_and(|peer| peer.is_heard && now_ns.saturating_sub(peer.heard_ns) >= DEAD_NS);
        if is_silent {
            self.lose_peer(now_ns);
        }
        let is_old = |at_ns: &u64| now_ns.saturating_sub(*at_ns) >= DEAD_NS;
        self.other_version_ns = self.other_version_ns.filter(|at_ns| !is_old(at_ns));
        let mut spare = std::mem::take(&mut self.spare);
        if now_ns >= self.hello_due_ns {
            self.hello_due_ns = now_ns + HELLO_NS;
            self.hello_sent_ns = Some(now_ns);
            let greeting = self.greeting;
            let hello = Body::Hello { stamp_ns: now_ns, greeting: &greeting };
            self.put(self.candidate, &hello, &mut spare, &mut send);
        }
        let peer = self.peer.as_ref().map(|peer| peer.incarnation);
        if let Some(peer) = peer.filter(|_| std::mem::take(&mut self.is_ack_due)) {
            let (next, later) = self.receiver.state();
            let (stream, window) = (self.receiver.stream, self.receiver.window());
            let echo_ns = std::mem::take(&mut self.echo_ns);
            let ack = Body::Ack(Ack { echo_ns, stream, next, later, window });
            self.put(peer, &ack, &mut spare, &mut send);
        }
        if self.state == State::Up && self.send_data(now_ns, &mut spare, &mut send).is_err() {
            self.lose_peer(now_ns);
        }
        self.spare = spare;
    }

    fn send_data(
        &mut self,
        now_ns: u64,
        spare: &mut Vec<u8>,
        send: &mut impl FnMut(&[u8]),
    ) -> Result<(), GivenUp> {
        let to = self.peer.as_ref().map_or(0, |peer| peer.incarnation);
        let Link { sender, key, own, number, counts, .. } = self;
        let stream = sender.stream;
        sender.poll(now_ns, |sequence, records| {
            *number += 1;
            let header = Header { from: *own, to, number: *number };
            wire::write(key, header, &Body::Data { stream, sequence, records }, spare);
            counts.datagrams_sent += 1;
            send(spare);
        })
    }

    fn put(&mut self, to: u64, body: &Body<'_>, spare: &mut Vec<u8>, send: &mut impl FnMut(&[u8])) {
        self.number += 1;
        let header = Header { from: self.own, to, number: self.number };
        wire::write(&self.key, header, body, spare);
        self.counts.datagrams_sent += 1;
        send(spare);
    }
}
