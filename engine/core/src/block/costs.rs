//! What a node costs per packet, so that the clocks of a pass can be shared out among its nodes.

/// One pass in so many is measured kernel by kernel.
const PASSES_PER_SAMPLE: u8 = 64;

/// The smoothed cost of one node.
#[derive(Clone, Copy, Default)]
pub(super) struct Cost {
    /// Clocks per packet, in 256ths; 0 until it is measured.
    per_packet: u64,
}

impl Cost {
    /// So many clocks were measured for so many packets.
    pub fn note(&mut self, clocks: u64, packets: u64) {
        let Some(measured) = (clocks << 8).checked_div(packets).map(|cost| cost.max(1)) else {
            return;
        };
        let old = self.per_packet;
        // A pass during which the core was taken away must not count for much.
        self.per_packet =
            if old == 0 { measured } else { (old * 7 + measured.min(old * 4)).div_ceil(8) };
    }

    /// Has it been measured?
    pub fn is_known(self) -> bool {
        self.per_packet > 0
    }

    /// What so many packets cost, in 256ths of a clock.
    pub fn of(self, packets: u64) -> u64 {
        self.per_packet * packets
    }
}

/// When the passes that begin at a node are measured.
#[derive(Clone, Copy, Default)]
pub(super) struct Turns(u8);

impl Turns {
    /// Is this pass measured? The first one is.
    #[inline(always)]
    pub fn take(&mut self) -> bool {
        let is_due = self.0 == 0;
        self.0 = if is_due { PASSES_PER_SAMPLE - 1 } else { self.0 - 1 };
        is_due
    }

    /// The next pass is measured: a node came whose cost is not known.
    pub fn be_due(&mut self) {
        self.0 = 0;
    }
}

/// Shares out clocks by weight.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    /// Clocks per unit of weight, in parts of 2^32.
    rate: u64,
}

impl Shares {
    /// So many clocks for a sum of weights.
    pub fn new(clocks: u64, sum: u64) -> Shares {
        Shares { rate: (clocks.min(u64::from(u32::MAX)) << 32) / sum.max(1) }
    }

    /// The clocks for one of the weights.
    pub fn of(self, weight: u64) -> u64 {
        ((u128::from(self.rate) * u128::from(weight)) >> 32) as u64
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_shared_out_by_weight_and_none_is_lost() {
        let shares = Shares::new(4_000, 1_000);
        assert_eq!((shares.of(250), shares.of(750)), (1_000, 3_000));
        let shares = Shares::new(1_000_003, 7 << 40);
        let given: u64 = (0..7).map(|_| shares.of(1 << 40)).sum();
        assert!((999_700..=1_000_003).contains(&given), "{given}");
        assert_eq!(Shares::new(5, 0).of(0), 0);
    }

    #[test]
    fn an_interrupted_measurement_counts_for_little() {
        let mut cost = Cost::default();
        assert!(!cost.is_known());
        cost.note(1_000, 100);
        assert_eq!(cost.of(100), 1_000 << 8);
        cost.note(1_000_000, 100);
        assert!(cost.of(100) < 1_500 << 8);
        cost.note(77, 0);
        assert!(cost.is_known());
    }

    #[test]
    fn one_pass_in_many_is_measured() {
        let mut turns = Turns::default();
        let measured = (0..u32::from(PASSES_PER_SAMPLE) * 2).filter(|_| turns.take()).count();
        assert_eq!(measured, 2);
        turns.take();
        turns.be_due();
        assert!(turns.take());
    }
}
