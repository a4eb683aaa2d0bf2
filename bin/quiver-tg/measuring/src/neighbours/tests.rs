//! Answers and questions of a port, untagged and behind tags.

use proptest::prelude::*;
use quiver_wire::ethernet;

use super::*;

const OURS: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const ROUTER: MacAddress = MacAddress([2, 0xfe, 0, 0, 0, 1]);

fn plays(mac: MacAddress, text: &str) -> (Neighbours, Arc<GatewayMac>) {
    let port: Port = serde_saphyr::from_str(text).expect("a port");
    let gateway_mac = Arc::default();
    (Neighbours::new(mac, &port, &gateway_mac), gateway_mac)
}

fn neighbours() -> Neighbours {
    plays(OURS, "{ip4: [198.18.0.2], ip6: [\"2001:2::2\"]}").0
}

fn router() -> Neighbours {
    plays(ROUTER, "{ip4: [198.18.0.1], ip6: [\"2001:2::1\"]}").0
}

/// What somebody answers to a frame.
fn reply(who: &Neighbours, frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; ANSWER_BYTES_MAX];
    let length = who.answer(frame, &mut out)?;
    out.truncate(length);
    Some(out)
}

/// An echo request of the router's to `target`, with `data`.
fn ping(router: &Neighbours, target: Ipv4Addr, data: &[u8]) -> Vec<u8> {
    let message = icmp4::Message::EchoRequest { identifier: 7, sequence: 9 };
    let request = icmp4::Repr { message, data };
    let ip = ip4::Repr::new(Ipv4Addr::new(198, 18, 0, 1), target, IpProtocol::ICMP, request.len());
    let seal = |out: &mut [u8]| {
        router.envelope.seal(out, OURS, EtherType::IPV4, |out| {
            let at = ip.emit(out)?;
            Ok(at + request.emit(rest(out, at)?)?)
        })
    };
    router.frame(seal).expect("a frame")
}

#[test]
fn an_echo_request_to_an_address_that_is_played_is_answered_whole() {
    for (ours, theirs) in [
        ("{ip4: [198.18.0.0/24]}", "{ip4: [198.18.0.1]}"),
        ("{ip4: [198.18.0.0/24], vlan: 100}", "{ip4: [198.18.0.1], vlan: 100}"),
        (
            "{ip4: [198.18.0.0/24], vlan: [{dot1ad: 10}, 20]}",
            "{ip4: [198.18.0.1], vlan: [{dot1ad: 10}, 20]}",
        ),
    ] {
        let ((ours, _), (router, _)) = (plays(OURS, ours), plays(ROUTER, theirs));
        let target = Ipv4Addr::new(198, 18, 0, 77);
        let data: Vec<u8> = (0..1400u32).map(|n| n as u8).collect();
        let answer = reply(&ours, &ping(&router, target, &data)).expect("an answer");
        let letter = router.envelope.open(&answer).expect("for the router");
        let (header, payload) = ip4::Repr::parse(letter.packet).expect("ip4");
        assert_eq!((header.source, header.destination), (target, Ipv4Addr::new(198, 18, 0, 1)));
        let echo = icmp4::Repr::parse(&payload[..header.payload_len]).expect("a right checksum");
        assert_eq!(echo.message, icmp4::Message::EchoReply { identifier: 7, sequence: 9 });
        assert_eq!(echo.data, data);
        assert_eq!(reply(&ours, &ping(&router, Ipv4Addr::new(198, 18, 1, 77), &data)), None);
    }
}

#[test]
fn frames_with_other_tags_or_for_other_stations_are_no_questions() {
    let target = Ipv4Addr::new(198, 18, 0, 2);
    let router = |tags: &str| plays(ROUTER, &format!("{{ip4: [198.18.0.1], vlan: {tags}}}")).0;
    let ours = |tags: &str| plays(OURS, &format!("{{ip4: [198.18.0.2], vlan: {tags}}}")).0;
    for (asked, played) in
        [("[]", "100"), ("100", "[]"), ("100", "101"), ("[{dot1ad: 10}, 20]", "[10, 20]")]
    {
        assert_eq!(
            reply(&ours(played), &ping(&router(asked), target, b"x")),
            None,
            "{asked} {played}"
        );
    }
    let mut elsewhere = ping(&router("[]"), target, b"x");
    elsewhere[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
    assert_eq!(reply(&ours("[]"), &elsewhere), None);
}

#[test]
fn a_gateway_that_is_asked_tells_where_it_is_and_tells_again_when_it_moves() {
    for (own, gateway) in [
        ("{ip4: [198.18.0.2], gateway: 198.18.0.1, vlan: 5}", "{ip4: [198.18.0.1], vlan: 5}"),
        ("{ip6: [\"2001:2::2\"], gateway: \"2001:2::1\"}", "{ip6: [\"2001:2::1\"]}"),
        ("{gateway: \"fe80::fe:ff:fe00:1\"}", "{ip6: [\"2001:2::1\"]}"),
    ] {
        let (ours, gateway_mac) = plays(OURS, own);
        let (router, _) = plays(ROUTER, gateway);
        assert_eq!(gateway_mac.get(), None);
        let answer =
            reply(&router, &ours.solicitation().expect("a solicitation")).expect("an answer");
        assert_eq!(reply(&ours, &answer), None);
        assert_eq!(gateway_mac.get(), Some(ROUTER), "{own}");
        let (moved, _) = plays(MacAddress([2, 0xfe, 0, 0, 0, 9]), gateway);
        moved.announcements().iter().for_each(|frame| {
            reply(&ours, frame);
        });
        if !own.contains("fe80") {
            assert_eq!(gateway_mac.get(), Some(MacAddress([2, 0xfe, 0, 0, 0, 9])), "{own}");
        }
    }
}

#[test]
fn an_echo_in_ip6_is_answered_with_a_right_checksum() {
    let (source, target): (Ipv6Addr, Ipv6Addr) =
        ("2001:2::1".parse().expect("address"), "2001:2::2".parse().expect("address"));
    let message = Message::EchoRequest { identifier: 1, sequence: 2, data: b"where are you" };
    let router = router();
    let frame = router
        .frame(|out| router.send_ip6(out, OURS, (source, target), 64, &message))
        .expect("a frame");
    let answer = reply(&neighbours(), &frame).expect("an answer");
    let letter = router.envelope.open(&answer).expect("for the router");
    let (header, payload) = ip6::Repr::parse(letter.packet).expect("ip6");
    let payload = &payload[..header.payload_len];
    let echo =
        Message::parse(header.source, header.destination, payload).expect("a right checksum");
    assert_eq!(echo, Message::EchoReply { identifier: 1, sequence: 2, data: b"where are you" });
}

#[test]
fn a_question_for_an_address_that_is_played_is_answered_with_its_mac() {
    let ask = |target| {
        let solicitation = arp::Repr::request(ROUTER, Ipv4Addr::new(198, 18, 0, 1), target);
        let router = router();
        let seal = |out: &mut [u8]| {
            router
                .envelope
                .seal(out, MacAddress::BROADCAST, EtherType::ARP, |out| solicitation.emit(out))
        };
        reply(&neighbours(), &router.frame(seal).expect("frame"))
    };
    let answer = ask(Ipv4Addr::new(198, 18, 0, 2)).expect("answer");
    let (header, packet) = ethernet::Repr::parse(&answer).expect("ethernet");
    assert_eq!((header.destination, header.source), (ROUTER, OURS));
    let (reply, _) = arp::Repr::parse(packet).expect("arp");
    assert_eq!((reply.operation, reply.sender_mac), (arp::Operation::Reply, OURS));
    assert_eq!(reply.sender_ip, Ipv4Addr::new(198, 18, 0, 2));
    assert_eq!(answer.len(), 60);
    assert_eq!(ask(Ipv4Addr::new(198, 18, 0, 3)), None);
}

#[test]
fn a_solicitation_is_answered_with_an_advertisement_whose_checksum_is_right() {
    let (source, target): (Ipv6Addr, Ipv6Addr) =
        ("2001:2::1".parse().expect("address"), "2001:2::2".parse().expect("address"));
    let group = address::solicited_node(target);
    let mut bytes = [0u8; 14 + 40 + 24];
    let to = MacAddress::for_ip6_multicast(group);
    ethernet::Repr { destination: to, source: ROUTER, ether_type: EtherType::IPV6 }
        .emit(&mut bytes)
        .expect("ethernet");
    let options = nd::Options::new(&[]).expect("options");
    let message = Message::Nd(Nd::NeighborSolicitation { target, options });
    let payload_len = message.emit(source, group, &mut bytes[54..]).expect("message");
    ip6::Repr {
        traffic_class: 0,
        flow_label: 0,
        next_header: IpProtocol::ICMP6,
        hop_limit: 255,
        source,
        destination: group,
        payload_len,
    }
    .emit(&mut bytes[14..])
    .expect("ip6");
    let answer = reply(&neighbours(), &bytes).expect("answer");
    let (header, packet) = ethernet::Repr::parse(&answer).expect("ethernet");
    assert_eq!((header.destination, header.source), (ROUTER, OURS));
    let (header, payload) = ip6::Repr::parse(packet).expect("ip6");
    assert_eq!((header.source, header.destination, header.hop_limit), (target, source, 255));
    let reply = Message::parse(header.source, header.destination, payload).expect("checksum");
    let Message::Nd(Nd::NeighborAdvertisement { flags, target: told, options }) = reply else {
        panic!("{reply:?}");
    };
    assert!(flags.contains(NeighborFlags::SOLICITED) && flags.contains(NeighborFlags::OVERRIDE));
    assert_eq!((told, options.target_mac()), (target, Some(OURS)));
}

#[test]
fn every_address_is_announced_once() {
    // The IPv4 address, the IPv6 address and the link-local one.
    assert_eq!(neighbours().announcements().len(), 3);
}

proptest! {
    #[test]
    fn no_frame_panics(mut frame in prop::collection::vec(any::<u8>(), 0..120), kind in 0usize..3) {
        let types: [[u8; 2]; 3] = [[8, 6], [0x86, 0xdd], [8, 0]];
        if let Some(place) = frame.get_mut(12..14) {
            place.copy_from_slice(&types[kind]);
        }
        reply(&neighbours(), &frame);
    }
}
