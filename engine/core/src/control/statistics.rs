//! Counters added up over workers and told since the last `clear`.

use std::collections::HashMap;

use serde::Serialize;

use crate::control::engine::{Engine, Stalled};
use crate::graph::capture::{Capture, CaptureSpec, Captured};
use crate::graph::counters::{InterfaceCounters, LONG_PASS_CLASSES, REASONS_PER_NODE_MAX};
use crate::graph::filter::SharedFilter;
use crate::graph::node::Severity;
use crate::graph::trace::{Tracer, WorkerTrace};
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::worker::Worker;

/// What an interface has done, all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the fields of `InterfaceCounters`, documented there
pub struct InterfaceTotals {
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    pub drops: u64,
    pub punts: u64,
    pub rx_no_buffer: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub ip4: u64,
    pub ip6: u64,
}

impl InterfaceTotals {
    /// Names and values, in the order in which they are shown.
    pub fn fields(&self) -> [(&'static str, u64); 11] {
        [
            ("rx packets", self.rx_packets),
            ("rx bytes", self.rx_bytes),
            ("tx packets", self.tx_packets),
            ("tx bytes", self.tx_bytes),
            ("drops", self.drops),
            ("punt", self.punts),
            ("rx no buffer", self.rx_no_buffer),
            ("rx error", self.rx_errors),
            ("tx error", self.tx_errors),
            ("ip4", self.ip4),
            ("ip6", self.ip6),
        ]
    }

    fn combine(self, row: [u64; 11], with: impl Fn(u64, u64) -> u64) -> InterfaceTotals {
        let [a, b, c, d, e, f, g, h, i, j, k] = row;
        InterfaceTotals {
            rx_packets: with(self.rx_packets, a),
            rx_bytes: with(self.rx_bytes, b),
            tx_packets: with(self.tx_packets, c),
            tx_bytes: with(self.tx_bytes, d),
            drops: with(self.drops, e),
            punts: with(self.punts, f),
            rx_no_buffer: with(self.rx_no_buffer, g),
            rx_errors: with(self.rx_errors, h),
            tx_errors: with(self.tx_errors, i),
            ip4: with(self.ip4, j),
            ip6: with(self.ip6, k),
        }
    }

    fn values(&self) -> [u64; 11] {
        self.fields().map(|(_, v)| v)
    }
}

fn values(row: &InterfaceCounters) -> [u64; 11] {
    [
        row.rx_packets.get(),
        row.rx_bytes.get(),
        row.tx_packets.get(),
        row.tx_bytes.get(),
        row.drops.get(),
        row.punts.get(),
        row.rx_no_buffer.get(),
        row.rx_errors.get(),
        row.tx_errors.get(),
        row.ip4.get(),
        row.ip6.get(),
    ]
}

/// A node's work on one worker since the last `clear runtime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the fields of `NodeCounters`, documented there
pub struct NodeTotals {
    pub calls: u64,
    pub vectors: u64,
    pub clocks: u64,
    pub max_clocks: u64,
    pub max_vectors: u64,
    pub fused: u64,
}

/// A line of `show errors`.
#[derive(Clone, Debug, Serialize)]
pub struct ReasonCount {
    /// How often, all workers together.
    pub count: u64,
    /// The node.
    pub node: String,
    /// The short name.
    pub reason: &'static str,
    /// The sentence.
    pub text: &'static str,
    /// How bad it is.
    pub severity: Severity,
}

/// A worker's loop since the last `clear runtime`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct LoopTotals {
    /// Passes.
    pub passes: u64,
    /// Passes that took from [`LONG_PASS_NS`](crate::graph::counters::LONG_PASS_NS) × 2^k, by k.
    pub long_passes: [u64; LONG_PASS_CLASSES],
    /// Worker calls of the control thread.
    pub worker_calls: u64,
    /// Nanoseconds that they took.
    pub worker_call_ns: u64,
    /// Worker calls that took from
    /// [`LONG_WORKER_CALL_NS`](crate::graph::counters::LONG_WORKER_CALL_NS) × 2^k, by k.
    pub long_worker_calls: [u64; LONG_PASS_CLASSES],
    /// Times it slept.
    pub sleeps: u64,
    /// Packets that found no free vector.
    pub no_frame: u64,
    /// Events that the control thread was too slow for.
    pub events_lost: u64,
    /// Nanoseconds since the clear.
    pub elapsed_ns: u64,
}

/// What counters were when they were last cleared. Workers never hear of a clear.
#[derive(Default)]
pub(crate) struct Baselines {
    interfaces: HashMap<InterfaceId, InterfaceTotals>,
    reasons: HashMap<(NodeId, u16), u64>,
    nodes: HashMap<(WorkerId, NodeId), NodeTotals>,
    loops: HashMap<WorkerId, LoopTotals>,
    runtime_since_ns: u64,
}

impl Engine {
    fn raw_interface(&self, id: InterfaceId) -> InterfaceTotals {
        self.all_counters().fold(InterfaceTotals::default(), |sum, counters| {
            sum.combine(values(counters.interface(id)), u64::wrapping_add)
        })
    }

    /// What an interface has done since the last clear.
    pub fn interface_totals(&self, id: InterfaceId) -> InterfaceTotals {
        let base = self.baselines.interfaces.get(&id).copied().unwrap_or_default();
        self.raw_interface(id).combine(base.values(), u64::saturating_sub)
    }

    /// Count interfaces from here.
    pub fn clear_interfaces(&mut self) {
        let ids: Vec<_> = self.all_interfaces().map(|i| i.id).collect();
        ids.into_iter().for_each(|id| self.clear_interface_baseline(id));
    }

    pub(crate) fn clear_interface_baseline(&mut self, id: InterfaceId) {
        let now = self.raw_interface(id);
        self.baselines.interfaces.insert(id, now);
    }

    fn raw_reason(&self, node: NodeId, number: u16) -> u64 {
        self.all_counters().map(|c| c.reason(node, number).get()).sum()
    }

    /// How often a node's reason was given since the last clear.
    pub fn reason_count(&self, node: NodeId, number: u16) -> u64 {
        let base = self.baselines.reasons.get(&(node, number)).copied().unwrap_or(0);
        self.raw_reason(node, number).saturating_sub(base)
    }

    /// All reasons and events; those that were never given too when `all`.
    pub fn reason_counts(&self, all: bool) -> Vec<ReasonCount> {
        let mut lines = Vec::new();
        for (id, info) in self.all_nodes() {
            for (number, text) in info.spec.reasons.iter().enumerate() {
                let count = self.reason_count(id, number as u16);
                if count > 0 || all {
                    lines.push(ReasonCount {
                        count,
                        node: info.spec.name.clone(),
                        reason: text.name,
                        text: text.text,
                        severity: text.severity,
                    });
                }
            }
        }
        lines
    }

    /// Count reasons from here.
    pub fn clear_reasons(&mut self) {
        let mut now = HashMap::new();
        for (id, info) in self.all_nodes() {
            for number in 0..info.spec.reasons.len() as u16 {
                now.insert((id, number), self.raw_reason(id, number));
            }
        }
        self.baselines.reasons = now;
    }

    fn raw_node(&self, worker: WorkerId, node: NodeId) -> NodeTotals {
        let Some(counters) = self.worker_counters(worker) else { return NodeTotals::default() };
        let row = counters.node(node);
        NodeTotals {
            calls: row.calls.get(),
            vectors: row.vectors.get(),
            clocks: row.clocks.get(),
            max_clocks: row.max_clocks.get(),
            max_vectors: row.max_vectors.get(),
            fused: row.fused.get(),
        }
    }

    /// A node's work on a worker since the last clear. The maxima are since the start.
    pub fn node_totals(&self, worker: WorkerId, node: NodeId) -> NodeTotals {
        let now = self.raw_node(worker, node);
        let base = self.baselines.nodes.get(&(worker, node)).copied().unwrap_or_default();
        NodeTotals {
            calls: now.calls.saturating_sub(base.calls),
            vectors: now.vectors.saturating_sub(base.vectors),
            clocks: now.clocks.saturating_sub(base.clocks),
            fused: now.fused.saturating_sub(base.fused),
            ..now
        }
    }

    /// A new node takes over the number of one that is gone, and its counters: count from here.
    pub(crate) fn clear_node_baseline(&mut self, node: NodeId) {
        for worker in (0..self.worker_count()).map(|w| WorkerId(w as u16)) {
            let now = self.raw_node(worker, node);
            self.baselines.nodes.insert((worker, node), now);
        }
        for number in 0..REASONS_PER_NODE_MAX as u16 {
            let now = self.raw_reason(node, number);
            self.baselines.reasons.insert((node, number), now);
        }
    }

    fn raw_loop(&self, worker: WorkerId) -> LoopTotals {
        let Some(counters) = self.worker_counters(worker) else { return LoopTotals::default() };
        LoopTotals {
            passes: counters.passes.get(),
            long_passes: std::array::from_fn(|class| counters.long_passes[class].get()),
            worker_calls: counters.worker_calls.get(),
            worker_call_ns: counters.worker_call_ns.get(),
            long_worker_calls: std::array::from_fn(|class| counters.long_worker_calls[class].get()),
            sleeps: counters.sleeps.get(),
            no_frame: counters.no_frame.get(),
            events_lost: counters.events_lost.get(),
            elapsed_ns: 0,
        }
    }

    /// A worker's loop since the last clear.
    pub fn loop_totals(&self, worker: WorkerId) -> LoopTotals {
        let now = self.raw_loop(worker);
        let base = self.baselines.loops.get(&worker).copied().unwrap_or_default();
        LoopTotals {
            passes: now.passes.saturating_sub(base.passes),
            long_passes: std::array::from_fn(|class| {
                now.long_passes[class].saturating_sub(base.long_passes[class])
            }),
            worker_calls: now.worker_calls.saturating_sub(base.worker_calls),
            worker_call_ns: now.worker_call_ns.saturating_sub(base.worker_call_ns),
            long_worker_calls: std::array::from_fn(|class| {
                now.long_worker_calls[class].saturating_sub(base.long_worker_calls[class])
            }),
            sleeps: now.sleeps.saturating_sub(base.sleeps),
            no_frame: now.no_frame.saturating_sub(base.no_frame),
            events_lost: now.events_lost.saturating_sub(base.events_lost),
            elapsed_ns: self.now_ns().saturating_sub(self.baselines.runtime_since_ns),
        }
    }

    /// Count the runtime from here.
    pub fn clear_runtime(&mut self) {
        let workers: Vec<_> = (0..self.worker_count()).map(|w| WorkerId(w as u16)).collect();
        let nodes: Vec<_> = self.all_nodes().map(|(id, _)| id).collect();
        for &worker in &workers {
            for &node in &nodes {
                let now = self.raw_node(worker, node);
                self.baselines.nodes.insert((worker, node), now);
            }
            let now = self.raw_loop(worker);
            self.baselines.loops.insert(worker, now);
        }
        self.baselines.runtime_since_ns = self.now_ns();
    }

    // Traces and captures.

    /// Trace the next `packets` packets that `input` receives and `filter` chooses, on each worker.
    ///
    /// # Errors
    /// A worker does not answer in time.
    pub fn trace_add(
        &mut self,
        input: NodeId,
        packets: u32,
        filter: Option<&SharedFilter>,
    ) -> Result<(), Stalled> {
        for worker in 0..self.worker_count() {
            let id = WorkerId(worker as u16);
            let kept = self.call(id, |w: &mut Worker| w.tracer.records_wanted())?;
            let mut tracer = Tracer::with_room(input, packets, filter.cloned(), kept);
            self.call(id, move |w: &mut Worker| {
                tracer.continue_from(&w.tracer);
                std::mem::swap(&mut w.tracer, &mut tracer);
            })?;
        }
        Ok(())
    }

    /// What has been traced so far.
    ///
    /// # Errors
    /// A worker does not answer in time.
    pub fn traces(&mut self) -> Result<Vec<WorkerTrace>, Stalled> {
        let mut traces = Vec::new();
        for worker in 0..self.worker_count() {
            let id = WorkerId(worker as u16);
            // Room is made here, so that the worker only copies.
            let room = self.call(id, |w: &mut Worker| w.tracer.records.len())?;
            let mut records = Vec::with_capacity(room);
            let trace = self.call(id, move |w: &mut Worker| {
                records.extend(w.tracer.records.iter().take(room).cloned());
                WorkerTrace { worker: id, records: std::mem::take(&mut records), cut: w.tracer.cut }
            })?;
            traces.push(trace);
        }
        Ok(traces)
    }

    /// Forget all traces, and trace no more.
    ///
    /// # Errors
    /// A worker does not answer in time.
    pub fn trace_clear(&mut self) -> Result<(), Stalled> {
        for worker in 0..self.worker_count() {
            let mut empty = Tracer::default();
            self.call(WorkerId(worker as u16), move |w: &mut Worker| {
                empty.forget(&w.tracer);
                std::mem::swap(&mut w.tracer, &mut empty);
            })?;
        }
        Ok(())
    }

    /// Write packets that `filter` chooses down from now on.
    ///
    /// # Errors
    /// A worker does not answer in time.
    pub fn capture_start(
        &mut self,
        spec: CaptureSpec,
        filter: Option<&SharedFilter>,
    ) -> Result<(), Stalled> {
        for worker in 0..self.worker_count() {
            let mut capture = Some(Box::new(Capture::new(spec, filter.cloned())));
            self.call(WorkerId(worker as u16), move |w: &mut Worker| {
                std::mem::swap(&mut w.capture, &mut capture);
            })?;
        }
        Ok(())
    }

    /// Stop the capture. The caller writes the packets to a file.
    ///
    /// # Errors
    /// A worker does not answer in time.
    pub fn capture_stop(&mut self) -> Result<Captured, Stalled> {
        let captures = self.call_all(|w: &mut Worker| w.capture.take())?;
        Ok(Captured(captures.into_iter().flatten().collect()))
    }
}
