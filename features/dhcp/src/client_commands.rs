//! The commands of the router's DHCP clients.

use quiver_control::{Command, ConfigWriter, Output, Registry, by_interface_name, modes, order};
use quiver_core::Engine;

use crate::client::Settings;
use crate::clients;
use crate::commands::{GROUP, check_text};
use crate::config::Dhcp;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set dhcp client {intfc <:interface> [hostname <:text>] [client-id <:text>] \
             [set-broadcast-flag] [del]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<intfc>.dhcp-client: {hostname, client-id, broadcast: \
             <set-broadcast-flag?>}",
        )
        .undo("set dhcp client intfc <intfc> del")
        .group(GROUP)
        .help("Let an interface get its IPv4 address from a DHCP server")
        .details(
            "The interface gets the address and the default routers of the lease (RFC 2131). \
             What is configured stands before it. `del` gives the lease back.",
        )
        .word("client-id", "how the server knows the client; its MAC address unless given")
        .word("set-broadcast-flag", "ask the server for broadcast replies")
        .example("set dhcp client intfc e0 hostname edge1")
        .run(|engine: &mut Engine, args| {
            let id = args.interface(engine, "intfc")?;
            if args.has("del") {
                clients::remove(engine, id)?;
                return Ok(Output::none());
            }
            modes::check_frames(engine, id)?;
            let settings = Settings {
                host_name: check_text(args, "hostname")?,
                client_id: check_text(args, "client-id")?,
                broadcast: args.has("set-broadcast-flag"),
            };
            clients::add(engine, id, settings)?;
            Ok(Output::none())
        }),
    );
}

/// `show running-config`: the clients.
pub(crate) fn write_config(engine: &Engine, out: &mut ConfigWriter) {
    let Some(dhcp) = engine.get::<Dhcp>() else { return };
    let all = dhcp.clients.iter().map(|(id, client)| (*id, &client.settings));
    for (id, settings) in by_interface_name(engine, all) {
        let Settings { host_name, client_id, broadcast } = settings;
        let mut words = String::new();
        for (word, text) in [("hostname", host_name), ("client-id", client_id)] {
            if let Some(text) = text {
                words += &format!(" {word} \"{text}\"");
            }
        }
        if *broadcast {
            words += " set-broadcast-flag";
        }
        let name = engine.interface_name(id);
        out.command(format_args!("set dhcp client intfc {name}{words}"));
    }
}
