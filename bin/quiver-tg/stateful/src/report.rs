//! The report of one measurement of transactions.

use std::fmt::Write;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::counters::{Counters, Transactions};
use super::schedule::Schedule;
use super::stateful_node::FinalState;
use quiver_tg_measuring::capture::CaptureReport;
use quiver_tg_measuring::faults::FaultsReport;
use quiver_tg_measuring::latency::Distribution;
use quiver_tg_traffic::figures::{grouped, scaled};
use quiver_tg_traffic::profile::stateful::{Kind, Stateful};

/// Begun at less than this part of the requested rate: the generator was the limit.
const RATE_PART_MIN: f64 = 0.995;

/// Facts for the report besides counters.
pub struct Facts<'a> {
    /// The request.
    pub stateful: &'a Stateful,
    /// When transactions came due.
    pub schedule: Schedule,
    /// Transactions begun.
    pub begun: u64,
    /// When the first was, nanoseconds.
    pub first_ns: u64,
    /// When the last was.
    pub last_ns: u64,
    /// Packets that the devices did not take.
    pub tx_ring_full: u64,
    /// Somebody ended it.
    pub is_interrupted: bool,
    /// The histograms of times are requested.
    pub histograms: bool,
    /// Faults at each port.
    pub faults: Vec<Option<FaultsReport>>,
    /// Captures.
    pub captures: Vec<CaptureReport>,
}

/// The transactions of one side. `attempted` = `successful` + `failed` + `open`, always.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Counts {
    /// Began, or should have begun.
    pub attempted: u64,
    /// Of these, those whose first packet was sent (client) or came (server).
    pub started: u64,
    /// Of these, those whose handshake was done or first response came.
    pub connected: u64,
    /// Came to the end that was requested.
    pub successful: u64,
    /// Did not.
    pub failed: u64,
    /// Neither, when the measurement ended.
    pub open: u64,
    /// The most that were open at a time.
    pub open_max: u64,
    /// Those that failed, by why.
    pub failures: Map<String, Value>,
}

impl Counts {
    fn new(transactions: &Transactions) -> Counts {
        Counts {
            attempted: transactions.attempted.get(),
            started: transactions.started.get(),
            connected: transactions.connected.get(),
            successful: transactions.successful.get(),
            failed: transactions.failed_total(),
            open: transactions.open(),
            open_max: transactions.open_max.get(),
            failures: transactions
                .failures()
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
        }
    }
}

/// One side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SideReport {
    /// Its transactions.
    pub transactions: Counts,
    /// Its packets.
    pub packets: Map<String, Value>,
}

impl SideReport {
    /// As counted.
    pub fn new(counters: &Counters) -> SideReport {
        let packets = counters.packets.all().into_iter();
        SideReport {
            transactions: Counts::new(&counters.transactions),
            packets: packets.map(|(name, count)| (name.to_owned(), count.into())).collect(),
        }
    }
}

/// Faults of packets of transactions at a port.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortFaults {
    /// The port.
    pub port: usize,
    /// What.
    #[serde(flatten)]
    pub faults: FaultsReport,
}

/// Packets from one side to the other: `offered` = `received` + `lost`, always.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Way")]
pub struct DirectionReport {
    /// The port that sent.
    pub from: usize,
    /// The port where they should have come.
    pub to: usize,
    /// Packets sent, or for which there was no room in the transmit ring.
    pub offered: u64,
    /// Packets that came, damaged ones too.
    pub received: u64,
    /// The difference; below zero when packets were duplicated in the network.
    pub lost: i64,
}

impl DirectionReport {
    fn new(
        (from, sender): (usize, &Counters),
        (to, receiver): (usize, &Counters),
    ) -> DirectionReport {
        let came = &receiver.packets;
        let damaged = came.bad_checksum.get() + came.malformed.get() + came.fragments.get();
        let (offered, received) =
            (sender.packets.tx_packets.get(), came.rx_packets.get() + damaged);
        DirectionReport { from, to, offered, received, lost: offered as i64 - received as i64 }
    }
}

/// The report. README.md says what each count is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StatefulReport {
    /// `udp` or `tcp`.
    pub kind: &'static str,
    /// Transactions that should have begun; `null` when the table and the time decided.
    pub intended: Option<u64>,
    /// Of these, those that never began: the generator was too slow, or somebody ended it.
    pub not_attempted: u64,
    /// From the first transaction's beginning to the end of the last one's interval, seconds.
    pub duration_s: f64,
    /// Transactions begun a second.
    pub attempted_cps: f64,
    /// Successful ones a second.
    pub successful_cps: f64,
    /// Packets of both sides sent a second.
    pub tx_pps: f64,
    /// Packets of both sides received a second.
    pub rx_pps: f64,
    /// Packets in each direction, where the generator plays both sides.
    pub per_direction: Vec<DirectionReport>,
    /// Clients whose ping through the forwarder had not come back when the first transaction began.
    pub unready_hosts: usize,
    /// One of them, and its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready_example: Option<(IpAddr, IpAddr)>,
    /// Faults on purpose, by port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<PortFaults>,
    /// The captures, since the generator was started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureReport>,
    /// Packets that found a transmit ring full; the forwarder did not take them.
    pub tx_ring_full: u64,
    /// Transactions did not begin at the requested rate.
    pub limited_by_generator: bool,
    /// It was ended before its time.
    pub interrupted: bool,
    /// The clients, if they were played.
    pub clients: Option<SideReport>,
    /// The servers, if they were played.
    pub servers: Option<SideReport>,
    /// From a transaction's beginning to the first answer, nanoseconds.
    pub connect_ns: Option<Distribution>,
    /// From a transaction's beginning to its successful end, nanoseconds.
    pub transaction_ns: Option<Distribution>,
    /// Bytes that the tables of both sides take, for so many transactions.
    pub table_bytes: usize,
    /// Transactions that the tables can hold.
    pub table_entries: usize,
}

impl StatefulReport {
    /// Add everything up.
    pub fn new(
        facts: &Facts<'_>,
        clients: Option<&Counters>,
        servers: Option<&Counters>,
        final_state: FinalState,
    ) -> StatefulReport {
        let schedule = &facts.schedule;
        let whole_s = (schedule.end_ns - schedule.start_ns) as f64 / 1e9;
        let between_s = facts.last_ns.saturating_sub(facts.first_ns) as f64 / 1e9;
        let duration_s = match facts.begun {
            0 | 1 => whole_s,
            begun => between_s * begun as f64 / (begun - 1) as f64,
        };
        let duration_s = duration_s.max(1e-9);
        let intended = clients.and_then(|_| schedule.intended());
        let not_attempted = intended.map_or(0, |intended| intended.saturating_sub(facts.begun));
        let rate = |count: u64| count as f64 / duration_s;
        let transactions = clients.or(servers).map(|c| &c.transactions);
        let of = |count: fn(&Transactions) -> u64| transactions.map_or(0, count);
        let packets = |count: fn(&Counters) -> u64| {
            clients.into_iter().chain(servers).map(count).sum::<u64>()
        };
        let asked_cps = intended.map_or(0.0, |intended| intended as f64 / whole_s.max(1e-9));
        let is_paced = schedule.rate_cps.is_finite() && !facts.is_interrupted;
        let is_slow =
            is_paced && (rate(facts.begun) < RATE_PART_MIN * asked_cps || not_attempted > 0);
        let times = final_state.times.as_ref();
        StatefulReport {
            kind: if facts.stateful.kind == Kind::Udp { "udp" } else { "tcp" },
            intended,
            not_attempted,
            duration_s,
            attempted_cps: rate(of(|t| t.attempted.get())),
            successful_cps: rate(of(|t| t.successful.get())),
            tx_pps: rate(packets(|c| c.packets.tx_packets.get())),
            rx_pps: rate(packets(|c| c.packets.rx_packets.get())),
            per_direction: directions(facts.stateful, clients, servers),
            unready_hosts: final_state.unready,
            unready_example: final_state.unready_pair,
            faults: port_faults(&facts.faults),
            captures: facts.captures.clone(),
            tx_ring_full: facts.tx_ring_full,
            limited_by_generator: is_slow,
            interrupted: facts.is_interrupted,
            clients: clients.map(SideReport::new),
            servers: servers.map(SideReport::new),
            connect_ns: times
                .and_then(|times| Distribution::with_histogram(&times.connected, facts.histograms)),
            transaction_ns: times
                .and_then(|times| Distribution::with_histogram(&times.complete, facts.histograms)),
            table_bytes: final_state.table_bytes,
            table_entries: final_state.table_entries,
        }
    }

    /// As people read it.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let headings = ["attempted", "connected", "successful", "failed", "open", "open max"];
        let _ = write!(text, "{:<12}", self.kind);
        for heading in headings {
            let _ = write!(text, "{heading:>14}");
        }
        text.push('\n');
        for (name, side) in [("clients", &self.clients), ("servers", &self.servers)] {
            let Some(SideReport { transactions: t, .. }) = side else { continue };
            let _ = write!(text, "{name:<12}");
            for count in [t.attempted, t.connected, t.successful, t.failed, t.open, t.open_max] {
                let _ = write!(text, "{:>14}", grouped(count));
            }
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "rate        begun {}, successful {}, sent {}, received {}, for {:.3} s",
            scaled(self.attempted_cps, "cps"),
            scaled(self.successful_cps, "cps"),
            scaled(self.tx_pps, "pps"),
            scaled(self.rx_pps, "pps"),
            self.duration_s
        );
        for (name, side) in [("clients", &self.clients), ("servers", &self.servers)] {
            let Some(side) = side else { continue };
            append_counts(
                &mut text,
                &format!("{name} failed"),
                &side.transactions.failures,
                |_| true,
            );
            append_counts(&mut text, &format!("{name} saw"), &side.packets, |name| {
                !["tx_packets", "tx_bytes", "rx_packets", "rx_bytes"].contains(&name)
            });
        }
        self.render_times(&mut text);
        for direction in &self.per_direction {
            let (offered, received) = (grouped(direction.offered), grouped(direction.received));
            let sign = if direction.lost < 0 { "-" } else { "" };
            let lost = grouped(direction.lost.unsigned_abs());
            let _ = writeln!(
                text,
                "packets     port {} -> {}: sent {offered}, came {received}, lost {sign}{lost}",
                direction.from, direction.to
            );
        }
        if let Some((client, server)) = self.unready_example {
            let _ = writeln!(
                text,
                "not ready   {} clients' pings did not come back before the first transaction, \
                 like that of {client} to {server}",
                grouped(self.unready_hosts as u64)
            );
        }
        for PortFaults { port, faults } in &self.faults {
            let faults = serde_json::to_value(faults).unwrap_or_default();
            let counts = faults.as_object().cloned().unwrap_or_default();
            append_counts(&mut text, &format!("faults on port {port}"), &counts, |_| true);
        }
        if self.tx_ring_full > 0 {
            let _ = writeln!(text, "ring full   {} packets", grouped(self.tx_ring_full));
        }
        if self.not_attempted > 0 {
            let _ = writeln!(text, "not begun   {} transactions", grouped(self.not_attempted));
        }
        let each = self.table_bytes as f64 / (self.table_entries as f64).max(1.0);
        let _ = writeln!(
            text,
            "tables      {:.1} MiB for {} transactions, {each:.0} bytes each",
            self.table_bytes as f64 / f64::from(1 << 20),
            grouped(self.table_entries as u64)
        );
        if self.limited_by_generator {
            text.push_str("The generator was the limit: it could not begin more.\n");
        }
        text
    }

    fn render_times(&self, text: &mut String) {
        if self.connect_ns.is_none() && self.transaction_ns.is_none() {
            return;
        }
        let _ = write!(text, "{:<12}", "times, µs");
        for heading in ["min", "p50", "p90", "p99", "p99.9", "max"] {
            let _ = write!(text, "{heading:>12}");
        }
        text.push('\n');
        for (name, times) in
            [("first answer", &self.connect_ns), ("transaction", &self.transaction_ns)]
        {
            let Some(l) = times else { continue };
            let _ = write!(text, "{name:<12}");
            for ns in [l.min, l.p50, l.p90, l.p99, l.p99_9, l.max] {
                let _ = write!(text, "{:>12}", format!("{:.1}", ns as f64 / 1e3));
            }
            text.push('\n');
        }
    }
}

/// Both directions, where both sides are played.
fn directions(
    stateful: &Stateful,
    clients: Option<&Counters>,
    servers: Option<&Counters>,
) -> Vec<DirectionReport> {
    let on = stateful.clients.as_ref().map(|clients| clients.on);
    let (Some(clients), Some(servers)) = (on.zip(clients), stateful.servers.on.zip(servers)) else {
        return Vec::new();
    };
    vec![DirectionReport::new(clients, servers), DirectionReport::new(servers, clients)]
}

fn port_faults(faults: &[Option<FaultsReport>]) -> Vec<PortFaults> {
    let named = faults.iter().enumerate();
    named.filter_map(|(port, faults)| faults.map(|faults| PortFaults { port, faults })).collect()
}

/// The counts that are not zero, on a line.
fn append_counts(
    text: &mut String,
    heading: &str,
    counts: &Map<String, Value>,
    is_told: impl Fn(&str) -> bool,
) {
    let named =
        counts.iter().filter_map(|(name, count)| Some((name, count.as_u64().filter(|n| *n > 0)?)));
    let all: Vec<String> = named
        .filter(|(name, _)| is_told(name))
        .map(|(name, count)| format!("{} {}", name.replace('_', " "), grouped(count)))
        .collect();
    if !all.is_empty() {
        let _ = writeln!(text, "{heading}: {}", all.join(", "));
    }
}
