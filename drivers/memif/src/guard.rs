//! A guard for memory that a peer can take away. The process that made a shared file can shrink it,
//! unless it is sealed against that, and can punch holes into huge pages; touching what is gone
//! raises SIGBUS. The handler here puts private, zeroed pages in the place of a guarded mapping and
//! marks it as lost, so that the worker goes on and the control thread can end the connection. A
//! SIGBUS anywhere else goes to the handler that was there before.
#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock};

/// Places in a block. Blocks are added when all places are taken and never freed: a connection has
/// at most [`REGIONS_MAX`](crate::region::REGIONS_MAX) regions and an interface one connection, so
/// that no peer can take the place of another's.
const BLOCK_SLOTS: usize = 256;

/// A guarded mapping, or a free place when `start` is 0.
struct Slot {
    start: AtomicUsize,
    bytes: AtomicUsize,
    lost: AtomicBool,
}

/// Slots, and where more of them are. The handler walks through all: it takes no lock.
struct Block {
    slots: [Slot; BLOCK_SLOTS],
    next: AtomicPtr<Block>,
}

impl Block {
    const fn new() -> Block {
        Block {
            slots: [const {
                Slot {
                    start: AtomicUsize::new(0),
                    bytes: AtomicUsize::new(0),
                    lost: AtomicBool::new(false),
                }
            }; BLOCK_SLOTS],
            next: AtomicPtr::new(null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Block> {
        // SAFETY: null, or a block that is never freed.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

static FIRST: Block = Block::new();

fn slots() -> impl Iterator<Item = &'static Slot> {
    std::iter::successors(Some(&FIRST), |block| block.next()).flat_map(|block| &block.slots)
}

/// Held while a place is chosen; the handler does not need it.
static CHOOSING: Mutex<()> = Mutex::new(());
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Guards a mapping until it is dropped, which must be before the mapping is undone.
pub(crate) struct Guard(&'static Slot);

impl Guard {
    /// Guard `bytes` (whole pages) from `start`.
    pub(crate) fn new(start: *mut u8, bytes: usize) -> Guard {
        install();
        let _choosing = CHOOSING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let slot = free_slot();
        slot.bytes.store(bytes, Ordering::Relaxed);
        slot.lost.store(false, Ordering::Relaxed);
        slot.start.store(start as usize, Ordering::Release);
        Guard(slot)
    }

    /// Has memory been missing?
    pub(crate) fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
    }
}

/// A place that is free, in a new block if need be. Called with `CHOOSING` held.
fn free_slot() -> &'static Slot {
    let mut block = &FIRST;
    loop {
        if let Some(slot) = block.slots.iter().find(|slot| slot.start.load(Ordering::Relaxed) == 0)
        {
            return slot;
        }
        block = block.next().unwrap_or_else(|| {
            let more: &'static Block = Box::leak(Box::new(Block::new()));
            block.next.store(std::ptr::from_ref(more).cast_mut(), Ordering::Release);
            more
        });
    }
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a zeroed sigaction is valid; the handler only does what a handler may: atomics
        // and system calls.
        unsafe {
            let mut previous: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut previous);
            let _ = PREVIOUS.set(previous);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, null_mut());
        }
    });
}

extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes a valid siginfo; errno is put back as it was.
    unsafe {
        let address = (*info).si_addr() as usize;
        let errno = *libc::__errno_location();
        for slot in slots() {
            let start = slot.start.load(Ordering::Acquire);
            let bytes = slot.bytes.load(Ordering::Relaxed);
            if start == 0 || address < start || address - start >= bytes {
                continue;
            }
            // Two threads may do this at once; the second puts fresh zeroes over the first's.
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags =
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let mapped = libc::mmap(start as *mut libc::c_void, bytes, protection, flags, -1, 0);
            *libc::__errno_location() = errno;
            if mapped != libc::MAP_FAILED {
                mark_lost(address);
                return;
            }
            break;
        }
        pass_on(signal, info, context);
    }
}

/// All guards of this mapping know: several connections may share it.
fn mark_lost(address: usize) {
    for slot in slots() {
        let start = slot.start.load(Ordering::Acquire);
        if start != 0 && address >= start && address - start < slot.bytes.load(Ordering::Relaxed) {
            slot.lost.store(true, Ordering::Relaxed);
        }
    }
}

/// Not ours: what was there before decides. Without a handler, the access is tried again with the
/// default action, which ends the process as it would have ended.
///
/// SAFETY: called from a signal handler with its arguments.
unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type Plain = extern "C" fn(i32);
    type Full = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
    // SAFETY: the previous action is as the system gave it; its flags say which form it has.
    unsafe {
        match PREVIOUS.get() {
            Some(previous) if previous.sa_sigaction > libc::SIG_IGN => {
                if previous.sa_flags & libc::SA_SIGINFO != 0 {
                    std::mem::transmute::<usize, Full>(previous.sa_sigaction)(
                        signal, info, context,
                    );
                } else {
                    std::mem::transmute::<usize, Plain>(previous.sa_sigaction)(signal);
                }
            }
            _ => {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_guards_leaves_the_next_one_without_a_place() {
        // Pages that nobody maps: guards only remember them.
        let page = |number: usize| ((number + 1) << 12) as *mut u8;
        let guards: Vec<Guard> = (0..3 * BLOCK_SLOTS).map(|n| Guard::new(page(n), 4096)).collect();
        mark_lost(page(700) as usize + 5);
        let lost: Vec<usize> = (0..guards.len()).filter(|n| guards[*n].is_lost()).collect();
        assert_eq!(lost, [700]);
    }
}
