//! How fast transactions go now: what their sides counted between two looks.

use serde::Serialize;

use super::counters::Counters;
use super::snapshot::Snapshot;

/// Looks are at least so far apart, nanoseconds.
const INTERVAL_NS: u64 = 500_000_000;

/// Current rates of a side, per second.
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

/// Keeps the last snapshot, and what happened up to it.
#[derive(Default)]
pub struct Sampler {
    last: Option<(u64, [Sums; 2])>,
    rates: [Rates; 2],
}

impl Sampler {
    /// Record the counts of a snapshot.
    pub fn record(&mut self, snapshot: &Snapshot) {
        let of = |counters: &Option<_>| {
            counters.as_ref().map_or([0; 7], |c: &std::sync::Arc<_>| sums(c))
        };
        let now = [of(&snapshot.clients), of(&snapshot.servers)];
        let Some((then_ns, before)) = self.last else {
            self.last = Some((snapshot.now_ns, now));
            return;
        };
        let passed_ns = snapshot.now_ns.saturating_sub(then_ns);
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
        self.last = Some((snapshot.now_ns, now));
    }

    /// Current rates of clients and servers.
    pub fn rates(&self) -> [Rates; 2] {
        self.rates
    }
}
