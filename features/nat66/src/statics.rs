//! Static mappings: hosts inside that are reached from outside, by a port or by an address of their
//! own.

use std::net::Ipv6Addr;

use quiver_bindings::{End, inside_key, outside_key};
use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_wire::IpProtocol;
use quiver_wire::ip6::address::is_unicast;

use crate::config::{
    Nat66, STATIC_MAPPINGS_MAX, end_sessions, hold, publish, table6, with_enabled, with_owner,
};
use crate::pool::{check_external, end_external};

/// A static mapping of a port as an operator names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StaticMapping {
    /// The host's address and port, or identifier.
    pub local: Ipv6Addr,
    pub local_port: u16,
    /// As others see it.
    pub external: Ipv6Addr,
    pub external_port: u16,
    pub protocol: IpProtocol,
}

/// A host with an external address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WholeMapping {
    pub local: Ipv6Addr,
    pub external: Ipv6Addr,
}

fn check_ends(nat: &Nat66, local: Ipv6Addr, external: Ipv6Addr) -> Result<(), Refusal> {
    if !is_unicast(local) {
        return Err(Refusal::new(format!("{local} is no address of a host")));
    }
    check_external(external)?;
    if nat.statics.len() + nat.whole.len() >= STATIC_MAPPINGS_MAX {
        let what = format!("there are {STATIC_MAPPINGS_MAX} static mappings already");
        return Err(Refusal::new(what));
    }
    Ok(())
}

fn taken(what: &str) -> Refusal {
    Refusal::new(what).remedy("`show nat66 static mappings` lists them")
}

fn unknown() -> Refusal {
    taken("there is no such static mapping")
}

/// Hold the table that a mapping's host is in, if it is not that of all.
fn hold_vrf(engine: &mut Engine, vrf: u32, held: bool) {
    if vrf != 0 {
        hold(engine, vrf, held);
    }
}

/// Map a host's port to an external one. Sessions that have one of both ends end.
///
/// # Errors
/// One of both ends has a static mapping, or is no host's; there are too many.
pub(crate) fn add(engine: &mut Engine, wanted: StaticMapping, vrf: u32) -> Result<(), Refusal> {
    let StaticMapping { local, local_port, external, external_port, protocol } = wanted;
    with_enabled(engine, |engine, nat| {
        if nat.statics.get(&wanted) == Some(&vrf) {
            return Ok(());
        }
        let inside_table = table6(engine, vrf)?;
        let outside_table = table6(engine, nat.enabled()?.outside_vrf)?;
        check_ends(nat, local, external)?;
        let is_taken = |(known, of): (&StaticMapping, &u32)| {
            known.protocol == protocol
                && ((known.external, known.external_port) == (external, external_port)
                    || (known.local, known.local_port, *of) == (local, local_port, vrf))
        };
        if nat.statics.iter().any(is_taken) {
            return Err(taken("one of both ends has a static mapping already"));
        }
        let is_whole = |(known, of): (&WholeMapping, &u32)| {
            known.external == external || (known.local, *of) == (local, vrf)
        };
        if nat.whole.iter().any(is_whole) {
            return Err(taken("one of both addresses has a static mapping already"));
        }
        let (host, end) =
            (local.to_bits(), End { address: external.to_bits(), port: external_port });
        end_sessions(engine, move |session| {
            let inside = session.inside();
            let is_host = inside.source == End { address: host, port: local_port };
            inside.protocol == protocol
                && (session.external() == end || (is_host && inside.table == inside_table))
        })?;
        let made = with_owner(engine, move |owner| {
            let inside = inside_key(host, local_port, protocol, inside_table);
            let outside = outside_key(end, protocol, outside_table);
            owner.bindings.bind(inside, outside, true).map_err(|error| error.to_string())
        })?;
        made.map_err(Refusal::new)?;
        nat.statics.insert(wanted, vrf);
        hold_vrf(engine, vrf, true);
        publish(engine, nat);
        Ok(())
    })
}

/// Take a static mapping of a port away. Its sessions end.
///
/// # Errors
/// There is none.
pub(crate) fn remove(engine: &mut Engine, wanted: StaticMapping, vrf: u32) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        if nat.statics.get(&wanted) != Some(&vrf) {
            return Err(unknown());
        }
        let table = table6(engine, vrf)?;
        nat.statics.remove(&wanted);
        hold_vrf(engine, vrf, false);
        publish(engine, nat);
        let StaticMapping { local, local_port, protocol, .. } = wanted;
        let host = local.to_bits();
        end_sessions(engine, move |session| {
            let inside = session.inside();
            let is_host = inside.source == End { address: host, port: local_port };
            is_host && (inside.table, inside.protocol) == (table, protocol)
        })?;
        with_owner(engine, move |owner| {
            let key = inside_key(host, local_port, protocol, table);
            if let Some(number) = owner.bindings.read.number(&key) {
                owner.bindings.unbind(number);
            }
        })
    })
}

/// Give a host an external address of its own. Sessions of both end.
///
/// # Errors
/// One of both addresses has a mapping, is in the pool, or is no host's; there are too many.
pub(crate) fn add_whole(
    engine: &mut Engine,
    wanted: WholeMapping,
    vrf: u32,
) -> Result<(), Refusal> {
    let WholeMapping { local, external } = wanted;
    with_enabled(engine, |engine, nat| {
        if nat.whole.get(&wanted) == Some(&vrf) {
            return Ok(());
        }
        let table = table6(engine, vrf)?;
        check_ends(nat, local, external)?;
        let whole = nat.whole.iter().map(|(known, of)| (known.local, known.external, *of));
        let ports = nat.statics.iter().map(|(known, of)| (known.local, known.external, *of));
        let is_taken = |(host, address, of)| address == external || (host, of) == (local, vrf);
        if whole.chain(ports).any(is_taken) {
            return Err(taken("one of both addresses has a static mapping already"));
        }
        if nat.pool.contains_key(&external) {
            return Err(Refusal::new(format!("{external} is in the pool"))
                .remedy(format!("nat66 add pool address {external} del")));
        }
        nat.whole.insert(wanted, vrf);
        hold_vrf(engine, vrf, true);
        publish(engine, nat);
        end_whole(engine, wanted, table)
    })
}

/// Take a host's external address away. Its sessions end.
///
/// # Errors
/// It has none.
pub(crate) fn remove_whole(
    engine: &mut Engine,
    wanted: WholeMapping,
    vrf: u32,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        if nat.whole.get(&wanted) != Some(&vrf) {
            return Err(unknown());
        }
        let table = table6(engine, vrf)?;
        nat.whole.remove(&wanted);
        hold_vrf(engine, vrf, false);
        publish(engine, nat);
        end_whole(engine, wanted, table)
    })
}

fn end_whole(engine: &mut Engine, mapping: WholeMapping, table: u32) -> Result<(), Refusal> {
    let host = mapping.local.to_bits();
    end_sessions(engine, move |session| {
        let inside = session.inside();
        (inside.source.address, inside.table) == (host, table)
    })?;
    end_external(engine, mapping.external, mapping.external)
}
