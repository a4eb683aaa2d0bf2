//! The graph as it stands: nodes, their edges, arcs and features.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use quiver_core::control::engine::NodeInfo;
use quiver_core::graph::arc::{ArcId, DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::node::{DROP, NodeKind, Severity};
use quiver_core::{Engine, NodeId, WorkerId};
use serde_json::{Value, json};

use super::all_workers;
use super::errors::severity_text;
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::listing::in_slices;
use crate::output::{Column, Output, Table};
use crate::registry::{BuiltIn, Registry};

const GROUP: &str = "Seeing inside";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show node [<node>]")
            .group(GROUP)
            .help("Show the nodes of the graph, or one with its edges, reasons and work")
            .example("show node error-drop")
            .run_or_begin(show_node),
    );
    registry.command(
        Command::new("show graph [dot]")
            .group(GROUP)
            .help("Show where each node can send packets")
            .word("dot", "in the language of Graphviz: quiverctl show graph dot | dot -Tsvg")
            .run_or_begin(show_graph),
    );
    registry.command(
        Command::new("show plugins")
            .group(GROUP)
            .help("Show the drivers and features that are built in")
            .run(show_plugins),
    );
    registry.command(
        Command::new("show features [verbose]")
            .group(GROUP)
            .help("Show what is built in, and in which order features stand in their arcs")
            .word("verbose", "the same: nothing is left out")
            .run(show_features),
    );
}

/// As VPP lists what is built in or loaded; here everything is built in.
fn show_plugins(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let mut table = Table::new([
        Column::left("Plugin").key("name"),
        Column::left("Version"),
        Column::left("Description"),
    ]);
    for feature in engine.get::<BuiltIn>().iter().flat_map(|b| &b.0) {
        table.row().cell(feature.name).cell(env!("CARGO_PKG_VERSION")).cell(feature.help);
    }
    Ok(Output::none()
        .line("All drivers and features are built in; there is no plugin path.")
        .table("plugins", table))
}

/// Edges by the node that they leave, and by the one that they lead to.
#[derive(Default)]
struct Edges {
    next: BTreeMap<NodeId, BTreeSet<NodeId>>,
    previous: BTreeMap<NodeId, BTreeSet<NodeId>>,
}

impl Edges {
    fn add(&mut self, from: NodeId, to: NodeId) {
        self.next.entry(from).or_default().insert(to);
        self.previous.entry(to).or_default().insert(from);
    }

    /// All edges, with those that arcs and interfaces add to what nodes declare.
    fn of(engine: &Engine) -> Edges {
        let mut edges = Edges::default();
        for (id, node) in engine.all_nodes() {
            node.edges.iter().for_each(|next| edges.add(id, *next));
            // A node with a drop reason has the edge.
            if id != DROP && node.spec.reasons.iter().any(|r| r.severity == Severity::Error) {
                edges.add(id, DROP);
            }
        }
        for interface in engine.all_interfaces() {
            let row = interface.row();
            let mut inputs: BTreeSet<NodeId> = interface.rx.iter().map(|p| p.input_node).collect();
            let chain: Vec<NodeId> = features(engine, interface.id, DEVICE_INPUT);
            edges.add_path(&mut inputs, &chain, row.input);
            let chain: Vec<NodeId> = features(engine, interface.id, INTERFACE_OUTPUT);
            edges.add_path(&mut BTreeSet::from([row.output]), &chain, row.tx);
        }
        edges
    }

    fn add_path(&mut self, from: &mut BTreeSet<NodeId>, chain: &[NodeId], last: NodeId) {
        for &next in chain.iter().chain([&last]) {
            from.iter().for_each(|from| self.add(*from, next));
            *from = BTreeSet::from([next]);
        }
    }
}

fn features(engine: &Engine, id: quiver_core::InterfaceId, arc: ArcId) -> Vec<NodeId> {
    engine.features_of(id, arc).iter().filter_map(|name| engine.node_id(name)).collect()
}

fn kind_text(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Input => "input",
        NodeKind::Internal => "internal",
        NodeKind::Sink => "sink",
    }
}

fn names<'a>(engine: &Engine, ids: impl Iterator<Item = &'a NodeId>) -> Vec<String> {
    let mut names: Vec<String> = ids.map(|id| engine.node_name(*id)).collect();
    names.sort();
    names
}

fn next_of(engine: &Engine, edges: &Edges, id: NodeId) -> Vec<String> {
    names(engine, edges.next.get(&id).into_iter().flatten())
}

fn previous_of(engine: &Engine, edges: &Edges, id: NodeId) -> Vec<String> {
    names(engine, edges.previous.get(&id).into_iter().flatten())
}

/// All nodes in the order of their names.
fn nodes_by_name(engine: &Engine) -> Vec<NodeId> {
    let mut nodes: Vec<_> =
        engine.all_nodes().map(|(id, node)| (node.spec.name.as_str(), id)).collect();
    nodes.sort_unstable();
    nodes.into_iter().map(|(_, id)| id).collect()
}

fn show_node(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let edges = Edges::of(engine);
    if args.has("node") {
        let id = args.node(engine, "node")?;
        let Some(info) = engine.node_info(id) else {
            return Err(args.refuse("node", "the node is gone"));
        };
        return Ok(Work::Done(one_node(engine, id, info, &edges)));
    }
    let add = move |engine: &Engine, (table, list): &mut (Table, Vec<Value>), id| {
        let Some(info) = engine.node_info(id) else { return };
        table.row().cell(&info.spec.name).cell(kind_text(info.spec.kind)).cell(info.spec.help);
        list.push(node_json(engine, id, info, &edges));
    };
    let end = |_: &Engine, (table, list): (Table, Vec<Value>)| {
        Output::none().items("nodes", Output::from(table).to_text(), list)
    };
    let made = (Table::new(["Name", "Kind", "Help"].map(Column::left)), Vec::new());
    Ok(in_slices(engine, nodes_by_name(engine), made, add, end))
}

fn one_node(engine: &Engine, id: NodeId, info: &NodeInfo, edges: &Edges) -> Output {
    let spec = &info.spec;
    let mut text = format!("{} ({}): {}\n", spec.name, kind_text(spec.kind), spec.help);
    let _ = writeln!(text, "  from: {}", listed(&previous_of(engine, edges, id)));
    let _ = writeln!(text, "  to:   {}", listed(&next_of(engine, edges, id)));
    for worker in all_workers(engine) {
        let totals = engine.node_totals(worker, id);
        let WorkerId(number) = worker;
        let _ = writeln!(
            text,
            "  worker {number}: {} calls, {} vectors, {} clocks",
            totals.calls, totals.vectors, totals.clocks
        );
    }
    if !spec.reasons.is_empty() {
        let mut table = Table::new([
            Column::right("Count"),
            Column::left("Name"),
            Column::left("Severity"),
            Column::left("Reason"),
        ]);
        for (number, reason) in spec.reasons.iter().enumerate() {
            let count = engine.reason_count(id, number as u16);
            let row = table.row().cell(count).cell(reason.name);
            row.cell(severity_text(reason.severity)).cell(reason.text);
        }
        text += &Output::from(table).to_text();
    }
    Output::both(text, node_json(engine, id, info, edges))
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nowhere".to_owned() } else { names.join(", ") }
}

fn node_json(engine: &Engine, id: NodeId, info: &NodeInfo, edges: &Edges) -> Value {
    let reasons = info.spec.reasons.iter().enumerate().map(|(number, reason)| {
        json!({
            "reason": reason.name,
            "text": reason.text,
            "severity": severity_text(reason.severity),
            "count": engine.reason_count(id, number as u16),
        })
    });
    json!({
        "name": info.spec.name,
        "id": id,
        "kind": kind_text(info.spec.kind),
        "help": info.spec.help,
        "next": next_of(engine, edges, id),
        "previous": previous_of(engine, edges, id),
        "reasons": reasons.collect::<Vec<_>>(),
    })
}

/// `show graph` as far as it is made.
struct Drawn {
    list: Vec<Value>,
    table: Table,
    /// Nodes and edges in the language of Graphviz.
    dot: [String; 2],
}

fn show_graph(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let (edges, is_dot) = (Edges::of(engine), args.has("dot"));
    let add = move |engine: &Engine, drawn: &mut Drawn, id| {
        let Some(info) = engine.node_info(id) else { return };
        let next = next_of(engine, &edges, id);
        drawn.table.row().cell(&info.spec.name).cell(next.join(", "));
        draw(info, &next, &mut drawn.dot);
        drawn.list.push(
            json!({ "name": info.spec.name, "kind": kind_text(info.spec.kind), "next": next }),
        );
    };
    let end = move |_: &Engine, Drawn { list, table, dot: [nodes, edges] }: Drawn| {
        let text = match is_dot {
            true => format!(
                "digraph quiver \
                 {{\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n\
                 {nodes}{edges}}}\n"
            ),
            false => Output::from(table).to_text(),
        };
        Output::none().items("nodes", text, list)
    };
    let table = Table::new(["Node", "Next"].map(Column::left));
    let drawn = Drawn { list: Vec::new(), table, dot: Default::default() };
    Ok(in_slices(engine, nodes_by_name(engine), drawn, add, end))
}

fn draw(info: &NodeInfo, next: &[String], [nodes, edges]: &mut [String; 2]) {
    let style = match info.spec.kind {
        NodeKind::Input => " [style=filled, fillcolor=\"#d8ecd8\"]",
        NodeKind::Sink => " [style=filled, fillcolor=\"#f0dcd0\"]",
        NodeKind::Internal => "",
    };
    let from = dot_name(&info.spec.name);
    let _ = writeln!(nodes, "  {from}{style};");
    for to in next {
        let _ = writeln!(edges, "  {from} -> {};", dot_name(to));
    }
}

/// A name as Graphviz reads it, whatever an interface is called.
fn dot_name(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

fn show_features(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let mut table = Table::new(["Feature", "What it does"].map(Column::left));
    let mut built_in = Vec::new();
    for feature in engine.get::<BuiltIn>().iter().flat_map(|b| &b.0) {
        table.row().cell(feature.name).cell(feature.help);
        built_in.push(json!({ "name": feature.name, "help": feature.help }));
    }
    let mut text = Output::from(table).to_text();
    text += "\nArcs, with their features in the order of packets, and their phases:\n";
    let mut arcs = Vec::new();
    for arc in engine.arcs() {
        let (mut listed, mut features) = (Vec::new(), Vec::new());
        for (feature, phase) in arc.features.iter().zip(&arc.phases) {
            listed.push(format!("{feature} ({})", phase.name()));
            features.push(json!({ "node": feature, "phase": phase.name() }));
        }
        let listed = if listed.is_empty() { "none".into() } else { listed.join(", ") };
        let _ = writeln!(text, "  {}: {listed}", arc.name);
        arcs.push(json!({ "name": arc.name, "features": features }));
    }
    text += "\nPairs, nodes that run as one loop:\n";
    let pairs: Vec<[&str; 2]> = engine.pairs().collect();
    for nodes in &pairs {
        let _ = writeln!(text, "  {}", nodes.join(" → "));
    }
    if pairs.is_empty() {
        text += "  none\n";
    }
    Ok(Output::both(text, json!({ "features": built_in, "arcs": arcs, "pairs": pairs })))
}
