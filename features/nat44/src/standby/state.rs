//! The link on the control thread: what the owner writes goes to the peer, what the peer tells goes
//! to the owner, each a bounded part a turn.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_control::Refusal;
use quiver_core::clock::unix_ns;
use quiver_core::control::reactor::{Interest, Token};
use quiver_core::{Engine, NodeId};
use quiver_export::records::Records;
use quiver_forwarding::fib::{Family, Fib};
use quiver_standby::Item;
use quiver_standby::link::{Link, State};
use quiver_standby::socket::Socket;
use quiver_standby::wire::Key;

use crate::config::{Nat44, slow_path, with_enabled};
use crate::owner::{OWNER, SlowPath};
use crate::standby::apply::Outcome;
use crate::standby::change::{Change, ChangeKind, Message, WANTED, decode, encode};
use crate::standby::digest::digest;
use crate::standby::journal::Feed;
use crate::standby::owner_calls::{BulkCursor, CHANGES_PER_CALL};

/// Records that wait for the control thread at most.
const RECORDS_MAX: usize = 1 << 16;
/// Of these, so many are taken at once.
const RECORDS_PER_TAKE: usize = 64;
/// Takes of a turn: with the last one the turn has lasted for about half a millisecond.
const TAKES_PER_TURN: usize = 32;
/// Datagrams that are read in a turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// All that is there is told again after so long at least, nanoseconds.
const BULK_NS: u64 = 1_000_000_000;
/// The records of NAT44 among those of others.
const CHANNEL: u8 = 1;
/// The sweep is over.
const SWEPT: u32 = u32::MAX;

/// Where the link is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The own address, which Linux has, and the longest IP packet in bytes.
    pub listener: Option<(SocketAddr, u16)>,
    /// The peer, and the seconds after which it hears of a session that was refreshed.
    pub failover: Option<(SocketAddr, u32)>,
    pub secret: Option<String>,
}

/// What is counted beside the link and the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Changes that happened while there was no peer.
    pub missed: u64,
    /// Records that say nothing, or name a VRF that is not here.
    pub malformed: u64,
    /// How often all was told to the peer, and by it.
    pub bulks_sent: u64,
    pub bulks_received: u64,
}

/// What the order of items waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    NewPeer,
    BulkBegin,
    BulkEnd,
}

/// The sessions that the peer has not named are ended.
struct Sweep {
    next: Arc<AtomicU32>,
    marks: std::ops::Range<u32>,
}

/// An open link, and what is under way.
pub(crate) struct Open {
    pub link: Link,
    pub socket: Socket,
    token: Option<Token>,
    node: NodeId,
    version: u64,
    begins: u64,
    peers: u64,
    /// Taken from the ring, not yet offered.
    outbox: VecDeque<Change>,
    /// Told by the peer, not yet done.
    inbox: Vec<Change>,
    marker: Option<Marker>,
    /// Others hold it while a worker call is under way.
    call: Arc<()>,
    bulk_call: Arc<()>,
    pub bulk: Option<Arc<BulkCursor>>,
    /// Of the bulk under way. What the owner has written of one that was given up has another.
    bulk_number: u32,
    bulk_is_wanted: bool,
    bulk_ns: Option<u64>,
    /// Records that found the ring full, when that was seen.
    lost: u64,
    sweep: Option<Sweep>,
    /// Is the peer telling all?
    pub is_told_all: bool,
}

/// The state of the link, kept in the engine.
#[derive(Default)]
pub(crate) struct Standby {
    pub settings: Settings,
    pub open: Option<Open>,
    pub records: Records<Change>,
    pub outcome: Arc<Outcome>,
    pub counts: Counts,
    /// Marks of sessions that the peer tells of, from 1 on: which time it was that it told all.
    mark: u32,
    /// The first one of this peer since its start.
    first_mark: u32,
    incarnation: u64,
    /// When packets came here, and when the peer told that they came there.
    pub own_ns: Option<u64>,
    pub peer_ns: Option<u64>,
    /// When packets began to come here that had come to the peer.
    pub takeover_ns: Option<u64>,
    pub takeovers: u64,
}

impl Standby {
    /// Do packets come here, rather than to the peer? `None` when they came to neither.
    pub fn is_active(&self) -> Option<bool> {
        match (self.own_ns, self.peer_ns) {
            (None, None) => None,
            (own, peer) => Some(own >= peer),
        }
    }

    /// Records that found the ring full.
    pub fn lost(&self) -> u64 {
        self.records.counts().map(|(_, counts)| counts.lost).sum()
    }

    fn note_own(&mut self, now_ns: u64) {
        if self.is_active() == Some(false) {
            self.takeover_ns = Some(now_ns);
            self.takeovers += 1;
        }
        self.own_ns = Some(now_ns);
    }

    fn close(&mut self, engine: &mut Engine) -> Result<(), Refusal> {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.token.into_iter().for_each(|token| engine.unwatch(token));
        let node = open.node;
        let taken = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.set_feed(None))
        });
        taken.map_err(|error| Refusal::new(error.to_string())).map(drop)
    }

    fn begin(&mut self, engine: &mut Engine, sessions: usize) -> Result<(), Refusal> {
        let Settings { listener, failover, secret } = &self.settings;
        let (Some((own, path_mtu)), Some((peer, refresh_s)), Some(secret)) =
            (listener, failover, secret)
        else {
            return Ok(());
        };
        let node = slow_path(engine)?;
        let recorder = self.records.open(RECORDS_MAX);
        let mut feed = Some(Box::new(Feed::new(recorder, sessions, *refresh_s)));
        let given = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.set_feed(feed.take()))
        });
        given.map_err(|error| Refusal::new(error.to_string()))?;
        self.incarnation = unix_ns().max(self.incarnation + 1);
        let (version, greeting) = greeting(engine);
        let key = Key::new(secret.as_bytes());
        self.open = Some(Open {
            link: Link::new(key, self.incarnation, greeting, *path_mtu),
            socket: Socket::new(*own, *peer),
            token: None,
            node,
            version,
            begins: 0,
            peers: 0,
            outbox: VecDeque::with_capacity(RECORDS_PER_TAKE),
            inbox: Vec::with_capacity(CHANGES_PER_CALL),
            marker: None,
            call: Arc::new(()),
            bulk_call: Arc::new(()),
            bulk: None,
            bulk_number: 0,
            bulk_is_wanted: false,
            bulk_ns: None,
            lost: self.records.counts().map(|(_, counts)| counts.lost).sum(),
            sweep: None,
            is_told_all: false,
        });
        Ok(())
    }
}

/// How often the configuration was changed, and the digest of it.
fn greeting(engine: &Engine) -> (u64, quiver_standby::wire::Greeting) {
    match engine.get::<Nat44>() {
        Some(nat) => (nat.version, digest(engine, nat)),
        None => (0, [0; quiver_standby::wire::GREETING_BYTES]),
    }
}

/// Change where the link is. It begins anew when that is another place.
pub(crate) fn change(
    engine: &mut Engine,
    change: impl FnOnce(&mut Settings),
) -> Result<(), Refusal> {
    let sessions = with_enabled(engine, |_, nat| Ok(nat.enabled()?.sessions))?;
    engine.with(|engine, standby: &mut Standby| {
        let before = standby.settings.clone();
        change(&mut standby.settings);
        if standby.settings == before {
            return Ok(());
        }
        standby.close(engine)?;
        standby.begin(engine, sessions)
    })
}

/// NAT44 is disabled: there is no link any more.
pub(crate) fn forget(engine: &mut Engine) -> Result<(), Refusal> {
    engine.with(|engine, standby: &mut Standby| {
        standby.settings = Settings::default();
        standby.close(engine)?;
        (standby.own_ns, standby.peer_ns, standby.takeover_ns) = (None, None, None);
        Ok(())
    })
}

/// Do something with the open link.
pub(crate) fn with_open(engine: &mut Engine, work: impl FnOnce(&mut Open)) -> Result<(), Refusal> {
    let open = engine.get_mut::<Standby>().and_then(|standby| standby.open.as_mut());
    let open = open.ok_or_else(|| {
        Refusal::new("there is no link to another router")
            .remedy("nat44 ha listener, nat44 ha failover, nat44 ha key")
    })?;
    work(open);
    Ok(())
}

impl Open {
    /// Tell the peer all, and let it tell all.
    pub fn resync(&mut self) {
        self.bulk_is_wanted = true;
        self.bulk_ns = None;
        self.link.offer(CHANNEL, &WANTED);
    }

    /// Send what waits.
    pub fn flush(&mut self, now_ns: u64) {
        let Open { link, socket, .. } = self;
        link.poll(now_ns, |datagram| socket.send(datagram));
    }

    fn receive(&mut self, engine: &mut Engine, now_ns: u64) -> bool {
        let Open { link, socket, token, .. } = self;
        if let Some(fd) = socket.open(now_ns) {
            // Each turn reads; this only begins one.
            *token = Some(engine.watch(fd, Interest::READ, |_| {}));
        }
        socket.receive(DATAGRAMS_PER_TURN, |datagram| link.receive(now_ns, datagram))
    }

    fn follow_configuration(&mut self, engine: &Engine, now_ns: u64) {
        if engine.get::<Nat44>().is_some_and(|nat| nat.version != self.version) {
            let (version, greeting) = greeting(engine);
            self.version = version;
            self.link.set_greeting(greeting, now_ns);
        }
    }
}

/// On each turn of the control loop.
pub(crate) fn turn(engine: &mut Engine) {
    if engine.get::<Standby>().is_none_or(|standby| standby.open.is_none()) {
        return;
    }
    let has_more = engine.with(|engine, standby: &mut Standby| {
        let Some(mut open) = standby.open.take() else { return false };
        let now_ns = engine.now_ns();
        let mut has_more = open.receive(engine, now_ns);
        open.follow_configuration(engine, now_ns);
        has_more |= standby.send_changes(engine, &mut open, now_ns);
        has_more |= standby.tell_all(engine, &mut open, now_ns);
        has_more |= standby.do_changes(engine, &mut open, now_ns);
        open.flush(now_ns);
        standby.open = Some(open);
        has_more
    });
    if has_more {
        engine.after(0, |_| {}); // the next turn comes at once
    }
}

impl Standby {
    /// Offer what the owner has written. True when more waits that there is room for.
    fn send_changes(&mut self, engine: &Engine, open: &mut Open, now_ns: u64) -> bool {
        let fib = engine.get::<Fib>();
        let vrf = |index: u32| fib.and_then(|fib| fib.table_id(Family::Ip4, index)).unwrap_or(0);
        for _ in 0..TAKES_PER_TURN {
            while let Some(change) = open.outbox.front() {
                if open.link.state() != State::Up {
                    self.counts.missed += 1;
                } else if !open.link.has_room() {
                    return false;
                } else if self.is_valid(open, change) {
                    open.link.offer(CHANNEL, &encode(change, vrf));
                }
                open.outbox.pop_front();
            }
            let mut is_own = false;
            self.records.take(RECORDS_PER_TAKE, |change| {
                is_own |= is_of_packet(change.kind);
                open.outbox.push_back(change);
            });
            if is_own {
                self.note_own(now_ns);
            }
            if open.outbox.is_empty() {
                return false;
            }
        }
        true
    }

    /// Is a change no mark of a bulk that was given up, or that has lost records?
    fn is_valid(&self, open: &Open, change: &Change) -> bool {
        let is_mark = matches!(change.kind, ChangeKind::BulkBegin | ChangeKind::BulkEnd);
        !is_mark || (change.idle_s == open.bulk_number && self.lost() == open.lost)
    }

    /// Tell the peer all that is there, where it is to be told. True while that goes on.
    fn tell_all(&mut self, engine: &mut Engine, open: &mut Open, now_ns: u64) -> bool {
        let lost = self.lost();
        if open.link.begins() != open.begins {
            open.begins = open.link.begins();
            (open.bulk_is_wanted, open.bulk_ns, open.bulk) = (true, None, None);
            open.bulk_number = open.bulk_number.wrapping_add(1);
        }
        if lost != open.lost {
            open.lost = lost;
            (open.bulk_is_wanted, open.bulk) = (true, None);
            open.bulk_number = open.bulk_number.wrapping_add(1);
        }
        if open.link.state() != State::Up {
            open.bulk = None;
            return false;
        }
        let is_time = open.bulk_ns.is_none_or(|last| now_ns.saturating_sub(last) >= BULK_NS);
        // Until the item that names a new peer is taken, what it has told itself is not known.
        let knows_peer = open.peers == open.link.peers();
        if open.bulk.is_none() && open.bulk_is_wanted && is_time && knows_peer {
            open.bulk_number = open.bulk_number.wrapping_add(1);
            open.bulk = Some(Arc::new(BulkCursor::new(open.bulk_number)));
            (open.bulk_is_wanted, open.bulk_ns) = (false, Some(now_ns));
        }
        let Some(cursor) = &open.bulk else { return false };
        if Arc::strong_count(&open.bulk_call) > 1 {
            return true;
        }
        if cursor.is_over() {
            self.counts.bulks_sent += 1;
            open.bulk = None;
            return false;
        }
        if !open.outbox.is_empty() || !self.records.is_idle() || !open.link.has_room() {
            return open.link.has_room();
        }
        let (node, held, cursor) = (open.node, open.bulk_call.clone(), cursor.clone());
        let own_marks = self.first_mark;
        engine.post(OWNER, move |worker| {
            let _ = &held;
            worker.visit::<SlowPath, _>(node, |node, cx| node.bulk(cx, &cursor, own_marks));
        });
        true
    }

    /// Have the owner do what the peer tells. True while more waits.
    fn do_changes(&mut self, engine: &mut Engine, open: &mut Open, now_ns: u64) -> bool {
        self.fill_inbox(engine, open, now_ns);
        if Arc::strong_count(&open.call) > 1 {
            return true;
        }
        if let Some(sweep) = &open.sweep {
            let next = sweep.next.load(Ordering::Relaxed);
            if next == SWEPT {
                open.sweep = None;
            } else {
                self.post_sweep(engine, open, next);
            }
            return true;
        }
        if !open.inbox.is_empty() {
            self.post_changes(engine, open);
            return true;
        }
        if let Some(marker) = open.marker.take() {
            self.pass(open, marker);
            return true;
        }
        open.link.has_ready()
    }

    fn fill_inbox(&mut self, engine: &Engine, open: &mut Open, now_ns: u64) {
        let fib = engine.get::<Fib>();
        let table = |id: u32| fib.and_then(|fib| fib.table_index(Family::Ip4, id));
        while open.marker.is_none() && open.inbox.len() < CHANGES_PER_CALL {
            let read = open.link.take(|item| match item {
                Item::NewPeer => Ok(Marker::NewPeer),
                Item::Record { channel: CHANNEL, content } => Err(decode(content, table)),
                Item::Record { .. } => Err(None),
            });
            match read {
                None => return,
                Some(Ok(marker)) => open.marker = Some(marker),
                Some(Err(None)) => self.counts.malformed += 1,
                Some(Err(Some(Message::Wanted))) => open.bulk_is_wanted = true,
                Some(Err(Some(Message::Change(change)))) => match change.kind {
                    ChangeKind::BulkBegin => open.marker = Some(Marker::BulkBegin),
                    ChangeKind::BulkEnd => open.marker = Some(Marker::BulkEnd),
                    kind => {
                        if is_of_packet(kind) {
                            self.peer_ns = Some(now_ns);
                        }
                        open.inbox.push(change);
                    }
                },
            }
        }
    }

    /// All changes before a marker are done, or on their way.
    fn pass(&mut self, open: &mut Open, marker: Marker) {
        match marker {
            Marker::NewPeer => {
                self.mark += 1;
                self.first_mark = self.mark;
                open.peers += 1;
                open.is_told_all = false;
            }
            Marker::BulkBegin => {
                self.mark += 1;
                open.is_told_all = true;
            }
            Marker::BulkEnd => {
                if open.is_told_all {
                    let marks = self.first_mark..self.mark;
                    open.sweep = Some(Sweep { next: Arc::default(), marks });
                    self.counts.bulks_received += 1;
                }
                open.is_told_all = false;
            }
        }
    }

    fn post_changes(&mut self, engine: &mut Engine, open: &mut Open) {
        let (node, held, outcome) = (open.node, open.call.clone(), self.outcome.clone());
        let (changes, mark) = (open.inbox.clone(), self.mark.max(1));
        let is_posted = engine.post(OWNER, move |worker| {
            let _ = &held;
            worker.visit::<SlowPath, _>(node, |node, cx| node.apply(cx, &changes, mark, &outcome));
        });
        if is_posted {
            open.inbox.clear();
        }
    }

    fn post_sweep(&mut self, engine: &mut Engine, open: &Open, first: u32) {
        let Some(sweep) = &open.sweep else { return };
        let (node, held, outcome) = (open.node, open.call.clone(), self.outcome.clone());
        let (next, marks) = (sweep.next.clone(), sweep.marks.clone());
        engine.post(OWNER, move |worker| {
            let _ = &held;
            let visited = worker.visit::<SlowPath, _>(node, |node, cx| {
                node.sweep(cx, first, marks.clone(), &outcome)
            });
            next.store(visited.flatten().unwrap_or(SWEPT), Ordering::Relaxed);
        });
    }
}

/// Does a change say that packets came to who tells it?
fn is_of_packet(kind: ChangeKind) -> bool {
    matches!(kind, ChangeKind::SessionCreate | ChangeKind::SessionRefresh)
}
