//! Commands.

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, IpPrefix as Written, Output, Refusal, Registry,
    Table, Work, in_slices, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibError};
use quiver_tables::prefix::IpPrefix;

use crate::config::{self, Urpf};
use crate::tables::{Check, Direction, Mode, Place};

const GROUP: &str = "Layer 3";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set urpf ip4|ip6 rx|tx off|loose|strict <interface> {[table <:u32>] [no-default]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.urpf.<ip4|ip6>.<rx|tx>: <loose|strict> / {mode: \
             <loose|strict>, table, no-default}",
        )
        .undo("set urpf [ip4] [ip6] [rx] [tx] off <interface>")
        .group(GROUP)
        .help("Check that packets can come from where they come (uRPF)")
        .details(
            "`rx` checks what the interface receives, `tx` what is about to leave by it. `loose` \
             asks for a route to the source, `strict` for one that leads out of the interface that \
             the packet came by; of several equal paths one is enough. With `no-default` the \
             default route does not count.",
        )
        .word("table", "look sources up in this table instead of the interface's own")
        .word("no-default", "a source that only the default route covers does not pass")
        .example("set urpf ip4 rx strict e0")
        .example("set urpf ip6 rx loose e0 no-default")
        .example("set urpf ip4 rx off e0")
        .run(set),
    );
    registry.command(
        Command::new("set urpf-accept [table <:u32>] add|del <prefix>")
            .entry(order::FEATURES, "ip.urpf-accept[]: <prefix> with add")
            .entry(order::FEATURES, "tables.<table>.urpf-accept[]: <prefix> with add")
            .undo("set urpf-accept [table <table>] del <prefix>")
            .group(GROUP)
            .help("Let sources of a prefix pass the uRPF check whatever the routes say")
            .word("table", "where sources are looked up in this table; 0")
            .example("set urpf-accept add 192.0.2.0/24")
            .example("set urpf-accept table 10 del 2001:db8::/32")
            .run(accept),
    );
    registry.command(
        Command::new("show urpf [<interface>]")
            .group(GROUP)
            .help(
                "Show which interfaces check the sources of packets, and which sources are exempt",
            )
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(listing(engine, only))
            }),
    );
}

fn fib(engine: &Engine) -> Result<&Fib, Refusal> {
    engine.get::<Fib>().ok_or_else(|| Refusal::new("the forwarding table is being changed"))
}

fn table_of(engine: &Engine, args: &Args<'_>, family: Family, id: u32) -> Result<u32, Refusal> {
    let index = fib(engine)?.table_index(family, id);
    index.ok_or_else(|| args.refuse("table", FibError::NoTable { family, id }.to_string()))
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let interface = args.interface(engine, "interface")?;
    let family = if args.has("ip4") { Family::Ip4 } else { Family::Ip6 };
    let direction = if args.has("rx") { Direction::Rx } else { Direction::Tx };
    let table = match args.optional::<u32>("table")? {
        Some(id) => Some(table_of(engine, args, family, id)?),
        None => None,
    };
    let mode = match (args.has("off"), args.has("strict")) {
        (true, _) => None,
        (false, true) => Some(Mode::Strict),
        (false, false) => Some(Mode::Loose),
    };
    if mode.is_none() && (table.is_some() || args.has("no-default")) {
        let what = "`off` takes neither a table nor `no-default`";
        return Err(args.refuse("off", what).remedy("leave them out"));
    }
    let check = mode.map(|mode| Check { mode, table, default_route: !args.has("no-default") });
    config::set(engine, (interface, family, direction), check)?;
    Ok(Output::none())
}

fn accept(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let written: Written = args.get("prefix")?;
    if written.has_host_bits() {
        let what = format!("{written} has bits set behind its length");
        return Err(args
            .refuse("prefix", what)
            .remedy(format!("{} would be right", written.network())));
    }
    let family = Family::of(written.address);
    let table = table_of(engine, args, family, args.or("table", 0u32)?)?;
    let prefix = IpPrefix::new(written.address, written.length);
    config::set_exempt(engine, (family, table, prefix), args.has("add"))?;
    Ok(Output::none())
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Loose => "loose",
        Mode::Strict => "strict",
    }
}

fn family_word(family: Family) -> &'static str {
    match family {
        Family::Ip4 => "ip4",
        Family::Ip6 => "ip6",
    }
}

fn direction_word(direction: Direction) -> &'static str {
    match direction {
        Direction::Rx => "rx",
        Direction::Tx => "tx",
    }
}

/// A row of `show urpf`.
enum Row {
    Check(Place, Check),
    Exempt((Family, u32, IpPrefix)),
}

fn listing(engine: &mut Engine, only: Option<quiver_core::InterfaceId>) -> Work<Engine> {
    let columns =
        ["Interface", "Family", "Direction", "Mode", "Table", "Default route"].map(Column::left);
    let exempt = Table::new([Column::left("Exempt"), Column::right("Table")]);
    let Some(urpf) = engine.get::<Urpf>() else { return Work::Done(Output::none()) };
    let checks = urpf.checks().filter(|((on, ..), _)| only.is_none_or(|o| o == *on));
    let checks = checks.map(|(place, check)| Row::Check(*place, *check));
    let rows = checks
        .chain(urpf.exempt().filter(|_| only.is_none()).map(|row| Row::Exempt(*row)))
        .collect();
    let end = |_: &Engine, (checks, exempt): (Table, Table)| {
        let output = Output::none().table("checks", checks);
        if exempt.is_empty() { output } else { output.table("exempt", exempt) }
    };
    in_slices(engine, rows, (Table::new(columns), exempt), add_row, end)
}

fn add_row(engine: &Engine, (checks, exempt): &mut (Table, Table), row: Row) {
    let Some(fib) = engine.get::<Fib>() else { return };
    match row {
        Row::Check((interface, family, direction), check) => {
            checks
                .row()
                .cell(engine.interface_name(interface))
                .cell(family_word(family))
                .cell(direction_word(direction))
                .cell(mode_word(check.mode))
                .cell(check.table.and_then(|index| fib.table_id(family, index)))
                .cell(if check.default_route { "counts" } else { "does not count" });
        }
        Row::Exempt((family, index, prefix)) => {
            exempt.row().cell(Cell::display(prefix)).cell(fib.table_id(family, index));
        }
    }
}

/// The part of `show running-config`: exempt prefixes, then interfaces by name.
pub(crate) fn begin_config() -> impl FnMut(&Engine, &mut ConfigWriter, usize) -> bool {
    let mut left: Option<std::vec::IntoIter<Row>> = None;
    move |engine, config, most| {
        let Some(urpf) = engine.get::<Urpf>() else { return true };
        let left = left.get_or_insert_with(|| {
            let exempt = urpf.exempt().map(|row| Row::Exempt(*row));
            let checks = urpf.checks().map(|(place, check)| (place.0, (*place, *check)));
            let checks = quiver_control::by_interface_name(engine, checks).into_iter();
            let checks = checks.map(|(_, (place, check))| Row::Check(place, check));
            exempt.chain(checks).collect::<Vec<_>>().into_iter()
        });
        left.by_ref().take(most).for_each(|row| write_row(engine, config, &row));
        left.len() == 0
    }
}

fn write_row(engine: &Engine, config: &mut ConfigWriter, row: &Row) {
    let Some(fib) = engine.get::<Fib>() else { return };
    match row {
        Row::Exempt((family, index, prefix)) => {
            let table = match fib.table_id(*family, *index) {
                Some(id) if id != 0 => format!("table {id} "),
                _ => String::new(),
            };
            config.command(format_args!("set urpf-accept {table}add {prefix}"));
        }
        Row::Check((on, family, direction), check) => {
            let (family_word, direction) = (family_word(*family), direction_word(*direction));
            let table = check.table.and_then(|index| fib.table_id(*family, index));
            let table = table.map_or(String::new(), |id| format!(" table {id}"));
            let default = if check.default_route { "" } else { " no-default" };
            let (mode, name) = (mode_word(check.mode), engine.interface_name(*on));
            config.command(format_args!(
                "set urpf {family_word} {direction} {mode} {name}{table}{default}"
            ));
        }
    }
}
