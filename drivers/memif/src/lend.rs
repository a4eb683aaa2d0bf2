//! Zero-copy: a slave lends buffers of the router's pool to the peer. On the way in the peer fills
//! them and they become packets; on the way out they are packets, and come back to the pool when
//! the peer has read them. Which buffer lies behind a slot is kept here, in private memory: no
//! descriptor is believed.

use std::sync::Arc;

use quiver_core::cpu::prefetch;
use quiver_core::memory::buffer::{Buffer, BufferPool, DATA_OFFSET};
use quiver_core::{Context, Frame, Packet};

use crate::link::Fault;
use crate::reasons::MemifReason;
use crate::receive::{FRAME_BYTES_MAX, MemifRx};
use crate::ring::{Descriptor, NEXT, Ring};
use crate::transmit::{Cursor, TxRing, bury, count};

/// The region that is the pool's memory.
pub(crate) const POOL_REGION: u16 = 1;
/// How many slots ahead the first line of a received frame is asked for.
const AHEAD: usize = 16;
/// Slots filled with fresh buffers in one call at most.
const REFILL_MAX: usize = 256;

/// Where the pool lies.
#[derive(Clone, Copy)]
pub(crate) struct BorrowedSlots {
    base: usize,
    data_bytes: u32,
}

impl BorrowedSlots {
    /// `None` when the pool is too large for offsets of 32 bits.
    pub(crate) fn new(pool: &BufferPool) -> Option<BorrowedSlots> {
        let memory = pool.memory();
        let fits = memory.size_bytes() as u64 <= crate::region::REGION_BYTES_MAX;
        fits.then(|| BorrowedSlots {
            base: memory.base().as_ptr() as usize,
            data_bytes: pool.data_bytes() as u32,
        })
    }
}

/// The buffers behind the slots of one ring.
pub(crate) struct Lender {
    slots: BorrowedSlots,
    held: Box<[Option<Buffer>]>,
    pool: Arc<BufferPool>,
    /// Receiving: up to where slots have a buffer. Sending: from where on buffers are still out.
    edge: u16,
}

impl Lender {
    pub(crate) fn new(slots: BorrowedSlots, ring: &Ring, pool: &Arc<BufferPool>) -> Lender {
        let held = (0..ring.size()).map(|_| None).collect();
        Lender { slots, held, pool: pool.clone(), edge: 0 }
    }

    /// Put a buffer behind a slot, and say in the descriptor where `length` bytes of it are.
    #[inline(always)]
    fn put(
        &mut self,
        ring: &Ring,
        index: u16,
        buffer: Buffer,
        place: *const u8,
        length: usize,
        flags: u16,
    ) {
        let offset = (place as usize - self.slots.base) as u32;
        ring.set_descriptor(
            index,
            Descriptor { flags, region: POOL_REGION, length: length as u32, offset },
        );
        self.held[ring.slot(index) as usize] = Some(buffer);
    }

    #[inline(always)]
    fn take(&mut self, ring: &Ring, index: u16) -> Option<Buffer> {
        self.held[ring.slot(index) as usize].take()
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        self.pool.take_back(self.held.iter_mut().filter_map(Option::take));
    }
}

impl MemifRx {
    /// Take over what the peer has filled, and lend it as many empty buffers.
    pub(crate) fn receive_borrowed(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(mut lender) = self.lender.take() else { return };
        self.take_over(&mut lender, cx, frame);
        if !self.link.is_broken() {
            self.refill(&mut lender, cx);
        }
        self.lender = Some(lender);
    }

    #[inline(always)]
    fn take_over(&mut self, lender: &mut Lender, cx: &mut Context<'_>, frame: &mut Frame) {
        let offered = lender.edge.wrapping_sub(self.next) as usize;
        let available = self.available(frame.room()).filter(|available| *available <= offered);
        let Some(available) = available else {
            self.seen = self.next;
            cx.count(MemifReason::PeerIndex, 1);
            return self.link.raise(cx, Fault::Index);
        };
        self.note_filled(available, cx);
        let mut left = available;
        let data_bytes = lender.slots.data_bytes;
        while left > 0 && frame.room() > 0 {
            let ring = &self.ring;
            if left > AHEAD {
                let ahead = ring.slot(self.next.wrapping_add(AHEAD as u16)) as usize;
                if let Some(buffer) = &lender.held[ahead] {
                    prefetch(buffer.data());
                }
            }
            let descriptor = ring.descriptor(self.next);
            let fits = descriptor.length.wrapping_sub(1) < data_bytes;
            if !fits || descriptor.flags & NEXT != 0 {
                let used = self.take_over_other(lender, left, cx, frame);
                self.next = self.next.wrapping_add(used as u16);
                left -= used;
                continue;
            }
            // cannot be: it was offered
            let Some(buffer) = lender.take(ring, self.next) else { break };
            self.next = self.next.wrapping_add(1);
            left -= 1;
            let mut packet = Packet::new(buffer);
            let spans = packet.set_span(DATA_OFFSET, descriptor.length as u16, data_bytes as usize);
            debug_assert!(spans);
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet); // cannot be: there is room
            }
        }
    }

    /// Take over one frame that lies in several buffers, or is wrong. Returns its slots, of which
    /// there are `available`.
    #[cold]
    #[inline(never)]
    fn take_over_other(
        &mut self,
        lender: &mut Lender,
        available: usize,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) -> usize {
        let mut whole: Option<Packet> = None;
        let (mut wrong, mut taken, mut bytes) = (None, 0, 0);
        loop {
            if taken == available {
                wrong = wrong.or(Some(MemifReason::ChainBroken));
                break;
            }
            let index = self.next.wrapping_add(taken as u16);
            let descriptor = self.ring.descriptor(index);
            taken += 1;
            // cannot be: it was offered
            let Some(buffer) = lender.take(&self.ring, index) else { break };
            bytes += (descriptor.length as usize).min(FRAME_BYTES_MAX + 1);
            if descriptor.length > lender.slots.data_bytes {
                wrong = wrong.or(Some(MemifReason::DescriptorOutside));
            } else if bytes > FRAME_BYTES_MAX {
                wrong = wrong.or(Some(MemifReason::FrameTooLong));
            }
            let length = if wrong.is_none() { descriptor.length as u16 } else { 0 };
            match &mut whole {
                Some(packet) => packet.chain(buffer, DATA_OFFSET, length),
                None => {
                    let mut packet = Packet::new(buffer);
                    let spans =
                        packet.set_span(DATA_OFFSET, length, lender.slots.data_bytes as usize);
                    debug_assert!(spans);
                    whole = Some(packet);
                }
            }
            if descriptor.flags & NEXT == 0 {
                break;
            }
        }
        if wrong.is_none() && bytes == 0 {
            wrong = Some(MemifReason::DescriptorEmpty);
        }
        let Some(packet) = whole else { return taken };
        match wrong {
            None => {
                if let Err(packet) = frame.push(packet) {
                    cx.buffers.free(packet); // cannot be: there is room
                }
            }
            Some(reason) => {
                cx.buffers.free(packet);
                cx.count(reason, 1);
                cx.interface_counters(self.link.interface).rx_errors.add(1);
            }
        }
        taken
    }

    /// Put fresh buffers behind the slots that have none.
    #[inline(always)]
    fn refill(&mut self, lender: &mut Lender, cx: &mut Context<'_>) {
        let offered = lender.edge.wrapping_sub(self.next);
        let wanted = (self.ring.size().wrapping_sub(offered) as usize).min(REFILL_MAX);
        if wanted == 0 {
            return;
        }
        let count = cx.buffers.reserve(wanted);
        if count == 0 {
            if offered == 0 {
                cx.count(MemifReason::Waiting, 1);
            }
            return;
        }
        for _ in 0..count {
            let Some(buffer) = cx.buffers.take() else { break };
            let place = buffer.data();
            lender.put(&self.ring, lender.edge, buffer, place, lender.slots.data_bytes as usize, 0);
            lender.edge = lender.edge.wrapping_add(1);
        }
        self.ring.set_head(lender.edge);
    }
}

impl TxRing {
    /// Lend the buffers of packets to the peer.
    pub(crate) fn lend(&self, cursor: &mut Cursor, cx: &mut Context<'_>, frame: &mut Frame) {
        let Some(mut lender) = cursor.lender.take() else { return };
        let before = cursor.next;
        self.take_back(&mut lender, cursor, frame.len(), cx);
        if !self.link.is_broken() {
            self.lend_all(&mut lender, cursor, cx, frame);
        }
        if cursor.next != before {
            self.publish(cursor.next);
            self.wake(cx);
        }
        cursor.lender = Some(lender);
    }

    /// Give the buffers that the peer has read back to the pool. The peer's index is looked at when
    /// there is no room for `wanted`, or a quarter of the ring is out.
    #[inline(always)]
    fn take_back(
        &self,
        lender: &mut Lender,
        cursor: &mut Cursor,
        wanted: usize,
        cx: &mut Context<'_>,
    ) {
        let out = cursor.next.wrapping_sub(lender.edge);
        let size = self.ring.size();
        if out < size / 4 && out as usize + wanted <= size as usize {
            return;
        }
        let seen = self.ring.tail();
        let back = seen.wrapping_sub(lender.edge);
        if back > out {
            count(cx, self.link.node, MemifReason::PeerIndex);
            return self.link.raise(cx, Fault::Index);
        }
        cursor.seen = seen;
        let first = lender.edge;
        lender.edge = seen;
        cx.buffers.give_all((0..back).filter_map(|place| {
            lender.held[self.ring.slot(first.wrapping_add(place)) as usize].take()
        }));
    }

    #[inline(always)]
    fn lend_all(
        &self,
        lender: &mut Lender,
        cursor: &mut Cursor,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) {
        let mut free = (self.ring.size() - cursor.next.wrapping_sub(lender.edge)) as usize;
        while !frame.is_empty() && free > 0 {
            let run = frame.packets().iter().take(free);
            let run = run.take_while(|p| !p.is_chained() && p.segment_length() > 0).count();
            frame.take_front(run, |packet| {
                packet.into_segments(|buffer, place, length| {
                    lender.put(&self.ring, cursor.next, buffer, place, length, 0);
                });
                cursor.next = cursor.next.wrapping_add(1);
            });
            free -= run;
            if frame.is_empty() || free == 0 {
                return;
            }
            match self.lend_other(lender, cursor, free, cx, frame) {
                Some(used) => free -= used,
                None => return,
            }
        }
    }

    /// Lend the first packet, which is none of the plain kind: in several buffers, or empty. How
    /// many slots it took; `None` when it must wait.
    #[cold]
    #[inline(never)]
    fn lend_other(
        &self,
        lender: &mut Lender,
        cursor: &mut Cursor,
        free: usize,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) -> Option<usize> {
        let packet = frame.packets().first()?;
        let pieces = packet.segments().filter(|segment| !segment.is_empty()).count();
        let death = match pieces {
            0 => Some(MemifReason::TxEmpty),
            pieces if pieces > self.ring.size() as usize => Some(MemifReason::TxTooLong),
            _ => None,
        };
        if let Some(reason) = death {
            frame.take_front(1, |packet| bury(packet, self.link.node, reason, cx));
            return Some(0);
        }
        if pieces > free {
            return None;
        }
        let mut left = pieces;
        frame.take_front(1, |packet| {
            packet.into_segments(|buffer, place, length| {
                if length == 0 {
                    return cx.buffers.give(buffer);
                }
                left -= 1;
                let flags = if left > 0 { NEXT } else { 0 };
                lender.put(&self.ring, cursor.next, buffer, place, length, flags);
                cursor.next = cursor.next.wrapping_add(1);
            });
        });
        Some(pieces)
    }
}
