//! Two routers on one link: sessions come up, are lost, and take routes with them; what a stranger
//! sends changes nothing.

use std::time::Duration;

use quiver_bfd::datagram::{headers_len, write_headers};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::bfd::{CONTROL_LEN, Control, ECHO_PORT, Packet, State};
use quiver_wire::{EtherType, EthernetHeader, Header, Ip4Header, MacAddress};

const FEATURES: [Register; 3] =
    [quiver_ethernet::register, quiver_ip::register, quiver_bfd::register];
const STEP: Duration = Duration::from_millis(10);
const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xa]);
const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xb]);

/// Router `a` is 192.0.2.1 and 2001:db8::1, router `b` is .2 and ::2.
struct Link {
    a: Router,
    b: Router,
    is_whole: bool,
}

fn router(mac: MacAddress, own: u8, other: (MacAddress, u8), workers: usize) -> Router {
    let mut router = Router::with(Settings { workers, ..Settings::default() }, &FEATURES);
    router.cli(&format!("create test interface e0 mac {mac}"));
    router.cli("set interface state e0 up");
    router.cli(&format!("set interface ip address e0 192.0.2.{own}/24"));
    router.cli(&format!("set interface ip address e0 2001:db8::{own}/64"));
    let (mac, number) = other;
    router.cli(&format!("ip neighbor e0 192.0.2.{number} {mac} static"));
    router.cli(&format!("ip neighbor e0 2001:db8::{number} {mac} static"));
    router
}

impl Link {
    fn new(workers: usize) -> Link {
        let (a, b) = (router(A, 1, (B, 2), workers), router(B, 2, (A, 1), workers));
        Link { a, b, is_whole: true }
    }

    fn run(&mut self, for_ms: u64) {
        for _ in 0..for_ms / 10 {
            self.a.advance(STEP);
            self.b.advance(STEP);
            let (from_a, from_b) = (self.a.sent("e0"), self.b.sent("e0"));
            if self.is_whole {
                from_a.iter().for_each(|frame| self.b.send("e0", frame));
                from_b.iter().for_each(|frame| self.a.send("e0", frame));
            }
        }
    }

    fn states(&mut self) -> [String; 2] {
        [state(&mut self.a, 0), state(&mut self.b, 0)]
    }
}

fn state(router: &mut Router, place: usize) -> String {
    router.json("show bfd sessions")[place]["state"].as_str().expect("a state").to_owned()
}

fn verbose(router: &mut Router) -> serde_json::Value {
    router.json("show bfd sessions verbose")[0].clone()
}

fn add(router: &mut Router, own: &str, other: &str, more: &str) {
    router.cli(&format!(
        "bfd udp session add interface e0 local-addr {own} peer-addr {other} desired-min-tx 100000 \
         required-min-rx 100000 detect-mult 3 {more}"
    ));
}

const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];
const UP: [&str; 2] = ["Up", "Up"];
const DOWN: [&str; 2] = ["Down", "Down"];

fn linked(workers: usize, ends: [&str; 2], more: &str) -> Link {
    let mut link = Link::new(workers);
    add(&mut link.a, ends[0], ends[1], more);
    add(&mut link.b, ends[1], ends[0], more);
    link.run(4000);
    assert_eq!(link.states(), UP);
    link
}

#[test]
fn sessions_of_both_families_come_up_and_find_a_cut_link() {
    for ends in [V4, V6] {
        let mut link = linked(1, ends, "");
        let row = verbose(&mut link.a);
        assert_eq!(row["transmit_interval_ms"], 100.0);
        assert_eq!(row["detection_time_ms"], 300.0);
        assert_eq!((&row["is_polling"], &row["remote_state"]), (&false.into(), &"Up".into()));
        link.is_whole = false;
        link.run(200);
        assert_eq!(link.states(), UP);
        link.run(200);
        assert_eq!(link.states(), DOWN);
        link.is_whole = true;
        link.run(4000);
        assert_eq!(link.states(), UP);
        assert_eq!(verbose(&mut link.b)["went_down"], 1);
        assert!(link.a.dropped().is_empty(), "{:?}", link.a.dropped());
    }
}

#[test]
fn what_is_sent_leaves_with_the_ttl_and_the_class_of_the_rfcs() {
    let mut link = linked(1, V4, "");
    link.a.advance(Duration::from_millis(100));
    let frame = link.a.sent("e0").pop().expect("a packet");
    assert_eq!((&frame[..6], &frame[6..12]), (&B.0[..], &A.0[..]));
    assert_eq!((frame[14], frame[15], frame[22]), (0x45, 48 << 2, 255));
    assert_eq!(frame[36..38], 3784u16.to_be_bytes());
    assert!(u16::from_be_bytes([frame[34], frame[35]]) >= 49_152);
    let packet = Packet::parse(&frame[42..]).expect("BFD");
    assert_eq!(packet.control.state, State::Up);
}

#[test]
fn sessions_are_signed_in_either_family() {
    for kind in ["keyed-sha1", "meticulous-keyed-sha1", "keyed-md5", "meticulous-keyed-md5"] {
        let mut link = Link::new(1);
        for router in [&mut link.a, &mut link.b] {
            router.cli(&format!("bfd key set conf-key-id 1 type {kind} secret 0badc0de"));
            router.cli(&format!("bfd key set conf-key-id 2 type {kind} secret 0badc0df"));
        }
        add(&mut link.a, V6[0], V6[1], "conf-key-id 1 bfd-key-id 9");
        add(&mut link.b, V6[1], V6[0], "conf-key-id 1 bfd-key-id 9");
        link.run(4000);
        assert_eq!(link.states(), UP, "{kind}");
        let change = |router: &mut Router, ends: [&str; 2], delayed: &str| {
            let (own, other) = (ends[0], ends[1]);
            router.cli(&format!(
                "bfd udp session auth activate interface e0 local-addr {own} peer-addr {other} \
                 conf-key-id 2 bfd-key-id 8 delayed {delayed}"
            ));
        };
        change(&mut link.a, V6, "yes");
        link.run(1000);
        change(&mut link.b, [V6[1], V6[0]], "no");
        link.run(200);
        assert!(link.a.refused("bfd key del conf-key-id 2").contains("sign with key 2"));
        link.a.cli("bfd key del conf-key-id 1");
        let refused = verbose(&mut link.b)["refused"].as_u64().expect("a number");
        assert!(refused <= 2, "{refused} packets were signed with the old key");
        link.run(2000);
        assert_eq!(link.states(), UP, "{kind}");
        assert_eq!(verbose(&mut link.a)["went_down"], 0);
    }
}

#[test]
fn routes_go_through_a_peer_only_while_its_session_is_up_or_taken_down() {
    let mut link = Link::new(1);
    link.a.cli("ip route add 198.51.100.0/24 via 192.0.2.2 e0");
    let drops = |router: &mut Router| router.cli("show ip fib 198.51.100.1").contains("is down");
    assert!(!drops(&mut link.a));
    add(&mut link.a, V4[0], V4[1], "");
    assert!(drops(&mut link.a), "a session that was never up is down");
    add(&mut link.b, V4[1], V4[0], "");
    link.run(4000);
    assert_eq!((link.states(), drops(&mut link.a)), (UP.map(str::to_owned), false));
    link.is_whole = false;
    link.run(500);
    assert!(drops(&mut link.a));
    link.is_whole = true;
    link.run(4000);
    assert!(!drops(&mut link.a));
    let flags = "bfd udp session set-flags interface e0 local-addr 192.0.2.2 peer-addr 192.0.2.1";
    link.b.cli(&format!("{flags} admin down"));
    link.run(3000);
    assert_eq!(link.states(), ["Down", "AdminDown"]);
    assert!(!drops(&mut link.a), "the peer was taken down, which says nothing of the path");
    link.b.cli(&format!("{flags} admin up"));
    link.run(4000);
    link.is_whole = false;
    link.run(500);
    assert!(drops(&mut link.a));
    link.a.cli("bfd udp session del interface e0 local-addr 192.0.2.1 peer-addr 192.0.2.2");
    assert!(!drops(&mut link.a), "nothing watches the path any more");
}

#[test]
fn routes_go_through_a_next_hop_of_several_hops_only_while_its_session_is_up() {
    let mut link = Link::new(1);
    let times = "desired-min-tx 100000 required-min-rx 100000 detect-mult 3";
    for (router, own, other) in [(&mut link.a, 1, 2), (&mut link.b, 2, 1)] {
        router.cli("create loopback interface instance 0");
        router.cli("set interface state loop0 up");
        router.cli(&format!("set interface ip address loop0 10.0.0.{own}/32"));
        router.cli(&format!("ip route add 10.0.0.{other}/32 via 192.0.2.{other} e0"));
        router.cli(&format!(
            "bfd udp session add multihop local-addr 10.0.0.{own} peer-addr 10.0.0.{other} {times}"
        ));
    }
    link.a.cli("ip route add 198.51.100.0/24 via 10.0.0.2");
    let says = |link: &mut Link| link.a.cli("show ip fib 198.51.100.9").contains("is down");
    assert!(says(&mut link), "it has not been up");
    link.run(4000);
    assert_eq!(link.states(), UP);
    assert!(!says(&mut link));
    link.is_whole = false;
    link.run(500);
    assert_eq!(link.states(), DOWN);
    assert!(says(&mut link));
    link.is_whole = true;
    link.run(4000);
    assert_eq!(link.states(), UP);
    link.b.cli("bfd udp session del multihop local-addr 10.0.0.2 peer-addr 10.0.0.1");
    link.run(100);
    assert!(!says(&mut link), "it was taken down on purpose");
}

/// A frame with an echo packet, as FRR sends it: to the router itself.
fn echo(ttl: u8, from: &str, to: &str) -> Vec<u8> {
    let (from, to) = (from.parse().expect("an address"), to.parse().expect("an address"));
    let mut bytes = [0; 64];
    bytes[28..44].copy_from_slice(b"whatever it says");
    let length = write_headers(from, to, (ECHO_PORT, ECHO_PORT), 16, &mut bytes).expect("fits");
    bytes[8] = ttl;
    bytes[10..12].fill(0);
    let checksum = quiver_wire::checksum::header_checksum(Ip4Header::overlay(&bytes).expect("IP"));
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = vec![0; EthernetHeader::LEN];
    EthernetHeader::new(A, B, EtherType::IPV4).write(&mut frame).expect("fits");
    frame.extend_from_slice(&bytes[..length]);
    frame
}

#[test]
fn an_echo_packet_of_a_peer_goes_back_one_hop_older_and_a_strangers_does_not() {
    for workers in [1, 2] {
        let mut link = linked(workers, V4, "");
        assert_eq!(verbose(&mut link.a)["echoes_returned"], 0);
        link.a.sent("e0");
        for (ttl, from) in [(255, V4[1]), (254, V4[1]), (255, "192.0.2.77")] {
            link.a.send("e0", &echo(ttl, from, V4[0]));
        }
        let sent = link.a.sent("e0");
        let back: Vec<_> = sent.iter().filter(|frame| frame[36..38] == [0x0e, 0xc9]).collect();
        assert_eq!(back.len(), 1, "{workers}");
        let frame = back[0];
        assert_eq!((&frame[..6], &frame[6..12]), (&B.0[..], &A.0[..]));
        assert_eq!((frame[22], &frame[26..34]), (254, &[192, 0, 2, 1, 192, 0, 2, 2][..]));
        assert_eq!(frame[42..58], *b"whatever it says");
        assert_eq!(verbose(&mut link.a)["echoes_returned"], 1);
        let unknown = |(node, why, _): &&(String, String, u64)| {
            (node.as_str(), why.as_str()) == ("bfd-input", "echo-unknown")
        };
        let dropped = link.a.dropped();
        assert_eq!(dropped.iter().find(unknown).map(|(.., count)| *count), Some(2));
        link.run(10);
    }
}

#[test]
fn a_session_follows_its_interface_and_its_address() {
    let mut link = linked(1, V4, "");
    link.a.cli("set interface state e0 down");
    link.a.advance(STEP);
    assert_eq!(verbose(&mut link.a)["diagnostic"], "path-down");
    link.run(500);
    link.a.cli("set interface state e0 up");
    link.run(4000);
    assert_eq!(link.states(), UP);
    link.a.cli("set interface ip address del e0 192.0.2.1/24");
    link.a.cli("set interface ip address e0 192.0.2.7/24");
    link.run(2000);
    assert_eq!(link.states(), DOWN);
    assert_eq!(verbose(&mut link.a)["path"], "down");
    link.a.cli("set interface ip address e0 192.0.2.1/24");
    link.run(5000);
    assert_eq!(link.states(), UP);
    let id = link.a.id("e0");
    link.a.engine().delete_interface(id).expect("deleted");
    assert_eq!(link.a.json("show bfd sessions"), serde_json::json!([]));
}

/// A frame from the peer with a control packet.
fn frame(control: &Control, ttl: u8, from: &str, to: &str) -> Vec<u8> {
    let mut packet = vec![0; 14 + headers_len(true) + CONTROL_LEN];
    EthernetHeader::new(A, B, EtherType::IPV4).write(&mut packet).expect("room");
    let payload = 14 + headers_len(true);
    control.emit(None, &mut packet[payload..]).expect("room");
    let (from, to) = (from.parse().expect("an address"), to.parse().expect("an address"));
    write_headers(from, to, (50_000, 3784), CONTROL_LEN, &mut packet[14..]).expect("room");
    packet[22] = ttl;
    let header = quiver_wire::Ip4Header::overlay_mut(&mut packet[14..]).expect("a header");
    header.set_checksum(0);
    header.set_checksum(quiver_wire::checksum::header_checksum(header));
    packet
}

#[test]
fn nothing_follows_from_packets_that_fail_a_check() {
    let mut link = linked(1, V4, "");
    let row = verbose(&mut link.a);
    let number = |key: &str| row[key].as_u64().expect("a number") as u32;
    let (own, theirs) = (number("my_discriminator"), number("your_discriminator"));
    let down = Control {
        state: State::Down,
        detect_mult: 3,
        my_discriminator: theirs,
        your_discriminator: own,
        desired_min_tx_us: 1_000_000,
        required_min_rx_us: 1,
        ..Control::default()
    };
    let admin_down = Control { state: State::AdminDown, ..down };
    let strangers = [
        (frame(&down, 254, V4[1], V4[0]), "ttl-not-255"),
        (frame(&admin_down, 1, V4[1], V4[0]), "ttl-not-255"),
        (frame(&down, 255, "192.0.2.3", V4[0]), "other-path"),
        (
            frame(&Control { your_discriminator: own ^ 1, ..down }, 255, V4[1], V4[0]),
            "unknown-discriminator",
        ),
        (frame(&Control { your_discriminator: 0, ..down }, 255, "192.0.2.3", V4[0]), "no-session"),
        (frame(&Control { detect_mult: 0, ..down }, 255, V4[1], V4[0]), "detect-mult-zero"),
        (
            frame(&Control { my_discriminator: 0, ..down }, 255, V4[1], V4[0]),
            "my-discriminator-zero",
        ),
        (
            frame(&Control { state: State::Up, your_discriminator: 0, ..down }, 255, V4[1], V4[0]),
            "your-discriminator-zero",
        ),
    ];
    for (stranger, reason) in strangers {
        let before = link.a.count("bfd-input", reason);
        link.a.send("e0", &stranger);
        assert_eq!(link.a.count("bfd-input", reason), before + 1, "{reason}");
        assert_eq!(state(&mut link.a, 0), "Up", "{reason}");
    }
    let after = verbose(&mut link.a);
    for key in ["remote_state", "your_discriminator", "detection_time_ms", "remote_min_rx_ms"] {
        assert_eq!(after[key], row[key], "{key}");
    }
    link.a.send("e0", &frame(&down, 255, V4[1], V4[0]));
    assert_eq!(state(&mut link.a, 0), "Down", "the peer itself is believed");
}

#[test]
fn a_packet_that_another_worker_receives_comes_to_its_session() {
    let mut link = Link::new(2);
    // Two sessions on an interface whose one queue is served by one worker: the second interface
    // receives for a session that an earlier one has drawn to the other worker.
    for router in [&mut link.a, &mut link.b] {
        router.cli("set interface rx-placement e0 queue 0 worker 0");
    }
    add(&mut link.a, V4[0], V4[1], "");
    add(&mut link.b, V4[1], V4[0], "");
    link.a.cli("set interface rx-placement e0 queue 0 worker 1");
    link.run(4000);
    assert_eq!(link.states(), UP);
    assert_eq!(verbose(&mut link.a)["worker"], 0);
    assert!(link.a.dropped().is_empty(), "{:?}", link.a.dropped());
}

#[test]
fn many_sessions_share_a_link_and_none_misses_its_peer() {
    let mut link = Link::new(1);
    for host in 10..110 {
        for (router, own, other) in [(&mut link.a, 1, 2), (&mut link.b, 2, 1)] {
            router.cli(&format!("set interface ip address e0 10.{host}.0.{own}/24"));
            let mac = if other == 1 { A } else { B };
            router.cli(&format!("ip neighbor e0 10.{host}.0.{other} {mac} static"));
            add(router, &format!("10.{host}.0.{own}"), &format!("10.{host}.0.{other}"), "");
        }
    }
    link.run(8000);
    for router in [&mut link.a, &mut link.b] {
        let rows = router.json("show bfd sessions");
        let rows = rows.as_array().expect("rows");
        assert_eq!(rows.len(), 100);
        assert!(rows.iter().all(|row| row["state"] == "Up" && row["went_down"] == 0));
        assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut link = Link::new(1);
    let router = &mut link.a;
    let times = "desired-min-tx 100000 required-min-rx 100000 detect-mult 3";
    for (line, says) in [
        ("local-addr 192.0.2.1 peer-addr 192.0.2.2", "interface, or goes over several hops"),
        ("interface e0 multihop local-addr 192.0.2.1 peer-addr 192.0.2.2", "has no interface"),
        ("interface e0 local-addr 192.0.2.1 peer-addr 2001:db8::2", "two families"),
        ("interface e0 local-addr 192.0.2.1 peer-addr 224.0.0.1", "two hosts"),
        ("interface e0 local-addr 192.0.2.1 peer-addr 192.0.2.1", "two hosts"),
        ("interface e0 local-addr 192.0.2.1 peer-addr 192.0.2.2 conf-key-id 4", "bfd-key-id"),
        (
            "interface e0 local-addr 192.0.2.1 peer-addr 192.0.2.2 conf-key-id 4 bfd-key-id 1",
            "no BFD key 4",
        ),
    ] {
        let refused = router.refused(&format!("bfd udp session add {line} {times}"));
        assert!(refused.contains(says), "{line}: {refused}");
    }
    add(router, V4[0], V4[1], "");
    let again = "interface e0 local-addr 192.0.2.1 peer-addr 192.0.2.2";
    assert!(router.refused(&format!("bfd udp session add {again} {times}")).contains("there is a"));
    for secret in ["", "0", "zz", &"00".repeat(21)] {
        let line = format!("bfd key set conf-key-id 1 type keyed-sha1 secret \"{secret}\"");
        assert!(router.refused(&line).contains("hexadecimal"), "{secret}");
    }
    assert_eq!(router.json("show bfd sessions").as_array().map(Vec::len), Some(1));
    router.cli(&format!("bfd udp session del {again}"));
    assert!(router.refused(&format!("bfd udp session del {again}")).contains("no such"));
}

#[test]
fn the_configuration_is_written_as_it_was_given() {
    let mut link = Link::new(1);
    let router = &mut link.a;
    router.cli("bfd key set conf-key-id 7 type meticulous-keyed-md5 secret 00FF");
    add(router, V4[0], V4[1], "conf-key-id 7 bfd-key-id 200");
    router.cli(
        "bfd udp session add multihop local-addr 2001:db8::1 peer-addr 2001:db8:9::1 \
         desired-min-tx 50000 required-min-rx 60000 detect-mult 4",
    );
    router.cli(
        "bfd udp session set-flags multihop local-addr 2001:db8::1 peer-addr 2001:db8:9::1 admin \
         down",
    );
    router.cli("bfd udp echo-source set interface e0");
    let config = router.cli("show running-config secrets");
    let lines: Vec<&str> = config.lines().filter(|line| line.starts_with("bfd ")).collect();
    assert_eq!(
        lines,
        [
            "bfd key set conf-key-id 7 type meticulous-keyed-md5 secret 00ff",
            "bfd udp echo-source set interface e0",
            "bfd udp session add interface e0 local-addr 192.0.2.1 peer-addr 192.0.2.2 \
             desired-min-tx 100000 required-min-rx 100000 detect-mult 3 conf-key-id 7 \
             bfd-key-id 200",
            "bfd udp session add multihop local-addr 2001:db8::1 peer-addr 2001:db8:9::1 \
             desired-min-tx 50000 required-min-rx 60000 detect-mult 4",
            "bfd udp session set-flags multihop local-addr 2001:db8::1 peer-addr 2001:db8:9::1 \
             admin down",
        ]
    );
    assert!(!router.cli("show running-config").contains("00ff"));
    link.run(10); // what was to be sent leaves
}
