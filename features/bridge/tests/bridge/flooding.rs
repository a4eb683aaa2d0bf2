//! Copies: to whom, how many, and what is left of the buffers.

use quiver_testkit::Settings;

use super::{BROADCAST, bridge_with, frame, mac, sent};

#[test]
fn a_domain_of_three_hundred_ports_is_flooded_whole() {
    let mut router = bridge_with(Settings { buffers: 4096, ..Settings::default() }, 300);
    for round in 0..3 {
        router.send("e7", &frame(BROADCAST, mac(1)));
        let mut expected = vec![1; 300];
        expected[7] = 0;
        assert_eq!(sent(&mut router, 300), expected, "{round}");
    }
    assert!(router.count("l2-flood", "resumed") > 0);
    assert_eq!(router.count("l2-flood", "no-buffer"), 0);
}

#[test]
fn a_storm_of_broadcasts_is_sent_to_all_ports_and_keeps_its_order() {
    let mut router = bridge_with(Settings { buffers: 4096, ..Settings::default() }, 20);
    for n in 0..200 {
        let mut numbered = frame(BROADCAST, mac(1));
        numbered[20] = n;
        router.inject("e0", &numbered);
    }
    router.run();
    for port in 1..20 {
        let numbers: Vec<u8> =
            router.sent(&format!("e{port}")).iter().map(|frame| frame[20]).collect();
        assert_eq!(numbers.len(), 200, "e{port}");
        assert!(numbers.is_sorted(), "e{port}: {numbers:?}");
    }
}

#[test]
fn copies_that_there_are_no_buffers_for_are_counted_and_the_router_goes_on() {
    // Few and short buffers: jumbo frames for many ports.
    let mut router =
        bridge_with(Settings { buffers: 256, buffer_data_bytes: 1024, ..Settings::default() }, 16);
    let mut jumbo = frame(BROADCAST, mac(1));
    jumbo.resize(9000, 7);
    (0..4).for_each(|_| router.inject("e0", &jumbo));
    router.run();
    let all: usize = sent(&mut router, 16).iter().sum();
    let missing = router.count("l2-flood", "no-buffer") as usize;
    assert!(all >= 4 && missing > 0, "{all} sent, {missing} not");
    assert_eq!(all + missing, 4 * 15);
    router.send("e0", &frame(BROADCAST, mac(1)));
    assert_eq!(sent(&mut router, 16).iter().sum::<usize>(), 15);
}

#[test]
fn a_frame_for_nobody_is_counted() {
    let mut router = bridge_with(Settings::default(), 1);
    router.send("e0", &frame(BROADCAST, mac(1)));
    router.send("e0", &frame(mac(9), mac(1)));
    assert_eq!(
        (router.count("l2-flood", "no-port"), router.count("l2-uu-flood", "no-port")),
        (1, 1)
    );
}
