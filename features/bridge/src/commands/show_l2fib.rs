//! The MAC table and its events, shown.

use quiver_control::{Args, Cell, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::Engine;
use quiver_tables::mac::{MacEntry, MacKey, StampMinutes};

use super::{GROUP, bridges};
use crate::events::Happened;
use crate::state::Bridges;

/// Rows that are shown unless asked for otherwise.
const ROWS_SHOWN: usize = 1000;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show l2fib [all|verbose|learn|add|(bd <domain:1-16777215>)] [max <:1-16777216>]")
            .group(GROUP)
            .help("Show the MAC table: how many addresses it has, all, those of a domain, those learned, those configured")
            .details("At most 1000 are listed, or as many as max says; how many more there are is told.")
            .example("show l2fib all")
            .example("show l2fib bd 10 max 50")
            .run(show),
    );
    registry.command(
        Command::new("show l2fib events {[since <:u64>] [max <:1-16777216>]}")
            .group(GROUP)
            .help("Show addresses that were learned, moved and aged lately, the oldest first")
            .details("Each has a number; since leaves out those up to it, so that a program asks for what is new. 1024 are kept, or as many as `set l2fib events` says.")
            .example("show l2fib events since 17 max 100")
            .run(events),
    );
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let state = bridges(engine)?;
    let domain = args.optional::<u32>("domain")?.map(|number| state.domain(number)).transpose()?;
    let lists = domain.is_some() || ["all", "verbose", "learn", "add"].iter().any(|word| args.has(word));
    let usage = state.macs.usage();
    let output = Output::none()
        .field("Entries", usage.entries)
        .field("Learned", state.macs.learned())
        .field("Entries at most", state.macs.entries_max())
        .field("Learned at most", state.macs.learn_limit())
        .field("Learned since start", state.events.learned)
        .field("Moved since start", state.events.moved)
        .field("Aged since start", state.events.aged)
        .field("Not learned at a limit", state.events.refused)
        .field("Memory bytes", usage.resident_bytes);
    if !lists {
        return Ok(output);
    }
    let wanted = |key: &MacKey, entry: &MacEntry| {
        domain.is_none_or(|domain| domain.index == key.domain())
            && (!args.has("learn") || !entry.is_configured())
            && (!args.has("add") || entry.is_configured())
    };
    let max = args.or::<u64>("max", ROWS_SHOWN as u64)? as usize;
    let (rows, more) = first_rows(state, wanted, max);
    let output = output.line("").table("entries", table(engine, state, &rows)).json("not-shown", more.into());
    Ok(match more {
        0 => output,
        _ => output.line(format!("{more} more are not shown (max N shows more)")),
    })
}

/// Rows of domains in the order of their numbers and addresses, and how many there was no room for. Of a
/// table with more rows than wanted some are shown, which ones is not said.
fn first_rows(
    state: &Bridges,
    wanted: impl Fn(&MacKey, &MacEntry) -> bool,
    max: usize,
) -> (Vec<(MacKey, MacEntry)>, usize) {
    let (mut rows, mut more) = (Vec::new(), 0);
    for row in state.macs.iter().filter(|(key, entry)| wanted(key, entry)) {
        if rows.len() < max { rows.push(row) } else { more += 1 }
    }
    rows.sort_by_key(|(key, _)| (state.number(key.domain()), key.mac()));
    (rows, more)
}

fn table(engine: &Engine, state: &Bridges, rows: &[(MacKey, MacEntry)]) -> Table {
    let mut table = Table::new([
        Column::left("Mac-Address").key("mac"),
        Column::right("BD-ID").key("domain"),
        Column::left("Interface-Name").key("interface"),
        Column::right("Age(min)").key("age-minutes"),
        Column::left("Static"),
        Column::left("Filter"),
        Column::left("BVI"),
        Column::left("Learned"),
    ]);
    let now = StampMinutes::from_ns(engine.now_ns());
    for (key, entry) in rows {
        let age = (!entry.is_configured()).then(|| now.since(entry.stamp()));
        let interface = (!entry.has_no_port()).then(|| engine.interface_name(entry.port()));
        table
            .row()
            .cell(Cell::display(key.mac()))
            .cell(state.number(key.domain()))
            .cell(interface)
            .cell(age)
            .cell(entry.is_static())
            .cell(entry.is_filter())
            .cell(entry.is_bvi())
            .cell(!entry.is_configured());
    }
    table
}

fn events(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let state = bridges(engine)?;
    let since = args.or("since", 0)?;
    let max = args.or::<u64>("max", ROWS_SHOWN as u64)? as usize;
    let mut table = Table::new([
        Column::right("Number"),
        Column::right("Time").key("time-s"),
        Column::left("Event"),
        Column::left("Mac-Address").key("mac"),
        Column::right("BD-ID").key("domain"),
        Column::left("Interface"),
        Column::left("From"),
    ])
    .when_empty("nothing was learned, moved or forgotten");
    for event in state.events.since(since).take(max) {
        let from = match event.happened {
            Happened::Moved { from } => Some(engine.interface_name(from)),
            Happened::Learned | Happened::Aged => None,
        };
        table
            .row()
            .cell(event.number)
            .cell(Cell::real(event.at_ns as f64 / 1e9, 3))
            .cell(event.happened.word())
            .cell(Cell::display(event.key.mac()))
            .cell(event.domain)
            .cell(engine.interface_name(event.port))
            .cell(from);
    }
    Ok(Output::none().table("events", table).json("last", state.events.last().into()))
}
