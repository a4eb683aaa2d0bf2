//! Memory that can be handed to another process: a memfd, in huge pages when the system has some;
//! and memory that cannot.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;

/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes of an ordinary page.
pub const PAGE_BYTES: usize = 4096;

/// Seals of every shared mapping. A peer that was given the file can neither shrink it under us nor
/// grow it, and cannot add seals of its own: with `F_SEAL_FUTURE_WRITE` no other peer could map it.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Which pages a region should use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// Huge pages when there are enough of them, else ordinary ones.
    Best,
    /// 4 KiB.
    Small,
    /// 2 MiB, or refuse.
    Huge,
}

/// A shared, zeroed mapping of a memfd. Unmapped on drop.
pub struct SharedMemory {
    base: NonNull<u8>,
    size_bytes: usize,
    fd: OwnedFd,
    page_bytes: usize,
}

// SAFETY: the mapping is plain memory; who may touch which part is decided by its users.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Map at least `size_bytes`, rounded up to whole pages.
    ///
    /// # Errors
    /// The system refuses the memory.
    pub fn new(name: &str, size_bytes: usize, pages: PageSize) -> io::Result<SharedMemory> {
        match pages {
            PageSize::Small => Self::with_pages(name, size_bytes, PAGE_BYTES),
            PageSize::Huge => Self::with_pages(name, size_bytes, HUGE_PAGE_BYTES),
            PageSize::Best => Self::with_pages(name, size_bytes, HUGE_PAGE_BYTES)
                .or_else(|_| Self::with_pages(name, size_bytes, PAGE_BYTES)),
        }
    }

    fn with_pages(name: &str, size_bytes: usize, page_bytes: usize) -> io::Result<SharedMemory> {
        let size_bytes = size_bytes.next_multiple_of(page_bytes);
        let c_name = std::ffi::CString::new(name)?;
        let mut flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        if page_bytes == HUGE_PAGE_BYTES {
            flags |= libc::MFD_HUGETLB | libc::MFD_HUGE_2MB;
        }
        // SAFETY: a valid C string; the result is checked.
        let raw = unsafe { libc::memfd_create(c_name.as_ptr(), flags) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just created and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: a plain system call on our own descriptor.
        if unsafe { libc::ftruncate(raw, size_bytes as libc::off_t) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a plain system call on our own descriptor.
        if unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // MAP_POPULATE reserves the pages now: a page that is missing later would be a SIGBUS.
        // SAFETY: a fresh shared mapping of our own descriptor; the result is checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                raw,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(SharedMemory { base, size_bytes, fd, page_bytes })
    }

    /// First byte of the mapping, aligned to a page.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes mapped.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The memfd, to be sent to a peer.
    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Zeroed memory that no other process sees, in huge pages when the system gives some. Unmapped on
/// drop.
pub struct PrivateMemory {
    base: NonNull<u8>,
    size_bytes: usize,
}

// SAFETY: the mapping is plain memory; who may touch which part is decided by its users.
unsafe impl Send for PrivateMemory {}
// SAFETY: as above.
unsafe impl Sync for PrivateMemory {}

impl PrivateMemory {
    /// Map at least `size_bytes`, rounded up to whole pages.
    ///
    /// # Errors
    /// The system refuses the memory.
    pub fn new(size_bytes: usize) -> io::Result<PrivateMemory> {
        let size_bytes = size_bytes.next_multiple_of(PAGE_BYTES);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh private mapping; the result is checked. The advice changes no content.
        let base = unsafe {
            let base = libc::mmap(std::ptr::null_mut(), size_bytes, protection, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            libc::madvise(base, size_bytes, libc::MADV_HUGEPAGE);
            libc::madvise(base, size_bytes, libc::MADV_POPULATE_WRITE);
            base
        };
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(PrivateMemory { base, size_bytes })
    }

    /// First byte of the mapping, aligned to a page.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes mapped.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl Drop for PrivateMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size_bytes) };
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size_bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_given_the_memory_can_neither_resize_nor_seal_it() {
        let memory = SharedMemory::new("sealed", 8 * PAGE_BYTES, PageSize::Small).expect("memory");
        let size = memory.size_bytes() as libc::off_t;
        // SAFETY: plain system calls on a descriptor that lives.
        unsafe {
            for bytes in [0, size - 1, size + 1] {
                assert_eq!(libc::ftruncate(memory.fd(), bytes), -1, "{bytes} bytes");
            }
            assert_eq!(libc::fallocate(memory.fd(), 0, size, 1), -1);
            for seal in [libc::F_SEAL_FUTURE_WRITE, libc::F_SEAL_WRITE, libc::F_SEAL_GROW] {
                assert_eq!(libc::fcntl(memory.fd(), libc::F_ADD_SEALS, seal), -1, "{seal:#x}");
            }
            let seals = libc::fcntl(memory.fd(), libc::F_GET_SEALS);
            assert_eq!(seals & SEALS, SEALS);
        }
    }
}
