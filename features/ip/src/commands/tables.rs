//! Tables.

use quiver_control::{Column, Command, ConfigWriter, Output, Refusal, Registry, Table};
use quiver_core::Engine;
use quiver_tables::fib::{Family, Fib};

use super::{GROUP, fib};
use crate::state::{refusal, with_ip};

pub(crate) fn register(registry: &mut Registry) {
    for (family, change, show, example) in [
        (Family::Ip4, "ip table add|del <table:u32>", "show ip table", "ip table add 10"),
        (Family::Ip6, "ip6 table add|del <table:u32>", "show ip6 table", "ip6 table add 10"),
    ] {
        registry.command(
            Command::new(change)
                .group(GROUP)
                .help("Add a table, or delete it with all its routes")
                .details("Table 0 is always there. A table that an interface or a route uses stays.")
                .example(example)
                .run(move |engine: &mut Engine, args| {
                    let id: u32 = args.get("table")?;
                    change_table(engine, family, id, args.has("del")).map(|()| Output::none())
                }),
        );
        registry.command(
            Command::new(show).group(GROUP).help("Show the tables and how many routes they have").run(
                move |engine: &mut Engine, _| {
                    let fib = fib(engine)?;
                    let mut table = Table::new([
                        Column::right("Table"),
                        Column::right("Routes"),
                        Column::left("Flow hash"),
                    ]);
                    for (id, index) in fib.tables(family) {
                        let routes: u64 = fib.count_by_len(family, index).into_iter().map(u64::from).sum();
                        let hash = fib.flow_fields(family, index).to_string();
                        table.row().cell(id).cell(routes).cell(hash);
                    }
                    let shown = Output::none().table("tables", table);
                    Ok(match fib.flow_seed() {
                        0 => shown,
                        seed => shown.line(format!("flow hash seed {seed} (`set ip flow-hash seed`)")),
                    })
                },
            ),
        );
    }
}

fn change_table(engine: &mut Engine, family: Family, id: u32, delete: bool) -> Result<(), Refusal> {
    let done = with_ip(engine, |_, ip, fib| {
        if !delete {
            return fib.add_table(family, id).map(|_| ());
        }
        let index = fib.table_index(family, id);
        fib.delete_table(family, id)?;
        if let Some(index) = index {
            ip.path_mtus.forget_table(index, family == Family::Ip6);
        }
        Ok(())
    });
    done.map_err(|error| refusal(engine, error))
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
        for (id, _) in fib.tables(family).into_iter().filter(|(id, _)| *id != 0) {
            config.command(format_args!("{word} table add {id}"));
        }
        for (id, index) in fib.tables(family) {
            let fields = fib.flow_fields(family, index);
            if !fields.is_default() {
                config.command(format_args!("set {word} flow-hash table {id} {fields}"));
            }
        }
    }
}
