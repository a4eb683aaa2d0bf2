//! The commands of the router's DHCPv6 clients and of prefix groups.

use quiver_control::{
    Args, Command, ConfigWriter, IpPrefix, Output, Refusal, Registry, by_interface_name, order,
};
use quiver_core::Engine;

use crate::client6::IaType;
use crate::commands::{GROUP, check_text};
use crate::config::Dhcp;
use crate::leases6::{GROUP_ADDRESSES_MAX, GroupAddress};
use crate::{clients6, leases6};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("dhcp6 client [disable] <interface>")
            .entry(order::FEATURES, "interfaces.<interface>.dhcp6-client: true")
            .undo("dhcp6 client disable <interface>")
            .group(GROUP)
            .help("Let an interface get IPv6 addresses from DHCPv6 servers")
            .details(
                "The interface gets the addresses of an identity association (IA_NA, RFC 8415), \
                 each with the length 128: routers on the link advertise which prefixes are on it \
                 (`ip6 nd address autoconfig`). `disable` releases them.",
            )
            .example("dhcp6 client e0")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                match args.has("disable") {
                    true => clients6::remove(engine, id, IaType::Na)?,
                    false => clients6::add(engine, id, IaType::Na)?,
                }
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("dhcp6 pd client <interface> (prefix group <group:text> | disable)")
            .entry(order::FEATURES, "interfaces.<interface>.prefix-delegation: <group>")
            .undo("dhcp6 pd client <interface> disable")
            .group(GROUP)
            .help("Let a DHCPv6 server delegate prefixes to this router")
            .details(
                "The prefixes (IA_PD, RFC 8415) are those of the group. `set ip6 address` makes \
                 addresses of them. A discard route stands for what no interface has of them. \
                 `disable` releases them.",
            )
            .example("dhcp6 pd client e0 prefix group site")
            .run(set_pd_client),
    );
    registry.command(
        Command::new(
            "set ip6 address <interface> prefix group <group:text> <address:prefix6> [del]",
        )
        .entry(order::FEATURES, "interfaces.<interface>.delegated-addresses[]: {group, address}")
        .undo("set ip6 address <interface> prefix group <group> <address> del")
        .group(GROUP)
        .help("Give an interface an address of each delegated prefix of a group")
        .details(
            "The bits of the delegated prefix stand in place of the first bits of the address. The \
             address comes and goes with the prefix. A delegated prefix that is longer than the \
             length of the address gives none.",
        )
        .example("set ip6 address e1 prefix group site ::1:0:0:0:1/64")
        .run(set_address),
    );
}

/// The name of a prefix group.
fn group(args: &Args<'_>) -> Result<String, Refusal> {
    let name = check_text(args, "group")?.unwrap_or_default();
    match name.contains(char::is_whitespace) {
        true => Err(args.refuse("group", "the name of a prefix group has no spaces")),
        false => Ok(name),
    }
}

fn busy() -> Refusal {
    Refusal::new("DHCP is being changed")
}

fn set_pd_client(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    if args.has("disable") {
        clients6::remove(engine, id, IaType::Pd)?;
        return Ok(Output::none());
    }
    let group = group(args)?;
    clients6::add(engine, id, IaType::Pd)?;
    engine.get_mut::<Dhcp>().ok_or_else(busy)?.pd_groups.insert(id, group);
    clients6::look(engine, false);
    Ok(Output::none())
}

fn set_address(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let interface = args.interface(engine, "interface")?;
    let written: IpPrefix = args.get("address")?;
    let Some((address, length)) = written.as_ip6() else {
        return Err(args.refuse("address", "it is no IPv6 address"));
    };
    let own = GroupAddress { interface, group: group(args)?, address, length };
    let name = engine.interface_name(interface);
    let all = &mut engine.get_mut::<Dhcp>().ok_or_else(busy)?.group_addresses;
    if args.has("del") {
        if !all.remove(&own) {
            let what = format!("{name} has no such address of the prefix group {}", own.group);
            return Err(args.refuse("address", what).remedy("`show ip6 addresses` lists them"));
        }
    } else if all.len() >= GROUP_ADDRESSES_MAX && !all.contains(&own) {
        return Err(Refusal::new(format!(
            "{GROUP_ADDRESSES_MAX} addresses are made of prefix groups already"
        ))
        .remedy("delete one of `show ip6 addresses` first"));
    } else {
        all.insert(own);
    }
    engine.with(|engine, dhcp: &mut Dhcp| leases6::follow(engine, dhcp, false));
    Ok(Output::none())
}

/// `show running-config`: the clients, and addresses of prefix groups.
pub(crate) fn write_config(engine: &Engine, out: &mut ConfigWriter) {
    let Some(dhcp) = engine.get::<Dhcp>() else { return };
    let clients = dhcp.clients6.iter().filter(|(_, client)| !client.is_ending());
    let clients = clients.map(|((id, ia_type), _)| (*id, *ia_type));
    for (id, ia_type) in by_interface_name(engine, clients) {
        let name = engine.interface_name(id);
        match (ia_type, dhcp.pd_groups.get(&id)) {
            (IaType::Na, _) => out.command(format_args!("dhcp6 client {name}")),
            (IaType::Pd, Some(group)) => {
                out.command(format_args!("dhcp6 pd client {name} prefix group \"{group}\""));
            }
            (IaType::Pd, None) => {}
        }
    }
    let addresses = dhcp.group_addresses.iter().map(|own| (own.interface, own));
    for (id, own) in by_interface_name(engine, addresses) {
        let name = engine.interface_name(id);
        let GroupAddress { group, address, length, .. } = own;
        out.command(format_args!(
            "set ip6 address {name} prefix group \"{group}\" {address}/{length}"
        ));
    }
}
