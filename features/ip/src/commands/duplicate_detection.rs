//! Whether the router's addresses are its own: how that is found out, what is known, and telling
//! others.

use std::net::IpAddr;

use quiver_control::{
    Cell, Column, Command, ConfigWriter, Listing, Output, Refusal, Registry, Table, Work, order,
};
use quiver_core::{Engine, InterfaceId};

use super::GROUP;
use crate::addresses::duplicate_detection::{DadConfig, Phase, announce};
use crate::state::{IpState, with_ip};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set ip dad ip4|ip6 [<interface>] (transmits <:0-16> {[wait] [auto-remove]} | default)",
        )
        .entry(order::INTERFACE_SETTINGS, "ip.dad.<ip4|ip6>: {transmits, wait, auto-remove}")
        .entry(
            order::INTERFACE_SETTINGS,
            "interfaces.<interface>.dad.<ip4|ip6>: {transmits, wait, auto-remove}",
        )
        .undo("set ip dad [ip4] [ip6] [<interface>] default")
        .replaces(&["ip4", "ip6", "interface"])
        .group(GROUP)
        .help("Say how others are asked for an address before it counts as the router's own")
        .details(
            "Duplicate address detection (RFC 4862, RFC 5227) of addresses that are \
                 configured from now on, and of all when their interface comes up. Without an \
                 interface, it is said of all interfaces that have nothing of their own. A \
                 duplicate is not used. Usually, IPv6 addresses are asked for once and used \
                 meanwhile; with `wait`, they are not. With `auto-remove` a duplicate is taken \
                 from its interface, as by `set interface ip address del`.",
        )
        .word("transmits", "how often; 0 for not at all")
        .word("wait", "do not use the address before")
        .word("auto-remove", "take a duplicate from its interface")
        .example("set ip dad ip6 e0 transmits 1 wait")
        .example("set ip dad ip4 transmits 3")
        .run(|engine: &mut Engine, args| {
            let interface = args.optional_interface(engine, "interface")?;
            let six = args.has("ip6");
            let ip = engine.get_mut::<IpState>().ok_or_else(super::busy)?;
            let config = match args.optional("transmits")? {
                Some(transmits) => DadConfig {
                    transmits,
                    waits: args.has("wait"),
                    removes: args.has("auto-remove"),
                },
                None if interface.is_some() => ip.ownerships.usual[usize::from(six)],
                None => DadConfig::USUAL[usize::from(six)],
            };
            match interface {
                Some(id) if config == ip.ownerships.usual[usize::from(six)] => {
                    ip.ownerships.said.remove(&(id, six));
                }
                Some(id) => drop(ip.ownerships.said.insert((id, six), config)),
                None => {
                    ip.ownerships.usual[usize::from(six)] = config;
                    ip.ownerships.said.retain(|(_, of), own| *of != six || *own != config);
                }
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("show ip dad [<interface>]")
            .group(GROUP)
            .help(
                "Show how sure it is that the router's addresses are its own, and who claimed them",
            )
            .run_or_begin(|engine: &mut Engine, args| {
                let only = args.optional_interface(engine, "interface")?;
                listing(engine, only)
            }),
    );
    registry.command(
        Command::new("send gratuitous-arp <interface> [<address:ip>]")
            .group(GROUP)
            .help(
                "Announce an interface's addresses: gratuitous ARP, and unsolicited neighbour \
                 advertisements",
            )
            .details(
                "This happens by itself when an address is configured, when its interface comes \
                 up, when its MAC address changes, and when another member of a bond takes over.",
            )
            .example("send gratuitous-arp e0")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                let only: Option<IpAddr> = args.optional("address")?;
                check(engine, interface, only)?;
                announce(engine, interface, only);
                Ok(Output::none())
            }),
    );
}

fn check(engine: &mut Engine, id: InterfaceId, only: Option<IpAddr>) -> Result<(), Refusal> {
    let name = engine.interface_name(id);
    if !engine.interface(id).is_some_and(|interface| interface.row().up) {
        return Err(Refusal::new(format!("{name} is down"))
            .remedy(format!("set interface state {name} up")));
    }
    let has = with_ip(engine, |_, ip, _| {
        ip.ownerships.iter().any(|(on, own, _)| on == id && only.is_none_or(|only| only == own))
    });
    match only {
        _ if has => Ok(()),
        Some(address) => Err(Refusal::new(format!("{name} has no address {address}"))),
        None => Err(Refusal::new(format!("{name} has no address"))
            .remedy(format!("set interface ip address {name} ADDR/LEN"))),
    }
}

fn listing(engine: &mut Engine, only: Option<InterfaceId>) -> Result<Work<Engine>, Refusal> {
    let columns = [
        Column::left("Interface"),
        Column::left("Address"),
        Column::left("State"),
        Column::left("In use").key("in_use"),
        Column::right("Conflicts"),
        Column::left("Claimed by"),
    ];
    let Some(ip) = engine.get::<IpState>() else { return Ok(Work::Done(Output::none())) };
    let wanted = ip.ownerships.iter().filter(|(on, ..)| only.is_none_or(|only| only == *on));
    let keys: Vec<(InterfaceId, IpAddr)> = wanted.map(|(on, address, _)| (on, address)).collect();
    let add = |engine: &Engine, table: &mut Table, (on, address): (InterfaceId, IpAddr)| {
        let Some(ip) = engine.get::<IpState>() else { return };
        let Some(ownership) = ip.ownerships.get(on, address) else { return };
        let withheld = ip.interfaces.get(&on).is_some_and(|own| own.is_withheld(address));
        table
            .row()
            .cell(engine.interface_name(on))
            .cell(address)
            .cell(ownership.phase.word())
            .cell(!withheld)
            .cell(ownership.conflicts)
            .cell(
                ownership.claimed_by.map(Cell::display).unwrap_or_else(|| Cell::from(None::<&str>)),
            );
    };
    Listing::over("addresses", columns, keys, add).begin(engine)
}

/// What `show interface address` adds to an address that is not used.
pub(super) fn remark(ip: &IpState, on: InterfaceId, address: IpAddr) -> String {
    let withheld = ip.interfaces.get(&on).is_some_and(|own| own.is_withheld(address));
    match ip.ownerships.get(on, address).map(|ownership| ownership.phase) {
        Some(Phase::Duplicate(mac)) => format!(" (duplicate: {mac} has it)"),
        Some(Phase::Tentative(_)) if withheld => " (tentative)".to_owned(),
        _ => String::new(),
    }
}

/// The part of `show running-config`: before addresses are given.
pub(super) fn write_config(engine: &Engine, ip: &IpState, config: &mut ConfigWriter) {
    let mut say = |family: &str, on: String, dad: DadConfig| {
        let wait = if dad.waits { " wait" } else { "" };
        let remove = if dad.removes { " auto-remove" } else { "" };
        config.command(format_args!(
            "set ip dad {family}{on} transmits {}{wait}{remove}",
            dad.transmits
        ));
    };
    for (six, family) in [(false, "ip4"), (true, "ip6")] {
        let usual = ip.ownerships.usual[usize::from(six)];
        if usual != DadConfig::USUAL[usize::from(six)] {
            say(family, String::new(), usual);
        }
        let own = ip.ownerships.said.iter().filter(|((on, of), dad)| {
            *of == six && **dad != usual && engine.interface(*on).is_some()
        });
        for (on, dad) in
            quiver_control::by_interface_name(engine, own.map(|((on, _), dad)| (*on, *dad)))
        {
            say(family, format!(" {}", engine.interface_name(on)), dad);
        }
    }
}
