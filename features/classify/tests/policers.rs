//! Sessions that say which policer meters packets.

use proptest::prelude::*;
use quiver_testkit::Router;

use crate::tables::{ip4, ip6, passed, router_of};

fn router() -> Router {
    router_of(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_policer::register,
        quiver_classify::register,
    ])
}

fn run(router: &mut Router, lines: &[&str]) {
    lines.iter().for_each(|line| {
        router.cli(line);
    });
}

const TABLES: [&str; 6] = [
    "policer add name gold rate pps cir 1 cb 4",
    "policer add name six rate kbps cir 8 cb 186",
    "classify table table 7 mask l3 ip4 src",
    "classify table table 2 next-table 7 mask l3 ip4 proto l4 dst_port",
    "classify table table 3 acl-miss-next deny mask l3 ip6 l4 dst_port",
    "classify session policer-hit-next gold table-index 2 match l3 ip4 proto 17 l4 dst_port 53",
];

#[test]
fn a_session_says_which_policer_meters_its_packets() {
    for (word, on) in [("input", "e0"), ("output", "e1")] {
        let mut router = router();
        run(&mut router, &TABLES);
        run(
            &mut router,
            &[
                "classify session policer-hit-next gold table-index 7 match l3 ip4 src 10.0.0.5",
                "classify session policer-hit-next six table-index 3 match l3 ip6 l4 dst_port 80",
                &format!("set policer classify interface {on} {word} ip4-table 2 ip6-table 3"),
            ],
        );
        // Four packets in all, by two sessions in two tables of a chain.
        let frames: Vec<Vec<u8>> = (0..6).flat_map(|_| [ip4(2, 53), ip4(5, 80)]).collect();
        assert_eq!(passed(&mut router, &frames), 4, "{word}");
        assert_eq!(passed(&mut router, &vec![ip4(2, 80); 9]), 9, "no session: it passes");
        // Each frame has 62 bytes. A miss is denied by access lists only.
        assert_eq!(passed(&mut router, &vec![ip6(80); 9]), 3);
        assert_eq!(passed(&mut router, &vec![ip6(81); 9]), 9);
        let node = format!("policer-classify-{word}");
        assert_eq!(router.count(&node, "policed"), 8 + 6);
        let rows = router.json("show policer gold");
        assert_eq!((&rows[0]["packets"], &rows[2]["packets"]), (&4.into(), &8.into()));
        let sessions = router.json("show classify tables index 2 verbose");
        let (hits, policer) = (&sessions[0]["hits"], &sessions[0]["policer"]);
        assert_eq!((hits, policer), (&6.into(), &"gold".into()));
        let listed = router.json("show classify policer type ip6");
        assert_eq!((&listed[0]["direction"], &listed[0]["table"]), (&word.into(), &3.into()));
        let listed = router.json(&format!("show policer classify {on}"));
        let tables = ["ip4_table", "ip6_table", "l2_table"].map(|key| listed[0][key].as_u64());
        assert_eq!((&listed[0]["direction"], tables), (&word.into(), [Some(2), Some(3), None]));
        router.cli(&format!("set policer classify interface {on} {word} del"));
        assert_eq!(router.json("show policer classify").as_array().map(Vec::len), Some(0));
        assert_eq!(passed(&mut router, &vec![ip4(2, 53); 9]), 9);
    }
}

#[test]
fn packets_are_marked_and_have_the_colour_that_the_session_says() {
    let mut router = router();
    run(
        &mut router,
        &[
            "policer add name aware rate pps cir 1 cb 4 eb 3 type 1r3c color-aware exceed-action \
             mark-and-transmit 8",
            "classify table table 0 mask l3 ip4 src",
            "classify session policer-hit-next aware conform-color table-index 0 match l3 ip4 src \
             10.0.0.5",
            "classify session policer-hit-next aware exceed-color table-index 0 match l3 ip4 src \
             10.0.0.6",
            "set policer classify interface e0 ip4-table 0",
        ],
    );
    // RFC 2697 §3, colour-aware: yellow packets take from the second bucket alone.
    let mut classes = |host| {
        (0..5).for_each(|_| router.inject("e0", &ip4(host, 1)));
        router.run();
        router.sent("e1").iter().map(|frame| frame[15]).collect::<Vec<u8>>()
    };
    assert_eq!(classes(6), [8 << 2; 3]);
    assert_eq!(classes(5), [0; 4]);
}

#[test]
fn what_is_in_use_stays_and_what_is_printed_can_be_typed_again() {
    let mut router = router();
    run(&mut router, &TABLES);
    run(
        &mut router,
        &[
            "classify session policer-hit-next gold exceed-color table-index 7 match l3 ip4 src \
             10.0.0.5",
            "set policer classify interface e0 ip4-table 2",
            "set policer classify interface e1 output ip4-table 7 ip6-table 3 l2-table 3",
        ],
    );
    let config = router.cli("show running-config");
    for (line, why) in [
        ("policer del name gold", "is used by sessions of classifier table"),
        (
            "classify session policer-hit-next x table-index 3 match l3 ip6 l4 dst_port 1",
            "no policer x",
        ),
        ("classify table del table 2", "classifies the input of e0"),
        ("set policer classify interface e0 ip4-table 99", "no classifier table 99"),
        ("set policer classify interface e0 input", "which packets"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), config);
    run(
        &mut router,
        &[
            "set policer classify interface e0 input del",
            "set policer classify interface e1 output del",
            "classify table del table 2",
            // Another action lets the policer go.
            "classify session acl-hit-next deny table-index 7 match l3 ip4 src 10.0.0.5",
            "policer del name gold",
            "classify table del table 7",
            "classify table del table 3",
            "policer del name six",
        ],
    );
    let lines = config.lines().filter(|line| {
        ["policer ", "classify ", "set policer "].iter().any(|word| line.starts_with(word))
    });
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 9, "{config}");
    run(&mut router, &lines);
    assert_eq!(router.cli("show running-config"), config);
}

#[test]
fn an_interface_that_goes_lets_its_tables_go() {
    let mut router = router();
    run(&mut router, &TABLES);
    run(
        &mut router,
        &[
            "create loopback interface instance 3",
            "set policer classify interface loop3 output ip4-table 2",
            "delete loopback interface intfc loop3",
            "classify table del table 2",
            "policer del name gold",
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Beside a list: the first table of the chain with a session for the packet says whose rate
    /// holds.
    #[test]
    fn each_packet_is_metered_by_the_first_session_that_it_meets(
        ports in prop::collection::btree_map(0u16..6, 0usize..3, 0..5),
        hosts in prop::collection::btree_map(2u8..8, 0usize..3, 0..5),
        packets in prop::collection::vec((2u8..8, 0u16..6), 1..200),
    ) {
        let mut router = router();
        let mut left = [3u32, 9, 20];
        for (at, burst) in left.iter().enumerate() {
            router.cli(&format!("policer add name p{at} rate pps cir 1 cb {burst}"));
        }
        router.cli("classify table table 1 mask l3 ip4 src");
        router.cli("classify table table 0 next-table 1 mask l3 ip4 l4 dst_port");
        for (port, at) in &ports {
            router.cli(&format!(
                "classify session policer-hit-next p{at} table-index 0 match l3 ip4 l4 dst_port \
                 {port}"
            ));
        }
        for (host, at) in &hosts {
            router.cli(&format!(
                "classify session policer-hit-next p{at} table-index 1 match l3 ip4 src \
                 10.0.0.{host}"
            ));
        }
        router.cli("set policer classify interface e0 input ip4-table 0");
        // Those of the first table are metered before those of the second, a block at a time: one
        // packet after another here.
        for (host, port) in &packets {
            let policer = ports.get(port).or_else(|| hosts.get(host));
            let expected = policer.is_none_or(|at| {
                let passes = left[*at] > 0;
                left[*at] = left[*at].saturating_sub(1);
                passes
            });
            prop_assert_eq!(passed(&mut router, &[ip4(*host, *port)]), usize::from(expected));
        }
    }
}
