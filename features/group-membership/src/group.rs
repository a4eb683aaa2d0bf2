//! What hosts of one link want of one group: the filter mode, the sources and their timers (RFC
//! 3376 §6.2 to §6.4, RFC 3810 §7.2 to §7.4).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_wire::igmp::record;

use crate::port::Version;
use crate::querier::Timers;

/// Sources of one group that are remembered at most, those that are wanted and those that are not.
pub const SOURCES_MAX: usize = 64;

/// What hosts of a link want of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Packets of these sources; of none: nobody listens.
    Only(BTreeSet<IpAddr>),
    /// Packets of all sources but these.
    AllBut(BTreeSet<IpAddr>),
}

impl Wanted {
    /// Does anybody want packets of this source?
    pub fn wants(&self, source: IpAddr) -> bool {
        match self {
            Wanted::Only(sources) => sources.contains(&source),
            Wanted::AllBut(sources) => !sources.contains(&source),
        }
    }
}

/// Whether somebody still listens is to be asked: for the group, for sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// For the group as a whole.
    pub group: bool,
    /// For these sources of it.
    pub sources: BTreeSet<IpAddr>,
}

/// The state of a group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The group timer: somebody wants all sources until then. `None`: only those in `sources` are
    /// wanted.
    all_until_ns: Option<u64>,
    /// Wanted sources with their timers.
    sources: BTreeMap<IpAddr, u64>,
    /// Sources that nobody wants, while all others are wanted.
    excluded: BTreeSet<IpAddr>,
    /// Until when a host of version 1, and of version 2, counts as present.
    old_until_ns: [u64; 2],
    /// Queries for the group that are still to be sent, and for sources.
    asks_left: u8,
    source_asks_left: BTreeMap<IpAddr, u8>,
    /// When the next of them is.
    ask_ns: Option<u64>,
}

impl Group {
    /// Does nobody listen?
    pub fn is_empty(&self) -> bool {
        self.all_until_ns.is_none() && self.sources.is_empty()
    }

    /// What is wanted.
    pub fn wanted(&self) -> Wanted {
        match self.all_until_ns {
            Some(_) => Wanted::AllBut(self.excluded.clone()),
            None => Wanted::Only(self.sources.keys().copied().collect()),
        }
    }

    /// When nobody listens any more, unless somebody reports.
    pub fn ends_ns(&self) -> u64 {
        self.sources.values().copied().chain(self.all_until_ns).max().unwrap_or(0)
    }

    /// When it is to be looked at.
    pub fn due_ns(&self) -> u64 {
        let timers = self.sources.values().copied().chain(self.all_until_ns).chain(self.ask_ns);
        timers.min().unwrap_or(u64::MAX)
    }

    /// The oldest version that a host of the link speaks (RFC 3376 §7.3.1).
    fn version(&self, now_ns: u64) -> Version {
        match self.old_until_ns.map(|until_ns| now_ns < until_ns) {
            [true, _] => Version::One,
            [_, true] => Version::Two,
            _ => Version::Three,
        }
    }

    /// A host of an older version is there until then.
    pub fn older_host(&mut self, version: Version, until_ns: u64) {
        match version {
            Version::One => self.old_until_ns[0] = until_ns,
            Version::Two => self.old_until_ns[1] = until_ns,
            Version::Three => {}
        }
    }

    /// A host reports a record (RFC 3376 §6.4.1, §6.4.2). Returns what is to be asked.
    pub fn hear(
        &mut self,
        kind: u8,
        sources: &BTreeSet<IpAddr>,
        now_ns: u64,
        timers: &Timers,
        refused: &mut u64,
    ) -> Ask {
        // Older hosts cannot say which sources they want, so nothing may be taken from them (RFC
        // 3376 §7.3.2).
        let (version, none) = (self.version(now_ns), BTreeSet::new());
        let sources = match (kind, version) {
            (record::BLOCK, Version::One | Version::Two) | (record::TO_INCLUDE, Version::One) => {
                return Ask::default();
            }
            (record::TO_EXCLUDE, Version::One | Version::Two) => &none,
            _ => sources,
        };
        let end_ns = now_ns + timers.membership_ns();
        match self.all_until_ns {
            None => self.hear_including(kind, sources, end_ns, refused),
            Some(group_ns) => self.hear_excluding(kind, sources, end_ns, group_ns, refused),
        }
    }

    /// Want sources until then, as far as there is room.
    fn want(
        &mut self,
        sources: impl IntoIterator<Item = IpAddr>,
        until_ns: u64,
        refused: &mut u64,
    ) {
        for source in sources {
            if self.sources.len() >= SOURCES_MAX && !self.sources.contains_key(&source) {
                *refused += 1;
                continue;
            }
            self.sources.insert(source, until_ns);
            self.excluded.remove(&source);
        }
    }

    fn known(&self) -> BTreeSet<IpAddr> {
        self.sources.keys().copied().collect()
    }

    fn hear_including(
        &mut self,
        kind: u8,
        sources: &BTreeSet<IpAddr>,
        end_ns: u64,
        refused: &mut u64,
    ) -> Ask {
        let known = self.known();
        let both = || known.intersection(sources).copied().collect();
        let mut ask = Ask::default();
        match kind {
            record::IS_INCLUDE | record::ALLOW => {
                self.want(sources.iter().copied(), end_ns, refused)
            }
            record::TO_INCLUDE => {
                ask.sources = known.difference(sources).copied().collect();
                self.want(sources.iter().copied(), end_ns, refused);
            }
            record::IS_EXCLUDE | record::TO_EXCLUDE => {
                if kind == record::TO_EXCLUDE {
                    ask.sources = both();
                }
                self.excluded = sources.difference(&known).copied().take(SOURCES_MAX).collect();
                self.sources.retain(|source, _| sources.contains(source));
                self.all_until_ns = Some(end_ns);
            }
            record::BLOCK => ask.sources = both(),
            _ => {}
        }
        ask
    }

    fn hear_excluding(
        &mut self,
        kind: u8,
        sources: &BTreeSet<IpAddr>,
        end_ns: u64,
        group_ns: u64,
        refused: &mut u64,
    ) -> Ask {
        let known = self.known();
        // Sources that may be wanted: until the group ends, unless somebody says more.
        let doubtful: BTreeSet<IpAddr> = sources.difference(&self.excluded).copied().collect();
        let new: Vec<IpAddr> = doubtful.difference(&known).copied().collect();
        let mut ask = Ask::default();
        match kind {
            record::IS_INCLUDE | record::ALLOW => {
                self.want(sources.iter().copied(), end_ns, refused)
            }
            record::TO_INCLUDE => {
                ask = Ask { group: true, sources: known.difference(sources).copied().collect() };
                self.want(sources.iter().copied(), end_ns, refused);
            }
            record::IS_EXCLUDE | record::TO_EXCLUDE => {
                self.sources.retain(|source, _| sources.contains(source));
                self.excluded.retain(|source| sources.contains(source));
                let is_change = kind == record::TO_EXCLUDE;
                self.want(new, if is_change { group_ns } else { end_ns }, refused);
                self.all_until_ns = Some(end_ns);
                if is_change {
                    ask.sources = doubtful;
                }
            }
            record::BLOCK => {
                self.want(new, group_ns, refused);
                ask.sources = doubtful;
            }
            _ => {}
        }
        ask
    }

    /// Ask whether somebody listens: timers are lowered, queries follow (RFC 3376 §6.6.3).
    pub fn ask(&mut self, ask: &Ask, now_ns: u64, timers: &Timers) {
        self.lower(ask, now_ns, timers);
        let mut asks = false;
        if ask.group && self.all_until_ns.is_some() {
            self.asks_left = timers.robustness;
            asks = true;
        }
        for source in ask.sources.iter().filter(|source| self.sources.contains_key(source)) {
            self.source_asks_left.insert(*source, timers.robustness);
            asks = true;
        }
        if asks {
            self.ask_ns = Some(now_ns);
        }
    }

    /// A query was sent or heard: who does not answer it does not listen (RFC 3376 §6.6.1).
    pub fn lower(&mut self, asked: &Ask, now_ns: u64, timers: &Timers) {
        let last_ns = now_ns + timers.last_member_ns();
        if asked.group {
            self.all_until_ns = self.all_until_ns.map(|until_ns| until_ns.min(last_ns));
        }
        for source in &asked.sources {
            if let Some(until_ns) = self.sources.get_mut(source) {
                *until_ns = (*until_ns).min(last_ns);
            }
        }
    }

    /// Timers that have run out end what they are for (RFC 3376 §6.2.2, §6.3, §6.5).
    pub fn expire(&mut self, now_ns: u64) {
        let expired: Vec<IpAddr> = self
            .sources
            .iter()
            .filter(|(_, until_ns)| **until_ns <= now_ns)
            .map(|(source, _)| *source)
            .collect();
        for source in expired {
            self.sources.remove(&source);
            self.source_asks_left.remove(&source);
            if self.all_until_ns.is_some() && self.excluded.len() < SOURCES_MAX {
                self.excluded.insert(source);
            }
        }
        if self.all_until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            self.all_until_ns = None;
            self.asks_left = 0;
            self.excluded.clear();
        }
    }

    /// The queries that are due: sources (none: the group) and the S flag of each (RFC 3376
    /// §6.6.3).
    pub fn due_questions(&mut self, now_ns: u64, timers: &Timers) -> Vec<(Vec<IpAddr>, bool)> {
        if self.ask_ns.is_none_or(|at_ns| at_ns > now_ns) {
            return Vec::new();
        }
        let last_ns = now_ns + timers.last_member_ns();
        let mut out = Vec::new();
        let asks_group = self.asks_left > 0;
        if asks_group {
            self.asks_left -= 1;
            out.push((Vec::new(), self.all_until_ns.is_some_and(|until_ns| until_ns > last_ns)));
        }
        let (mut sure, mut doubtful) = (Vec::new(), Vec::new());
        for (source, left) in &mut self.source_asks_left {
            *left -= 1;
            let is_sure = self.sources.get(source).is_some_and(|until_ns| *until_ns > last_ns);
            if is_sure { &mut sure } else { &mut doubtful }.push(*source);
        }
        self.source_asks_left.retain(|_, left| *left > 0);
        // Sources that somebody has reported since are asked for with the S flag, unless the group
        // is.
        if !sure.is_empty() && !asks_group {
            out.push((sure, true));
        }
        if !doubtful.is_empty() {
            out.push((doubtful, false));
        }
        let again = self.asks_left > 0 || !self.source_asks_left.is_empty();
        self.ask_ns = again.then(|| now_ns + timers.ask_again_ns());
        out
    }
}
