//! How fast transactions go now: what their sides counted between two looks.

use serde::Serialize;

use super::counters::Counters;
use super::look::Look;

/// Looks are at least so far apart, nanoseconds.
const INTERVAL_NS: u64 = 500_000_000;

/// What a side does now, each a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Transactions that began.
    pub attempted_cps: f64,
    /// Whose handshake was done or first answer came.
    pub connected_cps: f64,
    /// That ended as they should.
    pub successful_cps: f64,
    /// That did not.
    pub failed_cps: f64,
    /// Packets sent.
    pub tx_pps: f64,
    /// Packets received.
    pub rx_pps: f64,
    /// Segments sent again.
    pub retransmitted_pps: f64,
}

type Sums = [u64; 7];

fn sums(counters: &Counters) -> Sums {
    let (transactions, packets) = (&counters.transactions, &counters.packets);
    [
        transactions.attempted.get(),
        transactions.connected.get(),
        transactions.successful.get(),
        transactions.failed_total(),
        packets.tx_packets.get(),
        packets.rx_packets.get(),
        packets.retransmitted.get(),
    ]
}

/// Keeps the last look, and what happened up to it.
#[derive(Default)]
pub struct Sampler {
    last: Option<(u64, [Sums; 2])>,
    rates: [Rates; 2],
}

impl Sampler {
    /// The counts are these now.
    pub fn see(&mut self, look: &Look) {
        let of = |counters: &Option<_>| {
            counters.as_ref().map_or([0; 7], |c: &std::sync::Arc<_>| sums(c))
        };
        let now = [of(&look.clients), of(&look.servers)];
        let Some((then_ns, before)) = self.last else {
            self.last = Some((look.now_ns, now));
            return;
        };
        let passed_ns = look.now_ns.saturating_sub(then_ns);
        if passed_ns < INTERVAL_NS {
            return;
        }
        for side in 0..2 {
            let rate = |place: usize| {
                now[side][place].saturating_sub(before[side][place]) as f64 * 1e9 / passed_ns as f64
            };
            self.rates[side] = Rates {
                attempted_cps: rate(0),
                connected_cps: rate(1),
                successful_cps: rate(2),
                failed_cps: rate(3),
                tx_pps: rate(4),
                rx_pps: rate(5),
                retransmitted_pps: rate(6),
            };
        }
        self.last = Some((look.now_ns, now));
    }

    /// What clients and servers do now.
    pub fn rates(&self) -> [Rates; 2] {
        self.rates
    }
}
