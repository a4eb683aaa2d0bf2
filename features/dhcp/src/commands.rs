//! The commands of the relay agent.

use std::net::IpAddr;

use quiver_control::{
    Args, Command, ConfigWriter, Output, Refusal, Registry, by_interface_name, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::Family;
use quiver_wire::{Ip6Prefix, ip4, ip6};

use crate::config::{self, Dhcp, Server};
use crate::option82::{InterfaceOptions, Policy, TEXT_BYTES_MAX, Vss};
use crate::relay6::Interface6Options;

/// The chapter of the reference.
pub(crate) const GROUP: &str = "DHCP";
const DETAILS: &str = "Clients are those of interfaces in the table `rx-fib-id`; each of their \
    messages goes to every server of that table. The server is found by the routes of the table \
    `server-fib-id`. It gets messages from `src-address`, or from the address of the interface \
    that received them.";

pub(crate) fn register(registry: &mut Registry) {
    for (line, help, example) in [
        (
            "set dhcp proxy {server <:ip> [src-address <:ip>] [server-fib-id <:u32>] \
             [rx-fib-id <:u32>] [del]}",
            "Relay DHCP clients to a server",
            "set dhcp proxy server 192.0.2.53 src-address 192.0.2.1",
        ),
        (
            "set dhcpv6 proxy {server <:ip6> [src-address <:ip6>] [server-fib-id <:u32>] \
             [rx-fib-id <:u32>] [del]}",
            "Relay DHCPv6 clients to a server",
            "set dhcpv6 proxy server 2001:db8::53",
        ),
    ] {
        registry.command(
            Command::new(line)
                .entry(
                    order::FEATURES,
                    match line.starts_with("set dhcpv6") {
                        false => {
                            "dhcp.relays[]: {server, source: <src-address>, server-table: \
                             <server-fib-id>, table: <rx-fib-id>}"
                        }
                        true => {
                            "dhcp6.relays[]: {server, source: <src-address>, server-table: \
                             <server-fib-id>, table: <rx-fib-id>}"
                        }
                    },
                )
                .undo(match line.starts_with("set dhcpv6") {
                    false => {
                        "set dhcp proxy server <server> [src-address <src-address>] \
                         [server-fib-id <server-fib-id>] [rx-fib-id <rx-fib-id>] del"
                    }
                    true => {
                        "set dhcpv6 proxy server <server> [src-address <src-address>] \
                         [server-fib-id <server-fib-id>] [rx-fib-id <rx-fib-id>] del"
                    }
                })
                .group(GROUP)
                .help(help)
                .details(DETAILS)
                .word("server-fib-id", "the table in which the server is; 0")
                .word("rx-fib-id", "the table in which clients are; 0")
                .example(example)
                .run(set_server),
        );
    }
    for (line, help, example) in [
        (
            "set dhcp option-82 vss {table <:u32> [oui <:0-16777215>] [vpn-index <:u32>] \
             [vpn-ascii-id <:text>] [del]}",
            "Say in which VPN the DHCP clients of a table are",
            "set dhcp option-82 vss table 1 oui 16 vpn-index 7",
        ),
        (
            "set dhcpv6 vss {table <:u32> [oui <:0-16777215>] [vpn-index <:u32>] \
             [vpn-ascii-id <:text>] [del]}",
            "Say in which VPN the DHCPv6 clients of a table are",
            "set dhcpv6 vss table 1 vpn-ascii-id red",
        ),
    ] {
        let is_ip6 = line.starts_with("set dhcpv6");
        registry.command(
            Command::new(line)
                .entry(
                    order::FEATURES,
                    match is_ip6 {
                        false => "dhcp.vss.<table>: {oui, vpn-index, vpn-ascii-id}",
                        true => "dhcp6.vss.<table>: {oui, vpn-index, vpn-ascii-id}",
                    },
                )
                .undo(match is_ip6 {
                    false => "set dhcp option-82 vss table <table> del",
                    true => "set dhcpv6 vss table <table> del",
                })
                .group(GROUP)
                .help(help)
                .details(
                    "Servers are told by virtual subnet selection (RFC 6607): by the numbers of \
                     RFC 2685, by a name, or, with neither, that it is the global VPN.",
                )
                .example(example)
                .run(move |engine: &mut Engine, args| set_vss(engine, args, is_ip6)),
        );
    }
    registry.command(
        Command::new(
            "set interface dhcp option-82 <interface> {[circuit-id <:text>] [remote-id <:text>] \
             [server-override] [policy <policy:drop|keep|replace|append>] [disable] [del]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.dhcp-relay: some{circuit-id, remote-id, server-override, \
             policy, enabled: <?disable>}",
        )
        .undo("set interface dhcp option-82 <interface> del")
        .group(GROUP)
        .help("Set what servers are told of the clients of an interface (DHCP option 82)")
        .details(
            "The circuit is the interface's name unless given. With `server-override` clients \
             renew their leases through this router (RFC 5107). The policy is for messages of \
             clients that have option 82 already: they are dropped unless another one is given. \
             `disable` adds no option there; `del` brings back what is usual. What is not named \
             is as usual.",
        )
        .example("set interface dhcp option-82 e0 circuit-id \"port 7\" policy replace")
        .run(set_options),
    );
    registry.command(
        Command::new(
            "set interface dhcpv6 options <interface> {[remote-id <:text>] [enterprise <:u32>] \
             [link-layer-address] [del]}",
        )
        .entry(
            order::FEATURES,
            "interfaces.<interface>.dhcp6-relay: some{remote-id, enterprise, link-layer-address}",
        )
        .undo("set interface dhcpv6 options <interface> del")
        .group(GROUP)
        .help("Set what servers are told of the DHCPv6 clients of an interface")
        .details(
            "The remote identifier (RFC 4649) names what is at the remote end of the circuit, in \
             the words of an enterprise. With `link-layer-address` servers get the MAC address \
             that a client's message came from (RFC 6939). What is not named is not sent.",
        )
        .word("enterprise", "the number of the enterprise that named the remote end; 0")
        .example("set interface dhcpv6 options e0 remote-id \"rack 1\" link-layer-address")
        .run(set_options6),
    );
    registry.command(
        Command::new("clear dhcpv6 proxy prefixes [<prefix:prefix6>]")
            .group(GROUP)
            .help("Forget delegated prefixes, and take their routes away")
            .example("clear dhcpv6 proxy prefixes")
            .run(|engine: &mut Engine, args| {
                let written: Option<quiver_control::IpPrefix> = args.optional("prefix")?;
                let six = written.and_then(|written| written.as_ip6());
                let which = six.map(|(address, length)| Ip6Prefix::covering(address, length));
                let which = which.transpose().map_err(|e| args.refuse("prefix", e.to_string()))?;
                let cleared = engine.with(|engine, dhcp: &mut Dhcp| {
                    let cleared = dhcp.prefixes.clear(which);
                    dhcp.prefixes.follow(engine);
                    cleared
                });
                match which.filter(|_| !cleared) {
                    Some(prefix) => Err(args
                        .refuse("prefix", format!("{prefix} is not delegated"))
                        .remedy("`show dhcpv6 proxy prefixes` lists those that are")),
                    None => Ok(Output::none()),
                }
            }),
    );
}

/// Refuse an address that is no host's, or has a meaning on one link only.
fn check_host(args: &Args<'_>, name: &str, address: IpAddr) -> Result<(), Refusal> {
    let is_host = match address {
        IpAddr::V4(four) => ip4::address::is_unicast(four) && !ip4::address::is_loopback(four),
        IpAddr::V6(six) => {
            ip6::address::is_unicast(six)
                && !ip6::address::is_link_local(six)
                && !ip6::address::is_loopback(six)
        }
    };
    match is_host {
        true => Ok(()),
        false => Err(args.refuse(name, format!("{address} is no host's address beyond a link"))),
    }
}

fn set_server(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let address: IpAddr = args.get("server")?;
    let source: Option<IpAddr> = args.optional("src-address")?;
    let (table, rx_table) = (args.or("server-fib-id", 0u32)?, args.or("rx-fib-id", 0u32)?);
    if args.has("del") {
        config::remove_server(engine, rx_table, address, table)?;
        return Ok(Output::none());
    }
    check_host(args, "server", address)?;
    if let Some(source) = source {
        check_host(args, "src-address", source)?;
        if source.is_ipv4() != address.is_ipv4() {
            let what = format!("{source} and {address} are of two families");
            return Err(args.refuse("src-address", what));
        }
    }
    config::add_server(engine, rx_table, Server { address, table, source })?;
    Ok(Output::none())
}

/// Refuse a text that does not fit, or would not be read back from a configuration.
pub(crate) fn check_text(args: &Args<'_>, name: &str) -> Result<Option<String>, Refusal> {
    let text: Option<&str> = args.optional(name)?;
    let Some(text) = text else { return Ok(None) };
    if text.is_empty() || text.len() > TEXT_BYTES_MAX {
        let what = format!("it has {} bytes, 1 to {TEXT_BYTES_MAX} are possible", text.len());
        return Err(args.refuse(name, what));
    }
    if text.chars().any(|c| c.is_control() || c == '"') {
        return Err(args.refuse(name, "it has quotation marks or control characters"));
    }
    Ok(Some(text.to_owned()))
}

fn set_vss(engine: &mut Engine, args: &Args<'_>, is_ip6: bool) -> Result<Output, Refusal> {
    let table: u32 = args.get("table")?;
    let family = if is_ip6 { Family::Ip6 } else { Family::Ip4 };
    let busy = || Refusal::new("DHCP is being changed");
    if args.has("del") {
        let all = &mut engine.get_mut::<Dhcp>().ok_or_else(busy)?.proxies_mut(family).vss;
        return match all.remove(&table) {
            Some(_) => Ok(Output::none()),
            None => Err(args.refuse("table", format!("no VPN was said for table {table}"))),
        };
    }
    let name = check_text(args, "vpn-ascii-id")?;
    let (oui, index) = (args.optional::<u32>("oui")?, args.optional::<u32>("vpn-index")?);
    let vss = match (name, oui, index) {
        (Some(name), None, None) => Vss::Name(name),
        (None, Some(oui), Some(index)) => Vss::Id { oui, index },
        (None, None, None) => Vss::Global,
        _ => {
            return Err(Refusal::new("a VPN has a name, or an organization and an index")
                .remedy("give vpn-ascii-id, or oui and vpn-index"));
        }
    };
    engine.get_mut::<Dhcp>().ok_or_else(busy)?.proxies_mut(family).vss.insert(table, vss);
    Ok(Output::none())
}

fn set_options(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let word: Option<&str> = args.optional("policy")?;
    let policy = word.and_then(|word| Policy::WORDS.iter().find(|(known, _)| *known == word));
    let options = InterfaceOptions {
        disabled: args.has("disable"),
        circuit_id: check_text(args, "circuit-id")?,
        remote_id: check_text(args, "remote-id")?,
        server_override: args.has("server-override"),
        policy: policy.map_or(Policy::default(), |(_, policy)| *policy),
    };
    let is_usual = args.has("del") || options == InterfaceOptions::default();
    let dhcp = engine.get_mut::<Dhcp>().ok_or_else(|| Refusal::new("DHCP is being changed"))?;
    match is_usual {
        true => drop(dhcp.options.remove(&id)),
        false => drop(dhcp.options.insert(id, options)),
    }
    Ok(Output::none())
}

fn set_options6(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let id = args.interface(engine, "interface")?;
    let remote_id = check_text(args, "remote-id")?;
    let enterprise: Option<u32> = args.optional("enterprise")?;
    if remote_id.is_none() && enterprise.is_some() {
        return Err(args
            .refuse("enterprise", "it says whose remote identifier is sent")
            .remedy("give remote-id, too"));
    }
    let options = Interface6Options {
        remote_id: remote_id.map(|name| (enterprise.unwrap_or(0), name)),
        link_layer_address: args.has("link-layer-address"),
    };
    let is_usual = args.has("del") || options == Interface6Options::default();
    let dhcp = engine.get_mut::<Dhcp>().ok_or_else(|| Refusal::new("DHCP is being changed"))?;
    match is_usual {
        true => drop(dhcp.options6.remove(&id)),
        false => drop(dhcp.options6.insert(id, options)),
    }
    Ok(Output::none())
}

/// `show running-config`: servers, VPNs, options.
pub(crate) fn write_config(engine: &Engine, out: &mut ConfigWriter) {
    let Some(dhcp) = engine.get::<Dhcp>() else { return };
    for (family, words, vss) in [
        (Family::Ip4, "set dhcp proxy", "set dhcp option-82 vss"),
        (Family::Ip6, "set dhcpv6 proxy", "set dhcpv6 vss"),
    ] {
        let proxies = dhcp.proxies(family);
        for (rx_table, servers) in &proxies.servers {
            let mut servers = servers.clone();
            servers.sort_by_key(|server| (server.address, server.table));
            for Server { address, table, source } in servers {
                let source = source.map_or_else(String::new, |s| format!(" src-address {s}"));
                let table = table_word("server-fib-id", table);
                let rx_table = table_word("rx-fib-id", *rx_table);
                out.command(format_args!("{words} server {address}{source}{table}{rx_table}"));
            }
        }
        for (table, said) in &proxies.vss {
            out.command(format_args!("{vss} table {table}{}", vss_words(said)));
        }
    }
    let options = dhcp.options.iter().map(|(id, options)| (*id, options));
    for (id, options) in by_interface_name(engine, options) {
        let name = engine.interface_name(id);
        out.command(format_args!("set interface dhcp option-82 {name}{}", words(options)));
    }
    write_options6(engine, dhcp, out);
}

/// The words of `set interface dhcpv6 options`.
fn write_options6(engine: &Engine, dhcp: &Dhcp, out: &mut ConfigWriter) {
    let options = dhcp.options6.iter().map(|(id, options)| (*id, options));
    for (id, Interface6Options { remote_id, link_layer_address }) in
        by_interface_name(engine, options)
    {
        let mut words = String::new();
        if let Some((enterprise, name)) = remote_id {
            words += &format!(" remote-id \"{name}\" enterprise {enterprise}");
        }
        if *link_layer_address {
            words += " link-layer-address";
        }
        let name = engine.interface_name(id);
        out.command(format_args!("set interface dhcpv6 options {name}{words}"));
    }
}

fn table_word(word: &str, table: u32) -> String {
    if table == 0 { String::new() } else { format!(" {word} {table}") }
}

pub(crate) fn vss_words(vss: &Vss) -> String {
    match vss {
        Vss::Name(name) => format!(" vpn-ascii-id \"{name}\""),
        Vss::Id { oui, index } => format!(" oui {oui} vpn-index {index}"),
        Vss::Global => String::new(),
    }
}

fn words(options: &InterfaceOptions) -> String {
    let InterfaceOptions { disabled, circuit_id, remote_id, server_override, policy } = options;
    let mut words = String::new();
    for (word, text) in [("circuit-id", circuit_id), ("remote-id", remote_id)] {
        if let Some(text) = text {
            words += &format!(" {word} \"{text}\"");
        }
    }
    if *server_override {
        words += " server-override";
    }
    if *policy != Policy::default() {
        words += &format!(" policy {}", policy.word());
    }
    if *disabled {
        words += " disable";
    }
    words
}
