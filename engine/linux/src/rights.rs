//! Unix sockets that take no descriptors from their peers.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `SO_PASSRIGHTS` of Linux 6.16, which libc does not name.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Let nobody send descriptors to this socket, nor to those that it accepts: `sendmsg` with
/// `SCM_RIGHTS` fails there. An error means that the kernel is older than 6.16.
///
/// # Errors
/// The kernel does not know the option (before Linux 6.16), or refuses.
pub fn refuse_descriptors(socket: impl AsFd) -> io::Result<()> {
    let off: libc::c_int = 0;
    // SAFETY: the option's value is an int that lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            std::ptr::from_ref(&off).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
