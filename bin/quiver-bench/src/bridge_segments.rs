//! The paths between SRv6 and bridge domains: into a domain by End.DT2U and End.DT2M, and out of
//! one by a layer 2 tunnel.

use quiver_wire::MacAddress;

use crate::bare::exchange::{Exchange, Layer};
use crate::paths::{Packets, Path, Work, path};
use crate::segments::{self, Carried};

/// A bridge domain with a tunnel; nothing is learned, for no control thread runs here.
const COMMON: [&str; 4] = [
    "create sr l2-tunnel",
    "set interface state sr_l2_tunnel0 up",
    "create bridge-domain 1",
    "set interface l2 bridge sr_l2_tunnel0 1",
];

/// Frames come to a SID, and leave by the other port.
fn into(name: &str, behavior: &str) -> Path {
    let stations = segments::STATIONS.map(MacAddress);
    let own = [
        "set interface l2 bridge bench1 1".to_owned(),
        format!("l2fib add {} 1 bench1", stations[0]),
        format!("l2fib add {} 1 sr_l2_tunnel0", stations[1]),
        format!("sr localsid address {} behavior {behavior} sr_l2_tunnel0", segments::SID),
    ];
    let setup: Vec<&str> = COMMON.into_iter().chain(own.iter().map(String::as_str)).collect();
    let packets = Packets::Segments { carried: Carried::Frame, sids: 1 };
    let length = segments::frame(Carried::Frame).len();
    // The frame inside goes on without IPv6 and an SRH of two segments; what a bridge does with it
    // is not here.
    let inside = Exchange { takes: 40 + 40, ..Exchange::of(Layer::Ip6, Layer::Frame) };
    Path { length, ..path(name, Work::Exchange(inside), packets, &setup, None) }
}

/// Frames of stations go by the policy of a tunnel.
fn out_of(name: &str, count: u32) -> Path {
    let (near, far) = (crate::paths::NEAR_STATIONS, crate::paths::FAR_STATIONS);
    let own = [
        "set sr encaps source addr 2001:db8:ffff::1".to_owned(),
        "ip route add fc00::/16 via 2001:db8:ffff::2 bench1".to_owned(),
        "sr policy add bsid fd00::1 next fc00::1 next fc00::2 encap".to_owned(),
        "set sr l2-tunnel sr_l2_tunnel0 unicast bsid fd00::1".to_owned(),
        "set interface l2 bridge bench0 1".to_owned(),
        format!("l2fib add {} 1 bench0 count {count}", MacAddress::from_u64(near)),
        format!("l2fib add {} 1 sr_l2_tunnel0 count {count}", MacAddress::from_u64(far)),
    ];
    let setup: Vec<&str> = COMMON.into_iter().chain(own.iter().map(String::as_str)).collect();
    path(name, Work::EncapsulateFrames, Packets::Stations { count }, &setup, None)
}

/// All of them.
pub fn all() -> Vec<Path> {
    vec![
        into("srv6-enddt2u", "end.dt2u"),
        into("srv6-enddt2m", "end.dt2m"),
        out_of("srv6-l2-tunnel", 254),
    ]
}
