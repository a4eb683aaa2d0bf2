//! What workers read: for each interface its policies, in the order of their priority.

use std::sync::Arc;

use quiver_access_lists::{Keyed, ListSlot};
use quiver_core::InterfaceId;
use quiver_core::graph::counters::{INTERFACES_MAX, PerWorker};
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{Ip4, Ip6};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;
use quiver_tables::prefix::Address;

use crate::fields::{Compiled, Matched};

/// Packets that a policy has decided about, and their bytes from the IP header on.
pub(crate) type Counts = PerWorker<2>;

/// A policy on an interface.
#[derive(Clone)]
pub(crate) struct Rule<A: Address> {
    /// What the policy itself says; nothing where it asks a list.
    pub matched: Compiled<A>,
    /// The list that it asks.
    pub list: Option<ListSlot>,
    /// Its paths; none when it has none.
    pub group: Option<GroupId>,
    /// Do packets die when none of the paths can be used?
    pub drops: bool,
    /// What is counted of the policy, wherever it is attached.
    pub counts: Arc<Counts>,
}

/// The policies of an interface, the most preferred first.
pub(crate) type Rules<A> = Box<[Rule<A>]>;

/// By interface, replaced one by one.
pub(crate) struct Attached {
    ip4: PublishedSlots<Rules<u32>>,
    ip6: PublishedSlots<Rules<u128>>,
}

/// A family whose policies stand in [`Attached`].
pub(crate) trait Ruled: Matched + Keyed {
    fn rules(attached: &Attached) -> &PublishedSlots<Rules<Self::Address>>;
    /// The names of its nodes: this one, look-up, local, drop.
    const NODES: [&'static str; 4];
    /// The name of the node where a policy of the interface asks a list.
    const LISTED: &'static str;
}

impl Ruled for Ip4 {
    fn rules(attached: &Attached) -> &PublishedSlots<Rules<u32>> {
        &attached.ip4
    }
    const NODES: [&'static str; 4] =
        ["abf-input-ip4", nodes::ip4::LOOKUP, nodes::ip4::LOCAL, nodes::ip4::DROP];
    const LISTED: &'static str = "abf-input-acl-ip4";
}

impl Ruled for Ip6 {
    fn rules(attached: &Attached) -> &PublishedSlots<Rules<u128>> {
        &attached.ip6
    }
    const NODES: [&'static str; 4] =
        ["abf-input-ip6", nodes::ip6::LOOKUP, nodes::ip6::LOCAL, nodes::ip6::DROP];
    const LISTED: &'static str = "abf-input-acl-ip6";
}

/// The arc of a family, and its nodes: without lists, and with.
pub(crate) fn place(family: Family) -> (&'static str, [&'static str; 2]) {
    match family {
        Family::Ip4 => ("ip4-unicast", [Ip4::NODES[0], Ip4::LISTED]),
        Family::Ip6 => ("ip6-unicast", [Ip6::NODES[0], Ip6::LISTED]),
    }
}

impl Attached {
    /// None attached.
    pub fn new(epochs: &Arc<Epochs>) -> Attached {
        let slots = INTERFACES_MAX;
        Attached {
            ip4: PublishedSlots::new(epochs, slots),
            ip6: PublishedSlots::new(epochs, slots),
        }
    }

    /// Let an interface have these policies.
    pub fn publish<F: Ruled>(&self, interface: InterfaceId, rules: Vec<Rule<F::Address>>) {
        F::rules(self).publish(interface.index(), (!rules.is_empty()).then(|| rules.into()));
    }

    /// The policies of an interface.
    #[inline(always)]
    pub fn get<'p, F: Ruled>(
        &self,
        interface: InterfaceId,
        pass: Pass<'p>,
    ) -> &'p [Rule<F::Address>] {
        F::rules(self).read(interface.index(), pass).map_or(&[], |rules| rules)
    }
}
