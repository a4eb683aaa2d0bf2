//! What workers ask the control thread to learn: bounded rings of their own, so that a flood of new
//! addresses crowds out nothing else, and each address is asked for once in a while only.

use std::sync::{Arc, Mutex, PoisonError};

use quiver_core::ring::{Consumer, Producer, ring};
use quiver_tables::mac::{MacKey, Seen};

/// Requests of one node that wait for the control thread at most.
pub(crate) const REQUESTS_MAX: usize = 16_384;
/// Addresses that a node remembers to have asked for.
const REMEMBERED: usize = 4096;
/// An address that is not learned for so long is asked for again.
const ASK_AGAIN_NS: u64 = 50_000_000;

/// Please learn this source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub key: MacKey,
    pub seen: Seen,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Told,
    KnownAlready,
    QueueFull,
}

/// The asking side, one for each instance of `l2-learn`.
pub(crate) struct Asker {
    requests: Producer<Request>,
    /// What was asked, on which port, and when; by a few bits of the key.
    remembered: Box<[(u64, u32, u64)]>,
}

impl Asker {
    /// Ask, unless it was done a moment ago.
    pub fn ask(&mut self, request: Request, now_ns: u64) -> Asked {
        let (word, port) = (request.key.word(), request.seen.entry().port().0);
        let place = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % REMEMBERED;
        let (old_word, old_port, at_ns) = self.remembered[place];
        if (old_word, old_port) == (word, port) && now_ns.saturating_sub(at_ns) < ASK_AGAIN_NS {
            return Asked::KnownAlready;
        }
        if self.requests.put(request).is_err() {
            return Asked::QueueFull;
        }
        self.remembered[place] = (word, port, now_ns);
        Asked::Told
    }
}

/// Where requests come out, on the control thread.
#[derive(Clone, Default)]
pub(crate) struct Offices(Arc<Mutex<Vec<Consumer<Request>>>>);

impl Offices {
    /// A ring for one more instance. Called where nodes are made, on the control thread.
    pub fn open(&self) -> Asker {
        let (requests, consumer) = ring(REQUESTS_MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(consumer);
        Asker { requests, remembered: vec![(0, 0, 0); REMEMBERED].into_boxed_slice() }
    }

    /// Take at most `max` requests of each instance. True when more wait.
    pub fn take(&self, max: usize, mut each: impl FnMut(Request)) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut more = false;
        for consumer in all.iter_mut() {
            consumer.take_up_to(max, &mut each);
            more |= !consumer.is_empty();
        }
        more
    }
}
