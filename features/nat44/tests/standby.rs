//! Two routers that stand by for each other, over sockets of this machine: what one makes the other
//! has, and goes on with it.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use quiver_testkit::frames::ip4;
use quiver_testkit::{Register, Router, Settings};
use serde_json::Value;

use crate::sessions::{FEATURES, HOST, POOL, REMOTE, TCP, UDP, from_inside, tcp, udp, whole};

const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// A router whose clock is moved by hand, with NAT44.
fn router(sessions: usize, lines: &str) -> Router {
    let mut features: Vec<Register> = vec![quiver_export::register, quiver_nat_log::register];
    features.extend(FEATURES);
    let mut router = Router::with(Settings::default(), &features);
    let setup = format!(
        "create test interface e0
        create test interface e1
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 10.0.0.1/8
        set interface ip address e1 198.51.100.1/24
        ip neighbor e0 10.0.0.2 02:00:00:00:00:00 static
        ip neighbor e0 10.0.0.3 02:00:00:00:00:00 static
        ip neighbor e1 198.51.100.2 02:00:00:00:00:01 static
        ip route add 0.0.0.0/0 via 198.51.100.2
        nat44 plugin enable sessions {sessions}
        nat44 add address 192.0.2.1
        set interface nat44 in e0 out e1
        {lines}"
    );
    router.script("setup", &setup).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

/// Two UDP ports that nobody has.
pub fn ports() -> [u16; 2] {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    sockets.map(|socket| socket.local_addr().expect("an address").port())
}

pub fn link(own: u16, peer: u16, secret: &str) -> String {
    format!(
        "nat44 ha listener 127.0.0.1 port {own}
        nat44 ha failover 127.0.0.1 port {peer} refresh-interval 1
        nat44 ha key secret {secret}"
    )
}

/// Two routers with the same configuration that are linked and have told each other all.
fn pair(lines: &str) -> [Router; 2] {
    pair_on(ports(), lines)
}

fn pair_on([a, b]: [u16; 2], lines: &str) -> [Router; 2] {
    let mut routers = [(a, b), (b, a)]
        .map(|(own, peer)| router(1000, &format!("{lines}\n{}", link(own, peer, "horse"))));
    until(&mut routers, "both are up", |routers| {
        routers
            .iter_mut()
            .all(|router| ha(router)["state"] == "up" && number(router, "resyncs_received") > 0)
    });
    routers
}

pub fn ha(router: &mut Router) -> Value {
    router.json("show nat ha")
}

pub fn number(router: &mut Router, field: &str) -> u64 {
    let shown = ha(router);
    shown[field].as_u64().unwrap_or_else(|| panic!("{field} of {shown}"))
}

/// Turn both for so many hundredths of a second.
pub fn turn(routers: &mut [Router; 2], turns: usize) {
    for _ in 0..turns {
        routers.iter_mut().for_each(|router| router.advance(Duration::from_millis(10)));
    }
}

/// Turn both until something holds.
pub fn until(routers: &mut [Router; 2], what: &str, holds: impl Fn(&mut [Router; 2]) -> bool) {
    for _ in 0..3000 {
        turn(routers, 1);
        if holds(routers) {
            return;
        }
    }
    let shown = routers.each_mut().map(ha);
    panic!("{what}: {shown:#?}");
}

/// Turn both until the second has so many sessions.
pub fn until_sessions(routers: &mut [Router; 2], count: u64) {
    until(routers, "sessions are told", |routers| {
        let [_, second] = routers;
        second.json("show nat44 summary")["sessions"] == count
    });
}

fn sessions(router: &mut Router) -> Vec<Value> {
    let mut rows = router.json("show nat44 sessions").as_array().expect("rows").clone();
    rows.iter_mut().for_each(|row| {
        row["idle_s"] = Value::Null;
    });
    rows.sort_by_key(Value::to_string);
    rows
}

fn rows(router: &mut Router, show: &str) -> Vec<Value> {
    router.json(show).as_array().expect("rows").clone()
}

/// Does a packet from outside to a port of the pool come to a host inside?
fn comes(router: &mut Router, remote: Ipv4Addr, protocol: u8, upper: &[u8]) -> bool {
    router.send("e1", &ip4(1, (remote, POOL), protocol, whole(), upper));
    !router.sent("e0").is_empty()
}

/// A connection of a host, in both directions of the first router.
fn connect(router: &mut Router, port: u16) -> u16 {
    let (_, outside) = from_inside(router, HOST, TCP, &tcp(port, 80, SYN)).expect("sent");
    assert!(comes(router, REMOTE, TCP, &tcp(80, outside, SYN | ACK)));
    from_inside(router, HOST, TCP, &tcp(port, 80, ACK)).expect("sent");
    outside
}

#[test]
fn connections_go_on_at_the_other_router_and_back() {
    let mut routers = pair("");
    let outside = connect(&mut routers[0], 4000);
    from_inside(&mut routers[0], OTHER, UDP, &udp(4000, 53)).expect("sent");
    until_sessions(&mut routers, 2);
    until(&mut routers, "the connection is established there, too", |routers| {
        sessions(&mut routers[1]) == sessions(&mut routers[0])
    });
    let [first, second] = &mut routers;
    assert_eq!(
        (ha(first)["role"].as_str(), ha(second)["role"].as_str()),
        (Some("active"), Some("standby"))
    );
    // Data in the middle of the connection, and an answer, through the second one.
    let sent = from_inside(second, HOST, TCP, &tcp(4000, 80, ACK));
    assert_eq!(sent, Some((POOL, outside)));
    assert!(comes(second, REMOTE, TCP, &tcp(80, outside, ACK)));
    assert!(comes(second, REMOTE, UDP, &udp(53, 4000)));
    turn(&mut routers, 200);
    let [first, second] = &mut routers;
    assert_eq!(
        (ha(first)["role"].as_str(), ha(second)["role"].as_str()),
        (Some("standby"), Some("active"))
    );
    assert_eq!((number(second, "takeovers"), number(first, "takeovers")), (1, 0));
    // It ends there, and so it does here.
    from_inside(second, HOST, TCP, &tcp(4000, 80, FIN | ACK));
    comes(second, REMOTE, TCP, &tcp(80, outside, FIN | ACK));
    second.cli("nat44 del session in 10.0.0.2 4000 tcp");
    until(&mut routers, "the session ends at the first", |routers| {
        sessions(&mut routers[0]).len() == 1
    });
}

#[test]
fn a_router_that_starts_anew_gets_all_and_ends_nothing() {
    let [a, b] = ports();
    let mut routers = pair_on([a, b], "");
    for port in 0..300 {
        from_inside(&mut routers[0], HOST, UDP, &udp(4000 + port, 53)).expect("sent");
    }
    until_sessions(&mut routers, 300);
    let [first, second] = routers;
    drop(first);
    let first = router(1000, &link(a, b, "horse"));
    // The other one has not touched the sessions since, and has them of the one that is gone.
    let mut routers = [second, first];
    until_sessions(&mut routers, 300);
    until(&mut routers, "all is told", |routers| {
        routers.iter_mut().all(|router| number(router, "resyncs_received") >= 1)
    });
    turn(&mut routers, 100);
    assert_eq!(sessions(&mut routers[0]), sessions(&mut routers[1]));
    assert_eq!(
        (sessions(&mut routers[0]).len(), number(&mut routers[0], "sessions_swept")),
        (300, 0)
    );
}

#[test]
fn what_ended_while_the_other_was_away_is_swept() {
    let mut routers = pair("");
    for port in 0..300 {
        from_inside(&mut routers[0], HOST, UDP, &udp(4000 + port, 53)).expect("sent");
    }
    until_sessions(&mut routers, 300);
    // The second one does not turn: the first gives it up.
    let [first, second] = &mut routers;
    for port in 0..100 {
        first.cli(&format!("nat44 del session in 10.0.0.2 {} udp", 4000 + port));
    }
    from_inside(first, OTHER, UDP, &udp(9, 9)).expect("sent");
    for _ in 0..2000 {
        first.advance(Duration::from_millis(10));
        from_inside(first, OTHER, UDP, &udp(9, 9)).expect("sent");
    }
    assert_eq!(ha(first)["state"], "down");
    first.cli("nat44 del session in 10.0.0.2 4100 udp");
    assert!(number(first, "missed") + number(first, "records_lost") > 0);
    assert_eq!(sessions(second).len(), 300);
    until_sessions(&mut routers, 200);
    assert_eq!(sessions(&mut routers[0]).len(), 200);
    assert!(number(&mut routers[1], "sessions_swept") > 0);
}

#[test]
fn blocks_mappings_and_limits_hold_at_the_other_router() {
    let mut routers = pair(
        "nat44 port-blocks size 64 max-blocks 2
        nat44 mapping endpoint-independent filtering any
        nat44 address-pooling paired
        nat44 subscriber-limits sessions 100",
    );
    for port in 0..70 {
        from_inside(&mut routers[0], HOST, UDP, &udp(4000 + port, 53)).expect("sent");
    }
    from_inside(&mut routers[0], OTHER, UDP, &udp(4000, 53)).expect("sent");
    until_sessions(&mut routers, 71);
    let place = |row: &Value| format!("{} {} {}", row["inside"], row["outside"], row["first_port"]);
    let blocks = |router: &mut Router| {
        let mut all: Vec<String> = rows(router, "show nat44 blocks").iter().map(place).collect();
        all.sort();
        all
    };
    let [first, second] = &mut routers;
    assert_eq!((blocks(first), blocks(first).len()), (blocks(second), 3));
    let count = |router: &mut Router, show: &str| rows(router, show).len();
    assert_eq!(count(first, "show nat44 mappings"), 71);
    assert_eq!(count(second, "show nat44 mappings"), 71);
    // The mapping is the same for another destination, and a stranger may send to it.
    let mapped = from_inside(first, HOST, UDP, &udp(4005, 53)).expect("sent");
    let stranger = Ipv4Addr::new(203, 0, 113, 77);
    second.send("e0", &ip4(0, (HOST, stranger), UDP, whole(), &udp(4005, 99)));
    let frame = second.sent("e1").pop().expect("sent");
    assert_eq!(u16::from_be_bytes([frame[34], frame[35]]), mapped.1);
    assert!(comes(second, Ipv4Addr::new(203, 0, 113, 78), UDP, &udp(7, mapped.1)));
    // 72 of 100 sessions of the host count there.
    let more = (0..60).filter(|n| from_inside(second, HOST, UDP, &udp(4000, 1000 + n)).is_some());
    assert_eq!(more.count(), 28);
    // When all have ended, nothing is left of them.
    for router in &mut routers {
        router.cli("clear nat44 sessions");
    }
    turn(&mut routers, 200);
    for router in &mut routers {
        router.advance(Duration::from_secs(200));
        for show in ["show nat44 blocks", "show nat44 mappings", "show nat44 subscribers"] {
            assert_eq!(rows(router, show).len(), 0, "{show}");
        }
    }
}

#[test]
fn sessions_of_the_other_router_do_not_expire_while_it_refreshes_them() {
    let mut routers = pair("set nat timeout udp 20");
    from_inside(&mut routers[0], HOST, UDP, &udp(4000, 53)).expect("sent");
    until_sessions(&mut routers, 1);
    for _ in 0..100 {
        turn(&mut routers, 100);
        from_inside(&mut routers[0], HOST, UDP, &udp(4000, 53)).expect("sent");
    }
    assert_eq!(sessions(&mut routers[1]).len(), 1);
    assert!(number(&mut routers[1], "sessions_refreshed") > 50);
    // No packet comes any more: it ends at both.
    until(&mut routers, "the session ends at both", |routers| {
        routers.iter_mut().all(|router| sessions(router).is_empty())
    });
}

#[test]
fn routers_that_are_configured_differently_say_so_and_tell_nothing() {
    let mut routers = pair("");
    routers[1].cli("nat44 add address 192.0.2.9");
    until(&mut routers, "both say so", |routers| {
        routers.iter_mut().all(|router| ha(router)["state"] == "configuration-differs")
    });
    from_inside(&mut routers[0], HOST, UDP, &udp(4000, 53)).expect("sent");
    turn(&mut routers, 100);
    assert_eq!(sessions(&mut routers[1]).len(), 0);
    routers[0].cli("nat44 add address 192.0.2.9");
    until_sessions(&mut routers, 1);
    assert_eq!(ha(&mut routers[0])["state"], "up");
}

#[test]
fn a_router_with_another_key_is_told_nothing() {
    let [a, b] = ports();
    let mut routers = [(a, b, "one"), (b, a, "other")]
        .map(|(own, peer, secret)| router(1000, &link(own, peer, secret)));
    from_inside(&mut routers[0], HOST, UDP, &udp(4000, 53)).expect("sent");
    turn(&mut routers, 300);
    for router in &mut routers {
        assert_eq!(ha(router)["state"], "down");
        assert!(number(router, "unauthentic") > 0);
    }
    assert_eq!(sessions(&mut routers[1]).len(), 0);
    // The right key, and it is told.
    routers[1].cli("nat44 ha key secret one");
    until_sessions(&mut routers, 1);
}

#[test]
fn the_secret_is_hidden_and_the_configuration_loads_again() {
    let mut router = router(1000, &link(4741, 4742, "correct-horse"));
    let shown = router.cli("show running-config");
    assert!(shown.contains("nat44 ha listener 127.0.0.1 port 4741\n"), "{shown}");
    assert!(shown.contains("nat44 ha failover 127.0.0.1 port 4742 refresh-interval 1\n"));
    assert!(!shown.contains("correct-horse") && shown.contains("nat44 ha key secret <hidden>"));
    assert!(router.cli("show running-config secrets").contains("secret correct-horse"));
    for undo in ["listener", "failover", "key"] {
        router.cli(&format!("nat44 ha {undo} disable"));
    }
    assert!(!router.cli("show running-config").contains(" ha "));
    assert_eq!(ha(&mut router)["state"], "off");
    let refused = router.refused("nat44 ha resync");
    assert!(refused.contains("no link"), "{refused}");
    router.cli("nat44 plugin disable");
    assert!(router.refused("nat44 ha key secret abc").contains("not enabled"));
}

#[test]
fn more_sessions_than_the_other_router_has_room_for_are_refused_there_and_counted() {
    let [a, b] = ports();
    let mut routers = [(a, b, 500), (b, a, 50)]
        .map(|(own, peer, sessions)| router(sessions, &link(own, peer, "horse")));
    for port in 0..100 {
        from_inside(&mut routers[0], HOST, UDP, &udp(4000 + port, 53)).expect("sent");
    }
    until(&mut routers, "50 are refused", |routers| number(&mut routers[1], "refused") >= 50);
    assert_eq!(sessions(&mut routers[1]).len(), 50);
}
