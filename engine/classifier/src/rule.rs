//! A rule, as its owner writes it.

use quiver_tables::prefix::{Address, Prefix};

use crate::Key;
use crate::key::field;

/// A range of ports, or of ICMP types or codes; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortRange {
    /// The smallest.
    pub from: u16,
    /// The largest.
    pub to: u16,
}

impl PortRange {
    /// Every port.
    pub const ALL: PortRange = PortRange { from: 0, to: u16::MAX };

    /// One port.
    pub const fn one(port: u16) -> PortRange {
        PortRange { from: port, to: port }
    }

    /// How many more than one.
    pub(crate) fn span(self) -> u16 {
        self.to.saturating_sub(self.from)
    }
}

/// Sets that one rule asks for at most.
pub const SETS_OF_RULE_MAX: usize = 5;
/// In place of a set's number: no set.
pub const NO_SET: u16 = u16::MAX;

/// What a packet must have. Of a list of rules the first one that matches counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule<A: Address> {
    /// Its source is in it.
    pub source: Prefix<A>,
    /// Its destination is in it.
    pub destination: Prefix<A>,
    /// Its source port, or ICMP type, is in it.
    pub source_ports: PortRange,
    /// Its destination port, or ICMP code, is in it.
    pub destination_ports: PortRange,
    /// Its fields ([`field`]) have these values where `mask` has ones.
    pub value: u32,
    /// The fields that matter.
    pub mask: u32,
    /// It is in all sets of these numbers, places in the list that [`Classifier::with_sets`] takes;
    /// [`NO_SET`] asks for none.
    ///
    /// [`Classifier::with_sets`]: crate::Classifier::with_sets
    pub sets: [u16; SETS_OF_RULE_MAX],
    /// What is found when the rule matches: greater for every rule than for those before it.
    pub number: u32,
}

impl<A: Address> Rule<A> {
    /// A rule that matches everything.
    pub fn all(number: u32) -> Rule<A> {
        Rule {
            source: Prefix::ALL,
            destination: Prefix::ALL,
            source_ports: PortRange::ALL,
            destination_ports: PortRange::ALL,
            value: 0,
            mask: 0,
            sets: [NO_SET; SETS_OF_RULE_MAX],
            number,
        }
    }

    /// The numbers of the sets that it asks for.
    pub fn requested_sets(&self) -> impl Iterator<Item = u16> {
        self.sets.into_iter().filter(|set| *set != NO_SET)
    }

    /// The same rule, which asks for [`field::UPPER`] if it looks at the upper layer's header.
    #[must_use]
    pub(crate) fn completed(mut self) -> Rule<A> {
        let looks = self.source_ports != PortRange::ALL
            || self.destination_ports != PortRange::ALL
            || self.mask & field::TCP_FLAGS != 0;
        if looks {
            self.mask |= field::UPPER;
            self.value |= field::UPPER;
        }
        self.mask &= !field::ANY_UPPER;
        self.value &= self.mask;
        self
    }

    /// Does it match, where it asks for no set? The plain form of what the compiled ones answer.
    pub fn matches(&self, key: &Key<A>) -> bool {
        self.matches_in(key, |_| false)
    }

    /// The same of a packet that is in the sets for which `is_in` holds.
    pub fn matches_in(&self, key: &Key<A>, is_in: impl Fn(u16) -> bool) -> bool {
        let rule = self.completed();
        let ports = |range: PortRange, port: u16| (range.from..=range.to).contains(&port);
        rule.source.contains(key.source)
            && rule.destination.contains(key.destination)
            && (rule.value ^ key.fields) & rule.mask & key.compared() == 0
            && (key.any_upper() != 0
                || ports(rule.source_ports, key.source_port)
                    && ports(rule.destination_ports, key.destination_port))
            && self.requested_sets().all(is_in)
    }
}
