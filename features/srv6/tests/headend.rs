//! Policies and steering as operators type them, and what becomes of packets.

use quiver_testkit::Router;

const H6: &str = "2001:db8:a::2";
const TO6: &str = "2001:db8:b::2";

fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_bridge::register,
        quiver_srv6::register,
    ]);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e0 2001:db8:a::1/64",
        "set interface ip address e1 2001:db8:1::1/64",
        "ip neighbor e0 10.0.0.2 02:00:00:00:00:a0",
        "ip neighbor e0 2001:db8:a::2 02:00:00:00:00:a0",
        "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1",
        "ip route add fc00::/16 via 2001:db8:1::2 e1",
        "set sr encaps source addr fc00:0:1::1",
    ] {
        router.cli(line);
    }
    router
}

fn octets(text: &str) -> [u8; 16] {
    text.parse::<std::net::Ipv6Addr>().unwrap().octets()
}

/// A UDP packet over IPv6 in a frame for e0, of so many bytes.
fn ip6(from: &str, to: &str, port: u16, bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xa0, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend(((bytes - 40) as u16).to_be_bytes());
    frame.extend([17, 64]);
    frame.extend(octets(from).iter().chain(&octets(to)));
    frame.extend(
        port.to_be_bytes().iter().chain(&[0, 53]).chain(&((bytes - 40) as u16).to_be_bytes()),
    );
    frame.resize(14 + bytes, 0);
    frame
}

/// The same over IPv4, to 198.51.100.2.
fn ip4(bytes: usize, dont_fragment: bool) -> Vec<u8> {
    let mut header = vec![0x45, 0];
    header.extend((bytes as u16).to_be_bytes());
    header.extend([
        0,
        1,
        if dont_fragment { 0x40 } else { 0 },
        0,
        64,
        17,
        0,
        0,
        10,
        0,
        0,
        2,
        198,
        51,
        100,
        2,
    ]);
    let sum: u32 =
        header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xa0, 8, 0];
    frame.extend(header);
    frame.extend([0, 1, 0, 2]);
    frame.extend(((bytes - 20) as u16).to_be_bytes());
    frame.resize(14 + bytes, 0);
    frame
}

/// Where the outer header of a frame goes.
fn outer_destination(frame: &[u8]) -> String {
    std::net::Ipv6Addr::from_octets(frame[38..54].try_into().unwrap()).to_string()
}

fn sent_to(router: &mut Router, frame: &[u8]) -> Vec<String> {
    router.send("e0", frame);
    router.sent("e1").iter().map(|frame| outer_destination(frame)).collect()
}

#[test]
fn flows_are_shared_by_weight_and_each_keeps_its_list() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 weight 3");
    router.cli("sr policy mod bsid fc00:0:1::b1 add sl next fc00:0:3::1");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    let mut first = 0;
    for port in 0..400 {
        let to = sent_to(&mut router, &ip6(H6, TO6, port, 100));
        assert_eq!(sent_to(&mut router, &ip6(H6, TO6, port, 100)), to);
        first += usize::from(to == ["fc00:0:2::1"]);
    }
    assert!((250..350).contains(&first), "{first} of 400");
    let shown = router.json("show sr policies");
    let packets: Vec<u64> = shown["lists"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["packets"].as_u64().unwrap())
        .collect();
    assert_eq!(packets, [2 * first as u64, 800 - 2 * first as u64]);
    assert_eq!(shown["policies"][0]["packets"], 800);
    router.cli("sr policy mod bsid fc00:0:1::b1 del sl index 0");
    assert_eq!(sent_to(&mut router, &ip6(H6, TO6, 1, 100)), ["fc00:0:3::1"]);
    assert_eq!(router.json("show sr policies")["policies"][0]["packets"], 801);
}

#[test]
fn a_spray_policy_sends_a_copy_to_every_list() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 spray encap");
    router.cli("sr policy mod bsid fc00:0:1::b1 add sl next fc00:0:3::1");
    router.cli("sr policy mod bsid fc00:0:1::b1 add sl next fc00:0:4::1 next fc00:0:5::1");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    router.cli("sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1");
    router.cli("sr steer l2 e2 via bsid fc00:0:1::b1");
    let mut copies = sent_to(&mut router, &ip6(H6, TO6, 1, 100));
    copies.sort();
    assert_eq!(copies, ["fc00:0:2::1", "fc00:0:3::1", "fc00:0:4::1"]);
    assert_eq!(sent_to(&mut router, &ip4(100, false)).len(), 3);
    router.send("e2", &ip4(100, false));
    assert_eq!(router.sent("e1").len(), 3);
    assert_eq!(router.count("sr-pl-spray", "copied"), 2);
}

#[test]
fn packets_that_are_too_long_with_the_segments_are_told_an_mtu_that_leaves_room() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1 encap");
    router.cli("sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 next fc00:0:3::1 insert");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    router.cli("sr steer l3 2001:db8:c::/48 via bsid fc00:0:1::b2");
    router.cli("sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1");
    for (fits, too_big, told) in [
        (ip6(H6, TO6, 1, 1420), ip6(H6, TO6, 1, 1421), 1420u32),
        (ip6(H6, "2001:db8:c::2", 1, 1444), ip6(H6, "2001:db8:c::2", 1, 1445), 1444),
    ] {
        assert_eq!(sent_to(&mut router, &fits).len(), 1);
        assert!(sent_to(&mut router, &too_big).is_empty());
        let error = router.sent("e0").remove(0);
        assert_eq!((error[54], &error[58..62]), (2, &told.to_be_bytes()[..]));
        assert_eq!(error[62..62 + 40], too_big[14..54], "the packet as it came");
    }
    assert_eq!(sent_to(&mut router, &ip4(1420, true)).len(), 1);
    assert!(sent_to(&mut router, &ip4(1421, true)).is_empty());
    let error = router.sent("e0").remove(0);
    assert_eq!((error[34], error[35], &error[40..42]), (3, 4, &1420u16.to_be_bytes()[..]));
}

#[test]
fn what_cannot_be_made_smaller_goes_in_fragments_of_the_outer_packet() {
    let mut router = router();
    router.cli("set interface mtu packet 1300 e1");
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1 encap");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    router.cli("sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1");
    for frame in [ip6(H6, TO6, 1, 1280), ip4(1290, false)] {
        router.send("e0", &frame);
        let sent = router.sent("e1");
        assert_eq!(sent.len(), 2);
        for fragment in &sent {
            assert!(fragment.len() <= 14 + 1300);
            // IPv6, SRH, fragment header.
            assert_eq!((fragment[20], fragment[54], fragment[21]), (43, 44, 64));
        }
    }
    assert!(router.sent("e0").is_empty());
}

#[test]
fn packets_that_die_are_told_so() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    let mut dead = ip6(H6, TO6, 1, 100);
    dead[21] = 1;
    assert!(sent_to(&mut router, &dead).is_empty());
    assert_eq!(router.sent("e0")[0][54], 3);
    assert!(sent_to(&mut router, &ip6("fe80::2", TO6, 1, 100)).is_empty());
    assert_eq!(router.count("sr-pl-rewrite-encaps", "link-local-source"), 1);
    assert_eq!(router.count("sr-pl-rewrite-encaps", "hop-limit"), 1);
}

#[test]
fn the_way_to_the_first_segment_follows_neighbours_and_routes() {
    let mut router = router();
    router.cli("ip route add fc00:0:7::/48 via 2001:db8:1::7 e1");
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:7::1");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    router.send("e0", &ip6(H6, TO6, 1, 100));
    let lookup_key = router.sent("e1");
    assert_eq!(lookup_key[0][54], 135, "a neighbour solicitation");
    router.cli("ip neighbor e1 2001:db8:1::7 02:00:00:00:00:77");
    router.run();
    let held = router.sent("e1");
    assert_eq!(
        (&held[0][..6], held[0][21]),
        (&[2, 0, 0, 0, 0, 0x77][..], 64),
        "what was held goes as it was made"
    );
    assert_eq!(sent_to(&mut router, &ip6(H6, TO6, 1, 100)), ["fc00:0:7::1"]);
    router.cli("ip route del fc00:0:7::/48");
    router.send("e0", &ip6(H6, TO6, 1, 100));
    assert_eq!(router.sent("e1")[0][..6], [2, 0, 0, 0, 0, 0xb1], "by the less specific route");
    router.cli("ip route del fc00::/16");
    assert!(sent_to(&mut router, &ip6(H6, TO6, 1, 100)).is_empty());
    assert!(router.count("ip6-drop", "no-route") > 0);
}

#[test]
fn segments_of_the_router_itself_are_met_without_a_link_between() {
    let mut router = router();
    router.cli("sr localsid address fc00:0:1::e behavior end");
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:1::e next fc00:0:2::1");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    assert_eq!(sent_to(&mut router, &ip6(H6, TO6, 1, 100)), ["fc00:0:2::1"]);
}

#[test]
fn policies_of_another_table_are_looked_up_there() {
    let mut router = router();
    router.cli("ip6 table add 10");
    router.cli("ip route add fc00:0:2::/48 table 10 via 2001:db8:1::2 e1");
    router.cli("ip route add fc00:0:2::/48 via drop");
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 fib-table 10");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    assert_eq!(sent_to(&mut router, &ip6(H6, TO6, 1, 100)), ["fc00:0:2::1"]);
    assert!(router.refused("ip6 table del 10").contains("in use"));
    router.cli("sr steer l3 2001:db8:e::/48 via bsid fc00:0:1::b1 fib-table 10");
    assert!(router.refused("sr policy del bsid fc00:0:1::b1").contains("is steered into"));
}

#[test]
fn the_source_address_and_the_hop_limit_change_for_policies_that_are_there() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 encap");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    router.send("e0", &ip6(H6, TO6, 1, 100));
    router.cli("set sr encaps source addr fc00:0:1::2");
    router.cli("set sr encaps hop-limit 33");
    router.send("e0", &ip6(H6, TO6, 1, 100));
    let sent = router.sent("e1");
    let of = |frame: &[u8]| (frame[21], frame[22..38].to_vec());
    assert_eq!(of(&sent[0]), (64, octets("fc00:0:1::1").to_vec()));
    assert_eq!(of(&sent[1]), (33, octets("fc00:0:1::2").to_vec()));
    assert_eq!(router.json("show sr policies")["policies"][0]["packets"], 2, "counts stay");
    assert_eq!(router.json("show sr encaps source addr")[0]["source_address"], "fc00:0:1::2");
}

#[test]
fn a_source_to_which_no_error_can_come_back_is_told() {
    let mut router = router();
    let says = |text: &str| text.contains("ICMPv6 errors about outer packets do not come back");
    let ours = |router: &mut Router| {
        router.json("show sr encaps source addr")[0]["of_this_router"].clone()
    };
    assert!(says(&router.cli("set sr encaps source addr fc00:0:1::5")));
    assert!(says(&router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 encap")));
    assert!(
        says(&router.cli("show sr policies")) && says(&router.cli("show sr encaps source addr"))
    );
    assert_eq!(ours(&mut router), false);
    // What inserts has no source of its own.
    assert_eq!(router.cli("sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 insert"), "");
    // A neighbour's address and one behind a default route are not the router's.
    router.cli("ip route add ::/0 via 2001:db8:1::2 e1");
    assert!(says(&router.cli("set sr encaps source addr 2001:db8:1::2")));
    assert!(says(&router.cli("set sr encaps source addr 2001:db8:99::2")));
    // It becomes the router's by a SID, and is so without one.
    router.cli("set sr encaps source addr fc00:0:1::5");
    router.cli("sr localsid address fc00:0:1::5 behavior end");
    assert!(
        !says(&router.cli("show sr policies")) && !says(&router.cli("show sr encaps source addr"))
    );
    assert_eq!(ours(&mut router), true);
    router.cli("sr localsid del address fc00:0:1::5");
    assert!(says(&router.cli("show sr policies")));
    assert_eq!(router.cli("set sr encaps source addr 2001:db8:1::1"), "");
    assert_eq!(ours(&mut router), true);
    // Read back, the SID is there before.
    router.cli("sr localsid address fc00:0:1::5 behavior end");
    router.cli("set sr encaps source addr fc00:0:1::5");
    let written = router.cli("show running-config");
    let at =
        |what: &str| written.find(what).unwrap_or_else(|| panic!("{what} is not in\n{written}"));
    assert!(at("sr localsid address fc00:0:1::5") < at("set sr encaps source addr"));
}

#[test]
fn what_is_steered_into_another_policy_changes_over_and_the_answer_says_so() {
    let mut router = router();
    for line in [
        "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1",
        "sr policy add bsid fc00:0:1::b2 next fc00:0:3::1",
    ] {
        router.cli(line);
    }
    for what in ["l3 2001:db8:b::/48", "l3 198.51.100.0/24", "l2 e2"] {
        let steer = |router: &mut Router, bsid| {
            router.cli(&format!("sr steer {what} via bsid fc00:0:1::{bsid}"))
        };
        assert_eq!(steer(&mut router, "b1"), "");
        assert_eq!(steer(&mut router, "b1"), "", "as it was");
        assert_eq!(
            steer(&mut router, "b2"),
            format!("{what} changed over from SR policy fc00:0:1::b1\n")
        );
    }
    assert_eq!(sent_to(&mut router, &ip6(H6, TO6, 1, 100)), ["fc00:0:3::1"]);
    router.cli("sr policy del bsid fc00:0:1::b1");
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 insert");
    let before = router.cli("show running-config");
    for (line, why) in [
        ("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1", "exists already"),
        ("sr policy add bsid ff02::1 next fc00:0:2::1", "cannot be a SID"),
        ("sr policy add bsid fc00:0:1::b2 next ::", "cannot be a SID"),
        ("sr policy add bsid fc00:0:1::b2 next fe80::1", "cannot be a SID"),
        ("sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 fib-table 9", "9"),
        ("sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 encap insert", "leave one of them out"),
        ("set sr encaps source addr ff02::1", "cannot be the source of outer headers"),
        ("sr hmac key del 9", "no HMAC key 9: `show sr hmac`"),
        ("sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 hmac 9", "no HMAC key 9"),
        ("sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 insert hmac 9", "no HMAC key 9"),
        ("sr policy mod bsid fc00:0:1::b9 add sl next fc00:0:2::1", "no SR policy"),
        ("sr policy mod bsid fc00:0:1::b1 del sl index 0", "the last one"),
        ("sr policy mod bsid fc00:0:1::b1 mod sl index 5 weight 2", "no segment list 5"),
        ("sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1", "not for IPv4"),
        ("sr steer l2 e2 via bsid fc00:0:1::b1", "not for frames"),
        ("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b9", "no SR policy"),
        ("sr steer del l3 2001:db8:b::/48", "not steered"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    let many = " next fc00:0:2::1".repeat(13);
    assert!(
        router
            .refused(&format!("sr policy add bsid fc00:0:1::b2{many} encap"))
            .contains("too many")
    );
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn a_binding_sid_and_a_steered_prefix_beside_an_address_are_taken_with_a_warning() {
    let mut router = router();
    let says = "also an address or a subnet of the router itself";
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 encap");
    let said = router.cli("sr policy add bsid 2001:db8:a::1 next fc00:0:2::1");
    assert!(said.contains(says), "{said}");
    let said = router.cli("sr steer l3 2001:db8:a::/64 via bsid fc00:0:1::b1");
    assert!(said.contains(says), "{said}");
}

#[test]
fn what_was_configured_is_written_back() {
    let mut router = router();
    let lines = [
        "sr hmac key 7 algo sha256 secret horse linux",
        "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1 weight 3 encap hmac 7",
        "sr policy mod bsid fc00:0:1::b1 add sl next fc00:0:4::1",
        "sr policy add bsid fc00:0:1::b2 next fc00:0:2::1 insert.red spray",
        "set sr encaps hop-limit propagate",
        "set sr hmac-policy e1 required",
        "sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1",
        "sr steer l2 e2 via bsid fc00:0:1::b1",
    ];
    lines.iter().for_each(|line| {
        router.cli(line);
    });
    let written = router.cli("show running-config secrets").to_string();
    for line in lines {
        assert!(written.lines().any(|written| written == line), "{line}\n{written}");
    }
    let hidden = router.cli("show running-config").to_string();
    assert!(!hidden.contains("horse"), "{hidden}");
    for line in lines.map(|line| line.replace("horse", "<hidden>")) {
        assert!(hidden.lines().any(|written| written == line), "{line}\n{hidden}");
    }
    let steered = router.json("show sr steering-policies");
    assert_eq!(steered[0]["steered"], "l3 198.51.100.0/24");
    router.cli("sr steer del l2 e2 via bsid fc00:0:1::b1");
    router.cli("sr steer del l3 198.51.100.0/24 via bsid fc00:0:1::b1");
    router.cli("sr policy del bsid fc00:0:1::b1");
    router.cli("sr policy del bsid fc00:0:1::b2");
    assert_eq!(router.json("show sr policies")["policies"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_policy_that_changes_for_ever_leaves_no_rows_behind() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 encap");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    for _ in 1..64 {
        router.cli("sr policy mod bsid fc00:0:1::b1 add sl next fc00:0:2::1 next fc00:0:3::1");
    }
    // Each makes 64 rows anew: more than there can be at a time.
    for round in 0..2_200 {
        router.cli(&format!("set sr encaps hop-limit {}", 64 + round % 2));
        router.step();
    }
    router.send("e0", &ip6(H6, TO6, 1, 100));
    assert_eq!(router.sent("e1").len(), 1);
    router.cli("sr steer del l3 2001:db8:b::/48");
    router.cli("sr policy del bsid fc00:0:1::b1");
}

#[test]
fn what_is_inserted_is_signed_for_every_packet_by_its_source() {
    for (form, text) in
        [("insert", ""), ("insert.red", ""), ("insert", " linux"), ("insert.red", " linux")]
    {
        let key = format!("sr hmac key 7 algo sha256 secret horse{text}");
        let mut router = router();
        router.cli(&key);
        router.cli(&format!(
            "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 next fc00:0:3::1 {form} hmac 7"
        ));
        router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
        let mut other = self::router();
        other.cli(&key);
        other.cli("sr localsid address fc00:0:2::1 behavior end");
        other.cli("set sr hmac-policy e0 required");
        for (number, source) in ["2001:db8:a::2", "2001:db8:a::7"].into_iter().enumerate() {
            router.send("e0", &ip6(source, TO6, 1, 100));
            let mut frame = router.sent("e1").remove(0);
            frame[..6].copy_from_slice(&[2, 0xfe, 0, 0, 0, 0]);
            assert_eq!(sent_to(&mut other, &frame), ["fc00:0:3::1"], "{form}{text}");
            assert_eq!(other.count("sr-hmac-input", "hmac-verified"), number as u64 + 1);
            frame[14 + 23] ^= 1; // the source
            assert!(sent_to(&mut other, &frame).is_empty());
            assert_eq!(other.count("sr-hmac-input", "hmac-wrong"), number as u64 + 1);
        }
        assert!(router.refused("sr hmac key del 7").contains("signs with"));
    }
}

/// The source of the outer header of a frame.
fn outer_source(frame: &[u8]) -> String {
    std::net::Ipv6Addr::from_octets(frame[22..38].try_into().unwrap()).to_string()
}

#[test]
fn a_policy_may_have_a_source_of_its_own() {
    let mut router = router();
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 encap");
    router.cli("sr policy add bsid fc00:0:1::b2 next fc00:0:2::2 encap.red encap-src fc00:0:9::7");
    router.cli("sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1");
    router.cli("sr steer l3 2001:db8:c::/48 via bsid fc00:0:1::b2");
    let sources = |router: &mut Router| {
        ["2001:db8:b::2", "2001:db8:c::2"].map(|to| {
            router.send("e0", &ip6(H6, to, 1, 100));
            outer_source(&router.sent("e1").remove(0))
        })
    };
    assert_eq!(sources(&mut router), ["fc00:0:1::1", "fc00:0:9::7"]);
    // Another source for all is none for who has one.
    router.cli("set sr encaps source addr fc00:0:1::2");
    assert_eq!(sources(&mut router), ["fc00:0:1::2", "fc00:0:9::7"]);
    let config = router.cli("show running-config");
    assert!(
        config.contains("bsid fc00:0:1::b2 next fc00:0:2::2 encap.red encap-src fc00:0:9::7\n"),
        "{config}"
    );
    let shown = router.json("show sr policies");
    assert_eq!(shown["policies"][1]["source"], "fc00:0:9::7");
    assert!(
        router
            .cli("show sr policies")
            .contains("fc00:0:9::7 is neither an address nor a local SID")
    );
    let refusal = router
        .refused("sr policy add bsid fc00:0:1::b3 next fc00:0:2::1 insert encap-src fc00:0:9::7");
    assert!(refusal.contains("no outer header"), "{refusal}");
}

#[test]
fn a_router_without_a_common_source_takes_policies_that_have_their_own() {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_srv6::register]);
    router.interface("e1");
    router.refused("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 encap");
    router.cli("sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 encap encap-src fc00:0:9::7");
}

#[test]
fn packets_leave_alike_while_they_are_counted_by_adjacency() {
    let mut router = router();
    for line in [
        "sr policy add bsid fc00:0:9::1 next fc00:0:2::1 encap",
        "sr steer l3 2001:db8:b::/48 via bsid fc00:0:9::1",
        "sr steer l3 198.51.100.0/24 via bsid fc00:0:9::1",
    ] {
        router.cli(line);
    }
    let frames = [ip6(H6, TO6, 7, 100), ip6(H6, TO6, 7, 1400), ip4(100, false)];
    let sent = |router: &mut Router| {
        frames.iter().for_each(|frame| router.send("e0", frame));
        router.sent("e1")
    };
    let plain = sent(&mut router);
    assert_eq!(plain.len(), 3);
    router.cli("adjacency counters enable");
    assert_eq!(sent(&mut router), plain);
    let shown = router.json("show adj");
    let row =
        shown.as_array().unwrap().iter().find(|row| row["next_hop"] == "2001:db8:1::2").unwrap();
    assert_eq!(row["packets"], 3);
}
