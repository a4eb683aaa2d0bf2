//! What of the configuration both routers must have the same: with another pool or other mappings,
//! a session of one would be none of the other.

use std::fmt::Write as _;

use quiver_core::Engine;
use quiver_standby::wire::{Greeting, greeting};

use crate::config::{Nat44, address_of};

/// The digest of the configuration. Interfaces count by their address, tables by their VRF.
pub(crate) fn digest(engine: &Engine, nat: &Nat44) -> Greeting {
    let mut text = String::new();
    // Writing to a string never fails.
    let vrfs = nat.enabled.map(|enabled| (enabled.inside_vrf, enabled.outside_vrf));
    let _ = writeln!(text, "{vrfs:?} {:?}", nat.settings);
    for (address, tenant) in &nat.pool {
        let _ = writeln!(text, "pool {address} {tenant:?}");
    }
    let mut own: Vec<_> = nat.pool_interfaces.iter().map(|id| address_of(engine, *id)).collect();
    own.sort();
    let _ = writeln!(text, "{own:?} {:?} {:?}", nat.twice_pool, nat.excluded);
    let _ = writeln!(text, "{:?}", nat.vrf_tables);
    let mut mappings: Vec<String> = Vec::new();
    for (name, (local, options)) in &nat.mappings {
        let external = name.external.address(engine);
        let place = (external, name.protocol, name.port);
        mappings.push(format!("mapping {place:?} {local:?} {options:?}"));
    }
    for (name, balanced) in &nat.balanced {
        let external = name.external.address(engine);
        mappings
            .push(format!("balanced {external:?} {} {} {balanced:?}", name.protocol, name.port));
    }
    for identity in &nat.identities {
        let (name, vrf) = (identity.name, identity.vrf);
        let external = name.external.address(engine);
        mappings.push(format!("identity {external:?} {} {} {vrf:?}", name.protocol, name.port));
    }
    let dslite = &nat.dslite;
    let aftr = dslite.aftr.map(|(address, _)| address);
    let _ = writeln!(text, "{aftr:?} {:?} {:?} {:?}", dslite.pool, dslite.admitted, dslite.limit);
    mappings.sort();
    mappings.iter().for_each(|line| text.extend([line, "\n"]));
    greeting(text.as_bytes())
}
