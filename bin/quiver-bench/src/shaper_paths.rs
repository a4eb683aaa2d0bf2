//! Shapers: packets of subscribers who are under their rates, and of some who are above. The bare
//! loop forwards them.

use crate::paths::{Packets, Path, Work, path};

/// Subscribers of the large path.
const SUBSCRIBERS: u32 = 65_536;
/// Where the addresses of the benchmark's packets begin.
const FIRST: u32 = 0x1400_0000;

/// Packets of a subscriber in a row who is above the rate: the first passes, the others wait. A
/// packet of 60 bytes takes 24 µs at the rate, about a pass.
const TRAIN: usize = 8;

/// All of them.
pub fn all() -> [Path; 3] {
    let packets = |count| Packets::Ip4 { count, random: true };
    let route = "ip route add 20.0.0.0/8 via 10.1.0.2 bench1";
    let fast = "shaper add name site rate 400G";
    let output = "shaper output site bench1";
    let one = [route, fast, output, "shaper subscriber add s profile site address 20.0.0.0/32"];
    let subscribers: Vec<String> = (0..SUBSCRIBERS).map(subscriber).collect();
    let many = |plan| {
        let mut many = vec![route, fast, plan, output];
        many.extend(subscribers.iter().map(String::as_str));
        many
    };
    let under = many("shaper add name plan rate 400G parent site");
    let above = many("shaper add name plan rate 20M burst 64 parent site");
    let trains = Packets::Ip4Trains { count: SUBSCRIBERS, length: TRAIN };
    [
        path("ip4-shaper-1", Work::Ip4, packets(1), &one, None),
        path("ip4-shaper-64k", Work::Ip4, packets(SUBSCRIBERS), &under, None),
        path("ip4-shaper-64k-above", Work::Ip4, trains, &above, None),
    ]
}

fn subscriber(number: u32) -> String {
    let address = std::net::Ipv4Addr::from_bits(FIRST + number);
    format!("shaper subscriber add s{number} profile plan address {address}/32")
}
