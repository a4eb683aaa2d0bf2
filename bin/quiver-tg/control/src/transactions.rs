//! Statistics of transactions: for `show statistics`, and as a line of progress.

use quiver_control::{Output, Refusal};
use serde_json::{Value as Json, json};

use super::ports::ports;
use super::session::Session;
use quiver_tg_measuring::surroundings::Surroundings;
use quiver_tg_stateful::counters::Counters;
use quiver_tg_stateful::rates::Rates;
use quiver_tg_stateful::report::SideReport;
use quiver_tg_stateful::snapshot::Snapshot;
use quiver_tg_traffic::figures::{grouped, scaled};
use quiver_tg_traffic::profile::stateful::Kind;

/// Counts and rates of one side.
fn side(counters: Option<&Counters>, rates: Rates) -> Json {
    let Some(counters) = counters else { return Json::Null };
    let mut json = json!(SideReport::new(counters));
    json["rates"] = json!(rates);
    json
}

/// The rates of both sides.
fn rates_of<S: Surroundings>(session: &mut Session<S>) -> [Rates; 2] {
    session.sample();
    let generator = session.generator().and_then(|generator| generator.as_transactions());
    generator.map(|generator| generator.sampler.rates()).unwrap_or_default()
}

/// Counts and rates of clients, servers and ports.
pub fn statistics<S: Surroundings>(session: &mut Session<S>) -> Result<Output, Refusal> {
    let snapshot = session.transactions();
    let rates = rates_of(session);
    let (measurement, profile) =
        (session.last(), session.loaded()?.profile.path.display().to_string());
    let state = match &snapshot {
        None if session.loaded()?.waits_until_ns.is_some() => "waiting for links",
        None => "idle",
        Some(snapshot) => snapshot.state,
    };
    let generator = &mut session.loaded()?.generator;
    let (now_ns, ports) = (generator.engine().now_ns(), ports(generator));
    let kind = generator.as_transactions().map(|generator| generator.stateful().kind);
    let (clients, servers) = snapshot.as_ref().map_or((None, None), |snapshot| {
        (snapshot.clients.as_deref(), snapshot.servers.as_deref())
    });
    let mut text = format!("{state}\n");
    for (name, counters, rates) in [("clients", clients, rates[0]), ("servers", servers, rates[1])]
    {
        if let Some(counters) = counters {
            text += &describe(name, counters, &rates);
        }
    }
    let json = json!({
        "state": state, "now_ns": now_ns, "profile": profile, "measurement": measurement,
        "elapsed_s": snapshot.as_ref().map(|snapshot| snapshot.at_s),
        "duration_s": snapshot.as_ref().map(|snapshot| snapshot.of_s),
        "streams": [], "ports": ports,
        "transactions": {
            "kind": if kind == Some(Kind::Udp) { "udp" } else { "tcp" },
            "rate_cps": snapshot.as_ref().map(|snapshot| snapshot.rate),
            "is_paused": snapshot.as_ref().is_some_and(|snapshot| snapshot.is_paused),
            "clients": side(clients, rates[0]),
            "servers": side(servers, rates[1]),
        },
    });
    Ok(Output::both(text, json))
}

fn describe(name: &str, counters: &Counters, rates: &Rates) -> String {
    let (transactions, packets) = (&counters.transactions, &counters.packets);
    let mut text = format!(
        "{name}  begun {} ({})  successful {} ({})  failed {}  open {}  sent again {}\n",
        grouped(transactions.attempted.get()),
        scaled(rates.attempted_cps, "cps"),
        grouped(transactions.successful.get()),
        scaled(rates.successful_cps, "cps"),
        grouped(transactions.failed_total()),
        grouped(transactions.open()),
        grouped(packets.retransmitted.get()),
    );
    let why: Vec<String> = transactions
        .failures()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {}", name.replace('_', " "), grouped(count)))
        .collect();
    if !why.is_empty() {
        text += &format!("{name} failed: {}\n", why.join(", "));
    }
    text
}

/// The progress of a measurement in one line.
pub(crate) fn line<S: Surroundings>(session: &mut Session<S>, snapshot: &Snapshot) -> String {
    let rates = rates_of(session);
    let Some((counters, rates)) = snapshot
        .clients
        .as_ref()
        .map(|c| (c, rates[0]))
        .or(snapshot.servers.as_ref().map(|c| (c, rates[1])))
    else {
        return String::new();
    };
    let of = match snapshot.of_s {
        of_s if of_s >= super::UNTIL_STOPPED_S => String::new(),
        of_s => format!(" of {of_s:.1}"),
    };
    let name = if snapshot.clients.is_some() { "clients" } else { "servers" };
    format!("{:6.1}{of} s  {}", snapshot.at_s, describe(name, counters, &rates))
}
