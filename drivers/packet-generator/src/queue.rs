//! A stream at work: a receive queue that makes its packets itself, at the stream's rate.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_core::worker::device::RxQueue;
use quiver_core::worker::poll::Bell;
use quiver_core::{Context, Frame, InterfaceId, NodeId};

use crate::edit::RunningEdit;
use crate::template::Templates;

/// A stream that could not send for a while (a slow pass, no buffers) catches up for at most this
/// long; what it missed beyond is never sent.
pub const CATCH_UP_NS_MAX: u64 = 10_000_000;

/// What the control thread sees of a stream at work.
#[derive(Default)]
pub(crate) struct Progress {
    /// Packets made since it was enabled.
    pub(crate) sent: AtomicU64,
    /// Packets that found no buffer.
    pub(crate) no_buffer: AtomicU64,
}

/// The stream's queue.
pub(crate) struct StreamQueue {
    pub(crate) interface: InterfaceId,
    pub(crate) next: Option<NodeId>,
    pub(crate) templates: Arc<Templates>,
    pub(crate) edits: Vec<RunningEdit>,
    pub(crate) pacer: Pacer,
    /// Packets still to make.
    pub(crate) left: u64,
    /// Packets in one pass at most.
    pub(crate) per_pass_max: usize,
    pub(crate) progress: Arc<Progress>,
    /// Never rings: there so that a worker whose streams are all done may sleep.
    pub(crate) bell: Bell,
    /// The next template.
    pub(crate) at: usize,
}

impl RxQueue for StreamQueue {
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId> {
        let due = self.pacer.due(cx.now_ns).min(self.left);
        let wanted = (due.min(self.per_pass_max as u64) as usize).min(frame.room());
        if wanted == 0 {
            return self.next;
        }
        let ready = cx.buffers.reserve(wanted);
        let made = if self.templates.all_short() {
            self.make(ready, cx, frame, Templates::short)
        } else {
            self.make(ready, cx, frame, Templates::any)
        };
        if made < wanted {
            self.starved(cx, wanted - made);
        }
        self.pacer.spend(made as u64);
        self.left -= made as u64;
        self.progress
            .sent
            .store(self.progress.sent.load(Ordering::Relaxed) + made as u64, Ordering::Relaxed);
        self.next
    }

    fn wake_fd(&self) -> Option<RawFd> {
        Some(self.bell.fd())
    }

    fn arm(&mut self, _interrupts: bool) -> bool {
        self.left > 0
    }
}

impl StreamQueue {
    #[inline(always)]
    fn make(
        &mut self,
        count: usize,
        cx: &mut Context<'_>,
        frame: &mut Frame,
        template: impl Fn(
            &Templates,
            usize,
            &mut quiver_core::memory::buffer::BufferCache,
        ) -> Option<quiver_core::Packet>,
    ) -> usize {
        let templates = &*self.templates;
        let mut at = self.at;
        for made in 0..count {
            let Some(mut packet) = template(templates, at, cx.buffers) else {
                self.at = at;
                return made;
            };
            at += 1;
            if at == templates.len() {
                at = 0;
            }
            for edit in &mut self.edits {
                edit.apply(packet.bytes_mut());
            }
            if let Err(packet) = frame.push(packet) {
                cx.buffers.free(packet); // cannot be: no more were asked for than there is room
            }
        }
        self.at = at;
        count
    }

    #[cold]
    fn starved(&mut self, cx: &mut Context<'_>, missing: usize) {
        cx.interface_counters(self.interface).rx_no_buffer.add(missing as u64);
        let count = &self.progress.no_buffer;
        count.store(count.load(Ordering::Relaxed) + missing as u64, Ordering::Relaxed);
    }
}

/// Says how many packets are due by the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    /// Packets per second; none = as fast as possible.
    rate_pps: Option<f64>,
    last_ns: Option<u64>,
    credit: f64,
    credit_max: f64,
}

impl Pacer {
    /// `rate_pps` 0 is as fast as possible.
    pub(crate) fn new(rate_pps: f64) -> Pacer {
        let credit_max = (rate_pps * CATCH_UP_NS_MAX as f64 / 1e9).max(1.0);
        Pacer {
            rate_pps: (rate_pps > 0.0).then_some(rate_pps),
            last_ns: None,
            credit: 0.0,
            credit_max,
        }
    }

    /// Packets that are due. The first is due at once.
    #[inline]
    fn due(&mut self, now_ns: u64) -> u64 {
        let Some(rate_pps) = self.rate_pps else { return u64::MAX };
        match self.last_ns {
            Some(last_ns) => {
                let passed_ns = now_ns.saturating_sub(last_ns);
                self.credit =
                    (self.credit + passed_ns as f64 * rate_pps / 1e9).min(self.credit_max);
            }
            None => self.credit = 1.0,
        }
        self.last_ns = Some(now_ns);
        // A whole packet is due even when rounding left a little less of it.
        (self.credit + 1e-6) as u64
    }

    #[inline]
    fn spend(&mut self, packets: u64) {
        if self.rate_pps.is_some() {
            self.credit -= packets as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_due_at_the_rate_by_the_clock() {
        let mut pacer = Pacer::new(1000.0);
        let mut sent = 0;
        for millisecond in 0..=500 {
            let due = pacer.due(7_000_000 + millisecond * 1_000_000);
            pacer.spend(due);
            sent += due;
        }
        assert_eq!(sent, 501);
    }

    #[test]
    fn a_pause_is_caught_up_for_ten_milliseconds() {
        let mut pacer = Pacer::new(1e6);
        assert_eq!(pacer.due(1_000_000_000), 1);
        pacer.spend(1);
        assert_eq!(pacer.due(6_000_000_000), 10_000);
    }

    #[test]
    fn without_a_rate_everything_is_due() {
        assert_eq!(Pacer::new(0.0).due(0), u64::MAX);
    }
}
