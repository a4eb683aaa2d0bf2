//! The switches of bridge domains and of their ports.

use quiver_control::{Command, Output, Refusal, Registry, order};
use quiver_core::Engine;

use super::{GROUP, bridges_mut};
use crate::state::{BridgePort, Switches};

/// A switch: its command, help and example, and where it is.
type Flag<T> = (&'static str, &'static str, &'static str, fn(&mut T) -> &mut bool);

pub(super) fn register(registry: &mut Registry) {
    let of_domain: [Flag<Switches>; 6] = [
        (
            "set bridge-domain learn <domain:1-16777215> [enable|disable]",
            "Learn sources in a bridge domain, or not",
            "set bridge-domain learn 10 disable",
            |on| &mut on.learn,
        ),
        (
            "set bridge-domain forward <domain:1-16777215> [enable|disable]",
            "Forward frames to one station in a bridge domain, or drop them",
            "set bridge-domain forward 10 disable",
            |on| &mut on.forward,
        ),
        (
            "set bridge-domain flood <domain:1-16777215> [enable|disable]",
            "Flood frames to groups in a bridge domain, or drop them",
            "set bridge-domain flood 10 disable",
            |on| &mut on.flood,
        ),
        (
            "set bridge-domain uu-flood <domain:1-16777215> [enable|disable]",
            "Flood frames to unknown stations in a bridge domain, or drop them",
            "set bridge-domain uu-flood 10 disable",
            |on| &mut on.uu_flood,
        ),
        (
            "set bridge-domain arp term <domain:1-16777215> [enable|disable]",
            "Answer ARP requests and neighbour solicitations from a bridge domain's own list, or \
             flood them",
            "set bridge-domain arp term 10",
            |on| &mut on.arp_term,
        ),
        (
            "set bridge-domain arp-ufwd <domain:1-16777215> [disable]",
            "Send ARP frames to all by the uu-fwd port of a bridge domain alone, or flood them",
            "set bridge-domain arp-ufwd 10",
            |on| &mut on.arp_ufwd,
        ),
    ];
    for (syntax, help, example, switch) in of_domain {
        registry.command(Command::new(syntax).group(GROUP).help(help).example(example).run(
            move |engine: &mut Engine, args| {
                let number = args.get("domain")?;
                let bridges = bridges_mut(engine)?;
                *switch(&mut bridges.domain_mut(number)?.switches) = !args.has("disable");
                bridges.publish(number);
                Ok(Output::none())
            },
        ));
    }
    let of_port: [(Flag<BridgePort>, &str, &str); 3] = [
        (
            (
                "set interface l2 learn <interface> [enable|disable]",
                "Learn the sources of a bridged interface's frames, or not",
                "set interface l2 learn memif0/0 disable",
                |port| &mut port.learn,
            ),
            "set interface l2 learn <interface> enable",
            "interfaces.<interface>.bridge.learn: <enable?disable>",
        ),
        (
            (
                "set interface l2 forward <interface> [enable|disable]",
                "Forward a bridged interface's frames to one station, or drop them",
                "set interface l2 forward memif0/0 disable",
                |port| &mut port.forward,
            ),
            "set interface l2 forward <interface> enable",
            "interfaces.<interface>.bridge.forward: <enable?disable>",
        ),
        (
            (
                "set interface l2 flood <interface> [enable|disable]",
                "Flood a bridged interface's frames to groups and unknown stations, or drop them",
                "set interface l2 flood memif0/0 disable",
                |port| &mut port.flood,
            ),
            "set interface l2 flood <interface> enable",
            "interfaces.<interface>.bridge.flood: <enable?disable>",
        ),
    ];
    for ((syntax, help, example, switch), undo, entry) in of_port {
        registry.command(
            Command::new(syntax)
                .entry(order::INTERFACE_SETTINGS, entry)
                .undo(undo)
                .replaces(&["interface"])
                .stands_on("layer of <interface>")
                .group(GROUP)
                .help(help)
                .example(example)
                .run(move |engine: &mut Engine, args| {
                    let id = args.interface(engine, "interface")?;
                    let name = engine.interface_name(id);
                    let bridges = bridges_mut(engine)?;
                    let Some(port) = bridges.ports.get_mut(&id) else {
                        let refusal =
                            args.refuse("interface", format!("{name} is in no bridge domain"));
                        return Err::<Output, Refusal>(refusal.remedy(format!(
                            "`set interface l2 bridge {name} N` puts it into one"
                        )));
                    };
                    *switch(port) = !args.has("disable");
                    let number = port.domain;
                    bridges.publish(number);
                    Ok(Output::none())
                }),
        );
    }
}
