//! Interfaces: up and down, MTU, address, what they counted, which features stand on them.

use std::collections::HashMap;
use std::fmt::Write as _;

use quiver_core::control::interfaces::{Interface, InterfaceChange};
use quiver_core::graph::arc::ArcId;
use quiver_core::{Engine, InterfaceId};
use serde_json::{Map, Value, json};

use super::columns::centre;
use super::{ids, mac_text, refuse_interface};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::listing::in_pages;
use crate::modes::{self, Modes, Own};
use crate::output::Output;
use crate::registry::Registry;
use crate::running::{ConfigWriter, by_interface, order};

const GROUP: &str = "Interfaces";
/// Characters in front of the counters of `show interface`.
const COUNTERS_COLUMN: usize = 68;

/// What interfaces were when they were created: the configuration says only what was changed.
#[derive(Default)]
struct AsCreated(HashMap<InterfaceId, ([u8; 6], u32)>);

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface state <interface> <state:up|down>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.state: <state>")
            .undo("set interface state <interface> down")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Let packets in and out of an interface, or not")
            .example("set interface state e0 up")
            .run(set_state),
    );
    registry.command(
        Command::new("set interface mtu [packet|ip4|ip6|mpls] <mtu:0-65535> <interface>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.mtu: <mtu> with packet")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.mtu-ip4: <mtu> with ip4")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.mtu-ip6: <mtu> with ip6")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.mtu-mpls: <mtu> with mpls")
            .undo("set interface mtu [packet] [ip4] [ip6] [mpls] 0 <interface>")
            .makes("own of <interface>")
            .replaces(&["interface", "packet", "ip4", "ip6", "mpls"])
            .group(GROUP)
            .help(
                "Set the largest layer 3 packet of an interface, in bytes, for all protocols or \
                 for one",
            )
            .details(
                "The smaller of both holds. For one protocol, 0 leaves it to the interface's. That \
                 of MPLS is of the packet with its labels.",
            )
            .example("set interface mtu packet 9000 e0")
            .example("set interface mtu ip6 1400 e0")
            .run(set_mtu),
    );
    registry.command(
        Command::new("set interface mac address <interface> (<mac>|default)")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.mac: <mac>")
            .undo("set interface mac address <interface> default")
            .makes("own of <interface>")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Set the layer 2 address of an interface")
            .example("set interface mac address e0 02:fe:00:00:00:01")
            .run(set_mac),
    );
    registry.command(
        Command::new("set interface promiscuous <state:on|off> <interface>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.promiscuous: <state:on?off>")
            .undo("set interface promiscuous off <interface>")
            .makes("own of <interface>")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Take frames for any layer 2 address, or only those for the interface's own")
            .example("set interface promiscuous on e0")
            .run(set_promiscuous),
    );
    registry.command(
        Command::new("show interface [<interface>]")
            .group(GROUP)
            .help("Show interfaces, their state, MTU and counters")
            .details("Counters that are zero are left out; with json, all are there.")
            .example("show interface e0")
            .run_or_begin(show),
    );
    registry.command(
        Command::new("show interface features <interface>")
            .group(GROUP)
            .help(
                "Show which features are enabled on an interface, by arc, in the order of packets",
            )
            .example("show interface features e0")
            .run(show_features),
    );
    registry.command(
        Command::new("clear interfaces")
            .also("clear hardware-interfaces")
            .group(GROUP)
            .help("Count what interfaces do from here")
            .run(|engine: &mut Engine, _| {
                engine.clear_interfaces();
                Ok(Output::none())
            }),
    );
    registry.running_config_in_slices(order::HELD, by_interface(write_held));
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, by_interface(write_config));
    registry.on_start(|engine| {
        engine.insert(AsCreated::default());
        engine.on_interface_change(|engine, id, change| {
            let row = engine.interface(id).map(|i| (i.row().mac, i.row().mtu_bytes));
            let Some(created) = engine.get_mut::<AsCreated>() else { return };
            match (change, row) {
                (InterfaceChange::Created, Some(row)) => drop(created.0.insert(id, row)),
                (InterfaceChange::Deleted, _) => drop(created.0.remove(&id)),
                _ => {}
            }
        });
    });
}

fn set_state(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let up = args.get::<&str>("state")? == "up";
    engine.set_admin_up(id, up).map_err(|error| refuse_interface(engine, args, id, error))?;
    Ok(Output::none())
}

fn set_mtu(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    modes::check_free(engine, id)?;
    for (protocol, least, why) in PROTOCOL_MTUS {
        if args.has(protocol) {
            let mtu: u16 = args.get("mtu")?;
            if mtu != 0 && mtu < least {
                let what = format!("an MTU of {mtu} bytes is too small for {protocol}");
                return Err(args
                    .refuse("mtu", what)
                    .remedy(format!("{least} or more ({why}), or 0")));
            }
            let own = Some(mtu).filter(|mtu| *mtu != 0);
            let set = engine.set_protocol_mtu(id, protocol, own);
            set.map_err(|error| refuse_interface(engine, args, id, error))?;
            return Ok(Output::none());
        }
    }
    let mtu = match args.get("mtu")? {
        0 => created(engine, id).1,
        mtu => mtu,
    };
    engine.set_mtu(id, mtu).map_err(|error| refuse_interface(engine, args, id, error))?;
    let now = engine.interface(id).map_or(mtu, |interface| interface.row().mtu_bytes);
    let name = engine.interface_name(id);
    Ok(match now < mtu {
        true => Output::text(format!(
            "{name} has an MTU of {now} bytes for now: what it sends through takes no more (`show \
             mode`)"
        )),
        false => Output::none(),
    })
}

/// The layer 2 address and the MTU that an interface was made with; a sub-interface has its
/// parent's MTU.
fn created(engine: &Engine, id: InterfaceId) -> ([u8; 6], u32) {
    let Some(row) = engine.interface(id).map(Interface::row) else { return ([0; 6], 0) };
    let parent = engine.interface(row.parent).filter(|_| row.is_sub_interface());
    let known = engine.get::<AsCreated>().and_then(|created| created.0.get(&id)).copied();
    let (mac, mtu) = known.unwrap_or((row.mac, row.mtu_bytes));
    (mac, parent.map_or(mtu, |parent| parent.row().mtu_bytes))
}

/// Protocols that can have an MTU of their own: the least, and who says so.
const PROTOCOL_MTUS: [(&str, u16, &str); 3] = [
    ("ip4", 68, "RFC 791 §3.2"),
    ("ip6", 1280, "RFC 8200 §5"),
    ("mpls", 72, "RFC 791 §3.2, and a label"),
];

fn set_mac(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let mac = match args.optional("mac")? {
        Some(mac) => mac,
        None => created(engine, id).0,
    };
    // IEEE 802 §8.2.2: the group bit, and the address that nobody has.
    if mac[0] & 1 == 1 || mac == [0; 6] {
        return Err(args
            .refuse("mac", format!("{} cannot be the address of an interface", mac_text(mac)))
            .remedy("the lowest bit of the first byte is 0, and not all bytes are"));
    }
    modes::check_free(engine, id)?;
    modes::check_frames(engine, id)?;
    engine.set_mac(id, mac).map_err(|error| refuse_interface(engine, args, id, error))?;
    Ok(Output::none())
}

fn set_promiscuous(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    modes::check_free(engine, id)?;
    let on = args.get::<&str>("state")? == "on";
    engine.set_promiscuous(id, on).map_err(|error| refuse_interface(engine, args, id, error))?;
    Ok(Output::none())
}

/// What an interface that another has is by itself; said before it becomes the other's.
fn write_held(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    if let Some(own) = engine.get::<Modes>().and_then(|modes| modes.own(interface.id)) {
        write_own(engine, interface, own, config);
    }
}

fn write_config(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    if engine.get::<Modes>().is_none_or(|modes| modes.own(interface.id).is_none()) {
        let own = Own { mtu_bytes: interface.wanted_mtu_bytes(), ..Own::of(interface.row()) };
        write_own(engine, interface, own, config);
    }
    if interface.admin_up {
        config.command(format_args!("set interface state {} up", interface.name));
    }
}

fn write_own(engine: &Engine, interface: &Interface, own: Own, config: &mut ConfigWriter) {
    let (name, row) = (&interface.name, interface.row());
    let created = engine.get::<AsCreated>().and_then(|c| c.0.get(&interface.id)).copied();
    let (mac, mtu) = created.unwrap_or((own.mac, own.mtu_bytes));
    // What a sub-interface has not of its own it has from its parent.
    let own_mtu = match row.is_sub_interface() {
        true => interface.own_mtu_bytes(),
        false => Some(own.mtu_bytes).filter(|now| *now != mtu),
    };
    if own.mac != mac && !row.is_sub_interface() {
        config.command(format_args!("set interface mac address {name} {}", mac_text(own.mac)));
    }
    if let Some(mtu) = own_mtu {
        config.command(format_args!("set interface mtu packet {mtu} {name}"));
    }
    for (protocol, ..) in PROTOCOL_MTUS {
        if let Some(mtu) = interface.protocol_mtu_bytes(protocol) {
            config.command(format_args!("set interface mtu {protocol} {mtu} {name}"));
        }
    }
    if own.promiscuous {
        config.command(format_args!("set interface promiscuous on {name}"));
    }
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let mut text = String::new();
    for (title, width) in [
        ("Name", 32),
        ("Idx", 5),
        ("State", 10),
        ("MTU (L3/IP4/IP6/MPLS)", 21),
        ("Counter", 16),
        ("Count", 16),
    ] {
        text += &centre(title, width);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    let add = |engine: &Engine, text: &mut String, list: &mut Vec<Value>, id| {
        if let Some(interface) = engine.interface(id) {
            list.push(interface_json(engine, interface));
            write_interface(engine, interface, text);
        }
    };
    Ok(in_pages(engine, "interfaces", text, ids(engine, only), add))
}

fn write_interface(engine: &Engine, interface: &Interface, text: &mut String) {
    let state = if interface.admin_up { "up" } else { "down" };
    let [ip4, ip6, mpls] =
        PROTOCOL_MTUS.map(|(name, ..)| interface.protocol_mtu_bytes(name).unwrap_or(0));
    let mtu = format!("{}/{ip4}/{ip6}/{mpls}", interface.row().mtu_bytes);
    let start = text.len();
    let _ = write!(
        text,
        "{:<32}{}{}{}",
        interface.name,
        centre(&interface.id.0.to_string(), 5),
        centre(state, 10),
        centre(&mtu, 21)
    );
    let totals = engine.interface_totals(interface.id);
    for (index, (name, count)) in totals.fields().iter().filter(|(_, count)| *count > 0).enumerate()
    {
        if index > 0 {
            let _ = write!(text, "{:COUNTERS_COLUMN$}", "");
        }
        let _ = writeln!(text, "{name:<16}{count:>16}");
    }
    if !text.ends_with('\n') {
        text.truncate(start + text[start..].trim_end().len());
        text.push('\n');
    }
}

fn interface_json(engine: &Engine, interface: &Interface) -> Value {
    let totals = engine.interface_totals(interface.id);
    let counters: Map<String, Value> = totals
        .fields()
        .iter()
        .map(|(name, count)| (name.replace(' ', "_"), json!(count)))
        .collect();
    let row = interface.row();
    let queues: Vec<Value> = interface
        .rx
        .iter()
        .map(|p| {
            json!({
                "queue": p.queue, "worker": p.worker, "mode": p.mode,
                "node": engine.node_name(p.input_node)
            })
        })
        .collect();
    json!({
        "name": interface.name,
        "index": interface.id,
        "tag": super::naming::tag(engine, interface.id),
        "kind": interface.device.kind(),
        "state": if interface.admin_up { "up" } else { "down" },
        "link": if interface.link_up { "up" } else { "down" },
        "mtu_bytes": row.mtu_bytes,
        "mtu_ip4_bytes": interface.protocol_mtu_bytes("ip4"),
        "mtu_ip6_bytes": interface.protocol_mtu_bytes("ip6"),
        "mtu_mpls_bytes": interface.protocol_mtu_bytes("mpls"),
        "mac": mac_text(row.mac),
        "promiscuous": row.promiscuous,
        "takes_offloads": interface.takes_offloads,
        "input": engine.node_name(row.input),
        "rx_queues": queues,
        "features": features_json(engine, interface.id),
        "counters": counters,
    })
}

/// The enabled features by arc; arcs without one are left out.
fn features_json(engine: &Engine, id: InterfaceId) -> Value {
    let arcs = enabled(engine, id).filter(|(_, features)| !features.is_empty());
    arcs_json(arcs)
}

fn arcs_json(arcs: impl Iterator<Item = (&'static str, Vec<String>)>) -> Value {
    arcs.map(|(arc, features)| json!({ "arc": arc, "features": features })).collect()
}

fn enabled(engine: &Engine, id: InterfaceId) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    let arcs = engine.arcs().iter().enumerate();
    arcs.map(move |(number, arc)| (arc.name, engine.features_of(id, ArcId(number as u8))))
}

fn show_features(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let mut text = format!("Feature paths configured on {}...\n", engine.interface_name(id));
    for (arc, features) in enabled(engine, id) {
        let _ = writeln!(text, "\n{arc}:");
        if features.is_empty() {
            text += "  none configured\n";
        }
        features.iter().for_each(|feature| {
            let _ = writeln!(text, "  {feature}");
        });
    }
    let arcs = arcs_json(enabled(engine, id));
    Ok(Output::both(text, json!({ "interface": engine.interface_name(id), "arcs": arcs })))
}
