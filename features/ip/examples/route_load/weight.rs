//! What both Internet tables weigh together, and what stays of it when they are gone.

use quiver_testkit::Router;

use super::{IP4_ROUTES, IP6_ROUTES, lines, resident_bytes, run_until_idle, words};
use quiver_tables::synthetic;

fn rows(router: &mut Router) -> Vec<(String, f64)> {
    let memory = router.json("show memory");
    let rows = memory["memory"].as_array().into_iter().flatten();
    let row = |row: &serde_json::Value| {
        (row["name"].as_str().unwrap_or("").to_owned(), row["bytes"].as_f64().unwrap_or(0.0) / 1e6)
    };
    rows.map(row).filter(|(name, _)| name.starts_with("forwarding")).collect()
}

/// Load both tables, say what `show memory` says, delete them, and say it again.
pub fn print(router: &mut Router) {
    let before = resident_bytes();
    let hops = 64;
    let change = |router: &mut Router, verb: &str| {
        let ip4 = words(&synthetic::internet_ip4(IP4_ROUTES, 1), false);
        router.script("IPv4", &lines(verb, &ip4, hops, 2)).expect("the routes are right");
        drop(ip4);
        let ip6 = words(&synthetic::internet_ip6(IP6_ROUTES, 1), false);
        router.script("IPv6", &lines(verb, &ip6, hops, 2)).expect("the routes are right");
        drop(ip6);
        run_until_idle(router);
        let mut rows = rows(router);
        rows.push((
            "process, more than before".to_owned(),
            (resident_bytes() - before) as f64 / 1e6,
        ));
        rows
    };
    let loaded = change(router, "add");
    let empty = change(router, "del");
    println!("\n| {IP4_ROUTES} IPv4 and {IP6_ROUTES} IPv6 routes | MB with | MB after |");
    println!("| --- | --- | --- |");
    for ((name, with), (_, after)) in loaded.iter().zip(&empty) {
        println!("| {name} | {with:.1} | {after:.1} |");
    }
}
