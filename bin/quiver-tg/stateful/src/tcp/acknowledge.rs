//! Processing of acknowledgements: windows, timers, retransmission.

use super::{Connection, Marks, before, microseconds};
use crate::frame::Segment;
use crate::io::{Io, Line};

/// Duplicates after which a segment is taken for lost (RFC 5681 §3.2).
const DUPLICATES: u8 = 3;

impl Connection {
    /// Take an acknowledgement; false when it is of something that was never sent.
    pub(super) fn acknowledge<L: Line>(
        &mut self,
        io: &mut Io<'_, L>,
        segment: &Segment<'_>,
    ) -> bool {
        let acknowledged = segment.acknowledgement;
        if before(self.max, acknowledged) {
            return false;
        }
        if before(acknowledged, self.una) {
            return true; // an old one
        }
        let is_same_window = segment.window == self.window;
        // RFC 9293 §3.10.7.4: an older segment does not change the window.
        if !before(segment.sequence, self.window_from) {
            self.window = segment.window;
            self.window_from = segment.sequence;
        }
        if acknowledged != self.una {
            self.take_new(io, acknowledged);
        } else if self.una != self.max
            && segment.data.is_empty()
            && is_same_window
            && !segment.is_fin()
        {
            self.take_duplicate(io);
        }
        true
    }

    fn take_new<L: Line>(&mut self, io: &mut Io<'_, L>, acknowledged: u32) {
        let count = acknowledged.wrapping_sub(self.una);
        if self.marks.has(Marks::TIMES) && !before(acknowledged, self.timed) {
            self.marks.clear(Marks::TIMES);
            self.rto.sample(microseconds(io.now_ns).wrapping_sub(self.timed_us));
        }
        self.una = acknowledged;
        if before(self.next, acknowledged) {
            self.next = acknowledged;
        }
        self.rto.restore();
        self.marks.clear(Marks::STALLED);
        if self.marks.has(Marks::RECOVERS) {
            self.recover_on(io, count);
        } else {
            self.duplicates = 0;
            self.grow(count);
        }
        // RFC 6298 §5.2, §5.3.
        if self.una == self.max {
            self.marks.clear(Marks::TIMER);
        } else {
            self.run_timer(io.tick.wrapping_add(self.rto.ticks()));
        }
    }

    /// Slow start or congestion avoidance (RFC 5681 §3.1).
    fn grow(&mut self, count: u32) {
        let segment = u32::from(self.segment);
        let more = if self.congestion < self.threshold {
            count.min(segment)
        } else {
            (segment * segment / u32::from(self.congestion).max(1)).max(1)
        };
        self.congestion = self.congestion.saturating_add(more.min(u32::from(u16::MAX)) as u16);
    }

    /// In fast recovery (RFC 6582 §3.2 step 3).
    fn recover_on<L: Line>(&mut self, io: &mut Io<'_, L>, count: u32) {
        if before(self.una, self.recover) {
            // A partial acknowledgement: the next hole begins here.
            io.packets.fast_retransmitted.add(1);
            self.send_again(io);
            let shrunk = u32::from(self.congestion).saturating_sub(count) + u32::from(self.segment);
            self.congestion = shrunk.clamp(u32::from(self.segment), u32::from(u16::MAX)) as u16;
        } else {
            self.marks.clear(Marks::RECOVERS);
            self.duplicates = 0;
            let flight = self.max.wrapping_sub(self.una).min(u32::from(u16::MAX)) as u16;
            self.congestion =
                self.threshold.min(flight.max(self.segment).saturating_add(self.segment));
        }
    }

    fn take_duplicate<L: Line>(&mut self, io: &mut Io<'_, L>) {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.marks.has(Marks::RECOVERS) {
            self.congestion = self.congestion.saturating_add(self.segment);
        } else if self.duplicates == DUPLICATES && before(self.recover, self.una) {
            // RFC 5681 §3.2, RFC 6582 §3.2 step 2: not again for what was lost before the last
            // recovery ended.
            let flight = self.max.wrapping_sub(self.una);
            let least = u32::from(self.segment) * 2;
            self.threshold = (flight / 2).clamp(least, u32::from(u16::MAX)) as u16;
            self.recover = self.max;
            self.marks.set(Marks::RECOVERS);
            io.packets.fast_retransmitted.add(1);
            self.send_again(io);
            self.congestion = self.threshold.saturating_add(self.segment.saturating_mul(3));
        }
    }
}
