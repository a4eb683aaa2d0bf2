//! Sending: each packet is copied once, from our buffer into the ring's.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use quiver_core::graph::drop_reason::DropReason;
use quiver_core::graph::node::{DROP, Reason};
use quiver_core::memory::buffer::BufferPool;
use quiver_core::memory::epoch::Published;
use quiver_core::worker::device::TxQueue;
use quiver_core::{Context, Frame, NodeId, Packet, WorkerId};

use crate::copy::{
    Registers, copy_exactly, copy_pieces, in_all_variants, in_pieces, prefetch_to_write,
};
use crate::interrupt::Ringer;
use crate::lend::Lender;
use crate::link::{Fault, Link};
use crate::reasons::MemifReason;
use crate::receive::LINE_BYTES;
use crate::ring::{MASK_INTERRUPT, NEXT, Ring};
use crate::slots::{AnySlots, OwnSlots, PeerSlots, Slots, WritableSlot};

/// How many slots ahead of the copy are looked up, and their lines asked for.
const AHEAD: usize = 16;

/// The rings that an interface sends on now; none while nobody is connected.
pub(crate) struct TxRings(pub(crate) Box<[TxRing]>);

/// A ring that we send on.
pub(crate) struct TxRing {
    pub(crate) ring: Ring,
    slots: AnySlots,
    ringer: Ringer,
    pub(crate) link: Arc<Link>,
    /// Several workers send on it.
    shared: bool,
    busy: AtomicBool,
    cursor: UnsafeCell<Cursor>,
}

/// Where the sender is.
pub(crate) struct Cursor {
    /// The next slot to fill.
    pub(crate) next: u16,
    /// The peer's index when it was last looked at.
    pub(crate) seen: u16,
    /// The buffers that the peer reads, when it borrows them.
    pub(crate) lender: Option<Lender>,
}

// SAFETY: `cursor` is touched only by the one worker that the ring belongs to or, when several
// share it, by the one that holds `busy`. All the rest is Sync.
unsafe impl Sync for TxRing {}

impl TxRing {
    pub(crate) fn new(
        ring: Ring,
        slots: AnySlots,
        ringer: Ringer,
        link: Arc<Link>,
        shared: bool,
        pool: &Arc<BufferPool>,
    ) -> TxRing {
        let mut lender = None;
        match slots {
            AnySlots::Peer(_) => ring.set_tail(0),
            AnySlots::Own(_) => {}
            AnySlots::Borrowed(lent) => lender = Some(Lender::new(lent, &ring, pool)),
        }
        let cursor = UnsafeCell::new(Cursor { next: 0, seen: 0, lender });
        TxRing { ring, slots, ringer, link, shared, busy: AtomicBool::new(false), cursor }
    }

    #[inline(always)]
    fn peers_index(&self) -> u16 {
        match self.slots {
            AnySlots::Peer(_) => self.ring.head(),
            AnySlots::Own(_) | AnySlots::Borrowed(_) => self.ring.tail(),
        }
    }

    /// Slots to fill, after a look at the peer's index when we know of fewer than `wanted`; `None`
    /// when the index cannot be.
    #[inline(always)]
    fn free(&self, cursor: &mut Cursor, wanted: usize) -> Option<usize> {
        let free = |cursor: &Cursor| match self.slots {
            AnySlots::Peer(_) => Some(cursor.seen.wrapping_sub(cursor.next)),
            AnySlots::Own(_) | AnySlots::Borrowed(_) => {
                self.ring.size().checked_sub(cursor.next.wrapping_sub(cursor.seen))
            }
        };
        if let Some(known) = free(cursor).filter(|known| *known as usize >= wanted) {
            return Some(known as usize);
        }
        cursor.seen = self.peers_index();
        free(cursor).filter(|free| *free <= self.ring.size()).map(usize::from)
    }

    /// Let the peer have the slots up to `next`.
    #[inline(always)]
    pub(crate) fn publish(&self, next: u16) {
        match self.slots {
            AnySlots::Peer(_) => self.ring.set_tail(next),
            AnySlots::Own(_) | AnySlots::Borrowed(_) => self.ring.set_head(next),
        }
    }

    /// Wake the peer if it asked for that; after [`publish`](Self::publish), and after what else is
    /// to be done: the fence waits until all stores before it have arrived.
    #[inline(always)]
    pub(crate) fn wake(&self, cx: &Context<'_>) {
        fence(Ordering::SeqCst);
        if self.ring.flags() & MASK_INTERRUPT == 0 && self.ringer.raise() {
            count(cx, self.link.node, MemifReason::Interrupts);
        }
    }

    fn send(&self, cx: &mut Context<'_>, frame: &mut Frame) {
        if self.link.is_broken() {
            return;
        }
        if self.shared {
            while self.busy.swap(true, Ordering::Acquire) {
                std::hint::spin_loop();
            }
        }
        // SAFETY: the ring is this worker's alone, or `busy` is held.
        let cursor = unsafe { &mut *self.cursor.get() };
        match self.slots {
            AnySlots::Peer(slots) => self.send_into::<PeerSlots>(slots, cursor, cx, frame),
            AnySlots::Own(slots) => self.send_into::<OwnSlots>(slots, cursor, cx, frame),
            AnySlots::Borrowed(_) => self.lend(cursor, cx, frame),
        }
        if self.shared {
            self.busy.store(false, Ordering::Release);
        }
    }

    #[inline(always)]
    fn send_into<S: Slots>(
        &self,
        slots: S,
        cursor: &mut Cursor,
        cx: &mut Context<'_>,
        frame: &mut Frame,
    ) {
        let before = cursor.next;
        let mut sent = 0;
        while sent < frame.len() {
            let wanted = frame.len() - sent;
            let Some(free) = self.free(cursor, wanted) else {
                cursor.seen = cursor.next;
                count(cx, self.link.node, MemifReason::PeerIndex);
                self.link.raise(cx, Fault::Index);
                break;
            };
            let room = free.min(wanted);
            if room == 0 {
                break;
            }
            let data_bytes = cx.buffers.pool().data_bytes();
            let packets = &frame.packets()[sent..sent + room];
            let plain = send_plain(cx.variant, &self.ring, slots, cursor.next, packets, data_bytes);
            cursor.next = cursor.next.wrapping_add(plain as u16);
            sent += plain;
            if plain < room {
                let packet = &mut frame.packets_mut()[sent];
                match send_other(&self.ring, slots, cursor.next, free - plain, packet) {
                    Outcome::Sent(used) => {
                        cursor.next = cursor.next.wrapping_add(used as u16);
                        sent += 1;
                    }
                    Outcome::Full => {
                        // It needs more slots than we knew of: perhaps there are more by now.
                        let now = self.free(cursor, self.ring.size() as usize).unwrap_or(0);
                        if now <= free - plain {
                            break;
                        }
                    }
                    Outcome::Dead(reason) => {
                        frame.take_front(sent, |packet| cx.buffers.free(packet));
                        frame.take_front(1, |packet| bury(packet, self.link.node, reason, cx));
                        sent = 0;
                    }
                    Outcome::BadRoom => {
                        count(cx, self.link.node, MemifReason::TxDescriptor);
                        self.link.raise(cx, Fault::TxDescriptor);
                        break;
                    }
                }
            }
        }
        let moved = cursor.next != before;
        if moved {
            self.publish(cursor.next);
        }
        if sent == frame.len() {
            cx.buffers.free_all(frame);
        } else {
            frame.take_front(sent, |packet| cx.buffers.free(packet));
        }
        if moved {
            self.wake(cx);
        }
    }
}

#[cold]
pub(crate) fn count(cx: &Context<'_>, node: NodeId, reason: MemifReason) {
    cx.counters.reason(node, reason.number()).add(1);
}

/// Let a packet die for a reason of `memif-input`.
#[cold]
pub(crate) fn bury(mut packet: Packet, node: NodeId, reason: MemifReason, cx: &mut Context<'_>) {
    packet.hand_over(DropReason::of(node, reason));
    cx.emit(packet, DROP);
}

in_all_variants!(
    /// Send the packets in front that are in one buffer each and fit in a slot each; how many there
    /// were. There must be a free slot for each of `packets`.
    send_plain = send_plain_loop,
    (ring: &Ring, slots: S, first: u16, packets: &[Packet], data_bytes: usize) -> usize,
    <S: Slots>
);

#[inline(always)]
fn send_plain_loop<S: Slots, R: Registers>(
    ring: &Ring,
    slots: S,
    first: u16,
    packets: &[Packet],
    data_bytes: usize,
) -> usize {
    let nowhere = WritableSlot { at: std::ptr::null_mut(), bytes: 0, region: 0 };
    let mut rooms = [nowhere; AHEAD];
    let mut seen = 0;
    for (sent, packet) in packets.iter().enumerate() {
        while seen < packets.len().min(sent + AHEAD) {
            let room = slots.room(ring, first.wrapping_add(seen as u16)).unwrap_or(nowhere);
            prefetch_to_write(room.at);
            if packets[seen].segment_length() > LINE_BYTES {
                prefetch_to_write(room.at.wrapping_add(LINE_BYTES));
            }
            rooms[seen % AHEAD] = room;
            seen += 1;
        }
        let room = rooms[sent % AHEAD];
        let length = packet.segment_length();
        let touched = in_pieces(length);
        let is_plain = !packet.is_chained() && length > 0;
        if !is_plain || touched > room.bytes || touched - length > packet.tailroom(data_bytes) {
            return sent;
        }
        // SAFETY: whole pieces lie in our buffer (its tail room covers them) and in the slot.
        unsafe { copy_pieces::<R>(packet.as_ptr(), room.at, length) };
        ring.set_length(first.wrapping_add(sent as u16), 0, room.region, length as u32);
    }
    packets.len()
}

/// What became of a packet.
enum Outcome {
    /// Sent, in so many slots.
    Sent(usize),
    /// There is no room now.
    Full,
    /// It can never be sent.
    Dead(MemifReason),
    /// The peer's slot is not in its regions.
    BadRoom,
}

/// Send a packet that is none of the plain kind: in several buffers, or longer than a slot.
#[cold]
#[inline(never)]
fn send_other<S: Slots>(
    ring: &Ring,
    slots: S,
    first: u16,
    free: usize,
    packet: &Packet,
) -> Outcome {
    if packet.length() == 0 {
        return Outcome::Dead(MemifReason::TxEmpty);
    }
    let Some(mut room) = slots.room(ring, first) else { return Outcome::BadRoom };
    let (mut used, mut filled) = (1, 0);
    for mut segment in packet.segments() {
        while !segment.is_empty() {
            if filled == room.bytes {
                if used == free {
                    let never = used == ring.size() as usize;
                    return if never {
                        Outcome::Dead(MemifReason::TxTooLong)
                    } else {
                        Outcome::Full
                    };
                }
                ring.set_length(
                    first.wrapping_add(used as u16 - 1),
                    NEXT,
                    room.region,
                    filled as u32,
                );
                let Some(next) = slots.room(ring, first.wrapping_add(used as u16)) else {
                    return Outcome::BadRoom;
                };
                (room, filled) = (next, 0);
                used += 1;
            }
            let piece = segment.len().min(room.bytes - filled);
            // SAFETY: `piece` bytes are in the segment, and in the slot from `filled` on.
            unsafe { copy_exactly(segment.as_ptr(), room.at.add(filled), piece) };
            filled += piece;
            segment = &segment[piece..];
        }
    }
    ring.set_length(first.wrapping_add(used as u16 - 1), 0, room.region, filled as u32);
    Outcome::Sent(used)
}

/// A worker's way out of an interface.
pub(crate) struct MemifTx {
    worker: usize,
    rings: Arc<Published<TxRings>>,
}

impl MemifTx {
    pub(crate) fn new(worker: WorkerId, rings: &Arc<Published<TxRings>>) -> MemifTx {
        MemifTx { worker: worker.index(), rings: rings.clone() }
    }
}

impl TxQueue for MemifTx {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let rings = &self.rings.read(cx.pass).0;
        if !rings.is_empty() {
            rings[self.worker % rings.len()].send(cx, frame);
        }
    }
}
