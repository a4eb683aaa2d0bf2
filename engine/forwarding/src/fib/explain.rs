//! Explains why a path is used or not: the resolver walks once more, and makes nothing.

use std::fmt;
use std::net::IpAddr;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;

use super::Fib;
use super::adjacencies::{AdjacencyKey, Surroundings};
use super::path::Path;
use super::resolve::{Hops, RECURSION_MAX, Resolver, Scope};
use crate::next_hop_group::Hop;

/// Why nothing can be sent by a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// No path is left that could be used.
    NoPath,
    /// Its interface is down or gone.
    InterfaceDown(InterfaceId),
    /// The table of adjacencies is full.
    NoAdjacency,
    /// No route leads to the next hop.
    NoRoute(IpAddr),
    /// The route to the next hop leads back to this one.
    Loop(IpAddr),
    /// Next hops behind next hops without end.
    TooDeep,
    /// The route to the next hop is not for that address alone.
    NotHost(IpAddr),
    /// The next hop is not attached.
    NotAttached(IpAddr),
    /// The next hop is one of the router's own addresses.
    NextHopIsOurs,
    /// A tunnel whose outer destination is reached through itself.
    TunnelLoop(InterfaceId),
    /// The route to the next hop drops, punts, or leads into another table.
    NextHopDies,
    /// Nothing in the router handles labels.
    NoLabels,
    /// More labels than a path can have, with those of the routes behind its next hop.
    TooManyLabels,
    /// No labels can be put on what this interface sends.
    NoLabelsOn(InterfaceId),
    /// No route for this label.
    NoLabelRoute(u32),
    /// A liveness protocol says that the neighbour on this interface is down.
    NeighbourDown(InterfaceId, IpAddr),
    /// A liveness protocol over several hops says that the next hop is down.
    NextHopDown(IpAddr),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::NoPath => f.write_str("no path is left"),
            Unusable::InterfaceDown(interface) => {
                write!(f, "interface number {} is down", interface.0)
            }
            Unusable::NoAdjacency => f.write_str("the table of adjacencies is full"),
            Unusable::NoRoute(next_hop) => write!(f, "no route to {next_hop}"),
            Unusable::Loop(next_hop) => {
                write!(f, "the route to {next_hop} leads back to this one: a loop")
            }
            Unusable::TooDeep => write!(f, "more than {RECURSION_MAX} next hops behind each other"),
            Unusable::NotHost(next_hop) => write!(f, "no route for {next_hop} alone"),
            Unusable::NotAttached(next_hop) => write!(f, "{next_hop} is not attached"),
            Unusable::NextHopIsOurs => f.write_str("the next hop is the router's own address"),
            Unusable::TunnelLoop(interface) => {
                write!(f, "the tunnel of interface number {} would go through itself", interface.0)
            }
            Unusable::NeighbourDown(interface, address) => {
                write!(f, "{address} on interface number {} is down (show bfd)", interface.0)
            }
            Unusable::NextHopDown(address) => write!(f, "{address} is down (show bfd)"),
            Unusable::NextHopDies => f.write_str("the route to the next hop does not forward"),
            Unusable::NoLabels => f.write_str("the router is built without MPLS"),
            Unusable::TooManyLabels => write!(
                f,
                "more than {} labels with those of the routes behind the next hop",
                crate::out_labels::OUT_LABELS_MAX
            ),
            Unusable::NoLabelsOn(interface) => {
                write!(f, "interface number {} sends no labelled packets", interface.0)
            }
            Unusable::NoLabelRoute(label) => {
                write!(f, "no route for label {label} (show mpls fib)")
            }
        }
    }
}

/// What a path is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// It carries traffic.
    Used,
    /// It could, but paths with a lower preference do.
    Waits,
    /// It cannot.
    Unusable(Unusable),
}

/// Says whether an interface could send, and makes no adjacency.
struct Look;

impl Hops for Look {
    fn hop(&mut self, key: AdjacencyKey, around: &Surroundings<'_>) -> Option<Hop> {
        let next = around.nodes.ip4.rewrite; // any: the hop is not followed
        around
            .interfaces
            .get(&key.interface)
            .filter(|on| on.info.up)
            .map(|_| Hop { next, index: 0 })
    }
}

impl Fib {
    /// The paths of a group, as given, and what each of them is doing now.
    pub fn path_states(&self, group: GroupId) -> Vec<(Path, PathState)> {
        let Some(list) = self.lists.get(group) else { return Vec::new() };
        let mut used = None;
        let state = |path: &Path| {
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
            let mut look = Look;
            let mut resolver = Resolver::new(around, &self.families, &self.lists, &mut look);
            resolver.enter(Some(group));
            let state = match resolver.path(path, Scope::of(&list.key)) {
                Err(why) => PathState::Unusable(why),
                Ok(_) if *used.get_or_insert(path.preference) == path.preference => PathState::Used,
                Ok(_) => PathState::Waits,
            };
            (*path, state)
        };
        list.key.paths.iter().map(state).collect()
    }
}
