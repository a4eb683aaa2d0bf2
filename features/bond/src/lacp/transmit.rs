//! The transmit machine: what is to be told is told, but not too often (§6.4.16).

use quiver_wire::lacp::{Lacpdu, PortState};

use super::port::Port;
use super::{FAST_PERIODIC_NS, PDUS_PER_SECOND_MAX};

/// When the last PDUs were sent, the oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent([Option<u64>; PDUS_PER_SECOND_MAX]);

impl Sent {
    /// May one more be sent? Then it counts as sent now.
    fn may(&mut self, now_ns: u64) -> bool {
        if self.0[0].is_some_and(|at| now_ns < at + FAST_PERIODIC_NS) {
            return false;
        }
        self.0.rotate_left(1);
        self.0[PDUS_PER_SECOND_MAX - 1] = Some(now_ns);
        true
    }
}

impl Port {
    /// The PDU that must be sent now, if one must and may be. What may not waits for its turn.
    pub(super) fn take_pdu(&mut self, now_ns: u64) -> Option<Lacpdu> {
        if !self.enabled {
            self.need_to_transmit = false;
            return None;
        }
        // Two passive ends say nothing (periodic machine: NO_PERIODIC).
        let speaks =
            self.actor.state.has(PortState::ACTIVE) || self.partner.state.has(PortState::ACTIVE);
        if !self.need_to_transmit || !speaks || !self.recently_sent.may(now_ns) {
            return None;
        }
        self.need_to_transmit = false;
        self.counts.sent += 1;
        Some(Lacpdu { actor: self.actor, partner: self.partner, max_delay: 0 })
    }
}
