//! Processing of a received segment (RFC 9293 §3.10.7).

use quiver_wire::tcp::Flags;

use super::{
    Connection, Marks, SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MIN, State, WINDOW_BYTES, before,
};
use crate::flow::Flow;
use crate::frame::{Outgoing, Segment};
use crate::io::{Io, Line};
use crate::pattern;
use crate::program::{Ending, Failure};

impl Segment<'_> {
    fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// No more data behind this.
    pub(super) fn is_fin(&self) -> bool {
        self.has(Flags::FIN)
    }

    /// A SYN that begins a connection.
    pub fn begins(&self) -> bool {
        self.has(Flags::SYN) && !self.has(Flags::ACK) && !self.has(Flags::RST) && !self.is_fin()
    }

    /// Bytes of sequence space.
    fn length(&self) -> u32 {
        self.data.len() as u32 + u32::from(self.has(Flags::SYN)) + u32::from(self.is_fin())
    }
}

/// Answer a segment that belongs to no connection (RFC 9293 §3.10.7.1).
pub fn answer_nobody<L: Line>(io: &mut Io<'_, L>, segment: &Segment<'_>) {
    if segment.has(Flags::RST) {
        return;
    }
    io.packets.resets_sent.add(1);
    let reset = if segment.has(Flags::ACK) {
        Outgoing { sequence: segment.acknowledgement, flags: Flags::RST, ..Outgoing::default() }
    } else {
        let acknowledgement = segment.sequence.wrapping_add(segment.length());
        Outgoing { acknowledgement, flags: Flags::RST.with(Flags::ACK), ..Outgoing::default() }
    };
    io.tcp(&reset, 0, 0);
}

impl Connection {
    /// Take the fields of a SYN.
    pub(super) fn take_syn(&mut self, segment: &Segment<'_>) {
        let offered = segment.segment_bytes_max.unwrap_or(SEGMENT_BYTES_DEFAULT);
        self.segment = self.segment.min(offered.max(SEGMENT_BYTES_MIN));
        self.irs = segment.sequence;
        self.received = segment.sequence.wrapping_add(1);
        self.window = segment.window;
        self.window_from = segment.sequence;
    }

    /// A segment has come. The connection's end, if it is that.
    pub(super) fn take_segment<L: Line>(
        &mut self,
        io: &mut Io<'_, L>,
        segment: &Segment<'_>,
    ) -> Option<Ending> {
        if segment.has(Flags::RST) {
            io.packets.resets_received.add(1);
        }
        if self.state == State::SynSent {
            return self.input_to_syn_sent(io, segment);
        }
        let repeats_syn = segment.begins() && segment.sequence == self.irs;
        if self.state == State::SynReceived && repeats_syn {
            io.packets.repeated.add(1);
            self.send_handshake(io);
            return None;
        }
        if !self.is_acceptable(segment) {
            self.refuse(io, segment);
            return None;
        }
        if segment.has(Flags::RST) {
            return self.input_reset(io, segment);
        }
        if segment.has(Flags::SYN) {
            // RFC 5961 §4: who really began anew answers this with a reset.
            io.packets.unacceptable.add(1);
            self.send_ack(io);
            return None;
        }
        if !segment.has(Flags::ACK) {
            io.packets.unacceptable.add(1);
            return None;
        }
        if self.state == State::SynReceived && !self.finish_handshake(io, segment) {
            return None;
        }
        if !self.acknowledge(io, segment) {
            io.packets.unacceptable.add(1);
            self.send_ack(io);
            return None;
        }
        if self.state == State::TimeWait {
            return None;
        }
        if let Some(failure) = self.take_data(io, segment) {
            return Some(Ending::Failed(failure));
        }
        self.take_fin(io, segment);
        self.advance(io)
    }

    fn input_to_syn_sent<L: Line>(
        &mut self,
        io: &mut Io<'_, L>,
        segment: &Segment<'_>,
    ) -> Option<Ending> {
        let acknowledges = segment.has(Flags::ACK);
        if acknowledges && segment.acknowledgement != self.max {
            io.packets.unacceptable.add(1);
            if !segment.has(Flags::RST) {
                answer_nobody(io, segment);
            }
            return None;
        }
        if segment.has(Flags::RST) {
            return acknowledges.then_some(Ending::Failed(Failure::Refused));
        }
        if !acknowledges || !segment.has(Flags::SYN) {
            io.packets.unacceptable.add(1);
            return None;
        }
        self.take_syn(segment);
        self.become_established(io, segment);
        self.send_ack(io);
        if io.program.hold > 0 {
            self.marks.set(Marks::RESTS);
            self.run_timer(io.tick.wrapping_add(io.program.hold));
        }
        self.advance(io)
    }

    /// The acknowledgement that the server waits for; false when it is not that.
    fn finish_handshake<L: Line>(&mut self, io: &mut Io<'_, L>, segment: &Segment<'_>) -> bool {
        if segment.acknowledgement != self.max {
            io.packets.unacceptable.add(1);
            answer_nobody(io, segment);
            return false;
        }
        self.become_established(io, segment);
        true
    }

    fn become_established<L: Line>(&mut self, io: &mut Io<'_, L>, segment: &Segment<'_>) {
        self.state = State::Established;
        self.marks.set(Marks::CONNECTED);
        self.acknowledge(io, segment);
        if self.marks.has(Marks::SLOW_START) {
            self.rto.after_lost_handshake();
        }
        self.open_window();
    }

    /// Does it touch the window (RFC 9293 §3.4)?
    fn is_acceptable(&self, segment: &Segment<'_>) -> bool {
        let is_inside =
            |sequence: u32| sequence.wrapping_sub(self.received) < u32::from(WINDOW_BYTES);
        let last = segment.sequence.wrapping_add(segment.length().saturating_sub(1));
        is_inside(segment.sequence) || (segment.length() > 0 && is_inside(last))
    }

    /// Answer what is outside of the window: something that was sent again, a question whether we
    /// are alive, or an attempt to begin anew. Anything else could be answered for ever.
    fn refuse<L: Line>(&mut self, io: &mut Io<'_, L>, segment: &Segment<'_>) {
        let is_question = segment.sequence.wrapping_add(1) == self.received;
        if segment.has(Flags::RST) || (segment.length() == 0 && !is_question) {
            io.packets.unacceptable.add(1);
            return;
        }
        io.packets.repeated.add(1);
        self.send_ack(io);
        if self.state == State::TimeWait && segment.is_fin() {
            self.linger(io);
        }
    }

    /// A reset that lies in the window.
    fn input_reset<L: Line>(
        &mut self,
        io: &mut Io<'_, L>,
        segment: &Segment<'_>,
    ) -> Option<Ending> {
        if self.state == State::TimeWait {
            return None; // RFC 1337: it does not end the memory
        }
        if segment.sequence != self.received {
            // RFC 5961 §3: who may reset knows the exact number.
            self.send_ack(io);
            return None;
        }
        // All went over and only the last acknowledgement was lost: the other side has forgotten
        // us.
        let is_over = self.marks.has(Marks::FIN_TAKEN)
            && self.marks.has(Marks::CLOSES)
            && !before(self.una, self.data_end(io.program.sends()));
        Some(if is_over { Ending::Complete } else { Ending::Failed(Failure::Reset) })
    }

    /// Look at the data, and say that it has come.
    fn take_data<L: Line>(&mut self, io: &mut Io<'_, L>, segment: &Segment<'_>) -> Option<Failure> {
        if segment.data.is_empty() || self.marks.has(Marks::FIN_TAKEN) {
            return None;
        }
        let behind = if before(segment.sequence, self.received) {
            self.received.wrapping_sub(segment.sequence) as usize
        } else {
            0
        };
        let Some(data) = segment.data.get(behind..).filter(|data| !data.is_empty()) else {
            io.packets.repeated.add(1);
            self.send_ack(io);
            return None;
        };
        let sequence = segment.sequence.wrapping_add(behind as u32);
        let ahead = sequence.wrapping_sub(self.received);
        let room = u32::from(WINDOW_BYTES) - ahead.min(u32::from(WINDOW_BYTES));
        let data = data.get(..data.len().min(room as usize)).unwrap_or(data);
        let position = sequence.wrapping_sub(self.irs).wrapping_sub(1);
        let is_too_much =
            u64::from(position) + data.len() as u64 > u64::from(io.program.receives());
        if is_too_much || io.program.verify && !pattern::is_right(position, data) {
            return Some(Failure::Corrupted);
        }
        if ahead > 0 {
            io.packets.out_of_order.add(1);
            self.gaps.add(ahead as u16, (ahead + data.len() as u32) as u16);
            self.send_ack(io); // RFC 5681 §4.2: at once, each one
        } else if self.gaps.is_empty() {
            self.received = self.received.wrapping_add(data.len() as u32);
            self.marks.set(Marks::ACK_DUE);
        } else {
            let reached = self.gaps.advance(data.len() as u16);
            self.received = self.received.wrapping_add(u32::from(reached));
            self.send_ack(io);
        }
        None
    }

    /// Their FIN, in this segment or seen before, once everything in front of it has come.
    fn take_fin<L: Line>(&mut self, io: &mut Io<'_, L>, segment: &Segment<'_>) {
        if segment.is_fin() && !self.marks.has(Marks::FIN_SEEN) {
            self.marks.set(Marks::FIN_SEEN);
            self.fin_at = segment.sequence.wrapping_add(segment.data.len() as u32);
        }
        let is_taken = self.marks.has(Marks::FIN_TAKEN);
        if !self.marks.has(Marks::FIN_SEEN) || is_taken || self.fin_at != self.received {
            return;
        }
        self.received = self.received.wrapping_add(1);
        self.marks.set(Marks::FIN_TAKEN);
        // Our own FIN says it as well when it is about to go; otherwise it is said now.
        let is_about_to_close =
            self.marks.has(Marks::CLOSES) && !self.marks.has(Marks::CLOSED_FIRST);
        if is_about_to_close {
            self.marks.set(Marks::ACK_DUE);
        } else {
            self.send_ack(io);
        }
    }
}
