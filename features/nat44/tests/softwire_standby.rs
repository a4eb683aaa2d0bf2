//! Two AFTRs that stand by for each other: hosts behind B4s go on at the other one.

use std::net::Ipv6Addr;
use std::time::Duration;

use quiver_testkit::{Register, Router, Settings};
use serde_json::Value;

use crate::sessions::{REMOTE, UDP, sessions, udp, whole};
use crate::softwires::{
    B4, FEATURES, HOST, POOL, address, back, hairpin, out, packet4, router_of, rows,
};
use crate::standby::{ha, link, number, ports, turn, until, until_sessions};

const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0x100, 0, 0, 0, 1);
const LINES: &str = "nat44 port-blocks size 64 max-blocks 2 block-timeout 5
    nat44 mapping endpoint-independent filtering any
    nat44 subscriber-limits sessions 3";

fn pair(lines: [&str; 2]) -> [Router; 2] {
    let mut features: Vec<Register> = vec![quiver_export::register, quiver_nat_log::register];
    features.extend(FEATURES);
    let [a, b] = ports();
    let places = [(a, b, lines[0]), (b, a, lines[1])];
    places.map(|(own, peer, lines)| {
        let lines = format!("{lines}\n{}", link(own, peer, "horse"));
        router_of(Settings::default(), &features, &lines)
    })
}

fn linked(lines: &str) -> [Router; 2] {
    let mut routers = pair([lines; 2]);
    until(&mut routers, "both are up", |routers| {
        routers
            .iter_mut()
            .all(|router| ha(router)["state"] == "up" && number(router, "resyncs_received") > 0)
    });
    routers
}

/// What is there, without times and in an order that does not depend on numbers.
fn standing(router: &mut Router, show: &str) -> Vec<String> {
    let mut rows = rows(router, show);
    for row in &mut rows {
        row["idle_s"] = Value::Null;
        row["age_s"] = Value::Null;
    }
    let mut rows: Vec<String> = rows.iter().map(Value::to_string).collect();
    rows.sort();
    rows
}

/// RFC 6333 §6.6: the number of a B4 may be another one at the other router; its address counts.
#[test]
fn sessions_of_b4s_go_on_at_the_other_router() {
    let mut routers = linked(LINES);
    // The second router knows a B4 already: its numbers are others.
    out(&mut routers[1], OTHER, (HOST, REMOTE), UDP, &udp(9, 53)).expect("sent");
    until(&mut routers, "the first one has it", |routers| sessions(&mut routers[0]) == 1);
    let sent = [B4, OTHER]
        .map(|b4| out(&mut routers[0], b4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent").1);
    until_sessions(&mut routers, 3);
    for show in ["show nat44 sessions", "show nat44 blocks", "show nat44 mappings"] {
        let [first, second] = &mut routers;
        until_same(first, second, show);
    }
    let [_, second] = &mut routers;
    let known = rows(second, "show dslite b4s");
    assert_eq!(known.len(), 2, "{known:?}");
    for (port, b4) in sent.into_iter().zip([B4, OTHER]) {
        let answer = packet4((REMOTE, POOL), UDP, whole(), &udp(53, port));
        let (to, _) = back(second, port, &answer).expect("sent");
        assert_eq!(to, b4);
        let again = out(second, b4, (HOST, REMOTE), UDP, &udp(4000, 53));
        assert_eq!(again, Some((POOL, port)));
    }
    // The limit of the B4 with two sessions has one more.
    assert!(out(second, OTHER, (HOST, REMOTE), UDP, &udp(4001, 53)).is_some());
    assert!(out(second, OTHER, (HOST, REMOTE), UDP, &udp(4002, 53)).is_none());
    assert_eq!(number(second, "refused") + number(second, "unreadable_records"), 0);
}

fn until_same(first: &mut Router, second: &mut Router, show: &str) {
    let (one, other) = (standing(first, show), standing(second, show));
    assert_eq!(one, other, "{show}");
}

/// Two B4s with a session each, and one between their hosts; the external ports of both.
fn between_b4s(routers: &mut [Router; 2]) -> [u16; 2] {
    let ports = [B4, OTHER]
        .map(|b4| out(&mut routers[0], b4, (HOST, REMOTE), UDP, &udp(4000, 53)).expect("sent").1);
    let (to, _) = hairpin(&mut routers[0], B4, ports[1]);
    assert_eq!(to, OTHER);
    ports
}

/// RFC 4787 REQ-9: hosts behind two B4s go on reaching each other by their external ends.
#[test]
fn sessions_between_b4s_go_on_at_the_other_router() {
    let mut routers = linked(LINES);
    // The second router knows a B4 already: its numbers are others.
    out(&mut routers[1], OTHER, (HOST, REMOTE), UDP, &udp(9, 53)).expect("sent");
    until(&mut routers, "the first one has it", |routers| sessions(&mut routers[0]) == 1);
    let [one, other] = between_b4s(&mut routers);
    until_sessions(&mut routers, 4);
    let [first, second] = &mut routers;
    until_same(first, second, "show nat44 sessions");
    for (from, own, to, port) in [(B4, one, OTHER, other), (OTHER, other, B4, one)] {
        let (at, inner) = hairpin(second, from, port);
        assert_eq!((at, address(&inner, 12), address(&inner, 16)), (to, POOL, HOST));
        assert_eq!(inner[20..24], [own.to_be_bytes(), 4000u16.to_be_bytes()].concat());
    }
    assert_eq!(sessions(second), 4, "no session was made for them");
    assert_eq!(number(second, "refused") + number(second, "unreadable_records"), 0);
}

#[test]
fn sessions_between_b4s_end_at_the_other_router() {
    let mut routers = linked(LINES);
    between_b4s(&mut routers);
    until_sessions(&mut routers, 3);
    routers[0].cli("clear nat44 sessions");
    until_sessions(&mut routers, 0);
    turn(&mut routers, 100);
    routers[1].advance(Duration::from_secs(200));
    assert_eq!(rows(&mut routers[1], "show dslite b4s").len(), 0);
}

/// What was there before the link was is told, too.
#[test]
fn a_resync_has_sessions_between_b4s() {
    let mut routers = linked(LINES);
    between_b4s(&mut routers);
    until_sessions(&mut routers, 3);
    routers[1].cli("clear nat44 sessions");
    let before = number(&mut routers[1], "resyncs_received");
    routers[1].cli("nat44 ha resync");
    until(&mut routers, "all was told", |routers| {
        number(&mut routers[1], "resyncs_received") > before
    });
    until_sessions(&mut routers, 3);
}

#[test]
fn a_b4_whose_sessions_ended_is_forgotten_at_both() {
    let mut routers = linked(LINES);
    for port in 0..3 {
        out(&mut routers[0], B4, (HOST, REMOTE), UDP, &udp(4000 + port, 53)).expect("sent");
    }
    until_sessions(&mut routers, 3);
    routers[0].cli("clear nat44 sessions");
    until_sessions(&mut routers, 0);
    turn(&mut routers, 100);
    for router in &mut routers {
        router.advance(Duration::from_secs(200));
        assert_eq!(rows(router, "show dslite b4s").len(), 0);
        assert_eq!(rows(router, "show nat44 blocks").len(), 0);
    }
}

#[test]
fn another_aftr_address_is_another_configuration() {
    let mut routers = pair(["", "dslite set aftr-tunnel-endpoint-address 2001:db8:ffff::2 b4s 64"]);
    until(&mut routers, "both say that they differ", |routers| {
        routers.iter_mut().all(|router| ha(router)["state"] == "configuration-differs")
    });
}
