//! Data of the peer: put in order, kept until the router takes it.

use std::collections::{BTreeMap, VecDeque};

use crate::wire::read_record;

/// Datagrams behind a missing one that are kept: an acknowledgement names so many.
const HELD_MAX: u64 = 64;
/// Datagrams that wait to be taken at most.
const READY_MAX: usize = 256;

/// What became of a datagram of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is new.
    Taken,
    /// It has come before, or is of a stream that is over.
    Known,
    /// There is no room for it now.
    NoRoom,
}

/// What the router takes, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'d> {
    /// What follows comes from a peer that has started anew, or that is met for the first time.
    NewPeer,
    /// A record.
    Record {
        /// Whose it is.
        channel: u8,
        /// What it says.
        content: &'d [u8],
    },
}

#[derive(Debug)]
enum Ready {
    NewPeer,
    Records(Vec<u8>),
}

/// The receiver.
#[derive(Debug, Default)]
pub(crate) struct Receiver {
    pub stream: u32,
    /// The sequence number that is missing.
    next: u64,
    held: BTreeMap<u64, Vec<u8>>,
    ready: VecDeque<Ready>,
    /// Bytes of the first one of `ready` that were taken.
    taken: usize,
    /// Records that were taken.
    pub records: u64,
    /// Datagrams whose records are cut.
    pub malformed: u64,
}

impl Receiver {
    /// The peer has started anew. What it said before stays true.
    pub fn new_peer(&mut self) {
        (self.stream, self.next) = (0, 0);
        self.held.clear();
        self.ready.push_back(Ready::NewPeer);
    }

    /// Data comes.
    pub fn data(&mut self, stream: u32, sequence: u64, records: &[u8]) -> Outcome {
        if stream < self.stream {
            return Outcome::Known;
        }
        if stream > self.stream {
            self.stream = stream;
            self.next = 0;
            self.held.clear();
        }
        if sequence < self.next || self.held.contains_key(&sequence) {
            return Outcome::Known;
        }
        if sequence - self.next > HELD_MAX || self.window() == 0 {
            return Outcome::NoRoom;
        }
        self.held.insert(sequence, records.to_vec());
        while let Some(records) = self.held.remove(&self.next) {
            self.next += 1;
            self.ready.push_back(Ready::Records(records));
        }
        Outcome::Taken
    }

    /// Datagrams that there is room for.
    pub fn window(&self) -> u32 {
        READY_MAX.saturating_sub(self.ready.len()) as u32
    }

    /// The missing sequence number, and which of the next ones have come.
    pub fn state(&self) -> (u64, u64) {
        let later = self.held.keys().filter_map(|sequence| sequence.checked_sub(self.next + 1));
        let bits = later.filter(|at| *at < 64).fold(0, |bits, at| bits | 1 << at);
        (self.next, bits)
    }

    /// Does something wait to be taken?
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Take the next item.
    pub fn take<R>(&mut self, each: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        loop {
            let records = match self.ready.front()? {
                Ready::NewPeer => {
                    self.ready.pop_front();
                    return Some(each(Item::NewPeer));
                }
                Ready::Records(records) => records,
            };
            let left = records.get(self.taken..).unwrap_or_default();
            let Some((channel, content, rest)) = read_record(left) else {
                self.malformed += u64::from(!left.is_empty());
                self.taken = 0;
                self.ready.pop_front();
                continue;
            };
            let taken = records.len() - rest.len();
            let result = each(Item::Record { channel, content });
            self.records += 1;
            self.taken = taken;
            if rest.is_empty() {
                self.taken = 0;
                self.ready.pop_front();
            }
            return Some(result);
        }
    }
}
