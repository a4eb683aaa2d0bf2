//! `show mpls fib`.

use quiver_control::{
    Args, Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work,
    with_interface_names,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Fib, LabelKey, LabelRouteView, PathState, Source};
use quiver_forwarding::hop_view::HopView;
use serde_json::json;

use super::GROUP;
use super::paths::words;
use crate::state::{fib, table_index};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show mpls fib {[table <table:u32>] [<label:label>]}")
            .group(GROUP)
            .help("Show the routes of labels, and what they come down to")
            .details("With a label: what all sources say of it, as the last one and in front.")
            .example("show mpls fib")
            .example("show mpls fib 16")
            .run_or_begin(show),
    );
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let tables = match args.optional::<u32>("table")? {
        Some(id) => vec![(id, table_index(engine, id)?)],
        None => fib(engine)?.label_table_numbers(),
    };
    if let Some(label) = args.optional::<u32>("label")? {
        return Ok(Work::Done(one(engine, args, label, &tables)?));
    }
    let columns = [
        Column::right("Table"),
        Column::right("Label"),
        Column::left("Bottom"),
        Column::left("Source"),
        Column::left("Paths"),
    ];
    let (mut at, mut after): (usize, Option<LabelKey>) = (0, None);
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let fib = fib(engine)?;
        while let Some((id, index)) = tables.get(at) {
            for route in fib.label_routes(*index, after).filter(|route| route.best) {
                if table.len() == most {
                    return Ok(None);
                }
                after = Some(route.key);
                add_route(engine, fib, table, *id, &route);
            }
            (at, after) = (at + 1, None);
        }
        Ok(Some(Output::none()))
    };
    Listing::new("labels", columns, rows).begin(engine)
}

fn bottom(key: LabelKey) -> &'static str {
    if key.is_bottom { "eos" } else { "non-eos" }
}

fn add_route(engine: &Engine, fib: &Fib, table: &mut Table, id: u32, route: &LabelRouteView<'_>) {
    let paths: Vec<_> = route.paths.iter().map(|path| words(engine, fib, path)).collect();
    table
        .row()
        .cell(id)
        .cell(route.key.label)
        .cell(bottom(route.key))
        .cell(source_word(route.source))
        .cell(Cell::new(paths.join(" "), paths.clone()));
}

fn source_word(source: Source) -> &'static str {
    match source {
        Source::Feature => "feature",
        Source::Static => "static",
        Source::Dynamic => "dynamic",
        Source::Kernel => "kernel",
        _ => "special",
    }
}

/// What is known of one label.
fn one(
    engine: &Engine,
    args: &Args<'_>,
    label: u32,
    tables: &[(u32, u32)],
) -> Result<Output, Refusal> {
    let fib = fib(engine)?;
    let (mut text, mut sources) = (String::new(), Vec::new());
    for (id, index) in tables {
        for is_bottom in [true, false] {
            for route in fib.label_route(*index, LabelKey { label, is_bottom }) {
                describe(engine, fib, *id, &route, &mut text);
                sources.push(as_json(engine, fib, *id, &route));
            }
        }
    }
    if sources.is_empty() {
        return Err(args.refuse("label", format!("no route for label {label}")));
    }
    Ok(Output::both(text, json!(sources)).nullable(&[
        "[].load_balance",
        "[].hops[].next_hop",
        "[].hops[].interface",
        "[].hops[].table",
    ]))
}

/// Why a path is not used.
fn state_words(engine: &Engine, state: &PathState) -> String {
    match state {
        PathState::Used => "used".to_owned(),
        PathState::Waits => "waits, a path with a lower preference is used".to_owned(),
        PathState::Unusable(why) => {
            format!("cannot be used: {}", with_interface_names(engine, why))
        }
    }
}

fn describe(engine: &Engine, fib: &Fib, id: u32, route: &LabelRouteView<'_>, text: &mut String) {
    let (label, bottom) = (route.key.label, bottom(route.key));
    let best = if route.best { "" } else { ", not followed" };
    let source = source_word(route.source);
    *text += &format!("{label} {bottom} in MPLS table {id}, {source}{best}\n");
    for (path, state) in fib.path_states(route.group) {
        let state = match state {
            PathState::Used => String::new(),
            other => format!(": {}", state_words(engine, &other)),
        };
        *text += &format!("  {}{state}\n", words(engine, fib, &path));
    }
    if let Some(place) = route.group.place() {
        *text += &format!("  load-balance {place}:\n");
    }
    for hop in HopView::all(engine, fib, route.hops) {
        *text += &format!("    weight {}: {hop}\n", hop.weight);
    }
}

fn as_json(engine: &Engine, fib: &Fib, id: u32, route: &LabelRouteView<'_>) -> serde_json::Value {
    let paths: Vec<_> = route.paths.iter().map(|path| words(engine, fib, path)).collect();
    let states: Vec<_> =
        fib.path_states(route.group).iter().map(|(_, state)| state_words(engine, state)).collect();
    json!({
        "table": id,
        "label": route.key.label,
        "bottom": bottom(route.key),
        "source": source_word(route.source),
        "best": route.best,
        "load_balance": route.group.place(),
        "paths": paths,
        "states": states,
        "hops": HopView::all(engine, fib, route.hops),
    })
}
