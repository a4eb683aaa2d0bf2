//! `show workers`: what each worker is at, and which one stalls; and the gate that refuses changes
//! while too much waits for one that does.

use std::fmt::Write as _;

use quiver_core::control::watchdog::{
    Activity, Health, RETIRED_MAX, STALL_NS_DEFAULT, STRETCHES_MAX, WORKER_CALLS_WAITING_MAX,
};
use quiver_core::cpu::clocks_per_second;
use quiver_core::graph::node::NodeKind;
use quiver_core::{Engine, WorkerId};
use serde_json::{Value, json};

use super::{all_workers, thread_name};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::Command;
use crate::output::{Column, Output, Table};
use crate::registry::Registry;
use crate::running::order;

const GROUP: &str = "Seeing inside";
const NS_PER_MS: u64 = 1_000_000;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show workers")
            .group(GROUP)
            .help("Show what each worker is at, whether it stalls, and what waits for it")
            .details(
                "A worker stalls when it neither sleeps nor finishes a pass for as long as set \
                 watchdog timeout says; the log names it too, once per stall, and says when it \
                 goes on. Memory that was replaced waits until every worker has finished a pass. \
                 When as much waits as may, commands that change something are refused until the \
                 worker goes on.",
            )
            .run(show),
    );
    registry.command(
        Command::new("set watchdog timeout <milliseconds:10-3600000>")
            .entry(order::RESOURCES, "watchdog.timeout-ms: <milliseconds>")
            .undo("set watchdog timeout 1000")
            .replaces(&[])
            .group(GROUP)
            .help("Say how long a worker may take for a pass before it counts as stalled (1000)")
            .example("set watchdog timeout 500")
            .run(|engine: &mut Engine, args| {
                engine.set_stall_timeout_ns(args.get::<u64>("milliseconds")? * NS_PER_MS);
                Ok(Output::none())
            }),
    );
    registry.running_config(order::RESOURCES, |engine, config| {
        let timeout_ns = engine.stall_timeout_ns();
        if timeout_ns != STALL_NS_DEFAULT {
            config.command(format_args!("set watchdog timeout {}", timeout_ns / NS_PER_MS));
        }
    });
    registry.commands.before_changes(|engine: &mut Engine| Ok(engine.make_room()?));
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// `running`, `asleep`, or `STALLED 12.3 s`.
fn state_text(health: &Health) -> String {
    match (health.stalled_ns, health.activity) {
        (Some(ns), _) => format!("STALLED {:.1} s", seconds(ns)),
        (None, Activity::Asleep) => "asleep".to_owned(),
        _ => "running".to_owned(),
    }
}

fn show(engine: &mut Engine, _: &Args<'_>) -> Result<Output, Refusal> {
    let mut table = Table::new([
        Column::right("Worker"),
        Column::left("Name"),
        Column::right("Core"),
        Column::left("State"),
        Column::left("At"),
        Column::right("Passes"),
        Column::right("Sleeps"),
        Column::right("Stalls"),
        Column::right("Longest"),
        Column::right("Worker calls"),
    ]);
    let mut list = Vec::new();
    for worker in all_workers(engine) {
        let (Some(health), Some(counters)) =
            (engine.health(worker), engine.worker_counters(worker))
        else {
            continue;
        };
        let row = table.row().cell(worker.0).cell(thread_name(worker));
        let row =
            row.cell(engine.worker_core(worker).map(|core| core as u64)).cell(state_text(&health));
        let row = row.cell(engine.activity_text(health.activity));
        let row = row.cell(counters.passes.get()).cell(counters.sleeps.get()).cell(health.stalls);
        row.cell(format!("{:.1} s", seconds(health.longest_ns)))
            .cell(health.worker_calls_waiting as u64);
        list.push(worker_json(engine, worker, &health));
    }
    let waiting = engine.waiting();
    let mut text = Output::from(table).to_text();
    let _ = writeln!(
        text,
        "Waiting for workers: {} of {RETIRED_MAX} replaced values, {} of {STRETCHES_MAX} \
         stretches of tables, {} of {WORKER_CALLS_WAITING_MAX} worker calls",
        waiting.retired, waiting.stretches, waiting.worker_calls
    );
    let json = json!({
        "now_ns": engine.now_ns(),
        "clocks_per_s": clocks_per_second(),
        "stall_timeout_ms": engine.stall_timeout_ns() / NS_PER_MS,
        "waiting": {
            "retired": waiting.retired,
            "retired_max": RETIRED_MAX,
            "stretches": waiting.stretches,
            "stretches_max": STRETCHES_MAX,
            "worker_calls": waiting.worker_calls,
            "worker_calls_max": WORKER_CALLS_WAITING_MAX,
        },
        "workers": list,
    });
    Ok(Output::both(text, json).nullable(&[
        "workers[].core",
        "workers[].node",
        "workers[].stalled_s",
    ]))
}

fn worker_json(engine: &Engine, worker: WorkerId, health: &Health) -> Value {
    let Some(counters) = engine.worker_counters(worker) else { return Value::Null };
    let (mut clocks, mut calls, mut packets) = (0, 0, 0);
    for (id, node) in engine.all_nodes() {
        let row = counters.node(id);
        clocks += row.clocks.get();
        if node.spec.kind == NodeKind::Internal {
            calls += row.calls.get();
            packets += row.vectors.get();
        }
    }
    let state = match (health.stalled_ns, health.activity) {
        (Some(_), _) => "stalled",
        (None, Activity::Asleep) => "asleep",
        _ => "running",
    };
    json!({
        "worker": worker,
        "name": thread_name(worker),
        "core": engine.worker_core(worker),
        "state": state,
        "activity": activity_word(health.activity),
        "node": activity_node(engine, health.activity),
        "stalled_s": health.stalled_ns.map(seconds),
        "stalls": health.stalls,
        "longest_stall_s": seconds(health.longest_ns),
        "worker_calls_waiting": health.worker_calls_waiting,
        "passes": counters.passes.get(),
        "sleeps": counters.sleeps.get(),
        "node_clocks": clocks,
        "idle_clocks": counters.idle_clocks.get(),
        "internal_calls": calls,
        "internal_packets": packets,
    })
}

/// What a worker does now, in one word.
fn activity_word(activity: Activity) -> &'static str {
    match activity {
        Activity::Asleep => "asleep",
        Activity::Starting => "starting",
        Activity::WorkerCall => "worker_call",
        Activity::Node(_) => "node",
    }
}

/// The node that a worker is in.
fn activity_node(engine: &Engine, activity: Activity) -> Option<String> {
    match activity {
        Activity::Node(node) => Some(engine.node_name(node)),
        _ => None,
    }
}
