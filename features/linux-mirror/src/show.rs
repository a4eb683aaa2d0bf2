//! `show lcp`, `show lcp sync`.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_control::{Args, Column, Command, Output, Refusal, Registry, Table};
use quiver_core::Engine;
use quiver_core::graph::node::Reason;

use crate::classes::Class;
use crate::commands::GROUP;
use crate::mirror::{Mirror, Namespace, Origin, name_of};
use crate::own_neighbours::{LEARNED_MAX, LEARNED_PER_STATION_MAX};
use crate::to_host::{self, ToHostEvent};

pub(crate) fn register(registry: &mut Registry) {
    registry.command(
        Command::new("show lcp [phy <interface>]")
            .group(GROUP)
            .help("Show interfaces and their twins in Linux")
            .example("show lcp")
            .run(|engine: &mut Engine, args| pairs(engine, args)),
    );
    registry.command(
        Command::new("show lcp sync")
            .group(GROUP)
            .help("Show how the router keeps up with what changes in Linux")
            .run(|engine: &mut Engine, _| Ok(sync(engine))),
    );
    registry.command(
        Command::new("show lcp punt")
            .group(GROUP)
            .help("Show what Linux got, by class, and how much it may get")
            .details("A rate of 0 is no limit. Rates are packets a second and worker.")
            .run(|engine: &mut Engine, _| Ok(punted(engine))),
    );
}

/// `show lcp punt`: what went to Linux, by class.
fn punted(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Class"),
        Column::right("Rate").key("rate_pps"),
        Column::right("Burst"),
        Column::right("Passed"),
        Column::right("Policed"),
    ]);
    let (Some(mirror), Some(node)) = (engine.get::<Mirror>(), engine.node_id(to_host::NAME)) else {
        return Output::none();
    };
    for class in Class::ALL {
        let limit = mirror.limits.get(class);
        let count = |event: ToHostEvent| engine.reason_count(node, event.number());
        let [passed, policed] =
            [ToHostEvent::Passed(class), ToHostEvent::Policed(class)].map(count);
        let row = table.row().cell(class.word()).cell(limit.packets);
        row.cell(limit.burst).cell(passed).cell(policed);
    }
    Output::none().table("classes", table)
}

fn pairs(engine: &mut Engine, args: &Args<'_>) -> Result<Output, Refusal> {
    let only = match args.has("phy") {
        true => Some(args.interface(engine, "interface")?),
        false => None,
    };
    let mut table = Table::new([
        Column::left("Interface"),
        Column::left("Twin"),
        Column::left("Type"),
        Column::left("Linux name"),
        Column::left("Namespace"),
        Column::right("Linux index").key("linux_index"),
        Column::left("Linux state"),
        Column::right("Linux MTU").key("linux_mtu_bytes"),
        Column::right("Addresses"),
    ])
    .when_empty("no interface has a twin");
    let Some(mirror) = engine.get::<Mirror>() else { return Ok(Output::none()) };
    let mut refused = Vec::new();
    for (id, pair) in mirror.pairs.iter().filter(|(id, _)| only.is_none_or(|only| only == **id)) {
        let name = engine.interface_name(*id);
        let state = match pair.linux {
            None if pair.link.is_none() => "gone",
            None => "unknown",
            Some((true, _)) => "up",
            Some((false, _)) => "down",
        };
        for ((address, length), why) in &pair.refused {
            refused.push(format!("{name}: {address}/{length} of Linux is not used: {why}"));
        }
        table
            .row()
            .cell(&name)
            .cell(engine.interface_name(pair.twin))
            .cell(pair.crossing.word())
            .cell(&pair.host_name)
            .cell(name_of(&pair.namespace))
            .cell(pair.link.unwrap_or(0))
            .cell(state)
            .cell(pair.linux.map_or(0, |(_, mtu_bytes)| mtu_bytes))
            .cell(pair.addresses.len());
    }
    let shown = Output::none().table("pairs", table);
    Ok(refused.into_iter().fold(shown, Output::line))
}

fn sync(engine: &Engine) -> Output {
    let mut table = Table::new([
        Column::left("Namespace"),
        Column::left("From"),
        Column::right("Changes read").key("changes_read"),
        Column::right("Coalesced"),
        Column::right("Lag"),
        Column::right("Overruns"),
        Column::right("Dumps"),
        Column::right("Routes"),
        Column::right("Given"),
        Column::right("Removed"),
        Column::right("Elsewhere"),
        Column::right("Refused"),
        Column::right("Objects"),
        Column::right("Buffer").key("buffer_bytes"),
        Column::right("To Linux").key("to_linux"),
        Column::right("Written"),
        Column::right("Linux refused").key("linux_refused"),
        Column::right("Waiting"),
    ])
    .when_empty("no namespace is followed");
    let Some(mirror) = engine.get::<Mirror>() else { return Output::none() };
    let mut errors = Vec::new();
    let feeds = mirror.followed.iter().flat_map(|(namespace, followed)| {
        followed.feeds().map(move |(origin, feed)| (namespace, origin, feed))
    });
    for (namespace, origin, feed) in feeds {
        let (counts, routes) = (feed.reader.counts(), &feed.routes);
        let of = |place: &AtomicU64| place.load(Ordering::Relaxed);
        let refusal = feed.reader.last_refusal();
        errors.extend(refusal.map(|why| format!("the last that Linux refused: {why}")));
        if let Some(error) = &routes.last_refusal {
            errors.push(format!("the last route that was refused: {error}"));
        }
        if routes.encapsulated > 0 {
            errors.push(format!(
                "{} times a route was left out because what it puts around packets is not \
                 understood",
                routes.encapsulated
            ));
        }
        table
            .row()
            .cell(name_of(namespace))
            .cell(if origin == Origin::Kernel { "kernel" } else { "fpm" })
            .cell(of(&counts.messages))
            .cell(of(&counts.coalesced))
            .cell(of(&counts.unreported))
            .cell(of(&counts.overruns))
            .cell(of(&counts.dumps))
            .cell(of(&counts.routes))
            .cell(routes.given)
            .cell(routes.removed)
            .cell(routes.elsewhere)
            .cell(routes.refused)
            .cell(feed.objects.len())
            .cell(of(&counts.buffer_bytes))
            .cell(given_to_linux(mirror, namespace, origin))
            .cell(of(&counts.own_written))
            .cell(of(&counts.refused))
            .cell(of(&counts.own_waiting));
    }
    let left_out = mirror.own.left_out();
    if left_out > 0 {
        errors.push(format!(
            "{left_out} configured routes are not in Linux: none of their hops has a twin that is \
             up, or Linux has no such table or path"
        ));
    }
    let neighbours = mirror.own.neighbours.left_out();
    if neighbours > 0 {
        errors.push(format!(
            "{neighbours} learned neighbours beside bridges of VNIs are not in Linux: it gets \
             {LEARNED_MAX} beside each, {LEARNED_PER_STATION_MAX} of one station"
        ));
    }
    let shown = Output::none().table("namespaces", table);
    errors.into_iter().fold(shown, Output::line)
}

/// How many routes and neighbours of the router's own Linux was given.
fn given_to_linux(mirror: &Mirror, namespace: &Namespace, origin: Origin) -> usize {
    if origin != Origin::Kernel {
        return 0;
    }
    let pairs = mirror.pairs.values().filter(|pair| pair.namespace == *namespace);
    let neighbours: usize = pairs.map(|pair| pair.written_neighbours.len()).sum();
    mirror.own.written(namespace) + neighbours
}
