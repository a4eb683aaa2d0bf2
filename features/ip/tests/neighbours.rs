//! Neighbours are learned, asked again, given up, and found again; and there is an end to all of
//! it.

use crate::stand;

use std::time::Duration;

use quiver_testkit::Router;
use quiver_wire::icmp6::nd::NeighborFlags;
use quiver_wire::{MacAddress, arp, ip6::address};
use stand::{
    advertises, answer, answer4, arp_frame, asks4, host, host_mac, host4, host6, ping, ping_to,
    question_to, router, state,
};

/// Resolve host number 9 behind e1 by a ping to it.
fn resolve(router: &mut Router, six: bool) {
    router.send("e0", &ping_to(six, 9));
    router.send("e1", &answer(six, 9));
    router.sent("e1");
    assert_eq!(state(router, six, 9).as_deref(), Some("reachable"));
}

fn seconds(router: &mut Router, seconds: f64) {
    router.advance(Duration::from_secs_f64(seconds));
}

/// The questions for host number 9 among what e1 has sent, by the MAC address that they went to.
fn questions(router: &mut Router, six: bool) -> Vec<MacAddress> {
    router.sent("e1").iter().filter_map(|frame| question_to(frame, six, 9)).collect()
}

/// Where all are asked for host number 9.
fn all(six: bool) -> MacAddress {
    if six {
        MacAddress::for_ip6_multicast(address::solicited_node(host6(1, 9)))
    } else {
        MacAddress::BROADCAST
    }
}

#[test]
fn a_neighbour_in_use_is_asked_at_its_own_address_and_believed_again() {
    for six in [false, true] {
        let mut router = router();
        resolve(&mut router, six);
        seconds(&mut router, 61.0);
        assert_eq!(state(&mut router, six, 9).as_deref(), Some("stale"));
        assert!(router.sent("e1").is_empty(), "nobody asks before somebody sends");
        router.send("e0", &ping_to(six, 9));
        assert_eq!(router.sent("e1").len(), 1, "the packet goes on");
        assert_eq!(state(&mut router, six, 9).as_deref(), Some("delay"));
        let node = if six { "ip6-confirm-neighbor" } else { "ip4-confirm-neighbor" };
        assert_eq!(router.count(node, "told"), 1);
        router.send("e0", &ping_to(six, 9));
        assert_eq!(router.count(node, "told"), 1, "it is on the plain path again");
        router.sent("e1");
        seconds(&mut router, 5.1);
        assert_eq!(questions(&mut router, six), [host_mac(9)]);
        assert_eq!(state(&mut router, six, 9).as_deref(), Some("probe"));
        router.send("e1", &answer(six, 9));
        assert_eq!(state(&mut router, six, 9).as_deref(), Some("reachable"));
        seconds(&mut router, 10.0);
        assert!(questions(&mut router, six).is_empty());
        assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    }
}

#[test]
fn one_that_does_not_answer_any_more_is_asked_for_by_all_and_then_forgotten() {
    for six in [false, true] {
        let mut router = router();
        resolve(&mut router, six);
        seconds(&mut router, 61.0);
        router.send("e0", &ping_to(six, 9));
        router.sent("e1");
        seconds(&mut router, 10.5);
        let (one, all) = (host_mac(9), all(six));
        assert_eq!(questions(&mut router, six), [one, one, one, all, all, all]);
        router.send("e0", &ping_to(six, 9));
        assert_eq!(router.sent("e1").len(), 1, "it is used until it is given up");
        seconds(&mut router, 1.0);
        assert_eq!(state(&mut router, six, 9), None);
        // The next packet asks anew.
        router.send("e0", &ping_to(six, 9));
        assert_eq!(questions(&mut router, six), [all]);
    }
}

#[test]
fn a_host_that_moved_to_another_mac_address_is_found_by_the_last_questions() {
    let mut router = router();
    resolve(&mut router, false);
    seconds(&mut router, 61.0);
    router.send("e0", &ping_to(false, 9));
    seconds(&mut router, 8.5);
    let question = arp::Repr::request(stand::port_mac(1), host4(1, 1), host4(1, 9));
    router.send("e1", &arp_frame(Some(1), host_mac(0x77), &question.reply(host_mac(0x77))));
    router.sent("e1");
    router.send("e0", &ping_to(false, 9));
    assert_eq!(router.sent("e1")[0][..6], host_mac(0x77).0);
    assert_eq!(state(&mut router, false, 9).as_deref(), Some("reachable"));
}

#[test]
fn one_that_nobody_sends_to_is_forgotten_without_a_question() {
    let mut router = router();
    resolve(&mut router, false);
    router.cli("set ip neighbor-config ip4 age 100");
    seconds(&mut router, 95.0);
    assert_eq!(state(&mut router, false, 9).as_deref(), Some("stale"));
    seconds(&mut router, 10.0);
    assert_eq!(state(&mut router, false, 9), None);
    assert!(router.sent("e1").is_empty());
}

#[test]
fn without_an_age_a_stale_neighbour_stays() {
    let mut router = router();
    router.cli("set ip neighbor-config age 0");
    resolve(&mut router, true);
    seconds(&mut router, 90_000.0);
    assert_eq!(state(&mut router, true, 9).as_deref(), Some("stale"));
}

#[test]
fn who_sends_to_a_host_that_is_not_there_is_told_after_three_questions() {
    for six in [false, true] {
        let mut router = router();
        router.send("e0", &ping_to(six, 9));
        seconds(&mut router, 2.9);
        assert_eq!(questions(&mut router, six).len(), 3);
        assert_eq!(state(&mut router, six, 9).as_deref(), Some("incomplete"));
        assert!(router.sent("e0").is_empty());
        seconds(&mut router, 0.2);
        let told = router.sent("e0");
        assert_eq!(told.len(), 1);
        let at = if six { 54 } else { 34 };
        let expected = if six { [1, 3] } else { [3, 1] };
        assert_eq!(told[0][at..at + 2], expected, "type and code");
        assert_eq!(told[0][at + 8..], ping_to(six, 9)[14..], "what was sent");
        assert_eq!(state(&mut router, six, 9), None);
        seconds(&mut router, 10.0);
        assert!(router.sent("e1").is_empty() && router.sent("e0").is_empty());
        let node = if six { "ip6-icmp-error" } else { "ip4-icmp-error" };
        let event = if six { "address-unreachable" } else { "host-unreachable" };
        assert_eq!(router.count(node, event), 1);
        assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    }
}

#[test]
fn who_sends_something_long_is_told_with_as_much_as_an_error_quotes() {
    let mut router = router();
    let sent = ping(0, host(false, 0, 2), host(false, 1, 9), 1000);
    router.send("e0", &sent);
    seconds(&mut router, 3.1);
    let told = router.sent("e0");
    assert_eq!((told.len(), &told[0][34..36]), (1, &[3, 1][..]));
    assert_eq!(told[0][42..], sent[14..14 + 548]);
    // When it answers, the whole goes on.
    router.send("e0", &sent);
    router.sent("e1");
    router.send("e1", &answer4(1, 9));
    let arrived = router.sent("e1");
    assert_eq!((arrived.len(), arrived[0].len()), (1, sent.len()));
}

#[test]
fn no_error_is_sent_about_an_error_that_waited_in_vain() {
    let mut router = router();
    let mut error = ping_to(false, 9);
    // Time exceeded instead of an echo request.
    error[34] = 11;
    error[36..38].copy_from_slice(&[0, 0]);
    let sum = quiver_wire::checksum::Sum::new().bytes(&error[34..]).checksum();
    error[36..38].copy_from_slice(&sum.to_be_bytes());
    router.send("e0", &error);
    seconds(&mut router, 4.0);
    assert!(router.sent("e0").is_empty());
    assert_eq!(router.count("ip4-icmp-error", "about-error"), 1);
}

#[test]
fn the_routers_own_ping_hears_that_the_host_is_not_there() {
    let mut router = router();
    router.cli("set ip neighbor-config retransmit 0.1");
    for address in ["10.1.0.9", "2001:db8:1::9"] {
        let said = router.cli(&format!("ping {address} repeat 1"));
        assert!(said.contains("unreachable"), "{said}");
        assert!(said.contains("1 sent, 0 received"), "{said}");
    }
}

#[test]
fn a_host_that_comes_back_is_found_again() {
    let mut router = router();
    router.send("e0", &ping_to(false, 9));
    seconds(&mut router, 5.0);
    router.sent("e1");
    router.send("e0", &ping_to(false, 9));
    assert_eq!(questions(&mut router, false).len(), 1);
    router.send("e1", &answer(false, 9));
    assert_eq!(router.sent("e1").len(), 1, "what waited");
}

#[test]
fn an_advertisement_that_nobody_asked_for_makes_no_neighbour() {
    let mut router = router();
    for flags in [
        NeighborFlags::SOLICITED.with(NeighborFlags::OVERRIDE),
        NeighborFlags::OVERRIDE,
        NeighborFlags::SOLICITED,
        NeighborFlags::default(),
    ] {
        let to_all = !flags.contains(NeighborFlags::SOLICITED);
        router.send("e1", &advertises(host6(1, 9), host_mac(9), flags, to_all));
    }
    assert_eq!(state(&mut router, true, 9), None);
}

#[test]
fn an_answer_that_does_not_tell_the_mac_address_confirms_the_known_one() {
    let mut router = router();
    let solicited = NeighborFlags::SOLICITED.with(NeighborFlags::OVERRIDE);
    let options = quiver_wire::icmp6::nd::Options::new(&[]).unwrap();
    let message = quiver_wire::icmp6::nd::Message::NeighborAdvertisement {
        flags: solicited,
        target: host6(1, 9),
        options,
    };
    let answer = stand::nd_frame(message, host_mac(9), host6(1, 9), host6(1, 1));
    router.send("e0", &ping_to(true, 9));
    router.send("e1", &answer);
    assert_eq!(state(&mut router, true, 9).as_deref(), Some("incomplete"), "where is it?");
    resolve(&mut router, true);
    seconds(&mut router, 61.0);
    router.send("e0", &ping_to(true, 9));
    seconds(&mut router, 5.1);
    router.send("e1", &answer);
    assert_eq!(state(&mut router, true, 9).as_deref(), Some("reachable"));
}

#[test]
fn an_advertisement_without_override_casts_doubt_on_another_address() {
    let mut router = router();
    resolve(&mut router, true);
    router.send("e1", &advertises(host6(1, 9), host_mac(0x66), NeighborFlags::default(), true));
    assert_eq!(state(&mut router, true, 9).as_deref(), Some("stale"));
    router.send("e0", &ping_to(true, 9));
    assert_eq!(router.sent("e1")[0][..6], host_mac(9).0, "it is still used");
}

#[test]
fn who_solicits_us_is_known_and_asked_once_we_send_to_it() {
    let mut router = router();
    let mut option = [0; 8];
    quiver_wire::icmp6::nd::NdOption::SourceMac(host_mac(9)).emit(&mut option).unwrap();
    let options = quiver_wire::icmp6::nd::Options::new(&option).unwrap();
    let message =
        quiver_wire::icmp6::nd::Message::NeighborSolicitation { target: host6(1, 1), options };
    router.send("e1", &stand::nd_frame(message, host_mac(9), host6(1, 9), host6(1, 1)));
    assert_eq!(router.sent("e1").len(), 1, "it is answered");
    assert_eq!(state(&mut router, true, 9).as_deref(), Some("stale"));
    router.send("e0", &ping_to(true, 9));
    router.sent("e1");
    seconds(&mut router, 5.1);
    assert_eq!(questions(&mut router, true), [host_mac(9)]);
}

#[test]
fn a_gratuitous_arp_changes_who_is_known_and_makes_nobody_new() {
    let mut router = router();
    resolve(&mut router, false);
    let announces = |number: u8, mac: MacAddress| {
        arp_frame(None, mac, &arp::Repr::request(mac, host4(1, number), host4(1, number)))
    };
    router.send("e1", &announces(9, host_mac(0x66)));
    router.send("e1", &announces(8, host_mac(8)));
    router.send("e0", &ping_to(false, 9));
    assert_eq!(router.sent("e1")[0][..6], host_mac(0x66).0);
    assert_eq!(state(&mut router, false, 8), None);
    assert_eq!(router.count("arp-input", "gratuitous"), 2);
}

#[test]
fn each_family_has_a_limit_of_its_own() {
    let mut router = router();
    router.cli("set ip neighbor-config ip4 limit 1");
    router.send("e1", &asks4(1, 7));
    router.send("e1", &asks4(1, 8));
    resolve(&mut router, true);
    assert_eq!(state(&mut router, false, 7).as_deref(), Some("reachable"));
    assert_eq!(state(&mut router, false, 8), None);
    let shown = router.cli("show ip neighbors");
    assert!(shown.contains("1 times a neighbour was not learned"), "{shown}");
    let shown = router.json("show ip neighbor-config");
    assert_eq!(
        (&shown[0]["dynamic"], &shown[0]["not_learned"], &shown[0]["limit"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!((&shown[1]["dynamic"], &shown[1]["not_learned"]), (&1.into(), &0.into()));
}

#[test]
fn a_full_table_that_recycles_forgets_the_one_heard_longest_ago() {
    let mut router = router();
    router.cli("set ip neighbor-config ip4 limit 2 recycle");
    for number in [7, 8, 7, 9] {
        router.send("e1", &asks4(1, number));
        seconds(&mut router, 1.0);
    }
    let known: Vec<bool> =
        [7, 8, 9].map(|number| state(&mut router, false, number).is_some()).into();
    assert_eq!(known, [true, false, true]);
    assert_eq!(router.json("show ip neighbor-config")[0]["recycled"], 1);
}

#[test]
fn a_scan_of_a_subnet_keeps_no_known_neighbour_from_its_packets() {
    for six in [false, true] {
        let mut router = router();
        resolve(&mut router, six);
        let unknown = |number: u32| {
            let to = if six {
                (u128::from(0x2001_0db8_0001_0000_u64) << 64 | 0xffff_0000 | u128::from(number))
                    .to_be_bytes()
                    .into()
            } else {
                std::net::IpAddr::V4((0x0a01_8000 + number).into())
            };
            ping(0, host(six, 0, 2), to, 20)
        };
        // 20,000 a second.
        for round in 0..50 {
            for number in 0..200 {
                router.inject("e0", &unknown(round * 200 + number));
            }
            router.inject("e0", &ping_to(six, 9));
            router.run();
            seconds(&mut router, 0.01);
        }
        let sent = router.sent("e1");
        let arrived = sent.iter().filter(|frame| frame[..6] == host_mac(9).0).count();
        assert_eq!(arrived, 50, "the known host gets all of its packets");
        let asked = sent.len() - arrived;
        // A worker's share and burst, and the control thread's retries in the second half second.
        assert!((1000..1300).contains(&asked), "{asked} questions in half a second");
        assert!(router.buffers_in_use() <= 512, "{} buffers", router.buffers_in_use());
        let shown = router.json("show ip neighbor-config");
        let incomplete = shown[usize::from(six)]["incomplete"].as_u64().unwrap();
        assert!(incomplete <= 4096, "{incomplete}");
        assert_eq!(shown[usize::from(six)]["dynamic"], 1);
        // In the end, all are given up, and who scanned is told no more often than errors may be
        // sent.
        seconds(&mut router, 20.0);
        assert_eq!(router.json("show ip neighbor-config")[usize::from(six)]["incomplete"], 0);
        let told = router.sent("e0").len();
        assert!(told <= 1100, "{told}");
    }
}

#[test]
fn a_scan_from_one_interface_leaves_another_its_share_of_questions() {
    let mut router = router();
    router.interface("e2");
    router.cli("set interface ip address e2 10.2.0.1/16");
    for number in 0..2000_u32 {
        let to = std::net::IpAddr::V4((0x0a01_8000 + number).into());
        router.inject("e0", &ping(0, host(false, 0, 2), to, 20));
    }
    router.run();
    assert!(router.count("ip4-glean", "too-many-requests") > 1000);
    router.sent("e1");
    router.send("e2", &ping(2, host(false, 2, 2), host(false, 1, 9), 20));
    assert_eq!(questions(&mut router, false).len(), 1);
}

#[test]
fn an_arp_storm_does_not_fill_the_table_beyond_its_limit() {
    let mut router = router();
    router.cli("set ip neighbor-config ip4 limit 500");
    for round in 0..20_u8 {
        for number in 0..250 {
            let from = std::net::Ipv4Addr::new(10, 1, 1 + round, number);
            let question = arp::Repr::request(host_mac(number), from, host4(1, 1));
            router.inject("e1", &arp_frame(None, host_mac(number), &question));
        }
        router.run();
        seconds(&mut router, 0.1);
    }
    let shown = router.json("show ip neighbor-config");
    assert_eq!(shown[0]["dynamic"], 500);
    assert_eq!(router.sent("e1").len(), 5000, "all are answered");
}

#[test]
fn how_neighbours_age_is_written_down_and_read_again() {
    let mut router = router();
    let line = "set ip neighbor-config ip4 age 300 limit 1000 recycle reachable 10 delay 2 \
                retransmit 0.5 probes 5";
    router.cli(line);
    router.cli("set ip neighbor-config ip6 limit 77");
    let written = router.cli("show running-config");
    assert!(
        written.contains(line) && written.contains("set ip neighbor-config ip6 limit 77"),
        "{written}"
    );
    router.cli(
        "set ip neighbor-config age 1200 limit 65536 norecycle reachable 40 delay 5 retransmit 1 \
         probes 3",
    );
    assert!(!router.cli("show running-config").contains("neighbor-config"));
    let refusal = router.refused("set ip neighbor-config retransmit 0.01");
    assert!(refusal.contains("0.1 to 60"), "{refusal}");
}

#[test]
fn a_neighbour_of_an_interface_that_goes_down_is_asked_no_more() {
    let mut router = router();
    router.send("e0", &ping_to(false, 9));
    router.send("e0", &ping_to(true, 9));
    router.sent("e1");
    router.cli("set interface state e1 down");
    seconds(&mut router, 5.0);
    assert!(router.sent("e1").is_empty());
}
