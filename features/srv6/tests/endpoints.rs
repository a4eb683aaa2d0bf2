//! What packets meet at local SIDs while other things change.

use std::net::Ipv6Addr;

use quiver_testkit::Router;
use quiver_wire::{Header, Ip6Header, IpProtocol};

/// e0, e1, e2 with a neighbour each, whose MAC address ends with the number of the port.
fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_mpls::register,
        quiver_srv6::register,
    ]);
    for (number, name) in ["e0", "e1", "e2"].into_iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{number}::2 02:00:00:00:00:0{number}"));
    }
    router.cli("ip route add fc00::/16 via 2001:db8:1::2");
    router
}

/// A UDP packet on a path, in a frame to e0, with so many segments left.
fn packet(path: &[&str], left: usize, source_port: u16) -> Vec<u8> {
    let path: Vec<Ipv6Addr> = path.iter().map(|segment| segment.parse().unwrap()).collect();
    let udp = [&source_port.to_be_bytes()[..], &[0, 9, 0, 8, 0, 0]].concat();
    let length = (8 + 16 * path.len() + udp.len()) as u16;
    let (source, to) = ("2001:db8:0::2".parse().unwrap(), path[path.len() - 1 - left]);
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xdd];
    frame.resize(54, 0);
    Ip6Header::new(source, to, IpProtocol::ROUTING, 64, length).write(&mut frame[14..]).unwrap();
    frame.extend([17, 2 * path.len() as u8, 4, left as u8, path.len() as u8 - 1, 0, 0, 0]);
    path.iter().rev().for_each(|segment| frame.extend(segment.octets()));
    frame.extend(udp);
    frame
}

/// Where the frames that an interface has sent since are going.
fn macs(router: &mut Router, interface: &str) -> Vec<u8> {
    router.sent(interface).iter().map(|frame| frame[5]).collect()
}

#[test]
fn end_x_follows_its_neighbour_and_its_link() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::1 behavior end.x e2 2001:db8:2::2");
    let frame = packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, 1);
    router.send("e0", &frame);
    assert_eq!(macs(&mut router, "e2"), [2]);
    router.cli("ip neighbor e2 2001:db8:2::2 02:00:00:00:00:77");
    router.send("e0", &frame);
    assert_eq!(macs(&mut router, "e2"), [0x77]);
    router.cli("set interface state e2 down");
    router.send("e0", &frame);
    assert!(router.sent("e1").is_empty(), "it does not go another way");
    router.cli("set interface state e2 up");
    router.cli("ip neighbor e2 2001:db8:2::2 02:00:00:00:00:78");
    router.send("e0", &frame);
    assert_eq!(macs(&mut router, "e2").last(), Some(&0x78));
}

#[test]
fn end_x_shares_flows_among_its_neighbours() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::1 behavior end.x e1 2001:db8:1::2 e2 2001:db8:2::2");
    let all = router.cli("show running-config");
    assert!(all.contains("behavior end.x e1 2001:db8:1::2 e2 2001:db8:2::2\n"), "{all}");
    for port in 0..64 {
        router.send("e0", &packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, port));
    }
    let (one, other) = (router.sent("e1").len(), router.sent("e2").len());
    assert!(one + other == 64 && one > 10 && other > 10, "{one} and {other}");
    router.cli("set interface state e1 down");
    for port in 0..64 {
        router.send("e0", &packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, port));
    }
    assert_eq!(router.sent("e2").len(), 64);
}

/// RFC 8986 §4.15: S08 to S13 as End, then the label stack of the policy.
#[test]
fn end_bm_sends_on_through_the_labels_of_a_policy() {
    let mut router = router();
    assert!(
        router.refused("sr localsid address fc00:0:1::1 behavior end.bm 40001").contains("mpls")
    );
    router.cli("mpls table add 0");
    router.cli("mpls local-label add 16001 non-eos via 2001:db8:1::2 e1 out-labels 101");
    router.cli("sr localsid address fc00:0:1::1 behavior end.bm 40001");
    let frame = packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, 1);
    router.send("e0", &frame);
    assert!(router.sent("e1").is_empty(), "there is no such policy yet");
    router.cli("sr mpls policy add bsid 40001 next 16001 next 102");
    router.send("e0", &frame);
    let sent = router.sent("e1");
    let [sent] = &sent[..] else { panic!("{} frames", sent.len()) };
    assert_eq!(sent[12..14], [0x88, 0x47]);
    let entry = |at: usize| u32::from_be_bytes(sent[at..at + 4].try_into().unwrap());
    assert_eq!([entry(14) >> 12, entry(18) >> 12], [101, 102]);
    assert_eq!([entry(14) >> 8 & 1, entry(18) >> 8 & 1], [0, 1], "the bottom of the stack");
    let inner = Ip6Header::overlay(&sent[22..]).unwrap();
    assert_eq!(inner.hop_limit(), 63);
    assert_eq!(sent[22 + 24..22 + 40], "fc00:0:9::9".parse::<Ipv6Addr>().unwrap().octets());
    assert_eq!(sent[22 + 40 + 3], 0, "segments left");
    assert!(router.cli("show running-config").contains("behavior end.bm 40001\n"));
    router.cli("sr localsid del address fc00:0:1::1");
    router.send("e0", &frame);
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 1, "the route of the address is left");
    assert_eq!(sent[0][12..14], [0x86, 0xdd]);
}

#[test]
fn a_sid_behind_a_sid_of_the_same_router_costs_a_hop() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::1 behavior end");
    router.cli("sr localsid address fc00:0:1::2 behavior end psp");
    router.send("e0", &packet(&["fc00:0:1::1", "fc00:0:1::2", "fc00:0:9::9"], 2, 1));
    let sent = router.sent("e1");
    let header = *Ip6Header::overlay(&sent[0][14..]).unwrap();
    assert_eq!((header.hop_limit(), header.next_header()), (62, IpProtocol::UDP));
    for sid in ["fc00:0:1::1", "fc00:0:1::2"] {
        let line = &router.json(&format!("show sr localsids {sid}"))[0];
        assert_eq!((&line["packets"], &line["bad_packets"]), (&1.into(), &0.into()), "{line}");
    }
}

#[test]
fn counts_begin_at_zero_when_cleared_and_for_a_new_sid() {
    let mut router = router();
    let counts = |router: &mut Router| {
        let line = &router.json("show sr localsids")[0];
        ["packets", "bytes", "bad_packets", "bad_bytes"].map(|key| line[key].as_u64().unwrap())
    };
    for _ in 0..3 {
        router.cli("sr localsid address fc00:0:1::1 behavior end");
        router.send("e0", &packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, 1));
        router.send("e0", &packet(&["fc00:0:1::1"], 0, 1));
        router.send("e0", &packet(&["fc00:0:1::1", "ff02::1"], 1, 1));
        assert_eq!(counts(&mut router), [2, 88 + 72, 1, 88]);
        router.cli("clear sr localsid-counters");
        assert_eq!(counts(&mut router), [0; 4]);
        router.cli("sr localsid del address fc00:0:1::1");
        router.run();
    }
    router.send("e0", &packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, 1));
    assert_eq!(router.sent("e1").len(), 4, "a SID that is gone is an address like any other");
}

#[test]
fn an_interface_that_goes_takes_its_sids_along() {
    let mut router = router();
    router.cli("create loopback interface instance 3");
    router.cli("set interface ip address loop3 2001:db8:33::1/64");
    router.cli("sr localsid address fc00:0:1::1 behavior end.x loop3 2001:db8:33::2");
    router.cli("sr localsid address fc00:0:1::2 behavior end.dx2 loop3");
    router.cli("sr localsid address fc00:0:1::3 behavior end.dx2v 7");
    router.cli("sr vlan-table add 7 vlan 5 loop3");
    router.cli("delete loopback interface intfc loop3");
    let all = router.cli("show running-config");
    let left: Vec<_> = all.lines().filter(|line| line.starts_with("sr ")).collect();
    assert_eq!(left, ["sr localsid address fc00:0:1::3 behavior end.dx2v 7"]);
}

#[test]
fn a_trace_shows_the_segments_with_the_active_one_marked() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::1 behavior end");
    router.cli("trace add test-input 1");
    router.send("e0", &packet(&["fc00:0:1::1", "fc00:0:5::5", "fc00:0:9::9"], 2, 1));
    let trace = router.cli("show trace");
    assert!(trace.contains("segments fc00:0:1::1 [fc00:0:5::5] fc00:0:9::9, 1 left"), "{trace}");
}

/// A router whose e2 is a customer's, in table 10, where SIDs lead to; e0 and e1 are the
/// provider's.
fn edge() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_srv6::register]);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    for line in [
        "ip table add 10",
        "ip6 table add 10",
        "set interface ip table e2 10",
        "set interface ip6 table e2 10",
        "set interface ip address e0 2001:db8::1/64",
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e2 10.2.0.1/24",
        "set interface ip address e2 2001:db8:2::1/64",
        "ip neighbor e0 2001:db8::2 02:00:00:00:00:00 static",
        "ip neighbor e2 10.2.0.2 02:00:00:00:00:02 static",
        "ip neighbor e2 2001:db8:2::2 02:00:00:00:00:02 static",
        // The customer's other site, behind this one: what is told to it goes by the table's route.
        "ip route add 10.1.0.0/24 table 10 via 10.2.0.2 e2",
        "ip route add 2001:db8:a::/48 table 10 via 2001:db8:2::2 e2",
        "sr localsid address fc00:0:1::46 behavior end.dt46 10",
        "sr localsid address fc00:0:1::4 behavior end.dx4 e2 10.2.0.2",
        "sr localsid address fc00:0:1::6 behavior end.dx6 e2 2001:db8:2::2",
    ] {
        router.cli(line);
    }
    router
}

/// A packet of the customer's in a frame to e0, in a packet to a SID.
fn tunnelled(sid: &str, protocol: IpProtocol, inner: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x86, 0xdd];
    frame.resize(54, 0);
    let (from, to) = ("2001:db8::2".parse().unwrap(), sid.parse().unwrap());
    Ip6Header::new(from, to, protocol, 64, inner.len() as u16).write(&mut frame[14..]).unwrap();
    frame.extend(inner);
    frame
}

/// A UDP packet of the customer's other site over IPv4.
fn inner4(to: [u8; 4], ttl: u8, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    let repr =
        quiver_wire::ip4::Repr::new([10, 1, 0, 2].into(), to.into(), IpProtocol::UDP, bytes - 20);
    repr.emit(&mut packet).unwrap();
    // Not to be fragmented.
    packet[6] = 0x40;
    packet[8] = ttl;
    packet[10..12].fill(0);
    let sum = quiver_wire::checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// The same over IPv6.
fn inner6(to: &str, hops: u8, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    let (from, to) = ("2001:db8:a::2".parse().unwrap(), to.parse().unwrap());
    Ip6Header::new(from, to, IpProtocol::UDP, hops, (bytes - 40) as u16)
        .write(&mut packet)
        .unwrap();
    packet
}

#[test]
fn errors_about_inner_packets_are_sent_by_the_table_that_they_belong_to() {
    let mut router = edge();
    router.cli("set interface mtu packet 1300 e2");
    // By the SID: hops that end, packets that do not fit, and no route.
    let cases = [("fc00:0:1::46", true), ("fc00:0:1::4", false), ("fc00:0:1::6", false)];
    for (sid, has_table) in cases {
        let packets4 = [
            inner4([10, 2, 0, 2], 1, 60),
            inner4([10, 2, 0, 2], 9, 1400),
            inner4([10, 7, 0, 7], 9, 60),
        ];
        let to = "2001:db8:2::2";
        let packets6 = [inner6(to, 1, 60), inner6(to, 9, 1400), inner6("2001:db8:7::7", 9, 60)];
        let told = if has_table { 3 } else { 2 };
        if sid != "fc00:0:1::6" {
            for packet in packets4.iter().take(told) {
                router.send("e0", &tunnelled(sid, IpProtocol::IPV4, packet));
                let sent = router.sent("e2");
                assert_eq!(sent.len(), 1, "{sid}");
                assert_eq!(
                    (sent[0][23], &sent[0][26..34]),
                    (1, &[10, 2, 0, 1, 10, 1, 0, 2][..]),
                    "{sid}"
                );
            }
        }
        if sid != "fc00:0:1::4" {
            for packet in packets6.iter().take(told) {
                router.send("e0", &tunnelled(sid, IpProtocol::IPV6, packet));
                let sent = router.sent("e2");
                assert_eq!(sent.len(), 1, "{sid}");
                let from: std::net::Ipv6Addr = "2001:db8:2::1".parse().unwrap();
                assert_eq!((sent[0][20], &sent[0][22..38]), (58, &from.octets()[..]), "{sid}");
            }
        }
        assert!(router.sent("e0").is_empty());
    }
}

#[test]
fn a_vector_of_different_tables_keeps_them_apart() {
    let mut router = edge();
    router.cli("ip table add 20");
    router.cli("set interface ip table e1 20");
    router.cli("set interface ip address e1 10.3.0.1/24");
    router.cli("ip neighbor e1 10.3.0.2 02:00:00:00:00:01 static");
    router.cli("ip route add 10.1.0.0/24 table 20 via 10.3.0.2 e1");
    router.cli("sr localsid address fc00:0:1::20 behavior end.dt4 20");
    for _ in 0..3 {
        for (sid, to) in [("fc00:0:1::46", [10, 2, 7, 7]), ("fc00:0:1::20", [10, 3, 7, 7])] {
            // Neither has a route there.
            router.inject("e0", &tunnelled(sid, IpProtocol::IPV4, &inner4(to, 9, 60)));
        }
    }
    router.run();
    for (port, from) in [("e2", [10, 2, 0, 1]), ("e1", [10, 3, 0, 1])] {
        let sources: Vec<_> =
            router.sent(port).iter().map(|frame| frame[26..30].to_vec()).collect();
        assert_eq!(sources, [from, from, from], "{port}");
    }
}

#[test]
fn packets_with_the_o_flag_are_shown_as_they_came_and_no_more_than_are_bearable() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::1 behavior end psp");
    router.cli("sr localsid address fc00:0:1::2 behavior end.dt6 0");
    let mut marked = packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, 7);
    marked[54 + 5] = 0x20;
    router.send("e0", &packet(&["fc00:0:1::1", "fc00:0:9::9"], 1, 7));
    assert_eq!(router.json("show sr oam").as_array().unwrap().len(), 0);
    router.send("e0", &marked);
    let copy = &router.json("show sr oam")[0];
    assert_eq!((&copy["sid"], &copy["interface"]), (&"fc00:0:1::1".into(), &"e0".into()));
    let words = copy["text"].as_str().unwrap();
    assert!(
        words.ends_with("hop limit 64, 88 bytes, segments [fc00:0:1::1] fc00:0:9::9, 1 left"),
        "{words}"
    );
    assert!(copy["time_s"].as_f64().unwrap() > 1e9);
    assert_eq!(router.sent("e1").len(), 2, "it goes on all the same");
    // A SID that is the last looks, too.
    let mut last = packet(&["fc00:0:9::9", "fc00:0:1::2"], 0, 7);
    last[54 + 5] = 0x20;
    router.send("e0", &last);
    assert_eq!(router.json("show sr oam").as_array().unwrap().len(), 2);
    (0..300).for_each(|_| router.inject("e0", &marked));
    router.run();
    assert_eq!(router.json("show sr oam").as_array().unwrap().len(), 101);
    let count = |why: &str| router.count("sr-localsid", why);
    assert_eq!((count("oam-flag"), count("oam-not-told")), (301, 201));
    router.cli("clear sr oam");
    assert_eq!(router.cli("show sr oam").trim(), "no packets with the O-flag");
}
