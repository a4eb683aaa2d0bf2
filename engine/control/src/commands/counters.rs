//! The page of the reference that lists every counter, written from the nodes' declarations.

use std::fmt::Write;

use quiver_core::Engine;
use quiver_core::control::statistics::InterfaceTotals;
use quiver_core::graph::node::Severity;

/// All counters of a router with these features, as Markdown.
pub fn counters_reference(engine: &Engine) -> String {
    let mut page = String::from(
        "# Counters\n\nWritten from the declarations by `make reference`; do not edit.\n\n\
         ## Interfaces\n\n`show interface`, all workers together:\n\n",
    );
    for (name, _) in InterfaceTotals::default().fields() {
        let _ = writeln!(page, "- {name}");
    }
    page.push_str(
        "\n## Nodes\n\n`show errors`; a reason is why a packet was dropped, an event is only \
         counted.\n\n",
    );
    page.push_str("| node | reason | kind | meaning |\n| --- | --- | --- | --- |\n");
    let mut rows: Vec<_> = engine.all_nodes().map(|(_, info)| &info.spec).collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    for spec in rows {
        for reason in spec.reasons {
            let kind = if reason.severity == Severity::Info { "event" } else { "drop" };
            let _ =
                writeln!(page, "| {} | {} | {kind} | {} |", spec.name, reason.name, reason.text);
        }
    }
    page
}
