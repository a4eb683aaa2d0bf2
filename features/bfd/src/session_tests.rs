use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const FAST: Settings =
    Settings { desired_min_tx_us: 50_000, required_min_rx_us: 50_000, detect_mult: 3 };

/// One end of a link: a session, and the packets that it has sent, with the time of each.
struct End {
    session: Session,
    sent: Vec<(u64, Control)>,
    jitter: Jitter,
}

impl End {
    fn new(discriminator: u32, settings: Settings) -> End {
        let session = Session::new(discriminator, settings, true);
        End { session, sent: Vec::new(), jitter: Jitter::seeded(discriminator.into()) }
    }

    fn carry_out(&mut self, now_ns: u64, effect: Effect) {
        if effect.answer || effect.send {
            self.sent.push((now_ns, self.session.packet(effect.answer)));
        }
    }
}

/// Two ends of a link, and a clock.
struct Link {
    ends: [End; 2],
    now_ns: u64,
    /// Packets get through.
    is_whole: bool,
}

impl Link {
    fn new(a: Settings, b: Settings) -> Link {
        let mut ends = [End::new(0x11, a), End::new(0x22, b)];
        for end in &mut ends {
            let effect = end.session.set_path(true, 0, &mut end.jitter);
            end.carry_out(0, effect);
        }
        Link { ends, now_ns: 0, is_whole: true }
    }

    fn deliver(&mut self, from: usize, control: Control, depth: usize) {
        assert!(depth < 100, "packets answer packets without end");
        if !self.is_whole {
            return;
        }
        let now_ns = self.now_ns;
        let other = &mut self.ends[1 - from];
        let is_known = control.your_discriminator == 0
            || control.your_discriminator == other.session.local_discriminator;
        if !is_known {
            return;
        }
        let effect = other.session.receive(&control, now_ns, &mut other.jitter);
        let before = other.sent.len();
        other.carry_out(now_ns, effect);
        let sent: Vec<Control> = other.sent[before..].iter().map(|(_, sent)| *sent).collect();
        for control in sent {
            self.deliver(1 - from, control, depth + 1);
        }
    }

    fn act(&mut self, who: usize, act: impl FnOnce(&mut Session, u64, &mut Jitter) -> Effect) {
        let now_ns = self.now_ns;
        let end = &mut self.ends[who];
        let effect = act(&mut end.session, now_ns, &mut end.jitter);
        let before = end.sent.len();
        end.carry_out(now_ns, effect);
        let sent: Vec<Control> = end.sent[before..].iter().map(|(_, sent)| *sent).collect();
        for control in sent {
            self.deliver(who, control, 0);
        }
    }

    /// Let time pass until `until_ns`.
    fn run(&mut self, until_ns: u64) {
        loop {
            let wakes = [0, 1].map(|who| self.ends[who].session.wake_ns());
            let next = wakes[0].min(wakes[1]);
            if next > until_ns {
                break;
            }
            self.now_ns = self.now_ns.max(next);
            let who = usize::from(wakes[1] < wakes[0]);
            self.act(who, |session, now_ns, jitter| session.pass_time(now_ns, jitter));
        }
        self.now_ns = until_ns;
    }

    fn states(&self) -> [State; 2] {
        [0, 1].map(|who| self.ends[who].session.state)
    }

    /// Times between packets of an end that were sent after `since_ns`.
    fn gaps(&self, who: usize, since_ns: u64) -> Vec<u64> {
        let times: Vec<u64> =
            self.ends[who].sent.iter().map(|(at, _)| *at).filter(|at| *at > since_ns).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

#[test]
fn two_ends_come_up_within_seconds_and_send_at_their_interval_with_jitter() {
    let mut link = Link::new(FAST, FAST);
    link.run(3 * SECOND);
    assert_eq!(link.states(), [State::Up; 2]);
    link.run(10 * SECOND);
    for who in [0, 1] {
        let gaps = link.gaps(who, 4 * SECOND);
        assert!(gaps.len() > 100);
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(*least >= 37 * MS && *most <= 50 * MS, "{least} to {most}");
        assert!(*most - *least > 8 * MS, "packets have jitter");
        assert!(!link.ends[who].session.is_polling, "the poll sequence has ended");
    }
}

#[test]
fn before_it_is_up_a_session_sends_once_a_second_at_most() {
    let mut link = Link::new(FAST, FAST);
    link.is_whole = false;
    link.run(20 * SECOND);
    assert_eq!(link.states(), [State::Down; 2]);
    let gaps = link.gaps(0, SECOND);
    assert!(gaps.len() >= 18 && gaps.iter().all(|gap| *gap >= 750 * MS), "{gaps:?}");
    assert!(link.ends[0].sent.iter().all(|(_, sent)| sent.desired_min_tx_us >= SLOW_TX_US));
}

#[test]
fn a_cut_link_is_found_within_the_detection_time_and_not_before() {
    let mut link = Link::new(FAST, FAST);
    link.run(5 * SECOND);
    link.is_whole = false;
    let cut_ns = link.now_ns;
    link.run(cut_ns + 99 * MS);
    assert_eq!(link.states(), [State::Up; 2], "two packets may be missing");
    link.run(cut_ns + 151 * MS);
    assert_eq!(link.states(), [State::Down; 2]);
    let session = &link.ends[0].session;
    assert_eq!(session.diagnostic, Diagnostic::DETECTION_TIME_EXPIRED);
    assert_eq!((session.remote_discriminator, session.remote_min_rx_us), (0, 1));
    link.is_whole = true;
    link.run(cut_ns + 4 * SECOND);
    assert_eq!(link.states(), [State::Up; 2]);
}

#[test]
fn the_slower_of_both_ends_decides_each_direction() {
    let slow = Settings { desired_min_tx_us: 400_000, required_min_rx_us: 20_000, detect_mult: 5 };
    let mut link = Link::new(FAST, slow);
    link.run(5 * SECOND);
    let [a, b] = [0, 1].map(|who| &link.ends[who].session);
    assert_eq!((a.transmit_interval_us(), b.transmit_interval_us()), (50_000, 400_000));
    assert_eq!(a.detection_ns(), 5 * 400 * MS);
    assert_eq!(b.detection_ns(), 3 * 50 * MS);
}

#[test]
fn a_longer_interval_is_used_after_the_poll_sequence_and_a_shorter_one_at_once() {
    let mut link = Link::new(FAST, FAST);
    link.run(5 * SECOND);
    link.is_whole = false;
    let slower = Settings { desired_min_tx_us: 300_000, required_min_rx_us: 10_000, ..FAST };
    link.act(0, |session, now_ns, jitter| session.set(slower, now_ns, jitter));
    let session = &link.ends[0].session;
    assert!(session.is_polling);
    assert_eq!(session.transmit_interval_us(), 50_000, "the peer does not know yet");
    assert_eq!(session.detection_ns(), 150 * MS, "the peer still sends at the old interval");
    assert!(link.ends[0].sent.last().is_some_and(|(_, sent)| sent.poll && !sent.is_final));
    link.is_whole = true;
    let later = link.now_ns + 60 * MS;
    link.run(later);
    let session = &link.ends[0].session;
    assert_eq!((session.is_polling, session.transmit_interval_us()), (false, 300_000));
    assert_eq!(link.states(), [State::Up; 2]);
    link.run(later + 10 * SECOND);
    assert_eq!(link.states(), [State::Up; 2]);
    link.act(0, |session, now_ns, jitter| session.set(FAST, now_ns, jitter));
    assert_eq!(link.ends[0].session.transmit_interval_us(), 50_000);
    assert!(link.ends[0].session.wake_ns() <= link.now_ns + 50 * MS, "not after the old interval");
}

#[test]
fn a_poll_is_answered_at_once_and_the_answer_polls_nothing() {
    let mut link = Link::new(FAST, FAST);
    link.run(5 * SECOND);
    let asked = Control { poll: true, ..link.ends[1].session.packet(false) };
    let end = &mut link.ends[0];
    let effect = end.session.receive(&asked, 5 * SECOND, &mut end.jitter);
    assert!(effect.answer && !effect.changed);
    let answer = end.session.packet(true);
    assert!(answer.is_final && !answer.poll);
}

#[test]
fn a_session_that_was_taken_down_tells_its_peer_and_is_quiet_about_polls() {
    let mut link = Link::new(FAST, FAST);
    link.run(5 * SECOND);
    link.act(0, |session, now_ns, jitter| session.set_admin(false, now_ns, jitter));
    assert_eq!(link.states(), [State::AdminDown, State::Down]);
    let peer = &link.ends[1].session;
    assert_eq!(peer.diagnostic, Diagnostic::NEIGHBOR_SIGNALED_DOWN);
    assert_eq!(peer.remote_state, State::AdminDown);
    link.run(9 * SECOND);
    assert_eq!(link.states(), [State::AdminDown, State::Down]);
    let asked = Control { poll: true, ..link.ends[1].session.packet(false) };
    let end = &mut link.ends[0];
    let effect = end.session.receive(&asked, 9 * SECOND, &mut end.jitter);
    assert_eq!(effect, Effect { changed: effect.changed, ..Effect::default() });
    // a peer that was taken down and is silent is still not lost
    link.is_whole = false;
    link.run(30 * SECOND);
    assert_eq!(link.ends[1].session.remote_state, State::AdminDown);
    link.is_whole = true;
    link.act(0, |session, now_ns, jitter| session.set_admin(true, now_ns, jitter));
    link.run(34 * SECOND);
    assert_eq!(link.states(), [State::Up; 2]);
}

#[test]
fn a_peer_that_demands_silence_gets_it_but_for_polls() {
    let mut link = Link::new(FAST, FAST);
    link.run(5 * SECOND);
    let demand = Control { demand: true, ..link.ends[1].session.packet(false) };
    let end = &mut link.ends[0];
    end.session.receive(&demand, 5 * SECOND, &mut end.jitter);
    assert_eq!(end.session.next_tx_ns, NEVER);
    let faster = Settings { desired_min_tx_us: 30_000, ..FAST };
    let effect = end.session.set(faster, 5 * SECOND, &mut end.jitter);
    assert!(effect.send && end.session.is_polling);
    assert!(end.session.next_tx_ns < NEVER, "until the poll is answered");
    let answer = Control { is_final: true, ..demand };
    end.session.receive(&answer, 5 * SECOND, &mut end.jitter);
    let effect = end.session.pass_time(5 * SECOND + 100 * MS, &mut end.jitter);
    assert!(!effect.send, "the poll is over");
}

#[test]
fn a_peer_that_can_receive_nothing_is_sent_nothing() {
    let mut link = Link::new(FAST, FAST);
    link.run(5 * SECOND);
    let deaf = Control { required_min_rx_us: 0, ..link.ends[1].session.packet(false) };
    let end = &mut link.ends[0];
    end.session.receive(&deaf, 5 * SECOND, &mut end.jitter);
    assert_eq!(end.session.next_tx_ns, NEVER);
}

#[test]
fn a_path_that_is_down_ends_the_session_and_sends_nothing() {
    let mut link = Link::new(FAST, FAST);
    link.run(5 * SECOND);
    link.act(0, |session, now_ns, jitter| session.set_path(false, now_ns, jitter));
    assert_eq!(link.ends[0].session.diagnostic, Diagnostic::PATH_DOWN);
    assert_eq!(link.ends[0].session.wake_ns(), NEVER);
    link.act(0, |session, now_ns, jitter| session.set_path(true, now_ns, jitter));
    link.run(8 * SECOND);
    assert_eq!(link.states(), [State::Up; 2]);
}

#[test]
fn at_a_multiplier_of_one_packets_are_ten_percent_early_at_least() {
    let once = Settings { detect_mult: 1, ..FAST };
    let mut link = Link::new(once, once);
    link.run(10 * SECOND);
    assert_eq!(link.states(), [State::Up; 2]);
    assert!(link.gaps(0, 4 * SECOND).iter().all(|gap| (37 * MS..=45 * MS).contains(gap)));
}

/// All transitions of RFC 5880 §6.2: the own state, what is heard, the state that follows.
#[test]
fn transitions_are_those_of_the_figure() {
    use State::*;
    for (own, heard, then) in [
        (Down, AdminDown, Down),
        (Down, Down, Init),
        (Down, Init, Up),
        (Down, Up, Down),
        (Init, AdminDown, Down),
        (Init, Down, Init),
        (Init, Init, Up),
        (Init, Up, Up),
        (Up, AdminDown, Down),
        (Up, Down, Down),
        (Up, Init, Up),
        (Up, Up, Up),
        (AdminDown, Down, AdminDown),
        (AdminDown, Init, AdminDown),
        (AdminDown, Up, AdminDown),
    ] {
        let mut session = Session::new(1, FAST, own != AdminDown);
        session.state = own;
        let control = Control {
            state: heard,
            my_discriminator: 2,
            your_discriminator: 1,
            detect_mult: 3,
            ..Control::default()
        };
        session.receive(&control, 0, &mut Jitter::seeded(1));
        assert_eq!(session.state, then, "{own:?} hears {heard:?}");
    }
}

proptest! {
    /// Whatever a peer says and the operator does, a session ends within bounded time in a state
    /// that follows, never sends too often, and counts no time that has gone.
    #[test]
    fn any_peer_and_any_operator_leave_a_sound_session(
        steps in prop::collection::vec(
            (0u8..8, any::<[u32; 3]>(), 0u64..3_000_000_000, any::<[bool; 3]>(), 0u8..4), 1..60)
    ) {
        let mut end = End::new(7, FAST);
        let mut now_ns = SECOND;
        end.session.set_path(true, now_ns, &mut end.jitter);
        let mut last_ns = 0;
        for (kind, numbers, passes_ns, [a, b, c], state) in steps {
            let effect = match kind {
                0 => end.session.set_admin(a, now_ns, &mut end.jitter),
                1 => end.session.set_path(a, now_ns, &mut end.jitter),
                2 => {
                    let settings = Settings {
                        desired_min_tx_us: numbers[0].clamp(INTERVAL_US_MIN, INTERVAL_US_MAX),
                        required_min_rx_us: numbers[1].clamp(INTERVAL_US_MIN, INTERVAL_US_MAX),
                        detect_mult: (numbers[2] as u8).max(1),
                    };
                    end.session.set(settings, now_ns, &mut end.jitter)
                }
                3 => end.session.set_echoing(a, now_ns, &mut end.jitter),
                4 => end.session.echo_failed(now_ns, &mut end.jitter),
                _ => {
                    let control = Control {
                        state: State::from_bits(state),
                        poll: a && !b,
                        is_final: b,
                        demand: c,
                        detect_mult: (numbers[2] as u8).max(1),
                        my_discriminator: 9,
                        your_discriminator: 7,
                        desired_min_tx_us: numbers[0],
                        required_min_rx_us: numbers[1],
                        ..Control::default()
                    };
                    end.session.receive(&control, now_ns, &mut end.jitter)
                }
            };
            prop_assert!(!effect.answer || end.session.state != State::AdminDown);
            let until_ns = now_ns + passes_ns;
            let mut wakes = 0;
            while end.session.wake_ns() <= until_ns {
                now_ns = now_ns.max(end.session.wake_ns());
                let periodic = now_ns >= end.session.next_tx_ns;
                let effect = end.session.pass_time(now_ns, &mut end.jitter);
                if effect.send && periodic {
                    prop_assert!(now_ns >= last_ns);
                    last_ns = now_ns;
                }
                prop_assert!(end.session.wake_ns() > now_ns, "time stands still");
                wakes += 1;
                prop_assert!(wakes < 20_000, "woken too often");
            }
            now_ns = until_ns;
            if end.session.state != State::Up {
                prop_assert!(end.session.desired_min_tx_us() >= SLOW_TX_US);
                prop_assert!(!end.session.is_echoing());
            }
        }
    }
}
