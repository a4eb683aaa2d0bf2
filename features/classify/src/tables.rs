//! What workers read: tables by number, sessions of all of them, and the tables of interfaces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quiver_core::InterfaceId;
use quiver_core::graph::counters::INTERFACES_MAX;
use quiver_core::memory::epoch::{Epochs, Pass, PublishedSlots};
use quiver_tables::exact::{
    ExactError, Limits, LongTable, LongWriter, Objects, ObjectsWriter, Seed,
};
use quiver_tables::memory::MemoryError;

use crate::action::{Action, SessionAction};
use crate::key::{Form, KEY_WORDS, Key, load, load_masked, masked};

/// Tables at most; a table's number is below.
pub(crate) const TABLES_MAX: usize = 256;
/// Tables of a chain at most: so many look-ups a packet costs.
pub(crate) const CHAIN_MAX: usize = 8;
/// Sessions of all tables at most.
const SESSIONS_MAX: usize = 1 << 20;
const LIMITS: Limits = Limits {
    what: "classifier's session table",
    entries_max: SESSIONS_MAX,
    remedy: "put sessions into one with a mask of fewer bits",
};

/// Words of a session's key: the number of its table plus one, and the bytes under the mask.
pub(crate) const SESSION_KEY_WORDS: usize = KEY_WORDS + 1;
/// Words of a session: its key, what becomes of packets, and how many there were.
const SESSION_WORDS: usize = 16;
const ACTION: usize = SESSION_KEY_WORDS;
const HITS: usize = SESSION_KEY_WORDS + 1;

/// The key of a session.
pub(crate) type SessionKey = [u64; SESSION_KEY_WORDS];

/// A table, as workers have it.
pub(crate) struct Table {
    pub form: Form,
    pub mask: Key,
    /// Where packets without a session are looked up next.
    pub next: Option<u16>,
    /// What becomes of those where there is no such table.
    pub miss: Action,
    /// How many had no session here.
    pub misses: Arc<AtomicU64>,
}

/// Which tables classify what an interface receives or sends, each as its number plus one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub ip4: u16,
    pub ip6: u16,
    pub l2: u16,
    /// The interface's packets have no link-layer header.
    pub is_bare: bool,
}

impl Access {
    const fn bits(self) -> u64 {
        self.ip4 as u64
            | (self.ip6 as u64) << 16
            | (self.l2 as u64) << 32
            | (self.is_bare as u64) << 48
    }

    const fn from_bits(bits: u64) -> Access {
        Access {
            ip4: bits as u16,
            ip6: (bits >> 16) as u16,
            l2: (bits >> 32) as u16,
            is_bare: bits >> 48 & 1 != 0,
        }
    }
}

/// What tables classify packets for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// They say what may pass.
    Access,
    /// They say which policer meters.
    Police,
}

impl Purpose {
    pub const ALL: [Purpose; 2] = [Purpose::Access, Purpose::Police];
}

/// Which packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    Input,
    Output,
}

impl Direction {
    pub const ALL: [Direction; 2] = [Direction::Input, Direction::Output];

    /// The word of commands.
    pub const fn word(self) -> &'static str {
        match self {
            Direction::Input => "input",
            Direction::Output => "output",
        }
    }
}

/// What becomes of a packet that has no session in its first table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It has this one in a table behind.
    Session(u32),
    /// It has none; what the last table says of such packets.
    Miss(Action),
}

/// A table's form and mask, apart from it: they are needed before a pass is at hand. A number gets
/// another mask only when it is given to another table, which has no session yet: a key that was
/// made meanwhile finds nothing.
#[derive(Default)]
struct Laid {
    /// Bytes that are passed over, or [`FIELDS`].
    form: AtomicU32,
    mask: [AtomicU64; KEY_WORDS],
}

/// [`Form::Fields`], in a word.
const FIELDS: u32 = u32::MAX;

impl Laid {
    #[inline(always)]
    fn form(&self) -> Form {
        match self.form.load(Ordering::Acquire) {
            FIELDS => Form::Fields,
            skip_bytes => Form::Raw { skip_bytes: skip_bytes as u16 },
        }
    }

    fn set(&self, form: Form, mask: &Key) {
        let word = match form {
            Form::Fields => FIELDS,
            Form::Raw { skip_bytes } => skip_bytes.into(),
        };
        self.mask.iter().zip(mask).for_each(|(own, word)| own.store(*word, Ordering::Relaxed));
        self.form.store(word, Ordering::Release);
    }
}

/// All that workers read.
pub(crate) struct Tables {
    tables: PublishedSlots<Table>,
    laid: Box<[Laid]>,
    sessions: LongTable<Objects<SESSION_WORDS>, SESSION_KEY_WORDS>,
    objects: Arc<Objects<SESSION_WORDS>>,
    /// By purpose and direction.
    access: [[Box<[AtomicU64]>; 2]; 2],
}

impl Tables {
    #[inline(always)]
    pub fn access(&self, of: (Purpose, Direction), on: InterfaceId) -> Access {
        let word = self.access[of.0 as usize][of.1 as usize].get(on.index());
        Access::from_bits(word.map_or(0, |word| word.load(Ordering::Acquire)))
    }

    pub fn set_access(&self, of: (Purpose, Direction), on: InterfaceId, access: Access) {
        if let Some(word) = self.access[of.0 as usize][of.1 as usize].get(on.index()) {
            word.store(access.bits(), Ordering::Release);
        }
    }

    /// The session key that a packet has in the table of a number, which begins with these bytes.
    #[inline(always)]
    pub fn key(&self, number: u16, bytes: &[u8], is_bare: bool) -> SessionKey {
        let Some(laid) = self.laid.get(usize::from(number)) else { return SessionKey::default() };
        load_masked(u64::from(number) + 1, laid.form(), &laid.mask, bytes, is_bare)
    }

    /// A table, for as long as a pass.
    #[inline(always)]
    pub fn table<'p>(&self, number: u16, pass: Pass<'p>) -> Option<&'p Table> {
        self.tables.read(number.into(), pass)
    }

    /// Let a number be a table, or none.
    pub fn set_table(&self, number: u16, table: Option<Table>) {
        if let (Some(table), Some(laid)) = (&table, self.laid.get(usize::from(number))) {
            laid.set(table.form, &table.mask);
        }
        self.tables.publish(number.into(), table);
    }

    /// What workers look sessions up in.
    #[inline(always)]
    pub fn sessions(&self) -> &LongTable<Objects<SESSION_WORDS>, SESSION_KEY_WORDS> {
        &self.sessions
    }

    /// So many packets have met a session.
    #[inline(always)]
    pub fn hit(&self, session: u32, packets: u64) {
        if packets > 0 {
            self.objects.get(session)[HITS].fetch_add(packets, Ordering::Relaxed);
        }
    }

    /// What becomes of packets that meet a session.
    #[inline(always)]
    pub fn action(&self, session: u32) -> SessionAction {
        SessionAction::from_bits(self.objects.get(session)[ACTION].load(Ordering::Relaxed))
    }

    /// Packets that have met a session.
    pub fn hits(&self, session: u32) -> u64 {
        self.objects.get(session)[HITS].load(Ordering::Relaxed)
    }

    /// Give a session another action.
    pub fn set_action(&self, session: u32, action: SessionAction) {
        self.objects.get(session)[ACTION].store(action.bits(), Ordering::Relaxed);
    }

    /// What becomes of a packet, which counts for so many, that has no session in a table: the
    /// tables behind it are looked up, at most [`CHAIN_MAX`].
    #[inline(never)]
    pub fn missed(&self, number: u16, pass: Pass<'_>, packet: (&[u8], bool), packets: u64) -> End {
        let (mut number, (bytes, is_bare)) = (number, packet);
        for _ in 0..CHAIN_MAX {
            let Some(table) = self.table(number, pass) else { break };
            if packets > 0 {
                table.misses.fetch_add(packets, Ordering::Relaxed);
            }
            let Some(next) = table.next else { return End::Miss(table.miss) };
            let Some(behind) = self.table(next, pass) else { return End::Miss(table.miss) };
            let key = masked(&load(behind.form, bytes, is_bare), &behind.mask);
            if let Some(session) = self.sessions.lookup(&session_key(next, &key)) {
                return End::Session(session);
            }
            number = next;
        }
        End::Miss(Action::Permit)
    }
}

/// The key of a session in a table.
#[inline(always)]
pub(crate) fn session_key(table: u16, key: &Key) -> SessionKey {
    let mut out = SessionKey::default();
    out[0] = u64::from(table) + 1;
    out[1..].copy_from_slice(key);
    out
}

/// Who changes sessions.
pub(crate) struct Sessions {
    objects: ObjectsWriter<SESSION_WORDS>,
    writer: LongWriter<Objects<SESSION_WORDS>, SESSION_KEY_WORDS>,
}

impl Sessions {
    /// No sessions, and what workers read.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>) -> Result<(Sessions, Arc<Tables>), MemoryError> {
        let objects = ObjectsWriter::new(epochs, LIMITS)?;
        let writer = LongWriter::new(epochs, LIMITS, Seed::random(), objects.objects().clone())?;
        let none = || (0..INTERFACES_MAX).map(|_| AtomicU64::new(0)).collect();
        let tables = Tables {
            tables: PublishedSlots::new(epochs, TABLES_MAX),
            laid: (0..TABLES_MAX).map(|_| Laid::default()).collect(),
            sessions: writer.table(),
            objects: objects.objects().clone(),
            access: [[none(), none()], [none(), none()]],
        };
        Ok((Sessions { objects, writer }, Arc::new(tables)))
    }

    /// A new session.
    ///
    /// # Errors
    /// There are too many.
    pub fn add(&mut self, key: &SessionKey, action: SessionAction) -> Result<u32, ExactError> {
        let mut content = [0; SESSION_WORDS];
        content[..SESSION_KEY_WORDS].copy_from_slice(key);
        content[ACTION] = action.bits();
        let session = self.objects.take(content)?;
        if let Err(error) = self.writer.insert(session) {
            self.objects.retire(session);
            return Err(error);
        }
        Ok(session)
    }

    /// A session ends.
    pub fn delete(&mut self, key: &SessionKey) {
        if let Some(session) = self.writer.remove(key) {
            self.objects.retire(session);
        }
    }

    /// Use again what no worker sees any more.
    pub fn collect(&mut self) {
        self.objects.collect();
        self.writer.collect();
    }
}
