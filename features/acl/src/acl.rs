//! An access list: its rules, and what is counted and logged of each.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_core::WorkerId;
use quiver_core::graph::counters::Count;

use crate::log::RuleLog;
use crate::long;
use crate::named_set::NamedSet;
use crate::rules::{Action, Rule};

/// Rules of a piece when a list is made.
const PIECE_RULES: usize = 256;
/// A piece with more is divided.
const PIECE_RULES_MAX: usize = 512;

/// Rules whose counts stand in one line.
const LINE_RULES: usize = 4;

/// Packets and bytes of a few rules on one worker: a line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Line([[Count; 2]; LINE_RULES]);

/// By worker.
type Counts = Box<[Box<[Line]>]>;

/// The counts of rules that were written together, once they are counted.
struct Block {
    rules: usize,
    counts: OnceLock<Counts>,
}

impl Block {
    fn begin_counting(&self, workers: usize) {
        let lines = self.rules.div_ceil(LINE_RULES);
        let of_worker = |_| (0..lines).map(|_| Line::default()).collect();
        self.counts.get_or_init(|| (0..workers.max(1)).map(of_worker).collect());
    }
}

/// A rule in a list. It stays the same while others of the list come and go.
pub(crate) struct Entry {
    pub rule: Rule,
    /// None of a rule that does not log.
    pub log: Option<RuleLog>,
    block: Arc<Block>,
    /// Its place in the block.
    slot: u16,
}

impl Entry {
    /// Count packets, if they are counted.
    #[inline(always)]
    pub fn count(&self, worker: WorkerId, packets: u64, bytes: u64) {
        let Some(counts) = self.block.counts.get() else { return };
        let slot = usize::from(self.slot);
        let of_worker = &counts[worker.index() % counts.len()];
        if let Some(line) = of_worker.get(slot / LINE_RULES) {
            let [of_packets, of_bytes] = &line.0[slot % LINE_RULES];
            of_packets.add(packets);
            of_bytes.add(bytes);
        }
    }

    /// Packets and bytes of all workers.
    pub fn sums(&self) -> [u64; 2] {
        let Some(counts) = self.block.counts.get() else { return [0; 2] };
        let slot = usize::from(self.slot);
        let of = |worker: &[Line], what: usize| {
            let line = worker.get(slot / LINE_RULES);
            line.map_or(0, |line| line.0[slot % LINE_RULES][what].get())
        };
        [0, 1].map(|what| counts.iter().map(|worker| of(worker, what)).sum())
    }
}

/// Neighbours in a list. Versions of a list share the pieces in which they do not differ.
pub(crate) struct Piece {
    pub entries: Vec<Arc<Entry>>,
    /// The sets that rules ask.
    pub sets: Vec<Arc<NamedSet>>,
    pub reflects: bool,
    pub looks_at_upper: bool,
    counts: AtomicBool,
}

impl Piece {
    /// Of rules whose sets stand among `sets`.
    fn new(entries: Vec<Arc<Entry>>, sets: &Sets) -> Arc<Piece> {
        let mut asked = BTreeMap::new();
        for (_, name) in entries.iter().flat_map(|entry| entry.rule.sets()) {
            asked.extend(sets.get(&**name).map(|set| (&**name, set)));
        }
        let sets = asked.into_values().cloned().collect();
        let rules = || entries.iter().map(|entry| &entry.rule);
        let reflects = rules().any(|rule| rule.action == Action::Reflect);
        let looks_at_upper = rules().any(Rule::looks_at_upper);
        Arc::new(Piece { sets, reflects, looks_at_upper, counts: AtomicBool::new(false), entries })
    }

    pub fn set(&self, name: &str) -> Option<&Arc<NamedSet>> {
        self.sets.iter().find(|set| set.name == name)
    }
}

/// Sets by name.
type Sets = BTreeMap<String, Arc<NamedSet>>;

/// An access list. It never changes: another version takes its place.
pub(crate) struct Acl {
    /// Its number.
    pub index: u32,
    pub tag: String,
    pub pieces: Vec<Arc<Piece>>,
    /// The place of each piece's first rule.
    starts: Vec<usize>,
    rules: usize,
}

impl Acl {
    /// A list whose rules ask the sets that `named` knows. The error is a sentence.
    pub fn new(
        index: u32,
        tag: String,
        rules: Vec<Rule>,
        named: impl Fn(&str) -> Option<Arc<NamedSet>>,
    ) -> Result<Acl, String> {
        let empty = Acl { index, tag, pieces: Vec::new(), starts: Vec::new(), rules: 0 };
        empty.with(0..0, rules, named)
    }

    /// The list with other rules at the places of some, or between two where there are none. The
    /// error is a sentence.
    pub fn with(
        &self,
        replaced: Range<usize>,
        rules: Vec<Rule>,
        named: impl Fn(&str) -> Option<Arc<NamedSet>>,
    ) -> Result<Acl, String> {
        let touched = self.touched(&replaced);
        let pieces = self.pieces.get(touched.clone()).unwrap_or_default();
        let known = pieces.iter().flat_map(|piece| &piece.sets);
        let mut sets: Sets = known.map(|set| (set.name.clone(), set.clone())).collect();
        add_sets(&mut sets, &rules, replaced.start, named)?;
        let start = self.starts.get(touched.start).copied().unwrap_or(0);
        // Of the first piece what stands before, of the last one what stands behind.
        let last_start = self.starts.get(touched.end.wrapping_sub(1)).copied().unwrap_or(0);
        let before = pieces.first().map_or(&[][..], |piece| &piece.entries);
        let behind = pieces.last().map_or(&[][..], |piece| &piece.entries);
        let (before, _) = before.split_at((replaced.start - start).min(before.len()));
        let (_, behind) = behind.split_at((replaced.end - last_start).min(behind.len()));
        let mut entries = before.to_vec();
        entries.extend(entries_of(rules));
        entries.extend_from_slice(behind);
        let size = if entries.len() <= PIECE_RULES_MAX { PIECE_RULES_MAX } else { PIECE_RULES };
        let divided = entries.chunks(size).map(|entries| Piece::new(entries.to_vec(), &sets));
        let mut pieces = self.pieces.clone();
        pieces.splice(touched, divided);
        let mut rules = 0;
        let mut starts = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            starts.push(rules);
            rules += piece.entries.len();
        }
        Ok(Acl { index: self.index, tag: self.tag.clone(), pieces, starts, rules })
    }

    /// The pieces that differ when rules at these places are replaced.
    fn touched(&self, replaced: &Range<usize>) -> Range<usize> {
        let piece_of = |place: usize| self.starts.partition_point(|start| *start <= place);
        let from = piece_of(replaced.start.min(self.rules.saturating_sub(1))).saturating_sub(1);
        from..piece_of(replaced.end.saturating_sub(1)).max(from + 1).min(self.pieces.len())
    }

    /// How many rules it has.
    pub fn len(&self) -> usize {
        self.rules
    }

    /// Its rules, from a place on.
    pub fn entries_from(&self, place: usize) -> impl Iterator<Item = &Arc<Entry>> {
        let piece = self.starts.partition_point(|start| *start <= place).saturating_sub(1);
        let start = self.starts.get(piece).copied().unwrap_or(0);
        let pieces = self.pieces.iter().skip(piece);
        pieces.flat_map(|piece| &piece.entries).skip(place - start)
    }

    /// The rule at a place.
    pub fn entry(&self, place: usize) -> Option<&Arc<Entry>> {
        self.entries_from(place).next()
    }

    /// The sets that rules ask, some of them several times.
    pub fn sets(&self) -> impl Iterator<Item = &Arc<NamedSet>> {
        self.pieces.iter().flat_map(|piece| &piece.sets)
    }

    pub fn set(&self, name: &str) -> Option<&Arc<NamedSet>> {
        self.pieces.iter().find_map(|piece| piece.set(name))
    }

    /// Does a rule make sessions?
    pub fn reflects(&self) -> bool {
        self.pieces.iter().any(|piece| piece.reflects)
    }

    /// Does a rule look behind the IP header?
    pub fn looks_at_upper(&self) -> bool {
        self.pieces.iter().any(|piece| piece.looks_at_upper)
    }

    /// Count from now on.
    pub fn begin_counting(&self, workers: usize) {
        for piece in self.pieces.iter().filter(|piece| !piece.counts.load(Ordering::Relaxed)) {
            piece.entries.iter().for_each(|entry| entry.block.begin_counting(workers));
            piece.counts.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Acl {
    fn drop(&mut self) {
        let is_last = |piece: &&Arc<Piece>| Arc::strong_count(piece) == 1;
        let of_last = self.pieces.iter().filter(is_last).map(|piece| piece.entries.len());
        if of_last.sum::<usize>() > long::RULES_MIN {
            long::drop_elsewhere(std::mem::take(&mut self.pieces));
        }
    }
}

/// Rules in a list.
fn entries_of(rules: Vec<Rule>) -> Vec<Arc<Entry>> {
    let mut entries = Vec::with_capacity(rules.len());
    let (mut block, mut slot) = (None, 0);
    let mut left = rules.len();
    for rule in rules {
        let of_block = left.min(PIECE_RULES);
        let new = || Arc::new(Block { rules: of_block, counts: OnceLock::new() });
        let in_block: &Arc<Block> = block.get_or_insert_with(new);
        let log = rule.logs.then(RuleLog::default);
        entries.push(Arc::new(Entry { rule, log, block: in_block.clone(), slot }));
        (left, slot) = (left - 1, slot + 1);
        if usize::from(slot) == in_block.rules {
            (block, slot) = (None, 0);
        }
    }
    entries
}

/// Add the sets that rules ask, of which the first is at `place`.
fn add_sets(
    sets: &mut Sets,
    rules: &[Rule],
    place: usize,
    named: impl Fn(&str) -> Option<Arc<NamedSet>>,
) -> Result<(), String> {
    for (rule, place) in rules.iter().zip(place..) {
        for (role, name) in rule.sets() {
            let set = match sets.get(&**name) {
                Some(set) => set.clone(),
                None => named(name).ok_or_else(|| {
                    format!("rule {place}: there is no {} '{name}'", role.kind().word())
                })?,
            };
            if set.kind() != role.kind() {
                let (has, wants) = (set.kind().elements(), role.kind().elements());
                let word = role.word();
                return Err(format!("rule {place}: {word} {name} has {has}, not {wants}"));
            }
            sets.insert(name.to_string(), set);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rules::Given;

    fn rule(dscp: u8) -> Rule {
        let given = Given { dscp: Some(dscp), ..Given::default() };
        Rule::new(Action::Permit, given).expect("makes sense")
    }

    proptest! {
        #[test]
        fn rules_are_replaced_as_in_a_vector(
            first in prop::collection::vec(0u8..64, 0..1_500),
            edits in prop::collection::vec(
                (any::<u32>(), 0usize..600, prop::collection::vec(0u8..64, 0..400)),
                0..8,
            ),
        ) {
            let none = |_: &str| None;
            let all = |rules: &[u8]| rules.iter().map(|dscp| rule(*dscp)).collect::<Vec<_>>();
            let mut list = Acl::new(7, "t".to_owned(), all(&first), none).expect("no sets");
            let mut plain = all(&first);
            for (at, gone, new) in edits {
                let from = at as usize % (plain.len() + 1);
                let to = (from + gone).min(plain.len());
                list = list.with(from..to, all(&new), none).expect("no sets");
                plain.splice(from..to, all(&new));
                prop_assert_eq!(list.len(), plain.len());
                let rules: Vec<Rule> = list.entries_from(0).map(|e| e.rule.clone()).collect();
                prop_assert_eq!(&rules, &plain);
                for place in [0, from, to, plain.len()] {
                    let there = list.entry(place).map(|entry| &entry.rule);
                    prop_assert_eq!(there, plain.get(place));
                }
                let longest = list.pieces.iter().map(|piece| piece.entries.len()).max();
                prop_assert!(longest.unwrap_or(0) <= PIECE_RULES_MAX);
            }
        }
    }
}
