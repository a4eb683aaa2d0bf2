//! Named sets as workers ask them: addresses, ports, interfaces. A set changes by element, while
//! the lists that ask it stay compiled as they are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_classifier::{Classified, Key, Members};
use quiver_core::InterfaceId;
use quiver_core::cpu::Variant;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_tables::GroupId;
use quiver_tables::lpm::LpmSpace;

/// Keys that are asked about at once.
const BATCH: usize = 64;
/// Ports that there are.
const PORTS: usize = 1 << 16;

/// What a set has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Addresses,
    Ports,
    Interfaces,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Addresses, Kind::Ports, Kind::Interfaces];

    /// The word of its commands.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Addresses => "address-set",
            Kind::Ports => "port-set",
            Kind::Interfaces => "interface-set",
        }
    }

    /// What its elements are.
    pub const fn elements(self) -> &'static str {
        match self {
            Kind::Addresses => "addresses",
            Kind::Ports => "ports",
            Kind::Interfaces => "interfaces",
        }
    }
}

/// What of a packet a rule looks for in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    /// The interface that received it.
    Receiver,
}

impl Role {
    /// All, by number: as many as a rule asks for sets at most.
    pub const ALL: [Role; quiver_classifier::SETS_OF_RULE_MAX] =
        [Role::Source, Role::Destination, Role::SourcePort, Role::DestinationPort, Role::Receiver];

    /// Its word in a rule.
    pub const fn word(self) -> &'static str {
        match self {
            Role::Source => "src-set",
            Role::Destination => "dst-set",
            Role::SourcePort => "sport-set",
            Role::DestinationPort => "dport-set",
            Role::Receiver => "rx-set",
        }
    }

    /// The kind of set that it takes.
    pub const fn kind(self) -> Kind {
        match self {
            Role::Source | Role::Destination => Kind::Addresses,
            Role::SourcePort | Role::DestinationPort => Kind::Ports,
            Role::Receiver => Kind::Interfaces,
        }
    }
}

/// A bit for each number: one writer, many readers.
pub(crate) struct Bits(Box<[AtomicU64]>);

impl Bits {
    fn new(count: usize) -> Bits {
        Bits((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline(always)]
    fn has(&self, number: usize) -> bool {
        let word = self.0.get(number / 64).map_or(0, |word| word.load(Ordering::Relaxed));
        word >> (number % 64) & 1 != 0
    }

    /// Set or clear the bits from `first` to `last`.
    pub fn set(&self, first: usize, last: usize, are_in: bool) {
        for at in first / 64..=last / 64 {
            let low = if at == first / 64 { first % 64 } else { 0 };
            let high = if at == last / 64 { last % 64 } else { 63 };
            let mask = u64::MAX >> (63 - high) & u64::MAX << low;
            let Some(word) = self.0.get(at) else { return };
            let before = word.load(Ordering::Relaxed);
            let after = if are_in { before | mask } else { before & !mask };
            word.store(after, Ordering::Relaxed);
        }
    }
}

/// The addresses of a set: a prefix match of each family. What it finds is in the set.
pub(crate) struct Addresses {
    /// The set's table in both.
    pub table: u32,
    pub ip4: Arc<LpmSpace<u32>>,
    pub ip6: Arc<LpmSpace<u128>>,
}

/// What a set has, in the form that workers ask.
pub(crate) enum Content {
    Addresses(Addresses),
    Ports(Bits),
    Interfaces(Bits),
}

/// A set with its name.
pub(crate) struct NamedSet {
    pub name: String,
    pub content: Content,
}

impl NamedSet {
    pub fn addresses(name: String, addresses: Addresses) -> NamedSet {
        NamedSet { name, content: Content::Addresses(addresses) }
    }

    pub fn ports(name: String) -> NamedSet {
        NamedSet { name, content: Content::Ports(Bits::new(PORTS)) }
    }

    pub fn interfaces(name: String) -> NamedSet {
        NamedSet { name, content: Content::Interfaces(Bits::new(INTERFACES_MAX)) }
    }

    pub fn kind(&self) -> Kind {
        match self.content {
            Content::Addresses(_) => Kind::Addresses,
            Content::Ports(_) => Kind::Ports,
            Content::Interfaces(_) => Kind::Interfaces,
        }
    }

    /// The bits of a set of interfaces.
    pub fn mark_interface(&self, id: InterfaceId, is_in: bool) {
        if let Content::Interfaces(bits) = &self.content {
            bits.set(id.index(), id.index(), is_in);
        }
    }
}

impl fmt::Debug for NamedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind().word(), self.name)
    }
}

/// A family whose addresses stand in sets.
pub(crate) trait InSets: Classified {
    fn space(addresses: &Addresses) -> &LpmSpace<Self>;
}

impl InSets for u32 {
    fn space(addresses: &Addresses) -> &LpmSpace<u32> {
        &addresses.ip4
    }
}

impl InSets for u128 {
    fn space(addresses: &Addresses) -> &LpmSpace<u128> {
        &addresses.ip6
    }
}

/// A set, and what of a packet is looked for in it.
pub(crate) struct SetQuery {
    pub role: Role,
    pub set: Arc<NamedSet>,
}

impl<A: InSets> Members<A> for SetQuery {
    fn mark(&self, variant: Variant, keys: &[Key<A>], bit: u32, marks: &mut [u32]) {
        match (&self.set.content, self.role) {
            (Content::Addresses(set), Role::Source) => {
                mark_addresses(set, variant, keys, |key| key.source, bit, marks);
            }
            (Content::Addresses(set), Role::Destination) => {
                mark_addresses(set, variant, keys, |key| key.destination, bit, marks);
            }
            (Content::Ports(bits), Role::SourcePort) => {
                mark_ports(bits, keys, |key| key.source_port, bit, marks);
            }
            (Content::Ports(bits), Role::DestinationPort) => {
                mark_ports(bits, keys, |key| key.destination_port, bit, marks);
            }
            (Content::Interfaces(bits), Role::Receiver) => {
                for (key, mark) in keys.iter().zip(marks) {
                    *mark |= if bits.has(key.rx as usize) { bit } else { 0 };
                }
            }
            // A rule names no set of another kind: see `Acl::new`.
            _ => {}
        }
    }
}

#[inline(always)]
fn mark_addresses<A: InSets>(
    set: &Addresses,
    variant: Variant,
    keys: &[Key<A>],
    address: impl Fn(&Key<A>) -> A,
    bit: u32,
    marks: &mut [u32],
) {
    let table = A::space(set).table(set.table);
    for (keys, marks) in keys.chunks(BATCH).zip(marks.chunks_mut(BATCH)) {
        let (mut addresses, mut groups) = ([A::ZERO; BATCH], [GroupId(0); BATCH]);
        addresses.iter_mut().zip(keys).for_each(|(to, key)| *to = address(key));
        let count = keys.len().min(BATCH);
        table.lookup_slice(variant, &addresses[..count], &mut groups[..count]);
        for (group, mark) in groups.iter().zip(marks) {
            *mark |= if group.0 != 0 { bit } else { 0 };
        }
    }
}

/// Ports that are unknown are in every set, as in every range.
#[inline(always)]
fn mark_ports<A>(
    bits: &Bits,
    keys: &[Key<A>],
    port: impl Fn(&Key<A>) -> u16,
    bit: u32,
    marks: &mut [u32],
) {
    for (key, mark) in keys.iter().zip(marks) {
        let is_in = bits.has(port(key).into()) | (key.any_upper() != 0);
        *mark |= if is_in { bit } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_of_bits_are_set_as_one_by_one(
            ranges in prop::collection::vec((0usize..300, 0usize..200, any::<bool>()), 0..20),
        ) {
            let bits = Bits::new(500);
            let mut naive = [false; 500];
            for (first, more, are_in) in ranges {
                let last = (first + more).min(499);
                bits.set(first, last, are_in);
                naive[first..=last].fill(are_in);
            }
            for (at, is_in) in naive.into_iter().enumerate() {
                prop_assert_eq!(bits.has(at), is_in, "{}", at);
            }
            prop_assert!(!bits.has(PORTS), "what is out of range is in no set");
        }
    }
}
