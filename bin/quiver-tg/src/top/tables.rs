//! What a generator does, as tables: streams, ports.

use quiver_screen::{Choice, Column, Pane, Value, View, number, scaled, words};
use serde::Serialize;
use serde_json::Value as Json;

const STREAMS: [Column; 9] = [
    words("Stream", 12),
    words("Way", 9),
    number("Meant", 9),
    number("Sent/s", 9),
    number("Back/s", 9),
    number("Missing", 9),
    number("Share", 8),
    number("p50 us", 7),
    number("p99 us", 8),
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
    /// What it is at.
    pub state: String,
    /// The measurement's number.
    pub measurement: u64,
    /// How far it is, seconds.
    pub at_s: Option<f64>,
    /// Streams.
    pub streams: Vec<Stream>,
    /// Ports.
    pub ports: Vec<Port>,
}

/// A stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stream {
    /// Its name, or its number.
    pub name: String,
    /// The port that sends, and the one that receives.
    pub way: (u64, u64),
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
        way: (count("from"), count("to")),
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
    ];
    const KEYS: &'static str = "? help  Tab pane  s sort  / filter  p pause  +- interval  q quit";
    const HELP: &'static [&'static str] = &[
        "Tab, 1-2     next pane, or this one",
        "s, r         sort by the next column; reverse",
        "/            filter by name (Enter keeps, Esc clears)",
        "p, Space     let the picture stand still",
        "+ -          longer or shorter interval",
        "j k, arrows  scroll; PgUp, PgDn, Home, End too",
        "q, Ctrl-C    leave; the generator goes on",
        "",
        "Meant: frames a second as asked for. Missing: made and",
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
            ports: pairs("ports").map(|(_, p, old)| port(p, old.unwrap_or(&none), elapsed_s)).collect(),
        })
    }

    fn rows(&self, pane: usize, _: &Choice) -> Vec<Vec<Value>> {
        match pane {
            0 => self.streams.iter().map(stream_row).collect(),
            _ => self.ports.iter().map(port_row).collect(),
        }
    }

    fn totals(&self) -> String {
        let at = self.at_s.map_or(String::new(), |at_s| format!(" {at_s:.0} s"));
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
        let down: Vec<&str> = self.ports.iter().filter(|p| p.link != "up").map(|p| p.name.as_str()).collect();
        (!down.is_empty()).then(|| format!("no link: {}", down.join(", ")))
    }

    fn plotted(&self) -> Option<(f64, f64)> {
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
        Value::Text(format!("{} -> {}", stream.way.0, stream.way.1)),
        meant,
        Value::Rate(stream.sent_pps),
        Value::Rate(stream.received_pps),
        Value::Rate(stream.missing as f64),
        Value::Share(stream.missing_share),
        micros(stream.p50_ns),
        micros(stream.p99_ns),
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
