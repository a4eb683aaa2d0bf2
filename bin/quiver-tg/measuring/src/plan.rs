//! When a stream sends and when it rests: bursts, and chains of streams that begin where others
//! end.

use std::sync::Arc;

use quiver_core::graph::counters::Count;

/// The end of a transmission without an end of its own, and the frames of its legs.
pub const ENDLESS: u64 = u64::MAX;

/// How often a stream has ended. Its leg writes it, those behind it in the chain read it.
pub type Rounds = Arc<Count>;

/// Bursts, delays and chains of a stream that is not sent continuously.
#[derive(Default)]
pub struct Plan {
    /// Frames of a burst.
    pub packets: u64,
    /// Bursts of a round.
    pub bursts: u64,
    /// From the last frame of a burst to the first of the next.
    pub gap_ns: u64,
    /// From the beginning of a round to its first frame.
    pub delay_ns: u64,
    /// Rounds.
    pub rounds: u64,
    /// The stream that must have ended before a round begins.
    pub after: Option<Rounds>,
    /// All streams of the chain that begins here: they must have ended before the next round
    /// begins.
    pub chain: Vec<Rounds>,
    /// How often this one has ended.
    pub own: Rounds,
    pub(crate) step: Step,
    pub(crate) bursts_left: u64,
}

/// The state of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// It waits for another one.
    #[default]
    Waiting,
    /// It waits for this time.
    Until(u64),
    /// So many frames are left of the burst.
    Sending(u64),
    /// It is over.
    Ended,
}

/// Frames that a plan allows now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// Nothing.
    Nothing,
    /// A burst begins at this time, with so many frames.
    Begins(u64, u64),
    /// So many frames.
    Frames(u64),
}

impl Plan {
    /// Frames that may be sent at `now_ns`; none counts before `from_ns`.
    #[inline]
    pub fn allow(&mut self, now_ns: u64, from_ns: u64) -> Allowance {
        if self.step == Step::Waiting && now_ns >= from_ns && self.may_begin() {
            let begin_ns =
                if self.after.is_none() && self.own.get() == 0 { from_ns } else { now_ns };
            self.bursts_left = self.bursts;
            self.step = Step::Until(begin_ns.saturating_add(self.delay_ns));
        }
        match self.step {
            Step::Until(at_ns) if now_ns >= at_ns => {
                self.step = Step::Sending(self.packets);
                Allowance::Begins(at_ns, self.packets)
            }
            Step::Sending(left) => Allowance::Frames(left),
            Step::Waiting | Step::Until(_) | Step::Ended => Allowance::Nothing,
        }
    }

    fn may_begin(&self) -> bool {
        let round = self.own.get();
        match &self.after {
            Some(before) => before.get() > round,
            None => self.chain.iter().all(|stream| stream.get() >= round),
        }
    }

    /// So many frames of a burst were sent, the last of them due at `last_due_ns`.
    #[inline]
    pub fn advance(&mut self, frames: u64, last_due_ns: u64) {
        let Step::Sending(left) = &mut self.step else { return };
        if *left == ENDLESS {
            return;
        }
        *left -= frames.min(*left);
        if *left > 0 {
            return;
        }
        self.bursts_left = self.bursts_left.saturating_sub(1);
        if self.bursts_left > 0 {
            self.step = Step::Until(last_due_ns.saturating_add(self.gap_ns));
            return;
        }
        self.own.add(1);
        self.step = if self.own.get() >= self.rounds { Step::Ended } else { Step::Waiting };
    }

    /// Frames that were not sent after all.
    pub fn take_back(&mut self, frames: u64) {
        if let Step::Sending(left) = &mut self.step
            && *left != ENDLESS
        {
            *left += frames;
        }
    }

    /// Frames that are left of a burst; `None` between bursts.
    pub fn left(&self) -> Option<u64> {
        match self.step {
            Step::Sending(left) => Some(left),
            _ => None,
        }
    }

    /// Will it never send again?
    pub fn is_ended(&self) -> bool {
        self.step == Step::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burst(packets: u64) -> Plan {
        Plan { packets, bursts: 1, rounds: 1, ..Plan::default() }
    }

    #[test]
    fn bursts_follow_one_another_with_their_gap() {
        let mut plan = Plan { bursts: 2, gap_ns: 100, delay_ns: 7, ..burst(3) };
        assert_eq!(plan.allow(9, 10), Allowance::Nothing);
        assert_eq!(plan.allow(16, 10), Allowance::Nothing);
        assert_eq!(plan.allow(20, 10), Allowance::Begins(17, 3));
        plan.advance(2, 20);
        assert_eq!(plan.allow(21, 10), Allowance::Frames(1));
        plan.advance(1, 25);
        assert_eq!(plan.allow(124, 10), Allowance::Nothing);
        assert_eq!(plan.allow(125, 10), Allowance::Begins(125, 3));
        plan.advance(3, 130);
        assert!(plan.is_ended());
    }

    #[test]
    fn a_chain_is_sent_as_often_as_its_first_stream_says() {
        let first = Plan { rounds: 2, ..burst(1) };
        let mut second = Plan { rounds: 2, after: Some(first.own.clone()), ..burst(1) };
        let mut first = Plan { chain: vec![first.own.clone(), second.own.clone()], ..first };
        let mut order = String::new();
        for now in 0..20 {
            for (name, plan) in [('1', &mut first), ('2', &mut second)] {
                if let Allowance::Begins(..) = plan.allow(now, 0) {
                    order.push(name);
                    plan.advance(1, now);
                }
            }
        }
        assert_eq!(order, "1212");
        assert!(first.is_ended() && second.is_ended());
    }
}
