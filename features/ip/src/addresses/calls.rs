//! Addresses of interfaces as other features change them.

use std::net::{IpAddr, Ipv4Addr};

use quiver_control::IpPrefix;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::ip::InterfaceAddresses;
use quiver_wire::ip6::address::is_link_local;
use quiver_wire::{Ip4InterfaceAddress, Ip6InterfaceAddress};

use crate::addresses::{interfaces, leases};
use crate::state::IpState;

/// What they call.
pub(crate) const CALLS: InterfaceAddresses = InterfaceAddresses {
    add,
    remove,
    lease,
    lease6,
    release6,
    is_leased6,
    serve_client6,
    is_claimed,
    of,
    tables,
    changes,
};

fn add(engine: &mut Engine, id: InterfaceId, address: IpAddr, length: u8) -> Result<(), String> {
    match address {
        IpAddr::V6(own) if is_link_local(own) => interfaces::choose_link_local(engine, id, own),
        _ => interfaces::add(engine, id, IpPrefix { address, length }),
    }
    .map_err(|refusal| refusal.to_string())
}

fn remove(engine: &mut Engine, id: InterfaceId, address: IpAddr, length: u8) -> Result<(), String> {
    let length = match address {
        IpAddr::V6(own) if is_link_local(own) => 128,
        _ => length,
    };
    interfaces::remove(engine, id, IpPrefix { address, length })
        .map_err(|refusal| refusal.to_string())
}

fn lease(
    engine: &mut Engine,
    id: InterfaceId,
    wanted: Option<(Ipv4Addr, u8)>,
) -> Result<(), String> {
    let wanted = wanted.map(|(address, length)| Ip4InterfaceAddress::new(address, length));
    let wanted = wanted.transpose().map_err(|error| error.to_string())?;
    leases::lease(engine, id, wanted).map_err(|refusal| refusal.to_string())
}

fn lease6(
    engine: &mut Engine,
    id: InterfaceId,
    own: Ip6InterfaceAddress,
    deprecated: bool,
) -> Result<(), String> {
    leases::lease6(engine, id, own, deprecated).map_err(|refusal| refusal.to_string())
}

fn release6(engine: &mut Engine, id: InterfaceId, own: Ip6InterfaceAddress) -> Result<(), String> {
    match is_leased6(engine, id, own) {
        true => remove(engine, id, own.address().into(), own.length()),
        false => Ok(()),
    }
}

fn is_leased6(engine: &Engine, id: InterfaceId, own: Ip6InterfaceAddress) -> bool {
    let known = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&id));
    known.is_some_and(|known| known.is_leased6(own))
}

fn serve_client6(engine: &mut Engine, id: InterfaceId, wanted: bool) -> Result<(), String> {
    leases::serve_client6(engine, id, wanted).map_err(|refusal| refusal.to_string())
}

fn is_claimed(engine: &Engine, id: InterfaceId, address: IpAddr) -> bool {
    let known = engine.get::<IpState>().and_then(|ip| ip.ownerships.get(id, address));
    known.is_some_and(|known| known.conflicts > 0)
}

fn of(engine: &Engine, id: InterfaceId) -> Vec<(IpAddr, u8)> {
    let Some(own) = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&id)) else {
        return Vec::new();
    };
    let ip4 = own.ip4.iter().map(|own| (own.address().into(), own.length()));
    let ip6 = own.ip6.iter().chain(&own.chosen_link_local);
    ip4.chain(ip6.map(|own| (own.address().into(), own.length()))).collect()
}

fn tables(engine: &Engine, id: InterfaceId) -> [u32; 2] {
    let own = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&id));
    let (Some(own), Some(fib)) = (own, engine.get::<Fib>()) else { return [0; 2] };
    [(Family::Ip4, own.table4), (Family::Ip6, own.table6)]
        .map(|(family, table)| fib.table_id(family, table).unwrap_or(0))
}

fn changes(engine: &Engine) -> u64 {
    engine.get::<IpState>().map_or(0, |ip| ip.address_changes)
}
