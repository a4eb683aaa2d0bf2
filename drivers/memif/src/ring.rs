//! A ring in shared memory: two indices and descriptors, which the peer can change at any time.
//!
//! ```text
//!   0  cookie u32 | flags u16 | head u16          the slave writes head, the receiver flags
//!  64  tail u16                                   the master writes tail
//! 128  descriptors: flags u16 | region u16 | length u32 | offset u32 | metadata u32
//! ```
//! Everything is read and written once, as atomics, and checked after it was copied out.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::protocol::{COOKIE, LOG2_RING_SIZE_MAX};
use crate::region::Regions;

/// Bytes in front of the descriptors.
pub(crate) const RING_HEADER_BYTES: usize = 128;
/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR_BYTES: usize = 16;
/// The frame goes on in the next descriptor.
pub(crate) const NEXT: u16 = 1;
/// The receiver wants no interrupts.
pub(crate) const MASK_INTERRUPT: u16 = 1;

const FLAGS: usize = 4;
const HEAD: usize = 6;
const TAIL: usize = 64;

/// A descriptor, copied out of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) flags: u16,
    pub(crate) region: u16,
    pub(crate) length: u32,
    pub(crate) offset: u32,
}

impl Descriptor {
    #[inline(always)]
    fn from_words(first: u64, second: u64) -> Descriptor {
        Descriptor {
            flags: first as u16,
            region: (first >> 16) as u16,
            length: (first >> 32) as u32,
            offset: second as u32,
        }
    }

    #[inline(always)]
    fn first_word(self) -> u64 {
        self.flags as u64 | (self.region as u64) << 16 | (self.length as u64) << 32
    }
}

/// Why there is no ring at a place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RingError {
    #[error("a ring of 2^{0} descriptors, but at most 2^{LOG2_RING_SIZE_MAX} are possible")]
    Size(u8),
    #[error("a ring at {offset} of region {region}, which does not hold it")]
    Place { region: u16, offset: u32 },
    #[error("a ring without the cookie {COOKIE:#x}")]
    Cookie,
}

/// A ring. It keeps the regions mapped.
#[derive(Clone)]
pub(crate) struct Ring {
    base: *mut u8,
    mask: u16,
    regions: Arc<Regions>,
}

// SAFETY: the pointer is into the regions that it holds, and every access is atomic.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

/// Bytes of a ring of 2^`log2_size` descriptors.
pub(crate) fn ring_bytes(log2_size: u8) -> usize {
    RING_HEADER_BYTES + (DESCRIPTOR_BYTES << log2_size)
}

impl Ring {
    /// The ring at `offset` of a region.
    pub(crate) fn new(
        regions: &Arc<Regions>,
        region: u16,
        offset: u32,
        log2_size: u8,
    ) -> Result<Ring, RingError> {
        if log2_size > LOG2_RING_SIZE_MAX {
            return Err(RingError::Size(log2_size));
        }
        let base = regions.span(region, offset, ring_bytes(log2_size));
        match base {
            Some(base) if (base as usize).is_multiple_of(DESCRIPTOR_BYTES) => {
                Ok(Ring { base, mask: (1 << log2_size) - 1, regions: regions.clone() })
            }
            _ => Err(RingError::Place { region, offset }),
        }
    }

    /// Write what a slave writes before it shows the ring.
    pub(crate) fn initialise(&self) {
        self.u32(0).store(COOKIE, Ordering::Relaxed);
        self.set_flags(MASK_INTERRUPT);
        self.set_head(0);
        self.set_tail(0);
    }

    /// Is it one?
    pub(crate) fn check_cookie(&self) -> Result<(), RingError> {
        if self.u32(0).load(Ordering::Relaxed) == COOKIE { Ok(()) } else { Err(RingError::Cookie) }
    }

    #[inline(always)]
    fn u16(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: inside the ring, aligned, and only ever touched atomically.
        unsafe { AtomicU16::from_ptr(self.base.add(offset).cast()) }
    }

    fn u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.base.add(offset).cast()) }
    }

    #[inline(always)]
    fn words(&self, slot: u16) -> (&AtomicU64, &AtomicU64) {
        // SAFETY: the slot is masked, so inside the ring; descriptors are 16-byte aligned.
        unsafe {
            let at =
                self.base.add(RING_HEADER_BYTES + (slot & self.mask) as usize * DESCRIPTOR_BYTES);
            (AtomicU64::from_ptr(at.cast()), AtomicU64::from_ptr(at.add(8).cast()))
        }
    }

    /// Descriptors in it.
    #[inline(always)]
    pub(crate) fn size(&self) -> u16 {
        self.mask + 1
    }

    /// The number of a slot within the ring.
    #[inline(always)]
    pub(crate) fn slot(&self, index: u16) -> u16 {
        index & self.mask
    }

    #[inline(always)]
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    #[inline(always)]
    pub(crate) fn head(&self) -> u16 {
        self.u16(HEAD).load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn tail(&self) -> u16 {
        self.u16(TAIL).load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn set_head(&self, head: u16) {
        self.u16(HEAD).store(head, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn set_tail(&self, tail: u16) {
        self.u16(TAIL).store(tail, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn flags(&self) -> u16 {
        self.u16(FLAGS).load(Ordering::SeqCst)
    }

    /// Set the flags; no later read of an index comes before it.
    pub(crate) fn set_flags(&self, flags: u16) {
        self.u16(FLAGS).swap(flags, Ordering::SeqCst);
    }

    /// Copy a descriptor out.
    #[inline(always)]
    pub(crate) fn descriptor(&self, slot: u16) -> Descriptor {
        let (first, second) = self.words(slot);
        Descriptor::from_words(first.load(Ordering::Relaxed), second.load(Ordering::Relaxed))
    }

    /// Write a whole descriptor.
    #[inline(always)]
    pub(crate) fn set_descriptor(&self, slot: u16, descriptor: Descriptor) {
        let (first, second) = self.words(slot);
        first.store(descriptor.first_word(), Ordering::Relaxed);
        second.store(descriptor.offset as u64, Ordering::Relaxed);
    }

    /// Write flags, region and length, and leave the offset as it is.
    #[inline(always)]
    pub(crate) fn set_length(&self, slot: u16, flags: u16, region: u16, length: u32) {
        let descriptor = Descriptor { flags, region, length, offset: 0 };
        self.words(slot).0.store(descriptor.first_word(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    fn regions() -> Arc<Regions> {
        Regions::new(vec![Region::make(8192).expect("region")])
    }

    #[test]
    fn the_layout_is_the_protocols() {
        let regions = regions();
        let ring = Ring::new(&regions, 0, 64, 3).expect("ring");
        ring.initialise();
        ring.set_head(0x0102);
        ring.set_tail(0x0304);
        ring.set_descriptor(9, Descriptor { flags: 1, region: 2, length: 3, offset: 4 });
        let base = regions.span(0, 64, ring_bytes(3)).expect("inside");
        // SAFETY: inside the region; nobody else is there.
        let byte = |at: usize| unsafe { base.add(at).read_volatile() };
        assert_eq!([byte(0), byte(1), byte(2), byte(3)], COOKIE.to_ne_bytes());
        assert_eq!([byte(4), byte(6), byte(7), byte(64), byte(65)], [1, 2, 1, 4, 3]);
        let second = 128 + 16; // slot 9 of 8 is slot 1
        assert_eq!(
            [byte(second), byte(second + 2), byte(second + 4), byte(second + 8)],
            [1, 2, 3, 4]
        );
        assert_eq!(ring.descriptor(1), Descriptor { flags: 1, region: 2, length: 3, offset: 4 });
        assert_eq!(ring.check_cookie(), Ok(()));
    }

    #[test]
    fn a_ring_outside_its_region_or_crooked_is_refused() {
        let regions = regions();
        let size = regions.list()[0].size() as u32;
        let refused = |region, offset, log2| Ring::new(&regions, region, offset, log2).err();
        assert_eq!(refused(0, 0, 15), Some(RingError::Size(15)));
        assert_eq!(refused(0, 8, 3), Some(RingError::Place { region: 0, offset: 8 }));
        assert_eq!(refused(1, 0, 3), Some(RingError::Place { region: 1, offset: 0 }));
        let end = size - 128;
        assert_eq!(refused(0, end, 3), Some(RingError::Place { region: 0, offset: end }));
        assert_eq!(
            Ring::new(&regions, 0, 0, 3).ok().and_then(|r| r.check_cookie().err()),
            Some(RingError::Cookie)
        );
    }
}
