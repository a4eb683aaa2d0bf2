//! Traces: what each node saw and decided about a packet, in words.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use quiver_core::graph::filter::PacketFilters;
use quiver_core::graph::node::NodeKind;
use quiver_core::graph::trace::{TraceRecord, WorkerTrace};
use quiver_core::{Engine, NodeId, WorkerId};
use serde_json::{Value, json};

use super::{packets_text, thread_name, thread_number};
use crate::args::Args;
use crate::error::Refusal;
use crate::grammar::{Command, Work};
use crate::listing::in_slices;
use crate::output::Output;
use crate::registry::Registry;

const GROUP: &str = "Seeing inside";
/// Packets that `show trace` shows of each worker unless `max N` says otherwise.
const TRACES_DEFAULT: usize = 50;
/// Bytes in a line of a hex dump.
const DUMP_LINE_BYTES: usize = 16;

/// How traces are shown.
#[derive(Default)]
struct View {
    /// With the packet's bytes.
    verbose: bool,
    filter: Option<Filter>,
}

/// Which packets are shown.
#[derive(Clone, Copy)]
struct Filter {
    node: NodeId,
    /// Those that pass the node, or those that do not.
    include: bool,
}

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("trace add <node> <packets:1-4096> {[verbose] [filter]}")
            .group(GROUP)
            .help("Trace the next packets that an input node receives, on each worker")
            .details("With filter, those that `classify filter trace` chooses.")
            .word("node", "an input node, such as memif-input")
            .word("verbose", "show the packet's first bytes at each node too")
            .word("filter", "only packets that the filter of traces chooses")
            .run(add),
    );
    registry.command(
        Command::new("show trace [max <:1-4096>]")
            .group(GROUP)
            .help("Show the traced packets: what each node saw and decided")
            .word("max", "packets of each worker, 50 unless given")
            .example("show trace max 5")
            .run_or_begin(show),
    );
    registry.command(
        Command::new("clear trace")
            .group(GROUP)
            .help("Forget the traced packets, and trace no more")
            .run(|engine: &mut Engine, _| {
                engine.trace_clear()?;
                engine.insert(View { verbose: false, ..engine_view(engine) });
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("trace filter include|exclude <node>")
            .group(GROUP)
            .help("Show only the traced packets that pass a node, or that do not")
            .details(
                "It chooses among the packets that are traced; `trace add` decides which those \
                 are.",
            )
            .example("trace filter include error-drop")
            .run(set_filter),
    );
    registry.command(
        Command::new("trace filter none").group(GROUP).help("Show all traced packets").run(
            |engine: &mut Engine, _| {
                engine.insert(View { filter: None, ..engine_view(engine) });
                Ok(Output::none())
            },
        ),
    );
    registry.on_start(|engine| {
        engine.insert(View::default());
        engine.insert(PacketFilters::default());
    });
}

fn engine_view(engine: &Engine) -> View {
    engine
        .get::<View>()
        .map_or_else(View::default, |v| View { verbose: v.verbose, filter: v.filter })
}

fn add(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.node(engine, "node")?;
    let name = engine.node_name(id);
    if engine.node_info(id).is_none_or(|info| info.spec.kind != NodeKind::Input) {
        let inputs = engine.all_nodes().filter(|(_, n)| n.spec.kind == NodeKind::Input);
        let inputs: Vec<&str> = inputs.map(|(_, n)| n.spec.name.as_str()).collect();
        return Err(args
            .refuse(
                "node",
                format!("{name} receives nothing from a device, so no trace can begin there"),
            )
            .remedy(format!("input nodes are {}", inputs.join(", "))));
    }
    let filters = engine.get::<PacketFilters>().cloned().unwrap_or_default();
    let filter = args.has("filter").then_some(filters.trace);
    if let Some(None) = filter {
        return Err(args
            .refuse("filter", "no filter of traces is set")
            .remedy("`classify filter trace mask … match …` sets one"));
    }
    engine.trace_add(id, args.get("packets")?, filter.flatten().as_ref())?;
    let verbose = args.has("verbose");
    engine.insert(View { verbose, ..engine_view(engine) });
    Ok(Output::none())
}

fn set_filter(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let node = args.node(engine, "node")?;
    engine.insert(View {
        filter: Some(Filter { node, include: args.has("include") }),
        ..engine_view(engine)
    });
    Ok(Output::none())
}

/// A piece of the answer, of the trace of this place.
enum Piece {
    Begin(usize),
    /// A packet: by whom and under which number it was marked, and its records.
    Packet(usize, (WorkerId, u32), Vec<usize>),
    End {
        at: usize,
        /// Packets that are not shown because of the limit.
        more: usize,
        /// Packets that the filter does not let through.
        hidden: usize,
    },
}

/// The pieces of one worker's trace.
fn pieces(at: usize, trace: &WorkerTrace, view: &View, max: usize, out: &mut Vec<Piece>) {
    let mut by_packet: BTreeMap<(WorkerId, u32), Vec<usize>> = BTreeMap::new();
    for (index, record) in trace.records.iter().enumerate() {
        by_packet.entry((record.marked_by, record.packet)).or_default().push(index);
    }
    let all = by_packet.len();
    let passes = |records: &Vec<usize>| {
        view.filter.is_none_or(|filter| {
            records.iter().any(|index| trace.records[*index].node == filter.node) == filter.include
        })
    };
    by_packet.retain(|_, records| passes(records));
    let (hidden, more) = (all - by_packet.len(), by_packet.len().saturating_sub(max));
    out.push(Piece::Begin(at));
    out.extend(
        by_packet.into_iter().take(max).map(|(mark, records)| Piece::Packet(at, mark, records)),
    );
    out.push(Piece::End { at, more, hidden });
}

/// The answer as far as it is made.
struct TraceListing {
    traces: Vec<WorkerTrace>,
    verbose: bool,
    text: String,
    threads: Vec<Value>,
    packets: Vec<Value>,
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let max: usize = args.or("max", TRACES_DEFAULT)?;
    let traces = engine.traces()?;
    let view = engine_view(engine);
    let mut all = Vec::new();
    for (at, trace) in traces.iter().enumerate() {
        pieces(at, trace, &view, max, &mut all);
    }
    let told = TraceListing {
        traces,
        verbose: view.verbose,
        text: String::new(),
        threads: Vec::new(),
        packets: Vec::new(),
    };
    let end = |_: &Engine, told: TraceListing| {
        let output = Output::none().items("threads", told.text, told.threads);
        output.nullable(&["threads[].packets[].from", "threads[].packets[].nodes[].next"])
    };
    Ok(in_slices(engine, all, told, TraceListing::add, end))
}

impl TraceListing {
    fn add(engine: &Engine, told: &mut TraceListing, piece: Piece) {
        match piece {
            Piece::Begin(at) => {
                let worker = told.traces[at].worker;
                let (number, name) = (thread_number(worker), thread_name(worker));
                let _ = writeln!(
                    told.text,
                    "------------------- Start of thread {number} {name} -------------------"
                );
            }
            Piece::Packet(at, mark, records) => told.add_packet(engine, at, mark, &records),
            Piece::End { at, more, hidden } => told.end_thread(at, more, hidden),
        }
    }

    fn add_packet(
        &mut self,
        engine: &Engine,
        at: usize,
        (marked_by, packet): (WorkerId, u32),
        records: &[usize],
    ) {
        let trace = &self.traces[at];
        let records: Vec<&TraceRecord> =
            records.iter().map(|index| &trace.records[*index]).collect();
        let from = (marked_by != trace.worker).then(|| thread_name(marked_by));
        match &from {
            Some(from) => _ = writeln!(self.text, "Packet {packet} of {from}\n"),
            None => _ = writeln!(self.text, "Packet {packet}\n"),
        }
        write_story(engine, &records, self.verbose, &mut self.text);
        self.packets.push(json!({
            "packet": packet,
            "from": from,
            "nodes": records.iter().map(|r| record_json(engine, r)).collect::<Vec<_>>(),
        }));
    }

    fn end_thread(&mut self, at: usize, more: usize, hidden: usize) {
        let (text, trace) = (&mut self.text, &self.traces[at]);
        let packets = std::mem::take(&mut self.packets);
        if packets.is_empty() {
            *text += "No packets in trace buffer\n";
        }
        if more > 0 {
            let more = packets_text(more);
            let _ = writeln!(text, "{more} more; `show trace max N` shows N of each thread");
        }
        if hidden > 0 {
            let _ = writeln!(text, "{} hidden by the trace filter", packets_text(hidden));
        }
        if trace.cut > 0 {
            let _ =
                writeln!(text, "{} steps found no room; trace fewer packets at a time", trace.cut);
        }
        let (name, id) = (thread_name(trace.worker), thread_number(trace.worker));
        self.threads.push(json!({ "name": name, "id": id, "cut": trace.cut, "packets": packets }));
    }
}

/// Hours, minutes, seconds and microseconds since the start.
fn time_text(ns: u64) -> String {
    let (us, seconds) = (ns / 1000 % 1_000_000, ns / 1_000_000_000);
    format!("{:02}:{:02}:{:02}:{us:06}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn write_story(engine: &Engine, records: &[&TraceRecord], verbose: bool, text: &mut String) {
    for record in records {
        let time = time_text(engine.clocks_to_ns(record.clocks));
        let _ = writeln!(text, "{time}: {}", engine.node_name(record.node));
        for line in sentence(engine, record).lines() {
            let _ = writeln!(text, "  {line}");
        }
        if verbose {
            write_bytes(record.bytes(), text);
        }
    }
    text.push('\n');
}

/// What the node says, or what can be said of any node.
fn sentence(engine: &Engine, record: &TraceRecord) -> String {
    let info = engine.node_info(record.node);
    if let Some(words) = info.and_then(|info| info.describe(record, engine)) {
        return words;
    }
    let bytes = record.packet_bytes;
    match info.map(|info| info.spec.kind) {
        Some(NodeKind::Input) => {
            format!("received {bytes} bytes on {}", engine.interface_name(record.rx))
        }
        Some(NodeKind::Sink) => format!("{bytes} bytes end here"),
        _ => format!("{bytes} bytes go on to {}", engine.node_name(record.next)),
    }
}

fn write_bytes(bytes: &[u8], text: &mut String) {
    for (line, chunk) in bytes.chunks(DUMP_LINE_BYTES).enumerate() {
        let _ = write!(text, "    {:04x}:", line * DUMP_LINE_BYTES);
        for pair in chunk.chunks(2) {
            text.push(' ');
            pair.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
        }
        text.push('\n');
    }
}

fn record_json(engine: &Engine, record: &TraceRecord) -> Value {
    let ended = record.next == record.node;
    json!({
        "time_s": engine.clocks_to_ns(record.clocks) as f64 / 1e9,
        "node": engine.node_name(record.node),
        "next": if ended { Value::Null } else { json!(engine.node_name(record.next)) },
        "text": sentence(engine, record),
        "rx": engine.interface_name(record.rx),
        "bytes": record.packet_bytes,
        "data": record.bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_hours_minutes_seconds_microseconds() {
        assert_eq!(time_text(0), "00:00:00:000000");
        assert_eq!(time_text(3_725_000_042_999), "01:02:05:000042");
    }
}
