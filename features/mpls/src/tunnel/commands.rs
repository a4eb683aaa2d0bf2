//! The commands of MPLS tunnels.

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    order,
};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Fib, Path, PathState, Target};

use super::config::{self, New, Tunnels};
use crate::commands::{GROUP, out_labels, path_words};

/// What can stand behind `via` of a tunnel.
const VIA: &str = "(via (<next-hop:ip> [<interface>]) {[weight <:1-65535>] [preference <:u8>] \
    out-labels <out-label:label>... [ttl <:1-255>] [exp <:0-7>]})...";
/// What stands at the place of such a path in a document.
const ENTRY: &str =
    "{next-hop, interface, weight, preference, out-labels: <out-label>..., ttl, exp}";

pub(super) fn register(registry: &mut Registry) {
    let made = "create mpls tunnel {[l2-only] [control-word] [mac <:mac>] [instance <:0-16383>]}";
    registry.command(
        Command::new(made)
            .entry(
                order::INTERFACES,
                "interfaces.mpls-tunnel<instance>.mpls-tunnel: {l2-only, control-word, mac}",
            )
            .undo("mpls tunnel del mpls-tunnel<instance>")
            .makes("interface mpls-tunnel<instance>")
            .group(GROUP)
            .help("Create an MPLS tunnel without a path yet")
            .details(
                "The first free mpls-tunnelN is taken unless instance says which. `mpls tunnel \
                 set` gives it paths. With l2-only it carries Ethernet frames, as a member of a \
                 bridge domain or of a cross-connect; what comes from the other end is \
                 received on it by the route of a label (`via l2-input-on`). In bridge domains \
                 it is in \
                 split-horizon group 255 with all other tunnels, unless another is named.",
            )
            .word("l2-only", "it carries Ethernet frames")
            .word("control-word", "frames have a control word in front (RFC 4448 §4.6)")
            .word("mac", "of a tunnel for frames; one that no other has if left out")
            .word("instance", "the number in its name")
            .example("create mpls tunnel instance 0 l2-only")
            .run(|engine: &mut Engine, args| {
                let id = config::create(engine, &new(args)?)?;
                Ok(name_of(engine, id))
            }),
    );
    let paths = format!("mpls tunnel set <interface> [add|del] [{VIA}]");
    registry.command(
        Command::new(paths.leak())
            .entry(
                order::FEATURES,
                format!("interfaces.<interface>.mpls-paths: [via: {ENTRY}] with add").leak(),
            )
            .undo("mpls tunnel set <interface> del")
            .group(GROUP)
            .help("Add paths to an MPLS tunnel, or take them away")
            .details(
                "Several share the traffic by their weights, flow by flow. They follow neighbours, \
                 interfaces and routes as those of routes do. `del` without `via` takes all away.",
            )
            .word("out-labels", "the labels, the one that is sent first in front")
            .word("ttl", "the TTL of the labels; 255 when left out")
            .word("exp", "the traffic class of the labels; 0 when left out")
            .example("mpls tunnel set mpls-tunnel0 add via 192.0.2.2 e1 out-labels 33 44")
            .run(|engine: &mut Engine, args| {
                let (id, paths) = (tunnel(engine, args)?, paths_of(engine, args)?);
                let all = || engine.get::<Tunnels>().and_then(|tunnels| tunnels.get(id));
                match (args.has("del"), paths.is_empty()) {
                    (true, true) => {
                        let all = all().map_or_else(Vec::new, |tunnel| tunnel.paths.clone());
                        config::change_paths(engine, id, &[], &all)?;
                    }
                    (true, false) => config::change_paths(engine, id, &[], &paths)?,
                    (false, true) => {
                        let what = Refusal::new("a path begins with `via`");
                        return Err(what.remedy("via 192.0.2.2 e1 out-labels 33"));
                    }
                    (false, false) => config::change_paths(engine, id, &paths, &[])?,
                }
                Ok(Output::none())
            }),
    );
    let at_once = format!(
        "mpls tunnel [add] {{[l2-only] [control-word] [mac <:mac>] [instance <:0-16383>]}} {VIA}"
    );
    registry.command(
        Command::new(at_once.leak())
            .group(GROUP)
            .help("Create an MPLS tunnel with these paths")
            .details("As `create mpls tunnel` and `mpls tunnel set`. It is down at first.")
            .example("mpls tunnel add via 192.0.2.2 e1 out-labels 33")
            .example("mpls tunnel l2-only via 192.0.2.2 e1 out-labels 33 44")
            .run(|engine: &mut Engine, args| {
                let paths = paths_of(engine, args)?;
                let id = config::create(engine, &new(args)?)?;
                if let Err(refused) = config::change_paths(engine, id, &paths, &[]) {
                    engine.delete_interface(id)?;
                    return Err(refused);
                }
                Ok(name_of(engine, id))
            }),
    );
    registry.command(
        Command::new("mpls tunnel del <interface>")
            .group(GROUP)
            .help("Delete an MPLS tunnel")
            .example("mpls tunnel del mpls-tunnel0")
            .run(|engine: &mut Engine, args| {
                let id = tunnel(engine, args)?;
                engine.delete_interface(id)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show mpls tunnel [<interface>]")
            .group(GROUP)
            .help("Show MPLS tunnels and their paths")
            .run_or_begin(show),
    );
}

fn new(args: &Args<'_>) -> Result<New, Refusal> {
    let mac: Option<[u8; 6]> = args.optional("mac")?;
    if mac.is_some_and(|mac| mac[0] & 1 == 1) {
        return Err(args
            .refuse("mac", "it is a group's address")
            .remedy("choose one that a station can have"));
    }
    let (is_l2, control_word) = (args.has("l2-only"), args.has("control-word"));
    for (word, is_there) in [("mac", mac.is_some()), ("control-word", control_word)] {
        if is_there && !is_l2 {
            let what = "only a tunnel for frames has one";
            return Err(args.refuse(word, what).remedy("l2-only"));
        }
    }
    Ok(New { instance: args.optional("instance")?, is_l2, control_word, mac })
}

fn name_of(engine: &Engine, id: InterfaceId) -> Output {
    let name = engine.interface_name(id);
    Output::none().line(name.as_str()).json("name", name.into())
}

fn paths_of(engine: &Engine, args: &Args<'_>) -> Result<Vec<Path>, Refusal> {
    let path = |via: Args<'_>| {
        let interface = via.optional_interface(engine, "interface")?;
        let target = Target::Via { next_hop: via.get("next-hop")?, interface };
        let path = Path::new(target).labels(out_labels(&via)?);
        Ok(path.weight(via.or("weight", 1u32)?).preference(via.or("preference", 0u8)?))
    };
    args.groups("via").map(path).collect()
}

/// The tunnel that a command names.
fn tunnel(engine: &Engine, args: &Args<'_>) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.get::<Tunnels>().is_some_and(|tunnels| tunnels.get(id).is_some()) {
        return Ok(id);
    }
    let what = format!("{} is no MPLS tunnel", engine.interface_name(id));
    Err(args.refuse("interface", what).remedy("`show mpls tunnel`"))
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys = match args.has("interface") {
        true => vec![tunnel(engine, args)?],
        false => {
            engine.get::<Tunnels>().into_iter().flat_map(Tunnels::iter).map(|(id, _)| id).collect()
        }
    };
    let columns = ["Interface", "State", "Carries", "Paths"].map(Column::left);
    let add = |engine: &Engine, table: &mut Table, id| {
        let Some(tunnel) = engine.get::<Tunnels>().and_then(|tunnels| tunnels.get(id)) else {
            return;
        };
        let Some(fib) = engine.get::<Fib>() else { return };
        let up = engine.interface(id).is_some_and(|interface| interface.row().up);
        let states = tunnel.group.map_or_else(Vec::new, |group| fib.path_states(group));
        let words = states.iter().map(|(path, state)| {
            let mark = if *state == PathState::Used { "" } else { " (not used)" };
            format!("{}{mark}", path_words(engine, fib, path))
        });
        let words: Vec<String> = words.collect();
        table
            .row()
            .cell(engine.interface_name(id))
            .cell(if up { "up" } else { "down" })
            .cell(if tunnel.is_l2 { "frames" } else { "packets" })
            .cell(Cell::new(words.join(", "), words.clone()));
    };
    Listing::over("tunnels", columns, keys, add)
        .when_empty("no MPLS tunnels; `mpls tunnel add` makes one")
        .begin(engine)
}

/// The part of `show running-config` that makes them.
pub(super) fn write_created(engine: &Engine, config: &mut ConfigWriter) {
    for (_, tunnel) in engine.get::<Tunnels>().into_iter().flat_map(Tunnels::iter) {
        let is_l2 = if tunnel.is_l2 { "l2-only " } else { "" };
        let word = if tunnel.control_word { "control-word " } else { "" };
        let mac = tunnel
            .mac
            .map(|mac| format!("mac {} ", quiver_wire::MacAddress(mac)))
            .unwrap_or_default();
        let instance = tunnel.instance;
        config.command(format_args!("create mpls tunnel {is_l2}{word}{mac}instance {instance}"));
    }
}

/// The part of `show running-config` that gives them paths.
pub(super) fn write_paths(engine: &Engine, config: &mut ConfigWriter) {
    let Some(fib) = engine.get::<Fib>() else { return };
    for (id, tunnel) in engine.get::<Tunnels>().into_iter().flat_map(Tunnels::iter) {
        if tunnel.paths.is_empty() {
            continue;
        }
        let mut paths: Vec<String> =
            tunnel.paths.iter().map(|path| path_words(engine, fib, path)).collect();
        // Not by the numbers of interfaces: the same tunnel reads the same.
        paths.sort_unstable();
        let name = engine.interface_name(id);
        config.command(format_args!("mpls tunnel set {name} add {}", paths.join(" ")));
    }
}
