//! Which hosts and ports transactions use: each client host has so many source ports, and hosts
//! times ports are the sessions. The n-th host talks to the n-th server.

use super::key::Key;
use quiver_tg_traffic::frames::random::Random;
use quiver_tg_traffic::profile::stateful::Clients;
use quiver_tg_traffic::profile::stateful::hosts::Hosts;
use quiver_tg_traffic::profile::stateful::{Order, ServerPort, Stateful};

/// Rounds of the network that mixes numbers.
const ROUNDS: usize = 4;

/// The sessions of a profile, one after the other, again and again.
pub struct Plan {
    clients: u32,
    first_port: u16,
    servers: Hosts,
    server_port: ServerPort,
    sessions: u32,
    /// The place of the next one in its round.
    next: u32,
    mix: Option<Mix>,
}

impl Plan {
    /// As the profile has it; it has been checked.
    pub fn new(stateful: &Stateful, clients: &Clients, servers: Hosts) -> Plan {
        let sessions = clients.count * u32::from(clients.ports_per_host);
        let mix = (stateful.order == Order::Random).then(|| Mix::new(sessions, stateful.seed));
        Plan {
            clients: clients.count,
            first_port: clients.first_port,
            servers,
            server_port: stateful.servers.port,
            sessions,
            next: 0,
            mix,
        }
    }

    /// Sessions until the first comes again.
    pub fn sessions(&self) -> u32 {
        self.sessions
    }

    /// The next session's key on the client's side.
    #[inline]
    pub fn next_key(&mut self) -> Key {
        let place = self.next;
        self.next = if place + 1 == self.sessions { 0 } else { place + 1 };
        let session = self.mix.as_ref().map_or(place, |mix| mix.of(place));
        self.key(session)
    }

    /// In order all hosts have their turn with the first port, then with the second.
    fn key(&self, session: u32) -> Key {
        let (host, port) = (session % self.clients, session / self.clients);
        let port = self.first_port + port as u16;
        let far_port = match self.server_port {
            ServerPort::Same => port,
            ServerPort::One(port) => port,
        };
        Key::new(host, port, self.servers.bits_at(host % self.servers.count()), far_port)
    }
}

/// A permutation of the numbers below `count`: a Feistel network over the next even power of two,
/// walked until the number is inside.
struct Mix {
    count: u32,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Mix {
    fn new(count: u32, seed: u64) -> Mix {
        let bits = (u32::BITS - count.saturating_sub(1).leading_zeros()).max(2);
        let mut random = Random::new(seed);
        Mix { count, half_bits: bits.div_ceil(2), keys: [(); ROUNDS].map(|()| random.bits()) }
    }

    fn of(&self, place: u32) -> u32 {
        let mut number = u64::from(place);
        // Each walk comes back into the range at the latest at where it began.
        loop {
            number = self.once(number);
            if number < u64::from(self.count) {
                return number as u32;
            }
        }
    }

    fn once(&self, number: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (left, right) = (right, left ^ (mixed >> 40 & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profiles::stateful;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn plan(text: &str) -> Plan {
        let stateful = stateful(text);
        let clients = stateful.clients.clone().expect("clients");
        let servers = stateful.servers.hosts().expect("hosts");
        Plan::new(&stateful, &clients, servers)
    }

    #[test]
    fn hosts_and_ports_are_those_of_the_nat44_scheme() {
        let text = "{kind: udp, clients: {on: 0, first: 10.0.0.0, count: 1024}, \
                    servers: {on: 1, first: 20.0.0.0, count: 1024, port: same}}";
        let mut plan = plan(text);
        assert_eq!(plan.sessions(), 64_512);
        let keys: Vec<Key> = (0..64_512).map(|_| plan.next_key()).collect();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 64_512);
        for key in &keys {
            // The destination has the source's offset in another subnet, and its port.
            assert_eq!(key.far() as u32, 0x1400_0000 + key.near());
            assert_eq!(key.far_port(), key.near_port());
            assert!((1024..1024 + 63).contains(&key.near_port()));
        }
        assert_eq!((keys[0].near(), keys[1].near(), keys[1024].near()), (0, 1, 0));
        assert_eq!((keys[1023].near_port(), keys[1024].near_port()), (1024, 1025));
        assert_eq!(plan.next_key(), keys[0]);
    }

    #[test]
    fn scales_of_the_nat44_scheme_have_their_sessions_in_both_orders() {
        let scales = [
            (1_024, 64_512),
            (4_096, 258_048),
            (16_384, 1_032_192),
            (65_536, 4_128_768),
            (262_144, 16_515_072),
        ];
        for (hosts, sessions) in scales {
            for order in ["sequential", "random, seed: 9"] {
                let text = format!(
                    "{{kind: udp, order: {order}, clients: {{on: 0, first: 10.0.0.0, count: \
                     {hosts}}}, \
                     servers: {{on: 1, first: 20.0.0.0, count: {hosts}, port: same}}}}"
                );
                let stateful: Stateful = serde_saphyr::from_str(&text).expect("YAML");
                let clients = stateful.clients.as_ref().expect("clients");
                let mut plan =
                    Plan::new(&stateful, clients, stateful.servers.hosts().expect("hosts"));
                assert_eq!(plan.sessions(), sessions);
                let keys: HashSet<Key> = (0..10_000).map(|_| plan.next_key()).collect();
                assert_eq!(keys.len(), 10_000);
                assert!(
                    keys.iter()
                        .all(|key| key.near() < hosts && (1024..1087).contains(&key.near_port()))
                );
            }
        }
    }

    proptest! {
        #[test]
        fn at_random_every_session_still_comes_once_a_round(count in 1u32..3000, seed: u64) {
            let mix = Mix::new(count, seed);
            let all: HashSet<u32> = (0..count).map(|place| mix.of(place)).collect();
            prop_assert_eq!(all.len(), count as usize);
            prop_assert!(all.iter().all(|n| *n < count));
        }
    }

    #[test]
    fn the_seed_decides_the_order() {
        let order = |seed| (0..1000).map(|n| Mix::new(1000, seed).of(n)).collect::<Vec<_>>();
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert_ne!(order(1), (0..1000).collect::<Vec<_>>());
    }
}
