//! What the router had counted at one moment, as its shows tell it.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// The commands whose answers make a snapshot, executed as one script, so that they tell of one
/// moment.
pub const COMMANDS: &str = "show workers\nshow runtime\nshow interface\nshow errors\n";

/// All counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// On the router's clock, nanoseconds.
    pub at_ns: u64,
    /// The time stamp counter's speed, clocks per second.
    pub clocks_per_s: f64,
    /// Workers by their place.
    pub workers: Vec<Worker>,
    /// What each node did, by worker and name.
    pub nodes: BTreeMap<(usize, String), Node>,
    /// Interfaces by name.
    pub interfaces: BTreeMap<String, Interface>,
    /// Reasons by node and short name.
    pub reasons: BTreeMap<(String, String), Reason>,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worker {
    pub core: Option<u64>,
    /// `running`, `asleep`, `stalled`.
    pub state: String,
    /// Where it is, in words.
    pub at: String,
    pub stalled_s: Option<f64>,
    pub stalls: u64,
    pub passes: u64,
    pub sleeps: u64,
    /// Clocks of all its nodes.
    pub node_clocks: u64,
    /// Of these, spent on asking queues that had nothing.
    pub idle_clocks: u64,
    /// Calls of nodes between inputs and outputs.
    pub calls: u64,
    /// Packets that these calls were given.
    pub packets: u64,
}

/// A node's work on one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Node {
    pub calls: u64,
    pub packets: u64,
    pub clocks: u64,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// `up` or `down`, as the operator set it.
    pub state: String,
    pub link: String,
    pub rx_packets: u64,
    pub rx_bytes: u64,
    pub tx_packets: u64,
    pub tx_bytes: u64,
    /// Received here, and dropped in the graph.
    pub drops: u64,
    /// Not received or not sent: no buffer, a broken frame, a full ring.
    pub errors: u64,
}

/// Why packets were dropped, or what a node counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reason {
    pub count: u64,
    pub text: String,
    /// A packet was dropped.
    pub is_drop: bool,
}

fn number(object: &Json, key: &str) -> u64 {
    object[key].as_u64().unwrap_or(0)
}

fn text(object: &Json, key: &str) -> String {
    object[key].as_str().unwrap_or_default().to_owned()
}

fn list<'a>(object: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    object[key].as_array().into_iter().flatten()
}

impl Snapshot {
    /// Read the answers to [`COMMANDS`]. What is missing counts as nothing; `None` when it is not
    /// the answers of a router at all.
    pub fn read(answers: &[Json]) -> Option<Snapshot> {
        let [workers, runtime, interfaces, errors] = answers else { return None };
        Some(Snapshot {
            at_ns: workers["now_ns"].as_u64()?,
            clocks_per_s: workers["clocks_per_s"].as_f64()?,
            workers: list(workers, "workers").map(worker).collect(),
            nodes: nodes(runtime),
            interfaces: list(interfaces, "interfaces")
                .map(|i| (text(i, "name"), interface(i)))
                .collect(),
            reasons: list(errors, "errors")
                .map(|reason| {
                    let value = Reason {
                        count: number(reason, "count"),
                        text: text(reason, "text"),
                        is_drop: reason["severity"] == "error",
                    };
                    ((text(reason, "node"), text(reason, "reason")), value)
                })
                .collect(),
        })
    }
}

fn worker(worker: &Json) -> Worker {
    Worker {
        core: worker["core"].as_u64(),
        state: text(worker, "state"),
        at: place(worker),
        stalled_s: worker["stalled_s"].as_f64(),
        stalls: number(worker, "stalls"),
        passes: number(worker, "passes"),
        sleeps: number(worker, "sleeps"),
        node_clocks: number(worker, "node_clocks"),
        idle_clocks: number(worker, "idle_clocks"),
        calls: number(worker, "internal_calls"),
        packets: number(worker, "internal_packets"),
    }
}

/// Where a worker is, in words.
fn place(worker: &Json) -> String {
    match worker["activity"].as_str().unwrap_or_default() {
        "node" => format!("in node {}", text(worker, "node")),
        "worker_call" => "in a worker call of the control thread".to_owned(),
        "starting" => "before its first pass".to_owned(),
        other => other.to_owned(),
    }
}

fn nodes(runtime: &Json) -> BTreeMap<(usize, String), Node> {
    let threads = list(runtime, "threads").enumerate();
    let all =
        threads.flat_map(|(worker, thread)| list(thread, "nodes").map(move |node| (worker, node)));
    all.map(|(worker, node)| {
        let value = Node {
            calls: number(node, "calls"),
            packets: number(node, "vectors"),
            clocks: number(node, "clocks"),
        };
        ((worker, text(node, "name")), value)
    })
    .collect()
}

fn interface(interface: &Json) -> Interface {
    let counters = &interface["counters"];
    Interface {
        state: text(interface, "state"),
        link: text(interface, "link"),
        rx_packets: number(counters, "rx_packets"),
        rx_bytes: number(counters, "rx_bytes"),
        tx_packets: number(counters, "tx_packets"),
        tx_bytes: number(counters, "tx_bytes"),
        drops: number(counters, "drops"),
        errors: ["rx_no_buffer", "rx_error", "tx_error"]
            .iter()
            .map(|key| number(counters, key))
            .sum(),
    }
}
