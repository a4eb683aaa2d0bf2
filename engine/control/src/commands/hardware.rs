//! Hardware interfaces: what the devices say of themselves.

use std::fmt::Write as _;

use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use serde_json::{Map, Value, json};

use super::columns::centre;
use super::{ids, mac_text, thread_name};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::listing::in_pages;
use crate::registry::Registry;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show hardware-interfaces [<interface>] [verbose]")
            .group("Interfaces")
            .help("Show devices: link, address and what the driver knows")
            .word("verbose", "also the receive queues, and the counters that are zero")
            .example("show hardware-interfaces e0 verbose")
            .run_or_begin(show),
    );
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let text = format!("{}{}{}Hardware\n", centre("Name", 32), centre("Idx", 5), centre("Link", 7));
    let is_verbose = args.has("verbose");
    let add = move |engine: &Engine, text: &mut String, list: &mut Vec<Value>, id| {
        let Some(interface) = engine.interface(id) else { return };
        let link = if interface.link_up { "up" } else { "down" };
        let (name, kind) = (&interface.name, interface.device.kind());
        let index = centre(&interface.id.0.to_string(), 5);
        let _ = writeln!(text, "{name:<32}{index}{}{kind}", centre(link, 7));
        if interface.row().mac != [0; 6] {
            let _ = writeln!(text, "  Ethernet address {}", mac_text(interface.row().mac));
        }
        let facts = interface.device.facts();
        for (fact, value) in &facts {
            let _ = writeln!(text, "  {fact}: {}", plain(value));
        }
        if interface.takes_offloads {
            text.push_str("  takes super-frames and open checksums\n");
        }
        if is_verbose {
            write_queues(engine, interface, text);
        }
        let facts: Map<String, Value> =
            facts.into_iter().map(|(fact, value)| (key(&fact), value)).collect();
        list.push(json!({
            "name": name,
            "index": interface.id,
            "link": link,
            "hardware": kind,
            "mac": mac_text(interface.row().mac),
            "rx_queues": interface.rx.len(),
            "takes_offloads": interface.takes_offloads,
            "facts": facts,
        }));
    };
    Ok(in_pages(engine, "interfaces", text, ids(engine, only), add))
}

fn write_queues(engine: &Engine, interface: &Interface, text: &mut String) {
    for placement in &interface.rx {
        let (queue, mode, thread) =
            (placement.queue, placement.mode, thread_name(placement.worker));
        let node = engine.node_name(placement.input_node);
        let _ = writeln!(text, "  rx queue {queue}: {mode}, served by {thread} in {node}");
    }
    for (name, count) in engine.interface_totals(interface.id).fields() {
        let _ = writeln!(text, "  {name:<16}{count:>16}");
    }
}

/// A fact as an operator reads it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => (if *yes { "yes" } else { "no" }).to_owned(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// `Link speed` is `link_speed` in JSON.
fn key(fact: &str) -> String {
    let words: Vec<String> = fact
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("_")
}
