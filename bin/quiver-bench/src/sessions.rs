//! New sessions: the first packet of each, from inside, in vectors of nothing else.
//! No traffic has so many new ones; what stands between them costs what `paths` says.

use anyhow::Result;
use quiver_core::cpu::{Variant, clocks_per_second};

use crate::measure::{self, FirstPackets, Form};
use crate::{acl_paths, nat_paths, provider_paths};

/// Measure the paths whose names begin so, all of them when none is given.
pub fn run(names: &[String]) -> Result<()> {
    println!(
        "new sessions of one worker, {} a vector (time stamp counter at {:.0} MHz)",
        quiver_core::graph::frame::FRAME_PACKETS_MAX,
        clocks_per_second() / 1e6
    );
    println!(
        "{:22} {:>10} {:>8} {:>10}  a pass takes us",
        "path", "sessions", "clocks", "million/s"
    );
    let form = Form { variant: Variant::best(), block_driver: true };
    let wanted = |name: &str| names.is_empty() || names.iter().any(|n| name.starts_with(n));
    let paths = nat_paths::all().into_iter().chain(provider_paths::all()).chain(acl_paths::all());
    for path in paths.filter(|path| wanted(&path.name)) {
        if let Some(first) = measure::first_packets(&path, form)? {
            line(&path.name, &first);
        }
    }
    Ok(())
}

fn line(name: &str, first: &FirstPackets) {
    let us = |clocks: u64| clocks as f64 / clocks_per_second() * 1e6;
    let of = |thousandths: usize| us(first.passes[(first.passes.len() - 1) * thousandths / 1000]);
    println!(
        "{name:22} {:10} {:8.0} {:10.2}  median {:.0}, 99.9 % {:.0}, longest {:.0}",
        first.sessions,
        first.clocks,
        clocks_per_second() / first.clocks / 1e6,
        of(500),
        of(999),
        of(1000)
    );
}
