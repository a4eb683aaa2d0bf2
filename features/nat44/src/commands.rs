//! Commands.

use std::net::Ipv4Addr;

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;
use quiver_translation::flow::End;
use quiver_wire::IpProtocol;

use crate::config::{self, Enabled, Nat44, SESSIONS_DEFAULT};
use crate::provider::bindings_of;
use crate::session::{Class, Direction};
use crate::sides;
use crate::tables::{Sides, TIMEOUTS_S};

pub(crate) const GROUP: &str = "NAT";
pub(crate) const PLUGIN: &str = "nat44 plugin";
/// The words of timeouts.
pub(crate) const TIMEOUTS: [(Class, &str); 4] = [
    (Class::Udp, "udp"),
    (Class::TcpEstablished, "tcp-established"),
    (Class::TcpTransitory, "tcp-transitory"),
    (Class::Icmp, "icmp"),
];

pub(crate) fn register(registry: &mut Registry) {
    plugin(registry);
    addresses(registry);
    interfaces(registry);
    crate::mapping_commands::register(registry);
    crate::provider_commands::register(registry);
    timeouts(registry);
    sessions(registry);
    crate::shows::register(registry);
}

fn plugin(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat44 plugin enable {[sessions <:1-16777216>] [bindings <:1-33554432>] \
             [inside-vrf <:u32>] [outside-vrf <:u32>]}",
        )
        .entry(order::ROUTES, "nat44.plugin: {sessions, bindings, inside-vrf, outside-vrf}")
        .undo("nat44 plugin disable")
        .makes(PLUGIN)
        .stands_on("table <inside-vrf>")
        .stands_on("table <outside-vrf>")
        .group(GROUP)
        .help("Enable NAT44, endpoint-dependent, and take the memory of its sessions")
        .details(
            "A session takes 64 bytes and two entries of 11 to 16 bytes. So does a binding: a \
             subscriber, a port block, an endpoint-independent mapping, a port in quarantine; \
             their memory is taken by the first command that needs them. Hosts inside are in the \
             table of inside-vrf unless their interface is in another; translated packets are \
             routed in outside-vrf.",
        )
        .word("sessions", "sessions at most; 64512")
        .word("bindings", "bindings at most; five for four sessions, and 1024")
        .word("inside-vrf", "the table of static mappings' hosts; 0")
        .word("outside-vrf", "the table of what is outside; 0")
        .example("nat44 plugin enable sessions 1000000")
        .run(|engine: &mut Engine, args| {
            let sessions = args.or("sessions", SESSIONS_DEFAULT as u32)? as usize;
            let bindings: Option<u32> = args.optional("bindings")?;
            let wanted = Enabled {
                sessions,
                bindings: bindings.map_or(bindings_of(sessions), |number| number as usize),
                inside_vrf: args.or("inside-vrf", 0)?,
                outside_vrf: args.or("outside-vrf", 0)?,
            };
            config::enable(engine, wanted)?;
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("nat44 plugin disable")
            .group(GROUP)
            .help("End all sessions, forget the configuration of NAT44, and give its memory back")
            .example("nat44 plugin disable")
            .run(|engine: &mut Engine, _| {
                config::disable(engine)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("nat44 forwarding enable|disable")
            .entry(order::FEATURES, "nat44.forwarding: <enable?disable>")
            .undo("nat44 forwarding disable")
            .replaces(&[])
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Let packets from outside pass untranslated, or drop them")
            .details("Meant are packets whose destination is no address of the pool.")
            .example("nat44 forwarding enable")
            .run(|engine: &mut Engine, args| {
                config::set_forwarding(engine, args.has("enable"))?;
                Ok(Output::none())
            }),
    );
}

fn addresses(registry: &mut Registry) {
    registry.command(
        Command::new(
            "nat44 add address <first:ip4> [- <last:ip4>] {[tenant-vrf <:u32>] [twice-nat] [del]}",
        )
        .entry(order::FEATURES, "nat44.addresses.<first>: {last, tenant-vrf, twice-nat}")
        .undo("nat44 add address <first> [- <last>] [twice-nat] del")
        .stands_on(PLUGIN)
        .stands_on("table <tenant-vrf>")
        .group(GROUP)
        .help("Add addresses to the pool that sessions are given, or remove them")
        .details(
            "The router answers ARP for them. Sessions of an address that is removed end. \
                 Hosts of a table that has addresses of its own get no others.",
        )
        .word("tenant-vrf", "the table whose hosts alone get these addresses")
        .word("twice-nat", "for remote hosts, where a static mapping says twice-nat")
        .example("nat44 add address 192.0.2.1")
        .example("nat44 add address 198.51.100.1 - 198.51.100.16 tenant-vrf 0")
        .run(|engine: &mut Engine, args| {
            let first: Ipv4Addr = args.get("first")?;
            let last = args.or("last", first)?;
            if args.has("twice-nat") {
                if args.has("tenant-vrf") {
                    return Err(Refusal::new("addresses of twice-nat are for no table alone"));
                }
                config::set_twice_addresses(engine, first, last, !args.has("del"))?;
                return Ok(Output::none());
            }
            match args.has("del") {
                true => config::remove_addresses(engine, first, last)?,
                false => {
                    let tenant = args.optional("tenant-vrf")?;
                    config::add_addresses(engine, first, last, tenant)?;
                }
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("nat44 add interface address <interface> [del]")
            .entry(order::FEATURES, "interfaces.<interface>.nat44-address: true")
            .undo("nat44 add interface address <interface> del")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Let the first address of an interface be in the pool, whichever it is")
            .details(
                "Packets to it that belong to no session stay the router's own: it answers \
                 pings, for one.",
            )
            .example("nat44 add interface address e0")
            .run(|engine: &mut Engine, args| {
                let interface = args.interface(engine, "interface")?;
                config::set_pool_interface(engine, interface, !args.has("del"))?;
                Ok(Output::none())
            }),
    );
}

fn interfaces(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set interface nat44 {[in <inside:interface>] [out <outside:interface>]} \
             [output-feature] [del]",
        )
        .entry(
            order::FEATURES,
            "nat44.interfaces[]: {in: <inside>, out: <outside>, output-feature}",
        )
        .undo("set interface nat44 [in <inside>] [out <outside>] [output-feature] del")
        .stands_on(PLUGIN)
        .group(GROUP)
        .help("Say which interfaces are inside and which are outside")
        .details(
            "Packets that an inside interface receives are translated when they are routed \
                 out of an outside interface. Fragments are held until the first of their packet \
                 has come (virtual reassembly). With output-feature every packet that another \
                 interface receives and that leaves by the outside one is translated, whether \
                 the other one is inside or not.",
        )
        .word("output-feature", "translate all that leaves by the outside interface")
        .example("set interface nat44 in e0 out e1")
        .example("set interface nat44 out e1 output-feature")
        .example("set interface nat44 out e1 del")
        .run(set_interfaces),
    );
}

fn set_interfaces(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let on = !args.has("del");
    let inside = args.optional_interface(engine, "inside")?;
    let outside = args.optional_interface(engine, "outside")?;
    if inside.is_none() && outside.is_none() {
        return Err(
            Refusal::new("no interface is named").remedy("set interface nat44 in e0 out e1")
        );
    }
    let output = args.has("output-feature");
    if output && outside.is_none() {
        return Err(Refusal::new("output-feature is for an outside interface")
            .remedy("set interface nat44 out e1 output-feature"));
    }
    if let Some(id) = inside {
        sides::change(engine, id, |sides| sides.inside = on)?;
    }
    let set = |sides: &mut Sides| (sides.outside, sides.output) = (on, on && output);
    if let Some(id) = outside
        && let Err(error) = sides::change(engine, id, set)
    {
        if let Some(id) = inside {
            sides::change(engine, id, |sides| sides.inside = !on)?;
        }
        return Err(error);
    }
    Ok(Output::none())
}

pub(crate) fn protocol_of(args: &Args<'_>) -> Option<IpProtocol> {
    let known = [("tcp", IpProtocol::TCP), ("udp", IpProtocol::UDP), ("icmp", IpProtocol::ICMP)];
    known.into_iter().find(|(word, _)| args.has(word)).map(|(_, protocol)| protocol)
}

fn timeouts(registry: &mut Registry) {
    const ALL: [(usize, &str, &str, &str, &str); 4] = [
        (
            0,
            "set nat timeout udp <seconds:1-604800>",
            "set nat timeout udp 300",
            "nat.timeouts.udp: <seconds>",
            "Set how long a UDP session lasts without a packet from inside (RFC 4787 REQ-5)",
        ),
        (
            1,
            "set nat timeout tcp-established <seconds:1-604800>",
            "set nat timeout tcp-established 7440",
            "nat.timeouts.tcp-established: <seconds>",
            "Set how long an established TCP session lasts without packets (RFC 5382 REQ-5)",
        ),
        (
            2,
            "set nat timeout tcp-transitory <seconds:1-604800>",
            "set nat timeout tcp-transitory 240",
            "nat.timeouts.tcp-transitory: <seconds>",
            "Set how long a TCP session lasts that is opening or over (RFC 5382 REQ-5)",
        ),
        (
            3,
            "set nat timeout icmp <seconds:1-604800>",
            "set nat timeout icmp 60",
            "nat.timeouts.icmp: <seconds>",
            "Set how long a session of ICMP queries lasts (RFC 5508 REQ-2)",
        ),
    ];
    for (at, syntax, undo, entry, help) in ALL {
        registry.command(
            Command::new(syntax)
                .entry(order::LIMITS, entry)
                .undo(undo)
                .replaces(&[])
                .group(GROUP)
                .help(help)
                .example(undo)
                .run(move |engine: &mut Engine, args| {
                    let seconds = args.get("seconds")?;
                    if let Some(nat) = engine.get::<Nat44>() {
                        nat.shared.set_timeout_s(TIMEOUTS[at].0, seconds);
                    }
                    Ok(Output::none())
                }),
        );
    }
    registry.command(
        Command::new("nat mss-clamping (<mss:536-65535> | disable)")
            .entry(order::LIMITS, "nat.mss-clamping: <mss>")
            .undo("nat mss-clamping disable")
            .replaces(&[])
            .group(GROUP)
            .help("Lower the segment size that SYNs of translated connections name")
            .example("nat mss-clamping 1452")
            .run(|engine: &mut Engine, args| {
                let mss = args.optional("mss")?;
                if let Some(nat) = engine.get::<Nat44>() {
                    nat.shared.set_mss(mss);
                }
                Ok(Output::none())
            }),
    );
}

fn sessions(registry: &mut Registry) {
    registry.command(
        Command::new("clear nat44 sessions")
            .group(GROUP)
            .help("End all NAT44 sessions")
            .example("clear nat44 sessions")
            .run(|engine: &mut Engine, _| {
                config::with_enabled(engine, |engine, _| config::end_sessions(engine, |_| true))?;
                crate::provider::end_bindings(engine, |_| true)?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new(
            "nat44 del session in|out <address:ip4> <port:0-65535> tcp|udp|icmp \
             [external-host <remote:ip4> <remote-port:0-65535>]",
        )
        .group(GROUP)
        .help("End the sessions of a host's port inside, or of an address's port outside")
        .details("Of ICMP, ports are identifiers.")
        .example("nat44 del session in 10.0.0.3 4000 tcp external-host 203.0.113.1 80")
        .run(delete_session),
    );
}

fn delete_session(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let end = |address: Ipv4Addr, port: u16| End { address: address.into(), port };
    let own = end(args.get("address")?, args.get("port")?);
    let remote = match args.optional::<Ipv4Addr>("remote")? {
        Some(address) => Some(end(address, args.get("remote-port")?)),
        None => None,
    };
    let (inside, protocol) = (args.has("in"), protocol_of(args));
    let ends = move |session: crate::session::Session<'_>| {
        let flow = match inside {
            true => session.flow(Direction::InToOut),
            false => session.flow(Direction::OutToIn).reversed(),
        };
        flow.source == own
            && Some(flow.protocol) == protocol
            && remote.is_none_or(|remote| flow.destination == remote)
    };
    config::with_enabled(engine, |engine, nat| {
        let before = nat.shared.sessions();
        config::end_sessions(engine, ends)?;
        if nat.shared.sessions() == before {
            return Err(
                Refusal::new("there is no such session").remedy("`show nat44 sessions` lists them")
            );
        }
        Ok(())
    })?;
    Ok(Output::none())
}

/// `show running-config`: what must be there before the rest.
pub(crate) fn write_plugin(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat44>() else { return };
    let Some(Enabled { sessions, bindings, inside_vrf, outside_vrf }) = nat.enabled else { return };
    let of_bindings = match bindings == bindings_of(sessions) {
        true => String::new(),
        false => format!(" bindings {bindings}"),
    };
    let vrf = |word: &str, id: u32| match id {
        0 => String::new(),
        id => format!(" {word} {id}"),
    };
    config.command(format_args!(
        "nat44 plugin enable sessions {sessions}{of_bindings}{}{}",
        vrf("inside-vrf", inside_vrf),
        vrf("outside-vrf", outside_vrf)
    ));
}

/// `show running-config`: the rest.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat44>() else { return };
    for (first, last, tenant) in nat.ranges() {
        let last = if first == last { String::new() } else { format!(" - {last}") };
        let tenant = tenant.map_or(String::new(), |id| format!(" tenant-vrf {id}"));
        config.command(format_args!("nat44 add address {first}{last}{tenant}"));
    }
    let name = |id: &quiver_core::InterfaceId| engine.interface_name(*id);
    let mut interfaces: Vec<_> = nat.pool_interfaces.iter().map(name).collect();
    interfaces.sort();
    for interface in interfaces {
        config.command(format_args!("nat44 add interface address {interface}"));
    }
    let mut sides: Vec<_> = nat.sides.iter().map(|(id, sides)| (name(id), *sides)).collect();
    sides.sort_by(|a, b| a.0.cmp(&b.0));
    for (interface, sides) in sides {
        if sides.inside {
            config.command(format_args!("set interface nat44 in {interface}"));
        }
        if sides.outside {
            let output = if sides.output { " output-feature" } else { "" };
            config.command(format_args!("set interface nat44 out {interface}{output}"));
        }
    }
    for address in &nat.twice_pool {
        config.command(format_args!("nat44 add address {address} twice-nat"));
    }
    crate::mapping_commands::write(engine, nat, config);
    crate::provider_commands::write(nat, config);
    crate::softwires::commands::write(nat, config);
    quiver_standby_sessions::write_config::<Nat44>(engine, config);
    if nat.forwarding {
        config.command(format_args!("nat44 forwarding enable"));
    }
}

/// The word of a protocol.
pub(crate) fn protocol_word(number: u8) -> String {
    match IpProtocol(number) {
        IpProtocol::TCP => "tcp".to_owned(),
        IpProtocol::UDP => "udp".to_owned(),
        IpProtocol::ICMP => "icmp".to_owned(),
        IpProtocol(0) => "any".to_owned(),
        IpProtocol(number) => number.to_string(),
    }
}

/// `show running-config`: what holds without NAT44 being enabled.
pub(crate) fn write_limits(engine: &Engine, config: &mut ConfigWriter) {
    let Some(nat) = engine.get::<Nat44>() else { return };
    for (class, word) in TIMEOUTS {
        let seconds = nat.shared.timeout_s(class);
        if seconds != TIMEOUTS_S[class as usize] {
            config.command(format_args!("set nat timeout {word} {seconds}"));
        }
    }
    if nat.shared.mss() != 0 {
        config.command(format_args!("nat mss-clamping {}", nat.shared.mss()));
    }
    crate::alg::commands::write(nat, config);
}
