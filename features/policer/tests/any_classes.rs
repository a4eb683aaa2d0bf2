//! Whatever lists name policers, each packet is metered by the policer of the first list that
//! permits it, in the order in which packets come; and no frame loses a buffer.

use proptest::prelude::*;
use quiver_testkit::sources;

use crate::classes::{datagram, router};

/// A rule of a list: permit, prefix of the source, port.
type Rule = (bool, sources::Prefix, Option<u8>);

fn rule() -> impl Strategy<Value = Rule> {
    let prefix =
        (any::<u8>(), 24u8..=32).prop_map(|(byte, length)| sources::prefix_of(byte, length));
    (any::<bool>(), prefix, prop::option::of(0u8..4))
}

fn words(rules: &[Rule]) -> String {
    let rule = |(permits, (byte, length), port): &Rule| {
        let action = if *permits { "permit" } else { "deny" };
        let port = port.map_or(String::new(), |port| format!(" proto udp dport {port}"));
        format!("{action} src {}/{length}{port}", sources::host(*byte))
    };
    rules.iter().map(rule).collect::<Vec<_>>().join(", ")
}

fn permits(rules: &[Rule], host: u8, wanted: u8) -> bool {
    let matches = |(_, prefix, port): &&Rule| {
        sources::contains(*prefix, host) && port.is_none_or(|port| port == wanted)
    };
    rules.iter().find(matches).is_some_and(|(permits, ..)| *permits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_first_list_that_permits_a_packet_says_which_policer_meters_it(
        lists in prop::collection::vec((prop::collection::vec(rule(), 1..30), 0usize..3), 1..4),
        bursts in prop::array::uniform3(0u64..12),
        packets in prop::collection::vec((any::<u8>(), 0u8..4), 1..150),
    ) {
        let mut router = router();
        for (at, burst) in bursts.iter().enumerate() {
            router.cli(&format!("policer add name p{at} rate pps cir 1 cb {}", burst + 1));
        }
        for (at, (rules, policer)) in lists.iter().enumerate() {
            router.cli(&format!("set acl-plugin acl index {at} {}", words(rules)));
            let class = format!("e0 input acl {at} policer p{policer}");
            router.cli(&format!("set policer classify interface {class}"));
        }
        let mut left = bursts.map(|burst| burst + 1);
        let mut expected = Vec::new();
        for (host, port) in &packets {
            router.inject("e0", &datagram(0, *host, *port));
            let class = lists.iter().find(|(rules, _)| permits(rules, *host, *port));
            let passes = match class {
                None => true,
                Some((_, policer)) if left[*policer] > 0 => {
                    left[*policer] -= 1;
                    true
                }
                Some(_) => false,
            };
            if passes {
                expected.push((*host, *port));
            }
        }
        router.run();
        let sent: Vec<(u8, u8)> =
            router.sent("e1").iter().map(|frame| (frame[29], frame[37])).collect();
        prop_assert_eq!(sent, expected);
    }

    #[test]
    fn no_frame_loses_a_buffer(frames in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..90), 1..40), kind in 0usize..4)
    {
        let mut router = router();
        router.cli("set acl-plugin acl index 1 permit proto udp dport 80, permit ipv6");
        router.cli("policer add name p rate pps cir 1 cb 2 violate-action mark-and-transmit 8");
        for on in ["e0 input", "e1 output"] {
            router.cli(&format!("set policer classify interface {on} acl 1 policer p"));
        }
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
