//! Shows.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::atomic::Ordering;

use quiver_control::{Cell, Column, Command, Output, Refusal, Registry, Table, Work, in_slices};
use quiver_core::Engine;
use quiver_translation::flow::End;

use crate::bindings::Kind;
use crate::commands::{GROUP, TIMEOUTS, protocol_word};
use crate::config::Nat44;
use crate::session::{Direction, Flags, Session};
use crate::softwires::shows::b4_cell;

/// Sessions that a slice of `show nat44 sessions` looks at.
const PLACES_PER_SLICE: u32 = 1_024;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "show nat44 sessions {[local <:ip4>] [external <:ip4>] [remote <:ip4>] \
             [max <:1-1000000>]}",
        )
        .group(GROUP)
        .help("Show NAT44 sessions")
        .details(
            "Local and external are the two names of an end inside; a host inside that another \
             one reaches by its outside address (hairpinning) is a remote. Idle is the time since \
             the last packet that refreshed the session.",
        )
        .word("local", "sessions of a host inside")
        .word("external", "sessions of an address outside")
        .word("remote", "sessions with a host outside")
        .word("max", "sessions at most; 1000")
        .run_or_begin(|engine: &mut Engine, args| {
            let wanted = Wanted {
                local: args.optional::<Ipv4Addr>("local")?.map(u32::from),
                external: args.optional::<Ipv4Addr>("external")?.map(u32::from),
                remote: args.optional::<Ipv4Addr>("remote")?.map(u32::from),
                max: args.or("max", 1_000u32)? as usize,
            };
            sessions(engine, wanted)
        }),
    );
    registry.command(
        Command::new("show nat44 summary")
            .group(GROUP)
            .help("Show how many NAT44 sessions there are and may be")
            .run(|engine: &mut Engine, _| summary(engine)),
    );
    registry.command(
        Command::new("show nat44 addresses")
            .group(GROUP)
            .help("Show the pool of NAT44")
            .run(|engine: &mut Engine, _| Ok(addresses(engine))),
    );
    registry.command(
        Command::new("show nat44 interfaces")
            .group(GROUP)
            .help("Show which interfaces are inside and outside")
            .run(|engine: &mut Engine, _| Ok(interfaces(engine))),
    );
    registry.command(
        Command::new("show nat44 static mappings")
            .group(GROUP)
            .help("Show the static mappings of NAT44")
            .run(|engine: &mut Engine, _| Ok(crate::mapping_shows::mappings(engine))),
    );
    registry.command(
        Command::new("show nat timeouts")
            .group(GROUP)
            .help("Show how long sessions last without packets")
            .run(|engine: &mut Engine, _| Ok(timeouts(engine))),
    );
    registry.command(
        Command::new("show nat mss-clamping")
            .group(GROUP)
            .help("Show the segment size that SYNs may name")
            .run(|engine: &mut Engine, _| {
                let mss = engine.get::<Nat44>().map_or(0, |nat| nat.shared.mss());
                let mss = (mss != 0).then_some(mss);
                Ok(Output::none().field("MSS clamping", Cell::optional(mss, "off")))
            }),
    );
}

/// Filter of sessions.
#[derive(Clone, Copy)]
struct Wanted {
    local: Option<u32>,
    external: Option<u32>,
    remote: Option<u32>,
    max: usize,
}

fn sessions(engine: &mut Engine, wanted: Wanted) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Protocol"),
        Column::left("Local"),
        Column::left("B4"),
        Column::left("External"),
        Column::left("Remote"),
        Column::left("State"),
        Column::right("Idle s").key("idle_s"),
        Column::left("Made by").key("made_by"),
    ];
    let places = engine.get::<Nat44>().filter(|nat| nat.enabled.is_some());
    let places = places.map_or(0, |nat| nat.shared.places.load(Ordering::Relaxed) as u32);
    let slices: Vec<Range<u32>> = (0..places)
        .step_by(PLACES_PER_SLICE as usize)
        .map(|first| first..(first + PLACES_PER_SLICE).min(places))
        .collect();
    let add = move |engine: &Engine, table: &mut Table, slice: Range<u32>| {
        for session in slice {
            if table.len() >= wanted.max {
                return;
            }
            add_session(engine, table, wanted, session);
        }
    };
    let end = |_: &Engine, table: Table| Output::none().table("sessions", table);
    Ok(in_slices(engine, slices, Table::new(columns), add, end))
}

/// A session is live when its key leads to it.
fn add_session(engine: &Engine, table: &mut Table, wanted: Wanted, number: u32) {
    let Some(nat) = engine.get::<Nat44>() else { return };
    let Some((sessions, objects)) = nat.shared.table() else { return };
    let session = Session(objects.get(number));
    let (inside, outside) = (session.flow(Direction::InToOut), session.flow(Direction::OutToIn));
    if sessions.lookup(&inside.key()) != Some(2 * number) {
        return;
    }
    let is = |wanted: Option<u32>, end: End| wanted.is_none_or(|wanted| wanted == end.address);
    let (local, external, remote) = (inside.source, outside.destination, inside.destination);
    if !is(wanted.local, local) || !is(wanted.external, external) || !is(wanted.remote, remote) {
        return;
    }
    let state =
        if inside.protocol == quiver_wire::IpProtocol::TCP { session.tcp().word() } else { "-" };
    let now_s = (engine.now_ns() / 1_000_000_000) as u32;
    let flags = session.flags();
    let made_by = match flags {
        _ if flags.has(Flags::EXPECTED.with(Flags::CALL)) => "helper",
        _ if flags.has(Flags::HAIRPIN) => "hairpin",
        _ if flags.has(Flags::BALANCED) => "load-balancing",
        _ if flags.has(Flags::STATIC) => "static-mapping",
        _ if flags.has(Flags::MAPPED) => "mapping",
        _ => "pool",
    };
    table
        .row()
        .cell(protocol_word(inside.protocol.0))
        .cell(local.to_string())
        .cell(b4_cell(nat, inside.table))
        .cell(external.to_string())
        .cell(remote.to_string())
        .cell(state)
        .cell(now_s.saturating_sub(session.seen_s()))
        .cell(made_by);
}

fn summary(engine: &mut Engine) -> Result<Output, Refusal> {
    let Some(nat) = engine.get::<Nat44>() else { return Ok(Output::none()) };
    let shared = &nat.shared;
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let binding = |kind: Kind| shared.binding_counts[kind as usize].load(Ordering::Relaxed) as u64;
    let bindings = nat.enabled.filter(|_| nat.has_bindings);
    let bindings = bindings.map(|enabled| enabled.bindings as u64);
    let most = nat.enabled.map(|enabled| enabled.sessions as u64);
    let output = Output::none()
        .field("State", if nat.enabled.is_some() { "enabled" } else { "disabled" })
        .field("Sessions", shared.sessions() as u64)
        .field("Sessions at most", most.unwrap_or(0))
        .field("Sessions at once", shared.most_sessions.load(Ordering::Relaxed) as u64)
        .field("Sessions made", count(&shared.made))
        .field("Sessions expired", count(&shared.expired))
        .field("Pool addresses", (nat.pool.len() + nat.pool_interfaces.len()) as u64)
        .field(
            "Static mappings",
            (nat.mappings.len() + nat.balanced.len() + nat.identities.len()) as u64,
        )
        .field("Bindings at most", bindings.unwrap_or(0))
        .field("Subscribers", binding(Kind::Subscriber))
        .field("Port blocks", binding(Kind::Block))
        .field("Mappings", binding(Kind::Mapping))
        .field("Resting ports", binding(Kind::Quarantine))
        .field("Forwarding", if nat.forwarding { "enabled" } else { "disabled" });
    Ok(output)
}

fn addresses(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("First"),
        Column::left("Last"),
        Column::right("Tenant VRF").key("tenant_vrf"),
    ]);
    let mut by_interface = Table::new([Column::left("Interface")]);
    let Some(nat) = engine.get::<Nat44>() else { return Output::none() };
    for (first, last, tenant) in nat.ranges() {
        table.row().cell(first.to_string()).cell(last.to_string()).cell(tenant);
    }
    for id in &nat.pool_interfaces {
        by_interface.row().cell(engine.interface_name(*id));
    }
    let mut twice = Table::new([Column::left("Address")]);
    for address in &nat.twice_pool {
        twice.row().cell(address.to_string());
    }
    Output::none()
        .table("addresses", table)
        .table("interfaces", by_interface)
        .table("twice_nat", twice)
}

fn interfaces(engine: &Engine) -> Output {
    let mut table = Table::new([Column::left("Interface"), Column::left("Side")]);
    let Some(nat) = engine.get::<Nat44>() else { return Output::none() };
    for interface in engine.all_interfaces() {
        let Some(sides) = nat.sides.get(&interface.id) else { continue };
        let side = match (sides.inside, sides.output, sides.outside) {
            (true, true, _) => "in out output-feature",
            (true, _, true) => "in out",
            (true, ..) => "in",
            (_, true, _) => "out output-feature",
            _ => "out",
        };
        table.row().cell(&interface.name).cell(side);
    }
    Output::none().table("interfaces", table)
}

fn timeouts(engine: &Engine) -> Output {
    let mut table = Table::new([Column::left("Of"), Column::right("Timeout s").key("timeout_s")]);
    let Some(nat) = engine.get::<Nat44>() else { return Output::none() };
    for (class, word) in TIMEOUTS {
        table.row().cell(word).cell(nat.shared.timeout_s(class));
    }
    Output::none().table("timeouts", table)
}
