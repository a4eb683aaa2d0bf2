//! Translation of addresses: sessions that are there already, found in another order than that in
//! which they were made. The bare loop forwards the packets as they came.

use std::net::Ipv4Addr;
use std::sync::Arc;

use quiver_tables::synthetic::Random;
use quiver_wire::IpProtocol;
use quiver_wire::ip4::Ip4Header;

use crate::device::{Flow4, Template};
use crate::paths::{Packets, Path, Work, path};
use crate::population::ip4_frame;

/// Ports of a host: with them 1,024 hosts share an address (CSIT's `nat44det` and `nat44ed`).
const PORTS_PER_HOST: u32 = 63;
/// Packets drawn at random behind those that make the sessions.
const DRAWN: usize = 1 << 20;
/// The first host inside, and the server that all talk to.
const HOSTS4: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);
const SERVER: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 1);
/// Hosts inside that each have [`PORTS_PER_HOST`] sessions with the server.
#[derive(Clone, Copy, Debug)]
pub struct Inside {
    hosts: u32,
}

/// How many, by the names of paths.
const SIZES: [(&str, Inside); 3] = [
    ("64k", Inside { hosts: 1 << 10 }),
    ("1m", Inside { hosts: 1 << 14 }),
    ("16m5", Inside { hosts: 1 << 18 }),
];

/// All of them.
pub fn all() -> Vec<Path> {
    let prefixes = [
        "ip route add 2001:db8::/128 via 2001:db8:ffff::2 bench1",
        "set npt66 binding interface bench1 internal 2001:db8:fffe::/48 external 2001:db8:77::/48",
    ];
    let npt66 = path("npt66-out", Work::Ip6, Packets::Ip6 { count: 1 }, &prefixes, None);
    let ed = [("1k", 1_000), ("64k", 64_000), ("1m", 1_000_000), ("16m5", 16_515_072)];
    let ed = ed.map(|(name, count)| endpoint_dependent(name, count));
    let [small, middle, _] = SIZES;
    let ei = [small, middle].map(|(name, inside)| endpoint_independent(name, inside));
    let det44 = SIZES.map(|(name, inside)| deterministic(name, inside));
    ed.into_iter().chain(ei).chain(det44).chain([npt66]).collect()
}

/// NAT44, each session to another destination.
fn endpoint_dependent(name: &str, count: u32) -> Path {
    let enable = format!("nat44 plugin enable sessions {count}");
    let setup = [
        "ip route add 20.0.0.0/8 via 10.1.0.2 bench1",
        &enable,
        "nat44 add address 192.0.2.1",
        "set interface nat44 in bench0 out bench1",
    ];
    let packets = Packets::Ip4Flows { count };
    path(&format!("nat44-ed-{name}"), Work::Ip4, packets, &setup, None)
}

/// NAT44 with a mapping for each port inside (RFC 4787 §4.1).
fn endpoint_independent(name: &str, inside: Inside) -> Path {
    let enable = format!("nat44 plugin enable sessions {}", inside.sessions());
    let pool = format!("nat44 add address 192.0.2.0 - {}", inside.last_of_pool());
    let setup = [
        "ip route add 20.0.0.0/8 via 10.1.0.2 bench1",
        &enable,
        "nat44 mapping endpoint-independent filtering any",
        &pool,
        "set interface nat44 in bench0 out bench1",
    ];
    path(&format!("nat44-ei-{name}"), Work::Ip4, Packets::Inside4(inside), &setup, None)
}

/// Deterministic NAT (RFC 7422): all hosts of 1,024 share an address.
fn deterministic(name: &str, inside: Inside) -> Path {
    let host_bits = inside.hosts.trailing_zeros();
    let shared =
        format!("det44 add in {HOSTS4}/{} out 192.0.2.0/{}", 32 - host_bits, 42 - host_bits);
    let setup = [
        "ip route add 20.0.0.0/8 via 10.1.0.2 bench1",
        "det44 plugin enable",
        &shared,
        "set interface det44 inside bench0 outside bench1",
    ];
    path(&format!("det44-{name}"), Work::Ip4, Packets::Inside4(inside), &setup, None)
}

impl Inside {
    /// Sessions, one for each port of each host.
    pub const fn sessions(self) -> u32 {
        self.hosts * PORTS_PER_HOST
    }

    /// The last of as many outside addresses as have twice the ports.
    fn last_of_pool(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(u32::from_be_bytes([192, 0, 2, 0]) + self.hosts / 512 - 1)
    }

    /// The host and the port of each packet: all once, then some at random.
    fn ends(self) -> impl Iterator<Item = (u32, u16)> {
        let (mut random, sessions) = (Random::new(11), self.sessions());
        let drawn = (0..DRAWN).map(move |_| random.below(sessions.into()) as u32);
        // Hosts begin their sessions one after another, not each all at once.
        let end = move |at: u32| (at % self.hosts, 1024 + (at / self.hosts) as u16);
        (0..sessions).chain(drawn).map(end)
    }

    /// IPv4 packets.
    pub fn template4(self) -> Template {
        let mut frame = [0; 64];
        frame[..60].copy_from_slice(&ip4_frame(0));
        let flows = self.ends().map(|(host, port)| {
            let from = Ipv4Addr::from_bits(HOSTS4.to_bits() + host);
            let header = Ip4Header::new(from, SERVER, IpProtocol::UDP, 64, 26);
            Flow4 {
                addresses: [from.to_bits(), SERVER.to_bits()],
                ports: [port, 80],
                checksum: header.expect("short").checksum(),
                protocol: IpProtocol::UDP.0,
            }
        });
        Template::Flows4(frame, Arc::new(flows.collect()), self.sessions() as usize)
    }
}
