//! A guard for memory that a peer can take away. Whoever made a shared file can shrink it, unless it
//! is sealed against that, and can punch holes into huge pages; touching what is gone raises SIGBUS.
//! The handler here puts private, zeroed pages in the place of a guarded mapping and marks it as
//! lost, so that the worker goes on and the control thread can end the connection. A SIGBUS
//! anywhere else goes to the handler that was there before.
#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock};

/// Mappings that can be guarded at a time, in all of the process.
const GUARDS_MAX: usize = 4096;

/// A guarded mapping, or a free place when `start` is 0.
struct Slot {
    start: AtomicUsize,
    bytes: AtomicUsize,
    lost: AtomicBool,
}

static SLOTS: [Slot; GUARDS_MAX] =
    [const { Slot { start: AtomicUsize::new(0), bytes: AtomicUsize::new(0), lost: AtomicBool::new(false) } };
        GUARDS_MAX];
/// Held while a place is chosen; the handler does not need it.
static CHOOSING: Mutex<()> = Mutex::new(());
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Guards a mapping until it is dropped, which must be before the mapping is undone.
pub(crate) struct Guard(&'static Slot);

impl Guard {
    /// Guard `bytes` (whole pages) from `start`; `None` when there are too many guards.
    pub(crate) fn new(start: *mut u8, bytes: usize) -> Option<Guard> {
        install();
        let _choosing = CHOOSING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let slot = SLOTS.iter().find(|slot| slot.start.load(Ordering::Relaxed) == 0)?;
        slot.bytes.store(bytes, Ordering::Relaxed);
        slot.lost.store(false, Ordering::Relaxed);
        slot.start.store(start as usize, Ordering::Release);
        Some(Guard(slot))
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
        for slot in &SLOTS {
            let start = slot.start.load(Ordering::Acquire);
            let bytes = slot.bytes.load(Ordering::Relaxed);
            if start == 0 || address < start || address - start >= bytes {
                continue;
            }
            // Two threads may do this at once; the second puts fresh zeroes over the first's.
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
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
    for slot in &SLOTS {
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
                    std::mem::transmute::<usize, Full>(previous.sa_sigaction)(signal, info, context);
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
