//! The router's addresses: asked for, announced, defended, given up.

use crate::stand;

use std::time::Duration;

use quiver_testkit::{Router, Settings};
use quiver_wire::icmp6::nd::{Message, NeighborFlags, Options};
use quiver_wire::{arp, ip6::address};
use stand::{advertises, arp_frame, host_mac, host4, host6, nd_frame, ping, port_mac};

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

/// A router with port e1 that is up; nothing is configured.
fn router() -> Router {
    let settings = Settings { unasked: true, ..Settings::default() };
    let mut router = Router::with(settings, &[quiver_ethernet::register, quiver_ip::register]);
    router.interface("e0");
    router.interface("e1");
    router
}

fn seconds(router: &mut Router, seconds: f64) {
    router.advance(Duration::from_secs_f64(seconds));
}

/// What e1 says of itself: the ICMPv6 type or the ARP operation, the source and the target.
fn said(router: &mut Router) -> Vec<(u8, String, String)> {
    let text4 =
        |bytes: &[u8]| std::net::Ipv4Addr::from(<[u8; 4]>::try_from(bytes).unwrap()).to_string();
    let text6 =
        |bytes: &[u8]| std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap()).to_string();
    let read = |frame: Vec<u8>| match frame[12..14] {
        [8, 6] => (frame[21], text4(&frame[28..32]), text4(&frame[38..42])),
        _ => (frame[54], text6(&frame[22..38]), text6(&frame[62..78])),
    };
    router.sent("e1").into_iter().map(read).collect()
}

/// As `said`, of one address.
fn said_of(router: &mut Router, target: &str) -> Vec<(u8, String)> {
    let all = said(router);
    all.into_iter()
        .filter(|(.., of)| of == target)
        .map(|(kind, source, _)| (kind, source))
        .collect()
}

fn dad(router: &mut Router, address: &str) -> serde_json::Value {
    let shown = router.json("show ip dad");
    shown
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["address"] == address)
        .cloned()
        .unwrap_or_default()
}

#[test]
fn an_ip4_address_is_announced_twice() {
    let mut router = router();
    router.cli("set interface ip address e1 10.1.0.1/24");
    assert!(said(&mut router).is_empty());
    seconds(&mut router, 0.2);
    let announcement = (1, "10.1.0.1".to_owned(), "10.1.0.1".to_owned());
    assert_eq!(said(&mut router), std::slice::from_ref(&announcement));
    seconds(&mut router, 2.0);
    assert_eq!(said(&mut router), [announcement]);
    seconds(&mut router, 100.0);
    assert!(said(&mut router).is_empty());
}

#[test]
fn an_ip6_address_is_asked_for_and_then_announced_and_so_is_the_link_local_one() {
    let mut router = router();
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    seconds(&mut router, 0.2);
    for own in ["2001:db8:1::1", "fe80::fe:ff:fe00:1"] {
        assert_eq!(dad(&mut router, own)["state"], "tentative");
    }
    let first = said(&mut router);
    assert_eq!(
        first.iter().map(|(kind, source, _)| (*kind, &source[..])).collect::<Vec<_>>(),
        [(SOLICITATION, "::"); 2]
    );
    seconds(&mut router, 1.0);
    let own = "2001:db8:1::1".to_owned();
    assert_eq!(said_of(&mut router, &own), [(ADVERTISEMENT, own.clone())]);
    seconds(&mut router, 2.0);
    assert_eq!(said_of(&mut router, &own), [(ADVERTISEMENT, own.clone())]);
    assert_eq!(dad(&mut router, &own)["state"], "preferred");
}

#[test]
fn an_interface_that_comes_up_or_gets_another_mac_address_or_moves_announces_its_addresses() {
    let mut router = router();
    router.cli("set interface ip address e1 10.1.0.1/24");
    seconds(&mut router, 10.0);
    router.sent("e1");
    router.cli("set interface state e1 down");
    seconds(&mut router, 10.0);
    assert!(said(&mut router).is_empty());
    router.cli("set interface state e1 up");
    seconds(&mut router, 10.0);
    assert_eq!(said(&mut router).len(), 2);
    router.cli("set interface mac address e1 02:00:00:00:77:77");
    seconds(&mut router, 10.0);
    let frames = router.sent("e1");
    assert_eq!((frames.len(), &frames[0][6..12]), (2, &[2, 0, 0, 0, 0x77, 0x77][..]));
    let id = router.id("e1");
    router.engine().say_moved(id);
    seconds(&mut router, 10.0);
    assert_eq!(said(&mut router).len(), 2);
}

#[test]
fn the_operator_has_addresses_announced() {
    let mut router = router();
    router.cli("set interface ip address e1 10.1.0.1/24");
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    seconds(&mut router, 10.0);
    router.sent("e1");
    router.cli("send gratuitous-arp e1 10.1.0.1");
    seconds(&mut router, 10.0);
    assert_eq!(said(&mut router).len(), 2);
    router.cli("send gratuitous-arp e1");
    seconds(&mut router, 10.0);
    assert_eq!(said(&mut router).len(), 6);
    assert!(router.refused("send gratuitous-arp e1 10.1.0.9").contains("no address 10.1.0.9"));
    assert!(router.refused("send gratuitous-arp e0").contains("set interface ip address e0"));
    router.cli("set interface state e1 down");
    assert!(router.refused("send gratuitous-arp e1").contains("set interface state e1 up"));
}

#[test]
fn an_address_that_waits_is_not_used_and_not_answered_for_before() {
    let mut router = router();
    router.cli("set ip dad ip6 transmits 1 wait");
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    let shown = router.cli("show interface address e1");
    assert!(shown.contains("2001:db8:1::1/64 (tentative)"), "{shown}");
    let target = host6(1, 1);
    let ask = |router: &mut Router| {
        let mut option = [0; 8];
        quiver_wire::icmp6::nd::NdOption::SourceMac(host_mac(9)).emit(&mut option).unwrap();
        let options = Options::new(&option).unwrap();
        let message = Message::NeighborSolicitation { target, options };
        router.sent("e1");
        router.send(
            "e1",
            &nd_frame(message, host_mac(9), host6(1, 9), address::solicited_node(target)),
        );
        router.sent("e1").len()
    };
    assert_eq!(ask(&mut router), 0);
    router.send("e1", &ping(1, host6(1, 9).into(), target.into(), 10));
    assert!(router.sent("e1").is_empty(), "it is nobody's address");
    seconds(&mut router, 1.5);
    let shown = router.cli("show interface address e1");
    assert!(!shown.contains("tentative"), "{shown}");
    assert_eq!(ask(&mut router), 1);
    router.send("e1", &ping(1, host6(1, 9).into(), target.into(), 10));
    assert_eq!(router.sent("e1").len(), 1);
}

#[test]
fn a_duplicate_is_told_and_not_used_until_it_is_configured_anew() {
    for wait in ["", " wait"] {
        let mut router = router();
        router.cli(&format!("set ip dad ip6 e1 transmits 1{wait}"));
        router.cli("set interface ip address e1 2001:db8:1::1/64");
        seconds(&mut router, 0.2);
        router.sent("e1");
        router.send("e1", &advertises(host6(1, 1), host_mac(9), NeighborFlags::OVERRIDE, true));
        assert_eq!(dad(&mut router, "2001:db8:1::1")["state"], "duplicate");
        assert_eq!(dad(&mut router, "2001:db8:1::1")["in_use"], false);
        let shown = router.cli("show interface address e1");
        assert!(
            shown.contains("2001:db8:1::1/64 (duplicate: 02:00:00:00:00:09 has it)"),
            "{shown}"
        );
        seconds(&mut router, 100.0);
        assert!(said_of(&mut router, "2001:db8:1::1").is_empty());
        router.send("e1", &ping(1, host6(1, 9).into(), host6(1, 1).into(), 10));
        assert!(router.sent("e1").is_empty());
        // Its line of the configuration stands; it can be deleted, and given again.
        assert!(
            router
                .cli("show running-config")
                .contains("set interface ip address e1 2001:db8:1::1/64")
        );
        router.cli("set interface ip address del e1 2001:db8:1::1/64");
        router.cli("set interface ip address e1 2001:db8:1::1/64");
        seconds(&mut router, 10.0);
        assert_eq!(dad(&mut router, "2001:db8:1::1")["state"], "preferred");
    }
}

#[test]
fn a_duplicate_is_tried_again_when_the_interface_comes_up() {
    let mut router = router();
    router.cli("set ip dad ip6 transmits 1 wait");
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    router.send("e1", &advertises(host6(1, 1), host_mac(9), NeighborFlags::OVERRIDE, true));
    assert_eq!(dad(&mut router, "2001:db8:1::1")["state"], "duplicate");
    router.cli("set interface state e1 down");
    router.cli("set interface state e1 up");
    assert_eq!(dad(&mut router, "2001:db8:1::1")["state"], "tentative");
    seconds(&mut router, 5.0);
    assert_eq!(dad(&mut router, "2001:db8:1::1")["state"], "preferred");
    assert_eq!(dad(&mut router, "2001:db8:1::1")["in_use"], true);
}

#[test]
fn two_who_ask_for_an_address_at_the_same_time_both_leave_it() {
    let mut router = router();
    router.cli("set ip dad ip6 transmits 1 wait");
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    let (target, options) = (host6(1, 1), Options::new(&[]).unwrap());
    let probe = |mac| {
        let message = Message::NeighborSolicitation { target, options };
        nd_frame(message, mac, "::".parse().unwrap(), address::solicited_node(target))
    };
    router.send("e1", &probe(port_mac(1)));
    assert_eq!(dad(&mut router, "2001:db8:1::1")["state"], "tentative", "our own came back");
    router.send("e1", &probe(host_mac(9)));
    assert_eq!(dad(&mut router, "2001:db8:1::1")["state"], "duplicate");
}

#[test]
fn an_ip4_address_can_be_asked_for_too() {
    let mut router = router();
    router.cli("set ip dad ip4 transmits 3 wait");
    router.cli("set interface ip address e1 10.1.0.1/24");
    seconds(&mut router, 2.5);
    let probe = (1, "0.0.0.0".to_owned());
    assert_eq!(said_of(&mut router, "10.1.0.1"), [probe.clone(), probe.clone(), probe]);
    assert_eq!(dad(&mut router, "10.1.0.1")["in_use"], false);
    seconds(&mut router, 1.0);
    assert_eq!(said_of(&mut router, "10.1.0.1"), [(1, "10.1.0.1".to_owned())]);
    assert_eq!(dad(&mut router, "10.1.0.1")["in_use"], true);
    // Somebody has the next one.
    router.cli("set interface ip address e1 10.1.1.1/24");
    let thief = std::net::Ipv4Addr::new(10, 1, 1, 1);
    let question = arp::Repr::request(port_mac(1), "0.0.0.0".parse().unwrap(), thief);
    router.send("e1", &arp_frame(Some(1), host_mac(9), &question.reply(host_mac(9))));
    assert_eq!(dad(&mut router, "10.1.1.1")["state"], "duplicate");
}

#[test]
fn nobody_else_gets_the_subnet_of_an_address_that_is_not_used_yet() {
    let mut router = router();
    router.interface("e7");
    router.cli("set ip dad ip4 transmits 3 wait");
    router.cli("set interface ip address e1 10.7.0.1/24");
    assert_eq!(dad(&mut router, "10.7.0.1")["in_use"], false);
    let refusal = router.refused("set interface ip address e7 10.7.0.9/24");
    assert!(refusal.contains("already connected"), "{refusal}");
    assert!(router.refused("show ip fib 10.7.0.9").contains("no route"));
    seconds(&mut router, 3.5);
    let route = router.cli("show ip fib 10.7.0.9");
    assert!(route.contains("10.7.0.0/24"), "{route}");
    router.cli("set interface ip address del e1 10.7.0.1/24");
    router.cli("set interface ip address e7 10.7.0.9/24");
}

#[test]
fn an_address_in_use_is_defended_now_and_then_and_kept() {
    let mut router = router();
    router.cli("set interface ip address e1 10.1.0.1/24");
    seconds(&mut router, 10.0);
    router.sent("e1");
    let thief = host_mac(9);
    let claim = arp_frame(None, thief, &arp::Repr::request(thief, host4(1, 1), host4(1, 1)));
    for _ in 0..12 {
        router.send("e1", &claim);
        seconds(&mut router, 1.0);
    }
    assert_eq!(said_of(&mut router, "10.1.0.1").len(), 2, "once in ten seconds");
    let row = dad(&mut router, "10.1.0.1");
    assert_eq!((&row["state"], &row["conflicts"]), (&"preferred".into(), &12.into()));
    assert_eq!(row["claimed_by"], thief.to_string());
}

#[test]
fn what_the_router_said_itself_and_came_back_is_no_conflict() {
    let mut router = router();
    router.cli("set interface ip address e1 10.1.0.1/24");
    let own = port_mac(1);
    router.send("e1", &arp_frame(None, own, &arp::Repr::request(own, host4(1, 1), host4(1, 1))));
    assert_eq!(router.count("arp-input", "own"), 1);
    assert_eq!(dad(&mut router, "10.1.0.1")["conflicts"], 0);
}

#[test]
fn a_loopback_asks_and_tells_nobody() {
    let mut router = router();
    router.cli("create loopback interface");
    router.cli("set interface state loop0 up");
    router.cli("set ip dad ip6 transmits 1 wait");
    router.cli("set interface ip address loop0 2001:db8:9::1/128");
    assert_eq!(dad(&mut router, "2001:db8:9::1")["state"], "preferred");
    seconds(&mut router, 5.0);
    assert_eq!(router.totals("loop0").tx_packets, 0);
}

#[test]
fn a_link_local_address_can_be_chosen_and_ip6_be_had_without_another() {
    let mut router = router();
    router.cli("enable ip6 interface e1");
    let shown = router.json("show ip6 interface e1");
    assert_eq!(shown[0]["link_local"], "fe80::fe:ff:fe00:1");
    assert_eq!(shown[0]["groups"], serde_json::json!(["ff02::1", "ff02::2", "ff02::1:ff00:1"]));
    router.cli("set ip6 link-local address e1 fe80::7");
    router.cli("set ip6 link-local address e1 fe80::8");
    assert_eq!(router.json("show ip6 interface e1")[0]["link_local"], "fe80::8");
    router.send("e1", &ping(1, "fe80::99".parse().unwrap(), "fe80::8".parse().unwrap(), 10));
    assert_eq!(router.sent("e1").len(), 1, "it asks for who has sent it");
    let written = router.cli("show running-config");
    assert!(
        written.contains("enable ip6 interface e1") && written.contains("fe80::8"),
        "{written}"
    );
    assert!(router.refused("set ip6 link-local address e1 2001:db8::1").contains("fe80::/10"));
    assert!(
        router
            .refused("disable ip6 interface e1")
            .contains("set interface ip address del e1 fe80::8")
    );
    router.cli("set interface ip address del e1 fe80::8/128");
    assert_eq!(router.json("show ip6 interface e1")[0]["link_local"], "fe80::fe:ff:fe00:1");
    router.cli("disable ip6 interface e1");
    assert_eq!(router.json("show ip6 interface"), serde_json::json!([]));
}

#[test]
fn how_duplicates_are_found_is_written_down_and_read_again() {
    let mut router = router();
    let lines = ["set ip dad ip4 transmits 3 wait", "set ip dad ip6 e1 transmits 0"];
    lines.iter().for_each(|line| drop(router.cli(line)));
    let written = router.cli("show running-config");
    assert!(lines.iter().all(|line| written.contains(line)), "{written}");
    router.cli("set ip dad ip4 transmits 0");
    assert!(!router.cli("show running-config").contains("dad ip4"));
    router.cli("set ip dad ip6 e1 transmits 1");
    assert!(!router.cli("show running-config").contains("dad"), "as usual");
    router.cli("set ip dad ip6 e1 transmits 0");
    let id = router.id("e1");
    router.engine().delete_interface(id).unwrap();
    assert!(!router.cli("show running-config").contains("dad"));
}

#[test]
fn an_address_that_waits_goes_with_its_interface() {
    let mut router = router();
    router.cli("set ip dad ip6 transmits 1 wait");
    router.cli("set ip dad ip4 transmits 1 wait");
    router.cli("set interface ip address e1 2001:db8:1::1/64");
    router.cli("set interface ip address e1 10.1.0.1/24");
    let id = router.id("e1");
    router.engine().delete_interface(id).unwrap();
    seconds(&mut router, 10.0);
    assert_eq!(router.json("show ip dad"), serde_json::json!([]));
    // The same number, another interface.
    router.interface("e2");
    router.cli("set interface ip address e2 10.1.0.1/24");
    assert_eq!(dad(&mut router, "10.1.0.1")["in_use"], false);
}

#[test]
fn a_duplicate_is_taken_from_its_interface_when_that_is_asked_for() {
    for remove in ["", " auto-remove"] {
        let mut router = router();
        router.cli(&format!("set ip dad ip6 e1 transmits 1 wait{remove}"));
        router.cli("set interface ip address e1 2001:db8:1::1/64");
        seconds(&mut router, 0.2);
        let flags = NeighborFlags::OVERRIDE;
        router.send("e1", &advertises(host6(1, 1), host_mac(9), flags, true));
        let (written, gone) = (router.cli("show running-config"), !remove.is_empty());
        assert_eq!(written.contains("set interface ip address e1 2001:db8:1::1/64"), !gone);
        assert_eq!(dad(&mut router, "2001:db8:1::1").is_null(), gone);
        assert!(
            written.contains(&format!("set ip dad ip6 e1 transmits 1 wait{remove}\n")),
            "{written}"
        );
    }
}
