//! Whom the router answers for as if it were they: ranges of IPv4 addresses (RFC 1027), and when.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Ranges of addresses that ARP is answered for, in all tables.
pub const ARP_PROXIES_MAX: usize = 1024;
/// Addresses that are advertised for others, on one interface.
pub const ND_PROXIES_MAX: usize = 1024;

/// The ranges, by the operator's number of their table.
#[derive(Debug, Default)]
pub(crate) struct ArpProxies {
    said: BTreeMap<u32, Vec<(Ipv4Addr, Ipv4Addr)>>,
    /// In order, and apart from each other.
    merged: BTreeMap<u32, Arc<[(Ipv4Addr, Ipv4Addr)]>>,
}

impl ArpProxies {
    /// How many.
    pub fn len(&self) -> usize {
        self.said.values().map(Vec::len).sum()
    }

    /// Is this very range there?
    pub fn has(&self, table: u32, range: (Ipv4Addr, Ipv4Addr)) -> bool {
        self.said.get(&table).is_some_and(|said| said.contains(&range))
    }

    /// All, by table.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Ipv4Addr, Ipv4Addr)> {
        self.said
            .iter()
            .flat_map(|(table, said)| said.iter().map(|(first, last)| (*table, *first, *last)))
    }

    /// What workers look for an address in.
    pub fn ranges(&self, table: u32) -> Arc<[(Ipv4Addr, Ipv4Addr)]> {
        self.merged.get(&table).cloned().unwrap_or_default()
    }

    /// Another one.
    pub fn add(&mut self, table: u32, range: (Ipv4Addr, Ipv4Addr)) {
        self.said.entry(table).or_default().push(range);
        self.merge(table);
    }

    /// No more.
    pub fn remove(&mut self, table: u32, range: (Ipv4Addr, Ipv4Addr)) {
        if let Some(said) = self.said.get_mut(&table) {
            said.retain(|known| *known != range);
        }
        self.said.retain(|_, said| !said.is_empty());
        self.merge(table);
    }

    fn merge(&mut self, table: u32) {
        let Some(said) = self.said.get(&table) else {
            self.merged.remove(&table);
            return;
        };
        let mut sorted = said.clone();
        sorted.sort_unstable();
        let mut merged: Vec<(Ipv4Addr, Ipv4Addr)> = Vec::new();
        for (first, last) in sorted {
            match merged.last_mut().filter(|before| before.1 >= first) {
                Some(before) => before.1 = before.1.max(last),
                None => merged.push((first, last)),
            }
        }
        self.merged.insert(table, merged.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u8, last: u8) -> (Ipv4Addr, Ipv4Addr) {
        (Ipv4Addr::new(10, 0, 0, first), Ipv4Addr::new(10, 0, 0, last))
    }

    #[test]
    fn ranges_that_overlap_are_looked_for_as_one_and_deleted_one_by_one() {
        let mut proxies = ArpProxies::default();
        for added in [range(30, 40), range(5, 9), range(8, 20), range(6, 7)] {
            proxies.add(0, added);
        }
        assert_eq!(proxies.ranges(0)[..], [range(5, 20), range(30, 40)]);
        proxies.remove(0, range(8, 20));
        assert_eq!(proxies.ranges(0)[..], [range(5, 9), range(30, 40)]);
        assert_eq!((proxies.len(), proxies.ranges(1).len()), (3, 0));
        [range(30, 40), range(5, 9), range(6, 7)]
            .into_iter()
            .for_each(|gone| proxies.remove(0, gone));
        assert!(proxies.iter().next().is_none() && proxies.ranges(0).is_empty());
    }
}
