//! A ring of an AF_XDP socket: places in memory that the kernel shares with us, and how far the
//! producer and the consumer of them are.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// A mapping, unmapped when dropped.
pub struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it owns the mapping; who uses the memory answers for how.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Where it begins.
    pub fn memory(&self) -> NonNull<u8> {
        self.memory
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `bytes` of what `fd` has at `offset`; all of it is there at once.
    pub fn new(bytes: usize, flags: i32, fd: RawFd, offset: libc::off_t) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = flags | libc::MAP_POPULATE;
        // SAFETY: a fresh mapping at an address of the kernel's choice; the result is checked.
        let memory =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, fd, offset) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast())
            .ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Mapping { memory, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

/// One ring: places of `T`, and how far the producer and the consumer are.
pub struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    places: usize,
    size: u32,
    of: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    /// The ring of a socket that lies at `page` of its descriptor.
    pub fn new(
        fd: RawFd,
        page: libc::off_t,
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Ring<T>> {
        let [producer, consumer, places] =
            [offsets.producer, offsets.consumer, offsets.desc].map(|o| o as usize);
        let bytes = places + size as usize * size_of::<T>();
        let mapping = Mapping::new(bytes, libc::MAP_SHARED, fd, page)?;
        Ok(Ring { mapping, producer, consumer, places, size, of: PhantomData })
    }

    fn index(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: both indices lie in front of the places, inside the mapping, aligned.
        unsafe { self.mapping.memory.add(offset).cast::<AtomicU32>().as_ref() }
    }

    /// How far the producer is.
    #[inline]
    pub fn produced(&self) -> u32 {
        self.index(self.producer).load(Ordering::Acquire)
    }

    /// How far the consumer is.
    #[inline]
    pub fn consumed(&self) -> u32 {
        self.index(self.consumer).load(Ordering::Acquire)
    }

    /// The producer is so far.
    #[inline]
    pub fn produce(&self, to: u32) {
        self.index(self.producer).store(to, Ordering::Release);
    }

    /// The consumer is so far.
    #[inline]
    pub fn consume(&self, to: u32) {
        self.index(self.consumer).store(to, Ordering::Release);
    }

    #[inline]
    fn place(&self, number: u32) -> NonNull<T> {
        // SAFETY: masked, it lies in the mapping, aligned as the kernel lays it out.
        unsafe {
            self.mapping
                .memory
                .add(self.places)
                .cast::<T>()
                .add((number & (self.size - 1)) as usize)
        }
    }

    /// What stands in a place that is ours by the indices.
    #[inline]
    pub fn read(&self, number: u32) -> T {
        // SAFETY: the place is ours by the indices.
        unsafe { self.place(number).read() }
    }

    /// Write into a place that is ours by the indices.
    #[inline]
    pub fn write(&self, number: u32, value: T) {
        // SAFETY: the place is ours by the indices.
        unsafe { self.place(number).write(value) };
    }
}
