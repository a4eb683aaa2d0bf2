//! `sflow-output`: samples what interfaces send. A block of which no packet is drawn costs one
//! comparison.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::INTERFACE_OUTPUT;
use quiver_core::graph::node::{DROP, NodeSpec};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};

use crate::sampler::{self, How, Sampler, SflowEvent};
use crate::sources::{PerWorker, Shared};

/// A packet, as it is counted.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    /// Packets on the wire: several for a super-frame.
    packets: u32,
    interface: u32,
}

/// Count the packets of a block, which may leave by several interfaces; how many.
#[inline(always)]
fn count(worker: &PerWorker, keys: &[Counted]) -> u64 {
    let direction = Sampler::<true>::DIRECTION;
    let (mut all, mut run, mut interface) = (0, 0, keys.first().map_or(0, |key| key.interface));
    for key in keys {
        if key.interface != interface {
            worker.count(interface, direction, run);
            (all, run, interface) = (all + run, 0, key.interface);
        }
        run += u64::from(key.packets);
    }
    worker.count(interface, direction, run);
    all + run
}

impl LookUp for Sampler<true> {
    const NAME: &'static str = sampler::name(true);
    type Reason = SflowEvent;
    type Key = Counted;
    /// How often the packet is sampled.
    type Found = u8;
    type InterfaceState = How;

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) -> How {
        self.how()
    }

    #[inline(always)]
    fn key(&self, _: How, packet: &mut Packet) -> Counted {
        Counted { packets: packet.on_wire().0 as u32, interface: packet.tx.0 }
    }

    #[inline(always)]
    fn find(&self, _: Variant, how: How, keys: &[Counted], found: &mut [u8]) {
        found.fill(0);
        let Some(worker) = self.open(how.rate) else { return };
        if self.skips(count(worker, keys)) {
            return;
        }
        for (key, found) in keys.iter().zip(found) {
            *found = self.times(how.rate, key.packets.into());
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        how: How,
        _: Counted,
        found: u8,
        packet: &mut Packet,
    ) -> Result<NodeId, SflowEvent> {
        let row = context.interface(packet.tx);
        if found > 0 {
            let is_bare = row.is_some_and(|row| row.mac == [0; 6]);
            self.sample(context, (packet.tx, is_bare), how, packet, found);
        }
        let end = row.map_or(DROP, |row| row.tx);
        Ok(context.next_in_arc(INTERFACE_OUTPUT, packet.tx, packet, end))
    }
}

/// The declaration.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    sampler::described(NodeSpec::look_up(
        "Samples packets that an interface sends, for sFlow",
        move |wiring| Sampler::<true>::new(&shared, wiring),
    ))
}
