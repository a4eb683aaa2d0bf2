//! Addresses of interfaces, and the tables they are bound to.

use std::net::IpAddr;

use quiver_control::{
    Args, Column, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, Table, Work,
    in_slices, order,
};
use quiver_core::control::interfaces::Interface;
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use serde_json::{Value, json};

use crate::addresses::{interfaces, unnumbered};
use crate::state::IpState;

const GROUP: &str = "Interfaces";

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface ip address [del] <interface> (<address:prefix> | all)")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.addresses[]: <address>")
            .undo("set interface ip address del <interface> <address>")
            .stands_on("<address!.> IPv4 table of <interface>")
            .stands_on("<address!:> IPv6 table of <interface>")
            .stands_on("<address!:> IPv6 on <interface>")
            .also("set interface ip addr [del] <interface> (<address:prefix> | all)")
            .group(GROUP)
            .help("Give an interface an address, or take it away")
            .details(
                "The address becomes local, and its subnet connected. The first IPv6 address also \
                 gives the interface a link-local address made of its MAC address.",
            )
            .word("address", "the address with the length of its subnet")
            .word("all", "with del: every address of the interface")
            .example("set interface ip address e0 192.0.2.1/24")
            .example("set interface ip address del e0 2001:db8::1/64")
            .example("set interface ip address del e0 all")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                if args.has("all") {
                    return remove_all(engine, args, interface);
                }
                let address: IpPrefix = args.get("address")?;
                if args.has("del") {
                    interfaces::remove(engine, interface, address)?;
                } else {
                    interfaces::add(engine, interface, address)?;
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set interface ip table <interface> <table:u32>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.ip4-table: <table>")
            .undo("set interface ip table <interface> 0")
            .makes("IPv4 table of <interface>")
            .group(GROUP)
            .help("Look IPv4 packets of an interface up in a table")
            .example("set interface ip table e0 10")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                interfaces::bind(engine, interface, Family::Ip4, args.get("table")?)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set interface ip6 table <interface> <table:u32>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.ip6-table: <table>")
            .undo("set interface ip6 table <interface> 0")
            .makes("IPv6 table of <interface>")
            .group(GROUP)
            .help("Look IPv6 packets of an interface up in a table")
            .example("set interface ip6 table e0 10")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                interfaces::bind(engine, interface, Family::Ip6, args.get("table")?)?;
                Ok(Output::none())
            }),
    );
    register_unnumbered(registry);
    registry.command(
        Command::new("show interface address [<interface>]")
            .also("show interface addr [<interface>]")
            .group(GROUP)
            .help("Show the addresses of interfaces, and the tables they are looked up in")
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(listing(engine, only))
            }),
    );
}

fn register_unnumbered(registry: &mut Registry) {
    registry.command(
        Command::new("set interface unnumbered <interface> use <lender:interface>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.unnumbered: <lender>")
            .undo("set interface unnumbered del <interface>")
            .group(GROUP)
            .help("Let an interface use the addresses of another, having none of its own")
            .details(
                "It answers ARP and neighbour discovery for them, asks and sends errors with \
                 them. Routes say who is there: `ip route add 192.0.2.7/32 via e1`. IPv6 has a \
                 link-local address of its own on it.",
            )
            .word("lender", "the interface that has the addresses")
            .example("set interface unnumbered e1 use loop0")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                let lender = args.interface(engine, "lender")?;
                unnumbered::borrow(engine, interface, lender)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set interface unnumbered del <interface>")
            .group(GROUP)
            .help("Let an interface use the addresses of another no more")
            .example("set interface unnumbered del e1")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                unnumbered::give_back(engine, interface)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set interface ip directed-broadcast <interface> enable|disable")
            .entry(
                order::INTERFACE_SETTINGS,
                "interfaces.<interface>.directed-broadcast: <enable?disable>",
            )
            .undo("set interface ip directed-broadcast <interface> disable")
            .replaces(&["interface"])
            .group(GROUP)
            .help("Forward broadcasts into the IPv4 subnets of an interface, or drop them")
            .details(
                "They are dropped unless asked for (RFC 2644). What is broadcast on the subnet \
                 itself is for the router, too, and never forwarded.",
            )
            .example("set interface ip directed-broadcast e0 enable")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                unnumbered::set_directed_broadcast(engine, interface, args.has("enable"))?;
                Ok(Output::none())
            }),
    );
}

/// Take all addresses away, or none.
fn remove_all(
    engine: &mut Engine,
    args: &Args<'_>,
    interface: InterfaceId,
) -> Result<Output, Refusal> {
    if !args.has("del") {
        return Err(args
            .refuse("all", "`all` takes addresses away")
            .remedy("`del` in front of the interface"));
    }
    let own = engine
        .get::<IpState>()
        .and_then(|ip| ip.interfaces.get(&interface))
        .cloned()
        .unwrap_or_default();
    let ip4 =
        own.ip4.iter().map(|own| IpPrefix { address: own.address().into(), length: own.length() });
    let ip6 = own
        .configured6()
        .map(|own| IpPrefix { address: own.address().into(), length: own.length() });
    let mut removed = Vec::new();
    for address in ip4.chain(ip6) {
        if let Err(refusal) = interfaces::remove(engine, interface, address) {
            for address in removed {
                interfaces::add(engine, interface, address)?;
            }
            return Err(refusal);
        }
        removed.push(address);
    }
    Ok(Output::none())
}

fn listing(engine: &mut Engine, only: Option<InterfaceId>) -> Work<Engine> {
    let table = Table::new([
        Column::left("Interface"),
        Column::left("State"),
        Column::right("IP4 table").key("ip4_table"),
        Column::right("IP6 table").key("ip6_table"),
        Column::left("Addresses"),
    ]);
    let all = || engine.all_interfaces().map(|interface| interface.id).collect();
    let ids: Vec<InterfaceId> = only.map_or_else(all, |id| vec![id]);
    let end = |_: &Engine, (table, list): (Table, Vec<Value>)| {
        Output::both(Output::none().table("interfaces", table).to_text(), list.into())
            .nullable(&["[].link_local", "[].unnumbered"])
    };
    in_slices(engine, ids, (table, Vec::new()), add_row, end)
}

fn add_row(engine: &Engine, (table, list): &mut (Table, Vec<Value>), id: InterfaceId) {
    let (Some(ip), Some(fib)) = (engine.get::<IpState>(), engine.get::<Fib>()) else { return };
    let Some(interface) = engine.interface(id) else { return };
    let own = ip.interfaces.get(&interface.id).cloned().unwrap_or_default();
    let said = |address: IpAddr| super::duplicate_detection::remark(ip, interface.id, address);
    let ip4 = own.ip4.iter().map(|address| {
        let leased = if own.leased == Some(*address) { " (leased)" } else { "" };
        format!("{address}{leased}{}", said(address.address().into()))
    });
    let ip6 = own.ip6.iter().map(|address| {
        let leased = if own.is_leased6(*address) { " (leased)" } else { "" };
        format!("{address}{leased}{}", said(address.address().into()))
    });
    let auto = own.auto_interface_addresses();
    let auto = auto.map(|own| format!("{own} (autoconfigured){}", said(own.address().into())));
    let link_local = own.link_local.map(|own| own.address());
    let link_local = link_local.map(|own| format!("{own} (link-local){}", said(own.into())));
    let uses =
        own.unnumbered.map(|lender| format!("unnumbered, uses {}", engine.interface_name(lender)));
    let all: Vec<String> =
        uses.into_iter().chain(ip4).chain(ip6).chain(auto).chain(link_local).collect();
    table
        .row()
        .cell(&interface.name)
        .cell(if interface.row().up { "up" } else { "down" })
        .cell(fib.table_id(Family::Ip4, own.table4))
        .cell(fib.table_id(Family::Ip6, own.table6))
        .cell(all.join(", "));
    let plain: Vec<String> = own
        .ip4
        .iter()
        .map(ToString::to_string)
        .chain(own.ip6.iter().map(ToString::to_string))
        .collect();
    let autoconfigured = own.auto_interface_addresses().map(|own| own.to_string());
    list.push(json!({
        "interface": interface.name,
        "state": if interface.row().up { "up" } else { "down" },
        "ip4_table": fib.table_id(Family::Ip4, own.table4),
        "ip6_table": fib.table_id(Family::Ip6, own.table6),
        "addresses": plain,
        "autoconfigured": autoconfigured.collect::<Vec<_>>(),
        "link_local": own.link_local.map(|own| own.address()),
        "unnumbered": own.unnumbered.map(|lender| engine.interface_name(lender)),
    }));
}

/// What stands before the addresses in `show running-config`.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let (Some(ip), Some(fib)) = (engine.get::<IpState>(), engine.get::<Fib>()) else { return };
    super::icmp::write_config(fib, ip, config);
    super::duplicate_detection::write_config(engine, ip, config);
    super::proxies::write_ranges(ip, config);
    super::punt::write_config(engine, ip, config);
}

/// Tables and addresses of an interface.
pub(crate) fn write_own(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let (Some(ip), Some(fib)) = (engine.get::<IpState>(), engine.get::<Fib>()) else { return };
    let (Some(own), name) = (ip.interfaces.get(&interface.id), &interface.name) else { return };
    if let Some(id) = fib.table_id(Family::Ip4, own.table4).filter(|id| *id != 0) {
        config.command(format_args!("set interface ip table {name} {id}"));
    }
    if let Some(id) = fib.table_id(Family::Ip6, own.table6).filter(|id| *id != 0) {
        config.command(format_args!("set interface ip6 table {name} {id}"));
    }
    if own.enabled6 {
        config.command(format_args!("enable ip6 interface {name}"));
    }
    for address in own.ip4.iter().filter(|address| own.leased != Some(**address)) {
        config.command(format_args!("set interface ip address {name} {address}"));
    }
    let link_local = own.chosen_link_local.iter().filter(|_| own.unnumbered.is_none());
    for address in link_local.chain(own.configured6()) {
        config.command(format_args!("set interface ip address {name} {address}"));
    }
    if fib.directed_broadcast(interface.id) {
        config.command(format_args!("set interface ip directed-broadcast {name} enable"));
    }
}

/// Whose addresses an interface borrows: behind the tables of all, for both must be in the same.
pub(crate) fn write_borrowed(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let own = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&interface.id));
    let Some((own, lender)) = own.and_then(|own| Some((own, own.unnumbered?))) else { return };
    let (name, lender) = (&interface.name, engine.interface_name(lender));
    config.command(format_args!("set interface unnumbered {name} use {lender}"));
    if let Some(own) = own.chosen_link_local {
        config.command(format_args!("set ip6 link-local address {name} {}", own.address()));
    }
}
