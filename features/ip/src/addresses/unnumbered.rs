//! Interfaces without addresses of their own, which use another one's (RFC 1812 §2.2.7).

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Fib;

use crate::addresses::autoconfig;
use crate::addresses::interfaces::{check_routes, fit_link_local};
use crate::addresses::leases;
use crate::state::{IpState, with_ip};

/// Let an interface use the addresses of another.
pub(crate) fn borrow(
    engine: &mut Engine,
    id: InterfaceId,
    lender: InterfaceId,
) -> Result<(), Refusal> {
    check_routes(engine, id)?;
    check(engine, id, lender)?;
    change(engine, id, Some(lender))
}

/// Let an interface have addresses of its own again.
pub(crate) fn give_back(engine: &mut Engine, id: InterfaceId) -> Result<(), Refusal> {
    if lender_of(engine, id).is_none() {
        let name = engine.interface_name(id);
        return Err(Refusal::new(format!("interface {name} is not unnumbered"))
            .remedy("`show interface address` tells which are"));
    }
    change(engine, id, None)
}

fn lender_of(engine: &Engine, id: InterfaceId) -> Option<InterfaceId> {
    engine.get::<IpState>()?.interfaces.get(&id)?.unnumbered
}

fn check(engine: &Engine, id: InterfaceId, lender: InterfaceId) -> Result<(), Refusal> {
    let (name, other) = (engine.interface_name(id), engine.interface_name(lender));
    let Some(ip) = engine.get::<IpState>() else { return Err(Refusal::new("IP is being changed")) };
    let own = ip.interfaces.get(&id).cloned().unwrap_or_default();
    let lent = ip.interfaces.get(&lender).cloned().unwrap_or_default();
    if id == lender {
        return Err(Refusal::new(format!("interface {name} cannot use its own addresses"))
            .remedy("name another interface"));
    }
    if own.autoconfig.is_some() {
        return Err(Refusal::new(format!(
            "interface {name} takes addresses that routers advertise"
        ))
        .remedy(autoconfig::remedy(&name)));
    }
    if own.has_client6 {
        return Err(Refusal::new(format!("interface {name} has a DHCPv6 client"))
            .remedy(leases::remedy(&name)));
    }
    if own.has_own() {
        return Err(Refusal::new(format!("interface {name} has addresses of its own"))
            .remedy(format!("set interface ip address del {name} ADDR/LEN")));
    }
    if lent.unnumbered.is_some() {
        return Err(Refusal::new(format!(
            "interface {other} has no addresses of its own: it is unnumbered"
        ))
        .remedy("name the interface that it uses"));
    }
    refuse_lender(engine, id)?;
    if (own.table4, own.table6) != (lent.table4, lent.table6) {
        return Err(Refusal::new(format!(
            "interfaces {name} and {other} are not in the same tables"
        ))
        .remedy(format!("set interface ip table {name} N")));
    }
    Ok(())
}

/// Refuse what an interface without addresses of its own cannot have.
pub(crate) fn refuse_borrower(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    let Some(lender) = lender_of(engine, id) else { return Ok(()) };
    let (name, lender) = (engine.interface_name(id), engine.interface_name(lender));
    Err(Refusal::new(format!("interface {name} uses the addresses of {lender}"))
        .remedy(format!("set interface unnumbered del {name}")))
}

/// Refuse what would part an interface from those that use its addresses.
pub(crate) fn refuse_lender(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    let Some(ip) = engine.get::<IpState>() else { return Ok(()) };
    let Some(borrower) = ip.shown.borrowers(id).next() else { return Ok(()) };
    let (name, borrower) = (engine.interface_name(id), engine.interface_name(borrower));
    Err(Refusal::new(format!("interface {borrower} uses the addresses of {name}"))
        .remedy(format!("set interface unnumbered del {borrower}")))
}

fn change(
    engine: &mut Engine,
    id: InterfaceId,
    lender: Option<InterfaceId>,
) -> Result<(), Refusal> {
    let done = with_ip(engine, |engine, ip, fib| {
        let speaks = lender.is_some_and(|lender| ip.interface(lender).speaks_ip6());
        let before = ip.interface(id).clone();
        let own = ip.interface(id);
        (own.unnumbered, own.lent6) = (lender, speaks);
        if let Err(error) = fit_link_local(engine, ip, fib, id) {
            *ip.interface(id) = before;
            return Err(error);
        }
        ip.publish(fib);
        Ok(())
    });
    done.map_err(|error| Refusal::of_table(engine, error))
}

/// The addresses of `lender` have changed, or it is gone: those that use them follow. The caller
/// publishes.
pub(crate) fn follow_lender(engine: &Engine, ip: &mut IpState, fib: &mut Fib, lender: InterfaceId) {
    let borrowers: Vec<InterfaceId> = ip.shown.borrowers(lender).collect();
    if borrowers.is_empty() {
        return;
    }
    let is_there = ip.interfaces.contains_key(&lender);
    let speaks = is_there && ip.interface(lender).speaks_ip6();
    for id in borrowers {
        let own = ip.interface(id);
        own.lent6 = speaks;
        own.unnumbered = own.unnumbered.filter(|_| is_there);
        if let Err(error) = fit_link_local(engine, ip, fib, id) {
            let name = engine.interface_name(id);
            tracing::warn!("{name}: {}", Refusal::of_table(engine, error));
        }
    }
}

/// May broadcasts into the subnets of an interface be forwarded?
pub(crate) fn set_directed_broadcast(
    engine: &mut Engine,
    id: InterfaceId,
    on: bool,
) -> Result<(), Refusal> {
    check_routes(engine, id)?;
    let done = with_ip(engine, |_, _, fib| fib.set_directed_broadcast(id, on));
    done.map_err(|error| Refusal::of_table(engine, error))
}
