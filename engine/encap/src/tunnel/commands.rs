//! Commands of tunnels: create, delete, show, and the part of `show running-config`. A protocol
//! gives the words of users ([`TunnelTexts`]); what the commands do is the same for every protocol.

use quiver_control::{
    Args, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    of_each_interface, order, with_interface_names,
};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib, PathState};

use super::config::{self, PeerView, TunnelConfig, Tunnels};
use super::protocol::TunnelCommands;

/// The heading of these commands.
const GROUP: &str = "Tunnels";

/// A command's syntax, its help in one line, and lines that show it in use.
#[derive(Clone, Copy, Debug)]
pub struct CommandText {
    /// The syntax, as [`Command::new`] takes it.
    pub syntax: &'static str,
    /// One line, without a full stop.
    pub help: &'static str,
    /// Lines that show it in use.
    pub examples: &'static [&'static str],
}

/// The words of users for tunnels of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct TunnelTexts {
    /// `create … tunnel`. It has the options `teb` and `key` where the protocol has these.
    pub create: CommandText,
    /// More about `create … tunnel`.
    pub create_details: &'static str,
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
}

/// Declare the commands of a protocol's tunnels, their part of the configuration, and their memory.
pub(super) fn register<P: TunnelCommands>(registry: &mut Registry) {
    registry.command(create_command::<P>());
    registry.command(command(&P::TEXTS.delete).run(delete::<P>));
    registry.command(command(&P::TEXTS.show).run_or_begin(show::<P>));
    registry.running_config_in_slices(
        order::INTERFACES,
        of_each_interface(ids::<P>, write_tunnel::<P>),
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

fn create_command<P: TunnelCommands>() -> Command<Engine> {
    let command = command(&P::TEXTS.create).details(P::TEXTS.create_details);
    P::explained(command)
        .entry(order::INTERFACES, P::TEXTS.entry)
        .undo(P::TEXTS.undo)
        .makes(P::TEXTS.makes)
        .word("del", "delete it")
        .run(create::<P>)
}

/// Explain the words that tunnels of most protocols have.
pub fn explained<P: TunnelCommands>(command: Command<Engine>) -> Command<Engine> {
    let mut command = command
        .word("src", "the outer source, an address of this router")
        .word("dst", "the outer destination")
        .word("multipoint", "many destinations, which `create teib` names")
        .word("instance", "the number in its name; the first that is free unless given")
        .word("outer-table-id", "the table that has the outer destination; 0 unless given");
    if P::CARRIES_FRAMES {
        command = command.word("teb", "Ethernet frames inside (transparent Ethernet bridging)");
    }
    if P::HAS_KEY {
        command = command.word("key", "the tunnel among those between the same ends (RFC 2890)");
    }
    command.word("ttl", "of the outer header").word("dscp", "of the outer header")
}

/// The tunnel that a command with these words describes.
///
/// # Errors
/// It has neither a destination nor many, or both.
pub fn described<P: TunnelCommands>(
    args: &Args<'_>,
    extra: P::Extra,
) -> Result<TunnelConfig<P::Extra>, Refusal> {
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
        key: if P::HAS_KEY { args.optional("key")? } else { None },
        carries_frames: P::CARRIES_FRAMES && args.has("teb"),
        hop_limit: args.optional("ttl")?,
        dscp: args.optional("dscp")?,
        udp: None,
        extra,
    })
}

fn create<P: TunnelCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let described = P::described(args)?;
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

/// The tunnel with the same ends, table and key.
fn between<P: TunnelCommands>(
    engine: &Engine,
    described: &TunnelConfig<P::Extra>,
) -> Option<InterfaceId> {
    let ends = |config: &TunnelConfig<P::Extra>| {
        let number = (P::space(config), P::key(config));
        (config.source, config.destination, config.table, number)
    };
    let mut tunnels = engine.get::<Tunnels<P>>().into_iter().flat_map(Tunnels::iter);
    tunnels.find(|(_, tunnel)| ends(&tunnel.config) == ends(described)).map(|(id, _)| id)
}

/// The tunnel whose interface a command names.
///
/// # Errors
/// There is no such interface, or it is no such tunnel.
pub fn tunnel_named<P: TunnelCommands>(
    engine: &Engine,
    args: &Args<'_>,
) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.get::<Tunnels<P>>().is_some_and(|tunnels| tunnels.get(id).is_some()) {
        return Ok(id);
    }
    let what = format!("{} is no {}", engine.interface_name(id), P::WORDS);
    Err(args.refuse("interface", what).remedy(P::TEXTS.remedy))
}

fn delete<P: TunnelCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = tunnel_named::<P>(engine, args)?;
    engine.delete_interface(id)?;
    Ok(Output::none())
}

/// The state of the route to the outer destination.
pub(super) fn underlay(engine: &Engine, peer: &PeerView) -> (&'static str, Option<String>) {
    match peer.underlay {
        None => ("gone", None),
        Some(PathState::Used | PathState::Waits) => ("up", None),
        Some(PathState::Unusable(why)) => ("unusable", Some(with_interface_names(engine, why))),
    }
}

fn columns<P: TunnelCommands>() -> Vec<Column> {
    let mut columns = vec![
        Column::left("Interface"),
        Column::left("State"),
        Column::left("Source"),
        Column::left("Destination"),
        Column::right("Table"),
    ];
    columns.extend(P::CARRIES_FRAMES.then(|| Column::left("Type")));
    columns.extend(P::HAS_KEY.then(|| Column::right("Key")));
    columns.extend(P::columns());
    columns.extend([
        Column::left("Next hop"),
        Column::left("Underlay"),
        Column::right("Path MTU").key("path_mtu_bytes"),
        Column::right("Packets"),
        Column::right("Bytes"),
        Column::left("Reason"),
    ]);
    columns
}

/// Add a row per peer; a tunnel without peers has one row.
fn add_rows<P: TunnelCommands>(engine: &Engine, table: &mut Table, id: InterfaceId) {
    let (Some(tunnels), Some(fib)) = (engine.get::<Tunnels<P>>(), engine.get::<Fib>()) else {
        return;
    };
    let Some(tunnel) = tunnels.get(id) else { return };
    let up = engine.interface(id).is_some_and(|interface| interface.row().up);
    let config = &tunnel.config;
    let destination =
        config.destination.map_or_else(|| "multipoint".to_owned(), |to| to.to_string());
    let mut peers: Vec<Option<PeerView>> = tunnels.peers(tunnel, fib).map(Some).collect();
    if peers.is_empty() {
        peers.push(None);
    }
    for peer in peers {
        let row = table.row().cell(engine.interface_name(id)).cell(if up { "up" } else { "down" });
        let mut row =
            row.cell(config.source.to_string()).cell(destination.as_str()).cell(config.table);
        if P::CARRIES_FRAMES {
            row = row.cell(P::type_word(config));
        }
        if P::HAS_KEY {
            row = row.cell(config.key);
        }
        for cell in P::cells(config) {
            row = row.cell(cell);
        }
        let row =
            row.cell(peer.and_then(|peer| peer.next_hop).map(|next_hop| next_hop.to_string()));
        let (underlay, why) = peer.as_ref().map(|peer| underlay(engine, peer)).unzip();
        let row = row.cell(underlay);
        let row = row.cell(peer.and_then(|peer| peer.path_mtu).map(|path| path.mtu_bytes));
        let [packets, bytes] = peer.map_or([0; 2], |peer| peer.sent);
        row.cell(packets).cell(bytes).cell(why.flatten());
    }
}

fn show<P: TunnelCommands>(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys = match args.has("interface") {
        true => vec![tunnel_named::<P>(engine, args)?],
        false => ids::<P>(engine),
    };
    Listing::over(P::TEXTS.list, columns::<P>(), keys, add_rows::<P>)
        .when_empty(P::TEXTS.none)
        .begin(engine)
}

/// `show running-config`: the tunnels.
fn ids<P: TunnelCommands>(engine: &Engine) -> Vec<InterfaceId> {
    engine.get::<Tunnels<P>>().into_iter().flat_map(Tunnels::iter).map(|(id, _)| id).collect()
}

/// `show running-config`: one of them.
fn write_tunnel<P: TunnelCommands>(engine: &Engine, config: &mut ConfigWriter, id: InterfaceId) {
    let Some(tunnel) = engine.get::<Tunnels<P>>().and_then(|tunnels| tunnels.get(id)) else {
        return;
    };
    let tunnel = &tunnel.config;
    let words = P::words(tunnel).join(" ");
    if tunnel.table != 0 {
        let family = Family::of(tunnel.source).word();
        config.command(format_args!("{family} table add {}", tunnel.table));
    }
    config.command(format_args!("create {} tunnel {words}", P::NAME));
}

/// The words that tunnels of most protocols have.
pub fn words<X>(tunnel: &TunnelConfig<X>) -> Vec<String> {
    let mut words = vec![format!("src {}", tunnel.source)];
    words.extend(tunnel.destination.map(|address| format!("dst {address}")));
    words.extend(tunnel.destination.is_none().then(|| "multipoint".to_owned()));
    words.extend(tunnel.instance.map(|instance| format!("instance {instance}")));
    words.extend((tunnel.table != 0).then(|| format!("outer-table-id {}", tunnel.table)));
    words.extend(tunnel.carries_frames.then(|| "teb".to_owned()));
    words.extend(tunnel.key.map(|key| format!("key {key}")));
    words.extend(tunnel.hop_limit.map(|hops| format!("ttl {hops}")));
    words.extend(tunnel.dscp.map(|dscp| format!("dscp {dscp}")));
    words
}
