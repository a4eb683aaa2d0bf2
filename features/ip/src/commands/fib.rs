//! `show ip fib` and `show ip6 fib`.

use std::net::IpAddr;

use quiver_control::{
    Args, Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work,
    with_interface_names,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, PathState, RouteView, Source, Unusable};
use quiver_forwarding::hop_view::HopView;
use quiver_tables::prefix::IpPrefix;
use serde_json::{Value, json};

use super::{GROUP, fib, routes::path_words, table_of};

pub(crate) fn register(registry: &mut Registry) {
    for (family, syntax) in [
        (Family::Ip4, "show ip fib {[table <:u32>] [<prefix:prefix4>|<address:ip4>] [summary]}"),
        (Family::Ip6, "show ip6 fib {[table <:u32>] [<prefix:prefix6>|<address:ip6>] [summary]}"),
    ] {
        registry.command(
            Command::new(syntax)
                .group(GROUP)
                .help("Show routes and what they come down to")
                .details(
                    "With an address: the route that packets to it take. With a prefix: what all \
                     sources say of exactly it. With `summary`: how many prefixes of each length \
                     there are.",
                )
                .run_or_begin(move |engine: &mut Engine, args| show(engine, args, family)),
        );
    }
}

fn show(engine: &mut Engine, args: &Args<'_>, family: Family) -> Result<Work<Engine>, Refusal> {
    let fib = fib(engine)?;
    let tables = if args.has("table") {
        vec![(args.get::<u32>("table")?, table_of(engine, args, family, "table")?)]
    } else {
        fib.tables(family)
    };
    if args.has("summary") {
        return Ok(Work::Done(summary(fib, family, &tables)));
    }
    if let Some(address) = args.optional::<IpAddr>("address")? {
        let (id, index) = tables.first().copied().unwrap_or((0, 0));
        let route = fib.best_route(index, address).ok_or_else(|| {
            args.refuse("address", format!("no route to {address} in {family} table {id}"))
        })?;
        return Ok(Work::Done(one(engine, fib, id, &[route])));
    }
    if let Some(prefix) = args.optional::<quiver_control::IpPrefix>("prefix")? {
        let (id, index) = tables.first().copied().unwrap_or((0, 0));
        let found = fib.route(index, IpPrefix::new(prefix.address, prefix.length));
        if found.is_empty() {
            return Err(args.refuse("prefix", format!("no route {prefix} in {family} table {id}")));
        }
        return Ok(Work::Done(one(engine, fib, id, &found)));
    }
    all(engine, family, tables)
}

fn summary(fib: &Fib, family: Family, tables: &[(u32, u32)]) -> Output {
    let mut table = Table::new([
        Column::right("Table"),
        Column::right("Length").key("length_bits"),
        Column::right("Count"),
    ]);
    for (id, index) in tables {
        let counts = fib.count_by_len(family, *index).into_iter().enumerate();
        for (length, count) in counts.filter(|(_, count)| *count > 0) {
            table.row().cell(*id).cell(length).cell(count);
        }
    }
    Output::none().table("lengths", table)
}

/// All routes, table by table in the order of prefixes.
fn all(
    engine: &mut Engine,
    family: Family,
    tables: Vec<(u32, u32)>,
) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::right("Table"),
        Column::left("Prefix"),
        Column::left("Source"),
        Column::left("Paths"),
    ];
    let mut head = Output::none();
    for (id, index) in &tables {
        let fields = fib(engine)?.flow_fields(family, *index);
        head = head.line(format!("{family} table {id}, flow hash: {fields}"));
    }
    let (mut at, mut after) = (0, None);
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let fib = fib(engine)?;
        while let Some((id, index)) = tables.get(at) {
            // A table that was deleted meanwhile has no routes left to show.
            let is_there = fib.table_index(family, *id) == Some(*index);
            let routes = fib.routes(family, *index, after).take(if is_there {
                most - table.len()
            } else {
                0
            });
            for route in routes {
                after = Some(route.prefix);
                add_route(engine, fib, table, *id, &route);
            }
            if table.len() == most {
                return Ok(None);
            }
            (at, after) = (at + 1, None);
        }
        Ok(Some(Output::none()))
    };
    Listing::new("routes", columns, rows).head(head).begin(engine)
}

fn add_route(engine: &Engine, fib: &Fib, table: &mut Table, id: u32, route: &RouteView<'_>) {
    let paths: Vec<_> =
        route.paths.iter().map(|path| path_words(engine, fib, route.prefix, path)).collect();
    table
        .row()
        .cell(id)
        .cell(Cell::display(route.prefix))
        .cell(source_word(route.source))
        .cell(Cell::new(paths.join(" "), paths.clone()));
}

/// What is known of one prefix.
fn one(engine: &Engine, fib: &Fib, table: u32, routes: &[RouteView<'_>]) -> Output {
    let mut text = String::new();
    let mut sources = Vec::new();
    for route in routes {
        let best = if route.best { "" } else { ", not followed" };
        text +=
            &format!("{} in table {table}, {}{best}\n", route.prefix, source_word(route.source));
        let states = fib.path_states(route.group);
        for (path, state) in &states {
            text += &format!(
                "  {}{}\n",
                path_words(engine, fib, route.prefix, path),
                state_words(engine, state, ": ")
            );
        }
        let hops = HopView::all(engine, fib, route.hops);
        text += &match route.group.place() {
            Some(place) => format!("  load-balance {place}:\n"),
            None => "  straight, by no load-balance:\n".into(),
        };
        for hop in &hops {
            text += &format!("    weight {}: {hop}\n", hop.weight);
        }
        let paths = route.paths.iter().map(|path| path_words(engine, fib, route.prefix, path));
        sources.push(json!({
            "prefix": route.prefix.to_string(),
            "table": table,
            "source": source_word(route.source),
            "best": route.best,
            "load_balance": route.group.place(),
            "paths": paths.collect::<Vec<_>>(),
            "states": states.iter().map(|(_, state)| state_json(engine, state)).collect::<Vec<_>>(),
            "hops": hops,
        }));
    }
    Output::both(text, json!(sources)).nullable(&[
        "[].load_balance",
        "[].hops[].next_hop",
        "[].hops[].interface",
        "[].hops[].table",
    ])
}

fn state_json(engine: &Engine, state: &PathState) -> Value {
    let word = match state {
        PathState::Used => "used",
        PathState::Waits => "waits",
        PathState::Unusable(_) => "unusable",
    };
    json!({ "state": word, "text": state_words(engine, state, "") })
}

/// What a path is doing, in words behind `before`; in a text nothing where all is as it should be.
fn state_words(engine: &Engine, state: &PathState, before: &str) -> String {
    match state {
        PathState::Used if before.is_empty() => "used".to_owned(),
        PathState::Used => String::new(),
        PathState::Waits => format!("{before}waits, a path with a lower preference is used"),
        PathState::Unusable(Unusable::InterfaceDown(on)) => {
            format!("{before}cannot be used: {} is down", engine.interface_name(*on))
        }
        PathState::Unusable(why) => {
            format!("{before}cannot be used: {}", with_interface_names(engine, why))
        }
    }
}

pub(crate) fn source_word(source: Source) -> &'static str {
    match source {
        Source::Special => "special",
        Source::Interface => "interface",
        Source::Feature => "feature",
        Source::Static => "static",
        Source::Dynamic => "dynamic",
        Source::Kernel => "kernel",
        Source::Neighbour => "neighbor",
        Source::Leased => "leased",
        Source::Advertised => "advertised",
    }
}
