//! `tg-rx-N`: where the frames that come to port N end.

use quiver_core::clock::Clock;
use quiver_core::cpu::prefetch;
use quiver_core::graph::frame::{FRAME_PACKETS_MAX, PREFETCH_AHEAD};
use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_core::{Context, Frame, InterfaceId, Node, Packet};

use crate::neighbours::{ANSWER_BYTES_MAX, Neighbours};
use crate::reception::{Reception, Seen};
use crate::stall::{PassBudget, StallWindow};
use crate::surroundings::Rings;
use quiver_tg_traffic::stamp::STAMP_BYTES;
use quiver_tg_traffic::stamp::end_of_chain;

/// Replies that wait to be sent.
pub const REPLIES_MAX: usize = 64;

/// The control thread's handle of a receiver.
pub struct ReceiverHandle {
    orders: Producer<Box<Reception>>,
    done: Consumer<Box<Reception>>,
}

impl ReceiverHandle {
    /// Fill this one from now on. Takes effect with the next frame, real or [empty](Receiver).
    pub fn begin(&mut self, reception: Box<Reception>) {
        // The ring has room: an order is given only after the one before was answered.
        let _ = self.orders.put(reception);
    }

    /// The one before, once it was replaced.
    pub fn take(&mut self) -> Option<Box<Reception>> {
        self.done.take()
    }
}

/// The node. It looks for orders whenever it runs; a packet that comes from no interface (an empty
/// one) makes it run without a frame.
pub struct Receiver {
    clock: Clock,
    current: Box<Reception>,
    orders: Consumer<Box<Reception>>,
    done: Producer<Box<Reception>>,
    neighbours: Neighbours,
    /// Answers are written here.
    answer: Box<[u8]>,
    replies: Producer<Packet>,
    /// Full vectors without a shorter one between them.
    full_vectors: u64,
    /// As many full vectors hold what the port's receive ring does, where its driver does not say
    /// when it is full.
    ring_vectors: Option<u64>,
    /// The driver's count at the beginning.
    filled_before: u64,
    wake: StallWindow,
    /// When the vector before came.
    last_ns: u64,
}

impl Receiver {
    /// For a port with such rings. Replies go to `replies`.
    pub fn new(
        clock: Clock,
        neighbours: Neighbours,
        replies: Producer<Packet>,
        rings: Rings,
        budget: PassBudget,
    ) -> (Receiver, ReceiverHandle) {
        let (orders_put, orders) = ring(2);
        let (done, done_take) = ring(2);
        let receiver = Receiver {
            clock,
            current: Reception::idle(),
            orders,
            done,
            neighbours,
            answer: vec![0; ANSWER_BYTES_MAX].into_boxed_slice(),
            replies,
            full_vectors: 0,
            ring_vectors: rings
                .untold_frames
                .map(|frames| (frames / FRAME_PACKETS_MAX).max(1) as u64),
            filled_before: 0,
            wake: StallWindow::new(budget),
            last_ns: 0,
        };
        (receiver, ReceiverHandle { orders: orders_put, done: done_take })
    }

    fn look_for_orders(&mut self) {
        if let Some(next) = self.orders.take() {
            let before = std::mem::replace(&mut self.current, next);
            self.full_vectors = 0;
            // Never full: there are no more of them under way than it has places.
            let _ = self.done.put(before);
        }
    }

    #[inline(always)]
    fn note_load(&mut self, cx: &Context<'_>, frame: &Frame, now_ns: u64) {
        let is_full = frame.len() == FRAME_PACKETS_MAX;
        let is_wake = self.wake.is_on(cx, now_ns, is_full);
        let filled = match (self.ring_vectors, frame.packets().first()) {
            (Some(ring_vectors), _) => {
                self.full_vectors = if is_full { self.full_vectors + 1 } else { 0 };
                u64::from(is_full && self.full_vectors.is_multiple_of(ring_vectors))
            }
            (None, Some(packet)) if packet.rx != InterfaceId::NONE => {
                let filled = cx.interface_counters(packet.rx).rx_ring_full.get();
                filled - std::mem::replace(&mut self.filled_before, filled)
            }
            _ => 0,
        };
        if filled > 0 && now_ns >= self.current.counted_from_ns {
            let count = if is_wake {
                &mut self.current.ring_full_stalled
            } else {
                &mut self.current.ring_full
            };
            *count += filled;
        }
    }

    /// A frame that is not ours: a request of a neighbour, or something else.
    #[cold]
    fn answer(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        if packet.rx == InterfaceId::NONE {
            self.current.frames -= 1; // an empty packet
            return;
        }
        self.current.foreign += 1;
        let Some(length) = self.neighbours.answer(packet.bytes(), &mut self.answer) else { return };
        let Some(mut reply) = cx.buffers.packet() else { return };
        let reply =
            if reply.append(&self.answer[..length], cx.buffers) { Ok(reply) } else { Err(reply) };
        if let Err(unsent) = reply.and_then(|reply| self.replies.put(reply)) {
            cx.buffers.free(unsent);
        }
    }
}

/// Where the stamp of an unchained frame lies.
#[inline(always)]
fn prefetch_end(packet: &Packet) {
    if let Some(end) = packet.bytes().last_chunk::<STAMP_BYTES>() {
        prefetch(end);
    }
}

impl Node for Receiver {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        self.look_for_orders();
        let now_ns = self.clock.now_ns();
        self.note_load(cx, frame, now_ns);
        self.current.frames += frame.len() as u64;
        self.current.clock_steps += u64::from(now_ns < self.last_ns);
        self.last_ns = now_ns;
        let packets = frame.packets();
        packets.iter().take(PREFETCH_AHEAD).for_each(prefetch_end);
        for (place, packet) in packets.iter().enumerate() {
            if let Some(later) = packets.get(place + PREFETCH_AHEAD) {
                prefetch_end(later);
            }
            let seen = if packet.is_chained() {
                end_of_chain(packet).map(|end| self.current.note(&end, packet.length(), now_ns))
            } else {
                let bytes = packet.bytes();
                bytes.last_chunk().map(|end| self.current.note(end, bytes.len(), now_ns))
            };
            if seen != Some(Seen::Ours) {
                self.answer(packet, cx);
            }
        }
        for packet in frame.drain() {
            cx.buffers.free(packet);
        }
        self.current.publish();
    }
}
