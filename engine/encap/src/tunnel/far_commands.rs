//! Commands of ports with many far ends, and the calls of control planes that name those.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quiver_control::layer_two::{BridgeFdb, FarEnds, FarPlace, FdbEntry, Network};
use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    of_each_interface, order, with_interface_names,
};
use quiver_core::control::interfaces::InterfaceChange;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::Family;
use quiver_wire::MacAddress;
use serde_json::json;

use super::commands::CommandText;
use super::config::{self, Tunnel, TunnelConfig, Tunnels, UdpConfig};
use super::far_ends;
use super::protocol::TunnelProtocol;

/// The heading of these commands.
const GROUP: &str = "Tunnels";

/// A protocol in UDP whose ports may have many far ends.
pub trait FarEndCommands: TunnelProtocol {
    /// The words of users for the commands of such ports.
    const FAR_TEXTS: FarEndTexts;
}

/// The words of users for ports with many far ends.
#[derive(Clone, Copy, Debug)]
pub struct FarEndTexts {
    /// Makes a port. Its arguments are `local`, `vni`, `instance`, `table`, `local-port`,
    /// `remote-port` and `zero-udp6-checksum`.
    pub create: CommandText,
    /// More about it.
    pub create_details: &'static str,
    /// Deletes a port.
    pub delete: CommandText,
    /// Names a far end to which frames to all stations go. Its arguments are `interface`, `vtep`
    /// and `del`.
    pub flood: CommandText,
    /// Names the far end that a station is behind. Its arguments are `interface`, `mac`, `vtep` and
    /// `del`.
    pub station: CommandText,
    /// Shows ports.
    pub show: CommandText,
    /// The name of the list in JSON.
    pub list: &'static str,
    /// What a port is in the configuration: where it lives in a document, what it makes, how it is
    /// taken back.
    pub entry: &'static str,
    /// See [`entry`](Self::entry).
    pub makes: &'static str,
    /// See [`entry`](Self::entry).
    pub undo: &'static str,
    /// The places of `flood` and `station` in a document, and how they are taken back.
    pub flood_entry: &'static str,
    /// See [`flood_entry`](Self::flood_entry).
    pub flood_undo: &'static str,
    /// See [`flood_entry`](Self::flood_entry).
    pub station_entry: &'static str,
    /// See [`flood_entry`](Self::flood_entry).
    pub station_undo: &'static str,
    /// The word of the command that makes one, before `interface`.
    pub word: &'static str,
}

/// What operators have said of far ends; control planes leave it alone.
#[derive(Default)]
struct Configured {
    floods: BTreeSet<(InterfaceId, IpAddr)>,
    stations: BTreeMap<(InterfaceId, [u8; 6]), IpAddr>,
}

/// Declare commands and the part of the configuration.
pub(super) fn register<P: FarEndCommands>(registry: &mut Registry) {
    let texts = P::FAR_TEXTS;
    registry.command(
        command(&texts.create)
            .details(texts.create_details)
            .word("src", "the outer source, an address of this router")
            .word("vni", "the network identifier, 24 bits")
            .word("evpn", "far ends and stations behind them come from a control plane")
            .word("instance", "the number in its name; the first that is free unless given")
            .word("encap-vrf-id", "the table that has the far ends; 0 unless given")
            .word("src_port", "the UDP port at which this end takes packets")
            .word("dst_port", "the UDP port at which the far ends do")
            .word("zero-udp6-checksum", "over IPv6, send datagrams without a checksum (RFC 6935)")
            .entry(order::INTERFACES, texts.entry)
            .undo(texts.undo)
            .makes(texts.makes)
            .run(create::<P>),
    );
    registry.command(command(&texts.delete).run(|engine: &mut Engine, args| {
        let id = port::<P>(engine, args)?;
        engine.delete_interface(id)?;
        Ok(Output::none())
    }));
    registry.command(
        command(&texts.flood)
            .word("vtep", "the outer address of the far end")
            .word("del", "no more")
            .entry(order::NEIGHBORS, texts.flood_entry)
            .undo(texts.flood_undo)
            .run(flood::<P>),
    );
    registry.command(
        command(&texts.station)
            .word("station", "the MAC address")
            .word("vtep", "the outer address of the far end")
            .word("del", "no more")
            .entry(order::NEIGHBORS, texts.station_entry)
            .undo(texts.station_undo)
            .run(station::<P>),
    );
    registry.command(command(&texts.show).run_or_begin(show::<P>));
    let ports = of_each_interface(ids::<P>, write_port::<P>);
    registry.running_config_in_slices(order::INTERFACES, ports);
    let behind = of_each_interface(ids::<P>, write_far_ends::<P>);
    registry.running_config_in_slices(order::NEIGHBORS, behind);
    registry.on_start(|engine| {
        engine.insert(Configured::default());
        engine.on_interface_change(|engine, id, change| {
            if let (InterfaceChange::Deleted, Some(said)) = (change, engine.get_mut::<Configured>())
            {
                said.floods.retain(|(port, _)| *port != id);
                said.stations.retain(|(port, _), _| *port != id);
            }
        });
    });
}

fn command(text: &CommandText) -> Command<Engine> {
    let command = Command::new(text.syntax).group(GROUP).help(text.help);
    text.examples.iter().fold(command, |command, line| command.example(line))
}

/// What control planes call.
pub(super) fn calls<P: FarEndCommands>() -> FarEnds {
    FarEnds {
        port: |engine, vni| {
            let mut ports = engine.get::<Tunnels<P>>().into_iter().flat_map(Tunnels::iter);
            let of_vni =
                ports.find(|(_, tunnel)| tunnel.has_far_ends() && tunnel.config.key == Some(vni));
            of_vni.map(|(id, _)| id)
        },
        network: |engine, port| {
            let tunnel = engine.get::<Tunnels<P>>()?.get(port)?;
            let config = tunnel.has_far_ends().then_some(tunnel.config)?;
            let (vni, port) = (config.key?, config.udp?.remote_port);
            Some(Network { vni, source: config.source, port })
        },
        add: |engine, station, place| {
            let said = engine.get::<Configured>();
            if said.is_some_and(|said| said.stations.contains_key(&(station.port, station.mac))) {
                return Ok(());
            }
            far_ends::add_station::<P>(engine, station, place)
        },
        redirect: |engine, port, group, remote| {
            let done = far_ends::redirect::<P>(engine, port, group, remote);
            done.map_err(|error| error.to_string())
        },
        remove: |engine, station| {
            let said = engine.get::<Configured>();
            if said.is_none_or(|said| !said.stations.contains_key(&(station.port, station.mac))) {
                far_ends::remove_station::<P>(engine, station);
            }
        },
        flood: |engine, port, remote, on| {
            let said = engine.get::<Configured>();
            if said.is_some_and(|said| said.floods.contains(&(port, remote))) {
                return Ok(());
            }
            let done = far_ends::set_flooded::<P>(engine, port, remote, on);
            done.map_err(|error| error.to_string())
        },
    }
}

/// The port that a command names.
fn port<P: FarEndCommands>(engine: &Engine, args: &Args<'_>) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    let tunnel = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.get(id));
    if tunnel.is_some_and(|tunnel| tunnel.has_far_ends()) {
        return Ok(id);
    }
    let what = format!("{} has not many far ends", engine.interface_name(id));
    Err(args.refuse("interface", what).remedy(P::FAR_TEXTS.create.syntax))
}

fn create<P: FarEndCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let port = P::UDP_PORT.unwrap_or(0);
    let config = TunnelConfig {
        instance: args.optional("instance")?,
        source: args.get("local")?,
        destination: None,
        table: args.or("table", 0)?,
        key: args.optional("vni")?,
        carries_frames: true,
        hop_limit: None,
        dscp: None,
        udp: Some(UdpConfig {
            local_port: args.or("local-port", port)?,
            remote_port: args.or("remote-port", port)?,
            zero_checksum: args.has("zero-udp6-checksum"),
            is_group: false,
            group_interface: None,
            input: None,
            is_layer3: false,
        }),
        extra: P::Extra::default(),
    };
    let id = config::create::<P>(engine, config)
        .map_err(|error| Refusal::new(with_interface_names(engine, error)))?;
    let name = engine.interface_name(id);
    Ok(Output::none().line(name.as_str()).json("name", name.into()))
}

/// An address that a far end of this port can have.
fn remote<P: FarEndCommands>(
    engine: &Engine,
    args: &Args<'_>,
    port: InterfaceId,
) -> Result<IpAddr, Refusal> {
    let remote: IpAddr = args.get("vtep")?;
    let source = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.get(port));
    let source = source.map(|tunnel| tunnel.config.source);
    let fits = source.is_some_and(|source| Family::of(source) == Family::of(remote));
    if fits && !remote.is_multicast() && !remote.is_unspecified() {
        return Ok(remote);
    }
    let what = format!("{remote} is no address of a host of the family of the tunnel's source");
    Err(args.refuse("vtep", what))
}

fn flood<P: FarEndCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let port = port::<P>(engine, args)?;
    let (remote, on) = (remote::<P>(engine, args, port)?, !args.has("del"));
    far_ends::set_flooded::<P>(engine, port, remote, on)
        .map_err(|error| Refusal::new(with_interface_names(engine, error)))?;
    if let Some(said) = engine.get_mut::<Configured>() {
        match on {
            true => said.floods.insert((port, remote)),
            false => said.floods.remove(&(port, remote)),
        };
    }
    Ok(Output::none())
}

fn station<P: FarEndCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let port = port::<P>(engine, args)?;
    let mac: [u8; 6] = args.get("station")?;
    let (remote, station) = (remote::<P>(engine, args, port)?, FdbEntry { port, mac });
    match args.has("del") {
        true => far_ends::remove_station::<P>(engine, station),
        false => {
            let place = FarPlace::Vtep(remote);
            far_ends::add_station::<P>(engine, station, place).map_err(|why| {
                Refusal::new(why)
                    .remedy("put the tunnel into a bridge domain: `set interface l2 bridge`")
            })?;
        }
    }
    if let Some(said) = engine.get_mut::<Configured>() {
        match args.has("del") {
            true => said.stations.remove(&(port, mac)),
            false => said.stations.insert((port, mac), remote),
        };
    }
    Ok(Output::none())
}

fn columns() -> [Column; 8] {
    [
        Column::left("Interface"),
        Column::left("State"),
        Column::left("Source"),
        Column::right("VNI"),
        Column::right("Table"),
        Column::right("Stations"),
        Column::left("Flood list").key("flood_list"),
        Column::left("Path MTUs").key("path_mtus"),
    ]
}

fn add_row<P: FarEndCommands>(engine: &Engine, table: &mut Table, id: InterfaceId) {
    let Some(tunnels) = engine.get::<Tunnels<P>>() else { return };
    let Some(tunnel) = tunnels.get(id) else { return };
    let up = engine.interface(id).is_some_and(|interface| interface.row().up);
    let config = &tunnel.config;
    let list: Vec<String> = tunnels.far.list(id).map(|remote| remote.to_string()).collect();
    let row = table.row().cell(engine.interface_name(id)).cell(if up { "up" } else { "down" });
    let row = row.cell(config.source.to_string()).cell(config.key).cell(config.table);
    let row = row.cell(tunnels.far.station_count(id)).cell(Cell::new(list.join(" "), list));
    row.cell(path_mtus(tunnels, tunnel));
}

/// The far ends of a port to which paths are known that take less than their first links.
fn path_mtus<P: FarEndCommands>(tunnels: &Tunnels<P>, of: &Tunnel<P>) -> Cell {
    let port = of.config.udp.map_or(0, |udp| udp.remote_port);
    let far_ends = tunnels.far.peers_of(of.config.source, (of.table(), port));
    let known = far_ends.filter_map(|(vtep, peer)| Some((vtep, tunnels.path_mtu_bytes(peer)?)));
    let known: Vec<(IpAddr, u16)> = known.collect();
    let words: Vec<String> = known.iter().map(|(vtep, mtu)| format!("{vtep}: {mtu}")).collect();
    let rows = known.iter().map(|(vtep, mtu)| json!({ "vtep": vtep, "mtu_bytes": mtu }));
    Cell::new(words.join(", "), rows.collect::<Vec<_>>())
}

fn show<P: FarEndCommands>(engine: &mut Engine, _: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    Listing::over(P::FAR_TEXTS.list, columns(), ids::<P>(engine), add_row::<P>)
        .when_empty("no tunnels with many far ends")
        .begin(engine)
}

fn ids<P: FarEndCommands>(engine: &Engine) -> Vec<InterfaceId> {
    let all = engine.get::<Tunnels<P>>().into_iter().flat_map(Tunnels::iter);
    all.filter(|(_, tunnel)| tunnel.has_far_ends()).map(|(id, _)| id).collect()
}

/// `show running-config`: a port.
fn write_port<P: FarEndCommands>(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    let Some(tunnel) = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.get(id)) else {
        return;
    };
    let tunnel = &tunnel.config;
    let mut words = vec![format!("src {}", tunnel.source)];
    words.extend(tunnel.key.map(|vni| format!("vni {vni}")));
    words.push("evpn".to_owned());
    words.extend(tunnel.instance.map(|instance| format!("instance {instance}")));
    if tunnel.table != 0 {
        let family = Family::of(tunnel.source).word();
        config.command(format_args!("{family} table add {}", tunnel.table));
        words.push(format!("encap-vrf-id {}", tunnel.table));
    }
    if let Some(udp) = &tunnel.udp {
        let ports = [("src_port", udp.local_port), ("dst_port", udp.remote_port)];
        let others = ports.into_iter().filter(|(_, port)| Some(*port) != P::UDP_PORT);
        words.extend(others.map(|(word, port)| format!("{word} {port}")));
        words.extend(udp.zero_checksum.then(|| "zero-udp6-checksum".to_owned()));
    }
    config.command(format_args!("create {} interface {}", P::FAR_TEXTS.word, words.join(" ")));
}

/// `show running-config`: the far ends of a port that operators have named.
fn write_far_ends<P: FarEndCommands>(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    let Some(said) = engine.get::<Configured>() else { return };
    let (name, word) = (engine.interface_name(id), P::FAR_TEXTS.word);
    for (_, remote) in said.floods.iter().filter(|(port, _)| *port == id) {
        config.command(format_args!("set {word} flood {name} vtep {remote}"));
    }
    // Stations are those of a bridge domain, and go with it.
    let domain = engine.get::<BridgeFdb>().and_then(|calls| (calls.domain)(engine, id));
    if domain.is_none() {
        return;
    }
    for ((_, mac), remote) in said.stations.iter().filter(|((port, _), _)| *port == id) {
        let mac = MacAddress(*mac);
        config.command(format_args!("set {word} station {name} {mac} vtep {remote}"));
    }
}
