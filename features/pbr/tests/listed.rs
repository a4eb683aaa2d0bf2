//! Policies that ask access lists.

use std::net::Ipv4Addr;

use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

/// Packets come by e0; the routes lead to e1, policies to e2 and e3.
fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_acl::register,
        quiver_pbr::register,
    ]);
    for number in 0..4 {
        router.interface(&format!("e{number}"));
        router.cli(&format!("set interface ip address e{number} 10.0.{number}.1/24"));
        router.cli(&format!("ip neighbor e{number} 10.0.{number}.2 02:00:00:00:00:0{number}"));
        router.cli(&format!("set interface ip address e{number} 2001:db8:{number}::1/64"));
        router.cli(&format!("ip neighbor e{number} 2001:db8:{number}::2 02:00:00:00:00:0{number}"));
    }
    router.cli("ip route add 0.0.0.0/0 via 10.0.1.2 e1");
    router.cli("ip route add ::/0 via 2001:db8:1::2 e1");
    router
}

fn run(router: &mut Router, lines: &[&str]) {
    lines.iter().for_each(|line| {
        router.cli(line);
    });
}

fn datagram(host: u8, port: u8, fragment: Fragment) -> Vec<u8> {
    let addresses = (sources::host(host), Ipv4Addr::new(203, 0, 113, 1));
    let udp = [0, 1, 0, port, 0, 14, 0, 0, 1, 2, 3, 4, 5, 6];
    frames::ip4(0, addresses, frames::UDP, fragment, &udp)
}

/// The interface that a datagram leaves by.
fn out(router: &mut Router, host: u8, port: u8) -> Option<u8> {
    router.send("e0", &datagram(host, port, Fragment::default()));
    (0..4u8).find(|number| !router.sent(&format!("e{number}")).is_empty())
}

#[test]
fn what_a_list_permits_goes_by_the_paths_of_the_policy() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin acl index 7 deny src 198.51.100.9/32, permit proto udp dport 80-89",
            "abf policy add id 1 acl 7 via 10.0.2.2 e2",
            "abf policy add id 2 match src 198.51.100.0/24 via 10.0.3.2 e3",
            "abf attach ip4 policy 1 priority 5 e0",
        ],
    );
    assert_eq!(out(&mut router, 1, 80), Some(2));
    assert_eq!(out(&mut router, 1, 90), Some(1), "no rule: the policy does not match");
    assert_eq!(out(&mut router, 9, 80), Some(1), "deny: the policy does not match");
    // Policies with a list and without stand beside each other.
    router.cli("abf attach ip4 policy 2 e0 priority 9");
    assert_eq!((out(&mut router, 1, 80), out(&mut router, 9, 80)), (Some(2), Some(3)));
    router.cli("abf attach ip4 del policy 1 e0");
    assert_eq!(out(&mut router, 1, 80), Some(3));
    router.cli("abf attach ip4 policy 1 priority 5 e0");
    assert_eq!(out(&mut router, 1, 80), Some(2));
    assert_eq!(router.json("show abf policy 1")[0]["packets"], 3);
    assert_eq!(router.json("show abf policy 1")[0]["match"], "acl 7");
}

#[test]
fn a_replaced_list_matches_at_once_and_one_in_use_stays() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin set fast addresses",
            "set acl-plugin acl index 7 permit src-set fast",
            "abf policy add id 1 acl 7 via 10.0.2.2 e2",
            "abf attach ip4 policy 1 e0",
        ],
    );
    assert_eq!(out(&mut router, 1, 80), Some(1));
    router.cli("set acl-plugin address-set fast add 198.51.100.1");
    assert_eq!(out(&mut router, 1, 80), Some(2), "an element is enough");
    router.cli("set acl-plugin acl index 7 permit proto udp dport 81");
    assert_eq!((out(&mut router, 1, 80), out(&mut router, 1, 81)), (Some(1), Some(2)));
    let refused = router.refused("delete acl-plugin acl index 7");
    assert!(refused.contains("is used by policy 1"), "{refused}");
    assert_eq!(out(&mut router, 1, 81), Some(2));
    run(&mut router, &["abf attach ip4 del policy 1 e0", "abf policy del id 1"]);
    router.cli("delete acl-plugin acl index 7");
}

#[test]
fn a_policy_whose_paths_cannot_be_used_is_passed_over_also_with_lists() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin acl index 1 permit ipv4",
            "set acl-plugin acl index 2 permit proto udp dport 80",
            "abf policy add id 1 acl 1 via 10.0.2.2 e2",
            "abf policy add id 2 acl 2 via 10.0.3.2 e3",
            "abf policy add id 3 acl 2 drop-if-unusable via 10.0.2.2 e2",
            "abf attach ip4 policy 1 priority 1 e0",
            "abf attach ip4 policy 2 priority 2 e0",
            "set interface state e2 down",
        ],
    );
    assert_eq!((out(&mut router, 1, 80), out(&mut router, 1, 81)), (Some(3), Some(1)));
    run(&mut router, &["abf attach ip4 del policy 2 e0", "abf attach ip4 policy 3 priority 3 e0"]);
    assert_eq!((out(&mut router, 1, 80), out(&mut router, 1, 81)), (None, Some(1)));
    assert_eq!(router.count("abf-input-acl-ip4", "policy-drops"), 1);
    router.cli("set interface state e2 up");
    assert_eq!(out(&mut router, 1, 81), Some(2));
}

#[test]
fn fragments_are_matched_by_a_list_as_its_setting_says() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin acl index 1 permit proto udp dport 80",
            "abf policy add id 1 acl 1 via 10.0.2.2 e2",
            "abf attach ip4 policy 1 e0",
        ],
    );
    let later = Fragment { offset_bytes: 40, ..Fragment::default() };
    for (setting, expected) in [("1", "e2"), ("0", "e1")] {
        router.cli(&format!("set acl-plugin l4-match-nonfirst-fragment {setting}"));
        router.send("e0", &datagram(1, 99, later));
        assert_eq!(router.sent(expected).len(), 1, "{setting}");
    }
}

#[test]
fn what_is_for_the_router_itself_stays_here() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin acl index 1 permit",
            "abf policy add id 1 acl 1 via 10.0.2.2 e2",
            "abf attach ip4 policy 1 e0",
        ],
    );
    let own = (sources::host(1), Ipv4Addr::new(10, 0, 3, 1));
    let udp = [0, 1, 0, 9, 0, 8, 0, 0];
    router.send("e0", &frames::ip4(0, own, frames::UDP, Fragment::default(), &udp));
    assert!(router.sent("e2").is_empty());
    // A header that is cut off meets no policy, and no node panics.
    for length in 14..34 {
        let frame = datagram(1, 80, Fragment::default());
        router.send("e0", &frame[..length]);
    }
    assert!(router.sent("e2").is_empty());
}

#[test]
fn mistakes_are_refused_and_what_is_written_can_be_typed_again() {
    let mut router = router();
    run(
        &mut router,
        &[
            "set acl-plugin acl index 7 permit ipv6",
            "abf policy add id 1 acl 7 via 2001:db8:2::2 e2",
            "abf policy add id 2 match dscp 46 via 10.0.2.2 e2",
            "abf attach ip6 policy 1 priority 4 e0",
        ],
    );
    let config = router.cli("show running-config");
    for line in
        ["abf policy add id 1 acl 7 via 2001:db8:2::2 e2", "abf attach ip6 policy 1 priority 4 e0"]
    {
        assert!(config.lines().any(|written| written == line), "{config}");
    }
    for (line, why) in [
        ("abf policy add id 3 acl 8 via 10.0.2.2 e2", "no access list 8"),
        ("abf policy add id 3 acl 7 match dscp 1 via 10.0.2.2 e2", "says what matches"),
        ("abf policy add id 2 acl 7 via 10.0.3.2 e3", "exists already"),
        ("abf policy add id 1 acl 7 drop-if-unusable via 10.0.3.2 e3", "exists already"),
        ("abf policy add id 3 acl 7 via 10.0.2.2 e2 next-hop-table 9", "looked up in no table"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
    // The same list again joins paths, as the same match does.
    router.cli("abf policy add id 1 acl 7 via 2001:db8:3::2 e3");
    let written = router.cli("show running-config");
    let joined = "abf policy add id 1 acl 7 via 2001:db8:2::2 e2 via 2001:db8:3::2 e3";
    assert!(written.contains(joined), "{written}");
}
