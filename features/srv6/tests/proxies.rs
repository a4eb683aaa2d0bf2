//! What operators type about proxies, and what comes of bytes that nobody meant.

use proptest::prelude::*;
use quiver_testkit::Router;

fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_bridge::register,
        quiver_ip::register,
        quiver_srv6::register,
    ]);
    for (number, name) in ["e0", "e1", "e2", "e3"].into_iter().enumerate() {
        router.interface(name);
        router.cli(&format!("set interface ip address {name} 2001:db8:{number}::1/64"));
        router.cli(&format!("set interface ip address {name} 10.0.{number}.1/24"));
        router.cli(&format!("ip neighbor {name} 2001:db8:{number}::2 02:00:00:00:00:0{number}"));
        router.cli(&format!("ip neighbor {name} 10.0.{number}.2 02:00:00:00:00:0{number}"));
    }
    router.interface("e4");
    router.interface("e5");
    router.cli("ip route add fc00::/16 via 2001:db8:1::2");
    router
}

fn configured(router: &mut Router) -> Vec<String> {
    let all = router.cli("show running-config");
    all.lines().filter(|line| line.starts_with("sr localsid")).map(str::to_owned).collect()
}

const STATIC: &str = "sr localsid address fc00:0:1::4 behavior end.as nh 10.0.2.2 oif e2 iif e3 \
                      src fc00::1 next fc00:0:2::2 next fc00:0:3::3";

#[test]
fn proxies_are_written_back_as_they_were_given_and_leave_nothing_behind() {
    let mut router = router();
    let features =
        |router: &mut Router, name: &str| router.json(&format!("show interface features {name}"));
    let before = (features(&mut router, "e3"), features(&mut router, "e5"));
    let lines = [
        STATIC,
        "sr localsid address fc00:0:1::6 behavior end.ad nh 2001:db8:2::2 oif e2 iif e3",
        "sr localsid address fc00:0:1::c behavior end.ad.flow nh 10.0.1.2 oif e1 iif e1 flows 64",
        "sr localsid address fc00:0:1::a behavior end.am nh 2001:db8:2::2 oif e2 iif e2 nat cache",
        "sr localsid address fc00:0:1::b behavior end.as oif e4 iif e5 src fc00::1 next \
         fc00:0:2::2 reduced hop-limit 9 bypass",
    ];
    lines.iter().for_each(|line| drop(router.cli(line)));
    let mut written = configured(&mut router);
    written.sort();
    let mut given = lines.to_vec();
    given.sort_unstable();
    assert_eq!(written, given);
    let shown = router.json("show sr proxies");
    assert_eq!(shown.as_array().map(Vec::len), Some(5), "{shown}");
    for line in lines {
        router.cli(&line.split(" behavior").next().unwrap().replace("localsid", "localsid del"));
    }
    assert!(configured(&mut router).is_empty());
    assert_eq!((features(&mut router, "e3"), features(&mut router, "e5")), before);
    // The port routes again.
    router.cli("set interface ip address e5 10.0.5.1/24");
    lines[..3].iter().for_each(|line| drop(router.cli(line)));
}

#[test]
fn a_proxy_that_cannot_be_is_refused_and_changes_nothing() {
    let mut router = router();
    router.cli(STATIC);
    router.cli("sr localsid address fc00:0:1::b behavior end.ad oif e4 iif e5");
    let before = configured(&mut router);
    let segments: String = (0..12).map(|at| format!(" next fc00:0:2::{at:x}")).collect();
    for (line, says) in [
        (
            "end.ad nh 10.0.2.2 oif e2 iif e3",
            "e3 is the return interface of local SID fc00:0:1::4 already",
        ),
        ("end.ad oif e4 iif e5", "e5 is the return interface of local SID fc00:0:1::b already"),
        (
            "end.ad nh 10.0.2.2 oif e2 iif e5",
            "e5 is the return interface of local SID fc00:0:1::b already",
        ),
        ("end.ad oif e4 iif e3", "e3 is the return interface"),
        ("end.ad oif e4 iif e2", "e2 has addresses"),
        ("end.am nh 10.0.2.2 oif e2 iif e2", "is IPv6"),
        ("end.as nh 10.0.2.2 oif e2 iif e2 src fc00::1", "next"),
        ("end.as nh 10.0.2.2 oif e2 iif e2 src ff02::1 next fc00::2", "no address that segments"),
        ("end.as nh 10.0.2.2 oif e2 iif e2 src fc00::1 next ff02::2", "cannot be a segment"),
        (
            &format!("end.as nh 10.0.2.2 oif e2 iif e2 src fc00::1{segments}"),
            "12 segments are more than fit",
        ),
        ("end.ad nh 10.0.2.2 oif e9 iif e2", "e9"),
    ] {
        let refusal = router.refused(&format!("sr localsid address fc00:0:1::9 behavior {line}"));
        assert!(refusal.contains(says), "{line}: {refusal}");
    }
    for line in ["set interface ip address e5 10.0.5.1/24", "set interface l2 bridge e5 7"] {
        let refusal = router.refused(line);
        assert!(
            refusal.contains("the return interface of local SID fc00:0:1::b"),
            "{line}: {refusal}"
        );
    }
    assert_eq!(configured(&mut router), before);
}

#[test]
fn packets_of_another_kind_go_past_the_function_only_when_told_so() {
    for (behavior, node) in [
        ("end.as nh 10.0.2.2 oif e2 iif e3 src fc00::1 next fc00:0:2::2", "sr-localsid-as"),
        ("end.ad nh 10.0.2.2 oif e2 iif e3", "sr-localsid-ad"),
    ] {
        for bypass in ["", " bypass"] {
            let mut router = router();
            router.cli(&format!("sr localsid address fc00:0:1::4 behavior {behavior}{bypass}"));
            let mut packet = packet(4, 41, 2, &[0x60, 0, 0, 0, 0, 0, 59, 64], &[]);
            packet.resize(packet.len() + 32, 7);
            packet[4..6].copy_from_slice(&((8 + 32 + 40) as u16).to_be_bytes());
            router.send("e0", &frame(0, [0x86, 0xdd], &packet));
            let (sent, past) = (router.sent("e1"), u64::from(!bypass.is_empty()));
            assert_eq!(
                (sent.len() as u64, router.sent("e2").len()),
                (past, 0),
                "{behavior}{bypass}"
            );
            assert_eq!(router.count(node, "bypassed"), past);
            assert_eq!(router.count(node, "inner-kind-wrong"), 1 - past);
            for frame in sent {
                // To the next segment, a hop later, the SRH as the next SID needs it.
                assert_eq!((frame[21], frame[14 + 39], frame[54 + 3]), (63, 1, 0));
            }
        }
    }
}

#[test]
fn an_interface_that_goes_takes_its_proxies_along() {
    let mut router = router();
    router.cli("create loopback interface instance 0");
    router.cli("set interface ip address loop0 10.0.9.1/24");
    router.cli("sr localsid address fc00:0:1::4 behavior end.ad nh 10.0.2.2 oif e2 iif loop0");
    router.cli("sr localsid address fc00:0:1::5 behavior end.ad nh 10.0.9.2 oif loop0 iif e3");
    router.cli("delete loopback interface intfc loop0");
    assert!(configured(&mut router).is_empty());
    router.cli(STATIC);
}

/// An Ethernet frame to a port, with these bytes behind its type.
fn frame(port: u8, kind: [u8; 2], behind: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0xfe, 0, 0, 0, port, 2, 0, 0, 0, 0, port];
    frame.extend(kind);
    frame.extend(behind);
    frame
}

/// A packet to a SID with an SRH and something inside; then bytes of it are changed.
fn packet(sid: u8, number: u8, list: u8, inside: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut srh =
        vec![number, 2 * list, 4, list.saturating_sub(1), list.saturating_sub(1), 0, 0, 0];
    for at in 0..list {
        srh.extend([0xfc, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, at + 1]);
    }
    let payload = (srh.len() + inside.len()) as u16;
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(payload.to_be_bytes());
    packet.extend([43, 64]);
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend([0xfc, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, sid]);
    packet.extend(srh);
    packet.extend(inside);
    for (at, byte) in changes {
        let length = packet.len();
        packet[6 + at % (length - 6)] = *byte;
    }
    packet
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever comes to a proxy, or back from its function, nothing panics, and every buffer comes
    /// back.
    #[test]
    fn no_bytes_panic_and_every_packet_is_accounted_for(
        to in prop::collection::vec(
            (0usize..4, 0u8..8, prop::collection::vec(any::<u8>(), 0..80),
             prop::collection::vec((any::<usize>(), any::<u8>()), 0..6)), 1..20),
        back in prop::collection::vec((2u8..6, prop::collection::vec(any::<u8>(), 0..120)), 0..10),
    ) {
        let mut router = router();
        for line in [
            STATIC,
            "sr localsid address fc00:0:1::6 behavior end.ad nh 2001:db8:2::2 oif e2 iif e3",
            "sr localsid address fc00:0:1::a behavior end.am nh 2001:db8:2::2 oif e2 iif e2 cache",
            "sr localsid address fc00:0:1::b behavior end.ad oif e4 iif e5",
        ] {
            router.cli(line);
        }
        for (which, list, inside, changes) in &to {
            let (sid, number) = [(4, 4), (6, 41), (0xa, 17), (0xb, 143)][*which];
            let packet = packet(sid, number, *list, inside, changes);
            router.inject("e0", &frame(0, [0x86, 0xdd], &packet));
            // As it is, it also comes back by the others.
            router.inject("e2", &frame(2, [0x86, 0xdd], &packet));
            router.inject("e3", &frame(3, [0x86, 0xdd], &packet));
            router.inject("e5", &frame(5, [0x86, 0xdd], &packet));
        }
        router.run();
        for (port, bytes) in &back {
            router.inject(&format!("e{port}"), &frame(*port, [8, 0], bytes));
        }
        router.run();
    }
}
