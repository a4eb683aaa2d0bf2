//! Meters beside the text of the RFCs, told again with buckets of exact fractions.

use proptest::prelude::*;
use quiver_policing::meter::{Colour, Kind, Meter, Rates, Unit};

/// Buckets in units of 1/(8 * 10^9) byte, which are filled at each nanosecond's end by as many as
/// bits a second say.
struct Naive {
    rates: Rates,
    held: [u128; 2],
    at_ns: u64,
}

const BYTE: u128 = 8_000_000_000;

impl Naive {
    fn new(rates: Rates) -> Naive {
        let full =
            [rates.committed_burst, rates.excess_burst].map(|burst| u128::from(burst) * BYTE);
        Naive { rates, held: full, at_ns: 0 }
    }

    fn full(&self, bucket: usize) -> u128 {
        u128::from([self.rates.committed_burst, self.rates.excess_burst][bucket]) * BYTE
    }

    fn put(&mut self, bucket: usize, tokens: u128) -> u128 {
        let room = self.full(bucket) - self.held[bucket];
        let taken = room.min(tokens);
        self.held[bucket] += taken;
        tokens - taken
    }

    fn fill(&mut self, now_ns: u64) {
        let elapsed = u128::from(now_ns - self.at_ns);
        self.at_ns = now_ns;
        let over = self.put(0, elapsed * u128::from(self.rates.committed));
        match self.rates.kind {
            Kind::OneRateTwoColours => {}
            // RFC 2697 §3: "else if Te is less than EBS, Te is incremented by one".
            Kind::OneRateThreeColours => drop(self.put(1, over)),
            _ => drop(self.put(1, elapsed * u128::from(self.rates.excess))),
        }
    }

    fn colour(&mut self, bytes: u64, before: Colour) -> Colour {
        let cost = u128::from(bytes) * BYTE;
        let fits = [self.held[0] >= cost, self.held[1] >= cost];
        let colour = match self.rates.kind {
            Kind::OneRateTwoColours => {
                if before == Colour::Green && fits[0] {
                    Colour::Green
                } else {
                    Colour::Red
                }
            }
            // RFC 2697 §3 and RFC 4115 §3: green from the first, else green and yellow from the
            // second, else red.
            Kind::OneRateThreeColours | Kind::TwoRates4115 => match before {
                Colour::Green if fits[0] => Colour::Green,
                Colour::Green | Colour::Yellow if fits[1] => Colour::Yellow,
                _ => Colour::Red,
            },
            // RFC 2698 §3: red if it was or the peak says so; yellow if it was or the committed
            // rate says so; else green, from both.
            Kind::TwoRates2698 => {
                if before == Colour::Red || !fits[1] {
                    Colour::Red
                } else if before == Colour::Yellow || !fits[0] {
                    Colour::Yellow
                } else {
                    Colour::Green
                }
            }
        };
        let takes = match (self.rates.kind, colour) {
            (_, Colour::Red) => [false, false],
            (Kind::TwoRates2698, Colour::Green) => [true, true],
            (_, Colour::Green) => [true, false],
            (_, Colour::Yellow) => [false, true],
        };
        for (held, takes) in self.held.iter_mut().zip(takes) {
            *held -= if takes { cost } else { 0 };
        }
        colour
    }
}

fn rates(kind: Kind) -> impl Strategy<Value = Rates> {
    let rate = prop_oneof![1u64..100_000, 1u64..1_000_000_000_000];
    let burst = prop_oneof![1u64..20_000, 1u64..=Unit::BURST_MAX];
    (rate.clone(), burst.clone(), rate, burst).prop_map(move |(committed, cb, excess, eb)| Rates {
        kind,
        unit: Unit::Bits,
        committed,
        committed_burst: cb,
        excess: if kind == Kind::TwoRates2698 { excess.max(committed) } else { excess },
        excess_burst: eb,
    })
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.map(|(_, kind)| kind).to_vec())
}

fn packets() -> impl Strategy<Value = Vec<(u64, u64, Colour)>> {
    let gap = prop_oneof![Just(0u64), 1u64..10_000, 1u64..2_000_000_000];
    let colour = prop::sample::select(Colour::ALL.to_vec());
    prop::collection::vec((gap, 20u64..9_019, colour), 1..120)
}

proptest! {
    #[test]
    fn every_packet_has_the_colour_that_the_rfcs_say(
        rates in kinds().prop_flat_map(rates),
        packets in packets(),
        is_aware in any::<bool>(),
    ) {
        let (mut meter, mut naive) = (Meter::new(rates, 0), Naive::new(rates));
        let mut now_ns = 0;
        for (gap_ns, bytes, before) in packets {
            now_ns += gap_ns;
            let before = if is_aware { before } else { Colour::Green };
            meter.fill(now_ns);
            naive.fill(now_ns);
            prop_assert_eq!(meter.colour(bytes, before), naive.colour(bytes, before));
        }
    }

    /// However long a policer rests, it never holds more than its bursts.
    #[test]
    fn a_long_rest_is_worth_one_burst(
        rates in kinds().prop_flat_map(rates),
        rest_ns in any::<u64>(),
    ) {
        let mut meter = Meter::new(rates, 0);
        meter.fill(rest_ns);
        let most = rates.committed_burst + rates.excess_burst;
        prop_assert_eq!(meter.colour(most + 1, Colour::Green), Colour::Red);
    }
}

#[test]
fn a_rate_is_kept_to_the_byte() {
    let rates = Rates {
        kind: Kind::OneRateTwoColours,
        unit: Unit::Bits,
        committed: 1_000_000,
        committed_burst: 1500,
        excess: 0,
        excess_burst: 0,
    };
    let mut meter = Meter::new(rates, 0);
    let mut passed = 0;
    // Twice the rate for ten seconds, at uneven times.
    for number in 0..2_500u64 {
        meter.fill(number * 4_000_000 + number % 7 * 331);
        passed += u64::from(meter.colour(1000, Colour::Green) == Colour::Green) * 1000;
    }
    assert_eq!(passed, 1000 * ((1500 + 1_000_000 / 8 * 9_996 / 1000) / 1000));
}

#[test]
fn packets_are_metered_whatever_their_length() {
    let rates = Rates {
        kind: Kind::OneRateTwoColours,
        unit: Unit::Packets,
        committed: 100,
        committed_burst: 10,
        excess: 0,
        excess_burst: 0,
    };
    let mut meter = Meter::new(rates, 0);
    let mut passes = |now_ns: u64, count: usize| {
        meter.fill(now_ns);
        (0..count).filter(|_| meter.colour(1, Colour::Green) == Colour::Green).count()
    };
    assert_eq!(passes(0, 20), 10);
    assert_eq!(passes(9_999_999, 20), 0);
    assert_eq!(passes(10_000_000, 20), 1);
    assert_eq!(passes(60_000_000, 20), 5);
    assert_eq!(passes(5_000_000, 20), 0, "time that goes back brings nothing");
}
