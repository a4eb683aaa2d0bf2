//! What the nodes of a graph are called, and which numbers of the protocols below them they claim.

use std::collections::HashMap;

use crate::ids::NodeId;

/// A number of a protocol whose packets a node wants: an ethertype, an IP protocol, a UDP port. The
/// node that sorts by it asks for the claims when it is made
/// ([`Wiring::claims`](crate::node::Wiring::claims)), so that neither has to know the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which numbers these are: `ethertype`, `ip4-protocol`, …
    pub space: &'static str,
    /// The number.
    pub number: u32,
    /// The node's name.
    pub node: &'static str,
}

/// Node numbers by name, and claims.
#[derive(Default)]
pub(crate) struct Directory {
    pub(crate) ids: HashMap<String, NodeId>,
    pub(crate) claims: Vec<Claim>,
}

impl Directory {
    /// The claims on numbers of `space` by nodes that are there.
    pub(crate) fn claims<'a>(&'a self, space: &'a str) -> impl Iterator<Item = (u32, NodeId)> + 'a {
        let of_space = self.claims.iter().filter(move |claim| claim.space == space);
        of_space.filter_map(|claim| Some((claim.number, *self.ids.get(claim.node)?)))
    }
}
