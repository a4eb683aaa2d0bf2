//! `show errors`: why packets were dropped, and what nodes counted.

use quiver_core::control::statistics::ReasonCount;
use quiver_core::graph::node::Severity;
use quiver_core::{Engine, NodeId};
use serde_json::{Value, json};

use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::listing::in_slices;
use crate::output::{Column, Output, Table};
use crate::registry::Registry;

const GROUP: &str = "Seeing inside";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show errors [verbose]")
            .also("show node counters [verbose]")
            .group(GROUP)
            .help("Show why packets were dropped, and what nodes counted")
            .word("verbose", "also the short names, and what never happened")
            .run_or_begin(show),
    );
    registry.command(
        Command::new("clear errors")
            .also("clear node counters")
            .group(GROUP)
            .help("Count why packets are dropped from here")
            .run(|engine: &mut Engine, _| {
                engine.clear_reasons();
                Ok(Output::none())
            }),
    );
}

pub(super) fn severity_text(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Error => "error",
    }
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let verbose = args.has("verbose");
    let mut columns = vec![Column::right("Count"), Column::left("Node")];
    if verbose {
        columns.push(Column::left("Name"));
    }
    columns.extend([Column::left("Reason"), Column::left("Severity")]);
    let nodes: Vec<NodeId> = engine.all_nodes().map(|(id, _)| id).collect();
    let add = move |engine: &Engine, (table, errors): &mut (Table, Vec<Value>), id| {
        for line in counts_of(engine, id).filter(|line| line.count > 0 || verbose) {
            let mut row = table.row().cell(line.count).cell(&line.node);
            if verbose {
                row = row.cell(line.reason);
            }
            row.cell(line.text).cell(severity_text(line.severity));
            errors.push(reason_json(&line));
        }
    };
    let end = |_: &Engine, (table, errors): (Table, Vec<Value>)| {
        Output::none().items("errors", Output::from(table).to_text(), errors)
    };
    Ok(in_slices(engine, nodes, (Table::new(columns), Vec::new()), add, end))
}

/// What a node counted, reason by reason.
fn counts_of(engine: &Engine, id: NodeId) -> impl Iterator<Item = ReasonCount> {
    engine.node_info(id).into_iter().flat_map(move |info| {
        info.spec.reasons.iter().enumerate().map(move |(number, text)| ReasonCount {
            count: engine.reason_count(id, number as u16),
            node: info.spec.name.clone(),
            reason: text.name,
            text: text.text,
            severity: text.severity,
        })
    })
}

fn reason_json(line: &ReasonCount) -> Value {
    json!({
        "count": line.count,
        "node": line.node,
        "reason": line.reason,
        "text": line.text,
        "severity": severity_text(line.severity),
    })
}
