//! LLDP: what the router says, what it hears, and what it refuses.

use std::time::Duration;

use quiver_testkit::{Register, Router};
use quiver_wire::lldp::{Id, Lldpdu, Tlv, Writer, kind};
use serde_json::{Value, json};

const FEATURES: &[Register] =
    &[quiver_bond::register, quiver_ethernet::register, quiver_lldp::register];
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 9];
const GROUP: [u8; 6] = [1, 0x80, 0xc2, 0, 0, 0x0e];

fn router() -> Router {
    let mut router = Router::new(FEATURES);
    router.interface("e0");
    router.interface("e1");
    router.cli("set lldp system-name one");
    router
}

/// A frame from a neighbour.
fn frame(pdu: &[u8]) -> Vec<u8> {
    [&GROUP[..], &PEER, &[0x88, 0xcc], pdu].concat()
}

fn says(port: &str, ttl_s: u16, fill: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = [0; 1500];
    let (chassis, port) =
        (Id { subtype: 4, bytes: &PEER }, Id { subtype: 5, bytes: port.as_bytes() });
    let mut writer = Writer::begin(&mut out, chassis, port, ttl_s).expect("room");
    fill(&mut writer);
    let length = writer.finish().expect("room");
    frame(&out[..length])
}

/// Put a frame in, and let the control thread hear of it.
fn hear(router: &mut Router, interface: &str, frame: &[u8]) {
    router.send(interface, frame);
    router.run();
}

fn neighbours(router: &mut Router) -> Vec<Value> {
    let shown = router.json("show lldp detail");
    let ports = shown["interfaces"].as_array().expect("interfaces").clone();
    ports
        .iter()
        .flat_map(|port| port["neighbours"].as_array().expect("neighbours").clone())
        .collect()
}

fn counted(router: &mut Router, what: &str) -> u64 {
    router.json("show lldp detail")["interfaces"][0]["statistics"][what].as_u64().expect("a number")
}

#[test]
fn the_router_says_who_it_is() {
    let mut router = router();
    router.cli(
        "set interface lldp e0 port-desc \"to the roof\" mgmt-ip4 192.0.2.1 mgmt-ip6 2001:db8::1 \
         mgmt-oid 1.3.6.1",
    );
    router.advance(Duration::from_millis(300));
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][..14], [&GROUP[..], &[2, 0xfe, 0, 0, 0, 0, 0x88, 0xcc]].concat());
    let pdu = Lldpdu::parse(&sent[0][14..]).expect("well formed");
    assert_eq!((pdu.chassis, pdu.ttl_s), (Id { subtype: 4, bytes: &[2, 0xfe, 0, 0, 0, 0] }, 121));
    assert_eq!(pdu.port, Id { subtype: 5, bytes: b"e0" });
    let tlvs: Vec<Tlv<'_>> = pdu.tlvs().map(|tlv| tlv.expect("well formed")).collect();
    assert_eq!(tlvs[..2], [Tlv::PortDescription(b"to the roof"), Tlv::SystemName(b"one")]);
    assert_eq!(tlvs[3], Tlv::Capabilities { system: 0x14, enabled: 0x10 });
    let addresses: Vec<_> = tlvs[4..]
        .iter()
        .map(|tlv| match tlv {
            Tlv::ManagementAddress(at) => (at.family, at.address.len(), at.oid),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(addresses, [(1, 4, &[0x2b, 6, 1][..]), (2, 16, &[0x2b, 6, 1])]);
    assert!(router.sent("e1").is_empty());
}

#[test]
fn it_says_so_every_interval() {
    let mut router = router();
    router.cli("set lldp tx-interval 10 tx-hold 3");
    router.cli("set interface lldp e0");
    router.advance(Duration::from_secs(61));
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 7);
    assert_eq!(Lldpdu::parse(&sent[6][14..]).expect("well formed").ttl_s, 31);
    assert_eq!(counted(&mut router, "frames_out"), 7);
}

#[test]
fn a_neighbour_is_shown_with_all_that_it_says() {
    let mut router = router();
    router.cli("set interface lldp e0");
    let said = says("eth7", 120, |writer| {
        writer.put(kind::PORT_DESCRIPTION, &[b"a port"]).expect("room");
        writer.put(kind::SYSTEM_NAME, &[b"peer\x1b[31m"]).expect("room");
        writer.put(kind::SYSTEM_DESCRIPTION, &[b"a switch"]).expect("room");
        writer.capabilities(0x14, 0x04).expect("room");
        writer
            .put(kind::MANAGEMENT_ADDRESS, &[&[5, 1, 192, 0, 2, 9, 2, 0, 0, 0, 3, 0]])
            .expect("room");
        writer.put(kind::ORGANIZATION, &[&[0, 0x80, 0xc2, 1, 0, 7]]).expect("room");
    });
    hear(&mut router, "e0", &said);
    let neighbour = neighbours(&mut router).remove(0);
    for (key, value) in [
        ("chassis_id", json!("02:00:00:00:00:09")),
        ("port_id", json!("eth7")),
        ("port_description", json!("a port")),
        ("system_name", json!("peer\\u{1b}[31m")),
        ("capabilities", json!(["bridge", "router"])),
        ("enabled", json!(["bridge"])),
        ("management_addresses", json!([{ "address": "192.0.2.9", "interface": 3, "oid": null }])),
        ("port_vlan", json!(7)),
        ("ttl_s", json!(120)),
    ] {
        assert_eq!(neighbour[key], value, "{key}");
    }
    let text = router.cli("show lldp detail");
    assert!(text.contains("neighbour 02:00:00:00:00:09, port eth7"), "{text}");
    assert!(router.cli("show lldp").contains("active"));
    assert_eq!(router.json("show lldp")[0]["peer_chassis_id"], "02:00:00:00:00:09");
    assert!(router.dropped().is_empty());
}

#[test]
fn a_neighbour_is_forgotten_when_its_time_is_over_or_its_link_goes_down() {
    let mut router = router();
    router.cli("set interface lldp e0");
    hear(&mut router, "e0", &says("a", 5, |_| {}));
    router.advance(Duration::from_secs(4));
    assert_eq!(neighbours(&mut router).len(), 1);
    router.advance(Duration::from_secs(2));
    assert_eq!(neighbours(&mut router).len(), 0);
    assert_eq!(counted(&mut router, "ageouts"), 1);
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    router.cli("set interface state e0 down");
    assert_eq!(neighbours(&mut router).len(), 0);
}

#[test]
fn a_neighbour_that_says_goodbye_is_forgotten_at_once() {
    let mut router = router();
    router.cli("set interface lldp e0");
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    hear(&mut router, "e0", &says("b", 120, |_| {}));
    hear(&mut router, "e0", &says("a", 0, |_| {}));
    let left = neighbours(&mut router);
    assert_eq!((left.len(), &left[0]["port_id"]), (1, &json!("b")));
}

#[test]
fn disabling_it_sends_a_shutdown_pdu() {
    let mut router = router();
    router.cli("set interface lldp e0");
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    router.advance(Duration::from_secs(1));
    router.sent("e0");
    router.cli("set interface lldp e0 disable");
    router.run();
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 1);
    let pdu = Lldpdu::parse(&sent[0][14..]).expect("well formed");
    assert_eq!((pdu.ttl_s, pdu.tlvs().count()), (0, 0));
    router.advance(Duration::from_secs(100));
    assert!(router.sent("e0").is_empty());
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    assert_eq!(router.dropped(), [("lldp-input".to_owned(), "not-enabled".to_owned(), 1)]);
    assert!(router.refused("set interface lldp e0 disable").contains("not enabled on e0"));
}

#[test]
fn a_port_that_is_set_down_and_a_router_that_ends_take_back_what_they_said() {
    let leave: [fn(&mut Router); 2] = [
        |router| drop(router.cli("set interface state e0 down")),
        |router| router.engine().take_leave_of_all(),
    ];
    for leave in leave {
        let mut router = router();
        router.cli("set interface lldp e0");
        router.advance(Duration::from_secs(5));
        router.sent("e0");
        leave(&mut router);
        let sent = router.sent("e0");
        assert_eq!(sent.len(), 1);
        assert_eq!(Lldpdu::parse(&sent[0][14..]).expect("well formed").ttl_s, 0);
        assert!(router.sent("e1").is_empty());
    }
}

#[test]
fn a_newcomer_is_told_soon_and_more_than_once() {
    let mut router = router();
    router.cli("set interface lldp e0");
    router.advance(Duration::from_secs(5));
    assert_eq!(router.sent("e0").len(), 1);
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    router.advance(Duration::from_secs(6));
    assert_eq!(router.sent("e0").len(), 5);
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    router.advance(Duration::from_secs(6));
    assert!(router.sent("e0").is_empty());
}

#[test]
fn what_is_no_lldpdu_is_counted_and_refused() {
    let mut router = router();
    router.cli("set interface lldp e0");
    let good = says("a", 120, |_| {});
    for cut in 14..good.len() - 2 {
        hear(&mut router, "e0", &good[..cut]);
    }
    let discarded = counted(&mut router, "frames_discarded");
    assert_eq!(discarded as usize, good.len() - 16);
    assert!(neighbours(&mut router).is_empty());
    hear(&mut router, "e0", &frame(&[0xff; 1400]));
    hear(&mut router, "e0", &frame(&[0; 46]));
    assert_eq!(counted(&mut router, "frames_discarded"), discarded + 2);
    router.send("e0", &frame(&[0; 1501]));
    assert_eq!(router.dropped(), [("lldp-input".to_owned(), "too-long".to_owned(), 1)]);
}

#[test]
fn a_flood_is_bounded_by_worker_ring_and_table() {
    let mut router = router();
    router.cli("set interface lldp e0");
    for port in 0..300 {
        router.inject("e0", &says(&format!("p{port}"), 120, |_| {}));
    }
    router.run();
    assert_eq!(router.count("lldp-input", "lldpdu"), 64);
    assert_eq!(router.count("lldp-input", "too-many"), 236);
    assert_eq!(neighbours(&mut router).len(), 32);
    assert_eq!(counted(&mut router, "too_many_neighbours"), 32);
}

#[test]
fn members_of_a_bond_speak_for_themselves() {
    let mut router = router();
    router.cli("create bond mode xor");
    router.cli("set interface state BondEthernet0 up");
    router.cli("bond add BondEthernet0 e0");
    router.cli("set interface lldp e0");
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    assert_eq!(neighbours(&mut router).len(), 1);
    assert!(router.refused("set interface lldp BondEthernet0").contains("BondEthernet0 is a bond"));
}

#[test]
fn two_workers_hear_on_one_interface() {
    let settings = quiver_testkit::Settings { workers: 2, ..Default::default() };
    let mut router = Router::with(settings, FEATURES);
    router.cli("create test interface e0 rx-queues 2");
    router.cli("set interface state e0 up");
    router.cli("set interface lldp e0");
    router.inject_queue("e0", 0, &says("a", 120, |_| {}));
    router.inject_queue("e0", 1, &says("b", 120, |_| {}));
    router.run();
    assert_eq!(neighbours(&mut router).len(), 2);
}

#[test]
fn an_interface_that_goes_is_forgotten() {
    let mut router = router();
    router.cli("set interface lldp e0");
    hear(&mut router, "e0", &says("a", 120, |_| {}));
    let gone = router.id("e0");
    router.engine().delete_interface(gone).expect("deleted");
    router.advance(Duration::from_secs(40));
    assert!(neighbours(&mut router).is_empty());
    assert!(!router.cli("show running-config").contains("lldp e0"));
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli("create loopback interface");
    router.cli("set interface lldp e0 mgmt-ip4 192.0.2.1");
    let before = router.cli("show running-config");
    let long = "x".repeat(256);
    for (line, why) in [
        ("set lldp tx-interval 0", "1 to 3600"),
        (&format!("set lldp tx-hold 7 system-name {long}"), "1 to 255 bytes"),
        ("set interface lldp e0 mgmt-oid 1.3.6", "says what is managed at an address"),
        ("set interface lldp e0 mgmt-ip4 192.0.2.1 mgmt-oid 9.9", "no object identifier"),
        ("set interface lldp loop0", "loop0 is a loopback"),
        ("set interface lldp e1 disable", "not enabled on e1"),
        (&format!("set interface lldp e0 port-desc {long}"), "1 to 255 bytes"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
    }
    assert_eq!(router.cli("show running-config"), before);
    // An empty name takes the name back.
    router.cli("set lldp system-name \"\"");
    assert!(!router.cli("show running-config").contains("system-name"));
}

#[test]
fn the_running_config_says_the_same_again() {
    let mut one = router();
    one.cli("set lldp system-name \"the one\" tx-interval 7 tx-hold 2");
    one.cli("set interface lldp e0 port-desc \"to the roof\" mgmt-ip4 192.0.2.1 mgmt-oid 1.3.6.1");
    one.cli("set interface lldp e1 mgmt-ip6 2001:db8::1");
    let config = one.cli("show running-config");
    let mut other = Router::new(FEATURES);
    other.script("config", &config).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(other.cli("show running-config"), config);
}

#[test]
fn a_trace_reads_as_a_sentence() {
    let mut router = router();
    router.cli("set interface lldp e0");
    router.cli("trace add test-input 1");
    router.send("e0", &says("a", 120, |_| {}));
    let trace = router.cli("show trace");
    assert!(trace.contains("an LLDPDU of 19 bytes received on e0, to packet-done"), "{trace}");
}

#[test]
fn a_bridged_port_and_a_cross_connected_one_speak_and_hear() {
    for (mode, passes) in [("l2 bridge e0 1", false), ("l2 xconnect e0 e1", true)] {
        let mut router = Router::new(&[
            quiver_bond::register,
            quiver_bridge::register,
            quiver_ethernet::register,
            quiver_lldp::register,
        ]);
        router.interface("e0");
        router.interface("e1");
        router.cli(&format!("set interface {mode}"));
        if !passes {
            router.cli("set interface l2 bridge e1 1");
        }
        router.cli("set interface lldp e0");
        router.advance(Duration::from_secs(1));
        assert_eq!(router.sent("e0").len(), 1, "{mode}");
        assert!(router.sent("e1").is_empty(), "what a port says is not bridged");
        hear(&mut router, "e0", &says("a", 120, |_| {}));
        // A bridge is an end of the link; a cross-connect is a wire, which LLDP passes.
        assert_eq!(neighbours(&mut router).len(), usize::from(!passes), "{mode}");
        assert_eq!(router.sent("e1").len(), usize::from(passes), "{mode}");
        // Another protocol of the link dies in a bridge, and does not reach the router by it.
        let mut ip = says("a", 120, |_| {});
        ip[12..14].copy_from_slice(&[8, 0]);
        router.send("e0", &ip);
        assert_eq!(router.count("l2-input", "link-local-group"), u64::from(!passes), "{mode}");
    }
}
