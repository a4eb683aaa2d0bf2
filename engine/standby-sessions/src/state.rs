//! The link on the control thread: what the owner writes goes to the peer, what the peer tells goes
//! to the owner, each a bounded part a turn.

mod turn;

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use quiver_control::Refusal;
use quiver_core::clock::unix_ns;
use quiver_core::control::reactor::{Interest, Token};
use quiver_core::{Engine, NodeId};
use quiver_export::records::Records;

pub(crate) use self::turn::turn;
use crate::bulk::{BulkCursor, CHANGES_PER_CALL};
use crate::change::{Change, WANTED};
use crate::feed::Feed;
use crate::outcome::Outcome;
use crate::translator::{Keeper, Translator};
use quiver_standby::link::Link;
use quiver_standby::socket::Socket;
use quiver_standby::wire::Key;

/// Records that wait for the control thread at most.
const RECORDS_MAX: usize = 1 << 16;
/// Of these, so many are taken at once.
const RECORDS_PER_TAKE: usize = 64;
/// Datagrams that are read in a turn.
const DATAGRAMS_PER_TURN: usize = 64;
/// For so long after a worker call was made the control loop turns at once, to see its end,
/// nanoseconds.
const AWAITED_NS: u64 = 2_000_000;
/// All that is there is told again after so long at least, nanoseconds.
const BULK_NS: u64 = 1_000_000_000;
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

/// A worker call of which one at a time is under way.
#[derive(Default)]
struct WorkerCall {
    /// The call holds it, too.
    held: Arc<()>,
    posted_ns: u64,
}

impl WorkerCall {
    /// What the next call is to hold.
    fn begin(&mut self, now_ns: u64) -> Arc<()> {
        self.posted_ns = now_ns;
        self.held.clone()
    }

    fn is_under_way(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }

    /// Is its end expected any moment? A worker that stalls is not waited for in a hurry.
    fn is_awaited(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.posted_ns) < AWAITED_NS
    }
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
    /// The number of the translator's records.
    channel: u8,
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
    call: WorkerCall,
    bulk_call: WorkerCall,
    pub bulk: Option<Arc<BulkCursor>>,
    /// Of the bulk under way. What the owner has written of one that was given up has another.
    bulk_number: u32,
    bulk_is_wanted: bool,
    bulk_ns: Option<u64>,
    /// Records that found the ring full, when that was seen.
    lost: u64,
    sweep: Option<Sweep>,
    /// Is the peer telling all?
    pub is_in_bulk: bool,
}

/// The state of a translator's link, kept in the engine.
pub(crate) struct Standby<T> {
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
    of: PhantomData<T>,
}

impl<T> Default for Standby<T> {
    fn default() -> Standby<T> {
        Standby {
            settings: Settings::default(),
            open: None,
            records: Records::default(),
            outcome: Arc::default(),
            counts: Counts::default(),
            mark: 0,
            first_mark: 0,
            incarnation: 0,
            own_ns: None,
            peer_ns: None,
            takeover_ns: None,
            takeovers: 0,
            of: PhantomData,
        }
    }
}

impl<T: Translator> Standby<T> {
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
        let taken = engine.call(T::OWNER, move |worker| {
            worker.visit::<T::Node, _>(node, |node, _| node.set_feed(None))
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
        let node = T::node(engine)?;
        let recorder = self.records.open(RECORDS_MAX);
        let mut feed = Some(Box::new(Feed::new(recorder, sessions, *refresh_s)));
        let given = engine.call(T::OWNER, move |worker| {
            worker.visit::<T::Node, _>(node, |node, _| node.set_feed(feed.take()))
        });
        given.map_err(|error| Refusal::new(error.to_string()))?;
        self.incarnation = unix_ns().max(self.incarnation + 1);
        let (version, greeting) = (T::version(engine), T::greeting(engine));
        let key = Key::new(secret.as_bytes());
        self.open = Some(Open {
            link: Link::new(key, self.incarnation, greeting, *path_mtu),
            socket: Socket::new(*own, *peer),
            channel: T::CHANNEL,
            token: None,
            node,
            version,
            begins: 0,
            peers: 0,
            outbox: VecDeque::with_capacity(RECORDS_PER_TAKE),
            inbox: Vec::with_capacity(CHANGES_PER_CALL),
            marker: None,
            call: WorkerCall::default(),
            bulk_call: WorkerCall::default(),
            bulk: None,
            bulk_number: 0,
            bulk_is_wanted: false,
            bulk_ns: None,
            lost: self.records.counts().map(|(_, counts)| counts.lost).sum(),
            sweep: None,
            is_in_bulk: false,
        });
        Ok(())
    }
}

/// Change where the link is. It begins anew when that is another place.
pub(crate) fn change<T: Translator>(
    engine: &mut Engine,
    change: impl FnOnce(&mut Settings),
) -> Result<(), Refusal> {
    let sessions = T::sessions_max(engine)?;
    engine.with(|engine, standby: &mut Standby<T>| {
        let before = standby.settings.clone();
        change(&mut standby.settings);
        if standby.settings == before {
            return Ok(());
        }
        let changed = standby.close(engine).and_then(|()| standby.begin(engine, sessions));
        if changed.is_err() {
            // What was there is there again, as far as the worker answers.
            standby.settings = before;
            let _ = standby.begin(engine, sessions);
        }
        changed
    })
}

/// A translator is being disabled: it has no link any more.
///
/// # Errors
/// Its owner does not answer.
pub fn forget<T: Translator>(engine: &mut Engine) -> Result<(), Refusal> {
    engine.with(|engine, standby: &mut Standby<T>| {
        standby.settings = Settings::default();
        standby.close(engine)?;
        (standby.own_ns, standby.peer_ns, standby.takeover_ns) = (None, None, None);
        Ok(())
    })
}

/// Do something with the open link.
pub(crate) fn with_open<T: Translator>(
    engine: &mut Engine,
    work: impl FnOnce(&mut Open),
) -> Result<(), Refusal> {
    let open = engine.get_mut::<Standby<T>>().and_then(|standby| standby.open.as_mut());
    let open = open.ok_or_else(|| {
        Refusal::new("there is no link to another router").remedy(T::TEXTS.remedy)
    })?;
    work(open);
    Ok(())
}

impl Open {
    /// Tell the peer all, and let it tell all.
    pub fn resync(&mut self) {
        self.bulk_is_wanted = true;
        self.bulk_ns = None;
        self.link.offer(self.channel, &WANTED);
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

    fn follow_configuration<T: Translator>(&mut self, engine: &Engine, now_ns: u64) {
        let version = T::version(engine);
        if version != self.version {
            self.version = version;
            self.link.set_greeting(T::greeting(engine), now_ns);
        }
    }
}
