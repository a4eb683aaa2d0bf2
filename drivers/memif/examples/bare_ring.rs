//! What crossing costs between two cores: rings laid out as memif's, and nothing else. A sender
//! fills slots of one ring and empties another; a forwarder takes frames of 64 bytes from the
//! first, copies them and puts them into the second. No packet is looked at, nothing is checked.
//! Prints million frames a second, both ways, and the forwarder's clocks a frame.
//!
//! `cargo run --release -p quiver-memif --example bare_ring -- SECONDS ROUNDS`
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use quiver_core::cpu::{clocks, pin_to_core, prefetch};

/// Slots of a ring, as memif's default.
const SLOTS: usize = 1024;
/// From one slot's bytes to the next: an odd number of lines, as a memif slave's.
const STRIDE: usize = 2048 + 64;
/// From one descriptor to the next.
const DESCRIPTOR: usize = 16;
/// Slots whose bytes are asked for ahead of the copy, by the one who reads and who writes.
const READ_AHEAD: usize = 32;
const WRITE_AHEAD: usize = 16;
/// Frames of a vector.
const VECTOR: usize = 256;
const HUGE_PAGE: usize = 2 << 20;

/// 64 bytes.
type Line = [u64; 8];

#[repr(align(64))]
struct Index(AtomicU32);

struct Ring {
    head: Index,
    tail: Index,
    descriptors: *mut u8,
    slots: *mut u8,
}

// SAFETY: both sides touch a slot and its descriptor only between the two indices that give it to
// them.
unsafe impl Sync for Ring {}

fn memory(bytes: usize) -> *mut u8 {
    let layout = Layout::from_size_align(bytes.next_multiple_of(HUGE_PAGE), HUGE_PAGE);
    let layout = layout.expect("a whole number of huge pages");
    // SAFETY: the layout is not empty, and the memory is ours until the program ends.
    unsafe {
        let at = alloc_zeroed(layout);
        assert!(!at.is_null(), "no memory");
        libc::madvise(at.cast(), layout.size(), libc::MADV_HUGEPAGE);
        at
    }
}

impl Ring {
    fn new() -> Ring {
        let index = || Index(AtomicU32::new(0));
        let (descriptors, slots) = (memory(SLOTS * DESCRIPTOR), memory(SLOTS * STRIDE));
        Ring { head: index(), tail: index(), descriptors, slots }
    }

    fn slot(&self, number: usize) -> *mut Line {
        self.slots.wrapping_add(number % SLOTS * STRIDE).cast()
    }

    fn length(&self, number: usize) -> &AtomicU32 {
        let at = self.descriptors.wrapping_add(number % SLOTS * DESCRIPTOR + 4);
        // SAFETY: inside the descriptors, aligned, and touched by atomics alone.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    /// Put as many of the frames as there is room for; how many.
    fn put(&self, next: &mut usize, known: &mut usize, frames: &[Line]) -> usize {
        if SLOTS - (*next - *known) < frames.len() {
            let tail = self.tail.0.load(Ordering::Acquire);
            *known += tail.wrapping_sub(*known as u32) as usize;
        }
        let count = frames.len().min(SLOTS - (*next - *known));
        for (number, frame) in frames[..count].iter().enumerate() {
            ask_to_write(self.slot(*next + number + WRITE_AHEAD));
            // SAFETY: the slot is ours until the index tells the other side of it.
            unsafe { self.slot(*next + number).write(*frame) };
            self.length(*next + number).store(size_of::<Line>() as u32, Ordering::Relaxed);
        }
        *next += count;
        self.head.0.store(*next as u32, Ordering::Release);
        count
    }

    /// Take at most so many frames as there is room for; how many.
    fn take(&self, next: &mut usize, frames: &mut [Line]) -> usize {
        let ready = self.head.0.load(Ordering::Acquire).wrapping_sub(*next as u32) as usize;
        let count = ready.min(frames.len());
        for (number, frame) in frames[..count].iter_mut().enumerate() {
            prefetch(self.slot(*next + number + READ_AHEAD));
            assert_eq!(self.length(*next + number).load(Ordering::Relaxed), 64);
            // SAFETY: the slot is ours until the index gives it back.
            *frame = unsafe { self.slot(*next + number).read() };
        }
        *next += count;
        self.tail.0.store(*next as u32, Ordering::Release);
        count
    }
}

/// Ask for a line that will be written.
fn ask_to_write(at: *mut Line) {
    // SAFETY: a prefetch has no effect but on caches, and wants no valid address.
    unsafe { std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags)) };
}

/// Forward from one ring to the other; clocks and frames of turns that had some.
fn forward(from: &Ring, to: &Ring, is_over: &AtomicBool) -> (u64, u64) {
    let mut frames = [[0; 8]; VECTOR];
    let (mut taken, mut put, mut known) = (0_usize, 0_usize, 0_usize);
    let (mut spent, mut forwarded) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        let start = clocks();
        let count = from.take(&mut taken, &mut frames);
        let mut sent = 0;
        while sent < count && !is_over.load(Ordering::Relaxed) {
            sent += to.put(&mut put, &mut known, &frames[sent..count]);
        }
        if count > 0 {
            spent += clocks() - start;
            forwarded += count as u64;
        }
    }
    (spent, forwarded)
}

fn round(time: Duration) {
    let (there, back, is_over) = (Ring::new(), Ring::new(), AtomicBool::new(false));
    let (spent, forwarded) = std::thread::scope(|scope| {
        let forwarder = scope.spawn(|| {
            pin_to_core(1).expect("core 1");
            forward(&there, &back, &is_over)
        });
        pin_to_core(0).expect("core 0");
        let mut frames = [[7; 8]; VECTOR];
        let (mut put, mut known, mut taken) = (0_usize, 0_usize, 0_usize);
        let start = Instant::now();
        while start.elapsed() < time {
            for _ in 0..16 {
                there.put(&mut put, &mut known, &frames);
                back.take(&mut taken, &mut frames);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        forwarder.join().expect("it does not panic")
    });
    let rate = 2.0 * forwarded as f64 / time.as_secs_f64() / 1e6;
    println!("{rate:.1} Mpps both ways, {:.1} clocks", spent as f64 / forwarded as f64);
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse().expect("a number"));
    let seconds: f64 = words.next().unwrap_or(1.0);
    let rounds = words.next().unwrap_or(3.0) as usize;
    (0..rounds).for_each(|_| round(Duration::from_secs_f64(seconds)));
}
