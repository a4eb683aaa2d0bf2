//! `show ip mfib`, `show ip6 mfib`, `show mfib signals`.

use std::net::IpAddr;

use quiver_control::{Args, Cell, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::Engine;
use quiver_tables::fib::{Family, Fib};
use quiver_tables::mfib::{Mfib, RouteKey};

use crate::commands::GROUP;
use crate::state::Signals;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show ip mfib {[table <:u32>] [<group:ip4>]}")
            .group(GROUP)
            .help("Show IPv4 multicast routes, and what came by them")
            .details("With a group: the routes that packets to it could take.")
            .example("show ip mfib 232.1.1.1")
            .run(|engine: &mut Engine, args| shown(engine, args, Family::Ip4)),
    );
    registry.command(
        Command::new("show ip6 mfib {[table <:u32>] [<group:ip6>]}")
            .group(GROUP)
            .help("Show IPv6 multicast routes, and what came by them")
            .details("With a group: the routes that packets to it could take.")
            .example("show ip6 mfib table 0")
            .run(|engine: &mut Engine, args| shown(engine, args, Family::Ip6)),
    );
    registry.command(
        Command::new("show mfib signals")
            .group(GROUP)
            .help("Show for which sources and groups there was no multicast route, or which came from elsewhere")
            .run(|engine: &mut Engine, _| Ok(signals(engine))),
    );
}

fn covers(key: &RouteKey, group: IpAddr) -> bool {
    let mask = |bits: u128, width: u8| bits >> u32::from(width - key.length.min(width)).min(127);
    match (key.group, group) {
        (IpAddr::V4(own), IpAddr::V4(group)) => {
            mask(own.to_bits().into(), 32) == mask(group.to_bits().into(), 32)
        }
        (IpAddr::V6(own), IpAddr::V6(group)) => mask(own.to_bits(), 128) == mask(group.to_bits(), 128),
        _ => false,
    }
}

fn shown(engine: &Engine, args: &Args<'_>, family: Family) -> Result<Output, Refusal> {
    let (group, only): (Option<IpAddr>, Option<u32>) = (args.optional("group")?, args.optional("table")?);
    let (Some(mfib), Some(fib)) = (engine.get::<Mfib>(), engine.get::<Fib>()) else {
        return Ok(Output::none());
    };
    let mut table = Table::new([
        Column::right("Table"),
        Column::left("Source"),
        Column::left("Group"),
        Column::left("Flags"),
        Column::left("Accept"),
        Column::left("Forward"),
        Column::right("Packets"),
        Column::right("Bytes"),
        Column::right("RPF failures").key("rpf_failures"),
    ])
    .when_empty("No multicast route");
    for (key, route, learned, totals) in mfib.iter_all().filter(|(key, ..)| key.family == family) {
        let id = fib.table_id(family, key.table);
        if only.is_some_and(|only| Some(only) != id) || group.is_some_and(|group| !covers(key, group)) {
            continue;
        }
        let flags = [
            (route.signal, "Signal"),
            (route.drop, "Drop"),
            (route.accept_all, "Accept-all"),
            (learned, "Learned"),
        ];
        let flags: Vec<_> = flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect();
        let accept: Vec<_> = route.accept.iter().map(|id| engine.interface_name(*id)).collect();
        let forward = route.forward.iter().map(|(id, threshold)| {
            let name = engine.interface_name(*id);
            let up = fib.interface(*id).is_some_and(|info| info.up);
            let above = if *threshold > 0 { format!(" above {threshold}") } else { String::new() };
            format!("{name}{above}{}", if up { "" } else { " (down)" })
        });
        let forward: Vec<_> = forward.chain(route.local.then(|| "local".to_owned())).collect();
        let width = if family == Family::Ip4 { 32 } else { 128 };
        let groups =
            if key.length == width { key.group.to_string() } else { format!("{}/{}", key.group, key.length) };
        table
            .row()
            .cell(id)
            .cell(key.source.map_or_else(|| Cell::new("*", "*"), Cell::from))
            .cell(groups)
            .cell(flags.join(" "))
            .cell(Cell::new(accept.join(", "), accept.clone()))
            .cell(Cell::new(forward.join(", "), forward.clone()))
            .cell(totals.packets)
            .cell(totals.bytes)
            .cell(totals.rejected);
    }
    Ok(Output::none().table("routes", table))
}

fn signals(engine: &Engine) -> Output {
    let Some(signals) = engine.get::<Signals>() else { return Output::none() };
    let mut table = Table::new([
        Column::right("Age").key("age_s"),
        Column::left("Source"),
        Column::left("Group"),
        Column::left("Interface"),
        Column::left("Why"),
        Column::right("Count"),
    ])
    .when_empty("No signal");
    let mut heard: Vec<_> = signals.heard.iter().collect();
    heard.sort_by_key(|(_, heard)| std::cmp::Reverse(heard.at_ns));
    for (signal, heard) in heard {
        let age = engine.now_ns().saturating_sub(heard.at_ns) as f64 / 1e9;
        table
            .row()
            .cell(Cell::real(age, 1))
            .cell(signal.source)
            .cell(signal.group)
            .cell(engine.interface_name(signal.rx))
            .cell(signal.why.word())
            .cell(heard.count);
    }
    let output = Output::none().table("signals", table);
    match signals.forgotten {
        0 => output,
        count => output.line(format!("{count} older ones made room for these")),
    }
}

/// The rows of `show memory`.
pub(crate) fn memory(engine: &Engine) -> Vec<(&'static str, u64)> {
    engine.get::<Mfib>().map(|mfib| ("multicast routes", mfib.resident_bytes() as u64)).into_iter().collect()
}
