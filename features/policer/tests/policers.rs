//! What operators type, and what becomes of packets.

use std::time::Duration;

use quiver_testkit::Router;

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_policer::register]);
    for (name, net) in [("e0", 0), ("e1", 1)] {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.0.{net}.1/24"));
        router.cli(&format!("ip neighbor {name} 10.0.{net}.2 02:00:00:00:00:0{net}"));
    }
    router
}

/// An IPv4 packet of 1,000 bytes with its Ethernet header, and a traffic class.
fn frame(class: u8) -> Vec<u8> {
    let mut header = vec![0x45, class, 3, 0xda, 0, 0, 0, 0, 64, 17, 0, 0];
    header.extend([10, 0, 0, 2, 10, 0, 1, 2]);
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let ethernet = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0];
    [&ethernet[..], &header[..], &[0, 1, 0, 2, 3, 0xc6, 0, 0], &[0; 958]].concat()
}

fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let all: u32 = words.sum();
    !((all & 0xffff) + (all >> 16)) as u16
}

fn passed(router: &mut Router, count: usize, class: u8) -> Vec<Vec<u8>> {
    (0..count).for_each(|_| router.inject("e0", &frame(class)));
    router.run();
    router.sent("e1")
}

#[test]
fn what_is_received_is_metered_and_more_is_dropped() {
    let mut router = router();
    router.cli("policer add name gold rate kbps cir 8000 cb 10000");
    router.cli("policer input name gold e0");
    assert_eq!(passed(&mut router, 30, 0).len(), 10);
    router.advance(Duration::from_millis(5));
    assert_eq!(passed(&mut router, 30, 0).len(), 5, "a million bytes a second");
    assert_eq!(router.count("policer-input", "policed"), 45);
    let rows = router.json("show policer gold");
    let counted = |row: usize| (rows[row]["packets"].as_u64(), rows[row]["bytes"].as_u64());
    assert_eq!(counted(0), (Some(15), Some(15_000)));
    assert_eq!(counted(2), (Some(45), Some(45_000)));
    router.cli("policer input name gold e0 unapply");
    assert_eq!(passed(&mut router, 30, 0).len(), 30);
}

#[test]
fn what_is_sent_is_metered_by_a_policer_of_two_interfaces() {
    let mut router = router();
    router.cli("policer add name both rate pps cir 100 cb 10");
    for line in ["policer output name both e1", "policer output name both e0"] {
        router.cli(line);
    }
    assert_eq!(passed(&mut router, 30, 0).len(), 10);
    router.cli("policer reset name both");
    assert_eq!(passed(&mut router, 30, 0).len(), 10);
    assert_eq!(router.count("policer-output", "policed"), 40);
}

#[test]
fn packets_are_marked_by_their_colour() {
    let mut router = router();
    router.cli(
        "policer add name s rate kbps cir 8 cb 2000 eir 8 eb 3000 type 2r3c-4115 conform-action \
         mark-and-transmit 10 exceed-action mark-and-transmit 12 violate-action drop",
    );
    router.cli("policer input name s e0");
    let frames = passed(&mut router, 9, 0b0000_0011);
    let classes: Vec<u8> = frames.iter().map(|frame| frame[15]).collect();
    let (green, yellow) = (10 << 2 | 3, 12 << 2 | 3);
    assert_eq!(classes, [green, green, yellow, yellow, yellow], "ECN stays");
    for frame in &frames {
        assert_eq!(checksum(&frame[14..34]), 0, "the header's checksum is right");
    }
}

#[test]
fn colours_of_assured_forwarding_count_when_the_policer_is_aware_of_them() {
    let mut router = router();
    router.cli("policer add name a rate kbps cir 8 cb 3000 eb 2000 type 1r3c color-aware");
    router.cli("policer input name a e0");
    // AF13 was red, AF12 yellow.
    assert_eq!(passed(&mut router, 3, 14 << 2).len(), 0);
    assert_eq!(passed(&mut router, 3, 12 << 2).len(), 2);
    assert_eq!(passed(&mut router, 4, 10 << 2).len(), 3);
}

#[test]
fn mistakes_are_refused_and_change_nothing() {
    let mut router = router();
    router.cli("policer add name gold rate kbps cir 8000 cb 10000");
    router.cli("policer input name gold e0");
    let config = router.cli("show running-config");
    for (line, why) in [
        ("policer add name x rate kbps cir 0", "from 1 to"),
        ("policer add name x rate kbps cir 8 eir 9", "one rate"),
        ("policer add name x rate kbps cir 8 eb 9", "one burst"),
        ("policer add name x rate kbps cir 8 eir 7 type 2r3c-2698", "peak rate"),
        ("policer add name x rate kbps cir 8 type 2r3c-4115", "second rate"),
        ("policer add name x rate kbps cir 8 conform-action drop 3", "only mark-and-transmit"),
        ("policer add name x rate kbps cir 8 conform-action mark-and-transmit", "which DSCP"),
        ("policer add name gold rate kbps cir 8 eir 9", "one rate"),
        ("policer del name gold", "meters the input of e0"),
        ("policer del name x", "no policer x"),
        ("policer reset name x", "no policer x"),
        ("policer input name x e1", "no policer x"),
        ("policer output name gold e0 unapply", "does not meter the output of e0"),
        ("show policer x", "no policer x"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
    assert!(router.cli("policer add name small rate kbps cir 8 cb 100").contains("warning"));
}

#[test]
fn a_policer_that_changes_keeps_its_counts_and_one_that_is_replaced_meters_on() {
    let mut router = router();
    for line in [
        "policer add name a rate pps cir 1 cb 3",
        "policer add name b rate pps cir 1 cb 5",
        "policer input name a e0",
    ] {
        router.cli(line);
    }
    assert_eq!(passed(&mut router, 9, 0).len(), 3);
    router.cli("policer add name a rate pps cir 1 cb 4");
    assert_eq!(passed(&mut router, 9, 0).len(), 4);
    assert_eq!(router.json("show policer a")[0]["packets"], 7);
    router.cli("policer input name b e0");
    assert_eq!(passed(&mut router, 9, 0).len(), 5);
    router.cli("policer del name a");
    assert_eq!(router.json("show policer interface")[0]["policer"], "b");
}
