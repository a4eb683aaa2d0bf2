//! The panes as tables: columns, values, order. The screen and the plain text show the same ones.

use super::rates::{Interface, Node, Picture, Reason, Worker};

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    Nodes,
    Interfaces,
    Workers,
    Drops,
}

impl Pane {
    /// All, in the order of their keys 1 to 4.
    pub const ALL: [Pane; 4] = [Pane::Nodes, Pane::Interfaces, Pane::Workers, Pane::Drops];

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Pane::Nodes => "Nodes",
            Pane::Interfaces => "Interfaces",
            Pane::Workers => "Workers",
            Pane::Drops => "Drops",
        }
    }

    /// Its columns; the first is the name that a filter looks at.
    pub fn columns(self) -> &'static [Column] {
        match self {
            Pane::Nodes => &NODES,
            Pane::Interfaces => &INTERFACES,
            Pane::Workers => &WORKERS,
            Pane::Drops => &DROPS,
        }
    }

    /// The column that it is sorted by until the user says otherwise.
    pub fn sorted_by(self) -> usize {
        match self {
            Pane::Nodes => 5,
            Pane::Interfaces => 0,
            Pane::Workers => 0,
            Pane::Drops => 1,
        }
    }
}

/// A column.
pub struct Column {
    pub title: &'static str,
    /// Characters that it takes; the rest of the line is the widest column's.
    pub width: u16,
    pub is_number: bool,
}

const fn text(title: &'static str, width: u16) -> Column {
    Column { title, width, is_number: false }
}

const fn number(title: &'static str, width: u16) -> Column {
    Column { title, width, is_number: true }
}

const NODES: [Column; 6] = [
    text("Node", 26),
    number("Calls/s", 9),
    number("Packets/s", 10),
    number("Pkts/call", 10),
    number("Clocks/pkt", 11),
    number("Share", 8),
];
const INTERFACES: [Column; 8] = [
    text("Interface", 18),
    text("State", 7),
    number("Rx pkt/s", 9),
    number("Rx bit/s", 9),
    number("Tx pkt/s", 9),
    number("Tx bit/s", 9),
    number("Drops/s", 8),
    number("Err/s", 8),
];
const WORKERS: [Column; 8] = [
    text("Worker", 10),
    number("Core", 5),
    text("State", 15),
    number("Busy", 7),
    text("", 14),
    number("Loops/s", 9),
    number("Pkts/call", 10),
    number("Sleeps/s", 9),
];
const DROPS: [Column; 4] = [text("Node", 22), number("Per s", 9), number("Count", 11), text("Reason", 38)];

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    /// A rate or a count, shown with k, M, G.
    Rate(f64),
    /// A plain number with one digit behind the point; nothing when there is none.
    Plain(Option<f64>),
    /// A number that names something.
    Number(Option<u64>),
    /// 0 to 1, shown as per cent.
    Share(f64),
}

impl Value {
    /// As it is shown.
    pub fn show(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Rate(value) => scaled(*value),
            Value::Plain(Some(value)) => format!("{value:.1}"),
            Value::Number(Some(number)) => number.to_string(),
            Value::Plain(None) | Value::Number(None) => "-".to_owned(),
            Value::Share(share) => format!("{:.1} %", 100.0 * share),
        }
    }

    /// Numbers first the largest, names by the alphabet.
    fn before(&self, other: &Value) -> std::cmp::Ordering {
        let weight = |value: &Value| match value {
            Value::Text(_) => 0.0,
            Value::Rate(value) | Value::Share(value) => *value,
            Value::Plain(value) => value.unwrap_or(-1.0),
            Value::Number(number) => number.map_or(-1.0, |number| number as f64),
        };
        match (self, other) {
            (Value::Text(one), Value::Text(two)) => one.cmp(two),
            _ => weight(other).total_cmp(&weight(self)),
        }
    }
}

/// `0`, `7.3`, `950`, `12.3k`, `41.8M`, `1.2G`.
pub fn scaled(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let mut value = value.max(0.0);
    let mut unit = 0;
    // 999.95 would round to 1000.0.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match value {
        0.0 => "0".to_owned(),
        value if unit == 0 && value >= 99.95 => format!("{value:.0}"),
        value => format!("{value:.1}{}", UNITS[unit]),
    }
}

/// What of a picture is wanted.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Names contain this, in any case.
    pub filter: String,
    /// Nodes of this worker; of all together without one.
    pub worker: Option<usize>,
    /// Rows too in which nothing happened.
    pub idle: bool,
    /// What nodes counted without a packet's death, too.
    pub events: bool,
    /// Column to sort by, and whether backwards.
    pub order: Option<(usize, bool)>,
}

/// The rows of a pane.
pub fn rows(pane: Pane, picture: &Picture, choice: &Choice) -> Vec<Vec<Value>> {
    let filter = choice.filter.to_lowercase();
    let mut rows: Vec<Vec<Value>> = match pane {
        Pane::Nodes => {
            let nodes = picture.nodes_of(choice.worker);
            nodes.iter().filter(|n| choice.idle || n.calls_per_s > 0.0).map(node_row).collect()
        }
        Pane::Interfaces => picture.interfaces.iter().map(interface_row).collect(),
        Pane::Workers => picture.workers.iter().map(worker_row).collect(),
        Pane::Drops => {
            let wanted =
                |r: &&Reason| (choice.events || r.is_drop) && (choice.idle || r.per_s > 0.0 || r.count > 0);
            picture.reasons.iter().filter(wanted).map(reason_row).collect()
        }
    };
    let has = |value: &Value| matches!(value, Value::Text(text) if text.to_lowercase().contains(&filter));
    rows.retain(|row| filter.is_empty() || has(&row[0]) || (pane == Pane::Drops && row.iter().any(has)));
    let (column, backwards) = choice.order.unwrap_or((pane.sorted_by(), false));
    rows.sort_by(|one, two| {
        let order = match (one.get(column), two.get(column)) {
            (Some(one), Some(two)) => one.before(two),
            _ => std::cmp::Ordering::Equal,
        };
        if backwards { order.reverse() } else { order }
    });
    rows
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
    (0..BAR_CHARS).fold("[".to_owned(), |bar, place| bar + if place < full { "#" } else { "." }) + "]"
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

/// Text from the router, safe for a terminal: no control characters, and only ASCII where the terminal
/// does not speak UTF-8.
pub fn clean(text: &str, utf8: bool) -> String {
    let safe = |c: char| if c.is_control() || !(utf8 || c.is_ascii()) { '?' } else { c };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_into_their_columns() {
        for (value, shown) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (99.94, "99.9"),
            (950.4, "950"),
            (999.96, "1.0k"),
            (12_345.0, "12.3k"),
            (41.8e6, "41.8M"),
            (999.96e9, "1.0T"),
            (1.2e15, "1200.0T"),
            (-3.0, "0"),
        ] {
            assert_eq!(scaled(value), shown);
        }
    }

    #[test]
    fn what_the_router_says_cannot_steer_the_terminal() {
        assert_eq!(clean("e0\x1b[2J\n", true), "e0?[2J?");
        assert_eq!(clean("größe", true), "größe");
        assert_eq!(clean("größe", false), "gr??e");
    }

    #[test]
    fn lines_of_every_pane_fit_into_80_characters() {
        for pane in Pane::ALL {
            let columns = pane.columns();
            let width: u16 = columns.iter().map(|c| c.width).sum();
            assert!(width <= 80, "{}: {width}", pane.title());
        }
    }
}
