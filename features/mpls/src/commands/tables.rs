//! Label tables.

use quiver_control::{Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_forwarding::fib::Fib;

use super::GROUP;
use crate::state::{delete_table, fib_mut};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("mpls table [add|del] <table:u32>")
            .entry(order::RESOURCES, "tables.<table>.mpls: true with add")
            .undo("mpls table del <table>")
            .makes("mpls table <table>")
            .amends(&["table"])
            .group(GROUP)
            .help("Add a table of labels, or delete it with all its routes")
            .details(
                "There is none at first. A table that an interface or a route uses stays. Without \
                 `add` or `del` it is added; a table that is there stays as it is.",
            )
            .example("mpls table add 0")
            .run(|engine: &mut Engine, args| {
                let id: u32 = args.get("table")?;
                if args.has("del") {
                    delete_table(engine, id)?;
                    return Ok(Output::none());
                }
                let fib = fib_mut(engine)?;
                if fib.label_table_index(id).is_none() {
                    let added = fib.add_label_table(id);
                    added.map_err(|error| Refusal::of_table(engine, error))?;
                }
                Ok(Output::none())
            }),
    );
    registry.running_config(order::TABLES, write_config);
}

fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    for (id, _) in engine.get::<Fib>().into_iter().flat_map(Fib::label_table_numbers) {
        config.command(format_args!("mpls table add {id}"));
    }
}
