//! What the control thread has the owner do for the link, in worker calls that each look at few
//! objects: between two passes a worker stays away from its packets for some microseconds.

use std::ops::Range;

use quiver_core::Context;
use quiver_sessions::SessionMaker;
use quiver_standby_sessions::bulk::{BulkCursor, PLACES_PER_CALL, Phase, RECORDS_PER_CALL};
use quiver_standby_sessions::change::{Change, ChangeKind};
use quiver_standby_sessions::feed::Feed;
use quiver_standby_sessions::outcome::{FromPeer, Outcome};
use quiver_standby_sessions::translator::Keeper;

use crate::bindings::Kind;
use crate::owned::Owner;
use crate::owner::SlowPath;
use crate::session::{Direction, Session};
use crate::tables::Blocks;

impl Keeper for SlowPath {
    fn set_feed(&mut self, feed: Option<Box<Feed>>) -> Option<Box<Feed>> {
        let owner = self.owner.as_mut()?;
        std::mem::replace(&mut owner.log.feed, feed)
    }

    fn apply(&mut self, cx: &mut Context<'_>, changes: &[Change], mark: u32, outcome: &Outcome) {
        let rules = self.rules(cx);
        let peer = FromPeer { now_ns: cx.now_ns, mark };
        let Some(owner) = &mut self.owner else { return };
        owner.writer.collect();
        changes.iter().for_each(|change| owner.apply(rules, change, peer, outcome));
        self.note(cx);
    }

    fn sweep(
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

    fn bulk(&mut self, cx: &mut Context<'_>, cursor: &BulkCursor, own_marks: u32) {
        let blocks = self.rules(cx).provider.blocks;
        let Some(owner) = &mut self.owner else { return cursor.advance(Phase::Sessions, None) };
        owner.log.set_now(cx.now_ns);
        if cursor.begins() {
            owner.log.bulk_mark(ChangeKind::BulkBegin, cursor.number());
        }
        let (phase, first) = cursor.place();
        let next = match phase {
            Phase::Bindings => bulk_bindings(owner, blocks, first),
            Phase::Sessions => bulk_sessions(owner, first, own_marks),
            Phase::Over => return,
        };
        if phase == Phase::Sessions && next.is_none() {
            owner.log.bulk_mark(ChangeKind::BulkEnd, cursor.number());
        }
        cursor.advance(phase, next);
    }
}

impl SlowPath {
    fn note(&mut self, cx: &mut Context<'_>) {
        self.note_tables();
        self.queue().wind(cx);
    }
}

fn bulk_bindings(owner: &mut Owner, blocks: Option<Blocks>, first: u32) -> Option<u32> {
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
