//! The FIB as operators see it.

use std::net::IpAddr;

use quiver_tables::GroupId;
use quiver_tables::lpm::{Route, TrieUse};
use quiver_tables::prefix::{IpPrefix, Prefix};

use super::Fib;
use super::adjacencies::AdjacencyKey;
use super::families::Side;
use super::family_tables::{FamilyTables, source_of};
use super::link::Link;
use super::path::{Family, Path, Source};
use crate::adjacency::Adjacency;
use crate::next_hop_group::Hop;

/// What one source says of a prefix.
#[derive(Clone, Copy, Debug)]
pub struct RouteView<'f> {
    /// The prefix.
    pub prefix: IpPrefix,
    /// The source.
    pub source: Source,
    /// Does the data plane follow it? One source of each prefix wins.
    pub best: bool,
    /// The group that stands for its paths.
    pub group: GroupId,
    /// Its paths, as given.
    pub paths: &'f [Path],
    /// What they come down to now, with weights.
    pub hops: &'f [(Hop, u32)],
}

/// A next-hop group and the paths that it stands for.
#[derive(Clone, Copy, Debug)]
pub struct GroupView<'f> {
    /// The group.
    pub group: GroupId,
    /// Its packets.
    pub payload: Link,
    /// Its paths.
    pub paths: &'f [Path],
    /// Its hops, with weights.
    pub hops: &'f [(Hop, u32)],
    /// Routes that share it.
    pub routes: usize,
}

/// An adjacency in use.
#[derive(Clone, Copy, Debug)]
pub struct AdjacencyView<'f> {
    /// What it is for.
    pub key: AdjacencyKey,
    /// Its node and its index.
    pub hop: Hop,
    /// What stands in it.
    pub adjacency: &'f Adjacency,
    /// Packets and bytes, when they are counted.
    pub counted: Option<[u64; 2]>,
}

impl Fib {
    fn view<A: Side>(
        &self,
        prefix: Prefix<A>,
        source: Source,
        group: GroupId,
        best: bool,
    ) -> RouteView<'_> {
        let list = self.lists.get(group);
        let paths = list.map_or(&[][..], |list| &list.key.paths);
        let hops = list.map_or(&[][..], |list| &list.hops);
        RouteView { prefix: A::ip_prefix(prefix), source, best, group, paths, hops }
    }

    /// What all sources say of exactly this prefix, the winner first.
    pub fn route(&self, table: u32, prefix: IpPrefix) -> Vec<RouteView<'_>> {
        match prefix {
            IpPrefix::V4(prefix) => self.route_of(&self.families.ip4, table, prefix),
            IpPrefix::V6(prefix) => self.route_of(&self.families.ip6, table, prefix),
        }
    }

    fn route_of<'f, A: Side>(
        &'f self,
        tables: &FamilyTables<A>,
        table: u32,
        prefix: Prefix<A>,
    ) -> Vec<RouteView<'f>> {
        let sources = tables.sources(table, prefix).into_iter().enumerate();
        sources
            .map(|(place, (source, group))| self.view(prefix, source, group, place == 0))
            .collect()
    }

    /// The route that packets to `address` take.
    pub fn best_route(&self, table: u32, address: IpAddr) -> Option<RouteView<'_>> {
        match address {
            IpAddr::V4(address) => {
                let (prefix, route) = self.families.ip4.cover(table, address.to_bits())?;
                Some(self.view(prefix, source_of(route), route.group, true))
            }
            IpAddr::V6(address) => {
                let (prefix, route) = self.families.ip6.cover(table, address.to_bits())?;
                Some(self.view(prefix, source_of(route), route.group, true))
            }
        }
    }

    /// The winning routes of a table, in order of prefix; after `after`, if given, so that a long
    /// listing can pause.
    pub fn routes(
        &self,
        family: Family,
        table: u32,
        after: Option<IpPrefix>,
    ) -> Box<dyn Iterator<Item = RouteView<'_>> + '_> {
        match family {
            Family::Ip4 => {
                let after = after.and_then(|prefix| {
                    if let IpPrefix::V4(prefix) = prefix { Some(prefix) } else { None }
                });
                self.routes_of(&self.families.ip4, table, after)
            }
            Family::Ip6 => {
                let after = after.and_then(|prefix| {
                    if let IpPrefix::V6(prefix) = prefix { Some(prefix) } else { None }
                });
                self.routes_of(&self.families.ip6, table, after)
            }
        }
    }

    fn routes_of<'f, A: Side>(
        &'f self,
        tables: &'f FamilyTables<A>,
        table: u32,
        after: Option<Prefix<A>>,
    ) -> Box<dyn Iterator<Item = RouteView<'f>> + 'f> {
        let Some(prefixes) = tables.lpm.prefixes_if_any(table) else {
            return Box::new(std::iter::empty());
        };
        let view = move |(prefix, route): (Prefix<A>, &Route)| {
            self.view(prefix, source_of(*route), route.group, true)
        };
        match after {
            Some(after) => Box::new(prefixes.iter_after(after).map(view)),
            None => Box::new(prefixes.iter().map(view)),
        }
    }

    /// What `source` says of the prefix of a winning route, if it says anything.
    pub fn of_source<'f>(
        &'f self,
        table: u32,
        best: RouteView<'f>,
        source: Source,
    ) -> Option<RouteView<'f>> {
        if best.source == source {
            return Some(best);
        }
        self.route(table, best.prefix).into_iter().find(|route| route.source == source)
    }

    /// What `source` says in a table, in order of prefix, whether it wins or not; for
    /// `show running-config` with [`Source::Static`].
    pub fn routes_from(
        &self,
        family: Family,
        table: u32,
        source: Source,
    ) -> Box<dyn Iterator<Item = RouteView<'_>> + '_> {
        let all = self.routes(family, table, None);
        Box::new(all.filter_map(move |best| self.of_source(table, best, source)))
    }

    /// How many prefixes of each length a table has, length 0 first.
    pub fn count_by_len(&self, family: Family, table: u32) -> Vec<u32> {
        let counts = match family {
            Family::Ip4 => {
                self.families.ip4.lpm.prefixes_if_any(table).map(|prefixes| prefixes.count_by_len())
            }
            Family::Ip6 => {
                self.families.ip6.lpm.prefixes_if_any(table).map(|prefixes| prefixes.count_by_len())
            }
        };
        counts.map_or_else(Vec::new, <[u32]>::to_vec)
    }

    /// All groups that routes hold.
    pub fn group_views(&self) -> impl Iterator<Item = GroupView<'_>> {
        self.group_views_from(GroupId(0))
    }

    /// Those whose number is `first` or higher, in order: a long list can pause.
    pub fn group_views_from(&self, first: GroupId) -> impl Iterator<Item = GroupView<'_>> {
        self.lists.from(first).map(|(group, list)| GroupView {
            group,
            payload: list.key.payload,
            paths: &list.key.paths,
            hops: &list.hops,
            routes: list.routes,
        })
    }

    /// All adjacencies in use, by interface.
    pub fn adjacency_views(&self) -> impl Iterator<Item = AdjacencyView<'_>> {
        self.adjacency_views_after(None)
    }

    /// Those behind one in the same order: a long list can pause.
    pub fn adjacency_views_after(
        &self,
        last: Option<AdjacencyKey>,
    ) -> impl Iterator<Item = AdjacencyView<'_>> {
        self.adjacencies.after(last).map(|(key, hop, adjacency)| {
            let counted = self.adjacencies.counted(key);
            AdjacencyView { key, hop, adjacency, counted }
        })
    }

    /// How many path lists there are.
    pub fn path_lists(&self) -> usize {
        self.lists.len()
    }

    /// What the prefix matches of a family use.
    pub fn usage(&self, family: Family) -> TrieUse {
        match family {
            Family::Ip4 => self.families.ip4.lpm.usage(),
            Family::Ip6 => self.families.ip6.lpm.usage(),
        }
    }
}
