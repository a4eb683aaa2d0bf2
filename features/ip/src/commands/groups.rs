//! `show load-balance` and `show adj`: what routes share.

use std::sync::Arc;

use quiver_control::{
    Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work, order,
};
use quiver_core::Engine;
use quiver_forwarding::adjacency::counts::AdjacencyCounts;
use quiver_forwarding::fib::{AdjacencyView, Fib, GroupView};
use quiver_forwarding::hop_view::HopView;
use quiver_tables::GroupId;
use serde_json::json;

use super::{GROUP, fib};

/// A group's place; none where the hop stands in the leaf itself.
fn index(group: GroupId) -> Cell {
    let place = group.place();
    Cell::new(place.map_or_else(|| "straight".into(), |place| place.to_string()), place)
}

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show load-balance")
            .group(GROUP)
            .help("Show the next-hop groups that routes share, and how they share traffic")
            .run_or_begin(|engine: &mut Engine, _| groups(engine)),
    );
    registry.command(
        Command::new("adjacency counters enable|disable")
            .entry(order::TABLES, "ip.adjacency-counters: <enable?disable>")
            .undo("adjacency counters disable")
            .replaces(&[])
            .group(GROUP)
            .help("Count packets and bytes by adjacency, from zero, or no more")
            .details(
                "`show adj` shows them. A node counts in front of the rewrite while they are \
                 enabled, which costs every packet some clocks; disabled, it costs nothing. Bytes \
                 are those of the IP packet and its layer 2 header.",
            )
            .example("adjacency counters enable")
            .run(|engine: &mut Engine, args| {
                let counts =
                    engine.get::<Arc<AdjacencyCounts>>().filter(|_| args.has("enable")).cloned();
                engine.get_mut::<Fib>().ok_or_else(super::busy)?.count_adjacencies(counts);
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show adj")
            .also("show adjacency")
            .group(GROUP)
            .help("Show the adjacencies: what stands in front of packets to a neighbour")
            .run_or_begin(|engine: &mut Engine, _| adjacencies(engine)),
    );
}

fn groups(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::right("Index"),
        Column::left("Family"),
        Column::right("Routes"),
        Column::right("Buckets"),
        Column::left("Hops"),
    ];
    let mut next = GroupId(0);
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let fib = fib(engine)?;
        let before = table.len();
        for group in fib.group_views_from(next).take(most) {
            next = GroupId(group.group.0 + 1);
            add_group(engine, fib, table, &group);
        }
        Ok((table.len() - before < most).then(Output::none))
    };
    Listing::new("load_balance", columns, rows).begin(engine)
}

fn add_group(engine: &Engine, fib: &Fib, table: &mut Table, group: &GroupView<'_>) {
    let hops = HopView::all(engine, fib, group.hops);
    let words: Vec<_> = hops.iter().map(|hop| format!("{} × {hop}", hop.weight)).collect();
    table
        .row()
        .cell(index(group.group))
        .cell(Cell::display(group.payload))
        .cell(group.routes)
        .cell(fib.groups().word(group.group).buckets())
        .cell(Cell::new(words.join(", "), json!(hops)));
}

fn adjacencies(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::right("Index"),
        Column::left("Interface"),
        Column::left("Next hop"),
        Column::left("Family"),
        Column::left("Node"),
        Column::right("MTU").key("mtu_bytes"),
        Column::left("Rewrite"),
        Column::right("Packets"),
        Column::right("Bytes"),
    ];
    let mut last = None;
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let fib = fib(engine)?;
        let before = table.len();
        for view in fib.adjacency_views_after(last).take(most) {
            last = Some(view.key);
            add_adjacency(engine, table, &view);
        }
        Ok((table.len() - before < most).then(Output::none))
    };
    Listing::new("adjacencies", columns, rows).begin(engine)
}

fn add_adjacency(engine: &Engine, table: &mut Table, view: &AdjacencyView<'_>) {
    let rewrite: String =
        view.adjacency.rewrite().iter().map(|byte| format!("{byte:02x}")).collect();
    table
        .row()
        .cell(view.hop.index)
        .cell(engine.interface_name(view.key.interface))
        .cell(view.key.next_hop)
        .cell(Cell::display(view.key.payload))
        .cell(engine.node_name(view.hop.next))
        .cell(view.adjacency.mtu_bytes)
        .cell(rewrite)
        .cell(view.counted.map(|[packets, _]| packets))
        .cell(view.counted.map(|[_, bytes]| bytes));
}
