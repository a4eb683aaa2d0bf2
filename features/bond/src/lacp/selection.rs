//! The selection logic: which ports are links of the one aggregation (§6.4.14).
//!
//! An aggregator has one partner: a system and its key. It stays with the one it has as long as any
//! port has it; else it takes the one that most ports have. Ports with another partner wait, and so
//! do ports whose partner is this router itself, does not aggregate while others do, or says
//! nothing.

use quiver_wire::MacAddress;
use quiver_wire::lacp::PortState;

use super::port::Port;
use super::receive::ReceiveState;

/// Does the selection logic want a port?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// No.
    No,
    /// Yes.
    Yes,
}

/// Whom the other end of an aggregation belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Its system.
    pub system: (u16, MacAddress),
    /// Its key.
    pub key: u16,
    /// The one port of a partner that does not aggregate.
    individual: Option<u16>,
}

impl Port {
    /// The aggregation that the port could be a link of.
    fn lag(&self) -> Option<Lag> {
        if self.receive != ReceiveState::Current && self.receive != ReceiveState::Expired {
            return None;
        }
        // A partner of before the link went down is nobody yet.
        if self.partner.system == MacAddress::ZERO || self.partner.system == self.actor.system {
            return None;
        }
        let aggregates = self.partner.state.has(PortState::AGGREGATION);
        Some(Lag {
            system: (self.partner.system_priority, self.partner.system),
            key: self.partner.key,
            individual: (!aggregates).then_some(self.partner.port),
        })
    }
}

/// Choose the aggregation and say which ports are its links.
pub(super) fn select<'p>(
    current: Option<Lag>,
    ports: impl Iterator<Item = &'p mut Port>,
) -> Option<Lag> {
    let mut ports: Vec<&mut Port> = ports.collect();
    let links = |lag: Lag| ports.iter().filter(|port| port.lag() == Some(lag)).count();
    let chosen = current.filter(|lag| links(*lag) > 0).or_else(|| {
        // Of several with as many links, the one whose first port has the lowest number.
        let lags = ports.iter().rev().filter_map(|port| port.lag());
        lags.max_by_key(|lag| links(*lag))
    });
    let mut individual_taken = false;
    for port in &mut ports {
        let mut fits = chosen.is_some() && port.lag() == chosen;
        if chosen.is_some_and(|lag| lag.individual.is_some()) {
            fits &= !individual_taken;
            individual_taken |= fits;
        }
        port.selected = if fits { Selected::Yes } else { Selected::No };
    }
    chosen
}
