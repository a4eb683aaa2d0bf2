//! What LISP knows, for operators.

use quiver_control::{Cell, Column, Output, Refusal, Registry, Table};
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use serde_json::{Value, json};

use crate::commands::command;
use crate::config::State;
use crate::control::Control;
use crate::database::Locator;

type Show = fn(&Engine) -> Table;

/// What follows `show lisp`, the name of the list in JSON, the help, and what makes the table.
const SHOWS: [(&str, &str, &str, Show); 6] = [
    ("eid-table", "eids", "Show the EIDs of this site and of others, and their locators", eids),
    ("eid-table map", "instances", "Show the tables of instances", instances),
    ("locator-set", "locator_sets", "Show the locators of this site", locator_sets),
    ("map-resolver", "map_resolvers", "Show who is asked for mappings", resolvers),
    ("adjacencies", "adjacencies", "Show the pairs of EIDs that are named", adjacencies),
    (
        "statistics",
        "statistics",
        "Show what was sent and received of the control plane",
        statistics,
    ),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        command("show lisp status")
            .help("Show whether LISP is enabled, and by which locators it sends")
            .run(|engine: &mut Engine, _| status(engine)),
    );
    for (words, list, help, show) in SHOWS {
        registry.command(
            command(&format!("show lisp {words}"))
                .help(help)
                .run(move |engine: &mut Engine, _| Ok(Output::none().table(list, show(engine)))),
        );
    }
}

fn status(engine: &Engine) -> Result<Output, Refusal> {
    let Some(state) = engine.get::<State>() else { return Ok(Output::none()) };
    let word = |is_set: bool| if is_set { "enabled" } else { "disabled" };
    let [ip4, ip6] = state.sources().map(|source| source.map(|source| source.to_string()));
    let database = &state.database;
    Ok(Output::none()
        .field("LISP", word(database.is_enabled))
        .field("Header", if database.is_plain { "plain" } else { "gpe" })
        .field("IPv4 locator", ip4)
        .field("IPv6 locator", ip6)
        .field("Proxy ITR", database.pitr.clone())
        .field("Local EIDs", database.local.len())
        .field("Configured mappings", database.remote.len())
        .field("Learned mappings", database.learned.len()))
}

fn eids(engine: &Engine) -> Table {
    let mut table = Table::new([
        Column::right("VNI"),
        Column::left("EID"),
        Column::left("Type"),
        Column::left("Locator set"),
        Column::left("Locators"),
        Column::left("Action"),
        Column::left("Route"),
        Column::right("Expires").key("expires_s"),
    ]);
    let Some(state) = engine.get::<State>() else { return table };
    let database = &state.database;
    for (eid, set) in &database.local {
        let row = table.row().cell(eid.vni).cell(eid.prefix.to_string()).cell("local");
        let row = row.cell(Some(set.as_str())).cell(Cell::new("", Vec::<Value>::new()));
        row.cell(None::<&str>).cell(None::<bool>).cell(None::<u64>);
    }
    for eid in database.mapped() {
        let Some(mapping) = database.mapping(&eid) else { continue };
        let locators = mapping.locators.iter();
        let (words, members): (Vec<String>, Vec<Value>) = locators
            .map(|Locator { address, priority, weight }| {
                let member = json!({"address": address, "priority": priority, "weight": weight});
                (format!("{address} {priority}/{weight}"), member)
            })
            .unzip();
        let kind = if mapping.expires_ns.is_some() { "learned" } else { "configured" };
        let action = mapping.locators.is_empty().then(|| mapping.action.word());
        let left = mapping.expires_ns.map(|at| at.saturating_sub(engine.now_ns()) / 1_000_000_000);
        let row = table.row().cell(eid.vni).cell(eid.prefix.to_string()).cell(kind);
        let row = row.cell(None::<&str>).cell(Cell::new(words.join(", "), members));
        row.cell(action).cell(state.is_installed(&eid)).cell(left);
    }
    table
}

fn instances(engine: &Engine) -> Table {
    let mut table =
        Table::new([Column::right("VNI"), Column::right("VRF"), Column::left("Interface")]);
    let Some(state) = engine.get::<State>() else { return table };
    for (vni, id) in state.instances() {
        let row = table.row().cell(vni).cell(state.database.vrf(vni));
        row.cell(engine.interface_name(id));
    }
    table
}

fn locator_sets(engine: &Engine) -> Table {
    let mut table = Table::new([
        Column::left("Locator set"),
        Column::left("Interface"),
        Column::right("Priority"),
        Column::right("Weight"),
    ]);
    let Some(state) = engine.get::<State>() else { return table };
    for (name, set) in &state.database.locator_sets {
        if set.is_empty() {
            let row = table.row().cell(name.as_str());
            row.cell(None::<&str>).cell(None::<u8>).cell(None::<u8>);
        }
        for (id, locator) in set {
            let row = table.row().cell(name.as_str()).cell(engine.interface_name(*id));
            row.cell(locator.priority).cell(locator.weight);
        }
    }
    table
}

fn resolvers(engine: &Engine) -> Table {
    let mut table = Table::new([Column::left("Address"), Column::left("Usable")]);
    let Some(state) = engine.get::<State>() else { return table };
    for address in &state.database.resolvers {
        let is_usable = state.sources()[Family::of(*address) as usize].is_some();
        table.row().cell(address.to_string()).cell(is_usable);
    }
    table
}

fn adjacencies(engine: &Engine) -> Table {
    let columns = [Column::right("VNI"), Column::left("Remote EID"), Column::left("Local EID")];
    let mut table = Table::new(columns);
    let Some(state) = engine.get::<State>() else { return table };
    for (vni, remote, local) in &state.database.adjacencies {
        table.row().cell(*vni).cell(remote.to_string()).cell(local.to_string());
    }
    table
}

fn statistics(engine: &Engine) -> Table {
    let mut table = Table::new([Column::left("Message"), Column::right("Count")]);
    let Some(control) = engine.get::<Control>() else { return table };
    let counts = control.counts;
    for (message, count) in [
        ("map-requests sent", counts.requests_sent),
        ("map-replies received", counts.replies_received),
        ("map-replies refused", counts.replies_refused),
        ("map-requests received", counts.requests_received),
        ("map-replies sent", counts.replies_sent),
        ("malformed", counts.malformed),
    ] {
        table.row().cell(message).cell(count);
    }
    table
}
