//! Rights over Unix sockets: descriptors that are not taken, and the groups of who connected.

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

/// Groups of a process beyond its first one at most: what Linux allows (`NGROUPS_MAX`).
const GROUPS_MAX: usize = 65_536;
/// Groups that are asked for first; few processes have more.
const GROUPS_USUAL: usize = 32;

/// The supplementary groups that the process at the other end of a Unix socket had when it
/// connected (`SO_PEERGROUPS`, since Linux 4.13).
///
/// # Errors
/// It is no connected Unix socket.
pub fn peer_groups(socket: impl AsFd) -> io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; GROUPS_USUAL];
    loop {
        let mut length = (groups.len() * size_of::<u32>()) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, which the vector has.
        let result = unsafe {
            libc::getsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let needed = length as usize / size_of::<u32>();
        if result == 0 {
            groups.truncate(needed);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        let is_short = error.raw_os_error() == Some(libc::ERANGE);
        if !is_short || needed <= groups.len() || needed > GROUPS_MAX {
            return Err(error);
        }
        groups.resize(needed, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_groups_of_a_peer_are_those_of_its_process() {
        let (own, _peer) = UnixStream::pair().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap();
        let mut wanted: Vec<u32> = line.split_whitespace().map(|id| id.parse().unwrap()).collect();
        let mut found = peer_groups(&own).unwrap();
        wanted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, wanted);
        assert!(peer_groups(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).is_err());
    }
}
