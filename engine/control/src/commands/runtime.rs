//! `show runtime`: what each node costs on each worker, in the columns that operators know.

use std::collections::VecDeque;
use std::fmt::Write as _;

use quiver_core::control::statistics::{LoopTotals, NodeTotals};
use quiver_core::graph::builtin::HANDOFF;
use quiver_core::graph::counters::{LONG_PASS_CLASSES, LONG_PASS_NS, LONG_WORKER_CALL_NS};
use quiver_core::graph::node::{DROP, NodeKind};
use quiver_core::worker::device::RxMode;
use quiver_core::{Engine, NodeId, WorkerId};
use serde_json::{Value, json};

use super::columns::{centre, two_digits};
use super::{all_workers, thread_name, thread_number};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::listing::in_slices;
use crate::output::Output;
use crate::registry::Registry;

/// The rates "of the last 10 seconds" look back so far.
const WINDOW_SECONDS: usize = 10;
/// Characters of a node's name that the column is made for; longer names widen it.
const NAME_WIDTH: usize = 30;

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show runtime [max] [<what:summary|verbose>]")
            .also("show run [max] [<what:summary|verbose>]")
            .group("Seeing inside")
            .help("Show what each node did on each worker, and what it cost in clocks")
            .details(
                "Calls, vectors (packets) and clocks count from the last clear runtime; loops/sec \
                 and the node vector rate look back ten seconds at most. Clocks is per packet, or \
                 per call for a node that had none. The maxima of max are since the start.",
            )
            .word("max", "the dearest call of each node instead")
            .word(
                "what",
                "only the heads, or also nodes that did nothing, and how many calls of each were \
                 in the block driver",
            )
            .example("show runtime")
            .example("show runtime max verbose")
            .run_or_begin(show),
    );
    registry.command(
        Command::new("clear runtime")
            .group("Seeing inside")
            .help("Count what nodes do from here")
            .run(|engine: &mut Engine, _| {
                engine.clear_runtime();
                let punts = all_workers(engine).map(|worker| punts(engine, worker)).collect();
                engine.insert(Window { samples: VecDeque::new(), punts });
                Ok(Output::none())
            }),
    );
    registry.on_start(|engine| {
        engine.insert(Window::default());
        engine.every(1_000_000_000, |engine| {
            let now: Vec<Sample> =
                all_workers(engine).map(|worker| sample(engine, worker)).collect();
            let Some(window) = engine.get_mut::<Window>() else { return };
            window.samples.push_back(now);
            if window.samples.len() > WINDOW_SECONDS {
                window.samples.pop_front();
            }
        });
    });
}

/// What every worker had done, second by second.
#[derive(Default)]
struct Window {
    samples: VecDeque<Vec<Sample>>,
    /// Each worker's punts at the last clear.
    punts: Vec<u64>,
}

/// What one worker had done at a moment, since the clear.
#[derive(Clone, Copy, Default)]
struct Sample {
    at_ns: u64,
    passes: u64,
    /// Of nodes between inputs and sinks.
    calls: u64,
    vectors: u64,
}

fn sample(engine: &Engine, worker: WorkerId) -> Sample {
    let LoopTotals { passes, elapsed_ns, .. } = engine.loop_totals(worker);
    let internal = engine.all_nodes().filter(|(_, node)| node.spec.kind == NodeKind::Internal);
    internal.map(|(id, _)| engine.node_totals(worker, id)).fold(
        Sample { at_ns: elapsed_ns, passes, calls: 0, vectors: 0 },
        |sum, node| Sample {
            calls: sum.calls + node.calls,
            vectors: sum.vectors + node.vectors,
            ..sum
        },
    )
}

/// A node's line.
struct Line {
    name: String,
    state: &'static str,
    totals: NodeTotals,
}

impl Line {
    /// Clocks per packet, or per call for a node that had no packet.
    fn clocks(&self) -> f64 {
        let NodeTotals { calls, vectors, clocks, .. } = self.totals;
        ratio(clocks, if vectors > 0 { vectors } else { calls })
    }

    fn is_idle(&self) -> bool {
        self.totals.calls == 0
    }
}

/// One worker's part of the answer.
#[derive(Default)]
struct Thread {
    loops: LoopTotals,
    loops_per_s: f64,
    vectors_per_call: f64,
    /// Packets of nodes: in, out, drop.
    packets: [u64; 3],
    /// Packets per second: in, out, drop, punt.
    rates: [f64; 4],
    lines: Vec<Line>,
    nodes: Vec<Value>,
    width: usize,
}

fn ratio(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

impl Thread {
    /// Add what a node did.
    fn add(&mut self, engine: &Engine, worker: WorkerId, id: NodeId) {
        let Some(node) = engine.node_info(id) else { return };
        let totals = engine.node_totals(worker, id);
        match node.spec.kind {
            // What another worker handed over came in there.
            NodeKind::Input if id != HANDOFF => self.packets[0] += totals.vectors,
            NodeKind::Sink if id == DROP => self.packets[2] += totals.vectors,
            NodeKind::Sink => self.packets[1] += totals.vectors,
            _ => {}
        }
        let state = if node.spec.kind == NodeKind::Input {
            input_state(engine, worker, id)
        } else {
            "active"
        };
        self.lines.push(Line { name: node.spec.name.clone(), state, totals });
    }

    /// Add what the worker did, once all its nodes are there.
    fn sum(&mut self, engine: &Engine, worker: WorkerId) {
        self.loops = engine.loop_totals(worker);
        let elapsed_s = self.loops.elapsed_ns as f64 / 1e9;
        let window = engine.get::<Window>();
        let punts_before = window.and_then(|w| w.punts.get(worker.index()).copied()).unwrap_or(0);
        let punts = punts(engine, worker).saturating_sub(punts_before);
        let [rx, tx, drop] = self.packets;
        let rate = |packets: u64| if elapsed_s > 0.0 { packets as f64 / elapsed_s } else { 0.0 };
        self.rates = [rx, tx, drop, punts].map(rate);
        // Before the window is full, it reaches back to the clear.
        let full = window.filter(|w| w.samples.len() == WINDOW_SECONDS);
        let then =
            full.and_then(|w| w.samples.front()?.get(worker.index()).copied()).unwrap_or_default();
        let now = sample(engine, worker);
        let elapsed_ns = now.at_ns.saturating_sub(then.at_ns);
        self.loops_per_s = per_second(now.passes.saturating_sub(then.passes), elapsed_ns);
        self.vectors_per_call =
            ratio(now.vectors.saturating_sub(then.vectors), now.calls.saturating_sub(then.calls));
    }
}

fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    ratio(count, elapsed_ns) * 1e9
}

/// Packets that a worker handed to the control thread or the host since the start.
fn punts(engine: &Engine, worker: WorkerId) -> u64 {
    let Some(counters) = engine.worker_counters(worker) else { return 0 };
    engine.all_interfaces().map(|i| counters.interface(i.id).punts.get()).sum()
}

/// How a worker serves the queues of an input node.
fn input_state(engine: &Engine, worker: WorkerId, node: NodeId) -> &'static str {
    let placed = engine.all_interfaces().flat_map(|i| &i.rx);
    let modes: Vec<RxMode> =
        placed.filter(|p| p.worker == worker && p.input_node == node).map(|p| p.mode).collect();
    let polls = |mode: &RxMode| match mode {
        RxMode::Polling => true,
        RxMode::Interrupt => false,
        RxMode::Adaptive => !engine.is_asleep(worker),
    };
    match modes.as_slice() {
        [] => "active",
        modes if modes.iter().any(polls) => "polling",
        _ => "interrupt wait",
    }
}

/// A step of the answer.
enum Piece {
    /// Ask a node of a worker.
    Node(WorkerId, NodeId),
    /// Write the head of a worker.
    Head(WorkerId),
    /// Write the line of a node, by its place.
    Line(usize),
    /// End the part of a worker.
    End(WorkerId),
}

/// The answer as far as it is made.
struct RuntimeTables {
    is_max: bool,
    is_summary: bool,
    is_verbose: bool,
    thread: Thread,
    text: String,
    threads: Vec<Value>,
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let what = args.or("what", "")?;
    let told = RuntimeTables {
        is_max: args.has("max"),
        is_summary: what == "summary",
        is_verbose: what == "verbose",
        thread: Thread::default(),
        text: String::new(),
        threads: Vec::new(),
    };
    let mut nodes: Vec<(&str, NodeId)> =
        engine.all_nodes().map(|(id, node)| (node.spec.name.as_str(), id)).collect();
    nodes.sort_unstable();
    let mut pieces = Vec::new();
    for worker in all_workers(engine) {
        pieces.extend(nodes.iter().map(|(_, id)| Piece::Node(worker, *id)));
        pieces.push(Piece::Head(worker));
        pieces.extend((0..nodes.len()).map(Piece::Line));
        pieces.push(Piece::End(worker));
    }
    let end = |_: &Engine, told: RuntimeTables| {
        Output::none().items("threads", told.text, told.threads).nullable(&[
            "threads[].core",
            "threads[].nodes[].clocks_per_packet",
            "threads[].nodes[].vectors_per_call",
        ])
    };
    Ok(in_slices(engine, pieces, told, RuntimeTables::add, end))
}

impl RuntimeTables {
    fn add(engine: &Engine, told: &mut RuntimeTables, piece: Piece) {
        match piece {
            Piece::Node(worker, id) => told.thread.add(engine, worker, id),
            Piece::Head(worker) => {
                told.thread.sum(engine, worker);
                told.head(engine, worker);
            }
            Piece::Line(at) => told.line(at),
            Piece::End(worker) => told.end(engine, worker),
        }
    }

    /// Is a line shown?
    fn shows(&self, line: &Line) -> bool {
        !self.is_summary && (self.is_verbose || !line.is_idle())
    }

    fn head(&mut self, engine: &Engine, worker: WorkerId) {
        let shown = self.thread.lines.iter().filter(|line| self.shows(line));
        self.thread.width = shown.map(|line| line.name.len() + 1).fold(NAME_WIDTH, usize::max);
        if worker.0 > 0 {
            self.text += "---------------\n";
        }
        write_head(&self.thread, (worker, engine.worker_core(worker)), &mut self.text);
        match (self.is_summary, self.is_max) {
            (true, _) => {}
            (_, true) => write_title_of_maxima(self.thread.width, &mut self.text),
            (_, false) => write_title(self.thread.width, self.is_verbose, &mut self.text),
        }
    }

    fn line(&mut self, at: usize) {
        let Some(line) = self.thread.lines.get(at) else { return };
        if self.shows(line) {
            match self.is_max {
                true => write_maximum(line, self.thread.width, &mut self.text),
                false => write_line(line, self.thread.width, self.is_verbose, &mut self.text),
            }
        }
        self.thread.nodes.push(line_json(line));
    }

    fn end(&mut self, engine: &Engine, worker: WorkerId) {
        let thread = std::mem::take(&mut self.thread);
        if self.is_verbose {
            let LoopTotals { passes, sleeps, no_frame, events_lost, .. } = thread.loops;
            let _ = writeln!(
                self.text,
                "  {passes} passes, {sleeps} sleeps, {no_frame} packets without a vector, \
                 {events_lost} events lost"
            );
            write_long(&thread.loops, &mut self.text);
        }
        self.threads.push(thread_json(thread, worker, engine.worker_core(worker)));
    }
}

/// From how many microseconds the classes are in which there is something, and how much.
fn classes(counts: [u64; LONG_PASS_CLASSES], least_ns: u64) -> impl Iterator<Item = (u64, u64)> {
    let classes = counts.into_iter().enumerate();
    classes
        .filter(|(_, count)| *count > 0)
        .map(move |(class, count)| ((least_ns << class) / 1000, count))
}

fn classes_json(counts: [u64; LONG_PASS_CLASSES], least_ns: u64) -> Value {
    classes(counts, least_ns)
        .map(|(from_us, count)| json!({ "from_us": from_us, "count": count }))
        .collect()
}

/// What the control thread had the worker do, and what took long.
fn write_long(loops: &LoopTotals, text: &mut String) {
    let _ = writeln!(
        text,
        "  {} worker calls in {:.1} us",
        loops.worker_calls,
        loops.worker_call_ns as f64 / 1000.0
    );
    let worker_calls =
        classes(loops.long_worker_calls, LONG_WORKER_CALL_NS).map(|class| ("worker calls", class));
    let passes = classes(loops.long_passes, LONG_PASS_NS).map(|class| ("passes", class));
    for (what, (from_us, count)) in worker_calls.chain(passes) {
        let _ =
            writeln!(text, "  {count} {what} of {from_us} us or more, and less than twice that");
    }
}

fn write_head(thread: &Thread, (worker, core): (WorkerId, Option<usize>), text: &mut String) {
    let core = core.map_or_else(|| "-".to_owned(), |core| core.to_string());
    let [rx, tx, drop, punt] = thread.rates;
    let _ =
        writeln!(text, "Thread {} {} (lcore {core})", thread_number(worker), thread_name(worker));
    let _ = writeln!(
        text,
        "Time {:.1}, {WINDOW_SECONDS} sec internal node vector rate {} loops/sec {}",
        thread.loops.elapsed_ns as f64 / 1e9,
        two_digits(thread.vectors_per_call),
        two_digits(thread.loops_per_s)
    );
    let _ = writeln!(
        text,
        "  vector rates in {rx:.4e}, out {tx:.4e}, drop {drop:.4e}, punt {punt:.4e}"
    );
}

/// With `verbose` also how many calls of each node were in a pass of the block driver.
fn write_title(width: usize, verbose: bool, text: &mut String) {
    let _ = writeln!(
        text,
        "{}{}{:>14}{:>16}{:>16}{:>16}{:>16}{}",
        centre("Name", width),
        centre("State", 14),
        "Calls",
        "Vectors",
        "Suspends",
        "Clocks",
        "Vectors/Call",
        if verbose { format!("{:>16}", "In block driver") } else { String::new() }
    );
}

fn write_line(line: &Line, width: usize, verbose: bool, text: &mut String) {
    let NodeTotals { calls, vectors, fused, .. } = line.totals;
    let _ = writeln!(
        text,
        "{:<width$}{}{calls:>14}{vectors:>16}{:>16}{:>16}{:>16}{}",
        line.name,
        centre(line.state, 14),
        0,
        format!("{:.2e}", line.clocks()),
        two_digits(ratio(vectors, calls)),
        if verbose { format!("{fused:>16}") } else { String::new() }
    );
}

fn write_title_of_maxima(width: usize, text: &mut String) {
    let _ = writeln!(
        text,
        "{}{:>17}{:>18}{:>14}{:>14}{:>18}",
        centre("Name", width),
        "Max Node Clocks",
        "Vectors at Max",
        "Max Clocks",
        "Avg Clocks",
        "Avg Vectors/Call"
    );
}

fn write_maximum(line: &Line, width: usize, text: &mut String) {
    let NodeTotals { calls, vectors, max_clocks, max_vectors, .. } = line.totals;
    let _ = writeln!(
        text,
        "{:<width$}{:>17}{max_vectors:>18}{:>14}{:>14}{:>18}",
        line.name,
        format!("{:.2e}", max_clocks as f64),
        format!("{:.2e}", ratio(max_clocks, max_vectors.max(1))),
        format!("{:.2e}", line.clocks()),
        two_digits(ratio(vectors, calls))
    );
}

/// `null` for a ratio without a denominator.
fn ratio_json(part: u64, of: u64) -> Value {
    if of == 0 { Value::Null } else { json!(ratio(part, of)) }
}

fn line_json(line: &Line) -> Value {
    let NodeTotals { calls, vectors, clocks, max_clocks, max_vectors, fused } = line.totals;
    json!({
        "name": line.name,
        "state": line.state.replace(' ', "_"),
        "calls": calls,
        "vectors": vectors,
        "calls_in_block_driver": fused,
        "suspends": 0,
        "clocks": clocks,
        "clocks_per_packet": ratio_json(clocks, vectors),
        "vectors_per_call": ratio_json(vectors, calls),
        "max_clocks": max_clocks,
        "max_vectors": max_vectors,
    })
}

fn thread_json(thread: Thread, worker: WorkerId, core: Option<usize>) -> Value {
    let [rx, tx, drop, punt] = thread.rates;
    json!({
        "name": thread_name(worker),
        "id": thread_number(worker),
        "core": core,
        "elapsed_s": thread.loops.elapsed_ns as f64 / 1e9,
        "loops_per_s": thread.loops_per_s,
        "internal_vectors_per_call": thread.vectors_per_call,
        "vector_rate_in": rx,
        "vector_rate_out": tx,
        "vector_rate_drop": drop,
        "vector_rate_punt": punt,
        "passes": thread.loops.passes,
        "long_passes": classes_json(thread.loops.long_passes, LONG_PASS_NS),
        "worker_calls": thread.loops.worker_calls,
        "worker_call_us": thread.loops.worker_call_ns as f64 / 1000.0,
        "long_worker_calls": classes_json(thread.loops.long_worker_calls, LONG_WORKER_CALL_NS),
        "sleeps": thread.loops.sleeps,
        "packets_without_vector": thread.loops.no_frame,
        "events_lost": thread.loops.events_lost,
        "nodes": Value::Array(thread.nodes),
    })
}
