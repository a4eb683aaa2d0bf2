//! Receive queues: who serves them, and how.

use std::fmt::Write as _;

use quiver_core::device::RxMode;
use quiver_core::interfaces::{Interface, RxWish};
use quiver_core::{Engine, WorkerId};

use super::{all_workers, refuse_interface, thread_name, thread_number};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::{Cell, Column, Output, Table};
use crate::registry::Registry;
use crate::running::{ConfigWriter, by_interface, order};

const GROUP: &str = "Interfaces";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface rx-mode <interface> [queue <:u16>] <mode:polling|interrupt|adaptive>")
            .group(GROUP)
            .help("Say how the receive queues of an interface are served")
            .details(
                "Polling looks in every pass and never sleeps. Interrupt sleeps until the device wakes it. \
             Adaptive polls while packets come, and sleeps when they do not. Without a queue it holds \
             for all, and for those that come later.",
            )
            .example("set interface rx-mode e0 queue 0 adaptive")
            .run(set_mode),
    );
    registry.command(
        Command::new("set interface rx-placement <interface> [queue <:u16>] worker <:u16>")
            .group(GROUP)
            .help("Say which worker serves a receive queue of an interface (queue 0 unless given)")
            .word("worker", "the worker, counted from 0")
            .example("set interface rx-placement e0 queue 1 worker 0")
            .run(set_placement),
    );
    registry.command(
        Command::new("show interface rx-placement")
            .group(GROUP)
            .help("Show which worker serves which receive queue, and how")
            .run(show_placement),
    );
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, by_interface(write_config));
}

fn set_mode(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let mode = match args.get("mode")? {
        "polling" => RxMode::Polling,
        "interrupt" => RxMode::Interrupt,
        _ => RxMode::Adaptive,
    };
    wish(engine, args, RxWish { queue: args.optional("queue")?, worker: None, mode: Some(mode) })
}

fn set_placement(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let worker = WorkerId(args.get("worker")?);
    if worker.index() >= engine.worker_count() {
        let last = engine.worker_count() - 1;
        let refusal = args.refuse("worker", format!("there is no worker {}", worker.0));
        return Err(refusal.remedy(format!("workers are counted from 0 to {last}")));
    }
    wish(engine, args, RxWish { queue: Some(args.or("queue", 0)?), worker: Some(worker), mode: None })
}

fn wish(engine: &mut Engine, args: &Args<'_>, wish: RxWish) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    engine.wish_rx(id, wish).map_err(|error| refuse_interface(engine, args, id, error))?;
    Ok(Output::none())
}

fn write_config(_: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    for wish in &interface.rx_wishes {
        let queue = wish.queue.map_or_else(String::new, |queue| format!(" queue {queue}"));
        let name = &interface.name;
        if let Some(mode) = wish.mode {
            config.command(format_args!("set interface rx-mode {name}{queue} {mode}"));
        }
        if let Some(worker) = wish.worker {
            config.command(format_args!("set interface rx-placement {name}{queue} worker {}", worker.0));
        }
    }
}

fn show_placement(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let columns = ["worker", "node", "interface", "queue", "mode"].map(Column::left);
    let mut table = Table::new(columns);
    let mut text = String::new();
    for worker in all_workers(engine) {
        let mut placed: Vec<_> = engine
            .all_interfaces()
            .flat_map(|i| i.rx.iter().map(|p| (engine.node_name(p.input_node), &i.name, p)))
            .filter(|(_, _, placement)| placement.worker == worker)
            .collect();
        placed.sort_by(|a, b| (&a.0, a.1, a.2.queue).cmp(&(&b.0, b.1, b.2.queue)));
        if !placed.is_empty() {
            let _ = writeln!(text, "Thread {} ({}):", thread_number(worker), thread_name(worker));
        }
        let mut last_node = "";
        for (node, interface, placement) in &placed {
            if node != last_node {
                let _ = writeln!(text, "  node {node}:");
                last_node = node;
            }
            let _ = writeln!(text, "    {interface} queue {} ({})", placement.queue, placement.mode);
            let row = table.row().cell(worker.0).cell(node).cell(*interface);
            row.cell(placement.queue).cell(Cell::display(placement.mode));
        }
    }
    Ok(Output::both(text, serde_json::json!({ "queues": Output::from(table).to_json() })))
}
