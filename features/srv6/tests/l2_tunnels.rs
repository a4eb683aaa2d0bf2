//! Layer 2 tunnels as operators type them.

use crate::edges;

use quiver_testkit::Router;

use edges::{BROADCAST, bare, carry, edge, frame, mac};

#[test]
fn tunnels_of_two_routers_have_different_addresses() {
    let mut routers = [edge(1, &[2, 3], 0), edge(2, &[1], 0)];
    let mut address = |router: usize, name: &str| {
        let id = routers[router].id(name);
        routers[router].engine().interface(id).expect("made above").row().mac
    };
    let all =
        [address(0, "sr_l2_tunnel0"), address(0, "sr_l2_tunnel1"), address(1, "sr_l2_tunnel0")];
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2], "{all:x?}");
    assert!(
        all.iter().all(|mac| mac[0] & 3 == 2),
        "locally administered, of one station: {all:x?}"
    );
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
fn a_tunnel_that_is_down_or_has_no_policy_says_so() {
    let mut routers = [edge(1, &[2], 1), edge(2, &[1], 1)];
    routers[1].cli("set interface state sr_l2_tunnel0 down");
    routers[0].send("e0", &frame(BROADCAST, mac(1), 60));
    carry(&mut routers);
    assert_eq!(routers[1].count("sr-localsid-dt2m", "interface-down"), 1);
    assert_eq!(routers[1].json("show sr localsids")[1]["bad_packets"], 1);
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
        "sr localsid address fc00:0:9:1::1 behavior end.dt2u sr_l2_tunnel9 from fc00:0:2::1 \
         sr_l2_tunnel0 from fc00:0:3::1 sr_l2_tunnel1",
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
    let own: Vec<&str> =
        all.lines().filter(|line| !line.starts_with("create test interface")).collect();
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
        "sr localsid address fc00:0:9:1::1 behavior end.dt2u sr_l2_tunnel9 from fc00:0:2::1 \
         sr_l2_tunnel0 from fc00:0:3::1 sr_l2_tunnel1",
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
        (
            "sr localsid address fc00:0:7::/64 behavior end.dt2m sr_l2_tunnel0",
            "64 bits is longer than 32",
        ),
        (
            "sr localsid address fc00:0:7::/112 behavior end.dt2m sr_l2_tunnel0 arg-fe2 17",
            "no room for 17 bits",
        ),
        ("show sr l2-tunnels e0", "no layer 2 tunnel"),
        (
            "sr localsid address fc00:0:1::77 behavior end.dt2u sr_l2_tunnel0 from fc00:0:2::1 e0",
            "no layer 2 tunnel",
        ),
        (
            "sr localsid address fc00:0:1::77 behavior end.dt2u sr_l2_tunnel0 from fc00:: \
             sr_l2_tunnel0 from fc00:: sr_l2_tunnel0",
            "twice",
        ),
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
