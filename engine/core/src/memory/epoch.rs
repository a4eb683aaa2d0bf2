//! Quiescent-state reclamation: how the control thread knows that no worker still sees what it
//! replaced, without ever making a worker wait.
//!
//! A worker reports once per pass, between two vectors, when it holds no reference to anything
//! published ([`Reader::quiescent`]). What was unpublished before stamp `s` was taken is free once
//! every awake worker has reported at `s` or later. A worker that sleeps counts as quiescent.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::cpu::prefetch;
use crate::memory::buffer::CACHE_LINE_BYTES;
use crate::memory::sync::{AtomicPtr, AtomicU64, Ordering, fence};

/// A worker's slot, on a cache line of its own (two, for the adjacent-line prefetcher).
#[repr(align(128))]
struct Slot(AtomicU64);

/// The slot value of a worker that sleeps.
const ASLEEP: u64 = 0;

/// The clock of the control thread, and what each worker last saw of it.
pub struct Epochs {
    clock: Slot,
    readers: Box<[Slot]>,
    graveyard: Mutex<VecDeque<(Stamp, Box<dyn Any + Send>)>>,
    /// Stretches of tables that wait; a plain count, no part of the model.
    stretches: Arc<std::sync::atomic::AtomicUsize>,
}

/// A moment of the control thread's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

impl Epochs {
    /// A clock for at most `readers` workers, all asleep.
    pub fn new(readers: usize) -> Arc<Epochs> {
        Arc::new(Epochs {
            clock: Slot(AtomicU64::new(1)),
            readers: (0..readers).map(|_| Slot(AtomicU64::new(ASLEEP))).collect(),
            graveyard: Mutex::new(VecDeque::new()),
            stretches: Arc::default(),
        })
    }

    /// Worker `index`'s side. One per index; a second one would report for the first.
    pub fn reader(self: &Arc<Self>, index: usize) -> Reader {
        assert!(index < self.readers.len(), "epochs were made for {} readers", self.readers.len());
        Reader { epochs: self.clone(), index, seen: ASLEEP }
    }

    /// Take a stamp. Everything unpublished before this call is unreachable once
    /// [`has_passed`](Self::has_passed) says so.
    pub fn stamp(&self) -> Stamp {
        Stamp(self.clock.0.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Has every awake worker reported since `stamp`?
    pub fn has_passed(&self, stamp: Stamp) -> bool {
        fence(Ordering::SeqCst);
        self.readers.iter().all(|slot| {
            let seen = slot.0.load(Ordering::Acquire);
            seen == ASLEEP || seen >= stamp.0
        })
    }

    /// What worker `index` last saw, when it is awake; the smallest number waits for longest.
    pub fn last_seen(&self, index: usize) -> Option<u64> {
        match self.readers[index].0.load(Ordering::Relaxed) {
            ASLEEP => None,
            seen => Some(seen),
        }
    }

    /// Drop `garbage` on the control thread once no worker can see it. It must be unpublished
    /// already.
    pub fn retire(&self, garbage: Box<dyn Any + Send>) {
        let stamp = self.stamp();
        self.graveyard.lock().expect("graveyard lock").push_back((stamp, garbage));
    }

    /// How many objects wait to be dropped.
    pub fn retired(&self) -> usize {
        self.graveyard.lock().expect("graveyard lock").len()
    }

    /// How many stretches of tables wait to be used again.
    pub fn stretches(&self) -> usize {
        self.stretches.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Where a table tells how many of its stretches wait.
    pub fn context(&self) -> StageContext {
        StageContext { all: self.stretches.clone(), own: 0 }
    }

    /// Drop what can be dropped now; returns how many objects still wait. Called by the control
    /// thread on every turn of its loop.
    pub fn collect(&self) -> usize {
        let mut freed = Vec::new();
        let waiting = {
            let mut graveyard = self.graveyard.lock().expect("graveyard lock");
            while let Some((stamp, _)) = graveyard.front() {
                if !self.has_passed(*stamp) {
                    break;
                }
                freed.extend(graveyard.pop_front());
            }
            graveyard.len()
        };
        drop(freed); // outside the lock: a destructor may retire something in turn
        waiting
    }
}

/// One table's part of [`Epochs::stretches`]; gone with the table.
pub struct StageContext {
    all: Arc<std::sync::atomic::AtomicUsize>,
    own: usize,
}

impl StageContext {
    /// So many wait now.
    pub fn set(&mut self, now: usize) {
        // Wrapping: a smaller number takes away.
        self.all.fetch_add(now.wrapping_sub(self.own), std::sync::atomic::Ordering::Relaxed);
        self.own = now;
    }
}

impl Drop for StageContext {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// One worker's side of the clock.
pub struct Reader {
    epochs: Arc<Epochs>,
    index: usize,
    seen: u64,
}

impl Reader {
    /// Report that this worker holds nothing published. Costs a load and a compare when nothing
    /// changed.
    #[inline]
    pub fn quiescent(&mut self) {
        let now = self.epochs.clock.0.load(Ordering::Acquire);
        if now != self.seen {
            self.seen = now;
            self.epochs.readers[self.index].0.store(now, Ordering::Release);
        }
    }

    /// Say that this worker sleeps: until [`wake`](Self::wake) it reads nothing published.
    pub fn sleep(&mut self) {
        self.seen = ASLEEP;
        self.epochs.readers[self.index].0.store(ASLEEP, Ordering::Release);
    }

    /// The first thing after sleeping.
    pub fn wake(&mut self) {
        let now = self.epochs.clock.0.load(Ordering::SeqCst);
        self.seen = now;
        self.epochs.readers[self.index].0.store(now, Ordering::SeqCst);
        // Pairs with the fence in `has_passed`: either the control thread sees this worker awake,
        // or this worker's next loads see what was published before.
        fence(Ordering::SeqCst);
    }

    /// Borrow the pass: what is read under it cannot outlive the next
    /// [`quiescent`](Self::quiescent).
    #[inline]
    pub fn pass(&self) -> Pass<'_> {
        Pass(std::marker::PhantomData)
    }
}

/// A worker that is gone, by whatever way, holds nothing published.
impl Drop for Reader {
    fn drop(&mut self) {
        self.sleep();
    }
}

/// Proof that a worker is inside a pass. References to published data live as long.
#[derive(Clone, Copy)]
pub struct Pass<'p>(std::marker::PhantomData<&'p Reader>);

/// A value that the control thread replaces whole and workers read without waiting.
pub struct Published<T: Send + Sync + 'static> {
    current: AtomicPtr<T>,
    epochs: Arc<Epochs>,
}

#[allow(unsafe_code)]
impl<T: Send + Sync + 'static> Published<T> {
    /// Publish the first value.
    pub fn new(epochs: &Arc<Epochs>, value: T) -> Self {
        Published {
            current: AtomicPtr::new(Box::into_raw(Box::new(value))),
            epochs: epochs.clone(),
        }
    }

    /// What is published now, for one pass at most.
    #[inline]
    pub fn read<'p>(&self, _pass: Pass<'p>) -> &'p T {
        // SAFETY: the pointer came from a Box; `publish` retires the old Box only through the
        // epochs, which wait for the pass whose lifetime bounds this reference.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// What is published now, for the one control thread that also publishes.
    pub fn current(&mut self) -> &T {
        // SAFETY: `&mut self` excludes `publish`, the only one who retires.
        unsafe { &*self.current.load(Ordering::Relaxed) }
    }

    /// Replace the value; the old one is dropped on the control thread when no worker sees it.
    pub fn publish(&self, value: T) {
        let old = self.current.swap(Box::into_raw(Box::new(value)), Ordering::AcqRel);
        // SAFETY: the old pointer came from a Box and nobody else frees it.
        self.epochs.retire(unsafe { Box::from_raw(old) });
    }
}

#[allow(unsafe_code)]
impl<T: Send + Sync + 'static> Drop for Published<T> {
    fn drop(&mut self) {
        // SAFETY: as in `publish`; readers may still be inside a pass, so retire, do not free.
        let old = unsafe { Box::from_raw(self.current.load(Ordering::Relaxed)) };
        self.epochs.retire(old);
    }
}

/// Values that the control thread replaces one by one and workers read without waiting, by number.
pub struct PublishedSlots<T: Send + Sync + 'static> {
    slots: Box<[AtomicPtr<T>]>,
    epochs: Arc<Epochs>,
}

#[allow(unsafe_code)]
impl<T: Send + Sync + 'static> PublishedSlots<T> {
    /// So many, all empty.
    pub fn new(epochs: &Arc<Epochs>, slots: usize) -> Self {
        let slots = (0..slots).map(|_| AtomicPtr::new(std::ptr::null_mut())).collect();
        PublishedSlots { slots, epochs: epochs.clone() }
    }

    /// What is published in a slot now, for one pass at most.
    #[inline(always)]
    pub fn read<'p>(&self, slot: usize, _pass: Pass<'p>) -> Option<&'p T> {
        let value = self.slots.get(slot)?.load(Ordering::Acquire);
        // SAFETY: null or from a Box that `publish` retires through the epochs, which wait for the
        // pass whose lifetime bounds this reference.
        unsafe { value.as_ref() }
    }

    /// Ask for the memory of what is published in a slot: its first two cache lines.
    #[inline(always)]
    pub fn prefetch(&self, slot: usize) {
        if let Some(slot) = self.slots.get(slot) {
            let value = slot.load(Ordering::Relaxed);
            prefetch(value);
            prefetch(value.cast::<u8>().wrapping_add(CACHE_LINE_BYTES));
        }
    }

    /// Replace the value in a slot; the old one is dropped on the control thread when no worker
    /// sees it. A slot that is not there stays empty.
    pub fn publish(&self, slot: usize, value: Option<T>) {
        let Some(slot) = self.slots.get(slot) else { return };
        let new = value.map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value)));
        let old = slot.swap(new, Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: from a Box, and unpublished just now.
            self.epochs.retire(unsafe { Box::from_raw(old) });
        }
    }
}

impl<T: Send + Sync + 'static> Drop for PublishedSlots<T> {
    fn drop(&mut self) {
        (0..self.slots.len()).for_each(|slot| self.publish(slot, None));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_passes_when_every_awake_reader_has_reported() {
        let epochs = Epochs::new(2);
        let (mut a, mut b) = (epochs.reader(0), epochs.reader(1));
        a.wake();
        b.wake();
        let stamp = epochs.stamp();
        assert!(!epochs.has_passed(stamp));
        a.quiescent();
        assert!(!epochs.has_passed(stamp));
        b.sleep();
        assert!(epochs.has_passed(stamp));
        let stamp = epochs.stamp();
        assert!(!epochs.has_passed(stamp));
        drop(a);
        assert!(epochs.has_passed(stamp));
    }

    #[test]
    fn what_is_retired_is_dropped_only_after_the_pass() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let published = Published::new(&epochs, Arc::new(1));
        let first = published.read(reader.pass()).clone();
        assert_eq!(Arc::strong_count(&first), 2);
        published.publish(Arc::new(2));
        assert_eq!(epochs.collect(), 1);
        assert_eq!(Arc::strong_count(&first), 2);
        reader.quiescent();
        assert_eq!(epochs.collect(), 0);
        assert_eq!(Arc::strong_count(&first), 1);
        assert_eq!(**published.read(reader.pass()), 2);
    }

    #[test]
    fn a_slot_is_replaced_without_its_neighbours_and_retires_one_value() {
        let epochs = Epochs::new(1);
        let mut reader = epochs.reader(0);
        reader.wake();
        let slots = PublishedSlots::new(&epochs, 3);
        slots.publish(0, Some(10));
        slots.publish(2, Some(12));
        assert_eq!(epochs.retired(), 0);
        slots.publish(2, Some(13));
        slots.publish(7, Some(99));
        assert_eq!(epochs.retired(), 1);
        let seen = [0, 1, 2, 7].map(|slot| slots.read(slot, reader.pass()).copied());
        assert_eq!(seen, [Some(10), None, Some(13), None]);
        drop(slots);
        assert_eq!(epochs.retired(), 3);
        reader.sleep();
        assert_eq!(epochs.collect(), 0);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;

    /// A reader never sees a value after it was dropped, whatever the order of steps.
    #[test]
    fn no_early_free() {
        loom::model(|| {
            let epochs = Epochs::new(1);
            let published = Arc::new(Published::new(&epochs, loom::sync::Arc::new(1)));
            let mut reader = epochs.reader(0);
            let seen = published.clone();
            let worker = loom::thread::spawn(move || {
                for _ in 0..2 {
                    reader.wake();
                    let value = seen.read(reader.pass()).clone();
                    assert!(*value == 1 || *value == 2);
                    reader.quiescent();
                    reader.sleep();
                }
            });
            published.publish(loom::sync::Arc::new(2));
            epochs.collect();
            worker.join().expect("worker");
            epochs.collect();
        });
    }
}
