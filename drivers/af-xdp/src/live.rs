//! Sending past sockets: a thread of ours lets the kernel run a program on live frames without end
//! (BPF_PROG_RUN), and the program fills each with what a worker has put into a ring, and sends it
//! to its device as a driver's own XDP program would. No socket buffer is made on the way.
//!
//! The thread stands on the worker's own core, below everything else (SCHED_IDLE). After each
//! vector the worker sleeps for as long as the ring takes to become empty, which is when the thread
//! works. Where other programs take all of that time, the worker raises the thread to an ordinary
//! one until the ring is empty.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use quiver_core::graph::builtin::TxDrop;
use quiver_core::worker::device::TxQueue;
use quiver_core::{Context, Frame, Packet};

use crate::bpf::{self, Hook, SharedValue};
use crate::program::{self, BLANK_BYTES, MORE_HEADROOM_BYTES, ring};
use crate::transmit::drop_front;

pub use ring::FRAME_BYTES_MAX;

/// Frames that one call runs through: some tenths of a second, after which a thread that should end
/// does.
const CALL_FRAMES: u32 = 1 << 21;
/// Frames that leave together, and that the kernel keeps to be used again.
const BATCH_FRAMES: u32 = 256;
/// What a frame in the ring takes the kernel, about, ns: so long the worker sleeps for each.
const FRAME_NS: u64 = 120;
/// Shortest and longest sleep, ns.
const SLEEP_NS_MIN: u64 = 3_000;
/// See [`SLEEP_NS_MIN`].
const SLEEP_NS_MAX: u64 = 40_000;
/// Sleeps for one vector at most, a millisecond in all; what is left then goes later.
const SLEEPS_MAX: usize = 32;
/// Sleeps behind them while the thread has an ordinary share of the core, 20 ms in all: several
/// turns of the scheduler.
const SLEEPS_RAISED_MAX: usize = 500;
/// No core yet, no thread yet.
const NOWHERE: i32 = -1;
/// The loopback interface's number in any namespace.
const LOOPBACK: i32 = 1;

/// What the worker and the thread share.
struct Shared {
    value: SharedValue,
    /// Where the worker runs, once it has sent something.
    core: AtomicI32,
    /// The thread's number in the kernel, once it runs.
    thread: AtomicI32,
    is_ending: AtomicBool,
    /// The kernel has refused to go on.
    is_broken: AtomicBool,
}

/// The thread. It ends when this is dropped.
pub struct LiveFrames {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl LiveFrames {
    /// A ring and a thread for one worker; `device` is any that frames are sent to.
    pub fn new(device: i32) -> io::Result<LiveFrames> {
        let value = SharedValue::new(ring::VALUE_BYTES)?;
        let program = bpf::load(&program::from_ring(value.map()))?;
        let kept = Kept::new(&program)?;
        let shared = Arc::new(Shared {
            value,
            core: AtomicI32::new(NOWHERE),
            thread: AtomicI32::new(NOWHERE),
            is_ending: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
        });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("quiver_live".into()).spawn(move || {
            let ended = run(&theirs, &program, device);
            theirs.is_broken.store(ended.is_err(), Ordering::Release);
            drop(kept);
        })?;
        Ok(LiveFrames { shared, thread: Some(thread) })
    }

    /// A queue that sends to the device of this number, which may change. All queues must belong to
    /// one worker.
    pub fn queue(&self, device: Arc<AtomicI32>) -> LiveTx {
        let thread = self.thread.as_ref().map(|thread| thread.thread().clone());
        LiveTx { shared: self.shared.clone(), thread, device, is_ready: false, is_raised: false }
    }
}

impl Drop for LiveFrames {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // Below everything else it might never come to its end; where it may not be raised, it
            // takes longer.
            let number = self.shared.thread.load(Ordering::Acquire);
            if number != NOWHERE {
                let _ = schedule(number, libc::SCHED_OTHER);
            }
            let _ = thread.join();
        }
    }
}

/// A program that stands at no device is made known to the kernel's dispatcher at the beginning of
/// each call and forgotten at its end, which takes tens of milliseconds. So it stands at the
/// loopback interface of a namespace that nobody else knows.
struct Kept {
    _namespace: File,
    _attachment: OwnedFd,
}

impl Kept {
    fn new(program: &OwnedFd) -> io::Result<Kept> {
        let name = || File::open("/proc/thread-self/ns/net");
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // SAFETY: a plain system call; it changes this thread only, which ends below.
                if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                    return Err(io::Error::last_os_error());
                }
                let attachment = bpf::attach(program.as_fd(), LOOPBACK, Hook::Generic)?;
                Ok(Kept { _namespace: name()?, _attachment: attachment })
            });
            thread.join().map_err(|_| io::Error::other("the thread in the namespace panicked"))?
        })
    }
}

/// The thread's life.
fn run(shared: &Shared, program: &OwnedFd, device: i32) -> io::Result<()> {
    let mut core = NOWHERE;
    // SAFETY: a plain system call that cannot fail.
    shared.thread.store(unsafe { libc::gettid() }, Ordering::Release);
    let blank = [0; MORE_HEADROOM_BYTES + BLANK_BYTES];
    while !shared.is_ending.load(Ordering::Acquire) {
        let wanted = shared.core.load(Ordering::Acquire);
        if wanted == NOWHERE {
            std::thread::park_timeout(Duration::from_millis(100));
            continue;
        }
        if wanted != core {
            stay_on(wanted)?;
            core = wanted;
        }
        match bpf::run_live(program.as_fd(), &blank, device, CALL_FRAMES, BATCH_FRAMES) {
            Err(e) if e.raw_os_error() != Some(libc::EINTR) => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

/// Run on this core only, when nobody else wants it.
fn stay_on(core: i32) -> io::Result<()> {
    // SAFETY: all-zero is a valid set of cores.
    let mut cores: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: a plain system call for the calling thread, with the size given; CPU_SET checks its
    // number.
    let result = unsafe {
        libc::CPU_SET(core as usize, &mut cores);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const cores)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    schedule(0, libc::SCHED_IDLE)
}

/// Put a thread of this process, 0 for the calling one, into a scheduling class.
fn schedule(thread: i32, class: i32) -> io::Result<()> {
    // SAFETY: all-zero is a valid parameter.
    let parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: a plain system call; the parameter lives through it.
    match unsafe { libc::sched_setscheduler(thread, class, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sleep for so long, exactly.
fn sleep(ns: u64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ns as libc::c_long };
    // SAFETY: the time lives through the call.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const time, std::ptr::null_mut())
    };
}

/// A transmit queue.
pub struct LiveTx {
    shared: Arc<Shared>,
    thread: Option<std::thread::Thread>,
    device: Arc<AtomicI32>,
    is_ready: bool,
    /// The thread has an ordinary share of the core now.
    is_raised: bool,
}

impl LiveTx {
    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the value, on a line of its own; the program reads and writes it as one
        // word.
        unsafe { self.shared.value.memory().add(offset).cast::<AtomicU64>().as_ref() }
    }

    /// Tell the thread where we are, once.
    #[cold]
    fn begin(&mut self) {
        // SAFETY: plain system calls for the calling thread.
        let core = unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
            libc::sched_getcpu()
        };
        self.shared.core.store(core, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
        self.is_ready = true;
    }

    /// Put a frame into the ring behind `produced`; where the next one begins.
    fn put(&self, produced: u64, packet: &Packet) -> u64 {
        let bytes = packet.length();
        let place = ring::RECORDS + (produced as usize & (ring::RECORDS_BYTES - 1));
        // SAFETY: a record begins inside the ring and has a page behind it, which is more than the
        // longest frame takes; the caller has seen that the program is done with what lay here.
        unsafe {
            let record = self.shared.value.memory().add(place);
            record
                .cast::<[u32; 2]>()
                .write([bytes as u32, self.device.load(Ordering::Relaxed) as u32]);
            let mut to = record.add(ring::RECORD_HEADER);
            for segment in packet.segments() {
                std::ptr::copy_nonoverlapping(segment.as_ptr(), to.as_ptr(), segment.len());
                to = to.add(segment.len());
            }
        }
        produced + ring::stride(bytes) as u64
    }

    /// Let the thread have what lies in front of `produced`, and the core until it is done with it.
    fn hand_over(&mut self, produced: u64, frames: usize) {
        self.position(ring::PRODUCED).store(produced, Ordering::Release);
        let ns = (frames as u64 * FRAME_NS).clamp(SLEEP_NS_MIN, SLEEP_NS_MAX);
        if self.is_consumed(produced, ns, SLEEPS_MAX) {
            self.raise(false);
            return;
        }
        // Below everything else the thread has no core at all while other programs want it.
        self.raise(true);
        if self.is_raised && self.is_consumed(produced, SLEEP_NS_MAX, SLEEPS_RAISED_MAX) {
            self.raise(false);
        }
    }

    /// Give the thread an ordinary share of the core, or none again. Where that is not allowed it
    /// stays as it is.
    fn raise(&mut self, is_raised: bool) {
        let thread = self.shared.thread.load(Ordering::Acquire);
        if self.is_raised != is_raised && thread != NOWHERE {
            let class = if is_raised { libc::SCHED_OTHER } else { libc::SCHED_IDLE };
            self.is_raised =
                if schedule(thread, class).is_ok() { is_raised } else { self.is_raised };
        }
    }

    /// Sleep until the thread is done with what lies in front of `produced`; false when it is not
    /// after so many sleeps, the first of them as long as said.
    fn is_consumed(&self, produced: u64, first_ns: u64, sleeps_max: usize) -> bool {
        let (mut ns, mut more_ns) = (first_ns, SLEEP_NS_MIN);
        for _ in 0..sleeps_max {
            sleep(ns);
            if self.position(ring::CONSUMED).load(Ordering::Acquire) == produced {
                return true;
            }
            // Where setting a timer takes microseconds, as in some virtual machines, a short sleep
            // is over before the core is given away: then only a longer one lets the thread work.
            ns = more_ns;
            more_ns = (2 * more_ns).min(SLEEP_NS_MAX);
        }
        false
    }
}

impl TxQueue for LiveTx {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        if !self.is_ready {
            self.begin();
        }
        while !frame.is_empty() {
            if self.shared.is_broken.load(Ordering::Acquire) {
                return drop_front(cx, frame, frame.len(), TxDrop::Refused);
            }
            let begin = self.position(ring::PRODUCED).load(Ordering::Relaxed);
            let consumed = self.position(ring::CONSUMED).load(Ordering::Acquire);
            let (mut produced, mut taken, mut is_long) = (begin, 0, false);
            for packet in frame.packets() {
                let bytes = packet.length();
                is_long = bytes > FRAME_BYTES_MAX;
                let room = ring::RECORDS_BYTES as u64 - (produced - consumed);
                if is_long || room < ring::stride(bytes) as u64 {
                    break;
                }
                produced = self.put(produced, packet);
                taken += 1;
            }
            if taken == 0 && !is_long {
                return; // the thread does not come on: the engine counts them
            }
            frame.take_front(taken, |packet| cx.buffers.free(packet));
            if is_long {
                drop_front(cx, frame, 1, TxDrop::TooLong);
            }
            if taken > 0 {
                self.hand_over(produced, taken);
            }
        }
    }
}
