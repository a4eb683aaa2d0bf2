//! Packets of many subscribers, each with a policer's rate of its own.

use crate::paths::{Packets, Path, Work, path};

/// Subscribers with packets.
const SUBSCRIBERS: u32 = 64_000;
/// Where the addresses of the benchmark's packets begin.
const FIRST: u32 = 0x1400_0000;

/// All of them, each behind routing alone.
pub fn all() -> Vec<Path> {
    let policer = "policer add name p rate kbps cir 1000000000 cb 2147483647";
    let output = "policer subscriber output bench1";
    let ip4 = [
        "ip route add 20.0.0.0/8 via 10.1.0.2 bench1",
        policer,
        "policer subscriber add 20.0.0.0/16 policer p each 32",
        output,
    ];
    let ip6 = [
        "ip route add 2001:db8::/48 via 2001:db8:ffff::2 bench1",
        policer,
        "policer subscriber add 2001:db8::/112 policer p each 128",
        output,
    ];
    // The same subscribers, each as a prefix of its own.
    let host = |number| {
        let address = std::net::Ipv4Addr::from_bits(FIRST + number);
        format!("policer subscriber add {address}/32 policer p")
    };
    let all: Vec<String> = (0..SUBSCRIBERS).map(host).collect();
    let hosts: Vec<&str> =
        [ip4[0], policer, output].into_iter().chain(all.iter().map(String::as_str)).collect();
    let (packets4, packets6) =
        (Packets::Ip4 { count: SUBSCRIBERS, random: true }, Packets::Ip6 { count: SUBSCRIBERS });
    vec![
        path("ip4-64k", Work::Ip4, packets4, &ip4[..1], None),
        path("ip4-policer-subscribers-64k", Work::Ip4, packets4, &ip4, None),
        path("ip4-policer-hosts-64k", Work::Ip4, packets4, &hosts, None),
        path("ip6-64k", Work::Ip6, packets6, &ip6[..1], None),
        path("ip6-policer-subscribers-64k", Work::Ip6, packets6, &ip6, None),
    ]
}
