//! The commands: `create host-interface`, `delete host-interface`.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::{Engine, InterfaceId};

use crate::host::{HostConfig, Hosts, create_host_interface, delete_host_interface};

const GROUP: &str = "Host interfaces";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create host-interface \
             {name <linux-name:word> [num-rx-queues <:1-64>] [num-tx-queues <:1-64>]}",
        )
        .entry(
            order::INTERFACES,
            "interfaces.host-<linux-name>.host-interface: {num-rx-queues, num-tx-queues}",
        )
        .undo("delete host-interface name <linux-name>")
        .makes("interface host-<linux-name>")
        .group(GROUP)
        .help(
            "Use a Linux network device: its frames come in as host-NAME, and Linux sees what is \
             sent there",
        )
        .details("It needs CAP_NET_RAW, and CAP_NET_ADMIN to set the Linux device up.")
        .word("linux-name", "as `ip link` shows it")
        .word("num-rx-queues", "receive queues; the kernel spreads flows over them")
        .word("num-tx-queues", "sending sockets, shared out among the workers")
        .example("create host-interface name veth1")
        .run(create),
    );
    registry.command(
        Command::new("delete host-interface name <linux-name:word>")
            .group(GROUP)
            .help("Give a Linux network device back")
            .example("delete host-interface name veth1")
            .run(|engine, args| {
                let name: &str = args.get("linux-name")?;
                delete_host_interface(engine, name)
                    .map_err(|e| args.refuse("linux-name", e.to_string()))?;
                Ok(Output::none())
            }),
    );
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let config = HostConfig {
        linux_name: args.get("linux-name")?,
        rx_queues: args.or("num-rx-queues", 1)?,
        tx_queues: args.optional("num-tx-queues")?,
    };
    let id: InterfaceId = create_host_interface(engine, config)
        .map_err(|e| args.refuse("linux-name", e.to_string()))?;
    Ok(Output::text(engine.interface_name(id)))
}

/// `show running-config`: the host interfaces.
pub(crate) fn ids(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<Hosts>().into_iter().flat_map(|hosts| hosts.configs.keys()).copied().collect()
}

/// `show running-config`: one of them.
pub(crate) fn write_host(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    if let Some(host) = engine.get::<Hosts>().and_then(|hosts| hosts.configs.get(&id)) {
        let HostConfig { linux_name, rx_queues, tx_queues } = host;
        let rx = if *rx_queues > 1 { format!(" num-rx-queues {rx_queues}") } else { String::new() };
        let tx = tx_queues.map_or_else(String::new, |n| format!(" num-tx-queues {n}"));
        config.command(format_args!("create host-interface name {linux_name}{rx}{tx}"));
    }
}
