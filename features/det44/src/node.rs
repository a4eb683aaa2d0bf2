//! `det44-in2out` and `det44-out2in`: the slot of a packet's session follows from its addresses and
//! ports, and is asked for ahead.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, IpFamily};
use quiver_translation::flow::{End, Flow, NO_KEY, key_of};
use quiver_translation::tcp::Direction;

use crate::mapping::Mapping;
use crate::reasons::Det44Drop;
use crate::slots::Ends;
use crate::tables::Shared;
use crate::translator::{Count, InterfaceState, Translator, ends_from_inside, outside_end};

/// The names of the nodes.
pub(crate) const IN2OUT: &str = "det44-in2out";
pub(crate) const OUT2IN: &str = "det44-out2in";
/// In place of a slot: none.
const NO_SLOT: u32 = u32::MAX;

impl Count for StageContext<'_> {
    fn count(&self, reason: Det44Drop) {
        StageContext::count(*self, reason, 1);
    }
}

/// The slot at which the look-up of a packet begins, and what it must hold.
#[derive(Clone, Copy)]
pub(crate) struct Probe {
    slot: u32,
    protocol: u8,
    /// What the packet becomes if it holds that: the outside end, or the inside address.
    to: End,
    /// From outside, the inside port is the slot's.
    ends: Ends,
}

impl Default for Probe {
    fn default() -> Probe {
        Probe { slot: NO_SLOT, protocol: 0, to: End::default(), ends: Ends::default() }
    }
}

/// The node of a side.
pub(crate) struct Translate<const INSIDE: bool> {
    translator: Translator,
    own: NodeId,
}

impl<const INSIDE: bool> Translate<INSIDE> {
    /// Where the session of a packet is looked for first.
    #[inline(always)]
    fn probe(&self, state: &InterfaceState, packet: &Packet) -> Option<Probe> {
        let key = key_of(packet, state.table);
        if key == NO_KEY {
            return None;
        }
        let flow = Flow::of(key);
        let protocol = flow.protocol.0;
        if INSIDE {
            let block = state.rules.of_inside(flow.source.address)?.block(flow.source.address);
            let ends = ends_from_inside(&flow);
            let at = ends.first(protocol, &block);
            let slot = (block.slot + at as usize) as u32;
            return Some(Probe { slot, protocol, to: outside_end(&block, at), ends });
        }
        let to = flow.destination;
        let mapping: &Mapping = state.rules.of_outside(to.address)?;
        let (host, slot) = mapping.host(to.address, to.port)?;
        let remote_port = if flow.is_icmp() { 0 } else { flow.source.port };
        let ends = Ends { remote: flow.source.address, remote_port, inside_port: 0 };
        Some(Probe { slot: slot as u32, protocol, to: End { address: host, port: 0 }, ends })
    }
}

impl<const INSIDE: bool> LookUp for Translate<INSIDE> {
    const NAME: &'static str = if INSIDE { IN2OUT } else { OUT2IN };
    type Reason = Det44Drop;
    type Key = Probe;
    type Found = End;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        self.translator.interface_state(cx, rx, self.own)
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Probe {
        let probe = self.probe(&state, packet).unwrap_or_default();
        if let Some(slots) = self.translator.shared.slots().filter(|_| probe.slot != NO_SLOT) {
            slots.prefetch(probe.slot as usize);
        }
        probe
    }

    /// What each packet's end becomes; port 0 where its session is not in the slot.
    #[inline(always)]
    fn find(&self, _: Variant, _: InterfaceState, keys: &[Probe], found: &mut [End]) {
        let Some(slots) = self.translator.shared.slots() else { return found.fill(End::default()) };
        for (probe, found) in keys.iter().zip(found) {
            let (ends, life) = slots.get(probe.slot as usize);
            let Ends { remote, remote_port, inside_port } = probe.ends;
            let is_far = (ends.remote == remote) & (ends.remote_port == remote_port);
            let is_near = !INSIDE | (ends.inside_port == inside_port);
            let is_its = is_far & is_near & (life.protocol() == probe.protocol);
            let port = if INSIDE { probe.to.port } else { ends.inside_port };
            let is_its = is_its & (probe.slot != NO_SLOT);
            *found = if is_its { End { port, ..probe.to } } else { End::default() };
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        probe: Probe,
        to: End,
        packet: &mut Packet,
    ) -> Result<NodeId, Det44Drop> {
        let direction = if INSIDE { Direction::InToOut } else { Direction::OutToIn };
        if to.address != 0
            && let Some(slots) = self.translator.shared.slots()
        {
            let place = probe.slot as usize;
            let life = slots.get(place).1;
            if life.lives(&self.translator.shared.timeouts, state.now_s) {
                let session = (place, life);
                return Ok(self.translator.pass_on(
                    &state,
                    packet,
                    slots,
                    session,
                    (direction, to),
                ));
            }
        }
        if INSIDE
            && probe.slot != NO_SLOT
            && let Some(slots) = self.translator.shared.slots()
            && let Some(host) = Ip4::source(packet.bytes())
            && let Some((place, life, to)) =
                self.translator.displaced(&state, slots, host, (probe.ends, probe.protocol))
        {
            let session = (place, life);
            return Ok(self.translator.pass_on(&state, packet, slots, session, (direction, to)));
        }
        match INSIDE {
            true => self.translator.other_from_inside(&context, &state, packet),
            false => self.translator.other_from_outside(&context, &state, packet),
        }
    }
}

/// The declaration of a side's node; `arc` is `ip4-unicast`.
pub(crate) fn spec<const INSIDE: bool>(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = if INSIDE {
        "Gives packets from inside a port of their host's block"
    } else {
        "Gives packets from outside to the host whose port they come to"
    };
    NodeSpec::look_up(help, move |wiring| Translate::<INSIDE> {
        translator: Translator::new(&shared, arc, wiring),
        own: wiring.id,
    })
    .describe(|record, names| {
        let flow = <Ip4 as IpFamily>::describe(record.bytes());
        format!("{flow}, to {}", names.node(record.next))
    })
}
