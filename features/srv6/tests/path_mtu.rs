//! ICMPv6 errors that come back to the headend: senders of packets inside hear of them, and paths
//! have MTUs.

use std::net::Ipv6Addr;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::Router;
use quiver_wire::icmp6::Message;
use quiver_wire::srh::Srh;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

/// The router of the provider's next hop, who complains.
const THERE: &str = "2001:db8:1::2";
/// The address of the router that is the source of outer headers.
const SOURCE: &str = "2001:db8:1::1";

/// e0 is the customer's, e1 and e2 the provider's.
fn router(more: &[&str]) -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_reassembly::register,
        quiver_bridge::register,
        quiver_srv6::register,
    ]);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    let setup = [
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e0 2001:db8:a::1/64",
        "set interface ip address e1 2001:db8:1::1/64",
        "set interface ip address e2 2001:db8:2::1/64",
        "ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static",
        "ip neighbor e0 2001:db8:a::2 02:00:00:00:00:a0 static",
        "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1 static",
        "ip neighbor e2 2001:db8:2::2 02:00:00:00:00:b2 static",
        "ip route add fc00::/16 via 2001:db8:1::2 e1",
        "ip route add fcbb::/16 via 2001:db8:1::2 e1",
        "set sr encaps source addr 2001:db8:1::1",
    ];
    for line in setup.iter().chain(more) {
        router.cli(line);
    }
    router
}

/// With a policy of two segments, and both families steered into it.
fn headend(policy: &str) -> Router {
    router(&[
        &format!("sr policy add bsid fc00:0:1::b1 {policy}"),
        "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1",
        "sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1",
    ])
}

const TWO: &str = "next fc00:0:2::1 next fc00:0:3::1 encap";

fn frame(ethertype: [u8; 2], packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xa0];
    frame.extend(ethertype);
    frame.extend(packet);
    frame
}

/// A UDP packet of the customer's over IPv6, of so many bytes.
fn six(bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    let (from, to) = ("2001:db8:a::2".parse().unwrap(), "2001:db8:b::2".parse().unwrap());
    Ip6Header::new(from, to, IpProtocol::UDP, 64, (bytes - 40) as u16).write(&mut packet).unwrap();
    packet[40..44].copy_from_slice(&[0x30, 0x39, 0, 9]);
    frame([0x86, 0xdd], &packet)
}

/// The same over IPv4.
fn four(bytes: usize, dont_fragment: bool) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    let repr = quiver_wire::ip4::Repr::new(
        [10, 0, 0, 2].into(),
        [198, 51, 100, 2].into(),
        IpProtocol::UDP,
        bytes - 20,
    );
    repr.emit(&mut packet).unwrap();
    packet[6] = if dont_fragment { 0x40 } else { 0 };
    packet[20..24].copy_from_slice(&[0x30, 0x39, 0, 9]);
    packet[10..12].fill(0);
    let sum = quiver_wire::checksum::of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    frame([8, 0], &packet)
}

/// A frame comes in by the port of this number.
fn send(router: &mut Router, port: u8, frame: &[u8]) {
    let mut frame = frame.to_vec();
    frame[5] = port;
    router.send(&format!("e{port}"), &frame);
}

/// What is sent by e1 for a frame that comes to e0.
fn outer(router: &mut Router, frame: &[u8]) -> Vec<u8> {
    router.send("e0", frame);
    let mut sent = router.sent("e1");
    assert_eq!(sent.len(), 1, "{:?} {:?}", router.events(), router.dropped());
    sent.remove(0).split_off(14)
}

/// An ICMPv6 error of the provider's router comes in by e1, to the source of outer headers.
fn complain(router: &mut Router, (kind, code, rest): (u8, u8, u32), quoted: &[u8]) {
    let (from, to): (Ipv6Addr, Ipv6Addr) = (THERE.parse().unwrap(), SOURCE.parse().unwrap());
    let mut packet = vec![0; 1280];
    let data = &quoted[..quoted.len().min(1232)];
    let message = Message::Other { kind, code, rest: rest.to_be_bytes(), data };
    let length = message.emit(from, to, &mut packet[40..]).unwrap();
    Ip6Header::new(from, to, IpProtocol::ICMP6, 64, length as u16).write(&mut packet).unwrap();
    packet.truncate(40 + length);
    send(router, 1, &frame([0x86, 0xdd], &packet));
}

/// Type, code and the word behind them.
fn too_big(mtu: u32) -> (u8, u8, u32) {
    (2, 0, mtu)
}

/// Type, code and MTU of the ICMP error that the customer heard, and the destination of the packet
/// that it quotes.
fn heard(router: &mut Router) -> Vec<(u8, u8, u16, String)> {
    let icmp = |frame: Vec<u8>| {
        let (at, quoted) = match frame[12] {
            0x86 => (
                54,
                Ip6Header::overlay(&frame[62..]).map(|header| header.destination().to_string()),
            ),
            _ => (
                34,
                Ip4Header::overlay(&frame[42..]).map(|header| header.destination().to_string()),
            ),
        };
        (
            frame[at],
            frame[at + 1],
            u16::from_be_bytes([frame[at + 6], frame[at + 7]]),
            quoted.unwrap(),
        )
    };
    router.sent("e0").into_iter().map(icmp).collect()
}

/// What is known of the path of the first list.
fn path_mtu(router: &mut Router) -> Option<u64> {
    router.json("show sr policies")["lists"][0]["path_mtu_bytes"].as_u64()
}

fn counted(router: &mut Router, reason: &str) -> u64 {
    let found = router.events().into_iter().chain(router.dropped());
    found
        .filter(|(node, why, _)| node == "sr-pl-icmp6-error" && why == reason)
        .map(|(.., count)| count)
        .sum()
}

const FAR: &str = "2001:db8:b::2";

#[test]
fn a_sender_hears_of_a_path_that_takes_less_and_the_headend_knows_it_from_then_on() {
    let mut router = headend(TWO);
    let sent = outer(&mut router, &six(1400));
    complain(&mut router, too_big(1400), &sent);
    assert_eq!(heard(&mut router), [(2, 0, 1320, FAR.into())]);
    assert_eq!((path_mtu(&mut router), counted(&mut router, "relayed")), (Some(1400), 1));
    // From now on nothing too long leaves, whatever its family.
    router.send("e0", &six(1321));
    assert_eq!(heard(&mut router), [(2, 0, 1320, FAR.into())]);
    router.send("e0", &four(1321, true));
    assert_eq!(heard(&mut router), [(3, 4, 1320, "198.51.100.2".into())]);
    assert_eq!(outer(&mut router, &six(1320)).len(), 1400);
    assert_eq!(outer(&mut router, &four(1320, true)).len(), 1400);
}

#[test]
fn an_ipv4_sender_hears_that_fragments_are_needed() {
    let mut router = headend("next fc00:0:3::1 encap.red");
    let sent = outer(&mut router, &four(1460, true));
    complain(&mut router, too_big(1300), &sent);
    assert_eq!(heard(&mut router), [(3, 4, 1260, "198.51.100.2".into())]);
}

#[test]
fn what_cannot_be_made_smaller_goes_in_fragments_that_the_path_takes() {
    let mut router = headend(TWO);
    for packet in [six(1280), four(1400, false)] {
        router.cli("clear sr pmtu");
        // The same is told only so often.
        router.advance(Duration::from_secs(1));
        let sent = outer(&mut router, &packet);
        complain(&mut router, too_big(1300), &sent);
        assert!(heard(&mut router).is_empty(), "its sender can do nothing");
        router.send("e0", &packet);
        let fragments = router.sent("e1");
        let lengths: Vec<usize> = fragments.iter().map(|frame| frame.len() - 14).collect();
        let headers = 40 + 40 + 8;
        assert_eq!(lengths.iter().map(|length| length - headers).sum::<usize>(), packet.len() - 14);
        assert!(lengths.len() == 2 && lengths.iter().all(|length| *length <= 1300), "{lengths:?}");
        // An SRH stands in front of the fragment header, and no hop is counted.
        assert!(fragments.iter().all(|frame| (frame[20], frame[21], frame[54]) == (43, 64, 44)));
    }
}

#[test]
fn what_is_known_of_a_path_is_forgotten_after_ten_minutes_or_when_told_to() {
    let mut router = headend(TWO);
    for round in 0..2 {
        let sent = outer(&mut router, &six(1400));
        complain(&mut router, too_big(1400), &sent);
        assert_eq!((heard(&mut router).len(), path_mtu(&mut router)), (1, Some(1400)));
        if round == 0 {
            router.advance(Duration::from_secs(598));
            assert_eq!(path_mtu(&mut router), Some(1400));
            router.advance(Duration::from_secs(4));
        } else {
            router.cli("clear sr pmtu");
        }
        assert_eq!(path_mtu(&mut router), None);
    }
    assert_eq!(outer(&mut router, &six(1400)).len(), 1480);
}

#[test]
fn what_this_headend_cannot_have_sent_is_not_believed() {
    let mut router = headend(TWO);
    let sent = outer(&mut router, &six(1400));
    let mut other_source = sent.clone();
    other_source[23] ^= 1;
    let mut other_segments = sent.clone();
    other_segments[40 + 8] ^= 1;
    let mut other_inside = sent.clone();
    other_inside[80 + 24] ^= 1;
    let mut later = sent.clone();
    later.splice(80..80, [41, 0, 1, 0, 0, 0, 0, 1]);
    later[40] = 44;
    let cases: [(&[u8], u32, &str); 8] = [
        (&other_source, 1400, "not-ours"),
        (&other_segments, 1400, "not-ours"),
        (&other_inside, 1400, "not-ours"),
        (&sent, 1279, "mtu-not-believed"),
        (&sent, 1480, "mtu-not-believed"),
        (&later, 1400, "truncated"),
        (&sent[..80], 1400, "truncated"),
        (&sent[..30], 1400, "nothing"),
    ];
    for (quoted, mtu, why) in cases {
        let before = counted(&mut router, why);
        complain(&mut router, too_big(mtu), quoted);
        assert!(heard(&mut router).is_empty(), "{why}");
        assert_eq!(counted(&mut router, why), before + u64::from(why != "nothing"), "{why}");
    }
    // The segments alone are known to be a policy's when what is inside has changed.
    router.cli("clear sr pmtu");
    complain(&mut router, too_big(1400), &other_source);
    complain(&mut router, too_big(1400), &other_segments);
    assert_eq!(path_mtu(&mut router), None);
}

#[test]
fn a_path_that_leads_nowhere_is_told_as_unreachable() {
    let mut router = headend(TWO);
    let (unreachable, exceeded) = ((1, 0, 0), (3, 0, 0));
    let sent = outer(&mut router, &six(200));
    complain(&mut router, unreachable, &sent);
    complain(&mut router, exceeded, &sent);
    complain(&mut router, (4, 0, 43), &sent);
    let told = || (1, 3, 0, FAR.into());
    assert_eq!((heard(&mut router), counted(&mut router, "kept")), (vec![told(), told()], 1));
    let sent = outer(&mut router, &four(200, false));
    complain(&mut router, unreachable, &sent);
    assert_eq!(heard(&mut router), [(3, 1, 0, "198.51.100.2".into())]);
    // A traceroute goes by the hops of the packet inside.
    router.cli("set sr encaps hop-limit propagate");
    let sent = outer(&mut router, &six(200));
    complain(&mut router, exceeded, &sent);
    assert_eq!(heard(&mut router), [(3, 0, 0, FAR.into())]);
}

#[test]
fn the_path_of_a_list_is_known_by_what_is_left_of_its_segments() {
    // Routers on the way have taken the SRH off, or moved C-SIDs up.
    let mut router = headend(TWO);
    let mut sent = outer(&mut router, &six(1400));
    sent.drain(40..80);
    sent[4..6].copy_from_slice(&1400u16.to_be_bytes());
    sent[6] = 41;
    sent[24..40].copy_from_slice(&"fc00:0:3::1".parse::<Ipv6Addr>().unwrap().octets());
    complain(&mut router, too_big(1400), &sent);
    assert_eq!(heard(&mut router), [(2, 0, 1360, FAR.into())]);
    assert_eq!(path_mtu(&mut router), Some(1440), "what was taken off is room");

    let mut router = headend("next fcbb:bbbb:1:2:3:: encap.red");
    let mut sent = outer(&mut router, &six(1400));
    sent[24..40].copy_from_slice(&"fcbb:bbbb:3::".parse::<Ipv6Addr>().unwrap().octets());
    complain(&mut router, too_big(1400), &sent);
    assert_eq!(heard(&mut router), [(2, 0, 1360, FAR.into())]);
    assert_eq!(path_mtu(&mut router), Some(1400));
}

#[test]
fn frames_and_packets_to_binding_sids_go_by_what_is_known_of_the_path() {
    let mut router = router(&[
        &format!("sr policy add bsid fc00:0:1::b1 {TWO}"),
        "sr steer l2 e2 via bsid fc00:0:1::b1",
    ]);
    let frame = six(1300);
    router.send("e2", &frame);
    let sent = router.sent("e1").remove(0).split_off(14);
    complain(&mut router, too_big(1390), &sent);
    assert_eq!(path_mtu(&mut router), Some(1390));
    router.send("e2", &frame);
    assert!(router.sent("e1").is_empty());
    let died = router.dropped();
    assert!(
        died.iter()
            .any(|(node, why, _)| node == "sr-pl-rewrite-encaps-l2" && why == "frame-too-big"),
        "{died:?}"
    );
}

#[test]
fn senders_in_a_table_of_their_own_are_told_there() {
    let mut router = router(&[
        "ip6 table add 10",
        "set interface ip address del e2 2001:db8:2::1/64",
        "set interface ip6 table e2 10",
        "set interface ip address e2 2001:db8:2::1/64",
        "ip neighbor e2 2001:db8:2::2 02:00:00:00:00:b2 static",
        "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1 encap",
        "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1 fib-table 10",
        "ip route add 2001:db8:a::/48 table 10 via 2001:db8:2::2 e2",
    ]);
    send(&mut router, 2, &six(1400));
    let sent = router.sent("e1").remove(0).split_off(14);
    complain(&mut router, too_big(1400), &sent);
    assert!(router.sent("e0").is_empty());
    assert_eq!(router.sent("e2").len(), 1);
    // Inside of the router, behind its own first segment, the next one leads nowhere.
    for (behavior, kind) in [("encap", (1, 3)), ("insert", (1, 0))] {
        for line in [
            "sr localsid address fc00:0:1::e behavior end",
            &format!("sr policy add bsid fc00:0:1::b2 next fc00:0:1::e next fd00::1 {behavior}"),
            "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b2 fib-table 10",
        ] {
            router.cli(line);
        }
        send(&mut router, 2, &six(200));
        assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty(), "{behavior}");
        let heard: Vec<_> = router.sent("e2").iter().map(|frame| (frame[54], frame[55])).collect();
        assert_eq!(heard, [kind], "{behavior}");
        for line in [
            "sr steer del l3 2001:db8:b::/48 via bsid fc00:0:1::b2 fib-table 10",
            "sr policy del bsid fc00:0:1::b2",
            "sr localsid del address fc00:0:1::e",
        ] {
            router.cli(line);
        }
    }
}

/// Policies whose first segments are the router's own, and how long what leaves may be with an MTU
/// of 1,400.
const INSIDE: [(&str, &str, usize); 9] = [
    ("end", "next fc00:0:1::e next fc00:0:3::1 encap", 1400),
    ("end", "next fc00:0:1::e next fc00:0:3::1 encap.red", 1400),
    // The last segment but one takes the SRH off.
    ("end psp", "next fc00:0:1::e next fc00:0:3::1 encap", 1400 + 40),
    ("end.x e1 2001:db8:1::2", "next fc00:0:1::e next fc00:0:3::1 encap", 1400),
    ("end.t 10", "next fc00:0:1::e next fc00:0:3::1 encap", 1400),
    ("end", "next fc00:0:1::e next fc00:0:1::e next fc00:0:3::1 encap", 1400),
    ("end", "next fc00:0:1::e next fc00:0:3::1 insert", 1400),
    ("end.x e1 2001:db8:1::2", "next fc00:0:1::e insert.red", 1400),
    ("end.x e1 2001:db8:1::2 psp", "next fc00:0:1::e insert", 1400 + 40),
];

#[test]
fn a_first_segment_of_the_router_itself_is_no_black_hole() {
    for (behavior, policy, total) in INSIDE {
        let mut router = router(&[
            "ip6 table add 10",
            "ip route add ::/0 table 10 via ip6-lookup-in-table 0",
            &format!("sr localsid address fc00:0:1::e behavior {behavior}"),
            &format!("sr policy add bsid fc00:0:1::b1 {policy}"),
            "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1",
            "ip route add 2001:db8:b::/48 via 2001:db8:1::2 e1",
            "set interface mtu packet 1400 e1",
        ]);
        let header =
            router.json("show sr policies")["lists"][0]["segments"].as_array().unwrap().len();
        let is_insert = policy.contains("insert");
        let entries = header + usize::from(is_insert) - usize::from(policy.contains(".red"));
        let added = if is_insert { 0 } else { 40 } + 8 + 16 * entries;
        let room = total - added;
        router.send("e0", &six(1500));
        assert_eq!(
            heard(&mut router),
            [(2, 0, room.max(1280) as u16, FAR.into())],
            "{behavior} {policy}"
        );
        router.send("e0", &six(room));
        let sent = router.sent("e1");
        assert!(
            sent.len() == 1 && sent[0].len() - 14 <= 1400,
            "{behavior} {policy}: {:?}",
            router.dropped()
        );
        assert!(heard(&mut router).is_empty());
    }
}

#[test]
fn what_goes_on_inside_and_cannot_be_made_smaller_goes_in_fragments() {
    let mut router = router(&[
        "sr localsid address fc00:0:1::e behavior end",
        "sr policy add bsid fc00:0:1::b1 next fc00:0:1::e next fc00:0:3::1 encap",
        "sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1",
        "set interface mtu packet 1300 e1",
    ]);
    router.send("e0", &four(1400, false));
    let sent = router.sent("e1");
    assert!(
        sent.len() == 2 && sent.iter().all(|frame| frame.len() - 14 <= 1300),
        "{:?}",
        router.dropped()
    );
    for frame in &sent {
        let (srh, _) = Srh::parse(&frame[54..]).unwrap();
        assert_eq!(
            (srh.header().segments_left(), srh.header().next_header()),
            (0, IpProtocol::FRAGMENT)
        );
    }
}

#[test]
fn an_error_that_the_router_itself_sends_to_its_headend_is_told_to_the_sender() {
    // Behind a binding SID of the router itself nobody knows how long the headers will be.
    let mut router = router(&[
        "sr policy add bsid fc00:0:1::b2 next fc00:0:4::1 next fc00:0:5::1 encap",
        "sr policy add bsid fc00:0:1::b1 next fc00:0:1::b2 next fc00:0:3::1 encap",
        "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1",
        "sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1",
        // The customer's interface speaks no IPv6 of the provider's.
        "set interface ip address del e0 2001:db8:a::1/64",
    ]);
    router.send("e0", &four(1400, true));
    assert_eq!(heard(&mut router), [(3, 4, 1340, "198.51.100.2".into())]);
    assert_eq!(outer(&mut router, &four(1340, true)).len(), 1500);
}

#[test]
fn each_list_has_a_path_of_its_own_and_copies_are_known_by_it() {
    for spray in ["", " spray"] {
        let mut router = router(&[
            &format!(
                "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1{spray} encap"
            ),
            "sr policy mod bsid fc00:0:1::b1 add sl next fc00:0:4::1 next fc00:0:3::1",
            "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1",
        ]);
        router.send("e0", &six(1400));
        let sent = router.sent("e1").pop().unwrap().split_off(14);
        complain(&mut router, too_big(1400), &sent);
        assert_eq!(heard(&mut router), [(2, 0, 1320, FAR.into())], "{spray}");
        let lists = &router.json("show sr policies")["lists"];
        let first = sent[24..40] == "fc00:0:2::1".parse::<Ipv6Addr>().unwrap().octets();
        let known = [0, 1].map(|list| lists[list]["path_mtu_bytes"].as_u64());
        let (this, other) = if first { (known[0], known[1]) } else { (known[1], known[0]) };
        assert_eq!((this, other), (Some(1400), None), "{spray}");
        // What was known of a list is gone with it.
        router.cli("set sr encaps hop-limit 9");
        assert_eq!(
            router.json("show sr policies")["lists"][usize::from(!first)]["path_mtu_bytes"]
                .as_u64(),
            None
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_is_quoted_is_told_or_counted(
        edits in prop::collection::vec((0usize..200, any::<u8>()), 0..4),
        cut in prop::option::of(0usize..300),
        kind in prop_oneof![Just(2u8), 1u8..5],
        mtu in prop_oneof![Just(1400u32), any::<u32>()],
        six_inside: bool,
    ) {
        let mut router = headend(TWO);
        let mut quoted = outer(&mut router, &if six_inside { six(1400) } else { four(1400, true) });
        for (place, value) in edits {
            quoted[place] = value;
        }
        quoted.truncate(cut.unwrap_or(quoted.len()));
        complain(&mut router, (kind, 0, mtu), &quoted);
        prop_assert!(router.sent("e0").len() <= 1);
        // An error to a neighbour that nobody is waits until it has been asked for in vain (RFC
        // 4861 §7.2.2).
        (0..10).for_each(|_| router.advance(Duration::from_secs(1)));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
