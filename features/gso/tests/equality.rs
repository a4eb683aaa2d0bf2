//! A super-frame crosses the graph whole and is cut at the end. What leaves is, packet by packet,
//! what would leave had it been cut first, and so is what is counted.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_control::Registry;
use quiver_core::WorkerId;
use quiver_testkit::Router;

use super::super_frames::*;

/// Everything that may stand between two interfaces.
const FEATURES: [fn(&mut Registry); 14] = [
    quiver_ethernet::register,
    quiver_ip::register,
    quiver_gso::register,
    quiver_bond::register,
    quiver_bridge::register,
    quiver_multicast::register,
    quiver_reassembly::register,
    quiver_span::register,
    quiver_teib::register,
    quiver_gre::register,
    quiver_ipip::register,
    quiver_srv6::register,
    quiver_qos::register,
    quiver_classify::register,
];

const INTERFACES: [&str; 4] = ["e0", "e1", "e2", "e3"];

/// Hosts behind e0 and far away.
const HOST4: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(198, 51, 100, 9));
const HOST6: (Ipv6Addr, Ipv6Addr) = (
    Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 2),
    Ipv6Addr::new(0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 9),
);
/// The ends of tunnels that come in by e0, the router's last.
const OUTER4: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
const OUTER6: (Ipv6Addr, Ipv6Addr) = (
    Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 2),
    Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 1),
);
/// A SID of the router, and one behind e1.
const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 1, 0, 0, 0, 0, 1);
const NEXT: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 2, 0, 0, 0, 0, 1);

const SETUP: &[&str] = &[
    "set interface ip address e0 10.0.0.1/24",
    "set interface ip address e0 2001:db8:a::1/64",
    "set interface ip address e1 192.0.2.1/24",
    "set interface ip address e1 2001:db8:1::1/64",
    "ip neighbor e0 10.0.0.2 02:00:00:00:00:a0 static",
    "ip neighbor e0 2001:db8:a::2 02:00:00:00:00:a0 static",
    "ip neighbor e1 192.0.2.2 02:00:00:00:00:b1 static",
    "ip neighbor e1 2001:db8:1::2 02:00:00:00:00:b1 static",
    "ip route add 203.0.113.0/24 via 192.0.2.2 e1",
    "ip route add 2001:db8:f::/48 via 2001:db8:1::2 e1",
    "ip route add fc00::/16 via 2001:db8:1::2 e1",
    "set sr encaps source addr fc00:0:1::ffff",
];
const ROUTES: &[&str] = &[
    "ip route add 198.51.100.0/24 via 192.0.2.2 e1",
    "ip route add 2001:db8:b::/48 via 2001:db8:1::2 e1",
];

fn router(setup: &[&[&str]]) -> Router {
    let mut router = Router::new(&FEATURES);
    INTERFACES.iter().for_each(|name| {
        router.interface(name);
    });
    setup.iter().copied().flatten().for_each(|line| {
        router.cli(line);
    });
    router
}

/// Everything that a router has sent and counted since it was made.
fn outcome(mut router: Router) -> (Vec<Vec<Vec<u8>>>, Vec<String>) {
    let sent = INTERFACES.map(|name| router.sent(name)).to_vec();
    let names: Vec<String> =
        router.engine().interfaces_by_name().map(|known| known.name.clone()).collect();
    let mut counted: Vec<String> =
        names.iter().map(|name| format!("{name} {:?}", router.totals(name))).collect();
    counted.push(format!("{:?}", router.dropped()));
    (sent, counted)
}

fn packets_of(router: &mut Router, node: &str) -> u64 {
    let id = router.engine().node_id(node).unwrap_or_else(|| panic!("no node {node}"));
    router.engine().node_totals(WorkerId(0), id).vectors
}

/// Send a super-frame to e0 of one router and the frames that it stands for to e0 of another;
/// `nodes` see it whole. What both send and count is compared, and the number of frames returned.
#[track_caller]
fn is_equal(setup: &[&[&str]], super_frame: &SuperFrame, nodes: &[&str]) -> usize {
    are_equal(setup, super_frame, nodes, |_| ())
}

/// As [`is_equal`]; `arrange` brings what an interface has sent into an order.
#[track_caller]
fn are_equal(
    setup: &[&[&str]],
    super_frame: &SuperFrame,
    nodes: &[&str],
    arrange: impl Fn(&mut [Vec<u8>]),
) -> usize {
    let (mut whole, mut cut) = (router(setup), router(setup));
    whole.send_unfinished("e0", &super_frame.bytes, super_frame.offload);
    super_frame.cut().iter().for_each(|frame| cut.send("e0", frame));
    for node in nodes {
        assert_eq!(packets_of(&mut whole, node), 1, "packets in {node}");
        assert_eq!(packets_of(&mut cut, node), SEGMENTS, "packets in {node}, cut before");
    }
    let (mut whole, mut cut) = (outcome(whole), outcome(cut));
    whole.0.iter_mut().chain(&mut cut.0).for_each(|sent| arrange(sent));
    for (name, (whole, cut)) in INTERFACES.iter().zip(whole.0.iter().zip(&cut.0)) {
        assert_eq!(whole.len(), cut.len(), "frames by {name}");
        for (number, (whole, cut)) in whole.iter().zip(cut).enumerate() {
            assert!(whole == cut, "frame {number} by {name}: {}", difference(whole, cut));
        }
    }
    assert_eq!(whole.1, cut.1);
    let sent = whole.0.iter().map(Vec::len).sum();
    assert!(sent > 0, "{:?}", whole.1);
    sent
}

/// The first bytes that differ.
fn difference(whole: &[u8], cut: &[u8]) -> String {
    let at = whole.iter().zip(cut).take_while(|(whole, cut)| whole == cut).count();
    let from = |bytes: &[u8]| format!("{:02x?}", &bytes[at..bytes.len().min(at + 16)]);
    format!("{} and {} bytes, at {at} {} and {}", whole.len(), cut.len(), from(whole), from(cut))
}

fn plain4() -> SuperFrame {
    SuperFrame::new(to_port(0, &tcp4(HOST4, false)), false, 0)
}

/// One whose packets may be fragmented.
fn fragmentable() -> SuperFrame {
    SuperFrame::new(to_port(0, &tcp4(HOST4, true)), false, 0)
}

fn plain6() -> SuperFrame {
    SuperFrame::new(to_port(0, &tcp6(HOST6)), true, 0)
}

/// Both kinds cross the nodes, each alone.
#[track_caller]
fn both_are_equal(setup: &[&[&str]], nodes4: &[&str], nodes6: &[&str]) {
    assert_eq!(is_equal(setup, &plain4(), nodes4), SEGMENTS as usize);
    assert_eq!(is_equal(setup, &plain6(), nodes6), SEGMENTS as usize);
}

#[test]
fn by_routes() {
    both_are_equal(&[SETUP, ROUTES], &["ip4-rewrite"], &["ip6-rewrite"]);
    let more = ["adjacency counters enable", "set interface reassembly e0 virtual on"];
    both_are_equal(
        &[SETUP, ROUTES, &more],
        &["ip4-sv-reassembly-feature", "ip4-adjacency-counter", "ip4-rewrite"],
        &["ip6-sv-reassembly-feature", "ip6-adjacency-counter", "ip6-rewrite"],
    );
}

#[test]
fn that_are_classified() {
    let classified = [
        "qos egress map id 1 ip in 0 to 255 out 184",
        "qos record ip e0",
        "qos mark ip e1 id 1",
        "classify table table 0 acl-miss-next deny mask l3 ip4 dst",
        "classify session acl-hit-next permit table-index 0 match l3 ip4 dst 198.51.100.9",
        "set interface input acl intfc e0 ip4-table 0",
        "set interface output acl intfc e1 ip4-table 0",
    ];
    let nodes = ["qos-record", "classify-input-acl", "qos-mark", "classify-output-acl"];
    both_are_equal(&[SETUP, ROUTES, &classified], &nodes, &nodes);
}

#[test]
fn between_vlans() {
    let vlan = [
        "create sub-interfaces e0 100",
        "set interface state e0.100 up",
        "set interface ip address e0.100 10.7.0.1/24",
        "create sub-interfaces e1 200",
        "set interface state e1.200 up",
        "set interface ip address e1.200 10.8.0.1/24",
        "ip neighbor e1.200 10.8.0.2 02:00:00:00:00:c8 static",
        "ip route add 198.51.100.0/24 via 10.8.0.2 e1.200",
    ];
    let mut tagged = plain4();
    tagged.bytes.splice(12..12, [0x81, 0, 0, 100]);
    let nodes = ["vlan-input", "ip4-rewrite"];
    assert_eq!(is_equal(&[SETUP, &vlan], &tagged, &nodes), SEGMENTS as usize);
}

#[test]
fn through_a_bridge() {
    let bridge = [
        "create bridge-domain 1",
        "set interface l2 bridge e0 1",
        "set interface l2 bridge e2 1",
        "set interface l2 bridge e3 1",
    ];
    let flooded = SuperFrame::new(frame([2, 0, 0, 0, 0, 0x77], &tcp4(HOST4, false)), false, 0);
    assert_eq!(is_equal(&[&bridge], &flooded, &["l2-uu-flood"]), 2 * SEGMENTS as usize);
    let known = ["l2fib add 02:00:00:00:00:77 1 e3 static"];
    assert_eq!(is_equal(&[&bridge, &known], &flooded, &["l2-fwd"]), SEGMENTS as usize);
}

#[test]
fn to_observers() {
    let span = ["set interface span e0 destination e2", "set interface span e1 destination e3 tx"];
    let nodes = ["ip4-rewrite"];
    assert_eq!(is_equal(&[SETUP, ROUTES, &span], &plain4(), &nodes), 3 * SEGMENTS as usize);
}

#[test]
fn to_groups() {
    let group = Ipv4Addr::new(232, 1, 1, 1);
    let routes = [
        "set interface ip address e2 10.0.2.1/24",
        "set interface ip address e3 10.0.3.1/24",
        "ip mroute add 232.1.1.1 via e0 Accept via e2 Forward via e3 Forward",
    ];
    let packet = tcp4((HOST4.0, group), false);
    let to_group = SuperFrame::new(frame([1, 0, 0x5e, 1, 1, 1], &packet), false, 0);
    let sent = is_equal(&[SETUP, &routes], &to_group, &["ip4-replicate"]);
    assert_eq!(sent, 2 * SEGMENTS as usize);
}

#[test]
fn by_a_bond() {
    let members = ["bond add BondEthernet0 e2", "bond add BondEthernet0 e3"];
    let route = [
        "set interface state BondEthernet0 up",
        "set interface ip address BondEthernet0 10.9.0.1/24",
        "ip neighbor BondEthernet0 10.9.0.2 02:00:00:00:00:09 static",
        "ip route add 198.51.100.0/24 via 10.9.0.2 BondEthernet0",
    ];
    for (mode, copies) in [("broadcast", 2), ("xor load-balance l34", 1), ("active-backup", 1)] {
        let create = format!("create bond mode {mode} hw-addr 02:fe:00:00:00:b0");
        let setup = [SETUP, &[&create], &members, &route];
        let sent = is_equal(&setup, &plain4(), &["BondEthernet0-tx"]);
        assert_eq!(sent, copies * SEGMENTS as usize, "{mode}");
    }
}

#[test]
fn into_tunnels() {
    let routes4 =
        ["ip route add 198.51.100.0/24 via ipip0", "ip route add 2001:db8:b::/48 via ipip0"];
    let up = [
        "set interface state ipip0 up",
        "set interface ip address ipip0 10.1.0.1/30",
        "set interface ip address ipip0 2001:db8:2::1/64",
    ];
    let over6 = ["create ipip tunnel src 2001:db8:1::1 dst 2001:db8:f::2"];
    let setup: [&[&str]; 4] = [SETUP, &over6, &up, &routes4];
    both_are_equal(&setup, &["ipip6-encap-ip4"], &["ipip6-encap-ip6"]);
    let over4 = ["create ipip tunnel src 192.0.2.1 dst 203.0.113.2"];
    let setup: [&[&str]; 4] = [SETUP, &over4, &up, &routes4];
    is_equal(&setup, &plain4(), &["ipip4-encap-ip4"]);
    is_equal(&setup, &fragmentable(), &["ipip4-encap-ip4"]);
}

#[test]
fn into_gre_tunnels() {
    let up = [
        "set interface state gre0 up",
        "set interface ip address gre0 10.1.0.1/30",
        "set interface ip address gre0 2001:db8:2::1/64",
        "ip route add 198.51.100.0/24 via gre0",
        "ip route add 2001:db8:b::/48 via gre0",
    ];
    for key in ["", " key 42"] {
        let over6 = format!("create gre tunnel src 2001:db8:1::1 dst 2001:db8:f::2{key}");
        let setup: [&[&str]; 3] = [SETUP, &[&over6], &up];
        both_are_equal(&setup, &["gre6-encap-ip4"], &["gre6-encap-ip6"]);
        let over4 = format!("create gre tunnel src 192.0.2.1 dst 203.0.113.2{key}");
        let setup: [&[&str]; 3] = [SETUP, &[&over4], &up];
        is_equal(&setup, &plain4(), &["gre4-encap-ip4"]);
        is_equal(&setup, &fragmentable(), &["gre4-encap-ip4"]);
    }
}

/// Segments of 1000 bytes fit the smallest MTU of IPv6, so that routers may fragment the outer
/// packets of all.
#[test]
fn ipv6_into_tunnels_over_ipv4() {
    for (name, kind) in [("ipip", "ipip4-encap-ip6"), ("gre", "gre4-encap-ip6")] {
        let create = format!("create {name} tunnel src 192.0.2.1 dst 203.0.113.2");
        let up = format!("set interface state {name}0 up");
        let address = format!("set interface ip address {name}0 2001:db8:2::1/64");
        let route = format!("ip route add 2001:db8:b::/48 via {name}0");
        is_equal(&[SETUP, &[&create, &up, &address, &route]], &plain6(), &[kind]);
    }
}

#[test]
fn frames_into_tunnels_and_out_of_them() {
    let bridge = [
        "create bridge-domain 1",
        "set interface l2 bridge e2 1",
        "create gre tunnel src 10.0.0.1 dst 10.0.0.2 teb",
        "set interface state gre0 up",
        "set interface l2 bridge gre0 1",
        "set interface l2 bridge e3 1",
    ];
    // In by e0 in a tunnel, and out flooded.
    let inner = frame([2, 0, 0, 0, 0, 0x77], &tcp4(HOST4, false));
    let outer = ip4(GRE, OUTER4, true, &gre(0x6558, None, &inner));
    let tunnelled = SuperFrame::new(to_port(0, &outer), false, 1);
    let sent = is_equal(&[SETUP, &bridge], &tunnelled, &["gre4-input", "l2-uu-flood"]);
    assert_eq!(sent, 2 * SEGMENTS as usize);
    // In by e0, and out in a tunnel.
    let cross = [
        "create gre tunnel src 192.0.2.1 dst 203.0.113.2 teb",
        "set interface state gre0 up",
        "set interface l2 xconnect e0 gre0",
        "set interface l2 xconnect gre0 e0",
    ];
    let setup = [&SETUP[2..4], &SETUP[6..9], &cross];
    is_equal(&setup, &plain4(), &["gre4-encap-teb"]);
    is_equal(&setup, &plain6(), &["gre4-encap-teb"]);
}

#[test]
fn out_of_tunnels() {
    let tunnels = [
        "create ipip tunnel src 10.0.0.1 dst 10.0.0.2",
        "create ipip tunnel src 2001:db8:a::1 dst 2001:db8:a::2",
        "create gre tunnel src 10.0.0.1 dst 10.0.0.2",
        "create gre tunnel src 2001:db8:a::1 dst 2001:db8:a::2 key 9",
        "set interface state ipip0 up",
        "set interface state ipip1 up",
        "set interface state gre0 up",
        "set interface state gre1 up",
        "set interface ip address ipip0 10.1.0.1/30",
        "set interface ip address ipip0 2001:db8:11::1/64",
        "set interface ip address ipip1 10.1.1.1/30",
        "set interface ip address ipip1 2001:db8:12::1/64",
        "set interface ip address gre0 10.1.2.1/30",
        "set interface ip address gre0 2001:db8:13::1/64",
        "set interface ip address gre1 10.1.3.1/30",
        "set interface ip address gre1 2001:db8:14::1/64",
    ];
    for (is_ip6, inner, ether_type) in
        [(false, tcp4(HOST4, false), 0x0800), (true, tcp6(HOST6), 0x86dd)]
    {
        let protocol = if is_ip6 { IPV6 } else { IPV4 };
        let packets = [
            ("ipip4-input", ip4(protocol, OUTER4, false, &inner)),
            ("ipip6-input", ip6(protocol, OUTER6, &inner)),
            ("gre4-input", ip4(GRE, OUTER4, true, &gre(ether_type, None, &inner))),
            ("gre6-input", ip6(GRE, OUTER6, &gre(ether_type, Some(9), &inner))),
        ];
        for (node, packet) in packets {
            let outer = SuperFrame::new(to_port(0, &packet), is_ip6, 1);
            let sent = is_equal(&[SETUP, ROUTES, &tunnels], &outer, &[node]);
            assert_eq!(sent, SEGMENTS as usize, "{node}");
        }
    }
}

#[test]
fn by_policies() {
    for form in ["encap", "encap.red"] {
        let policy = format!("sr policy add bsid fc00:0:1::b1 next {NEXT} next fc00:0:3::1 {form}");
        let steer = [
            "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1",
            "sr steer l3 198.51.100.0/24 via bsid fc00:0:1::b1",
        ];
        let setup: [&[&str]; 3] = [SETUP, &[&policy], &steer];
        both_are_equal(&setup, &["sr-pl-rewrite-encaps-v4"], &["sr-pl-rewrite-encaps"]);
        let frames = ["sr steer l2 e0 via bsid fc00:0:1::b1"];
        let setup: [&[&str]; 3] = [SETUP, &[&policy], &frames];
        let nodes = ["sr-pl-rewrite-encaps-l2"];
        both_are_equal(&setup, &nodes, &nodes);
    }
    for form in ["insert", "insert.red"] {
        let policy = format!("sr policy add bsid fc00:0:1::b1 next {NEXT} next fc00:0:3::1 {form}");
        let steer = ["sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1"];
        let setup: [&[&str]; 3] = [SETUP, &[&policy], &steer];
        is_equal(&setup, &plain6(), &["sr-pl-rewrite-insert"]);
    }
}

#[test]
fn by_all_lists_of_a_policy() {
    let policy = [
        "sr policy add bsid fc00:0:1::b1 next fc00:0:2::1 spray encap",
        "sr policy mod bsid fc00:0:1::b1 add sl next fc00:0:3::1 next fc00:0:4::1",
        "sr steer l3 2001:db8:b::/48 via bsid fc00:0:1::b1",
    ];
    // The packets of two lists overtake one another.
    let sent = are_equal(&[SETUP, &policy], &plain6(), &["sr-pl-spray"], <[_]>::sort);
    assert_eq!(sent, 2 * SEGMENTS as usize);
}

/// Packets to the SID and from there to `NEXT`, in four forms: TCP behind the segments, an IPv4
/// packet, an IPv6 packet and a frame.
fn with_segments() -> Vec<SuperFrame> {
    let ends = (HOST6.0, SID);
    let behind =
        |next: u8, data: &[u8]| to_port(0, &ip6(ROUTING, ends, &srh(next, 1, &[NEXT, SID], data)));
    let inner = frame([2, 0, 0, 0, 0, 0x77], &tcp4(HOST4, false));
    vec![
        SuperFrame::new(behind(6, &tcp6_behind((HOST6.0, NEXT))), true, 0),
        SuperFrame::new(behind(IPV4, &tcp4(HOST4, false)), false, 1),
        SuperFrame::new(behind(IPV6, &tcp6(HOST6)), true, 1),
        SuperFrame::new(behind(ETHERNET, &inner), false, 1),
    ]
}

#[test]
fn by_segments() {
    let behaviors = [
        ("end", "sr-localsid"),
        ("end psp", "sr-localsid"),
        ("end.x e1 2001:db8:1::2", "sr-localsid-x"),
        ("end.x e1 2001:db8:1::2 psp", "sr-localsid-x"),
        ("end.t 0", "sr-localsid"),
    ];
    for (behavior, node) in behaviors {
        let sid = format!("sr localsid address {SID} behavior {behavior}");
        for super_frame in with_segments() {
            let sent = is_equal(&[SETUP, &[&sid]], &super_frame, &[node]);
            assert_eq!(sent, SEGMENTS as usize, "{behavior}");
        }
    }
}

#[test]
fn by_binding_sids() {
    for (form, node) in [("encap", "sr-pl-rewrite-b-encaps"), ("insert", "sr-pl-rewrite-b-insert")]
    {
        let policy = format!("sr policy add bsid {SID} next {NEXT} next fc00:0:3::1 {form}");
        for super_frame in with_segments() {
            is_equal(&[SETUP, &[&policy]], &super_frame, &[node]);
        }
    }
}

#[test]
fn out_of_segments() {
    let tables = [
        "ip table add 10",
        "ip6 table add 10",
        "ip route add 198.51.100.0/24 table 10 via 192.0.2.2 e1",
        "ip route add 2001:db8:b::/48 table 10 via 2001:db8:1::2 e1",
    ];
    let inner4 = (IPV4, tcp4(HOST4, false), false);
    let inner6 = (IPV6, tcp6(HOST6), true);
    let framed = (ETHERNET, frame([2, 0, 0, 0, 0, 0x77], &tcp4(HOST4, false)), false);
    let cases = [
        ("end.dx4 e1 192.0.2.2", "sr-localsid-dx", &inner4),
        ("end.dx6 e1 2001:db8:1::2", "sr-localsid-dx", &inner6),
        ("end.dt4 10", "sr-localsid-dt", &inner4),
        ("end.dt6 10", "sr-localsid-dt", &inner6),
        ("end.dt46 10", "sr-localsid-dt", &inner4),
        ("end.dx2 e3", "sr-localsid-dx2", &framed),
        ("end usd", "sr-localsid", &inner4),
        ("end.x e1 2001:db8:1::2 usd", "sr-localsid-x", &inner6),
    ];
    for (behavior, node, (next, inner, is_ip6)) in cases {
        let sid = format!("sr localsid address {SID} behavior {behavior}");
        let setup: [&[&str]; 4] = [SETUP, ROUTES, &tables, &[&sid]];
        for packet in [
            ip6(*next, (HOST6.0, SID), inner),
            ip6(ROUTING, (HOST6.0, SID), &srh(*next, 0, &[SID, NEXT], inner)),
        ] {
            let super_frame = SuperFrame::new(to_port(0, &packet), *is_ip6, 1);
            let sent = is_equal(&setup, &super_frame, &[node]);
            assert_eq!(sent, SEGMENTS as usize, "{behavior}");
        }
    }
}
