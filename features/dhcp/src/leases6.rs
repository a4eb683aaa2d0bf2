//! What leases of DHCPv6 clients change: addresses of interfaces, made of delegated prefixes, too,
//! and discard routes of these (RFC 7084 §4.3, WPD-5).

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_tables::prefix::IpPrefix;
use quiver_wire::{Ip6InterfaceAddress, Ip6Prefix};

use crate::client6::{Binding, Client6, IaType};
use crate::config::Dhcp;

/// Addresses that the operator makes of prefix groups at most.
pub const GROUP_ADDRESSES_MAX: usize = 4096;

/// An address of an interface that is made of each prefix of a group: the prefix's bits, then its
/// own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupAddress {
    /// The interface.
    pub interface: InterfaceId,
    /// The group's name.
    pub group: String,
    /// The bits behind the prefix.
    pub address: Ipv6Addr,
    /// The length of the address's own prefix.
    pub length: u8,
}

impl GroupAddress {
    /// The address that a prefix gives; `None` when the prefix is longer than the address's own
    /// one, or the address cannot be an interface's.
    pub fn with(&self, prefix: Ip6Prefix) -> Option<Ip6InterfaceAddress> {
        if prefix.length() > self.length {
            return None;
        }
        let host = self.address.to_bits() & !Ip6Prefix::mask_of(prefix.length());
        let address = Ipv6Addr::from_bits(prefix.bits() | host);
        Ip6InterfaceAddress::new(address, self.length).ok()
    }
}

/// A leased address, as the interface should have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leased {
    deprecated: bool,
    /// Why the interface does not have it.
    pub refused: Option<String>,
}

/// What was made of leases.
#[derive(Debug, Default)]
pub struct Leases6 {
    addresses: BTreeMap<(InterfaceId, Ip6InterfaceAddress), Leased>,
    /// Discard routes by table (a small number).
    discards: BTreeSet<(u32, Ip6Prefix)>,
}

impl Leases6 {
    /// Is nothing made of a lease?
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.discards.is_empty()
    }

    /// What became of an address.
    pub fn get(&self, id: InterfaceId, own: Ip6InterfaceAddress) -> Option<&Leased> {
        self.addresses.get(&(id, own))
    }

    /// Is the discard route of a prefix in this table (a small number)?
    pub fn is_discarded(&self, table: u32, prefix: Ip6Prefix) -> bool {
        self.discards.contains(&(table, prefix))
    }

    /// The interface is gone, with its addresses.
    pub fn forget_interface(&mut self, id: InterfaceId) {
        self.addresses.retain(|(on, _), _| *on != id);
    }
}

/// The prefixes that clients hold: the interface, the group, the binding.
pub(crate) fn prefixes(
    dhcp: &Dhcp,
) -> impl Iterator<Item = (InterfaceId, &str, Ip6Prefix, Binding)> {
    let clients = dhcp.clients6.iter().filter(|((_, ia_type), _)| *ia_type == IaType::Pd);
    clients.flat_map(|((id, _), client)| {
        let group = dhcp.pd_groups.get(id).map_or("", String::as_str);
        let held = client.bindings.iter().filter_map(|binding| {
            Some((Ip6Prefix::covering(binding.address, binding.length).ok()?, *binding))
        });
        held.map(move |(prefix, binding)| (*id, group, prefix, binding))
    })
}

fn wanted_addresses(
    dhcp: &Dhcp,
    now_ns: u64,
) -> BTreeMap<(InterfaceId, Ip6InterfaceAddress), bool> {
    let is_deprecated = |binding: &Binding| binding.preferred_until_ns <= now_ns;
    let clients = dhcp.clients6.iter().filter(|((_, ia_type), _)| *ia_type == IaType::Na);
    let leased = clients.flat_map(|((id, _), client): (_, &Client6)| {
        let held = client.bindings.iter().filter_map(|binding| {
            let own = Ip6InterfaceAddress::new(binding.address, binding.length).ok()?;
            Some((own, is_deprecated(binding)))
        });
        held.map(|(own, deprecated)| ((*id, own), deprecated))
    });
    let mut all: BTreeMap<_, _> = leased.collect();
    for (_, group, prefix, binding) in prefixes(dhcp) {
        for wanted in dhcp.group_addresses.iter().filter(|wanted| wanted.group == group) {
            if let Some(own) = wanted.with(prefix) {
                all.insert((wanted.interface, own), is_deprecated(&binding));
            }
        }
    }
    all
}

/// Make interfaces and tables follow the leases. `checks`: look whether interfaces still have what
/// they were given, and try again what was refused.
pub(crate) fn follow(engine: &mut Engine, dhcp: &mut Dhcp, checks: bool) {
    follow_addresses(engine, dhcp, checks);
    engine.with(|_, fib: &mut Fib| follow_discards(fib, dhcp));
}

fn follow_addresses(engine: &mut Engine, dhcp: &mut Dhcp, checks: bool) {
    let Some(calls) = engine.get::<InterfaceAddresses>().copied() else { return };
    let wanted = wanted_addresses(dhcp, engine.now_ns());
    let known = &mut dhcp.leases6.addresses;
    let gone: Vec<_> = known.keys().filter(|key| !wanted.contains_key(key)).copied().collect();
    for (id, own) in gone {
        known.remove(&(id, own));
        if let Err(error) = (calls.release6)(engine, id, own) {
            tracing::warn!("{}: the leased address {own}: {error}", engine.interface_name(id));
        }
    }
    for ((id, own), deprecated) in wanted {
        let old = known.get(&(id, own));
        let is_right = old.is_some_and(|old| old.deprecated == deprecated);
        let is_there = |engine: &Engine| (calls.is_leased6)(engine, id, own);
        if is_right && (!checks || is_there(engine)) {
            continue;
        }
        let refused = (calls.lease6)(engine, id, own, deprecated).err();
        let is_news = old.is_none_or(|old| old.refused != refused);
        if let Some(error) = refused.as_ref().filter(|_| is_news) {
            tracing::warn!("{}: the leased address {own}: {error}", engine.interface_name(id));
        } else if is_news {
            tracing::info!("{}: {own} is leased", engine.interface_name(id));
        }
        known.insert((id, own), Leased { deprecated, refused });
    }
}

/// What is in a delegated prefix, but not behind an interface, must not go back to the delegating
/// router, which would send it here again.
fn follow_discards(fib: &mut Fib, dhcp: &mut Dhcp) {
    let held = prefixes(dhcp).filter_map(|(id, _, prefix, _)| {
        let info = fib.interface(id)?;
        // The relay agent's route through a client of ours is of the same source.
        (!dhcp.prefixes.is_installed(&prefix)).then_some((info.ip6_table, prefix))
    });
    let wanted: BTreeSet<(u32, Ip6Prefix)> = held.collect();
    let place = |prefix: Ip6Prefix| IpPrefix::new(prefix.address().into(), prefix.length());
    let installed = std::mem::take(&mut dhcp.leases6.discards);
    for (table, prefix) in installed.difference(&wanted) {
        // It may be gone already with its table, or be the relay agent's by now.
        if !dhcp.prefixes.is_installed(prefix) {
            let _ = fib.remove_route(*table, place(*prefix), Source::Leased);
        }
    }
    let path = Path::new(Target::Unreachable);
    let is_in = |(table, prefix): &(u32, Ip6Prefix)| {
        installed.contains(&(*table, *prefix))
            || fib.replace_route(*table, place(*prefix), Source::Leased, &[path]).is_ok()
    };
    dhcp.leases6.discards = wanted.into_iter().filter(is_in).collect();
}

/// Is the discard route of a prefix that a client on this interface holds in its table?
pub(crate) fn is_discarded(
    engine: &Engine,
    dhcp: &Dhcp,
    id: InterfaceId,
    prefix: Ip6Prefix,
) -> bool {
    let info = engine.get::<Fib>().and_then(|fib| fib.interface(id));
    info.is_some_and(|info| dhcp.leases6.is_discarded(info.ip6_table, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(address: &str, length: u8, prefix: &str, prefix_length: u8) -> Option<String> {
        let (interface, group) = (InterfaceId(1), String::new());
        let address = address.parse().unwrap();
        let prefix = Ip6Prefix::covering(prefix.parse().unwrap(), prefix_length).unwrap();
        let own = GroupAddress { interface, group, address, length }.with(prefix);
        own.map(|own| own.to_string())
    }

    #[test]
    fn an_address_has_the_bits_of_its_prefix_and_its_own_behind_them() {
        let ours = "2001:db8:aa00::";
        assert_eq!(made("::7:0:0:0:1", 64, ours, 48).unwrap(), "2001:db8:aa00:7::1/64");
        assert_eq!(made("2a00::7:0:0:0:1", 64, ours, 60).unwrap(), "2001:db8:aa00:7::1/64");
        assert_eq!(made("::17:0:0:0:1", 64, ours, 60).unwrap(), "2001:db8:aa00:7::1/64");
        assert_eq!(made("::1", 64, ours, 64).unwrap(), "2001:db8:aa00::1/64");
        assert_eq!(made("::1", 56, ours, 64), None, "others have the rest of the /56");
        assert_eq!(made("::1", 128, ours, 128).unwrap(), "2001:db8:aa00::/128");
    }
}
