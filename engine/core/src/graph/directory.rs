//! What the nodes of a graph are called, and which numbers of the protocols below them they claim.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use crate::ids::NodeId;

/// A number of a protocol whose packets a node wants: an ethertype, an IP protocol, a UDP port. The
/// node that sorts by it asks for the claims when it is made
/// ([`Wiring::claims`](crate::graph::node::Wiring::claims)), so that neither has to know the other.
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
    pub(crate) shared: Shared,
}

/// What features share with the nodes of others, one of each type.
pub(crate) type Shared = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl Directory {
    /// What was shared of this type.
    pub(crate) fn shared<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.shared.get(&TypeId::of::<T>())?.clone().downcast().ok()
    }

    /// The claims on numbers of `space` by nodes that are there.
    pub(crate) fn claims<'a>(&'a self, space: &'a str) -> impl Iterator<Item = (u32, NodeId)> + 'a {
        let of_space = self.claims.iter().filter(move |claim| claim.space == space);
        of_space.filter_map(|claim| Some((claim.number, *self.ids.get(claim.node)?)))
    }
}
