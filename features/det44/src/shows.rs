//! Shows.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use quiver_control::{Column, Command, Output, Refusal, Registry, Table, Work, in_slices};
use quiver_core::Engine;
use quiver_translation::flow::End;
use quiver_wire::IpProtocol;

use crate::census::{seconds, slots_of};
use crate::commands::{GROUP, TIMEOUTS};
use crate::config::{Det44, SLOT_BYTES};
use crate::mapping::FIRST_PORT;
use crate::slots::SLOTS_PER_ADDRESS;

/// Slots that a slice of a show looks at: a part of those of an address.
const SLOTS_PER_SLICE: usize = SLOTS_PER_ADDRESS / 8;
const _: () = assert!(SLOTS_PER_ADDRESS.is_multiple_of(SLOTS_PER_SLICE));

/// Sessions of mappings, by the first slots of these.
type Sessions = BTreeMap<usize, u64>;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show det44 sessions {[inside <:ip4>] [outside <:ip4>] [max <:1-1000000>]}")
            .group(GROUP)
            .help("Show sessions of deterministic NAT")
            .word("inside", "sessions of a host inside")
            .word("outside", "sessions of an address outside")
            .word("max", "sessions at most; 1000")
            .run_or_begin(|engine: &mut Engine, args| {
                let wanted = Wanted {
                    inside: args.optional::<Ipv4Addr>("inside")?.map(u32::from),
                    outside: args.optional::<Ipv4Addr>("outside")?.map(u32::from),
                    max: args.or("max", 1_000u32)? as usize,
                };
                sessions(engine, wanted)
            }),
    );
    registry.command(
        Command::new("show det44 summary")
            .group(GROUP)
            .help("Show how many sessions of deterministic NAT there are, and can be")
            .run_or_begin(|engine: &mut Engine, _| Ok(counted(engine, summary))),
    );
    registry.command(
        Command::new("show det44 mappings")
            .group(GROUP)
            .help("Show the mappings of deterministic NAT, their sessions, and the ports of a host")
            .run_or_begin(|engine: &mut Engine, _| Ok(counted(engine, mappings))),
    );
    registry.command(
        Command::new("show det44 interfaces")
            .group(GROUP)
            .help("Show which interfaces are inside and outside")
            .run(|engine: &mut Engine, _| Ok(interfaces(engine))),
    );
    registry.command(
        Command::new("show det44 timeouts")
            .group(GROUP)
            .help("Show how long sessions of deterministic NAT last without packets")
            .run(|engine: &mut Engine, _| Ok(timeouts(engine))),
    );
}

/// Filter of sessions.
#[derive(Clone, Copy)]
struct Wanted {
    inside: Option<u32>,
    outside: Option<u32>,
    max: usize,
}

fn sessions(engine: &mut Engine, wanted: Wanted) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Protocol"),
        Column::left("Inside"),
        Column::left("Outside"),
        Column::left("Remote"),
        Column::left("State"),
        Column::right("Idle s").key("idle_s"),
    ];
    // The slots of an address or of a host, not all, where one is named.
    let ranges = engine.get::<Det44>().into_iter().flat_map(|det| &det.mappings).map(|of| {
        let (mapping, mut slots) = (of.mapping, of.mapping.slots());
        if let Some(outside) = wanted.outside {
            slots = match mapping.host(outside, FIRST_PORT) {
                Some((_, first)) if mapping.is_outside(outside) => first..first + SLOTS_PER_ADDRESS,
                _ => 0..0,
            };
        }
        if let Some(inside) = wanted.inside {
            let block = mapping.block(inside);
            slots = match mapping.is_inside(inside) {
                true => {
                    block.slot.max(slots.start)
                        ..(block.slot + block.ports.get() as usize).min(slots.end)
                }
                false => 0..0,
            };
        }
        slots
    });
    let slices: Vec<Range<usize>> = ranges
        .flat_map(|slots| {
            let end = slots.end;
            slots
                .step_by(SLOTS_PER_SLICE)
                .map(move |first| first..(first + SLOTS_PER_SLICE).min(end))
        })
        .collect();
    let add = move |engine: &Engine, table: &mut Table, slice: Range<usize>| {
        for place in slice {
            if table.len() >= wanted.max {
                return;
            }
            add_session(engine, table, place);
        }
    };
    let end = |_: &Engine, table: Table| Output::none().table("sessions", table);
    Ok(in_slices(engine, slices, Table::new(columns), add, end))
}

fn add_session(engine: &Engine, table: &mut Table, place: usize) {
    let Some(det) = engine.get::<Det44>() else { return };
    let Some(slots) = det.shared.slots() else { return };
    let (ends, life) = slots.get(place);
    let now_s = seconds(engine);
    if !life.lives(&det.shared.timeouts, now_s) {
        return;
    }
    let mappings = det.mappings.iter().map(|of| of.mapping);
    let Some(mapping) = mappings.into_iter().find(|mapping| mapping.slots().contains(&place))
    else {
        return;
    };
    let outside = mapping.end_of(place);
    let Some((host, _)) = mapping.host(outside.address, outside.port) else { return };
    let end = |address, port| End { address, port }.to_string();
    let (protocol, state) = match IpProtocol(life.protocol()) {
        IpProtocol::TCP => ("tcp", life.tcp().word()),
        IpProtocol::ICMP => ("icmp", "-"),
        _ => ("udp", "-"),
    };
    table
        .row()
        .cell(protocol)
        .cell(end(host, ends.inside_port))
        .cell(outside.to_string())
        .cell(end(ends.remote, ends.remote_port))
        .cell(state)
        .cell(now_s.saturating_sub(life.seen_s()));
}

/// Count the sessions of all mappings, by the first slots of these, for an answer.
fn counted(engine: &mut Engine, answer: fn(&Engine, &Sessions) -> Output) -> Work<Engine> {
    let mut slices = Vec::new();
    if let Some(det) = engine.get::<Det44>()
        && let Some(all) = det.shared.slots()
    {
        for mapping in det.mappings.iter().map(|of| of.mapping) {
            let used = mapping.addresses().filter(|address| all.is_used(*address));
            slices.extend(
                used.flat_map(slots_of)
                    .step_by(SLOTS_PER_SLICE)
                    .map(|first| (mapping.slots().start, first..first + SLOTS_PER_SLICE)),
            );
        }
    }
    let add = |engine: &Engine, made: &mut Sessions, (mapping, slots): (usize, Range<usize>)| {
        let Some(det) = engine.get::<Det44>() else { return };
        let Some(all) = det.shared.slots() else { return };
        *made.entry(mapping).or_default() += all.live(slots, &det.shared.timeouts, seconds(engine));
    };
    let end = move |engine: &Engine, made: Sessions| answer(engine, &made);
    in_slices(engine, slices, Sessions::new(), add, end)
}

fn summary(engine: &Engine, sessions: &Sessions) -> Output {
    let mappings = engine.get::<Det44>().map_or(&[][..], |det| &det.mappings);
    let max: usize = mappings.iter().map(|of| of.mapping.sessions_max()).sum();
    Output::none()
        .field("Mappings", mappings.len() as u64)
        .field("Sessions", sessions.values().sum::<u64>())
        .field("Sessions at most", max as u64)
}

fn mappings(engine: &Engine, sessions: &Sessions) -> Output {
    let mut table = Table::new([
        Column::left("Inside"),
        Column::left("Outside"),
        Column::right("Sharing ratio").key("sharing_ratio"),
        Column::right("Ports per host").key("ports_per_host"),
        Column::right("Sessions"),
        Column::right("Sessions at most").key("sessions_max"),
        Column::right("Bytes at most").key("bytes_max"),
    ]);
    for of in engine.get::<Det44>().into_iter().flat_map(|det| &det.mappings) {
        let (mapping, slots) = (&of.mapping, of.mapping.slots());
        table
            .row()
            .cell(of.inside.to_string())
            .cell(of.outside.to_string())
            .cell(mapping.sharing_ratio())
            .cell(mapping.ports_per_host())
            .cell(sessions.get(&slots.start).copied().unwrap_or(0))
            .cell(mapping.sessions_max() as u64)
            .cell((slots.len() * SLOT_BYTES) as u64);
    }
    Output::none().table("mappings", table)
}

fn interfaces(engine: &Engine) -> Output {
    let mut table = Table::new([Column::left("Interface"), Column::left("Side")]);
    let Some(det) = engine.get::<Det44>() else { return Output::none() };
    for interface in engine.all_interfaces() {
        let Some(sides) = det.sides.get(&interface.id) else { continue };
        for (is, side) in [(sides.inside, "inside"), (sides.outside, "outside")] {
            if is {
                table.row().cell(&interface.name).cell(side);
            }
        }
    }
    Output::none().table("interfaces", table)
}

fn timeouts(engine: &Engine) -> Output {
    let mut table = Table::new([Column::left("Of"), Column::right("Timeout s").key("timeout_s")]);
    let Some(det) = engine.get::<Det44>() else { return Output::none() };
    for (class, word) in TIMEOUTS {
        table.row().cell(word).cell(det.shared.timeouts.get(class));
    }
    Output::none().table("timeouts", table)
}
