//! The relay agent and the client in a router: who is believed, what leaves where, what routes
//! follow.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use quiver_dhcp::datagram::{Datagram, packet};
use quiver_testkit::{Register, Router, Settings};
use quiver_wire::dhcp4::{Dhcp4Header, Message, REPLY, Writer, message_type, option};
use quiver_wire::dhcp6::{self, IaPrefix, RelayHeader, RelayMessage};
use quiver_wire::{EtherType, EthernetHeader, Header, MacAddress};

const FEATURES: [Register; 3] =
    [quiver_ethernet::register, quiver_ip::register, quiver_dhcp::register];
const E0: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 0]);
const E1: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);
const CLIENT: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xc]);
const SERVER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x5]);
const NODE4: &str = "dhcp-proxy";
const NODE6: &str = "dhcpv6-proxy";
const CLIENT6: &str = "fe80::c";

/// Clients are behind `e0`, the server, 192.0.2.53 and 2001:db8::53, behind `e1`.
fn router() -> Router {
    let mut router = Router::with(Settings::default(), &FEATURES);
    for line in [
        "create test interface e0",
        "create test interface e1",
        "set interface state e0 up",
        "set interface state e1 up",
        "set interface ip address e0 10.0.0.1/24",
        "set interface ip address e0 2001:db8:1::1/64",
        "set interface ip address e1 192.0.2.1/24",
        "set interface ip address e1 2001:db8::1/64",
        "ip neighbor e1 192.0.2.53 02:00:00:00:00:05 static",
        "ip neighbor e1 2001:db8::53 02:00:00:00:00:05 static",
        "ip neighbor e0 fe80::c 02:00:00:00:00:0c static",
        "set dhcp proxy server 192.0.2.53",
        "set dhcpv6 proxy server 2001:db8::53",
    ] {
        router.cli(line);
    }
    router.advance(Duration::from_secs(2));
    router
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn frame(to: MacAddress, from: MacAddress, packet: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 4 { EtherType::IPV4 } else { EtherType::IPV6 };
    let mut out = vec![0; EthernetHeader::LEN];
    EthernetHeader::new(to, from, kind).write(&mut out).expect("room");
    out.extend(packet);
    out
}

fn message(change: impl Fn(&mut Dhcp4Header), options: &[(u8, &[u8])]) -> Vec<u8> {
    let mut header = Dhcp4Header::request(CLIENT, 7);
    change(&mut header);
    let mut out = vec![0; 2048];
    let mut writer = Writer::begin(&mut out, &header).expect("room");
    options.iter().for_each(|(code, data)| writer.put(*code, data).expect("room"));
    let length = writer.finish().expect("room");
    out.truncate(length);
    out
}

/// A client's message, by broadcast.
fn asks(payload: &[u8]) -> Vec<u8> {
    let bytes = packet(ip("0.0.0.0"), ip("255.255.255.255"), (68, 67), payload).expect("fits");
    frame(MacAddress::BROADCAST, CLIENT, &bytes)
}

fn discover() -> Vec<u8> {
    message(|_| (), &[(option::MESSAGE_TYPE, &[message_type::DISCOVER])])
}

fn answers(from: &str, to: &str, payload: &[u8]) -> Vec<u8> {
    let bytes = packet(ip(from), ip(to), (67, 67), payload).expect("fits");
    frame(E1, SERVER, &bytes)
}

/// Receive a frame, and let the control thread answer.
fn send(router: &mut Router, interface: &str, bytes: &[u8]) {
    router.send(interface, bytes);
    router.advance(Duration::from_millis(20));
}

fn offer(change: impl Fn(&mut Dhcp4Header), options: &[(u8, &[u8])]) -> Vec<u8> {
    let all = [&[(option::MESSAGE_TYPE, &[message_type::OFFER][..])], options].concat();
    message(
        |header| {
            header.op = REPLY;
            header.set_yiaddr(Ipv4Addr::new(10, 0, 0, 9));
            header.set_giaddr(Ipv4Addr::new(10, 0, 0, 1));
            change(header);
        },
        &all,
    )
}

/// What a show answers, or why it does not.
fn answer(router: &mut Router, line: &str) -> String {
    router.execute(line).map_or_else(|refusal| refusal.to_string(), |output| output.to_text())
}

#[test]
fn a_client_is_relayed_and_gets_its_reply() {
    let mut router = router();
    send(&mut router, "e0", &asks(&discover()));
    let sent = router.sent("e1");
    let datagram = Datagram::of(&sent[0][14..]).expect("a datagram");
    assert_eq!((datagram.source, datagram.destination), (ip("10.0.0.1"), ip("192.0.2.53")));
    assert_eq!((datagram.ports, datagram.is_good(), sent.len()), ((67, 67), true, 1));
    let read = Message::parse(datagram.payload).expect("a message");
    assert_eq!((read.header.hops, read.header.giaddr()), (1, Ipv4Addr::new(10, 0, 0, 1)));
    let ours = read.option(option::RELAY_AGENT).expect("option 82").to_vec();
    assert_eq!(ours, b"\x01\x02e0");

    let reply = offer(|_| (), &[(option::RELAY_AGENT, &ours)]);
    send(&mut router, "e1", &answers("192.0.2.53", "10.0.0.1", &reply));
    let sent = router.sent("e0");
    assert_eq!((&sent[0][..6], &sent[0][6..12]), (&CLIENT.0[..], &E0.0[..]));
    let datagram = Datagram::of(&sent[0][14..]).expect("a datagram");
    assert_eq!((datagram.source, datagram.destination), (ip("10.0.0.1"), ip("10.0.0.9")));
    assert_eq!((datagram.ports, datagram.is_good()), ((67, 68), true));
    let read = Message::parse(datagram.payload).expect("a message");
    assert_eq!(read.option(option::RELAY_AGENT), None);
    assert_eq!(read.message_type(), Some(message_type::OFFER));

    let loud = offer(|header| header.set_flags(0x8000), &[(option::RELAY_AGENT, &ours)]);
    send(&mut router, "e1", &answers("192.0.2.53", "10.0.0.1", &loud));
    let sent = router.sent("e0");
    assert_eq!((&sent[0][..6], &sent[0][30..34]), (&[255; 6][..], &[255; 4][..]));
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    assert_eq!((router.count(NODE4, "to-server"), router.count(NODE4, "to-client")), (1, 2));
}

#[test]
fn each_server_gets_a_copy_and_a_shared_address_says_its_link() {
    let mut router = router();
    router.cli("create loopback interface instance 0");
    router.cli("set interface ip address loop0 198.51.100.1/32");
    router.cli("set interface state loop0 up");
    router.cli("ip neighbor e1 192.0.2.54 02:00:00:00:00:06 static");
    router.cli("set dhcp proxy server 192.0.2.54 src-address 198.51.100.1");
    router.cli("set dhcp option-82 vss table 0 vpn-ascii-id red");
    router.cli("set interface dhcp option-82 e0 circuit-id \"port 7\" server-override");
    send(&mut router, "e0", &asks(&discover()));
    let sent = router.sent("e1");
    assert_eq!(sent.len(), 2);
    let datagram = Datagram::of(&sent[1][14..]).expect("a datagram");
    assert_eq!(datagram.source, ip("198.51.100.1"));
    let read = Message::parse(datagram.payload).expect("a message");
    assert_eq!(read.header.giaddr(), Ipv4Addr::new(198, 51, 100, 1));
    let ours = read.option(option::RELAY_AGENT).expect("option 82").to_vec();
    let expected: &[u8] =
        b"\x01\x06port 7\x05\x04\x0a\0\0\x01\x0a\x01\0\x0b\x04\x0a\0\0\x01\x97\x04\0red\x98\0";
    assert_eq!(ours, expected);
    let giaddr = Ipv4Addr::new(198, 51, 100, 1);
    let reply = offer(|header| header.set_giaddr(giaddr), &[(option::RELAY_AGENT, &ours)]);
    send(&mut router, "e1", &answers("192.0.2.54", "198.51.100.1", &reply));
    assert_eq!(router.sent("e0").len(), 1);
    let nameless = offer(|header| header.set_giaddr(giaddr), &[]);
    send(&mut router, "e1", &answers("192.0.2.54", "198.51.100.1", &nameless));
    assert_eq!(router.count(NODE4, "reply-unmatched"), 1);
    assert!(router.sent("e0").is_empty());
}

#[test]
fn who_pretends_is_counted_and_nothing_leaves() {
    let mut router = router();
    let discover: (u8, &[u8]) = (option::MESSAGE_TYPE, &[message_type::DISCOVER]);
    let with_82 = message(|_| (), &[discover, (82, b"\x01\x02e1")]);
    let ours = message(|h| h.set_giaddr(Ipv4Addr::new(192, 0, 2, 1)), &[discover]);
    let mut cut = message(|_| (), &[discover]);
    cut[244] = 255;
    (cut[243], cut[244]) = (60, 255);
    let cases = [
        (asks(&with_82), "option-82-untrusted"),
        (asks(&ours), "giaddr-ours"),
        (asks(&message(|h| h.hops = 16, &[discover])), "too-many-hops"),
        (asks(&message(|h| h.op = 3, &[discover])), "bad-op"),
        (asks(&message(|h| h.hardware_len = 17, &[discover])), "hardware-length"),
        (asks(&cut), "options-truncated"),
        (asks(&[1; 100]), "truncated"),
        (asks(&offer(|_| (), &[])), "not-a-server"),
    ];
    for (bytes, reason) in cases {
        let before = router.count(NODE4, reason);
        send(&mut router, "e0", &bytes);
        assert_eq!(router.count(NODE4, reason), before + 1, "{reason}");
        assert!(router.sent("e1").is_empty() && router.sent("e0").is_empty(), "{reason}");
    }
    for (from, giaddr, reason) in [
        ("192.0.2.77", "10.0.0.1", "not-a-server"),
        ("192.0.2.53", "203.0.113.1", "reply-unmatched"),
        ("192.0.2.53", "0.0.0.0", "reply-unmatched"),
    ] {
        let before = router.count(NODE4, reason);
        let giaddr: Ipv4Addr = giaddr.parse().expect("an address");
        let reply = offer(|header| header.set_giaddr(giaddr), &[]);
        send(&mut router, "e1", &answers(from, "192.0.2.1", &reply));
        assert_eq!(router.count(NODE4, reason), before + 1, "{from} {giaddr}");
        assert!(router.sent("e0").is_empty());
    }
}

#[test]
fn a_flood_is_bounded_and_leaves_others_their_share() {
    let mut router = router();
    for _ in 0..500 {
        router.send("e0", &asks(&discover()));
    }
    router.advance(Duration::from_millis(20));
    let taken = router.count(NODE4, "taken");
    assert!((64..=80).contains(&taken), "{taken}");
    assert_eq!(taken + router.count(NODE4, "too-many"), 500);
    assert_eq!(router.sent("e1").len() as u64, taken);
    send(&mut router, "e1", &answers("192.0.2.53", "10.0.0.1", &offer(|_| (), &[])));
    assert_eq!(router.count(NODE4, "to-client"), 1);
}

#[test]
fn clients_of_a_table_without_a_server_are_not_relayed() {
    let mut router = router();
    router.cli("ip table add 7");
    router.cli("create test interface e2");
    router.cli("set interface state e2 up");
    router.cli("set interface ip table e2 7");
    router.cli("set interface ip address e2 10.0.7.1/24");
    send(&mut router, "e2", &asks(&discover()));
    assert_eq!(router.count(NODE4, "not-configured"), 1);
    router.cli("set dhcp proxy server 192.0.2.53 rx-fib-id 7");
    send(&mut router, "e2", &asks(&discover()));
    assert_eq!(router.sent("e1").len(), 1);
    router.cli("set dhcp proxy server 192.0.2.53 rx-fib-id 7 del");
    send(&mut router, "e2", &asks(&discover()));
    assert_eq!(router.count(NODE4, "not-configured"), 2);
}

fn asks6(payload: &[u8]) -> Vec<u8> {
    let bytes = packet(ip(CLIENT6), ip("ff02::1:2"), (546, 547), payload).expect("fits");
    frame(MacAddress([0x33, 0x33, 0, 1, 0, 2]), CLIENT, &bytes)
}

fn answers6(peer: &str, interface: &str, inner: &[u8]) -> Vec<u8> {
    let peer: Ipv6Addr = peer.parse().expect("an address");
    let link = "2001:db8:1::1".parse().expect("an address");
    let header = RelayHeader::new(dhcp6::message::RELAY_REPLY, 0, link, peer);
    let mut out = vec![0; 1024];
    let mut writer = dhcp6::Writer::relay(&mut out, &header).expect("room");
    writer.put(dhcp6::option::INTERFACE_ID, interface.as_bytes()).expect("room");
    writer.put(dhcp6::option::RELAY_MESSAGE, inner).expect("room");
    let length = writer.finish();
    let bytes = packet(ip("2001:db8::53"), ip("2001:db8:1::1"), (547, 547), &out[..length]);
    frame(E1, SERVER, &bytes.expect("fits"))
}

/// A message of a client or server with prefixes.
fn with_prefixes(kind: u8, transaction: u8, valid_s: u32, prefixes: &[&str]) -> Vec<u8> {
    let mut out = vec![kind, 0, 0, transaction, 0, 25];
    out.extend((12 + 29 * prefixes.len() as u16).to_be_bytes());
    out.extend([0; 12]);
    for prefix in prefixes {
        let prefix = prefix.parse().expect("an address");
        out.extend([0, 26, 0, 25]);
        out.extend(IaPrefix { preferred_s: valid_s, valid_s, length: 56, prefix }.bytes());
    }
    out
}

#[test]
fn a_client_is_relayed_over_ipv6_and_gets_its_reply() {
    let mut router = router();
    send(&mut router, "e0", &asks6(&[1, 0, 0, 7]));
    let sent = router.sent("e1");
    let datagram = Datagram::of(&sent[0][14..]).expect("a datagram");
    assert_eq!((datagram.source, datagram.destination), (ip("2001:db8:1::1"), ip("2001:db8::53")));
    assert_eq!((datagram.ports, datagram.is_good()), ((547, 547), true));
    let read = RelayMessage::parse(datagram.payload).expect("a message");
    assert_eq!(IpAddr::from(read.header.peer_address()), ip(CLIENT6));
    assert_eq!(IpAddr::from(read.header.link_address()), ip("2001:db8:1::1"));
    assert_eq!(read.options.find(dhcp6::option::INTERFACE_ID), Some(&b"e0"[..]));

    send(&mut router, "e1", &answers6(CLIENT6, "e0", &[2, 0, 0, 7]));
    let sent = router.sent("e0");
    assert_eq!((&sent[0][..6], sent.len()), (&CLIENT.0[..], 1));
    let datagram = Datagram::of(&sent[0][14..]).expect("a datagram");
    assert_eq!((datagram.source, datagram.destination), (ip("fe80::fe:ff:fe00:0"), ip(CLIENT6)));
    assert_eq!((datagram.ports, datagram.payload), ((547, 546), &[2, 0, 0, 7][..]));

    send(&mut router, "e1", &answers6(CLIENT6, "e0", &[13, 0, 0, 7]));
    let sent = router.sent("e0");
    assert_eq!(Datagram::of(&sent[0][14..]).expect("a datagram").ports, (547, 547));
    assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    for (bytes, on, reason) in [
        (asks6(&[2, 0, 0, 7]), "e0", "wrong-message"),
        (asks6(&[13; 40]), "e0", "not-a-server"),
        (asks6(&[1, 0]), "e0", "truncated"),
        (answers6("ff02::1", "e0", &[2, 0, 0, 7]), "e1", "bad-peer-address"),
        (answers6(CLIENT6, "e0", &[]), "e1", "no-relay-message"),
        (answers6("2001:db8:1::1", "e0", &[2, 0, 0, 7]), "e1", "bad-peer-address"),
    ] {
        let before = router.count(NODE6, reason);
        send(&mut router, on, &bytes);
        assert_eq!(router.count(NODE6, reason), before + 1, "{reason}");
        assert!(router.sent("e0").is_empty() && router.sent("e1").is_empty(), "{reason}");
    }
}

#[test]
fn a_delegated_prefix_has_a_route_for_its_lifetime() {
    let mut router = router();
    let route = |router: &mut Router| answer(router, "show ip6 fib 2001:db8:f00::1");
    let delegate = |router: &mut Router, valid_s| {
        let reply = with_prefixes(7, 7, valid_s, &["2001:db8:f00::"]);
        send(router, "e1", &answers6(CLIENT6, "e0", &reply));
    };
    delegate(&mut router, 100);
    assert!(route(&mut router).contains("fe80::c"), "{}", route(&mut router));
    let shown = router.json("show dhcpv6 proxy prefixes");
    assert_eq!(
        (&shown[0]["prefix"], &shown[0]["interface"]),
        (&"2001:db8:f00::/56".into(), &"e0".into())
    );
    let inside = packet(ip("2001:db8::53"), ip("2001:db8:f00::1"), (1, 2), b"hello").expect("fits");
    router.sent("e0");
    router.send("e1", &frame(E1, SERVER, &inside));
    let sent = router.sent("e0");
    assert_eq!((&sent[0][..6], sent.len()), (&CLIENT.0[..], 1));

    router.cli("set interface state e0 down");
    assert!(!route(&mut router).contains("fe80::c"));
    router.cli("set interface state e0 up");
    router.advance(Duration::from_secs(1));
    assert!(route(&mut router).contains("fe80::c"));
    router.advance(Duration::from_secs(101));
    assert!(!route(&mut router).contains("fe80::c"), "its lifetime is over");

    delegate(&mut router, 100);
    send(&mut router, "e0", &asks6(&with_prefixes(8, 9, 0, &["2001:db8:f00::"])));
    assert!(route(&mut router).contains("fe80::c"), "the server has not agreed yet");
    send(&mut router, "e1", &answers6(CLIENT6, "e0", &[7, 0, 0, 9]));
    assert!(!route(&mut router).contains("fe80::c"), "it was released");

    delegate(&mut router, 100);
    router.cli("clear dhcpv6 proxy prefixes 2001:db8:f00::/56");
    assert!(!route(&mut router).contains("fe80::c"));
    let refused = router.refused("clear dhcpv6 proxy prefixes 2001:db8:f00::/56");
    assert!(refused.contains("is not delegated"), "{refused}");
    delegate(&mut router, 100);
    let id = router.id("e0");
    router.engine().delete_interface(id).expect("deleted");
    assert_eq!(router.json("show dhcpv6 proxy prefixes"), serde_json::json!([]));
}

/// The message in the last frame that an interface has sent.
fn last_request(router: &mut Router, interface: &str) -> (u8, u32, Vec<u8>) {
    let sent = router.sent(interface);
    let frame = sent.iter().rev().find(|frame| {
        frame[12..14] == [8, 0] && Datagram::of(&frame[14..]).is_some_and(|d| d.ports == (68, 67))
    });
    let frame = frame.expect("a message of the client").clone();
    let payload = Datagram::of(&frame[14..]).expect("a datagram").payload;
    let read = Message::parse(payload).expect("a message");
    (read.message_type().expect("a type"), read.header.xid(), frame.clone())
}

/// A server's reply to the client on `e2`.
fn gives(kind: u8, xid: u32, mac: MacAddress) -> Vec<u8> {
    let payload = message(
        |header| {
            *header = Dhcp4Header::request(mac, xid);
            header.op = REPLY;
            header.set_yiaddr(Ipv4Addr::new(10, 0, 9, 77));
        },
        &[
            (option::MESSAGE_TYPE, &[kind]),
            (option::SERVER_ID, &[10, 0, 9, 1]),
            (option::SUBNET_MASK, &[255, 255, 255, 0]),
            (option::LEASE_TIME, &[0, 0, 0, 100]),
            (option::ROUTER, &[10, 0, 9, 254]),
            (option::NAME_SERVER, &[10, 0, 9, 53]),
        ],
    );
    let bytes = packet(ip("10.0.9.1"), ip("10.0.9.77"), (67, 68), &payload).expect("fits");
    frame(E0, SERVER, &bytes)
}

#[test]
fn an_interface_gets_its_address_from_a_server_and_gives_it_back() {
    let mut router = Router::with(Settings::default(), &FEATURES);
    let mac = E0;
    router.cli("create test interface e2");
    router.cli("set interface state e2 up");
    router.cli("set dhcp client intfc e2 hostname edge1");
    router.advance(Duration::from_secs(3));
    let (kind, xid, frame) = last_request(&mut router, "e2");
    assert_eq!((kind, &frame[..6]), (message_type::DISCOVER, &[255; 6][..]));
    send(&mut router, "e2", &gives(message_type::OFFER, xid, CLIENT));
    assert_eq!(router.count("ip4-dhcp-client-detect", "taken"), 0, "another client's");
    send(&mut router, "e2", &gives(message_type::OFFER, xid ^ 1, mac));
    assert_eq!(router.count("ip4-dhcp-client-detect", "other-client"), 1);
    send(&mut router, "e2", &gives(message_type::OFFER, xid, mac));
    let (kind, xid, _) = last_request(&mut router, "e2");
    assert_eq!(kind, message_type::REQUEST);
    send(&mut router, "e2", &gives(message_type::ACK, xid, mac));
    let shown = router.json("show dhcp client")[0].clone();
    assert_eq!((&shown["state"], &shown["address"]), (&"bound".into(), &"10.0.9.77/24".into()));
    assert_eq!(
        (&shown["routers"], &shown["name_servers"]),
        (&"10.0.9.254".into(), &"10.0.9.53".into())
    );
    assert!(router.cli("show interface address e2").contains("10.0.9.77/24 (leased)"));
    assert!(answer(&mut router, "show ip fib 198.51.100.1").contains("10.0.9.254"));
    let config = router.cli("show running-config");
    assert!(config.contains("set dhcp client intfc e2 hostname \"edge1\""), "{config}");
    assert!(!config.contains("10.0.9.77"), "{config}");

    router.cli("ip neighbor e2 10.0.9.1 02:00:00:00:00:05 static");
    router.advance(Duration::from_secs(51));
    let (kind, _, frame) = last_request(&mut router, "e2");
    assert_eq!((kind, &frame[..6]), (message_type::REQUEST, &SERVER.0[..]));
    assert_eq!(router.json("show dhcp client")[0]["state"], "renewing");
    router.cli("set dhcp client intfc e2 del");
    let (kind, _, frame) = last_request(&mut router, "e2");
    assert_eq!((kind, &frame[..6]), (message_type::RELEASE, &SERVER.0[..]));
    assert!(!router.cli("show interface address e2").contains("10.0.9.77"));
    assert!(!answer(&mut router, "show ip fib 198.51.100.1").contains("10.0.9.254"));
    assert!(router.refused("set dhcp client intfc e2 del").contains("has no DHCP client"));
}

#[test]
fn a_lease_that_nobody_renews_ends() {
    let mut router = Router::with(Settings::default(), &FEATURES);
    router.cli("create test interface e2");
    router.cli("set interface state e2 up");
    router.cli("set dhcp client intfc e2");
    router.advance(Duration::from_secs(3));
    let (_, xid, _) = last_request(&mut router, "e2");
    send(&mut router, "e2", &gives(message_type::OFFER, xid, E0));
    send(&mut router, "e2", &gives(message_type::ACK, xid, E0));
    assert_eq!(router.json("show dhcp client")[0]["state"], "bound");
    router.advance(Duration::from_secs(101));
    assert_eq!(router.json("show dhcp client")[0]["address"], serde_json::Value::Null);
    assert!(!router.cli("show interface address e2").contains("10.0.9.77"));
    let id = router.id("e2");
    router.engine().delete_interface(id).expect("deleted");
    assert_eq!(router.json("show dhcp client"), serde_json::json!([]));
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut router = Router::with(Settings::default(), &FEATURES);
    router.cli("create test interface e0");
    let long = "x".repeat(64);
    for (line, says) in [
        ("set dhcp proxy server 224.0.0.1", "no host's address"),
        ("set dhcp proxy server 192.0.2.53 src-address 2001:db8::1", "two families"),
        ("set dhcpv6 proxy server fe80::1", "no host's address"),
        ("set dhcp proxy server 192.0.2.53 del", "have no server"),
        ("set dhcp option-82 vss table 1 oui 7", "a name, or an organization"),
        ("set dhcp option-82 vss table 1 del", "no VPN was said"),
        (&format!("set interface dhcp option-82 e0 circuit-id {long}"), "1 to 63"),
        (&format!("set dhcp client intfc e0 hostname {long}"), "1 to 63"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(says), "{line}: {refused}");
    }
    let before = router.cli("show running-config");
    for number in 1..=16 {
        router.cli(&format!("set dhcp proxy server 192.0.2.{number}"));
    }
    assert!(router.refused("set dhcp proxy server 192.0.2.17").contains("16 servers"));
    for number in 1..=16 {
        router.cli(&format!("set dhcp proxy server 192.0.2.{number} del"));
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn the_configuration_is_written_as_it_was_given() {
    let mut router = Router::with(Settings::default(), &FEATURES);
    router.cli("create test interface e0");
    let lines = [
        "set dhcp proxy server 192.0.2.53 src-address 192.0.2.1",
        "set dhcp proxy server 192.0.2.54 server-fib-id 2 rx-fib-id 1",
        "set dhcp option-82 vss table 1 oui 16 vpn-index 7",
        "set dhcp option-82 vss table 2",
        "set dhcpv6 proxy server 2001:db8::53",
        "set dhcpv6 vss table 1 vpn-ascii-id \"red\"",
        "set interface dhcp option-82 e0 circuit-id \"port 7\" remote-id \"r\" server-override \
         policy append",
        "set dhcp client intfc e0 hostname \"edge1\" client-id \"x\" set-broadcast-flag",
    ];
    lines.iter().for_each(|line| drop(router.cli(line)));
    let config = router.cli("show running-config");
    let found: Vec<&str> = config.lines().filter(|line| line.contains("dhcp")).collect();
    assert_eq!(found, lines);
    router.cli("set interface dhcp option-82 e0 del");
    assert!(!router.cli("show running-config").contains("set interface dhcp"));
}
