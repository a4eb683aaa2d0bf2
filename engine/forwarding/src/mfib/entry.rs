//! A multicast route as workers see it: where packets may come from, and where copies go.

use std::sync::Arc;

use quiver_core::graph::counters::PerWorker;
use quiver_core::{InterfaceId, NodeId, WorkerId};

use crate::adjacency::REWRITE_BYTES_MAX;

/// What all workers counted of a route: packets, bytes, packets rejected.
pub struct RouteCounts(PerWorker<3>);

impl RouteCounts {
    /// For so many workers.
    pub(super) fn new(workers: usize) -> RouteCounts {
        RouteCounts(PerWorker::new(workers))
    }

    /// A packet of so many bytes came from where it may.
    #[inline]
    pub fn accepted(&self, worker: WorkerId, (came, came_bytes): (u64, u64)) {
        let [packets, bytes, _] = self.0.of(worker);
        packets.add(came);
        bytes.add(came_bytes);
    }

    /// A packet came from where it may not (reverse path).
    #[inline]
    pub fn rejected(&self, worker: WorkerId, came: u64) {
        let [.., rejected] = self.0.of(worker);
        rejected.add(came);
    }

    /// The sums over all workers.
    pub fn totals(&self) -> RouteTotals {
        let [packets, bytes, rejected] = self.0.sums();
        RouteTotals { packets, bytes, rejected }
    }
}

/// What was counted of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteTotals {
    /// Packets that came from where they may.
    pub packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// Packets that came from elsewhere.
    pub rejected: u64,
}

/// Where a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// The interface that sends.
    pub tx: InterfaceId,
    /// Its output node.
    pub output: NodeId,
    /// Longest IP packet that it sends, bytes.
    pub mtu_bytes: u16,
    /// Packets with a TTL or hop limit of no more than this stay here.
    pub ttl_threshold: u8,
    /// Bytes of the layer 2 header.
    pub header_len: u8,
    /// The layer 2 header, right-aligned. Its first bytes are the group's MAC address, of which the
    /// last four (IPv4: three) are the packet's own.
    pub header: [u8; REWRITE_BYTES_MAX],
}

impl Output {
    /// Put the layer 2 header for `group` into a block of 32 bytes, right-aligned.
    #[inline]
    pub fn header_for(&self, group_mac: [u8; 6]) -> [u8; REWRITE_BYTES_MAX] {
        let mut header = self.header;
        let start = REWRITE_BYTES_MAX - usize::from(self.header_len).min(REWRITE_BYTES_MAX);
        if let Some(place) = header.get_mut(start..start + 6) {
            place.copy_from_slice(&group_mac);
        }
        header
    }
}

/// A multicast route as workers see it.
pub struct Entry {
    /// Packets may come in here, in order of number.
    pub accept: Box<[InterfaceId]>,
    /// Packets may come in anywhere.
    pub accept_all: bool,
    /// The router itself gets a copy.
    pub local: bool,
    /// Packets are dropped here.
    pub drop: bool,
    /// The control thread hears of packets.
    pub signal: bool,
    /// Where copies go; only interfaces that can send now.
    pub outputs: Box<[Output]>,
    /// What is counted of it.
    pub counts: Arc<RouteCounts>,
}

impl Entry {
    /// May a packet come in here (reverse path check)?
    #[inline]
    pub fn accepts(&self, rx: InterfaceId) -> bool {
        self.accept_all || self.accept.contains(&rx)
    }
}
