//! `show errors`: why packets died, and what nodes counted.

use quiver_core::Engine;
use quiver_core::node::Severity;
use quiver_core::statistics::ReasonCount;
use serde_json::{Value, json};

use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::{Column, Output, Table};
use crate::registry::Registry;

const GROUP: &str = "Seeing inside";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show errors [verbose]")
            .also("show node counters [verbose]")
            .group(GROUP)
            .help("Show why packets died, and what nodes counted")
            .word("verbose", "also the short names, and what never happened")
            .run(show),
    );
    registry.command(
        Command::new("clear errors")
            .also("clear node counters")
            .group(GROUP)
            .help("Count why packets die from here")
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

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let verbose = args.has("verbose");
    let lines = engine.reason_counts(verbose);
    let mut columns = vec![Column::right("Count"), Column::left("Node")];
    if verbose {
        columns.push(Column::left("Name"));
    }
    columns.extend([Column::left("Reason"), Column::left("Severity")]);
    let mut table = Table::new(columns);
    for line in &lines {
        let mut row = table.row().cell(line.count).cell(&line.node);
        if verbose {
            row = row.cell(line.reason);
        }
        row.cell(line.text).cell(severity_text(line.severity));
    }
    let errors: Vec<Value> = lines.iter().map(reason_json).collect();
    Ok(Output::both(Output::from(table).to_text(), json!({ "errors": errors })))
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
