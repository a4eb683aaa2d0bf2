//! Tables and destinations: what the paths of the benchmark are named after.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_forwarding::adjacency::{Adjacency, AdjacencyKind, AdjacencySlots};
use quiver_forwarding::next_hop_group::{GroupSlots, Hop};
use quiver_tables::ip4_lpm::Ip4LpmWriter;
use quiver_tables::lpm::Route;
use quiver_tables::prefix::Prefix;
use quiver_tables::synthetic::{Random, Zipf, internet_ip4};

/// MAC address of the interface that receives in every benchmark.
pub const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Where frames are sent on to.
pub const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// Next hops in the benchmarks with a full table.
const NEXT_HOPS: usize = 64;

/// An IPv4 table made for the inner-loop forms, without the control side.
pub struct Ip4Population {
    /// The writer, kept alive.
    pub writer: Ip4LpmWriter,
    /// What leaves refer to.
    pub groups: GroupSlots,
    /// What groups refer to.
    pub adjacencies: AdjacencySlots,
    /// Destinations of the packets, host order.
    pub destinations: Vec<u32>,
}

/// How destinations are drawn.
#[derive(Clone, Copy, Debug)]
pub enum Draw {
    /// One route, addresses of its subnet.
    OneRoute,
    /// A full table, prefixes by a zipf popularity over 100,000 flows.
    FullZipf,
    /// A full table, prefixes at random.
    FullRandom,
}

impl Ip4Population {
    /// The tables, and a million destinations.
    pub fn new(epochs: &Arc<Epochs>, draw: Draw) -> Ip4Population {
        let mut groups = GroupSlots::new(epochs).expect("memory");
        let mut adjacencies = AdjacencySlots::new(epochs).expect("memory");
        // The first group is the one that drops.
        let drop = groups.add(&[(Hop { next: NodeId(0), index: 0 }, 1)]).expect("room");
        let mut rewrite = [0u8; 14];
        rewrite[..6].copy_from_slice(&PEER_MAC);
        rewrite[6..12].copy_from_slice(&OUR_MAC);
        rewrite[12..].copy_from_slice(&[8, 0]);
        let hops = if matches!(draw, Draw::OneRoute) { 1 } else { NEXT_HOPS };
        let ids: Vec<_> = (0..hops)
            .map(|i| {
                let next_hop = IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0001 + i as u32));
                let adjacency = Adjacency::new(
                    AdjacencyKind::Complete,
                    InterfaceId(1),
                    NodeId(9),
                    1500,
                    next_hop,
                    &rewrite,
                );
                let index = adjacencies.add(adjacency).expect("room");
                groups.add(&[(Hop { next: NodeId(5), index }, 1)]).expect("room")
            })
            .collect();
        let mut writer = Ip4LpmWriter::new(epochs, drop).expect("memory");
        let mut random = Random::new(7);
        let prefixes = match draw {
            Draw::OneRoute => vec![Prefix::new(0x1400_0000u32, 8)],
            _ => internet_ip4(1_000_000, 1),
        };
        {
            let mut bulk = writer.bulk(0);
            for prefix in &prefixes {
                let group = ids[random.below(hops as u64) as usize];
                bulk.insert(*prefix, Route { group, note: 0 }).expect("room");
            }
            bulk.finish();
        }
        let zipf = Zipf::new(100_000.min(prefixes.len()), 1.0);
        let flows: Vec<u32> = (0..100_000)
            .map(|_| {
                let prefix = prefixes[random_below(&mut random, prefixes.len())];
                random.address_in(prefix)
            })
            .collect();
        let destinations = (0..1 << 20)
            .map(|_| match draw {
                Draw::FullZipf => flows[zipf.sample(&mut random)],
                _ => {
                    let prefix = prefixes[random_below(&mut random, prefixes.len())];
                    random.address_in(prefix)
                }
            })
            .collect();
        Ip4Population { writer, groups, adjacencies, destinations }
    }
}

fn random_below(random: &mut Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// A frame of 60 bytes (64 with FCS): UDP over IPv4 to `destination`.
pub fn ip4_frame(destination: u32) -> [u8; 60] {
    use quiver_wire::{Header, IpProtocol};
    let mut frame = [0u8; 60];
    frame[..6].copy_from_slice(&OUR_MAC);
    frame[6..12].copy_from_slice(&PEER_MAC);
    frame[12..14].copy_from_slice(&[8, 0]);
    let source = Ipv4Addr::new(198, 18, 0, 1);
    let destination = Ipv4Addr::from_bits(destination);
    let header = quiver_wire::ip4::Ip4Header::new(source, destination, IpProtocol::UDP, 64, 26);
    header.and_then(|h| h.write(&mut frame[14..]).ok()).expect("46 bytes fit");
    frame[34..42].copy_from_slice(&[0x10, 0, 0x20, 0, 0, 26, 0x12, 0x34]);
    frame
}

/// A frame of 74 bytes (78 with FCS): UDP over IPv6 to `destination`.
pub fn ip6_frame(destination: std::net::Ipv6Addr) -> [u8; 74] {
    use quiver_wire::{Header, IpProtocol};
    let mut frame = [0u8; 74];
    frame[..6].copy_from_slice(&OUR_MAC);
    frame[6..12].copy_from_slice(&PEER_MAC);
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    let source = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xfffe, 0, 0, 0, 0, 2);
    let header = quiver_wire::ip6::Ip6Header::new(source, destination, IpProtocol::UDP, 64, 20);
    header.write(&mut frame[14..]).expect("60 bytes fit");
    frame[54..62].copy_from_slice(&[0x10, 0, 0x20, 0, 0, 20, 0x12, 0x34]);
    frame
}
