//! The command, and what `show running-config` says of it.

use quiver_control::{Command, ConfigWriter, Output, Registry, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::{ARC, node};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface feature gro <interface> [enable|disable]")
            .entry(order::FEATURES, "interfaces.<interface>.gro: <enable?disable>")
            .undo("set interface feature gro <interface> enable")
            .replaces(&["interface"])
            .group("Interfaces")
            .help("Coalesce the TCP segments that an interface sends, or not")
            .details(
                "It is on where the device takes super-frames (tap, af-packet), unless it is \
                 switched off.",
            )
            .example("set interface feature gro tap0 disable")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                let takes = engine.interface(id).is_some_and(|interface| interface.takes_offloads);
                let on = !args.has("disable");
                if on && !takes {
                    let name = engine.interface_name(id);
                    return Err(args
                        .refuse("interface", format!("{name} takes no super-frames"))
                        .remedy("a tap or a host-interface does"));
                }
                engine.set_feature(id, ARC, node::NAME, on)?;
                Ok(Output::none())
            }),
    );
}

/// Is it on?
fn is_on(engine: &Engine, interface: &Interface) -> bool {
    let Some(arc) = engine.arc_id(ARC) else { return false };
    engine.features_of(interface.id, arc).iter().any(|name| name == node::NAME)
}

/// `show running-config`: what differs from how interfaces are made.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    if interface.takes_offloads && !is_on(engine, interface) {
        config.command(format_args!("set interface feature gro {} disable", interface.name));
    }
}
