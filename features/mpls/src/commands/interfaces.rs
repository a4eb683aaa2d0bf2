//! Which interfaces take labelled packets.

use quiver_control::{
    Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work, by_interface,
    order,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use super::GROUP;
use crate::state::{Mpls, enable};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface mpls <interface> <state:enable|disable> [table <table:u32>]")
            .entry(
                order::INTERFACE_SETTINGS,
                "interfaces.<interface>.mpls: {table} with state=enable",
            )
            .undo("set interface mpls <interface> disable")
            .stands_on("mpls table <table=0>")
            .makes("mpls of <interface>")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Let an interface take labelled packets, or none")
            .details(
                "Their labels are looked up in the table, 0 when none is named, which must be \
                 there. Interfaces send labelled packets whether or not they take some.",
            )
            .example("set interface mpls e0 enable")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                let table = match args.get::<&str>("state")? {
                    "enable" => Some(args.or("table", 0u32)?),
                    _ => None,
                };
                enable(engine, id, table)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show mpls interface [<interface>]")
            .group(GROUP)
            .help("Show the interfaces that take labelled packets, and their label tables")
            .run_or_begin(show),
    );
    registry.running_config_in_slices(order::INTERFACE_SETTINGS, by_interface(write_config));
}

fn show(engine: &mut Engine, args: &quiver_control::Args<'_>) -> Result<Work<Engine>, Refusal> {
    let keys = match args.optional_interface(engine, "interface")? {
        Some(id) => vec![id],
        None => engine.get::<Mpls>().into_iter().flat_map(Mpls::enabled).collect(),
    };
    let columns = [Column::left("Interface"), Column::left("State"), Column::right("Table")];
    let add = |engine: &Engine, table: &mut Table, id| {
        let of = engine.get::<Mpls>().and_then(|mpls| mpls.table_of(id));
        let state = if of.is_some() { "enabled" } else { "disabled" };
        table.row().cell(engine.interface_name(id)).cell(state).cell(of);
    };
    Listing::over("interfaces", columns, keys, add)
        .when_empty("no interface takes labelled packets; `set interface mpls IF enable`")
        .begin(engine)
}

fn write_config(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(table) = engine.get::<Mpls>().and_then(|mpls| mpls.table_of(interface.id)) else {
        return;
    };
    let table = if table == 0 { String::new() } else { format!(" table {table}") };
    config.command(format_args!("set interface mpls {} enable{table}", interface.name));
}
