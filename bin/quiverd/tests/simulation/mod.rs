//! A deterministic simulation of the whole router: a seed makes a schedule in which commands,
//! frames, time, links, faults of devices, hostile memif peers, buffers that run out and memory
//! that the kernel refuses come in any order. Whatever the order: nothing panics, every packet
//! comes to rest, every buffer comes back, and the running configuration loads again.
//!
//! `QUIVER_SIMULATION_SEED=7 cargo test -p quiverd simulation` replays one schedule and prints its
//! steps; `QUIVER_SIMULATION_COUNT=5000` tries more.

mod peer;
mod schedule;

use std::panic::{AssertUnwindSafe, catch_unwind};

use quiver_testkit::configuration::folder;

/// Schedules that are tried when nobody says how many.
const SCHEDULES: u64 = 200;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

#[test]
fn whatever_happens_in_whatever_order_packets_buffers_and_configuration_are_accounted_for() {
    let folder = folder("simulation");
    let one = number("QUIVER_SIMULATION_SEED");
    let seeds = one.map_or(1..number("QUIVER_SIMULATION_COUNT").unwrap_or(SCHEDULES) + 1, |seed| {
        seed..seed + 1
    });
    let mut failed = Vec::new();
    for seed in seeds {
        let mut steps = Vec::new();
        let held = catch_unwind(AssertUnwindSafe(|| schedule::run(seed, folder, &mut steps)));
        if held.is_err() || one.is_some() {
            println!("seed {seed}, its steps:\n  {}", steps.join("\n  "));
        }
        if held.is_err() {
            println!("QUIVER_SIMULATION_SEED={seed} replays this one");
            failed.push(seed);
        }
    }
    let _ = std::fs::remove_dir_all(folder);
    assert!(
        failed.is_empty(),
        "something does not hold after the schedules of the seeds {failed:?}"
    );
}
