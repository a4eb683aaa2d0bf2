//! The show commands: profile, statistics, results.

use quiver_control::{Cell, Column, Command, Commands, Output, Refusal, Table};
use serde_json::json;

use super::ports::{link, ports};
use super::session::{Measured, Session};
use super::transactions;
use quiver_tg_measuring::surroundings::Surroundings;
use quiver_tg_traffic::figures::{grouped, scaled};

/// Declare the show commands.
pub fn add<S: Surroundings + 'static>(commands: &mut Commands<Session<S>>) {
    commands.add(
        Command::new("show profile")
            .group("Profile")
            .help("Show which ports and streams are loaded")
            .example("show profile")
            .run(|session: &mut Session<S>, _| profile(session)),
    );
    commands.add(
        Command::new("show statistics")
            .group("Measurement")
            .help("Show what streams and ports do now")
            .details(
                "Counts are of the measurement under way, or of nothing; rates are of the last \
                 half second \
                 or second. Frames that are still under way are among those not yet back.",
            )
            .example("show statistics")
            .run(|session: &mut Session<S>, _| statistics(session)),
    );
    commands.add(
        Command::new("show results [<count:1-64>]")
            .group("Measurement")
            .help("Show the results of the last measurements, the newest last")
            .word("count", "So many")
            .example("show results 1")
            .run(|session: &mut Session<S>, args| {
                let count = args.or("count", super::session::RESULTS_MAX)?;
                let mut kept: Vec<&Measured> = session.results().rev().take(count).collect();
                kept.reverse();
                let texts = kept
                    .iter()
                    .map(|m| format!("measurement {}\n{}", m.measurement, m.report.render()));
                Ok(Output::both(texts.collect::<Vec<_>>().join("\n"), json!(kept)))
            }),
    );
}

/// One result, as text and as JSON.
pub fn result(measured: &Measured) -> Output {
    Output::both(measured.report.render(), json!(measured))
}

/// Ports and streams.
pub fn profile<S: Surroundings>(session: &mut Session<S>) -> Result<Output, Refusal> {
    let loaded = session.loaded()?;
    let ports = loaded.generator.port_states();
    let mut streams = Table::new([
        Column::right("Stream").key("stream"),
        Column::left("Name").key("name"),
        Column::right("From").key("from"),
        Column::right("To").key("to"),
        Column::right("Bytes").key("frame_bytes"),
    ]);
    for (number, facts) in loaded.generator.streams().iter().enumerate() {
        streams
            .row()
            .cell(number)
            .cell(&facts.name)
            .cell(facts.from)
            .cell(facts.to)
            .cell(Cell::real(facts.frame_bytes, 1));
    }
    let mut table = Table::new([
        Column::right("Port").key("port"),
        Column::left("Name").key("name"),
        Column::left("Link").key("link"),
    ]);
    for (number, port) in ports.iter().enumerate() {
        table.row().cell(number).cell(&port.name).cell(link(port.is_up));
    }
    let path = loaded.profile.path.display().to_string();
    let output = Output::none().field("Profile", path);
    let output = match &loaded.profile.stateful {
        Some(stateful) => output.field("Transactions", stateful.value.in_words()),
        None => output,
    };
    Ok(output.table("ports", table).table("streams", streams))
}

/// Counts and rates of streams and ports.
fn statistics<S: Surroundings>(session: &mut Session<S>) -> Result<Output, Refusal> {
    if session.loaded()?.generator.as_transactions().is_some() {
        return transactions::statistics(session);
    }
    let snapshot = session.snapshot();
    let state = match &snapshot {
        None if session.loaded()?.waits_until_ns.is_some() => "waiting for links",
        None => "idle",
        Some(snapshot) if snapshot.is_sending && snapshot.plans.iter().all(|plan| plan.1) => {
            "paused"
        }
        Some(snapshot) if snapshot.is_sending => "sending",
        Some(_) => "waiting for late frames",
    };
    let mut text = format!("{state}\n");
    let mut streams = Vec::new();
    let facts = session.loaded()?.generator.streams().to_vec();
    for (number, facts) in facts.iter().enumerate() {
        let (sent, received) =
            snapshot.as_ref().map_or((0, 0), |snapshot| snapshot.streams[number]);
        let rates = session.rates(number);
        text += &format!(
            "stream {number} ({} -> {})  sent {} ({})  back {} ({})  not yet back {}{}\n",
            facts.from,
            facts.to,
            grouped(sent),
            scaled(rates.sent_pps, "pps"),
            grouped(received),
            scaled(rates.received_pps, "pps"),
            grouped(sent.saturating_sub(received)),
            rates.latency.map_or(String::new(), |l| {
                format!("  p50 {:.1} µs, p99 {:.1} µs", l.p50 as f64 / 1e3, l.p99 as f64 / 1e3)
            }),
        );
        let (rate, is_paused) = snapshot.as_ref().map_or((None, false), |snapshot| {
            let (rate, is_paused) = snapshot.plans[number];
            (Some(rate), is_paused)
        });
        streams.push(json!({
            "stream": number, "rate_pps": rate, "is_paused": is_paused, "from": facts.from,
            "to": facts.to, "frame_bytes": facts.frame_bytes,
            "sent": sent, "received": received, "missing": sent.saturating_sub(received),
            "sent_pps": rates.sent_pps, "received_pps": rates.received_pps,
            "latency_ns": rates.latency,
        }));
    }
    let generator = &mut session.loaded()?.generator;
    let now_ns = generator.engine().now_ns();
    let ports = ports(generator);
    let json = json!({
        "state": state, "now_ns": now_ns,
        "profile": session.loaded()?.profile.path.display().to_string(),
        "measurement": session.measurement,
        "elapsed_s": snapshot.as_ref().map(|snapshot| snapshot.at_s),
        "duration_s": snapshot.as_ref().map(|snapshot| snapshot.of_s),
        "streams": streams, "ports": ports,
    });
    Ok(Output::both(text, json))
}
