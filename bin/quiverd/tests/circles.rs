//! Configurations that send packets round in a circle, one for each way back into the graph that
//! the whole router has. Whatever circulates comes to rest, its death is counted, and no buffer is
//! lost.

use quiver_testkit::Router;

const HOST: [u8; 6] = [2, 0, 0, 0, 0, 0xa0];
/// The address of the first test interface.
const OWN: [u8; 6] = [2, 0xfe, 0, 0, 0, 0];

fn frame(to: [u8; 6], kind: u16, content: &[u8]) -> Vec<u8> {
    [&to[..], &HOST, &kind.to_be_bytes(), content].concat()
}

fn ip4(to: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 255, 17, 0, 0, 10, 0, 0, 2];
    packet.extend(to);
    let words = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    packet
}

fn ip6(to: [u16; 8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 8, 17, 255];
    packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend(to.iter().flat_map(|word| word.to_be_bytes()));
    packet.extend([0, 7, 0, 9, 0, 8, 0x12, 0x34]);
    packet
}

/// Frames that leave by a port for one that came in, at most.
const LEFT_MAX: usize = 20_000;

/// Send some frames, and see them come to rest with a death counted for at least one.
fn circle(lines: &[&str], frame: &[u8]) -> Router {
    let mut router = Router::new(&[quiverd::features::built_in]);
    for name in ["e0", "e1"] {
        router.cli(&format!("create test interface {name}"));
        router.cli(&format!("set interface state {name} up"));
    }
    router.cli("set interface ip address e1 10.0.1.1/24");
    router.cli("ip neighbor e1 10.0.1.2 02:00:00:00:00:b1 static");
    lines.iter().for_each(|line| drop(router.cli(line)));
    router.run();
    for count in [1, 8] {
        router.cli("clear errors");
        (0..count).for_each(|_| router.inject("e0", frame));
        router.run();
        assert!(!router.dropped().is_empty(), "nothing ends");
        let left = router.sent("e1").len();
        assert!(left <= LEFT_MAX * count, "{left} left");
        assert_eq!(router.buffers_in_use(), 0);
    }
    router
}

#[test]
fn tables_that_refer_to_each_other() {
    let lines = [
        "set interface ip address e0 10.0.0.1/24",
        "ip table add 10",
        "ip route add 198.51.100.0/24 via ip4-lookup-in-table 10",
        "ip route add 198.51.100.0/24 table 10 via ip4-lookup-in-table 0",
    ];
    circle(&lines, &frame(OWN, 0x800, &ip4([198, 51, 100, 1])));
}

#[test]
fn a_route_to_the_router_s_own_loopback() {
    let lines = [
        "set interface ip address e0 10.0.0.1/24",
        "create loopback interface mac 02:fe:00:00:00:fe instance 0",
        "set interface state loop0 up",
        "set interface ip address loop0 10.9.0.1/24",
        "ip neighbor loop0 10.9.0.2 02:fe:00:00:00:fe static",
        "ip route add 198.51.100.0/24 via 10.9.0.2",
    ];
    circle(&lines, &frame(OWN, 0x800, &ip4([198, 51, 100, 1])));
}

#[test]
fn loopbacks_that_are_cross_connected() {
    let lines = [
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "set interface state loop0 up",
        "set interface state loop1 up",
        "set interface l2 xconnect e0 loop0",
        "set interface l2 xconnect loop0 loop1",
        "set interface l2 xconnect loop1 loop0",
    ];
    circle(&lines, &frame([0xff; 6], 0x800, &ip4([198, 51, 100, 1])));
}

#[test]
fn loopbacks_that_are_patched_and_mirrored_to_each_other() {
    let lines = [
        "create loopback interface instance 0",
        "create loopback interface instance 1",
        "set interface state loop0 up",
        "set interface state loop1 up",
        "test l2patch rx e0 tx loop0",
        "test l2patch rx loop0 tx loop1",
        "test l2patch rx loop1 tx loop0",
        "set interface span loop0 destination loop1",
        "set interface span loop1 destination loop0",
    ];
    circle(&lines, &frame([0xff; 6], 0x800, &ip4([198, 51, 100, 1])));
}

#[test]
fn a_bridge_whose_routed_interface_routes_to_itself() {
    let lines = [
        "set interface ip address e0 10.0.0.1/24",
        "create bridge-domain 1",
        "create loopback interface mac 02:fe:00:00:00:f0 instance 0",
        "set interface state loop0 up",
        "set interface l2 bridge loop0 1 bvi",
        "set interface ip address loop0 10.9.0.1/24",
        "ip neighbor loop0 10.9.0.2 02:fe:00:00:00:f0 static",
        "ip neighbor loop0 10.9.0.3 02:00:00:00:00:99 static",
        "ip route add 198.51.100.0/24 via 10.9.0.2",
        "ip route add 203.0.113.0/24 via 10.9.0.3",
    ];
    circle(&lines, &frame(OWN, 0x800, &ip4([198, 51, 100, 1])));
    circle(&lines, &frame(OWN, 0x800, &ip4([203, 0, 113, 1])));
}

#[test]
fn a_policy_whose_first_segment_is_steered_into_it() {
    let lines = [
        "set interface ip address e0 2001:db8::1/64",
        "set sr encaps source addr 2001:db8::1",
        "sr policy add bsid 2001:db8:b::1 next fc00:9::1 encap",
        "sr steer l3 fc00:9::/48 via bsid 2001:db8:b::1",
    ];
    circle(&lines, &frame(OWN, 0x86dd, &ip6([0xfc00, 9, 0, 0, 0, 0, 0, 1])));
}
