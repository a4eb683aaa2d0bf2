//! `classify-fib-ip4`, `classify-fib-ip6`: the session that a packet meets says in which table its
//! route is looked up.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::IpFamily;
use quiver_forwarding::nodes;
use quiver_tables::exact::NOT_FOUND;

use crate::action::SessionAction;
use crate::request::{self, Request};
use crate::tables::{Direction, End, Purpose, Tables};

/// Tables that say so are those of an interface's input access list.
const OF: (Purpose, Direction) = (Purpose::Access, Direction::Input);

quiver_core::reasons! {
    /// What becomes of packets on an interface whose sessions name tables of routes.
    pub enum RoutedReason {
        /// A session has chosen the table.
        Chosen = info "table-chosen", "packets whose session names the table of their route";
    }
}

/// The arc of a family, its node, and the node that looks up in a table.
pub(crate) const fn names(family: Family) -> (&'static str, &'static str, &'static str) {
    match family {
        Family::Ip4 => ("ip4-unicast", "classify-fib-ip4", nodes::ip4::LOOKUP_IN_TABLE),
        Family::Ip6 => ("ip6-unicast", "classify-fib-ip6", nodes::ip6::LOOKUP_IN_TABLE),
    }
}

/// A worker's instance.
pub(crate) struct Routed<F: IpFamily> {
    tables: Arc<Tables>,
    arc: ArcId,
    own: NodeId,
    lookup: NodeId,
    lookup_in_table: NodeId,
    family: PhantomData<fn() -> F>,
}

/// What holds for packets that came in by an interface.
#[derive(Clone, Copy)]
pub(crate) struct State {
    /// The first table, as its number plus one, and whether packets have no link-layer header.
    first: (u16, bool),
    behind: Behind,
}

impl<F: IpFamily> Routed<F> {
    /// Let `read` see a packet's bytes from its link-layer header on.
    #[inline(always)]
    fn with_frame<R>(
        packet: &mut Packet,
        is_bare: bool,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let front = if is_bare { 0 } else { usize::from(packet.l2_bytes) };
        if !packet.push(front) {
            return None;
        }
        let seen = read(packet.bytes());
        packet.pull(front).then_some(seen)
    }
}

impl<F: IpFamily> LookUp for Routed<F> {
    const NAME: &'static str = names(F::FAMILY).1;
    const LOOKS_BEHIND: bool = true;
    type Reason = RoutedReason;
    type Key = Request;
    type Found = u32;
    type InterfaceState = State;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> State {
        let access = self.tables.access(OF, rx);
        let table = if F::FAMILY == Family::Ip4 { access.ip4 } else { access.ip6 };
        State {
            first: (table, access.is_bare),
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
        }
    }

    #[inline(always)]
    fn key(&self, state: State, packet: &mut Packet) -> Request {
        let request = Self::with_frame(packet, state.first.1, |bytes| {
            Request::new(&self.tables, state.first, bytes)
        });
        request.unwrap_or_default()
    }

    #[inline(always)]
    fn find(&self, _: Variant, _: State, _: &[Request], found: &mut [u32]) {
        // Masks are read under a pass: `find_in` does it.
        found.fill(NOT_FOUND);
    }

    #[inline(always)]
    fn find_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        _: State,
        keys: &[Request],
        found: &mut [u32],
    ) {
        request::find(&self.tables, (variant, context.pass()), keys, found);
    }

    #[inline(always)]
    fn find_uniform_in(
        &self,
        context: StageContext<'_>,
        variant: Variant,
        state: State,
        keys: &[Request],
        found: &mut [u32],
    ) {
        self.find_in(context, variant, state, keys, found);
    }

    /// Sessions have counted the packet where it came in.
    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        state: State,
        request: Request,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, RoutedReason> {
        let session = match (request.table(), found) {
            (None, _) => None,
            (Some(table), NOT_FOUND) => {
                let end = Self::with_frame(packet, state.first.1, |bytes| {
                    self.tables.missed(table, context.pass(), (bytes, state.first.1), 0)
                });
                match end {
                    Some(End::Session(session)) => Some(session),
                    _ => None,
                }
            }
            (Some(_), session) => Some(session),
        };
        match session.map(|session| self.tables.action(session)) {
            Some(SessionAction::LookUp { family, table }) if family == F::FAMILY => {
                context.count(RoutedReason::Chosen, 1);
                packet.hand_over(TableIndex(table));
                Ok(self.lookup_in_table)
            }
            _ => Ok(state.behind.take(packet)),
        }
    }
}

/// The declaration; `arc` is that of the family.
pub(crate) fn spec<F: IpFamily>(arc: ArcId, tables: &Arc<Tables>) -> NodeSpec {
    let tables = tables.clone();
    let help = "Lets classifier sessions say in which table routes of packets are looked up";
    let lookup = match F::FAMILY {
        Family::Ip4 => nodes::ip4::LOOKUP,
        Family::Ip6 => nodes::ip6::LOOKUP,
    };
    NodeSpec::look_up(help, move |wiring| Routed::<F> {
        tables: tables.clone(),
        arc,
        own: wiring.id,
        lookup: wiring.node(lookup),
        lookup_in_table: wiring.node(names(F::FAMILY).2),
        family: PhantomData,
    })
    .takes_offloads()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
