//! Counters: one writer each (a worker), read by anybody, never cleared under the writer.

use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromZeros;

use crate::ids::{InterfaceId, NodeId, WorkerId};

/// Nodes that a graph can have.
pub const NODES_MAX: usize = 16_384;
/// Interfaces that a router can have.
pub const INTERFACES_MAX: usize = 8_192;
/// A pass that takes at least so long is counted as a long one, nanoseconds.
pub const LONG_PASS_NS: u64 = 1 << 16;
/// A worker call that takes at least so long is counted as a long one, nanoseconds.
pub const LONG_WORKER_CALL_NS: u64 = 1 << 13;
/// Classes of long passes and worker calls: each from twice as long as the one before, the last
/// without an end.
pub const LONG_PASS_CLASSES: usize = 8;
/// Reasons and events that a node can declare.
pub const REASONS_PER_NODE_MAX: usize = 64;

/// A count with one writer: an ordinary add, no locked instruction.
#[derive(Default, FromZeros)]
#[repr(transparent)]
pub struct Count(AtomicU64);

impl Count {
    /// Add; only the one writer may.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Keep the larger.
    #[inline(always)]
    pub fn max(&self, n: u64) {
        if n > self.0.load(Ordering::Relaxed) {
            self.0.store(n, Ordering::Relaxed);
        }
    }

    /// Read.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Set; only the one writer may.
    #[inline(always)]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }
}

/// A few counts of one thing (a route, a policy), kept by each worker in a line of its own.
pub struct PerWorker<const N: usize>(Box<[Line<N>]>);

#[repr(align(64))]
struct Line<const N: usize>([Count; N]);

impl<const N: usize> PerWorker<N> {
    /// All zero, for so many workers.
    pub fn new(workers: usize) -> PerWorker<N> {
        PerWorker(
            (0..workers.max(1)).map(|_| Line([const { Count(AtomicU64::new(0)) }; N])).collect(),
        )
    }

    /// The counts of a worker, who alone adds to them.
    #[inline]
    pub fn of(&self, worker: WorkerId) -> &[Count; N] {
        &self.0[worker.index() % self.0.len()].0
    }

    /// The sums over all workers.
    pub fn sums(&self) -> [u64; N] {
        std::array::from_fn(|place| self.0.iter().map(|line| line.0[place].get()).sum())
    }
}

/// A node's work on one worker.
#[derive(Default, FromZeros)]
#[repr(align(64))]
pub struct NodeCounters {
    /// Times it ran.
    pub calls: Count,
    /// Packets it was given.
    pub vectors: Count,
    /// Clocks (time stamp counter) it took.
    pub clocks: Count,
    /// The most clocks that one call took.
    pub max_clocks: Count,
    /// Packets in that call.
    pub max_vectors: Count,
    /// Calls in passes of several nodes; their clocks are the node's share of the whole pass.
    pub fused: Count,
}

impl NodeCounters {
    /// A call took so many clocks for so many packets: was it the longest?
    #[inline(always)]
    pub fn note_longest(&self, clocks: u64, vectors: u64) {
        if clocks > self.max_clocks.get() {
            self.max_clocks.set(clocks);
            self.max_vectors.set(vectors);
        }
    }
}

/// What one worker saw on one interface.
#[derive(Default, FromZeros)]
#[repr(align(128))]
pub struct InterfaceCounters {
    /// Packets received.
    pub rx_packets: Count,
    /// Bytes received, from the first byte of layer 2, without FCS.
    pub rx_bytes: Count,
    /// Packets given to the device.
    pub tx_packets: Count,
    /// Bytes given to the device.
    pub tx_bytes: Count,
    /// Packets received here that died in the graph.
    pub drops: Count,
    /// Packets received here that were handed to the control thread or the host.
    pub punts: Count,
    /// Frames that the device had and no buffer was free for.
    pub rx_no_buffer: Count,
    /// Frames that the device gave and that were not valid.
    pub rx_errors: Count,
    /// Packets that the device did not take.
    pub tx_errors: Count,
    /// Looks at a receive ring that found nearly no free place in it (less than a vector or a
    /// quarter of the ring): whoever fills it may have had to leave frames out. Only memif knows.
    pub rx_ring_full: Count,
    /// IPv4 packets received.
    pub ip4: Count,
    /// IPv6 packets received.
    pub ip6: Count,
}

/// All counters that one worker writes.
pub struct WorkerCounters {
    nodes: Box<[NodeCounters]>,
    reasons: Box<[[Count; REASONS_PER_NODE_MAX]]>,
    interfaces: Box<[InterfaceCounters]>,
    /// Passes of the loop.
    pub passes: Count,
    /// From the beginning of the last pass to that of the one that runs now, nanoseconds; 0 after a
    /// sleep.
    pub last_pass_ns: Count,
    /// Packets that came in in the last pass.
    pub last_pass_packets: Count,
    /// Passes that took from [`LONG_PASS_NS`] × 2^k, by k: a worker's queues were not looked at for
    /// so long.
    pub long_passes: [Count; LONG_PASS_CLASSES],
    /// Worker calls carried out.
    pub worker_calls: Count,
    /// Nanoseconds that they took: the worker looked at no queue meanwhile.
    pub worker_call_ns: Count,
    /// Worker calls that took from [`LONG_WORKER_CALL_NS`] × 2^k, by k.
    pub long_worker_calls: [Count; LONG_PASS_CLASSES],
    /// Times the worker slept.
    pub sleeps: Count,
    /// Clocks that went into asking queues which had nothing.
    pub idle_clocks: Count,
    /// What the worker is at, for the watchdog.
    pub(crate) running: Count,
    /// Packets that found no free vector.
    pub no_frame: Count,
    /// Events to the control thread that found its ring full.
    pub events_lost: Count,
}

/// A zeroed slice that costs memory only where it is written.
fn zeroed<T: FromZeros>(length: usize) -> Box<[T]> {
    <[T]>::new_box_zeroed_with_elems(length).expect("memory for counters")
}

/// The class of something that took `ns`, when the first class begins at `least_ns`.
fn class_of(ns: u64, least_ns: u64) -> usize {
    ((ns / least_ns).max(1).ilog2() as usize).min(LONG_PASS_CLASSES - 1)
}

impl Default for WorkerCounters {
    fn default() -> Self {
        WorkerCounters {
            nodes: zeroed(NODES_MAX),
            reasons: zeroed(NODES_MAX),
            interfaces: zeroed(INTERFACES_MAX),
            passes: Count::default(),
            last_pass_ns: Count::default(),
            last_pass_packets: Count::default(),
            long_passes: Default::default(),
            worker_calls: Count::default(),
            worker_call_ns: Count::default(),
            long_worker_calls: Default::default(),
            sleeps: Count::default(),
            idle_clocks: Count::default(),
            running: Count::default(),
            no_frame: Count::default(),
            events_lost: Count::default(),
        }
    }
}

impl WorkerCounters {
    /// A pass took so long, worker calls before it and the way to the next one included; 0 if the
    /// worker slept.
    #[inline(always)]
    pub fn note_pass(&self, ns: u64) {
        self.last_pass_ns.set(ns);
        if ns >= LONG_PASS_NS {
            self.note_long_pass(ns);
        }
    }

    #[cold]
    fn note_long_pass(&self, ns: u64) {
        self.long_passes[class_of(ns, LONG_PASS_NS)].add(1);
    }

    /// A worker call took so long.
    pub fn note_worker_call(&self, ns: u64) {
        self.worker_calls.add(1);
        self.worker_call_ns.add(ns);
        if ns >= LONG_WORKER_CALL_NS {
            self.long_worker_calls[class_of(ns, LONG_WORKER_CALL_NS)].add(1);
        }
    }

    /// A node's row.
    #[inline(always)]
    pub fn node(&self, node: NodeId) -> &NodeCounters {
        &self.nodes[node.index() % NODES_MAX]
    }

    /// A node's reason or event.
    #[inline]
    pub fn reason(&self, node: NodeId, number: u16) -> &Count {
        &self.reasons[node.index() % NODES_MAX][number as usize % REASONS_PER_NODE_MAX]
    }

    /// An interface's row. What the router made itself is written to the last row, which no
    /// interface has.
    #[inline(always)]
    pub fn interface(&self, interface: InterfaceId) -> &InterfaceCounters {
        &self.interfaces[interface.index().min(INTERFACES_MAX - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_passes_are_counted_by_how_long_they_were() {
        let counters = WorkerCounters::default();
        for ns in
            [0, LONG_PASS_NS - 1, LONG_PASS_NS, 2 * LONG_PASS_NS - 1, 2 * LONG_PASS_NS, u64::MAX]
        {
            counters.note_pass(ns);
        }
        let counts: Vec<u64> = counters.long_passes.iter().map(Count::get).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn worker_calls_are_counted_with_their_time() {
        let counters = WorkerCounters::default();
        [100, LONG_WORKER_CALL_NS, 5 * LONG_WORKER_CALL_NS]
            .into_iter()
            .for_each(|ns| counters.note_worker_call(ns));
        assert_eq!(
            (counters.worker_calls.get(), counters.worker_call_ns.get()),
            (3, 100 + 6 * LONG_WORKER_CALL_NS)
        );
        let counts: Vec<u64> = counters.long_worker_calls.iter().map(Count::get).collect();
        assert_eq!(counts, [1, 0, 1, 0, 0, 0, 0, 0]);
    }
}
