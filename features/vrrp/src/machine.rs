//! The state machine of one virtual router (RFC 9568 §6). It knows no frame and sends nothing
//! itself.

use std::cmp::Ordering;
use std::net::IpAddr;

use quiver_wire::vrrp::{Advertisement, PRIORITY_CEASES, PRIORITY_OWNER};

/// A time that does not come.
pub const NEVER: u64 = u64::MAX;
/// Nanoseconds of a hundredth of a second.
const CS: u64 = 10_000_000;

/// What the operator sets of a virtual router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Its number, 1 to 255.
    pub vr_id: u8,
    /// How much this router wants to be the active one; 255: it owns the addresses.
    pub priority: u8,
    /// The interval of advertisements, hundredths of a second.
    pub interval_cs: u16,
    /// Takes over from an active router that wants it less.
    pub preempts: bool,
}

/// The state (§6.4). VPP and keepalived say Master for Active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Not started, or its interface is down.
    #[default]
    Initialize = 0,
    /// Another router is the active one.
    Backup = 1,
    /// This one forwards for the virtual router.
    Active = 2,
}

impl State {
    /// As VPP names it.
    pub fn name(self) -> &'static str {
        match self {
            State::Initialize => "Initialize",
            State::Backup => "Backup",
            State::Active => "Master",
        }
    }

    /// The state of this number.
    pub fn of_number(number: u8) -> State {
        match number & 3 {
            1 => State::Backup,
            2 => State::Active,
            _ => State::Initialize,
        }
    }
}

/// What follows from an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Send an advertisement of this priority.
    pub advertise: Option<u8>,
    /// Tell all hosts of the link where the addresses are now (§6.4.1 (115), (120)).
    pub announce: bool,
    /// The state changed.
    pub changed: bool,
}

/// A virtual router.
#[derive(Clone, Debug)]
pub struct Machine {
    settings: Settings,
    /// Priority that is lost to tracked interfaces that are down.
    lost: u8,
    state: State,
    /// Is it started, and can its interface send?
    runs: bool,
    /// `Active_Adver_Interval`, hundredths of a second.
    active_interval_cs: u16,
    /// When the active router is missed, or the next advertisement is due.
    due_ns: u64,
}

impl Machine {
    /// A virtual router that is not started.
    pub fn new(settings: Settings) -> Machine {
        Machine {
            settings,
            lost: 0,
            state: State::Initialize,
            runs: false,
            active_interval_cs: settings.interval_cs,
            due_ns: NEVER,
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// What the operator set.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// When time does something next.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// The priority that is advertised: never lost by who owns the addresses, nor below 1.
    pub fn priority(&self) -> u8 {
        match self.settings.priority {
            PRIORITY_OWNER => PRIORITY_OWNER,
            priority => priority.saturating_sub(self.lost).max(1),
        }
    }

    /// `Active_Adver_Interval`, hundredths of a second.
    pub fn active_interval_cs(&self) -> u16 {
        self.active_interval_cs
    }

    /// `Skew_Time` (§6.1), nanoseconds.
    pub fn skew_ns(&self) -> u64 {
        let interval_ns = u64::from(self.active_interval_cs) * CS;
        (256 - u64::from(self.priority())) * interval_ns / 256
    }

    /// `Active_Down_Interval` (§6.1), nanoseconds.
    pub fn down_ns(&self) -> u64 {
        3 * u64::from(self.active_interval_cs) * CS + self.skew_ns()
    }

    fn interval_ns(&self) -> u64 {
        u64::from(self.settings.interval_cs) * CS
    }

    fn become_active(&mut self, now_ns: u64) -> Effect {
        self.state = State::Active;
        self.due_ns = now_ns + self.interval_ns();
        Effect { advertise: Some(self.priority()), announce: true, changed: true }
    }

    fn become_backup(&mut self, interval_cs: u16, now_ns: u64) -> Effect {
        let changed = self.state != State::Backup;
        self.state = State::Backup;
        self.active_interval_cs = interval_cs;
        self.due_ns = now_ns + self.down_ns();
        Effect { changed, ..Effect::default() }
    }

    /// It is started and its interface can send, or not any more (§6.4.1, §6.4.2 (325), §6.4.3).
    pub fn set_running(&mut self, runs: bool, now_ns: u64) -> Effect {
        if runs == self.runs {
            return Effect::default();
        }
        self.runs = runs;
        if runs {
            return match self.settings.priority {
                PRIORITY_OWNER => self.become_active(now_ns),
                _ => self.become_backup(self.settings.interval_cs, now_ns),
            };
        }
        let was_active = self.state == State::Active;
        (self.state, self.due_ns) = (State::Initialize, NEVER);
        let advertise = was_active.then_some(PRIORITY_CEASES);
        Effect { advertise, announce: false, changed: true }
    }

    /// Tracked interfaces that are down take so much of the priority.
    pub fn set_lost(&mut self, lost: u8) {
        self.lost = lost;
    }

    /// An advertisement was received that passed all checks of §7.1. `is_higher`: is its sender's
    /// address the higher one?
    pub fn receive(&mut self, heard: &Advertisement, is_higher: bool, now_ns: u64) -> Effect {
        match self.state {
            State::Initialize => Effect::default(),
            State::Backup if heard.priority == PRIORITY_CEASES => {
                self.due_ns = now_ns + self.skew_ns();
                Effect::default()
            }
            State::Backup if !self.settings.preempts || heard.priority >= self.priority() => {
                self.become_backup(heard.interval_cs, now_ns)
            }
            State::Backup => Effect::default(),
            State::Active => {
                let loses = match heard.priority.cmp(&self.priority()) {
                    _ if heard.priority == PRIORITY_CEASES => false,
                    Ordering::Greater => true,
                    Ordering::Equal => is_higher,
                    Ordering::Less => false,
                };
                if loses {
                    return self.become_backup(heard.interval_cs, now_ns);
                }
                // The sender is told who is the active router (§6.4.3).
                self.due_ns = now_ns + self.interval_ns();
                Effect { advertise: Some(self.priority()), ..Effect::default() }
            }
        }
    }

    /// The time is `now_ns`.
    pub fn pass_time(&mut self, now_ns: u64) -> Effect {
        if now_ns < self.due_ns {
            return Effect::default();
        }
        match self.state {
            State::Initialize => {
                self.due_ns = NEVER;
                Effect::default()
            }
            State::Backup => self.become_active(now_ns),
            State::Active => {
                self.due_ns = now_ns + self.interval_ns();
                Effect { advertise: Some(self.priority()), ..Effect::default() }
            }
        }
    }
}

/// Is an address the higher one of two of one family (§6.4.3)?
pub fn is_higher(sender: IpAddr, own: IpAddr) -> bool {
    sender > own
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn settings(priority: u8) -> Settings {
        Settings { vr_id: 1, priority, interval_cs: 100, preempts: true }
    }

    fn started(priority: u8) -> Machine {
        let mut machine = Machine::new(settings(priority));
        machine.set_running(true, 0);
        machine
    }

    fn heard(priority: u8) -> Advertisement {
        Advertisement { vr_id: 1, priority, interval_cs: 200 }
    }

    #[test]
    fn who_owns_the_addresses_is_active_at_once() {
        let mut machine = Machine::new(settings(255));
        let effect = machine.set_running(true, 0);
        assert_eq!(effect, Effect { advertise: Some(255), announce: true, changed: true });
        assert_eq!((machine.state(), machine.due_ns()), (State::Active, SECOND));
    }

    #[test]
    fn a_backup_takes_over_after_three_intervals_and_its_skew() {
        let mut machine = started(100);
        assert_eq!(machine.state(), State::Backup);
        let down_ns = 3 * SECOND + 156 * SECOND / 256;
        assert_eq!(machine.due_ns(), down_ns);
        assert_eq!(machine.pass_time(down_ns - 1), Effect::default());
        let effect = machine.pass_time(down_ns);
        assert_eq!(effect, Effect { advertise: Some(100), announce: true, changed: true });
        let effect = machine.pass_time(down_ns + SECOND);
        assert_eq!(effect, Effect { advertise: Some(100), ..Effect::default() });
    }

    #[test]
    fn a_backup_follows_the_interval_of_the_active_router() {
        let mut machine = started(100);
        machine.receive(&heard(100), false, SECOND);
        assert_eq!(machine.due_ns(), SECOND + 6 * SECOND + 2 * 156 * SECOND / 256);
        machine.receive(&heard(0), false, 2 * SECOND);
        assert_eq!(machine.due_ns(), 2 * SECOND + 2 * 156 * SECOND / 256, "it ceases");
    }

    #[test]
    fn a_backup_that_preempts_does_not_hear_who_wants_it_less() {
        let mut machine = started(100);
        let due_ns = machine.due_ns();
        machine.receive(&heard(99), true, SECOND);
        assert_eq!(machine.due_ns(), due_ns);
        let patient = Settings { preempts: false, ..settings(100) };
        let mut machine = Machine::new(patient);
        machine.set_running(true, 0);
        machine.receive(&heard(1), false, SECOND);
        assert!(machine.due_ns() > due_ns);
    }

    #[test]
    fn an_active_router_gives_way_to_who_wants_it_more() {
        for (priority, is_higher, then) in [
            (101, false, State::Backup),
            (100, true, State::Backup),
            (100, false, State::Active),
            (99, true, State::Active),
            (0, true, State::Active),
        ] {
            let mut machine = started(100);
            machine.pass_time(9 * SECOND);
            let effect = machine.receive(&heard(priority), is_higher, 10 * SECOND);
            assert_eq!(machine.state(), then, "{priority}");
            let asserts = (then == State::Active).then_some(100);
            assert_eq!((effect.advertise, effect.announce), (asserts, false), "{priority}");
        }
    }

    #[test]
    fn an_active_router_that_stops_says_so() {
        let mut machine = started(100);
        machine.pass_time(9 * SECOND);
        let effect = machine.set_running(false, 10 * SECOND);
        assert_eq!(effect, Effect { advertise: Some(0), announce: false, changed: true });
        assert_eq!((machine.state(), machine.due_ns()), (State::Initialize, NEVER));
        assert_eq!(machine.receive(&heard(200), true, 11 * SECOND), Effect::default());
    }

    #[test]
    fn tracked_interfaces_take_priority_but_not_from_an_owner() {
        let mut machine = started(100);
        machine.set_lost(30);
        assert_eq!(machine.priority(), 70);
        machine.set_lost(200);
        assert_eq!(machine.priority(), 1);
        let mut owner = started(255);
        owner.set_lost(200);
        assert_eq!(owner.priority(), 255);
    }

    proptest! {
        #[test]
        fn time_always_goes_on(
            steps in prop::collection::vec(
                (0u8..5, any::<u8>(), 0u16..=4095, any::<bool>(), 0u64..20_000_000_000), 1..80)
        ) {
            let mut machine = Machine::new(settings(100));
            let mut now_ns = 0;
            for (kind, priority, interval_cs, flag, passes_ns) in steps {
                let effect = match kind {
                    0 => machine.set_running(flag, now_ns),
                    1 => {
                        machine.set_lost(priority);
                        Effect::default()
                    }
                    _ => {
                        let update = Advertisement { vr_id: 1, priority, interval_cs };
                        machine.receive(&update, flag, now_ns)
                    }
                };
                let active = machine.state() == State::Active;
                prop_assert!(effect.advertise.is_none_or(|p| active == (p != 0)));
                let until_ns = now_ns + passes_ns;
                let mut woken = 0;
                while machine.due_ns() <= until_ns {
                    now_ns = now_ns.max(machine.due_ns());
                    machine.pass_time(now_ns);
                    prop_assert!(machine.due_ns() > now_ns, "time stands still");
                    woken += 1;
                    prop_assert!(woken < 100);
                }
                now_ns = until_ns;
            }
        }
    }
}
