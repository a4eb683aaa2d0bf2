//! Echo packets (RFC 5880 §6.4, §6.8.8, §6.8.9; RFC 5881 §4): addressed to this router itself, sent
//! to the peer, which forwards them back as any packet.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

use quiver_core::jitter::Jitter;
use quiver_wire::bfd::State;

use crate::session::{NEVER, Session};

/// Bytes of an echo packet of this router's.
pub const ECHO_BYTES: usize = 16;

/// The secret that echo packets carry a digest of, so that nobody else makes some.
#[derive(Clone, Default)]
pub struct Seal(RandomState);

impl Seal {
    fn of(&self, discriminator: u32, sequence: u32) -> u64 {
        self.0.hash_one((discriminator, sequence))
    }

    /// An echo packet of a session.
    pub fn write(&self, discriminator: u32, sequence: u32) -> [u8; ECHO_BYTES] {
        let mut bytes = [0; ECHO_BYTES];
        bytes[..4].copy_from_slice(&discriminator.to_be_bytes());
        bytes[4..8].copy_from_slice(&sequence.to_be_bytes());
        bytes[8..].copy_from_slice(&self.of(discriminator, sequence).to_be_bytes());
        bytes
    }

    /// The discriminator and the sequence number of an echo packet; `None` when this router has
    /// not made it.
    pub fn read(&self, bytes: &[u8]) -> Option<(u32, u32)> {
        let (discriminator, rest) = bytes.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let seal = rest.first_chunk()?;
        let discriminator = u32::from_be_bytes(*discriminator);
        let sequence = u32::from_be_bytes(*sequence);
        let is_ours = u64::from_be_bytes(*seal) == self.of(discriminator, sequence);
        is_ours.then_some((discriminator, sequence))
    }
}

/// One session's echo packets.
#[derive(Clone, Debug)]
pub struct Echo {
    /// What they come from; none: none are sent.
    pub source: Option<IpAddr>,
    interval_us: u32,
    detect_mult: u8,
    sequence: u32,
    /// The oldest that still counts when it comes back.
    oldest: u32,
    next_ns: u64,
    /// When too many are missing.
    fail_ns: u64,
}

/// What time asks of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoDue {
    /// Nothing.
    Nothing,
    /// Send one of this number.
    Send(u32),
    /// So many are missing that the session fails.
    Failed,
}

impl Echo {
    /// Echo packets from this address, once the session is up and the peer takes them.
    pub fn new(source: Option<IpAddr>) -> Echo {
        Echo {
            source,
            interval_us: 0,
            detect_mult: 0,
            sequence: 0,
            oldest: 0,
            next_ns: NEVER,
            fail_ns: NEVER,
        }
    }

    /// When time asks something.
    pub fn wake_ns(&self) -> u64 {
        self.next_ns.min(self.fail_ns)
    }

    /// Are they sent? Begin or end as the session says (§6.8.9: only while it is up, and while the
    /// peer takes them).
    pub fn follow(&mut self, session: &Session, now_ns: u64, jitter: &mut Jitter) -> bool {
        let is_wanted = self.source.is_some()
            && session.state == State::Up
            && session.remote_min_echo_rx_us > 0;
        if !is_wanted {
            (self.next_ns, self.fail_ns, self.interval_us) = (NEVER, NEVER, 0);
            return false;
        }
        let settings = session.settings();
        let interval_us = settings.desired_min_tx_us.max(session.remote_min_echo_rx_us);
        if (interval_us, settings.detect_mult) != (self.interval_us, self.detect_mult) {
            let is_first = self.interval_us == 0;
            (self.interval_us, self.detect_mult) = (interval_us, settings.detect_mult);
            self.next_ns = now_ns.saturating_add(self.delay_ns(jitter));
            self.fail_ns = now_ns.saturating_add(self.patience_ns());
            if is_first {
                self.oldest = self.sequence;
            }
        }
        true
    }

    fn delay_ns(&self, jitter: &mut Jitter) -> u64 {
        let interval_ns = u64::from(self.interval_us) * 1_000;
        jitter.between(interval_ns / 4 * 3, interval_ns)
    }

    /// As many intervals as may pass without one, and one for the way there and back.
    fn patience_ns(&self) -> u64 {
        u64::from(self.interval_us) * 1_000 * (u64::from(self.detect_mult) + 1)
    }

    /// The time is `now_ns`.
    pub fn pass_time(&mut self, now_ns: u64, jitter: &mut Jitter) -> EchoDue {
        if now_ns >= self.fail_ns {
            (self.next_ns, self.fail_ns, self.interval_us) = (NEVER, NEVER, 0);
            return EchoDue::Failed;
        }
        if now_ns < self.next_ns {
            return EchoDue::Nothing;
        }
        self.next_ns = now_ns.saturating_add(self.delay_ns(jitter));
        self.sequence = self.sequence.wrapping_add(1);
        EchoDue::Send(self.sequence)
    }

    /// The one of this number came back; false when it is not waited for (any more).
    pub fn receive(&mut self, sequence: u32, now_ns: u64) -> bool {
        let ahead = sequence.wrapping_sub(self.oldest);
        if self.fail_ns == NEVER || ahead == 0 || ahead > self.sequence.wrapping_sub(self.oldest) {
            return false;
        }
        self.oldest = sequence;
        self.fail_ns = now_ns.saturating_add(self.patience_ns());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_router_makes_its_echo_packets() {
        let (own, other) = (Seal::default(), Seal::default());
        let bytes = own.write(7, 9);
        assert_eq!(own.read(&bytes), Some((7, 9)));
        assert_eq!(other.read(&bytes), None);
        for place in 0..ECHO_BYTES {
            let mut changed = bytes;
            changed[place] ^= 1;
            assert_eq!(own.read(&changed), None, "byte {place}");
        }
        assert_eq!(own.read(&bytes[..ECHO_BYTES - 1]), None);
    }
}
