//! The key `faults` of a port: the shares of its frames that are lost, repeated, damaged or
//! delayed.

use schemars::JsonSchema;
use serde::Deserialize;

/// The most frames that are lost together, or overtake one.
pub const RUN_FRAMES_MAX: u32 = 1_000_000;
/// The longest delay, microseconds.
pub const DELAY_US_MAX: u64 = 10_000_000;

/// Faults of the generator's frames at a port. Each share is of all frames; a frame has at most
/// one fault.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Share that is lost.
    pub loss: f64,
    /// Frames lost together.
    pub loss_run: u32,
    /// Share that comes twice.
    pub duplicate: f64,
    /// Share that is overtaken.
    pub reorder: f64,
    /// By so many later frames of its stream.
    pub reorder_by: u32,
    /// Share of which a bit of the stamp flips.
    pub corrupt: f64,
    /// Share that comes later.
    pub delay: f64,
    /// By so many microseconds.
    pub delay_us: u64,
    /// The same seed hits the same frames.
    pub seed: u64,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            loss: 0.0,
            loss_run: 1,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: 3,
            corrupt: 0.0,
            delay: 0.0,
            delay_us: 100,
            seed: 1,
        }
    }
}

impl Faults {
    /// Check the ranges of the faults.
    ///
    /// # Errors
    /// When a value is outside its range; the message says what would be possible.
    pub fn check(&self) -> Result<(), String> {
        let shares = [
            ("loss", self.loss),
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
            ("delay", self.delay),
        ];
        for (name, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!(
                    "faults: {name} {share} is outside 0..=1, a share of the frames"
                ));
            }
        }
        let all: f64 = shares.iter().map(|(_, share)| share).sum();
        if all > 1.0 {
            return Err(format!(
                "faults: the shares add up to {all}; a frame has at most one, so at most 1"
            ));
        }
        for (name, run) in [("loss_run", self.loss_run), ("reorder_by", self.reorder_by)] {
            if !(1..=RUN_FRAMES_MAX).contains(&run) {
                return Err(format!("faults: {name} {run} is outside 1..={RUN_FRAMES_MAX}"));
            }
        }
        if !(1..=DELAY_US_MAX).contains(&self.delay_us) {
            return Err(format!(
                "faults: delay_us {} is outside 1..={DELAY_US_MAX}",
                self.delay_us
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(faults: Faults) -> String {
        faults.check().expect_err("must be refused")
    }

    #[test]
    fn impossible_faults_are_refused_with_what_would_be_possible() {
        assert_eq!(Faults::default().check(), Ok(()));
        assert!(
            refused(Faults { loss: 1.5, ..Faults::default() })
                .contains("loss 1.5 is outside 0..=1")
        );
        assert!(refused(Faults { delay: f64::NAN, ..Faults::default() }).contains("delay"));
        assert!(
            refused(Faults { loss: 0.6, corrupt: 0.6, ..Faults::default() }).contains("at most 1")
        );
        assert!(refused(Faults { loss_run: 0, ..Faults::default() }).contains("loss_run 0"));
        assert!(refused(Faults { delay_us: 0, ..Faults::default() }).contains("delay_us 0"));
    }
}
