//! Commands.

use std::net::Ipv6Addr;

use quiver_bindings::{Filtering, Limit, TIMEOUT_WORDS, TIMEOUTS_S};
use quiver_control::{Args, Command, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_wire::IpProtocol;

use crate::config::{self, Enabled, Nat66, Place, SESSIONS_DEFAULT};
use crate::enabling;
use crate::pool;
use crate::statics::{self, StaticMapping, WholeMapping};

pub(crate) const GROUP: &str = "NAT";
const PLUGIN: &str = "nat66 plugin";

pub(crate) fn register(registry: &mut Registry) {
    plugin(registry);
    addresses(registry);
    interfaces(registry);
    static_ports(registry);
    static_hosts(registry);
    behaviour(registry);
    limit(registry);
    timeouts(registry);
    registry.command(
        Command::new("clear nat66 sessions")
            .group(GROUP)
            .help("End all NAT66 sessions")
            .example("clear nat66 sessions")
            .run(|engine: &mut Engine, _| {
                config::with_enabled(engine, |engine, _| config::end_sessions(engine, |_| true))?;
                Ok(Output::none())
            }),
    );
}

fn plugin(registry: &mut Registry) {
    registry.command(
        Command::new("nat66 plugin enable {[sessions <:1-16777216>] [outside-vrf <:u32>]}")
            .entry(order::ROUTES, "nat66.plugin: {sessions, outside-vrf}")
            .undo("nat66 plugin disable")
            .makes(PLUGIN)
            .stands_on("table <outside-vrf>")
            .group(GROUP)
            .help("Enable NAT66, and take the memory of its sessions")
            .details(
                "Hosts with addresses of IPv6 that others do not know are seen by few addresses \
                 and by ports (NAPT66). A session takes 128 bytes and two entries of 11 to 16 \
                 bytes; memory for three objects of 64 bytes is taken beside each: the binding of \
                 the host's end, its subscriber, and a permission of the remote address.",
            )
            .word("sessions", "sessions at most; 64512")
            .word("outside-vrf", "the table that packets from outside are received in; 0")
            .example("nat66 plugin enable sessions 1000000")
            .run(|engine: &mut Engine, args| {
                let sessions = args.or("sessions", SESSIONS_DEFAULT as u32)? as usize;
                let wanted = Enabled { sessions, outside_vrf: args.or("outside-vrf", 0)? };
                enabling::enable(engine, wanted)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("nat66 plugin disable")
            .group(GROUP)
            .help("End all sessions, forget the configuration of NAT66, and give its memory back")
            .example("nat66 plugin disable")
            .run(|engine: &mut Engine, _| {
                enabling::disable(engine)?;
                Ok(Output::none())
            }),
    );
}

fn addresses(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat66 add pool address <first:ip6> [- <last:ip6>] {[tenant-vrf <:u32>] [del]}",
        )
        .entry(order::FEATURES, "nat66.pool.<first>: {last, tenant-vrf}")
        .undo("nat66 add pool address <first> [- <last>] del")
        .stands_on(PLUGIN)
        .stands_on("table <tenant-vrf>")
        .group(GROUP)
        .help("Add addresses to the pool that hosts are seen by, or remove them")
        .details(
            "The router answers neighbour solicitations for them. Sessions of an address that is \
             removed end. Hosts of a table that has addresses of its own get no others.",
        )
        .word("tenant-vrf", "the table whose hosts alone get these addresses")
        .word("del", "remove the addresses")
        .example("nat66 add pool address 2001:db8:2::10")
        .example("nat66 add pool address 2001:db8:2::10 - 2001:db8:2::1f")
        .run(|engine: &mut Engine, args| {
            let first: Ipv6Addr = args.get("first")?;
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
        Command::new("nat66 add interface address <interface> [del]")
            .entry(order::FEATURES, "interfaces.<interface>.nat66-address: true")
            .undo("nat66 add interface address <interface> del")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Let the first address of an interface be in the pool, whichever it is")
            .details(
                "Link-local addresses do not count. Packets to it that belong to no session stay \
                 the router's own: it answers pings, for one.",
            )
            .example("nat66 add interface address e0")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                pool::set_pool_interface(engine, interface, !args.has("del"))?;
                Ok(Output::none())
            }),
    );
}

fn interfaces(registry: &mut Registry) {
    for (side, entry, undo, example, help, place) in [
        (
            "set interface nat66 in <interface> [del]",
            "interfaces.<interface>.nat66-in: true",
            "set interface nat66 in <interface> del",
            "set interface nat66 in e0",
            "Translate packets that an interface receives and that leave by an outside interface",
            Place::Inside,
        ),
        (
            "set interface nat66 out <interface> [del]",
            "interfaces.<interface>.nat66-out: true",
            "set interface nat66 out <interface> del",
            "set interface nat66 out e1",
            "Translate packets that an interface receives and that go to the pool of NAT66",
            Place::Outside,
        ),
    ] {
        registry.command(
            Command::new(side)
                .entry(order::FEATURES, entry)
                .undo(undo)
                .stands_on(PLUGIN)
                .group(GROUP)
                .help(help)
                .details(
                    "Fragments are held until the first of their packet has come (virtual \
                     reassembly). An interface is on one side. Packets from outside to addresses \
                     that are not NAT66's pass as they are: filter them with an ACL.",
                )
                .example(example)
                .run(move |engine: &mut Engine, args| {
                    let (id, on) = (args.interface(engine, "interface")?, !args.has("del"));
                    config::change_place(engine, id, place, on)?;
                    Ok(Output::none())
                }),
        );
    }
}

fn protocol_of(args: &Args<'_>) -> IpProtocol {
    match (args.has("tcp"), args.has("udp")) {
        (true, _) => IpProtocol::TCP,
        (_, true) => IpProtocol::UDP,
        _ => IpProtocol::ICMP6,
    }
}

/// The word of a protocol, or its number.
pub(crate) fn protocol_word(protocol: IpProtocol) -> String {
    match protocol {
        IpProtocol::TCP => "tcp".to_owned(),
        IpProtocol::UDP => "udp".to_owned(),
        IpProtocol::ICMP6 => "icmp".to_owned(),
        IpProtocol(other) => other.to_string(),
    }
}

fn static_ports(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat66 add static mapping tcp|udp|icmp local <local:ip6> <local-port:1-65535> \
             external <external:ip6> <external-port:1-65535> {[vrf <:u32>] [del]}",
        )
        .entry(
            order::FEATURES,
            "nat66.static-mappings[]: {protocol: <tcp|udp|icmp>, local, local-port, external, \
             external-port, vrf}",
        )
        .undo(
            "nat66 add static mapping [tcp] [udp] [icmp] local <local> <local-port> external \
             <external> <external-port> [vrf <vrf>] del",
        )
        .stands_on(PLUGIN)
        .stands_on("table <vrf>")
        .group(GROUP)
        .help("Let a host inside be reached from outside by a port, or no more")
        .details(
            "Of ICMP, ports are identifiers. The router answers neighbour solicitations for the \
             external address. Sessions that have one of both ends end.",
        )
        .word("vrf", "the table that the host is in; 0")
        .word("del", "remove the mapping")
        .example("nat66 add static mapping tcp local fd00:1::2 80 external 2001:db8:2::10 8080")
        .run(|engine: &mut Engine, args| {
            let mapping = StaticMapping {
                local: args.get("local")?,
                local_port: args.get("local-port")?,
                external: args.get("external")?,
                external_port: args.get("external-port")?,
                protocol: protocol_of(args),
            };
            let vrf = args.or("vrf", 0)?;
            match args.has("del") {
                true => statics::remove(engine, mapping, vrf)?,
                false => statics::add(engine, mapping, vrf)?,
            }
            Ok(Output::none())
        }),
    );
}

fn static_hosts(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat66 add static mapping local <local:ip6> external <external:ip6> \
             {[vrf <:u32>] [del]}",
        )
        .entry(order::FEATURES, "nat66.static-hosts[]: {local, external, vrf}")
        .undo("nat66 add static mapping local <local> external <external> [vrf <vrf>] del")
        .stands_on(PLUGIN)
        .stands_on("table <vrf>")
        .group(GROUP)
        .help("Give a host inside an external address of its own, or no more")
        .details(
            "All its ports and protocols are reached from outside. The router answers neighbour \
             solicitations for the external address. Sessions of both addresses end.",
        )
        .word("vrf", "the table that the host is in; 0")
        .word("del", "remove the mapping")
        .example("nat66 add static mapping local fd00:1::3 external 2001:db8:2::13")
        .run(|engine: &mut Engine, args| {
            let mapping =
                WholeMapping { local: args.get("local")?, external: args.get("external")? };
            let vrf = args.or("vrf", 0)?;
            match args.has("del") {
                true => statics::remove_whole(engine, mapping, vrf)?,
                false => statics::add_whole(engine, mapping, vrf)?,
            }
            Ok(Output::none())
        }),
    );
}

fn behaviour(registry: &mut Registry) {
    registry.command(
        Command::new("nat66 filtering endpoint-independent|address-dependent")
            .entry(order::FEATURES, "nat66.filtering: <endpoint-independent|address-dependent>")
            .undo("nat66 filtering endpoint-independent")
            .replaces(&[])
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Say which hosts outside may send to a host inside that has a binding")
            .details(
                "All of them (RFC 4787 section 5), or those alone that the host has sent \
                 something to from the same port. Static mappings admit all.",
            )
            .example("nat66 filtering address-dependent")
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
}

fn limit_of(args: &Args<'_>) -> Result<Option<Limit>, Refusal> {
    let Some(sessions) = args.optional("sessions")? else { return Ok(None) };
    Ok(Some(Limit { sessions, prefix_length: args.or("prefix-length", 128)? }))
}

fn limit(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat66 subscriber-limit (sessions <sessions:1-16777216> \
             [prefix-length <prefix-length:1-128>] | disable)",
        )
        .entry(order::FEATURES, "nat66.subscriber-limit: {sessions: <sessions>, prefix-length}")
        .undo("nat66 subscriber-limit disable")
        .replaces(&[])
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Limit the sessions of a subscriber")
        .details("Sessions that are there when the limit comes do not count.")
        .word("prefix-length", "bits of an address that name its subscriber; 128")
        .example("nat66 subscriber-limit sessions 2000 prefix-length 64")
        .run(|engine: &mut Engine, args| {
            let limit = limit_of(args)?;
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
            "set nat66 timeouts {[udp <:1-604800>] [tcp-established <:1-604800>] \
             [tcp-transitory <:1-604800>] [icmp <:1-604800>] [reset]}",
        )
        .entry(order::LIMITS, "nat66.timeouts: {udp, tcp-established, tcp-transitory, icmp}")
        .undo("set nat66 timeouts reset")
        .group(GROUP)
        .help("Set how many seconds NAT66's sessions last without packets")
        .word("udp", "UDP, and protocols without ports")
        .word("reset", "all as they are at first: 300, 7440, 240 and 60 seconds")
        .example("set nat66 timeouts udp 120 icmp 30")
        .example("set nat66 timeouts reset")
        .run(|engine: &mut Engine, args| {
            for (class, word) in TIMEOUT_WORDS {
                let first = args.has("reset").then_some(TIMEOUTS_S[class as usize]);
                let seconds = args.optional(word)?.or(first);
                if let (Some(seconds), Some(nat)) = (seconds, engine.get::<Nat66>()) {
                    nat.shared.timeouts.set(class, seconds);
                }
            }
            Ok(Output::none())
        }),
    );
}
