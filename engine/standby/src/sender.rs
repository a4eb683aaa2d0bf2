//! Data on its way to the peer: kept until it is acknowledged, sent again when it is not.

use std::collections::VecDeque;

use crate::wire::{Ack, write_record};

/// Datagrams that are under way at most: an acknowledgement names so many.
pub(crate) const FLIGHT_MAX: usize = 64;
/// Datagrams that are kept at most, with those that wait to be sent.
pub(crate) const QUEUE_MAX: usize = 256;
/// How often a datagram is sent at most. Then the stream is given up.
const TRIES_MAX: u32 = 8;
/// Bounds of the time after which data is sent again, nanoseconds. The control loop of a router
/// that has nothing else to do turns every ten milliseconds.
const RESEND_MIN_NS: u64 = 50_000_000;
const RESEND_MAX_NS: u64 = 1_000_000_000;

/// A datagram that is not acknowledged.
#[derive(Debug)]
struct Pending {
    records: Vec<u8>,
    count: u64,
    sent_ns: u64,
    tries: u32,
    has_come: bool,
}

/// What a sender counts, in records but for `resent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderCounts {
    pub sent: u64,
    pub acknowledged: u64,
    /// Datagrams.
    pub resent: u64,
    pub lost: u64,
}

/// The sender.
#[derive(Debug)]
pub(crate) struct Sender {
    pub stream: u32,
    /// Sequence number of the first datagram of the queue.
    first: u64,
    queue: VecDeque<Pending>,
    /// Records of the next datagram.
    open: Vec<u8>,
    open_count: u64,
    records_bytes: usize,
    /// Datagrams that the peer has room for.
    window: u32,
    /// Smoothed round trip, nanoseconds; 0 while unknown.
    pub round_trip_ns: u64,
    pub counts: SenderCounts,
}

/// The peer does not acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp;

impl Sender {
    /// Records of a datagram take so many bytes at most.
    pub fn new(records_bytes: usize) -> Sender {
        Sender {
            stream: 1,
            first: 0,
            queue: VecDeque::new(),
            open: Vec::new(),
            open_count: 0,
            records_bytes,
            window: FLIGHT_MAX as u32,
            round_trip_ns: 0,
            counts: SenderCounts::default(),
        }
    }

    /// Forget what waits: another stream begins.
    pub fn restart(&mut self) {
        let unacknowledged = self.queue.iter().filter(|pending| !pending.has_come);
        self.counts.lost += unacknowledged.map(|pending| pending.count).sum::<u64>();
        self.counts.lost += self.open_count;
        self.queue.clear();
        self.open.clear();
        (self.first, self.open_count) = (0, 0);
        self.window = FLIGHT_MAX as u32;
        self.stream = self.stream.wrapping_add(1);
    }

    /// May one more record be offered?
    pub fn has_room(&self) -> bool {
        self.queue.len() < QUEUE_MAX
    }

    /// Does nothing wait for the peer?
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open.is_empty()
    }

    /// Take a record; false when there is no room, or it is too long.
    pub fn offer(&mut self, channel: u8, content: &[u8]) -> bool {
        let bytes = crate::wire::RECORD_HEAD_BYTES + content.len();
        if !self.has_room() || bytes > self.records_bytes {
            return false;
        }
        if self.open.len() + bytes > self.records_bytes {
            self.close();
        }
        let is_written = write_record(channel, content, &mut self.open);
        self.open_count += u64::from(is_written);
        is_written
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let records = std::mem::replace(&mut self.open, Vec::with_capacity(self.records_bytes));
        let count = std::mem::take(&mut self.open_count);
        let pending = Pending { records, count, sent_ns: 0, tries: 0, has_come: false };
        self.queue.push_back(pending);
    }

    /// Send what is due: sequence number and records of each datagram.
    pub fn poll(&mut self, now_ns: u64, mut send: impl FnMut(u64, &[u8])) -> Result<(), GivenUp> {
        self.close();
        let resend_ns = self.resend_ns();
        let flight = (self.window as usize).min(FLIGHT_MAX);
        for (at, pending) in self.queue.iter_mut().take(flight).enumerate() {
            let wait_ns = (resend_ns << pending.tries.saturating_sub(1).min(5)).min(RESEND_MAX_NS);
            let is_due = pending.tries == 0 || now_ns.saturating_sub(pending.sent_ns) >= wait_ns;
            if pending.has_come || !is_due {
                continue;
            }
            match pending.tries {
                0 => self.counts.sent += pending.count,
                TRIES_MAX.. => return Err(GivenUp),
                _ => self.counts.resent += 1,
            }
            pending.tries += 1;
            pending.sent_ns = now_ns;
            send(self.first + at as u64, &pending.records);
        }
        Ok(())
    }

    fn resend_ns(&self) -> u64 {
        match self.round_trip_ns {
            0 => 4 * RESEND_MIN_NS,
            known => (2 * known).clamp(RESEND_MIN_NS, RESEND_MAX_NS),
        }
    }

    /// The peer says what has come.
    pub fn acknowledge(&mut self, ack: &Ack) {
        let sent = self.first + self.queue.len() as u64;
        if ack.stream != self.stream || ack.next < self.first || ack.next > sent {
            return;
        }
        let come = (ack.next - self.first) as usize;
        for pending in self.queue.drain(..come) {
            self.counts.acknowledged += if pending.has_come { 0 } else { pending.count };
        }
        self.first = ack.next;
        self.window = ack.window;
        let newest = 64 - ack.later.leading_zeros() as usize;
        for (at, pending) in self.queue.iter_mut().take(1 + newest).enumerate() {
            let has_come = at > 0 && ack.later >> (at - 1) & 1 != 0;
            if has_come && !pending.has_come {
                pending.has_come = true;
                self.counts.acknowledged += pending.count;
            }
            // What was sent behind it has come: it is lost, and is sent again at once.
            if newest > 0 && !pending.has_come && pending.tries == 1 {
                pending.sent_ns = 0;
            }
        }
    }

    /// A round trip took so long.
    pub fn note_round_trip(&mut self, round_trip_ns: u64) {
        self.round_trip_ns = match self.round_trip_ns {
            0 => round_trip_ns.max(1),
            known => (known - known / 8 + round_trip_ns / 8).max(1),
        };
    }
}
