//! The paths that are measured, by the names that the published figures use.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use quiver_tables::synthetic::{Random, Zipf, internet_ip4, internet_ip6};
use quiver_wire::ip4::Ip4Header;
use quiver_wire::{Header, MacAddress};

use crate::bare::exchange::{Exchange, Layer};
use crate::device::Template;
use crate::population::{OUR_MAC, PEER_MAC, ip4_frame, ip6_frame};
use crate::segments::{self, Carried};

/// Prefixes of the full tables.
const FULL_IP4: usize = 1_000_000;
const FULL_IP6: usize = 200_000;
/// Next hops of the full tables.
const NEXT_HOPS: u64 = 64;
/// Destinations drawn; the packets take turns among them.
const DRAWN: usize = 1 << 20;
/// Host routes of the paths that are called by their number.
const IP4_ROUTES: [(&str, u32); 5] =
    [("1", 1), ("254", 254), ("20k", 20_000), ("200k", 200_000), ("2m", 2_000_000)];
/// Lines of a file of routes.
const LINES: u32 = 1_000_000;
/// Flows of a zipf popularity.
const FLOWS: usize = 100_000;

/// The first stations' addresses on the side that frames come from, and on the other.
pub const NEAR_STATIONS: u64 = 0x0210_0000_0000;
pub const FAR_STATIONS: u64 = 0x0220_0000_0000;

/// What the bare loop has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Pass on.
    Cross,
    /// Forward IPv4.
    Ip4,
    /// Forward IPv6.
    Ip6,
    /// Bridge: look source and destination up.
    Bridge,
    /// Bridge without learning: look the destination up.
    BridgeNoLearn,
    /// Bridge to the router, and forward IPv4.
    BridgeIp4,
    /// Forward IPv4, and bridge.
    Ip4Bridge,
    /// Put an SRv6 header before IPv6 packets.
    Encapsulate6,
    /// Put an SRv6 header before IPv4 packets.
    Encapsulate4,
    /// Put an SRv6 header before frames.
    EncapsulateFrames,
    /// Change what is in front of packets.
    Exchange(Exchange),
}

impl Work {
    /// Do interfaces have addresses, and next hops?
    fn routes(self) -> bool {
        !matches!(self, Work::Cross | Work::Bridge | Work::BridgeNoLearn)
    }
}

/// The VLAN tags of received frames, and of those that leave: the interfaces of the path are then
/// sub-interfaces `bench0.7` and `bench1.7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagging {
    /// None.
    Untagged,
    /// A customer tag, VLAN 100.
    Dot1q,
    /// A service tag, VLAN 100, and a customer tag, VLAN 200.
    Dot1ad,
}

impl Tagging {
    /// The tags as they stand in a frame.
    pub const fn bytes(self) -> &'static [u8] {
        match self {
            Tagging::Untagged => &[],
            Tagging::Dot1q => &[0x81, 0, 0, 100],
            Tagging::Dot1ad => &[0x88, 0xa8, 0, 100, 0x81, 0, 0, 200],
        }
    }

    /// What follows the name of a port in the name of the path's interface there.
    const fn suffix(self) -> &'static str {
        match self {
            Tagging::Untagged => "",
            _ => ".7",
        }
    }

    /// The words that create the sub-interface of a port.
    const fn takes(self) -> Option<&'static str> {
        match self {
            Tagging::Untagged => None,
            Tagging::Dot1q => Some("7 dot1q 100 exact-match"),
            Tagging::Dot1ad => Some("7 dot1ad 100 inner-dot1q 200 exact-match"),
        }
    }
}

/// A path through the graph.
pub struct Path {
    /// Its name.
    pub name: String,
    /// Commands that configure it, beside those of every path.
    pub setup: Vec<String>,
    /// Routes, one command a line, executed as a file.
    pub routes: Option<Routes>,
    /// The packets.
    pub packets: Packets,
    /// Bytes of a packet, without FCS.
    pub length: usize,
    /// The bare loop.
    pub work: Work,
    /// The tags of frames.
    pub tagging: Tagging,
    /// Do buffers rotate?
    pub cold: bool,
    /// A packet that comes before all others, by the third interface.
    pub primer: Option<fn() -> Vec<u8>>,
}

/// Full tables.
#[derive(Clone, Copy, Debug)]
pub enum Routes {
    /// A million IPv4 prefixes.
    FullIp4,
    /// 200,000 IPv6 prefixes.
    FullIp6,
    /// So many IPv4 host routes, each with a next hop of its own choice, so that nothing can be merged.
    Hosts4(u32),
    /// So many IPv6 host routes, likewise.
    Hosts6(u32),
    /// So many local SIDs, one after the other.
    LocalSids(u32),
}

/// How destinations are drawn.
#[derive(Clone, Copy, Debug)]
pub enum Packets {
    /// No look-up.
    Any,
    /// So many stations on either side, at random.
    Stations { count: u32 },
    /// IPv4 addresses from 20.0.0.0 on: so many, at random or one after another.
    Ip4 { count: u32, random: bool },
    /// IPv6 addresses from 2001:db8:: on.
    Ip6 { count: u32 },
    /// Packets to so many local SIDs, at random.
    Segments { carried: Carried, sids: u32 },
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

/// A path of untagged frames.
pub fn path(name: &str, work: Work, packets: Packets, setup: &[&str], routes: Option<Routes>) -> Path {
    Path {
        name: name.to_owned(),
        setup: setup.iter().map(|s| (*s).to_owned()).collect(),
        routes,
        packets,
        length: if work == Work::Ip6 { 74 } else { 60 },
        work,
        tagging: Tagging::Untagged,
        cold: false,
        primer: None,
    }
}

/// The same paths with tags; `{}` in a set-up stands for what follows a port's name in that of its sub-interface.
fn tagged() -> Vec<Path> {
    let one = Packets::Ip4 { count: 1, random: true };
    let route = "ip route add 20.0.0.0/32 via 10.1.0.2 bench1{}";
    let cross = "set interface l2 xconnect bench0{} bench1{}";
    let kinds = [
        ("l2-xconnect-dot1q", Work::Cross, Packets::Any, cross, Tagging::Dot1q),
        ("ip4-1-dot1q", Work::Ip4, one, route, Tagging::Dot1q),
        ("ip4-1-dot1ad", Work::Ip4, one, route, Tagging::Dot1ad),
    ];
    let tagged = kinds.map(|(name, work, packets, setup, tagging)| {
        let setup = setup.replace("{}", tagging.suffix());
        Path { tagging, ..path(name, work, packets, &[&setup], None) }
    });
    tagged.into()
}

/// Frames that a bond spreads over two members by their flows, or sends by its only one; and frames that a
/// member receives.
fn bond_paths() -> [Path; 3] {
    let flows = Packets::Ip4 { count: 20_000, random: true };
    let out = ["create bond mode xor load-balance l34", "set interface state BondEthernet0 up"];
    let members = ["bond add BondEthernet0 bench1", "bond add BondEthernet0 bench2"];
    let patch = ["set interface state bench2 up", "test l2patch rx bench0 tx BondEthernet0"];
    let two = [out, members, patch].concat();
    let one = [&out[..], &members[..1], &patch].concat();
    let input =
        [&out[..], &["bond add BondEthernet0 bench0", "test l2patch rx BondEthernet0 tx bench1"]].concat();
    [
        path("bond-xor-l34", Work::Cross, flows, &two, None),
        path("bond-one-member", Work::Cross, flows, &one, None),
        path("bond-input", Work::Cross, flows, &input, None),
    ]
}

/// All paths.
pub fn all() -> Vec<Path> {
    let mut paths = vec![
        path("l2-patch", Work::Cross, Packets::Any, &["test l2patch rx bench0 tx bench1"], None),
        path("l2-xconnect", Work::Cross, Packets::Any, &["set interface l2 xconnect bench0 bench1"], None),
    ];
    paths.extend(bridge_paths());
    paths.extend(bond_paths());
    for (name, count) in IP4_ROUTES {
        let route = format!("ip route add 20.0.0.0/32 count {count} via 10.1.0.2 bench1");
        paths.push(path(
            &format!("ip4-{name}"),
            Work::Ip4,
            Packets::Ip4 { count, random: true },
            &[&route],
            None,
        ));
        if name == "2m" {
            let packets = Packets::Ip4 { count, random: false };
            paths.push(path("ip4-2m-seq", Work::Ip4, packets, &[&route], None));
        }
    }
    for (name, count) in [("2m-hops", 2_000_000), ("16m", 16_000_000)] {
        let packets = Packets::Ip4 { count, random: true };
        paths.push(path(&format!("ip4-{name}"), Work::Ip4, packets, &[], Some(Routes::Hosts4(count))));
    }
    let full = Some(Routes::FullIp4);
    paths.push(path("ip4-full-zipf", Work::Ip4, Packets::FullZipf, &[], full));
    let default = "ip route add 0.0.0.0/0 via 10.1.0.2 bench1";
    paths.push(path("ip4-full-uniform", Work::Ip4, Packets::FullUniform, &[default], full));
    paths.push(path("ip4-full-random", Work::Ip4, Packets::FullRandom, &[], full));
    for (name, count) in [("1", 1), ("254", 254), ("20k", 20_000), ("200k", 200_000), ("2m", 2_000_000)] {
        let route = format!("ip route add 2001:db8::/128 count {count} via 2001:db8:ffff::2 bench1");
        paths.push(path(&format!("ip6-{name}"), Work::Ip6, Packets::Ip6 { count }, &[&route], None));
    }
    paths.extend(reassembly_paths());
    let (packets, routes) = (Packets::Ip6 { count: 2_000_000 }, Some(Routes::Hosts6(2_000_000)));
    paths.push(path("ip6-2m-hops", Work::Ip6, packets, &[], routes));
    let full = Some(Routes::FullIp6);
    paths.push(path("ip6-full-zipf", Work::Ip6, Packets::Full6Zipf, &[], full));
    paths.push(path("ip6-full-random", Work::Ip6, Packets::Full6Random, &[], full));
    paths.extend(checked());
    paths.extend(crate::headend_paths::all());
    let cold: Vec<Path> =
        ["l2-xconnect", "ip4-1", "ip4-full-zipf", "ip4-full-random", "ip6-1", "ip6-full-random"]
            .iter()
            .filter_map(|name| {
                let warm = paths.iter().find(|p| p.name == *name)?;
                Some(Path { name: format!("{name}-cold"), setup: warm.setup.clone(), cold: true, ..*warm })
            })
            .collect();
    paths.extend(cold);
    paths.extend(tagged());
    paths.extend(segment_paths());
    paths.extend(crate::function_paths::all());
    paths.extend(crate::bridge_segments::all());
    paths
}

/// Local SIDs, one behaviour each, and packets with a list of two segments.
fn segment_paths() -> Vec<Path> {
    const NEXT: &str = "ip route add 2001:db8::/128 via 2001:db8:ffff::2 bench1";
    const OUT4: &str = "ip route add 20.0.0.0/32 via 10.1.0.2 bench1";
    const TABLE: &str = "ip6 table add 10";
    const NEXT10: &str = "ip route add 2001:db8::/128 table 10 via 2001:db8:ffff::2 bench1";
    let of = |name: &str, carried, work: Exchange, behavior: &str, before: &[&str]| {
        let sid = format!("sr localsid address {} behavior {behavior}", segments::SID);
        let setup: Vec<&str> = before.iter().copied().chain([sid.as_str()]).collect();
        let packets = Packets::Segments { carried, sids: 1 };
        let length = segments::frame(carried).len();
        Path { length, ..path(name, Work::Exchange(work), packets, &setup, None) }
    };
    let looked_up = |exchange: Exchange| Exchange { looks_up: true, ..exchange };
    // The next segment becomes the destination.
    let step = Exchange { carries: Some((40 + 8, 24)), ..Exchange::of(Layer::Ip6, Layer::Ip6) };
    let popped = Exchange { takes: 40, carries: Some((24, 24)), ..Exchange::of(Layer::Ip6, Layer::Ip6) };
    // What is inside goes on without IPv6 and an SRH of two segments.
    let inside = |leaves| Exchange { takes: 40 + 40, ..Exchange::of(Layer::Ip6, leaves) };
    let many = |name: &str, sids| Path {
        length: segments::frame(Carried::Udp).len(),
        ..path(
            name,
            Work::Exchange(looked_up(step)),
            Packets::Segments { carried: Carried::Udp, sids },
            &[NEXT],
            Some(Routes::LocalSids(sids)),
        )
    };
    let un = {
        let next = format!("ip route add {}/48 via 2001:db8:ffff::2 bench1", segments::COMPRESSED_NEXT);
        let sid = format!("sr localsid address {}/48 behavior un", segments::SID);
        let packets = Packets::Segments { carried: Carried::Compressed, sids: 1 };
        let length = segments::frame(Carried::Compressed).len();
        // The C-SIDs behind the active one move up.
        let work = Exchange { carries: Some((24, 24)), ..looked_up(Exchange::of(Layer::Ip6, Layer::Ip6)) };
        Path { length, ..path("srv6-un", Work::Exchange(work), packets, &[&next, &sid], None) }
    };
    let (four, six, frame) = (inside(Layer::Ip4), inside(Layer::Ip6), inside(Layer::Frame));
    let (x4, x6) = ("bench1 10.1.0.2", "bench1 2001:db8:ffff::2");
    vec![
        un,
        of("srv6-end", Carried::Udp, looked_up(step), "end", &[NEXT]),
        of("srv6-end-psp", Carried::Udp, looked_up(popped), "end psp", &[NEXT]),
        of("srv6-endx", Carried::Udp, step, &format!("end.x {x6}"), &[]),
        of("srv6-endt", Carried::Udp, looked_up(step), "end.t 10", &[TABLE, NEXT10]),
        of("srv6-enddx4", Carried::Ip4, four, &format!("end.dx4 {x4}"), &[]),
        of("srv6-enddx6", Carried::Ip6, six, &format!("end.dx6 {x6}"), &[]),
        of("srv6-enddt4", Carried::Ip4, looked_up(four), "end.dt4 0", &[OUT4]),
        of("srv6-enddt6", Carried::Ip6, looked_up(six), "end.dt6 0", &[NEXT]),
        of("srv6-enddx2", Carried::Frame, frame, "end.dx2 bench1", &[]),
        many("srv6-end-100k", 100_000),
    ]
}

/// Virtual reassembly on the receiving interface, and packets that are no fragments.
fn reassembly_paths() -> [Path; 2] {
    let on = "set interface reassembly bench0 virtual on";
    let routes = [
        "ip route add 20.0.0.0/32 count 254 via 10.1.0.2 bench1",
        "ip route add 2001:db8::/128 count 254 via 2001:db8:ffff::2 bench1",
    ];
    let packets = Packets::Ip4 { count: 254, random: true };
    [
        path("ip4-254-sv", Work::Ip4, packets, &[routes[0], on], None),
        path("ip6-254-sv", Work::Ip6, Packets::Ip6 { count: 254 }, &[routes[1], on], None),
    ]
}

/// The paths through a bridge domain: so many stations on either side of it.
fn bridge_paths() -> Vec<Path> {
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
        paths.push(path(&format!("l2-bridge-{name}"), work, Packets::Stations { count }, &setup, None));
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
        .chain(["set interface l2 bridge bench0 1", &station, "ip route add 20.0.0.0/32 via 10.1.0.2 bench1"])
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

/// Routing to one prefix behind something that looks at sources first. The bare loop is that of plain
/// routing, so that the difference is what the check costs.
fn checked() -> Vec<Path> {
    let mut paths = Vec::new();
    for (family, work, packets, route) in [
        (
            "ip4",
            Work::Ip4,
            Packets::Ip4 { count: 1, random: true },
            "ip route add 20.0.0.0/32 via 10.1.0.2 bench1",
        ),
        (
            "ip6",
            Work::Ip6,
            Packets::Ip6 { count: 1 },
            "ip route add 2001:db8::/128 via 2001:db8:ffff::2 bench1",
        ),
    ] {
        let (neighbour, source) = match work {
            Work::Ip6 => ("ip neighbor bench0 2001:db8:fffe::2 02:00:00:00:01:02", "2001:db8:fffe::/48"),
            _ => ("ip neighbor bench0 10.0.0.2 02:00:00:00:01:02", "198.18.0.0/15"),
        };
        let next_hop = if work == Work::Ip6 { "2001:db8:fffe::2" } else { "10.0.0.2" };
        let back = format!("ip route add {source} via {next_hop} bench0");
        let table = if work == Work::Ip6 { "ip6 table add 9" } else { "ip table add 9" };
        let listed = format!("ip route add {source} table 9 via local");
        let names = [
            ("urpf", vec![neighbour.to_owned(), back, format!("set urpf {family} rx strict bench0")]),
            (
                "cop",
                vec![
                    table.to_owned(),
                    listed,
                    format!("cop whitelist bench0 {family} fib-id 9"),
                    "cop interface bench0".to_owned(),
                ],
            ),
            (
                "abf",
                vec![
                    format!(
                        "abf policy add id 1 match src {source} via {} bench1",
                        if work == Work::Ip6 { "2001:db8:ffff::2" } else { "10.1.0.2" }
                    ),
                    format!("abf attach {family} policy 1 bench0"),
                ],
            ),
        ];
        for (name, setup) in names {
            let setup: Vec<&str> = std::iter::once(route).chain(setup.iter().map(String::as_str)).collect();
            paths.push(path(&format!("{family}-{name}-1"), work, packets, &setup, None));
        }
    }
    paths
}

impl Path {
    /// The path's packets.
    pub fn template(&self) -> Template {
        let mut random = Random::new(11);
        match self.packets {
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
                let destinations = (0..DRAWN).map(|_| base + u128::from(random.below(u64::from(sids))));
                Template::Segments(segments::frame(carried), Arc::new(destinations.collect()))
            }
            Packets::Made(frame) => Template::Made(frame()),
            Packets::Any => Template::Plain(padded(&ip4_frame(0x1400_0000))),
            Packets::Ip4 { count, random: true } => {
                ip4_template((0..DRAWN).map(|_| 0x1400_0000 + random.below(u64::from(count)) as u32))
            }
            Packets::Ip4 { count, random: false } => ip4_template((0..count).map(|i| 0x1400_0000 + i)),
            Packets::FullUniform => ip4_template((0..DRAWN).map(|_| {
                loop {
                    let address = random.below(1 << 32) as u32;
                    if (1..224).contains(&(address >> 24)) && address >> 24 != 127 {
                        break address;
                    }
                }
            })),
            Packets::FullZipf | Packets::FullRandom => {
                let prefixes = internet_ip4(FULL_IP4, 1);
                let draws = draws(&mut random, prefixes.len(), matches!(self.packets, Packets::FullZipf));
                ip4_template(draws.into_iter().map(|i| random.address_in(prefixes[i])))
            }
            Packets::Ip6 { count } => {
                let base = u128::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0));
                ip6_template((0..DRAWN).map(|_| base + u128::from(random.below(u64::from(count)))))
            }
            Packets::Full6Random | Packets::Full6Zipf => {
                let prefixes = internet_ip6(FULL_IP6, 1);
                let draws = draws(&mut random, prefixes.len(), matches!(self.packets, Packets::Full6Zipf));
                ip6_template(draws.into_iter().map(|i| random.address_in(prefixes[i])))
            }
        }
    }

    /// Commands that every path has, then its own.
    pub fn commands(&self) -> Vec<String> {
        let mac = |last: u64| format!("02:00:00:00:01:{last:02x}");
        let [rx, tx] = ["bench0", "bench1"].map(|port| format!("{port}{}", self.tagging.suffix()));
        let mut lines: Vec<String> = Vec::new();
        for (port, name) in [("bench0", &rx), ("bench1", &tx)] {
            lines.push(format!("set interface state {port} up"));
            if let Some(takes) = self.tagging.takes() {
                lines.push(format!("create sub-interfaces {port} {takes}"));
                lines.push(format!("set interface state {name} up"));
            }
        }
        if self.work.routes() {
            lines.push(format!("set interface ip address {rx} 10.0.0.1/24"));
            lines.push(format!("set interface ip address {tx} 10.1.0.1/24"));
            lines.push(format!("set interface ip address {rx} 2001:db8:fffe::1/64"));
            lines.push(format!("set interface ip address {tx} 2001:db8:ffff::1/64"));
            for host in 2..2 + NEXT_HOPS {
                lines.push(format!("ip neighbor {tx} 10.1.0.{host} {}", mac(host)));
                lines.push(format!("ip neighbor {tx} 2001:db8:ffff::{host:x} {}", mac(host)));
            }
        }
        lines.extend(self.setup.iter().cloned());
        lines
    }

    /// The files of routes that the path has.
    pub fn route_files(&self) -> Box<dyn Iterator<Item = String>> {
        let files =
            |count: u32| (0..count).step_by(LINES as usize).map(move |at| (at, count.min(at + LINES)));
        match self.routes {
            None => Box::new(std::iter::empty()),
            Some(Routes::FullIp4) => Box::new(std::iter::once(lines4(internet_ip4(FULL_IP4, 1)))),
            Some(Routes::FullIp6) => Box::new(std::iter::once(lines6(internet_ip6(FULL_IP6, 1)))),
            Some(Routes::Hosts4(count)) => Box::new(files(count).map(|(from, to)| {
                lines4((from..to).map(|i| format!("{}/32", Ipv4Addr::from_bits(0x1400_0000 + i))))
            })),
            Some(Routes::LocalSids(count)) => Box::new(files(count).map(|(from, to)| {
                let sid = |i| Ipv6Addr::from_bits(segments::SID.to_bits() + u128::from(i));
                let line = |i| format!("sr localsid address {} behavior end\n", sid(i));
                (from..to).map(line).collect()
            })),
            Some(Routes::Hosts6(count)) => Box::new(files(count).map(|(from, to)| {
                let base = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0).to_bits();
                lines6((from..to).map(move |i| format!("{}/128", Ipv6Addr::from_bits(base + u128::from(i)))))
            })),
        }
    }
}

fn lines4(prefixes: impl IntoIterator<Item: std::fmt::Display>) -> String {
    lines(prefixes, |host| format!("10.1.0.{host}"))
}

fn lines6(prefixes: impl IntoIterator<Item: std::fmt::Display>) -> String {
    lines(prefixes, |host| format!("2001:db8:ffff::{host:x}"))
}

/// A command for each prefix, by a next hop drawn for it.
fn lines(prefixes: impl IntoIterator<Item: std::fmt::Display>, hop: impl Fn(u64) -> String) -> String {
    use std::fmt::Write;
    let mut random = Random::new(5);
    let mut lines = String::new();
    for prefix in prefixes {
        let _ = writeln!(lines, "ip route add {prefix} via {} bench1", hop(2 + random.below(NEXT_HOPS)));
    }
    lines
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

fn ip4_template(destinations: impl Iterator<Item = u32>) -> Template {
    let checksums = destinations.map(|destination| {
        let frame = ip4_frame(destination);
        (destination, Ip4Header::overlay(&frame[14..]).map_or(0, Ip4Header::checksum))
    });
    Template::Ip4(padded(&ip4_frame(0x1400_0000)), Arc::new(checksums.collect()))
}

fn ip6_template(destinations: impl Iterator<Item = u128>) -> Template {
    Template::Ip6(padded(&ip6_frame(Ipv6Addr::UNSPECIFIED)), Arc::new(destinations.collect()))
}
