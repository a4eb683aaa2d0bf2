//! What workers read: for each interface its policies, in the order of their priority.

use std::sync::Arc;

use quiver_core::InterfaceId;
use quiver_tables::GroupId;
use quiver_tables::fib::Family;
use quiver_tables::ip::{Ip4, Ip6};
use quiver_tables::prefix::Address;

use crate::fields::{Compiled, Matched};

/// The policies as workers see them, replaced whole.
pub(crate) type Published = quiver_core::epoch::Published<Attached>;

/// A policy on an interface.
#[derive(Clone, Debug)]
pub(crate) struct Rule<A: Address> {
    pub matched: Compiled<A>,
    /// Its paths; none when it has none.
    pub group: Option<GroupId>,
    /// Do packets die when none of the paths can be used?
    pub drops: bool,
}

/// The policies of an interface, the most preferred first.
pub(crate) type Rules<A> = Arc<[Rule<A>]>;

/// By interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attached {
    ip4: Vec<Option<Rules<u32>>>,
    ip6: Vec<Option<Rules<u128>>>,
}

/// A family whose policies stand in [`Attached`].
pub(crate) trait Ruled: Matched {
    fn rules(attached: &Attached) -> &[Option<Rules<Self::Address>>];
    fn rules_mut(attached: &mut Attached) -> &mut Vec<Option<Rules<Self::Address>>>;
    /// The names of its nodes: this one, look-up, local, drop.
    const NODES: [&'static str; 4];
}

impl Ruled for Ip4 {
    fn rules(attached: &Attached) -> &[Option<Rules<u32>>] {
        &attached.ip4
    }
    fn rules_mut(attached: &mut Attached) -> &mut Vec<Option<Rules<u32>>> {
        &mut attached.ip4
    }
    const NODES: [&'static str; 4] = ["abf-input-ip4", "ip4-lookup", "ip4-local", "ip4-drop"];
}

impl Ruled for Ip6 {
    fn rules(attached: &Attached) -> &[Option<Rules<u128>>] {
        &attached.ip6
    }
    fn rules_mut(attached: &mut Attached) -> &mut Vec<Option<Rules<u128>>> {
        &mut attached.ip6
    }
    const NODES: [&'static str; 4] = ["abf-input-ip6", "ip6-lookup", "ip6-local", "ip6-drop"];
}

/// The arc and the node of a family.
pub(crate) fn place(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::Ip4 => ("ip4-unicast", Ip4::NODES[0]),
        Family::Ip6 => ("ip6-unicast", Ip6::NODES[0]),
    }
}

impl Attached {
    /// Let an interface have these policies.
    pub fn set<F: Ruled>(&mut self, interface: InterfaceId, rules: Vec<Rule<F::Address>>) {
        let places = F::rules_mut(self);
        if places.len() <= interface.index() {
            places.resize(interface.index() + 1, None);
        }
        places[interface.index()] = Some(rules.into());
    }

    /// The policies of an interface.
    #[inline(always)]
    pub fn get<F: Ruled>(&self, interface: InterfaceId) -> &[Rule<F::Address>] {
        F::rules(self).get(interface.index()).and_then(Option::as_deref).unwrap_or_default()
    }
}
