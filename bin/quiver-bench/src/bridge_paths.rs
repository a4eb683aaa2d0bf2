//! The paths through a bridge domain: so many stations on either side of it, and a router in it.

use quiver_wire::MacAddress;

use crate::paths::{FAR_STATIONS, NEAR_STATIONS, Packets, Path, Work, path};
use crate::population::{OUR_MAC, PEER_MAC};

/// All of them.
pub fn all() -> Vec<Path> {
    let mut paths = Vec::new();
    for (name, count, learn) in [
        ("1", 1, true),
        ("254", 254, true),
        ("10k", 10_000, true),
        ("1m", 1_000_000, true),
        ("254-nolearn", 254, false),
        ("1m-nolearn", 1_000_000, false),
    ] {
        let setup = [
            format!("create bridge-domain 1 learn {}", u8::from(learn)),
            "set interface l2 bridge bench0 1".to_owned(),
            "set interface l2 bridge bench1 1".to_owned(),
            format!("l2fib add {} 1 bench0 count {count}", MacAddress::from_u64(NEAR_STATIONS)),
            format!("l2fib add {} 1 bench1 count {count}", MacAddress::from_u64(FAR_STATIONS)),
        ];
        let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
        let work = if learn { Work::Bridge } else { Work::BridgeNoLearn };
        paths.push(path(
            &format!("l2-bridge-{name}"),
            work,
            Packets::Stations { count },
            &setup,
            None,
        ));
    }
    let routed = Packets::Ip4 { count: 1, random: true };
    let own = MacAddress(OUR_MAC);
    let loopback = format!("create loopback interface mac {own} instance 0");
    let common = [
        loopback.as_str(),
        "set interface state loop0 up",
        "create bridge-domain 1",
        "set interface l2 bridge loop0 1 bvi",
        "set interface ip address loop0 10.2.0.1/24",
    ];
    // No control thread learns here.
    let station = format!("l2fib add {} 1 bench0 static", MacAddress(PEER_MAC));
    let into: Vec<&str> = common
        .into_iter()
        .chain([
            "set interface l2 bridge bench0 1",
            &station,
            "ip route add 20.0.0.0/32 via 10.1.0.2 bench1",
        ])
        .collect();
    paths.push(path("ip4-1-bvi", Work::BridgeIp4, routed, &into, None));
    let out: Vec<&str> = common
        .into_iter()
        .chain([
            "set interface l2 bridge bench1 1",
            "ip neighbor loop0 10.2.0.2 02:00:00:00:02:02",
            "l2fib add 02:00:00:00:02:02 1 bench1 static",
            "ip route add 20.0.0.0/32 via 10.2.0.2 loop0",
        ])
        .collect();
    paths.push(path("ip4-1-bvi-out", Work::Ip4Bridge, routed, &out, None));
    paths
}
