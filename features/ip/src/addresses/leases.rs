//! Addresses that DHCP servers lease: beside what is configured, never in its place, and no
//! configuration.

use std::net::IpAddr;

use quiver_control::{IpPrefix, Refusal};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, FibError};
use quiver_wire::{Ip4InterfaceAddress, Ip6InterfaceAddress};

use crate::addresses::duplicate_detection;
use crate::addresses::interfaces::{add, apply, change, check_routes, remove};
use crate::addresses::unnumbered;
use crate::state::{InterfaceIp, IpState, with_ip};

/// An IPv6 address that a DHCPv6 server leased, or that is made of a prefix that one delegated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leased6 {
    /// The address.
    pub own: Ip6InterfaceAddress,
    /// Its preferred lifetime is over (RFC 4862 §5.5.4).
    pub deprecated: bool,
}

impl InterfaceIp {
    /// Has it this leased address?
    pub(crate) fn is_leased6(&self, own: Ip6InterfaceAddress) -> bool {
        self.leased6.iter().any(|leased| leased.own == own)
    }

    /// Is it a leased IPv6 address?
    pub(crate) fn has_leased6(&self, address: IpAddr) -> bool {
        self.leased6.iter().any(|leased| address == leased.own.address())
    }

    /// The IPv6 addresses that the operator gave it, link-local ones left out.
    pub(crate) fn configured6(&self) -> impl Iterator<Item = &Ip6InterfaceAddress> {
        self.ip6.iter().filter(|own| !self.is_leased6(**own))
    }
}

/// Let an interface have this leased address, or none.
pub(crate) fn lease(
    engine: &mut Engine,
    id: InterfaceId,
    wanted: Option<Ip4InterfaceAddress>,
) -> Result<(), Refusal> {
    let old = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&id)?.leased);
    if old == wanted {
        return Ok(());
    }
    let prefix =
        |own: Ip4InterfaceAddress| IpPrefix { address: own.address().into(), length: own.length() };
    if let Some(old) = old {
        remove(engine, id, prefix(old))?;
    }
    let Some(new) = wanted else { return Ok(()) };
    add(engine, id, prefix(new))?;
    with_ip(engine, |_, ip, _| ip.interface(id).leased = Some(new));
    Ok(())
}

fn prefix6(own: Ip6InterfaceAddress) -> IpPrefix {
    IpPrefix { address: own.address().into(), length: own.length() }
}

/// Let an interface have this leased IPv6 address, deprecated or not.
pub(crate) fn lease6(
    engine: &mut Engine,
    id: InterfaceId,
    own: Ip6InterfaceAddress,
    deprecated: bool,
) -> Result<(), Refusal> {
    let interface = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&id));
    let all = interface.map_or(&[][..], |interface| &interface.leased6);
    if let Some(known) = all.iter().find(|leased| leased.own == own).copied() {
        if known.deprecated != deprecated {
            with_ip(engine, |_, ip, fib| {
                let all = &mut ip.interface(id).leased6;
                let known = all.iter_mut().filter(|leased| leased.own == own);
                known.for_each(|leased| leased.deprecated = deprecated);
                ip.publish(fib);
            });
        }
        return Ok(());
    }
    check_routes(engine, id)?;
    unnumbered::refuse_borrower(engine, id)?;
    let done = with_ip(engine, |engine, ip, fib| {
        let mut changed = ip.interface(id).clone();
        changed.ip6.push(own);
        changed.leased6.push(Leased6 { own, deprecated });
        apply(engine, ip, fib, id, changed, Some((prefix6(own), true)))
    });
    done.map_err(|error| Refusal::of_table(engine, error))
}

/// The operator gives an interface this address: an interface of the same table that leases it
/// gives it up.
pub(crate) fn yield_address(
    engine: &Engine,
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
    address: IpAddr,
) -> Result<(), FibError> {
    let table = ip.interface(id).table6;
    let holder = ip.interfaces.iter().find_map(|(holder, own)| {
        let leased = own.leased6.iter().find(|leased| address == leased.own.address());
        leased.filter(|_| own.table6 == table).map(|leased| (*holder, leased.own))
    });
    let Some((holder, own)) = holder else { return Ok(()) };
    fib.remove_address(holder, address, own.length())?;
    let interface = ip.interface(holder);
    interface.ip6.retain(|known| *known != own);
    interface.leased6.retain(|leased| leased.own != own);
    duplicate_detection::follow(engine, ip, fib, holder, false)
}

/// Let an interface speak IPv6 because a DHCPv6 client is on it, or for that no more.
pub(crate) fn serve_client6(
    engine: &mut Engine,
    id: InterfaceId,
    wanted: bool,
) -> Result<(), Refusal> {
    if wanted {
        unnumbered::refuse_borrower(engine, id)?;
        return change(engine, id, |changed| changed.has_client6 = true);
    }
    let done = with_ip(engine, |engine, ip, fib| {
        let mut changed = ip.interface(id).clone();
        changed.has_client6 = false;
        apply(engine, ip, fib, id, changed, None)
    });
    done.map_err(|error| Refusal::of_table(engine, error))
}

/// How the operator ends a DHCPv6 client.
pub(crate) fn remedy(name: &str) -> String {
    format!("dhcp6 client disable {name}, dhcp6 pd client {name} disable")
}
