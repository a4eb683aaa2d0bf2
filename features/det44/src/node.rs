//! `det44-in2out` and `det44-out2in`: the slot of a packet's session follows from its addresses and
//! ports, and is asked for ahead.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, IpFamily};
use quiver_translation::flow::{End, Flow, Key, NO_KEY, key_of};
use quiver_translation::tcp::Direction;

use crate::mapping::Mapping;
use crate::reasons::Det44Drop;
use crate::slots::{Ends, Slots};
use crate::tables::{Rules, Shared};
use crate::translator::{Count, InterfaceState, Translator, ends_from_inside, outside_end};

/// The names of the nodes.
pub(crate) const IN2OUT: &str = "det44-in2out";
pub(crate) const OUT2IN: &str = "det44-out2in";
/// Packets whose slots are asked for together.
const AHEAD: usize = 64;
/// In place of a slot: none.
const NO_SLOT: u32 = u32::MAX;

impl Count for StageContext<'_> {
    fn count(&self, reason: Det44Drop) {
        StageContext::count(*self, reason, 1);
    }
}

/// The slot at which the look-up of a packet begins, and what it must hold.
#[derive(Clone, Copy)]
struct Probe {
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

/// What became of a look-up: the slot, and what the packet becomes, where its session is in it.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    slot: u32,
    /// The address is 0 where another session is in the slot, or none.
    to: End,
}

impl Default for Answer {
    fn default() -> Answer {
        Answer { slot: NO_SLOT, to: End::default() }
    }
}

/// The node of a side.
pub(crate) struct Translate<const INSIDE: bool> {
    translator: Translator,
    own: NodeId,
}

impl<const INSIDE: bool> Translate<INSIDE> {
    /// Where the session of a flow is looked for first.
    #[inline(always)]
    fn probe(rules: &Rules, flow: &Flow) -> Option<Probe> {
        let protocol = flow.protocol.0;
        if INSIDE {
            let block = rules.of_inside(flow.source.address)?.block(flow.source.address);
            let ends = ends_from_inside(flow);
            let at = ends.first(protocol, &block);
            let slot = (block.slot + at as usize) as u32;
            return Some(Probe { slot, protocol, to: outside_end(&block, at), ends });
        }
        let to = flow.destination;
        let mapping: &Mapping = rules.of_outside(to.address)?;
        let (host, slot) = mapping.host(to.address, to.port)?;
        let remote_port = if flow.is_icmp() { 0 } else { flow.source.port };
        let ends = Ends { remote: flow.source.address, remote_port, inside_port: 0 };
        Some(Probe { slot: slot as u32, protocol, to: End { address: host, port: 0 }, ends })
    }

    /// Is the session of a probe in its slot?
    #[inline(always)]
    fn answer(slots: &Slots, probe: Probe) -> Answer {
        let (ends, life) = slots.get(probe.slot as usize);
        let Ends { remote, remote_port, inside_port } = probe.ends;
        let is_far = (ends.remote == remote) & (ends.remote_port == remote_port);
        let is_near = !INSIDE | (ends.inside_port == inside_port);
        let is_its = is_far & is_near & (life.protocol() == probe.protocol);
        let port = if INSIDE { probe.to.port } else { ends.inside_port };
        let to = if is_its & (probe.slot != NO_SLOT) {
            End { port, ..probe.to }
        } else {
            End::default()
        };
        Answer { slot: probe.slot, to }
    }
}

impl<const INSIDE: bool> LookUp for Translate<INSIDE> {
    const NAME: &'static str = if INSIDE { IN2OUT } else { OUT2IN };
    type Reason = Det44Drop;
    type Key = Key;
    type Found = Answer;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        self.translator.interface_state(cx, rx, self.own)
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key {
        key_of(packet, state.table)
    }

    fn find(&self, _: Variant, _: InterfaceState, _: &[Key], found: &mut [Answer]) {
        found.fill(Answer::default()); // the loop calls the other
    }

    /// The slots of some packets are asked for before the first is looked at.
    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        _: Variant,
        _: InterfaceState,
        keys: &[Key],
        found: &mut [Answer],
    ) {
        let Some(slots) = self.translator.shared.slots() else {
            return found.fill(Answer::default());
        };
        let rules = self.translator.shared.rules(context.pass());
        let mut probes = [Probe::default(); AHEAD];
        for (keys, found) in keys.chunks(AHEAD).zip(found.chunks_mut(AHEAD)) {
            for (key, probe) in keys.iter().zip(&mut probes) {
                let flow = Flow::of(*key);
                *probe = match *key {
                    NO_KEY => Probe::default(),
                    _ => Self::probe(rules, &flow).unwrap_or_default(),
                };
                slots.prefetch(probe.slot as usize);
            }
            for (probe, found) in probes.iter().zip(found) {
                *found = Self::answer(slots, *probe);
            }
        }
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        state: InterfaceState,
        keys: &[Key],
        found: &mut [Answer],
    ) {
        self.find_in(context, variant, state, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        key: Key,
        Answer { slot, to }: Answer,
        packet: &mut Packet,
    ) -> Result<NodeId, Det44Drop> {
        let direction = if INSIDE { Direction::InToOut } else { Direction::OutToIn };
        let translator = &self.translator;
        if to.address != 0
            && let Some(slots) = translator.shared.slots()
        {
            let place = slot as usize;
            let life = slots.get(place).1;
            if life.lives(&translator.shared.timeouts, state.now_s) {
                let session = (place, life);
                return Ok(translator.pass_on(&state, packet, slots, session, (direction, to)));
            }
        }
        let rules = translator.shared.rules(context.pass());
        if INSIDE
            && slot != NO_SLOT
            && let Some(slots) = translator.shared.slots()
            && let flow = Flow::of(key)
            && let session = (ends_from_inside(&flow), flow.protocol.0)
            && let Some((place, life, to)) =
                translator.displaced(rules, &state, slots, (flow.source.address, session))
        {
            let session = (place, life);
            return Ok(translator.pass_on(&state, packet, slots, session, (direction, to)));
        }
        match INSIDE {
            true => translator.other_from_inside(&context, (rules, &state), packet),
            false => translator.other_from_outside(&context, (rules, &state), packet),
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
