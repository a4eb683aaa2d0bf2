//! Whatever packets come, while time passes and lists are replaced, each has the verdict of a naive
//! first match with a naive table of sessions.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use quiver_testkit::Router;
use quiver_testkit::frames::{Fragment, ip4};
use quiver_translation::tcp::{Direction, Tcp};

use crate::sessions::{
    ACK, FIN, ICMP, INSIDE, OUTSIDE, RST, SYN, TCP, UDP, echo, enters, leaves, router, upper,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Permit,
    Deny,
    Reflect,
}

/// A rule: for a protocol or all, and for destination ports from this one on.
#[derive(Clone, Copy, Debug)]
struct Rule {
    action: Action,
    protocol: Option<u8>,
    from_port: u16,
}

/// A packet: does it come from inside, protocol, ports of the ends inside and outside (of ICMP the
/// identifier, and whether it is an answer), TCP flags.
#[derive(Clone, Copy, Debug)]
struct Packet {
    is_outward: bool,
    protocol: u8,
    inside: u16,
    outside: u16,
    flags: u8,
}

#[derive(Clone, Debug)]
enum Step {
    Send(Packet),
    Wait(u64),
    Replace { is_output: bool, rules: Vec<Rule> },
}

/// A session: the packet that made it, the list's direction, TCP, the second of the last packet.
#[derive(Clone, Copy, Debug)]
struct Session {
    made_by: Packet,
    tcp: Tcp,
    seen_s: u64,
    /// Must the lists be asked again?
    is_stale: bool,
}

/// Protocol, whether outside requests (of ICMP), port inside, port outside.
type Key = (u8, bool, u16, u16);

impl Packet {
    fn is_reply(self) -> bool {
        self.protocol == ICMP && self.flags & 1 != 0
    }

    fn key(self) -> Key {
        match self.protocol {
            ICMP => (ICMP, self.is_outward == self.is_reply(), self.inside, 0),
            _ => (self.protocol, false, self.inside, self.outside),
        }
    }

    fn destination_port(self) -> u16 {
        if self.is_outward { self.outside } else { self.inside }
    }

    fn frame(self) -> Vec<u8> {
        let (inside, outside) = (self.inside, self.outside);
        let ports = if self.is_outward { (inside, outside) } else { (outside, inside) };
        let data = match self.protocol {
            ICMP => echo(if self.is_reply() { 0 } else { 8 }, inside),
            protocol => upper(protocol, ports, self.flags),
        };
        let (port, ends) =
            if self.is_outward { (1, (INSIDE, OUTSIDE)) } else { (0, (OUTSIDE, INSIDE)) };
        ip4(port, ends, self.protocol, Fragment::default(), &data)
    }
}

impl Rule {
    fn words(&self) -> String {
        let action = match self.action {
            Action::Permit => "permit",
            Action::Deny => "deny",
            Action::Reflect => "permit+reflect",
        };
        match self.protocol {
            None => action.to_owned(),
            Some(ICMP) => format!("{action} proto icmp"),
            Some(protocol) => {
                format!("{action} proto {protocol} dport {}-65535", self.from_port)
            }
        }
    }

    fn matches(&self, packet: Packet) -> bool {
        match self.protocol {
            None => true,
            Some(ICMP) => packet.protocol == ICMP,
            Some(protocol) => {
                packet.protocol == protocol && packet.destination_port() >= self.from_port
            }
        }
    }
}

/// The naive firewall. Lists by direction: input, output.
struct Model {
    lists: [Vec<Rule>; 2],
    sessions: HashMap<Key, Session>,
    now_s: u64,
}

impl Model {
    fn listed(&self, packet: Packet) -> Action {
        let list = &self.lists[usize::from(packet.is_outward)];
        list.iter().find(|rule| rule.matches(packet)).map_or(Action::Deny, |rule| rule.action)
    }

    fn is_stateful(&self) -> bool {
        self.lists.iter().flatten().any(|rule| rule.action == Action::Reflect)
    }

    fn timeout_s(session: &Session) -> u64 {
        match session.made_by.protocol {
            TCP if session.tcp.is_established() => 7_440,
            TCP => 120,
            _ => 300,
        }
    }

    fn direction(packet: Packet, session: &Session) -> Direction {
        match packet.is_outward == session.made_by.is_outward {
            true => Direction::InToOut,
            false => Direction::OutToIn,
        }
    }

    fn passes(&mut self, packet: Packet) -> bool {
        // Of ICMP, sessions are asked only about what the lists do not permit.
        let is_permitted = packet.protocol == ICMP && self.listed(packet) == Action::Permit;
        if self.is_stateful() && !is_permitted && self.is_of_session(packet) {
            return true;
        }
        match self.listed(packet) {
            Action::Deny => false,
            Action::Permit => true,
            Action::Reflect if packet.is_reply() => true,
            Action::Reflect => {
                let opens = packet.flags & (SYN | ACK | RST | FIN) == SYN;
                if packet.protocol == TCP && !opens {
                    return false;
                }
                let tcp = match packet.protocol {
                    TCP => Tcp::default().after(Direction::InToOut, packet.flags),
                    _ => Tcp::default(),
                };
                let session = Session { made_by: packet, tcp, seen_s: self.now_s, is_stale: false };
                self.sessions.insert(packet.key(), session);
                true
            }
        }
    }

    fn is_of_session(&mut self, packet: Packet) -> bool {
        let Some(session) = self.sessions.get(&packet.key()).copied() else { return false };
        if session.is_stale && self.listed(session.made_by) != Action::Reflect {
            self.sessions.remove(&packet.key());
            return false;
        }
        let now_s = self.now_s;
        let Some(session) = self.sessions.get_mut(&packet.key()) else { return false };
        session.is_stale = false;
        if packet.protocol == TCP {
            let sender = Model::direction(packet, session);
            let is_over = session.tcp.is_closed() || session.tcp.is_reset();
            let opens = packet.flags & (SYN | ACK) == SYN;
            if opens && is_over && sender == Direction::OutToIn {
                return false;
            }
            session.tcp = session.tcp.after(sender, packet.flags);
        }
        session.seen_s = now_s;
        true
    }

    /// Is it open whether a session has ended already? The clock hand goes round in 10 seconds.
    fn is_undecided(&self) -> bool {
        self.sessions.values().any(|session| {
            let idle_s = self.now_s - session.seen_s;
            let timeout_s = Model::timeout_s(session);
            (timeout_s - 1..timeout_s + 15).contains(&idle_s)
        })
    }

    fn expire(&mut self) {
        let now_s = self.now_s;
        self.sessions.retain(|_, session| now_s - session.seen_s < Model::timeout_s(session));
    }
}

fn wait(router: &mut Router, model: &mut Model, seconds: u64) {
    router.advance(Duration::from_secs(seconds));
    model.now_s += seconds;
    while model.is_undecided() {
        router.advance(Duration::from_secs(15));
        model.now_s += 15;
    }
    model.expire();
}

fn rule() -> impl Strategy<Value = Rule> {
    let action = prop_oneof![
        3 => Just(Action::Reflect), 1 => Just(Action::Permit), 2 => Just(Action::Deny),
    ];
    let protocol = prop_oneof![Just(None), Just(Some(ICMP)), Just(Some(TCP)), Just(Some(UDP))];
    (action, protocol, 0u16..4).prop_map(|(action, protocol, from_port)| Rule {
        action,
        protocol,
        from_port,
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let protocol = prop_oneof![1 => Just(ICMP), 4 => Just(TCP), 2 => Just(UDP)];
    let flags = prop_oneof![
        3 => Just(SYN), 3 => Just(SYN | ACK), 4 => Just(ACK), 1 => Just(FIN | ACK), 1 => Just(RST),
        1 => any::<u8>(),
    ];
    (any::<bool>(), protocol, 1u16..3, 1u16..4, flags).prop_map(
        |(is_outward, protocol, inside, outside, flags)| Packet {
            is_outward,
            protocol,
            inside,
            outside,
            flags,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let wait = prop_oneof![Just(1u64), Just(20), Just(90), Just(200), Just(8_000)];
    let replace = (any::<bool>(), prop::collection::vec(rule(), 1..5));
    prop_oneof![
        24 => packet().prop_map(Step::Send),
        2 => wait.prop_map(Step::Wait),
        1 => replace.prop_map(|(is_output, rules)| Step::Replace { is_output, rules }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_packet_has_the_verdict_of_a_naive_firewall(
        steps in prop::collection::vec(step(), 1..160),
    ) {
        let mut router = router();
        let all = |action| vec![Rule { action, protocol: None, from_port: 0 }];
        let lists = [all(Action::Deny), all(Action::Reflect)];
        let mut model = Model { lists, sessions: HashMap::new(), now_s: 0 };
        for (place, step) in steps.into_iter().enumerate() {
            match step {
                Step::Send(packet) => {
                    let expected = model.passes(packet);
                    let passed = match packet.is_outward {
                        true => leaves(&mut router, &packet.frame()),
                        false => enters(&mut router, &packet.frame()),
                    };
                    prop_assert_eq!(passed, expected, "step {}: {:?}", place, packet);
                }
                Step::Wait(seconds) => wait(&mut router, &mut model, seconds),
                Step::Replace { is_output, rules } => {
                    let words: Vec<String> = rules.iter().map(Rule::words).collect();
                    let index = if is_output { 1 } else { 2 };
                    router.cli(&format!("set acl-plugin acl index {index} {}", words.join(", ")));
                    model.lists[usize::from(is_output)] = rules;
                    model.sessions.values_mut().for_each(|session| session.is_stale = true);
                    if !model.is_stateful() {
                        model.sessions.clear();
                        wait(&mut router, &mut model, 15);
                    }
                }
            }
        }
    }
}
