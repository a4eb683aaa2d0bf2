//! What the control thread has the owner do for the link, in worker calls that each look at few
//! objects: between two passes a worker stays away from its packets for some microseconds.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use quiver_core::Context;

use crate::bindings::Kind;
use crate::owned::Owner;
use crate::owner::{SlowPath, TURN_NS};
use crate::session::{Direction, Session};
use crate::standby::apply::{FromPeer, Outcome};
use crate::standby::change::{Change, ChangeKind};

/// Changes that one worker call does, and where each may need bindings: about ten microseconds.
pub(crate) const CHANGES_PER_CALL: usize = 16;
pub(crate) const CHANGES_PER_CALL_WITH_BINDINGS: usize = 8;
/// Objects that one worker call looks at.
pub(crate) const PLACES_PER_CALL: u32 = 256;
/// Records that one worker call writes into the ring.
const RECORDS_PER_CALL: usize = 64;

/// How far the owner has told the peer all that is there.
#[derive(Debug, Default)]
pub(crate) struct BulkCursor {
    /// 0 bindings, 1 sessions, 2 all told.
    phase: AtomicU32,
    next: AtomicU32,
    is_begun: AtomicU32,
    number: u32,
}

impl BulkCursor {
    /// At the beginning of the bulk with this number.
    pub fn new(number: u32) -> BulkCursor {
        BulkCursor { number, ..BulkCursor::default() }
    }

    /// Is all told?
    pub fn is_over(&self) -> bool {
        self.phase.load(Ordering::Relaxed) >= 2
    }

    /// The number of the next session, once it is their turn.
    pub fn next_session(&self) -> u32 {
        match self.phase.load(Ordering::Relaxed) {
            1 => self.next.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    fn go_to(&self, phase: u32, next: u32) {
        self.phase.store(phase, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
    }
}

impl SlowPath {
    /// Do what the peer tells.
    pub fn apply(
        &mut self,
        cx: &mut Context<'_>,
        changes: &[Change],
        mark: u32,
        outcome: &Outcome,
    ) {
        let rules = self.rules(cx);
        let peer = FromPeer { now_ns: cx.now_ns, mark };
        let Some(owner) = &mut self.owner else { return };
        owner.writer.collect();
        changes.iter().for_each(|change| owner.apply(rules, change, peer, outcome));
        self.note(cx);
    }

    /// End sessions that the peer has not named among all; the place to go on at, while there is
    /// one.
    pub fn sweep(
        &mut self,
        cx: &mut Context<'_>,
        first: u32,
        marks: Range<u32>,
        outcome: &Outcome,
    ) -> Option<u32> {
        let rules = self.rules(cx);
        let peer = FromPeer { now_ns: cx.now_ns, mark: marks.end };
        let owner = self.owner.as_mut()?;
        owner.log.set_now(cx.now_ns);
        owner.sweep(rules, (first, PLACES_PER_CALL), marks, (peer, outcome));
        let next = first.saturating_add(PLACES_PER_CALL);
        let is_over = next as usize >= owner.writer.places();
        self.note(cx);
        (!is_over).then_some(next)
    }

    /// Tell the peer a part of all that is there, but for what it has told itself: sessions with
    /// marks from `own_marks` on.
    pub fn bulk(&mut self, cx: &mut Context<'_>, cursor: &BulkCursor, own_marks: u32) {
        let blocks = self.rules(cx).provider.blocks;
        let Some(owner) = &mut self.owner else { return cursor.go_to(2, 0) };
        owner.log.set_now(cx.now_ns);
        if cursor.is_begun.swap(1, Ordering::Relaxed) == 0 {
            owner.log.bulk_mark(ChangeKind::BulkBegin, cursor.number);
        }
        let next = cursor.next.load(Ordering::Relaxed);
        match cursor.phase.load(Ordering::Relaxed) {
            0 => match bulk_bindings(owner, blocks, next) {
                Some(next) => cursor.go_to(0, next),
                None => cursor.go_to(1, 0),
            },
            1 => match bulk_sessions(owner, next, own_marks) {
                Some(next) => cursor.go_to(1, next),
                None => {
                    owner.log.bulk_mark(ChangeKind::BulkEnd, cursor.number);
                    cursor.go_to(2, 0);
                }
            },
            _ => {}
        }
    }

    fn note(&mut self, cx: &mut Context<'_>) {
        self.note_tables();
        cx.tick_at(cx.now_ns + TURN_NS);
    }
}

fn bulk_bindings(
    owner: &mut Owner,
    blocks: Option<crate::tables::Blocks>,
    first: u32,
) -> Option<u32> {
    let Owner { bindings, log, .. } = owner;
    let bindings = bindings.as_ref()?;
    let end = first.saturating_add(PLACES_PER_CALL).min(bindings.writer.places() as u32);
    let mut told = 0;
    for number in first..end {
        if !bindings.writer.is_live(number) {
            continue;
        }
        if told >= RECORDS_PER_CALL {
            return Some(number);
        }
        told += 1;
        let binding = bindings.read.get(number);
        let (inside, outside) =
            (binding.flow(Direction::InToOut), binding.flow(Direction::OutToIn));
        match (binding.kind(), blocks) {
            (Kind::Mapping, _) => {
                log.feed_mapping(ChangeKind::MappingCreate, inside, outside.destination);
            }
            (Kind::Block, Some(blocks)) => {
                let host = (inside.table, inside.source.address);
                let first = blocks.first_port(outside.destination.port.saturating_sub(1));
                let external = outside.destination.address;
                log.feed_block(ChangeKind::BlockAllocate, host, external, first);
            }
            _ => {}
        }
    }
    ((end as usize) < bindings.writer.places()).then_some(end)
}

fn bulk_sessions(owner: &mut Owner, first: u32, own_marks: u32) -> Option<u32> {
    let Owner { writer, log, .. } = owner;
    let end = first.saturating_add(PLACES_PER_CALL).min(writer.places() as u32);
    let mut told = 0;
    for number in first..end {
        if !writer.is_live(number) {
            continue;
        }
        if told >= RECORDS_PER_CALL {
            return Some(number);
        }
        let session = Session(writer.objects().get(number));
        if session.mark() < own_marks {
            log.bulk_session(number, session);
            told += 1;
        }
    }
    ((end as usize) < writer.places()).then_some(end)
}
