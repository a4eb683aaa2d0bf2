//! Many frames in one system call (sendmmsg), gathered from their buffers without a copy of ours.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;

use quiver_core::Packet;
use quiver_linux::VirtioNetHeader;
use quiver_linux::virtio_net::VIRTIO_NET_HEADER_BYTES;

/// Frames in one call.
const FRAMES_MAX: usize = 64;
/// Pieces of memory in one call.
const PIECES_MAX: usize = 1024;
/// Pieces of one frame, its header among them.
const PIECES_PER_FRAME_MAX: usize = 128;

/// The arrays of one sender, allocated once.
pub struct SendBatch {
    headers: Box<[[u8; VIRTIO_NET_HEADER_BYTES]; FRAMES_MAX]>,
    pieces: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
}

// SAFETY: between two calls the pointers in it are never followed.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Empty arrays.
    pub fn new() -> SendBatch {
        SendBatch {
            headers: Box::new([[0; VIRTIO_NET_HEADER_BYTES]; FRAMES_MAX]),
            pieces: Vec::with_capacity(PIECES_MAX),
            messages: Vec::with_capacity(FRAMES_MAX),
        }
    }

    /// Send from the front of `packets`; how many went. An error concerns the first of them.
    pub fn send(&mut self, fd: RawFd, packets: &[Packet]) -> io::Result<usize> {
        self.pieces.clear();
        self.messages.clear();
        for (packet, header) in packets.iter().zip(self.headers.iter_mut()) {
            *header = VirtioNetHeader::of_packet(packet).emit();
            let first = self.pieces.len();
            let segments = packet.segments().map(|s| (s.as_ptr(), s.len()));
            for (base, bytes) in std::iter::once((header.as_ptr(), header.len())).chain(segments) {
                if self.pieces.len() == PIECES_MAX
                    || self.pieces.len() - first == PIECES_PER_FRAME_MAX
                {
                    self.pieces.truncate(first);
                    break;
                }
                self.pieces.push(libc::iovec { iov_base: base.cast_mut().cast(), iov_len: bytes });
            }
            if self.pieces.len() == first {
                break;
            }
            // SAFETY: all-zero is a valid message.
            let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
            // SAFETY: `first` is inside the array, which never grows beyond its capacity.
            message.msg_hdr.msg_iov = unsafe { self.pieces.as_mut_ptr().add(first) };
            message.msg_hdr.msg_iovlen = self.pieces.len() - first;
            self.messages.push(message);
        }
        if self.messages.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let count = self.messages.len() as libc::c_uint;
        // SAFETY: messages, pieces, headers and the packets' bytes live through the call, and the
        // kernel only reads them.
        let sent =
            unsafe { libc::sendmmsg(fd, self.messages.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }
}
