//! Sessions: objects that two keys lead to, one for each direction, made and ended by the worker
//! that owns them while all workers look them up. Where both directions have the same key (`K` is
//! 1), one key leads to each.
//!
//! | part | what |
//! | --- | --- |
//! | [`SessionObjects`] | objects of `W` words: `K` keys (`N` words each), then the rest |
//! | [`SessionTable`] | what workers look up in: a key leads to `K × session + direction` |
//! | [`SessionsWriter`] | makes, ends and expires sessions; one owner |
//!
//! [`SessionsWriter::enable`] takes all memory (control thread). Afterwards nothing allocates, so a
//! worker may own the writer. An ended session is found no more at once; its object is used again
//! when every awake worker has ended its pass.
//!
//! Expiry is a clock hand: [`SessionsWriter::turn`] looks at the next objects, in order. There are
//! no lists and no timers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::memory::epoch::{Epochs, Stamp};

use crate::exact::{ExactError, Limits, LongTable, LongWriter, ObjectKeys, Seed};
use crate::memory::{MemoryError, PAGE_BYTES, Pages, Reserved, prefetch};

/// Batches of ended sessions that wait for their grace period at once; later ones join the last.
const BATCHES_MAX: usize = 64;
/// Objects whose lines the clock hand asks for ahead.
const AHEAD: usize = 8;

/// Sessions as everybody sees them.
pub struct SessionObjects<const W: usize, const N: usize, const K: usize = 2>(
    Reserved<[AtomicU64; W]>,
);

impl<const W: usize, const N: usize, const K: usize> SessionObjects<W, N, K> {
    /// The words of a session; one past the end reads as session 0.
    #[inline(always)]
    pub fn get(&self, session: u32) -> &[AtomicU64; W] {
        self.0.get(session as usize)
    }

    /// Bytes really in memory.
    pub fn resident_bytes(&self) -> usize {
        self.0.resident_bytes()
    }
}

impl<const W: usize, const N: usize, const K: usize> ObjectKeys<N> for SessionObjects<W, N, K> {
    /// The key of an index, which is `K × session + direction`.
    #[inline(always)]
    fn key(&self, index: u32) -> &[AtomicU64; N] {
        const { assert!(K * N <= W && (K == 1 || K == 2), "the keys lie in the object") };
        let words = self.get(index / K as u32);
        let first = if index.is_multiple_of(K as u32) { 0 } else { N };
        words[first..].first_chunk().expect("K N <= W")
    }
}

/// What workers look sessions up in.
pub type SessionTable<const W: usize, const N: usize, const K: usize = 2> =
    LongTable<SessionObjects<W, N, K>, N>;

/// Why there is no new session. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// As many as there may be.
    #[error("all {sessions_max} sessions are in use")]
    Full {
        /// The limit.
        sessions_max: usize,
    },
    /// The ended ones are not free yet.
    #[error("all free sessions wait for workers to end their pass")]
    Waiting,
    /// Another session has this key.
    #[error("another session has the key of direction {direction}")]
    Collides {
        /// Whose key it is.
        direction: usize,
    },
    /// The table has no room at this key.
    #[error(transparent)]
    Table(#[from] ExactError),
}

/// Who makes and ends sessions.
pub struct SessionsWriter<const W: usize, const N: usize, const K: usize = 2> {
    objects: Arc<SessionObjects<W, N, K>>,
    table: LongWriter<SessionObjects<W, N, K>, N>,
    epochs: Arc<Epochs>,
    /// Sessions that may be.
    sessions_max: usize,
    /// Sessions that were never used: from here on.
    fresh: u32,
    free: Vec<u32>,
    /// Ended ones that wait, oldest first, and how many of them each stamp covers.
    ended: VecDeque<u32>,
    batches: VecDeque<(Stamp, usize)>,
    /// Ended since the last stamp.
    unstamped: usize,
    /// One bit a session: is it live?
    live: Vec<u64>,
    count: usize,
    hand: usize,
}

impl<const W: usize, const N: usize, const K: usize> SessionsWriter<W, N, K> {
    /// Address space for `limits.entries_max` sessions, of which none may be yet. It takes no
    /// memory.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>, limits: Limits, seed: Seed) -> Result<Self, MemoryError> {
        let capacity = limits.entries_max;
        assert!(capacity < 1 << 30, "a session and a direction fit in an index");
        let objects =
            Arc::new(SessionObjects(Reserved::new(limits.what, capacity + 1, Pages::Huge)?));
        // Room for all segments and those that were split, which may wait.
        let entries = Limits { entries_max: capacity * (K + 1), ..limits };
        let table = LongWriter::new(epochs, entries, seed, objects.clone())?;
        Ok(SessionsWriter {
            objects,
            table,
            epochs: epochs.clone(),
            sessions_max: 0,
            fresh: 0,
            free: Vec::new(),
            ended: VecDeque::new(),
            batches: VecDeque::with_capacity(BATCHES_MAX),
            unstamped: 0,
            live: Vec::new(),
            count: 0,
            hand: 0,
        })
    }

    /// Take the memory for `sessions` in all, touched so that no worker waits for a page.
    ///
    /// # Errors
    /// More than the limit that the writer was made with, or the table has no room.
    pub fn enable(&mut self, sessions: usize) -> Result<(), ExactError> {
        self.table.reserve(K * sessions)?;
        self.free.reserve(sessions.saturating_sub(self.free.len()));
        self.ended.reserve(sessions.saturating_sub(self.ended.len()));
        if self.live.len() < sessions.div_ceil(64) {
            self.live.resize(sessions.div_ceil(64), 0);
        }
        let per_page = PAGE_BYTES / size_of::<[AtomicU64; W]>();
        for session in (self.fresh as usize..sessions).step_by(per_page.max(1)) {
            self.objects.get(session as u32)[0].store(0, Ordering::Relaxed);
        }
        self.sessions_max = sessions;
        Ok(())
    }

    /// End all sessions and give the memory back (control thread). No worker may look up any more.
    pub fn disable(&mut self) {
        while self.turn(usize::MAX, |_, _| false) > 0 {}
        self.table.shrink();
        self.objects.0.release(0..self.objects.0.capacity());
        self.sessions_max = 0;
        self.fresh = 0;
        self.hand = 0;
        self.unstamped = 0;
        self.free = Vec::new();
        self.ended = VecDeque::new();
        self.batches.clear();
        self.live = Vec::new();
    }

    /// What workers look up in.
    pub fn table(&self) -> SessionTable<W, N, K> {
        self.table.table()
    }

    /// The sessions.
    pub fn objects(&self) -> &Arc<SessionObjects<W, N, K>> {
        &self.objects
    }

    /// Sessions that may be.
    pub fn sessions_max(&self) -> usize {
        self.sessions_max
    }

    /// Live sessions.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that are really in memory.
    pub fn resident_bytes(&self) -> usize {
        let lists = self.free.capacity() * 4 + self.ended.capacity() * 4 + self.live.len() * 8;
        self.objects.resident_bytes() + self.table.usage().resident_bytes + lists
    }

    /// The session and direction that a key leads to.
    pub fn get(&self, key: &[u64; N]) -> Option<(u32, usize)> {
        self.table.get(key).map(|index| (index / K as u32, index as usize % K))
    }

    /// Ask for the bucket of a key ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, key: &[u64; N]) {
        self.table.prefetch(key);
    }

    /// A session with this content, whose keys lead to it from now on.
    ///
    /// # Errors
    /// A key is in use, or there is no room; nothing changes.
    pub fn insert(&mut self, content: [u64; W]) -> Result<u32, SessionError> {
        let key = |direction: usize| -> [u64; N] {
            *content[direction * N..].first_chunk().expect("K N <= W")
        };
        for direction in 0..K {
            if self.table.get(&key(direction)).is_some() {
                return Err(SessionError::Collides { direction });
            }
        }
        let session = self.take()?;
        for (word, content) in self.objects.get(session).iter().zip(content) {
            word.store(content, Ordering::Relaxed);
        }
        for direction in 0..K as u32 {
            if let Err(error) = self.table.insert_in_place(K as u32 * session + direction) {
                if direction == 1 {
                    self.table.remove_in_place(&key(0));
                }
                self.retire(session);
                return Err(error.into());
            }
        }
        self.live[session as usize / 64] |= 1 << (session % 64);
        self.count += 1;
        Ok(session)
    }

    /// Is there a live session with this number?
    pub fn is_live(&self, session: u32) -> bool {
        self.live.get(session as usize / 64).is_some_and(|word| word >> (session % 64) & 1 != 0)
    }

    /// End a session: no key leads to it any more. False when it is not live.
    pub fn remove(&mut self, session: u32) -> bool {
        if !self.is_live(session) {
            return false;
        }
        for direction in 0..K as u32 {
            let key = self.objects.key(K as u32 * session + direction);
            let key = key.each_ref().map(|word| word.load(Ordering::Relaxed));
            self.table.remove_in_place(&key);
        }
        self.live[session as usize / 64] &= !(1 << (session % 64));
        self.count -= 1;
        self.retire(session);
        true
    }

    /// Turn the clock hand over the next `places`, at most once round: `keep` is asked about each
    /// live session there; one that it does not keep ends. How many ended.
    pub fn turn(
        &mut self,
        places: usize,
        mut keep: impl FnMut(u32, &[AtomicU64; W]) -> bool,
    ) -> usize {
        let (mut ended, mut left) = (0, places.min(self.fresh as usize));
        while left > 0 {
            if self.hand >= self.fresh as usize {
                self.hand = 0;
            }
            let (first, bit) = (self.hand & !63, self.hand % 64);
            let span = (64 - bit).min(left).min(self.fresh as usize - self.hand);
            let mask = if span == 64 { u64::MAX } else { ((1 << span) - 1) << bit };
            let mut live = self.live[first / 64] & mask;
            let mut ahead = live;
            let objects = self.objects.clone();
            let ask = |ahead: &mut u64| {
                if *ahead != 0 {
                    prefetch(objects.get((first + ahead.trailing_zeros() as usize) as u32));
                    *ahead &= *ahead - 1;
                }
            };
            (0..AHEAD).for_each(|_| ask(&mut ahead));
            while live != 0 {
                ask(&mut ahead);
                let session = (first + live.trailing_zeros() as usize) as u32;
                live &= live - 1;
                if !keep(session, objects.get(session)) {
                    ended += usize::from(self.remove(session));
                }
            }
            self.hand += span;
            left -= span;
        }
        ended
    }

    /// Places that the clock hand goes round over.
    pub fn places(&self) -> usize {
        self.fresh as usize
    }

    /// Live sessions from `first` on, in order.
    pub fn live_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        (first..self.fresh).filter(|session| self.is_live(*session))
    }

    /// Use again what no worker sees any more. To be called once in a pass, or seldom.
    pub fn collect(&mut self) {
        if self.unstamped > 0 && self.batches.len() < BATCHES_MAX {
            let count = std::mem::take(&mut self.unstamped);
            self.batches.push_back((self.epochs.stamp(), count));
        }
        while let Some((_, count)) =
            self.batches.pop_front_if(|(stamp, _)| self.epochs.has_passed(*stamp))
        {
            self.free.extend(self.ended.drain(..count));
        }
    }

    fn take(&mut self) -> Result<u32, SessionError> {
        if self.count >= self.sessions_max {
            return Err(SessionError::Full { sessions_max: self.sessions_max });
        }
        if let Some(session) = self.free.pop() {
            return Ok(session);
        }
        if (self.fresh as usize) < self.sessions_max {
            self.fresh += 1;
            return Ok(self.fresh - 1);
        }
        self.collect();
        self.free.pop().ok_or(SessionError::Waiting)
    }

    fn retire(&mut self, session: u32) {
        self.ended.push_back(session);
        self.unstamped += 1;
    }
}
