//! Shared memory: regions that the peer sent, and those that we made for it.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use quiver_core::buffer::BufferPool;
use quiver_core::memory::{PageSize, SharedMemory};

use crate::guard::Guard;

/// Regions of one connection.
pub(crate) const REGIONS_MAX: usize = 256;
/// Bytes of one region; offsets in it are 32 bits wide.
pub(crate) const REGION_BYTES_MAX: u64 = 1 << 32;
/// What `statfs` says of a file in huge pages.
const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;

/// Why a region cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RegionError {
    #[error("a region of {0} bytes, but 1 to {REGION_BYTES_MAX} are possible")]
    Size(u64),
    #[error("a region of {announced} bytes in a file of {file} bytes")]
    FileTooShort { announced: u64, file: u64 },
    #[error("a region's file cannot be examined or mapped: {0}")]
    System(#[from] io::Error),
    #[error("too many regions are mapped")]
    TooMany,
}

enum Backing {
    /// Mapped from the peer's file: so many bytes.
    Peer(usize),
    /// Made by us.
    Own(SharedMemory),
    /// The memory of the router's buffers, lent.
    Pool(Arc<BufferPool>),
}

/// A piece of shared memory. Never referred to by `&` or `&mut`: the peer writes when it likes.
pub(crate) struct Region {
    base: NonNull<u8>,
    /// Bytes that descriptors may point into.
    size: usize,
    backing: Backing,
    guard: Option<Guard>,
}

// SAFETY: a region is a place and a length; everything that touches its bytes does so by raw
// pointers and lives with the peer touching them too.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Map what the peer sent. The file must be as long as announced; it is sealed against
    /// shrinking when it can be, and guarded in any case.
    pub(crate) fn from_peer(fd: OwnedFd, size: u64) -> Result<Region, RegionError> {
        if size == 0 || size > REGION_BYTES_MAX {
            return Err(RegionError::Size(size));
        }
        let raw = fd.as_raw_fd();
        // Already sealed, or no memfd: either way an error changes nothing.
        // SAFETY: a plain system call on our own descriptor.
        unsafe { libc::fcntl(raw, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) };
        let (file_bytes, page_bytes) = file_facts(raw)?;
        let mapped = size.next_multiple_of(page_bytes);
        if size > file_bytes || (page_bytes > 4096 && mapped > file_bytes) {
            return Err(RegionError::FileTooShort { announced: size, file: file_bytes });
        }
        let mapped = mapped as usize;
        // SAFETY: a fresh shared mapping; the result is checked.
        let base = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(null_mut(), mapped, protection, libc::MAP_SHARED, raw, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(RegionError::System(io::Error::last_os_error()));
        }
        let base = NonNull::new(base.cast()).ok_or(RegionError::TooMany)?;
        let guard = Guard::new(base.as_ptr(), mapped);
        let region = Region { base, size: size as usize, backing: Backing::Peer(mapped), guard };
        if region.guard.is_none() {
            return Err(RegionError::TooMany);
        }
        Ok(region)
    }

    /// Make one for the peer, in huge pages when there are some.
    pub(crate) fn make(size_bytes: usize) -> Result<Region, RegionError> {
        let memory = SharedMemory::new("quiver-memif", size_bytes, PageSize::Best)?;
        let (base, size) = (memory.base(), memory.size_bytes());
        let guard = Some(Guard::new(base.as_ptr(), size).ok_or(RegionError::TooMany)?);
        Ok(Region { base, size, backing: Backing::Own(memory), guard })
    }

    /// The memory of the router's buffers, for a peer to read and write packets in.
    pub(crate) fn of_pool(pool: &Arc<BufferPool>) -> Result<Region, RegionError> {
        let (base, size) = (pool.memory().base(), pool.memory().size_bytes());
        let guard = Some(Guard::new(base.as_ptr(), size).ok_or(RegionError::TooMany)?);
        Ok(Region { base, size, backing: Backing::Pool(pool.clone()), guard })
    }

    /// Is it the memory of the router's buffers?
    pub(crate) fn is_pool(&self) -> bool {
        matches!(self.backing, Backing::Pool(_))
    }

    /// Bytes that descriptors may point into.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The file, when it is ours.
    pub(crate) fn fd(&self) -> Option<RawFd> {
        match &self.backing {
            Backing::Peer(_) => None,
            Backing::Own(memory) => Some(memory.fd()),
            Backing::Pool(pool) => Some(pool.memory().fd()),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.guard = None; // before the address can belong to somebody else
        if let Backing::Peer(mapped) = self.backing {
            // SAFETY: mapped by us with this length, and whoever points into it holds the region.
            unsafe { libc::munmap(self.base.as_ptr().cast(), mapped) };
        }
    }
}

/// Bytes of a file and of its pages.
fn file_facts(fd: RawFd) -> io::Result<(u64, u64)> {
    // SAFETY: zeroed structures that the system fills; the results are checked.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let mut system: libc::statfs = std::mem::zeroed();
        if libc::fstat(fd, &mut stat) != 0 || libc::fstatfs(fd, &mut system) != 0 {
            return Err(io::Error::last_os_error());
        }
        if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        let huge = system.f_type as i64 == HUGETLBFS_MAGIC;
        Ok((stat.st_size as u64, if huge { system.f_bsize as u64 } else { 4096 }))
    }
}

/// All regions of a connection. Whatever points into them holds them.
pub(crate) struct Regions(Box<[Region]>);

impl Regions {
    pub(crate) fn new(list: Vec<Region>) -> Arc<Regions> {
        Arc::new(Regions(list.into_boxed_slice()))
    }

    /// The address of `bytes` bytes at `offset` in a region; `None` when they are not all in it.
    #[inline(always)]
    pub(crate) fn span(&self, region: u16, offset: u32, bytes: usize) -> Option<*mut u8> {
        let region = self.0.get(region as usize)?;
        if offset as usize + bytes > region.size {
            return None;
        }
        // SAFETY: inside the region, as just checked.
        Some(unsafe { region.base.as_ptr().add(offset as usize) })
    }

    /// The regions, in order.
    pub(crate) fn list(&self) -> &[Region] {
        &self.0
    }

    /// A region whose memory the peer has taken away.
    pub(crate) fn lost(&self) -> Option<usize> {
        self.0.iter().position(|region| region.guard.as_ref().is_some_and(Guard::is_lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;

    /// A memfd of a peer that seals nothing.
    fn file(bytes: u64, allow_seals: bool) -> OwnedFd {
        let flags = if allow_seals { libc::MFD_ALLOW_SEALING } else { 0 };
        // SAFETY: a valid C string; the descriptor is new.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"peer".as_ptr(), flags)) };
        // SAFETY: our own descriptor.
        assert_eq!(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as i64) }, 0);
        fd
    }

    #[test]
    fn a_region_longer_than_its_file_is_refused() {
        assert!(matches!(
            Region::from_peer(file(4096, true), 4097),
            Err(RegionError::FileTooShort { announced: 4097, file: 4096 })
        ));
        assert!(matches!(Region::from_peer(file(4096, true), 0), Err(RegionError::Size(0))));
        assert!(matches!(Region::from_peer(file(4096, true), u64::MAX), Err(RegionError::Size(_))));
        let socket = std::os::unix::net::UnixStream::pair().expect("pair").0;
        assert!(matches!(Region::from_peer(socket.into(), 4096), Err(RegionError::System(_))));
    }

    #[test]
    fn a_file_that_can_be_sealed_cannot_be_shrunk_any_more() {
        let fd = file(8192, true);
        let region = Region::from_peer(fd.try_clone().expect("dup"), 8192).expect("region");
        // SAFETY: our own descriptor.
        assert_ne!(unsafe { libc::ftruncate(fd.as_raw_fd(), 0) }, 0);
        assert_eq!(region.size(), 8192);
    }

    #[test]
    fn memory_that_the_peer_takes_away_reads_as_zero_and_is_noticed() {
        let fd = file(16384, false);
        let regions =
            Regions::new(vec![Region::from_peer(fd.try_clone().expect("dup"), 16384).expect("region")]);
        let place = regions.span(0, 12288, 8).expect("inside");
        // SAFETY: inside the region.
        unsafe { place.write_volatile(7) };
        assert_eq!(regions.lost(), None);
        // SAFETY: our own descriptor; then a read that the guard catches.
        let seen = unsafe {
            assert_eq!(libc::ftruncate(fd.as_raw_fd(), 0), 0);
            place.read_volatile()
        };
        assert_eq!(seen, 0);
        assert_eq!(regions.lost(), Some(0));
    }

    #[test]
    fn a_span_must_lie_in_its_region() {
        let regions = Regions::new(vec![Region::make(4096).expect("region")]);
        let size = regions.list()[0].size() as u32;
        assert!(regions.span(0, size - 64, 64).is_some());
        assert!(regions.span(0, size - 63, 64).is_none());
        assert!(regions.span(0, u32::MAX, u32::MAX as usize).is_none());
        assert!(regions.span(1, 0, 1).is_none());
    }
}
