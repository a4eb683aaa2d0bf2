//! `sflow-input` and `sflow-output`: some packets of an interface, drawn at random, are written
//! down. A block in which none is drawn costs one comparison.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::{DEVICE_INPUT, INTERFACE_OUTPUT};
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::jitter::Jitter;
use quiver_core::{Context, InterfaceId, NodeId, Packet, WorkerId};

use crate::sample::Sample;
use crate::skip;
use crate::sources::{Direction, PerWorker, Shared};

/// Samples of one super-frame at most.
const SAMPLES_OF_PACKET_MAX: u8 = 64;

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
    id: NodeId,
    random: RefCell<Jitter>,
    /// Packets until the next sample, that one included, and the rate that this was drawn for.
    left: Cell<u64>,
    drawn_for: Cell<u32>,
}

/// What holds for the packets of an interface.
#[derive(Clone, Copy)]
pub(crate) struct Sampled {
    rate: u32,
    header_bytes: usize,
    is_bare: bool,
    /// Of what is received: where packets go on.
    behind: Option<Behind>,
}

/// A packet, as it is counted.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Packets on the wire: several for a super-frame.
    packets: u32,
    interface: u32,
}

impl<const OUTPUT: bool> Sampler<OUTPUT> {
    const DIRECTION: Direction = if OUTPUT { Direction::Tx } else { Direction::Rx };

    /// Draw the next packet.
    fn draw(&self, rate: u32) -> u64 {
        u64::from(skip::next(&mut self.random.borrow_mut(), rate))
    }

    /// Count the packets of a block; how many.
    #[inline(always)]
    fn count(&self, keys: &[Counted]) -> u64 {
        let Some(worker) = self.shared.worker(self.worker) else { return 0 };
        let (mut all, mut run, mut interface) = (0, 0, keys.first().map_or(0, |key| key.interface));
        for key in keys {
            if OUTPUT && key.interface != interface {
                worker.count(interface, Self::DIRECTION, run);
                (all, run, interface) = (all + run, 0, key.interface);
            }
            run += u64::from(key.packets);
        }
        worker.count(interface, Self::DIRECTION, run);
        all + run
    }

    /// Say how often each packet of a block is sampled.
    #[cold]
    #[inline(never)]
    fn mark(&self, rate: u32, keys: &[Counted], found: &mut [u8]) {
        let mut left = self.left.get();
        for (key, found) in keys.iter().zip(found) {
            let mut packets = u64::from(key.packets);
            while packets >= left {
                packets -= left;
                *found = (*found + 1).min(SAMPLES_OF_PACKET_MAX);
                left = self.draw(rate);
            }
            left -= packets;
        }
        self.left.set(left);
    }

    #[cold]
    #[inline(never)]
    fn sample(&self, context: StageContext<'_>, state: Sampled, packet: &Packet, times: u8) {
        let interface = if OUTPUT { packet.tx } else { packet.rx };
        let is_bare = match OUTPUT {
            true => context.interface(interface).is_some_and(|row| row.mac == [0; 6]),
            false => state.is_bare,
        };
        let how = (state.rate, state.header_bytes);
        let sample = Sample::of(packet, (interface, Self::DIRECTION), is_bare, how);
        let Some(worker) = self.shared.worker(self.worker) else { return };
        for _ in 0..times {
            let is_written = worker.write(sample);
            context.count(if is_written { SflowEvent::Sampled } else { SflowEvent::Lost }, 1);
        }
    }
}

impl<const OUTPUT: bool> LookUp for Sampler<OUTPUT> {
    const NAME: &'static str = name(OUTPUT);
    type Reason = SflowEvent;
    type Key = Counted;
    /// How often the packet is sampled.
    type Found = u8;
    type InterfaceState = Sampled;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> Sampled {
        let row = cx.interface(rx);
        let end = row.map_or(DROP, |row| row.input);
        Sampled {
            rate: self.shared.rate(),
            header_bytes: self.shared.header_bytes(),
            is_bare: row.is_some_and(|row| row.mac == [0; 6]),
            behind: (!OUTPUT).then(|| cx.behind(DEVICE_INPUT, rx, self.id, end)),
        }
    }

    #[inline(always)]
    fn key(&self, _: Sampled, packet: &mut Packet) -> Counted {
        let interface = if OUTPUT { packet.tx } else { packet.rx };
        Counted { packets: packet.on_wire().0 as u32, interface: interface.0 }
    }

    #[inline(always)]
    fn find(&self, _: Variant, state: Sampled, keys: &[Counted], found: &mut [u8]) {
        found.fill(0);
        if !self.shared.worker(self.worker).is_some_and(PerWorker::is_open) {
            return;
        }
        if self.drawn_for.get() != state.rate {
            self.drawn_for.set(state.rate);
            self.left.set(self.draw(state.rate));
        }
        let (packets, left) = (self.count(keys), self.left.get());
        if packets < left {
            self.left.set(left - packets);
        } else {
            self.mark(state.rate, keys, found);
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: Sampled,
        _: Counted,
        found: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, SflowEvent> {
        if found > 0 {
            self.sample(context, state, packet, found);
        }
        Ok(match state.behind {
            Some(behind) => behind.take(packet),
            None => {
                let end = context.interface(packet.tx).map_or(DROP, |row| row.tx);
                context.next_in_arc(INTERFACE_OUTPUT, packet.tx, packet, end)
            }
        })
    }
}

/// The declaration.
pub(crate) fn spec<const OUTPUT: bool>(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = match OUTPUT {
        false => "Samples packets that an interface receives, for sFlow",
        true => "Samples packets that an interface sends, for sFlow",
    };
    NodeSpec::look_up(help, move |wiring| Sampler::<OUTPUT> {
        shared: shared.clone(),
        worker: wiring.worker,
        id: wiring.id,
        random: RefCell::new(Jitter::random()),
        left: Cell::new(1),
        drawn_for: Cell::new(0),
    })
    .takes_offloads()
    .describe(|record, names| {
        format!("{} bytes, to {}", record.packet_bytes, names.node(record.next))
    })
}
