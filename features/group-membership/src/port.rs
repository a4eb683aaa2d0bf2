//! What one interface tells the routers of one family about its groups: the host side of RFC 3376
//! §5 and RFC 3810 §6, and of the older versions as long as a router speaks one of them (RFC 3376
//! §7, RFC 3810 §8). Knows no packet and no clock but what it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_core::jitter::Jitter;
use quiver_wire::igmp::record;

const SECOND_NS: u64 = 1_000_000_000;
/// How often a change is told, until a router says something else (RFC 3376 §8.1).
pub const ROBUSTNESS: u8 = 2;
/// Time between queries, until a router says something else, seconds (RFC 3376 §8.2).
pub const QUERY_INTERVAL_S: u32 = 125;
/// Between repetitions of a change at most (RFC 3376 §8.11).
pub const REPEAT_NS_MAX: u64 = SECOND_NS;
/// The same in the older versions (RFC 2236 §8.10, RFC 2710 §7.10).
pub const OLD_REPEAT_NS_MAX: u64 = 10 * SECOND_NS;
/// Answers to queries for single groups that wait at most.
pub const ANSWERS_MAX: usize = 1024;

/// Which packets to a group are listened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Those of every source.
    Any,
    /// Those of these sources.
    Only(BTreeSet<IpAddr>),
}

impl Filter {
    /// What both together listen to.
    pub fn with(&self, other: &Filter) -> Filter {
        match (self, other) {
            (Filter::Only(these), Filter::Only(those)) => {
                Filter::Only(these.union(those).copied().collect())
            }
            _ => Filter::Any,
        }
    }
}

/// The newest version that all routers on the link speak: of IGMP; MLD's are 2 and 3, one more than
/// they are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 1112.
    One,
    /// RFC 2236, and RFC 2710.
    Two,
    /// RFC 3376, and RFC 3810.
    Three,
}

/// A record of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// One of [`record`].
    pub kind: u8,
    /// The group.
    pub group: IpAddr,
    /// The sources.
    pub sources: Vec<IpAddr>,
}

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// A report of the newest version.
    Records(Vec<Record>),
    /// A report of an older version.
    Report(Version, IpAddr),
    /// A group is left, in version 2.
    Leave(IpAddr),
}

/// What a router asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The version that it speaks.
    pub version: Version,
    /// The group; `None` for all.
    pub group: Option<IpAddr>,
    /// The sources asked for; none: the group as a whole.
    pub sources: Vec<IpAddr>,
    /// The longest time for an answer, milliseconds.
    pub response_ms: u32,
    /// How often changes are told; 0: not said.
    pub robustness: u8,
    /// Seconds between queries; 0: not said.
    pub interval_s: u32,
}

/// A change that is being told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Change {
    left: u8,
    /// Between "these sources" and "all": the state is told, not the difference.
    of_mode: bool,
    allow: BTreeSet<IpAddr>,
    block: BTreeSet<IpAddr>,
}

/// An answer that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    at_ns: u64,
    /// The sources asked for; none: the group as a whole.
    sources: BTreeSet<IpAddr>,
}

/// One family on one interface.
#[derive(Clone, Debug)]
pub struct Port {
    /// What is listened to.
    pub groups: BTreeMap<IpAddr, Filter>,
    /// As the last query of the newest version said.
    pub robustness: u8,
    /// As the last query of the newest version said, seconds.
    pub interval_s: u32,
    /// Until when a router of version 1, and of version 2, counts as present.
    old_until_ns: [u64; 2],
    changes: BTreeMap<IpAddr, Change>,
    repeat_ns: Option<u64>,
    general_ns: Option<u64>,
    answers: BTreeMap<IpAddr, Answer>,
}

impl Default for Port {
    fn default() -> Port {
        Port {
            groups: BTreeMap::new(),
            robustness: ROBUSTNESS,
            interval_s: QUERY_INTERVAL_S,
            old_until_ns: [0; 2],
            changes: BTreeMap::new(),
            repeat_ns: None,
            general_ns: None,
            answers: BTreeMap::new(),
        }
    }
}

fn sources_of(filter: Option<&Filter>) -> BTreeSet<IpAddr> {
    match filter {
        Some(Filter::Only(sources)) => sources.clone(),
        Some(Filter::Any) | None => BTreeSet::new(),
    }
}

impl Port {
    /// The version to speak now.
    pub fn version(&self, now_ns: u64) -> Version {
        let present = self.old_until_ns.map(|until| now_ns < until);
        match present {
            [true, _] => Version::One,
            [_, true] => Version::Two,
            _ => Version::Three,
        }
    }

    /// When something is to be said.
    pub fn due_ns(&self) -> Option<u64> {
        let answers = self.answers.values().map(|answer| answer.at_ns);
        answers.chain(self.repeat_ns).chain(self.general_ns).min()
    }

    /// Listen to these groups from now on; what differs is told at once, and again.
    pub fn set(&mut self, wanted: BTreeMap<IpAddr, Filter>, now_ns: u64) {
        let all: BTreeSet<IpAddr> = self.groups.keys().chain(wanted.keys()).copied().collect();
        for group in all {
            let (old, new) = (self.groups.get(&group), wanted.get(&group));
            if old == new {
                continue;
            }
            let is_any = |filter: Option<&Filter>| filter == Some(&Filter::Any);
            let change = self.changes.entry(group).or_default();
            change.left = self.robustness.max(1);
            if is_any(old) != is_any(new) {
                change.of_mode = true;
                (change.allow, change.block) = (BTreeSet::new(), BTreeSet::new());
            } else if !change.of_mode {
                let (before, after) = (sources_of(old), sources_of(new));
                for source in after.difference(&before) {
                    change.block.remove(source);
                    change.allow.insert(*source);
                }
                for source in before.difference(&after) {
                    change.allow.remove(source);
                    change.block.insert(*source);
                }
            }
            if new.is_none() {
                self.answers.remove(&group);
            }
            self.repeat_ns = Some(now_ns);
        }
        self.groups = wanted;
    }

    /// The link is there again, or the address of reports is another one: everything is told anew.
    pub fn report_all(&mut self, now_ns: u64) {
        let groups = std::mem::take(&mut self.groups);
        *self = Port::default();
        self.set(groups, now_ns);
    }

    /// A router asks (RFC 3376 §5.2, RFC 3810 §6.2).
    pub fn query_received(&mut self, query: &Query, now_ns: u64, jitter: &mut Jitter) {
        self.follow_version(query, now_ns);
        let at_ns = now_ns + jitter.between(0, u64::from(query.response_ms) * 1_000_000);
        if self.general_ns.is_some_and(|general| general <= at_ns) {
            return;
        }
        match query.group {
            None if self.version(now_ns) == Version::Three => self.general_ns = Some(at_ns),
            None => {
                let most = u64::from(query.response_ms) * 1_000_000;
                let groups: Vec<_> = self.groups.keys().copied().collect();
                for group in groups {
                    self.answer(group, now_ns + jitter.between(0, most), &[]);
                }
            }
            Some(group) => self.answer(group, at_ns, &query.sources),
        }
    }

    /// Answer for one group, not later than a former answer to it (RFC 3376 §5.2, rules 3 to 5).
    fn answer(&mut self, group: IpAddr, at_ns: u64, sources: &[IpAddr]) {
        if !self.groups.contains_key(&group) {
            return;
        }
        let has_room = self.answers.len() < ANSWERS_MAX;
        match self.answers.get_mut(&group) {
            Some(waiting) => {
                waiting.at_ns = waiting.at_ns.min(at_ns);
                if sources.is_empty() {
                    waiting.sources.clear();
                } else if !waiting.sources.is_empty() {
                    waiting.sources.extend(sources);
                }
            }
            None if has_room => {
                self.answers
                    .insert(group, Answer { at_ns, sources: sources.iter().copied().collect() });
            }
            None => {}
        }
    }

    /// Speak the version of the oldest router (RFC 3376 §7.2.1, RFC 3810 §8.2.1), and take its
    /// numbers over.
    fn follow_version(&mut self, query: &Query, now_ns: u64) {
        let before = self.version(now_ns);
        let present_ns = u64::from(self.robustness) * u64::from(self.interval_s) * SECOND_NS
            + u64::from(query.response_ms) * 1_000_000;
        match query.version {
            Version::One => self.old_until_ns[0] = now_ns + present_ns,
            Version::Two => self.old_until_ns[1] = now_ns + present_ns,
            Version::Three => {
                // RFC 3376 §4.1.6, §4.1.7: zero is no value.
                self.robustness = if query.robustness == 0 { ROBUSTNESS } else { query.robustness };
                self.interval_s =
                    if query.interval_s == 0 { QUERY_INTERVAL_S } else { query.interval_s };
            }
        }
        if self.version(now_ns) != before {
            (self.general_ns, self.repeat_ns) = (None, None);
            self.answers.clear();
            self.changes.clear();
        }
    }

    /// Somebody else reports a group: one report is enough in the older versions (RFC 2236 §3, RFC
    /// 2710 §4).
    pub fn heard_report(&mut self, group: IpAddr, now_ns: u64) {
        if self.version(now_ns) != Version::Three {
            self.answers.remove(&group);
        }
    }

    /// What is to be said now.
    pub fn due(&mut self, now_ns: u64, jitter: &mut Jitter) -> Vec<Say> {
        let version = self.version(now_ns);
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now_ns);
        let mut out = Vec::new();
        if is_due(self.repeat_ns) {
            self.report_changes(version, &mut out);
            let most = if version == Version::Three { REPEAT_NS_MAX } else { OLD_REPEAT_NS_MAX };
            let next = now_ns + jitter.between(1, most);
            self.repeat_ns = (!self.changes.is_empty()).then_some(next);
        }
        if is_due(self.general_ns) {
            self.general_ns = None;
            let records: Vec<_> =
                self.groups.keys().map(|group| self.current(*group, &BTreeSet::new())).collect();
            if !records.is_empty() {
                out.push(Say::Records(records.into_iter().flatten().collect()));
            }
        }
        let due: Vec<IpAddr> = self
            .answers
            .iter()
            .filter(|(_, answer)| answer.at_ns <= now_ns)
            .map(|(group, _)| *group)
            .collect();
        let mut records = Vec::new();
        for group in due {
            let Some(answer) = self.answers.remove(&group) else { continue };
            match version {
                Version::Three => records.extend(self.current(group, &answer.sources)),
                old => out.push(Say::Report(old, group)),
            }
        }
        if !records.is_empty() {
            out.push(Say::Records(records));
        }
        out
    }

    /// The state of a group, or of the sources asked for (RFC 3376 §5.2).
    fn current(&self, group: IpAddr, asked: &BTreeSet<IpAddr>) -> Option<Record> {
        let (kind, sources) = match self.groups.get(&group)? {
            Filter::Any if asked.is_empty() => (record::IS_EXCLUDE, Vec::new()),
            Filter::Any => (record::IS_INCLUDE, asked.iter().copied().collect()),
            Filter::Only(own) if asked.is_empty() => {
                (record::IS_INCLUDE, own.iter().copied().collect())
            }
            Filter::Only(own) => {
                (record::IS_INCLUDE, own.intersection(asked).copied().collect::<Vec<_>>())
            }
        };
        let says_nothing = kind == record::IS_INCLUDE && sources.is_empty();
        (!says_nothing).then_some(Record { kind, group, sources })
    }

    fn report_changes(&mut self, version: Version, out: &mut Vec<Say>) {
        let mut records = Vec::new();
        for (group, change) in &mut self.changes {
            let (group, filter) = (*group, self.groups.get(group));
            change.left = change.left.saturating_sub(1);
            if version != Version::Three {
                match filter {
                    Some(_) => out.push(Say::Report(version, group)),
                    None => {
                        // RFC 2236 §3, RFC 1112: once, and in version 1 in silence.
                        change.left = 0;
                        out.extend((version == Version::Two).then_some(Say::Leave(group)));
                    }
                }
                continue;
            }
            let list = |sources: &BTreeSet<IpAddr>| sources.iter().copied().collect::<Vec<_>>();
            match filter {
                Some(Filter::Any) if change.of_mode => {
                    records.push(Record { kind: record::TO_EXCLUDE, group, sources: Vec::new() });
                }
                filter if change.of_mode => {
                    let sources = list(&sources_of(filter));
                    records.push(Record { kind: record::TO_INCLUDE, group, sources });
                }
                _ => {
                    let parts = [(record::ALLOW, &change.allow), (record::BLOCK, &change.block)];
                    let parts = parts.into_iter().filter(|(_, sources)| !sources.is_empty());
                    records.extend(parts.map(|(kind, sources)| Record {
                        kind,
                        group,
                        sources: list(sources),
                    }));
                }
            }
        }
        self.changes.retain(|_, change| change.left > 0);
        if !records.is_empty() {
            out.push(Say::Records(records));
        }
    }
}

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;
