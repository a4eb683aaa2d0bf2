//! Commands that make domains, rules and interfaces what they are.

use std::net::{IpAddr, Ipv6Addr};

use quiver_control::{Args, Command, IpPrefix, Output, Refusal, Registry, order};
use quiver_core::Engine;

use crate::config;
use crate::domain_config::{DomainConfig, MTU_BYTES};
use crate::tables::{ENCAPSULATES, TRANSLATES};

/// The heading of these commands.
pub(crate) const GROUP: &str = "NAT";

pub(crate) fn register(registry: &mut Registry) {
    domains(registry);
    rules(registry);
    interfaces(registry);
}

fn domains(registry: &mut Registry) {
    registry.command(
        Command::new(
            "map add domain [tag <tag:text>] ip4-pfx <ip4-pfx:prefix4> ip6-pfx <ip6-pfx:prefix6> \
             ip6-src (<ip6-src:prefix6>|<ip6-address:ip6>) {[ea-bits-len <:0-48>] \
             [psid-offset <:0-15>] [psid-len <:0-16>] [mtu <:1280-9216>] [index <:0-65535>] \
             [map-t]}",
        )
        .entry(
            order::FEATURES,
            "map.domains.<index>: {tag, ip4-pfx, ip6-pfx, ip6-src, ip6-address, ea-bits-len, \
             psid-offset, psid-len, mtu, map-t}",
        )
        .undo("map del domain index <index>")
        .makes("MAP domain <index>")
        .usual(&[("ea-bits-len", "0"), ("psid-offset", "0"), ("psid-len", "0"), ("mtu", "1500")])
        .group(GROUP)
        .help("Add a domain of customers with IPv4 behind a network of IPv6: MAP-E, MAP-T, lw4o6")
        .details(
            "Packets to ip4-pfx go to the customer who has their destination and port, packets \
             to ip6-src come from one. The IPv6 address of a customer is ip6-pfx, the embedded \
             bits (ea-bits-len: the IPv4 suffix and the PSID) and an interface identifier (RFC \
             7597). With psid-len and without ea-bits-len it is what `map add rule` says \
             (lightweight 4over6, RFC 7596). With map-t packets are translated (RFC 7599), and \
             ip6-src is the default mapping rule; otherwise they are encapsulated, and ip6-src \
             is the border relay's address.",
        )
        .word("tag", "a text of yours")
        .word("ip4-pfx", "the IPv4 addresses of the customers")
        .word("ip6-pfx", "what the IPv6 addresses of the customers begin with")
        .word("ip6-src", "the border relay's address, or with map-t the default mapping rule")
        .word("ea-bits-len", "embedded-address bits; 0")
        .word("psid-offset", "bits of a port in front of the PSID; 0")
        .word("psid-len", "bits of the PSID; 0, an address is one customer's")
        .word("mtu", "the longest packet of IPv6 in bytes; 1500")
        .word("index", "its number; the first that is free")
        .word("map-t", "translate packets, and do not encapsulate them")
        .example(
            "map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8:ffff::1 \
             ea-bits-len 16 psid-offset 6 psid-len 8",
        )
        .example(
            "map add domain tag lw4o6 ip4-pfx 192.0.2.1/32 ip6-pfx ::/0 ip6-src \
             2001:db8:ffff::1/128 psid-len 6",
        )
        .run(add_domain),
    );
    registry.command(
        Command::new("map del domain index <index:0-65535>")
            .group(GROUP)
            .help("Delete a MAP domain with its rules")
            .example("map del domain index 0")
            .run(|engine: &mut Engine, args| {
                config::delete_domain(engine, args.get("index")?)?;
                Ok(Output::none())
            }),
    );
}

fn add_domain(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let address: Option<Ipv6Addr> = args.optional("ip6-address")?;
    let ip6_source = match address {
        Some(address) => IpPrefix { address: IpAddr::V6(address), length: 128 },
        None => args.get("ip6-src")?,
    };
    let tag: Option<&str> = args.optional("tag")?;
    let config = DomainConfig {
        tag: tag.map(str::to_owned),
        ip4: args.get("ip4-pfx")?,
        ip6: args.get("ip6-pfx")?,
        ip6_source,
        embedded: args.or("ea-bits-len", 0)?,
        psid_offset: args.or("psid-offset", 0)?,
        psid_length: args.or("psid-len", 0)?,
        translates: args.has("map-t"),
        mtu_bytes: args.or("mtu", MTU_BYTES)?,
    };
    let index = config::add_domain(engine, args.optional("index")?, config)?;
    Ok(Output::none().line(index.to_string()).json("index", index.into()))
}

fn rules(registry: &mut Registry) {
    registry.command(
        Command::new(
            "map add rule index <index:0-65535> psid <psid:0-65535> ip6-dst <ip6-dst:ip6>",
        )
        .entry(order::FEATURES, "map.rules.<index>.<psid>: <ip6-dst>")
        .undo("map del rule index <index> psid <psid>")
        .replaces(&["index", "psid"])
        .stands_on("MAP domain <index>")
        .group(GROUP)
        .help("Bind a PSID of a domain to the IPv6 address of a customer (lightweight 4over6)")
        .details(
            "A rule takes the place of another one for the same PSID: packets go to the one \
                 or to the other address, and none is lost.",
        )
        .word("index", "the domain, with psid-len and without ea-bits-len")
        .word("psid", "the port-set identifier")
        .word("ip6-dst", "the IPv6 address of the customer")
        .example("map add rule index 0 psid 3 ip6-dst 2001:db8:1:3::1")
        .run(|engine: &mut Engine, args| {
            let (index, psid) = (args.get("index")?, args.get("psid")?);
            config::add_rule(engine, index, psid, args.get("ip6-dst")?)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new(
            "map del rule index <index:0-65535> psid <psid:0-65535> [ip6-dst <ip6-dst:ip6>]",
        )
        .group(GROUP)
        .help("Bind a PSID of a domain to no customer")
        .word("ip6-dst", "refuse it when the rule has another address")
        .example("map del rule index 0 psid 3")
        .run(|engine: &mut Engine, args| {
            let (index, psid) = (args.get("index")?, args.get("psid")?);
            config::delete_rule(engine, index, psid, args.optional("ip6-dst")?)?;
            Ok(Output::none())
        }),
    );
}

fn interfaces(registry: &mut Registry) {
    registry.command(
        Command::new("map interface <interface> [map-t] [del]")
            .entry(order::FEATURES, "interfaces.<interface>.map-t: true with map-t")
            .entry(order::FEATURES, "interfaces.<interface>.map: true")
            .undo("map interface <interface> [map-t] del")
            .group(GROUP)
            .help("Let packets from an interface pass the border relay, or no more")
            .details(
                "Both sides are to be named: those of IPv4 and of IPv6. Without map-t, packets of \
                 domains that encapsulate pass; with it, those of domains that translate. \
                 Fragments from the interface are held until the first of their packet has come \
                 (virtual reassembly).",
            )
            .word("map-t", "packets of domains with map-t")
            .word("del", "no more")
            .example("map interface e0")
            .example("map interface e0 map-t")
            .example("map interface e0 del")
            .run(|engine: &mut Engine, args| {
                let id = args.interface(engine, "interface")?;
                let mode = if args.has("map-t") { TRANSLATES } else { ENCAPSULATES };
                config::set_interface(engine, id, mode, !args.has("del"))?;
                Ok(Output::none())
            }),
    );
}
