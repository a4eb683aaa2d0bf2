//! `show dhcp …`, `show dhcpv6 …`.

use quiver_control::{Column, Command, Output, Registry, Table, by_interface_name};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;

use crate::commands::{GROUP, vss_words};
use crate::config::Dhcp;
use crate::option82::{InterfaceOptions, Vss};

pub(crate) fn register(registry: &mut Registry) {
    for (line, help, family) in [
        ("show dhcp proxy", "Show the servers that DHCP clients are relayed to", Family::Ip4),
        ("show dhcpv6 proxy", "Show the servers that DHCPv6 clients are relayed to", Family::Ip6),
    ] {
        registry.command(Command::new(line).group(GROUP).help(help).run(
            move |engine: &mut Engine, _| Ok(with_dhcp(engine, |dhcp| servers(dhcp, family))),
        ));
    }
    for (line, help, family) in [
        ("show dhcp vss", "Show in which VPN the DHCP clients of tables are", Family::Ip4),
        ("show dhcpv6 vss", "Show in which VPN the DHCPv6 clients of tables are", Family::Ip6),
    ] {
        registry.command(
            Command::new(line)
                .group(GROUP)
                .help(help)
                .run(move |engine: &mut Engine, _| Ok(with_dhcp(engine, |dhcp| vss(dhcp, family)))),
        );
    }
    registry.command(
        Command::new("show dhcp option-82 [<interface>]")
            .group(GROUP)
            .help("Show what servers are told of the clients of interfaces (DHCP option 82)")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(with_dhcp(engine, |dhcp| options(engine, dhcp, only)))
            }),
    );
    registry.command(
        Command::new("show dhcpv6 options [<interface>]")
            .group(GROUP)
            .help("Show what servers are told of the DHCPv6 clients of interfaces")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(with_dhcp(engine, |dhcp| options6(engine, dhcp, only)))
            }),
    );
    registry.command(
        Command::new("show dhcpv6 proxy prefixes")
            .group(GROUP)
            .help("Show the prefixes that servers have delegated to clients")
            .run(|engine: &mut Engine, _| Ok(with_dhcp(engine, |dhcp| prefixes(engine, dhcp)))),
    );
    registry.command(
        Command::new("show dhcp client [<interface>]")
            .group(GROUP)
            .help("Show the router's DHCP clients and their leases")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(with_dhcp(engine, |dhcp| clients(engine, dhcp, only)))
            }),
    );
}

pub(crate) fn with_dhcp(engine: &Engine, show: impl FnOnce(&Dhcp) -> Output) -> Output {
    engine.get::<Dhcp>().map_or_else(Output::none, show)
}

fn servers(dhcp: &Dhcp, family: Family) -> Output {
    let mut table = Table::new([
        Column::right("RX table"),
        Column::left("Server"),
        Column::right("Server table"),
        Column::left("Source address"),
    ])
    .when_empty("No server is configured");
    for (rx_table, servers) in &dhcp.proxies(family).servers {
        for server in servers {
            table
                .row()
                .cell(*rx_table)
                .cell(server.address.to_string())
                .cell(server.table)
                .cell(server.source.map(|source| source.to_string()));
        }
    }
    Output::none().table("servers", table)
}

fn vss(dhcp: &Dhcp, family: Family) -> Output {
    let mut table = Table::new([
        Column::right("Table"),
        Column::left("VPN name"),
        Column::right("OUI"),
        Column::right("VPN index"),
    ])
    .when_empty("Nothing was said of VPNs");
    for (id, said) in &dhcp.proxies(family).vss {
        let row = table.row().cell(*id);
        match said {
            Vss::Name(name) => row.cell(name).cell(None::<u32>).cell(None::<u32>),
            Vss::Id { oui, index } => row.cell(None::<&str>).cell(*oui).cell(*index),
            Vss::Global => row.cell(None::<&str>).cell(None::<u32>).cell(None::<u32>),
        };
    }
    Output::none().table("vss", table)
}

fn options(engine: &Engine, dhcp: &Dhcp, only: Option<InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("State"),
        Column::left("Circuit ID"),
        Column::left("Remote ID"),
        Column::left("Server override"),
        Column::left("Policy"),
        Column::left("VPN").key("vss"),
    ]);
    let chosen = |id: InterfaceId| only.is_none_or(|only| only == id);
    for interface in engine.interfaces_by_name().filter(|interface| chosen(interface.id)) {
        let [rx_table, _] = crate::config::tables_of(engine, interface.id);
        let given = dhcp.options.get(&interface.id);
        if given.is_none() && !dhcp.ip4.servers.contains_key(&rx_table) {
            continue;
        }
        let usual = InterfaceOptions::default();
        let said = given.unwrap_or(&usual);
        let vss = dhcp.ip4.vss.get(&rx_table);
        table
            .row()
            .cell(&interface.name)
            .cell(if said.disabled { "disabled" } else { "enabled" })
            .cell(dhcp.circuit_id(engine, interface.id))
            .cell(said.remote_id.clone())
            .cell(said.server_override)
            .cell(said.policy.word())
            .cell(vss.map(|vss| match vss {
                Vss::Global => "global".to_owned(),
                vss => vss_words(vss).trim_start().to_owned(),
            }));
    }
    Output::none().table("interfaces", table)
}

fn options6(engine: &Engine, dhcp: &Dhcp, only: Option<InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Remote ID"),
        Column::right("Enterprise"),
        Column::left("Link-layer address").key("link_layer_address"),
    ])
    .when_empty("No interface has DHCPv6 options of its own");
    let all = dhcp.options6.iter().map(|(id, options)| (*id, options));
    let chosen = all.filter(|(id, _)| only.is_none_or(|only| only == *id));
    for (id, options) in by_interface_name(engine, chosen) {
        let remote_id = options.remote_id.as_ref();
        table
            .row()
            .cell(engine.interface_name(id))
            .cell(remote_id.map(|(_, name)| name.clone()))
            .cell(remote_id.map(|(enterprise, _)| *enterprise))
            .cell(options.link_layer_address);
    }
    Output::none().table("interfaces", table)
}

/// Names or addresses in one cell; `None` when there are none.
pub(crate) fn list(items: impl Iterator<Item = impl ToString>) -> Option<String> {
    let all: Vec<String> = items.map(|item| item.to_string()).collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// Seconds that are left; `None` for ever.
pub(crate) fn left_s(until_ns: u64, now_ns: u64) -> Option<u64> {
    (until_ns != u64::MAX).then(|| until_ns.saturating_sub(now_ns).div_ceil(1_000_000_000))
}

fn prefixes(engine: &Engine, dhcp: &Dhcp) -> Output {
    let mut table = Table::new([
        Column::left("Prefix"),
        Column::left("Interface"),
        Column::left("Client"),
        Column::right("Valid").key("valid_s"),
        Column::left("Route"),
    ])
    .when_empty("No prefix is delegated");
    let now_ns = engine.now_ns();
    for (prefix, known) in dhcp.prefixes.iter() {
        let (id, client) = known.client;
        table
            .row()
            .cell(prefix.to_string())
            .cell(engine.interface_name(id))
            .cell(client.to_string())
            .cell(left_s(known.until_ns, now_ns))
            .cell(dhcp.prefixes.is_installed(prefix));
    }
    Output::none().table("prefixes", table)
}

fn clients(engine: &Engine, dhcp: &Dhcp, only: Option<InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("State"),
        Column::left("Address"),
        Column::left("Server"),
        Column::left("Routers"),
        Column::left("Name servers"),
        Column::right("Renews in").key("renew_s"),
        Column::right("Rebinds in").key("rebind_s"),
        Column::right("Ends in").key("lease_left_s"),
        Column::right("Sent"),
        Column::right("Received"),
        Column::right("Refused"),
        Column::right("Declined"),
    ])
    .when_empty("No interface has a DHCP client");
    let now_ns = engine.now_ns();
    let all = dhcp.clients.iter().map(|(id, client)| (*id, client));
    let chosen = all.filter(|(id, _)| only.is_none_or(|only| only == *id));
    for (id, client) in by_interface_name(engine, chosen) {
        let lease = client.lease.as_ref().filter(|_| client.is_bound());
        let left = |at: fn(&crate::client::Lease) -> u64| {
            lease.and_then(|lease| left_s(at(lease), now_ns))
        };
        table
            .row()
            .cell(engine.interface_name(id))
            .cell(client.state.word())
            .cell(lease.map(|lease| format!("{}/{}", lease.address, lease.length)))
            .cell(lease.map(|lease| lease.server.to_string()))
            .cell(lease.and_then(|lease| list(lease.routers.iter())))
            .cell(lease.and_then(|lease| list(lease.name_servers.iter())))
            .cell(left(|lease| lease.renew_ns))
            .cell(left(|lease| lease.rebind_ns))
            .cell(left(|lease| lease.until_ns))
            .cell(client.counts.sent)
            .cell(client.counts.received)
            .cell(client.counts.refused)
            .cell(client.counts.declined);
    }
    Output::none().table("clients", table)
}
