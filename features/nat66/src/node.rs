//! `nat66-in2out` and `nat66-out2in`: the session of a packet, found by its key, says what it
//! becomes. A packet without one goes on as it is, dies, or goes to the slow path.

use std::net::Ipv6Addr;
use std::sync::Arc;

use quiver_bindings::prefetch_sessions;
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip6, IpFamily};
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::ip6::flow::{self, Key, Side, key_of};
use quiver_translation::tcp::Direction;
use quiver_translation::versions::read::Kind;
use quiver_wire::IpProtocol;
use quiver_wire::ip6::address::{is_link_local, is_unicast};

use crate::reasons::Nat66Drop;
use crate::session::Session;
use crate::tables::Shared;
use crate::translator::{
    IN2OUT, InterfaceState, OUT2IN, PLAIN_UPPER, SLOW_PATH, SlowRequest, Translator, upper_of,
};

/// The node of a side.
struct Translate<const INSIDE: bool> {
    translator: Translator,
    own: NodeId,
    slow: NodeId,
}

/// Which end of a packet a translator may have given it.
fn ends(packet: &Packet) -> Option<(Ipv6Addr, Ipv6Addr)> {
    let address = Ipv6Addr::from_bits;
    let (source, to) = (Ip6::source(packet.bytes())?, Ip6::destination(packet.bytes())?);
    Some((address(source), address(to)))
}

fn may_leave_the_link(address: Ipv6Addr) -> bool {
    is_unicast(address) && !is_link_local(address)
}

impl<const INSIDE: bool> Translate<INSIDE> {
    const SIDE: Side = if INSIDE { Side::Inside } else { Side::Outside };
    const DIRECTION: Direction = if INSIDE { Direction::InToOut } else { Direction::OutToIn };

    /// A packet whose key is not found at once: what the fast path does not read, and new ones.
    #[cold]
    #[inline(never)]
    fn resolve_slowly(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat66Drop> {
        let translator = &self.translator;
        let rules = translator.shared.rules(context.pass());
        let Some((source, to)) = ends(packet) else { return Ok(state.behind.take(packet)) };
        let external = rules.external.get(&to.to_bits()).copied();
        let is_for_us = if INSIDE {
            may_leave_the_link(source)
                && may_leave_the_link(to)
                && (external.is_some()
                    || translator.is_for_outside(rules, state.table, to.to_bits()))
        } else {
            external.is_some() && state.table == rules.outside_table
        };
        if !is_for_us {
            return Ok(state.behind.take(packet));
        }
        if INSIDE && rules.external.contains_key(&source.to_bits()) {
            return Err(Nat66Drop::FromPool);
        }
        // What is not translated is the router's own, where it has the address itself.
        let is_own = external == Some(true);
        let count = |reason| context.count(reason, 1);
        let (read, kind, flow) = match translator.read(count, packet, state.table) {
            Ok(Ok(read)) => read,
            Ok(Err(next)) => return Ok(next),
            Err(_) if is_own => return Ok(state.behind.take(packet)),
            Err(reason) => return Err(reason),
        };
        let (table, objects, bindings) = translator.shared.table().ok_or(Nat66Drop::NotEnabled)?;
        if kind != Kind::Error {
            if let Some(index) = table.lookup(&flow.key(Self::SIDE)) {
                let session = Session(objects.get(index >> 1));
                let upper = upper_of(&read);
                return Ok(translator.pass_on(state, packet, upper, session, Self::DIRECTION));
            }
            if external.is_some() && !rules.is_bound(bindings, &flow) {
                return match is_own {
                    true => Ok(state.behind.take(packet)),
                    false => Err(Nat66Drop::NoTranslation),
                };
            }
        }
        packet.hand_over(SlowRequest { from_inside: INSIDE });
        Ok(self.slow)
    }
}

impl<const INSIDE: bool> LookUp for Translate<INSIDE> {
    const NAME: &'static str = if INSIDE { IN2OUT } else { OUT2IN };
    type Reason = Nat66Drop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        self.translator.interface_state(cx, rx, self.own)
    }

    /// Of TCP and UDP without extension headers; others are read more slowly.
    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key {
        key_of(packet, Self::SIDE, state.table)
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: InterfaceState, keys: &[Key], found: &mut [u32]) {
        match self.translator.shared.table() {
            Some((table, objects, _)) => {
                table.lookup_slice(variant, keys, found);
                prefetch_sessions(objects, found);
            }
            None => found.fill(NOT_FOUND),
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        key: Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat66Drop> {
        if found != NOT_FOUND
            && let Some((_, objects, _)) = self.translator.shared.table()
        {
            let session = Session(objects.get(found >> 1));
            let mut pass_on = |protocol| {
                let upper = Some((PLAIN_UPPER, protocol));
                self.translator.pass_on(state, packet, upper, session, Self::DIRECTION)
            };
            // A known protocol says where its header has what.
            return Ok(match flow::protocol_of(key) {
                IpProtocol::TCP => pass_on(IpProtocol::TCP),
                _ => pass_on(IpProtocol::UDP),
            });
        }
        self.resolve_slowly(context, state, packet)
    }
}

/// The declaration of the node of a side; `arc` is `ip6-unicast`.
pub(crate) fn spec<const INSIDE: bool>(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = match INSIDE {
        true => "Packets from inside get an address and a port of the pool of NAT66",
        false => "Packets from outside to the pool of NAT66 get the address and port of a host",
    };
    NodeSpec::look_up(help, move |wiring| Translate::<INSIDE> {
        translator: Translator::new(arc, &shared, wiring),
        own: wiring.id,
        slow: wiring.node(SLOW_PATH),
    })
    .describe(|record, names| {
        format!("{}, to {}", Ip6::describe(record.bytes()), names.node(record.next))
    })
}
