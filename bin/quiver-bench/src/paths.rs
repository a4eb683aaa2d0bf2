//! The paths that are measured, by the names that the published figures use.

mod packets;
mod routes;

pub use packets::{FAR_STATIONS, NEAR_STATIONS, Packets};
pub use routes::Routes;

use crate::bare::exchange::Exchange;

/// Next hops of the full tables.
const NEXT_HOPS: u64 = 64;
/// Host routes of the paths that are called by their number.
const IP4_ROUTES: [(&str, u32); 5] =
    [("1", 1), ("254", 254), ("20k", 20_000), ("200k", 200_000), ("2m", 2_000_000)];

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
    /// Packets that come before all others, by the third interface: those that come once.
    pub primer: Option<Packets>,
}

/// A path of untagged frames.
pub fn path(
    name: &str,
    work: Work,
    packets: Packets,
    setup: &[&str],
    routes: Option<Routes>,
) -> Path {
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

/// The same paths with tags; `{}` in a set-up stands for what follows a port's name in that of its
/// sub-interface.
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
    let mut tagged: Vec<Path> = tagged.into();
    let route = "ip route add 2001:db8::/128 via 2001:db8:ffff::2 bench1.7";
    tagged.push(Path {
        tagging: Tagging::Dot1q,
        ..path("ip6-1-dot1q", Work::Ip6, Packets::Ip6 { count: 1 }, &[route], None)
    });
    tagged
}

/// Frames that a bond spreads over two members by their flows, or sends by its only one; and frames
/// that a member receives, which BFD watches or not. Its sessions are taken down: the bench is no
/// peer, and `bond-input` looks for their packets all the same.
fn bond_paths() -> [Path; 4] {
    let flows = Packets::Ip4 { count: 20_000, random: true };
    let out = ["create bond mode xor load-balance l34", "set interface state BondEthernet0 up"];
    let members = ["bond add BondEthernet0 bench1", "bond add BondEthernet0 bench2"];
    let patch = ["set interface state bench2 up", "test l2patch rx bench0 tx BondEthernet0"];
    let two = [out, members, patch].concat();
    let one = [&out[..], &members[..1], &patch].concat();
    let input =
        [&out[..], &["bond add BondEthernet0 bench0", "test l2patch rx BondEthernet0 tx bench1"]]
            .concat();
    let ends = "BondEthernet0 local-addr 10.9.0.1 peer-addr 10.9.0.2";
    let times = "desired-min-tx 50000 required-min-rx 50000 detect-mult 3";
    let watch = format!("bfd udp bond add {ends} {times}");
    let down = format!("bfd udp bond set-flags {ends} admin down");
    let watched = [&input[..], &[watch.as_str(), down.as_str()]].concat();
    [
        path("bond-xor-l34", Work::Cross, flows, &two, None),
        path("bond-one-member", Work::Cross, flows, &one, None),
        path("bond-input", Work::Cross, flows, &input, None),
        path("bond-input-watched", Work::Cross, flows, &watched, None),
    ]
}

/// All paths.
pub fn all() -> Vec<Path> {
    let mut paths = vec![
        path("l2-patch", Work::Cross, Packets::Any, &["test l2patch rx bench0 tx bench1"], None),
        path(
            "l2-xconnect",
            Work::Cross,
            Packets::Any,
            &["set interface l2 xconnect bench0 bench1"],
            None,
        ),
    ];
    paths.extend(crate::bridge_paths::all());
    paths.extend(bond_paths());
    paths.extend(crate::nat_paths::all());
    paths.extend(crate::provider_paths::all());
    paths.extend(crate::policer_paths::all());
    paths.extend(crate::shaper_paths::all());
    paths.extend(crate::softwire_paths::all());
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
        paths.push(path(
            &format!("ip4-{name}"),
            Work::Ip4,
            packets,
            &[],
            Some(Routes::Hosts4(count)),
        ));
    }
    let full = Some(Routes::FullIp4);
    paths.push(path("ip4-full-zipf", Work::Ip4, Packets::FullZipf, &[], full));
    let default = "ip route add 0.0.0.0/0 via 10.1.0.2 bench1";
    paths.push(path("ip4-full-uniform", Work::Ip4, Packets::FullUniform, &[default], full));
    paths.push(path("ip4-full-random", Work::Ip4, Packets::FullRandom, &[], full));
    for (name, count) in
        [("1", 1), ("254", 254), ("20k", 20_000), ("200k", 200_000), ("2m", 2_000_000)]
    {
        let route =
            format!("ip route add 2001:db8::/128 count {count} via 2001:db8:ffff::2 bench1");
        paths.push(path(
            &format!("ip6-{name}"),
            Work::Ip6,
            Packets::Ip6 { count },
            &[&route],
            None,
        ));
    }
    paths.extend(reassembly_paths());
    let (packets, routes) = (Packets::Ip6 { count: 2_000_000 }, Some(Routes::Hosts6(2_000_000)));
    paths.push(path("ip6-2m-hops", Work::Ip6, packets, &[], routes));
    let full = Some(Routes::FullIp6);
    paths.push(path("ip6-full-zipf", Work::Ip6, Packets::Full6Zipf, &[], full));
    paths.push(path("ip6-full-random", Work::Ip6, Packets::Full6Random, &[], full));
    paths.extend(checked());
    paths.extend(crate::acl_paths::all());
    paths.extend(crate::flow_paths::all());
    paths.extend(crate::headend_paths::all());
    paths.extend(crate::tunnel_paths::all());
    paths.extend(crate::label_paths::all());
    let cold: Vec<Path> =
        ["l2-xconnect", "ip4-1", "ip4-full-zipf", "ip4-full-random", "ip6-1", "ip6-full-random"]
            .iter()
            .filter_map(|name| {
                let warm = paths.iter().find(|p| p.name == *name)?;
                Some(Path {
                    name: format!("{name}-cold"),
                    setup: warm.setup.clone(),
                    cold: true,
                    ..*warm
                })
            })
            .collect();
    paths.extend(cold);
    paths.extend(tagged());
    let segments = crate::segment_paths::all();
    if let Some(end) = segments.iter().find(|path| path.name == "srv6-end") {
        let setup = end.setup.iter().map(|line| line.replace("bench1", "bench1.7")).collect();
        let name = "srv6-end-dot1q".to_owned();
        paths.push(Path { name, setup, tagging: Tagging::Dot1q, ..*end });
    }
    paths.extend(segments);
    paths.extend(crate::function_paths::all());
    paths.extend(crate::bridge_segments::all());
    paths
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

/// Routing to one prefix behind something that looks at sources first. The bare loop is that of
/// plain routing, so that the difference is what the check costs.
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
            Work::Ip6 => {
                ("ip neighbor bench0 2001:db8:fffe::2 02:00:00:00:01:02", "2001:db8:fffe::/48")
            }
            _ => ("ip neighbor bench0 10.0.0.2 02:00:00:00:01:02", "198.18.0.0/15"),
        };
        let next_hop = if work == Work::Ip6 { "2001:db8:fffe::2" } else { "10.0.0.2" };
        let back = format!("ip route add {source} via {next_hop} bench0");
        let table = if work == Work::Ip6 { "ip6 table add 9" } else { "ip table add 9" };
        let listed = format!("ip route add {source} table 9 via local");
        let names = [
            (
                "urpf",
                vec![neighbour.to_owned(), back, format!("set urpf {family} rx strict bench0")],
            ),
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
            (
                "policer",
                vec![
                    "policer add name p rate kbps cir 1000000000 cb 2147483647".to_owned(),
                    "policer input name p bench0".to_owned(),
                ],
            ),
            (
                "abf-acl",
                vec![
                    format!("set acl-plugin acl index 1 permit src {source}"),
                    format!(
                        "abf policy add id 2 acl 1 via {} bench1",
                        if work == Work::Ip6 { "2001:db8:ffff::2" } else { "10.1.0.2" }
                    ),
                    format!("abf attach {family} policy 2 bench0"),
                ],
            ),
            (
                "policer-acl",
                vec![
                    format!("set acl-plugin acl index 1 permit src {source}"),
                    "policer add name p rate kbps cir 1000000000 cb 2147483647".to_owned(),
                    "set policer classify interface bench0 input acl 1 policer p".to_owned(),
                ],
            ),
            (
                "policer-session",
                vec![
                    "policer add name p rate kbps cir 1000000000 cb 2147483647".to_owned(),
                    format!("classify table table 0 mask l3 {family} dst"),
                    format!(
                        "classify session policer-hit-next p table-index 0 match l3 {family} dst \
                         {}",
                        if work == Work::Ip6 { "2001:db8::" } else { "20.0.0.0" }
                    ),
                    format!("set policer classify interface bench0 {family}-table 0"),
                ],
            ),
            (
                "policer-2r3c",
                vec![
                    "policer add name p rate kbps cir 1000000000 cb 2147483647 eir 1000000000 type \
                     2r3c-2698"
                        .to_owned(),
                    "policer output name p bench1".to_owned(),
                ],
            ),
            (
                "qos",
                vec![
                    "qos egress map id 1 ip in 0 to 255 out 40".to_owned(),
                    "qos record ip bench0".to_owned(),
                    "qos mark ip bench1 id 1".to_owned(),
                ],
            ),
            (
                "classify",
                vec![
                    format!("classify table table 0 mask l3 {family} dst"),
                    format!(
                        "classify session acl-hit-next permit table-index 0 match l3 {family} dst \
                         {}",
                        if work == Work::Ip6 { "2001:db8::" } else { "20.0.0.0" }
                    ),
                    format!("set interface input acl intfc bench0 {family}-table 0"),
                ],
            ),
        ];
        // Features together in one arc: the sum of what each costs alone is the measure.
        for (several, of) in [("urpf-cop", &names[..2]), ("urpf-cop-abf", &names[..3])] {
            let setups = of.iter().flat_map(|(_, setup)| setup.iter().map(String::as_str));
            let setup: Vec<&str> = std::iter::once(route).chain(setups).collect();
            paths.push(path(&format!("{family}-{several}-1"), work, packets, &setup, None));
        }
        for (name, setup) in names {
            let setup: Vec<&str> =
                std::iter::once(route).chain(setup.iter().map(String::as_str)).collect();
            paths.push(path(&format!("{family}-{name}-1"), work, packets, &setup, None));
        }
    }
    paths
}

impl Path {
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
}
