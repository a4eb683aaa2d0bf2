//! Commands that show policers.

use quiver_control::{Args, Column, Command, Listing, Refusal, Registry, Table, Work};
use quiver_core::{Engine, InterfaceId};
use quiver_policing::Action;
use quiver_policing::meter::{Colour, Rates, Unit};

use crate::commands::{GROUP, names, words};
use crate::config::{Config, Configured};
use crate::tables::Direction;

/// In the place of a policer's name: each subscriber has its own.
const EACH_SUBSCRIBER: &str = "each-subscriber";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show policer [<name:word>]")
            .group(GROUP)
            .help("Show policers, their rates, and what they have let pass")
            .details("Bytes are those of frames without their check sequence.")
            .example("show policer gold")
            .run_or_begin(policers),
    );
    registry.command(
        Command::new("show policer interface [<interface>]")
            .group(GROUP)
            .help("Show which policers meter what interfaces receive and send")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                interfaces(engine, only)
            }),
    );
}

fn policers(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let all = match args.optional::<String>("name")? {
        None => names(engine),
        Some(name) if names(engine).contains(&name) => vec![name],
        Some(name) => {
            let what = format!("there is no policer {name}");
            return Err(args.refuse("name", what).remedy("`show policer` lists them"));
        }
    };
    let columns = [
        Column::left("Name"),
        Column::left("Type"),
        Column::left("Unit"),
        Column::right("CIR").key("cir"),
        Column::right("CB").key("cb"),
        Column::right("EIR").key("eir"),
        Column::right("EB").key("eb"),
        Column::left("Color aware"),
        Column::left("Result"),
        Column::left("Action"),
        Column::right("Packets"),
        Column::right("Bytes"),
    ];
    Listing::over("policers", columns, all, add).begin(engine)
}

/// The rows of a policer: one a colour.
fn add(engine: &Engine, table: &mut Table, name: String) {
    let Some(known) = engine.get::<Config>().and_then(|config| config.policers.get(&name)) else {
        return;
    };
    let Configured { terms, counts, .. } = known;
    let Rates { kind, unit, committed, committed_burst, excess, excess_burst } = terms.rates;
    let (unit, times) = match unit {
        Unit::Bits => ("kbps", 1000),
        Unit::Packets => ("pps", 1),
    };
    let mut row = |result: &str, action: Action, (packets, bytes): (u64, u64)| {
        let row = table.row().cell(&name).cell(kind.word()).cell(unit);
        let row = row.cell(committed / times).cell(committed_burst);
        let row = row.cell(excess / times).cell(excess_burst).cell(terms.is_colour_aware);
        row.cell(result).cell(words(action)).cell(packets).cell(bytes);
    };
    for (colour, action) in Colour::ALL.into_iter().zip(terms.actions) {
        row(colour.word(), action, counts.colours[colour as usize].get());
    }
    let unmetered = counts.unmetered.get();
    if unmetered.0 > 0 {
        row("unmetered", Action::Transmit, unmetered);
    }
}

fn interfaces(engine: &mut Engine, only: Option<InterfaceId>) -> Result<Work<Engine>, Refusal> {
    let columns = ["Interface", "Direction", "Policer"].map(Column::left);
    let config = engine.get::<Config>();
    let policers = config.into_iter().flat_map(|config| config.attached.keys());
    let subscribers = config.into_iter().flat_map(|config| &config.subscribers.on);
    let all = policers.map(|on| (*on, false)).chain(subscribers.map(|on| (*on, true)));
    let mut keys: Vec<((InterfaceId, Direction), bool)> =
        all.filter(|((id, _), _)| only.is_none_or(|only| only == *id)).collect();
    keys.sort_unstable();
    let add = |engine: &Engine, table: &mut Table, (on, is_by_subscriber)| {
        let name = engine.get::<Config>().and_then(|config| match is_by_subscriber {
            true => config.subscribers.on.contains(&on).then_some(EACH_SUBSCRIBER),
            false => config.attached.get(&on).map(String::as_str),
        });
        if let Some(name) = name {
            table.row().cell(engine.interface_name(on.0)).cell(on.1.word()).cell(name);
        }
    };
    Listing::over("interfaces", columns, keys, add).begin(engine)
}
