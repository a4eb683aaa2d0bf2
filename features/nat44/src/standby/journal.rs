//! Where the owner writes down what it makes and ends: for collectors (the log of NAT), and for the
//! router that stands by (the feed).

use quiver_export::records::Recorder;
use quiver_nat_log::{Event, Log};
use quiver_translation::flow::{End, Flow};

use crate::session::{Direction, Session};
use crate::softwires::is_softwire;
use crate::standby::change::{Change, ChangeKind};

/// Of a session that the peer made, in what the feed remembers of it.
const OF_PEER: u64 = 1 << 63;
/// Nothing was said of a session.
const UNSAID: u64 = u64::MAX;

/// The owner's end of the ring to the control thread.
pub(crate) struct Feed {
    recorder: Recorder<Change>,
    /// By the number of a session: second of the last refresh that the peer knows, and the state of
    /// TCP above it.
    said: Vec<u64>,
    refresh_s: u32,
}

impl Feed {
    /// For so many sessions, which are refreshed once in `refresh_s` at most (control thread).
    pub fn new(recorder: Recorder<Change>, sessions: usize, refresh_s: u32) -> Feed {
        // Written, so that no worker waits for a page.
        Feed { recorder, said: vec![UNSAID; sessions], refresh_s }
    }

    fn write(&mut self, change: Change) {
        self.recorder.write(change);
    }

    fn write_session(&mut self, kind: ChangeKind, number: u32, session: Session<'_>, now_s: u32) {
        let (seen_s, tcp) = (session.seen_s(), session.tcp().0);
        self.write(Change {
            kind,
            tcp,
            flags: session.flags().0,
            idle_s: now_s.saturating_sub(seen_s),
            inside: session.flow(Direction::InToOut),
            outside: session.flow(Direction::OutToIn),
        });
        self.note(number, said(seen_s, tcp));
    }

    fn note(&mut self, number: u32, word: u64) {
        if let Some(place) = self.said.get_mut(number as usize) {
            *place = word;
        }
    }
}

fn said(seen_s: u32, tcp: u8) -> u64 {
    u64::from(seen_s) | u64::from(tcp) << 32
}

/// The log and the feed.
pub(crate) struct Journal {
    log: Log,
    now_s: u32,
    /// While there is a peer.
    pub feed: Option<Box<Feed>>,
    /// What the peer has told is neither logged nor told to it.
    is_silent: bool,
}

impl Journal {
    /// Without a peer.
    pub fn new(log: Log) -> Journal {
        Journal { log, now_s: 0, feed: None, is_silent: false }
    }

    /// What is written from now on happens at this time of the router's clock.
    pub fn set_now(&mut self, now_ns: u64) {
        self.log.set_now(now_ns);
        self.now_s = (now_ns / 1_000_000_000) as u32;
    }

    /// Write nothing, or go on.
    pub fn set_silent(&mut self, is_silent: bool) {
        self.is_silent = is_silent;
    }

    /// Seconds that sessions of the peer live longer than their timeout: what it says of them may
    /// be so old.
    pub fn grace_s(&self) -> u32 {
        // A round of the clock hand takes ten seconds, in both routers.
        self.feed.as_ref().map_or(0, |feed| 2 * feed.refresh_s + 20)
    }

    fn feed(&mut self) -> Option<&mut Feed> {
        self.feed.as_deref_mut().filter(|_| !self.is_silent)
    }

    /// For what has this table: numbers of B4s mean nothing to the peer.
    fn feed_of(&mut self, table: u32) -> Option<&mut Feed> {
        self.feed().filter(|_| !is_softwire(table))
    }

    /// A session begins or ends.
    pub fn session(&mut self, event: Event, number: u32, session: Session<'_>) {
        if self.is_silent {
            return;
        }
        let flow = |direction| session.flow(direction);
        self.log.session(event, flow(Direction::InToOut), flow(Direction::OutToIn));
        let kind = match event {
            Event::SessionDelete => ChangeKind::SessionDelete,
            _ => ChangeKind::SessionCreate,
        };
        let (now_s, table) = (self.now_s, flow(Direction::InToOut).table);
        if let Some(feed) = self.feed_of(table) {
            feed.write_session(kind, number, session, now_s);
        }
    }

    /// The peer has told of a session, which it has refreshed at `seen_s`.
    pub fn note_peer(&mut self, number: u32, seen_s: u32, tcp: u8) {
        if let Some(feed) = &mut self.feed {
            feed.note(number, said(seen_s, tcp) | OF_PEER);
        }
    }

    /// The clock hand has come to a session that lives: tell the peer when it was refreshed here.
    #[inline]
    pub fn visit(&mut self, number: u32, session: Session<'_>) {
        if self.feed.is_none() || session.mark() != 0 {
            return;
        }
        let now_s = self.now_s;
        let table = session.flow(Direction::InToOut).table;
        let Some(feed) = self.feed_of(table) else { return };
        let word = feed.said.get(number as usize).copied().unwrap_or(UNSAID);
        let known = said(session.seen_s(), session.tcp().0);
        let waits = word >> 32 == known >> 32
            && session.seen_s().saturating_sub(word as u32) < feed.refresh_s;
        if !waits {
            feed.write_session(ChangeKind::SessionRefresh, number, session, now_s);
        }
    }

    /// Tell the peer of a session that was there before the link was.
    pub fn bulk_session(&mut self, number: u32, session: Session<'_>) {
        let (now_s, table) = (self.now_s, session.flow(Direction::InToOut).table);
        if let Some(feed) = self.feed_of(table) {
            feed.write_session(ChangeKind::SessionBulk, number, session, now_s);
        }
    }

    /// Tell the peer where all that is there begins or ends, which was told `number` times.
    pub fn bulk_mark(&mut self, kind: ChangeKind, number: u32) {
        if let Some(feed) = self.feed() {
            feed.write(Change { idle_s: number, ..Change::new(kind) });
        }
    }

    /// An endpoint-independent mapping begins or ends.
    pub fn mapping(&mut self, event: Event, inside: Flow, external: End) {
        if self.is_silent {
            return;
        }
        self.log.mapping(event, inside, external);
        let kind = match event {
            Event::MappingDelete => ChangeKind::MappingDelete,
            _ => ChangeKind::MappingCreate,
        };
        self.feed_mapping(kind, inside, external);
    }

    /// The same for the peer alone.
    pub fn feed_mapping(&mut self, kind: ChangeKind, inside: Flow, external: End) {
        if let Some(feed) = self.feed_of(inside.table) {
            let outside = Flow { source: End::default(), destination: external, ..inside };
            feed.write(Change { inside, outside, ..Change::new(kind) });
        }
    }

    /// A subscriber gets or loses the ports from `first` to `last` of an address.
    pub fn block(&mut self, event: Event, host: (u32, u32), external: u32, ports: (u16, u16)) {
        if self.is_silent {
            return;
        }
        self.log.block(event, host, external, ports);
        let kind = match event {
            Event::BlockRelease => ChangeKind::BlockRelease,
            _ => ChangeKind::BlockAllocate,
        };
        self.feed_block(kind, host, external, ports.0);
    }

    /// The same for the peer alone.
    pub fn feed_block(
        &mut self,
        kind: ChangeKind,
        (table, address): (u32, u32),
        external: u32,
        first_port: u16,
    ) {
        if let Some(feed) = self.feed_of(table) {
            let mut change = Change::new(kind);
            change.inside.source.address = address;
            (change.inside.table, change.outside.table) = (table, table);
            change.outside.destination = End { address: external, port: first_port };
            feed.write(change);
        }
    }

    /// No port is left: of an address, or of the whole pool, where `external` is 0.
    pub fn exhausted(&mut self, external: u32, protocol: u8) {
        self.log.exhausted(external, protocol);
    }

    /// A limit is reached.
    pub fn quota(&mut self, event: Event, host: (u32, u32), limit: u32) {
        self.log.quota(event, host, limit);
    }
}
