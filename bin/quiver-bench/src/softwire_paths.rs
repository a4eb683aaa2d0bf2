//! The border relay of customers behind IPv6: packets of IPv4 to 65,536 shared addresses. The bare
//! loop puts the headers in front and looks up what leaves.

use std::net::Ipv4Addr;

use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::bare::exchange::{Exchange, Layer};
use crate::paths::{Packets, Path, Work, path};

/// Addresses, from 20.0.0.0 on, which the packets go to.
const ADDRESSES: u32 = 1 << 16;
const FIRST: u32 = 0x1400_0000;
/// The PSID of 6 bits that the destination port of all packets is in: 8192 / 1024.
const PSID: u16 = 8;
/// What every path has.
const BOTH_SIDES: [&str; 3] = [
    "ip route add 2001:db8:7000::/36 via 2001:db8:ffff::2 bench1",
    "map interface bench0",
    "map interface bench0 map-t",
];

/// Packets get a header of IPv6.
fn encapsulated() -> Work {
    let exchange = Exchange::of(Layer::Ip4, Layer::Ip6);
    Work::Exchange(Exchange { puts: Ip6Header::LEN, looks_up: true, ..exchange })
}

/// The header of IPv6 takes the place of that of IPv4.
fn translated() -> Work {
    let exchange = Exchange::of(Layer::Ip4, Layer::Ip6);
    let (takes, puts) = (Ip4Header::LEN, Ip6Header::LEN);
    Work::Exchange(Exchange { takes, puts, looks_up: true, ..exchange })
}

/// A domain whose customers have their addresses by arithmetic (RFC 7597, RFC 7599).
fn by_arithmetic(name: &str, work: Work, mode: &str) -> Path {
    let domain = format!(
        "map add domain ip4-pfx 20.0.0.0/16 ip6-pfx 2001:db8:7000::/36 {mode} ea-bits-len 22 \
         psid-offset 0 psid-len 6"
    );
    let setup: Vec<&str> = BOTH_SIDES.into_iter().chain([domain.as_str()]).collect();
    let packets = Packets::Ip4 { count: ADDRESSES, random: true };
    path(name, work, packets, &setup, None)
}

/// A rule for each customer (RFC 7596): each packet goes by another one of 65,536 softwires.
fn by_rules() -> Path {
    let mut setup: Vec<String> = BOTH_SIDES.map(str::to_owned).to_vec();
    for index in 0..ADDRESSES {
        let ip4 = Ipv4Addr::from_bits(FIRST + index);
        setup.push(format!(
            "map add domain ip4-pfx {ip4}/32 ip6-pfx ::/0 ip6-src 2001:db8:7fff::1 index {index} \
             psid-len 6"
        ));
        let ip6 = format!("2001:db8:7001:{index:x}::1");
        setup.push(format!("map add rule index {index} psid {PSID} ip6-dst {ip6}"));
    }
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    let packets = Packets::Ip4 { count: ADDRESSES, random: true };
    path("lw4o6-br", encapsulated(), packets, &setup, None)
}

/// All of them.
pub fn all() -> [Path; 3] {
    [
        by_arithmetic("map-e-br", encapsulated(), "ip6-src 2001:db8:7fff::1"),
        by_arithmetic("map-t-br", translated(), "ip6-src 2001:db8:64::/96 map-t"),
        by_rules(),
    ]
}
