//! Sessions over time: made, refreshed, expired, refused, ended by commands; on two workers.

use std::net::Ipv4Addr;
use std::time::Duration;

use quiver_testkit::frames::{Fragment, ip4};
use quiver_testkit::{Register, Router, Settings};

pub const FEATURES: [Register; 4] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_nat44::register,
];
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const REMOTE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
pub const POOL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const UDP: u8 = 17;
pub const TCP: u8 = 6;

pub fn router_with(settings: Settings, sessions: usize) -> Router {
    let mut router = Router::with(settings, &FEATURES);
    let lines = format!(
        "create test interface e0 rx-queues 2
        create test interface e1 rx-queues 2
        set interface state e0 up
        set interface state e1 up
        set interface ip address e0 10.0.0.1/8
        set interface ip address e1 198.51.100.1/24
        ip neighbor e0 10.0.0.2 02:00:00:00:00:00 static
        ip neighbor e0 10.0.0.3 02:00:00:00:00:00 static
        ip neighbor e1 198.51.100.2 02:00:00:00:00:01 static
        ip route add 0.0.0.0/0 via 198.51.100.2
        nat44 plugin enable sessions {sessions}
        nat44 add address 192.0.2.1
        set interface nat44 in e0 out e1"
    );
    router.script("setup", &lines).expect("a good configuration");
    router.run();
    router.sent("e0");
    router.sent("e1");
    router
}

fn router(sessions: usize) -> Router {
    router_with(Settings::default(), sessions)
}

pub fn whole() -> Fragment {
    Fragment { identification: 1, offset_bytes: 0, more: false }
}

pub fn udp(source: u16, destination: u16) -> Vec<u8> {
    let [a, b] = source.to_be_bytes();
    let [c, d] = destination.to_be_bytes();
    vec![a, b, c, d, 0, 8, 0, 0]
}

pub fn tcp(source: u16, destination: u16, flags: u8) -> Vec<u8> {
    let mut header = udp(source, destination)[..4].to_vec();
    header.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    header
}

/// Send from a host inside; the source address and port that come out, if anything does.
pub fn from_inside(
    router: &mut Router,
    host: Ipv4Addr,
    protocol: u8,
    upper: &[u8],
) -> Option<(Ipv4Addr, u16)> {
    router.send("e0", &ip4(0, (host, REMOTE), protocol, whole(), upper));
    let sent = router.sent("e1");
    let frame = sent.first()?;
    let address: [u8; 4] = frame[26..30].try_into().expect("four bytes");
    Some((address.into(), u16::from_be_bytes([frame[34], frame[35]])))
}

/// Send from outside to a port of the pool; does it come out inside?
fn from_outside(router: &mut Router, port: u16, protocol: u8, upper: &[u8]) -> bool {
    let _ = port;
    router.send("e1", &ip4(1, (REMOTE, POOL), protocol, whole(), upper));
    !router.sent("e0").is_empty()
}

pub fn sessions(router: &mut Router) -> u64 {
    router.json("show nat44 summary")["sessions"].as_u64().expect("a number")
}

#[test]
fn a_port_in_use_is_not_given_twice_and_the_wanted_one_is_kept() {
    let mut router = router(1000);
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(4000, 53)), Some((POOL, 4000)));
    let other = Ipv4Addr::new(10, 0, 0, 3);
    let (address, port) = from_inside(&mut router, other, UDP, &udp(4000, 53)).expect("sent");
    assert!(address == POOL && port != 4000 && port >= 1024);
    assert_eq!(from_inside(&mut router, other, UDP, &udp(4000, 53)), Some((POOL, port)), "kept");
    // Another destination: the port is free there.
    assert_eq!(from_inside(&mut router, other, UDP, &udp(4000, 54)), Some((POOL, 4000)));
    assert_eq!(sessions(&mut router), 3);
}

/// All 64,512 ports of the one address and one destination are used to the last; the next is
/// refused and answered, and nothing that lives goes.
#[test]
fn every_port_of_an_address_is_used_and_then_the_new_one_is_refused() {
    let mut router = router(70_000);
    let mut seen = vec![false; 65_536];
    for number in 0..64_512u32 {
        // Each host asks from the same port.
        let host = Ipv4Addr::from(0x0a01_0000 + number);
        let (_, port) = from_inside(&mut router, host, UDP, &udp(4000, 53))
            .unwrap_or_else(|| panic!("{number} made, then {:?}", router.dropped()));
        assert!(port >= 1024 && !std::mem::replace(&mut seen[usize::from(port)], true));
    }
    assert_eq!(sessions(&mut router), 64_512);
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(4000, 53)), None);
    assert_eq!(router.count("nat44-ed-slowpath", "out-of-ports"), 1);
    let answer = router.sent("e0").pop().expect("an ICMP error");
    assert_eq!((answer[23], answer[34], answer[35]), (1, 3, 1), "host unreachable");
    // Others live, and other destinations have ports.
    let first = Ipv4Addr::from(0x0a01_0000);
    assert_eq!(from_inside(&mut router, first, UDP, &udp(4000, 53)), Some((POOL, 4000)));
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(4000, 54)), Some((POOL, 4000)));
    // One goes: the next gets its port.
    router.cli("nat44 del session out 192.0.2.1 33333 udp");
    router.advance(Duration::from_secs(2));
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(4000, 53)), Some((POOL, 33333)));
}

#[test]
fn more_sessions_than_enabled_are_refused_and_answered() {
    let mut router = router(3);
    for port in 1..=3 {
        assert!(from_inside(&mut router, HOST, UDP, &udp(5000 + port, 53)).is_some());
    }
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(6000, 53)), None);
    assert_eq!(router.count("nat44-ed-slowpath", "maximum-sessions-exceeded"), 1);
    assert_eq!(router.sent("e0").len(), 1);
    assert!(from_inside(&mut router, HOST, UDP, &udp(5001, 53)).is_some());
}

#[test]
fn sessions_expire_by_their_class_and_packets_from_inside_refresh_udp() {
    let mut router = router(1000);
    router.cli("set nat timeout udp 30");
    from_inside(&mut router, HOST, UDP, &udp(4000, 53));
    from_inside(&mut router, HOST, TCP, &tcp(4000, 80, 2));
    assert_eq!(sessions(&mut router), 2);
    router.advance(Duration::from_secs(25));
    from_inside(&mut router, HOST, UDP, &udp(4000, 53));
    router.advance(Duration::from_secs(25));
    assert!(from_outside(&mut router, 4000, UDP, &udp(53, 4000)), "refreshed from inside");
    router.advance(Duration::from_secs(25));
    assert_eq!(sessions(&mut router), 1, "packets from outside do not refresh UDP");
    assert!(!from_outside(&mut router, 4000, UDP, &udp(53, 4000)));
    router.advance(Duration::from_secs(200));
    assert_eq!(sessions(&mut router), 0, "TCP that did not open");
}

#[test]
fn an_established_connection_lasts_two_hours_and_a_closed_one_four_minutes() {
    let mut router = router(1000);
    for port in [4000, 4001] {
        from_inside(&mut router, HOST, TCP, &tcp(port, 80, 2));
        assert!(from_outside(&mut router, port, TCP, &tcp(80, port, 0x12)));
        from_inside(&mut router, HOST, TCP, &tcp(port, 80, 0x10));
    }
    from_inside(&mut router, HOST, TCP, &tcp(4001, 80, 0x11));
    assert!(from_outside(&mut router, 4001, TCP, &tcp(80, 4001, 0x11)));
    let shown = router.json("show nat44 sessions");
    let states: Vec<_> = shown
        .as_array()
        .unwrap_or_else(|| panic!("{shown}"))
        .iter()
        .map(|row| row["state"].clone())
        .collect();
    assert_eq!(states, ["established", "closed"]);
    router.advance(Duration::from_secs(300));
    assert_eq!(sessions(&mut router), 1);
    router.advance(Duration::from_secs(7_000));
    assert_eq!(sessions(&mut router), 1);
    router.advance(Duration::from_secs(500));
    assert_eq!(sessions(&mut router), 0);
}

#[test]
fn a_packet_whose_ttl_ends_here_is_quoted_as_its_sender_knows_it() {
    let mut router = router(1000);
    from_inside(&mut router, HOST, UDP, &udp(4000, 53));
    let mut frame = ip4(0, (HOST, REMOTE), UDP, whole(), &udp(4000, 53));
    frame[22] = 1;
    frame[24..26].fill(0);
    let sum: u32 =
        frame[14..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    router.send("e0", &frame);
    let answer = router.sent("e0").pop().expect("time exceeded");
    assert_eq!((answer[34], &answer[30..34]), (11, &HOST.octets()[..]));
    assert_eq!(&answer[54..58], &HOST.octets(), "the source inside");
}

#[test]
fn commands_end_sessions_and_disabling_forgets_everything() {
    let mut router = router(1000);
    let refused = router.refused("nat44 del session in 10.0.0.2 4000 udp");
    assert!(refused.contains("no such session"), "{refused}");
    for port in 4000..4010 {
        from_inside(&mut router, HOST, UDP, &udp(port, 53));
    }
    router.cli("nat44 del session in 10.0.0.2 4000 udp external-host 203.0.113.1 53");
    assert_eq!(sessions(&mut router), 9);
    router.cli("clear nat44 sessions");
    assert_eq!(sessions(&mut router), 0);
    assert!(from_inside(&mut router, HOST, UDP, &udp(4000, 53)).is_some());
    router.cli("nat44 add address 192.0.2.1 del");
    assert_eq!(sessions(&mut router), 0, "the sessions of a removed address end");
    assert!(from_inside(&mut router, HOST, UDP, &udp(4000, 53)).is_none());
    router.sent("e0");
    router.cli("nat44 plugin disable");
    let frame = ip4(0, (HOST, REMOTE), UDP, whole(), &udp(4000, 53));
    router.send("e0", &frame);
    assert_eq!(&router.sent("e1")[0][26..30], &HOST.octets(), "untranslated");
    let refused = router.refused("nat44 add address 192.0.2.1");
    assert!(refused.contains("not enabled"), "{refused}");
    router.cli("nat44 plugin enable sessions 10");
    assert_eq!(sessions(&mut router), 0);
}

#[test]
fn wrong_configurations_are_refused_and_change_nothing() {
    let mut router = router(1000);
    let before = router.cli("show running-config");
    for (line, why) in [
        ("nat44 add address 192.0.2.1", "in the pool already"),
        ("nat44 add address 192.0.2.0 - 192.0.2.5", "in the pool already"),
        ("nat44 add address 192.0.2.9 - 192.0.2.5", "is before"),
        ("nat44 add address 192.1.0.0 - 192.2.0.0", "more than the 4096"),
        ("nat44 add address 224.0.0.1", "no address of a host"),
        ("nat44 add address 192.0.2.9 del", "not in the pool"),
        ("nat44 add address 192.0.2.9 tenant-vrf 7", "no IPv4 table 7"),
        ("set interface nat44 in e0", "is that already"),
        ("set interface nat44 in e1 out e1", "is that already"),
        ("set interface nat44 in e1 del", "is that already"),
        ("nat44 plugin enable sessions 5", "enabled for 1000 sessions already"),
        ("nat44 add static mapping local 10.0.0.2 22 external 192.0.2.1", "needs a protocol"),
        ("nat44 add static mapping tcp local 10.0.0.2 22 external 192.0.2.1", "needs a local"),
        ("nat44 add static mapping tcp local 10.0.0.2 22 external 192.0.2.1 22 del", "no such"),
        ("nat44 add interface address e1 del", "gives the pool none"),
    ] {
        let refused = router.refused(line);
        assert!(refused.contains(why), "{line}: {refused}");
    }
    assert_eq!(router.cli("show running-config"), before);
}

#[test]
fn the_address_of_an_interface_is_the_pool_and_follows_it() {
    let mut router = router(1000);
    router.cli("nat44 add address 192.0.2.1 del");
    router.cli("nat44 add interface address e1");
    let own = Ipv4Addr::new(198, 51, 100, 1);
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(4000, 53)), Some((own, 4000)));
    // What belongs to no session is the router's own.
    router.send("e1", &ip4(1, (REMOTE, own), 1, whole(), &[8, 0, 0xf7, 0xfd, 0, 1, 0, 1]));
    assert_eq!(router.sent("e1").len(), 1, "a ping is answered");
    router.cli("set interface ip address del e1 198.51.100.1/24");
    router.cli("set interface ip address e1 198.51.100.7/24");
    router.advance(Duration::from_secs(1));
    router.cli("clear nat44 sessions");
    let new = Ipv4Addr::new(198, 51, 100, 7);
    assert_eq!(from_inside(&mut router, HOST, UDP, &udp(4000, 53)), Some((new, 4000)));
}

/// The second worker translates what it finds, and hands what it does not find to the first.
#[test]
fn a_worker_that_owns_no_sessions_hands_new_flows_over_and_translates_known_ones() {
    let mut router = router_with(Settings { workers: 2, ..Settings::default() }, 1000);
    let frame = |port| ip4(0, (HOST, REMOTE), UDP, whole(), &udp(port, 53));
    for round in 0..2 {
        for port in 4000..4100 {
            router.inject_queue("e0", 1, &frame(port));
        }
        router.run();
        assert_eq!(router.sent("e1").len(), 100, "round {round}");
        assert_eq!(sessions(&mut router), 100);
    }
    assert_eq!(router.count("nat44-ed-slowpath", "sessions-made"), 100);
}

/// All packets come to the worker that owns nothing, more than the ring takes: none is lost.
#[test]
fn a_burst_of_new_flows_at_the_wrong_worker_is_held_back_and_not_lost() {
    const FLOWS: u16 = 20_000;
    let settings = Settings { workers: 2, buffers: 32_768, ..Settings::default() };
    let mut router = router_with(settings, 30_000);
    for port in 0..FLOWS {
        let frame = ip4(0, (HOST, REMOTE), UDP, whole(), &udp(4000 + port, 53));
        router.inject_queue("e0", 1, &frame);
    }
    router.run();
    assert_eq!(router.sent("e1").len(), usize::from(FLOWS));
    assert_eq!(sessions(&mut router), u64::from(FLOWS));
    assert_eq!(router.count("nat44-ed-slowpath", "congestion"), 0);
    // The way back at the wrong worker, too: found there.
    for port in 0..FLOWS {
        let frame = ip4(1, (REMOTE, POOL), UDP, whole(), &udp(53, 4000 + port));
        router.inject_queue("e1", 1, &frame);
    }
    router.run();
    assert_eq!(router.sent("e0").len(), usize::from(FLOWS));
}
