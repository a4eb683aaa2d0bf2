//! The receive machine: what the partner says, and that it says nothing any more (§6.4.12).

use quiver_wire::lacp::{Lacpdu, PortInfo, PortState};

use super::port::Port;
use super::selection::Selected;
use super::{LONG_TIMEOUT_NS, SHORT_TIMEOUT_NS};

/// The machine's states; INITIALIZE passes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveState {
    /// No link.
    PortDisabled,
    /// The partner's last word is too old; it has a short time left to speak.
    Expired,
    /// The partner said nothing; what is assumed of it holds.
    Defaulted,
    /// The partner speaks.
    Current,
}

impl ReceiveState {
    /// Its name as the standard has it.
    pub const fn word(self) -> &'static str {
        match self {
            ReceiveState::PortDisabled => "PORT_DISABLED",
            ReceiveState::Expired => "EXPIRED",
            ReceiveState::Defaulted => "DEFAULTED",
            ReceiveState::Current => "CURRENT",
        }
    }
}

/// What two ends must agree on, all but how they speak.
const AGREED: PortState = PortState::AGGREGATION;
/// What a partner must know of us, or be told (update_NTT).
const NTT_STATE: PortState = PortState(
    PortState::ACTIVE.0 | PortState::SHORT_TIMEOUT.0 | PortState::SYNCHRONIZATION.0 | AGREED.0,
);

/// The same port of the same aggregation, as far as `bits` of its state go?
fn is_same(one: &PortInfo, other: &PortInfo, bits: PortState) -> bool {
    let without_state = |info: &PortInfo| PortInfo { state: info.state.and(bits), ..*info };
    without_state(one) == without_state(other)
}

impl Port {
    /// The link comes up or goes down.
    pub(super) fn enable(&mut self, enabled: bool, now_ns: u64) {
        if self.enabled == enabled {
            return;
        }
        self.enabled = enabled;
        if enabled {
            return self.expire(now_ns);
        }
        self.receive = ReceiveState::PortDisabled;
        self.current_while_ns = None;
        self.selected = Selected::No;
        self.set_partner(PortState::SYNCHRONIZATION, false);
    }

    /// EXPIRED: the partner is asked to speak, and has a short time for it.
    fn expire(&mut self, now_ns: u64) {
        self.receive = ReceiveState::Expired;
        self.set_partner(PortState::SYNCHRONIZATION, false);
        self.set_partner(PortState::SHORT_TIMEOUT, true);
        self.current_while_ns = Some(now_ns + SHORT_TIMEOUT_NS);
        self.set_actor(PortState::EXPIRED, true);
    }

    /// DEFAULTED: nobody speaks (recordDefault).
    fn default_partner(&mut self) {
        self.receive = ReceiveState::Defaulted;
        self.current_while_ns = None;
        self.selected = Selected::No;
        self.partner = PortInfo { state: PortState::SHORT_TIMEOUT, ..PortInfo::default() };
        self.set_actor(PortState::DEFAULTED, true);
        self.set_actor(PortState::EXPIRED, false);
    }

    /// Time passes.
    pub(super) fn run_receive(&mut self, now_ns: u64) {
        if self.current_while_ns.is_none_or(|at| now_ns < at) {
            return;
        }
        match self.receive {
            ReceiveState::Current => {
                self.counts.timeouts += 1;
                self.expire(now_ns);
            }
            ReceiveState::Expired => self.default_partner(),
            ReceiveState::PortDisabled | ReceiveState::Defaulted => self.current_while_ns = None,
        }
    }

    /// CURRENT: the partner has spoken.
    pub(super) fn hear(&mut self, pdu: &Lacpdu, now_ns: u64) {
        if !self.enabled {
            return;
        }
        self.counts.received += 1;
        // update_Selected: another partner, or one that moved, is selected anew.
        if !is_same(&pdu.actor, &self.partner, AGREED) {
            self.selected = Selected::No;
        }
        // update_NTT: what the partner believes of us is not so.
        if !is_same(&pdu.partner, &self.actor, NTT_STATE) {
            self.need_to_transmit = true;
        }
        self.record(pdu);
        let short = self.actor.state.has(PortState::SHORT_TIMEOUT);
        self.current_while_ns =
            Some(now_ns + if short { SHORT_TIMEOUT_NS } else { LONG_TIMEOUT_NS });
        self.set_actor(PortState::EXPIRED, false);
        self.receive = ReceiveState::Current;
    }

    /// recordPDU: the partner is in sync when it means us, or is a link of its own, and one of both
    /// ends keeps the protocol going.
    fn record(&mut self, pdu: &Lacpdu) {
        let alive = pdu.actor.state.has(PortState::ACTIVE)
            || self.actor.state.has(PortState::ACTIVE) && pdu.partner.state.has(PortState::ACTIVE);
        let means_us = is_same(&pdu.partner, &self.actor, AGREED);
        let individual = !pdu.actor.state.has(PortState::AGGREGATION);
        let in_sync =
            pdu.actor.state.has(PortState::SYNCHRONIZATION) && alive && (means_us || individual);
        self.partner = pdu.actor;
        self.set_partner(PortState::SYNCHRONIZATION, in_sync);
        self.set_actor(PortState::DEFAULTED, false);
    }
}
