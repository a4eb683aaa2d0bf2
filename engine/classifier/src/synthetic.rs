//! Lists of rules that look like those of operators, and packets for them, from a seed.
//!
//! Three families, by the shares that published rule sets have: access lists of a provider's edge
//! (specific sources, few destinations, exact ports), firewalls (many wildcards, ranges of ports)
//! and chains of a Linux host (specific pairs). Prefixes nest up to four deep.

use quiver_tables::prefix::Prefix;

use crate::key::field;
use crate::{Classified, Key, PortRange, Rule};

/// What the rules are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A provider's edge.
    AccessList,
    /// A firewall.
    Firewall,
    /// Chains of a host.
    Chain,
}

impl Family {
    /// All three.
    pub const ALL: [Family; 3] = [Family::AccessList, Family::Firewall, Family::Chain];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::AccessList => "acl",
            Family::Firewall => "fw",
            Family::Chain => "ipc",
        }
    }

    /// Percent of rules without source prefix, and of the others without destination prefix.
    const fn wildcards(self) -> (u64, u64) {
        match self {
            Family::AccessList => (1, 1),
            Family::Firewall => (25, 12),
            Family::Chain => (4, 3),
        }
    }

    /// Networks of sources and of destinations, of a thousand rules.
    const fn networks(self) -> (u64, u64) {
        match self {
            Family::AccessList => (400, 70),
            Family::Firewall => (350, 680),
            Family::Chain => (150, 290),
        }
    }

    /// Percent of rules that have the prefixes of another one, and other ports.
    const fn alike(self) -> u64 {
        match self {
            Family::AccessList => 20,
            Family::Firewall => 5,
            Family::Chain => 15,
        }
    }

    /// Percent of rules whose destination port is any, one, a range.
    const fn ports(self) -> (u64, u64) {
        match self {
            Family::AccessList => (20, 70),
            Family::Firewall => (35, 40),
            Family::Chain => (55, 35),
        }
    }
}

/// Numbers that look random (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.word() % end.max(1)
    }
}

/// Prefix lengths in 32nds of an address, and how many of a hundred prefixes have them.
const LENGTHS: [(u8, u64); 8] =
    [(32, 45), (24, 22), (28, 8), (27, 6), (26, 4), (23, 4), (16, 8), (21, 3)];

fn prefix<A: Classified>(random: &mut Random, networks: u64) -> Prefix<A> {
    let network = random.below(networks.max(1));
    // One network is the same whenever it is drawn; what is in it nests.
    let mut of_network = Random(network.wrapping_mul(0x1234_5678_9abc_def1));
    let (high, low) = (of_network.word(), of_network.word());
    let mut roll = of_network.below(100);
    let mut length = 16;
    for (candidate, share) in LENGTHS {
        if roll < share {
            length = candidate;
            break;
        }
        roll -= share;
    }
    // Some rules speak of the network around.
    let around = [0, 0, 0, 0, 0, 0, 4, 8][random.below(8) as usize];
    let length = u32::from(length - around.min(length - 8)) * A::BITS / 32;
    let address = if A::BITS == 32 {
        // A few /8 hold all, as in an operator's plan.
        let top = [20, 172, 192, 100][(high % 4) as usize];
        A::from_halves(0, (top << 24) | (low & 0x00ff_ffff))
    } else {
        A::from_halves(0x2001_0db8_0000_0000 | high & 0xffff_ffff, low)
    };
    Prefix::new(address, length as u8)
}

/// So many rules of a family, numbered from 0.
pub fn rules<A: Classified>(family: Family, count: usize, seed: u64) -> Vec<Rule<A>> {
    let mut random = Random::new(seed);
    let (wild_source, wild_destination) = family.wildcards();
    let (sources, destinations) = family.networks();
    let of = |per_thousand: u64| (per_thousand * count as u64).div_ceil(1000);
    let numbered = 0..count as u32;
    let mut before = (Prefix::ALL, Prefix::ALL);
    let rule = |number| {
        let side = |random: &mut Random, wild, networks| {
            if random.below(100) < wild { Prefix::ALL } else { prefix(random, of(networks)) }
        };
        if random.below(100) >= family.alike() {
            let source = side(&mut random, wild_source, sources);
            let wild = if source == Prefix::ALL { WILD_PAIRS } else { wild_destination };
            before = (source, side(&mut random, wild, destinations));
        }
        let (source, destination) = before;
        let protocol = match random.below(100) {
            0..70 => 6,
            70..90 => 17,
            90..94 => 1,
            _ => 0,
        };
        let mut rule = Rule { source, destination, ..Rule::all(number) };
        if protocol != 0 {
            (rule.value, rule.mask) = (protocol, field::PROTOCOL);
        }
        if protocol > 1 {
            let (any, one) = family.ports();
            rule.destination_ports = match random.below(100) {
                roll if roll < any => PortRange::ALL,
                roll if roll < any + one => PortRange::one(PORTS[random.below(16) as usize]),
                _ => RANGES[random.below(4) as usize],
            };
            if family == Family::Firewall && random.below(10) == 0 {
                rule.source_ports = RANGES[random.below(4) as usize];
            }
        }
        rule
    };
    let mut rules: Vec<Rule<A>> = numbered.map(rule).collect();
    // Who writes a list puts exceptions before what they are exceptions of, mostly.
    rules.sort_by_cached_key(|rule| {
        let bits = u32::from(rule.source.len()) + u32::from(rule.destination.len());
        std::cmp::Reverse(bits * 32 / A::BITS + random.below(DISORDER_BITS) as u32)
    });
    rules.iter_mut().zip(0..).for_each(|(rule, number)| rule.number = number);
    rules
}

/// Percent of rules without source prefix that have no destination prefix either.
const WILD_PAIRS: u64 = 2;
/// A rule may stand before one whose prefixes are longer by fewer bits than this, of IPv4.
const DISORDER_BITS: u64 = 10;

const PORTS: [u16; 16] =
    [80, 443, 53, 22, 25, 123, 161, 389, 636, 993, 1521, 3306, 3389, 5060, 8080, 8443];
const RANGES: [PortRange; 4] = [
    PortRange { from: 1024, to: 65535 },
    PortRange { from: 0, to: 1023 },
    PortRange { from: 6000, to: 6063 },
    PortRange { from: 137, to: 139 },
];

/// Networks that packets come from and go to where rules say nothing.
const ELSEWHERE: u64 = 1_000;

/// A packet that a rule drawn at random matches; another one before it may match first.
pub fn key<A: Classified>(rules: &[Rule<A>], random: &mut Random) -> Key<A> {
    let Some(rule) = rules.get(random.below(rules.len() as u64) as usize) else {
        return Key::default();
    };
    let mut inside = |prefix: Prefix<A>| {
        let prefix = if prefix.len() == 0 { self::prefix(random, ELSEWHERE) } else { prefix };
        let bits = A::from_halves(random.word(), random.word());
        prefix.first() | bits & (prefix.first() ^ prefix.last())
    };
    let (source, destination) = (inside(rule.source), inside(rule.destination));
    let mut port = |range: PortRange| {
        let span = u64::from(range.to - range.from) + 1;
        (u64::from(range.from) + random.below(span)) as u16
    };
    let (source_port, destination_port) = (port(rule.source_ports), port(rule.destination_ports));
    let protocol = if rule.mask & field::PROTOCOL == 0 { 17 } else { rule.value & field::PROTOCOL };
    let fields = protocol | field::UPPER;
    let length = 60;
    Key { source, destination, source_port, destination_port, fields, length, rx: 0, owner: 0 }
}
