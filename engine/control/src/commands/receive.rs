//! Receive queues: who serves them, and how.

use std::collections::HashMap;
use std::fmt::Write as _;

use quiver_core::control::interfaces::{Interface, RxPlacement, RxWish};
use quiver_core::worker::device::RxMode;
use quiver_core::{Engine, InterfaceId, NodeId, WorkerId};
use serde_json::{Value, json};

use super::{refuse_interface, thread_name, thread_number};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::listing::in_pages;
use crate::output::Output;
use crate::registry::Registry;
use crate::running::{ConfigWriter, by_interface, order};

const GROUP: &str = "Interfaces";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set interface rx-mode <interface> [queue <:u16>] \
             <mode:polling|interrupt|adaptive|default>",
        )
        .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.rx-mode: <mode>")
        .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.queues.<queue>.rx-mode: <mode>")
        .undo("set interface rx-mode <interface> [queue <queue>] default")
        .makes("rx-mode of <interface>")
        .stands_on("rx-mode of <interface>")
        .replaces(&["interface", "queue"])
        .group(GROUP)
        .help("Say how the receive queues of an interface are served")
        .details(
            "Polling looks in every pass and never sleeps. Interrupt sleeps until the device wakes \
             it. Adaptive polls while packets come, and sleeps when they do not. Without a queue \
             it holds for all, and for those that come later.",
        )
        .example("set interface rx-mode e0 queue 0 adaptive")
        .run(set_mode),
    );
    registry.command(
        Command::new("set interface rx-placement <interface> [queue <:u16>] worker <:u16|default>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.rx-worker: <worker>")
            .entry(
                order::INTERFACE_SETTINGS,
                "interfaces.<interface>.queues.<queue>.rx-worker: <worker>",
            )
            .undo("set interface rx-placement <interface> [queue <queue>] worker default")
            .replaces(&["interface", "queue"])
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
            .run_or_begin(|engine: &mut Engine, _| Ok(show_placement(engine))),
    );
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, by_interface(write_config));
}

fn set_mode(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let mode = match args.get("mode")? {
        "default" => return forget(engine, args, args.optional("queue")?, (false, true)),
        "polling" => RxMode::Polling,
        "interrupt" => RxMode::Interrupt,
        _ => RxMode::Adaptive,
    };
    wish(engine, args, RxWish { queue: args.optional("queue")?, worker: None, mode: Some(mode) })
}

fn set_placement(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    if matches!(args.get("worker")?, crate::value::Value::Word(_)) {
        return forget(engine, args, Some(args.or("queue", 0)?), (true, false));
    }
    let worker = WorkerId(args.get("worker")?);
    if worker.index() >= engine.worker_count() {
        let last = engine.worker_count() - 1;
        let refusal = args.refuse("worker", format!("there is no worker {}", worker.0));
        return Err(refusal.remedy(format!("workers are counted from 0 to {last}")));
    }
    wish(
        engine,
        args,
        RxWish { queue: Some(args.or("queue", 0)?), worker: Some(worker), mode: None },
    )
}

/// Forget the worker, or the mode, that was said of a queue.
fn forget(
    engine: &mut Engine,
    args: &Args<'_>,
    queue: Option<u16>,
    (worker, mode): (bool, bool),
) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let forgotten = engine.forget_rx_wish(id, queue, worker, mode);
    forgotten.map_err(|error| refuse_interface(engine, args, id, error))?;
    Ok(Output::none())
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
            config.command(format_args!(
                "set interface rx-placement {name}{queue} worker {}",
                worker.0
            ));
        }
    }
}

/// A receive queue, in the order in which they are shown.
struct Placed {
    worker: WorkerId,
    interface: InterfaceId,
    queue: u16,
}

/// All receive queues by worker, input node, interface and number.
fn placed_queues(engine: &Engine) -> Vec<Placed> {
    let mut names: HashMap<NodeId, String> = HashMap::new();
    let mut found = Vec::new();
    for interface in engine.all_interfaces() {
        for placement in &interface.rx {
            let node = placement.input_node;
            names.entry(node).or_insert_with(|| engine.node_name(node));
            found.push((placement.worker, node, &interface.name, placement.queue, interface.id));
        }
    }
    found.sort_by(|a, b| (a.0, &names[&a.1], a.2, a.3).cmp(&(b.0, &names[&b.1], b.2, b.3)));
    let placed = |(worker, _, _, queue, interface)| Placed { worker, interface, queue };
    found.into_iter().map(placed).collect()
}

fn show_placement(engine: &mut Engine) -> Work<Engine> {
    let mut heading = None;
    let add = move |engine: &Engine, text: &mut String, list: &mut Vec<Value>, placed: Placed| {
        if let Some(item) = write_placed(engine, text, &mut heading, &placed) {
            list.push(item);
        }
    };
    in_pages(engine, "queues", String::new(), placed_queues(engine), add)
}

/// Write a queue below its worker and node, unless it is gone or has another worker meanwhile; the
/// same as JSON. `heading` is the worker and node of the queue before.
fn write_placed(
    engine: &Engine,
    text: &mut String,
    heading: &mut Option<(WorkerId, String)>,
    placed: &Placed,
) -> Option<Value> {
    let interface = engine.interface(placed.interface)?;
    let is_this = |rx: &&RxPlacement| rx.queue == placed.queue && rx.worker == placed.worker;
    let placement = interface.rx.iter().find(is_this)?;
    let (worker, node) = (placed.worker, engine.node_name(placement.input_node));
    let is_other_worker = heading.as_ref().is_none_or(|(last, _)| *last != worker);
    if is_other_worker {
        let _ = writeln!(text, "Thread {} ({}):", thread_number(worker), thread_name(worker));
    }
    if is_other_worker || heading.as_ref().is_none_or(|(_, last)| *last != node) {
        let _ = writeln!(text, "  node {node}:");
    }
    let (name, queue, mode) = (&interface.name, placement.queue, placement.mode.to_string());
    let _ = writeln!(text, "    {name} queue {queue} ({mode})");
    let item = json!({
        "worker": worker.0, "node": node, "interface": name, "queue": queue, "mode": mode
    });
    *heading = Some((worker, node));
    Some(item)
}
