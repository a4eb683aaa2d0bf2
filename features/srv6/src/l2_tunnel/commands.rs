//! The commands of layer 2 tunnels.

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    order,
};
use quiver_core::{Engine, InterfaceId};
use serde_json::{Value, json};

use super::tunnels::{self, New, Sends, Tunnel, Tunnels, Wanted, Which};
use crate::commands::GROUP;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "create sr l2-tunnel {[unicast bsid <unicast-bsid:ip6>] [flood bsid <flood-bsid:ip6>] \
             [mac <:mac>] [instance <:0-16383>]}",
        )
        .entry(order::INTERFACES, "interfaces.sr_l2_tunnel<instance>.sr-l2-tunnel: {mac}")
        .undo("delete sr l2-tunnel sr_l2_tunnel<instance>")
        .makes("interface sr_l2_tunnel<instance>")
        .group(GROUP)
        .help(
            "Create an interface that sends frames by SR policies, to be a member of a bridge \
             domain",
        )
        .details(
            "It stands for a remote bridge: what it sends goes by the policies (H.Encaps.L2), what \
             it receives comes to the SIDs that name it (`sr localsid … behavior end.dt2u`, \
             `end.dt2m`). Frames to many (broadcast, multicast, and to stations that are not \
             known) go by the policy behind flood, or, without one, as the others. The first free \
             sr_l2_tunnelN is taken unless instance says which. In bridge domains it is in \
             split-horizon group 255 with all other tunnels, unless another is named.",
        )
        .word("unicast", "what frames to one station go by")
        .word("flood", "what frames to many go by")
        .word("mac", "of the interface; one that no other has if left out")
        .word("instance", "the number in its name")
        .example("create sr l2-tunnel unicast bsid fc00:0:1::b1 flood bsid fc00:0:1::b2")
        .example("create sr l2-tunnel instance 7 mac 02:fe:00:00:00:07")
        .run(create),
    );
    registry.command(
        Command::new(
            "set sr l2-tunnel <interface> (<frames:'unicast'> (bsid <unicast-bsid:ip6> | del) \
             | <frames:'flood'> [group <group:1-255>] (bsid <flood-bsid:ip6> | off | del))",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.sr-unicast: <unicast-bsid> with frames=unicast",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.sr-flood: <flood-bsid> / <?off> with frames=flood",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.sr-flood-groups.<group>: <flood-bsid> / <?off> with \
             frames=flood",
        )
        .undo("<unicast-bsid!> set sr l2-tunnel <interface> unicast del")
        .undo("set sr l2-tunnel <interface> flood [group <group>] del")
        .stands_on("SR policy <unicast-bsid>")
        .stands_on("SR policy <flood-bsid>")
        .group(GROUP)
        .help("Say which SR policies a layer 2 tunnel sends by")
        .details(
            "With group: frames to many that came in by a port of this split-horizon group. The \
             last segment of that policy has in its argument who is not to get them behind the \
             other end (Arg.FE2 of RFC 8986 §4.12). A change loses nothing.",
        )
        .word("unicast", "what frames to one station go by")
        .word("flood", "what frames to many go by")
        .word("group", "of the port that frames came in by")
        .word("off", "such frames do not go: another tunnel has them")
        .word("del", "as if nothing had been said")
        .example("set sr l2-tunnel sr_l2_tunnel0 unicast bsid fc00:0:1::b1")
        .example("set sr l2-tunnel sr_l2_tunnel0 flood group 5 bsid fc00:0:1::b5")
        .example("set sr l2-tunnel sr_l2_tunnel0 flood off")
        .run(set),
    );
    registry.command(
        Command::new("delete sr l2-tunnel <interface>")
            .group(GROUP)
            .help("Delete a layer 2 tunnel, and the local SIDs that name it")
            .example("delete sr l2-tunnel sr_l2_tunnel0")
            .run(|engine: &mut Engine, args| {
                let id = tunnel(engine, args)?;
                engine.delete_interface(id)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show sr l2-tunnels [<interface>]")
            .group(GROUP)
            .help("Show layer 2 tunnels, and the SR policies that they send by")
            .run_or_begin(show),
    );
}

fn create(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let mac: Option<[u8; 6]> = args.optional("mac")?;
    if mac.is_some_and(|mac| mac[0] & 1 == 1) {
        return Err(args
            .refuse("mac", "it is a group's address")
            .remedy("choose one that a station can have"));
    }
    let new = New {
        instance: args.optional("instance")?,
        mac,
        unicast: args.optional("unicast-bsid")?,
        flood: args.optional("flood-bsid")?,
    };
    let name = tunnels::create(engine, new)?;
    Ok(Output::none().line(name.as_str()).json("name", name.into()))
}

/// The tunnel that a command names.
fn tunnel(engine: &Engine, args: &Args<'_>) -> Result<InterfaceId, Refusal> {
    let id = args.interface(engine, "interface")?;
    if engine.get::<Tunnels>().is_some_and(|tunnels| tunnels.has(id)) {
        return Ok(id);
    }
    let what = format!("{} is no layer 2 tunnel", engine.interface_name(id));
    Err(args.refuse("interface", what).remedy("`show sr l2-tunnels`"))
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = tunnel(engine, args)?;
    let (which, bsid) = if args.get::<&str>("frames")? == "unicast" {
        (Which::Unicast, args.optional("unicast-bsid")?)
    } else {
        let group = args.optional("group")?;
        (group.map_or(Which::Flood, Which::FloodFrom), args.optional("flood-bsid")?)
    };
    let wanted = match bsid {
        Some(bsid) => Wanted::By(bsid),
        None if args.has("off") => Wanted::Off,
        None => Wanted::Unsaid,
    };
    tunnels::set(engine, id, which, wanted)?;
    Ok(Output::none())
}

fn sends_words(sends: &Sends) -> String {
    match sends {
        Sends::By(policy) => format!("bsid {}", policy.bsid),
        Sends::Off => "off".to_owned(),
    }
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys = match args.has("interface") {
        true => vec![tunnel(engine, args)?],
        false => {
            engine.get::<Tunnels>().into_iter().flat_map(Tunnels::iter).map(|(id, _)| id).collect()
        }
    };
    let columns = ["Interface", "State", "Unicast", "Flood", "Groups"].map(Column::left);
    let add = |engine: &Engine, table: &mut Table, id| {
        let Some(tunnel) = engine.get::<Tunnels>().and_then(|tunnels| tunnels.get(id)) else {
            return;
        };
        let up = engine.interface(id).is_some_and(|interface| interface.row().up);
        let words = |which| tunnel.sends.get(&which).map(policy_cell);
        let row = table.row().cell(engine.interface_name(id)).cell(if up { "up" } else { "down" });
        let row = row.cell(words(Which::Unicast)).cell(words(Which::Flood));
        row.cell(groups(tunnel));
    };
    Listing::over("l2_tunnels", columns, keys, add)
        .when_empty("no layer 2 tunnels; `create sr l2-tunnel` makes one")
        .begin(engine)
}

/// In a table: the policy's binding SID, or `off`.
fn policy_cell(sends: &Sends) -> String {
    match sends {
        Sends::By(policy) => policy.bsid.to_string(),
        Sends::Off => "off".to_owned(),
    }
}

/// The policies of frames from single groups; a list in JSON.
fn groups(tunnel: &Tunnel) -> Cell {
    let single = tunnel.sends.iter().filter_map(|(which, sends)| match which {
        Which::FloodFrom(group) => Some((*group, policy_cell(sends))),
        _ => None,
    });
    let (text, list): (Vec<String>, Vec<Value>) = single
        .map(|(group, by)| (format!("{group} {by}"), json!({ "group": group, "flood": by })))
        .unzip();
    Cell::new(text.join(", "), list)
}

/// The part of `show running-config` before policies are there.
pub(super) fn write_created(engine: &Engine, config: &mut ConfigWriter) {
    for (_, tunnel) in engine.get::<Tunnels>().into_iter().flat_map(Tunnels::iter) {
        let mac = tunnel
            .mac
            .map(|mac| format!("mac {} ", quiver_wire::MacAddress(mac)))
            .unwrap_or_default();
        config.command(format_args!("create sr l2-tunnel {mac}instance {}", tunnel.instance));
    }
}

/// The part of `show running-config` when they are.
pub(super) fn write_policies(engine: &Engine, config: &mut ConfigWriter) {
    for (id, tunnel) in engine.get::<Tunnels>().into_iter().flat_map(Tunnels::iter) {
        for (which, sends) in &tunnel.sends {
            let (name, which, sends) =
                (engine.interface_name(id), which.words(), sends_words(sends));
            config.command(format_args!("set sr l2-tunnel {name} {which} {sends}"));
        }
    }
}
