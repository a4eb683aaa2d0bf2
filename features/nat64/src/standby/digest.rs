//! What of the configuration both routers must have the same: with another pool or other prefixes,
//! a session of one would be none of the other.

use std::fmt::Write as _;

use quiver_core::Engine;
use quiver_standby::wire::{Greeting, greeting};

use crate::config::{Nat64, address_of};

/// The digest of the configuration. Interfaces count by their address, tables by their VRF.
pub(crate) fn digest(engine: &Engine, nat: &Nat64) -> Greeting {
    let mut text = String::from("nat64\n");
    // Writing to a string never fails.
    let outside_vrf = nat.enabled.map(|enabled| enabled.outside_vrf);
    let _ = writeln!(text, "{outside_vrf:?} {:?} {:?}", nat.filtering, nat.limit);
    // The order in which they were added, and so their numbers, may differ.
    let mut prefixes: Vec<String> = nat
        .prefixes
        .iter()
        .map(|named| format!("prefix {} {:?}\n", named.route(), named.tenant))
        .collect();
    prefixes.sort();
    text.extend(prefixes);
    for (address, tenant) in &nat.pool {
        let _ = writeln!(text, "pool {address} {tenant:?}");
    }
    let mut own: Vec<_> = nat.pool_interfaces.iter().map(|id| address_of(engine, *id)).collect();
    own.sort();
    let _ = writeln!(text, "{own:?} {:?}", nat.statics);
    greeting(text.as_bytes())
}
