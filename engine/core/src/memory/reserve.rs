//! An allocator that keeps some memory back, so that a router that is refused memory ends what it
//! is at and says so.
//!
//! Standard collections abort the process when memory is refused. Here the first refusal gives the
//! reserve back to the system and asks once more: what runs ends well, and [`Reserve::is_short`]
//! says from then on that nothing more should be begun. Address space (`ulimit -v`) and strict
//! overcommit are refused so; a cgroup's limit is not, there the kernel ends a process. One
//! allocation larger than the reserve is refused as before.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Bytes that are kept back.
pub const RESERVE_BYTES: usize = 16 << 20;

/// The reserve is a mapping of its own, whole pages.
const LAYOUT: Layout = match Layout::from_size_align(RESERVE_BYTES, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// Would the system allocate `bytes` more now? The reserve is neither counted nor given back.
pub fn is_available(bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), 1) else { return false };
    // SAFETY: the layout is not of zero bytes, and what it got is returned by the same layout.
    unsafe {
        let memory = black_box(System.alloc(layout)); // a pair that nobody looks at is left out
        if memory.is_null() {
            return false;
        }
        System.dealloc(memory, layout);
    }
    true
}

/// The system's allocator, and some memory of it; to be a program's `#[global_allocator]`.
pub struct Reserve {
    /// Null when it is used up, or was never taken.
    held: AtomicPtr<u8>,
    is_short: AtomicBool,
    releases: AtomicU64,
}

impl Reserve {
    /// Nothing is held yet: [`hold`](Self::hold).
    pub const fn new() -> Reserve {
        Reserve {
            held: AtomicPtr::new(null_mut()),
            is_short: AtomicBool::new(false),
            releases: AtomicU64::new(0),
        }
    }

    /// Take the reserve, unless it is held already; false when the system refuses it.
    pub fn hold(&self) -> bool {
        if self.held_bytes() == 0 {
            // SAFETY: the layout is not of zero bytes.
            let taken = unsafe { System.alloc(LAYOUT) };
            if taken.is_null() {
                return false;
            }
            let other =
                self.held.compare_exchange(null_mut(), taken, Ordering::AcqRel, Ordering::Relaxed);
            if other.is_err() {
                // SAFETY: taken above by this layout, and known to nobody.
                unsafe { System.dealloc(taken, LAYOUT) };
            }
        }
        self.is_short.store(false, Ordering::Release);
        true
    }

    /// Was memory refused since the reserve was last taken?
    pub fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Acquire)
    }

    /// Bytes that are held: all or none.
    pub fn held_bytes(&self) -> usize {
        if self.held.load(Ordering::Acquire).is_null() { 0 } else { RESERVE_BYTES }
    }

    /// How often it was given back to the system.
    pub fn releases(&self) -> u64 {
        self.releases.load(Ordering::Relaxed)
    }

    /// Memory was refused: what `ask` gets once the reserve is given back.
    #[cold]
    #[inline(never)]
    fn ask_again(&self, bytes: usize, ask: impl FnOnce() -> *mut u8) -> *mut u8 {
        if bytes > RESERVE_BYTES {
            return null_mut();
        }
        let held = self.held.swap(null_mut(), Ordering::AcqRel);
        if !held.is_null() {
            self.is_short.store(true, Ordering::Release);
            self.releases.fetch_add(1, Ordering::Relaxed);
            // SAFETY: taken by `hold` with this layout; who swaps it out is its only owner.
            unsafe { System.dealloc(held, LAYOUT) };
        }
        ask() // another thread may have given it back
    }
}

impl Default for Reserve {
    fn default() -> Reserve {
        Reserve::new()
    }
}

// SAFETY: all memory is the system allocator's, by the same layouts.
unsafe impl GlobalAlloc for Reserve {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is handed on.
        let ask = || unsafe { System.alloc(layout) };
        let memory = ask();
        if memory.is_null() { self.ask_again(layout.size(), ask) } else { memory }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is handed on.
        let ask = || unsafe { System.alloc_zeroed(layout) };
        let memory = ask();
        if memory.is_null() { self.ask_again(layout.size(), ask) } else { memory }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise is handed on; a refusal leaves `memory` as it was.
        let ask = || unsafe { System.realloc(memory, layout, size) };
        let moved = ask();
        if moved.is_null() { self.ask_again(size, ask) } else { moved }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn memory_that_no_machine_has_is_not_available() {
        assert!(is_available(0) && is_available(1 << 20));
        assert!(!is_available(1 << 60) && !is_available(usize::MAX));
    }

    #[test]
    fn a_refusal_gives_the_reserve_back_once_until_it_is_taken_again() {
        let reserve = Reserve::new();
        assert!(reserve.hold() && reserve.hold());
        assert_eq!(
            (reserve.held_bytes(), reserve.is_short(), reserve.releases()),
            (RESERVE_BYTES, false, 0)
        );
        let mut byte = 0;
        let memory: *mut u8 = &raw mut byte;
        assert!(reserve.ask_again(RESERVE_BYTES + 1, || memory).is_null());
        assert_eq!(reserve.held_bytes(), RESERVE_BYTES, "so much would not fit into it");
        assert_eq!(reserve.ask_again(64, || memory), memory);
        assert_eq!((reserve.held_bytes(), reserve.is_short(), reserve.releases()), (0, true, 1));
        assert!(reserve.ask_again(64, null_mut).is_null());
        assert_eq!(reserve.releases(), 1);
        assert!(reserve.hold());
        assert_eq!(
            (reserve.held_bytes(), reserve.is_short(), reserve.releases()),
            (RESERVE_BYTES, false, 1)
        );
    }
}
