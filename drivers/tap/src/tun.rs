//! Linux's end of a tap or tun device: /dev/net/tun, one descriptor for each queue, a virtio-net
//! header in front of each frame or packet.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;

use quiver_core::Packet;
use quiver_linux::scatter::SCATTER_PIECES_MAX;
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;
use quiver_linux::{Scatter, TapKind, VirtioNetHeader};

/// The file behind all of them.
pub const TUN: &str = "/dev/net/tun";

// linux/if_tun.h
const TUNSETIFF: libc::Ioctl = 0x4004_54ca;
const TUNSETOFFLOAD: libc::Ioctl = 0x4004_54d0;
const TUNSETVNETHDRSZ: libc::Ioctl = 0x4004_54d8;
const TUNSETCARRIER: libc::Ioctl = 0x4004_54e2;
const TUNGETIFF: libc::Ioctl = 0x8004_54d2;
const TUNGETDEVNETNS: libc::Ioctl = 0x54e3;
const IFF_TUN: i32 = 0x0001;
const IFF_TAP: i32 = 0x0002;
const IFF_NO_PI: i32 = 0x1000;
const IFF_VNET_HDR: i32 = 0x4000;
const IFF_MULTI_QUEUE: i32 = 0x0100;
/// The device must be new: an existing one is not taken over.
const IFF_TUN_EXCL: i32 = 0x8000;
const TUN_F_CSUM: libc::c_ulong = 0x01;
const TUN_F_TSO: libc::c_ulong = 0x02 | 0x04 | 0x08; // IPv4, IPv6, ECN
const TUN_F_USO: libc::c_ulong = 0x20 | 0x40;

/// Pieces of one frame, the header among them.
const PIECES_MAX: usize = 64;
const _: () = assert!(SCATTER_PIECES_MAX + 2 <= PIECES_MAX);

/// One queue of a tap device. The device lives as long as one of its queues.
pub struct TunQueue(File);

impl TunQueue {
    /// Make the device called `name` in the calling thread's namespace, or add a queue to it.
    pub fn open(name: &str, kind: TapKind, first: bool) -> io::Result<TunQueue> {
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(TUN)?;
        // SAFETY: all-zero is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (place, byte) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        let exclusive = if first { IFF_TUN_EXCL } else { 0 };
        let kind = match kind {
            TapKind::Tap => IFF_TAP,
            TapKind::Tun => IFF_TUN,
        };
        let flags = kind | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE | exclusive;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF takes an ifreq, which lives through the call.
        if unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let queue = TunQueue(file);
        let header_bytes = VIRTIO_NET_HEADER_BYTES as i32;
        // SAFETY: TUNSETVNETHDRSZ takes an int, which lives through the call.
        if unsafe { libc::ioctl(queue.fd(), TUNSETVNETHDRSZ, &raw const header_bytes) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(queue)
    }

    /// Take frames whose checksum is not computed, and super-frames; also of UDP where the kernel
    /// has that (6.2).
    pub fn accept_offloads(&self) -> io::Result<()> {
        for offloads in [TUN_F_CSUM | TUN_F_TSO | TUN_F_USO, TUN_F_CSUM | TUN_F_TSO] {
            // SAFETY: TUNSETOFFLOAD takes its argument by value.
            if unsafe { libc::ioctl(self.fd(), TUNSETOFFLOAD, offloads) } >= 0 {
                return Ok(());
            }
        }
        Err(io::Error::last_os_error())
    }

    /// Let Linux see a carrier, or none.
    pub fn set_carrier(&self, on: bool) -> io::Result<()> {
        let on = i32::from(on);
        // SAFETY: TUNSETCARRIER takes an int, which lives through the call.
        let result = unsafe { libc::ioctl(self.fd(), TUNSETCARRIER, &raw const on) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// What Linux calls the device now; `None` when it is gone.
    pub fn linux_name(&self) -> Option<String> {
        // SAFETY: all-zero is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // SAFETY: TUNGETIFF takes an ifreq, which lives through the call.
        if unsafe { libc::ioctl(self.fd(), TUNGETIFF, &raw mut request) } < 0 {
            return None;
        }
        let bytes = request.ifr_name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
        String::from_utf8(bytes).ok()
    }

    /// The network namespace that the device is in now.
    pub fn namespace(&self) -> io::Result<OwnedFd> {
        // SAFETY: TUNGETDEVNETNS has no argument; the result is checked.
        let fd = unsafe { libc::ioctl(self.fd(), TUNGETDEVNETNS) };
        // SAFETY: just created, ours alone.
        if fd < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        }
    }

    /// Read one frame behind its header into `first`, then into the pieces of `scatter`; how many
    /// bytes with the header.
    #[inline]
    pub fn read(
        &self,
        header: &mut [u8; VIRTIO_NET_HEADER_BYTES],
        first: &mut [u8],
        scatter: &mut Scatter,
    ) -> io::Result<usize> {
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES_MAX];
        let head = [(header.as_mut_ptr(), header.len()), (first.as_mut_ptr(), first.len())];
        let mut count = 0;
        for (place, (base, bytes)) in
            pieces.iter_mut().zip(head.into_iter().chain(scatter.pieces()))
        {
            *place = libc::iovec { iov_base: base.cast(), iov_len: bytes };
            count += 1;
        }
        // SAFETY: all pieces live through the call, and nobody else uses them: they belong to
        // `header`, `first` and `scatter`, which are borrowed exclusively.
        let got = unsafe { libc::readv(self.fd(), pieces.as_ptr(), count) };
        if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got as usize) }
    }

    /// Write one frame, gathered from its buffers.
    #[inline]
    pub fn write(&self, packet: &Packet) -> io::Result<()> {
        let header = VirtioNetHeader::of_packet(packet).emit();
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES_MAX];
        pieces[0] =
            libc::iovec { iov_base: header.as_ptr().cast_mut().cast(), iov_len: header.len() };
        let mut count = 1;
        for segment in packet.segments() {
            let Some(piece) = pieces.get_mut(count) else {
                return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
            };
            *piece = libc::iovec {
                iov_base: segment.as_ptr().cast_mut().cast(),
                iov_len: segment.len(),
            };
            count += 1;
        }
        // SAFETY: header and segments live through the call, and the kernel only reads them.
        let sent = unsafe { libc::writev(self.fd(), pieces.as_ptr(), count as libc::c_int) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
