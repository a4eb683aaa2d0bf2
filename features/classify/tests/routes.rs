//! Sessions that say in which table the route of a packet is looked up.

use quiver_testkit::Router;

use crate::tables::{ip4, ip6, router_of};

/// Two tables: the other one leads what is for `e1` to `e2`.
fn router() -> Router {
    let mut router =
        router_of(&[quiver_ethernet::register, quiver_ip::register, quiver_classify::register]);
    router.interface("e2");
    for line in [
        "ip table add 7",
        "ip6 table add 7",
        "set interface ip table e2 7",
        "set interface ip6 table e2 7",
        "set interface ip address e2 10.0.2.1/24",
        "set interface ip address e2 2001:db8:2::1/64",
        "ip neighbor e2 10.0.2.2 02:00:00:00:00:02",
        "ip neighbor e2 2001:db8:2::2 02:00:00:00:00:02",
        "ip route add 10.0.1.0/24 table 7 via 10.0.2.2 e2",
        "ip route add 2001:db8:1::/64 table 7 via 2001:db8:2::2 e2",
        "classify table table 1 mask l3 ip4 src",
        "classify table table 0 next-table 1 mask l3 ip4 proto l4 dst_port",
        "classify table table 2 mask l3 ip6 l4 dst_port",
    ] {
        router.cli(line);
    }
    router
}

/// How many of these leave by `e1`, and by `e2`.
fn went(router: &mut Router, frames: &[Vec<u8>]) -> (usize, usize) {
    frames.iter().for_each(|frame| router.inject("e0", frame));
    router.run();
    (router.sent("e1").len(), router.sent("e2").len())
}

#[test]
fn packets_that_meet_a_session_are_looked_up_in_its_table() {
    let mut router = router();
    for line in [
        "set interface input acl intfc e0 ip4-table 0 ip6-table 2",
        "classify session acl-hit-next permit action set-ip4-fib-id 7 table-index 0 match l3 ip4 \
         proto 17 l4 dst_port 53",
        "classify session action set-ip4-fib-id 7 table-index 1 match l3 ip4 src 10.0.0.5",
        "classify session action set-ip6-fib-id 7 table-index 2 match l3 ip6 l4 dst_port 53",
        "classify session acl-hit-next deny table-index 2 match l3 ip6 l4 dst_port 25",
    ] {
        router.cli(line);
    }
    assert_eq!(went(&mut router, &[ip4(2, 53), ip4(2, 80), ip4(5, 80), ip4(6, 80)]), (2, 2));
    assert_eq!(went(&mut router, &[ip6(53), ip6(80), ip6(25)]), (1, 1));
    assert_eq!(router.count("classify-input-acl", "denied"), 1);
    // A block of packets alike, and each counted once.
    assert_eq!(went(&mut router, &vec![ip4(2, 53); 200]), (0, 200));
    let sessions = router.json("show classify tables index 0 verbose");
    assert_eq!(sessions[0]["hits"], 201);
    // TTL and MAC addresses are those of a routed packet.
    router.inject("e0", &ip4(2, 53));
    router.run();
    let sent = router.sent("e2");
    assert_eq!((sent[0][22], &sent[0][..6]), (63, &[2, 0, 0, 0, 0, 2][..]));

    router.cli(
        "classify session acl-hit-next permit table-index 0 match \"l3 ip4 proto 17 l4 \
                dst_port 53\"",
    );
    assert_eq!(went(&mut router, &[ip4(2, 53), ip4(5, 80)]), (1, 1));
    router.cli("classify session del table-index 1 match l3 ip4 src 10.0.0.5");
    assert_eq!(went(&mut router, &[ip4(5, 80), ip6(53)]), (1, 1));
    assert!(!router.cli("show interface features e0").contains("classify-fib-ip4"));
    router.cli("set interface input acl intfc e0 del");
    assert_eq!(went(&mut router, &[ip6(53)]), (1, 0));
}

#[test]
fn a_mask_in_digits_sees_the_frame_from_its_first_byte_on() {
    let mut router = router();
    for line in [
        "classify table table 5 mask hex 000000000000ffffffffffff",
        "classify session action set-ip4-fib-id 7 table-index 5 match hex \
         000000000000020000000009",
        "set interface input acl intfc e0 ip4-table 5",
    ] {
        router.cli(line);
    }
    let mut frame = ip4(2, 1);
    assert_eq!(went(&mut router, &[frame.clone()]), (1, 0));
    frame[11] = 9;
    assert_eq!(went(&mut router, &[frame]), (0, 1));
}

#[test]
fn a_table_of_routes_in_use_stays() {
    let mut router = router();
    router.cli("ip table add 9");
    for host in [5, 6] {
        router.cli(&format!(
            "classify session action set-ip4-fib-id 9 table-index 1 match l3 ip4 src 10.0.0.{host}"
        ));
    }
    let config = router.cli("show running-config");
    let line = "classify session acl-hit-next permit action set-ip4-fib-id 9 table-index 1 match \
                l3 ip4 src 10.0.0.5";
    assert!(config.lines().any(|written| written == line), "{config}");
    for (line, why) in [
        ("ip table del 9", "in use by a classifier session"),
        ("classify session action set-ip4-fib-id 8 table-index 1 match l3 ip4 src 10.0.0.9", "8"),
        (
            "classify session acl-hit-next deny action set-ip4-fib-id 9 table-index 1 match l3 ip4 \
             src 10.0.0.9",
            "are not looked up",
        ),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    router.cli("classify session del table-index 1 match l3 ip4 src 10.0.0.5");
    assert!(router.refused("ip table del 9").contains("in use"));
    router.cli("classify session acl-hit-next deny table-index 1 match l3 ip4 src 10.0.0.6");
    router.cli("ip table del 9");
}
