//! What workers and the control thread share: which session a packet is of, and what state each
//! session is in.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::control::session_states::{SessionState, SessionStates};
use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, WorkerId};
use quiver_tables::exact::{ExactError, Limits, Seed, ShortTable, ShortWriter};
use quiver_tables::memory::MemoryError;
use quiver_wire::bfd::{Diagnostic, State};

/// Sessions of the router at most.
pub const SESSIONS_MAX: usize = 8192;

/// What a session is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ends {
    /// Its interface; none: several hops (RFC 5883).
    pub interface: Option<InterfaceId>,
    /// Is the interface a member of an aggregate, which this session alone watches (RFC 7130)?
    pub is_member: bool,
    /// This router's address.
    pub local: IpAddr,
    /// The peer's address.
    pub peer: IpAddr,
}

/// Where a session is: the worker, and its number there and everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whose it is.
    pub worker: WorkerId,
    /// Its number.
    pub slot: u16,
}

impl Place {
    fn to_word(self) -> u32 {
        u32::from(self.worker.0) << 16 | u32::from(self.slot)
    }

    fn of_word(word: u32) -> Place {
        Place { worker: WorkerId((word >> 16) as u16), slot: word as u16 }
    }
}

/// The state of a session as its worker publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Of the session.
    pub state: State,
    /// As the peer says.
    pub remote_state: State,
    /// Why the session changed last.
    pub diagnostic: Diagnostic,
    /// Counts changes: which one this is.
    pub change: u32,
}

impl Live {
    fn bits(state: State, remote_state: State, diagnostic: Diagnostic) -> u32 {
        u32::from(diagnostic.0) << 8 | u32::from(remote_state as u8) << 4 | u32::from(state as u8)
    }

    fn of(published: SessionState) -> Live {
        let SessionState { bits, change } = published;
        Live {
            state: State::from_bits(bits as u8),
            remote_state: State::from_bits((bits >> 4) as u8),
            diagnostic: Diagnostic((bits >> 8) as u8),
            change,
        }
    }
}

/// What workers read, and the states that they publish.
pub struct Shared {
    /// Sessions whose discriminator ends in their slot: the discriminator, and below it the place.
    direct: Box<[AtomicU64]>,
    by_discriminator: ShortTable<u32>,
    by_ends: ShortTable<u32>,
    hash: RandomState,
    states: SessionStates,
}

impl Shared {
    /// The session whose local discriminator this is.
    pub fn of_discriminator(&self, discriminator: u32) -> Option<Place> {
        let word = self.direct[direct_slot(discriminator)].load(Ordering::Acquire);
        if word >> 32 == u64::from(discriminator) && discriminator != 0 {
            return Some(Place::of_word(word as u32));
        }
        self.by_discriminator.lookup(discriminator.into()).map(Place::of_word)
    }

    /// The session between these ends; whether it is really theirs is to be checked.
    pub fn of_ends(&self, ends: &Ends) -> Option<Place> {
        self.by_ends.lookup(self.hash.hash_one(ends)).map(Place::of_word)
    }

    /// A worker publishes the state of a session.
    pub fn publish(&self, slot: u16, state: State, remote_state: State, diagnostic: Diagnostic) {
        self.states.publish(slot, Live::bits(state, remote_state, diagnostic));
    }

    /// The state that was published last.
    pub fn live(&self, slot: u16) -> Live {
        Live::of(self.states.get(slot))
    }

    /// The states of all sessions.
    pub fn states(&self) -> &SessionStates {
        &self.states
    }
}

fn direct_slot(discriminator: u32) -> usize {
    discriminator as usize % SESSIONS_MAX
}

/// A discriminator like `random` that ends in a session's slot.
pub fn direct_discriminator(random: u32, slot: u16) -> u32 {
    random - random % SESSIONS_MAX as u32 + u32::from(slot)
}

/// The control thread's side of the tables.
pub struct Writer {
    by_discriminator: ShortWriter<u32>,
    by_ends: ShortWriter<u32>,
    shared: Arc<Shared>,
}

/// Why there are no tables.
#[derive(Debug)]
pub struct NoTables(String);

impl std::fmt::Display for NoTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BFD: {}", self.0)
    }
}

impl From<MemoryError> for NoTables {
    fn from(error: MemoryError) -> NoTables {
        NoTables(error.to_string())
    }
}

impl Writer {
    /// Empty tables.
    ///
    /// # Errors
    /// The system refuses address space or a descriptor.
    pub fn new(epochs: &Arc<Epochs>) -> Result<Writer, NoTables> {
        let limits = Limits {
            what: "table of BFD sessions",
            entries_max: SESSIONS_MAX,
            remedy: "the limit cannot be raised",
        };
        let by_discriminator = ShortWriter::new(epochs, limits, Seed::random())?;
        let by_ends = ShortWriter::new(epochs, limits, Seed::random())?;
        let shared = Shared {
            direct: (0..SESSIONS_MAX).map(|_| AtomicU64::new(0)).collect(),
            by_discriminator: by_discriminator.table(),
            by_ends: by_ends.table(),
            hash: RandomState::new(),
            states: SessionStates::new(SESSIONS_MAX)
                .map_err(|error| NoTables(error.to_string()))?,
        };
        Ok(Writer { by_discriminator, by_ends, shared: Arc::new(shared) })
    }

    /// What workers read.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Let packets find a session.
    ///
    /// # Errors
    /// There is no room; nothing has changed.
    pub fn insert(
        &mut self,
        discriminator: u32,
        ends: &Ends,
        place: Place,
    ) -> Result<(), ExactError> {
        let (key, word) = (self.shared.hash.hash_one(ends), place.to_word());
        self.by_discriminator.insert(discriminator.into(), word)?;
        if let Err(error) = self.by_ends.insert(key, word) {
            self.by_discriminator.remove(discriminator.into());
            return Err(error);
        }
        if direct_slot(discriminator) == usize::from(place.slot) {
            self.set_direct(discriminator, u64::from(discriminator) << 32 | u64::from(word));
        }
        Ok(())
    }

    fn set_direct(&self, discriminator: u32, word: u64) {
        self.shared.direct[direct_slot(discriminator)].store(word, Ordering::Release);
    }

    /// Is this the local discriminator of a session?
    pub fn has_discriminator(&self, discriminator: u32) -> bool {
        self.by_discriminator.get(discriminator.into()).is_some()
    }

    /// Could packets between these ends be taken for another session's? By chance of 2^-64.
    pub fn has_ends(&self, ends: &Ends) -> bool {
        self.by_ends.get(self.shared.hash.hash_one(ends)).is_some()
    }

    /// Let packets find a session no more.
    pub fn remove(&mut self, discriminator: u32, ends: &Ends) {
        let direct = &self.shared.direct[direct_slot(discriminator)];
        if direct.load(Ordering::Relaxed) >> 32 == u64::from(discriminator) {
            self.set_direct(discriminator, 0);
        }
        self.by_discriminator.remove(discriminator.into());
        self.by_ends.remove(self.shared.hash.hash_one(ends));
    }

    /// A new session has the slot: its state is what it begins with.
    pub fn reset(&self, slot: u16, state: State, diagnostic: Diagnostic) {
        self.shared.states.reset(slot, Live::bits(state, State::Down, diagnostic));
    }

    /// Make free what no worker reads any more.
    pub fn collect(&mut self) {
        self.by_discriminator.collect();
        self.by_ends.collect();
    }
}
