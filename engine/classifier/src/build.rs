//! Compiling: which structure, and its parts.

use std::collections::HashMap;
use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_tables::GroupId;
use quiver_tables::lpm::{LpmError, LpmSpace, LpmWriter, Route};
use quiver_tables::memory::MemoryError;
use quiver_tables::prefix::Prefix;

use crate::bitmaps::{self, Bitmaps};
use crate::classes::{ClassBitsInMaking, DESTINATIONS, Matching, SOURCES};
use crate::entries::{Pair, Pairs, RuleSets};
use crate::intervals::Intervals;
use crate::linear::{LANES, Linear, mask_of};
use crate::search::{Tuple, Tuples};
use crate::sets::{self, Members, SETS_MAX};
use crate::upper::Upper;
use crate::{Classified, Classifier, Form, Rule};

/// Rules of a list at most.
pub const RULES_MAX: usize = 1 << 20;
/// Up to so many rules, all are compared.
const LINEAR_RULES_MAX: usize = 64;
/// Seeds that are tried before the table of pairs gets more room.
const SEEDS_TRIED: u64 = 4;
/// Doublings of that room.
const DOUBLINGS_MAX: u32 = 6;

/// Why a list is not compiled.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Too many rules.
    #[error("{0} rules are more than {RULES_MAX}")]
    TooMany(usize),
    /// The numbers of rules, or of those that new rules stand before, do not rise.
    #[error("the numbers of rules do not rise")]
    Order,
    /// Rules ask for too many sets.
    #[error("the rules ask for {0} sets, more than {SETS_MAX}")]
    TooManySets(usize),
    /// A rule asks for a set that there is not.
    #[error("a rule asks for set {0}, which there is not")]
    NoSet(u16),
    /// Too many rules are gone, or too many are new.
    #[error("{0} rules that are gone, or new, are more than a compiled list has beside it")]
    TooManyChanges(usize),
    /// The compiled list has changes beside it already.
    #[error("the compiled list has changes beside it already")]
    ChangedTwice,
    /// The prefix match is full.
    #[error(transparent)]
    Lpm(#[from] LpmError),
    /// No memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Pairs fall together under every seed; it does not happen by chance.
    #[error("the table of prefix pairs cannot be built")]
    Crowded,
}

/// How a list is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// All rules are compared, sixteen at a time.
    Linear,
    /// The rules that match both addresses are compared one by one.
    Bitmaps,
    /// Pairs of prefix lengths that can match are searched for.
    Tuples,
}

/// The structure of a classifier and its worst case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The structure.
    pub structure: Structure,
    /// Rules of the family.
    pub rules: usize,
    /// Pairs of prefix lengths; 0 in a list of another structure than tuples.
    pub tuples: usize,
    /// Pairs of prefixes.
    pub pairs: usize,
    /// Pairs of prefix lengths that are searched for one packet at most; of bitmaps, rules that are
    /// compared with one packet at most.
    pub probes_max: usize,
    /// Cache lines or neighbours that one such search reads at most.
    pub buckets_max: usize,
    /// Rules with the same pair of prefixes at most; of a linear list, all.
    pub list_max: usize,
    /// Steps of up to sixteen rules in the longest list.
    pub steps_max: usize,
    /// Rules that are gone or new beside the compiled list: a packet is compared with all new ones.
    pub changes: usize,
    /// Memory that workers read, bytes.
    pub bytes: usize,
}

/// The rules of one pair of prefixes, in order.
struct Listed<A> {
    pair: Pair<A>,
    rules: std::ops::Range<usize>,
}

impl<A: Classified> Classifier<A> {
    /// Compile rules, the most preferred first. It takes time that grows with their number (100,000
    /// in less than a second), and may run on any thread.
    ///
    /// # Errors
    /// There are too many, their numbers do not rise, or memory is missing.
    pub fn new(rules: &[Rule<A>]) -> Result<Classifier<A>, BuildError> {
        Self::with_sets(rules, Vec::new())
    }

    /// The same of rules that ask for these sets, each by its place among them. What a set holds is
    /// asked for with every vector: it may change while packets are searched for.
    ///
    /// # Errors
    /// As [`new`](Self::new), and there are too many sets, or a rule asks for another one.
    pub fn with_sets(
        rules: &[Rule<A>],
        sets: Vec<Arc<dyn Members<A>>>,
    ) -> Result<Classifier<A>, BuildError> {
        sets::check(rules, sets.len())?;
        if rules.len() > RULES_MAX {
            return Err(BuildError::TooMany(rules.len()));
        }
        if !rules.is_sorted_by(|one, next| one.number < next.number) {
            return Err(BuildError::Order);
        }
        if rules.len() > LINEAR_RULES_MAX {
            if sets.is_empty()
                && rules.len() <= bitmaps::RULES_MAX
                && let Some(compiled) = Self::bitmaps(rules)?
            {
                return Ok(compiled);
            }
            return Self::tuples(rules, sets);
        }
        let linear = Linear::new(rules, sets.len());
        let cost = Cost {
            structure: Structure::Linear,
            rules: rules.len(),
            tuples: 0,
            pairs: 0,
            probes_max: 0,
            buckets_max: 0,
            list_max: rules.len(),
            steps_max: linear.blocks(),
            changes: 0,
            bytes: linear.bytes(),
        };
        Ok(Classifier { form: Form::Linear(Box::new(linear)), sets: sets.into(), cost })
    }

    /// None where one packet may match the addresses of too many rules.
    fn bitmaps(rules: &[Rule<A>]) -> Result<Option<Classifier<A>>, BuildError> {
        let words = rules.len().div_ceil(64);
        let side = |prefix: fn(&Rule<A>) -> Prefix<A>| {
            let numbered = rules.iter().zip(0..).map(|(rule, bit)| (prefix(rule), bit));
            Classes::of(numbered.collect(), words)
        };
        let (source, destination) = (side(|rule| rule.source), side(|rule| rule.destination));
        let limit = bitmaps::CANDIDATES_MAX;
        let candidates = source.bits.most_in_common(&destination.bits, limit);
        if candidates > limit {
            return Ok(None);
        }
        let (matching, resident) = matching(&source, &destination)?;
        let (source, destination) = (source.bits.finish()?, destination.bits.finish()?);
        let uppers: Box<[Upper]> = rules.iter().map(Upper::of).collect();
        let cost = Cost {
            structure: Structure::Bitmaps,
            rules: rules.len(),
            tuples: 0,
            pairs: 0,
            probes_max: candidates,
            buckets_max: source.lines_of_set(),
            list_max: candidates,
            steps_max: candidates,
            changes: 0,
            bytes: resident + source.bytes() + destination.bytes() + size_of_val(&*uppers),
        };
        let form = Bitmaps { matching, source, destination, uppers };
        let form = Form::Bitmaps(Box::new(form));
        Ok(Some(Classifier { form, sets: Box::default(), cost }))
    }

    fn tuples(
        rules: &[Rule<A>],
        sets: Vec<Arc<dyn Members<A>>>,
    ) -> Result<Classifier<A>, BuildError> {
        let mut tuples = numbered_tuples(rules);
        let number_of: HashMap<(u8, u8), u16> = tuples
            .iter()
            .enumerate()
            .map(|(number, tuple)| (tuple.lengths, number as u16))
            .collect();
        let tuple_of = |rule: &Rule<A>| number_of[&(rule.source.len(), rule.destination.len())];
        let mut order: Vec<(Pair<A>, u32)> = rules
            .iter()
            .zip(0..)
            .map(|(rule, place)| {
                let (source, destination) = (rule.source.first(), rule.destination.first());
                (Pair { tuple: tuple_of(rule), source, destination }, place)
            })
            .collect();
        order.sort_unstable();
        let uppers: Vec<Upper> =
            order.iter().map(|(_, place)| Upper::of(&rules[*place as usize])).collect();
        let lists = listed(&order);
        let asked: Vec<RuleSets> =
            order.iter().map(|(_, place)| rules[*place as usize].sets).collect();
        let (pairs, longest) = hashed(&lists, &uppers, &asked, sets.len())?;

        let words = tuples.len().div_ceil(64);
        let side = |prefix: fn(&Rule<A>) -> Prefix<A>| -> Vec<(Prefix<A>, u16)> {
            rules.iter().map(|rule| (prefix(rule), tuple_of(rule))).collect()
        };
        let source = Classes::of(side(|rule| rule.source), words);
        let destination = Classes::of(side(|rule| rule.destination), words);
        for tuple in &mut tuples {
            tuple.masks = [tuple.lengths.0, tuple.lengths.1]
                .map(|length| mask_of(Prefix::new(A::ZERO, length)));
        }
        let (matching, resident) = matching(&source, &destination)?;
        let probes_max = source.bits.most().min(destination.bits.most());
        let (source, destination) = (source.bits.finish()?, destination.bits.finish()?);
        let cost = Cost {
            structure: Structure::Tuples,
            rules: rules.len(),
            tuples: tuples.len(),
            pairs: lists.len(),
            probes_max,
            buckets_max: pairs.searched,
            list_max: longest,
            steps_max: longest.div_ceil(LANES),
            changes: 0,
            bytes: resident + pairs.bytes() + source.bytes() + destination.bytes(),
        };
        let form = Tuples { matching, source, destination, tuples: tuples.into(), pairs };
        Ok(Classifier { form: Form::Tuples(Box::new(form)), sets: sets.into(), cost })
    }
}

/// The pairs of prefix lengths, in the order of their best rules.
fn numbered_tuples<A: Classified>(rules: &[Rule<A>]) -> Vec<Tuple<A>> {
    let mut seen = std::collections::HashSet::new();
    rules
        .iter()
        .map(|rule| ((rule.source.len(), rule.destination.len()), rule.number))
        .filter(|(lengths, _)| seen.insert(*lengths))
        .map(|(lengths, best)| Tuple { lengths, masks: [A::ZERO; 2], best })
        .collect()
}

fn listed<A: Classified>(order: &[(Pair<A>, u32)]) -> Vec<Listed<A>> {
    let mut start = 0;
    order
        .chunk_by(|(one, _), (next, _)| one == next)
        .map(|list| {
            let rules = start..start + list.len();
            start = rules.end;
            Listed { pair: list[0].0, rules }
        })
        .collect()
}

/// The table of pairs, and how many rules the longest list has.
fn hashed<A: Classified>(
    lists: &[Listed<A>],
    uppers: &[Upper],
    asked: &[RuleSets],
    sets: usize,
) -> Result<(Pairs<A>, usize), BuildError> {
    let longest = lists.iter().map(|list| list.rules.len()).max().unwrap_or(0);
    for doubling in 0..=DOUBLINGS_MAX {
        for _ in 0..SEEDS_TRIED {
            let mut pairs = Pairs::new(lists.len() << doubling, seed(), sets)?;
            let mut insert = |list: &Listed<A>| {
                let rules = list.rules.clone();
                pairs.insert(list.pair, &uppers[rules.clone()], &asked[rules])
            };
            if lists.iter().all(&mut insert) {
                return Ok((pairs, longest));
            }
        }
    }
    Err(BuildError::Crowded)
}

/// A number that nobody can guess.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8)
}

/// The sets of tuples of one side: those in which an address has a prefix of some rule.
struct Classes<A: Classified> {
    bits: ClassBitsInMaking,
    /// The prefixes in order whose addresses have another set than those of the prefix around, and
    /// their sets' numbers.
    routes: Vec<(Prefix<A>, u32)>,
}

impl<A: Classified> Classes<A> {
    fn of(mut prefixes: Vec<(Prefix<A>, u16)>, words: usize) -> Classes<A> {
        prefixes.sort_unstable();
        prefixes.dedup();
        let mut numbers: HashMap<Box<[u64]>, u32> = HashMap::new();
        let mut bits = ClassBitsInMaking::new(words);
        numbers.insert(bits.get(0).collect(), 0);
        let mut routes = Vec::new();
        // Prefixes around the present one, the shortest first, with their numbers.
        let mut around: Vec<(Prefix<A>, u32)> = Vec::new();
        for same in prefixes.chunk_by(|(one, _), (next, _)| one == next) {
            let prefix = same[0].0;
            while around.last().is_some_and(|(outer, _)| !outer.covers(prefix)) {
                around.pop();
            }
            let outer = around.last().map_or(0, |(_, number)| *number);
            let mut set: Box<[u64]> = bits.get(outer).collect();
            for (_, tuple) in same {
                set[usize::from(*tuple) / 64] |= 1 << (tuple % 64);
            }
            let number = match numbers.get(&set) {
                Some(number) => *number,
                None => {
                    let number = bits.push(&set);
                    numbers.insert(set, number);
                    number
                }
            };
            around.push((prefix, number));
            if number != outer {
                routes.push((prefix, number));
            }
        }
        Classes { bits, routes }
    }

    /// The same as intervals: the first address and the number of each.
    fn intervals(&self) -> Vec<(u32, u32)> {
        let mut sweep = Sweep { intervals: vec![(0, 0)], around: Vec::new() };
        for (prefix, number) in &self.routes {
            sweep.end_before(Some(*prefix));
            sweep.begin(prefix.first().top(), *number);
            sweep.around.push((*prefix, *number));
        }
        sweep.end_before(None);
        sweep.intervals
    }
}

/// Prefixes of IPv4 in order become intervals.
struct Sweep<A: Classified> {
    intervals: Vec<(u32, u32)>,
    /// The prefixes that have begun, the shortest first.
    around: Vec<(Prefix<A>, u32)>,
}

impl<A: Classified> Sweep<A> {
    fn begin(&mut self, start: u32, number: u32) {
        self.intervals.pop_if(|(last, _)| *last == start);
        self.intervals.push((start, number));
    }

    /// End the prefixes that the next one is not in. Behind each, the one around it goes on.
    fn end_before(&mut self, next: Option<Prefix<A>>) {
        let ends = |outer: Prefix<A>| next.is_none_or(|next| !outer.covers(next));
        while let Some((ended, _)) = self.around.pop_if(|(outer, _)| ends(*outer)) {
            let number = self.around.last().map_or(0, |(_, number)| *number);
            if let Some(behind) = ended.last().top().checked_add(1) {
                self.begin(behind, number);
            }
        }
    }
}

/// How the sets of both sides are found, and the memory that it takes.
fn matching<A: Classified>(
    source: &Classes<A>,
    destination: &Classes<A>,
) -> Result<(Matching<A>, usize), BuildError> {
    if A::BITS == u32::BITS {
        let table = |side: &Classes<A>| Intervals::new(&side.intervals());
        if let (Some(source), Some(destination)) = (table(source)?, table(destination)?) {
            let bytes = source.bytes() + destination.bytes();
            return Ok((Matching::Intervals([source, destination]), bytes));
        }
    }
    let epochs = Epochs::new(1); // nobody reads while it is built
    let mut writer = LpmWriter::<A>::new(&epochs, GroupId(0))?;
    for (table, side) in [(SOURCES, source), (DESTINATIONS, destination)] {
        let mut bulk = writer.bulk(table);
        for (prefix, number) in &side.routes {
            bulk.insert(*prefix, Route { group: GroupId(*number), note: 0 })?;
        }
        bulk.finish();
    }
    let lpm: Arc<LpmSpace<A>> = writer.space().clone();
    let roots = [SOURCES, DESTINATIONS].map(|side| lpm.table(side).big_root_bytes());
    let bytes = writer.usage().resident_bytes + roots.iter().sum::<usize>();
    Ok((Matching::Prefixes(lpm), bytes))
}
