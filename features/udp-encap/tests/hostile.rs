//! Golden frames with bytes changed, cut or longer: each is sent or counted, and no buffer is lost.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::configuration::running;
use quiver_testkit::{Register, Router, hostile};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_udp_encap::register,
];
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e1 192.0.2.1/24",
        "set interface ip address e1 2001:db8:1::1/64",
        "ip neighbor e0 10.0.0.2 02:00:00:00:00:0a",
        "ip neighbor e1 192.0.2.2 02:00:00:00:00:b1",
        "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1",
        "ip route add 203.0.113.0/24 via 192.0.2.2 e1",
        "ip route add 2001:db8:f::/48 via 2001:db8:1::2 e1",
        "udp encap add 7 192.0.2.1 203.0.113.2 4444 4445",
        "udp encap add 8 2001:db8:1::1 2001:db8:f::2 4444 4446 src-port-is-entropy",
        "ip route add 198.51.100.0/24 via udp_encap7",
        "ip route add 2001:db8:b::/48 via udp_encap8",
        "udp decap add ip4 4445 ip4",
        "udp decap add ip4 4446 ip6",
        "udp decap add ip6 4446 ip6",
    ] {
        router.cli(line);
    }
    router
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_loses_no_buffer(frames in hostile::frames(Path::new(GOLDEN), 2, 40)) {
        let mut router = router();
        for (port, frame) in frames {
            router.inject(&format!("e{port}"), &frame);
        }
        router.run();
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut router = router();
    for (line, why) in [
        ("udp encap add 7 192.0.2.1 203.0.113.9 1 2", "udp_encap7 exists already"),
        ("udp encap add 9 192.0.2.1 2001:db8::1 1 2", "not both IPv4 or both IPv6"),
        ("udp encap add 9 192.0.2.1 203.0.113.9 1 2 table-id 7", "no IPv4 table 7"),
        ("udp encap del 9", "no UDP encapsulation 9"),
        ("udp decap del ip4 4445 ip6", "ip6 is not expected"),
        ("udp decap add ip4 4447 mpls", "MPLS is not built in"),
    ] {
        let before = running(&mut router);
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
}

#[test]
fn a_packet_that_goes_round_through_its_own_encapsulation_ends() {
    let mut router = router();
    for line in [
        "udp encap add 9 192.0.2.1 192.0.2.1 4444 4445 src-port-is-entropy",
        "ip route add 198.18.0.0/15 via udp_encap9",
    ] {
        router.cli(line);
    }
    let header = [0x45, 0, 0, 20, 0, 0, 0, 0, 255, 253, 0, 0, 10, 0, 0, 2, 198, 18, 0, 1];
    let sum: u32 = header.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    let link = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x0a, 8, 0];
    let mut frame = [&link[..], &header].concat();
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let dropped = |router: &Router| router.dropped().iter().map(|(.., count)| count).sum::<u64>();
    let before = dropped(&router);
    router.send("e0", &frame);
    router.run();
    assert!(router.sent("e1").is_empty());
    assert_eq!(dropped(&router) - before, 1, "{:?}", router.dropped());
    assert_eq!(router.buffers_in_use(), 0);
}
