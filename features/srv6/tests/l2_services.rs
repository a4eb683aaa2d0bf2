//! A layer 2 service of several routers: what goes into one comes out of the others.

use crate::edges;

use quiver_testkit::Router;

use edges::{BROADCAST, carry, edge, frame, mac};

/// Who has an address?
fn arp_request(from: [u8; 6], own: [u8; 4], wanted: [u8; 4]) -> Vec<u8> {
    let mut request = frame(BROADCAST, from, 14);
    request[12..].copy_from_slice(&[8, 6]);
    request.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    request.extend([&from[..], &own, &[0; 6], &wanted].concat());
    request.resize(60, 0);
    request
}

#[test]
fn stations_of_two_routers_find_each_other_and_then_speak_by_one_policy() {
    let mut routers = [edge(1, &[2], 2), edge(2, &[1], 1)];
    let question = frame(BROADCAST, mac(1), 60);
    routers[0].send("e0", &question);
    assert_eq!(carry(&mut routers), 1);
    assert_eq!(routers[0].sent("e1"), std::slice::from_ref(&question));
    assert_eq!(routers[1].sent("e0"), [question]);
    let answer = frame(mac(1), mac(2), 60);
    routers[1].send("e0", &answer);
    assert_eq!(carry(&mut routers), 1);
    assert_eq!(routers[0].sent("e0"), [answer]);
    assert!(routers[0].sent("e1").is_empty());
    let more = frame(mac(2), mac(1), 1400);
    routers[0].send("e0", &more);
    carry(&mut routers);
    assert_eq!(routers[1].sent("e0"), [more]);
    assert!(routers[0].sent("e1").is_empty());
    // Router 1: one frame flooded, one to a station; router 2: likewise one to a station.
    let policies = routers[0].json("show sr policies")["policies"].clone();
    assert_eq!([0, 1].map(|place: usize| policies[place]["packets"].as_u64()), [Some(1), Some(1)]);
    let sids = routers[1].json("show sr localsids");
    assert_eq!([0, 1].map(|place: usize| sids[place]["packets"].as_u64()), [Some(1), Some(1)]);
    let totals = routers[0].totals("sr_l2_tunnel0");
    assert_eq!((totals.tx_packets, totals.tx_bytes), (2, 1460));
    assert_eq!((totals.rx_packets, totals.rx_bytes), (1, 60));
}

#[test]
fn what_came_from_the_core_never_goes_back_to_it() {
    let mut routers = [edge(1, &[2, 3], 1), edge(2, &[1, 3], 1), edge(3, &[1, 2], 1)];
    // Broadcast: one copy to each, and none of them goes on.
    routers[0].send("e0", &frame(BROADCAST, mac(1), 60));
    assert_eq!(carry(&mut routers), 2);
    assert_eq!([1, 2].map(|at: usize| routers[at].sent("e0").len()), [1, 1]);
    // A station that nobody knows: the same, though routers 2 and 3 know nothing of it.
    routers[0].send("e0", &frame(mac(9), mac(1), 60));
    assert_eq!(carry(&mut routers), 2);
    assert_eq!([1, 2].map(|at: usize| routers[at].sent("e0").len()), [1, 1]);
    // Router 1 sends to a station that router 2 takes to be behind router 3.
    routers[2].send("e0", &frame(BROADCAST, mac(3), 60));
    carry(&mut routers);
    routers[0].cli("l2fib add 02:00:00:00:aa:03 1 sr_l2_tunnel0 static");
    routers[0].send("e0", &frame(mac(3), mac(1), 60));
    assert_eq!(carry(&mut routers), 1);
    assert_eq!(routers[1].count("l2-fwd", "split-horizon"), 1);
}

#[test]
fn a_frame_of_an_ethernet_segment_does_not_come_back_to_it_by_another_router() {
    let mut routers = [edge(1, &[2], 2), edge(2, &[1], 2)];
    for (router, other) in [(1, 2), (2, 1)] {
        let own = &mut routers[router - 1];
        // Port e1 of both is on the segment that both call 5.
        own.cli("set interface l2 bridge e1 1 5");
        own.cli(&format!(
            "sr policy add bsid fc00:0:{router}::c{other} next fc00:0:{other}:{router}:d2::5 \
             encap.red"
        ));
        own.cli(&format!(
            "set sr l2-tunnel sr_l2_tunnel0 flood group 5 bsid fc00:0:{router}::c{other}"
        ));
    }
    routers[0].send("e1", &frame(BROADCAST, mac(1), 60));
    carry(&mut routers);
    assert_eq!(
        ["e0", "e1"].map(|port| routers[1].sent(port).len()),
        [1, 0],
        "not back to the segment"
    );
    routers[0].send("e0", &frame(BROADCAST, mac(2), 60));
    carry(&mut routers);
    assert_eq!(
        ["e0", "e1"].map(|port| routers[1].sent(port).len()),
        [1, 1],
        "from elsewhere, it is"
    );
    // An argument for a group that nobody has excludes nobody.
    routers[0].cli("sr policy add bsid fc00:0:1::d2 next fc00:0:2:1:d2::7 encap.red");
    routers[0].cli("set sr l2-tunnel sr_l2_tunnel0 flood group 5 bsid fc00:0:1::d2");
    routers[0].send("e1", &frame(BROADCAST, mac(1), 60));
    carry(&mut routers);
    assert_eq!(["e0", "e1"].map(|port| routers[1].sent(port).len()), [1, 1]);
}

#[test]
fn one_tunnel_with_a_spray_policy_floods_to_all_and_the_others_leave_it_to_it() {
    let mut routers = [edge(1, &[2, 3], 1), edge(2, &[1], 1), edge(3, &[1], 1)];
    for line in [
        "sr policy add bsid fc00:0:1::e next fc00:0:2:1:d2:: spray encap.red",
        "sr policy mod bsid fc00:0:1::e add sl next fc00:0:3:1:d2::",
        "set sr l2-tunnel sr_l2_tunnel0 flood bsid fc00:0:1::e",
        "set sr l2-tunnel sr_l2_tunnel1 flood off",
    ] {
        routers[0].cli(line);
    }
    routers[0].send("e0", &frame(BROADCAST, mac(1), 60));
    assert_eq!(carry(&mut routers), 2);
    assert_eq!([1, 2].map(|at: usize| routers[at].sent("e0").len()), [1, 1]);
    assert_eq!(routers[0].count("sr-pl-l2-tunnel", "flood-off"), 1);
    // Answers come back by tunnels of their own.
    routers[2].send("e0", &frame(mac(1), mac(3), 60));
    carry(&mut routers);
    assert_eq!(routers[0].sent("e0").len(), 1);
    routers[0].send("e0", &frame(mac(3), mac(1), 60));
    assert_eq!(carry(&mut routers), 1);
    assert_eq!([1, 2].map(|at: usize| routers[at].sent("e0").len()), [0, 1]);
}

#[test]
fn the_routed_interface_of_a_domain_hears_what_is_flooded_from_the_core_if_it_is_for_it() {
    let mut routers = [edge(1, &[2], 1), edge(2, &[1], 1)];
    for line in [
        "create loopback interface instance 0 mac 02:00:00:00:aa:f0",
        "set interface l2 bridge loop0 1 bvi",
        "set interface ip address loop0 192.0.2.1/24",
        "set interface state loop0 up",
    ] {
        routers[1].cli(line);
    }
    // Its station is not known to router 1: End.DT2M gets frames to it, and those to others.
    routers[0].send("e0", &frame([2, 0, 0, 0, 0xaa, 0xf0], mac(1), 60));
    carry(&mut routers);
    assert_eq!(routers[1].totals("loop0").rx_packets, 1);
    routers[0].send("e0", &frame(mac(9), mac(1), 60));
    carry(&mut routers);
    assert_eq!(routers[1].totals("loop0").rx_packets, 1);
    // An ARP request of a station behind router 1 is answered by router 2, by the policy for one
    // station.
    routers[0].sent("e0");
    routers[0].send("e0", &arp_request(mac(1), [192, 0, 2, 9], [192, 0, 2, 1]));
    carry(&mut routers);
    let answers = routers[0].sent("e0");
    assert_eq!(answers.len(), 1);
    assert_eq!(&answers[0][..12], [mac(1), [2, 0, 0, 0, 0xaa, 0xf0]].concat());
    assert_eq!(&answers[0][20..22], [0, 2], "a reply");
}

#[test]
fn what_end_dt2m_brings_for_a_station_is_not_flooded_where_unknown_stations_are_not() {
    let mut routers = [edge(1, &[2], 2), edge(2, &[1], 3)];
    routers[1].cli("set bridge-domain uu-flood 1 disable");
    let flooded = |routers: &mut [Router; 2], to| {
        routers[0].send("e0", &frame(to, mac(1), 60));
        assert_eq!(carry(&mut *routers), 1, "router 1 knows of no station there");
        ["e0", "e1", "e2"].map(|port| routers[1].sent(port).len())
    };
    assert_eq!(flooded(&mut routers, mac(9)), [0; 3]);
    assert_eq!(routers[1].count("l2-flood", "unknown-unicast"), 1);
    assert_eq!(flooded(&mut routers, BROADCAST), [1; 3], "a group is flooded");
    // A station that router 2 knows gets it, unless the argument excludes its port.
    routers[1].cli("l2fib add 02:00:00:00:aa:09 1 e1 static");
    assert_eq!(flooded(&mut routers, mac(9)), [0, 1, 0]);
    routers[1].cli("set interface l2 bridge e1 1 5");
    assert_eq!(flooded(&mut routers, mac(9)), [0, 1, 0]);
    routers[0].cli("sr policy add bsid fc00:0:1::d1 next fc00:0:2:1:d2::5 encap.red");
    routers[0].cli("set sr l2-tunnel sr_l2_tunnel0 flood bsid fc00:0:1::d1");
    assert_eq!(flooded(&mut routers, mac(9)), [0; 3]);
    assert_eq!(routers[1].count("l2-flood", "no-port"), 1);
    routers[1].cli("set bridge-domain uu-flood 1");
    assert_eq!(flooded(&mut routers, mac(9)), [1, 0, 1], "all but the excluded port");
    // A filter lets nothing through.
    for line in ["set bridge-domain uu-flood 1 disable", "l2fib add 02:00:00:00:aa:08 1 filter"] {
        routers[1].cli(line);
    }
    assert_eq!(flooded(&mut routers, mac(8)), [0; 3]);
    // Where groups are not flooded, stations may be.
    routers[1].cli("set bridge-domain uu-flood 1");
    routers[1].cli("set bridge-domain flood 1 disable");
    assert_eq!(flooded(&mut routers, BROADCAST), [0; 3]);
    assert_eq!(flooded(&mut routers, mac(7)), [1, 0, 1]);
}

#[test]
fn questions_that_end_dt2m_brings_are_answered_where_the_domain_knows_the_answer() {
    let mut routers = [edge(1, &[2], 1), edge(2, &[1], 2)];
    for line in [
        "set bridge-domain arp term 1",
        "set bridge-domain arp entry 1 192.0.2.7 02:00:00:00:aa:07",
    ] {
        routers[1].cli(line);
    }
    for (host, port, answers) in [(7, 0, 1), (8, 1, 0)] {
        routers[0].send("e0", &arp_request(mac(1), [192, 0, 2, 9], [192, 0, 2, host]));
        carry(&mut routers);
        assert_eq!(
            ["e0", "e1"].map(|at| routers[1].sent(at).len()),
            [port; 2],
            "flooded if it is not known"
        );
        let sent = routers[0].sent("e0");
        assert_eq!(sent.len(), answers);
        assert!(
            sent.iter().all(|frame| frame[..6] == mac(1) && frame[20..22] == [0, 2]),
            "a reply"
        );
    }
    // What is flooded afterwards still leaves out whom the argument excludes.
    routers[1].cli("set interface l2 bridge e1 1 5");
    routers[0].cli("sr policy add bsid fc00:0:1::d1 next fc00:0:2:1:d2::5 encap.red");
    routers[0].cli("set sr l2-tunnel sr_l2_tunnel0 flood bsid fc00:0:1::d1");
    routers[0].send("e0", &arp_request(mac(1), [192, 0, 2, 9], [192, 0, 2, 8]));
    carry(&mut routers);
    assert_eq!(["e0", "e1"].map(|at| routers[1].sent(at).len()), [1, 0]);
}

#[test]
fn many_routers_may_send_to_one_sid_and_each_is_known_by_its_source() {
    let mut routers = [edge(1, &[2, 3], 2), edge(2, &[1, 3], 1), edge(3, &[1, 2], 1)];
    // What router 3 sends goes to the SIDs of router 1 that router 2 sends to.
    for (at, line) in [
        (2, "sr policy mod bsid fc00:0:3::a1 add sl next fc00:0:1:2::1"),
        (2, "sr policy mod bsid fc00:0:3::a1 del sl index 0"),
        (2, "sr policy mod bsid fc00:0:3::b1 add sl next fc00:0:1:2:d2::"),
        (2, "sr policy mod bsid fc00:0:3::b1 del sl index 0"),
        (0, "sr localsid del address fc00:0:1:2::1"),
        (0, "sr localsid del address fc00:0:1:2:d2::/112"),
        (
            0,
            "sr localsid address fc00:0:1:2::1 behavior end.dt2u sr_l2_tunnel0 from fc00:0:3::1 \
             sr_l2_tunnel1",
        ),
        (
            0,
            "sr localsid address fc00:0:1:2:d2::/112 behavior end.dt2m sr_l2_tunnel0 from \
             fc00:0:3::1 sr_l2_tunnel1",
        ),
    ] {
        routers[at].cli(line);
    }
    for sender in [1, 2] {
        routers[sender].send("e0", &frame(BROADCAST, mac(2 + sender as u8), 60));
        assert_eq!(carry(&mut routers), 2, "one to each, and nothing goes on");
        assert_eq!(["e0", "e1"].map(|port| routers[0].sent(port).len()), [1, 1]);
        assert_eq!(routers[3 - sender].sent("e0").len(), 1);
    }
    // Router 1 knows who is behind whom, by the broadcast and by what comes for one station.
    for (station, at) in [(3, 1), (4, 2)] {
        routers[0].send("e0", &frame(mac(station), mac(1), 60));
        assert_eq!(carry(&mut routers), 1, "to the router where it is");
        assert_eq!(routers[at].sent("e0").len(), 1);
        routers[at].send("e0", &frame(mac(1), mac(station), 60));
        assert_eq!(carry(&mut routers), 1);
        assert_eq!(["e0", "e1"].map(|port| routers[0].sent(port).len()), [1, 0]);
    }
    let sids = routers[0].json("show sr localsids");
    let packets: u64 =
        sids.as_array().into_iter().flatten().filter_map(|sid| sid["packets"].as_u64()).sum();
    assert_eq!(packets, 4);
    let rx = ["sr_l2_tunnel0", "sr_l2_tunnel1"].map(|name| routers[0].totals(name).rx_packets);
    assert_eq!(rx, [2, 2]);
}

#[test]
fn frames_of_several_remotes_in_one_vector_are_told_apart() {
    let mut routers = [edge(1, &[2, 3], 1), edge(2, &[1], 1), edge(3, &[1], 1)];
    for line in [
        "sr localsid del address fc00:0:1:2:d2::/112",
        "sr localsid address fc00:0:1:2:d2::/112 behavior end.dt2m sr_l2_tunnel0 from fc00:0:3::1 \
         sr_l2_tunnel1",
    ] {
        routers[0].cli(line);
    }
    routers[2].cli("sr policy mod bsid fc00:0:3::b1 add sl next fc00:0:1:2:d2::");
    routers[2].cli("sr policy mod bsid fc00:0:3::b1 del sl index 0");
    // The first vectors tell the router which chain of nodes they go by.
    for round in 0..8 {
        for _ in 0..20 {
            for sender in [1, 2] {
                routers[sender].send("e0", &frame(BROADCAST, mac(2 + sender as u8), 60));
                for packet in routers[sender].sent("core") {
                    routers[0].inject("core", &packet);
                }
            }
        }
        routers[0].run();
        assert_eq!(routers[0].sent("e0").len(), 40, "{round}");
    }
    let known = routers[0].cli("show l2fib all");
    for (station, tunnel) in
        [("02:00:00:00:aa:03", "sr_l2_tunnel0"), ("02:00:00:00:aa:04", "sr_l2_tunnel1")]
    {
        let line = known.lines().find(|line| line.contains(station)).unwrap_or_default();
        assert!(line.contains(tunnel), "{known}");
    }
}

#[test]
fn tags_pass_as_they_are() {
    let mut routers = [edge(1, &[2], 1), edge(2, &[1], 1)];
    let mut tagged = frame(BROADCAST, mac(1), 60);
    tagged.splice(12..12, [0x88, 0xa8, 0, 9, 0x81, 0, 0, 100]);
    routers[0].send("e0", &tagged);
    carry(&mut routers);
    assert_eq!(routers[1].sent("e0"), [tagged]);
}

#[test]
fn a_station_that_moves_to_the_other_side_is_found_there() {
    let mut routers = [edge(1, &[2], 1), edge(2, &[1], 1)];
    for place in [0, 1, 0] {
        routers[place].send("e0", &frame(BROADCAST, mac(1), 60));
        carry(&mut routers);
        let other = 1 - place;
        routers[other].sent("e0");
        routers[other].send("e0", &frame(mac(1), mac(2 + other as u8), 60));
        carry(&mut routers);
        assert_eq!(routers[place].sent("e0").len(), 1);
        routers[other].sent("e0");
        // A source is asked for once in a while only.
        routers.iter_mut().for_each(|router| router.advance(std::time::Duration::from_secs(1)));
    }
}
