//! Shows.

use std::net::Ipv6Addr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_bindings::{End, TIMEOUT_WORDS};
use quiver_control::{
    Args, Cell, Column, Command, Output, Refusal, Registry, Table, Work, in_slices,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};
use quiver_wire::IpProtocol;

use crate::commands::{GROUP, protocol_word};
use crate::config::Nat66;
use crate::session::Session;
use crate::statics::{StaticMapping, WholeMapping};

/// A show that answers at once.
type Show = fn(&Engine, &Nat66) -> Output;

/// Objects that a slice of a long show looks at.
const PLACES_PER_SLICE: u32 = 1_024;
/// Rows when no number is given.
const ROWS_DEFAULT: u32 = 1_000;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show nat66 sessions {[all|tcp|udp|icmp] [max <:1-1000000>]}")
            .group(GROUP)
            .help("Show NAT66 sessions")
            .details(
                "Local and external are the two names of a host's end inside. Idle is the time \
                 since the last packet.",
            )
            .word("max", "sessions at most; 1000")
            .run_or_begin(|engine: &mut Engine, args| {
                let columns = [
                    Column::left("Protocol"),
                    Column::left("Local"),
                    Column::left("External"),
                    Column::left("Remote"),
                    Column::left("State"),
                    Column::right("Idle s").key("idle_s"),
                ];
                let places = |nat: &Nat66| nat.shared.places.load(Ordering::Relaxed);
                long(engine, args, "sessions", Table::new(columns), places, add_session)
            }),
    );
    registry.command(
        Command::new("show nat66 bindings {[all|tcp|udp|icmp] [max <:1-1000000>]}")
            .group(GROUP)
            .help("Show the bindings of hosts' ends to external ones")
            .word("max", "bindings at most; 1000")
            .run_or_begin(|engine: &mut Engine, args| {
                let columns = [
                    Column::left("Protocol"),
                    Column::left("Local"),
                    Column::left("External"),
                    Column::right("VRF").key("vrf"),
                    Column::left("Made by").key("made_by"),
                    Column::right("Sessions"),
                ];
                let places = |nat: &Nat66| nat.shared.binding_places.load(Ordering::Relaxed);
                long(engine, args, "bindings", Table::new(columns), places, add_binding)
            }),
    );
    let short: [(&str, &str, Show); 5] = [
        ("show nat66 summary", "Show how many NAT66 sessions there are and may be", summary),
        ("show nat66 pool", "Show the pool of NAT66", addresses),
        ("show nat66 static mappings", "Show which hosts are reached from outside", mappings),
        ("show nat66 interfaces", "Show which interfaces are inside and outside", interfaces),
        ("show nat66 timeouts", "Show how long sessions last without packets", timeouts),
    ];
    for (command, help, show) in short {
        registry.command(Command::new(command).group(GROUP).help(help).run(
            move |engine: &mut Engine, _| {
                let shown = engine.get::<Nat66>().map(|nat| show(engine, nat));
                Ok(shown.unwrap_or_else(Output::none))
            },
        ));
    }
}

/// A table of many objects, some in each slice.
fn long(
    engine: &mut Engine,
    args: &Args<'_>,
    key: &'static str,
    table: Table,
    places: fn(&Nat66) -> usize,
    add: fn(&Nat66, &Engine, &mut Table, Option<IpProtocol>, u32),
) -> Result<Work<Engine>, Refusal> {
    let words = [("tcp", IpProtocol::TCP), ("udp", IpProtocol::UDP), ("icmp", IpProtocol::ICMP6)];
    let only = words.into_iter().find(|(word, _)| args.has(word)).map(|(_, protocol)| protocol);
    let max = args.or("max", ROWS_DEFAULT)? as usize;
    let count = engine.get::<Nat66>().filter(|nat| nat.enabled.is_some()).map_or(0, places);
    let slices: Vec<Range<u32>> = (0..count as u32)
        .step_by(PLACES_PER_SLICE as usize)
        .map(|first| first..(first + PLACES_PER_SLICE).min(count as u32))
        .collect();
    let each = move |engine: &Engine, table: &mut Table, slice: Range<u32>| {
        let Some(nat) = engine.get::<Nat66>() else { return };
        for number in slice {
            if table.len() >= max {
                return;
            }
            add(nat, engine, table, only, number);
        }
    };
    let end = move |_: &Engine, table: Table| Output::none().table(key, table);
    Ok(in_slices(engine, slices, table, each, end))
}

/// A session is live when its key leads to it.
fn add_session(
    nat: &Nat66,
    engine: &Engine,
    table: &mut Table,
    only: Option<IpProtocol>,
    number: u32,
) {
    let Some((sessions, objects, _)) = nat.shared.table() else { return };
    let session = Session(objects.get(number));
    let (inside, outside) = (session.inside(), session.outside());
    let is_live = sessions.lookup(&session.inside_key()) == Some(2 * number);
    if !is_live || only.is_some_and(|only| only != inside.protocol) {
        return;
    }
    let is_tcp = inside.protocol == IpProtocol::TCP;
    let now_s = (engine.now_ns() / 1_000_000_000) as u32;
    table
        .row()
        .cell(protocol_word(inside.protocol))
        .cell(inside.source.to_string())
        .cell(outside.destination.to_string())
        .cell(outside.source.to_string())
        .cell(if is_tcp { session.tcp().word() } else { "-" })
        .cell(now_s.saturating_sub(session.seen_s()));
}

fn add_binding(
    nat: &Nat66,
    engine: &Engine,
    table: &mut Table,
    only: Option<IpProtocol>,
    number: u32,
) {
    let binding = nat.shared.table().and_then(|(.., bindings)| bindings.live(number));
    let Some(binding) = binding else { return };
    let ((address, port), protocol) = (binding.host(), binding.protocol());
    if only.is_some_and(|only| only != protocol) {
        return;
    }
    let vrf = engine.get::<Fib>().and_then(|fib| fib.table_id(Family::Ip6, binding.table()));
    table
        .row()
        .cell(protocol_word(protocol))
        .cell(End { address, port }.to_string())
        .cell(binding.external().to_string())
        .cell(vrf)
        .cell(if binding.is_static() { "static" } else { "pool" })
        .cell(binding.users());
}

fn summary(_: &Engine, nat: &Nat66) -> Output {
    let shared = &nat.shared;
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let most = nat.enabled.map_or(0, |enabled| enabled.sessions as u64);
    Output::none()
        .field("State", if nat.enabled.is_some() { "enabled" } else { "disabled" })
        .field("Sessions", shared.sessions() as u64)
        .field("Sessions at most", most)
        .field("Sessions made", count(&shared.made))
        .field("Sessions expired", count(&shared.expired))
        .field("Bindings", shared.bindings.load(Ordering::Relaxed) as u64)
        .field("Static mappings", (nat.statics.len() + nat.whole.len()) as u64)
        .field("Pool addresses", (nat.pool.len() + nat.pool_interfaces.len()) as u64)
        .field("Filtering", nat.filtering.word())
        .field(
            "Sessions of a subscriber at most",
            Cell::optional(nat.limit.map(|limit| limit.sessions), "any"),
        )
}

fn addresses(engine: &Engine, nat: &Nat66) -> Output {
    let mut table = Table::new([
        Column::left("First"),
        Column::left("Last"),
        Column::right("Tenant VRF").key("tenant_vrf"),
    ]);
    let mut by_interface = Table::new([Column::left("Interface")]);
    for (first, last, tenant) in nat.ranges() {
        table.row().cell(first.to_string()).cell(last.to_string()).cell(tenant);
    }
    for id in &nat.pool_interfaces {
        by_interface.row().cell(engine.interface_name(*id));
    }
    Output::none().table("addresses", table).table("interfaces", by_interface)
}

fn mappings(_: &Engine, nat: &Nat66) -> Output {
    let mut table = Table::new([
        Column::left("Protocol"),
        Column::left("Local"),
        Column::left("External"),
        Column::right("VRF").key("vrf"),
    ]);
    let end = |address: Ipv6Addr, port| End { address: address.to_bits(), port }.to_string();
    for (mapping, vrf) in &nat.statics {
        let StaticMapping { local, local_port, external, external_port, protocol } = *mapping;
        table
            .row()
            .cell(protocol_word(protocol))
            .cell(end(local, local_port))
            .cell(end(external, external_port))
            .cell(*vrf);
    }
    for (WholeMapping { local, external }, vrf) in &nat.whole {
        table.row().cell("any").cell(local.to_string()).cell(external.to_string()).cell(*vrf);
    }
    Output::none().table("mappings", table)
}

fn interfaces(engine: &Engine, nat: &Nat66) -> Output {
    let mut table = Table::new([Column::left("Interface"), Column::left("Side")]);
    for interface in engine.all_interfaces() {
        let Some(place) = nat.places.get(&interface.id) else { continue };
        table.row().cell(&interface.name).cell(place.word());
    }
    Output::none().table("interfaces", table)
}

fn timeouts(_: &Engine, nat: &Nat66) -> Output {
    let mut table = Table::new([Column::left("Of"), Column::right("Timeout s").key("timeout_s")]);
    for (class, word) in TIMEOUT_WORDS {
        table.row().cell(word).cell(nat.shared.timeouts.get(class));
    }
    Output::none().table("timeouts", table)
}
