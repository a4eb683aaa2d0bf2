//! The eventfd of a ring: its sender writes to it when the receiver asks for interrupts.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// One end's handle on a ring's eventfd.
pub(crate) struct Interrupt(OwnedFd);

impl Interrupt {
    /// A new one, to be sent to the master.
    pub(crate) fn new() -> io::Result<Interrupt> {
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        Ok(Interrupt(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// One that a slave sent. Anything but an eventfd is refused: writing to a pipe or a socket of
    /// the peer's could block a worker for ever.
    pub(crate) fn from_peer(fd: OwnedFd) -> Option<Interrupt> {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        if link.is_ok_and(|target| target.as_os_str() != "anon_inode:[eventfd]") {
            return None;
        }
        // SAFETY: plain system calls on our own descriptor.
        unsafe {
            let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
            if flags < 0 || libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK) < 0 {
                return None;
            }
        }
        Some(Interrupt(fd))
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Wake the receiver. A full counter means that it is being woken already.
    pub(crate) fn raise(&self) {
        let one = 1u64;
        // SAFETY: eight bytes from the stack.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }

    /// Be silent again. It does not wait, even if the peer has made the descriptor a blocking one.
    pub(crate) fn clear(&self) {
        let mut count = 0u64;
        let part = libc::iovec { iov_base: (&raw mut count).cast(), iov_len: 8 };
        // SAFETY: eight bytes to the stack.
        let read = unsafe { libc::preadv2(self.fd(), &part, 1, -1, libc::RWF_NOWAIT) };
        if read < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EOPNOTSUPP) {
            // SAFETY: as above, on kernels whose eventfd does not know RWF_NOWAIT.
            unsafe { libc::read(self.fd(), (&raw mut count).cast(), 8) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(fd: RawFd) -> bool {
        let mut entry = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one initialised entry.
        unsafe { libc::poll(&mut entry, 1, 0) == 1 }
    }

    #[test]
    fn it_rings_until_it_is_cleared() {
        let interrupt = Interrupt::new().expect("eventfd");
        interrupt.raise();
        interrupt.raise();
        assert!(is_readable(interrupt.fd()));
        interrupt.clear();
        assert!(!is_readable(interrupt.fd()));
        interrupt.clear();
    }

    #[test]
    fn only_an_eventfd_is_taken_from_a_peer() {
        let pipe = std::os::unix::net::UnixStream::pair().expect("pair").0;
        assert!(Interrupt::from_peer(pipe.into()).is_none());
        let ours = Interrupt::new().expect("eventfd");
        assert!(Interrupt::from_peer(ours.0).is_some());
    }
}
