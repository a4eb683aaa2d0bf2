//! Addresses of the pool, and of the twice-NAT pool.

use std::net::Ipv4Addr;

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};
use quiver_wire::ip4::address::is_unicast;

use super::{
    Nat44, POOL_ADDRESSES_MAX, address_of, end_sessions, hold, publish, table_index, with_enabled,
};
use crate::bindings::Kind;
use crate::provider;
use crate::session::{Direction, Flags};

/// Add addresses to the pool.
pub(crate) fn add_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
    tenant: Option<u32>,
) -> Result<(), Refusal> {
    if let Some(tenant) = tenant {
        table_index(engine, tenant)?;
    }
    with_enabled(engine, |engine, nat| {
        let count = check_range(first, last)?;
        if nat.pool.len() + count > POOL_ADDRESSES_MAX {
            return Err(Refusal::new(format!(
                "the pool has {} addresses and may have {POOL_ADDRESSES_MAX}",
                nat.pool.len()
            )));
        }
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        if let Some(wrong) = range().find(|address| !is_unicast(*address)) {
            return Err(Refusal::new(format!("{wrong} is no address of a host")));
        }
        let has = |nat: &Nat44, address: &Ipv4Addr| {
            nat.pool.contains_key(address) || nat.dslite.pool.contains(address)
        };
        if let Some(known) = range().find(|address| has(nat, address)) {
            return Err(Refusal::new(format!("{known} is in the pool already"))
                .remedy("`show nat44 addresses` lists the pool"));
        }
        for address in range() {
            nat.pool.insert(address, tenant);
            tenant.into_iter().for_each(|tenant| hold(engine, tenant, true));
        }
        publish(engine, nat);
        Ok(())
    })
}

pub(crate) fn check_range(first: Ipv4Addr, last: Ipv4Addr) -> Result<usize, Refusal> {
    let (first_bits, last_bits) = (u32::from(first), u32::from(last));
    if first_bits > last_bits {
        return Err(Refusal::new(format!("{last} is before {first}")));
    }
    let count = (last_bits - first_bits) as usize + 1;
    if count > POOL_ADDRESSES_MAX {
        return Err(Refusal::new(format!(
            "{count} addresses are more than the {POOL_ADDRESSES_MAX} of a pool"
        )));
    }
    Ok(count)
}

/// Take addresses out of the pool. Their sessions end.
pub(crate) fn remove_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        check_range(first, last)?;
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        if let Some(missing) = range().find(|address| !nat.pool.contains_key(address)) {
            return Err(Refusal::new(format!("{missing} is not in the pool"))
                .remedy("`show nat44 addresses` lists the pool"));
        }
        for address in range() {
            let tenant = nat.pool.remove(&address).flatten();
            tenant.into_iter().for_each(|tenant| hold(engine, tenant, false));
        }
        publish(engine, nat);
        end_of_addresses(engine, first, last)
    })
}

/// End the sessions and bindings of external addresses.
pub(crate) fn end_of_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
) -> Result<(), Refusal> {
    let (first, last) = (u32::from(first), u32::from(last));
    end_sessions(engine, move |session| {
        let address = session.flow(Direction::OutToIn).destination.address;
        (first..=last).contains(&address)
    })?;
    provider::end_bindings(engine, move |binding| {
        let flow = binding.flow(Direction::OutToIn);
        binding.kind() != Kind::Subscriber && (first..=last).contains(&flow.destination.address)
    })
}

/// Add addresses to the twice-NAT pool, or remove them. Their sessions end.
pub(crate) fn set_twice_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
    on: bool,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let count = check_range(first, last)?;
        if on && nat.twice_pool.len() + count > POOL_ADDRESSES_MAX {
            return Err(Refusal::new(format!(
                "the twice-NAT pool may have {POOL_ADDRESSES_MAX} addresses"
            )));
        }
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        if let Some(wrong) = range().find(|address| on && !is_unicast(*address)) {
            return Err(Refusal::new(format!("{wrong} is no address of a host")));
        }
        if let Some(wrong) = range().find(|address| nat.twice_pool.contains(address) == on) {
            let is = if on { "in the twice-NAT pool already" } else { "not in the twice-NAT pool" };
            return Err(Refusal::new(format!("{wrong} is {is}"))
                .remedy("`show nat44 addresses` lists the pool"));
        }
        for address in range() {
            match on {
                true => nat.twice_pool.insert(address),
                false => nat.twice_pool.remove(&address),
            };
        }
        publish(engine, nat);
        if on {
            return Ok(());
        }
        let (first, last) = (u32::from(first), u32::from(last));
        end_sessions(engine, move |session| {
            let flow = session.flow(Direction::InToOut);
            session.flags().has(Flags::TWICE) && (first..=last).contains(&flow.destination.address)
        })
    })
}

/// Let the first address of an interface be in the pool, or no more.
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
            Some(address) => end_sessions(engine, move |session| {
                let flow = session.flow(Direction::OutToIn);
                flow.destination.address == u32::from(address)
            }),
            None => Ok(()),
        }
    })
}
