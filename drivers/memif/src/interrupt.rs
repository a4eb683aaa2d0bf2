//! The eventfds of a connection's rings, and the one thread that touches them.
//!
//! Both ends of a connection hold the same open file description, whichever end made it. So the
//! peer can clear `O_NONBLOCK` and fill the counter: a write then blocks for as long as it likes.
//! It can also have a million epoll sets wait for the eventfd: each write then walks through all of
//! them with a lock held (measured: 50 ms for 200,000 waiters), and a read waits for that lock.
//! Linux has no write to an eventfd that is sure not to block: `RWF_NOWAIT` is for reads only, and
//! an eventfd cannot be opened again to have flags of one's own.
//!
//! Therefore workers touch eventfds of their own only ([`Bell`]), and a thread of the connection's
//! own carries each ring of a bell over, in both directions. If the peer makes it block, nobody
//! else waits: it holds nothing but the eventfds of this peer. A signal ends it then.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;

use quiver_core::worker::poll::Bell;

use quiver_linux::disposal::{Unchecked, dispose};

/// Bytes of stack of the thread.
const STACK_BYTES: usize = 64 << 10;
/// Ends a blocked write; nobody else uses it, and without a handler it does nothing.
const SIGNAL: libc::c_int = libc::SIGURG;
/// Events taken from the system at once.
const EVENTS_AT_ONCE: usize = 16;
/// What the bell of the workers is called in the epoll set; rings go by their number.
const WORKERS: u64 = u64::MAX;
/// Target of the link in `/proc` of an eventfd; every other kind of descriptor has another one, and
/// a file's begins with a slash.
const EVENTFD_LINK: &str = "anon_inode:[eventfd]";

/// The eventfd of a ring, which the peer holds as well.
pub(crate) struct Interrupt(Option<OwnedFd>);

impl Interrupt {
    /// A new one, to be sent to the master.
    pub(crate) fn new() -> io::Result<Interrupt> {
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        Ok(Interrupt(Some(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// One that a slave sent. Anything but an eventfd is refused: a write to a file in `/proc`,
    /// say, would be done with our rights.
    pub(crate) fn from_peer(fd: Unchecked) -> Option<Interrupt> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.raw())).ok()?;
        (link.as_os_str() == EVENTFD_LINK).then(|| Interrupt(fd.into_checked()))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Wake the receiver; on the connection's thread only. True when it was interrupted.
    fn raise(&self) -> bool {
        let one = 1u64;
        // SAFETY: eight bytes from the stack.
        let written = unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
        written < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    }
}

impl Interrupt {
    /// Close it on this thread.
    fn close(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        // The last close takes the time of removing every waiter.
        if let Some(fd) = self.0.take() {
            dispose(fd);
        }
    }
}

/// What the thread and both its neighbours see.
struct Shared {
    /// Rung by workers and by the control thread.
    bell: Bell,
    /// By ring that we send on: is its peer to be woken?
    rung: Box<[AtomicBool]>,
    stop: AtomicBool,
}

/// Wakes the peer's end of one ring that we send on. Never blocks.
pub(crate) struct Ringer {
    shared: Arc<Shared>,
    ring: usize,
}

impl Ringer {
    /// Have the peer woken. False when that is under way already.
    pub(crate) fn raise(&self) -> bool {
        let first = !self.shared.rung[self.ring].swap(true, Ordering::AcqRel);
        if first {
            self.shared.bell.ring();
        }
        first
    }
}

/// The thread of a connection. It is ended with [`Interrupts::end`].
pub(crate) struct Interrupts {
    shared: Arc<Shared>,
    /// By ring that we receive from: rung when the peer has rung its eventfd.
    bells: Vec<Arc<Bell>>,
    thread: JoinHandle<()>,
}

impl Interrupts {
    /// Carry over interrupts of the rings that we receive from, and to those that we send on.
    pub(crate) fn start(
        receive: Vec<Interrupt>,
        transmit: Vec<Interrupt>,
    ) -> io::Result<Interrupts> {
        install_handler();
        let rung = transmit.iter().map(|_| AtomicBool::new(false)).collect();
        let shared = Arc::new(Shared { bell: Bell::new()?, rung, stop: AtomicBool::new(false) });
        let bells =
            receive.iter().map(|_| Bell::new().map(Arc::new)).collect::<io::Result<Vec<_>>>()?;
        let poll = Poll::new()?;
        poll.add(shared.bell.fd(), libc::EPOLLIN, WORKERS)?;
        for (number, interrupt) in receive.iter().enumerate() {
            // By edges: each write of the peer is seen once, and its counter need not be read.
            poll.add(interrupt.fd(), libc::EPOLLIN | libc::EPOLLET, number as u64)?;
        }
        let carrier =
            Carrier { shared: shared.clone(), bells: bells.clone(), poll, receive, transmit };
        let thread =
            std::thread::Builder::new().name("memif-interrupt".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            carrier.run();
            carrier.receive.into_iter().chain(carrier.transmit).for_each(Interrupt::close);
        })?;
        Ok(Interrupts { shared, bells, thread })
    }

    /// What wakes the worker of a ring that we receive from.
    pub(crate) fn bell(&self, ring: usize) -> Arc<Bell> {
        self.bells[ring].clone()
    }

    /// What wakes the peer of a ring that we send on.
    pub(crate) fn ringer(&self, ring: usize) -> Ringer {
        Ringer { shared: self.shared.clone(), ring }
    }

    /// Ask the thread to end, also out of a write that the peer has blocked. A signal that comes
    /// just before that write is lost, so ask again until [`has_ended`](Self::has_ended).
    pub(crate) fn end(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bell.ring();
        if !self.thread.is_finished() {
            // SAFETY: the thread was not joined yet, so its handle names it.
            unsafe { libc::pthread_kill(self.thread.as_pthread_t(), SIGNAL) };
        }
    }

    /// Is the thread gone?
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the thread owns.
struct Carrier {
    shared: Arc<Shared>,
    bells: Vec<Arc<Bell>>,
    poll: Poll,
    /// Open for as long as they are waited for.
    receive: Vec<Interrupt>,
    transmit: Vec<Interrupt>,
}

impl Carrier {
    fn run(&self) {
        loop {
            self.poll.wait(|number| match number {
                WORKERS => self.shared.bell.clear(),
                ring => self.bells[ring as usize].ring(),
            });
            for (interrupt, rung) in self.transmit.iter().zip(&self.shared.rung) {
                if self.shared.stop.load(Ordering::Acquire) {
                    return;
                }
                if rung.swap(false, Ordering::AcqRel) {
                    while interrupt.raise() && !self.shared.stop.load(Ordering::Acquire) {}
                }
            }
            if self.shared.stop.load(Ordering::Acquire) {
                return;
            }
        }
    }
}

/// An epoll set of the thread's own.
struct Poll(OwnedFd);

impl Poll {
    fn new() -> io::Result<Poll> {
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        Ok(Poll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn add(&self, fd: RawFd, events: libc::c_int, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: number };
        // SAFETY: `event` lives through the call.
        match unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn wait(&self, mut each: impl FnMut(u64)) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_AT_ONCE];
        // SAFETY: room for as many events as announced.
        let count = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), EVENTS_AT_ONCE as i32, -1)
        };
        for event in &events[..count.max(0) as usize] {
            each(event.u64);
        }
    }
}

/// A handler that does nothing, so that the signal ends a blocked call instead of being ignored.
fn install_handler() {
    extern "C" fn nothing(_: libc::c_int) {}
    static ONCE: Once = Once::new();
    // SAFETY: a zeroed sigaction is valid; without SA_RESTART, a blocked call is not begun again.
    ONCE.call_once(|| unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(SIGNAL, &action, std::ptr::null_mut());
    });
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(60);

    pub(crate) fn is_readable(fd: RawFd) -> bool {
        let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one initialised entry.
        unsafe { libc::poll(&mut entry, 1, 0) == 1 }
    }

    /// As the peer sees it: the same open file description.
    fn of_peer(interrupt: &Interrupt) -> OwnedFd {
        interrupt.0.as_ref().expect("there").try_clone().expect("dup")
    }

    /// Make every write block: no O_NONBLOCK, and a full counter.
    pub(crate) fn fill(fd: RawFd) {
        let full = u64::MAX - 1;
        // SAFETY: plain system calls, and eight bytes from the stack.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            assert_eq!(libc::write(fd, (&raw const full).cast(), 8), 8);
            assert_eq!(libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK), 0);
        }
    }

    pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < PATIENCE, "never happened: {what}");
            std::thread::yield_now();
        }
    }

    fn read(fd: &OwnedFd) -> u64 {
        let mut count = 0u64;
        // SAFETY: eight bytes to the stack.
        unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
        count
    }

    #[test]
    fn interrupts_are_carried_over_in_both_directions() {
        let (rx, tx) = (Interrupt::new().expect("eventfd"), Interrupt::new().expect("eventfd"));
        let (rx_peer, tx_peer) = (of_peer(&rx), of_peer(&tx));
        let interrupts = Interrupts::start(vec![rx], vec![tx]).expect("thread");
        let (ringer, bell) = (interrupts.ringer(0), interrupts.bell(0));
        for _ in 0..3 {
            ringer.raise();
            until("the peer is woken", || is_readable(tx_peer.as_raw_fd()));
            assert!(read(&tx_peer) >= 1);
            assert!(!is_readable(bell.fd()));
            let one = 1u64;
            // SAFETY: eight bytes from the stack.
            unsafe { libc::write(rx_peer.as_raw_fd(), (&raw const one).cast(), 8) };
            until("the worker is woken", || is_readable(bell.fd()));
            bell.clear();
        }
        interrupts.end();
        until("the thread ends", || interrupts.has_ended());
    }

    #[test]
    fn a_peer_that_blocks_writes_holds_up_its_own_thread_only_and_that_one_ends() {
        let interrupt = Interrupt::new().expect("eventfd");
        let peer = of_peer(&interrupt);
        fill(peer.as_raw_fd());
        let interrupts = Interrupts::start(vec![], vec![interrupt]).expect("thread");
        let ringer = interrupts.ringer(0);
        assert!(ringer.raise());
        until("the thread has taken it over", || {
            !interrupts.shared.rung[0].load(Ordering::Relaxed)
        });
        // The thread stands still now. A worker comes back every time.
        let raised = (0..1000).filter(|_| ringer.raise()).count();
        assert_eq!(raised, 1);
        until("the thread ends", || {
            interrupts.end();
            interrupts.has_ended()
        });
        drop(peer);
    }

    #[test]
    fn only_an_eventfd_is_taken_from_a_peer() {
        let is_taken = |fd: OwnedFd| {
            Interrupt::from_peer(Unchecked::new(fd, &quiver_linux::disposal::Account::default()))
                .is_some()
        };
        assert!(!is_taken(std::os::unix::net::UnixStream::pair().expect("pair").0.into()));
        assert!(!is_taken(std::fs::File::open("/proc/self/oom_score_adj").expect("file").into()));
        assert!(!is_taken(Poll::new().expect("epoll").0));
        // SAFETY: new descriptors, which are ours.
        let (memory, timer) = unsafe {
            let memory = libc::memfd_create(EVENTFD_C.as_ptr(), 0);
            let timer = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
            (OwnedFd::from_raw_fd(memory), OwnedFd::from_raw_fd(timer))
        };
        assert!(!is_taken(memory));
        assert!(!is_taken(timer));
        assert!(is_taken(of_peer(&Interrupt::new().expect("eventfd"))));
    }

    /// A name that looks like one.
    const EVENTFD_C: &std::ffi::CStr = c"anon_inode:[eventfd]";
}
