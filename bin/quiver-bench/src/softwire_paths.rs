//! The border relay of customers behind IPv6: packets of IPv4 to 65,536 customers, 64 of whom share
//! an address. The bare loop puts the headers in front and looks up what leaves.

use std::net::Ipv4Addr;
use std::sync::Arc;

use quiver_tables::synthetic::Random;
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol};

use crate::bare::exchange::{Exchange, Layer};
use crate::device::{Flow4, Template};
use crate::paths::{Packets, Path, Work, path};
use crate::population::ip4_frame;

/// Addresses, from 20.0.0.0 on.
const ADDRESSES: u32 = 1 << 10;
const FIRST: u32 = 0x1400_0000;
/// Bits of a PSID, and of a port behind it.
const PSID_BITS: u32 = 6;
const BEHIND_BITS: u32 = 16 - PSID_BITS;
/// Who sends all packets.
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Packets drawn.
const DRAWN: usize = 1 << 20;
/// What every path has.
const BOTH_SIDES: [&str; 3] = [
    "ip route add 2001:db8:7000::/36 via 2001:db8:ffff::2 bench1",
    "map interface bench0",
    "map interface bench0 map-t",
];

/// Packets to all customers, at random.
pub fn template() -> Template {
    let mut frame = [0; 64];
    frame[..60].copy_from_slice(&ip4_frame(FIRST));
    let mut random = Random::new(13);
    let flows = (0..DRAWN).map(|_| {
        let customer = random.below(u64::from(ADDRESSES << PSID_BITS)) as u32;
        let to = Ipv4Addr::from_bits(FIRST + (customer >> PSID_BITS));
        let psid = customer & ((1 << PSID_BITS) - 1);
        let header = Ip4Header::new(SERVER, to, IpProtocol::UDP, 64, 26);
        Flow4 {
            addresses: [SERVER.to_bits(), to.to_bits()],
            ports: [80, (psid << BEHIND_BITS | 77) as u16],
            checksum: header.expect("short").checksum(),
            protocol: IpProtocol::UDP.0,
        }
    });
    Template::Flows4(frame, Arc::new(flows.collect()), 0)
}

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
        "map add domain ip4-pfx 20.0.0.0/22 ip6-pfx 2001:db8:7000::/36 {mode} ea-bits-len 16 \
         psid-offset 0 psid-len {PSID_BITS}"
    );
    let setup: Vec<&str> = BOTH_SIDES.into_iter().chain([domain.as_str()]).collect();
    path(name, work, Packets::Customers, &setup, None)
}

/// A rule for each customer (RFC 7596): 65,536 softwires.
fn by_rules() -> Path {
    let mut setup: Vec<String> = BOTH_SIDES.map(str::to_owned).to_vec();
    for index in 0..ADDRESSES {
        let ip4 = Ipv4Addr::from_bits(FIRST + index);
        setup.push(format!(
            "map add domain ip4-pfx {ip4}/32 ip6-pfx ::/0 ip6-src 2001:db8:7fff::1 index {index} \
             psid-len {PSID_BITS}"
        ));
        setup.extend((0..1 << PSID_BITS).map(|psid: u32| {
            let ip6 = format!("2001:db8:7001:{index:x}:{psid:x}::1");
            format!("map add rule index {index} psid {psid} ip6-dst {ip6}")
        }));
    }
    let setup: Vec<&str> = setup.iter().map(String::as_str).collect();
    path("lw4o6-br", encapsulated(), Packets::Customers, &setup, None)
}

/// All of them.
pub fn all() -> [Path; 3] {
    [
        by_arithmetic("map-e-br", encapsulated(), "ip6-src 2001:db8:7fff::1"),
        by_arithmetic("map-t-br", translated(), "ip6-src 2001:db8:64::/96 map-t"),
        by_rules(),
    ]
}
