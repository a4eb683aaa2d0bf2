//! What operators type and see, and what happens when there is no room.

use quiver_core::{InterfaceId, WorkerId};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::{EtherType, EthernetHeader, Header, IpProtocol, MacAddress, ip4};

const FEATURES: [Register; 3] =
    [quiver_ethernet::register, quiver_ip::register, quiver_multicast::register];

fn router() -> Router {
    configured(Router::new(&FEATURES))
}

fn configured(mut router: Router) -> Router {
    for n in 0..4 {
        router.interface(&format!("e{n}"));
        router.cli(&format!("set interface ip address e{n} 10.0.{n}.1/24"));
        router.cli(&format!("set interface ip address e{n} 2001:db8:{n}::1/64"));
    }
    router
}

/// A frame with an IPv4 packet of so many bytes to a group.
fn frame(source: [u8; 4], group: [u8; 4], bytes: usize) -> Vec<u8> {
    let mut frame = vec![0x5a; 14 + bytes];
    let mac = MacAddress::for_ip4_multicast(group.into());
    EthernetHeader::new(mac, MacAddress([2, 0, 0, 0, 0, 9]), EtherType::IPV4)
        .write(&mut frame)
        .unwrap();
    let repr = ip4::Repr {
        ttl: 9,
        ..ip4::Repr::new(source.into(), group.into(), IpProtocol::UDP, bytes - 20)
    };
    repr.emit(&mut frame[14..]).unwrap();
    frame
}

const GROUP: [u8; 4] = [232, 1, 1, 1];
const SOURCE: [u8; 4] = [10, 0, 0, 9];

#[test]
fn paths_are_added_to_a_route_and_taken_from_it() {
    let mut router = router();
    router.cli("ip mroute add 232.1.1.1 via e0 Accept");
    router.cli("ip mroute add 232.1.1.1 via e1 Forward via e2 Forward ttl-threshold 5");
    router.cli("ip mroute add 232.1.1.1 via local Forward Signal");
    let shown = router.json("show ip mfib");
    assert_eq!(shown[0]["accept"], serde_json::json!(["e0"]));
    assert_eq!(
        shown[0]["forward"],
        serde_json::json!([
            { "interface": "e1", "ttl_threshold": 0, "state": "up" },
            { "interface": "e2", "ttl_threshold": 5, "state": "up" },
        ])
    );
    assert_eq!(shown[0]["flags"], serde_json::json!(["signal", "local"]));
    router.cli("ip mroute del 232.1.1.1 via e2 Forward via local Forward Signal");
    assert_eq!(router.json("show ip mfib")[0]["forward"][0]["interface"], "e1");
    router.cli("ip mroute del 232.1.1.1 via e0 Accept via e1 Forward");
    assert_eq!(router.json("show ip mfib"), serde_json::json!([]));
}

#[test]
fn the_running_configuration_makes_the_same_routes() {
    let lines = [
        "ip table add 10",
        "ip mroute add 232.1.1.1 via e0 Accept via e1 Forward",
        "ip mroute add 10.0.0.9 232.1.1.1 via e0 Accept via e2 Forward ttl-threshold 7",
        "ip mroute add 239.0.0.0/8 Drop Accept-all",
        "ip mroute add table 10 239.1.0.0/16 via e3 Accept Forward Signal",
        "ip mroute add ff0e::1 via e0 Accept via local Forward",
        "ip mroute add 2001:db8::9 ff0e::1 via e0 Accept via e1 Forward",
    ];
    let mut first = router();
    lines.iter().for_each(|line| drop(first.cli(line)));
    let ours = |text: &str| {
        text.lines()
            .filter(|l| l.contains("mroute") || l.contains("table"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let written = ours(&first.cli("show running-config"));
    assert_eq!(written.iter().filter(|line| line.contains("mroute")).count(), 6);
    let mut second = router();
    written.iter().for_each(|line| drop(second.cli(line)));
    assert_eq!(ours(&second.cli("show running-config")), written);
}

#[test]
fn a_refused_route_changes_nothing() {
    let mut router = router();
    router.cli("ip mroute add 232.1.1.1 via e0 Accept");
    let before = router.cli("show running-config");
    for (line, why) in [
        ("ip mroute add 232.1.1.1 via e9 Accept", "no interface 'e9'"),
        ("ip mroute add 232.1.1.1 via e1", "neither Accept nor Forward"),
        ("ip mroute add 232.1.1.1", "says nothing"),
        ("ip mroute add 10.0.0.1 via e1 Accept", "no prefix of groups"),
        ("ip mroute add 232.1.1.1/24 via e1 Accept", "no prefix of groups"),
        ("ip mroute add 224.0.0.5 via e1 Forward", "group of the link"),
        ("ip mroute add 224.0.0.0/24 via e1 Forward", "group of the link"),
        ("ip mroute add ff02::5 via e1 Forward", "group of the link"),
        ("ip mroute add ff12::/16 via e1 Forward", "group of the link"),
        ("ip mroute add 232.1.1.1 232.1.1.1 via e1 Accept", "no source"),
        ("ip mroute add 2001:db8::1 232.1.1.1 via e1 Accept", "different families"),
        ("ip mroute add table 7 232.1.1.1 via e1 Accept", "no IPv4 table 7"),
        ("ip mroute add 232.1.1.1 via e1 Accept ttl-threshold 5", "for what is forwarded"),
        ("ip mroute add 232.1.1.1 via local Accept", "only be forwarded to"),
        ("ip mroute del 232.1.1.1 via e1 Forward", "does not say via e1 Forward"),
        ("ip mroute del 232.1.1.1 Signal", "does not say Signal"),
        ("ip mroute del 232.1.1.2", "no multicast route 232.1.1.2"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn packets_are_counted_by_route() {
    let mut router = router();
    router.cli("ip mroute add 232.1.1.1 via e0 Accept via e1 Forward via e2 Forward");
    for _ in 0..3 {
        router.send("e0", &frame(SOURCE, GROUP, 100));
    }
    router.send("e3", &frame(SOURCE, GROUP, 100));
    let shown = router.json("show ip mfib 232.1.1.1");
    let counts = ["packets", "bytes", "rpf_failures"].map(|key| shown[0][key].as_u64().unwrap());
    assert_eq!(counts, [3, 300, 1]);
    assert_eq!((router.sent("e1").len(), router.sent("e2").len()), (3, 3));
    assert_eq!(router.json("show ip mfib 232.9.9.9"), serde_json::json!([]));
}

#[test]
fn a_route_follows_its_interfaces() {
    let mut router = router();
    router.cli("ip mroute add 232.1.1.1 via e0 Accept via e1 Forward via e2 Forward");
    router.cli("set interface state e1 down");
    router.send("e0", &frame(SOURCE, GROUP, 100));
    assert_eq!((router.sent("e1").len(), router.sent("e2").len()), (0, 1));
    assert_eq!(router.json("show ip mfib")[0]["forward"][0]["state"], "down");
    router.cli("set interface state e1 up");
    router.cli("set interface mac address e1 02:00:00:00:77:77");
    router.cli("set interface mtu packet 90 e2");
    router.send("e0", &frame(SOURCE, GROUP, 100));
    let sent = router.sent("e1");
    assert_eq!(sent[0][6..12], [2, 0, 0, 0, 0x77, 0x77]);
    assert!(router.sent("e2").is_empty(), "too long for it now");
}

#[test]
fn a_deleted_interface_leaves_its_routes_and_tables_in_use_stay() {
    let mut router = router();
    router.cli("ip table add 10");
    router.cli("create loopback interface instance 0");
    router.cli("ip mroute add 232.1.1.1 via e0 Accept via loop0 Forward");
    router.cli("ip mroute add table 10 232.1.1.1 via loop0 Accept");
    assert!(router.refused("ip table del 10").contains("in use by multicast routes"));
    router.cli("delete loopback interface intfc loop0");
    let shown = router.json("show ip mfib");
    assert_eq!(
        (shown.as_array().unwrap().len(), &shown[0]["forward"]),
        (1, &serde_json::json!([]))
    );
    router.cli("ip table del 10");
}

#[test]
fn without_buffers_copies_are_left_out_and_the_packet_goes_on() {
    let settings = Settings { buffers: 128, ..Settings::default() };
    let mut router = configured(Router::with(settings, &FEATURES));
    router
        .cli("ip mroute add 232.1.1.1 via e0 Accept via e1 Forward via e2 Forward via e3 Forward");
    for _ in 0..100 {
        router.inject("e0", &frame(SOURCE, GROUP, 100));
    }
    router.run();
    let sent = ["e1", "e2", "e3"].map(|name| router.sent(name).len());
    assert_eq!(sent[2], 100, "the last one takes the packet: {sent:?}");
    let missing = router.count("ip4-replicate", "no-buffer");
    assert_eq!(sent[0] + sent[1] + missing as usize, 200);
    assert!(missing > 0);
}

#[test]
fn a_packet_in_several_buffers_is_copied_whole() {
    let settings = Settings { buffer_data_bytes: 1024, ..Settings::default() };
    let mut router = configured(Router::with(settings, &FEATURES));
    router.cli("ip mroute add 232.1.1.1 via e0 Accept via e1 Forward via e2 Forward");
    for name in ["e1", "e2"] {
        router.cli(&format!("set interface mtu packet 9000 {name}"));
    }
    let sent = frame(SOURCE, GROUP, 5000);
    router.send("e0", &sent);
    for name in ["e1", "e2"] {
        let copies = router.sent(name);
        assert_eq!(copies.len(), 1);
        assert_eq!(copies[0][34..], sent[34..], "{name}");
    }
}

#[test]
fn sources_that_nobody_knows_are_signalled_now_and_then() {
    let mut router = router();
    router.cli("ip mroute add 232.2.2.2 via e1 Accept Signal");
    for _ in 0..50 {
        router.inject("e0", &frame(SOURCE, GROUP, 60));
        router.inject("e0", &frame(SOURCE, [232, 2, 2, 2], 60));
        router.inject("e1", &frame([10, 0, 1, 9], [232, 2, 2, 2], 60));
    }
    router.run();
    let shown = router.json("show mfib signals");
    let found: Vec<_> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["why"].as_str().unwrap(),
                row["group"].as_str().unwrap(),
                row["count"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(found.len(), 3, "{found:?}");
    for wanted in [
        ("no-route", "232.1.1.1", 1),
        ("wrong-interface", "232.2.2.2", 1),
        ("signal", "232.2.2.2", 1),
    ] {
        assert!(found.contains(&wanted), "{found:?}");
    }
    router.advance(std::time::Duration::from_secs(2));
    router.send("e0", &frame(SOURCE, GROUP, 60));
    let again = router.json("show mfib signals");
    assert_eq!(again[0]["count"], 2);
}

#[test]
fn a_storm_of_unknown_groups_is_told_in_part_only() {
    let mut router = router();
    for n in 0..1000u32 {
        router.inject("e0", &frame(SOURCE, [233, 0, (n >> 8) as u8, n as u8], 60));
    }
    router.run();
    assert_eq!(router.count("ip4-mfib-forward-lookup", "no-route"), 1000);
    assert_eq!(router.count("ip4-mfib-forward-lookup", "too-many-signals"), 900);
    assert_eq!(router.json("show mfib signals").as_array().map(Vec::len), Some(100));
}

#[test]
fn what_the_router_itself_sends_to_a_group_goes_out_by_its_route() {
    let mut router = router();
    router.cli("ip mroute add 232.1.1.1 via e1 Forward");
    let id = router.id("e0");
    let lookup = router.engine().node_id("ip4-lookup").unwrap();
    let packet = frame([10, 0, 0, 1], GROUP, 60);
    let worker = router.engine().inline_worker(WorkerId(0)).unwrap();
    assert!(worker.inject(&packet[14..], lookup, id, InterfaceId::NONE));
    router.run();
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 1, "no reverse path check of the router's own");
    assert_eq!(sent[0][14..], packet[14..], "and no hop is counted");
}

#[test]
fn a_trace_reads_as_a_sentence() {
    let mut router = router();
    router.cli("ip mroute add 232.1.1.1 via e0 Accept via e1 Forward via e2 Forward");
    router.cli("trace add test-input 1");
    router.send("e0", &frame(SOURCE, GROUP, 60));
    let trace = router.cli("show trace");
    for words in [
        "10.0.0.9 → 232.1.1.1, TTL 9: multicast route 0",
        "10.0.0.9 → 232.1.1.1, TTL 9, received on e0, to ip4-replicate",
        "74 bytes with their layer 2 header, the last or only copy to e2-output",
    ] {
        assert!(trace.contains(words), "{words}\n{trace}");
    }
}

#[test]
fn thousands_of_routes_are_found_each() {
    let mut router = router();
    let text: String = (0..5000u32)
        .map(|n| {
            format!(
                "ip mroute add 232.7.{}.{} via e0 Accept via e{} Forward\n",
                n >> 8,
                n & 255,
                1 + n % 3
            )
        })
        .collect();
    router.script("many", &text).unwrap();
    for n in [0u32, 1, 2, 999, 4999] {
        router.send("e0", &frame(SOURCE, [232, 7, (n >> 8) as u8, n as u8], 60));
        let to = format!("e{}", 1 + n % 3);
        assert_eq!(router.sent(&to).len(), 1, "{n}");
    }
}
