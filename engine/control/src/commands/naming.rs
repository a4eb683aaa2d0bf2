//! What an operator calls interfaces: their names, and tags, which are notes beside them.

use std::collections::BTreeMap;

use quiver_core::control::interfaces::{Interface, InterfaceChange};
use quiver_core::{Engine, InterfaceId};

use super::{ids_by_name, refuse_interface};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::json_form::quoted;
use crate::listing::Listing;
use crate::output::{Column, Output, Table};
use crate::registry::Registry;
use crate::running::{ConfigWriter, by_interface, order};

const GROUP: &str = "Interfaces";
/// Characters in a tag.
const TAG_CHARS_MAX: usize = 63;

/// The tags of interfaces.
#[derive(Default)]
struct Tags(BTreeMap<InterfaceId, String>);

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface name <interface> <name:word>")
            .entry(order::INTERFACE_NAMES, "interfaces.<interface>.name: <name>")
            .undo("set interface name <name> <interface>")
            .makes("interface <name>")
            .group(GROUP)
            .help("Give an interface another name")
            .details(
                "Its nodes and its sub-interfaces are called after the new name. The name that it \
                 was made with stays taken, and it may have it again.",
            )
            .example("set interface name memif0/0 uplink")
            .run(set_name),
    );
    registry.command(
        Command::new("set interface tag <interface> <tag:text>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.tag: <tag>")
            .undo("clear interface tag <interface>")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Put a note on an interface")
            .example("set interface tag memif0/0 customer-17")
            .run(set_tag),
    );
    registry.command(
        Command::new("clear interface tag <interface>")
            .group(GROUP)
            .help("Take the note off an interface")
            .example("clear interface tag memif0/0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                engine.get_mut::<Tags>().map(|tags| tags.0.remove(&id));
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show interface tag [<interface>]")
            .group(GROUP)
            .help("Show the notes on interfaces")
            .run_or_begin(show_tags),
    );
    registry.running_config_in_slices(
        order::INTERFACE_NAMES,
        by_interface(|_, interface, config| write_names(interface, config, false)),
    );
    // Sub-interfaces are made after all others are there, and called after their parents.
    registry.running_config_in_slices(
        order::SUB_INTERFACE_NAMES,
        by_interface(|_, interface, config| write_names(interface, config, true)),
    );
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, by_interface(write_tag));
    registry.on_start(|engine| {
        engine.insert(Tags::default());
        engine.on_interface_change(|engine, id, change| {
            if change == InterfaceChange::Deleted {
                engine.get_mut::<Tags>().map(|tags| tags.0.remove(&id));
            }
        });
    });
}

/// The tag of an interface.
pub(super) fn tag(engine: &Engine, id: InterfaceId) -> Option<&str> {
    engine.get::<Tags>()?.0.get(&id).map(String::as_str)
}

fn set_name(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let name: &str = args.get("name")?;
    // It stands in commands as a word, and `local` is what the router sends itself.
    if quoted(name) != name || matches!(name, "local" | "any" | "json" | "del") {
        let what = format!("'{name}' cannot be the name of an interface");
        return Err(args
            .refuse("name", what)
            .remedy("letters, digits and signs such as `-`, `.` and `/`"));
    }
    engine.rename_interface(id, name).map_err(|error| refuse_interface(engine, args, id, error))?;
    Ok(Output::none())
}

fn set_tag(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let tag: String = args.get("tag")?;
    if tag.is_empty() || tag.chars().count() > TAG_CHARS_MAX || tag.contains(char::is_control) {
        return Err(
            args.refuse("tag", format!("a tag has 1 to {TAG_CHARS_MAX} printable characters"))
        );
    }
    engine.get_mut::<Tags>().map(|tags| tags.0.insert(id, tag));
    Ok(Output::none())
}

fn show_tags(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let add = |engine: &Engine, table: &mut Table, id| {
        if let Some(tag) = tag(engine, id) {
            table.row().cell(engine.interface_name(id)).cell(tag);
        }
    };
    let keys = ids_by_name(engine, only);
    Listing::over("interfaces", ["Interface", "Tag"].map(Column::left), keys, add).begin(engine)
}

fn write_names(interface: &Interface, config: &mut ConfigWriter, subs: bool) {
    if interface.made_name() != interface.name && interface.row().is_sub_interface() == subs {
        config.command(format_args!(
            "set interface name {} {}",
            interface.made_name(),
            interface.name
        ));
    }
}

fn write_tag(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    if let Some(tag) = tag(engine, interface.id) {
        config.command(format_args!("set interface tag {} {}", interface.name, quoted(tag)));
    }
}
