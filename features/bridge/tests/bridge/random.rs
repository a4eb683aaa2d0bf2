//! Random frames and reconfiguration: each frame leaves by exactly the ports that a naive model of
//! a bridge says.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quiver_testkit::{Router, Settings};

use super::{BROADCAST, FEATURES, mac};

/// Ports: three interfaces, and a VLAN of a fourth whose tag is taken off.
const PORTS: [&str; 4] = ["e0", "e1", "e2", "e3.100"];
/// What each port's frames are on the wire of.
const WIRES: [&str; 4] = ["e0", "e1", "e2", "e3"];
const TAGGED: usize = 3;
const TAG: [u8; 4] = [0x81, 0, 0, 100];
const BVI: [u8; 6] = [0xde, 0xad, 0, 0, 0, 0];
const DOMAINS: usize = 2;
const STATIONS: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum To {
    Station(u8),
    All,
    Arp,
    Router,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Frame { port: usize, from: u8, to: To },
    Join { port: usize, domain: usize, group: u8, uu_fwd: bool },
    Leave { port: usize },
    Up { port: usize, up: bool },
    Switch { domain: usize, which: usize, on: bool },
    PortSwitch { port: usize, which: usize, on: bool },
    FlushAll,
    FlushPort { port: usize },
    FlushDomain { domain: usize },
    Clear,
    Forget { domain: usize, station: u8 },
    JoinRouter { domain: usize },
    LeaveRouter,
}

fn act() -> impl Strategy<Value = Act> {
    let (port, domain, station) = (0..PORTS.len(), 0..DOMAINS, 1..=STATIONS);
    let to = prop_oneof![
        6 => station.clone().prop_map(To::Station),
        2 => Just(To::All),
        1 => Just(To::Arp),
        1 => Just(To::Router),
    ];
    prop_oneof![
        24 => (port.clone(), station.clone(), to).prop_map(
            |(port, from, to)| Act::Frame { port, from, to }
        ),
        4 => (
            port.clone(), domain.clone(), prop_oneof![3 => Just(0u8), 2 => 1..3u8],
            prop::bool::weighted(0.25)
        )
            .prop_map(|(port, domain, group, uu_fwd)| Act::Join { port, domain, group, uu_fwd }),
        1 => port.clone().prop_map(|port| Act::Leave { port }),
        2 => (port.clone(), any::<bool>()).prop_map(|(port, up)| Act::Up { port, up }),
        2 => (domain.clone(), 0..5usize, prop::bool::weighted(0.7))
            .prop_map(|(domain, which, on)| Act::Switch { domain, which, on }),
        1 => (port.clone(), 0..3usize, prop::bool::weighted(0.7))
            .prop_map(|(port, which, on)| Act::PortSwitch { port, which, on }),
        1 => Just(Act::FlushAll),
        1 => port.prop_map(|port| Act::FlushPort { port }),
        1 => domain.clone().prop_map(|domain| Act::FlushDomain { domain }),
        1 => Just(Act::Clear),
        1 => (domain.clone(), station).prop_map(
            |(domain, station)| Act::Forget { domain, station }
        ),
        1 => domain.prop_map(|domain| Act::JoinRouter { domain }),
        1 => Just(Act::LeaveRouter),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Member {
    domain: usize,
    group: u8,
    uu_fwd: bool,
    /// learn, forward, flood.
    switches: [bool; 3],
}

/// Commands of the domain's switches, in the order of [`Model::switches`].
const SWITCHES: [&str; 5] = ["learn", "forward", "flood", "uu-flood", "arp-ufwd"];

/// What a bridge is, without any cleverness.
struct Model {
    ports: [Option<Member>; PORTS.len()],
    up: [bool; PORTS.len()],
    switches: [[bool; 5]; DOMAINS],
    known: BTreeMap<(usize, u8), usize>,
    router: Option<usize>,
}

impl Model {
    fn new() -> Model {
        Model {
            ports: [None; PORTS.len()],
            up: [true; PORTS.len()],
            switches: [[true, true, true, true, false]; DOMAINS],
            known: BTreeMap::new(),
            router: None,
        }
    }

    fn uu_fwd(&self, domain: usize) -> Option<usize> {
        (0..PORTS.len())
            .find(|port| self.ports[*port].is_some_and(|m| m.domain == domain && m.uu_fwd))
    }

    fn forget(&mut self, which: impl Fn(usize, u8, usize) -> bool) {
        self.known.retain(|(domain, station), port| !which(*domain, *station, *port));
    }

    /// May a frame from one port go to another?
    fn may(&self, from: usize, to: usize) -> bool {
        let (Some(here), Some(there)) = (self.ports[from], self.ports[to]) else { return false };
        from != to && self.up[to] && (here.group == 0 || here.group != there.group)
    }

    fn flood(&self, from: usize, domain: usize) -> Vec<usize> {
        let in_domain =
            |port: &usize| self.ports[*port].is_some_and(|m| m.domain == domain && !m.uu_fwd);
        (0..PORTS.len()).filter(in_domain).filter(|port| self.may(from, *port)).collect()
    }

    /// The ports that a frame leaves by, and whether the router gets it.
    fn frame(&mut self, from: usize, station: u8, to: To) -> (Vec<usize>, bool) {
        let Some(member) = self.ports[from].filter(|_| self.up[from]) else {
            return (vec![], false);
        };
        let (domain, one) = (member.domain, self.uu_fwd(member.domain));
        let [learns, forwards, floods, floods_unknown, arp_to_one] = self.switches[domain];
        let [port_learns, port_forwards, port_floods] = member.switches;
        let to_one = |one: usize| if self.may(from, one) { vec![one] } else { vec![] };
        let has_router = self.router == Some(domain);
        let out = match to {
            To::Arp if arp_to_one && one.is_some() => (to_one(one.unwrap_or_default()), false),
            To::All | To::Arp if floods && port_floods => (self.flood(from, domain), has_router),
            To::All | To::Arp => (vec![], false),
            _ if !(forwards && port_forwards) => (vec![], false),
            To::Router if has_router => (vec![], true),
            To::Station(other) if self.known.contains_key(&(domain, other)) => {
                let at = self.known[&(domain, other)];
                (to_one(at), false)
            }
            To::Router | To::Station(_) => match one {
                Some(one) => (to_one(one), false),
                None if floods_unknown && port_floods => (self.flood(from, domain), false),
                None => (vec![], false),
            },
        };
        if learns && port_learns {
            self.known.insert((domain, station), from);
        }
        out
    }
}

/// A frame of 60 bytes whose number stands in it.
fn frame(from: u8, to: To, number: u32) -> Vec<u8> {
    let destination = match to {
        To::Station(station) => mac(station),
        To::All | To::Arp => BROADCAST,
        To::Router => BVI,
    };
    let mut frame = destination.to_vec();
    frame.extend(mac(from));
    frame.extend(if to == To::Arp { [8, 6] } else { [0x88, 0xb5] });
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0xa5);
    frame
}

fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &TAG, &frame[12..]].concat()
}

struct Pair {
    router: Router,
    model: Model,
    sent: u32,
}

impl Pair {
    fn new(workers: usize, block_driver: bool) -> Pair {
        let settings = Settings { workers, block_driver, ..Settings::default() };
        let mut router = Router::with(settings, &FEATURES);
        for wire in WIRES {
            router.interface(wire);
        }
        for line in [
            "create sub-interfaces e3 100 dot1q 100 exact-match",
            "set interface state e3.100 up",
            "set interface l2 tag-rewrite e3.100 pop 1",
            "create bridge-domain 1",
            "create bridge-domain 2",
            "create loopback interface instance 0",
            "set interface state loop0 up",
        ] {
            router.cli(line);
        }
        Pair { router, model: Model::new(), sent: 0 }
    }

    fn act(&mut self, act: Act) {
        let Pair { router, model, .. } = self;
        match act {
            Act::Frame { port, from, to } => self.frame(port, from, to),
            Act::Join { port, domain, group, uu_fwd } => {
                let taken = model.uu_fwd(domain).is_some_and(|other| other != port);
                let kind = if uu_fwd { " uu-fwd" } else { "" };
                let line =
                    format!("set interface l2 bridge {} {}{kind} {group}", PORTS[port], domain + 1);
                if uu_fwd && taken {
                    router.refused(&line);
                    return;
                }
                router.cli(&line);
                let before = model.ports[port];
                let stays = before.is_some_and(|m| m.domain == domain && m.uu_fwd == uu_fwd);
                if !stays {
                    model.forget(|_, _, at| at == port);
                }
                let switches = before.filter(|_| stays).map_or([true; 3], |before| before.switches);
                model.ports[port] = Some(Member { domain, group, uu_fwd, switches });
                if PORTS[port] == "e3.100" {
                    router.cli("set interface l2 tag-rewrite e3.100 pop 1");
                }
            }
            Act::Leave { port } => {
                if model.ports[port].take().is_some() {
                    router.cli(&format!("set interface l3 {}", PORTS[port]));
                    model.forget(|_, _, at| at == port);
                }
            }
            Act::Up { port, up } => {
                router.cli(&format!(
                    "set interface state {} {}",
                    PORTS[port],
                    if up { "up" } else { "down" }
                ));
                model.up[port] = up;
                if !up {
                    model.forget(|_, _, at| at == port);
                }
            }
            Act::Switch { domain, which, on } => {
                let off = if on { "" } else { " disable" };
                router.cli(&format!("set bridge-domain {} {}{off}", SWITCHES[which], domain + 1));
                model.switches[domain][which] = on;
            }
            Act::PortSwitch { port, which, on } => {
                if let Some(member) = &mut model.ports[port] {
                    let off = if on { "" } else { " disable" };
                    router
                        .cli(&format!("set interface l2 {} {}{off}", SWITCHES[which], PORTS[port]));
                    member.switches[which] = on;
                }
            }
            Act::FlushAll => {
                router.cli("l2fib flush-mac all");
                model.known.clear();
            }
            Act::FlushPort { port } => {
                if model.ports[port].is_some() {
                    router.cli(&format!("l2fib flush-mac interface {}", PORTS[port]));
                    model.forget(|_, _, at| at == port);
                }
            }
            Act::FlushDomain { domain } => {
                router.cli(&format!("l2fib flush-mac bridge-domain {}", domain + 1));
                model.forget(|of, _, _| of == domain);
            }
            Act::Clear => {
                router.cli("clear l2fib");
                model.known.clear();
            }
            Act::Forget { domain, station } => {
                if model.known.remove(&(domain, station)).is_some() {
                    router.cli(&format!("l2fib del 02:00:00:00:00:0{station} {}", domain + 1));
                }
            }
            Act::JoinRouter { domain } => {
                router.cli(&format!("set interface l2 bridge loop0 {} bvi", domain + 1));
                model.router = Some(domain);
            }
            Act::LeaveRouter => {
                if model.router.take().is_some() {
                    router.cli("set interface l3 loop0");
                }
            }
        }
    }

    fn frame(&mut self, port: usize, from: u8, to: To) {
        self.sent += 1;
        let plain = frame(from, to, self.sent);
        let received = self.router.totals("loop0").rx_packets;
        let wire = if port == TAGGED { tagged(&plain) } else { plain.clone() };
        self.router.send(WIRES[port], &wire);
        let (ports, routed) = self.model.frame(port, from, to);
        for other in 0..PORTS.len() {
            let expected = match (ports.contains(&other), other) {
                (false, _) => vec![],
                (true, TAGGED) => vec![tagged(&plain)],
                (true, _) => vec![plain.clone()],
            };
            let out = self.router.sent(WIRES[other]);
            assert_eq!(
                out, expected,
                "{} of station {from} by {}, to {to:?}",
                PORTS[other], PORTS[port]
            );
        }
        let came = self.router.totals("loop0").rx_packets - received;
        assert_eq!(
            came,
            u64::from(routed),
            "to the router, from station {from} by {}",
            PORTS[port]
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// The clock stands still, so nothing is learned or forgotten for want of time.
    #[test]
    fn each_frame_leaves_by_the_ports_that_a_naive_bridge_says(
        acts in prop::collection::vec(act(), 1..120),
        workers in 1usize..3,
        block_driver: bool,
    ) {
        let mut pair = Pair::new(workers, block_driver);
        for (port, domain) in [(0, 0), (1, 0), (2, 0), (3, 0)] {
            pair.act(Act::Join { port, domain, group: 0, uu_fwd: false });
        }
        acts.into_iter().for_each(|act| pair.act(act));
    }
}
