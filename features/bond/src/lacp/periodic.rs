//! The periodic transmission machine: how often the partner must be told that we are here
//! (§6.4.13).

use quiver_wire::lacp::PortState;

use super::port::Port;
use super::{FAST_PERIODIC_NS, SLOW_PERIODIC_NS};

impl Port {
    /// Time passes, or the partner's requested rate has changed.
    pub(super) fn run_periodic(&mut self, now_ns: u64) {
        let either_is_active =
            self.actor.state.has(PortState::ACTIVE) || self.partner.state.has(PortState::ACTIVE);
        if !self.enabled || !either_is_active {
            self.periodic_ns = None; // NO_PERIODIC
            return;
        }
        let fast = self.partner.state.has(PortState::SHORT_TIMEOUT);
        let period_ns = if fast { FAST_PERIODIC_NS } else { SLOW_PERIODIC_NS };
        let due = match self.periodic_ns {
            // From SLOW_PERIODIC, a partner in a hurry is told at once.
            Some(at) => now_ns >= at || (fast && !self.periodic_is_fast),
            // FAST_PERIODIC is where the machine begins.
            None => {
                self.periodic_ns = Some(now_ns + FAST_PERIODIC_NS);
                self.periodic_is_fast = true;
                return;
            }
        };
        if due {
            self.need_to_transmit = true; // PERIODIC_TX
            self.periodic_ns = Some(now_ns + period_ns);
        } else if self.periodic_is_fast && !fast {
            self.periodic_ns = Some(now_ns + SLOW_PERIODIC_NS);
        }
        self.periodic_is_fast = fast;
    }
}
