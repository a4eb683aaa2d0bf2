//! The router answers for others, where the way to them leads elsewhere.

use crate::stand;

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_testkit::Router;
use quiver_testkit::configuration::loads_again;
use quiver_wire::icmp6::nd::{Message, NdOption, Options};
use quiver_wire::{MacAddress, arp, ip6::address};
use stand::{arp_frame, host_mac, host4, host6, nd_frame, port_mac, router};

/// The MAC address that e1 says `target` has, when host 9 behind it asks.
fn arp_reply(router: &mut Router, asker: Ipv4Addr, target: Ipv4Addr) -> Option<MacAddress> {
    router.sent("e1");
    router
        .send("e1", &arp_frame(None, host_mac(9), &arp::Repr::request(host_mac(9), asker, target)));
    let frame =
        router.sent("e1").into_iter().find(|frame| frame[12..14] == [8, 6] && frame[21] == 2)?;
    assert_eq!(frame[28..32], target.octets());
    Some(MacAddress(frame[22..28].try_into().unwrap()))
}

/// The flags with which e1 says `target` has its MAC address, when `asker` asks.
fn solicited(router: &mut Router, asker: Ipv6Addr, target: Ipv6Addr) -> Option<u8> {
    router.sent("e1");
    let mut option = [0; 8];
    NdOption::SourceMac(host_mac(9)).emit(&mut option).unwrap();
    let options = Options::new(if asker.is_unspecified() { &[] } else { &option }).unwrap();
    let message = Message::NeighborSolicitation { target, options };
    router.send("e1", &nd_frame(message, host_mac(9), asker, address::solicited_node(target)));
    let frame = router.sent("e1").into_iter().find(|frame| frame[54] == 136)?;
    assert_eq!((&frame[62..78], &frame[80..86]), (&target.octets()[..], &port_mac(1).0[..]));
    Some(frame[58])
}

#[test]
fn arp_is_answered_for_a_range_when_the_way_leads_elsewhere() {
    let mut router = router();
    let (asker, far, near) = (host4(1, 9), host4(0, 2), host4(1, 8));
    assert_eq!(arp_reply(&mut router, asker, far), None);
    router.cli("set arp proxy start 10.0.0.0 end 10.1.255.255");
    assert_eq!(arp_reply(&mut router, asker, far), None, "not enabled");
    router.cli("set interface proxy-arp e1 enable");
    assert_eq!(arp_reply(&mut router, asker, far), Some(port_mac(1)));
    assert_eq!(arp_reply(&mut router, asker, near), None, "it is there itself");
    assert_eq!(arp_reply(&mut router, asker, Ipv4Addr::new(10, 2, 0, 1)), None, "outside");
    router.cli("ip route add 10.0.0.77/32 via drop");
    assert_eq!(arp_reply(&mut router, asker, host4(0, 77)), None, "nobody");
    assert_eq!(arp_reply(&mut router, far, far), None, "who announces itself is not contradicted");
    assert_eq!(router.count("arp-input", "proxied"), 1);
    router.cli("set arp proxy start 10.0.0.0 end 10.1.255.255 del");
    assert_eq!(arp_reply(&mut router, asker, far), None);
}

#[test]
fn arp_is_answered_for_the_range_of_the_interfaces_table_only() {
    let mut router = router();
    router.cli("ip table add 7");
    router.cli("set arp proxy table-id 7 start 10.0.0.1 end 10.0.0.9");
    router.cli("set interface proxy-arp e1 enable");
    assert_eq!(arp_reply(&mut router, host4(1, 9), host4(0, 2)), None);
    router.cli("set arp proxy start 10.0.0.2 end 10.0.0.2");
    assert_eq!(arp_reply(&mut router, host4(1, 9), host4(0, 2)), Some(port_mac(1)));
    router.cli("set interface proxy-arp e1 disable");
    assert_eq!(arp_reply(&mut router, host4(1, 9), host4(0, 2)), None);
}

#[test]
fn who_asks_for_somebody_elsewhere_is_learned() {
    let mut router = router();
    router.cli("set arp proxy start 10.0.0.2 end 10.0.0.2");
    router.cli("set interface proxy-arp e1 enable");
    arp_reply(&mut router, host4(1, 9), host4(0, 2));
    assert_eq!(stand::state(&mut router, false, 9).as_deref(), Some("reachable"));
}

#[test]
fn solicitations_are_answered_for_an_address_elsewhere_without_override() {
    let mut router = router();
    let (asker, far) = (host6(1, 9), host6(0, 2));
    assert_eq!(solicited(&mut router, asker, far), None);
    router.cli("ip neighbor del e0 2001:db8::2");
    router.cli("set ip6 nd proxy e0 2001:db8::2");
    assert_eq!(solicited(&mut router, asker, far), Some(0xc0), "router, solicited");
    assert_eq!(
        solicited(&mut router, "::".parse().unwrap(), far),
        Some(0x80),
        "another host wants to take it"
    );
    assert_eq!(router.count("icmp6-neighbor-solicitation", "proxied"), 2);
    router.cli("ip6 nd proxy e1 2001:db8:1::8"); // it is behind e1
    assert_eq!(solicited(&mut router, asker, host6(1, 8)), None, "it is there itself");
    router.cli("set ip6 nd proxy e0 del 2001:db8::2");
    assert_eq!(solicited(&mut router, asker, far), None);
}

#[test]
fn a_configuration_with_one_host_in_two_tables_loads_again() {
    let mut router = router();
    for line in [
        "ip6 table add 7",
        "set interface ip address del e1 2001:db8:1::1/64",
        "set interface ip6 table e1 7",
        "set ip6 nd proxy e0 2001:db8::2",
        "set ip6 nd proxy e1 2001:db8::2",
    ] {
        router.cli(line);
    }
    let config = router.cli("show running-config");
    let fresh = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    let fault = loads_again(fresh, &config, &config);
    assert!(fault.is_none(), "{}", fault.unwrap().text);
}

#[test]
fn proxies_are_shown_written_down_and_refused_with_a_reason() {
    let mut router = router();
    router.cli("ip table add 7");
    let lines = [
        "set arp proxy start 10.0.0.1 end 10.0.0.9",
        "set arp proxy table-id 7 start 10.0.0.1 end 10.0.0.9",
        "set interface proxy-arp e1 enable",
        "set ip6 nd proxy e0 2001:db8::2",
    ];
    lines.iter().for_each(|line| drop(router.cli(line)));
    let written = router.cli("show running-config");
    assert!(lines.iter().all(|line| written.contains(line)), "{written}");
    let shown = router.cli("show arp proxy");
    assert!(shown.contains("10.0.0.9") && shown.contains("e1"), "{shown}");
    assert_eq!(router.json("show ip6 nd proxy")[0]["address"], "2001:db8::2");
    for (line, says) in [
        ("set arp proxy start 10.0.0.1 end 10.0.0.9", "already"),
        ("set arp proxy start 10.0.0.9 end 10.0.0.1", "before its start"),
        ("set arp proxy start 10.0.0.1 end 10.0.0.8 del", "not answered"),
        ("set arp proxy table-id 9 start 10.0.0.1 end 10.0.0.8", "table 9"),
        ("set ip6 nd proxy e0 2001:db8::2", "already"),
        ("set ip6 nd proxy e1 2001:db8::2", "another interface"),
        ("set ip6 nd proxy e1 del 2001:db8::3", "no proxied host"),
        ("set ip6 nd proxy e1 ff02::1", "ff02::1"),
        ("set ip6 nd proxy e1 fe80::1", "fe80::1"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "`{line}` says: {refusal}");
    }
    for number in 2..1024 {
        router.cli(&format!(
            "set arp proxy start 10.9.0.0 end 10.9.{}.{}",
            number >> 8,
            number & 255
        ));
    }
    assert!(router.refused("set arp proxy start 10.8.0.1 end 10.8.0.1").contains("1024 ranges"));
}

#[test]
fn an_interface_that_goes_is_a_proxy_no_more() {
    let mut router = router();
    router.cli("set interface proxy-arp e1 enable");
    router.cli("set ip6 nd proxy e1 2001:db8:7::2");
    let id = router.id("e1");
    router.engine().delete_interface(id).unwrap();
    assert_eq!(router.json("show ip6 nd proxy"), serde_json::json!([]));
    assert!(!router.cli("show running-config").contains("prox"));
}

/// The words are VPP's: the interface is the one that the host is behind.
#[test]
fn a_proxied_host_is_reached_by_the_interface_that_is_named_and_answered_for_on_the_others() {
    let mut router = router();
    let far: Ipv6Addr = "2001:db8:7::2".parse().unwrap();
    router.cli("set ip6 nd proxy e0 2001:db8:7::2");
    assert_eq!(solicited(&mut router, host6(1, 9), far), Some(0xc0));
    router.sent("e0");
    router.send("e1", &stand::ping(1, host6(1, 9).into(), far.into(), 20));
    let question = router
        .sent("e0")
        .into_iter()
        .find(|frame| frame[12..14] == [0x86, 0xdd] && frame[54] == 135);
    assert_eq!(question.expect("the host is asked for on its interface")[62..78], far.octets());
    router.cli("set ip6 nd proxy e0 del 2001:db8:7::2");
    assert_eq!(solicited(&mut router, host6(1, 9), far), None);
}

#[test]
fn a_mirror_proxy_answers_for_all_that_routes_lead_to_elsewhere() {
    let mut router = router();
    let (asker, far) = (host6(1, 9), host6(0, 77));
    assert_eq!(solicited(&mut router, asker, far), None);
    router.cli("set interface ip6-nd-mirror-proxy e1 enable");
    assert_eq!(solicited(&mut router, asker, far), Some(0xc0), "connected elsewhere");
    assert_eq!(solicited(&mut router, asker, host6(1, 8)), None, "on the asker's own link");
    assert_eq!(solicited(&mut router, asker, "2001:db8:ff::1".parse().unwrap()), None, "no route");
    assert_eq!(solicited(&mut router, asker, "fe80::77".parse().unwrap()), None, "of the link");
    router.cli("ip route add ::/0 via 2001:db8::2 e0");
    assert_eq!(solicited(&mut router, asker, "2001:db8:ff::1".parse().unwrap()), Some(0xc0));
    assert_eq!(router.json("show ip6 nd proxy")[0]["kind"], "mirror");
    assert!(
        router.cli("show running-config").contains("set interface ip6-nd-mirror-proxy e1 enable")
    );
    router.cli("set interface ip6-nd-mirror-proxy e1 disable");
    assert_eq!(solicited(&mut router, asker, far), None);
}
