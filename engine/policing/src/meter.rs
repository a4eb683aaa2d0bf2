//! Meters: token buckets that say how far packets keep to a rate (RFC 2697, 2698 and 4115).
//!
//! A token is what a rate of one unit a second makes in a nanosecond, so that a rate of `n` makes
//! `n` tokens a nanosecond and nothing is ever rounded. A packet costs 10^9 tokens; a byte costs
//! 8 * 10^9, for rates are in bits.

/// How far a packet keeps to the rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    /// It conforms.
    Green,
    /// It exceeds the committed rate or burst, and is within the other one.
    Yellow,
    /// It violates both.
    Red,
}

impl Colour {
    /// All, the best first.
    pub const ALL: [Colour; 3] = [Colour::Green, Colour::Yellow, Colour::Red];

    /// What operators call a packet of it.
    pub const fn word(self) -> &'static str {
        match self {
            Colour::Green => "conform",
            Colour::Yellow => "exceed",
            Colour::Red => "violate",
        }
    }
}

/// Which buckets there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One rate and one burst: conform or violate.
    OneRateTwoColours,
    /// One rate and two bursts (RFC 2697): what the first bucket has no room for fills the second.
    OneRateThreeColours,
    /// A committed and a peak rate (RFC 2698): a conforming packet takes from both buckets.
    TwoRates2698,
    /// A committed and an excess rate (RFC 4115): a packet takes from one bucket.
    TwoRates4115,
}

impl Kind {
    /// All, with VPP's words.
    pub const ALL: [(&'static str, Kind); 4] = [
        ("1r2c", Kind::OneRateTwoColours),
        ("1r3c", Kind::OneRateThreeColours),
        ("2r3c-2698", Kind::TwoRates2698),
        ("2r3c-4115", Kind::TwoRates4115),
    ];

    /// VPP's word.
    pub fn word(self) -> &'static str {
        Kind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Is there a second rate?
    pub const fn has_two_rates(self) -> bool {
        matches!(self, Kind::TwoRates2698 | Kind::TwoRates4115)
    }
}

/// What is metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits of frames without their check sequence; rates in bits a second, bursts in bytes.
    Bits,
    /// Packets; rates in packets a second.
    Packets,
}

impl Unit {
    /// Tokens that one of a burst's units costs.
    pub const fn tokens(self) -> u64 {
        match self {
            Unit::Bits => 8_000_000_000,
            Unit::Packets => 1_000_000_000,
        }
    }

    /// The largest burst: its tokens fit into a word.
    pub const BURST_MAX: u64 = i32::MAX as u64;
}

/// The rates and bursts of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Which buckets there are.
    pub kind: Kind,
    /// What is metered.
    pub unit: Unit,
    /// The committed rate, units a second.
    pub committed: u64,
    /// The committed burst.
    pub committed_burst: u64,
    /// The peak rate (RFC 2698) or the excess rate (RFC 4115), units a second.
    pub excess: u64,
    /// The excess burst, or that of the peak rate.
    pub excess_burst: u64,
}

/// What a meter's buckets hold when they are full, and how they fill: it never changes, so that
/// many meters share it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    rates: Rates,
    /// Tokens that the buckets hold at most.
    full: [u64; 2],
}

/// The buckets of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    /// Tokens that they hold.
    pub held: [u64; 2],
    /// When they were filled last, nanoseconds.
    pub filled_ns: u64,
}

impl Plan {
    /// Of these rates and bursts.
    pub fn new(rates: Rates) -> Plan {
        let tokens = |burst: u64| burst.min(Unit::BURST_MAX) * rates.unit.tokens();
        Plan { rates, full: [tokens(rates.committed_burst), tokens(rates.excess_burst)] }
    }

    /// Full buckets, as each of the RFCs begins.
    #[inline(always)]
    pub fn full(&self, now_ns: u64) -> Buckets {
        Buckets { held: self.full, filled_ns: now_ns }
    }

    /// Fill the buckets with what time has brought. Time that goes back brings nothing. What
    /// another plan has left in them is cut to what they hold at most.
    #[inline(always)]
    pub fn fill(&self, buckets: &mut Buckets, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(buckets.filled_ns);
        if elapsed_ns == 0 {
            return;
        }
        buckets.filled_ns = now_ns;
        // More than a bucket holds is as much as it holds.
        let held = buckets.held[0].min(self.full[0]);
        let first = held.saturating_add(elapsed_ns.saturating_mul(self.rates.committed));
        buckets.held[0] = first.min(self.full[0]);
        let second = match self.rates.kind {
            Kind::OneRateTwoColours => 0,
            Kind::OneRateThreeColours => first - buckets.held[0],
            _ => elapsed_ns.saturating_mul(self.rates.excess),
        };
        buckets.held[1] = buckets.held[1].saturating_add(second).min(self.full[1]);
    }

    /// The colour of a packet that costs so many units of a burst, and had a colour before; one
    /// that nobody has coloured is green. Buckets lose what it takes.
    #[inline(always)]
    pub fn colour(&self, buckets: &mut Buckets, units: u64, before: Colour) -> Colour {
        let cost = units.saturating_mul(self.rates.unit.tokens());
        let (first, second) = (buckets.held[0] >= cost, buckets.held[1] >= cost);
        let (colour, takes) = match self.rates.kind {
            Kind::TwoRates2698 if before == Colour::Red || !second => (Colour::Red, [false; 2]),
            Kind::TwoRates2698 if before == Colour::Yellow || !first => {
                (Colour::Yellow, [false, true])
            }
            Kind::TwoRates2698 => (Colour::Green, [true; 2]),
            _ if before == Colour::Green && first => (Colour::Green, [true, false]),
            Kind::OneRateTwoColours => (Colour::Red, [false; 2]),
            _ if before != Colour::Red && second => (Colour::Yellow, [false, true]),
            _ => (Colour::Red, [false; 2]),
        };
        let [from_first, from_second] = takes;
        buckets.held[0] -= if from_first { cost } else { 0 };
        buckets.held[1] -= if from_second { cost } else { 0 };
        colour
    }
}

/// A plan with buckets of its own.
#[derive(Clone, Debug)]
pub struct Meter {
    plan: Plan,
    buckets: Buckets,
}

impl Meter {
    /// With full buckets.
    pub fn new(rates: Rates, now_ns: u64) -> Meter {
        let plan = Plan::new(rates);
        Meter { plan, buckets: plan.full(now_ns) }
    }

    /// [`Plan::fill`] its buckets.
    #[inline]
    pub fn fill(&mut self, now_ns: u64) {
        self.plan.fill(&mut self.buckets, now_ns);
    }

    /// The [`Plan::colour`] of a packet.
    #[inline]
    pub fn colour(&mut self, units: u64, before: Colour) -> Colour {
        self.plan.colour(&mut self.buckets, units, before)
    }

    /// How its buckets fill.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}
