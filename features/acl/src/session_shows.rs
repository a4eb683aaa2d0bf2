//! `show acl-plugin sessions`.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::Ordering;

use quiver_control::{Column, Command, Output, Refusal, Registry, Table, Work, in_slices};
use quiver_core::{Engine, InterfaceId};
use quiver_wire::IpProtocol;

use crate::commands::GROUP;
use crate::config::Lists;
use crate::rules::PROTOCOLS;
use crate::session::Session;
use crate::session_commands::TIMEOUTS;

/// Sessions that a slice looks at.
const PLACES_PER_SLICE: u32 = 1_024;
/// Sessions that are listed when nothing else is wanted.
const LISTED: u32 = 1_000;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show acl-plugin sessions {[interface <interface>] [max <:0-1000000>]}")
            .group(GROUP)
            .help("Show how many sessions access lists have, and which")
            .details(
                "Initiator is the end whose packet made the session. Idle is the time since its \
                 last packet. Of ICMP queries, the port of the initiator is the identifier and \
                 that of the responder the type.",
            )
            .word("max", "sessions at most; 1000")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                sessions(engine, only, args.or("max", LISTED)? as usize)
            }),
    );
}

fn sessions(
    engine: &mut Engine,
    only: Option<InterfaceId>,
    most: usize,
) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Interface"),
        Column::left("List of").key("list_of"),
        Column::left("Protocol"),
        Column::left("Initiator"),
        Column::left("Responder"),
        Column::left("State"),
        Column::right("Idle s").key("idle_s"),
    ];
    let places = engine.get::<Lists>().map_or(0, |lists| lists.published().sessions.places());
    let places = places as u32;
    let slices: Vec<Range<u32>> = (0..places)
        .step_by(PLACES_PER_SLICE as usize)
        .map(|first| first..(first + PLACES_PER_SLICE).min(places))
        .collect();
    let add = move |engine: &Engine, table: &mut Table, slice: Range<u32>| {
        for session in slice {
            if table.len() >= most {
                return;
            }
            add_session(engine, table, only, session);
        }
    };
    let end = |engine: &Engine, table: Table| summary(engine).table("entries", table);
    Ok(in_slices(engine, slices, Table::new(columns), add, end))
}

fn summary(engine: &Engine) -> Output {
    let Some(lists) = engine.get::<Lists>() else { return Output::none() };
    let sessions = &lists.published().sessions;
    let bytes = sessions.table().map_or(0, |(_, objects)| objects.resident_bytes());
    let mut output = Output::none()
        .field("Sessions", sessions.live() as u64)
        .field("Sessions at most", lists.room.most as u64)
        .field("Sessions at once", sessions.most() as u64)
        .field("Sessions made", sessions.made.load(Ordering::Relaxed))
        .field("Sessions expired", sessions.expired.load(Ordering::Relaxed))
        .field("Bytes of sessions", bytes as u64)
        .field("When full", if sessions.passes_when_full() { "stateless" } else { "deny" });
    for ((class, _), name) in
        TIMEOUTS.into_iter().zip(["Timeout UDP s", "Timeout TCP s", "Timeout TCP transient s"])
    {
        output = output.field(name, u64::from(sessions.timeout_s(class)));
    }
    output
}

fn end((address, port): (IpAddr, u16)) -> String {
    match address {
        IpAddr::V4(address) => format!("{address}:{port}"),
        IpAddr::V6(address) => format!("[{address}]:{port}"),
    }
}

/// A session is live when its key leads to it.
fn add_session(engine: &Engine, table: &mut Table, only: Option<InterfaceId>, number: u32) {
    let Some(lists) = engine.get::<Lists>() else { return };
    let Some((sessions, objects)) = lists.published().sessions.table() else { return };
    let session = Session(objects.get(number));
    let is_wanted = only.is_none_or(|id| id.index() as u32 == session.interface());
    if !is_wanted || sessions.lookup(&session.key()) != Some(number) || session.epoch() == 0 {
        return;
    }
    let protocol = session.protocol();
    let known = PROTOCOLS.iter().find(|(_, known)| known.0 == protocol);
    let word = known.map_or_else(|| protocol.to_string(), |(word, _)| (*word).to_owned());
    let is_tcp = IpProtocol(protocol) == IpProtocol::TCP;
    let state = if is_tcp { session.tcp().word() } else { "-" };
    let now_s = (engine.now_ns() / 1_000_000_000) as u32;
    let [initiator, responder] = session.ends().map(end);
    let name = engine.interface_name(InterfaceId(session.interface()));
    table
        .row()
        .cell(name)
        .cell(session.direction().word())
        .cell(word)
        .cell(initiator)
        .cell(responder)
        .cell(state)
        .cell(now_s.saturating_sub(session.seen_s()));
}
