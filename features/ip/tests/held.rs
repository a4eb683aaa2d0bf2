//! The first packet to a neighbour waits for its MAC address, within limits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use quiver_testkit::Router;
use quiver_wire::icmp6::nd::{Message, NdOption, NeighborFlags, Options};
use quiver_wire::{EtherType, EthernetHeader, Header, Ip6Header, IpProtocol, MacAddress};
use quiver_wire::{arp, icmp4, icmp6, ip4};

const E1_MAC: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);
const HOST_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x55]);
const ROUTER4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const HOST4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);

fn router() -> Router {
    let mut router = Router::new(&[quiver_ethernet::register, quiver_ip::register]);
    for (number, name) in ["e0", "e1"].into_iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 10.{number}.0.1/16"));
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
    }
    router.cli("ip neighbor e0 10.0.0.2 02:00:00:00:00:a0");
    router.cli("ip neighbor e0 2001:db8::2 02:00:00:00:00:a0");
    router
}

/// An echo request with so many bytes of data, in a frame for interface number `on`.
fn ping(on: u8, from: IpAddr, to: IpAddr, data_bytes: usize) -> Vec<u8> {
    let data = vec![0x5a; data_bytes];
    let mut out = vec![0; 14 + 40 + 8 + data_bytes];
    let length = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let echo = icmp4::Repr {
                message: icmp4::Message::EchoRequest { identifier: 1, sequence: 1 },
                data: &data,
            };
            let ip = ip4::Repr::new(from, to, IpProtocol::ICMP, echo.len());
            ip.emit(&mut out[14..]).unwrap();
            echo.emit(&mut out[34..]).unwrap();
            34 + echo.len()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let echo = icmp6::Message::EchoRequest { identifier: 1, sequence: 1, data: &data };
            let length = echo.emit(from, to, &mut out[54..]).unwrap();
            Ip6Header::new(from, to, IpProtocol::ICMP6, 64, length as u16).write(&mut out[14..]).unwrap();
            54 + length
        }
        _ => panic!("two addresses of one family"),
    };
    let kind = if from.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 };
    EthernetHeader::new(MacAddress([2, 0xfe, 0, 0, 0, on]), HOST_MAC, kind).write(&mut out).unwrap();
    out.truncate(length);
    out
}

/// A ping from a known host behind e0.
fn ping4(to: Ipv4Addr) -> Vec<u8> {
    ping(0, [10, 0, 0, 2].into(), to.into(), 56)
}

/// A reply of ARP for e1.
fn is_at(address: Ipv4Addr) -> Vec<u8> {
    let mut out = vec![0; 42];
    EthernetHeader::new(E1_MAC, HOST_MAC, EtherType::ARP).write(&mut out).unwrap();
    let question = arp::Repr::request(E1_MAC, ROUTER4, address);
    question.reply(HOST_MAC).emit(&mut out[14..]).unwrap();
    out
}

/// A neighbour advertisement for e1.
fn advertises(address: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
    let mut option = [0; 8];
    NdOption::TargetMac(HOST_MAC).emit(&mut option).unwrap();
    let flags = NeighborFlags::SOLICITED.with(NeighborFlags::OVERRIDE);
    let options = Options::new(&option).unwrap();
    let message = icmp6::Message::Nd(Message::NeighborAdvertisement { flags, target: address, options });
    let mut out = vec![0; 86];
    let length = message.emit(address, to, &mut out[54..]).unwrap();
    EthernetHeader::new(E1_MAC, HOST_MAC, EtherType::IPV6).write(&mut out).unwrap();
    Ip6Header::new(address, to, IpProtocol::ICMP6, 255, length as u16).write(&mut out[14..]).unwrap();
    out.truncate(54 + length);
    out
}

fn said(router: &mut Router) -> String {
    router.cli("show ip neighbors").lines().last().unwrap_or_default().to_owned()
}

#[test]
fn the_first_ping_to_a_newcomer_arrives_when_arp_is_answered() {
    let mut router = router();
    let sent = ping4(HOST4);
    router.send("e0", &sent);
    let question = router.sent("e1");
    assert_eq!((question.len(), &question[0][12..14]), (1, &[8, 6][..]));
    assert_eq!(said(&mut router), "1 packets wait for IPv4 and IPv6 neighbours; 0 were forgotten unanswered");
    router.send("e1", &is_at(HOST4));
    let arrived = router.sent("e1");
    assert_eq!(arrived.len(), 1);
    assert_eq!(arrived[0][..6], HOST_MAC.0);
    assert_eq!((arrived[0][22], &arrived[0][26..]), (63, &sent[26..]));
    assert_eq!(router.count("ip4-glean", "held"), 1);
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    assert_eq!(router.buffers_in_use(), 0);
    // Once.
    router.send("e1", &is_at(HOST4));
    router.advance(Duration::from_secs(5));
    assert!(router.sent("e1").is_empty());
}

#[test]
fn the_first_ping_over_ip6_arrives_when_the_solicitation_is_answered() {
    let mut router = router();
    let (from, to) = ("2001:db8::2".parse().unwrap(), "2001:db8:1::5".parse().unwrap());
    let sent = ping(0, from, to, 56);
    router.send("e0", &sent);
    assert_eq!(router.sent("e1").len(), 1);
    router.send("e1", &advertises("2001:db8:1::5".parse().unwrap(), "2001:db8:1::1".parse().unwrap()));
    let arrived = router.sent("e1");
    assert_eq!(arrived.len(), 1);
    assert_eq!((arrived[0][21], &arrived[0][22..]), (63, &sent[22..]));
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn the_routers_own_reply_to_a_link_local_newcomer_waits_too() {
    let mut router = router();
    // Its own link-local address is made of the MAC address.
    let (host, own): (Ipv6Addr, Ipv6Addr) =
        ("fe80::5".parse().unwrap(), "fe80::fe:ff:fe00:1".parse().unwrap());
    router.send("e1", &ping(1, host.into(), own.into(), 56));
    assert_eq!(router.sent("e1").len(), 1);
    router.send("e1", &advertises(host, own));
    let reply = router.sent("e1");
    assert_eq!(reply.len(), 1);
    assert_eq!((reply[0][21], reply[0][54]), (64, 129)); // no hop is counted
    assert_eq!(reply[0][38..54], host.octets());
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn the_routers_own_ping_waits_and_keeps_its_hops() {
    let mut router = router();
    let said = router.cli("ping 10.1.0.5 repeat 1");
    assert!(said.contains("1 sent, 0 received"), "{said}");
    assert_eq!(router.sent("e1").len(), 1);
    router.send("e1", &is_at(HOST4));
    let request = router.sent("e1");
    assert_eq!((request.len(), request[0][22], &request[0][30..34]), (1, 64, &HOST4.octets()[..]));
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn the_table_of_the_receiving_interface_is_asked_again() {
    let mut router = router();
    router.interface("e2");
    router.cli("ip table add 10");
    router.cli("set interface ip table e2 10");
    router.cli("set interface ip address e2 10.2.0.1/16");
    router.cli("ip route add 192.0.2.0/24 table 10 via 10.1.0.5 e1");
    let sent = ping(2, [10, 2, 0, 2].into(), [192, 0, 2, 1].into(), 56);
    router.send("e2", &sent);
    assert_eq!(router.count("ip4-arp", "held"), 1);
    router.sent("e1");
    router.send("e1", &is_at(HOST4));
    let arrived = router.sent("e1");
    assert_eq!((arrived.len(), arrived[0][22]), (1, 63));
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn a_configured_neighbour_gets_what_waits_for_it() {
    let mut router = router();
    router.send("e0", &ping4(HOST4));
    router.sent("e1");
    router.cli("ip neighbor e1 10.1.0.5 02:00:00:00:00:77");
    router.run();
    let arrived = router.sent("e1");
    assert_eq!((arrived.len(), &arrived[0][..6]), (1, &[2, 0, 0, 0, 0, 0x77][..]));
}

#[test]
fn what_is_longer_than_an_event_is_dropped() {
    let mut router = router();
    let length_of = |data_bytes| 20 + 8 + data_bytes;
    for (host, data_bytes) in [(5, 76), (6, 77)] {
        router.send("e0", &ping(0, [10, 0, 0, 2].into(), [10, 1, 0, host].into(), data_bytes));
        let held = router.count("ip4-glean", "held");
        let dropped = router.count("ip4-glean", "request-sent");
        assert_eq!((held, dropped), (1, u64::from(length_of(data_bytes) > 104)));
    }
    assert_eq!(router.sent("e1").len(), 2);
}

#[test]
fn what_nobody_answers_is_forgotten_after_three_seconds() {
    let mut router = router();
    router.send("e0", &ping4(HOST4));
    router.advance(Duration::from_secs(2));
    assert!(said(&mut router).starts_with("1 packets wait"));
    router.advance(Duration::from_secs(2));
    assert_eq!(said(&mut router), "0 packets wait for IPv4 and IPv6 neighbours; 1 were forgotten unanswered");
    router.sent("e1");
    router.cli("ip neighbor e1 10.1.0.5 02:00:00:00:00:77");
    router.run();
    assert!(router.sent("e1").is_empty());
}

#[test]
fn a_packet_does_not_wait_twice() {
    let mut router = router();
    // The neighbour is known and forgotten again before the worker sees the packet.
    router.send("e0", &ping4(HOST4));
    router.advance(Duration::from_secs(2));
    router.sent("e1");
    router.cli("ip neighbor e1 10.1.0.5 02:00:00:00:00:77");
    router.cli("ip neighbor del e1 10.1.0.5");
    router.run();
    assert_eq!(router.sent("e1").len(), 1); // a question
    assert_eq!((router.count("ip4-glean", "held"), router.count("ip4-glean", "request-sent")), (1, 1));
    assert!(!said(&mut router).contains("packets wait"));
}

#[test]
fn an_interface_that_is_deleted_takes_its_packets_with_it() {
    for gone in ["e0", "e1"] {
        let mut router = router();
        router.send("e0", &ping4(HOST4));
        let id = router.id(gone);
        router.engine().delete_interface(id).unwrap();
        router.run();
        assert!(said(&mut router).starts_with("0 packets wait"), "{gone}");
    }
}

#[test]
fn a_scan_of_a_subnet_fills_what_is_kept_and_no_more() {
    let mut router = router();
    let host = |number: u16| Ipv4Addr::new(10, 1, 16 + (number >> 8) as u8, number as u8);
    for number in 0..1200 {
        router.inject("e0", &ping4(host(number)));
        if number % 100 == 99 {
            router.run();
            router.advance(Duration::from_millis(50));
        }
    }
    assert_eq!(router.count("ip4-glean", "held"), 1200);
    assert!(said(&mut router).starts_with("1024 packets wait"));
    assert_eq!(router.sent("e1").len(), 1200);
    for number in 0..1200 {
        router.send("e1", &is_at(host(number)));
    }
    let arrived = router.sent("e1");
    assert_eq!(arrived.len(), 1024);
    assert_eq!(arrived[0][30..34], host(1200 - 1024).octets());
    assert_eq!(
        said(&mut router),
        "0 packets wait for IPv4 and IPv6 neighbours; 176 were forgotten unanswered"
    );
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    assert_eq!(router.buffers_in_use(), 0);
}
