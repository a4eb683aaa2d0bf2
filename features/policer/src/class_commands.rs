//! Commands about policers of access lists, and of classifier tables.

use quiver_control::{
    Args, Cell, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work,
    order, quoted,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_policing::{PolicerTables, set_tables, tables_of};

use crate::class_config::{self, On};
use crate::commands::GROUP;
use crate::config::Config;
use crate::tables::Direction;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set policer classify interface <interface> [input|output] (acl <acl:u32> (policer \
             <policer:word> | del) | {[ip4-table <ip4:0-255>] [ip6-table <ip6:0-255>] [l2-table \
             <l2:0-255>]} [del])",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.policer-classes.<input|output>.<acl>: <policer>",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.policer-tables.<input|output>: {ip4-table: <ip4>, ip6-table: \
             <ip6>, l2-table: <l2>}",
        )
        .undo("set policer classify interface <interface> [input] [output] acl <acl> del")
        .undo("set policer classify interface <interface> [input] [output] del")
        .replaces(&["interface", "input", "output", "acl"])
        .usual(&[("input", "input")])
        .stands_on("policer <policer>")
        .stands_on("access list <acl>")
        .stands_on("classifier table <ip4>")
        .stands_on("classifier table <ip6>")
        .stands_on("classifier table <l2>")
        .group(GROUP)
        .help("Let policers meter what access lists permit or classifier sessions match, or not")
        .details(
            "Packets that the interface receives, unless output is said. By tables: the session \
             that a packet meets says which policer meters it (`classify session policer-hit-next \
             …`), and one without a session passes; del takes the tables away. By list: those of \
             an interface and direction are asked in the order of their numbers; the first that \
             permits a packet says which policer meters it. A packet that none permits passes, and \
             so does what is not IP. Several lists or sessions may have one policer: they share \
             its rate. Of a list with permit+reflect no session is made. First the policers of \
             tables meter, then those of lists, then that of the interface itself (`policer input \
             name …`).",
        )
        .word("acl", "the number of the list, as in `set acl-plugin acl index …`")
        .word("ip4-table", "the first classifier table for IPv4 packets")
        .word("ip6-table", "the first classifier table for IPv6 packets")
        .word("l2-table", "the first classifier table for all other frames")
        .example("set policer classify interface e0 input acl 5 policer gold")
        .example("set policer classify interface e0 input acl 5 del")
        .example("set policer classify interface e0 ip4-table 0")
        .run_or_begin(set),
    );
    registry.command(
        Command::new("show policer classify [<interface>]")
            .group(GROUP)
            .help("Show which access lists and classifier tables say which policer meters packets")
            .details(
                "A list has one policer. Of tables, each session says which policer it has (`show \
                 classify tables verbose`).",
            )
            .run_or_begin(show),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let direction = if args.has("output") { Direction::Output } else { Direction::Input };
    let on = (args.interface(engine, "interface")?, direction);
    let Some(list) = args.optional::<u32>("acl")? else {
        return set_tables_of(engine, on, args).map(Work::Done);
    };
    if args.has("del") {
        class_config::detach(engine, on, list)?;
        return Ok(Work::Done(Output::none()));
    }
    class_config::attach(engine, on, list, args.get("policer")?)
}

fn set_tables_of(engine: &mut Engine, on: On, args: &Args<'_>) -> Result<Output, Refusal> {
    let tables = match args.has("del") {
        true => PolicerTables::default(),
        false => PolicerTables {
            ip4: args.optional("ip4")?,
            ip6: args.optional("ip6")?,
            l2: args.optional("l2")?,
        },
    };
    if tables == PolicerTables::default() && !args.has("del") {
        let remedy = "say acl, ip4-table, ip6-table or l2-table, or del";
        return Err(Refusal::new("which packets do policers meter?").remedy(remedy));
    }
    let (id, direction) = on;
    set_tables(engine, (id, direction == Direction::Output), tables)?;
    Ok(Output::none())
}

/// What says which policer meters packets of an interface.
#[derive(Clone, Copy)]
enum Class {
    /// Classifier tables.
    Tables,
    /// The access list of this number.
    List(u32),
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let columns = [
        Column::left("Interface"),
        Column::left("Direction"),
        Column::right("ACL"),
        Column::left("Policer"),
        Column::right("IPv4 table").key("ip4_table"),
        Column::right("IPv6 table").key("ip6_table"),
        Column::right("L2 table").key("l2_table"),
    ];
    let ids = engine.interfaces_by_name().map(|interface| interface.id);
    let keys: Vec<(On, Class)> = ids
        .filter(|id| only.is_none_or(|only| only == *id))
        .flat_map(|id| Direction::ALL.map(|direction| (id, direction)))
        .flat_map(|on| {
            let classes = engine.get::<Config>().and_then(|config| config.classes.get(&on));
            let lists = classes.into_iter().flat_map(|of| of.keys());
            let tables = tables_of(engine, (on.0, on.1 == Direction::Output));
            // Tables meter first.
            (tables != PolicerTables::default())
                .then_some(Class::Tables)
                .into_iter()
                .chain(lists.map(|list| Class::List(*list)))
                .map(move |class| (on, class))
        })
        .collect();
    Listing::over("classes", columns, keys, add_class).begin(engine)
}

fn add_class(engine: &Engine, table: &mut Table, (on, class): (On, Class)) {
    let (id, direction) = on;
    let (list, policer, tables) = match class {
        Class::Tables => (None, None, tables_of(engine, (id, direction == Direction::Output))),
        Class::List(list) => {
            let config = engine.get::<Config>();
            let class = config.and_then(|config| config.classes.get(&on)?.get(&list));
            let Some(class) = class else { return };
            (Some(list), Some(&class.policer), PolicerTables::default())
        }
    };
    let row = table.row().cell(engine.interface_name(id)).cell(direction.word());
    let row = row.cell(Cell::optional(list, "none")).cell(Cell::optional(policer, "none"));
    row.cell(Cell::optional(tables.ip4, "none"))
        .cell(Cell::optional(tables.ip6, "none"))
        .cell(Cell::optional(tables.l2, "none"));
}

/// `show running-config`: the policers of an interface's lists.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let Some(known) = engine.get::<Config>() else { return };
    for direction in Direction::ALL {
        let of = known.classes.get(&(interface.id, direction)).into_iter().flatten();
        for (list, class) in of {
            let (name, word, policer) = (&interface.name, direction.word(), quoted(&class.policer));
            config.command(format_args!(
                "set policer classify interface {name} {word} acl {list} policer {policer}"
            ));
        }
    }
}
