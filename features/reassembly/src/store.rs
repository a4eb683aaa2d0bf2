//! Packets whose fragments are under way: contexts by key, their pieces in order, in memory that
//! was made beforehand. Contexts are in a list by age as well, so that the oldest is found at once.

use std::sync::Arc;

use quiver_core::Packet;
use quiver_core::memory::buffer::BufferPool;
use quiver_wire::upper::Upper;

use crate::fragment::Fragment;
use crate::key::Key;

/// No place.
const NONE: u32 = u32::MAX;
/// Where a packet ends whose last fragment has not come.
const UNKNOWN: u32 = u32::MAX;

/// The place of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// A packet under way.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Which.
    pub key: Key,
    /// When its first fragment came.
    pub since_ns: u64,
    /// It was refused: what still comes of it dies (RFC 5722).
    pub refused: bool,
    /// Pieces.
    pub count: u32,
    /// Bytes of data that are there.
    pub have: u32,
    /// Where the data ends, once the last fragment is there.
    end: u32,
    /// Which congestion marks there are, a bit for each of the four.
    pub ecn: u8,
    /// Virtual reassembly: what the first fragment said.
    pub upper: Option<Upper>,
    first: u32,
    last: u32,
    bucket_next: u32,
    older: u32,
    newer: u32,
}

impl Context {
    /// Are all pieces there?
    pub fn is_complete(&self) -> bool {
        self.have == self.end
    }

    /// Bytes of data of the whole, when that is known.
    pub fn end(&self) -> Option<u32> {
        (self.end != UNKNOWN).then_some(self.end)
    }
}

/// A piece, and its packet unless that has gone on.
struct Slot {
    packet: Option<Packet>,
    piece: Fragment,
    next: u32,
}

/// What a piece is to those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It fits behind the slot (or in front of all).
    Behind(u32),
    /// It is there already.
    Duplicate,
    /// It overlaps another.
    Overlap,
    /// It ends where the packet cannot.
    LengthConflict,
}

/// All contexts of one node.
pub(crate) struct Store {
    contexts: Box<[Context]>,
    slots: Box<[Slot]>,
    buckets: Box<[u32]>,
    seed: u64,
    free_context: u32,
    free_slot: u32,
    oldest: u32,
    newest: u32,
    open: u32,
    free_slots: u32,
    pool: Arc<BufferPool>,
}

impl Store {
    /// Room for so many packets and pieces (control thread).
    pub fn new(contexts: usize, slots: usize, seed: u64, pool: &Arc<BufferPool>) -> Box<Store> {
        let context = |place: usize| Context {
            key: Key::default(),
            since_ns: 0,
            refused: false,
            count: 0,
            have: 0,
            end: UNKNOWN,
            ecn: 0,
            upper: None,
            first: NONE,
            last: NONE,
            bucket_next: if place + 1 < contexts { place as u32 + 1 } else { NONE },
            older: NONE,
            newer: NONE,
        };
        let slot = |place: usize| Slot {
            packet: None,
            piece: EMPTY,
            next: if place + 1 < slots { place as u32 + 1 } else { NONE },
        };
        Box::new(Store {
            contexts: (0..contexts).map(context).collect(),
            slots: (0..slots).map(slot).collect(),
            buckets: vec![NONE; (contexts * 2).next_power_of_two()].into(),
            seed,
            free_context: if contexts > 0 { 0 } else { NONE },
            free_slot: if slots > 0 { 0 } else { NONE },
            oldest: NONE,
            newest: NONE,
            open: 0,
            free_slots: slots as u32,
            pool: pool.clone(),
        })
    }

    /// Contexts that are open.
    pub fn open_count(&self) -> usize {
        self.open as usize
    }

    /// Could another piece be kept?
    pub fn has_slot(&self) -> bool {
        self.free_slot != NONE
    }

    /// Bytes of memory that a store for so many contexts and pieces takes.
    pub fn size_for(contexts: usize, slots: usize) -> usize {
        let buckets = (contexts * 2).next_power_of_two();
        contexts * size_of::<Context>() + slots * size_of::<Slot>() + buckets * size_of::<u32>()
    }

    /// What a key is looked for by.
    pub fn hash(&self, key: &Key) -> u64 {
        key.hash(self.seed)
    }

    fn bucket(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }

    /// The context at a place.
    pub fn at(&self, place: Place) -> &Context {
        &self.contexts[place.0 as usize]
    }

    /// The context at a place, to change.
    pub fn at_mut(&mut self, place: Place) -> &mut Context {
        &mut self.contexts[place.0 as usize]
    }

    /// The context of a packet.
    pub fn find(&self, key: &Key, hash: u64) -> Option<Place> {
        let mut at = self.buckets[self.bucket(hash)];
        while at != NONE {
            let context = &self.contexts[at as usize];
            if context.key == *key {
                return Some(Place(at));
            }
            at = context.bucket_next;
        }
        None
    }

    /// Open a context, the newest; `None` when there are as many as may be.
    pub fn open(&mut self, key: Key, hash: u64, since_ns: u64) -> Option<Place> {
        let place = self.free_context;
        let bucket = self.bucket(hash);
        let context = self.contexts.get_mut(place as usize)?;
        self.free_context = context.bucket_next;
        *context = Context {
            key,
            since_ns,
            refused: false,
            count: 0,
            have: 0,
            end: UNKNOWN,
            ecn: 0,
            upper: None,
            first: NONE,
            last: NONE,
            bucket_next: self.buckets[bucket],
            older: self.newest,
            newer: NONE,
        };
        self.buckets[bucket] = place;
        match self.contexts.get_mut(self.newest as usize) {
            Some(newest) => newest.newer = place,
            None => self.oldest = place,
        }
        self.newest = place;
        self.open += 1;
        Some(Place(place))
    }

    /// The context that was opened first.
    pub fn oldest(&self) -> Option<Place> {
        (self.oldest != NONE).then_some(Place(self.oldest))
    }

    /// The one opened next after `place`.
    pub fn newer(&self, place: Place) -> Option<Place> {
        let newer = self.contexts[place.0 as usize].newer;
        (newer != NONE).then_some(Place(newer))
    }

    /// How a piece fits; `is_same` says whether a piece with the same span has the same bytes.
    pub fn fit(
        &self,
        place: Place,
        piece: &Fragment,
        is_same: impl FnOnce(Option<&Packet>, &Fragment) -> bool,
    ) -> Fit {
        let context = self.at(place);
        // Fragments come in order as a rule: look at the last first.
        let mut before = NONE;
        let mut after = context.first;
        match self.slots.get(context.last as usize) {
            Some(last) if last.piece.start < piece.start => (before, after) = (context.last, NONE),
            _ => {
                while let Some(slot) =
                    self.slots.get(after as usize).filter(|s| s.piece.start < piece.start)
                {
                    before = after;
                    after = slot.next;
                }
            }
        }
        if let Some(next) = self.slots.get(after as usize) {
            let (a, b) = (&next.piece, piece);
            if (a.start, a.end, a.more) == (b.start, b.end, b.more) {
                return if is_same(next.packet.as_ref(), a) {
                    Fit::Duplicate
                } else {
                    Fit::Overlap
                };
            }
            if a.start < b.end {
                return Fit::Overlap;
            }
        }
        if self.slots.get(before as usize).is_some_and(|slot| slot.piece.end > piece.start) {
            return Fit::Overlap;
        }
        let ends_wrong = match (piece.more, context.end()) {
            (true, Some(end)) => piece.end > end,
            (true, None) => false,
            (false, Some(_)) => true,
            (false, None) => after != NONE,
        };
        if ends_wrong { Fit::LengthConflict } else { Fit::Behind(before) }
    }

    /// Keep a piece behind the slot that [`fit`](Self::fit) has found. There must be a free slot.
    pub fn insert(&mut self, place: Place, before: u32, piece: Fragment, packet: Option<Packet>) {
        let at = self.free_slot;
        let Some(slot) = self.slots.get_mut(at as usize) else {
            if let Some(packet) = packet {
                self.pool.take_back_packet(packet);
            }
            return;
        };
        self.free_slot = slot.next;
        self.free_slots -= 1;
        slot.packet = packet;
        slot.piece = piece;
        let context = &mut self.contexts[place.0 as usize];
        match self.slots.get_mut(before as usize) {
            Some(before) => {
                let next = std::mem::replace(&mut before.next, at);
                self.slots[at as usize].next = next;
            }
            None => self.slots[at as usize].next = std::mem::replace(&mut context.first, at),
        }
        if context.last == before {
            context.last = at;
        }
        context.count += 1;
        context.have += piece.length();
        context.ecn |= 1 << piece.ecn;
        if !piece.more {
            context.end = piece.end;
        }
    }

    /// The packet of the first fragment, when it is there.
    pub fn has_first(&self, place: Place) -> bool {
        let first = self.slots.get(self.at(place).first as usize);
        first.is_some_and(|slot| slot.piece.start == 0 && slot.packet.is_some())
    }

    /// Take the packets of a context out, in order; its pieces stay.
    pub fn take_packets(&mut self, place: Place, mut each: impl FnMut(Packet)) {
        let mut at = self.at(place).first;
        while let Some(slot) = self.slots.get_mut(at as usize) {
            if let Some(packet) = slot.packet.take() {
                each(packet);
            }
            at = slot.next;
        }
    }

    /// Take the first packet out that a context still has; its piece stays.
    pub fn take_first_packet(&mut self, place: Place) -> Option<Packet> {
        let mut at = self.at(place).first;
        while let Some(slot) = self.slots.get_mut(at as usize) {
            if slot.packet.is_some() {
                return slot.packet.take();
            }
            at = slot.next;
        }
        None
    }

    /// Does it hold a packet that is so?
    pub fn holds(&self, place: Place, is_so: impl Fn(&Packet) -> bool) -> bool {
        let mut at = self.at(place).first;
        while let Some(slot) = self.slots.get(at as usize) {
            if slot.packet.as_ref().is_some_and(&is_so) {
                return true;
            }
            at = slot.next;
        }
        false
    }

    /// Give up the pieces of a context, the last first.
    pub fn take_pieces_backwards(
        &mut self,
        place: Place,
        mut each: impl FnMut(Fragment, Option<Packet>),
    ) {
        let context = &mut self.contexts[place.0 as usize];
        let mut at = std::mem::replace(&mut context.first, NONE);
        context.last = NONE;
        (context.count, context.have, context.end) = (0, 0, UNKNOWN);
        let mut turned = NONE;
        while let Some(slot) = self.slots.get_mut(at as usize) {
            let next = std::mem::replace(&mut slot.next, turned);
            turned = at;
            at = next;
        }
        at = turned;
        while let Some(slot) = self.slots.get_mut(at as usize) {
            each(slot.piece, slot.packet.take());
            let next = std::mem::replace(&mut slot.next, self.free_slot);
            self.free_slot = at;
            self.free_slots += 1;
            at = next;
        }
    }

    /// Close a context. Packets that are still in it go to `each`.
    pub fn close(&mut self, place: Place, mut each: impl FnMut(Packet)) {
        self.take_pieces_backwards(place, |_, packet| {
            if let Some(packet) = packet {
                each(packet);
            }
        });
        let (key, older, newer, next) = {
            let context = self.at(place);
            (context.key, context.older, context.newer, context.bucket_next)
        };
        let bucket = self.bucket(self.hash(&key));
        if self.buckets[bucket] == place.0 {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while let Some(context) = self.contexts.get_mut(at as usize) {
                if context.bucket_next == place.0 {
                    context.bucket_next = next;
                    break;
                }
                at = context.bucket_next;
            }
        }
        match self.contexts.get_mut(older as usize) {
            Some(context) => context.newer = newer,
            None => self.oldest = newer,
        }
        match self.contexts.get_mut(newer as usize) {
            Some(context) => context.older = older,
            None => self.newest = older,
        }
        self.contexts[place.0 as usize].bucket_next = self.free_context;
        self.free_context = place.0;
        self.open -= 1;
    }

    /// Move the youngest contexts of `old` here, as many as there is room for; the packets of the
    /// others go to `each`. What becomes of `old` is that it is empty.
    pub fn take_over(&mut self, old: &mut Store, mut each: impl FnMut(Packet)) {
        while let Some(place) = old.oldest() {
            let context = old.at(place).clone();
            let too_many =
                old.open_count() > self.contexts.len() || context.count > self.free_slots;
            let to = (!too_many)
                .then(|| self.open(context.key, self.hash(&context.key), context.since_ns));
            let Some(to) = to.flatten() else {
                old.close(place, &mut each);
                continue;
            };
            old.take_pieces_backwards(place, |piece, packet| self.insert(to, NONE, piece, packet));
            old.close(place, |_| {});
            let own = self.at_mut(to);
            (own.refused, own.upper) = (context.refused, context.upper);
        }
    }
}

/// A slot that holds nothing.
const EMPTY: Fragment = Fragment {
    key: Key { source: 0, destination: 0, identification: 0, scope: 0, protocol: 0 },
    start: 0,
    end: 0,
    more: false,
    header_bytes: 0,
    next_header_place: 0,
    next_header: 0,
    ecn: 0,
};

impl Drop for Store {
    /// On the control thread: what the node still held goes back to the pool.
    fn drop(&mut self) {
        let held: Vec<Packet> =
            self.slots.iter_mut().filter_map(|slot| slot.packet.take()).collect();
        held.into_iter().for_each(|packet| self.pool.take_back_packet(packet));
    }
}
