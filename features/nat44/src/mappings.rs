//! Static, load-balancing and identity mappings, on the control thread.

use std::net::Ipv4Addr;

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId};
use quiver_translation::flow::End;
use quiver_wire::ip4::address::is_unicast;

use crate::config::{Nat44, address_of, end_sessions, hold, publish, table_index, with_enabled};
use crate::session::{Direction, Flags};
use crate::tables::{Backend, Mapping, Rules, TwiceNat};

/// Static mappings of all kinds.
pub(crate) const MAPPINGS_MAX: usize = 65_536;
/// Back-ends of a load-balancing mapping.
pub(crate) const BACKENDS_MAX: usize = 256;

/// The external side of a static mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum External {
    Address(Ipv4Addr),
    /// The first address of an interface.
    Interface(InterfaceId),
}

impl External {
    pub fn address(self, engine: &Engine) -> Option<Ipv4Addr> {
        match self {
            External::Address(address) => Some(address),
            External::Interface(id) => address_of(engine, id),
        }
    }

    pub fn name(self, engine: &Engine) -> String {
        match self {
            External::Address(address) => address.to_string(),
            External::Interface(id) => engine.interface_name(id),
        }
    }
}

/// What a static mapping is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MappingName {
    pub external: External,
    /// The number of the protocol, 0 for all.
    pub protocol: u8,
    pub port: u16,
}

/// The local side of a static mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    pub address: Ipv4Addr,
    pub port: u16,
    /// The table, where it is not that of `inside-vrf`.
    pub vrf: Option<u32>,
}

/// What else a static or load-balancing mapping says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MappingOptions {
    pub twice: TwiceNat,
    pub out2in_only: bool,
    /// The address of the twice-NAT pool that remote hosts get.
    pub exact: Option<Ipv4Addr>,
}

/// A host of a load-balancing mapping, with its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackendConfig {
    pub local: Local,
    pub probability: u32,
}

/// A load-balancing mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Balanced {
    pub backends: Vec<BackendConfig>,
    pub options: MappingOptions,
    /// Seconds for which a remote host stays with its back-end at least; 0 for none.
    pub affinity_s: u32,
}

/// An end that is not translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    pub name: MappingName,
    pub vrf: Option<u32>,
}

fn none_such(what: &str) -> Refusal {
    Refusal::new(format!("there is no such {what}"))
        .remedy("`show nat44 static mappings` lists them")
}

fn check_new(engine: &Engine, nat: &Nat44, name: &MappingName) -> Result<(), Refusal> {
    let taken = nat.mappings.contains_key(name) || nat.balanced.contains_key(name);
    let identity = nat.identities.iter().any(|identity| identity.name == *name);
    if taken || identity {
        return Err(Refusal::new("there is a static mapping of this external end already")
            .remedy("`show nat44 static mappings` lists them"));
    }
    if nat.mappings.len() + nat.balanced.len() + nat.identities.len() >= MAPPINGS_MAX {
        return Err(Refusal::new(format!("there are {MAPPINGS_MAX} static mappings")));
    }
    match name.external {
        External::Address(address) if !is_unicast(address) => {
            Err(Refusal::new(format!("{address} is no address of a host")))
        }
        External::Interface(id) if engine.interface(id).is_none() => {
            Err(Refusal::new("there is no such interface"))
        }
        _ => Ok(()),
    }
}

fn check_local(engine: &Engine, local: &Local) -> Result<(), Refusal> {
    if !is_unicast(local.address) {
        return Err(Refusal::new(format!("{} is no address of a host", local.address)));
    }
    local.vrf.map_or(Ok(()), |vrf| table_index(engine, vrf).map(|_| ()))
}

fn hold_all(engine: &mut Engine, vrfs: impl IntoIterator<Item = Option<u32>>, held: bool) {
    vrfs.into_iter().flatten().for_each(|vrf| hold(engine, vrf, held));
}

/// Add a static mapping.
pub(crate) fn add(
    engine: &mut Engine,
    name: MappingName,
    local: Local,
    options: MappingOptions,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        check_local(engine, &local)?;
        check_new(engine, nat, &name)?;
        let same_local = |(other, (of, _)): (&MappingName, &(Local, MappingOptions))| {
            other.protocol == name.protocol && *of == local
        };
        if nat.mappings.iter().any(same_local) {
            return Err(Refusal::new("there is a static mapping of this local end already")
                .remedy("`show nat44 static mappings` lists them"));
        }
        nat.mappings.insert(name, (local, options));
        hold_all(engine, [local.vrf], true);
        publish(engine, nat);
        Ok(())
    })
}

/// End the sessions of static mappings of a local end.
fn end_of_local(engine: &mut Engine, protocol: u8, locals: Vec<Local>) -> Result<(), Refusal> {
    end_sessions(engine, move |session| {
        let flow = session.flow(Direction::InToOut);
        session.flags().has(Flags::STATIC)
            && (protocol == 0 || flow.protocol.0 == protocol)
            && locals.iter().any(|local| {
                flow.source.address == u32::from(local.address)
                    && (local.port == 0 || flow.source.port == local.port)
            })
    })
}

/// Remove a static mapping. Its sessions end.
pub(crate) fn remove(engine: &mut Engine, name: MappingName) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let (local, _) = nat.mappings.remove(&name).ok_or_else(|| none_such("static mapping"))?;
        hold_all(engine, [local.vrf], false);
        publish(engine, nat);
        end_of_local(engine, name.protocol, vec![local])
    })
}

/// Add a load-balancing mapping.
pub(crate) fn add_balanced(
    engine: &mut Engine,
    name: MappingName,
    balanced: Balanced,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        check_new(engine, nat, &name)?;
        let backends = &balanced.backends;
        if backends.len() < 2 || backends.len() > BACKENDS_MAX {
            return Err(Refusal::new(format!(
                "a load-balancing mapping has 2 to {BACKENDS_MAX} back-ends"
            )));
        }
        for (at, backend) in backends.iter().enumerate() {
            check_local(engine, &backend.local)?;
            if backends[..at].iter().any(|other| other.local == backend.local) {
                let local = backend.local;
                let what = format!("{}:{} is named twice", local.address, local.port);
                return Err(Refusal::new(what));
            }
        }
        let vrfs: Vec<_> = backends.iter().map(|backend| backend.local.vrf).collect();
        nat.balanced.insert(name, balanced);
        hold_all(engine, vrfs, true);
        publish(engine, nat);
        Ok(())
    })
}

/// Remove a load-balancing mapping. Its sessions end.
pub(crate) fn remove_balanced(engine: &mut Engine, name: MappingName) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let balanced =
            nat.balanced.remove(&name).ok_or_else(|| none_such("load-balancing mapping"))?;
        let locals: Vec<Local> = balanced.backends.iter().map(|backend| backend.local).collect();
        hold_all(engine, locals.iter().map(|local| local.vrf), false);
        publish(engine, nat);
        end_of_local(engine, name.protocol, locals)
    })
}

/// Add a back-end to a load-balancing mapping, or change its share.
pub(crate) fn add_backend(
    engine: &mut Engine,
    name: MappingName,
    backend: BackendConfig,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        check_local(engine, &backend.local)?;
        let balanced =
            nat.balanced.get_mut(&name).ok_or_else(|| none_such("load-balancing mapping"))?;
        let known = balanced.backends.iter().position(|other| other.local == backend.local);
        match known {
            Some(known) => balanced.backends[known].probability = backend.probability,
            None if balanced.backends.len() >= BACKENDS_MAX => {
                return Err(Refusal::new(format!("it has {BACKENDS_MAX} back-ends")));
            }
            None => {
                balanced.backends.push(backend);
                hold_all(engine, [backend.local.vrf], true);
            }
        }
        publish(engine, nat);
        Ok(())
    })
}

/// Take a back-end out of a load-balancing mapping. Its sessions end.
pub(crate) fn remove_backend(
    engine: &mut Engine,
    name: MappingName,
    local: Local,
) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let balanced =
            nat.balanced.get_mut(&name).ok_or_else(|| none_such("load-balancing mapping"))?;
        let place = balanced.backends.iter().position(|other| other.local == local);
        let place = place.ok_or_else(|| none_such("back-end"))?;
        if balanced.backends.len() <= 2 {
            return Err(Refusal::new("a load-balancing mapping has at least 2 back-ends"));
        }
        balanced.backends.remove(place);
        hold_all(engine, [local.vrf], false);
        publish(engine, nat);
        end_of_local(engine, name.protocol, vec![local])
    })
}

/// Add an identity mapping.
pub(crate) fn add_identity(engine: &mut Engine, identity: Identity) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        if let Some(vrf) = identity.vrf {
            table_index(engine, vrf)?;
        }
        check_new(engine, nat, &identity.name)?;
        nat.identities.insert(identity);
        hold_all(engine, [identity.vrf], true);
        publish(engine, nat);
        Ok(())
    })
}

/// Remove an identity mapping.
pub(crate) fn remove_identity(engine: &mut Engine, name: MappingName) -> Result<(), Refusal> {
    with_enabled(engine, |engine, nat| {
        let known = nat.identities.iter().find(|identity| identity.name == name).copied();
        let known = known.ok_or_else(|| none_such("identity mapping"))?;
        nat.identities.remove(&known);
        hold_all(engine, [known.vrf], false);
        publish(engine, nat);
        Ok(())
    })
}

/// The tables that mappings name.
pub(crate) fn vrfs(nat: &Nat44) -> Vec<u32> {
    let of_static = nat.mappings.values().map(|(local, _)| local.vrf);
    let of_balanced =
        nat.balanced.values().flat_map(|b| b.backends.iter().map(|backend| backend.local.vrf));
    let of_identity = nat.identities.iter().map(|identity| identity.vrf);
    of_static.chain(of_balanced).chain(of_identity).flatten().collect()
}

/// Write mappings into the rules of workers.
pub(crate) fn fill(
    engine: &Engine,
    nat: &Nat44,
    rules: &mut Rules,
    is_own: &dyn Fn(Ipv4Addr) -> bool,
) {
    let table = |vrf: Option<u32>| {
        vrf.map_or(rules.inside_table, |vrf| table_index(engine, vrf).unwrap_or(0))
    };
    let of_static = nat.mappings.iter().map(|(name, (local, options))| {
        let backend = BackendConfig { local: *local, probability: 0 };
        (name, vec![backend], *options, false)
    });
    let of_balanced = nat.balanced.iter().map(|(name, balanced)| {
        (name, balanced.backends.clone(), balanced.options, balanced.affinity_s > 0)
    });
    for (name, backends, options, is_sticky) in of_static.chain(of_balanced) {
        let (Some(address), Some(first)) = (name.external.address(engine), backends.first()) else {
            continue;
        };
        let end = |local: &Local| End { address: local.address.into(), port: local.port };
        let from = rules.backends.len() as u32;
        if backends.len() > 1 {
            let mut up_to = 0;
            for BackendConfig { local, probability } in &backends {
                up_to += probability;
                let table = table(local.vrf);
                rules.backends.push(Backend { local: end(local), table, up_to });
            }
        }
        let mapping = |local: &Local| Mapping {
            local: end(local),
            external: End { address: address.into(), port: name.port },
            table: table(local.vrf),
            twice: options.twice,
            exact: options.exact.map_or(0, u32::from),
            out2in_only: options.out2in_only,
            backends: (from, rules.backends.len() as u32),
            is_sticky,
        };
        let whole = mapping(&first.local);
        let all: Vec<Mapping> = backends.iter().map(|backend| mapping(&backend.local)).collect();
        let key = |end: End| (end.address, name.protocol, end.port);
        rules.external.insert(address.into(), is_own(address));
        rules.by_external.insert(key(whole.external), whole);
        for mapping in all.into_iter().filter(|mapping| !mapping.out2in_only) {
            rules.by_local.insert((mapping.table, key(mapping.local)), mapping);
        }
    }
    for Identity { name, vrf } in &nat.identities {
        let Some(address) = name.external.address(engine) else { continue };
        let key = (u32::from(address), name.protocol, name.port);
        rules.identity.insert(key);
        rules.identity_local.insert((table(*vrf), key));
    }
}
