//! Waiting for descriptors: epoll, and a bell (eventfd) to be woken by.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// An eventfd.
pub struct Bell(OwnedFd);

impl Bell {
    /// A silent bell.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Bell> {
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Wake whoever waits.
    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes from the stack. A full counter means that it rings already.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Be silent again.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes to the stack; not blocking.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }

    /// Readable while it rings.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// An epoll set.
pub struct Poll(OwnedFd);

/// Events taken from the system at once.
const EVENTS_AT_ONCE: usize = 64;

impl Poll {
    /// An empty set.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Poll> {
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        Ok(Poll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Wait for `fd` to be readable, from now on. False when the system refuses.
    pub fn add(&self, fd: RawFd) -> bool {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        // SAFETY: `event` lives through the call.
        unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) == 0 }
    }

    /// Wait for it no more.
    pub fn remove(&self, fd: RawFd) {
        // SAFETY: a plain system call.
        unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, std::ptr::null_mut())
        };
    }

    /// Wait at most `timeout_ns` (0 = look only), then call `each` for every descriptor that is
    /// readable or broken.
    pub fn wait(&self, timeout_ns: u64, mut each: impl FnMut(RawFd)) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_AT_ONCE];
        let count = match timeout_ns {
            0 => self.wait_ms(&mut events, 0),
            _ => self.wait_ns(&mut events, timeout_ns),
        };
        for event in &events[..count.max(0) as usize] {
            each(event.u64 as RawFd);
        }
    }

    fn wait_ms(&self, events: &mut [libc::epoll_event; EVENTS_AT_ONCE], timeout_ms: i32) -> i64 {
        // SAFETY: room for as many events as announced.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS_AT_ONCE as i32,
                timeout_ms,
            )
        };
        count.into()
    }

    /// To the nanosecond where the system can (Linux 5.11); otherwise to the millisecond, and too
    /// early rather than too late.
    fn wait_ns(&self, events: &mut [libc::epoll_event; EVENTS_AT_ONCE], timeout_ns: u64) -> i64 {
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: room for as many events as announced, a time that outlives the call, no mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS_AT_ONCE as i32,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if count < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            let timeout_ms = (timeout_ns / 1_000_000).min(i32::MAX as u64) as i32;
            return self.wait_ms(events, timeout_ms);
        }
        count
    }
}
