//! The border relay of customers behind IPv6: packets of IPv4 to and from 65,536 customers, 64 of
//! whom share an address. The bare loop exchanges the headers and looks up what leaves.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_tables::synthetic::Random;
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::bare::exchange::{Exchange, Layer};
use crate::device::Template;
use crate::paths::{Packets, Path, Work, path};
use crate::population::ip4_frame;
use crate::provider_paths::{FRAME_SOFTWIRE, FRAME6, flow4, flow6, frame6, softwire_frame};

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
/// The prefix of customers, its bits, and where the bits of a customer begin behind it.
const CUSTOMERS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x7000, 0, 0, 0, 0, 0);
const EMBEDDED_SHIFT: u32 = 128 - 36 - 16;
/// The border relay of MAP-E, and the default mapping rule of MAP-T.
const BORDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x7fff, 0, 0, 0, 0, 1);
const RULE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0);
/// What every path has.
const BOTH_SIDES: [&str; 4] = [
    "ip route add 2001:db8:7000::/36 via 2001:db8:ffff::2 bench1",
    "ip route add 198.18.0.0/16 via 10.1.0.2 bench1",
    "map interface bench0",
    "map interface bench0 map-t",
];

/// Where packets of customers go to or come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Customers {
    /// From the server, to them.
    To,
    /// From them, in packets of IPv6.
    Encapsulated,
    /// From them, as packets of IPv6.
    Translated,
}

/// A customer.
#[derive(Clone, Copy)]
struct Customer {
    address: Ipv4Addr,
    psid: u32,
}

impl Customer {
    /// Customers at random.
    fn drawn() -> impl Iterator<Item = Customer> {
        let mut random = Random::new(13);
        (0..DRAWN).map(move |_| {
            let customer = random.below(u64::from(ADDRESSES << PSID_BITS)) as u32;
            let address = Ipv4Addr::from_bits(FIRST + (customer >> PSID_BITS));
            Customer { address, psid: customer & ((1 << PSID_BITS) - 1) }
        })
    }

    fn port(self) -> u16 {
        (self.psid << BEHIND_BITS | 77) as u16
    }

    /// Its address of IPv6 by arithmetic (RFC 7597 §5.2, §6).
    fn ip6(self) -> u128 {
        let embedded = (self.address.to_bits() - FIRST) << PSID_BITS | self.psid;
        let identifier = u128::from(self.address.to_bits()) << 16 | u128::from(self.psid);
        CUSTOMERS6.to_bits() | u128::from(embedded) << EMBEDDED_SHIFT | identifier
    }
}

impl Customers {
    /// Packets of all customers, at random.
    pub fn template(self) -> Template {
        let all = Customer::drawn();
        match self {
            Customers::To => {
                let mut frame = [0; 64];
                frame[..60].copy_from_slice(&ip4_frame(FIRST));
                let flows = all.map(|to| flow4((SERVER, to.address), [80, to.port()]));
                Template::Flows4(frame, Arc::new(flows.collect()), 0)
            }
            Customers::Encapsulated => {
                let flows =
                    all.map(|from| (from.ip6(), flow4((from.address, SERVER), [from.port(), 80])));
                Template::Softwires(softwire_frame(BORDER), Arc::new(flows.collect()), 0)
            }
            Customers::Translated => {
                let server = RULE.to_bits() | u128::from(SERVER.to_bits());
                let flows = all.map(|from| flow6([from.ip6(), server], [from.port(), 80]));
                Template::Flows6(frame6(), Arc::new(flows.collect()), 0)
            }
        }
    }
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

/// What [`encapsulated`] and [`translated`] do, the other way round.
fn back(takes: usize, puts: usize) -> Work {
    let exchange = Exchange::of(Layer::Ip6, Layer::Ip4);
    Work::Exchange(Exchange { takes, puts, looks_up: true, ..exchange })
}

/// A domain whose customers have their addresses by arithmetic (RFC 7597, RFC 7599).
fn by_arithmetic(name: &str, work: Work, packets: Customers, mode: &str) -> Path {
    let domain = format!(
        "map add domain ip4-pfx 20.0.0.0/22 ip6-pfx 2001:db8:7000::/36 {mode} ea-bits-len 16 \
         psid-offset 0 psid-len {PSID_BITS}"
    );
    let setup: Vec<&str> = BOTH_SIDES.into_iter().chain([domain.as_str()]).collect();
    let made = path(name, work, Packets::Customers(packets), &setup, None);
    let length = match packets {
        Customers::To => made.length,
        Customers::Encapsulated => FRAME_SOFTWIRE,
        Customers::Translated => FRAME6,
    };
    Path { length, ..made }
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
    path("lw4o6-br", encapsulated(), Packets::Customers(Customers::To), &setup, None)
}

/// All of them.
pub fn all() -> [Path; 5] {
    let (map_e, map_t) = ("ip6-src 2001:db8:7fff::1", "ip6-src 2001:db8:64::/96 map-t");
    let out_of_ip6 = back(Ip6Header::LEN, 0);
    let as_ip4 = back(Ip6Header::LEN, Ip4Header::LEN);
    [
        by_arithmetic("map-e-br", encapsulated(), Customers::To, map_e),
        by_arithmetic("map-t-br", translated(), Customers::To, map_t),
        by_arithmetic("map-e-br-out", out_of_ip6, Customers::Encapsulated, map_e),
        by_arithmetic("map-t-br-out", as_ip4, Customers::Translated, map_t),
        by_rules(),
    ]
}
