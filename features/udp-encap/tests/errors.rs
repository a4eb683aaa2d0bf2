//! ICMP errors about datagrams of an encapsulation: the path's MTU is learned (RFC 1191), and the
//! senders of packets inside are notified (RFC 2003 §4, RFC 2473 §8).

use std::net::Ipv4Addr;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Register, Router};
use quiver_wire::checksum;

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_udp_encap::register,
];
/// The router's address in the underlay, and a router there that sends errors.
const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const COMPLAINS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const ICMP: u8 = 1;
const LINK: usize = 14;
/// Fragmentation needed (RFC 1191 §4), and host unreachable (RFC 792).
const TOO_BIG: (u8, u8) = (3, 4);
const UNREACHABLE: (u8, u8) = (3, 1);
const NODE: &str = "udp4-encap-icmp-error";

/// Encapsulations with a source port of their own, and with one for each flow.
fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e1 192.0.2.1/24",
        "ip neighbor e0 10.0.0.2 02:00:00:00:00:0a static",
        "ip neighbor e1 192.0.2.2 02:00:00:00:00:b1 static",
        "ip route add 203.0.113.0/24 via 192.0.2.2 e1",
        "udp encap add 7 192.0.2.1 203.0.113.2 4444 4445",
        "udp encap add 8 192.0.2.1 203.0.113.2 4444 4446 src-port-is-entropy",
        "ip route add 198.51.100.0/24 via udp_encap7",
        "ip route add 198.18.0.0/24 via udp_encap8",
    ] {
        router.cli(line);
    }
    router
}

/// A packet of the host that must not be fragmented, of so many bytes.
fn packet(to: [u8; 4], bytes: usize) -> Vec<u8> {
    let [high, low] = (bytes as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, high, low, 0, 7, 0x40, 0, 64, 253, 0, 0, 10, 0, 0, 2];
    packet.extend(to);
    let sum = checksum::of(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.resize(bytes, 0x5a);
    packet
}

fn send(router: &mut Router, to: [u8; 4], bytes: usize) -> Option<Vec<u8>> {
    let link = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x0a, 8, 0];
    router.send("e0", &[&link[..], &packet(to, bytes)].concat());
    Some(router.sent("e1").pop()?.split_off(LINK))
}

const FIXED: [u8; 4] = [198, 51, 100, 2];
const ENTROPY: [u8; 4] = [198, 18, 0, 2];

fn error((kind, code): (u8, u8), mtu_bytes: u16, quoted: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, 0];
    message.extend(mtu_bytes.to_be_bytes());
    message.extend(quoted);
    let sum = checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    frames::ip4(1, (COMPLAINS, OURS), ICMP, Fragment::default(), &message)
}

/// The ICMP error that the host gets: type, code, MTU, and the destination it quotes.
fn heard(router: &mut Router) -> Option<(u8, u8, u16, [u8; 4])> {
    let frame = router.sent("e0").pop()?;
    assert_eq!(frame[LINK + 16..LINK + 20], [10, 0, 0, 2]);
    let icmp = &frame[LINK + 20..];
    let mtu_bytes = u16::from_be_bytes([icmp[6], icmp[7]]);
    Some((icmp[0], icmp[1], mtu_bytes, icmp[24..28].try_into().unwrap()))
}

#[test]
fn the_mtu_of_the_path_is_learned_as_senders_hear() {
    for to in [FIXED, ENTROPY] {
        let mut router = router();
        let outer = send(&mut router, to, 1400).expect("it fits the first link");
        assert_eq!(outer.len(), 1428);
        router.send("e1", &error(TOO_BIG, 1300, &outer[..548]));
        assert_eq!(heard(&mut router), Some((3, 4, 1272, to)));
        assert_eq!((router.count(NODE, "relayed"), router.count(NODE, "path-mtu")), (1, 1));
        let place = if to == FIXED { 0 } else { 1 };
        assert_eq!(router.json("show udp encap")[place]["path_mtu_bytes"], 1300);
        // Now the router knows it by itself.
        assert_eq!(send(&mut router, to, 1400), None);
        assert_eq!(heard(&mut router), Some((3, 4, 1272, to)));
        assert!(send(&mut router, to, 1272).is_some());
    }
}

#[test]
fn a_quote_of_the_udp_header_alone_teaches_the_mtu() {
    let mut router = router();
    let outer = send(&mut router, FIXED, 1400).expect("it fits the first link");
    router.send("e1", &error(TOO_BIG, 1300, &outer[..28]));
    assert_eq!(heard(&mut router), None);
    assert_eq!((router.count(NODE, "kept"), router.count(NODE, "path-mtu")), (1, 1));
    assert_eq!(send(&mut router, FIXED, 1400), None);
    assert_eq!(heard(&mut router), Some((3, 4, 1272, FIXED)));
}

#[test]
fn senders_hear_that_the_other_end_is_unreachable() {
    let mut router = router();
    let outer = send(&mut router, ENTROPY, 100).expect("sent");
    router.send("e1", &error(UNREACHABLE, 0, &outer));
    assert_eq!(heard(&mut router), Some((3, 1, 0, ENTROPY)));
    // Not those of an encapsulation that is gone.
    router.cli("ip route del 198.18.0.0/24");
    router.cli("udp encap del 8");
    router.send("e1", &error(UNREACHABLE, 0, &outer));
    assert_eq!(heard(&mut router), None);
    assert_eq!(router.count(NODE, "relayed"), 1);
}

#[test]
fn errors_about_datagrams_of_others_change_nothing() {
    let mut router = router();
    let outer = send(&mut router, FIXED, 1400).expect("sent");
    let changed = |place: usize, byte: u8| {
        let mut quoted = outer[..548].to_vec();
        quoted[place] = byte;
        error(TOO_BIG, 1300, &quoted)
    };
    // The source and the destination, both ports, and a later fragment.
    for (place, byte) in [(15, 9), (19, 9), (21, 9), (23, 9), (7, 0x80)] {
        router.send("e1", &changed(place, byte));
        assert_eq!(heard(&mut router), None, "{place}");
    }
    assert_eq!(router.count(NODE, "path-mtu"), 0);
    // RFC 1191 §3: no link takes less than 68 bytes. And it cannot be what the datagram had.
    for mtu_bytes in [67, 1428, 9000] {
        router.send("e1", &error(TOO_BIG, mtu_bytes, &outer[..548]));
    }
    assert_eq!(router.count(NODE, "mtu-not-believed"), 3);
    assert!(send(&mut router, FIXED, 1400).is_some());
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn the_first_of_two_encapsulations_that_send_the_same_hears_errors() {
    let mut router = router();
    router.cli("udp encap add 9 192.0.2.1 203.0.113.2 4444 4445");
    let outer = send(&mut router, FIXED, 100).expect("sent");
    router.send("e1", &error(UNREACHABLE, 0, &outer));
    assert_eq!(heard(&mut router), Some((3, 1, 0, FIXED)));
    router.cli("udp encap del 9");
    router.send("e1", &error(UNREACHABLE, 0, &outer));
    assert_eq!(heard(&mut router), Some((3, 1, 0, FIXED)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_an_error_quotes_loses_no_buffer(
        kind in prop::sample::select(vec![UNREACHABLE, TOO_BIG, (11, 0), (12, 0)]),
        mtu_bytes in any::<u16>(),
        keep in 0usize..128,
        changes in prop::collection::vec((0usize..128, any::<u8>()), 0..6),
    ) {
        let mut router = router();
        let mut quoted = send(&mut router, FIXED, 100).expect("sent");
        for (place, byte) in changes {
            quoted[place] = byte;
        }
        quoted.truncate(keep);
        router.send("e1", &error(kind, mtu_bytes, &quoted));
        // One may wait for the answer of a neighbour.
        router.advance(Duration::from_secs(120));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
