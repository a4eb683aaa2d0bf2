//! MAP-E and lightweight 4over6: packets of IPv4 in packets of IPv6.

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use quiver_testkit::Router;
use quiver_testkit::frames::{Fragment, ip4, ip6_fragment};
use quiver_wire::checksum::of;

use crate::fixture::*;

/// Send a packet of IPv4 from the server.
fn from_server(router: &mut Router, packet: &[u8]) {
    let mut frame = ip4(0, (SERVER, SHARED), UDP, whole(), &[])[..LINK].to_vec();
    frame.extend(packet);
    router.send("e0", &frame);
}

fn to(address: Ipv4Addr, port: u16, data: &[u8]) -> Vec<u8> {
    packet4((SERVER, address), UDP, whole(), &udp(53, port, data))
}

/// What a forwarded packet of IPv4 is: one hop less.
fn forwarded(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[8] -= 1;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// RFC 7597 §8 and appendix A, example 2: the packet to port 1232 goes to the customer's address,
/// from the border relay's.
#[test]
fn a_packet_goes_to_the_customer_who_has_its_port() {
    let mut router = border();
    let packet = to(SHARED, PORT, b"answer");
    from_server(&mut router, &packet);
    let sent = one(&mut router, "e1");
    assert_eq!(ends6(&sent), (BORDER, CUSTOMER));
    assert_eq!((sent[6], sent[7]), (IPIP, 63), "IPv4 inside, a fresh hop limit");
    assert_eq!(usize::from(u16::from_be_bytes([sent[4], sent[5]])), packet.len());
    assert_eq!(sent[40..], forwarded(&packet));
}

/// RFC 7596 §5.2: the binding table says the address of the softwire.
#[test]
fn a_packet_goes_by_the_softwire_that_a_rule_binds() {
    let mut router = border();
    let packet = to(SOFTWIRE, SOFTWIRE_PORT, b"answer");
    from_server(&mut router, &packet);
    assert_eq!(ends6(&one(&mut router, "e1")), (BORDER, B4));
    router.cli("map add rule index 1 psid 5 ip6-dst 2001:db8:4446:5::2");
    from_server(&mut router, &packet);
    let moved: Ipv6Addr = "2001:db8:4446:5::2".parse().expect("an address");
    assert_eq!(ends6(&one(&mut router, "e1")), (BORDER, moved), "the rule was replaced");
    router.cli("map del rule index 1 psid 5");
    from_server(&mut router, &packet);
    let error = one(&mut router, "e0");
    assert_eq!((error[20], error[21]), (3, 1), "host unreachable");
    assert_eq!(router.count("ip4-map", "no-rule"), 1);
}

#[test]
fn what_customers_send_is_taken_out() {
    let mut router = border();
    for (customer, address, port) in [(CUSTOMER, SHARED, PORT), (B4, SOFTWIRE, SOFTWIRE_PORT)] {
        let packet = packet4((address, SERVER), UDP, whole(), &udp(port, 53, b"question"));
        router.send("e1", &from(customer, &packet));
        assert_eq!(one(&mut router, "e0"), forwarded(&packet));
    }
}

/// RFC 7597 §8.1: "the BR MUST ... check the validity of the IPv4 source address and port with the
/// IPv6 source address", and answers with ICMPv6 type 1, code 5.
#[test]
fn who_sends_with_the_port_of_another_is_refused() {
    let mut router = border();
    let mut refused = |customer: Ipv6Addr, address: Ipv4Addr, port: u16, reason: &str, count| {
        let packet = packet4((address, SERVER), UDP, whole(), &udp(port, 53, b""));
        router.send("e1", &from(customer, &packet));
        assert!(router.sent("e0").is_empty());
        let error = one(&mut router, "e1");
        assert_eq!((error[40], error[41]), (1, 5), "source address failed policy");
        assert_eq!(ends6(&error).1, customer);
        assert_eq!(router.count("ip6-map", reason), count, "{reason}");
    };
    refused(CUSTOMER, SHARED, PORT + 4, "spoofed", 1);
    refused(B4, SHARED, PORT, "spoofed", 2);
    refused(CUSTOMER, SHARED, 1023, "port-of-nobody", 1);
    refused(B4, SOFTWIRE, 6 << 10, "no-rule", 1);
    refused(CUSTOMER, Ipv4Addr::new(10, 0, 0, 1), PORT, "no-domain", 1);
    router.cli("map params icmp6 unreachables off");
    let packet = packet4((SHARED, SERVER), UDP, whole(), &udp(PORT + 4, 53, b""));
    router.send("e1", &from(CUSTOMER, &packet));
    assert!(router.sent("e1").is_empty());
    router.cli("map params security-check off");
    router.send("e1", &from(CUSTOMER, &packet));
    assert_eq!(one(&mut router, "e0"), forwarded(&packet));
}

/// RFC 7597 §8: a customer reaches another one by the border relay.
#[test]
fn customers_reach_each_other() {
    let mut router = border();
    let packet = packet4((SHARED, SOFTWIRE), UDP, whole(), &udp(PORT, SOFTWIRE_PORT, b"hello"));
    router.send("e1", &from(CUSTOMER, &packet));
    let sent = one(&mut router, "e1");
    assert_eq!(ends6(&sent), (BORDER, B4));
    assert_eq!(sent[40..], forwarded(&packet));
}

/// RFC 7596 §8.1: an error goes to the customer whose packet it quotes, and a query by its
/// identifier.
#[test]
fn icmp_goes_by_identifier_and_by_the_quoted_port() {
    let mut router = border();
    let echo = icmp(8, 0, [(PORT >> 8) as u8, PORT as u8, 0, 1], b"ping");
    from_server(&mut router, &packet4((SERVER, SHARED), 1, whole(), &echo));
    assert_eq!(ends6(&one(&mut router, "e1")), (BORDER, CUSTOMER));
    let quoted = packet4((SHARED, SERVER), UDP, whole(), &udp(PORT, 53, b"question"));
    let error = icmp(3, 3, [0; 4], &quoted);
    from_server(&mut router, &packet4((SERVER, SHARED), 1, whole(), &error));
    assert_eq!(ends6(&one(&mut router, "e1")), (BORDER, CUSTOMER));
    // An error of a customer about what came to its port.
    let quoted = packet4((SERVER, SHARED), UDP, whole(), &udp(53, PORT, b"answer"));
    let error = packet4((SHARED, SERVER), 1, whole(), &icmp(3, 3, [0; 4], &quoted));
    router.send("e1", &from(CUSTOMER, &error));
    assert_eq!(one(&mut router, "e0"), forwarded(&error));
    router.send("e1", &from(B4, &error));
    assert_eq!(router.count("ip6-map", "spoofed"), 1);
}

#[test]
fn hops_end_at_the_border_relay() {
    let mut router = border();
    let mut packet = to(SHARED, PORT, b"");
    packet[8] = 1;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    from_server(&mut router, &packet);
    let error = one(&mut router, "e0");
    assert_eq!((error[20], error[21]), (11, 0));
    // A customer's traceroute: the error goes back by its softwire.
    let mut packet = packet4((SHARED, SERVER), UDP, whole(), &udp(PORT, 53, b""));
    packet[8] = 1;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    router.send("e1", &from(CUSTOMER, &packet));
    let sent = one(&mut router, "e1");
    assert_eq!(ends6(&sent), (BORDER, CUSTOMER));
    assert_eq!((sent[49], sent[60], sent[61]), (1, 11, 0), "ICMP time exceeded inside");
    assert_eq!(sent[52..56], [198, 51, 100, 1], "from the interface it would have left by");
}

/// RFC 2473 §7.2: a packet that must not be cut is answered with the MTU of the tunnel.
#[test]
fn senders_are_told_the_mtu() {
    let mut router = border();
    let mut packet = to(SHARED, PORT, &[5; 1460 - 28]);
    forbid_fragments(&mut packet);
    from_server(&mut router, &packet);
    assert_eq!(one(&mut router, "e1").len(), 1500);
    let mut packet = to(SHARED, PORT, &[5; 1461 - 28]);
    forbid_fragments(&mut packet);
    from_server(&mut router, &packet);
    let error = one(&mut router, "e0");
    assert_eq!((error[20], error[21], &error[26..28]), (3, 4, &1460u16.to_be_bytes()[..]));
    router.cli("map params fragment outer ignore-df");
    from_server(&mut router, &packet);
    assert_eq!(router.sent("e1").len(), 2);
}

/// RFC 2473 §7.1: the outer packet is cut, and the customer puts it together.
#[test]
fn outer_packets_are_cut() {
    let mut router = border();
    let packet = to(SHARED, PORT, &[5; 1480 - 28]);
    from_server(&mut router, &packet);
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    let mut whole: Vec<u8> = Vec::new();
    for frame in &sent {
        let packet = &frame[LINK..];
        assert!(packet.len() <= 1500);
        assert_eq!((packet[6], packet[40]), (44, IPIP));
        whole.extend(&packet[48..]);
    }
    assert_eq!(whole, forwarded(&packet));
}

#[test]
fn inner_packets_are_cut() {
    let mut router = border();
    router.cli("map params fragment inner honor-df");
    let packet = to(SHARED, PORT, &[5; 1500 - 28]);
    from_server(&mut router, &packet);
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    let mut data: Vec<u8> = Vec::new();
    for (place, frame) in sent.iter().enumerate() {
        let packet = &frame[LINK..];
        assert!(packet.len() <= 1500);
        assert_eq!(ends6(packet), (BORDER, CUSTOMER));
        let inner = &packet[40..];
        assert_eq!(of(&inner[..20]), 0, "a good header");
        assert_eq!(inner[4..6], [0, 7], "the identification");
        assert_eq!(inner[6] & 0x20 != 0, place == 0, "more fragments");
        assert_eq!(usize::from(u16::from_be_bytes([inner[6], inner[7]]) & 0x1fff) * 8, data.len());
        data.extend(&inner[20..]);
    }
    assert_eq!(data, packet[20..]);
}

/// RFC 7597 §8.3.2: fragments to a shared address wait for the first one, which has the port.
#[test]
fn fragments_to_a_shared_address_follow_the_first_one() {
    let mut router = border();
    let data = udp(53, PORT, &[5; 40]);
    let piece = |offset_bytes: u16, more| Fragment { identification: 9, offset_bytes, more };
    let later = packet4((SERVER, SHARED), UDP, piece(24, false), &data[24..]);
    let first = packet4((SERVER, SHARED), UDP, piece(0, true), &data[..24]);
    from_server(&mut router, &later);
    assert!(router.sent("e1").is_empty());
    from_server(&mut router, &first);
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    for frame in sent {
        assert_eq!(ends6(&frame[LINK..]), (BORDER, CUSTOMER));
    }
}

/// RFC 7597 §8.3.1: a customer's packet of IPv6 that came in fragments is put together.
#[test]
fn outer_fragments_of_a_customer_are_put_together() {
    let mut router = border();
    let packet = packet4((SHARED, SERVER), UDP, whole(), &udp(PORT, 53, &[6; 100]));
    let piece = |offset_bytes, more| Fragment { identification: 1, offset_bytes, more };
    let ends = (CUSTOMER, BORDER);
    router.send("e1", &ip6_fragment(1, ends, IPIP, piece(64, false), &packet[64..]));
    router.send("e1", &ip6_fragment(1, ends, IPIP, piece(0, true), &packet[..64]));
    assert_eq!(one(&mut router, "e0"), forwarded(&packet));
    let ends = (B4, BORDER);
    router.send("e1", &ip6_fragment(1, ends, IPIP, piece(64, false), &packet[64..]));
    router.send("e1", &ip6_fragment(1, ends, IPIP, piece(0, true), &packet[..64]));
    assert_eq!(router.count("ip6-map-local", "spoofed"), 1);
}

#[test]
fn later_fragments_of_a_customer_are_checked_without_port() {
    let mut router = border();
    let piece = Fragment { identification: 9, offset_bytes: 24, more: false };
    let packet = packet4((SHARED, SERVER), UDP, piece, &[5; 16]);
    router.send("e1", &from(CUSTOMER, &packet));
    assert_eq!(one(&mut router, "e0"), forwarded(&packet));
    let other = Ipv4Addr::new(192, 0, 2, 19);
    router.send("e1", &from(CUSTOMER, &packet4((other, SERVER), UDP, piece, &[5; 16])));
    assert_eq!(router.count("ip6-map", "spoofed"), 1);
    let softwire = packet4((SOFTWIRE, SERVER), UDP, piece, &[5; 16]);
    router.send("e1", &from(B4, &softwire));
    assert_eq!(one(&mut router, "e0"), forwarded(&softwire));
    router.send("e1", &from(CUSTOMER, &softwire));
    assert_eq!(router.count("ip6-map", "spoofed"), 2);
    router.cli("map params security-check fragments on");
    router.send("e1", &from(CUSTOMER, &packet));
    assert_eq!(router.count("ip6-map", "fragment-without-first"), 1);
}

/// RFC 2473 §8: the sender of the packet inside hears of an error about the outer one.
#[test]
fn errors_about_outer_packets_are_told_to_the_senders_of_the_inner_ones() {
    let mut router = border();
    let mut packet = to(SHARED, PORT, &[5; 1400]);
    forbid_fragments(&mut packet);
    from_server(&mut router, &packet);
    let outer = one(&mut router, "e1");
    let between: Ipv6Addr = "2001:db8:1::2".parse().expect("an address");
    let quoted = &outer[..400];
    let mut error = |kind, code, mtu: u32, quoted: &[u8]| {
        let ends = (between, BORDER);
        let message = icmp6(ends, kind, code, mtu.to_be_bytes(), quoted);
        router.send("e1", &ip6(ends, 58, 64, &message));
        router.sent("e0").pop().map(|frame| frame[LINK..].to_vec())
    };
    let told = error(2, 0, 1400, quoted).expect("too big");
    assert_eq!((told[20], told[21], &told[26..28]), (3, 4, &1360u16.to_be_bytes()[..]));
    assert_eq!(told[28 + 12..28 + 20], packet[12..20]);
    let told = error(1, 0, 0, quoted).expect("unreachable");
    assert_eq!((told[20], told[21]), (3, 1));
    let told = error(3, 0, 0, quoted).expect("hop limit");
    assert_eq!((told[20], told[21]), (3, 1), "the hops of the tunnel are none of the sender's");
    assert_eq!(error(2, 0, 1200, quoted), None);
    let mut forged = quoted.to_vec();
    forged[39] ^= 1;
    assert_eq!(error(1, 0, 0, &forged), None);
    assert_eq!(router.count("ip6-map", "mtu-not-believed"), 1);
    assert_eq!(router.count("ip6-map", "not-ours"), 1);
    assert_eq!(router.count("ip6-map", "relayed"), 3);
}

/// A link that is narrower than the MTU of the domain.
#[test]
fn a_narrow_link_loses_nothing() {
    let mut router = border();
    router.cli("set interface mtu packet 1400 e1");
    let packet = to(SHARED, PORT, &[5; 1400]);
    from_server(&mut router, &packet);
    assert_eq!(router.sent("e1").len(), 2, "{:?}", router.dropped());
    let mut packet = packet;
    forbid_fragments(&mut packet);
    from_server(&mut router, &packet);
    let error = one(&mut router, "e0");
    assert_eq!((error[20], error[21], &error[26..28]), (3, 4, &1360u16.to_be_bytes()[..]));
}

#[test]
fn the_border_relays_address_answers_pings() {
    let mut router = border();
    let ends = (CUSTOMER, BORDER);
    let echo = icmp6(ends, 128, 0, [0, 1, 0, 1], b"ping");
    router.send("e1", &ip6(ends, 58, 64, &echo));
    let sent = one(&mut router, "e1");
    assert_eq!((ends6(&sent), sent[40]), ((BORDER, CUSTOMER), 129));
    // What is nobody's: RFC 4443 §3.4.
    router.send("e1", &ip6(ends, 47, 64, &[0; 20]));
    assert_eq!(one(&mut router, "e1")[40], 4);
}

#[test]
fn other_interfaces_take_nothing() {
    let mut router = border();
    router.cli("map interface e0 del");
    router.cli("map interface e1 del");
    from_server(&mut router, &to(SHARED, PORT, b""));
    let packet = packet4((SHARED, SERVER), UDP, whole(), &udp(PORT, 53, b""));
    router.send("e1", &from(CUSTOMER, &packet));
    assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty());
    assert_eq!(router.count("ip4-map", "interface-off"), 1);
    assert_eq!(router.count("ip6-map", "interface-off"), 1);
}

/// RFC 6040 §4, RFC 2983: the class goes out as it came in; congestion comes back.
#[test]
fn classes_are_copied_or_set_and_congestion_is_kept() {
    let mut router = border();
    let mut packet = to(SHARED, PORT, b"");
    packet[1] = 0xb9;
    packet[10..12].fill(0);
    let sum = of(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let class = |packet: &[u8]| packet[0] << 4 | packet[1] >> 4;
    from_server(&mut router, &packet);
    assert_eq!(class(&one(&mut router, "e1")), 0xb9);
    router.cli("map params traffic-class 32");
    from_server(&mut router, &packet);
    assert_eq!(class(&one(&mut router, "e1")), 33);
    let mut inner = packet4((SHARED, SERVER), UDP, whole(), &udp(PORT, 53, b""));
    inner[1] = 2;
    inner[10..12].fill(0);
    let sum = of(&inner[..20]);
    inner[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = from(CUSTOMER, &inner);
    frame[15] = 0x30;
    router.send("e1", &frame);
    assert_eq!(one(&mut router, "e0")[1], 3, "congestion experienced");
}

#[test]
fn syns_name_no_greater_segments() {
    let mut router = border();
    router.cli("map params tcp-mss 1400");
    let mut syn = udp(53, PORT, &[]);
    syn.extend([0, 0, 0, 0, 0x60, 2, 0, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    from_server(&mut router, &packet4((SERVER, SHARED), 6, whole(), &syn));
    let sent = one(&mut router, "e1");
    assert_eq!(sent[40 + 20 + 22..40 + 20 + 24], 1400u16.to_be_bytes());
}

#[test]
fn a_shared_address_has_no_protocols_without_ports() {
    let mut router = border();
    from_server(&mut router, &packet4((SERVER, SHARED), 47, whole(), &[0; 8]));
    assert_eq!(router.count("ip4-map", "no-port"), 1);
    router.cli(
        "map add domain ip4-pfx 203.0.113.7/32 ip6-pfx 2001:db8:7::7/128 ip6-src 2001:db8:ffff::1",
    );
    from_server(
        &mut router,
        &packet4((SERVER, Ipv4Addr::new(203, 0, 113, 7)), 47, whole(), &[0; 8]),
    );
    let customer: Ipv6Addr = "2001:db8:7::7".parse().expect("an address");
    assert_eq!(ends6(&one(&mut router, "e1")), (BORDER, customer));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// What is put in by one border relay is taken out by the other direction as it was, but for
    /// the hops.
    #[test]
    fn encapsulation_and_decapsulation_are_inverse(
        port in 1024u16.., remote in 1u16.., data in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut router = border();
        let packet = packet4((SERVER, SHARED), UDP, whole(), &udp(remote, port, &data));
        from_server(&mut router, &packet);
        let sent = one(&mut router, "e1");
        prop_assert_eq!(&sent[40..], &forwarded(&packet)[..]);
        // The customer who received it may send with that port.
        let customer = ends6(&sent).1;
        let back = packet4((SHARED, SERVER), UDP, whole(), &udp(port, remote, &data));
        router.send("e1", &from(customer, &back));
        prop_assert_eq!(one(&mut router, "e0"), forwarded(&back));
    }
}
