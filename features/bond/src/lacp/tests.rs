//! Machines on a clock moved by hand: two systems that speak to each other over links that can be
//! cut, lose PDUs, or be plugged elsewhere.

use proptest::prelude::*;
use quiver_wire::MacAddress;
use quiver_wire::lacp::{Lacpdu, PortInfo, PortState};

use super::*;

const STEP_NS: u64 = SECOND_NS / 10;
const ACTIVE: PortWish = PortWish { active: true, short_timeout: true };
const PASSIVE: PortWish = PortWish { active: false, short_timeout: true };
const SLOW: PortWish = PortWish { active: true, short_timeout: false };

/// An end of a link: which system, which port.
type End = (usize, u16);

/// Systems, and links between their ports.
struct World {
    systems: Vec<Aggregator>,
    links: Vec<(End, End)>,
    /// Links that pass no PDU from the first end to the second.
    deaf: Vec<usize>,
    now_ns: u64,
    pdus: usize,
}

impl World {
    /// Systems with these ports each, all with this wish.
    fn new(wishes: &[PortWish], ports: u16) -> World {
        let system = |(number, wish): (usize, &PortWish)| {
            let mut system = Aggregator::new(MacAddress([2, 0, 0, 0, 0, number as u8 + 1]), 7);
            for port in 1..=ports {
                system.add(port, *wish);
                let _ = system.set_enabled(port, true, 0);
            }
            system
        };
        let systems = wishes.iter().enumerate().map(system).collect();
        World { systems, links: Vec::new(), deaf: Vec::new(), now_ns: 0, pdus: 0 }
    }

    /// Two systems whose ports of the same number are linked.
    fn pair(wishes: [PortWish; 2], ports: u16) -> World {
        let mut world = World::new(&wishes, ports);
        world.links = (1..=ports).map(|port| ((0, port), (1, port))).collect();
        world
    }

    fn step(&mut self) {
        let mut carried = Vec::new();
        for (number, system) in self.systems.iter_mut().enumerate() {
            for (port, pdu) in system.run(self.now_ns) {
                carried.push(((number, port), pdu));
            }
        }
        self.pdus += carried.len();
        for (from, pdu) in carried {
            for (link, (one, other)) in self.links.iter().enumerate() {
                let to = if *one == from && !self.deaf.contains(&link) {
                    *other
                } else if *other == from {
                    *one
                } else {
                    continue;
                };
                self.systems[to.0].hear(to.1, &pdu, self.now_ns);
            }
        }
        self.now_ns += STEP_NS;
    }

    fn run(&mut self, seconds: f64) {
        (0..(seconds * 10.0) as u32).for_each(|_| self.step());
    }

    fn port(&self, system: usize, port: u16) -> &Port {
        self.systems[system].port(port).expect("a port")
    }

    /// The ports that carry frames.
    fn carrying(&self, system: usize) -> Vec<u16> {
        (1..10)
            .filter(|p| self.systems[system].port(*p).is_some_and(Port::is_distributing))
            .collect()
    }
}

#[test]
fn two_active_systems_agree_on_all_links() {
    let mut world = World::pair([ACTIVE, ACTIVE], 3);
    world.run(4.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![1, 2, 3], vec![1, 2, 3]));
    assert_eq!(world.port(0, 1).mux, MuxState::Distributing);
    assert_eq!(world.port(0, 1).receive, ReceiveState::Current);
}

#[test]
fn a_passive_system_answers_an_active_one() {
    let mut world = World::pair([PASSIVE, ACTIVE], 2);
    world.run(4.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![1, 2], vec![1, 2]));
}

#[test]
fn two_passive_systems_say_nothing() {
    let mut world = World::pair([PASSIVE, PASSIVE], 2);
    world.run(60.0);
    assert_eq!(world.pdus, 0);
    assert!(world.carrying(0).is_empty());
    assert_eq!(world.port(0, 1).receive, ReceiveState::Defaulted);
}

#[test]
fn nobody_distributes_before_the_other_collects() {
    let mut world = World::pair([ACTIVE, PASSIVE], 2);
    for _ in 0..60 {
        world.step();
        for port in 1..=2 {
            for (here, there) in [(0, 1), (1, 0)] {
                let sends = world.port(here, port).is_distributing();
                assert!(!sends || world.port(there, port).is_collecting());
            }
        }
    }
}

#[test]
fn links_that_come_within_two_seconds_join_together() {
    let mut world = World::pair([ACTIVE, ACTIVE], 2);
    for system in &mut world.systems {
        let _ = system.set_enabled(2, false, 0);
    }
    world.run(1.0);
    let now = world.now_ns;
    for system in &mut world.systems {
        let _ = system.set_enabled(2, true, now);
    }
    let mut first = Vec::new();
    while first.is_empty() && world.now_ns < 60 * SECOND_NS {
        world.step();
        first = world.carrying(0);
    }
    assert_eq!(first, [1, 2]);
}

#[test]
fn a_partner_that_wants_pdus_often_gets_one_a_second() {
    let mut world = World::pair([ACTIVE, ACTIVE], 1);
    world.run(10.0);
    let before = world.pdus;
    world.run(30.0);
    assert!((58..=62).contains(&(world.pdus - before)), "{}", world.pdus - before);
}

#[test]
fn a_partner_that_wants_pdus_seldom_gets_one_in_thirty_seconds() {
    let mut world = World::pair([SLOW, ACTIVE], 1);
    world.run(40.0);
    let before = world.port(1, 1).counts.sent;
    world.run(300.0);
    let sent = world.port(1, 1).counts.sent - before;
    assert!((9..=11).contains(&sent), "{sent}");
    assert_eq!(world.carrying(0), [1]);
}

#[test]
fn a_silent_partner_is_lost_after_three_seconds_and_then_forgotten() {
    let mut world = World::pair([ACTIVE, ACTIVE], 2);
    world.run(5.0);
    let link = world.links.remove(0);
    world.run(2.0);
    assert_eq!(world.carrying(0), [1, 2]);
    world.run(2.0);
    assert_eq!((world.carrying(0), world.port(0, 1).receive), (vec![2], ReceiveState::Expired));
    world.run(3.0);
    assert_eq!(world.port(0, 1).receive, ReceiveState::Defaulted);
    assert_eq!(world.port(0, 1).counts.timeouts, 1);
    assert_eq!(world.port(0, 1).partner.system, MacAddress::ZERO);
    world.links.push(link);
    world.run(5.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![1, 2], vec![1, 2]));
}

#[test]
fn a_slow_partner_is_lost_after_ninety_seconds() {
    let mut world = World::pair([SLOW, SLOW], 1);
    world.run(10.0);
    world.links.clear();
    world.run(85.0 - 30.0);
    assert_eq!(world.carrying(0), [1]);
    world.run(40.0);
    assert!(world.carrying(0).is_empty());
}

#[test]
fn a_link_that_passes_one_way_only_carries_nothing() {
    let mut world = World::pair([ACTIVE, ACTIVE], 2);
    world.deaf = vec![0];
    world.run(30.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![2], vec![2]));
    world.deaf.clear();
    world.run(5.0);
    assert_eq!(world.carrying(0), [1, 2]);
    world.deaf = vec![0];
    world.run(8.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![2], vec![2]));
}

#[test]
fn links_to_another_system_are_not_aggregated() {
    let mut world = World::new(&[ACTIVE, ACTIVE, ACTIVE], 3);
    world.links = vec![((0, 1), (1, 1)), ((0, 2), (1, 2)), ((0, 3), (2, 3))];
    world.run(20.0);
    assert_eq!(world.carrying(0), [1, 2]);
    assert!(world.carrying(2).is_empty());
    assert_eq!(world.port(0, 3).selected, Selected::No);
    // The larger partner goes: the other takes its place.
    world.links.drain(..2);
    world.run(20.0);
    assert_eq!((world.carrying(0), world.carrying(2)), (vec![3], vec![3]));
}

#[test]
fn the_partner_that_is_there_stays_when_a_larger_one_comes() {
    let mut world = World::new(&[ACTIVE, ACTIVE, ACTIVE], 3);
    world.links = vec![((0, 3), (2, 3))];
    world.run(6.0);
    world.links.extend([((0, 1), (1, 1)), ((0, 2), (1, 2))]);
    world.run(20.0);
    assert_eq!(world.carrying(0), [3]);
}

#[test]
fn ports_of_another_key_are_not_aggregated() {
    let mut world = World::pair([ACTIVE, ACTIVE], 2);
    let mut other = Aggregator::new(MacAddress([2, 0, 0, 0, 0, 2]), 8);
    other.add(3, ACTIVE);
    other.set_enabled(3, true, 0);
    world.systems.push(other);
    world.systems[0].add(3, ACTIVE);
    world.systems[0].set_enabled(3, true, 0);
    world.links.push(((0, 3), (2, 3)));
    world.run(20.0);
    assert_eq!(world.carrying(0), [1, 2]);
}

#[test]
fn a_link_between_two_ports_of_one_system_is_a_loop() {
    let mut world = World::new(&[ACTIVE], 3);
    world.links = vec![((0, 1), (0, 2)), ((0, 3), (0, 3))];
    world.run(20.0);
    assert!(world.carrying(0).is_empty());
    assert!((1..=3).all(|port| world.port(0, port).is_looped()));
}

#[test]
fn a_partner_that_does_not_aggregate_is_a_single_link() {
    let mut world = World::new(&[ACTIVE], 2);
    let partner = |world: &World, port: u16| Lacpdu {
        actor: PortInfo {
            system: MacAddress([2, 9, 9, 9, 9, 9]),
            key: 1,
            port,
            state: PortState(
                PortState::ACTIVE.0
                    | PortState::SYNCHRONIZATION.0
                    | PortState::COLLECTING.0
                    | PortState::SHORT_TIMEOUT.0,
            ),
            ..PortInfo::default()
        },
        partner: world.port(0, port).actor,
        max_delay: 0,
    };
    for _ in 0..60 {
        for port in [1, 2] {
            let pdu = partner(&world, port);
            let now = world.now_ns;
            world.systems[0].hear(port, &pdu, now);
        }
        world.step();
    }
    assert_eq!(world.carrying(0), [1]);
}

#[test]
fn a_link_that_goes_down_stops_at_once() {
    let mut world = World::pair([ACTIVE, ACTIVE], 2);
    world.run(5.0);
    let now = world.now_ns;
    world.systems[0].set_enabled(1, false, now);
    world.step();
    assert_eq!(world.carrying(0), [2]);
    world.systems[0].set_enabled(1, true, world.now_ns);
    world.run(5.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![1, 2], vec![1, 2]));
}

#[test]
fn at_most_three_pdus_leave_in_a_second() {
    let mut world = World::pair([ACTIVE, ACTIVE], 1);
    world.run(5.0);
    let pdu = Lacpdu { actor: world.port(1, 1).actor, ..Lacpdu::default() };
    let before = world.port(0, 1).counts.sent;
    for _ in 0..10 {
        // A partner that knows nothing of us must be told, again and again.
        let now = world.now_ns;
        world.systems[0].hear(1, &pdu, now);
        world.step();
    }
    let sent = world.port(0, 1).counts.sent - before;
    assert!(sent <= 3, "{sent}");
    world.run(3.0);
    assert_eq!(world.carrying(0), [1], "what waited was told at last");
}

#[test]
fn a_system_with_another_address_is_selected_anew() {
    let mut world = World::pair([ACTIVE, ACTIVE], 2);
    world.run(5.0);
    let address = MacAddress([2, 0, 0, 0, 7, 7]);
    world.systems[1].set_system(address);
    world.run(5.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![1, 2], vec![1, 2]));
    assert_eq!(world.systems[0].lag().map(|lag| lag.system.1), Some(address));
}

#[test]
fn a_port_that_leaves_and_comes_back_carries_again() {
    let mut world = World::pair([ACTIVE, SLOW], 2);
    world.run(5.0);
    let _ = world.systems[0].remove(2);
    world.run(5.0);
    assert_eq!(world.carrying(0), [1]);
    world.systems[0].add(2, ACTIVE);
    let now = world.now_ns;
    world.systems[0].set_enabled(2, true, now);
    world.run(40.0);
    assert_eq!((world.carrying(0), world.carrying(1)), (vec![1, 2], vec![1, 2]));
}

fn any_info() -> impl Strategy<Value = PortInfo> {
    (0u8..4, 0u16..3, 0u16..4, any::<u8>()).prop_map(|(system, key, port, state)| PortInfo {
        system_priority: 0xffff,
        system: MacAddress([2 * u8::from(system > 0), 0, 0, 0, 0, system]),
        key,
        port_priority: 0xff,
        port,
        state: PortState(state),
    })
}

proptest! {
    /// Whatever a partner says: all ports that carry have one partner, none of them a loop, and
    /// distributing means collecting means synchronized.
    #[test]
    fn no_partner_breaks_the_rules(
        pdus in prop::collection::vec((1u16..4, any_info(), any_info(), 0u64..40), 0..60)
    ) {
        let mut system = Aggregator::new(MacAddress([2, 0, 0, 0, 0, 1]), 1);
        (1..4).for_each(|port| {
            system.add(port, ACTIVE);
            let _ = system.set_enabled(port, true, 0);
        });
        let mut now_ns = 0;
        for (port, actor, partner, steps) in pdus {
            let pdu = Lacpdu { actor, partner, max_delay: 0 };
            system.hear(port, &pdu, now_ns);
            now_ns += steps * STEP_NS;
            system.run(now_ns);
            let mut partners = Vec::new();
            for port in (1..4).filter_map(|port| system.port(port)) {
                let state = port.actor.state;
                prop_assert!(
                    !state.has(PortState::DISTRIBUTING) || state.has(PortState::COLLECTING)
                );
                prop_assert!(
                    !state.has(PortState::COLLECTING) || state.has(PortState::SYNCHRONIZATION)
                );
                if port.is_distributing() {
                    prop_assert!(port.partner.system != port.actor.system);
                    partners.push((port.partner.system, port.partner.key));
                }
            }
            partners.dedup();
            prop_assert!(partners.len() <= 1);
        }
    }
}
