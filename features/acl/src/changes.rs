//! In what a version of a list differs from an earlier one that was compiled.

use std::collections::HashSet;
use std::sync::Arc;

use crate::acl::{Acl, Entry, Piece};

/// Rules that differ, of which it is looked up which are the same, at most.
const COMPARED_MAX: usize = 8_192;

/// What an earlier version of a list did not have, or does not have any more.
#[derive(Default)]
pub(crate) struct Changes {
    /// The places, in the earlier version, of rules that are gone; in order.
    pub gone: Vec<usize>,
    /// Rules that were added, in order. Each stands before the rule that is at this place in the
    /// earlier version.
    pub added: Vec<(usize, Arc<Entry>)>,
}

/// How a list became another one; none where that is no small change.
pub(crate) fn between(before: &Acl, now: &Acl) -> Option<Changes> {
    let mut changes = Changes::default();
    let (same, old, new) = trimmed(&before.pieces, &now.pieces);
    let mut place = rules(&before.pieces[..same]);
    let (of_old, of_new) = (addresses(old), addresses(new));
    let (mut old, mut new, mut compared) = (old, new, 0);
    while !(old.is_empty() && new.is_empty()) {
        let same = old.iter().zip(new).take_while(|(old, new)| Arc::ptr_eq(old, new)).count();
        place += rules(&old[..same]);
        (old, new) = (&old[same..], &new[same..]);
        // What both have ends a stretch that differs.
        let differs = |pieces: &[Arc<Piece>], other: &HashSet<*const Piece>| {
            pieces.iter().take_while(|piece| !other.contains(&Arc::as_ptr(piece))).count()
        };
        let (gone, came) = (differs(old, &of_new), differs(new, &of_old));
        if gone + came == 0 && !(old.is_empty() && new.is_empty()) {
            return None;
        }
        changes.add(place, &old[..gone], &new[..came], &mut compared)?;
        place += rules(&old[..gone]);
        (old, new) = (&old[gone..], &new[came..]);
    }
    Some(changes)
}

/// How many of two begin alike, and what is left of both without that and without what they end in
/// alike.
fn trimmed<'a, T>(old: &'a [Arc<T>], new: &'a [Arc<T>]) -> (usize, &'a [Arc<T>], &'a [Arc<T>]) {
    let is_same = |(old, new): &(&Arc<T>, &Arc<T>)| Arc::ptr_eq(old, new);
    let begin = old.iter().zip(new).take_while(is_same).count();
    let (old, new) = (&old[begin..], &new[begin..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(is_same).count();
    (begin, &old[..old.len() - end], &new[..new.len() - end])
}

fn addresses<T>(all: &[Arc<T>]) -> HashSet<*const T> {
    all.iter().map(Arc::as_ptr).collect()
}

fn rules(pieces: &[Arc<Piece>]) -> usize {
    pieces.iter().map(|piece| piece.entries.len()).sum()
}

impl Changes {
    /// Add how a stretch of rules became another one.
    fn add(
        &mut self,
        place: usize,
        before: &[Arc<Piece>],
        now: &[Arc<Piece>],
        compared: &mut usize,
    ) -> Option<()> {
        if let ([before], [now]) = (before, now) {
            return self.add_rules(place, &before.entries, &now.entries, compared);
        }
        if rules(before).max(rules(now)) > COMPARED_MAX {
            return None;
        }
        let all = |pieces: &[Arc<Piece>]| -> Vec<Arc<Entry>> {
            pieces.iter().flat_map(|piece| &piece.entries).cloned().collect()
        };
        self.add_rules(place, &all(before), &all(now), compared)
    }

    fn add_rules(
        &mut self,
        place: usize,
        before: &[Arc<Entry>],
        now: &[Arc<Entry>],
        compared: &mut usize,
    ) -> Option<()> {
        let (same, before, now) = trimmed(before, now);
        let place = place + same;
        *compared += before.len() + now.len();
        if *compared > COMPARED_MAX {
            return None;
        }
        let (of_before, of_now) = (addresses(before), addresses(now));
        let mut stays = now.iter().filter(|entry| of_before.contains(&Arc::as_ptr(entry)));
        let mut places = Vec::new();
        for (entry, at) in before.iter().zip(place..) {
            match of_now.contains(&Arc::as_ptr(entry)) {
                false => self.gone.push(at),
                // Rules that stay do so in their order.
                true if !Arc::ptr_eq(stays.next()?, entry) => return None,
                true => places.push(at),
            }
        }
        if stays.next().is_some() {
            return None;
        }
        let mut places = places.into_iter().peekable();
        let end = place + before.len();
        for entry in now {
            match of_before.contains(&Arc::as_ptr(entry)) {
                true => drop(places.next()),
                false => {
                    self.added.push((places.peek().copied().unwrap_or(end), entry.clone()));
                }
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::{Action, Given, Rule};

    fn rules(count: usize) -> Vec<Rule> {
        let rule = |_| Rule::new(Action::Permit, Given::default()).expect("makes sense");
        (0..count).map(rule).collect()
    }

    /// What an earlier version becomes with changes.
    fn applied(before: &Acl, changes: &Changes) -> Vec<*const Entry> {
        let mut all = Vec::new();
        let mut new = changes.added.iter().peekable();
        for (entry, place) in before.entries_from(0).map(Some).chain([None]).zip(0..) {
            while let Some((_, entry)) = new.next_if(|(before, _)| *before == place) {
                all.push(Arc::as_ptr(entry));
            }
            all.extend(entry.filter(|_| !changes.gone.contains(&place)).map(Arc::as_ptr));
        }
        assert!(new.next().is_none(), "in order");
        all
    }

    proptest! {
        #[test]
        fn changes_make_the_later_version_of_the_earlier_one(
            first in 1usize..3_000,
            edits in prop::collection::vec((any::<u32>(), 0usize..3, 0usize..3), 0..30),
        ) {
            let none = |_: &str| None;
            let before = Acl::new(1, String::new(), rules(first), none).expect("no sets");
            let mut now = before.with(0..0, Vec::new(), none).expect("no sets");
            let mut most = [0; 2];
            for (at, gone, new) in edits {
                let from = at as usize % (now.len() + 1);
                let to = (from + gone).min(now.len());
                now = now.with(from..to, rules(new), none).expect("no sets");
                most = [most[0] + to - from, most[1] + new];
            }
            let changes = between(&before, &now).expect("a small change");
            let wanted: Vec<_> = now.entries_from(0).map(Arc::as_ptr).collect();
            prop_assert_eq!(applied(&before, &changes), wanted);
            prop_assert!(changes.gone.len() <= most[0] && changes.added.len() <= most[1]);
        }
    }

    #[test]
    fn changes_in_as_many_places_as_there_may_be_are_small() {
        let none = |_: &str| None;
        let before = Acl::new(1, String::new(), rules(200_000), none).expect("no sets");
        let mut now = before.with(0..0, Vec::new(), none).expect("no sets");
        for at in 0..64 {
            let place = at * 3_001;
            now = now.with(place..place + 1, rules(1), none).expect("no sets");
        }
        let changes = between(&before, &now).expect("a small change");
        assert_eq!(changes.gone, (0..64).map(|at| at * 3_001).collect::<Vec<_>>());
        assert_eq!(changes.added.len(), 64);
    }

    #[test]
    fn another_list_is_no_change() {
        let none = |_: &str| None;
        let [one, other] =
            [0, 1].map(|_| Acl::new(1, String::new(), rules(5_000), none).expect("no sets"));
        assert!(between(&one, &other).is_none());
    }
}
