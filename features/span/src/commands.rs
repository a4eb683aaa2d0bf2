//! The commands of mirrors.

use quiver_control::{
    Args, Column, Command, Listing, Output, Refusal, Registry, Table, modes, order,
};
use quiver_core::Engine;

use crate::config::{self, Copied, Spans};
use crate::table::Direction;

const GROUP: &str = "Interfaces";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set interface span <interface> [disable] [destination <destination:interface>] \
             [<directions:rx|tx|both>]",
        )
        .entry(order::FEATURES, "interfaces.<interface>.span.<destination>: <directions>")
        .undo("set interface span <interface> disable destination <destination>")
        .group(GROUP)
        .help("Let copies of what an interface receives, sends, or both leave by another interface")
        .details(
            "Both directions, unless one is named. disable ends the mirror to this destination, \
             or all mirrors of the interface when none is named.",
        )
        .example("set interface span memif0/0 destination memif1/0 rx")
        .run(set),
    );
    registry.command(
        Command::new("show interface span")
            .group(GROUP)
            .help("Show which interfaces are mirrored to which")
            .run_or_begin(|engine: &mut Engine, _| {
                let columns = ["Source", "Destination", "Directions"].map(Column::left);
                let mirrors = engine.get::<Spans>().into_iter().flat_map(Spans::all).collect();
                let add = |engine: &Engine, table: &mut Table, mirror: Copied| {
                    let (from, to, directions) = mirror;
                    let row = table.row().cell(engine.interface_name(from));
                    row.cell(engine.interface_name(to)).cell(directions);
                };
                Listing::over("mirrors", columns, mirrors, add).begin(engine)
            }),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let from = args.interface(engine, "interface")?;
    let to = args.optional_interface(engine, "destination")?;
    let directions: &[Direction] = match args.or("directions", "both")? {
        "rx" => &[Direction::Rx],
        "tx" => &[Direction::Tx],
        _ => &[Direction::Rx, Direction::Tx],
    };
    if args.has("disable") {
        config::end(engine, from, to, directions)?;
        return Ok(Output::none());
    }
    let to = to.ok_or_else(|| {
        Refusal::new("where are the copies to go?")
            .remedy("set interface span IF destination IF [rx|tx|both]")
    })?;
    if from == to {
        let name = engine.interface_name(from);
        return Err(args.refuse("destination", format!("{name} cannot be mirrored to itself")));
    }
    [from, to].into_iter().try_for_each(|id| modes::check_frames(engine, id))?;
    config::set(engine, from, to, directions)?;
    Ok(Output::none())
}
