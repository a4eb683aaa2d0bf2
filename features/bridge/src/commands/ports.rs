//! Interfaces of bridge domains.

use quiver_control::{Command, ConfigWriter, Output, Registry, modes, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use super::GROUP;
use crate::membership::{Join, join};
use crate::state::{Bridges, PortKind};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set interface l2 bridge <interface> <domain:1-16777215> [bvi|uu-fwd] [<group:0-255>]",
        )
        .entry(
            order::INTERFACE_SETTINGS,
            "interfaces.<interface>.bridge: {domain, bvi, uu-fwd, split-horizon-group: <group>}",
        )
        .undo("set interface l3 <interface>")
        .makes("layer of <interface>")
        .stands_on("bridge domain <domain>")
        .group(GROUP)
        .help("Put an interface into a bridge domain")
        .details(
            "A domain that does not exist is made. With bvi, a loopback becomes the domain's own \
             routed interface, whose MTU is at most the least of the other ports'. With uu-fwd, \
             frames to stations that are not known go to this port alone, and none are flooded to \
             it. Between interfaces of the same split-horizon group other than 0 no frame passes; \
             tunnels into the core of a network are in group 255 unless another is named. `set \
             interface l3` takes it out again.",
        )
        .example("set interface l2 bridge memif0/0 10")
        .example("set interface l2 bridge loop0 10 bvi")
        .example("set interface l2 bridge memif0/1 10 1")
        .example("set interface l2 bridge memif0/2 10 uu-fwd")
        .run(|engine: &mut Engine, args| {
            let id = args.interface(engine, "interface")?;
            let (domain, group) =
                (args.get("domain")?, args.or("group", modes::group(engine, id))?);
            let kind = match (args.has("bvi"), args.has("uu-fwd")) {
                (true, _) => PortKind::Bvi,
                (_, true) => PortKind::UuFwd,
                _ => PortKind::Normal,
            };
            join(engine, id, Join { domain, kind, group })?;
            Ok(Output::none())
        }),
    );
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let (id, name) = (interface.id, &interface.name);
    let bridges = engine.get::<Bridges>();
    if let Some(port) = bridges.and_then(|bridges| bridges.ports().get(&id)) {
        let kind = port.kind.word().map(|word| format!(" {word}")).unwrap_or_default();
        let is_usual = port.group == modes::group(engine, id);
        let group = if is_usual { String::new() } else { format!(" {}", port.group) };
        config.command(format_args!("set interface l2 bridge {name} {}{kind}{group}", port.domain));
        for (word, on) in [("learn", port.learn), ("forward", port.forward), ("flood", port.flood)]
        {
            if !on {
                config.command(format_args!("set interface l2 {word} {name} disable"));
            }
        }
    }
}
