//! A far end that dies is one store, however many stations are behind it (RFC 7432 §8.2, mass
//! withdrawal): the MAC table keeps its entries, the frames go elsewhere, or are dropped.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use quiver_control::layer_two::{FarEnds, FarPlace, FdbEntry};
use quiver_testkit::{Register, Router};

const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_bridge::register,
    quiver_vxlan::register,
];
/// Stations behind the far end.
const STATIONS: u32 = 100_000;
/// No frame leaves by either port.
const NOWHERE: [Vec<[u8; 4]>; 2] = [Vec::new(), Vec::new()];
/// The number of the group of far ends.
const GROUP: u32 = 7;

const fn vtep(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(203, 0, 113, last))
}

fn mac(number: u32) -> [u8; 6] {
    let [_, a, b, c] = number.to_be_bytes();
    [2, 0xaa, a, b, c, 1]
}

/// A router with two underlays: VTEP 2 behind `e1`, VTEP 3 behind `e2`.
fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e1 192.0.2.1/24",
        "set interface ip address e2 198.51.100.1/24",
        "ip neighbor e1 192.0.2.2 02:00:00:00:00:b1",
        "ip neighbor e2 198.51.100.2 02:00:00:00:00:b2",
        "ip route add 203.0.113.2/32 via 192.0.2.2 e1",
        "ip route add 203.0.113.3/32 via 198.51.100.2 e2",
        "create vxlan interface src 192.0.2.1 vni 100 evpn",
        "set interface state vxlan_tunnel0 up",
        "create bridge-domain 1",
        "set interface l2 bridge e0 1",
        "set interface l2 bridge vxlan_tunnel0 1",
    ] {
        router.cli(line);
    }
    router
}

/// The outer destinations of what leaves by a port.
fn destinations(router: &mut Router, port: &str) -> Vec<[u8; 4]> {
    let frames = router.sent(port);
    frames.iter().filter_map(|frame| frame.get(30..34)?.try_into().ok()).collect()
}

/// Send frames to the first, a middle and the last station; by which port do they leave, and where
/// to?
fn send(router: &mut Router) -> [Vec<[u8; 4]>; 2] {
    for number in [0, STATIONS / 2, STATIONS - 1] {
        let frame = [&mac(number)[..], &[2, 0, 0, 0, 0, 0xa0, 0x88, 0xb5], &[7; 50]].concat();
        router.inject("e0", &frame);
    }
    router.run();
    ["e1", "e2"].map(|port| destinations(router, port))
}

fn add_stations(router: &mut Router, calls: FarEnds, place: FarPlace) {
    let port = router.id("vxlan_tunnel0");
    for number in 0..STATIONS {
        let station = FdbEntry { port, mac: mac(number) };
        (calls.add)(router.engine(), station, place).expect("room");
    }
}

fn stations(router: &mut Router) -> u64 {
    router.json("show vxlan interface")[0]["stations"].as_u64().expect("a number")
}

#[test]
fn all_stations_of_a_group_of_far_ends_are_redirected_by_one_store() {
    let mut router = router();
    let calls = *router.engine().get::<FarEnds>().expect("calls");
    let port = router.id("vxlan_tunnel0");
    add_stations(&mut router, calls, FarPlace::Group(GROUP, Some(vtep(2))));
    assert_eq!(send(&mut router), [vec![[203, 0, 113, 2]; 3], vec![]]);

    let begun = Instant::now();
    (calls.redirect)(router.engine(), port, GROUP, Some(vtep(3))).expect("a far end");
    println!("{STATIONS} stations redirected in {:?}", begun.elapsed());
    assert_eq!(send(&mut router), [vec![], vec![[203, 0, 113, 3]; 3]]);

    // No far end is left: frames are dropped, and not flooded.
    (calls.redirect)(router.engine(), port, GROUP, None).expect("none");
    assert_eq!(send(&mut router), NOWHERE);
    assert_eq!(router.count("vxlan4-evpn-encap", "no-tunnel"), 3);
    assert_eq!(stations(&mut router), u64::from(STATIONS));
    (calls.redirect)(router.engine(), port, GROUP, Some(vtep(2))).expect("a far end");
    assert_eq!(send(&mut router), [vec![[203, 0, 113, 2]; 3], vec![]]);

    // The last station of a group takes its number along, and what it holds.
    for number in 0..STATIONS {
        (calls.remove)(router.engine(), FdbEntry { port, mac: mac(number) });
    }
    assert_eq!(stations(&mut router), 0);
    (calls.redirect)(router.engine(), port, GROUP, Some(vtep(3))).expect("nobody is behind it");
    router.cli("delete vxlan interface vxlan_tunnel0");
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn all_stations_of_a_far_end_follow_its_route() {
    let mut router = router();
    let calls = *router.engine().get::<FarEnds>().expect("calls");
    add_stations(&mut router, calls, FarPlace::Vtep(vtep(2)));
    assert_eq!(send(&mut router), [vec![[203, 0, 113, 2]; 3], vec![]]);

    // The first path is gone, and there is another one.
    router.cli("ip route add 203.0.113.0/24 via 198.51.100.2 e2");
    let begun = Instant::now();
    router.cli("ip route del 203.0.113.2/32");
    println!("{STATIONS} stations rerouted in {:?}", begun.elapsed());
    assert_eq!(send(&mut router), [vec![], vec![[203, 0, 113, 2]; 3]]);

    // No path is left: counted.
    router.cli("ip route del 203.0.113.0/24");
    let before: u64 = router.dropped().iter().map(|(.., count)| count).sum();
    assert_eq!(send(&mut router), NOWHERE);
    let after: u64 = router.dropped().iter().map(|(.., count)| count).sum();
    assert_eq!(after - before, 3, "{:?}", router.dropped());
    router.cli("ip route add 203.0.113.2/32 via 192.0.2.2 e1");
    assert_eq!(send(&mut router), [vec![[203, 0, 113, 2]; 3], vec![]]);
    assert_eq!(stations(&mut router), u64::from(STATIONS));
}
