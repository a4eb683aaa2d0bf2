//! `classify-fib-ip4`, `classify-fib-ip6`: the session that a packet meets says in which table its
//! route is looked up.

use std::marker::PhantomData;
use std::sync::Arc;

use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::StageContext;
use quiver_core::{NodeId, Packet};
use quiver_forwarding::fib::Family;
use quiver_forwarding::handover::TableIndex;
use quiver_forwarding::ip::IpFamily;
use quiver_forwarding::nodes;

use crate::action::{Action, SessionAction};
use crate::listed::{Effect, Listed};
use crate::tables::{Access, Direction, Purpose, Tables};

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

/// Lets sessions choose the table of a packet's route.
pub(crate) struct Routed<F: IpFamily> {
    lookup_in_table: NodeId,
    family: PhantomData<fn() -> F>,
}

impl<F: IpFamily> Effect for Routed<F> {
    const NAME: &'static str = names(F::FAMILY).1;
    /// Tables that say so are those of an interface's input access list.
    const OF: (Purpose, Direction) = (Purpose::Access, Direction::Input);
    type Reason = RoutedReason;
    /// The small number of the table.
    type Outcome = Option<u32>;
    type Run<'r> = ();

    #[inline(always)]
    fn first(access: Access, _: &[u8]) -> u16 {
        if F::FAMILY == Family::Ip4 { access.ip4 } else { access.ip6 }
    }

    /// Its frame's header.
    #[inline(always)]
    fn front(packet: &Packet, is_bare: bool) -> usize {
        if is_bare { 0 } else { usize::from(packet.l2_bytes) }
    }

    /// Sessions have counted the packet where it came in.
    #[inline(always)]
    fn weight(_: &Packet) -> u32 {
        0
    }

    #[inline(always)]
    fn packets(weight: u32) -> u64 {
        weight.into()
    }

    #[inline(always)]
    fn begin(&self, _: StageContext<'_>) {}

    #[inline(always)]
    fn meet(&self, (): &mut (), action: SessionAction, _: u32) -> Option<u32> {
        match action {
            SessionAction::LookUp { family, table } if family == F::FAMILY => Some(table),
            _ => None,
        }
    }

    fn missed(_: Action) -> Option<u32> {
        None
    }

    #[inline(always)]
    fn carry_out(
        &self,
        context: StageContext<'_>,
        table: Option<u32>,
        _: bool,
        packet: &mut Packet,
    ) -> Result<Option<NodeId>, RoutedReason> {
        Ok(table.map(|table| {
            context.count(RoutedReason::Chosen, 1);
            packet.hand_over(TableIndex(table));
            self.lookup_in_table
        }))
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
    NodeSpec::look_up(help, move |wiring| {
        let end = Some(wiring.node(lookup));
        let lookup_in_table = wiring.node(names(F::FAMILY).2);
        let effect = Routed::<F> { lookup_in_table, family: PhantomData };
        Listed::new(wiring, &tables, (arc, end), effect)
    })
    .takes_offloads()
    .describe(|record, names| format!("to {}", names.node(record.next)))
}
