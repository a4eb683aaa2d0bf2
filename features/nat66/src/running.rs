//! `show running-config`.

use quiver_bindings::{Filtering, Limit};
use quiver_control::ConfigWriter;
use quiver_core::{Engine, InterfaceId};

use crate::commands::protocol_word;
use crate::config::{Enabled, Nat66};
use crate::statics::{StaticMapping, WholeMapping};

/// What must be there before the rest.
pub(crate) fn write_plugin(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat66>() else { return };
    let Some(Enabled { sessions, outside_vrf }) = nat.enabled else { return };
    let vrf = of("outside-vrf", Some(outside_vrf).filter(|vrf| *vrf != 0));
    config.command(format_args!("nat66 plugin enable sessions {sessions}{vrf}"));
}

/// A word and its value, if there is one.
fn of(word: &str, value: Option<u32>) -> String {
    value.map_or(String::new(), |value| format!(" {word} {value}"))
}

fn of_vrf(vrf: u32) -> String {
    of("vrf", Some(vrf).filter(|vrf| *vrf != 0))
}

/// The rest.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat66>() else { return };
    for (first, last, tenant) in nat.ranges() {
        let last = if first == last { String::new() } else { format!(" - {last}") };
        let tenant = of("tenant-vrf", tenant);
        config.command(format_args!("nat66 add pool address {first}{last}{tenant}"));
    }
    let name = |id: &InterfaceId| engine.interface_name(*id);
    let mut interfaces: Vec<_> = nat.pool_interfaces.iter().map(name).collect();
    interfaces.sort();
    for interface in interfaces {
        config.command(format_args!("nat66 add interface address {interface}"));
    }
    let mut places: Vec<_> = nat.places.iter().map(|(id, place)| (name(id), *place)).collect();
    places.sort_by(|a, b| a.0.cmp(&b.0));
    for (interface, place) in places {
        config.command(format_args!("set interface nat66 {} {interface}", place.word()));
    }
    for (mapping, vrf) in &nat.statics {
        let StaticMapping { local, local_port, external, external_port, protocol } = mapping;
        let (protocol, vrf) = (protocol_word(*protocol), of_vrf(*vrf));
        config.command(format_args!(
            "nat66 add static mapping {protocol} local {local} {local_port} external {external} \
             {external_port}{vrf}"
        ));
    }
    for (WholeMapping { local, external }, vrf) in &nat.whole {
        let vrf = of_vrf(*vrf);
        config.command(format_args!(
            "nat66 add static mapping local {local} external {external}{vrf}"
        ));
    }
    if nat.filtering == Filtering::AddressDependent {
        config.command(format_args!("nat66 filtering address-dependent"));
    }
    if let Some(Limit { sessions, prefix_length }) = nat.limit {
        let length = of("prefix-length", Some(prefix_length.into()).filter(|n| *n != 128));
        config.command(format_args!("nat66 subscriber-limit sessions {sessions}{length}"));
    }
}

/// What holds without NAT66 being enabled.
pub(crate) fn write_limits(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat66>() else { return };
    let changed = nat.shared.timeouts.changed();
    let words: Vec<_> = changed.map(|(word, seconds)| format!("{word} {seconds}")).collect();
    if !words.is_empty() {
        config.command(format_args!("set nat66 timeouts {}", words.join(" ")));
    }
}
