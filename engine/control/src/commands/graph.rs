//! The graph as it stands: nodes, their edges, arcs and features.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use quiver_core::arc::{ArcId, DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::engine::NodeInfo;
use quiver_core::node::{DROP, NodeKind};
use quiver_core::{Engine, NodeId, WorkerId};
use serde_json::{Value, json};

use super::all_workers;
use super::errors::severity_text;
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::{Column, Output, Table};
use crate::registry::{BuiltIn, Registry};

const GROUP: &str = "Seeing inside";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show node [<node>]")
            .group(GROUP)
            .help("Show the nodes of the graph, or one with its edges, reasons and work")
            .example("show node error-drop")
            .run(show_node),
    );
    registry.command(
        Command::new("show graph [dot]")
            .group(GROUP)
            .help("Show where each node can send packets")
            .word("dot", "in the language of Graphviz: quiverctl show graph dot | dot -Tsvg")
            .run(show_graph),
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

/// All edges, with those that arcs and interfaces add to what nodes declare.
fn edges(engine: &Engine) -> BTreeSet<(NodeId, NodeId)> {
    let mut edges = BTreeSet::new();
    for (id, node) in engine.all_nodes() {
        edges.extend(node.edges.iter().map(|next| (id, *next)));
        // Whoever has a reason to drop has the edge.
        if id != DROP && node.spec.reasons.iter().any(|r| r.severity == quiver_core::node::Severity::Error) {
            edges.insert((id, DROP));
        }
    }
    for interface in engine.all_interfaces() {
        let row = interface.row();
        let mut inputs: BTreeSet<NodeId> = interface.rx.iter().map(|p| p.input_node).collect();
        let chain: Vec<NodeId> = features(engine, interface.id, DEVICE_INPUT);
        add_path(&mut edges, &mut inputs, &chain, row.input);
        let chain: Vec<NodeId> = features(engine, interface.id, INTERFACE_OUTPUT);
        add_path(&mut edges, &mut BTreeSet::from([row.output]), &chain, row.tx);
    }
    edges
}

fn features(engine: &Engine, id: quiver_core::InterfaceId, arc: ArcId) -> Vec<NodeId> {
    engine.features_of(id, arc).iter().filter_map(|name| engine.node_id(name)).collect()
}

fn add_path(
    edges: &mut BTreeSet<(NodeId, NodeId)>,
    from: &mut BTreeSet<NodeId>,
    chain: &[NodeId],
    last: NodeId,
) {
    for &next in chain.iter().chain([&last]) {
        edges.extend(from.iter().map(|from| (*from, next)));
        *from = BTreeSet::from([next]);
    }
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

fn next_of(engine: &Engine, edges: &BTreeSet<(NodeId, NodeId)>, id: NodeId) -> Vec<String> {
    names(engine, edges.iter().filter(|(from, _)| *from == id).map(|(_, to)| to))
}

fn previous_of(engine: &Engine, edges: &BTreeSet<(NodeId, NodeId)>, id: NodeId) -> Vec<String> {
    names(engine, edges.iter().filter(|(_, to)| *to == id).map(|(from, _)| from))
}

fn show_node(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let edges = edges(engine);
    if args.has("node") {
        let id = args.node(engine, "node")?;
        let Some(info) = engine.node_info(id) else { return Err(args.refuse("node", "the node is gone")) };
        return Ok(one_node(engine, id, info, &edges));
    }
    let mut table = Table::new(["Name", "Kind", "Help"].map(Column::left));
    let mut list = Vec::new();
    let mut nodes: Vec<_> = engine.all_nodes().collect();
    nodes.sort_by(|a, b| a.1.spec.name.cmp(&b.1.spec.name));
    for (id, info) in nodes {
        table.row().cell(&info.spec.name).cell(kind_text(info.spec.kind)).cell(info.spec.help);
        list.push(node_json(engine, id, info, &edges));
    }
    Ok(Output::both(Output::from(table).to_text(), json!({ "nodes": list })))
}

fn one_node(engine: &Engine, id: NodeId, info: &NodeInfo, edges: &BTreeSet<(NodeId, NodeId)>) -> Output {
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

fn node_json(engine: &Engine, id: NodeId, info: &NodeInfo, edges: &BTreeSet<(NodeId, NodeId)>) -> Value {
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

fn show_graph(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let edges = edges(engine);
    let mut nodes: Vec<(NodeId, &NodeInfo)> = engine.all_nodes().collect();
    nodes.sort_by(|a, b| a.1.spec.name.cmp(&b.1.spec.name));
    let list: Vec<Value> = nodes
        .iter()
        .map(|(id, info)| {
            json!({ "name": info.spec.name, "kind": kind_text(info.spec.kind), "next": next_of(engine, &edges, *id) })
        })
        .collect();
    let text = if args.has("dot") { dot(engine, &nodes, &edges) } else { plain(engine, &nodes, &edges) };
    Ok(Output::both(text, json!({ "nodes": list })))
}

fn plain(engine: &Engine, nodes: &[(NodeId, &NodeInfo)], edges: &BTreeSet<(NodeId, NodeId)>) -> String {
    let mut table = Table::new(["Node", "Next"].map(Column::left));
    for (id, info) in nodes {
        table.row().cell(&info.spec.name).cell(next_of(engine, edges, *id).join(", "));
    }
    Output::from(table).to_text()
}

fn dot(engine: &Engine, nodes: &[(NodeId, &NodeInfo)], edges: &BTreeSet<(NodeId, NodeId)>) -> String {
    let mut text =
        "digraph quiver {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n".to_owned();
    for (_, info) in nodes {
        let style = match info.spec.kind {
            NodeKind::Input => " [style=filled, fillcolor=\"#d8ecd8\"]",
            NodeKind::Sink => " [style=filled, fillcolor=\"#f0dcd0\"]",
            NodeKind::Internal => "",
        };
        let _ = writeln!(text, "  {}{style};", dot_name(&info.spec.name));
    }
    for (from, to) in edges {
        let (from, to) = (engine.node_name(*from), engine.node_name(*to));
        let _ = writeln!(text, "  {} -> {};", dot_name(&from), dot_name(&to));
    }
    text + "}\n"
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
    text += "\nArcs, with their features in the order of packets:\n";
    let mut arcs = Vec::new();
    for arc in engine.arcs() {
        let features: Vec<String> = arc.features.iter().map(|f| (*f).to_owned()).collect();
        let _ = writeln!(
            text,
            "  {}: {}",
            arc.name,
            if features.is_empty() { "none".into() } else { features.join(", ") }
        );
        arcs.push(json!({ "name": arc.name, "features": features }));
    }
    text += "\nSuperblocks, nodes in one pass over the vector where no feature stands between:\n";
    let superblocks: Vec<&[&str]> = engine.superblocks().collect();
    for nodes in &superblocks {
        let _ = writeln!(text, "  {}", nodes.join(" → "));
    }
    if superblocks.is_empty() {
        text += "  none\n";
    }
    Ok(Output::both(text, json!({ "features": built_in, "arcs": arcs, "superblocks": superblocks })))
}
