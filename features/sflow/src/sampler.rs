//! Some packets of an interface, drawn at random, are written down: what `sflow-input` and
//! `sflow-output` do alike.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::StageContext;
use quiver_core::jitter::Jitter;
use quiver_core::{InterfaceId, NodeId, Packet, WorkerId};

use crate::sample::Sample;
use crate::skip;
use crate::sources::{Direction, PerWorker, Shared};

/// Samples of one super-frame at most.
pub(crate) const SAMPLES_OF_PACKET_MAX: u8 = 64;

quiver_core::reasons! {
    /// What becomes of samples.
    pub enum SflowEvent {
        /// Written.
        Sampled = info "sampled", "packets sampled";
        /// The ring is full.
        Lost = info "lost", "samples lost: more than the control thread takes (`show sflow`)";
    }
}

/// The name of the node of a direction.
pub(crate) const fn name(is_output: bool) -> &'static str {
    if is_output { "sflow-output" } else { "sflow-input" }
}

/// A worker's instance.
pub(crate) struct Sampler<const OUTPUT: bool> {
    shared: Arc<Shared>,
    worker: WorkerId,
    pub(crate) id: NodeId,
    random: RefCell<Jitter>,
    /// Packets until the next sample, that one included, and the rate that this was drawn for.
    left: Cell<u64>,
    drawn_for: Cell<u32>,
}

/// How packets are sampled.
#[derive(Clone, Copy)]
pub(crate) struct How {
    /// One of so many packets.
    pub rate: u32,
    /// So many bytes of it at most.
    pub header_bytes: usize,
}

impl<const OUTPUT: bool> Sampler<OUTPUT> {
    pub const DIRECTION: Direction = if OUTPUT { Direction::Tx } else { Direction::Rx };

    pub fn new(shared: &Arc<Shared>, wiring: &Wiring<'_>) -> Sampler<OUTPUT> {
        Sampler {
            shared: shared.clone(),
            worker: wiring.worker,
            id: wiring.id,
            random: RefCell::new(Jitter::random()),
            left: Cell::new(1),
            drawn_for: Cell::new(0),
        }
    }

    /// As it is configured.
    pub fn how(&self) -> How {
        How { rate: self.shared.rate(), header_bytes: self.shared.header_bytes() }
    }

    /// Where the worker counts and writes, once there is something to write to. The next sample is
    /// drawn anew when the rate has changed.
    #[inline(always)]
    pub fn open(&self, rate: u32) -> Option<&PerWorker> {
        let worker = self.shared.worker(self.worker).filter(|worker| worker.is_open())?;
        if self.drawn_for.get() != rate {
            self.drawn_for.set(rate);
            self.left.set(self.draw(rate));
        }
        Some(worker)
    }

    /// Draw the next packet.
    fn draw(&self, rate: u32) -> u64 {
        u64::from(skip::next(&mut self.random.borrow_mut(), rate))
    }

    /// Count so many packets down, unless one of them is sampled: then nothing changes.
    #[inline(always)]
    pub fn skips(&self, packets: u64) -> bool {
        let left = self.left.get();
        let skips = packets < left;
        if skips {
            self.left.set(left - packets);
        }
        skips
    }

    /// Count a packet down that stands for so many; how often it is sampled.
    pub fn times(&self, rate: u32, mut packets: u64) -> u8 {
        let (mut left, mut times) = (self.left.get(), 0);
        while packets >= left {
            packets -= left;
            times = (times + 1).min(SAMPLES_OF_PACKET_MAX);
            left = self.draw(rate);
        }
        self.left.set(left - packets);
        times
    }

    /// Write a packet of an interface down.
    #[cold]
    #[inline(never)]
    pub fn sample(
        &self,
        context: StageContext<'_>,
        (interface, is_bare): (InterfaceId, bool),
        how: How,
        packet: &Packet,
        times: u8,
    ) {
        let Some(worker) = self.shared.worker(self.worker) else { return };
        let of = (interface, Self::DIRECTION);
        let sample = Sample::of(packet, of, is_bare, (how.rate, how.header_bytes));
        for _ in 0..times {
            let is_written = worker.write(sample);
            context.count(if is_written { SflowEvent::Sampled } else { SflowEvent::Lost }, 1);
        }
    }
}

/// What both nodes declare alike.
pub(crate) fn described(spec: NodeSpec) -> NodeSpec {
    spec.takes_offloads().describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
