//! Whatever rules of lists come and go one by one, short lists or long, a packet meets the first
//! rule that it matches, which counts it.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use quiver_testkit::{Router, sources};

use crate::commands::{passes, router};

/// A rule: permit, a prefix of the source, and a port, if any.
type Rule = (bool, sources::Prefix, Option<u8>);

/// A change: of which list, where, how many rules go, and what comes.
type Edit = (bool, u16, u8, Vec<Rule>);

/// Rules that no packet matches: a list with so many is not compiled whole for each change.
const FILLERS: usize = 600;

fn rule() -> impl Strategy<Value = Rule> {
    let prefix =
        (any::<u8>(), 26u8..=32).prop_map(|(byte, length)| sources::prefix_of(byte, length));
    (any::<bool>(), prefix, prop::option::of(0u8..4))
}

fn edit() -> impl Strategy<Value = Edit> {
    let rules = prop::collection::vec(rule(), 0..3);
    (any::<bool>(), any::<u16>(), 0u8..2, rules)
}

fn words((permits, (byte, length), port): &Rule) -> String {
    let action = if *permits { "permit" } else { "deny" };
    let port = port.map_or(String::new(), |port| format!(" proto udp dport {port}"));
    format!("{action} src {}/{length}{port}", sources::host(*byte))
}

fn matches((_, prefix, of_port): &Rule, host: u8, port: u8) -> bool {
    sources::contains(*prefix, host) && of_port.is_none_or(|of_port| of_port == port)
}

/// A rule in a list, or a filler, and the packets that it decided about.
type Counted = (Option<Rule>, u64);

/// Make the change in the router and in the plain lists.
fn change(router: &mut Router, lists: &mut [Vec<Counted>; 2], edit: &Edit) {
    let (is_second, at, gone, new) = edit;
    let number = usize::from(*is_second);
    let list = &mut lists[number];
    let place = usize::from(*at) % (list.len() + 1);
    let gone = usize::from(*gone).min(list.len() - place);
    let all: Vec<String> = new.iter().map(words).collect();
    let line = match (gone, all.is_empty()) {
        (0, true) => return,
        (_, true) if list.len() == gone => return,
        (_, true) => format!("delete acl-plugin acl-rule {number} {place} count {gone}"),
        (0, false) => format!("set acl-plugin acl-rule {number} insert {place} {}", all.join(", ")),
        (_, false) => {
            format!("set acl-plugin acl-rule {number} replace {place} {}", all.join(", "))
        }
    };
    router.cli(&line);
    list.splice(place..place + gone, new.iter().map(|rule| (Some(*rule), 0)));
}

/// Send packets, and look which rules counted them.
fn check(router: &mut Router, lists: &mut [Vec<Counted>; 2], packets: &[(u8, u8)]) {
    for (host, port) in packets {
        let is_it = |(rule, _): &&mut Counted| rule.is_some_and(|r| matches(&r, *host, *port));
        let found = lists.iter_mut().flatten().find(is_it);
        let permits = found.is_some_and(|(rule, packets)| {
            *packets += 1;
            rule.is_some_and(|(permits, ..)| permits)
        });
        assert_eq!(passes(router, *host, *port), permits, "{host}:{port}");
    }
    for (index, list) in lists.iter().enumerate() {
        let shown = router.json(&format!("show acl-plugin acl index {index}"));
        let rules = shown["rules"].as_array().expect("rules");
        let counts: Vec<_> = rules.iter().map(|rule| rule["packets"].as_u64()).collect();
        let wanted: Vec<_> = list.iter().map(|(_, packets)| Some(*packets)).collect();
        assert_eq!(counts, wanted, "of list {index}");
    }
}

/// Until lists are compiled whole again.
fn rebuilt(router: &mut Router) {
    let patience = Instant::now() + Duration::from_secs(60);
    let changed = |router: &mut Router| {
        let tables = router.json("show acl-plugin tables");
        let of = |table: &serde_json::Value| table["changes"].as_u64().expect("changes");
        tables.as_array().expect("tables").iter().map(of).sum::<u64>()
    };
    while changed(router) > 0 {
        assert!(Instant::now() < patience, "never compiled again");
        router.advance(Duration::from_secs(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_first_rule_that_matches_decides_while_rules_come_and_go(
        is_long in any::<bool>(),
        edits in prop::collection::vec((edit(), 0u8..12), 1..50),
        packets in prop::collection::vec((any::<u8>(), 0u8..4), 1..12),
    ) {
        let mut router = router();
        router.cli("set acl-plugin counters on");
        let fillers = if is_long { FILLERS } else { 3 };
        let mut lists = [vec![(None, 0); fillers], vec![(None, 0); 2]];
        for (index, list) in lists.iter().enumerate() {
            let filler = |at: usize| format!("deny src 203.0.{}.{}/32", at / 256, at % 256);
            let rules: Vec<String> = (0..list.len()).map(filler).collect();
            router.cli(&format!("set acl-plugin acl index {index} {}", rules.join(", ")));
            router.cli(&format!("set acl-plugin interface e0 input acl {index}"));
        }
        for (edit, then) in edits {
            change(&mut router, &mut lists, &edit);
            match then {
                0 => check(&mut router, &mut lists, &packets),
                1 => rebuilt(&mut router),
                _ => {}
            }
        }
        check(&mut router, &mut lists, &packets);
        rebuilt(&mut router);
        check(&mut router, &mut lists, &packets);
    }
}
