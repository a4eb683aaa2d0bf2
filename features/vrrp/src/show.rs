//! `show vrrp`.

use std::net::IpAddr;

use quiver_control::{Cell, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::worker::Worker;
use quiver_core::{Engine, WorkerId};
use quiver_wire::vrrp::virtual_mac;
use serde_json::json;

use crate::commands::GROUP;
use crate::config::{Entry, Vrrp};
use crate::input::{NODE, VrrpInput};
use crate::machine::Machine;
use crate::routers::Counts;
use crate::shared::VrKey;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show vrrp vr [<interface>]")
            .group(GROUP)
            .help("Show virtual routers, of one interface or of all")
            .example("show vrrp vr e0")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                let live = live(engine)?;
                let vrrp =
                    engine.get::<Vrrp>().ok_or_else(|| Refusal::new("VRRP is being changed"))?;
                let mut table = table();
                for (key, entry) in &vrrp.routers {
                    if only.is_none_or(|id| id == key.interface)
                        && let Some(live) = live.iter().find(|l| l.slot == entry.place.slot)
                    {
                        write(engine, &mut table, *key, entry, live);
                    }
                }
                Ok(Output::none().table("virtual_routers", table))
            }),
    );
}

/// What a worker knows of a virtual router.
struct Live {
    slot: u16,
    machine: Machine,
    heard: Option<(IpAddr, u8)>,
    counts: Counts,
}

fn live(engine: &mut Engine) -> Result<Vec<Live>, Refusal> {
    let Some(node) = engine.node_id(NODE) else { return Ok(Vec::new()) };
    let count = engine.get::<Vrrp>().map_or(0, |vrrp| vrrp.routers.len());
    let mut all = Vec::new();
    for worker in 0..engine.worker_count() {
        let mut room = Vec::with_capacity(count);
        let filled = engine.call(WorkerId(worker as u16), move |worker: &mut Worker| {
            worker.visit(node, |input: &mut VrrpInput, _| {
                let routers = input.store.iter().flat_map(|store| store.iter());
                let copies = routers.map(|(slot, router)| Live {
                    slot,
                    machine: router.machine.clone(),
                    heard: router.heard,
                    counts: router.counts,
                });
                room.extend(copies.take(count));
            });
            std::mem::take(&mut room)
        });
        all.extend(filled.map_err(|stalled| Refusal::new(stalled.to_string()))?);
    }
    Ok(all)
}

fn table() -> Table {
    Table::new([
        Column::left("Interface"),
        Column::right("VR ID"),
        Column::left("Family"),
        Column::left("State"),
        Column::right("Priority"),
        Column::right("Configured").key("configured_priority"),
        Column::right("Interval").key("interval_cs"),
        Column::right("Master's").key("master_interval_cs"),
        Column::left("Preempt"),
        Column::left("Accept").key("accept_mode"),
        Column::left("Unicast"),
        Column::left("Started"),
        Column::left("Virtual MAC"),
        Column::left("Addresses"),
        Column::left("Heard").key("heard_from"),
        Column::right("With").key("heard_priority"),
        Column::right("Received"),
        Column::right("Sent"),
        Column::right("Other addresses"),
        Column::right("Became master"),
        Column::right("Since s").key("since_s"),
    ])
    .when_empty("no virtual routers")
}

fn write(engine: &Engine, table: &mut Table, key: VrKey, entry: &Entry, live: &Live) {
    let settings = live.machine.settings();
    let since_s = engine.now_ns().saturating_sub(live.counts.changed_ns) as f64 / 1e9;
    let addresses: Vec<String> = entry.new.addresses.iter().map(IpAddr::to_string).collect();
    let addresses = Cell::new(addresses.join(" "), json!(addresses));
    table
        .row()
        .cell(engine.interface_name(key.interface))
        .cell(key.vr_id)
        .cell(if key.is_ip6 { "ip6" } else { "ip4" })
        .cell(live.machine.state().name())
        .cell(live.machine.priority())
        .cell(settings.priority)
        .cell(settings.interval_cs)
        .cell(live.machine.active_interval_cs())
        .cell(settings.preempts)
        .cell(entry.new.accepts)
        .cell(entry.new.is_unicast)
        .cell(entry.is_started)
        .cell(virtual_mac(key.vr_id, key.is_ip6).to_string())
        .cell(addresses)
        .cell(live.heard.map(|(from, _)| from.to_string()))
        .cell(live.heard.map(|(_, priority)| priority))
        .cell(live.counts.received)
        .cell(live.counts.sent)
        .cell(live.counts.other_addresses)
        .cell(live.counts.became_active)
        .cell(Cell::real(since_s, 1));
}
