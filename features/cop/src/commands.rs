//! Commands.

use quiver_control::{Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_forwarding::fib::{Family, Fib, FibError};

use crate::config::{self, Cop};

const GROUP: &str = "Layer 3";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("cop interface <interface> [disable]")
            .entry(order::FEATURES, "interfaces.<interface>.cop.enabled: true")
            .undo("cop interface <interface> disable")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Let an interface's whitelists decide which sources pass (COP)")
            .details("A protocol that has no whitelist there passes.")
            .example("cop interface e0")
            .example("cop interface e0 disable")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                config::enable(engine, interface, !args.has("disable"))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("cop whitelist <interface> ip4|ip6 {[fib-id <:u32>] [disable]}")
            .entry(order::FEATURES, "interfaces.<interface>.cop.whitelist.<ip4|ip6>: <fib-id>")
            .undo("cop whitelist <interface> [ip4] [ip6] disable")
            .stands_on("table <fib-id>")
            .group(GROUP)
            .help("Say which table lists the sources that may come by an interface")
            .details(
                "A source is listed when its route in that table does not drop, wherever it leads: \
                 `ip route add PREFIX table N via local` lists a prefix. It decides while `cop \
                 interface` is on.",
            )
            .word("fib-id", "the table; 0")
            .example("cop whitelist e0 ip4 fib-id 10")
            .example("cop whitelist e0 ip6 disable")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                let family = if args.has("ip4") { Family::Ip4 } else { Family::Ip6 };
                let id = args.or("fib-id", 0u32)?;
                let fib = engine.get::<Fib>();
                let fib =
                    fib.ok_or_else(|| Refusal::new("the forwarding table is being changed"))?;
                let index = fib.table_index(family, id);
                let index = index.ok_or_else(|| {
                    args.refuse("fib-id", FibError::NoTable { family, id }.to_string())
                })?;
                config::set_list(
                    engine,
                    interface,
                    family,
                    (!args.has("disable")).then_some(index),
                )?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show cop [<interface>]")
            .group(GROUP)
            .help("Show the interfaces that have whitelists of sources")
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(listing(engine, only))
            }),
    );
}

fn listing(engine: &Engine, only: Option<quiver_core::InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("State"),
        Column::right("IP4 table").key("ip4_table"),
        Column::right("IP6 table").key("ip6_table"),
    ]);
    let (Some(cop), Some(fib)) = (engine.get::<Cop>(), engine.get::<Fib>()) else {
        return Output::none();
    };
    for interface in
        engine.all_interfaces().filter(|interface| only.is_none_or(|only| only == interface.id))
    {
        let lists =
            [Family::Ip4, Family::Ip6].map(|family| (family, cop.list(interface.id, family)));
        let on = cop.is_enabled(interface.id);
        if !on && lists.iter().all(|(_, list)| list.is_none()) {
            continue;
        }
        let [ip4, ip6] =
            lists.map(|(family, list)| list.and_then(|index| fib.table_id(family, index)));
        table.row().cell(&interface.name).cell(if on { "on" } else { "off" }).cell(ip4).cell(ip6);
    }
    Output::none().table("interfaces", table)
}

/// `show running-config`: COP of an interface.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let (Some(cop), Some(fib)) = (engine.get::<Cop>(), engine.get::<Fib>()) else { return };
    for (family, word) in [(Family::Ip4, "ip4"), (Family::Ip6, "ip6")] {
        let list = cop.list(interface.id, family).and_then(|index| fib.table_id(family, index));
        if let Some(id) = list {
            config.command(format_args!("cop whitelist {} {word} fib-id {id}", interface.name));
        }
    }
    if cop.is_enabled(interface.id) {
        config.command(format_args!("cop interface {}", interface.name));
    }
}
