//! Cookies that change, and commands that are refused.

use quiver_testkit::configuration::running;
use quiver_testkit::{Register, Router};

const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_bridge::register,
    quiver_l2tpv3::register,
];
const NODE: &str = "l2tpv3-4-input";

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e1 192.0.2.1/24",
        "ip neighbor e1 192.0.2.2 02:00:00:00:00:b1",
        "create l2tpv3 tunnel client 192.0.2.2 our 192.0.2.1 local-cookie 10 remote-cookie 0x20 \
         local-session-id 7 remote-session-id 8",
        "set interface state l2tpv3_tunnel0 up",
        "create bridge-domain 1",
        "set interface l2 bridge e0 1",
        "set interface l2 bridge l2tpv3_tunnel0 1",
    ] {
        router.cli(line);
    }
    router
}

fn sum(bytes: &[u8]) -> u16 {
    let all: u32 = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    !((all & 0xffff) + (all >> 16)) as u16
}

/// A frame of session 7 with a cookie of 8 bytes.
fn with_cookie(cookie: u64) -> Vec<u8> {
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9, 0x88, 0xb5], &[0; 46]].concat();
    let mut header = vec![0x45, 0, 0, (20 + 12 + frame.len()) as u8, 0, 0, 0, 0, 64, 115, 0, 0];
    header.extend([192, 0, 2, 2, 192, 0, 2, 1]);
    let checksum = sum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let link = [2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xb1, 8, 0];
    [&link[..], &header, &[0, 0, 0, 7], &cookie.to_be_bytes(), &frame].concat()
}

#[test]
fn a_changed_cookie_is_sent_at_once_and_the_one_before_is_taken_once_more() {
    let mut router = router();
    let passes = |router: &mut Router, cookie: u64| {
        let before = router.count(NODE, "wrong-cookie");
        router.send("e1", &with_cookie(cookie));
        let passed = !router.sent("e0").is_empty();
        assert_eq!(router.count(NODE, "wrong-cookie") == before, passed);
        passed
    };
    assert!(passes(&mut router, 0x10) && !passes(&mut router, 0x11));
    router.cli("set l2tpv3 tunnel cookie l2tpv3_tunnel0 local 11 remote 21");
    assert!(passes(&mut router, 0x10) && passes(&mut router, 0x11));
    router.cli("set l2tpv3 tunnel cookie l2tpv3_tunnel0 local 12 remote 22");
    assert!(!passes(&mut router, 0x10) && passes(&mut router, 0x11) && passes(&mut router, 0x12));
    router.send("e0", &[&[0xff; 6][..], &[2, 0, 0, 0, 0, 8, 0x88, 0xb5], &[0; 46]].concat());
    let sent = router.sent("e1");
    assert_eq!(
        sent.last().map(|frame| &frame[34..46]),
        Some(&[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0x22][..])
    );
    let config = running(&mut router);
    assert!(config.contains("local-cookie 0000000000000012 remote-cookie 0000000000000022"));
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut router = router();
    for (line, why) in [
        ("create l2tpv3 tunnel client 192.0.2.9 our 192.0.2.1 local-cookie xy", "no cookie"),
        (
            "create l2tpv3 tunnel client 192.0.2.9 our 192.0.2.1 local-cookie 123456789 \
             cookie-bytes 4",
            "no cookie of 4 bytes",
        ),
        ("create l2tpv3 tunnel client 192.0.2.2 our 192.0.2.1 local-session-id 7", "same ends"),
        ("create l2tpv3 tunnel client 2001:db8::1 our 192.0.2.1", "not both IPv4 or both IPv6"),
        ("set l2tpv3 tunnel cookie e0 local 1 remote 2", "e0 is no L2TPv3 tunnel"),
        ("set l2tpv3 tunnel cookie l2tpv3_tunnel0 local 1 remote zz", "no cookie"),
    ] {
        let before = running(&mut router);
        let refusal = router.refused(line);
        assert!(refusal.contains(why), "{line}: {refusal}");
        assert_eq!(running(&mut router), before, "{line}");
    }
}
