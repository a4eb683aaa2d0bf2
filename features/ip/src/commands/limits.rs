//! How much the forwarding tables take: `set fib limit`, `show fib limits`, and `ip`, `ip6` in the
//! start-up file.

use quiver_control::{
    Args, Column, Command, ConfigWriter, Output, Refusal, Registry, Section, StartupPart, Table,
    Value, order,
};
use quiver_core::Engine;
use quiver_forwarding::fib::{Family, Fib, FibLimits};

use super::{GROUP, fib};
use crate::state::with_ip;

/// Where a limit stands.
type Place = fn(&mut FibLimits) -> &mut usize;

/// What is limited: its word, and where it stands in the limits.
const LIMITED: [(&str, Place); 4] = [
    ("ip4-routes", |limits| &mut limits.ip4_routes),
    ("ip6-routes", |limits| &mut limits.ip6_routes),
    ("path-lists", |limits| &mut limits.path_lists),
    ("adjacencies", |limits| &mut limits.adjacencies),
];

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new(
            "set fib limit ip4-routes|ip6-routes|path-lists|adjacencies \
             <limit:1-100000000|default>",
        )
        .entry(order::LIMITS, "ip.limits.<ip4-routes|ip6-routes|path-lists|adjacencies>: <limit>")
        .undo("set fib limit [ip4-routes] [ip6-routes] [path-lists] [adjacencies] default")
        .replaces(&["ip4-routes", "ip6-routes", "path-lists", "adjacencies"])
        .is_limit()
        .group(GROUP)
        .help("Say how much the forwarding tables take at most")
        .details(
            "What is there when a limit is lowered stays; more is refused. Routes count over all \
             tables and sources, path lists are the different lists of paths that routes share.",
        )
        .example("set fib limit ip4-routes 2000000")
        .run(set),
    );
    registry.command(
        Command::new("show fib limits")
            .group(GROUP)
            .help("Show how much of what the forwarding tables take at most is in use")
            .run(|engine: &mut Engine, _| Ok(listing(fib(engine)?))),
    );
}

/// The most that can be asked for.
fn ceiling(word: &str) -> usize {
    let mut most = FibLimits::default();
    LIMITED
        .iter()
        .find(|(known, _)| *known == word)
        .map_or(usize::MAX, |(_, place)| *place(&mut most))
}

fn set(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let Some((word, place)) = LIMITED.iter().find(|(word, _)| args.has(word)) else {
        return Ok(Output::none());
    };
    let limit: usize = match args.get("limit")? {
        Value::Word(_) => ceiling(word),
        _ => args.get("limit")?,
    };
    if limit > ceiling(word) {
        let what = format!("there is room for {} {word} at most", ceiling(word));
        return Err(args.refuse("limit", what).remedy("give a lower limit"));
    }
    with_ip(engine, |_, _, fib| {
        let mut limits = fib.limits();
        *place(&mut limits) = limit;
        fib.set_limits(limits);
    });
    Ok(Output::none())
}

fn listing(fib: &Fib) -> Output {
    let mut table =
        Table::new([Column::left("What"), Column::right("Used"), Column::right("Limit")]);
    let mut limits = fib.limits();
    for (word, place) in LIMITED {
        let used = match word {
            "ip4-routes" => fib.route_count(Family::Ip4),
            "ip6-routes" => fib.route_count(Family::Ip6),
            "path-lists" => fib.path_lists(),
            _ => fib.adjacency_count(),
        };
        table.row().cell(word).cell(used).cell(*place(&mut limits));
    }
    Output::none().table("limits", table)
}

/// The part of `show running-config`: when all is there that a limit would stop.
pub(crate) fn write_config(engine: &Engine, config: &mut ConfigWriter) {
    let Some(fib) = engine.get::<Fib>() else { return };
    let mut limits = fib.limits();
    for (word, place) in LIMITED {
        let limit = *place(&mut limits);
        if limit != ceiling(word) {
            config.command(format_args!("set fib limit {word} {limit}"));
        }
    }
}

/// Why the size of a heap does nothing.
const NO_HEAP: &str = "tables grow as they need; routes-max bounds them";

/// The sections `ip` and `ip6` of the start-up file.
pub fn startup() -> Vec<StartupPart> {
    let ip = Section::new("ip")
        .help("The forwarding tables, IPv4 and what both families share")
        .entry("routes-max <:1-100000000>", "IPv4 routes, over all tables")
        .entry("path-lists-max <:1-100000000>", "different lists of paths, of both families")
        .entry("adjacencies-max <:1-100000000>", "adjacencies, of both families")
        .idle("heap-size <:size>", NO_HEAP);
    let ip6 = Section::new("ip6")
        .help("The IPv6 forwarding tables")
        .entry("routes-max <:1-100000000>", "IPv6 routes, over all tables")
        .idle("heap-size <:size>", NO_HEAP)
        .idle("hash-buckets <:u32>", "the IPv6 table is a trie; it grows as it needs");
    let lines = |args: &Args<'_>, words: &[(&'static str, &str)]| {
        let line = |(entry, word): &(&'static str, &str)| {
            let limit = args.optional::<usize>(entry)?;
            Ok(limit.map(|limit| format!("set fib limit {word} {limit}")))
        };
        words
            .iter()
            .filter_map(|words| line(words).transpose())
            .collect::<Result<Vec<_>, Refusal>>()
    };
    vec![
        StartupPart::new(ip, move |args| {
            let words = [
                ("routes-max", "ip4-routes"),
                ("path-lists-max", "path-lists"),
                ("adjacencies-max", "adjacencies"),
            ];
            lines(args, &words)
        }),
        StartupPart::new(ip6, move |args| lines(args, &[("routes-max", "ip6-routes")])),
    ]
}
