//! Static mappings with options, load balancing, identity mappings, tables.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use quiver_testkit::frames::ip4;
use quiver_testkit::{Router, Settings};

use crate::sessions::{HOST, POOL, REMOTE, TCP, router_with, tcp, whole};

const SYN: u8 = 2;
const ACK: u8 = 0x12;
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 3);
const TWICE: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 1);

type Ends = ((Ipv4Addr, u16), (Ipv4Addr, u16));

fn router(lines: &str) -> Router {
    let mut router = router_with(Settings::default(), 1000);
    router.script("mappings", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    router
}

/// Send a TCP packet; the ends of what comes out of `out`.
fn send(router: &mut Router, (rx, out): (&str, &str), ends: Ends, flags: u8) -> Option<Ends> {
    let ((source, sport), (destination, dport)) = ends;
    let port = rx.as_bytes()[1] - b'0';
    let upper = tcp(sport, dport, flags);
    router.send(rx, &ip4(port, (source, destination), TCP, whole(), &upper));
    let frame = router.sent(out).pop()?;
    let address = |at: usize| -> Ipv4Addr {
        let bytes: [u8; 4] = frame[at..at + 4].try_into().expect("four bytes");
        bytes.into()
    };
    let word = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    Some(((address(26), word(34)), (address(30), word(36))))
}

#[test]
fn twice_nat_translates_the_remote_end_too() {
    let mut router = router(
        "nat44 add address 10.200.0.1 twice-nat
        nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 8080 twice-nat",
    );
    let sent = send(&mut router, ("e1", "e0"), ((REMOTE, 5000), (POOL, 8080)), SYN);
    assert_eq!(sent, Some(((TWICE, 5000), (HOST, 80))));
    let back = send(&mut router, ("e0", "e1"), ((HOST, 80), (TWICE, 5000)), ACK);
    assert_eq!(back, Some(((POOL, 8080), (REMOTE, 5000))));
    // The same port of another remote host gets another end.
    let stranger = Ipv4Addr::new(203, 0, 113, 9);
    let sent = send(&mut router, ("e1", "e0"), ((stranger, 5000), (POOL, 8080)), SYN);
    let ((address, port), _) = sent.expect("translated");
    assert!(address == TWICE && port != 5000);
    let back = send(&mut router, ("e0", "e1"), ((HOST, 80), (TWICE, port)), ACK);
    assert_eq!(back, Some(((POOL, 8080), (stranger, 5000))));
    router.cli("nat44 add address 10.200.0.1 twice-nat del");
    assert_eq!(router.json("show nat44 summary")["sessions"], 0);
}

#[test]
fn a_host_that_reaches_itself_comes_from_the_twice_nat_pool() {
    let mut router = router(
        "nat44 add address 10.200.0.1 twice-nat
        nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 8080 self-twice-nat",
    );
    let sent = send(&mut router, ("e0", "e0"), ((HOST, 5000), (POOL, 8080)), SYN);
    assert_eq!(sent, Some(((TWICE, 5000), (HOST, 80))));
    let back = send(&mut router, ("e0", "e0"), ((HOST, 80), (TWICE, 5000)), ACK);
    assert_eq!(back, Some(((POOL, 8080), (HOST, 5000))));
    let sent = send(&mut router, ("e0", "e0"), ((OTHER, 5000), (POOL, 8080)), SYN);
    assert_eq!(sent, Some(((POOL, 5000), (HOST, 80))), "another one by the pool");
    let sent = send(&mut router, ("e1", "e0"), ((REMOTE, 5000), (POOL, 8080)), SYN);
    assert_eq!(sent, Some(((REMOTE, 5000), (HOST, 80))), "from outside as ever");
}

#[test]
fn an_out2in_only_mapping_is_not_used_from_inside() {
    let mut router = router(
        "nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.7 8080 out2in-only",
    );
    let sent = send(&mut router, ("e0", "e1"), ((HOST, 80), (REMOTE, 9)), SYN);
    assert_eq!(sent, Some(((POOL, 80), (REMOTE, 9))));
    let mapped = Ipv4Addr::new(192, 0, 2, 7);
    let sent = send(&mut router, ("e1", "e0"), ((REMOTE, 10), (mapped, 8080)), SYN);
    assert_eq!(sent, Some(((REMOTE, 10), (HOST, 80))));
}

#[test]
fn connections_are_shared_by_probability_and_stay_where_they_are() {
    let mut router = router(
        "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:80 \
         local 10.0.0.2:8080 probability 75 local 10.0.0.3:8081 probability 25",
    );
    let mut shares: BTreeMap<(Ipv4Addr, u16), u32> = BTreeMap::new();
    for port in 0..400 {
        let ends = ((REMOTE, 5000 + port), (POOL, 80));
        let (_, to) = send(&mut router, ("e1", "e0"), ends, SYN).expect("translated");
        let (_, again) = send(&mut router, ("e1", "e0"), ends, SYN).expect("translated");
        assert_eq!(to, again);
        let back = send(&mut router, ("e0", "e1"), (to, (REMOTE, 5000 + port)), ACK);
        assert_eq!(back, Some(((POOL, 80), (REMOTE, 5000 + port))));
        *shares.entry(to).or_default() += 1;
    }
    let (many, few) = (shares[&(HOST, 8080)], shares[&(OTHER, 8081)]);
    assert!((260..340).contains(&many) && many + few == 400, "{many} and {few}");
    // A third one; then the first goes, and its sessions with it.
    let at = "nat44 add load-balancing back-end protocol tcp external 192.0.2.1:80";
    router.cli(&format!("{at} local 10.0.0.4:8082 probability 100"));
    router.cli(&format!("{at} local 10.0.0.2:8080 del"));
    assert_eq!(router.json("show nat44 summary")["sessions"], few);
    let refused = router.refused(&format!("{at} local 10.0.0.3:8081 del"));
    assert!(refused.contains("at least 2"), "{refused}");
}

#[test]
fn with_affinity_a_remote_host_stays_with_its_server() {
    let mut router = router(
        "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:80 \
         local 10.0.0.2:8080 probability 1 local 10.0.0.3:8080 probability 1 affinity 60",
    );
    let mut servers = std::collections::BTreeSet::new();
    for last in 1..40 {
        let remote = Ipv4Addr::new(203, 0, 113, last);
        let to = |router: &mut Router, port| {
            send(router, ("e1", "e0"), ((remote, port), (POOL, 80)), SYN).expect("translated").1
        };
        let first = to(&mut router, 5000);
        assert!((5001..5010).all(|port| to(&mut router, port) == first));
        servers.insert(first);
    }
    assert_eq!(servers.len(), 2);
}

#[test]
fn an_identity_mapping_leaves_an_end_as_it_is() {
    let mut router = router(
        "nat44 add identity mapping 10.0.0.3
        nat44 add identity mapping 10.0.0.2 tcp 22",
    );
    for (host, port) in [(OTHER, 4000), (HOST, 22)] {
        let sent = send(&mut router, ("e0", "e1"), ((host, port), (REMOTE, 9)), SYN);
        assert_eq!(sent, Some(((host, port), (REMOTE, 9))));
        let back = send(&mut router, ("e1", "e0"), ((REMOTE, 9), (host, port)), ACK);
        assert_eq!(back, Some(((REMOTE, 9), (host, port))));
    }
    assert_eq!(router.json("show nat44 summary")["sessions"], 0);
    let sent = send(&mut router, ("e0", "e1"), ((HOST, 23), (REMOTE, 9)), SYN);
    assert_eq!(sent, Some(((POOL, 23), (REMOTE, 9))));
    assert!(send(&mut router, ("e1", "e0"), ((REMOTE, 9), (HOST, 24)), SYN).is_none());
}

#[test]
fn wrong_mappings_are_refused_and_change_nothing() {
    let mut router = router("nat44 add static mapping tcp local 10.0.0.2 80 external 192.0.2.1 80");
    let before = router.cli("show running-config");
    let balanced = "nat44 add load-balancing static mapping protocol tcp external";
    for (line, why) in [
        (format!("{balanced} 192.0.2.1:80 local 10.0.0.3:1 local 10.0.0.4:1"), "already"),
        (format!("{balanced} 192.0.2.1:81 local 10.0.0.3:1"), "2 to 256 back-ends"),
        (format!("{balanced} 192.0.2.1:81 local 10.0.0.3:1 local 10.0.0.3:1"), "named twice"),
        (format!("{balanced} 192.0.2.1 local 10.0.0.3:1 local 10.0.0.4:1"), "no address with"),
        (format!("{balanced} 192.0.2.1:0 local 10.0.0.3:1 local 10.0.0.4:1"), "no address with"),
        ("nat44 add identity mapping 10.0.0.3 tcp".into(), "needs a port"),
        ("nat44 add identity mapping 10.0.0.3 del".into(), "no such identity mapping"),
        ("nat44 vrf route add table 0 0".into(), "has no table"),
        ("nat44 add address 10.9.0.1 twice-nat del".into(), "not in the twice-NAT pool"),
        ("nat44 add address 10.9.0.1 tenant-vrf 0 twice-nat".into(), "for no table alone"),
    ] {
        let refused = router.refused(&line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

/// A host's destinations are looked for in the tables of its routes, in order.
#[test]
fn routes_between_tables_say_where_a_host_may_go() {
    let mut router = router_with(Settings::default(), 1000);
    let lines = "ip table add 7
        ip table add 8
        create test interface e2
        set interface state e2 up
        set interface ip table e2 8
        set interface ip address e2 198.18.0.1/24
        ip neighbor e2 198.18.0.2 02:00:00:00:00:02 static
        ip route add 203.0.113.128/25 table 8 via 198.18.0.2
        set interface nat44 out e2
        nat44 vrf table add 0
        nat44 vrf route add table 0 8
        nat44 vrf route add table 0 7";
    router.script("tables", lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    let far = Ipv4Addr::new(203, 0, 113, 200);
    let sent = send(&mut router, ("e0", "e2"), ((HOST, 4000), (far, 9)), SYN);
    assert_eq!(sent, Some(((POOL, 4000), (far, 9))), "by table 8");
    let sent = send(&mut router, ("e0", "e1"), ((HOST, 4000), (REMOTE, 9)), SYN);
    assert_eq!(sent, Some(((POOL, 4000), (REMOTE, 9))), "by the own one");
    let back = send(&mut router, ("e2", "e0"), ((far, 9), (POOL, 4000)), ACK);
    assert_eq!(back, Some(((far, 9), (HOST, 4000))));
    let refused = router.refused("ip table del 7");
    assert!(refused.contains("nat44"), "{refused}");
}

/// What leaves by the interface is translated, wherever it came from, new interfaces too.
#[test]
fn output_feature_translates_what_every_interface_receives() {
    let mut router = router(
        "set interface nat44 in e0 out e1 del
        set interface nat44 out e1 output-feature
        create test interface e2
        set interface state e2 up
        set interface ip address e2 172.16.0.1/16
        ip neighbor e2 172.16.0.2 02:00:00:00:00:02 static",
    );
    let late = Ipv4Addr::new(172, 16, 0, 2);
    for (rx, host) in [("e0", HOST), ("e2", late)] {
        let sent = send(&mut router, (rx, "e1"), ((host, 4000), (REMOTE, 9)), SYN);
        let ((address, port), _) = sent.expect("translated");
        assert_eq!(address, POOL);
        let back = send(&mut router, ("e1", rx), ((REMOTE, 9), (POOL, port)), ACK);
        assert_eq!(back, Some(((REMOTE, 9), (host, 4000))));
    }
    let sent = send(&mut router, ("e0", "e2"), ((HOST, 4001), (late, 9)), SYN);
    assert_eq!(sent, Some(((HOST, 4001), (late, 9))), "it does not leave by e1");
    router.cli("set interface nat44 out e1 output-feature del");
    let sent = send(&mut router, ("e2", "e1"), ((late, 4002), (REMOTE, 9)), SYN);
    assert_eq!(sent, Some(((late, 4002), (REMOTE, 9))), "untranslated");
}
