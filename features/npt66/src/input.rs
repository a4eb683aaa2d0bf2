//! `npt66-input`: destinations of packets from outside become internal addresses. What is for the
//! router itself stays its own.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::context::Behind;
use quiver_core::graph::node::NodeSpec;
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_forwarding::IcmpErrorRequest;
use quiver_forwarding::ip::{Ip6, IpFamily, IpTables};
use quiver_forwarding::nodes;
use quiver_tables::GroupId;

use crate::bindings::Bindings;
use crate::reasons::Npt66Drop;
use crate::translate::{self, Unmappable};

/// The node's name.
pub(crate) const INPUT: &str = "npt66-input";
/// No route to the destination (RFC 4443 §3.1).
const NO_ROUTE: IcmpErrorRequest = IcmpErrorRequest { kind: 1, code: 0, detail: 0 };

struct Input {
    tables: Arc<IpTables>,
    bindings: Arc<Bindings>,
    arc: ArcId,
    own: NodeId,
    lookup: NodeId,
    local: NodeId,
    error: NodeId,
}

/// State of one interface.
#[derive(Clone, Copy)]
struct InterfaceState {
    /// The small number of the table that its packets are looked up in.
    table: u32,
    behind: Behind,
}

impl LookUp for Input {
    const NAME: &'static str = INPUT;
    type Reason = Npt66Drop;
    type Key = u128;
    type Found = GroupId;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        InterfaceState {
            table: Ip6::table_of(&self.tables.interfaces, rx),
            behind: cx.behind(self.arc, rx, self.own, self.lookup),
        }
    }

    #[inline(always)]
    fn key(&self, _: InterfaceState, packet: &mut Packet) -> u128 {
        Ip6::destination(packet.bytes()).unwrap_or_default()
    }

    #[inline(always)]
    fn find(
        &self,
        variant: Variant,
        interface_state: InterfaceState,
        keys: &[u128],
        found: &mut [GroupId],
    ) {
        Ip6::table(&self.tables, interface_state.table).lookup_slice(variant, keys, found);
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        interface_state: InterfaceState,
        _: u128,
        route: GroupId,
        packet: &mut Packet,
    ) -> Result<NodeId, Npt66Drop> {
        if self.tables.groups.resolve(route, 0).next != self.local {
            let mappings = self.bindings.of(packet.rx, context.pass());
            if let Err(Unmappable) = translate::inward(mappings, packet.bytes_mut()) {
                context.count(Npt66Drop::Unmappable, 1);
                packet.hand_over(NO_ROUTE);
                return Ok(self.error);
            }
        }
        Ok(interface_state.behind.take(packet))
    }
}

/// The declaration; `arc` is `ip6-unicast`.
pub(crate) fn spec(arc: ArcId, bindings: &Arc<Bindings>) -> NodeSpec {
    let bindings = bindings.clone();
    let help = "Destinations that others see become the addresses behind this router";
    NodeSpec::look_up(help, move |wiring| Input {
        tables: wiring.shared(),
        bindings: bindings.clone(),
        arc,
        own: wiring.id,
        lookup: wiring.node(nodes::ip6::LOOKUP),
        local: wiring.node(nodes::ip6::LOCAL),
        error: wiring.node(nodes::ip6::ICMP_ERROR),
    })
    .takes_offloads()
    .describe(|record, names| {
        format!("{}, to {}", Ip6::describe(record.bytes()), names.node(record.next))
    })
}
