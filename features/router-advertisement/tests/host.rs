//! The host side: an interface that takes addresses, routes and settings of router advertisements.

use std::net::Ipv6Addr;
use std::time::Duration;

use quiver_testkit::{Register, Router, Settings};
use quiver_wire::icmp6::nd::{self, NdOption, Options, PrefixInformation, option_kind};
use quiver_wire::icmp6::{Message, within};
use quiver_wire::ip6::address::solicited_node;
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, MacAddress};
use serde_json::{Value, json};

const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xc0]);
const ROUTER: &str = "fe80::c0";
/// The address that e1 makes of 2001:db8:1::/64.
const OWN: &str = "2001:db8:1:0:fe:ff:fe00:1";
const FEATURES: [Register; 3] =
    [quiver_ethernet::register, quiver_ip::register, quiver_router_advertisement::register];

/// Ports e0 and e1; e1 takes what is advertised.
fn router(words: &str) -> Router {
    let mut router = Router::with(Settings { unasked: true, ..Settings::default() }, &FEATURES);
    router.interface("e0");
    router.interface("e1");
    router.cli(&format!("ip6 nd address autoconfig e1 {words}"));
    router
}

/// One that has asked for routers.
fn ready(words: &str) -> Router {
    let mut router = router(words);
    seconds(&mut router, 3.0);
    router.sent("e1");
    router
}

fn seconds(router: &mut Router, seconds: f64) {
    router.advance(Duration::from_secs_f64(seconds));
}

fn frame(source: &str, to: Ipv6Addr, message: nd::Message<'_>) -> Vec<u8> {
    let source = source.parse().unwrap();
    let mut frame = vec![0; 14 + 40 + 1400];
    let length = Message::Nd(message).emit(source, to, &mut frame[54..]).unwrap();
    EthernetHeader::new(MacAddress::for_ip6_multicast(to), PEER, EtherType::IPV6)
        .write(&mut frame)
        .unwrap();
    Ip6Header::new(source, to, IpProtocol::ICMP6, 255, length as u16)
        .write(&mut frame[14..])
        .unwrap();
    frame.truncate(54 + length);
    frame
}

/// A prefix option.
fn prefix(text: &str, flags: u8, valid_s: u32, preferred_s: u32) -> Vec<u8> {
    let (address, length) = text.split_once('/').unwrap();
    let (prefix, length) = (address.parse().unwrap(), length.parse().unwrap());
    let mut out = vec![0; 32];
    NdOption::Prefix(PrefixInformation { length, flags, valid_s, preferred_s, prefix })
        .emit(&mut out)
        .unwrap();
    out
}

fn usual() -> Vec<u8> {
    prefix("2001:db8:1::/64", 0xc0, 86_400, 14_400)
}

fn route(to: &str, length: u8, flags: u8, lifetime_s: u32) -> Vec<u8> {
    let mut data = vec![length, flags];
    data.extend(lifetime_s.to_be_bytes());
    data.extend(to.parse::<Ipv6Addr>().unwrap().octets());
    let mut out = vec![0; 24];
    NdOption::Other { kind: option_kind::ROUTE_INFORMATION, data: &data }.emit(&mut out).unwrap();
    out
}

fn advertisement(from: &str, lifetime_s: u16, flags: u8, options: &[Vec<u8>]) -> Vec<u8> {
    let options = options.concat();
    let message = nd::Message::RouterAdvertisement {
        hop_limit: 33,
        flags,
        lifetime_s,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: Options::new(&options).unwrap(),
    };
    frame(from, "ff02::1".parse().unwrap(), message)
}

fn hear(router: &mut Router, lifetime_s: u16, options: &[Vec<u8>]) {
    router.send("e1", &advertisement(ROUTER, lifetime_s, 0, options));
}

/// What the address of a prefix is: its state, or null.
fn state(router: &mut Router, of: &str) -> Value {
    let shown = router.json("show ip6 autoconfig e1");
    let rows = shown["prefixes"].as_array().unwrap();
    rows.iter().find(|row| row["prefix"] == of).map_or(Value::Null, |row| row["state"].clone())
}

/// Where packets to an address go, and by whose word.
fn leads(router: &mut Router, to: &str) -> (Value, Value) {
    let Ok(shown) = router.execute(&format!("show ip6 fib {to}")) else {
        return (Value::Null, Value::Null);
    };
    let best = shown.to_json();
    (best[0]["prefix"].clone(), best[0]["source"].clone())
}

fn ping(to: &str) -> Vec<u8> {
    let (from, to): (Ipv6Addr, Ipv6Addr) = (ROUTER.parse().unwrap(), to.parse().unwrap());
    let message = Message::EchoRequest { identifier: 1, sequence: 1, data: b"ping" };
    let mut frame = vec![0; 54 + 12];
    let length = message.emit(from, to, &mut frame[54..]).unwrap();
    EthernetHeader::new(MacAddress([2, 0xfe, 0, 0, 0, 1]), PEER, EtherType::IPV6)
        .write(&mut frame)
        .unwrap();
    Ip6Header::new(from, to, IpProtocol::ICMP6, 64, length as u16).write(&mut frame[14..]).unwrap();
    frame
}

/// ICMPv6 types that e1 has sent, with their sources.
fn sent(router: &mut Router) -> Vec<(u8, Ipv6Addr)> {
    let read = |frame: Vec<u8>| {
        within(&frame[14..]).map(|(header, message)| (message[0], header.source()))
    };
    router.sent("e1").into_iter().filter_map(read).collect()
}

#[test]
fn routers_are_asked_for_ever_more_rarely_until_one_answers() {
    let mut router = router("");
    let mut asked = Vec::new();
    for step in 0..10_000 {
        seconds(&mut router, 0.1);
        let solicitations = sent(&mut router).iter().filter(|(kind, _)| *kind == 133).count();
        asked.extend((0..solicitations).map(|_| step));
    }
    // 4 s, then doubled, each 10 % more or less; 1,000 s.
    assert!((8..=9).contains(&asked.len()), "{asked:?}");
    let intervals: Vec<_> = asked.windows(2).map(|two| two[1] - two[0]).collect();
    assert!((35..=46).contains(&intervals[0]), "{intervals:?}");
    // One a tenth long and the next a tenth short: 1.64 times, read in steps of 0.1 s.
    assert!(intervals.windows(2).all(|two| two[1] * 10 > two[0] * 15), "{intervals:?}");
    hear(&mut router, 0, &[]);
    assert_eq!(
        router.json("show ip6 autoconfig")["interfaces"][0]["asking"],
        true,
        "it is no default router"
    );
    hear(&mut router, 1800, &[]);
    assert_eq!(router.json("show ip6 autoconfig")["interfaces"][0]["asking"], false);
    seconds(&mut router, 1700.0);
    assert!(sent(&mut router).iter().all(|(kind, _)| *kind != 133));
}

#[test]
fn a_solicitation_is_as_rfc_4861_has_it() {
    let mut router = router("");
    seconds(&mut router, 3.0);
    let is_one = |frame: &&Vec<u8>| frame.get(54) == Some(&133);
    let frames = router.sent("e1");
    let frame = frames.iter().find(is_one).expect("a solicitation");
    assert_eq!(frame[..6], [0x33, 0x33, 0, 0, 0, 2]);
    let (header, message) = within(&frame[14..]).unwrap();
    let from: Ipv6Addr = "fe80::fe:ff:fe00:1".parse().unwrap();
    assert_eq!(
        (header.source(), header.destination(), header.hop_limit()),
        (from, "ff02::2".parse().unwrap(), 255)
    );
    let Ok(Message::Nd(message)) = Message::parse(header.source(), header.destination(), message)
    else {
        panic!("{message:?}")
    };
    assert_eq!(message.options().source_mac(), Some(MacAddress([2, 0xfe, 0, 0, 0, 1])));
}

#[test]
fn an_address_is_made_asked_for_and_then_used() {
    let mut router = ready("default-route");
    hear(&mut router, 1800, &[usual()]);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "tentative");
    router.send("e1", &ping(OWN));
    seconds(&mut router, 0.2);
    let said = sent(&mut router);
    assert!(said.contains(&(135, Ipv6Addr::UNSPECIFIED)), "it is asked for");
    assert!(said.iter().all(|(kind, _)| *kind != 129), "it does not answer yet");
    seconds(&mut router, 1.2);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "preferred");
    router.sent("e1");
    router.send("e1", &ping(OWN));
    seconds(&mut router, 0.5);
    let own: Ipv6Addr = OWN.parse().unwrap();
    assert!(
        sent(&mut router).contains(&(135, "fe80::fe:ff:fe00:1".parse().unwrap())),
        "it answers {own}"
    );
    assert_eq!(
        leads(&mut router, "2001:db8:1::9"),
        (json!("2001:db8:1::/64"), json!("advertised"))
    );
    assert_eq!(leads(&mut router, "2001:db8:9::9"), (json!("::/0"), json!("advertised")));
    let shown = router.json("show interface address e1");
    assert_eq!(shown[0]["autoconfigured"], json!([format!("{OWN}/128")]));
    let routers = router.json("show ip6 nd routers");
    assert_eq!((&routers[0]["address"], &routers[0]["used"]), (&json!(ROUTER), &json!(true)));
}

#[test]
fn somebody_elses_address_is_not_used() {
    let mut router = ready("");
    hear(&mut router, 1800, &[usual()]);
    let own: Ipv6Addr = OWN.parse().unwrap();
    let claim = nd::Message::NeighborSolicitation { target: own, options: Options::NONE };
    seconds(&mut router, 0.2);
    router.send("e1", &frame("::", solicited_node(own), claim));
    seconds(&mut router, 5.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "duplicate");
    router.sent("e1");
    router.send("e1", &ping(OWN));
    seconds(&mut router, 1.0);
    assert!(sent(&mut router).iter().all(|(kind, _)| ![129, 136].contains(kind)), "nobody answers");
    hear(&mut router, 1800, &[usual()]);
    assert_eq!(
        state(&mut router, "2001:db8:1::/64"),
        "duplicate",
        "an advertisement does not change that"
    );
}

#[test]
fn what_is_configured_stands_before_what_is_advertised() {
    let mut router = ready("default-route");
    router.cli("ip route add ::/0 via fe80::1 e0");
    hear(&mut router, 1800, &[usual()]);
    seconds(&mut router, 2.0);
    assert_eq!(leads(&mut router, "2001:db8:9::9").1, "static");
    // The operator takes the address that was made, on another interface.
    router.cli(&format!("set interface ip address e0 {OWN}/64"));
    seconds(&mut router, 2.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "refused");
    assert_eq!(leads(&mut router, "2001:db8:1::9").1, "interface");
    hear(&mut router, 1800, &[usual()]);
    assert_eq!(router.json("show interface address e1")[0]["autoconfigured"], json!([]));
    // And gives it back.
    router.cli(&format!("set interface ip address del e0 {OWN}/64"));
    router.cli("ip route del ::/0 via fe80::1 e0");
    seconds(&mut router, 3.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "preferred");
    assert_eq!(leads(&mut router, "2001:db8:9::9").1, "advertised");
}

#[test]
fn what_was_advertised_is_no_configuration_and_goes_with_the_command() {
    let mut router = ready("");
    let before = router.cli("show running-config");
    assert!(before.contains("ip6 nd address autoconfig e1\n"), "{before}");
    router.cli("ip6 nd address autoconfig e1 default-route");
    let options = [usual(), route("2001:db8:f::", 48, 0, 1800)];
    hear(&mut router, 1800, &options);
    seconds(&mut router, 2.0);
    assert_eq!(
        leads(&mut router, "2001:db8:f::9"),
        (json!("2001:db8:f::/48"), json!("advertised"))
    );
    let with_routes = router.cli("show running-config");
    assert_eq!(with_routes, before.replace("autoconfig e1", "autoconfig e1 default-route"));
    router.cli("ip6 nd address autoconfig e1");
    for to in ["2001:db8:9::9", "2001:db8:f::9"] {
        assert_eq!(leads(&mut router, to).0, Value::Null, "routes are not asked for any more");
    }
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "preferred");
    router.cli("ip6 nd address autoconfig e1 disable");
    assert_eq!(leads(&mut router, "2001:db8:1::9").0, Value::Null);
    assert_eq!(leads(&mut router, OWN).0, Value::Null);
    assert_eq!(router.json("show interface address e1")[0]["link_local"], Value::Null);
    assert!(!router.cli("show running-config").contains("autoconfig"));
    hear(&mut router, 1800, &options);
    assert_eq!(leads(&mut router, "2001:db8:1::9").0, Value::Null, "nobody listens");
}

#[test]
fn an_address_is_deprecated_and_then_forgotten() {
    let mut router = ready("");
    let short = prefix("2001:db8:1::/64", 0xc0, 9_000, 60);
    hear(&mut router, 0, &[short, prefix("2001:db8:2::/64", 0x40, 20_000, 20_000)]);
    seconds(&mut router, 3.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "preferred");
    seconds(&mut router, 60.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "deprecated");
    let sources = quiver_forwarding::ip::Addresses {
        ip6: [OWN, "2001:db8:2:0:fe:ff:fe00:1"]
            .map(|own| format!("{own}/128").parse().unwrap())
            .to_vec(),
        deprecated: vec![OWN.parse().unwrap()],
        ..Default::default()
    };
    let other = "2001:db8:2:0:fe:ff:fe00:1".parse().ok();
    assert_eq!(sources.source6("2001:db8:1::9".parse().unwrap()), other);
    // No advertisement can end it within two hours (RFC 4862 §5.5.3 e).
    hear(&mut router, 0, &[prefix("2001:db8:1::/64", 0xc0, 0, 0)]);
    seconds(&mut router, 7_190.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "deprecated");
    seconds(&mut router, 20.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), Value::Null);
    assert_eq!(leads(&mut router, OWN).0, Value::Null);
    assert_eq!(state(&mut router, "2001:db8:2::/64"), "preferred");
}

#[test]
fn the_hop_limit_and_the_mtu_of_the_link_are_used() {
    let mut router = ready("");
    let mut mtu = vec![0; 8];
    NdOption::Mtu(1300).emit(&mut mtu).unwrap();
    hear(&mut router, 1800, &[usual(), mtu]);
    let shown = router.json("show ip6 autoconfig")["interfaces"][0].clone();
    assert_eq!((&shown["mtu_bytes"], &shown["hop_limit"]), (&json!(1300), &json!(33)));
    let id = router.id("e1");
    let mtu_of = |router: &mut Router| {
        let fib = router.engine().get::<quiver_forwarding::fib::Fib>().unwrap();
        fib.interface(id).unwrap().mtu_of(quiver_forwarding::fib::Family::Ip6)
    };
    assert_eq!(mtu_of(&mut router), 1300);
    router.cli(&format!("ip neighbor e1 {ROUTER} {PEER}"));
    router.sent("e1");
    router.send("e1", &ping("fe80::fe:ff:fe00:1"));
    let replies = router.sent("e1");
    let reply = replies.iter().find(|frame| frame[54] == 129).expect("a reply");
    assert_eq!(reply[14 + 7], 33);
    assert!(!router.cli("show running-config").contains("1300"));
    router.cli("ip6 nd address autoconfig e1 disable");
    assert_eq!(mtu_of(&mut router), 1500);
}

#[test]
fn the_preferred_router_is_used_and_equal_ones_share() {
    let mut router = ready("default-route");
    let paths = |router: &mut Router| {
        let shown = router.cli("show ip6 fib ::/0");
        ["fe80::c0", "fe80::c1", "fe80::c2"].map(|at| shown.matches(&format!("{at} ")).count() > 0)
    };
    router.send("e1", &advertisement("fe80::c0", 1800, 0x00, &[]));
    router.send("e1", &advertisement("fe80::c1", 1800, 0x00, &[]));
    router.send("e1", &advertisement("fe80::c2", 30, 0x08, &[]));
    let used = |router: &mut Router| {
        let shown = router.json("show ip6 nd routers");
        shown.as_array().unwrap().iter().map(|row| row["used"] == true).collect::<Vec<_>>()
    };
    assert_eq!(used(&mut router), [false, false, true]);
    seconds(&mut router, 32.0);
    assert_eq!(used(&mut router), [true, true], "the preferred one is gone");
    assert_eq!(paths(&mut router), [true, true, false]);
    router.send("e1", &advertisement("fe80::c0", 0, 0x00, &[]));
    assert_eq!(used(&mut router), [true]);
}

#[test]
fn a_link_that_goes_down_is_learned_anew() {
    let mut router = ready("default-route");
    hear(&mut router, 1800, &[usual()]);
    seconds(&mut router, 3.0);
    router.cli("set interface state e1 down");
    assert_eq!(leads(&mut router, "2001:db8:9::9").0, Value::Null);
    assert_eq!(router.json("show ip6 autoconfig")["prefixes"], json!([]));
    router.sent("e1");
    router.cli("set interface state e1 up");
    seconds(&mut router, 3.0);
    assert!(sent(&mut router).iter().any(|(kind, _)| *kind == 133), "routers are asked again");
    hear(&mut router, 1800, &[usual()]);
    seconds(&mut router, 3.0);
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "preferred");
    // Another MAC address makes another address.
    router.cli("set interface mac address e1 02:00:00:00:77:77");
    seconds(&mut router, 3.0);
    let expected = json!(["2001:db8:1::ff:fe00:7777/128"]);
    assert_eq!(router.json("show interface address e1")[0]["autoconfigured"], expected);
}

#[test]
fn forged_advertisements_fill_no_more_than_the_tables_and_change_no_route() {
    let mut router = ready("default-route");
    for n in 0..60_u16 {
        let prefixes =
            (0..16).map(|at| prefix(&format!("2001:db8:{n:x}:{at:x}::/64"), 0xc0, 9_000, 9_000));
        let options: Vec<_> =
            prefixes.chain([route(&format!("2001:db8:{n:x}::"), 48, 0x08, 9_000)]).collect();
        router.send("e1", &advertisement(&format!("fe80::{:x}", n + 1), 9_000, 0, &options));
        seconds(&mut router, 0.1);
    }
    let shown = router.json("show ip6 autoconfig");
    assert_eq!(shown["prefixes"].as_array().unwrap().len(), 16);
    assert_eq!(router.json("show ip6 nd routers").as_array().unwrap().len(), 8 + 16);
    let counts = &shown["interfaces"][0];
    assert_eq!((&counts["ignored_routers"], &counts["ignored_routes"]), (&json!(52), &json!(44)));
    // From afar, from a global address, and from ourselves: nothing is believed.
    let mut fresh = ready("default-route");
    let mut from_afar = advertisement(ROUTER, 1800, 0, &[usual()]);
    from_afar[14 + 7] = 254;
    fresh.send("e1", &from_afar);
    fresh.send("e1", &advertisement("2001:db8::1", 1800, 0, &[usual()]));
    fresh.send("e1", &advertisement("fe80::fe:ff:fe00:1", 1800, 0, &[usual()]));
    fresh.send(
        "e1",
        &advertisement(
            ROUTER,
            0,
            0,
            &[prefix("fe80::/64", 0xc0, 9, 9), prefix("::/0", 0xc0, 9, 9)],
        ),
    );
    assert_eq!(fresh.json("show ip6 autoconfig")["prefixes"], json!([]));
    assert_eq!(fresh.json("show ip6 nd routers"), json!([]));
    assert_eq!(leads(&mut fresh, "2001:db8:9::9").0, Value::Null);
}

#[test]
fn what_an_interface_cannot_do_beside_it_is_refused() {
    let mut router = router("");
    router.cli("create loopback interface instance 0");
    router.cli("set interface ip address loop0 192.0.2.1/32");
    let refusal = router.refused("set interface unnumbered e1 use loop0");
    assert!(refusal.contains("ip6 nd address autoconfig e1 disable"), "{refusal}");
    router.cli("set interface unnumbered e0 use loop0");
    let refusal = router.refused("ip6 nd address autoconfig e0");
    assert!(refusal.contains("uses the addresses of loop0"), "{refusal}");
    let refusal = router.refused("ip6 nd address autoconfig e9");
    assert!(refusal.contains("no interface 'e9'"), "{refusal}");
    router.cli("ip6 nd address autoconfig e0 disable");
    router.cli("delete loopback interface intfc loop0");
}

#[test]
fn an_interface_that_is_deleted_takes_its_routes_with_it() {
    let mut router = ready("default-route");
    hear(&mut router, 1800, &[usual()]);
    seconds(&mut router, 3.0);
    let id = router.id("e1");
    router.engine().delete_interface(id).expect("it is there");
    seconds(&mut router, 3.0);
    assert_eq!(router.json("show ip6 autoconfig")["interfaces"], json!([]));
    assert_eq!(leads(&mut router, "2001:db8:9::9").0, Value::Null);
}

#[test]
fn an_interface_takes_what_another_of_quivers_advertises() {
    let mut router = Router::with(Settings { unasked: true, ..Settings::default() }, &FEATURES);
    router.interface("e0");
    router.interface("e1");
    for line in [
        "ip6 table add 7",
        "set interface ip6 table e1 7",
        "set interface ip address e0 2001:db8:1::1/64",
        "ip6 nd e0 ra-route 2001:db8:f::/48 preference high",
        "ip6 nd e0 ra-mtu 1400 ra-hop-limit 77",
        "ip6 nd e0 no ra-suppress",
        "ip6 nd address autoconfig e1 default-route",
    ] {
        router.cli(line);
    }
    for _ in 0..60 {
        seconds(&mut router, 0.1);
        for (from, to) in [("e0", "e1"), ("e1", "e0")] {
            let frames = router.sent(from);
            frames.iter().for_each(|frame| router.inject(to, frame));
        }
        router.run();
    }
    assert_eq!(state(&mut router, "2001:db8:1::/64"), "preferred");
    let shown = router.json("show ip6 autoconfig")["interfaces"][0].clone();
    assert_eq!((&shown["mtu_bytes"], &shown["hop_limit"]), (&json!(1400), &json!(77)));
    let routers = router.json("show ip6 nd routers");
    let expected = [("::/0", "medium"), ("2001:db8:f::/48", "high")];
    for (row, (prefix, preference)) in routers.as_array().unwrap().iter().zip(expected) {
        assert_eq!((&row["prefix"], &row["preference"]), (&json!(prefix), &json!(preference)));
        assert_eq!(row["address"], "fe80::fe:ff:fe00:0");
    }
    router.cli("ip6 nd e0 ra-suppress");
    for _ in 0..20 {
        seconds(&mut router, 0.1);
        router.sent("e0").iter().for_each(|frame| router.inject("e1", frame));
        router.run();
    }
    let left = router.json("show ip6 nd routers");
    assert_eq!(left.as_array().unwrap().len(), 1, "it said farewell: {left}");
}
