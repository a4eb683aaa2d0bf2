//! Layer 2 tunnels as operators type them, and a layer 2 service of two routers: what goes into one comes out of the other.

use quiver_testkit::Router;

const BROADCAST: [u8; 6] = [0xff; 6];

/// The n-th station's address.
fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0xaa, n]
}

/// A frame of so many bytes.
fn frame(to: [u8; 6], from: [u8; 6], bytes: usize) -> Vec<u8> {
    let mut frame = [to, from].concat();
    frame.extend([0x88, 0xb5]); // for local experiments (IEEE 802)
    frame.resize(bytes, 0xa5);
    frame
}

/// A router whose port to the core is `core`, and whose ports e0, e1, … are in bridge domain 1.
fn bare(number: u8, ports: usize) -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_bridge::register,
        quiver_srv6::register,
        quiver_superblocks::register,
    ]);
    router.interface("core");
    for line in [
        format!("set interface ip address core 2001:db8::{number}/64"),
        format!("set interface mac address core 02:00:00:00:cc:0{number}"),
        format!("set sr encaps source addr fc00:0:{number}::1"),
        "create bridge-domain 1".to_owned(),
    ] {
        router.cli(&line);
    }
    for port in 0..ports {
        router.interface(&format!("e{port}"));
        router.cli(&format!("set interface l2 bridge e{port} 1"));
    }
    router
}

/// Router `number` with a tunnel to each of `others`: End.DT2U at `fc00:0:N:M::1`, End.DT2M behind `fc00:0:N:M:d2::/112`,
/// for what router M sends to router N.
fn edge(number: u8, others: &[u8], ports: usize) -> Router {
    let mut router = bare(number, ports);
    for (place, other) in others.iter().enumerate() {
        for line in [
            format!("ip neighbor core 2001:db8::{other} 02:00:00:00:cc:0{other}"),
            format!("ip route add fc00:0:{other}::/48 via 2001:db8::{other} core"),
            format!("sr policy add bsid fc00:0:{number}::a{other} next fc00:0:{other}:{number}::1 encap.red"),
            format!(
                "sr policy add bsid fc00:0:{number}::b{other} next fc00:0:{other}:{number}:d2:: encap.red"
            ),
            format!(
                "create sr l2-tunnel unicast bsid fc00:0:{number}::a{other} flood bsid fc00:0:{number}::b{other}"
            ),
            format!("set interface state sr_l2_tunnel{place} up"),
            format!("set interface l2 bridge sr_l2_tunnel{place} 1"),
            format!("sr localsid address fc00:0:{number}:{other}::1 behavior end.dt2u sr_l2_tunnel{place}"),
            format!(
                "sr localsid address fc00:0:{number}:{other}:d2::/112 behavior end.dt2m sr_l2_tunnel{place}"
            ),
        ] {
            router.cli(&line);
        }
    }
    router
}

/// What a router has sent into the core goes to the routers it is for; how many packets that were.
fn carry(routers: &mut [Router]) -> usize {
    let mut carried = 0;
    loop {
        let mut sent = Vec::new();
        for router in routers.iter_mut() {
            sent.append(&mut router.sent("core"));
        }
        if sent.is_empty() {
            return carried;
        }
        carried += sent.len();
        for packet in sent {
            let to = usize::from(packet[5]) - 1;
            routers[to].send("core", &packet);
        }
    }
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
            "sr policy add bsid fc00:0:{router}::c{other} next fc00:0:{other}:{router}:d2::5 encap.red"
        ));
        own.cli(&format!("set sr l2-tunnel sr_l2_tunnel0 flood group 5 bsid fc00:0:{router}::c{other}"));
    }
    routers[0].send("e1", &frame(BROADCAST, mac(1), 60));
    carry(&mut routers);
    assert_eq!(["e0", "e1"].map(|port| routers[1].sent(port).len()), [1, 0], "not back to the segment");
    routers[0].send("e0", &frame(BROADCAST, mac(2), 60));
    carry(&mut routers);
    assert_eq!(["e0", "e1"].map(|port| routers[1].sent(port).len()), [1, 1], "from elsewhere, it is");
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
    // An ARP request of a station behind router 1 is answered by router 2, by the policy for one station.
    let mut request = frame(BROADCAST, mac(1), 14);
    request[12..].copy_from_slice(&[8, 6]);
    request.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    request.extend([&mac(1)[..], &[192, 0, 2, 9], &[0; 6], &[192, 0, 2, 1]].concat());
    request.resize(60, 0);
    routers[0].sent("e0");
    routers[0].send("e0", &request);
    carry(&mut routers);
    let answers = routers[0].sent("e0");
    assert_eq!(answers.len(), 1);
    assert_eq!(&answers[0][..12], [mac(1), [2, 0, 0, 0, 0xaa, 0xf0]].concat());
    assert_eq!(&answers[0][20..22], [0, 2], "a reply");
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
fn a_vlan_of_a_tunnel_is_a_port_like_any_vlan() {
    let mut routers = [edge(1, &[2, 3], 1), edge(2, &[1], 1)];
    for line in [
        "set interface l3 sr_l2_tunnel0",
        "create sub-interfaces sr_l2_tunnel0 100 dot1q 100 exact-match",
        "set interface state sr_l2_tunnel0.100 up",
        "set interface l2 bridge sr_l2_tunnel0.100 1",
        "set interface l2 tag-rewrite sr_l2_tunnel0.100 pop 1",
        "set interface state sr_l2_tunnel1 up",
        "set sr l2-tunnel sr_l2_tunnel1 unicast del",
        "set sr l2-tunnel sr_l2_tunnel1 flood off",
    ] {
        routers[0].cli(line);
    }
    let tagged = |from, to| {
        let mut tagged = frame(to, from, 60);
        tagged.splice(12..12, [0x81, 0, 0, 100]);
        tagged
    };
    routers[0].send("e0", &frame(BROADCAST, mac(1), 60));
    assert_eq!(carry(&mut routers), 1);
    assert_eq!(routers[1].sent("e0"), [tagged(mac(1), BROADCAST)]);
    assert_eq!(routers[0].count("sr-pl-l2-tunnel", "flood-off"), 1, "what e0 sends is for both");
    // To all by End.DT2M, to a station by End.DT2U; and not back into the core.
    for to in [BROADCAST, mac(1)] {
        routers[1].send("e0", &tagged(mac(2), to));
        carry(&mut routers);
        assert_eq!(routers[0].sent("e0"), [frame(to, mac(2), 60)]);
    }
    assert_eq!(
        routers[0].count("sr-pl-l2-tunnel", "flood-off"),
        1,
        "what the core sends is not for the core"
    );
}

#[test]
fn a_tunnel_that_is_cross_connected_is_a_pseudowire() {
    let mut routers = [edge(1, &[2], 2), edge(2, &[1], 1)];
    routers[0].cli("set interface l2 xconnect e1 sr_l2_tunnel0");
    routers[0].cli("set interface l2 xconnect sr_l2_tunnel0 e1");
    for to in [BROADCAST, mac(9)] {
        let sent = frame(to, mac(1), 100);
        routers[0].send("e1", &sent);
        carry(&mut routers);
        assert_eq!(routers[1].sent("e0"), [sent]);
        let back = frame(to, mac(2), 100);
        routers[1].send("e0", &back);
        carry(&mut routers);
        assert_eq!(routers[0].sent("e1"), [back]);
    }
    assert!(routers[0].sent("e0").is_empty());
}

#[test]
fn frames_that_do_not_fit_with_the_segments_are_counted() {
    let mut routers = [edge(1, &[2], 1), edge(2, &[1], 1)];
    routers[0].cli("set interface mtu packet 1500 core");
    routers[0].send("e0", &frame(BROADCAST, mac(1), 1460));
    assert_eq!(carry(&mut routers), 1);
    routers[0].send("e0", &frame(BROADCAST, mac(1), 1461));
    assert_eq!(carry(&mut routers), 0);
    assert_eq!(routers[0].count("sr-pl-rewrite-encaps-l2", "frame-too-big"), 1);
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

#[test]
fn a_tunnel_that_is_down_or_has_no_policy_says_so() {
    let mut routers = [edge(1, &[2], 1), edge(2, &[1], 1)];
    routers[1].cli("set interface state sr_l2_tunnel0 down");
    routers[0].send("e0", &frame(BROADCAST, mac(1), 60));
    carry(&mut routers);
    assert_eq!(routers[1].count("sr-localsid-dt2m", "interface-down"), 1);
    assert_eq!(routers[1].json("show sr localsids")[1]["bad-packets"], 1);
    routers[0].cli("set sr l2-tunnel sr_l2_tunnel0 flood del");
    routers[0].send("e0", &frame(BROADCAST, mac(1), 60));
    assert_eq!(carry(&mut routers), 1);
    assert_eq!(routers[1].count("sr-localsid-dt2u", "interface-down"), 1, "as one to a station");
    routers[0].cli("set sr l2-tunnel sr_l2_tunnel0 unicast del");
    routers[0].send("e0", &frame(BROADCAST, mac(1), 60));
    assert_eq!(carry(&mut routers), 0);
    assert_eq!(routers[0].count("sr-pl-l2-tunnel", "tunnel-without-policy"), 1);
}

#[test]
fn tunnels_that_lead_back_into_one_another_end() {
    let mut router = bare(1, 1);
    for line in [
        "sr policy add bsid fc00:0:1::b1 next fc00:0:1::d1 encap.red",
        "sr policy add bsid fc00:0:1::b2 next fc00:0:1::d2 encap.red",
        "create sr l2-tunnel unicast bsid fc00:0:1::b1",
        "create sr l2-tunnel unicast bsid fc00:0:1::b2",
        "sr localsid address fc00:0:1::d1 behavior end.dt2u sr_l2_tunnel1",
        "sr localsid address fc00:0:1::d2 behavior end.dt2u sr_l2_tunnel0",
        "set interface state sr_l2_tunnel0 up",
        "set interface state sr_l2_tunnel1 up",
        // An operator takes them out of the group that keeps what came from the core out of it.
        "set interface l2 bridge sr_l2_tunnel0 1 0",
        "set interface l2 bridge sr_l2_tunnel1 1 0",
        "create bridge-domain 2 learn 0",
        "set interface l2 bridge e0 2",
        "set interface l2 bridge sr_l2_tunnel0 2 0",
        "set interface l2 bridge sr_l2_tunnel1 2 0",
    ] {
        router.cli(line);
    }
    router.send("e0", &frame(BROADCAST, mac(1), 60));
    assert!(router.count("sr-localsid-dt2u", "loop") > 0);
}

fn configured(router: &mut Router) -> Vec<String> {
    let all = router.cli("show running-config");
    all.lines()
        .filter(|line| line.contains("l2-tunnel") || line.contains("l2_tunnel"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn tunnels_are_written_back_as_they_were_made() {
    let mut router = edge(1, &[2, 3], 0);
    for line in [
        "create sr l2-tunnel instance 9 mac 02:fe:00:00:00:07",
        "set sr l2-tunnel sr_l2_tunnel0 flood group 5 bsid fc00:0:1::b3",
        "set sr l2-tunnel sr_l2_tunnel1 flood off",
        "set sr l2-tunnel sr_l2_tunnel1 flood group 7 off",
        "set interface l2 bridge sr_l2_tunnel1 1 9",
        "set interface l2 bridge sr_l2_tunnel9 2 0",
        "sr localsid address fc00:0:9::/64 behavior end.dt2m sr_l2_tunnel9 arg-fe2 16",
    ] {
        router.cli(line);
    }
    let all = router.cli("show running-config");
    let mut again = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_bridge::register,
        quiver_srv6::register,
    ]);
    again.interface("core");
    let own: Vec<&str> = all.lines().filter(|line| !line.starts_with("create test interface")).collect();
    again.script("running", &own.join("\n")).expect("what was written back is taken");
    let (before, after) = (configured(&mut router), configured(&mut again));
    assert_eq!(after, before);
    for line in [
        "create sr l2-tunnel instance 0",
        "create sr l2-tunnel mac 02:fe:00:00:00:07 instance 9",
        "set sr l2-tunnel sr_l2_tunnel0 unicast bsid fc00:0:1::a2",
        "set sr l2-tunnel sr_l2_tunnel0 flood group 5 bsid fc00:0:1::b3",
        "set sr l2-tunnel sr_l2_tunnel1 flood off",
        "set sr l2-tunnel sr_l2_tunnel1 flood group 7 off",
        "set interface l2 bridge sr_l2_tunnel0 1",
        "set interface l2 bridge sr_l2_tunnel1 1 9",
        "set interface l2 bridge sr_l2_tunnel9 2 0",
        "sr localsid address fc00:0:1:2::1 behavior end.dt2u sr_l2_tunnel0",
        "sr localsid address fc00:0:1:2:d2::/112 behavior end.dt2m sr_l2_tunnel0",
        "sr localsid address fc00:0:9::/64 behavior end.dt2m sr_l2_tunnel9 arg-fe2 16",
    ] {
        assert!(before.iter().any(|known| known == line), "{line} in {before:#?}");
    }
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = edge(1, &[2], 1);
    router.cli("sr policy add bsid fc00:0:1::f1 next fc00:0:2::e insert");
    let before = router.cli("show running-config");
    for (line, says) in [
        ("create sr l2-tunnel unicast bsid fc00:0:1::99", "no SR policy"),
        ("create sr l2-tunnel unicast bsid fc00:0:1::a2 flood bsid fc00:0:1::f1", "not for frames"),
        ("create sr l2-tunnel instance 0", "exists already"),
        ("create sr l2-tunnel mac 01:00:00:00:00:01", "group's address"),
        ("set sr l2-tunnel e0 unicast bsid fc00:0:1::a2", "e0 is no layer 2 tunnel"),
        ("set sr l2-tunnel sr_l2_tunnel0 unicast bsid fc00:0:1::99", "no SR policy"),
        ("set sr l2-tunnel sr_l2_tunnel0 flood bsid fc00:0:1::f1", "not for frames"),
        ("delete sr l2-tunnel e0", "no layer 2 tunnel"),
        ("sr policy del bsid fc00:0:1::a2", "a layer 2 tunnel sends by SR policy"),
        ("sr policy del bsid fc00:0:1::b2", "a layer 2 tunnel sends by SR policy"),
        ("sr localsid address fc00:0:1::77 behavior end.dt2u e0", "no layer 2 tunnel"),
        ("sr localsid address fc00:0:7::/64 behavior end.dt2m sr_l2_tunnel0", "64 bits is longer than 32"),
        (
            "sr localsid address fc00:0:7::/112 behavior end.dt2m sr_l2_tunnel0 arg-fe2 17",
            "no room for 17 bits",
        ),
        ("show sr l2-tunnels e0", "no layer 2 tunnel"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn a_tunnel_that_goes_takes_its_sids_along_and_lets_its_policies_go() {
    let mut router = edge(1, &[2, 3], 1);
    let shown = router.json("show sr l2-tunnels");
    assert_eq!(shown.as_array().map(Vec::len), Some(2), "{shown}");
    assert_eq!(shown[0]["unicast"], "fc00:0:1::a2");
    assert_eq!(shown[0]["flood"], "fc00:0:1::b2");
    router.cli("delete sr l2-tunnel sr_l2_tunnel0");
    assert_eq!(router.json("show sr localsids").as_array().map(Vec::len), Some(2));
    router.cli("sr policy del bsid fc00:0:1::a2");
    router.cli("sr policy del bsid fc00:0:1::b2");
    assert!(router.refused("sr policy del bsid fc00:0:1::a3").contains("layer 2 tunnel"));
    router.cli("set sr l2-tunnel sr_l2_tunnel1 unicast del");
    router.cli("sr policy del bsid fc00:0:1::a3");
    router.send("e0", &frame(BROADCAST, mac(1), 60));
    assert_eq!(router.sent("core").len(), 1);
    let name = router.json("create sr l2-tunnel");
    assert_eq!(name["name"], "sr_l2_tunnel0");
}
