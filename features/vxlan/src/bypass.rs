//! `set interface ip vxlan-bypass`: words of VPP that change nothing here. Packets of tunnels are
//! recognised by their UDP port where packets for the router itself are sorted, on every interface.

use std::collections::BTreeSet;

use quiver_control::{Command, ConfigWriter, Output, Registry, by_interface_name, order};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};

/// The heading of these commands.
const GROUP: &str = "Tunnels";
const DETAILS: &str = "The words are accepted and kept for configurations of VPP. Packets of VXLAN \
    tunnels take the short path on every interface without them.";

/// The interfaces that operators have named, for each family's word.
#[derive(Default)]
struct Bypass([BTreeSet<InterfaceId>; 2]);

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface ip vxlan-bypass <interface> [del]")
            .entry(order::FEATURES, "interfaces.<interface>.vxlan-bypass: true")
            .undo("set interface ip vxlan-bypass <interface> del")
            .group(GROUP)
            .help("Accept the words of VPP for a short path of VXLAN packets over IPv4")
            .details(DETAILS)
            .example("set interface ip vxlan-bypass e0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                set(engine, 0, id, !args.has("del"));
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set interface ip6 vxlan-bypass <interface> [del]")
            .entry(order::FEATURES, "interfaces.<interface>.vxlan6-bypass: true")
            .undo("set interface ip6 vxlan-bypass <interface> del")
            .group(GROUP)
            .help("Accept the words of VPP for a short path of VXLAN packets over IPv6")
            .details(DETAILS)
            .example("set interface ip6 vxlan-bypass e0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                set(engine, 1, id, !args.has("del"));
                Ok(Output::none())
            }),
    );
    registry.on_start(|engine| {
        engine.insert(Bypass::default());
        engine.on_interface_change(|engine, id, change| {
            if change == InterfaceChange::Deleted {
                [0, 1].into_iter().for_each(|family| set(engine, family, id, false));
            }
        });
    });
}

fn set(engine: &mut Engine, family: usize, id: InterfaceId, on: bool) {
    let Some(bypass) = engine.get_mut::<Bypass>() else { return };
    match on {
        true => bypass.0[family].insert(id),
        false => bypass.0[family].remove(&id),
    };
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(Bypass(families)) = engine.get() else { return };
    for (word, interfaces) in ["ip", "ip6"].into_iter().zip(families) {
        let all = interfaces.iter().map(|id| (*id, ()));
        for (id, ()) in by_interface_name(engine, all) {
            let name = engine.interface_name(id);
            config.command(format_args!("set interface {word} vxlan-bypass {name}"));
        }
    }
}
