//! What operators type and see, and what the router hears of groups that it joined.

use std::time::Duration;

use quiver_testkit::{Register, Router};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_multicast::register,
    quiver_group_membership::register,
];

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    router.interface("e0");
    router.cli("set interface ip address e0 10.0.0.1/24");
    router.cli("set interface ip address e0 2001:db8::1/64");
    router
}

/// An echo request in an Ethernet frame, to a group.
fn ping(group: [u8; 4]) -> Vec<u8> {
    use quiver_wire::{EtherType, EthernetHeader, Header, IpProtocol, MacAddress, icmp4, ip4};
    let mut frame = vec![0; 14 + 20 + 16];
    let mac = MacAddress::for_ip4_multicast(group.into());
    EthernetHeader::new(mac, MacAddress([2, 0, 0, 0, 0, 9]), EtherType::IPV4)
        .write(&mut frame)
        .unwrap();
    let repr = ip4::Repr::new([10, 0, 0, 9].into(), group.into(), IpProtocol::ICMP, 16);
    let at = repr.emit(&mut frame[14..]).unwrap();
    let message = icmp4::Message::EchoRequest { identifier: 1, sequence: 1 };
    icmp4::Repr { message, data: &[0; 8] }.emit(&mut frame[14 + at..]).unwrap();
    frame
}

#[test]
fn a_joined_group_is_the_routers_own_to_hear() {
    let mut router = router();
    router.send("e0", &ping([239, 1, 1, 1]));
    assert_eq!(router.count("ip4-mfib-forward-lookup", "no-route"), 1);
    router.cli("igmp listen enable int e0 239.1.1.1");
    router.send("e0", &ping([239, 1, 1, 1]));
    assert_eq!(router.count("ip4-mfib-forward-lookup", "no-route"), 1);
    assert_eq!(router.count("ip4-icmp-input", "echo-request"), 1, "it came as far as ICMP");
    router.cli("igmp listen disable int e0 239.1.1.1");
    router.send("e0", &ping([239, 1, 1, 1]));
    assert_eq!(router.count("ip4-mfib-forward-lookup", "no-route"), 2);
}

#[test]
fn all_hosts_are_heard_and_other_groups_of_the_link_are_not() {
    let mut router = router();
    router.send("e0", &ping([224, 0, 0, 1]));
    router.send("e0", &ping([224, 0, 0, 9]));
    assert_eq!(router.count("ip4-icmp-input", "echo-request"), 1);
    assert_eq!(router.count("ip4-local", "group-not-joined"), 1);
}

#[test]
fn groups_are_shown_with_their_sources() {
    let mut router = router();
    router.cli("igmp listen int e0 10.0.0.9 232.1.1.1");
    router.cli("igmp listen int e0 10.0.0.8 232.1.1.1");
    router.cli("igmp listen int e0 239.1.1.1");
    router.advance(Duration::from_secs(3));
    let shown = router.json("show igmp e0");
    assert_eq!(
        shown[0]["groups"],
        serde_json::json!([
            { "group": "232.1.1.1", "sources": ["10.0.0.8", "10.0.0.9"] },
            { "group": "239.1.1.1", "sources": null },
        ])
    );
    assert_eq!(shown[0]["version"], 3);
    let mld = router.json("show mld");
    assert_eq!(
        mld[0]["groups"],
        serde_json::json!(
            ["ff02::2", "ff02::1:ff00:0", "ff02::1:ff00:1"]
                .map(|group| serde_json::json!({ "group": group, "sources": null }))
        )
    );
    assert_eq!(mld[0]["version"], 2);
    assert!(mld[0]["sent"].as_u64() >= Some(2));
}

#[test]
fn the_running_configuration_joins_the_same_groups() {
    let mut first = router();
    for line in [
        "igmp listen int e0 239.1.1.1",
        "igmp listen enable int e0 10.0.0.9 232.1.1.1",
        "mld listen int e0 ff0e::1",
        "mld listen int e0 2001:db8::9 ff3e::1",
    ] {
        first.cli(line);
    }
    let ours = |text: &str| {
        text.lines().filter(|l| l.contains("listen")).map(str::to_owned).collect::<Vec<_>>()
    };
    let written = ours(&first.cli("show running-config"));
    assert_eq!(written.len(), 4);
    let mut second = router();
    written.iter().for_each(|line| drop(second.cli(line)));
    assert_eq!(ours(&second.cli("show running-config")), written);
}

#[test]
fn a_refused_group_changes_nothing() {
    let mut router = router();
    router.cli("igmp listen int e0 239.1.1.1");
    let before = router.cli("show running-config");
    for (line, why) in [
        ("igmp listen int e0 10.0.0.1", "no group"),
        ("igmp listen int e0 224.0.0.1", "never reported"),
        ("mld listen int e0 ff02::1", "never reported"),
        ("mld listen int e0 ff01::7", "never reported"),
        ("igmp listen int e9 239.1.1.1", "no interface 'e9'"),
        ("igmp listen int e0 10.0.0.9 239.1.1.1", "from any source"),
        ("igmp listen int e0 239.1.1.1 232.1.1.1", "no source"),
        ("igmp listen disable int e0 239.9.9.9", "does not listen to 239.9.9.9"),
        ("igmp listen disable int e0 10.0.0.9 239.1.1.1", "does not listen to 10.0.0.9 239.1.1.1"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn an_interface_that_goes_takes_its_groups_with_it() {
    let mut router = router();
    router.cli("create loopback interface instance 0");
    router.cli("set interface state loop0 up");
    router.cli("set interface ip address loop0 10.9.0.1/24");
    router.cli("igmp listen int loop0 239.1.1.1");
    router.cli("delete loopback interface intfc loop0");
    assert!(!router.cli("show running-config").contains("igmp"));
    assert_eq!(router.json("show igmp"), serde_json::json!([]));
    router.advance(Duration::from_secs(3));
}

#[test]
fn a_storm_of_queries_is_bounded() {
    let mut router = router();
    router.cli("igmp listen int e0 239.1.1.1");
    router.advance(Duration::from_secs(3));
    router.sent("e0");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/igmp-queries/01-in.e0.pcap");
    let bytes = std::fs::read(folder).unwrap();
    for _ in 0..1000 {
        router.inject("e0", &bytes[40..]);
    }
    router.run();
    assert_eq!(router.count("igmp-input", "query"), 200);
    assert_eq!(router.count("igmp-input", "too-many"), 800);
    router.advance(Duration::from_secs(2));
    assert_eq!(router.sent("e0").len(), 1, "one answer");
}
