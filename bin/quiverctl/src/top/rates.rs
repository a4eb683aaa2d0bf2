//! Rates: the difference between two snapshots.

use std::collections::BTreeMap;

use serde::Serialize;

use super::snapshot::{self, Snapshot};

/// What happened between two moments, per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Picture {
    /// Between the two, seconds.
    pub elapsed_s: f64,
    /// All interfaces together.
    pub total: Traffic,
    pub workers: Vec<Worker>,
    /// By worker, then by name.
    pub nodes: Vec<Node>,
    pub interfaces: Vec<Interface>,
    pub reasons: Vec<Reason>,
}

/// Packets and bits, from the first byte of layer 2, without FCS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Traffic {
    pub rx_pps: f64,
    pub rx_bps: f64,
    pub tx_pps: f64,
    pub tx_bps: f64,
    /// Packets that were dropped.
    pub drops_pps: f64,
    /// Frames that a device could not receive or send.
    pub errors_pps: f64,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Worker {
    pub worker: usize,
    pub core: Option<u64>,
    pub state: String,
    pub at: String,
    pub stalled_s: Option<f64>,
    pub stalls: u64,
    /// Share of the time spent on packets, 0 to 1.
    pub busy: f64,
    pub passes_per_s: f64,
    /// Packets that a node between input and output is given at once.
    pub packets_per_call: f64,
    pub sleeps_per_s: f64,
}

/// A node on one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Node {
    pub worker: usize,
    pub name: String,
    pub calls_per_s: f64,
    pub pps: f64,
    pub packets_per_call: f64,
    pub clocks_per_packet: f64,
    /// Of the worker's time, 0 to 1.
    pub share: f64,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interface {
    pub name: String,
    pub state: String,
    pub link: String,
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// Why packets die.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reason {
    pub node: String,
    pub reason: String,
    pub text: String,
    pub is_drop: bool,
    /// Since the last `clear errors`.
    pub count: u64,
    pub per_s: f64,
}

/// How much a counter grew; after it was cleared, from nothing.
fn grown(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

fn ratio(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

impl Picture {
    /// What happened from `before` to `now`; `None` when no time has passed.
    pub fn between(before: &Snapshot, now: &Snapshot) -> Option<Picture> {
        let elapsed_ns = now.at_ns.checked_sub(before.at_ns).filter(|ns| *ns > 0)?;
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let clocks = (elapsed_s * now.clocks_per_s).max(1.0);
        let interfaces = interfaces(before, now, elapsed_s);
        let total = interfaces.iter().fold(Traffic::default(), |sum, i| sum.plus(&i.traffic));
        Some(Picture {
            elapsed_s,
            total,
            workers: workers(before, now, elapsed_s, clocks),
            nodes: nodes(before, now, elapsed_s, clocks),
            interfaces,
            reasons: reasons(before, now, elapsed_s),
        })
    }

    /// The nodes of one worker, or of all together; a share is then of all workers' time.
    pub fn nodes_of(&self, worker: Option<usize>) -> Vec<Node> {
        let Some(worker) = worker else { return self.nodes_together() };
        self.nodes.iter().filter(|node| node.worker == worker).cloned().collect()
    }

    fn nodes_together(&self) -> Vec<Node> {
        let mut all: BTreeMap<&str, Node> = BTreeMap::new();
        for node in &self.nodes {
            let sum = all
                .entry(&node.name)
                .or_insert_with(|| Node { name: node.name.clone(), ..Node::default() });
            // Sums first: what is per packet or per call is weighed by packets and calls.
            sum.clocks_per_packet += node.clocks_per_packet * node.pps;
            sum.calls_per_s += node.calls_per_s;
            sum.pps += node.pps;
            sum.share += node.share / self.workers.len().max(1) as f64;
        }
        let of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let nodes = all.into_values().map(|sum| Node {
            packets_per_call: of(sum.pps, sum.calls_per_s),
            clocks_per_packet: of(sum.clocks_per_packet, sum.pps),
            ..sum
        });
        nodes.collect()
    }

    /// Why packets were dropped: the drops per second, all reasons together.
    pub fn deaths_per_s(&self) -> f64 {
        self.reasons.iter().filter(|reason| reason.is_drop).map(|reason| reason.per_s).sum()
    }
}

impl Traffic {
    fn plus(self, other: &Traffic) -> Traffic {
        Traffic {
            rx_pps: self.rx_pps + other.rx_pps,
            rx_bps: self.rx_bps + other.rx_bps,
            tx_pps: self.tx_pps + other.tx_pps,
            tx_bps: self.tx_bps + other.tx_bps,
            drops_pps: self.drops_pps + other.drops_pps,
            errors_pps: self.errors_pps + other.errors_pps,
        }
    }
}

fn workers(before: &Snapshot, now: &Snapshot, elapsed_s: f64, clocks: f64) -> Vec<Worker> {
    let none = snapshot::Worker::default();
    let all = now.workers.iter().enumerate().map(|(index, w)| {
        let old = before.workers.get(index).unwrap_or(&none);
        let worked = grown(w.node_clocks, old.node_clocks);
        let busy = worked.saturating_sub(grown(w.idle_clocks, old.idle_clocks)) as f64 / clocks;
        Worker {
            worker: index,
            core: w.core,
            state: w.state.clone(),
            at: w.at.clone(),
            stalled_s: w.stalled_s,
            stalls: w.stalls,
            busy: busy.min(1.0),
            passes_per_s: grown(w.passes, old.passes) as f64 / elapsed_s,
            packets_per_call: ratio(grown(w.packets, old.packets), grown(w.calls, old.calls)),
            sleeps_per_s: grown(w.sleeps, old.sleeps) as f64 / elapsed_s,
        }
    });
    all.collect()
}

fn nodes(before: &Snapshot, now: &Snapshot, elapsed_s: f64, clocks: f64) -> Vec<Node> {
    let all = now.nodes.iter().map(|(key, node)| {
        let old = before.nodes.get(key).copied().unwrap_or_default();
        let (calls, packets) = (grown(node.calls, old.calls), grown(node.packets, old.packets));
        let worked = grown(node.clocks, old.clocks);
        Node {
            worker: key.0,
            name: key.1.clone(),
            calls_per_s: calls as f64 / elapsed_s,
            pps: packets as f64 / elapsed_s,
            packets_per_call: ratio(packets, calls),
            clocks_per_packet: ratio(worked, packets),
            share: (worked as f64 / clocks).min(1.0),
        }
    });
    all.collect()
}

fn interfaces(before: &Snapshot, now: &Snapshot, elapsed_s: f64) -> Vec<Interface> {
    let none = snapshot::Interface::default();
    let all = now.interfaces.iter().map(|(name, i)| {
        let old = before.interfaces.get(name).unwrap_or(&none);
        let rate = |now: u64, before: u64| grown(now, before) as f64 / elapsed_s;
        let traffic = Traffic {
            rx_pps: rate(i.rx_packets, old.rx_packets),
            rx_bps: 8.0 * rate(i.rx_bytes, old.rx_bytes),
            tx_pps: rate(i.tx_packets, old.tx_packets),
            tx_bps: 8.0 * rate(i.tx_bytes, old.tx_bytes),
            drops_pps: rate(i.drops, old.drops),
            errors_pps: rate(i.errors, old.errors),
        };
        Interface { name: name.clone(), state: i.state.clone(), link: i.link.clone(), traffic }
    });
    all.collect()
}

fn reasons(before: &Snapshot, now: &Snapshot, elapsed_s: f64) -> Vec<Reason> {
    let all = now.reasons.iter().map(|(key, reason)| {
        let old = before.reasons.get(key).map_or(0, |old| old.count);
        Reason {
            node: key.0.clone(),
            reason: key.1.clone(),
            text: reason.text.clone(),
            is_drop: reason.is_drop,
            count: reason.count,
            per_s: grown(reason.count, old) as f64 / elapsed_s,
        }
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(at_ns: u64, packets: u64, clocks: u64) -> Snapshot {
        let node = snapshot::Node { calls: packets / 100, packets, clocks };
        let worker =
            snapshot::Worker { node_clocks: clocks, idle_clocks: clocks / 2, ..Default::default() };
        let interface = snapshot::Interface {
            rx_packets: packets,
            rx_bytes: 64 * packets,
            ..Default::default()
        };
        Snapshot {
            at_ns,
            clocks_per_s: 1e9,
            workers: vec![worker.clone(), worker],
            nodes: [((0, "a".to_owned()), node), ((1, "a".to_owned()), node)].into(),
            interfaces: [("e0".to_owned(), interface)].into(),
            reasons: BTreeMap::new(),
        }
    }

    #[test]
    fn rates_are_differences_over_the_routers_own_time() {
        let (before, now) = (snapshot(0, 1000, 1_000), snapshot(500_000_000, 6000, 250_001_000));
        let picture = Picture::between(&before, &now).unwrap();
        assert_eq!(picture.interfaces[0].traffic.rx_pps, 10_000.0);
        assert_eq!(picture.total.rx_bps, 10_000.0 * 64.0 * 8.0);
        let node = &picture.nodes[0];
        assert_eq!(
            (node.pps, node.packets_per_call, node.clocks_per_packet),
            (10_000.0, 100.0, 50_000.0)
        );
        assert_eq!((node.share, picture.workers[0].busy), (0.5, 0.25));
    }

    #[test]
    fn nodes_of_all_workers_are_weighed_by_their_packets() {
        let mut now = snapshot(1_000_000_000, 1000, 100_000);
        now.nodes.insert(
            (1, "a".to_owned()),
            snapshot::Node { calls: 10, packets: 3000, clocks: 900_000 },
        );
        let picture = Picture::between(&snapshot(0, 0, 0), &now).unwrap();
        let together = &picture.nodes_of(None)[0];
        assert_eq!((together.pps, together.clocks_per_packet), (4000.0, 250.0));
        assert_eq!(together.packets_per_call, 200.0);
        assert_eq!(picture.nodes_of(Some(1))[0].clocks_per_packet, 300.0);
    }

    #[test]
    fn a_counter_that_was_cleared_counts_from_nothing() {
        let picture =
            Picture::between(&snapshot(0, 5000, 0), &snapshot(1_000_000_000, 70, 0)).unwrap();
        assert_eq!(picture.interfaces[0].traffic.rx_pps, 70.0);
    }

    #[test]
    fn without_time_between_them_there_is_no_picture() {
        assert_eq!(Picture::between(&snapshot(5, 0, 0), &snapshot(5, 1, 0)), None);
        assert_eq!(Picture::between(&snapshot(5, 0, 0), &snapshot(4, 1, 0)), None);
    }
}
