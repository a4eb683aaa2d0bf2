//! How many routes a second the control thread changes, and what they weigh: by a file of commands
//! and by `count`, in order and shuffled, host routes and Internet-like ones, one next hop and 64.
//!
//! `cargo run --release -p quiver-ip --example route_load [ROUNDS [ONLY]]` prints tables in
//! Markdown.

mod events;
mod weight;

use std::fmt::Write as _;
use std::time::Instant;

use quiver_forwarding::fib::Fib;
use quiver_tables::prefix::{Ip4Prefix, Ip6Prefix, Prefix};
use quiver_tables::synthetic::{self, Random};
use quiver_testkit::Router;

/// Routes of a table.
const IP4_ROUTES: usize = 1_000_000;
const IP6_ROUTES: usize = 200_000;
/// By one command.
const COUNTED: u64 = 16_000_000;

/// What is measured of one table: commands to execute one after the other, each timed.
struct Case {
    name: &'static str,
    routes: usize,
    /// What it is called, and the script.
    operations: Vec<(&'static str, String)>,
    /// One result for each operation and round, in seconds.
    seconds: Vec<Vec<f64>>,
    /// Resident bytes with the routes, and after they are gone, beyond those before.
    weight_bytes: Vec<(i64, i64)>,
}

fn lines(verb: &str, prefixes: &[String], hops: usize, first_hop: usize) -> String {
    let mut text = String::with_capacity(prefixes.len() * 48);
    for (number, prefix) in prefixes.iter().enumerate() {
        let six = prefix.contains(':');
        let hop = first_hop + number % hops;
        let _ = match six {
            true => writeln!(text, "ip route {verb} {prefix} via 2001:db8:1::{hop:x}"),
            false => writeln!(text, "ip route {verb} {prefix} via 10.0.0.{hop}"),
        };
    }
    text
}

fn words<A: quiver_tables::prefix::Address>(prefixes: &[Prefix<A>], shuffled: bool) -> Vec<String> {
    let mut prefixes = prefixes.to_vec();
    if shuffled {
        Random::new(9).shuffle(&mut prefixes);
    }
    prefixes.iter().map(ToString::to_string).collect()
}

fn from_file(name: &'static str, prefixes: Vec<String>, hops: usize) -> Case {
    let operations = vec![
        ("add", lines("add", &prefixes, hops, 2)),
        ("second path", lines("add", &prefixes, hops, 100)),
        ("first path away", lines("del", &prefixes, hops, 2)),
        ("delete", prefixes.iter().map(|prefix| format!("ip route del {prefix}\n")).collect()),
    ];
    Case::new(name, prefixes.len(), operations)
}

fn counted(name: &'static str, first: &str, count: u64, hop: &str) -> Case {
    let operations = vec![
        ("add", format!("ip route add {first} count {count} via {hop}2\n")),
        ("second path", format!("ip route add {first} count {count} via {hop}3\n")),
        ("first path away", format!("ip route del {first} count {count} via {hop}2\n")),
        ("delete", format!("ip route del {first} count {count}\n")),
    ];
    Case::new(name, count as usize, operations)
}

impl Case {
    fn new(name: &'static str, routes: usize, operations: Vec<(&'static str, String)>) -> Case {
        let seconds = vec![Vec::new(); operations.len()];
        Case { name, routes, operations, seconds, weight_bytes: Vec::new() }
    }

    fn round(&mut self, router: &mut Router) {
        let before = resident_bytes();
        let mut loaded = before;
        for (at, (_, script)) in self.operations.iter().enumerate() {
            let start = Instant::now();
            router
                .script("routes", script)
                .unwrap_or_else(|refusal| panic!("{}: {refusal}", self.name));
            self.seconds[at].push(start.elapsed().as_secs_f64());
            run_until_idle(router);
            if at == 0 {
                loaded = resident_bytes();
            }
        }
        self.weight_bytes.push((loaded - before, resident_bytes() - before));
    }
}

/// Let workers pass and memory go back.
fn run_until_idle(router: &mut Router) {
    for _ in 0..4 {
        router.step();
        if let Some(fib) = router.engine().get_mut::<Fib>() {
            fib.collect();
        }
    }
}

/// Memory of the process, in small pages and huge ones.
fn resident_bytes() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |line: &str| {
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<i64>().ok()).unwrap_or(0)
    };
    let memory = status
        .lines()
        .filter(|line| line.starts_with("VmRSS:") || line.starts_with("HugetlbPages:"));
    memory.map(of).sum::<i64>() * 1024
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn cases() -> Vec<Case> {
    let hosts: Vec<Ip4Prefix> =
        (0..IP4_ROUTES as u32).map(|n| Prefix::host((20 << 24) + n)).collect();
    let internet4: Vec<Ip4Prefix> = synthetic::internet_ip4(IP4_ROUTES, 1);
    let internet6: Vec<Ip6Prefix> = synthetic::internet_ip6(IP6_ROUTES, 1);
    vec![
        from_file("file: IPv4 /32, in order, 1 next hop", words(&hosts, false), 1),
        from_file("file: IPv4 /32, in order, 64 next hops", words(&hosts, false), 64),
        from_file("file: IPv4 /32, shuffled, 64 next hops", words(&hosts, true), 64),
        from_file("file: IPv4 Internet, in order, 1 next hop", words(&internet4, false), 1),
        from_file("file: IPv4 Internet, in order, 64 next hops", words(&internet4, false), 64),
        from_file("file: IPv4 Internet, shuffled, 64 next hops", words(&internet4, true), 64),
        from_file("file: IPv6 Internet, in order, 64 next hops", words(&internet6, false), 64),
        from_file("file: IPv6 Internet, shuffled, 64 next hops", words(&internet6, true), 64),
        counted("count: IPv4 /32, 1 next hop", "20.0.0.0/32", IP4_ROUTES as u64, "10.0.0."),
        counted("count: IPv4 /24, 1 next hop", "20.0.0.0/24", IP4_ROUTES as u64, "10.0.0."),
        counted(
            "count: IPv6 /64, 1 next hop",
            "2001:db8:8000::/64",
            IP6_ROUTES as u64,
            "2001:db8:1::",
        ),
        counted("count: IPv4 /32, 16 million", "20.0.0.0/32", COUNTED, "10.0.0."),
    ]
}

fn main() {
    let argument = |n| std::env::args().nth(n);
    let rounds: usize = argument(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let only = argument(2).unwrap_or_default();
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    router.interface("e0");
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("set interface ip address e0 2001:db8:1::1/64");
    let mut cases: Vec<Case> =
        cases().into_iter().filter(|case| case.name.contains(&only)).collect();
    for _ in 0..rounds {
        cases.iter_mut().for_each(|case| case.round(&mut router));
    }
    println!(
        "| table | routes | add | second path | first path away | delete | MB with | MB after |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for case in &cases {
        let rates = case.seconds.iter().map(|seconds| case.routes as f64 / median(seconds) / 1e6);
        let rates: Vec<String> = rates.map(|rate| format!("{rate:.2}")).collect();
        let mb = |bytes: fn(&(i64, i64)) -> i64| {
            median(
                &case
                    .weight_bytes
                    .iter()
                    .map(|weight| bytes(weight) as f64 / 1e6)
                    .collect::<Vec<_>>(),
            )
        };
        let (with, after) = (mb(|weight| weight.0), mb(|weight| weight.1));
        println!(
            "| {} | {} | {} | {with:.0} | {after:.0} |",
            case.name,
            case.routes,
            rates.join(" | ")
        );
    }
    println!(
        "\nMillions of routes a second, median of {rounds} rounds; megabytes are resident ones \
         beyond those before."
    );
    if only.is_empty() || only == "events" {
        events::print(&mut router, rounds);
    }
    if only.is_empty() || only == "weight" {
        weight::print(&mut router);
    }
}
