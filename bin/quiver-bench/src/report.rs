//! The table on the terminal, and results.json.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::measure::Measured;

/// One line of the table, with its head before the first.
pub fn line(measured: &Measured, first: bool) {
    if first {
        println!(
            "clocks per packet (time stamp counter at {:.0} MHz)",
            quiver_core::cpu::clocks_per_second() / 1e6
        );
        println!(
            "{:22} {:>7} {:>15} {:>7} {:>6}  nodes",
            "path", "graph", "[min .. max]", "bare", "ratio"
        );
    }
    let nodes: Vec<String> =
        measured.nodes.iter().map(|(name, clocks)| format!("{name} {clocks:.1}")).collect();
    println!(
        "{:22} {:7.1} [{:5.1} .. {:5.1}] {:7.1} {:6.2}  {}",
        measured.name,
        measured.clocks,
        measured.range.0,
        measured.range.1,
        measured.bare,
        measured.clocks / measured.bare,
        nodes.join(", ")
    );
}

/// Write `{"paths": {NAME: {"clocks": …, "bare": …, …}}}` and the conditions.
pub fn write(file: &Path, results: &[Measured]) -> Result<()> {
    let paths: Map<String, Value> = results
        .iter()
        .map(|m| {
            let nodes: Map<String, Value> =
                m.nodes.iter().map(|(n, c)| (n.clone(), json!(c))).collect();
            let value = json!({
                "clocks": m.clocks,
                "bare": m.bare,
                "min": m.range.0,
                "max": m.range.1,
                "nodes": nodes,
            });
            (m.name.clone(), value)
        })
        .collect();
    let results = json!({
        "paths": paths,
        "conditions": {
            "tsc_hz": quiver_core::cpu::clocks_per_second(),
            "cpu": cpu_model(),
            "load_average": std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim(),
        },
    });
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let text = serde_json::to_string_pretty(&results)?;
    std::fs::write(file, text + "\n").with_context(|| file.display().to_string())?;
    println!("results are in {}", file.display());
    Ok(())
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with("model name"));
    line.and_then(|l| l.split_once(':'))
        .map_or_else(String::new, |(_, model)| model.trim().to_owned())
}
