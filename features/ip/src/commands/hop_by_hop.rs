//! What becomes of packets with hop-by-hop options.

use quiver_control::{Command, ConfigWriter, Output, Registry, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use super::GROUP;
use crate::ip6::hop_by_hop::{ARC, POLICIES};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set ip6 hop-by-hop <interface> <policy:ignore|process|drop|punt>")
            .entry(order::FEATURES, "interfaces.<interface>.hop-by-hop: <policy>")
            .undo("set ip6 hop-by-hop <interface> ignore")
            .replaces(&["interface"])
            .group(GROUP)
            .help(
                "Say what becomes of IPv6 packets with hop-by-hop options that arrive on an \
                 interface",
            )
            .details(
                "ignore: they go on like others, as RFC 8200 allows. process: options that say so \
                 are obeyed, by a drop or an ICMPv6 error. drop: they die. punt: they are given \
                 to the host. What is for the router itself is always processed.",
            )
            .example("set ip6 hop-by-hop e0 drop")
            .run(|engine: &mut Engine, args| {
                let on = args.interface(engine, "interface")?;
                let policy: &str = args.get("policy")?;
                for (word, node) in POLICIES {
                    engine.set_feature(on, ARC, node, word == policy)?;
                }
                Ok(Output::none())
            }),
    );
}

/// Write the commands that make an interface what it is.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(arc) = engine.arc_id(ARC) else { return };
    let enabled = engine.features_of(interface.id, arc);
    let policy = POLICIES.iter().find(|(_, node)| enabled.iter().any(|name| name == node));
    if let Some((word, _)) = policy {
        config.command(format_args!("set ip6 hop-by-hop {} {word}", interface.name));
    }
}
