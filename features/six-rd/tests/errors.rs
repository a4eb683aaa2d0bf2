//! ICMP errors of the IPv4 network about packets of the tunnel: RFC 4213 §3.4, "the IPv4 layer may
//! be able to generate an ICMPv6 message" for the sender of the packet inside.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::frames::{self, Fragment};
use quiver_testkit::{Register, Router};
use quiver_wire::{Header, Ip6Header, IpProtocol, checksum};

const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_ipip::register,
    quiver_six_rd::register,
];
/// The router's address in the IPv4 network, and a router there that sends errors.
const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const COMPLAINS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// A host behind the router, and one behind the edge 10.9.9.9.
const HOST: &str = "2001:db9:a::2";
const BEHIND: &str = "2001:db8:909:900::1";
/// The protocol number of ICMP, and the place of an IPv4 header in a frame.
const ICMP: u8 = 1;
const LINK: usize = 14;
/// ICMPv6 types (RFC 4443 §2.1).
const UNREACHABLE: u8 = 1;
const TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const NODE: &str = "6rd-icmp-error";

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e0 2001:db9:a::1/64",
        "set interface ip address e1 10.0.0.1/24",
        "ip neighbor e0 2001:db9:a::2 02:00:00:00:00:a0 static",
        "ip neighbor e1 10.0.0.2 02:00:00:00:00:b1 static",
        "ip route add 10.0.0.0/8 via 10.0.0.2 e1",
        "create 6rd tunnel ip6-pfx 2001:db8::/32 ip4-pfx 10.0.0.0/8 ip4-src 10.0.0.1 sec",
        "set interface state sixrd0 up",
        "ip route add 2001:db8::/32 via sixrd0",
    ] {
        router.cli(line);
    }
    router
}

/// What leaves for a packet of the host of so many bytes, from the IPv4 header on.
fn outer(router: &mut Router, bytes: usize) -> Vec<u8> {
    let (from, to): (Ipv6Addr, Ipv6Addr) = (HOST.parse().unwrap(), BEHIND.parse().unwrap());
    let mut packet = vec![0; bytes];
    Ip6Header::new(from, to, IpProtocol::UDP, 64, (bytes - Ip6Header::LEN) as u16)
        .write(&mut packet)
        .unwrap();
    let link = [2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xa0, 0x86, 0xdd];
    router.send("e0", &[&link[..], &packet].concat());
    let mut sent = router.sent("e1");
    assert_eq!(sent.len(), 1, "{:?}", router.dropped());
    sent.remove(0).split_off(LINK)
}

/// An ICMP error that quotes so much of a packet.
fn error((kind, code): (u8, u8), mtu_bytes: u16, quoted: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0, 0, 0];
    message.extend(mtu_bytes.to_be_bytes());
    message.extend(quoted);
    let sum = checksum::of(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    frames::ip4(1, (COMPLAINS, OURS), ICMP, Fragment::default(), &message)
}

/// The ICMPv6 error that the host gets: type, code, the 32 bits behind, and the packet it quotes.
fn heard(router: &mut Router) -> Option<(u8, u8, u32, Vec<u8>)> {
    let frame = router.sent("e0").pop()?;
    let header = Ip6Header::overlay(&frame[LINK..]).expect("IPv6");
    assert_eq!(header.next_header(), IpProtocol::ICMP6);
    assert_eq!(header.destination(), HOST.parse::<Ipv6Addr>().unwrap());
    let icmp = &frame[LINK + Ip6Header::LEN..];
    let rest = u32::from_be_bytes(icmp[4..8].try_into().unwrap());
    Some((icmp[0], icmp[1], rest, icmp[8..].to_vec()))
}

/// Put another header checksum into an outer packet that was changed.
fn mend(outer: &mut [u8]) {
    outer[10..12].fill(0);
    let sum = checksum::of(&outer[..20]);
    outer[10..12].copy_from_slice(&sum.to_be_bytes());
}

#[test]
fn a_host_behind_the_router_hears_that_an_edge_is_unreachable() {
    let mut router = router();
    let outer = outer(&mut router, 120);
    router.send("e1", &error((3, 1), 0, &outer));
    let (kind, code, _, quoted) = heard(&mut router).expect("an error");
    assert_eq!((kind, code), (UNREACHABLE, 3));
    assert_eq!(quoted, outer[20..]);
    assert_eq!(router.count(NODE, "relayed"), 1);
}

#[test]
fn a_host_that_gave_its_packet_too_few_hops_hears_of_it() {
    let mut router = router();
    let outer = outer(&mut router, 120);
    router.send("e1", &error((11, 0), 0, &outer));
    let (kind, code, ..) = heard(&mut router).expect("an error");
    assert_eq!((kind, code), (TIME_EXCEEDED, 0));
}

#[test]
fn a_narrow_link_makes_packets_of_one_sender_smaller() {
    let mut router = router();
    let outer = outer(&mut router, 1480);
    router.send("e1", &error((3, 4), 1400, &outer[..548]));
    let (kind, _, mtu_bytes, _) = heard(&mut router).expect("an error");
    assert_eq!((kind, mtu_bytes), (TOO_BIG, 1380));
    // RFC 4213 §3.2.1: a packet of 1,280 bytes is sent in fragments, whatever the link takes.
    router.send("e1", &error((3, 4), 576, &outer[..548]));
    let (kind, _, mtu_bytes, _) = heard(&mut router).expect("an error");
    assert_eq!((kind, mtu_bytes), (TOO_BIG, 1280));
    // The MTU of the tunnel is as it was.
    assert_eq!(self::outer(&mut router, 1480).len(), 1500);
}

#[test]
fn errors_that_no_packet_of_the_tunnel_can_have_are_dropped() {
    let mut router = router();
    let outer = outer(&mut router, 120);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut quoted = outer.clone();
        change(&mut quoted);
        mend(&mut quoted);
        error((3, 1), 0, &quoted)
    };
    // Another source, and a destination that is not the one in the inner packet.
    router.send("e1", &changed(&|outer| outer[15] = 9));
    router.send("e1", &changed(&|outer| outer[19] = 8));
    assert_eq!(router.count(NODE, "not-ours"), 2);
    // A later fragment of the outer packet has no inner header.
    router.send("e1", &changed(&|outer| outer[7] = 0x80));
    assert_eq!(router.count(NODE, "truncated"), 1);
    // RFC 1191 §3: no link takes less than 68 bytes. And it cannot be what the packet had.
    router.send("e1", &error((3, 4), 67, &outer));
    router.send("e1", &error((3, 4), outer.len() as u16, &outer));
    assert_eq!(router.count(NODE, "mtu-not-believed"), 2);
    // RFC 792: 8 bytes are quoted at least, and do not say who sent the inner packet.
    router.send("e1", &error((3, 1), 0, &outer[..28]));
    assert_eq!(router.count(NODE, "kept"), 1);
    assert_eq!(heard(&mut router), None);
    assert_eq!(router.count(NODE, "relayed"), 0);
}

#[test]
fn a_flood_of_errors_is_cut_off() {
    let mut router = router();
    let outer = outer(&mut router, 120);
    for _ in 0..100 {
        router.send("e1", &error((3, 1), 0, &outer));
    }
    assert_eq!((router.count(NODE, "relayed"), router.count(NODE, "rate-limited")), (64, 36));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_an_error_quotes_loses_no_buffer(
        kind in prop::sample::select(vec![(3u8, 0u8), (3, 1), (3, 4), (11, 0), (12, 0)]),
        mtu_bytes in any::<u16>(),
        keep in 0usize..200,
        changes in prop::collection::vec((0usize..140, any::<u8>()), 0..6),
    ) {
        let mut router = router();
        let mut quoted = outer(&mut router, 120);
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
