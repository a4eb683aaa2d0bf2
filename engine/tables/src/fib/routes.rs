//! Adding, changing and removing routes, one or many at a time.

use std::net::IpAddr;

use super::path::{Family, Path, Source, Target};
use super::tables::ends;
use super::{Fib, FibError, Side};
use crate::next_hop_group::{GroupId, PATHS_MAX};
use crate::prefix::{IpPrefix, Prefix};

/// How a route's new paths relate to those that its source gave before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Add,
    Replace,
}

impl Fib {
    /// Add paths to the route that `source` gives for `prefix`; the route is made if need be. A
    /// path that is there already gets the new weight.
    pub fn add_route(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.add_routes(table, prefix, 1, source, paths)
    }

    /// [`add_route`](Self::add_route) for `count` consecutive prefixes of one length. All or none;
    /// callers that show progress call it for some thousands at a time.
    pub fn add_routes(
        &mut self,
        table: u32,
        first: IpPrefix,
        count: u64,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.set_routes(table, first, count, source, paths, Mode::Add)
    }

    /// Make `paths` the only ones of the route that `source` gives for `prefix`.
    pub fn replace_route(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.set_routes(table, prefix, 1, source, paths, Mode::Replace)
    }

    fn set_routes(
        &mut self,
        table: u32,
        first: IpPrefix,
        count: u64,
        source: Source,
        paths: &[Path],
        mode: Mode,
    ) -> Result<(), FibError> {
        self.check(table, first, paths)?;
        check_count(first, count)?;
        let done = match first {
            IpPrefix::V4(first) => self.set_many(table, first, count, source, paths, mode),
            IpPrefix::V6(first) => self.set_many(table, first, count, source, paths, mode),
        };
        self.sweep();
        done
    }

    fn set_many<A: Side>(
        &mut self,
        table: u32,
        first: Prefix<A>,
        count: u64,
        source: Source,
        paths: &[Path],
        mode: Mode,
    ) -> Result<(), FibError> {
        // One route that gets more paths: only the union is ever published.
        if let (1, Mode::Add, Some(old)) = (count, mode, A::tables(&self.families).says(table, first, source))
        {
            let union = self.union(old, paths);
            if union.len() > PATHS_MAX {
                return Err(FibError::TooManyPaths(A::ip_prefix(first), union.len()));
            }
            return self.set_many(table, first, 1, source, &union, Mode::Replace);
        }
        let group = self.list(A::FAMILY, table, paths)?;
        let mut edit = A::tables_mut(&mut self.families).edit(table);
        let (mut added, mut replaced, mut failed) = (0, Vec::new(), None);
        for prefix in consecutive(first, count) {
            match edit.set(prefix, source, group) {
                Ok(None) => added += 1,
                Ok(Some(old)) if old == group => {}
                Ok(Some(old)) => replaced.push((prefix, old)),
                Err(error) => {
                    failed = Some((prefix, error));
                    break;
                }
            }
        }
        if let Some((stopped_at, error)) = failed {
            // Back to how it was; what was there before fits again.
            let mut before = replaced.into_iter().peekable();
            for prefix in consecutive(first, count).take_while(|prefix| *prefix != stopped_at) {
                let _ = match before.next_if(|(replaced, _)| *replaced == prefix) {
                    Some((_, old)) => edit.set(prefix, source, old),
                    None => edit.unset(prefix, source),
                };
            }
            edit.finish();
            return Err(error.into());
        }
        edit.finish();
        self.lists.hold(group, added + replaced.len());
        replaced.iter().for_each(|(_, old)| self.lists.release(*old));
        let last = consecutive(first, count).last_prefix(count);
        self.routes_changed(table, first, last);
        if mode == Mode::Add {
            for (prefix, old) in replaced {
                let union = self.union(old, paths);
                if union.len() <= PATHS_MAX {
                    self.set_many(table, prefix, 1, source, &union, Mode::Replace)?;
                }
            }
        }
        Ok(())
    }

    /// The paths of `group` and `paths`; of two that differ only in weight the later one.
    fn union(&self, group: GroupId, paths: &[Path]) -> Vec<Path> {
        let known = self.lists.get(group).map_or(&[][..], |list| &list.key.paths);
        let same = |a: &Path, b: &Path| (a.preference, a.target) == (b.preference, b.target);
        let kept = known.iter().filter(|old| !paths.iter().any(|new| same(old, new)));
        kept.chain(paths).copied().collect()
    }

    /// Take paths from the route that `source` gives for `prefix`; without any left it goes.
    /// A path's weight does not matter here.
    pub fn remove_paths(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        let group = self.said(table, prefix, source).ok_or(FibError::NoRoute(prefix))?;
        let Some(list) = self.lists.get(group) else { return Err(FibError::NoRoute(prefix)) };
        let same = |a: &Path, b: &Path| (a.preference, a.target) == (b.preference, b.target);
        let known = &list.key.paths;
        if !paths.iter().all(|gone| known.iter().any(|path| same(path, gone))) {
            return Err(FibError::NoSuchPath(prefix));
        }
        let left: Vec<_> =
            known.iter().filter(|path| !paths.iter().any(|gone| same(path, gone))).copied().collect();
        if left.is_empty() {
            return self.remove_route(table, prefix, source);
        }
        self.replace_route(table, prefix, source, &left)
    }

    /// Remove the route that `source` gives for `prefix`.
    pub fn remove_route(&mut self, table: u32, prefix: IpPrefix, source: Source) -> Result<(), FibError> {
        self.said(table, prefix, source).ok_or(FibError::NoRoute(prefix))?;
        self.remove_routes(table, prefix, 1, source).map(|_| ())
    }

    /// Remove what `source` gives for `count` consecutive prefixes; returns how many there were.
    pub fn remove_routes(
        &mut self,
        table: u32,
        first: IpPrefix,
        count: u64,
        source: Source,
    ) -> Result<u64, FibError> {
        self.check_table(table, first)?;
        check_count(first, count)?;
        let done = match first {
            IpPrefix::V4(first) => self.unset_many(table, first, count, source),
            IpPrefix::V6(first) => self.unset_many(table, first, count, source),
        };
        self.sweep();
        done
    }

    fn unset_many<A: Side>(
        &mut self,
        table: u32,
        first: Prefix<A>,
        count: u64,
        source: Source,
    ) -> Result<u64, FibError> {
        let mut edit = A::tables_mut(&mut self.families).edit(table);
        let (mut gone, mut failed) = (Vec::new(), None);
        for prefix in consecutive(first, count) {
            match edit.unset(prefix, source) {
                Ok(Some(group)) => gone.push((prefix, group)),
                Ok(None) => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        if let Some(error) = failed {
            for (prefix, group) in gone {
                let _ = edit.set(prefix, source, group);
            }
            edit.finish();
            return Err(error.into());
        }
        edit.finish();
        gone.iter().for_each(|(_, group)| self.lists.release(*group));
        let last = consecutive(first, count).last_prefix(count);
        self.routes_changed(table, first, last);
        Ok(gone.len() as u64)
    }

    /// Next hops that are looked up in this range may now resolve otherwise.
    fn routes_changed<A: Side>(&mut self, table: u32, first: Prefix<A>, last: Prefix<A>) {
        let range = ends(first).0..=ends(last).1;
        let users = self.lists.tracked_in(A::FAMILY, table, range);
        self.resolve_again(users);
    }

    /// The group that `source` gives for `prefix`.
    pub(super) fn said(&self, table: u32, prefix: IpPrefix, source: Source) -> Option<GroupId> {
        match prefix {
            IpPrefix::V4(prefix) => self.families.ip4.says(table, prefix, source),
            IpPrefix::V6(prefix) => self.families.ip6.says(table, prefix, source),
        }
    }

    fn check_table(&self, table: u32, prefix: IpPrefix) -> Result<(), FibError> {
        let family = if prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 };
        if self.families.exists(family, table) {
            return Ok(());
        }
        Err(FibError::NoTableIndex { family, index: table })
    }

    /// Does the route make sense?
    fn check(&self, table: u32, prefix: IpPrefix, paths: &[Path]) -> Result<(), FibError> {
        self.check_table(table, prefix)?;
        if paths.is_empty() {
            return Err(FibError::NoPath(prefix));
        }
        if paths.len() > PATHS_MAX {
            return Err(FibError::TooManyPaths(prefix, paths.len()));
        }
        for path in paths {
            if path.weight == 0 {
                return Err(FibError::WeightZero(prefix));
            }
            self.check_target(table, prefix, path.target)?;
        }
        Ok(())
    }

    fn check_target(&self, table: u32, prefix: IpPrefix, target: Target) -> Result<(), FibError> {
        let interface = match target {
            Target::Via { next_hop, interface } => {
                if !is_unicast(next_hop) {
                    return Err(FibError::BadNextHop(prefix, next_hop));
                }
                if interface.is_none() && is_link_local(next_hop) {
                    return Err(FibError::LinkLocalNeedsInterface(prefix, next_hop));
                }
                interface
            }
            Target::Attached(interface) => Some(interface),
            Target::LookupIn { family, table: other } => {
                if !self.families.exists(family, other) {
                    return Err(FibError::NoTableIndex { family, index: other });
                }
                if other == table && prefix.is_ip6() == (family == Family::Ip6) {
                    return Err(FibError::LookupInItself(prefix));
                }
                None
            }
            Target::Local | Target::Drop | Target::Punt | Target::Feature(_) => None,
        };
        match interface {
            Some(interface) if !self.interfaces.contains_key(&interface) => {
                Err(FibError::NoInterface { asked: format!("route {prefix}"), interface })
            }
            _ => Ok(()),
        }
    }
}

/// An address that a single host may have.
pub(super) fn is_unicast(address: IpAddr) -> bool {
    let reserved = match address {
        IpAddr::V4(address) => address.is_broadcast() || address.octets()[0] >= 224,
        IpAddr::V6(_) => false,
    };
    !address.is_multicast() && !address.is_unspecified() && !reserved
}

pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

fn check_count(first: IpPrefix, count: u64) -> Result<(), FibError> {
    // 2^len prefixes of this length there are; from `first` on, as many less its own number.
    let fit = match first {
        IpPrefix::V4(prefix) => fit(u128::from(prefix.first()) << 96, prefix.len()),
        IpPrefix::V6(prefix) => fit(prefix.first(), prefix.len()),
    };
    if count <= fit { Ok(()) } else { Err(FibError::CountTooLarge { first, count, fit }) }
}

/// How many prefixes of `len` bits fit from `first` (left-aligned) to the end.
fn fit(first: u128, len: u8) -> u64 {
    if len == 0 {
        return 1;
    }
    let number = first >> (128 - u32::from(len));
    let last = u128::MAX >> (128 - u32::from(len));
    u64::try_from(last - number + 1).unwrap_or(u64::MAX)
}

/// `count` prefixes from `first` on.
fn consecutive<A: Side>(first: Prefix<A>, count: u64) -> Consecutive<A> {
    Consecutive { next: Some(first), left: count }
}

struct Consecutive<A: Side> {
    next: Option<Prefix<A>>,
    left: u64,
}

impl<A: Side> Iterator for Consecutive<A> {
    type Item = Prefix<A>;

    #[inline]
    fn next(&mut self) -> Option<Prefix<A>> {
        self.left = self.left.checked_sub(1)?;
        let prefix = self.next?;
        self.next = prefix.next();
        Some(prefix)
    }
}

impl<A: Side> Consecutive<A> {
    /// The last of them, computed.
    fn last_prefix(self, count: u64) -> Prefix<A> {
        let first = self.next.unwrap_or(Prefix::ALL);
        if first.len() == 0 || count < 2 {
            return first;
        }
        let step = A::from_halves(0, count - 1) << (A::BITS - u32::from(first.len()));
        Prefix::new(first.first() + step, first.len())
    }
}
