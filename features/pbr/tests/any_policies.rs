//! Whatever policies there are, packets go where a naive reading of them says.

use std::net::Ipv4Addr;

use proptest::option::weighted;
use proptest::prelude::*;
use quiver_testkit::Router;

/// A policy: what it matches, and by which interface it sends; none drops.
#[derive(Clone, Debug)]
struct Policy {
    source: Option<(u8, u8)>,
    destination: Option<(u8, u8)>,
    protocol: Option<u8>,
    sport: Option<(u16, u16)>,
    dport: Option<(u16, u16)>,
    dscp: Option<u8>,
    priority: u32,
    out: Option<u8>,
    /// Does an access list say what matches?
    by_list: bool,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    source: u8,
    destination: u8,
    protocol: u8,
    ports: (u16, u16),
    dscp: u8,
    is_fragment: bool,
}

fn range() -> impl Strategy<Value = (u16, u16)> {
    (0u16..6, 0u16..4).prop_map(|(first, more)| (first, first + more))
}

/// A part of 198.51.100.0/24, by its last byte and length.
fn part() -> impl Strategy<Value = (u8, u8)> {
    (any::<u8>(), 24u8..=28)
        .prop_map(|(byte, length)| (byte & (0xffu16 << (32 - length)) as u8, length))
}

fn policy() -> impl Strategy<Value = Policy> {
    let addresses = (weighted(0.4, part()), weighted(0.4, part()));
    let upper = (
        weighted(0.3, prop::sample::select(vec![6u8, 17])),
        weighted(0.3, range()),
        weighted(0.3, range()),
    );
    let rest = (
        weighted(0.2, 0u8..3),
        0u32..4,
        prop_oneof![4 => (1u8..4).prop_map(Some), 1 => Just(None)],
    );
    (addresses, upper, rest, any::<bool>()).prop_map(|(addresses, upper, rest, by_list)| Policy {
        // Rules of lists have ports with a protocol alone.
        by_list: by_list && (upper.0.is_some() || upper.1.is_none() && upper.2.is_none()),
        source: addresses.0,
        destination: addresses.1,
        protocol: upper.0,
        sport: upper.1,
        dport: upper.2,
        dscp: rest.0,
        priority: rest.1,
        out: rest.2,
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let protocol = prop::sample::select(vec![6u8, 17, 47]);
    let ports = (0u16..10, 0u16..10);
    (any::<u8>(), any::<u8>(), protocol, ports, 0u8..3, prop::bool::weighted(0.1)).prop_map(
        |(source, destination, protocol, ports, dscp, is_fragment)| Packet {
            source,
            destination,
            protocol,
            ports,
            dscp,
            is_fragment,
        },
    )
}

impl Policy {
    fn words(&self) -> String {
        let mut words = String::new();
        let parts =
            [("src", self.source, [198, 51, 100]), ("dst", self.destination, [203, 0, 113])];
        for (word, part, [a, b, c]) in parts {
            words += &part.map_or(String::new(), |(byte, length)| {
                format!(" {word} {a}.{b}.{c}.{byte}/{length}")
            });
        }
        words += &self.protocol.map_or(String::new(), |protocol| format!(" proto {protocol}"));
        for (word, range) in [("sport", self.sport), ("dport", self.dport)] {
            words +=
                &range.map_or(String::new(), |(first, last)| format!(" {word} {first}-{last}"));
        }
        words += &self.dscp.map_or(String::new(), |dscp| format!(" dscp {dscp}"));
        if words.is_empty() { words } else { format!(" match{words}") }
    }

    /// Add the policy, and the list that it asks.
    fn add(&self, router: &mut Router, id: usize) {
        let via = self.out.map_or("drop".to_owned(), |out| format!("10.0.{out}.2 e{out}"));
        let words = self.words();
        if self.by_list {
            let rule = words.trim_start_matches(" match");
            router.cli(&format!("set acl-plugin acl index {id} permit{rule}, deny"));
            router.cli(&format!("abf policy add id {id} acl {id} via {via}"));
        } else {
            router.cli(&format!("abf policy add id {id}{words} via {via}"));
        }
    }

    fn takes(&self, packet: &Packet) -> bool {
        let inside = |part: Option<(u8, u8)>, byte: u8| {
            part.is_none_or(|(first, length)| u32::from(byte ^ first) >> (32 - length) == 0)
        };
        let has_ports = matches!(packet.protocol, 6 | 17) && !packet.is_fragment;
        let within = |range: Option<(u16, u16)>, port: u16| {
            range.is_none_or(|(first, last)| has_ports && (first..=last).contains(&port))
        };
        inside(self.source, packet.source)
            && inside(self.destination, packet.destination)
            && self.protocol.is_none_or(|protocol| protocol == packet.protocol)
            && within(self.sport, packet.ports.0)
            && within(self.dport, packet.ports.1)
            && self.dscp.is_none_or(|dscp| dscp == packet.dscp)
    }
}

impl Packet {
    fn frame(&self) -> Vec<u8> {
        let flags = if self.is_fragment { [0, 2] } else { [0, 0] };
        let mut header =
            vec![0x45, self.dscp << 2, 0, 44, 0, 7, flags[0], flags[1], 64, self.protocol, 0, 0];
        header.extend(Ipv4Addr::new(198, 51, 100, self.source).octets());
        header.extend(Ipv4Addr::new(203, 0, 113, self.destination).octets());
        let all: u32 =
            header.chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
        let sum = !((all & 0xffff) + (all >> 16)) as u16;
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let ports = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes()].concat();
        [&[2, 0xfe, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0], &header[..], &ports[..], &[0; 20]].concat()
    }
}

/// Packets come by e0; the routes lead to e1.
fn router() -> Router {
    let mut router = Router::new(&[
        quiver_ethernet::register,
        quiver_ip::register,
        quiver_acl::register,
        quiver_pbr::register,
    ]);
    // As policies have it: a fragment has no ports.
    router.cli("set acl-plugin l4-match-nonfirst-fragment 0");
    for number in 0..4 {
        router.interface(&format!("e{number}"));
        router.cli(&format!("set interface ip address e{number} 10.0.{number}.1/24"));
        router.cli(&format!("ip neighbor e{number} 10.0.{number}.2 02:00:00:00:00:0{number}"));
    }
    router.cli("ip route add 0.0.0.0/0 via 10.0.1.2 e1");
    router
}

fn ways(router: &mut Router) -> Vec<u8> {
    (0..4u8).filter(|number| !router.sent(&format!("e{number}")).is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_first_policy_that_matches_decides(
        policies in prop::collection::vec(policy(), 1..8),
        packets in prop::collection::vec(packet(), 1..40),
    ) {
        // Ports are matched with protocols that have them alone.
        let mut router = router();
        let mut order = Vec::new();
        for (id, policy) in policies.iter().enumerate() {
            policy.add(&mut router, id);
            router.cli(&format!("abf attach ip4 policy {id} priority {} e0", policy.priority));
            order.push((policy.priority, id));
        }
        order.sort_unstable();
        for packet in packets {
            let first = order.iter().find(|(_, id)| policies[*id].takes(&packet));
            let expected: Vec<u8> = match first {
                None => vec![1],
                Some((_, id)) => policies[*id].out.into_iter().collect(),
            };
            router.send("e0", &packet.frame());
            prop_assert_eq!(ways(&mut router), expected, "{:?}", packet);
        }
    }

    #[test]
    fn paths_that_come_and_go_share_the_traffic_of_a_policy(
        changes in prop::collection::vec((any::<bool>(), 1u8..4), 1..20),
    ) {
        let mut router = router();
        router.cli("abf policy add id 1 match src 198.51.100.0/24 via 10.0.2.2 e2");
        router.cli("abf attach ip4 policy 1 e0");
        let mut paths = std::collections::BTreeSet::from([2u8]);
        for (add, out) in changes {
            let line = if add { "add" } else { "del" };
            let line = format!("abf policy {line} id 1 via 10.0.{out}.2 e{out}");
            match add {
                true => {
                    router.cli(&line);
                    paths.insert(out);
                }
                false if paths.contains(&out) && paths.len() > 1 => {
                    router.cli(&line);
                    paths.remove(&out);
                }
                false => drop(router.refused(&line)),
            }
            let mut used = std::collections::BTreeSet::new();
            for port in 0..64 {
                let packet = Packet {
                    source: 1,
                    destination: 1,
                    protocol: 17,
                    ports: (port, 9),
                    dscp: 0,
                    is_fragment: false,
                };
                router.send("e0", &packet.frame());
                let ways = ways(&mut router);
                prop_assert_eq!(ways.len(), 1);
                used.extend(ways);
            }
            prop_assert_eq!(&used, &paths);
        }
        let written = router.cli("show running-config");
        let lines: Vec<_> = written.lines().filter(|line| line.starts_with("abf policy")).collect();
        prop_assert_eq!(lines.len(), 1);
        prop_assert_eq!(lines[0].matches(" via ").count(), paths.len());
    }
}
