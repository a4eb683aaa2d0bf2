//! The retransmission timeout (RFC 6298), in microseconds.

use crate::wheel::TICK_SHIFT;

/// Before anything was measured (§2.1).
const INITIAL_US: u32 = 1_000_000;
/// After a lost handshake, for the data that follows (§5.7).
const AFTER_LOST_HANDSHAKE_US: u32 = 3_000_000;
/// At least: §2.4 says a second, Linux takes 200 ms.
const MIN_US: u32 = 200_000;
/// At most (§2.5).
const MAX_US: u32 = 60_000_000;
/// The clock's granularity, that of the wheel.
const GRANULARITY_US: u32 = (1 << TICK_SHIFT) / 1000;

/// A connection's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Smoothed round trip; 0 before the first.
    smoothed_us: u32,
    variation_us: u32,
    timeout_us: u32,
}

impl Default for Rto {
    fn default() -> Self {
        Rto { smoothed_us: 0, variation_us: 0, timeout_us: INITIAL_US }
    }
}

impl Rto {
    /// A round trip took so long (§2.2, §2.3).
    pub fn sample(&mut self, trip_us: u32) {
        let trip = trip_us.clamp(1, MAX_US);
        if self.smoothed_us == 0 {
            self.smoothed_us = trip;
            self.variation_us = trip / 2;
        } else {
            let off = self.smoothed_us.abs_diff(trip);
            self.variation_us = self.variation_us - self.variation_us / 4 + off / 4;
            self.smoothed_us = (self.smoothed_us - self.smoothed_us / 8 + trip / 8).max(1);
        }
        self.restore();
    }

    /// Something new was acknowledged: no more backing off.
    pub fn restore(&mut self) {
        if self.smoothed_us > 0 {
            let spread = (4 * self.variation_us).max(GRANULARITY_US);
            self.timeout_us = (self.smoothed_us + spread).clamp(MIN_US, MAX_US);
        }
    }

    /// The timer ran out (§5.5).
    pub fn back_off(&mut self) {
        self.timeout_us = (self.timeout_us * 2).min(MAX_US);
    }

    /// The handshake was lost and nothing is measured (§5.7).
    pub fn after_lost_handshake(&mut self) {
        if self.smoothed_us == 0 {
            self.timeout_us = AFTER_LOST_HANDSHAKE_US;
        }
    }

    /// The timeout in ticks of the wheel, rounded up.
    pub fn ticks(&self) -> u32 {
        ((u64::from(self.timeout_us) * 1000) >> TICK_SHIFT) as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_what_is_measured_and_doubles_when_nothing_comes() {
        let mut rto = Rto::default();
        assert_eq!(rto.timeout_us, 1_000_000);
        rto.sample(100_000);
        // 100 ms + 4 × 50 ms.
        assert_eq!((rto.smoothed_us, rto.variation_us, rto.timeout_us), (100_000, 50_000, 300_000));
        rto.sample(180_000);
        assert_eq!((rto.smoothed_us, rto.variation_us), (110_000, 57_500));
        rto.back_off();
        rto.back_off();
        assert_eq!(rto.timeout_us, 4 * (110_000 + 230_000));
        rto.restore();
        assert_eq!(rto.timeout_us, 340_000);
    }

    #[test]
    fn it_stays_between_its_bounds() {
        let mut rto = Rto::default();
        rto.sample(0);
        assert_eq!(rto.timeout_us, MIN_US);
        (0..40).for_each(|_| rto.back_off());
        assert_eq!(rto.timeout_us, MAX_US);
        rto.sample(u32::MAX);
        assert_eq!(rto.timeout_us, MAX_US);
    }
}
