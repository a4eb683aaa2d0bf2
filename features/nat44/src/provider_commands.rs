//! Commands of limits, port blocks, pooling, mapping behaviour, quarantine, excluded destinations
//! and routes between VRFs.

use quiver_control::{Args, Command, ConfigWriter, Output, Refusal, Registry, order};
use quiver_core::Engine;

use crate::commands::{GROUP, PLUGIN};
use crate::config::Nat44;
use crate::provider::{self, Settings};
use crate::tables::{Blocks, Filtering, Limits};

/// Blocks of a subscriber when no number is given.
const BLOCKS_DEFAULT: u16 = 4;
/// Seconds after its last use when a block is free again, when none are given.
const BLOCK_TIMEOUT_S: u32 = 120;

pub(crate) fn register(registry: &mut Registry) {
    limits(registry);
    blocks(registry);
    mapping(registry);
    exclusions(registry);
    vrfs(registry);
}

/// A command that changes settings.
fn setting(
    command: Command<Engine>,
    apply: fn(&Args<'_>, &mut Settings) -> Result<(), Refusal>,
) -> Command<Engine> {
    command.stands_on(PLUGIN).group(GROUP).run(move |engine: &mut Engine, args| {
        provider::change(engine, |settings| apply(args, settings))?;
        Ok(Output::none())
    })
}

fn limits(registry: &mut Registry) {
    registry.command(setting(
        Command::new("set nat44 session limit <limit:0-16777216> [vrf <:u32>]")
            .entry(order::FEATURES, "nat44.session-limits.<vrf>: <limit>")
            .undo("set nat44 session limit 0 [vrf <vrf>]")
            .usual(&[("vrf", "0")])
            .replaces(&["vrf"])
            .stands_on("table <vrf>")
            .help("Limit the sessions that hosts of a table may have together; 0 is no limit")
            .details(
                "One that would be more is refused, counted and answered by ICMP (RFC 6888 \
                 REQ-11). Sessions that were made before the limit do not count.",
            )
            .word("vrf", "the table of the hosts; 0")
            .example("set nat44 session limit 100000")
            .example("set nat44 session limit 5000 vrf 0"),
        |args, settings| {
            let (vrf, limit) = (args.or("vrf", 0)?, args.get("limit")?);
            match limit {
                0 => settings.session_limits.remove(&vrf),
                limit => settings.session_limits.insert(vrf, limit),
            };
            Ok(())
        },
    ));
    registry.command(setting(
        Command::new(
            "nat44 subscriber-limits (disable | {[sessions <:1-16777216>] \
             [ports <:1-16777216>] [rate <:1-1000000>]})",
        )
        .entry(order::FEATURES, "nat44.subscriber-limits: {sessions, ports, rate}")
        .undo("nat44 subscriber-limits disable")
        .replaces(&[])
        .help("Limit the sessions, the ports and the rate of new sessions of each host inside")
        .details(
            "A session that would be more is refused, counted and answered by ICMP (RFC 6888 \
             REQ-4, REQ-5 and REQ-11); those that live stay. Ports are mappings where mapping is \
             endpoint-independent, else sessions. What is not named has no limit.",
        )
        .word("sessions", "live sessions of a host")
        .word("ports", "external ports of a host")
        .word("rate", "new sessions a second; those of one second may come at once")
        .example("nat44 subscriber-limits sessions 2000 rate 200"),
        |args, settings| {
            settings.limits = Limits {
                sessions: args.or("sessions", 0)?,
                ports: args.or("ports", 0)?,
                rate: args.or("rate", 0)?,
            };
            Ok(())
        },
    ));
}

fn blocks(registry: &mut Registry) {
    registry.command(setting(
        Command::new(
            "nat44 port-blocks (disable | size <:16-64512> {[max-blocks <:1-64>] \
             [block-timeout <:0-86400>]})",
        )
        .entry(order::FEATURES, "nat44.port-blocks: {size, max-blocks, block-timeout}")
        .undo("nat44 port-blocks disable")
        .replaces(&[])
        .help("Give hosts inside their external ports by blocks of consecutive ones")
        .details(
            "A block belongs to one host, so that one record of it is enough to say who had a \
             port; `show nat44 blocks` answers from both sides. The size divides 64512. It is \
             changed while no session uses a port of a block.",
        )
        .word("size", "ports of a block")
        .word("max-blocks", "blocks of a host; 4")
        .word("block-timeout", "seconds after the last use when a block is free again; 120")
        .example("nat44 port-blocks size 256 max-blocks 8"),
        |args, settings| {
            settings.blocks = match args.optional("size")? {
                Some(size) => {
                    let max = args.or("max-blocks", BLOCKS_DEFAULT)?;
                    Some(provider::blocks(size, max, args.or("block-timeout", BLOCK_TIMEOUT_S)?)?)
                }
                None => None,
            };
            Ok(())
        },
    ));
    registry.command(setting(
        Command::new("nat44 address-pooling paired|arbitrary")
            .entry(order::FEATURES, "nat44.address-pooling: <paired|arbitrary>")
            .undo("nat44 address-pooling arbitrary")
            .replaces(&[])
            .help("Give a host inside one external address, or others too when that has no port")
            .details("RFC 4787 REQ-2 and RFC 6888 REQ-2 ask for `paired`.")
            .word("paired", "one address as long as the host has sessions")
            .word("arbitrary", "the same one first, then others")
            .example("nat44 address-pooling paired"),
        |args, settings| {
            settings.is_paired = args.has("paired");
            Ok(())
        },
    ));
    registry.command(setting(
        Command::new("nat44 port-reuse-timeout <seconds:0-3600>")
            .entry(order::FEATURES, "nat44.port-reuse-timeout: <seconds>")
            .undo("nat44 port-reuse-timeout 0")
            .replaces(&[])
            .help("Do not give a port to another host for so long after its last session")
            .details(
                "RFC 6888 REQ-8 names 120 seconds. The host itself may have it again at once, and \
                 so may others the port of a TCP connection that both ends have closed, where \
                 mapping is endpoint-dependent.",
            )
            .example("nat44 port-reuse-timeout 120"),
        |args, settings| {
            settings.reuse_s = args.get("seconds")?;
            Ok(())
        },
    ));
}

fn mapping(registry: &mut Registry) {
    registry.command(setting(
        Command::new(
            "nat44 mapping (endpoint-dependent | endpoint-independent \
             [filtering (any|address|address-and-port)])",
        )
        .entry(order::FEATURES, "nat44.mapping: <any|address|address-and-port>")
        .undo("nat44 mapping endpoint-dependent")
        .replaces(&[])
        .help("Map an end inside anew for each remote end, or always to the same external end")
        .details(
            "RFC 4787 §4.1 and §5: an endpoint-independent mapping is one external port for an \
             address and port inside, whatever the destination; filtering says which remote hosts \
             may send to it.",
        )
        .word("any", "every remote host (endpoint-independent filtering)")
        .word("address", "hosts that a packet was sent to (address-dependent filtering)")
        .word("address-and-port", "ends that a packet was sent to; the default")
        .example("nat44 mapping endpoint-independent filtering address"),
        |args, settings| {
            let filtering = match (args.has("any"), args.has("address")) {
                (true, _) => Filtering::EndpointIndependent,
                (_, true) => Filtering::AddressDependent,
                _ => Filtering::AddressAndPortDependent,
            };
            settings.independent = (!args.has("endpoint-dependent")).then_some(filtering);
            Ok(())
        },
    ));
}

fn exclusions(registry: &mut Registry) {
    registry.command(
        Command::new("nat44 exclude <destination:prefix4> [del]")
            .entry(order::FEATURES, "nat44.excluded.<destination>: true")
            .undo("nat44 exclude <destination> del")
            .stands_on(PLUGIN)
            .group(GROUP)
            .help("Leave packets to a destination untranslated (RFC 6888 REQ-6)")
            .details("Sessions that live go on. So do answers: nothing translates them.")
            .example("nat44 exclude 198.51.100.0/24")
            .run(|engine: &mut Engine, args| {
                let written: quiver_control::IpPrefix = args.get("destination")?;
                let std::net::IpAddr::V4(address) = written.address else {
                    return Err(Refusal::new("the destination is no IPv4 prefix"));
                };
                if written.has_host_bits() {
                    let what = format!("{written} has bits set behind its length");
                    let remedy = format!("{} would be right", written.network());
                    return Err(args.refuse("destination", what).remedy(remedy));
                }
                provider::set_excluded(engine, (address, written.length), !args.has("del"))?;
                Ok(Output::none())
            }),
    );
}

fn vrfs(registry: &mut Registry) {
    registry.command(
        Command::new("nat44 vrf table [add|del] <vrf:u32>")
            .entry(order::FEATURES, "nat44.vrf-tables.<vrf>: true with add")
            .undo("nat44 vrf table del <vrf>")
            .stands_on(PLUGIN)
            .stands_on("table <vrf>")
            .makes("nat44 vrf table <vrf>")
            .group(GROUP)
            .help("Let the destinations of a table's hosts be looked for in its routes alone")
            .details(
                "Without such a table they are looked for in outside-vrf; with one, in the tables \
                 of its routes, in order, then in the own one.",
            )
            .example("nat44 vrf table add 0")
            .run(|engine: &mut Engine, args| {
                provider::set_vrf_table(engine, args.get("vrf")?, !args.has("del"))?;
                Ok(Output::none())
            }),
    );
    registry.command(
        Command::new("nat44 vrf route [add|del] table <vrf:u32> <to:u32>")
            .entry(order::FEATURES, "nat44.vrf-routes.<vrf>.<to>: true with add")
            .undo("nat44 vrf route del table <vrf> <to>")
            .stands_on("nat44 vrf table <vrf>")
            .stands_on("table <to>")
            .group(GROUP)
            .help("Let destinations of a table's hosts be looked for in another table")
            .word("table", "the table of the hosts")
            .example("nat44 vrf route add table 0 0")
            .run(|engine: &mut Engine, args| {
                let (vrf, to) = (args.get("vrf")?, args.get("to")?);
                provider::set_vrf_route(engine, vrf, to, !args.has("del"))?;
                Ok(Output::none())
            }),
    );
}

/// `show running-config`: settings of a provider.
pub(crate) fn write(nat: &Nat44, config: &mut ConfigWriter) {
    let Settings { limits, blocks, independent, is_paired, reuse_s, session_limits } =
        &nat.settings;
    for (vrf, limit) in session_limits {
        config.command(format_args!("set nat44 session limit {limit} vrf {vrf}"));
    }
    if *limits != Limits::default() {
        let words = [("sessions", limits.sessions), ("ports", limits.ports), ("rate", limits.rate)];
        let words = words.iter().filter(|(_, number)| *number > 0);
        let words: String = words.map(|(word, number)| format!(" {word} {number}")).collect();
        config.command(format_args!("nat44 subscriber-limits{words}"));
    }
    if let Some(Blocks { size, max, timeout_s }) = blocks {
        config.command(format_args!(
            "nat44 port-blocks size {size} max-blocks {max} block-timeout {timeout_s}"
        ));
    }
    if *is_paired {
        config.command(format_args!("nat44 address-pooling paired"));
    }
    if *reuse_s > 0 {
        config.command(format_args!("nat44 port-reuse-timeout {reuse_s}"));
    }
    if let Some(filtering) = independent {
        let word = filtering_word(*filtering);
        config.command(format_args!("nat44 mapping endpoint-independent filtering {word}"));
    }
    for (address, length) in &nat.excluded {
        config.command(format_args!("nat44 exclude {address}/{length}"));
    }
    for (vrf, routes) in &nat.vrf_tables {
        config.command(format_args!("nat44 vrf table add {vrf}"));
        for to in routes {
            config.command(format_args!("nat44 vrf route add table {vrf} {to}"));
        }
    }
}

/// The word of a filtering behaviour.
pub(crate) fn filtering_word(filtering: Filtering) -> &'static str {
    match filtering {
        Filtering::EndpointIndependent => "any",
        Filtering::AddressDependent => "address",
        Filtering::AddressAndPortDependent => "address-and-port",
    }
}
