//! Commands that show what is recorded, written and mapped.

use quiver_control::{Args, Column, Command, Listing, Refusal, Registry, Table, Work};
use quiver_core::{Engine, InterfaceId};

use crate::class::Source;
use crate::commands::GROUP;
use crate::config::{Config, OnInterface};
use crate::map_commands::numbers;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show qos record")
            .group(GROUP)
            .help("Show which classes are recorded of what interfaces receive")
            .run_or_begin(|engine: &mut Engine, _| {
                let columns = ["Interface", "Source"].map(Column::left);
                on_interfaces(engine, columns, |on, at| on.recorded[at].then_some(None))
            }),
    );
    registry.command(
        Command::new("show qos store")
            .group(GROUP)
            .help("Show which classes are recorded whatever headers say")
            .run_or_begin(|engine: &mut Engine, _| {
                let columns =
                    [Column::left("Interface"), Column::left("Source"), Column::right("Value")];
                on_interfaces(engine, columns, |on, at| on.stored[at].map(|v| Some(v.into())))
            }),
    );
    registry.command(
        Command::new("show qos mark")
            .group(GROUP)
            .help("Show which egress maps write the classes of what interfaces send")
            .run_or_begin(|engine: &mut Engine, _| {
                let columns =
                    [Column::left("Interface"), Column::left("Header"), Column::right("Map")];
                on_interfaces(engine, columns, |on, at| on.maps[at].map(Some))
            }),
    );
    registry.command(
        Command::new("show qos egress map [id <map:0-4095>]")
            .group(GROUP)
            .help("Show egress maps: which class is written, by the one that was recorded")
            .example("show qos egress map id 1")
            .run_or_begin(maps),
    );
}

/// What an interface has for a source: nothing, or something, with a number or without.
type Of = fn(&OnInterface, usize) -> Option<Option<u16>>;

fn on_interfaces<const COLUMNS: usize>(
    engine: &mut Engine,
    columns: [Column; COLUMNS],
    of: Of,
) -> Result<Work<Engine>, Refusal> {
    let ids: Vec<InterfaceId> = engine.interfaces_by_name().map(|interface| interface.id).collect();
    let add = move |engine: &Engine, table: &mut Table, id: InterfaceId| {
        let Some(on) = engine.get::<Config>().and_then(|config| config.interfaces.get(&id)) else {
            return;
        };
        for source in Source::HEADERS {
            let Some(number) = of(on, source as usize) else { continue };
            let row = table.row().cell(engine.interface_name(id)).cell(source.word());
            if let Some(number) = number {
                row.cell(number);
            }
        }
    };
    Listing::over("interfaces", columns, ids, add).begin(engine)
}

fn maps(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let all = match args.optional::<u16>("map")? {
        None => numbers(engine),
        Some(number) if numbers(engine).contains(&number) => vec![number],
        Some(number) => {
            let what = format!("there is no egress map {number}");
            return Err(args.refuse("map", what).remedy("`show qos egress map` lists them"));
        }
    };
    let columns = [
        Column::right("Map"),
        Column::left("Source"),
        Column::right("First"),
        Column::right("Last"),
        Column::right("Out"),
    ];
    let add = |engine: &Engine, table: &mut Table, number: u16| {
        let Some(map) = engine.get::<Config>().and_then(|config| config.maps.get(&number)) else {
            return;
        };
        for run in map.runs() {
            let row = table.row().cell(number).cell(run.source.word());
            row.cell(run.first).cell(run.last).cell(run.out);
        }
    };
    Listing::over("maps", columns, all, add).begin(engine)
}
