//! Commands about policers of access lists.

use quiver_control::{
    Args, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work, order,
    quoted,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;

use crate::class_config::{self, On};
use crate::commands::GROUP;
use crate::config::Config;
use crate::tables::Direction;

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set policer classify interface <interface> input|output acl <acl:u32> \
             (policer <policer:word> | del)",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.policer-classes.<input|output>.<acl>: <policer>",
        )
        .undo("set policer classify interface <interface> [input] [output] acl <acl> del")
        .replaces(&["interface", "input", "output", "acl"])
        .stands_on("policer <policer>")
        .stands_on("access list <acl>")
        .group(GROUP)
        .help("Let a policer meter the packets that an access list permits, or no more")
        .details(
            "The lists of an interface and direction are asked in the order of their numbers; the \
             first that permits a packet says which policer meters it. A packet that none permits \
             passes, and so does what is not IP. The policer of the interface itself (`policer \
             input name …`) meters what is left. Several lists may have one policer: they share \
             its rate. Of a list with permit+reflect no session is made.",
        )
        .word("acl", "the number of the list, as in `set acl-plugin acl index …`")
        .example("set policer classify interface e0 input acl 5 policer gold")
        .example("set policer classify interface e0 input acl 5 del")
        .run_or_begin(set),
    );
    registry.command(
        Command::new("show policer classify [<interface>]")
            .group(GROUP)
            .help("Show which policers meter what access lists permit")
            .run_or_begin(show),
    );
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let direction = if args.has("input") { Direction::Input } else { Direction::Output };
    let on = (args.interface(engine, "interface")?, direction);
    let list: u32 = args.get("acl")?;
    if args.has("del") {
        class_config::detach(engine, on, list)?;
        return Ok(Work::Done(Output::none()));
    }
    class_config::attach(engine, on, list, args.get("policer")?)
}

fn show(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let only = args.optional_interface(engine, "interface")?;
    let columns = [
        Column::left("Interface"),
        Column::left("Direction"),
        Column::right("ACL"),
        Column::left("Policer"),
    ];
    let all = engine.get::<Config>().into_iter().flat_map(|config| &config.classes);
    let of = all.filter(|((id, _), _)| only.is_none_or(|only| only == *id));
    let keys: Vec<(On, u32)> =
        of.flat_map(|(on, of)| of.keys().map(move |list| (*on, *list))).collect();
    let add = |engine: &Engine, table: &mut Table, (on, list): (On, u32)| {
        let config = engine.get::<Config>();
        let class = config.and_then(|config| config.classes.get(&on)?.get(&list));
        if let Some(class) = class {
            let row = table.row().cell(engine.interface_name(on.0)).cell(on.1.word());
            row.cell(list).cell(&class.policer);
        }
    };
    Listing::over("classes", columns, keys, add).begin(engine)
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
