//! The router's side and proxies as operators type them: what is refused, what is shown, what is
//! configured again.

use std::time::Duration;

use quiver_control::{Collected, Started, Step};
use quiver_testkit::{Register, Router};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_multicast::register,
    quiver_group_membership::register,
];

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for (number, name) in ["up", "h1", "h2"].iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.{number}.0.1/24"));
    }
    router
}

/// An IGMP message in an IPv4 packet with TTL 1 and a router alert, in a frame.
fn igmp(from: [u8; 4], to: [u8; 4], message: &quiver_wire::igmp::Message<'_>) -> Vec<u8> {
    use quiver_wire::{EtherType, EthernetHeader, Header, IpProtocol, MacAddress, ip4};
    let mut frame = vec![0; 14 + 24 + message.len()];
    let mac = MacAddress::for_ip4_multicast(to.into());
    EthernetHeader::new(mac, MacAddress([2, 0, 0, 0, 0, 9]), EtherType::IPV4)
        .write(&mut frame)
        .unwrap();
    let repr = ip4::Repr {
        ttl: 1,
        options: &[148, 4, 0, 0],
        ..ip4::Repr::new(from.into(), to.into(), IpProtocol::IGMP, message.len())
    };
    let at = repr.emit(&mut frame[14..]).unwrap();
    message.emit(&mut frame[14 + at..]).unwrap();
    frame
}

/// A report of version 2.
fn joins(from: [u8; 4], group: [u8; 4]) -> Vec<u8> {
    igmp(from, group, &quiver_wire::igmp::Message::Report { version: 2, group: group.into() })
}

fn leaves(from: [u8; 4], group: [u8; 4]) -> Vec<u8> {
    igmp(from, [224, 0, 0, 2], &quiver_wire::igmp::Message::Leave { group: group.into() })
}

/// A UDP packet to a group, in a frame.
fn data(from: [u8; 4], group: [u8; 4]) -> Vec<u8> {
    use quiver_wire::{EtherType, EthernetHeader, Header, IpProtocol, MacAddress, ip4};
    let mut frame = vec![0; 14 + 20 + 20];
    let mac = MacAddress::for_ip4_multicast(group.into());
    EthernetHeader::new(mac, MacAddress([2, 0, 0, 0, 0, 9]), EtherType::IPV4)
        .write(&mut frame)
        .unwrap();
    ip4::Repr::new(from.into(), group.into(), IpProtocol::UDP, 20).emit(&mut frame[14..]).unwrap();
    frame
}

fn groups(router: &mut Router) -> Vec<(String, String)> {
    let rows = router.json("show igmp groups").as_array().cloned().unwrap_or_default();
    let text =
        |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (text(row, "interface"), text(row, "group"))).collect()
}

/// What leaves by an interface, without queries and reports.
fn data_sent(router: &mut Router, name: &str) -> usize {
    router.sent(name).iter().filter(|frame| frame[23] == 17).count()
}

#[test]
fn a_router_knows_who_listens_until_nobody_does() {
    let mut router = router();
    router.send("h1", &joins([10, 1, 0, 9], [239, 1, 1, 1]));
    assert!(groups(&mut router).is_empty(), "not asked yet");
    router.cli("igmp enable router h1");
    router.send("h1", &joins([10, 1, 0, 9], [239, 1, 1, 1]));
    router.send("h1", &joins([10, 77, 0, 9], [239, 1, 1, 2])); // not of the link
    router.send("h1", &joins([10, 1, 0, 9], [224, 0, 0, 9])); // a group of the link
    assert_eq!(groups(&mut router), [("h1".to_owned(), "239.1.1.1".to_owned())]);
    assert_eq!(router.json("show igmp config")[0]["foreign"], 1);
    router.send("h1", &leaves([10, 1, 0, 9], [239, 1, 1, 1]));
    router.advance(Duration::from_secs(3));
    assert!(groups(&mut router).is_empty());
    router.send("h1", &joins([10, 1, 0, 9], [239, 1, 1, 1]));
    router.cli("clear igmp int h1");
    assert!(groups(&mut router).is_empty());
    router.send("h1", &joins([10, 1, 0, 9], [239, 1, 1, 1]));
    router.cli("set interface state h1 down");
    assert!(groups(&mut router).is_empty(), "a link that is down has no listeners");
}

#[test]
fn a_proxy_forwards_to_who_listens_and_stops_when_it_ends() {
    let mut router = router();
    for line in [
        "igmp enable router h1",
        "igmp enable router h2",
        "igmp proxy-dev add vrf-id 0 up",
        "igmp proxy-dev itf add vrf-id 0 h1",
        "igmp proxy-dev itf add vrf-id 0 h2",
    ] {
        router.cli(line);
    }
    router.send("h1", &joins([10, 1, 0, 9], [239, 1, 1, 1]));
    let counts = |router: &mut Router| {
        router.send("up", &data([10, 0, 0, 9], [239, 1, 1, 1]));
        ["up", "h1", "h2"].map(|name| data_sent(router, name))
    };
    assert_eq!(counts(&mut router), [0, 1, 0]);
    assert_eq!(router.json("show igmp proxy-dev")[0]["groups_joined"], 1);
    let of_group = |router: &mut Router, key: &str| {
        let routes = router.json("show ip mfib").as_array().cloned().unwrap_or_default();
        let route = routes.iter().find(|route| route["group"] == "239.1.1.1");
        route.map(|route| route[key].clone()).unwrap_or_default()
    };
    assert_eq!(of_group(&mut router, "flags"), serde_json::json!(["learned"]));
    // What the operator says of the same group holds beside it, and stays.
    router.cli("ip mroute add 239.1.1.1 via h2 Forward");
    assert_eq!(counts(&mut router), [0, 1, 1]);
    router.cli("igmp disable router h1");
    assert_eq!(counts(&mut router), [0, 0, 0], "nothing accepts from up any more");
    assert_eq!(
        of_group(&mut router, "forward"),
        serde_json::json!([{ "interface": "h2", "ttl_threshold": 0, "state": "up" }])
    );
    let config = router.cli("show running-config");
    assert!(config.contains("ip mroute add 239.1.1.1 via h2 Forward\n"), "{config}");
    assert!(!config.contains("itf add vrf-id 0 h1"), "no router, no link of a proxy: {config}");
    router.cli("igmp proxy-dev del vrf-id 0 up");
    router.cli("igmp proxy-dev itf del vrf-id 0 h2");
    router.cli("ip mroute del 239.1.1.1");
    assert!(router.json("show ip mfib").as_array().is_some_and(Vec::is_empty));
}

#[test]
fn the_upstream_that_is_deleted_takes_the_routes_along() {
    let mut router = router();
    router.cli("create sub-interfaces up 7");
    router.cli("set interface state up.7 up");
    router.cli("set interface ip address up.7 10.7.0.1/24");
    for line in [
        "igmp enable router h1",
        "igmp proxy-dev add vrf-id 0 up.7",
        "igmp proxy-dev itf add vrf-id 0 h1",
    ] {
        router.cli(line);
    }
    router.send("h1", &joins([10, 1, 0, 9], [239, 1, 1, 1]));
    assert_eq!(router.json("show ip mfib").as_array().map(Vec::len), Some(2));
    router.cli("delete sub-interface up.7");
    assert_eq!(router.json("show ip mfib").as_array().map(Vec::len), Some(0));
    router.cli("igmp proxy-dev add vrf-id 0 up");
    assert_eq!(
        router.json("show ip mfib").as_array().map(Vec::len),
        Some(2),
        "it is known who listens"
    );
}

#[test]
fn the_configuration_is_what_was_typed() {
    let mut router = router();
    let typed = [
        "igmp enable router h1",
        "set igmp querier h1 version 2 robustness 3 query-interval 60 response-interval 5000 \
         last-member-interval 500",
        "igmp proxy-dev add vrf-id 0 up",
        "igmp proxy-dev itf add vrf-id 0 h1",
        "mld enable router h2",
    ];
    typed.iter().for_each(|line| drop(router.cli(line)));
    let config = router.cli("show running-config");
    let at =
        typed.map(|line| config.find(line).unwrap_or_else(|| panic!("{line} is not in\n{config}")));
    assert!(at.is_sorted(), "{config}");
    assert_eq!(router.json("show igmp timers")[0]["query_interval_s"], 60);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli("igmp enable router h1");
    router.cli("igmp proxy-dev add vrf-id 0 up");
    let before = router.cli("show running-config");
    for (line, what) in [
        ("igmp proxy-dev add vrf-id 0 h2", "has up as its upstream"),
        ("igmp proxy-dev add vrf-id 9 up", "9"),
        ("igmp enable router up", "is the upstream of the proxy of table 0"),
        ("igmp proxy-dev itf add vrf-id 0 up", "is the upstream"),
        ("igmp proxy-dev itf add vrf-id 0 h2", "is no igmp router"),
        ("igmp proxy-dev itf del vrf-id 0 h1", "is no link of the proxy"),
        ("igmp proxy-dev del vrf-id 0 h1", "is not the upstream"),
        ("igmp disable router h2", "is no igmp router"),
        ("clear mld int h1", "is no mld router"),
        ("set igmp querier h1 query-interval 5 response-interval 5000", "not less than"),
        ("set igmp querier h2 robustness 3", "is no igmp router"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(what), "{line}: {refusal}");
    }
    router.cli("igmp enable host h2"); // every interface is one
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn clients_hear_of_who_listens() {
    let mut router = router();
    router.cli("igmp enable router h1");
    let commands = router.commands();
    let started = commands
        .borrow()
        .start(router.engine(), "subscribe event group-membership")
        .expect("starts");
    let Started::Running(mut job) = started else { panic!("it is done at once") };
    let mut sink = Collected::default();
    router.send("h1", &joins([10, 1, 0, 9], [239, 1, 1, 1]));
    router.send("h1", &leaves([10, 1, 0, 9], [239, 1, 1, 1]));
    router.advance(Duration::from_secs(3));
    while matches!(job.step(&commands.borrow(), router.engine(), &mut sink), Ok(Step::Again)) {}
    let told: Vec<_> = sink.outputs.iter().map(|output| output.to_json()).collect();
    let said = |event: &serde_json::Value| {
        ["interface", "group", "filter"]
            .map(|key| event[key].as_str().unwrap_or_default().to_owned())
    };
    let expected = [["h1", "239.1.1.1", "exclude"], ["h1", "239.1.1.1", "include"]];
    assert_eq!(told.iter().map(said).collect::<Vec<_>>(), expected);
}

#[test]
fn links_are_written_in_the_order_of_their_names() {
    let mut router = router();
    ["up", "h2", "h1"]
        .iter()
        .for_each(|name| drop(router.cli(&format!("igmp enable router {name}"))));
    let config = router.cli("show running-config");
    let names: Vec<&str> =
        config.lines().filter_map(|line| line.strip_prefix("igmp enable router ")).collect();
    assert_eq!(names, ["h1", "h2", "up"], "whatever numbers the interfaces have");
}
