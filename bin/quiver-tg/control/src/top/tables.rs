//! Tables of `top`: streams, ports, transactions.

use quiver_screen::{Choice, Column, Pane, Value, View, number, scaled, words};
use serde::Serialize;
use serde_json::Value as Json;

const STREAMS: [Column; 9] = [
    words("Stream", 12),
    words("Ports", 9),
    number("Meant", 9),
    number("Sent/s", 9),
    number("Back/s", 9),
    number("Missing", 9),
    number("Share", 8),
    number("p50 us", 7),
    number("p99 us", 8),
];
const TRANSACTIONS: [Column; 9] = [
    words("Side", 8),
    number("Begun/s", 8),
    number("Good/s", 8),
    number("Open", 8),
    number("Begun", 9),
    number("Good", 9),
    number("Failed", 8),
    number("Resent", 8),
    words("  Why", 14),
];
const PORTS: [Column; 8] = [
    words("Port", 16),
    words("Link", 6),
    number("Tx frm/s", 10),
    number("Tx bit/s", 9),
    number("Rx frm/s", 10),
    number("Rx bit/s", 9),
    number("Full/s", 9),
    number("Rx frames", 11),
];

/// Between two looks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Picture {
    /// Between the two, seconds.
    pub elapsed_s: f64,
    /// Its state.
    pub state: String,
    /// The measurement's number.
    pub measurement: u64,
    /// How far it is, seconds.
    pub at_s: Option<f64>,
    /// Streams.
    pub streams: Vec<Stream>,
    /// Ports.
    pub ports: Vec<Port>,
    /// Clients and servers, where transactions are measured.
    pub sides: Option<Vec<Side>>,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stream {
    /// Its name, or its number.
    pub name: String,
    /// The port that sends, and the one that receives.
    pub ports: (u64, u64),
    /// Frames a second that are meant to be sent; none flat out.
    pub rate_pps: Option<f64>,
    /// It pauses.
    pub is_paused: bool,
    /// Made a second.
    pub sent_pps: f64,
    /// Came back a second.
    pub received_pps: f64,
    /// Made and not back, since the measurement began.
    pub missing: u64,
    /// Of all that were made, 0 to 1.
    pub missing_share: f64,
    /// Half of the frames took at most this, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99 %.
    pub p99_ns: Option<u64>,
}

/// One side of transactions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Side {
    /// `clients` or `servers`.
    pub name: String,
    /// Begun a second.
    pub attempted_cps: f64,
    /// Ended as they should, a second.
    pub successful_cps: f64,
    /// Open now.
    pub open: u64,
    /// Begun since the measurement began.
    pub attempted: u64,
    /// Ended as they should.
    pub successful: u64,
    /// Failed.
    pub failed: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Why most of them failed, in words.
    pub why: String,
    /// Packets sent, a second.
    pub tx_pps: f64,
    /// Packets received, a second.
    pub rx_pps: f64,
}

/// A port. Bits are of layer 2 without FCS.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// `up` or `down`.
    pub link: String,
    /// Frames that the device took, a second.
    pub tx_pps: f64,
    /// Their bits.
    pub tx_bps: f64,
    /// Frames that came, a second.
    pub rx_pps: f64,
    /// Their bits.
    pub rx_bps: f64,
    /// Frames that found the ring full, a second.
    pub refused_pps: f64,
    /// Frames that came since the port was made.
    pub rx_frames: u64,
}

fn text(object: &Json, key: &str) -> String {
    object[key].as_str().unwrap_or_default().to_owned()
}

fn list<'a>(object: &'a Json, key: &str) -> impl Iterator<Item = &'a Json> {
    object[key].as_array().into_iter().flatten()
}

/// How much a count grew in a second; after another measurement began, from nothing.
fn growth(now: &Json, before: &Json, key: &str, elapsed_s: f64) -> f64 {
    let (now, before) = (now[key].as_u64().unwrap_or(0), before[key].as_u64().unwrap_or(0));
    now.checked_sub(before).unwrap_or(now) as f64 / elapsed_s
}

fn stream(number: usize, now: &Json, before: &Json, elapsed_s: f64) -> Stream {
    let count = |key: &str| now[key].as_u64().unwrap_or(0);
    Stream {
        name: now["name"].as_str().map_or_else(|| number.to_string(), str::to_owned),
        ports: (count("from"), count("to")),
        rate_pps: now["rate_pps"].as_f64(),
        is_paused: now["is_paused"].as_bool().unwrap_or(false),
        sent_pps: growth(now, before, "sent", elapsed_s),
        received_pps: growth(now, before, "received", elapsed_s),
        missing: count("missing"),
        missing_share: count("missing") as f64 / count("sent").max(1) as f64,
        p50_ns: now["latency_ns"]["p50"].as_u64(),
        p99_ns: now["latency_ns"]["p99"].as_u64(),
    }
}

fn port(now: &Json, before: &Json, elapsed_s: f64) -> Port {
    let growth = |key: &str| growth(now, before, key, elapsed_s);
    Port {
        name: text(now, "name"),
        link: text(now, "link"),
        tx_pps: growth("tx_frames"),
        tx_bps: 8.0 * growth("tx_bytes"),
        rx_pps: growth("rx_frames"),
        rx_bps: 8.0 * growth("rx_bytes"),
        refused_pps: growth("tx_refused"),
        rx_frames: now["rx_frames"].as_u64().unwrap_or(0),
    }
}

fn side(name: &str, now: &Json, before: &Json, elapsed_s: f64) -> Option<Side> {
    let (counts, old) = (now.get("transactions")?, &before["transactions"]);
    let packets = |key: &str| growth(&now["packets"], &before["packets"], key, elapsed_s);
    let count = |key: &str| counts[key].as_u64().unwrap_or(0);
    let failures = counts["failures"].as_object().into_iter().flatten();
    let most = failures.filter_map(|(why, n)| Some((n.as_u64().filter(|n| *n > 0)?, why))).max();
    Some(Side {
        name: name.to_owned(),
        attempted_cps: growth(counts, old, "attempted", elapsed_s),
        successful_cps: growth(counts, old, "successful", elapsed_s),
        open: count("open"),
        attempted: count("attempted"),
        successful: count("successful"),
        failed: count("failed"),
        retransmitted: now["packets"]["retransmitted"].as_u64().unwrap_or(0),
        why: most.map(|(_, why)| why.replace('_', " ")).unwrap_or_default(),
        tx_pps: packets("tx_packets"),
        rx_pps: packets("rx_packets"),
    })
}

fn sides(now: &Json, before: &Json, elapsed_s: f64) -> Option<Vec<Side>> {
    let (now, before) = (now.get("transactions")?, &before["transactions"]);
    let one = |name: &&str| side(name, &now[*name], &before[*name], elapsed_s);
    Some(["clients", "servers"].iter().filter_map(one).collect())
}

impl Picture {
    fn sum(&self, of: fn(&Stream) -> f64) -> f64 {
        self.streams.iter().map(of).sum()
    }
}

impl View for Picture {
    type Snapshot = Json;
    const PROGRAM: &'static str = "quiver-tg top";
    const PEER: &'static str = "generator";
    const PANES: &'static [Pane] = &[
        Pane { title: "Streams", columns: &STREAMS, sorted_by: 0 },
        Pane { title: "Ports", columns: &PORTS, sorted_by: 0 },
        Pane { title: "Transactions", columns: &TRANSACTIONS, sorted_by: 0 },
    ];
    const KEYS: &'static str = "? help  Tab pane  s sort  / filter  p pause  +- interval  q quit";
    const HELP: &'static [&'static str] = &[
        "Tab, 1-3     next pane, or this one",
        "s, r         sort by the next column; reverse",
        "/            filter by name (Enter keeps, Esc clears)",
        "p, Space     let the picture stand still",
        "+ -          longer or shorter interval",
        "j k, arrows  scroll; PgUp, PgDn, Home, End too",
        "q, Ctrl-C    leave; the generator goes on",
        "",
        "Meant: requested frames a second. Missing: made and",
        "not back, lost or under way. Bits: of layer 2, without",
        "FCS. Full: frames that found the transmit ring full.",
    ];
    const PLOT: &'static str = "frames/s over time: . sent, # back";

    fn between(before: &Json, now: &Json) -> Option<Picture> {
        let at = |of: &Json| of["now_ns"].as_u64();
        let elapsed_ns = at(now)?.checked_sub(at(before)?).filter(|ns| *ns > 0)?;
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let none = Json::Null;
        let pairs = |key: &'static str| {
            let old = &before[key];
            list(now, key).enumerate().map(move |(n, now)| (n, now, old.get(n)))
        };
        Some(Picture {
            elapsed_s,
            state: text(now, "state"),
            measurement: now["measurement"].as_u64().unwrap_or(0),
            at_s: now["elapsed_s"].as_f64(),
            streams: pairs("streams")
                .map(|(n, s, old)| stream(n, s, old.unwrap_or(&none), elapsed_s))
                .collect(),
            sides: sides(now, before, elapsed_s),
            ports: pairs("ports")
                .map(|(_, p, old)| port(p, old.unwrap_or(&none), elapsed_s))
                .collect(),
        })
    }

    fn rows(&self, pane: usize, _: &Choice) -> Vec<Vec<Value>> {
        match pane {
            0 => self.streams.iter().map(stream_row).collect(),
            2 => self.sides.iter().flatten().map(side_row).collect(),
            _ => self.ports.iter().map(port_row).collect(),
        }
    }

    fn has(&self, pane: usize) -> bool {
        match pane {
            0 => self.sides.is_none(),
            2 => self.sides.is_some(),
            _ => true,
        }
    }

    fn totals(&self) -> String {
        let at = self.at_s.map_or(String::new(), |at_s| format!(" {at_s:.0} s"));
        if let Some(sides) = &self.sides {
            let none = Side::default();
            let side = sides.first().unwrap_or(&none);
            return format!(
                "measurement {} {}{at}  begun {}/s  successful {}/s  failed {}",
                self.measurement,
                self.state,
                scaled(side.attempted_cps),
                scaled(side.successful_cps),
                scaled(side.failed as f64),
            );
        }
        format!(
            "measurement {} {}{at}  sent {}/s  back {}/s  missing {}",
            self.measurement,
            self.state,
            scaled(self.sum(|s| s.sent_pps)),
            scaled(self.sum(|s| s.received_pps)),
            scaled(self.sum(|s| s.missing as f64)),
        )
    }

    fn elapsed_s(&self) -> f64 {
        self.elapsed_s
    }

    fn alert(&self) -> Option<String> {
        let down: Vec<&str> =
            self.ports.iter().filter(|p| p.link != "up").map(|p| p.name.as_str()).collect();
        (!down.is_empty()).then(|| format!("no link: {}", down.join(", ")))
    }

    fn plotted(&self) -> Option<(f64, f64)> {
        if let Some(sides) = &self.sides {
            let sum = |of: fn(&Side) -> f64| sides.iter().map(of).sum();
            return Some((sum(|s| s.tx_pps), sum(|s| s.rx_pps)));
        }
        Some((self.sum(|s| s.sent_pps), self.sum(|s| s.received_pps)))
    }
}

fn stream_row(stream: &Stream) -> Vec<Value> {
    let micros = |ns: Option<u64>| Value::Plain(ns.map(|ns| ns as f64 / 1e3));
    let meant = match (stream.is_paused, stream.rate_pps) {
        (true, _) => Value::Text("paused".to_owned()),
        (false, Some(rate)) => Value::Rate(rate),
        (false, None) => Value::Text("-".to_owned()),
    };
    vec![
        Value::Text(stream.name.clone()),
        Value::Text(format!("{} -> {}", stream.ports.0, stream.ports.1)),
        meant,
        Value::Rate(stream.sent_pps),
        Value::Rate(stream.received_pps),
        Value::Rate(stream.missing as f64),
        Value::Share(stream.missing_share),
        micros(stream.p50_ns),
        micros(stream.p99_ns),
    ]
}

fn side_row(side: &Side) -> Vec<Value> {
    vec![
        Value::Text(side.name.clone()),
        Value::Rate(side.attempted_cps),
        Value::Rate(side.successful_cps),
        Value::Rate(side.open as f64),
        Value::Rate(side.attempted as f64),
        Value::Rate(side.successful as f64),
        Value::Rate(side.failed as f64),
        Value::Rate(side.retransmitted as f64),
        Value::Text(side.why.clone()),
    ]
}

fn port_row(port: &Port) -> Vec<Value> {
    vec![
        Value::Text(port.name.clone()),
        Value::Text(port.link.clone()),
        Value::Rate(port.tx_pps),
        Value::Rate(port.tx_bps),
        Value::Rate(port.rx_pps),
        Value::Rate(port.rx_bps),
        Value::Rate(port.refused_pps),
        Value::Rate(port.rx_frames as f64),
    ]
}
