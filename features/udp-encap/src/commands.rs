//! `udp encap`: what routes lead to.

use std::net::IpAddr;

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
    with_interface_names,
};
use quiver_core::{Engine, InterfaceId};
use quiver_encap::tunnel::{self, TunnelConfig, Tunnels, UdpConfig};
use quiver_forwarding::fib::{Family, Fib, PathState};

use crate::header::{SourcePort, UdpEncap};

/// The heading of these commands.
pub(crate) const GROUP: &str = "Tunnels";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "udp encap add <id:0-16383> <src:ip> <dst:ip> <src-port:1-65535> <dst-port:1-65535> \
             {[table-id <:u32>] [src-port-is-entropy]}",
        )
        .entry(
            order::INTERFACES,
            "interfaces.udp_encap<id>.udp-encap: {src, dst, src-port, dst-port, \
             table: <table-id>, src-port-is-entropy}",
        )
        .undo("udp encap del <id>")
        .makes("interface udp_encap<id>")
        .group(GROUP)
        .help("Make a UDP encapsulation, the interface udp_encapN, to which routes lead")
        .details(
            "`ip route add PREFIX via udp_encapN` puts an IP and a UDP header in front of packets. \
             Nothing says what is inside: the other end knows it by the port (`udp decap`).",
        )
        .word("id", "its number")
        .word("src", "the outer source, an address of this router")
        .word("dst", "the outer destination")
        .word("src-port", "the UDP source port")
        .word("dst-port", "the UDP destination port")
        .word("table-id", "the table that has the outer destination; 0 unless given")
        .word("src-port-is-entropy", "the source port is made of the flow inside instead")
        .example("udp encap add 7 192.0.2.1 203.0.113.2 4444 4445")
        .example("udp encap add 8 192.0.2.1 203.0.113.2 4444 6635 src-port-is-entropy")
        .run(add),
    );
    registry.command(
        Command::new("udp encap del <id:0-16383>")
            .group(GROUP)
            .help("Delete a UDP encapsulation")
            .example("udp encap del 7")
            .run(delete),
    );
    registry.command(
        Command::new("show udp encap")
            .group(GROUP)
            .help("Show UDP encapsulations, and what they have sent")
            .run(|engine: &mut Engine, _| Ok(Output::none().table("udp_encaps", table(engine)))),
    );
}

fn tunnels(engine: &Engine) -> Option<&Tunnels<UdpEncap>> {
    engine.get::<Tunnels<UdpEncap>>()
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let (source, destination): (IpAddr, IpAddr) = (args.get("src")?, args.get("dst")?);
    let id: u32 = args.get("id")?;
    let config = TunnelConfig {
        instance: Some(id),
        source,
        destination: Some(destination),
        table: args.or("table-id", 0)?,
        // Nothing is received, so no two of them can be mistaken for one another.
        key: Some(id),
        carries_frames: false,
        hop_limit: None,
        dscp: None,
        udp: Some(UdpConfig {
            is_group: false,
            local_port: 0,
            remote_port: args.get("dst-port")?,
            zero_checksum: false,
            group_interface: None,
            input: None,
            is_layer3: false,
        }),
        extra: SourcePort {
            port: args.get("src-port")?,
            is_entropy: args.has("src-port-is-entropy"),
        },
    };
    let interface = tunnel::create::<UdpEncap>(engine, config)
        .map_err(|error| Refusal::new(with_interface_names(engine, error)))?;
    engine.set_admin_up(interface, true)?;
    let name = engine.interface_name(interface);
    Ok(Output::none().line(name.as_str()).json("name", name.into()))
}

fn delete(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id: u32 = args.get("id")?;
    let found = in_order(engine).into_iter().find(|(known, _)| *known == id).map(|(_, on)| on);
    let what = format!("there is no UDP encapsulation {id}");
    let interface = found.ok_or_else(|| args.refuse("id", what).remedy("`show udp encap`"))?;
    engine.delete_interface(interface)?;
    Ok(Output::none())
}

/// All of them, by their numbers.
fn in_order(engine: &Engine) -> Vec<(u32, InterfaceId)> {
    let all = tunnels(engine).into_iter().flat_map(Tunnels::iter);
    let mut all: Vec<_> =
        all.map(|(on, tunnel)| (tunnel.config.instance.unwrap_or(0), on)).collect();
    all.sort();
    all
}

fn table(engine: &Engine) -> Table {
    let mut table = Table::new([
        Column::right("ID"),
        Column::left("Interface"),
        Column::left("Source"),
        Column::left("Destination"),
        Column::right("Source port"),
        Column::right("Destination port"),
        Column::right("Table"),
        Column::left("Underlay"),
        Column::right("Path MTU").key("path_mtu_bytes"),
        Column::right("Packets"),
        Column::right("Bytes"),
    ]);
    let (Some(tunnels), Some(fib)) = (tunnels(engine), engine.get::<Fib>()) else { return table };
    for (id, interface) in in_order(engine) {
        let Some(tunnel) = tunnels.get(interface) else { continue };
        let (config, peer) = (&tunnel.config, tunnels.peers(tunnel, fib).next());
        let path_mtu = peer.and_then(|peer| peer.path_mtu).map(|path| path.mtu_bytes);
        let underlay = match peer.and_then(|peer| peer.underlay) {
            None => "gone",
            Some(PathState::Used | PathState::Waits) => "up",
            Some(PathState::Unusable(_)) => "unusable",
        };
        let (Some(destination), Some(udp)) = (config.destination, config.udp) else { continue };
        let port = match config.extra.is_entropy {
            true => Cell::new("entropy", None::<u16>),
            false => Cell::new(config.extra.port.to_string(), Some(config.extra.port)),
        };
        let [packets, bytes] = peer.map_or([0; 2], |peer| peer.sent);
        let row = table.row().cell(id).cell(engine.interface_name(interface));
        let row = row.cell(config.source.to_string()).cell(destination.to_string()).cell(port);
        let row = row.cell(udp.remote_port).cell(config.table).cell(underlay).cell(path_mtu);
        row.cell(packets).cell(bytes);
    }
    table
}

/// `show running-config`: the encapsulations.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    for (id, interface) in in_order(engine) {
        let Some(tunnel) = tunnels(engine).and_then(|tunnels| tunnels.get(interface)) else {
            continue;
        };
        let TunnelConfig { source, destination, table, udp, extra, .. } = tunnel.config;
        let (Some(destination), Some(udp)) = (destination, udp) else { continue };
        let mut words =
            vec![format!("{id} {source} {destination} {} {}", extra.port, udp.remote_port)];
        if table != 0 {
            config.command(format_args!("{} table add {table}", Family::of(source).word()));
            words.push(format!("table-id {table}"));
        }
        words.extend(extra.is_entropy.then(|| "src-port-is-entropy".to_owned()));
        config.command(format_args!("udp encap add {}", words.join(" ")));
    }
}

/// `show running-config`: those that are down, for they are made up.
pub(crate) fn write_states(engine: &Engine, config: &mut ConfigWriter) {
    for (_, id) in in_order(engine) {
        if engine.interface(id).is_some_and(|interface| !interface.row().up) {
            config.command(format_args!("set interface state {} down", engine.interface_name(id)));
        }
    }
}
