//! What workers read: the compiled lists of each interface, in and out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_access_lists::{CUT, CompiledList};
use quiver_classifier::{BuildError, Classifier, Key, NONE, RULES_MAX, SETS_OF_RULE_MAX};
use quiver_core::cpu::Variant;
use quiver_core::graph::counters::{Count, INTERFACES_MAX};
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_core::{InterfaceId, WorkerId};
use quiver_forwarding::ip::{Ip4, Ip6};

use crate::compiling::{classifier, numbers};
use crate::fields::Filtered;
use crate::log::RuleLog;
use crate::named_set::NamedSet;
use crate::rules::{Action, Rule};
use crate::stateful::Sessions;

/// Found: no list looks at the packet.
pub(crate) const PASS: u32 = NONE - 3;
/// Found: the upper layer's header is cut off, and the lists look at it.
pub(crate) const BAD: u32 = NONE - 2;
/// Found: it belongs to a session.
pub(crate) const ESTABLISHED: u32 = NONE - 7;
/// What is found has this bit when the packet is dropped: numbers of rules are eight times their
/// place, and this or [`REFLECT`], and [`LOG`], more.
pub(crate) const DENY: u32 = quiver_access_lists::DENY;
/// What is found has this bit alone of the two when the packet makes a session.
pub(crate) const REFLECT: u32 = 2;
/// What is found has this bit when the rule logs.
pub(crate) const LOG: u32 = 4;
/// The place of a rule stands above these bits of its number.
pub(crate) const PLACE_SHIFT: u32 = 3;
/// Numbers of rules are smaller.
pub(crate) const NUMBERS_END: u32 = ESTABLISHED;
/// [`Key::owner`] of packets that no list looks at.
pub(crate) const NOBODY: u32 = u32::MAX;

/// In or out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl Direction {
    pub const ALL: [Direction; 2] = [Direction::Input, Direction::Output];

    pub const fn word(self) -> &'static str {
        match self {
            Direction::Input => "input",
            Direction::Output => "output",
        }
    }
}

/// Packets and bytes of each rule, by worker.
pub(crate) struct Counts(Box<[Box<[[Count; 2]]>]>);

impl Counts {
    fn new(rules: usize, workers: usize) -> Counts {
        let of_worker = |_| (0..rules).map(|_| Default::default()).collect();
        Counts((0..workers.max(1)).map(of_worker).collect())
    }

    #[inline(always)]
    fn add(&self, worker: WorkerId, rule: u32, packets: u64, bytes: u64) {
        let of_worker = &self.0[worker.index() % self.0.len()];
        if let Some([of_packets, of_bytes]) = of_worker.get(rule as usize) {
            of_packets.add(packets);
            of_bytes.add(bytes);
        }
    }

    /// Packets and bytes of a rule.
    pub fn sums(&self, rule: usize) -> [u64; 2] {
        let of = |worker: &[[Count; 2]], what: usize| worker.get(rule).map_or(0, |c| c[what].get());
        [0, 1].map(|what| self.0.iter().map(|worker| of(worker, what)).sum())
    }
}

/// An access list. It never changes: another one takes its place.
pub(crate) struct Acl {
    /// Its number.
    pub index: u32,
    pub tag: String,
    pub rules: Vec<Rule>,
    /// The sets that rules ask.
    pub sets: Vec<Arc<NamedSet>>,
    pub counts: OnceLock<Counts>,
    /// The rules that log, by place.
    logs: Vec<(u32, RuleLog)>,
}

impl Acl {
    /// A list whose rules ask the sets that `named` knows. The error is a sentence.
    pub fn new(
        index: u32,
        tag: String,
        rules: Vec<Rule>,
        named: impl Fn(&str) -> Option<Arc<NamedSet>>,
    ) -> Result<Acl, String> {
        let mut sets: BTreeMap<&str, Arc<NamedSet>> = BTreeMap::new();
        for (rule, place) in rules.iter().zip(0..) {
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
                sets.insert(name, set);
            }
        }
        let sets = sets.into_values().collect();
        let logs = rules.iter().zip(0..).filter(|(rule, _)| rule.logs);
        let logs = logs.map(|(_, place)| (place, RuleLog::default())).collect();
        Ok(Acl { index, tag, rules, sets, counts: OnceLock::new(), logs })
    }

    /// The log of the rule at a place, if it logs.
    pub fn log_of(&self, place: u32) -> Option<&RuleLog> {
        let at = self.logs.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        self.logs.get(at).map(|(_, log)| log)
    }

    pub fn set(&self, name: &str) -> Option<&Arc<NamedSet>> {
        self.sets.iter().find(|set| set.name == name)
    }

    /// Count from now on.
    pub fn begin_counting(&self, workers: usize) {
        self.counts.get_or_init(|| Counts::new(self.rules.len(), workers));
    }
}

/// The lists of an interface and direction, in order, as one.
pub(crate) struct Compiled {
    pub ip4: Classifier<u32>,
    pub ip6: Classifier<u128>,
    pub lists: Vec<Arc<Acl>>,
    /// The place of each list's first rule.
    starts: Vec<u32>,
    pub looks_at_upper: bool,
    /// Does a rule make sessions?
    pub reflects: bool,
}

/// Why lists are not compiled.
#[derive(Debug)]
pub(crate) enum NotCompiled {
    TooMany(usize),
    Build(BuildError),
}

impl Compiled {
    /// Compile lists, the first one first. It may run on any thread.
    pub fn new(lists: Vec<Arc<Acl>>) -> Result<Compiled, NotCompiled> {
        let count = lists.iter().map(|list| list.rules.len()).sum();
        if count > RULES_MAX {
            return Err(NotCompiled::TooMany(count));
        }
        let mut starts = Vec::with_capacity(lists.len());
        let mut start = 0;
        for list in &lists {
            starts.push(start);
            start += list.rules.len() as u32;
        }
        let rules =
            || lists.iter().flat_map(|list| list.rules.iter().map(move |rule| (&**list, rule)));
        let mut queries = Vec::new();
        let sets: Vec<[u16; SETS_OF_RULE_MAX]> = match lists.iter().all(|list| list.sets.is_empty())
        {
            true => Vec::new(),
            false => rules().map(|(list, rule)| numbers(&mut queries, list, rule)).collect(),
        };
        let reflects = rules().any(|(_, rule)| rule.action == Action::Reflect);
        Ok(Compiled {
            ip4: classifier(rules(), &sets, &queries)?,
            ip6: classifier(rules(), &sets, &queries)?,
            looks_at_upper: reflects || rules().any(|(_, rule)| rule.looks_at_upper()),
            reflects,
            starts,
            lists,
        })
    }

    /// Is it made of these lists?
    pub fn is_of(&self, lists: &[Arc<Acl>]) -> bool {
        self.lists.len() == lists.len()
            && self.lists.iter().zip(lists).all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// The list and the rule in it that was found.
    #[inline(always)]
    pub fn rule(&self, found: u32) -> Option<(&Acl, u32)> {
        let place = found >> PLACE_SHIFT;
        let list = self.starts.iter().rposition(|start| *start <= place)?;
        Some((self.lists.get(list)?, place - self.starts[list]))
    }

    /// What the rules say of packets.
    #[inline(always)]
    fn ask<F: Part>(
        &self,
        variant: Variant,
        is_uniform: bool,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        let classifier = F::classifier(self);
        match is_uniform {
            true => classifier.find_uniform(variant, keys, found),
            false => classifier.find(variant, keys, found),
        }
        if self.looks_at_upper {
            for (key, found) in keys.iter().zip(found.iter_mut()) {
                *found = if key.fields & CUT != 0 { BAD } else { *found };
            }
        }
    }

    #[inline(never)]
    fn count<A>(&self, worker: WorkerId, keys: &[Key<A>], found: &[u32]) {
        let is_rule = |found: u32| found < NUMBERS_END;
        let all =
            keys.iter().zip(found).filter(|(key, found)| is_rule(**found) & (key.length != 0));
        for (key, found) in all {
            if let Some((acl, rule)) = self.rule(*found)
                && let Some(counts) = acl.counts.get()
            {
                counts.add(worker, rule, 1, key.length.into());
            }
        }
    }
}

/// As policies and policers ask it: without sessions, log and counts.
impl CompiledList for Compiled {
    fn find_ip4(&self, variant: Variant, is_uniform: bool, keys: &[Key<u32>], found: &mut [u32]) {
        self.ask::<Ip4>(variant, is_uniform, keys, found);
    }

    fn find_ip6(&self, variant: Variant, is_uniform: bool, keys: &[Key<u128>], found: &mut [u32]) {
        self.ask::<Ip6>(variant, is_uniform, keys, found);
    }
}

/// A family's part of a [`Compiled`].
pub(crate) trait Part: Filtered {
    fn classifier(compiled: &Compiled) -> &Classifier<Self::Address>;
}

impl Part for Ip4 {
    #[inline(always)]
    fn classifier(compiled: &Compiled) -> &Classifier<u32> {
        &compiled.ip4
    }
}

impl Part for Ip6 {
    #[inline(always)]
    fn classifier(compiled: &Compiled) -> &Classifier<u128> {
        &compiled.ip6
    }
}

/// How a vector's keys are searched for.
#[derive(Clone, Copy)]
pub(crate) struct Search {
    pub variant: Variant,
    pub worker: WorkerId,
    /// Are neighbours likely to be the same?
    pub is_uniform: bool,
    /// Seconds of the router's clock.
    pub now_s: u32,
}

/// By interface, replaced one by one.
pub(crate) struct Attached {
    input: PublishedSlots<Arc<Compiled>>,
    output: PublishedSlots<Arc<Compiled>>,
    /// Interfaces whose packets leave without a link layer.
    bare: Box<[AtomicBool]>,
    /// Do rules that look at ports match fragments after the first?
    matches_later_fragments: AtomicBool,
    counts: AtomicBool,
    /// Records of a rule with `log` in a second at most; 0 where nothing is logged.
    log_rate: AtomicU32,
    pub sessions: Sessions,
}

impl Attached {
    /// No list anywhere.
    pub fn new(epochs: &Arc<Epochs>) -> Attached {
        Attached {
            input: PublishedSlots::new(epochs, INTERFACES_MAX),
            output: PublishedSlots::new(epochs, INTERFACES_MAX),
            bare: (0..INTERFACES_MAX).map(|_| AtomicBool::new(false)).collect(),
            matches_later_fragments: AtomicBool::new(true),
            counts: AtomicBool::new(false),
            log_rate: AtomicU32::new(0),
            sessions: Sessions::new(),
        }
    }

    #[inline(always)]
    fn slots(&self, direction: Direction) -> &PublishedSlots<Arc<Compiled>> {
        match direction {
            Direction::Input => &self.input,
            Direction::Output => &self.output,
        }
    }

    /// Let lists filter what an interface receives or sends, or none.
    pub fn publish(&self, on: InterfaceId, direction: Direction, lists: Option<Arc<Compiled>>) {
        self.slots(direction).publish(on.index(), lists);
    }

    /// Say whether what leaves by an interface begins with the IP header.
    pub fn set_bare(&self, on: InterfaceId, is_bare: bool) {
        if let Some(bare) = self.bare.get(on.index()) {
            bare.store(is_bare, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    pub fn is_bare(&self, on: InterfaceId) -> bool {
        self.bare.get(on.index()).is_some_and(|bare| bare.load(Ordering::Relaxed))
    }

    pub fn matches_later_fragments(&self) -> bool {
        self.matches_later_fragments.load(Ordering::Relaxed)
    }

    pub fn match_later_fragments(&self, matches: bool) {
        self.matches_later_fragments.store(matches, Ordering::Relaxed);
    }

    pub fn is_counting(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    pub fn set_counting(&self, counts: bool) {
        self.counts.store(counts, Ordering::Relaxed);
    }

    #[inline(always)]
    pub fn log_rate(&self) -> u32 {
        self.log_rate.load(Ordering::Relaxed)
    }

    pub fn set_log_rate(&self, rate: u32) {
        self.log_rate.store(rate, Ordering::Relaxed);
    }

    /// What the lists of `direction` say of packets, each of the interface in its key.
    #[inline(always)]
    pub fn find<F: Part>(
        &self,
        direction: Direction,
        search: Search,
        pass: Pass<'_>,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        let (mut keys, mut found) = (keys, found);
        while let Some(owner) = keys.first().map(|key| key.owner) {
            let count = keys.iter().take_while(|key| key.owner == owner).count();
            let (now, later) = keys.split_at(count);
            let (answers, rest) = found.split_at_mut(count.min(found.len()));
            // The epoch first: with a new one, the lists are new, too.
            let epoch = self.sessions.epoch(owner);
            let lists = self.lists(direction, owner, pass);
            if epoch != 0 {
                self.find_stateful::<F>(lists, epoch, search, pass, now, answers);
            } else {
                self.find_in_lists::<F>(lists, search, now, answers);
            }
            (keys, found) = (later, rest);
        }
    }

    /// What filters an interface and direction.
    #[inline(always)]
    pub fn lists<'p>(
        &self,
        direction: Direction,
        interface: u32,
        pass: Pass<'p>,
    ) -> Option<&'p Compiled> {
        self.slots(direction).read(interface as usize, pass).map(|lists| &**lists)
    }

    /// What lists say of packets; all pass where there are none.
    #[inline(always)]
    pub fn find_in_lists<F: Part>(
        &self,
        lists: Option<&Compiled>,
        search: Search,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        match lists {
            Some(lists) => self.find_in::<F>(lists, search, keys, found),
            None => found.fill(PASS),
        }
    }

    #[inline(always)]
    fn find_in<F: Part>(
        &self,
        compiled: &Compiled,
        search: Search,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        compiled.ask::<F>(search.variant, search.is_uniform, keys, found);
        if self.is_counting() {
            compiled.count(search.worker, keys, found);
        }
    }
}
