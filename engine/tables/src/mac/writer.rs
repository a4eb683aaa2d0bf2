//! The MAC table's one writer: ports join and leave, addresses are learned, configured and removed.

use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};

use super::flooding::FarEnd;
use super::ports::{PORTS_MAX, Ports};
use super::sweep::Sweep;
use super::word::{DomainIndex, MacEntry, MacKey, Seen, StampMinutes};
use super::{DOMAINS_MAX, MAC_ENTRIES_CAPACITY, MacError, MacTable};
use crate::exact::{ExactUse, Limits, Seed, ShortWriter};
use crate::memory::MemoryError;

/// What came of learning an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// It was not known.
    New,
    /// It was behind another port.
    Moved {
        /// That one.
        from: InterfaceId,
    },
    /// It was learned already.
    Known,
    /// A static entry or a filter stands and does not change.
    Stands,
    /// The port left its domain, or was flushed, since the frame came.
    TooLate,
    /// The table, or what may be learned in it, is full.
    TableFull,
    /// The domain has learned as many as it may.
    DomainFull,
}

/// An entry as an operator wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Where the address is; a filter needs no port.
    pub port: Option<InterfaceId>,
    /// It never moves.
    pub is_static: bool,
    /// Frames from and to it are dropped.
    pub is_filter: bool,
    /// It is the domain's own interface.
    pub is_bvi: bool,
    /// Which of the far ends of the port it is behind, if that has several.
    pub far_end: Option<FarEnd>,
}

/// How many entries a domain has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DomainCounts {
    /// All, what was flushed and is not swept yet included.
    pub entries: usize,
    /// Those that were learned.
    pub learned: usize,
    /// As many may be learned.
    pub learn_limit: usize,
}

/// What the writer knows of a domain.
#[derive(Clone, Copy)]
pub(super) struct Domain {
    pub(super) open: bool,
    counts: DomainCounts,
}

/// The one writer of the MAC table.
pub struct MacWriter {
    pub(super) entries: ShortWriter<MacEntry>,
    pub(super) ports: Arc<Ports>,
    pub(super) domains: Vec<Domain>,
    /// Domains that may be opened again.
    pub(super) free: Vec<DomainIndex>,
    pub(super) sweep: Sweep,
    learned: usize,
    learn_limit: usize,
    entries_max: usize,
}

impl MacWriter {
    /// An empty table of at most `entries_max` until another limit is set, hashed with `seed`.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(
        epochs: &Arc<Epochs>,
        entries_max: usize,
        seed: Seed,
    ) -> Result<MacWriter, MemoryError> {
        let remedy = "remove some";
        let limits = Limits { what: "MAC table", entries_max: MAC_ENTRIES_CAPACITY, remedy };
        Ok(MacWriter {
            entries: ShortWriter::new(epochs, limits, seed)?,
            ports: Arc::new(Ports::new()),
            domains: vec![Domain { open: false, counts: DomainCounts::default() }],
            free: Vec::new(),
            sweep: Sweep::default(),
            learned: 0,
            learn_limit: entries_max,
            entries_max,
        })
    }

    /// What workers look up in.
    pub fn table(&self) -> MacTable {
        MacTable { entries: self.entries.table(), ports: self.ports.clone() }
    }

    /// Entries in it, what was flushed and is not swept yet included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Is there no entry?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Entries that were learned.
    pub fn learned(&self) -> usize {
        self.learned
    }

    /// As many may be learned in all.
    pub fn learn_limit(&self) -> usize {
        self.learn_limit
    }

    /// As many entries fit in.
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Let at most so many entries in. What is in it stays. As many may be learned, unless
    /// [`set_learn_limit`](Self::set_learn_limit) has said fewer; a limit above the new maximum is
    /// forgotten.
    ///
    /// # Errors
    /// The limit is above the table's capacity.
    pub fn set_entries_max(&mut self, entries_max: usize) -> Result<(), MacError> {
        if entries_max > MAC_ENTRIES_CAPACITY {
            return Err(MacError::BeyondCapacity(entries_max));
        }
        let no_limit_of_its_own = |limit: usize, old: usize| limit >= old;
        let old = std::mem::replace(&mut self.entries_max, entries_max);
        if no_limit_of_its_own(self.learn_limit, old) || self.learn_limit > entries_max {
            self.learn_limit = entries_max;
        }
        for domain in &mut self.domains {
            if no_limit_of_its_own(domain.counts.learn_limit, old) {
                domain.counts.learn_limit = entries_max;
            }
        }
        (0..self.domains.len()).for_each(|index| self.show_full(DomainIndex(index as u16)));
        Ok(())
    }

    /// What it takes.
    pub fn usage(&self) -> ExactUse {
        self.entries.usage()
    }

    // Domains.

    /// Open a domain.
    ///
    /// # Errors
    /// All domains are in use.
    pub fn open_domain(&mut self) -> Result<DomainIndex, MacError> {
        let counts = DomainCounts { learn_limit: self.entries_max, ..DomainCounts::default() };
        let new = Domain { open: true, counts };
        if let Some(index) = self.free.pop() {
            self.domains[usize::from(index.0)] = new;
            return Ok(index);
        }
        if self.domains.len() > DOMAINS_MAX {
            return Err(MacError::NoDomain);
        }
        self.domains.push(new);
        Ok(DomainIndex((self.domains.len() - 1) as u16))
    }

    /// Close a domain that no port is in. Its number is used again when all its entries are swept.
    pub fn close_domain(&mut self, domain: DomainIndex) {
        if let Some(open) = self.domains.get_mut(usize::from(domain.0)).filter(|domain| domain.open)
        {
            open.open = false;
            self.sweep.closed.push(domain);
            self.sweep.wanted = true;
        }
    }

    /// How many entries a domain has.
    pub fn counts(&self, domain: DomainIndex) -> DomainCounts {
        self.domains
            .get(usize::from(domain.0))
            .map_or(DomainCounts::default(), |domain| domain.counts)
    }

    /// Learn at most so many in a domain.
    pub fn set_domain_learn_limit(&mut self, domain: DomainIndex, limit: usize) {
        if let Some(known) = self.domains.get_mut(usize::from(domain.0)) {
            known.counts.learn_limit = limit;
            self.show_full(domain);
        }
    }

    /// Learn at most so many in all.
    pub fn set_learn_limit(&mut self, limit: usize) {
        self.learn_limit = limit;
        self.show_full(DomainIndex(0));
    }

    /// Tell workers whether asking for more is of use.
    fn show_full(&self, domain: DomainIndex) {
        let table = self.learned >= self.learn_limit || self.len() >= self.entries_max;
        self.ports.set_full(DomainIndex(0), table);
        let counts = self.counts(domain);
        if domain.0 != 0 {
            self.ports.set_full(domain, counts.learned >= counts.learn_limit);
        }
    }

    fn count(&mut self, key: MacKey, old: MacEntry, new: MacEntry) {
        let learned = |entry: MacEntry| usize::from(entry.is_some() && !entry.is_configured());
        self.learned = self.learned + learned(new) - learned(old);
        if let Some(domain) = self.domains.get_mut(usize::from(key.domain().0)) {
            let counts = &mut domain.counts;
            counts.entries =
                counts.entries + usize::from(new.is_some()) - usize::from(old.is_some());
            counts.learned = counts.learned + learned(new) - learned(old);
        }
        self.show_full(key.domain());
    }

    // Ports.

    /// A port joins a domain; it must be in none.
    pub fn join(&mut self, port: InterfaceId, domain: DomainIndex, output: NodeId, group: u8) {
        debug_assert!(port.index() < PORTS_MAX && self.ports.word(port).domain().0 == 0);
        self.ports.set(port, self.ports.word(port).with(domain, output, group));
    }

    /// A port leaves its domain, and all its entries go.
    pub fn leave(&mut self, port: InterfaceId) {
        self.make_room_for_epoch(port);
        self.ports.set(port, self.ports.word(port).next_tenure());
        self.sweep.wanted = true;
    }

    /// Put a port into another split-horizon group.
    pub fn set_group(&mut self, port: InterfaceId, group: u8) {
        let word = self.ports.word(port);
        self.ports.set(port, word.with(word.domain(), word.output(), group));
    }

    /// Forget what was learned on a port.
    pub fn flush(&mut self, port: InterfaceId) {
        self.make_room_for_epoch(port);
        self.ports.set(port, self.ports.word(port).next_flush());
        self.sweep.wanted = true;
    }

    // Entries.

    /// A worker has seen a source that it did not know there.
    pub fn learn(&mut self, key: MacKey, seen: Seen) -> Learned {
        let new = seen.entry();
        let port = self.ports.word(new.port());
        let is_open =
            self.domains.get(usize::from(key.domain().0)).is_some_and(|domain| domain.open);
        if !is_open || port.domain() != key.domain() || !new.holds(port) {
            return Learned::TooLate;
        }
        let old = self.entries.get(key.word()).unwrap_or(MacEntry::NONE);
        let holds = old.holds(self.ports.word(old.port()));
        if holds && old.is_static() {
            return Learned::Stands;
        }
        if holds && old.port() == new.port() {
            // Somebody was faster; a configured one stays so.
            if old.far_end().is_none() {
                self.entries.insert(key.word(), old.seen(seen)).ok();
            }
            return Learned::Known;
        }
        if !old.is_some() && self.len() >= self.entries_max {
            return Learned::TableFull;
        }
        if !old.is_some() || old.is_configured() {
            let counts = self.counts(key.domain());
            if self.learned >= self.learn_limit {
                return Learned::TableFull;
            }
            if counts.learned >= counts.learn_limit {
                return Learned::DomainFull;
            }
        }
        if self.entries.insert(key.word(), new).is_err() {
            return Learned::TableFull;
        }
        self.count(key, old, new);
        if holds { Learned::Moved { from: old.port() } } else { Learned::New }
    }

    /// Configure an entry. The one that there was comes back.
    ///
    /// # Errors
    /// The port is no member of the domain, or the table is full.
    pub fn configure(
        &mut self,
        key: MacKey,
        entry: Configured,
        now: StampMinutes,
    ) -> Result<MacEntry, MacError> {
        let new = match entry.port {
            Some(port) => {
                let word = self.ports.word(port);
                if word.domain() != key.domain() {
                    return Err(MacError::NotAMember(port.0));
                }
                let is_static = entry.is_static | entry.is_filter;
                let seen = Seen::of(port, word, now);
                let made = MacEntry::configured(seen, is_static, entry.is_filter, entry.is_bvi);
                entry.far_end.map_or(made, |far_end| made.behind(far_end))
            }
            None => MacEntry::filter(now),
        };
        if self.len() >= self.entries_max && self.entries.get(key.word()).is_none() {
            return Err(MacError::Full(self.entries_max));
        }
        let old = self.entries.insert(key.word(), new)?.unwrap_or(MacEntry::NONE);
        self.count(key, old, new);
        Ok(old)
    }

    /// Forget an entry; what it was.
    pub fn remove(&mut self, key: MacKey) -> Option<MacEntry> {
        let old = self.entries.remove(key.word())?;
        self.count(key, old, MacEntry::NONE);
        Some(old)
    }

    /// What is known of an address; nothing if it does not hold any more.
    pub fn get(&self, key: MacKey) -> Option<MacEntry> {
        self.entries.get(key.word()).filter(|entry| self.holds(key, *entry))
    }

    /// Does the entry hold?
    pub fn holds(&self, key: MacKey, entry: MacEntry) -> bool {
        let is_open =
            self.domains.get(usize::from(key.domain().0)).is_some_and(|domain| domain.open);
        is_open && entry.holds(self.ports.word(entry.port()))
    }

    /// All entries that hold, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (MacKey, MacEntry)> + '_ {
        let all = self.entries.iter().map(|(key, entry)| (MacKey::of_word(key), entry));
        all.filter(|(key, entry)| self.holds(*key, *entry))
    }

    /// A part of [`iter`](Self::iter): as [`ShortWriter::scan`], what holds and what does not.
    pub fn scan(&self, from: u32, mut each: impl FnMut(MacKey, MacEntry)) -> Option<u32> {
        self.entries.scan(from, |key, entry| each(MacKey::of_word(key), entry))
    }

    /// Use again what no worker sees any more. To be called now and then.
    pub fn collect(&mut self) {
        self.entries.collect();
    }
}
