//! A turn of the control loop: what the owner has written is sent, what the peer tells is done.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};

use super::{BULK_NS, Marker, Open, RECORDS_PER_TAKE, SWEPT, Standby, Sweep};
use crate::bulk::BulkCursor;
use crate::change::{Change, ChangeKind, Message, decode, encode};
use crate::translator::{Keeper, Translator};
use quiver_standby::Item;
use quiver_standby::link::State;

/// Times that records are taken from the ring in a turn, [`RECORDS_PER_TAKE`] each.
const TAKES_PER_TURN: usize = 32;

/// An item of the link, read.
enum Came {
    Marker(Marker),
    Message(Message),
    Unreadable,
}

/// On each turn of the control loop.
pub(crate) fn turn<T: Translator>(engine: &mut Engine) {
    if engine.get::<Standby<T>>().is_none_or(|standby| standby.open.is_none()) {
        return;
    }
    let has_more = engine.with(|engine, standby: &mut Standby<T>| {
        let Some(mut open) = standby.open.take() else { return false };
        let now_ns = engine.now_ns();
        let mut has_more = open.receive(engine, now_ns);
        open.follow_configuration::<T>(engine, now_ns);
        has_more |= standby.send_changes(engine, &mut open, now_ns);
        has_more |= standby.send_bulk(engine, &mut open, now_ns);
        has_more |= standby.do_changes(engine, &mut open, now_ns);
        open.flush(now_ns);
        standby.open = Some(open);
        has_more
    });
    if has_more {
        engine.after(0, |_| {}); // the next turn comes at once
    }
}

fn family(is_ip6: bool) -> Family {
    if is_ip6 { Family::Ip6 } else { Family::Ip4 }
}

impl<T: Translator> Standby<T> {
    /// Offer what the owner has written. True when more waits that there is room for.
    fn send_changes(&mut self, engine: &Engine, open: &mut Open, now_ns: u64) -> bool {
        let fib = engine.get::<Fib>();
        let vrf = |is_ip6: bool, index: u32| {
            fib.and_then(|fib| fib.table_id(family(is_ip6), index)).unwrap_or(0)
        };
        for _ in 0..TAKES_PER_TURN {
            while let Some(change) = open.outbox.front() {
                if open.link.state() != State::Up {
                    self.counts.missed += 1;
                } else if !open.link.has_room() {
                    return false;
                } else if self.is_valid(open, change) {
                    open.link.offer(open.channel, encode(change, vrf).bytes());
                }
                open.outbox.pop_front();
            }
            let mut is_own = false;
            self.records.take(RECORDS_PER_TAKE, |change| {
                is_own |= change.is_of_packet();
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
    fn send_bulk(&mut self, engine: &mut Engine, open: &mut Open, now_ns: u64) -> bool {
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
        if open.bulk_call.is_under_way() {
            return open.bulk_call.is_awaited(now_ns);
        }
        if cursor.is_over() {
            self.counts.bulks_sent += 1;
            open.bulk = None;
            return false;
        }
        if !open.outbox.is_empty() || !self.records.is_idle() || !open.link.has_room() {
            return open.link.has_room();
        }
        let (node, held, cursor) = (open.node, open.bulk_call.begin(now_ns), cursor.clone());
        let own_marks = self.first_mark;
        engine.post(T::OWNER, move |worker| {
            let _ = &held;
            worker.visit::<T::Node, _>(node, |node, cx| node.bulk(cx, &cursor, own_marks));
        });
        true
    }

    /// Have the owner do what the peer tells. True while more waits.
    fn do_changes(&mut self, engine: &mut Engine, open: &mut Open, now_ns: u64) -> bool {
        self.fill_inbox(engine, open, now_ns);
        if open.call.is_under_way() {
            return open.call.is_awaited(now_ns);
        }
        if let Some(sweep) = &open.sweep {
            let next = sweep.next.load(Ordering::Relaxed);
            if next == SWEPT {
                open.sweep = None;
            } else {
                self.post_sweep(engine, open, (next, now_ns));
            }
            return true;
        }
        if !open.inbox.is_empty() {
            self.post_changes(engine, open, now_ns);
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
        let table = |is_ip6: bool, id: u32| fib.and_then(|fib| fib.table_index(family(is_ip6), id));
        let most = T::changes_per_call(engine);
        while open.marker.is_none() && open.inbox.len() < most {
            let read = open.link.take(|item| match item {
                Item::NewPeer => Came::Marker(Marker::NewPeer),
                Item::Record { channel, content } if channel == T::CHANNEL => {
                    decode(content, table).map_or(Came::Unreadable, Came::Message)
                }
                Item::Record { .. } => Came::Unreadable,
            });
            match read {
                None => return,
                Some(Came::Marker(marker)) => open.marker = Some(marker),
                Some(Came::Unreadable) => self.counts.malformed += 1,
                Some(Came::Message(Message::Wanted)) => open.bulk_is_wanted = true,
                Some(Came::Message(Message::Change(change))) => match change.kind {
                    ChangeKind::BulkBegin => open.marker = Some(Marker::BulkBegin),
                    ChangeKind::BulkEnd => open.marker = Some(Marker::BulkEnd),
                    _ => {
                        if change.is_of_packet() {
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
                open.is_in_bulk = false;
            }
            Marker::BulkBegin => {
                self.mark += 1;
                open.is_in_bulk = true;
            }
            Marker::BulkEnd => {
                if open.is_in_bulk {
                    let marks = self.first_mark..self.mark;
                    open.sweep = Some(Sweep { next: Arc::default(), marks });
                    self.counts.bulks_received += 1;
                }
                open.is_in_bulk = false;
            }
        }
    }

    fn post_changes(&mut self, engine: &mut Engine, open: &mut Open, now_ns: u64) {
        let (node, held, outcome) = (open.node, open.call.begin(now_ns), self.outcome.clone());
        let (changes, mark) = (open.inbox.clone(), self.mark.max(1));
        let is_posted = engine.post(T::OWNER, move |worker| {
            let _ = &held;
            worker.visit::<T::Node, _>(node, |node, cx| node.apply(cx, &changes, mark, &outcome));
        });
        if is_posted {
            open.inbox.clear();
        }
    }

    fn post_sweep(&mut self, engine: &mut Engine, open: &mut Open, (first, now_ns): (u32, u64)) {
        let Some(sweep) = &open.sweep else { return };
        let (node, held, outcome) = (open.node, open.call.begin(now_ns), self.outcome.clone());
        let (next, marks) = (sweep.next.clone(), sweep.marks.clone());
        engine.post(T::OWNER, move |worker| {
            let _ = &held;
            let visited = worker.visit::<T::Node, _>(node, |node, cx| {
                node.sweep(cx, first, marks.clone(), &outcome)
            });
            next.store(visited.flatten().unwrap_or(SWEPT), Ordering::Relaxed);
        });
    }
}
