//! MAP-T: packets of IPv4 and IPv6 as each other.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_testkit::frames::{Fragment, ip4, ip6_fragment};
use quiver_testkit::{Router, Settings};
use quiver_wire::IpProtocol;
use quiver_wire::checksum::{Sum, of};

use crate::fixture::*;

/// A shared address of the domain that translates.
pub const TRANSLATED: Ipv4Addr = Ipv4Addr::new(192, 0, 3, 18);
/// Its customer with PSID 0x34.
pub const CUSTOMER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x7712, 0x3400, 0, 0xc000, 0x312, 0x34);
/// The server behind the default mapping rule.
pub const SERVER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0xc633, 0x6407);

pub fn relay() -> Router {
    relay_with(Settings::default())
}

/// The same, set up otherwise.
pub fn relay_with(settings: Settings) -> Router {
    let mut router = border_with(settings);
    let lines = "map add domain ip4-pfx 192.0.3.0/24 ip6-pfx 2001:db8:7700::/40 \
ip6-src 2001:db8:64::/96 ea-bits-len 16 psid-offset 6 psid-len 8 map-t
        map interface e0 map-t
        map interface e1 map-t";
    router.script("translation", lines).unwrap_or_else(|refusal| panic!("{refusal}"));
    router
}

fn from_server(router: &mut Router, protocol: u8, fragment: Fragment, data: &[u8]) {
    router.send("e0", &ip4(0, (SERVER, TRANSLATED), protocol, fragment, data));
}

/// Is the checksum of a datagram of IPv6 right?
fn has_good_sum(packet: &[u8], protocol: IpProtocol) -> bool {
    let (source, destination) = ends6(packet);
    let upper = &packet[40..];
    Sum::pseudo6(source, destination, protocol, upper.len() as u32).bytes(upper).is_good()
}

#[test]
fn packets_are_translated_in_both_directions() {
    let mut router = relay();
    from_server(&mut router, UDP, whole(), &udp(53, PORT, b"answer"));
    let sent = one(&mut router, "e1");
    assert_eq!(ends6(&sent), (SERVER6, CUSTOMER));
    assert_eq!((sent[6], sent[7]), (UDP, 63));
    assert!(has_good_sum(&sent, IpProtocol::UDP));
    let data = udp6((CUSTOMER, SERVER6), (PORT, 53), b"question");
    router.send("e1", &ip6((CUSTOMER, SERVER6), UDP, 64, &data));
    let sent = one(&mut router, "e0");
    assert_eq!((sent[8], sent[9]), (63, UDP));
    assert_eq!(sent[12..20], [192, 0, 3, 18, 198, 51, 100, 7]);
    assert_eq!(of(&sent[..20]), 0);
    let sum = Sum::pseudo4(TRANSLATED, SERVER, IpProtocol::UDP, (sent.len() - 20) as u16);
    assert!(sum.bytes(&sent[20..]).is_good());
}

/// RFC 7599 §8.1: the border relay checks source and port as that of MAP-E does.
#[test]
fn who_sends_with_the_port_of_another_is_refused() {
    let mut router = relay();
    let mut refused = |customer: Ipv6Addr, port: u16, reason: &str| {
        let data = udp6((customer, SERVER6), (port, 53), b"");
        router.send("e1", &ip6((customer, SERVER6), UDP, 64, &data));
        assert!(router.sent("e0").is_empty());
        let error = one(&mut router, "e1");
        assert_eq!((error[40], error[41]), (1, 5));
        assert!(router.count("ip6-map-t", reason) > 0, "{reason}");
    };
    refused(CUSTOMER, PORT + 4, "spoofed");
    let mut octets = CUSTOMER.octets();
    octets[13] ^= 1;
    refused(Ipv6Addr::from(octets), PORT, "spoofed");
    refused(CUSTOMER, 80, "port-of-nobody");
    refused("2001:db8:9999::1".parse().expect("an address"), PORT, "no-domain");
}

#[test]
fn pings_go_by_their_identifier() {
    let mut router = relay();
    let id = PORT.to_be_bytes();
    from_server(&mut router, 1, whole(), &icmp(8, 0, [id[0], id[1], 0, 1], b"ping"));
    let sent = one(&mut router, "e1");
    assert_eq!((ends6(&sent).1, sent[6], sent[40]), (CUSTOMER, 58, 128));
    assert!(has_good_sum(&sent, IpProtocol::ICMP6));
    let reply = icmp6((CUSTOMER, SERVER6), 129, 0, [id[0], id[1], 0, 1], b"ping");
    router.send("e1", &ip6((CUSTOMER, SERVER6), 58, 64, &reply));
    let sent = one(&mut router, "e0");
    assert_eq!((sent[9], sent[20], of(&sent[20..])), (1, 0, 0));
}

/// RFC 7599 §10.2: an error is translated with the packet that it quotes.
#[test]
fn errors_are_translated_in_both_directions() {
    let mut router = relay();
    let quoted = packet4((TRANSLATED, SERVER), UDP, whole(), &udp(PORT, 53, b"question"));
    from_server(&mut router, 1, whole(), &icmp(3, 3, [0; 4], &quoted));
    let sent = one(&mut router, "e1");
    assert_eq!((ends6(&sent), sent[40], sent[41]), ((SERVER6, CUSTOMER), 1, 4));
    assert_eq!(ends6(&sent[48..]), (CUSTOMER, SERVER6));
    let ends = (CUSTOMER, SERVER6);
    let data = udp6((SERVER6, CUSTOMER), (53, PORT), b"answer");
    let quoted = ip6((SERVER6, CUSTOMER), UDP, 60, &data)[LINK..].to_vec();
    let error = icmp6(ends, 1, 4, [0; 4], &quoted);
    router.send("e1", &ip6(ends, 58, 64, &error));
    let sent = one(&mut router, "e0");
    assert_eq!(sent[12..16], TRANSLATED.octets());
    assert_eq!((sent[20], sent[21], of(&sent[20..])), (3, 3, 0));
    assert_eq!(sent[28 + 12..28 + 20], [198, 51, 100, 7, 192, 0, 3, 18]);
    // RFC 6791: a router between has no address of IPv4.
    let between: Ipv6Addr = "2001:db8:1::2".parse().expect("an address");
    let error = icmp6((between, SERVER6), 3, 0, [0; 4], &quoted);
    router.send("e1", &ip6((between, SERVER6), 58, 64, &error));
    assert_eq!(one(&mut router, "e0")[12..16], [198, 51, 100, 1]);
    router.cli("map params icmp source-address 192.0.2.254");
    router.send("e1", &ip6((between, SERVER6), 58, 64, &error));
    assert_eq!(one(&mut router, "e0")[12..16], [192, 0, 2, 254]);
    assert_eq!(router.count("ip6-map-t", "icmp-errors"), 3);
}

/// RFC 7599 §10.1, RFC 7915 §4.1, §5.1.1: fragments follow the first one, one by one.
#[test]
fn fragments_are_translated_one_by_one() {
    let mut router = relay();
    let piece = |offset_bytes, more| Fragment { identification: 9, offset_bytes, more };
    let mut data = udp(53, PORT, &[5; 40]);
    data[6] = 1; // a checksum, which the fragments are not enough to check
    from_server(&mut router, UDP, piece(24, false), &data[24..]);
    from_server(&mut router, UDP, piece(0, true), &data[..24]);
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    for frame in sent {
        assert_eq!((ends6(&frame[LINK..]).1, frame[LINK + 6]), (CUSTOMER, 44));
    }
    let data = udp6((CUSTOMER, SERVER6), (PORT, 53), &[6; 40]);
    let ends = (CUSTOMER, SERVER6);
    router.send("e1", &ip6_fragment(1, ends, UDP, piece(24, false), &data[24..]));
    router.send("e1", &ip6_fragment(1, ends, UDP, piece(0, true), &data[..24]));
    let sent = router.sent("e0");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    for frame in sent {
        assert_eq!(frame[LINK + 12..LINK + 16], TRANSLATED.octets());
    }
}

#[test]
fn long_packets_are_cut_for_the_mtu_of_the_domain() {
    let mut router = relay();
    from_server(&mut router, UDP, whole(), &udp(53, PORT, &[5; 1472]));
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2, "{:?}", router.dropped());
    assert!(sent.iter().all(|frame| frame.len() <= LINK + 1500));
}

/// RFC 7599 §8: a customer reaches another one by the border relay, in whichever domain.
#[test]
fn customers_reach_each_other() {
    let mut router = relay();
    let border_of = |address: Ipv4Addr| {
        let [a, b, c, d] = address.octets();
        let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, high, low)
    };
    let to = border_of(SOFTWIRE);
    let data = udp6((CUSTOMER, to), (PORT, SOFTWIRE_PORT), b"hello");
    router.send("e1", &ip6((CUSTOMER, to), UDP, 64, &data));
    let sent = one(&mut router, "e1");
    assert_eq!((ends6(&sent), sent[6]), ((BORDER, B4), IPIP));
    assert_eq!(sent[52..60], [192, 0, 3, 18, 203, 0, 113, 1]);
    let to = border_of(TRANSLATED);
    let data = udp6((CUSTOMER, to), (PORT, PORT), b"hello");
    router.send("e1", &ip6((CUSTOMER, to), UDP, 64, &data));
    assert_eq!(ends6(&one(&mut router, "e1")), (to, CUSTOMER));
}

#[test]
fn hops_end_at_the_border_relay() {
    let mut router = relay();
    let data = udp6((CUSTOMER, SERVER6), (PORT, 53), b"");
    router.send("e1", &ip6((CUSTOMER, SERVER6), UDP, 1, &data));
    let error = one(&mut router, "e1");
    assert_eq!((ends6(&error).1, error[40]), (CUSTOMER, 3));
}

#[test]
fn syns_name_no_greater_segments() {
    let mut router = relay();
    router.cli("map params tcp-mss 1400");
    let mut syn = udp(53, PORT, &[]);
    syn.extend([0, 0, 0, 0, 0x60, 2, 0, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
    let sum = Sum::pseudo4(SERVER, TRANSLATED, IpProtocol::TCP, 24);
    syn[4..6].fill(0);
    let sum = sum.bytes(&syn).checksum();
    syn[16..18].copy_from_slice(&sum.to_be_bytes());
    from_server(&mut router, 6, whole(), &syn);
    let sent = one(&mut router, "e1");
    assert_eq!(sent[62..64], 1400u16.to_be_bytes());
    assert!(has_good_sum(&sent, IpProtocol::TCP));
}
