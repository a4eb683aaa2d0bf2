//! Output of a connection.

use quiver_wire::tcp::Flags;

use super::{Connection, Marks, State, WINDOW_BYTES, before, microseconds};
use crate::frame::Outgoing;
use crate::io::{Io, Line};

/// Segments of the initial window (RFC 6928).
const INITIAL_SEGMENTS: u16 = 10;
/// And its bytes, where two segments are not more.
const INITIAL_BYTES: u16 = 14_600;

impl Connection {
    fn segment_of(&self, sequence: u32, flags: Flags) -> Outgoing {
        Outgoing {
            sequence,
            acknowledgement: self.received,
            flags,
            window: WINDOW_BYTES,
            segment_bytes_max: None,
        }
    }

    /// Send the SYN of the client, or the server's with its acknowledgement.
    pub(super) fn send_handshake<L: Line>(&mut self, io: &mut Io<'_, L>) {
        let flags =
            if self.state == State::SynSent { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
        let segment_bytes_max = Some(io.program.packet_bytes);
        io.tcp(&Outgoing { segment_bytes_max, ..self.segment_of(self.iss, flags) }, 0, 0);
        let is_first = self.max == self.iss;
        self.next = self.iss.wrapping_add(1);
        self.max = self.next;
        if is_first {
            self.time(self.next, io.now_ns);
        }
        self.run_timer(io.tick.wrapping_add(self.rto.ticks()));
    }

    /// Time the segment that ends here, unless another is timed.
    fn time(&mut self, end: u32, now_ns: u64) {
        if !self.marks.has(Marks::TIMES) {
            self.marks.set(Marks::TIMES);
            self.timed = end;
            self.timed_us = microseconds(now_ns);
        }
    }

    /// The first congestion window (RFC 5681 §3.1, RFC 6928).
    pub(super) fn open_window(&mut self) {
        let segment = self.segment;
        self.congestion = if self.marks.has(Marks::SLOW_START) {
            segment
        } else {
            segment
                .saturating_mul(INITIAL_SEGMENTS)
                .min(INITIAL_BYTES.max(segment.saturating_mul(2)))
        };
    }

    /// Acknowledge what has come.
    pub(super) fn send_ack<L: Line>(&mut self, io: &mut Io<'_, L>) {
        self.marks.clear(Marks::ACK_DUE);
        io.tcp(&self.segment_of(self.max, Flags::ACK), 0, 0);
    }

    /// Break the connection off.
    pub(super) fn send_reset<L: Line>(&mut self, io: &mut Io<'_, L>) {
        io.packets.resets_sent.add(1);
        if self.state != State::SynSent {
            io.tcp(&self.segment_of(self.max, Flags::RST.with(Flags::ACK)), 0, 0);
        } else {
            // Nothing of theirs can be acknowledged yet; who has the SYN goes back to listening.
            io.tcp(&Outgoing { acknowledgement: 0, ..self.segment_of(self.max, Flags::RST) }, 0, 0);
        }
    }

    /// All that may go now: data as the windows let it, the FIN behind it, or an acknowledgement.
    pub(super) fn send_what_may_go<L: Line>(&mut self, io: &mut Io<'_, L>) {
        self.marks.clear(Marks::LISTED);
        if self.state == State::Established {
            let end = self.data_end(io.program.sends());
            while self.send_next(io, end) {}
            self.keep_timer(io, end);
        }
        if self.marks.has(Marks::ACK_DUE) {
            self.send_ack(io);
        }
    }

    /// Bytes that the windows leave for more.
    fn room(&self) -> u32 {
        let window = u32::from(self.window.min(self.congestion));
        window.saturating_sub(self.next.wrapping_sub(self.una))
    }

    /// Send the next segment of data, or the FIN; false when nothing is left or may go.
    fn send_next<L: Line>(&mut self, io: &mut Io<'_, L>, end: u32) -> bool {
        let left = if before(self.next, end) { end.wrapping_sub(self.next) } else { 0 };
        let fin_waits = self.marks.has(Marks::CLOSES) && self.next == end;
        let room = self.room();
        if left > 0 && room > 0 {
            let count = left.min(u32::from(self.segment)).min(room);
            // No small segments because a window is small (RFC 9293 §3.8.6.2.1), unless nothing is
            // on its way that would open it.
            if count < u32::from(self.segment) && count < left && self.next != self.una {
                return false;
            }
            self.send_data(io, self.next, count, end);
            self.next = self.next.wrapping_add(count);
        } else if fin_waits && (room > 0 || self.next == self.una) {
            self.send_fin(io);
        } else {
            return false;
        }
        if before(self.max, self.next) {
            self.max = self.next;
        }
        true
    }

    fn send_data<L: Line>(&mut self, io: &mut Io<'_, L>, sequence: u32, count: u32, end: u32) {
        let after = sequence.wrapping_add(count);
        if before(sequence, self.max) {
            io.packets.retransmitted.add(1);
        } else {
            self.time(after, io.now_ns);
        }
        let is_last = after == end;
        let flags = if is_last { Flags::ACK.with(Flags::PSH) } else { Flags::ACK };
        let position = sequence.wrapping_sub(self.iss).wrapping_sub(1);
        self.marks.clear(Marks::ACK_DUE);
        io.tcp(&self.segment_of(sequence, flags), position, count as usize);
    }

    fn send_fin<L: Line>(&mut self, io: &mut Io<'_, L>) {
        if before(self.next, self.max) {
            io.packets.retransmitted.add(1);
        }
        if !self.marks.has(Marks::FIN_TAKEN) {
            self.marks.set(Marks::CLOSED_FIRST);
        }
        self.marks.clear(Marks::ACK_DUE);
        io.tcp(&self.segment_of(self.next, Flags::FIN.with(Flags::ACK)), 0, 0);
        self.next = self.next.wrapping_add(1);
    }

    /// The timer runs while something is not acknowledged, or waits behind a closed window (RFC
    /// 6298 §5.1, RFC 9293 §3.8.6.1).
    fn keep_timer<L>(&mut self, io: &Io<'_, L>, end: u32) {
        if self.marks.has(Marks::RESTS) {
            return;
        }
        let waits = before(self.next, end);
        if self.una == self.max && !waits {
            self.marks.clear(Marks::TIMER);
        } else if !self.marks.has(Marks::TIMER) {
            self.run_timer(io.tick.wrapping_add(self.rto.ticks()));
        }
    }

    /// Send the segment at `una` again.
    pub(super) fn send_again<L: Line>(&mut self, io: &mut Io<'_, L>) {
        let end = self.data_end(io.program.sends());
        self.marks.clear(Marks::TIMES);
        if before(self.una, end) {
            let most = end.wrapping_sub(self.una).min(u32::from(self.segment));
            // No more than the peer takes; one byte asks whether its window is open again.
            let count = most.min(u32::from(self.window).max(1));
            self.send_data(io, self.una, count, end);
            let after = self.una.wrapping_add(count);
            if before(self.max, after) {
                self.max = after;
                self.marks.clear(Marks::TIMES);
            }
        } else if self.marks.has(Marks::CLOSES) && self.una == end {
            let next = std::mem::replace(&mut self.next, self.una);
            self.send_fin(io);
            if before(self.max, self.next) {
                self.max = self.next;
            }
            if before(self.next, next) {
                self.next = next;
            }
        }
    }

    /// The retransmission timer ran out (RFC 6298 §5.4 to 5.6, RFC 5681 §3.1).
    pub(super) fn retransmit_after_timeout<L: Line>(&mut self, io: &mut Io<'_, L>) {
        io.packets.timer_ran_out.add(1);
        self.marks.set(Marks::STALLED);
        self.marks.clear(Marks::TIMES);
        self.rto.back_off();
        if self.state != State::Established {
            io.packets.retransmitted.add(1);
            self.marks.set(Marks::SLOW_START);
            return self.send_handshake(io);
        }
        let flight = self.max.wrapping_sub(self.una);
        if flight > 0 && self.window > 0 {
            self.threshold =
                (flight / 2).clamp(u32::from(self.segment) * 2, u32::from(u16::MAX)) as u16;
            self.congestion = self.segment;
        }
        self.recover = self.max;
        self.marks.clear(Marks::RECOVERS);
        self.duplicates = 0;
        self.next = self.una;
        self.send_again(io);
        // What was sent again is the new beginning: the rest follows as it is acknowledged.
        let again = self.data_end(io.program.sends());
        let count = again.wrapping_sub(self.una).min(u32::from(self.segment));
        if before(self.una, again) && self.window > 0 {
            self.next = self.una.wrapping_add(count.min(u32::from(self.window)));
        }
        self.run_timer(io.tick.wrapping_add(self.rto.ticks()));
    }
}
