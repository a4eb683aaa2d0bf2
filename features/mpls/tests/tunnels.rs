//! Tunnels over labels: packets and frames that a tunnel's interface sends, and what comes back.

use crate::routes::{frame_of, ip4, labelled, router, stack_of};

/// An Ethernet frame between two stations.
fn station_frame(to: u8, from: u8) -> Vec<u8> {
    let addresses = [[2, 0, 0, 0, 9, to], [2, 0, 0, 0, 9, from]];
    [addresses.as_flattened(), &[0x12, 0x34], &[0x5a; 60]].concat()
}

#[test]
fn frames_cross_from_a_port_to_a_wire_of_labels_and_back() {
    for (word, control) in [("", &[][..]), ("control-word ", &[0; 4][..])] {
        let mut router = router();
        router.interface("e2");
        for line in [
            &format!("mpls tunnel l2-only {word}via 10.1.0.2 e1 out-labels 100 200"),
            "set interface state mpls-tunnel0 up",
            "set interface l2 xconnect e2 mpls-tunnel0",
            "set interface l2 xconnect mpls-tunnel0 e2",
            "mpls local-label add 500 eos via l2-input-on mpls-tunnel0",
        ] {
            router.cli(line);
        }
        let frame = station_frame(1, 2);
        router.send("e2", &frame);
        let sent = router.sent("e1");
        assert_eq!(sent.len(), 1);
        assert_eq!(stack_of(&sent[0]), [(100, 255, false), (200, 255, true)]);
        assert_eq!(sent[0][22..], [control, &frame].concat());
        let back = station_frame(2, 1);
        router.send("e1", &labelled(1, &[(500, 9)], &[control, &back].concat()));
        assert_eq!(router.sent("e2"), [back]);
        let totals = router.totals("mpls-tunnel0");
        assert_eq!((totals.tx_packets, totals.rx_packets), (1, 1));
        router.cli("mpls tunnel set mpls-tunnel0 del");
        router.send("e2", &frame);
        assert_eq!(router.count("mpls-tunnel", "no-path"), 1);
    }
}

#[test]
fn a_route_into_a_tunnel_puts_its_labels_on_packets() {
    let mut router = router();
    for line in [
        "mpls tunnel add via 10.1.0.2 e1 out-labels 100",
        "set interface state mpls-tunnel0 up",
        "set interface ip address mpls-tunnel0 10.9.0.1/30",
        "ip route add 203.0.113.0/24 via mpls-tunnel0",
        "set interface mtu mpls 600 e1",
    ] {
        router.cli(line);
    }
    router.send("e0", &frame_of(0, &ip4([203, 0, 113, 9], 64, 40)));
    let sent = router.sent("e1");
    assert_eq!(stack_of(&sent[0]), [(100, 255, true)]);
    assert_eq!(sent[0][18 + 8], 63, "one hop is counted, not two");
    // Longer than fits behind the label: fragments, each with its label.
    router.send("e0", &frame_of(0, &ip4([203, 0, 113, 9], 64, 1000)));
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|frame| stack_of(frame) == [(100, 255, true)] && frame.len() <= 614));
}

#[test]
fn a_tunnel_follows_the_route_to_its_next_hop() {
    let mut router = router();
    for line in [
        "ip route add 192.0.2.1/32 via 10.1.0.2 e1 out-labels 1000",
        "mpls tunnel l2-only via 192.0.2.1 out-labels 300",
        "set interface state mpls-tunnel0 up",
    ] {
        router.cli(line);
    }
    router.interface("e2");
    router.cli("set interface l2 xconnect e2 mpls-tunnel0");
    router.send("e2", &station_frame(1, 2));
    assert_eq!(stack_of(&router.sent("e1")[0]), [(1000, 255, false), (300, 255, true)]);
    router.cli("ip route replace 192.0.2.1/32 via 10.1.0.2 e1");
    router.send("e2", &station_frame(1, 2));
    assert_eq!(stack_of(&router.sent("e1")[0]), [(300, 255, true)]);
}

#[test]
fn a_policy_puts_its_segments_in_place_of_its_binding_label_and_on_what_is_steered() {
    let mut router = router();
    for line in [
        "mpls local-label add 16001 non-eos via 10.1.0.2 e1 out-labels 17001",
        "mpls local-label add 16001 eos via 10.1.0.2 e1 out-labels 17001",
        "sr mpls policy add bsid 40001 next 16001 next 16002 next 16003",
        "sr mpls steer l3 203.0.113.0/24 via sr policy bsid 40001",
    ] {
        router.cli(line);
    }
    let all = [(17001, 255, false), (16002, 255, false), (16003, 255, true)];
    router.send("e0", &frame_of(0, &ip4([203, 0, 113, 9], 64, 40)));
    assert_eq!(stack_of(&router.sent("e1")[0]), all);
    router.send("e0", &labelled(0, &[(40001, 9), (99, 7)], &ip4([203, 0, 113, 9], 64, 40)));
    let swapped = [(17001, 255, false), (16002, 255, false), (16003, 8, false), (99, 7, true)];
    assert_eq!(stack_of(&router.sent("e1")[0]), swapped);
    // The route of the first segment changes: so does the policy.
    router.cli("mpls local-label del 16001 non-eos");
    router.send("e0", &frame_of(0, &ip4([203, 0, 113, 9], 64, 40)));
    assert!(router.sent("e1").is_empty());
    router.cli("mpls local-label add 16001 non-eos via 10.1.0.2 e1");
    router.send("e0", &frame_of(0, &ip4([203, 0, 113, 9], 64, 40)));
    assert_eq!(stack_of(&router.sent("e1")[0]), all[1..]);
    assert!(router.refused("sr mpls policy del bsid 40001").contains("steered"));
    router.cli("sr mpls steer del l3 203.0.113.0/24");
    router.cli("sr mpls policy del bsid 40001");
}
