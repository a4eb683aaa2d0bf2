//! Packet sockets (packet(7)): opened, bound to a link, with the options that a router wants.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use quiver_linux::Scatter;
use quiver_linux::scatter::SCATTER_PIECES_MAX;
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;

/// Bytes that may wait in the kernel for one receiving socket beside its ring: super-frames.
pub const RECEIVE_BUFFER_BYTES: i32 = 16 << 20;
/// Bytes that may be under way for one sending socket.
pub const SEND_BUFFER_BYTES: i32 = 8 << 20;

/// Pieces of one frame that is read: its header, its first buffer, and what is behind it.
const PIECES_MAX: usize = SCATTER_PIECES_MAX + 2;

/// PACKET_FANOUT_FLAG_UNIQUEID: the kernel chooses a number that no other group has.
const FANOUT_UNIQUE_ID: u32 = 0x2000;

/// A packet socket.
pub struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// A raw socket that receives nothing yet.
    pub fn new() -> io::Result<PacketSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        Ok(PacketSocket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// A socket that only sends, past the queueing discipline.
    pub fn sender(index: i32) -> io::Result<PacketSocket> {
        let socket = PacketSocket::new()?;
        socket.set_packet(libc::PACKET_VNET_HDR, &1i32)?;
        socket.set_packet(libc::PACKET_QDISC_BYPASS, &1i32)?;
        socket.set_buffer(libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER_BYTES);
        socket.bind(index, 0)?;
        Ok(socket)
    }

    /// Set a socket option of packet sockets.
    pub fn set_packet<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        self.set(libc::SOL_PACKET, option, value)
    }

    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        let size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value lives through the call, and its size is given.
        let result =
            unsafe { libc::setsockopt(self.fd(), level, option, (&raw const *value).cast(), size) };
        if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn get<T: Copy>(&self, level: libc::c_int, option: libc::c_int, mut value: T) -> io::Result<T> {
        let mut size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value lives through the call, and its size is given.
        let result = unsafe {
            libc::getsockopt(self.fd(), level, option, (&raw mut value).cast(), &mut size)
        };
        if result != 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
    }

    /// Ask for as much as possible: beyond the system's limit when we may.
    pub fn set_buffer(&self, force: libc::c_int, option: libc::c_int, bytes: i32) {
        if self.set(libc::SOL_SOCKET, force, &bytes).is_err() {
            let _ = self.set(libc::SOL_SOCKET, option, &bytes);
        }
    }

    /// Receive frames of `protocol` (0: none) from the link of this index, and send to it.
    pub fn bind(&self, index: i32, protocol: u16) -> io::Result<()> {
        // SAFETY: all-zero is a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = index;
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call, and its size is given.
        let result = unsafe { libc::bind(self.fd(), (&raw const address).cast(), size) };
        if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receive frames whatever their destination.
    pub fn set_promiscuous(&self, index: i32) -> io::Result<()> {
        // SAFETY: all-zero is a valid request.
        let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
        request.mr_ifindex = index;
        request.mr_type = libc::PACKET_MR_PROMISC as libc::c_ushort;
        self.set_packet(libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Begin a group of sockets that share the link's frames by flow; its number.
    pub fn begin_fanout(&self) -> io::Result<u16> {
        self.set_packet(
            libc::PACKET_FANOUT,
            &((libc::PACKET_FANOUT_HASH | FANOUT_UNIQUE_ID) << 16),
        )?;
        Ok(self.get(libc::SOL_PACKET, libc::PACKET_FANOUT, 0u32)? as u16)
    }

    /// Join such a group.
    pub fn join_fanout(&self, group: u16) -> io::Result<()> {
        self.set_packet(libc::PACKET_FANOUT, &(u32::from(group) | libc::PACKET_FANOUT_HASH << 16))
    }

    /// Frames that the kernel had no room for since this was last asked.
    pub fn take_drops(&self) -> u64 {
        // SAFETY: all-zero is a valid value.
        let zero: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        self.get(libc::SOL_PACKET, libc::PACKET_STATISTICS, zero)
            .map_or(0, |s| u64::from(s.tp_drops))
    }

    /// Take the error that a link leaves behind when it goes down, so that nobody is woken by it.
    pub fn clear_error(&self) {
        let _ = self.get(libc::SOL_SOCKET, libc::SO_ERROR, 0i32);
    }

    /// Read one frame behind its header into `first`, then into the pieces of `scatter`; how many
    /// bytes it has with the header, also when there was no room for all.
    pub fn receive(
        &self,
        header: &mut [u8; VIRTIO_NET_HEADER_BYTES],
        first: &mut [u8],
        scatter: Option<&mut Scatter>,
    ) -> io::Result<usize> {
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES_MAX];
        let head = [(header.as_mut_ptr(), header.len()), (first.as_mut_ptr(), first.len())];
        let rest = scatter.into_iter().flat_map(Scatter::pieces);
        let mut count = 0;
        for (place, (base, bytes)) in pieces.iter_mut().zip(head.into_iter().chain(rest)) {
            *place = libc::iovec { iov_base: base.cast(), iov_len: bytes };
            count += 1;
        }
        // SAFETY: all-zero is a valid message.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        (message.msg_iov, message.msg_iovlen) = (pieces.as_mut_ptr(), count);
        // SAFETY: all pieces live through the call, and nobody else uses them: they belong to
        // `header`, `first` and `scatter`, which are borrowed exclusively.
        let got = unsafe { libc::recvmsg(self.fd(), &raw mut message, libc::MSG_TRUNC) };
        if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got as usize) }
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
