//! Prefixes and the pool as an operator changes them.

use std::net::Ipv4Addr;

use quiver_bindings::control::table_index;
use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;
use quiver_translation::versions::address::Prefix;
use quiver_wire::ip4::address::is_unicast;

use crate::config::{NamedPrefix, address_of, end_sessions, hold, publish, with_enabled};
use crate::tables::PREFIXES_MAX;

/// Addresses of the pool: they are looked through when one is chosen.
const POOL_ADDRESSES_MAX: usize = 4_096;

/// Let IPv4 addresses stand behind a prefix.
///
/// # Errors
/// There is a prefix for these hosts already, or no such table.
pub(crate) fn add_prefix(
    engine: &mut Engine,
    prefix: Prefix,
    tenant: Option<u32>,
) -> Result<(), Refusal> {
    if let Some(tenant) = tenant {
        table_index(engine, Family::Ip6, tenant)?;
    }
    with_enabled(engine, |engine, nat| {
        if let Some(known) = nat.prefixes.iter().find(|known| known.tenant == tenant) {
            if known.prefix == prefix {
                return Ok(());
            }
            let whose = tenant.map_or("all hosts".to_owned(), |id| format!("hosts of table {id}"));
            return Err(Refusal::new(format!("the prefix of {whose} is {}", known.route()))
                .remedy(format!("nat64 add prefix {} del", known.route())));
        }
        let number = (0..PREFIXES_MAX as u8)
            .find(|number| nat.prefixes.iter().all(|known| known.number != *number));
        let number = number
            .ok_or_else(|| Refusal::new(format!("there are {PREFIXES_MAX} prefixes already")))?;
        nat.prefixes.push(NamedPrefix { number, prefix, tenant });
        tenant.into_iter().for_each(|id| hold(engine, Family::Ip6, id, true));
        publish(engine, nat);
        Ok(())
    })
}

/// Take a prefix away. Its sessions end.
///
/// # Errors
/// There is no such prefix.
pub(crate) fn remove_prefix(
    engine: &mut Engine,
    prefix: Prefix,
    tenant: Option<u32>,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let is = |known: &NamedPrefix| (known.prefix, known.tenant) == (prefix, tenant);
        let Some(at) = nat.prefixes.iter().position(is) else {
            return Err(Refusal::new("there is no such prefix")
                .remedy("`show nat64 prefix` lists what there is"));
        };
        let number = nat.prefixes[at].number;
        // The log names remote hosts by the prefix: most sessions end while it is there.
        end_sessions(engine, move |session| session.inside().prefix == number)?;
        nat.prefixes.remove(at);
        tenant.into_iter().for_each(|id| hold(engine, Family::Ip6, id, false));
        publish(engine, nat);
        end_sessions(engine, move |session| session.inside().prefix == number)
    })
}

fn check_range(first: Ipv4Addr, last: Ipv4Addr) -> Result<usize, Refusal> {
    let (first_bits, last_bits) = (u32::from(first), u32::from(last));
    if first_bits > last_bits {
        return Err(Refusal::new(format!("{last} is before {first}")));
    }
    let count = (last_bits - first_bits) as usize;
    if count >= POOL_ADDRESSES_MAX {
        return Err(Refusal::new(format!(
            "{first} to {last} are more than the {POOL_ADDRESSES_MAX} addresses of a pool"
        )));
    }
    Ok(count + 1)
}

/// Add addresses to the pool.
///
/// # Errors
/// One is in the pool, or no host's; there are too many; there is no such table.
pub(crate) fn add_addresses(
    engine: &mut Engine,
    first: Ipv4Addr,
    last: Ipv4Addr,
    tenant: Option<u32>,
) -> Result<(), Refusal> {
    if let Some(tenant) = tenant {
        table_index(engine, Family::Ip6, tenant)?;
    }
    with_enabled(engine, |engine, nat| {
        let count = check_range(first, last)?;
        if nat.pool.len() + count > POOL_ADDRESSES_MAX {
            let now = nat.pool.len();
            return Err(Refusal::new(format!(
                "the pool has {now} addresses and may have {POOL_ADDRESSES_MAX}"
            )));
        }
        let range = || (u32::from(first)..=u32::from(last)).map(Ipv4Addr::from);
        if let Some(wrong) = range().find(|address| !is_unicast(*address)) {
            return Err(Refusal::new(format!("{wrong} is no address of a host")));
        }
        if let Some(known) = range().find(|address| nat.pool.contains_key(address)) {
            return Err(Refusal::new(format!("{known} is in the pool already"))
                .remedy("`show nat64 pool` lists the pool"));
        }
        for address in range() {
            nat.pool.insert(address, tenant);
            tenant.into_iter().for_each(|id| hold(engine, Family::Ip6, id, true));
        }
        publish(engine, nat);
        Ok(())
    })
}

/// Take addresses out of the pool. Their sessions end, but for those of static bindings.
///
/// # Errors
/// One is not in the pool.
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
                .remedy("`show nat64 pool` lists the pool"));
        }
        for address in range() {
            let tenant = nat.pool.remove(&address).flatten();
            tenant.into_iter().for_each(|id| hold(engine, Family::Ip6, id, false));
        }
        publish(engine, nat);
        end_external(engine, first.into(), last.into())
    })
}

/// End the sessions of external addresses, and those with them (hairpinning).
fn end_external(engine: &mut Engine, first: u32, last: u32) -> Result<(), Refusal> {
    end_sessions(engine, move |session| {
        let outside = session.outside();
        [outside.source.address, outside.destination.address]
            .iter()
            .any(|address| (first..=last).contains(address))
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
            Some(address) => end_external(engine, address.into(), address.into()),
            None => Ok(()),
        }
    })
}
