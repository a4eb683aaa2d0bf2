//! Rules as operators write them.

use std::fmt;
use std::sync::Arc;

use quiver_classifier::{Classified, PortRange, Rule as Compiled, SETS_OF_RULE_MAX, field};
use quiver_forwarding::fib::Family;
use quiver_tables::prefix::{Address, IpPrefix, Prefix};
use quiver_wire::IpProtocol;

use crate::named_set::{Kind, Role};

/// Protocols that have a word.
pub(crate) const PROTOCOLS: [(&str, IpProtocol); 4] = [
    ("tcp", IpProtocol::TCP),
    ("udp", IpProtocol::UDP),
    ("icmp", IpProtocol::ICMP),
    ("icmp6", IpProtocol::ICMP6),
];
/// The largest ICMP type and code.
const ICMP_MAX: u16 = 255;
/// The largest DSCP (RFC 2474 §3).
const DSCP_MAX: u8 = 63;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// It goes on.
    Permit,
    /// It is dropped.
    Deny,
    /// It goes on, and so does what belongs to its session, in both directions.
    Reflect,
}

impl Action {
    pub const fn word(self) -> &'static str {
        match self {
            Action::Permit => "permit",
            Action::Deny => "deny",
            Action::Reflect => "permit+reflect",
        }
    }

    /// By its word.
    pub fn of(word: &str) -> Result<Action, String> {
        match word {
            "permit" => Ok(Action::Permit),
            "deny" => Ok(Action::Deny),
            "permit+reflect" => Ok(Action::Reflect),
            _ => Err(format!("'{word}' is no action; permit, permit+reflect and deny are")),
        }
    }
}

/// A range of ports, or of ICMP types or codes, as it was given.
pub(crate) type Range = (u64, u64);

/// The names of the sets that a rule asks, by [`Role`].
pub(crate) type SetNames = [Option<Arc<str>>; SETS_OF_RULE_MAX];

/// A rule's fields as they were given; what is left out does not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub family: Option<Family>,
    pub source: Option<IpPrefix>,
    pub destination: Option<IpPrefix>,
    pub protocol: Option<u8>,
    pub source_ports: Option<Range>,
    pub destination_ports: Option<Range>,
    /// Value and mask.
    pub tcp_flags: Option<u8>,
    pub tcp_mask: Option<u8>,
    pub dscp: Option<u8>,
    pub fragment: bool,
    pub log: bool,
    pub sets: SetNames,
}

/// A rule that makes sense.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub action: Action,
    /// Is what it decides about logged?
    pub logs: bool,
    /// `None`: both families.
    family: Option<Family>,
    source: Option<IpPrefix>,
    destination: Option<IpPrefix>,
    protocol: Option<u8>,
    source_ports: PortRange,
    destination_ports: PortRange,
    /// Value and mask.
    tcp_flags: Option<(u8, u8)>,
    dscp: Option<u8>,
    fragment: bool,
    /// None where it asks no set.
    sets: Option<Box<SetNames>>,
}

fn family_of(prefix: &IpPrefix) -> Family {
    if prefix.is_ip6() { Family::Ip6 } else { Family::Ip4 }
}

/// A prefix that leaves all addresses of its family.
fn is_all(prefix: &IpPrefix) -> bool {
    prefix.len() == 0
}

impl Rule {
    /// Check a rule. The error is a sentence.
    pub fn new(action: Action, given: Given) -> Result<Rule, String> {
        let mut family = given.family;
        for (word, prefix) in [("src", &given.source), ("dst", &given.destination)] {
            let Some(prefix) = prefix else { continue };
            match family {
                Some(of) if of != family_of(prefix) => {
                    return Err(format!("{word} {prefix} is of another family than the rule"));
                }
                _ => family = Some(family_of(prefix)),
            }
        }
        let (source_ports, destination_ports) = ports(&given)?;
        check_sets(&given)?;
        if given.tcp_mask.is_some() != given.tcp_flags.is_some() {
            return Err("tcpflags and mask belong together".to_owned());
        }
        let tcp_flags = given.tcp_flags.zip(given.tcp_mask).filter(|(_, mask)| *mask != 0);
        if given.tcp_flags.is_some() && given.protocol != Some(IpProtocol::TCP.0) {
            return Err("tcpflags need proto tcp".to_owned());
        }
        if given.dscp.is_some_and(|dscp| dscp > DSCP_MAX) {
            return Err(format!("a DSCP is at most {DSCP_MAX}"));
        }
        let not_all = |prefix: &IpPrefix| !is_all(prefix);
        let asks = given.sets.iter().any(Option::is_some);
        Ok(Rule {
            sets: asks.then(|| Box::new(given.sets)),
            action,
            logs: given.log,
            family,
            source: given.source.filter(not_all),
            destination: given.destination.filter(not_all),
            protocol: given.protocol,
            source_ports,
            destination_ports,
            tcp_flags: tcp_flags.map(|(value, mask)| (value & mask, mask)),
            dscp: given.dscp,
            fragment: given.fragment,
        })
    }

    /// Does it look behind the IP header and its extensions?
    pub fn looks_at_upper(&self) -> bool {
        self.source_ports != PortRange::ALL
            || self.destination_ports != PortRange::ALL
            || self.tcp_flags.is_some()
            || self.asks_ports()
    }

    /// Does it look for a port in a set?
    fn asks_ports(&self) -> bool {
        self.sets().any(|(role, _)| role.kind() == Kind::Ports)
    }

    /// The sets that it asks, by name.
    pub fn sets(&self) -> impl Iterator<Item = (Role, &Arc<str>)> {
        let names = self.sets.iter().flat_map(|names| Role::ALL.into_iter().zip(&**names));
        names.filter_map(|(role, name)| Some((role, name.as_ref()?)))
    }

    /// As a classifier of family `A` compares it, with the numbers of the sets that it asks; none
    /// if it can match no packet of that family.
    pub fn compiled<A: Classified>(
        &self,
        number: u32,
        sets: [u16; SETS_OF_RULE_MAX],
    ) -> Option<Compiled<A>> {
        let is_ip6 = A::BITS == 128;
        if self.family.is_some_and(|family| (family == Family::Ip6) != is_ip6) {
            return None;
        }
        let (mut value, mut mask) = (0, 0);
        let mut set = |shift: u32, of: u32, number: u8| {
            value |= u32::from(number) << shift & of;
            mask |= of;
        };
        if let Some(protocol) = self.protocol {
            set(0, field::PROTOCOL, protocol);
        }
        if let Some(dscp) = self.dscp {
            set(field::DSCP_SHIFT, field::DSCP, dscp);
        }
        if self.fragment {
            value |= field::FRAGMENT;
            mask |= field::FRAGMENT;
        }
        if let Some((flags, of)) = self.tcp_flags {
            value |= u32::from(flags) << field::TCP_FLAGS_SHIFT;
            mask |= u32::from(of) << field::TCP_FLAGS_SHIFT;
        }
        if self.asks_ports() {
            value |= field::UPPER;
            mask |= field::UPPER;
        }
        Some(Compiled {
            sets,
            source: prefix_of(self.source),
            destination: prefix_of(self.destination),
            source_ports: self.source_ports,
            destination_ports: self.destination_ports,
            value,
            mask,
            number,
        })
    }
}

fn prefix_of<A: Address>(prefix: Option<IpPrefix>) -> Prefix<A> {
    let (address, length) = match prefix {
        Some(IpPrefix::V4(prefix)) => (prefix.first().ip(), prefix.len()),
        Some(IpPrefix::V6(prefix)) => (prefix.first().ip(), prefix.len()),
        None => return Prefix::ALL,
    };
    A::from_ip(address).map_or(Prefix::ALL, |address| Prefix::new(address, length))
}

/// Port sets are for protocols that have ports.
fn check_sets(given: &Given) -> Result<(), String> {
    let is_port = |role: &Role| role.kind() == Kind::Ports && given.sets[*role as usize].is_some();
    let Some(role) = Role::ALL.into_iter().find(is_port) else { return Ok(()) };
    match given.protocol {
        Some(protocol) if IpProtocol(protocol).has_ports() => Ok(()),
        _ => Err(format!("{} needs proto tcp, udp or another one with ports", role.word())),
    }
}

fn ports(given: &Given) -> Result<(PortRange, PortRange), String> {
    let is_icmp = given
        .protocol
        .is_some_and(|protocol| [IpProtocol::ICMP.0, IpProtocol::ICMP6.0].contains(&protocol));
    let range = |word: &str, range: Option<Range>| {
        let Some((from, to)) = range else { return Ok(PortRange::ALL) };
        let most = if is_icmp { ICMP_MAX } else { u16::MAX };
        if from > to {
            return Err(format!("{word} {from}-{to} ends before it begins"));
        }
        match (u16::try_from(from), u16::try_from(to)) {
            (Ok(from), Ok(to)) if to <= most => Ok(match (from, to) {
                (0, to) if to == most => PortRange::ALL,
                (from, to) => PortRange { from, to },
            }),
            _ => Err(format!("{word} is at most {most}")),
        }
    };
    let both = (range("sport", given.source_ports)?, range("dport", given.destination_ports)?);
    let are_given = given.source_ports.is_some() || given.destination_ports.is_some();
    match given.protocol {
        _ if !are_given => Ok(both),
        Some(protocol) if is_icmp || IpProtocol(protocol).has_ports() => Ok(both),
        Some(protocol) => Err(format!("protocol {protocol} has no ports")),
        None => Err("ports need proto tcp, udp, icmp or icmp6".to_owned()),
    }
}

/// The rule in the words of the command.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.word())?;
        if self.logs {
            f.write_str(" log")?;
        }
        let of_prefix = self.source.or(self.destination);
        match self.family.filter(|_| of_prefix.is_none()) {
            Some(Family::Ip4) => f.write_str(" ipv4")?,
            Some(Family::Ip6) => f.write_str(" ipv6")?,
            None => {}
        }
        for (word, prefix) in [("src", self.source), ("dst", self.destination)] {
            if let Some(prefix) = prefix {
                write!(f, " {word} {prefix}")?;
            }
        }
        if let Some(protocol) = self.protocol {
            match PROTOCOLS.iter().find(|(_, known)| known.0 == protocol) {
                Some((word, _)) => write!(f, " proto {word}")?,
                None => write!(f, " proto {protocol}")?,
            }
        }
        for (word, range) in [("sport", self.source_ports), ("dport", self.destination_ports)] {
            match range {
                PortRange::ALL => {}
                PortRange { from, to } if from == to => write!(f, " {word} {from}")?,
                PortRange { from, to } => write!(f, " {word} {from}-{to}")?,
            }
        }
        for (role, name) in self.sets() {
            write!(f, " {} {name}", role.word())?;
        }
        if let Some((value, mask)) = self.tcp_flags {
            write!(f, " tcpflags {value} mask {mask}")?;
        }
        if let Some(dscp) = self.dscp {
            write!(f, " dscp {dscp}")?;
        }
        if self.fragment { f.write_str(" fragment") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use quiver_classifier::NO_SET;

    use super::*;

    const NONE: [u16; SETS_OF_RULE_MAX] = [NO_SET; SETS_OF_RULE_MAX];

    fn prefix(text: &str) -> Option<IpPrefix> {
        let (address, length) = text.split_once('/')?;
        Some(IpPrefix::new(address.parse().ok()?, length.parse().ok()?))
    }

    fn set(role: Role) -> SetNames {
        let mut sets = SetNames::default();
        sets[role as usize] = Some("name".into());
        sets
    }

    #[test]
    fn what_cannot_match_is_refused() {
        let tcp = Some(6);
        let (ip4, ip6) = (prefix("10.0.0.0/8"), prefix("::/0"));
        let given = Given::default;
        for (given, what) in [
            (Given { source: ip4, destination: ip6, ..given() }, "family"),
            (Given { family: Some(Family::Ip4), source: ip6, ..given() }, "family"),
            (Given { source_ports: Some((80, 80)), ..given() }, "need proto"),
            (Given { protocol: Some(50), source_ports: Some((1, 1)), ..given() }, "no ports"),
            (Given { protocol: tcp, source_ports: Some((9, 8)), ..given() }, "before"),
            (Given { protocol: tcp, source_ports: Some((0, 65536)), ..given() }, "at most"),
            (Given { protocol: Some(1), source_ports: Some((0, 256)), ..given() }, "255"),
            (Given { protocol: tcp, tcp_flags: Some(2), ..given() }, "together"),
            (Given { tcp_flags: Some(2), tcp_mask: Some(2), ..given() }, "proto tcp"),
            (Given { dscp: Some(64), ..given() }, "63"),
            (Given { sets: set(Role::SourcePort), ..given() }, "sport-set needs"),
            (Given { protocol: Some(1), sets: set(Role::DestinationPort), ..given() }, "needs"),
        ] {
            let refused = Rule::new(Action::Permit, given.clone()).expect_err("refused");
            assert!(refused.contains(what), "{given:?}: {refused}");
        }
    }

    #[test]
    fn a_rule_says_itself_in_the_words_of_the_command() {
        let given = Given {
            source: prefix("10.1.2.3/8"),
            protocol: Some(6),
            destination_ports: Some((80, 443)),
            tcp_flags: Some(0x12),
            tcp_mask: Some(2),
            ..Given::default()
        };
        let rule = Rule::new(Action::Deny, given).expect("makes sense");
        let words = "deny src 10.0.0.0/8 proto tcp dport 80-443 tcpflags 2 mask 2";
        assert_eq!(rule.to_string(), words);
        assert!(rule.compiled::<u128>(0, NONE).is_none());
    }

    #[test]
    fn a_rule_without_a_family_is_of_both() {
        let rule = Rule::new(Action::Permit, Given::default()).expect("makes sense");
        assert!(
            rule.compiled::<u32>(0, NONE).is_some() && rule.compiled::<u128>(0, NONE).is_some()
        );
        let given = Given { family: Some(Family::Ip6), ..Given::default() };
        let rule = Rule::new(Action::Permit, given).expect("makes sense");
        assert_eq!(
            (rule.compiled::<u32>(0, NONE), rule.to_string()),
            (None, "permit ipv6".to_owned())
        );
    }
}
