//! What Prometheus reads of the mirror: how it keeps up with Linux and with routing daemons.

use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, Text, collect};

use crate::mirror::{Mirror, Origin, name_of};
use crate::reader::Counts;

type Field = fn(&Counts) -> &AtomicU64;

const FAMILIES: [(Family, Field); 9] = [
    (
        Family::gauge(
            "quiver_linux_mirror_lag_changes",
            "Changes read and not applied yet: how far the router is behind a daemon",
        ),
        |counts| &counts.unreported,
    ),
    (Family::counter("quiver_linux_mirror_changes_total", "Changes read"), |counts| {
        &counts.messages
    }),
    (
        Family::counter(
            "quiver_linux_mirror_coalesced_total",
            "Changes that went into others before they were applied",
        ),
        |counts| &counts.coalesced,
    ),
    (
        Family::counter("quiver_linux_mirror_overruns_total", "How often changes were lost"),
        |counts| &counts.overruns,
    ),
    (
        Family::counter("quiver_linux_mirror_dumps_total", "How often all was read again"),
        |counts| &counts.dumps,
    ),
    (Family::gauge("quiver_linux_mirror_routes", "Routes read"), |counts| &counts.routes),
    (
        Family::counter("quiver_linux_mirror_refused_total", "Requests that Linux refused"),
        |counts| &counts.refused,
    ),
    (
        Family::counter(
            "quiver_linux_mirror_written_total",
            "Routes and neighbours of the router that Linux was given",
        ),
        |counts| &counts.own_written,
    ),
    (
        Family::gauge(
            "quiver_linux_mirror_waiting",
            "Routes and neighbours of the router that Linux is still to be given",
        ),
        |counts| &counts.own_waiting,
    ),
];

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, write);
}

fn write(engine: &Engine, text: &mut Text) {
    let Some(mirror) = engine.get::<Mirror>() else { return };
    let feeds: Vec<_> = mirror
        .followed
        .iter()
        .flat_map(|(namespace, followed)| {
            followed.feeds().map(move |(origin, feed)| {
                let from = if origin == Origin::Kernel { "kernel" } else { "fpm" };
                let name = name_of(namespace);
                (Labels::new([("namespace", &name), ("from", &from)]), feed)
            })
        })
        .collect();
    for (family, field) in &FAMILIES {
        text.family(family);
        for (labels, feed) in &feeds {
            text.count(labels, field(feed.reader.counts()).load(Ordering::Relaxed));
        }
    }
    text.family(&Family::counter(
        "quiver_linux_mirror_routes_refused_total",
        "Routes of Linux that the router refused",
    ));
    for (labels, feed) in &feeds {
        text.count(labels, feed.routes.refused);
    }
    text.family(&Family::gauge(
        "quiver_linux_mirror_neighbours_left_out",
        "Learned neighbours beside bridges of VNIs that Linux does not get, for there are too many",
    ));
    text.count(&Labels::default(), mirror.own.neighbours.left_out() as u64);
    text.family(&Family::gauge("quiver_linux_mirror_pairs", "Interfaces that have a twin"));
    text.count(&Labels::default(), mirror.pairs.len() as u64);
}
