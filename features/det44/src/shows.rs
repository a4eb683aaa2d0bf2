//! Shows.

use std::net::Ipv4Addr;
use std::ops::Range;

use quiver_control::{Column, Command, Output, Refusal, Registry, Table, Work, in_slices};
use quiver_core::Engine;
use quiver_translation::flow::End;
use quiver_wire::IpProtocol;

use crate::commands::{GROUP, TIMEOUTS};
use crate::config::{Det44, SLOT_BYTES};
use crate::mapping::FIRST_PORT;
use crate::slots::SLOTS_PER_ADDRESS;

/// Slots that a slice of `show det44 sessions` looks at.
const SLOTS_PER_SLICE: usize = 8_192;

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
        Command::new("show det44 mappings")
            .group(GROUP)
            .help("Show the mappings of deterministic NAT, and how many ports a host has")
            .run(|engine: &mut Engine, _| Ok(mappings(engine))),
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
    let now_s = (engine.now_ns() / 1_000_000_000) as u32;
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

fn mappings(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Inside"),
        Column::left("Outside"),
        Column::right("Sharing ratio").key("sharing_ratio"),
        Column::right("Ports per host").key("ports_per_host"),
        Column::right("Sessions at most").key("sessions_max"),
        Column::right("Bytes at most").key("bytes_max"),
    ]);
    for of in engine.get::<Det44>().into_iter().flat_map(|det| &det.mappings) {
        let (mapping, slots) = (&of.mapping, of.mapping.slots().len());
        let hosts = mapping.outside_addresses() * mapping.sharing_ratio() as usize;
        table
            .row()
            .cell(of.inside.to_string())
            .cell(of.outside.to_string())
            .cell(mapping.sharing_ratio())
            .cell(mapping.ports_per_host())
            .cell((hosts * mapping.ports_per_host() as usize) as u64)
            .cell((slots * SLOT_BYTES) as u64);
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
