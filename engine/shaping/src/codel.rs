//! CoDel of one flow (RFC 8289 §5): when its packets have waited for too long.

use crate::settings::{FRAME_BYTES, Settings};

/// RFC 8289 §5.5: a flow that drops again within so many intervals goes on at the rate of drops
/// that it had.
const MEMORY_INTERVALS: u64 = 16;

/// What CoDel remembers of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Codel {
    /// When the sojourn time will have been above the target for an interval; 0: it is below.
    first_above_ns: u64,
    drop_next_ns: u64,
    /// Drops since the flow is in the dropping state, and as many as when it came in last.
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

/// What is to become of the packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent.
    Send,
    /// It is marked and sent, or dropped and the next one looked at.
    Signal,
}

/// One call of [`Codel`] for as long as packets of a flow are looked at for one that is sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    has_signalled: bool,
    /// It came into the dropping state in this look: the next packet is sent whatever it has
    /// waited.
    has_entered: bool,
}

impl Codel {
    /// RFC 8289 §5.4: `t + INTERVAL / sqrt(count)`.
    fn control_law(&self, from_ns: u64, interval_ns: u64) -> u64 {
        from_ns + (interval_ns as f64 / f64::from(self.count.max(1)).sqrt()) as u64
    }

    /// RFC 8289 §5.6: may a packet that has waited so long be dropped? `left_bytes` wait behind
    /// it.
    fn is_above(&mut self, now_ns: u64, waited_ns: u64, left_bytes: u32, of: &Settings) -> bool {
        if waited_ns < of.target_ns || left_bytes <= FRAME_BYTES {
            self.first_above_ns = 0;
            return false;
        }
        if self.first_above_ns == 0 {
            self.first_above_ns = now_ns + of.interval_ns;
            return false;
        }
        now_ns >= self.first_above_ns
    }

    /// The flow has no packet left.
    pub fn run_empty(&mut self) {
        self.first_above_ns = 0;
        self.is_dropping = false;
    }

    /// RFC 8289 §5.5: look at the packet at the head. When it is signalled by being dropped, ask
    /// for the next one with the same `look`.
    pub fn look(
        &mut self,
        look: &mut Look,
        (now_ns, waited_ns): (u64, u64),
        left_bytes: u32,
        of: &Settings,
    ) -> Verdict {
        let is_above = self.is_above(now_ns, waited_ns, left_bytes, of);
        if look.has_entered {
            return Verdict::Send;
        }
        if self.is_dropping {
            if !is_above {
                self.is_dropping = false;
            } else if look.has_signalled {
                // The drop before was in this look: when is the next one due?
                self.drop_next_ns = self.control_law(self.drop_next_ns, of.interval_ns);
            }
            if !self.is_dropping || now_ns < self.drop_next_ns {
                return Verdict::Send;
            }
            self.count = self.count.saturating_add(1);
            look.has_signalled = true;
            return Verdict::Signal;
        }
        if !is_above {
            return Verdict::Send;
        }
        self.enter(now_ns, of.interval_ns);
        look.has_entered = true;
        Verdict::Signal
    }

    /// The packet that was to be signalled was marked, and is sent: the next one has its time.
    pub fn mark_sent(&mut self, look: Look, of: &Settings) {
        if look.has_signalled {
            self.drop_next_ns = self.control_law(self.drop_next_ns, of.interval_ns);
        }
    }

    /// Come into the dropping state.
    fn enter(&mut self, now_ns: u64, interval_ns: u64) {
        self.is_dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let was_long_ago =
            now_ns.saturating_sub(self.drop_next_ns) >= MEMORY_INTERVALS * interval_ns;
        self.count = if delta > 1 && !was_long_ago { delta } else { 1 };
        self.drop_next_ns = self.control_law(now_ns, interval_ns);
        self.last_count = self.count;
    }
}
