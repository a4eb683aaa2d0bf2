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
            Ip6Header::new(from, to, IpProtocol::ICMP6, 64, length as u16)
                .write(&mut out[14..])
                .unwrap();
            54 + length
        }
        _ => panic!("two addresses of one family"),
    };
    let kind = if from.is_ipv4() { EtherType::IPV4 } else { EtherType::IPV6 };
    EthernetHeader::new(MacAddress([2, 0xfe, 0, 0, 0, on]), HOST_MAC, kind)
        .write(&mut out)
        .unwrap();
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
    let message =
        icmp6::Message::Nd(Message::NeighborAdvertisement { flags, target: address, options });
    let mut out = vec![0; 86];
    let length = message.emit(address, to, &mut out[54..]).unwrap();
    EthernetHeader::new(E1_MAC, HOST_MAC, EtherType::IPV6).write(&mut out).unwrap();
    Ip6Header::new(address, to, IpProtocol::ICMP6, 255, length as u16)
        .write(&mut out[14..])
        .unwrap();
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
    assert_eq!(
        said(&mut router),
        "1 packets wait for IPv4 and IPv6 neighbours; 0 were forgotten unanswered"
    );
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
    router.send(
        "e1",
        &advertises("2001:db8:1::5".parse().unwrap(), "2001:db8:1::1".parse().unwrap()),
    );
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

/// The fragments of an echo request with 3,992 bytes of data, as a host with an MTU of 1,500 sends
/// it.
fn fragments4(to: Ipv4Addr) -> Vec<Vec<u8>> {
    let whole = ping(0, [10, 0, 0, 2].into(), to.into(), 3992);
    let (headers, data) = whole.split_at(34);
    let pieces = data.chunks(1480).enumerate().map(|(number, piece)| {
        let mut fragment = [headers, piece].concat();
        fragment[16..18].copy_from_slice(&(20 + piece.len() as u16).to_be_bytes());
        let more = if piece.len() == 1480 { 0x2000 } else { 0 };
        fragment[20..22].copy_from_slice(&(more | (number as u16 * 185)).to_be_bytes());
        fragment[24..26].fill(0);
        let sum = quiver_wire::checksum::Sum::new().bytes(&fragment[14..34]).checksum();
        fragment[24..26].copy_from_slice(&sum.to_be_bytes());
        fragment
    });
    pieces.collect()
}

#[test]
fn all_fragments_of_a_large_ping_wait_and_arrive_whole_and_in_order() {
    let mut router = router();
    let sent = fragments4(HOST4);
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514, 1074]);
    sent.iter().for_each(|fragment| router.send("e0", fragment));
    assert_eq!(router.sent("e1").len(), 1, "one question for all");
    router.send("e1", &is_at(HOST4));
    let arrived = router.sent("e1");
    let behind_ttl =
        |frames: &[Vec<u8>]| frames.iter().map(|f| f[26..].to_vec()).collect::<Vec<_>>();
    assert_eq!(behind_ttl(&arrived), behind_ttl(&sent));
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn a_packet_in_several_buffers_waits_whole() {
    let mut router = router();
    router.cli("set interface mtu packet 9000 e1");
    let sent = ping(0, [10, 0, 0, 2].into(), HOST4.into(), 8900);
    router.send("e0", &sent);
    router.sent("e1");
    assert!(router.buffers_in_use() > 4);
    router.send("e1", &is_at(HOST4));
    let arrived = router.sent("e1");
    assert_eq!((arrived.len(), &arrived[0][26..]), (1, &sent[26..]));
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn a_packet_longer_than_the_way_out_is_cut_when_it_goes_on() {
    let mut router = router();
    let sent = ping(0, [10, 0, 0, 2].into(), HOST4.into(), 3992);
    router.send("e0", &sent);
    router.sent("e1");
    router.send("e1", &is_at(HOST4));
    assert_eq!(router.sent("e1").len(), 3);
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn the_latest_three_packets_wait() {
    let mut router = router();
    for data_bytes in 10..17 {
        router.send("e0", &ping(0, [10, 0, 0, 2].into(), HOST4.into(), data_bytes));
    }
    assert_eq!(router.sent("e1").len(), 1);
    assert_eq!(router.count("ip4-glean", "held"), 7);
    assert_eq!(router.dropped(), [("ip4-glean".to_owned(), "made-room".to_owned(), 4)]);
    assert_eq!(
        said(&mut router),
        "3 packets wait for IPv4 and IPv6 neighbours; 4 were forgotten unanswered"
    );
    router.send("e1", &is_at(HOST4));
    let lengths: Vec<_> = router.sent("e1").iter().map(Vec::len).collect();
    assert_eq!(lengths, [14, 15, 16].map(|data_bytes| 14 + 20 + 8 + data_bytes));
}

#[test]
fn the_routers_own_large_ping_waits_in_fragments() {
    let mut router = router();
    let said = router.cli("ping 10.1.0.5 repeat 1 size 3992");
    assert!(said.contains("1 sent, 0 received"), "{said}");
    assert_eq!(router.sent("e1").len(), 1);
    router.send("e1", &is_at(HOST4));
    let fragments = router.sent("e1");
    assert_eq!(fragments.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514, 1074]);
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
}

#[test]
fn what_nobody_answers_is_forgotten_after_three_seconds() {
    let mut router = router();
    router.send("e0", &ping4(HOST4));
    router.advance(Duration::from_secs(2));
    assert!(said(&mut router).starts_with("1 packets wait"));
    router.advance(Duration::from_secs(2));
    assert_eq!(
        said(&mut router),
        "0 packets wait for IPv4 and IPv6 neighbours; 1 were forgotten unanswered"
    );
    router.sent("e1");
    router.cli("ip neighbor e1 10.1.0.5 02:00:00:00:00:77");
    router.run();
    assert!(router.sent("e1").is_empty());
}

#[test]
fn the_trace_of_a_packet_tells_that_it_waits_and_where_it_went() {
    let mut router = router();
    router.cli("trace add test-input 1");
    router.send("e0", &ping4(HOST4));
    router.sent("e1");
    let waits = router.cli("show trace");
    assert!(waits.contains("whose next hop on e1 is unknown: it waits"), "{waits}");
    router.send("e1", &is_at(HOST4));
    let went_on = router.cli("show trace");
    assert!(went_on.contains("whose next hop on e1 is unknown: to ip4-rewrite"), "{went_on}");
    assert!(went_on.contains("e1-output"), "{went_on}");
}

#[test]
fn what_waits_when_the_router_ends_goes_back_to_the_pool() {
    let mut router = router();
    fragments4(HOST4).iter().for_each(|fragment| router.send("e0", fragment));
    assert_eq!(router.buffers_in_use(), 3);
}

#[test]
fn who_is_forgotten_as_soon_as_known_is_asked_for_again_at_once() {
    let mut router = router();
    for _ in 0..3 {
        router.send("e0", &ping4(HOST4));
        assert_eq!(router.sent("e1").len(), 1, "a question");
        router.send("e1", &is_at(HOST4));
        assert_eq!(router.sent("e1").len(), 1);
        router.cli("ip neighbor del e1 10.1.0.5");
        router.advance(Duration::from_millis(600)); // what neighbours say is heard twice a second
    }
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
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
    let waiting = router.buffers_in_use();
    assert!((256..=512).contains(&waiting), "{waiting}");
    assert!(said(&mut router).starts_with(&format!("{waiting} packets wait")));
    assert_eq!(router.sent("e1").len(), 1200);
    for number in 0..1200 {
        router.send("e1", &is_at(host(number)));
    }
    let arrived = router.sent("e1");
    assert_eq!(arrived.len(), waiting);
    assert_eq!(arrived.last().unwrap()[30..34], host(1199).octets());
    let forgotten = 1200 - waiting;
    assert_eq!(
        said(&mut router),
        format!(
            "0 packets wait for IPv4 and IPv6 neighbours; {forgotten} were forgotten unanswered"
        )
    );
    assert_eq!(router.count("ip4-glean", "made-room"), forgotten as u64);
    assert_eq!(router.buffers_in_use(), 0);
}
