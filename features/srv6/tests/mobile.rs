//! What operators type about the mobile user plane, and bytes that mean nothing.

use proptest::prelude::*;
use quiver_testkit::Router;

fn router() -> Router {
    let mut router =
        Router::new(&[quiver_ethernet::register, quiver_ip::register, quiver_srv6::register]);
    for (number, name) in ["e0", "e1"].into_iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
        router.cli(&format!("set interface ip address {name} 10.0.{number}.1/24"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{number}::2 02:00:00:00:00:0{number}"));
        router.cli(&format!("ip neighbor {name} 10.0.{number}.2 02:00:00:00:00:0{number}"));
    }
    router.cli("ip route add fc00::/16 via 2001:db8:1::2");
    router.cli("ip route add 0.0.0.0/0 via 10.0.1.2 e1");
    router
}

fn configured(router: &mut Router) -> Vec<String> {
    let all = router.cli("show running-config");
    all.lines().filter(|line| line.starts_with("sr ")).map(str::to_owned).collect()
}

const LINES: [&str; 10] = [
    "sr localsid address fc01:1::/32 behavior end.m.gtp4.e v4src_position 64",
    "sr localsid address fc02::/56 behavior end.m.gtp4.e v4src_addr 10.9.9.9 fib-table 10 uplink",
    "sr localsid address fc03::/88 behavior end.m.gtp6.e",
    "sr localsid address fc04::/64 behavior end.m.gtp6.e source fc00::9 fib-table 10 uplink \
     zero-checksum",
    "sr localsid address fc05::/64 behavior end.m.gtp6.d fc00:2::/48 nhtype ipv6",
    "sr localsid address fc06::/64 behavior end.m.gtp6.d.di fc00:2::/48 source fc00::9 fib-table \
     10 next fc00:5::5",
    "sr localsid address fc07::1 behavior end.map fc00:7::7 fib-table 10",
    "sr localsid address fc08::/48 behavior end.map fc00:8::/48",
    "sr policy add bsid fc00:1::d1 behavior h.m.gtp4.d fc00:2::/32 v6src_prefix fc00:1::/64 nhtype \
     ipv4 drop-in",
    "sr steer l3 192.0.2.0/24 via bsid fc00:1::d1",
];

#[test]
fn gateways_are_written_back_as_they_were_given() {
    let mut router = router();
    for table in ["ip table add 10", "ip6 table add 10"] {
        router.cli(table);
    }
    let lines = LINES.map(|line| line.replace("fc01:1::/32", "fc01::/32"));
    for line in &lines {
        router.cli(line);
    }
    let (mut before, mut expected) = (configured(&mut router), lines.to_vec());
    before.sort();
    expected.sort();
    assert_eq!(before, expected);
    let shown = router.cli("show sr policies fc00:1::d1");
    assert!(shown.contains("h.m.gtp4.d fc00:2::/32"), "{shown}");
    assert!(router.refused("sr policy del bsid fc00:1::d1").contains("is steered into"));
    assert!(router.refused("ip6 table del 10").contains("a local SID"));
    router.cli("sr steer del l3 192.0.2.0/24 via bsid fc00:1::d1");
    router.cli("sr policy del bsid fc00:1::d1");
    for line in lines.iter().filter(|line| line.starts_with("sr localsid")) {
        let place = line.split(" behavior").next().unwrap().replace("localsid", "localsid del");
        router.cli(&place);
    }
    assert!(configured(&mut router).is_empty());
    for table in ["ip table del 10", "ip6 table del 10"] {
        router.cli(table);
    }
}

#[test]
fn a_gateway_that_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli(
        "sr policy add bsid fc00:1::d1 behavior t.m.gtp4.d fc00:2::/32 v6src_prefix fc00:1::/64",
    );
    let before = configured(&mut router);
    let next = " next fc00:5::5".repeat(10);
    for (line, says) in [
        ("sr localsid address fc01::/57 behavior end.m.gtp4.e", "leaves no room"),
        (
            "sr localsid address fc01::/32 behavior end.m.gtp4.e v4src_position 97",
            "no room for an IPv4 address",
        ),
        ("sr localsid address fc01::/32 behavior end.m.gtp4.e fib-table 77", "no IPv4 table 77"),
        ("sr localsid address fc01::/89 behavior end.m.gtp6.e", "leaves no room"),
        ("sr localsid address fc01::/64 behavior end.m.gtp6.d fc00:2::/89", "leaves no room"),
        (
            "sr localsid address fc01::/64 behavior end.m.gtp6.d fc00:2::1/64",
            "bits set behind its length",
        ),
        (
            "sr localsid address fc01::/64 behavior end.m.gtp6.d fc00:2::/64 next ff02::1",
            "cannot be a segment",
        ),
        (
            &format!("sr localsid address fc01::/64 behavior end.m.gtp6.d fc00:2::/64{next}"),
            "too many",
        ),
        (
            "sr localsid address fc01::/64 behavior end.m.gtp6.d fc00:2::/64 fib-table 77",
            "no IPv6 table 77",
        ),
        ("sr localsid address fc01::1 behavior end.map fc00::1 fib-table 77", "no IPv6 table 77"),
        (
            "sr policy add bsid fc00:1::d1 behavior t.m.gtp4.d fc00::/32 v6src_prefix fc00:1::/64",
            "exists already",
        ),
        (
            "sr policy add bsid fc00:1::d2 behavior t.m.gtp4.d fc00::/57 v6src_prefix fc00:1::/64",
            "leaves no room",
        ),
        (
            "sr policy add bsid fc00:1::d2 behavior t.m.gtp4.d fc00::/32 v6src_prefix fc00:1::/97",
            "leaves no room",
        ),
        (
            "sr policy add bsid ff02::1 behavior t.m.gtp4.d fc00::/32 v6src_prefix fc00:1::/64",
            "cannot be a SID",
        ),
        ("sr steer l3 2001:db8:b::/48 via bsid fc00:1::d1", "GTP-U over IPv4"),
    ] {
        let refusal = router.refused(line);
        assert!(refusal.contains(says), "{line}: {refusal}");
    }
    assert_eq!(configured(&mut router), before);
}

/// A frame with what is given behind an IPv6 or IPv4 header that fits it.
fn frame(to: &str, protocol: u8, behind: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0];
    let [high, low] = (behind.len() as u16).to_be_bytes();
    match to.parse::<std::net::IpAddr>().unwrap() {
        std::net::IpAddr::V6(to) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, high, low, protocol, 64]);
            frame.extend("2001:db8::2".parse::<std::net::Ipv6Addr>().unwrap().octets());
            frame.extend(to.octets());
        }
        std::net::IpAddr::V4(to) => {
            let from = std::net::Ipv4Addr::new(10, 0, 0, 2);
            let header = quiver_wire::Ip4Header::new(
                from,
                to,
                quiver_wire::IpProtocol(protocol),
                64,
                behind.len(),
            );
            frame.extend([8, 0]);
            frame.extend(quiver_wire::IntoBytes::as_bytes(&header.unwrap()));
        }
    }
    frame.extend(behind);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_bytes_panic_and_no_buffer_is_lost(
        packets in prop::collection::vec(
            (0usize..5, any::<u8>(), prop::collection::vec(any::<u8>(), 0..120)), 1..60
        ),
    ) {
        let mut router = router();
        for line in [
            "sr localsid address fc01::/32 behavior end.m.gtp4.e",
            "sr localsid address fc03::/64 behavior end.m.gtp6.e",
            "sr localsid address fc05::/64 behavior end.m.gtp6.d fc00:2::/48",
            "sr localsid address fc06::/64 behavior end.m.gtp6.d.di fc00:2::/48 next fc00:5::5",
            "sr policy add bsid fc00:1::d1 behavior t.m.gtp4.d fc00:2::/32 v6src_prefix \
             fc00:1::/64",
            "sr steer l3 192.0.2.0/24 via bsid fc00:1::d1",
        ] {
            router.cli(line);
        }
        let places = [
            "fc01:c000:201:24:102:304::",
            "fc03::2401:203:400:0",
            "fc05::1",
            "fc06::1",
            "192.0.2.1",
        ];
        for (place, shape, bytes) in packets {
            // Bytes alone, UDP to GTP-U with them, a GTP-U header with them, or segments.
            let behind = match shape % 4 {
                0 => (shape, bytes),
                1 => {
                    (17, [&[0, 1, 8, 0x68, 0, (8 + bytes.len()) as u8, 0, 0], &bytes[..]].concat())
                }
                2 => {
                    let length = bytes.len() as u8;
                    let head = [
                        0,
                        1,
                        8,
                        0x68,
                        0,
                        16 + length,
                        0,
                        0,
                        0x30 | shape >> 5,
                        255,
                        0,
                        length,
                        1,
                        2,
                        3,
                        4,
                    ];
                    (17, [&head[..], &bytes].concat())
                }
                _ => (
                    43,
                    [&[shape, 2, 4, shape & 3, 0, 0, 0, shape & 15], &[0xfc; 16][..], &bytes]
                        .concat(),
                ),
            };
            router.send("e0", &frame(places[place], behind.0, &behind.1));
        }
    }
}
