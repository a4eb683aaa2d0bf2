//! A bounded ring between two threads: one puts, one takes, nobody waits.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::memory::sync::{AtomicUsize, Ordering};

#[repr(align(128))]
struct Index(AtomicUsize);

struct Ring<T> {
    head: Index,
    tail: Index,
    mask: usize,
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

// SAFETY: each place is touched by the producer or the consumer, never both at a time: the
// indices, stored with release and loaded with acquire, hand it over.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Ring<T> {}

/// The end that puts.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    head: usize,
    tail_seen: usize,
}

/// The end that takes.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    tail: usize,
    head_seen: usize,
}

/// A ring of `capacity` places, rounded up to a power of two.
pub fn ring<T: Send>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.next_power_of_two();
    let ring = Arc::new(Ring {
        head: Index(AtomicUsize::new(0)),
        tail: Index(AtomicUsize::new(0)),
        mask: capacity - 1,
        places: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
    });
    (
        Producer { ring: ring.clone(), head: 0, tail_seen: 0 },
        Consumer { ring, tail: 0, head_seen: 0 },
    )
}

impl<T: Send> Producer<T> {
    /// Put one; it comes back when the ring is full.
    ///
    /// # Errors
    /// The ring is full; the item comes back.
    #[inline]
    pub fn put(&mut self, item: T) -> Result<(), T> {
        self.put_unseen(item)?;
        self.show();
        Ok(())
    }

    /// Put one that the consumer does not see before [`show`](Self::show); it comes back when the
    /// ring is full. What was never shown is forgotten with the ring.
    ///
    /// # Errors
    /// The ring is full; the item comes back.
    #[inline]
    pub fn put_unseen(&mut self, item: T) -> Result<(), T> {
        if self.room() == 0 {
            return Err(item);
        }
        // SAFETY: the place is free: the consumer has passed it.
        unsafe { (*self.ring.places[self.head & self.ring.mask].get()).write(item) };
        self.head = self.head.wrapping_add(1);
        Ok(())
    }

    /// Let the consumer see all that was put.
    #[inline]
    pub fn show(&mut self) {
        self.ring.head.0.store(self.head, Ordering::Release);
    }

    /// Put as many as fit, and show them to the consumer at once; how many.
    pub fn put_all(&mut self, items: &mut impl ExactSizeIterator<Item = T>) -> usize {
        let count = self.room_for(items.len()).min(items.len());
        for item in items.take(count) {
            // SAFETY: as in `put`.
            unsafe { (*self.ring.places[self.head & self.ring.mask].get()).write(item) };
            self.head = self.head.wrapping_add(1);
        }
        self.ring.head.0.store(self.head, Ordering::Release);
        count
    }

    /// Places free, as far as known; looks again when it seems full.
    #[inline]
    pub fn room(&mut self) -> usize {
        self.room_for(1)
    }

    /// Places free, as far as known; looks again when there seem to be fewer than `count`.
    #[inline]
    pub fn room_for(&mut self, count: usize) -> usize {
        let capacity = self.ring.mask + 1;
        if self.head.wrapping_sub(self.tail_seen) + count > capacity {
            self.tail_seen = self.ring.tail.0.load(Ordering::Acquire);
        }
        capacity - self.head.wrapping_sub(self.tail_seen)
    }
}

impl<T: Send> Consumer<T> {
    /// Take one.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        if self.tail == self.head_seen {
            self.head_seen = self.ring.head.0.load(Ordering::Acquire);
            if self.tail == self.head_seen {
                return None;
            }
        }
        // SAFETY: the producer has filled the place and will not touch it before `tail` moves.
        let item =
            unsafe { (*self.ring.places[self.tail & self.ring.mask].get()).assume_init_read() };
        self.tail = self.tail.wrapping_add(1);
        self.ring.tail.0.store(self.tail, Ordering::Release);
        Some(item)
    }

    /// Take as many as are there, but no more than `max`, and give the places back at once; how
    /// many.
    #[inline]
    pub fn take_up_to(&mut self, max: usize, mut each: impl FnMut(T)) -> usize {
        if self.is_empty() {
            return 0;
        }
        let count = self.head_seen.wrapping_sub(self.tail).min(max);
        for _ in 0..count {
            // SAFETY: as in `take`.
            each(unsafe {
                (*self.ring.places[self.tail & self.ring.mask].get()).assume_init_read()
            });
            self.tail = self.tail.wrapping_add(1);
        }
        self.ring.tail.0.store(self.tail, Ordering::Release);
        count
    }

    /// Nothing to take?
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        if self.tail == self.head_seen {
            self.head_seen = self.ring.head.0.load(Ordering::Acquire);
        }
        self.tail == self.head_seen
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let (mut tail, head) =
            (self.tail.0.load(Ordering::Acquire), self.head.0.load(Ordering::Acquire));
        while tail != head {
            // SAFETY: both ends are gone; what lies between the indices is initialised.
            unsafe { (*self.places[tail & self.mask].get()).assume_init_drop() };
            tail = tail.wrapping_add(1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_and_a_full_ring_refuses() {
        let (mut put, mut take) = ring(3);
        assert!((0..4).all(|i| put.put(i).is_ok()));
        assert_eq!(put.put(4), Err(4));
        assert_eq!(take.take(), Some(0));
        assert_eq!(put.put_all(&mut [4, 5].into_iter()), 1);
        assert_eq!((0..5).filter_map(|_| take.take()).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(take.is_empty());
    }

    #[test]
    fn two_threads_lose_and_repeat_nothing() {
        let (mut put, mut take) = ring(64);
        let writer = std::thread::spawn(move || {
            for i in 0..100_000u64 {
                while put.put(i).is_err() {
                    std::hint::spin_loop();
                }
            }
        });
        for expected in 0..100_000 {
            let item = loop {
                if let Some(item) = take.take() {
                    break item;
                }
            };
            assert_eq!(item, expected);
        }
        writer.join().expect("writer");
    }

    #[test]
    fn what_was_not_taken_is_dropped() {
        let item = Arc::new(());
        let (mut put, take) = ring(8);
        put.put(item.clone()).expect("room");
        drop((put, take));
        assert_eq!(Arc::strong_count(&item), 1);
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;

    #[test]
    fn an_item_is_whole_when_it_is_seen() {
        loom::model(|| {
            let (mut put, mut take) = ring::<Box<usize>>(2);
            let writer = loom::thread::spawn(move || {
                let mut put_count = 0;
                for i in 0..3 {
                    put_count += put.put(Box::new(i)).is_ok() as usize;
                }
                put_count
            });
            let mut last = None;
            for _ in 0..3 {
                if let Some(item) = take.take() {
                    assert!(last.is_none_or(|l| l < *item));
                    last = Some(*item);
                }
            }
            writer.join().expect("writer");
        });
    }
}
