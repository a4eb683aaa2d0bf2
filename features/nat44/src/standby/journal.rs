//! Where the owner writes down what it makes and ends: for collectors (the log of NAT), and for the
//! router that stands by (the feed).

use quiver_nat_log::{Event, Host as LoggedHost, Log};
use quiver_standby_sessions::change::{Change, ChangeKind, Host};
use quiver_standby_sessions::feed::Feed;
use quiver_translation::flow::{End, Flow};

use crate::bindings::Readers;
use crate::session::{Direction, Session};
use crate::softwires::table::address_of;
use crate::softwires::{B4Number, b4_of, is_softwire};

/// The log and the feed.
pub(crate) struct Journal {
    log: Log,
    now_s: u32,
    /// The B4s, while DS-Lite is set up: their numbers mean nothing to others.
    pub b4s: Option<Readers>,
    /// While there is a peer.
    pub feed: Option<Box<Feed>>,
    /// What the peer has told is neither logged nor told to it.
    is_silent: bool,
}

impl Journal {
    /// Without a peer.
    pub fn new(log: Log) -> Journal {
        Journal { log, now_s: 0, b4s: None, feed: None, is_silent: false }
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
        self.feed.as_ref().map_or(0, |feed| feed.grace_s())
    }

    fn feed(&mut self) -> Option<&mut Feed> {
        self.feed.as_deref_mut().filter(|_| !self.is_silent)
    }

    /// The address of the B4 that hosts with this table are behind.
    fn b4(&self, table: u32) -> Option<u128> {
        let (readers, number) = self.b4s.as_ref().zip(b4_of(table))?;
        Some(address_of(readers, B4Number(number)))
    }

    /// A subscriber, as the log names it.
    fn logged(&self, (table, address): (u32, u32)) -> LoggedHost {
        LoggedHost { table, address, b4: self.b4(table) }
    }

    /// The feed, for what has this table, and by what the peer knows its hosts.
    fn feed_of(&mut self, table: u32) -> Option<(&mut Feed, Host)> {
        let host = match self.b4(table) {
            Some(b4) => Host::BehindB4(b4),
            None if is_softwire(table) => return None,
            None => Host::Ip4,
        };
        self.feed().map(|feed| (feed, host))
    }

    /// Tell the peer of a session.
    fn feed_session(&mut self, kind: ChangeKind, number: u32, session: Session<'_>) {
        let flow = |direction| session.flow(direction);
        let (inside, outside) = (flow(Direction::InToOut), flow(Direction::OutToIn));
        let (now_s, remote_b4) = (self.now_s, self.b4(outside.table));
        if remote_b4.is_none() && is_softwire(outside.table) {
            return;
        }
        let Some((feed, host)) = self.feed_of(inside.table) else { return };
        let (seen_s, tcp, flags) = (session.seen_s(), session.tcp().0, session.flags().0);
        let idle_s = now_s.saturating_sub(seen_s);
        let change = Change { kind, tcp, flags, idle_s, inside, outside, host, remote_b4 };
        feed.write_session(number, change, seen_s);
    }

    /// A session begins or ends.
    pub fn session(&mut self, event: Event, number: u32, session: Session<'_>) {
        if self.is_silent {
            return;
        }
        let inside = session.flow(Direction::InToOut);
        let b4 = self.b4(inside.table);
        self.log.session(event, inside, session.flow(Direction::OutToIn), b4);
        let kind = match event {
            Event::SessionDelete => ChangeKind::SessionDelete,
            _ => ChangeKind::SessionCreate,
        };
        self.feed_session(kind, number, session);
    }

    /// The peer has told of a session, which it has refreshed at `seen_s`.
    pub fn note_peer(&mut self, number: u32, seen_s: u32, tcp: u8) {
        if let Some(feed) = &mut self.feed {
            feed.note_peer(number, seen_s, tcp);
        }
    }

    /// The clock hand has come to a session that lives: tell the peer when it was refreshed here.
    #[inline]
    pub fn visit(&mut self, number: u32, session: Session<'_>) {
        let Some(feed) = &self.feed else { return };
        if session.mark() == 0 && !feed.knows(number, session.seen_s(), session.tcp().0) {
            self.feed_session(ChangeKind::SessionRefresh, number, session);
        }
    }

    /// Tell the peer of a session that was there before the link was.
    pub fn bulk_session(&mut self, number: u32, session: Session<'_>) {
        self.feed_session(ChangeKind::SessionBulk, number, session);
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
        self.log.mapping(event, inside, external, self.b4(inside.table));
        let kind = match event {
            Event::MappingDelete => ChangeKind::MappingDelete,
            _ => ChangeKind::MappingCreate,
        };
        self.feed_mapping(kind, inside, external);
    }

    /// The same for the peer alone.
    pub fn feed_mapping(&mut self, kind: ChangeKind, inside: Flow, external: End) {
        // A host behind a B4 is given ends of the table outside, as the router has it (VRF 0).
        let table = if is_softwire(inside.table) { 0 } else { inside.table };
        if let Some((feed, host)) = self.feed_of(inside.table) {
            let outside = Flow { source: End::default(), destination: external, table, ..inside };
            feed.write(Change { inside, outside, host, ..Change::new(kind) });
        }
    }

    /// A subscriber gets or loses the ports from `first` to `last` of an address.
    pub fn block(&mut self, event: Event, host: (u32, u32), external: u32, ports: (u16, u16)) {
        if self.is_silent {
            return;
        }
        self.log.block(event, self.logged(host), external, ports);
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
        let outside_table = if is_softwire(table) { 0 } else { table };
        if let Some((feed, host)) = self.feed_of(table) {
            let mut change = Change { host, ..Change::new(kind) };
            change.inside.source.address = address;
            (change.inside.table, change.outside.table) = (table, outside_table);
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
        self.log.quota(event, self.logged(host), limit);
    }
}
