//! What workers see of interfaces: shown anew where something may have changed, and nowhere else,
//! so that a change costs the same among thousands of interfaces as among a few.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use quiver_core::InterfaceId;
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::{Addresses, NOT_ENABLED};

use crate::state::IpState;

/// A table, and an interface in it.
type Place = (u32, InterfaceId);

/// What others follow of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// The interface whose addresses it uses.
    lender: Option<InterfaceId>,
    /// An IPv6 address that interfaces of its table may speak with that have none.
    source6: Option<(u32, Ipv6Addr)>,
    /// The table in which it looks for such an address, having but a link-local one.
    seeks6: Option<u32>,
}

/// What workers see, and who follows whom, as of the last [`IpState::publish`].
#[derive(Default)]
pub(crate) struct PublishedAddresses {
    /// Of these something may have changed since.
    touched: BTreeSet<InterfaceId>,
    seen: BTreeMap<InterfaceId, Addresses>,
    entries: BTreeMap<InterfaceId, Entry>,
    /// The lender, and who uses its addresses.
    borrowers: BTreeSet<(InterfaceId, InterfaceId)>,
    sources6: BTreeMap<Place, Ipv6Addr>,
    seekers6: BTreeSet<Place>,
    /// Interfaces with addresses that may speak for their tables, of IPv4 and IPv6.
    speakers: [BTreeSet<Place>; 2],
    /// By interface, the tables that it may speak for, of IPv4 and IPv6.
    speaks_for: BTreeMap<InterfaceId, [Option<u32>; 2]>,
    /// By table, the source that the seekers there have.
    chosen6: BTreeMap<u32, (InterfaceId, Ipv6Addr)>,
}

fn in_table(table: u32) -> std::ops::RangeInclusive<Place> {
    (table, InterfaceId(0))..=(table, InterfaceId(u32::MAX))
}

impl PublishedAddresses {
    /// Something about the interface may have changed.
    pub fn touch(&mut self, id: InterfaceId) {
        self.touched.insert(id);
    }

    /// Who uses the addresses of `lender`.
    pub fn borrowers(&self, lender: InterfaceId) -> impl Iterator<Item = InterfaceId> {
        let all = (lender, InterfaceId(0))..=(lender, InterfaceId(u32::MAX));
        self.borrowers.range(all).map(|(_, borrower)| *borrower)
    }

    /// The source of those that seek one in a table.
    pub fn chosen6(&self, table: u32) -> Option<Ipv6Addr> {
        self.chosen6.get(&table).map(|(_, address)| *address)
    }

    /// Replace what others follow of an interface. Returns the tables in which that may move a
    /// source.
    fn enter(&mut self, id: InterfaceId, entry: Entry) -> BTreeSet<u32> {
        let old = self.entries.remove(&id).unwrap_or_default();
        if entry != Entry::default() {
            self.entries.insert(id, entry);
        }
        if old == entry {
            return BTreeSet::new();
        }
        old.lender.map(|lender| self.borrowers.remove(&(lender, id)));
        old.source6.map(|(table, _)| self.sources6.remove(&(table, id)));
        old.seeks6.map(|table| self.seekers6.remove(&(table, id)));
        entry.lender.map(|lender| self.borrowers.insert((lender, id)));
        entry.source6.map(|(table, address)| self.sources6.insert((table, id), address));
        entry.seeks6.map(|table| self.seekers6.insert((table, id)));
        [old.source6, entry.source6].into_iter().flatten().map(|(table, _)| table).collect()
    }

    /// An interface may speak for other tables than before. Returns those in which another one may
    /// speak now, with the one that does: the first.
    fn speak(
        &mut self,
        id: InterfaceId,
        tables: [Option<u32>; 2],
    ) -> impl Iterator<Item = (Family, u32, Option<InterfaceId>)> {
        let old = match tables {
            [None, None] => self.speaks_for.remove(&id),
            tables => self.speaks_for.insert(id, tables),
        };
        let old = old.unwrap_or_default();
        let families = [Family::Ip4, Family::Ip6].into_iter().zip(old).zip(tables);
        families.zip(&mut self.speakers).filter(|(((_, old), new), _)| old != new).flat_map(
            move |(((family, old), new), speakers)| {
                old.map(|table| speakers.remove(&(table, id)));
                new.map(|table| speakers.insert((table, id)));
                let first = |table: u32| speakers.range(in_table(table)).next().map(|(_, id)| *id);
                [old, new]
                    .map(|table| table.map(|table| (family, table, first(table))))
                    .into_iter()
                    .flatten()
            },
        )
    }

    /// See that seekers of a table have a source that is still there; it stays as long as it can.
    /// Returns whether it is another one now.
    fn choose6(&mut self, table: u32) -> bool {
        let old = self.chosen6.get(&table).copied();
        let holds = |(id, address): (InterfaceId, Ipv6Addr)| {
            self.sources6.get(&(table, id)).is_some_and(|now| *now == address)
        };
        if old.is_some_and(holds) {
            return false;
        }
        let last = self.sources6.range(in_table(table)).next_back();
        match last.map(|((_, id), address)| (*id, *address)) {
            Some(new) => self.chosen6.insert(table, new),
            None => self.chosen6.remove(&table),
        };
        self.chosen6(table) != old.map(|(_, address)| address)
    }
}

impl IpState {
    /// What others follow of an interface, as it is configured now.
    fn entry(&self, fib: &Fib, id: InterfaceId) -> Entry {
        let Some(interface) = self.interfaces.get(&id) else { return Entry::default() };
        let is_up = fib.interface(id).is_some_and(|info| info.up);
        let seen = self.own_or_borrowed(interface);
        let own = if seen.borrowed { interface.addresses().ip6 } else { seen.ip6.clone() };
        let preferred = own.iter().find(|own| !seen.deprecated.contains(&own.address()));
        let source = preferred.or(own.first());
        Entry {
            lender: interface.unnumbered,
            source6: source.filter(|_| is_up).map(|own| (interface.table6, own.address())),
            seeks6: (seen.ip6.is_empty() && seen.link_local.is_some()).then_some(interface.table6),
        }
    }

    /// Let workers see what is configured.
    pub(crate) fn publish(&mut self, fib: &Fib) {
        let mut due = std::mem::take(&mut self.shown.touched);
        let lent: Vec<InterfaceId> = due.iter().flat_map(|id| self.shown.borrowers(*id)).collect();
        due.extend(lent);
        let mut tables = BTreeSet::new();
        for id in &due {
            let entry = self.entry(fib, *id);
            tables.extend(self.shown.enter(*id, entry));
        }
        for table in tables {
            if self.shown.choose6(table) {
                due.extend(self.shown.seekers6.range(in_table(table)).map(|(_, id)| *id));
            }
        }
        due.into_iter().for_each(|id| self.show(fib, id));
    }

    /// Let workers see an interface as it is configured.
    fn show(&mut self, fib: &Fib, id: InterfaceId) {
        let mut now = self.addresses(id);
        let interface = self.interfaces.get(&id);
        let proxies = interface.filter(|interface| interface.proxy_arp);
        if let Some(table) =
            proxies.and_then(|interface| fib.table_id(Family::Ip4, interface.table4))
        {
            now.arp_proxies = self.arp_proxies.ranges(table);
        }
        if let Some(interface) = interface.filter(|_| now.link_local.is_some()) {
            now.nd_proxies = self.nd_proxies(interface.table6);
        }
        let is_empty = now == Addresses::default();
        // The addresses of an interface that is down are not the router's: nobody is spoken to with
        // them.
        let is_up = fib.interface(id).is_some_and(|info| info.up);
        let speaks = interface.filter(|_| is_up).map_or([None; 2], |interface| {
            let ip4 = (!now.ip4.is_empty()).then_some(interface.table4);
            [ip4, (!now.ip6.is_empty()).then_some(interface.table6)]
        });
        for (family, table, icmp_source) in self.shown.speak(id, speaks) {
            self.tables.interfaces.set_icmp_source(family, table, icmp_source);
        }
        if self.shown.seen.get(&id).map_or(!is_empty, |seen| *seen != now) {
            self.tables.interfaces.publish(id, (!is_empty).then(|| now.clone()));
            match is_empty {
                true => self.shown.seen.remove(&id),
                false => self.shown.seen.insert(id, now),
            };
        }
        let Some(interface) = interface else {
            return self.tables.interfaces.set_tables(id, NOT_ENABLED, NOT_ENABLED, NOT_ENABLED);
        };
        let lender = interface.unnumbered.and_then(|lender| self.interfaces.get(&lender));
        let table4 =
            if lender.unwrap_or(interface).ip4.is_empty() { NOT_ENABLED } else { interface.table4 };
        let speaks_ip6 = interface.link_local.is_some();
        let table6 = if speaks_ip6 { interface.table6 } else { NOT_ENABLED };
        let link_local = fib.link_local_table(id).filter(|_| speaks_ip6).unwrap_or(NOT_ENABLED);
        self.tables.interfaces.set_tables(id, table4, table6, link_local);
    }
}
