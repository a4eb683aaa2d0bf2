//! Sessions as workers see them: what belongs to one passes without the lists.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use quiver_classifier::{Key, NONE, field};
use quiver_core::InterfaceId;
use quiver_core::cpu::Body;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::Pass;
use quiver_tables::exact::NOT_FOUND;
use quiver_wire::IpProtocol;

use crate::compiled::{Compiled, Part};
use crate::icmp::{self, Message};
use crate::session::{
    Class, KEY_WORDS, NO_KEY, Objects, Session, SessionKey, Table, Writer, flow_of, is_direct,
    seen_word, tcp_flags,
};
use crate::tables::{Attached, DENY, ESTABLISHED, REFLECT, Search};

/// Keys that are looked up in step: those of a block.
const BATCH: usize = 128;
/// Timeouts in seconds, by [`Class`]: UDP and all others (RFC 4787 REQ-5), TCP established and not
/// (RFC 5382 REQ-5).
pub(crate) const TIMEOUTS_S: [u32; 3] = [300, 7_440, 120];
/// Connections that both ends have not opened yet last the so many'th part of the transient timeout
/// while more than three quarters of the table are in use.
const HASTE: u32 = 8;

/// All that workers know of sessions.
pub(crate) struct Sessions {
    /// From the first list on that makes sessions.
    table: OnceLock<(Table, Arc<Objects>)>,
    /// By interface: the epoch of its lists; 0 where no list makes sessions.
    epochs: Box<[AtomicU32]>,
    timeouts_s: [AtomicU32; 3],
    passes_when_full: AtomicBool,
    /// Sessions stay although their lists were replaced.
    keeps: AtomicBool,
    /// What the owner says: live sessions, the most of them, the places they are at, and the limit.
    live: AtomicUsize,
    most: AtomicUsize,
    places: AtomicUsize,
    limit: AtomicUsize,
    pub made: AtomicU64,
    pub expired: AtomicU64,
}

impl Sessions {
    pub fn new() -> Sessions {
        Sessions {
            table: OnceLock::new(),
            epochs: (0..INTERFACES_MAX).map(|_| AtomicU32::new(0)).collect(),
            timeouts_s: TIMEOUTS_S.map(AtomicU32::new),
            passes_when_full: AtomicBool::new(false),
            keeps: AtomicBool::new(false),
            live: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            places: AtomicUsize::new(0),
            limit: AtomicUsize::new(0),
            made: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }

    /// The look-up table and the sessions.
    #[inline(always)]
    pub fn table(&self) -> Option<&(Table, Arc<Objects>)> {
        self.table.get()
    }

    /// Let workers look up there, from now on (control thread).
    pub fn set_table(&self, table: Table, objects: Arc<Objects>) {
        let _ = self.table.set((table, objects));
    }

    /// The epoch of an interface's lists; 0 when none of them makes sessions.
    #[inline(always)]
    pub fn epoch(&self, interface: u32) -> u32 {
        self.epochs.get(interface as usize).map_or(0, |epoch| epoch.load(Ordering::Acquire))
    }

    pub fn set_epoch(&self, interface: InterfaceId, epoch: u32) {
        if let Some(place) = self.epochs.get(interface.index()) {
            place.store(epoch, Ordering::Release);
        }
    }

    pub fn timeout_s(&self, class: Class) -> u32 {
        self.timeouts_s[class as usize].load(Ordering::Relaxed)
    }

    pub fn set_timeout_s(&self, class: Class, seconds: u32) {
        self.timeouts_s[class as usize].store(seconds, Ordering::Relaxed);
    }

    pub fn passes_when_full(&self) -> bool {
        self.passes_when_full.load(Ordering::Relaxed)
    }

    pub fn pass_when_full(&self, passes: bool) {
        self.passes_when_full.store(passes, Ordering::Relaxed);
    }

    /// Do sessions stay although their lists were replaced?
    pub fn keeps(&self) -> bool {
        self.keeps.load(Ordering::Relaxed)
    }

    pub fn keep(&self, keeps: bool) {
        self.keeps.store(keeps, Ordering::Relaxed);
    }

    /// The owner says how many sessions there are.
    pub fn note(&self, writer: &Writer) {
        self.live.store(writer.len(), Ordering::Relaxed);
        self.most.fetch_max(writer.len(), Ordering::Relaxed);
        self.places.store(writer.places(), Ordering::Relaxed);
        self.limit.store(writer.sessions_max(), Ordering::Relaxed);
    }

    /// Live sessions.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// The most that there were.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Sessions have smaller numbers than this.
    pub fn places(&self) -> usize {
        self.places.load(Ordering::Relaxed)
    }

    /// Is the time of a session over?
    pub fn is_over(&self, session: Session<'_>, now_s: u32) -> bool {
        if session.epoch() == 0 || self.epoch(session.interface()) == 0 {
            return true;
        }
        let timeout_s = self.timeout_s(session.class());
        let is_crowded = self.live() > self.limit.load(Ordering::Relaxed) / 4 * 3;
        let most_s = match is_crowded && session.is_opening() {
            true => timeout_s / HASTE,
            false => timeout_s,
        };
        now_s.saturating_sub(session.seen_s()) > most_s
    }

    fn find(&self, key: &SessionKey) -> Option<Session<'_>> {
        let (table, objects) = self.table()?;
        table.lookup(key).map(|index| Session(objects.get(index)))
    }
}

/// The session key of a packet, and whether it comes from the high end; [`NO_KEY`] of what must be
/// looked at again.
#[inline(always)]
fn session_key<F: Part>(key: &Key<F::Address>) -> (SessionKey, bool) {
    match is_direct(key.fields) & (key.length != 0) {
        true => flow_of(key).key(key.owner),
        false => (NO_KEY, false),
    }
}

/// Packets whose sessions are looked up in step, at most [`BATCH`].
struct WithSession<'b, F: Part> {
    attached: &'b Attached,
    table: &'b Table,
    objects: &'b Objects,
    keys: &'b [Key<F::Address>],
    epoch: u32,
    search: Search,
    pass: Pass<'b>,
    /// Places of the packets that belong to none.
    missed: &'b mut [u8; BATCH],
}

impl<F: Part> Body for WithSession<'_, F> {
    /// How many belong to none.
    type Answer = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let WithSession { attached, objects, epoch, search, pass, missed, .. } = self;
        let count = self.keys.len().min(BATCH);
        let keys = &self.keys[..count];
        // One array, so that it is cleared at once.
        let mut words = [0; KEY_WORDS * BATCH];
        let (wanted, _) = words.as_chunks_mut();
        for (wanted, key) in wanted.iter_mut().zip(keys) {
            *wanted = session_key::<F>(key).0;
        }
        let mut indexes = [NOT_FOUND; BATCH];
        self.table.lookup_slice(search.variant, &wanted[..count], &mut indexes[..count]);
        let seen = seen_word(epoch, search.now_s);
        let mut misses = 0;
        for ((at, key), index) in (0..).zip(keys).zip(indexes) {
            let passes = index != NOT_FOUND && {
                let session = Session(objects.get(index));
                session.stays(seen, key.fields)
                    || attached.takes_key::<F>(session, key, epoch, search, pass)
            };
            missed[misses % BATCH] = at;
            misses += usize::from(!passes);
        }
        misses
    }
}

impl Attached {
    /// As [`find`](Attached::find), for packets of one interface whose lists make sessions.
    #[inline(never)]
    pub fn find_stateful<F: Part>(
        &self,
        lists: Option<&Compiled>,
        epoch: u32,
        search: Search,
        pass: Pass<'_>,
        keys: &[Key<F::Address>],
        found: &mut [u32],
    ) {
        let Some((table, objects)) = self.sessions.table() else {
            return self.find_in_lists::<F>(lists, search, keys, found);
        };
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let Some(first) = keys.first() else { return };
            let is_one_flow = search.is_uniform && keys.iter().all(|key| key == first);
            let asked = if is_one_flow { 1 } else { keys.len() };
            let mut missed = [0; BATCH];
            let misses = search.variant.run(WithSession::<F> {
                attached: self,
                table,
                objects,
                keys: &keys[..asked],
                epoch,
                search,
                pass,
                missed: &mut missed,
            });
            if misses == asked {
                self.find_in_lists::<F>(lists, search, keys, found);
                continue;
            }
            found.fill(ESTABLISHED);
            if misses > 0 {
                self.find_missed::<F>(lists, search, keys, &missed[..misses], found);
            }
        }
    }

    /// Ask the lists about some of a vector's packets.
    fn find_missed<F: Part>(
        &self,
        lists: Option<&Compiled>,
        search: Search,
        keys: &[Key<F::Address>],
        missed: &[u8],
        found: &mut [u32],
    ) {
        let (mut left, mut answers) = ([Key::default(); BATCH], [NONE; BATCH]);
        for (left, at) in left.iter_mut().zip(missed) {
            *left = keys[usize::from(*at)];
        }
        let count = missed.len();
        self.find_in_lists::<F>(lists, search, &left[..count], &mut answers[..count]);
        for (answer, at) in answers.iter().zip(missed) {
            found[usize::from(*at)] = *answer;
        }
    }

    /// As [`takes`](Self::takes), of a packet that is [direct](is_direct).
    #[inline(never)]
    fn takes_key<F: Part>(
        &self,
        session: Session<'_>,
        key: &Key<F::Address>,
        epoch: u32,
        search: Search,
        pass: Pass<'_>,
    ) -> bool {
        let (_, is_high) = session_key::<F>(key);
        self.takes::<F>(session, key.fields, is_high, epoch, search, pass)
    }

    /// Does a packet with these fields belong to the session that its key leads to? Then the
    /// session notes it.
    #[inline(always)]
    fn takes<F: Part>(
        &self,
        session: Session<'_>,
        fields: u32,
        is_high: bool,
        epoch: u32,
        search: Search,
        pass: Pass<'_>,
    ) -> bool {
        if session.epoch() != epoch && !self.matches_again::<F>(session, epoch, search, pass) {
            return false;
        }
        if fields & field::PROTOCOL == u32::from(IpProtocol::TCP.0) {
            let flags = tcp_flags(fields);
            if !session.tcp().stays(flags) && !session.track(is_high, flags) {
                return false;
            }
        }
        session.refresh(search.now_s);
        true
    }

    /// The lists were replaced: do the present ones make a session of the packet that made this
    /// one? If not, it is over.
    #[cold]
    #[inline(never)]
    fn matches_again<F: Part>(
        &self,
        session: Session<'_>,
        epoch: u32,
        search: Search,
        pass: Pass<'_>,
    ) -> bool {
        if session.epoch() == 0 {
            return false;
        }
        let lists = self.lists(session.direction(), session.interface(), pass);
        let mut found = [if self.sessions.keeps() { REFLECT } else { NONE }];
        if let Some(lists) = lists.filter(|_| !self.sessions.keeps()) {
            F::classifier(lists).find(search.variant, &[session.first_packet()], &mut found);
        }
        let is_permitted = makes_session(found[0]);
        session.set_epoch(if is_permitted { epoch } else { 0 });
        is_permitted
    }

    /// Does a packet whose flow is not in its classifier key belong to a session? `bytes` begin
    /// with its IP header.
    #[cold]
    #[inline(never)]
    pub fn is_of_session<F: Part>(
        &self,
        bytes: &[u8],
        noted: Option<quiver_wire::upper::Upper>,
        key: &Key<F::Address>,
        search: Search,
        pass: Pass<'_>,
    ) -> Option<Belongs> {
        let epoch = self.sessions.epoch(key.owner);
        if epoch == 0 || key.fields & field::PROTOCOL != u32::from(F::ICMP.0) {
            return None;
        }
        let (flow, is_error) = match icmp::read::<F>(bytes, noted) {
            Message::Query(flow) => (flow, false),
            Message::Error(flow) => (flow, true),
            Message::Other => return None,
        };
        let (wanted, is_high) = flow.key(key.owner);
        let session = self.sessions.find(&wanted)?;
        if is_error {
            let is_live =
                session.epoch() == epoch || self.matches_again::<F>(session, epoch, search, pass);
            return is_live.then_some(Belongs::Error);
        }
        let takes = self.takes::<F>(session, key.fields, is_high, epoch, search, pass);
        takes.then_some(Belongs::Query)
    }
}

/// How a packet of ICMP belongs to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belongs {
    Query,
    Error,
}

/// Is what the lists say of a packet that it makes a session?
#[inline(always)]
pub(crate) fn makes_session(found: u32) -> bool {
    found & (DENY | REFLECT) == REFLECT
}
