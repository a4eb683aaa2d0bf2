//! Transactions over the real thing: two memif ends of one generator, a worker on a core, time that
//! passes by itself.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use quiver_core::clock::Clock;
use quiver_tg_measuring::drivers::{Drivers, engine_config};
use quiver_tg_measuring::faults::FaultsReport;
use quiver_tg_measuring::request::{Measure, Rate};
use quiver_tg_stateful::generator::StatefulGenerator;
use quiver_tg_stateful::report::{SideReport, StatefulReport};
use quiver_tg_traffic::profile::Profile;

fn measure(name: &str, gateways: [&str; 2], stateful: &str, rate: Rate) -> Vec<StatefulReport> {
    let socket = std::env::temp_dir().join(format!("quiver-tg-{name}-{}.sock", std::process::id()));
    let port = |role, gateway| {
        format!("  - {{memif: {{socket: \"{}\", role: {role}}}, {gateway}}}\n", socket.display())
    };
    let ports = port("master", gateways[0]) + &port("slave", gateways[1]);
    let text = format!("ports:\n{ports}stateful: {stateful}\n");
    let profile = Profile::parse(&text, Path::new("test.yaml")).expect("profile");
    let drivers = Drivers::new(Rc::new(Cell::new(false)));
    let mut generator =
        StatefulGenerator::new(&profile, engine_config(&profile), Clock::tsc(), drivers)
            .expect("generator");
    generator.start().expect("worker");
    generator.wait_for_links().expect("links");
    // Twice: the second one finds nothing of the first.
    let measured = (0..2).map(|_| generator.measure(&Measure::new(rate, 5.0)).expect("report"));
    let reports: Vec<_> = measured.collect();
    drop(generator);
    let _ = std::fs::remove_file(&socket);
    reports
}

/// Every transaction took place, and both sides counted it.
fn check_all(report: &StatefulReport, transactions: u64) {
    for side in [&report.clients, &report.servers] {
        let counts = &side.as_ref().expect("side").transactions;
        assert_eq!(
            (counts.attempted, counts.successful),
            (transactions, transactions),
            "{report:?}"
        );
        assert_eq!((counts.failed, counts.open), (0, 0));
        assert_eq!(counts.attempted, counts.successful + counts.failed + counts.open);
    }
    assert_eq!((report.intended, report.not_attempted), (Some(transactions), 0));
    assert_eq!(report.transaction_ns.as_ref().expect("times").count, transactions);
}

const HOSTS: &str = "clients: {on: 0, first: 10.0.0.0, count: 16}, \
                     servers: {on: 1, first: 20.0.0.0, count: 16, port: same}, limit: 500, \
                     timeout_s: 60";
const MACS: [&str; 2] =
    ["gateway_mac: \"02:00:00:00:00:01\"", "gateway_mac: \"02:00:00:00:00:00\""];
const BY_QUESTION: [&str; 2] =
    ["ip4: [198.18.0.2], gateway: 198.18.0.1", "ip4: [198.18.0.1], gateway: 198.18.0.2"];

#[test]
fn tcp_connections_begin_and_end() {
    let keys = format!("{{kind: tcp, {HOSTS}, order: random, seed: 7, ramp_up_s: 0.1}}");
    for report in measure("cps", BY_QUESTION, &keys, Rate::Pps(2_000.0)) {
        check_all(&report, 500);
        // Seven packets each, and more only where a timer ran out.
        let packets = |side: &Option<_>| {
            let side: &SideReport = side.as_ref().expect("side");
            side.packets["tx_packets"].as_u64().expect("count")
        };
        assert!(packets(&report.clients) >= 2_000 && packets(&report.servers) >= 1_500);
    }
}

#[test]
fn tcp_bytes_go_both_ways_and_servers_are_asked_for_one_by_one() {
    let keys = format!(
        "{{kind: tcp, request_bytes: 11111, response_bytes: 11111, {HOSTS}, rate_cps: 1000}}"
    );
    for report in measure("bytes", ["ip6: []", "ip6: []"], &keys, Rate::Max) {
        check_all(&report, 500);
    }
}

#[test]
fn udp_packets_are_answered_over_ip6_as_fast_as_they_go() {
    let keys = "{kind: udp, requests: 33, responses: 33, limit: 300, timeout_s: 60, concurrent: 4, \
                clients: {on: 0, first: \"2001:db8:1::\", count: 8}, \
                servers: {on: 1, first: \"2001:db8:2::\", count: 8}}";
    for report in measure("udp6", MACS, keys, Rate::Max) {
        check_all(&report, 300);
        let clients = report.clients.expect("clients").transactions;
        assert!(clients.open_max <= 4, "{}", clients.open_max);
    }
}

#[test]
fn tags_of_ports_are_around_everything() {
    for vlan in ["7", "[{dot1ad: 10}, 20]"] {
        let ports = BY_QUESTION.map(|port| format!("{port}, vlan: {vlan}"));
        let keys = format!(
            "{{kind: tcp, request_bytes: 5000, response_bytes: 5000, {HOSTS}, rate_cps: 1000}}"
        );
        let name = format!("tags{}", vlan.len());
        for report in measure(&name, [&ports[0], &ports[1]], &keys, Rate::Max) {
            check_all(&report, 500);
            assert_eq!(report.unready_hosts, 0);
            let foreign =
                |side: &Option<SideReport>| side.as_ref().expect("side").packets["foreign"].clone();
            assert_eq!((foreign(&report.clients), foreign(&report.servers)), (0.into(), 0.into()));
        }
    }
}

/// Faults of every kind at both ports.
const FAULTS: &str =
    "faults: {loss: 0.02, duplicate: 0.02, reorder: 0.02, corrupt: 0.02, delay: 0.02, seed: 5}";

/// Packets that were sent are those that came, and those that something was done to.
fn check_balance(report: &StatefulReport) {
    assert_eq!(report.per_direction.len(), 2);
    let done =
        |f: fn(&FaultsReport) -> u64| report.faults.iter().map(|port| f(&port.faults)).sum::<u64>();
    let lost: i64 = report.per_direction.iter().map(|way| way.lost).sum();
    for way in &report.per_direction {
        assert_eq!(way.offered as i64, way.received as i64 + way.lost, "{way:?}");
    }
    let (gone, doubled) =
        (done(|f| f.lost) + done(|f| f.overflowed) + report.tx_ring_full, done(|f| f.duplicated));
    assert_eq!(lost, gone as i64 - doubled as i64, "{report:?}");
    let each = [
        done(|f| f.lost),
        doubled,
        done(|f| f.reordered),
        done(|f| f.corrupted),
        done(|f| f.delayed),
    ];
    assert!(each.iter().all(|count| *count > 0), "{each:?}");
}

#[test]
fn tcp_recovers_from_faults_of_every_kind_and_packets_balance() {
    let ports = BY_QUESTION.map(|port| format!("{port}, {FAULTS}"));
    let keys = format!(
        "{{kind: tcp, request_bytes: 11111, response_bytes: 11111, {HOSTS}, rate_cps: 1000}}"
    );
    for report in measure("faults", [&ports[0], &ports[1]], &keys, Rate::Max) {
        let clients = report.clients.as_ref().expect("clients");
        let counts = &clients.transactions;
        assert_eq!(
            (counts.attempted, counts.successful, counts.failed),
            (500, 500, 0),
            "{report:?}"
        );
        let seen = |name: &str| clients.packets[name].as_u64().expect("a count");
        assert!(
            seen("retransmitted") > 0 && seen("bad_checksum") > 0 && seen("repeated") > 0,
            "{report:?}"
        );
        check_balance(&report);
    }
}

#[test]
fn udp_transactions_that_lose_a_packet_fail_and_all_are_counted() {
    let ports = BY_QUESTION.map(|port| format!("{port}, {FAULTS}"));
    let hosts = HOSTS.replace("timeout_s: 60", "timeout_s: 2");
    let keys = format!("{{kind: udp, requests: 33, responses: 33, {hosts}, rate_cps: 1000}}");
    for report in measure("faults-udp", [&ports[0], &ports[1]], &keys, Rate::Max) {
        let counts = &report.clients.as_ref().expect("clients").transactions;
        assert_eq!((counts.attempted, counts.open), (500, 0));
        assert_eq!(counts.attempted, counts.successful + counts.failed);
        // 66 packets of which one in 25 is lost or damaged: hardly one in ten comes through.
        assert!(counts.failed > counts.successful, "{report:?}");
        assert!(counts.connected >= counts.successful);
        check_balance(&report);
    }
}

#[test]
fn a_gateway_that_does_not_answer_is_named() {
    let socket = std::env::temp_dir().join(format!("quiver-tg-silent-{}.sock", std::process::id()));
    let port = |role| {
        format!(
            "{{memif: {{socket: \"{}\", role: {role}}}, gateway: 198.18.0.9}}",
            socket.display()
        )
    };
    let text = format!(
        "ports: [{}, {}]\nstateful: {{kind: tcp, clients: {{on: 0, first: 10.0.0.0}}, servers: \
         {{first: 20.0.0.0}}}}",
        port("master"),
        port("slave")
    );
    let profile = Profile::parse(&text, Path::new("test.yaml")).expect("profile");
    let drivers = Drivers::new(Rc::new(Cell::new(false)));
    let mut generator =
        StatefulGenerator::new(&profile, engine_config(&profile), Clock::tsc(), drivers)
            .expect("generator");
    generator.start().expect("worker");
    generator.wait_for_links().expect("links");
    let error = generator.measure(&Measure::new(Rate::Pps(10.0), 1.0)).expect_err("no gateway");
    assert!(format!("{error:#}").contains("198.18.0.9"), "{error:#}");
    drop(generator);
    let _ = std::fs::remove_file(&socket);
}
