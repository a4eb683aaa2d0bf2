//! The JSON answer of every `show` of the real router has a published form, and keeps it.

use std::net::Ipv6Addr;
use std::path::Path;

use quiver_control::answers;
use quiver_testkit::frames::Fragment;
use quiver_testkit::golden::seeds;
use quiver_testkit::{Router, Settings, frames};
use quiverd::features;
use serde_json::Value;

/// A router with something of every kind that a show can list, without devices of the host.
const SETUP: &str = include_str!("answers.cli");

fn router() -> Router {
    let mut router = Router::whole(Settings::default(), features::register);
    for port in ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"] {
        router.interface(port);
    }
    if let Err(refusal) = router.script("answers.cli", SETUP) {
        panic!("{refusal}");
    }
    router
}

/// The lines of all shows that can be answered here: each declared example, and each form with the
/// words of its declaration.
fn lines(router: &Router) -> Vec<String> {
    let commands = router.commands();
    let commands = commands.borrow();
    let mut lines: Vec<String> = commands.samples();
    lines.extend(commands.examples());
    lines.extend(commands.shows().map(str::to_owned));
    lines.retain(|line| line.starts_with("show "));
    lines.extend(["show ip fib 203.0.115.0/24", "show ip6 fib 2001:db8:c::/48"].map(str::to_owned));
    // Most examples speak of e0; the same of the interfaces that have something to show.
    let more = lines.iter().flat_map(|line| {
        ["bvi", "e1", "e2", "BondEthernet0"].map(|name| line.replace(" e0", &format!(" {name}")))
    });
    let more: Vec<String> = more.collect();
    lines.extend(more);
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn every_show_answers_in_its_published_form_on_a_router_with_something_of_every_kind() {
    let mut router = router();
    let mut faults = Vec::new();
    for line in lines(&router) {
        if let Ok(output) = router.execute(&line) {
            faults.extend(
                answers::faults(&output.to_json())
                    .into_iter()
                    .map(|fault| format!("{line}: {fault}")),
            );
        }
    }
    faults.retain(|fault| !fault.starts_with("show schema"));
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_show_answers_in_its_published_form_on_an_empty_router() {
    let mut router = Router::whole(Settings::default(), features::register);
    for line in lines(&router) {
        let _ = router.execute(&line); // the test router compares each answer
    }
}

/// Packets of every kind bring what no command makes: neighbours, groups, fragments, advertised
/// prefixes.
#[test]
fn every_show_answers_in_its_published_form_after_the_packets_of_every_golden_case() {
    let features = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../features"));
    for seed in seeds(features) {
        let mut router = Router::whole(Settings::default(), features::register);
        router
            .script(&seed.name, &seed.setup)
            .unwrap_or_else(|refusal| panic!("{}: {refusal}", seed.name));
        router.run();
        for (interface, frame) in &seed.frames {
            router.inject(interface, frame);
            router.run();
        }
        show_all(&mut router);
        seed.commands.iter().for_each(|line| drop(router.execute(line)));
        if seed.commands.iter().any(|line| !line.starts_with("show ")) {
            show_all(&mut router);
        }
        router.discard();
    }
}

/// Two workers, one of which puts packets together that the other receives.
const FRAMES_SETUP: &str = "
    create test interface e0 rx-queues 2
    create test interface e1
    set interface state e0 up
    set interface state e1 up
    set interface ip address e0 10.0.0.1/24
    set interface ip address e0 2001:db8::1/64
    set interface ip address e1 10.0.1.1/24
    set interface ip address e1 2001:db8:1::1/64
    set interface reassembly e0 full on
    set interface reassembly e1 virtual on
    set interface lldp e0
    trace add test-input 100";

/// The last fragment of an IPv4 and of an IPv6 packet for hosts behind e1: the others do not come.
fn last_fragments(port: u8, identification: u32) -> [Vec<u8>; 2] {
    let fragment = Fragment { identification, offset_bytes: 1480, more: false };
    let (from4, to4) = ([10, 0, 0, 2].into(), [10, 0, 1, 2].into());
    let host6 = |subnet, host| Ipv6Addr::new(0x2001, 0xdb8, subnet, 0, 0, 0, 0, host);
    [
        frames::ip4(port, (from4, to4), frames::UDP, fragment, &[7; 8]),
        frames::ip6_fragment(port, (host6(0, 2), host6(1, 2)), frames::UDP, fragment, &[7; 8]),
    ]
}

/// An LLDPDU with a VLAN, and a management address with an object identifier.
fn lldpdu() -> Vec<u8> {
    let tlv = |kind: u8, value: &[u8]| [&[kind << 1, value.len() as u8], value].concat();
    let group_and_peer = [1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 0, 9, 0x88, 0xcc];
    let management = [5, 1, 192, 0, 2, 9, 2, 0, 0, 0, 7, 3, 0x2b, 6, 1];
    let tlvs = [
        tlv(1, &[4, 2, 0, 0, 0, 0, 9]),
        tlv(2, b"\x05port7"),
        tlv(3, &[0, 120]),
        tlv(5, b"peer"),
        tlv(8, &management),
        tlv(127, &[0, 0x80, 0xc2, 1, 0, 5]),
        tlv(0, &[]),
    ];
    [group_and_peer.to_vec(), tlvs.concat()].concat()
}

#[test]
fn every_show_answers_in_its_published_form_while_fragments_wait_and_packets_change_workers() {
    let settings = Settings { workers: 2, ..Settings::default() };
    let mut router = Router::whole(settings, features::register);
    router.script("frames", FRAMES_SETUP).unwrap_or_else(|refusal| panic!("{refusal}"));
    router.run();
    router.send("e0", &lldpdu());
    for identification in 0..16 {
        for (name, port) in [("e0", 0), ("e1", 1)] {
            for frame in last_fragments(port, identification) {
                router.inject(name, &frame);
            }
        }
    }
    router.run();
    show_all(&mut router);
    let is_seen = |answer: &Value, place: &str| {
        assert!(
            answer.pointer(place).is_some_and(|value| !value.is_null()),
            "{place} in {answer:#}"
        );
    };
    for kind in ["ip4-full", "ip6-full", "ip4-sv", "ip6-sv"] {
        is_seen(&router.json(&format!("show {kind}-reassembly details")), "/packets/0/of");
    }
    let detail = router.json("show lldp detail");
    is_seen(&detail, "/interfaces/0/neighbours/0/port_vlan");
    is_seen(&detail, "/interfaces/0/neighbours/0/management_addresses/0/oid");
    let trace = router.json("show trace max 100");
    let packets =
        trace["threads"].as_array().into_iter().flatten().flat_map(|t| t["packets"].as_array());
    assert!(packets.flatten().any(|packet| packet["from"].is_string()), "{trace:#}");
    router.discard();
}

/// Each show without further words, and with the one that says more.
fn show_all(router: &mut Router) {
    let names: Vec<String> = {
        let commands = router.commands();
        let commands = commands.borrow();
        commands.shows().map(str::to_owned).collect()
    };
    for name in names {
        for line in [name.clone(), format!("{name} details"), format!("{name} detail")] {
            let _ = router.execute(&line); // the test router compares each answer
        }
    }
}

#[test]
fn every_show_has_a_published_form() {
    let router = Router::whole(Settings::default(), features::register);
    let commands = router.commands();
    let commands = commands.borrow();
    let published = answers::read(include_str!("../answers.json"));
    let missing: Vec<&str> = commands
        .shows()
        .filter(|name| !published.contains_key(*name) && *name != "show schema")
        .collect();
    assert!(missing.is_empty(), "`make answers` publishes: {missing:#?}");
    let known: Vec<&str> = commands.shows().collect();
    let gone: Vec<&String> =
        published.keys().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(gone.is_empty(), "published for commands that are gone: {gone:#?}");
}

/// What no test has seen may come in production in a form that nobody knows.
#[test]
fn every_published_form_says_what_its_arrays_hold_and_what_its_members_are() {
    let published = answers::read(include_str!("../answers.json"));
    let gaps = published.iter().flat_map(|(show, schema)| {
        answers::gaps(schema).into_iter().map(move |gap| format!("{show}{gap}"))
    });
    let gaps: Vec<String> = gaps.collect();
    assert!(
        gaps.is_empty(),
        "a test makes a router that has these, `make answers` records it: {gaps:#?}"
    );
}

#[test]
fn the_published_form_is_answered_by_a_command() {
    let mut router = Router::whole(Settings::default(), features::register);
    let form = router.json("show schema interface");
    assert_eq!(
        form["properties"]["interfaces"]["items"]["properties"]["mtu_bytes"]["type"],
        "integer"
    );
    assert_eq!(router.json("show schema show interface json"), form);
    assert!(router.json("show schema").as_object().is_some_and(|all| all.len() > 50));
    assert!(router.refused("show schema interfaec").contains("did you mean show interface?"));
}

/// A value that has a published form.
fn sample(schema: &Value) -> Value {
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let is = |name: &str| types.iter().any(|one| one == name);
    match () {
        () if is("object") => {
            let members = schema["properties"].as_object().into_iter().flatten();
            members
                .map(|(name, of)| (name.clone(), sample(of)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        () if is("array") => schema.get("items").map(sample).into_iter().collect(),
        () if is("integer") || is("number") => 1.into(),
        () if is("string") => "word".into(),
        () if is("boolean") => true.into(),
        () => Value::Null,
    }
}

/// The forms of real devices are recorded by tests of real processes, which know no rules.
#[test]
fn every_published_name_says_its_unit_and_is_spelled_as_all_are() {
    let published = answers::read(include_str!("../answers.json"));
    let faults = published.iter().flat_map(|(show, schema)| {
        answers::faults(&sample(schema)).into_iter().map(move |fault| format!("{show}: {fault}"))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
