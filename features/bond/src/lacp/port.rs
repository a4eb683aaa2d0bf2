//! A port: both ends of its link as LACP knows them, and the machines' states.

use quiver_wire::lacp::{PortInfo, PortState};

use super::mux::MuxState;
use super::receive::ReceiveState;
use super::selection::Selected;
use super::transmit::Sent;
use super::{PORT_PRIORITY, SYSTEM_PRIORITY};

/// What an operator asks of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortWish {
    /// Speak without being spoken to.
    pub active: bool,
    /// Ask the partner to speak every second.
    pub short_timeout: bool,
}

/// PDUs, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PduCounts {
    /// Taken in.
    pub received: u64,
    /// Sent.
    pub sent: u64,
    /// Times that a partner fell silent.
    pub timeouts: u64,
}

/// A port.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its own end.
    pub actor: PortInfo,
    /// The other end, as the partner says, or as is assumed of a partner that says nothing.
    pub partner: PortInfo,
    /// Is the link there, and does the operator want it?
    pub enabled: bool,
    /// The receive machine.
    pub receive: ReceiveState,
    /// The mux machine.
    pub mux: MuxState,
    /// Does the selection logic want it?
    pub selected: Selected,
    /// What was counted.
    pub counts: PduCounts,
    /// The partner is lost then, when the receive machine waits for one.
    pub(super) current_while_ns: Option<u64>,
    /// May join then, when the mux machine waits.
    pub(super) wait_while_ns: Option<u64>,
    /// The next periodic PDU is due then, when the periodic machine runs.
    pub(super) periodic_ns: Option<u64>,
    /// Did the running period begin for a partner that wants PDUs often?
    pub(super) periodic_is_fast: bool,
    /// The partner should be told something.
    pub(super) need_to_transmit: bool,
    pub(super) recently_sent: Sent,
}

impl Port {
    /// A port that has heard nothing (the receive machine's INITIALIZE).
    pub(super) fn new(
        system: quiver_wire::MacAddress,
        key: u16,
        port: u16,
        wish: PortWish,
    ) -> Port {
        let state = PortState::AGGREGATION
            .with(PortState::ACTIVE, wish.active)
            .with(PortState::SHORT_TIMEOUT, wish.short_timeout);
        let actor = PortInfo {
            system_priority: SYSTEM_PRIORITY,
            system,
            key,
            port_priority: PORT_PRIORITY,
            port,
            state,
        };
        Port {
            actor,
            partner: PortInfo::default(),
            enabled: false,
            receive: ReceiveState::PortDisabled,
            mux: MuxState::Detached,
            selected: Selected::No,
            counts: PduCounts::default(),
            current_while_ns: None,
            wait_while_ns: None,
            periodic_ns: None,
            periodic_is_fast: false,
            need_to_transmit: false,
            recently_sent: Sent::default(),
        }
    }

    pub(super) fn set_actor(&mut self, bits: PortState, on: bool) {
        self.actor.state = self.actor.state.with(bits, on);
    }

    pub(super) fn set_partner(&mut self, bits: PortState, on: bool) {
        self.partner.state = self.partner.state.with(bits, on);
    }

    /// Does the partner of this port belong to this very system: is the link a loop, or a link to
    /// another port of this router?
    pub fn is_looped(&self) -> bool {
        self.receive == ReceiveState::Current && self.partner.system == self.actor.system
    }

    /// May frames be taken from it?
    pub fn is_collecting(&self) -> bool {
        self.actor.state.has(PortState::COLLECTING)
    }

    /// May frames be sent by it?
    pub fn is_distributing(&self) -> bool {
        self.actor.state.has(PortState::DISTRIBUTING)
    }
}
