//! `nat64-in2out`: IPv6 packets to a prefix of NAT64 become packets of IPv4 by their session. One
//! without goes on as it is, dies, or goes to the slow path.

use std::sync::Arc;

use quiver_bindings::prefetch_sessions;
use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::ip::{Ip6, IpFamily};
use quiver_forwarding::nodes;
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::ip6::flow::TransportEnds;
use quiver_translation::versions::address::{Prefix, is_global};
use quiver_translation::versions::read::{Kind, read6};

use crate::reasons::Nat64Drop;
use crate::session::{Inside, Key, NO_KEY, Session};
use crate::tables::Shared;
use crate::translator::{IN2OUT, SLOW_PATH, SlowRequest, Translator, inside_of};

/// Where packets of an interface go that are to be left alone.
#[derive(Clone, Copy)]
struct InterfaceState {
    /// Small number of the interface's table.
    table: u32,
    behind: Behind,
    now_s: u32,
    /// The prefix of its packets that is looked for first: bits, length and number.
    prefix: Option<(Prefix, u8)>,
}
/// `nat64-in2out`.
struct In2Out {
    translator: Translator,
    arc: ArcId,
    own: NodeId,
    slow: NodeId,
    lookup: NodeId,
}

impl In2Out {
    /// Resolve a packet that the fast path does not take, with or without a session.
    #[inline(never)]
    fn resolve_generally(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat64Drop> {
        if found != NOT_FOUND
            && let Some((_, objects, _)) = self.translator.shared.table()
            && let Ok(read) = read6(packet)
        {
            let session = Session(objects.get(found >> 1));
            return self.translator.send_out(packet, &read, session, state.now_s);
        }
        self.resolve_slowly(context, state, packet)
    }

    /// A packet whose key is not found at once: what the fast path does not read, and new ones.
    #[cold]
    #[inline(never)]
    fn resolve_slowly(
        &self,
        context: StageContext<'_>,
        state: InterfaceState,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat64Drop> {
        let rules = self.translator.shared.rules(context.pass());
        let destination = Ip6::destination(packet.bytes()).unwrap_or_default();
        let Some(rule) = rules.prefix_of(state.table, destination) else {
            return Ok(state.behind.take(packet));
        };
        if rule.prefix.is_well_known()
            && let Some(remote) = rule.prefix.extract(destination)
            && !is_global(remote)
        {
            return Err(Nat64Drop::NotGlobal);
        }
        let count = |reason| context.count(reason, 1);
        let read = match self.translator.read_inside(count, packet)? {
            Ok(read) => read,
            Err(next) => return Ok(next),
        };
        if rule.prefix.contains(read.source) {
            return Err(Nat64Drop::Translated);
        }
        if read.kind != Kind::Error
            && let Some((inside, _)) = inside_of(&read, rules, state.table)
            && let Some((table, objects, _)) = self.translator.shared.table()
            && let Some(index) = table.lookup(&inside.key())
        {
            let session = Session(objects.get(index >> 1));
            return self.translator.send_out(packet, &read, session, state.now_s);
        }
        packet.hand_over(SlowRequest { from_inside: true });
        Ok(self.slow)
    }
}

impl LookUp for In2Out {
    const NAME: &'static str = IN2OUT;
    const LOOKS_BEHIND: bool = true;
    type Reason = Nat64Drop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        let table = self.translator.tables.interfaces.table6(rx);
        let rules = self.translator.shared.rules(cx.pass);
        InterfaceState {
            table,
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
            now_s: (cx.now_ns / 1_000_000_000) as u32,
            prefix: rules.prefix_for(table).map(|rule| (rule.prefix, rule.number)),
        }
    }

    /// Of TCP and UDP without extension headers; others are read more slowly.
    #[inline(always)]
    fn key(&self, state: InterfaceState, packet: &mut Packet) -> Key {
        let (Some((prefix, number)), Some(ends)) = (state.prefix, TransportEnds::of(packet)) else {
            return NO_KEY;
        };
        let Some(remote) = prefix.extract(ends.destination) else { return NO_KEY };
        let TransportEnds { source: host, ports, protocol, .. } = ends;
        Inside { host, remote, ports, protocol, table: state.table, prefix: number }.key()
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
        if found != NOT_FOUND
            && let Some((_, objects, _)) = self.translator.shared.table()
            && let session = Session(objects.get(found >> 1))
            && let Some(next) = self.translator.send_out_fast(packet, session, state.now_s)
        {
            return Ok(next);
        }
        self.resolve_generally(context, state, found, packet)
    }
}
/// The declaration of `nat64-in2out`; `arc` is `ip6-unicast`.
pub(crate) fn spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::look_up("Translates IPv6 packets to a prefix of NAT64", move |wiring| In2Out {
        translator: Translator::new(&shared, wiring),
        arc,
        own: wiring.id,
        slow: wiring.node(SLOW_PATH),
        lookup: wiring.node(nodes::ip6::LOOKUP),
    })
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
