//! The commands of IP in IP tunnels.

use quiver_control::{Args, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work};
use quiver_core::{Engine, InterfaceId};
use quiver_encap::tunnel::{PeerView, TunnelConfig, TunnelProtocol, Tunnels, config};
use quiver_forwarding::fib::{Family, Fib, PathState};

use crate::header::Ipip;

/// The heading of these commands.
const GROUP: &str = "Tunnels";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create ipip tunnel src <src:ip> {[dst <dst:ip>] [multipoint] [instance <:0-16383>] \
             [outer-table-id <:u32>] [ttl <:1-255>] [dscp <:0-63>] [del]}",
        )
        .group(GROUP)
        .help("Create an IP in IP tunnel, the interface ipipN, or delete it")
        .details(
            "It carries IPv4 and IPv6 packets. TTL and DSCP of the outer header are those of the inner packet unless they are set; the ECN field follows RFC \
             6040. A packet that the path does not take is told to its sender. With del, the tunnel between these ends is \
             deleted.",
        )
        .word("src", "the outer source, an address of this router")
        .word("dst", "the outer destination")
        .word("multipoint", "many destinations, which `create teib` names")
        .word("instance", "the number in its name; the first that is free unless given")
        .word("outer-table-id", "the table that has the outer destination; 0 unless given")
        .word("ttl", "of the outer header")
        .word("dscp", "of the outer header")
        .word("del", "delete it")
        .example("create ipip tunnel src 192.0.2.1 dst 192.0.2.2")
        .example("create ipip tunnel src 2001:db8::1 dst 2001:db8::2 instance 7 ttl 64 dscp 46")
        .example("create ipip tunnel src 192.0.2.1 multipoint")
        .run(create),
    );
    registry.command(
        Command::new("delete ipip tunnel <interface>")
            .group(GROUP)
            .help("Delete an IP in IP tunnel")
            .example("delete ipip tunnel ipip0")
            .run(delete),
    );
    registry.command(
        Command::new("show ipip tunnel [<interface>]")
            .group(GROUP)
            .help("Show IP in IP tunnels, their ends, and where their packets go")
            .run_or_begin(show),
    );
}

fn asked(args: &Args<'_>) -> Result<TunnelConfig, Refusal> {
    let destination = args.optional("dst")?;
    if destination.is_some() == args.has("multipoint") {
        let what = "a tunnel has one destination (dst), or is multipoint";
        return Err(Refusal::new(what).remedy("give one of both"));
    }
    Ok(TunnelConfig {
        instance: args.optional("instance")?,
        source: args.get("src")?,
        destination,
        table: args.or("outer-table-id", 0)?,
        key: None,
        carries_frames: false,
        hop_limit: args.optional("ttl")?,
        dscp: args.optional("dscp")?,
    })
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let asked = asked(args)?;
    if args.has("del") {
        let id = between(engine, &asked).ok_or_else(|| {
            Refusal::new("there is no IP in IP tunnel with these ends and table").remedy("`show ipip tunnel`")
        })?;
        engine.delete_interface(id)?;
        return Ok(Output::none());
    }
    let id = config::create::<Ipip>(engine, asked).map_err(|error| Refusal::new(error.to_string()))?;
    let name = engine.interface_name(id);
    Ok(Output::none().line(name.as_str()).json("name", name.into()))
}

/// The tunnel that a command describes.
fn between(engine: &Engine, asked: &TunnelConfig) -> Option<InterfaceId> {
    let ends = |config: &TunnelConfig| (config.source, config.destination, config.table);
    let mut tunnels = engine.get::<Tunnels<Ipip>>().into_iter().flat_map(Tunnels::iter);
    tunnels.find(|(_, tunnel)| ends(&tunnel.config) == ends(asked)).map(|(id, _)| id)
}

fn tunnel(engine: &Engine, args: &Args<'_>) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.get::<Tunnels<Ipip>>().is_some_and(|tunnels| tunnels.get(id).is_some()) {
        return Ok(id);
    }
    let what = format!("{} is no {}", engine.interface_name(id), Ipip::WORDS);
    Err(args.refuse("interface", what).remedy("`show ipip tunnel`"))
}

fn delete(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = tunnel(engine, args)?;
    engine.delete_interface(id)?;
    Ok(Output::none())
}

/// What the route of the outer destination is doing.
fn underlay(peer: &PeerView) -> String {
    match peer.underlay {
        None => "gone".to_owned(),
        Some(PathState::Used | PathState::Waits) => "up".to_owned(),
        Some(PathState::Unusable(why)) => why.to_string(),
    }
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys: Vec<InterfaceId> = match args.has("interface") {
        true => vec![tunnel(engine, args)?],
        false => {
            engine.get::<Tunnels<Ipip>>().into_iter().flat_map(Tunnels::iter).map(|(id, _)| id).collect()
        }
    };
    let columns = [
        Column::left("Interface"),
        Column::left("State"),
        Column::left("Source"),
        Column::left("Destination"),
        Column::right("Table"),
        Column::left("Next hop"),
        Column::left("Underlay"),
        Column::right("Path MTU").key("path_mtu_bytes"),
        Column::right("Packets"),
        Column::right("Bytes"),
    ];
    let add = |engine: &Engine, table: &mut Table, id| {
        let (Some(tunnels), Some(fib)) = (engine.get::<Tunnels<Ipip>>(), engine.get::<Fib>()) else { return };
        let Some(tunnel) = tunnels.get(id) else { return };
        let up = engine.interface(id).is_some_and(|interface| interface.row().up);
        let config = &tunnel.config;
        let mut peers: Vec<Option<PeerView>> = tunnels.peers(tunnel, fib).map(Some).collect();
        if peers.is_empty() {
            peers.push(None);
        }
        for peer in peers {
            let row = table.row().cell(engine.interface_name(id)).cell(if up { "up" } else { "down" });
            let destination =
                config.destination.map_or_else(|| "multipoint".to_owned(), |address| address.to_string());
            let row = row.cell(config.source.to_string()).cell(destination).cell(config.table);
            let row = row.cell(peer.and_then(|peer| peer.next_hop).map(|next_hop| next_hop.to_string()));
            let row = row.cell(peer.as_ref().map(underlay));
            let row = row.cell(peer.and_then(|peer| peer.path_mtu).map(|path| path.mtu_bytes));
            let [packets, bytes] = peer.map_or([0; 2], |peer| peer.sent);
            row.cell(packets).cell(bytes);
        }
    };
    Listing::over("ipip_tunnels", columns, keys, add)
        .when_empty("no IP in IP tunnels; `create ipip tunnel` makes one")
        .begin(engine)
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    for (_, tunnel) in engine.get::<Tunnels<Ipip>>().into_iter().flat_map(Tunnels::iter) {
        let tunnel = &tunnel.config;
        let mut words = vec![format!("src {}", tunnel.source)];
        words.extend(tunnel.destination.map(|address| format!("dst {address}")));
        words.extend(tunnel.destination.is_none().then(|| "multipoint".to_owned()));
        words.extend(tunnel.instance.map(|instance| format!("instance {instance}")));
        words.extend((tunnel.table != 0).then(|| format!("outer-table-id {}", tunnel.table)));
        words.extend(tunnel.hop_limit.map(|hops| format!("ttl {hops}")));
        words.extend(tunnel.dscp.map(|dscp| format!("dscp {dscp}")));
        let words = words.join(" ");
        if tunnel.table != 0 {
            let family = Family::of(tunnel.source).word();
            config.command(format_args!("{family} table add {}", tunnel.table));
        }
        config.command(format_args!("create ipip tunnel {words}"));
    }
}
