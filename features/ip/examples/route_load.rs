//! How long a full table takes from a file of commands to the last route: `ip route add …`, a line
//! each, with the prefixes of a generated Internet table.

use std::fmt::Write as _;
use std::time::Instant;

use quiver_tables::synthetic;
use quiver_testkit::Router;

fn main() {
    let count = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    router.interface("e0");
    router.cli("set interface ip address e0 10.0.0.1/24");
    let mut text = String::new();
    for (number, prefix) in synthetic::internet_ip4(count, 1).into_iter().enumerate() {
        let _ = writeln!(text, "ip route add {prefix} via 10.0.0.{}", 2 + number % 64);
    }
    for round in 0..3 {
        let start = Instant::now();
        router.script("routes", &text).expect("good routes");
        let took = start.elapsed();
        println!(
            "round {round}: {count} routes in {:.2} s, {:.2} us each",
            took.as_secs_f64(),
            took.as_secs_f64() * 1e6 / count as f64
        );
        let start = Instant::now();
        router.script("routes", &text.replace("ip route add", "ip route del")).expect("the same routes");
        println!("         taken back in {:.2} s", start.elapsed().as_secs_f64());
    }
}
