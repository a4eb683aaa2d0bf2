//! Settings of a node as a worker uses them, computed from what an operator says.

/// Bits of a fraction of a nanosecond in a virtual clock.
pub const CLOCK_SHIFT: u32 = 8;
/// Bits of a fraction of a nanosecond in the cost of a byte.
pub const COST_SHIFT: u32 = 20;
/// A burst that nobody gives is what the rate makes in so many nanoseconds.
const BURST_DEFAULT_NS: u64 = 5_000_000;
/// Bytes of the longest frame of Ethernet without its check sequence.
pub const FRAME_BYTES: u32 = 1514;
/// The round of the children of a node in which a child sends what its own rate makes.
const SHARE_NS: u64 = 2_000_000;
/// The least and the most bytes that a child sends in such a round.
const SHARE_BYTES: (u64, u64) = (128, 256 << 10);
/// RFC 8289 §4.2: the delay that a queue may have.
pub const TARGET_DEFAULT_NS: u64 = 5_000_000;
/// RFC 8289 §4.3: through which it may have more.
pub const INTERVAL_DEFAULT_NS: u64 = 100_000_000;
/// RFC 8290 §5.2.3: packets that wait in one node at most.
pub const PACKETS_DEFAULT_MAX: u32 = 10_240;
/// Classes of traffic of one node at most.
pub const TINS_MAX: usize = 4;
const NS_PER_S: u128 = 1_000_000_000;

/// Classes by the differentiated services code point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diffserv {
    /// One.
    #[default]
    BestEffort,
    /// Bulk, best effort, voice.
    Three,
    /// Bulk, best effort, video, voice.
    Four,
}

impl Diffserv {
    /// All, with the word of commands.
    pub const ALL: [(&str, Diffserv); 3] =
        [("besteffort", Diffserv::BestEffort), ("3", Diffserv::Three), ("4", Diffserv::Four)];

    /// The tins, those that go first in front: of each, bytes that it may send in a round before
    /// it gives way to those behind it.
    pub(crate) const fn shares(self) -> &'static [i32] {
        match self {
            Diffserv::BestEffort => &[i32::MAX],
            Diffserv::Three => &[8 * 1514, 32 * 1514, 2 * 1514],
            Diffserv::Four => &[8 * 1514, 16 * 1514, 32 * 1514, 2 * 1514],
        }
    }

    /// The tin of a code point (RFC 4594 §2.3, RFC 8622): EF, VA, CS5 to CS7 are voice; CS3, CS4,
    /// AF3x, AF4x are video; CS1 and LE are bulk.
    pub const fn tin(self, code_point: u8) -> u8 {
        let is_voice = matches!(code_point, 40 | 44 | 46 | 48 | 56);
        let is_video = matches!(code_point, 24 | 26 | 28 | 30 | 32 | 34 | 36 | 38);
        let is_bulk = matches!(code_point, 1 | 8);
        match self {
            Diffserv::BestEffort => 0,
            Diffserv::Three if is_voice => 0,
            Diffserv::Three => 1 + is_bulk as u8,
            Diffserv::Four if is_voice => 0,
            Diffserv::Four if is_video => 1,
            Diffserv::Four => 2 + is_bulk as u8,
        }
    }
}

/// What an operator says of a node. A rate of 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Bits a second that it has for itself: its share among its siblings.
    pub rate_bps: u64,
    /// Bits a second that it never exceeds; 0: the rate.
    pub ceil_bps: u64,
    /// Bytes that it may send at once when it was silent; 0: computed.
    pub burst_bytes: u64,
    /// Bytes that count in addition for each packet.
    pub overhead_bytes: i32,
    /// RFC 8289 §4.2; 0: computed.
    pub target_ns: u64,
    /// RFC 8289 §4.3; 0: computed.
    pub interval_ns: u64,
    /// RFC 8290 §5.2.4: bytes that a flow sends in a round.
    pub quantum_bytes: u32,
    /// Mark in place of dropping.
    pub ecn: bool,
    /// Hosts share, then the flows of each.
    pub isolates_hosts: bool,
    /// Classes of traffic.
    pub diffserv: Diffserv,
    /// Packets that wait at most.
    pub packets_max: u32,
}

impl Plan {
    /// A rate with the values that nobody has to choose.
    pub const fn of_rate(rate_bps: u64) -> Plan {
        Plan {
            rate_bps,
            ceil_bps: 0,
            burst_bytes: 0,
            overhead_bytes: 0,
            target_ns: 0,
            interval_ns: 0,
            quantum_bytes: FRAME_BYTES,
            ecn: true,
            isolates_hosts: false,
            diffserv: Diffserv::BestEffort,
            packets_max: PACKETS_DEFAULT_MAX,
        }
    }

    /// Bits a second that are never exceeded; 0: no limit.
    pub const fn limit_bps(&self) -> u64 {
        if self.ceil_bps > 0 { self.ceil_bps } else { self.rate_bps }
    }

    /// The burst that is in force, in bytes.
    pub fn burst_in_force(&self) -> u64 {
        if self.burst_bytes > 0 {
            return self.burst_bytes;
        }
        let made = u128::from(self.limit_bps()) * u128::from(BURST_DEFAULT_NS) / 8 / NS_PER_S;
        (made as u64).max(2 * u64::from(FRAME_BYTES))
    }

    /// Nanoseconds that a frame of full length takes at the limit.
    fn frame_ns(&self) -> u64 {
        let bits = u128::from(FRAME_BYTES) * 8 * NS_PER_S;
        bits.checked_div(self.limit_bps().into()).unwrap_or(0) as u64
    }

    /// The target and interval that are in force. At low rates a frame alone takes longer than
    /// 5 ms: the target is at least a frame and a half then.
    pub fn codel_in_force(&self) -> (u64, u64) {
        let frame_ns = self.frame_ns();
        let least = frame_ns + frame_ns / 2;
        let target = match self.target_ns {
            0 => TARGET_DEFAULT_NS.max(least),
            given => given,
        };
        let interval = match self.interval_ns {
            0 => INTERVAL_DEFAULT_NS.max(2 * target),
            given => given,
        };
        (target, interval)
    }
}

/// Settings of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Of a byte, in 2⁻²⁰ ns; 0: the node has no limit.
    pub(crate) cost: u64,
    /// How far the clock may stay behind the time, in 2⁻⁸ ns.
    pub(crate) burst: u64,
    pub(crate) target_ns: u64,
    pub(crate) interval_ns: u64,
    /// Bytes of a round among siblings.
    pub(crate) share_bytes: i32,
    pub(crate) quantum_bytes: i32,
    pub(crate) overhead_bytes: i32,
    pub(crate) packets_max: u32,
    /// Mark in place of dropping.
    pub(crate) ecn: bool,
    /// Hosts share, then the flows of each: a packet needs a host's hash.
    pub isolates_hosts: bool,
    /// Classes of traffic: a packet needs a tin.
    pub diffserv: Diffserv,
}

impl Settings {
    /// Those of a plan.
    pub fn new(plan: &Plan) -> Settings {
        let limit = u128::from(plan.limit_bps());
        let cost = ((8 * NS_PER_S) << COST_SHIFT).checked_div(limit).unwrap_or(0) as u64;
        let share = u128::from(plan.rate_bps) * u128::from(SHARE_NS) / 8 / NS_PER_S;
        let (target_ns, interval_ns) = plan.codel_in_force();
        let mut settings = Settings {
            cost,
            burst: 0,
            target_ns,
            interval_ns: interval_ns.max(1),
            share_bytes: (share as u64).clamp(SHARE_BYTES.0, SHARE_BYTES.1) as i32,
            quantum_bytes: plan.quantum_bytes.clamp(64, 1 << 20) as i32,
            overhead_bytes: plan.overhead_bytes,
            packets_max: plan.packets_max.max(1),
            ecn: plan.ecn,
            isolates_hosts: plan.isolates_hosts,
            diffserv: plan.diffserv,
        };
        settings.burst = settings.time_of(plan.burst_in_force());
        settings
    }

    /// Time that bytes take, in 2⁻⁸ ns.
    #[inline(always)]
    pub(crate) fn time_of(&self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.cost)) >> (COST_SHIFT - CLOCK_SHIFT)) as u64
    }

    /// Bytes that a packet counts.
    #[inline(always)]
    pub(crate) fn counted(&self, bytes: u32) -> u32 {
        bytes.saturating_add_signed(self.overhead_bytes).max(1)
    }
}

/// A clock's word for a time of the router.
#[inline(always)]
pub(crate) const fn clock(now_ns: u64) -> u64 {
    now_ns << CLOCK_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_costs_what_the_rate_says() {
        for (rate_bps, ns) in [(8_000, 1_000_000_u64), (20_000_000, 400), (8_000_000_000, 1)] {
            let settings = Settings::new(&Plan::of_rate(rate_bps));
            assert_eq!(settings.time_of(1000), (ns * 1000) << CLOCK_SHIFT);
        }
        assert_eq!(Settings::new(&Plan::of_rate(0)).time_of(9000), 0);
    }

    #[test]
    fn low_rates_get_a_target_that_a_frame_meets() {
        assert_eq!(Plan::of_rate(20_000_000).codel_in_force(), (5_000_000, 100_000_000));
        assert_eq!(Plan::of_rate(1_000_000).codel_in_force(), (18_168_000, 100_000_000));
        assert_eq!(Plan::of_rate(8_000).codel_in_force(), (2_271_000_000, 4_542_000_000));
    }

    #[test]
    fn code_points_come_to_their_tins() {
        let tins = |diffserv: Diffserv| [46, 34, 0, 8].map(|code_point| diffserv.tin(code_point));
        assert_eq!(tins(Diffserv::BestEffort), [0; 4]);
        assert_eq!(tins(Diffserv::Three), [0, 1, 1, 2]);
        assert_eq!(tins(Diffserv::Four), [0, 1, 2, 3]);
    }
}
