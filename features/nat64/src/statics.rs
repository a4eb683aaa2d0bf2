//! Static bindings: hosts inside that are reached from outside (RFC 6146 §3.1).

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_bindings::control::table_index;
use quiver_bindings::inside_key;
use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use quiver_translation::flow::End;
use quiver_wire::IpProtocol;
use quiver_wire::ip4::address::is_unicast;

use crate::bindings::outside_key;
use crate::config::{
    Enabled, Nat64, STATIC_BINDINGS_MAX, end_sessions, hold, publish, with_enabled, with_owner,
};

/// A static binding as an operator names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StaticBinding {
    /// The host's address and port, or identifier.
    pub local: Ipv6Addr,
    pub local_port: u16,
    /// As others see it.
    pub external: Ipv4Addr,
    pub external_port: u16,
    pub protocol: IpProtocol,
}

/// Small numbers of the tables of a binding's both sides.
fn tables(engine: &Engine, nat: &Nat64, vrf: u32) -> Result<(u32, u32), Refusal> {
    let Enabled { outside_vrf, .. } = nat.enabled()?;
    let inside = table_index(engine, Family::Ip6, vrf)?;
    Ok((inside, table_index(engine, Family::Ip4, outside_vrf)?))
}

/// Bind a host's end to an external one. Sessions that have one of both end.
///
/// # Errors
/// One of both ends has a static binding, or is no host's; there are too many.
pub(crate) fn add(engine: &mut Engine, wanted: StaticBinding, vrf: u32) -> Result<(), Refusal> {
    let StaticBinding { local, local_port, external, external_port, protocol } = wanted;
    if !quiver_wire::ip6::address::is_unicast(local) {
        return Err(Refusal::new(format!("{local} is no address of a host")));
    }
    if !is_unicast(external) {
        return Err(Refusal::new(format!("{external} is no address of a host")));
    }
    with_enabled(engine, |engine, nat| {
        if nat.statics.get(&wanted) == Some(&vrf) {
            return Ok(());
        }
        let (inside_table, outside_table) = tables(engine, nat, vrf)?;
        let is_taken = |(known, of): (&StaticBinding, &u32)| {
            known.protocol == protocol
                && ((known.external, known.external_port) == (external, external_port)
                    || (known.local, known.local_port, *of) == (local, local_port, vrf))
        };
        if nat.statics.iter().any(is_taken) {
            return Err(Refusal::new("one of both ends has a static binding already")
                .remedy("`show nat64 bib` lists them"));
        }
        if nat.statics.len() >= STATIC_BINDINGS_MAX {
            return Err(Refusal::new(format!(
                "there are {STATIC_BINDINGS_MAX} static bindings already"
            )));
        }
        let end = End { address: external.into(), port: external_port };
        let host = local.to_bits();
        end_sessions(engine, move |session| {
            let (inside, outside) = (session.inside(), session.outside());
            outside.protocol == protocol
                && (outside.destination == end
                    || (inside.host, inside.ports.source, inside.table)
                        == (host, local_port, inside_table))
        })?;
        let made = with_owner(engine, move |owner| {
            let inside = inside_key(host, local_port, protocol, inside_table);
            let outside = outside_key(end, protocol, outside_table);
            owner.bindings.bind(inside, outside, true).map_err(|error| error.to_string())
        })?;
        match made {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(Refusal::new(error)),
            None => return Err(Refusal::new("the worker that has the sessions did not answer")),
        }
        nat.statics.insert(wanted, vrf);
        if vrf != 0 {
            hold(engine, Family::Ip6, vrf, true);
        }
        publish(engine, nat);
        Ok(())
    })
}

/// Take a static binding away. Its sessions end.
///
/// # Errors
/// There is none.
pub(crate) fn remove(engine: &mut Engine, wanted: StaticBinding, vrf: u32) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        if nat.statics.get(&wanted) != Some(&vrf) {
            return Err(Refusal::new("there is no such static binding")
                .remedy("`show nat64 bib` lists them"));
        }
        let (inside_table, _) = tables(engine, nat, vrf)?;
        nat.statics.remove(&wanted);
        if vrf != 0 {
            hold(engine, Family::Ip6, vrf, false);
        }
        publish(engine, nat);
        let StaticBinding { local, local_port, protocol, .. } = wanted;
        let host = local.to_bits();
        end_sessions(engine, move |session| {
            let inside = session.inside();
            (inside.host, inside.ports.source, inside.table, inside.protocol)
                == (host, local_port, inside_table, protocol)
        })?;
        with_owner(engine, move |owner| {
            let key = inside_key(host, local_port, protocol, inside_table);
            if let Some(number) = owner.bindings.read.number(&key) {
                owner.bindings.unbind(number);
            }
        })?;
        Ok(())
    })
}
