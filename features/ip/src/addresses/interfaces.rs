//! Addresses and tables of interfaces, and what follows when an interface changes.

use std::net::{IpAddr, Ipv6Addr};

use quiver_control::{IpPrefix, Refusal, modes};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, FibError, InterfaceInfo};
use quiver_wire::ip6::address::is_link_local;
use quiver_wire::{Ip4InterfaceAddress, Ip6InterfaceAddress, MacAddress};

use crate::addresses::autoconfig;
use crate::addresses::duplicate_detection;
use crate::addresses::leases;
use crate::addresses::unnumbered;
use crate::neighbor::release;
use crate::state::{InterfaceIp, IpState, with_ip};

/// What the FIB must know of an interface; `None` when it is gone, or cannot route.
pub(crate) fn info(engine: &Engine, id: InterfaceId, ip: &InterfaceIp) -> Option<InterfaceInfo> {
    let interface = engine.interface(id).filter(|interface| !interface.passes_on_only)?;
    let row = interface.row();
    let mac = MacAddress(row.mac);
    Some(InterfaceInfo {
        id,
        output: row.output,
        mac: (mac != MacAddress::ZERO).then_some(mac),
        vlan_tags: row.encapsulation.bytes().to_vec(),
        mtu_bytes: row.mtu_bytes.min(u32::from(u16::MAX)) as u16,
        family_mtu_bytes: ip.family_mtu_bytes(
            ["ip4", "ip6"].map(|protocol| interface.protocol_mtu_bytes(protocol)),
        ),
        mpls_mtu_bytes: interface.protocol_mtu_bytes("mpls"),
        up: row.up,
        ip4_table: ip.table4,
        ip6_table: ip.table6,
    })
}

/// Make the FIB follow an interface.
pub(crate) fn follow_interface(engine: &mut Engine, id: InterfaceId, change: InterfaceChange) {
    let result = with_ip(engine, |engine, ip, fib| {
        if engine.interface(id).is_some_and(|interface| interface.passes_on_only) {
            return Ok(()); // the FIB never knew it
        }
        if change == InterfaceChange::Deleted {
            ip.punts.forget_interface(fib, id);
            let gone = fib.remove_interface(id);
            ip.forget(id);
            unnumbered::follow_lender(engine, ip, fib, id);
            ip.publish(fib);
            return gone;
        }
        let configured = ip.interface(id).clone();
        let Some(info) = info(engine, id, &configured) else { return Ok(()) };
        let down = !info.up;
        fib.set_interface(info)?;
        if change == InterfaceChange::State && down {
            forget_learned(fib, id)?;
        }
        if change == InterfaceChange::Mac {
            fit_link_local(engine, ip, fib, id)?;
        }
        duplicate_detection::follow(engine, ip, fib, id, change == InterfaceChange::State)?;
        unnumbered::follow_lender(engine, ip, fib, id);
        ip.publish(fib);
        Ok(())
    });
    if let Err(error) = result {
        tracing::warn!("{}: {}", engine.interface_name(id), Refusal::of_table(engine, error));
    }
    if change == InterfaceChange::Deleted {
        release::forget_interface(engine, id);
    }
    if matches!(change, InterfaceChange::Mac | InterfaceChange::Moved) {
        duplicate_detection::announce(engine, id, None);
    }
}

/// Behind a link that went down others may stand when it comes back: what was learned there is
/// asked for again.
fn forget_learned(fib: &mut Fib, id: InterfaceId) -> Result<(), FibError> {
    let on = fib.neighbours().on(id);
    let learned: Vec<_> =
        on.filter(|(_, known)| !known.state.is_fixed()).map(|(address, _)| address).collect();
    learned.into_iter().try_for_each(|address| fib.remove_neighbour(id, address))
}

/// The link-local address that an interface should have: chosen, or made of its MAC address
/// (RFC 4291 §2.5.6, appendix A), or, without one, of its number.
fn wanted_link_local(
    engine: &Engine,
    id: InterfaceId,
    ip: &InterfaceIp,
) -> Option<Ip6InterfaceAddress> {
    if !ip.speaks_ip6() || ip.chosen_link_local.is_some() {
        return ip.chosen_link_local;
    }
    let mac = engine.interface(id).map(|interface| MacAddress(interface.row().mac))?;
    let mac = if mac == MacAddress::ZERO {
        MacAddress::from_u64(0x0200_0000_0000 | u64::from(id.0))
    } else {
        mac
    };
    Ip6InterfaceAddress::new(mac.link_local(), 128).ok()
}

/// Make the link-local address in the FIB the one that the interface should have.
pub(crate) fn fit_link_local(
    engine: &Engine,
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
) -> Result<(), FibError> {
    let wanted = wanted_link_local(engine, id, ip.interface(id));
    let interface = ip.interface(id);
    if interface.link_local == wanted {
        return Ok(());
    }
    if let Some(wanted) = wanted {
        fib.enable_ip6(id)?;
        fib.add_address(id, wanted.address().into(), 128)?;
    }
    let old = std::mem::replace(&mut interface.link_local, wanted);
    if let Some(old) = old {
        fib.remove_address(id, old.address().into(), 128)?;
    }
    Ok(())
}

fn bad_length(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

/// Refuse when packets of the router's could not leave by this interface.
pub(crate) fn check_routes(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    if engine.interface(id).is_some_and(|interface| interface.passes_on_only) {
        let name = engine.interface_name(id);
        return Err(Refusal::new(format!(
            "{name} cannot route: its frames have not all the same tags"
        ))
        .remedy("create the sub-interface with exact-match, and one VLAN in each tag"));
    }
    modes::check_free(engine, id)
}

/// Refuse what would make an interface another's while it routes: it would receive nothing more.
pub(crate) fn stays(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    let ip = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&id));
    if ip.is_some_and(|ip| ip.autoconfig.is_some()) {
        let name = engine.interface_name(id);
        return Err(Refusal::new(format!("{name} takes addresses that routers advertise"))
            .remedy(autoconfig::remedy(&name)));
    }
    if ip.is_some_and(|ip| ip.has_client6) {
        let name = engine.interface_name(id);
        return Err(
            Refusal::new(format!("{name} has a DHCPv6 client")).remedy(leases::remedy(&name))
        );
    }
    if ip.is_some_and(|ip| ip.nd_mirror || !ip.nd_proxies.is_empty()) {
        let name = engine.interface_name(id);
        return Err(Refusal::new(format!("{name} answers solicitations for other hosts"))
            .remedy("`show ip6 nd proxy` says for which; take that away first"));
    }
    if !ip.is_some_and(|ip| ip.has_own() || ip.enabled6 || ip.unnumbered.is_some()) {
        return Ok(());
    }
    let name = engine.interface_name(id);
    Err(Refusal::new(format!("{name} has addresses, for which it would receive nothing more"))
        .remedy(format!("`show interface address {name}`; take them away first")))
}

/// Give an interface an address.
pub(crate) fn add(engine: &mut Engine, id: InterfaceId, prefix: IpPrefix) -> Result<(), Refusal> {
    check_routes(engine, id)?;
    unnumbered::refuse_borrower(engine, id)?;
    let done = with_ip(engine, |engine, ip, fib| -> Result<Result<(), FibError>, Refusal> {
        let is_given = ip.has(id, prefix) && !ip.interface(id).has_leased6(prefix.address);
        if ip.replacing.give_address(id, prefix.address, prefix.length) && is_given {
            return Ok(Ok(()));
        }
        let yielded = autoconfig::yield_address(engine, ip, fib, id, prefix.address)
            .and_then(|()| leases::yield_address(engine, ip, fib, id, prefix.address));
        if let Err(error) = yielded {
            return Ok(Err(error));
        }
        let mut changed = ip.interface(id).clone();
        match prefix.address {
            IpAddr::V4(address) => {
                changed
                    .ip4
                    .push(Ip4InterfaceAddress::new(address, prefix.length).map_err(bad_length)?);
            }
            IpAddr::V6(address) => {
                let own = Ip6InterfaceAddress::new(address, prefix.length).map_err(bad_length)?;
                if is_link_local(address) {
                    if let Some(old) = changed.chosen_link_local {
                        let what = format!(
                            "{} has the link-local address {old}",
                            engine.interface_name(id)
                        );
                        return Err(Refusal::new(what).remedy("delete it first"));
                    }
                    changed.chosen_link_local = Some(own);
                } else {
                    changed.ip6.push(own);
                }
            }
        }
        Ok(apply(engine, ip, fib, id, changed, Some((prefix, true))))
    })?;
    done.map_err(|error| Refusal::of_table(engine, error))
}

/// Let an interface have this link-local address instead of the one that it has.
pub(crate) fn choose_link_local(
    engine: &mut Engine,
    id: InterfaceId,
    address: Ipv6Addr,
) -> Result<(), Refusal> {
    let own = Ip6InterfaceAddress::new(address, 128).map_err(bad_length)?;
    change(engine, id, |changed| changed.chosen_link_local = Some(own))
}

/// Let an interface speak IPv6 without an address of its own choice, or no more.
pub(crate) fn enable_ip6(
    engine: &mut Engine,
    id: InterfaceId,
    enabled: bool,
) -> Result<(), Refusal> {
    change(engine, id, |changed| changed.enabled6 = enabled)
}

/// Change what is configured on an interface beside its addresses.
pub(crate) fn change(
    engine: &mut Engine,
    id: InterfaceId,
    change: impl FnOnce(&mut InterfaceIp),
) -> Result<(), Refusal> {
    check_routes(engine, id)?;
    let done = with_ip(engine, |engine, ip, fib| {
        let mut changed = ip.interface(id).clone();
        change(&mut changed);
        apply(engine, ip, fib, id, changed, None)
    });
    done.map_err(|error| Refusal::of_table(engine, error))
}

/// Take an address from an interface.
pub(crate) fn remove(
    engine: &mut Engine,
    id: InterfaceId,
    prefix: IpPrefix,
) -> Result<(), Refusal> {
    let done = with_ip(engine, |engine, ip, fib| {
        let mut changed = ip.interface(id).clone();
        let matches =
            |address: IpAddr, length: u8| address == prefix.address && length == prefix.length;
        changed.ip4.retain(|own| !matches(own.address().into(), own.length()));
        changed.leased = changed.leased.filter(|own| changed.ip4.contains(own));
        changed.ip6.retain(|own| !matches(own.address().into(), own.length()));
        changed.leased6.retain(|leased| changed.ip6.contains(&leased.own));
        if changed.chosen_link_local.is_some_and(|own| matches(own.address().into(), own.length()))
        {
            changed.chosen_link_local = None;
        } else if prefix.as_ip6().is_some_and(|(address, _)| is_link_local(address)) {
            return Err(FibError::NoAddress(prefix.address, prefix.length, id));
        }
        apply(engine, ip, fib, id, changed, Some((prefix, false)))
    });
    done.map_err(|error| Refusal::of_table(engine, error))
}

/// Change the FIB first, and what workers see after it; a refused change leaves all as it was.
pub(super) fn apply(
    engine: &Engine,
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
    changed: InterfaceIp,
    address: Option<(IpPrefix, bool)>,
) -> Result<(), FibError> {
    // Link-local addresses are seen to by `fit_link_local`.
    let own = address
        .filter(|(prefix, _)| prefix.as_ip6().is_none_or(|(address, _)| !is_link_local(address)));
    match own {
        Some((prefix, true)) => fib.add_address(id, prefix.address, prefix.length)?,
        Some((prefix, false)) => fib.remove_address(id, prefix.address, prefix.length)?,
        None => {}
    }
    ip.address_changes += 1;
    let before = std::mem::replace(ip.interface(id), changed);
    if let Err(error) = fit_link_local(engine, ip, fib, id) {
        *ip.interface(id) = before;
        if let Some((prefix, true)) = own {
            let _ = fib.remove_address(id, prefix.address, prefix.length);
        }
        return Err(error);
    }
    let followed = duplicate_detection::follow(engine, ip, fib, id, false);
    unnumbered::follow_lender(engine, ip, fib, id);
    ip.publish(fib);
    followed
}

/// Let packets of an interface be looked up in a table.
pub(crate) fn bind(
    engine: &mut Engine,
    id: InterfaceId,
    family: Family,
    table: u32,
) -> Result<(), Refusal> {
    check_routes(engine, id)?;
    unnumbered::refuse_borrower(engine, id)?;
    unnumbered::refuse_lender(engine, id)?;
    let done = with_ip(engine, |engine, ip, fib| {
        let index =
            fib.table_index(family, table).ok_or(FibError::NoTable { family, id: table })?;
        if family == Family::Ip6
            && ip.interface(id).table6 != index
            && !ip.interface(id).nd_proxies.is_empty()
        {
            let table = fib.table_id(family, ip.interface(id).table6).unwrap_or(0);
            return Err(FibError::TableInUse {
                family,
                id: table,
                user: "hosts of `show ip6 nd proxy`".into(),
            });
        }
        let mut changed = ip.interface(id).clone();
        match family {
            Family::Ip4 => changed.table4 = index,
            Family::Ip6 => changed.table6 = index,
        }
        if let Some(info) = info(engine, id, &changed) {
            fib.set_interface(info)?;
        }
        *ip.interface(id) = changed;
        ip.publish(fib);
        Ok(())
    });
    done.map_err(|error| Refusal::of_table(engine, error))
}
