//! `show running-config`: commands that make NAT64 what it is.

use quiver_bindings::{Filtering, Limit};
use quiver_control::ConfigWriter;
use quiver_core::Engine;
use quiver_translation::versions::IP6_MTU_MIN;

use crate::commands::protocol_word;
use crate::config::{Enabled, Nat64};
use crate::statics::StaticBinding;

/// What must be there before the rest.
pub(crate) fn write_plugin(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat64>() else { return };
    let Some(Enabled { sessions, outside_vrf }) = nat.enabled else { return };
    let vrf = match outside_vrf {
        0 => String::new(),
        id => format!(" outside-vrf {id}"),
    };
    config.command(format_args!("nat64 plugin enable sessions {sessions}{vrf}"));
}

/// The rest.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat64>() else { return };
    let of = |word: &str, id: Option<u32>| id.map_or(String::new(), |id| format!(" {word} {id}"));
    let mut prefixes: Vec<_> =
        nat.prefixes.iter().map(|named| (named.tenant, named.route())).collect();
    prefixes.sort_by_key(|(tenant, _)| *tenant);
    for (tenant, prefix) in prefixes {
        config.command(format_args!("nat64 add prefix {prefix}{}", of("tenant-vrf", tenant)));
    }
    for (first, last, tenant) in nat.ranges() {
        let last = if first == last { String::new() } else { format!(" - {last}") };
        let tenant = of("tenant-vrf", tenant);
        config.command(format_args!("nat64 add pool address {first}{last}{tenant}"));
    }
    let name = |id: &quiver_core::InterfaceId| engine.interface_name(*id);
    let mut interfaces: Vec<_> = nat.pool_interfaces.iter().map(name).collect();
    interfaces.sort();
    for interface in interfaces {
        config.command(format_args!("nat64 add interface address {interface}"));
    }
    let mut sides: Vec<_> = nat.sides.iter().map(|(id, sides)| (name(id), *sides)).collect();
    sides.sort_by(|a, b| a.0.cmp(&b.0));
    for (interface, sides) in sides {
        for (word, is) in [("in", sides.inside), ("out", sides.outside)] {
            if is {
                config.command(format_args!("set interface nat64 {word} {interface}"));
            }
        }
    }
    for (binding, vrf) in &nat.statics {
        let StaticBinding { local, local_port, external, external_port, protocol } = binding;
        let vrf = of("vrf-table", Some(*vrf).filter(|vrf| *vrf != 0));
        config.command(format_args!(
            "nat64 add static bib {local} {local_port} {external} {external_port} {}{vrf}",
            protocol_word(*protocol)
        ));
    }
    if nat.filtering == Filtering::AddressDependent {
        config.command(format_args!("nat64 filtering address-dependent"));
    }
    if let Some(Limit { sessions, prefix_length }) = nat.limit {
        let length = of("prefix-length", Some(prefix_length.into()).filter(|n| *n != 128));
        config.command(format_args!("nat64 subscriber-limit sessions {sessions}{length}"));
    }
    quiver_standby_sessions::write_config::<Nat64>(engine, config);
}

/// What holds without NAT64 being enabled.
pub(crate) fn write_limits(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat64>() else { return };
    let changed = nat.shared.timeouts.changed();
    let words: Vec<_> = changed.map(|(word, seconds)| format!("{word} {seconds}")).collect();
    if !words.is_empty() {
        config.command(format_args!("set nat64 timeouts {}", words.join(" ")));
    }
    if nat.shared.mss() != 0 {
        config.command(format_args!("nat64 mss-clamping {}", nat.shared.mss()));
    }
    if usize::from(nat.shared.ip6_mtu()) != IP6_MTU_MIN {
        config.command(format_args!("nat64 ip6-mtu {}", nat.shared.ip6_mtu()));
    }
}
