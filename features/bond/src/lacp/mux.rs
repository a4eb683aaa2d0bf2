//! The mux machine, with independent control of collecting and distributing: a port takes frames in
//! before its partner sends any, so that none is lost (§6.4.15, figure 6-22).

use quiver_wire::lacp::PortState;

use super::AGGREGATE_WAIT_NS;
use super::port::Port;
use super::selection::Selected;

/// The machine's states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MuxState {
    /// Not a link of the aggregation.
    Detached,
    /// Others may be about to join, too.
    Waiting,
    /// A link, and the partner does not agree yet.
    Attached,
    /// Takes frames in.
    Collecting,
    /// Takes frames in and sends.
    Distributing,
}

impl MuxState {
    /// Its name as the standard has it.
    pub const fn word(self) -> &'static str {
        match self {
            MuxState::Detached => "DETACHED",
            MuxState::Waiting => "WAITING",
            MuxState::Attached => "ATTACHED",
            MuxState::Collecting => "COLLECTING",
            MuxState::Distributing => "DISTRIBUTING",
        }
    }
}

impl Port {
    /// Has the time passed in which others might have joined?
    pub(super) fn has_waited(&self, now_ns: u64) -> bool {
        self.wait_while_ns.is_none_or(|at| now_ns >= at)
    }

    /// Where the machine goes next; `None` where it is. `ready`: all who wait have waited.
    fn next(&self, ready: bool) -> Option<MuxState> {
        let selected = self.selected == Selected::Yes;
        let in_sync = selected && self.partner.state.has(PortState::SYNCHRONIZATION);
        let collects = in_sync && self.partner.state.has(PortState::COLLECTING);
        match self.mux {
            MuxState::Detached if selected => Some(MuxState::Waiting),
            MuxState::Waiting if !selected => Some(MuxState::Detached),
            MuxState::Waiting if ready => Some(MuxState::Attached),
            MuxState::Attached if !selected => Some(MuxState::Detached),
            MuxState::Attached if in_sync => Some(MuxState::Collecting),
            MuxState::Collecting if !in_sync => Some(MuxState::Attached),
            MuxState::Collecting if collects => Some(MuxState::Distributing),
            MuxState::Distributing if !collects => Some(MuxState::Collecting),
            _ => None,
        }
    }

    /// One step; true when there was one.
    pub(super) fn step_mux(&mut self, ready: bool, now_ns: u64) -> bool {
        let Some(next) = self.next(ready) else { return false };
        self.mux = next;
        self.wait_while_ns = (next == MuxState::Waiting).then_some(now_ns + AGGREGATE_WAIT_NS);
        self.set_actor(PortState::SYNCHRONIZATION, next >= MuxState::Attached);
        self.set_actor(PortState::COLLECTING, next >= MuxState::Collecting);
        self.set_actor(PortState::DISTRIBUTING, next >= MuxState::Distributing);
        self.need_to_transmit |= next != MuxState::Waiting;
        true
    }
}
