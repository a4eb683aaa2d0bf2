//! What workers read of the configuration, and the routes that make external addresses the router's
//! own.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use quiver_core::Engine;
use quiver_forwarding::fib::{Fib, Path, Source, Target};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_tables::prefix::IpPrefix;

use super::{Enabled, Nat44, address_of, table_index};
use crate::mappings;
use crate::softwires::SOFTWIRE;
use crate::tables::{PoolAddress, Rules};

/// All addresses that interfaces have.
fn own_addresses(engine: &Engine) -> BTreeSet<Ipv4Addr> {
    let Some(calls) = engine.get::<InterfaceAddresses>() else { return BTreeSet::new() };
    let all = engine.all_interfaces().flat_map(|interface| (calls.of)(engine, interface.id));
    all.filter_map(|(address, _)| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    })
    .collect()
}

/// Give workers what is configured now, and make external addresses the router's own.
pub(crate) fn publish(engine: &mut Engine, nat: &mut Nat44) {
    let Some(Enabled { inside_vrf, outside_vrf, .. }) = nat.enabled else { return };
    let own = own_addresses(engine);
    let table = |id: u32| table_index(engine, id).unwrap_or(0);
    let (inside_table, outside_table) = (table(inside_vrf), table(outside_vrf));
    let mut rules =
        Rules { forwarding: nat.forwarding, inside_table, outside_table, ..Rules::default() };
    let given = nat.pool.iter().map(|(address, tenant)| (*address, tenant.map(table)));
    let of_interfaces = nat.pool_interfaces.iter().filter_map(|id| address_of(engine, *id));
    let of_b4s = nat.dslite.pool.iter().map(|address| (*address, Some(SOFTWIRE)));
    let given = given.chain(of_b4s);
    for (address, tenant) in given.chain(of_interfaces.map(|address| (address, None))) {
        rules.pool.push(PoolAddress { address: address.into(), tenant });
        rules.external.insert(address.into(), own.contains(&address));
    }
    mappings::fill(engine, nat, &mut rules, &|address| own.contains(&address));
    rules.twice_pool = nat.twice_pool.iter().map(|address| u32::from(*address)).collect();
    let mask = |length: u8| u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
    rules.excluded =
        nat.excluded.iter().map(|(address, n)| (u32::from(*address), mask(*n))).collect();
    let routes = nat.vrf_tables.iter();
    rules.vrf_routes =
        routes.map(|(vrf, to)| (table(*vrf), to.iter().map(|to| table(*to)).collect())).collect();
    rules.aftr = nat.dslite.aftr();
    rules.provider = nat.settings.provider(table);
    let foreign = rules.external.iter().filter(|(_, is_own)| !**is_own);
    let wanted = foreign.map(|(address, _)| (outside_table, Ipv4Addr::from(*address))).collect();
    nat.shared.rules.publish(rules);
    nat.version += 1;
    set_routes(engine, nat, wanted);
}

/// Routes that make addresses the router's own, so that it answers ARP for them.
fn set_routes(engine: &mut Engine, nat: &mut Nat44, wanted: BTreeSet<(u32, Ipv4Addr)>) {
    let Some(fib) = engine.get_mut::<Fib>() else { return };
    let prefix = |address: &Ipv4Addr| IpPrefix::new((*address).into(), 32);
    for (table, address) in nat.routes.difference(&wanted) {
        let _ = fib.remove_route(*table, prefix(address), Source::Feature);
    }
    let mut now: BTreeSet<_> = nat.routes.intersection(&wanted).copied().collect();
    for place @ (table, address) in wanted.difference(&nat.routes) {
        let path = Path::new(Target::Local);
        if fib.add_route(*table, prefix(address), Source::Feature, &[path]).is_ok() {
            now.insert(*place);
        }
    }
    nat.routes = now;
}

/// Addresses of interfaces may have changed.
pub(crate) fn look(engine: &mut Engine) {
    let Some(calls) = engine.get::<InterfaceAddresses>().copied() else { return };
    let changes = (calls.changes)(engine);
    let is_due = |nat: &Nat44| nat.enabled.is_some() && nat.changes != changes;
    if engine.get::<Nat44>().is_some_and(is_due) {
        engine.with(|engine, nat: &mut Nat44| {
            nat.changes = changes;
            publish(engine, nat);
        });
    }
}
