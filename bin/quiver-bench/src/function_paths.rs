//! The paths of SRv6 functions that change what is in front of packets: compressed SIDs, proxies on
//! the way to their functions and back, and the mobile user plane.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_wire::{Header, Ip4Header, Ip6Header, UdpHeader};

use crate::bare::exchange::{Exchange, Layer};
use crate::layers::{self, Inside, SESSION, SOURCE, SRH};
use crate::paths::{Packets, Path, Work, path};

/// The local SID of most paths, and segments of other routers.
const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 1, 0, 0, 0, 0, 0);
const NEXT: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 9, 0, 0, 0, 0, 9);
const MIDDLE: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 5, 0, 0, 0, 0, 5);
/// The user's peer over IPv4.
const PEER4: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 0);
/// Bytes of GTP-U with a PDU session container, and of what is in front of it.
const GTPU: usize = 16;
const GTPU4: usize = Ip4Header::LEN + UdpHeader::LEN + GTPU;
const GTPU6: usize = Ip6Header::LEN + UdpHeader::LEN + GTPU;
/// IPv6 and an SRH of two segments.
const OUTER: usize = Ip6Header::LEN + SRH;
/// Where an IPv6 header has its destination, and an IPv4 header its addresses with what follows.
const DESTINATION: usize = 24;
const ADDRESSES4: usize = 12;

/// A path of packets of one kind.
fn of(name: &str, packet: fn() -> Vec<u8>, exchange: Exchange, setup: &[&str]) -> Path {
    let always =
        ["set interface state bench2 up", "ip route add fc00::/16 via 2001:db8:ffff::2 bench1"];
    let setup: Vec<&str> = always.iter().chain(setup).copied().collect();
    Path {
        length: packet().len(),
        ..path(name, Work::Exchange(exchange), Packets::Made(packet), &setup, None)
    }
}

/// Forwarding by segments: the destination is another one, and is looked up.
fn steps(looks_up: bool) -> Exchange {
    Exchange {
        looks_up,
        carries: Some((Ip6Header::LEN + 8, DESTINATION)),
        ..Exchange::of(Layer::Ip6, Layer::Ip6)
    }
}

/// REPLACE-C-SID: from the plain SID into a container, and by a neighbour.
fn compressed() -> [Path; 2] {
    const LOCATOR: Ipv6Addr = Ipv6Addr::new(0xfc00, 0, 0xb, 1, 1, 0, 0, 0);
    fn packet() -> Vec<u8> {
        // C-SIDs of 32 bits; the first of the path stands in the lowest bits.
        let container = Ipv6Addr::from_bits(0x0005_0001_0004_0001_0003_0001_0002_0001);
        layers::segments(SOURCE, [container, LOCATOR], 1, Inside::Udp)
    }
    let end = format!("sr localsid address {LOCATOR}/80 behavior end.replace");
    let cross =
        format!("sr localsid address {LOCATOR}/80 behavior end.x.replace bench1 2001:db8:ffff::2");
    [
        of("srv6-end-replace", packet, steps(true), &[&end]),
        of("srv6-endx-replace", packet, steps(false), &[&cross]),
    ]
}

/// To a function: what is inside.
fn to(inside: Inside) -> fn() -> Vec<u8> {
    match inside {
        Inside::Ip4 => || layers::segments(SOURCE, [NEXT, SID], 1, Inside::Ip4),
        Inside::Ip6 => || layers::segments(SOURCE, [NEXT, SID], 1, Inside::Ip6),
        Inside::Frame => || layers::segments(SOURCE, [NEXT, SID], 1, Inside::Frame),
        Inside::Udp => || layers::segments(SOURCE, [NEXT, SID], 1, Inside::Udp),
    }
}

/// Back from a function.
fn back(inside: Inside) -> fn() -> Vec<u8> {
    match inside {
        Inside::Ip4 => || layers::ethernet(0x0800, &Inside::Ip4.bytes()),
        Inside::Ip6 => || layers::ethernet(0x86dd, &Inside::Ip6.bytes()),
        Inside::Frame => || Inside::Frame.bytes(),
        // As the function of End.AM has seen it: to its last segment, while another one is active.
        Inside::Udp => || {
            let mut frame = layers::segments(SOURCE, [NEXT, MIDDLE], 1, Inside::Udp);
            let at = layers::ETHERNET + DESTINATION;
            frame[at..at + 16].copy_from_slice(&NEXT.octets());
            frame
        },
    }
}

/// End.AS and End.AD, there and back.
fn proxies() -> Vec<Path> {
    let mut paths = Vec::new();
    for (number, inside, layer, hop) in [
        ("4", Inside::Ip4, Layer::Ip4, "nh 10.1.0.2 "),
        ("6", Inside::Ip6, Layer::Ip6, "nh 2001:db8:ffff::2 "),
        ("2", Inside::Frame, Layer::Frame, ""),
    ] {
        for (kind, keeps, rest) in [
            ("as", false, "src 2001:db8:ffff::1 next fc00:0:5::5 next fc00:0:9::9"),
            ("ad", true, ""),
        ] {
            let proxy = |iif: &str| {
                format!(
                    "sr localsid address {SID} behavior end.{kind} {hop}oif bench1 iif {iif} {rest}"
                )
            };
            let outwards = Exchange { takes: OUTER, keeps, ..Exchange::of(Layer::Ip6, layer) };
            paths.push(of(
                &format!("srv6-{kind}{number}"),
                to(inside),
                outwards,
                &[proxy("bench2").trim()],
            ));
            let inwards = Exchange { puts: OUTER, ..Exchange::of(layer, Layer::Ip6) };
            let mut setup = vec!["set interface ip address bench2 2001:db8:fffd::1/64"];
            if layer == Layer::Frame {
                // Frames come back by ports without addresses.
                setup.push("set interface ip address del bench0 10.0.0.1/24");
                setup.push("set interface ip address del bench0 2001:db8:fffe::1/64");
            }
            let proxy = proxy("bench0");
            setup.push(proxy.trim());
            let path = of(&format!("srv6-{kind}{number}-back"), back(inside), inwards, &setup);
            paths.push(Path { primer: keeps.then(|| Packets::Made(to(inside))), ..path });
        }
    }
    paths
}

/// End.AM, there and back.
fn masquerading() -> [Path; 2] {
    let proxy = |iif: &str| {
        format!(
            "sr localsid address {SID} behavior end.am nh 2001:db8:ffff::2 oif bench1 iif {iif}"
        )
    };
    [
        of("srv6-am", to(Inside::Udp), steps(false), &[&proxy("bench2")]),
        of("srv6-am-back", back(Inside::Udp), steps(false), &[&proxy("bench0")]),
    ]
}

/// GTP-U to SRv6, and SRv6 to GTP-U.
fn mobile() -> [Path; 6] {
    const OVER4: Ipv6Addr = Ipv6Addr::new(0xfc01, 0, 0, 0, 0, 0, 0, 0);
    const OVER6: Ipv6Addr = Ipv6Addr::new(0xfc01, 6, 0, 0, 0, 0, 0, 0);
    /// Where the arguments of 40 bits end behind a prefix of 64, or behind one of 32 and an IPv4
    /// address.
    const SESSION_AT: u32 = 128 - 64 - 40;
    fn session(prefix: Ipv6Addr, more: u128) -> Ipv6Addr {
        Ipv6Addr::from_bits(prefix.to_bits() | more | u128::from(SESSION) << SESSION_AT)
    }
    fn to_ip4() -> Vec<u8> {
        let sid = session(OVER4, u128::from(PEER4.to_bits()) << 64);
        // The source is 10.0.0.2, port 40000, behind 64 bits.
        let source = Ipv6Addr::new(0xfc00, 1, 0, 0, 0x0a00, 2, 40_000, 0);
        layers::ethernet(
            0x86dd,
            &layers::ip6(source, sid, Inside::Ip4.protocol(), &Inside::Ip4.bytes()),
        )
    }
    fn to_ip6() -> Vec<u8> {
        layers::segments(SOURCE, [NEXT, session(OVER6, 0)], 1, Inside::Ip4)
    }
    fn mapped() -> Vec<u8> {
        layers::ethernet(
            0x86dd,
            &layers::ip6(SOURCE, SID, Inside::Ip4.protocol(), &Inside::Ip4.bytes()),
        )
    }
    let (four, six) = (Layer::Ip4, Layer::Ip6);
    let both = |takes, puts, from, to, carries| Exchange {
        takes,
        puts,
        looks_up: true,
        carries: Some(carries),
        ..Exchange::of(from, to)
    };
    let gateway =
        "sr policy add bsid fc00:1::d1 behavior h.m.gtp4.d fc00:2::/32 v6src_prefix fc00:1::/64";
    let steer = format!("sr steer l3 {PEER4}/32 via bsid fc00:1::d1");
    let sid = |behavior: &str| format!("sr localsid address {behavior}");
    let addresses = (ADDRESSES4, DESTINATION);
    let drop =
        |puts| Exchange { checks: true, ..both(GTPU6, puts, six, six, (DESTINATION, DESTINATION)) };
    let over6 = || layers::gtpu6(OVER6);
    let put6 = Exchange { sums: true, ..both(OUTER, GTPU6, six, six, (DESTINATION, DESTINATION)) };
    [
        of(
            "srv6-gtp4-d",
            || layers::gtpu4(PEER4),
            both(GTPU4, Ip6Header::LEN, four, six, addresses),
            &[gateway, &steer],
        ),
        of(
            "srv6-gtp4-e",
            to_ip4,
            both(Ip6Header::LEN, GTPU4, six, four, (DESTINATION, ADDRESSES4)),
            &[
                "ip route add 20.0.0.0/32 via 10.1.0.2 bench1",
                &sid("fc01::/32 behavior end.m.gtp4.e v4src_position 64"),
            ],
        ),
        of(
            "srv6-gtp6-d",
            over6,
            drop(Ip6Header::LEN),
            &[&sid("fc01:6::/64 behavior end.m.gtp6.d fc00:2::/48")],
        ),
        of(
            "srv6-gtp6-d-di",
            over6,
            drop(OUTER),
            &[&sid("fc01:6::/64 behavior end.m.gtp6.d.di fc00:3::/64 source fc00:1::1")],
        ),
        of("srv6-gtp6-e", to_ip6, put6, &[&sid("fc01:6::/64 behavior end.m.gtp6.e")]),
        of("srv6-map", mapped, steps(true), &[&sid(&format!("{SID} behavior end.map fc00:2::2"))]),
    ]
}

/// All of them.
pub fn all() -> Vec<Path> {
    let mut paths: Vec<Path> = compressed().into();
    paths.extend(proxies());
    paths.extend(masquerading());
    paths.extend(mobile());
    paths
}
