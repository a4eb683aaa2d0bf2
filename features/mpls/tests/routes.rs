//! Routes of labels: a table equals a naive model, paths follow neighbours and interfaces, flows
//! are shared.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quiver_testkit::{Register, Router, configuration};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_bridge::register,
    quiver_mpls::register,
];

/// Ports e0 (10.0.0.1) and e1 (10.1.0.1), which take labels, with neighbours behind them.
pub fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    router.cli("mpls table add 0");
    for name in ["e0", "e1"] {
        router.interface(name);
        let subnet = &name[1..];
        router.cli(&format!("set interface ip address {name} 10.{subnet}.0.1/24"));
        router.cli(&format!("ip neighbor {name} 10.{subnet}.0.2 02:00:00:00:00:b{subnet}"));
        router.cli(&format!("set interface mpls {name} enable"));
    }
    router
}

/// An IPv4 packet of so many bytes.
pub fn ip4(destination: [u8; 4], ttl: u8, length: u16) -> Vec<u8> {
    let [high, low] = length.to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 7, 0, 0, ttl, 253, 0, 0, 10, 0, 0, 2];
    packet.extend(destination);
    let sum = packet.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum::<u32>();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.resize(length.into(), 0x5a);
    packet
}

fn ethernet(port: u8, kind: [u8; 2], behind: &[u8]) -> Vec<u8> {
    [&[2, 0xfe, 0, 0, 0, port, 2, 0, 0, 0, 0, 0xb0][..], &kind, behind].concat()
}

/// A frame with an IPv4 packet, for a port.
pub fn frame_of(port: u8, packet: &[u8]) -> Vec<u8> {
    ethernet(port, [8, 0], packet)
}

/// A frame with labels and their TTLs, for a port.
pub fn labelled(port: u8, labels: &[(u32, u8)], behind: &[u8]) -> Vec<u8> {
    let entry = |(place, (label, ttl)): (usize, &(u32, u8))| {
        let is_last = place + 1 == labels.len();
        (label << 12 | u32::from(is_last) << 8 | u32::from(*ttl)).to_be_bytes()
    };
    let stack: Vec<u8> = labels.iter().enumerate().flat_map(entry).collect();
    ethernet(port, [0x88, 0x47], &[&stack, behind].concat())
}

/// The label stack of a frame: label, TTL, bottom bit.
pub fn stack_of(frame: &[u8]) -> Vec<(u32, u8, bool)> {
    assert_eq!(frame[12..14], [0x88, 0x47], "{frame:x?}");
    let mut stack = Vec::new();
    for entry in frame[14..].as_chunks::<4>().0 {
        let entry = u32::from_be_bytes(*entry);
        stack.push((entry >> 12, entry as u8, entry & 0x100 != 0));
        if entry & 0x100 != 0 {
            break;
        }
    }
    stack
}

#[test]
fn flows_are_shared_and_each_keeps_its_path() {
    let mut router = router();
    router.cli("ip neighbor e1 10.1.0.3 02:00:00:00:00:b3");
    router.cli(
        "mpls local-label add 16 eos via 10.1.0.2 e1 out-labels 20 via 10.1.0.3 e1 out-labels 30",
    );
    router.cli(
        "mpls local-label add 16 non-eos via 10.1.0.2 e1 out-labels 20 via 10.1.0.3 e1 out-labels \
         30",
    );
    let mut counts = [0; 2];
    for flow in 0..=255 {
        let packet = ip4([203, 0, 113, flow], 64, 40);
        router.send("e0", &labelled(0, &[(16, 64)], &packet));
        router.send("e0", &labelled(0, &[(16, 64)], &packet));
        let sent = router.sent("e1");
        assert_eq!(sent[0], sent[1]);
        counts[usize::from(stack_of(&sent[0])[0].0 == 30)] += 1;
    }
    assert!(counts.iter().all(|count| (90..166).contains(count)), "{counts:?}");
    // The entropy label alone says the flow.
    let mut path = |entropy, last| {
        let packet = ip4([203, 0, 113, last], 64, 40);
        router.send("e0", &labelled(0, &[(16, 64), (7, 1), (entropy, 0)], &packet));
        stack_of(&router.sent("e1")[0])[0].0
    };
    assert!((0..20).all(|last| path(1000, last) == path(1000, 99)));
    assert!((1000..1020).any(|entropy| path(entropy, 1) != path(1000, 1)));
}

#[test]
fn labels_follow_neighbours_and_interfaces() {
    let mut router = router();
    router.cli(
        "mpls local-label add 16 eos via 10.1.0.2 e1 out-labels 20 via 10.0.0.2 e0 \
                preference 1 out-labels 30",
    );
    let frame = labelled(0, &[(16, 64)], &ip4([203, 0, 113, 1], 64, 40));
    router.send("e0", &frame);
    assert_eq!(router.sent("e1")[0][..6], [2, 0, 0, 0, 0, 0xb1]);
    router.cli("ip neighbor e1 10.1.0.2 02:00:00:00:00:c1");
    router.send("e0", &frame);
    assert_eq!(router.sent("e1")[0][..6], [2, 0, 0, 0, 0, 0xc1]);
    router.cli("set interface state e1 down");
    router.send("e0", &frame);
    assert_eq!(stack_of(&router.sent("e0")[0])[0].0, 30);
    router.cli("set interface state e1 up");
    router.send("e0", &frame);
    assert_eq!(stack_of(&router.sent("e1")[0])[0].0, 20);
    let told = router.json("show mpls fib 16");
    assert_eq!(told[0]["states"][1], "waits, a path with a lower preference is used");
}

#[test]
fn the_hops_of_a_label_have_the_form_of_those_of_a_prefix() {
    let mut router = router();
    router.cli("ip table add 7");
    router.cli("mpls local-label add 16 eos via 10.1.0.2 e1 out-labels 20");
    router.cli("mpls local-label add 17 eos via ip4-lookup-in-table 7 uniform");
    router.cli("mpls local-label add 18 eos via rx-ip4 e1");
    router.cli("ip route add 203.0.113.0/24 via 10.1.0.2 e1 out-labels 100");
    let hop = |router: &mut Router, command: &str| {
        let found = router.json(command);
        let hop = &found[0]["hops"][0];
        ["node", "next_hop", "interface", "table"].map(|field| hop[field].to_string())
    };
    let swap = hop(&mut router, "show mpls fib 16");
    assert_eq!(swap, ["\"mpls-swap\"", "\"10.1.0.2\"", "\"e1\"", "null"]);
    let pop = hop(&mut router, "show mpls fib 17");
    assert_eq!(pop, ["\"mpls-pop-ip4-lookup\"", "null", "null", "7"]);
    let receive = hop(&mut router, "show mpls fib 18");
    assert_eq!(receive, ["\"mpls-interface-rx\"", "null", "\"e1\"", "null"]);
    let impose = hop(&mut router, "show ip fib 203.0.113.0/24");
    assert_eq!(impose[1..], swap[1..]);
    let text = router.cli("show mpls fib 17");
    assert!(text.contains("weight 1: mpls-pop-ip4-lookup: table 7"), "{text}");
}

#[test]
fn labelled_packets_wait_for_their_neighbour_with_their_labels() {
    let mut router = router();
    router.cli("ip neighbor del e1 10.1.0.2");
    router.cli("mpls local-label add 16 eos via 10.1.0.2 e1 out-labels 20");
    router.cli("ip route add 203.0.113.0/24 via 10.1.0.2 e1 out-labels 100 200");
    router.send("e0", &labelled(0, &[(16, 64)], &ip4([203, 0, 113, 1], 64, 40)));
    router.send("e0", &frame_of(0, &ip4([203, 0, 113, 1], 64, 40)));
    let asked = router.sent("e1");
    assert_eq!((asked.len(), &asked[0][12..14]), (1, &[8, 6][..]));
    router.cli("ip neighbor e1 10.1.0.2 02:00:00:00:00:b1");
    router.run();
    let sent = router.sent("e1");
    let stacks: Vec<_> = sent.iter().map(|frame| stack_of(frame)).collect();
    assert_eq!(stacks, [vec![(20, 63, true)], vec![(100, 255, false), (200, 255, true)]]);
}

#[test]
fn the_configuration_of_labels_loads_again() {
    let lines = [
        "mpls table add 7",
        "set interface mpls e1 enable table 7",
        "set interface mtu mpls 1400 e1",
        "mpls local-label add 16 eos via 10.1.0.2 e1",
        "mpls local-label add 16 non-eos via 10.1.0.2 e1 out-labels 17 18 weight 3 via drop",
        "mpls local-label add 17 eos table 7 via ip4-lookup-in-table 0 uniform",
        "mpls local-label add 17 non-eos table 7 via mpls-lookup-in-table 0",
        "ip route add 203.0.113.0/24 via 10.1.0.2 e1 out-labels 100 implicit-null ttl 9 exp 3",
        "mpls tunnel l2-only control-word instance 3 via 10.1.0.2 e1 out-labels 9",
        "mpls local-label add 18 eos via l2-input-on mpls-tunnel3",
        "sr mpls policy add bsid 40001 next 16 next 17",
        "sr mpls policy mod bsid 40001 add sl next 16 next 18 weight 2",
        "sr mpls steer l3 198.51.100.0/24 via sr policy bsid 40001",
    ];
    let mut first = router();
    lines.iter().for_each(|line| drop(first.cli(line)));
    let config = configuration::running(&mut first);
    let fault = configuration::loads_again(Router::new(&FEATURES), &config, &config);
    assert!(fault.is_none(), "{}", fault.map(|fault| format!("{fault:?}")).unwrap_or_default());
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    let before = configuration::running(&mut router);
    for (line, why) in [
        ("mpls local-label add 3 eos via 10.1.0.2 e1", "meaning of its own"),
        ("mpls local-label add 16 eos table 9 via 10.1.0.2 e1", "no MPLS table 9"),
        ("mpls local-label add 16 non-eos via ip4-lookup-in-table 0", "labelled packets"),
        ("mpls local-label add 16 eos via ip4-lookup-in-table 0 out-labels 9", "next hop"),
        ("mpls local-label del 16 eos", "no route for label 16"),
        ("mpls table del 0", "in use"),
        ("set interface mpls e0 enable table 5", "no MPLS table 5"),
        ("ip route add 203.0.113.0/24 via e1 out-labels 5", "next hop"),
        ("sr mpls policy del bsid 40001", "no SR policy"),
    ] {
        let told = router.refused(line);
        assert!(told.contains(why), "{line}: {told}");
    }
    assert_eq!(configuration::running(&mut router), before);
}

/// What is done to a table, of few labels.
#[derive(Clone, Debug)]
enum Step {
    Add(u32, bool, u32),
    Delete(u32, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (16u32..22, any::<bool>(), 100u32..200).prop_map(|(l, b, o)| Step::Add(l, b, o)),
        1 => (16u32..22, any::<bool>()).prop_map(|(l, b)| Step::Delete(l, b)),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_table_of_labels_equals_a_map(steps in steps()) {
        let mut router = router();
        let mut model: BTreeMap<(u32, bool), u32> = BTreeMap::new();
        let word = |bottom| if bottom { "eos" } else { "non-eos" };
        for step in steps {
            match step {
                Step::Add(label, bottom, out) => {
                    let line = format!("mpls local-label del {label} {}", word(bottom));
                    let _ = router.execute(&line);
                    router.cli(&format!(
                        "mpls local-label add {label} {} via 10.1.0.2 e1 out-labels {out}",
                        word(bottom)
                    ));
                    model.insert((label, bottom), out);
                }
                Step::Delete(label, bottom) => {
                    let line = format!("mpls local-label del {label} {}", word(bottom));
                    let done = router.execute(&line);
                    prop_assert_eq!(done.is_ok(), model.remove(&(label, bottom)).is_some());
                }
            }
        }
        let packet = ip4([203, 0, 113, 1], 64, 40);
        for label in 16..22 {
            for bottom in [false, true] {
                let stack = [(label, 64), (999, 9)];
                let stack = if bottom { &stack[..1] } else { &stack[..] };
                router.send("e0", &labelled(0, stack, &packet));
                let sent = router.sent("e1");
                let out = sent.first().map(|frame| stack_of(frame)[0].0);
                prop_assert_eq!(out, model.get(&(label, bottom)).copied());
            }
        }
    }
}
