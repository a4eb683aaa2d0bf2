//! Which interfaces route, and which belong to a feature of layer 2.

use quiver_core::Engine;

use super::ids_by_name;
use crate::aggregates::Aggregates;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::listing::Listing;
use crate::modes::{Modes, follow_interface, leave};
use crate::output::{Cell, Column, Output, Table};
use crate::registry::Registry;

const GROUP: &str = "Layer 2";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface l3 <interface>")
            .group(GROUP)
            .help(
                "Take an interface out of its bridge domain or cross-connect, and route what it \
                 receives",
            )
            .example("set interface l3 memif0/0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                if !leave(engine, id)? {
                    let name = engine.interface_name(id);
                    return Err(Refusal::new(format!("{name} routes already"))
                        .remedy("`show mode` lists what does not"));
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show mode [<interface>]")
            .group(GROUP)
            .help("Show which interfaces route, which are cross-connected and which are bridged")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                let columns =
                    [Column::left("Mode"), Column::left("Interface"), Column::left("With")];
                let add = |engine: &Engine, table: &mut Table, id| {
                    let Some(interface) = engine.interface(id) else { return };
                    let layer_two = engine.get::<Modes>().and_then(|modes| modes.of(id));
                    let mode = layer_two.map_or("l3", |layer_two| layer_two.mode);
                    let with = layer_two.map_or(String::new(), |layer_two| layer_two.with.clone());
                    let mode = Cell::new(mode, mode.replace(' ', "_"));
                    table.row().cell(mode).cell(interface.name.clone()).cell(with);
                };
                Listing::over("interfaces", columns, ids_by_name(engine, only), add).begin(engine)
            }),
    );
    registry.on_start(|engine| {
        engine.insert(Modes::default());
        engine.insert(Aggregates::default());
        engine.on_interface_change(follow_interface);
    });
}
