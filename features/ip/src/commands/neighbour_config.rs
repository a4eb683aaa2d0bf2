//! How many neighbours there may be, and how they age.

use quiver_control::{
    Args, Column, Command, ConfigWriter, Output, Refusal, Registry, Table, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::neighbour::NeighbourConfig;

use super::{GROUP, fib};
use crate::state::{IpState, with_ip};

pub(super) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set ip neighbor-config [ip4|ip6] \
             {[age <:0-1000000>] [limit <:1-1000000>] [recycle|norecycle] [reachable <:1-86400>] \
             [delay <:0-3600>] [retransmit <:seconds>] [probes <:1-10>]}",
        )
        .entry(
            order::INTERFACE_SETTINGS,
            "ip.neighbors.<ip4|ip6>: some{age, limit, recycle: <recycle?norecycle>, reachable, \
             delay, retransmit, probes}",
        )
        .undo(
            "set ip neighbor-config [ip4] [ip6] age 1200 limit 65536 norecycle \
             reachable 40 delay 5 retransmit 1 probes 3",
        )
        .amends(&["ip4", "ip6"])
        .group(GROUP)
        .help("Say how many neighbours there may be, and how they age")
        .details(
            "Without `ip4` or `ip6`, it is said of both families. What is not named stays as \
            it is.",
        )
        .word(
            "age",
            "seconds after which a neighbour that nobody sends to is forgotten, 0 for \
            never; 1200",
        )
        .word("limit", "how many dynamic neighbours of a family are kept at most; 65536")
        .word(
            "recycle",
            "forget the one that was heard longest ago when there is no room for a \
            new one",
        )
        .word("norecycle", "do not learn new ones when there is no room")
        .word(
            "reachable",
            "seconds, give or take half of them, that a neighbour which answered is believed; 40",
        )
        .word("delay", "seconds from the first packet to a stale neighbour until it is asked; 5")
        .word("retransmit", "time from one question to the next; 1")
        .word(
            "probes",
            "how often a neighbour is asked for, and asked itself, before it is given \
            up; 3",
        )
        .example("set ip neighbor-config limit 100000")
        .example("set ip neighbor-config ip4 age 300 limit 100000 recycle")
        .run(|engine: &mut Engine, args| {
            for family in families(args) {
                let is_six = family == Family::Ip6;
                let changed = changed(args, fib(engine)?.neighbours().config(is_six))?;
                with_ip(engine, |_, _, fib| fib.configure_neighbours(family, changed));
            }
            Ok(Output::none())
        }),
    );
    registry.command(
        Command::new("show ip neighbor-config")
            .group(GROUP)
            .help("Show how many neighbours there are, how many there may be, and how they age")
            .run(|engine: &mut Engine, _| listing(engine)),
    );
}

fn families(args: &Args<'_>) -> Vec<Family> {
    match (args.has("ip4"), args.has("ip6")) {
        (true, _) => vec![Family::Ip4],
        (_, true) => vec![Family::Ip6],
        _ => vec![Family::Ip4, Family::Ip6],
    }
}

fn changed(args: &Args<'_>, now: &NeighbourConfig) -> Result<NeighbourConfig, Refusal> {
    const RETRANSMIT_S: std::ops::RangeInclusive<f64> = 0.1..=60.0;
    let retransmit_s = args.or("retransmit", now.retransmit_ms as f64 / 1e3)?;
    if !RETRANSMIT_S.contains(&retransmit_s) {
        return Err(
            args.refuse("retransmit", format!("{retransmit_s} seconds is outside 0.1 to 60"))
        );
    }
    Ok(NeighbourConfig {
        limit: args.or("limit", now.limit)?,
        recycles: args.has("recycle") || now.recycles && !args.has("norecycle"),
        age_ms: args.or("age", now.age_ms / 1000)? * 1000,
        reachable_ms: args.or("reachable", now.reachable_ms / 1000)? * 1000,
        delay_ms: args.or("delay", now.delay_ms / 1000)? * 1000,
        retransmit_ms: (retransmit_s * 1e3) as u64,
        probes: args.or("probes", now.probes)?,
    })
}

fn listing(engine: &Engine) -> Result<Output, Refusal> {
    let mut table = Table::new([
        Column::left("Family"),
        Column::right("Static"),
        Column::right("Dynamic"),
        Column::right("Limit"),
        Column::left("When full"),
        Column::right("Recycled"),
        Column::right("Not learned"),
        Column::right("Incomplete"),
        Column::right("Age").key("age_s"),
        Column::right("Reachable").key("reachable_s"),
        Column::right("Delay").key("delay_s"),
        Column::right("Retransmit").key("retransmit_s"),
        Column::right("Probes"),
    ]);
    let (neighbours, Some(ip)) = (fib(engine)?.neighbours(), engine.get::<IpState>()) else {
        return Err(super::busy());
    };
    for six in [false, true] {
        let (config, dynamic) = (neighbours.config(six), neighbours.dynamic(six));
        let all = neighbours.iter().filter(|(_, address, _)| address.is_ipv6() == six).count();
        table
            .row()
            .cell(if six { "ip6" } else { "ip4" })
            .cell(all - dynamic)
            .cell(dynamic)
            .cell(config.limit)
            .cell(if config.recycles { "recycle" } else { "norecycle" })
            .cell(neighbours.recycled(six))
            .cell(ip.not_learned[usize::from(six)])
            .cell(ip.asked.iter().filter(|(_, address, _)| address.is_ipv6() == six).count())
            .cell(config.age_ms / 1000)
            .cell(config.reachable_ms / 1000)
            .cell(config.delay_ms / 1000)
            .cell(quiver_control::Cell::real(config.retransmit_ms as f64 / 1e3, 1))
            .cell(u64::from(config.probes));
    }
    let given_up = ip.asked.given_up();
    let line = format!("{given_up} times a neighbour that was asked for never answered");
    Ok(Output::none().table("neighbor_config", table).line(line))
}

/// The part of `show running-config`.
pub(super) fn write_config(fib: &Fib, config: &mut ConfigWriter) {
    let usual = NeighbourConfig::default();
    for (six, family) in [(false, "ip4"), (true, "ip6")] {
        let now = fib.neighbours().config(six);
        let mut words = String::new();
        let mut say = |differs: bool, said: String| {
            if differs {
                words += &said;
            }
        };
        say(now.age_ms != usual.age_ms, format!(" age {}", now.age_ms / 1000));
        say(now.limit != usual.limit, format!(" limit {}", now.limit));
        say(now.recycles, " recycle".to_owned());
        say(
            now.reachable_ms != usual.reachable_ms,
            format!(" reachable {}", now.reachable_ms / 1000),
        );
        say(now.delay_ms != usual.delay_ms, format!(" delay {}", now.delay_ms / 1000));
        let retransmit_s = now.retransmit_ms as f64 / 1e3;
        say(now.retransmit_ms != usual.retransmit_ms, format!(" retransmit {retransmit_s}"));
        say(now.probes != usual.probes, format!(" probes {}", now.probes));
        if !words.is_empty() {
            config.command(format_args!("set ip neighbor-config {family}{words}"));
        }
    }
}
