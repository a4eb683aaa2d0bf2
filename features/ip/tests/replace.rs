//! Routes, addresses and configured neighbours are replaced by mark and sweep.

use crate::stand;

use stand::{host, ping, router};

/// The lines of the running configuration that begin so.
fn config(router: &mut quiver_testkit::Router, begin: &str) -> Vec<String> {
    let text = router.cli("show running-config");
    text.lines().map(str::trim).filter(|line| line.starts_with(begin)).map(str::to_owned).collect()
}

#[test]
fn routes_that_are_not_given_again_go_and_the_others_have_the_paths_that_are_given() {
    let mut router = router();
    router.cli("ip table add 7");
    for line in [
        "ip route add 192.0.2.0/24 via 10.0.0.2 e0",
        "ip route add 198.51.100.0/24 via 10.0.0.2 e0 via 10.1.0.2 e1",
        "ip route add 203.0.113.0/24 via drop",
        "ip route add 192.0.2.0/24 table 7 via drop",
        "ip route add 2001:db8:9::/48 via drop",
    ] {
        router.cli(line);
    }
    router.cli("ip table replace begin 0");
    router.cli("ip route add 192.0.2.0/24 via 10.0.0.2 e0");
    router.cli("ip route add 198.51.100.0/24 via 10.1.0.2 e1");
    router.cli("ip route add 198.51.100.0/24 via 10.1.0.3 e1");
    router.cli("ip route add 16.0.0.0/32 count 3000 via 10.0.0.2 e0");
    assert!(
        config(&mut router, "ip route add 203.0.113.0/24").len() == 1,
        "it stays until the end"
    );
    assert!(router.cli("ip table replace end 0").contains("1 routes removed"));
    assert_eq!(
        config(&mut router, "ip route"),
        [
            "ip route add 16.0.0.0/32 count 3000 via 10.0.0.2 e0",
            "ip route add 192.0.2.0/24 via 10.0.0.2 e0",
            "ip route add 198.51.100.0/24 via 10.1.0.2 e1 via 10.1.0.3 e1",
            "ip route add 192.0.2.0/24 table 7 via drop",
            "ip route add 2001:db8:9::/48 via drop",
        ]
    );
    // What routes of the router itself and of neighbours say is not the operator's to replace.
    router.cli("ip table replace begin");
    assert!(router.cli("ip table replace end").contains("3002 routes removed"));
    router.sent("e0");
    router.send("e1", &ping(1, host(false, 1, 2), host(false, 0, 2), 20));
    assert_eq!(router.sent("e0").len(), 1);
}

#[test]
fn a_refused_range_leaves_stale_routes_stale() {
    let mut router = router();
    router.cli("ip route add 16.0.0.0/24 count 3000 via drop");
    router.cli("set fib limit ip4-routes 3100");
    router.cli("ip table replace begin");
    router.refused("ip route add 16.0.0.0/24 count 9000 via drop");
    assert!(router.cli("ip table replace end").contains("3000 routes removed"));
    assert_eq!(config(&mut router, "ip route"), [""; 0]);
}

#[test]
fn a_cancelled_replacement_keeps_everything_and_turns_come_in_order() {
    let mut router = router();
    router.cli("ip route add 192.0.2.0/24 via drop");
    for (words, of) in [
        ("ip table replace", " 0"),
        ("ip6 table replace", " 0"),
        ("set interface ip address-replace", ""),
        ("ip neighbor-replace", ""),
    ] {
        let say = |turn: &str| format!("{words} {turn}{of}");
        assert!(router.refused(&say("end")).contains("begin"), "{words}");
        router.cli(&say("begin"));
        assert!(router.refused(&say("begin")).contains("already"), "{words}");
        router.cli(&say("cancel"));
        assert!(router.refused(&say("cancel")).contains("not being replaced"), "{words}");
    }
    assert_eq!(config(&mut router, "ip route"), ["ip route add 192.0.2.0/24 via drop"]);
    assert!(router.refused("ip table replace begin 9").contains("table 9"));
}

#[test]
fn addresses_that_are_not_given_again_go_and_forwarding_goes_on() {
    let mut router = router();
    router.cli("set interface ip address e0 192.0.2.1/24");
    router.cli("set interface ip address-replace begin");
    for (number, name) in ["e0", "e1"].into_iter().enumerate() {
        router.cli(&format!("set interface ip address {name} 10.{number}.0.1/16"));
    }
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    router.cli("set interface ip address e1 203.0.113.1/24");
    assert!(router.cli("set interface ip address-replace end").contains("2 addresses removed"));
    let left = config(&mut router, "set interface ip address");
    assert_eq!(
        left,
        [
            "set interface ip address e0 10.0.0.1/16",
            "set interface ip address e1 10.1.0.1/16",
            "set interface ip address e1 203.0.113.1/24",
            "set interface ip address e1 2001:db8:1::1/64",
        ]
    );
    assert!(router.refused("set interface ip address e0 10.0.0.1/16").contains("already"));
}

#[test]
fn configured_neighbours_that_are_not_given_again_go_and_learned_ones_stay() {
    let mut router = router();
    router.cli("ip neighbor e1 10.1.0.7 02:00:00:00:00:07");
    router.send("e1", &stand::asks4(1, 9));
    router.cli("ip neighbor-replace begin");
    router.cli("ip neighbor e0 10.0.0.2 02:00:00:00:00:a0");
    assert!(router.cli("ip neighbor-replace end").contains("2 neighbours removed"));
    assert_eq!(
        config(&mut router, "ip neighbor"),
        ["ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static"]
    );
    assert_eq!(stand::state(&mut router, false, 9).as_deref(), Some("reachable"));
}

#[test]
fn of_several_addresses_in_a_subnet_the_router_asks_with_the_oldest() {
    let mut router = router();
    for address in ["10.1.0.200/16", "10.1.0.3/16"] {
        router.cli(&format!("set interface ip address e1 {address}"));
    }
    router.sent("e1");
    router.send("e0", &stand::ping_to(false, 9));
    let question = router.sent("e1").into_iter().find(|frame| frame[12..14] == [8, 6]).unwrap();
    assert_eq!(question[28..32], [10, 1, 0, 1]);
}
