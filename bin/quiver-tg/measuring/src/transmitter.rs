//! `tg-input` of a port: makes the frames that are due and sends them to the port's output node.

use quiver_core::clock::Clock;
use quiver_core::cpu::Body;
use quiver_core::memory::buffer::BufferCache;
use quiver_core::memory::ring::{Consumer, Producer, ring};
use quiver_core::worker::device::RxQueue;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_wire::MacAddress;

use crate::stall::PassBudget;
use crate::transmission::{Batch, Change, Leg, Times, Transmission};
use quiver_tg_traffic::frames::Source;
use quiver_tg_traffic::profile::BURST_MAX;
use quiver_tg_traffic::stamp::{STAMP_BYTES, STREAMS_MAX, Stamp, time_for_stamp};

/// Flat out, a burst that found the ring full is followed by one of what it took and this.
const PROBE_FRAMES: u64 = 4;

/// Changes that wait for the worker.
pub const CHANGES_MAX: usize = 64;

/// The control thread's handle of a transmitter.
pub struct TransmitterHandle {
    orders: Producer<Box<Transmission>>,
    changes: Producer<Change>,
    destinations: Producer<(usize, MacAddress)>,
    done: Consumer<Box<Transmission>>,
    sources: Producer<Box<[Source]>>,
    sources_before: Consumer<Box<[Source]>>,
}

impl TransmitterHandle {
    /// From the worker's next pass on these make the port's frames. Only while nothing is sent:
    /// legs name them by their places.
    pub fn set_sources(&mut self, sources: Vec<Source>) {
        // The ring has room: others are given only after those before came back.
        let _ = self.sources.put(sources.into_boxed_slice());
    }

    /// Those before, once they were replaced.
    pub fn take_sources(&mut self) -> Option<Box<[Source]>> {
        self.sources_before.take()
    }

    /// Work this one off from now on.
    pub fn begin(&mut self, transmission: Box<Transmission>) {
        // The ring has room: an order is given only after the one before was answered.
        let _ = self.orders.put(transmission);
    }

    /// Change the transmission under way, from the worker's next pass on.
    ///
    /// # Errors
    /// When [`CHANGES_MAX`] changes wait already, for the worker does not answer: the change comes
    /// back.
    pub fn change(&mut self, change: Change) -> Result<(), Change> {
        self.changes.put(change)
    }

    /// From the worker's next pass on, send the frames of the port's stream at `place` to this MAC
    /// address. Says whether there was room for the order.
    pub fn set_destination(&mut self, place: usize, mac: MacAddress) -> bool {
        self.destinations.put((place, mac)).is_ok()
    }

    /// The one before, once it was replaced.
    pub fn take(&mut self) -> Option<Box<Transmission>> {
        self.done.take()
    }
}

/// Output interface and node of a port, and how its device takes frames.
#[derive(Clone, Copy, Debug)]
pub struct TxPath {
    /// The port's interface.
    pub interface: InterfaceId,
    /// Its output node.
    pub output: NodeId,
    /// A full ring takes no frame behind the first one that it refused.
    pub refuses_the_rest: bool,
    /// How long a pass of the worker may take.
    pub budget: PassBudget,
}

/// The input of one port.
pub struct Transmitter {
    clock: Clock,
    path: TxPath,
    /// The port's streams, in the order of the transmission's legs.
    sources: Box<[Source]>,
    current: Box<Transmission>,
    orders: Consumer<Box<Transmission>>,
    changes: Consumer<Change>,
    destinations: Consumer<(usize, MacAddress)>,
    done: Producer<Box<Transmission>>,
    other_sources: Consumer<Box<[Source]>>,
    sources_before: Producer<Box<[Source]>>,
    replies: Consumer<Packet>,
    /// Frames that the interface had refused before the last burst.
    refused_before: u64,
    /// Frames of the last burst.
    burst: u64,
    /// Counted frames that each leg had in it.
    counted: [u64; STREAMS_MAX],
    counted_burst: u64,
    /// Flat out: frames to try next.
    quota: u64,
}

impl Transmitter {
    /// For a port; `sources` are its streams, `replies` what its receiver wants sent.
    pub fn new(
        clock: Clock,
        path: TxPath,
        sources: Vec<Source>,
        replies: Consumer<Packet>,
    ) -> (Transmitter, TransmitterHandle) {
        let (orders_put, orders) = ring(2);
        let (changes_put, changes) = ring(CHANGES_MAX);
        let (destinations_put, destinations) = ring(STREAMS_MAX);
        let (done, done_take) = ring(2);
        let (sources_put, other_sources) = ring(2);
        let (sources_before, sources_before_take) = ring(2);
        let transmitter = Transmitter {
            clock,
            path,
            sources: sources.into_boxed_slice(),
            current: Transmission::idle(),
            orders,
            changes,
            destinations,
            done,
            other_sources,
            sources_before,
            replies,
            refused_before: 0,
            burst: 0,
            counted: [0; STREAMS_MAX],
            counted_burst: 0,
            quota: BURST_MAX as u64,
        };
        let handle = TransmitterHandle {
            orders: orders_put,
            changes: changes_put,
            destinations: destinations_put,
            done: done_take,
            sources: sources_put,
            sources_before: sources_before_take,
        };
        (transmitter, handle)
    }

    fn look_for_orders(&mut self, now_ns: u64) {
        while let Some(change) = self.changes.take() {
            self.current.apply(change, now_ns);
        }
        if let Some(sources) = self.other_sources.take() {
            // Never full, as `done`.
            let _ = self.sources_before.put(std::mem::replace(&mut self.sources, sources));
        }
        while let Some((place, mac)) = self.destinations.take() {
            if let Some(source) = self.sources.get_mut(place) {
                source.set_destination(mac.0);
            }
        }
        if let Some(next) = self.orders.take() {
            self.current.close(now_ns);
            let before = std::mem::replace(&mut self.current, next);
            self.quota = self.current.burst_frames_max as u64;
            // Never full: there are no more of them under way than it has places.
            let _ = self.done.put(before);
        }
    }

    /// Note that the worker did not run while frames should have left, where this port is to. What
    /// comes after the last frame holds up none: late frames are waited for until none comes any
    /// more.
    #[inline]
    fn look_for_stalls(&self, cx: &Context<'_>) {
        if let Some(stalls) = &self.current.stalls
            && cx.now_ns >= self.current.counted_from_ns
            && let Some(ns) = self.path.budget.stall_before(cx)
            && self.current.is_sending(cx.now_ns.saturating_sub(ns))
        {
            stalls.note(ns);
        }
    }

    /// Account for the last burst: frames sent and frames refused.
    #[inline]
    fn account_last_burst(&mut self, cx: &Context<'_>) {
        if self.burst == 0 {
            return;
        }
        let refused =
            cx.interface_counters(self.path.interface).tx_errors.get() - self.refused_before;
        let limit = self.current.burst_frames_max as u64;
        if refused > 0 {
            let legs = self.current.legs.len();
            self.current.note_refused(refused, &self.counted[..legs], self.path.refuses_the_rest);
            self.quota = (self.burst.saturating_sub(refused) + PROBE_FRAMES).min(limit);
        } else {
            self.quota = (self.quota + self.quota / 4 + PROBE_FRAMES).min(limit);
        }
        if self.counted_burst > 0 {
            self.current.bursts += 1;
            self.current.full_bursts += u64::from(refused > 0);
        }
        self.burst = 0;
        self.counted_burst = 0;
    }

    fn send_replies(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        while frame.room() > 0 {
            let Some(reply) = self.replies.take() else { break };
            if let Err(unsent) = frame.push(reply) {
                cx.buffers.free(unsent);
            }
        }
    }

    /// Make what is due.
    fn make(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        let now_ns = cx.now_ns;
        let transmission = &mut *self.current;
        let Transmission { measurement, counted_from_ns, end_ns, burst_frames_max, .. } =
            *transmission;
        let times = Times { counted_from_ns, end_ns };
        let is_flat_out = transmission.legs.iter().any(|leg| leg.is_flat_out);
        let limit = if is_flat_out { self.quota } else { burst_frames_max as u64 };
        let whole = limit.min(frame.room() as u64);
        let mut room = whole;
        for (place, leg) in transmission.legs.iter_mut().enumerate() {
            self.counted[place] = 0;
            let batch = leg.batch(now_ns, times, if leg.is_flat_out { whole } else { room });
            let batch = Batch { frames: batch.frames.min(room), ..batch };
            let Some(source) = self.sources.get_mut(leg.source) else { continue };
            if batch.frames == 0 {
                continue;
            }
            let measurement = measurement.wrapping_add(u8::from(batch.is_counted));
            let begun_ns = self.clock.now_ns();
            let order = Order { clock: &self.clock, leg, batch, measurement };
            let made = cx.variant.run(Writing { order, source, cx, frame });
            leg.advance(batch, made, begun_ns);
            room -= made;
            self.burst += made;
            if batch.is_counted && made > 0 {
                self.counted[place] = made;
                self.counted_burst += made;
                leg.live.made.set(leg.counted);
                if transmission.first_ns == 0 {
                    transmission.first_ns = now_ns;
                }
                transmission.last_ns = now_ns;
            }
        }
    }
}

/// One batch of one stream.
struct Order<'a> {
    clock: &'a Clock,
    leg: &'a Leg,
    batch: Batch,
    measurement: u8,
}

/// Write by the kernel for so many bytes and windows.
macro_rules! kernel {
    ($order:ident, $source:ident, $cx:ident, $frame:ident, $bytes:literal, $windows:literal) => {
        $order.write($cx, $frame, |p, s, bytes, cache| {
            $source.write_fixed::<$bytes, $windows>(p, s, bytes, cache)
        })
    };
}

/// The loops that write frames, compiled in the form that they run in.
struct Writing<'a, 'p> {
    order: Order<'a>,
    source: &'a mut Source,
    cx: &'a mut Context<'p>,
    frame: &'a mut Frame,
}

impl Body for Writing<'_, '_> {
    type Answer = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        self.order.write_all(self.source, self.cx, self.frame)
    }
}

impl Order<'_> {
    /// Make its frames by the kernel that fits; how many there were buffers for.
    #[inline(always)]
    fn write_all(&self, source: &mut Source, cx: &mut Context<'_>, frame: &mut Frame) -> u64 {
        let source = match source {
            Source::Generated(made) => &mut **made,
            Source::Replay(replay, _) => {
                return self
                    .write(cx, frame, |p, s, bytes, cache| replay.write(p, s, bytes, cache));
            }
        };
        match source.kernel() {
            (Some(64), 0) => kernel!(self, source, cx, frame, 64, 0),
            (Some(64), 1) => kernel!(self, source, cx, frame, 64, 1),
            (Some(64), 2) => kernel!(self, source, cx, frame, 64, 2),
            (Some(64), 3) => kernel!(self, source, cx, frame, 64, 3),
            (Some(128), 0) => kernel!(self, source, cx, frame, 128, 0),
            (Some(128), 1) => kernel!(self, source, cx, frame, 128, 1),
            (Some(128), 2) => kernel!(self, source, cx, frame, 128, 2),
            (Some(128), 3) => kernel!(self, source, cx, frame, 128, 3),
            _ => self.write(cx, frame, |p, s, bytes, cache| source.write(p, s, bytes, cache)),
        }
    }

    /// Make its frames by `write`; how many there were buffers for.
    #[inline(always)]
    fn write(
        &self,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        mut write: impl FnMut(&mut Packet, &[u8; STAMP_BYTES], usize, &mut BufferCache) -> bool,
    ) -> u64 {
        let data_bytes = cx.buffers.pool().data_bytes();
        // Numbers count from 0 in the warm-up and from 0 again behind it.
        let first = if self.batch.is_counted { self.leg.counted } else { self.leg.made };
        let blank = Stamp {
            measurement: self.measurement,
            stream: self.leg.stream,
            sequence: 0,
            sent_ns: 0,
        };
        let sample = self.leg.sample;
        for sequence in first..first + self.batch.frames {
            let Some(mut packet) = cx.buffers.packet() else { return sequence - first };
            let is_timed = sample != 0 && sequence & (sample.wrapping_sub(1)) == 0;
            let sent_ns = if is_timed { time_for_stamp(self.clock.now_ns()) } else { 0 };
            let stamp = Stamp { sequence, sent_ns, ..blank }.encode();
            if !write(&mut packet, &stamp, data_bytes, cx.buffers) {
                cx.buffers.free(packet);
                return sequence - first;
            }
            if let Err(unsent) = frame.push(packet) {
                cx.buffers.free(unsent);
                return sequence - first;
            }
        }
        self.batch.frames
    }
}

impl RxQueue for Transmitter {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        self.account_last_burst(cx);
        self.look_for_orders(cx.now_ns);
        self.look_for_stalls(cx);
        self.send_replies(cx, frame);
        if cx.now_ns >= self.current.start_ns && !self.current.legs.is_empty() {
            if self.current.is_over(cx.now_ns) {
                self.current.finish();
            } else {
                self.make(cx, frame);
            }
        }
        self.refused_before = cx.interface_counters(self.path.interface).tx_errors.get();
        Some(self.path.output)
    }

    fn sets_rx(&self) -> bool {
        true
    }
}
