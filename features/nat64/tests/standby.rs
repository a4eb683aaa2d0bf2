//! Two routers with NAT64 that stand by for each other, over sockets of this machine: what one
//! makes the other has, and goes on with it.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use quiver_testkit::configuration::running;
use quiver_testkit::{Register, Router, Settings};
use serde_json::Value;

use crate::sessions::{
    FEATURES, HOST, OTHER, POOL, REMOTE, TCP, UDP, from_inside, from_outside, setup, tcp, udp,
};

const SYN: u8 = 2;
const ACK: u8 = 16;

fn router(lines: &str) -> Router {
    let mut features: Vec<Register> = vec![quiver_export::register, quiver_nat_log::register];
    features.extend(FEATURES);
    let mut router = Router::with(Settings::default(), &features);
    router.script("setup", &setup(1000)).expect("a good configuration");
    router.script("more", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

/// Two UDP ports that nobody has.
fn ports() -> [u16; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    sockets.map(|socket| socket.local_addr().expect("an address").port())
}

fn link(own: u16, peer: u16) -> String {
    format!(
        "nat64 ha listener 127.0.0.1 port {own}
        nat64 ha failover 127.0.0.1 port {peer} refresh-interval 1
        nat64 ha key secret horse"
    )
}

/// Two routers that are linked, each with its own lines beside.
fn pair(lines: [&str; 2]) -> [Router; 2] {
    let [a, b] = ports();
    [(a, b, lines[0]), (b, a, lines[1])]
        .map(|(own, peer, lines)| router(&format!("{lines}\n{}", link(own, peer))))
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

fn ha(router: &mut Router) -> Value {
    router.json("show nat64 ha")
}

fn number(router: &mut Router, field: &str) -> u64 {
    let shown = ha(router);
    shown[field].as_u64().unwrap_or_else(|| panic!("{field} of {shown}"))
}

fn turn(routers: &mut [Router; 2], turns: usize) {
    for _ in 0..turns {
        routers.iter_mut().for_each(|router| router.advance(Duration::from_millis(10)));
    }
}

fn until(routers: &mut [Router; 2], what: &str, holds: impl Fn(&mut [Router; 2]) -> bool) {
    for _ in 0..3000 {
        turn(routers, 1);
        if holds(routers) {
            return;
        }
    }
    let shown = routers.each_mut().map(ha);
    panic!("{what}: {shown:#?}");
}

fn count(router: &mut Router, key: &str) -> u64 {
    router.json("show nat64 summary")[key].as_u64().expect("a number")
}

fn until_sessions(routers: &mut [Router; 2], sessions: u64) {
    until(routers, "sessions are told", |routers| count(&mut routers[1], "sessions") == sessions);
}

#[test]
fn connections_go_on_at_the_other_router() {
    let mut routers = linked("");
    let first = &mut routers[0];
    assert_eq!(from_inside(first, HOST, REMOTE, TCP, &tcp(4000, 80, SYN)), Some((POOL, 4000)));
    assert!(from_outside(first, REMOTE, TCP, &tcp(80, 4000, SYN | ACK)).is_some());
    from_inside(first, HOST, REMOTE, TCP, &tcp(4000, 80, ACK)).expect("sent");
    // The same port of another host has another end outside.
    let (_, mapped) = from_inside(first, OTHER, REMOTE, UDP, &udp(5000, 53)).expect("sent");
    let (_, other) = from_inside(first, HOST, REMOTE, UDP, &udp(5000, 53)).expect("sent");
    assert_ne!(mapped, other);
    until_sessions(&mut routers, 3);
    until(&mut routers, "the connection is established there, too", |routers| {
        let shown = routers[1].json("show nat64 session table tcp");
        shown[0]["state"] == "established"
    });
    let [first, second] = &mut routers;
    assert_eq!(
        (ha(first)["role"].as_str(), ha(second)["role"].as_str()),
        (Some("active"), Some("standby"))
    );
    assert_eq!(count(second, "bindings"), 3);
    // From outside first, then from inside, in the middle of the connection.
    assert_eq!(from_outside(second, REMOTE, TCP, &tcp(80, 4000, ACK)), Some((HOST, 4000)));
    assert_eq!(from_inside(second, HOST, REMOTE, TCP, &tcp(4000, 80, ACK)), Some((POOL, 4000)));
    assert_eq!(from_outside(second, REMOTE, UDP, &udp(53, mapped)), Some((OTHER, 5000)));
    assert_eq!(from_inside(second, HOST, REMOTE, UDP, &udp(5000, 53)), Some((POOL, other)));
    // RFC 6146 §3.5.1: the binding is the same for another destination.
    let far = Ipv4Addr::new(203, 0, 113, 99);
    assert_eq!(from_inside(second, OTHER, far, UDP, &udp(5000, 54)), Some((POOL, mapped)));
    turn(&mut routers, 300);
    let [first, second] = &mut routers;
    assert_eq!(
        (ha(first)["role"].as_str(), ha(second)["role"].as_str()),
        (Some("standby"), Some("active"))
    );
    assert_eq!((number(second, "takeovers"), number(second, "refused")), (1, 0));
    assert_eq!(count(first, "sessions"), 4);
}

#[test]
fn sessions_end_at_both() {
    let mut routers = linked("");
    for port in 0..50 {
        from_inside(&mut routers[0], HOST, REMOTE, UDP, &udp(4000 + port, 53)).expect("sent");
    }
    until_sessions(&mut routers, 50);
    assert_eq!(count(&mut routers[1], "bindings"), 50);
    routers[0].cli("clear nat64 sessions");
    until_sessions(&mut routers, 0);
    assert_eq!(count(&mut routers[1], "bindings"), 0);
}

#[test]
fn a_router_that_comes_late_gets_all_and_what_ended_meanwhile_is_swept() {
    let [a, b] = ports();
    let mut routers = [router(&link(a, b)), router("")];
    for port in 0..700 {
        from_inside(&mut routers[0], HOST, REMOTE, UDP, &udp(4000 + port, 53)).expect("sent");
    }
    routers[1].script("link", &link(b, a)).expect("a good configuration");
    until_sessions(&mut routers, 700);
    assert_eq!(count(&mut routers[1], "bindings"), 700);
    // The second one does not turn: the first gives it up.
    routers[0].cli("clear nat64 sessions");
    for _ in 0..1000 {
        routers[0].advance(Duration::from_millis(10));
    }
    assert_eq!(ha(&mut routers[0])["state"], "down");
    until_sessions(&mut routers, 0);
    assert_eq!(count(&mut routers[1], "bindings"), 0);
}

#[test]
fn static_bindings_and_prefixes_by_other_numbers_are_the_same() {
    let more = "nat64 add prefix 2001:db8:65::/96 tenant-vrf 0";
    let again = format!(
        "nat64 add prefix 2001:db8:64::/96 del\n{more}\nnat64 add prefix 2001:db8:64::/96\n\
         nat64 add static bib 2001:db8:1::2 80 192.0.2.1 8080 tcp"
    );
    let first = format!("{more}\nnat64 add static bib 2001:db8:1::2 80 192.0.2.1 8080 tcp");
    let mut routers = pair([&first, &again]);
    until(&mut routers, "both are up", |routers| {
        routers.iter_mut().all(|router| ha(router)["state"] == "up")
    });
    assert_eq!(from_outside(&mut routers[0], REMOTE, TCP, &tcp(999, 8080, SYN)), Some((HOST, 80)));
    until_sessions(&mut routers, 1);
    let [_, second] = &mut routers;
    assert!(from_inside(second, HOST, REMOTE, TCP, &tcp(80, 999, SYN | ACK)).is_none(), "by 64");
    assert_eq!(number(second, "refused"), 0);
}

#[test]
fn another_pool_is_another_configuration_and_nothing_is_told() {
    let mut routers = pair(["", "nat64 add pool address 192.0.2.9"]);
    until(&mut routers, "both say that they differ", |routers| {
        routers.iter_mut().all(|router| ha(router)["state"] == "configuration-differs")
    });
    from_inside(&mut routers[0], HOST, REMOTE, UDP, &udp(4000, 53)).expect("sent");
    turn(&mut routers, 50);
    assert_eq!(count(&mut routers[1], "sessions"), 0);
    routers[1].cli("nat64 add pool address 192.0.2.9 del");
    until_sessions(&mut routers, 1);
}

#[test]
fn the_link_is_in_the_configuration_and_goes_with_nat64() {
    let mut router = router(&link(4741, 4742));
    let written = running(&mut router);
    assert!(written.contains("nat64 ha listener 127.0.0.1 port 4741"), "{written}");
    assert!(written.contains("nat64 ha failover 127.0.0.1 port 4742 refresh-interval 1"));
    assert!(written.contains("nat64 ha key secret "));
    router.cli("nat64 plugin disable");
    assert!(!running(&mut router).contains("nat64"));
    assert!(router.refused("nat64 ha listener 127.0.0.1 port 4741").contains("not enabled"));
}
