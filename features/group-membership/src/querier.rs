//! The router's side of IGMP and MLD on one link, for one family: which groups and sources hosts of
//! the link listen to, and the queries that keep that true (RFC 3376 §6, RFC 3810 §7; beside older
//! hosts RFC 3376 §7.3, RFC 3810 §8.3). Knows no packet, and no clock but what it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::group::{Ask, Group, Wanted};
use crate::port::{Query, Version};

const MS_NS: u64 = 1_000_000;
/// Groups of one link that are remembered at most.
pub const GROUPS_MAX: usize = 4096;

/// Timers of a querier (RFC 3376 §8, RFC 3810 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// The version of its queries.
    pub version: Version,
    /// How many lost packets a link may have in a row, plus one.
    pub robustness: u8,
    /// Between general queries, seconds.
    pub query_interval_s: u32,
    /// The longest time for an answer to them, milliseconds.
    pub response_ms: u32,
    /// The longest time for an answer when a host has left, milliseconds.
    pub last_member_ms: u32,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            version: Version::Three,
            robustness: 2,
            query_interval_s: 125,
            response_ms: 10_000,
            last_member_ms: 1000,
        }
    }
}

impl Timers {
    /// Without a report for so long, nobody listens (RFC 3376 §8.4); an older host counts as
    /// present as long (§8.13).
    pub fn membership_ns(&self) -> u64 {
        u64::from(self.robustness) * self.interval_ns() + u64::from(self.response_ms) * MS_NS
    }

    /// Without a query for so long, the other querier is gone (§8.5).
    pub fn other_querier_ns(&self) -> u64 {
        u64::from(self.robustness) * self.interval_ns() + u64::from(self.response_ms) * MS_NS / 2
    }

    /// So long hosts have to answer when somebody has left (§8.10).
    pub fn last_member_ns(&self) -> u64 {
        u64::from(self.robustness) * self.ask_again_ns()
    }

    /// Between repetitions of a query for a group (§8.8).
    pub fn ask_again_ns(&self) -> u64 {
        u64::from(self.last_member_ms) * MS_NS
    }

    fn interval_ns(&self) -> u64 {
        u64::from(self.query_interval_s) * 1000 * MS_NS
    }
}

/// A query to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The version.
    pub version: Version,
    /// The group; `None` asks for all.
    pub group: Option<IpAddr>,
    /// The sources; none: the group as a whole.
    pub sources: Vec<IpAddr>,
    /// The S flag: other routers keep their timers.
    pub suppress: bool,
    /// The longest time for an answer, milliseconds.
    pub response_ms: u32,
    /// Robustness as it is told.
    pub robustness: u8,
    /// Seconds between general queries, as told.
    pub interval_s: u32,
}

/// The router's side of one link, one family.
#[derive(Clone, Debug)]
pub struct Querier {
    /// As the operator wants them.
    configured: Timers,
    /// As they are: another querier's, while there is one.
    pub timers: Timers,
    groups: BTreeMap<IpAddr, Group>,
    /// When each group wants to be looked at.
    due: BTreeSet<(u64, IpAddr)>,
    /// The next general query, while this router asks.
    general_ns: u64,
    /// General queries that still come soon after the start (RFC 3376 §8.7).
    start_left: u8,
    /// Another router with a lower address asks, until then.
    other: Option<(IpAddr, u64)>,
    /// Groups whose listeners have changed since somebody asked.
    changed: BTreeSet<IpAddr>,
    /// Groups and sources that there was no room for.
    pub refused: u64,
}

impl Querier {
    /// Begins to ask now.
    pub fn new(timers: Timers, now_ns: u64) -> Querier {
        Querier {
            configured: timers,
            timers,
            groups: BTreeMap::new(),
            due: BTreeSet::new(),
            general_ns: now_ns,
            start_left: timers.robustness,
            other: None,
            changed: BTreeSet::new(),
            refused: 0,
        }
    }

    /// Other timers hold from now on.
    pub fn configure(&mut self, timers: Timers, now_ns: u64) {
        (self.configured, self.timers) = (timers, timers);
        (self.general_ns, self.start_left) = (now_ns, timers.robustness);
    }

    /// Who asks on the link, if it is not this router.
    pub fn other_querier(&self) -> Option<IpAddr> {
        self.other.map(|(address, _)| address)
    }

    /// When something is to be done.
    pub fn due_ns(&self) -> u64 {
        let asks_ns = self.other.map_or(self.general_ns, |(_, until_ns)| until_ns);
        self.due.first().map_or(asks_ns, |(at_ns, _)| asks_ns.min(*at_ns))
    }

    /// All groups with what is wanted of each, and when it ends if nobody reports.
    pub fn groups(&self) -> impl Iterator<Item = (IpAddr, Wanted, u64)> + '_ {
        self.groups.iter().map(|(group, state)| (*group, state.wanted(), state.ends_ns()))
    }

    /// What hosts of the link want of a group.
    pub fn wanted(&self, group: IpAddr) -> Option<Wanted> {
        self.groups.get(&group).map(Group::wanted)
    }

    /// Groups whose listeners have changed since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<IpAddr> {
        std::mem::take(&mut self.changed)
    }

    /// Forget all groups.
    pub fn clear(&mut self) {
        self.changed.extend(self.groups.keys());
        self.groups.clear();
        self.due.clear();
    }

    /// Change a group, and see to what follows.
    fn change(&mut self, group: IpAddr, change: impl FnOnce(&mut Group)) {
        let mut state = self.groups.remove(&group).unwrap_or_default();
        self.due.remove(&(state.due_ns(), group));
        let before = state.wanted();
        change(&mut state);
        if state.wanted() != before {
            self.changed.insert(group);
        }
        if !state.is_empty() {
            self.due.insert((state.due_ns(), group));
            self.groups.insert(group, state);
        }
    }

    /// A host reports a record (RFC 3376 §6.4).
    pub fn record(&mut self, kind: u8, group: IpAddr, sources: &BTreeSet<IpAddr>, now_ns: u64) {
        if self.groups.len() >= GROUPS_MAX && !self.groups.contains_key(&group) {
            self.refused += 1;
            return;
        }
        let (timers, asks) = (self.timers, self.other.is_none());
        let mut refused = 0;
        self.change(group, |state| {
            let mut ask = state.hear(kind, sources, now_ns, &timers, &mut refused);
            if timers.version != Version::Three {
                ask.sources.clear(); // an older query cannot name them; they end by their timers
            }
            if asks {
                state.ask(&ask, now_ns, &timers);
            }
        });
        self.refused += refused;
    }

    /// A host of an older version reports a group (RFC 3376 §7.3.2).
    pub fn old_report(&mut self, version: Version, group: IpAddr, now_ns: u64) {
        self.record(quiver_wire::igmp::record::IS_EXCLUDE, group, &BTreeSet::new(), now_ns);
        let until_ns = now_ns + self.timers.membership_ns();
        if self.groups.contains_key(&group) {
            self.change(group, |state| state.older_host(version, until_ns));
        }
    }

    /// A host of version 2 leaves a group.
    pub fn leave(&mut self, group: IpAddr, now_ns: u64) {
        if self.groups.contains_key(&group) {
            self.record(quiver_wire::igmp::record::TO_INCLUDE, group, &BTreeSet::new(), now_ns);
        }
    }

    /// Another router asks (RFC 3376 §6.6.1, §6.6.2). `own` is this router's address on the link.
    pub fn heard_query(
        &mut self,
        from: IpAddr,
        own: IpAddr,
        query: &Query,
        suppress: bool,
        now_ns: u64,
    ) {
        if from < own {
            if query.version == Version::Three && query.robustness > 0 {
                self.timers.robustness = query.robustness;
            }
            if query.version == Version::Three && query.interval_s > 0 {
                self.timers.query_interval_s = query.interval_s;
            }
            self.other = Some((from, now_ns + self.timers.other_querier_ns()));
        }
        let Some(group) = query.group.filter(|group| !suppress && self.groups.contains_key(group))
        else {
            return;
        };
        let asked = Ask {
            group: query.sources.is_empty(),
            sources: query.sources.iter().copied().collect(),
        };
        let timers = self.timers;
        self.change(group, |state| state.lower(&asked, now_ns, &timers));
    }

    /// The queries that are due; timers that have run out are seen to.
    pub fn due(&mut self, now_ns: u64) -> Vec<Question> {
        let mut out = Vec::new();
        if self.other.is_some_and(|(_, until_ns)| until_ns <= now_ns) {
            self.other = None;
            (self.timers, self.general_ns) = (self.configured, now_ns);
        }
        if self.other.is_none() && self.general_ns <= now_ns {
            let Timers { version, response_ms, .. } = self.timers;
            out.push(self.question(version, None, Vec::new(), false, response_ms));
            let interval_ns = self.timers.interval_ns();
            self.start_left = self.start_left.saturating_sub(1);
            self.general_ns =
                now_ns + if self.start_left > 0 { interval_ns / 4 } else { interval_ns };
        }
        while let Some((_, group)) = self.due.first().copied().filter(|(at_ns, _)| *at_ns <= now_ns)
        {
            let (timers, asks) = (self.timers, self.other.is_none());
            let mut asked = Vec::new();
            self.change(group, |state| {
                state.expire(now_ns);
                asked = state.due_questions(now_ns, &timers);
            });
            for (sources, suppress) in asked.into_iter().filter(|_| asks) {
                let Timers { version, last_member_ms, .. } = timers;
                out.push(self.question(version, Some(group), sources, suppress, last_member_ms));
            }
        }
        out
    }

    fn question(
        &self,
        version: Version,
        group: Option<IpAddr>,
        sources: Vec<IpAddr>,
        suppress: bool,
        response_ms: u32,
    ) -> Question {
        let Timers { robustness, query_interval_s, .. } = self.timers;
        Question {
            version,
            group,
            sources,
            suppress,
            response_ms,
            robustness,
            interval_s: query_interval_s,
        }
    }
}

#[cfg(test)]
#[path = "querier_tests.rs"]
mod tests;
