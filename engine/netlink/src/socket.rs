//! A netlink socket: hears of changes in batches, asks for what is there.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::request::Request;

/// Datagrams that one call takes at most.
const BATCH: usize = 64;
/// Bytes of a datagram at most: the kernel fills a dump's datagrams up to 32 KB.
const DATAGRAM_BYTES: usize = 32_768;

/// Bytes of a message that [`NetlinkSocket::drain`] reads at a time; it looks at none of them.
const DRAIN_BYTES: usize = 64;
/// Messages that one call of [`NetlinkSocket::drain`] takes at most.
const DRAIN_MAX: usize = 4096;

/// What changes a socket hears of: bits of `RTMGRP_…` (linux/rtnetlink.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(u32);

impl Group {
    /// Nothing.
    pub const NONE: Group = Group(0);
    /// Links.
    pub const LINKS: Group = Group(libc::RTMGRP_LINK as u32);
    /// Neighbours, and entries of bridges.
    pub const NEIGHBOURS: Group = Group(libc::RTMGRP_NEIGH as u32);
    /// Addresses.
    pub const ADDRESSES: Group =
        Group((libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32);
    /// Routes.
    pub const ROUTES: Group = Group((libc::RTMGRP_IPV4_ROUTE | libc::RTMGRP_IPV6_ROUTE) as u32);
    /// Routes of labels (`RTNLGRP_MPLS_ROUTE`).
    pub const LABELS: Group = Group(1 << 26);
    /// Next-hop objects.
    pub const NEXT_HOPS: Group = Group(1 << 31);

    /// These and `other`.
    pub const fn union(self, other: Group) -> Group {
        Group(self.0 | other.0)
    }
}

/// What a call brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many datagrams.
    Datagrams(usize),
    /// Nothing waits.
    Nothing,
    /// The socket's buffer was full: changes are lost.
    Overrun,
}

/// A netlink socket of the calling thread's network namespace, with room for what it receives.
pub struct NetlinkSocket {
    fd: OwnedFd,
    sequence: u32,
    /// Empty until datagrams are received for the first time.
    room: Vec<u8>,
    lengths: [usize; BATCH],
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl NetlinkSocket {
    /// A socket that hears of these changes. It does not wait.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn open(groups: Group) -> io::Result<NetlinkSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        checked(fd)?;
        // SAFETY: just created, ours alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all-zero is a valid address.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = groups.0;
        // SAFETY: the address lives through the call, and its size is given.
        checked(unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            )
        })?;
        Ok(NetlinkSocket { fd, sequence: 0, room: Vec::new(), lengths: [0; BATCH] })
    }

    /// Let so many bytes of changes wait in the kernel, beyond the system's limit if that is
    /// allowed. Returns what the system gives.
    ///
    /// # Errors
    /// The system refuses.
    pub fn set_buffer(&self, bytes: usize) -> io::Result<usize> {
        let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        let forced = self.set_option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, wanted);
        if forced.is_err() {
            self.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, wanted)?;
        }
        let mut given: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: both places live through the call, and the size is given.
        checked(unsafe {
            libc::getsockopt(
                self.fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUF,
                (&raw mut given).cast(),
                &raw mut length,
            )
        })?;
        Ok(given as usize)
    }

    fn set_option(&self, level: i32, option: i32, value: libc::c_int) -> io::Result<()> {
        // SAFETY: the value lives through the call, and its size is given.
        checked(unsafe {
            libc::setsockopt(
                self.fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        })
    }

    /// Send a request; returns the number that its answers carry.
    ///
    /// # Errors
    /// The system refuses.
    pub fn send(&mut self, request: Request) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1).max(1);
        let bytes = request.finish(self.sequence);
        // SAFETY: the buffer and its length.
        let sent = unsafe { libc::send(self.fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(self.sequence) }
    }

    /// Take datagrams that wait, up to a batch. [`datagram`](Self::datagram) has them.
    ///
    /// # Errors
    /// The system refuses.
    pub fn receive(&mut self) -> io::Result<Received> {
        self.room.resize(BATCH * DATAGRAM_BYTES, 0);
        // SAFETY: all-zero is valid for both: null pointers, length zero.
        let (mut pieces, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let places = self.room.chunks_exact_mut(DATAGRAM_BYTES);
        for ((piece, header), place) in pieces.iter_mut().zip(&mut headers).zip(places) {
            *piece = libc::iovec { iov_base: place.as_mut_ptr().cast(), iov_len: DATAGRAM_BYTES };
            (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (piece, 1);
        }
        // SAFETY: the headers point to pieces, and those into our room; all live through the call.
        let count = unsafe {
            libc::recvmmsg(
                self.fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(Received::Nothing),
                Some(libc::ENOBUFS) => Ok(Received::Overrun),
                _ => Err(error),
            };
        }
        let count = (count as usize).min(BATCH);
        for (length, header) in self.lengths.iter_mut().zip(&headers[..count]) {
            *length = (header.msg_len as usize).min(DATAGRAM_BYTES);
        }
        Ok(Received::Datagrams(count))
    }

    /// Take all messages that wait, unread; was there any? Lost messages count as one.
    pub fn drain(&self) -> bool {
        let mut bytes = [0u8; DRAIN_BYTES];
        for count in 0..DRAIN_MAX {
            // SAFETY: the buffer and its length.
            let got = unsafe { libc::recv(self.fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
            let lost = || io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
            if got < 0 && !lost() {
                return count > 0;
            }
        }
        true
    }

    /// A datagram of the last call.
    pub fn datagram(&self, number: usize) -> &[u8] {
        let length = self.lengths.get(number).copied().unwrap_or(0);
        let start = number * DATAGRAM_BYTES;
        self.room.get(start..start + length).unwrap_or_default()
    }

    /// Wait until something can be received, so many milliseconds at most. Returns whether there
    /// is something.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, timeout_ms: i32) -> io::Result<bool> {
        let mut polled = libc::pollfd { fd: self.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which lives through the call.
        let ready = unsafe { libc::poll(&raw mut polled, 1, timeout_ms) };
        match ready {
            0.. => Ok(ready > 0),
            _ if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => Ok(false),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The descriptor, readable when something waits.
impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
