//! Who takes what is for the router itself: nodes claim IP protocols, UDP ports, ICMPv6 types, and
//! ICMPv6 errors about packets of the router's own by the protocol that those have behind the IPv6
//! header ([`GraphBuilder::claim`](quiver_core::graph::builder::GraphBuilder::claim)).

use quiver_core::NodeId;
use quiver_core::graph::node::Wiring;

/// The nodes that claim numbers of one space. There are few, so they are looked for one by one.
pub(crate) struct Claimed(Box<[(u32, NodeId)]>);

impl Claimed {
    /// All that is claimed of `space`.
    pub fn of(wiring: &Wiring<'_>, space: &str) -> Claimed {
        Claimed(wiring.claims(space).into_boxed_slice())
    }

    /// The node that wants packets with `number`.
    #[inline]
    pub fn node(&self, number: impl Into<u32>) -> Option<NodeId> {
        let number = number.into();
        self.0.iter().find(|(claimed, _)| *claimed == number).map(|(_, node)| *node)
    }
}
