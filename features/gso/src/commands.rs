//! Commands: which offloads an interface's device is given.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::output::{CHECKSUM_OUTPUT, GSO_OUTPUT};

const GROUP: &str = "Interfaces";
/// The arc of the nodes that stand where an offload is off.
pub(crate) const ARC: &str = "interface-output";

/// The word of each offload in commands, and the node that stands where it is off.
const OFFLOADS: [(&str, &str); 2] = [("gso", GSO_OUTPUT), ("tx-checksum-offload", CHECKSUM_OUTPUT)];

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface feature gso <interface> [enable|disable]")
            .entry(order::FEATURES, "interfaces.<interface>.gso: <enable?disable>")
            .undo("set interface feature gso <interface> enable")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Give an interface's device super-frames, or cut them before")
            .details(
                "It is enabled where the device takes super-frames (tap, af-packet). In front of \
                 other devices they are cut in any case.",
            )
            .example("set interface feature gso tap0 disable")
            .run(|engine: &mut Engine, args| set(engine, args, GSO_OUTPUT)),
    );
    registry.command(
        Command::new("set interface feature tx-checksum-offload <interface> [enable|disable]")
            .entry(order::FEATURES, "interfaces.<interface>.tx-checksum-offload: <enable?disable>")
            .undo("set interface feature tx-checksum-offload <interface> enable")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Leave open checksums to an interface's device, or complete them before")
            .details(
                "It is enabled where the device completes checksums (tap, af-packet). Where it is \
                 disabled, super-frames are cut too: their segments need checksums. In front of \
                 other devices checksums are completed in any case.",
            )
            .example("set interface feature tx-checksum-offload tap0 disable")
            .run(|engine: &mut Engine, args| set(engine, args, CHECKSUM_OUTPUT)),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>, node: &str) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.interface(id).is_some_and(|interface| interface.takes_offloads) {
        engine.set_feature(id, ARC, node, args.has("disable"))?;
        return Ok(Output::none());
    }
    let name = engine.interface_name(id);
    Ok(Output::text(format!(
        "{name} takes no super-frames and no open checksums: they are finished in front of it"
    )))
}

/// `show running-config`: what differs from how interfaces are made.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(arc) = engine.arc_id(ARC) else { return };
    let features = engine.features_of(interface.id, arc);
    for (word, node) in OFFLOADS {
        if features.iter().any(|feature| feature == node) {
            let name = &interface.name;
            config.command(format_args!("set interface feature {word} {name} disable"));
        }
    }
}
