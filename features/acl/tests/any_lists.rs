//! Whatever lists an interface has, a packet passes when the first rule that it matches permits it.

use proptest::prelude::*;
use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Router, sources};

/// A rule: permit, prefix of the source, protocol UDP and a range of ports, if any.
#[derive(Clone, Debug)]
struct Rule {
    permits: bool,
    prefix: sources::Prefix,
    ports: Option<(u16, u16)>,
}

impl Rule {
    fn words(&self) -> String {
        let action = if self.permits { "permit" } else { "deny" };
        let (byte, length) = self.prefix;
        let ports =
            self.ports.map_or(String::new(), |(from, to)| format!(" proto udp dport {from}-{to}"));
        format!("{action} src {}/{length}{ports}", sources::host(byte))
    }

    fn matches(&self, host: u8, port: u16) -> bool {
        sources::contains(self.prefix, host)
            && self.ports.is_none_or(|(from, to)| (from..=to).contains(&port))
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    let ports = prop_oneof![
        Just(None),
        (0u16..6, 0u16..3).prop_map(|(from, more)| Some((from, from + more))),
    ];
    (any::<bool>(), any::<u8>(), 24u8..=32, ports).prop_map(|(permits, byte, length, ports)| Rule {
        permits,
        prefix: sources::prefix_of(byte, length),
        ports,
    })
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
    fn the_first_rule_that_matches_decides_while_lists_are_replaced(
        lists in prop::collection::vec(prop::collection::vec(rule(), 1..90), 1..5),
        packets in prop::collection::vec((any::<u8>(), 0u16..9), 1..40),
    ) {
        let features = [
            quiver_ethernet::register,
            quiver_ip::register,
            quiver_reassembly::register,
            quiver_acl::register,
        ];
        let mut router = Router::new(&features);
        sources::ports(&mut router, 2);
        router.cli("set acl-plugin counters on");
        let mut current: Vec<Rule> = Vec::new();
        let mut before: Vec<Rule> = Vec::new();
        for (place, rules) in lists.into_iter().enumerate() {
            // Two lists are replaced in turn.
            let index = place % 2;
            let words: Vec<String> = rules.iter().map(Rule::words).collect();
            router.cli(&format!("set acl-plugin acl index {index} {}", words.join(", ")));
            if index == 0 { before = rules } else { current = rules }
            if place < 2 {
                router.cli(&format!("set acl-plugin interface e0 input acl {index}"));
            }
            for (host, port) in &packets {
                let mut rules = before.iter().chain(&current);
                let wanted = rules.find(|rule| rule.matches(*host, *port));
                router.send("e0", &frame(*host, *port));
                let passed = !router.sent("e1").is_empty();
                let permitted = wanted.is_some_and(|rule| rule.permits);
                prop_assert_eq!(passed, permitted, "{}:{}", host, port);
            }
        }
        router.cli("set acl-plugin interface e0 input acl 0 del");
        let counted = router.json("show acl-plugin acl index 0");
        let counts = counted["rules"].as_array().expect("rules");
        prop_assert!(counts.iter().all(|rule| rule["packets"].is_u64()));
    }
}
