//! Stacked adjacencies: on the interface of a tunnel packets get a header stack, and go on by the
//! route of the outer destination (the underlay), which the FIB tracks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_core::{InterfaceId, NodeId};
use quiver_tables::GroupId;

use super::adjacencies::AdjacencyKey;
use super::path_list::PathLists;
use super::{Fib, PathState};

/// A header stack, and where its packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackedHop {
    /// The nodes that put it in front of IPv4 and IPv6 packets.
    pub nodes: [NodeId; 2],
    /// The encapsulation entry.
    pub entry: u32,
    /// The group of the outer destination, which the owner of the tunnel holds
    /// ([`Fib::hold_paths`]).
    pub underlay: GroupId,
}

/// The stacks of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stack {
    PointToPoint(StackedHop),
    /// By next hop.
    Multipoint(BTreeMap<IpAddr, StackedHop>),
}

impl Stack {
    pub fn is_multipoint(&self) -> bool {
        matches!(self, Stack::Multipoint(_))
    }

    pub fn hop(&self, next_hop: Option<IpAddr>) -> Option<&StackedHop> {
        match self {
            Stack::PointToPoint(hop) => Some(hop),
            Stack::Multipoint(hops) => hops.get(&next_hop?),
        }
    }
}

/// All stacks, by interface.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    by_interface: BTreeMap<InterfaceId, Stack>,
    /// Interfaces by the groups of their underlays.
    by_underlay: BTreeSet<(GroupId, InterfaceId)>,
}

impl Stacks {
    pub fn on(&self, interface: InterfaceId) -> Option<&Stack> {
        self.by_interface.get(&interface)
    }

    /// Has a next hop of a multipoint tunnel a stack?
    pub fn reaches(&self, interface: InterfaceId, next_hop: IpAddr) -> bool {
        match self.on(interface) {
            Some(Stack::Multipoint(hops)) => hops.contains_key(&next_hop),
            _ => false,
        }
    }

    /// Has any multipoint tunnel a next hop?
    pub fn has_next_hops(&self) -> bool {
        self.next_hops().next().is_some()
    }

    /// The next hops of multipoint tunnels.
    pub fn next_hops(&self) -> impl Iterator<Item = (IpAddr, InterfaceId)> {
        self.by_interface.iter().flat_map(|(id, stack)| {
            let hops = match stack {
                Stack::Multipoint(hops) => Some(hops),
                Stack::PointToPoint(_) => None,
            };
            hops.into_iter().flat_map(|hops| hops.keys().map(|next_hop| (*next_hop, *id)))
        })
    }

    /// Does what is sent to a next hop on `interface` come back to one of these lists, by the
    /// underlays of tunnels?
    pub fn lead_back(
        &self,
        interface: InterfaceId,
        next_hop: Option<IpAddr>,
        walk: &[GroupId],
        lists: &PathLists,
    ) -> bool {
        let mut seen = BTreeSet::new();
        let first = self.on(interface).and_then(|stack| stack.hop(next_hop));
        let mut open: Vec<GroupId> = first.map(|hop| hop.underlay).into_iter().collect();
        while let Some(underlay) = open.pop() {
            if walk.contains(&underlay) {
                return true;
            }
            if !seen.insert(underlay) {
                continue;
            }
            let Some(list) = lists.get(underlay) else { continue };
            for AdjacencyKey { interface, next_hop, .. } in &list.dependencies.adjacencies {
                open.extend(
                    self.on(*interface)
                        .and_then(|stack| stack.hop(*next_hop))
                        .map(|hop| hop.underlay),
                );
            }
        }
        false
    }

    fn enter(&mut self, interface: InterfaceId, stack: Option<Stack>) {
        self.by_underlay.retain(|(_, on)| *on != interface);
        match stack {
            Some(stack) => {
                let underlays: Vec<GroupId> = match &stack {
                    Stack::PointToPoint(hop) => vec![hop.underlay],
                    Stack::Multipoint(hops) => hops.values().map(|hop| hop.underlay).collect(),
                };
                self.by_underlay
                    .extend(underlays.into_iter().map(|underlay| (underlay, interface)));
                self.by_interface.insert(interface, stack);
            }
            None => {
                self.by_interface.remove(&interface);
            }
        }
    }
}

impl Fib {
    /// Let packets on the interface of a point-to-point tunnel get a header stack, or none.
    pub fn set_stack(&mut self, interface: InterfaceId, hop: Option<StackedHop>) {
        self.stacks.enter(interface, hop.map(Stack::PointToPoint));
        self.stack_changed(interface, hop);
    }

    /// Let the interface of a multipoint tunnel have a header stack for each next hop; none at
    /// first.
    pub fn set_multipoint(&mut self, interface: InterfaceId) {
        self.stacks.enter(interface, Some(Stack::Multipoint(BTreeMap::new())));
        self.stack_changed(interface, None);
    }

    /// Let packets to a next hop of a multipoint tunnel get a header stack, or none.
    pub fn set_stack_to(
        &mut self,
        interface: InterfaceId,
        next_hop: IpAddr,
        hop: Option<StackedHop>,
    ) {
        let mut hops = match self.stacks.on(interface) {
            Some(Stack::Multipoint(hops)) => hops.clone(),
            _ => BTreeMap::new(),
        };
        match hop {
            Some(hop) => hops.insert(next_hop, hop),
            None => hops.remove(&next_hop),
        };
        self.stacks.enter(interface, Some(Stack::Multipoint(hops)));
        self.stack_changed(interface, hop);
        // A peer without room for its route has none, as a neighbour.
        let _ = self.refresh_imports_of(interface, next_hop);
        self.sweep();
    }

    /// Has the interface a header stack for each next hop?
    pub fn is_multipoint(&self, interface: InterfaceId) -> bool {
        self.stacks.on(interface).is_some_and(Stack::is_multipoint)
    }

    /// Where the packets of a stack go now: why not, if so.
    pub fn underlay_state(&self, underlay: GroupId) -> Option<PathState> {
        self.path_states(underlay).first().map(|(_, state)| *state)
    }

    fn stack_changed(&mut self, interface: InterfaceId, hop: Option<StackedHop>) {
        let keys = self.adjacencies.on(interface);
        self.refresh_adjacencies(&keys);
        let underlay = hop.map(|hop| hop.underlay);
        self.resolve_again(underlay.into_iter().chain(self.lists.on(interface)).collect());
    }

    /// Lists that lead to tunnels whose underlays are among these groups.
    pub(super) fn lists_behind(&self, underlays: &[GroupId]) -> Vec<GroupId> {
        let mut lists = BTreeSet::new();
        for underlay in underlays {
            let all = (*underlay, InterfaceId(0))..=(*underlay, InterfaceId(u32::MAX));
            lists.extend(self.stacks.by_underlay.range(all).flat_map(|(_, on)| self.lists.on(*on)));
        }
        lists.into_iter().collect()
    }
}
