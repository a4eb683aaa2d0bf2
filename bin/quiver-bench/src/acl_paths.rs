//! Routing behind access lists: fifty rules as CSIT has them, and long lists of three families.

use std::fmt::Write as _;
use std::sync::Arc;

use quiver_classifier::synthetic::{self, Family, Random};
use quiver_classifier::{Classified, Key, PortRange, Rule, field};
use quiver_tables::prefix::Prefix;
use quiver_wire::ip4::Ip4Header;

use crate::device::{Flow4, Flow6, Template};
use crate::paths::{Packets, Path, Routes, Work, path};
use crate::population::{ip4_frame, ip6_frame};

/// The flows of the paths whose names do not say how many.
const FLOWS: usize = 10_000;
/// Rules of a line of a file of commands.
const RULES_PER_LINE: usize = 400;
/// Seeds of rules and of packets.
const SEEDS: [u64; 2] = [5, 6];

/// What a list is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// 49 rules that match nothing, and one that permits all.
    Fifty,
    /// The same, but the last one makes sessions of UDP (`permit+reflect`).
    Reflecting,
    /// So many rules of a family; each permits, and each packet matches one of them.
    Generated(Family, usize),
}

/// A list, and the packets that meet it.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    rules: Rules,
    flows: usize,
    is_output: bool,
}

/// All of them.
pub fn all() -> Vec<Path> {
    let fifty = |flows, is_output| Listed { rules: Rules::Fifty, flows, is_output };
    let mut paths = vec![
        of("acl50-stateless-1", fifty(1, false), false),
        of("acl50-stateless-10k", fifty(FLOWS, false), false),
        of("acl50-out", fifty(FLOWS, true), false),
    ];
    for (name, flows) in [("10k", FLOWS), ("1m", 1_000_000)] {
        let listed = Listed { rules: Rules::Reflecting, flows, is_output: false };
        paths.push(of(&format!("acl50-stateful-{name}"), listed, false));
    }
    for (name, count) in [("1k", 1_000), ("10k", 10_000), ("100k", 100_000)] {
        for family in Family::ALL {
            let rules = Rules::Generated(family, count);
            let listed = Listed { rules, flows: FLOWS, is_output: false };
            let family = family.name();
            paths.push(of(&format!("acl-{name}-{family}"), listed, false));
            paths.push(of(&format!("acl6-{name}-{family}"), listed, true));
        }
    }
    paths
}

fn of(name: &str, listed: Listed, is_ip6: bool) -> Path {
    let (work, packets, route) = match is_ip6 {
        false => {
            (Work::Ip4, Packets::Listed4(listed), "ip route add 0.0.0.0/0 via 10.1.0.2 bench1")
        }
        true => {
            (Work::Ip6, Packets::Listed6(listed), "ip route add ::/0 via 2001:db8:ffff::2 bench1")
        }
    };
    let rules = if is_ip6 { Routes::Rules6(listed) } else { Routes::Rules4(listed) };
    path(name, work, packets, &[route], Some(rules))
}

impl Listed {
    fn makes_sessions(self) -> bool {
        self.rules == Rules::Reflecting
    }

    fn rules<A: Classified>(self) -> Vec<Rule<A>> {
        let Rules::Generated(family, count) = self.rules else {
            let mut rules: Vec<Rule<A>> = (0..49)
                .map(|number| Rule {
                    source: Prefix::host(A::from_halves(0, 0x0909_0000 | u64::from(number))),
                    destination_ports: PortRange { from: number as u16, to: 100 + number as u16 },
                    value: 17,
                    mask: field::PROTOCOL,
                    ..Rule::all(number)
                })
                .collect();
            let (value, mask) = match self.makes_sessions() {
                true => (17, field::PROTOCOL),
                false => (0, 0),
            };
            rules.push(Rule { value, mask, ..Rule::all(49) });
            return rules;
        };
        synthetic::rules(family, count, SEEDS[0])
    }

    fn keys<A: Classified>(self) -> Vec<Key<A>> {
        let (rules, mut random) = (self.rules(), Random::new(SEEDS[1]));
        // Of the fifty, the one that matches.
        let from = if matches!(self.rules, Rules::Generated(..)) { 0 } else { 49 };
        (0..self.flows).map(|_| synthetic::key(&rules[from..], &mut random)).collect()
    }

    /// The commands that make the list and attach it.
    pub fn lines<A: Classified>(self) -> String {
        let mut text = String::new();
        if self.makes_sessions() {
            let most = 2 * self.flows;
            let _ = writeln!(text, "set acl-plugin session table max-entries {most}");
        }
        for (piece, rules) in self.rules::<A>().chunks(RULES_PER_LINE).enumerate() {
            let mut rules: Vec<String> = rules.iter().map(words).collect();
            if let Some(last) = rules.last_mut().filter(|_| self.makes_sessions()) {
                *last = last.replacen("permit", "permit+reflect", 1);
            }
            let place = match piece * RULES_PER_LINE {
                0 => "acl index 1".to_owned(),
                from => format!("acl-rest 1 from {from}"),
            };
            let _ = writeln!(text, "set acl-plugin {place} {}", rules.join(", "));
        }
        let on = if self.is_output { "bench1 output" } else { "bench0 input" };
        let _ = writeln!(text, "set acl-plugin interface {on} acl 1");
        text
    }

    /// IPv4 packets.
    pub fn template4(self) -> Template {
        let mut frame = [0; 64];
        frame[..60].copy_from_slice(&ip4_frame(0));
        let flows = self.keys::<u32>().into_iter().map(|key| {
            let protocol = (key.fields & field::PROTOCOL) as u8;
            let (from, to) = (key.source.into(), key.destination.into());
            let header = Ip4Header::new(from, to, quiver_wire::IpProtocol(protocol), 64, 26);
            let checksum = header.expect("short").checksum();
            Flow4 {
                addresses: [key.source, key.destination],
                ports: [key.source_port, key.destination_port],
                checksum,
                protocol,
            }
        });
        let (flows, once) = self.first_apart(flows.collect());
        Template::Flows4(frame, Arc::new(flows), once)
    }

    /// Of a list that makes sessions each flow comes once in front of all: its session is made
    /// before anything is measured. How many those are.
    fn first_apart<F: Clone>(self, mut flows: Vec<F>) -> (Vec<F>, usize) {
        let once = if self.makes_sessions() { flows.len() } else { 0 };
        flows.extend_from_within(..once);
        (flows, once)
    }

    /// IPv6 packets.
    pub fn template6(self) -> Template {
        let mut frame = [0; 80];
        frame[..74].copy_from_slice(&ip6_frame(std::net::Ipv6Addr::UNSPECIFIED));
        let flows = self.keys::<u128>().into_iter().map(|key| Flow6 {
            addresses: [key.source, key.destination],
            ports: [key.source_port, key.destination_port],
            protocol: (key.fields & field::PROTOCOL) as u8,
        });
        let (flows, once) = self.first_apart(flows.collect());
        Template::Flows6(frame, Arc::new(flows), once)
    }
}

/// A rule in the words of the command.
fn words<A: Classified>(rule: &Rule<A>) -> String {
    let mut words = "permit".to_owned();
    for (word, prefix) in [("src", rule.source), ("dst", rule.destination)] {
        if prefix.len() > 0 {
            let _ = write!(words, " {word} {}/{}", prefix.first().ip(), prefix.len());
        }
    }
    if rule.mask & field::PROTOCOL != 0 {
        let _ = write!(words, " proto {}", rule.value & field::PROTOCOL);
    }
    for (word, ports) in [("sport", rule.source_ports), ("dport", rule.destination_ports)] {
        if ports != PortRange::ALL {
            let _ = write!(words, " {word} {}-{}", ports.from, ports.to);
        }
    }
    words
}
