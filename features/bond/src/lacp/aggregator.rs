//! An aggregator: the ports of one bond, and the machines over them.

use std::collections::BTreeMap;

use quiver_wire::MacAddress;
use quiver_wire::lacp::{Lacpdu, PortState};

use super::mux::MuxState;
use super::port::{Port, PortWish};
use super::receive::ReceiveState;
use super::selection::{Lag, select};

/// Steps of a mux machine until it rests at most: once through all its states and back.
const MUX_STEPS_MAX: usize = 10;

/// What the partner of a port that stops is told, so that it sends nothing more there; nothing when
/// it knows already, or there is none.
fn last_word(port: &Port) -> Option<Lacpdu> {
    let mut actor = port.actor;
    for bits in [PortState::SYNCHRONIZATION, PortState::COLLECTING, PortState::DISTRIBUTING] {
        actor.state = actor.state.with(bits, false);
    }
    let is_known = port.enabled && port.receive == ReceiveState::Current;
    is_known.then_some(Lacpdu { actor, partner: port.partner, max_delay: 0 })
}

/// The ports of one bond.
#[derive(Clone, Debug)]
pub struct Aggregator {
    system: MacAddress,
    key: u16,
    ports: BTreeMap<u16, Port>,
    lag: Option<Lag>,
}

impl Aggregator {
    /// An aggregator without ports.
    pub fn new(system: MacAddress, key: u16) -> Aggregator {
        Aggregator { system, key, ports: BTreeMap::new(), lag: None }
    }

    /// A port joins; its link is down until [`set_enabled`](Self::set_enabled).
    pub fn add(&mut self, number: u16, wish: PortWish) {
        self.ports.insert(number, Port::new(self.system, self.key, number, wish));
    }

    /// A port leaves. Returns what its partner should be told, so that it sends nothing more by it.
    pub fn remove(&mut self, number: u16) -> Option<Lacpdu> {
        self.ports.remove(&number).and_then(|port| last_word(&port))
    }

    /// A port.
    pub fn port(&self, number: u16) -> Option<&Port> {
        self.ports.get(&number)
    }

    /// The partner that ports aggregate with.
    pub fn lag(&self) -> Option<Lag> {
        self.lag
    }

    /// A port's link comes up or goes down. Returns what its partner should be told, if it can be,
    /// of one that goes down.
    pub fn set_enabled(&mut self, number: u16, enabled: bool, now_ns: u64) -> Option<Lacpdu> {
        let port = self.ports.get_mut(&number)?;
        let last = if enabled { None } else { last_word(port) };
        port.enable(enabled, now_ns);
        last
    }

    /// The router speaks as another system: partners are told so.
    pub fn set_system(&mut self, system: MacAddress) {
        if self.system == system {
            return;
        }
        self.system = system;
        for port in self.ports.values_mut() {
            port.actor.system = system;
            port.need_to_transmit = true;
        }
    }

    /// A port's partner has spoken.
    pub fn hear(&mut self, number: u16, pdu: &Lacpdu, now_ns: u64) {
        if let Some(port) = self.ports.get_mut(&number) {
            port.hear(pdu, now_ns);
        }
    }

    /// Run all machines until they rest; returns what must be sent, by port.
    pub fn run(&mut self, now_ns: u64) -> Vec<(u16, Lacpdu)> {
        for port in self.ports.values_mut() {
            port.run_receive(now_ns);
        }
        self.lag = select(self.lag, self.ports.values_mut());
        for _ in 0..MUX_STEPS_MAX {
            // All ports that wait join together, once all have waited (Ready, §6.4.15).
            let mut waiting = self.ports.values().filter(|port| port.mux == MuxState::Waiting);
            let ready = waiting.all(|port| port.has_waited(now_ns));
            // All take the step, so no short cut at the first that does.
            let moved = self
                .ports
                .values_mut()
                .filter_map(|port| port.step_mux(ready, now_ns).then_some(()));
            if moved.count() == 0 {
                break;
            }
        }
        let mut pdus = Vec::new();
        for (number, port) in &mut self.ports {
            port.run_periodic(now_ns);
            pdus.extend(port.take_pdu(now_ns).map(|pdu| (*number, pdu)));
        }
        pdus
    }
}
