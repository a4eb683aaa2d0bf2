//! What sessions cost: two routers in one process with so many sessions between them, at an
//! interval in milliseconds and a multiplier of 3. Prints clocks by node of one router, without
//! devices, and which share of a core that is.
//!
//! `cargo run --release -p quiver-bfd --example session_rate -- 1000 10`

use std::time::Duration;

use quiver_core::cpu::clocks_per_second;
use quiver_testkit::{Router, Settings};

/// Time from one exchange of frames to the next.
const STEP: Duration = Duration::from_micros(500);
/// Measured time, milliseconds.
const MEASURED_MS: u64 = 3_000;
/// Devices of the test itself are not counted.
const DEVICES: [&str; 2] = ["test-input", "e0-tx"];

fn router(own: u8, other: u8, sessions: u32, interval_us: u64) -> Router {
    let features = [quiver_ethernet::register, quiver_ip::register, quiver_bfd::register];
    let mut router = Router::with(Settings { buffers: 16_384, ..Settings::default() }, &features);
    router.cli(&format!("create test interface e0 mac 02:00:00:00:00:0{own}"));
    router.cli("set interface state e0 up");
    for number in 0..sessions {
        let net = format!("10.{}.{}", number / 250, number % 250);
        router.cli(&format!("set interface ip address e0 {net}.{own}/24"));
        router.cli(&format!("ip neighbor e0 {net}.{other} 02:00:00:00:00:0{other} static"));
        router.cli(&format!(
            "bfd udp session add interface e0 local-addr {net}.{own} peer-addr {net}.{other} \
             desired-min-tx {interval_us} required-min-rx {interval_us} detect-mult 3"
        ));
    }
    router
}

fn run(a: &mut Router, b: &mut Router, for_ms: u64) {
    for _ in 0..for_ms * 2 {
        a.advance(STEP);
        b.advance(STEP);
        let (from_a, from_b) = (a.sent("e0"), b.sent("e0"));
        from_a.iter().for_each(|frame| b.inject("e0", frame));
        from_b.iter().for_each(|frame| a.inject("e0", frame));
    }
}

/// Clocks and packets by node.
fn clocks(router: &mut Router) -> Vec<(String, u64, u64)> {
    let engine = router.engine();
    let nodes: Vec<_> = engine.all_nodes().map(|(id, info)| (id, info.spec.name.clone())).collect();
    let counters: Vec<_> = engine.all_counters().collect();
    let sum = |id, of: fn(&quiver_core::graph::counters::NodeCounters) -> u64| {
        counters.iter().map(|worker| of(worker.node(id))).sum()
    };
    nodes
        .into_iter()
        .map(|(id, name)| (name, sum(id, |row| row.clocks.get()), sum(id, |row| row.vectors.get())))
        .collect()
}

fn main() {
    let number = |place: usize, default: u64| {
        std::env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (sessions, interval_ms) = (number(1, 1000), number(2, 10));
    let (mut a, mut b) = (
        router(1, 2, sessions as u32, interval_ms * 1000),
        router(2, 1, sessions as u32, interval_ms * 1000),
    );
    run(&mut a, &mut b, 5_000);
    let up = |router: &mut Router| {
        let rows = router.json("show bfd sessions");
        rows.as_array().into_iter().flatten().filter(|row| row["state"] == "Up").count()
    };
    println!("up: {} and {} of {sessions}", up(&mut a), up(&mut b));
    let before = clocks(&mut a);
    run(&mut a, &mut b, MEASURED_MS);
    let mut total = 0;
    for ((name, now, packets), (_, then, old)) in clocks(&mut a).into_iter().zip(before) {
        let (spent, packets) = (now - then, packets - old);
        if spent > 0 && !DEVICES.contains(&name.as_str()) {
            total += spent;
            println!("{name:>24} {spent:>12} clocks {packets:>9} packets");
        }
    }
    let share = total as f64 / (clocks_per_second() * MEASURED_MS as f64 / 1e3);
    println!("{:.2} % of a core; still up: {} and {}", share * 100.0, up(&mut a), up(&mut b));
    a.discard();
    b.discard();
}
