//! Commands of tunnels in UDP: create, delete, show, and the part of `show running-config`. A
//! protocol gives the words of users ([`UdpTexts`]); what the commands do is the same for every
//! protocol.

use quiver_control::{
    Args, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    of_each_interface, order, with_interface_names,
};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};

use super::commands::{CommandText, underlay};
use super::config::{self, PeerView, TunnelConfig, Tunnels, UdpConfig};
use super::protocol::UdpCommands;

/// The heading of these commands.
const GROUP: &str = "Tunnels";

/// The words before the values of the command that makes a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct UdpWords {
    /// Before the outer source.
    pub local: &'static str,
    /// Before the outer destination.
    pub remote: &'static str,
    /// Before the UDP port of this end.
    pub local_port: &'static str,
    /// Before the UDP port of the other end.
    pub remote_port: &'static str,
}

/// The words of users for tunnels of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct UdpTexts {
    /// `create … tunnel`. Its arguments are `local`, `remote`, `vni`, and as far as the protocol
    /// has them `instance`, `table`, `l2`, `node`, `l3`, `local-port`, `remote-port`,
    /// `zero-udp6-checksum` and `del`.
    pub create: CommandText,
    /// More about `create … tunnel`.
    pub create_details: &'static str,
    /// Its words before values.
    pub words: UdpWords,
    /// Help for further words.
    pub help: &'static [(&'static str, &'static str)],
    /// `delete … tunnel`.
    pub delete: CommandText,
    /// `show … tunnel`.
    pub show: CommandText,
    /// The name of the list in JSON.
    pub list: &'static str,
    /// The command that deletes a tunnel, over the arguments of the one that creates it.
    pub undo: &'static str,
    /// Where a tunnel lives in a document, over the same.
    pub entry: &'static str,
    /// The interface that a tunnel is, over the same.
    pub makes: &'static str,
    /// What `show … tunnel` prints where there is no tunnel.
    pub none: &'static str,
    /// The refusal where no tunnel has the ends that a command names.
    pub no_such_ends: &'static str,
    /// The remedy where an interface is not such a tunnel.
    pub remedy: &'static str,
    /// The row of `show memory`.
    pub memory: &'static str,
    /// Where the protocol has tunnels to multicast groups: the command for the interface that leads
    /// to a tunnel's group. The command that makes a tunnel has the arguments `group` and `via`.
    pub group: Option<GroupTexts>,
}

/// The words of users for the interface that leads to a tunnel's group.
#[derive(Clone, Copy, Debug)]
pub struct GroupTexts {
    /// Its arguments are `interface`, and `via` or `none`.
    pub command: CommandText,
    /// Where it lives in a document.
    pub entry: &'static str,
    /// How it is taken back.
    pub undo: &'static str,
}

/// Declare the commands of a protocol's tunnels, their part of the configuration, and their memory.
pub(super) fn register<P: UdpCommands>(registry: &mut Registry) {
    registry.command(create_command::<P>());
    registry.command(command(&P::TEXTS.delete).run(delete::<P>));
    registry.command(command(&P::TEXTS.show).run_or_begin(show::<P>));
    if let Some(group) = &P::TEXTS.group {
        registry.command(
            command(&group.command)
                .entry(order::NEIGHBORS, group.entry)
                .undo(group.undo)
                .run(set_group_interface::<P>),
        );
        let groups = of_each_interface(point_to_point::<P>, write_group::<P>);
        registry.running_config_in_slices(order::NEIGHBORS, groups);
    }
    registry.running_config_in_slices(
        order::INTERFACES,
        of_each_interface(point_to_point::<P>, write_tunnel::<P>),
    );
    registry.memory(|engine| {
        let bytes = engine.get::<Tunnels<P>>().map_or(0, |tunnels| tunnels.resident_bytes() as u64);
        vec![(P::TEXTS.memory, bytes)]
    });
}

fn command(text: &CommandText) -> Command<Engine> {
    let command = Command::new(text.syntax).group(GROUP).help(text.help);
    text.examples.iter().fold(command, |command, line| command.example(line))
}

fn create_command<P: UdpCommands>() -> Command<Engine> {
    let words = P::TEXTS.words;
    let command = command(&P::TEXTS.create)
        .details(P::TEXTS.create_details)
        .word(words.local, "the outer source, an address of this router")
        .word(words.remote, "the outer destination")
        .word("vni", "the network identifier, 24 bits")
        .word("instance", "the number in its name; the first that is free unless given")
        .word("encap-vrf-id", "the table that has the outer destination; 0 unless given")
        .word("del", "delete it");
    let more = P::TEXTS.help.iter();
    more.fold(command, |command, (word, help)| command.word(word, help))
        .entry(order::INTERFACES, P::TEXTS.entry)
        .undo(P::TEXTS.undo)
        .makes(P::TEXTS.makes)
        .run(create::<P>)
}

/// The tunnel that a command describes.
fn described<P: UdpCommands>(
    engine: &Engine,
    args: &Args<'_>,
) -> Result<TunnelConfig<P::Extra>, Refusal> {
    let port = P::UDP_PORT.unwrap_or(0);
    let input = args.has("node").then(|| args.node(engine, "node")).transpose()?;
    let mut config = TunnelConfig {
        instance: args.optional("instance")?,
        source: args.get("local")?,
        destination: Some(match args.optional("group")? {
            Some(group) => group,
            None => args.get("remote")?,
        }),
        table: args.or("table", 0)?,
        key: args.optional("vni")?,
        carries_frames: true,
        hop_limit: None,
        dscp: None,
        udp: Some(UdpConfig {
            local_port: args.or("local-port", port)?,
            remote_port: args.or("remote-port", port)?,
            zero_checksum: args.has("zero-udp6-checksum"),
            is_group: args.has("group"),
            group_interface: args.optional_interface(engine, "via")?,
            input,
            is_layer3: args.has("l3"),
        }),
        extra: P::Extra::default(),
    };
    P::apply(args, &mut config);
    Ok(config)
}

fn create<P: UdpCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let described = described::<P>(engine, args)?;
    if args.has("del") {
        let id = between::<P>(engine, &described)
            .ok_or_else(|| Refusal::new(P::TEXTS.no_such_ends).remedy(P::TEXTS.remedy))?;
        engine.delete_interface(id)?;
        return Ok(Output::none());
    }
    let id = config::create::<P>(engine, described)
        .map_err(|error| Refusal::new(with_interface_names(engine, error)))?;
    let name = engine.interface_name(id);
    Ok(Output::none().line(name.as_str()).json("name", name.into()))
}

fn set_group_interface<P: UdpCommands>(
    engine: &mut Engine,
    args: &Args<'_>,
) -> Result<Output, Refusal> {
    let id = tunnel::<P>(engine, args)?;
    let via = args.optional_interface(engine, "via")?;
    config::set_group_interface::<P>(engine, id, via)
        .map_err(|error| Refusal::new(with_interface_names(engine, error)))?;
    Ok(Output::none())
}

/// `show running-config`: the interface that leads to a tunnel's group.
fn write_group<P: UdpCommands>(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    let tunnel = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.get(id));
    if let Some((_, via)) = tunnel.and_then(|tunnel| tunnel.config.group()) {
        let (name, via) = (engine.interface_name(id), engine.interface_name(via));
        config.command(format_args!("set {} tunnel {name} group-interface {via}", P::NAME));
    }
}

/// The tunnel with the same ends, table, port and number.
fn between<P: UdpCommands>(
    engine: &Engine,
    described: &TunnelConfig<P::Extra>,
) -> Option<InterfaceId> {
    let ends = |config: &TunnelConfig<P::Extra>| {
        let port = config.udp.map(|udp| udp.local_port);
        (config.source, config.destination, config.table, config.key, port)
    };
    let mut tunnels = engine.get::<Tunnels<P>>().into_iter().flat_map(Tunnels::iter);
    tunnels.find(|(_, tunnel)| ends(&tunnel.config) == ends(described)).map(|(id, _)| id)
}

/// The tunnel whose interface a command names.
fn tunnel<P: UdpCommands>(engine: &Engine, args: &Args<'_>) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.get::<Tunnels<P>>().is_some_and(|tunnels| tunnels.get(id).is_some()) {
        return Ok(id);
    }
    let what = format!("{} is no {}", engine.interface_name(id), P::WORDS);
    Err(args.refuse("interface", what).remedy(P::TEXTS.remedy))
}

fn delete<P: UdpCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = tunnel::<P>(engine, args)?;
    engine.delete_interface(id)?;
    Ok(Output::none())
}

fn columns() -> [Column; 12] {
    [
        Column::left("Interface"),
        Column::left("State"),
        Column::left("Source"),
        Column::left("Destination"),
        Column::right("VNI"),
        Column::right("Table"),
        Column::left("Ports").key("ports"),
        Column::left("Underlay"),
        Column::right("Path MTU").key("path_mtu_bytes"),
        Column::right("Packets"),
        Column::right("Bytes"),
        Column::left("Reason"),
    ]
}

/// Add the row of a tunnel.
fn add_row<P: UdpCommands>(engine: &Engine, table: &mut Table, id: InterfaceId) {
    let (Some(tunnels), Some(fib)) = (engine.get::<Tunnels<P>>(), engine.get::<Fib>()) else {
        return;
    };
    let Some(tunnel) = tunnels.get(id) else { return };
    let up = engine.interface(id).is_some_and(|interface| interface.row().up);
    let config = &tunnel.config;
    let peer: Option<PeerView> = tunnels.peers(tunnel, fib).next();
    let row = table.row().cell(engine.interface_name(id)).cell(if up { "up" } else { "down" });
    let to = config.destination.map(|to| to.to_string());
    let row = row.cell(config.source.to_string()).cell(to).cell(config.key).cell(config.table);
    let ports = config.udp.map(|udp| format!("{}->{}", udp.local_port, udp.remote_port));
    let (underlay, why) = peer.as_ref().map(|peer| underlay(engine, peer)).unzip();
    let row = row.cell(ports).cell(underlay);
    let row = row.cell(peer.and_then(|peer| peer.path_mtu).map(|path| path.mtu_bytes));
    let [packets, bytes] = peer.map_or([0; 2], |peer| peer.sent);
    row.cell(packets).cell(bytes).cell(why.flatten());
}

fn show<P: UdpCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys = if args.has("interface") {
        vec![tunnel::<P>(engine, args)?]
    } else {
        point_to_point::<P>(engine)
    };
    Listing::over(P::TEXTS.list, columns(), keys, add_row::<P>)
        .when_empty(P::TEXTS.none)
        .begin(engine)
}

/// The tunnels with a destination.
fn point_to_point<P: UdpCommands>(engine: &Engine) -> Vec<InterfaceId> {
    let all = engine.get::<Tunnels<P>>().into_iter().flat_map(Tunnels::iter);
    all.filter(|(_, tunnel)| tunnel.config.destination.is_some()).map(|(id, _)| id).collect()
}

/// `show running-config`: one of them.
fn write_tunnel<P: UdpCommands>(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    let Some(tunnel) = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.get(id)) else {
        return;
    };
    let (tunnel, own) = (&tunnel.config, P::TEXTS.words);
    let mut words = vec![format!("{} {}", own.local, tunnel.source)];
    let group = tunnel.group_address().map(|group| format!("group {group}"));
    let remote = tunnel.destination.map(|address| format!("{} {address}", own.remote));
    words.extend(group.or(remote));
    words.extend(tunnel.key.map(|vni| format!("vni {vni}")));
    words.extend(tunnel.instance.map(|instance| format!("instance {instance}")));
    words.extend((tunnel.table != 0).then(|| format!("encap-vrf-id {}", tunnel.table)));
    words.extend(P::options(tunnel).map(str::to_owned));
    if let Some(udp) = &tunnel.udp {
        let node = udp.input.map(|node| engine.node_name(node));
        words.extend(node.map(|node| format!("decap-next node {node}")));
        words.extend(udp.is_layer3.then(|| "l3".to_owned()));
        let ports = [(own.local_port, udp.local_port), (own.remote_port, udp.remote_port)];
        let others = ports.into_iter().filter(|(_, port)| Some(*port) != P::UDP_PORT);
        words.extend(others.map(|(word, port)| format!("{word} {port}")));
        words.extend(udp.zero_checksum.then(|| "zero-udp6-checksum".to_owned()));
    }
    let words = words.join(" ");
    if tunnel.table != 0 {
        let family = Family::of(tunnel.source).word();
        config.command(format_args!("{family} table add {}", tunnel.table));
    }
    config.command(format_args!("create {} tunnel {words}", P::NAME));
}
