//! `show ip mfib`, `show ip6 mfib`, `show mfib signals`.

use std::net::IpAddr;

use quiver_control::{
    Args, Cell, Column, Command, Listing, Output, Refusal, Registry, Table, Work,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::mfib::{Mfib, Route, RouteKey, RouteTotals};
use serde_json::{Value, json};

use crate::commands::GROUP;
use crate::state::Signals;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show ip mfib {[table <:u32>] [<group:ip4>]}")
            .group(GROUP)
            .help("Show IPv4 multicast routes, and what came by them")
            .details("With a group: the routes that packets to it could take.")
            .example("show ip mfib 232.1.1.1")
            .run_or_begin(|engine: &mut Engine, args| listing(engine, args, Family::Ip4)),
    );
    registry.command(
        Command::new("show ip6 mfib {[table <:u32>] [<group:ip6>]}")
            .group(GROUP)
            .help("Show IPv6 multicast routes, and what came by them")
            .details("With a group: the routes that packets to it could take.")
            .example("show ip6 mfib table 0")
            .run_or_begin(|engine: &mut Engine, args| listing(engine, args, Family::Ip6)),
    );
    registry.command(
        Command::new("show mfib signals")
            .group(GROUP)
            .help(
                "Show for which sources and groups there was no multicast route, or which came \
                 from elsewhere",
            )
            .run_or_begin(|engine: &mut Engine, _| signals(engine)),
    );
}

fn covers(key: &RouteKey, group: IpAddr) -> bool {
    let mask = |bits: u128, width: u8| bits >> u32::from(width - key.length.min(width)).min(127);
    match (key.group, group) {
        (IpAddr::V4(own), IpAddr::V4(group)) => {
            mask(own.to_bits().into(), 32) == mask(group.to_bits().into(), 32)
        }
        (IpAddr::V6(own), IpAddr::V6(group)) => {
            mask(own.to_bits(), 128) == mask(group.to_bits(), 128)
        }
        _ => false,
    }
}

fn listing(engine: &mut Engine, args: &Args<'_>, family: Family) -> Result<Work<Engine>, Refusal> {
    let (group, only): (Option<IpAddr>, Option<u32>) =
        (args.optional("group")?, args.optional("table")?);
    let columns = [
        Column::right("Table"),
        Column::left("Source"),
        Column::left("Group"),
        Column::left("Flags"),
        Column::left("Accept"),
        Column::left("Forward"),
        Column::right("Packets"),
        Column::right("Bytes"),
        Column::right("RPF failures").key("rpf_failures"),
    ];
    let mut last = None;
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let (Some(mfib), Some(fib)) = (engine.get::<Mfib>(), engine.get::<Fib>()) else {
            return Ok(Some(Output::none()));
        };
        let mut looked_at = 0;
        for (key, route, learned, totals) in mfib.all_after(last).take(most) {
            (looked_at, last) = (looked_at + 1, Some(*key));
            let id = fib.table_id(family, key.table);
            let is_wanted = key.family == family
                && only.is_none_or(|only| Some(only) == id)
                && group.is_none_or(|group| covers(key, group));
            if is_wanted {
                add_route((engine, fib), table, id, key, (&route, learned, totals));
            }
        }
        Ok((looked_at < most).then(Output::none))
    };
    Listing::new("routes", columns, rows).when_empty("No multicast route").begin(engine)
}

fn add_route(
    (engine, fib): (&Engine, &Fib),
    table: &mut Table,
    id: Option<u32>,
    key: &RouteKey,
    (route, learned, totals): (&Route, bool, RouteTotals),
) {
    let flags = [
        (route.signal, "Signal"),
        (route.drop, "Drop"),
        (route.accept_all, "Accept-all"),
        (learned, "Learned"),
    ];
    let flags: Vec<_> = flags.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect();
    let local = route.local.then(|| "local".to_owned());
    let flag_names: Vec<_> =
        flags.iter().map(|flag| flag.to_lowercase()).chain(local.clone()).collect();
    let accept: Vec<_> = route.accept.iter().map(|id| engine.interface_name(*id)).collect();
    let is_up = |id| fib.interface(id).is_some_and(|info| info.up);
    let outputs = route.forward.iter().map(|(id, threshold)| {
        let state = if is_up(*id) { "up" } else { "down" };
        json!({
            "interface": engine.interface_name(*id), "ttl_threshold": threshold, "state": state
        })
    });
    let outputs = Value::Array(outputs.collect());
    let forward = route.forward.iter().map(|(id, threshold)| {
        let name = engine.interface_name(*id);
        let up = is_up(*id);
        let above = if *threshold > 0 { format!(" above {threshold}") } else { String::new() };
        format!("{name}{above}{}", if up { "" } else { " (down)" })
    });
    let forward: Vec<_> = forward.chain(local).collect();
    let width = if key.family == Family::Ip4 { 32 } else { 128 };
    let groups = if key.length == width {
        key.group.to_string()
    } else {
        format!("{}/{}", key.group, key.length)
    };
    table
        .row()
        .cell(id)
        .cell(key.source.map_or_else(|| Cell::new("*", "*"), Cell::from))
        .cell(groups)
        .cell(Cell::new(flags.join(" "), flag_names))
        .cell(Cell::new(accept.join(", "), accept.clone()))
        .cell(Cell::new(forward.join(", "), outputs))
        .cell(totals.packets)
        .cell(totals.bytes)
        .cell(totals.rejected);
}

fn signals(engine: &mut Engine) -> Result<Work<Engine>, Refusal> {
    let Some(signals) = engine.get::<Signals>() else { return Ok(Work::Done(Output::none())) };
    let columns = [
        Column::right("Age").key("age_s"),
        Column::left("Source"),
        Column::left("Group"),
        Column::left("Interface"),
        Column::left("Why"),
        Column::right("Count"),
    ];
    let mut heard: Vec<_> =
        signals.heard.iter().map(|(signal, heard)| (heard.at_ns, *signal)).collect();
    heard.sort_by_key(|(at_ns, _)| std::cmp::Reverse(*at_ns));
    let mut keys = heard.into_iter().map(|(_, signal)| signal);
    let rows = move |engine: &mut Engine, table: &mut Table, most: usize| {
        let Some(signals) = engine.get::<Signals>() else { return Ok(Some(Output::none())) };
        for signal in keys.by_ref().take(most) {
            let Some(heard) = signals.heard.get(&signal) else { continue };
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
        let foot = || match signals.forgotten {
            0 => Output::none(),
            count => Output::none().line(format!("{count} older ones made room for these")),
        };
        Ok((keys.len() == 0).then(foot))
    };
    Listing::new("signals", columns, rows).when_empty("No signal").begin(engine)
}

/// The rows of `show memory`.
pub(crate) fn memory(engine: &Engine) -> Vec<(&'static str, u64)> {
    engine
        .get::<Mfib>()
        .map(|mfib| ("multicast routes", mfib.resident_bytes() as u64))
        .into_iter()
        .collect()
}
