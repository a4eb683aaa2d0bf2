//! What local SIDs look up: addresses, each in the table that its SID names. Those of one table go
//! together.

use quiver_core::cpu::Variant;
use quiver_core::{NodeId, Packet};
use quiver_encap::decapsulated::InnerDestination;
use quiver_forwarding::fib::Family;
use quiver_forwarding::ip::{self, Ip4, Ip6, IpTables, choose};
use quiver_forwarding::next_hop_group::Hop;
use quiver_tables::GroupId;

use super::lookup_node::SidKey;

/// An address and the table to look it up in; the default is a packet for the slow path.
#[derive(Clone, Copy, Default)]
pub struct LookupKey {
    address: u128,
    /// The table's number, whether it is an inner packet, and the family; 0 for nothing.
    place: u32,
}

/// The families of places, the mark of inner packets, and how far left of them the number of the
/// table stands.
const FOUR: u32 = 1;
const SIX: u32 = 2;
const INNER: u32 = 4;
const TABLE_SHIFT: u32 = 3;
/// The answer to nothing.
const NOTHING: GroupId = GroupId(u32::MAX);
/// Keys that are looked up at a time.
const KEYS_AT_A_TIME: usize = 64;

impl LookupKey {
    /// In an IPv6 table.
    #[inline(always)]
    pub(crate) fn six(table: u32, address: u128) -> LookupKey {
        LookupKey { address, place: table << TABLE_SHIFT | SIX }
    }

    /// In an IPv4 table.
    #[inline(always)]
    pub(crate) fn four(table: u32, address: u32) -> LookupKey {
        LookupKey { address: address.into(), place: table << TABLE_SHIFT | FOUR }
    }

    /// For an inner packet, in the table of its family.
    #[inline(always)]
    pub(crate) fn inside(inner: InnerDestination, four: u32, six: u32) -> LookupKey {
        match inner {
            InnerDestination::Ip4(address) => LookupKey::four(four, address),
            InnerDestination::Ip6(address) => LookupKey::six(six, address),
        }
    }

    /// The same, for the destination of an inner packet that is left of what came.
    #[inline(always)]
    pub(crate) fn inner(self) -> LookupKey {
        LookupKey { place: self.place | INNER, ..self }
    }

    /// Is it the destination of an inner packet that goes on by itself?
    #[inline(always)]
    pub(crate) fn is_inner(self) -> bool {
        self.place & INNER != 0
    }

    #[inline(always)]
    fn is_four(self) -> bool {
        self.place & FOUR != 0
    }

    /// The family of the table.
    #[inline(always)]
    pub(crate) fn family(self) -> Family {
        if self.is_four() { Family::Ip4 } else { Family::Ip6 }
    }

    /// The table's number.
    #[inline(always)]
    pub(crate) fn table(self) -> u32 {
        self.place >> TABLE_SHIFT
    }

    /// Where a packet goes by what was found.
    #[inline(always)]
    pub(crate) fn choose(self, tables: &IpTables, found: GroupId, packet: &mut Packet) -> NodeId {
        match self.is_four() {
            true => choose::<Ip4>(&tables.groups, found, packet),
            false => choose::<Ip6>(&tables.groups, found, packet),
        }
    }
}

impl SidKey for LookupKey {
    #[inline(always)]
    fn is_nothing(self) -> bool {
        self.place == 0
    }

    #[inline(always)]
    fn find(tables: &IpTables, variant: Variant, keys: &[LookupKey], found: &mut [GroupId]) {
        for (keys, found) in keys.chunks(KEYS_AT_A_TIME).zip(found.chunks_mut(KEYS_AT_A_TIME)) {
            find_some(tables, variant, keys, found);
        }
    }
}

#[inline(always)]
fn find_some(tables: &IpTables, variant: Variant, keys: &[LookupKey], found: &mut [GroupId]) {
    let first = keys.iter().find(|key| !key.is_nothing()).copied().unwrap_or_default();
    let (mut differ, mut lacks) = (0, false);
    for key in keys {
        differ |= if key.place == 0 { 0 } else { (key.place ^ first.place) & !INNER };
        lacks |= key.place == 0;
    }
    if differ != 0 {
        return find_each(tables, keys, found);
    }
    if first.is_four() {
        let mut addresses = [0; KEYS_AT_A_TIME];
        keys.iter().zip(&mut addresses).for_each(|(key, address)| *address = key.address as u32);
        let addresses = addresses.get(..keys.len()).unwrap_or_default();
        tables.ip4.table(first.table()).lookup_uniform(variant, addresses, found);
    } else {
        let mut addresses = [0; KEYS_AT_A_TIME];
        keys.iter().zip(&mut addresses).for_each(|(key, address)| *address = key.address);
        let addresses = addresses.get(..keys.len()).unwrap_or_default();
        tables.ip6.table(first.table()).lookup_uniform(variant, addresses, found);
    }
    if lacks {
        mark_nothing(keys, found);
    }
}

/// For what was not asked nothing was found, which no table answers.
#[inline(never)]
fn mark_nothing(keys: &[LookupKey], found: &mut [GroupId]) {
    for (_, found) in keys.iter().zip(found).filter(|(key, _)| key.is_nothing()) {
        *found = NOTHING;
    }
}

/// The hop of all packets for which these were found, if they go one way and each has asked.
#[inline(always)]
pub(crate) fn one_hop(tables: &IpTables, found: &[GroupId]) -> Option<Hop> {
    if found.first() == Some(&NOTHING) { None } else { ip::one_hop(&tables.groups, found) }
}

/// Several tables are asked.
#[inline(never)]
fn find_each(tables: &IpTables, keys: &[LookupKey], found: &mut [GroupId]) {
    for (key, found) in keys.iter().zip(found) {
        *found = match key.is_four() {
            _ if key.is_nothing() => NOTHING,
            true => tables.ip4.table(key.table()).lookup(key.address as u32),
            false => tables.ip6.table(key.table()).lookup(key.address),
        };
    }
}
