//! What the control thread has the owner do for the link, in worker calls that each look at few
//! objects.

use std::ops::Range;

use quiver_core::Context;
use quiver_sessions::SessionMaker;
use quiver_standby_sessions::bulk::{BulkCursor, PLACES_PER_CALL, Phase, RECORDS_PER_CALL};
use quiver_standby_sessions::change::{Change, ChangeKind};
use quiver_standby_sessions::feed::Feed;
use quiver_standby_sessions::outcome::{FromPeer, Outcome};
use quiver_standby_sessions::translator::Keeper;

use crate::owner::{Owner, SlowPath};
use crate::session::Session;
use crate::tables::Rules;

impl Keeper for SlowPath {
    fn set_feed(&mut self, feed: Option<Box<Feed>>) -> Option<Box<Feed>> {
        let owner = self.owner.as_mut()?;
        std::mem::replace(&mut owner.log.feed, feed)
    }

    fn apply(&mut self, cx: &mut Context<'_>, changes: &[Change], mark: u32, outcome: &Outcome) {
        let rules = self.translator.shared.rules(cx.pass);
        let peer = FromPeer { now_ns: cx.now_ns, mark };
        let Some(owner) = &mut self.owner else { return };
        owner.collect();
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
        let owner = self.owner.as_mut()?;
        owner.log.set_now(cx.now_ns);
        owner.sweep((first, PLACES_PER_CALL), &marks, outcome);
        let next = first.saturating_add(PLACES_PER_CALL);
        let is_over = next as usize >= owner.writer.places();
        self.note(cx);
        (!is_over).then_some(next)
    }

    fn bulk(&mut self, cx: &mut Context<'_>, cursor: &BulkCursor, own_marks: u32) {
        let rules = self.translator.shared.rules(cx.pass);
        let Some(owner) = &mut self.owner else { return cursor.advance(Phase::Sessions, None) };
        owner.log.set_now(cx.now_ns);
        if cursor.begins() {
            owner.log.bulk_mark(ChangeKind::BulkBegin, cursor.number());
        }
        match cursor.place() {
            // Bindings come with their sessions.
            (Phase::Bindings, _) => cursor.advance(Phase::Bindings, None),
            (Phase::Sessions, first) => {
                let next = bulk_sessions(owner, rules, first, own_marks);
                if next.is_none() {
                    owner.log.bulk_mark(ChangeKind::BulkEnd, cursor.number());
                }
                cursor.advance(Phase::Sessions, next);
            }
            (Phase::Over, _) => {}
        }
    }
}

impl SlowPath {
    fn note(&mut self, cx: &mut Context<'_>) {
        if let Some(owner) = &self.owner {
            self.translator.shared.note(&owner.writer, &owner.bindings);
        }
        self.queue().wind(cx);
    }
}

fn bulk_sessions(owner: &mut Owner, rules: &Rules, first: u32, own_marks: u32) -> Option<u32> {
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
            log.bulk_session(number, rules, session);
            told += 1;
        }
    }
    ((end as usize) < writer.places()).then_some(end)
}
