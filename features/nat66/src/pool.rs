//! The pool as an operator changes it.

use std::net::Ipv6Addr;

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};
use quiver_wire::ip6::address::{is_link_local, is_unicast};

use crate::config::{Nat66, address_of, end_sessions, hold, publish, table6, with_enabled};

/// Addresses of the pool: they are looked through when one is chosen.
const POOL_ADDRESSES_MAX: usize = 4_096;

/// May an address be one that others see hosts by?
///
/// # Errors
/// It is no host's, or of one link alone.
pub(crate) fn check_external(address: Ipv6Addr) -> Result<(), Refusal> {
    if !is_unicast(address) || is_link_local(address) {
        return Err(Refusal::new(format!("{address} is no address that others can reach")));
    }
    Ok(())
}

fn check_range(first: Ipv6Addr, last: Ipv6Addr) -> Result<usize, Refusal> {
    let Some(count) = last.to_bits().checked_sub(first.to_bits()) else {
        return Err(Refusal::new(format!("{last} is before {first}")));
    };
    if count >= POOL_ADDRESSES_MAX as u128 {
        return Err(Refusal::new(format!(
            "{first} to {last} are more than the {POOL_ADDRESSES_MAX} addresses of a pool"
        )));
    }
    Ok(count as usize + 1)
}

fn range(first: Ipv6Addr, last: Ipv6Addr) -> impl Iterator<Item = Ipv6Addr> {
    (first.to_bits()..=last.to_bits()).map(Ipv6Addr::from_bits)
}

/// Is an address that of a host alone?
fn check_not_whole(nat: &Nat66, address: Ipv6Addr) -> Result<(), Refusal> {
    if nat.whole.keys().any(|mapping| mapping.external == address) {
        return Err(Refusal::new(format!("{address} is the external address of one host"))
            .remedy("`show nat66 static mappings` lists them"));
    }
    Ok(())
}

/// Add addresses to the pool.
///
/// # Errors
/// One is in the pool, or no host's; there are too many; there is no such table.
pub(crate) fn add_addresses(
    engine: &mut Engine,
    first: Ipv6Addr,
    last: Ipv6Addr,
    tenant: Option<u32>,
) -> Result<(), Refusal> {
    if let Some(tenant) = tenant {
        table6(engine, tenant)?;
    }
    with_enabled(engine, |engine, nat| {
        let count = check_range(first, last)?;
        if nat.pool.len() + count > POOL_ADDRESSES_MAX {
            let now = nat.pool.len();
            return Err(Refusal::new(format!(
                "the pool has {now} addresses and may have {POOL_ADDRESSES_MAX}"
            )));
        }
        for address in range(first, last) {
            check_external(address)?;
            check_not_whole(nat, address)?;
        }
        if let Some(known) = range(first, last).find(|address| nat.pool.contains_key(address)) {
            return Err(Refusal::new(format!("{known} is in the pool already"))
                .remedy("`show nat66 pool` lists the pool"));
        }
        for address in range(first, last) {
            nat.pool.insert(address, tenant);
            tenant.into_iter().for_each(|id| hold(engine, id, true));
        }
        publish(engine, nat);
        Ok(())
    })
}

/// Take addresses out of the pool. Their sessions end.
///
/// # Errors
/// One is not in the pool.
pub(crate) fn remove_addresses(
    engine: &mut Engine,
    first: Ipv6Addr,
    last: Ipv6Addr,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        check_range(first, last)?;
        if let Some(missing) = range(first, last).find(|address| !nat.pool.contains_key(address)) {
            return Err(Refusal::new(format!("{missing} is not in the pool"))
                .remedy("`show nat66 pool` lists the pool"));
        }
        for address in range(first, last) {
            let tenant = nat.pool.remove(&address).flatten();
            tenant.into_iter().for_each(|id| hold(engine, id, false));
        }
        publish(engine, nat);
        end_external(engine, first, last)
    })
}

/// End the sessions of external addresses, and those with them (hairpinning).
pub(crate) fn end_external(
    engine: &mut Engine,
    first: Ipv6Addr,
    last: Ipv6Addr,
) -> Result<(), Refusal> {
    let ended = first.to_bits()..=last.to_bits();
    end_sessions(engine, move |session| {
        let outside = session.outside();
        ended.contains(&outside.source.address) || ended.contains(&outside.destination.address)
    })
}

/// Let the first address of an interface be in the pool, or no more.
///
/// # Errors
/// It is that already.
pub(crate) fn set_pool_interface(
    engine: &mut Engine,
    id: InterfaceId,
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let changed =
            if on { nat.pool_interfaces.insert(id) } else { nat.pool_interfaces.remove(&id) };
        if !changed {
            let is = if on { "gives the pool its address already" } else { "gives the pool none" };
            return Err(Refusal::new(format!("{} {is}", engine.interface_name(id))));
        }
        publish(engine, nat);
        match address_of(engine, id).filter(|_| !on) {
            Some(address) => end_external(engine, address, address),
            None => Ok(()),
        }
    })
}
