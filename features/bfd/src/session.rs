//! The state machine of one session (RFC 5880 §6.8): what is received, what time does, what the
//! operator says, and when packets are sent. It knows no address and sends nothing itself.

use quiver_core::jitter::Jitter;
use quiver_wire::bfd::{Control, Diagnostic, State};

/// A time that does not come.
pub const NEVER: u64 = u64::MAX;
/// Shortest interval that is announced while a session is not up, microseconds (§6.8.3).
pub const SLOW_TX_US: u32 = 1_000_000;
/// Bounds of an interval that the operator sets, microseconds.
pub const INTERVAL_US_MIN: u32 = 1_000;
/// See [`INTERVAL_US_MIN`].
pub const INTERVAL_US_MAX: u32 = 60_000_000;
/// Nanoseconds of a microsecond.
const US: u64 = 1_000;

/// What the operator sets of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The shortest interval at which packets are sent, microseconds.
    pub desired_min_tx_us: u32,
    /// The shortest interval at which packets can be received, microseconds.
    pub required_min_rx_us: u32,
    /// The peer may miss so many packets less one.
    pub detect_mult: u8,
}

/// What follows from an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// A packet is to be sent at once.
    pub send: bool,
    /// A packet with the Final bit is to be sent at once.
    pub answer: bool,
    /// The state of either side changed, or the peer's intervals.
    pub changed: bool,
}

/// The variables of a session (§6.8.1), in the RFC's words.
#[derive(Clone, Debug)]
pub struct Session {
    settings: Settings,
    /// `bfd.SessionState`.
    pub state: State,
    /// `bfd.RemoteSessionState`.
    pub remote_state: State,
    /// `bfd.LocalDiscr`.
    pub local_discriminator: u32,
    /// `bfd.RemoteDiscr`.
    pub remote_discriminator: u32,
    /// `bfd.LocalDiag`.
    pub diagnostic: Diagnostic,
    /// What the peer gave as its reason last.
    pub remote_diagnostic: Diagnostic,
    /// `bfd.RemoteMinRxInterval`.
    pub remote_min_rx_us: u32,
    /// What the peer would like to send at.
    pub remote_min_tx_us: u32,
    /// The shortest interval of echo packets that the peer takes; 0: none.
    pub remote_min_echo_rx_us: u32,
    /// The peer's multiplier.
    pub remote_detect_mult: u8,
    /// `bfd.RemoteDemandMode`.
    pub remote_demand: bool,
    /// The peer's control plane shares no fate with its forwarding plane (C, §4.1).
    pub remote_independent: bool,
    /// The shortest interval of echo packets that this router takes, microseconds; 0: none.
    pub required_min_echo_rx_us: u32,
    /// A poll sequence is under way.
    pub is_polling: bool,
    /// The path can be used: the interface is up, and the local address is there.
    is_path_up: bool,
    /// Control packets may be slow: echo packets watch the path (§6.8.9).
    is_echoing: bool,
    /// The transmit interval in use, microseconds; a longer one waits for the end of the poll.
    tx_us: u32,
    /// The receive interval in use; a shorter one waits for the end of the poll.
    rx_us: u32,
    next_tx_ns: u64,
    detect_ns: u64,
}

impl Session {
    /// A session that is down and has heard nobody.
    pub fn new(local_discriminator: u32, settings: Settings, is_admin_up: bool) -> Session {
        let mut session = Session {
            settings,
            state: State::Down,
            remote_state: State::Down,
            local_discriminator,
            remote_discriminator: 0,
            diagnostic: Diagnostic::NONE,
            remote_diagnostic: Diagnostic::NONE,
            remote_min_rx_us: 1,
            remote_min_tx_us: 0,
            remote_min_echo_rx_us: 0,
            remote_detect_mult: 0,
            remote_demand: false,
            remote_independent: false,
            required_min_echo_rx_us: 0,
            is_polling: false,
            is_path_up: false,
            is_echoing: false,
            tx_us: 0,
            rx_us: settings.required_min_rx_us,
            next_tx_ns: NEVER,
            detect_ns: NEVER,
        };
        if !is_admin_up {
            session.state = State::AdminDown;
            session.diagnostic = Diagnostic::ADMINISTRATIVELY_DOWN;
        }
        session.tx_us = session.desired_min_tx_us();
        session
    }

    /// What the operator set.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The transmit interval that is announced: `bfd.DesiredMinTxInterval`.
    pub fn desired_min_tx_us(&self) -> u32 {
        let slow = if self.state == State::Up { 0 } else { SLOW_TX_US };
        self.settings.desired_min_tx_us.max(slow)
    }

    /// The receive interval that is announced: `bfd.RequiredMinRxInterval`.
    pub fn required_min_rx_us(&self) -> u32 {
        let slow = if self.is_echoing { SLOW_TX_US } else { 0 };
        self.settings.required_min_rx_us.max(slow)
    }

    /// The interval at which packets are sent, before jitter (§6.8.7).
    pub fn transmit_interval_us(&self) -> u32 {
        self.tx_us.max(self.remote_min_rx_us)
    }

    /// The detection time (§6.8.4), nanoseconds; 0 while the peer was not heard.
    pub fn detection_ns(&self) -> u64 {
        let interval_us = self.rx_us.max(self.remote_min_tx_us);
        u64::from(interval_us) * u64::from(self.remote_detect_mult) * US
    }

    /// When time does something next.
    pub fn wake_ns(&self) -> u64 {
        self.next_tx_ns.min(self.detect_ns)
    }

    /// The packet to send now.
    pub fn packet(&self, is_answer: bool) -> Control {
        Control {
            diagnostic: self.diagnostic,
            state: self.state,
            poll: self.is_polling && !is_answer,
            is_final: is_answer,
            control_plane_independent: true,
            demand: false,
            detect_mult: self.settings.detect_mult,
            my_discriminator: self.local_discriminator,
            your_discriminator: self.remote_discriminator,
            desired_min_tx_us: self.desired_min_tx_us(),
            required_min_rx_us: self.required_min_rx_us(),
            required_min_echo_rx_us: self.required_min_echo_rx_us,
        }
    }

    /// A packet that has passed all checks was received (§6.8.6, from the demultiplexing on).
    pub fn receive(&mut self, control: &Control, now_ns: u64, jitter: &mut Jitter) -> Effect {
        let before = (self.state, self.remote_state);
        let timing = self.remote_timing();
        self.remote_discriminator = control.my_discriminator;
        self.remote_state = control.state;
        self.remote_diagnostic = control.diagnostic;
        self.remote_demand = control.demand;
        self.remote_independent = control.control_plane_independent;
        self.remote_min_rx_us = control.required_min_rx_us;
        self.remote_min_tx_us = control.desired_min_tx_us;
        self.remote_min_echo_rx_us = control.required_min_echo_rx_us;
        self.remote_detect_mult = control.detect_mult;
        let has_answered = self.is_polling && control.is_final;
        if has_answered {
            self.end_poll();
        }
        let is_admin_down = self.state == State::AdminDown;
        if !is_admin_down {
            self.follow_peer(control.state);
        }
        let detection_ns = self.detection_ns();
        self.detect_ns = if is_admin_down { NEVER } else { now_ns.saturating_add(detection_ns) };
        let is_new_timing = timing != self.remote_timing();
        if is_new_timing || has_answered || before.0 != self.state {
            self.plan(now_ns, jitter);
        }
        Effect {
            send: before.0 != self.state && self.sends(),
            answer: control.poll && !is_admin_down,
            changed: before != (self.state, self.remote_state) || is_new_timing,
        }
    }

    /// What follows from the peer's intervals is new when this is.
    fn remote_timing(&self) -> (u32, u32, u8, bool) {
        let intervals = (self.remote_min_rx_us, self.remote_min_tx_us);
        (intervals.0, intervals.1, self.remote_detect_mult, self.remote_demand)
    }

    /// The same packet was received again while both ends are up: the peer is there.
    pub fn receive_again(&mut self, now_ns: u64) {
        debug_assert_eq!((self.state, self.remote_state), (State::Up, State::Up));
        self.detect_ns = now_ns.saturating_add(self.detection_ns());
    }

    /// The transitions of §6.8.6 and the figure of §6.2.
    fn follow_peer(&mut self, heard: State) {
        match (self.state, heard) {
            (State::Down, State::AdminDown) => {}
            (_, State::AdminDown) | (State::Up, State::Down) => {
                self.enter(State::Down, Diagnostic::NEIGHBOR_SIGNALED_DOWN);
            }
            (State::Down, State::Down) => self.enter(State::Init, Diagnostic::NONE),
            (State::Down, State::Init) | (State::Init, State::Init | State::Up) => {
                self.enter(State::Up, Diagnostic::NONE);
            }
            _ => {}
        }
    }

    fn enter(&mut self, state: State, diagnostic: Diagnostic) {
        let was_up = self.state == State::Up;
        self.state = state;
        self.diagnostic = diagnostic;
        if was_up || state == State::Up {
            // The interval that is announced is another one (§6.8.3).
            self.is_echoing = false;
            self.is_polling = state == State::Up;
            self.tx_us = self.desired_min_tx_us();
            self.rx_us = self.required_min_rx_us();
        }
    }

    fn end_poll(&mut self) {
        self.is_polling = false;
        self.tx_us = self.desired_min_tx_us();
        self.rx_us = self.required_min_rx_us();
    }

    /// The time is `now_ns`: send what is due, and find the peer missing.
    pub fn pass_time(&mut self, now_ns: u64, jitter: &mut Jitter) -> Effect {
        let mut effect = Effect::default();
        if now_ns >= self.detect_ns {
            self.detect_ns = NEVER;
            effect.changed = self.lose_peer(Diagnostic::DETECTION_TIME_EXPIRED);
            effect.send = effect.changed && self.sends();
            self.plan(now_ns, jitter);
        }
        if now_ns >= self.next_tx_ns {
            effect.send = self.sends();
            self.next_tx_ns = NEVER;
        }
        if effect.send {
            self.next_tx_ns = self.next_after(now_ns, jitter);
        }
        effect
    }

    /// Echo packets do not come back (§6.8.5).
    pub fn echo_failed(&mut self, now_ns: u64, jitter: &mut Jitter) -> Effect {
        let changed = self.lose_peer(Diagnostic::ECHO_FAILED);
        self.plan(now_ns, jitter);
        Effect { send: changed && self.sends(), changed, answer: false }
    }

    /// Nothing valid was heard for a detection time, or nothing can be. A peer that said that it is
    /// taken down may be silent (§6.8.16), and is not lost thereby.
    fn lose_peer(&mut self, why: Diagnostic) -> bool {
        let before = (self.state, self.remote_state);
        if matches!(self.state, State::Init | State::Up) {
            self.enter(State::Down, why);
        }
        if self.remote_state != State::AdminDown {
            self.remote_state = State::Down;
        }
        self.remote_discriminator = 0;
        self.remote_min_rx_us = 1;
        self.remote_demand = false;
        before != (self.state, self.remote_state)
    }

    /// The interface, or the local address, is there or not.
    pub fn set_path(&mut self, is_up: bool, now_ns: u64, jitter: &mut Jitter) -> Effect {
        if is_up == self.is_path_up {
            return Effect::default();
        }
        self.is_path_up = is_up;
        let mut changed = false;
        if !is_up {
            self.detect_ns = NEVER;
            changed = self.lose_peer(Diagnostic::PATH_DOWN);
        }
        self.plan(now_ns, jitter);
        Effect { send: is_up && self.sends(), changed, answer: false }
    }

    /// The operator takes the session down, or lets it come up (§6.8.16).
    pub fn set_admin(&mut self, is_up: bool, now_ns: u64, jitter: &mut Jitter) -> Effect {
        let before = self.state;
        match (is_up, before) {
            (true, State::AdminDown) => self.enter(State::Down, Diagnostic::NONE),
            (false, State::Down | State::Init | State::Up) => {
                self.enter(State::AdminDown, Diagnostic::ADMINISTRATIVELY_DOWN);
                self.is_polling = false;
                self.detect_ns = NEVER;
            }
            _ => return Effect::default(),
        }
        self.plan(now_ns, jitter);
        Effect { send: self.sends(), changed: true, answer: false }
    }

    /// The operator sets other intervals, or another multiplier (§6.8.3).
    pub fn set(&mut self, settings: Settings, now_ns: u64, jitter: &mut Jitter) -> Effect {
        if settings == self.settings {
            return Effect::default();
        }
        let announced = (self.desired_min_tx_us(), self.required_min_rx_us());
        self.settings = settings;
        self.announce(announced, now_ns, jitter)
    }

    /// Echo packets watch the path from now on, or no more: control packets can be slow.
    pub fn set_echoing(&mut self, is_echoing: bool, now_ns: u64, jitter: &mut Jitter) -> Effect {
        let is_echoing = is_echoing && self.state == State::Up;
        if is_echoing == self.is_echoing {
            return Effect::default();
        }
        let announced = (self.desired_min_tx_us(), self.required_min_rx_us());
        self.is_echoing = is_echoing;
        self.announce(announced, now_ns, jitter)
    }

    /// Do echo packets watch the path?
    pub fn is_echoing(&self) -> bool {
        self.is_echoing
    }

    /// What is announced may differ from what was: then a poll sequence begins. While the session
    /// is up, a longer transmit interval and a shorter receive interval wait for its end.
    fn announce(&mut self, before: (u32, u32), now_ns: u64, jitter: &mut Jitter) -> Effect {
        let announced = (self.desired_min_tx_us(), self.required_min_rx_us());
        if announced == before {
            return Effect::default();
        }
        let is_up = self.state == State::Up;
        self.is_polling = is_up || self.state == State::Init;
        if !is_up || announced.0 < self.tx_us {
            self.tx_us = announced.0;
        }
        if !is_up || announced.1 > self.rx_us {
            self.rx_us = announced.1;
        }
        self.plan(now_ns, jitter);
        Effect { send: self.sends(), ..Effect::default() }
    }

    /// Are packets sent at intervals (§6.8.7)?
    fn sends(&self) -> bool {
        let is_asked_not_to = self.remote_demand
            && self.state == State::Up
            && self.remote_state == State::Up
            && !self.is_polling;
        self.is_path_up && self.remote_min_rx_us > 0 && !is_asked_not_to
    }

    /// When the next packet is due, if timers or the state have changed: not later than planned.
    fn plan(&mut self, now_ns: u64, jitter: &mut Jitter) {
        let next_ns = self.next_after(now_ns, jitter);
        self.next_tx_ns = if self.sends() { next_ns.min(self.next_tx_ns) } else { NEVER };
    }

    /// When the packet after one that is sent now is due: up to 25 % earlier than the interval; at
    /// a multiplier of 1 at least 10 % (§6.8.7).
    fn next_after(&self, now_ns: u64, jitter: &mut Jitter) -> u64 {
        if !self.sends() {
            return NEVER;
        }
        let interval_ns = u64::from(self.transmit_interval_us()) * US;
        let last = if self.settings.detect_mult == 1 {
            interval_ns / 10 * 9
        } else {
            interval_ns.saturating_sub(crate::wheel::SLOT_NS.min(interval_ns / 8))
        };
        now_ns.saturating_add(jitter.between(interval_ns / 4 * 3, last))
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
