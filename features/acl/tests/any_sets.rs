//! Whatever elements come and go, a packet passes when the first rule that it matches permits it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

/// A rule: permit, and the number of the set that has the source, of the one that has the port.
type Rule = (bool, Option<usize>, Option<usize>);

const SETS: usize = 3;

/// A change of a set: which, an element, and whether it is added.
#[derive(Clone, Debug)]
enum Change {
    Source(usize, sources::Prefix, bool),
    Port(usize, u16, bool),
}

fn words((permits, source, port): &Rule) -> String {
    let action = if *permits { "permit" } else { "deny" };
    let source = source.map_or(String::new(), |set| format!(" src-set nets{set}"));
    let port = port.map_or(String::new(), |set| format!(" proto udp dport-set ports{set}"));
    format!("{action}{source}{port}")
}

fn rule() -> impl Strategy<Value = Rule> {
    (any::<bool>(), prop::option::of(0..SETS), prop::option::of(0..SETS))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (0..SETS, 0u8..8, 27u8..=32, any::<bool>()).prop_map(|(set, byte, length, is_added)| {
            Change::Source(set, sources::prefix_of(byte * 5, length), is_added)
        }),
        (0..SETS, 0u16..5, any::<bool>())
            .prop_map(|(set, port, added)| Change::Port(set, port, added)),
    ]
}

fn frame(host: u8, port: u16) -> Vec<u8> {
    let addresses = (sources::host(host), std::net::Ipv4Addr::new(10, 0, 1, 2));
    let [high, low] = port.to_be_bytes();
    let udp = [0, 1, high, low, 0, 14, 0, 0, 1, 2, 3, 4, 5, 6];
    frames::ip4(0, addresses, frames::UDP, Fragment::default(), &udp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_first_rule_that_matches_decides_while_elements_come_and_go(
        rules in prop::collection::vec(rule(), 1..90),
        changes in prop::collection::vec(change(), 1..30),
        packets in prop::collection::vec((0u8..40, 0u16..5), 1..12),
    ) {
        let features = [quiver_ethernet::register, quiver_ip::register, quiver_acl::register];
        let mut router = Router::new(&features);
        sources::ports(&mut router, 2);
        for set in 0..SETS {
            router.cli(&format!("set acl-plugin set nets{set} addresses"));
            router.cli(&format!("set acl-plugin set ports{set} ports"));
        }
        let list: Vec<String> = rules.iter().map(words).collect();
        router.cli(&format!("set acl-plugin acl index 1 {}", list.join(", ")));
        router.cli("set acl-plugin interface e0 input acl 1");
        let mut nets: [BTreeSet<sources::Prefix>; SETS] = Default::default();
        let mut ports: [BTreeSet<u16>; SETS] = Default::default();
        for change in changes {
            let (is_new, words, is_added) = match change {
                Change::Source(set, prefix, is_added) => {
                    let words = format!("{}/{}", sources::host(prefix.0), prefix.1);
                    let all = &mut nets[set];
                    let is_new = if is_added { all.insert(prefix) } else { all.remove(&prefix) };
                    (is_new, format!("address-set nets{set} % {words}"), is_added)
                }
                Change::Port(set, port, is_added) => {
                    let all = &mut ports[set];
                    let is_new = if is_added { all.insert(port) } else { all.remove(&port) };
                    (is_new, format!("port-set ports{set} % {port}"), is_added)
                }
            };
            let words = words.replace('%', if is_added { "add" } else { "del" });
            let line = format!("set acl-plugin {words}");
            match is_new || is_added {
                true => drop(router.cli(&line)),
                false => drop(router.refused(&line)),
            }
            for (host, port) in &packets {
                let has_source = |set: usize| {
                    nets[set].iter().any(|prefix| sources::contains(*prefix, *host))
                };
                let matches = |(_, source, of_port): &&Rule| {
                    source.is_none_or(has_source)
                        && of_port.is_none_or(|set| ports[set].contains(port))
                };
                let permitted = rules.iter().find(matches).is_some_and(|(permits, ..)| *permits);
                router.send("e0", &frame(*host, *port));
                prop_assert_eq!(!router.sent("e1").is_empty(), permitted, "{}:{}", host, port);
            }
        }
    }
}
