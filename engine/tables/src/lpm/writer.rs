//! The control side of the prefix matches of one family: which prefixes each table has, and the
//! order in which their tries are patched.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quiver_core::memory::epoch::{Epochs, Stamp};

use super::memory::{
    BIG_ROOT_BITS, BIG_ROOT_WORDS, INDEX_MASK, NODE_SLOTS, NODE_WORDS, ROOTS_MAX, SMALL_ROOT_BITS,
    SMALL_ROOT_WORDS, TrieMemory, TrieSlots, TrieUse, WORD_SLOTS,
};
use super::paint::{Painter, Piece};
use super::reader::Lpm;
use super::wide::TAKEN_APART;
use crate::GroupId;
use crate::memory::{MemoryError, Pages, Reserved};
use crate::prefix::{Address, Prefix, PrefixMap};
use crate::prefix_map::Place;

/// Tables of one family at most.
pub const TABLES_MAX: usize = ROOTS_MAX - 1;
/// A table with this many prefixes gets a big root (4 MB). Table 0 has one from its first prefix.
const PROMOTE_PREFIXES: usize = 16_384;
/// A table that shrinks below this many gives it back.
const DEMOTE_PREFIXES: usize = 4_096;
/// From this many prefixes on, readers ask for words of the root ahead of their use.
const LARGE_PREFIXES: usize = 4_096;
/// From this many on, they ask for entries of dense blocks too: with fewer that costs more than it
/// spares.
const HUGE_PREFIXES: usize = 1 << 22;
/// From this many skips on (2 MB in IPv6), readers of large tables ask for them.
const SCATTERED_SKIPS: usize = 1 << 16;
/// Pieces that are painted at a time.
const PIECES_MAX: usize = 1_024;
/// Retired things after which the writer takes a stamp.
const UNSEALED_MAX: usize = 4_096;

/// Why a prefix was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LpmError {
    /// The shared memory of the tries is used up.
    #[error("the {family} prefix match is full: {what} used up; remove prefixes")]
    Full {
        /// Address family.
        family: &'static str,
        /// What ran out.
        what: &'static str,
    },
    /// No memory for a big root.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

/// A prefix's value: the group that a look-up answers, and a note of its owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// What workers get. Never group 0, which means "nothing here".
    pub group: GroupId,
    /// For the owner; the match ignores it.
    pub note: u32,
}

/// The prefix matches of one family as workers read them.
pub struct LpmSpace<A: Address> {
    tables: Box<[Lpm<A>]>,
}

impl<A: Address> LpmSpace<A> {
    /// The table with this small number; one that does not exist is empty and misses.
    #[inline(always)]
    pub fn table(&self, index: u32) -> &Lpm<A> {
        let index = (index as usize).min(TABLES_MAX);
        &self.tables[index]
    }
}

/// What becomes of a table's big root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Empty,
    Small(u32),
    Big,
}

struct Table<A: Address> {
    prefixes: PrefixMap<A, Route>,
    root: Root,
    /// The big root is no longer published, but may still be read.
    draining: Option<Stamp>,
}

/// The one writer of a family's prefix matches.
pub struct LpmWriter<A: Address> {
    space: Arc<LpmSpace<A>>,
    memory: Arc<TrieMemory>,
    slots: TrieSlots,
    tables: Vec<Table<A>>,
    epochs: Arc<Epochs>,
    miss: GroupId,
}

impl<A: Address> LpmWriter<A> {
    /// Empty tables that answer `miss`.
    ///
    /// # Errors
    /// The system refuses the address space.
    pub fn new(epochs: &Arc<Epochs>, miss: GroupId) -> Result<Self, MemoryError> {
        let (memory, slots) = TrieMemory::new::<A>()?;
        let space =
            LpmSpace { tables: (0..=TABLES_MAX).map(|_| Lpm::new(&memory, miss)).collect() };
        Ok(LpmWriter {
            space: Arc::new(space),
            memory,
            slots,
            tables: Vec::new(),
            epochs: epochs.clone(),
            miss,
        })
    }

    /// The workers' side.
    pub fn space(&self) -> &Arc<LpmSpace<A>> {
        &self.space
    }

    /// The prefixes of `table`.
    pub fn prefixes(&mut self, table: u32) -> &PrefixMap<A, Route> {
        &self.table(table).prefixes
    }

    /// The prefixes of `table`, if it ever had any.
    pub fn prefixes_if_any(&self, table: u32) -> Option<&PrefixMap<A, Route>> {
        self.tables.get(table as usize).map(|table| &table.prefixes)
    }

    fn table(&mut self, index: u32) -> &mut Table<A> {
        assert!((index as usize) < TABLES_MAX, "table {index} of {TABLES_MAX}");
        while self.tables.len() <= index as usize {
            self.tables.push(Table {
                prefixes: PrefixMap::default(),
                root: Root::Empty,
                draining: None,
            });
        }
        &mut self.tables[index as usize]
    }

    /// Set what `prefix` leads to; the old value comes back.
    ///
    /// # Errors
    /// The memory for nodes is used up.
    pub fn insert(
        &mut self,
        table: u32,
        prefix: Prefix<A>,
        route: Route,
    ) -> Result<Option<Route>, LpmError> {
        let mut bulk = self.bulk(table);
        let old = bulk.insert(prefix, route)?;
        bulk.finish();
        Ok(old)
    }

    /// Remove `prefix`; its value comes back.
    ///
    /// # Errors
    /// The memory for nodes is used up.
    pub fn remove(&mut self, table: u32, prefix: Prefix<A>) -> Result<Option<Route>, LpmError> {
        let mut bulk = self.bulk(table);
        let old = bulk.remove(prefix)?;
        bulk.finish();
        Ok(old)
    }

    /// Change the note of `prefix` and nothing else.
    pub fn set_note(&mut self, table: u32, prefix: Prefix<A>, note: u32) {
        if let Some(route) = self.table(table).prefixes.get_mut(prefix) {
            route.note = note;
        }
    }

    /// Many changes of `table`, patched together where they are neighbours; fastest in ascending
    /// order of prefixes. What is not yet patched is patched when the bulk is dropped.
    pub fn bulk(&mut self, table: u32) -> Bulk<'_, A> {
        self.table(table);
        Bulk { writer: self, table, pieces: Vec::new() }
    }

    /// Remove all prefixes of `table`; it answers its miss.
    pub fn clear(&mut self, table: u32) {
        let root = std::mem::replace(&mut self.table(table).root, Root::Empty);
        self.table(table).prefixes = PrefixMap::default();
        let space = self.space.clone();
        let lpm = space.table(table);
        lpm.miss.store(self.miss.0, Ordering::Release);
        lpm.publish_root(Some(0));
        self.retire_root(table, root, true);
        self.collect();
    }

    /// Make free what no worker sees any more, and give memory back. The control thread calls this
    /// on every turn of its loop.
    pub fn collect(&mut self) {
        self.slots.reclaim::<A>(&self.memory, &self.epochs);
        for (index, table) in self.tables.iter_mut().enumerate() {
            if table.draining.is_some_and(|stamp| self.epochs.has_passed(stamp)) {
                table.draining = None;
                if let Some(root) = self.space.table(index as u32).big.get() {
                    root.release(0..BIG_ROOT_WORDS);
                }
            }
        }
    }

    /// What the tries use.
    pub fn usage(&self) -> TrieUse {
        self.slots.usage(&self.memory)
    }

    fn painter(&mut self) -> Painter<'_, A> {
        Painter { memory: &self.memory, slots: &mut self.slots, family: PhantomData }
    }

    /// Is there room for the worst that painting `edges` ends of ranges can need?
    fn check_room(&mut self, edges: usize) -> Result<(), LpmError> {
        let levels = (A::BITS / 8) as usize;
        let wide = TAKEN_APART * self.slots.wide.used();
        let parts = wide / NODE_SLOTS;
        let need = [
            ("entries", edges * levels * (NODE_SLOTS + WORD_SLOTS) + 16 * 3072 + wide),
            ("nodes", edges * levels + 256 + parts),
            ("skips", edges * levels + 512 + parts),
        ];
        let have = |slots: &TrieSlots| {
            [slots.entries.headroom(), slots.nodes.headroom(), slots.skips.headroom()]
        };
        if need.iter().zip(have(&self.slots)).any(|((_, need), have)| *need > have) {
            self.slots.reclaim::<A>(&self.memory, &self.epochs);
        }
        for ((what, need), have) in need.into_iter().zip(have(&self.slots)) {
            if need > have {
                return Err(LpmError::Full {
                    family: if A::BITS == 32 { "IPv4" } else { "IPv6" },
                    what,
                });
            }
        }
        Ok(())
    }

    /// See that `table` has the root it should have for `count` prefixes.
    fn fit_root(&mut self, table: u32, count: usize) -> Result<(), LpmError> {
        let lpm = self.space.table(table);
        lpm.large.store(count >= LARGE_PREFIXES, Ordering::Relaxed);
        lpm.huge.store(count >= HUGE_PREFIXES, Ordering::Relaxed);
        let scattered = count >= LARGE_PREFIXES && self.slots.skips.used() >= SCATTERED_SKIPS;
        lpm.scattered.store(scattered, Ordering::Relaxed);
        let (promote, demote) =
            if table == 0 { (1, 1) } else { (PROMOTE_PREFIXES, DEMOTE_PREFIXES) };
        match self.table(table).root {
            Root::Empty | Root::Small(_) if count >= promote => self.promote(table),
            Root::Empty if count > 0 => {
                let Some(base) = self.slots.roots.take(SMALL_ROOT_WORDS) else {
                    return Err(LpmError::Full { family: "IP", what: "small roots" });
                };
                let index = base;
                // Fresh memory is zero: what is not written takes no page, and most tables are
                // small.
                for word in
                    self.memory.root(index).iter().filter(|word| word.load(Ordering::Relaxed) != 0)
                {
                    word.store(0, Ordering::Relaxed);
                }
                self.table(table).root = Root::Small(index);
                self.space.table(table).publish_root(Some(index));
                Ok(())
            }
            Root::Big if count < demote => self.demote(table),
            Root::Small(_) if count == 0 => self.demote(table),
            _ => Ok(()),
        }
    }

    /// Move a table to a big root: a node below the small root is eight words of the big one.
    fn promote(&mut self, table: u32) -> Result<(), LpmError> {
        self.check_room(1 << 10)?;
        let space = self.space.clone();
        let lpm = space.table(table);
        if lpm.big.get().is_none() {
            let _ = lpm.big.set(Reserved::new("a big root", BIG_ROOT_WORDS, Pages::Huge)?);
        }
        let big = lpm.big_words().expect("just made");
        let old = self.table(table).root;
        if let Root::Small(index) = old {
            let memory = self.memory.clone();
            let small = memory.root(index);
            for (word_index, word) in small.iter().enumerate() {
                let slots =
                    self.painter().decode(word.load(Ordering::Relaxed), A::BITS - SMALL_ROOT_BITS);
                for (slot, entry) in slots.into_iter().enumerate() {
                    let index = word_index * WORD_SLOTS + slot;
                    let first = A::from_halves(0, index as u64) << (A::BITS - SMALL_ROOT_BITS);
                    let words = &big[index * NODE_WORDS..][..NODE_WORDS];
                    self.painter().lift(entry, first, A::BITS - BIG_ROOT_BITS, words);
                }
            }
        } else {
            big.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        lpm.publish_root(None);
        let state = self.table(table);
        state.root = Root::Big;
        state.draining = None;
        self.retire_root(table, old, false);
        Ok(())
    }

    /// Move a table to a small root, or to none.
    fn demote(&mut self, table: u32) -> Result<(), LpmError> {
        if self.table(table).prefixes.is_empty() {
            let root = std::mem::replace(&mut self.table(table).root, Root::Empty);
            self.space.table(table).publish_root(Some(0));
            self.retire_root(table, root, true);
            return Ok(());
        }
        self.check_room(2 * DEMOTE_PREFIXES)?;
        let Some(base) = self.slots.roots.take(SMALL_ROOT_WORDS) else {
            return Ok(()); // it keeps the big one
        };
        let (space, memory) = (self.space.clone(), self.memory.clone());
        let big = space.table(table).big_words().expect("the table has a big root");
        for (word_index, word) in memory.root(base).iter().enumerate() {
            let slots: [u32; WORD_SLOTS] = std::array::from_fn(|slot| {
                let index = word_index * WORD_SLOTS + slot;
                let first = A::from_halves(0, index as u64) << (A::BITS - SMALL_ROOT_BITS);
                let words = &big[index * NODE_WORDS..][..NODE_WORDS];
                self.painter().sink(first, A::BITS - BIG_ROOT_BITS, words)
            });
            word.store(0, Ordering::Relaxed);
            self.painter().encode(word, &slots);
        }
        space.table(table).publish_root(Some(base));
        self.table(table).root = Root::Small(base);
        self.retire_root(table, Root::Big, false);
        Ok(())
    }

    /// Retire a root that is published no more; with `deep`, also all that it leads to.
    fn retire_root(&mut self, table: u32, root: Root, deep: bool) {
        let (space, memory) = (self.space.clone(), self.memory.clone());
        let words = match root {
            Root::Empty => return,
            Root::Small(base) => memory.root(base),
            Root::Big => space.table(table).big_words().expect("the table has a big root"),
        };
        let mut painter = self.painter();
        for word in words {
            match (deep, root) {
                (true, _) => painter.retire_word(word.load(Ordering::Relaxed)),
                // The words of a big root took over the runs of nodes, not of the small root.
                (false, Root::Small(_)) => painter.retire_run(word.load(Ordering::Relaxed)),
                (false, _) => {}
            }
        }
        match root {
            Root::Small(base) => self.slots.roots.retire(base, SMALL_ROOT_WORDS),
            _ => self.table(table).draining = Some(self.epochs.stamp()),
        }
    }
}

/// Changes of one table that are patched together.
pub struct Bulk<'w, A: Address> {
    writer: &'w mut LpmWriter<A>,
    table: u32,
    pieces: Vec<Piece<A>>,
}

impl<A: Address> Bulk<'_, A> {
    /// Set what `prefix` leads to; the old value comes back.
    ///
    /// # Errors
    /// The memory for nodes is used up.
    pub fn insert(&mut self, prefix: Prefix<A>, route: Route) -> Result<Option<Route>, LpmError> {
        self.set(prefix, route, true)
    }

    /// Set what `prefix` leads to, unless it leads somewhere already: then that comes back.
    ///
    /// # Errors
    /// The memory for nodes is used up.
    pub fn insert_if_absent(
        &mut self,
        prefix: Prefix<A>,
        route: Route,
    ) -> Result<Option<Route>, LpmError> {
        self.set(prefix, route, false)
    }

    fn set(
        &mut self,
        prefix: Prefix<A>,
        route: Route,
        replace: bool,
    ) -> Result<Option<Route>, LpmError> {
        assert!(route.group.0 != 0 && route.group.0 <= INDEX_MASK, "{:?} is no leaf", route.group);
        self.prepare(prefix)?;
        let count = self.writer.table(self.table).prefixes.len();
        self.writer.fit_root(self.table, count + 1)?;
        let prefixes = &mut self.writer.tables[self.table as usize].prefixes;
        match prefixes.find_or_place(prefix) {
            Ok(_) if !replace => Ok(prefixes.get(prefix).copied()),
            Ok(place) => {
                let old = std::mem::replace(prefixes.value_at(place), route);
                if old.group != route.group {
                    let next = prefixes.after(place);
                    self.change(prefix, route.group, next);
                }
                Ok(Some(old))
            }
            Err(place) => {
                let place = prefixes.insert_at(place, prefix, route);
                let next = prefixes.after(place);
                self.change(prefix, route.group, next);
                Ok(None)
            }
        }
    }

    /// Remove `prefix`; its value comes back.
    ///
    /// # Errors
    /// The memory for nodes is used up.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Result<Option<Route>, LpmError> {
        if self.writer.table(self.table).prefixes.is_empty() {
            return Ok(None);
        }
        self.prepare(prefix)?;
        let prefixes = &mut self.writer.tables[self.table as usize].prefixes;
        let Some(place) = prefixes.find(prefix) else { return Ok(None) };
        let (old, next) = prefixes.remove_at(place);
        let shorter = prefix.len().checked_sub(1).map(|len| Prefix::new(prefix.first(), len));
        let cover = shorter.and_then(|shorter| prefixes.cover_before(next, shorter));
        // Below the default route a miss stands in the trie, not the default itself.
        let group =
            cover.filter(|(cover, _)| cover.len() > 0).map_or(GroupId(0), |(_, route)| route.group);
        self.change(prefix, group, next);
        Ok(Some(old))
    }

    /// The current value of `prefix`.
    pub fn get(&mut self, prefix: Prefix<A>) -> Option<Route> {
        self.writer.table(self.table).prefixes.get(prefix).copied()
    }

    /// Patch now all that was changed.
    pub fn finish(&mut self) {
        self.flush();
        let count = self.writer.table(self.table).prefixes.len();
        // A root that cannot shrink now stays as it is.
        let _ = self.writer.fit_root(self.table, count);
        let waiting = |slots: &TrieSlots| slots.entries.unsealed() + slots.nodes.unsealed();
        if waiting(&self.writer.slots) > UNSEALED_MAX {
            self.writer.collect();
        }
    }

    /// Pieces are painted in ascending order, and none twice: patch first what stands in the way.
    fn prepare(&mut self, prefix: Prefix<A>) -> Result<(), LpmError> {
        let follows = self.pieces.last().is_none_or(|piece| piece.last < prefix.first());
        if !follows || self.pieces.len() >= PIECES_MAX {
            self.flush();
        }
        if self.pieces.is_empty() {
            // For a whole batch and one prefix more with all that lies inside it.
            self.writer.check_room(2 * PIECES_MAX)?;
        }
        Ok(())
    }

    /// All of `prefix` that no longer prefix inside it claims leads to `group`; what follows
    /// `prefix` is at `next`.
    fn change(&mut self, prefix: Prefix<A>, group: GroupId, next: Place) {
        if prefix.len() == 0 {
            let miss = if group.0 == 0 { self.writer.miss } else { group };
            self.writer.space.table(self.table).miss.store(miss.0, Ordering::Release);
            return;
        }
        let leaf = group.0;
        let mut from = Some(prefix.first());
        let state = &self.writer.tables[self.table as usize];
        for (inside, _) in state.prefixes.inside_from(next, prefix) {
            let Some(first) = from else { break };
            if inside.last() < first {
                continue; // inside one that was passed
            }
            if inside.first() > first {
                self.pieces.push(Piece { first, last: inside.first() - A::ONE, leaf });
            }
            from = inside.next().map(|next| next.first());
        }
        if let Some(first) = from
            && first <= prefix.last()
        {
            self.pieces.push(Piece { first, last: prefix.last(), leaf });
        }
        if self.pieces.len() > 1 && self.pieces.len() >= PIECES_MAX {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let writer = &mut *self.writer;
        if self.pieces.is_empty() {
            return;
        }
        let (space, memory) = (writer.space.clone(), writer.memory.clone());
        let (words, bits) = match writer.tables[self.table as usize].root {
            Root::Empty => unreachable!("a table with prefixes has a root"),
            Root::Small(base) => (memory.root(base), SMALL_ROOT_BITS),
            Root::Big => (space.table(self.table).big_words().expect("a big root"), BIG_ROOT_BITS),
        };
        for pieces in self.pieces.chunks(PIECES_MAX) {
            writer.painter().paint_words(words, A::ZERO, A::BITS - bits, pieces);
            if writer.slots.entries.unsealed() > UNSEALED_MAX {
                writer.slots.reclaim::<A>(&writer.memory, &writer.epochs);
            }
        }
        self.pieces.clear();
    }
}

impl<A: Address> Drop for Bulk<'_, A> {
    fn drop(&mut self) {
        self.flush();
    }
}
