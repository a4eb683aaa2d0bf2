//! Tag rewrite: what is refused, what is written back, and that the way out undoes the way in.

use proptest::prelude::*;
use quiver_testkit::{Register, Router};

const FEATURES: [Register; 2] = [quiver_ethernet::register, quiver_ip::register];

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    router.interface("e0");
    router.interface("e1");
    router
}

/// `sub` of e0 (or e0 itself) and e1 pass all frames on to one another.
fn connected(takes: &str) -> (Router, &'static str) {
    let mut router = router();
    let name = if takes.is_empty() { "e0" } else { "e0.5" };
    if !takes.is_empty() {
        router.cli(&format!("create sub-interfaces e0 5 {takes}"));
        router.cli("set interface state e0.5 up");
    }
    router.cli(&format!("set interface l2 xconnect {name} e1"));
    router.cli(&format!("set interface l2 xconnect e1 {name}"));
    (router, name)
}

#[test]
fn every_rewrite_is_written_back_as_it_was_said_and_disable_ends_it() {
    let (mut router, _) = connected("dot1ad 100 inner-dot1q 200 exact-match");
    for words in [
        "pop 1",
        "pop 2",
        "push dot1q 7",
        "push dot1ad 7 8",
        "translate 1-1 dot1ad 7",
        "translate 1-2 dot1q 7 8",
        "translate 2-1 dot1q 7",
        "translate 2-2 dot1ad 7 8",
    ] {
        let command = format!("set interface l2 tag-rewrite e0.5 {words}");
        router.cli(&command);
        let config = router.cli("show running-config");
        assert!(config.lines().any(|line| line == command), "{command}\n{config}");
        assert!(router.cli("show vlan").contains(words));
        assert!(router.cli("show interface features e0.5").contains("l2-input-vtr"));
    }
    router.cli("set interface l2 tag-rewrite e0.5 disable");
    assert!(!router.cli("show running-config").contains("tag-rewrite"));
    assert!(!router.cli("show interface features e0.5").contains("vtr"));
}

#[test]
fn what_could_not_be_undone_or_makes_no_sense_is_refused() {
    let mut router = router();
    for (number, takes) in [
        (1, "dot1q 100 exact-match"),
        (2, "dot1q any"),
        (3, "dot1q 5 inner-dot1q any"),
        (4, "default"),
    ] {
        router.cli(&format!("create sub-interfaces e0 {number} {takes}"));
    }
    for (words, says) in [
        ("e0.1 pop 2", "e0.1 says 1 tag of its frames, and 2 are to be taken off"),
        ("e0.1 translate 2-1 dot1q 5", "says 1 tag"),
        ("e0.2 pop 1", "does not say which 1 tag"),
        ("e0.3 pop 2", "says 1 tag"),
        ("e0.4 translate 1-1 dot1q 5", "does not say which"),
        ("e1 pop 1", "does not say which"),
        ("e1 translate 1-1 dot1q 5", "does not say which"),
        ("e0.1 translate 1-2 dot1q 5", "one VLAN for each"),
        ("e0.1 translate 1-1 dot1q 5 6", "one VLAN for each"),
    ] {
        let refusal = router.refused(&format!("set interface l2 tag-rewrite {words}"));
        assert!(refusal.contains(says), "{words}: {refusal}");
    }
    for words in [
        "e0.1 push dot1q 0",
        "e0.1 push dot1q 4095",
        "e0.1 pop 3",
        "e0.1 translate 3-1 dot1q 5",
        "e0.1",
    ] {
        router.refused(&format!("set interface l2 tag-rewrite {words}"));
    }
    assert!(!router.cli("show running-config").contains("tag-rewrite"));
}

#[test]
fn a_rewrite_waits_for_layer_2_and_goes_with_its_interface() {
    let mut router = router();
    router.cli("create sub-interfaces e0 100");
    router.cli("set interface l2 tag-rewrite e0.100 pop 1");
    assert!(!router.cli("show interface features e0.100").contains("vtr"));
    router.cli("set interface l2 xconnect e0.100 e1");
    assert!(router.cli("show interface features e0.100").contains("l2-output-vtr"));
    router.cli("set interface l3 e0.100");
    assert!(!router.cli("show interface features e0.100").contains("vtr"));
    router.cli("delete sub-interface e0.100");
    router.cli("create sub-interfaces e0 100");
    assert!(!router.cli("show running-config").contains("tag-rewrite"));
}

#[test]
fn who_is_no_longer_the_other_end_is_filtered_no_longer() {
    let mut router = router();
    router.cli("create sub-interfaces e0 100");
    router.cli("create sub-interfaces e0 101");
    let filtered = |router: &mut Router, name: &str| {
        router.cli(&format!("show interface features {name}")).contains("l2-efp-filter")
    };
    router.cli("set interface l2 xconnect e1 e0.100");
    assert_eq!((filtered(&mut router, "e0.100"), filtered(&mut router, "e0.101")), (true, false));
    router.cli("set interface l2 xconnect e1 e0.101");
    assert_eq!((filtered(&mut router, "e0.100"), filtered(&mut router, "e0.101")), (false, true));
    router.cli("set interface l3 e1");
    assert_eq!((filtered(&mut router, "e0.100"), filtered(&mut router, "e0.101")), (false, false));
}

#[test]
fn what_can_only_have_the_right_tags_is_not_filtered() {
    let mut router = router();
    let takes =
        ["dot1q 100 exact-match", "dot1ad 100 inner-dot1q 200 exact-match", "untagged", "dot1q 7"];
    for (number, takes) in takes.iter().enumerate() {
        router.cli(&format!("create sub-interfaces e0 {number} {takes}"));
        router.cli(&format!("create sub-interfaces e1 {number} {takes}"));
    }
    let mut filtered = |from: usize, rewrite: &str, to: usize, back: &str| {
        router.cli(&format!("set interface l2 xconnect e0.{from} e1.{to}"));
        router.cli(&format!("set interface l2 xconnect e1.{to} e0.{from}"));
        router.cli(&format!("set interface l2 tag-rewrite e0.{from} {rewrite}"));
        router.cli(&format!("set interface l2 tag-rewrite e1.{to} {back}"));
        let features = router.cli(&format!("show interface features e1.{to}"));
        router.cli(&format!("set interface l2 tag-rewrite e0.{from} disable"));
        router.cli(&format!("set interface l2 tag-rewrite e1.{to} disable"));
        router.cli(&format!("set interface l3 e0.{from}"));
        router.cli(&format!("set interface l3 e1.{to}"));
        features.contains("l2-efp-filter")
    };
    for (from, rewrite, to, back) in [
        (0, "disable", 0, "disable"),
        (1, "disable", 1, "disable"),
        (3, "disable", 3, "disable"),
        (0, "pop 1", 2, "disable"),
        (0, "pop 1", 0, "pop 1"),
        (0, "translate 1-2 dot1ad 100 200", 1, "disable"),
        (0, "pop 1", 1, "pop 2"),
        (2, "push dot1q 100", 0, "disable"),
    ] {
        assert!(!filtered(from, rewrite, to, back), "{from} {rewrite} {to} {back}");
    }
    for (from, rewrite, to, back) in [
        (0, "disable", 1, "disable"),
        (0, "disable", 2, "disable"),
        (0, "translate 1-1 dot1q 101", 0, "disable"),
        (3, "push dot1q 100", 0, "disable"),
        (0, "disable", 3, "disable"),
        (0, "pop 1", 0, "disable"),
    ] {
        assert!(filtered(from, rewrite, to, back), "{from} {rewrite} {to} {back}");
    }
}

#[test]
fn a_frame_in_several_buffers_is_rewritten_in_its_first_one() {
    let mut router = router();
    router.cli("set interface l2 xconnect e0 e1");
    router.cli("set interface l2 xconnect e1 e0");
    router.cli("set interface l2 tag-rewrite e0 push dot1q 9");
    let frame: Vec<u8> = [&[2; 12][..], &[0x99, 0x99], &[7; 6000]].concat();
    router.send("e0", &frame);
    let sent = router.sent("e1").remove(0);
    assert_eq!(sent, [&frame[..12], &[0x81, 0, 0, 9], &frame[12..]].concat());
    router.send("e1", &sent);
    assert_eq!(router.sent("e0"), [frame]);
}

/// Which frames a sub-interface takes, and the tags of one that it does: type, VLAN.
type Takes = (&'static str, &'static [(u16, u16)]);

const TAKES: [Takes; 6] = [
    ("dot1q 100 exact-match", &[(0x8100, 100)]),
    ("dot1ad 100 exact-match", &[(0x88a8, 100)]),
    ("dot1q 100 inner-dot1q 200 exact-match", &[(0x8100, 100), (0x8100, 200)]),
    ("dot1ad 100 inner-dot1q 200", &[(0x88a8, 100), (0x8100, 200)]),
    ("untagged", &[]),
    ("", &[]),
];

fn rewrite() -> impl Strategy<Value = (usize, bool, Vec<u16>)> {
    (0..3usize, any::<bool>(), prop::collection::vec(1..4095u16, 0..3))
}

fn words(pop: usize, service: bool, push: &[u16]) -> String {
    let kind = if service { "dot1ad" } else { "dot1q" };
    let tags: Vec<String> = push.iter().map(u16::to_string).collect();
    match (pop, push.len()) {
        (0, 0) => "disable".to_owned(),
        (pop, 0) => format!("pop {pop}"),
        (0, _) => format!("push {kind} {}", tags.join(" ")),
        (pop, count) => format!("translate {pop}-{count} {kind} {}", tags.join(" ")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A frame that goes in and comes back is what it was, its priority included when every tag has
    /// the same and one is left to carry it.
    #[test]
    fn the_way_out_undoes_the_way_in(
        takes in 0..TAKES.len(),
        (pop, service, push) in rewrite(),
        priority in 0..16u16,
        payload in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let (takes, tags) = TAKES[takes];
        prop_assume!(pop <= tags.len());
        let priority = if tags.len() - pop + push.len() == 0 { 0 } else { priority };
        let mut frame = vec![2; 12];
        for (kind, vlan) in tags {
            frame.extend([kind.to_be_bytes(), (priority << 12 | vlan).to_be_bytes()].concat());
        }
        frame.extend([0x99, 0x99]);
        frame.extend(payload);
        let (mut router, name) = connected(takes);
        router.cli(&format!("set interface l2 tag-rewrite {name} {}", words(pop, service, &push)));
        router.send("e0", &frame);
        let inside = router.sent("e1");
        prop_assert_eq!(inside.len(), 1, "{:?}", router.dropped());
        prop_assert_eq!(inside[0].len(), frame.len() - 4 * pop + 4 * push.len());
        router.send("e1", &inside[0]);
        prop_assert_eq!(router.sent("e0"), [frame], "{:?}", router.dropped());
    }

    /// Whatever the bytes: each frame leaves once or is counted once.
    #[test]
    fn any_bytes_leave_or_are_counted(
        takes in 0..TAKES.len(),
        (pop, service, push) in rewrite(),
        frames in prop::collection::vec((any::<[u8; 12]>(), prop::collection::vec(
            prop_oneof![
                Just(0x81u8), Just(0x00), Just(0x88), Just(0xa8), Just(100), Just(200), any::<u8>()
            ], 0..40)), 1..20),
    ) {
        let (takes, tags) = TAKES[takes];
        prop_assume!(pop <= tags.len());
        let (mut router, name) = connected(takes);
        router.cli(&format!("set interface l2 tag-rewrite {name} {}", words(pop, service, &push)));
        for interface in ["e0", "e1"] {
            for (addresses, rest) in &frames {
                router.inject(interface, &[&addresses[..], rest].concat());
            }
        }
        router.run();
        let sent = router.sent("e0").len() + router.sent("e1").len();
        let dropped: u64 = router.dropped().iter().map(|(_, _, count)| count).sum();
        prop_assert_eq!(sent as u64 + dropped, 2 * frames.len() as u64);
    }
}
