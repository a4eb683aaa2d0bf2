//! Adding, changing and removing routes, one or many at a time.

use std::net::IpAddr;

use quiver_tables::GroupId;
use quiver_tables::prefix::{IpPrefix, Prefix};

use super::families::Side;
use super::link::Link;
use super::path::{Family, Path, Source, Target};
use super::range::RangeAction;
use super::series::{Change, Series, Step};
use super::{Fib, FibError};
use crate::next_hop_group::PATHS_MAX;

impl Fib {
    /// Add paths to the route that `source` gives for `prefix`; the route is made if need be. A
    /// path that is there already gets the new weight.
    ///
    /// # Errors
    /// The table does not exist, a path is invalid, or a table is full. Nothing changes then.
    pub fn add_route(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_one(table, prefix, source, Change::Add(0), paths)
    }

    /// [`add_route`](Self::add_route) for `count` consecutive prefixes of one length. All or none;
    /// callers that show progress use [`begin_range`](Self::begin_range).
    ///
    /// # Errors
    /// As for [`add_route`](Self::add_route), or the range leaves the address space.
    pub fn add_routes(
        &mut self,
        table: u32,
        first: IpPrefix,
        count: u64,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_range(table, first, count, source, RangeAction::Add(paths.to_vec())).map(|_| ())
    }

    /// Make `paths` the only ones of the route that `source` gives for `prefix`.
    ///
    /// # Errors
    /// As for [`add_route`](Self::add_route).
    pub fn replace_route(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_one(table, prefix, source, Change::Replace(0), paths)
    }

    fn change_one(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
        change: Change,
        paths: &[Path],
    ) -> Result<(), FibError> {
        let path_sets = [paths.to_vec()];
        let series = Series { table, source, path_sets: &path_sets };
        let done = match prefix {
            IpPrefix::V4(prefix) => self.plan_and_make(series, prefix, change),
            IpPrefix::V6(prefix) => self.plan_and_make(series, prefix, change),
        };
        self.sweep();
        done
    }

    pub(super) fn plan_and_make<A: Side>(
        &mut self,
        series: Series<'_>,
        prefix: Prefix<A>,
        change: Change,
    ) -> Result<(), FibError> {
        let outcomes = self.plan(series, &[(prefix, Step::Make(change))])?;
        self.make(series, &outcomes)
    }

    /// The paths of `group` and `paths`; of two that differ only in weight the later one.
    pub(super) fn union(&self, group: GroupId, paths: &[Path]) -> Vec<Path> {
        let known = self.lists.get(group).map_or(&[][..], |list| &list.key.paths);
        let kept = known.iter().filter(|old| !paths.iter().any(|new| new.is_same(old)));
        kept.chain(paths).copied().collect()
    }

    /// Take paths from the route that `source` gives for `prefix`; without any left it goes.
    /// A path's weight does not matter here.
    ///
    /// # Errors
    /// The table, the route or a path does not exist, or a table is out of memory.
    pub fn remove_paths(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.change_one(table, prefix, source, Change::RemovePaths(0), paths)
    }

    /// Remove the route that `source` gives for `prefix`.
    ///
    /// # Errors
    /// The table or the route does not exist, or a table is out of memory.
    pub fn remove_route(
        &mut self,
        table: u32,
        prefix: IpPrefix,
        source: Source,
    ) -> Result<(), FibError> {
        self.change_one(table, prefix, source, Change::Remove, &[])
    }

    /// Remove what `source` gives for `count` consecutive prefixes; returns how many there were.
    ///
    /// # Errors
    /// The table does not exist, the range leaves the address space, or a table is out of memory.
    pub fn remove_routes(
        &mut self,
        table: u32,
        first: IpPrefix,
        count: u64,
        source: Source,
    ) -> Result<u64, FibError> {
        self.change_range(table, first, count, source, RangeAction::Remove)
    }

    /// The group that stands for these paths, for packets of a kind that a feature sends there by
    /// a decision of its own; it follows interfaces, neighbours and routes as a route's does. Next
    /// hops without an interface are looked up in `table`. It stays until
    /// [`release_paths`](Self::release_paths); each hold needs one release.
    ///
    /// # Errors
    /// The table does not exist, a path is invalid, or there is no group left.
    pub fn hold_paths(
        &mut self,
        payload: impl Into<Link>,
        table: u32,
        paths: &[Path],
    ) -> Result<GroupId, FibError> {
        let payload = payload.into();
        let everything = everything_of(payload);
        self.check_table(table, everything)?;
        self.check_paths(payload, None, everything, paths)?;
        let group = self.list(payload, table, paths, false);
        if let Ok(group) = group {
            self.lists.hold(group, 1);
        }
        self.sweep();
        group
    }

    /// The paths of a group that is held are needed no more.
    pub fn release_paths(&mut self, group: GroupId) {
        self.lists.release(group);
        self.sweep();
    }

    /// The group that `source` gives for `prefix`.
    pub(super) fn said(&self, table: u32, prefix: IpPrefix, source: Source) -> Option<GroupId> {
        match prefix {
            IpPrefix::V4(prefix) => self.families.ip4.says(table, prefix, source),
            IpPrefix::V6(prefix) => self.families.ip6.says(table, prefix, source),
        }
    }

    pub(super) fn check_table(&self, table: u32, prefix: IpPrefix) -> Result<(), FibError> {
        let family = if prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 };
        if self.families.exists(family, table) {
            return Ok(());
        }
        Err(FibError::NoTableIndex { family, index: table })
    }

    /// Does the route make sense?
    pub(super) fn check(
        &self,
        table: u32,
        prefix: IpPrefix,
        paths: &[Path],
    ) -> Result<(), FibError> {
        self.check_table(table, prefix)?;
        let payload = if prefix.is_ip6() { Link::Ip6 } else { Link::Ip4 };
        self.check_paths(payload, Some(table), prefix, paths)
    }

    /// Do the paths make sense?
    pub(super) fn check_paths(
        &self,
        payload: Link,
        table: Option<u32>,
        prefix: IpPrefix,
        paths: &[Path],
    ) -> Result<(), FibError> {
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
            self.check_labels(payload, prefix, path)?;
            self.check_target(table, prefix, path.target)?;
        }
        Ok(())
    }

    /// Can these packets go by the path, with its labels?
    fn check_labels(&self, payload: Link, prefix: IpPrefix, path: &Path) -> Result<(), FibError> {
        let is_popped = matches!(payload, Link::Label { .. });
        let has_next_hop = matches!(
            path.target,
            Target::Via { .. }
                | Target::Through { .. }
                | Target::Neighbour { .. }
                | Target::ThroughLabel { .. }
                | Target::NextHopObject(_)
        );
        let fits = match path.target {
            Target::LabelLookupIn { .. } | Target::FrameRx(_) => is_popped,
            Target::LookupIn { .. } | Target::InterfaceRx(_) => {
                payload.family().is_some() || payload == (Link::Label { is_bottom: true })
            }
            Target::Drop | Target::Feature(_) => true,
            _ => has_next_hop || payload.family().is_some(),
        };
        if !fits {
            return Err(FibError::NotForLabels(prefix));
        }
        if !path.labels.is_empty() && !has_next_hop {
            return Err(FibError::LabelsNeedNextHop(prefix));
        }
        Ok(())
    }

    /// `table`: where the route itself stands, if it stands in one; none for paths of a feature.
    fn check_target(
        &self,
        table: Option<u32>,
        prefix: IpPrefix,
        target: Target,
    ) -> Result<(), FibError> {
        let interface = match target {
            Target::Via { next_hop, interface } => {
                // A feature may send to a group by an interface; a route may not.
                let is_group = table.is_none() && interface.is_some() && next_hop.is_multicast();
                if !is_unicast(next_hop) && !is_group {
                    return Err(FibError::BadNextHop(prefix, next_hop));
                }
                if interface.is_none() && is_link_local(next_hop) {
                    return Err(FibError::LinkLocalNeedsInterface(prefix, next_hop));
                }
                interface
            }
            Target::Neighbour { address, interface } => {
                if !is_unicast(address) {
                    return Err(FibError::BadNextHop(prefix, address));
                }
                Some(interface)
            }
            Target::Through { next_hop, table, .. } => {
                if !is_unicast(next_hop) || is_link_local(next_hop) {
                    return Err(FibError::BadNextHop(prefix, next_hop));
                }
                let family = Family::of(next_hop);
                if let Some(index) = table.filter(|table| !self.families.exists(family, *table)) {
                    return Err(FibError::NoTableIndex { family, index });
                }
                None
            }
            Target::Attached(interface)
            | Target::Broadcast { interface, .. }
            | Target::InterfaceRx(interface)
            | Target::FrameRx(interface) => Some(interface),
            Target::LabelLookupIn { table } | Target::ThroughLabel { table, .. } => {
                if !self.labels.exists(table) {
                    return Err(FibError::NoLabelTableIndex(table));
                }
                None
            }
            Target::SourceLookupIn { family, table: other } => {
                if !self.families.exists(family, other) {
                    return Err(FibError::NoTableIndex { family, index: other });
                }
                None
            }
            Target::LookupIn { family, table: other } => {
                if !self.families.exists(family, other) {
                    return Err(FibError::NoTableIndex { family, index: other });
                }
                if Some(other) == table && prefix.is_ip6() == (family == Family::Ip6) {
                    return Err(FibError::LookupInItself(prefix));
                }
                None
            }
            Target::Local
            | Target::InterfaceAddress
            | Target::Drop
            | Target::Unreachable
            | Target::Prohibit
            | Target::Punt
            | Target::NextHopObject(_)
            | Target::Feature(_) => None,
        };
        match interface {
            Some(interface) if !self.interfaces.contains_key(&interface) => {
                Err(FibError::NoInterface { asked: format!("route {prefix}"), interface })
            }
            _ => Ok(()),
        }
    }
}

/// The prefix that errors about paths for these packets name.
pub(super) fn everything_of(payload: Link) -> IpPrefix {
    match payload {
        Link::Ip6 => IpPrefix::V6(Prefix::new(0, 0)),
        _ => IpPrefix::V4(Prefix::new(0, 0)),
    }
}

/// An address that a single host may have on a link. Loopback addresses stay inside of a host (RFC
/// 1122 §3.2.1.3, RFC 4291 §2.5.3), and so do IPv4 addresses that are mapped into IPv6 (RFC 4291
/// §2.5.5.2).
pub(super) fn is_unicast(address: IpAddr) -> bool {
    let reserved = match address {
        IpAddr::V4(address) => address.octets()[0] == 0 || address.octets()[0] >= 224,
        IpAddr::V6(address) => address.to_ipv4_mapped().is_some(),
    };
    !address.is_multicast() && !address.is_unspecified() && !address.is_loopback() && !reserved
}

pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

pub(super) fn check_count(first: IpPrefix, count: u64) -> Result<(), FibError> {
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
    u64::try_from((last - number).saturating_add(1)).unwrap_or(u64::MAX)
}
