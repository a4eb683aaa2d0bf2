//! Settings of interfaces that routers advertise, as far as `quiver-ip` keeps them: addresses, the
//! MTU, the hop limit. They stand beside what is configured, never in its place, and are no
//! configuration.

use std::net::{IpAddr, Ipv6Addr};

use quiver_control::with_interface_names;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, FibError};
use quiver_forwarding::ip::{AutoAddress, AutoAddressState, AutoSettings, Autoconfiguration};
use quiver_wire::Ip6InterfaceAddress;

use crate::addresses::duplicate_detection::{self, Phase};
use crate::addresses::interfaces::{check_routes, fit_link_local, info};
use crate::addresses::unnumbered;
use crate::state::{InterfaceIp, IpState, with_ip};

/// The calls for the feature that receives advertisements.
pub(crate) const CALLS: Autoconfiguration = Autoconfiguration { set, state, link_local };

/// Make `wanted` the advertised settings of an interface.
fn set(engine: &mut Engine, id: InterfaceId, wanted: Option<AutoSettings>) -> Result<(), String> {
    let is_on = engine
        .get::<IpState>()
        .and_then(|ip| ip.interfaces.get(&id))
        .is_some_and(|own| own.autoconfig.is_some());
    match (is_on, &wanted) {
        (false, None) => return Ok(()),
        (false, Some(_)) => {
            check_routes(engine, id).map_err(|refusal| refusal.to_string())?;
            unnumbered::refuse_borrower(engine, id).map_err(|refusal| refusal.to_string())?;
        }
        (true, _) => {}
    }
    let done = with_ip(engine, |engine, ip, fib| {
        let done = change(engine, ip, fib, id, wanted);
        unnumbered::follow_lender(engine, ip, fib, id);
        ip.publish(fib);
        done
    });
    done.map_err(|error| with_interface_names(engine, error))
}

fn change(
    engine: &Engine,
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
    wanted: Option<AutoSettings>,
) -> Result<(), FibError> {
    let before = ip.interface(id).autoconfig.clone();
    let old = before.clone().unwrap_or_default();
    let new = wanted.clone().unwrap_or_default();
    let is_wanted = |address: Ipv6Addr| new.addresses.iter().any(|auto| auto.address == address);
    for gone in old.addresses.iter().filter(|auto| !is_wanted(auto.address)) {
        take_away(ip, fib, id, gone.address)?;
    }
    let interface = ip.interface(id);
    let kept = interface.autoconfig.take().unwrap_or_default().addresses;
    interface.autoconfig = wanted.map(|wanted| AutoSettings { addresses: kept, ..wanted });
    if let Err(error) = fit_link_local(engine, ip, fib, id) {
        ip.interface(id).autoconfig = before;
        return Err(error);
    }
    for auto in new.addresses {
        give(ip, fib, id, auto);
    }
    if old.mtu_bytes != new.mtu_bytes {
        let own = ip.interface(id).clone();
        if let Some(info) = info(engine, id, &own) {
            fib.set_interface(info)?;
        }
    }
    duplicate_detection::follow(engine, ip, fib, id, false)
}

/// Give an interface an address, unless it is configured, or there is no room for it.
fn give(ip: &mut IpState, fib: &mut Fib, id: InterfaceId, auto: AutoAddress) {
    let interface = ip.interface(id);
    let configured = interface.configured_has(auto.address);
    let Some(settings) = &mut interface.autoconfig else { return };
    if let Some(known) = settings.addresses.iter_mut().find(|known| known.address == auto.address) {
        known.deprecated = auto.deprecated;
    } else if !configured && fib.add_address(id, auto.address.into(), 128).is_ok() {
        settings.addresses.push(auto);
    }
}

fn take_away(
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
    address: Ipv6Addr,
) -> Result<(), FibError> {
    let interface = ip.interface(id);
    fib.remove_address(id, address.into(), 128)?;
    if let Some(settings) = &mut interface.autoconfig {
        settings.addresses.retain(|known| known.address != address);
    }
    Ok(())
}

/// The operator gives an interface this address: interfaces of the same table that made it of a
/// prefix give it up.
pub(crate) fn yield_address(
    engine: &Engine,
    ip: &mut IpState,
    fib: &mut Fib,
    id: InterfaceId,
    address: IpAddr,
) -> Result<(), FibError> {
    let IpAddr::V6(address) = address else { return Ok(()) };
    let table = ip.interface(id).table6;
    let has = |own: &InterfaceIp| {
        own.table6 == table && own.auto_addresses().any(|at| at.address == address)
    };
    let holders: Vec<_> =
        ip.interfaces.iter().filter(|(_, own)| has(own)).map(|(id, _)| *id).collect();
    for holder in holders {
        take_away(ip, fib, holder, address)?;
        duplicate_detection::follow(engine, ip, fib, holder, false)?;
    }
    Ok(())
}

fn state(engine: &Engine, id: InterfaceId, address: Ipv6Addr) -> AutoAddressState {
    let Some(ip) = engine.get::<IpState>() else { return AutoAddressState::Refused };
    let own = ip.interfaces.get(&id);
    let known = own.and_then(|own| own.auto_addresses().find(|known| known.address == address));
    let Some(known) = known else { return AutoAddressState::Refused };
    match ip.ownerships.get(id, address.into()).map(|ownership| ownership.phase) {
        Some(Phase::Duplicate(mac)) => AutoAddressState::Duplicate(mac),
        Some(Phase::Tentative(_)) => AutoAddressState::Tentative,
        _ if known.deprecated => AutoAddressState::Deprecated,
        _ => AutoAddressState::Preferred,
    }
}

fn link_local(engine: &Engine, id: InterfaceId) -> Option<Ipv6Addr> {
    let ip = engine.get::<IpState>()?;
    let own = ip.interfaces.get(&id)?.link_local?.address();
    let phase = ip.ownerships.get(id, own.into()).map(|ownership| ownership.phase);
    let is_ours = matches!(phase, None | Some(Phase::Announced(_) | Phase::Preferred));
    let is_up = engine.get::<Fib>()?.interface(id).is_some_and(|info| info.up);
    (is_ours && is_up).then_some(own)
}

impl InterfaceIp {
    /// Addresses made of advertised prefixes.
    pub(crate) fn auto_addresses(&self) -> impl Iterator<Item = &AutoAddress> {
        self.autoconfig.iter().flat_map(|settings| &settings.addresses)
    }

    /// The same with the length of their routes.
    pub(crate) fn auto_interface_addresses(&self) -> impl Iterator<Item = Ip6InterfaceAddress> {
        self.auto_addresses().filter_map(|auto| Ip6InterfaceAddress::new(auto.address, 128).ok())
    }

    /// Is this address made of an advertised prefix?
    pub(crate) fn is_auto(&self, address: IpAddr) -> bool {
        self.auto_addresses().any(|auto| auto.address == address)
    }

    /// Has the operator given it this address?
    fn configured_has(&self, address: Ipv6Addr) -> bool {
        let link_local = self.link_local.iter().chain(&self.chosen_link_local);
        self.ip6.iter().chain(link_local).any(|own| own.address() == address)
    }

    /// The largest packet of each family that the operator, and for IPv6 the link's routers, let it
    /// send.
    pub(crate) fn family_mtu_bytes(&self, configured: [Option<u16>; 2]) -> [Option<u16>; 2] {
        let advertised = self.autoconfig.as_ref().and_then(|settings| settings.mtu_bytes);
        let [ip4, ip6] = configured;
        [ip4, ip6.into_iter().chain(advertised).min()]
    }
}

/// How the operator ends autoconfiguration.
pub(crate) fn remedy(name: &str) -> String {
    format!("ip6 nd address autoconfig {name} disable")
}
