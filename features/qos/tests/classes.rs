//! What operators type, and what becomes of packets.

use quiver_testkit::Router;
use quiver_wire::checksum::{header_checksum, header_is_good};
use quiver_wire::{Header, Ip4Header};

/// Two ports and a tagged sub-interface of each.
fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_mpls::register,
        quiver_qos::register,
    ]);
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("create sub-interfaces {name} 100"));
        router.cli(&format!("set interface state {name}.100 up"));
        for (on, third) in [(name.to_owned(), net), (format!("{name}.100"), net + 10)] {
            router.cli(&format!("set interface ip address {on} 10.0.{third}.1/24"));
            router.cli(&format!("ip neighbor {on} 10.0.{third}.2 02:00:00:00:00:{third:02}"));
        }
    }
    router
}

/// Bytes of an IPv4 packet with a traffic class, to a host behind `e1` or `e1.100`.
fn packet(class: u8, third: u8) -> Vec<u8> {
    let mut header = vec![0x45, class, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend([10, 0, 0, 2, 10, 0, third, 2]);
    let sum = header_checksum(Ip4Header::overlay(&header).unwrap());
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&header[..], &[0, 1, 0, 2, 0, 8, 0, 0]].concat()
}

/// A frame to the router, with this between its addresses and its packet.
fn frame(between: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0], between, packet].concat()
}

fn tag(priority: u8) -> [u8; 6] {
    [0x81, 0, priority << 5, 100, 8, 0]
}

/// What leaves `e1` of what comes by `e0`.
fn passed(router: &mut Router, frame: &[u8]) -> Vec<u8> {
    router.inject("e0", frame);
    router.run();
    let mut sent = router.sent("e1");
    assert_eq!(sent.len(), 1, "{:?}", router.dropped());
    sent.remove(0)
}

fn class_of(frame: &[u8], at: usize) -> u8 {
    assert!(header_is_good(Ip4Header::overlay(&frame[at..]).unwrap()), "the checksum is right");
    frame[at + 1]
}

#[test]
fn the_class_of_an_ip_header_becomes_the_priority_of_a_tag() {
    let mut router = router();
    for line in [
        "qos egress map id 1 ip in 184 out 5 ip in 136 to 159 out 4",
        "qos record ip e0",
        "qos mark vlan e1.100 id 1",
    ] {
        router.cli(line);
    }
    for (class, priority) in [(0xb8, 5), (0xbb, 5), (0x88, 4), (0x90, 4), (0, 0)] {
        let sent = passed(&mut router, &frame(&[8, 0], &packet(class, 11)));
        assert_eq!(sent[14] >> 5, priority, "class {class:#x}");
        assert_eq!((u16::from_be_bytes([sent[14], sent[15]]) & 0xfff, sent[18 + 1]), (100, class));
    }
    assert_eq!(
        (router.count("qos-record", "recorded"), router.count("qos-mark", "marked")),
        (5, 4)
    );
    // A port without marks leaves them alone.
    let sent = passed(&mut router, &frame(&[8, 0], &packet(0xb8, 1)));
    assert_eq!(class_of(&sent, 14), 0xb8);
}

#[test]
fn the_priority_of_a_tag_becomes_the_class_of_an_ip_header_and_ecn_stays() {
    let mut router = router();
    for line in [
        "qos egress map id 2 vlan in 5 out 184 vlan in 0 to 4 out 0",
        "qos record vlan e0.100",
        "qos mark ip e1 id 2",
    ] {
        router.cli(line);
    }
    for (priority, class, expected) in [(5, 0x02, 0xba), (3, 0xff, 0x03), (7, 0x28, 0x28)] {
        let sent = passed(&mut router, &frame(&tag(priority), &packet(class, 1)));
        assert_eq!(class_of(&sent, 14), expected, "RFC 3168 §5: ECN stays");
    }
    // Untagged packets of the port were never recorded.
    let sent = passed(&mut router, &frame(&[8, 0], &packet(0x28, 1)));
    assert_eq!(class_of(&sent, 14), 0x28);
}

#[test]
fn the_innermost_recorded_header_counts_and_a_stored_class_goes_before_it() {
    let mut router = router();
    for line in [
        "qos egress map id 3 vlan in 5 out 40 ip in 8 out 48 ip in 12 out 56",
        "qos record vlan e0",
        "qos mark ip e1 id 3",
    ] {
        router.cli(line);
    }
    let sent = |router: &mut Router| {
        let sent = passed(router, &frame(&tag(5), &packet(8, 1)));
        class_of(&sent, 14)
    };
    assert_eq!(sent(&mut router), 40, "the port records what its sub-interfaces receive");
    router.cli("qos record ip e0.100");
    assert_eq!(sent(&mut router), 48);
    router.cli("qos store ip e0.100 value 12");
    assert_eq!(sent(&mut router), 56);
    router.cli("qos store ip e0.100 disable");
    assert_eq!(sent(&mut router), 48);
    router.cli("qos mark ip e1 disable");
    assert_eq!(sent(&mut router), 8);
}

#[test]
fn classes_of_imposed_labels_are_written() {
    let mut router = router();
    for line in [
        "mpls table add 0",
        "set interface mpls e0 enable",
        "set interface mpls e1 enable",
        "ip route add 10.7.0.0/16 via 10.0.1.2 e1 out-labels 77",
        "mpls local-label add 88 eos via 10.0.1.2 e1 out-labels 99",
        "qos egress map id 4 ip in 184 out 6 mpls in 6 out 2",
        "qos record ip e0",
        "qos record mpls e0",
        "qos mark mpls e1 id 4",
    ] {
        router.cli(line);
    }
    let mut inside = packet(0xb8, 1);
    inside[17] = 7;
    let sum = header_checksum(Ip4Header::overlay(&inside).unwrap());
    inside[10..12].copy_from_slice(&sum.to_be_bytes());
    let sent = passed(&mut router, &frame(&[8, 0], &inside));
    let entry = u32::from_be_bytes(*sent[14..].first_chunk().unwrap());
    assert_eq!((entry >> 12, entry >> 9 & 7, entry >> 8 & 1), (77, 6, 1), "RFC 5462 §2");
    assert_eq!(class_of(&sent, 18), 0xb8);
    let label = 88 << 12 | 6 << 9 | 1 << 8 | 64u32;
    let labelled = [&label.to_be_bytes()[..], &inside].concat();
    let sent = passed(&mut router, &frame(&[0x88, 0x47], &labelled));
    let entry = u32::from_be_bytes(*sent[14..].first_chunk().unwrap());
    assert_eq!((entry >> 12, entry >> 9 & 7), (99, 2), "the class of the label that came");
}

#[test]
fn replies_of_the_router_have_no_class() {
    let mut router = router();
    for line in ["qos egress map id 1 ip in 40 out 184", "qos record ip e0", "qos mark ip e0 id 1"]
    {
        router.cli(line);
    }
    let mut echo = packet(40, 0);
    echo[9] = 1;
    echo[19] = 1;
    echo[20..28].copy_from_slice(&[8, 0, 0xf7, 0xfe, 0, 1, 0, 0]);
    let sum = header_checksum(Ip4Header::overlay(&echo).unwrap());
    echo[10..12].copy_from_slice(&sum.to_be_bytes());
    router.inject("e0", &frame(&[8, 0], &echo));
    router.run();
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 1, "{:?}", router.dropped());
    assert_ne!(class_of(&sent[0], 14), 184);
}

#[test]
fn mistakes_are_refused_and_change_nothing() {
    let mut router = router();
    for line in ["qos egress map id 1 ip in 184 out 46", "qos mark ip e1 id 1"] {
        router.cli(line);
    }
    router.cli("qos egress map id 2 ip in 184 out 5");
    router.cli("qos mark vlan e1 id 2");
    let config = router.cli("show running-config");
    for (line, why) in [
        ("qos egress map id 3 ip in 9 to 8 out 1", "8 is before 9"),
        ("qos egress map id 3 ip in 1 to 9 out 1 ip in 7 out 2", "7 of ip is mapped twice"),
        ("qos egress map id 3 vlan in 8 out 1", "the class of vlan is 0 to 7"),
        ("qos egress map id 3 ip in 256 out 1", "from 0 to 255"),
        ("qos egress map id 4096 ip in 1 out 1", "from 0 to 4095"),
        ("qos egress map id 2 ip in 184 out 8", "map 2 writes 8"),
        ("qos egress map del id 1", "egress map 1 marks ip on e1"),
        ("qos egress map del id 9", "there is no egress map 9"),
        ("qos mark ip e1 id 9", "there is no egress map 9"),
        ("qos mark mpls e1 id 1", "map 1 writes 46"),
        ("qos mark ip e1", "by which map"),
        ("qos store vlan e0 value 8", "the class of vlan is 0 to 7"),
        ("qos store ip e0", "which class"),
        ("qos record ip e9", "e9"),
        ("show qos egress map id 9", "there is no egress map 9"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
}

#[test]
fn what_is_shown_is_what_was_said_and_a_deleted_interface_takes_it_along() {
    let mut router = router();
    for line in [
        "qos egress map id 1 ip in 0 to 3 out 1 ip in 4 out 1 ext in 255 out 0",
        "qos record ip e0.100",
        "qos store mpls e0.100 value 3",
        "qos mark vlan e0.100 id 1",
    ] {
        router.cli(line);
    }
    let map = router.json("show qos egress map id 1");
    assert_eq!((map[1]["first"].as_u64(), map[1]["last"].as_u64()), (Some(0), Some(4)));
    assert_eq!(router.json("show qos record")[0]["source"], "ip");
    assert_eq!(router.json("show qos store")[0]["value"], 3);
    assert_eq!(router.json("show qos mark")[0]["map"], 1);
    let config = router.cli("show running-config");
    assert!(config.contains("qos egress map id 1 ext in 255 out 0 ip in 0 to 4 out 1"), "{config}");
    router.cli("delete sub-interface e0.100");
    assert!(!router.cli("show running-config").contains("qos record"));
    router.cli("qos egress map del id 1");
    assert_eq!(router.json("show qos egress map").as_array().map(Vec::len), Some(0));
}
