//! Shows of bindings: subscribers, port blocks, endpoint-independent mappings.

use std::net::Ipv4Addr;
use std::ops::Range;
use std::sync::atomic::Ordering;

use quiver_control::{Column, Command, Output, Refusal, Registry, Table, Work, in_slices};
use quiver_core::Engine;

use crate::bindings::{Binding, Kind};
use crate::commands::{GROUP, protocol_word};
use crate::config::Nat44;
use crate::session::Direction;
use crate::softwires::shows::b4_cell;

/// Bindings that a slice looks at.
const PLACES_PER_SLICE: u32 = 1_024;
/// Rows when no number is given.
const ROWS_DEFAULT: u32 = 1_000;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "show nat44 blocks {[inside <:ip4> | outside <:ip4> [<port:0-65535>]] \
             [max <:1-1000000>]}",
        )
        .group(GROUP)
        .help("Show which host has which block of external ports")
        .details("With `outside`, an address and a port: the host that has the port.")
        .word("inside", "blocks of a host")
        .word("outside", "blocks of an external address")
        .word("max", "blocks at most; 1000")
        .example("show nat44 blocks inside 10.0.0.3")
        .example("show nat44 blocks outside 192.0.2.1 2345")
        .run_or_begin(|engine: &mut Engine, args| {
            let wanted = Wanted {
                kind: Kind::Block,
                inside: args.optional::<Ipv4Addr>("inside")?.map(u32::from),
                outside: args.optional::<Ipv4Addr>("outside")?.map(u32::from),
                port: args.optional("port")?,
                max: args.or("max", ROWS_DEFAULT)? as usize,
            };
            show(
                engine,
                wanted,
                "blocks",
                &[
                    Column::left("Inside"),
                    Column::left("B4"),
                    Column::left("Outside"),
                    Column::right("First port").key("first_port"),
                    Column::right("Last port").key("last_port"),
                    Column::right("Used"),
                    Column::right("Age s").key("age_s"),
                    Column::right("Idle s").key("idle_s"),
                ],
            )
        }),
    );
    registry.command(
        Command::new("show nat44 subscribers {[inside <:ip4>] [max <:1-1000000>]}")
            .group(GROUP)
            .help("Show hosts inside with their sessions, mappings and port blocks")
            .details("Hosts are known while an option needs them: limits, blocks, pooling.")
            .word("inside", "one host")
            .word("max", "hosts at most; 1000")
            .example("show nat44 subscribers inside 10.0.0.3")
            .run_or_begin(|engine: &mut Engine, args| {
                let wanted = Wanted {
                    kind: Kind::Subscriber,
                    inside: args.optional::<Ipv4Addr>("inside")?.map(u32::from),
                    outside: None,
                    port: None,
                    max: args.or("max", ROWS_DEFAULT)? as usize,
                };
                show(
                    engine,
                    wanted,
                    "subscribers",
                    &[
                        Column::left("Inside"),
                        Column::left("B4"),
                        Column::right("Sessions"),
                        Column::right("Mappings"),
                        Column::right("Blocks"),
                        Column::left("Paired with").key("paired_with"),
                    ],
                )
            }),
    );
    registry.command(
        Command::new(
            "show nat44 mappings {[inside <:ip4> | outside <:ip4> [<port:0-65535>]] \
             [max <:1-1000000>]}",
        )
        .group(GROUP)
        .help("Show endpoint-independent mappings")
        .word("inside", "mappings of a host")
        .word("outside", "mappings of an external address")
        .word("max", "mappings at most; 1000")
        .example("show nat44 mappings inside 10.0.0.3")
        .run_or_begin(|engine: &mut Engine, args| {
            let wanted = Wanted {
                kind: Kind::Mapping,
                inside: args.optional::<Ipv4Addr>("inside")?.map(u32::from),
                outside: args.optional::<Ipv4Addr>("outside")?.map(u32::from),
                port: args.optional("port")?,
                max: args.or("max", ROWS_DEFAULT)? as usize,
            };
            show(
                engine,
                wanted,
                "mappings",
                &[
                    Column::left("Protocol"),
                    Column::left("Inside"),
                    Column::left("B4"),
                    Column::left("Outside"),
                    Column::right("Sessions"),
                    Column::right("Age s").key("age_s"),
                    Column::right("Idle s").key("idle_s"),
                ],
            )
        }),
    );
}

/// Filter of bindings.
#[derive(Clone, Copy)]
struct Wanted {
    kind: Kind,
    inside: Option<u32>,
    outside: Option<u32>,
    port: Option<u16>,
    max: usize,
}

fn show(
    engine: &mut Engine,
    wanted: Wanted,
    name: &'static str,
    columns: &[Column],
) -> Result<Work<Engine>, Refusal> {
    let nat = engine.get::<Nat44>().filter(|nat| nat.has_bindings);
    let places = nat.map_or(0, |nat| nat.shared.binding_places.load(Ordering::Relaxed) as u32);
    let slices: Vec<Range<u32>> = (0..places)
        .step_by(PLACES_PER_SLICE as usize)
        .map(|first| first..(first + PLACES_PER_SLICE).min(places))
        .collect();
    let add = move |engine: &Engine, table: &mut Table, slice: Range<u32>| {
        for number in slice {
            if table.len() >= wanted.max {
                return;
            }
            add_binding(engine, table, wanted, number);
        }
    };
    let end = move |_: &Engine, table: Table| Output::none().table(name, table);
    Ok(in_slices(engine, slices, Table::new(columns.to_vec()), add, end))
}

/// A binding is live when its key leads to it.
fn add_binding(engine: &Engine, table: &mut Table, wanted: Wanted, number: u32) {
    let Some(nat) = engine.get::<Nat44>() else { return };
    let Some(readers) = nat.shared.bindings() else { return };
    let binding = readers.get(number);
    let key = binding.flow(Direction::InToOut).key();
    if binding.kind() != wanted.kind || readers.number(&key) != Some(number) {
        return;
    }
    let now_s = (engine.now_ns() / 1_000_000_000) as u32;
    match wanted.kind {
        Kind::Subscriber => subscriber(nat, table, wanted, binding),
        Kind::Block => block(nat, table, wanted, binding, now_s),
        _ => mapping(nat, table, wanted, binding, now_s),
    }
}

fn is(wanted: Option<u32>, address: u32) -> bool {
    wanted.is_none_or(|wanted| wanted == address)
}

fn subscriber(nat: &Nat44, table: &mut Table, wanted: Wanted, binding: Binding<'_>) {
    let host = binding.flow(Direction::InToOut);
    let address = host.source.address;
    // Address 0 stands for a table as a whole.
    if address == 0 || !is(wanted.inside, address) {
        return;
    }
    let paired = Some(binding.paired()).filter(|paired| *paired != 0);
    table
        .row()
        .cell(Ipv4Addr::from(address).to_string())
        .cell(b4_cell(nat, host.table))
        .cell(binding.users())
        .cell(binding.mappings())
        .cell(binding.blocks())
        .cell(paired.map(|paired| Ipv4Addr::from(paired).to_string()));
}

fn block(nat: &Nat44, table: &mut Table, wanted: Wanted, binding: Binding<'_>, now_s: u32) {
    let Some(blocks) = nat.settings.blocks else { return };
    let inside = binding.flow(Direction::InToOut).source.address;
    let at = binding.flow(Direction::OutToIn).destination;
    let (first, last) = blocks.ports(at.port.saturating_sub(1));
    let has_port = wanted.port.is_none_or(|port| (first..=last).contains(&port));
    if !is(wanted.inside, inside) || !is(wanted.outside, at.address) || !has_port {
        return;
    }
    table
        .row()
        .cell(Ipv4Addr::from(inside).to_string())
        .cell(b4_cell(nat, binding.flow(Direction::InToOut).table))
        .cell(Ipv4Addr::from(at.address).to_string())
        .cell(first)
        .cell(last)
        .cell(binding.users())
        .cell(now_s.saturating_sub(binding.made_s()))
        .cell(now_s.saturating_sub(binding.seen_s()));
}

fn mapping(nat: &Nat44, table: &mut Table, wanted: Wanted, binding: Binding<'_>, now_s: u32) {
    let flow = binding.flow(Direction::InToOut);
    let (inside, outside) = (flow.source, binding.flow(Direction::OutToIn).destination);
    let has_port = wanted.port.is_none_or(|port| outside.port == port);
    if !is(wanted.inside, inside.address) || !is(wanted.outside, outside.address) || !has_port {
        return;
    }
    table
        .row()
        .cell(protocol_word(flow.protocol.0))
        .cell(inside.to_string())
        .cell(b4_cell(nat, flow.table))
        .cell(outside.to_string())
        .cell(binding.users())
        .cell(now_s.saturating_sub(binding.made_s()))
        .cell(now_s.saturating_sub(binding.seen_s()));
}
