//! Receiving: each frame is copied once, from the ring's buffer into one of ours.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::Arc;

use quiver_core::cpu::prefetch;
use quiver_core::graph::frame::FRAME_PACKETS_MAX;
use quiver_core::memory::buffer::{BufferCache, BufferPool};
use quiver_core::worker::device::RxQueue;
use quiver_core::worker::poll::Bell;
use quiver_core::{Context, Frame, NodeId, Packet};

use crate::copy::{Registers, copy_exactly, copy_pieces, in_all_variants, in_pieces};
use crate::lend::Lender;
use crate::link::{Fault, Link};
use crate::reasons::MemifReason;
use crate::ring::{MASK_INTERRUPT, NEXT, Ring};
use crate::slots::{AnySlots, OwnSlots, PeerSlots, Slots};

/// How many descriptors ahead of the copy are read, and their bytes asked for. They come from
/// another core's cache: about 110 ns.
const AHEAD: usize = 32;
/// A frame longer than this has a second line that is asked for ahead; those behind it the
/// processor fetches by itself.
pub(crate) const LINE_BYTES: usize = 64;
/// Bytes of a frame at most, over all its descriptors.
pub(crate) const FRAME_BYTES_MAX: usize = 65_535;
/// Looks at the peer's index before sleeping. A peer that does not fence between its index and our
/// flags (DPDK's does not) may miss our wish for an interrupt by as long as its store buffer takes;
/// the pauses between the looks are longer than that.
const LOOKS_BEFORE_SLEEP: usize = 2;
const PAUSES_BETWEEN_LOOKS: usize = 32;

/// A ring that we receive from.
pub(crate) struct MemifRx {
    pub(crate) ring: Ring,
    slots: AnySlots,
    /// Rung when the peer sends an interrupt; ours alone.
    bell: Arc<Bell>,
    pub(crate) link: Arc<Link>,
    /// The next slot to take.
    pub(crate) next: u16,
    /// The peer's index when it was last looked at.
    pub(crate) seen: u16,
    /// The buffers that the peer fills, when it borrows them.
    pub(crate) lender: Option<Lender>,
}

impl MemifRx {
    pub(crate) fn new(
        ring: Ring,
        slots: AnySlots,
        bell: Arc<Bell>,
        link: Arc<Link>,
        pool: &Arc<BufferPool>,
    ) -> MemifRx {
        ring.set_flags(MASK_INTERRUPT);
        let mut lender = None;
        match slots {
            AnySlots::Peer(_) => ring.set_tail(0),
            AnySlots::Own(_) => ring.set_head(ring.size()), // all slots are ready to be filled
            // none is, yet
            AnySlots::Borrowed(lent) => lender = Some(Lender::new(lent, &ring, pool)),
        }
        MemifRx { ring, slots, bell, link, next: 0, seen: 0, lender }
    }

    #[inline(always)]
    fn peers_index(&self) -> u16 {
        match self.slots {
            AnySlots::Peer(_) => self.ring.head(),
            AnySlots::Own(_) | AnySlots::Borrowed(_) => self.ring.tail(),
        }
    }

    /// Let the peer have the slots up to `next`.
    #[inline(always)]
    fn publish(&self) {
        match self.slots {
            AnySlots::Peer(_) => self.ring.set_tail(self.next),
            AnySlots::Own(_) => self.ring.set_head(self.next.wrapping_add(self.ring.size())),
            AnySlots::Borrowed(_) => {} // slots are ready when they hold a buffer again
        }
    }

    /// Frames' slots that wait, after a look at the peer's index when we know of fewer than
    /// `wanted`; `None` when the index cannot be.
    #[inline(always)]
    pub(crate) fn available(&mut self, wanted: usize) -> Option<usize> {
        let known = self.seen.wrapping_sub(self.next) as usize;
        if known >= wanted {
            return Some(known);
        }
        self.seen = self.peers_index();
        let available = self.seen.wrapping_sub(self.next);
        (available <= self.ring.size()).then_some(available as usize)
    }

    /// Count a ring in which the peer had nearly no place left.
    #[inline(always)]
    pub(crate) fn note_filled(&self, available: usize, cx: &Context<'_>) {
        let size = usize::from(self.ring.size());
        if available + FRAME_PACKETS_MAX.min(size / 4) > size {
            cx.interface_counters(self.link.interface).rx_ring_full.add(1);
        }
    }

    #[inline(always)]
    fn receive_from<S: Slots>(&mut self, slots: S, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(mut available) = self.available(frame.room()) else {
            self.seen = self.next;
            cx.count(MemifReason::PeerIndex, 1);
            return self.link.raise(cx, Fault::Index);
        };
        if available == 0 {
            return;
        }
        self.note_filled(available, cx);
        while available > 0 && frame.room() > 0 {
            let count = cx.buffers.reserve(available.min(frame.room()));
            if count == 0 {
                cx.count(MemifReason::Waiting, 1);
                break;
            }
            let taken =
                receive_plain(cx.variant, &self.ring, slots, self.next, count, cx.buffers, frame);
            self.next = self.next.wrapping_add(taken as u16);
            available -= taken;
            if taken < count {
                let taken =
                    receive_other(&self.ring, slots, self.next, available, &self.link, cx, frame);
                if taken == 0 {
                    break; // no buffer after all
                }
                self.next = self.next.wrapping_add(taken as u16);
                available -= taken;
            }
        }
        self.publish();
    }
}

in_all_variants!(
    /// Take up to `count` frames that lie in one slot each and fit in a buffer; how many there were
    /// in front of the first one that does not. There must be `count` buffers in the cache and room
    /// for as many packets.
    receive_plain = receive_plain_loop,
    (
        ring: &Ring, slots: S, first: u16, count: usize, buffers: &mut BufferCache,
        frame: &mut Frame
    ) -> usize,
    <S: Slots>
);

#[inline(always)]
fn receive_plain_loop<S: Slots, R: Registers>(
    ring: &Ring,
    slots: S,
    first: u16,
    count: usize,
    buffers: &mut BufferCache,
    frame: &mut Frame,
) -> usize {
    let data_bytes = buffers.pool().data_bytes();
    let mut sources = [std::ptr::null_mut::<u8>(); AHEAD];
    let mut lengths = [0u16; AHEAD];
    let (mut taken, mut seen, mut end) = (0, 0, count);
    loop {
        while seen < end.min(taken + AHEAD) {
            let (descriptor, place) =
                slots.locate(ring, first.wrapping_add(seen as u16), in_pieces);
            let length = descriptor.length as usize;
            // An empty frame is one of 2^64 - 1 bytes too many.
            let fits = length.wrapping_sub(1) < data_bytes && descriptor.flags & NEXT == 0;
            match place.filter(|_| fits) {
                Some(place) => {
                    prefetch(place);
                    if length > LINE_BYTES {
                        prefetch(place.wrapping_add(LINE_BYTES));
                    }
                    sources[seen % AHEAD] = place;
                    lengths[seen % AHEAD] = length as u16;
                    seen += 1;
                }
                None => end = seen,
            }
        }
        if taken == end {
            return taken;
        }
        let Some(mut packet) = buffers.packet() else { return taken };
        let length = lengths[taken % AHEAD] as usize;
        // SAFETY: the source lies in its region with all its pieces, as `locate` has checked; the
        // buffer holds `data_bytes` and, as its stride is whole lines, the pieces that cover them.
        unsafe { copy_pieces::<R>(sources[taken % AHEAD], packet.as_ptr().cast_mut(), length) };
        let fits = packet.set_length(length, data_bytes);
        debug_assert!(fits);
        if let Err(packet) = frame.push(packet) {
            buffers.free(packet); // cannot be: there is room for `count`
            return taken;
        }
        slots.release(ring, first.wrapping_add(taken as u16));
        taken += 1;
    }
}

/// Take one frame that is none of the plain kind: in several slots, longer than a buffer, at the
/// very end of a region, or wrong. Returns its slots, of which there are `available`.
#[cold]
#[inline(never)]
fn receive_other<S: Slots>(
    ring: &Ring,
    slots: S,
    first: u16,
    available: usize,
    link: &Link,
    cx: &mut Context<'_>,
    frame: &mut Frame,
) -> usize {
    let Some(mut packet) = cx.buffers.packet() else { return 0 };
    let mut wrong = None;
    let mut taken = 0;
    loop {
        if taken == available {
            wrong = wrong.or(Some(MemifReason::ChainBroken));
            break;
        }
        let index = first.wrapping_add(taken as u16);
        let (descriptor, place) = slots.locate(ring, index, |bytes| bytes);
        if wrong.is_none() {
            wrong = append(&mut packet, place, descriptor.length as usize, cx);
        }
        slots.release(ring, index);
        taken += 1;
        if descriptor.flags & NEXT == 0 {
            break;
        }
    }
    if wrong.is_none() && packet.length() == 0 {
        wrong = Some(MemifReason::DescriptorEmpty);
    }
    match wrong {
        None => {
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet);
                return 0; // cannot be: the caller has seen room
            }
        }
        Some(reason) => {
            cx.buffers.free(packet);
            cx.count(reason, 1);
            let counters = cx.interface_counters(link.interface);
            match reason {
                MemifReason::NoBuffer => counters.rx_no_buffer.add(1),
                _ => counters.rx_errors.add(1),
            }
        }
    }
    taken
}

/// Append what a slot holds; why that is not possible.
fn append(
    packet: &mut Packet,
    place: Option<*mut u8>,
    length: usize,
    cx: &mut Context<'_>,
) -> Option<MemifReason> {
    let Some(mut from) = place else { return Some(MemifReason::DescriptorOutside) };
    if packet.length() + length > FRAME_BYTES_MAX {
        return Some(MemifReason::FrameTooLong);
    }
    let all = packet.append_with(length, cx.buffers, |piece| {
        // SAFETY: the pieces together are `length` bytes, which lie in the region from `place` on.
        unsafe {
            copy_exactly(from, piece.as_mut_ptr(), piece.len());
            from = from.add(piece.len());
        }
    });
    if all { None } else { Some(MemifReason::NoBuffer) }
}

impl RxQueue for MemifRx {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        if !self.link.is_broken() {
            match self.slots {
                AnySlots::Peer(slots) => self.receive_from::<PeerSlots>(slots, cx, frame),
                AnySlots::Own(slots) => self.receive_from::<OwnSlots>(slots, cx, frame),
                AnySlots::Borrowed(_) => self.receive_borrowed(cx, frame),
            }
        }
        None
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.bell.fd())
    }

    fn arm(&mut self, interrupts: bool) -> bool {
        if !interrupts {
            self.ring.set_flags(MASK_INTERRUPT);
            self.bell.clear();
            return false;
        }
        if self.link.is_broken() {
            return false;
        }
        self.ring.set_flags(0);
        for _ in 0..LOOKS_BEFORE_SLEEP {
            if self.peers_index() != self.next {
                self.ring.set_flags(MASK_INTERRUPT);
                return true;
            }
            (0..PAUSES_BETWEEN_LOOKS).for_each(|_| std::hint::spin_loop());
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Region, Regions};
    use crate::ring::ring_bytes;
    use crate::transmit::send_plain;
    use proptest::prelude::*;
    use quiver_core::cpu::Variant;
    use quiver_core::memory::buffer::DATA_BYTES_DEFAULT;
    use quiver_core::memory::mapping::PageSize;

    const LOG2: u8 = 6;

    /// What the frames are after they were sent into a ring and received from it, each loop in its
    /// form, and how many were plain.
    fn through_a_ring(
        variant: Variant,
        frames: &[Vec<u8>],
        buffer_bytes: u32,
    ) -> (usize, Vec<Vec<u8>>) {
        let regions = Regions::new(vec![Region::make(1 << 19).expect("region")]);
        let ring = Ring::new(&regions, 0, 0, LOG2).expect("ring");
        ring.initialise();
        let own =
            OwnSlots::new(&regions, &ring, ring_bytes(LOG2) as u32, buffer_bytes).expect("slots");
        let pool = BufferPool::new(512, DATA_BYTES_DEFAULT, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        let (mut out, mut back) = (Frame::new(), Frame::new());
        for bytes in frames {
            let mut packet = cache.packet().expect("buffer");
            assert!(packet.append(bytes, &mut cache));
            out.push(packet).expect("room");
        }
        let sent = send_plain(variant, &ring, own, 5, out.packets(), DATA_BYTES_DEFAULT);
        let got = receive_plain(variant, &ring, PeerSlots, 5, sent, &mut cache, &mut back);
        assert_eq!(got, sent);
        let seen = back.packets().iter().map(|packet| packet.bytes().to_vec()).collect();
        cache.free_all(&mut out);
        cache.free_all(&mut back);
        cache.report();
        assert_eq!(pool.free(), pool.total());
        (sent, seen)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_variant_sends_and_receives_the_same_bytes(
            lengths in proptest::collection::vec(1usize..2400, 0..64), buffer_bytes in 256u32..2048
        ) {
            let frames: Vec<_> =
                lengths.iter().enumerate().map(|(n, l)| crate::router::frame(n, *l)).collect();
            let slot = buffer_bytes as usize;
            let plain =
                lengths.iter().take_while(|l| in_pieces(**l) <= slot && **l <= DATA_BYTES_DEFAULT);
            let plain = plain.count();
            for variant in Variant::available() {
                let (sent, seen) = through_a_ring(variant, &frames, buffer_bytes);
                prop_assert_eq!(sent, plain);
                prop_assert!(seen == frames[..plain], "{:?}", variant);
            }
        }
    }
}
