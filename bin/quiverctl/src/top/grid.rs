//! What the router does, as tables.

use quiver_screen::{Choice, Column, Pane, Value, View, number, scaled, words};

use super::rates::{Interface, Node, Picture, Reason, Worker};
use super::snapshot::Snapshot;

const DROPS_PANE: usize = 3;

const NODES: [Column; 6] = [
    words("Node", 26),
    number("Calls/s", 9),
    number("Packets/s", 10),
    number("Pkts/call", 10),
    number("Clocks/pkt", 11),
    number("Share", 8),
];
const INTERFACES: [Column; 8] = [
    words("Interface", 18),
    words("State", 7),
    number("Rx pkt/s", 9),
    number("Rx bit/s", 9),
    number("Tx pkt/s", 9),
    number("Tx bit/s", 9),
    number("Drops/s", 8),
    number("Err/s", 8),
];
const WORKERS: [Column; 8] = [
    words("Worker", 10),
    number("Core", 5),
    words("State", 15),
    number("Busy", 7),
    words("", 14),
    number("Loops/s", 9),
    number("Pkts/call", 10),
    number("Sleeps/s", 9),
];
const DROPS: [Column; 4] =
    [words("Node", 22), number("Per s", 9), number("Count", 11), words("Reason", 38)];

impl View for Picture {
    type Snapshot = Snapshot;
    const PROGRAM: &'static str = "quiverctl top";
    const PEER: &'static str = "router";
    const PANES: &'static [Pane] = &[
        Pane { title: "Nodes", columns: &NODES, sorted_by: 5 },
        Pane { title: "Interfaces", columns: &INTERFACES, sorted_by: 0 },
        Pane { title: "Workers", columns: &WORKERS, sorted_by: 0 },
        Pane { title: "Drops", columns: &DROPS, sorted_by: 1 },
    ];
    const KEYS: &'static str =
        "? help  Tab pane  s sort  / filter  w worker  p pause  +- interval  q quit";
    const HELP: &'static [&'static str] = &[
        "Tab, 1-4     next pane, or this one",
        "s, r         sort by the next column; reverse",
        "/            filter by name (Enter keeps, Esc clears)",
        "w            nodes of all workers, or of one",
        "a            also what stands still",
        "e            also events, which drop no packet",
        "p, Space     let the picture stand still",
        "+ -          longer or shorter interval",
        "j k, arrows  scroll; PgUp, PgDn, Home, End too",
        "q, Ctrl-C    leave",
        "",
        "Share: of a worker's time. Busy: of it, what was not",
        "spent on asking empty queues. Bits: of layer 2,",
        "without FCS.",
    ];

    fn between(before: &Snapshot, now: &Snapshot) -> Option<Picture> {
        Picture::between(before, now)
    }

    fn rows(&self, pane: usize, choice: &Choice) -> Vec<Vec<Value>> {
        match pane {
            0 => {
                let nodes = self.nodes_of(choice.part);
                nodes.iter().filter(|n| choice.idle || n.calls_per_s > 0.0).map(node_row).collect()
            }
            1 => self.interfaces.iter().map(interface_row).collect(),
            2 => self.workers.iter().map(worker_row).collect(),
            _ => {
                let wanted = |r: &&Reason| {
                    (choice.events || r.is_drop) && (choice.idle || r.per_s > 0.0 || r.count > 0)
                };
                self.reasons.iter().filter(wanted).map(reason_row).collect()
            }
        }
    }

    fn totals(&self) -> String {
        let total = &self.total;
        let busiest = self.workers.iter().map(|worker| worker.busy).fold(0.0, f64::max);
        format!(
            "rx {} pkt/s {} bit/s  tx {} pkt/s {} bit/s  drop {}/s  busy {:.0} %",
            scaled(total.rx_pps),
            scaled(total.rx_bps),
            scaled(total.tx_pps),
            scaled(total.tx_bps),
            scaled(self.deaths_per_s()),
            100.0 * busiest
        )
    }

    fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    fn alert(&self) -> Option<String> {
        let stalled = |w: &Worker| {
            Some(format!("worker {} STALLS for {:.0} s {}", w.worker, w.stalled_s?, w.at))
        };
        let all: Vec<String> = self.workers.iter().filter_map(stalled).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    fn parts(&self) -> usize {
        self.workers.len()
    }

    fn filters_all_columns(pane: usize) -> bool {
        pane == DROPS_PANE
    }
}

fn node_row(node: &Node) -> Vec<Value> {
    vec![
        Value::Text(node.name.clone()),
        Value::Rate(node.calls_per_s),
        Value::Rate(node.pps),
        Value::Plain(Some(node.packets_per_call)),
        Value::Plain((node.pps > 0.0).then_some(node.clocks_per_packet)),
        Value::Share(node.share),
    ]
}

fn interface_row(interface: &Interface) -> Vec<Value> {
    let traffic = &interface.traffic;
    let state = match (interface.state.as_str(), interface.link.as_str()) {
        ("up", "down") => "no link",
        (state, _) => state,
    };
    vec![
        Value::Text(interface.name.clone()),
        Value::Text(state.to_owned()),
        Value::Rate(traffic.rx_pps),
        Value::Rate(traffic.rx_bps),
        Value::Rate(traffic.tx_pps),
        Value::Rate(traffic.tx_bps),
        Value::Rate(traffic.drops_pps),
        Value::Rate(traffic.errors_pps),
    ]
}

/// Characters of the bar of a busy share.
const BAR_CHARS: usize = 10;

fn bar(share: f64) -> String {
    let full = (share * BAR_CHARS as f64).round() as usize;
    (0..BAR_CHARS).fold("[".to_owned(), |bar, place| bar + if place < full { "#" } else { "." })
        + "]"
}

fn worker_row(worker: &Worker) -> Vec<Value> {
    let state = match worker.stalled_s {
        Some(stalled_s) => format!("STALLED {stalled_s:.0} s"),
        None => worker.state.clone(),
    };
    vec![
        Value::Text(format!("worker {}", worker.worker)),
        Value::Number(worker.core),
        Value::Text(state),
        Value::Share(worker.busy),
        Value::Text(bar(worker.busy)),
        Value::Rate(worker.passes_per_s),
        Value::Plain(Some(worker.packets_per_call)),
        Value::Rate(worker.sleeps_per_s),
    ]
}

fn reason_row(reason: &Reason) -> Vec<Value> {
    vec![
        Value::Text(reason.node.clone()),
        Value::Rate(reason.per_s),
        Value::Rate(reason.count as f64),
        Value::Text(reason.text.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_pane_fit_into_80_characters() {
        for pane in Picture::PANES {
            let width: u16 = pane.columns.iter().map(|c| c.width).sum();
            assert!(width <= 80, "{}: {width}", pane.title);
        }
    }
}
