//! IPv6 on interfaces: with and without addresses of one's own choice, and what there is of it.

use std::net::{IpAddr, Ipv6Addr};

use quiver_control::{Cell, Column, Command, Output, Refusal, Registry, Table, order};
use quiver_core::{Engine, InterfaceId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_wire::ip6::address::{self, is_link_local};

use super::duplicate_detection::remark;
use crate::addresses::interfaces;
use crate::state::IpState;

const GROUP: &str = "Interfaces";

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set ip6 link-local address <interface> <address:ip6>")
            .entry(
                order::INTERFACE_SETTINGS,
                "interfaces.<interface>.link-local-address: <address>",
            )
            .undo("set interface ip address del <interface> <address>/128")
            .group(GROUP)
            .help("Choose an interface's link-local address")
            .details(
                "It takes the place of the one that is made of the MAC address, or was chosen \
                 before. `set interface ip address del IF ADDR/128` brings back the one made of \
                 the MAC address.",
            )
            .example("set ip6 link-local address e0 fe80::1")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                let address: Ipv6Addr = args.get("address")?;
                if !is_link_local(address) {
                    return Err(args.refuse("address", format!("{address} is not in fe80::/10")));
                }
                interfaces::choose_link_local(engine, interface, address)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("enable ip6 interface <interface>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.ip6: true")
            .undo("disable ip6 interface <interface>")
            .stands_on("IPv6 table of <interface>")
            .makes("IPv6 on <interface>")
            .group(GROUP)
            .help("Let an interface speak IPv6 with a link-local address alone")
            .example("enable ip6 interface e0")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                interfaces::enable_ip6(engine, interface, true)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("disable ip6 interface <interface>")
            .group(GROUP)
            .help("Let an interface that has no IPv6 address speak no IPv6 any more")
            .example("disable ip6 interface e0")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                check_unused(engine, interface)?;
                interfaces::enable_ip6(engine, interface, false)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show ip6 interface [<interface>]")
            .group(GROUP)
            .help(
                "Show which interfaces speak IPv6, with which addresses, and which groups they \
                 hear",
            )
            .run(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                Ok(listing(engine, only))
            }),
    );
}

fn check_unused(engine: &Engine, id: InterfaceId) -> Result<(), Refusal> {
    let own = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&id));
    let left = own.and_then(|own| own.configured6().chain(&own.chosen_link_local).next());
    let Some(left) = left else {
        return Ok(());
    };
    let name = engine.interface_name(id);
    Err(Refusal::new(format!("{name} has the IPv6 address {left}"))
        .remedy(format!("set interface ip address del {name} {left}")))
}

fn listing(engine: &Engine, only: Option<InterfaceId>) -> Output {
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("State"),
        Column::left("Link-local").key("link_local"),
        Column::left("Addresses"),
        Column::left("Groups"),
        Column::right("Table"),
        Column::right("MTU").key("mtu_bytes"),
        Column::left("DAD").key("dad_probes"),
        Column::left("Waits").key("dad_waits"),
    ]);
    let (Some(ip), Some(fib)) = (engine.get::<IpState>(), engine.get::<Fib>()) else {
        return Output::none();
    };
    let wanted = |id: InterfaceId| only.is_none_or(|only| only == id);
    for (id, own) in ip.interfaces.iter().filter(|(id, own)| wanted(**id) && own.speaks_ip6()) {
        let Some(interface) = engine.interface(*id) else { continue };
        let said = |address: Ipv6Addr| remark(ip, *id, IpAddr::V6(address));
        let link_local = own.link_local.map(|own| own.address());
        let link_local =
            link_local.map(|own| Cell::new(format!("{own}{}", said(own)), own.to_string()));
        let ip6: Vec<_> = own.ip6.iter().copied().chain(own.auto_interface_addresses()).collect();
        let addresses: Vec<String> =
            ip6.iter().map(|own| format!("{own}{}", said(own.address()))).collect();
        let plain: Vec<String> = ip6.iter().map(ToString::to_string).collect();
        let all = ip6.iter().chain(&own.link_local).map(|own| own.address());
        let mut groups: Vec<Ipv6Addr> = all.map(address::solicited_node).collect();
        groups.extend([address::ALL_NODES, address::ALL_ROUTERS]);
        groups.sort_unstable();
        groups.dedup();
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let dad = ip.ownerships.config(*id, true);
        table
            .row()
            .cell(&interface.name)
            .cell(if interface.row().up { "up" } else { "down" })
            .cell(link_local)
            .cell(Cell::new(addresses.join(", "), plain))
            .cell(Cell::new(groups.join(", "), groups.clone()))
            .cell(fib.table_id(Family::Ip6, own.table6))
            .cell(interface.row().mtu_bytes)
            .cell(Cell::new(format!("{} probes", dad.transmits), dad.transmits))
            .cell(dad.waits);
    }
    Output::none().table("interfaces", table)
}
