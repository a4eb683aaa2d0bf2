//! BFD on the members of bonds (RFC 7130): two routers joined by two links, of which one is cut,
//! and what strangers send on members.

use std::time::Duration;

use quiver_bfd::datagram::{headers_len, write_headers};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::bfd::{CONTROL_LEN, Control, MEMBER_GROUP, State};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};
use serde_json::Value;

const FEATURES: [Register; 4] =
    [quiver_ethernet::register, quiver_ip::register, quiver_bond::register, quiver_bfd::register];
const STEP: Duration = Duration::from_millis(10);
const MEMBERS: [&str; 2] = ["m0", "m1"];
const TIMES: &str = "desired-min-tx 100000 required-min-rx 100000 detect-mult 3";
const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];
/// The addresses of the routers' bonds.
const MACS: [MacAddress; 2] = [MacAddress([2, 0, 0, 0, 1, 0]), MacAddress([2, 0, 0, 0, 2, 0])];

/// Two routers whose members of one name are linked, but for those that are cut. What `e0` of a
/// router receives goes out of its bond.
struct Pair {
    routers: [Router; 2],
    cut: Vec<&'static str>,
    /// What router 0 has sent by each member in the last run.
    sent: [Vec<Vec<u8>>; 2],
}

fn router(number: usize, mode: &str, workers: usize) -> Router {
    let mut router = Router::with(Settings { workers, ..Settings::default() }, &FEATURES);
    router.interface("e0");
    router.cli(&format!("create bond mode {mode} hw-addr {}", MACS[number]));
    for member in MEMBERS {
        router.interface(member);
        router.cli(&format!("bond add BondEthernet0 {member}"));
    }
    router.cli("set interface state BondEthernet0 up");
    router.cli("test l2patch rx e0 tx BondEthernet0");
    router
}

impl Pair {
    fn new(mode: &str, workers: usize) -> Pair {
        let routers = [0, 1].map(|number| router(number, mode, workers));
        Pair { routers, cut: Vec::new(), sent: [Vec::new(), Vec::new()] }
    }

    /// Watch the members at both ends.
    fn watch(&mut self, ends: [&str; 2], more: &str) {
        for (number, router) in self.routers.iter_mut().enumerate() {
            let (own, other) = (ends[number], ends[1 - number]);
            router.cli(&format!(
                "bfd udp bond add BondEthernet0 local-addr {own} peer-addr {other} {TIMES} {more}"
            ));
        }
    }

    fn run(&mut self, for_ms: u64) {
        self.sent = [Vec::new(), Vec::new()];
        for _ in 0..for_ms / 10 {
            let [here, there] = &mut self.routers;
            here.advance(STEP);
            there.advance(STEP);
            for (place, name) in MEMBERS.into_iter().enumerate() {
                let frames = (here.sent(name), there.sent(name));
                if !self.cut.contains(&name) {
                    frames.0.iter().for_each(|frame| there.send(name, frame));
                    frames.1.iter().for_each(|frame| here.send(name, frame));
                }
                self.sent[place].extend(frames.0);
            }
        }
    }

    /// The members that router 0 sends by.
    fn active(&mut self) -> Vec<String> {
        let bond = self.routers[0].json("show bond details");
        serde_json::from_value(bond[0]["active"].clone()).expect("names")
    }

    /// The states of the sessions of router 0, by member.
    fn states(&mut self) -> Vec<(String, String)> {
        let rows = sessions(&mut self.routers[0]);
        let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
        let mut states: Vec<_> =
            rows.iter().map(|row| (text(row, "interface"), text(row, "state"))).collect();
        states.sort();
        states
    }

    /// How many frames of 200 flows leave by each member of router 0.
    fn spread(&mut self) -> [usize; 2] {
        let router = &mut self.routers[0];
        MEMBERS.iter().for_each(|name| drop(router.sent(name)));
        (0..200).for_each(|port| router.inject("e0", &udp(port, [192, 0, 2, 2])));
        router.run();
        let is_flow = |frame: &Vec<u8>| frame[36..38] == [0, 9];
        MEMBERS.map(|name| router.sent(name).iter().filter(|frame| is_flow(frame)).count())
    }
}

fn sessions(router: &mut Router) -> Vec<Value> {
    router.json("show bfd sessions verbose").as_array().expect("rows").clone()
}

/// A frame with UDP to port 9.
fn udp(port: u16, to: [u8; 4]) -> Vec<u8> {
    let head = [&[2, 0, 0, 0, 0, 9][..], &[2, 0, 0, 0, 0, 1], &[8, 0, 0x45, 0, 0, 28]].concat();
    let mut frame = [&head[..], &[0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1], &to].concat();
    frame.extend(port.to_be_bytes());
    frame.extend([0, 9, 0, 8, 0, 0]);
    frame
}

fn up(members: &[&str]) -> Vec<(String, String)> {
    members.iter().map(|name| ((*name).to_owned(), "Up".to_owned())).collect()
}

#[test]
fn a_member_sends_while_its_session_is_up_and_leaves_when_its_link_drops_all() {
    for (ends, workers) in [(V4, 1), (V6, 1), (V4, 2)] {
        let mut pair = Pair::new("xor load-balance l34", workers);
        assert_eq!(pair.active(), MEMBERS);
        pair.watch(ends, "");
        assert!(pair.active().is_empty(), "no session is up yet");
        pair.run(4000);
        assert_eq!(
            (pair.states(), pair.active()),
            (up(&MEMBERS), MEMBERS.map(str::to_owned).into())
        );
        let [first, second] = pair.spread();
        assert!(first > 50 && second > 50, "{first} {second}");
        pair.cut = vec!["m0"];
        pair.run(400);
        assert_eq!(pair.active(), ["m1"], "within the detection time");
        assert_eq!(pair.spread(), [0, 200]);
        let text = pair.routers[0].cli("show bond details");
        assert!(text.contains("m0 (not active, BFD down)"), "{text}");
        let bond = pair.routers[0].json("show bond details");
        let alive = |place: usize| bond[0]["members"][place]["alive"].clone();
        assert_eq!((alive(0), alive(1)), (false.into(), true.into()));
        pair.cut.clear();
        pair.run(4000);
        assert_eq!(pair.active(), MEMBERS);
        let rows = sessions(&mut pair.routers[0]);
        assert_eq!(
            (&rows[0]["bond"], &rows[0]["origin"]),
            (&"BondEthernet0".into(), &"bond".into())
        );
        for router in &pair.routers {
            let dropped = router.dropped();
            let of_bfd = |drop: &(String, String, u64)| drop.0.starts_with("bfd");
            assert!(!dropped.iter().any(of_bfd), "{dropped:?}");
        }
    }
}

#[test]
fn what_is_sent_is_as_the_rfc_says() {
    for (more, leaves_the_group) in [("", true), ("group-mac", false)] {
        let mut pair = Pair::new("xor", 1);
        pair.watch(V4, more);
        pair.run(3000);
        let sent: Vec<Vec<u8>> = pair.sent[1].clone();
        let state = |frame: &Vec<u8>| State::from_bits(frame[43] >> 6);
        for frame in &sent {
            assert_eq!((frame[12..15].to_vec(), frame[22]), (vec![8, 0, 0x45], 255));
            assert_eq!((&frame[6..12], &frame[36..38]), (&MACS[0].0[..], &[0x1a, 0x80][..]));
            if state(frame) != State::Up {
                assert_eq!(frame[..6], MEMBER_GROUP.0);
            }
        }
        let ups: Vec<_> = sent.iter().filter(|frame| state(frame) == State::Up).collect();
        assert!(ups[..3].iter().all(|frame| frame[..6] == MEMBER_GROUP.0));
        let last = &ups.last().expect("it came up")[..6];
        assert_eq!(last == &MACS[1].0[..], leaves_the_group, "{more}");
    }
}

#[test]
fn sessions_that_are_taken_down_are_as_none() {
    let mut pair = Pair::new("active-backup", 1);
    pair.watch(V4, "");
    pair.run(4000);
    assert_eq!(pair.active(), MEMBERS);
    let flags = "bfd udp bond set-flags BondEthernet0 local-addr 192.0.2.2 peer-addr 192.0.2.1";
    pair.routers[1].cli(&format!("{flags} admin down"));
    pair.run(2000);
    assert_eq!(pair.states()[0].1, "Down");
    assert_eq!(pair.active(), MEMBERS, "the peer was taken down, which says nothing of the link");
    pair.cut = vec!["m0"];
    pair.run(2000);
    assert_eq!(pair.active(), MEMBERS, "nobody watches");
    pair.cut.clear();
    pair.routers[1].cli(&format!("{flags} admin up"));
    pair.run(4000);
    assert_eq!(pair.states(), up(&MEMBERS));
    pair.routers[1].cli("bfd udp bond del BondEthernet0 local-addr 192.0.2.2 peer-addr 192.0.2.1");
    pair.run(2000);
    assert_eq!(pair.active(), MEMBERS, "the peer heard that it was deleted");
    let other = &mut pair.routers[1];
    assert!(sessions(other).is_empty());
    assert_eq!(other.json("show bond details")[0]["members"][0]["alive"], Value::Null);
}

#[test]
fn both_families_must_find_a_member_alive() {
    let mut pair = Pair::new("xor", 1);
    pair.watch(V4, "");
    pair.run(4000);
    assert_eq!(pair.active(), MEMBERS);
    pair.routers[0].cli(&format!(
        "bfd udp bond add BondEthernet0 local-addr {} peer-addr {} {TIMES}",
        V6[0], V6[1]
    ));
    assert!(pair.active().is_empty(), "the sessions of IPv6 are not up");
    pair.routers[1].cli(&format!(
        "bfd udp bond add BondEthernet0 local-addr {} peer-addr {} {TIMES}",
        V6[1], V6[0]
    ));
    pair.run(4000);
    assert_eq!((pair.states().len(), pair.active().len()), (4, 2));
    assert!(pair.routers[0].dropped().is_empty(), "{:?}", pair.routers[0].dropped());
}

#[test]
fn with_lacp_a_session_begins_when_its_member_distributes() {
    let mut pair = Pair::new("lacp", 1);
    pair.watch(V4, "");
    pair.run(1000);
    assert!(pair.states().is_empty(), "LACP has not agreed");
    pair.run(9000);
    assert_eq!((pair.states(), pair.active().len()), (up(&MEMBERS), 2));
    pair.cut = vec!["m1"];
    pair.run(400);
    assert_eq!(pair.active(), ["m0"]);
    let port = pair.routers[0].json("show lacp m1 details")[0].clone();
    assert_eq!(port["mux"], "DISTRIBUTING", "LACP has not seen it yet");
    pair.run(6000);
    assert_eq!(pair.states(), up(&["m0"]), "LACP has: there is no session any more");
    pair.cut.clear();
    pair.run(10_000);
    assert_eq!((pair.states(), pair.active().len()), (up(&MEMBERS), 2));
}

#[test]
fn sessions_follow_members_that_come_and_go_and_a_bond_that_goes() {
    let mut pair = Pair::new("xor", 1);
    pair.watch(V4, "");
    pair.run(4000);
    pair.routers[0].cli("bond del m0");
    assert_eq!((pair.states(), pair.active()), (up(&["m1"]), vec!["m1".to_owned()]));
    pair.run(1000);
    pair.routers[0].cli("bond add BondEthernet0 m0");
    assert_eq!(pair.active(), ["m1"], "its session is not up yet");
    pair.run(4000);
    assert_eq!(pair.active(), ["m1", "m0"]);
    pair.routers[0].cli("set interface state m1 down");
    assert_eq!((pair.states(), pair.active()), (up(&["m0"]), vec!["m0".to_owned()]));
    pair.routers[0].cli("delete bond BondEthernet0");
    assert!(pair.states().is_empty());
    let config = pair.routers[0].cli("show running-config");
    assert!(!config.contains("bfd"), "{config}");
    pair.routers[0].cli("create bond mode xor id 0");
    pair.routers[0].cli("bond add BondEthernet0 m0");
    assert_eq!(pair.active(), ["m0"], "nobody watches the new one");
}

/// A frame with a control packet for a session on a member.
fn frame(control: &Control, to: MacAddress, ports: (u16, u16), ends: [&str; 2]) -> Vec<u8> {
    let front = EthernetHeader::LEN + headers_len(true);
    let mut packet = vec![0; front + CONTROL_LEN];
    EthernetHeader::new(to, MACS[1], EtherType::IPV4).write(&mut packet).expect("room");
    control.emit(None, &mut packet[front..]).expect("room");
    let [from, to] = ends.map(|text| text.parse().expect("an address"));
    write_headers(from, to, ports, CONTROL_LEN, &mut packet[EthernetHeader::LEN..]).expect("room");
    packet
}

fn with_ttl(mut frame: Vec<u8>, ttl: u8) -> Vec<u8> {
    let header = quiver_wire::Ip4Header::overlay_mut(&mut frame[14..]).expect("a header");
    header.set_ttl(ttl);
    header.set_checksum(0);
    header.set_checksum(quiver_wire::checksum::header_checksum(header));
    frame
}

#[test]
fn nothing_follows_from_what_a_stranger_sends_on_a_member() {
    let mut pair = Pair::new("xor", 1);
    pair.watch(V4, "");
    pair.run(4000);
    let rows = sessions(&mut pair.routers[0]);
    let number = |place: usize, key: &str| rows[place][key].as_u64().expect("a number") as u32;
    let down = Control {
        state: State::Down,
        detect_mult: 3,
        my_discriminator: number(0, "your_discriminator"),
        your_discriminator: number(0, "my_discriminator"),
        desired_min_tx_us: 1_000_000,
        required_min_rx_us: 1,
        ..Control::default()
    };
    let of_the_other = Control { your_discriminator: number(1, "my_discriminator"), ..down };
    let (ports, back) = ((50_000, 6784), [V4[1], V4[0]]);
    let good = frame(&down, MEMBER_GROUP, ports, back);
    let mut wrong_sum = good.clone();
    wrong_sum[60] ^= 1;
    let mut cut_off = good.clone();
    cut_off.truncate(50);
    let input = "bfd-input";
    let strangers = [
        (with_ttl(good.clone(), 254), input, "ttl-not-255"),
        (frame(&of_the_other, MEMBER_GROUP, ports, back), input, "other-path"),
        (frame(&down, MEMBER_GROUP, ports, ["192.0.2.3", V4[0]]), input, "other-path"),
        (
            frame(&Control { your_discriminator: 77, ..down }, MACS[0], ports, back),
            input,
            "unknown-discriminator",
        ),
        (frame(&down, MacAddress([2; 6]), ports, back), "bfd-member-input", "other-mac"),
        (wrong_sum, "bfd-member-input", "bad-checksum"),
        (cut_off, "bfd-member-input", "malformed"),
    ];
    let router = &mut pair.routers[0];
    for (stranger, node, reason) in strangers {
        let before = router.count(node, reason);
        router.send("m0", &stranger);
        assert_eq!(router.count(node, reason), before + 1, "{reason}");
        assert_eq!(sessions(router)[0]["state"], "Up", "{reason}");
    }
    // What has another port or another destination is the bond's as any frame, and what comes by
    // an interface that is no member is as any packet.
    let received = router.totals("BondEthernet0").rx_packets;
    router.send("m0", &frame(&down, MACS[0], (50_000, 6785), back));
    router.send("m0", &frame(&down, MACS[0], (50_000, 3784), back));
    router.send("m0", &frame(&down, MACS[0], ports, [V4[1], "198.51.100.1"]));
    assert_eq!(router.totals("BondEthernet0").rx_packets, received + 3);
    router.send("e0", &good);
    assert_eq!(sessions(router)[0]["state"], "Up");
    let tagged = [&good[..12], &[0x81, 0, 0xe0, 0], &good[12..]].concat();
    router.send("m0", &tagged);
    assert_eq!(sessions(router)[0]["state"], "Down", "the peer is believed, with a priority tag");
}

#[test]
fn signed_sessions_come_up_and_their_key_stays() {
    let mut pair = Pair::new("xor", 1);
    for router in &mut pair.routers {
        router.cli("bfd key set conf-key-id 1 type meticulous-keyed-sha1 secret 0badc0de");
    }
    pair.watch(V4, "conf-key-id 1 bfd-key-id 9");
    pair.run(4000);
    assert_eq!(pair.states(), up(&MEMBERS));
    let refused = pair.routers[0].refused("bfd key del conf-key-id 1");
    assert!(refused.contains("1 BFD sessions sign"), "{refused}");
}

#[test]
fn the_configuration_is_written_as_it_was_given_and_nonsense_is_refused() {
    let mut pair = Pair::new("xor", 1);
    let router = &mut pair.routers[0];
    let ends = "BondEthernet0 local-addr 192.0.2.1 peer-addr 192.0.2.2";
    let add = format!("bfd udp bond add {ends} {TIMES} group-mac");
    router.cli(&add);
    router.cli(&format!("bfd udp bond set-flags {ends} admin down"));
    let config = router.cli("show running-config");
    let own: Vec<_> = config.lines().filter(|line| line.starts_with("bfd")).collect();
    assert_eq!(own, [add.as_str(), &format!("bfd udp bond set-flags {ends} admin down")]);
    assert_eq!(pair.states().iter().filter(|row| row.1 == "AdminDown").count(), 2);
    assert_eq!(pair.active(), MEMBERS);
    let router = &mut pair.routers[0];
    let more = "desired-min-tx 50000 required-min-rx 50000 detect-mult 5";
    router.cli(&format!("bfd udp bond mod {ends} {more}"));
    assert!(router.cli("show running-config").contains(more));
    assert_eq!(sessions(router)[0]["detect_mult"], 5);
    for (line, says) in [
        (format!("add {ends} {TIMES}"), "already"),
        (format!("add e0 local-addr 192.0.2.1 peer-addr 192.0.2.2 {TIMES}"), "not a bond"),
        (format!("add BondEthernet0 local-addr ::1 peer-addr 192.0.2.2 {TIMES}"), "two families"),
        ("del BondEthernet0 local-addr 192.0.2.1 peer-addr 192.0.2.3".into(), "no BFD sessions"),
        (format!("add {ends} {TIMES} conf-key-id 4 bfd-key-id 1"), "no BFD key 4"),
    ] {
        let refused = router.refused(&format!("bfd udp bond {line}"));
        assert!(refused.contains(says), "{line}: {refused}");
    }
    pair.run(20); // what the sessions said when they were taken down leaves
}
