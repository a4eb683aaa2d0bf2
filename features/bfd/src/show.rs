//! `show bfd`.

use quiver_control::{Cell, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::worker::Worker;
use quiver_core::{Engine, WorkerId};
use quiver_wire::bfd::Diagnostic;

use crate::auth::type_name;
use crate::commands::{GROUP, bfd};
use crate::config::{Bfd, Entry, key_users};
use crate::dplane::{Dplane, Endpoint};
use crate::input::{BfdInput, NODE};
use crate::peers::Counts;
use crate::session::Session;
use crate::shared::Ends;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show bfd sessions [verbose]")
            .group(GROUP)
            .help("Show BFD sessions, and with verbose their timers and counters")
            .example("show bfd sessions verbose")
            .run(|engine: &mut Engine, args| sessions(engine, args.has("verbose"))),
    );
    registry.command(
        Command::new("show bfd keys")
            .group(GROUP)
            .help("Show the keys that BFD packets are signed with, without their secrets")
            .run(|engine: &mut Engine, _| Ok(Output::none().table("keys", keys(bfd(engine)?)))),
    );
    registry.command(
        Command::new("show bfd dplane")
            .group(GROUP)
            .help("Show the routing daemon whose BFD sessions this router has")
            .run(|engine: &mut Engine, _| Ok(Output::none().table("dplane", dplane(engine)))),
    );
    registry.command(
        Command::new("show bfd echo-source")
            .group(GROUP)
            .help("Show which interface lends echo packets their source")
            .run(|engine: &mut Engine, _| {
                let name = bfd(engine)?.echo_source.map(|id| engine.interface_name(id));
                let mut table = Table::new([Column::left("Echo source").key("interface")])
                    .when_empty("no echo packets are sent");
                if let Some(name) = name {
                    table.row().cell(name);
                }
                Ok(Output::none().table("echo_source", table))
            }),
    );
}

fn dplane(engine: &Engine) -> Table {
    let mut table = Table::new([
        Column::left("Address").key("address"),
        Column::left("Namespace"),
        Column::left("Daemon").key("daemon"),
        Column::right("Sessions"),
        Column::right("Without daemon").key("orphans"),
        Column::right("Connected").key("connected"),
        Column::right("Received").key("received"),
        Column::right("Sent").key("sent"),
        Column::right("Malformed").key("malformed"),
        Column::right("Refused").key("refused"),
    ])
    .when_empty("no routing daemon is waited for");
    if let Some(status) = engine.get::<Dplane>().and_then(Dplane::status) {
        let counts = status.counts;
        let namespace = match &status.endpoint {
            Endpoint::Tcp { namespace, .. } | Endpoint::Daemon { namespace, .. } => {
                namespace.clone()
            }
            Endpoint::Unix(_) | Endpoint::DaemonAt(_) => None,
        };
        let row = table
            .row()
            .cell(status.endpoint.to_string())
            .cell(namespace)
            .cell(status.daemon)
            .cell(status.sessions)
            .cell(status.orphans);
        [counts.connected, counts.received, counts.sent, counts.malformed, counts.refused]
            .into_iter()
            .fold(row, |row, count| row.cell(count));
    }
    table
}

fn keys(bfd: &Bfd) -> Table {
    let mut table = Table::new([
        Column::right("Configuration key ID").key("conf_key_id"),
        Column::left("Type"),
        Column::right("Sessions"),
    ])
    .when_empty("no BFD keys");
    for (id, key) in &bfd.keys {
        table.row().cell(*id).cell(type_name(key.kind)).cell(key_users(bfd, *id));
    }
    table
}

/// What workers know of their sessions, by number.
fn snapshots(engine: &mut Engine) -> Result<Vec<(u16, Session, Counts)>, Refusal> {
    let Some(node) = engine.node_id(NODE) else { return Ok(Vec::new()) };
    let count = bfd(engine)?.sessions.len();
    let mut all = Vec::new();
    for worker in 0..engine.worker_count() {
        let mut room = Vec::with_capacity(count);
        let filled = engine.call(WorkerId(worker as u16), move |worker: &mut Worker| {
            worker.visit(node, |input: &mut BfdInput, _| {
                let peers = input.store.iter().flat_map(|store| store.iter());
                let copies = peers.map(|(slot, peer)| (slot, peer.session.clone(), peer.counts));
                room.extend(copies.take(count));
            });
            std::mem::take(&mut room)
        });
        all.extend(filled.map_err(|stalled| Refusal::new(stalled.to_string()))?);
    }
    all.sort_by_key(|(slot, ..)| *slot);
    Ok(all)
}

/// A diagnostic as RFC 5880 names it, and as a word.
fn diagnostic(diagnostic: Diagnostic) -> Cell {
    Cell::new(diagnostic.name(), diagnostic_word(diagnostic))
}

/// A diagnostic as a word: `neighbor-signaled-session-down`.
pub(crate) fn diagnostic_word(diagnostic: Diagnostic) -> String {
    diagnostic.name().to_lowercase().replace(' ', "-")
}

fn milliseconds(us: u64) -> Cell {
    Cell::real(us as f64 / 1e3, 1)
}

fn sessions(engine: &mut Engine, is_verbose: bool) -> Result<Output, Refusal> {
    let snapshots = snapshots(engine)?;
    let bfd = bfd(engine)?;
    let now_ns = engine.now_ns();
    let of = |entry: &Entry| {
        let found = snapshots.binary_search_by_key(&entry.place.slot, |(slot, ..)| *slot);
        found.ok().map(|place| &snapshots[place])
    };
    let mut table = if is_verbose { verbose_table() } else { short_table() };
    for (ends, entry) in &bfd.sessions {
        let Some((_, session, counts)) = of(entry) else { continue };
        let row = table
            .row()
            .cell(ends.interface.map(|id| engine.interface_name(id)))
            .cell(entry.bond.map(|id| engine.interface_name(id)))
            .cell(ends.local.to_string())
            .cell(ends.peer.to_string())
            .cell(session.state.name())
            .cell(session.remote_state.name())
            .cell(milliseconds(session.transmit_interval_us().into()))
            .cell(milliseconds(session.detection_ns() / 1_000));
        if is_verbose {
            let cells = verbose(ends, entry, session, counts, now_ns);
            cells.into_iter().fold(row, |row, cell| row.cell(cell));
        } else {
            let signs = entry.signing.and_then(|signing| bfd.keys.get(&signing.conf_key_id));
            row.cell(signs.map(|key| type_name(key.kind)))
                .cell(diagnostic(session.diagnostic))
                .cell(counts.went_down)
                .cell(entry.origin.name());
        }
    }
    Ok(Output::none().table("sessions", table))
}

const HEAD: [&str; 6] = ["Interface", "Bond", "Local", "Peer", "State", "Remote state"];

fn head() -> Vec<Column> {
    let mut columns: Vec<Column> = HEAD.iter().map(|title| Column::left(title)).collect();
    columns.push(Column::right("Tx ms").key("transmit_interval_ms"));
    columns.push(Column::right("Detect ms").key("detection_time_ms"));
    columns
}

fn short_table() -> Table {
    let mut columns = head();
    columns.push(Column::left("Authentication"));
    columns.push(Column::left("Diagnostic"));
    columns.push(Column::right("Went down"));
    columns.push(Column::left("Origin"));
    Table::new(columns).when_empty("no BFD sessions")
}

fn verbose_table() -> Table {
    let mut columns = head();
    for (title, key) in [
        ("Worker", "worker"),
        ("My disc", "my_discriminator"),
        ("Your disc", "your_discriminator"),
        ("Since s", "since_s"),
        ("Received", "received"),
        ("Sent", "sent"),
        ("Refused", "refused"),
        ("Came up", "came_up"),
        ("Went down", "went_down"),
        ("Remote tx ms", "remote_min_tx_ms"),
        ("Remote rx ms", "remote_min_rx_ms"),
        ("Mult", "detect_mult"),
        ("Remote mult", "remote_detect_mult"),
        ("Echoes sent", "echoes_sent"),
        ("Echoes back", "echoes_received"),
        ("Echoes returned", "echoes_returned"),
    ] {
        columns.push(Column::right(title).key(key));
    }
    columns.push(Column::left("Polls").key("is_polling"));
    columns.push(Column::left("Path").key("path"));
    columns.push(Column::left("Diagnostic"));
    columns.push(Column::left("Remote diagnostic"));
    columns.push(Column::left("Origin"));
    Table::new(columns).when_empty("no BFD sessions")
}

fn verbose(
    ends: &Ends,
    entry: &Entry,
    session: &Session,
    counts: &Counts,
    now_ns: u64,
) -> [Cell; 21] {
    let since_s = now_ns.saturating_sub(counts.changed_ns) as f64 / 1e9;
    let path = match (entry.is_path_up, ends.interface) {
        (true, _) => Cell::new("up", "up"),
        (false, Some(_)) if ends.is_member => Cell::new("the interface is down", "down"),
        (false, Some(_)) => {
            Cell::new("the interface is down, or does not have the local address", "down")
        }
        (false, None) => Cell::new("no interface that is up has the local address", "down"),
    };
    [
        entry.place.worker.0.into(),
        session.local_discriminator.into(),
        session.remote_discriminator.into(),
        Cell::real(since_s, 1),
        counts.received.into(),
        counts.sent.into(),
        counts.refused.into(),
        counts.came_up.into(),
        counts.went_down.into(),
        milliseconds(session.remote_min_tx_us.into()),
        milliseconds(session.remote_min_rx_us.into()),
        session.settings().detect_mult.into(),
        session.remote_detect_mult.into(),
        counts.echoes_sent.into(),
        counts.echoes_received.into(),
        counts.echoes_returned.into(),
        session.is_polling.into(),
        path,
        diagnostic(session.diagnostic),
        diagnostic(session.remote_diagnostic),
        entry.origin.name().into(),
    ]
}
