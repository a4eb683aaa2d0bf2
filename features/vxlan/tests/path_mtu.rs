//! The MTU of the path to a far end of a port with many: routers of the underlay report it (RFC
//! 8201 §4). A VTEP does not fragment (RFC 7348 §4.3): longer frames are counted.

use std::net::Ipv6Addr;
use std::time::Duration;

use quiver_testkit::{Register, Router};
use quiver_wire::icmp6::Message;
use quiver_wire::{Header, Ip6Header, IpProtocol};

const FEATURES: [Register; 5] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_reassembly::register,
    quiver_bridge::register,
    quiver_vxlan::register,
];
/// Stations behind two far ends, of two networks.
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 3];
const ENCAP: &str = "vxlan6-evpn-encap";
const ERRORS: &str = "vxlan6-icmp-error";
/// Where the VNI stands behind the outer IPv6 header, and bytes of all headers around a frame.
const VNI: usize = 40 + 8 + 4;
const AROUND: usize = 40 + 8 + 8;

fn router() -> Router {
    let mut router = Router::new(&FEATURES);
    for name in ["e0", "e1", "e2"] {
        router.interface(name);
    }
    for line in [
        "set interface ip address e1 2001:db8:1::1/64",
        "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1 static",
        "ip route add 2001:db8:f::/48 via 2001:db8:1::2 e1",
        "create vxlan interface src 2001:db8:1::1 vni 100 evpn",
        "create vxlan interface src 2001:db8:1::1 vni 200 evpn",
        "set interface state vxlan_tunnel0 up",
        "set interface state vxlan_tunnel1 up",
        "create bridge-domain 1",
        "set interface l2 bridge e0 1",
        "set interface l2 bridge vxlan_tunnel0 1",
        "create bridge-domain 2",
        "set interface l2 bridge e2 2",
        "set interface l2 bridge vxlan_tunnel1 2",
        "set vxlan station vxlan_tunnel0 02:00:00:00:00:02 vtep 2001:db8:f::2",
        "set vxlan station vxlan_tunnel1 02:00:00:00:00:02 vtep 2001:db8:f::2",
        "set vxlan station vxlan_tunnel0 02:00:00:00:00:03 vtep 2001:db8:f::3",
    ] {
        router.cli(line);
    }
    router
}

/// The outer packet around a frame of so many bytes, if it is sent.
fn send(router: &mut Router, by: &str, to: [u8; 6], bytes: usize) -> Option<Vec<u8>> {
    let mut frame = [&to[..], &[2, 0, 0, 0, 0, 0xa0, 0x88, 0xb5]].concat();
    frame.resize(bytes, 7);
    router.send(by, &frame);
    Some(router.sent("e1").pop()?.split_off(14))
}

/// A router of the underlay says that a link takes so many bytes at most.
fn complain(router: &mut Router, mtu_bytes: u32, quoted: &[u8]) {
    let (from, to): (Ipv6Addr, Ipv6Addr) =
        ("2001:db8:1::2".parse().unwrap(), "2001:db8:1::1".parse().unwrap());
    let mut packet = vec![0; 1280];
    let data = &quoted[..quoted.len().min(1232)];
    let message = Message::Other { kind: 2, code: 0, rest: mtu_bytes.to_be_bytes(), data };
    let length = message.emit(from, to, &mut packet[40..]).unwrap();
    Ip6Header::new(from, to, IpProtocol::ICMP6, 64, length as u16).write(&mut packet).unwrap();
    packet.truncate(40 + length);
    let link = [2, 0xfe, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xb1, 0x86, 0xdd];
    router.send("e1", &[&link[..], &packet].concat());
}

fn path_mtus(router: &mut Router) -> serde_json::Value {
    router.json("show vxlan interface")[0]["path_mtus"].clone()
}

#[test]
fn frames_that_are_too_long_for_the_path_to_their_far_end_are_counted() {
    let mut router = router();
    let outer = send(&mut router, "e0", FAR, 1400).expect("it fits the first link");
    assert_eq!(outer.len(), 1400 + AROUND);
    complain(&mut router, 1400, &outer);
    assert_eq!((router.count(ERRORS, "path-mtu"), router.count(ERRORS, "kept")), (1, 1));
    let known = serde_json::json!([{ "vtep": "2001:db8:f::2", "mtu_bytes": 1400 }]);
    assert_eq!(path_mtus(&mut router), known);

    assert_eq!(send(&mut router, "e0", FAR, 1400), None);
    assert_eq!(router.count(ENCAP, "frame-too-big"), 1);
    assert!(send(&mut router, "e0", FAR, 1400 - AROUND).is_some());
    // The path is that of all networks, and of no other far end.
    assert_eq!(send(&mut router, "e2", FAR, 1400), None);
    assert!(send(&mut router, "e0", OTHER, 1400).is_some());

    // RFC 8201 §4: it is tried anew after 10 minutes.
    router.advance(Duration::from_secs(602));
    assert_eq!(path_mtus(&mut router), serde_json::json!([]));
    assert!(send(&mut router, "e0", FAR, 1400).is_some());
}

#[test]
fn a_far_end_that_goes_and_comes_again_has_the_first_links_mtu() {
    let mut router = router();
    let outer = send(&mut router, "e0", OTHER, 1400).expect("sent");
    complain(&mut router, 1400, &outer);
    let station = "set vxlan station vxlan_tunnel0 02:00:00:00:00:03 vtep 2001:db8:f::3";
    router.cli(&format!("{station} del"));
    assert_eq!(path_mtus(&mut router), serde_json::json!([]));
    // Nobody sends there.
    complain(&mut router, 1390, &outer);
    assert_eq!(router.count(ERRORS, "not-ours"), 1);
    router.cli(station);
    assert!(send(&mut router, "e0", OTHER, 1400).is_some());
}

#[test]
fn reports_that_nobody_can_have_made_are_not_believed() {
    let mut router = router();
    let outer = send(&mut router, "e0", FAR, 1400).expect("sent");
    let mut forged = outer.clone();
    forged[VNI + 2] ^= 1;
    complain(&mut router, 1400, &forged);
    let mut forged = outer.clone();
    forged[40 - 1] ^= 4;
    complain(&mut router, 1400, &forged);
    assert_eq!(router.count(ERRORS, "not-ours"), 2);
    // RFC 8201 §4: no link takes less than 1,280 bytes. And it cannot be what the packet had.
    complain(&mut router, 1279, &outer);
    complain(&mut router, outer.len() as u32, &outer);
    complain(&mut router, u32::MAX, &outer);
    assert_eq!(router.count(ERRORS, "mtu-not-believed"), 3);
    complain(&mut router, 1400, &outer[..VNI]);
    assert_eq!(router.count(ERRORS, "truncated"), 1);
    assert!(send(&mut router, "e0", FAR, 1400).is_some());
    assert_eq!(router.buffers_in_use(), 0);
}
