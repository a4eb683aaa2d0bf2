//! Whom the router answers ARP and solicitations for as if it were they.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_control::{
    Args, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_core::control::interfaces::Interface;
use quiver_forwarding::fib::{Family, FibError, Path, Source};
use quiver_tables::prefix::IpPrefix;
use quiver_wire::ip6::address::{is_link_local, is_unicast};

use super::GROUP;
use crate::addresses::interfaces;
use crate::neighbor::proxies::{ARP_PROXIES_MAX, ND_PROXIES_MAX};
use crate::state::{IpState, with_ip};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("set interface proxy-arp <interface> enable|disable")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.proxy-arp: <enable?disable>")
            .undo("set interface proxy-arp <interface> disable")
            .replaces(&["interface"])
            .group("Interfaces")
            .help("Answer ARP on an interface for the addresses of `set arp proxy`")
            .details(
                "A request is answered when its target is in a range of the interface's table, \
                 and the way to it leads out of another interface (RFC 1027).",
            )
            .example("set interface proxy-arp e0 enable")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                let enabled = args.has("enable");
                interfaces::change(engine, interface, |changed| changed.proxy_arp = enabled)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set arp proxy [table-id <table:u32>] start <first:ip4> end <last:ip4> [del]")
            .entry(order::INTERFACE_SETTINGS, "ip.arp-proxies[]: {first, last, table}")
            .undo("set arp proxy [table-id <table>] start <first> end <last> del")
            .group(GROUP)
            .help(
                "Answer ARP for a range of addresses, on the interfaces that have proxy ARP \
                 enabled",
            )
            .example("set arp proxy start 192.0.2.10 end 192.0.2.20")
            .run(|engine: &mut Engine, args| {
                arp_proxy(engine, args)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set ip6 nd proxy <interface> [del] <address:ip6>")
            .entry(order::INTERFACE_SETTINGS, "interfaces.<interface>.nd-proxies[]: <address>")
            .undo("set ip6 nd proxy <interface> del <address>")
            .stands_on("IPv6 table of <interface>")
            .also("ip6 nd proxy <interface> [del] <address:ip6>")
            .group(GROUP)
            .help(
                "Answer solicitations for a host behind an interface, on the other interfaces of \
                 its table",
            )
            .details(
                "The host gets a route by the interface. Who solicits it on another interface of \
                 the table is answered by the router, which forwards to the host (RFC 4861 \
                 §7.2.8).",
            )
            .example("set ip6 nd proxy e0 2001:db8::5")
            .example("set ip6 nd proxy e0 del 2001:db8::5")
            .run(|engine: &mut Engine, args| {
                nd_proxy(engine, args)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("set interface ip6-nd-mirror-proxy <interface> enable|disable")
            .entry(
                order::INTERFACE_SETTINGS,
                "interfaces.<interface>.nd-mirror-proxy: <enable?disable>",
            )
            .undo("set interface ip6-nd-mirror-proxy <interface> disable")
            .replaces(&["interface"])
            .group("Interfaces")
            .help(
                "Answer solicitations on an interface for every address that a route leads to \
                 elsewhere",
            )
            .details(
                "For hosts that take the whole of IPv6 for their link, as subscribers in a VLAN \
                 of their own: the router answers for all that it forwards to out of another \
                 interface, and not for who is on the interface itself. VPP: ip6-nd mirror proxy.",
            )
            .example("set interface ip6-nd-mirror-proxy e0 enable")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                let enabled = args.has("enable");
                interfaces::change(engine, interface, |changed| changed.nd_mirror = enabled)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("show arp proxy")
            .also("show ip arp proxy")
            .group(GROUP)
            .help("Show for whom ARP is answered, and where")
            .run(|engine: &mut Engine, _| Ok(arp_listing(engine))),
    );
    registry.command(
        Command::new("show ip6 nd proxy")
            .group(GROUP)
            .help(
                "Show the hosts that solicitations are answered for, and the interface that each \
                 is behind",
            )
            .run(|engine: &mut Engine, _| Ok(nd_listing(engine))),
    );
}

fn arp_proxy(engine: &mut Engine, args: &Args<'_>) -> Result<(), Refusal> {
    let id = args.or("table", 0u32)?;
    if !args.has("del") {
        super::table_of(engine, args, Family::Ip4, "table")?;
    }
    let (first, last): (Ipv4Addr, Ipv4Addr) = (args.get("first")?, args.get("last")?);
    if last < first {
        return Err(
            args.refuse("last", format!("the range ends at {last}, before its start {first}"))
        );
    }
    with_ip(engine, |_, ip, fib| {
        let there = ip.arp_proxies.has(id, (first, last));
        let words = format!("{first} to {last} of table {id}");
        match args.has("del") {
            true if !there => return Err(Refusal::new(format!("ARP is not answered for {words}"))),
            true => ip.arp_proxies.remove(id, (first, last)),
            false if there => {
                return Err(Refusal::new(format!("ARP is answered for {words} already")));
            }
            false if ip.arp_proxies.len() >= ARP_PROXIES_MAX => {
                let what = format!("ARP is answered for {ARP_PROXIES_MAX} ranges already");
                return Err(Refusal::new(what).remedy("join ranges, or delete some"));
            }
            false => ip.arp_proxies.add(id, (first, last)),
        }
        ip.touch_arp_proxies();
        ip.publish(fib);
        Ok(())
    })
}

fn nd_proxy(engine: &mut Engine, args: &Args<'_>) -> Result<(), Refusal> {
    let interface = args.interface(engine, "interface")?;
    let (address, name): (Ipv6Addr, _) = (args.get("address")?, engine.interface_name(interface));
    if !is_unicast(address) || is_link_local(address) {
        return Err(args.refuse("address", FibError::BadAddress(address.into()).to_string()));
    }
    interfaces::check_routes(engine, interface)?;
    let (host, path) = (IpPrefix::host(address.into()), Path::via(address, Some(interface)));
    let done = with_ip(engine, |_, ip, fib| {
        let own = ip.interfaces.get(&interface).cloned().unwrap_or_default();
        let (there, table) = (own.nd_proxies.contains(&address), own.table6);
        let changed = match args.has("del") {
            true if !there => {
                return Err(Refusal::new(format!("{address} is no proxied host behind {name}")));
            }
            true => fib.remove_route(table, host, Source::Feature),
            false if there => {
                return Err(Refusal::new(format!(
                    "{address} is a proxied host behind {name} already"
                )));
            }
            false if own.nd_proxies.len() >= ND_PROXIES_MAX => {
                let what = format!("{ND_PROXIES_MAX} hosts behind {name} are proxied already");
                return Err(Refusal::new(what).remedy("delete some"));
            }
            false if fib.route(table, host).iter().any(|route| route.source == Source::Feature) => {
                let what =
                    format!("{address} is a proxied host of another interface, or a feature's");
                return Err(
                    Refusal::new(what).remedy("`show ip6 nd proxy`, `show ip6 fib` tell whose")
                );
            }
            false => fib.add_route(table, host, Source::Feature, &[path]),
        };
        if let Err(error) = changed {
            return Ok(Err(error));
        }
        let proxies = &mut ip.interface(interface).nd_proxies;
        if there {
            proxies.remove(&address)
        } else {
            proxies.insert(address)
        };
        ip.touch_nd_proxies(table);
        ip.publish(fib);
        Ok(Ok(()))
    })?;
    done.map_err(|error| Refusal::of_table(engine, error))
}

fn arp_listing(engine: &Engine) -> Output {
    let mut ranges =
        Table::new([Column::right("Table"), Column::left("Start"), Column::left("End")]);
    let mut interfaces = Table::new([Column::left("Interface")]);
    let Some(ip) = engine.get::<IpState>() else { return Output::none() };
    for (table, first, last) in ip.arp_proxies.iter() {
        ranges.row().cell(table).cell(first.to_string()).cell(last.to_string());
    }
    for (id, _) in ip.interfaces.iter().filter(|(_, own)| own.proxy_arp) {
        interfaces.row().cell(engine.interface_name(*id));
    }
    Output::none().table("ranges", ranges).table("interfaces", interfaces)
}

fn nd_listing(engine: &Engine) -> Output {
    let mut table =
        Table::new([Column::left("Interface"), Column::left("Address"), Column::left("Kind")]);
    let Some(ip) = engine.get::<IpState>() else { return Output::none() };
    for (id, own) in &ip.interfaces {
        for address in &own.nd_proxies {
            table.row().cell(engine.interface_name(*id)).cell(address.to_string()).cell("host");
        }
    }
    for (id, _) in ip.interfaces.iter().filter(|(_, own)| own.nd_mirror) {
        table.row().cell(engine.interface_name(*id)).cell(None::<&str>).cell("mirror");
    }
    Output::none().table("proxies", table)
}

/// The ranges for which ARP is answered.
pub(super) fn write_ranges(ip: &IpState, config: &mut ConfigWriter) {
    for (table, first, last) in ip.arp_proxies.iter() {
        let of = if table == 0 { String::new() } else { format!(" table-id {table}") };
        config.command(format_args!("set arp proxy{of} start {first} end {last}"));
    }
}

/// For whom ARP and solicitations are answered by an interface: behind its tables, which cannot
/// change while there are proxied hosts.
pub(crate) fn write_interface(engine: &Engine, interface: &Interface, config: &mut ConfigWriter) {
    let own = engine.get::<IpState>().and_then(|ip| ip.interfaces.get(&interface.id));
    let (Some(own), name) = (own, &interface.name) else { return };
    if own.proxy_arp {
        config.command(format_args!("set interface proxy-arp {name} enable"));
    }
    if own.nd_mirror {
        config.command(format_args!("set interface ip6-nd-mirror-proxy {name} enable"));
    }
    for address in &own.nd_proxies {
        config.command(format_args!("set ip6 nd proxy {name} {address}"));
    }
}
