//! AF_XDP sockets: the memory that frames lie in (the UMEM), and the four rings on which the kernel
//! and we hand them to one another.
//!
//! ```text
//!   fill        we give empty chunks      kernel ──► rx          chunks with frames in them
//!   tx          we give frames            kernel ──► completion  chunks that were sent
//! ```
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use crate::ring::{Mapping, Ring};

/// Bytes of a chunk. A longer frame lies in several.
pub const CHUNK_BYTES: usize = 2048;
/// Frames that the kernel sends in one call.
const TX_BUDGET_FRAMES: u32 = 256;
/// XDP_MAX_TX_SKB_BUDGET, of Linux 6.17; before it, it is 32 frames.
const MAX_TX_BUDGET: libc::c_int = 9;
/// Bytes that may be under way from one socket.
const SEND_BUFFER_BYTES: libc::c_int = 32 << 20;

/// A socket, bound to a queue of a device.
pub struct XdpSocket(OwnedFd);

/// What a socket's two sides share.
struct Shared {
    socket: XdpSocket,
    /// Chunks: first those that are received into, then those that are sent from.
    memory: Mapping,
    ring_size: u32,
}

// SAFETY: each side touches its own half of the chunks only.
unsafe impl Sync for Shared {}

/// The receiving side.
pub struct RxSide {
    shared: Arc<Shared>,
    fill: Ring<u64>,
    rx: Ring<libc::xdp_desc>,
    /// The next place to read.
    next: u32,
    /// The next place to give an empty chunk in.
    filled: u32,
}

/// The sending side.
pub struct TxSide {
    shared: Arc<Shared>,
    tx: Ring<libc::xdp_desc>,
    completion: Ring<u64>,
    next: u32,
    completed: u32,
    /// Addresses of chunks that hold nothing.
    free: Vec<u64>,
}

/// A frame that was received, or a piece of one.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    address: u64,
    bytes: usize,
    /// The next piece belongs to it.
    pub is_continued: bool,
}

impl XdpSocket {
    fn new() -> io::Result<XdpSocket> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just created, ours alone.
        Ok(XdpSocket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        let size = size_of::<T>() as libc::socklen_t;
        // SAFETY: the value lives through the call, and its size is given.
        let result =
            unsafe { libc::setsockopt(self.fd(), level, option, (&raw const *value).cast(), size) };
        if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn get<T>(&self, option: libc::c_int) -> io::Result<T> {
        let mut size = size_of::<T>() as libc::socklen_t;
        // SAFETY: only used for the two structures of numbers below, for which all-zero is valid.
        let mut value: T = unsafe { std::mem::zeroed() };
        // SAFETY: the value lives through the call, and its size is given.
        let result = unsafe {
            libc::getsockopt(self.fd(), libc::SOL_XDP, option, (&raw mut value).cast(), &mut size)
        };
        if result != 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
    }

    /// Use a queue of a device, in copy mode, with frames in several pieces where the kernel has
    /// them.
    fn bind(&self, index: i32, queue: u32) -> io::Result<()> {
        let try_with = |flags: u16| {
            let address = libc::sockaddr_xdp {
                sxdp_family: libc::AF_XDP as u16,
                sxdp_flags: flags,
                sxdp_ifindex: index as u32,
                sxdp_queue_id: queue,
                sxdp_shared_umem_fd: 0,
            };
            let size = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
            // SAFETY: the address lives through the call, and its size is given.
            let result = unsafe { libc::bind(self.fd(), (&raw const address).cast(), size) };
            if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        match try_with(libc::XDP_COPY | libc::XDP_USE_SG) {
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => try_with(libc::XDP_COPY),
            other => other,
        }
    }

    /// The descriptor.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// A socket on a queue of a device, with rings of `ring_size` frames (a power of two).
pub fn open(index: i32, queue: u32, ring_size: u32) -> io::Result<(RxSide, TxSide)> {
    let socket = XdpSocket::new()?;
    let bytes = 2 * ring_size as usize * CHUNK_BYTES;
    let memory = Mapping::new(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)?;
    // SAFETY: all-zero is a valid registration.
    let mut registration: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
    registration.addr = memory.memory().as_ptr() as u64;
    registration.len = bytes as u64;
    registration.chunk_size = CHUNK_BYTES as u32;
    socket.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)?;
    for ring in [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
    ] {
        socket.set(libc::SOL_XDP, ring, &ring_size)?;
    }
    // Older kernels have their own idea of it.
    let _ = socket.set(libc::SOL_XDP, MAX_TX_BUDGET, &TX_BUDGET_FRAMES.min(ring_size));
    if socket.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER_BYTES).is_err() {
        let _ = socket.set(libc::SOL_SOCKET, libc::SO_SNDBUF, &SEND_BUFFER_BYTES);
    }
    let offsets: libc::xdp_mmap_offsets = socket.get(libc::XDP_MMAP_OFFSETS)?;
    let fd = socket.fd();
    let fill =
        Ring::new(fd, libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t, &offsets.fr, ring_size)?;
    let page = libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t;
    let completion = Ring::new(fd, page, &offsets.cr, ring_size)?;
    let rx = Ring::new(fd, libc::XDP_PGOFF_RX_RING, &offsets.rx, ring_size)?;
    let tx = Ring::new(fd, libc::XDP_PGOFF_TX_RING, &offsets.tx, ring_size)?;
    socket.bind(index, queue)?;
    let shared = Arc::new(Shared { socket, memory, ring_size });
    let chunk = |number: u32| u64::from(number) * CHUNK_BYTES as u64;
    for number in 0..ring_size {
        fill.write(number, chunk(number));
    }
    fill.produce(ring_size);
    let free = (ring_size..2 * ring_size).map(chunk).collect();
    Ok((
        RxSide { shared: shared.clone(), fill, rx, next: 0, filled: ring_size },
        TxSide { shared, tx, completion, next: 0, completed: 0, free },
    ))
}

impl RxSide {
    /// Pieces that wait.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.rx.produced().wrapping_sub(self.next)
    }

    /// Does the kernel find no room? Each chunk that we gave has a frame in it.
    #[inline]
    pub fn is_full(&self, waiting: u32) -> bool {
        waiting == self.shared.ring_size
    }

    /// The piece that is `ahead` places behind the next one; there must be more that wait.
    #[inline]
    pub fn peek(&self, ahead: u32) -> Piece {
        let descriptor = self.rx.read(self.next.wrapping_add(ahead));
        let (address, bytes) = (descriptor.addr, descriptor.len as usize);
        // The kernel keeps to the memory; a piece outside of it would be no piece.
        let inside = (address as usize)
            .checked_add(bytes)
            .is_some_and(|end| end <= self.shared.memory.bytes());
        let is_continued = descriptor.options & libc::XDP_PKT_CONTD != 0;
        Piece { address, bytes: if inside { bytes } else { 0 }, is_continued }
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(&self, piece: Piece) -> &[u8] {
        // SAFETY: inside of the memory, as `peek` has seen; the kernel does not write into the
        // chunk before it is given back, which needs `&mut self`.
        unsafe {
            let start = self.shared.memory.memory().add(piece.address as usize);
            std::slice::from_raw_parts(start.as_ptr(), piece.bytes)
        }
    }

    /// Give the next piece's chunk back, to be filled again. The kernel hears of it by
    /// [`publish`](Self::publish).
    #[inline]
    pub fn give_back(&mut self) {
        let address = self.rx.read(self.next).addr;
        self.fill.write(self.filled, address & !(CHUNK_BYTES as u64 - 1));
        self.next = self.next.wrapping_add(1);
        self.filled = self.filled.wrapping_add(1);
    }

    /// Let the kernel have what was given back.
    #[inline]
    pub fn publish(&mut self) {
        self.rx.consume(self.next);
        self.fill.produce(self.filled);
    }

    /// Frames that the kernel had no room for, since the socket was made.
    pub fn drops(&self) -> u64 {
        let counts: io::Result<libc::xdp_statistics> = self.shared.socket.get(libc::XDP_STATISTICS);
        counts.map_or(0, |counts| counts.rx_dropped + counts.rx_ring_full)
    }

    /// The socket.
    pub fn socket(&self) -> &XdpSocket {
        &self.shared.socket
    }
}

impl TxSide {
    /// Take back what was sent; how many chunks are free then.
    #[inline]
    pub fn reclaim(&mut self) -> usize {
        let done = self.completion.produced();
        while self.completed != done {
            self.free.push(self.completion.read(self.completed));
            self.completed = self.completed.wrapping_add(1);
        }
        self.completion.consume(done);
        self.free.len()
    }

    /// Add a frame, whose bytes `segments` hold; it needs [`chunks_of`] free chunks. The kernel
    /// hears of it by [`kick`](Self::kick).
    #[inline]
    pub fn add<'a>(&mut self, segments: impl Iterator<Item = &'a [u8]>) {
        let mut open: Option<(u64, usize)> = None;
        for mut segment in segments {
            while !segment.is_empty() {
                let (address, used) = match open {
                    Some((address, used)) if used < CHUNK_BYTES => (address, used),
                    full => {
                        if let Some((address, used)) = full {
                            self.describe(address, used, true);
                        }
                        let Some(address) = self.free.pop() else { return };
                        (address, 0)
                    }
                };
                let (now, rest) = segment.split_at(segment.len().min(CHUNK_BYTES - used));
                // SAFETY: the chunk is free, so the kernel does not read it; it has room for the
                // bytes.
                unsafe {
                    let to = self.shared.memory.memory().add(address as usize + used);
                    std::ptr::copy_nonoverlapping(now.as_ptr(), to.as_ptr(), now.len());
                }
                open = Some((address, used + now.len()));
                segment = rest;
            }
        }
        if let Some((address, used)) = open {
            self.describe(address, used, false);
        }
    }

    #[inline]
    fn describe(&mut self, address: u64, bytes: usize, is_continued: bool) {
        let options = if is_continued { libc::XDP_PKT_CONTD } else { 0 };
        self.tx.write(self.next, libc::xdp_desc { addr: address, len: bytes as u32, options });
        self.next = self.next.wrapping_add(1);
    }

    /// Have the kernel send what was added; how many pieces it has not taken yet. An error concerns
    /// all of them.
    pub fn kick(&mut self) -> io::Result<u32> {
        self.tx.produce(self.next);
        let mut left = self.left();
        while left > 0 {
            // SAFETY: no bytes are given; a plain system call.
            let sent = unsafe {
                libc::sendto(
                    self.shared.socket.fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            let error = (sent < 0).then(io::Error::last_os_error);
            let code = error.as_ref().and_then(io::Error::raw_os_error);
            let now = self.left();
            let goes_on = matches!(
                code,
                None | Some(libc::EAGAIN | libc::EINTR | libc::EBUSY | libc::ENOBUFS)
            );
            match error {
                Some(error) if !goes_on => return Err(error),
                _ if now == left => return Ok(now),
                _ => left = now,
            }
        }
        Ok(0)
    }

    fn left(&self) -> u32 {
        self.next.wrapping_sub(self.tx.consumed())
    }
}

/// Chunks that a frame of so many bytes needs.
#[inline]
pub fn chunks_of(bytes: usize) -> usize {
    bytes.div_ceil(CHUNK_BYTES)
}
