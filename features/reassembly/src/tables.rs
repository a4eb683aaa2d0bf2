//! What workers read: limits that an operator sets, and what they tell of themselves without being
//! asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The four kinds of reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// IPv4, in full.
    Full4,
    /// IPv6, in full.
    Full6,
    /// IPv4, virtual.
    Virtual4,
    /// IPv6, virtual.
    Virtual6,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Full4, Kind::Full6, Kind::Virtual4, Kind::Virtual6];

    pub const fn of(is_virtual: bool, is_six: bool) -> Kind {
        Kind::ALL[is_virtual as usize * 2 + is_six as usize]
    }

    /// The node that keeps fragments.
    pub const fn node(self) -> &'static str {
        ["ip4-full-reassembly", "ip6-full-reassembly", "ip4-sv-reassembly", "ip6-sv-reassembly"]
            [self as usize]
    }

    /// The feature in the arc that sends fragments there.
    pub const fn feature(self) -> &'static str {
        [
            "ip4-full-reassembly-feature",
            "ip6-full-reassembly-feature",
            "ip4-sv-reassembly-feature",
            "ip6-sv-reassembly-feature",
        ][self as usize]
    }

    pub const fn is_six(self) -> bool {
        matches!(self, Kind::Full6 | Kind::Virtual6)
    }

    pub const fn is_virtual(self) -> bool {
        matches!(self, Kind::Virtual4 | Kind::Virtual6)
    }

    /// The arc that the feature stands in.
    pub const fn arc(self) -> &'static str {
        if self.is_six() { "ip6-unicast" } else { "ip4-unicast" }
    }
}

/// Limits of one kind that do not change what memory there is.
#[derive(Debug)]
pub(crate) struct Limits {
    timeout_ns: AtomicU64,
    fragments: AtomicU32,
}

impl Limits {
    pub fn new(timeout_ms: u64, fragments: u32) -> Limits {
        let limits = Limits { timeout_ns: AtomicU64::new(0), fragments: AtomicU32::new(0) };
        limits.set(timeout_ms, fragments);
        limits
    }

    pub fn set(&self, timeout_ms: u64, fragments: u32) {
        self.timeout_ns.store(timeout_ms * 1_000_000, Ordering::Relaxed);
        self.fragments.store(fragments, Ordering::Relaxed);
    }

    pub fn timeout_ns(&self) -> u64 {
        self.timeout_ns.load(Ordering::Relaxed)
    }

    pub fn fragments(&self) -> u32 {
        self.fragments.load(Ordering::Relaxed)
    }
}

/// What one worker's node says of itself. The worker alone writes.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Gauge {
    /// Packets under way.
    pub packets: AtomicUsize,
    /// Buffers that hold their fragments.
    pub buffers: AtomicUsize,
}

/// How many buffers the nodes of one worker hold together, and how many they may. The worker alone
/// writes the first, the control thread the second.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Budget {
    held: AtomicUsize,
    limit: AtomicUsize,
}

impl Budget {
    pub fn set_limit(&self, buffers: usize) {
        self.limit.store(buffers, Ordering::Relaxed);
    }

    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Could so many more be held?
    pub fn has_room(&self, buffers: usize) -> bool {
        self.held() + buffers <= self.limit.load(Ordering::Relaxed)
    }

    fn add(&self, buffers: usize) {
        self.held.store(self.held().wrapping_add(buffers), Ordering::Relaxed);
    }
}

/// A node's count of the buffers that it holds.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    pub gauge: Arc<Gauge>,
    pub budget: Arc<Budget>,
}

impl Holding {
    /// So many more (or, wrapped, fewer) buffers are held.
    fn add(&self, buffers: usize) {
        let now = self.gauge.buffers.load(Ordering::Relaxed).wrapping_add(buffers);
        self.gauge.buffers.store(now, Ordering::Relaxed);
        self.budget.add(buffers);
    }

    pub fn take(&self, buffers: usize) {
        self.add(buffers);
    }

    pub fn give(&self, buffers: usize) {
        self.add(buffers.wrapping_neg());
    }

    pub fn set_packets(&self, packets: usize) {
        self.gauge.packets.store(packets, Ordering::Relaxed);
    }
}

/// All that nodes are made with.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Spreads packets over workers and buckets.
    pub seed: u64,
    /// By kind.
    pub limits: [Limits; 4],
    /// By worker, then by kind.
    pub gauges: Box<[[Arc<Gauge>; 4]]>,
    /// By worker.
    pub budgets: Box<[Arc<Budget>]>,
}

impl Shared {
    pub fn holding(&self, worker: usize, kind: Kind) -> Holding {
        Holding {
            gauge: self.gauges[worker][kind as usize].clone(),
            budget: self.budgets[worker].clone(),
        }
    }

    pub fn workers(&self) -> usize {
        self.budgets.len()
    }

    /// Packets under way, of all workers.
    pub fn packets(&self, kind: Kind) -> usize {
        self.gauges
            .iter()
            .map(|of_worker| of_worker[kind as usize].packets.load(Ordering::Relaxed))
            .sum()
    }

    /// Buffers held, of all workers.
    pub fn buffers(&self, kind: Kind) -> usize {
        self.gauges
            .iter()
            .map(|of_worker| of_worker[kind as usize].buffers.load(Ordering::Relaxed))
            .sum()
    }
}
