//! What the router itself sends is cut where its way out is narrow, and put together again by who
//! gets it.

use crate::stand;

use quiver_testkit::Router;
use quiver_wire::IpProtocol;
use quiver_wire::checksum::Sum;
use stand::{FAR4, FAR6, Family, Four, ROUTER4, Whole, router, send_all};

/// Fragments as they left, put together by their offsets; how many there were.
fn whole(family: Family, frames: &[Vec<u8>]) -> (Vec<u8>, usize) {
    let mut pieces: Vec<(usize, bool, &[u8])> = frames
        .iter()
        .map(|frame| {
            let (field, data) = match family {
                Four => (u16::from_be_bytes([frame[20], frame[21]]), &frame[34..]),
                Family::Six => (u16::from_be_bytes([frame[56], frame[57]]), &frame[62..]),
            };
            match family {
                Four => (usize::from(field & 0x1fff) * 8, field & 0x2000 != 0, data),
                Family::Six => (usize::from(field & !7), field & 1 != 0, data),
            }
        })
        .collect();
    pieces.sort();
    let mut bytes = Vec::new();
    for (start, _, data) in &pieces {
        assert_eq!(*start, bytes.len(), "fragments follow each other");
        bytes.extend_from_slice(data);
    }
    let more: Vec<bool> = pieces.iter().map(|piece| piece.1).collect();
    assert!(more[..more.len() - 1].iter().all(|more| *more) && !more[more.len() - 1]);
    (bytes, pieces.len())
}

fn narrow(mtu: u32) -> Router {
    let mut router = router();
    router.cli(&format!("set interface mtu {mtu} e1"));
    router
}

#[test]
fn our_pings_are_cut_and_their_sum_is_right() {
    for family in Family::BOTH {
        let mut router = narrow(1500);
        let to = if family == Four { FAR4.to_string() } else { FAR6.to_string() };
        router.cli(&format!("ping {to} repeat 1 size 3000"));
        let frames = router.sent("e1");
        assert!(frames.iter().all(|frame| frame.len() <= 1514));
        let (bytes, count) = whole(family, &frames);
        assert_eq!((bytes.len(), count), (3008, 3));
        let sum = match family {
            Four => Sum::new(),
            Family::Six => {
                assert!(
                    frames.iter().all(|frame| frame[58..62] == frames[0][58..62]),
                    "one identification"
                );
                let from = "2001:db8:1::1".parse().unwrap();
                Sum::pseudo6(from, FAR6, IpProtocol::ICMP6, bytes.len() as u32)
            }
        };
        assert!(sum.bytes(&bytes).is_good());
        assert!(router.dropped().is_empty(), "{:?}", router.dropped());
    }
}

#[test]
fn answers_to_large_pings_are_cut() {
    for family in Family::BOTH {
        let mut router = router();
        router.cli("set interface mtu 1500 e0");
        let asked = Whole::echo(family, 1, 5000);
        send_all(&mut router, &asked.frames(1232));
        let (bytes, count) = whole(family, &router.sent("e0"));
        assert_eq!(bytes[8..], asked.payload[8..]);
        assert_eq!(count, 4);
    }
}

#[test]
fn odd_mtus_leave_no_byte_out() {
    for family in Family::BOTH {
        for mtu in [1281, 1283, 1286, 1295, 1499] {
            let mut router = router();
            router.cli(&format!("set interface mtu {mtu} e0"));
            let asked = Whole::echo(family, 1, 4001);
            send_all(&mut router, &asked.frames(1232));
            let frames = router.sent("e0");
            assert!(frames.iter().all(|frame| frame.len() <= 14 + mtu));
            assert_eq!(whole(family, &frames).0[8..], asked.payload[8..]);
        }
    }
}

#[test]
fn each_packet_of_ours_has_an_identification_of_its_own() {
    let mut router = narrow(1500);
    router.cli(&format!("ping {FAR6} repeat 3 size 1600 interval 0.01"));
    let mut seen: Vec<Vec<u8>> =
        router.sent("e1").iter().map(|frame| frame[58..62].to_vec()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3);
}

#[test]
fn a_fragment_that_is_too_long_for_the_way_out_is_cut_again() {
    let mut router = narrow(600);
    let sent = Whole::transit(Four, 7, 4000);
    // Middle and last fragment alone: more fragments stay so, offsets go on.
    send_all(&mut router, &sent.frames(1232)[1..]);
    let frames = router.sent("e1");
    let mut spans: Vec<(usize, usize, bool)> = frames
        .iter()
        .map(|frame| {
            let field = u16::from_be_bytes([frame[20], frame[21]]);
            (usize::from(field & 0x1fff) * 8, frame.len() - 34, field & 0x2000 != 0)
        })
        .collect();
    spans.sort();
    let mut at = 1232;
    for (start, length, more) in &spans {
        assert_eq!(*start, at);
        at += length;
        assert_eq!(*more, at < 4000);
    }
    assert_eq!(at, 4000);
}

#[test]
fn a_ping_to_ourselves_of_any_size_is_answered() {
    let mut router = router();
    let said = router.cli(&format!("ping {ROUTER4} repeat 1 size 9000"));
    assert!(said.contains("1 sent, 1 received"), "{said}");
    let said = router.cli("ping 2001:db8::1 repeat 1 size 9000");
    assert!(said.contains("1 sent, 1 received"), "{said}");
}

#[test]
fn each_family_has_an_mtu_of_its_own_if_it_is_set() {
    let mut router = router();
    router.cli("set interface mtu ip4 600 e1");
    router.cli("set interface mtu ip6 1300 e1");
    for (family, to, most) in [(Four, FAR4.to_string(), 600), (Family::Six, FAR6.to_string(), 1300)]
    {
        router.cli(&format!("ping {to} repeat 1 size 3000"));
        let frames = router.sent("e1");
        assert_eq!(
            frames.iter().map(Vec::len).max(),
            Some(14 + most / 8 * 8 - if family == Four { 4 } else { 0 })
        );
        assert_eq!(whole(family, &frames).0.len(), 3008);
    }
    let config = router.cli("show running-config");
    assert!(
        config.contains("set interface mtu ip4 600 e1")
            && config.contains("set interface mtu ip6 1300 e1")
    );
    assert!(router.cli("show interface e1").contains("9000/600/1300/0"));
    router.refused("set interface mtu ip6 1279 e1");
    router.refused("set interface mtu ip4 67 e1");
    router.refused("set interface mtu 67 e1");
    router.cli("set interface mtu ip4 0 e1");
    router.cli(&format!("ping {FAR4} repeat 1 size 3000"));
    assert_eq!(router.sent("e1").len(), 1);
}
