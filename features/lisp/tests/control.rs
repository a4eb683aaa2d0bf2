//! Mappings that are requested, learned, forgotten, and given to others.

use std::time::Duration;

use quiver_control::IpPrefix;
use quiver_lisp::database::{Action, Eid, Locator};
use quiver_lisp::message::{MapReply, MapRequest, Message, Record, encapsulated};
use quiver_testkit::Router;

use crate::mappings::{ends, frame, router};

const RESOLVER: [u8; 4] = [203, 0, 113, 9];
const LOCAL: [u8; 4] = [192, 0, 2, 1];
/// Ethernet, IPv4, UDP.
const LINK: usize = 14;
const HEADERS: usize = LINK + 28;

fn eid(address: &str, length: u8) -> Eid {
    Eid::new(0, IpPrefix { address: address.parse().expect("an address"), length })
}

fn sum(bytes: &[u8]) -> u16 {
    let pad = [bytes, &[0]].concat();
    let all: u32 = pad.chunks_exact(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    !((all & 0xffff) + (all >> 16)) as u16
}

/// An IPv4 packet with a control message.
fn packet(from: [u8; 4], to: [u8; 4], message: &[u8]) -> Vec<u8> {
    let udp_len = (8 + message.len()) as u16;
    let mut out = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
    out[2..4].copy_from_slice(&(20 + udp_len).to_be_bytes());
    out.extend(from.iter().chain(&to));
    let checksum = sum(&out);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    out.extend([4342u16, 4342, udp_len, 0].iter().flat_map(|field| field.to_be_bytes()));
    out.extend(message);
    out
}

fn receive(router: &mut Router, from: [u8; 4], message: &[u8]) {
    let link = [2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xb1, 8, 0];
    router.send("e1", &[&link[..], &packet(from, LOCAL, message)].concat());
    router.run();
}

/// A router that requests mappings of 198.18.0.0/15, and one of its requests.
fn requesting() -> (Router, MapRequest) {
    let mut router = router();
    router.cli("lisp map-resolver add 203.0.113.9");
    router.cli("lisp remote-mapping add eid 100.64.0.0/10 action send-map-request");
    let request = request(&mut router, [100, 64, 1, 1]).expect("a request");
    (router, request)
}

/// The request that a packet to an address causes.
fn request(router: &mut Router, to: [u8; 4]) -> Option<MapRequest> {
    router.send("e0", &frame(to, 1));
    router.run();
    let sent = router.sent("e1");
    let sent = sent.iter().find(|frame| ends(frame).1 == RESOLVER)?;
    let Ok(Message::Encapsulated(inner)) = Message::read(&sent[HEADERS..]) else {
        panic!("an encapsulated message");
    };
    match Message::read(&inner[28..]) {
        Ok(Message::Request(request)) => Some(request),
        other => panic!("{other:?}"),
    }
}

fn reply(nonce: u64, eid: Eid, ttl_minutes: u32, locators: &[&str]) -> Vec<u8> {
    let locator = |text: &&str| Locator {
        address: text.parse().expect("an address"),
        priority: 1,
        weight: 1,
    };
    let locators = locators.iter().map(locator).collect();
    let record =
        Record { ttl_minutes, action: Action::None, is_authoritative: true, eid, locators };
    MapReply { nonce, is_probe: false, records: vec![record] }.write()
}

fn goes_to(router: &mut Router, to: [u8; 4]) -> Option<[u8; 4]> {
    router.send("e0", &frame(to, 1));
    router.sent("e1").first().map(|frame| ends(frame).1)
}

#[test]
fn a_mapping_is_requested_once_learned_and_forgotten() {
    let (mut router, request) = requesting();
    assert_eq!(request.eids, [eid("100.64.1.1", 32)]);
    assert_eq!(request.itr_locators[0].to_string(), "192.0.2.1");
    assert_eq!(router.count("lisp-map-request-ip4", "no-mapping"), 1);
    // The next packets wait for the same reply.
    assert!(goes_to(&mut router, [100, 64, 1, 1]).is_none());
    let learned = eid("100.64.1.0", 24);
    receive(&mut router, RESOLVER, &reply(request.nonce, learned, 2, &["203.0.113.7"]));
    assert_eq!(goes_to(&mut router, [100, 64, 1, 200]), Some([203, 0, 113, 7]));
    let learned = router.json("show lisp status");
    assert_eq!(learned["learned_mappings"], 1, "{learned}");
    // It is no part of the configuration, and ends with its time.
    assert!(!quiver_testkit::configuration::running(&mut router).contains("203.0.113.7"));
    router.advance(Duration::from_secs(121));
    assert_ne!(goes_to(&mut router, [100, 64, 1, 200]), Some([203, 0, 113, 7]));
}

#[test]
fn a_reply_that_nobody_asked_for_or_that_says_too_much_is_refused() {
    let (mut router, request) = requesting();
    for (nonce, prefix) in
        [(request.nonce ^ 1, eid("100.64.1.0", 24)), (request.nonce, eid("100.0.0.0", 8))]
    {
        receive(&mut router, RESOLVER, &reply(nonce, prefix, 2, &["203.0.113.7"]));
        assert_ne!(goes_to(&mut router, [100, 64, 1, 1]), Some([203, 0, 113, 7]), "{prefix:?}");
    }
    router.advance(Duration::from_secs(5));
    let request = self::request(&mut router, [100, 64, 2, 1]).expect("another request");
    let elsewhere = reply(request.nonce, eid("100.65.0.0", 16), 2, &["203.0.113.7"]);
    receive(&mut router, RESOLVER, &elsewhere);
    assert_ne!(goes_to(&mut router, [100, 65, 0, 1]), Some([203, 0, 113, 7]));
}

#[test]
fn a_request_without_a_reply_is_sent_three_times() {
    let (mut router, _) = requesting();
    let mut sent = 1;
    for _ in 0..20 {
        router.advance(Duration::from_millis(500));
        sent += router.sent("e1").iter().filter(|frame| ends(frame).1 == RESOLVER).count();
    }
    assert_eq!(sent, 3);
}

#[test]
fn requests_for_the_eids_of_this_site_are_answered() {
    let mut router = router();
    let asked = MapRequest {
        nonce: 77,
        is_probe: false,
        solicits: false,
        itr_locators: vec![[203, 0, 113, 5].into()],
        eids: vec![eid("10.0.0.9", 32), eid("11.0.0.0", 32)],
    };
    let inner = packet([203, 0, 113, 5], [10, 0, 0, 9], &asked.write());
    for message in [asked.write(), encapsulated(&inner)] {
        receive(&mut router, [203, 0, 113, 4], &message);
        let sent = router.sent("e1");
        assert_eq!(sent.len(), 1);
        assert_eq!(ends(&sent[0]), (LOCAL, [203, 0, 113, 5]));
        let Ok(Message::Reply(reply)) = Message::read(&sent[0][HEADERS..]) else {
            panic!("a reply");
        };
        assert_eq!((reply.nonce, reply.records.len()), (77, 1));
        let record = &reply.records[0];
        assert_eq!((record.eid, record.is_authoritative), (eid("10.0.0.0", 24), true));
        let locators: Vec<_> =
            record.locators.iter().map(|locator| locator.address.to_string()).collect();
        assert_eq!(locators, ["192.0.2.1", "2001:db8:1::1"]);
    }
    // Of others nothing is said.
    let stranger = MapRequest { eids: vec![eid("11.0.0.0", 32)], ..asked };
    receive(&mut router, [203, 0, 113, 4], &stranger.write());
    assert!(router.sent("e1").is_empty());
}
