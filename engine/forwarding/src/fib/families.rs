//! The tables of both families, and what is the same in both.

use std::net::IpAddr;

use quiver_tables::GroupId;
use quiver_tables::lpm::Route;
use quiver_tables::prefix::{Address, Ip4Prefix, Ip6Prefix, IpPrefix, Prefix};

use super::family_tables::{FamilyTables, source_of};
use super::path::{Family, Source};

/// Both families' tables.
pub(super) struct Families {
    pub ip4: FamilyTables<u32>,
    pub ip6: FamilyTables<u128>,
}

impl Families {
    /// The route of the longest prefix that holds `address`.
    pub fn cover(&self, table: u32, address: IpAddr) -> Option<Cover> {
        match address {
            IpAddr::V4(address) => self.ip4.cover(table, address.to_bits()).map(Cover::of),
            IpAddr::V6(address) => self.ip6.cover(table, address.to_bits()).map(Cover::of),
        }
    }

    pub fn exists(&self, family: Family, table: u32) -> bool {
        match family {
            Family::Ip4 => self.ip4.exists(table),
            Family::Ip6 => self.ip6.exists(table),
        }
    }
}

/// The route that covers an address.
pub(super) struct Cover {
    pub group: GroupId,
    pub source: Source,
    /// Is it for that address alone?
    pub is_host: bool,
}

impl Cover {
    fn of<A: Address>((prefix, route): (Prefix<A>, Route)) -> Cover {
        let is_host = u32::from(prefix.len()) == A::BITS;
        Cover { group: route.group, source: source_of(route), is_host }
    }
}

/// An address whose family has tables.
pub(super) trait Side: Address {
    const FAMILY: Family;
    fn tables(families: &Families) -> &FamilyTables<Self>;
    fn tables_mut(families: &mut Families) -> &mut FamilyTables<Self>;
    fn ip_prefix(prefix: Prefix<Self>) -> IpPrefix;
}

impl Side for u32 {
    const FAMILY: Family = Family::Ip4;
    fn tables(families: &Families) -> &FamilyTables<u32> {
        &families.ip4
    }
    fn tables_mut(families: &mut Families) -> &mut FamilyTables<u32> {
        &mut families.ip4
    }
    fn ip_prefix(prefix: Ip4Prefix) -> IpPrefix {
        IpPrefix::V4(prefix)
    }
}

impl Side for u128 {
    const FAMILY: Family = Family::Ip6;
    fn tables(families: &Families) -> &FamilyTables<u128> {
        &families.ip6
    }
    fn tables_mut(families: &mut Families) -> &mut FamilyTables<u128> {
        &mut families.ip6
    }
    fn ip_prefix(prefix: Ip6Prefix) -> IpPrefix {
        IpPrefix::V6(prefix)
    }
}
