//! Where the owner writes down what it makes and ends: for collectors (the log of NAT), and for the
//! router that stands by (the feed). That one gets sessions alone: a binding that is not configured
//! begins with its first session and ends with its last one (RFC 6146 §3.1).

use quiver_bindings::Binding;
use quiver_nat_log::{Event, Inside64, Log};
use quiver_standby_sessions::change::{Change, ChangeKind, Host};
use quiver_standby_sessions::feed::Feed;
use quiver_translation::flow::{End, Flow};

use crate::bindings::narrow;
use crate::session::{Inside, Session};
use crate::tables::Rules;

/// The log and the feed.
pub(crate) struct Journal {
    log: Log,
    now_s: u32,
    /// While there is a peer.
    pub feed: Option<Box<Feed>>,
    /// What the peer has told is neither logged nor told to it.
    is_silent: bool,
}

/// The remote address as a host names it. The prefix of a session is there as long as it is.
fn remote_of(rules: &Rules, inside: &Inside) -> u128 {
    rules.prefix(inside.prefix).map_or(0, |prefix| prefix.embed(inside.remote))
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

    /// Seconds that sessions of the peer live longer than their timeout.
    pub fn grace_s(&self) -> u32 {
        self.feed.as_ref().map_or(0, |feed| feed.grace_s())
    }

    fn feed(&mut self) -> Option<&mut Feed> {
        self.feed.as_deref_mut().filter(|_| !self.is_silent)
    }

    /// A session begins or ends.
    pub fn session(&mut self, event: Event, number: u32, rules: &Rules, session: Session<'_>) {
        if self.is_silent {
            return;
        }
        let inside = session.inside();
        let Inside { host, ports, table, .. } = inside;
        let remote = remote_of(rules, &inside);
        let logged = Inside64 { host, port: ports.source, remote, table };
        self.log.session64(event, logged, session.outside());
        let kind = match event {
            Event::SessionDelete64 => ChangeKind::SessionDelete,
            _ => ChangeKind::SessionCreate,
        };
        self.feed_session(kind, number, rules, session);
    }

    /// Tell the peer of a session.
    fn feed_session(&mut self, kind: ChangeKind, number: u32, rules: &Rules, session: Session<'_>) {
        let now_s = self.now_s;
        let Some(feed) = self.feed() else { return };
        let (inside, seen_s) = (session.inside(), session.seen_s());
        let Inside { host, ports, protocol, table, .. } = inside;
        let end = |port| End { address: 0, port };
        let (source, destination) = (end(ports.source), end(ports.destination));
        let change = Change {
            kind,
            tcp: session.tcp().0,
            flags: session.flags().0,
            idle_s: now_s.saturating_sub(seen_s),
            inside: Flow { source, destination, protocol, table },
            outside: session.outside(),
            host: Host::Ip6 { host, remote: remote_of(rules, &inside) },
            remote_b4: None,
        };
        feed.write_session(number, change, seen_s);
    }

    /// The peer has told of a session, which it has refreshed at `seen_s`.
    pub fn note_peer(&mut self, number: u32, seen_s: u32, tcp: u8) {
        if let Some(feed) = &mut self.feed {
            feed.note_peer(number, seen_s, tcp);
        }
    }

    /// The clock hand has come to a session that lives: tell the peer when it was refreshed here.
    #[inline]
    pub fn visit(&mut self, number: u32, rules: &Rules, session: Session<'_>) {
        let Some(feed) = &self.feed else { return };
        if session.mark() == 0 && !feed.knows(number, session.seen_s(), session.tcp().0) {
            self.feed_session(ChangeKind::SessionRefresh, number, rules, session);
        }
    }

    /// Tell the peer of a session that was there before the link was.
    pub fn bulk_session(&mut self, number: u32, rules: &Rules, session: Session<'_>) {
        self.feed_session(ChangeKind::SessionBulk, number, rules, session);
    }

    /// Tell the peer where all that is there begins or ends, which was told `number` times.
    pub fn bulk_mark(&mut self, kind: ChangeKind, number: u32) {
        if let Some(feed) = self.feed() {
            feed.write(Change { idle_s: number, ..Change::new(kind) });
        }
    }

    /// A binding begins or ends.
    pub fn binding(&mut self, event: Event, binding: Binding<'_>) {
        if self.is_silent {
            return;
        }
        let (host, port) = binding.host();
        let inside = Inside64 { host, port, remote: 0, table: binding.table() };
        self.log.mapping64(event, inside, narrow(binding.external()), binding.protocol().0);
    }

    /// No port is left: of an address, or of the whole pool, where `external` is 0.
    pub fn exhausted(&mut self, external: u32, protocol: u8) {
        self.log.exhausted(external, protocol);
    }

    /// A limit of all hosts is reached.
    pub fn quota(&mut self, event: Event, limit: u32) {
        self.log.quota(event, (0, 0), limit);
    }

    /// A limit of a subscriber is reached.
    pub fn quota64(&mut self, host: (u32, u128), limit: u32) {
        self.log.quota64(host, limit);
    }
}
