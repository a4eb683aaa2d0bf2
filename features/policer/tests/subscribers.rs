//! Policers of subscribers: each address of a prefix has a rate of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::Router;

use crate::classes::{datagram, router};

/// The address of a host behind `e0`.
fn subscriber(host: u8) -> String {
    quiver_testkit::sources::host(host).to_string()
}

/// A datagram from a host behind `e1` to one behind `e0`.
fn answer(host: u8) -> Vec<u8> {
    let mut frame = datagram(0, host, 80);
    // The other direction: both pairs of addresses change places, which no checksum notices.
    let (from, to) = (frame[26..30].to_vec(), frame[30..34].to_vec());
    frame[26..30].copy_from_slice(&to);
    frame[30..34].copy_from_slice(&from);
    frame[5] = 1; // the port that it goes to
    frame
}

/// An IPv6 datagram from a subscriber's network, by its number.
fn ip6(network: u8, host: u8) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, 8, 17, 64]);
    frame.extend([0x20, 1, 0x0d, 0xb8, 0, 9, 0, network, 0, 0, 0, 0, 0, 0, 0, host]);
    frame.extend([0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend([0, 1, 0, 80, 0, 8, 0, 0]);
    frame
}

fn run(router: &mut Router, lines: &[&str]) {
    lines.iter().for_each(|line| {
        router.cli(line);
    });
}

fn passed(router: &mut Router, frames: &[Vec<u8>]) -> usize {
    frames.iter().for_each(|frame| router.inject("e0", frame));
    router.run();
    router.sent("e1").len()
}

/// Packets of a subscriber in a direction: that conform, and that violate.
fn counted(router: &mut Router, address: &str, direction: &str) -> (u64, u64) {
    let rows = router.json(&format!("show policer subscriber {address}"));
    let rows = rows.as_array().expect("rows").clone();
    let row = rows.iter().find(|row| row["direction"] == direction).expect("a row").clone();
    (row["conform"].as_u64().expect("a number"), row["violate"].as_u64().expect("a number"))
}

/// The prefix of all hosts of `quiver_testkit::sources`.
fn all_hosts() -> String {
    format!("{}/24", subscriber(0))
}

#[test]
fn each_address_of_a_prefix_has_buckets_of_its_own() {
    let mut router = router();
    let prefix = all_hosts();
    run(
        &mut router,
        &[
            "policer add name up rate pps cir 100 cb 4",
            "policer add name down rate pps cir 100 cb 7",
            &format!("policer subscriber add {prefix} policer down upload up each 32"),
            "policer subscriber input e0",
        ],
    );
    // Ten packets of each of three hosts, in turn.
    let frames: Vec<Vec<u8>> =
        (0..10).flat_map(|_| [1, 2, 200].map(|host| datagram(0, host, 80))).collect();
    assert_eq!(passed(&mut router, &frames), 12);
    assert_eq!(router.count("policer-subscriber-input", "policed"), 18);
    router.advance(Duration::from_millis(20));
    assert_eq!(passed(&mut router, &frames), 6, "a hundred a second, for each");
    for host in [1, 2, 200] {
        assert_eq!(counted(&mut router, &subscriber(host), "upload"), (6, 14));
    }
    assert_eq!(counted(&mut router, &subscriber(3), "upload"), (0, 0));
    let all = router.json("show policer subscriber verbose");
    assert_eq!(all.as_array().map(Vec::len), Some(3), "{all}");
    let rows = router.json("show policer up");
    assert_eq!(rows[0]["packets"], 0, "the policer itself meters none of them");
    router.cli("policer subscriber input e0 del");
    assert_eq!(passed(&mut router, &frames), 30);
}

#[test]
fn what_is_sent_is_metered_by_its_destination() {
    let mut router = router();
    let prefix = all_hosts();
    run(
        &mut router,
        &[
            &format!("ip route add {prefix} via 10.0.0.2 e0"),
            "policer add name down rate kbps cir 8 cb 168",
            &format!("policer subscriber add {prefix} policer down each 32"),
            "policer subscriber output e0",
        ],
    );
    let frames: Vec<Vec<u8>> = (0..8).flat_map(|_| [answer(5), answer(6)]).collect();
    frames.iter().for_each(|frame| router.inject("e1", frame));
    router.run();
    // A frame has 48 bytes: three of each are in the burst.
    assert_eq!(router.sent("e0").len(), 6);
    assert_eq!(counted(&mut router, &subscriber(6), "download"), (3, 5));
    // Nothing is said of what they send.
    assert_eq!(passed(&mut router, &vec![datagram(0, 5, 80); 9]), 9);
}

#[test]
fn networks_of_ip6_are_subscribers_and_the_longest_prefix_counts() {
    let mut router = router();
    run(
        &mut router,
        &[
            "policer add name slow rate pps cir 1 cb 2",
            "policer add name fast rate pps cir 1 cb 5",
            "policer subscriber add 2001:db8:9::/56 policer slow upload slow each 64",
            "policer subscriber add 2001:db8:9:3::/64 policer fast upload fast",
            "policer subscriber input e0",
        ],
    );
    // Hosts of a network share its rate.
    let of = |network| (0..9).map(|host| ip6(network, host)).collect::<Vec<_>>();
    assert_eq!(passed(&mut router, &of(1)), 2);
    assert_eq!(passed(&mut router, &of(2)), 2);
    assert_eq!(passed(&mut router, &of(3)), 5);
    assert_eq!(counted(&mut router, "2001:db8:9:2::77", "upload"), (2, 7));
    router.cli("policer subscriber del 2001:db8:9:3::/64");
    assert_eq!(passed(&mut router, &of(3)), 2, "the longer prefix went: the other one counts");
    let rows = router.json("show policer subscriber");
    assert_eq!((&rows[0]["each"], &rows[0]["subscribers"]), (&64.into(), &256.into()));
}

#[test]
fn a_change_of_rates_takes_effect_at_once_and_keeps_counts() {
    let mut router = router();
    let prefix = all_hosts();
    let add =
        |policer| format!("policer subscriber add {prefix} policer {policer} upload {policer}");
    run(
        &mut router,
        &[
            "policer add name a rate pps cir 1000 cb 4",
            "policer add name b rate pps cir 1000 cb 6 violate-action mark-and-transmit 8",
            &format!("{} each 32", add("a")),
            "policer subscriber input e0",
        ],
    );
    let frames = vec![datagram(3, 9, 80); 10];
    assert_eq!(passed(&mut router, &frames), 4);
    router.cli(&format!("{} each 32", add("b")));
    router.advance(Duration::from_millis(3));
    frames.iter().for_each(|frame| router.inject("e0", frame));
    router.run();
    let classes: Vec<u8> = router.sent("e1").iter().map(|frame| frame[15]).collect();
    assert_eq!(classes, [[3; 3].as_slice(), &[8 << 2 | 3; 7]].concat(), "ECN stays");
    assert_eq!(counted(&mut router, &subscriber(9), "upload"), (7, 13));
    // An operator fills the buckets, once.
    router.cli("policer reset name b");
    for conforming in [13, 13] {
        passed(&mut router, &frames);
        assert_eq!(counted(&mut router, &subscriber(9), "upload").0, conforming);
    }
    // The policer's own rates change.
    router.cli("policer add name b rate pps cir 1000 cb 1");
    router.advance(Duration::from_secs(1));
    assert_eq!(passed(&mut router, &frames), 1);
    assert_eq!(counted(&mut router, &subscriber(9), "upload"), (14, 36));
    // Other subscribers of the same prefix begin anew.
    router.cli(&add("a"));
    assert_eq!(passed(&mut router, &frames), 4);
    assert_eq!(counted(&mut router, &subscriber(77), "upload"), (4, 6), "all share one rate");
}

#[test]
fn places_are_used_again_as_if_they_were_new() {
    let mut router = router();
    let prefix = all_hosts();
    router.cli("policer add name a rate pps cir 1 cb 2");
    router.cli("policer subscriber input e0");
    for _ in 0..3 {
        router.cli(&format!("policer subscriber add {prefix} policer a upload a each 32"));
        assert_eq!(passed(&mut router, &vec![datagram(0, 4, 80); 5]), 2);
        assert_eq!(counted(&mut router, &subscriber(4), "upload"), (2, 3));
        router.cli(&format!("policer subscriber del {prefix}"));
        assert_eq!(passed(&mut router, &vec![datagram(0, 4, 80); 5]), 5, "nobody's packets pass");
    }
}

#[test]
fn there_are_a_million_subscribers_at_most() {
    let mut router = router();
    router.cli("policer add name a rate pps cir 1 cb 2");
    router.cli("policer subscriber input e0");
    router.cli("policer subscriber add 198.48.0.0/12 policer a upload a each 32");
    assert_eq!(passed(&mut router, &vec![datagram(0, 4, 80); 5]), 2);
    for line in [
        "policer subscriber add 192.0.2.1/32 policer a",
        "policer subscriber add 198.48.0.0/12 policer a each 24",
    ] {
        let refused = router.refused(line);
        assert!(refused.contains("1048576 subscribers at most"), "{refused}");
    }
    assert_eq!(counted(&mut router, &subscriber(4), "upload"), (2, 3));
    let all = router.json("show policer subscriber verbose");
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
    router.cli("policer subscriber del 198.48.0.0/12");
    router.run();
    router.cli("policer subscriber add 192.0.2.1/32 policer a");
}

#[test]
fn mistakes_are_refused_and_what_is_printed_can_be_typed_again() {
    let mut router = router();
    run(
        &mut router,
        &[
            "policer add name gold rate pps cir 1 cb 4",
            "policer subscriber add 10.0.0.0/18 policer gold upload gold each 32",
            "policer subscriber add 10.0.0.7/32 policer gold",
            "policer subscriber add 2001:db8::/48 policer gold each 64",
            "policer subscriber input e0",
            "policer subscriber output e0",
        ],
    );
    let config = router.cli("show running-config");
    for (line, why) in [
        ("policer subscriber add 10.9.0.0/16 policer x", "no policer x"),
        ("policer subscriber add 10.9.0.0/16 policer gold upload x", "no policer x"),
        ("policer subscriber add 10.9.0.0/16 policer gold each 8", "16 to 32 bits"),
        ("policer subscriber add 10.9.0.0/16 policer gold each 64", "16 to 32 bits"),
        ("policer subscriber add 2001:db8:9::/48 policer gold each 128", "at most"),
        ("policer subscriber add 0.0.0.0/0 policer gold each 32", "2^32 subscribers"),
        ("policer subscriber del 10.0.0.0/17", "no prefix of subscribers"),
        ("policer subscriber output e1 del", "no subscriber is metered at the output of e1"),
        ("policer subscriber input e9", "e9"),
        ("policer del name gold", "meters subscribers of 10.0.0.0/18"),
        ("show policer subscriber 192.0.2.1", "no subscriber's"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
    let rows = router.json("show policer interface e0");
    assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows}");
    run(
        &mut router,
        &[
            "policer subscriber input e0 del",
            "policer subscriber output e0 del",
            "policer subscriber del 10.0.0.0/18",
            "policer subscriber del 10.0.0.7/32",
            "policer subscriber del 2001:db8::/48",
            "policer del name gold",
        ],
    );
    let lines: Vec<&str> = config.lines().filter(|line| line.starts_with("policer ")).collect();
    assert_eq!(lines.len(), 6, "{config}");
    run(&mut router, &lines);
    assert_eq!(router.cli("show running-config"), config);
    // All addresses are one subscriber.
    router.cli("policer subscriber add 0.0.0.0/0 policer gold upload gold");
    assert_eq!(counted(&mut router, "192.0.2.1", "upload"), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Beside a list of prefixes, each with so many packets left.
    #[test]
    fn whatever_prefixes_there_are_each_packet_is_its_longest_ones(
        prefixes in prop::collection::btree_map(
            (any::<u8>(), 24u8..=32), (0u8..=8, 0usize..3), 1..12,
        ),
        packets in prop::collection::vec(any::<u8>(), 1..300),
    ) {
        let mut router = router();
        let bursts = [3u32, 5, 9];
        for (place, burst) in bursts.iter().enumerate() {
            router.cli(&format!("policer add name p{place} rate pps cir 1 cb {burst}"));
        }
        router.cli("policer subscriber input e0");
        let mut known = BTreeMap::new();
        for ((byte, length), (more, policer)) in prefixes {
            let (byte, length) = quiver_testkit::sources::prefix_of(byte, length);
            let each = (length + more).min(32);
            let prefix = format!("{}/{length}", subscriber(byte));
            router.cli(&format!(
                "policer subscriber add {prefix} policer p{policer} upload p{policer} each {each}"
            ));
            known.insert((byte, length), (each, policer));
        }
        let mut left = BTreeMap::new();
        let mut expected = 0;
        for host in &packets {
            let longest = known
                .iter()
                .filter(|(prefix, _)| quiver_testkit::sources::contains(**prefix, *host))
                .max_by_key(|((_, length), _)| *length);
            match longest {
                None => expected += 1,
                Some((prefix, (each, policer))) => {
                    let who = (*prefix, u32::from(*host) >> (32 - each));
                    let left = left.entry(who).or_insert(bursts[*policer]);
                    expected += usize::from(*left > 0);
                    *left = left.saturating_sub(1);
                }
            }
        }
        let frames: Vec<Vec<u8>> = packets.iter().map(|host| datagram(0, *host, 80)).collect();
        prop_assert_eq!(passed(&mut router, &frames), expected);
    }

    /// The router's end checks its buffers.
    #[test]
    fn no_frame_loses_a_buffer(frames in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..90), 1..40), kind in 0usize..4)
    {
        let mut router = router();
        router.cli("policer add name p rate pps cir 1 cb 1 color-aware violate-action \
                    mark-and-transmit 8");
        for prefix in ["0.0.0.0/0", "::/0"] {
            router.cli(&format!("policer subscriber add {prefix} policer p upload p"));
        }
        router.cli("policer subscriber input e0");
        router.cli("policer subscriber output e1");
        let kinds = [[8, 0], [0x86, 0xdd], [0x81, 0], [8, 6]];
        for mut frame in frames {
            if let Some(place) = frame.get_mut(12..14) {
                place.copy_from_slice(&kinds[kind]);
            }
            router.inject("e0", &frame);
        }
        router.run();
    }
}
