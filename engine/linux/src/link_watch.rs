//! Hears of every change to any link of a network namespace, by netlink (RTMGRP_LINK).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes read at a time; what does not fit is cut, which does no harm here.
const READ_BYTES: usize = 8192;
/// Messages that one call takes at most.
const MESSAGES_MAX: usize = 4096;

/// A netlink socket that becomes readable when a link changes.
pub struct LinkWatch(OwnedFd);

impl LinkWatch {
    /// Watch the links of the calling thread's namespace.
    ///
    /// # Errors
    /// The system refuses the netlink socket.
    pub fn new() -> io::Result<LinkWatch> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all-zero is a valid address.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        // SAFETY: the address lives through the call, and its size is given.
        let bound = unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            )
        };
        if bound != 0 { Err(io::Error::last_os_error()) } else { Ok(LinkWatch(fd)) }
    }

    /// Take all messages that wait; was there any? (Lost messages count as one.)
    pub fn drain(&self) -> bool {
        let mut bytes = [0u8; READ_BYTES];
        for count in 0..MESSAGES_MAX {
            // SAFETY: the buffer and its length.
            let got =
                unsafe { libc::recv(self.0.as_raw_fd(), bytes.as_mut_ptr().cast(), READ_BYTES, 0) };
            let lost = || io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
            if got < 0 && !lost() {
                return count > 0;
            }
        }
        true
    }

    /// Readable when something changed.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
