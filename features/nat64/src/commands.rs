//! Commands.

use std::net::Ipv4Addr;

use quiver_bindings::{Filtering, Limit, TIMEOUT_WORDS, TIMEOUTS_S};
use quiver_control::{Args, Command, IpPrefix, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_translation::versions::address::Prefix;
use quiver_wire::IpProtocol;

use crate::config::{self, Enabled, Nat64, SESSIONS_DEFAULT};
use crate::pool;
use crate::statics::{self, StaticBinding};

pub(crate) const GROUP: &str = "NAT";
const PLUGIN: &str = "nat64 plugin";
pub(crate) fn register(registry: &mut Registry) {
    plugin(registry);
    prefixes(registry);
    addresses(registry);
    interfaces(registry);
    static_bindings(registry);
    behaviour(registry);
    timeouts(registry);
    ip6_mtu(registry);
    registry.command(
        Command::new("clear nat64 sessions")
            .group(GROUP)
            .help("End all NAT64 sessions")
            .example("clear nat64 sessions")
            .run(|engine: &mut Engine, _| {
                config::with_enabled(engine, |engine, _| config::end_sessions(engine, |_| true))?;
                Ok(Output::none())
            }),
    );
}

fn plugin(registry: &mut Registry) {
    registry.command(
        Command::new("nat64 plugin enable {[sessions <:1-16777216>] [outside-vrf <:u32>]}")
            .entry(order::ROUTES, "nat64.plugin: {sessions, outside-vrf}")
            .undo("nat64 plugin disable")
            .makes(PLUGIN)
            .stands_on("table <outside-vrf>")
            .group(GROUP)
            .help("Enable NAT64, and take the memory of its sessions")
            .details(
                "Hosts with IPv6 alone reach hosts with IPv4 alone by addresses of a prefix (RFC \
                 6146). A session takes 96 bytes and two entries of 11 to 16 bytes; memory for \
                 three objects of 64 bytes is taken beside each: the binding of the host's end, \
                 its subscriber, and a permission of the remote address.",
            )
            .word("sessions", "sessions at most; 64512")
            .word("outside-vrf", "the table that translated packets are routed in; 0")
            .example("nat64 plugin enable sessions 1000000")
            .run(|engine: &mut Engine, args| {
                let sessions = args.or("sessions", SESSIONS_DEFAULT as u32)? as usize;
                let wanted = Enabled { sessions, outside_vrf: args.or("outside-vrf", 0)? };
                config::enable(engine, wanted)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("nat64 plugin disable")
            .group(GROUP)
            .help("End all sessions, forget the configuration of NAT64, and give its memory back")
            .example("nat64 plugin disable")
            .run(|engine: &mut Engine, _| {
                config::disable(engine)?;
                Ok(Output::none())
            }),
    );
}

fn prefix_of(args: &Args<'_>) -> Result<Prefix, Refusal> {
    let prefix: IpPrefix = args.get("prefix")?;
    let bits = match prefix.address {
        std::net::IpAddr::V6(address) => address.to_bits(),
        std::net::IpAddr::V4(_) => 0,
    };
    Prefix::new(bits, prefix.length)
        .map_err(|error| args.refuse("prefix", error.to_string()).remedy("64:ff9b::/96"))
}

fn prefixes(registry: &mut Registry) {
    registry.command(
        Command::new("nat64 add prefix <prefix:prefix6> {[tenant-vrf <:u32>] [del]}")
            .entry(order::FEATURES, "nat64.prefixes.<prefix>: {tenant-vrf}")
            .undo("nat64 add prefix <prefix> [tenant-vrf <tenant-vrf>] del")
            .stands_on(PLUGIN)
            .stands_on("table <tenant-vrf>")
            .group(GROUP)
            .help("Let IPv4 addresses stand behind a prefix, or no more")
            .details(
                "The prefix has 32, 40, 48, 56, 64 or 96 bits (RFC 6052). Behind 64:ff9b::/96 \
                 only global IPv4 addresses are translated. Sessions of a prefix that is removed \
                 end.",
            )
            .word("prefix", "the prefix that hosts inside see IPv4 addresses behind")
            .word("tenant-vrf", "the table of IPv6 whose hosts alone use the prefix")
            .word("del", "remove the prefix")
            .example("nat64 add prefix 64:ff9b::/96")
            .example("nat64 add prefix 2001:db8:64::/48 tenant-vrf 0")
            .run(|engine: &mut Engine, args| {
                let (prefix, tenant) = (prefix_of(args)?, args.optional("tenant-vrf")?);
                match args.has("del") {
                    true => pool::remove_prefix(engine, prefix, tenant)?,
                    false => pool::add_prefix(engine, prefix, tenant)?,
                }
                Ok(Output::none())
            }),
    );
}

fn addresses(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat64 add pool address <first:ip4> [- <last:ip4>] {[tenant-vrf <:u32>] [del]}",
        )
        .entry(order::FEATURES, "nat64.pool.<first>: {last, tenant-vrf}")
        .undo("nat64 add pool address <first> [- <last>] del")
        .stands_on(PLUGIN)
        .stands_on("table <tenant-vrf>")
        .group(GROUP)
        .help("Add addresses to the pool that hosts are given, or remove them")
        .details(
            "The router answers ARP for them. Sessions of an address that is removed end. Hosts \
             of a table that has addresses of its own get no others.",
        )
        .word("tenant-vrf", "the table of IPv6 whose hosts alone get these addresses")
        .word("del", "remove the addresses")
        .example("nat64 add pool address 192.0.2.1")
        .example("nat64 add pool address 198.51.100.1 - 198.51.100.16")
        .run(|engine: &mut Engine, args| {
            let first: Ipv4Addr = args.get("first")?;
            let last = args.or("last", first)?;
            match args.has("del") {
                true => pool::remove_addresses(engine, first, last)?,
                false => {
                    let tenant = args.optional("tenant-vrf")?;
                    pool::add_addresses(engine, first, last, tenant)?;
                }
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("nat64 add interface address <interface> [del]")
            .entry(order::FEATURES, "interfaces.<interface>.nat64-address: true")
            .undo("nat64 add interface address <interface> del")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Let the first address of an interface be in the pool, whichever it is")
            .details(
                "Packets to it that belong to no session stay the router's own: it answers pings, \
                 for one.",
            )
            .example("nat64 add interface address e0")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                pool::set_pool_interface(engine, interface, !args.has("del"))?;
                Ok(Output::none())
            }),
    );
}

fn interfaces(registry: &mut Registry) {
    for (side, entry, undo, example, help) in [
        (
            "set interface nat64 in <interface> [del]",
            "interfaces.<interface>.nat64-in: true",
            "set interface nat64 in <interface> del",
            "set interface nat64 in e0",
            "Translate IPv6 packets that an interface receives and that go to a prefix of NAT64",
        ),
        (
            "set interface nat64 out <interface> [del]",
            "interfaces.<interface>.nat64-out: true",
            "set interface nat64 out <interface> del",
            "set interface nat64 out e1",
            "Translate IPv4 packets that an interface receives and that go to the pool of NAT64",
        ),
    ] {
        let is_inside = side.contains(" in ");
        registry.command(
            Command::new(side)
                .entry(order::FEATURES, entry)
                .undo(undo)
                .stands_on(PLUGIN)
                .group(GROUP)
                .help(help)
                .details(
                    "Fragments are held until the first of their packet has come (virtual \
                     reassembly).",
                )
                .example(example)
                .run(move |engine: &mut Engine, args| {
                    let (id, on) = (args.interface(engine, "interface")?, !args.has("del"));
                    config::change_sides(engine, id, |sides| match is_inside {
                        true => sides.inside = on,
                        false => sides.outside = on,
                    })?;
                    Ok(Output::none())
                }),
        );
    }
}

fn protocol_of(args: &Args<'_>) -> IpProtocol {
    match (args.has("tcp"), args.has("udp")) {
        (true, _) => IpProtocol::TCP,
        (_, true) => IpProtocol::UDP,
        _ => IpProtocol::ICMP,
    }
}

/// The word of a protocol.
pub(crate) fn protocol_word(protocol: IpProtocol) -> &'static str {
    match protocol {
        IpProtocol::TCP => "tcp",
        IpProtocol::UDP => "udp",
        _ => "icmp",
    }
}

fn static_bindings(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat64 add static bib <local:ip6> <local-port:1-65535> <external:ip4> \
             <external-port:1-65535> tcp|udp|icmp {[vrf-table <:u32>] [del]}",
        )
        .entry(
            order::FEATURES,
            "nat64.static-bib[]: {local, local-port, external, external-port, \
             protocol: <tcp|udp|icmp>, vrf-table}",
        )
        .undo(
            "nat64 add static bib <local> <local-port> <external> <external-port> [tcp] [udp] \
             [icmp] [vrf-table <vrf-table>] del",
        )
        .stands_on(PLUGIN)
        .stands_on("table <vrf-table>")
        .group(GROUP)
        .help("Let a host inside be reached from outside by a port, or no more")
        .details(
            "Of ICMP, ports are identifiers. The router answers ARP for the external address. \
             Sessions that have one of both ends end.",
        )
        .word("vrf-table", "the table of IPv6 that the host is in; 0")
        .word("del", "remove the binding")
        .example("nat64 add static bib 2001:db8:1::2 80 192.0.2.1 8080 tcp")
        .run(|engine: &mut Engine, args| {
            let binding = StaticBinding {
                local: args.get("local")?,
                local_port: args.get("local-port")?,
                external: args.get("external")?,
                external_port: args.get("external-port")?,
                protocol: protocol_of(args),
            };
            let vrf = args.or("vrf-table", 0)?;
            match args.has("del") {
                true => statics::remove(engine, binding, vrf)?,
                false => statics::add(engine, binding, vrf)?,
            }
            Ok(Output::none())
        }),
    );
}

fn behaviour(registry: &mut Registry) {
    registry.command(
        Command::new("nat64 filtering endpoint-independent|address-dependent")
            .entry(order::FEATURES, "nat64.filtering: <endpoint-independent|address-dependent>")
            .undo("nat64 filtering endpoint-independent")
            .replaces(&[])
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Say which hosts outside may send to a host inside that has a binding")
            .details(
                "All of them (RFC 6146 section 3.5), or those alone that the host has sent \
                 something to from the same port. Static bindings admit all.",
            )
            .example("nat64 filtering address-dependent")
            .run(|engine: &mut Engine, args| {
                let filtering = match args.has("address-dependent") {
                    true => Filtering::AddressDependent,
                    false => Filtering::EndpointIndependent,
                };
                config::with_enabled(engine, |engine, nat| {
                    nat.filtering = filtering;
                    config::publish(engine, nat);
                    Ok(())
                })?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(
            "nat64 subscriber-limit (sessions <sessions:1-16777216> \
             [prefix-length <prefix-length:1-128>] | disable)",
        )
        .entry(order::FEATURES, "nat64.subscriber-limit: {sessions: <sessions>, prefix-length}")
        .undo("nat64 subscriber-limit disable")
        .replaces(&[])
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Limit the sessions of a subscriber")
        .details("Sessions that are there when the limit comes do not count.")
        .word("prefix-length", "bits of an address that name its subscriber; 128")
        .example("nat64 subscriber-limit sessions 2000 prefix-length 56")
        .run(|engine: &mut Engine, args| {
            let limit = match args.optional("sessions")? {
                Some(sessions) => {
                    Some(Limit { sessions, prefix_length: args.or("prefix-length", 128)? })
                }
                None => None,
            };
            config::with_enabled(engine, |engine, nat| {
                nat.limit = limit;
                config::publish(engine, nat);
                Ok(())
            })?;
            Ok(Output::none())
        }),
    );
}

fn timeouts(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set nat64 timeouts {[udp <:1-604800>] [tcp-established <:1-604800>] \
             [tcp-transitory <:1-604800>] [icmp <:1-604800>] [reset]}",
        )
        .entry(order::LIMITS, "nat64.timeouts: {udp, tcp-established, tcp-transitory, icmp}")
        .undo("set nat64 timeouts reset")
        .group(GROUP)
        .help("Set how many seconds NAT64's sessions last without packets")
        .word("reset", "all as they are at first: 300, 7440, 240 and 60 seconds")
        .example("set nat64 timeouts udp 120 icmp 30")
        .example("set nat64 timeouts reset")
        .run(|engine: &mut Engine, args| {
            for (class, word) in TIMEOUT_WORDS {
                let first = args.has("reset").then_some(TIMEOUTS_S[class as usize]);
                let seconds = args.optional(word)?.or(first);
                if let (Some(seconds), Some(nat)) = (seconds, engine.get::<Nat64>()) {
                    nat.shared.timeouts.set(class, seconds);
                }
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("nat64 mss-clamping (<mss:536-65535> | disable)")
            .entry(order::LIMITS, "nat64.mss-clamping: <mss>")
            .undo("nat64 mss-clamping disable")
            .replaces(&[])
            .group(GROUP)
            .help("Lower the segment size that SYNs of connections through NAT64 name")
            .details("An IPv6 packet is 20 bytes longer than the same packet of IPv4.")
            .example("nat64 mss-clamping 1440")
            .run(|engine: &mut Engine, args| {
                let mss = args.optional("mss")?;
                if let Some(nat) = engine.get::<Nat64>() {
                    nat.shared.set_mss(mss);
                }
                Ok(Output::none())
            }),
    );
}

fn ip6_mtu(registry: &mut Registry) {
    registry.command(
        Command::new("nat64 ip6-mtu <bytes:1280-9216>")
            .entry(order::LIMITS, "nat64.ip6-mtu: <bytes>")
            .undo("nat64 ip6-mtu 1280")
            .replaces(&[])
            .group(GROUP)
            .help("Say how long packets to IPv6 may be whose sender lets routers cut them")
            .details(
                "Longer ones become fragments. 1280 bytes, as at first, suit every path of IPv6; \
                 more is for a network that is known (RFC 7915 section 4). Pings are lost as \
                 fragments when they pass a second translator.",
            )
            .word("bytes", "bytes of a packet of IPv6")
            .example("nat64 ip6-mtu 1500")
            .run(|engine: &mut Engine, args| {
                let bytes = args.get("bytes")?;
                if let Some(nat) = engine.get::<Nat64>() {
                    nat.shared.set_ip6_mtu(bytes);
                }
                Ok(Output::none())
            }),
    );
}
