//! Fragments on their way through the router, with reassembly switched on where they come in.

use crate::stand;

use std::time::Duration;

use quiver_testkit::Settings;
use quiver_wire::upper::Upper;
use stand::{Cut, Family, Four, Six, Whole, router, router_with, send_all};

const DATA: usize = 4000;

/// What left by e1, from the IP header on.
fn left(router: &mut quiver_testkit::Router) -> Vec<Vec<u8>> {
    router.sent("e1").into_iter().map(|frame| frame[14..].to_vec()).collect()
}

/// The payload of a packet that is whole.
fn payload(family: Family, packet: &[u8]) -> &[u8] {
    &packet[if family == Four { 20 } else { 40 }..]
}

#[test]
fn without_a_feature_fragments_go_through_as_they_are() {
    for family in Family::BOTH {
        let mut router = router();
        send_all(&mut router, &Whole::transit(family, 1, DATA).frames(1232));
        assert_eq!(left(&mut router).len(), 4);
        assert_eq!(router.count(family.full(), "fragments"), 0);
        assert_eq!(router.count(family.shallow(), "fragments"), 0);
    }
}

#[test]
fn full_reassembly_lets_packets_go_on_whole() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 on");
        let whole = Whole::transit(family, 1, DATA);
        let mut frames = whole.frames(1232);
        frames.reverse();
        send_all(&mut router, &frames);
        let left = left(&mut router);
        assert_eq!(left.len(), 1);
        assert_eq!(payload(family, &left[0]), whole.payload);
        match family {
            Four => {
                assert_eq!(left[0][6..8], [0, 0], "no fragment");
                assert!(quiver_wire::checksum::Sum::new().bytes(&left[0][..20]).is_good());
            }
            Six => {
                assert_eq!(left[0][6], 17, "UDP, without a fragment header");
                assert_eq!(usize::from(u16::from_be_bytes([left[0][4], left[0][5]])), DATA);
            }
        }
        router.cli("set interface reassembly e0 off");
        send_all(&mut router, &frames);
        assert_eq!(router.sent("e1").len(), 4);
    }
}

#[test]
fn packets_that_are_no_fragments_pass_by() {
    for family in Family::BOTH {
        for kind in ["full", "virtual"] {
            let mut router = router();
            router.cli(&format!("set interface reassembly e0 {kind} on"));
            let whole = Whole { to_router: true, ..Whole::echo(family, 1, 100) };
            let cut = Cut { start: 0, end: whole.payload.len(), more: false };
            send_all(&mut router, &[whole.frame(cut)]);
            assert_eq!(stand::replies(&mut router, family, "e0").len(), 1);
            assert_eq!(router.count(family.full(), "fragments"), 0);
        }
    }
}

#[test]
fn one_family_alone_can_be_switched() {
    for (word, family) in [("ip4", Four), ("ip6", Six)] {
        let mut router = router();
        router.cli(&format!("set interface reassembly e0 {word}"));
        for sent in Family::BOTH {
            send_all(&mut router, &Whole::transit(sent, 1, DATA).frames(1232));
            assert_eq!(left(&mut router).len(), if sent == family { 1 } else { 4 });
        }
    }
}

#[test]
fn what_is_whole_is_cut_again_where_the_way_out_is_narrow() {
    let mut router = router();
    router.cli("set interface reassembly e0 on");
    router.cli("set interface mtu 1500 e1");
    send_all(&mut router, &Whole::transit(Four, 1, DATA).frames(1232));
    assert_eq!(left(&mut router).iter().map(|packet| packet.len()).max(), Some(1500));
    // An IPv6 router may not cut.
    send_all(&mut router, &Whole::transit(Six, 1, DATA).frames(1232));
    assert!(left(&mut router).is_empty());
    assert_eq!(router.count("ip6-icmp-error", "packet-too-big"), 1);
}

#[test]
fn the_headers_in_front_of_the_fragment_header_stay() {
    let mut router = router();
    router.cli("set interface reassembly e0 on");
    let whole = Whole::transit(Six, 1, 2000);
    let frames: Vec<Vec<u8>> = whole
        .frames(1232)
        .into_iter()
        .map(|mut frame| {
            // Destination options of 8 bytes, padded.
            frame.splice(54..54, [44, 0, 1, 4, 0, 0, 0, 0]);
            frame[20] = 60;
            let length = (frame.len() - 54) as u16;
            frame[18..20].copy_from_slice(&length.to_be_bytes());
            frame
        })
        .collect();
    send_all(&mut router, &frames);
    let left = left(&mut router);
    assert_eq!((left[0][6], left[0][40]), (60, 17));
    assert_eq!(left[0][48..], whole.payload);
}

#[test]
fn virtual_reassembly_lets_fragments_go_on_as_they_are() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        let whole = Whole::transit(family, 1, DATA);
        send_all(&mut router, &whole.frames(1232));
        let left = left(&mut router);
        let sent: Vec<Vec<u8>> =
            whole.frames(1232).iter().map(|frame| frame[14..].to_vec()).collect();
        let behind = if family == Four { 20 } else { 40 };
        assert_eq!(left.len(), 4);
        assert!(left.iter().zip(&sent).all(|(a, b)| a[behind..] == b[behind..]));
        assert_eq!(router.count(family.shallow(), "went-on"), 4);
        let shown = router.json(&format!("show {}-sv-reassembly", family.word()));
        assert_eq!(shown["packets_under_way"], 0);
    }
}

#[test]
fn fragments_wait_for_the_first_and_go_on_behind_it_in_order() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        let frames = Whole::transit(family, 1, DATA).frames(1232);
        send_all(&mut router, &[frames[2].clone(), frames[1].clone()]);
        assert!(left(&mut router).is_empty());
        assert_eq!(router.buffers_in_use(), 2);
        send_all(&mut router, &[frames[0].clone()]);
        let gone = left(&mut router);
        let tail = |packet: &Vec<u8>| packet[packet.len() - 8..].to_vec();
        let expected: Vec<_> = [&frames[0], &frames[1], &frames[2]].map(tail).into();
        assert_eq!(gone.iter().map(tail).collect::<Vec<_>>(), expected);
        assert_eq!(router.buffers_in_use(), 0);
        // The last finds the ports known, and closes the packet.
        send_all(&mut router, &[frames[3].clone()]);
        assert_eq!(left(&mut router).len(), 1);
        assert!(
            router
                .cli(&format!("show {}-sv-reassembly details", family.word()))
                .contains("No packet")
        );
    }
}

#[test]
fn fragments_whose_first_does_not_come_are_dropped_and_nobody_is_told() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        send_all(&mut router, &Whole::transit(family, 1, DATA).frames(1232)[1..]);
        router.advance(Duration::from_secs(3));
        assert_eq!(router.count(family.shallow(), "timed-out"), 3);
        assert_eq!(router.buffers_in_use(), 0);
        assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty());
    }
}

#[test]
fn overlaps_are_refused_by_virtual_reassembly_too() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        let whole = Whole::transit(family, 1, DATA);
        let frames = whole.frames(1232);
        let odd = whole.frame(Cut { start: 1224, end: 1240, more: true });
        send_all(&mut router, &[frames[0].clone(), odd, frames[1].clone()]);
        assert_eq!(left(&mut router).len(), 1);
        assert_eq!(router.count(family.shallow(), "overlap"), 1);
        assert_eq!(router.count(family.shallow(), "of-refused-packet"), 1);
    }
}

#[test]
fn a_second_first_fragment_with_other_ports_refuses_the_packet() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        let whole = Whole::transit(family, 1, DATA);
        let mut other = whole.clone();
        other.payload[3] = 53;
        let frames = whole.frames(1232);
        send_all(
            &mut router,
            &[frames[0].clone(), other.frames(1232)[0].clone(), frames[1].clone()],
        );
        assert_eq!(left(&mut router).len(), 1);
        assert_eq!(router.count(family.shallow(), "overlap"), 1);
    }
}

#[test]
fn a_duplicate_goes_on_as_the_first_did() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        let frames = Whole::transit(family, 1, DATA).frames(1232);
        send_all(
            &mut router,
            &[frames[0].clone(), frames[1].clone(), frames[0].clone(), frames[1].clone()],
        );
        assert_eq!(left(&mut router).len(), 4);
    }
}

#[test]
fn a_tcp_header_in_two_fragments_does_not_pass() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        let whole =
            Whole { protocol: quiver_wire::IpProtocol::TCP, ..Whole::transit(family, 1, 400) };
        send_all(&mut router, &whole.frames(8)[..2]);
        assert!(left(&mut router).is_empty());
        let why = if family == Four { "tiny-fragment" } else { "headers-cut" };
        assert!(router.count(family.shallow(), why) >= 1);
        router.advance(Duration::from_secs(3));
        router.sent("e0");
    }
}

#[test]
fn an_atomic_fragment_goes_through_virtual_reassembly_at_once() {
    let mut router = router();
    router.cli("set interface reassembly e0 virtual on");
    let whole = Whole::transit(Six, 1, 1000);
    send_all(&mut router, &[whole.frame(Cut { start: 0, end: 1000, more: false })]);
    assert_eq!(left(&mut router).len(), 1);
    assert_eq!(router.count("ip6-sv-reassembly", "fragments"), 0);
}

#[test]
fn both_kinds_stand_in_their_order() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        router.cli("set interface reassembly e0 on");
        send_all(&mut router, &Whole::transit(family, 1, DATA).frames(1232));
        assert_eq!(left(&mut router).len(), 1);
        assert_eq!(router.count(family.shallow(), "fragments"), 0);
    }
}

#[test]
fn a_feature_that_is_switched_off_meanwhile_does_not_keep_what_it_holds() {
    for family in Family::BOTH {
        for kind in ["full", "virtual"] {
            let mut router = router();
            router.cli(&format!("set interface reassembly e0 {kind} on"));
            let frames = Whole::transit(family, 1, DATA).frames(1232);
            send_all(&mut router, &frames[1..3]);
            router.cli(&format!("set interface reassembly e0 {kind} off"));
            router.advance(Duration::from_secs(61));
            assert_eq!(router.buffers_in_use(), 0);
        }
    }
}

#[test]
fn tables_keep_packets_apart_that_have_the_same_name() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface reassembly e0 virtual on");
        router.cli("set interface reassembly e1 virtual on");
        let frames = Whole::transit(family, 1, DATA).frames(1232);
        // The same packet's second fragment by an interface of the same table: one packet.
        router.send("e0", &frames[0]);
        let mut other = frames[1].clone();
        other[..6].copy_from_slice(&[2, 0xfe, 0, 0, 0, 1]);
        router.send("e1", &other);
        assert_eq!(router.count(family.shallow(), "went-on"), 2);
    }
}

#[test]
fn the_note_of_a_fragment_is_what_the_first_said() {
    let whole = Whole::transit(Four, 1, 64);
    let cut = Cut { start: 0, end: 64, more: true };
    let upper = Upper::of_ip4(&whole.frame(cut)[14..]).expect("ports");
    assert_eq!((upper.source_port, upper.destination_port), (1000, 2000));
    let whole = Whole::transit(Six, 1, 64);
    assert_eq!(Upper::of_ip6(&whole.frame(cut)[14..]), Ok(upper));
}

#[test]
fn workers_hand_over_fragments_that_are_on_their_way_through() {
    for family in Family::BOTH {
        for kind in ["full", "virtual"] {
            let mut router = router_with(Settings { workers: 2, ..Settings::default() });
            router.cli(&format!("set interface reassembly e0 {kind} on"));
            for number in 0..8 {
                let frames = Whole::transit(family, number, DATA).frames(1232);
                for (place, frame) in frames.iter().enumerate() {
                    router.inject_queue("e0", place % 2, frame);
                }
                router.run();
                assert_eq!(left(&mut router).len(), if kind == "full" { 1 } else { 4 });
            }
            assert!(router.dropped().is_empty(), "{:?}", router.dropped());
        }
    }
}

/// A way to e2 as good as that to e1.
fn with_two_ways() -> quiver_testkit::Router {
    let mut router = router();
    let lines = "
        create test interface e2 mtu 9000
        set interface state e2 up
        set interface ip address e2 10.0.2.1/24
        set interface ip address e2 2001:db8:2::1/64
        ip neighbor e2 10.0.2.2 02:00:00:00:00:c2 static
        ip neighbor e2 2001:db8:2::2 02:00:00:00:00:c2 static
        ip route add 10.0.1.2/32 via 10.0.1.2 e1 via 10.0.2.2 e2
        ip route add 2001:db8:1::2/128 via 2001:db8:1::2 e1 via 2001:db8:2::2 e2";
    router.script("two ways", lines).expect("a good configuration");
    router.run();
    router.sent("e2");
    router
}

#[test]
fn fragments_whose_ports_are_known_take_the_way_of_whole_packets_of_their_flow() {
    for (family, hash) in
        [(Four, ""), (Six, ""), (Four, "sport dport symmetric"), (Six, "src sport")]
    {
        let mut router = with_two_ways();
        router.cli(&format!("set interface reassembly e0 virtual {}", family.word()));
        if !hash.is_empty() {
            let word = if family == Four { "ip" } else { "ip6" };
            router.cli(&format!("set {word} flow-hash table 0 {hash}"));
        }
        let mut used = std::collections::BTreeSet::new();
        for port in 0..32u16 {
            let mut whole = Whole::transit(family, port.into(), DATA);
            whole.payload[..2].copy_from_slice(&(1000 + port).to_be_bytes());
            let mut atomic = whole.clone();
            atomic.payload.truncate(100);
            // One piece with neither offset nor more: IPv4 says that it is whole, IPv6 that it was
            // once cut.
            let alone = atomic.frame(Cut { start: 0, end: 100, more: false });
            send_all(&mut router, &[alone]);
            let way = ["e1", "e2"].map(|name| router.sent(name).len());
            let mut frames = whole.frames(1232);
            frames.reverse();
            send_all(&mut router, &frames);
            assert_eq!(
                ["e1", "e2"].map(|name| router.sent(name).len()),
                way.map(|one| one * 4),
                "{family:?}"
            );
            used.insert(way);
        }
        assert_eq!(used.len(), 2, "{family:?} flows take both ways");
    }
}
