//! Where the bytes of a ring's slots lie. The master reads it from the slave's descriptors, each
//! time, and checks it; the slave knows it and believes no descriptor.
#![allow(unsafe_code)]

use std::sync::Arc;

use crate::lend::BorrowedSlots;
use crate::region::Regions;
use crate::ring::{Descriptor, Ring};

/// Where a slot's bytes lie.
pub(crate) trait Slots: Copy {
    /// What the slot says now: flags, length and address, when the slot lies in its region with
    /// `bytes(length)` bytes.
    fn locate(
        self,
        ring: &Ring,
        index: u16,
        bytes: impl Fn(usize) -> usize,
    ) -> (Descriptor, Option<*mut u8>);

    /// The receiver is done with the slot: a slave makes it ready to be filled again.
    fn release(self, ring: &Ring, index: u16);

    /// The room for sending into a slot.
    fn room(self, ring: &Ring, index: u16) -> Option<WritableSlot>;
}

/// A slot to send into.
#[derive(Clone, Copy)]
pub(crate) struct WritableSlot {
    pub(crate) at: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) region: u16,
}

/// The peer's buffers, found by its descriptors: the master's way.
#[derive(Clone, Copy)]
pub(crate) struct PeerSlots;

impl Slots for PeerSlots {
    #[inline(always)]
    fn locate(
        self,
        ring: &Ring,
        index: u16,
        bytes: impl Fn(usize) -> usize,
    ) -> (Descriptor, Option<*mut u8>) {
        let descriptor = ring.descriptor(index);
        let place = ring.regions().span(
            descriptor.region,
            descriptor.offset,
            bytes(descriptor.length as usize),
        );
        (descriptor, place)
    }

    #[inline(always)]
    fn release(self, _: &Ring, _: u16) {}

    #[inline(always)]
    fn room(self, ring: &Ring, index: u16) -> Option<WritableSlot> {
        let Descriptor { region, offset, length, .. } = ring.descriptor(index);
        let at = ring.regions().span(region, offset, length as usize)?;
        (length > 0).then_some(WritableSlot { at, bytes: length as usize, region })
    }
}

/// Our own buffers, one for each slot, in region 0: the slave's way.
#[derive(Clone, Copy)]
pub(crate) struct OwnSlots {
    base: *mut u8,
    offset: u32,
    stride: u32,
    bytes: u32,
}

// SAFETY: a place in regions that the ring holds, reached only by raw pointers.
unsafe impl Send for OwnSlots {}
// SAFETY: as above.
unsafe impl Sync for OwnSlots {}

/// Bytes from one buffer to the next: an odd number of cache lines, so that the first lines of
/// neighbouring buffers do not fall on the same few sets of the processor's cache.
pub(crate) fn stride_bytes(buffer_bytes: u32) -> usize {
    ((buffer_bytes as usize).div_ceil(64) | 1) * 64
}

impl OwnSlots {
    /// Buffers of `bytes` for `ring`, the first at `offset` of region 0; `None` when they do not
    /// fit.
    pub(crate) fn new(
        regions: &Arc<Regions>,
        ring: &Ring,
        offset: u32,
        bytes: u32,
    ) -> Option<OwnSlots> {
        let stride = stride_bytes(bytes);
        let base = regions.span(0, offset, stride * ring.size() as usize)?;
        let slots = OwnSlots { base, offset, stride: stride as u32, bytes };
        for index in 0..ring.size() {
            let offset = offset + index as u32 * slots.stride;
            ring.set_descriptor(index, Descriptor { flags: 0, region: 0, length: bytes, offset });
        }
        Some(slots)
    }

    #[inline(always)]
    fn place(self, ring: &Ring, index: u16) -> *mut u8 {
        // SAFETY: there is a buffer for every slot, as `new` has checked.
        unsafe { self.base.add(ring.slot(index) as usize * self.stride as usize) }
    }
}

impl Slots for OwnSlots {
    #[inline(always)]
    fn locate(
        self,
        ring: &Ring,
        index: u16,
        _: impl Fn(usize) -> usize,
    ) -> (Descriptor, Option<*mut u8>) {
        let descriptor = ring.descriptor(index);
        // Whole pieces fit whenever the length does: the stride is a multiple of a piece.
        let fits = descriptor.length <= self.bytes;
        (descriptor, fits.then(|| self.place(ring, index)))
    }

    #[inline(always)]
    fn release(self, ring: &Ring, index: u16) {
        let offset = self.offset + ring.slot(index) as u32 * self.stride;
        ring.set_descriptor(index, Descriptor { flags: 0, region: 0, length: self.bytes, offset });
    }

    #[inline(always)]
    fn room(self, ring: &Ring, index: u16) -> Option<WritableSlot> {
        Some(WritableSlot { at: self.place(ring, index), bytes: self.bytes as usize, region: 0 })
    }
}

/// Whose buffers lie behind a ring.
#[derive(Clone, Copy)]
pub(crate) enum AnySlots {
    /// The peer's: we are the master.
    Peer(PeerSlots),
    /// The slave's, made for the ring.
    Own(OwnSlots),
    /// The slave's, of the router's pool, borrowed by the peer one by one.
    Borrowed(BorrowedSlots),
}
