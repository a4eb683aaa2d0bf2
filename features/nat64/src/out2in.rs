//! `nat64-out2in`: IPv4 packets to the pool become packets of IPv6 by their session. One without
//! goes on as it is, dies, or goes to the slow path.

use std::sync::Arc;

use quiver_bindings::prefetch_sessions;
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip4, IpFamily};
use quiver_forwarding::nodes;
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::flow::key_of;
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::read::{Kind, read4};

use crate::bindings::of_external;
use crate::reasons::Nat64Drop;
use crate::session::{Key, Session, outside_key};
use crate::tables::Shared;
use crate::translator::{OUT2IN, SLOW_PATH, SlowRequest, Translator, check, outside_of};

/// Where packets of an interface go that are to be left alone.
#[derive(Clone, Copy)]
struct InterfaceState {
    /// Small number of the interface's table.
    table: u32,
    behind: Behind,
    now_s: u32,
}

/// `nat64-out2in`.
struct Out2In {
    translator: Translator,
    arc: ArcId,
    own: NodeId,
    slow: NodeId,
    lookup: NodeId,
}

impl Out2In {
    /// The session of this index, and the prefix that its remote host stands behind.
    #[inline(always)]
    fn session<'p>(
        &'p self,
        context: StageContext<'p>,
        found: u32,
    ) -> Option<(Session<'p>, Prefix)> {
        if found == NOT_FOUND {
            return None;
        }
        let (_, objects, _) = self.translator.shared.table()?;
        let session = Session(objects.get(found >> 1));
        let rules = self.translator.shared.rules(context.pass());
        Some((session, rules.prefix(session.inside().prefix)?))
    }

    /// Resolve a packet that the fast path does not take, with or without a session.
    #[inline(never)]
    fn resolve_generally(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        by: Option<(Session<'_>, Prefix)>,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat64Drop> {
        match (by, read4(packet)) {
            (Some(by), Ok(read)) => self.translator.send_in(packet, &read, by, state.now_s),
            _ => self.resolve_slowly(context, state, packet),
        }
    }

    /// A packet without session: to a binding, an ICMP error, the router's own, or nobody's.
    #[cold]
    #[inline(never)]
    fn resolve_slowly(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat64Drop> {
        let rules = self.translator.shared.rules(context.pass());
        let to = Ip4::destination(packet.bytes()).unwrap_or_default();
        let is_own = match rules.external.get(&to) {
            Some(is_own) if state.table == rules.outside_table => *is_own,
            _ => return Ok(state.behind.take(packet)),
        };
        let count = |reason| context.count(reason, 1);
        let read = if is_own {
            // What is not translated is the router's own.
            match read4(packet) {
                Ok(read) if check(read.kind, read.is_fragment()).is_ok() => read,
                _ => return Ok(state.behind.take(packet)),
            }
        } else {
            match self.translator.read_outside(count, packet)? {
                Ok(read) => read,
                Err(next) => return Ok(next),
            }
        };
        let flow = outside_of(&read, state.table);
        let bindings = self.translator.shared.table().map(|(_, _, bindings)| bindings);
        let is_bound = read.kind == Kind::Error
            || bindings.is_some_and(|bindings| {
                of_external(bindings, flow.destination, flow.protocol, flow.table).is_some()
            });
        match is_bound {
            true => {
                packet.hand_over(SlowRequest { from_inside: false });
                Ok(self.slow)
            }
            false if is_own => Ok(state.behind.take(packet)),
            false => Err(Nat64Drop::NoTranslation),
        }
    }
}

impl LookUp for Out2In {
    const NAME: &'static str = OUT2IN;
    type Reason = Nat64Drop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        InterfaceState {
            table: self.translator.tables.interfaces.table4(rx),
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
            now_s: (cx.now_ns / 1_000_000_000) as u32,
        }
    }

    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key {
        outside_key(key_of(packet, state.table))
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
        _: Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat64Drop> {
        let by = self.session(context, found);
        if let Some(by) = by
            && let Some(next) = self.translator.send_in_fast(packet, by, state.now_s)
        {
            return Ok(next);
        }
        self.resolve_generally(context, state, by, packet)
    }
}
/// The declaration of `nat64-out2in`; `arc` is `ip4-unicast`.
pub(crate) fn spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::look_up("Translates IPv4 packets to the pool of NAT64", move |wiring| Out2In {
        translator: Translator::new(&shared, wiring),
        arc,
        own: wiring.id,
        slow: wiring.node(SLOW_PATH),
        lookup: wiring.node(nodes::ip4::LOOKUP),
    })
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
