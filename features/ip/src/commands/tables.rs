//! Tables.

use std::collections::BTreeMap;

use quiver_control::{
    Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order, quoted,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};

use super::{GROUP, fib};
use crate::state::{IpState, with_ip};

pub(crate) fn register(registry: &mut Registry) {
    registry.on_start(|engine| engine.insert(TableNames::default()));
    for (family, change, show, example) in [
        (
            Family::Ip4,
            "ip table [add|del] <table:u32> [name <:text>]",
            "show ip table",
            "ip table add 10 name blue",
        ),
        (
            Family::Ip6,
            "ip6 table [add|del] <table:u32> [name <:text>]",
            "show ip6 table",
            "ip6 table add 10 name blue",
        ),
    ] {
        registry.command(
            Command::new(change)
                // Tunnels, which are interfaces, name tables.
                .entry(
                    order::RESOURCES,
                    match family {
                        Family::Ip4 => "tables.<table>.ip4: {name} with add",
                        Family::Ip6 => "tables.<table>.ip6: {name} with add",
                    },
                )
                .undo(match family {
                    Family::Ip4 => "ip table del <table>",
                    Family::Ip6 => "ip6 table del <table>",
                })
                .amends(&["table"])
                .reset(match family {
                    Family::Ip4 => "ip table add <table> name \"\"",
                    Family::Ip6 => "ip6 table add <table> name \"\"",
                })
                .group(GROUP)
                .help("Add a table, or delete it with all its routes")
                .details(
                    "Table 0 is always there, and can only lose its name. A table that an \
                     interface or a route uses stays. Without `add` or `del` it is added; a table \
                     that is there already gets the name.",
                )
                .word(
                    "name",
                    "what operators call it, shown beside the number; an empty one takes it off",
                )
                .example(example)
                .run(move |engine: &mut Engine, args| {
                    let id: u32 = args.get("table")?;
                    let name: Option<String> = args.optional("name")?;
                    if name.as_deref().is_some_and(|name| !name.is_empty() && !is_name(name)) {
                        let what = format!(
                            "a table's name has 1 to {NAME_CHARS_MAX} printable characters"
                        );
                        return Err(args.refuse("name", what));
                    }
                    change_table(engine, family, id, name, args.has("del")).map(|()| Output::none())
                }),
        );
        registry.command(
            Command::new(show)
                .group(GROUP)
                .help("Show the tables and how many routes they have")
                .run(move |engine: &mut Engine, _| {
                    let fib = fib(engine)?;
                    let mut table = Table::new([
                        Column::right("Table"),
                        Column::left("Name"),
                        Column::right("Routes"),
                        Column::left("Flow hash"),
                    ]);
                    for (id, index) in fib.tables(family) {
                        let routes: u64 =
                            fib.count_by_len(family, index).into_iter().map(u64::from).sum();
                        let hash = fib.flow_fields(family, index).to_string();
                        let name = name_of(engine, family, id);
                        table.row().cell(id).cell(name).cell(routes).cell(hash);
                    }
                    let shown = Output::none().table("tables", table);
                    Ok(match fib.flow_seed() {
                        0 => shown,
                        seed => {
                            shown.line(format!("flow hash seed {seed} (`set ip flow-hash seed`)"))
                        }
                    })
                }),
        );
    }
}

/// Characters in a table's name.
const NAME_CHARS_MAX: usize = 63;

/// The names of tables, by family (IPv6 or not) and number.
#[derive(Default)]
struct TableNames(BTreeMap<(bool, u32), String>);

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && !name.contains(char::is_control)
}

fn name_of(engine: &Engine, family: Family, id: u32) -> Option<&str> {
    engine.get::<TableNames>()?.0.get(&(family == Family::Ip6, id)).map(String::as_str)
}

fn change_table(
    engine: &mut Engine,
    family: Family,
    id: u32,
    name: Option<String>,
    delete: bool,
) -> Result<(), Refusal> {
    let place = (family == Family::Ip6, id);
    // Table 0 stays, and loses its name.
    if delete
        && id == 0
        && engine.get_mut::<TableNames>().is_some_and(|names| names.0.remove(&place).is_some())
    {
        return Ok(());
    }
    let done = with_ip(engine, |_, ip, fib| {
        let index = fib.table_index(family, id);
        if !delete {
            // A table that tunnels named before is there already when a configuration is loaded.
            let is_there = index.is_some() && (name.is_some() || id != 0);
            return if is_there { Ok(()) } else { fib.add_table(family, id).map(|_| ()) };
        }
        fib.delete_table(family, id)?;
        if let Some(index) = index {
            ip.path_mtus.forget_table(index, family == Family::Ip6);
        }
        if family == Family::Ip4 {
            forget_proxies(ip, fib, id);
        }
        Ok(())
    });
    done.map_err(|error| Refusal::of_table(engine, error))?;
    let Some(names) = engine.get_mut::<TableNames>() else { return Ok(()) };
    match name {
        Some(name) if name.is_empty() => drop(names.0.remove(&place)),
        _ if delete => drop(names.0.remove(&place)),
        Some(name) => drop(names.0.insert(place, name)),
        None => {}
    }
    Ok(())
}

/// ARP is answered for nobody in a table that is not there.
fn forget_proxies(ip: &mut IpState, fib: &mut Fib, id: u32) {
    let of_table = ip.arp_proxies.iter().filter(|(table, ..)| *table == id);
    let ranges: Vec<_> = of_table.map(|(_, first, last)| (first, last)).collect();
    if ranges.is_empty() {
        return;
    }
    ranges.into_iter().for_each(|range| ip.arp_proxies.remove(id, range));
    ip.touch_arp_proxies();
    ip.publish(fib);
}

/// The part of `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(fib) = engine.get::<Fib>() else { return };
    if fib.counts_adjacencies() {
        config.command(format_args!("adjacency counters enable"));
    }
    if fib.flow_seed() != 0 {
        config.command(format_args!("set ip flow-hash seed {}", fib.flow_seed()));
    }
    for (family, word) in [(Family::Ip4, "ip"), (Family::Ip6, "ip6")] {
        for (id, _) in fib.tables(family) {
            match name_of(engine, family, id) {
                Some(name) => {
                    config.command(format_args!("{word} table add {id} name {}", quoted(name)))
                }
                None if id != 0 => config.command(format_args!("{word} table add {id}")),
                None => {}
            }
        }
        for (id, index) in fib.tables(family) {
            let fields = fib.flow_fields(family, index);
            if !fields.is_default() {
                config.command(format_args!("set {word} flow-hash table {id} {fields}"));
            }
        }
    }
}
