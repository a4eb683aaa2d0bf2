//! Shows of DS-Lite.

use std::net::Ipv6Addr;
use std::ops::Range;
use std::sync::atomic::Ordering;

use quiver_control::{Cell, Column, Command, Output, Refusal, Registry, Table, Work, in_slices};
use quiver_core::Engine;

use crate::bindings::{Binding, Kind, subscriber_keys};
use crate::commands::GROUP;
use crate::config::{Nat44, ranges_of};
use crate::softwires::table::{address_key, address_of};
use crate::softwires::{B4, B4Number, b4_of};

/// B4s that a slice of `show dslite b4s` looks at.
const PLACES_PER_SLICE: u32 = 1_024;

/// The address of the B4 in the place of a table, for a column of a show.
pub(crate) fn b4_cell(nat: &Nat44, table: u32) -> Cell {
    let readers = nat.shared.softwires();
    let address = readers.zip(b4_of(table)).map(|(readers, number)| {
        Ipv6Addr::from_bits(address_of(readers, B4Number(number))).to_string()
    });
    Cell::from(address)
}

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show dslite aftr-tunnel-endpoint-address")
            .group(GROUP)
            .help("Show the end of DS-Lite's tunnels here, and who may be a B4")
            .run(|engine: &mut Engine, _| Ok(aftr(engine))),
    );
    registry.command(
        Command::new("show dslite pool")
            .group(GROUP)
            .help("Show the addresses that hosts behind B4s alone are given")
            .run(|engine: &mut Engine, _| Ok(pool(engine))),
    );
    registry.command(
        Command::new("show dslite b4s {[max <:1-1000000>]}")
            .group(GROUP)
            .help("Show the B4s that have sessions, or had some a short time ago")
            .word("max", "B4s at most; 1000")
            .run_or_begin(|engine: &mut Engine, args| {
                let max = args.or("max", 1_000u32)? as usize;
                b4s(engine, max)
            }),
    );
}

fn aftr(engine: &Engine) -> Output {
    let Some(nat) = engine.get::<Nat44>() else { return Output::none() };
    let (dslite, limit) = (&nat.dslite, nat.dslite.limit);
    let mut prefixes = Table::new([Column::left("Prefix")]);
    for (first, length) in &dslite.admitted {
        prefixes.row().cell(format!("{first}/{length}"));
    }
    let address = dslite.aftr.map(|(address, _)| address.to_string());
    Output::none()
        .field("AFTR", Cell::optional(address, "none"))
        .field("Tunnel MTU bytes", dslite.mtu_bytes)
        .field("B4s", nat.shared.b4s.load(Ordering::Relaxed) as u64)
        .field("B4s at most", dslite.aftr.map_or(0, |(_, b4s)| b4s as u64))
        .field("Prefix length of a subscriber", limit.length)
        .field("B4s of a subscriber at most", limit.b4s)
        .table("b4_prefixes", prefixes)
}

fn pool(engine: &Engine) -> Output {
    let mut table = Table::new([Column::left("First"), Column::left("Last")]);
    let pool = engine.get::<Nat44>().map(|nat| &nat.dslite.pool);
    let addresses = pool.into_iter().flatten().map(|address| (*address, ()));
    for (first, last, ()) in ranges_of(addresses) {
        table.row().cell(first.to_string()).cell(last.to_string());
    }
    Output::none().table("pool", table)
}

fn b4s(engine: &mut Engine, max: usize) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("B4"),
        Column::right("Sessions"),
        Column::right("Blocks"),
        Column::right("Mappings"),
        Column::right("Idle s").key("idle_s"),
    ];
    let nat = engine.get::<Nat44>();
    let places = nat.map_or(0, |nat| nat.shared.b4_places.load(Ordering::Relaxed) as u32);
    let slices: Vec<Range<u32>> = (0..places)
        .step_by(PLACES_PER_SLICE as usize)
        .map(|first| first..(first + PLACES_PER_SLICE).min(places))
        .collect();
    let add = move |engine: &Engine, table: &mut Table, slice: Range<u32>| {
        for number in slice {
            if table.len() >= max {
                return;
            }
            add_b4(engine, table, B4Number(number));
        }
    };
    let end = |_: &Engine, table: Table| Output::none().table("b4s", table);
    Ok(in_slices(engine, slices, Table::new(columns), add, end))
}

/// A B4 is live when its key leads to it.
fn add_b4(engine: &Engine, table: &mut Table, b4: B4Number) {
    let Some(nat) = engine.get::<Nat44>() else { return };
    let Some(readers) = nat.shared.softwires() else { return };
    let address = address_of(readers, b4);
    if readers.table.lookup(&address_key(address)) != Some(2 * b4.0) {
        return;
    }
    let subscriber = nat.shared.bindings().and_then(|bindings| {
        let found = bindings.find(&subscriber_keys(b4.table(), B4)[0])?;
        (found.kind() == Kind::Subscriber).then(|| (found.blocks(), found.mappings()))
    });
    let (blocks, mappings) = subscriber.unwrap_or((0, 0));
    let words: Binding<'_> = readers.get(b4.0);
    let now_s = (engine.now_ns() / 1_000_000_000) as u32;
    table
        .row()
        .cell(Ipv6Addr::from_bits(address).to_string())
        .cell(words.users())
        .cell(blocks)
        .cell(mappings)
        .cell(now_s.saturating_sub(words.seen_s()));
}
