//! Shared memory: regions that the peer sent, and those that we made for it.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::RawFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use quiver_core::memory::buffer::BufferPool;
use quiver_core::memory::mapping::{PageSize, SharedMemory};

use crate::guard::Guard;
use quiver_linux::disposal::{Unchecked, dispose};

/// Regions of one connection.
pub(crate) const REGIONS_MAX: usize = 256;
/// Bytes of one region; offsets in it are 32 bits wide.
pub(crate) const REGION_BYTES_MAX: u64 = 1 << 32;
/// Bytes of one connection's regions in ordinary pages. Pages that the peer has not written yet, or
/// has punched out again, are charged to the router when a worker touches them: it is charged no
/// more.
pub(crate) const SMALL_PAGES_BYTES_MAX: u64 = 1 << 30;
/// Bytes of one connection's regions in huge pages, which the router does not pay for.
pub(crate) const HUGE_PAGES_BYTES_MAX: u64 = 64 << 30;
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
    #[error(
        "a region's file is no shared memory; send a memfd with F_SEAL_SHRINK, or a file of \
         hugetlbfs"
    )]
    NotMemory,
    #[error(
        "a region's file can be shrunk; send a memfd with F_SEAL_SHRINK, or a file of hugetlbfs"
    )]
    NotSealed,
    #[error(
        "regions of more than {} MiB in {pages}; ask for smaller rings, buffers or fewer queues, \
         or use huge pages",
        max >> 20
    )]
    TooLarge { pages: &'static str, max: u64 },
}

/// Bytes of a connection's regions so far.
#[derive(Default)]
pub(crate) struct Mapped {
    small: u64,
    huge: u64,
}

impl Mapped {
    fn add(&mut self, bytes: u64, is_huge: bool) -> Result<(), RegionError> {
        let (sum, max, pages) = match is_huge {
            true => (&mut self.huge, HUGE_PAGES_BYTES_MAX, "huge pages"),
            false => (&mut self.small, SMALL_PAGES_BYTES_MAX, "ordinary pages"),
        };
        if *sum + bytes > max {
            return Err(RegionError::TooLarge { pages, max });
        }
        *sum += bytes;
        Ok(())
    }
}

/// A mapping of a peer's file. Dropping it can take long: its pages may be freed with it.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a place and a length.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(fd: RawFd, bytes: usize, is_huge: bool) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a fresh shared mapping; the result is checked.
        let base = unsafe { libc::mmap(null_mut(), bytes, protection, flags, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base: NonNull<u8> =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        if !is_huge {
            // What a worker has touched once it need not wait for again, even if the peer has its
            // memory swapped out. Refused where memory must not be locked; then pages may be
            // swapped. SAFETY: our own mapping; no content changes.
            unsafe { libc::mlock2(base.as_ptr().cast(), bytes, libc::MLOCK_ONFAULT) };
        }
        Ok(Mapping { base, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and each pointer into it keeps the region.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

enum Backing {
    /// Mapped from the peer's file, until it is dropped.
    Peer(Option<Mapping>),
    /// Made by us, until it is dropped.
    Own(Option<SharedMemory>),
    /// The memory of the router's buffers, borrowed by the peer.
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
    /// Map what the peer sent: shared memory that is as long as announced, and guarded. Nothing is
    /// asked of a file before the kernel has said that it is one of its own: a file on FUSE would
    /// answer when its server likes.
    pub(crate) fn from_peer(
        fd: &Unchecked,
        size: u64,
        so_far: &mut Mapped,
    ) -> Result<Region, RegionError> {
        if size == 0 || size > REGION_BYTES_MAX {
            return Err(RegionError::Size(size));
        }
        let (file_bytes, page_bytes) = examine(fd.raw())?;
        let is_huge = page_bytes > 4096;
        let mapped = size.next_multiple_of(page_bytes);
        if size > file_bytes || (is_huge && mapped > file_bytes) {
            return Err(RegionError::FileTooShort { announced: size, file: file_bytes });
        }
        so_far.add(mapped, is_huge)?;
        let mapping = Mapping::new(fd.raw(), mapped as usize, is_huge)?;
        let base = mapping.base;
        let guard = Some(Guard::new(base.as_ptr(), mapped as usize));
        Ok(Region { base, size: size as usize, backing: Backing::Peer(Some(mapping)), guard })
    }

    /// Make one for the peer, in huge pages when there are some.
    pub(crate) fn make(size_bytes: usize) -> Result<Region, RegionError> {
        let memory = SharedMemory::new("quiver-memif", size_bytes, PageSize::Best)?;
        let (base, size) = (memory.base(), memory.size_bytes());
        let guard = Some(Guard::new(base.as_ptr(), size));
        Ok(Region { base, size, backing: Backing::Own(Some(memory)), guard })
    }

    /// The memory of the router's buffers, for a peer to read and write packets in.
    pub(crate) fn of_pool(pool: &Arc<BufferPool>) -> Region {
        let (base, size) = (pool.memory().base(), pool.memory().size_bytes());
        let guard = Some(Guard::new(base.as_ptr(), size));
        Region { base, size, backing: Backing::Pool(pool.clone()), guard }
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
            Backing::Own(memory) => memory.as_ref().map(SharedMemory::fd),
            Backing::Pool(pool) => Some(pool.memory().fd()),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.guard = None; // before the address can belong to somebody else
        match &mut self.backing {
            Backing::Peer(mapping) => drop(mapping.take().map(dispose)),
            Backing::Own(memory) => drop(memory.take().map(dispose)),
            Backing::Pool(_) => {}
        }
    }
}

/// Bytes of a peer's file and of its pages, if it is memory that we can work with:
/// - The kernel tells seals of files of tmpfs and of hugetlbfs, memfds among them, and of no
///   others. It does so by itself, and what it says of their size is true.
/// - It is sealed against shrinking, or lets itself be sealed. VPP, libmemif and DPDK send such
///   memfds.
/// - Or it is in huge pages (DPDK with `zero-copy=yes`), or a memfd that was made without seals
///   (the same with `--no-huge`). The guard is for these.
fn examine(fd: RawFd) -> Result<(u64, u64), RegionError> {
    // SAFETY: plain system calls, zeroed structures that the system fills; results are checked.
    unsafe {
        let mut seals = libc::fcntl(fd, libc::F_GET_SEALS);
        if seals < 0 {
            return Err(RegionError::NotMemory);
        }
        if seals & libc::F_SEAL_SHRINK == 0
            && libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK) == 0
        {
            seals |= libc::F_SEAL_SHRINK;
        }
        let mut stat: libc::stat = std::mem::zeroed();
        let mut system: libc::statfs = std::mem::zeroed();
        if libc::fstat(fd, &mut stat) != 0 || libc::fstatfs(fd, &mut system) != 0 {
            return Err(RegionError::System(io::Error::last_os_error()));
        }
        if stat.st_mode & libc::S_IFMT != libc::S_IFREG {
            return Err(RegionError::NotMemory);
        }
        let huge = system.f_type as i64 == HUGETLBFS_MAGIC;
        if seals & libc::F_SEAL_SHRINK == 0 && !huge && stat.st_nlink > 0 {
            return Err(RegionError::NotSealed);
        }
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
    use quiver_linux::disposal::Account;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// A memfd of a peer that seals nothing.
    fn file(bytes: u64, allow_seals: bool) -> OwnedFd {
        let flags = if allow_seals { libc::MFD_ALLOW_SEALING } else { 0 };
        // SAFETY: a valid C string; the descriptor is new.
        let fd = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"peer".as_ptr(), flags)) };
        // SAFETY: our own descriptor.
        assert_eq!(unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as i64) }, 0);
        fd
    }

    fn take(fd: impl Into<OwnedFd>, size: u64) -> Result<Region, RegionError> {
        Region::from_peer(
            &Unchecked::new(fd.into(), &Account::default()),
            size,
            &mut Mapped::default(),
        )
    }

    #[test]
    fn a_region_longer_than_its_file_is_refused() {
        assert!(matches!(
            take(file(4096, true), 4097),
            Err(RegionError::FileTooShort { announced: 4097, file: 4096 })
        ));
        assert!(matches!(take(file(4096, true), 0), Err(RegionError::Size(0))));
        assert!(matches!(take(file(4096, true), u64::MAX), Err(RegionError::Size(_))));
    }

    #[test]
    fn only_shared_memory_is_mapped() {
        let on_disk = std::env::current_exe().expect("path");
        let mut writable = std::fs::OpenOptions::new();
        writable.read(true).write(true);
        let no_memory: [OwnedFd; 4] = [
            std::fs::File::open(on_disk).expect("file").into(),
            std::fs::File::open("/proc/self/maps").expect("file").into(),
            std::os::unix::net::UnixStream::pair().expect("pair").0.into(),
            writable.open("/dev/zero").expect("device").into(),
        ];
        for fd in no_memory {
            assert!(matches!(take(fd, 4096), Err(RegionError::NotMemory)));
        }
        // A file of tmpfs that others can open, and shrink at any time.
        let path = format!("/dev/shm/quiver-memif-{}", std::process::id());
        writable.create(true).truncate(false);
        if let Ok(shared) = writable.open(&path) {
            shared.set_len(4096).expect("length");
            let taken = take(shared, 4096).err();
            std::fs::remove_file(path).expect("removed");
            assert!(matches!(taken, Some(RegionError::NotSealed)), "{taken:?}");
        }
    }

    #[test]
    fn regions_of_a_connection_are_bounded_together() {
        let mut so_far = Mapped::default();
        let sparse = Unchecked::new(file(SMALL_PAGES_BYTES_MAX, true), &Account::default());
        let half = SMALL_PAGES_BYTES_MAX / 2;
        let first = Region::from_peer(&sparse, half, &mut so_far).expect("half of it");
        let second = Region::from_peer(&sparse, half, &mut so_far).expect("all of it");
        let third = Region::from_peer(&sparse, 1, &mut so_far);
        assert!(
            third
                .err()
                .is_some_and(|error| error.to_string().contains("1024 MiB in ordinary pages"))
        );
        drop((first, second));
    }

    #[test]
    fn a_file_that_can_be_sealed_cannot_be_shrunk_any_more() {
        let fd = file(8192, true);
        let region = take(fd.try_clone().expect("dup"), 8192).expect("region");
        // SAFETY: our own descriptor.
        assert_ne!(unsafe { libc::ftruncate(fd.as_raw_fd(), 0) }, 0);
        assert_eq!(region.size(), 8192);
    }

    #[test]
    fn memory_that_the_peer_takes_away_reads_as_zero_and_is_noticed() {
        let fd = file(16384, false);
        let regions =
            Regions::new(vec![take(fd.try_clone().expect("dup"), 16384).expect("region")]);
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
