//! What the control thread knows: locators, mappings of EIDs to them, and instances.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_control::IpPrefix;
use quiver_core::InterfaceId;

/// Mappings at most, configured and learned.
pub const MAPPINGS_MAX: usize = 1 << 16;
/// Locators of one mapping at most.
pub const LOCATORS_MAX: usize = 16;
/// Locator sets at most.
pub const LOCATOR_SETS_MAX: usize = 1_024;
/// The priority of a locator that must not be used (RFC 9300 §5.3, RFC 9301 §5.4).
pub const PRIORITY_UNUSED: u8 = 255;

/// An endpoint identifier: the instance and the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Eid {
    /// The instance ID (VNI).
    pub vni: u32,
    /// The prefix, without bits behind its length.
    pub prefix: IpPrefix,
}

impl Eid {
    /// Of an address with a length.
    pub fn new(vni: u32, prefix: IpPrefix) -> Eid {
        Eid { vni, prefix: prefix.network() }
    }

    /// Does it cover another one?
    pub fn covers(&self, inner: &Eid) -> bool {
        let (length, address) = (self.prefix.length, inner.prefix.address);
        self.vni == inner.vni
            && length <= inner.prefix.length
            && self.prefix.address.is_ipv4() == address.is_ipv4()
            && Eid::new(self.vni, IpPrefix { address, length }) == *self
    }
}

/// A routing locator of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Locator {
    /// Its address.
    pub address: IpAddr,
    /// Locators with the lowest are used.
    pub priority: u8,
    /// The share of the traffic among those.
    pub weight: u8,
}

/// What becomes of packets to an EID without locators (RFC 9301 §5.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// They are dropped as if there was no mapping.
    #[default]
    None,
    /// They go by the other routes of the table.
    NativelyForward,
    /// They are dropped, and a mapping is requested.
    SendMapRequest,
    /// They are dropped.
    Drop,
}

impl Action {
    /// All, by their numbers.
    pub const ALL: [Action; 4] =
        [Action::None, Action::NativelyForward, Action::SendMapRequest, Action::Drop];

    /// The word of commands.
    pub fn word(self) -> &'static str {
        match self {
            Action::None => "no-action",
            Action::NativelyForward => "natively-forward",
            Action::SendMapRequest => "send-map-request",
            Action::Drop => "drop",
        }
    }
}

/// Where an EID is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Its locators, in order.
    pub locators: Vec<Locator>,
    /// What is done where there are none.
    pub action: Action,
    /// When it is forgotten, of one that was learned.
    pub expires_ns: Option<u64>,
}

/// What an interface is in a locator set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalLocator {
    /// Locators with the lowest are used.
    pub priority: u8,
    /// The share of the traffic among those.
    pub weight: u8,
}

/// The locators of this router, by interface.
pub type LocatorSet = BTreeMap<InterfaceId, LocalLocator>;

/// All of it that operators configure, and what was learned.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// Is LISP enabled?
    pub is_enabled: bool,
    /// Is the header plain LISP, without a next protocol?
    pub is_plain: bool,
    /// Locator sets, by name.
    pub locator_sets: BTreeMap<String, LocatorSet>,
    /// The EIDs of this site, and their locator sets.
    pub local: BTreeMap<Eid, String>,
    /// Configured mappings.
    pub remote: BTreeMap<Eid, Mapping>,
    /// Learned mappings.
    pub learned: BTreeMap<Eid, Mapping>,
    /// The tables of instances; that of instance 0 is table 0.
    pub vrfs: BTreeMap<u32, u32>,
    /// Pairs of a local and a remote EID that operators have named.
    pub adjacencies: BTreeSet<(u32, IpPrefix, IpPrefix)>,
    /// Who is asked for mappings.
    pub resolvers: BTreeSet<IpAddr>,
    /// Who is given the mappings of this site.
    pub servers: BTreeSet<IpAddr>,
    /// The locator set of packets from elsewhere.
    pub pitr: Option<String>,
}

impl Database {
    /// The mapping of an EID: a configured one comes before a learned one.
    pub fn mapping(&self, eid: &Eid) -> Option<&Mapping> {
        self.remote.get(eid).or_else(|| self.learned.get(eid))
    }

    /// All EIDs with a mapping.
    pub fn mapped(&self) -> Vec<Eid> {
        let learned = self.learned.keys().filter(|eid| !self.remote.contains_key(eid));
        self.remote.keys().chain(learned).copied().collect()
    }

    /// Is there room for one more?
    pub fn has_room(&self) -> bool {
        self.remote.len() + self.learned.len() < MAPPINGS_MAX
    }

    /// Learned mappings that lie in no EID for which mappings are requested any more.
    pub fn uncovered(&self) -> Vec<Eid> {
        let requested: Vec<&Eid> = self.requested().collect();
        let learned = self.learned.keys();
        learned.filter(|eid| !requested.iter().any(|outer| outer.covers(eid))).copied().collect()
    }

    /// The EIDs for which mappings are requested.
    pub fn requested(&self) -> impl Iterator<Item = &Eid> {
        let requested = self.remote.iter().filter(|(_, mapping)| {
            mapping.locators.is_empty() && mapping.action == Action::SendMapRequest
        });
        requested.map(|(eid, _)| eid)
    }

    /// The table of an instance; `None` where the instance is not known.
    pub fn vrf(&self, vni: u32) -> Option<u32> {
        self.vrfs.get(&vni).copied().or((vni == 0).then_some(0))
    }

    /// Who uses a locator set.
    pub fn users_of(&self, set: &str) -> Option<String> {
        let eid = self.local.iter().find(|(_, used)| *used == set);
        let eid = eid.map(|(eid, _)| format!("EID {} of instance {}", eid.prefix, eid.vni));
        eid.or_else(|| self.pitr.as_deref().filter(|used| *used == set).map(|_| "pitr".to_owned()))
    }

    /// The EID of this site that has an address, the most specific one.
    pub fn local_with(&self, vni: u32, address: IpAddr) -> Option<(Eid, &str)> {
        let covers = |eid: &Eid| {
            let length = eid.prefix.length;
            eid.vni == vni && Eid::new(vni, IpPrefix { address, length }).prefix == eid.prefix
        };
        let all = self.local.iter().filter(|(eid, _)| covers(eid));
        let found = all.max_by_key(|(eid, _)| eid.prefix.length);
        found.map(|(eid, set)| (*eid, set.as_str()))
    }
}

/// Locators in the order in which they are written, without those that must not be used.
pub fn usable(locators: &[Locator]) -> impl Iterator<Item = &Locator> {
    // Where all weights are 0 they are equal (RFC 9301 §5.4).
    let all_zero = |priority: u8| {
        let same = locators.iter().filter(move |locator| locator.priority == priority);
        same.map(|locator| u32::from(locator.weight)).sum::<u32>() == 0
    };
    locators.iter().filter(move |locator| {
        locator.priority != PRIORITY_UNUSED && (locator.weight != 0 || all_zero(locator.priority))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> IpPrefix {
        let (address, length) = text.split_once('/').expect("a length");
        let address = address.parse().expect("an address");
        IpPrefix { address, length: length.parse().expect("a number") }
    }

    #[test]
    fn a_prefix_covers_what_lies_in_it() {
        let eid = |vni, text: &str| Eid::new(vni, prefix(text));
        assert!(eid(1, "10.0.0.0/8").covers(&eid(1, "10.1.2.3/32")));
        assert!(eid(1, "0.0.0.0/0").covers(&eid(1, "10.1.2.3/32")));
        assert!(!eid(2, "10.0.0.0/8").covers(&eid(1, "10.1.2.3/32")));
        assert!(!eid(1, "10.0.0.0/16").covers(&eid(1, "10.1.2.3/32")));
        assert!(!eid(1, "10.1.2.0/24").covers(&eid(1, "10.1.0.0/16")));
        assert!(!eid(1, "0.0.0.0/0").covers(&eid(1, "2001:db8::/32")));
    }

    #[test]
    fn the_most_specific_local_eid_has_an_address() {
        let mut database = Database::default();
        for (vni, eid, set) in
            [(0, "10.0.0.0/8", "a"), (0, "10.1.0.0/16", "b"), (7, "10.1.1.0/24", "c")]
        {
            database.local.insert(Eid::new(vni, prefix(eid)), set.to_owned());
        }
        let of = |vni, address: &str| {
            let address = address.parse().expect("an address");
            database.local_with(vni, address).map(|(_, set)| set)
        };
        assert_eq!(of(0, "10.1.1.1"), Some("b"));
        assert_eq!(of(0, "10.2.1.1"), Some("a"));
        assert_eq!(of(7, "10.1.1.1"), Some("c"));
        assert_eq!((of(0, "11.0.0.1"), of(0, "2001:db8::1")), (None, None));
    }

    #[test]
    fn a_weight_of_zero_takes_nothing_unless_all_are_zero() {
        let locator = |address: &str, priority, weight| Locator {
            address: address.parse().expect("an address"),
            priority,
            weight,
        };
        let all = [
            locator("192.0.2.1", 1, 0),
            locator("192.0.2.2", 1, 3),
            locator("192.0.2.3", 2, 0),
            locator("192.0.2.4", 2, 0),
            locator("192.0.2.5", 255, 9),
        ];
        let used: Vec<_> = usable(&all).map(|locator| locator.address.to_string()).collect();
        assert_eq!(used, ["192.0.2.2", "192.0.2.3", "192.0.2.4"]);
    }
}
