//! Makes next-hop groups of path lists, and resolves them again when what they depend on changes.

use std::sync::Arc;

use quiver_tables::GroupId;

use super::adjacencies::{AdjacencyBook, AdjacencyKey, Surroundings};
use super::link::Link;
use super::path::Path;
use super::path_list::{Dependencies, ListKey};
use super::resolve::{RECURSION_MAX, Resolver};
use super::{Fib, FibError};
use crate::next_hop_group::GroupSlots;

impl Fib {
    /// The group for these paths, made if there is none yet. A new one lives until the next
    /// [`sweep`](Self::sweep) unless a route takes it.
    pub(super) fn list(
        &mut self,
        payload: impl Into<Link>,
        table: u32,
        paths: &[Path],
        of_default: bool,
    ) -> Result<GroupId, FibError> {
        let (payload, mut paths) = (payload.into(), paths.to_vec());
        paths.sort_unstable();
        paths.dedup_by_key(|path| (path.preference, path.target, path.labels));
        let of_table =
            paths.len() > 1 || paths.iter().any(|path| path.is_recursive() || path.unfolds());
        let key = ListKey { payload, table: if of_table { table } else { 0 }, of_default, paths };
        if let Some(group) = self.lists.find(&key) {
            return Ok(group);
        }
        if self.lists.len() >= self.limits.path_lists {
            return Err(FibError::PathListsFull(self.limits.path_lists));
        }
        // Packets that get or have labels wait for a neighbour at further ones.
        let adjacencies = key.paths.iter().map(|path| {
            let is_labelled = payload.family().is_none() || !path.labels.is_empty();
            if is_labelled { 3 } else { 1 }
        });
        if !self.adjacencies.slots().has_room(adjacencies.sum()) {
            return Err(FibError::AdjacenciesFull(self.limits.adjacencies));
        }
        let (mut resolver, _) = self.resolver();
        let hops = resolver.hops(&key, None);
        let dependencies = resolver.dependencies;
        let fields = self.group_fields(payload, key.table);
        let resolved = self.lists.resolved(&key);
        let group = match resolved.map_or_else(|| self.groups.add_by(fields, &hops), Ok) {
            Ok(group) => group,
            Err(error) => {
                dependencies.adjacencies.iter().for_each(|key| self.adjacencies.drop_unused(*key));
                return Err(error.into());
            }
        };
        self.lists.add(group, Arc::new(key), hops);
        self.follow(group, dependencies);
        Ok(group)
    }

    /// A resolver, and beside it the groups, which it does not touch.
    pub(super) fn resolver(&mut self) -> (Resolver<'_, AdjacencyBook>, &mut GroupSlots) {
        let around = Surroundings {
            nodes: &self.nodes,
            label_nodes: self.label_nodes.as_ref(),
            label_routes: &self.labels,
            interfaces: &self.interfaces,
            neighbours: &self.neighbours,
            stacks: &self.stacks,
            objects: &self.objects,
            dead: &self.dead,
            counts: self.adjacencies.counts(),
        };
        let resolver = Resolver::new(around, &self.families, &self.lists, &mut self.adjacencies);
        (resolver, &mut self.groups)
    }

    /// Enter what `group` follows from now.
    pub(super) fn follow(&mut self, group: GroupId, now: Dependencies) {
        let Some(list) = self.lists.get_mut(group) else { return };
        let before = std::mem::replace(&mut list.dependencies, now.clone());
        if before == now {
            return;
        }
        self.lists.depend(group, &before, &now);
        now.adjacencies
            .difference(&before.adjacencies)
            .for_each(|key| self.adjacencies.add_user(*key, group));
        before
            .adjacencies
            .difference(&now.adjacencies)
            .for_each(|key| self.adjacencies.remove_user(*key, group));
    }

    /// Resolve these lists anew and publish what changed.
    pub(super) fn resolve_again(&mut self, groups: Vec<GroupId>) {
        let mut groups = groups;
        // Each round follows tunnels one deeper.
        for _ in 0..=RECURSION_MAX {
            let changed = self.resolve_round(groups);
            groups = self.lists_behind(&changed);
            if groups.is_empty() {
                return;
            }
        }
    }

    /// Resolve these lists anew once; returns those that changed.
    pub(super) fn resolve_round(&mut self, groups: Vec<GroupId>) -> Vec<GroupId> {
        let mut changed = Vec::new();
        for group in groups {
            let Some(key) = self.lists.get(group).map(|list| list.key.clone()) else { continue };
            let (mut resolver, _) = self.resolver();
            let hops = resolver.hops(&key, Some(group));
            let dependencies = resolver.dependencies;
            let fields = self.group_fields(key.payload, key.table);
            let Some(list) = self.lists.get_mut(group) else { continue };
            if list.hops != hops {
                if self.groups.replace_by(fields, group, &hops).is_err() {
                    // No buckets left: better one of the paths than an old one that is gone.
                    self.groups.replace_single(group, hops[0].0);
                }
                list.hops = hops;
                changed.push(group);
            }
            self.follow(group, dependencies);
        }
        changed
    }

    /// Let go of path lists that no route holds.
    pub(super) fn sweep(&mut self) {
        while let Some((group, list)) = self.lists.take_orphan() {
            let nothing = Dependencies::default();
            self.lists.depend(group, &list.dependencies, &nothing);
            list.dependencies
                .adjacencies
                .iter()
                .for_each(|key| self.adjacencies.remove_user(*key, group));
            self.groups.retire(group);
        }
    }

    /// See that the adjacencies of `keys` are as interfaces and neighbours say; a group
    /// that uses one that changes moves to its new slot by one store.
    pub(super) fn refresh_adjacencies(&mut self, keys: &[AdjacencyKey]) {
        let around = Surroundings {
            nodes: &self.nodes,
            label_nodes: self.label_nodes.as_ref(),
            label_routes: &self.labels,
            interfaces: &self.interfaces,
            neighbours: &self.neighbours,
            stacks: &self.stacks,
            objects: &self.objects,
            dead: &self.dead,
            counts: self.adjacencies.counts(),
        };
        let (mut old, mut users) = (Vec::new(), Vec::new());
        for key in keys {
            if let Some((index, who)) = self.adjacencies.refresh(*key, &around) {
                old.extend(index);
                users.extend(who);
            }
        }
        users.sort_unstable();
        users.dedup();
        self.resolve_again(users);
        old.into_iter().for_each(|index| self.adjacencies.slots().retire(index));
    }
}
