//! The packets of a path, and how their destinations are drawn.

use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_tables::synthetic::{Random, Zipf, internet_ip4, internet_ip6};
use quiver_wire::ip4::Ip4Header;
use quiver_wire::{Header, MacAddress};

use super::routes::{FULL_IP4, FULL_IP6};
use crate::acl_paths::Listed;
use crate::device::Template;
use crate::nat_paths::Inside;
use crate::population::{ip4_frame, ip6_frame};
use crate::provider_paths::Sessions;
use crate::segments::{self, Carried};
use crate::softwire_paths::Customers;

/// Destinations drawn; the packets take turns among them.
const DRAWN: usize = 1 << 20;
/// Flows of a zipf popularity.
const FLOWS: usize = 100_000;

/// The first stations' addresses on the side that frames come from, and on the other.
pub const NEAR_STATIONS: u64 = 0x0210_0000_0000;
pub const FAR_STATIONS: u64 = 0x0220_0000_0000;

/// How destinations are drawn.
#[derive(Clone, Copy, Debug)]
pub enum Packets {
    /// No look-up.
    Any,
    /// So many stations on either side, at random.
    Stations { count: u32 },
    /// IPv4 addresses from 20.0.0.0 on: so many, at random or one after another.
    Ip4 { count: u32, random: bool },
    /// IPv4 addresses at random, so many packets in a row to each.
    Ip4Trains { count: u32, length: usize },
    /// So many IPv4 flows, first each once, then at random: sessions are there when it is
    /// measured, and are not found in the order in which they were made.
    Ip4Flows { count: u32 },
    /// IPv4 packets of many hosts, first each session once, then at random.
    Inside4(Inside),
    /// Packets of sessions that hosts of IPv6 or behind softwires have.
    Sessions(Sessions),
    /// Packets to or from 65,536 customers of a border relay, at random.
    Customers(Customers),
    /// IPv6 addresses from 2001:db8:: on.
    Ip6 { count: u32 },
    /// Packets to so many local SIDs, at random.
    Segments { carried: Carried, sids: u32 },
    /// IPv4 packets that a list permits.
    Listed4(Listed),
    /// IPv6 packets that a list permits.
    Listed6(Listed),
    /// The same frame again and again.
    Made(fn() -> Vec<u8>),
    /// Prefixes of the full table by popularity.
    FullZipf,
    /// Prefixes of the full table, all alike.
    FullRandom,
    /// Addresses that are unicast, all alike: most have no route in a full table's gaps, so a
    /// default route takes them.
    FullUniform,
    /// Prefixes of the full IPv6 table, all alike.
    Full6Random,
    /// Prefixes of the full IPv6 table by popularity.
    Full6Zipf,
}

impl Packets {
    /// The packets.
    pub fn template(self) -> Template {
        let mut random = Random::new(11);
        match self {
            Packets::Stations { count } => {
                let mut station = |first: u64| first + random.below(u64::from(count));
                let pairs = (0..DRAWN).map(|_| (station(FAR_STATIONS), station(NEAR_STATIONS)));
                let octets = |mac: u64| MacAddress::from_u64(mac).0;
                let pairs = pairs.map(|(to, from)| [octets(to), octets(from)]).collect();
                Template::Stations(padded(&ip4_frame(0x1400_0000)), Arc::new(pairs))
            }
            Packets::Segments { carried, sids } => {
                let first = match carried {
                    Carried::Compressed => segments::COMPRESSED,
                    _ => segments::SID,
                };
                let base = first.to_bits();
                let destinations =
                    (0..DRAWN).map(|_| base + u128::from(random.below(u64::from(sids))));
                Template::Segments(segments::frame(carried), Arc::new(destinations.collect()))
            }
            Packets::Listed4(listed) => listed.template4(),
            Packets::Listed6(listed) => listed.template6(),
            Packets::Customers(packets) => packets.template(),
            Packets::Inside4(inside) => inside.template4(),
            Packets::Sessions(sessions) => sessions.template(),
            Packets::Made(frame) => Template::Made(frame()),
            Packets::Any => Template::Plain(padded(&ip4_frame(0x1400_0000))),
            Packets::Ip4 { count, random: true } => ip4_template(
                (0..DRAWN).map(|_| 0x1400_0000 + random.below(u64::from(count)) as u32),
                0,
            ),
            Packets::Ip4 { count, random: false } => {
                ip4_template((0..count).map(|i| 0x1400_0000 + i), 0)
            }
            Packets::Ip4Trains { count, length } => {
                let drawn = (0..DRAWN / length).map(|_| random.below(u64::from(count)) as u32);
                let trains = drawn.flat_map(|at| std::iter::repeat_n(0x1400_0000 + at, length));
                ip4_template(trains, 0)
            }
            Packets::Ip4Flows { count } => {
                let drawn = (0..DRAWN).map(|_| random.below(u64::from(count)) as u32);
                let all = (0..count).chain(drawn);
                ip4_template(all.map(|i| 0x1400_0000 + i), count as usize)
            }
            Packets::FullUniform => {
                let unicast = (0..DRAWN).map(|_| {
                    loop {
                        let address = random.below(1 << 32) as u32;
                        if (1..224).contains(&(address >> 24)) && address >> 24 != 127 {
                            break address;
                        }
                    }
                });
                ip4_template(unicast, 0)
            }
            Packets::FullZipf | Packets::FullRandom => {
                let prefixes = internet_ip4(FULL_IP4, 1);
                let draws = draws(&mut random, prefixes.len(), matches!(self, Packets::FullZipf));
                ip4_template(draws.into_iter().map(|i| random.address_in(prefixes[i])), 0)
            }
            Packets::Ip6 { count } => {
                let base = u128::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0));
                ip6_template((0..DRAWN).map(|_| base + u128::from(random.below(u64::from(count)))))
            }
            Packets::Full6Random | Packets::Full6Zipf => {
                let prefixes = internet_ip6(FULL_IP6, 1);
                let draws = draws(&mut random, prefixes.len(), matches!(self, Packets::Full6Zipf));
                ip6_template(draws.into_iter().map(|i| random.address_in(prefixes[i])))
            }
        }
    }
}

/// Which prefix each packet goes to.
fn draws(random: &mut Random, prefixes: usize, by_popularity: bool) -> Vec<usize> {
    if !by_popularity {
        return (0..DRAWN).map(|_| random.below(prefixes as u64) as usize).collect();
    }
    let popular: Vec<usize> = (0..FLOWS).map(|_| random.below(prefixes as u64) as usize).collect();
    let zipf = Zipf::new(FLOWS, 1.0);
    (0..DRAWN).map(|_| popular[zipf.sample(random)]).collect()
}

fn padded<const N: usize, const M: usize>(frame: &[u8; N]) -> [u8; M] {
    let mut padded = [0; M];
    padded[..N].copy_from_slice(frame);
    padded
}

fn ip4_template(destinations: impl Iterator<Item = u32>, once: usize) -> Template {
    let checksums = destinations.map(|destination| {
        let frame = ip4_frame(destination);
        (destination, Ip4Header::overlay(&frame[14..]).map_or(0, Ip4Header::checksum))
    });
    Template::Ip4(padded(&ip4_frame(0x1400_0000)), Arc::new(checksums.collect()), once)
}

fn ip6_template(destinations: impl Iterator<Item = u128>) -> Template {
    Template::Ip6(padded(&ip6_frame(Ipv6Addr::UNSPECIFIED)), Arc::new(destinations.collect()))
}
