//! How long a DHCPv6 client waits for an answer before it sends a message again (RFC 8415 §15).

use quiver_core::jitter::Jitter;

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// The parameters of one type of message.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// IRT: the first wait.
    pub first_ns: u64,
    /// MRT: the longest wait.
    pub longest_ns: u64,
    /// MRC: messages at most; 0: any number.
    pub count_max: u32,
    /// MRD: the exchange fails when it has lasted so long.
    pub duration_ns_max: u64,
}

impl Parameters {
    const fn seconds(first: u64, longest: u64) -> Parameters {
        let (first_ns, longest_ns) = (first * SECOND_NS, longest * SECOND_NS);
        Parameters { first_ns, longest_ns, count_max: 0, duration_ns_max: u64::MAX }
    }

    /// SOL_TIMEOUT; SOL_MAX_RT is what a server may change (§7.6, §21.24).
    pub const fn solicit(longest_s: u32) -> Parameters {
        Parameters::seconds(1, longest_s as u64)
    }

    /// REQ_TIMEOUT, REQ_MAX_RT, REQ_MAX_RC.
    pub const REQUEST: Parameters = Parameters { count_max: 10, ..Parameters::seconds(1, 30) };
    /// CNF_TIMEOUT, CNF_MAX_RT, CNF_MAX_RD.
    pub const CONFIRM: Parameters =
        Parameters { duration_ns_max: 10 * SECOND_NS, ..Parameters::seconds(1, 4) };
    /// REN_TIMEOUT, REN_MAX_RT; REB_TIMEOUT, REB_MAX_RT are the same.
    pub const RENEW: Parameters = Parameters::seconds(10, 600);
    /// REL_TIMEOUT, REL_MAX_RC; DEC_TIMEOUT, DEC_MAX_RC are the same.
    pub const RELEASE: Parameters = Parameters { count_max: 4, ..Parameters::seconds(1, 1 << 20) };
}

/// One exchange: a message that is sent until it is answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exchange {
    /// The number of the transaction, 24 bits.
    pub transaction: u32,
    /// Messages sent.
    pub sent: u32,
    began_ns: u64,
    wait_ns: u64,
}

impl Exchange {
    /// A new one.
    pub fn new(jitter: &mut Jitter) -> Exchange {
        Exchange { transaction: jitter.between(1, 0xff_ffff) as u32, ..Exchange::default() }
    }

    /// Has it failed?
    pub fn is_over(&self, parameters: &Parameters, now_ns: u64) -> bool {
        let by_count = parameters.count_max != 0 && self.sent >= parameters.count_max;
        let end_ns = self.began_ns.saturating_add(parameters.duration_ns_max);
        self.sent > 0 && (by_count || now_ns >= end_ns)
    }

    /// A message is sent now. Returns when the next one is due, or the exchange fails.
    pub fn send(
        &mut self,
        parameters: &Parameters,
        is_solicit: bool,
        now_ns: u64,
        jitter: &mut Jitter,
    ) -> u64 {
        let around = |base_ns: u64, tenth_ns: u64, jitter: &mut Jitter| {
            base_ns - tenth_ns + jitter.between(0, 2 * tenth_ns)
        };
        let first_ns = parameters.first_ns;
        let wait_ns = match self.sent {
            // §18.2.1: the first wait for Advertise messages is not shortened.
            0 if is_solicit => first_ns + jitter.between(1, first_ns / 10),
            0 => around(first_ns, first_ns / 10, jitter),
            _ => around(2 * self.wait_ns, self.wait_ns / 10, jitter),
        };
        let longest_ns = parameters.longest_ns;
        self.wait_ns = match wait_ns > longest_ns {
            true => around(longest_ns, longest_ns / 10, jitter),
            false => wait_ns,
        };
        if self.sent == 0 {
            self.began_ns = now_ns;
        }
        self.sent = self.sent.saturating_add(1);
        let end_ns = self.began_ns.saturating_add(parameters.duration_ns_max);
        (now_ns + self.wait_ns).min(end_ns)
    }

    /// Hundredths of a second since the first message (§21.9).
    pub fn elapsed(&self, now_ns: u64) -> u16 {
        let since_ns = if self.sent == 0 { 0 } else { now_ns.saturating_sub(self.began_ns) };
        (since_ns / (SECOND_NS / 100)).min(u16::MAX.into()) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits of an exchange until it fails, or 20 messages.
    fn waits(parameters: &Parameters, is_solicit: bool, seed: u64) -> Vec<u64> {
        let mut jitter = Jitter::seeded(seed);
        let mut exchange = Exchange::new(&mut jitter);
        let (mut now_ns, mut waits) = (SECOND_NS, Vec::new());
        while !exchange.is_over(parameters, now_ns) && waits.len() < 20 {
            let next_ns = exchange.send(parameters, is_solicit, now_ns, &mut jitter);
            waits.push(next_ns - now_ns);
            now_ns = next_ns;
        }
        waits
    }

    #[test]
    fn waits_double_within_a_tenth_up_to_the_longest() {
        for seed in 1..200 {
            let all = waits(&Parameters::solicit(120), true, seed);
            assert!(all[0] > SECOND_NS && all[0] <= SECOND_NS * 11 / 10);
            for pair in all.windows(2).take(5) {
                let (last, next) = (pair[0], pair[1]);
                assert!(next.abs_diff(2 * last) <= last / 10, "{pair:?}");
            }
            assert!(all[10..].iter().all(|wait| wait.abs_diff(120 * SECOND_NS) <= 12 * SECOND_NS));
        }
    }

    #[test]
    fn an_exchange_ends_by_its_count_or_its_duration() {
        assert_eq!(waits(&Parameters::REQUEST, false, 3).len(), 10);
        assert_eq!(waits(&Parameters::RELEASE, false, 3).len(), 4);
        let confirm = waits(&Parameters::CONFIRM, false, 3);
        assert_eq!(confirm.iter().sum::<u64>(), 10 * SECOND_NS);
        assert_eq!(waits(&Parameters::RENEW, false, 3).len(), 20);
        let first: Vec<u64> =
            (1..50).map(|seed| waits(&Parameters::RENEW, false, seed)[0]).collect();
        assert!(first.iter().any(|wait| *wait < 10 * SECOND_NS), "it may be shorter, too");
    }
}
